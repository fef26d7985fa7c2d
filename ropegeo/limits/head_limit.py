"""The limits of a built head in exact arithmetic, with the formats that were emulated, as one `Limit`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ropegeo.construct.built import BuiltHead
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import short
from ropegeo.heads import LetterProfile, LogitProfile
from ropegeo.limits.argmax import ArgmaxLimit, argmax_limit
from ropegeo.limits.formats import FormatLimit
from ropegeo.limits.letters import letter_argmax_limit, letter_softmax_length, letter_softmax_scale
from ropegeo.limits.limit import LADDER, Limit
from ropegeo.limits.rules import IndexQuery, Rule, index_queries
from ropegeo.limits.softmax import (
    DEFAULT_SEARCHED,
    Demand,
    SoftmaxLimit,
    head_softmax_scale,
    softmax_lengths,
)

SEVERAL_PLANES = 10**6
"""How far a head on several planes is searched, if nothing is said: a second; one plane `DEFAULT_SEARCHED`."""
MAX_LETTER_TERMS = 10**5
"""Positions times letters that a head which matches letters is searched to, if nothing is said: a second."""


def head_limit(
    built: BuiltHead,
    *,
    rule: Rule,
    offset: int | None = None,
    beta: float | None = None,
    length: int | None = None,
    window: int | None = None,
    formats: Sequence[FormatLimit] = (),
    max_length: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Limit:
    """Argmax, softmax and window of a head; the formats, emulated beforehand, are taken in.

    Args:
        built: the head.
        rule: of the softmax weight.
        offset: of a token-conditional head, the one query to ask; all of them if not given.
        beta: the scale to judge; `LADDER` is shown if not given.
        length: the length to judge; also gives beta_min.
        window: sliding window in positions.
        formats: of `formats.format_limit`.
        max_length: how far the exact sums are searched; a default that takes seconds if not given.
        progress: called now and then with the number of displacements done.

    Raises:
        InvalidInputError: a window below 1, an offset outside the length, a head without a plane that turns.
        UnsupportedError: more than the exact sums serve.
    """
    if window is not None and window < 1:
        raise InvalidInputError(f"limit: window {window} must be at least 1: a query sees itself")
    profile, betas = built.profile, LADDER if beta is None else (beta,)
    queries: tuple[IndexQuery, ...] = ()
    if isinstance(profile, LetterProfile):
        argmax, softmax = _letters(profile, rule, betas, max_length)
        hidden = window + 1 if window is not None and not profile.self_only else None
    else:
        queries = index_queries(built.recipe, offset)
        if length is not None and queries[0].offset >= length:
            raise InvalidInputError(
                f"limit: offset {short(queries[0].offset)} needs a length above it; length {short(length)} is too short"
            )
        argmax, softmax = _index(profile, queries, rule, betas, max_length, length, progress)
        hidden = None
        if window is not None:
            hidden = next((query.offset + 1 for query in queries if query.offset >= window), None)
    if window is not None:
        argmax, softmax = _windowed_argmax(argmax, window), tuple(windowed(each, window) for each in softmax)
    scale, note = (None, "") if length is None else _scale(built, queries, rule, min(length, window or length), argmax)
    return Limit(
        built=built,
        queries=queries,
        rule=rule,
        beta=beta,
        length=length,
        window=window,
        argmax=argmax,
        softmax=softmax,
        scale=scale,
        scale_note=note,
        formats=tuple(formats),
        window_fails=hidden,
    )


def _index(
    profile: LogitProfile,
    queries: tuple[IndexQuery, ...],
    rule: Rule,
    betas: Sequence[float],
    max_length: int | None,
    length: int | None,
    progress: Callable[[int], None] | None,
) -> tuple[ArgmaxLimit, tuple[SoftmaxLimit, ...]]:
    offsets = [query.offset for query in queries]
    default = DEFAULT_SEARCHED if len(profile.active_planes) == 1 else SEVERAL_PLANES
    last = max(default if max_length is None else max_length, length or 2)
    argmax = argmax_limit(profile, offsets=offsets, max_length=last, progress=progress)
    demands = [Demand(offset=query.offset, threshold=rule.threshold(query.kind)) for query in queries]
    return argmax, softmax_lengths(profile, betas, demands=demands, max_length=last, progress=progress)


def _letters(
    profile: LetterProfile, rule: Rule, betas: Sequence[float], max_length: int | None
) -> tuple[ArgmaxLimit, tuple[SoftmaxLimit, ...]]:
    last = MAX_LETTER_TERMS // profile.letters if max_length is None else max_length
    argmax = letter_argmax_limit(profile, max_length=max(2, last))
    softmax = (letter_softmax_length(profile, beta, weight=rule.weight, max_length=max(2, last)) for beta in betas)
    return argmax, tuple(softmax)


def _scale(
    built: BuiltHead, queries: tuple[IndexQuery, ...], rule: Rule, length: int, argmax: ArgmaxLimit
) -> tuple[float | None, str]:
    """beta_min at a length, or why there is none."""
    profile = built.profile
    if argmax.first_failing_length is not None and argmax.first_failing_length <= length:
        return None, f"no scale is enough at length {short(length)}: the argmax fails"
    try:
        if isinstance(profile, LetterProfile):
            return letter_softmax_scale(profile, length, weight=rule.weight), ""
        demands = [Demand(offset=query.offset, threshold=rule.threshold(query.kind)) for query in queries]
        return head_softmax_scale(profile, length, demands=demands, argmax_fails=length + 1), ""
    except UnsupportedError as error:
        return None, str(error)


def _windowed_argmax(found: ArgmaxLimit, window: int) -> ArgmaxLimit:
    if found.first_failing_length is not None and found.first_failing_length <= window:
        return found
    if found.searched is not None and found.searched < window:
        return found
    return replace(found, first_failing_length=None, searched=None, outcome="none", rival=None)


def windowed(found: SoftmaxLimit, window: int) -> SoftmaxLimit:
    """What a window makes of a limit without one: what fails at a length above it never does."""
    if found.first_failing_length is not None and found.first_failing_length <= window:
        return found
    if found.searched is not None and found.searched < window:
        return found
    return replace(found, first_failing_length=None, searched=None, at_most=None)

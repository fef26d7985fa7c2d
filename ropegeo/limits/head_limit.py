"""The limits of a built head in exact arithmetic, with the formats that were emulated, as one `Limit`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ropegeo.construct.built import BuiltHead
from ropegeo.engine.softmax import MAX_TERMS
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import short
from ropegeo.heads import LetterProfile, LogitProfile
from ropegeo.limits.argmax import DEFAULT_SEARCHED, ArgmaxLimit, argmax_limit
from ropegeo.limits.formats import FormatLimit
from ropegeo.limits.letters import letter_argmax_limit, letter_softmax_length, letter_softmax_scale
from ropegeo.limits.limit import LADDER, Limit
from ropegeo.limits.rules import IndexQuery, Rule, index_queries
from ropegeo.limits.scale_search import ScaleSearch
from ropegeo.limits.softmax import MOST_SEARCHED, Demand, SoftmaxLimit, head_softmax_scale, softmax_lengths

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
    search: ScaleSearch | None = None,
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
        search: of `scale_search.find_scale`, judged with the rest.
        max_length: how far the exact sums are searched at least; if not given `searched_to`, which takes seconds.
        progress: called now and then with the number of displacements done.

    Returns:
        All the limits, and the verdict on the length.

    Raises:
        InvalidInputError: a window below 1, an offset outside the length, a head without a plane that turns.
        UnsupportedError: more than the exact sums serve.

    Accuracy: each row says how it is known; `argmax_limit`, `softmax_lengths` and `format_limit` say how exactly.

    Source: docs/MATHEMATICS.md, section 8.

    Example:
        >>> from ropegeo.construct.index import index_head
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> found = head_limit(index_head(RopeSpectrum.from_angle("1"), offset=3), rule=Rule(), beta=1000.0, length=50)
        >>> found.holds, found.verdict()
        (False, 'does not reach length 50: softmax, beta 1000 fails from length 48 on (near return)')
    """
    if window is not None and window < 1:
        raise InvalidInputError(f"head_limit: window {window} must be at least 1: a query sees itself")
    profile, betas = built.profile, LADDER if beta is None else (beta,)
    last = searched_to(built, length=length, window=window, max_length=max_length)
    queries: tuple[IndexQuery, ...] = ()
    if isinstance(profile, LetterProfile):
        argmax, softmax = _letters(profile, rule, betas, last)
        hidden = window + 1 if window is not None and not profile.self_only else None
    else:
        queries = index_queries(built.recipe, offset)
        if length is not None and queries[0].offset >= length:
            raise InvalidInputError(
                f"head_limit: offset {short(queries[0].offset)} needs a length above it; length {short(length)} is too "
                "short"
            )
        argmax, softmax = _index(profile, queries, rule, betas, last, progress)
        hidden = None
        if window is not None:
            hidden = next((query.offset + 1 for query in queries if query.offset >= window), None)
    if window is not None:
        argmax, softmax = _windowed_argmax(argmax, window), tuple(windowed(each, window) for each in softmax)
    if hidden is not None:
        argmax, softmax = (
            _hidden_argmax(argmax, hidden, queries),
            tuple(unseen(each, hidden, queries) for each in softmax),
        )
    scale, note = None, ""
    if length is not None and hidden is not None and hidden <= length:
        note = f"no scale is enough at length {short(length)}: the window hides a target"
    elif length is not None:
        scale, note = _scale(built, queries, rule, min(length, window or length), argmax)
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
        search=search,
    )


def searched_to(
    built: BuiltHead, *, length: int | None = None, window: int | None = None, max_length: int | None = None
) -> int:
    """How far `head_limit` searches in exact arithmetic: as far as asked, and to the length that is judged.

    Args:
        built: the head.
        length: the length to judge.
        window: sliding window in positions; a length beyond it is decided at the window.
        max_length: what is asked; a default that takes seconds if not given.

    Returns:
        A length; that of the default where the one to judge is beyond all sums (`MOST_SEARCHED`).

    Raises:
        UnsupportedError: a head that matches letters and a length with more terms than sums have.

    Source: ours.

    Example:
        >>> from ropegeo.construct.index import index_head
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> searched_to(index_head(RopeSpectrum.from_angle("1"), offset=3), length=10**8, window=512)
        10000000
    """
    profile, needed = built.profile, length or 2
    if window is not None:
        needed = max(2, min(needed, window))
    if isinstance(profile, LetterProfile):
        if needed * profile.letters > MAX_TERMS:
            raise UnsupportedError(
                f"head_limit: sums over letters have up to {MAX_TERMS} terms, so {profile.letters} letters are judged "
                f"up to length {MAX_TERMS // profile.letters}; {short(needed)} is more"
            )
        default = max(2, MAX_LETTER_TERMS // profile.letters)
    else:
        default = DEFAULT_SEARCHED if len(profile.active_planes) == 1 else SEVERAL_PLANES
        default = max(default, 2 * index_queries(built.recipe)[-1].offset)
        if needed > MOST_SEARCHED:  # no sum goes that far: the argmax may be decided there without
            needed = 2
    return max(default if max_length is None else max_length, needed)


def _index(
    profile: LogitProfile,
    queries: tuple[IndexQuery, ...],
    rule: Rule,
    betas: Sequence[float],
    last: int,
    progress: Callable[[int], None] | None,
) -> tuple[ArgmaxLimit, tuple[SoftmaxLimit, ...]]:
    offsets = [query.offset for query in queries]
    argmax = argmax_limit(profile, offsets=offsets, max_length=last, progress=progress)
    demands = [Demand(offset=query.offset, threshold=rule.threshold(query.kind)) for query in queries]
    return argmax, softmax_lengths(profile, betas, demands=demands, max_length=last, progress=progress)


def _letters(
    profile: LetterProfile, rule: Rule, betas: Sequence[float], last: int
) -> tuple[ArgmaxLimit, tuple[SoftmaxLimit, ...]]:
    argmax = letter_argmax_limit(profile, max_length=last)
    softmax = (letter_softmax_length(profile, beta, weight=rule.weight, max_length=last) for beta in betas)
    return argmax, tuple(softmax)


def _scale(
    built: BuiltHead, queries: tuple[IndexQuery, ...], rule: Rule, length: int, argmax: ArgmaxLimit
) -> tuple[float | None, str]:
    """beta_min at a length, or why there is none."""
    profile = built.profile
    if length < 2:
        return 0.0, ""  # a query that sees itself only
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


def _hidden_argmax(found: ArgmaxLimit, first: int, queries: tuple[IndexQuery, ...]) -> ArgmaxLimit:
    """A target that is never seen is not pointed at."""
    if found.first_failing_length is not None and found.first_failing_length <= first:
        return found
    offset = first - 1 if queries else 0
    return replace(found, first_failing_length=first, searched=None, outcome="hidden", offset=offset, rival=None)


def unseen(found: SoftmaxLimit, first: int, queries: tuple[IndexQuery, ...]) -> SoftmaxLimit:
    """A target that is never seen has no weight."""
    if found.at_most is not None and found.at_most <= first:
        return found
    least = queries[0].offset if queries else 1
    return SoftmaxLimit(
        beta=found.beta,
        last_length=first - 1 if first - 1 > least else None,
        first_failing_length=first,
        searched=first,
        offset=first - 1 if queries else 0,
        at_most=first,
        cause="window",
    )


def windowed(found: SoftmaxLimit, window: int) -> SoftmaxLimit:
    """What a window makes of a limit without one: what fails at a length above it never does."""
    if found.first_failing_length is not None and found.first_failing_length <= window:
        return found
    if found.searched is not None and found.searched < window:
        return found
    return replace(
        found, first_failing_length=None, searched=None, at_most=None, rival=None, term=None, total=None, cause=None
    )

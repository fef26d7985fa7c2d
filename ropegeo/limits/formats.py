r"""How far a built head is right in the arithmetic of a number format, and what stops it.

Index. Every query of the head (`rules`) is asked at every query position it fits (`emulation`): for the first length at
which the argmax is wrong, tied or overflows, and below it, if a scale is given, for the first at which softmax of the
emulated logits gives the target too little weight. A query that the window hides fails from its offset + 1 on. The head
fails where its first query does, so queries after the first that fails are looked at below that length only.

Letters. The head is asked for its worst case over inputs (`letter_emulation`), a centred one for that of its uncentred
letter-integer queries too. Softmax weights are not emulated. Up to length W a window of W hides nothing, and from W + 1
on it hides answers; a head whose queries look for themselves has none that far, and is emulated up to W only.

A window does not end the search of an index head: from length W on exact logits repeat, but a format rotates at
absolute positions, which go on growing, and so do its errors. Every query position up to the length asked for is
emulated.

Why a weight is too small at a length: the largest emulated term is a *near return* if it is one of `rules.sum_cause`
and the rival is the runner-up in exact arithmetic too; else it is *rounding* if the exact sum is below the threshold
there; else the exact sum's own cause.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from ropegeo.construct.built import index_profile, letter_profile
from ropegeo.engine.retrieval_margin import worst_margin
from ropegeo.engine.staircase import common_period
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import short
from ropegeo.heads import LetterProfile
from ropegeo.limits.arithmetic import Arithmetic, emulated_logits
from ropegeo.limits.emulated_head import EmulatedHead
from ropegeo.limits.emulation import EmulatedLength, first_light_length, first_wrong_length
from ropegeo.limits.gaps import Gaps
from ropegeo.limits.letter_emulation import EmulatedLetterLength, first_wrong_retrieval_length
from ropegeo.limits.rotated_head import log_error
from ropegeo.limits.rounding import NUMBER_FORMATS
from ropegeo.limits.rules import Cause, IndexQuery, sum_cause
from ropegeo.limits.sums import MAX_LENGTH

SCHEMA = "ropegeo.format_limit/1"
Progress: TypeAlias = Callable[[int], None]
_KEYS = 8192
"""Keys that are rotated at once where a weight is explained."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FormatLimit:
    """How far a head is right in one arithmetic.

    Attributes:
        arithmetic: how it was computed.
        first_wrong_length: the first length at which the argmax is wrong, tied or overflows, or None.
        first_light_length: the first length, below that, at which the target has too little weight, or None; None too
            where no scale is given.
        max_length: how far it is known: nothing fails up to here but from `first_failing_length` on.
        cause: of the first failure, one of `rules.CAUSES`, or None.
        outcome: `wrong`, `tie`, `overflow`, `light`, `hidden` or `none`.
        offset: of the query that fails first; of the first query if none does.
        rival: displacement of the rival that wins or has the largest weight, or None.
        exact_gap: target's logit less that rival's in exact arithmetic, in units of beta, or None.
        order_matters: whether another order of the float32 sums could move `first_wrong_length`.
        weight: smallest softmax weight of the target over the lengths looked at, or None.
        query_letters: of a head that matches letters, those that were looked for, from 0; None for index heads.
        detail: more on the failure of such a head, for people.
    """

    arithmetic: Arithmetic
    first_wrong_length: int | None
    first_light_length: int | None
    max_length: int
    cause: Cause | None
    outcome: str
    offset: int
    rival: int | None
    exact_gap: float | None
    order_matters: bool
    weight: float | None = None
    query_letters: tuple[int, ...] | None = None
    detail: str = ""

    @property
    def number_format(self) -> str:
        """Its name."""
        return str(self.arithmetic.number_format)

    @property
    def logits(self) -> str:
        """`fused` or `eager`."""
        return str(self.arithmetic.logits)

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.number_format}, {self.logits}"

    @property
    def first_failing_length(self) -> int | None:
        """The first length at which anything fails."""
        return self.first_wrong_length if self.first_light_length is None else self.first_light_length

    @property
    def note(self) -> str:
        """What happens at the first length that fails, for people."""
        if self.cause == "window":
            return self.detail or f"offset {short(self.offset)} is out of sight"
        order = "; may depend on the order of the sum" if self.order_matters else ""
        if self.query_letters is not None:
            return self.detail + order
        if self.outcome == "light":
            largest = "" if self.rival is None else f", displacement {short(self.rival)} has most of the rest"
            return f"target's weight {self.weight:.4g}{largest if self.cause == 'near return' else ''}{order}"
        if self.first_wrong_length is None:
            return (f"smallest weight {self.weight:.4g}" if self.weight is not None else "") + order
        gap = "" if self.exact_gap is None else f", exact gap {self.exact_gap:.3g}"
        if self.rival is None:
            return f"{self.outcome}{gap}{order}"
        word = {"tie": "ties", "wrong": "wins"}.get(self.outcome, self.outcome)
        return f"displacement {short(self.rival)} {word}{gap}{order}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "schema": SCHEMA,
            "number_format": self.number_format,
            "logits": self.logits,
            "positions": str(self.arithmetic.positions),
            "first_wrong_length": self.first_wrong_length,
            "first_light_length": self.first_light_length,
            "first_failing_length": self.first_failing_length,
            "max_length": self.max_length,
            "cause": self.cause,
            "outcome": self.outcome,
            "offset": self.offset,
            "rival": self.rival,
            "exact_gap": self.exact_gap,
            "order_matters": self.order_matters,
            "weight": self.weight,
            **(
                {} if self.query_letters is None else {"query_letters": list(self.query_letters), "detail": self.detail}
            ),
        }


def read_formats(text: str, *, logits: str = "fused", positions: str = "exact") -> tuple[Arithmetic, ...]:
    """Number formats from a text: names with commas, `all` or `none`; logits `both` gives each format twice.

    Raises:
        InvalidInputError: an unknown format, or way to treat logits or positions.

    Example:
        >>> [str(each) for each in read_formats("bfloat16", logits="both")]
        ['bfloat16, fused logits', 'bfloat16, eager logits']
    """
    words = [word.strip() for word in text.split(",")]
    if words == ["none"]:
        words = []
    elif words == ["all"]:
        words = list(NUMBER_FORMATS)
    elif len(set(words)) != len(words):
        raise InvalidInputError(f"read_formats: {text.strip()[:60]!r} names a format twice")
    for word in words:
        if word not in NUMBER_FORMATS:
            raise InvalidInputError(
                f"read_formats: number format {word[:40]!r} is unknown; use {', '.join(NUMBER_FORMATS)}, all or none"
            )
    modes = ("fused", "eager") if logits == "both" else (logits,)
    Arithmetic(logits=modes[0], positions=positions)  # refuses unknown words, with formats or without
    return tuple(Arithmetic(number_format=word, logits=mode, positions=positions) for word in words for mode in modes)


def check_emulated(max_length: int) -> None:
    """Raise unless a length is one that is emulated.

    Raises:
        InvalidInputError: below 1.
        UnsupportedError: above `MAX_LENGTH`.
    """
    if max_length < 1:
        raise InvalidInputError(f"format_limit: max_length {max_length} must be at least 1")
    if max_length > MAX_LENGTH:
        raise UnsupportedError(
            f"format_limit: number formats are emulated up to length {MAX_LENGTH}, every pair of positions; "
            f"max_length {short(max_length)} is more: give a smaller one"
        )


def format_limit(
    head: EmulatedHead, arithmetic: Arithmetic, *, max_length: int, progress: Progress | None = None
) -> FormatLimit:
    """The first length at which a head fails in one arithmetic, up to a largest one.

    Args:
        head: what is computed.
        arithmetic: how.
        max_length: the largest length to look at.
        progress: called now and then with the number of query positions done.

    Returns:
        The first failing length with its cause. `max_length` in it is smaller than what was asked for only of a head
        that matches its own letter, in a window: such a head is emulated up to the window.

    Raises:
        InvalidInputError: no query of the head fits the length.
        UnsupportedError: a length beyond what is emulated.

    Accuracy: exact for the arithmetic of `ropegeo.limits.arithmetic`.

    Source: ours; docs/MATHEMATICS.md, section 8.

    Example:
        >>> from ropegeo.construct.index import index_head
        >>> from ropegeo.limits.rules import Rule
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> head = EmulatedHead.of(index_head(RopeSpectrum.from_angle("1"), offset=3), rule=Rule())
        >>> found = format_limit(head, Arithmetic(number_format="bfloat16"), max_length=64)
        >>> found.first_wrong_length, found.rival, found.cause
        (50, 44, 'near return')
    """
    check_emulated(max_length)
    if not head.queries:
        return _letters(head, arithmetic, max_length, progress)
    if head.queries[0].offset >= max_length:
        raise InvalidInputError(
            f"format_limit: offset {short(head.queries[0].offset)} needs a length above it; max_length {max_length} is "
            "too short for it"
        )
    best = _nothing(arithmetic, max_length, head.queries[0].offset)
    for query in head.queries:
        last = max_length if best.first_failing_length is None else best.first_failing_length - 1
        if query.offset < last:
            best = _earlier(best, _query_limit(head, query, arithmetic, last, progress), max_length)
    return best


def _earlier(best: FormatLimit, found: FormatLimit, max_length: int) -> FormatLimit:
    """What the next query, looked at below the best so far, makes of it."""
    weights = [each for each in (best.weight, found.weight) if each is not None]
    order = best.order_matters or found.order_matters
    chosen = best if found.first_failing_length is None else found
    weight = chosen.weight if chosen.outcome == "light" else min(weights, default=None)
    return replace(chosen, max_length=max_length, order_matters=order, weight=weight)


def _query_limit(
    head: EmulatedHead, query: IndexQuery, arithmetic: Arithmetic, last: int, progress: Progress | None
) -> FormatLimit:
    """One query, at the lengths above its offset up to `last`."""
    nothing = _nothing(arithmetic, last, query.offset)
    if head.window is not None and query.offset >= head.window:
        return replace(nothing, first_wrong_length=query.offset + 1, cause="window", outcome="hidden")
    content = (head.query(query.offset), head.key(), head.recipe.spectrum)
    wrong = first_wrong_length(
        *content,
        offset=query.offset,
        scale=head.scale,
        arithmetic=arithmetic,
        max_length=last,
        window=head.window,
        progress=progress,
    )
    found = replace(nothing, order_matters=wrong.order_matters)
    below = last
    if wrong.first_wrong_length is not None:
        gap = None if wrong.exact_gap is None else wrong.exact_gap / head.unit
        found = replace(
            found,
            first_wrong_length=wrong.first_wrong_length,
            cause=_cause(head, wrong),
            outcome=wrong.outcome,
            rival=wrong.rival,
            exact_gap=gap,
        )
        below = wrong.first_wrong_length - 1
    if head.beta is None or query.offset >= below:
        return found
    threshold = head.rule.threshold(query.kind)
    light = first_light_length(
        *content,
        offset=query.offset,
        scale=head.scale,
        arithmetic=arithmetic,
        weight=_asked_weight(head, threshold, below),
        max_length=below,
        window=head.window,
        progress=progress,
    )
    if light.first_light_length is None:
        return replace(found, weight=_number(light.smallest_weight))
    cause, rival, gap = _light_cause(head, query, arithmetic, light.first_light_length)
    return replace(
        found,
        first_light_length=light.first_light_length,
        cause=cause,
        outcome="overflow" if cause == "overflow" else "light",
        rival=rival,
        exact_gap=gap,
        weight=None if cause == "overflow" else _number(light.smallest_weight),
    )


def _asked_weight(head: EmulatedHead, threshold: Fraction, length: int) -> float:
    """What the weight must exceed, as `first_light_length` reads it, which counts what is within its error as light.

    `majority` asks for more than a weight. `weight>=p` is met by p itself, so what is within the error of it is right.
    """
    if head.rule.weight is None:
        return float(1 / (1 + threshold))
    return float(1 / (1 + float(threshold) * np.exp(2 * log_error(length) + 2.0**-48)))


def _number(weight: float) -> float | None:
    return None if np.isnan(weight) else weight


def _light_cause(
    head: EmulatedHead, query: IndexQuery, arithmetic: Arithmetic, length: int
) -> tuple[Cause, int | None, float | None]:
    """Why a query's weight is too small at a length; the rival with the largest emulated weight, and its exact gap."""
    offset, seen = query.offset, length if head.window is None else min(length, head.window)
    distances = np.arange(seen)
    logits = np.concatenate(
        [
            emulated_logits(
                head.query(offset),
                head.key(),
                head.recipe.spectrum,
                scale=head.scale,
                query_position=length - 1,
                key_positions=length - 1 - part,
                arithmetic=arithmetic,
            )
            for part in np.array_split(distances, seen // _KEYS + 1)
        ]
    ).astype(np.float64)
    if not np.isfinite(logits).all():
        return "overflow", None, None
    others = distances != offset
    if not others.any():
        return "rounding", None, None
    beta, threshold = head.recipe.beta if head.beta is None else head.beta, float(head.rule.threshold(query.kind))
    room = Gaps(index_profile(head.recipe))
    gaps = room.at(-offset, seen - 1 - offset)
    terms, exact = (np.where(others, np.exp(-each), 0.0) for each in (logits[offset] - logits, beta * gaps))
    at, closest = int(terms.argmax()), int(np.where(others, gaps, np.inf).argmin())
    rival, gap = at - offset, float(gaps[at])
    returns = sum_cause(rival, float(terms[at]), float(terms.sum()), threshold) == "near return"
    if returns and gap <= gaps[closest] + 2 * room.error:
        return "near return", rival, gap
    if exact.sum() < threshold:
        return "rounding", rival, gap
    return sum_cause(closest - offset, float(exact[closest]), float(exact.sum()), threshold), rival, gap


def _cause(head: EmulatedHead, found: EmulatedLength) -> Cause:
    if found.outcome == "overflow":
        return "overflow"
    period = common_period(index_profile(head.recipe))
    if period is not None and found.rival is not None and found.rival % period == 0:
        return "tie"
    return "near return" if found.cause == "near return" else "rounding"


def _letters(head: EmulatedHead, arithmetic: Arithmetic, max_length: int, progress: Progress | None) -> FormatLimit:
    """The worst case over inputs."""
    profile, window = letter_profile(head.recipe), head.window
    hides = window is not None and window < max_length
    last = window if window is not None and hides else max_length
    found = replace(_nothing(arithmetic, max_length, 0), query_letters=())
    if last < 2:
        if not hides:
            return found
        if profile.self_only:
            return replace(found, detail="a query sees nothing but itself")
        return replace(
            found,
            first_wrong_length=2,
            cause="window",
            outcome="hidden",
            detail="an answer next to its query is out of sight",
        )
    if hides and profile.self_only:
        found = replace(found, max_length=last)
    asked = [(head.letter_queries(), profile.self_only)]
    if profile.centre:
        asked.append((head.letter_keys(), True))  # letter-integer queries are not centred
    best: EmulatedLetterLength | None = None
    order, letters = False, set(range(profile.letters))
    for queries, own_only in asked:
        below = last if best is None or best.first_wrong_length is None else best.first_wrong_length - 1
        if below < 2:
            continue
        each = first_wrong_retrieval_length(
            queries,
            head.letter_keys(),
            head.recipe.spectrum,
            scale=head.scale,
            arithmetic=arithmetic,
            max_length=below,
            own_only=own_only,
            progress=progress,
        )
        order, letters = order or each.order_matters, letters & set(each.query_letters)
        if best is None or each.first_wrong_length is not None:
            best = each
    found = replace(found, order_matters=order, query_letters=tuple(sorted(letters)))
    sample = (
        "" if len(letters) == profile.letters else f"looking for {len(letters)} of {profile.letters} letters only; "
    )
    if best is None or best.first_wrong_length is None:
        if hides and profile.self_only:
            return replace(found, detail=f"{sample}emulated up to the window of {last}")
        if hides:
            first = last + 1
            return replace(
                found,
                first_wrong_length=first,
                cause="window",
                outcome="hidden",
                detail=f"an answer {last} back is hidden",
            )
        return replace(found, detail=sample.rstrip("; "))
    return replace(
        found,
        first_wrong_length=best.first_wrong_length,
        cause=_letter_cause(profile, best),
        outcome=best.outcome,
        detail=sample + _letter_detail(head, best),
    )


def _letter_cause(profile: LetterProfile, found: EmulatedLetterLength) -> Cause:
    """The planes, where exact arithmetic fails at that length too; else the rounding."""
    if found.outcome == "overflow":
        return "overflow"
    sign = worst_margin(profile, found.first_wrong_length or 2, 1).sign
    return "rounding" if sign == 1 else "tie" if sign == 0 else "near return"


def _letter_detail(head: EmulatedHead, found: EmulatedLetterLength) -> str:
    if found.query_letter is None or found.rival_letter is None:
        return found.outcome
    names, word = head.recipe.letters, {"tie": "ties", "wrong": "wins"}.get(found.outcome, found.outcome)
    return (
        f"{names[found.query_letter]} at distance {found.match_distance}: {names[found.rival_letter]} at "
        f"{found.rival_distance} {word}"
    )


def _nothing(arithmetic: Arithmetic, max_length: int, offset: int) -> FormatLimit:
    """Nothing fails."""
    return FormatLimit(
        arithmetic=arithmetic,
        first_wrong_length=None,
        first_light_length=None,
        max_length=max_length,
        cause=None,
        outcome="none",
        offset=offset,
        rival=None,
        exact_gap=None,
        order_matters=False,
    )

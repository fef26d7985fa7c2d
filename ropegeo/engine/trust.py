r"""Where a built head stops being trustworthy: ties, number formats, the first length that fails."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from ropegeo.engine.letter_exact import LetterPlane
from ropegeo.engine.retrieval_margin import is_exact, worst_margin
from ropegeo.engine.staircase import common_period, staircase
from ropegeo.heads import LetterProfile, LogitProfile

FORMATS: dict[str, Fraction] = {
    "bfloat16": Fraction(1, 2**8),
    "float16": Fraction(1, 2**11),
    "float32": Fraction(1, 2**24),
    "float64": Fraction(1, 2**53),
}
"""Distance between 1 and the next number below it, which is the finest step of a logit near its peak."""

SEARCH_LIMIT = 10**12
"""One-plane staircases are searched this far."""


@dataclass(frozen=True, kw_only=True)
class RoundingLength:
    """The first length at which a margin is below one rounding step of a number format.

    Attributes:
        number_format: name of the format.
        step: relative rounding step just below the peak.
        length: first such length, or None if there is none up to `searched`.
        searched: largest length searched.
    """

    number_format: str
    step: float
    length: int | None
    searched: int


def tie_length(profile: LogitProfile) -> int | None:
    """First length at which an index head's margin is exactly 0, or None if there is none.

    All active planes return together first at displacement t = `common_period`, if their turns are rational. With
    offset s the head sees that displacement from length t + 1 + s on, or, if t <= s, at once.

    Source: docs/MATHEMATICS.md, section 5.
    """
    period = common_period(profile)
    if period is None:
        return None
    return profile.origin + 1 if period <= profile.origin else profile.origin + 1 + period


def rounding_lengths(profile: LogitProfile) -> tuple[RoundingLength, ...]:
    """For each number format, the first length at which the margin is below one rounding step of the peak logit.

    An estimate of where that format stops: below it, rounding the logits alone can decide the argmax. It is not an
    emulation of a model's arithmetic, whose rotation in the same format can fail earlier.
    """
    used = len(profile.active_planes)
    reach = SEARCH_LIMIT if used == 1 else 1 << 16
    steps = staircase(profile, reach)
    margins = [steps.margin(index, 6) for index in range(len(steps.steps))]
    offset = profile.origin
    found = []
    for name, step in FORMATS.items():
        first = next((t for t, margin in zip(steps.steps, margins, strict=True) if margin.high < step), None)
        length = None if first is None else offset + 1 if first <= offset else offset + 1 + first
        found.append(RoundingLength(number_format=name, step=float(step), length=length, searched=reach + 1 + offset))
    return tuple(found)


def first_failing_length(profile: LetterProfile) -> int | None:
    """First length at which the worst case of a one-plane letter-matching head is 0 or below.

    worst(n) never grows with n: more positions are more targets and more rivals. So its exact sign is bisected. Let
    every letter have its own code (multiplier and A coprime). If theta folds to 0 every match scores 1 (see
    `LetterPlane.angle`), worst(n) = 1 - cos(omega) > 0 and there is no such length. Else there is one. The turns x_d =
    (d - c) theta/(2 pi) are dense, or recur with a period q and are the multiples of 1/q, shifted by the centre. With
    q = 1 that is x_d = 1/2, and no rival is below a match's -1. Otherwise no closed half circle is free of them: some
    match has |x_d| >= 1/4 and scores at most 0, and at another distance (one period on, if need be) x_d + s/A lies
    within 1/4 of 0, where a rival scores at least 0.

    A head whose queries look for themselves (symbolic Reflexive) has its match at distance 0, logit beta, and fails
    only where a rival scores beta too: shift/A + d alpha is an integer with shift != 0. For irrational alpha there is
    none; for alpha = p/q it needs q | A d and not q | d, first at d = q/gcd(q, A) if that gcd is above 1.

    A multiplier m with g = gcd(m, A) > 1 gives a rival the answer's own code (`letter_exact`): worst(2) <= 0. Of a head
    whose queries look for themselves, with A' = A/g codes, that rival ties where d alpha is an integer and others where
    s/A' + d alpha is, so the first of all is d = q/gcd(q, A').

    Args:
        profile: of a built head.

    Returns:
        The length, or None if there is none, or if it is not known: several planes, or more letters than the exact
        route takes.

    Source: docs/MATHEMATICS.md, section 6.
    """
    if len(profile.active_planes) != 1:
        return None
    (plane,) = profile.active_planes
    codes = profile.letters // gcd(profile.multipliers[plane], profile.letters)
    distinct = codes == profile.letters
    if profile.self_only:
        turn = profile.spectrum.rational_turn(plane)
        shared = 1 if turn is None else gcd(turn.denominator, codes)
        return None if turn is None or (shared == 1 and distinct) else turn.denominator // shared + 1
    if not distinct:
        return 2
    if not is_exact(profile) or LetterPlane(profile, 1).angle.is_zero():
        return None

    low, high = 1, 2
    while worst_margin(profile, high, 1).sign == 1:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if worst_margin(profile, middle, 1).sign == 1 else (low, middle)
    return high

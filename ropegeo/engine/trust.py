r"""Where a built head stops being trustworthy: ties, number formats, the first length that fails."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from ropegeo.engine.retrieval_margin import folded_angle, worst_sign
from ropegeo.engine.staircase import common_period, staircase
from ropegeo.exact import ClosedForm
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

    worst(n) never grows with n: more positions are more targets and more rivals. So the sign is found by bisection,
    on the exact closed form where it holds and by definition elsewhere. A plane too slow to evaluate by definition
    where its closed form ends has failed there: let N be the first distance with N theta >= omega, theta <= pi.
    Centre c = 0: the match at N scores cos(N theta), the rival of shift -1 at N - 1 cos(omega - (N-1) theta), and
    |omega - (N-1) theta| = theta + omega - N theta is at most N theta, and at most 2 pi - N theta. Centre c >= 1/2: the
    match at 0 scores cos(c theta), the rival of shift -1 at N cos((N-c) theta - omega); if the second were smaller,
    either (N-c) theta >= omega and 2 c theta < N theta - omega < theta, or N theta < omega, both impossible.

    A head whose queries look for themselves (symbolic Reflexive) has its match at distance 0, logit beta, and fails
    only where a rival scores beta too: shift/A + d alpha is an integer with shift != 0. For irrational alpha there is
    none; for alpha = p/q it needs q | A d and not q | d, first at d = q/gcd(q, A) if that gcd is above 1.

    Args:
        profile: of a built head.

    Returns:
        The length, or None if there is none, if several planes are active (they have no closed form), or if it lies
        beyond what is evaluated and proved.

    Source: docs/MATHEMATICS.md, section 6.
    """
    if len(profile.active_planes) != 1:
        return None
    if profile.self_only:
        turn = profile.spectrum.rational_turn(profile.active_planes[0])
        shared = 1 if turn is None else gcd(turn.denominator, profile.letters)
        return None if turn is None or shared == 1 else turn.denominator // shared + 1

    low, high = 1, 2
    while True:
        sign = worst_sign(profile, high)
        if sign is None and (profile.centre > high - 1 or folded_angle(profile) > ClosedForm.pi()):
            return None  # beyond what is evaluated, and the proof above does not reach there
        if sign != 1:
            break
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        # Undecided (a margin within the float error) counts as a failure: nothing is claimed beyond what is shown.
        low, high = (middle, high) if worst_sign(profile, middle) == 1 else (low, middle)
    return high

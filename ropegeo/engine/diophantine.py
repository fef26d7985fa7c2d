r"""One plane, exactly: the margin of an index head at any reach, by continued fractions and ball arithmetic.

The claim. For one plane with angle theta, alpha = theta/(2 pi) and reach T,

    margin(T) = min over 1 <= t <= T of 1 - cos(t theta) = 2 sin(pi ||q alpha||)^2,

where ||x|| is the distance to the nearest integer and q the largest denominator of a convergent of alpha with q <= T
(the last index k where several share it: q_0 = q_1 = 1 happens).

Proof. 1 - cos(t theta) = 2 sin(pi t alpha)^2 depends on ||t alpha|| only and grows with it on [0, 1/2]. By the law of
best approximation of the second kind (Lagrange; Khinchin, *Continued Fractions*, theorems 16-17),
||t alpha|| >= ||q_k alpha|| for all 1 <= t < q_(k+1), with equality at t = q_k. So the minimum over t <= T sits at the
last q_k <= T. If alpha = p/q in lowest terms, its last convergent is itself and the margin is exactly 0 from T = q on.

The sine form keeps all digits; 1 - cos would lose them when the margin is below 1e-16.

How the convergents are certified. alpha is enclosed in a ball; both ends are exact fractions, and Euclid's algorithm
runs on both at once. A partial quotient on which both ends agree is the partial quotient of every number between
(the set of numbers with given first quotients is an interval). Where they part before the reach is passed, the
precision is doubled. Irrational alpha (decided exactly by `ClosedForm`) always comes to an end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ropegeo.errors import InvalidInputError
from ropegeo.exact import ClosedForm, Enclosure, balls, short
from ropegeo.exact.enclosure import DOUBLE_DIGITS

GUARD_BITS = 64
RATIONAL_MARGINS: dict[Fraction | None, Fraction] = {
    Fraction(1, 6): Fraction(1, 2),
    Fraction(1, 4): Fraction(1),
    Fraction(1, 3): Fraction(3, 2),
    Fraction(1, 2): Fraction(2),
}
"""2 sin(pi x)^2 where it is rational and not 0: these x in (0, 1/2] and no others (Niven 1956, corollary 3.12).
All other margins are irrational, so that enough precision always proves their digits."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OnePlaneStaircase:
    """The margin of a one-plane index head as a function of the reach: it falls at `steps` and is constant between.

    Attributes:
        angle: radians per position, exact.
        reach: how far the steps are complete.
        steps: displacements at which the margin falls, increasing, the first one 1.
        numerators: whole turns nearest to each step's rotation.
        method: the route, for results.
    """

    angle: ClosedForm
    reach: int
    steps: tuple[int, ...]
    numerators: tuple[int, ...]
    method: str = "continued_fraction"

    @cached_property
    def turn(self) -> Fraction | None:
        """The angle as a fraction of a turn in [0, 1) if that is rational, else None."""
        return _reduced(self.angle)

    def index_at(self, reach: int) -> int:
        """Which step holds the minimum over displacements 1..reach.

        Raises:
            InvalidInputError: a reach below 1 or beyond the staircase.
        """
        return last_step(self.steps, reach, complete_to=self.reach)

    def margin(self, index: int, digits: int = 17) -> Enclosure:
        """The margin from step `index` on, in units of beta.

        Args:
            index: position in `steps`.
            digits: significant digits to prove.

        Returns:
            An enclosure that proves that many digits and, where the value is in range, the nearest double.
        """
        denominator, numerator = self.steps[index], self.numerators[index]
        turn = self.turn
        if turn is not None and denominator * turn == numerator:
            return Enclosure.exactly(0)
        distance = None if turn is None else abs(denominator * turn - numerator)
        if distance in RATIONAL_MARGINS:
            return Enclosure.exactly(RATIONAL_MARGINS[distance])
        bits = 2 * self.reach.bit_length() + 4 * digits + GUARD_BITS
        while True:
            nearness = self._distance(denominator, numerator, bits)
            with balls.precision(bits):
                sine = (balls.pi() * nearness).sin()
                result = Enclosure.of_ball(2 * sine * sine)
            if result.proves(digits) and result.proves(DOUBLE_DIGITS):
                return result
            bits *= 2

    def _distance(self, denominator: int, numerator: int, bits: int) -> balls.Ball:
        """|denominator * alpha - numerator|, where alpha is reduced to [0, 1)."""
        if self.turn is not None:
            with balls.precision(bits):
                return balls.ball(abs(denominator * self.turn - numerator))
        extra = bits + _magnitude_bits(self.angle)
        turn = (self.angle / (2 * ClosedForm.pi())).ball(extra)
        with balls.precision(extra):
            return abs(denominator * (turn - _whole_turns(self.angle)) - numerator)


def last_step(steps: tuple[int, ...], reach: int, *, complete_to: int) -> int:
    """Index of the last step at or before a reach.

    Raises:
        InvalidInputError: a reach below 1 or beyond where the steps are complete.
    """
    if not 1 <= reach <= complete_to:
        raise InvalidInputError(f"staircase: reach {short(reach)} lies outside 1..{short(complete_to)}")
    return bisect_right(steps, reach) - 1


def one_plane_staircase(angle: ClosedForm, reach: int) -> OnePlaneStaircase:
    """All steps of the one-plane margin up to displacement `reach`.

    Args:
        angle: radians per position, positive.
        reach: the largest displacement, at least 1; any size.

    Raises:
        InvalidInputError: reach below 1, or an angle that is not positive.

    Accuracy: exact (integers); see the module's proof.

    Source: docs/MATHEMATICS.md, section 5; Urrutia et al., arXiv 2605.31558, appendix F, for the head.

    Example:
        >>> from ropegeo.exact import read_angle
        >>> one_plane_staircase(read_angle("1"), 1000).steps
        (1, 6, 19, 25, 44, 333, 710)
    """
    if reach < 1:
        raise InvalidInputError(f"one_plane_staircase: reach {reach} must be at least 1")
    if angle.sign() <= 0:
        raise InvalidInputError("one_plane_staircase: the angle must be positive")
    turn = _reduced(angle)
    convergents = _rational_convergents(turn, reach) if turn is not None else _irrational_convergents(angle, reach)
    steps: list[int] = []
    numerators: list[int] = []
    for numerator, denominator in convergents:
        if steps and steps[-1] == denominator:  # q_0 = q_1 = 1: the later one is the nearer
            numerators[-1] = numerator
        else:
            steps.append(denominator)
            numerators.append(numerator)
    return OnePlaneStaircase(angle=angle, reach=reach, steps=tuple(steps), numerators=tuple(numerators))


def _reduced(angle: ClosedForm) -> Fraction | None:
    turn = angle.rational_turn()
    return None if turn is None else turn % 1


def _magnitude_bits(angle: ClosedForm) -> int:
    """Bits that the whole turns of a large angle use up."""
    return max(0, int(float(angle)).bit_length())


def _whole_turns(angle: ClosedForm) -> int:
    """floor(alpha) for irrational alpha."""
    bits = GUARD_BITS + _magnitude_bits(angle)
    while True:
        low, high = balls.rational_ends((angle / (2 * ClosedForm.pi())).ball(bits))
        if low.numerator // low.denominator == high.numerator // high.denominator:
            return low.numerator // low.denominator
        bits *= 2


def _quotients(value: Fraction) -> Iterator[int]:
    top, bottom = value.numerator, value.denominator
    while bottom:
        quotient, rest = divmod(top, bottom)
        yield quotient
        top, bottom = bottom, rest


def _rational_convergents(turn: Fraction, reach: int) -> list[tuple[int, int]]:
    return _accumulate(_quotients(turn), reach)[0]


def _irrational_convergents(angle: ClosedForm, reach: int) -> list[tuple[int, int]]:
    whole = _whole_turns(angle)
    bits = 2 * reach.bit_length() + GUARD_BITS + _magnitude_bits(angle)
    while True:
        low, high = balls.rational_ends((angle / (2 * ClosedForm.pi())).ball(bits))
        convergents, passed = _accumulate(_shared_quotients(low - whole, high - whole), reach)
        if passed:
            return convergents
        bits *= 2


def _shared_quotients(low: Fraction, high: Fraction) -> Iterator[int]:
    """Partial quotients on which both ends agree, hence those of every number between."""
    for first, second in zip(_quotients(low), _quotients(high), strict=False):
        if first != second:
            return
        yield first


def _accumulate(quotients: Iterator[int], reach: int) -> tuple[list[tuple[int, int]], bool]:
    """Convergents (p, q) with q <= reach, and whether a denominator beyond the reach was met."""
    convergents: list[tuple[int, int]] = []
    p_before, q_before, p, q = 0, 1, 1, 0
    for quotient in quotients:
        p_before, p = p, quotient * p + p_before
        q_before, q = q, quotient * q + q_before
        if q > reach:
            return convergents, True
        convergents.append((p, q))
    return convergents, False

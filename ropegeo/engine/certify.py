r"""The deficit of a profile at one displacement, certified; and the exact turns that this and the lattice route need.

A profile is logit(t) = constant + Re sum_k c_k exp(i t theta_k), t counted from its origin. With w_k = |c_k|, phi_k =
arg(c_k)/(2 pi) and alpha_k = theta_k/(2 pi), its *deficit*

    D(t) = sum_k w_k (1 - cos(2 pi (t alpha_k + phi_k))) = sum_k 2 w_k sin(pi (t alpha_k + phi_k))^2  >= 0

is how far the logit lies below constant + sum_k w_k. For a peaked profile (all phi_k = 0) D(t) is the gap.

The sine form is a sum of terms that are not negative, so nothing cancels: a relative error of each term is one of the
sum, however small D is. A ball of t alpha_k + phi_k has to know that number's distance to the nearest integer; the
precision is doubled until the digits asked for are proved.

Zero is decided, not measured, where it can be. D(t) = 0 iff every t alpha_k + phi_k with w_k > 0 is an integer.

* alpha_k is rational or not, decided by `ClosedForm`. phi_k is rational iff it is a multiple of 1/8: c_k is Gaussian
  rational (its parts are doubles), tan(2 pi phi_k) is then rational or infinite, and the tangent of a rational turn is
  rational only if it is 0 or +-1 (Niven 1956, corollary 3.12).
* Both rational: the sum is a fraction, and is compared with an integer.
* One rational, t != 0: the sum is irrational, no integer. (t = 0: phi_k alone decides.)
* Both irrational: the sum could be an integer only if exp(i t theta_k) were conj(c_k)/w_k, an algebraic number; for
  algebraic theta_k it never is (Lindemann 1882). For other angles that is not decided here, and D(t) = 0 would show as
  an enclosure that holds 0 after `MAX_WORKING_BITS`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from ropegeo.errors import InvalidInputError
from ropegeo.exact import ClosedForm, Enclosure, balls
from ropegeo.exact.enclosure import DOUBLE_DIGITS
from ropegeo.heads import LogitProfile

MAX_WORKING_BITS = 1 << 17
"""Where an enclosure is returned as it is: only a zero that is not decided, or a size beyond 10**9000, comes here."""
_FIRST_BITS = 128


@dataclass(eq=False)
class Rotation:
    """One active plane of a profile: t alpha + phi, as exactly as it is asked for.

    Attributes:
        angle: radians per position.
        real: real part of the coefficient, exact.
        imag: imaginary part, exact.
        alpha: angle as a fraction of a turn in [0, 1) if that is rational, else None.
        phi: the coefficient's argument as a fraction of a turn in [0, 1) if that is rational, else None.
    """

    angle: ClosedForm
    real: Fraction
    imag: Fraction
    alpha: Fraction | None = field(init=False)
    phi: Fraction | None = field(init=False)
    _turn: ClosedForm = field(init=False)
    _balls: dict[int, tuple[balls.Ball, balls.Ball, balls.Ball]] = field(init=False, default_factory=dict)
    _fixed: dict[int, tuple[int, int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._turn = self.angle / (2 * ClosedForm.pi())
        turn = self._turn.as_rational()
        self.alpha = None if turn is None else turn % 1
        self.phi = _rational_argument(self.real, self.imag)

    @property
    def size(self) -> float:
        """w = |c|, to double."""
        return math.hypot(float(self.real), float(self.imag))

    def exact_turns(self, t: int) -> Fraction | None:
        """t alpha + phi reduced to [-1/2, 1/2] where both are rational, else None."""
        if self.phi is None or (self.alpha is None and t != 0):
            return None
        turns = t * (self.alpha or Fraction(0)) + self.phi
        return turns - round(turns)

    def is_whole(self, t: int) -> bool:
        """Whether t alpha + phi is known to be an integer; see the module for what is decided."""
        return self.exact_turns(t) == 0

    def in_balls(self, bits: int) -> tuple[balls.Ball, balls.Ball, balls.Ball]:
        """alpha (or its angle's whole turns more), phi and w, each computed with `bits` bits of working precision."""
        if bits not in self._balls:
            alpha = self._turn.ball(bits)
            with balls.precision(bits):
                if self.alpha is not None:
                    alpha = balls.ball(self.alpha)
                phi = balls.argument(self.real, self.imag) / (2 * balls.pi())
                if self.phi is not None:
                    phi = balls.ball(self.phi)
                size = abs(balls.ball(self.real if self.imag == 0 else self.imag))
                if self.real and self.imag:
                    size = balls.ball(self.real**2 + self.imag**2).sqrt()
            self._balls[bits] = alpha, phi, size
        return self._balls[bits]

    def fixed(self, bits: int) -> tuple[int, int]:
        """Integers within 1 of 2**bits alpha and of 2**bits phi, both modulo 2**bits."""
        if bits not in self._fixed:
            working = 1 << (bits + 63).bit_length()
            while True:
                values = [Enclosure.of_ball(value) for value in self.in_balls(working)[:2]]
                if all((value.high - value.low) * 2 ** (bits + 2) < 1 for value in values):
                    alpha, phi = ((value.low.numerator << bits) // value.low.denominator for value in values)
                    self._fixed[bits] = alpha % (1 << bits), phi % (1 << bits)
                    break
                working *= 2
        return self._fixed[bits]


def _rational_argument(real: Fraction, imag: Fraction) -> Fraction | None:
    """arg(real + i imag)/(2 pi) in [0, 1) if it is rational, which is if it is a multiple of 1/8."""
    if real and imag and abs(real) != abs(imag):
        return None
    signs = ((real > 0) - (real < 0), (imag > 0) - (imag < 0))
    order = [(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)]
    return Fraction(order.index(signs), 8)


def rotations(profile: LogitProfile) -> tuple[Rotation, ...]:
    """The active planes of a profile, in order.

    Raises:
        InvalidInputError: no plane is active.
    """
    if not profile.active_planes:
        raise InvalidInputError("deficit: all coefficients of the profile are zero")
    return tuple(
        Rotation(
            angle=profile.spectrum.angles[plane],
            real=Fraction(float(profile.coefficients[plane].real)),
            imag=Fraction(float(profile.coefficients[plane].imag)),
        )
        for plane in profile.active_planes
    )


class ExactDeficit:
    """D(t) of one profile, in units of the profile's weight, with certified digits for t of any size.

    Balls of the angles are kept per precision, so that many displacements cost little more than their sines.

    Example:
        >>> import numpy as np
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> profile = LogitProfile(spectrum=RopeSpectrum.from_angle("1"), coefficients=np.ones(1))
        >>> ExactDeficit(profile).at(710).digits()
        '1.8173640789234051e-9'
    """

    def __init__(self, profile: LogitProfile) -> None:
        self.planes = rotations(profile)

    def is_zero(self, t: int) -> bool:
        """Whether D(t) is known to be exactly 0."""
        return all(plane.is_whole(t) for plane in self.planes)

    def at(self, t: int, digits: int = DOUBLE_DIGITS) -> Enclosure:
        """D(t) / sum_k w_k.

        Args:
            t: displacement from the profile's origin; any integer.
            digits: significant digits to prove.

        Returns:
            Exactly 0 where D(t) is known to be; else an enclosure that proves the digits. Where D(t) sits on a rounding
            boundary, so that no precision proves them, its relative width is below 10**(-2 digits - 10).
        """
        if self.is_zero(t):
            return Enclosure.exactly(0)
        bits = _FIRST_BITS
        while bits < t.bit_length() + 4 * digits + 32:
            bits *= 2
        while True:
            result = self._enclosed(t, bits)
            narrow = (result.high - result.low) * 10 ** (2 * digits + 10) < result.low
            if narrow or bits >= MAX_WORKING_BITS or result.proves(digits):
                return result
            bits *= 2

    def _enclosed(self, t: int, bits: int) -> Enclosure:
        terms = [plane.in_balls(bits) for plane in self.planes]
        with balls.precision(bits):
            total, weight, factor = balls.ball(0), balls.ball(0), balls.ball(t)
            for plane, (alpha, phi, size) in zip(self.planes, terms, strict=True):
                exact = plane.exact_turns(t)
                turns = alpha * factor + phi if exact is None else balls.ball(exact)
                sine = turns.sin_pi()
                total += size * sine * sine
                weight += size
            value = 2 * total / weight
        if not value.is_finite():
            return Enclosure(low=Fraction(0), high=Fraction(2))
        found = Enclosure.of_ball(value)
        return Enclosure(low=max(found.low, Fraction(0)), high=min(found.high, Fraction(2)))


def exact_deficit(profile: LogitProfile, t: int, digits: int = DOUBLE_DIGITS) -> Enclosure:
    """D(t) of a profile in units of its weight, certified; see `ExactDeficit`, which is faster for several t."""
    return ExactDeficit(profile).at(t, digits)

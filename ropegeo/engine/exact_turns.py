r"""Exact turns: alpha of a plane, phi of a coefficient, and whether t alpha + phi is a whole number of turns.

A plane with angle theta makes alpha = theta/(2 pi) turns a step; a coefficient c = |c| exp(2 pi i phi) adds phi turns.

* `Turn`: alpha is rational or not, decided by `ClosedForm`. If it is not, multiple * alpha + rest, both rational, is an
  integer only if alpha drops out.
* `Phase`: the parts of c are doubles, so phi is a multiple of 1/8 (one part is 0, or both have one size) or irrational.
  Proof: tan(2 pi phi) is rational or infinite, and the tangent of a rational turn is rational only if it is 0 or +-1
  (Niven 1956, corollary 3.12).
* `Rotation`: whether t alpha + phi is an integer is a matter of fractions if both are rational. If one is, and t != 0,
  the sum is irrational; t = 0 leaves phi alone. If neither is, the sum could be an integer only if exp(i t theta) were
  conj(c)/|c|, an algebraic number; for algebraic theta it never is (Lindemann 1882). For other angles nothing is known:
  `is_whole` says no, and who measures the distance to the next integer must be ready for one that stays 0.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, lru_cache

from ropegeo.errors import InvalidInputError
from ropegeo.exact import ClosedForm, balls
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum
from ropegeo.spectrum.phases import fixed_turn

_GUARD_BITS = 64


class Turn:
    """alpha of one plane: rational or not, with balls and fixed-point fractions that are computed once.

    Attributes:
        angle: radians per position.
        rational: alpha if it is rational, whole turns included, else None.
    """

    def __init__(self, angle: ClosedForm) -> None:
        """Of an angle in radians per position."""
        self.angle = angle
        self.rational = angle.rational_turn()
        self._balls: dict[int, balls.Ball] = {}
        self._fixed: dict[int, int] = {}

    def ball(self, multiple: Fraction | int, rest: Fraction | int, bits: int) -> balls.Ball:
        """multiple * alpha + rest at the working precision, `bits`; pairs of whole turns are dropped if it is rational.

        (Whole turns one by one would change the sign of sin(pi x).)
        """
        if self.rational is not None:
            return balls.ball((multiple * self.rational + rest) % 2)
        if bits not in self._balls:
            self._balls[bits] = (self.angle / (2 * ClosedForm.pi())).ball(bits)
        return balls.ball(multiple) * self._balls[bits] + balls.ball(rest)

    def is_whole(self, multiple: Fraction | int, rest: Fraction | int) -> bool:
        """Whether multiple * alpha + rest is an integer, decided exactly."""
        if self.rational is not None:
            return (multiple * self.rational + rest).denominator == 1
        return multiple == 0 and rest.denominator == 1

    def fixed(self, bits: int) -> int:
        """2**bits alpha modulo 2**bits, rounded down."""
        if bits not in self._fixed:
            self._fixed[bits] = fixed_turn(self.angle, bits)
        return self._fixed[bits]


class Phase:
    """phi of a coefficient that is not 0: an eighth of a turn times an integer, or irrational; and its size.

    Attributes:
        real: real part of the coefficient, exact.
        imag: imaginary part, exact.
        rational: phi in [0, 1) if it is rational, else None.
    """

    def __init__(self, coefficient: complex) -> None:
        """Of a pair of doubles."""
        self.real, self.imag = Fraction(coefficient.real), Fraction(coefficient.imag)
        self.rational: Fraction | None = None
        if self.real == 0 or self.imag == 0 or abs(self.real) == abs(self.imag):
            eighths = [(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)]
            self.rational = Fraction(eighths.index((_sign(self.real), _sign(self.imag))), 8)
        self._balls: dict[int, balls.Ball] = {}
        self._sizes: dict[int, balls.Ball] = {}
        self._points: dict[int, int] = {}

    def ball(self, bits: int) -> balls.Ball:
        """phi in turns, computed with `bits` bits."""
        if bits not in self._balls:
            with balls.precision(bits):
                if self.rational is not None:
                    self._balls[bits] = balls.ball(self.rational)
                else:
                    self._balls[bits] = balls.argument(self.real, self.imag) / (2 * balls.pi())
        return self._balls[bits]

    def size_ball(self, bits: int) -> balls.Ball:
        """|c|, computed with `bits` bits."""
        if bits not in self._sizes:
            with balls.precision(bits):
                if self.real and self.imag:
                    self._sizes[bits] = balls.ball(self.real**2 + self.imag**2).sqrt()
                else:
                    self._sizes[bits] = balls.ball(abs(self.real or self.imag))
        return self._sizes[bits]

    @cached_property
    def size(self) -> tuple[float, int]:
        """|c| as (mantissa, exponent), mantissa times 2**exponent: the mantissa, in [1/2, 1), to double."""
        largest = max(abs(self.real), abs(self.imag))
        power = largest.numerator.bit_length() - largest.denominator.bit_length()
        unit = Fraction(2) ** power
        mantissa, exponent = math.frexp(math.hypot(float(self.real / unit), float(self.imag / unit)))
        return mantissa, exponent + power

    def point(self, scale: int) -> int:
        """phi * scale, off by less than 1."""
        if scale not in self._points:
            if self.rational is not None:
                self._points[scale] = round(self.rational * scale)
            else:
                bits = scale.bit_length() + _GUARD_BITS
                while True:
                    low, high = balls.rational_ends(self.ball(bits))
                    if (high - low) * scale < Fraction(1, 2):
                        break
                    bits *= 2
                self._points[scale] = round((low + high) / 2 * scale)
        return self._points[scale]


class Rotation:
    """One active plane of a profile: t alpha + phi, as exactly as it is asked for.

    Attributes:
        turn: alpha.
        phase: phi.
    """

    def __init__(self, turn: Turn, coefficient: complex) -> None:
        """Of a plane's turn per position and a coefficient that is not 0."""
        self.turn = turn
        self.phase = Phase(coefficient)

    @property
    def size(self) -> float:
        """w = |c|, to double."""
        return math.hypot(float(self.phase.real), float(self.phase.imag))

    def is_whole(self, t: int) -> bool:
        """Whether t alpha + phi is known to be an integer; see the module for what is decided."""
        return self.phase.rational is not None and self.turn.is_whole(t, self.phase.rational)

    def ball(self, t: int, bits: int) -> balls.Ball:
        """t alpha + phi, but for pairs of whole turns, at the working precision, `bits`."""
        if self.phase.rational is not None:
            return self.turn.ball(t, self.phase.rational, bits)
        return self.turn.ball(t, 0, bits) + self.phase.ball(bits)

    def fixed(self, bits: int) -> tuple[int, int]:
        """Integers within 1 of 2**bits alpha and of 2**bits phi, both modulo 2**bits."""
        return self.turn.fixed(bits), self.phase.point(1 << bits) % (1 << bits)

    def fixed_at(self, t: int, bits: int) -> int:
        """An integer within |t| + 1 of 2**bits (t alpha + phi), modulo 2**bits and in [-2**(bits-1), 2**(bits-1))."""
        alpha, phi = self.fixed(bits)
        half = 1 << (bits - 1)
        return ((t * alpha + phi + half) & (2 * half - 1)) - half


@lru_cache(maxsize=4096)
def turn_of(spectrum: RopeSpectrum, plane: int) -> Turn:
    """The turn of one plane, with what was worked out of it before; spectra are told apart by identity."""
    return Turn(spectrum.angles[plane])


def rotations(profile: LogitProfile) -> tuple[Rotation, ...]:
    """The active planes of a profile, in order.

    Raises:
        InvalidInputError: no plane is active.
    """
    if not profile.active_planes:
        raise InvalidInputError("deficit: all coefficients of the profile are zero")
    return tuple(
        Rotation(turn_of(profile.spectrum, plane), complex(profile.coefficients[plane]))
        for plane in profile.active_planes
    )


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)

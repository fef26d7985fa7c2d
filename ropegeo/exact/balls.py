"""Ball arithmetic: with `lattice.py`, the one place that talks to python-flint.

A *ball* is a midpoint with a radius; every operation returns a ball that contains the exact result, so a
statement read off a ball is proved, not estimated. The working precision of FLINT is a process-wide
setting; `precision` sets it for a block and puts it back, and lets one thread at a time hold it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

from flint import arb, ctx, fmpq, fmpz

Ball = arb

MAX_FACTOR_BITS = 128
"""Integers under a root are factored into primes up to this size (fractions of a second at the limit)."""


_lock = threading.RLock()


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Run a block of ball arithmetic with `bits` bits of working precision.

    FLINT's precision is the process's, so one thread at a time holds it. (At another one's precision a ball would still
    hold its number, only with more width than was asked for.)
    """
    with _lock:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def ball(value: Fraction | int) -> Ball:
    """The ball of a rational number, at the working precision."""
    return arb(fmpq(value.numerator, value.denominator))


def pi() -> Ball:
    """The ball of pi, at the working precision."""
    return arb.pi()


def cosine(angle: Ball) -> Ball:
    """The ball of a cosine, of radians, at the working precision."""
    return angle.cos()


def sine(angle: Ball) -> Ball:
    """The ball of a sine, of radians, at the working precision."""
    return angle.sin()


def argument(real: Fraction, imag: Fraction) -> Ball:
    """The ball of the argument of a complex number that is not zero, in [-pi, pi], at the working precision."""
    return arb.atan2(ball(imag), ball(real))


def exponential(value: Ball) -> Ball:
    """The ball of e to a power, at the working precision."""
    return value.exp()


def spanning(low: Fraction, high: Fraction) -> Ball:
    """A ball that holds every number between two, at the working precision."""
    return ball(low).union(ball(high))


def prime_factors(number: int) -> list[tuple[int, int]]:
    """Prime factorisation of a positive integer, as (prime, exponent) in increasing order."""
    return [(int(prime), int(exponent)) for prime, exponent in fmpz(number).factor()]


def rational_ends(value: Ball) -> tuple[Fraction, Fraction]:
    """Both ends of a finite ball, exactly, whatever the working precision."""
    middle, radius = _dyadic(value.mid()), _dyadic(value.rad())
    return middle - radius, middle + radius


def _dyadic(point: Ball) -> Fraction:
    mantissa, exponent = point.man_exp()
    power = int(exponent)
    return Fraction(int(mantissa) << power) if power >= 0 else Fraction(int(mantissa), 1 << -power)

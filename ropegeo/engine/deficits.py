"""Deficits of a profile in doubles, to judge what a search found; `certify.py` defines and certifies them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.engine.exact_turns import Rotation
from ropegeo.errors import UnsupportedError
from ropegeo.heads import LogitProfile

UNIT = 2.0**-53
"""Relative rounding error of one double operation."""
LEAST_BUDGET = 1e-290
"""Of a search, per unit of weight and in logit units: what lies far below it is beyond doubles."""
COARSE_FROM = 1e-4
"""Deficits from here on, per unit of weight, are as good coarse as fine."""
_SMALLEST = math.ulp(0.0)
_BLOCK = 1 << 13
_FIRST_BITS = 128
_MOST_BITS = 1 << 15
_SMALL = 256


class Scaled(NamedTuple):
    """A number >= 0 of any size, mantissa times 2**exponent; ordered as numbers are.

    Attributes:
        exponent: any integer.
        mantissa: in [1/2, 1); 0 for the number 0, whose exponent is below all others.
    """

    exponent: int
    mantissa: float

    def __float__(self) -> float:
        """The double; of a number that is not 0, at least the smallest positive one."""
        if self.mantissa == 0:
            return 0.0
        return math.inf if self.exponent > 1024 else max(math.ldexp(self.mantissa, self.exponent), _SMALLEST)


ZERO = Scaled(-(1 << 62), 0.0)


def check_scale(call: str, profile: LogitProfile, budget: float) -> None:
    """Raise where doubles cannot hold a search's deficits.

    Raises:
        UnsupportedError: a budget below `LEAST_BUDGET`, or below that times the weight.
    """
    weight = profile.weight
    if budget < LEAST_BUDGET * max(weight, 1.0):
        raise UnsupportedError(f"{call}: budget {budget:g} for a profile of weight {weight:g} is beyond doubles")


def coarse_deficits(profile: LogitProfile, displacements: IntArray) -> FloatArray:
    """D(t) in logit units for many |t| < 2**62; absolute error below 2 `LOGIT_ERROR` times the weight W.

    And relative error below 1e-12 where D >= `COARSE_FROM` W, for a weight that `check_scale` lets pass.

    Proof. With u = 2**-53, the turn t alpha_k + phi_k is off by delta <= 4u: u in t alpha_k, u in its product with
    2 pi, u in arg(c_k), 2u/3 in the sum. So D is off by no more than a sqrt(D) + b D + a**2/4 (`pruned.py`,
    "Rounding"), with a = 2 pi delta sqrt(2 W) < 4e-15 sqrt(W) and b < 50u < 6e-15 for the sine, the products and a sum
    in 24 levels: in all below 2e-14 W as D <= 2 W, and for D >= 1e-4 W below (4e-13 + 6e-15) D.
    """
    active = np.array(profile.active_planes)
    sizes, arguments = np.abs(profile.coefficients[active]), np.angle(profile.coefficients[active])
    result = np.empty(len(displacements))
    for start in range(0, len(displacements), _BLOCK):
        phases = profile.spectrum.phases(displacements[start : start + _BLOCK])[:, active]
        sines = np.sin((phases + arguments) / 2)
        result[start : start + _BLOCK] = (2 * sizes * sines**2).sum(axis=-1)
    return result


def fine_deficits(planes: tuple[Rotation, ...], displacements: Sequence[int]) -> list[float]:
    """D(t) in logit units for t of any size, to a relative error below 1e-12 where doubles go so far.

    0.0 only where D is known to be 0; a smaller D than any double is shown as the smallest positive one.
    """
    return [float(value) for value in scaled_deficits(planes, displacements)]


def scaled_deficits(planes: tuple[Rotation, ...], displacements: Sequence[int]) -> list[Scaled]:
    """D(t) in logit units for t and weights of any size, to a relative error below 1e-12; 0 where D is known to be 0.

    Proof. t alpha + phi is formed in integers modulo 2**bits; alpha and phi are off by one unit each, so the distance
    x_k to the nearest integer by at most e = (|t| + 1) 2**-bits <= 2**(bit_length(t) - bits). Let M = max |x_k|
    sqrt(w_k), of the x_k that were formed. D is the squared length of the vector with entries sqrt(2 w_k) sin(pi x_k),
    which is at least 2 sqrt(2) M, since sin(pi x) >= 2x. Its entries are off by at most sqrt(2 w_k) pi e, and bits grow
    until e sqrt(w_k) <= 2**-60 M: the length is off by a relative sqrt(planes) 2**-59, D by twice that, below 1e-15 for
    4096 planes. M is read off the exponent of the largest term, 2 w sin(pi x)^2 < 20 w x^2. Mantissas lose a few units
    of 2**-53 to |c|, x, pi x, the sine and its square; the terms are not negative, so nothing cancels.

    Where D is a zero that is not decided, bits end at `_MOST_BITS` or four times those of t, and e stands for x_k.
    """
    sizes = [plane.phase.size for plane in planes]
    fixed: dict[int, list[tuple[int, int]]] = {}
    found = []
    for t in displacements:
        if all(plane.is_whole(t) for plane in planes):
            found.append(ZERO)
            continue
        bits = _FIRST_BITS
        while bits < t.bit_length() + 96:
            bits *= 2
        most, deficit = max(_MOST_BITS, 4 * bits), None
        while deficit is None:
            if bits not in fixed:
                fixed[bits] = [plane.fixed(bits) for plane in planes]
            deficit = _deficit(fixed[bits], sizes, t, bits, last=bits >= most)
            bits *= 2
        found.append(deficit)
    return found


def _deficit(
    fixed: list[tuple[int, int]], sizes: list[tuple[float, int]], t: int, bits: int, *, last: bool
) -> Scaled | None:
    """D(t) from turns of so many bits, or None if they do not suffice; the best that can be said the last time."""
    half = 1 << (bits - 1)
    mask = 2 * half - 1
    terms: list[tuple[int, float]] = [ZERO]
    for (alpha, phi), (size, power) in zip(fixed, sizes, strict=True):
        part = abs(((t * alpha + phi + half) & mask) - half)
        if not part:
            continue
        length = part.bit_length()
        x, away = part / (1 << length), length - bits  # the distance is x 2**away, x in [1/2, 1]
        if away > -_SMALL:
            sine, away = math.sin(math.pi * math.ldexp(x, away)), 0
        else:  # sin(y) = y (1 - y**2/6 ..)
            sine = math.pi * x
        mantissa, more = math.frexp(2 * size * sine * sine)
        terms.append((power + 2 * away + more, mantissa))
    top, blur = max(terms)[0], 2 * (t.bit_length() - bits) + max(power for _, power in sizes)
    if blur > top - 6 - 120:
        return Scaled(max(top, blur + 6), 0.5) if last else None
    mantissa, more = math.frexp(math.fsum(math.ldexp(mantissa, power - top) for power, mantissa in terms))
    return Scaled(top + more, mantissa)

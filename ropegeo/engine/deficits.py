"""Deficits of a profile in doubles, to judge what a search found; `certify.py` defines and certifies them."""

from __future__ import annotations

import math

import numpy as np

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.engine.certify import Rotation
from ropegeo.heads import LogitProfile

_BLOCK = 1 << 13


def coarse_deficits(profile: LogitProfile, displacements: IntArray) -> FloatArray:
    """D(t) in logit units for many |t| < 2**62; absolute error below 2 `LOGIT_ERROR` times the weight.

    That of a gap (`LOGIT_ERROR`), plus what the rounding of arg(c_k) and of its sum with the phase add: pi u each.
    """
    active = np.array(profile.active_planes)
    sizes, arguments = np.abs(profile.coefficients[active]), np.angle(profile.coefficients[active])
    result = np.empty(len(displacements))
    for start in range(0, len(displacements), _BLOCK):
        phases = profile.spectrum.phases(displacements[start : start + _BLOCK])[:, active]
        sines = np.sin((phases + arguments) / 2)
        result[start : start + _BLOCK] = (2 * sizes * sines**2).sum(axis=-1)
    return result


def fine_deficits(planes: tuple[Rotation, ...], displacements: list[int]) -> list[float]:
    """D(t) in logit units for t of any size, to a relative error below 1e-12; exactly 0.0 where D is known to be 0.

    Proof. t alpha + phi is formed in integers modulo 2**bits; alpha and phi are off by one unit each, so the distance
    x_k to the nearest integer by at most e = (|t| + 1) 2**-bits. Let M = max |x_k| sqrt(w_k). D is the squared length
    of the vector with entries sqrt(2 w_k) sin(pi x_k), which is at least 2 sqrt(2) M, since sin(pi x) >= 2x. Its
    entries are off by at most sqrt(2 w_k) pi e, and bits grows until e sqrt(w_k) <= 2**-60 M: the length is off by a
    relative sqrt(planes) 2**-59, D by twice that, below 1e-15 for 4096 planes. The conversion, pi x, the sine and its
    square add a few units of 2**-53; the terms are not negative, so nothing cancels. (A zero that `certify` does not
    decide ends at 2**15 bits.)
    """
    sizes = [plane.size for plane in planes]
    return [_fine_deficit(planes, sizes, t) for t in displacements]


def _fine_deficit(planes: tuple[Rotation, ...], sizes: list[float], t: int) -> float:
    if all(plane.is_whole(t) for plane in planes):
        return 0.0
    bits = 128
    while bits < t.bit_length() + 96:
        bits *= 2
    while True:
        turns = []
        for plane in planes:
            exact = plane.exact_turns(t)
            if exact is None:
                alpha, phi = plane.fixed(bits)
                part = (t * alpha + phi) & ((1 << bits) - 1)
                turns.append((part - (1 << bits) if part >> (bits - 1) else part) / (1 << bits))
            else:
                turns.append(float(exact))
        largest = max(abs(x) * math.sqrt(size) for x, size in zip(turns, sizes, strict=True))
        unit = math.ldexp(abs(t) + 1, -bits)
        if unit * math.sqrt(max(sizes)) <= 2.0**-60 * largest or bits >= 1 << 15:
            return math.fsum(2 * size * math.sin(math.pi * x) ** 2 for x, size in zip(turns, sizes, strict=True))
        bits *= 2

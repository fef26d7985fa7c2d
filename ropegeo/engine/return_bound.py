"""A certified upper bound on the smallest deficit of a range, where neither streaming nor a search can go."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ropegeo._arrays import FloatArray
from ropegeo.engine.certify import ExactDeficit
from ropegeo.engine.deficits import Scaled, check_scale, scaled_deficits
from ropegeo.engine.exact_turns import Rotation, rotations
from ropegeo.engine.lattice import check_range, search_lattice
from ropegeo.engine.return_lattice import RangeLattice, chosen_lattice, triangular
from ropegeo.errors import UnsupportedError
from ropegeo.exact import Enclosure
from ropegeo.exact.enclosure import DOUBLE_DIGITS
from ropegeo.exact.lattice import reduced_basis
from ropegeo.heads import LogitProfile

MOST_TRIES = 8
_WORK = 1 << 14
"""Planes times bits of the reach up to which all tries are made; each time as many again take one off, down to two."""
_BEST = 8
_AFFORDABLE = 10_000
_LINEAR = 30
"""Turns below 2**-30 are scaled up to that before they are compared: there sin(pi x) is pi x for doubles."""


@dataclass(frozen=True, kw_only=True)
class ReturnBound:
    """An upper bound on the smallest deficit of a range: the deficit of one displacement in it.

    Attributes:
        displacement: the t.
        deficit: D(t) in units of the profile's weight, certified.
    """

    displacement: int
    deficit: Enclosure


def return_bound(
    profile: LogitProfile, reach: int, *, low: int = 1, digits: int = DOUBLE_DIGITS, tries: int | None = None
) -> ReturnBound:
    """A certified upper bound on min D(t) over low <= t <= reach, for many planes and any reach.

    The deficit of any t is such a bound; good ones come from short vectors of the lattice of all active planes, reduced
    with several weights on the range, and their sums and differences; for a profile with phases from the vectors near
    its constant. The weights start at 1/2 and fall to where turns and range weigh alike in the best t found, then by
    halves of an octave; each lattice is reduced from the one before. Where the search for anything better is short, it
    is made. How far the bound lies above the minimum is not known otherwise.

    Args:
        profile: any profile.
        reach: last displacement, of any size.
        low: first displacement.
        digits: to prove of D(t).
        tries: how many weights on the range are tried; each reduces a lattice. If not given, `MOST_TRIES`, fewer for
            many planes and large reaches: a second for 64 planes and 10**100, ten for 10**400.

    Raises:
        InvalidInputError: an empty range or a profile without active planes.
    """
    check_range("return_bound", low, reach)
    planes = rotations(profile)
    even = profile.is_peaked
    if even and low <= 0 <= reach:
        return ReturnBound(displacement=0, deficit=Enclosure.exactly(0))
    if tries is None:
        tries = max(2, MOST_TRIES - len(planes) * reach.bit_length() // _WORK)
    nearest = min(max(low, 0), reach)  # next to 0: for many planes t = 1 is often the best of all
    candidates = {low, reach, *range(nearest, min(nearest + 1024, reach) + 1)}
    candidates |= _short_displacements(planes, low, reach, tries, even=even and 0 < 2 * low <= reach)
    best, value = _least(planes, sorted(candidates))
    for part in (1.0, 0.25, 2.0**-4, 2.0**-6, 2.0**-8):  # few planes: a short search for something better still
        budget = part * float(value)
        with suppress(UnsupportedError):
            check_scale("return_bound", profile, budget)
            if chosen_lattice(planes, low, reach, budget).nodes < _AFFORDABLE:
                found = search_lattice(profile, planes, low, reach, budget, 10 * _AFFORDABLE)
                best, value = _least(planes, [best, *found.displacements])
                break
    return ReturnBound(displacement=best, deficit=ExactDeficit(profile).at(best, digits))


def _least(planes: tuple[Rotation, ...], displacements: list[int]) -> tuple[int, Scaled]:
    """The displacement with the smallest deficit, the first of several, and that deficit."""
    value, place = min((value, place) for place, value in enumerate(scaled_deficits(planes, displacements)))
    return displacements[place], value


def _short_displacements(planes: tuple[Rotation, ...], low: int, high: int, tries: int, *, even: bool) -> set[int]:
    """The best few t of the range among short lattice vectors, their sums and differences, about the constant."""
    top = max(plane.phase.size[1] for plane in planes)
    sizes = np.array([math.ldexp(size, power - top) for size, power in (plane.phase.size for plane in planes)])
    sizes /= sizes.sum()
    scales = [Fraction(scale) for scale in np.sqrt(sizes).tolist()]
    transform = np.eye(len(planes) + 1, dtype=int).tolist()
    octaves, found = Fraction(1), set[int]()
    for _ in range(tries):
        weight = Fraction(2.0 ** -float(octaves % 1) / math.sqrt(len(planes))) / (1 << int(octaves))
        shaped = RangeLattice.of(planes, scales, weight, -high if even else low, high)
        basis = reduced_basis(shaped.combined(transform))
        transform = shaped.coordinates(basis)
        start = 0 if even else triangular(basis, shaped, 1.0).start
        kept, turns = _best(planes, shaped, basis, start, sizes, low, high, even=even)
        found.update(kept)
        octaves = max(octaves + Fraction(1, 2), Fraction(round(-2 * turns), 2) - 1)
    return found


def _best(
    planes: tuple[Rotation, ...],
    shaped: RangeLattice,
    basis: list[list[int]],
    start: int,
    sizes: FloatArray,
    low: int,
    high: int,
    *,
    even: bool,
) -> tuple[list[int], float]:
    """The best few t of the range among start, a basis vector or two on; and the mean turn of the best, in octaves."""
    heights = shaped.heights
    largest = max(abs(x).bit_length() - h.bit_length() for row in basis for x, h in zip(row[1:], heights, strict=True))
    lift = max(0, -_LINEAR - largest)
    bits = shaped.unit + start.bit_length() + lift + 64
    begin = [0] * len(planes) if even else [plane.fixed_at(start, bits) for plane in planes]
    first = np.array([(part << lift) / (1 << bits) for part in begin])
    steps = [row[0] // shaped.range_height for row in basis]
    signed = [0, *steps, *(-step for step in steps)]
    forward = np.array([[(x << lift) / h for x, h in zip(row[1:], heights, strict=True)] for row in basis])
    turned = np.concatenate([np.zeros((1, len(planes))), forward, -forward])
    deficits = (sizes * np.sin(np.pi * (first + turned[:, None] + turned[None, :])) ** 2).sum(axis=-1)
    kept: list[int] = []
    least = 1.0
    for place in np.argsort(deficits, axis=None).tolist():
        t = start + signed[place // len(signed)] + signed[place % len(signed)]
        t = -t if even and t < 0 else t
        if low <= t <= high:
            least = least if kept else float(deficits.flat[place])
            kept.append(t)
            if len(kept) == _BEST:
                break
    return kept, math.log2(max(least, 2.0**-1000)) / 2 - math.log2(math.pi) - lift

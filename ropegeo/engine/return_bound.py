"""A certified upper bound on the smallest deficit of a range, where neither streaming nor a search can go."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ropegeo.engine.certify import ExactDeficit, Rotation
from ropegeo.engine.deficits import fine_deficits
from ropegeo.engine.lattice import checked_planes, search_lattice
from ropegeo.engine.return_lattice import chosen_lattice, shifted, triangular
from ropegeo.errors import UnsupportedError
from ropegeo.exact import Enclosure
from ropegeo.exact.enclosure import DOUBLE_DIGITS
from ropegeo.exact.lattice import reduced_basis
from ropegeo.heads import LogitProfile

_BEST = 8
_AFFORDABLE = 10_000


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
    profile: LogitProfile, reach: int, *, low: int = 1, digits: int = DOUBLE_DIGITS, tries: int = 8
) -> ReturnBound:
    """A certified upper bound on min D(t) over low <= t <= reach, for many planes and any reach.

    The deficit of any t is such a bound; good ones come from short vectors of the lattice of all active planes, reduced
    with several weights on the range, and their sums and differences; for a profile with phases from the vectors near
    its constant. Where the search for anything better is short, it is made. How far the bound lies above the minimum is
    not known otherwise.

    Args:
        profile: any profile.
        reach: last displacement, of any size.
        low: first displacement.
        digits: to prove of D(t).
        tries: how many weights on the range are tried; each reduces a lattice (a second for 64 planes and 10**100).

    Raises:
        InvalidInputError: an empty range or a profile without active planes.
    """
    planes = checked_planes(profile, low, reach, 1.0)
    even = profile.is_peaked
    if even and low <= 0 <= reach:
        return ReturnBound(displacement=0, deficit=Enclosure.exactly(0))
    nearest = min(max(low, 0), reach)  # next to 0: for many planes t = 1 is often the best of all
    candidates = {low, reach, *range(nearest, min(nearest + 1024, reach) + 1)}
    for k in range(tries):
        candidates |= set(_short_displacements(planes, low, reach, 2.0 ** (-k / 2 - 1), even=even))
    best, value = _least(planes, sorted(candidates))
    for part in (1.0, 0.25, 2.0**-4, 2.0**-6, 2.0**-8):  # few planes: a short search for something better still
        if value > 0 and chosen_lattice(planes, low, reach, part * value).nodes < _AFFORDABLE:
            with suppress(UnsupportedError):
                found = search_lattice(profile, planes, low, reach, part * value, 10 * _AFFORDABLE)
                best, value = _least(planes, [best, *found.displacements])
            break
    return ReturnBound(displacement=best, deficit=ExactDeficit(profile).at(best, digits))


def _least(planes: tuple[Rotation, ...], displacements: list[int]) -> tuple[int, float]:
    """The displacement with the smallest deficit, the first of several, and that deficit in doubles."""
    values = fine_deficits(planes, displacements)
    place = int(np.argmin(values))
    return displacements[place], values[place]


def _short_displacements(planes: tuple[Rotation, ...], low: int, high: int, weight: float, *, even: bool) -> list[int]:
    """The best few t of the range among short lattice vectors, their sums and differences, about the constant."""
    sizes = np.array([plane.size for plane in planes])
    largest = max(abs(low), abs(high), 1)
    unit = largest.bit_length() + 30
    half = Fraction(largest) if even else max(Fraction(high - low, 2), Fraction(1, 2))
    heights = [max(1, round(Fraction(scale) * 2**unit)) for scale in np.sqrt(sizes / sizes.sum()).tolist()]
    range_height = max(1, round(Fraction(weight / math.sqrt(len(planes))) * 2**unit / half))
    bits = unit + largest.bit_length() + 64
    fixed = [plane.fixed(bits) for plane in planes]
    rows = [[range_height, *(shifted(h * alpha, bits) for h, (alpha, _) in zip(heights, fixed, strict=True))]]
    for k, height in enumerate(heights):
        rows.append([0] * (len(planes) + 1))
        rows[-1][k + 1] = height
    basis = reduced_basis(rows)
    start, steps = 0, [row[0] // range_height for row in basis]
    if not even:
        constant = [shifted(h * phi, bits) for h, (_, phi) in zip(heights, fixed, strict=True)]
        constant.insert(0, round(-range_height * Fraction(low + high, 2)))
        start = triangular(basis, constant, unit, range_height, 1.0).start
    signed = [0, *steps, *(-step for step in steps)]
    turned = np.array([[t * alpha % (1 << bits) / (1 << bits) for alpha, _ in fixed] for t in signed])
    first = np.array([(start * alpha + phi) % (1 << bits) / (1 << bits) for alpha, phi in fixed])
    deficits = (sizes * np.sin(np.pi * (first + turned[:, None] + turned[None, :])) ** 2).sum(axis=-1)
    kept: list[int] = []
    for place in np.argsort(deficits, axis=None).tolist():
        t = start + signed[place // len(signed)] + signed[place % len(signed)]
        t = -t if even and t < 0 else t
        if low <= t <= high:
            kept.append(t)
            if len(kept) == _BEST:
                break
    return kept

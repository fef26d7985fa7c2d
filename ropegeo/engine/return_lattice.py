"""The lattice whose points in a ball hold the near returns of a range; `lattice.py` has the claim and its proof."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.engine.certify import Rotation
from ropegeo.engine.lattice_kernels import ball_points
from ropegeo.errors import UnsupportedError
from ropegeo.exact import short
from ropegeo.exact.lattice import reduced_basis

MAX_LEAVES = 4_000_000
"""Lattice points in the ball, which are stored: below a gigabyte."""
MAX_PLANES = 20
SLACK = 1e-9
"""Of the radius, relative: what the rounding of the basis, the scales and the budget can move a point by."""
_CHEAP = 5000.0
_UNIT = 2.0**-53


@dataclass(eq=False, kw_only=True)
class ReturnLattice:
    """A reduced basis, the constant next to the origin, and their triangular form.

    Attributes:
        steps: the t of each basis vector.
        start: the t of the constant.
        upper: R of the QR form, diagonal positive, one column per basis vector.
        constant: the constant in the same coordinates.
        radius: of the ball, slack included.
        nodes: estimated size of the search tree.
    """

    steps: list[int]
    start: int
    upper: FloatArray
    constant: FloatArray
    radius: float
    nodes: float

    def displacements(self, low: int, high: int, max_nodes: int) -> tuple[list[int], int]:
        """The t of every lattice point in the ball that lie in the range, increasing, and the nodes visited.

        Raises:
            UnsupportedError: too many of them.
        """
        size = len(self.steps)
        capacity = 1 << 10
        while True:
            points = np.empty((capacity, size), dtype=np.int64)
            count, nodes = ball_points(self.upper, self.constant, self.radius**2, max_nodes, points)
            if nodes > max_nodes or count > MAX_LEAVES:
                raise UnsupportedError(
                    f"near_returns: the search of {short(low)}..{short(high)} passes its limit of {max_nodes} nodes or "
                    f"{MAX_LEAVES} points; about {self.nodes:.1e} nodes are expected"
                )
            if count <= capacity:
                break
            capacity = count
        return _combined(points[:count], self.steps, self.start, low, high, self.radius), nodes


def _combined(points: IntArray, steps: list[int], start: int, low: int, high: int, radius: float) -> list[int]:
    """start + points . steps where that lies in the range, increasing, each once."""
    if max(abs(low), abs(high)) < 1 << 57 and radius < 2:
        # Modulo 2**64. The range term bounds |t - m| by radius h sqrt(F), so |t| < 2**61 and nothing wraps.
        words = np.array([step % (1 << 64) for step in steps], dtype=np.uint64)
        t = (points.view(np.uint64) * words).sum(axis=1, dtype=np.uint64) + np.uint64(start % (1 << 64))
        inside = np.unique(t.view(np.int64))
        listed: list[int] = inside[(inside >= low) & (inside <= high)].tolist()
        return listed
    exact = {start + sum(z * step for z, step in zip(row, steps, strict=True)) for row in points.tolist()}
    return sorted(t for t in exact if low <= t <= high)


def chosen_lattice(planes: tuple[Rotation, ...], low: int, high: int, budget: float) -> ReturnLattice:
    """The lattice of as many planes as make the estimated search smallest."""
    # No deficit reaches 3 weights, so a larger budget asks the same. A plane with a term below 1e-9 of it excludes
    # nothing.
    sizes = [plane.size for plane in planes]
    budget = min(budget, 3 * math.fsum(sizes))
    planes = tuple(plane for plane, size in zip(planes, sizes, strict=True) if size > 1e-9 * budget)
    scales = [_scale(plane, budget) for plane in planes]
    length = high - low
    thinning = []
    for plane, scale in zip(planes, scales, strict=True):
        turns = plane.fixed(64)[0] / 2**64
        thinning.append(scale * min(1.0, min(turns, 1 - turns) * length))
    order = sorted(range(len(planes)), key=lambda k: -thinning[k])
    best: ReturnLattice | None = None
    worse = 0
    for count in range(1, min(len(planes), MAX_PLANES) + 1):
        kept = order[:count]
        tried = _lattice([planes[k] for k in kept], [scales[k] for k in kept], low, high)
        if best is None or tried.nodes < best.nodes:
            best, worse = tried, 0
        else:
            worse += 1
        if best.nodes < _CHEAP or worse > 3:
            break
    assert best is not None  # noqa: S101 - there is at least one plane
    return best


def _scale(plane: Rotation, budget: float) -> float:
    """sqrt(kappa w / budget) = sqrt(m w / budget) / xmax, with m = min(2, budget/w)."""
    ratio = min(2.0, budget / plane.size)
    return math.sqrt(ratio * (plane.size / budget)) * math.pi / math.asin(math.sqrt(ratio / 2))


def _lattice(planes: list[Rotation], scales: list[float], low: int, high: int) -> ReturnLattice:
    count = len(planes)
    largest = max(abs(low), abs(high), 1)
    unit = largest.bit_length() + 46
    bits = unit + largest.bit_length() + max(0, math.frexp(max(scales))[1]) + 8
    half = max(Fraction(high - low, 2), Fraction(1, 2))
    heights = [round(Fraction(scale) * 2**unit) for scale in scales]
    range_height = round(Fraction(1 / math.sqrt(count)) * 2**unit / half)
    fixed = [plane.fixed(bits) for plane in planes]
    rows = [[range_height, *(shifted(h * alpha, bits) for h, (alpha, _) in zip(heights, fixed, strict=True))]]
    for k, height in enumerate(heights):
        rows.append([0] * (count + 1))
        rows[-1][k + 1] = height
    constant = [shifted(h * phi, bits) for h, (_, phi) in zip(heights, fixed, strict=True)]
    constant.insert(0, round(-range_height * Fraction(low + high, 2)))
    return triangular(reduced_basis(rows), constant, unit, range_height, _radius(count))


def shifted(value: int, bits: int) -> int:
    """value / 2**bits, rounded to an integer."""
    return (value + (1 << (bits - 1))) >> bits


def _radius(count: int) -> float:
    return math.sqrt(1 + 1 / count)


def triangular(
    basis: list[list[int]], constant: list[int], unit: int, range_height: int, radius: float
) -> ReturnLattice:
    """The constant moved next to the origin by a lattice vector, the QR form, the radius with its slack."""
    size = len(basis)
    steps = [row[0] // range_height for row in basis]  # exact: only the row of t has a first coordinate
    start, constant = 0, list(constant)
    scale = 1 << unit
    columns = np.array([[entry / scale for entry in row] for row in basis]).T
    lengths = np.linalg.norm(columns, axis=0)
    inverse = np.linalg.inv(columns / lengths) / lengths[:, None]
    for _ in range(64):
        nearest = np.rint(inverse @ np.array([entry / scale for entry in constant]))
        if not nearest.any():
            break
        for z, row, step in zip(nearest.tolist(), basis, steps, strict=True):
            start -= int(z) * step
            constant = [a - int(z) * b for a, b in zip(constant, row, strict=True)]
    moved = np.array([entry / scale for entry in constant])
    upper = np.linalg.qr(np.column_stack([columns, moved])).R
    upper = upper * np.where(np.diag(upper) < 0, -1.0, 1.0)[:, None]
    reach = 2 * (radius * np.linalg.norm(inverse, axis=1) + np.abs(inverse @ moved))
    loss = (20 * size**2 + 100) * _UNIT * (float(reach @ lengths) + float(np.linalg.norm(moved)))
    radius = radius * (1 + SLACK) + loss
    diagonal = np.diag(upper[:, :size])
    sound = bool(np.isfinite(upper).all() and (diagonal > 0).all() and reach.max() < 2.0**50)
    return ReturnLattice(
        steps=steps,
        start=start,
        upper=np.ascontiguousarray(upper[:, :size]),
        constant=np.ascontiguousarray(upper[:, size]),
        radius=radius,
        nodes=_heuristic_nodes(diagonal, radius) if sound else math.inf,
    )


def _heuristic_nodes(diagonal: FloatArray, radius: float) -> float:
    """sum over levels of (volume of a ball) / (covolume of the lattice projected there), plus one node a level."""
    size = len(diagonal)
    total, log_covolume = 0.0, 0.0
    for level in range(1, size + 1):
        log_covolume += math.log(diagonal[size - level])
        log_volume = level / 2 * math.log(math.pi) - math.lgamma(level / 2 + 1) + level * math.log(radius)
        total += 1 + math.exp(min(700.0, log_volume - log_covolume))
    return total

"""The lattice whose points in a ball hold the near returns of a range; `lattice.py` has the claim and its proof."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.engine.deficits import UNIT
from ropegeo.engine.exact_turns import Rotation
from ropegeo.engine.lattice_kernels import ball_points
from ropegeo.errors import UnsupportedError
from ropegeo.exact import short
from ropegeo.exact.lattice import reduced_basis

MAX_LEAVES = 4_000_000
"""Lattice points in the ball, which are stored: below a gigabyte."""
MAX_PLANES = 20
SLACK = 1e-9
"""Of the radius, relative: what the rounding of the basis, the scales and the budget can move a point by."""
HOPELESS = 1e15
"""Points in the ball from which on a lattice is not even reduced, unless none has fewer."""
_CHEAP = 5000.0
_ROUND_BITS = 40
_DOUBLE_BITS = 500
"""Vectors longer than 2**this or shorter than its reciprocal are not handed to doubles, which take their squares."""


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
    thinning = [scale * _turned(plane, high - low) for plane, scale in zip(planes, scales, strict=True)]
    order = sorted(range(len(planes)), key=lambda k: -thinning[k])[:MAX_PLANES]
    expected = [_log_points([scales[k] for k in order[:count]], low, high) for count in range(1, len(order) + 1)]
    enough = max(min(expected), math.log(HOPELESS))
    best: ReturnLattice | None = None
    worse = 0
    for count, points in enumerate(expected, 1):
        if points > enough:
            continue
        kept = order[:count]
        tried = _lattice([planes[k] for k in kept], [scales[k] for k in kept], low, high)
        if best is None or tried.nodes < best.nodes:
            best, worse = tried, 0
        else:
            worse += 1
        if best.nodes < _CHEAP or worse > 3:
            break
    assert best is not None  # noqa: S101 - at least one is within `enough`
    return best


def _turned(plane: Rotation, length: int) -> float:
    """How many turns a plane makes over a length, 1.0 if more than one."""
    bits = 64 + length.bit_length()
    step = plane.turn.fixed(bits)
    turned = min(step, (1 << bits) - step) * length
    return 1.0 if turned >> bits else turned / (1 << bits)


def _log_points(scales: list[float], low: int, high: int) -> float:
    """Logarithm of the expected number of points in the ball: its volume over the covolume of the lattice."""
    count = len(scales)
    log_half = math.log(max(high - low, 1)) - math.log(2)
    log_covolume = math.fsum(map(math.log, scales)) - math.log(count) / 2 - log_half
    return _log_ball(count + 1, _radius(count)) - log_covolume


def _log_ball(size: int, radius: float) -> float:
    """Logarithm of the volume of a ball."""
    return size / 2 * math.log(math.pi) - math.lgamma(size / 2 + 1) + size * math.log(radius)


def _scale(plane: Rotation, budget: float) -> float:
    """sqrt(kappa w / budget) = sqrt(m w / budget) / xmax, with m = min(2, budget/w)."""
    ratio = min(2.0, budget / plane.size)
    return math.sqrt(ratio * (plane.size / budget)) * math.pi / math.asin(math.sqrt(ratio / 2))


def _lattice(planes: list[Rotation], scales: list[float], low: int, high: int) -> ReturnLattice:
    count = len(planes)
    shaped = RangeLattice.of(planes, [Fraction(scale) for scale in scales], Fraction(1 / math.sqrt(count)), low, high)
    return triangular(reduced_basis(shaped.rows), shaped, _radius(count))


@dataclass(frozen=True, kw_only=True)
class RangeLattice:
    """The lattice of a range in integers: a row that carries t, one for the whole turns of each plane, a constant.

    Attributes:
        rows: range term first, then one coordinate per plane.
        constant: the point of `middle`.
        unit: what 1 is in these integers, as a power of two.
        range_height: first coordinate of a step of t.
        middle: displacement from which t is counted.
    """

    rows: list[list[int]]
    constant: list[int]
    unit: int
    range_height: int
    middle: int

    @classmethod
    def of(
        cls, planes: Sequence[Rotation], scales: Sequence[Fraction], weight: Fraction, low: int, high: int
    ) -> RangeLattice:
        """Coordinates scale * x_k of each plane and weight * (t - m)/h, for low <= t <= high; m and h see `lattice.py`.

        Sizes: a coordinate is right to 2**-46 of a unit for every t of the range.
        """
        middle, half = (low + high) // 2, max(Fraction(high - low, 2), Fraction(1, 2))
        unit = math.ceil(half).bit_length() + 46 + max(0, _log2(1 / weight))
        bits = unit + max(abs(low), abs(high), 1).bit_length() + max(0, _log2(max(scales))) + 8
        heights = [max(1, round(scale * 2**unit)) for scale in scales]
        range_height = round(weight * 2**unit / half)
        rows = [
            [
                range_height,
                *(shifted(h * plane.turn.fixed(bits), bits) for h, plane in zip(heights, planes, strict=True)),
            ]
        ]
        for k, height in enumerate(heights):
            rows.append([0] * (len(planes) + 1))
            rows[-1][k + 1] = height
        constant = [shifted(h * plane.fixed_at(middle, bits), bits) for h, plane in zip(heights, planes, strict=True)]
        constant.insert(0, round(range_height * (middle - Fraction(low + high, 2))))
        return cls(rows=rows, constant=constant, unit=unit, range_height=range_height, middle=middle)

    @property
    def heights(self) -> list[int]:
        """What a whole turn of each plane is in these integers."""
        return [row[k] for k, row in enumerate(self.rows[1:], 1)]

    def combined(self, coordinates: list[list[int]]) -> list[list[int]]:
        """The vectors with these coordinates in the rows."""
        step, heights = self.rows[0], self.heights
        return [
            [t * step[0], *(t * along + p * height for along, p, height in zip(step[1:], turns, heights, strict=True))]
            for t, *turns in coordinates
        ]

    def coordinates(self, vectors: list[list[int]]) -> list[list[int]]:
        """The coordinates of vectors of the lattice: t and a number of whole turns per plane."""
        step, heights = self.rows[0], self.heights
        steps = [vector[0] // step[0] for vector in vectors]
        return [
            [t, *((x - t * along) // height for x, along, height in zip(vector[1:], step[1:], heights, strict=True))]
            for t, vector in zip(steps, vectors, strict=True)
        ]


def _log2(value: Fraction) -> int:
    """An integer above the logarithm, by less than 2."""
    return value.numerator.bit_length() - value.denominator.bit_length() + 1


def shifted(value: int, bits: int) -> int:
    """value / 2**bits, rounded to an integer."""
    return (value + (1 << (bits - 1))) >> bits


def _radius(count: int) -> float:
    return math.sqrt(1 + 1 / count)


def triangular(basis: list[list[int]], lattice: RangeLattice, radius: float) -> ReturnLattice:
    """The constant moved next to the origin by a lattice vector, the QR form, the radius with its slack."""
    size, unit = len(basis), lattice.unit
    steps = [row[0] // lattice.range_height for row in basis]  # exact: only the row of t has a first coordinate
    powers = [_bits(row) for row in basis]
    columns = np.array([[entry / (1 << power) for entry in row] for row, power in zip(basis, powers, strict=True)]).T
    taken, constant = _moved(lattice.constant, basis, np.linalg.inv(columns), powers)
    start = lattice.middle - sum(z * step for z, step in zip(taken, steps, strict=True))
    if max(abs(power - unit) for power in powers) > _DOUBLE_BITS:
        return ReturnLattice(
            steps=steps, start=start, upper=np.eye(size), constant=np.zeros(size), radius=radius, nodes=math.inf
        )
    columns = columns * np.array([math.ldexp(1.0, power - unit) for power in powers])
    lengths = np.linalg.norm(columns, axis=0)
    inverse = np.linalg.inv(columns / lengths) / lengths[:, None]
    scale = 1 << unit
    moved = np.array([entry / scale for entry in constant])
    upper = np.linalg.qr(np.column_stack([columns, moved])).R
    upper = upper * np.where(np.diag(upper) < 0, -1.0, 1.0)[:, None]
    reach = 2 * (radius * np.linalg.norm(inverse, axis=1) + np.abs(inverse @ moved))
    loss = (20 * size**2 + 100) * UNIT * (float(reach @ lengths) + float(np.linalg.norm(moved)))
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


def _moved(
    constant: list[int], basis: list[list[int]], inverse: FloatArray, powers: list[int]
) -> tuple[list[int], list[int]]:
    """The constant less multiples of the basis vectors, next to the origin: the multiples, and what is left.

    Each round takes away all but a small part, `_ROUND_BITS` at most; `inverse` is that of the vectors over 2**powers.
    """
    taken = [0] * len(basis)
    for _ in range(64 + _bits(constant) // 16):
        power = _bits(constant)
        parts = (inverse @ np.array([entry / (1 << power) for entry in constant])).tolist()
        nearest = []
        for part, own in zip(parts, powers, strict=True):
            more = max(0, power - own - _ROUND_BITS)
            nearest.append(round(math.ldexp(part, power - own - more)) << more)
        if not any(nearest):
            break
        for place, (z, row) in enumerate(zip(nearest, basis, strict=True)):
            taken[place] += z
            constant = [a - z * b for a, b in zip(constant, row, strict=True)]
    return taken, constant


def _bits(vector: list[int]) -> int:
    """How many bits the largest coordinate has."""
    return max(map(abs, vector)).bit_length()


def _heuristic_nodes(diagonal: FloatArray, radius: float) -> float:
    """sum over levels of (volume of a ball) / (covolume of the lattice projected there), plus one node a level."""
    size = len(diagonal)
    total, log_covolume = 0.0, 0.0
    for level in range(1, size + 1):
        log_covolume += math.log(diagonal[size - level])
        total += 1 + math.exp(min(700.0, _log_ball(level, radius) - log_covolume))
    return total

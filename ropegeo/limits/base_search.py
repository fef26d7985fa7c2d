r"""Covering the axis of bases: on which stretches no B_m is negative, and on which some B_m is, with proof.

With P planes and u = ln(base), plane k turns by theta_k(u) = exp(-x_k u), x_k = k/P, and

    B_m(u) = sum_k cos(m theta_k(u)),    0 <= m < L.

A base is *admissible* for length L if no B_m, m < L, is negative there. The set has no simple shape, so the axis is
cut into stretches until each has one of three verdicts: admissible throughout, inadmissible throughout, or left to
ball arithmetic (`base_ends.py`) since it is shorter than `RESOLUTION` or float64 cannot tell. The stretches meet end
to end and reach from u = 0 to `search_end`, so nothing is skipped, and nothing is sampled.

**What a value at one point says of a stretch.** For u, v >= a >= 0 the mean value theorem gives

    |B_m(u) - B_m(v)| <= m G(a) |u - v|,                           G(a) = sum_k x_k exp(-x_k a),
    |B_m(u) - B_m(v)| <= |B_m'(v)| |u - v| + (m^2 Q(a) + m R(a)) |u - v|^2 / 2,
    Q(a) = sum_k x_k^2 exp(-2 x_k a),    R(a) = sum_k x_k^2 exp(-x_k a),

since B_m' = m sum_k x_k theta_k sin(m theta_k), and each term of B_m'' = -m sum x_k^2 theta_k sin(m theta_k) - m^2
sum x_k^2 theta_k^2 cos(m theta_k) is bounded by its modulus; all three sums fall with a. Where B_m(c) exceeds the
bound over the cell around c, B_m is positive on the cell, and m is not looked at again inside it. Where -B_m(c)
exceeds the bound over a distance from c, that stretch is inadmissible, with m as its witness.

**Beyond the end.** Plane 0 turns by 1 whatever the base. For k >= 1 and m <= L - 1,
cos(m theta_k) >= cos(min(pi, (L - 1) theta_k)), because the cosine falls on [0, pi] and is nowhere below -1. So

    B_m(u) >= min_{1 <= j < L} cos(j) + sum_{k >= 1} cos(min(pi, (L - 1) theta_k(u))),

which no longer depends on m and never falls with u: where it is not negative, all larger bases are admissible.

**Rounding.** Let e = 2^-53, and let exp, sin and cos of numpy be right to four units of the last place (they are to
one, or a little more). The computed exponent is x_k u (1 + 2.01 e) at worst, so theta_k carries an error of at most
2.01 e y exp(-y) + 8.01 e < 9 e, y = x_k u, since y exp(-y) <= 1/e_Euler. A phase m theta_k is then right to 10 m e,
be it one product or the sum of those of two factors; cosines and sines of it are right to 10 m e + 8 e, products of
two of them by angle addition to 10 m e + 23 e; and adding 2P such products, in any order, costs less than 2.1 P^2 e.
In all,

    |computed B_m - B_m| <= P (10 L + 24 + 2.1 P) e  <  `score_error` = P (16 L + 64 + 4 P) e,

and what is left over, more than 40 P e, covers the rounding of the comparisons made with it. B_m' is a sum of the
same kind with weights m x_k theta_k, so its error is below m G times that of B_m over P. Bounds are raised by 2^-30
of themselves, and steps shortened by 2^-10, which exceeds the rounding of a position below 64 (2^-48) for the steps
that are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.engine.threads import one_blas_thread
from ropegeo.errors import UnsupportedError

RESOLUTION = 2.0**-33
"""Cells shorter than this, in ln(base), are left open."""
SHORTEST_STEP = 2.0**-36
FIRST_CELL = 0.1
END = 64.0
"""No search goes beyond this ln(base): positions there would round too coarsely."""
MAX_CELLS = 10**6
PARTS = 1000
"""The unit of progress: a thousandth of the axis."""
_UP, _SHORT = 1 + 2.0**-30, 1 - 2.0**-10
_SLOWED = 0.03
_DIRECT_SHARE = 20


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """A piece of the axis u = ln(base), its ends included.

    Attributes:
        start: left end.
        end: right end.
        admissible: True if no B_m is negative in it, False if one is all over it, None if it is left open.
        distances: the one m whose B_m is negative; or, of an open stretch, every m whose B_m may be.
    """

    start: float
    end: float
    admissible: bool | None
    distances: tuple[int, ...] = ()


def score_error(planes: int, length: int) -> float:
    """What a computed B_m, m < length, may be off by: P (16 L + 64 + 4 P) 2^-53."""
    return planes * (16.0 * length + 64 + 4 * planes) * 2.0**-53


def search_end(planes: int, length: int) -> float:
    """A u = ln(base) from which on every base is admissible: the bound of the docstring above is not negative there.

    Args:
        planes: P >= 2, or any P at length 2.
        length: L >= 2.

    Raises:
        UnsupportedError: the bound, as far as float64 can compute it, is negative up to base exp(64).
    """
    scores = _Scores(planes, length)
    least = float(np.cos(scores.distances[1:]).min())

    def bound(u: float) -> float:
        slow = np.cos(np.minimum(np.pi, (length - 1) * scores.angles(u)[1:]))
        return least + float(slow.sum()) - 2 * scores.error

    if bound(0.0) >= 0:
        return 0.0
    low, high = 0.0, END
    if bound(high) < 0:
        raise UnsupportedError(
            f"admissible_bases: with {2 * planes} rotated coordinates and length {length} no base up to exp(64) is "
            "proved to be the start of a half line; use more coordinates or a shorter length"
        )
    while high - low > FIRST_CELL / 10:
        middle = (low + high) / 2
        low, high = (low, middle) if bound(middle) >= 0 else (middle, high)
    return high


def cover(planes: int, length: int, *, progress: Callable[[int], None] | None = None) -> tuple[Stretch, ...]:
    """Stretches that meet end to end from u = 0 to `search_end`, each with its verdict.

    Args:
        planes: P >= 2, or any P at length 2.
        length: L >= 2.
        progress: called now and then with the thousandths of the axis that are done.

    Raises:
        UnsupportedError: no proved end, or more than a million cells.

    Accuracy: a verdict True or False is proved; see the module's docstring.
    """
    end = search_end(planes, length)
    search = _Search(_Scores(planes, length))
    edges = np.linspace(0.0, end, int(np.ceil(end / FIRST_CELL)) + 1).tolist()
    everything = np.arange(1, length)  # B_0 = P
    with one_blas_thread():
        for start, stop in pairwise(edges):
            search.classify(start, stop, everything)
            if progress is not None:
                progress(int(PARTS * stop / end))
    return tuple(sorted(search.found, key=lambda stretch: stretch.start))


class _Scores:
    """B_m at one point, for all m or for some."""

    def __init__(self, planes: int, length: int) -> None:
        self.planes, self.length = planes, length
        self.error = score_error(planes, length)
        self.distances = np.arange(length, dtype=np.float64)
        self._exponents = np.arange(planes) / planes
        width = 1 << (length.bit_length() // 2)  # near sqrt(L): the fewest sines
        self._rows, self._columns = self.distances[::width], self.distances[:width]

    def angles(self, u: float) -> Float[FloatArray, " planes"]:
        """theta_k(u)."""
        angles: FloatArray = np.exp(-self._exponents * u)
        return angles

    def bounds(self, u: float) -> tuple[float, float, float]:
        """G(u), Q(u) and R(u), rounded up."""
        x, angles = self._exponents, self.angles(u)
        return (
            float((x * angles).sum()) * _UP,
            float(((x * angles) ** 2).sum()) * _UP,
            float((x * x * angles).sum()) * _UP,
        )

    def all(self, u: float) -> Float[FloatArray, " length"]:
        """B_m(u) of every m < L, by angle addition: one product of matrices."""
        angles = self.angles(u)
        rows, columns = self._rows[:, None] * angles, angles[:, None] * self._columns
        left = np.concatenate([np.cos(rows), -np.sin(rows)], axis=1)
        scores: FloatArray = left @ np.concatenate([np.cos(columns), np.sin(columns)])
        return scores.ravel()[: self.length]

    def some(
        self, u: float, chosen: Int[IntArray, " chosen"]
    ) -> tuple[Float[FloatArray, " chosen"], Float[FloatArray, " chosen"]]:
        """B_m(u) and B_m'(u) of some m."""
        angles, m = self.angles(u), self.distances[chosen]
        phases = m[:, None] * angles
        return np.cos(phases).sum(axis=1), m * (np.sin(phases) @ (self._exponents * angles))


class _Search:
    """Cells still to be looked at, and the verdicts found."""

    def __init__(self, scores: _Scores) -> None:
        self.scores = scores
        self.found: list[Stretch] = []
        self._cells = 0

    def classify(self, start: float, stop: float, distances: Int[IntArray, " distances"]) -> None:
        """Cover one cell, on which only these m can have a negative B_m."""
        waiting = [(start, stop, distances)]
        while waiting:
            a, b, candidates = waiting.pop()
            self._cells += 1
            if self._cells > MAX_CELLS:
                raise UnsupportedError(
                    f"admissible_bases: more than {MAX_CELLS} cells near base exp({a:.9g}) at length "
                    f"{self.scores.length}; use a shorter length"
                )
            waiting += self._divide(a, b, candidates)

    def _divide(
        self, a: float, b: float, candidates: Int[IntArray, " candidates"]
    ) -> list[tuple[float, float, IntArray]]:
        """Note what is proved of a cell, and return what is left of it."""
        centre = (a + b) / 2
        half = max(b - centre, centre - a) * _UP
        line = _Line(self.scores, a)
        values, slopes = self._values(centre, candidates)
        # What a value may be off by anywhere in the cell, by the sharper bound.
        change = line.change(candidates, slopes, half)
        may_be_negative = values - self.scores.error <= change
        kept = candidates[may_be_negative]
        if not kept.size:
            self.found.append(Stretch(start=a, end=b, admissible=True))
            return []
        reach = line.reach(candidates, -values - self.scores.error, slopes)
        best = int(np.argmax(reach))
        witness, radius = int(candidates[best]), float(reach[best]) * _SHORT
        if radius >= half:
            self.found.append(Stretch(start=a, end=b, admissible=False, distances=(witness,)))
            return []
        if radius >= SHORTEST_STEP:
            left = self._walk(line, witness, centre - radius, a, radius)
            right = self._walk(line, witness, centre + radius, b, radius)
            self.found.append(Stretch(start=left, end=right, admissible=False, distances=(witness,)))
            return [(x, y, kept) for x, y in ((right, b), (a, left)) if x < y]
        # Where values change by less than their error, float64 sees no more in smaller cells.
        exhausted = bool(np.all(change[may_be_negative] <= self.scores.error))
        if b - a < RESOLUTION or exhausted:
            self.found.append(Stretch(start=a, end=b, admissible=None, distances=tuple(kept.tolist())))
            return []
        return [(centre, b, kept), (a, centre, kept)]

    def _values(self, u: float, candidates: Int[IntArray, " candidates"]) -> tuple[FloatArray, FloatArray | None]:
        """B_m(u), and B_m'(u) where only few are asked for."""
        if candidates.size * _DIRECT_SHARE > self.scores.length:
            return self.scores.all(u)[candidates], None
        return self.scores.some(u, candidates)

    def _walk(self, line: _Line, witness: int, at: float, stop: float, first: float) -> float:
        """How far towards `stop` one B_m stays negative, step by step, until the steps are short."""
        chosen = np.array([witness])
        while at != stop:
            values, slopes = self.scores.some(at, chosen)
            step = float(line.reach(chosen, -values - self.scores.error, slopes)[0]) * _SHORT
            if step < max(SHORTEST_STEP, _SLOWED * first):
                break
            at = min(at + step, stop) if at < stop else max(at - step, stop)
        return at


class _Line:
    """How fast B_m can change at and beyond a point a."""

    def __init__(self, scores: _Scores, a: float) -> None:
        self._steepest, self._square, self._single = scores.bounds(a)
        self._slope_error = self._steepest * scores.error / scores.planes

    def change(
        self, distances: Int[IntArray, " distances"], slopes: Float[FloatArray, " distances"] | None, width: float
    ) -> Float[FloatArray, " distances"]:
        """The most that B_m can differ over a width from where its slope was taken, rounded up."""
        m = distances.astype(np.float64)
        first: FloatArray = m * (self._steepest * width * _UP)
        if slopes is None:
            return first
        slope, bend = self._slope(m, slopes), self._bend(m)
        return np.minimum(first, (slope * width + bend * (width * width / 2)) * _UP)

    def reach(
        self,
        distances: Int[IntArray, " distances"],
        room: Float[FloatArray, " distances"],
        slopes: Float[FloatArray, " distances"] | None,
    ) -> Float[FloatArray, " distances"]:
        """Over which width B_m changes by less than `room`; 0 where there is none. `_SHORT` covers its rounding."""
        m, room = distances.astype(np.float64), np.maximum(room, 0.0)
        first: FloatArray = room / (m * self._steepest)
        if slopes is None:
            return first
        slope, bend = self._slope(m, slopes), self._bend(m)
        return np.maximum(first, 2 * room / (slope + np.sqrt(slope * slope + 2 * bend * room)))

    def _slope(self, m: FloatArray, slopes: FloatArray) -> FloatArray:
        return np.abs(slopes) + m * self._slope_error

    def _bend(self, m: FloatArray) -> FloatArray:
        bend: FloatArray = m * (m * self._square + self._single)
        return bend

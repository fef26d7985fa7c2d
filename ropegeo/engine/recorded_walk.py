"""The blocks of `recorded.py`: rotation, who sees whom, the walk over keys, ties, and the errors derived there."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from ropegeo._arrays import BoolArray, FloatArray, IntArray
from ropegeo.engine import recorded_kernels as kernels
from ropegeo.engine.recorded_input import MAX_POSITION
from ropegeo.engine.threads import in_order
from ropegeo.errors import InvalidInputError
from ropegeo.spectrum import RopeSpectrum

QUERY_BLOCK = 256
"""Queries per block. Blocks have one shape always, filled up with zeros, so that one buffer serves them all."""
KEY_BLOCK = 256
"""Keys per block: with 256 x 256 numbers a block of logits stays in the second cache."""
ROTATE_ROWS = 1024
"""Rows rotated at once, in float64."""
ROTATION_ERROR = 4e-15
"""Relative error of a rotated and scaled vector: 3e-15 of `RopeSpectrum.rotate`, and float64 roundings of the scale."""
NEVER = MAX_POSITION
"""Period of a plane that never is back: no two keys are that far apart."""


def visible_queries(
    key_at: Int[IntArray, " n"], query_at: Int[IntArray, " m"], window: int
) -> tuple[Int[IntArray, " n"], Int[IntArray, " n"]]:
    """The first query that sees each key, and one past the last: those at distances 0..window-1."""
    return np.searchsorted(query_at, key_at, "left"), np.searchsorted(query_at, key_at + (window - 1), "right")


def visible_keys(
    key_at: Int[IntArray, " n"], query_at: Int[IntArray, " m"], window: int
) -> tuple[Int[IntArray, " m"], Int[IntArray, " m"]]:
    """The first key that each query sees, and one past the last."""
    return np.searchsorted(key_at, query_at - window, "right"), np.searchsorted(key_at, query_at, "right")


@dataclass(frozen=True)
class Walk:
    """Rotated queries and keys, and who sees whom; queries and keys are followed by rows of zeros, a block of them."""

    queries: NDArray[Any]
    keys: NDArray[Any]
    first: IntArray
    last: IntArray
    wanted: IntArray
    count: int

    def block(self, start: int) -> tuple[NDArray[Any], ...]:
        """The best two keys, the target's logit and the softmax sums of the queries from `start` on."""
        size = min(QUERY_BLOCK, self.count - start)
        dtype = self.keys.dtype
        # Keys that some query of the block sees. Both ends of the range of queries grow with the key.
        low = int(np.searchsorted(self.last, start, "right"))
        high = int(np.searchsorted(self.first, start + size, "left"))
        first = np.clip(self.first[low:high] - start, 0, size)
        last = np.clip(self.last[low:high] - start, 0, size)
        wanted = self.wanted[start : start + size]
        top, second, base = (np.full(size, -np.inf, dtype) for _ in range(3))
        top_at, second_at = np.full(size, -1, np.int32), np.full(size, -1, np.int32)
        part, part_moment, found = np.zeros(size, dtype), np.zeros(size, dtype), np.full(size, np.nan, dtype)
        total, moment = np.zeros(size), np.zeros(size)
        add_weights: Callable[..., None] = (
            kernels.add_weights_single if dtype == np.float32 else kernels.add_weights_double
        )
        across = self.queries[start : start + QUERY_BLOCK].T
        logits = np.empty((KEY_BLOCK, QUERY_BLOCK), dtype)
        for key in range(low, high, KEY_BLOCK):
            seen = slice(key - low, min(key - low + KEY_BLOCK, high - low))
            np.matmul(self.keys[key : key + KEY_BLOCK], across, out=logits)
            scores = logits[: seen.stop - seen.start]
            kernels.best_two(scores, first[seen], last[seen], key, top, top_at, second, second_at)
            kernels.rebase(top, base, part, part_moment, total, moment)
            add_weights(scores, first[seen], last[seen], base, part, part_moment)
            kernels.pick(scores, key, wanted, found)
        kernels.rebase(top, base, part, part_moment, total, moment)
        doubles = [array.astype(np.float64) for array in (top, second, found)]
        return doubles[0], top_at, doubles[1], second_at, doubles[2], total, moment


def rotated(
    name: str,
    vectors: NDArray[Any],
    rows: IntArray,
    positions: IntArray,
    spectrum: RopeSpectrum,
    factor: float,
    dtype: np.dtype[Any],
    extra: int,
    threads: int,
) -> tuple[NDArray[Any], FloatArray]:
    """Vectors rotated to their positions, times a factor, cast, with `extra` rows of zeros after them; and their norms.

    Args:
        name: of the vectors, for messages.
        vectors: before rotation.
        rows: where each vector stood in what the user gave, for messages.
        positions: of each vector.
        spectrum: the rotation.
        factor: on the rotated vectors.
        dtype: to cast to.
        extra: rows of zeros.
        threads: to use.
    """
    turned = np.zeros((len(vectors) + extra, spectrum.head_dim), dtype)
    sizes = np.empty(len(vectors))

    def rotate(start: int) -> int | None:
        """Fill in the rows from `start` on; says where the first row that is not finite stands."""
        part = slice(start, start + ROTATE_ROWS)
        exact = vectors[part].astype(np.float64)
        bad = ~np.isfinite(exact).all(axis=1)
        if bad.any():
            return start + int(bad.argmax())
        with np.errstate(over="ignore", invalid="ignore"):  # the norms say so, and are checked
            moved = spectrum.rotate(exact, positions[part]) * factor
            turned[start : start + len(moved)] = moved
            sizes[part] = np.sqrt(np.einsum("ij,ij->i", moved, moved))
        return None

    for bad in in_order(rotate, range(0, len(vectors), ROTATE_ROWS), threads=threads):
        if bad is not None:
            raise InvalidInputError(
                f"recorded_margins: {name} must be finite; row {rows[bad]} has NaN or infinite entries"
            )
    return turned, sizes


def logit_error(
    size_q: FloatArray, size_k: FloatArray, high: IntArray, head_dim: int, dtype: np.dtype[Any]
) -> FloatArray:
    """Bound on the error of every logit of each query; see the module.

    Numbers below the smallest normal one may be flushed to 0: that of a coordinate, times the other vector, and that of
    each product.
    """
    u, tiny = float(np.finfo(dtype).eps) / 2, float(np.finfo(dtype).tiny)
    # The largest key up to the last one that the query sees; it may have left the window, which only widens the bound.
    largest = np.where(high > 0, np.maximum.accumulate(size_k)[high - 1], 0)
    terms = head_dim + 8
    relative = terms * u / (1 - terms * u) + 2.01 * ROTATION_ERROR
    bound: FloatArray = relative * size_q * largest + tiny * (head_dim + math.sqrt(head_dim) * (size_q + largest))
    return np.where(high > 0, bound, 0)


@dataclass(frozen=True)
class Ties:
    """Which keys score exactly alike, read off queries and keys as they were given.

    Attributes:
        queries: before rotation.
        keys: before rotation.
        key_at: positions of the keys.
        low: first key that each query sees.
        high: one past the last.
        spectrum: the rotation.
        periods: after as many positions as the denominator of its turn a plane is back; `NEVER` for one that never is.
    """

    queries: NDArray[Any]
    keys: NDArray[Any]
    key_at: IntArray
    low: IntArray
    high: IntArray
    spectrum: RopeSpectrum
    periods: IntArray

    @classmethod
    def of(
        cls,
        queries: NDArray[Any],
        keys: NDArray[Any],
        key_at: IntArray,
        low: IntArray,
        high: IntArray,
        spectrum: RopeSpectrum,
    ) -> Ties:
        """With the periods of the spectrum."""
        turns = [spectrum.rational_turn(plane) for plane in range(spectrum.planes)]
        periods = [NEVER if turn is None else min(turn.denominator, NEVER) for turn in turns]
        return cls(queries, keys, key_at, low, high, spectrum, np.array(periods, np.int64))

    def pairs(self, near: IntArray, ours_at: IntArray, rival_at: IntArray) -> IntArray:
        """Those of the queries `near` whose two keys score exactly alike, plane by plane.

        Args:
            near: indices of queries whose margin is within its error.
            ours_at: index of the key that should win, for every query.
            rival_at: index of the best other key, for every query.
        """
        tied = [np.zeros(0, np.int64)]
        for part in np.split(near, range(ROTATE_ROWS, len(near), ROTATE_ROWS)):
            query, ours, rival = (
                rows.astype(np.float64)
                for rows in (self.queries[part], self.keys[ours_at[part]], self.keys[rival_at[part]])
            )
            apart = np.abs(self.key_at[ours_at[part]] - self.key_at[rival_at[part]])[:, None]
            blind, one, other = (self.spectrum.to_planes(rows) for rows in (query, ours, rival))
            turning = (blind == 0) | ((one == other) & ((apart % self.periods == 0) | (one == 0)))
            passed = (query == 0) | (ours == rival)
            tied.append(part[turning.all(axis=1) & passed[:, self.spectrum.rotary_dim :].all(axis=1)])
        return np.concatenate(tied)

    def best(self, pairs: IntArray, rival_at: IntArray, floor: FloatArray, walk: Walk, threads: int) -> BoolArray:
        """Which queries are tied for certain: those of `pairs` that see no key that could score above their rival.

        Every visible key whose computed logit reaches the floor has to score exactly like the rival.

        Args:
            pairs: indices of queries whose two keys score exactly alike.
            rival_at: index of the best other key, for every query.
            floor: for every query, below the computed logit of any key that scores more than the rival.
            walk: rotated queries and keys.
            threads: to use.
        """
        tied = np.zeros(len(self.queries), np.bool_)
        if len(pairs) == 0:
            return tied
        parts = np.split(pairs, range(ROTATE_ROWS, len(pairs), ROTATE_ROWS))
        seeing = np.concatenate([(self.queries[part] != 0).any(axis=1) for part in parts])
        tied[pairs[~seeing]] = True  # every logit of a query of zeros is 0
        rest = pairs[seeing]
        if len(rest) == 0:
            return tied
        names: dict[bytes, int] = {}
        alike = np.array([names.setdefault(row.tobytes(), len(names)) for row in self.keys])

        def unbeaten(start: int) -> tuple[IntArray, BoolArray]:
            """A block of queries, and which of them are."""
            part = rest[start : start + QUERY_BLOCK]
            return part, self._unbeaten(part, rival_at[part], floor[part], walk, alike)

        for part, found in in_order(unbeaten, range(0, len(rest), QUERY_BLOCK), threads=threads):
            tied[part] = found
        return tied

    def _unbeaten(self, part: IntArray, rival: IntArray, floor: FloatArray, walk: Walk, alike: IntArray) -> BoolArray:
        """Which queries of `part` see no key that reaches the floor, unless it scores exactly like their rival.

        Args:
            part: indices of queries.
            rival: index of the rival of each.
            floor: of each.
            walk: rotated queries and keys.
            alike: one number per key, the same only for keys that are equal as given.
        """
        # Coordinates that count: those of a plane count together. A key is back with the planes where it is not 0.
        query, rivals = self.queries[part].astype(np.float64), self.keys[rival].astype(np.float64)
        blind, one = self.spectrum.to_planes(query), self.spectrum.to_planes(rivals)
        passed = query[:, self.spectrum.rotary_dim :] != 0
        counts = self.spectrum.from_planes((blind != 0) * (1 + 1j), passed.astype(np.float64)) != 0
        turning = (blind != 0) & (one != 0)
        period = np.array([min(math.lcm(*set(self.periods[row].tolist())), NEVER) for row in turning], np.int64)
        unbeaten = np.ones(len(part), np.bool_)
        across = walk.queries[part].T
        for key in range(int(self.low[part].min()), int(self.high[part].max()), KEY_BLOCK):
            stop = min(key + KEY_BLOCK, len(self.keys))
            rows = np.arange(key, stop)[:, None]
            reaches = walk.keys[key:stop] @ across >= floor
            reaches &= unbeaten & (rows >= self.low[part]) & (rows < self.high[part])
            if not reaches.any():
                continue
            turned = (self.key_at[rows] - self.key_at[rival]) % period != 0
            unbeaten &= ~(reaches & turned).any(axis=0)
            # What is left are whole turns: keys equal as given score alike, others where the query is 0 or they agree.
            others, of = np.nonzero(reaches & (alike[rows] != alike[rival]) & unbeaten)
            for few in np.split(np.arange(len(of)), range(ROTATE_ROWS, len(of), ROTATE_ROWS)):
                i = of[few]
                differ = self.keys[key + others[few]].astype(np.float64) != rivals[i]
                unbeaten[i[(differ & counts[i]).any(axis=1)]] = False
            if not unbeaten.any():
                break
        return unbeaten


def sum_error(n: int, dtype: np.dtype[Any]) -> float:
    """Bound on the relative error of a softmax sum of computed logits.

    In the precision: a weight, its product with d, and a chain of `KEY_BLOCK` additions. In float64, per block: an
    addition, the exponential of a shift and its products. Weights below 2e-38 that count as that much: 87 n of them.
    """
    u = float(np.finfo(dtype).eps) / 2
    return (KEY_BLOCK + kernels.EXP_ERROR + 4) * u + 8 * (n / KEY_BLOCK + 2) * 2.0**-53 + 2e-36 * n

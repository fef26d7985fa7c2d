r"""The float32 sums of every query with every key it sees, in order, block by block; and what another order may change.

A block is some consecutive queries against one *tile* of keys. A key that a query does not see, after it or out of the
window, and the key at `skip` (the target of an index head) are set to -infinity, which no maximum and no sum of
exponentials takes up. NaN and +infinity are taken up by both, so an overflow shows in a row's maximum.

Planes that are 0 in every query or in every key, and such coordinates that pass through, are left out: their products
are 0, which changes no sum in any order. That holds of finite numbers: what is infinite in the format is not left out,
and where a position or the attention factor is, nothing is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int

from ropegeo._arrays import BoolArray, FloatArray, IntArray
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.limits.arithmetic import MAX_POSITION, Arithmetic, rotated
from ropegeo.limits.rounding import SingleArray, cast
from ropegeo.spectrum import RopeSpectrum
from ropegeo.spectrum.layout import pair_indices

TILE = 256
"""Keys of a tile: with 128 coordinates of float32 128 KiB, which stay in the second-level cache."""
QUERY_BLOCK = 128
MAX_LENGTH = 1 << 18
"""Lengths that are emulated: every pair of positions is computed, at some 10^10 coordinates a second and thread."""


class Keys:
    """Rotated keys of one content, at all positions.

    Attributes:
        window: a query sees the distances 0..window-1.
    """

    def __init__(self, values: Float32[SingleArray, "n coordinates"], window: int | None) -> None:
        """Numbers of the format, as float32; all earlier keys are seen without a window."""
        self.window = len(values) if window is None else min(window, len(values))
        self._tiles = [np.ascontiguousarray(values[first : first + TILE].T) for first in range(0, len(values), TILE)]

    def rows(self, first: int, stop: int) -> Float32[SingleArray, "rows coordinates"]:
        """The keys first..stop-1."""
        tiles = self._tiles[first // TILE : (stop - 1) // TILE + 1]
        start = first % TILE
        return np.ascontiguousarray(np.concatenate(tiles, axis=1)[:, start : start + stop - first].T)

    def blocks(
        self, queries: Float32[SingleArray, "rows coordinates"], start: int, *, skip: int | None = None
    ) -> Iterator[tuple[int, SingleArray]]:
        """The sums of consecutive queries, tile by tile, as (first key, sums of shape (queries, keys)).

        The array is used again for the next tile. Only tiles of which some query sees something are given.

        Args:
            queries: rotated.
            start: index of the first one.
            skip: distance that is left out.
        """
        from ropegeo.limits.emulation_kernels import sequential_dots

        stop = start + len(queries)
        buffer = np.empty((stop - start, TILE), np.float32)
        lowest = max(0, start - self.window + 1)
        for tile in range(lowest // TILE, (stop - 1) // TILE + 1):
            keys = self._tiles[tile]
            first, count = tile * TILE, keys.shape[1]
            sums = buffer if count == TILE else np.empty((stop - start, count), np.float32)
            sequential_dots(queries, keys, sums)
            last = first + count - 1
            hides = last > start or first <= stop - 1 - self.window
            skips = skip is not None and start - skip <= last and stop - 1 - skip >= first
            if hides or skips:
                np.copyto(sums, -np.inf, where=_hidden(start, stop, first, count, self.window, skip if skips else None))
            yield first, sums


@lru_cache(maxsize=32)
def _hidden(
    start: int, stop: int, first: int, count: int, window: int, skip: int | None
) -> Bool[BoolArray, "queries keys"]:
    """Which keys of a tile which queries do not see or skip. Kept: every letter of a head asks for the same."""
    distance = np.arange(start, stop)[:, None] - np.arange(first, first + count)
    hidden = (distance < 0) | (distance >= window)
    return np.asarray(hidden if skip is None else hidden | (distance == skip))


@dataclass(frozen=True, eq=False, kw_only=True)
class Rotation:
    """How vectors of a head are rotated at consecutive positions, without what is left out of the sums.

    Attributes:
        spectrum: of the planes that are kept, with the coordinates that are kept.
        kept: those coordinates, in order.
        positions: absolute positions.
        arithmetic: how the model computes.
    """

    spectrum: RopeSpectrum
    kept: Int[IntArray, " kept"]
    positions: Int[IntArray, " n"]
    arithmetic: Arithmetic

    @classmethod
    def of(
        cls,
        queries: Float64[FloatArray, "*queries head_dim"],
        keys: Float64[FloatArray, "*keys head_dim"],
        spectrum: RopeSpectrum,
        *,
        start_position: int,
        count: int,
        arithmetic: Arithmetic,
    ) -> Rotation:
        """Of all queries and keys that will be multiplied."""
        planes, passing = _kept(queries, keys, spectrum, start_position + count - 1, arithmetic)
        first, second = pair_indices(spectrum.layout, spectrum.rotary_dim)
        kept = np.sort(np.concatenate([first[planes], second[planes], spectrum.rotary_dim + passing]))
        smaller = replace(
            spectrum,
            angles=tuple(spectrum.angles[plane] for plane in planes),
            angle_texts=tuple(spectrum.angle_texts[plane] for plane in planes),
            head_dim=len(kept),
        )
        return cls(spectrum=smaller, kept=kept, positions=start_position + np.arange(count), arithmetic=arithmetic)

    def rows(self, vector: Float64[FloatArray, " head_dim"]) -> Float32[SingleArray, "n kept"]:
        """One vector at every position, the coordinates that are kept."""
        return rotated(vector[self.kept], self.spectrum, self.positions, self.arithmetic)


def _kept(
    queries: FloatArray, keys: FloatArray, spectrum: RopeSpectrum, last_position: int, arithmetic: Arithmetic
) -> tuple[IntArray, IntArray]:
    """Planes, at least one, and coordinates that pass through, counted from the first such, that are kept."""
    largest = np.array([spectrum.attention_factor, last_position if arithmetic.positions == "format" else 0.0])
    if not np.isfinite(cast(largest, arithmetic.model_format)).all():
        return np.arange(spectrum.planes), np.arange(spectrum.head_dim - spectrum.rotary_dim)
    counts, infinite = [], np.zeros(spectrum.head_dim, np.bool_)
    for vectors in (queries, keys):
        stored = cast(vectors.reshape(-1, spectrum.head_dim), arithmetic.model_format)
        counts.append((stored != 0).any(axis=0))
        infinite |= ~np.isfinite(stored).all(axis=0)
    first, second = pair_indices(spectrum.layout, spectrum.rotary_dim)
    used = [each[first] | each[second] for each in (*counts, infinite)]
    planes = np.flatnonzero((used[0] & used[1]) | used[2])
    passing = np.flatnonzero(((counts[0] & counts[1]) | infinite)[spectrum.rotary_dim :])
    return planes if planes.size else np.array([0]), passing


def order_slacks(
    queries: Float32[SingleArray, "n coordinates"], longest_key: float, arithmetic: Arithmetic
) -> Float64[FloatArray, " n"]:
    """By how much the sums of each query may differ between two orders; proof in `arithmetic.py`.

    Args:
        queries: rotated.
        longest_key: largest norm of a key that has not overflowed: those that have fail where they are seen.
        arithmetic: how the model computes.
    """
    coordinates = queries.shape[1]
    roundings = coordinates - 1 if arithmetic.exact_products else coordinates
    if arithmetic.exact_products and coordinates <= 2:
        return np.zeros(len(queries))
    per_unit = 2 * roundings * 2.0**-24 / (1 - roundings * 2.0**-24)
    # Products below the normal numbers of float32 lose up to 2^-150 each, in either order.
    return np.asarray(per_unit * norms(queries) * longest_key + coordinates * 2.0**-149)


def norms(rows: Float32[SingleArray, "n coordinates"]) -> Float64[FloatArray, " n"]:
    """Euclidean norm of each row, rounded up; 0 for rows that are not finite."""
    with np.errstate(invalid="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64)) * (1 + 1e-12)
    return np.asarray(np.where(np.isfinite(lengths), lengths, 0.0))


def lifted(sums: SingleArray, by: FloatArray) -> SingleArray:
    """Float32 sums plus a float64, rounded away from them: further up if `by` is positive, down if negative."""
    with np.errstate(over="ignore", invalid="ignore"):
        moved = (sums.astype(np.float64) + by).astype(np.float32)
        away = np.nextafter(moved, np.where(by > 0, np.inf, -np.inf).astype(np.float32))
    return np.asarray(np.where(by == 0, sums, away))


def check_walk(
    call: str, spectrum: RopeSpectrum, vectors: FloatArray, max_length: int, start_position: int, window: int | None
) -> None:
    """Raise unless the request can be walked.

    Raises:
        InvalidInputError: widths, lengths, positions or a window out of range.
        UnsupportedError: a length beyond `MAX_LENGTH`.
    """
    if vectors.ndim < 1 or vectors.shape[-1] != spectrum.head_dim:
        raise InvalidInputError(
            f"{call}: vectors have shape {vectors.shape}, the spectrum head_dim {spectrum.head_dim}"
        )
    if not np.isfinite(vectors).all():
        raise InvalidInputError(f"{call}: vectors have NaN or infinite entries")
    if max_length < 1:
        raise InvalidInputError(f"{call}: max_length {max_length} must be at least 1")
    if max_length > MAX_LENGTH:
        raise UnsupportedError(
            f"{call}: every pair of positions is computed, up to length {MAX_LENGTH}; max_length {max_length} is more"
        )
    if start_position < 0 or start_position + max_length > MAX_POSITION:
        raise InvalidInputError(
            f"{call}: positions {start_position} to {start_position + max_length - 1} must lie from 0 to "
            f"{MAX_POSITION - 1}, where float32 holds them all"
        )
    if window is not None and window < 1:
        raise InvalidInputError(f"{call}: window {window} must be at least 1: it includes the token itself")

r"""Margins of recorded contents: what queries and keys of a real head score, without the n x n matrix.

Queries and keys come as they are before rotation. They are rotated by exact phases, cast to the precision asked for,
and multiplied block by block; the best two keys and the softmax sums of a query run along (the *online softmax*: sums
are taken from the largest logit so far, and multiplied by exp(old - new) when it grows). Memory is
O((m + n) head_dim) plus one block per thread.

Errors. Let u be half an ulp of the precision, q and k a rotated query and key, and s the scale.
* A rotated, scaled and cast query errs by at most (u + rotation) |q|, a key likewise; `rotation` is 3e-15 of the phases
  and a few float64 roundings.
* A computed product of d terms, summed in any order, with or without fused multiply-add, errs by at most
  gamma_d |q| |k|, gamma_d = d u/(1 - d u), where |x| |y| bounds sum |x_i y_i|.
* A weight exp(x - top) is taken of a difference with a rounding of its own, u |x - top| <= 2 u |q| |k| s: the same as
  an error of the logit.
So every number here is that of logits within `abs_error` = s |q| max |k| (gamma_{d+8} + 2 rotation) of the true ones.
The largest, the second largest and log-sum-exp move by no more than the logits do; the rest is in the properties of
`RecordedMargins`.

Ties. Equal computed logits prove nothing, and equal keys need not give them: float32 kernels of OpenBLAS sum the same
numbers in different orders, depending on where in the block they stand. So a tie is read off what was given, coordinate
by coordinate: the query is 0 there, or the keys are equal and do not turn between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import index
from typing import Any, Literal, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray

from ropegeo._arrays import BoolArray, FloatArray, IntArray, frozen
from ropegeo.engine import recorded_kernels as kernels
from ropegeo.engine.threads import in_order, thread_count
from ropegeo.errors import InvalidInputError
from ropegeo.exact import short
from ropegeo.spectrum import RopeSpectrum

Precision: TypeAlias = Literal["float32", "float64"]

QUERY_BLOCK = 256
"""Queries per block. Blocks have one shape always, filled up with zeros, so that one buffer serves them all."""
KEY_BLOCK = 256
"""Keys per block: with 256 x 256 numbers a block of logits stays in the second cache."""
ROTATE_ROWS = 1024
"""Rows rotated at once, in float64."""
ROTATION_ERROR = 4e-15
"""Relative error of a rotated and scaled vector: 3e-15 of `RopeSpectrum.rotate`, and float64 roundings of the scale."""
MAX_POSITION = 1 << 62
MAX_ROWS = 1 << 31
INPUT_TYPES = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedMargins:
    """What each query of a recorded head sees: its best two keys, its margin, its softmax.

    All arrays have one entry per query and are read-only. Positions are those of keys, -1 where there is no such key.

    Attributes:
        positions: position of each query.
        visible: number of keys the query sees.
        top: largest logit; -infinity where the query sees no key.
        top_at: position of its key; the earlier one where two computed logits are equal.
        second: largest logit of the other keys; -infinity where there is none.
        second_at: position of its key.
        targets: position of the target key, -1 where none was given.
        margin: with a target its logit minus the largest of the other keys, which is 0 or below where the head fails;
            without one `top - second`. In logits. +infinity with a single key, NaN without any. Exactly 0 where `tied`.
        tied: whether the margin is known to be exactly 0: wherever the query is not 0, the two keys are equal as given,
            and 0 or whole turns apart.
        target_weight: softmax weight of the target; NaN without one.
        entropy: of the softmax weights, in nats; NaN where the query sees no key.
        log_sum_exp: of the logits; -infinity where the query sees no key.
        abs_error: bound on the error of any logit of the query, hence of `top` and `second`.
        sum_error: bound on the relative error of a softmax sum, over and above that of its logits.
        precision: `float32` or `float64`, the precision of the logits.
        method: `recorded`.
    """

    positions: Int[IntArray, " queries"]
    visible: Int[IntArray, " queries"]
    top: Float[FloatArray, " queries"]
    top_at: Int[IntArray, " queries"]
    second: Float[FloatArray, " queries"]
    second_at: Int[IntArray, " queries"]
    targets: Int[IntArray, " queries"]
    margin: Float[FloatArray, " queries"]
    tied: Bool[BoolArray, " queries"]
    target_weight: Float[FloatArray, " queries"]
    entropy: Float[FloatArray, " queries"]
    log_sum_exp: Float[FloatArray, " queries"]
    abs_error: Float[FloatArray, " queries"]
    sum_error: float
    precision: Precision
    method: str = "recorded"

    @property
    def margin_error(self) -> Float[FloatArray, " queries"]:
        """Bound on the error of `margin`: it is a difference of two logits."""
        return 2 * self.abs_error

    @property
    def log_sum_exp_error(self) -> Float[FloatArray, " queries"]:
        """Bound on the error of `log_sum_exp`: that of the logits, and the logarithm of the sum's relative error."""
        return self.abs_error + 2 * self.sum_error

    @property
    def target_weight_error(self) -> Float[FloatArray, " queries"]:
        """Bound on the error of `target_weight`.

        Logits within E of the true ones move the odds w/(1 - w) by a factor of at most exp(2E), hence w by at most
        tanh(E/2) <= E/2.
        """
        return np.minimum(1.0, self.abs_error / 2 + 2 * self.sum_error)

    @property
    def entropy_error(self) -> Float[FloatArray, " queries"]:
        """Bound on the error of `entropy`, of n visible keys.

        dH = -sum w (x - mean x) dx, x - mean x = log w + H, and sum w |log w + H| <= 2 H <= 2 log n: logits within E of
        the true ones move H by at most 2 E log n. The sums enter as H = log total - moment/total, |moment/total| <= H.
        """
        logs = np.log(np.maximum(self.visible, 1))
        return 2 * self.abs_error * logs + 2 * self.sum_error * (1 + 2 * logs)

    @property
    def status(self) -> NDArray[Any]:
        """What is known of the sign of each margin, one word per query.

        `wins` and `fails`: the margin is positive or negative by more than `margin_error`. `tie`: it is exactly 0, see
        `tied`. `undecided`: within the error, and not known to be 0. `only`: the query sees a single key, and so has
        nothing to win against. `none`: it sees no key.
        """
        words = np.full(self.margin.shape, "undecided", dtype="<U9")
        words[self.margin > self.margin_error] = "wins"
        words[self.margin < -self.margin_error] = "fails"
        words[self.tied] = "tie"
        words[self.visible == 1] = "only"
        words[self.visible == 0] = "none"
        return words


def recorded_margins(
    q: Any,
    k: Any,
    spectrum: RopeSpectrum,
    *,
    scale: float | None = None,
    targets: Any = None,
    positions: Any = None,
    query_positions: Any = None,
    window: int | None = None,
    key_mask: Any = None,
    precision: Precision | str | None = None,
    threads: int | None = None,
) -> RecordedMargins:
    """Margins, softmax weights and entropies of a head whose queries and keys were recorded.

    The logit of a query at position p and a key at position j <= p is scale * rotate(q, p) . rotate(k, j).

    Args:
        q: queries before rotation, shape (m, head_dim); float16, bfloat16, float32 or float64.
        k: keys before rotation, shape (n, head_dim), likewise.
        spectrum: the rotation; its attention factor acts on queries and on keys.
        scale: factor on the dot product, positive; 1/sqrt(head_dim) if not given.
        targets: position of the key that each query should find, shape (m,), -1 for none; the query must see it.
        positions: of the keys, shape (n,), integers that increase, not negative; 0..n-1 if not given.
        query_positions: of the queries, shape (m,), likewise; those of the keys if not given, where m = n.
        window: a query sees distances 0..window-1 (`sliding_window` of Mistral); all of its past if not given.
        key_mask: shape (n,), boolean; keys where it is False are left out, whatever they hold.
        precision: of the logits, `float32` or `float64`; `float64` if q or k is, else `float32`, if not given.
        threads: of the engine's own; see `ropegeo.engine.threads.thread_count`. The result does not depend on them.

    Accuracy: every logit is within `abs_error`, derived above.

    Raises:
        InvalidInputError: shapes or types that do not fit, NaN or infinite entries, positions that do not increase, a
            target that its query does not see, a mask that hides every key, logits that could overflow.

    Source: docs/MATHEMATICS.md, sections 1 and 4; the running sums are those of arXiv 1805.02867.

    Example:
        >>> spectrum = RopeSpectrum.from_angle("2*pi/4")
        >>> seen = recorded_margins(np.ones((3, 2)), np.ones((3, 2)), spectrum, scale=1.0)
        >>> seen.top_at.tolist(), seen.second_at.tolist(), seen.status.tolist()
        ([0, 1, 2], [-1, 0, 1], ['only', 'wins', 'wins'])
    """
    queries, keys = _vectors("q", q, spectrum), _vectors("k", k, spectrum)
    m, n = len(queries), len(keys)
    key_at = np.arange(n) if positions is None else _positions("positions", positions, n)
    if query_positions is not None:
        query_at = _positions("query_positions", query_positions, m)
    elif m == n:
        query_at = key_at
    else:
        raise InvalidInputError(f"recorded_margins: {m} queries and {n} keys: give query_positions, shape ({m},)")
    reach = MAX_POSITION if window is None else _window(window)
    factor = _scale(scale, spectrum)
    dtype = _precision(precision, queries, keys)
    workers = thread_count(threads)
    rows = np.arange(n)
    if key_mask is not None:
        rows = np.flatnonzero(_mask(key_mask, n))
        key_at, keys = key_at[rows], keys[rows]
    wanted_at = np.full(m, -1) if targets is None else _integers("targets", targets, m)
    wanted = _target_rows(wanted_at, query_at, key_at, reach)

    turned_q, size_q = _rotated("q", queries, np.arange(m), query_at, spectrum, factor, dtype, QUERY_BLOCK, workers)
    turned_k, size_k = _rotated("k", keys, rows, key_at, spectrum, 1.0, dtype, KEY_BLOCK, workers)
    _check_overflow(size_q, size_k, dtype)
    first, last = visible_queries(key_at, query_at, reach)
    walk = _Walk(turned_q, turned_k, first, last, wanted, m)
    starts = range(0, m, QUERY_BLOCK)
    # The last block sees most keys: it goes first, so that no thread is left with it at the end.
    blocks = list(in_order(walk.block, reversed(starts), threads=workers))[::-1]
    top, top_at, second, second_at, found, total, moment = (
        np.concatenate([block[column] for block in blocks]) for column in range(7)
    )
    low, high = visible_keys(key_at, query_at, reach)
    has_target, has_key = wanted >= 0, high > low
    # The best of the keys that are not the target is the top, or, where that is the target, the second.
    behind = has_target & (top_at != wanted)
    ours_at, rival_at = np.where(behind, wanted, top_at), np.where(behind, top_at, second_at)
    abs_error = _logit_error(size_q, size_k, high, spectrum.head_dim, dtype)
    with np.errstate(invalid="ignore", divide="ignore"):  # -inf - -inf and log 0 where a query sees no key
        margin = np.where(behind, found, top) - np.where(behind, top, second)
        near = np.flatnonzero(np.abs(margin) <= 2 * abs_error)
        tied = _tied(near, ours_at, rival_at, queries, keys, key_at, spectrum)
        return RecordedMargins(
            positions=frozen(query_at, np.int64),
            visible=frozen(high - low, np.int64),
            top=frozen(top, np.float64),
            top_at=frozen(np.where(top_at < 0, -1, key_at[top_at]), np.int64),
            second=frozen(second, np.float64),
            second_at=frozen(np.where(second_at < 0, -1, key_at[second_at]), np.int64),
            targets=frozen(wanted_at, np.int64),
            margin=frozen(np.where(tied, 0.0, margin), np.float64),
            tied=frozen(tied, np.bool_),
            target_weight=frozen(np.where(has_target, np.exp(found - top) / total, np.nan), np.float64),
            entropy=frozen(np.where(has_key, np.maximum(np.log(total) - moment / total, 0), np.nan), np.float64),
            log_sum_exp=frozen(top + np.log(total), np.float64),
            abs_error=frozen(abs_error, np.float64),
            sum_error=_sum_error(n, dtype),
            precision="float32" if dtype == np.float32 else "float64",
        )


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
class _Walk:
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


def _rotated(
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


def _logit_error(
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


def _tied(
    near: IntArray,
    ours_at: IntArray,
    rival_at: IntArray,
    queries: NDArray[Any],
    keys: NDArray[Any],
    key_at: IntArray,
    spectrum: RopeSpectrum,
) -> BoolArray:
    """Which of the queries `near` have two best keys that score exactly alike, plane by plane.

    Args:
        near: indices of queries whose margin is within its error.
        ours_at: index of the key that should win, for every query.
        rival_at: index of the best other key, for every query.
        queries: before rotation.
        keys: before rotation.
        key_at: positions of the keys.
        spectrum: the rotation.
    """
    tied = np.zeros(len(ours_at), np.bool_)
    if len(near) == 0:
        return tied
    # After as many positions as the denominator of its turn a plane is back; 0 stands for a plane that never is.
    turns = [spectrum.rational_turn(plane) for plane in range(spectrum.planes)]
    periods = np.array([0 if turn is None or turn.denominator >= MAX_POSITION else turn.denominator for turn in turns])
    for part in np.split(near, range(ROTATE_ROWS, len(near), ROTATE_ROWS)):
        query, ours, rival = (
            rows.astype(np.float64) for rows in (queries[part], keys[ours_at[part]], keys[rival_at[part]])
        )
        apart = np.abs(key_at[ours_at[part]] - key_at[rival_at[part]])[:, None]
        back = np.where(periods > 0, apart % np.maximum(periods, 1) == 0, False)
        blind, one, other = (spectrum.to_planes(rows) for rows in (query, ours, rival))
        turning = (blind == 0) | ((one == other) & (back | (one == 0)))
        passed = (query == 0) | (ours == rival)
        tied[part] = turning.all(axis=1) & passed[:, spectrum.rotary_dim :].all(axis=1)
    return tied


def _sum_error(n: int, dtype: np.dtype[Any]) -> float:
    """Bound on the relative error of a softmax sum of computed logits.

    In the precision: a weight, its product with d, and a chain of `KEY_BLOCK` additions. In float64, per block: an
    addition, the exponential of a shift and its products. Weights below 2e-38 that count as that much: 87 n of them.
    """
    u = float(np.finfo(dtype).eps) / 2
    return (KEY_BLOCK + kernels.EXP_ERROR + 4) * u + 8 * (n / KEY_BLOCK + 2) * 2.0**-53 + 2e-36 * n


def _check_overflow(size_q: FloatArray, size_k: FloatArray, dtype: np.dtype[Any]) -> None:
    """Refuse vectors whose logits could leave the range of the precision.

    Raises:
        InvalidInputError: the largest query times the largest key is not well inside it.
    """
    limit = float(np.finfo(dtype).max) / 16
    with np.errstate(over="ignore", invalid="ignore"):
        one, other = float(size_q.max()), float(size_k.max())
        inside = one < limit and other < limit and one * other < limit
    if not inside:
        advice = "; ask for precision='float64'" if dtype == np.float32 else "; give smaller vectors"
        raise InvalidInputError(
            f"recorded_margins: logits must stay below {limit:.1e} in {dtype}; scaled queries of norm {one:.1e} and "
            f"keys of norm {other:.1e} could exceed it{advice}"
        )


def _target_rows(wanted: IntArray, query_at: IntArray, key_at: IntArray, window: int) -> IntArray:
    """Index of each target among the keys, -1 for none.

    Raises:
        InvalidInputError: a target that is no key, or one that its query does not see.
    """
    rows = np.searchsorted(key_at, wanted)
    there = key_at[np.minimum(rows, len(key_at) - 1)] == wanted
    distance = query_at - wanted
    for wrong, what in (
        (wanted < -1, "must be a position, or -1 for none"),
        (~there, "is the position of no key, or of a masked one"),
        (distance < 0, "comes after its query"),
        (distance >= window, "lies outside the window"),
    ):
        found = wrong & (wanted != -1)
        if found.any():
            i = int(found.argmax())
            raise InvalidInputError(
                f"recorded_margins: target {wanted[i]} of query {i}, at position {query_at[i]}, {what}"
            )
    return np.where(wanted == -1, -1, rows)


def _vectors(name: str, given: Any, spectrum: RopeSpectrum) -> NDArray[Any]:
    """Queries or keys as an array of rows of the spectrum's width, in the type they came in.

    Raises:
        InvalidInputError: another shape, no rows, or no floating-point numbers.
    """
    array = np.asarray(given)
    width = spectrum.head_dim
    if array.ndim != 2 or array.shape[1] != width:
        raise InvalidInputError(
            f"recorded_margins: {name} must have shape (rows, {width}), head_dim of the spectrum; got {array.shape}"
        )
    if not 1 <= len(array) < MAX_ROWS:
        raise InvalidInputError(f"recorded_margins: {name} must have at least one row, and fewer than 2**31")
    if array.dtype.name not in INPUT_TYPES:
        raise InvalidInputError(
            f"recorded_margins: {name} must be {', '.join(INPUT_TYPES)}; got {array.dtype}, convert it first"
        )
    return array


def _integers(name: str, given: Any, count: int) -> IntArray:
    """One integer per row.

    Raises:
        InvalidInputError: another shape or type, or beyond 2**62.
    """
    array = np.asarray(given)
    if array.shape != (count,) or not np.issubdtype(array.dtype, np.integer):
        raise InvalidInputError(
            f"recorded_margins: {name} must be {count} integers, one per row; got {array.dtype} of shape {array.shape}"
        )
    if array.max() >= MAX_POSITION or array.min() <= -MAX_POSITION:
        raise InvalidInputError(f"recorded_margins: {name} must be below 2**62")
    return array.astype(np.int64)


def _positions(name: str, given: Any, count: int) -> IntArray:
    """One position per row.

    Raises:
        InvalidInputError: as `_integers`, or negative, or not increasing.
    """
    array = _integers(name, given, count)
    if array[0] < 0:
        raise InvalidInputError(f"recorded_margins: {name} must not be negative; row 0 has {array[0]}")
    falls = np.diff(array) <= 0
    if falls.any():
        row = int(falls.argmax())
        raise InvalidInputError(
            f"recorded_margins: {name} must increase from row to row; row {row} has {array[row]}, "
            f"row {row + 1} has {array[row + 1]}"
        )
    return array


def _mask(given: Any, count: int) -> BoolArray:
    """The mask of keys.

    Raises:
        InvalidInputError: another shape or type, or it hides every key.
    """
    array: BoolArray = np.asarray(given)
    if array.shape != (count,) or array.dtype != np.bool_:
        raise InvalidInputError(
            f"recorded_margins: key_mask must be {count} booleans, one per key; got {array.dtype} of shape "
            f"{array.shape}"
        )
    if not array.any():
        raise InvalidInputError("recorded_margins: key_mask hides every key; leave at least one True")
    return array


def _window(given: Any) -> int:
    """The window, cut to the longest distance there is.

    Raises:
        InvalidInputError: not an integer, or below 1.
    """
    try:
        window = 0 if isinstance(given, bool | np.bool_) else index(given)
    except TypeError as error:
        raise InvalidInputError(f"recorded_margins: window must be an integer of at least 1 ({error})") from error
    if window < 1:
        raise InvalidInputError(
            f"recorded_margins: window {short(window)} must be at least 1, which sees the query's own position only"
        )
    return min(window, MAX_POSITION)


def _scale(given: Any, spectrum: RopeSpectrum) -> float:
    """The factor on the dot product.

    Raises:
        InvalidInputError: not positive and finite.
    """
    if given is None:
        return 1 / math.sqrt(spectrum.head_dim)
    try:
        scale = float(given)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"recorded_margins: scale must be a number ({error})") from error
    if not (scale > 0 and math.isfinite(scale)):
        raise InvalidInputError(f"recorded_margins: scale {scale} must be positive and finite")
    return scale


def _precision(given: Any, queries: NDArray[Any], keys: NDArray[Any]) -> np.dtype[Any]:
    """The precision as a type of numpy.

    Raises:
        InvalidInputError: a word that is none.
    """
    if given is None:
        given = "float64" if np.float64 in (queries.dtype, keys.dtype) else "float32"
    if given not in ("float32", "float64"):
        raise InvalidInputError(f"recorded_margins: precision {given!r} must be 'float32' or 'float64'")
    return np.dtype(np.float32 if given == "float32" else np.float64)

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
numbers in different orders, depending on where in the block they stand. So whether two keys score exactly alike is read
off what was given, coordinate by coordinate: the query is 0 there, or the keys are equal and do not turn between them.
That the two keys chosen by computed logits do so makes the margin 0 only if no other key scores more. A key that scores
more than the rival has a computed logit above the rival's less 2 `abs_error`. So where the two score alike, the visible
keys are walked once more, and each one whose computed logit reaches that has to score exactly like the two as well;
any number of them may. Where one cannot be shown to, the query is not tied: its margin stays as computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray

from ropegeo._arrays import BoolArray, FloatArray, IntArray, frozen
from ropegeo.engine import recorded_walk
from ropegeo.engine.recorded_input import (
    MAX_POSITION,
    check_overflow,
    increasing_positions,
    integers,
    json_numbers,
    logit_scale,
    mask_of_keys,
    precision_type,
    read_booleans,
    read_integers,
    read_numbers,
    target_rows,
    vectors,
    window_length,
)
from ropegeo.engine.recorded_walk import (
    Ties,
    Walk,
    logit_error,
    rotated,
    sum_error,
    visible_keys,
    visible_queries,
)
from ropegeo.engine.threads import in_order, thread_count
from ropegeo.errors import FileFormatError, InvalidInputError
from ropegeo.spectrum import RopeSpectrum

Precision: TypeAlias = Literal["float32", "float64"]
SCHEMA = "ropegeo.recorded_margins/1"
UNIT = "logit"
INTEGERS = ("positions", "visible", "top_at", "second_at", "targets")
NUMBERS = ("top", "second", "margin", "target_weight", "entropy", "log_sum_exp", "abs_error")


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedMargins:
    """What each query of a recorded head sees: its best two keys, its margin, its softmax.

    All arrays have one entry per query and are read-only. Positions are those of keys, -1 where there is no such key.
    The unit of logits and margins is "logit": the scale is in them, unlike in those of `MarginCurve`, which are per
    unit of beta.

    Attributes:
        positions: position of each query.
        visible: number of keys the query sees.
        top: largest logit; -infinity where the query sees no key.
        top_at: position of its key; the earlier one where two computed logits are equal.
        second: largest logit of the other keys; -infinity where there is none.
        second_at: position of its key.
        targets: position of the target key, -1 where none was given.
        margin: with a target its logit minus the largest of the other keys, which is 0 or below where the head fails;
            without one `top - second`. +infinity with a single key, NaN without any. Exactly 0 where `tied`.
        tied: whether the margin is known to be exactly 0: the two keys score exactly alike, and so does every other
            visible key that the errors would let score more. Two keys score exactly alike if, wherever the query is
            not 0, they are equal as given, and 0 or whole turns apart.
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
        `tied`. `undecided`: within the error, and not known to be 0, also where the two keys score exactly alike but a
        third one might score more. `only`: the query sees a single key, and so has
        nothing to win against. `none`: it sees no key.
        """
        words = np.full(self.margin.shape, "undecided", dtype="<U9")
        words[self.margin > self.margin_error] = "wins"
        words[self.margin < -self.margin_error] = "fails"
        words[self.tied] = "tie"
        words[self.visible == 1] = "only"
        words[self.visible == 0] = "none"
        return words

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, unit "logit": arrays as lists, NaN as None, infinities as the texts "inf" and "-inf"."""
        return {
            "schema": SCHEMA,
            "unit": UNIT,
            "precision": self.precision,
            "method": self.method,
            "sum_error": self.sum_error,
            **{name: getattr(self, name).tolist() for name in (*INTEGERS, "tied")},
            **{name: json_numbers(getattr(self, name)) for name in NUMBERS},
            "status": self.status.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Any) -> RecordedMargins:
        """Read what `to_dict` wrote; `status` is derived again and must be what was written.

        Raises:
            FileFormatError: a wrong schema or unit, a missing or malformed field, fields that contradict each other.
        """
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise FileFormatError(f"recorded margins: expected schema {SCHEMA!r}")
        if data.get("unit") != UNIT:
            raise FileFormatError(f"recorded margins: expected unit {UNIT!r}")
        try:
            count = len(data["positions"])
            (sum_error,) = read_numbers([data["sum_error"]], 1)
            if data["precision"] not in ("float32", "float64") or data["method"] != "recorded":
                raise ValueError("precision must be 'float32' or 'float64', method 'recorded'")
            found = cls(
                **{name: frozen(read_integers(data[name], count), np.int64) for name in INTEGERS},
                **{name: frozen(read_numbers(data[name], count), np.float64) for name in NUMBERS},
                tied=frozen(read_booleans(data["tied"], count), np.bool_),
                sum_error=sum_error,
                precision=data["precision"],
                method=data["method"],
            )
            errors = np.append(found.abs_error, sum_error)
            if not ((errors >= 0) & (errors < np.finfo(np.float64).max / 4)).all():
                raise ValueError("errors must be finite and not negative")
            if data["status"] != found.status.tolist() or (found.margin[found.tied] != 0).any():
                raise ValueError("status, tied and margin contradict each other; the data were altered")
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise FileFormatError(f"recorded margins: a field is missing or wrong ({error})") from error
        return found


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
    queries, keys = vectors("q", q, spectrum), vectors("k", k, spectrum)
    m, n = len(queries), len(keys)
    key_at = np.arange(n) if positions is None else increasing_positions("positions", positions, n)
    if query_positions is not None:
        query_at = increasing_positions("query_positions", query_positions, m)
    elif m == n:
        query_at = key_at
    else:
        raise InvalidInputError(f"recorded_margins: {m} queries and {n} keys: give query_positions, shape ({m},)")
    reach = MAX_POSITION if window is None else window_length(window)
    factor = logit_scale(scale, spectrum)
    dtype = precision_type(precision, queries, keys)
    workers = thread_count(threads)
    rows = np.arange(n)
    if key_mask is not None:
        rows = np.flatnonzero(mask_of_keys(key_mask, n))
        key_at, keys = key_at[rows], keys[rows]
    wanted_at = np.full(m, -1) if targets is None else integers("targets", targets, m)
    wanted = target_rows(wanted_at, query_at, key_at, reach)

    turned_q, size_q = rotated(
        "q", queries, np.arange(m), query_at, spectrum, factor, dtype, recorded_walk.QUERY_BLOCK, workers
    )
    turned_k, size_k = rotated("k", keys, rows, key_at, spectrum, 1.0, dtype, recorded_walk.KEY_BLOCK, workers)
    check_overflow(size_q, size_k, dtype)
    first, last = visible_queries(key_at, query_at, reach)
    walk = Walk(turned_q, turned_k, first, last, wanted, m)
    starts = range(0, m, recorded_walk.QUERY_BLOCK)
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
    abs_error = logit_error(size_q, size_k, high, spectrum.head_dim, dtype)
    with np.errstate(invalid="ignore", divide="ignore"):  # -inf - -inf and log 0 where a query sees no key
        margin = np.where(behind, found, top) - np.where(behind, top, second)
        near = np.flatnonzero(np.abs(margin) <= 2 * abs_error)
        floor = np.nextafter(np.where(behind, top, second) - 2 * abs_error, -np.inf)
        ties = Ties.of(queries, keys, key_at, low, high, spectrum)
        tied = ties.best(ties.pairs(near, ours_at, rival_at), rival_at, floor, walk, workers)
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
            sum_error=sum_error(n, dtype),
            precision="float32" if dtype == np.float32 else "float64",
        )

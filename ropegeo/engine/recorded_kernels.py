r"""Compiled loops of `recorded`: the best two keys and the softmax sums of one block of logits.

A block is held with the keys down and the queries across. Every loop runs along the queries, which do not depend on
each other, so the compiler may use vector instructions without changing the order of any sum.

The keys that a query of this block may see form a range, and so do the queries that may see a key: key j of the block
is seen by the queries `first[j] <= i < last[j]`. Keys out of sight are therefore never touched; nothing is added to a
logit to hide it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ropegeo.engine.compiled import compiled

EXP_ERROR = 4
"""Error of a weight exp(d) in units of half an ulp; derived below for float32, and true of every libm for float64."""

_ONE = np.float32(1)
_LOWEST = np.float32(-87)
_PER_LOG2 = np.float32(1 / math.log(2))
_LOG2_HIGH = np.float32(0.693359375)  # 355/512: nine bits, so that its product with |k| <= 126 is exact
_LOG2_LOW = np.float32(math.log(2) - 0.693359375)
_ROUNDER = np.float32(1.5 * 2**23)  # adding it leaves no bits for a fraction
_BIAS = np.float32(127)
_EXPONENT = np.float32(2**23)
_C2, _C3, _C4 = np.float32(1 / 2), np.float32(1 / 6), np.float32(1 / 24)
_C5, _C6, _C7 = np.float32(1 / 120), np.float32(1 / 720), np.float32(1 / 5040)


@compiled
def best_two(
    scores: Any, first: Any, last: Any, start: int, top: Any, top_at: Any, second: Any, second_at: Any
) -> None:
    """Put a block's logits in for the best two of each query; of equal logits the earlier key stands first.

    Args:
        scores: logits, shape (keys, queries).
        first: first query of the block that sees each key, shape (keys,).
        last: one past the last query that does.
        start: index of the block's first key.
        top: largest logit of each query so far, -infinity where there is none; changed in place like the rest.
        top_at: index of its key, int32.
        second: largest logit of the other keys.
        second_at: index of its key, int32.
    """
    for j in range(scores.shape[0]):
        key = np.int32(start + j)
        low, high = first[j], last[j]
        row, tops, tops_at = scores[j, low:high], top[low:high], top_at[low:high]
        seconds, seconds_at = second[low:high], second_at[low:high]
        for i in range(row.size):  # every value is read before any is written, and all are: no branches are left
            new, one, two = row[i], tops[i], seconds[i]
            one_at, two_at = tops_at[i], seconds_at[i]
            above, between = new > one, new > two
            seconds[i] = one if above else (new if between else two)
            seconds_at[i] = one_at if above else (key if between else two_at)
            tops[i] = new if above else one
            tops_at[i] = key if above else one_at


@compiled
def rebase(top: Any, base: Any, part: Any, part_moment: Any, total: Any, moment: Any) -> None:
    """Add the sums of the last block to the running ones, and refer those to the current largest logit.

    With base b, total = sum exp(x - b) and moment = sum exp(x - b) (x - b). Moving b by -shift multiplies each weight
    by exp(shift), and adds shift to each x - b.

    Args:
        top: largest logit of each query so far.
        base: the logit that the sums are taken from; becomes `top`.
        part: total of the last block, in the precision of the logits; becomes 0.
        part_moment: moment of the last block; becomes 0.
        total: running total, float64.
        moment: running moment, float64.
    """
    for i in range(top.size):
        total[i] += part[i]
        moment[i] += part_moment[i]
        part[i] = 0
        part_moment[i] = 0
        if top[i] > base[i]:
            if total[i] > 0:
                shift = np.float64(base[i]) - np.float64(top[i])
                factor = math.exp(shift)
                # A factor of 0 leaves nothing, however large the shift: the product with it could overflow.
                moment[i] = factor * (moment[i] + shift * total[i]) if factor > 0 else 0.0
                total[i] *= factor
            base[i] = top[i]


@compiled
def add_weights_single(scores: Any, first: Any, last: Any, base: Any, part: Any, part_moment: Any) -> None:
    r"""Add exp(d) and exp(d) d of a block's logits to the sums of each query, d = logit - base <= 0, in float32.

    d = k log 2 + r with an integer k and |r| <= log(2)/2 + 1e-5, and exp(r) by its Taylor polynomial of degree 7.
    Accuracy, u = 2**-24: the remainder is below |r|**8/8! exp(|r|) <= 8e-9 = 0.14 u, relative to exp(r) >= 0.7 0.2 u;
    k * 0.693359375 is exact and so is its difference from d, the low part of log 2 errs by 0.06 u and the last
    subtraction by 0.35 u, together r by 0.41 u; Horner's last addition errs by u, and what it adds, below 0.42/0.7 of
    the result, by 2.3 u of itself. In all below 4 u. A d below -87 counts as -87: a weight below 2e-38 more.
    """
    for j in range(scores.shape[0]):
        low, high = first[j], last[j]
        row, bases, parts, moments = scores[j, low:high], base[low:high], part[low:high], part_moment[low:high]
        for i in range(row.size):
            d = row[i] - bases[i]
            d = d if d > _LOWEST else _LOWEST
            k = (d * _PER_LOG2 + _ROUNDER) - _ROUNDER
            r = (d - k * _LOG2_HIGH) - k * _LOG2_LOW
            tail = ((((_C7 * r + _C6) * r + _C5) * r + _C4) * r + _C3) * r + _C2
            power = np.int32((k + _BIAS) * _EXPONENT).view(np.float32)  # the bits of 2**k
            weight = ((tail * r + _ONE) * r + _ONE) * power
            parts[i] += weight
            moments[i] += weight * d


@compiled
def add_weights_double(scores: Any, first: Any, last: Any, base: Any, part: Any, part_moment: Any) -> None:
    """As `add_weights_single`, in float64."""
    for j in range(scores.shape[0]):
        low, high = first[j], last[j]
        row, bases, parts, moments = scores[j, low:high], base[low:high], part[low:high], part_moment[low:high]
        for i in range(row.size):
            d = row[i] - bases[i]
            weight = math.exp(d)
            parts[i] += weight
            moments[i] += weight * d


@compiled
def pick(scores: Any, start: int, wanted: Any, found: Any) -> None:
    """Take the logit of each query's wanted key out of the block that holds it.

    Args:
        scores: logits, shape (keys, queries).
        start: index of the block's first key.
        wanted: index of each query's key, -1 for none.
        found: changed in place.
    """
    for i in range(wanted.size):
        j = wanted[i] - start
        if 0 <= j < scores.shape[0]:
            found[i] = scores[j, i]

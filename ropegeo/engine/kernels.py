"""Compiled loops over blocks of logits; numba only, no decisions. `sweep.py` says what the arrays mean.

A block is two arrays P and Q of shape (rows, half): row i is centred on a displacement S_i, and column j lies at
S_i + (j + 1/2) with logit P - Q, and at S_i - (j + 1/2) with logit P + Q.
"""

from __future__ import annotations

import math

import numpy as np

from ropegeo._arrays import BoolArray, FloatArray, IntArray
from ropegeo.engine.compiled import compiled


@compiled
def fill_rows(
    centre_re: FloatArray,
    centre_im: FloatArray,
    row_re: FloatArray,
    row_im: FloatArray,
    out_re: FloatArray,
    out_im: FloatArray,
) -> None:
    """(centre * row) by plane: the coefficients turned to the centre of each row of a block."""
    rows, planes = row_re.shape
    for i in range(rows):
        for k in range(planes):
            out_re[i, k] = centre_re[k] * row_re[i, k] - centre_im[k] * row_im[i, k]
            out_im[i, k] = centre_re[k] * row_im[i, k] + centre_im[k] * row_re[i, k]


@compiled
def column_tops(even: FloatArray, odd: FloatArray, rows: int, tops: FloatArray) -> float:
    """The largest logit of the first `rows` rows; `tops` (half) is overwritten.

    The maximum is taken down the columns, because a maximum along a row would be a chain that waits for itself.
    """
    half = even.shape[1]
    for j in range(half):
        tops[j] = -np.inf
    for i in range(rows):
        for j in range(half):
            value = even[i, j] + abs(odd[i, j])
            tops[j] = value if value > tops[j] else tops[j]
    top = -np.inf
    for j in range(half):
        top = max(top, tops[j])
    return top


@compiled
def row_top(even: FloatArray, odd: FloatArray, row: int) -> float:
    """The largest logit of one row."""
    top = -np.inf
    for j in range(even.shape[1]):
        value = even[row, j] + abs(odd[row, j])
        top = value if value > top else top
    return top


@compiled
def raise_tops(tops: FloatArray, value: float) -> None:
    """Take a value into the largest one or two seen, the largest first."""
    if tops.size == 2 and value > tops[0]:
        tops[1] = tops[0]
    if value > tops[0]:
        tops[0] = value
    elif tops.size == 2 and value > tops[1]:
        tops[1] = value


@compiled
def scan_tops(
    even: FloatArray,
    odd: FloatArray,
    place: int,
    size: int,
    start: int,
    tops: FloatArray,
    slack: float,
    found_at: IntArray,
    found: FloatArray,
    count: int,
) -> tuple[int, int]:
    """Candidates for the largest logit (`tops` of size 1) or the two largest (2), in increasing order of displacement.

    A displacement is kept if its logit is above the last of `tops` before it less `slack`, so that every true one is
    kept whatever the rounding. Rows that cannot hold one are passed over. The scan goes from `place` to `size` in the
    block and stops where `found` is full; `tops` is updated.

    Returns:
        The place to go on from, and the number kept so far.
    """
    half = even.shape[1]
    wide = 2 * half
    last = tops.size - 1
    while place < size:
        row = place // wide
        stop = min(size, (row + 1) * wide)
        if row_top(even, odd, row) <= tops[last] - slack:
            place = stop
            continue
        while place < stop:
            j = place - row * wide
            if j < half:
                value = even[row, half - 1 - j] + odd[row, half - 1 - j]
            else:
                value = even[row, j - half] - odd[row, j - half]
            if value > tops[last] - slack:
                if count == found.size:
                    return place, count
                found_at[count] = start + place
                found[count] = value
                count += 1
                raise_tops(tops, value)
            place += 1
    return place, count


@compiled
def retain(values: FloatArray, tops: FloatArray, slack: float) -> BoolArray:
    """Which values come within `slack` of the last of `tops` before them; `tops` is updated."""
    kept = np.zeros(values.size, np.bool_)
    for place in range(values.size):
        kept[place] = values[place] > tops[tops.size - 1] - slack
        raise_tops(tops, values[place])
    return kept


@compiled
def unfold(even: FloatArray, odd: FloatArray, out: FloatArray) -> None:
    """The logits of a block in increasing order of displacement."""
    half = even.shape[1]
    wide = 2 * half
    for place in range(out.size):
        row, column = place // wide, place % wide
        if column < half:
            out[place] = even[row, half - 1 - column] + odd[row, half - 1 - column]
        else:
            out[place] = even[row, column - half] - odd[row, column - half]


@compiled
def add_exponentials(logits: FloatArray, top: float, betas: FloatArray, sums: FloatArray, lost: FloatArray) -> None:
    """sums[b] += sum over logits of exp(betas[b] * (logit - top)), runs of 256 compensated into `lost` (Neumaier)."""
    for b in range(betas.size):
        for begin in range(0, logits.size, 256):
            part = 0.0
            for place in range(begin, min(begin + 256, logits.size)):
                part += math.exp(betas[b] * (logits[place] - top))
            total = sums[b] + part
            lost[b] += (sums[b] - total) + part if abs(sums[b]) >= abs(part) else (part - total) + sums[b]
            sums[b] = total

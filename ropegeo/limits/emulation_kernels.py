"""Compiled loops of the emulation: float32 dot products in one fixed order.

Every logit is the sum of float32 products, first coordinate first, each product and each sum rounded to float32. The
loops run along the keys, which do not depend on each other, so vector instructions change no order; nothing is
contracted into fused operations, since no option that would allow it is set.
"""

from __future__ import annotations

from typing import Any

from ropegeo.engine.compiled import compiled


@compiled
def sequential_dots(queries: Any, keys: Any, out: Any) -> None:
    """out[i, j] = ((q_i0 k_0j + q_i1 k_1j) + q_i2 k_2j) + ..., rounded to float32 at each step.

    Two queries at a time share the keys they read, and four coordinates at a time the sums.

    Args:
        queries: float32, shape (rows, coordinates), at least one coordinate.
        keys: float32, shape (coordinates, columns), contiguous; a tile that fits the second-level cache.
        out: float32, shape (rows, columns); overwritten.
    """
    rows, width = queries.shape
    columns = keys.shape[1]
    for i in range(0, rows, 2):
        other = i + 1 if i + 1 < rows else i  # the last of an odd number is done twice
        q, p, row, next_row = queries[i], queries[other], out[i], out[other]
        first = keys[0]
        a, e = q[0], p[0]
        for j in range(columns):
            key = first[j]
            row[j] = a * key
            next_row[j] = e * key
        k = 1
        while k + 4 <= width:
            a, b, c, d = q[k], q[k + 1], q[k + 2], q[k + 3]
            e, f, g, h = p[k], p[k + 1], p[k + 2], p[k + 3]
            one, two, three, four = keys[k], keys[k + 1], keys[k + 2], keys[k + 3]
            for j in range(columns):
                w, x, y, z = one[j], two[j], three[j], four[j]
                mine = (((row[j] + a * w) + b * x) + c * y) + d * z
                theirs = (((next_row[j] + e * w) + f * x) + g * y) + h * z
                row[j] = mine
                next_row[j] = theirs
            k += 4
        while k < width:
            a, e, one = q[k], p[k], keys[k]
            for j in range(columns):
                key = one[j]
                mine = row[j] + a * key
                theirs = next_row[j] + e * key
                row[j] = mine
                next_row[j] = theirs
            k += 1

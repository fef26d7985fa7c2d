"""Compiled loop of the search for admissible bases: B_m and its slope at the middle of a cell, for many m."""

from __future__ import annotations

from typing import Any

from ropegeo.engine.compiled import compiled

POSITIVE, NEGATIVE, OPEN = 1, -1, 0


@compiled
def judge(
    distances: Any,
    coarse_cos: Any,
    coarse_sin: Any,
    fine_cos: Any,
    fine_sin: Any,
    speeds: Any,
    half: float,
    bends: Any,
    errors: Any,
    verdicts: Any,
) -> int:
    """Whether B_m is positive, or negative, all over a cell; returns the place of the first negative one, or -1.

    m = W i + j: cos(m phi) and sin(m phi) by angle addition from the tables of W i phi and j phi.

    Args:
        distances: m, int64.
        coarse_cos: cos(W i phi_k), shape (i, planes).
        coarse_sin: sin of the same.
        fine_cos: cos(j phi_k), shape (W, planes).
        fine_sin: sin of the same.
        speeds: x_k phi_k: -d phi_k/du.
        half: half the cell's width.
        bends: (quadratic, linear) factors of the bound on |B_m''|: bends[0] m^2 + bends[1] m.
        errors: (linear, constant) factors of the bound on the error of B_m: errors[0] m + errors[1].
        verdicts: int8, overwritten for the distances looked at.
    """
    width, planes = fine_cos.shape
    for place in range(distances.size):
        m = distances[place]
        i, j = m // width, m % width
        value, slope = 0.0, 0.0
        for k in range(planes):
            c, s = coarse_cos[i, k], coarse_sin[i, k]
            f, g = fine_cos[j, k], fine_sin[j, k]
            value += c * f - s * g
            slope += speeds[k] * (s * f + c * g)
        error = errors[0] * m + errors[1]
        room = m * half * (abs(slope) + error) + half * half * (bends[0] * m * m + bends[1] * m) / 2 + error
        if value > room:
            verdicts[place] = POSITIVE
        elif value < -room:
            verdicts[place] = NEGATIVE
            return place
        else:
            verdicts[place] = OPEN
    return -1

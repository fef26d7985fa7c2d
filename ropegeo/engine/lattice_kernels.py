"""The compiled search of `return_lattice.py`: integer points of a ball, depth first."""

from __future__ import annotations

import numpy as np

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.engine.compiled import compiled


@compiled
def ball_points(
    upper: FloatArray, constant: FloatArray, radius2: float, max_nodes: int, points: IntArray
) -> tuple[int, int]:
    """All integer z with |upper z + constant|^2 <= radius2, depth first: how many, and nodes visited.

    The first ones that fit are written to `points`. Stops with more than `max_nodes` nodes if there are more.
    """
    size = upper.shape[0]
    z = np.zeros(size, dtype=np.int64)
    last = np.zeros(size, dtype=np.int64)
    centre = np.zeros(size)
    rest = np.zeros(size + 1)
    rest[size] = radius2
    count, nodes, level, enter = 0, 0, size - 1, True
    while level < size:
        if enter:
            middle = constant[level]
            for j in range(level + 1, size):
                middle += upper[level, j] * z[j]
            centre[level] = middle
            half = np.sqrt(rest[level + 1])
            first = np.ceil((-middle - half) / upper[level, level])
            final = np.floor((-middle + half) / upper[level, level])
            if final - first > max_nodes:
                return count, max_nodes + 1
            last[level] = int(final)
            z[level] = int(first) - 1
            enter = False
        if level == 0:
            nodes += max(0, last[0] - z[0])
            if nodes > max_nodes:
                return count, nodes
            for value in range(z[0] + 1, last[0] + 1):
                if count < points.shape[0]:
                    z[0] = value
                    points[count] = z
                count += 1
            level = 1
            continue
        z[level] += 1
        if z[level] > last[level]:
            level += 1
            continue
        nodes += 1
        if nodes > max_nodes:
            return count, nodes
        part = centre[level] + upper[level, level] * z[level]
        rest[level] = max(0.0, rest[level + 1] - part * part)
        level -= 1
        enter = True
    return count, nodes

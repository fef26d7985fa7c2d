"""Bounds on the margin of an index head on one plane by the length alone, docs/MATHEMATICS.md, sections 5 and 6.

A query with offset s at length n sees the displacements t = d - s of -s..n-1-s, so its reach is T = max(s, n-1-s), and
the pigeonhole gives 1 - cos(2 pi/(T+1)) <= 2 pi^2/(T+1)^2. Margins are in units of beta.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from ropegeo._arrays import FloatArray
from ropegeo.asymptotics.bounds.scope import within


def adjacent_bound(
    angle: Float[FloatArray, "*#shape"], length: Float[FloatArray, "*#shape"]
) -> Float[FloatArray, "*#shape"]:
    """1 - cos(theta): no one-plane index head has a larger margin, whatever its offset, once it sees two positions.

    Attained at n = 2, and at every reach T with (T + 1) theta <= 2 pi.

    Args:
        angle: theta in radians per position, any real number.
        length: n >= 2.

    Raises:
        InvalidInputError: a length below 2, where nothing competes, or an angle that is not finite.

    Accuracy: relative error below 1e-15 (sine form).

    Source: Urrutia et al., arXiv 2605.31558, Theorem 3.2; proof in derivations, `index_adjacent`.

    Example:
        >>> float(adjacent_bound(np.array(np.pi), np.array(2.0)))
        2.0
    """
    inside = np.isfinite(angle) & (length >= 2)
    within("adjacent_bound", inside, "a finite angle, length >= 2", angle=angle, length=length)
    bound: FloatArray = np.broadcast_to(2 * np.sin(angle / 2) ** 2, inside.shape).copy()
    return bound


def index_bound_as_printed(length: Float[FloatArray, "*shape"]) -> Float[FloatArray, "*shape"]:
    """2 pi^2/n^2, the bound on Index(n) as Theorem 3.2 prints it.

    It holds for letter queries (offset 0, T + 1 = n). A query of another offset sees displacements up to T only, and
    near half the length its margin can be larger: first at n = 4 (offset 1, angle 2 pi/3), with angles of at most 1
    first at n = 7 (offset 1, angle 1: 0.4597 against 0.4028). Use `index_bound`, `index_bound_any_offset` or
    `dirichlet_bound` there.

    Args:
        length: n >= 2.

    Raises:
        InvalidInputError: a length below 2.

    Accuracy: relative error below 1e-15.

    Source: Urrutia et al., arXiv 2605.31558, Theorem 3.2; where it holds: derivations, `index_window`.
    """
    within("index_bound_as_printed", length >= 2, "length >= 2", length=length)
    bound: FloatArray = np.asarray(2 * (np.pi / length) ** 2)
    return bound


def index_bound(
    length: Float[FloatArray, "*#shape"], max_offset: Float[FloatArray, "*#shape"]
) -> Float[FloatArray, "*#shape"]:
    """2 pi^2/(n-m)^2: no one-plane index head has a larger margin at any offset up to m, whatever its angle.

    T + 1 >= n - m for these offsets. Once m is above (n-1)/2, `index_bound_any_offset` is smaller.

    Args:
        length: n >= 2.
        max_offset: m, from 0 (letter queries) to n - 1.

    Raises:
        InvalidInputError: a value outside these ranges.

    Accuracy: relative error below 1e-15.

    Source: docs/MATHEMATICS.md, section 6; proof in derivations, `index_window`.

    Example:
        >>> float(index_bound(np.array(9.0), np.array(8.0))) == 2 * np.pi**2
        True
    """
    inside = (length >= 2) & (max_offset >= 0) & (max_offset <= length - 1)
    needs = "length >= 2, 0 <= max_offset <= length - 1"
    within("index_bound", inside, needs, length=length, max_offset=max_offset)
    bound: FloatArray = np.asarray(2 * (np.pi / (length - max_offset)) ** 2)
    return bound


def index_bound_any_offset(length: Float[FloatArray, "*shape"]) -> Float[FloatArray, "*shape"]:
    """8 pi^2/(n+1)^2: no one-plane index head has a larger margin at any offset, whatever its angle.

    T + 1 >= (n+1)/2 whatever the offset. The factor 8 cannot be lowered: offset (n-1)/2, n odd, with angle 4 pi/(n+1)
    has more than 1 - 14/n^2 times the bound.

    Args:
        length: n >= 2.

    Raises:
        InvalidInputError: a length below 2.

    Accuracy: relative error below 1e-15.

    Source: docs/MATHEMATICS.md, section 6; proof in derivations, `index_window`.
    """
    within("index_bound_any_offset", length >= 2, "length >= 2", length=length)
    bound: FloatArray = np.asarray(8 * (np.pi / (length + 1)) ** 2)
    return bound

"""Bounds on the margin of an index head on one plane by the length alone, docs/MATHEMATICS.md, sections 5 and 6.

A query with offset s at length n sees the displacements t = d - s of -s..n-1-s, so its reach is T = max(s, n-1-s), and
the pigeonhole gives 1 - cos(2 pi/(T+1)) <= 2 pi^2/(T+1)^2. Margins are in units of beta. Arguments: see `scope`.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ropegeo._arrays import FloatArray
from ropegeo.asymptotics.bounds.scope import EXACT, doubles, sizeable, whole, within


def adjacent_bound(angle: ArrayLike, length: ArrayLike) -> Float[FloatArray, "*shape"]:
    """1 - cos(theta): no one-plane index head has a larger margin, whatever its offset, once it sees two positions.

    Attained at n = 2, and at every reach T with (T + 1) theta <= 2 pi.

    Args:
        angle: theta in radians per position, 0 or of size 1e-150 to 1e150.
        length: n, a whole number from 2 to 1e150.

    Raises:
        InvalidInputError: anything else; below length 2 nothing competes.

    Accuracy: relative error below 1e-15 (sine form).

    Source: Urrutia et al., arXiv 2605.31558, Theorem 3.2; proof in derivations, `index_adjacent`.

    Example:
        >>> float(adjacent_bound(np.array(np.pi), np.array(2.0)))
        2.0
    """
    angle, length = doubles("adjacent_bound", angle=angle, length=length)
    whole("adjacent_bound", length=length)
    sizeable("adjacent_bound", angle=angle)
    within("adjacent_bound", length >= 2, "length >= 2", length=length)
    bound: FloatArray = np.asarray(2 * np.sin(angle / 2) ** 2)
    return bound


def index_bound_as_printed(length: ArrayLike) -> Float[FloatArray, "*shape"]:
    """2 pi^2/n^2, the bound on Index(n) as Theorem 3.2 prints it.

    It holds for letter queries (offset 0, T + 1 = n). A query of another offset sees displacements up to T only, and
    near half the length its margin can be larger: first at n = 4 (offset 1, angle 2 pi/3), with angles of at most 1
    first at n = 7 (offset 1, angle 1: 0.4597 against 0.4028). Use `index_bound`, `index_bound_any_offset` or
    `dirichlet_bound` there.

    Args:
        length: n, a whole number from 2 to 1e150.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 1e-15.

    Source: Urrutia et al., arXiv 2605.31558, Theorem 3.2; where it holds: derivations, `index_window`.
    """
    (length,) = doubles("index_bound_as_printed", length=length)
    whole("index_bound_as_printed", length=length)
    within("index_bound_as_printed", length >= 2, "length >= 2", length=length)
    bound: FloatArray = np.asarray(2 * (np.pi / length) ** 2)
    return bound


def index_bound(length: ArrayLike, max_offset: ArrayLike) -> Float[FloatArray, "*shape"]:
    """2 pi^2/(n-m)^2: no one-plane index head has a larger margin at any offset up to m, whatever its angle.

    T + 1 >= n - m for these offsets. Once m is above (n-1)/2, `index_bound_any_offset` is smaller.

    Args:
        length: n, a whole number, 2 <= n < 2^53: n - m is exact.
        max_offset: m, a whole number from 0 (letter queries) to n - 1.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 1e-15.

    Source: docs/MATHEMATICS.md, section 6; proof in derivations, `index_window`.

    Example:
        >>> float(index_bound(np.array(9.0), np.array(8.0))) == 2 * np.pi**2
        True
    """
    length, max_offset = doubles("index_bound", length=length, max_offset=max_offset)
    whole("index_bound", length=length, max_offset=max_offset)
    inside = (length >= 2) & (length < EXACT) & (max_offset >= 0) & (max_offset < length)
    needs = "2 <= length < 2^53, 0 <= max_offset < length"
    within("index_bound", inside, needs, length=length, max_offset=max_offset)
    bound: FloatArray = np.asarray(2 * (np.pi / (length - max_offset)) ** 2)
    return bound


def index_bound_any_offset(length: ArrayLike) -> Float[FloatArray, "*shape"]:
    """8 pi^2/(n+1)^2: no one-plane index head has a larger margin at any offset, whatever its angle.

    T + 1 >= (n+1)/2 whatever the offset. The factor 8 cannot be lowered: offset (n-1)/2, n odd, with angle 4 pi/(n+1)
    has more than 1 - 14/n^2 times the bound.

    Args:
        length: n, a whole number from 2 to 1e150.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 1e-15.

    Source: docs/MATHEMATICS.md, section 6; proof in derivations, `index_window`.
    """
    (length,) = doubles("index_bound_any_offset", length=length)
    whole("index_bound_any_offset", length=length)
    within("index_bound_any_offset", length >= 2, "length >= 2", length=length)
    bound: FloatArray = np.asarray(8 * (np.pi / (length + 1)) ** 2)
    return bound

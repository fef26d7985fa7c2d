"""Bounds on the margin of an index head on one plane, docs/MATHEMATICS.md, sections 5 and 6.

The reach T = max(s, n-1-s) is the largest displacement from offset s that length n shows. Margins are in units of beta.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from ropegeo._arrays import FloatArray
from ropegeo.asymptotics.bounds.scope import within


def dirichlet_bound(reach: Float[FloatArray, "*shape"]) -> Float[FloatArray, "*shape"]:
    """1 - cos(2 pi/(T+1)): no one-plane index head has a larger margin at reach T, whatever its angle.

    Attained by theta = 2 pi p/(T+1) with gcd(p, T+1) = 1.

    Args:
        reach: T >= 1.

    Raises:
        InvalidInputError: a reach below 1.

    Accuracy: relative error below 1e-15 (sine form).

    Source: docs/MATHEMATICS.md, section 5 (Dirichlet 1842); proof in derivations, `dirichlet_bound`.

    Example:
        >>> float(dirichlet_bound(np.array(1.0)))
        2.0
    """
    within("dirichlet_bound", reach >= 1, "reach >= 1", reach=reach)
    bound: FloatArray = np.asarray(2 * np.sin(np.pi / (reach + 1)) ** 2)
    return bound


def index_bound_as_printed(length: Float[FloatArray, "*shape"]) -> Float[FloatArray, "*shape"]:
    """2 pi^2/n^2, the bound on Index(n) as Theorem 3.2 prints it.

    It holds for letter queries (offset 0, T + 1 = n). For an offset near half the length only T + 1 = n - i positions
    compete and the margin can exceed it (n = 7, offset 1, angle 1: 0.4597 against 0.4028): use `dirichlet_bound` there.

    Args:
        length: n >= 2.

    Raises:
        InvalidInputError: a length below 2.

    Source: Urrutia et al., arXiv 2605.31558, Theorem 3.2; scope: docs/MATHEMATICS.md, section 6.
    """
    within("index_bound_as_printed", length >= 2, "length >= 2", length=length)
    bound: FloatArray = np.asarray(2 * (np.pi / length) ** 2)
    return bound

"""Candidates: displacements whose logit may be a running maximum, or one of the two largest, up to rounding.

A search keeps every displacement whose logit comes within a slack of the largest before it. On a slow plane the logit
may rise for millions of displacements, each a running maximum. Where only the maxima over some windows are
wanted, all but those that come near one of them are dropped when room runs out (`thinned`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ropegeo._arrays import FloatArray, IntArray

CAPACITY = 4096
"""Candidates that are held before they are thinned, and that may be left over after it."""


class TooManyTiesError(Exception):
    """So many logits lie within the rounding error of the maximum that they cannot be listed."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Found:
    """Candidates in increasing order of displacement, and the largest logit.

    Attributes:
        at: displacements.
        logits: their logits without the constant.
        best: the largest of all logits of the range.
    """

    at: IntArray
    logits: FloatArray
    best: float


def thinned(
    at: IntArray, logits: FloatArray, *, ends: Sequence[int], slack: float, places: int
) -> tuple[IntArray, FloatArray]:
    """Those candidates that come within `slack` of a maximum that is wanted.

    Args:
        at: displacements in increasing order, shape (found,).
        logits: theirs.
        ends: last displacements of the windows whose maximum is wanted, increasing; each window begins where all begin.
        slack: twice the error of a logit.
        places: 1 for the largest of each window; 2 for the two largest of one window.
    """
    if places == 2:
        kept = logits >= np.sort(logits)[-2:][0] - slack
        return at[kept], logits[kept]
    window = np.searchsorted(np.array(ends, dtype=np.int64), at, side="left")  # the first window that holds it
    last = np.searchsorted(window, window, side="right") - 1
    kept = logits > np.maximum.accumulate(logits)[last] - slack
    kept |= logits == np.maximum.accumulate(logits)[last]  # a slack of 0 keeps the maximum itself
    return at[kept], logits[kept]

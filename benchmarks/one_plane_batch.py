"""README: a million one-plane index margins, lengths log-uniform to 10^30, and 100 of them against the certified route.

Angles are log-uniform from 1e-6 to pi. The time is that of `one_plane_margins` after one small call has compiled it;
the result is printed as JSON.
"""

from __future__ import annotations

import json
import platform
import statistics
import time
from fractions import Fraction

import numba
import numpy as np

from ropegeo.engine.diophantine import one_plane_staircase
from ropegeo.engine.one_plane_batch import RELATIVE_ERROR, one_plane_margins
from ropegeo.exact import ClosedForm

PAIRS = 10**6
CHECKED = 100
ROUNDS = 3


def certified(angle: float, reach: int) -> float:
    """The margin by continued fractions and ball arithmetic."""
    stairs = one_plane_staircase(ClosedForm.of(Fraction(angle)), reach)
    return float(stairs.margin(stairs.index_at(reach)))


def main() -> None:
    """Time the batch, then compare."""
    rng = np.random.default_rng(2026)
    angles = np.exp(rng.uniform(np.log(1e-6), np.log(np.pi), PAIRS))
    reaches = [max(1, int(10.0**power) - 1) for power in rng.uniform(np.log10(2), 30, PAIRS)]
    one_plane_margins(angles[:10], reaches[:10])
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        margins = one_plane_margins(angles, reaches)
        times.append(time.perf_counter() - start)
    chosen = rng.choice(PAIRS, CHECKED, replace=False)
    start = time.perf_counter()
    right = [certified(float(angles[pair]), reaches[pair]) for pair in chosen]
    per_certified = (time.perf_counter() - start) / CHECKED
    difference = max(abs(float(margins[pair]) / value - 1) for pair, value in zip(chosen, right, strict=True))
    result = {
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "pairs": PAIRS,
        "rounds": ROUNDS,
        "median_seconds": statistics.median(times),
        "certified_seconds_per_pair": per_certified,
        "checked": CHECKED,
        "largest_relative_difference": difference,
        "within_stated_error": difference <= RELATIVE_ERROR,
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

"""README: the exact route to a one-plane margin against evaluating every displacement.

Both compute the margin of the angle 10000^(-2/128) at the same reach, alternately in one process; the ratio of medians
is printed as JSON, with the largest difference of the results. Also the time of the exact route at length 10^30.
"""

from __future__ import annotations

import json
import platform
import statistics
import time
from collections.abc import Callable

import numpy as np

from ropegeo.engine.diophantine import one_plane_staircase
from ropegeo.exact import read_angle

ANGLE = read_angle("10000^(-2/128)")
REACH = 10**6
ROUNDS = 9


def exact(reach: int = REACH) -> float:
    """Continued fractions and ball arithmetic."""
    steps = one_plane_staircase(ANGLE, reach)
    return float(steps.margin(steps.index_at(reach)))


def brute_force() -> float:
    """2 sin^2 at every displacement, in numpy (float64 phases: fine to this reach, wrong far beyond it)."""
    return float((2 * np.sin(np.arange(1, REACH + 1) * (float(ANGLE) / 2)) ** 2).min())


def seconds(function: Callable[[], float]) -> tuple[float, float]:
    """Wall time and result of one call."""
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


def main() -> None:
    """Alternate the routes and print medians, ratio and agreement."""
    times: dict[str, list[float]] = {"exact": [], "brute_force": [], "exact_at_1e30": []}
    difference = 0.0
    for _ in range(ROUNDS + 1):
        first, a = seconds(exact)
        second, b = seconds(brute_force)
        third, _ = seconds(lambda: exact(10**30))
        for name, value in zip(times, (first, second, third), strict=True):
            times[name].append(value)
        difference = max(difference, abs(a - b))
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}
    result = {
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "reach": REACH,
        "rounds": ROUNDS,
        "median_seconds": medians,
        "ratio_brute_force_to_exact": medians["brute_force"] / medians["exact"],
        "largest_difference": difference,
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

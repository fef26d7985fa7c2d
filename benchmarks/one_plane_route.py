"""README: the exact route to a one-plane margin against evaluating every displacement.

Both compute the margin of the angle 10000^(-2/128) at the same reach, in turn in one process and on one thread; the
ratio of medians is printed as JSON, with the largest difference of the results. Also the time of the exact route at
length 10^30, and the peak memory of each in a process of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import numpy as np
from measure import alternate, in_own_process, machine, report_peak

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


SIDES: dict[str, Callable[[], float]] = {
    "exact": exact,
    "brute_force": brute_force,
    "exact_at_1e30": lambda: exact(10**30),
}


def main() -> None:
    """Run the routes in turn and print medians, ratio and agreement."""
    found: dict[str, float] = {}
    times = alternate(SIDES, ROUNDS, pause=0, check=found.__setitem__)
    result = {
        **machine(),
        "threads": 1,
        "reach": REACH,
        **times.shown(),
        "ratio_brute_force_to_exact": times.ratio("brute_force", "exact"),
        "largest_difference": abs(found["exact"] - found["brute_force"]),
        "peak": {name: in_own_process(__file__, "--peak", name) for name in SIDES},
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        report_peak(SIDES[sys.argv[2]])
    else:
        main()

"""README: a million one-plane index margins, lengths log-uniform to 10^30, and 100 of them against the certified route.

Angles are log-uniform from 1e-6 to pi. The time is that of `one_plane_margins`, on one thread, after one call has
compiled it, reading the lengths (Python integers) included; peak memory is that of a process of its own, imports and
the million Python integers included. The result is printed as JSON.
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from typing import Any

import numpy as np
from measure import Timing, alternate, in_own_process, machine, report_peak, timed

from ropegeo.engine.diophantine import one_plane_staircase
from ropegeo.engine.one_plane_batch import RELATIVE_ERROR, one_plane_margins
from ropegeo.exact import ClosedForm

PAIRS = 10**6
CHECKED = 100
ROUNDS = 5


def pairs() -> tuple[Any, list[int]]:
    """Angles and reaches."""
    rng = np.random.default_rng(2026)
    angles = np.exp(rng.uniform(np.log(1e-6), np.log(np.pi), PAIRS))
    return angles, [max(1, int(10.0**power) - 1) for power in rng.uniform(np.log10(2), 30, PAIRS)]


def certified(angle: float, reach: int) -> float:
    """The margin by continued fractions and ball arithmetic."""
    stairs = one_plane_staircase(ClosedForm.of(Fraction(angle)), reach)
    return float(stairs.margin(stairs.index_at(reach)))


def main() -> None:
    """Time the batch, then compare."""
    angles, reaches = pairs()
    found: dict[str, Any] = {}
    times = alternate({"batch": lambda: one_plane_margins(angles, reaches)}, ROUNDS, check=found.__setitem__)
    chosen = np.random.default_rng(0).choice(PAIRS, CHECKED, replace=False)
    timing = Timing()
    right = timed(lambda: [certified(float(angles[pair]), reaches[pair]) for pair in chosen], timing)
    difference = max(abs(float(found["batch"][pair]) / value - 1) for pair, value in zip(chosen, right, strict=True))
    result = {
        **machine(),
        "threads": 1,
        "pairs": PAIRS,
        **times.shown(),
        "certified_seconds_per_pair": timing.median / CHECKED,
        "checked": CHECKED,
        "largest_relative_difference": difference,
        "within_stated_error": difference <= RELATIVE_ERROR,
        "peak": in_own_process(__file__, "--peak"),
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        given = pairs()
        report_peak(lambda: one_plane_margins(*given))
    else:
        main()

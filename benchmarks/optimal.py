"""Best index heads: rows that are generated against the whole linear program, and long windows in little memory.

Two measurements, base 1e4, head_dim 128, 64 planes:

* Rows. Without phases, reach 4096 and 16384: `search` (rows added where a head does worst) against HiGHS on every row
  of the window at once, through the same scipy call and to the same tolerance. The values must agree to 1e-9.
* Long. Length 1024 and 131072 with phases, offsets 0, 3 and n/2, each in a process of its own that designs the head and
  proves both bounds in balls: seconds of that first call (kernels from their cache), peak memory, relative gap.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import Any

import numpy as np
from measure import alternate, in_own_process, machine, report_peak

from ropegeo.optimal.game import solve_game
from ropegeo.optimal.head import TOLERANCE, optimal_head
from ropegeo.optimal.search import search
from ropegeo.optimal.window import Window
from ropegeo.spectrum import RopeSpectrum

SPECTRUM = RopeSpectrum.from_base(10000, head_dim=128)
REACHES = (4096, 16384)
LONG = [(1024, 0), (1024, 3), (1024, 512), (131072, 0), (131072, 3), (131072, 65536)]


def generated(reach: int) -> float:
    """The value by generated rows."""
    found = search(
        SPECTRUM,
        Window(length=reach + 1),
        phases="zero",
        planes=range(SPECTRUM.planes),
        tolerance=TOLERANCE,
        max_rounds=100,
    )
    return found.margin


def whole(reach: int) -> float:
    """The value of the game with every row."""
    halves = SPECTRUM.phases(np.arange(1, reach + 1)) / 2
    return solve_game(2 * np.sin(halves) ** 2).value


def rows(reach: int, rounds: int) -> dict[str, Any]:
    """The first measurement at one reach."""
    values: dict[str, float] = {}
    times = alternate(
        {"generated": partial(generated, reach), "whole": partial(whole, reach)}, rounds, check=values.__setitem__
    )
    return {
        "reach": reach,
        **times.shown(),
        "whole_over_generated": times.ratio("whole", "generated"),
        "difference_of_values": abs(values["whole"] - values["generated"]),
    }


def main(rounds: int) -> None:
    """Measure and print JSON."""
    report = {
        **machine(),
        "rows": [rows(reach, rounds) for reach in REACHES],
        "long": [{"length": n, "offset": s, **in_own_process(__file__, "--peak", str(n), str(s))} for n, s in LONG],
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        report_peak(lambda: optimal_head(SPECTRUM, length=int(sys.argv[2]), offset=int(sys.argv[3])))
    else:
        main(int((sys.argv[1:2] or ["5"])[0]))

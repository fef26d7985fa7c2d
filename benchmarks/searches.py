"""README: the searches find the steps of the whole sweep, in a fraction of its time, and reach beyond what it can.

Heads have equal weights on planes 0-7, 0-11 or all 64 of Llama 3.1's spectrum. Every run is that of
`staircase(profile, reach, route=...)`: search, exact comparison of candidates in ball arithmetic, nothing kept from one
run to the next. All routes run in one process, in turn, on the threads stated (`lattice` uses one).

* `to_1e9`: other routes against `streamed`, which evaluates every displacement: `lattice` for planes 0-7 and 0-11,
  `pruned` for planes 0-23 and all 64, and `auto` for each. The steps must be the same ones, else the script fails.
* `beyond`: planes 0-7 to 10^10 and 10^30, all 64 planes to 10^10, by `auto`: which route it takes, how many steps.
  With all planes equal, slow ones do not return: the margin falls once, at distance 1, and the search proves that there
  is no other step.
* `pruned_8`: planes 0-7 to 10^9 by `pruned`, run once: branch and bound gains by slow planes, and here it is slower
  than the stream.

Peak memory is that of a process of its own, imports included.

Prints JSON. Usage: python benchmarks/searches.py [rounds, default 5]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measure import Timing, alternate, in_own_process, machine, report_peak, timed

from ropegeo import LogitProfile, preset
from ropegeo.engine.staircase import RecordStaircase, staircase
from ropegeo.engine.threads import thread_count

SPECTRUM = preset("llama-3.1-8b")
REACH = 10**9
COMPARED = {8: "lattice", 12: "lattice", 24: "pruned", 64: "pruned"}
"""The route of each number of planes that is compared to the stream."""
BEYOND = ((8, 10**10), (8, 10**30), (64, 10**10))
THREADS = thread_count()


def search(planes: int, reach: int, route: str) -> RecordStaircase:
    """The staircase of equal weights on the first few planes."""
    weights = np.zeros(SPECTRUM.planes, dtype=np.complex128)
    weights[:planes] = 1 / planes
    found = staircase(LogitProfile(spectrum=SPECTRUM, coefficients=weights), reach, route=route, threads=THREADS)
    if not isinstance(found, RecordStaircase):
        raise TypeError("several planes give a RecordStaircase")
    return found


def same(one: RecordStaircase, other: RecordStaircase) -> None:
    """Fail unless two routes found the same steps, all of them compared exactly.

    Raises:
        RuntimeError: they did not.
    """
    if one.steps != other.steps or one.slack or other.slack:
        raise RuntimeError(f"{one.method} and {other.method} differ: {one.steps} and {other.steps}")


def compared(planes: int, route: str, rounds: int) -> dict[str, Any]:
    """A route and `auto` against the stream, to `REACH`."""
    found: dict[str, RecordStaircase] = {}

    def check(name: str, value: RecordStaircase) -> None:
        found[name] = value
        same(value, next(iter(found.values())))

    routes = ("streamed", route, "auto")
    sides: dict[str, Callable[[], RecordStaircase]] = {name: partial(search, planes, REACH, name) for name in routes}
    times = alternate(sides, rounds, check=check)
    return {
        "planes": planes,
        "reach": REACH,
        **times.shown(),
        "speed_ratio_to_streamed": {name: times.ratio("streamed", name) for name in routes[1:]},
        "auto_took": found["auto"].method,
        "steps": len(found["streamed"].steps),
        "same_steps": True,
    }


def beyond(rounds: int) -> dict[str, Any]:
    """What `auto` does where streaming takes long or does not end."""
    sides = {f"planes_{planes}_to_{reach:.0e}": partial(search, planes, reach, "auto") for planes, reach in BEYOND}
    found: dict[str, RecordStaircase] = {}
    times = alternate(sides, rounds, check=found.__setitem__)
    return {
        **times.shown(),
        "auto_took": {name: each.method for name, each in found.items()},
        "steps": {name: len(each.steps) for name, each in found.items()},
        "last_step": {name: each.steps[-1] for name, each in found.items()},
    }


def main(rounds: int) -> None:
    """Run all and print JSON."""
    timing = Timing()
    skipping = timed(partial(search, 8, REACH, "pruned"), timing)
    same(search(8, REACH, "streamed"), skipping)
    report = {
        **machine(),
        "threads": THREADS,
        "to_1e9": [compared(planes, route, rounds) for planes, route in COMPARED.items()],
        "beyond": beyond(rounds),
        "pruned_8": {"runs": 1, "reach": REACH, "same_steps": True, "seconds": timing.median},
        "peak": {
            f"planes_{planes}_to_{reach:.0e}_{route}": in_own_process(
                __file__, "--peak", str(planes), str(reach), route
            )
            for planes, reach, route in (
                (8, REACH, "streamed"),
                (8, REACH, "lattice"),
                *((planes, reach, "auto") for planes, reach in BEYOND),
            )
        },
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        report_peak(partial(search, int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
    else:
        main(int((sys.argv[1:2] or ["5"])[0]))

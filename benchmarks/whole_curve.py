"""README: the margin at every length up to N costs about what its value at N alone does; cost is linear, memory fixed.

Heads have 64 planes (base 10000, head_dim 128), all of them active: one of equal weights, whose margin falls once, as
slow planes do not return; and one of weights 2^-k, whose margin falls again and again. Three measurements, on the
threads stated:

1. For all n <= 10^7, both heads in turn in one process: `maximum`, the largest logit at 1..10^7 alone (`Sweep.maxima`);
   `records`, all its running maxima (`Sweep.records`), hence the margin at every n; `certified`, the same from the head
   alone, by `staircase`, streamed, every step compared in ball arithmetic and every margin proved to 17 digits. Tables
   are ready before the first two begin; the third makes them within its time.
2. With weights 2^-k, `Sweep.records` over 1..N for N = 2^24 .. 2^30. For each N it is run as often as makes 2^30
   displacements, so that every time taken is of equal work. The slope of log seconds against log N is that of the
   least-squares line through the medians, with its standard error; 1 is linear cost.
3. With weights 2^-k, `Sweep.records` over 1..10^9 in a process of its own: peak memory before and after, and seconds of
   the one call.

Prints JSON. Usage: python benchmarks/whole_curve.py [rounds, default 9]
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from measure import alternate, in_own_process, machine, report_peak

from ropegeo.engine.staircase import RecordStaircase, staircase
from ropegeo.engine.sweep import Sweep
from ropegeo.engine.threads import thread_count
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum

PLANES = 64
SPECTRUM = RopeSpectrum.from_base(10000, head_dim=2 * PLANES)
HEADS = {
    "equal": LogitProfile(spectrum=SPECTRUM, coefficients=np.full(PLANES, 1 / PLANES)),
    "falling": LogitProfile(spectrum=SPECTRUM, coefficients=np.ldexp(1.0, -np.arange(1, PLANES + 1))),
}
REACH = 10**7
EXPONENTS = range(24, 31)
LONG = 10**9


def certified(head: LogitProfile, threads: int) -> tuple[RecordStaircase, list[float]]:
    """The staircase to `REACH` by the sweep, and the proved margin from each step on."""
    stairs = staircase(head, REACH, route="streamed", threads=threads)
    if not isinstance(stairs, RecordStaircase):
        raise TypeError("several planes give a RecordStaircase")
    return stairs, [float(stairs.margin(step)) for step in range(len(stairs.steps))]


def curve(threads: int, rounds: int) -> dict[str, Any]:
    """The first measurement."""
    sides: dict[str, Callable[[], Any]] = {}
    for name, head in HEADS.items():
        swept = Sweep((head,), threads=threads)
        sides[f"{name}_maximum"] = partial(swept.maxima, 1, REACH)
        sides[f"{name}_records"] = partial(swept.records, 1, REACH)
        sides[f"{name}_certified"] = partial(certified, head, threads)
    found: dict[str, Any] = {}
    times = alternate(sides, rounds, check=found.__setitem__)
    results: dict[str, Any] = {}
    for name, head in HEADS.items():
        maximum, records = float(found[f"{name}_maximum"][0]), found[f"{name}_records"][0]
        stairs, margins = found[f"{name}_certified"]
        results[name] = {
            "records_over_maximum": times.ratio(f"{name}_records", f"{name}_maximum"),
            "certified_over_maximum": times.ratio(f"{name}_certified", f"{name}_maximum"),
            "processor_records_over_maximum": times.processor_ratio(f"{name}_records", f"{name}_maximum"),
            "candidates": len(records.at),
            "steps": len(stairs.steps),
            "steps_are_candidates": set(stairs.steps) <= set(records.at.tolist()),
            "difference_of_maxima": abs(maximum - records.best),
            "difference_of_last_margin": abs(head.weight - maximum - margins[-1]),
        }
    return {**times.shown(), "heads": results}


def repeated(swept: Sweep, count: int) -> None:
    """Records over 1..count, as often as makes the largest N."""
    for _ in range((1 << EXPONENTS[-1]) // count):
        swept.records(1, count)


def slope(seconds: Mapping[int, float]) -> dict[str, float]:
    """Of log seconds against log N: the slope of the least-squares line, and its standard error."""
    x, y = np.log(list(seconds)), np.log(list(seconds.values()))
    spread = x - x.mean()
    rise = float(spread @ y / (spread @ spread))
    rest = y - y.mean() - rise * spread
    return {"slope": rise, "standard_error": math.sqrt(float(rest @ rest) / (len(x) - 2) / float(spread @ spread))}


def against_n(threads: int, rounds: int) -> dict[str, Any]:
    """The second measurement."""
    swept = Sweep((HEADS["falling"],), threads=threads)
    times = alternate({str(1 << power): partial(repeated, swept, 1 << power) for power in EXPONENTS}, rounds)
    calls = {int(name): timing.median * int(name) / (1 << EXPONENTS[-1]) for name, timing in times.sides.items()}
    return {**times.shown(), "seconds_per_call": calls, **slope(calls)}


def main(rounds: int, threads: int) -> None:
    """Measure and print JSON."""
    report = {
        **machine(),
        "threads": threads,
        "planes": PLANES,
        "whole_curve": {"reach": REACH, **curve(threads, rounds)},
        "against_n": against_n(threads, rounds),
        "long": {"distances": LONG, **in_own_process(__file__, "--peak")},
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        ready = Sweep((HEADS["falling"],), threads=thread_count())
        report_peak(lambda: ready.records(1, LONG))
    else:
        main(int((sys.argv[1:2] or ["9"])[0]), thread_count())

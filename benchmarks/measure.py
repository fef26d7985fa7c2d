"""What the benchmarks share: machine and versions, sides that take turns, peak memory.

Fairness. Sides run in one process, and every round begins with another side, so that none always follows the same one;
the first round warms up (compiles, loads, allocates) and is not counted. Pools of threads go on spinning for a while
after their work is done (OpenBLAS some 0.1 s), and would take a core from whoever comes next: before each timed call
there is a pause, at the end of which the processor time of this process is read, so that a report shows whether
anything still span. A result is looked at and freed after the clock is read.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

PACKAGES = ("ropegeo", "numpy", "numba", "scipy", "python-flint", "torch", "typer")
PAUSE = 0.5
WATCHED = 0.05
"""Seconds before a timed call, and those at their end in which the process should do nothing."""


def machine() -> dict[str, Any]:
    """Processor, cores, system, Python and packages, and the pools of threads that are loaded."""
    cpu = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").is_file():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), cpu)
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    pools = [{key: pool[key] for key in ("internal_api", "version", "num_threads")} for pool in threadpool_info()]
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
        "pools": pools,
    }


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Wall time and processor time (all threads of this process) of one side's counted calls, in seconds."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Median wall time."""
        return statistics.median(self.wall)

    def shown(self) -> dict[str, float]:
        """What a report says of it."""
        return {
            "median": self.median,
            "least": min(self.wall),
            "most": max(self.wall),
            "median_own_processor": statistics.median(self.processor),
        }


@dataclass(frozen=True, kw_only=True)
class Times:
    """The timings of all sides, and the largest share of a core that was still busy before a timed call."""

    sides: dict[str, Timing]
    rounds: int
    pause: float
    still_busy: float

    def ratio(self, slow: str, fast: str) -> float:
        """Ratio of the medians."""
        return self.sides[slow].median / self.sides[fast].median

    def processor_ratio(self, slow: str, fast: str) -> float:
        """Ratio of the medians of processor time: less moved than `ratio` by other work on the machine."""
        return statistics.median(self.sides[slow].processor) / statistics.median(self.sides[fast].processor)

    def shown(self) -> dict[str, Any]:
        """What a report says of them."""
        return {
            "rounds": self.rounds,
            "pause_seconds": self.pause,
            "cores_busy_after_pause": self.still_busy,
            "seconds": {name: timing.shown() for name, timing in self.sides.items()},
        }


def alternate(
    sides: Mapping[str, Callable[[], Any]],
    rounds: int,
    *,
    pause: float = PAUSE,
    check: Callable[[str, Any], None] | None = None,
) -> Times:
    """Time the sides in turn.

    Args:
        sides: functions by name.
        rounds: how often each is timed, after a first round that is not.
        pause: seconds before each timed call; 0 where no pool of threads is at work.
        check: called with a side's name and what it returned, after the clock is read.
    """
    timings = {name: Timing() for name in sides}
    names = list(sides)
    still_busy = 0.0
    for number in range(rounds + 1):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            gc.collect()
            if pause:
                still_busy = max(still_busy, _rest(pause))
            timing = timings[name] if number else Timing()
            value = timed(sides[name], timing)
            if check is not None:
                check(name, value)
            del value
    return Times(sides=timings, rounds=rounds, pause=pause, still_busy=still_busy)


def timed(function: Callable[[], Any], timing: Timing) -> Any:
    """The result of one call, whose seconds are added to a timing."""
    start, start_processor = time.perf_counter(), time.process_time()
    value = function()
    timing.wall.append(time.perf_counter() - start)
    timing.processor.append(time.process_time() - start_processor)
    return value


def _rest(pause: float) -> float:
    """Sleep; the cores that this process kept busy in the last `WATCHED` seconds of it."""
    time.sleep(max(0.0, pause - WATCHED))
    start, start_processor = time.perf_counter(), time.process_time()
    time.sleep(WATCHED)
    return (time.process_time() - start_processor) / (time.perf_counter() - start)


def peak_megabytes() -> float:
    """The largest resident size this process has had, in 10^6 bytes.

    `ru_maxrss` starts from the size of the process that started this one: Linux's own count is read where there is one.
    """
    if Path("/proc/self/status").is_file():
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def report_peak(function: Callable[[], Any]) -> None:
    """In a process of its own: print peak memory before and after one call, and its seconds, as JSON.

    Compiled loops are loaded from their cache, where an earlier call filled it; the seconds are those of a first call.
    """
    before, timing = peak_megabytes(), Timing()
    value = timed(function, timing)
    after = peak_megabytes()
    del value
    print(json.dumps({"megabytes": after, "megabytes_before": before, "first_call_seconds": timing.wall[0]}))


def in_own_process(script: str, *arguments: str) -> Any:
    """What this script prints as JSON when it is run again with arguments, so that its peak memory is its own."""
    done = subprocess.run([sys.executable, script, *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)

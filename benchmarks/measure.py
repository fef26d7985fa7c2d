"""What every benchmark here says of itself: machine, versions, threads; alternating rounds, medians, peak memory."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "numba", "scipy", "python-flint", "torch")


def machine() -> dict[str, Any]:
    """Processor, cores, Python and packages."""
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
    return {"cpu": cpu, "cores": os.cpu_count(), "python": platform.python_version(), "versions": versions}


def alternate(sides: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median seconds of each side: one round warms up, then the sides take turns."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for round_number in range(rounds + 1):
        for name, function in sides.items():
            start = time.perf_counter()
            function()
            if round_number:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def peak_megabytes() -> float:
    """The largest resident size this process has had, in 10^6 bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def in_own_process(script: str, *arguments: str) -> str:
    """Standard output of this script run again with arguments, so that its peak memory is its own."""
    done = subprocess.run([sys.executable, script, *arguments], check=True, capture_output=True, text=True)
    return done.stdout

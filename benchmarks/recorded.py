"""Margins of recorded queries and keys against PyTorch eager, which makes the n x n matrix and keeps it.

Both sides have two threads and float32 vectors of width 128, and both give the best two keys of each query, its margin
and its softmax. PyTorch is given queries and keys already rotated; ropegeo rotates them within its time. They alternate
in one process, each after a pause in which the other's threads stop spinning. Peak memory is that of a fresh process
each, imports included. Needs torch (`pip install 'ropegeo[models]'`); wall-clock, so keep the machine idle.

Prints JSON. `python benchmarks/recorded.py 4096` takes another length than 16384.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from typing import Any

import numpy as np

from ropegeo.engine.recorded import RecordedMargins, recorded_margins
from ropegeo.spectrum import RopeSpectrum

HEAD_DIM = 128
LENGTH = 16384
LONG = 100_000
THREADS = 2
ROUNDS = 5
PAUSE = 0.5
SPECTRUM = RopeSpectrum.from_base(500000, head_dim=HEAD_DIM)


def vectors(length: int) -> tuple[Any, Any]:
    """Normal queries and keys, float32."""
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((length, HEAD_DIM), dtype=np.float32) for _ in range(2))
    return q, k


def ours(q: Any, k: Any, precision: str = "float32") -> RecordedMargins:
    """Rotation, logits, best two, softmax sums."""
    return recorded_margins(q, k, SPECTRUM, precision=precision, threads=THREADS)


def eager(q: Any, k: Any) -> tuple[Any, ...]:
    """Logits, causal mask, softmax, best two of rotated vectors; everything is kept."""
    import torch  # type: ignore[import-not-found,unused-ignore]

    logits = (q @ k.T) * HEAD_DIM**-0.5
    hidden = torch.ones(logits.shape, dtype=torch.bool).triu_(1)
    masked = logits.masked_fill(hidden, float("-inf"))
    weights = torch.softmax(masked, dim=-1)
    best = masked.topk(2, dim=-1)
    margin = best.values[:, 0] - best.values[:, 1]
    return logits, masked, weights, best, margin


def for_torch(length: int) -> tuple[Any, Any]:
    """The same vectors, rotated by the same phases."""
    import torch

    torch.set_num_threads(THREADS)
    turned = (SPECTRUM.rotate(x.astype(np.float64), np.arange(length)) for x in vectors(length))
    q, k = (torch.from_numpy(x.astype(np.float32)) for x in turned)
    return q, k


def seconds(function: Any, *arguments: Any) -> tuple[tuple[float, float], Any]:
    """Wall time, processor time of all threads, and result of one call, after a pause."""
    time.sleep(PAUSE)
    start, start_cpu = time.perf_counter(), time.process_time()
    value = function(*arguments)
    return (time.perf_counter() - start, time.process_time() - start_cpu), value


def peak(side: str, length: int) -> dict[str, float]:
    """Peak memory and wall time of one call in a fresh process; compiled loops are loaded from their cache."""
    command = [sys.executable, __file__, "--peak", side, str(length)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    answer: dict[str, float] = json.loads(run.stdout)
    return answer


def report_peak(side: str, length: int) -> None:
    """What `peak` asks for."""
    if side == "ours":
        took, _ = seconds(ours, *vectors(length))
    else:
        took, _ = seconds(eager, *for_torch(length))
    print(json.dumps({"mib": peak_mib(), "seconds": took[0], "cpu_seconds": took[1]}))


def peak_mib() -> float:
    """Largest resident size of this process.

    `ru_maxrss` starts from the size of the process that forked this one: Linux's own count is read where there is one.
    """
    try:
        with open("/proc/self/status", encoding="utf-8") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def processor() -> str:
    """The model name, where Linux tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main() -> None:
    """Alternate the sides and print medians, ratio, memory and agreement."""
    import torch

    length = int(sys.argv[1]) if len(sys.argv) > 1 else LENGTH
    q, k = vectors(length)
    rotated = for_torch(length)
    times: dict[str, list[tuple[float, float]]] = {"ropegeo": [], "torch_eager": [], "torch_product_alone": []}
    difference = 0.0
    for _ in range(ROUNDS + 1):
        first, found = seconds(ours, q, k)
        second, kept = seconds(eager, *rotated)
        margin = kept[-1].numpy().copy()
        del kept
        third, product = seconds(lambda: rotated[0] @ rotated[1].T)
        del product
        for name, value in zip(times, (first, second, third), strict=True):
            times[name].append(value)
        difference = max(difference, float(np.abs(found.margin[1:] - margin[1:]).max()))
    walls = {name: [wall for wall, _ in values[1:]] for name, values in times.items()}  # the first round compiles
    medians = {name: statistics.median(values) for name, values in walls.items()}
    cpu = {name: statistics.median([spent for _, spent in values[1:]]) for name, values in times.items()}
    exact = ours(q, k, "float64")
    result = {
        "machine": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": version("numba"),
        "torch": torch.__version__,
        "threads": THREADS,
        "length": length,
        "head_dim": HEAD_DIM,
        "rounds": ROUNDS,
        "median_seconds": medians,
        "range_seconds": {name: [min(values), max(values)] for name, values in walls.items()},
        "median_cpu_seconds": cpu,
        "ratio_torch_to_ropegeo": medians["torch_eager"] / medians["ropegeo"],
        "cpu_ratio_torch_to_ropegeo": cpu["torch_eager"] / cpu["ropegeo"],
        "largest_margin_difference": difference,
        "largest_margin_difference_to_float64": {
            "ropegeo": float(np.abs(found.margin[1:] - exact.margin[1:]).max()),
            "torch": float(np.abs(margin[1:] - exact.margin[1:]).max()),
            "bound": float(found.margin_error.max()),
        },
        "peak": {side: peak(side, length) for side in ("ours", "torch")},
        "long": {"length": LONG, **peak("ours", LONG)},
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        report_peak(sys.argv[2], int(sys.argv[3]))
    else:
        main()

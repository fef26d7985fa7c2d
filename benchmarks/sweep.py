"""README: 64 planes at every distance against plain numpy, a plain compiled loop, torch, and the machine's own ceiling.

Every side computes the same: the largest logit of a head on 64 planes (base 10000, head_dim 128, equal weights) over
the displacements 1..N, on the same number of threads:

* `ropegeo`: `Sweep.records`, which finds the whole curve margin(n), n <= N, on the way;
* `ropegeo_maximum`: `Sweep.maxima`, the maximum alone;
* `numpy`: cos(outer(t, angles)) @ weights in blocks, as a user would write it;
* `numba_loop`: a parallel loop over t with an inner loop over planes;
* `torch`: the numpy way in eager torch, where torch is installed;
* `dgemm_same_shape`: products (rows x 2K)(2K x columns) of the sweep's block shape, one BLAS thread in each of the same
  threads, on data in place; `dgemm_large`: products of two 3000 x 3000 matrices by BLAS with its own threads.

The rate counts 4 flops a plane and distance: a multiplication and an addition for the cosine's part and for the sine's.
Sharing products between +h and -h (`sweep.py`), ropegeo does half of them, so its rate may pass that of dgemm.

Usage: python benchmarks/sweep.py [log2 of N, default 22] [rounds, default 5]
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from measure import alternate, machine

from ropegeo.engine.sweep import HALF, ROWS, Sweep
from ropegeo.engine.threads import one_blas_thread, thread_count
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum

PLANES = 64
SPECTRUM = RopeSpectrum.from_base(10000, head_dim=2 * PLANES)
WEIGHTS = np.full(PLANES, 1 / PLANES)
LARGE = 3000
SLOW_SIDES_TO = 1 << 22
"""The plain sides are not run beyond this N: minutes."""


def numpy_side(count: int) -> float:
    """cos(outer) @ weights, 16384 displacements at a time."""
    angles = SPECTRUM.inv_freq
    best = -np.inf
    for start in range(1, count + 1, 1 << 14):
        t = np.arange(start, min(start + (1 << 14), count + 1))
        best = max(best, float((np.cos(np.outer(t, angles)) @ WEIGHTS).max()))
    return best


@numba.njit(parallel=True)
def numba_side(count: int, angles: Any, weights: Any) -> float:
    """One displacement after the other on all threads."""
    best = -np.inf
    for t in numba.prange(1, count + 1):
        logit = 0.0
        for k in range(angles.size):
            logit += weights[k] * np.cos(t * angles[k])
        best = max(best, logit)
    return best


def torch_side(count: int) -> float:
    """As numpy_side, eager."""
    import torch

    angles, weights = torch.from_numpy(SPECTRUM.inv_freq.copy()), torch.from_numpy(WEIGHTS)
    best = -np.inf
    for start in range(1, count + 1, 1 << 14):
        t = torch.arange(start, min(start + (1 << 14), count + 1), dtype=torch.float64)
        best = max(best, float((torch.cos(torch.outer(t, angles)) @ weights).max()))
    return best


def dgemm_same_shape(distances: int, threads: int) -> None:
    """As many flops as plain angle addition takes for that many distances, in products of the sweep's block shape."""
    products = distances // (2 * ROWS * HALF)
    rng = np.random.default_rng(0)
    arrays = [
        (rng.normal(size=(ROWS, 2 * PLANES)), rng.normal(size=(2 * PLANES, 2 * HALF)), np.empty((ROWS, 2 * HALF)))
        for _ in range(threads)
    ]

    def work(a: Any, b: Any, c: Any) -> None:
        for _ in range(products // threads):
            np.dot(a, b, out=c)

    with one_blas_thread():
        workers = [threading.Thread(target=work, args=each) for each in arrays]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


def main() -> None:
    """Run the sides in turn and print JSON."""
    exponent = int(sys.argv[1]) if len(sys.argv) > 1 else 22
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    count, threads = 1 << exponent, thread_count()
    numba.set_num_threads(threads)
    head = LogitProfile(spectrum=SPECTRUM, coefficients=WEIGHTS)
    swept = Sweep((head,), threads=threads)
    large = np.random.default_rng(0).normal(size=(2, LARGE, LARGE))
    results: dict[str, float] = {}
    sides: dict[str, Callable[[], Any]] = {
        "ropegeo": lambda: results.update(ropegeo=swept.records(1, count)[0].best),
        "ropegeo_maximum": lambda: results.update(ropegeo_maximum=float(swept.maxima(1, count)[0])),
        "dgemm_same_shape": lambda: dgemm_same_shape(count, threads),
        "dgemm_large": lambda: large[0] @ large[1],
    }
    if count <= SLOW_SIDES_TO:
        sides["numpy"] = lambda: results.update(numpy=numpy_side(count))
        sides["numba_loop"] = lambda: results.update(numba_loop=numba_side(count, SPECTRUM.inv_freq, WEIGHTS))
        try:
            import torch
        except ImportError:
            pass
        else:
            torch.set_num_threads(threads)
            sides["torch"] = lambda: results.update(torch=torch_side(count))
    medians = alternate(sides, rounds)
    flops = 4 * PLANES * count
    rates = {
        "ropegeo": flops / medians["ropegeo"],
        "dgemm_same_shape": 4 * PLANES * (count - count % (2 * ROWS * HALF * threads)) / medians["dgemm_same_shape"],
        "dgemm_large": 2 * LARGE**3 / medians["dgemm_large"],
    }
    plain = ("numpy", "numba_loop", "torch")
    report = {
        **machine(),
        "threads": threads,
        "planes": PLANES,
        "distances": count,
        "rounds": rounds,
        "median_seconds": medians,
        "nanoseconds_per_distance": 1e9 * medians["ropegeo"] / count,
        "gigaflops_at_4_per_plane_and_distance": {name: rate / 1e9 for name, rate in rates.items()},
        "ratio_to_dgemm_same_shape": rates["ropegeo"] / rates["dgemm_same_shape"],
        "ratio_to_dgemm_large": rates["ropegeo"] / rates["dgemm_large"],
        "speed_ratio": {name: medians[name] / medians["ropegeo"] for name in plain if name in medians},
        "whole_curve_over_maximum": medians["ropegeo"] / medians["ropegeo_maximum"],
        "largest_difference": max(results.values()) - min(results.values()),
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()

"""README: 64 planes at every distance against plain numpy, a plain compiled loop, torch, and the machine's own ceiling.

Every side computes the same: the largest logit of a head on 64 planes (base 10000, head_dim 128, equal weights) over
the displacements 1..N:

* `ropegeo`: `Sweep.records`, which finds the whole curve margin(n), n <= N, on the way;
* `ropegeo_maximum`: `Sweep.maxima`, the maximum alone;
* `numpy`: cos(outer(t, angles)) @ weights in blocks of 16384, as a user would write it (numpy has one thread for cos);
* `numba_loop`: a parallel loop over t with an inner loop over planes;
* `torch`: the numpy way in eager torch, where torch is installed.

The ceiling is what this machine's BLAS does in float64, on data in place and into memory in place:

* `dgemm_same_shape`: the plain form of angle addition, products (rows x 2K)(2K x 2 half) of the sweep's block shape,
  shared out to the sweep's own pool in the sweep's own tasks, one BLAS thread in each;
* `dgemm_own_products`: the two products (rows x K)(K x half) that ropegeo makes of each block, shared out likewise:
  what its time would be if all but the products were free;
* `dgemm_N`: one product of two N x N matrices by BLAS with threads of its own; the best N counts.

A rate counts 4 flops a plane and distance: a multiplication and an addition for the cosine's part and for the sine's.
Sharing products between +h and -h (`sweep.py`), ropegeo makes half of them, so its rate may pass that of dgemm;
`gigaflops_done` counts the flops of its products as they are.

Fairness: all sides have the same number of threads, stated, but the pools never work at once: ropegeo holds BLAS to one
thread, and between two sides there is a pause in which pools stop spinning (`measure.py`). Tables and matrices are made
before the time begins. Peak memory is that of a fresh process each, imports and compilation included.

Usage: python benchmarks/sweep.py [log2 of N, default 22] [rounds, default 5]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any

import numba
import numpy as np
from measure import alternate, in_own_process, machine, report_peak
from threadpoolctl import threadpool_limits

from ropegeo.engine.sweep import BLOCKS, HALF, ROWS, Sweep
from ropegeo.engine.threads import in_order, thread_count
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum

PLANES = 64
SPECTRUM = RopeSpectrum.from_base(10000, head_dim=2 * PLANES)
WEIGHTS = np.full(PLANES, 1 / PLANES)
HEAD = LogitProfile(spectrum=SPECTRUM, coefficients=WEIGHTS)
PLAIN = ("numpy", "numba_loop", "torch")
PLAIN_TO = 1 << 22
"""The plain sides are not run beyond this N: minutes."""
STEP = 1 << 14
LARGE = (1000, 2000, 3000)
PER_BLOCK = 2 * ROWS * HALF
"""Distances of a block."""

Products = tuple[tuple[Any, Any, Any], ...]
"""Left, right and result of each product made of one block."""


def numpy_side(count: int) -> float:
    """cos(outer) @ weights, `STEP` displacements at a time."""
    angles = SPECTRUM.inv_freq
    best = -np.inf
    for start in range(1, count + 1, STEP):
        t = np.arange(start, min(start + STEP, count + 1))
        best = max(best, float((np.cos(np.outer(t, angles)) @ WEIGHTS).max()))
    return best


@numba.njit(parallel=True)
def numba_loop(count: int, angles: Any, weights: Any) -> float:
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
    import torch  # type: ignore[import-not-found,unused-ignore]

    angles, weights = torch.from_numpy(SPECTRUM.inv_freq.copy()), torch.from_numpy(WEIGHTS)
    best = -np.inf
    for start in range(1, count + 1, STEP):
        t = torch.arange(start, min(start + STEP, count + 1), dtype=torch.float64)
        best = max(best, float((torch.cos(torch.outer(t, angles)) @ weights).max()))
    return best


def torch_is_here(threads: int) -> bool:
    """Whether torch is installed; it is given its threads."""
    try:
        import torch
    except ImportError:
        return False
    torch.set_num_threads(threads)
    return True


def factors(inner: int, columns: int) -> tuple[Any, Any, Any]:
    """Two random matrices with the rows of a block, and room for their product."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(ROWS, inner)), rng.normal(size=(inner, columns)), np.zeros((ROWS, columns))


def products(blocks: int, threads: int, made: Callable[[], Products]) -> Callable[[], None]:
    """A side that makes the products of so many blocks, each thread with matrices of its own, as the sweep does."""
    free: SimpleQueue[Products] = SimpleQueue()
    for _ in range(threads):
        free.put(made())
    step = max(1, min(BLOCKS, blocks // (4 * threads)))  # blocks of a task, as in `Sweep`
    tasks = [min(step, blocks - start) for start in range(0, blocks, step)]

    def work(size: int) -> None:
        matrices = free.get()
        for _ in range(size):
            for left, right, result in matrices:
                np.dot(left, right, out=result)
        free.put(matrices)

    def side() -> None:
        for _ in in_order(work, tasks, threads=threads):
            pass

    return side


def searching_sides(count: int, threads: int, *, torch: bool) -> dict[str, Callable[[], float]]:
    """The sides that find the largest logit; torch is imported only if it is asked for."""
    swept = Sweep((HEAD,), threads=threads)
    sides: dict[str, Callable[[], float]] = {
        "ropegeo": lambda: swept.records(1, count)[0].best,
        "ropegeo_maximum": lambda: float(swept.maxima(1, count)[0]),
    }
    if count <= PLAIN_TO:
        sides["numpy"] = lambda: numpy_side(count)
        sides["numba_loop"] = lambda: float(numba_loop(count, SPECTRUM.inv_freq, WEIGHTS))
        if torch and torch_is_here(threads):
            sides["torch"] = lambda: torch_side(count)
    return sides


def main(count: int, rounds: int, threads: int) -> None:
    """Run the sides in turn and print JSON."""
    searching = searching_sides(count, threads, torch=True)
    blocks = -(-count // PER_BLOCK)
    sides: dict[str, Callable[[], Any]] = {
        **searching,
        "dgemm_same_shape": products(blocks, threads, lambda: (factors(2 * PLANES, 2 * HALF),)),
        "dgemm_own_products": products(blocks, threads, lambda: (factors(PLANES, HALF), factors(PLANES, HALF))),
    }
    for size in LARGE:
        left, right = np.random.default_rng(0).normal(size=(2, size, size))
        sides[f"dgemm_{size}"] = partial(np.dot, left, right, out=np.zeros((size, size)))
    found: dict[str, float] = {}
    times = alternate(sides, rounds, check=lambda name, value: found.update({name: value} if name in searching else {}))
    median = {name: timing.median for name, timing in times.sides.items()}
    flops = 4 * PLANES * count
    whole = 4 * PLANES * blocks * PER_BLOCK  # a last block is done as a whole
    rates = {
        "ropegeo": flops / median["ropegeo"],
        "ropegeo_maximum": flops / median["ropegeo_maximum"],
        "dgemm_same_shape": whole / median["dgemm_same_shape"],
        "dgemm_large": max(2 * size**3 / median[f"dgemm_{size}"] for size in LARGE),
    }
    done = {name: whole / 2 / median[name] for name in ("ropegeo", "dgemm_own_products")}
    report = {
        **machine(),
        "threads": threads,
        "numba_layer": numba.threading_layer() if "numba_loop" in sides else None,  # type: ignore[attr-defined]
        "planes": PLANES,
        "distances": count,
        **times.shown(),
        "nanoseconds_per_distance": 1e9 * median["ropegeo"] / count,
        "gigaflops_at_4_per_plane_and_distance": {name: rate / 1e9 for name, rate in rates.items()},
        "gigaflops_done": {name: rate / 1e9 for name, rate in done.items()},
        "ratio_to_dgemm_same_shape": rates["ropegeo"] / rates["dgemm_same_shape"],
        "ratio_to_dgemm_large": rates["ropegeo"] / rates["dgemm_large"],
        "ratio_to_dgemm_own_products": done["ropegeo"] / done["dgemm_own_products"],
        "speed_ratio": {name: times.ratio(name, "ropegeo") for name in PLAIN if name in sides},
        "largest_difference": max(found.values()) - min(found.values()),
        "peak": {name: in_own_process(__file__, "--peak", name, str(count)) for name in searching},
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    THREADS = thread_count()
    numba.set_num_threads(THREADS)
    threadpool_limits(THREADS, user_api="blas")
    if sys.argv[1:2] == ["--peak"]:
        report_peak(searching_sides(int(sys.argv[3]), THREADS, torch=sys.argv[2] == "torch")[sys.argv[2]])
    else:
        main(1 << int((sys.argv[1:2] or ["22"])[0]), int((sys.argv[2:3] or ["5"])[0]), THREADS)

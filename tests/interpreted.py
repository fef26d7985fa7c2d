"""Every kernel of the engine on small inputs, as one JSON text: run with and without the compiler and compared.

`python interpreted.py` prints {"results": ..., "called": ...}. Without the compiler (`NUMBA_DISABLE_JIT=1`) kernels are
Python functions, and `called` names those that ran as "module.function"; with it they cannot be seen and it is empty.
"""

from __future__ import annotations

import json
import math
import os
import sys
from types import FrameType
from typing import Any

import numpy as np

from ropegeo.engine.lattice import near_returns
from ropegeo.engine.one_plane_batch import one_plane_margins
from ropegeo.engine.pruned import pruned_records
from ropegeo.engine.recorded import recorded_margins
from ropegeo.engine.sweep import Sweep
from ropegeo.heads import LogitProfile
from ropegeo.limits.emulation_kernels import sequential_dots
from ropegeo.spectrum import RopeSpectrum

BASE = RopeSpectrum.from_base(10000, head_dim=8)
PEAKED = LogitProfile(spectrum=BASE, coefficients=np.ones(4, complex))
PHASED = LogitProfile(spectrum=BASE, coefficients=np.array([1, 1j, 0.5, 2]), constant=0.25)


def sweeps() -> dict[str, Any]:
    """Blocks of 24 displacements, whole and cut; two profiles at once; far from 0."""
    sweep = Sweep((PEAKED, PHASED), threads=1, rows=3, half=4)
    found: dict[str, Any] = {}
    for low in (-40, 10**15):
        high = low + 130
        found |= {
            f"logits {low}": sweep.logits(low, high).tolist(),
            f"maxima {low}": sweep.maxima(low, high).tolist(),
            f"records {low}": [listed(each) for each in sweep.records(low, high)],
            f"top two {low}": [listed(each) for each in sweep.top_two(low, high)],
            f"sums {low}": sweep.exponential_sums(low, high, [0.5, 30.0], tops=[4.0, 4.5], skip=low + 5).tolist(),
        }
    return found


def listed(found: Any) -> list[Any]:
    return [found.at.tolist(), found.logits.tolist(), found.best]


def searches() -> dict[str, Any]:
    """The pruned search with and without a budget; the lattice on both sides of 0 and where 64 bits end."""
    found: dict[str, Any] = {}
    for low, budget in ((-300, math.inf), (10**18, math.inf), (1, 2.0)):
        records = pruned_records(PHASED if low != 1 else PEAKED, low, low + 600, budget, threads=1)
        found[f"pruned {low}"] = [records.displacements.tolist(), records.deficits.tolist(), int(records.blocks)]
    for profile, low, high, budget in (
        (PEAKED, -700, 3000, 0.5),
        (PHASED, 10**9, 10**9 + 3000, 0.5),
        (PEAKED, 10**20, 10**20 + 2 * 10**7, 1e-7),
    ):
        returns = near_returns(profile, low, high, budget)
        found[f"lattice {low}"] = [returns.displacements, returns.deficits, int(returns.nodes)]
    return found


def recorded() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 9, 8))
    names = ("margin", "entropy", "log_sum_exp", "target_weight")
    found: dict[str, Any] = {}
    for precision in ("float32", "float64"):
        margins = recorded_margins(q, k, BASE, precision=precision, targets=np.arange(9) // 2, window=6, threads=1)
        found[f"{precision} places"] = [margins.top_at.tolist(), margins.second_at.tolist()]
        found[precision] = [getattr(margins, name).tolist() for name in names]
    return found


def one_plane() -> dict[str, Any]:
    """Subnormal and huge angles, one within a double of a whole turn, a reach beyond what the kernel takes."""
    angles = [1.0, 1e-3, 1.7e308, 3e-17, 2 * math.pi, 5e-324, 1.0]
    reaches = [1000, *[10**30] * 5, 1 << 121]
    return {"one plane": one_plane_margins(angles, reaches).tolist()}


def emulated() -> dict[str, Any]:
    """Sequential float32 sums of an odd and an even number of queries and coordinates."""
    rng = np.random.default_rng(1)
    found: dict[str, Any] = {}
    for rows, width, columns in ((1, 2, 5), (4, 6, 3), (3, 7, 9)):
        queries, keys = (rng.normal(size=shape).astype(np.float32) for shape in ((rows, width), (width, columns)))
        out = np.empty((rows, columns), np.float32)
        sequential_dots(queries, keys, out)
        found[f"dots {rows} {width} {columns}"] = out.tolist()
    return found


def main() -> None:
    called: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.endswith("kernels"):
            called.add(f"{module.rpartition('.')[2]}.{frame.f_code.co_name}")

    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        sys.setprofile(note)
    results = {**sweeps(), **searches(), **recorded(), **one_plane(), **emulated()}
    sys.setprofile(None)
    print(json.dumps({"results": results, "called": sorted(called)}))  # noqa: T201


if __name__ == "__main__":
    main()

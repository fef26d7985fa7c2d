"""Margins of recorded queries and keys against PyTorch eager, which makes the n x n matrix and keeps it.

Both sides have the same number of threads and float32 vectors of width 128, and both give the best two keys of each
query, its margin and its softmax. PyTorch is given queries and keys already rotated; ropegeo rotates them within its
time.

* `ropegeo`: `recorded_margins`;
* `torch_eager`: product, mask, softmax and best two, each kept, the mask made within the time;
* `torch_lean`: the same with the mask made beforehand and everything done in place where eager PyTorch can;
* `torch_product_alone`: the n x n product and nothing else.

Fairness: the sides take turns in one process, and the two pools never work at once: ropegeo's threads end with its
call, those of PyTorch (OpenMP) and of numpy's BLAS stop spinning in the pause before each timed call, and the report
says what was still busy (`measure.py`). What a side returns is freed after the clock is read. Peak memory is that of a
fresh process each, imports included; ropegeo's does not load torch. Needs torch (`pip install 'ropegeo[models]'`).

Prints JSON. Usage: python benchmarks/recorded.py [length, default 16384] [rounds, default 5]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measure import alternate, in_own_process, machine, report_peak

from ropegeo.engine.recorded import RecordedMargins, recorded_margins
from ropegeo.engine.threads import thread_count
from ropegeo.spectrum import RopeSpectrum

HEAD_DIM = 128
LENGTH = 16384
LONG = 100_000
THREADS = thread_count()
SPECTRUM = RopeSpectrum.from_base(500000, head_dim=HEAD_DIM)


def vectors(length: int) -> tuple[Any, Any]:
    """Normal queries and keys, float32."""
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((length, HEAD_DIM), dtype=np.float32) for _ in range(2))
    return q, k


def ours(q: Any, k: Any, precision: str = "float32") -> RecordedMargins:
    """Rotation, logits, best two, softmax sums."""
    return recorded_margins(q, k, SPECTRUM, precision=precision, threads=THREADS)


def hidden_keys(length: int) -> Any:
    """The causal mask: True where a query does not see a key."""
    import torch  # type: ignore[import-not-found,unused-ignore]

    return torch.ones((length, length), dtype=torch.bool).triu_(1)


def eager(q: Any, k: Any) -> tuple[Any, ...]:
    """Margins; logits, causal mask, softmax, best two of rotated vectors; everything is kept."""
    import torch

    logits = (q @ k.T) * HEAD_DIM**-0.5
    masked = logits.masked_fill(hidden_keys(len(q)), float("-inf"))
    weights = torch.softmax(masked, dim=-1)
    best = masked.topk(2, dim=-1)
    return best.values[:, 0] - best.values[:, 1], logits, masked, weights, best


def lean(q: Any, k: Any, hidden: Any) -> tuple[Any, ...]:
    """The same with one matrix of logits, masked in place, and one of weights."""
    import torch

    logits = ((q * HEAD_DIM**-0.5) @ k.T).masked_fill_(hidden, float("-inf"))
    best = logits.topk(2, dim=-1)
    return best.values[:, 0] - best.values[:, 1], torch.softmax(logits, dim=-1), best


def for_torch(length: int) -> tuple[Any, Any]:
    """The same vectors, rotated by the same phases."""
    import torch

    torch.set_num_threads(THREADS)
    turned = (SPECTRUM.rotate(x.astype(np.float64), np.arange(length)) for x in vectors(length))
    q, k = (torch.from_numpy(x.astype(np.float32)) for x in turned)
    return q, k


def side(name: str, length: int) -> Callable[[], Any]:
    """One side, its input ready."""
    if name == "ropegeo":
        return partial(ours, *vectors(length))
    q, k = for_torch(length)
    if name == "torch_eager":
        return partial(eager, q, k)
    if name == "torch_lean":
        return partial(lean, q, k, hidden_keys(length))
    return lambda: q @ k.T


SIDES = ("ropegeo", "torch_eager", "torch_lean", "torch_product_alone")


def main(length: int, rounds: int) -> None:
    """Run the sides in turn and print medians, ratios, memory and agreement."""
    margins: dict[str, Any] = {}

    def check(name: str, value: Any) -> None:
        """Keep the margins; a query that sees one key has none."""
        if name == "ropegeo":
            margins[name] = value.margin[1:]
        elif name != "torch_product_alone":
            margins[name] = value[0].numpy()[1:].copy()

    times = alternate({name: side(name, length) for name in SIDES}, rounds, check=check)
    exact = ours(*vectors(length), "float64")
    bound = ours(*vectors(length)).margin_error.max()
    result = {
        **machine(),
        "threads": THREADS,
        "length": length,
        "head_dim": HEAD_DIM,
        **times.shown(),
        "speed_ratio": {name: times.ratio(name, "ropegeo") for name in SIDES[1:]},
        "processor_ratio": {name: times.processor_ratio(name, "ropegeo") for name in SIDES[1:]},
        "largest_margin_difference_to_torch": float(np.abs(margins["ropegeo"] - margins["torch_eager"]).max()),
        "largest_margin_difference_to_float64": {
            name: float(np.abs(margin - exact.margin[1:]).max()) for name, margin in margins.items()
        },
        "stated_bound": float(bound),
        "peak": {name: in_own_process(__file__, "--peak", name, str(length)) for name in SIDES},
        "long": {"length": LONG, **in_own_process(__file__, "--peak", "ropegeo", str(LONG))},
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        report_peak(side(sys.argv[2], int(sys.argv[3])))
    else:
        main(int((sys.argv[1:2] or [str(LENGTH)])[0]), int((sys.argv[2:3] or ["5"])[0]))

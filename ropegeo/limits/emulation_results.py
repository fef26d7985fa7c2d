"""What the emulation of index heads says: lengths at which a number format fails, and the weights it gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64, Int

from ropegeo._arrays import BoolArray, FloatArray, IntArray, frozen
from ropegeo.limits.arithmetic import Arithmetic
from ropegeo.limits.rotated_head import Failure, overflowed
from ropegeo.limits.rounding import SingleArray
from ropegeo.limits.rules import Cause

SCHEMA = "ropegeo.emulated_length/1"
WEIGHTS_SCHEMA = "ropegeo.emulated_weights/1"
WEIGHT_LENGTH_SCHEMA = "ropegeo.emulated_weight_length/1"


@dataclass(frozen=True, eq=False, kw_only=True)
class EmulatedLength:
    """Where a number format first fails an index head.

    Attributes:
        first_wrong_length: the first length n at which a rival reaches the target's logit, or None.
        searched: the largest length looked at, every query position below it: the failing one where there is one.
        outcome: `wrong`, `tie`, `overflow` or `none`.
        offset: distance of the target.
        rival: displacement t = d - offset of the winning rival; of several with the same logit the one closest in exact
            arithmetic. None where nothing fails, or where the overflow is the target's own.
        target_logit: as emulated.
        rival_logit: as emulated.
        exact_gap: target's logit less the rival's in real arithmetic, in logit units.
        runner_up: displacement of the rival that is closest in exact arithmetic at that length.
        runner_up_gap: its exact gap.
        exact_gap_error: bound on the absolute error of both gaps.
        order_matters: whether another order of the float32 sums could move `first_wrong_length`.
        arithmetic: how it was computed.
        start_position: position of the first key.
        window: keys that a query sees, itself included; None for all.
    """

    first_wrong_length: int | None
    searched: int
    outcome: Failure
    offset: int
    rival: int | None = None
    target_logit: float | None = None
    rival_logit: float | None = None
    exact_gap: float | None = None
    runner_up: int | None = None
    runner_up_gap: float | None = None
    exact_gap_error: float = 0.0
    order_matters: bool = False
    arithmetic: Arithmetic
    start_position: int = 0
    window: int | None = None

    @property
    def rival_is_runner_up(self) -> bool:
        """Whether no other key comes closer to the target in exact arithmetic, up to the error of the gaps."""
        if self.exact_gap is None or self.runner_up_gap is None:
            return False
        return self.exact_gap <= self.runner_up_gap + 2 * self.exact_gap_error

    @property
    def cause(self) -> Cause | None:
        """Why it fails there, see `ropegeo.limits.emulation`; None where nothing fails."""
        if self.outcome in ("overflow", "none"):
            return "overflow" if self.outcome == "overflow" else None
        returns = self.rival_is_runner_up and self.rival is not None and abs(self.rival) > 1
        return "near return" if returns else "rounding"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "schema": SCHEMA,
            **_of_arithmetic(self.arithmetic),
            "first_wrong_length": self.first_wrong_length,
            "searched": self.searched,
            "outcome": self.outcome,
            "cause": self.cause,
            "offset": self.offset,
            "rival": self.rival,
            "target_logit": _finite(self.target_logit),
            "rival_logit": _finite(self.rival_logit),
            "exact_gap": self.exact_gap,
            "exact_gap_error": self.exact_gap_error,
            "runner_up": self.runner_up,
            "runner_up_gap": self.runner_up_gap,
            "order_matters": self.order_matters,
            "start_position": self.start_position,
            "window": self.window,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class EmulatedWeights:
    """Emulated logits of an index head, and the exact softmax of them, at consecutive lengths.

    Attributes:
        lengths: n = query index + 1.
        target: logit of the target.
        rival: largest logit of a rival; -infinity where there is none.
        log_rivals: log of the sum of exp(logit) over the rivals.
        log_error: bound on the absolute error of `log_rivals` less `target`.
        arithmetic: how the logits were computed.
    """

    lengths: Int[IntArray, " n"]
    target: Float32[SingleArray, " n"]
    rival: Float32[SingleArray, " n"]
    log_rivals: Float64[FloatArray, " n"]
    log_error: float
    arithmetic: Arithmetic

    def __post_init__(self) -> None:
        for name in ("lengths", "target", "rival", "log_rivals"):
            values = getattr(self, name)
            object.__setattr__(self, name, frozen(values, values.dtype))

    @property
    def right(self) -> BoolArray:
        """Whether the target has the one largest logit, and nothing overflowed."""
        return np.asarray((self.rival < self.target) & ~self.overflow)

    @property
    def overflow(self) -> BoolArray:
        """Whether a logit is NaN or +infinity."""
        return overflowed(self.target) | overflowed(self.rival)

    @property
    def log_odds(self) -> Float64[FloatArray, " n"]:
        """log of the rivals' weight over the target's, log S; NaN where there is an overflow."""
        with np.errstate(invalid="ignore"):
            odds = self.log_rivals - self.target.astype(np.float64)
        return np.asarray(np.where(self.overflow, np.nan, odds))

    @property
    def weight(self) -> Float64[FloatArray, " n"]:
        """Softmax weight of the target, 1/(1 + S); NaN where there is an overflow.

        Accuracy: absolute error below `log_error`/4 + 1e-15.
        """
        with np.errstate(over="ignore"):
            return np.asarray(1 / (1 + np.exp(self.log_odds)))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; infinite and missing numbers are None."""
        return {
            "schema": WEIGHTS_SCHEMA,
            **_of_arithmetic(self.arithmetic),
            "lengths": self.lengths.tolist(),
            "target_logit": [_finite(value) for value in self.target.tolist()],
            "rival_logit": [_finite(value) for value in self.rival.tolist()],
            "log_rivals": [_finite(value) for value in self.log_rivals.tolist()],
            "weight": [_finite(value) for value in self.weight.tolist()],
            "log_error": self.log_error,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class EmulatedWeightLength:
    """Where a number format first gives an index head's target too little weight.

    Attributes:
        first_light_length: the first length n at which the target's weight is not above `weight`, or None.
        searched: the largest length looked at, every query position below it: the failing one where there is one.
        weight: what is asked for.
        smallest_weight: smallest weight of the target over the lengths looked at; NaN where the first one overflows.
        smallest_at: the length at which it is.
        wrong: whether the argmax is wrong, tied, or an overflow at the failing length.
        weight_error: bound on the absolute error of the weights; a weight that close to `weight` counts as light.
        arithmetic: how the logits were computed.
    """

    first_light_length: int | None
    searched: int
    weight: float
    smallest_weight: float
    smallest_at: int
    wrong: bool
    weight_error: float
    arithmetic: Arithmetic

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "schema": WEIGHT_LENGTH_SCHEMA,
            **_of_arithmetic(self.arithmetic),
            "first_light_length": self.first_light_length,
            "searched": self.searched,
            "weight": self.weight,
            "smallest_weight": _finite(self.smallest_weight),
            "smallest_at": self.smallest_at,
            "wrong": self.wrong,
            "weight_error": self.weight_error,
        }


def _of_arithmetic(arithmetic: Arithmetic) -> dict[str, str]:
    return {
        "number_format": str(arithmetic.number_format),
        "logits": str(arithmetic.logits),
        "positions": str(arithmetic.positions),
    }


def _finite(value: float | None) -> float | None:
    """JSON has no infinities."""
    return value if value is not None and np.isfinite(value) else None

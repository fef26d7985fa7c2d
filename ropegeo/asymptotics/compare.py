"""A theoretical curve against data: how far apart they are, and whether by more than the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import chi2
from scipy.stats import f as fisher

from ropegeo._arrays import FloatArray
from ropegeo.asymptotics.data import FEWEST_POINTS, DecayData
from ropegeo.asymptotics.fitted_law import Estimate, factor_of, finite
from ropegeo.asymptotics.intervals import CONFIDENCE, NONE, spread
from ropegeo.errors import FileFormatError, InvalidInputError
from ropegeo.exact import plain_integer, read_safe_integer, safe_integer

SCHEMA = "ropegeo.comparison/1"
VERDICTS = {
    "identical": "the data are the theory, to the rounding of either",
    "agrees": "the data differ from the theory by no more than the standard deviations given",
    "no_trend": "data over theory shows no factor and no drift beyond its scatter, which may be noise or not",
    "differs_by_factor": "the data are the theory times a constant factor",
    "differs": "the data depart from the theory by more than a constant factor",
    "opposite_signs": "at some length one wins where the other fails",
    "too_few_points": f"fewer than {FEWEST_POINTS} lengths at which both margins are positive",
}
SAVED = 20
"""Lengths of opposite sign that are written to JSON."""
ROUNDINGS = 16
"""Exact data and theory are identical if they are this near, in roundings, beside the errors proved of either."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison:
    """Data and theory at the same lengths.

    Attributes:
        verdict: a key of `VERDICTS`.
        points: how many lengths are compared: where both margins are positive.
        factor: data over theory, the geometric mean, with its interval.
        drift: the exponent of n in data over theory, with its interval: 0 if they differ by a factor only.
        p_trend: probability of a factor and a drift at least this large if there is neither; NaN if exact.
        p_drift: of such a drift, if the data are a constant factor times the theory.
        p_scatter: of deviations in all points at least this large, if the data are the theory with the standard
            deviations given (chi-square); NaN where none are.
        rms: root mean square of log(data/theory).
        largest: the largest factor apart, at least 1; infinite beyond the range of doubles.
        at: the length where that is.
        opposite: lengths at which exactly one of the two is positive.
        lengths: compared.
        log_ratio: log(data/theory) at each.
    """

    verdict: str
    points: int
    factor: Estimate
    drift: Estimate
    p_trend: float
    p_drift: float
    p_scatter: float
    rms: float
    largest: float
    at: int | None
    opposite: tuple[int, ...]
    lengths: tuple[int, ...]
    log_ratio: Float[FloatArray, " points"]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "meaning": VERDICTS[self.verdict],
            "points": self.points,
            "factor": self.factor.to_dict(),
            "drift": self.drift.to_dict(),
            "p_trend": finite(self.p_trend),
            "p_drift": finite(self.p_drift),
            "p_scatter": finite(self.p_scatter),
            "rms_log_ratio": finite(self.rms),
            "largest_factor": finite(self.largest),
            "at_length": None if self.at is None else safe_integer(self.at),
            "opposite_signs": [safe_integer(n) for n in self.opposite[:SAVED]],
            "opposite_signs_count": len(self.opposite),
        }

    @classmethod
    def from_dict(cls, data: Any) -> Comparison:
        """Read what `to_dict` wrote: without the lengths and ratios, and with the first lengths of opposite sign only.

        Raises:
            FileFormatError: a wrong schema, a missing or malformed field.
        """
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise FileFormatError(f"comparison: expected schema {SCHEMA!r}")
        try:
            if data["verdict"] not in VERDICTS:
                raise FileFormatError(f"comparison: the verdict {data['verdict']!r} is unknown")
            names = {
                "p_trend": "p_trend",
                "p_drift": "p_drift",
                "p_scatter": "p_scatter",
                "rms": "rms_log_ratio",
                "largest": "largest_factor",
            }
            numbers = {ours: math.nan if data[name] is None else float(data[name]) for ours, name in names.items()}
            return cls(
                verdict=data["verdict"],
                points=plain_integer(data["points"]),
                factor=Estimate.from_dict(data["factor"]),
                drift=Estimate.from_dict(data["drift"]),
                **numbers,
                at=None if data["at_length"] is None else read_safe_integer(data["at_length"]),
                opposite=tuple(map(read_safe_integer, data["opposite_signs"])),
                lengths=(),
                log_ratio=np.zeros(0),
            )
        except FileFormatError:
            raise
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise FileFormatError(f"comparison: a field is missing or wrong ({error})") from error


def compare_decay(data: DecayData, theory: DecayData) -> Comparison:
    """Compare measured or computed margins with a theoretical curve.

    The logarithm of their ratio is regressed on a constant and log n; with noise in the data, an F test with the
    covariance of `intervals.spread` says whether both coefficients may be 0, or the slope alone (they are a factor
    apart). What the line leaves over is noise or a departure of another shape: only standard deviations can tell, and
    where they are given all deviations are held against them.

    Args:
        data: margins at some lengths.
        theory: margins at the same lengths.

    Raises:
        InvalidInputError: other lengths.

    Accuracy: the p-values are those of the t and F distributions of `intervals`; for exact data there is no noise, and
        the question is whether both are equal within their errors.

    Example:
        >>> from ropegeo.asymptotics.data import decay_data
        >>> lengths = [10, 20, 40, 80, 160]
        >>> theory = decay_data(lengths, [1 / n for n in lengths])
        >>> compare_decay(decay_data(lengths, [2 / n for n in lengths]), theory).verdict
        'differs_by_factor'
    """
    if data.lengths != theory.lengths:
        raise InvalidInputError("compare_decay: data and theory must have the same lengths")
    both = data.positive & theory.positive
    opposite = tuple(n for n, one, two in zip(data.lengths, data.positive, theory.positive, strict=True) if one != two)
    used, model = data.at(both), theory.at(both)
    ratio = used.log_margin - model.log_margin
    count = len(used.lengths)
    apart = np.abs(ratio)
    summary: dict[str, Any] = {
        "points": count,
        "rms": float(np.sqrt(np.mean(ratio**2))) if count else math.nan,
        "largest": factor_of(float(apart.max())) if count else math.nan,
        "at": used.lengths[int(apart.argmax())] if count else None,
        "opposite": opposite,
        "lengths": used.lengths,
        "log_ratio": ratio,
    }
    if count < FEWEST_POINTS:
        unknown = Estimate(value=math.nan)
        verdict = "opposite_signs" if opposite else "too_few_points"
        return Comparison(
            verdict=verdict,
            factor=unknown,
            drift=unknown,
            p_trend=math.nan,
            p_drift=math.nan,
            p_scatter=math.nan,
            **summary,
        )
    unit = np.ones(count) if used.sd is None else used.sd / np.exp(np.maximum(model.log_margin, -700.0))
    # Centred, so that the first coefficient is the mean of the log ratio.
    centred = used.log_length - np.average(used.log_length, weights=1 / unit**2)
    design = np.column_stack([np.ones(count), centred]) / unit[:, None]
    solution: FloatArray = np.asarray(np.linalg.lstsq(design, ratio / unit, rcond=None)[0], dtype=np.float64)
    known = None if used.is_exact else spread(design, ratio / unit - design @ solution)
    if known is None:
        kind, ends, p_trend, p_drift = NONE, np.full((2, 2), math.nan), math.nan, math.nan
    else:
        kind, ends = known.kind, solution[:, None] + np.outer(known.half_widths, [-1, 1])
        p_trend = _tail(solution, known.covariance, known.freedom)
        p_drift = _tail(solution[1:], known.covariance[1:, 1:], known.freedom)
    p_scatter = (
        math.nan
        if data.sd is None
        else float(chi2.sf(np.sum(((data.margin - theory.margin) / data.sd) ** 2), len(data.lengths)))
    )
    # Logarithms of tiny margins are large, and rounded accordingly.
    proved = sum((side.relative_error - 2.0**-52 for side in (used, model)), np.zeros(count))
    allowed = proved + ROUNDINGS * 2.0**-52 * (2 + np.abs(used.log_margin))
    near = bool((apart <= allowed).all())
    return Comparison(
        verdict=_verdict(near, opposite, (p_trend, p_drift, p_scatter), float(np.ptp(ratio)), 2 * float(allowed.max())),
        factor=Estimate(value=factor_of(solution[0]), low=factor_of(ends[0, 0]), high=factor_of(ends[0, 1]), kind=kind),
        drift=Estimate(value=float(solution[1]), low=float(ends[1, 0]), high=float(ends[1, 1]), kind=kind),
        p_trend=p_trend,
        p_drift=p_drift,
        p_scatter=p_scatter,
        **summary,
    )


def _verdict(
    near: bool, opposite: tuple[int, ...], p: tuple[float, float, float], spread_seen: float, rounding: float
) -> str:
    p_trend, p_drift, p_scatter = p
    if opposite:
        return "opposite_signs"
    if near:
        return "identical"
    level = 1 - CONFIDENCE
    if math.isnan(p_trend):  # no noise: a factor is constant, or it is not
        return "differs_by_factor" if spread_seen <= rounding else "differs"
    if p_trend < level:
        return "differs_by_factor" if p_drift >= level else "differs"
    if math.isnan(p_scatter):
        return "no_trend"
    return "agrees" if p_scatter >= level else "differs"


def _tail(estimate: FloatArray, covariance: FloatArray, freedom: float) -> float:
    """Probability of a larger F statistic if the coefficients are 0."""
    size = estimate.size
    if not np.any(covariance):  # no noise is left over: any departure is one
        return 0.0 if np.any(np.abs(estimate) > 1e-12) else 1.0
    statistic = float(estimate @ np.linalg.solve(covariance, estimate)) / size
    return float(fisher.sf(statistic, size, freedom))

"""One law, fitted: its parameters with intervals, its residuals, and what it costs in a comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.optimize import least_squares

from ropegeo._arrays import FloatArray
from ropegeo.asymptotics.data import DecayData
from ropegeo.asymptotics.intervals import ENCLOSURE, FEW_POINTS, KINDS, LIKELIHOOD, NONE, Spread, band, reach, spread
from ropegeo.asymptotics.laws import Law
from ropegeo.errors import FileFormatError
from ropegeo.exact import plain_integer

DIGITS_MET = 1e-9
"""Relative deviation below which a law says what computed margins are, digit by digit."""
MOST_DISCOUNTED = 0.8
"""Correlation that laws are compared at, at most: beyond, it is the misfit of them all rather than noise."""
TRIED = 4
"""Starts that are followed to the end: those with the least squared error."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A fitted number.

    Attributes:
        value: the estimate.
        low: lower end of its interval; NaN where there is none.
        high: upper end; infinite where it is beyond the range of doubles.
        kind: what the interval means, a key of `intervals.KINDS`.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    kind: str = NONE

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; None for an end that is infinite, or where there is no interval."""
        return {**{name: finite(getattr(self, name)) for name in ("value", "low", "high")}, "kind": self.kind}

    @classmethod
    def from_dict(cls, data: Any) -> Estimate:
        """Read what `to_dict` wrote.

        Raises:
            FileFormatError: a missing or malformed field.
        """
        try:
            none = data["kind"] == NONE
            value, low = (_or(data[name], math.nan) for name in ("value", "low"))
            high = _or(data["high"], math.nan if none else math.inf)
            if data["kind"] not in KINDS:
                raise FileFormatError(f"decay fit: an interval of kind {data['kind']!r} is unknown")
            return cls(value=value, low=low, high=high, kind=data["kind"])
        except FileFormatError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"decay fit: an estimate is malformed ({error})") from error


@dataclass(frozen=True, eq=False, kw_only=True)
class Shape:
    """A fitted law at any lengths, with the band of the laws that describe the data as well.

    Attributes:
        law: what was fitted.
        inner: its parameters at their best, the positive ones by their logarithm.
        jacobian: of the residuals.
        residuals: of the fit.
        known: how well the parameters are determined; None where they are not.
        is_exact: whether the data have no noise.
    """

    law: Law
    inner: Float[FloatArray, " k"]
    jacobian: Float[FloatArray, "n k"]
    residuals: Float[FloatArray, " n"]
    known: Spread | None
    is_exact: bool

    def log_margin(self, lengths: Sequence[int]) -> Float[FloatArray, " m"]:
        """Logarithm of the law's margin at any lengths."""
        return np.asarray(self.law.at(lengths)(natural(self.law, self.inner)))

    def band(self, lengths: Sequence[int]) -> Float[FloatArray, "m 2"] | None:
        """Lower and upper end, at each length, of the logarithm of the laws that describe the data as well.

        With noise: the 95 % interval of the law there, by the delta method from the covariance of its parameters;
        pointwise, and of the law, not of single margins. Without: the laws of the family that stay as near to every
        point as the fitted one. Both to first order in the parameters.

        Args:
            lengths: any.

        Returns:
            None where there is no band: nothing is fitted, the parameters are not determined, or one of them has a
            likelihood with many peaks.
        """
        if self.known is None or self.law.found is not None:
            return None
        model = self.law.at(lengths)
        middle = np.asarray(model(natural(self.law, self.inner)))
        slopes = _jacobian(lambda inner: np.asarray(model(natural(self.law, inner))), self.inner)
        if not np.isfinite(slopes).all():
            return None
        if self.is_exact:
            moves = reach(self.jacobian, self.residuals, slopes)
            return None if moves is None else np.asarray(middle[:, None] + moves)
        variance = np.sum((slopes @ self.known.covariance) * slopes, axis=1)
        half: FloatArray = self.known.quantile * np.sqrt(np.maximum(variance, 0.0))
        return np.asarray(middle[:, None] + half[:, None] * np.array([-1.0, 1.0]))


def natural(law: Law, inner: Float[FloatArray, " k"]) -> Float[FloatArray, " k"]:
    """Natural parameters of those that are fitted."""
    # A floor that is not there runs off to 0, where its logarithm would end the search.
    return np.where(law.positive, np.exp(np.where(law.positive, np.clip(inner, -700, 700), 0.0)), inner)


@dataclass(frozen=True, eq=False, kw_only=True)
class LawFit:
    """A law fitted to data.

    Attributes:
        law: name, one of `laws.LAWS`.
        formula: margin as a function of n.
        parameters: estimates by name.
        fixed: numbers of the law that are not fitted, as texts by name.
        log_margin: what the law says at each length used.
        rms: root mean square of the relative deviation (of the log margin).
        largest: the largest relative deviation.
        lag1: correlation of neighbouring residuals.
        correlation: that of neighbouring errors, as it is allowed for in the intervals.
        scale: residuals in units of the standard deviations given; NaN where none are.
        mean_square: of the residuals, in units of sd where it is given; not below that of the data's own rounding.
        counted: free numbers, those of the noise included.
        aicc: Akaike's criterion with the correction for few points; infinite where there are too few for the law.
        determined: whether the data determine all parameters.
    """

    law: str
    formula: str
    parameters: dict[str, Estimate]
    fixed: dict[str, str]
    log_margin: Float[FloatArray, " points"]
    rms: float
    largest: float
    lag1: float
    correlation: float
    scale: float
    mean_square: float
    counted: int
    aicc: float
    determined: bool
    shape: Shape | None = field(default=None, repr=False)
    """The law at any lengths; not part of the JSON."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, without what the law says at each length."""
        return {
            "law": self.law,
            "formula": self.formula,
            "parameters": {name: estimate.to_dict() for name, estimate in self.parameters.items()},
            "fixed": dict(self.fixed),
            "rms": finite(self.rms),
            "largest": finite(self.largest),
            "lag1": finite(self.lag1),
            "correlation": self.correlation,
            "scale": finite(self.scale),
            "mean_square": self.mean_square,
            "counted": self.counted,
            "aicc": finite(self.aicc),
            "determined": self.determined,
        }

    @classmethod
    def from_dict(cls, data: Any) -> LawFit:
        """Read what `to_dict` wrote: all but what the law says at each length, so that it cannot be drawn.

        Raises:
            FileFormatError: a missing or malformed field.
        """
        try:
            return cls(
                law=str(data["law"]),
                formula=str(data["formula"]),
                parameters={str(name): Estimate.from_dict(value) for name, value in data["parameters"].items()},
                fixed={str(name): str(value) for name, value in data["fixed"].items()},
                log_margin=np.zeros(0),
                lag1=_or(data["lag1"], math.nan),
                scale=_or(data["scale"], math.nan),
                aicc=_or(data["aicc"], math.inf),
                counted=plain_integer(data["counted"]),
                determined=bool(data["determined"]),
                rms=_or(data["rms"], math.inf),
                largest=_or(data["largest"], math.inf),
                correlation=float(data["correlation"]),
                mean_square=float(data["mean_square"]),
            )
        except FileFormatError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FileFormatError(f"decay fit: a law is malformed ({error})") from error


def finite(value: float) -> float | None:
    """A number for JSON: None where it is infinite or NaN, which JSON does not have."""
    return value if math.isfinite(value) else None


def _or(value: Any, instead: float) -> float:
    """A number of a file, where None stands for one that JSON does not have."""
    return instead if value is None else float(value)


def fit_law(law: Law, data: DecayData) -> LawFit | None:
    """Fit one law to data whose margins are all positive: maximum likelihood for normal errors.

    Without sd the errors are taken as relative and alike, which is least squares on the logarithm. With sd they are
    those of the margin itself, (margin - law)/sd, as the logarithm of a margin near its sd is skewed. sd counts up to a
    common factor, `scale`. Where no residual is left but rounding, the error of the data stands for the noise.

    Returns:
        None where the law is not for these data or the search for its parameters does not end.
    """
    if law.why_not:
        return None
    model = law.at(data.lengths)

    def residuals(inner: FloatArray) -> FloatArray:
        logs = model(natural(law, inner))
        if data.sd is None:
            return np.asarray(data.log_margin - logs)
        return np.asarray((data.margin - np.exp(np.minimum(logs, 300.0))) / data.sd)

    inner = _minimum(law, residuals)
    if inner is None:
        return None
    rest = residuals(inner)
    if not np.isfinite(rest).all():
        return None
    jacobian = _jacobian(residuals, inner)
    known = spread(jacobian, rest) if inner.size else None
    rounding = data.relative_error if data.sd is None else data.relative_error * data.margin / data.sd
    count, squares = rest.size, float(rest @ rest)
    logs = np.asarray(model(natural(law, inner)))
    shown = data.log_margin - logs
    parameters = _estimates(law, data, inner, jacobian, rest, known)
    # A staircase that is searched for costs a free number a step, unless computed margins are met digit by digit: so
    # many digits no choice of a few quotients can meet.
    is_found = law.found is not None and data.is_exact and float(np.abs(shown).max()) < DIGITS_MET
    return LawFit(
        law=law.name,
        formula=law.formula,
        parameters=parameters,
        fixed=dict(law.fixed),
        log_margin=logs,
        rms=float(np.sqrt(np.mean(shown**2))),
        largest=float(np.abs(shown).max()),
        lag1=float(rest[1:] @ rest[:-1]) / squares if squares > 0 else math.nan,
        correlation=0.0 if known is None or data.is_exact else known.correlation,
        scale=math.nan if data.sd is None else math.sqrt(squares / max(count - inner.size, 1)),
        mean_square=max(squares / count, float(np.mean(rounding**2))),
        counted=len(parameters) if is_found else law.counted,
        aicc=math.inf,
        determined=not inner.size or known is not None,
        shape=Shape(law=law, inner=inner, jacobian=jacobian, residuals=rest, known=known, is_exact=data.is_exact),
    )


def _minimum(law: Law, residuals: Any) -> FloatArray | None:
    """Inner parameters with the least squared error."""
    if not law.parameters:
        return np.zeros(0)
    starts = []
    for start in law.starts:
        inner = np.array(
            [math.log(value) if positive else value for value, positive in zip(start, law.positive, strict=True)]
        )
        rest = residuals(inner)
        if np.isfinite(rest).all():
            starts.append((float(rest @ rest), tuple(inner)))

    def followed(start: Any, tolerance: float, steps: int) -> Any:
        return least_squares(
            residuals,
            np.array(start),
            jac="3-point",
            x_scale="jac",
            max_nfev=steps,
            ftol=tolerance,
            xtol=tolerance,
            gtol=tolerance,
        )

    found = [followed(start, 1e-6, 30) for _, start in sorted(starts)[:TRIED]]
    found = [end for end in found if np.isfinite(end.cost)]
    if not found:
        return None
    best = followed(min(found, key=lambda end: end.cost).x, 1e-13, 100)
    return np.asarray(best.x)


def _jacobian(residuals: Any, inner: FloatArray) -> FloatArray:
    """Central differences, in steps that suit the size of each parameter."""
    columns = []
    for place, value in enumerate(inner):
        step = 1e-6 * max(abs(value), 1e-3)
        ends = [residuals(np.where(np.arange(inner.size) == place, value + side * step, inner)) for side in (1, -1)]
        columns.append((ends[0] - ends[1]) / (2 * step))
    return np.column_stack(columns) if columns else np.zeros((residuals(inner).size, 0))


def _estimates(
    law: Law, data: DecayData, inner: FloatArray, jacobian: FloatArray, rest: FloatArray, known: Spread | None
) -> dict[str, Estimate]:
    """Natural parameters with their intervals: enclosures where there is no noise."""
    found = {}
    if law.found is not None:
        name, value, low, high = law.found
        found[name] = Estimate(value=value, low=low, high=high, kind=LIKELIHOOD)
    ends, kind = None, NONE
    if known is not None and data.is_exact:
        moves = band(jacobian, rest)
        if moves is not None:
            ends, kind = inner[:, None] + moves, ENCLOSURE
    elif known is not None:
        ends, kind = inner[:, None] + np.outer(known.half_widths, [-1, 1]), known.kind
    for place, name in enumerate(law.parameters):
        values = [inner[place], *(ends[place] if ends is not None else (math.nan, math.nan))]
        value, low, high = (factor_of(v) if law.positive[place] else float(v) for v in values)
        found[name] = Estimate(value=value, low=low, high=high, kind=kind)
    return found


def factor_of(logarithm: float) -> float:
    """Its exponential: infinite where that is no double."""
    return math.exp(logarithm) if not logarithm > 709 else math.inf


def compared(fits: Sequence[LawFit], count: int) -> tuple[LawFit, ...]:
    """Laws fitted to the same points, each with its AICc, the best first.

    AICc = M log(mean square) + 2k + 2k(k+1)/(N - k - 1), k free numbers with those of the noise. The mean square is the
    variance at its best. From `FEW_POINTS` points on neighbouring errors may be correlated: by rho, of the law that
    comes nearest, for every law alike, and N points are worth M = N (1 - rho)/(1 + rho); below that M = N. So a law
    that holds another as a case is never less likely than it.

    Args:
        fits: without AICc.
        count: N, the number of points.
    """
    if not fits:
        return ()
    nearest = min(fits, key=lambda fit: fit.mean_square)
    rho = min(max(nearest.correlation, 0.0), MOST_DISCOUNTED) if count >= FEW_POINTS else 0.0
    worth = count * (1 - rho) / (1 + rho)
    noise = 1 if count < FEW_POINTS else 2
    found = []
    for fit in fits:
        counted = fit.counted + noise
        left = count - counted - 1
        penalty = math.inf if left <= 0 else 2 * counted + 2 * counted * (counted + 1) / left
        found.append(replace(fit, counted=counted, aicc=worth * math.log(fit.mean_square) + penalty))
    return tuple(sorted(found, key=lambda fit: (fit.aicc, fit.counted)))

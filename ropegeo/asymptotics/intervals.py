r"""Intervals for fitted parameters that cover: Student's t, a t that allows for correlated residuals, and enclosures.

Let r be the residuals of a (weighted) least-squares fit with Jacobian X (n x k), M = I - X (X'X)^-1 X', and let the
noise have covariance sigma^2 R(rho), R_ij = rho^|i-j| (an AR(1) sequence over the points as they are listed). Then

    cov(estimate) = sigma^2 (X'X)^-1 X'RX (X'X)^-1,   E r'r = sigma^2 tr(MR),   E r'S r = sigma^2 tr(M S M R),

S half the sum of both shifts by one. Residuals are less correlated than the noise, as the fit takes some of it away;
so rho is the one whose ratio tr(MSMR)/tr(MR) is the ratio seen, sigma^2 = r'r/tr(MR), and the degrees of freedom are
those of Satterthwaite, tr(MR)^2/tr((MR)^2), less one for rho. rho is not taken below -0.1: a correlation that is
negative by chance would make the interval narrow, and at that limit intervals for independent noise cover 95 %.
Everything is computed in O(n k) by recursions, no n x n matrix is formed.

How often these cover: benchmarks/coverage_of_fits.py. With independent noise 95 % at any number of points; with AR(1)
0.5, 92 % from 30 points on. Of short, strongly correlated series less: rho cannot be told from so few points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq, linprog
from scipy.signal import lfilter
from scipy.stats import t as student

from ropegeo._arrays import FloatArray

CONFIDENCE = 0.95
FEW_POINTS = 20
"""Below this many points a correlation cannot be told from chance, and Student's t is used."""
LEAST_CORRELATED, MOST_CORRELATED = -0.1, 0.97
SINGULAR = 1e-7
"""Ratio of singular values below which parameters are not told apart: above the error of central differences."""
STUDENT, SERIAL, ENCLOSURE, LIKELIHOOD, NONE = "student_t", "serial_t", "enclosure", "likelihood", "none"
KINDS = {
    STUDENT: f"95 % interval if the noise is independent: Student's t (fewer than {FEW_POINTS} points)",
    SERIAL: "95 % interval, t with the residuals' correlation between neighbours allowed for",
    ENCLOSURE: "no noise, so no error bar: the range over all laws of the kind that come as near to every point",
    LIKELIHOOD: "values whose likelihood is within the 95 % point of the best",
    NONE: "no interval",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Spread:
    """What is known of the errors of fitted parameters.

    Attributes:
        covariance: of the parameters as fitted, k x k.
        freedom: degrees of freedom of the t distribution.
        correlation: of neighbouring errors, 0 where it is not allowed for.
        kind: `student_t` or `serial_t`.
    """

    covariance: Float[FloatArray, "k k"]
    freedom: float
    correlation: float
    kind: str

    @property
    def quantile(self) -> float:
        """Half the width of a 95 % interval in standard errors."""
        return float(student.ppf((1 + CONFIDENCE) / 2, self.freedom))

    @property
    def half_widths(self) -> Float[FloatArray, " k"]:
        """Half the width of each 95 % interval."""
        return np.asarray(self.quantile * np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))


def spread(jacobian: Float[FloatArray, "n k"], residuals: Float[FloatArray, " n"]) -> Spread | None:
    """The errors of least-squares parameters, from the residuals.

    Args:
        jacobian: of the residuals, of full rank.
        residuals: in units of their standard deviation, up to a common factor.

    Returns:
        None where the parameters are not determined, or no residual is left over.
    """
    n, k = jacobian.shape
    if n <= k or not is_determined(jacobian):
        return None
    # Parameters differ in size by many orders: each is taken in units of its own column.
    sizes = np.linalg.norm(jacobian, axis=0)
    squares = float(residuals @ residuals)
    design = _Design(jacobian / sizes)
    if n < FEW_POINTS:
        shape, trace, freedom, rho, kind = design.inverse, float(n - k), float(n - k), 0.0, STUDENT
    else:
        rho = design.correlation(float(residuals[1:] @ residuals[:-1]) / squares) if squares > 0 else 0.0
        shape, trace, freedom = design.moments(rho)
        freedom, kind = max(freedom - 1, 1.0), SERIAL
    covariance = shape / np.outer(sizes, sizes) * (squares / trace)
    return Spread(covariance=covariance, freedom=freedom, correlation=rho, kind=kind)


def is_determined(jacobian: Float[FloatArray, "n k"]) -> bool:
    """Whether every parameter moves the residuals in a direction of its own, as far as doubles can tell."""
    sizes = np.linalg.norm(jacobian, axis=0)
    if not (np.isfinite(jacobian).all() and (sizes > 0).all()):
        return False
    singular = np.linalg.svd(jacobian / sizes, compute_uv=False)
    return bool(singular[-1] > SINGULAR * singular[0]) if singular.size else True


class _Design:
    """The traces of the module for one Jacobian."""

    def __init__(self, jacobian: FloatArray) -> None:
        self._n = jacobian.shape[0]
        self._x = jacobian
        triangle = np.linalg.inv(np.linalg.qr(jacobian, mode="r"))
        self.inverse = triangle @ triangle.T
        self._shifted = np.zeros_like(jacobian)
        self._shifted[1:] += jacobian[:-1] / 2
        self._shifted[:-1] += jacobian[1:] / 2

    def _correlated(self, rho: float) -> FloatArray:
        """R X."""
        forward = lfilter([1.0], [1.0, -rho], self._x, axis=0)
        backward = lfilter([1.0], [1.0, -rho], self._x[::-1], axis=0)[::-1]
        return np.asarray(forward + backward - self._x)

    def ratio(self, rho: float) -> float:
        """What r'Sr/r'r is on average, up to terms of order 1/n^2."""
        rx = self._correlated(rho)
        inner = self.inverse @ (self._x.T @ rx)
        shifted = self.inverse @ (self._x.T @ self._shifted)
        top = (self._n - 1) * rho - 2 * np.trace(self.inverse @ (rx.T @ self._shifted)) + np.trace(inner @ shifted)
        return float(top / (self._n - np.trace(inner)))

    def correlation(self, seen: float) -> float:
        """The rho in the limits for which residuals are as correlated as seen."""
        if seen <= self.ratio(LEAST_CORRELATED):
            return LEAST_CORRELATED
        if seen >= self.ratio(MOST_CORRELATED):
            return MOST_CORRELATED
        return float(brentq(lambda rho: self.ratio(rho) - seen, LEAST_CORRELATED, MOST_CORRELATED, xtol=1e-9))

    def moments(self, rho: float) -> tuple[FloatArray, float, float]:
        """(X'X)^-1 X'RX (X'X)^-1, tr(MR), and tr(MR)^2/tr((MR)^2)."""
        rx = self._correlated(rho)
        inner = self.inverse @ (self._x.T @ rx)
        trace = float(self._n - np.trace(inner))
        lags = np.arange(1, self._n)
        whole = self._n + 2 * float(np.sum((self._n - lags) * rho ** (2 * lags)))
        squared = whole - 2 * float(np.trace(self.inverse @ (rx.T @ rx))) + float(np.trace(inner @ inner))
        return inner @ self.inverse, trace, trace**2 / squared


def band(jacobian: Float[FloatArray, "n k"], residuals: Float[FloatArray, " n"]) -> Float[FloatArray, "k 2"] | None:
    """How far each parameter can move, down and up, while no residual becomes larger than the largest one is.

    A statement about the points, not about chance: every law of the family that stays as near to all of them as the
    fitted one does has its parameters within. Exact where the law is linear in its parameters (of which the positive
    ones enter by their logarithm), otherwise to first order.

    Args:
        jacobian: of the residuals.
        residuals: of the fit.

    Returns:
        Moves, the first not above 0 and the second not below, or None where a parameter is not determined.
    """
    return reach(jacobian, residuals, np.eye(jacobian.shape[1]))


def reach(
    jacobian: Float[FloatArray, "n k"], residuals: Float[FloatArray, " n"], directions: Float[FloatArray, "m k"]
) -> Float[FloatArray, "m 2"] | None:
    """As `band`, for any linear functions of the parameters: how far each can move, down and up.

    Args:
        jacobian: of the residuals.
        residuals: of the fit.
        directions: the functions, one a row.

    Returns:
        Moves, the first not above 0 and the second not below, or None where a parameter is not determined.
    """
    n, k = jacobian.shape
    largest = float(np.abs(residuals).max())
    if n < k or not is_determined(jacobian):
        return None
    if largest == 0:
        return np.zeros((directions.shape[0], 2))
    sizes = np.linalg.norm(jacobian, axis=0)
    # In these units every number is of order one, which linear programs need.
    rows, rest = jacobian / sizes, residuals / largest
    moves = np.zeros((directions.shape[0], 2))
    for place, direction in enumerate(directions / sizes):
        unit = float(np.abs(direction).max()) or 1.0
        for side, sign in enumerate((1.0, -1.0)):
            found = linprog(
                sign * direction / unit,
                A_ub=np.vstack([rows, -rows]),
                b_ub=np.concatenate([1 - rest, 1 + rest]) + 1e-9,
                bounds=[(None, None)] * k,
            )
            if found.x is None:
                return None
            moves[place, side] = float(direction @ found.x) * largest
    return np.asarray(np.column_stack([np.minimum(moves[:, 0], 0), np.maximum(moves[:, 1], 0)]))

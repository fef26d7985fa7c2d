"""Bounds on the margin of a positional head on several planes, docs/MATHEMATICS.md, section 7.

Such a head scores Re sum_k z_k exp(i t theta_k) at displacement t from its target, sum |z_k| <= 1, and its margin over
a window of displacements is the smallest Re sum_k z_k (1 - exp(i t theta_k)). Margins are in units of beta.
Arguments: see `scope`.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ropegeo._arrays import ComplexArray, FloatArray
from ropegeo.asymptotics.bounds.scope import EXACT, complexes, doubles, sizeable, whole, within

UNIT_TOLERANCE = 2.0**-40
"""By how much a sum of weights may miss 1, as sums of doubles do, before it is taken for a mistake: 9e-13."""


def simultaneous_bound(reach: ArrayLike, planes: ArrayLike) -> Float[FloatArray, "*shape"]:
    """2 sin(pi (T+1)^(-1/F))^2: no index head on F planes has a larger margin at reach T, whatever angles and weights.

    It is at most 2 pi^2 (T+1)^(-2/F). One plane: `dirichlet_bound`.

    Args:
        reach: T, a whole number up to 1e150, T + 1 >= 2^F.
        planes: F, a whole number >= 1: the planes with positive weight, those with equal angles counted once.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 1e-15 (1 + log(T+1)/F).

    Source: ours, after Dirichlet and Minkowski; proof in derivations, `many_planes`.

    Example:
        >>> float(simultaneous_bound(np.array(3.0), np.array(2.0)))
        2.0
    """
    reach, planes = doubles("simultaneous_bound", reach=reach, planes=planes)
    whole("simultaneous_bound", reach=reach, planes=planes)
    within(
        "simultaneous_bound",
        # frexp's exponent is above F iff the number is at least 2^F, exactly.
        (planes >= 1) & (np.frexp(reach + 1)[1] > planes),
        "planes >= 1, reach >= 2^planes - 1",
        reach=reach,
        planes=planes,
    )
    bound: FloatArray = np.asarray(2 * np.sin(np.pi * (reach + 1) ** (-1 / planes)) ** 2)
    return bound


def dual_bound(angles: ArrayLike, displacements: ArrayLike, distribution: ArrayLike) -> Float[FloatArray, "*batch"]:
    """max_k |sum_t mu_t (1 - exp(i t theta_k))|: no positional head has a larger margin over these displacements.

    It bounds every head on these planes, phases included, for any distribution mu. The best mu attains the best margin.

    Args:
        angles: theta_k in radians per position, a list of at least one, each 0 or of size 1e-150 and more, with
            |t theta_k| <= 2^53: beyond, doubles cannot tell the angles of a turn apart.
        displacements: t of the window, a list of at least one: whole numbers other than 0, |t| < 2^53.
        distribution: mu_t >= 0 along the last axis, of sum 1 up to `UNIT_TOLERANCE`; it is divided by its sum.

    Raises:
        InvalidInputError: anything else.

    Accuracy: absolute error below 1.2e-16 (max |t theta_k| + 4 N + 20) for N displacements, the angles as given.

    Source: docs/MATHEMATICS.md, section 7; proof in derivations, `optimal_duality`.

    Example:
        >>> float(dual_bound(np.array([np.pi]), np.array([-1, 1]), np.array([0.5, 0.5])))
        2.0
    """
    shortfalls = _shortfalls("dual_bound", angles, displacements)
    (weights,) = doubles("dual_bound", distribution=distribution)
    _rows("dual_bound", weights, len(shortfalls), "displacements")
    within("dual_bound", weights >= 0, "a distribution >= 0", distribution=weights)
    total = weights.sum(axis=-1, keepdims=True)
    within("dual_bound", np.abs(total - 1) <= UNIT_TOLERANCE, "a distribution of sum 1", sum=total)
    bound: FloatArray = np.asarray(np.abs(weights / total @ shortfalls).max(axis=-1))
    return bound


def primal_margin(angles: ArrayLike, displacements: ArrayLike, coefficients: ArrayLike) -> Float[FloatArray, "*batch"]:
    """min_t Re sum_k z_k (1 - exp(i t theta_k)): the margin of one head, so the best margin is at least this.

    Args:
        angles: theta_k in radians per position, a list of at least one, each 0 or of size 1e-150 and more, with
            |t theta_k| <= 2^53: beyond, doubles cannot tell the angles of a turn apart.
        displacements: t of the window, a list of at least one: whole numbers other than 0, |t| < 2^53.
        coefficients: z_k along the last axis, sum |z_k| <= 1 up to `UNIT_TOLERANCE`; where the sum is above 1, they
            are divided by it.

    Raises:
        InvalidInputError: anything else.

    Accuracy: absolute error below 1.2e-16 (max |t theta_k| + 4 F + 20) for F planes, the angles as given.

    Source: docs/MATHEMATICS.md, section 7; proof in derivations, `optimal_duality`.

    Example:
        >>> float(primal_margin(np.array([np.pi]), np.array([-1, 1]), np.array([1 + 0j])))
        2.0
    """
    gaps = _shortfalls("primal_margin", angles, displacements).T
    (head,) = complexes("primal_margin", coefficients=coefficients)
    _rows("primal_margin", head, len(gaps), "planes")
    total = np.abs(head).sum(axis=-1, keepdims=True)
    within("primal_margin", total - 1 <= UNIT_TOLERANCE, "sum |coefficients| <= 1", sum=total)
    margin: FloatArray = np.asarray((head / np.maximum(1, total) @ gaps).real.min(axis=-1))
    return margin


def _shortfalls(call: str, angles: ArrayLike, displacements: ArrayLike) -> ComplexArray:
    """1 - exp(i t theta_k) as 2 sin(x) (sin(x) - i cos(x)), x = t theta_k/2: displacements by planes.

    Refused: angles or displacements that are not a list of at least one, a window with the target in it, and products
    that doubles cannot hold to a radian.
    """
    (theta,), (t,) = doubles(call, angles=angles), doubles(call, displacements=displacements)
    within(call, theta.ndim == 1 and theta.size > 0, "a list of at least one angle", dimensions=theta.ndim)
    within(call, t.ndim == 1 and t.size > 0, "a list of at least one displacement", dimensions=t.ndim)
    whole(call, displacements=t)
    sizeable(call, angles=theta)
    within(call, (t != 0) & (np.abs(t) < EXACT), "displacements other than 0, below 2^53 in size", displacements=t)
    turned = t[:, None] * theta
    within(call, np.abs(turned) <= EXACT, "|displacement * angle| <= 2^53", displacement=t[:, None], angle=theta)
    sines = np.sin(turned / 2)
    shortfalls: ComplexArray = np.asarray(2 * sines * (sines - 1j * np.cos(turned / 2)))
    return shortfalls


def _rows(call: str, array: FloatArray | ComplexArray, count: int, of: str) -> None:
    """Refuse an array whose last axis is not one of this many."""
    needs = f"one number for each of the {of} along the last axis"
    within(call, array.shape[-1:] == (count,), needs, numbers=array.size, **{of: count})

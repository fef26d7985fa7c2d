"""Bounds on the margin of a positional head on several planes, docs/MATHEMATICS.md, section 7.

Such a head scores Re sum_k z_k exp(i t theta_k) at displacement t from its target, sum |z_k| <= 1, and its margin over
a window of displacements is the smallest Re sum_k z_k (1 - exp(i t theta_k)). Margins are in units of beta.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Complex, Float, Int

from ropegeo._arrays import ComplexArray, FloatArray, IntArray
from ropegeo.asymptotics.bounds.scope import within

UNIT_TOLERANCE = 2.0**-40
"""By how much the sum of weights may miss 1: what adding doubles up costs, 9e-13."""


def simultaneous_bound(
    reach: Float[FloatArray, "*#shape"], planes: Float[FloatArray, "*#shape"]
) -> Float[FloatArray, "*#shape"]:
    """2 sin(pi (T+1)^(-1/F))^2: no index head on F planes has a larger margin at reach T, whatever angles and weights.

    It is at most 2 pi^2 (T+1)^(-2/F). One plane: `dirichlet_bound`.

    Args:
        reach: T, an integer with T + 1 >= 2^F.
        planes: F, an integer >= 1: the planes with positive weight, those with equal angles counted once.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 1e-15 (1 + log(T+1)/F).

    Source: ours, after Dirichlet and Minkowski; proof in derivations, `many_planes`.

    Example:
        >>> float(simultaneous_bound(np.array(3.0), np.array(2.0)))
        2.0
    """
    within(
        "simultaneous_bound",
        # frexp's exponent is above F iff the number is at least 2^F, exactly.
        (planes >= 1) & (planes == np.floor(planes)) & (reach == np.floor(reach)) & (np.frexp(reach + 1)[1] > planes),
        "integers planes >= 1, reach >= 2^planes - 1",
        reach=reach,
        planes=planes,
    )
    bound: FloatArray = np.asarray(2 * np.sin(np.pi * (reach + 1) ** (-1 / planes)) ** 2)
    return bound


def dual_bound(
    angles: Float[FloatArray, " planes"],
    displacements: Int[IntArray, " displacements"],
    distribution: Float[FloatArray, "*batch displacements"],
) -> Float[FloatArray, "*batch"]:
    """max_k |sum_t mu_t (1 - exp(i t theta_k))|: no positional head has a larger margin over these displacements.

    It bounds every head on these planes, phases included, for any distribution mu. The best mu attains the best margin.

    Args:
        angles: theta_k in radians per position, finite; at least one.
        displacements: t of the window, none of them 0; at least one.
        distribution: mu_t >= 0, each row of sum 1.

    Raises:
        InvalidInputError: anything else; a sum may miss 1 by `UNIT_TOLERANCE`.

    Accuracy: absolute error below 1.2e-16 (max |t theta_k| + 2 N + 20) for N displacements, the angles as given.

    Source: docs/MATHEMATICS.md, section 7; proof in derivations, `optimal_duality`.

    Example:
        >>> float(dual_bound(np.array([np.pi]), np.array([-1, 1]), np.array([0.5, 0.5])))
        2.0
    """
    _check_window("dual_bound", angles, displacements)
    total = distribution.sum(axis=-1)
    within("dual_bound", distribution >= 0, "a distribution >= 0", entry=distribution)
    within("dual_bound", np.abs(total - 1) <= UNIT_TOLERANCE, "a distribution of sum 1", sum=total)
    bound: FloatArray = np.asarray(np.abs(distribution @ _shortfalls(angles, displacements)).max(axis=-1))
    return bound


def primal_margin(
    angles: Float[FloatArray, " planes"],
    displacements: Int[IntArray, " displacements"],
    coefficients: Complex[ComplexArray, "*batch planes"],
) -> Float[FloatArray, "*batch"]:
    """min_t Re sum_k z_k (1 - exp(i t theta_k)): the margin of one head, so the best margin is at least this.

    Args:
        angles: theta_k in radians per position, finite; at least one.
        displacements: t of the window, none of them 0; at least one.
        coefficients: z_k, each row with sum |z_k| <= 1.

    Raises:
        InvalidInputError: anything else; a sum may exceed 1 by `UNIT_TOLERANCE`.

    Accuracy: absolute error below 1.2e-16 (max |t theta_k| + 2 F + 20) for F planes, the angles as given.

    Source: docs/MATHEMATICS.md, section 7; proof in derivations, `optimal_duality`.

    Example:
        >>> float(primal_margin(np.array([np.pi]), np.array([-1, 1]), np.array([1 + 0j])))
        2.0
    """
    _check_window("primal_margin", angles, displacements)
    total = np.abs(coefficients).sum(axis=-1)
    within("primal_margin", total - 1 <= UNIT_TOLERANCE, "sum |coefficients| <= 1", sum=total)
    margin: FloatArray = np.asarray((coefficients @ _shortfalls(angles, displacements).T).real.min(axis=-1))
    return margin


def _check_window(call: str, angles: FloatArray, displacements: IntArray) -> None:
    """Refuse a window without displacements or with the target in it, and angles that are none."""
    within(call, angles.size > 0, "at least one angle", angles=angles.size)
    within(call, displacements.size > 0, "at least one displacement", displacements=displacements.size)
    within(call, np.isfinite(angles), "finite angles", angle=angles)
    within(call, displacements != 0, "displacements other than 0", displacement=displacements)


def _shortfalls(angles: FloatArray, displacements: IntArray) -> ComplexArray:
    """1 - exp(i t theta_k) as 2 sin(x) (sin(x) - i cos(x)), x = t theta_k/2: displacements by planes."""
    halves = displacements[:, None] * angles / 2
    sines = np.sin(halves)
    shortfalls: ComplexArray = np.asarray(2 * sines * (sines - 1j * np.cos(halves)))
    return shortfalls

"""Bounds on the margin of an index head on one plane, docs/MATHEMATICS.md, section 5.

The reach T = max(s, n-1-s) is the largest displacement from offset s that length n shows. Margins are in units of beta.
Arguments: see `scope`.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ropegeo._arrays import FloatArray
from ropegeo.asymptotics.bounds.scope import doubles, sizeable, whole, within

LEAST_LIMSUP = ((5 + 5**0.5) / 10) ** 2
"""Smallest limsup of (T+1)^2 margin/(2 pi^2) over irrational theta/(2 pi), 0.5236..: derivation `limsup`."""

GREATEST_LIMINF = 1 / 5
"""Largest liminf of (T+1)^2 margin/(2 pi^2) over irrational theta/(2 pi): derivation `limsup`."""


def dirichlet_bound(reach: ArrayLike) -> Float[FloatArray, "*shape"]:
    """1 - cos(2 pi/(T+1)): no one-plane index head has a larger margin at reach T, whatever its angle.

    Attained by theta = 2 pi p/(T+1) with gcd(p, T+1) = 1.

    Args:
        reach: T, a whole number from 1 to 1e150.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 1e-15 (sine form).

    Source: docs/MATHEMATICS.md, section 5 (Dirichlet 1842); proof in derivations, `dirichlet_bound`.

    Example:
        >>> float(dirichlet_bound(np.array(1.0)))
        2.0
    """
    (reach,) = doubles("dirichlet_bound", reach=reach)
    whole("dirichlet_bound", reach=reach)
    within("dirichlet_bound", reach >= 1, "reach >= 1", reach=reach)
    bound: FloatArray = np.asarray(2 * np.sin(np.pi / (reach + 1)) ** 2)
    return bound


def convergent_lower_bound(denominator: ArrayLike, next_denominator: ArrayLike) -> Float[FloatArray, "*shape"]:
    """1 - cos(2 pi/(q_k + q_(k+1))): a one-plane index head has a larger margin at every reach q_k <= T < q_(k+1).

    q_k is the last convergent denominator of theta/(2 pi) within the reach, q_(k+1) the next. Where theta/(2 pi) is
    rational, this holds as long as there is a next one; after that the margin is 0.

    Args:
        denominator: q_k, a whole number from 1 to 1e150.
        next_denominator: q_(k+1), a whole number from 2 to 1e150, not below q_k (it is above, but doubles may round
            the two to one).

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 2e-15 (sine form).

    Source: docs/MATHEMATICS.md, section 5; proof in derivations, `lower_bound`.

    Example:
        >>> bool(convergent_lower_bound(np.array(710.0), np.array(103_993.0)) < 1.8173640789234051e-9)  # theta = 1
        True
    """
    denominator, next_denominator = doubles(
        "convergent_lower_bound", denominator=denominator, next_denominator=next_denominator
    )
    whole("convergent_lower_bound", denominator=denominator, next_denominator=next_denominator)
    within(
        "convergent_lower_bound",
        (denominator >= 1) & (next_denominator >= denominator) & (next_denominator >= 2),
        "1 <= denominator <= next_denominator, next_denominator >= 2",
        denominator=denominator,
        next_denominator=next_denominator,
    )
    bound: FloatArray = np.asarray(2 * np.sin(np.pi / (denominator + next_denominator)) ** 2)
    return bound


def convergent_upper_bound(next_denominator: ArrayLike) -> Float[FloatArray, "*shape"]:
    """1 - cos(2 pi/q_(k+1)): no one-plane index head has a larger margin at a reach q_k <= T < q_(k+1).

    Met only where theta/(2 pi) is rational with denominator q_(k+1). As q_(k+1) >= T + 1, it is at most
    `dirichlet_bound`.

    Args:
        next_denominator: q_(k+1), the first convergent denominator of theta/(2 pi) beyond the reach, a whole number
            from 2 to 1e150 (a reach has at least 1 in it, so it cannot be 1).

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 1e-15 (sine form).

    Source: docs/MATHEMATICS.md, section 5; proof in derivations, `lower_bound`.

    Example:
        >>> float(convergent_upper_bound(np.array(2.0)))
        2.0
    """
    (next_denominator,) = doubles("convergent_upper_bound", next_denominator=next_denominator)
    whole("convergent_upper_bound", next_denominator=next_denominator)
    within("convergent_upper_bound", next_denominator >= 2, "next_denominator >= 2", next_denominator=next_denominator)
    bound: FloatArray = np.asarray(2 * np.sin(np.pi / next_denominator) ** 2)
    return bound


def envelope_constant(ratio: ArrayLike, tail: ArrayLike) -> Float[FloatArray, "*shape"]:
    """1/(1 + x y)^2: (T+1)^2 margin/(2 pi^2) where a step of the staircase ends, T = q_(k+1) - 1, as k grows.

    At finite k, for irrational theta/(2 pi), the true value is below by a relative pi^2/(3 q_(k+1)^2) at most.

    Args:
        ratio: x = q_k/q_(k+1), 0 or from 1e-150 to 1.
        tail: y = 1/alpha_(k+2) = [0; a_(k+2), a_(k+3), ...], 0 or from 1e-150 to 1.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 1e-15.

    Source: docs/MATHEMATICS.md, section 5; proof in derivations, `limsup`.

    Example:
        >>> float(envelope_constant(np.array(0.5), np.array(0.0)))
        1.0
    """
    ratio, tail = _fractions("envelope_constant", ratio, tail)
    constant: FloatArray = np.asarray(1 / (1 + ratio * tail) ** 2)
    return constant


def trough_constant(ratio: ArrayLike, tail: ArrayLike) -> Float[FloatArray, "*shape"]:
    """x^2/(1 + x y)^2: q_k^2 margin/(2 pi^2) where a step of the staircase begins, T = q_k, as k grows.

    T^2 stands for (T+1)^2, which is the same in the limit. At finite k, for irrational theta/(2 pi), the true value is
    below by a relative pi^2/(3 q_(k+1)^2) at most.

    Args:
        ratio: x = q_k/q_(k+1), 0 or from 1e-150 to 1.
        tail: y = 1/alpha_(k+2) = [0; a_(k+2), a_(k+3), ...], 0 or from 1e-150 to 1.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 1e-15.

    Source: docs/MATHEMATICS.md, section 5; proof in derivations, `limsup`.

    Example:
        >>> float(trough_constant(np.array(0.5), np.array(0.0)))
        0.25
    """
    ratio, tail = _fractions("trough_constant", ratio, tail)
    constant: FloatArray = np.asarray((ratio / (1 + ratio * tail)) ** 2)
    return constant


def _fractions(call: str, ratio: ArrayLike, tail: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Quotients of neighbouring denominators and tails, or limits of such; anything else is refused."""
    x, y = doubles(call, ratio=ratio, tail=tail)
    sizeable(call, ratio=x, tail=y)
    within(call, (x >= 0) & (x <= 1) & (y >= 0) & (y <= 1), "0 <= ratio <= 1, 0 <= tail <= 1", ratio=x, tail=y)
    return x, y


def small_angle_upper(angle: ArrayLike) -> Float[FloatArray, "*shape"]:
    """x^2/2: 1 - cos x is never above it.

    With x = 2 pi/(T+1): `dirichlet_bound` is at most 2 pi^2/(T+1)^2, and less by a relative pi^2/(3 (T+1)^2) at most.

    Args:
        angle: x in radians, 0 or of size 1e-150 to 1e150.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 1e-15.

    Source: docs/MATHEMATICS.md, section 5; proof in derivations, `small_angle`.

    Example:
        >>> float(small_angle_upper(np.array(2.0)))
        2.0
    """
    (angle,) = doubles("small_angle_upper", angle=angle)
    sizeable("small_angle_upper", angle=angle)
    bound: FloatArray = np.asarray(angle**2 / 2)
    return bound


def small_angle_lower(angle: ArrayLike) -> Float[FloatArray, "*shape"]:
    """x^2/2 - x^4/24: 1 - cos x is never below it; above |x| = sqrt(12) it is negative and says nothing.

    Args:
        angle: x in radians, 0 or of size 1e-150 to 1e150.

    Raises:
        InvalidInputError: anything else.

    Accuracy: error below 1e-15 (x^2/2 + x^4/24); minus infinity where that overflows.

    Source: docs/MATHEMATICS.md, section 5; proof in derivations, `small_angle`.

    Example:
        >>> bool(small_angle_lower(np.array(2.0)) < 1 - np.cos(2.0))
        True
    """
    (angle,) = doubles("small_angle_lower", angle=angle)
    sizeable("small_angle_lower", angle=angle)
    with np.errstate(over="ignore"):
        bound: FloatArray = np.asarray(angle**2 / 2 * (1 - angle**2 / 12))
    return bound

"""When softmax attention decodes: thresholds, and how the length grows with the scale, docs/MATHEMATICS.md, section 8.

For an index head of offset s at length n, S(beta) = sum of exp(-beta (1 - cos(t theta))) over the displacements t other
than 0 in {-s..n-1-s}; the target's weight is 1/(1 + S). What decodes is S below a threshold c. Arguments: see `scope`.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import i0e

from ropegeo._arrays import FloatArray
from ropegeo.asymptotics.bounds.scope import doubles, sizeable, within


def softmax_threshold(weight: ArrayLike) -> Float[FloatArray, "*shape"]:
    """1/w - 1: the sum S at which the target's weight 1/(1 + S) is w; the weight is above w iff S is below it.

    An integer query needs a weight above 1/2, a letter query above 1/4, a head with a fixed offset s > 0 above 3/4.

    Args:
        weight: w, 1e-150 <= w < 1.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 1e-15.

    Source: docs/MATHEMATICS.md, section 8; proof in derivations, `softmax_threshold`.

    Example:
        >>> softmax_threshold(np.array([0.5, 0.25])).tolist()
        [1.0, 3.0]
    """
    (weight,) = doubles("softmax_threshold", weight=weight)
    sizeable("softmax_threshold", weight=weight)
    within("softmax_threshold", (weight > 0) & (weight < 1), "0 < weight < 1", weight=weight)
    threshold: FloatArray = np.asarray((1 - weight) / weight)
    return threshold


def circle_mean(beta: ArrayLike) -> Float[FloatArray, "*shape"]:
    """f0 = exp(-beta) I_0(beta): the mean over the circle of exp(-beta (1 - cos x)), about 1/sqrt(2 pi beta).

    Args:
        beta: logit scale, from 0 to 1e150.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 2e-15.

    Source: docs/MATHEMATICS.md, section 8; proof in derivations, `softmax_order`.

    Example:
        >>> float(circle_mean(np.array(0.0)))
        1.0
    """
    (beta,) = doubles("circle_mean", beta=beta)
    within("circle_mean", beta >= 0, "beta >= 0", beta=beta)
    mean: FloatArray = np.asarray(i0e(beta))
    return mean


def softmax_length_bound(beta: ArrayLike, threshold: ArrayLike) -> Float[FloatArray, "*shape"]:
    """(2c + 1)/f0(beta): whatever its one angle, an index head with S(beta) < c has T + 1 below this.

    T = max(s, n-1-s) is the reach, so for offset 0 this bounds the length n itself. It grows like
    (2c + 1) sqrt(2 pi beta): the scale has to grow like the square of the length.

    Args:
        beta: logit scale, from 0 to 1e150.
        threshold: c, above 0 and up to 1e150, see `softmax_threshold`.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 3e-15.

    Source: ours; proof in derivations, `softmax_order`.

    Example:
        >>> float(softmax_length_bound(np.array(0.0), np.array(1.0)))
        3.0
    """
    beta, threshold = doubles("softmax_length_bound", beta=beta, threshold=threshold)
    inside = (beta >= 0) & (threshold > 0)
    within("softmax_length_bound", inside, "beta >= 0, threshold > 0", beta=beta, threshold=threshold)
    bound: FloatArray = np.asarray((2 * threshold + 1) / i0e(beta))
    return bound


def softmax_sufficient_scale(nearness: ArrayLike, threshold: ArrayLike) -> Float[FloatArray, "*shape"]:
    """pi/(8 c^2 delta^2): every beta from this one on has S(beta) < c, for every offset within the length.

    Args:
        nearness: delta, the smallest distance of t theta/(2 pi) to an integer over 1 <= t <= n - 1: a margin at that
            reach is 2 sin(pi delta)^2. From 1e-150 to 1/2.
        threshold: c, from 1e-150 to 1e150, see `softmax_threshold`.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 2e-15; infinite where the quotient overflows.

    Source: ours; proof in derivations, `softmax_order`.

    Example:
        >>> float(softmax_sufficient_scale(np.array(0.5), np.array(1.0))) == np.pi / 2
        True
    """
    nearness, threshold = doubles("softmax_sufficient_scale", nearness=nearness, threshold=threshold)
    sizeable("softmax_sufficient_scale", nearness=nearness, threshold=threshold)
    within(
        "softmax_sufficient_scale",
        (nearness > 0) & (nearness <= 1 / 2) & (threshold > 0),
        "0 < nearness <= 1/2, threshold > 0",
        nearness=nearness,
        threshold=threshold,
    )
    with np.errstate(over="ignore"):
        scale: FloatArray = np.asarray(np.pi / 8 * (1 / threshold / nearness) ** 2)
    return scale

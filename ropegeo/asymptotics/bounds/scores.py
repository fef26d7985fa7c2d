"""Positional and symbolic scores of a swap of two keys (Urrutia et al., arXiv 2605.31558, appendix D).

A swap exchanges the contents of positions a < b before the layer; the query stands after both. With v = (D_a, D_b) the
attention on them before and v' after, the positional score is the cosine of v' and v, the symbolic one that of v' and
(D_b, D_a).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ropegeo._arrays import FloatArray
from ropegeo.asymptotics.bounds.scope import doubles, sizeable, within


def swap_scores(
    before_a: ArrayLike,
    before_b: ArrayLike,
    after_a: ArrayLike,
    after_b: ArrayLike,
) -> tuple[Float[FloatArray, "*shape"], Float[FloatArray, "*shape"]]:
    """Positional score cos(phi - phi') and symbolic score sin(phi + phi') of one swap, from four logits.

    tan phi = exp(before_b - before_a), tan phi' = exp(after_b - after_a). The arguments are named after positions: if
    C[p, c] is the logit of content c at position p, and a and b are the contents that stand there before, they are
    C[a, a], C[b, b], C[a, b], C[b, a]. The other positions, and a constant added to all logits, do not matter.

    Args:
        before_a: logit at position a before the swap, of size up to 1e150; nats, that is, as softmax takes it.
        before_b: at position b before the swap.
        after_a: at position a after the swap.
        after_b: at position b after the swap.

    Returns:
        The positional score and the symbolic score, each above 0 (or 0 by underflow) and at most 1.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 1e-15 (1 + |before_b - before_a| + |after_b - after_a|), with the two differences as
        doubles give them and down to 1e-300; exactly 1 where they are equal (positional) or opposite (symbolic).

    Source: the scores are those of Urrutia et al., arXiv 2605.31558, appendix D, and arXiv 2511.11579; the closed form
        is ours, proof in derivations, `exclusion` and `score_invariance`.

    Example:
        >>> zero, two = np.array(0.0), np.array(2.0)
        >>> [round(float(score), 6) for score in swap_scores(zero, two, two, zero)]  # logits move with the contents
        [0.265802, 1.0]
    """
    before_a, before_b, after_a, after_b = doubles(
        "swap_scores", before_a=before_a, before_b=before_b, after_a=after_a, after_b=after_b
    )
    before, after = before_b - before_a, after_b - after_a
    even, odd = np.asarray(np.abs(before + after) / 2), np.asarray(np.abs(before - after) / 2)
    return _hypotenuse(even, odd), _hypotenuse(odd, even)


def _hypotenuse(along: FloatArray, across: FloatArray) -> FloatArray:
    """1/sqrt(1 + (sinh(across)/cosh(along))^2) of two numbers >= 0, without overflow and never above 1."""
    with np.errstate(over="ignore"):
        ratio = np.exp(across - along) * np.expm1(-2 * across) / (1 + np.exp(-2 * along))  # negative: only squared
    score: FloatArray = np.asarray(1 / np.hypot(1, ratio))
    return score


def exclusion_gap(gamma: ArrayLike) -> Float[FloatArray, "*shape"]:
    """log tan(pi/4 + arccos(1 - gamma)): if both scores of a swap are at least 1 - gamma, no logit gap is larger.

    The gap is |before_b - before_a| or |after_b - after_a| of `swap_scores`. Attained where the other one is 0.

    Args:
        gamma: 0, or 1e-150 <= gamma < 1 - 1/sqrt(2); from there on both scores may be this high whatever the gap.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 1e-15/(1 - gamma - 1/sqrt(2)), as gamma near its end is ill-conditioned.

    Source: ours; proof in derivations, `exclusion`.

    Example:
        >>> float(exclusion_gap(np.array(0.0)))
        0.0
    """
    (gamma,) = doubles("exclusion_gap", gamma=gamma)
    sizeable("exclusion_gap", gamma=gamma)
    cosine = 1 - gamma
    within("exclusion_gap", (gamma >= 0) & (cosine >= np.sqrt(0.5)), "0 <= gamma < 1 - 1/sqrt(2)", gamma=gamma)
    sine = np.sqrt(gamma * (2 - gamma))
    gap: FloatArray = np.asarray(np.log1p(2 * sine / (cosine - sine)))
    return gap

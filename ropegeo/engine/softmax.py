r"""The least logit scale beta at which softmax attention still decodes, from the exact sum.

Index (docs/MATHEMATICS.md, section 8). With W = {-s..n-1-s} without 0 and gap(t) = 1 - sum_k a_k cos(t theta_k), the
target's weight is w = 1/(1 + S), S(beta) = sum_{t in W} exp(-beta gap(t)). The read-out gives the target letter 2w.
* An integer query adds 1 to its own integer, and other letters get at most 2(1 - w): right for every input iff w > 1/2,
  S < 1.
* A letter query adds 1 to its own letter; the worst input holds one wrong letter everywhere else and gives that
  2(1 - w): right for every input iff 1 + 2w > 2(1 - w), w > 1/4, S < 3.
S falls strictly in beta where every gap is positive, so beta_min is the one root of S = 1 or S = 3.

Retrieval (ours). Output is a = sum of weights on each token, no residual: right iff the answer's weight exceeds that of
every *other token*. Over globally proper inputs whose tokens with the answer's left letter are the answer, let m(D) be
the logit of the answer at distance D and r(shift, d) that of a rival, per unit of beta. A single answer is worst, and a
rival token weighs most when it stands wherever it may:
* a (letter, integer) rival may stand anywhere but at the answer and, if D > 0, at distance 0, where the query stands;
* the query's own token (D > 0) is a rival that looks for the answer, so it may stand at distances 0..D-1 only: before
  the answer it would have nothing to find.
So all inputs are decoded iff for every D and every shift != 0

    sum over the allowed d of exp(-beta (m(D) - r(shift, d))) < 1,

and each sum is attained by an input of the class (`worst_retrieval_input` in the tests builds it). Where worst(n) > 0
every term falls in beta, so beta_min is the root of the largest sum = 1. A centred head's letter-integer queries are
uncentred, with D = 0; they are in the maximum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

from ropegeo._arrays import FloatArray
from ropegeo.engine.margin import check_lengths
from ropegeo.engine.retrieval_margin import letter_curve
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.heads import LetterProfile, LogitProfile

MAX_LENGTH = 10**6
RELATIVE_ERROR = 1e-9
_THRESHOLDS = {"integer": 1.0, "letter": 3.0}


def index_softmax_scale(profile: LogitProfile, length: int, *, query: Literal["integer", "letter"]) -> float:
    """Least beta at which an index head's softmax decodes every valid input of a length.

    Args:
        profile: of a built index head; its origin is the offset.
        length: n, above the offset.
        query: `integer` (target weight above 1/2) or `letter` (above 1/4).

    Returns:
        beta_min in units of the logit; 0 where every positive beta does.

    Raises:
        InvalidInputError: an offset outside the length, or a tie (margin 0), which no scale resolves.
        UnsupportedError: more than `MAX_LENGTH` positions.

    Accuracy: relative error below `RELATIVE_ERROR` while the margin is above 1e-12.

    Source: docs/MATHEMATICS.md, section 8.
    """
    (n,) = check_lengths([length])
    offset = profile.origin
    if not 0 <= offset < n:
        raise InvalidInputError(f"offset {offset} must be below the length {n}")
    _check_length(n)
    displacements = np.arange(-offset, n - offset)
    gaps = profile.gap(displacements[displacements != 0]) / profile.weight
    if gaps.min() <= profile.abs_error / profile.weight:
        raise InvalidInputError("softmax scale: the head ties at this length, and no scale resolves a tie")
    log_threshold = np.log(_THRESHOLDS[query])
    return _root(lambda beta: float(logsumexp(-beta * gaps)) - log_threshold)


def retrieval_softmax_scale(profile: LetterProfile, length: int) -> float:
    """Least beta at which a retrieval head's softmax decodes every input of the module's class.

    Args:
        profile: of a built retrieval head.
        length: n, with worst(n) > 0.

    Returns:
        beta_min in units of the logit; 0 where every positive beta does.

    Raises:
        InvalidInputError: worst(n) is not positive, so that no scale decodes every input.
        UnsupportedError: more than `MAX_LENGTH` positions.

    Accuracy: relative error below `RELATIVE_ERROR` while worst(n) is above 1e-12.

    Source: ours; proof in the module.
    """
    (n,) = check_lengths([length])
    _check_length(n)
    worst = letter_curve(profile, [n]).points[0].worst
    if worst.sign != 1:
        raise InvalidInputError(
            f"softmax scale: worst(n) is not positive at length {n}, so no scale decodes every input"
        )
    uncentred = LetterProfile(spectrum=profile.spectrum, weights=profile.weights, letters=profile.letters)

    def log_largest(beta: float) -> float:
        largest = _log_largest_sum(profile, n, beta)
        return max(largest, _log_largest_sum(uncentred, n, beta, own_only=True)) if profile.centre else largest

    return _root(log_largest)


def _log_largest_sum(profile: LetterProfile, n: int, beta: float, *, own_only: bool = False) -> float:
    """log of the largest sum over answers D and shifts, in logarithms so that no term underflows."""
    phasor = profile.phasor(np.arange(n)) / profile.weight
    shifts = np.arange(1, profile.letters)
    scores = beta * (np.exp(2j * np.pi * shifts / profile.letters)[:, None] * phasor).real
    upto: FloatArray = np.logaddexp.accumulate(scores, axis=1)  # sums over distances 0..d
    beyond = np.logaddexp.accumulate(scores[:, ::-1], axis=1)[:, ::-1]  # over d..n-1
    match = beta * phasor.real
    own = beyond[:, 1].max() - match[0]
    if own_only or n == 2:
        return float(own if own_only else max(own, scores[:, 0].max() - match[1]))
    # Answers at D = 1..n-1. A (letter, integer) rival: distances 1..D-1 and D+1..n-1.
    between = np.full_like(scores, -np.inf)
    between[:, 2:] = np.logaddexp.accumulate(scores[:, 1:-1], axis=1)
    after = np.full_like(scores, -np.inf)
    after[:, :-1] = beyond[:, 1:]
    other = np.logaddexp(between, after)[:, 1:]
    query_itself = upto[:, :-1]
    return float(max(own, (np.maximum(other, query_itself) - match[1:]).max()))


def _root(log_sum: Callable[[float], float]) -> float:
    """The beta at which a falling log sum reaches 0; 0.0 where it is not above 0 to begin with."""
    if log_sum(0.0) <= 1e-12:
        return 0.0
    high = 1.0
    while log_sum(high) > 0:
        high *= 2
    low = high / 2
    while log_sum(low) <= 0:
        low /= 2
    return float(brentq(log_sum, low, high, rtol=1e-12, xtol=1e-300))


def _check_length(length: int) -> None:
    if length > MAX_LENGTH:
        raise UnsupportedError(f"softmax scale: the sum is evaluated up to length {MAX_LENGTH}, not {length}")

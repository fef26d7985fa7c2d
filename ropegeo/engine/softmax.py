r"""The least logit scale beta at which softmax attention still decodes, from the exact sum.

Index (docs/MATHEMATICS.md, section 8). With W = {-s..n-1-s} without 0 and gap(t) = 1 - sum_k a_k cos(t theta_k), the
target's weight is w = 1/(1 + S), S(beta) = sum_{t in W} exp(-beta gap(t)). The read-out gives the target letter 2w.
* An integer query adds 1 to its own integer, and other letters get at most 2(1 - w): right for every input iff w > 1/2,
  S < 1.
* A letter query adds 1 to its own letter; the worst input holds one wrong letter everywhere else and gives that
  2(1 - w): right for every input iff 1 + 2w > 2(1 - w), w > 1/4, S < 3.
* A head with one *fixed* offset s > 0 has letter queries whose target is another token: the worst input holds the
  query's own letter everywhere else, which then gets 1 + 2(1 - w): right for every input iff 2w > 3 - 2w, w > 3/4,
  S < 1/3.
S falls strictly in beta where every gap is positive, so beta_min is the one root of S = threshold; every larger beta
decodes, and at the root itself the worst input ties.

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

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import logsumexp

from ropegeo._arrays import FloatArray
from ropegeo.engine.index_margin import index_curve
from ropegeo.engine.margin import check_lengths, check_profile, check_target
from ropegeo.engine.retrieval_margin import letter_curve
from ropegeo.engine.staircase import common_period
from ropegeo.engine.work import Progress, check_streamed
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.heads import LetterProfile, LogitProfile

MAX_TERMS = 10**7
SMALLEST_MARGIN = 1e-10
"""Below this the float64 error of a gap, 4e-14 at most, would show in the fourth digit of beta."""

THRESHOLDS = {"integer": 1.0, "letter": 3.0, "fixed": 1 / 3}
Query: TypeAlias = Literal["integer", "letter", "fixed"]


def index_softmax_scale(profile: LogitProfile, length: int, *, query: Query | str) -> float:
    """Least beta at which an index head's softmax decodes every valid input of a length.

    Args:
        profile: of a built index head; its origin is the offset.
        length: n, above the offset.
        query: `integer` or `letter` of a token-conditional head (target weight above 1/2 or 1/4), or `fixed`, a letter
            of a head with a fixed offset above 0 (above 3/4).

    Returns:
        beta_min in units of the logit; 0 where every positive beta does.

    Raises:
        InvalidInputError: an offset outside the length or not one of the query's, an unknown query, or a tie (margin
            0), which no scale resolves.
        UnsupportedError: a margin below `SMALLEST_MARGIN`, or a length beyond what is streamed.

    Accuracy: relative error below `LOGIT_ERROR` divided by the margin.

    Source: docs/MATHEMATICS.md, section 8.
    """
    if query not in THRESHOLDS:
        raise InvalidInputError(f"index_softmax_scale: query {query!r} is unknown; use one of {', '.join(THRESHOLDS)}")
    (n,) = check_lengths("index_softmax_scale", [length])
    offset = check_target("index_softmax_scale", profile.origin, [n])
    if query == "letter" and offset > 0:
        raise InvalidInputError(
            f"index_softmax_scale: a letter query has offset 0, this profile {offset}; for a head of fixed offset use "
            "query='fixed'"
        )
    if query == "fixed" and offset == 0:
        raise InvalidInputError(
            "index_softmax_scale: a fixed offset of 0 reads the query's own position; use query='letter'"
        )
    period = common_period(profile)
    if period is not None and period <= max(offset, n - 1 - offset):
        raise InvalidInputError(f"index_softmax_scale: the head ties at length {n}, and no scale resolves a tie")
    if not float(index_curve(profile, [n]).points[0].margin) >= SMALLEST_MARGIN:
        raise UnsupportedError(
            f"index_softmax_scale: the margin is below {SMALLEST_MARGIN:g}, too small for float64 sums"
        )
    log_threshold = np.log(THRESHOLDS[query])
    if n > MAX_TERMS:  # too many gaps to hold: each beta is a pass over all of them

        def log_sum(beta: float) -> float:
            total = float(_rival_sums(profile, n, offset, np.array([beta]))[0])
            return -math.inf if total == 0 else math.log(total) - log_threshold

        return _root(log_sum)
    displacements = np.arange(-offset, n - offset)
    gaps = profile.gap(displacements[displacements != 0]) / profile.weight
    return _root(lambda beta: float(logsumexp(-beta * gaps)) - log_threshold)


def softmax_weight(
    profile: LogitProfile,
    length: int,
    betas: Sequence[float],
    *,
    target: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Float[FloatArray, " betas"]:
    """The weight that softmax gives the target, from the sum over every distance: 1/(1 + sum exp(-beta gap)).

    Args:
        profile: any coefficients, not all zero.
        length: n, above the target.
        betas: logit scales: the profile's own is `profile.weight`.
        target: distance of the right position; the profile's origin if not given.
        threads: all usable cores if not given.
        progress: called now and then with the number of distances done, once for all betas.

    Raises:
        InvalidInputError: a length below 2 or not above the target, a beta that is negative or not finite, or a profile
            of zeros.
        UnsupportedError: a length beyond what is streamed.

    Accuracy: absolute error below 1e-13 + beta * `sweep_error`, as a weight moves by at most beta/4 of a gap's error.

    Source: docs/MATHEMATICS.md, section 8.

    Example:
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> profile = LogitProfile(spectrum=RopeSpectrum.from_angle("1"), coefficients=np.ones(1))
        >>> softmax_weight(profile, 8, [0.0, 10.0]).round(6).tolist()
        [0.125, 0.565716]
    """
    check_profile("softmax_weight", profile)
    (n,) = check_lengths("softmax_weight", [length])
    aim = check_target("softmax_weight", profile.origin if target is None else target, [n])
    scales = np.asarray(betas, dtype=np.float64)
    if scales.ndim != 1:
        raise InvalidInputError("softmax_weight: betas must be a row of numbers; write [10.0] for one")
    if not (np.isfinite(scales).all() and (scales >= 0).all()):
        raise InvalidInputError("softmax_weight: every beta must be finite and not negative")
    if profile.weight == 0:
        raise InvalidInputError("softmax_weight: all coefficients are zero, so a logit scale means nothing")
    return np.asarray(1 / (1 + _rival_sums(profile, n, aim, scales, threads=threads, progress=progress)))


def _rival_sums(
    profile: LogitProfile,
    length: int,
    target: int,
    betas: FloatArray,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """sum over the other distances of exp(beta (logit - logit(target))/weight), for each beta, in one pass."""
    check_streamed(len(profile.active_planes), length)
    from ropegeo.engine.sweep import Sweep

    sums = Sweep((profile,), threads=threads).exponential_sums(
        -profile.origin,
        length - 1 - profile.origin,
        (betas / profile.weight).tolist(),
        tops=[float(replace(profile, constant=0.0).logit(np.array([target]))[0])],
        skip=target - profile.origin,
        progress=progress,
    )
    return np.asarray(sums[0])


def retrieval_softmax_scale(profile: LetterProfile, length: int) -> float:
    """Least beta at which a retrieval head's softmax decodes every input of the module's class.

    Args:
        profile: of a built retrieval head.
        length: n, with worst(n) > 0.

    Returns:
        beta_min in units of the logit; 0 where every positive beta does.

    Raises:
        InvalidInputError: worst(n) is not positive, so that no scale decodes every input.
        UnsupportedError: more than `MAX_TERMS` positions times letters, or worst(n) below `SMALLEST_MARGIN`.

    Accuracy: relative error below 4 * `LOGIT_ERROR` divided by worst(n): logits are subtracted here.

    Source: ours; proof in the module.
    """
    (n,) = check_lengths("retrieval_softmax_scale", [length])
    _check_size(n, profile.letters)
    worst = letter_curve(profile, [n]).points[0].worst
    if worst.sign != 1:
        raise InvalidInputError(
            f"retrieval_softmax_scale: worst(n) is not positive at length {n}, so no scale decodes every input"
        )
    if float(worst) < SMALLEST_MARGIN:
        raise UnsupportedError(
            f"retrieval_softmax_scale: the margin is below {SMALLEST_MARGIN:g}, too small for float64 sums"
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


def _check_size(length: int, letters: int) -> None:
    if length * letters > MAX_TERMS:
        raise UnsupportedError(
            f"softmax scale: a sum has up to {MAX_TERMS} terms, positions times letters; {length} x {letters} is more"
        )

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
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import logsumexp

from ropegeo._arrays import FloatArray
from ropegeo.engine.index_margin import index_curve
from ropegeo.engine.margin import check_lengths, check_profile, check_target
from ropegeo.engine.profile_margin import profile_curve
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
    return softmax_scale(profile, n, threshold=THRESHOLDS[query])


def softmax_scale(profile: LogitProfile, length: int, *, threshold: float) -> float:
    """Least beta at which the sum over the rivals of a target, exp(-beta gap), is below a threshold.

    Args:
        profile: any coefficients; its origin is the target.
        length: n, above the target, with a positive margin.
        threshold: 1 where the target needs a weight above 1/2, (1 - p)/p for p.

    Returns:
        beta_min in units of the profile's weight; 0 where every positive beta does.

    Raises:
        InvalidInputError: a target outside the length, a threshold that is not positive, or a margin that is not:
            another position scores at least as high, which no scale resolves.
        UnsupportedError: a margin below `SMALLEST_MARGIN`, or a length beyond what is streamed.

    Accuracy: relative error below 2 `LOGIT_ERROR` (one without phases) divided by the margin.

    Source: docs/MATHEMATICS.md, section 8.

    Example:
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> profile = LogitProfile(spectrum=RopeSpectrum.from_angle("1"), coefficients=np.ones(1), origin=2)
        >>> round(softmax_scale(profile, 5, threshold=1.0), 12)
        1.850129568995
    """
    check_profile("softmax_scale", profile)
    (n,) = check_lengths("softmax_scale", [length])
    offset = check_target("softmax_scale", profile.origin, [n])
    if not (threshold > 0 and math.isfinite(threshold)):
        raise InvalidInputError(f"softmax_scale: threshold {threshold:g} must be a positive number")
    _check_wins("softmax_scale", profile, n, offset)
    log_threshold = math.log(threshold)
    if n > MAX_TERMS:  # too many gaps to hold: each beta is a pass over all of them

        def log_sum(beta: float) -> float:
            total = float(_rival_sums(profile, n, offset, np.array([beta]))[0])
            return -math.inf if total == 0 else math.log(total) - log_threshold

        return falling_root(log_sum)
    displacements = np.arange(-offset, n - offset)
    displacements = displacements[displacements != 0]
    if profile.is_peaked:
        gaps = profile.gap(displacements) / profile.weight
    else:
        gaps = (profile.logit(np.array([offset])) - profile.logit(displacements + offset)) / profile.weight
    return falling_root(lambda beta: float(logsumexp(-beta * gaps)) - log_threshold)


def _check_wins(call: str, profile: LogitProfile, length: int, offset: int) -> None:
    """Raise unless the target's margin is positive, and large enough for float64 sums."""
    if profile.is_peaked:
        period = common_period(profile)
        if period is not None and period <= max(offset, length - 1 - offset):
            raise InvalidInputError(f"{call}: the head ties at length {length}, and no scale resolves a tie")
        margin = index_curve(profile, [length], digits=6).points[0].margin
    else:
        margin = profile_curve(profile, [length], target=offset, digits=6).points[0].margin
        if margin.sign != 1:
            raise InvalidInputError(
                f"{call}: at length {length} another position scores at least as high as the target, and no scale "
                "resolves that"
            )
    if not float(margin) >= SMALLEST_MARGIN:
        raise UnsupportedError(f"{call}: the margin is below {SMALLEST_MARGIN:g}, too small for float64 sums")


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
    return falling_root(lambda beta: retrieval_log_sum(profile, n, beta))


def retrieval_log_sum(profile: LetterProfile, length: int, beta: float, *, all_rivals: bool = False) -> float:
    """log of the largest sum over the module's class of inputs; all of them are right iff it is below a log threshold.

    Args:
        profile: of a letter-matching head.
        length: n >= 2.
        beta: logit scale; the profile's own weight does not matter.
        all_rivals: the sum over the strongest rivals at every other distance, 1/w - 1 of the answer's weight w, instead
            of over one rival token wherever it may stand, which decides the read-out with the threshold 1.

    Raises:
        UnsupportedError: more than `MAX_TERMS` positions times letters.

    Accuracy: absolute error below 4 beta `LOGIT_ERROR` + 1e-12. It never falls as n grows.

    Source: ours; proof in the module. All rivals: other letters may stand at every other distance at once, at distance
    0 the query's own token, whose left letter is any but the answer's.
    """
    (n,) = check_lengths("retrieval_log_sum", [length])
    _check_size(n, profile.letters)
    largest = _log_largest_sum(profile, n, beta, own_only=profile.self_only, all_rivals=all_rivals)
    if not profile.centre:
        return largest
    uncentred = replace(profile, centre=Fraction(0))
    return max(largest, _log_largest_sum(uncentred, n, beta, own_only=True, all_rivals=all_rivals))


def _letter_scores(profile: LetterProfile, n: int, beta: float) -> tuple[FloatArray, FloatArray]:
    """Logits at scale beta of a match, and of the rivals by shift, at distances 0..n-1."""
    scores = profile.logits(np.arange(n)) * (beta / profile.weight)
    return scores[0], scores[1:]


def _log_largest_sum(
    profile: LetterProfile, n: int, beta: float, *, own_only: bool = False, all_rivals: bool = False
) -> float:
    """log of the largest sum over answers D and shifts, in logarithms so that no term underflows."""
    match, scores = _letter_scores(profile, n, beta)
    if all_rivals:
        scores = scores.max(axis=0, keepdims=True)
    upto: FloatArray = np.logaddexp.accumulate(scores, axis=1)  # sums over distances 0..d
    beyond = np.logaddexp.accumulate(scores[:, ::-1], axis=1)[:, ::-1]  # over d..n-1
    own = beyond[:, 1].max() - match[0]
    if own_only or n == 2:
        return float(own if own_only else max(own, scores[:, 0].max() - match[1]))
    after = np.full_like(scores, -np.inf)
    after[:, :-1] = beyond[:, 1:]
    query_itself = upto[:, :-1]
    if all_rivals:
        return float(max(own, (np.logaddexp(query_itself, after[:, 1:]) - match[1:]).max()))
    # Answers at D = 1..n-1. A (letter, integer) rival: distances 1..D-1 and D+1..n-1.
    between = np.full_like(scores, -np.inf)
    between[:, 2:] = np.logaddexp.accumulate(scores[:, 1:-1], axis=1)
    other = np.logaddexp(between, after)[:, 1:]
    return float(max(own, (np.maximum(other, query_itself) - match[1:]).max()))


def falling_root(log_sum: Callable[[float], float]) -> float:
    """The beta at which a falling log sum reaches 0; 0.0 where it is not above 0 to begin with.

    Args:
        log_sum: strictly falling in beta >= 0, and negative in the end.

    Accuracy: relative error below 1e-12, beside that of the sum.
    """
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

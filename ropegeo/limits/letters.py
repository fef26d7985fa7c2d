r"""How far a letter-matching head is right: the first length with a wrong worst case, and n_max of a scale.

Both grow worse with the length: more positions are more targets and more rivals, so worst(n) never grows, and neither
do the sums of `ropegeo.engine.softmax` ever fall. So each limit is one length, found by doubling and bisection, and
what is decided at that length and the one before it is decided for all.

An answer at distance D needs a window of more than D: in a window of W positions, inputs of length W + 1 can hold their
answer out of sight. Queries that look for themselves (symbolic Reflexive) have D = 0 and are not touched.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ropegeo.engine.retrieval_margin import is_exact, worst_margin
from ropegeo.engine.softmax import MAX_TERMS, falling_root, retrieval_log_sum, retrieval_softmax_scale
from ropegeo.engine.trust import first_failing_length
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import short
from ropegeo.heads import LetterProfile
from ropegeo.limits.argmax import ArgmaxLimit, Outcome
from ropegeo.limits.rules import LEAST_WEIGHT, Cause, sum_cause
from ropegeo.limits.softmax import SoftmaxLimit, check_betas, check_searched

LETTERS_SEARCHED = 10**4
"""How far a head that matches letters is searched, if nothing is said."""


def letter_argmax_limit(profile: LetterProfile, *, max_length: int = LETTERS_SEARCHED) -> ArgmaxLimit:
    """First length at which the worst case of a letter-matching head is 0 or below.

    Args:
        profile: of a built head.
        max_length: the largest length to look at; of one plane with few enough letters every length is decided.

    Returns:
        The first failing length; its `searched` is None where every length is decided.

    Raises:
        InvalidInputError: no plane with a weight.
        UnsupportedError: a length that no route reaches.

    Accuracy: exact, or certified by the error of `engine.letter_window`; where that does not tell the sign the outcome
    is `undecided`.

    Source: docs/MATHEMATICS.md, section 6; proof in the module.
    """
    if not profile.active_planes:
        raise InvalidInputError(
            "letter_argmax_limit: no plane of the head has a weight, so every letter scores the same"
        )
    check_searched("letter_argmax_limit", max_length)
    found = first_failing_length(profile)
    decided = is_exact(profile) and (found is not None or profile.self_only or _never(profile))
    if not decided:
        found = _first(lambda length: worst_margin(profile, length, 1).sign == 1, max_length)
    outcome: Outcome = "none"
    if found is not None:
        sign = worst_margin(profile, found, 1).sign
        outcome = "undecided" if sign is None else "tie" if sign == 0 else "wrong"
    return ArgmaxLimit(
        first_failing_length=found,
        searched=None if decided else found or max_length,
        outcome=outcome,
        offset=0,
        rival=None,
    )


def _never(profile: LetterProfile) -> bool:
    """Whether the one plane makes whole turns only, so that no length changes anything."""
    turn = profile.spectrum.rational_turn(profile.active_planes[0])
    return turn is not None and turn.denominator == 1


def letter_softmax_length(
    profile: LetterProfile, beta: float, *, weight: Fraction | None = None, max_length: int = LETTERS_SEARCHED
) -> SoftmaxLimit:
    """n_max of a letter-matching head at a scale: the largest length at which every input of the class is right.

    Args:
        profile: of a built head.
        beta: logit scale.
        weight: the weight that the answer needs; what decides the read-out if not given.
        max_length: the largest length to look at, times letters up to `MAX_TERMS`.

    Returns:
        n_max as `last_length`. The cause is `near return` where the worst input's strongest rival, exp(-beta worst(n)),
        is more than half of the largest sum or too much without the rest; else `dispersion`.

    Raises:
        InvalidInputError: a beta that is not positive, a weight outside (0, 1).
        UnsupportedError: too many terms.

    Accuracy: exact where `is_certain`; sums are off by twice a logit's error and 1e-12 in the logarithm.

    Source: ours; proof in `ropegeo.engine.softmax`.
    """
    check_betas("letter_softmax_length", [beta])
    last = _most(profile, max_length)
    threshold = _log_threshold(weight)
    room = 2 * beta * profile.abs_error / profile.weight + 1e-12

    def below(level: float) -> Callable[[int], bool]:
        return lambda n: retrieval_log_sum(profile, n, beta, all_rivals=weight is not None) - threshold < level

    first = _first(below(-room), last)
    at_most = first if first is None or not below(room)(first) else _first(below(room), last)
    return SoftmaxLimit(
        beta=beta,
        last_length=last if first is None else first - 1 if first > 2 else None,
        first_failing_length=first,
        searched=last if at_most is None else at_most,
        offset=0,
        at_most=at_most,
        **({} if first is None else _why(profile, beta, first, weight)),
    )


def _why(profile: LetterProfile, beta: float, length: int, weight: Fraction | None) -> dict[str, Any]:
    """Largest single term exp(-beta (match - rival)) and sum at a length; no displacement tells where its rival is."""
    total = math.exp(min(700.0, retrieval_log_sum(profile, length, beta, all_rivals=weight is not None)))
    worst = worst_margin(profile, length)
    term = math.exp(min(700.0, -beta * float(worst.low + worst.high) / 2))  # margins are in units of the weight
    cause: Cause = sum_cause(2, term, total, math.exp(_log_threshold(weight)))
    return {"term": term, "total": total, "cause": cause}


def letter_softmax_scale(profile: LetterProfile, length: int, *, weight: Fraction | None = None) -> float:
    """beta_min(n) of a letter-matching head: the least scale at which every input of the class is right.

    Args:
        profile: of a built head.
        length: n, with worst(n) > 0.
        weight: the weight that the answer needs; what decides the read-out if not given.

    Raises:
        InvalidInputError: worst(n) is not positive.
        UnsupportedError: as `retrieval_softmax_scale`.

    Returns:
        beta_min in units of the weight; every larger scale is right too.

    Accuracy: as `retrieval_softmax_scale`.

    Source: as `retrieval_softmax_scale`.
    """
    least = retrieval_softmax_scale(profile, length)
    if weight is None:
        return least
    threshold = _log_threshold(weight)
    return falling_root(lambda beta: retrieval_log_sum(profile, length, beta, all_rivals=True) - threshold)


def _log_threshold(weight: Fraction | None) -> float:
    if weight is None:
        return 0.0
    if not LEAST_WEIGHT <= weight <= 1 - LEAST_WEIGHT:
        raise InvalidInputError(f"letter_softmax_length: the weight {weight} must lie from 1e-12 to 1 - 1e-12")
    return math.log((1 - weight) / weight)


def _most(profile: LetterProfile, max_length: int) -> int:
    check_searched("letter_softmax_length", max_length)
    if max_length * profile.letters > MAX_TERMS:
        raise UnsupportedError(
            f"letter_softmax_length: sums have up to {MAX_TERMS} terms, positions times letters; length "
            f"{short(max_length)} times {profile.letters} is more"
        )
    return max_length


def _first(holds: Callable[[int], bool], last: int) -> int | None:
    """The first n in 2..last at which what holds up to a length no longer does."""
    low, high = 1, 2
    while high <= last and holds(high):
        if high == last:
            return None
        low, high = high, min(2 * high, last)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high

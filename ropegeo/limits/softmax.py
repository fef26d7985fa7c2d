r"""How far softmax at a scale beta carries an index head, and the least scale for a length, from the exact sum.

With gap(t) = (L(0) - L(t))/W in units of the weight W, a query of offset s at length n has the sum

    S_s(n) = N(s) + P(n - 1 - s),   P(T) = sum_{t=1..T} exp(-beta gap(t)),   N(s) = sum_{t=1..s} exp(-beta gap(-t)).

Every term is positive, so S grows strictly with n, whatever the phases: below its threshold up to some n_max, and never
again. N(s) is there at every length; where it alone reaches the threshold no length is right ("none": n_max = None).
All queries of a head share P and N, so one pass over the displacements serves them all, and all scales.

Rounding. A gap is off by at most e (`LOGIT_ERROR`, twice for a difference of logits, or `sweep_error` twice), so a term
by a relative beta e, and by 800 u (u = 2**-53) for the argument of exp, which is below 746 where the term is not 0, and
exp itself. Terms are added in runs of `_RUN`, the runs one by one: a relative (_RUN + runs) u. Since all terms are
positive the sum is off by the relative r = beta e + (_RUN + runs + 1000) u at most. A length with S (1 + r) below the
threshold is right, one with S (1 - r) not below it is wrong; where this leaves lengths between, the sum is enclosed in
ball arithmetic if it has few enough terms, else the result is an estimate that says from where to where.

The largest single term of the sum at the failing length tells a near return from dispersion (`rules.sum_cause`).

Letters: the sums of `engine.softmax` grow with n as well (longer inputs have more rivals and more answers), so n_max is
bisected.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from ropegeo._arrays import FloatArray
from ropegeo.engine.margin import check_profile, check_target
from ropegeo.engine.softmax import MAX_TERMS, falling_root
from ropegeo.engine.staircase import common_period
from ropegeo.engine.work import Progress
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import balls, safe_integer, short
from ropegeo.heads import LogitProfile
from ropegeo.limits.argmax import DEFAULT_SEARCHED, argmax_limit, check_turning
from ropegeo.limits.gaps import Gaps, sum_ball
from ropegeo.limits.rules import Cause, sum_cause

MOST_SEARCHED = 10**9
LARGEST_OFFSET = 2 * 10**7
LARGEST_BETA = 1e10
"""Beyond it a gap's error of some 1e-14 would show in the third digit of a term."""
MAX_BALLS = 200_000
"""Planes times terms of a sum that is enclosed in ball arithmetic: a second or two."""
SCHEMA = "ropegeo.softmax_limit/1"
_RUN = 1 << 16
_UNIT = 2.0**-53


@dataclass(frozen=True, kw_only=True)
class SoftmaxLimit:
    """How far a head's softmax is right at one scale.

    Attributes:
        beta: the scale.
        last_length: n_max, the largest length searched at which all queries that fit are right; None if not even the
            smallest is.
        first_failing_length: the length after it, or None if all are right as far as was searched.
        searched: the largest length looked at: `at_most` where there is one (all later ones fail too); or None where
            the answer is known for every length.
        offset: of the query that fails first; of the first query if none does.
        at_most: `first_failing_length`, unless rounding leaves open which of the lengths up to this one it is; None
            where that may lie beyond `searched`.
        rival: displacement of the largest single term of that query's sum at `first_failing_length`; None for heads
            that match letters, where nothing fails, and where rounding leaves the length open.
        term: exp(-beta gap(rival)), within the relative error r of the module, as `total`.
        total: the sum at `first_failing_length`, or None.
        cause: `near return` or `dispersion`, as `rules.sum_cause` tells them apart; None where nothing fails.
    """

    beta: float
    last_length: int | None
    first_failing_length: int | None
    searched: int | None
    offset: int
    at_most: int | None
    rival: int | None = None
    term: float | None = field(default=None, compare=False)  # moves in the last digits with the way it is summed
    total: float | None = field(default=None, compare=False)
    cause: Cause | None = None

    @property
    def is_certain(self) -> bool:
        """Whether the first failing length is decided, not an estimate between two lengths."""
        return self.first_failing_length == self.at_most

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "schema": SCHEMA,
            "beta": self.beta,
            "n_max": self.last_length,
            "first_failing_length": self.first_failing_length,
            "first_failing_at_most": self.at_most,
            "certain": self.is_certain,
            "searched": self.searched,
            "offset": safe_integer(self.offset),
            "rival": self.rival,
            "rival_term": self.term,
            "sum": self.total,
            "cause": self.cause,
        }


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What one query needs.

    Attributes:
        offset: the distance aimed at.
        threshold: what its sum must stay below.

    Raises:
        InvalidInputError: a negative offset, or a threshold that is not positive.
    """

    offset: int
    threshold: Fraction

    def __post_init__(self) -> None:
        check_target("Demand", self.offset, ())
        if not self.threshold > 0:
            raise InvalidInputError(
                f"Demand: threshold {float(self.threshold):g} must be positive: a sum of exponentials is"
            )


def softmax_length(
    profile: LogitProfile,
    beta: float,
    *,
    threshold: Fraction | float,
    max_length: int = DEFAULT_SEARCHED,
    progress: Progress | None = None,
) -> SoftmaxLimit:
    """n_max: the largest length at which the sum over the rivals, exp(-beta gap), is below a threshold.

    Args:
        profile: of an index head, any coefficients; its origin is the offset aimed at.
        beta: logit scale; the profile's own weight does not matter.
        threshold: 1 for a weight above 1/2, (1 - p)/p for p; `Rule.threshold` has those of the built heads.
        max_length: the largest length to look at.
        progress: called now and then with the number of displacements done.

    Returns:
        n_max as `last_length`, with what fails after it and why.

    Raises:
        InvalidInputError: a beta or threshold that is not positive, a length or profile out of range.
        UnsupportedError: a beta or length beyond what float64 sums serve.

    Accuracy: exact where `is_certain`; see the module.

    Source: docs/MATHEMATICS.md, section 8; proof in the module.

    Example:
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> profile = LogitProfile(spectrum=RopeSpectrum.from_angle("10000^(-2/128)"), coefficients=np.ones(1))
        >>> softmax_length(profile, 100.0, threshold=1).last_length
        29
    """
    check_profile("softmax_length", profile)
    if not (math.isfinite(threshold) and threshold > 0):
        raise InvalidInputError(f"softmax_length: threshold {float(threshold):g} must be positive and finite")
    demand = Demand(offset=check_target("softmax_length", profile.origin, ()), threshold=Fraction(threshold))
    return softmax_lengths(profile, [beta], demands=[demand], max_length=max_length, progress=progress)[0]


def softmax_lengths(
    profile: LogitProfile,
    betas: Sequence[float],
    *,
    demands: Sequence[Demand],
    max_length: int = DEFAULT_SEARCHED,
    progress: Progress | None = None,
) -> tuple[SoftmaxLimit, ...]:
    """As `softmax_length`, of a head with several queries and at several scales, in one pass.

    A query is asked at lengths above its offset, so the head's first failing length is the smallest of its queries'.
    One that is right at no length fails the head from its offset + 1 on.

    Args:
        profile: of an index head; displacements count from its origin.
        betas: scales.
        demands: of each query; offsets as far as `max_length` are looked at.
        max_length: the largest length to look at.
        progress: called now and then with the number of displacements done.

    Returns:
        One limit for each scale, in their order.

    Raises:
        InvalidInputError: as `softmax_length`; or no demand.
        UnsupportedError: as `softmax_length`.

    Accuracy: exact where `is_certain`; see the module.

    Source: docs/MATHEMATICS.md, section 8; proof in the module.

    Example:
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> profile = LogitProfile(spectrum=RopeSpectrum.from_angle("1"), coefficients=np.ones(1))
        >>> asked = [Demand(offset=0, threshold=Fraction(3)), Demand(offset=3, threshold=Fraction(1))]
        >>> found = softmax_lengths(profile, [100.0, 1e5], demands=asked)
        >>> [(each.last_length, each.offset, each.rival, each.cause) for each in found]
        [(47, 3, 44, 'near return'), (713, 3, 710, 'near return')]
    """
    check_profile("softmax_lengths", profile)
    check_betas("softmax_lengths", betas)
    check_searched("softmax_lengths", max_length)
    if not demands:
        raise InvalidInputError("softmax_lengths: needs at least one demand")
    check_turning("softmax_lengths", profile)
    ordered = sorted(demands, key=lambda demand: demand.offset)
    smallest = ordered[0].offset
    if smallest >= max_length:
        raise InvalidInputError(
            f"softmax_lengths: offset {short(smallest)} needs a length above it; max_length {max_length} is too short"
        )
    gaps = Gaps(profile)
    asked = [demand for demand in ordered if demand.offset < max_length]
    last = _check_offset("softmax_lengths", asked[-1].offset)
    behind = gaps.at(-last, -1)[::-1] if last else np.empty(0)
    passes = [_Pass(beta, asked, behind, gaps.error) for beta in betas]
    for low, high in _chunks(max_length - 1 - smallest):
        waiting = [each for each in passes if not each.done]
        if not waiting:
            break
        chunk = gaps.at(low, high)
        for each in waiting:
            each.take(low, chunk, max_length)
        if progress is not None:
            progress(high)
    return tuple(each.result(gaps, max_length) for each in passes)


def head_softmax_scale(
    profile: LogitProfile, length: int, *, demands: Sequence[Demand], argmax_fails: int | None = None
) -> float:
    """beta_min(n): the least scale at which every query that fits a length has its sum below its threshold.

    Args:
        profile: of an index head; displacements count from its origin.
        length: n, above the smallest offset.
        demands: of each query.
        argmax_fails: the head's `argmax_limit` with these offsets, where it is known to be; looked for if not given.

    Returns:
        beta_min in units of the weight; every larger scale is right too. 0 where every positive one is.

    Raises:
        InvalidInputError: no demand within the length, or a head whose argmax fails there: no scale helps.
        UnsupportedError: a length beyond `MAX_TERMS`, or gaps too small for float64 sums.

    Accuracy: relative error below 4 `LOGIT_ERROR` divided by the smallest gap.

    Source: docs/MATHEMATICS.md, section 8: all terms fall in beta, so the largest ratio of sum and threshold falls.
    """
    asked = [demand for demand in demands if demand.offset < length]
    if not asked:
        raise InvalidInputError(f"head_softmax_scale: no query of the head fits the length {short(length)}")
    if length > MAX_TERMS:
        raise UnsupportedError(f"head_softmax_scale: sums of up to {MAX_TERMS} terms; length {short(length)} is more")
    failing = argmax_fails
    if failing is None:
        offsets = [demand.offset for demand in asked]
        failing = argmax_limit(profile, offsets=offsets, max_length=length).first_failing_length
    if failing is not None and failing <= length:
        raise InvalidInputError(
            f"head_softmax_scale: the argmax fails from length {failing} on, so no scale is enough at length {length}"
        )
    aims = np.array([demand.offset for demand in asked])
    limits = np.log([float(demand.threshold) for demand in asked])
    gaps = Gaps(profile)
    last = _check_offset("head_softmax_scale", int(aims.max()))
    farthest = length - 1 - int(aims.min())
    ahead = gaps.at(1, farthest) if farthest else np.empty(0)
    behind = gaps.at(-last, -1)[::-1] if last else np.empty(0)
    if not ahead.size and not behind.size:
        return 0.0  # one position: no rival
    smallest = min(ahead.min(initial=np.inf), behind.min(initial=np.inf))
    if smallest < 1e-10:
        raise UnsupportedError("head_softmax_scale: the margin is below 1e-10, too small for float64 sums")

    def log_ratio(beta: float) -> float:
        # Scaled by the largest term, so that no sum underflows.
        sums_ahead = np.concatenate([[0.0], np.cumsum(np.exp(-beta * (ahead - smallest)))])
        sums_behind = np.concatenate([[0.0], np.cumsum(np.exp(-beta * (behind - smallest)))])
        sums = sums_ahead[length - 1 - aims] + sums_behind[aims]
        with np.errstate(divide="ignore"):
            return float((np.log(sums) - limits).max() - beta * smallest)

    return falling_root(log_ratio)


def _check_offset(call: str, offset: int) -> int:
    if offset > LARGEST_OFFSET:
        raise UnsupportedError(
            f"{call}: the terms up to an offset are held at once, for offsets up to {LARGEST_OFFSET}; "
            f"{short(offset)} is more"
        )
    return offset


def check_betas(call: str, betas: Sequence[float]) -> None:
    """Raise unless every scale is positive and small enough.

    Raises:
        InvalidInputError: not a positive number.
        UnsupportedError: above `LARGEST_BETA`.
    """
    for beta in betas:
        if not (beta > 0 and math.isfinite(beta)):
            raise InvalidInputError(f"{call}: beta {beta:g} must be a positive number: it is the scale of the logits")
        if beta > LARGEST_BETA:
            raise UnsupportedError(
                f"{call}: beta {beta:g} is above {LARGEST_BETA:g}, where float64 sums lose their digits"
            )


def check_searched(call: str, max_length: int) -> None:
    """Raise unless a length to search to is one that is streamed.

    Raises:
        InvalidInputError: below 2.
        UnsupportedError: above `MOST_SEARCHED`.
    """
    if max_length < 2:
        raise InvalidInputError(f"{call}: max_length {max_length} must be at least 2")
    if max_length > MOST_SEARCHED:
        raise UnsupportedError(
            f"{call}: lengths are searched up to {MOST_SEARCHED}; max_length {short(max_length)} is more"
        )


def _chunks(reach: int) -> Iterator[tuple[int, int]]:
    """1..reach in runs that grow: short at first, where most heads end, and no more than memory likes."""
    low, size = 1, 1 << 10
    while low <= reach:
        high = min(reach, low + size - 1)
        yield low, high
        low, size = high + 1, min(4 * size, 1 << 22)


@dataclass(eq=False)
class _Pass:
    """One scale's way through the displacements: the first T at which each query's sum may, and must, have crossed."""

    beta: float
    demands: Sequence[Demand]
    behind: FloatArray
    gap_error: float
    total: float = 0.0
    runs: int = 0
    done: bool = False
    may: FloatArray = field(init=False)
    must: FloatArray = field(init=False)
    best: tuple[float, int] = (-1.0, 0)
    """The largest term so far, and its displacement."""
    at_crossing: dict[int, tuple[float, int, float]] = field(default_factory=dict)
    """Of each query whose sum may have reached its threshold: the largest term ahead, its displacement, and the sum."""

    def __post_init__(self) -> None:
        self.offsets = np.array([demand.offset for demand in self.demands], dtype=np.float64)
        self.limits = np.array([float(demand.threshold) for demand in self.demands])
        self.before = np.concatenate([[0.0], np.cumsum(self._terms(self.behind))])[self.offsets.astype(np.int64)]
        self.runs = self.behind.size  # summed in one run of that length
        self.may, self.must = (np.where(self._crossed(0.0, sign), 0.0, np.inf) for sign in (1, -1))
        for query in np.flatnonzero(self.may == 0).tolist():
            self.at_crossing[query] = (*self.best, float(self.before[query]))
        self._check_done(0, math.inf)

    def _terms(self, gaps: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.exp(-self.beta * gaps))

    @property
    def spread(self) -> float:
        """r of the module."""
        return 1.01 * (self.beta * self.gap_error + (_RUN + self.runs + 1000) * _UNIT)

    def _crossed(self, ahead: float, sign: int) -> FloatArray:
        """Whether each sum may (1), or must (-1), have reached its threshold."""
        return np.asarray((self.before + ahead) * (1 + sign * self.spread) >= self.limits)

    def take(self, low: int, gaps: FloatArray, max_length: int) -> None:
        """Go on over the displacements from `low`."""
        for start in range(0, gaps.size, _RUN):
            terms = self._terms(gaps[start : start + _RUN])
            sums = self.total + np.cumsum(terms)
            self.runs += 1
            for places, sign in ((self.may, 1), (self.must, -1)):
                pending = np.flatnonzero(np.isinf(places) & self._crossed(float(sums[-1]), sign))
                levels = self.limits[pending] / (1 + sign * self.spread) - self.before[pending]
                found = np.searchsorted(sums, levels)
                # The level is rounded: the place is among the neighbours, and decided as the sums are.
                for query, at in zip(pending.tolist(), found.tolist(), strict=True):
                    place = max(at - 1, 0)
                    while not self._reached(query, float(sums[place]), sign):
                        place += 1
                    places[query] = low + start + place
                    if sign == 1:
                        largest = max(self.best, _largest(terms[: place + 1], low + start))
                        self.at_crossing[query] = (*largest, float(self.before[query] + sums[place]))
            self.total, self.best = float(sums[-1]), max(self.best, _largest(terms, low + start))
            self._check_done(low + start + sums.size - 1, max_length)
            if self.done:
                return

    def _reached(self, query: int, ahead: float, sign: int) -> bool:
        return bool((self.before[query] + ahead) * (1 + sign * self.spread) >= self.limits[query])

    def _check_done(self, reached: int, max_length: float) -> None:
        """Done when no query that has not certainly crossed could still be the first within the lengths asked."""
        first = float((self.offsets + 1 + self.must).min())
        open_queries = np.isinf(self.must)
        self.done = not bool((open_queries & (self.offsets + 1 + reached < min(first, max_length))).any())

    def result(self, gaps: Gaps, max_length: int) -> SoftmaxLimit:
        """The head's limit; what rounding leaves open is decided in balls where that is affordable."""
        low, high = (float((self.offsets + 1 + places).min()) for places in (self.may, self.must))
        first, last = int(min(low, max_length + 1)), int(min(high, max_length + 1))
        while first < last:
            middle = (first + last) // 2
            fails = [self._fails(gaps.profile, query, middle) for query in self._open_at(middle)]
            if True in fails:
                last = middle
            elif None in fails:
                break
            else:
                first = middle + 1
        offset = self.demands[0].offset
        if first > max_length:
            return SoftmaxLimit(
                beta=self.beta,
                last_length=max_length,
                first_failing_length=None,
                searched=max_length,
                offset=offset,
                at_most=None,
            )
        candidates = np.flatnonzero(self.offsets + 1 + self.may <= first)
        query = int(candidates[np.argmin(self.must[candidates])])
        at_most = last if last <= max_length else None
        term, rival, total = self._largest_term(gaps, query, first)
        why: dict[str, Any] = {"rival": rival, "term": term, "total": total} if first == at_most else {}
        why["cause"] = sum_cause(rival, term, total, float(self.limits[query]))
        return SoftmaxLimit(
            beta=self.beta,
            last_length=first - 1 if first - 1 > offset else None,
            first_failing_length=first,
            searched=max_length if at_most is None else at_most,
            offset=self.demands[query].offset,
            at_most=at_most,
            **why,
        )

    def _largest_term(self, gaps: Gaps, query: int, length: int) -> tuple[float, int, float]:
        """Largest single term of a query's sum at a length, its displacement, and the sum.

        Where balls have moved the length from where the sum may first cross, the few terms are made again.
        """
        offset = self.demands[query].offset
        if self.offsets[query] + 1 + self.may[query] == length:
            best, rival, total = self.at_crossing[query]
        else:
            terms = self._terms(gaps.at(1, length - 1 - offset))
            (best, rival), total = _largest(terms, 1), float(self.before[query] + terms.sum())
        back = self._terms(self.behind[:offset])
        if back.size and back.max() > best:
            best, rival = float(back.max()), -1 - int(back.argmax())
        return best, rival, total

    def _open_at(self, length: int) -> list[int]:
        """Queries that rounding leaves open at a length (those that certainly fail there end the search before it)."""
        return [int(query) for query in np.flatnonzero(self.offsets + 1 + self.may <= length)]

    def _fails(self, profile: LogitProfile, query: int, length: int) -> bool | None:
        """Whether a query's sum reaches its threshold at a length, in balls; None where that is not decided."""
        demand = self.demands[query]
        if self.offsets[query] + 1 + self.must[query] <= length:
            return True
        if (length - 1) * len(profile.active_planes) > MAX_BALLS:
            return None
        first, last = -demand.offset, length - 1 - demand.offset
        period = common_period(profile)
        ties = 0 if period is None else last // period + demand.offset // period
        rest = demand.threshold - ties  # ties have terms of exactly 1, and what is left over is positive
        if rest < 0 or (rest == 0 and ties < last - first):
            return True
        found = sum_ball(profile, self.beta, first, last, period=period)
        low, high = balls.rational_ends(found)
        return False if high < rest else True if low >= rest else None


def _largest(terms: FloatArray, low: int) -> tuple[float, int]:
    """The largest of some terms and its displacement, the first of which is `low`."""
    at = int(terms.argmax())
    return float(terms[at]), low + at

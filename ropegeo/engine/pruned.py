r"""Near returns of many planes by branch and bound: exact search of ranges too long to evaluate one by one.

The *deficit* of a profile logit(origin + t) = constant + Re sum_k c_k exp(i theta_k t), with w_k = |c_k|,
phi_k = arg(c_k)/(2 pi) and alpha_k = theta_k/(2 pi), is

    D(t) = sum_k w_k (1 - cos 2 pi (t alpha_k + phi_k)) >= 0,

which is `LogitProfile.gap` for a peaked profile, and in general what the logit lacks to constant + weight.

The bound. A block is the displacements S, S+1, .., S+L-1. alpha_k matters modulo 1 only, as t is an integer, so let
alpha_k lie in [-1/2, 1/2). In the block t alpha_k + phi_k stays within h_k = |alpha_k| (L-1)/2 of the centre
x_k = (S + (L-1)/2) alpha_k + phi_k; so if x_k is reduced to [-1/2, 1/2], the distance of t alpha_k + phi_k to the
nearest integer is at least y_k = max(|x_k| - h_k, 0) (distance to the integers is 1-Lipschitz), and 1 - cos 2 pi y
grows on [0, 1/2]:

    D(t) >= sum_k w_k p(y_k),   p(y) = z**2/2 - z**4/24 + z**6/720 - z**8/40320 <= 1 - cos z,   z = 2 pi y.

(Taylor's sums of the cosine lie above and below it in turn, for every real z: integrate 1 - cos z >= 0 over and over.)
A plane with h_k >= 1/2 adds 0 whatever its centre, so planes are sorted slow to fast and a block looks at the first
few. A block is skipped when its bound reaches the record; else it is halved. A plane's share in a half is at least its
share in the whole, so a half starts from the sum of the whole and replaces shares, fastest planes first, until the sum
reaches the record or all are replaced. A single displacement that survives is evaluated.

Rounding. u = 2**-53, W = sum w_k. Suppose turns are off by at most delta and all else by a relative b. With
g(x) = 1 - cos 2 pi x, |g'| = 2 pi |sin 2 pi x| <= 2 pi sqrt(2 g) and |g''| <= 4 pi**2, so by Taylor and Cauchy-Schwarz
a computed D (or bound in place of D) exceeds or misses the true one by no more than

    E(D) = a sqrt(D) + b D + c,     a = 2 pi delta sqrt(2 W),  c = 2 pi**2 delta**2 W = a**2/4.

Evaluated displacements have delta <= 4u: the exact product 1u, phi_k 1u, their sum 1u, pi times it 1u; and
b = (planes + 16) u for the sine, the products and the sum. Blocks have delta <= (6 + levels) u: the root's product,
phi_k, centre and two sums 4.5u, 3u/4 for each halving (a stored step u/4, the sum u/2), half width and difference 1u;
and b = (planes + 128) u: Horner's rule loses below 40u as p(y)/z**2 >= 0.2, and replacing a share costs 2u of a sum.

The candidates. Let R be the least computed deficit before t and D' the true deficit at R's own displacement, or both
the budget. A displacement with D(t) below all deficits before has D(t) < D' <= R + E(D'), so sqrt(D') <= (1 + b)
(sqrt(R) + 3a/2) and E(D') <= 1.02 (a sqrt(R) + b R) + 7.5 c. So D(t) is computed as less than R + 2 E(D') <= R + s(R)
with

    s(R) = 2.1 a sqrt(R) + 2.1 b R + 16 c:

it is a candidate if it is evaluated. And it is: every t with computed D(t) < R + s(R) has, by the same steps once
more, sqrt(D(t)) <= (1 + 2b) (sqrt(R) + 2.8 a) and a computed bound below

    R + s(R) + 2 E(D(t)) < R + 5 a sqrt(R) + 5 b R + 48 c

with the a, b, c of blocks; blocks are skipped only from there on. So the candidates are exactly the t with computed
D(t) < R + s(R), however the range was cut and whatever the threads did: a chunk that starts from an older record finds
more, and the merge, in order, applies the test again. They contain every record minimum below the budget; which of
them are, is for ball arithmetic to say.

Source: branch and bound, Land and Doig 1960; the bound is that of interval arithmetic, Moore 1966.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float, Int

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.engine.deficits import check_scale
from ropegeo.engine.pruned_kernels import slackened
from ropegeo.engine.pruned_plan import Plan, plan_of
from ropegeo.engine.threads import in_order, thread_count
from ropegeo.errors import InvalidInputError
from ropegeo.exact import short
from ropegeo.heads import LogitProfile
from ropegeo.spectrum.phases import MAX_DISPLACEMENT

MAX_CANDIDATES = 10**6
"""Near returns after which a search gives up: a profile that ties this often needs its period, not a search."""
CHUNK_BLOCKS = 1 << 19
"""Blocks that a chunk aims at: tens of milliseconds."""
_FIRST_CHUNK = 1 << 14
_SURVIVING, _KNOWN_FROM, _FADING = 0.7, 64, 0.9


@dataclass(frozen=True, eq=False, kw_only=True)
class PrunedRecords:
    """What a pruned search found.

    Attributes:
        low: first displacement searched.
        high: last displacement asked for.
        complete_to: last displacement searched; below `high` if the search gave up, `low - 1` if at once.
        displacements: candidates, increasing: every record minimum of the deficit below the budget, and what rounding
            could not tell from one.
        deficits: computed deficit of each candidate, in logit units, with the absolute error E of the module. Positive:
            whether one is exactly 0 is not decided here.
        lowest: a proved upper bound on the smallest deficit found, in logit units, to serve as the next budget; the
            budget if none was found.
        blocks: blocks visited.
        shares: shares of planes computed in them, the measure of work.
    """

    low: int
    high: int
    complete_to: int
    displacements: Int[IntArray, " found"]
    deficits: Float[FloatArray, " found"]
    lowest: float
    blocks: int
    shares: int

    @property
    def complete(self) -> bool:
        """Whether the whole range was searched."""
        return self.complete_to == self.high


@dataclass(frozen=True, kw_only=True)
class PrunedEstimate:
    """Work of a pruned search per displacement, from samples.

    Attributes:
        blocks: blocks visited per displacement.
        shares: shares of planes computed per displacement.
    """

    blocks: float
    shares: float

    def seconds(self, displacements: int, *, block_ns: float = 35.0, share_ns: float = 1.6) -> float:
        """Estimated time of one thread for a number of displacements; the defaults were measured on an AVX2 core."""
        return displacements * (self.blocks * block_ns + self.shares * share_ns) * 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class _Found:
    """Outcome of one chunk."""

    start: int
    done: int
    stop: int
    tried: IntArray
    displacements: list[int]
    deficits: list[float]
    blocks: int
    shares: int


def _search_chunk(
    plan: Plan, halt: threading.Event, max_candidates: int, item: tuple[int, int, float, int, int]
) -> _Found:
    """One chunk; looks up every `CHUNK_BLOCKS` blocks whether the search was interrupted or has had enough."""
    start, stop, record, max_blocks, tested = item
    tries = np.zeros((2, plan.top + 1), dtype=np.int64)
    at, blocks, shares = start, 0, 0
    displacements: list[int] = []
    deficits: list[float] = []
    while at < stop and blocks < max_blocks and len(displacements) <= max_candidates and not halt.is_set():
        at, found, values, visited, looked, record = plan.run(
            at, stop, record, min(CHUNK_BLOCKS, max_blocks - blocks), tested, tries
        )
        displacements += found.tolist()
        deficits += values.tolist()
        blocks += visited
        shares += looked
    return _Found(
        start=start,
        done=at,
        stop=stop,
        tried=tries,
        displacements=displacements,
        deficits=deficits,
        blocks=blocks,
        shares=shares,
    )


def pruned_records(
    profile: LogitProfile,
    low: int,
    high: int,
    budget: float,
    *,
    threads: int | None = None,
    max_blocks: int | None = None,
    max_candidates: int = MAX_CANDIDATES,
    progress: Callable[[int], object] | None = None,
) -> PrunedRecords:
    """Record minima of the deficit below a budget, over low <= t <= high, where t = distance - origin.

    Args:
        profile: any coefficients, not all zero.
        low: first displacement, above -2**62.
        high: last displacement, at least `low` and below 2**62.
        budget: only deficits below it are looked for, in logit units; infinity for the first deficit whatever it is.
        threads: see `thread_count`; candidates do not depend on it.
        max_blocks: blocks after which to give up, or None.
        max_candidates: candidates after which to give up.
        progress: called with the last displacement done, after each chunk.

    Returns:
        The candidates. A search that gave up says how far it is complete.

    Raises:
        InvalidInputError: a range beyond 2**62 or empty, a negative or undefined budget, a profile without weight.
        UnsupportedError: a budget below `LEAST_BUDGET` times the weight.

    Accuracy: no record is missed; candidates that are none differ from a record by the rounding of the module's proof,
    about 1e-14 sqrt(weight * deficit).

    Example:
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> head = LogitProfile(spectrum=RopeSpectrum.from_base(10000, head_dim=8), coefficients=np.ones(4))
        >>> pruned_records(head, 1, 10**6, 0.01).displacements.tolist()
        [31416, 69115, 100531, 169646]
    """
    _check("pruned_records", profile, low, high, budget)
    if (max_blocks is not None and max_blocks < 1) or max_candidates < 1:
        raise InvalidInputError("pruned_records: max_blocks and max_candidates must be at least 1")
    plan = plan_of(profile)
    halt = threading.Event()
    record = float(budget)
    blocks, shares, done = 0, 0, low
    length, tested, remembered = _FIRST_CHUNK, plan.top, np.zeros((2, plan.top + 1))
    displacements: list[int] = []
    deficits: list[float] = []

    def chunks() -> Iterator[tuple[int, int, float, int, int]]:
        start = low
        while start <= high:
            stop = min(start + length, high + 1)
            yield start, stop, record, (1 << 62) if max_blocks is None else max(1, max_blocks - blocks), tested
            start = stop

    try:
        work = partial(_search_chunk, plan, halt, max_candidates)
        for chunk in in_order(work, chunks(), threads=thread_count(threads)):
            for t, deficit in zip(chunk.displacements, chunk.deficits, strict=True):
                if deficit < float(slackened(record, plan.leaf_slack)):
                    displacements.append(t)
                    deficits.append(deficit)
                    record = min(record, deficit)
            blocks += chunk.blocks
            shares += chunk.shares
            done = chunk.done
            if progress is not None:
                progress(done - 1)
            spent = max_blocks is not None and blocks >= max_blocks
            if done < chunk.stop or len(displacements) > max_candidates or (spent and done <= high):
                break
            length = _next_length(chunk)
            remembered = _FADING * remembered + chunk.tried
            tested = _next_tested(remembered, tested)
    finally:
        halt.set()
    return PrunedRecords(
        low=low,
        high=high,
        complete_to=done - 1,
        displacements=np.array(displacements, dtype=np.int64),
        deficits=np.maximum(np.array(deficits, dtype=np.float64), math.ulp(0.0)),
        lowest=min(float(budget), float(slackened(record, plan.leaf_slack))),
        blocks=blocks,
        shares=shares,
    )


def _check(call: str, profile: LogitProfile, low: int, high: int, budget: float) -> None:
    if not -MAX_DISPLACEMENT < low <= high < MAX_DISPLACEMENT:
        raise InvalidInputError(f"{call}: needs -2**62 < low <= high < 2**62; got {short(low)} and {short(high)}")
    if math.isnan(budget) or budget < 0:
        raise InvalidInputError(f"{call}: the budget {budget} must be a deficit, at least 0")
    if not profile.active_planes:
        raise InvalidInputError(f"{call}: all coefficients are zero, so every deficit is 0")
    check_scale(call, profile, budget)


def _next_length(chunk: _Found) -> int:
    """Length of a chunk that would visit `CHUNK_BLOCKS` blocks, a power of 2, at most 8 times this chunk's."""
    length = chunk.stop - chunk.start
    fitting = length * CHUNK_BLOCKS // chunk.blocks
    return max(_FIRST_CHUNK, 1 << (min(fitting, 8 * length).bit_length() - 1))


def _next_tested(tried: FloatArray, tested: int) -> int:
    """Level of the largest blocks worth a look: the highest at which a good part was skipped; one above, to try it.

    A level at which nearly every block survives costs a look for nothing. It is tried again when what is remembered
    of it has faded.
    """
    known = tried[0] >= _KNOWN_FROM
    useful = np.flatnonzero(known & (tried[1] <= _SURVIVING * tried[0]))
    if not useful.size:
        return tested
    level = int(useful[-1])
    if level == tested and level + 1 < known.size and not known[level + 1]:
        level += 1
    return level


def pruned_estimate(
    profile: LogitProfile, low: int, high: int, budget: float, *, samples: int = 16, seed: int = 0
) -> PrunedEstimate:
    """Work of `pruned_records` from random windows of the range, one to each of `samples` equal parts.

    A window is as long as the longest blocks of the search, and is cut off after 4096 blocks. The record stays at the
    budget, so a search whose record falls does less.

    Args:
        profile: see `pruned_records`.
        low: first displacement.
        high: last displacement.
        budget: the deficit from which blocks are skipped; infinity would never skip.
        samples: number of windows.
        seed: of the random places.

    Raises:
        InvalidInputError: as `pruned_records`; no sample.
        UnsupportedError: as `pruned_records`.

    Accuracy: an estimate; near returns that no window meets are not counted.
    """
    _check("pruned_estimate", profile, low, high, budget)
    if samples < 1:
        raise InvalidInputError("pruned_estimate: samples must be at least 1")
    plan = plan_of(profile)
    places = np.random.default_rng(seed).random(samples)
    tested = plan.top
    covered, blocks, shares = 0, 0, 0
    for i, place in enumerate(places.tolist()):
        start = low + int((high - low) * ((i + place) / samples))
        stop = min(high + 1, start + (1 << min(plan.top, 40)))
        tries = np.zeros((2, plan.top + 1), dtype=np.int64)
        at, _, _, visited, looked, _ = plan.run(start, stop, budget, 4096, tested, tries)
        tested = _next_tested(tries.astype(np.float64), tested)
        covered += at - start
        blocks += visited
        shares += looked
    return PrunedEstimate(blocks=blocks / max(1, covered), shares=shares / max(1, covered))

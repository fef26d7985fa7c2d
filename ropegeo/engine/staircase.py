r"""The staircase of a profile: the displacements at which its margin falls, found by whichever route suits.

For a peaked profile the margin at reach T is the smallest gap over 1 <= t <= T, so as a function of T it is constant
but for *steps*, the t whose gap is below all before: one pass over 1..T, or any search that misses no step, gives the
margin of every length at once.

A search in float64 yields candidates: every t whose gap comes within twice the float error of the smallest before it,
so that no step is missed. They are then compared in ball arithmetic (`certify.py`), and what is reported is proved,
to as many digits as are asked for, whatever search found it.

Two gaps that agree in `LAST_DIGITS` digits are taken for equal, and the earlier t keeps the step: the margin is the
same to that many digits, only its place is then a choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

from ropegeo.engine.certify import ExactDeficit
from ropegeo.engine.diophantine import OnePlaneStaircase, last_step, one_plane_staircase
from ropegeo.engine.searches import search, streamed_together
from ropegeo.engine.work import Progress, Work
from ropegeo.errors import InvalidInputError
from ropegeo.exact import Enclosure
from ropegeo.exact.enclosure import DOUBLE_DIGITS
from ropegeo.heads import LogitProfile

FIRST_DIGITS = 20
LAST_DIGITS = 160


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordStaircase:
    """The margin of a profile on several planes as a function of the reach: it falls at `steps`, constant between.

    Attributes:
        profile: the head.
        reach: how far the steps are complete.
        steps: displacements at which the margin falls, increasing.
        method: the route that found them.
        slack: per unit of weight, how far below a step's gap a missed one could lie; 0 where all were compared exactly.
    """

    profile: LogitProfile
    reach: int
    steps: tuple[int, ...]
    method: str
    slack: float = 0.0

    def index_at(self, reach: int) -> int:
        """Which step holds the minimum over displacements 1..reach.

        Raises:
            InvalidInputError: a reach below 1 or beyond the staircase.
        """
        return last_step(self.steps, reach, complete_to=self.reach)

    def margin(self, index: int, digits: int = DOUBLE_DIGITS) -> Enclosure:
        """The margin from step `index` on, in units of beta, proved to `digits` digits (or to `slack`)."""
        if not self.profile.active_planes:
            return Enclosure.exactly(0)
        exact = lowered(self._deficit.at(self.steps[index], digits), self.slack)
        return Enclosure(low=max(exact.low, Fraction(0)), high=exact.high)

    @cached_property
    def _deficit(self) -> ExactDeficit:
        return ExactDeficit(self.profile)


Staircase = OnePlaneStaircase | RecordStaircase


def staircase(
    profile: LogitProfile,
    reach: int,
    *,
    route: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Staircase:
    """All steps of a peaked profile's margin up to displacement `reach`.

    Args:
        profile: real, non-negative coefficients about its origin (a built index head).
        reach: largest displacement.
        route: `continued_fraction` (one plane, any reach); for several planes `streamed` (every displacement), `pruned`
            (blocks that cannot hold a step are skipped), `lattice` (few planes, any reach), `definition` (the slow,
            obviously right evaluation). `auto` chooses the fastest that reaches.
        threads: for routes that share work out; all usable cores if not given.
        progress: called now and then with the number of displacements done.

    Raises:
        InvalidInputError: a profile that is not peaked, or a route that does not apply.
        UnsupportedError: a reach that no route, or not the one named, gets to.
    """
    if not profile.is_peaked:
        raise InvalidInputError("staircase: needs a profile with real, non-negative coefficients")
    if reach < 1:
        raise InvalidInputError(f"staircase: reach {reach} must be at least 1")
    if len(profile.active_planes) == 1 and route in ("auto", "continued_fraction"):
        return one_plane_staircase(profile.spectrum.angles[profile.active_planes[0]], reach)
    if route == "continued_fraction":
        raise InvalidInputError("route 'continued_fraction' is for one plane; use auto, streamed, pruned or lattice")
    period = common_period(profile)
    searched = reach if period is None else min(reach, period - 1)
    if searched == 0:  # every displacement is a whole turn of every plane (or there is no plane): the exact tie
        return RecordStaircase(profile=profile, reach=reach, steps=(1,), method="closed_form")
    name, (candidates, slack) = search(
        Work(profile=profile, ranges=((1, searched),), threads=threads, progress=progress), route
    )
    return _certified(profile, reach, name, candidates, slack)


def _certified(
    profile: LogitProfile, reach: int, method: str, candidates: Iterable[int], slack: float
) -> RecordStaircase:
    """The steps among candidates, and the exact tie where all planes return together."""
    period = common_period(profile)
    tie = period is not None and period <= reach
    before = [t for t in candidates if period is None or t < period]
    steps = exact_records(ExactDeficit(profile), before) if before else []
    steps += [period] if tie and period is not None else []
    return RecordStaircase(profile=profile, reach=reach, steps=tuple(steps), method=method, slack=slack)


def staircases(
    profiles: Sequence[LogitProfile],
    reach: int,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[RecordStaircase, ...]:
    """As `staircase` for many peaked profiles on one spectrum, streamed together in one pass.

    Raises:
        InvalidInputError: profiles that are not peaked, or of different spectra.
        UnsupportedError: a reach beyond what is streamed.
    """
    if not all(profile.is_peaked for profile in profiles):
        raise InvalidInputError("staircases: needs profiles with real, non-negative coefficients")
    return tuple(
        _certified(profile, reach, "streamed", *outcome)
        for profile, outcome in zip(profiles, streamed_together(profiles, reach, threads, progress), strict=True)
    )


def common_period(profile: LogitProfile) -> int | None:
    """Smallest displacement at which all active planes have made whole turns; None unless all turns are rational.

    Turns p_k/q_k in lowest terms are whole together first at lcm(q_k); with no active plane, at 1.
    """
    turns = [profile.spectrum.rational_turn(plane) for plane in profile.active_planes]
    if any(turn is None for turn in turns):
        return None
    return lcm(*(turn.denominator for turn in turns if turn is not None))


def exact_records(deficit: ExactDeficit, candidates: Iterable[int]) -> list[int]:
    """Those candidates, in increasing order, whose deficit is below that of every one before: decided in balls."""
    steps: list[int] = []
    lowest: Enclosure | None = None
    for t in candidates:
        value = deficit.at(t, FIRST_DIGITS)
        if lowest is not None and not is_below(deficit, (t, value), (steps[-1], lowest)):
            continue
        steps.append(t)
        lowest = value
    return steps


def is_below(deficit: ExactDeficit, one: tuple[int, Enclosure], other: tuple[int, Enclosure]) -> bool:
    """Whether the deficit at one displacement is below that at another; False where `LAST_DIGITS` digits agree."""
    (t, value), (u, bound) = one, other
    digits = FIRST_DIGITS
    while value.high >= bound.low and value.low < bound.high and digits < LAST_DIGITS:
        digits *= 2
        value, bound = deficit.at(t, digits), deficit.at(u, digits)
    return value.high < bound.low


def lowered(value: Enclosure, slack: float) -> Enclosure:
    """An enclosure of what may lie up to `slack` below a number."""
    return Enclosure(low=value.low - Fraction(slack), high=value.high) if slack else value

r"""Searches for the steps of a staircase: which t may have a gap below that of every smaller t.

Each yields candidates: all true steps are among them, whatever the rounding (`staircase.py` compares them exactly).

* `streamed`: every displacement (`sweep.py`);
* `pruned`: blocks whose gap is bounded from below by the smallest so far are skipped (`pruned.py`): many planes, slow
  ones among them;
* `lattice`: near returns are short vectors of a lattice (`lattice.py`): few planes, any reach;
* `definition`: every displacement by the formula as it is written, in numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ropegeo.engine.candidates import CAPACITY, TooManyTiesError, thinned
from ropegeo.engine.certify import ExactDeficit
from ropegeo.engine.threads import thread_count
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import short
from ropegeo.heads import LogitProfile

if TYPE_CHECKING:
    from ropegeo.engine.sweep import Sweep

Progress = Callable[[int], None]

MAX_PHASES = 2 * 10**8
"""Planes times reach that the definition is evaluated for (seconds of numpy)."""
MAX_STREAMED = 10**14
"""Planes times reach that is streamed: under an hour on two cores."""
DEFINED_AT_ONCE = 1 << 21
"""The same that is evaluated by definition, in numpy: some 30 ms, less than it takes to load compiled kernels."""
STREAMED_AT_ONCE = 1 << 30
"""Planes times reach that is streamed without looking for a faster route: a fraction of a second."""
MAX_PRUNED = 1 << 60
MAX_NODES = 5_000_000
"""Expected nodes of one range beyond which the lattice route gives up: a second."""
MAX_SECONDS = 3600.0
"""Searches that are expected to take longer are not begun."""
STREAMED_SECONDS, LATTICE_SECONDS, NODE_SECONDS = 6e-11, 0.02, 1e-7
"""Seconds of a thread for a plane and displacement, to set up a lattice per plane, and for a node: they only steer."""
GROWTH = 7
"""Each range that the lattice route searches is so many times as long as all before it."""
NEAREST = 8
"""Of the candidates of a short stream, the last few: the smallest deficit is one of the last within rounding of it."""
_BLOCK = 1 << 14


@dataclass(frozen=True, eq=False, kw_only=True)
class Work:
    """What is searched: the displacements of some ranges, in increasing order, as if they were one.

    Attributes:
        profile: any coefficients, not all zero.
        ranges: (first, last) of each; a target's own displacement is left out between two.
        threads: for searches that share work out; all usable cores if None.
        progress: called now and then with the number of displacements done.
        ends: where the maxima up to some displacements are all that is wanted, those, increasing; None for every
            running maximum.
    """

    profile: LogitProfile
    ranges: tuple[tuple[int, int], ...]
    ends: tuple[int, ...] | None = None
    threads: int | None = None
    progress: Progress | None = None

    @property
    def planes(self) -> int:
        """How many planes are active."""
        return len(self.profile.active_planes)

    @property
    def size(self) -> int:
        """How many displacements there are."""
        return sum(last - first + 1 for first, last in self.ranges)

    def parts(self) -> Iterator[tuple[int, int, Progress | None]]:
        """Each range, with a progress that counts on from the ranges before it."""
        before = 0
        for first, last in self.ranges:
            yield first, last, None if self.progress is None else partial(_counted, self.progress, before)
            before += last - first + 1

    def split(self, size: int) -> tuple[Work, Work]:
        """The first `size` displacements, and the rest."""
        ahead: list[tuple[int, int]] = []
        rest: list[tuple[int, int]] = []
        for first, last in self.ranges:
            taken = min(size, last - first + 1)
            if taken:
                ahead.append((first, first + taken - 1))
            if first + taken <= last:
                rest.append((first + taken, last))
            size -= taken
        return replace(self, ranges=tuple(ahead), progress=None), replace(self, ranges=tuple(rest))


def _counted(progress: Progress, before: int, done: int) -> None:
    progress(before + done)


Outcome: TypeAlias = tuple[list[int], float]
"""Candidates in increasing order; and the slack: how far below them a missed step may lie, per unit of weight."""


def search(work: Work, route: str) -> tuple[str, Outcome]:
    """The route taken, and what it found.

    Raises:
        InvalidInputError: a route that is none of these.
        UnsupportedError: too much for the route named, or for all of them.
    """
    routes = {"streamed": _streamed, "pruned": _pruned, "lattice": _lattice, "definition": _by_definition}
    if route != "auto":
        if route not in routes:
            raise InvalidInputError(
                f"route {route!r} does not apply to this head and its planes: use auto, {', '.join(routes)}"
            )
        return route, routes[route](work)
    if work.planes * work.size <= DEFINED_AT_ONCE:
        return "definition", _by_definition(work)
    if work.planes * work.size <= STREAMED_AT_ONCE:
        return "streamed", _streamed(work)
    for name in _estimated(work):
        try:
            return name, routes[name](work)
        except UnsupportedError:  # more work than it was thought to be: the next one
            continue
    raise UnsupportedError(
        f"{work.planes} planes and {short(work.size)} distances: too many to stream (up to "
        f"{short(MAX_STREAMED // work.planes)}), and no search is expected to end; use fewer planes or a shorter length"
    )


def _estimated(work: Work) -> list[str]:
    """The searches that are expected to end, the fastest first. Estimates steer only."""
    from ropegeo.engine.lattice import estimated_nodes
    from ropegeo.engine.pruned import pruned_estimate

    seconds: dict[str, float] = {}
    threads = thread_count(work.threads)
    if work.planes * work.size <= MAX_STREAMED:
        seconds["streamed"] = work.planes * work.size * STREAMED_SECONDS / threads
    with suppress(UnsupportedError):
        start = _Start.of(work)
        if start.lowest == 0:
            return ["pruned"]  # nothing is below that: it ends at once
        low, high = start.rest.ranges[0]
        nodes = estimated_nodes(work.profile, low, min(high, low + 7 * start.size), start.lowest)
        rounds = max(1, (work.size // start.size).bit_length() / 3)
        if nodes < MAX_NODES:
            seconds["lattice"] = rounds * (LATTICE_SECONDS * work.planes + nodes * NODE_SECONDS)
        if work.size <= MAX_PRUNED:
            cost = pruned_estimate(work.profile, low, high, start.lowest).seconds(work.size) / threads
            if cost < MAX_SECONDS:
                seconds["pruned"] = cost
    return sorted(seconds, key=lambda name: seconds[name])


@dataclass(frozen=True, eq=False, kw_only=True)
class _Start:
    """A short stream: what a search needs to know before it can leave anything out."""

    listed: list[int]
    lowest: float  # the smallest deficit among them, in logit units, rounded up
    size: int
    rest: Work

    @classmethod
    def of(cls, work: Work) -> _Start:
        """Raise UnsupportedError where so many deficits tie that the smallest cannot be listed."""
        ahead, rest = work.split(max(1, STREAMED_AT_ONCE // work.planes))
        listed, slack = _streamed(ahead)
        if slack:
            raise UnsupportedError("too many logits tie within rounding for a search; use route 'streamed'")
        deficit = ExactDeficit(work.profile)
        lowest = min(deficit.at(t, 3).high for t in listed[-NEAREST:])
        return cls(listed=listed, lowest=float(lowest) * work.profile.weight * (1 + 1e-12), size=ahead.size, rest=rest)


def _pruned(work: Work) -> Outcome:
    from ropegeo.engine.pruned import pruned_records

    start = _Start.of(work)
    listed, lowest = start.listed, start.lowest
    for low, high, progress in start.rest.parts():
        if lowest == 0:
            break
        if max(abs(low), abs(high)) > MAX_PRUNED:
            raise UnsupportedError(f"route 'pruned' reaches displacement {short(MAX_PRUNED)}")
        # What `pruned_records` calls back with is a displacement.
        report = None if progress is None else partial(_from_displacement, progress, low)
        found = pruned_records(work.profile, low, high, lowest, threads=work.threads, progress=report)
        if not found.complete:
            raise UnsupportedError(
                f"route 'pruned' stopped at displacement {short(found.complete_to)}: too many gaps tie within rounding"
            )
        listed += found.displacements.tolist()
        lowest = min([lowest, *found.deficits.tolist()])
    return listed, 0.0


def _from_displacement(progress: Progress, low: int, displacement: int) -> None:
    progress(displacement - low + 1)


def _lattice(work: Work) -> Outcome:
    """Ever longer ranges: with the smallest deficit so far as budget, each is expected to hold a few near returns."""
    from ropegeo.engine.lattice import estimated_nodes, near_returns

    start = _Start.of(work)
    listed, lowest, done = start.listed, start.lowest, start.size
    for first, last, progress in start.rest.parts():
        low = first
        while low <= last and lowest > 0:
            high = min(last, low + GROWTH * done - 1)
            if estimated_nodes(work.profile, low, high, lowest) > MAX_NODES:
                raise UnsupportedError(f"route 'lattice' is not expected to end beyond displacement {short(low)}")
            found = near_returns(work.profile, low, high, lowest * (1 + 1e-9), max_nodes=4 * MAX_NODES)
            listed += found.displacements
            lowest = min([lowest, *found.deficits])
            done += high - low + 1
            low = high + 1
            if progress is not None:
                progress(high - first + 1)
    return listed, 0.0


def _streamed(work: Work) -> Outcome:
    from ropegeo.engine.sweep import Sweep  # numba loads late: one plane never needs it

    check_streamed(work.planes, work.size)
    sweep = Sweep((work.profile,), threads=work.threads)
    try:
        return _swept(work, sweep, None), 0.0
    except TooManyTiesError:
        slack = float(2 * sweep.abs_errors[0] / work.profile.weight)
    try:
        return _swept(work, sweep, 0.0), slack
    except TooManyTiesError as error:
        raise UnsupportedError(
            "the margin of this head falls at thousands of distances in a row, too many to list; ask for the lengths "
            "you need instead of every step"
        ) from error


def _swept(work: Work, sweep: Sweep, slack: float | None) -> list[int]:
    listed: list[int] = []
    best = -np.inf
    for low, high, progress in work.parts():
        (found,) = sweep.records(low, high, best=[best], slack=slack, ends=work.ends, progress=progress)
        listed += found.at.tolist()
        best = found.best
    return listed


def streamed_together(
    profiles: Sequence[LogitProfile], reach: int, threads: int | None, progress: Progress | None
) -> list[Outcome]:
    """Candidates over 1..reach of several profiles on one spectrum, from one pass; one by one if too many tie.

    Raises:
        InvalidInputError: different spectra.
        UnsupportedError: planes times reach above `MAX_STREAMED`.
    """
    from ropegeo.engine.sweep import Sweep

    check_streamed(sum(len(profile.active_planes) for profile in profiles), reach)
    try:
        found = Sweep(tuple(profiles), threads=threads).records(1, reach, progress=progress)
        return [(each.at.tolist(), 0.0) for each in found]
    except TooManyTiesError:
        works = [Work(profile=profile, ranges=((1, reach),), threads=threads) for profile in profiles]
        return [_streamed(work) if work.planes else ([1], 0.0) for work in works]


def _by_definition(work: Work) -> Outcome:
    """Running maxima of the logit (minima of the gap, where the profile has one), at every displacement, in numpy."""
    check_phases(work.planes, work.size)
    room = 2 * work.profile.abs_error
    listed = _evaluated(work, room)
    if len(listed) <= CAPACITY:
        return listed, 0.0
    return _evaluated(work, 0.0), room / work.profile.weight


def _evaluated(work: Work, room: float) -> list[int]:
    profile = work.profile
    at, logits = np.empty(0, np.int64), np.empty(0)
    best = -np.inf
    for low, high, _ in work.parts():
        for start in range(low, high + 1, _BLOCK):
            t = np.arange(start, min(start + _BLOCK, high + 1))
            values = -profile.gap(t) if profile.is_peaked else profile.logit(t + profile.origin)
            before = np.maximum.accumulate(np.concatenate([[best], values]))
            kept = values > before[:-1] - room
            at, logits = np.concatenate([at, t[kept]]), np.concatenate([logits, values[kept]])
            best = before[-1]
            if work.ends is not None and at.size > CAPACITY:
                at, logits = thinned(at, logits, ends=work.ends, slack=room, places=1)
    return [int(t) for t in at]


def check_phases(planes: int, length: int) -> None:
    """Raise if the definition has too much to evaluate.

    Raises:
        UnsupportedError: more than `MAX_PHASES` phases.
    """
    if planes * length > MAX_PHASES:
        raise UnsupportedError(
            f"route 'definition' evaluates {planes} planes at every distance, up to {MAX_PHASES // planes}, here "
            f"{short(length)}: use another route"
        )


def check_streamed(planes: int, length: int) -> None:
    """Raise if there is too much to stream.

    Raises:
        UnsupportedError: planes times length above `MAX_STREAMED`.
    """
    if planes * length > MAX_STREAMED:
        raise UnsupportedError(
            f"{planes} planes are streamed up to distance {MAX_STREAMED // planes}, here {short(length)}: use fewer "
            "planes or a shorter length"
        )

r"""Searches for running maxima: which displacements may have a logit above that of every one before.

Each yields candidates: all true running maxima are among them, whatever the rounding (`staircase.py` compares them
exactly).

* `streamed`: every displacement (`sweep.py`);
* `pruned`: blocks whose deficit cannot be below the smallest so far are skipped (`pruned.py`): many planes, slow ones
  among them;
* `lattice`: near returns are short vectors of a lattice (`lattice.py`): few planes, any reach;
* `definition`: every displacement in numpy (`definition.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ropegeo.engine.candidates import TooManyTiesError
from ropegeo.engine.certify import ExactDeficit
from ropegeo.engine.definition import by_definition
from ropegeo.engine.route_names import AUTO, SEARCHES
from ropegeo.engine.threads import thread_count
from ropegeo.engine.work import (
    DEFINED_AT_ONCE,
    MAX_STREAMED,
    STREAMED_AT_ONCE,
    Outcome,
    Progress,
    Work,
    check_streamed,
)
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import short
from ropegeo.heads import LogitProfile

if TYPE_CHECKING:
    from ropegeo.engine.sweep import Sweep

MAX_PRUNED = 1 << 60
MAX_NODES = 5_000_000
"""Expected nodes of one range beyond which the lattice route gives up: a second."""
MAX_SECONDS = 3600.0
"""Searches that are expected to take longer are not begun."""
STREAMED_SECONDS, LATTICE_SECONDS, NODE_SECONDS = 6e-11, 0.02, 1e-7
"""Seconds of a thread for a plane and displacement, to set up a lattice per plane, and for a node: they only steer."""
PATIENCE, FREE_BLOCKS, TOTAL_NODES = 8, 20_000_000, 20_000_000
"""A search chosen by its estimate gives way after so many times the blocks expected and so many more (a second or two),
or after so many nodes in all."""
GROWTH = 7
"""Each range that the lattice route searches is so many times as long as all before it."""
NEAREST = 8
"""Of the candidates of a short stream, the last few: the smallest deficit is one of the last within rounding of it."""


def search(work: Work, route: str) -> tuple[str, Outcome]:
    """The route taken, and what it found.

    Raises:
        InvalidInputError: a route that is none of these.
        UnsupportedError: too much for the route named, or for all of them.
    """
    runners: dict[str, _Runner] = {"streamed": _streamed, "pruned": _pruned, "lattice": _lattice}
    if route not in (AUTO, *SEARCHES):
        raise InvalidInputError(
            f"route {route!r} does not apply to this head and its planes: use auto or {', '.join(SEARCHES)}; one plane "
            "has continued_fraction (index) or first_return (with a phase)"
        )
    if route == "definition":
        return route, by_definition(work)
    if route != AUTO:
        return route, runners[route](work, None)
    if work.planes * work.size <= STREAMED_AT_ONCE:
        defined = work.planes * work.size <= DEFINED_AT_ONCE
        outcome = by_definition(work) if defined else _streamed(work, None)
        if outcome[1] > 0:  # thousands tie within that rounding, as on slow planes; pruning rounds with the deficit
            with suppress(UnsupportedError):
                return "pruned", _pruned_ranges(work, [], math.inf)
        return "definition" if defined else "streamed", outcome
    for name, start in _estimated(work):
        try:
            return name, runners[name](work, start)
        except UnsupportedError:  # more work than it was thought to be: the next one
            continue
    raise UnsupportedError(
        f"{work.planes} planes and {short(work.size)} distances: too many to stream (up to "
        f"{short(MAX_STREAMED // work.planes)}), and no search is expected to end; use fewer planes or a shorter length"
    )


def _estimated(work: Work) -> list[tuple[str, _Start]]:
    """The searches that are expected to end, the fastest first, and how far each may go wrong. Estimates steer only."""
    from ropegeo.engine.lattice import estimated_nodes
    from ropegeo.engine.pruned import pruned_estimate

    seconds: dict[str, float] = {}
    threads = thread_count(work.threads)
    if work.planes * work.size <= MAX_STREAMED:
        seconds["streamed"] = work.planes * work.size * STREAMED_SECONDS / threads
    start = _Start.of(work)
    if start.lowest == 0:
        return [("pruned", start)]  # nothing is below that: it ends at once
    low, high = start.rest.ranges[0]
    with suppress(UnsupportedError):
        nodes = estimated_nodes(work.profile, low, min(high, low + GROWTH * start.size), start.lowest)
        rounds = max(1, (work.size // start.size).bit_length() / 3)
        if nodes < MAX_NODES:
            seconds["lattice"] = rounds * (LATTICE_SECONDS * work.planes + nodes * NODE_SECONDS)
    if max(abs(low), abs(work.ranges[-1][1])) <= MAX_PRUNED:
        estimate = pruned_estimate(work.profile, low, high, start.lowest)
        start = replace(start, blocks=round(PATIENCE * estimate.blocks * work.size) + FREE_BLOCKS)
        cost = estimate.seconds(work.size) / threads
        if cost < MAX_SECONDS:
            seconds["pruned"] = cost
    start = replace(start, nodes=TOTAL_NODES)
    order = sorted(seconds, key=lambda name: seconds[name])
    # What is tried last has nothing to give way to.
    return [(name, replace(start, blocks=None) if name == order[-1] else start) for name in order]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Start:
    """What a search needs to know before it can leave anything out: the smallest deficit of the first displacements."""

    listed: list[int]
    lowest: float  # in logit units of the work's profile, rounded up
    size: int
    rest: Work
    blocks: int | None = None  # of a pruned search, and
    nodes: int | None = None  # of a lattice search, after which another is tried

    @classmethod
    def of(cls, work: Work) -> _Start:
        """By a short stream, or, where its rounding does not tell deficits apart, by pruning."""
        ahead, rest = work.split(max(1, STREAMED_AT_ONCE // work.planes))
        listed, slack = _streamed(ahead, None)
        if slack:
            listed, _ = _pruned_ranges(ahead, [], math.inf)
        deficit = ExactDeficit(work.profile)
        lowest = min(deficit.at(t, 3).high for t in listed[-NEAREST:])
        return cls(listed=listed, lowest=float(lowest) * work.profile.weight * (1 + 1e-12), size=ahead.size, rest=rest)


_Runner: TypeAlias = Callable[[Work, _Start | None], Outcome]


def _pruned(work: Work, start: _Start | None) -> Outcome:
    known = start or _Start.of(work)
    return _pruned_ranges(known.rest, known.listed, known.lowest, known.blocks)


def _pruned_ranges(work: Work, known: Sequence[int], lowest: float, blocks: int | None = None) -> Outcome:
    """What is known, and candidates of the ranges below the smallest deficit so far.

    Raises:
        UnsupportedError: a range beyond `MAX_PRUNED`, or deficits that tie in their thousands.
    """
    from ropegeo.engine.pruned import pruned_records

    listed = list(known)
    for low, high, progress in work.parts():
        if lowest == 0:
            break
        if max(abs(low), abs(high)) > MAX_PRUNED:
            raise UnsupportedError(f"route 'pruned' reaches displacement {short(MAX_PRUNED)}")
        # What `pruned_records` calls back with is a displacement.
        report = None if progress is None else partial(_from_displacement, progress, low)
        found = pruned_records(
            work.profile, low, high, lowest, threads=work.threads, max_blocks=blocks, progress=report
        )
        if not found.complete:
            raise UnsupportedError(
                f"route 'pruned' stopped at displacement {short(found.complete_to)}: too many gaps tie within "
                "rounding, or too few blocks can be skipped"
            )
        listed += found.displacements.tolist()
        lowest = min(lowest, found.lowest)
    return listed, 0.0


def _from_displacement(progress: Progress, low: int, displacement: int) -> None:
    progress(displacement - low + 1)


def _lattice(work: Work, start: _Start | None) -> Outcome:
    """Ever longer ranges: with the smallest deficit so far as budget, each is expected to hold a few near returns."""
    from ropegeo.engine.lattice import near_returns

    known = start or _Start.of(work)
    listed, lowest, done, nodes = list(known.listed), known.lowest, known.size, 0
    for first, last, progress in known.rest.parts():
        low = first
        while low <= last and lowest > 0:
            high = min(last, low + GROWTH * done - 1)
            left = MAX_NODES if known.nodes is None else min(MAX_NODES, known.nodes - nodes)
            found = near_returns(
                work.profile, low, high, lowest * (1 + 1e-9), max_nodes=4 * MAX_NODES, max_expected=left
            )
            nodes += found.nodes
            listed += found.displacements
            lowest = min(lowest, found.lowest)
            done += high - low + 1
            low = high + 1
            if progress is not None:
                progress(high - first + 1)
    return listed, 0.0


def _streamed(work: Work, _start: _Start | None) -> Outcome:
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

    works = [Work(profile=profile, ranges=((1, reach),), threads=threads) for profile in profiles]
    check_streamed(sum(work.planes for work in works), reach)
    try:
        found = Sweep(tuple(work.profile for work in works), threads=threads).records(1, reach, progress=progress)
        return [(each.at.tolist(), 0.0) for each in found]
    except TooManyTiesError:
        return [search(work, AUTO)[1] if work.planes else ([1], 0.0) for work in works]

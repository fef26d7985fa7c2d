r"""Searches for the steps of a staircase: which t may have a gap below that of every smaller t.

Each yields candidates: all true steps are among them, whatever the rounding (`staircase.py` compares them exactly).

* `streamed`: every displacement (`sweep.py`);
* `pruned`: blocks whose gap is bounded from below by the smallest so far are skipped (`pruned.py`): many planes, slow
  ones among them;
* `lattice`: near returns are short vectors of a lattice (`lattice.py`): few planes, any reach;
* `definition`: every displacement by the formula as it is written, in numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from ropegeo.engine.threads import thread_count
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import short
from ropegeo.heads import LogitProfile

Progress = Callable[[int], None]

MAX_PHASES = 2 * 10**8
"""Planes times reach that the definition is evaluated for (seconds of numpy)."""
MAX_STREAMED = 10**14
"""Planes times reach that is streamed: under an hour on two cores."""
DEFINED_AT_ONCE = 1 << 21
"""The same that is evaluated by definition, in numpy: some 30 ms, less than it takes to load compiled kernels."""
STREAMED_AT_ONCE = 1 << 30
"""Planes times reach that is streamed without looking for a faster route: a fraction of a second."""
MAX_PRUNED = 10**18
MAX_NODES = 50_000_000
MAX_SECONDS = 3600.0
"""Searches that are expected to take longer are not begun."""
STREAMED_SECONDS, LATTICE_SECONDS, NODE_SECONDS = 6e-11, 0.02, 1e-7
"""Seconds of a thread for a plane and displacement, to set up a lattice per plane, and for a node: they only steer."""
_BLOCK = 1 << 14


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Work:
    """What a search is asked for."""

    profile: LogitProfile
    reach: int
    threads: int | None
    progress: Progress | None

    @property
    def planes(self) -> int:
        """How many planes are active."""
        return len(self.profile.active_planes)


Outcome: TypeAlias = tuple[Iterable[int], float]
"""Candidates in increasing order, and the slack that is left."""


def search(work: Work, route: str) -> tuple[str, Outcome]:
    """The route taken, and what it found."""
    routes: dict[str, Callable[[Work], Outcome]] = {
        "streamed": _streamed,
        "pruned": _pruned,
        "lattice": _lattice,
        "definition": _by_definition,
    }
    if route != "auto":
        if route not in routes:
            raise InvalidInputError(
                f"route {route!r} is not one of an index head: use auto, continued_fraction (one plane), "
                f"{', '.join(routes)}"
            )
        return route, routes[route](work)
    if work.planes * work.reach <= DEFINED_AT_ONCE:
        return "definition", _by_definition(work)
    if work.planes * work.reach <= STREAMED_AT_ONCE:
        return "streamed", _streamed(work)
    return _fastest(work, routes)


def _fastest(work: Work, routes: dict[str, Callable[[Work], Outcome]]) -> tuple[str, Outcome]:
    """Estimate the searches that may reach, from the smallest gap of a short stream, and take the fastest.

    Estimates steer only: a search that takes longer than it was thought to says so, and the next one is taken.
    """
    from ropegeo.engine.lattice import estimated_nodes
    from ropegeo.engine.pruned import pruned_estimate

    start = min(work.reach, STREAMED_AT_ONCE // work.planes)
    (known, slack) = _streamed(replace(work, reach=start, progress=None))
    budget = float(work.profile.gap(np.array(list(known)[-1:]))[0])
    seconds: dict[str, float] = {}
    if work.planes * work.reach <= MAX_STREAMED:
        seconds["streamed"] = work.planes * work.reach * STREAMED_SECONDS / thread_count(work.threads)
    if budget > 0 and slack == 0:
        nodes = estimated_nodes(work.profile, start + 1, min(work.reach, 8 * start), budget)
        rounds = max(1, (work.reach // start).bit_length() / 3)
        if nodes < MAX_NODES / 10:
            seconds["lattice"] = LATTICE_SECONDS * work.planes + rounds * nodes * NODE_SECONDS
        if work.reach <= MAX_PRUNED:
            estimate = pruned_estimate(work.profile, start + 1, work.reach, budget)
            cost = estimate.seconds(work.reach) / thread_count(work.threads)
            if cost < MAX_SECONDS:
                seconds["pruned"] = cost
    for route in sorted(seconds, key=lambda name: seconds[name]):
        try:
            return route, routes[route](work)
        except UnsupportedError:
            continue
    raise UnsupportedError(
        f"{work.planes} planes up to displacement {short(work.reach)}: too far to stream (up to "
        f"{short(MAX_STREAMED // work.planes)}), and no search is expected to end; use fewer planes or a shorter length"
    )


def _pruned(work: Work) -> Outcome:
    from ropegeo.engine.pruned import pruned_records

    # A short stream first: blocks are skipped only where some gap to beat is known.
    start = min(work.reach, STREAMED_AT_ONCE // work.planes)
    known, slack = _streamed(replace(work, reach=start, progress=None))
    if start == work.reach:
        return known, slack
    listed = list(known)
    lowest = float(work.profile.gap(np.array(listed[-1:]))[0])
    if slack or lowest == 0 or work.reach > MAX_PRUNED:
        raise UnsupportedError(f"route 'pruned' needs gaps above 0 and a reach up to {short(MAX_PRUNED)}")
    found = pruned_records(
        work.profile, start + 1, work.reach, lowest * (1 + 1e-9), threads=work.threads, progress=work.progress
    )
    if not found.complete:
        raise UnsupportedError(
            f"route 'pruned' stopped at displacement {short(found.complete_to)}: too many gaps tie within rounding"
        )
    return [*listed, *found.displacements.tolist()], 0.0


def _lattice(work: Work) -> Outcome:
    from ropegeo.engine.lattice import record_returns

    return record_returns(work.profile, work.reach, progress=work.progress).displacements, 0.0


def _streamed(work: Work) -> Outcome:
    return streamed_together((work.profile,), work.reach, work.threads, work.progress)[0]


def streamed_together(
    profiles: Sequence[LogitProfile], reach: int, threads: int | None, progress: Progress | None
) -> list[Outcome]:
    """Candidates of several profiles on one spectrum, and the slack of each, from one pass over 1..reach.

    Raises:
        InvalidInputError: different spectra.
        UnsupportedError: planes times reach above `MAX_STREAMED`.
    """
    from ropegeo.engine.sweep import Sweep, TooManyTiesError  # numba loads late: one plane never needs it

    check_streamed(sum(len(profile.active_planes) for profile in profiles), reach)
    sweep = Sweep(tuple(profiles), threads=threads)
    try:
        return [(found.at.tolist(), 0.0) for found in sweep.records(1, reach, progress=progress)]
    except TooManyTiesError:
        return [
            (found.at.tolist(), float(2 * error / profile.weight) if profile.weight else 0.0)
            for found, error, profile in zip(
                sweep.records(1, reach, slack=0.0, progress=progress), sweep.abs_errors, profiles, strict=True
            )
        ]


def _by_definition(work: Work) -> Outcome:
    """Record minima of the gap as `LogitProfile.gap` gives it, at every displacement."""
    check_phases(work.planes, work.reach)
    steps: list[int] = []
    lowest, room = np.inf, 2 * work.profile.abs_error
    for start in range(1, work.reach + 1, _BLOCK):
        t = np.arange(start, min(start + _BLOCK, work.reach + 1))
        gap = work.profile.gap(t)
        before = np.minimum.accumulate(np.concatenate([[lowest], gap]))
        steps += t[gap < before[:-1] + room].tolist()
        lowest = before[-1]
    return steps, 0.0

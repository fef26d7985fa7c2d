"""A head on at most so many planes: which ones, by trying all sets if they are few, else by exchanges."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from ropegeo.optimal.search import Proposal, Told, search
from ropegeo.optimal.window import Phases, Window
from ropegeo.spectrum import RopeSpectrum

_ROUGH = 1e-3
"""Relative gap at which sets of planes are compared."""
_ROUGH_ROUNDS = 12
_TRIALS = 150
"""Sets of planes tried on a short window."""
_WORK = 1 << 20
"""Displacements looked at in all on a longer one: sets tried times the window's."""
_LEAST_TRIALS = 16


@dataclass(eq=False)
class _Trials:
    """Searches on sets of planes, as many as there is room for."""

    spectrum: RopeSpectrum
    window: Window
    phases: Phases
    full: Proposal
    told: Told | None
    done: int = 0
    best: Proposal = field(init=False)

    def __post_init__(self) -> None:
        self.best = replace(self.full, margin=-np.inf)

    @property
    def room(self) -> int:
        """How many sets may be tried in all."""
        size = self.window.high - self.window.low
        return max(_LEAST_TRIALS, min(_TRIALS, _WORK // size))

    def tried(self, planes: Iterable[int]) -> Proposal:
        """A rough search on some planes."""
        self.done += 1
        found = search(
            self.spectrum,
            self.window,
            phases=self.phases,
            planes=sorted(planes),
            tolerance=_ROUGH,
            max_rounds=_ROUGH_ROUNDS,
            first=self.full,
        )
        if self.told is not None:
            self.told(self.done, 1.0)
        return found

    def improves(self, sets: Iterator[set[int]]) -> bool:
        """Whether one of the sets is better than the best so far, which it then becomes; the first one that is."""
        for planes in sets:
            if self.done >= self.room:
                return False
            found = self.tried(planes)
            if found.margin > self.best.margin * (1 + _ROUGH if self.best.margin > 0 else 1):
                self.best = found
                return True
        return False


def best_subset(
    spectrum: RopeSpectrum,
    window: Window,
    full: Proposal,
    *,
    phases: Phases,
    count: int,
    tolerance: float,
    max_rounds: int,
    told: Told | None = None,
) -> Proposal:
    """The best head found on at most `count` planes, with the distribution and the bound of all planes.

    Args:
        spectrum: angles.
        window: displacements.
        full: the proposal on all planes.
        phases: `zero` or `free`.
        count: how many planes.
        tolerance: relative gap of the last search, on the planes chosen.
        max_rounds: of the last search.
        told: called after each set of planes that is tried.
    """
    turning = [plane for plane in range(spectrum.planes) if spectrum.rational_turn(plane) != 0]
    trials = _Trials(spectrum, window, phases, full, told)
    every = count == 1 or math.comb(len(turning), count) <= trials.room
    if every:
        found = [trials.tried(planes) for planes in combinations(turning, count)]
        best = max(found, key=lambda each: each.margin)
    else:
        sizes = np.abs(full.coefficients)
        chosen = np.flatnonzero(sizes).tolist()
        while len(chosen) > count:
            # Many at once while many are too many: a quarter, and one by one near the end.
            dropped = max(1, (len(chosen) - count) // 4)
            chosen = sorted(chosen, key=lambda plane: -sizes[plane])[: len(chosen) - dropped]
            trials.best = trials.tried(chosen)
            sizes = np.abs(trials.best.coefficients)
        while trials.improves(_exchanges(trials.best, turning)):
            pass
        best = trials.best
    planes = np.flatnonzero(np.abs(best.coefficients)).tolist()
    last = search(
        spectrum, window, phases=phases, planes=planes, tolerance=tolerance, max_rounds=max_rounds, first=best
    )
    head = last if last.margin >= best.margin else best
    how = "all sets of planes were tried, roughly" if every else "the choice of planes is the best found"
    return replace(
        full,
        coefficients=head.coefficients,
        margin=head.margin,
        rounds=full.rounds + last.rounds,
        status=f"{last.status} on the planes chosen; {how}, and not proved to be best",
    )


def _exchanges(best: Proposal, turning: list[int]) -> Iterator[set[int]]:
    """Sets with one plane of the best exchanged, the lightest first, for others, the nearest first."""
    sizes = np.abs(best.coefficients)
    chosen = set(np.flatnonzero(sizes).tolist())
    for leaving in sorted(chosen, key=lambda plane: sizes[plane]):
        for entering in sorted(set(turning) - chosen, key=lambda plane: abs(plane - leaving)):
            yield chosen - {leaving} | {entering}

"""A head on at most so many planes: which planes, by giving up the lightest and by exchange."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ropegeo.optimal.search import Proposal, search
from ropegeo.optimal.window import Phases, Window
from ropegeo.spectrum import RopeSpectrum

_ROUGH = 1e-3
"""Relative gap at which sets of planes are compared."""
_ROUGH_ROUNDS = 12
_EXCHANGES = 4
"""Planes tried in the place of each one used, in a round of exchanges."""
_TRIALS = 400
"""Searches in all; exchanges end there."""


def best_subset(
    spectrum: RopeSpectrum,
    window: Window,
    full: Proposal,
    *,
    phases: Phases,
    count: int,
    tolerance: float,
    max_rounds: int,
) -> Proposal:
    """The best head found on at most `count` planes, with the distribution and the bound of all planes.

    Args:
        spectrum: angles.
        window: displacements.
        full: the proposal on all planes.
        phases: `zero` or `free`.
        count: how many planes; with 1 every plane is tried.
        tolerance: relative gap of the last search, on the planes chosen.
        max_rounds: of the last search.
    """
    turning = [plane for plane in range(spectrum.planes) if spectrum.rational_turn(plane) != 0]
    trials = 0

    def tried(planes: list[int]) -> Proposal:
        nonlocal trials
        trials += 1
        return search(
            spectrum, window, phases=phases, planes=planes, tolerance=_ROUGH, max_rounds=_ROUGH_ROUNDS, first=full
        )

    if count == 1:
        best = max((tried([plane]) for plane in turning), key=lambda found: found.margin)
    else:
        best = full
        chosen = np.flatnonzero(np.abs(full.coefficients)).tolist()
        while len(chosen) > count:
            # Many at once while many are too many: an eighth, and one by one near the end.
            dropped = max(1, (len(chosen) - count) // 8)
            sizes = np.abs(best.coefficients)
            chosen = sorted(sorted(chosen, key=lambda plane: -sizes[plane])[: len(chosen) - dropped])
            best = tried(chosen)
        improved = True
        while improved and trials < _TRIALS:
            improved = False
            for leaving in sorted(chosen, key=lambda plane: abs(best.coefficients[plane])):
                near = sorted(set(turning) - set(chosen), key=lambda plane: abs(plane - leaving))[:_EXCHANGES]
                options = [tried(sorted({*chosen, plane} - {leaving})) for plane in near]
                better = max(options, key=lambda found: found.margin, default=best)
                if better.margin > best.margin * (1 + _ROUGH):
                    best, improved = better, True
                    chosen = np.flatnonzero(np.abs(best.coefficients)).tolist()
                    break
    planes = np.flatnonzero(np.abs(best.coefficients)).tolist()
    last = search(
        spectrum, window, phases=phases, planes=planes, tolerance=tolerance, max_rounds=max_rounds, first=best
    )
    head = last if last.margin >= best.margin else best
    return replace(
        full,
        coefficients=head.coefficients,
        margin=head.margin,
        rounds=full.rounds + last.rounds,
        status=f"{last.status} on the planes chosen; the choice of planes is the best found, and not proved to be best",
    )

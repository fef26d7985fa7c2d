r"""The search for the best positional head: rows and atoms are added to a matrix game until nothing improves.

Start with a few displacements of the window and a few phases of each plane. Then, in rounds, solve the game; add the
displacements at which the head found does worst (a pass over the whole window); add, for each plane k with |g_k| above
the game's value, the phase -arg(g_k), which is the best there is against mu. The margin of the head over the whole
window is a lower bound, max_k |g_k| an upper one; both are kept at their best, and the rounds end when they meet.

What is found is a proposal. `head.py` has it proved in balls (`proof.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jaxtyping import Complex, Float, Int

from ropegeo._arrays import ComplexArray, FloatArray, IntArray
from ropegeo.errors import InvalidInputError, SolverError
from ropegeo.optimal.game import solve_game
from ropegeo.optimal.pools import FIRST_PHASES, Atoms, Distribution, Rows
from ropegeo.optimal.window import Phases, Window
from ropegeo.spectrum import RopeSpectrum

Told: TypeAlias = Callable[[int, float], None]
"""Called after each round with its number and the relative gap."""

CONVERGED = "converged"
_SETTLED = 3
"""Rounds before rows and atoms that do not matter are dropped: rows paid much more than the value, atoms paid less
against the distribution. What matters comes back."""
_ROW_SLACK, _ATOM_SLACK = 0.2, 0.05
_STALL = 16
"""Rounds in which neither bound improves by a thousandth of the distance between them, after which a search ends."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Proposal:
    """A head and a distribution, both in doubles and not proved.

    Attributes:
        coefficients: z_k of every plane, sum |z_k| = 1.
        margin: of the head over the window.
        displacements: of the distribution.
        distribution: mu_t, sum 1.
        bound: max_k |g_k|.
        rounds: how many games were solved.
        status: `converged`, or why the rounds ended before.
    """

    coefficients: Complex[ComplexArray, " planes"]
    margin: float
    displacements: Int[IntArray, " rows"]
    distribution: Float[FloatArray, " rows"]
    bound: float
    rounds: int
    status: str


NOTHING = 1e-14
"""A bound below this, the rounding of the search, says that no head wins if none was found that does."""


def relative_gap(margin: float, bound: float) -> float:
    """(bound - margin)/bound; 0 where no head wins, as there is nothing to be near to."""
    return 0.0 if bound <= NOTHING and margin <= NOTHING else (bound - margin) / bound


def search(
    spectrum: RopeSpectrum,
    window: Window,
    *,
    phases: Phases,
    planes: Sequence[int],
    tolerance: float,
    max_rounds: int,
    first: Proposal | None = None,
    told: Told | None = None,
) -> Proposal:
    """Search for the best head on some planes.

    Args:
        spectrum: angles.
        window: displacements.
        phases: `zero` or `free`.
        planes: that may be used.
        tolerance: relative gap at which to end.
        max_rounds: after which to end anyway, at least 1.
        first: a proposal whose displacements are rows to begin with.
        told: called after each round.

    Raises:
        InvalidInputError: no rounds.
        SolverError: the first game has no solution.
    """
    rows = Rows(spectrum, window, planes)
    if first is not None:
        rows.add(first.displacements)
    atoms = Atoms.even(len(planes), 1 if phases == "zero" else FIRST_PHASES)
    margin, z = -np.inf, np.zeros(len(planes), np.complex128)
    proof: Distribution | None = None
    status, stalled, before, number = f"stopped after {max_rounds} rounds", 0, np.inf, 0
    for number in range(1, max_rounds + 1):
        payoffs = atoms.payoffs(rows.shortfalls)
        try:
            game = solve_game(payoffs)
        except SolverError as error:
            if proof is None:
                raise
            status = f"stopped in round {number}: {error}"
            break
        head = atoms.mixed(game.mixture, len(planes))
        its_margin, worst = rows.worst(head, game.value)
        if its_margin > margin:
            margin, z = its_margin, head
        latest = rows.distribution(game.distribution)
        offers = [latest, latest.mirrored(window)]
        offers += [] if proof is None else [proof, *(offer.mixed(proof) for offer in offers)]
        proof = min(offers, key=lambda offer: offer.bound(phases))
        gap = relative_gap(margin, proof.bound(phases))
        distance = proof.bound(phases) - margin
        if told is not None:
            told(number, gap)
        if gap <= tolerance:
            status = CONVERGED if proof.bound(phases) > NOTHING else f"no head wins by more than {NOTHING:g}"
            break
        stalled = 0 if distance < (1 - 1e-3) * before else stalled + 1
        before = min(before, distance)
        if stalled == _STALL:
            status = f"stopped after {number} rounds, of which the last {_STALL} changed little"
            break
        if number >= _SETTLED:
            rows.drop(payoffs @ game.mixture > (1 + _ROW_SLACK) * game.value)
        rows.add(worst)
        if phases == "free":
            if number >= _SETTLED:
                atoms = atoms.kept((game.mixture > 0) | (game.distribution @ payoffs > (1 - _ATOM_SLACK) * game.value))
            atoms = atoms.with_best(latest.averages, game.value)
            if proof is not latest:
                atoms = atoms.with_best(proof.averages, game.value)
    if proof is None:
        raise InvalidInputError(f"search: max_rounds {max_rounds} must be at least 1")
    coefficients = np.zeros(spectrum.planes, np.complex128)
    coefficients[list(planes)] = z
    at, shares = proof.merged()
    return Proposal(
        coefficients=coefficients,
        margin=margin,
        displacements=at,
        distribution=shares,
        bound=proof.bound(phases),
        rounds=number,
        status=status,
    )

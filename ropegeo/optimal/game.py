r"""The linear program behind every best head: a matrix game, solved by HiGHS through scipy.

One player mixes atoms (shares x_j >= 0, sum 1), the other picks a row; the first is paid the mixture of that row's
payoffs A_tj. By linear programming duality

    max_x min_t sum_j A_tj x_j  =  min_mu max_j sum_t mu_t A_tj,     mu a distribution on the rows.

An atom is a plane with a phase and a row is a displacement, so x is a head and mu is the proof that none is better.
Nothing here is trusted: both are evaluated in balls afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import linprog

from ropegeo._arrays import FloatArray
from ropegeo.errors import SolverError

_TOLERANCE = 1e-10
"""The tightest that HiGHS takes, for constraints and for reduced costs."""
_SMALLEST_UNIT = 1e-9
"""Payoffs are not blown up beyond this part of the largest: smaller ones may be the rounding of a game of value 0."""
_ENDINGS = {
    1: "stopped at its limit of iterations or time",
    2: "is infeasible: there is no atom to mix",
    3: "is unbounded: there is no row to win by",
    4: "met numerical difficulties",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class GameSolution:
    """What the solver says of a game.

    Attributes:
        value: of the game, to the solver's tolerance.
        mixture: shares of the atoms.
        distribution: of the rows.
    """

    value: float
    mixture: Float[FloatArray, " atoms"]
    distribution: Float[FloatArray, " rows"]


def solve_game(payoffs: Float[FloatArray, "rows atoms"]) -> GameSolution:
    """Solve a matrix game.

    Args:
        payoffs: A; finite.

    Raises:
        SolverError: no rows (unbounded), no atoms (infeasible), or a solver that gives up, with its own words.

    Accuracy: an estimate: the solver's tolerance is `_TOLERANCE` in units of the largest value that decides. Payoffs
        are divided by what the best single atom is paid, so that small games are solved as well as large ones.

    Example:
        >>> solve_game(np.array([[1.0, 0.0], [0.0, 3.0]])).mixture.tolist()
        [0.75, 0.25]
    """
    rows, atoms = payoffs.shape
    if not rows:
        raise SolverError(f"linear program of {atoms} atoms {_ENDINGS[3]}")
    if not atoms:
        raise SolverError(f"linear program of {rows} rows {_ENDINGS[2]}")
    largest = max(float(np.abs(payoffs).max()), np.finfo(float).tiny)
    unit = max(float(payoffs.min(axis=0).max()), float(payoffs.mean(axis=1).min()), _SMALLEST_UNIT * largest)
    # Variables x and the value v: v - A x <= 0 in each row, sum x = 1; the least -v is sought.
    found = linprog(
        np.append(np.zeros(atoms), -1.0),
        A_ub=np.hstack([-payoffs / unit, np.ones((rows, 1))]),
        b_ub=np.zeros(rows),
        A_eq=np.append(np.ones(atoms), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * atoms + [(None, None)],
        method="highs-ds",
        options={"primal_feasibility_tolerance": _TOLERANCE, "dual_feasibility_tolerance": _TOLERANCE},
    )
    if found.status != 0 or found.x is None:
        words = _ENDINGS.get(found.status, "ended without an answer")
        raise SolverError(f"linear program of {rows} rows and {atoms} atoms {words} (HiGHS: {found.message.strip()})")
    mixture = np.maximum(found.x[:-1], 0)
    distribution = np.maximum(-found.ineqlin.marginals, 0)
    return GameSolution(
        value=unit * float(found.x[-1]),
        mixture=mixture / mixture.sum(),
        distribution=distribution / distribution.sum(),
    )

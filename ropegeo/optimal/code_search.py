r"""The search for retrieval codes: which characters of the alphabet on which planes, and their weights.

A code puts letter a at sqrt(w_k) e^{2 pi i m_k a/A} in plane k: a *character* m_k of the cyclic group of A letters.
All its inner products depend on the difference of two letters only, sum_k w_k cos(2 pi m_k shift/A) on planes of one
angle. With every m = 1..floor(A/2), weights as the real dimensions (half for m = A/2), that is -1/(A - 1) for every
shift but 0: a regular simplex. With the odd m alone (A even) it is 0, but for -1 at shift A/2: a cross polytope on
A/4 planes. Multipliers m and A - m are mirror images: alike on planes that stand still, not where turning adds a
phase.

* *Weights* of given planes and characters are a matrix game (`game.py`): an atom is a plane with its character, a row
  an answer distance with a rival's shift and distance (or a query that looks for itself, uncentred), a payoff the
  match less the rival. Rows are added until the weights found win every row by the game's value.
* *Characters* on planes of one angle are the same game with one row a shift. From all of them, or the odd ones, the
  lightest is given up again and again, so that every number of planes has its set.
* *Which plane gets which.* Sets are laid on the slowest planes in several orders, and compared on a grid of
  distances, as logits of slow planes are smooth. Then characters of single planes are exchanged, those first that the
  distribution on the rows pays most for, while the margin grows.

Nothing is proved here: the engine evaluates what is found at every distance, and `code_bound.py` bounds what could
be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Int

from ropegeo._arrays import ComplexArray, FloatArray, IntArray
from ropegeo.errors import SolverError
from ropegeo.optimal.game import solve_game
from ropegeo.spectrum import RopeSpectrum

TOLERANCE = 1e-10
"""Weights are found when no row is paid less than the game's value by more than this."""
MAX_ROUNDS = 60
_ROUGH = 1e-5
"""The same, and the least gain, while codes are compared on a grid."""
_GRID = 33
_NEW_ROWS = 48
_POOL = 128
"""Characters that the search starts from, at most."""
_TRIALS, _EXCHANGES = 8, 40
"""Exchanges of a character that are tried in a row without a gain, and in all."""
_FINALISTS = 2
_BLOCK_ENTRIES = 1 << 22
_NEAR = 0.1
"""Rows paid up to this much more than the value are kept for the next code."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """What a code is sought for.

    Attributes:
        spectrum: the rotation.
        letters: A.
        length: n.
        centre: distance to which queries are turned back; 0 for none.
        planes: that may be used, slowest first.
    """

    spectrum: RopeSpectrum
    letters: int
    length: int
    centre: Fraction
    planes: tuple[int, ...]

    @cached_property
    def centre_phases(self) -> Float[FloatArray, " used"]:
        """c theta of the planes that may be used, modulo a turn."""
        return self.spectrum.phases_at(self.centre)[list(self.planes)]

    def centre_phases_of(self, planes: tuple[int, ...]) -> Float[FloatArray, " used"]:
        """The same of some of them."""
        return self.centre_phases[[self.planes.index(plane) for plane in planes]]


@dataclass(frozen=True, kw_only=True)
class Code:
    """Characters on planes, with weights of sum 1.

    Attributes:
        planes: used.
        multipliers: m_k, 1..A-1.
        weights: w_k.
        margin: the least payoff of the rows looked at; of all rows to `TOLERANCE` if `is_converged`.
        rounds: games solved for it.
        is_converged: whether every row was looked at.
    """

    planes: tuple[int, ...]
    multipliers: tuple[int, ...]
    weights: tuple[float, ...] = ()
    margin: float = -np.inf
    rounds: int = 0
    is_converged: bool = False


Row: TypeAlias = tuple[int, int, int, bool]
"""Answer distance, rival shift, rival distance, and whether the query looks for itself, uncentred."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Solved:
    """A code, and the game that found its weights."""

    code: Code
    rows: list[Row]
    distribution: Float[FloatArray, " rows"]


def best_code(task: Task) -> tuple[Code | None, str]:
    """The best code found, over numbers of planes, sets of characters and their places.

    Args:
        task: at least one plane.

    Returns:
        The code, or None if the solver never got to one; and an empty text, or what the solver said when it gave up.

    Accuracy: `margin` is an estimate to `TOLERANCE`.
    """
    coarse: list[_Solved] = []
    finished: list[_Solved] = []
    try:
        grid, everywhere, rows = _Window(task, _grid(task)), _Window(task, np.arange(task.length)), list[Row]()
        for sets in _character_sets(task):
            options = []
            for multipliers in sets:
                options.append(_solved(task, multipliers, grid, rows, _ROUGH))
                rows = options[-1].rows
            coarse.append(max(options, key=lambda solved: solved.code.margin))
        coarse.sort(key=lambda solved: -solved.code.margin)
        for solved in coarse[:_FINALISTS]:
            better = _exchanged(task, solved, grid)
            finished.append(_solved(task, better.code.multipliers, everywhere, better.rows, TOLERANCE))
    except SolverError as error:
        found = [solved.code for solved in (*finished, *coarse)]
        return (max(found, key=lambda code: code.margin) if found else None), str(error)
    return max((solved.code for solved in finished), key=lambda code: code.margin), ""


def _grid(task: Task) -> IntArray:
    """Distances at which codes are compared: all of a short window, else some, the ends and their neighbours."""
    n = task.length
    if n <= _GRID:
        return np.arange(n)
    spread = np.linspace(0, n - 1, _GRID).round().astype(np.int64)
    return np.unique(np.concatenate([spread, [1, n // 2, (n - 1) // 2, n - 2]]))


def _sizes(most: int, letters: int) -> list[int]:
    """Numbers of planes that are tried: few, a cross polytope's, a simplex's, all, and steps of a half between."""
    sizes, size = {most}, 1
    while size <= most:
        sizes.add(size)
        size = max(size + 1, size * 3 // 2)
    sizes |= {-(-letters // 4), letters // 2}
    return sorted(size for size in sizes if 1 <= size <= most)


def _character_sets(task: Task) -> Iterator[list[tuple[int, ...]]]:
    """For each number of planes, the multipliers on the slowest planes, in several arrangements."""
    letters = task.letters
    pools = [list(range(1, letters // 2 + 1))]
    if letters % 2 == 0 and letters > 2:
        pools.append(pools[0][::2])
    sizes = _sizes(min(len(task.planes), letters - 1), letters)
    chains = [_thinned(letters, pool, sizes) for pool in pools]
    for size in sizes:
        arranged: dict[tuple[int, ...], None] = {}
        for chain in chains:
            arranged |= dict.fromkeys(_arrangements(letters, chain[size], size))
        yield list(arranged)


def _thinned(letters: int, pool: list[int], sizes: list[int]) -> dict[int, list[int]]:
    """For each size the characters left of a pool, heaviest first, where the lightest are given up again and again."""
    chosen = pool if len(pool) <= _POOL else [pool[place] for place in np.linspace(0, len(pool) - 1, _POOL).astype(int)]
    shifts = np.arange(1, letters // 2 + 1)
    chain = {}
    for size in reversed(sizes):
        while True:
            steps = shifts[:, None] * np.array(chosen) % letters
            weights = solve_game(1 - np.cos(2 * np.pi * steps / letters)).mixture
            order = sorted(range(len(chosen)), key=lambda place: (-round(float(weights[place]), 9), place))
            chosen = [chosen[place] for place in order]
            if len(chosen) <= size:
                break
            chosen = chosen[: len(chosen) - max(1, (len(chosen) - size) // 8)]
        chain[size] = chosen
    return chain


def _arrangements(letters: int, chosen: list[int], size: int) -> list[tuple[int, ...]]:
    """Characters in the order of the planes, with and without every second one mirrored; repeated if there are few."""
    orders = [chosen, sorted(chosen), sorted(chosen, reverse=True)]
    repeated = [[order[place % len(order)] for place in range(size)] for order in orders]
    # A second copy of a character is mirrored, so that what turning adds to the two cancels.
    mirrored = [
        tuple((letters - m) if (place + place // len(chosen)) % 2 else m for place, m in enumerate(order))
        for order in repeated
    ]
    return [tuple(repeated[0]), *mirrored]


def _solved(task: Task, multipliers: tuple[int, ...], window: _Window, rows: list[Row], tolerance: float) -> _Solved:
    """The best weights for characters on the slowest planes, over rows with the distances of a window."""
    planes = task.planes[: len(multipliers)]
    rows = rows or [(task.length - 1, shift, 0, False) for shift in range(1, task.letters)]
    known = set(rows)
    best = Code(planes=planes, multipliers=multipliers)
    for number in range(1, MAX_ROUNDS + 1):
        payoffs = _payoffs(task, rows, planes, np.array(multipliers))
        game = solve_game(payoffs)
        code = Code(planes=planes, multipliers=multipliers, weights=tuple(game.mixture.tolist()), rounds=number)
        margin, worst = _worst_rows(task, code, window)
        if margin > best.margin:
            best = replace(code, margin=margin)
        fresh = [row for row in worst if row not in known]
        if margin >= game.value - tolerance or not fresh:
            best = replace(best, is_converged=True)
            break
        if number < MAX_ROUNDS:
            rows = [*rows, *fresh]
            known.update(fresh)
    near = (payoffs @ game.mixture <= game.value + _NEAR) | (game.distribution > 0)
    kept = np.flatnonzero(near).tolist()
    return _Solved(
        code=replace(best, rounds=number), rows=[rows[place] for place in kept], distribution=game.distribution[kept]
    )


def _payoffs(
    task: Task, rows: list[Row], planes: tuple[int, ...], multipliers: IntArray
) -> Float[FloatArray, "rows planes"]:
    """What each plane with its multiplier is paid in each row, per unit of weight."""
    answer, shift, rival, own = np.array(rows, np.int64).T
    used = list(planes)
    centre = np.where(own[:, None] == 1, 0.0, task.centre_phases_of(planes))
    match = np.cos(task.spectrum.phases(answer)[:, used] - centre)
    codes = 2 * np.pi * (multipliers * shift[:, None] % task.letters) / task.letters
    return np.asarray(match - np.cos(codes + task.spectrum.phases(rival)[:, used] - centre))


class _Window:
    """Distances, with cos and sin of their phases on the planes of a task, kept where there are few of them."""

    def __init__(self, task: Task, distances: Int[IntArray, " distances"]) -> None:
        self.task, self.distances = task, distances
        # As a pass over all distances holds the scores of every letter at once, it goes block by block.
        step = max(1, _BLOCK_ENTRIES // max(task.letters, 4 * len(task.planes)))
        self._parts = [distances[start : start + step] for start in range(0, distances.size, step)]
        self._kept = [self._turned(part) for part in self._parts] if len(self._parts) == 1 else None

    def _turned(self, part: IntArray) -> _Turned:
        uncentred = self.task.spectrum.phases(part)[:, list(self.task.planes)]
        centred = uncentred - self.task.centre_phases
        return part, np.exp(1j * centred), np.exp(1j * uncentred)

    def blocks(self) -> Iterator[_Turned]:
        """Distances, and exp(i phase) centred and uncentred, block by block."""
        return iter(self._kept or map(self._turned, self._parts))


_Turned: TypeAlias = tuple[IntArray, ComplexArray, ComplexArray]


class _Extremes:
    """The two weakest matches and the two strongest rivals of each shift, first the more extreme one."""

    def __init__(self, shifts: int) -> None:
        self._match, self._match_at = np.full((1, 2), -np.inf), np.zeros((1, 2), np.int64)
        self._rival, self._rival_at = np.full((shifts, 2), -np.inf), np.zeros((shifts, 2), np.int64)

    def add(self, scores: Float[FloatArray, "letters block"], distances: Int[IntArray, " block"]) -> None:
        """Take in the scores of all shifts at some distances."""
        self._match, self._match_at = _two_largest(self._match, self._match_at, -scores[:1], distances)
        self._rival, self._rival_at = _two_largest(self._rival, self._rival_at, scores[1:], distances)

    def least(self, shift: int) -> tuple[float, int, int]:
        """The least margin over pairs of an answer and a rival of this shift, and where they stand.

        It has one of the two weakest matches and one of the two strongest rivals (`engine.letter_exact`).
        """
        rivals = list(zip(self._rival[shift - 1].tolist(), self._rival_at[shift - 1].tolist(), strict=True))
        matches = zip((-self._match[0]).tolist(), self._match_at[0].tolist(), strict=True)
        return min((m - r, at, there) for m, at in matches for r, there in rivals if at != there)

    def strongest(self, shift: int) -> tuple[float, int]:
        """The largest score of a shift, and where."""
        return float(self._rival[shift - 1, 0]), int(self._rival_at[shift - 1, 0])


def _two_largest(
    values: FloatArray, places: IntArray, more: Float[FloatArray, "rows block"], distances: IntArray
) -> tuple[Float[FloatArray, "rows 2"], Int[IntArray, "rows 2"]]:
    """The two largest values of each row, and where, of two known ones and more."""
    everything = np.hstack([values, more])
    everywhere = np.hstack([places, np.broadcast_to(distances, more.shape)])
    top = np.argpartition(everything, -2, axis=1)[:, :-3:-1]
    return np.take_along_axis(everything, top, axis=1), np.take_along_axis(everywhere, top, axis=1)


def _worst_rows(task: Task, code: Code, window: _Window) -> tuple[float, list[Row]]:
    """The least margin over a window's distances, and the rows paid least, one for each shift and kind of query."""
    steps = np.array(code.multipliers) * np.arange(task.letters)[:, None] % task.letters
    codes = np.array(code.weights) * np.exp(2j * np.pi * steps / task.letters)
    centred, itself = _Extremes(task.letters - 1), _Extremes(task.letters - 1)
    count = len(code.planes)
    for distances, turned, uncentred in window.blocks():
        centred.add(_scores(codes, turned[:, :count]), distances)
        if task.centre:
            others = distances > 0
            itself.add(_scores(codes, uncentred[others, :count]), distances[others])
    found: list[tuple[float, Row]] = []
    for shift in range(1, task.letters):
        paid, answer, rival = centred.least(shift)
        found.append((paid, (answer, shift, rival, False)))
        if task.centre:
            score, rival = itself.strongest(shift)
            found.append((sum(code.weights) - score, (0, shift, rival, True)))
    found.sort()
    return found[0][0], [row for _, row in found[:_NEW_ROWS]]


def _scores(codes: ComplexArray, turned: ComplexArray) -> Float[FloatArray, "letters block"]:
    return np.asarray(codes.real @ turned.real.T - codes.imag @ turned.imag.T)


def _exchanged(task: Task, solved: _Solved, grid: _Window) -> _Solved:
    """The code after exchanges of one plane's character for another, as long as they pay."""
    best, tried = solved, 0
    every = np.arange(1, task.letters)
    idle = 0
    while tried < _EXCHANGES and idle < _TRIALS:
        carried = np.flatnonzero(best.distribution > 0).tolist()
        rows, mu = [best.rows[place] for place in carried], best.distribution[carried]
        paid = np.stack(
            [mu @ _payoffs(task, rows, (plane,) * every.size, every) for plane in best.code.planes]
        )  # planes x characters
        now = np.array(best.code.multipliers) - 1
        gain = paid - paid[np.arange(len(now)), now][:, None]
        order = np.argsort(-gain, axis=None, kind="stable")[:_TRIALS]
        idle = 0
        for place in order.tolist():
            plane, character = divmod(place, every.size)
            if gain[plane, character] <= _ROUGH:
                return best
            changed = list(best.code.multipliers)
            changed[plane] = character + 1
            other = _solved(task, tuple(changed), grid, best.rows, _ROUGH)
            tried, idle = tried + 1, idle + 1
            if other.code.margin > best.code.margin + _ROUGH:
                best, idle = other, 0
                break
    return best

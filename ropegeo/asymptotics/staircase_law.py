"""The one-plane staircase as a law: its angle known, or found from the margins.

The margin of an index head on one plane is weight * 2 sin(pi ||q_k alpha||)^2, alpha = angle/(2 pi), q_k the largest
convergent denominator of alpha up to the reach. As a function of alpha that is smooth only between neighbouring Farey
fractions, whose distance at reach T is of order 1/T^2; so an angle is searched for from short lengths to long ones, and
at each stage the best few hundred candidates are looked at on a grid that much finer.

Source: docs/MATHEMATICS.md, section 5; proof in derivations, `best_approximation`.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from ropegeo._arrays import FloatArray
from ropegeo.asymptotics.data import DecayData
from ropegeo.asymptotics.laws import Law
from ropegeo.engine.diophantine import one_plane_staircase
from ropegeo.exact import ClosedForm

LONGEST_SEARCHED = 10**7
"""Beyond, the nearest double of an angle no longer fixes the margins."""
FEWEST_SEARCHED = 8
_FIRST_REACH = 24
_FIRST_LENGTHS = 6
_FINENESS = 9
_KEPT = 600
_SMALLEST = 2.0**-60
_CLOSE = 1e-18
_MOST_STEPS = 64
"""Denominators grow at least like Fibonacci numbers: the 35th is above 1e7."""


def known_staircase(data: DecayData, angle: ClosedForm, *, free_weight: bool) -> Law:
    """The staircase of a known angle, exactly, at any length; the weight is fitted unless it is 1.

    Args:
        data: whose lengths and offset say the reach T = max(offset, n - 1 - offset).
        angle: radians per position.
        free_weight: whether a factor is fitted.
    """
    reaches = _reaches(data)
    fixed = (("angle", str(angle)),)
    if min(reaches) < 1:
        return Law(name="staircase", formula=_formula(free_weight), why_not="needs lengths of at least 2", fixed=fixed)
    steps = one_plane_staircase(angle, max(reaches))
    logs: dict[int, float] = {}
    for place in {steps.index_at(reach) for reach in reaches}:
        margin = steps.margin(place)
        middle = (margin.low + margin.high) / 2
        logs[place] = math.log(middle.numerator) - math.log(middle.denominator) if middle > 0 else -math.inf
    exact = np.array([logs[steps.index_at(reach)] for reach in reaches])
    if not np.isfinite(exact).all():
        return Law(
            name="staircase", formula=_formula(free_weight), why_not="the angle ties within these lengths", fixed=fixed
        )
    return _law(data, exact, free_weight=free_weight, fixed=fixed, counted=0)


def fitted_staircase(data: DecayData, *, free_weight: bool) -> Law:
    """The staircase of the angle in (0, pi] whose margins are nearest to the data's; an angle and 2 pi minus it are one.

    It counts one free number for each step that the data reach: each is a partial quotient chosen to fit.
    """
    reaches = _reaches(data)
    formula = _formula(free_weight)
    if len(reaches) < FEWEST_SEARCHED:
        return Law(
            name="staircase", formula=formula, why_not=f"an angle is searched for in {FEWEST_SEARCHED} points or more"
        )
    if reaches[0] < 1 or reaches[-1] > LONGEST_SEARCHED:
        return Law(name="staircase", formula=formula, why_not="an angle is searched for at lengths from 2 to 1e7")
    far = np.array(reaches, dtype=np.float64)
    weights = np.ones(far.size) if data.sd is None else (data.margin / data.sd) ** 2
    turns, misfits = _search(far, data.log_margin, weights, free_weight=free_weight)
    low, high = _interval(turns, misfits, far, data, weights, free_weight=free_weight)
    turn = float(turns[0])
    tau = 2 * math.pi
    return _law(
        data,
        turn_log_margins(np.array([turn]), far)[0],
        free_weight=free_weight,
        found=("angle", turn * tau, low * tau, high * tau),
        counted=steps_within(turn, far),
    )


def turn_log_margins(
    turns: Float[FloatArray, " angles"], reaches: Float[FloatArray, " lengths"]
) -> Float[FloatArray, "angles lengths"]:
    """log of 2 sin(pi ||q_k alpha||)^2 for many turns alpha in (0, 1/2] and reaches, in double precision.

    Accuracy: relative error of the margin below about T^2 2^-52, so that it fits lengths up to 1e7.
    """
    nearest = np.repeat(turns[:, None], reaches.size, axis=1)
    last, rest = np.ones(turns.size), turns.copy()
    before, denominator = np.zeros(turns.size), np.ones(turns.size)
    beyond = 2 * float(reaches.max())
    for _ in range(_MOST_STEPS):
        # Rounding may leave a remainder above the one before it: a quotient is at least 1, so that denominators grow.
        quotient = np.maximum(np.floor(last / np.maximum(rest, _CLOSE)), 1.0)
        before, denominator = denominator, np.minimum(quotient * denominator + before, beyond)
        seen = denominator[:, None] <= reaches
        if not seen.any():
            break
        product = denominator * turns
        last, rest = rest, np.abs(product - np.rint(product))
        nearest = np.where(seen, rest[:, None], nearest)
    return np.asarray(math.log(2) + 2 * np.log(np.sin(np.pi * np.maximum(nearest, _CLOSE))))


def steps_within(turn: float, reaches: Float[FloatArray, " lengths"]) -> int:
    """How many different steps of a staircase the reaches see."""
    return int(np.unique(turn_log_margins(np.array([turn]), reaches)[0]).size)


def _search(
    far: FloatArray, logs: FloatArray, weights: FloatArray, *, free_weight: bool
) -> tuple[FloatArray, FloatArray]:
    """The turns with the least misfit, best first, and their misfits: each the end of a search of its own."""
    turns, spacing = _first_turns(float(far[-1]))
    reach, kept = float(max(_FIRST_REACH, far[min(_FIRST_LENGTHS, far.size) - 1])), _KEPT
    steps = np.arange(-_FINENESS, _FINENESS + 1) / _FINENESS
    while True:
        inside = far <= reach
        children = np.clip(turns[:, None] + spacing[:, None] * steps, _SMALLEST, 0.5)
        misfits = _misfits(children.ravel(), far[inside], logs[inside], weights[inside], free_weight=free_weight)
        misfits = misfits.reshape(children.shape)
        rows, best = np.arange(turns.size), misfits.argmin(axis=1)
        turns, spacing, misfits = children[rows, best], spacing / _FINENESS, misfits[rows, best]
        order = np.argsort(misfits)
        order = order[np.sort(np.unique(turns[order], return_index=True)[1])][:kept]
        turns, spacing, misfits = turns[order], spacing[order], misfits[order]
        if reach >= far[-1] and spacing.max() < _SMALLEST:
            return turns, misfits
        # Neighbouring Farey fractions are 1/T^2 apart: a grid that much finer resolves lengths that much longer.
        reach, kept = min(reach * math.sqrt(_FINENESS), float(far[-1])), max(kept // 2, _KEPT // 8)


def _first_turns(farthest: float) -> tuple[FloatArray, FloatArray]:
    """A grid over (0, 1/2] that is finer near fractions of small denominator, where margins change fastest; spacings."""
    fractions = np.unique([p / q for q in range(1, _FIRST_REACH + 1) for p in range(q // 2 + 1)])
    offsets = np.geomspace(0.1 / farthest**1.5, 0.5 / _FIRST_REACH, 120)
    around = (fractions[:, None, None] + np.array([-1, 1])[:, None] * offsets).ravel()
    turns = np.unique(np.concatenate([around, np.linspace(0, 0.5, 8000)]))
    turns = turns[(turns >= _SMALLEST) & (turns <= 0.5)]
    return turns, np.gradient(turns)


def _misfits(
    turns: FloatArray, far: FloatArray, logs: FloatArray, weights: FloatArray, *, free_weight: bool
) -> FloatArray:
    """Weighted squared error of log margin for each turn, the weight at its best if it is free."""
    found = np.empty(turns.size)
    share = max(1, 2_000_000 // far.size)
    for first in range(0, turns.size, share):
        part = slice(first, first + share)
        off = logs - turn_log_margins(turns[part], far)
        if free_weight:
            off = off - (off @ weights / weights.sum())[:, None]
        found[part] = off**2 @ weights
    return found


def _interval(
    turns: FloatArray, misfits: FloatArray, far: FloatArray, data: DecayData, weights: FloatArray, *, free_weight: bool
) -> tuple[float, float]:
    """From the smallest to the largest turn whose likelihood is within the 95 % point of chi-square, 3.84, of the best.

    The likelihood has many peaks: where distant ones are as high, the data do not say which angle it is, and the
    interval is as wide as that.
    """
    count = far.size
    floor = misfits[0] + float(np.sum(weights * data.relative_error**2)) + count * (float(far[-1]) ** 2 * 2.0**-52) ** 2
    limit = floor * math.exp(3.841458820694124 / count)

    def end(turn: float, sign: int) -> float:
        step = _SMALLEST
        while step < 0.25:
            at = min(max(turn + sign * step, _SMALLEST), 0.5)
            if _misfits(np.array([at]), far, data.log_margin, weights, free_weight=free_weight)[0] > limit:
                return at
            step *= 1.5
        return at

    alike = turns[misfits <= limit]
    return end(float(alike.min()), -1), end(float(alike.max()), 1)


def _law(
    data: DecayData,
    exact: FloatArray,
    *,
    free_weight: bool,
    counted: int,
    fixed: tuple[tuple[str, str], ...] = (),
    found: tuple[str, float, float, float] | None = None,
) -> Law:
    level = math.exp(float(np.clip(np.mean(data.log_margin - exact), -700, 700)))
    return Law(
        name="staircase",
        formula=_formula(free_weight),
        parameters=("weight",) if free_weight else (),
        positive=(True,) if free_weight else (),
        model=(lambda p: math.log(p[0]) + exact) if free_weight else (lambda _: exact),
        starts=((level,),) if free_weight else ((),),
        counted=counted + int(free_weight),
        fixed=fixed,
        found=found,
    )


def _formula(free_weight: bool) -> str:
    return ("weight " if free_weight else "") + "2 sin(q_k angle/2)^2"


def _reaches(data: DecayData) -> list[int]:
    return [max(data.offset, n - 1 - data.offset) for n in data.lengths]

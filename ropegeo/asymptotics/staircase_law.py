"""The one-plane staircase as a law: its angle known, or found from the margins.

The margin of an index head on one plane is weight * 2 sin(pi ||q_k alpha||)^2, alpha = angle/(2 pi), q_k the largest
convergent denominator of alpha up to the reach T. As a function of alpha that is smooth only between neighbouring Farey
fractions, whose distance at reach T is of order 1/T^2; so an angle is not searched for on a grid but by its partial
quotients (`staircase_search.py`), and what the search ends with is improved by changing one quotient at a time, and
what comes before the first step that has points. Whether an angle and 2 pi minus it are told apart is no question: they
have the same margins.

Source: docs/MATHEMATICS.md, section 5; proof in derivations, `best_approximation`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from ropegeo._arrays import FloatArray
from ropegeo.asymptotics.data import DecayData, middle_log
from ropegeo.asymptotics.laws import Law, Model
from ropegeo.asymptotics.staircase_search import (
    NO_LIMIT,
    Paths,
    Points,
    beam,
    few,
    grouped,
    log_margin,
    proper,
    rest_ends,
    whole_paths,
)
from ropegeo.engine.diophantine import one_plane_staircase
from ropegeo.exact import ClosedForm

LONGEST_SEARCHED = 10**7
"""Beyond, the nearest double of an angle no longer fixes the margins."""
FEWEST_SEARCHED, FEWEST_ENDS = 8, 4
"""Points that an angle is searched for in: in general, and where each is known to be the end of its step."""
LIKELIHOOD_DROP = 3.841458820694124
"""95 % point of chi-square with one degree of freedom, for twice the difference of log-likelihoods."""
_NARROW, _WIDE = (32, 2), (160, 6)
"""Paths kept at each stage, and improved at the end: first to learn how near paths come, then to find the others."""
_SLACK, _ROUNDING = 1.1, 1e-6
"""The search judges by polynomials; it may keep paths that are so much too far away."""
_ROUNDS = 6
_RATIO = 1.3
_MOST_FIRST_STEPS, _NEARLY_WHOLE = 20_000, 48
_EXTREMES = 24
_ULPS = 2.0**-50


def known_staircase(data: DecayData, angle: ClosedForm, *, free_weight: bool) -> Law:
    """The staircase of a known angle, exactly, at any length; the weight is fitted unless it is 1.

    Args:
        data: whose lengths say the reach T.
        angle: radians per position.
        free_weight: whether a factor is fitted.

    Returns:
        The law; not for data at lengths where the angle ties, which have margin 0.

    Accuracy: log margins from enclosures that prove 17 digits of the margin.
    """
    fixed = (("angle", str(angle)),)
    if min(data.reaches) < 1:
        return _refused("needs lengths of at least 2", free_weight=free_weight, fixed=fixed)

    def heights(lengths: Sequence[int]) -> FloatArray:
        reaches = data.reaches_at(lengths)
        steps = one_plane_staircase(angle, max(reaches))
        places = [steps.index_at(reach) for reach in reaches]
        logs = {place: middle_log(steps.margin(place)) for place in set(places)}
        return np.array([logs[place] for place in places])

    if not np.isfinite(heights(data.lengths)).all():
        return _refused("the angle ties within these lengths", free_weight=free_weight, fixed=fixed)
    return _law(data, heights, free_weight=free_weight, fixed=fixed, counted=0)


def fitted_staircase(data: DecayData, *, free_weight: bool) -> Law:
    """The staircase of the angle in (0, pi] nearest to the data: least squares of log margin, weights (margin/sd)^2.

    What is known of the angle, `found`, is the hull of the likelihood intervals of all angles seen whose likelihood is
    within the 95 % point of the best. For exact margins that is a few units of the last place, if the steps fix the
    angle. With noise it is often a hull of many angles far apart: staircases depend on the denominators q_k alone, and
    before the first step that has points there is room for many. (Lengths from 10 on with noise of 20 %: up to all of
    (0, pi]. From 2 on, the first step is seen, and the hull is narrow.) On simulated curves the truth was in it nine
    times in ten or more; there is no guarantee, since the search may miss rivals, and since each quotient is fitted.
    Where margins have no noise and no angle explains them to their rounding, nothing is known: all of (0, pi].

    The law costs one free number for each step that the data reach: each is a partial quotient chosen to fit.

    Args:
        data: positive margins at lengths from 2 to 1e7, at least `FEWEST_SEARCHED` of them (or `FEWEST_ENDS`).
        free_weight: whether all margins have an unknown common factor.

    Accuracy: the least squared error that the search finds (no proof that there is none smaller). Log margins of the
        law as those of its angle to 1e-13 for margins of data that are exact.

    Source: docs/MATHEMATICS.md, section 5.
    """
    reaches = data.reaches
    fewest = FEWEST_ENDS if data.ends_known else FEWEST_SEARCHED
    if len(reaches) < fewest:
        return _refused(f"an angle is searched for in {fewest} points or more", free_weight=free_weight)
    if reaches[0] < 1 or reaches[-1] > LONGEST_SEARCHED or not data.positive.all():
        return _refused("an angle is searched for in positive margins of lengths 2 to 1e7", free_weight=free_weight)
    far = np.array(reaches, dtype=np.float64)
    ratio = np.ones(far.size) if data.sd is None else data.margin / data.sd
    weights = np.maximum(ratio / ratio.max(), 1e-15) ** 2
    weights /= weights.mean()
    # Both logarithms are rounded, and what they are logarithms of.
    rounding = float(np.sum(weights * (data.relative_error + (2 + 2 * np.abs(data.log_margin)) * 2.0**-52) ** 2))
    found = None
    for ends_known in (True, False) if data.ends_known else (False,):
        points = grouped(far, data.log_margin, weights, free_weight=free_weight, ends_known=ends_known)
        found = _nearest(points, rounding, is_exact=data.is_exact)
        if found is not None:
            break
    if found is None:
        return _refused("no angle in (0, pi] has steps at such lengths", free_weight=free_weight)
    best, (low, high) = found

    turn = float(best.turns(best.rest)[0])

    def heights(lengths: Sequence[int]) -> FloatArray:
        asked = np.array(data.reaches_at(lengths), dtype=np.float64)
        steps = np.searchsorted(best.starts[0], np.clip(asked, far[0], far[-1]), side="right") - 1
        # Outside the data only the nearest double of the turn is known.
        is_inside = (asked >= far[0]) & (asked <= far[-1])
        elsewhere = turn_log_margins(np.array([turn]), np.maximum(asked, 1.0))[0]
        return np.where(is_inside, log_margin(best.nearness(best.rest)[0][steps]), elsewhere)

    tau = 2 * math.pi
    return _law(
        data,
        heights,
        free_weight=free_weight,
        found=("angle", turn * tau, low * tau, min(high * tau, math.pi)),
        counted=steps_within(turn, far),
    )


def turn_log_margins(
    turns: Float[FloatArray, " angles"], reaches: Float[FloatArray, " lengths"]
) -> Float[FloatArray, "angles lengths"]:
    """log of 2 sin(pi ||q_k alpha||)^2 for turns alpha in (0, 1/2] and reaches, -inf where alpha ties.

    Accuracy: each double is taken as the number it is, and Euclid's algorithm on it is exact; so to a few units of the
    last place. Where it stands for an irrational turn, the margin's relative error from that is below
    q_k q_(k+1) 2^-52.
    """
    found = np.empty((turns.size, reaches.size))
    for row, turn in zip(found, turns.tolist(), strict=True):
        exact = Fraction(turn)
        steps, logs = [1], [_exact_log(exact)]
        before, after, q_before, q = Fraction(1), exact, 0, 1
        while after and q <= reaches.max():
            quotient, rest = divmod(before, after)
            before, after, q_before, q = after, rest, q, int(quotient) * q + q_before
            steps.append(q)
            logs.append(_exact_log(after))
        row[:] = np.array(logs)[np.searchsorted(np.array(steps, dtype=np.float64), reaches, side="right") - 1]
    return found


def _exact_log(delta: Fraction) -> float:
    return math.log(2) + 2 * math.log(math.sin(math.pi * delta)) if delta else -math.inf


def steps_within(turn: float, reaches: Float[FloatArray, " lengths"]) -> int:
    """How many different steps of a staircase the reaches see."""
    return int(np.unique(turn_log_margins(np.array([turn]), reaches)[0]).size)


def _nearest(points: Points, rounding: float, *, is_exact: bool) -> tuple[Paths, tuple[float, float]] | None:
    """The nearest path, and the hull of turns whose likelihood is about as high; None where no path fits at all.

    Args:
        points: data.
        rounding: squared error that comes from rounding alone: no path is nearer than that.
        is_exact: whether there is no noise. Then a path that is not as near as that is not the truth, which can be any.
    """
    drop = math.exp(LIKELIHOOD_DROP / points.total)
    seen: list[Paths] = []
    limit = NO_LIMIT
    for width, most in (_NARROW, _WIDE):
        ends = beam(points, width, limit)
        for path in _apart(ends, most):
            seen.extend(_improved(points, path))
        seen = [paths for paths in (*seen, ends) if paths.cost.size]
        if not any((paths.cost < NO_LIMIT).any() for paths in seen):
            return None
        best = min((paths.at([int(paths.cost.argmin())]) for paths in seen), key=lambda path: float(path.cost[0]))
        within = (float(best.cost[0]) + rounding) * drop
        if best.cost[0] <= 16 * rounding:
            return best, _hull(points, seen, within)
        within += _ROUNDING
        limit = _SLACK * within + _ROUNDING
    return best, (0.0, 0.5) if is_exact else _hull(points, seen, within)


def _apart(paths: Paths, most: int) -> Iterator[Paths]:
    """The nearest paths, one of each tail: others of the same tail are found from it."""
    tails: set[tuple[float, ...]] = set()
    for place in np.argsort(paths.cost, kind="stable"):
        quotients = paths.tail[place][paths.tail[place] > 0]
        tail = tuple(quotients[:-1].tolist())
        if tail not in tails:
            tails.add(tail)
            yield paths.at([int(place)])
        if len(tails) == most:
            return


def _improved(points: Points, path: Paths) -> Iterator[Paths]:
    """All paths that are tried on the way down from one of them, by other beginnings and by other quotients in turn."""
    if points.ends_known:  # then all denominators are
        return
    for _ in range(_ROUNDS):
        before = float(path.cost[0])
        for found in (*_other_beginnings(points, path), _other_quotients(points, path)):
            yield found
            least = int(found.cost.argmin()) if found.cost.size else 0
            if found.cost.size and found.cost[least] < path.cost[0]:
                path = found.at([least])
        if not path.cost[0] < before:
            return


def _other_beginnings(points: Points, path: Paths) -> Iterator[Paths]:
    """Paths with the same tail and other q_s, q_(s+1).

    If heights are to stay they lie on a line, q_(s+1) delta_s + q_s delta_(s+1) = 1. Where the factor is known, those
    whose q_(s+1) is nearly whole are tried among very many q_s: with exact margins they are the only ones.
    """
    delta = path.nearness(path.rest)[0]
    span, slope = 1 / delta[0], delta[1] / delta[0]

    def tried(pair: FloatArray) -> Paths:
        pair = proper(pair)
        return whole_paths(points, pair, np.repeat(path.tail, len(pair), axis=0), np.full(len(pair), path.rest[0]))

    if not points.free_weight:
        every = few(points.reaches[0], _MOST_FIRST_STEPS)
        off = span - every * slope
        whole = np.argsort(np.abs(off - np.rint(off)), kind="stable")[:_NEARLY_WHOLE]
        yield tried(np.column_stack([every, np.rint(off)])[whole])
    first = np.unique(np.append(few(points.reaches[0], 24), path.pair[0, 0]))
    second = np.rint(span - first * slope)
    offsets = np.concatenate([[0.0], *_offsets(max(64.0, 0.3 * float(path.pair[0, 1])))])
    least = math.inf
    for _ in range(_ROUNDS):
        found = tried(np.stack(np.broadcast_arrays(first[:, None], second[:, None] + offsets), axis=-1).reshape(-1, 2))
        yield found
        if not found.cost.min(initial=math.inf) < least:
            return
        least = float(found.cost.min())
        for place, q in enumerate(first):
            mine = np.flatnonzero(found.pair[:, 0] == q)
            if mine.size:
                second[place] = found.pair[mine[found.cost[mine].argmin()], 1]


def _other_quotients(points: Points, path: Paths) -> Paths:
    """The path, and those that differ from it in one quotient of the tail."""
    tails = [path.tail[0]]
    for place in np.flatnonzero(path.tail[0]):
        quotient = float(path.tail[0, place])
        for new in quotient + np.concatenate(_offsets(max(3.0, 0.3 * quotient))):
            if new >= 1:
                tails.append(path.tail[0].copy())
                tails[-1][place] = new
    count = len(tails)
    return whole_paths(points, np.repeat(path.pair, count, axis=0), np.stack(tails), np.full(count, path.rest[0]))


def _offsets(most: float) -> tuple[FloatArray, FloatArray]:
    """Whole numbers up to about `most`, in geometric progression, downwards and upwards."""
    sizes = np.unique(np.rint(_RATIO ** np.arange(1 + math.log(most) / math.log(_RATIO))))
    return -sizes, sizes


def _hull(points: Points, alike: list[Paths], limit: float) -> tuple[float, float]:
    """The smallest and the largest turn of paths whose cost is within the limit, moved by their rests.

    The rest of a path moves its turn by far less than paths differ; so it is moved for the outermost ones only.
    """
    alike = [paths.at(paths.cost <= limit) for paths in alike if paths.cost.min() <= limit]
    turns = [paths.turns(paths.rest) for paths in alike]
    every = np.sort(np.concatenate(turns))
    first, last = every[:_EXTREMES][-1], every[-_EXTREMES:][0]
    low, high = float(every[0]), float(every[-1])
    for paths, mine in zip(alike, turns, strict=True):
        is_outer = (mine <= first) | (mine >= last)
        if is_outer.any():
            outer = paths.at(is_outer)
            ends = [outer.turns(end) for end in _rest_interval(points, outer, limit)]
            low, high = min(low, *(float(end.min()) for end in ends)), max(high, *(float(end.max()) for end in ends))
    return low * (1 - _ULPS), min(high * (1 + _ULPS), 0.5)


def _rest_interval(points: Points, paths: Paths, limit: float) -> tuple[FloatArray, FloatArray]:
    """How far the rests of paths can move down and up before the cost is above the limit: bisection in 1/span."""
    ends = []
    for bound in rest_ends(points, paths):
        inside, outside = 1 / paths.span(paths.rest), 1 / paths.span(bound)
        reached = paths.misfit(bound)[0] <= limit
        inside = np.where(reached, outside, inside)
        for _ in range(60):
            middle = (inside + outside) / 2
            is_in = paths.misfit((1 / middle - paths.last[:, 1]) / paths.last[:, 0])[0] <= limit
            inside, outside = np.where(is_in, middle, inside), np.where(is_in, outside, middle)
        ends.append((1 / outside - paths.last[:, 1]) / paths.last[:, 0])
    return ends[0], ends[1]


def _law(
    data: DecayData,
    heights: Callable[[Sequence[int]], FloatArray],
    *,
    free_weight: bool,
    counted: int,
    fixed: tuple[tuple[str, str], ...] = (),
    found: tuple[str, float, float, float] | None = None,
) -> Law:
    """The law with given log margins of weight 1, as a function of the lengths."""

    def at(lengths: Sequence[int]) -> Model:
        exact = heights(lengths)
        return (lambda p: math.log(p[0]) + exact) if free_weight else (lambda _: exact)

    level = math.exp(float(np.clip(np.mean(data.log_margin - heights(data.lengths)), -700, 700)))
    return Law(
        name="staircase",
        formula=_formula(free_weight),
        parameters=("weight",) if free_weight else (),
        positive=(True,) if free_weight else (),
        at=at,
        starts=((level,),) if free_weight else ((),),
        counted=counted + int(free_weight),
        fixed=fixed,
        found=found,
    )


def _refused(why_not: str, *, free_weight: bool, fixed: tuple[tuple[str, str], ...] = ()) -> Law:
    return Law(name="staircase", formula=_formula(free_weight), why_not=why_not, fixed=fixed)


def _formula(free_weight: bool) -> str:
    return ("weight " if free_weight else "") + "2 sin(q_k angle/2)^2"

r"""Continued fractions whose one-plane staircase is near given margins: a beam search over partial quotients.

Let p_k/q_k be the convergents of alpha in (0, 1/2], a_k its partial quotients, delta_k = |q_k alpha - p_k|. The margin
at reaches q_k <= T < q_(k+1) is 2 sin(pi delta_k)^2. Where the quotients up to a_k are known, all that is left open is
a number t in [0, 1), the *rest*: alpha = (p_k + p_(k-1) t)/(q_k + q_(k-1) t). Then

    delta_k = t/(q_k + q_(k-1) t),   delta_(k-1) = 1/(q_k + q_(k-1) t),   delta_(j-1) = a_(j+1) delta_j + delta_(j+1),

so every delta_j is (m_j + n_j t)/(q_k + q_(k-1) t) with integers m_j, n_j >= 0, continuants of the quotients after j
(Khinchin, *Continued Fractions*, section 2). No difference of near numbers is formed: heights keep all their digits.
Only denominators matter, p does not enter. So a *path* is a pair (q_s, q_(s+1)), of which s is the first step with
points on it, and the *tail* a_(s+2), a_(s+3), ...; what comes before q_s is Euclid's algorithm on the pair.

The squared error of the points on finished steps, at the best t in [0, 1], can only grow when a path gets longer: with
what non-rising heights of any kind would cost the other points (`Points.ahead`) it bounds from below what a path can
end with. Paths are sorted by the group of points at which their step k begins, so that all paths of one stage are
judged by the same points, and the best few hundred of a stage are kept. It is a search, not a proof: that a nearer
angle was dropped on the way cannot be excluded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float

from ropegeo._arrays import BoolArray, FloatArray, IntArray

NO_LIMIT = 1e300
_CLOSE = 1e-18
_MOST_GROUPS = 64
"""Points are joined to so many groups: the work grows with their square."""
_BEYOND, _EXACT = 1e15, 2.0**52
"""No denominator is chosen above the first, and none is taken above the second: whole doubles are exact below."""
_FARTHEST_REST = 1e6
_DEGREE = 6
_RESTS = (1 - np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))) / 2
_COEFFICIENTS = np.linalg.inv(np.vander(2 * _RESTS - 1))
_EMPTY_STEPS = 12
_EUCLID = 80
"""Fibonacci numbers from the 76th on are above 2^52: no chain of quotients is longer."""
_TAKEN = 3
"""So many times more paths are fitted than are kept."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Points:
    """Points in groups, each group on one step of any staircase that is considered.

    Attributes:
        lower: a step that begins with group i has q > lower[i]; the last entry is for steps beyond all points.
        upper: and q <= upper[i].
        weight: of groups i to j - 1 together.
        level: their weighted mean of log margin.
        spread: their weighted squared deviation from it.
        ahead: weighted squared error, over groups from i on, of the nearest heights that nowhere rise.
        reaches: T of each point.
        sums: over the points before each: weights, with log margin less its mean, and with its square; None where
            groups are of equal heights or reaches, so that nothing is lost by them.
        middle: the mean.
        free_weight: whether margins have an unknown common factor.
        ends_known: whether each group is one whole step and the next one begins where it ends.
    """

    lower: Float[FloatArray, " classes"]
    upper: Float[FloatArray, " classes"]
    weight: Float[FloatArray, "classes classes"]
    level: Float[FloatArray, "classes classes"]
    spread: Float[FloatArray, "classes classes"]
    ahead: Float[FloatArray, " classes"]
    reaches: Float[FloatArray, " points"]
    sums: Float[FloatArray, "3 bounds"] | None
    middle: float
    free_weight: bool
    ends_known: bool

    @property
    def total(self) -> int:
        """How many points there are."""
        return self.reaches.size

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return self.ahead.size - 1

    def on(
        self, starts: Float[FloatArray, "paths steps"], upto: int
    ) -> tuple[Float[FloatArray, "paths steps"], Float[FloatArray, "paths steps"], Float[FloatArray, " paths"]]:
        """Weight and mean level of what lies on each step, and squared deviation on all steps of a path together.

        Args:
            starts: q of each step, infinity where there is none.
            upto: only groups before this one count.
        """
        if self.sums is not None and upto == self.groups:
            begin = np.searchsorted(self.reaches, starts)
            held = np.diff(self.sums[:, np.column_stack([begin, np.full((len(starts), 1), self.total)])], axis=2)
            weight, moment, square = held
            level = moment / np.where(weight > 0, weight, 1.0)
            return weight, level + self.middle, np.maximum(square - moment * level, 0.0).sum(axis=1)
        begin = np.searchsorted(self.upper[:-1], starts)
        end = np.minimum(np.column_stack([begin[:, 1:], np.full(len(starts), self.groups)]), upto)
        is_split = (starts <= self.lower[begin]).any(axis=1)  # a step begins among equal heights
        spread = self.spread[begin, end].sum(axis=1)
        return self.weight[begin, end], self.level[begin, end], np.where(is_split, NO_LIMIT, spread)


def grouped(
    reaches: Float[FloatArray, " points"],
    logs: Float[FloatArray, " points"],
    weights: Float[FloatArray, " points"],
    *,
    free_weight: bool,
    ends_known: bool,
) -> Points:
    """Neighbours of the same reach or height joined, and then those nearest in height until there are few enough.

    Args:
        reaches: T, not decreasing.
        logs: log margins.
        weights: of their squared errors.
        free_weight: whether margins have an unknown common factor.
        ends_known: whether each reach is the last one of its step, and no step is left out between them.
    """
    first = np.arange(reaches.size)
    weight, level, spread = weights.copy(), logs.copy(), np.zeros(reaches.size)
    longest = (reaches[-1] / reaches[0]) ** (2 / _MOST_GROUPS)  # no two neighbours within it: so many are left at most
    is_cut = True
    while first.size > 1:
        loss = weight[1:] * weight[:-1] / (weight[1:] + weight[:-1]) * np.diff(level) ** 2
        joined = (np.diff(reaches[first]) == 0) | ((loss == 0) & (not ends_known))
        if not joined.any():
            if first.size <= _MOST_GROUPS or ends_known:
                break
            near = reaches[np.append(first[2:], reaches.size) - 1] <= reaches[first[:-1]] * longest
            if not near.any():
                break
            is_cut = False
            loss = np.where(near, loss, np.inf)
            padded = np.concatenate([[np.inf], loss, [np.inf]])
            joined = (loss <= padded[:-2]) & (loss < padded[2:]) & (loss <= np.median(loss[near]))
            joined[loss.argmin()] = True
        # Of a run of pairs to join every second one, so that no group is in two of them.
        place = np.arange(joined.size)
        ones = np.flatnonzero(joined & ((place - np.maximum.accumulate(np.where(joined, -1, place))) % 2 == 1))
        others = ones + 1
        both = weight[ones] + weight[others]
        spread[ones] += spread[others] + loss[ones]
        level[ones] = (weight[ones] * level[ones] + weight[others] * level[others]) / both
        weight[ones] = both
        first = np.delete(first, others)
        weight, level, spread = (np.delete(values, others) for values in (weight, level, spread))
    begin, last = reaches[first], reaches[np.append(first[1:], reaches.size) - 1]
    lower, upper = np.append(0.0, last), np.append(begin, _BEYOND)
    if not is_cut:  # a step may begin inside a group: it counts with the half it is in
        lower[1:] = upper[:-1] = np.floor((begin + last) / 2)
    if ends_known:
        upper[1:] = lower[1:] + 1
    middle = float(np.average(logs, weights=weights))
    size = first.size
    weight_of, level_of, spread_of = np.zeros((3, size + 1, size + 1))
    for j in range(size):  # adding one group to all sums that end with it: no difference of large numbers
        rows, off = slice(j + 1), level[j] - level_of[: j + 1, j]
        weight_of[rows, j + 1] = weight_of[rows, j] + weight[j]
        share = weight[j] / weight_of[rows, j + 1]
        level_of[rows, j + 1] = level_of[rows, j] + off * share
        spread_of[rows, j + 1] = spread_of[rows, j] + spread[j] + off**2 * share * weight_of[rows, j]
    if ends_known:
        spread_of[np.triu_indices(size + 1, 2)] = np.inf
    return Points(
        lower=lower,
        upper=upper,
        weight=weight_of,
        level=level_of,
        spread=spread_of,
        ahead=_falling(weight, level, spread),
        reaches=reaches,
        sums=None if is_cut else _sums(weights, logs - middle),
        middle=middle,
        free_weight=free_weight,
        ends_known=ends_known,
    )


def _sums(weights: Float[FloatArray, " points"], logs: Float[FloatArray, " points"]) -> Float[FloatArray, "3 bounds"]:
    terms = np.stack([weights, weights * logs, weights * logs**2])
    return np.asarray(np.cumsum(np.column_stack([np.zeros(3), terms]), axis=1))


def _falling(
    weight: Float[FloatArray, " groups"], level: Float[FloatArray, " groups"], spread: Float[FloatArray, " groups"]
) -> Float[FloatArray, " classes"]:
    """Squared error of the nearest heights that nowhere rise, over the groups from each on (adjacent ones pooled)."""
    found = np.zeros(level.size + 1)
    blocks: list[tuple[float, float, float]] = []
    for j in range(level.size - 1, -1, -1):
        w, y, error = float(weight[j]), float(level[j]), float(spread[j])
        while blocks and blocks[-1][1] > y:
            other, height, more = blocks.pop()
            error += more + w * other / (w + other) * (y - height) ** 2
            y = (w * y + other * height) / (w + other)
            w += other
        blocks.append((w, y, error))
        found[j] = sum(block[2] for block in blocks)
    return found


Rows = TypeVar("Rows", bound="Steps")


@dataclass(frozen=True, eq=False, kw_only=True)
class Steps:
    """Where the steps of some paths lie and what points they hold; heights as functions of the rest.

    Attributes:
        pair: q_s and q_(s+1).
        tail: a_(s+2), ... , a_k, then zeros.
        starts: q_s, ... , q_k, then infinity.
        last: q_(k-1) and q_k.
        fixed: m_j of each step from s on.
        moving: n_j.
        weight: of the points on each step.
        level: their mean log margin.
        within: squared deviation of points from the mean of their step, all steps together.
        free_weight: whether margins have an unknown common factor.
    """

    pair: Float[FloatArray, "paths 2"]
    tail: Float[FloatArray, "paths quotients"]
    starts: Float[FloatArray, "paths steps"]
    last: Float[FloatArray, "paths 2"]
    fixed: Float[FloatArray, "paths steps"]
    moving: Float[FloatArray, "paths steps"]
    weight: Float[FloatArray, "paths steps"]
    level: Float[FloatArray, "paths steps"]
    within: Float[FloatArray, " paths"]
    free_weight: bool

    def at(self: Rows, rows: IntArray | BoolArray | list[int]) -> Rows:
        """Some of the paths."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "free_weight"}
        return replace(self, **{name: values[rows] for name, values in arrays.items()})

    def span(self, rest: Float[FloatArray, " paths"]) -> Float[FloatArray, " paths"]:
        """q_k + q_(k-1) t."""
        return np.asarray(self.last[:, 1] + self.last[:, 0] * rest)

    def nearness(self, rest: Float[FloatArray, " paths"]) -> Float[FloatArray, "paths steps"]:
        """delta of each step."""
        return np.asarray((self.fixed + self.moving * rest[:, None]) / self.span(rest)[:, None])

    def turns(self, rest: Float[FloatArray, " paths"]) -> Float[FloatArray, " paths"]:
        """alpha = (p_k + p_(k-1) t)/(q_k + q_(k-1) t), to a few units of the last place.

        p_(s+1)/p_s is the last convergent but one of q_(s+1)/q_s; the tail then goes on from there.
        """
        low, high = self.pair.T
        top, top_before, bottom, bottom_before = (np.full(high.size, unit) for unit in (1.0, 0.0, 0.0, 1.0))
        for _ in range(_EUCLID):
            goes = low > 0
            if not goes.any():
                break
            quotient = np.floor(high / np.where(goes, low, 1))
            high, low = np.where(goes, low, high), np.where(goes, high - quotient * low, low)
            further, below = quotient * top + top_before, quotient * bottom + bottom_before
            top, top_before = np.where(goes, further, top), np.where(goes, top, top_before)
            bottom, bottom_before = np.where(goes, below, bottom), np.where(goes, bottom, bottom_before)
        last, before = top_before, bottom_before
        for quotient in self.tail.T:
            goes = quotient > 0
            last, before = np.where(goes, quotient * last + before, last), np.where(goes, last, before)
        return np.asarray((last + before * rest) / self.span(rest))

    def misfit(
        self, rest: Float[FloatArray, " paths"]
    ) -> tuple[Float[FloatArray, " paths"], Float[FloatArray, " paths"]]:
        """Weighted squared error of log margin, and the logarithm of the factor at its best (0 if it is known)."""
        span = self.last[:, 1] + self.last[:, 0] * rest
        off = self.level - log_margin(
            np.where(self.weight > 0, (self.fixed + self.moving * rest[:, None]) / span[:, None], 0.5)
        )
        common = np.zeros(rest.size)
        if self.free_weight:
            common = (self.weight * off).sum(axis=1) / self.weight.sum(axis=1)
            off = off - common[:, None]
        return self.within + (self.weight * off**2).sum(axis=1), common

    def nearest(
        self, rest: FloatArray, low: FloatArray | float, high: FloatArray | float, most: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The rest in [low, high] with the least misfit near a first one; the misfit and the factor there.

        Gauss-Newton steps, shortened where they do not help.
        """
        cost, common = self.misfit(rest)
        part = np.ones(rest.size)
        for _ in range(most):
            delta = np.where(self.weight > 0, self.nearness(rest), 0.5)
            rate = (self.moving * self.last[:, 1:] - self.fixed * self.last[:, :1]) / (self.span(rest) ** 2)[:, None]
            slope = 2 * np.pi * rate / np.tan(np.pi * delta)
            off = self.level - log_margin(delta) - common[:, None]
            if self.free_weight:
                slope = slope - ((self.weight * slope).sum(axis=1) / self.weight.sum(axis=1))[:, None]
            square = (self.weight * slope**2).sum(axis=1)
            step = part * (self.weight * slope * off).sum(axis=1) / np.where(square > 0, square, np.inf)
            tried = np.clip(rest + step, low, high)
            new_cost, new_common = self.misfit(tried)
            better = new_cost < cost
            rest, cost, common = (
                np.where(better, new, old) for new, old in ((tried, rest), (new_cost, cost), (new_common, common))
            )
            part = np.where(better, 1.0, part / 4)
            if not (part > 1 / 16).any():
                break
        return rest, cost, common


@dataclass(frozen=True, eq=False, kw_only=True)
class Paths(Steps):
    """Paths at their best rest.

    Attributes:
        rest: t.
        cost: weighted squared error of log margin.
        common: logarithm of the common factor.
        costs: of paths that go on: polynomial in 2 t - 1 for the cost on [0, 1], to about 1e-6 of it.
        commons: the same for the factor.
    """

    rest: Float[FloatArray, " paths"]
    cost: Float[FloatArray, " paths"]
    common: Float[FloatArray, " paths"]
    costs: Float[FloatArray, "paths terms"]
    commons: Float[FloatArray, "paths terms"]


def log_margin(delta: Float[FloatArray, "*shape"]) -> Float[FloatArray, "*shape"]:
    """log of 2 sin(pi delta)^2 for delta up to 1/2; below 1e-18 as there."""
    return np.asarray(math.log(2) + 2 * np.log(np.sin(np.pi * np.maximum(delta, _CLOSE))))


def _laid(
    points: Points, pair: Float[FloatArray, "paths 2"], tail: Float[FloatArray, "paths quotients"], upto: int
) -> Steps:
    """The steps of paths, with the points of groups before `upto` on them."""
    paths = len(pair)
    sizes = np.count_nonzero(tail, axis=1)
    size = int(sizes.max(initial=0))
    tail = tail[:, :size]
    starts = np.full((paths, size + 2), np.inf)
    starts[:, :2] = pair
    for column in range(size):
        ahead = np.where(tail[:, column] > 0, starts[:, column + 1], np.inf)
        starts[:, column + 2] = np.maximum(tail[:, column], 1) * ahead + starts[:, column]
    fixed, moving = np.zeros((2, paths, size + 4))
    for column in range(size + 1, -1, -1):
        quotient = tail[:, column] if column < size else 0.0
        for values, unit in ((fixed, sizes), (moving, sizes + 1)):
            further = quotient * values[:, column + 1] + values[:, column + 2]
            values[:, column] = np.where(column == unit, 1.0, further)
    weight, level, within = points.on(starts, upto)
    rows = np.arange(paths)
    return Steps(
        pair=pair,
        tail=tail,
        starts=starts,
        last=np.column_stack([starts[rows, sizes], starts[rows, sizes + 1]]),
        fixed=fixed[:, :-2],
        moving=moving[:, :-2],
        weight=weight,
        level=level,
        within=np.where(starts[rows, sizes + 1] > _EXACT, NO_LIMIT, within),
        free_weight=points.free_weight,
    )


def _at_rest(
    steps: Steps, found: tuple[FloatArray, FloatArray, FloatArray], costs: FloatArray, commons: FloatArray
) -> Paths:
    laid = {field.name: getattr(steps, field.name) for field in fields(Steps)}
    return Paths(**laid, rest=found[0], cost=found[1], common=found[2], costs=costs, commons=commons)


def whole_paths(
    points: Points,
    pair: Float[FloatArray, "paths 2"],
    tail: Float[FloatArray, "paths quotients"],
    rest: Float[FloatArray, " paths"],
) -> Paths:
    """Paths at the rest that is best for all points, near a first one.

    The rest may be above 1 or below 0 as far as the last step holds the same points: that is another last quotient.
    """
    steps = _laid(points, pair, tail, points.groups)
    low, high = rest_ends(points, steps)
    none = np.zeros((len(pair), 0))
    return _at_rest(steps, steps.nearest(np.clip(rest, low, high), low, high, 12), none, none)


def rest_ends(points: Points, steps: Steps) -> tuple[Float[FloatArray, " paths"], Float[FloatArray, " paths"]]:
    """The smallest and the largest rest of whole paths."""
    if points.ends_known:
        return np.zeros(len(steps.pair)), np.ones(len(steps.pair))
    low = (points.reaches[-1] + 1 - steps.last[:, 1]) / steps.last[:, 0]
    return low, np.maximum(low, 0) + _FARTHEST_REST


def _open_paths(
    points: Points, pair: Float[FloatArray, "paths 2"], tail: Float[FloatArray, "paths quotients"], upto: int
) -> Paths:
    """Paths whose last step begins with group `upto`, at the rest in [0, 1] that is best for the groups before."""
    steps = _laid(points, pair, tail, upto)
    tried = [steps.misfit(np.full(len(pair), rest)) for rest in _RESTS]
    costs, commons = np.stack([cost for cost, _ in tried], axis=1), np.stack([common for _, common in tried], axis=1)
    found = steps.nearest(_RESTS[costs.argmin(axis=1)], 0.0, 1.0, 6)
    return _at_rest(steps, found, costs @ _COEFFICIENTS.T, commons @ _COEFFICIENTS.T)


def _polynomial(
    coefficients: Float[FloatArray, "terms m"], rest: Float[FloatArray, "*more m"]
) -> Float[FloatArray, "*more m"]:
    """Values at the rests (last axis) of polynomials (terms first) in 2 t - 1."""
    at, value = 2 * rest - 1, np.broadcast_to(coefficients[0], rest.shape)
    for term in coefficients[1:]:
        value = value * at + term
    return value


class _Children(NamedTuple):
    rows: IntArray
    groups: IntArray
    quotients: FloatArray
    costs: FloatArray


class _Waiting(NamedTuple):
    """Children of the paths kept at stage `source`, not yet fitted."""

    source: int
    rows: IntArray
    quotients: FloatArray
    costs: FloatArray
    cells: FloatArray


def _children(points: Points, paths: Paths, group: int, limit: float, *, is_empty: bool) -> _Children:
    """Paths one quotient longer that may end within the limit: for each group that the next step may begin with, some.

    The points of the step under way ask for a rest by their mean, and those before for one of their own; tried are the
    quotients between, and some about them as far as noise may have moved the mean.

    Args:
        points: all of them.
        paths: whose last step begins with `group`.
        group: from there on points are free.
        limit: of the squared error.
        is_empty: whether the step under way is to hold no point, so that the next one begins with the same group.
    """
    classes = np.array([group]) if is_empty else np.arange(group + 1, points.groups + 1)
    before, q = paths.last[:, :1], paths.last[:, 1:]
    lowest = np.maximum(np.floor((points.lower[classes] - before) / q) + 1, 1.0)
    highest = np.floor((points.upper[classes] - before) / q)
    settled = points.spread[group, classes] + points.ahead[classes]
    rows, columns = np.nonzero((lowest <= highest) & (paths.cost[:, None] + settled <= limit))
    lowest, highest, classes = lowest[rows, columns], highest[rows, columns], classes[columns]
    before, q = before[rows, 0], q[rows, 0]
    weight, level = points.weight[group, classes], points.level[group, classes]
    past = paths.weight.sum(axis=1)[rows]
    share = weight * past / (weight + past) if points.free_weight else weight
    costs, commons = paths.costs[rows].T, paths.commons[rows].T

    def factor(rest: FloatArray) -> FloatArray:
        return _polynomial(commons, rest) if points.free_weight else np.zeros_like(rest)

    def cost(rest: FloatArray) -> FloatArray:
        known = np.maximum(_polynomial(costs, rest), paths.cost[rows])
        if is_empty:
            return np.asarray(known)
        return np.asarray(known + share * (level - log_margin(rest / (q + before * rest)) - factor(rest)) ** 2)

    prior = np.clip(paths.rest[rows], 1 / (highest + 1), 1 / lowest)
    own = prior
    for _ in range(0 if is_empty else 2):
        delta = np.arcsin(np.sqrt(np.minimum(np.exp(level - factor(own)) / 2, 1.0))) / np.pi
        own = np.clip(q * delta / np.maximum(1 - before * delta, 1e-12), 1 / (highest + 1), 1 / lowest)
    between = np.stack([own ** (1 - part) * prior**part for part in (0.0, 0.25, 0.5, 0.75, 1.0)])
    best = between[cost(between).argmin(axis=0), np.arange(rows.size)]
    middle = np.floor(1 / best)
    tried = [middle - 1, middle, middle + 1, np.floor(1 / own), np.floor(1 / prior), lowest]
    if is_empty:
        tried += [lowest + 1, lowest + 2]
    else:
        # Half the relative error of the mean, as delta goes with the root of the margin.
        error = np.minimum(np.sqrt(points.ahead[0] / points.total / weight) / 2, 1.0)
        tried += [np.rint(np.exp(sign * error) / best) for sign in (-2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2)]
        tried.append(np.minimum(highest, 64 * lowest))
    quotients = np.sort(np.clip(np.stack(tried), lowest, highest), axis=0)
    found = cost(np.clip(best, 1 / (quotients + 1), 1 / quotients)) + points.spread[group, classes]
    is_new = np.concatenate([np.ones((1, rows.size), dtype=bool), np.diff(quotients, axis=0) > 0])
    which, place = np.nonzero(is_new & (found + points.ahead[classes] <= limit))
    return _Children(rows[place], classes[place], quotients[which, place], found[which, place])


def few(last: float, most: int) -> Float[FloatArray, " values"]:
    """The whole numbers from 1 to `last`, or so many of them, both near 1 and all over."""
    if last <= most:
        return np.arange(1.0, last + 1)
    return np.unique(np.rint(np.append(np.geomspace(1, last, most // 2), np.linspace(1, last, most // 2))))


def proper(pair: Float[FloatArray, "pairs 2"]) -> Float[FloatArray, "others 2"]:
    """The pairs that are q_s and q_(s+1) of some alpha in (0, 1/2), each once."""
    pair = pair[(pair[:, 0] >= 1) & (pair[:, 1] > pair[:, 0])]
    pair = pair[np.gcd(*pair.T.astype(np.int64)) == 1]
    once = np.unique(pair[:, 0] + 1j * pair[:, 1])  # much faster than sorting rows
    return np.column_stack([once.real, once.imag])


def _beginnings(points: Points, end: int) -> tuple[FloatArray, FloatArray]:
    """Pairs q_s, q_(s+1) whose step s holds the groups before `end`, and their squared errors.

    Where the factor is known and the first reach is small, these are all pairs that suit the mean of those groups.
    """
    low, high = points.lower[end] + 1, min(points.upper[end], 64 * points.lower[end] + 64)
    level = points.level[0, end]
    if points.free_weight:
        small = few(points.reaches[0], 12)
        large = np.unique(np.rint(np.geomspace(low, high, 16)))[None, :]
    else:
        small = few(points.reaches[0], 120)
        span = np.pi / np.arcsin(np.sqrt(min(math.exp(level) / 2, 1.0)))
        large = np.clip(np.rint(span - small[:, None] * np.linspace(0, 1, 41)), low, points.upper[end])
    pair = np.stack(np.broadcast_arrays(small[:, None], large), axis=-1).reshape(-1, 2)
    if points.ends_known and end < points.groups:  # q_(s+2) is known too, and q_s is its remainder
        pair = np.append(pair, [[points.upper[end + 1] % points.upper[end], points.upper[end]]], axis=0)
    pair = proper(pair)
    loss = np.zeros(len(pair))
    if not points.free_weight:
        delta = np.clip(1 / span, 1 / pair.sum(axis=1), 1 / pair[:, 1])
        loss = points.weight[0, end] * (level - log_margin(delta)) ** 2
    return pair, points.spread[0, end] + loss


def _cells(q: FloatArray, before: FloatArray, common: FloatArray | float) -> FloatArray:
    """A number for paths that go on alike: about the same q_k, q_(k-1)/q_k and factor."""
    return np.asarray(
        np.floor(np.log(q) * 60) * 4096 + np.floor(before / q * 4) * 512 + np.clip(np.floor(common * 8) + 256, 0, 511)
    )


def _selected(cost: FloatArray, cell: FloatArray, most: int) -> IntArray:
    """Places to keep: half of them the least costs, half the least of every cell in turn."""
    order = np.argsort(cost, kind="stable")
    if order.size <= most:
        return order
    by_cell = np.argsort(cell[order], kind="stable")
    is_first = np.append(True, np.diff(cell[order][by_cell]) > 0)
    rank = np.empty(order.size)
    rank[by_cell] = np.arange(order.size) - np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    rank[: most // 2] = -1
    return order[np.argsort(rank, kind="stable")[:most]]


def beam(points: Points, width: int, limit: float) -> Paths:
    """Whole paths that the search ends with: the nearest and others.

    Args:
        points: what they are to be near to.
        width: how many paths are kept at each stage.
        limit: squared error above which a path is of no interest.
    """
    return _Beam(points, width, limit).ends()


class _Beam:
    """Paths by the group with which their last step begins."""

    def __init__(self, points: Points, width: int, limit: float) -> None:
        self._points, self._width, self._limit = points, width, limit
        self._open: dict[int, Paths] = {}
        self._waiting: dict[int, list[_Waiting]] = {end: [] for end in range(1, points.groups + 1)}

    def ends(self) -> Paths:
        """Stage by stage; the last one is that of steps beyond all points."""
        points = self._points
        for group in range(1, points.groups):
            found = self._kept(_open_paths(points, *self._candidates(group), group), group)
            grown = found
            for _ in range(_EMPTY_STEPS):
                children = _children(points, grown, group, self._limit, is_empty=True)
                if not children.costs.size:
                    break
                chosen = _selected(children.costs, np.zeros(children.costs.size), 2 * self._width)
                pair, tail = _longer(grown, children.rows[chosen], children.quotients[chosen])
                grown = self._kept(_open_paths(points, pair, tail, group), group)
                size = max(found.tail.shape[1], grown.tail.shape[1])
                tails = np.concatenate([_wide(found.tail, size), _wide(grown.tail, size)])
                found = _open_paths(points, np.concatenate([found.pair, grown.pair]), tails, group)
            self._open[group] = found = self._kept(found, group)
            children = _children(points, found, group, self._limit, is_empty=False)
            before, q = found.last[children.rows].T
            cells = _cells(children.quotients * q + before, q, found.common[children.rows])
            for further in np.unique(children.groups):
                mine = np.flatnonzero(children.groups == further)
                mine = mine[_selected(children.costs[mine], cells[mine], _TAKEN * self._width)]
                part = _Waiting(group, children.rows[mine], children.quotients[mine], children.costs[mine], cells[mine])
                self._waiting[int(further)].append(part)
        pair, tail = self._candidates(points.groups)
        return whole_paths(points, pair, tail, np.full(len(pair), 0.5))

    def _kept(self, paths: Paths, group: int) -> Paths:
        good = np.flatnonzero(paths.cost + self._points.ahead[group] <= self._limit)
        cell = _cells(paths.last[good, 1], paths.last[good, 0], paths.common[good])
        return paths.at(good[_selected(paths.cost[good], cell, self._width)])

    def _candidates(self, group: int) -> tuple[FloatArray, FloatArray]:
        """Pairs and tails to be fitted at a stage: paths that begin here, and children of earlier ones."""
        pairs, costs = _beginnings(self._points, group)
        waiting = self._waiting.pop(group)
        costs = np.concatenate([costs, *(part.costs for part in waiting)])
        cells = np.concatenate([_cells(pairs[:, 1], pairs[:, 0], 0.0), *(part.cells for part in waiting)])
        is_taken = np.zeros(costs.size, dtype=bool)
        is_taken[_selected(costs, cells, _TAKEN * self._width)] = True
        is_taken &= costs + self._points.ahead[group] <= self._limit
        taken = np.split(is_taken, np.cumsum([len(pairs), *(part.costs.size for part in waiting)])[:-1])
        found = [(pairs[taken[0]], np.zeros((int(taken[0].sum()), 0)))]
        for part, mine in zip(waiting, taken[1:], strict=True):
            found.append(_longer(self._open[part.source], part.rows[mine], part.quotients[mine]))
        size = max(tail.shape[1] for _, tail in found)
        return np.concatenate([pair for pair, _ in found]), np.concatenate([_wide(tail, size) for _, tail in found])


def _longer(paths: Paths, rows: IntArray, quotients: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Pairs and tails of some paths with one more quotient."""
    tail = _wide(paths.tail[rows], paths.tail.shape[1] + 1)
    tail[np.arange(rows.size), np.count_nonzero(tail, axis=1)] = quotients
    return paths.pair[rows], tail


def _wide(tail: FloatArray, size: int) -> FloatArray:
    return np.concatenate([tail, np.zeros((len(tail), size - tail.shape[1]))], axis=1)

"""Which turn alpha has the one-plane staircase that is nearest to given margins: a search over continued fractions."""
from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from ropegeo._arrays import BoolArray, FloatArray

MOST_GROUPS = 240
BEYOND = 1e15
CHI = 3.841458820694124
_FIRST_WIDTH, _WIDTH = 32, 160
_RESTS = (1 - np.cos(np.pi * (np.arange(7) + 0.5) / 7)) / 2
_POLY = np.linalg.inv(np.vander(2 * _RESTS - 1, 7))
_STEPS = 6
_SLACK = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class Points:
    lower: FloatArray
    upper: FloatArray
    weight: FloatArray
    level: FloatArray
    spread: FloatArray
    rest: FloatArray
    farthest: float
    free: bool
    strict_ends: bool
    size: int

    @property
    def count(self):
        return self.rest.size - 1


def gather(far, logs, weights, *, free, ends):
    cuts = np.arange(far.size)  # first point of each group
    w, y, r = weights.copy(), logs.copy(), np.zeros(far.size)
    tiled = False
    while y.size > 1:
        loss = w[1:] * w[:-1] / (w[1:] + w[:-1]) * np.diff(y) ** 2
        must = (loss == 0) | (np.diff(far[cuts]) == 0)
        if ends:
            must = np.diff(far[cuts]) == 0
        if not must.any():
            if y.size <= MOST_GROUPS or ends:
                break
            tiled = True
            padded = np.concatenate([[np.inf], loss, [np.inf]])
            must = (loss <= padded[:-2]) & (loss < padded[2:]) & (loss <= np.median(loss))
            if not must.any():
                must[loss.argmin()] = True
        # of a row of pairs to be merged every second one, so that no group is in two of them
        place = np.arange(must.size)
        run = place - np.maximum.accumulate(np.where(must, -1, place))
        chosen = np.flatnonzero(must & (run % 2 == 1))
        both = w[chosen] + w[chosen + 1]
        r[chosen] += r[chosen + 1] + loss[chosen]
        y[chosen] = (w[chosen] * y[chosen] + w[chosen + 1] * y[chosen + 1]) / both
        w[chosen] = both
        w, y, r, cuts = (np.delete(a, chosen + 1) for a in (w, y, r, cuts))
    begin = far[cuts]
    last = far[np.append(cuts[1:], far.size) - 1]
    if tiled:
        middle = np.floor((begin + last) / 2)
        lower, upper = np.append(0, middle), np.append(middle, BEYOND)
        lower[-1] = last[-1]
        upper[0] = begin[0]
    else:
        lower, upper = np.append(0, last), np.append(begin, BEYOND)
    if ends:
        upper[1:] = lower[1:] + 1
    size = y.size
    weight, level, spread = np.zeros((3, size + 1, size + 1))
    for j in range(size):
        total = weight[: j + 1, j] + w[j]
        off = y[j] - level[: j + 1, j]
        weight[: j + 1, j + 1] = total
        level[: j + 1, j + 1] = level[: j + 1, j] + off * w[j] / total
        spread[: j + 1, j + 1] = spread[: j + 1, j] + r[j] + off**2 * w[j] * weight[: j + 1, j] / total
    if ends:
        spread[np.triu_indices(size + 1, 2)] = np.inf
    return Points(lower=lower, upper=upper, weight=weight, level=level, spread=spread, rest=falling(w, y, r),
                  farthest=float(far[-1]), free=free, strict_ends=ends, size=far.size)


def falling(w, y, r):
    """Least squared error of margins that nowhere rise, over groups j.. for each j: no staircase is nearer."""
    found = np.zeros(y.size + 1)
    blocks: list[tuple[float, float, float]] = []
    for j in range(y.size - 1, -1, -1):
        a, b, c = w[j], y[j], r[j]
        while blocks and blocks[-1][1] > b:
            d, e, f = blocks.pop()
            b, c, a = (a * b + d * e) / (a + d), c + f + a * d / (a + d) * (b - e) ** 2, a + d
        blocks.append((a, b, c))
        found[j] = sum(block[2] for block in blocks)
    return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Paths:
    """pair: q_s, q_(s+1); tail: quotients a_(s+2).., 0 where there is none; q: q_(k-1), q_k."""
    pair: FloatArray
    tail: FloatArray
    q: FloatArray
    m: FloatArray
    n: FloatArray
    starts: FloatArray
    weight: FloatArray
    level: FloatArray
    within: FloatArray
    free: bool
    t: FloatArray = None
    common: FloatArray = None
    cost: FloatArray = None
    costs: FloatArray = None
    commons: FloatArray = None

    def at(self, rows):
        return replace(self, **{k: v[rows] for k, v in vars(self).items() if isinstance(v, np.ndarray)})


def lay(points, pair, tail, upto=None):
    """Where the steps of paths lie, and what the points on them are."""
    count, size = pair.shape[0], int(np.count_nonzero(tail, axis=1).max(initial=0))
    tail = tail[:, :size]
    sizes = np.count_nonzero(tail, axis=1)
    starts = np.full((count, size + 2), np.inf)
    starts[:, :2] = pair
    for c in range(size):
        ahead = np.where(tail[:, c] > 0, starts[:, c + 1], np.inf)
        starts[:, c + 2] = np.maximum(tail[:, c], 1) * ahead + starts[:, c]
    m, n = np.zeros((2, count, size + 4))
    for c in range(size + 1, -1, -1):
        a = tail[:, c] if c < size else np.zeros(count)
        m[:, c] = np.where(c == sizes, 1, a * m[:, c + 1] + m[:, c + 2])
        n[:, c] = np.where(c == sizes + 1, 1, a * n[:, c + 1] + n[:, c + 2])
    rows = np.arange(count)
    q = np.stack([starts[rows, sizes], starts[rows, sizes + 1]], axis=1)
    where = np.searchsorted(points.upper[:-1], starts)
    end = points.count if upto is None else upto
    ends = np.minimum(np.concatenate([where[:, 1:], np.full((count, 1), end)], axis=1), end)
    return Paths(
        pair=pair,
        tail=tail,
        q=q,
        m=m[:, :-2],
        n=n[:, :-2],
        starts=starts,
        weight=points.weight[where, ends],
        level=points.level[where, ends],
        within=points.spread[where, ends].sum(axis=1),
        free=points.free,
    )


def heights(delta):
    return math.log(2) + 2 * np.log(np.sin(np.pi * delta))


def misfit(paths, t):
    """Squared error and common factor at rests t (paths,)."""
    span = paths.q[:, 1] + paths.q[:, 0] * t
    delta = (paths.m + paths.n * t[:, None]) / span[:, None]
    off = paths.level - heights(np.where(paths.weight > 0, delta, 0.5))
    common = np.zeros(t.size)
    if paths.free:
        common = (paths.weight * off).sum(axis=1) / paths.weight.sum(axis=1)
        off = off - common[:, None]
    return paths.within + (paths.weight * off**2).sum(axis=1), common


def descend(paths, t, low, high, steps=_STEPS):
    """Gauss-Newton for the rest."""
    cost, common = misfit(paths, t)
    shrink = np.ones(t.size)
    for _ in range(steps):
        span = paths.q[:, 1] + paths.q[:, 0] * t
        delta = np.where(paths.weight > 0, (paths.m + paths.n * t[:, None]) / span[:, None], 0.25)
        rate = (paths.n * paths.q[:, 1:] - paths.m * paths.q[:, :1]) / (span**2)[:, None]
        slope = 2 * np.pi * rate / np.tan(np.pi * delta)
        off = paths.level - heights(delta) - common[:, None]
        if paths.free:
            slope = slope - ((paths.weight * slope).sum(axis=1) / paths.weight.sum(axis=1))[:, None]
        square = (paths.weight * slope**2).sum(axis=1)
        move = (paths.weight * slope * off).sum(axis=1) / np.where(square > 0, square, np.inf)
        new = np.clip(t + shrink * move, low, high)
        new_cost, new_common = misfit(paths, new)
        better = new_cost < cost
        t, cost, common = (np.where(better, a, b) for a, b in ((new, t), (new_cost, cost), (new_common, common)))
        shrink = np.where(better, 1.0, shrink / 4)
        if not better.any():
            break
    return t, cost, common


def fitted(points, pair, tail, upto):
    """Open paths at their best rest in [0, 1]."""
    paths = lay(points, pair, tail, upto)
    grid = [misfit(paths, np.full(len(pair), rest)) for rest in _RESTS]
    costs, commons = (np.stack([g[k] for g in grid], axis=1) for k in range(2))
    t, cost, common = descend(paths, _RESTS[costs.argmin(axis=1)], 0.0, 1.0)
    return replace(paths, t=t, cost=cost, common=common, costs=costs @ _POLY.T, commons=commons @ _POLY.T)


def finished(points, pair, tail, t):
    paths = lay(points, pair, tail)
    low = (points.farthest + 1 - paths.q[:, 1]) / paths.q[:, 0]
    if points.strict_ends:
        low = np.zeros(t.size)
    high = np.full(t.size, 1.0 if points.strict_ends else 1e6)
    t = np.maximum(t, low)
    t, cost, common = descend(paths, t, low, high, 12)
    return replace(paths, t=t, cost=cost, common=common)


def poly(table, rows, t):
    s, value = 2 * t - 1, 0.0
    for k in range(table.shape[1]):
        value = value * s + table[rows, k]
    return value


def children(points, paths, i, limit, empty=False):
    """rows, groups, quotients, costs"""
    js = np.array([i]) if empty else np.arange(i + 1, points.count + 1)
    before, q = paths.q[:, :1], paths.q[:, 1:]
    lowest = np.maximum(np.floor((points.lower[js] - before) / q) + 1, 1)
    highest = np.floor((points.upper[js] - before) / q)
    possible = (lowest <= highest) & (paths.cost[:, None] + points.spread[i, js] + points.rest[js] <= limit)
    rows, columns = np.nonzero(possible)
    lowest, highest, j = lowest[rows, columns], highest[rows, columns], js[columns]
    before, q, w, y = before[rows, 0], q[rows, 0], points.weight[i, j], points.level[i, j]
    low, high = 1 / (highest + 1), 1 / lowest
    past = paths.weight.sum(axis=1)[rows]
    if points.free:
        w_here = w * past / (w + past)
    else:
        w_here = w

    def cost(t):
        here = 0.0
        if not empty:
            common = poly(paths.commons, rows, t) if points.free else 0.0
            here = w_here * (y - heights(t / (q + before * t)) - common) ** 2
        return np.maximum(poly(paths.costs, rows, t), paths.cost[rows]) + here

    prior = np.clip(paths.t[rows], low, high)
    own = prior
    if not empty:
        for _ in range(2):
            common = poly(paths.commons, rows, own) if points.free else 0.0
            delta = np.arcsin(np.sqrt(np.minimum(np.exp(y - common) / 2, 1.0))) / np.pi
            own = np.clip(q * delta / np.maximum(1 - before * delta, 1e-12), low, high)
    mixed = [own ** (1 - s) * prior**s for s in (0.0, 0.25, 0.5, 0.75, 1.0)]
    tried = np.stack([cost(t) for t in mixed])
    best = np.stack(mixed)[tried.argmin(axis=0), np.arange(rows.size)]
    middle = np.floor(1 / best)
    kids = [middle - 1, middle, middle + 1, np.floor(1 / own), np.floor(1 / prior)]
    if empty:
        kids += [np.full(rows.size, k) for k in (1.0, 2.0, 3.0)]
    else:
        spread = np.sqrt(points.rest[0] / points.size / w) / 2
        kids += [np.rint(np.exp(k * spread) / best) for k in (-2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2)]
        kids += [lowest, np.minimum(highest, 64 * lowest)]
    kids = np.clip(np.stack(kids), lowest, highest)
    kids.sort(axis=0)
    fresh = np.concatenate([np.ones((1, rows.size), bool), np.diff(kids, axis=0) > 0])
    # costs
    out = [(np.flatnonzero(fresh[k]), kids[k]) for k in range(len(kids))]
    result = []
    for chosen, a in out:
        c = cost(np.clip(best, 1 / (a + 1), 1 / a))[chosen]
        keep = c + points.spread[i, j[chosen]] + points.rest[j[chosen]] <= limit
        chosen, c = chosen[keep], c[keep]
        result.append((rows[chosen], j[chosen], a[chosen], c + points.spread[i, j[chosen]]))
    return [np.concatenate(column) for column in zip(*result, strict=True)]


def firsts(reach, most):
    """Denominators up to the first reach."""
    if reach <= most:
        return np.arange(1.0, reach + 1)
    return np.unique(np.rint(np.concatenate([np.geomspace(1, reach, most // 2), np.linspace(1, reach, most // 2)])))


def starts(points, limit):
    """For each group a list of pairs q_s, q_(s+1) and costs."""
    first = points.upper[0]
    found = []
    for j in range(1, points.count + 1):
        cost = points.spread[0, j]
        if cost + points.rest[j] > limit:
            found.append((np.zeros((0, 2)), np.zeros(0)))
            continue
        low, high = points.lower[j] + 1, points.upper[j]
        y = points.level[0, j]
        if points.free:
            small = firsts(first, 12)
            size = 1 + min(high, 64 * low) - low
            large = np.unique(np.rint(np.geomspace(low, min(high, 64 * low), min(16, int(size)))))
            pair = np.stack(np.meshgrid(small, large), axis=-1).reshape(-1, 2)
        else:
            small = firsts(first, 40)
            span = np.pi / np.arcsin(np.sqrt(min(math.exp(y) / 2, 1.0)))
            rests = np.linspace(0, 1, 41)
            large = np.clip(np.rint(span - small[:, None] * rests), low, high)
            pair = np.stack([np.broadcast_to(small[:, None], large.shape), large], axis=-1).reshape(-1, 2)
            pair = np.unique(pair, axis=0)
        if points.strict_ends and j < points.count:
            pair = np.concatenate([pair, [[(points.upper[j + 1]) % points.upper[j], points.upper[j]]]])
        pair = pair[(pair[:, 0] >= 1) & (pair[:, 1] > pair[:, 0]) & (np.gcd(*pair.T.astype(np.int64)) == 1)]
        if points.free:
            loss = np.zeros(len(pair))
        else:
            delta = np.clip(1 / span, 1 / pair.sum(axis=1), 1 / pair[:, 1])
            loss = points.weight[0, j] * (y - heights(delta)) ** 2
        found.append((pair, cost + loss))
    return found


def beam(points, width, limit):
    """Paths that pass the last reach, the best first."""
    pending = [[] for _ in range(points.count + 1)]
    kept = [None] * (points.count + 1)
    for j, (pair, cost) in enumerate(starts(points, limit), start=1):
        pending[j].append((None, pair, cost, cells(pair[:, 1], pair[:, 0], 0.0)))
    for i in range(1, points.count + 1):
        pairs, tails = collect(pending[i], kept, 3 * width)
        pending[i] = []
        if not len(pairs):
            continue
        if i == points.count:
            return pairs, tails
        nodes = fitted(points, pairs, tails, i)
        nodes = best_of(nodes, limit - points.rest[i], width)
        generation = nodes
        for _ in range(12):
            if not generation.cost.size:
                break
            rows, _, a, cost = children(points, generation, i, limit, empty=True)
            if not rows.size:
                break
            order = np.argsort(cost)[: 2 * width]
            tail = append(generation.tail[rows[order]], a[order])
            generation = best_of(fitted(points, generation.pair[rows[order]], tail, i), limit - points.rest[i], width)
            nodes = join(points, nodes, generation, i)
        nodes = best_of(nodes, limit - points.rest[i], width)
        kept[i] = nodes
        rows, j, a, cost = children(points, nodes, i, limit)
        q, before = a * nodes.q[rows, 1] + nodes.q[rows, 0], nodes.q[rows, 1]
        cell = cells(q, before, nodes.common[rows])
        for k in np.unique(j):
            mine = np.flatnonzero(j == k)
            mine = mine[chosen(cost[mine], cell[mine], 3 * width)]
            pending[k].append((i, np.stack([rows[mine], a[mine]], axis=1), cost[mine], cell[mine]))
    return np.zeros((0, 2)), np.zeros((0, 0))


def chosen(cost, cell, most):
    """Half of them the nearest, half the nearest of each cell."""
    order = np.argsort(cost, kind="stable")
    if order.size <= most:
        return order
    cells = cell[order]
    by_cell = np.argsort(cells, kind="stable")
    sorted_cells = cells[by_cell]
    first = np.append(True, np.diff(sorted_cells) > 0)
    rank = np.empty(order.size)
    rank[by_cell] = np.arange(order.size) - np.flatnonzero(first)[np.cumsum(first) - 1]
    rank[: most // 2] = -1
    return order[np.argsort(rank, kind="stable")[:most]]


def cells(q, before, common):
    return np.floor(np.log(q) * FINE) * 4096 + np.floor(before / q * 4) * 512 + np.clip(np.floor(common * 8) + 256, 0, 511)


FINE = 60


def best_of(paths, limit, width):
    good = np.flatnonzero(paths.cost <= limit)
    return paths.at(good[chosen(paths.cost[good], cells(paths.q[good, 1], paths.q[good, 0], paths.common[good]), width)])


def append(tail, a):
    tail = np.concatenate([tail, np.zeros((len(tail), 1))], axis=1)
    tail[np.arange(len(tail)), np.count_nonzero(tail, axis=1)] = a
    return tail


def widen(tail, size):
    return np.concatenate([tail, np.zeros((len(tail), size - tail.shape[1]))], axis=1)


def join(points, one, two, i):
    size = max(one.tail.shape[1], two.tail.shape[1])
    return fitted(points, np.concatenate([one.pair, two.pair]),
                  np.concatenate([widen(one.tail, size), widen(two.tail, size)]), i)


def collect(chunks, kept, most):
    if not chunks:
        return np.zeros((0, 2)), np.zeros((0, 0))
    cost = np.concatenate([c[2] for c in chunks])
    if not cost.size:
        return np.zeros((0, 2)), np.zeros((0, 0))
    good_ones = np.zeros(cost.size, bool)
    good_ones[chosen(cost, np.concatenate([c[3] for c in chunks]), most)] = True
    pairs, tails = [], []
    at = 0
    for source, what, costs, _ in chunks:
        good = what[good_ones[at : at + costs.size]]
        at += costs.size
        if source is None:
            pairs.append(good)
            tails.append(np.zeros((len(good), 0)))
        else:
            rows = good[:, 0].astype(int)
            pairs.append(kept[source].pair[rows])
            tails.append(append(kept[source].tail[rows], good[:, 1]))
    size = max(t.shape[1] for t in tails)
    return np.concatenate(pairs), np.concatenate([widen(t, size) for t in tails])


_RATIO = 1.3


def polished(points, path, limit):
    """All paths tried with the same tail, and other first denominators; the best cost."""
    tail, t = path.tail[:1], path.t[:1]
    delta = (path.m[0] + path.n[0] * t[0]) / (path.q[0, 1] + path.q[0, 0] * t[0])
    span, rest = 1 / delta[0], delta[1] / delta[0]
    reach = points.upper[0]
    pool = []

    def trial(pair):
        pair = np.unique(pair, axis=0)
        pair = pair[(pair[:, 0] >= 1) & (pair[:, 1] > pair[:, 0])]
        pair = pair[np.gcd(*pair.T.astype(np.int64)) == 1]
        found = finished(points, pair, np.repeat(tail, len(pair), axis=0), np.full(len(pair), t[0]))
        pool.append(found.at(found.cost <= limit))
        return found

    small = firsts(reach, 24)
    small = np.unique(np.append(small, path.pair[0, 0]))
    if not points.free:
        every = firsts(reach, 20000)
        large = np.rint(span - every * rest)
        order = np.argsort(np.abs(span - every * rest - large))[:48]
        small = np.unique(np.append(small, every[order]))
    large = np.rint(span - small * rest)
    most = max(64.0, 0.3 * path.pair[0, 1])
    offsets = np.unique(np.rint(_RATIO ** np.arange(math.log(most) / math.log(_RATIO))))
    offsets = np.concatenate([-offsets, [0], offsets])
    best = np.inf
    for _ in range(10):
        found = trial(np.stack(np.broadcast_arrays(small[:, None], large[:, None] + offsets), axis=-1).reshape(-1, 2))
        if not found.cost.size or not found.cost.min() < best:
            break
        best = found.cost.min()
        for k, q in enumerate(small):
            mine = np.flatnonzero(found.pair[:, 0] == q)
            if mine.size:
                large[k] = found.pair[mine[found.cost[mine].argmin()], 1]
        path = found.at([int(found.cost.argmin())])
    for _ in range(6):
        found = tail_moves(points, path)
        pool.append(found.at(found.cost <= limit))
        if not found.cost.min() < path.cost[0]:
            break
        path = found.at([int(found.cost.argmin())])
    return pool


def tail_moves(points, path):
    size = np.count_nonzero(path.tail)
    tails = [path.tail[0]]
    for c in range(size):
        a = path.tail[0, c]
        offsets = np.unique(np.rint(_RATIO ** np.arange(math.log(max(3.0, 0.3 * a)) / math.log(_RATIO))))
        for new in a + np.concatenate([-offsets, offsets]):
            if new >= 1:
                tail = path.tail[0].copy()
                tail[c] = new
                tails.append(tail)
    return finished(points, np.repeat(path.pair, len(tails), axis=0), np.stack(tails), np.full(len(tails), path.t[0]))


def turns(pair, tail, t):
    """alpha"""
    big, low = pair[:, 1].copy(), pair[:, 0].copy()
    p, before = np.ones(len(pair)), np.zeros(len(pair))   # numerators of convergents of big/low, and denominators
    u, v = np.zeros(len(pair)), np.ones(len(pair))
    # convergents h/k of q_(s+1)/q_s; the one before the last is p_(s+1)/p_s
    h1, h0, k1, k0 = np.ones(len(pair)), np.zeros(len(pair)), np.zeros(len(pair)), np.ones(len(pair))
    while (low > 0).any():
        a = np.where(low > 0, np.floor(big / np.maximum(low, 1)), 0)
        go = low > 0
        big, low = np.where(go, low, big), np.where(go, big - a * low, low)
        h1, h0 = np.where(go, a * h1 + h0, h1), np.where(go, h1, h0)
        k1, k0 = np.where(go, a * k1 + k0, k1), np.where(go, k1, k0)
    p1, p0 = h0, k0
    q1, q0 = pair[:, 1], pair[:, 0]
    for c in range(tail.shape[1]):
        a = tail[:, c]
        go = a > 0
        p1, p0 = np.where(go, a * p1 + p0, p1), np.where(go, p1, p0)
        q1, q0 = np.where(go, a * q1 + q0, q1), np.where(go, q1, q0)
    return (p1 + p0 * t) / (q1 + q0 * t)


def search(points, error):
    def single(pool):
        k = min(range(len(pool)), key=lambda k: pool[k].cost.min(initial=np.inf))
        return pool[k].at([int(pool[k].cost.argmin())])

    chi = math.exp(CHI / points.size)
    pool = []
    bound = np.inf
    import time
    T0 = time.time()
    for width, follow in ((_FIRST_WIDTH, 2), (_WIDTH, 4)):
        pairs, tails = beam(points, width, bound)
        T1 = time.time()
        found = finished(points, pairs, tails, np.full(len(pairs), 0.5))
        if len(pairs):
            pool.append(found)
        least = min(p.cost.min(initial=np.inf) for p in pool)
        bound = (least + error) * chi
        if points.strict_ends: break
        for k in np.argsort(found.cost)[:follow]:
            if found.cost[k] <= max(3 * bound, _SLACK) :
                pool += polished(points, found.at([k]), 3 * bound)
        least = min(p.cost.min(initial=np.inf) for p in pool)
        bound = 1.1 * (least + error) * chi + _SLACK
        print('   pass', width, round(T1 - T0, 2), round(time.time() - T1, 2), least); T0 = time.time()
        if least <= _SLACK: break
    bound = (least + error) * chi
    return single(pool), [p.at(p.cost <= bound) for p in pool], bound

r"""Near returns of a profile of several planes: every t with D(t) < budget in a range of any length, from a lattice.

D(t) = sum_k w_k (1 - cos(2 pi (t alpha_k + phi_k))) is the deficit of `certify.py`. Write x_k = t alpha_k + phi_k - p_k
with p_k the nearest integer, and take a range low <= t <= high with middle m and half length h.

**Claim.** Let F >= 1 planes be chosen from the active ones, b the budget, and for each chosen plane

    m_k = min(2, b/w_k),   xmax_k = arcsin(sqrt(m_k/2))/pi in (0, 1/2],   kappa_k = m_k/xmax_k^2.

Every t of the range with D(t) < b has sum_k kappa_k w_k x_k^2 / b + (1/F) ((t - m)/h)^2 < 1 + 1/F.

Proof. All terms of D are >= 0, so the chosen ones alone stay below b, and each alone: 1 - cos(2 pi x_k) < b/w_k, and it
is at most 2 anyway. Hence |x_k| <= xmax_k, the point where 1 - cos(2 pi x) is m_k. (1 - cos(2 pi x))/x^2 = 2 (sin(pi
x)/x)^2 falls on (0, 1/2], as sin(y)/y does on (0, pi/2]; so 1 - cos(2 pi x_k) >= kappa_k x_k^2 there. Add up, and the
range term is at most 1/F. (The weight 1/F of that term makes the ellipsoid smallest: its volume goes with (1 +
r)^((F+1)/2)/sqrt(r), least at r = 1/F.) Planes that are left out weaken the condition and lose nothing.

The vectors (sqrt(kappa_k w_k/b) x_k, (t - m)/(h sqrt F)) over all integers t, p_1 .. p_F are a lattice of dimension F +
1 shifted by a constant vector, and the claim says: near returns are among its points in a ball of radius sqrt(1 + 1/F).
All of them are enumerated (Fincke and Pohst, Math. Comp. 44 (1985) 463-471) in a basis reduced by LLL, after a shift by
the lattice vector nearest the centre, and each t found is then judged by all planes.

**Nothing is lost to rounding.** Three approximations are made; each widens the ball.

1. The basis is one of integers, in units of 2^-s with s = bits(N) + 46, N = max |t|. Each coordinate of the one row
   that carries t is rounded by half a unit, so a coordinate of a point moves by at most N 2^-s / 2 <= 2^-47; roundings
   of the other rows and of the constant add 2^-46 at most. alpha_k is taken to so many bits that it adds less still.
   LLL works in integers. With F <= 20 a point moves by less than 2^-42, below 1e-9 of the radius, which is `SLACK`,
   together with what rounding the scales sqrt(kappa_k w_k/b) and the budget in doubles can do (about 1e-14, relative).
2. The Gram-Schmidt form R of basis B and constant o is a floating-point QR. Householder QR is exact for columns that
   differ from ours by at most g |column|, g = O(n^2) u (Higham, *Accuracy and Stability*, theorem 19.4); evaluating R z
   + o in floating point adds as much again. So the computed length of a point z differs from the true one by at most g
   (sum_j |z_j| |b_j| + |o|). A point in the ball of radius r has |z_j| <= r |d_j| + |s_j|, where d_j are the rows of
   B^-1 (the dual basis) and s = B^-1 o, because z + s = B^-1 (B z + o). That bound, with a factor 2 for the rounding of
   d and s and g = (20 n^2 + 100) u, is added to the radius. For reduced bases it is about 1e-10; where it is not, the
   ball is larger and the search slower, never wrong.
3. A found t is judged by phases that are exact up to a relative error below 1e-14 in every x_k; see `fine_deficits`.

**When it is feasible.** The work is the number of nodes of the search tree, estimated level by level by the Gaussian
heuristic (points of a projected lattice in a ball: volume over covolume), see `estimated_nodes`. The heuristic steers,
it is no part of the proof: nodes are counted, and a search that passes its limit says so. Planes are tried in the order
of how much each one thins out the range, and so many are taken as make the estimate smallest. A plane that makes less
than a turn over the whole range thins less than its weight says: it only cuts out a piece of the range.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.engine.certify import ExactDeficit, Rotation, rotations
from ropegeo.engine.compiled import compiled
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import Enclosure, short
from ropegeo.exact.enclosure import DOUBLE_DIGITS
from ropegeo.exact.lattice import reduced_basis
from ropegeo.heads import LOGIT_ERROR, LogitProfile
from ropegeo.spectrum.phases import MAX_DISPLACEMENT

MAX_NODES = 50_000_000
"""Nodes of a search tree before it gives up: some seconds."""
MAX_LEAVES = 4_000_000
"""Lattice points in the ball, which are stored: below a gigabyte."""
MAX_PLANES = 20
SLACK = 1e-9
BUDGET_SLACK = 1e-9
_CHEAP = 5000.0
_FIRST_REACH = 1 << 16
_BLOCK = 1 << 13
_FEW = 4096
_BEST = 8
_AFFORDABLE = 10_000
_UNIT = 2.0**-53


@dataclass(frozen=True, kw_only=True)
class NearReturns:
    """All displacements of a range with D(t) < budget, and none with D(t) > budget (1 + 1e-9) but for rounding.

    Attributes:
        displacements: t, increasing, counted from the profile's origin.
        deficits: D(t) of each, in logit units. Relative error below 1e-12, or, where `fine` is False, absolute error
            below 2 `LOGIT_ERROR` times the weight. 0.0 where D(t) is exactly 0.
        fine: which of the two.
        nodes: size of the search tree.
    """

    displacements: tuple[int, ...]
    deficits: tuple[float, ...]
    fine: bool
    nodes: int


def near_returns(
    profile: LogitProfile, low: int, high: int, budget: float, *, max_nodes: int = MAX_NODES
) -> NearReturns:
    """Every integer t in [low, high] with D(t) < budget.

    Args:
        profile: any profile with an active plane; for a peaked one D is the gap.
        low: first displacement from the profile's origin, of any size and sign.
        high: last one.
        budget: in logit units, positive.
        max_nodes: where to give up.

    Returns:
        A complete list. It may hold a few t whose D exceeds the budget by no more than rounding (relative 1e-9,
        absolute 2 `LOGIT_ERROR` times the weight if not `fine`); certify those that matter with `ExactDeficit`.

    Raises:
        InvalidInputError: an empty range, a budget that is not positive and finite, a profile without active planes.
        UnsupportedError: more than `max_nodes` nodes or `MAX_LEAVES` points.

    Example:
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> profile = LogitProfile(spectrum=RopeSpectrum.from_base(10000, head_dim=8), coefficients=np.ones(4))
        >>> near_returns(profile, 10**20, 10**20 + 2 * 10**7, 1e-7).displacements
        (100000000000005343366, 100000000000011073631, 100000000000016803896)
    """
    planes = _checked(profile, low, high, budget)
    return _search(profile, planes, low, high, budget, max_nodes)


def estimated_nodes(profile: LogitProfile, low: int, high: int, budget: float) -> float:
    """The nodes that `near_returns` is expected to visit: the Gaussian heuristic, an estimate and no bound.

    Takes milliseconds (it reduces the lattice but searches nothing). Infinity where doubles cannot hold the search.

    Raises:
        InvalidInputError: as `near_returns`.
    """
    planes = _checked(profile, low, high, budget)
    return _chosen(planes, low, high, budget).nodes


def _checked(profile: LogitProfile, low: int, high: int, budget: float) -> tuple[Rotation, ...]:
    if low > high:
        raise InvalidInputError(f"near_returns: the range {short(low)}..{short(high)} is empty")
    if not 0 < budget < math.inf:
        raise InvalidInputError(f"near_returns: budget {budget} must be positive and finite")
    return rotations(profile)


def _search(
    profile: LogitProfile, planes: tuple[Rotation, ...], low: int, high: int, budget: float, max_nodes: int
) -> NearReturns:
    if profile.is_peaked and low < 0 < high:  # D is even: one side is searched, the other mirrored
        side = _search(profile, planes, 0, max(-low, high), budget, max_nodes)
        both = {sign * t: value for t, value in zip(side.displacements, side.deficits, strict=True) for sign in (1, -1)}
        inside = sorted(t for t in both if low <= t <= high)
        return NearReturns(
            displacements=tuple(inside), deficits=tuple(both[t] for t in inside), fine=side.fine, nodes=side.nodes
        )
    lattice = _chosen(planes, low, high, budget)
    if not math.isfinite(lattice.nodes):
        raise UnsupportedError(f"near_returns: budget {budget:g} over {short(low)}..{short(high)} is beyond doubles")
    found, nodes = lattice.displacements(low, high, max_nodes)
    ts, deficits, fine = _judged(profile, planes, found, budget)
    return NearReturns(displacements=tuple(ts), deficits=tuple(deficits), fine=fine, nodes=nodes)


# ---- the lattice ----


@dataclass(eq=False, kw_only=True)
class _Lattice:
    """A reduced basis, the constant next to the origin, and their triangular form.

    Attributes:
        steps: the t of each basis vector.
        start: the t of the constant.
        upper: R of the QR form, diagonal positive, one column per basis vector.
        constant: the constant in the same coordinates.
        radius: of the ball, slack included.
        nodes: estimated size of the search tree.
    """

    steps: list[int]
    start: int
    upper: FloatArray
    constant: FloatArray
    radius: float
    nodes: float

    def displacements(self, low: int, high: int, max_nodes: int) -> tuple[list[int], int]:
        """The t of every lattice point in the ball that lie in the range, increasing, and the nodes visited.

        Raises:
            UnsupportedError: too many of them.
        """
        size = len(self.steps)
        capacity = 1 << 10
        while True:
            points = np.empty((capacity, size), dtype=np.int64)
            count, nodes = _ball_points(self.upper, self.constant, self.radius**2, max_nodes, points)
            if nodes > max_nodes or count > MAX_LEAVES:
                raise UnsupportedError(
                    f"near_returns: the search of {short(low)}..{short(high)} passes its limit of {max_nodes} nodes or "
                    f"{MAX_LEAVES} points; about {self.nodes:.1e} nodes are expected"
                )
            if count <= capacity:
                break
            capacity = count
        return _combined(points[:count], self.steps, self.start, low, high, self.radius), nodes


def _combined(points: IntArray, steps: list[int], start: int, low: int, high: int, radius: float) -> list[int]:
    """start + points . steps where that lies in the range, increasing, each once."""
    if max(abs(low), abs(high)) < 1 << 57 and radius < 2:
        # Modulo 2**64. The range term bounds |t - m| by radius h sqrt(F), so |t| < 2**61 and nothing wraps.
        words = np.array([step % (1 << 64) for step in steps], dtype=np.uint64)
        t = (points.view(np.uint64) * words).sum(axis=1, dtype=np.uint64) + np.uint64(start % (1 << 64))
        inside = np.unique(t.view(np.int64))
        listed: list[int] = inside[(inside >= low) & (inside <= high)].tolist()
        return listed
    exact = {start + sum(z * step for z, step in zip(row, steps, strict=True)) for row in points.tolist()}
    return sorted(t for t in exact if low <= t <= high)


def _chosen(planes: tuple[Rotation, ...], low: int, high: int, budget: float) -> _Lattice:
    """The lattice of as many planes as make the estimated search smallest."""
    # No deficit reaches 3 weights, so a larger budget asks the same. A plane with a term below 1e-9 of it excludes
    # nothing.
    sizes = [plane.size for plane in planes]
    budget = min(budget, 3 * math.fsum(sizes))
    planes = tuple(plane for plane, size in zip(planes, sizes, strict=True) if size > 1e-9 * budget)
    scales = [_scale(plane, budget) for plane in planes]
    length = high - low
    thinning = []
    for plane, scale in zip(planes, scales, strict=True):
        turns = plane.fixed(64)[0] / 2**64
        thinning.append(scale * min(1.0, min(turns, 1 - turns) * length))
    order = sorted(range(len(planes)), key=lambda k: -thinning[k])
    best: _Lattice | None = None
    worse = 0
    for count in range(1, min(len(planes), MAX_PLANES) + 1):
        kept = order[:count]
        tried = _lattice([planes[k] for k in kept], [scales[k] for k in kept], low, high)
        if best is None or tried.nodes < best.nodes:
            best, worse = tried, 0
        else:
            worse += 1
        if best.nodes < _CHEAP or worse > 3:
            break
    assert best is not None  # noqa: S101 - there is at least one plane
    return best


def _scale(plane: Rotation, budget: float) -> float:
    """sqrt(kappa w / budget) = sqrt(m w / budget) / xmax, with m = min(2, budget/w)."""
    ratio = min(2.0, budget / plane.size)
    return math.sqrt(ratio * (plane.size / budget)) * math.pi / math.asin(math.sqrt(ratio / 2))


def _lattice(planes: list[Rotation], scales: list[float], low: int, high: int) -> _Lattice:
    count = len(planes)
    largest = max(abs(low), abs(high), 1)
    unit = largest.bit_length() + 46
    bits = unit + largest.bit_length() + max(0, math.frexp(max(scales))[1]) + 8
    half = max(Fraction(high - low, 2), Fraction(1, 2))
    heights = [round(Fraction(scale) * 2**unit) for scale in scales]
    range_height = round(Fraction(1 / math.sqrt(count)) * 2**unit / half)
    fixed = [plane.fixed(bits) for plane in planes]
    rows = [[range_height, *(_shifted(h * alpha, bits) for h, (alpha, _) in zip(heights, fixed, strict=True))]]
    for k, height in enumerate(heights):
        rows.append([0] * (count + 1))
        rows[-1][k + 1] = height
    constant = [_shifted(h * phi, bits) for h, (_, phi) in zip(heights, fixed, strict=True)]
    constant.insert(0, round(-range_height * Fraction(low + high, 2)))
    return _triangular(reduced_basis(rows), constant, unit, range_height, _radius(count))


def _shifted(value: int, bits: int) -> int:
    """value / 2**bits, rounded to an integer."""
    return (value + (1 << (bits - 1))) >> bits


def _radius(count: int) -> float:
    return math.sqrt(1 + 1 / count)


def _triangular(basis: list[list[int]], constant: list[int], unit: int, range_height: int, radius: float) -> _Lattice:
    """The constant moved next to the origin by a lattice vector, the QR form, the radius with its slack."""
    size = len(basis)
    steps = [row[0] // range_height for row in basis]  # exact: only the row of t has a first coordinate
    start, constant = 0, list(constant)
    scale = 1 << unit
    columns = np.array([[entry / scale for entry in row] for row in basis]).T
    lengths = np.linalg.norm(columns, axis=0)
    inverse = np.linalg.inv(columns / lengths) / lengths[:, None]
    for _ in range(64):
        nearest = np.rint(inverse @ np.array([entry / scale for entry in constant]))
        if not nearest.any():
            break
        for z, row, step in zip(nearest.tolist(), basis, steps, strict=True):
            start -= int(z) * step
            constant = [a - int(z) * b for a, b in zip(constant, row, strict=True)]
    moved = np.array([entry / scale for entry in constant])
    upper = np.linalg.qr(np.column_stack([columns, moved])).R
    upper = upper * np.where(np.diag(upper) < 0, -1.0, 1.0)[:, None]
    reach = 2 * (radius * np.linalg.norm(inverse, axis=1) + np.abs(inverse @ moved))
    loss = (20 * size**2 + 100) * _UNIT * (float(reach @ lengths) + float(np.linalg.norm(moved)))
    radius = radius * (1 + SLACK) + loss
    diagonal = np.diag(upper[:, :size])
    sound = bool(np.isfinite(upper).all() and (diagonal > 0).all() and reach.max() < 2.0**50)
    return _Lattice(
        steps=steps,
        start=start,
        upper=np.ascontiguousarray(upper[:, :size]),
        constant=np.ascontiguousarray(upper[:, size]),
        radius=radius,
        nodes=_heuristic_nodes(diagonal, radius) if sound else math.inf,
    )


def _heuristic_nodes(diagonal: FloatArray, radius: float) -> float:
    """sum over levels of (volume of a ball) / (covolume of the lattice projected there), plus one node a level."""
    size = len(diagonal)
    total, log_covolume = 0.0, 0.0
    for level in range(1, size + 1):
        log_covolume += math.log(diagonal[size - level])
        log_volume = level / 2 * math.log(math.pi) - math.lgamma(level / 2 + 1) + level * math.log(radius)
        total += 1 + math.exp(min(700.0, log_volume - log_covolume))
    return total


@compiled
def _ball_points(
    upper: FloatArray, constant: FloatArray, radius2: float, max_nodes: int, points: IntArray
) -> tuple[int, int]:
    """All integer z with |upper z + constant|^2 <= radius2, depth first: how many, and nodes visited.

    The first ones that fit are written to `points`. Stops with more than `max_nodes` nodes if there are more.
    """
    size = upper.shape[0]
    z = np.zeros(size, dtype=np.int64)
    last = np.zeros(size, dtype=np.int64)
    centre = np.zeros(size)
    rest = np.zeros(size + 1)
    rest[size] = radius2
    count, nodes, level, enter = 0, 0, size - 1, True
    while level < size:
        if enter:
            middle = constant[level]
            for j in range(level + 1, size):
                middle += upper[level, j] * z[j]
            centre[level] = middle
            half = np.sqrt(rest[level + 1])
            first = np.ceil((-middle - half) / upper[level, level])
            final = np.floor((-middle + half) / upper[level, level])
            if final - first > max_nodes:
                return count, max_nodes + 1
            last[level] = int(final)
            z[level] = int(first) - 1
            enter = False
        if level == 0:
            nodes += max(0, last[0] - z[0])
            if nodes > max_nodes:
                return count, nodes
            for value in range(z[0] + 1, last[0] + 1):
                if count < points.shape[0]:
                    z[0] = value
                    points[count] = z
                count += 1
            level = 1
            continue
        z[level] += 1
        if z[level] > last[level]:
            level += 1
            continue
        nodes += 1
        if nodes > max_nodes:
            return count, nodes
        part = centre[level] + upper[level, level] * z[level]
        rest[level] = max(0.0, rest[level + 1] - part * part)
        level -= 1
        enter = True
    return count, nodes


# ---- judging what was found ----


def _judged(
    profile: LogitProfile, planes: tuple[Rotation, ...], found: list[int], budget: float
) -> tuple[list[int], list[float], bool]:
    """Those found whose deficit by all planes is below the budget, up to rounding; their deficits, and how fine."""
    rounding = 2 * LOGIT_ERROR * profile.weight
    limit = budget * (1 + BUDGET_SLACK)
    small = not found or max(-found[0], found[-1]) < MAX_DISPLACEMENT
    rough: list[float] = []
    if small and len(found) > _FEW // 16:
        values = coarse_deficits(profile, np.array(found, dtype=np.int64))
        kept = values < limit + rounding
        found, rough = [t for t, keep in zip(found, kept, strict=True) if keep], values[kept].tolist()
    if rough and len(found) > _FEW and budget > 1e-6 * profile.weight:
        return found, rough, False
    exact = fine_deficits(planes, found)
    pairs = [(t, value) for t, value in zip(found, exact, strict=True) if value < limit]
    return [t for t, _ in pairs], [value for _, value in pairs], True


def coarse_deficits(profile: LogitProfile, displacements: IntArray) -> FloatArray:
    """D(t) in logit units for many |t| < 2**62; absolute error below 2 `LOGIT_ERROR` times the weight.

    That of a gap (`LOGIT_ERROR`), plus what the rounding of arg(c_k) and of its sum with the phase add: pi u each.
    """
    active = np.array(profile.active_planes)
    sizes, arguments = np.abs(profile.coefficients[active]), np.angle(profile.coefficients[active])
    result = np.empty(len(displacements))
    for start in range(0, len(displacements), _BLOCK):
        phases = profile.spectrum.phases(displacements[start : start + _BLOCK])[:, active]
        sines = np.sin((phases + arguments) / 2)
        result[start : start + _BLOCK] = (2 * sizes * sines**2).sum(axis=-1)
    return result


def fine_deficits(planes: tuple[Rotation, ...], displacements: list[int]) -> list[float]:
    """D(t) in logit units for t of any size, to a relative error below 1e-12; exactly 0.0 where D is known to be 0.

    Proof. t alpha + phi is formed in integers modulo 2**bits; alpha and phi are off by one unit each, so the distance
    x_k to the nearest integer by at most e = (|t| + 1) 2**-bits. Let M = max |x_k| sqrt(w_k). D is the squared length
    of the vector with entries sqrt(2 w_k) sin(pi x_k), which is at least 2 sqrt(2) M, since sin(pi x) >= 2x. Its
    entries are off by at most sqrt(2 w_k) pi e, and bits grows until e sqrt(w_k) <= 2**-60 M: the length is off by a
    relative sqrt(planes) 2**-59, D by twice that, below 1e-15 for 4096 planes. The conversion, pi x, the sine and its
    square add a few units of 2**-53; the terms are not negative, so nothing cancels. (A zero that `certify` does not
    decide ends at 2**15 bits.)
    """
    sizes = [plane.size for plane in planes]
    return [_fine_deficit(planes, sizes, t) for t in displacements]


def _fine_deficit(planes: tuple[Rotation, ...], sizes: list[float], t: int) -> float:
    if all(plane.is_whole(t) for plane in planes):
        return 0.0
    bits = 128
    while bits < t.bit_length() + 96:
        bits *= 2
    while True:
        turns = []
        for plane in planes:
            exact = plane.exact_turns(t)
            if exact is None:
                alpha, phi = plane.fixed(bits)
                part = (t * alpha + phi) & ((1 << bits) - 1)
                turns.append((part - (1 << bits) if part >> (bits - 1) else part) / (1 << bits))
            else:
                turns.append(float(exact))
        largest = max(abs(x) * math.sqrt(size) for x, size in zip(turns, sizes, strict=True))
        unit = math.ldexp(abs(t) + 1, -bits)
        if unit * math.sqrt(max(sizes)) <= 2.0**-60 * largest or bits >= 1 << 15:
            return math.fsum(2 * size * math.sin(math.pi * x) ** 2 for x, size in zip(turns, sizes, strict=True))
        bits *= 2


# ---- records ----


@dataclass(frozen=True, kw_only=True)
class RecordReturns:
    """Displacements among which are all those where the running minimum of a peaked profile's gap falls.

    Attributes:
        displacements: increasing; every record step of 1..reach is one of them, and a few may be ties that rounding
            cannot tell from records.
        deficits: D(t) of each in logit units, relative error below 1e-12; 0.0 where exactly 0.
        nodes: search nodes in all.
    """

    displacements: tuple[int, ...]
    deficits: tuple[float, ...]
    nodes: int


def record_returns(
    profile: LogitProfile, reach: int, *, max_nodes: int = MAX_NODES, first: int = _FIRST_REACH
) -> RecordReturns:
    """All record minima of the gap of a peaked profile over t = 1..reach, by searching ever longer ranges.

    1..`first` is evaluated. After that a record has to beat the minimum so far, so the range up to eight times as far
    is searched for deficits below that minimum. The number of points expected there stays the same at every length.

    Args:
        profile: real, non-negative coefficients.
        reach: largest displacement, of any size.
        max_nodes: search nodes for each range.
        first: how far every displacement is evaluated; at most 2**24.

    Raises:
        InvalidInputError: a profile that is not peaked or has no active plane; a reach below 1.
        UnsupportedError: a range would take more than `max_nodes` nodes.

    Example:
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> profile = LogitProfile(spectrum=RopeSpectrum.from_base(10000, head_dim=8), coefficients=np.ones(4))
        >>> record_returns(profile, 10**30).displacements[-1]
        124441026491869013434269279763
    """
    if not profile.is_peaked:
        raise InvalidInputError("record_returns: needs real, non-negative coefficients")
    if reach < 1 or not 1 <= first <= 1 << 24:
        raise InvalidInputError(f"record_returns: reach {short(reach)} must be at least 1, `first` in 1..2**24")
    planes = rotations(profile)
    done = min(reach, first)
    ts, deficits = _evaluated_records(profile, planes, done)
    nodes = 0
    while done < reach and deficits[-1] > 0:
        end = min(reach, 8 * done)
        lowest = min(deficits)
        # A tie within rounding of the minimum is kept too: the caller decides it.
        returns = _search(profile, planes, done + 1, end, lowest * (1 + BUDGET_SLACK), max_nodes)
        nodes += returns.nodes
        values = returns.deficits if returns.fine else fine_deficits(planes, list(returns.displacements))
        for t, value in zip(returns.displacements, values, strict=True):
            if value <= lowest * (1 + BUDGET_SLACK):
                ts.append(t)
                deficits.append(value)
                lowest = min(lowest, value)
            if value == 0:
                break
        done = end
    return RecordReturns(displacements=tuple(ts), deficits=tuple(deficits), nodes=nodes)


def _evaluated_records(
    profile: LogitProfile, planes: tuple[Rotation, ...], reach: int
) -> tuple[list[int], list[float]]:
    """Candidates for records among 1..reach, from their deficits."""
    rounding = 4 * LOGIT_ERROR * profile.weight
    candidates: list[int] = []
    lowest = math.inf
    for start in range(1, reach + 1, _BLOCK):
        block = np.arange(start, min(start + _BLOCK, reach + 1))
        values = coarse_deficits(profile, block)
        before = np.minimum.accumulate(np.concatenate([[lowest], values[:-1]]))
        candidates += block[values <= before + rounding].tolist()
        lowest = min(float(before[-1]), float(values[-1]))
    ts: list[int] = []
    deficits: list[float] = []
    least = math.inf
    for t, value in zip(candidates, fine_deficits(planes, candidates), strict=True):
        if value <= least * (1 + BUDGET_SLACK):
            ts.append(t)
            deficits.append(value)
            least = min(least, value)
        if value == 0:
            break
    return ts, deficits


# ---- a bound where enumeration cannot go ----


@dataclass(frozen=True, kw_only=True)
class ReturnBound:
    """An upper bound on the smallest deficit of a range: the deficit of one displacement in it.

    Attributes:
        displacement: the t.
        deficit: D(t) in units of the profile's weight, certified.
    """

    displacement: int
    deficit: Enclosure


def return_bound(
    profile: LogitProfile, reach: int, *, low: int = 1, digits: int = DOUBLE_DIGITS, tries: int = 8
) -> ReturnBound:
    """A certified upper bound on min D(t) over low <= t <= reach, for many planes and any reach.

    The deficit of any t is such a bound; good ones come from short vectors of the lattice of all active planes, reduced
    with several weights on the range, and their sums and differences; for a profile with phases from the vectors near
    its constant. Where the search for anything better is short, it is made. How far the bound lies above the minimum is
    not known otherwise.

    Args:
        profile: any profile.
        reach: last displacement, of any size.
        low: first displacement.
        digits: to prove of D(t).
        tries: how many weights on the range are tried; each reduces a lattice (a second for 64 planes and 10**100).

    Raises:
        InvalidInputError: an empty range or a profile without active planes.
    """
    planes = _checked(profile, low, reach, 1.0)
    even = profile.is_peaked
    if even and low <= 0 <= reach:
        return ReturnBound(displacement=0, deficit=Enclosure.exactly(0))
    nearest = min(max(low, 0), reach)  # next to 0: for many planes t = 1 is often the best of all
    candidates = {low, reach, *range(nearest, min(nearest + 1024, reach) + 1)}
    for k in range(tries):
        candidates |= set(_short_displacements(planes, low, reach, 2.0 ** (-k / 2 - 1), even=even))
    best, value = _least(planes, sorted(candidates))
    for part in (1.0, 0.25, 2.0**-4, 2.0**-6, 2.0**-8):  # few planes: a short search for something better still
        if value > 0 and _chosen(planes, low, reach, part * value).nodes < _AFFORDABLE:
            with suppress(UnsupportedError):
                found = _search(profile, planes, low, reach, part * value, 10 * _AFFORDABLE)
                best, value = _least(planes, [best, *found.displacements])
            break
    return ReturnBound(displacement=best, deficit=ExactDeficit(profile).at(best, digits))


def _least(planes: tuple[Rotation, ...], displacements: list[int]) -> tuple[int, float]:
    """The displacement with the smallest deficit, the first of several, and that deficit in doubles."""
    values = fine_deficits(planes, displacements)
    place = int(np.argmin(values))
    return displacements[place], values[place]


def _short_displacements(planes: tuple[Rotation, ...], low: int, high: int, weight: float, *, even: bool) -> list[int]:
    """The best few t of the range among short lattice vectors, their sums and differences, about the constant."""
    sizes = np.array([plane.size for plane in planes])
    largest = max(abs(low), abs(high), 1)
    unit = largest.bit_length() + 30
    half = Fraction(largest) if even else max(Fraction(high - low, 2), Fraction(1, 2))
    heights = [max(1, round(Fraction(scale) * 2**unit)) for scale in np.sqrt(sizes / sizes.sum()).tolist()]
    range_height = max(1, round(Fraction(weight / math.sqrt(len(planes))) * 2**unit / half))
    bits = unit + largest.bit_length() + 64
    fixed = [plane.fixed(bits) for plane in planes]
    rows = [[range_height, *(_shifted(h * alpha, bits) for h, (alpha, _) in zip(heights, fixed, strict=True))]]
    for k, height in enumerate(heights):
        rows.append([0] * (len(planes) + 1))
        rows[-1][k + 1] = height
    basis = reduced_basis(rows)
    start, steps = 0, [row[0] // range_height for row in basis]
    if not even:
        constant = [_shifted(h * phi, bits) for h, (_, phi) in zip(heights, fixed, strict=True)]
        constant.insert(0, round(-range_height * Fraction(low + high, 2)))
        start = _triangular(basis, constant, unit, range_height, 1.0).start
    signed = [0, *steps, *(-step for step in steps)]
    turned = np.array([[t * alpha % (1 << bits) / (1 << bits) for alpha, _ in fixed] for t in signed])
    first = np.array([(start * alpha + phi) % (1 << bits) / (1 << bits) for alpha, phi in fixed])
    deficits = (sizes * np.sin(np.pi * (first + turned[:, None] + turned[None, :])) ** 2).sum(axis=-1)
    kept: list[int] = []
    for place in np.argsort(deficits, axis=None).tolist():
        t = start + signed[place // len(signed)] + signed[place % len(signed)]
        t = -t if even and t < 0 else t
        if low <= t <= high:
            kept.append(t)
            if len(kept) == _BEST:
                break
    return kept

r"""Near returns of a profile of several planes: every t with D(t) < budget in a range of any length, from a lattice.

D(t) = sum_k w_k (1 - cos(2 pi (t alpha_k + phi_k))) is the deficit (`certify.py`). Write x_k = t alpha_k + phi_k - p_k
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

1. Displacements are counted from m, rounded to an integer. The basis is one of integers, in units of 2^-s with s =
   bits(h) + 46. Each coordinate of the one row that carries t is rounded by half a unit, so a coordinate of a near
   return moves by at most h 2^-s / 2 <= 2^-47; roundings of the other rows and of the constant add 2^-46 at most.
   alpha_k and phi_k are taken to so many bits that they add less still, m alpha_k included. LLL works in integers. With
   F <= 20 a point moves by less than 2^-42, below 1e-9 of the radius, which is `SLACK`, together with what rounding the
   scales sqrt(kappa_k w_k/b) and the budget in doubles can do (about 1e-14, relative).
2. The Gram-Schmidt form R of basis B and constant o is a floating-point QR. Householder QR is exact for columns that
   differ from ours by at most g |column|, g = O(n^2) u (Higham, *Accuracy and Stability*, theorem 19.4); evaluating R z
   + o in floating point adds as much again. So the computed length of a point z differs from the true one by at most g
   (sum_j |z_j| |b_j| + |o|). A point in the ball of radius r has |z_j| <= r |d_j| + |s_j|, where d_j are the rows of
   B^-1 (the dual basis) and s = B^-1 o, because z + s = B^-1 (B z + o). That bound, with a factor 2 for the rounding of
   d and s and g = (20 n^2 + 100) u, is added to the radius. For reduced bases it is about 1e-10; where it is not, the
   ball is larger and the search slower, never wrong.
3. A found t is judged by its deficit, which has a relative error below 1e-12; see `deficits.py`.

**When it is feasible.** The work is the number of nodes of the search tree, estimated level by level by the Gaussian
heuristic (points of a projected lattice in a ball: volume over covolume), see `estimated_nodes`. The heuristic steers,
it is no part of the proof: nodes are counted, and a search that passes its limit says so. Planes are tried in the order
of how much each one thins out the range, and so many are taken as make the estimate smallest. A plane that makes less
than a turn over the whole range thins less than its weight says: it only cuts out a piece of the range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ropegeo.engine.deficits import COARSE_FROM, check_scale, coarse_deficits, fine_deficits
from ropegeo.engine.exact_turns import Rotation, rotations
from ropegeo.engine.return_lattice import chosen_lattice
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import short
from ropegeo.heads import LOGIT_ERROR, LogitProfile
from ropegeo.spectrum.phases import MAX_DISPLACEMENT

MAX_NODES = 50_000_000
"""Nodes of a search tree before it gives up: some seconds."""
BUDGET_SLACK = 1e-9
_FEW = 256


@dataclass(frozen=True, kw_only=True)
class NearReturns:
    """All displacements of a range with D(t) < budget, and none with D(t) > budget (1 + 2e-9).

    Attributes:
        displacements: t, increasing, counted from the profile's origin.
        deficits: D(t) of each, in logit units, with a relative error below 1e-12. 0.0 only where D(t) is known to be 0;
            what is smaller than any double is shown as the smallest positive one.
        nodes: size of the search tree.
    """

    displacements: tuple[int, ...]
    deficits: tuple[float, ...]
    nodes: int

    @property
    def lowest(self) -> float:
        """A proved upper bound on the smallest D(t) found, in logit units; infinity if none was found.

        0.0 where D(t) is known to be 0 at one of them. It is above the smallest D(t) by no more than a relative 4e-12,
        so it serves as the next budget.
        """
        least = min(self.deficits, default=math.inf)
        return math.nextafter(least * (1 + 2e-12), math.inf) if least > 0 else 0.0


def near_returns(
    profile: LogitProfile,
    low: int,
    high: int,
    budget: float,
    *,
    max_nodes: int = MAX_NODES,
    max_expected: float = math.inf,
) -> NearReturns:
    """Every integer t in [low, high] with D(t) < budget.

    Args:
        profile: any profile with an active plane; for a peaked one D is the gap.
        low: first displacement from the profile's origin, of any size and sign.
        high: last one.
        budget: in logit units, positive.
        max_nodes: where to give up.
        max_expected: do not begin where more nodes are expected, see `estimated_nodes`.

    Returns:
        A complete list. It may hold a few t whose D exceeds the budget by a relative 2e-9; certify those that matter
        with `ExactDeficit`.

    Raises:
        InvalidInputError: an empty range, a budget that is not positive and finite, a profile without active planes.
        UnsupportedError: more than `max_nodes` nodes or `MAX_LEAVES` points, more than `max_expected` nodes expected,
            or a budget below `LEAST_BUDGET` times the weight.

    Example:
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> profile = LogitProfile(spectrum=RopeSpectrum.from_base(10000, head_dim=8), coefficients=np.ones(4))
        >>> near_returns(profile, 10**20, 10**20 + 2 * 10**7, 1e-7).displacements
        (100000000000005343366, 100000000000011073631, 100000000000016803896)
    """
    planes = _checked_planes(profile, low, high, budget)
    return search_lattice(profile, planes, low, high, budget, max_nodes, max_expected)


def estimated_nodes(profile: LogitProfile, low: int, high: int, budget: float) -> float:
    """The nodes that `near_returns` is expected to visit: the Gaussian heuristic, an estimate and no bound.

    Takes milliseconds (it reduces the lattice but searches nothing). Infinity where doubles cannot hold the search.

    Raises:
        InvalidInputError: as `near_returns`.
        UnsupportedError: a budget below `LEAST_BUDGET` times the weight.
    """
    planes = _checked_planes(profile, low, high, budget)
    return chosen_lattice(planes, low, high, budget).nodes


def _checked_planes(profile: LogitProfile, low: int, high: int, budget: float) -> tuple[Rotation, ...]:
    """The active planes, if the request makes sense."""
    check_range("near_returns", low, high)
    if not 0 < budget < math.inf:
        raise InvalidInputError(f"near_returns: budget {budget} must be positive and finite")
    planes = rotations(profile)
    check_scale("near_returns", profile, budget)
    return planes


def check_range(call: str, low: int, high: int) -> None:
    """Raise where nothing is asked for.

    Raises:
        InvalidInputError: an empty range.
    """
    if low > high:
        raise InvalidInputError(f"{call}: the range {short(low)}..{short(high)} is empty")


def search_lattice(
    profile: LogitProfile,
    planes: tuple[Rotation, ...],
    low: int,
    high: int,
    budget: float,
    max_nodes: int,
    max_expected: float = math.inf,
) -> NearReturns:
    """`near_returns` of a request that was checked.

    Raises:
        UnsupportedError: more than `max_nodes` nodes or `MAX_LEAVES` points.
    """
    if profile.is_peaked and low < 0 < high:  # D is even: one side is searched, the other mirrored
        side = search_lattice(profile, planes, 0, max(-low, high), budget, max_nodes, max_expected)
        both = {sign * t: value for t, value in zip(side.displacements, side.deficits, strict=True) for sign in (1, -1)}
        inside = sorted(t for t in both if low <= t <= high)
        return NearReturns(displacements=tuple(inside), deficits=tuple(both[t] for t in inside), nodes=side.nodes)
    lattice = chosen_lattice(planes, low, high, budget)
    if not math.isfinite(lattice.nodes):
        raise UnsupportedError(f"near_returns: budget {budget:g} over {short(low)}..{short(high)} is beyond doubles")
    if lattice.nodes > max_expected:
        raise UnsupportedError(
            f"near_returns: {short(low)}..{short(high)} is expected to take {lattice.nodes:.1e} nodes"
        )
    found, nodes = lattice.displacements(low, high, max_nodes)
    judged = _judged(profile, planes, found, budget * (1 + BUDGET_SLACK))
    return NearReturns(displacements=tuple(judged), deficits=tuple(judged.values()), nodes=nodes)


def _judged(profile: LogitProfile, planes: tuple[Rotation, ...], found: list[int], limit: float) -> dict[int, float]:
    """Those found whose deficit by all planes is below the limit, with it, to a relative 1e-12.

    Most of many are decided in numpy; the others are those whose deficits numpy does not know well enough.
    """
    rough: dict[int, float] = {}
    if len(found) > _FEW and max(-found[0], found[-1]) < MAX_DISPLACEMENT:
        values = coarse_deficits(profile, np.array(found, dtype=np.int64)).tolist()
        sure, margin = COARSE_FROM * profile.weight, 2 * LOGIT_ERROR * profile.weight
        rough = {t: value for t, value in zip(found, values, strict=True) if value >= min(limit, sure) + margin}
    rest = [t for t in found if t not in rough]
    known = rough | dict(zip(rest, fine_deficits(planes, rest), strict=True))
    return {t: known[t] for t in found if known[t] < limit}

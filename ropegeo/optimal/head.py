r"""The best positional head of a rotation at a length, as planes, weights and phases, with its proof.

A head aims at distance s = offset with logit beta * sum_k w_k cos((d - s) theta_k + phi_k), sum w_k = 1, so beta is the
largest logit there can be. Which w and phi have the largest margin over all distances d < n is a linear program
(`game.py`, `search.py`); that the answer is right is proved without it (`proof.py`).

One key for several offsets: a query for offset s is one vector turned back by s, for every s = 0..m, and meets the
displacements -s..n-1-s; together -m..n-1. The best head over that window has the largest margin that all offsets
reach; each alone may have more.

At most P planes: which P planes are best is a search over subsets that no linear program decides. All sets are tried if
they are few; else planes are given up, the lightest first, and then exchanged while that helps. The upper bound stays
that of all planes.

Source: docs/MATHEMATICS.md, section 7; ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import index
from typing import get_args

import numpy as np
from jaxtyping import Complex, Float

from ropegeo._arrays import ComplexArray, FloatArray
from ropegeo.engine.work import DEFINED_AT_ONCE, Progress
from ropegeo.errors import InvalidInputError
from ropegeo.exact import Enclosure
from ropegeo.heads import LOGIT_ERROR, LogitProfile
from ropegeo.optimal.certificate import Certificate, Proved, proved
from ropegeo.optimal.search import CONVERGED, NOTHING, Proposal, Told, search
from ropegeo.optimal.subsets import best_subset
from ropegeo.optimal.window import Phases, Window
from ropegeo.spectrum import RopeSpectrum

TOLERANCE = 1e-7
"""Relative gap at which a search ends; what is promised is 1e-6."""
MAX_ROUNDS = 100
_NEGLIGIBLE = 1e-13
"""Shares below this part of the margin are left out of a head: 4096 of them, the most there are, move it by 1e-9."""
_NO_WIN = Fraction(1, 10**25)
"""A proved bound below this is a margin of 0 for every purpose; balls cannot tell it from an exact tie."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OptimalHead:
    """A positional head, what it is proved to win by, and what no head on its rotation can exceed.

    Attributes:
        certificate: the head, the distribution of displacements that bounds all heads, and the proved enclosure.
        margin: of this head over its window, in units of beta; an enclosure.
        upper_bound: what no head with such phases exceeds, on all planes of the spectrum; an enclosure of the bound.
        decided_at: the displacement at which the margin is attained.
        rounds: linear programs solved.
        status: `converged`, or why the search ended before its tolerance.
        max_planes: how many planes were allowed, or None for all.
    """

    certificate: Certificate
    margin: Enclosure
    upper_bound: Enclosure
    decided_at: int
    rounds: int
    status: str
    max_planes: int | None = None

    @property
    def gap(self) -> float:
        """(upper bound - margin)/upper bound, proved; 0 where no head wins by more than 1e-25."""
        high, low = self.upper_bound.high, self.margin.low
        return 0.0 if high <= _NO_WIN else float((high - low) / high)

    @property
    def planes(self) -> tuple[int, ...]:
        """Planes used."""
        return self.certificate.planes

    @property
    def weights(self) -> tuple[float, ...]:
        """w_k of each plane used; their exact sum is at most 1, and 1 to rounding."""
        return self.certificate.weights

    @property
    def query_phases(self) -> tuple[float, ...]:
        """phi_k of each plane used, in radians."""
        return self.certificate.query_phases

    @property
    def slow_planes(self) -> tuple[int, ...]:
        """Planes of the rotation that make less than one turn in the head's length (of decreasing angles: the last)."""
        spectrum, length = self.certificate.spectrum, self.certificate.window.length
        return tuple(plane for plane in range(spectrum.planes) if length * spectrum.inv_freq[plane] < 2 * math.pi)

    @property
    def active_displacements(self) -> tuple[int, ...]:
        """Displacements that carry the bound: at the best head all of them tie as runner-up."""
        return self.certificate.displacements

    def profile(self, offset: int | None = None, *, beta: float = 1.0) -> LogitProfile:
        """What the head scores by distance, for one of the offsets it serves.

        Args:
            offset: of the query; the head's own if not given.
            beta: logit scale.

        Raises:
            InvalidInputError: an offset that the head does not serve.
        """
        window = self.certificate.window
        aimed = window.offset if offset is None else offset
        if aimed not in window.offsets:
            raise InvalidInputError(
                f"OptimalHead.profile: offset {aimed} is not served; use one of {window.offset}..{window.farthest}"
            )
        return LogitProfile(spectrum=self.certificate.spectrum, coefficients=beta * self._coefficients(), origin=aimed)

    def offset_margins(self) -> tuple[Enclosure, ...]:
        """The margin at the head's length of each offset it serves, in units of beta.

        Offset s meets the displacements -s..n-1-s. Their smallest margin is that of two prefixes, -s..-1 and 1..n-1-s,
        so one pass on each side serves all offsets.

        Accuracy: enclosures of width 4 * `LOGIT_ERROR` or twice the sweep's error.
        """
        window = self.certificate.window
        profile = self.profile(window.offset)
        if window.max_offset is None:
            return (self.margin,)
        before, error = _running_least(profile, -1, window.low)
        after, other = _running_least(profile, 1, window.high)
        room = max(error, other)
        found = []
        for offset in window.offsets:
            sides = [before[offset - 1]] if offset else []
            sides += [after[window.length - 2 - offset]] if offset < window.length - 1 else []
            found.append(Enclosure.around(min(sides), room))
        return tuple(found)

    def _coefficients(self) -> Complex[ComplexArray, " planes"]:
        z = np.zeros(self.certificate.spectrum.planes, np.complex128)
        turns = np.exp(1j * np.array(self.query_phases)) if any(self.query_phases) else 1.0
        z[list(self.planes)] = np.array(self.weights) * turns
        return z


def _running_least(profile: LogitProfile, first: int, last: int) -> tuple[Float[FloatArray, " steps"], float]:
    """The smallest margin over displacements first..t, for every t from first to last, and its error."""
    size = abs(last - first) + 1 if abs(last) >= 1 else 0
    if not size:
        return np.zeros(0), 0.0
    low, high = min(first, last), max(first, last)
    target = float(profile.coefficients.real.sum())
    if size * len(profile.active_planes) <= DEFINED_AT_ONCE:
        logits = replace(profile, origin=0).logit(np.arange(low, high + 1))
        error = 2 * LOGIT_ERROR
    else:
        from ropegeo.engine.sweep import Sweep, sweep_error

        logits = Sweep((profile,)).logits(low, high)[0]
        error = sweep_error(len(profile.active_planes)) + LOGIT_ERROR
    margins = target - (logits if first > 0 else logits[::-1])
    return np.minimum.accumulate(margins), error * profile.weight


def optimal_head(
    spectrum: RopeSpectrum,
    *,
    length: int,
    offset: int = 0,
    max_offset: int | None = None,
    phases: Phases | str = "free",
    max_planes: int | None = None,
    tolerance: float = TOLERANCE,
    max_rounds: int = MAX_ROUNDS,
    told: Told | None = None,
    progress: Progress | None = None,
) -> OptimalHead:
    """The index head with the largest margin that a rotation allows at a length, and a proof that none is better.

    Args:
        spectrum: any rotation; scaling and partial rotation are in it.
        length: n, 2 to 10^8.
        offset: distance aimed at, below the length.
        max_offset: serve all offsets 0..max_offset with one key and one query vector turned back by the offset.
        phases: `free`, or `zero` for coefficients that are real and not negative, which is best for symmetric windows.
        max_planes: use at most so many planes; which ones is then the best choice found, not a proved one.
        tolerance: relative gap at which to end, 1e-12 to 1.
        max_rounds: linear programs after which to end anyway; the status then says so.
        told: called after each round with its number and the gap.
        progress: called while the margin is proved with the number of displacements done.

    Raises:
        InvalidInputError: an offset outside the length, or another value out of range, or no plane that rotates.
        UnsupportedError: a window of more than 10^8 displacements.
        SolverError: the first linear program has no solution.

    Accuracy: both bounds are enclosed to 1e-28 for the exact angles of the spectrum; `gap` is what lies between.

    Source: docs/MATHEMATICS.md, section 7; proofs in `ropegeo.optimal.proof`.

    Example:
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> best = optimal_head(RopeSpectrum.from_base(10000, head_dim=16), length=33, phases="zero")
        >>> best.margin.digits(6), best.gap < 1e-6
        ('0.292217', True)
    """
    window = Window(length=length, offset=offset, max_offset=max_offset)
    if phases not in get_args(Phases):
        raise InvalidInputError(f"optimal_head: phases {phases!r} are unknown; use zero or free")
    kind: Phases = "zero" if phases == "zero" else "free"
    if not 1e-12 <= tolerance <= 1:
        raise InvalidInputError(f"optimal_head: tolerance {tolerance} must lie between 1e-12 and 1")
    if index(max_rounds) < 1:
        raise InvalidInputError(f"optimal_head: max_rounds {max_rounds} must be at least 1")
    if max_planes is not None and index(max_planes) < 1:
        raise InvalidInputError(f"optimal_head: max_planes {max_planes} must be at least 1")
    turning = [plane for plane in range(spectrum.planes) if spectrum.rational_turn(plane) != 0]
    if not turning:
        raise InvalidInputError(
            "optimal_head: no plane rotates (every angle is a whole number of turns), so no head counts positions"
        )
    found = search(spectrum, window, phases=kind, planes=turning, tolerance=tolerance, max_rounds=max_rounds, told=told)
    if kind == "free" and (found.status != CONVERGED or found.margin <= NOTHING):
        # Without phases the program is smaller and ends: what it finds is a head too, and exact where planes return.
        plain = search(
            spectrum, window, phases="zero", planes=turning, tolerance=tolerance, max_rounds=max_rounds, told=told
        )
        if plain.margin > found.margin or found.margin <= NOTHING:
            found = replace(found, coefficients=plain.coefficients, margin=plain.margin)
    if max_planes is not None and np.count_nonzero(_shares(found)) > max_planes:
        found = best_subset(
            spectrum,
            window,
            found,
            phases=kind,
            count=min(max_planes, len(turning)),
            tolerance=tolerance,
            max_rounds=max_rounds,
            told=told,
        )
    proof = _proved(spectrum, window, kind, found, progress)
    return OptimalHead(
        certificate=proof.certificate,
        margin=proof.margin,
        upper_bound=proof.upper_bound,
        decided_at=proof.decided_at,
        rounds=found.rounds,
        status=found.status,
        max_planes=max_planes,
    )


def _shares(found: Proposal) -> Float[FloatArray, " planes"]:
    """|z_k| of every plane, 0 where it does not matter."""
    sizes = np.abs(found.coefficients)
    return np.where(sizes > _NEGLIGIBLE * max(found.margin, 0.0), sizes, 0.0)


def _proved(
    spectrum: RopeSpectrum, window: Window, phases: Phases, found: Proposal, progress: Progress | None
) -> Proved:
    """The proposal as doubles whose exact sum is at most 1, with what they prove."""
    shares = _shares(found)
    planes = np.flatnonzero(shares)
    angles = np.angle(found.coefficients[planes]) if phases == "free" else np.zeros(planes.size)
    return proved(
        spectrum,
        window,
        phases,
        planes=planes.tolist(),
        weights=at_most_one(shares[planes]),
        query_phases=angles.tolist(),
        displacements=found.displacements.tolist(),
        distribution=found.distribution.tolist(),
        progress=progress,
    )


def at_most_one(shares: Float[FloatArray, " planes"]) -> list[float]:
    """Shares divided by their sum, the largest one lowered until the exact sum of the doubles is at most 1."""
    weights = [float(share) for share in shares / shares.sum()]
    largest = max(range(len(weights)), key=weights.__getitem__)
    while sum(map(Fraction, weights)) > 1:
        weights[largest] = math.nextafter(weights[largest], 0.0)
    return weights

r"""The first length at which a head points elsewhere, or ties: exact.

Index. A query of offset s at length n sees the displacements t = d - s in {-s..n-1-s}. With L(t) the logit, it fails
from the first n on whose window holds some t != 0 with L(t) >= L(0), and for good: a longer window holds that t too.
Let p be the smallest t > 0 with L(t) >= L(0), and m the smallest with L(-t) >= L(0). The query first fails at

    s + 1       if m <= s,        s + 1 + p       otherwise,

and a head with several queries at the smallest of these. So p and m are all there is to find, and m only as far as the
largest offset.

* Without phases L(0) is the largest value, so p = m is the common period of the planes (a tie), if their turns are
  rational; else there is none, at any length (`engine.trust.tie_length`).
* One plane with a phase: the margin of target 0 at length n is positive iff p >= n; its sign is exact at any length
  (`engine.phase_margin`), and never grows with n, so p is found by doubling and bisection.
* Several planes: a sweep lists every t whose logit comes within its error of L(0), or, far out, every running maximum
  that does, among which the first true one is (below); ball arithmetic decides them in order.

Proof for running maxima. Let e bound the error of a swept logit, and of the computed L(0). The list starts from the
best value L(0) - 2e and keeps what comes within 4e of the best before it. Before the first t with L(t) >= L(0) no true
logit reaches L(0), so no swept one L(0) + e; t's own is at least L(0) - e, hence within 2e of the best, or within 3e of
the computed start: it is kept.

Letters: worst(n) never grows with n (`engine.trust`), so its first length at 0 or below is bisected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from ropegeo.engine.candidates import TooManyTiesError
from ropegeo.engine.certify import ExactDeficit
from ropegeo.engine.margin import check_profile, check_target
from ropegeo.engine.phase_margin import one_plane_phase_curve
from ropegeo.engine.profile_margin import margin_between
from ropegeo.engine.staircase import common_period
from ropegeo.engine.work import DEFINED_AT_ONCE, Progress, check_streamed, scaled
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import safe_integer, short
from ropegeo.heads import LogitProfile

Outcome: TypeAlias = Literal["tie", "wrong", "undecided", "hidden", "none"]
DEFAULT_SEARCHED = 10**7
"""How far exact sums and logits of an index head are searched, if nothing is said."""
FARTHEST = 1 << 200
"""One plane with a phase is searched this far; a phase of 1e-60 or less (1e-100 is a double too) may be met later."""
SCHEMA = "ropegeo.argmax_limit/1"
_FIRST_CHUNK, _LARGEST_CHUNK = 1 << 14, 1 << 24


@dataclass(frozen=True, kw_only=True)
class ArgmaxLimit:
    """Where a head's argmax first fails.

    Attributes:
        first_failing_length: the first length at which a rival scores as high as the target, or None.
        searched: the largest length looked at: the first failing one where there is one (all later ones fail too); or
            None where the answer is known for every length without a search.
        outcome: `tie`, `wrong`, `undecided` (the two logits agree in 160 digits), `hidden` (a window lies between), or
            `none`.
        offset: of the query that fails first; of the first query if none does.
        rival: displacement t = d - s of that rival, or None.
    """

    first_failing_length: int | None
    searched: int | None
    outcome: Outcome
    offset: int
    rival: int | None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; integers above 2**53 are texts."""
        return {
            "schema": SCHEMA,
            "first_failing_length": None
            if self.first_failing_length is None
            else safe_integer(self.first_failing_length),
            "searched": None if self.searched is None else safe_integer(self.searched),
            "outcome": self.outcome,
            "offset": safe_integer(self.offset),
            "rival": None if self.rival is None else safe_integer(self.rival),
        }


def argmax_limit(
    profile: LogitProfile,
    *,
    offsets: Sequence[int] | None = None,
    max_length: int = DEFAULT_SEARCHED,
    progress: Progress | None = None,
) -> ArgmaxLimit:
    """First length at which another distance scores as high as the one aimed at, decided exactly.

    Args:
        profile: of an index head, any coefficients; displacements count from its origin.
        offsets: distances that the head's queries aim at, with the same coefficients; the origin if not given.
        max_length: the largest length to look at; profiles without phases and those of one plane need none.
        progress: called now and then with the number of displacements done.

    Returns:
        The first failing length over all the queries, with the query and the rival, and how far it is known.

    Raises:
        InvalidInputError: no plane with a weight, none that turns, or an offset that is negative.
        UnsupportedError: more than is streamed, or too many logits within rounding of the target's.

    Accuracy: exact, but for the outcome `undecided`.

    Source: ours; proof in the module.

    Example:
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> profile = LogitProfile(spectrum=RopeSpectrum.from_angle("2*pi/5"), coefficients=np.ones(1))
        >>> argmax_limit(profile).first_failing_length
        6
    """
    check_profile("argmax_limit", profile)
    aims = sorted({check_target("argmax_limit", aim, ()) for aim in (offsets or (profile.origin,))})
    period = check_turning("argmax_limit", profile)
    centred = replace(profile, origin=0, constant=0.0)
    if profile.is_peaked:
        ahead: _Rival | None = None if period is None else _Rival(period, "tie")
        behind, searched = ahead, None
    else:
        if max_length < 2:
            raise InvalidInputError(f"argmax_limit: max_length {max_length} must be at least 2")
        backwards = replace(centred, coefficients=centred.coefficients.conj())
        reach = max(1, max_length - 1)
        ahead = _first_rival(centred, reach, progress)
        behind = None
        if aims[-1] > 0:
            behind = _first_rival(backwards, min(aims[-1], reach), progress)
        if len(profile.active_planes) == 1:
            searched = FARTHEST if ahead is None else None
        else:
            searched = None if period is not None and period <= reach else max_length
    failing: list[tuple[int, int, int, Outcome]] = []
    for aim in aims:
        if behind is not None and behind.at <= aim:
            failing.append((aim + 1, aim, -behind.at, behind.outcome))
        elif ahead is not None:
            failing.append((aim + 1 + ahead.at, aim, ahead.at, ahead.outcome))
    if not failing or (searched is not None and min(failing)[0] > searched):
        return ArgmaxLimit(first_failing_length=None, searched=searched, outcome="none", offset=aims[0], rival=None)
    length, aim, rival, outcome = min(failing)
    return ArgmaxLimit(
        first_failing_length=length,
        searched=None if searched is None else length,
        outcome=outcome,
        offset=aim,
        rival=rival,
    )


def check_turning(call: str, profile: LogitProfile) -> int | None:
    """The common period of the active planes, if it is not 1: else no length tells distances apart.

    Raises:
        InvalidInputError: no plane with a weight, or none that turns.
    """
    if not profile.active_planes:
        raise InvalidInputError(f"{call}: no plane of the head has a weight, so every distance scores the same")
    period = common_period(profile)
    if period == 1:
        raise InvalidInputError(
            f"{call}: no plane of the head turns (each active angle is a whole number of turns), so every distance "
            "scores the same; use a plane that rotates"
        )
    return period


@dataclass(frozen=True)
class _Rival:
    at: int
    outcome: Outcome


def _first_rival(profile: LogitProfile, reach: int, progress: Progress | None) -> _Rival | None:
    """The smallest t in 1..reach with L(t) >= L(0); of one plane, however far it is."""
    if len(profile.active_planes) == 1:
        return _one_plane(profile)
    period = common_period(profile)
    last = reach if period is None else min(reach, period - 1)
    found = _swept(profile, last, progress) if last else None
    if found is None and period is not None and period <= reach:
        return _Rival(period, "tie")
    return found


def _one_plane(profile: LogitProfile) -> _Rival | None:
    def sign(length: int) -> int | None:
        return one_plane_phase_curve(profile, [length], 0, 1).points[0].margin.sign

    low, high = 1, 2
    while sign(high) == 1:
        low, high = high, 2 * high
        if high > FARTHEST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if sign(middle) == 1 else (low, middle)
    return _Rival(high - 1, _outcome(sign(high)))


def _swept(profile: LogitProfile, reach: int, progress: Progress | None) -> _Rival | None:
    exponent = int(np.frexp(profile.weight)[1])
    unit = replace(profile, coefficients=scaled(profile.coefficients, -exponent))
    deficit = ExactDeficit(unit)
    planes, low, size = len(unit.active_planes), 1, _FIRST_CHUNK
    check_streamed(planes, reach)
    while low <= reach:
        high = min(reach, low + size - 1)
        for t in _near(unit, low, high):
            outcome = _outcome(margin_between(unit, deficit, 0, t, 1).sign)
            if outcome != "none":
                return _Rival(t, outcome)
        if progress is not None:
            progress(high)
        low, size = high + 1, min(4 * size, _LARGEST_CHUNK)
    return None


def _near(unit: LogitProfile, low: int, high: int) -> list[int]:
    """Displacements among which is the first of low..high whose logit reaches that at 0, if there is one."""
    top = float(unit.coefficients.real.sum())
    if len(unit.active_planes) * high <= DEFINED_AT_ONCE:
        t = np.arange(low, high + 1)
        return [int(each) for each in t[unit.logit(t) >= top - 2 * unit.abs_error]]
    from ropegeo.engine.sweep import Sweep

    sweep = Sweep((unit,))
    error = float(sweep.abs_errors[0])
    try:
        (found,) = sweep.records(low, high, best=[top - 2 * error], slack=4 * error)
    except TooManyTiesError as tie:
        raise UnsupportedError(
            f"argmax_limit: thousands of distances up to {short(high)} score within rounding of the target; "
            "use planes that turn faster, or a smaller max_length"
        ) from tie
    return [int(each) for each in found.at]


def _outcome(sign: int | None) -> Outcome:
    return {1: "none", 0: "tie", -1: "wrong", None: "undecided"}[sign]  # type: ignore[return-value]

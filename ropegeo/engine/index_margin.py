r"""Margins of index heads: one plane exactly at any length, several planes by definition.

The profile is beta * sum_k a_k cos(t theta_k) in the displacement t = d - s, even in t. A query with offset s at
length n sees t in {-s, .., n-1-s}, so its margin is the minimum of the gap over 1 <= |t| <= T with *reach* T = max(s,
n-1-s):

* `margin`: T = max(s, n-1-s);
* `worst`, over offsets 0..m: T = n-1, reached by s = 0 (and by s = n-1);
* `best`, over offsets 0..m with m < n: T = max(ceil((n-1)/2), n-1-m), the offset nearest to the middle.

Source: docs/MATHEMATICS.md, sections 4 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

import numpy as np

from ropegeo.engine.diophantine import OnePlaneStaircase, last_step, one_plane_staircase
from ropegeo.engine.margin import MarginCurve, MarginPoint, check_lengths, check_target
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import Enclosure, short
from ropegeo.exact.enclosure import DOUBLE_DIGITS
from ropegeo.heads import LOGIT_ERROR, LogitProfile

MAX_PHASES = 2 * 10**8
"""Planes times reach that the definition is evaluated for (seconds of numpy)."""
_BLOCK = 1 << 14


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledStaircase:
    """The same as `OnePlaneStaircase` for several planes: record minima of the gap found by evaluating every t.

    Attributes:
        reach: how far the steps are complete.
        steps: displacements at which the running minimum falls.
        gaps: the minimum from each step on, in units of beta.
        period: displacement at which all planes return together, if all turns are rational.
        method: the route, for results.
    """

    reach: int
    steps: tuple[int, ...]
    gaps: tuple[float, ...]
    period: int | None = None
    method: str = "definition"

    def index_at(self, reach: int) -> int:
        """Which step holds the minimum over displacements 1..reach.

        Raises:
            InvalidInputError: a reach below 1 or beyond the staircase.
        """
        return last_step(self.steps, reach, complete_to=self.reach)

    def margin(self, index: int, digits: int = DOUBLE_DIGITS) -> Enclosure:  # noqa: ARG002 - as OnePlaneStaircase
        """The margin from step `index` on, in units of beta; `digits` beyond what the error proves are not given."""
        if self.period is not None and self.steps[index] >= self.period:
            return Enclosure.exactly(0)
        return Enclosure.around(self.gaps[index], LOGIT_ERROR)


Staircase = OnePlaneStaircase | SampledStaircase


def staircase(profile: LogitProfile, reach: int) -> Staircase:
    """All steps of a peaked profile's margin up to displacement `reach`: exact for one plane, else by definition.

    Args:
        profile: real, non-negative coefficients about its origin (a built index head).
        reach: largest displacement.

    Raises:
        InvalidInputError: a profile that is not peaked or has no active plane.
        UnsupportedError: several planes and more than `MAX_PHASES` phases.
    """
    if not profile.is_peaked or not profile.active_planes:
        raise InvalidInputError("staircase: needs a profile with real, non-negative coefficients, not all zero")
    if len(profile.active_planes) == 1:
        return one_plane_staircase(profile.spectrum.angles[profile.active_planes[0]], reach)
    return _sampled(profile, reach)


def _sampled(profile: LogitProfile, reach: int) -> SampledStaircase:
    used = len(profile.active_planes)
    if used * reach > MAX_PHASES:
        raise UnsupportedError(
            f"the margin of {used} planes is evaluated at every displacement, here up to {short(reach)}; "
            f"the limit is {MAX_PHASES // used}: use a shorter length or one plane"
        )
    steps: list[int] = []
    gaps: list[float] = []
    lowest = np.inf
    for start in range(1, reach + 1, _BLOCK):
        t = np.arange(start, min(start + _BLOCK, reach + 1))
        gap = profile.gap(t) / profile.weight
        running = np.minimum.accumulate(np.minimum(gap, lowest))
        falls = np.flatnonzero(running < np.concatenate([[lowest], running[:-1]]))
        steps += t[falls].tolist()
        gaps += running[falls].tolist()
        lowest = running[-1]
    period = common_period(profile)
    if period is not None and period <= reach:  # the exact 0 there, however the computed gaps came out
        kept = sum(t < period for t in steps)
        steps, gaps = [*steps[:kept], period], [*gaps[:kept], 0.0]
    return SampledStaircase(reach=reach, steps=tuple(steps), gaps=tuple(gaps), period=period)


def common_period(profile: LogitProfile) -> int | None:
    """Smallest displacement at which all active planes have made whole turns; None unless all turns are rational.

    Turns p_k/q_k in lowest terms are whole together first at lcm(q_k).
    """
    turns = [profile.spectrum.rational_turn(plane) for plane in profile.active_planes]
    if not turns or any(turn is None for turn in turns):
        return None
    return lcm(*(turn.denominator for turn in turns if turn is not None))


def index_curve(profile: LogitProfile, lengths: Sequence[int], *, digits: int = DOUBLE_DIGITS) -> MarginCurve:
    """Margin, best and worst of an index head at several lengths.

    Args:
        profile: of a built index head; its origin is the offset s, its `max_offset` bounds the class that `best` and
            `worst` range over.
        lengths: n, each larger than the offset; for one plane any size up to 10**1000.
        digits: significant digits to prove on the exact route.

    Raises:
        InvalidInputError: a length below 2 or not above the offset.
        UnsupportedError: see `staircase`.

    Accuracy: one plane: enclosures that prove `digits` digits. Several: absolute error `LOGIT_ERROR`.

    Source: docs/MATHEMATICS.md, section 5.

    Example:
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> profile = LogitProfile(spectrum=RopeSpectrum.from_angle("1"), coefficients=np.ones(1))
        >>> index_curve(profile, [1001]).points[0].margin.digits()
        '1.8173640789234051e-9'
    """
    ns = check_lengths("index_curve", lengths)
    offset = check_target("index_curve", profile.origin, ns)
    max_offset = profile.max_offset
    if max_offset is not None and max_offset < offset:
        raise InvalidInputError(
            f"index_curve: offset {short(offset)} is outside the class of offsets 0..{short(max_offset)}"
        )
    steps = staircase(profile, max(ns) - 1)
    cache: dict[int, Enclosure] = {}

    def at_reach(reach: int) -> tuple[int, Enclosure]:
        index = steps.index_at(reach)
        if index not in cache:
            cache[index] = steps.margin(index, digits)
        return steps.steps[index], cache[index]

    points = []
    for n in ns:
        t, margin = at_reach(max(offset, n - 1 - offset))
        largest = n - 1 if max_offset is None else min(max_offset, n - 1)
        points.append(
            MarginPoint(
                length=n,
                margin=margin,
                best=at_reach(max(n // 2, n - 1 - largest))[1],
                worst=at_reach(n - 1)[1],
                at=t if t <= n - 1 - offset else -t,
                method=steps.method,
            )
        )
    return MarginCurve(
        points=tuple(points),
        margin_of=f"offset {short(offset)}",
        inputs="offsets 0..n-1" if max_offset is None else f"offsets 0..{short(max_offset)} within the length",
        beta=profile.weight,
    )


def profile_curve(profile: LogitProfile, lengths: Sequence[int], *, target: int) -> MarginCurve:
    """Margin of any profile, by definition: logit(target) minus the largest logit at another distance below n.

    For a profile with phases, as a trained head has. There is one key content and one query content, so `best` and
    `worst` are the margin itself.

    Args:
        profile: any coefficients.
        lengths: n, each above the target.
        target: distance of the right position.

    Raises:
        InvalidInputError: a length below 2 or not above the target.
        UnsupportedError: more than `MAX_PHASES` phases.

    Accuracy: absolute error twice `LogitProfile.abs_error`, per unit of the weight.

    Source: docs/MATHEMATICS.md, section 4.
    """
    ns = check_lengths("profile_curve", lengths)
    check_target("profile_curve", target, ns)
    if profile.weight == 0:
        raise InvalidInputError("profile_curve: all coefficients are zero, so every logit is equal")
    used = max(1, len(profile.active_planes))
    if used * max(ns) > MAX_PHASES:
        raise UnsupportedError(
            f"profile_curve: every distance is evaluated, up to length {MAX_PHASES // used} for {used} planes; "
            f"length {short(max(ns))} is beyond"
        )
    top = float(profile.logit(np.array([target]))[0])
    found: dict[int, tuple[float, int]] = {}
    second, at, done = -np.inf, 0, 0
    for n in sorted(set(ns)):
        for start in range(done, n, _BLOCK):
            d = np.arange(start, min(start + _BLOCK, n))
            logits = np.where(d == target, -np.inf, profile.logit(d))
            place = int(logits.argmax())
            if logits[place] > second:
                second, at = float(logits[place]), start + place - target
        done = n
        found[n] = (top - second, at)
    error = 2 * profile.abs_error / profile.weight
    points = []
    for n in ns:
        margin = Enclosure.around(found[n][0] / profile.weight, error)
        points.append(
            MarginPoint(length=n, margin=margin, best=margin, worst=margin, at=found[n][1], method="definition")
        )
    return MarginCurve(
        points=tuple(points),
        margin_of=f"target at distance {short(target)}",
        inputs="this query and key content",
        beta=profile.weight,
    )

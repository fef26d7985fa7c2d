r"""Margins of any profile, with phases as a trained head has: one query content against one key content.

There is no class of inputs to range over: margin(n) = logit(target) - max over the other distances d < n of logit(d),
and `best` and `worst` are the margin itself. As the length grows, only a rival above all before it changes the
margin, so the running maxima of the others (`Sweep.records`) give every length in one pass. In units of the weight
the margin is the difference of two deficits (`certify.py`), proved in ball arithmetic.

Source: docs/MATHEMATICS.md, section 4.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from jaxtyping import Float, Int

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.engine.certify import ExactDeficit
from ropegeo.engine.margin import MarginCurve, MarginPoint, check_lengths, check_profile, check_target
from ropegeo.engine.phase_margin import one_plane_phase_curve
from ropegeo.engine.searches import search
from ropegeo.engine.staircase import LAST_DIGITS, common_period, exact_records, lowered
from ropegeo.engine.work import Progress, Work
from ropegeo.exact import Enclosure, short
from ropegeo.exact.enclosure import DOUBLE_DIGITS
from ropegeo.heads import LogitProfile


def profile_curve(
    profile: LogitProfile,
    lengths: Sequence[int],
    *,
    target: int,
    digits: int = DOUBLE_DIGITS,
    route: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> MarginCurve:
    """Margin of any profile: logit(target) minus the largest logit at another distance below n.

    Args:
        profile: any coefficients.
        lengths: n, each above the target.
        target: distance of the right position.
        digits: significant digits to prove.
        route: `first_return` (one plane, any length), or how rivals are found, see `searches.py`; `auto` takes the
            fastest.
        threads: for `streamed`; all usable cores if not given.
        progress: called now and then with the number of distances done.

    Raises:
        InvalidInputError: a length below 2 or not above the target, or an unknown route.
        UnsupportedError: a length that the route does not reach.

    Accuracy: enclosures that prove `digits` digits, unless the two logits agree in `LAST_DIGITS` digits.

    Source: docs/MATHEMATICS.md, section 4.
    """
    if len(profile.active_planes) == 1 and route in ("auto", "first_return"):
        return one_plane_phase_curve(profile, lengths, target, digits)
    ns = check_lengths("margin_curve", lengths)
    check_target("margin_curve", target, ns)
    name = "closed_form"
    if profile.weight == 0:
        steps = [1 if target == 0 else 0]  # all logits are the constant: the first rival ties
        margins = {steps[0]: Enclosure.exactly(0)}
    else:
        ends = tuple(n - 1 - profile.origin for n in sorted(set(ns)))
        ranges = others(profile, max(ns), target)
        work = Work(profile=profile, ranges=ranges, ends=ends, threads=threads, progress=progress)
        name, (candidates, slack) = search(work, route)
        deficit = ExactDeficit(profile)
        steps = [t + profile.origin for t in exact_records(deficit, candidates)]
        strongest = {steps[bisect_left(steps, n) - 1] for n in ns}  # of the running maxima, those that a length ends on
        margins = {d: lowered(margin_between(profile, deficit, target, d, digits), slack) for d in strongest}
    points = []
    for n in ns:
        rival = steps[bisect_left(steps, n) - 1]
        margin = margins[rival]
        points.append(MarginPoint(length=n, margin=margin, best=margin, worst=margin, at=rival - target, method=name))
    return MarginCurve(
        points=tuple(points),
        margin_of=f"target at distance {short(target)}",
        inputs="this query and key content",
        beta=profile.weight,
    )


def margin_between(profile: LogitProfile, deficit: ExactDeficit, target: int, rival: int, digits: int) -> Enclosure:
    """logit(target) - logit(rival) in units of the weight, proved; exactly 0 where the two are known to be equal.

    Known to be equal: all active planes turn a whole number of times from one distance to the other, or the
    coefficients are real and the distances lie alike about the origin.
    """
    t, u = target - profile.origin, rival - profile.origin
    if _equal(profile, t, u):
        return Enclosure.exactly(0)
    wanted = digits
    while True:
        one, other = deficit.at(t, wanted), deficit.at(u, wanted)
        margin = Enclosure(low=other.low - one.high, high=other.high - one.low)
        if margin.proves(digits) or wanted >= max(LAST_DIGITS, 4 * digits):
            return margin
        wanted *= 2


def _equal(profile: LogitProfile, t: int, u: int) -> bool:
    if abs(t) == abs(u) and not profile.coefficients.imag.any():
        return True
    turns = [profile.spectrum.rational_turn(plane) for plane in profile.active_planes]
    return all(turn is not None and ((t - u) * turn).denominator == 1 for turn in turns)


def others(profile: LogitProfile, length: int, without: int | None) -> tuple[tuple[int, int], ...]:
    """Ranges of displacements that hold every logit of the distances below a length but one.

    With a common period, d scores as d mod period, and the one's own place as the place a period after it: two periods
    hold all there is.
    """
    period = common_period(profile)
    last = length - 1 if period is None else min(length - 1, 2 * period - 1)
    ranges = [(0, last)]
    if without is not None and without <= last:
        ranges = [(0, without - 1), (without + 1, last)]
    return tuple((low - profile.origin, high - profile.origin) for low, high in ranges if low <= high)


def plane_contributions(
    profile: LogitProfile, distances: Int[IntArray, "*shape"]
) -> Float[FloatArray, "*shape planes"]:
    """What each plane adds to the logit at chosen distances: Re c_k exp(i theta_k (d - origin)), in logit units.

    The planes' sum, with the constant, is `LogitProfile.logit`.

    Args:
        profile: any coefficients.
        distances: integers with |d - origin| < 2**62.

    Accuracy: each within `LOGIT_ERROR` times |c_k|.

    Source: docs/MATHEMATICS.md, section 1.
    """
    return check_profile("plane_contributions", profile).contributions(distances)

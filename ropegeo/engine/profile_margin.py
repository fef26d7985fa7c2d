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
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.engine.candidates import CAPACITY, TooManyTiesError
from ropegeo.engine.certify import ExactDeficit
from ropegeo.engine.margin import MarginCurve, MarginPoint, check_lengths, check_target, status_of
from ropegeo.engine.phase_margin import one_plane_phase_curve
from ropegeo.engine.searches import Progress, Work, check_streamed, search
from ropegeo.engine.staircase import LAST_DIGITS, common_period, exact_records, is_below, lowered
from ropegeo.errors import UnsupportedError
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
    ns = check_lengths("profile_curve", lengths)
    check_target("profile_curve", target, ns)
    name = "closed_form"
    if profile.weight == 0:
        steps = [1 if target == 0 else 0]  # all logits are the constant: the first rival ties
        margins = {steps[0]: Enclosure.exactly(0)}
    else:
        aim, last = target - profile.origin, max(ns) - 1 - profile.origin
        period = common_period(profile)
        if period is not None:  # d scores as d mod period, and the target's own place as the target's plus a period
            last = min(last, 2 * period - 1 - profile.origin)
        ranges = tuple((low, high) for low, high in ((-profile.origin, aim - 1), (aim + 1, last)) if low <= high)
        ends = tuple(n - 1 - profile.origin for n in sorted(set(ns)))
        work = Work(profile=profile, ranges=ranges, ends=ends, threads=threads, progress=progress)
        name, (candidates, slack) = search(work, route)
        deficit = ExactDeficit(profile)
        steps = [t + profile.origin for t in exact_records(deficit, candidates)]
        margins = {d: lowered(margin_between(profile, deficit, target, d, digits), slack) for d in steps}
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


@dataclass(frozen=True, eq=False, kw_only=True)
class TopTwo:
    """The two largest logits of a profile over the distances 0..n-1.

    Attributes:
        length: n.
        at: distance of the largest.
        second_at: distance of the second largest.
        top: the largest logit, to `abs_error`.
        second: the second largest logit, to `abs_error`.
        abs_error: bound on the error of both, in logit units.
        margin: their difference, in units of the weight, proved.
        tied: all distances whose logit is the largest, `at` among them: several if and only if the margin is exactly 0.
    """

    length: int
    at: int
    second_at: int
    top: float
    second: float
    abs_error: float
    margin: Enclosure
    tied: tuple[int, ...]

    @property
    def status(self) -> str:
        """`wins` or `tie` (exactly 0); `undecided` where two logits agree in `LAST_DIGITS` digits."""
        return status_of(self.margin)


def top_two(
    profile: LogitProfile,
    length: int,
    *,
    digits: int = DOUBLE_DIGITS,
    threads: int | None = None,
    progress: Progress | None = None,
) -> TopTwo:
    """The largest and second largest logit over the distances 0..n-1, by one pass over all of them.

    Args:
        profile: any coefficients.
        length: n >= 2.
        digits: significant digits of the margin to prove.
        threads: all usable cores if not given.
        progress: called now and then with the number of distances done.

    Raises:
        InvalidInputError: a length below 2.
        UnsupportedError: a length beyond what is streamed, or so many equal logits that they cannot be listed.

    Example:
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> profile = LogitProfile(spectrum=RopeSpectrum.from_angle("1/5 turn"), coefficients=np.ones(1), origin=3)
        >>> found = top_two(profile, 9)
        >>> found.at, found.second_at, found.status, found.tied
        (3, 8, 'tie', (3, 8))
    """
    (n,) = check_lengths("top_two", [length])
    check_streamed(max(1, len(profile.active_planes)), n)
    if profile.weight == 0:
        if n > CAPACITY:
            raise UnsupportedError(f"top_two: all {short(n)} logits are equal, and up to {CAPACITY} are listed")
        everything = tuple(range(n))
        return _top_two(profile, n, everything[:2], Enclosure.exactly(0), everything)
    from ropegeo.engine.sweep import Sweep

    try:
        (found,) = Sweep((profile,), threads=threads).top_two(
            -profile.origin, n - 1 - profile.origin, progress=progress
        )
    except TooManyTiesError as error:
        raise UnsupportedError("top_two: thousands of logits equal the largest, too many to list") from error
    deficit = ExactDeficit(profile)
    order: list[tuple[int, Enclosure]] = []
    for t in found.at.tolist():  # insertion by exact comparison: a handful of candidates
        value = deficit.at(t, digits)
        place = next((i for i, other in enumerate(order) if is_below(deficit, (t, value), other)), len(order))
        order.insert(place, (t, value))
    places = [t + profile.origin for t, _ in order]
    tied = [places[0]] + [d for d in places[1:] if margin_between(profile, deficit, places[0], d, digits).sign == 0]
    return _top_two(
        profile,
        n,
        (places[0], tied[1] if len(tied) > 1 else places[1]),
        margin_between(profile, deficit, places[0], places[1], digits) if len(tied) == 1 else Enclosure.exactly(0),
        tuple(sorted(tied)),
    )


def _top_two(
    profile: LogitProfile, length: int, at: tuple[int, ...], margin: Enclosure, tied: tuple[int, ...]
) -> TopTwo:
    top, second = profile.logit(np.array(at)).tolist()
    return TopTwo(
        length=length,
        at=at[0],
        second_at=at[1],
        top=top,
        second=second,
        abs_error=profile.abs_error,
        margin=margin,
        tied=tied,
    )


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
    phases = profile.spectrum.phases(np.asarray(np.asarray(distances) - profile.origin))
    c = profile.coefficients
    return np.asarray(c.real * np.cos(phases) - c.imag * np.sin(phases))

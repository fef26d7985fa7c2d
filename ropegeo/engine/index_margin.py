r"""Margins of index heads: every length from one staircase.

The profile is beta * sum_k a_k cos(t theta_k) in the displacement t = d - s, even in t. A query with offset s at
length n sees t in {-s, .., n-1-s}, so its margin is the minimum of the gap over 1 <= |t| <= T with *reach* T = max(s,
n-1-s):

* `margin`: T = max(s, n-1-s);
* `worst`, over offsets 0..m: T = n-1, reached by s = 0 (and by s = n-1);
* `best`, over offsets 0..m with m < n: T = max(ceil((n-1)/2), n-1-m), the offset nearest to the middle.

Source: docs/MATHEMATICS.md, sections 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import TypeAlias

from ropegeo.engine.margin import MarginCurve, MarginPoint, check_lengths, check_target
from ropegeo.engine.route_names import AUTO, BOUND
from ropegeo.engine.staircase import Staircase, staircase
from ropegeo.engine.work import STREAMED_AT_ONCE, Progress
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import Enclosure, short
from ropegeo.exact.enclosure import DOUBLE_DIGITS
from ropegeo.heads import LogitProfile


def index_curve(
    profile: LogitProfile,
    lengths: Sequence[int],
    *,
    digits: int = DOUBLE_DIGITS,
    route: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> MarginCurve:
    """Margin, best and worst of an index head at several lengths.

    Args:
        profile: of a built index head; its origin is the offset s, its `max_offset` bounds the class that `best` and
            `worst` range over.
        lengths: n, each larger than the offset; for one plane any size up to 10**1000.
        digits: significant digits to prove.
        route: how the steps are found, see `staircase`; `return_bound` for certified upper bounds only, which `auto`
            comes down to where no route reaches.
        threads: for routes that share work out; all usable cores if not given.
        progress: called now and then with the number of displacements done.

    Raises:
        InvalidInputError: a length below 2 or not above the offset.
        UnsupportedError: see `staircase`.

    Accuracy: enclosures that prove `digits` digits; see `RecordStaircase.slack` for the one exception.

    Source: docs/MATHEMATICS.md, section 5.

    Example:
        >>> import numpy as np
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> profile = LogitProfile(spectrum=RopeSpectrum.from_angle("1"), coefficients=np.ones(1))
        >>> index_curve(profile, [1001]).points[0].margin.digits()
        '1.8173640789234051e-9'
    """
    ns = check_lengths("margin_curve", lengths)
    offset = check_target("margin_curve", profile.origin, ns)
    max_offset = profile.max_offset
    if max_offset is not None and max_offset < offset:
        raise InvalidInputError(
            f"margin_curve: offset {short(offset)} is outside the class of offsets 0..{short(max_offset)}"
        )
    if route == BOUND and profile.active_planes:
        return _points(_bounds(profile, digits, None), profile, ns)
    try:
        steps = staircase(
            profile, max(ns) - 1, route=AUTO if route == BOUND else route, threads=threads, progress=progress
        )
    except UnsupportedError:
        if route != "auto":
            raise
        near = _longest(profile, sorted({n - 1 for n in ns})[:-1], threads, progress)
        return _points(_bounds(profile, digits, near), profile, ns)
    return curve_of(steps, profile, ns, digits)


def _longest(
    profile: LogitProfile, reaches: list[int], threads: int | None, progress: Progress | None
) -> Staircase | None:
    """The staircase of the largest of some increasing reaches that a route gets to, by bisection."""
    found, low, high = None, 0, len(reaches)
    while low < high:
        middle = (low + high) // 2
        try:
            found = staircase(profile, reaches[middle], threads=threads, progress=progress)
            low = middle + 1
        except UnsupportedError:
            high = middle
    return found


def curve_of(steps: Staircase, profile: LogitProfile, lengths: Sequence[int], digits: int) -> MarginCurve:
    """The curve at lengths that a staircase reaches."""
    cached = cache(lambda index: steps.margin(index, digits))

    def lookup(reach: int) -> _Fall:
        index = steps.index_at(reach)
        return steps.steps[index], cached(index), steps.method

    return _points(lookup, profile, lengths)


_Fall: TypeAlias = tuple[int, Enclosure, str]
"""Where the smallest gap up to a reach lies, that gap, and the route."""


def _bounds(profile: LogitProfile, digits: int, exact: Staircase | None) -> Callable[[int], _Fall]:
    """Upper bounds by lattice reduction; exact as far as a staircase that is known, or a short one, reaches."""
    from ropegeo.engine.return_bound import return_bound

    near = exact or staircase(profile, max(1, STREAMED_AT_ONCE // max(1, len(profile.active_planes))))

    @cache
    def lookup(reach: int) -> _Fall:
        if reach <= near.reach:
            index = near.index_at(reach)
            return near.steps[index], near.margin(index, digits), near.method
        last = len(near.steps) - 1
        known, found = near.margin(last, digits), return_bound(profile, reach, digits=digits)
        t, lowest = (
            (near.steps[last], known) if known.high <= found.deficit.high else (found.displacement, found.deficit)
        )
        return t, Enclosure(low=Fraction(0), high=lowest.high), BOUND

    return lookup


def _points(lookup: Callable[[int], _Fall], profile: LogitProfile, lengths: Sequence[int]) -> MarginCurve:
    offset, max_offset = profile.origin, profile.max_offset
    points = []
    for n in lengths:
        t, margin, method = lookup(max(offset, n - 1 - offset))
        largest = n - 1 if max_offset is None else min(max_offset, n - 1)
        points.append(
            MarginPoint(
                length=n,
                margin=margin,
                best=lookup(max(n // 2, n - 1 - largest))[1],
                worst=lookup(n - 1)[1],
                at=t if t <= n - 1 - offset else -t,
                method=method,
            )
        )
    return MarginCurve(
        points=tuple(points),
        margin_of=f"offset {short(offset)}",
        inputs="offsets 0..n-1" if max_offset is None else f"offsets 0..{short(max_offset)} within the length",
        beta=profile.weight,
    )

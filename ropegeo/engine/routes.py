"""One way in: the margin curve of any built profile, by a route chosen from what the profile is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from ropegeo.engine.index_margin import curve_of, index_curve
from ropegeo.engine.margin import MarginCurve, check_digits, check_lengths, check_profile, check_target
from ropegeo.engine.profile_margin import profile_curve
from ropegeo.engine.retrieval_margin import letter_curve
from ropegeo.engine.route_names import AUTO, ROUTES
from ropegeo.engine.staircase import staircase, staircases
from ropegeo.engine.threads import thread_count
from ropegeo.engine.trust import first_failing_length
from ropegeo.engine.work import STREAMED_AT_ONCE, Progress
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact.enclosure import DOUBLE_DIGITS
from ropegeo.heads import LetterProfile, LogitProfile


def check_route(call: str, route: str) -> None:
    """Raise unless a route has this name.

    Raises:
        InvalidInputError: none has.
    """
    if route not in (AUTO, *ROUTES):
        raise InvalidInputError(f"{call}: route {route!r} is unknown; use one of {', '.join((AUTO, *ROUTES))}")


def margin_curve(
    profile: LogitProfile | LetterProfile | object,
    lengths: Sequence[int],
    *,
    target: int | None = None,
    digits: int = DOUBLE_DIGITS,
    route: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> MarginCurve:
    """Margin, best and worst of any profile at several lengths.

    Args:
        profile: what the head scores: `BuiltHead.profile`, or `Head.profile` of two contents.
        lengths: n >= 2 each, increasing.
        target: distance of the right position. For a built index head it is the offset of the query, the profile's own
            if not given; for a letter-matching head the distance of the answer, the worst one if not given. A profile
            with phases (not `is_peaked`) needs it.
        digits: significant digits to prove where an exact route exists.
        route: one of `route_names.ROUTES`; `auto` takes the fastest that reaches. All that apply give the same numbers.
        threads: for routes that share work out; all usable cores if not given.
        progress: called now and then with the number of distances done.

    Returns:
        The curve; each point names its `method` and error.

    Raises:
        InvalidInputError: lengths or targets out of range, or no target where one is needed.
        UnsupportedError: a length that no route reaches.

    Example:
        >>> from ropegeo import index_head, preset
        >>> curve = margin_curve(index_head(preset("paper"), offset=3).profile, [1024, 10**30])
        >>> [point.margin.digits(6) for point in curve.points]
        ['1.81736e-9', '7.11866e-60']
    """
    if not isinstance(profile, LogitProfile | LetterProfile):
        raise InvalidInputError(
            f"margin_curve: needs a profile, not a {type(profile).__name__}; use .profile, or Head.profile(query, key)"
        )
    check_route("margin_curve", route)
    check_digits("margin_curve", digits)
    thread_count(threads)
    if isinstance(profile, LetterProfile):
        return letter_curve(
            profile, lengths, target=target, digits=digits, route=route, threads=threads, progress=progress
        )
    if profile.is_peaked:
        aimed = profile if target is None else replace(profile, origin=target)
        return index_curve(aimed, lengths, digits=digits, route=route, threads=threads, progress=progress)
    if target is None:
        raise InvalidInputError("margin_curve: a profile with phases needs target=, the distance of the right position")
    return profile_curve(
        profile, lengths, target=target, digits=digits, route=route, threads=threads, progress=progress
    )


def margin_curves(
    profiles: Sequence[LogitProfile],
    lengths: Sequence[int],
    *,
    digits: int = DOUBLE_DIGITS,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[MarginCurve, ...]:
    """Margin curves of many heads, those of several planes on one spectrum in one pass over the distances.

    Args:
        profiles: of index heads (real, non-negative coefficients), each with its own offset.
        lengths: n, above every offset.
        digits: significant digits to prove.
        threads: all usable cores if not given.
        progress: called now and then with the number of displacements done.

    Returns:
        One curve a profile, in order, each what `margin_curve` gives alone. Heads of one plane, and lengths beyond what
        is streamed at once, are computed one by one.

    Raises:
        InvalidInputError: no profiles, other profiles, or lengths out of range.
        UnsupportedError: as `margin_curve`.
    """
    ns = check_lengths("margin_curves", lengths)
    check_digits("margin_curves", digits)
    thread_count(threads)
    heads = [check_profile("margin_curves", profile) for profile in profiles]
    if not heads or not all(head.is_peaked for head in heads):
        raise InvalidInputError("margin_curves: needs profiles of index heads (real, non-negative coefficients)")
    reach = max(ns) - 1
    curves: dict[int, MarginCurve] = {}
    together = [place for place, head in enumerate(heads) if len(head.active_planes) > 1]
    size = reach * sum(len(heads[place].active_planes) for place in together)
    shared = len({id(heads[place].spectrum) for place in together}) == 1
    if len(together) > 1 and shared and size <= len(together) * STREAMED_AT_ONCE:
        for place in together:
            check_target("margin_curves", heads[place].origin, ns)
        stairs = staircases([heads[place] for place in together], reach, threads=threads, progress=progress)
        for place, steps in zip(together, stairs, strict=True):
            curves[place] = curve_of(steps, heads[place], ns, digits)
    for place, head in enumerate(heads):
        if place not in curves:
            curves[place] = margin_curve(head, ns, digits=digits, threads=threads, progress=progress)
    return tuple(curves[place] for place in range(len(heads)))


def record_curve(
    profile: LogitProfile,
    length: int,
    *,
    target: int | None = None,
    digits: int = DOUBLE_DIGITS,
    route: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> MarginCurve:
    """The whole curve margin(n) of an index head for every n up to a length, as its steps.

    Args:
        profile: real, non-negative coefficients (a built index or positional reflexive head).
        length: largest n.
        target: the offset; the profile's own if not given.
        digits: significant digits to prove.
        route: as `margin_curve`.
        threads: for routes that share work out; all usable cores if not given.
        progress: called now and then with the number of displacements done.

    Returns:
        One point for each length at which the margin falls, the first length with a rival among them; between points
        the margin is that of the point before. `best` and `worst` are those of the same lengths.

    Raises:
        InvalidInputError: a profile that is no staircase, or a length not above the offset.
        UnsupportedError: a length that no route reaches.

    Source: docs/MATHEMATICS.md, section 5.
    """
    check_route("record_curve", route)
    check_digits("record_curve", digits)
    thread_count(threads)
    if not check_profile("record_curve", profile).is_peaked:
        raise InvalidInputError(
            "record_curve: only the margin of an index head (real, non-negative coefficients) is a staircase; use "
            "margin_curve with lengths"
        )
    (n,) = check_lengths("record_curve", [length])
    aimed = profile if target is None else replace(profile, origin=target)
    offset = check_target("record_curve", aimed.origin, [n])
    steps = staircase(aimed, n - 1, route=route, threads=threads, progress=progress)
    first = max(2, offset + 1)
    falls = {first, *(offset + 1 + t for t in steps.steps if t > offset)}
    return replace(curve_of(steps, aimed, sorted(m for m in falls if m <= n), digits), complete_to=n)


def drawn_lengths(
    profile: LogitProfile | LetterProfile, first: int, last: int, *, offset: int = 0, count: int = 400
) -> list[int]:
    """Lengths from `first` to `last` that draw a whole curve: evenly spaced in the logarithm, and every change between.

    For an index head a change is a length at which margin, best or worst takes the next step of its staircase; for a
    letter head it is the first length that fails.

    Args:
        profile: what the head scores.
        first: smallest length, at least 2.
        last: largest length, of any size.
        offset: index heads: the offset of the query.
        count: number of evenly spaced lengths.

    """
    # Powers of two with 60 fractional bits, so that lengths beyond the range of doubles are spaced as well.
    low, high = first.bit_length() - 1, last.bit_length()
    spaced = set()
    for step in range(count + 1):
        whole, rest = divmod(step * (high - low), count)
        spaced.add((int(2.0 ** (60 + rest / count)) << (whole + low)) >> 60)
    changes: set[int] = set()
    if isinstance(profile, LetterProfile):
        failing = first_failing_length(profile)
        changes |= {failing - 1, failing} if failing is not None else set()
    elif profile.is_peaked:  # with phases only the lengths asked for are known to matter
        with suppress(UnsupportedError):  # where no route reaches, only the spaced lengths are drawn
            for t in staircase(profile, last - 1).steps:  # lengths whose reach passes t: margin, worst, best
                changes |= {t + offset, t + offset + 1, t, t + 1, 2 * t, 2 * t + 1}
    return sorted(n for n in spaced | changes | {first, last} if first <= n <= last)

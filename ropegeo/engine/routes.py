"""One way in: the margin curve of any built profile, by a route chosen from what the profile is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ropegeo.engine.index_margin import index_curve
from ropegeo.engine.margin import MarginCurve
from ropegeo.engine.profile_margin import profile_curve
from ropegeo.engine.retrieval_margin import letter_curve
from ropegeo.engine.staircase import staircase
from ropegeo.engine.trust import first_failing_length
from ropegeo.errors import InvalidInputError
from ropegeo.exact.enclosure import DOUBLE_DIGITS
from ropegeo.heads import LetterProfile, LogitProfile


def margin_curve(
    profile: LogitProfile | LetterProfile | object,
    lengths: Sequence[int],
    *,
    target: int | None = None,
    digits: int = DOUBLE_DIGITS,
) -> MarginCurve:
    """Margin, best and worst of any profile at several lengths.

    Args:
        profile: what the head scores: `BuiltHead.profile`, or `Head.profile` of two contents.
        lengths: n >= 2 each.
        target: distance of the right position. For a built index head it is the offset of the query, the profile's
        own if
            not given; for a letter-matching head the distance of the answer, the worst one if not given. A profile with
            phases (not `is_peaked`) needs it.
        digits: significant digits to prove where an exact route exists.

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
    if isinstance(profile, LetterProfile):
        return letter_curve(profile, lengths, target=target, digits=digits)
    if profile.is_peaked:
        return index_curve(profile if target is None else replace(profile, origin=target), lengths, digits=digits)
    if target is None:
        raise InvalidInputError("margin_curve: a profile with phases needs target=, the distance of the right position")
    return profile_curve(profile, lengths, target=target)


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

    Raises:
        UnsupportedError: a length that no route reaches.
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
    else:
        for t in staircase(profile, last - 1).steps:  # lengths whose reach passes t: margin, worst, best
            changes |= {t + offset, t + offset + 1, t, t + 1, 2 * t, 2 * t + 1}
    return sorted(n for n in spaced | changes | {first, last} if first <= n <= last)

"""One way in: the margin curve of any built profile, with the route chosen by what the profile is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ropegeo.engine.index_margin import index_curve
from ropegeo.engine.margin import MarginCurve
from ropegeo.engine.retrieval_margin import letter_curve
from ropegeo.exact.enclosure import DOUBLE_DIGITS
from ropegeo.heads import LetterProfile, LogitProfile


def margin_curve(
    profile: LogitProfile | LetterProfile,
    lengths: Sequence[int],
    *,
    offset: int | None = None,
    max_offset: int | None = None,
    self_only: bool = False,
    digits: int = DOUBLE_DIGITS,
) -> MarginCurve:
    """Margin, best and worst of a built head at several lengths.

    Args:
        profile: what the head scores.
        lengths: n >= 2 each.
        offset: index heads: the offset of the query, if not the profile's own. Letter heads: distance of the answer
            whose margin is wanted; the worst one if not given.
        max_offset: index heads: largest offset of the class that `best` and `worst` range over.
        self_only: letter heads: queries look for themselves.
        digits: significant digits to prove where an exact route exists.

    Returns:
        The curve; each point names its `method` and error.

    Raises:
        InvalidInputError: lengths or offsets out of range.
        UnsupportedError: a length that no route reaches.

    Example:
        >>> from ropegeo import index_head, preset
        >>> curve = margin_curve(index_head(preset("paper"), offset=3).profile, [1024, 10**30])
        >>> [point.margin.digits(6) for point in curve.points]
        ['1.81736e-9', '7.11866e-60']
    """
    if isinstance(profile, LetterProfile):
        return letter_curve(profile, lengths, target=offset, self_only=self_only, digits=digits)
    aimed = profile if offset is None else replace(profile, origin=offset)
    return index_curve(aimed, lengths, max_offset=max_offset, digits=digits)

r"""The set of bases that are admissible for a length.

A base b > 1 is *admissible* for a rotation of r coordinates and length L if

    B_m(b) = sum_{k < r/2} cos(m b^(-2k/r)) >= 0    for m = 0, 1, .., L - 1,

the distances that occur within L positions. Up to one factor B_m is what a key like its query scores above a random
one at distance m, on average; where it is negative, likeness counts against itself. Men et al. (arXiv 2405.14591, eq.
9 to 11) propose this and take the infimum of the admissible bases as a lower bound for the base. The set itself is
not all bases above that infimum: for r = 128 and L = 4096 it starts at 26952.3, has a gap already from 26973.1 on,
and only from 58789.5 on is every base admissible.

**What is proved.** As b -> 1 all planes turn alike and B_m -> (r/2) cos m, which is negative at m = 2, so for L > 2 no
base close to 1 is admissible; the search covers all u = ln(b) from 0 (`base_search.py`: float64 with a proved bound on
its error) to a point beyond which a bound that never falls with b is not negative. Each end is then enclosed in balls,
and shown to be the only one where it is (`base_ends.py`). So the intervals are all there are. With r = 2 there is no
choice: the one plane turns by 1, and B_m = cos m. At L = 2 every base is admissible, since no plane turns by more
than 1 < pi/2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from ropegeo.errors import FileFormatError, InvalidInputError, RopegeoError, UnsupportedError
from ropegeo.exact import Enclosure, plain_integer
from ropegeo.limits.base_ends import admissible_pieces, base_at
from ropegeo.limits.base_search import cover
from ropegeo.spectrum.rope import decimal_text, exact_number

SCHEMA = "ropegeo.bases/1"
MAX_LENGTH = 1 << 17
MAX_TERMS = 1 << 23
"""Planes times length: the work grows with its product with the length, to some minutes."""
MAX_ROTARY_DIM = 8192


@dataclass(frozen=True, eq=False, kw_only=True)
class BaseInterval:
    """Bases from one number to another, both included, or from one on.

    Attributes:
        low: where it begins; exactly 1, then not included, where every base above 1 belongs to it.
        high: where it ends; None if it does not.
        low_distance: the m whose B_m is 0 at `low`, and negative just below; None at 1.
        high_distance: the m whose B_m is 0 at `high`, and negative just above; None without an end.
    """

    low: Enclosure
    high: Enclosure | None
    low_distance: int | None
    high_distance: int | None

    def contains(self, base: Fraction) -> bool | None:
        """Whether a base lies in it; None within the enclosure of an end."""
        if base < self.low.low or (self.high is not None and base > self.high.high):
            return False
        if base <= self.low.high or (self.high is not None and base >= self.high.low):
            return None
        return True


@dataclass(frozen=True, eq=False, kw_only=True)
class AdmissibleBases:
    """All bases above 1 for which no B_m, m < length, is negative.

    Attributes:
        rotary_dim: r, the number of rotated coordinates.
        length: L.
        intervals: all of them, in order and disjoint; the last has no end. Empty if no base is admissible (r = 2).
    """

    rotary_dim: int
    length: int
    intervals: tuple[BaseInterval, ...]

    def __post_init__(self) -> None:
        ends = [end for each in self.intervals for end in (each.low, each.high) if end is not None]
        if any(one.high >= other.low for one, other in pairwise(ends)):
            raise InvalidInputError("admissible bases: the ends of the intervals must increase")
        if [each.high is None for each in self.intervals] != [False] * (len(self.intervals) - 1) + [True] * bool(
            self.intervals
        ):
            raise InvalidInputError("admissible bases: the last interval, and no other, must have no end")

    @property
    def smallest(self) -> Enclosure | None:
        """The infimum of the admissible bases; None if there is none."""
        return self.intervals[0].low if self.intervals else None

    @property
    def half_line(self) -> Enclosure | None:
        """The base from which on every base is admissible; None if there is none."""
        return self.intervals[-1].low if self.intervals else None

    def contains(self, base: Fraction | int | float | str) -> bool | None:
        """Whether a base is admissible; None where it lies within the enclosure of an end, less than 1e-20 wide.

        Args:
            base: above 1. Text is read as exactly that decimal, a float as exactly the double it is.

        Raises:
            InvalidInputError: not a number above 1.
        """
        exact = exact_number("base", base)
        if exact <= 1:
            raise InvalidInputError(f"contains: base {decimal_text(exact)[:40]} must be larger than 1")
        verdicts = [each.contains(exact) for each in self.intervals]
        return True if True in verdicts else None if None in verdicts else False

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; every base above 1 was searched."""
        return {
            "schema": SCHEMA,
            "rotary_dim": self.rotary_dim,
            "length": self.length,
            "intervals": [
                {
                    **each.low.to_dict("low"),
                    **(_NO_END if each.high is None else each.high.to_dict("high")),
                    "low_distance": each.low_distance,
                    "high_distance": each.high_distance,
                }
                for each in self.intervals
            ],
        }

    @classmethod
    def from_dict(cls, data: Any) -> AdmissibleBases:
        """Read what `to_dict` wrote; ends come back with the width of the digits written.

        Raises:
            FileFormatError: a wrong schema, a missing or malformed field.
        """
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise FileFormatError(f"admissible bases: expected schema {SCHEMA!r}")
        try:
            return cls(
                rotary_dim=plain_integer(data["rotary_dim"]),
                length=plain_integer(data["length"]),
                intervals=tuple(
                    BaseInterval(
                        low=Enclosure.from_dict(row, "low"),
                        high=None if row["high"] is None else Enclosure.from_dict(row, "high"),
                        low_distance=_distance(row["low_distance"]),
                        high_distance=_distance(row["high_distance"]),
                    )
                    for row in data["intervals"]
                ),
            )
        except (KeyError, TypeError, ValueError, RopegeoError) as error:
            raise FileFormatError(f"admissible bases: a field is missing or wrong ({error})") from error


_NO_END: dict[str, Any] = {"high": None, "high_digits": None, "high_abs_error": None}


def _distance(value: Any) -> int | None:
    return None if value is None else plain_integer(value)


def admissible_bases(rotary_dim: int, length: int, *, progress: Callable[[int], None] | None = None) -> AdmissibleBases:
    """All bases b > 1 with sum_k cos(m b^(-2k/r)) >= 0 for every distance m = 0 .. L - 1.

    Args:
        rotary_dim: r, even.
        length: L >= 2 positions.
        progress: called now and then with the thousandths (`base_search.PARTS`) that are done.

    Returns:
        The intervals, each end enclosed.

    Raises:
        InvalidInputError: a length below 2, no plane that turns.
        UnsupportedError: a length or planes x length that would take too long, or ends that cannot be told apart.

    Accuracy: ends to about 1e-24 of themselves; that there are no other intervals is proved, see the module's
    docstring.

    Source: the condition is that of arXiv 2405.14591, eq. 9 to 11, whose bound is the infimum; that the set is a
    union of intervals, and how it is proved, is ours, see the module's docstring.

    Example:
        >>> bases = admissible_bases(16, 64)
        >>> [(each.low.digits(8), each.high and each.high.digits(8)) for each in bases.intervals]
        [('1706.1029', '1749.5094'), ('2768.1817', None)]
        >>> bases.contains(1720), bases.contains(2000), bases.contains(10_000)
        (True, False, True)
    """
    if rotary_dim < 2 or rotary_dim % 2:
        raise InvalidInputError(
            f"admissible_bases: rotary_dim {rotary_dim} must be even and at least 2: with none, no plane turns"
        )
    if length < 2:
        raise InvalidInputError(f"admissible_bases: length {length} must be at least 2, for a distance to look at")
    planes = rotary_dim // 2
    if rotary_dim > MAX_ROTARY_DIM or length > MAX_LENGTH or planes * length > MAX_TERMS:
        raise UnsupportedError(
            f"admissible_bases: length {length} with rotary_dim {rotary_dim} would take hours; use at most "
            f"{min(MAX_LENGTH, MAX_TERMS // planes)} positions and {MAX_ROTARY_DIM} coordinates"
        )
    if planes == 1 and length > 2:
        return AdmissibleBases(rotary_dim=rotary_dim, length=length, intervals=())
    stretches = cover(planes, length, progress=progress)
    pieces = admissible_pieces(planes, stretches)
    intervals = [
        BaseInterval(
            low=base_at(piece.low.place),
            high=base_at(piece.high.place),
            low_distance=piece.low.distance,
            high_distance=piece.high.distance,
        )
        for piece in pieces
    ]
    if not pieces:  # nothing to cover: the half line begins at 1
        intervals = [BaseInterval(low=Enclosure.exactly(1), high=None, low_distance=None, high_distance=None)]
    last = intervals[-1]
    intervals[-1] = BaseInterval(
        low=last.low, high=None, low_distance=last.low_distance, high_distance=last.high_distance
    )
    return AdmissibleBases(rotary_dim=rotary_dim, length=length, intervals=tuple(intervals))

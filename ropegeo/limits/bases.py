r"""Which bases keep a matching head's average score from turning against it: B_m and the set of admissible bases.

For a query and a key of equal content the logit at distance m, averaged over contents, is proportional to

    B_m = sum_k cos(m theta_k),      theta_k = base^(-2k/r),

and where B_m < 0 a key that matches scores below one that does not (Men et al., arXiv 2405.14591, eq. 9 to 11, who call
a base admissible for a context of L tokens if B_m >= 0 for every m = 0..L-1 and give the smallest one). For a given
rotary dimension r the admissible bases are not a half line: above the smallest there are gaps, up to a largest end from
which on every base is admissible. `admissible_bases` finds all of them and proves that there are no others; how is in
`base_search.py`.

Source: docs/MATHEMATICS.md, section 12; arXiv 2405.14591.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.engine.exact_turns import turn_of
from ropegeo.engine.work import Progress, check_phases
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import Enclosure, balls, plain_integer, short
from ropegeo.heads import LOGIT_ERROR
from ropegeo.limits.base_search import Crossing, search_bases
from ropegeo.spectrum import RopeSpectrum
from ropegeo.spectrum.rope import exact_number

SCHEMA = "ropegeo.bases/1"
LARGEST_LENGTH = 1 << 17
"""Longest context whose admissible bases are searched: the work grows with its square, here some minutes."""
LARGEST_ROTARY_DIM = 4096
_CHUNK = 1 << 14
_MOST_BITS = 1 << 12


def base_score(spectrum: RopeSpectrum, distances: Int[IntArray, "*shape"]) -> Float[FloatArray, "*shape"]:
    """B_m = sum_k cos(m theta_k) over the planes of a rotation, between minus and plus their number.

    Args:
        spectrum: any rotation.
        distances: m, integers below 2^62 in size.

    Accuracy: absolute error below 1e-14 times the number of planes.

    Source: arXiv 2405.14591, eq. 9.

    Example:
        >>> float(base_score(RopeSpectrum.from_base(10000, head_dim=4), np.array(0)))
        2.0
    """
    return np.asarray(np.cos(spectrum.phases(np.asarray(distances))).sum(axis=-1))


def first_negative(spectrum: RopeSpectrum, *, max_length: int) -> int | None:
    """The first distance m < max_length with B_m < 0, decided with certainty; None if there is none.

    Args:
        spectrum: any rotation.
        max_length: how many distances are looked at, at least 2; B_0 is the number of planes.

    Raises:
        InvalidInputError: a length below 2.
        UnsupportedError: more phases than the definition evaluates.

    Accuracy: exact: where B_m lies within its error of 0, ball arithmetic decides; B_m = 0 is not negative.

    Source: arXiv 2405.14591, eq. 10.
    """
    if plain_integer(max_length) < 2:
        raise InvalidInputError(f"first_negative: max_length {max_length} must be at least 2")
    check_phases(spectrum.planes, max_length)
    error = LOGIT_ERROR * spectrum.planes
    for start in range(0, max_length, _CHUNK):
        distances = np.arange(start, min(start + _CHUNK, max_length))
        for m in distances[base_score(spectrum, distances) < error].tolist():
            if _is_negative(spectrum, m):
                return int(m)
    return None


def _is_negative(spectrum: RopeSpectrum, m: int) -> bool:
    """Whether B_m < 0. Where `_MOST_BITS` bits do not tell it from 0, it is taken for 0."""
    bits = 128
    while bits <= _MOST_BITS:
        with balls.precision(bits):
            turned = [turn_of(spectrum, plane).ball(2 * m, 0, bits) for plane in range(spectrum.planes)]
            value = Enclosure.of_ball(sum(((balls.pi() * turn).cos() for turn in turned), balls.ball(0)))
        if value.sign is not None:
            return value.sign < 0
        bits *= 2
    return False


@dataclass(frozen=True, eq=False, kw_only=True)
class BaseInterval:
    """Admissible bases from one end to another, both ends belonging to it.

    Attributes:
        start: where B_m rises through 0, or None for every base above 1.
        end: where B_m falls through 0, or None for every larger base.
    """

    start: Crossing | None
    end: Crossing | None


@dataclass(frozen=True, eq=False, kw_only=True)
class AdmissibleBases:
    """All bases above 1 whose B_m is not negative at any distance m < length.

    Attributes:
        rotary_dim: r.
        length: L.
        intervals: in increasing order, the last one without an end; none where no base is admissible (one plane).
    """

    rotary_dim: int
    length: int
    intervals: tuple[BaseInterval, ...]

    @property
    def smallest(self) -> Enclosure | None:
        """The smallest admissible base, 1 where all above it are; None if there is none."""
        return _start(self.intervals[:1])

    @property
    def all_from(self) -> Enclosure | None:
        """The base from which on all are admissible; None if there is none."""
        return _start(self.intervals[-1:])

    def contains(self, base: Fraction | float | str) -> bool | None:
        """Whether a base is admissible; None if it lies within the enclosure of an end.

        Raises:
            InvalidInputError: a base not above 1, or no number.
        """
        exact = exact_number("base", base)
        if exact <= 1:
            raise InvalidInputError(f"AdmissibleBases: base {str(exact)[:40]} must be above 1")
        if not self.intervals:
            return False
        ends = [end for interval in self.intervals for end in (interval.start, interval.end) if end is not None]
        place = bisect_right(ends, exact, key=lambda end: end.base.low)
        if place and exact <= ends[place - 1].base.high:
            return None
        # An odd number of ends below, starts before ends, is inside; the first interval may have no start.
        return (place % 2 == 1) != (self.intervals[0].start is None)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form: each end as the double below and the double above it, and the distance that decides it."""
        return {
            "schema": SCHEMA,
            "rotary_dim": self.rotary_dim,
            "length": self.length,
            "condition": f"sum_k cos(m base^(-2k/{self.rotary_dim})) >= 0 for m = 0..{self.length - 1}",
            "intervals": [
                {"start": _end_dict(interval.start), "end": _end_dict(interval.end)} for interval in self.intervals
            ],
        }


def _start(intervals: tuple[BaseInterval, ...]) -> Enclosure | None:
    if not intervals:
        return None
    start = intervals[0].start
    return Enclosure.exactly(1) if start is None else start.base


def _end_dict(end: Crossing | None) -> dict[str, Any] | None:
    if end is None:
        return None
    return {**end.base.to_dict("base", 12), "distance": end.distance}


def admissible_bases(rotary_dim: int, length: int, *, progress: Progress | None = None) -> AdmissibleBases:
    """Every base above 1 with B_m >= 0 for all m = 0..length-1, as intervals that are proved to be all there are.

    Args:
        rotary_dim: r, even.
        length: L, 2 to 2^17; the work grows with L^2 (4096: about a second, 32768: some ten).
        progress: called with the share done, in thousandths.

    Raises:
        InvalidInputError: an odd or too small rotary_dim, or a length below 2.
        UnsupportedError: a length or a width beyond what is searched, or an end that doubles cannot isolate.

    Accuracy: every end is enclosed to 1e-9 relative, by the sign of B_m in ball arithmetic on both sides; between the
        ends signs are proved in `base_search`.

    Source: arXiv 2405.14591, eq. 9 to 11; docs/MATHEMATICS.md, section 12.

    Example:
        >>> found = admissible_bases(128, 64)
        >>> len(found.intervals), round(float(found.smallest), 3)
        (1, 104.732)
    """
    if plain_integer(rotary_dim) < 2 or rotary_dim % 2:
        raise InvalidInputError(f"admissible_bases: rotary_dim {rotary_dim} must be even and at least 2")
    if rotary_dim > LARGEST_ROTARY_DIM:
        raise UnsupportedError(f"admissible_bases: rotary_dim is searched up to {LARGEST_ROTARY_DIM}, not {rotary_dim}")
    if plain_integer(length) < 2:
        raise InvalidInputError(f"admissible_bases: length {length} must be at least 2")
    if length > LARGEST_LENGTH:
        raise UnsupportedError(
            f"admissible_bases: lengths are searched up to {LARGEST_LENGTH}, not {short(length)}: the work grows with "
            "the square"
        )
    if rotary_dim == 2:  # one plane, which turns by 1 whatever the base: B_2 = cos(2) < 0
        none = () if length > 2 else (BaseInterval(start=None, end=None),)
        return AdmissibleBases(rotary_dim=rotary_dim, length=length, intervals=none)
    crossings = search_bases(rotary_dim, length, progress=progress)
    starts: list[Crossing | None] = [crossing for crossing in crossings if crossing.rising]
    ends: list[Crossing | None] = [crossing for crossing in crossings if not crossing.rising]
    if not crossings or not crossings[0].rising:
        starts.insert(0, None)
    ends.append(None)
    return AdmissibleBases(
        rotary_dim=rotary_dim,
        length=length,
        intervals=tuple(BaseInterval(start=start, end=end) for start, end in zip(starts, ends, strict=True)),
    )

r"""The ends of the admissible intervals of a base, from the stretches that a search left open, in ball arithmetic.

`base_search.py` covers u = ln(base) with stretches. An open one [A, B] comes with every m whose B_m may be negative
in it; all other B_m are not negative there. For each such m three facts are computed in balls:

1. B_m'(u) != 0 for all u of [A, B] (one evaluation, with a ball that spans the stretch), so B_m is monotone;
2. the signs of B_m(A) and B_m(B);
3. where they differ, an enclosure of the one root between them, by interval Newton steps: the root lies in
   c - B_m(c)/B_m'(X) for every X that holds it and every c of X, so X may be cut down to that.

Hence the part of [A, B] where no B_m is negative is the piece from the largest root of those that rise to the
smallest root of those that fall, if there is any, and nothing else. Open stretches that lie within `NEAR` of each
other are taken together, with what is between them: there, a witness of inadmissibility is one more m to look at, and
it rules its stretch out by itself.

Where one of the three is not decided (two ends of different m closer than a ball can tell, or a B_m that only touches
0) the request is refused; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ropegeo.errors import RopegeoError, UnsupportedError
from ropegeo.exact import Enclosure, balls
from ropegeo.limits.base_search import Stretch

BITS = 192
NEAR = 2.0**-27
_WIDTH = Fraction(1, 1 << 80)


@dataclass(frozen=True, kw_only=True)
class Edge:
    """One end of a piece of the axis u = ln(base).

    Attributes:
        place: where it is.
        distance: the m whose B_m is 0 there; None where the piece goes on in the next one.
    """

    place: Enclosure
    distance: int | None = None

    def is_at(self, place: float) -> bool:
        """Whether it is exactly there, and no root."""
        return self.distance is None and self.place.low == self.place.high == place


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A piece of the axis on which no B_m is negative, both ends included."""

    low: Edge
    high: Edge


def admissible_pieces(planes: int, stretches: Sequence[Stretch]) -> list[Piece]:
    """All pieces of the covered axis on which no B_m is negative, in order, as long as they can be.

    Args:
        planes: P.
        stretches: of `base_search.cover`.

    Returns:
        Pieces; the last one, and no other, ends where the covered axis does, without a distance.

    Raises:
        UnsupportedError: the module's docstring says where balls do not decide.
        RopegeoError: an end without a B_m that vanishes there, which the proof excludes.

    Accuracy: edges are enclosed to about 2^-80.
    """
    pieces: list[Piece] = []
    with balls.precision(BITS):
        for piece in _parts(planes, stretches):
            before = pieces[-1] if pieces else None
            if before is not None and before.high.place.high == piece.low.place.low:
                pieces[-1] = Piece(low=before.low, high=piece.high)
            else:
                pieces.append(piece)
    ends = [edge for piece in pieces for edge in (piece.low, piece.high)]
    if pieces and (any(edge.distance is None for edge in ends[:-1]) or not ends[-1].is_at(stretches[-1].end)):
        raise RopegeoError("admissible_bases: verdicts that contradict each other; please report this")
    return pieces


def base_at(place: Enclosure) -> Enclosure:
    """e to the power u: an enclosure of the base."""
    with balls.precision(BITS):
        low = balls.exponential(balls.ball(place.low))
        high = balls.exponential(balls.ball(place.high))
        return Enclosure(low=balls.rational_ends(low)[0], high=balls.rational_ends(high)[1])


def _parts(planes: int, stretches: Sequence[Stretch]) -> Iterator[Piece]:
    """Admissible pieces, cut where the stretches are."""
    at = 0
    while at < len(stretches):
        stretch = stretches[at]
        if stretch.admissible is not None:
            at += 1
            if stretch.admissible:
                yield Piece(low=_plain(stretch.start), high=_plain(stretch.end))
            continue
        last = at
        for after in range(at + 1, len(stretches)):
            if stretches[after].start - stretches[last].end > NEAR:
                break
            if stretches[after].admissible is None:
                last = after
        distances = sorted({m for each in stretches[at : last + 1] for m in each.distances})
        found = _resolved(planes, stretch.start, stretches[last].end, distances)
        if found is not None:
            yield found
        at = last + 1


def _plain(place: float) -> Edge:
    return Edge(place=Enclosure.exactly(Fraction(place)))


def _resolved(planes: int, start: float, end: float, distances: Sequence[int]) -> Piece | None:
    """The piece of an open stretch on which none of some B_m is negative; None if there is none."""
    low, high = _plain(start), _plain(end)
    for m in distances:
        score = _Score(planes, m)
        before, after = score.sign(Fraction(start)), score.sign(Fraction(end))
        score.check_monotone(Fraction(start), Fraction(end))
        if before == after == 1:
            continue
        if before == after:
            return None
        edge = Edge(place=score.root(Fraction(start), Fraction(end)), distance=m)
        if after == 1:
            low = _later(low, edge)
        else:
            high = _earlier(high, edge)
    if low.place.high < high.place.low:
        return Piece(low=low, high=high)
    if low.place.low > high.place.high:
        return None
    raise UnsupportedError(
        f"admissible_bases: near base exp({start:.12g}) two ends (of B_m with m = {low.distance} and "
        f"{high.distance}) are too close to be told apart; use another length"
    )


def _later(one: Edge, other: Edge) -> Edge:
    """The larger of two edges; its enclosure holds the larger number even where the two overlap."""
    place = Enclosure(low=max(one.place.low, other.place.low), high=max(one.place.high, other.place.high))
    return Edge(place=place, distance=max(one, other, key=lambda edge: edge.place.high).distance)


def _earlier(one: Edge, other: Edge) -> Edge:
    place = Enclosure(low=min(one.place.low, other.place.low), high=min(one.place.high, other.place.high))
    return Edge(place=place, distance=min(one, other, key=lambda edge: edge.place.low).distance)


class _Score:
    """B_m as a function of u = ln(base), in balls at the working precision."""

    def __init__(self, planes: int, distance: int) -> None:
        self._distance = distance
        self._exponents = [balls.ball(Fraction(-plane, planes)) for plane in range(planes)]

    def value(self, u: balls.Ball) -> balls.Ball:
        """sum_k cos(m theta_k)."""
        return sum((balls.cosine(self._distance * angle) for angle in self._angles(u)), balls.ball(0))

    def slope(self, u: balls.Ball) -> balls.Ball:
        """m sum_k x_k theta_k sin(m theta_k)."""
        total = balls.ball(0)
        for exponent, angle in zip(self._exponents, self._angles(u), strict=True):
            total -= exponent * angle * balls.sine(self._distance * angle)
        return self._distance * total

    def _angles(self, u: balls.Ball) -> list[balls.Ball]:
        return [balls.exponential(exponent * u) for exponent in self._exponents]

    def sign(self, place: Fraction) -> int:
        """The sign of B_m at one point."""
        value = self.value(balls.ball(place))
        if value > 0:
            return 1
        if value < 0:
            return -1
        raise self._undecided(place, "is 0 to 50 digits")

    def check_monotone(self, low: Fraction, high: Fraction) -> None:
        """Refuse a stretch over which B_m' is not proved to keep its sign."""
        slope = self.slope(balls.spanning(low, high))
        if not (slope > 0 or slope < 0):
            raise self._undecided(low, "may touch 0")

    def root(self, low: Fraction, high: Fraction) -> Enclosure:
        """The one root between two points of different sign."""
        while high - low > _WIDTH:
            middle = (low + high) / 2
            step = self.value(balls.ball(middle)) / self.slope(balls.spanning(low, high))
            left, right = balls.rational_ends(balls.ball(middle) - step)
            left, right = max(left, low), min(right, high)
            if 2 * (right - left) > high - low:  # Newton gains little: balls of this precision give no more
                break
            low, high = left, right
        return Enclosure(low=low, high=high)

    def _undecided(self, place: Fraction, what: str) -> UnsupportedError:
        return UnsupportedError(
            f"admissible_bases: near base exp({float(place):.12g}) B_m with m = {self._distance} {what}, which is not "
            "decided; use another length"
        )

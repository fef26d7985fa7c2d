r"""One-plane letter margins without rounding: pairs of a match and a rival, and which pairs decide an extreme.

With alpha = theta/(2 pi), A letters and centre c, a match at distance D scores cos(2 pi m), m = (D - c) alpha, and a
rival of shift s at d scores cos(2 pi r), r = s/A + (d - c) alpha. Their gap is

    cos(2 pi m) - cos(2 pi r) = 2 sin(pi (r + m)) sin(pi (r - m)),                                               (1)

a product, so that ball arithmetic keeps its relative accuracy however small it is. It is exactly 0 iff r + m or r - m
is an integer: for irrational alpha only if alpha drops out of it, for rational alpha a matter of fractions.

Every extreme over inputs is an extreme over *pairs*, D != d, and few pairs decide it. Write M(D) for the match and
R(d) = max over s != 0 of the rival's score.

* worst(n) = min_D [M(D) - max_{d != D} R(d)] = min over pairs of M(D) - R(d). In the least pair, D may be replaced by
  the smaller M of two that is not at d, and then d by the larger R of two that is not at D: neither raises the gap, so
  a least pair has D among the two smallest M and d among the two largest R. The margin of a given target D takes the
  largest R at another distance.
* best(n) = max over pairs of M(D) - min over s of the rival's score at d: the two largest M and the two smallest
  rivals in the same way.
* M is smallest where the turn x_d = (d - c) alpha is nearest to 1/2, largest nearest to 0; a rival is largest where x_d
  is nearest to a non-zero multiple of 1/A, and the one of shift s smallest where x_d is nearest to 1/2 - s/A.

`TurnOrder.nearest` lists them all at any n, proved; more pairs than needed do no harm, since each is an input's. The
extreme of the listed pairs is then enclosed in balls.

A plane that codes letters m steps apart turns a shift of s into m s/A. With g = gcd(m, A) and A' = A/g those are the
multiples of 1/A': for g = 1 each non-zero one of a rival, so nothing above changes. For g > 1 the rivals are all
multiples, 0 too: a letter A' away has the answer's own code, so worst(n) <= 0 for n >= 2, and there is no closed form.

Closed form of worst(n), g = 1, max(n-1, c) theta < omega = 2 pi/A, so that all |x_d| < 1/A <= 1/2: f(x) =
cos(2 pi x) is even and falls on [0, 1/2]. Of the shifts (as turned) only -1 (best at the largest d) and +1 (best at
the smallest d) can be the strongest competitor, and a match is weakest at an end of the window; excluding d = D leaves
D in {0, 1, n-2, n-1} and competitors (n-1, -1), (n-2, -1), (0, +1), (1, +1). For c = 0 that is docs/MATHEMATICS.md,
section 6: min(f((n-2) theta) - f(omega-(n-1) theta), f((n-1) theta) - f(omega-(n-2) theta)).

Source: ours; docs/MATHEMATICS.md, sections 3, 4 and 6, for what is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd

from ropegeo.engine.exact_turns import Turn
from ropegeo.engine.first_return import TurnOrder
from ropegeo.exact import ClosedForm, Enclosure, balls, nearest_integer
from ropegeo.exact.enclosure import least
from ropegeo.heads import LetterProfile

MAX_LETTERS = 10_000
"""The first-return route asks four questions a letter; beyond this many letters it would take seconds a length."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A match and a rival: m = match * alpha and r = rival * alpha + code.

    Attributes:
        match: distance of the match from the centre.
        rival: distance of the rival from the centre.
        code: the rival's letter, in turns.
    """

    match: Fraction
    rival: Fraction
    code: Fraction

    @property
    def displacement(self) -> int:
        """How far the rival stands from the match."""
        return int(self.rival - self.match)

    def gap(self, turn: Turn, bits: int) -> Enclosure:
        """cos(2 pi m) - cos(2 pi r) by the module's product (1); exactly 0 iff that is so."""
        both = ((self.rival + self.match, self.code), (self.rival - self.match, self.code))
        if any(turn.is_whole(*one) for one in both):
            return Enclosure.exactly(0)
        with balls.precision(bits):
            total, difference = (turn.ball(*one, bits) for one in both)
            return Enclosure.of_ball(2 * total.sin_pi() * difference.sin_pi())


def greatest(values: list[Enclosure]) -> Enclosure:
    """The enclosure of the largest of several numbers."""
    return Enclosure(low=max(value.low for value in values), high=max(value.high for value in values))


def sharpened(
    gaps_at: Callable[[int], list[Enclosure]],
    choose: Callable[[list[Enclosure]], Enclosure],
    n: int,
    digits: int,
    most_bits: int | None = None,
) -> tuple[Enclosure, int]:
    """The least or greatest of several gaps, and which one it is, with as many bits as its digits ask for.

    Args:
        gaps_at: the gaps at so many bits; enough of them must decide every sign, unless `most_bits` is given.
        choose: `least` or `greatest`.
        n: the length, of which all distances are below a small multiple.
        digits: significant digits wanted.
        most_bits: where to stop without them.

    Accuracy: relative error below 10**-(digits + 3), or exactly 0.
    """
    bits = 64 + 4 * digits + 2 * n.bit_length()
    while True:
        gaps = gaps_at(bits)
        value = choose(gaps)
        # Relative width, not `proves`: a value such as 3/2 is a rounding tie that no precision settles.
        proved = value.sign == 0 or (value.sign and (value.high - value.low) * 10 ** (digits + 3) < abs(value.low))
        if proved or (most_bits is not None and bits > most_bits):
            return value, next(place for place, gap in enumerate(gaps) if gap.low == value.low)
        bits *= 2


class LetterPlane:
    """Exact margins of a letter profile with one active plane.

    Attributes:
        profile: what is scored.
    """

    def __init__(self, profile: LetterProfile, longest: int) -> None:
        """Of a profile with one active plane, for lengths up to `longest`."""
        self.profile = profile
        self._longest = longest
        used = profile.active_planes[0]
        self._turn = Turn(profile.spectrum.angles[used])
        shared = gcd(profile.multipliers[used], profile.letters)
        self._codes = profile.letters // shared
        self._shifts = range(1 if shared == 1 else 0, self._codes)

    @cached_property
    def angle(self) -> ClosedForm:
        """The plane's angle, folded into the range where the closed form is stated.

        Distances are integers, so whole turns drop out of cos(shift*omega + d theta), and a turn backwards is a turn
        forwards with the shifts reversed: theta is as good as its distance to the nearest multiple of 2 pi. With a
        half-integer centre (d - c) theta has halves of turns, so only pairs of turns drop out.
        """
        period = 2 * ClosedForm.pi() * self.profile.centre.denominator
        if self._turn.angle < period / 2:
            return self._turn.angle
        rest = self._turn.angle - nearest_integer(self._turn.angle / period) * period
        return rest if rest.sign() >= 0 else -rest

    def has_closed_form(self, length: int) -> bool:
        """Whether max(length - 1, centre) theta < omega, decided exactly, and every letter has its own code."""
        if self._codes < self.profile.letters:
            return False
        reach = max(Fraction(length - 1), self.profile.centre)
        return reach * self.angle < 2 * ClosedForm.pi() * self.profile.code_turn

    def worst(self, n: int, digits: int) -> tuple[Enclosure, int]:
        """The smallest margin of the class and the runner-up's displacement."""
        if self.profile.self_only:
            return self.margin(n, 0, digits)
        pairs = [*self._pairs(self._weakest(n), self._rivals(n)), *self._uncentred(n)]
        return self._extreme(pairs, least, n, digits)

    def margin(self, n: int, target: int, digits: int) -> tuple[Enclosure, int]:
        """The margin with the answer at one distance, and the runner-up's displacement."""
        return self._extreme(self._pairs([target], self._rivals(n)), least, n, digits)

    def best(self, n: int, digits: int) -> Enclosure:
        """The largest margin of the class."""
        pairs = [] if self.profile.self_only else self._pairs(self._strongest(n), self._weakest_rivals(n, self._order))
        if self.profile.self_only or self.profile.centre:
            pairs += _own(self._weakest_rivals(n, self._own_order), self._codes)
        return self._extreme(pairs, greatest, n, digits)[0]

    def closed(self, n: int, target: int | None, digits: int) -> tuple[Enclosure, int]:
        """Closed form in the module's range: the smallest margin (over targets if none is named) and the runner-up."""
        folded = Turn(self.angle)
        targets = sorted({d for d in (0, 1, n - 2, n - 1) if d >= 0}) if target is None else [target]
        rivals = [(d, shift) for d, shift in ((n - 1, -1), (n - 2, -1), (0, 1), (1, 1)) if 0 <= d < n]
        pairs = self._pairs(targets, rivals)
        if self.profile.centre and target is None:  # letter-integer queries stay uncentred
            pairs += _own([(n - 1, -1)], self._codes)
        return self._extreme(pairs, least, n, digits, folded)

    @cached_property
    def _order(self) -> TurnOrder:
        return self._ordered(self.profile.centre)

    @cached_property
    def _own_order(self) -> TurnOrder:
        return self._order if not self.profile.centre else self._ordered(Fraction(0))

    def _ordered(self, centre: Fraction) -> TurnOrder:
        return TurnOrder(self._turn.angle, self._longest, centre=centre, grid=2 * self._codes)

    def _pairs(self, targets: Iterable[int], rivals: Iterable[tuple[int, int]]) -> list[Pair]:
        """Every target with every rival (distance, shift) that stands elsewhere."""
        c, letters = self.profile.centre, self._codes
        everyone = list(rivals)
        return [
            Pair(match=D - c, rival=d - c, code=Fraction(shift, letters))
            for D in dict.fromkeys(targets)
            for d, shift in everyone
            if d != D
        ]

    def _weakest(self, n: int) -> list[int]:
        return [d for d, _ in self._order.nearest([self._codes * self._order.modulus], n)]

    def _strongest(self, n: int) -> list[int]:
        return [d for d, _ in self._order.nearest([0], n)]

    def _rivals(self, n: int, order: TurnOrder | None = None) -> list[tuple[int, int]]:
        """The strongest: x_d + s/A nearest to 0."""
        chosen = self._order if order is None else order
        points = [-2 * shift * chosen.modulus for shift in self._shifts]
        return [(d, self._shifts[index]) for d, index in chosen.nearest(points, n)]

    def _weakest_rivals(self, n: int, order: TurnOrder) -> list[tuple[int, int]]:
        """x_d + s/A nearest to 1/2."""
        points = [(self._codes - 2 * shift) * order.modulus for shift in self._shifts]
        return [(d, self._shifts[index]) for d, index in order.nearest(points, n)]

    def _uncentred(self, n: int) -> list[Pair]:
        """Letter-integer queries of a centred head look for themselves, uncentred."""
        return _own(self._rivals(n, self._own_order), self._codes) if self.profile.centre else []

    def _extreme(
        self,
        pairs: list[Pair],
        choose: Callable[[list[Enclosure]], Enclosure],
        n: int,
        digits: int,
        turn: Turn | None = None,
    ) -> tuple[Enclosure, int]:
        chosen = self._turn if turn is None else turn
        value, winner = sharpened(lambda bits: [pair.gap(chosen, bits) for pair in pairs], choose, n, digits)
        return value, pairs[winner].displacement


def _own(rivals: Iterable[tuple[int, int]], letters: int) -> list[Pair]:
    """The own token against rivals elsewhere, uncentred."""
    return [Pair(match=Fraction(0), rival=Fraction(d), code=Fraction(shift, letters)) for d, shift in rivals if d]

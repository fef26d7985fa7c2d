r"""Where a rotation comes nearest to a point of the circle: at any length, in integers, one step per convergent.

Distance d puts one plane at the turn x_d = (d - c) alpha modulo 1. What a head scores depends on x_d only, so every
extreme of a score over d < n asks which x_d lie nearest to some point z. Three facts answer that.

**Lowest value** (`lowest_turn`). Let v_x = (a x + b) mod m. From x on, the next lower value stands q steps further,
where q >= 1 is the smallest with 0 < delta(q) <= v_x and delta(q) = -q a mod m: v_(x+q) = v_x - delta(q) if that is not
negative, else v_x - delta(q) + m. The first q with delta(q) <= v is a *record*: delta(q) is below every delta before.
Records of rotations are the convergents and the intermediate fractions on one side (Khinchin, *Continued Fractions*,
section 6). With delta_l at q_l the last such record, and delta_u = q_u a mod m the last record of the other side, they
come in groups

    delta_l - s delta_u  at  q_l + s q_u,   s = 1 .. S,  S the largest with a positive result,

after which the other side advances likewise until delta_u < delta_l. Euclid's algorithm on (m, a) in other words, so
there are O(log m) groups. While v >= delta(q) the same q serves again, since the records before it are above every
later v too: v // delta(q) times. A group needs two such reductions at most: let s be the smallest with delta = delta_l
- s delta_u <= v. If s < S then delta > delta_u, and v < delta + delta_u, so v drops once to below delta_u, and the next
record at or below it must be the last of the group, the only one not above delta_u.

**Real turns.** alpha/(denominator of c) is held as a/2^B, rounded down, so x_d is off by less than R/2^B, R the most
steps of that fraction that any x_d has. By the first fact the least ||t a/2^B|| over 0 < t < n is known, and B is
doubled until it is at least 8 (R + 2)/2^B. Then no two turns change places and the order of the approximations is the
true one, except that a turn within R/2^B of z may seem to lie on its other side. Seen from either side z is therefore
moved away by a slack of (R + 2)/2^B, so that such a turn, of which there is one at most, is counted nearest from the
side where it lies and possibly from the other too. A rational alpha = p/q has its own modulus q, and nothing is off.

**Both sides.** Let the turn near z be P (if there is one), a1, a2 the nearest others from above and b1, b2 from below.
Two from above and two from below are listed; each list holds its true two, or P and its true first one, so both lists
together hold the two turns nearest to z on the whole circle, whichever side they come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ropegeo.errors import InvalidInputError
from ropegeo.exact import ClosedForm, balls
from ropegeo.spectrum.phases import fixed_turn

GUARD_BITS = 64


@dataclass(frozen=True)
class Descent:
    """The groups of records of one slope: how far a value can fall within q steps.

    Attributes:
        modulus: m.
        slope: a in [0, m).
        groups: (delta_l, q_l, delta_u, q_u, S, delta_l - S delta_u) of the module's first fact.
    """

    modulus: int
    slope: int
    groups: tuple[tuple[int, int, int, int, int, int], ...]

    @classmethod
    def of(cls, slope: int, modulus: int, terms: int) -> Descent:
        """All groups that begin within `terms` steps."""
        low, low_at, up, up_at = modulus, 0, slope % modulus, 1
        groups = []
        while up and low_at + up_at < terms:
            size = (low - 1) // up
            last = low - size * up
            groups.append((low, low_at, up, up_at, size, last))
            low, low_at = last, low_at + size * up_at
            size = up // low
            up, up_at = up - size * low, up_at + size * low_at
        return cls(modulus=modulus, slope=slope % modulus, groups=tuple(groups))

    def lowest(self, value: int, terms: int, floor: int = 0) -> tuple[int, int]:
        """The least of value, value + slope, .. (`terms` of them, modulo m) and where it first stands.

        It stops at the first one that is not above `floor`.
        """
        at = 0
        for low, low_at, up, up_at, size, last in self.groups:
            rest = terms - 1 - at
            if value <= floor or low_at + up_at > rest:
                break
            if value < last:
                continue
            first = max(1, -((value - low) // up))
            for step in (first, size) if first < size else (size,):
                fall, length = low - step * up, low_at + step * up_at
                times = min(value // fall, (terms - 1 - at) // length, max(0, -((floor - value) // fall)))
                at += times * length
                value -= times * fall
        return value, at


def lowest_turn(slope: int, start: int, modulus: int, terms: int) -> tuple[int, int]:
    """The least (slope * x + start) mod modulus over 0 <= x < terms, and the first x that has it.

    Args:
        slope: any integer.
        start: any integer.
        modulus: at least 1.
        terms: at least 1; any size.

    Raises:
        InvalidInputError: a modulus or a number of terms below 1.

    Accuracy: exact; O(log modulus) divisions.

    Source: ours; proof in the module.

    Example:
        >>> lowest_turn(7, 5, 16, 4), min(((7 * x + 5) % 16, x) for x in range(4))
        ((3, 2), (3, 2))
    """
    if modulus < 1 or terms < 1:
        raise InvalidInputError(f"lowest_turn: modulus {modulus} and terms {terms} must be at least 1")
    return Descent.of(slope, modulus, terms).lowest(start % modulus, terms)


def first_in_interval(angle: ClosedForm, low: Fraction | int, high: Fraction | int, *, start: int = 1) -> int | None:
    """The first t >= start whose turn t * angle/(2 pi) modulo 1 lies between two points of the circle, ends included.

    Args:
        angle: radians per position.
        low: where the interval begins, in turns.
        high: where it ends, going forward; it may pass 0. A difference of 1 or more is the whole circle.
        start: first displacement tried, at least 0.

    Returns:
        The displacement, or None if no turn ever lies there.

    Raises:
        InvalidInputError: a negative start.

    Accuracy: exact. With B bits and fewer than N steps a turn is off by less than N/2^B, so every hit is a hit of the
    interval widened by that much on both sides. These come in order; each is decided in balls of growing precision,
    which ends since t alpha is irrational for t >= 1. Without a hit, N is squared and B doubled.

    Source: ours; proof in the module.

    Example:
        >>> from ropegeo.exact import read_angle
        >>> first_in_interval(read_angle("1"), Fraction(0), Fraction(1, 10**5))  # 710 = 2 pi * 113 + 6e-5
        710
        >>> first_in_interval(read_angle("2/5 turn"), Fraction(1, 10), Fraction(3, 20)) is None
        True
    """
    if start < 0:
        raise InvalidInputError(f"first_in_interval: start {start} must not be negative")
    low, width = Fraction(low) % 1, Fraction(high) - Fraction(low)
    if width >= 1:
        return start
    width %= 1
    rational = angle.rational_turn()
    if rational is not None:
        turn, grid = rational % 1, low.denominator * width.denominator
        modulus, scale = turn.denominator, grid * turn.denominator
        shifted, rest = divmod(int((start * turn - low) % 1 * scale), grid)
        widest = (int(width * scale) - rest) // grid  # grid * value + rest <= width * scale
        value, steps = Descent.of(turn.numerator, modulus, modulus).lowest(shifted, modulus, max(widest, -1))
        return start + steps if value <= widest else None
    if start == 0:
        if -low % 1 <= width:
            return 0
        start = 1
    if width == 0:
        return None
    half = 32
    while True:
        bits, terms = 2 * half + GUARD_BITS + start.bit_length(), 1 << half
        modulus = 1 << bits
        slope = fixed_turn(angle, bits)
        blur = start + terms + 1
        begin = (start * slope - int(low * modulus) + blur) % modulus
        widest = int(width * modulus) + 2 * blur + 1
        descent, done = Descent.of(slope, modulus, terms), 0
        while done < terms:
            value, steps = descent.lowest((begin + done * slope) % modulus, terms - done, widest)
            if value > widest:
                break
            done += steps
            if _lies_within(angle, start + done, low, width):
                return start + done
            done += 1
        half *= 2


def _lies_within(angle: ClosedForm, t: int, low: Fraction, width: Fraction) -> bool:
    """Whether t alpha - low modulo 1 is at most `width`, for irrational alpha and t >= 1: some precision decides."""
    bits = GUARD_BITS + t.bit_length()
    while True:
        ends = balls.rational_ends((t * angle / (2 * ClosedForm.pi())).ball(bits))
        below, above = (end - low for end in ends)
        if below // 1 == above // 1 and (below % 1 > width or above % 1 < width):
            return above % 1 < width
        bits *= 2


class TurnOrder:
    """The turns (d - c) alpha of the distances d = 0, 1, .. in their order round the circle.

    Points of the circle are integers on the scale `grid * modulus` of a turn.

    Attributes:
        modulus: m of the module's first fact: 2^B, or the denominator of a rational turn.
        scale: of points, grid * modulus.
        slack: by how much points are shifted before they are compared, on that scale; 0 where all is exact.
    """

    def __init__(
        self,
        angle: ClosedForm,
        length: int,
        *,
        centre: Fraction = Fraction(0),
        grid: int = 1,
        blur: int = 0,
    ) -> None:
        """Order the turns of the distances below `length`, with bits enough that no two change places.

        Args:
            angle: radians per position.
            length: at least 1; no larger one may be asked for.
            centre: c.
            grid: points asked for are multiples of 1/grid of a turn, or as fine as the grid makes them.
            blur: error of the points, in units of the scale, at most `grid`.
        """
        step = angle / centre.denominator
        steps = centre.denominator * (length - 1) + abs(centre.numerator)
        turn = step.rational_turn()
        if turn is not None:
            self.modulus, self.slack = turn.denominator, 2 * blur
            self._set(turn.numerator, centre, length)
        else:
            bits = 2 * length.bit_length() + steps.bit_length() + GUARD_BITS
            self.slack = grid * (steps + 2)
            while True:
                self.modulus = 1 << bits
                self._set(fixed_turn(step, bits), centre, length)
                if self._spacing(length) >= 8 * (steps + 2):
                    break
                bits *= 2
        self.grid = grid
        self.scale = grid * self.modulus

    def _set(self, step: int, centre: Fraction, length: int) -> None:
        self._forward = Descent.of(centre.denominator * step, self.modulus, length)
        self._backward = Descent.of(-centre.denominator * step, self.modulus, length)
        self._start = -centre.numerator * step % self.modulus

    def _spacing(self, length: int) -> int:
        """The least distance of t alpha to a whole turn over 0 < t < length, in units of the modulus."""
        if length < 2:
            return self.modulus
        return min(side.lowest(side.slope, length - 1)[0] for side in (self._forward, self._backward))

    def lowest(self, point: int, side: int, first: int, end: int) -> tuple[int, int]:
        """Of the distances first..end-1 the one nearest to a point from above (side 1) or below (side -1).

        Returns:
            How far it is from the point, on the scale and with the slack added, and the distance d.
        """
        descent = self._forward if side > 0 else self._backward
        value, rest = divmod(side * (self.grid * self._start - point) + self.slack, self.grid)
        low, steps = descent.lowest((value + descent.slope * first) % self.modulus, end - first)
        return self.grid * low + rest, first + steps

    def second(self, point: int, side: int, length: int, nearest: int) -> list[tuple[int, int]]:
        """The nearest from one side among the others, if there are any."""
        parts = ((0, nearest), (nearest + 1, length))
        return sorted(self.lowest(point, side, begin, end) for begin, end in parts if begin < end)[:1]

    def nearest(self, points: Sequence[int], length: int) -> list[tuple[int, int]]:
        """Pairs (distance, index of a point) that hold the two smallest separations at different distances.

        The separation of a pair is that of the distance's turn from the point, on the circle. Whichever single distance
        is left out, a pair with the smallest separation among the others is in the list.

        Proof. Two from each side of every point hold it, by the module's third fact. A listed separation, slack taken
        off, is within one slack of the true one. Let V be the smallest listed one at another distance than the first
        of the list: two distances have true separations of at most V, so that those of the two smallest are at most V,
        and their listed ones at most V + 2 slack. What is farther is left out; in particular the second from a side
        whose first is.
        """
        firsts = sorted(
            (*self.lowest(point, side, 0, length), index, side)
            for index, point in enumerate(points)
            for side in (1, -1)
        )
        limit = self._limit([(far, d) for far, d, _, _ in firsts])
        found = [(far, d, index) for far, d, index, _ in firsts]
        for far, d, index, side in firsts:
            if limit is None or far <= limit:
                found += [(*pair, index) for pair in self.second(points[index], side, length, d)]
        found.sort()
        limit = self._limit([(far, d) for far, d, _ in found])
        kept = [(d, index) for far, d, index in found if limit is None or far <= limit]
        return list(dict.fromkeys(kept))

    def _limit(self, found: list[tuple[int, int]]) -> int | None:
        """What a separation may be at most, from a sorted list of them."""
        other = next((far for far, d in found if d != found[0][1]), None)
        return None if other is None else other + 4 * self.slack

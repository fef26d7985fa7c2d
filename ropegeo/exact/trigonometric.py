r"""Sums of cosines in ball arithmetic: the largest over a range of integers, and averages over a few.

With angles theta_k, weights w_k and phases phi_k, a_k = w_k cos(phi_k) and b_k = -w_k sin(phi_k),

    f(t) = sum_k w_k cos(t theta_k + phi_k) = sum_k a_k cos(t theta_k) + b_k sin(t theta_k),      t an integer.

The largest value over a range. The range is cut into rows of W integers: t = S + h, S a row's first integer and
0 <= h < W. By angle addition

    f(S + h) = sum_k [a_k cos(S theta_k) + b_k sin(S theta_k)] cos(h theta_k)
             + sum_k [b_k cos(S theta_k) - a_k sin(S theta_k)] sin(h theta_k),

a product of a matrix of rows with one of offsets, both made of balls, so every entry is a ball that holds f there.
FLINT multiplies matrices of balls by integer matrices, tens of millions of terms a second. Every entry is looked at:
nothing is skipped, sampled or estimated, and no result of a search in floating point goes in.

Precision. A ball of t theta_k is |t| times as wide as the ball of theta_k, so the bits asked for are those after the
point: the bits before it, of the largest |t| theta_k, are added, and more until the balls of the angles are as narrow
as that (an angle may be a small difference of large numbers).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from flint import arb, arb_mat

from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import balls
from ropegeo.exact.closed_form import ClosedForm
from ropegeo.exact.enclosure import Enclosure

BITS = 112
"""Bits after the point: an absolute error below 10^-28 for sums of a few thousand planes of total weight 1."""
MOST_BITS = 1 << 14
ROWS, WIDTH = 256, 256
_ROUNDING = 2.0**-50
"""What the conversion of a midpoint and a radius to doubles can lose, relative, with room to spare."""

Term = tuple[Fraction, Fraction]
"""A weight and a phase in radians, both exact."""


class TrigonometricSums:
    """Sums of cosines of some angles, in balls.

    Attributes:
        angles: radians per step.
        reach: the largest |t| that will be asked for; more is still right, but less sharp.
    """

    def __init__(self, angles: Sequence[ClosedForm], reach: int, *, bits: int = BITS) -> None:
        """Of at least one angle."""
        self.angles, self.reach = tuple(angles), reach
        turned = max(Fraction(reach) * Fraction(float(angle)) for angle in self.angles)
        self._bits = bits + int(turned).bit_length() + 1
        self._angles = [self._narrow(angle, bits) for angle in self.angles]

    def _narrow(self, angle: ClosedForm, bits: int) -> arb:
        """A ball of an angle that turns by less than 2^-bits of itself over the reach."""
        working = self._bits
        while working <= MOST_BITS:
            ball = angle.ball(working)
            low, high = balls.rational_ends(ball)
            if (high - low) * max(1, self.reach) < Fraction(1, 1 << bits):
                return ball
            working *= 2
        raise UnsupportedError(
            f"an angle cannot be told to {bits} bits after {self.reach} steps; write it in another way"
        )

    def largest(
        self,
        terms: Sequence[Term],
        ranges: Sequence[tuple[int, int]],
        *,
        progress: Callable[[int], None] | None = None,
    ) -> tuple[Enclosure, int]:
        """The largest f(t) over ranges of integers, enclosed, and a t at which it may be attained.

        Args:
            terms: (w_k, phi_k) of every angle.
            ranges: (first, last) of each; at least one integer in all.
            progress: called now and then with the number of integers done.

        Returns:
            An enclosure of max f, and the t whose ball reaches highest.
        """
        best: tuple[arb, int] | None = None
        used = [place for place, (weight, _) in enumerate(terms) if weight]
        done = 0
        with balls.precision(self._bits):
            if not used:
                return Enclosure.exactly(0), ranges[0][0]
            offsets = self._offsets(used)
            coefficients = [_cartesian(terms[place]) for place in used]
            for first, last in ranges:
                for start, size, entries in self._blocks(first, last, used, coefficients, offsets):
                    top, place = _highest(entries, size)
                    if best is None:
                        best = top, start + place
                    else:  # the place is that of the higher middle; the ball holds the larger of both
                        best = best[0].max(top), start + place if top.mid() > best[0].mid() else best[1]
                    done += size
                    if progress is not None:
                        progress(done)
        if best is None:
            raise InvalidInputError("TrigonometricSums.largest: the ranges hold no integer")
        return Enclosure.of_ball(best[0]), best[1]

    def at_zero(self, terms: Sequence[Term]) -> Enclosure:
        """f(0) = sum_k w_k cos(phi_k), enclosed."""
        with balls.precision(self._bits):
            return Enclosure.of_ball(sum((_cartesian(term)[0] for term in terms), balls.ball(0)))

    def averages(self, places: Sequence[int], shares: Sequence[Fraction]) -> list[tuple[balls.Ball, balls.Ball]]:
        """sum_t mu_t (1 - cos(t theta_k)) and sum_t mu_t sin(t theta_k) of every angle, as balls.

        Args:
            places: integers t.
            shares: mu_t of each, exact.

        Accuracy: absolute error near 2^-`BITS` times the sum of the shares.
        """
        with balls.precision(self._bits):
            found = []
            for angle in self._angles:
                short, across = balls.ball(0), balls.ball(0)
                for t, share in zip(places, shares, strict=True):
                    phase, weight = balls.ball(t) * angle, balls.ball(share)
                    # 2 sin(x/2)^2 keeps the digits of a slow plane's small shortfall.
                    short += weight * 2 * (phase / 2).sin() ** 2
                    across += weight * phase.sin()
                found.append((short, across))
            return found

    def modulus(self, one: balls.Ball, other: balls.Ball) -> balls.Ball:
        """sqrt(one^2 + other^2)."""
        with balls.precision(self._bits):
            size = (one * one + other * other).sqrt()
            # Near 0 the square's ball reaches below 0, where there is no root; the sum of sizes holds it from above.
            return size if size.is_finite() else (abs(one) + abs(other)).union(balls.ball(0))

    def _offsets(self, used: list[int]) -> arb_mat:
        """cos(h theta_k) and sin(h theta_k), 2 rows a plane, one column an offset."""
        rows = []
        for place in used:
            phases = [balls.ball(h) * self._angles[place] for h in range(WIDTH)]
            rows += [[x.cos() for x in phases], [x.sin() for x in phases]]
        return arb_mat(rows)

    def _blocks(
        self, first: int, last: int, used: list[int], coefficients: list[tuple[arb, arb]], offsets: arb_mat
    ) -> Iterator[tuple[int, int, list[arb]]]:
        """(first integer, how many, their balls) of the blocks that cover first..last."""
        for start in range(first, last + 1, ROWS * WIDTH):
            size = min(ROWS * WIDTH, last + 1 - start)
            rows = []
            for row in range(-(-size // WIDTH)):
                entries: list[arb] = []
                for place, (a, b) in zip(used, coefficients, strict=True):
                    phase = balls.ball(start + row * WIDTH) * self._angles[place]
                    cos, sin = phase.cos(), phase.sin()
                    entries += [a * cos + b * sin, b * cos - a * sin]
                rows.append(entries)
            yield start, size, (arb_mat(rows) * offsets).entries()[:size]


def _cartesian(term: Term) -> tuple[arb, arb]:
    """w cos(phi) and -w sin(phi)."""
    weight, phase = balls.ball(term[0]), balls.ball(term[1])
    return weight * phase.cos(), -weight * phase.sin()


def _highest(entries: list[arb], size: int) -> tuple[arb, int]:
    """A ball of the largest of some balls, and the place of one whose middle is largest.

    Doubles choose which take part: one is left out only where its upper end, rounded up, is below another's lower end,
    rounded down. (`tiny` is for middles and radii that are subnormal.)
    """
    tiny = 5e-324
    middles, radii = [float(entry.mid()) for entry in entries], [float(entry.rad()) for entry in entries]
    rooms = [
        radius * (1 + _ROUNDING) + _ROUNDING * abs(middle) + tiny for middle, radius in zip(middles, radii, strict=True)
    ]
    floor = max(middle - room for middle, room in zip(middles, rooms, strict=True))
    kept = [place for place in range(size) if not middles[place] + rooms[place] < floor]
    top = entries[kept[0]]
    for place in kept[1:]:
        top = top.max(entries[place])
    return top, max(kept, key=middles.__getitem__)

"""Oracles of the tests in plain Python, numpy and mpmath: definitions written out; nothing of ropegeo is imported."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import mpmath  # type: ignore[import-untyped]
import numpy as np

Real: TypeAlias = Any
"""An mpmath number."""

Thunk: TypeAlias = Callable[[], Real]
"""A real number that is evaluated at whatever precision is set when it is asked for."""

DOUBLE = Fraction(1, 2**53)
"""Relative rounding error of one double operation."""


def mp_fraction(value: Fraction | int | float) -> Real:
    """A rational number (a double is one) at the working precision."""
    exact = Fraction(value)
    return mpmath.mpf(exact.numerator) / exact.denominator


def rope_angle(base: int, plane: int, rotary_dim: int) -> Thunk:
    """base**(-2*plane/rotary_dim)."""
    return lambda: mpmath.mpf(base) ** (-mpmath.mpf(2 * plane) / rotary_dim)


def constant(value: Fraction | int | float) -> Thunk:
    """A rational angle in radians."""
    return lambda: mp_fraction(value)


ANGLES: dict[str, Thunk] = {
    "1": constant(1),
    "10000^(-2/128)": rope_angle(10000, 1, 128),
    "500000^(-2/128)": rope_angle(500000, 1, 128),
    "pi*(sqrt(5)-1)": lambda: mpmath.pi * (mpmath.sqrt(5) - 1),
    "0.0027": constant(Fraction(27, 10000)),
    "4": constant(4),
    "100": constant(100),
    "2*pi/5": lambda: 2 * mpmath.pi / 5,
}
"""Angles by how ropegeo's grammar writes them."""


# ---- one plane ----


def turn_distance(theta: Thunk, t: int) -> Real:
    """Distance of t*theta/(2 pi) to the nearest integer."""
    turns = t * theta() / (2 * mpmath.pi)
    return abs(turns - mpmath.nint(turns))


def gap_at(theta: Thunk, t: int) -> Real:
    """1 - cos(t*theta), written so that no digit is lost."""
    return 2 * mpmath.sin(mpmath.pi * turn_distance(theta, t)) ** 2


def denominators(theta: Thunk, reach: int) -> list[int]:
    """q_0, q_1, .. up to the first one beyond `reach`, of an irrational theta/(2 pi), in floating point of 3 len(T)."""
    with mpmath.workdps(3 * len(str(reach)) + 60):
        rest = theta() / (2 * mpmath.pi)
        before, found = 0, [1]
        rest -= mpmath.floor(rest)
        while found[-1] <= reach:
            rest = 1 / rest
            quotient = int(mpmath.floor(rest))
            rest -= quotient
            before, latest = found[-1], quotient * found[-1] + before
            found.append(latest)
        return found


def rational_gap_turns(turn: Fraction, reach: int) -> tuple[Fraction, int]:
    """Smallest distance of t*turn to an integer over 1 <= t <= reach, exactly, and the first t that has it."""
    return min((min(t * turn % 1, -t * turn % 1), t) for t in range(1, reach + 1))


def window(offset: int, length: int) -> list[int]:
    """Displacements that a query with an offset meets besides its target."""
    return [t for t in range(-offset, length - offset) if t]


# ---- several planes, and heads ----


def planes_gap(thetas: Sequence[Thunk], weights: Sequence[float], t: int) -> Real:
    """sum_k a_k (1 - cos(t theta_k))."""
    return mpmath.fsum(mp_fraction(weight) * gap_at(theta, t) for theta, weight in zip(thetas, weights, strict=True))


class Deficits:
    """D(t) = sum_k |c_k| (1 - cos(t theta_k + arg c_k)) of some planes: turns in integers that mpmath made.

    Attributes:
        bits: after the point of a turn; displacements up to 2**(bits - 160) keep a relative error below 1e-14.
        sizes: |c_k|.
        fixed: 2**bits times the turn of a step, and that of the coefficient.
        weight: sum of |c_k|.
    """

    def __init__(self, thetas: Sequence[Thunk], coefficients: Sequence[complex], bits: int = 512) -> None:
        self.bits = bits
        self.sizes = [abs(complex(c)) for c in coefficients]
        self.weight = math.fsum(self.sizes)
        with mpmath.workprec(bits + 200):
            self.fixed = [
                (self._turns(theta()), self._turns(mpmath.arg(mpmath.mpc(complex(c)))))
                for theta, c in zip(thetas, coefficients, strict=True)
            ]

    def _turns(self, angle: Real) -> int:
        return int(mpmath.nint(angle / (2 * mpmath.pi) * 2**self.bits))

    def centred(self, turn: int) -> float:
        """A fixed-point turn reduced to [-1/2, 1/2)."""
        half = 1 << (self.bits - 1)
        return ((turn + half) % (1 << self.bits) - half) / (1 << self.bits)

    def at(self, t: int) -> float:
        """D(t), to a relative error below 1e-14."""
        turns = [self.centred(t * step + phase) for step, phase in self.fixed]
        return math.fsum(2 * w * math.sin(math.pi * x) ** 2 for w, x in zip(self.sizes, turns, strict=True))

    def block(self, start: int, length: int) -> Any:
        """D(start + j) for j < length, from the exact phase at the start: absolute error below 1e-15 length weight."""
        j = np.arange(length)
        total = np.zeros(length)
        for w, (step, phase) in zip(self.sizes, self.fixed, strict=True):
            x = self.centred(start * step + phase) + j * self.centred(step)
            total += 2 * w * np.sin(np.pi * x) ** 2
        return total

    def below(self, low: int, high: int, budget: float) -> dict[int, float]:
        """Every t of the range with D(t) <= budget."""
        found: dict[int, float] = {}
        for start in range(low, high + 1, 4096):
            length = min(4096, high + 1 - start)
            near = self.block(start, length) <= budget + 1e-11 * self.weight
            exact = {start + j: self.at(start + j) for j in np.flatnonzero(near).tolist()}
            found |= {t: value for t, value in exact.items() if value <= budget}
        return found


def pairs(layout: str, rotary_dim: int) -> list[tuple[int, int]]:
    """Coordinates of each plane: docs/MATHEMATICS.md, section 1."""
    half = rotary_dim // 2
    return [(2 * k, 2 * k + 1) if layout == "interleaved" else (k, k + half) for k in range(half)]


def rotated(vector: Sequence[Real], position: int, thetas: Sequence[Thunk], layout: str, factor: float) -> list[Real]:
    """(a, b) becomes (a cos - b sin, b cos + a sin), times the attention factor; other coordinates pass through."""
    turned = list(vector)
    for (first, second), theta in zip(pairs(layout, 2 * len(thetas)), thetas, strict=True):
        a, b, phase = vector[first], vector[second], position * theta()
        turned[first] = factor * (a * mpmath.cos(phase) - b * mpmath.sin(phase))
        turned[second] = factor * (b * mpmath.cos(phase) + a * mpmath.sin(phase))
    return turned


def affine(matrix: Sequence[Sequence[float]], state: Sequence[float], bias: Sequence[float] | None) -> list[Real]:
    """W x + b by loops."""
    rows = []
    for index, row in enumerate(matrix):
        total = mp_fraction(0 if bias is None else bias[index])
        for weight, entry in zip(row, state, strict=True):
            total += mp_fraction(weight) * mp_fraction(entry)
        rows.append(total)
    return rows


def dot(left: Sequence[Real], right: Sequence[Real]) -> Real:
    """Sum of products."""
    return mpmath.fsum(a * b for a, b in zip(left, right, strict=True))


# ---- retrieval by enumeration ----

Token: TypeAlias = tuple[int, int | str]
"""(left letter, right part): a right part is a letter number, or a text for an integer."""


@dataclass(frozen=True)
class Scene:
    """What one input looks like to the query at its end.

    Attributes:
        integer_query: whether the query is (letter, integer).
        answers: distances of the right token.
        rivals: one entry per other token: its shift and its distances.
    """

    integer_query: bool
    answers: frozenset[int]
    rivals: frozenset[tuple[int, frozenset[int]]]

    def margin(self, match: Callable[[bool, int, int], float]) -> float:
        """Best answer minus best rival."""
        return max(match(self.integer_query, 0, d) for d in self.answers) - max(
            match(self.integer_query, shift, d) for shift, ds in self.rivals for d in ds
        )

    def decodes(self, beta: float, match: Callable[[bool, int, int], float]) -> bool:
        """Whether softmax attention puts more weight on the answer than on any other token."""

        def weight(shift: int, distances: frozenset[int]) -> float:
            return math.fsum(math.exp(beta * match(self.integer_query, shift, d)) for d in distances)

        return weight(0, self.answers) > max(weight(shift, distances) for shift, distances in self.rivals)


def is_globally_proper(row: Sequence[Token]) -> bool:
    """Every letter-letter token finds its right letter at or before itself, and one token only has it."""
    for position, (_, right) in enumerate(row):
        if isinstance(right, int) and (
            all(left != right for left, _ in row[: position + 1]) or len({t for t in row if t[0] == right}) > 1
        ):
            return False
    return True


@lru_cache(maxsize=8)
def scenes(letters: int, integers: int, length: int) -> frozenset[Scene]:
    """All globally proper inputs of a length in which tokens with the answer's left letter are the answer."""
    rights: list[int | str] = [*range(letters), *(f"{i}" for i in range(1, integers + 1))]
    vocabulary = list(itertools.product(range(letters), rights))
    found = set()
    for row in itertools.product(vocabulary, repeat=length):
        query = row[-1]
        sought = query[1] if isinstance(query[1], int) else query[0]
        holders = {token for token in row if token[0] == sought}
        if len(holders) != 1 or not is_globally_proper(row):
            continue
        (answer,) = holders
        places: dict[Token, set[int]] = {}
        for position, token in enumerate(row):
            places.setdefault(token, set()).add(length - 1 - position)
        answers = places.pop(answer)
        if places:
            rivals = frozenset(((token[0] - sought) % letters, frozenset(ds)) for token, ds in places.items())
            found.add(Scene(isinstance(query[1], str), frozenset(answers), rivals))
    return frozenset(found)


def letter_score(
    letters: int, planes: Sequence[tuple[float, float]], centre: float
) -> Callable[[bool, int, int], float]:
    """Score per unit of beta of a key at a shift and distance: sum_k a_k cos(shift*omega + (d - c) theta_k).

    Letter-integer queries are not centred (docs/MATHEMATICS.md, section 3). `planes` holds (theta, weight).
    """

    def score(integer_query: bool, shift: int, distance: int) -> float:
        from_centre = distance - (0.0 if integer_query else centre)
        return math.fsum(a * math.cos(2 * math.pi * shift / letters + from_centre * theta) for theta, a in planes)

    return score


def worst_letter_margin(letters: int, planes: Sequence[tuple[float, float]], centre: float, length: int) -> float:
    """min over targets of match - strongest rival, by double loop; both kinds of query."""
    score = letter_score(letters, planes, centre)
    least = math.inf
    for integer_query, targets in ((False, range(length)), (True, range(1))):
        strongest = [max(score(integer_query, s, d) for s in range(1, letters)) for d in range(length)]
        for target in targets:
            rival = max(value for d, value in enumerate(strongest) if d != target)
            least = min(least, score(integer_query, 0, target) - rival)
    return least


# ---- printed digits ----


def rounded(value: Fraction, count: int) -> Fraction:
    """`value` rounded half to even to `count` significant digits, in integers."""
    if value == 0:
        return Fraction(0)
    exponent = len(str(abs(value.numerator))) - len(str(value.denominator))
    if abs(value) < Fraction(10) ** exponent:
        exponent -= 1
    unit = Fraction(10) ** (exponent - count + 1)
    return round(value / unit) * unit


def last_place(text: str) -> Fraction:
    """The unit of the last digit that a decimal text shows."""
    mantissa, _, exponent = text.partition("e")
    return Fraction(10) ** (int(exponent or 0) - len(mantissa.partition(".")[2]))

"""A retrieval query that is its own answer wins by 1 - cos(omega - (n-1) theta) over its nearest possible rival."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import sympy

from ropegeo.asymptotics import bounds
from ropegeo.claims import Claim, Status, Step, argument, counterexample, exact, refuses, require, symbolic, vanishes
from ropegeo.engine import retrieval_margin
from ropegeo.exact import Enclosure, balls
from ropegeo.heads import LetterProfile
from ropegeo.spectrum import RopeSpectrum

CLAIM = Claim(
    title="Margin of a retrieval query that is its own answer",
    statement=(
        r"Let $A \ge 2$ letters stand at turns of $\omega = 2\pi/A$, let $n \ge 2$, $\theta \ge 0$, $(n-1)\theta < "
        r"\omega$, and let tokens with the answer's left letter be the answer. A query that is its own answer "
        r"(distance $d = 0$) has a margin of at least $1 - \cos(\omega - (n-1)\theta)$, and of exactly that where the "
        r"letter before the one sought (shift $-1$) stands at $d = n-1$; for $\theta > 0$ only there."
    ),
    source="Urrutia et al., arXiv 2605.31558, Theorem 3.2 and Definition 3.1; docs/MATHEMATICS.md, section 6",
    scope=r"one plane, no centring, $A \ge 2$, $n \ge 2$, $0 \le \theta$, $(n-1)\theta < \omega$",
    status=Status.REPAIRED,
    ties=(
        "ropegeo.asymptotics.bounds.nearest_rival_margin",
        "ropegeo.engine.retrieval_margin.letter_curve",
    ),
    as_stated=(
        r"$\operatorname{Retrieval}(n) \le 1 - \cos(\omega - n\theta)$, where $\operatorname{Retrieval}(n)$ is the "
        "largest discrepancy over inputs of length $n$"
    ),
    cause=(
        r"The largest discrepancy over inputs belongs to one without near rivals: the other tokens may all hold the "
        r"opposite letter. Where all letters do compete, the farthest of $n$ positions is $n-1$ steps away, not $n$."
    ),
)
PAPER = (17, Fraction(27, 10000), 8)
"""Length, angle and letters at which numbers are shown."""
LISTED = ((2, 2), (2, 3), (2, 8), (3, 2), (3, 3), (3, 5), (4, 2), (4, 3), (4, 4), (5, 2), (5, 3), (6, 2))
"""Lengths and letters for which the letters of every input are listed."""


def steps() -> Iterator[Step]:
    """The counterexamples, then the proof of the repaired statement."""
    yield from _counterexamples()
    yield from _proof()


def _counterexamples() -> Iterator[Step]:
    theta = sympy.pi / 6
    seen, printed = 1 - sympy.cos(sympy.pi + theta), 1 - sympy.cos(sympy.pi - 2 * theta)
    yield counterexample(
        "smallest: two tokens, two letters",
        rf"$n = 2$, $A = 2$, $\theta = \pi/6$, input $(b, 1)(a, 1)$: the query $(a, 1)$ scores 1, its only rival "
        rf"$\cos(\pi + \theta)$. Margin $1 + \cos\frac{{\pi}}{{6}} = {sympy.latex(seen)}$, above the "
        rf"printed $1 - \cos(\pi - 2\theta) = {sympy.latex(printed)}$. With one token or one letter nothing competes.",
        holds=bool(seen > printed),
    )
    n, angle, letters = PAPER
    opposite = _margin_of([letters // 2] * (n - 1), angle, letters)
    stated = _stated(n, angle, letters)
    yield counterexample(
        "the opposite letter everywhere",
        rf"$n = {n}$, $A = {letters}$, $\theta = {float(angle)}$, all other tokens hold the opposite letter (shift "
        rf"{letters // 2}): margin {_shown(opposite)}, near the largest possible 2, against the printed "
        rf"{_shown(stated)}.",
        holds=bool(opposite > stated),
    )
    row = [1 + (d - 1) % (letters - 1) for d in range(1, n - 1)] + [letters - 1]
    compete = _margin_of(row, angle, letters)
    yield counterexample(
        "all letters compete",
        rf"The same $n$, $A$, $\theta$, with every other letter among the tokens and shift $-1$ at $d = n-1$ (shifts "
        rf"{', '.join(map(str, row))} at $d = 1, \ldots, {n - 1}$): margin {_shown(compete)}, above the printed "
        rf"{_shown(stated)}.",
        holds=set(row) == set(range(1, letters)) and bool(compete > stated),
    )


def _proof() -> Iterator[Step]:
    omega, theta, n, y = sympy.symbols("omega theta n y", real=True)
    yield argument(
        "what competes",
        r"A token at distance $d$ whose letter is $s$ after the one sought scores $\cos(s\omega + d\theta)$. The "
        r"answer at $d = 0$ scores 1, and its copies elsewhere no more. A rival has $s \not\equiv 0 \pmod A$ and $1 "
        r"\le d \le n-1$; all of these occur, for letter-integer tokens of any letter may stand there.",
    )
    yield argument(
        "the nearest rival",
        r"In turns, let $x = d\theta/(2\pi)$, $0 \le x < 1/A$, and $1 \le s \le A - 1$. The point $s/A + x$ lies in "
        r"$[1/A, 1)$. It is at least $1/A$ away from 0, and $1 - s/A - x \ge 1/A - x$ away from 1, so $\|s/A + x\| "
        r"\ge 1/A - x$, with equality iff $s = A-1$, or $x = 0$ and $s = 1$. As $1/A - x \le 1/2$ and the cosine "
        r"falls on $[0, \pi]$, the rival scores at most $\cos(\omega - d\theta) \le \cos(\omega - (n-1)\theta)$. If "
        r"$\theta > 0$, equality in the last step needs $d = n-1$, hence $x > 0$ and $s = A-1$.",
    )
    yield symbolic(
        "sine form, and how far the printed value is off",
        r"$1 - \cos y = 2\sin^2\frac{y}{2}$. And $\cos(\omega - n\theta) - \cos(\omega - (n-1)\theta) = 2\sin(\omega - "
        r"\frac{(2n-1)\theta}{2})\sin\frac{\theta}{2}$, positive for $0 < \theta$, $n\theta \le \omega$: the printed "
        r"value is below the margin at every such length, not at $n = 17$ only.",
        holds=vanishes(1 - sympy.cos(y) - 2 * sympy.sin(y / 2) ** 2)
        and vanishes(
            sympy.cos(omega - n * theta)
            - sympy.cos(omega - (n - 1) * theta)
            - 2 * sympy.sin(omega - (2 * n - 1) * theta / 2) * sympy.sin(theta / 2)
        ),
    )
    yield exact(
        "every input of small cases",
        rf"For $(n, A)$ in {', '.join(str(case) for case in LISTED)} and $\theta$ of $\frac{{1}}{{10}}$, "
        r"$\frac{1}{2}$ and $\frac{9}{10}$ of the largest admitted angle, the letters at $d = 1, \ldots, n-1$ were "
        "listed in all $A^{n-1}$ ways, in rationals: the nearest rival is never nearer than $1/A - "
        r"(n-1)\theta/(2\pi)$, and is that near iff shift $-1$ stands at $d = n-1$.",
        holds=all(_holds_for_every_row(n, letters, share) for n, letters in LISTED for share in (1, 5, 9)),
    )


def _holds_for_every_row(n: int, letters: int, tenths: int) -> bool:
    """Whether the strongest rival of each row of letters is as claimed: exact distances of rivals to whole turns."""
    turn = Fraction(tenths, 10 * letters * (n - 1))
    far = Fraction(1, letters) - (n - 1) * turn
    for row in product(range(letters), repeat=n - 1):
        rivals = [_distance(Fraction(s, letters) + d * turn) for d, s in enumerate(row, start=1) if s]
        if rivals and (min(rivals) < far or (min(rivals) == far) != (row[-1] == letters - 1)):
            return False
    return True


def _distance(x: Fraction) -> Fraction:
    """To the nearest integer."""
    return min(x % 1, 1 - x % 1)


def _margin_of(shifts: list[int], angle: Fraction, letters: int) -> balls.Ball:
    """1 - the largest cos(shift omega + d angle), d counted from 1, enclosed; shift 0 is a copy of the answer."""
    with balls.precision(128):
        scores = [
            (balls.pi() * 2 * s / letters + balls.ball(d * angle)).cos() for d, s in enumerate(shifts, start=1) if s
        ]
        top = max(scores, key=float)
        for other in scores:
            top = top.max(other)
        return 1 - top


def _stated(n: int, angle: Fraction, letters: int) -> balls.Ball:
    """1 - cos(omega - n angle)."""
    with balls.precision(128):
        return 1 - (balls.pi() * 2 / letters - balls.ball(n * angle)).cos()


def _shown(value: balls.Ball) -> str:
    return str(Enclosure.of_ball(value).digits(6))


def check() -> None:
    """The closed form against the engine's exact margins of a target at distance 0, and at its edges."""
    for n, angle, letters in ((17, 0.0027, 8), (2, 0.75, 8), (5, 0.3, 3), (3, 1.25, 2), (2, 3.0, 2), (100, 1e-3, 26)):
        profile = LetterProfile(spectrum=RopeSpectrum.from_angle(angle), weights=np.ones(1), letters=letters)
        curve = retrieval_margin.letter_curve(profile, [n], target=0, route="first_return")
        truth, value = float(curve.points[0].margin), _value(n, angle, letters)
        require(abs(value - truth) <= 1e-12 * truth, f"length {n}, angle {angle}: {value!r}, the engine {truth!r}")
    still = _value(9.0, 0.0, 6.0)
    require(abs(still - 0.5) <= 1e-14, f"angle 0 and six letters: {still!r}, not 1/2")
    require(abs(_value(17.0, 0.0027, 8.0) - 0.263015) <= 5e-7, "the number of docs/MATHEMATICS.md, section 6")
    shape = bounds.nearest_rival_margin(np.array([2.0, 3.0]), np.array([[0.1], [0.2]]), np.array(2.0)).shape
    require(shape == (2, 2), f"nearest_rival_margin does not broadcast: {shape}")
    require(abs(_value(1e150, 1e-150, 2.0) / (1 + np.cos(1.0)) - 1) <= 1e-13, "length 1e150, angle 1e-150")
    require(abs(_value(2.0, 0.0, 1e150) / (2 * (np.pi / 1e150) ** 2) - 1) <= 1e-14, "1e150 letters")
    for outside in (
        (1.0, 0.1, 8.0),
        (17.0, -1e-9, 8.0),
        (17.0, 0.0027, 1.0),
        (2.0, np.pi / 4, 8.0),
        (2.5, 0.1, 8.0),
        (17.0, 0.0027, 2.5),
        (np.nextafter(1e150, np.inf), 0.0, 8.0),
        (2.0, np.nextafter(1e-150, 0), 8.0),
        (2.0, 0.0, np.inf),
    ):
        require(refuses(bounds.nearest_rival_margin, *map(np.array, outside)), f"nearest_rival_margin takes {outside}")
    for nan in ((np.nan, 0.1, 8.0), (2.0, np.nan, 8.0), (2.0, 0.1, np.nan)):
        require(refuses(bounds.nearest_rival_margin, *map(np.array, nan)), f"nearest_rival_margin takes {nan}")


def _value(length: float, angle: float, letters: float) -> float:
    return float(bounds.nearest_rival_margin(*(np.array(float(x)) for x in (length, angle, letters))))

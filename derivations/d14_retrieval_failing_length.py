"""A retrieval head decodes the inputs of length n iff (2n-3) theta < omega, uncentred, and none that are longer."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil

import numpy as np
import sympy

from ropegeo.asymptotics import bounds
from ropegeo.claims import Claim, Status, Step, argument, ball, exact, refuses, require, symbolic, vanishes
from ropegeo.engine import retrieval_margin, trust
from ropegeo.exact import Enclosure, balls
from ropegeo.heads import LetterProfile
from ropegeo.spectrum import RopeSpectrum

CLAIM = Claim(
    title="First length at which the retrieval head fails",
    statement=(
        r"Let $A \ge 2$, $\omega = 2\pi/A$ and $0 < \theta \le \pi$. Over globally proper inputs in which tokens with "
        r"the answer's left letter are the answer, $\operatorname{worst}(n) > 0$ iff $(2n-3)\theta < \omega$, for "
        r"every $n \ge 2$. The first failing length is $\lceil\frac{\omega}{2\theta} + \frac{3}{2}\rceil$; if "
        r"$\frac{\omega}{2\theta} + \frac{3}{2}$ is an integer, $\operatorname{worst}$ is exactly 0 there. Every "
        "longer one fails too."
    ),
    source="docs/MATHEMATICS.md, section 6 (ours)",
    scope=(
        r"one plane, no centring, $A \ge 2$, a vocabulary with at least one integer, $0 < \theta \le \pi$: fold other "
        r"angles to their distance from the next whole turn (at 0 no length fails)"
    ),
    status=Status.PROVED,
    ties=(
        "ropegeo.asymptotics.bounds.retrieval_failing_length",
        "ropegeo.engine.trust.first_failing_length",
        "ropegeo.engine.retrieval_margin.worst_margin",
    ),
)
LISTED = 12
"""Denominators of the rational angles for which every pair is compared."""
ANGLE, LETTERS = Fraction(27, 10000), 8
"""At which numbers are shown."""


def steps() -> Iterator[Step]:
    """The proof."""
    omega, theta, n, t, s = sympy.symbols("omega theta n t s", real=True)
    yield argument(
        "before",
        r"If $(2n-3)\theta < \omega$, then $(n-1)\theta < \omega$, since $n - 1 \le 2n - 3$ for $n \ge 2$. There "
        r"$\operatorname{worst}(n)$ is the smaller of two products with the common factor $2\sin\frac{\omega - (2n-3)"
        r"\theta}{2}$ and others that are positive (claim `retrieval_worst`), so it is positive.",
    )
    yield argument(
        "worst never grows",
        r"At any length $\operatorname{worst}(n)$ is the minimum of $\cos D\theta - \cos(s\omega + d\theta)$ over all "
        r"$D \ne d$ below $n$ and $s \not\equiv 0$ (claim `retrieval_worst`, first step, which asks nothing of "
        r"$\theta$). A longer input has all these pairs and more.",
    )
    pair = sympy.cos((n - 1) * theta) - sympy.cos((n - 2) * theta - omega)
    yield symbolic(
        "one pair",
        r"The pair $D = n-1$, $d = n-2$, $s = -1$ has the gap $\cos((n-1)\theta) - \cos((n-2)\theta - \omega) = "
        r"-2\sin\frac{\omega+\theta}{2}\sin\frac{(2n-3)\theta - \omega}{2}$, whatever the size of $(n-1)\theta$.",
        holds=vanishes(pair + 2 * sympy.sin((omega + theta) / 2) * sympy.sin(((2 * n - 3) * theta - omega) / 2)),
    )
    yield argument(
        "at the first length that the condition excludes",
        r"Let $n$ be the smallest with $(2n-3)\theta \ge \omega$. There $0 < \frac{\omega+\theta}{2} \le \pi$. Either "
        r"$n = 2$ and $0 \le \frac{\theta - \omega}{2} < \pi$, or $(2n-5)\theta < \omega$ and $0 \le "
        r"\frac{(2n-3)\theta - \omega}{2} < \theta \le \pi$. So both sines of that pair are at least 0 and "
        r"$\operatorname{worst}(n) \le 0$; and "
        "so at every longer length.",
    )
    yield argument(
        "the length",
        r"$(2n-3)\theta \ge \omega$ says $n \ge \frac{\omega}{2\theta} + \frac{3}{2}$, a number above $3/2$, so the "
        "first failing length is its ceiling, and at least 2. If it is an integer, the common factor is 0 there, and "
        r"worst with it as long as $(n-1)\theta < \omega$.",
    )
    yield symbolic(
        "the tie is in scope",
        r"With $(2n-3)\theta = \omega$, $(n-1)\theta < \omega$ says $n > 2$. At $n = 2$, $\theta = \omega$, the gaps "
        r"are $1 - \cos(s\omega + \omega)$, which is 0 at $s = -1$ and never negative, and $\cos\omega - \cos "
        r"s\omega$, which is 0 at $s = 1$ and never negative, since no $s\omega$ is nearer to a whole turn. So worst "
        "is 0 as well.",
        holds=vanishes((1 - sympy.cos(s * omega + omega)).subs(s, -1))
        and vanishes((sympy.cos(omega) - sympy.cos(s * omega)).subs(s, 1)),
    )
    yield symbolic(
        "folding",
        r"Distances are integers: $\cos(s\omega + d(2\pi m \pm t)) = \cos(s\omega \pm dt)$, and the lower sign is the "
        r"upper one with $s$ replaced by $-s$. So $\theta$ has the margins of its distance from the next multiple of "
        r"$2\pi$. At distance 0 every answer scores 1 and worst is $1 - \cos\omega$ at every length.",
        holds=_folds(omega, t, s),
    )
    cases = _cases()
    yield exact(
        "pairs of rational angles",
        rf"For $A$ of 2 to 6 and all {len(cases)} angles of $p/q$ turns in $(0, \pi]$ with $q \le {LISTED}$ or $q$ = "
        "$A$ times 5, 7, 9 or 11, the sign of worst was taken from all pairs, in rationals, at every length up to two "
        r"past the ceiling: positive before it, 0 at it iff $\frac{\omega}{2\theta} + \frac{3}{2}$ is an integer, and "
        "never positive after.",
        holds=all(_signs_fit(letters, turn) for letters, turn in cases),
    )
    first = balls.pi() / (LETTERS * balls.ball(ANGLE)) + balls.ball(Fraction(3, 2))
    yield ball(
        "number",
        rf"$A = {LETTERS}$, $\theta = {float(ANGLE)}$: $\frac{{\omega}}{{2\theta}} + \frac{{3}}{{2}} = "
        rf"{Enclosure.of_ball(first).digits(7)}$, so length 146 is decoded and 147 is the first that fails.",
        holds=bool(first > 146) and bool(first < 147),
    )


def _folds(omega: sympy.Symbol, t: sympy.Symbol, s: sympy.Symbol) -> bool:
    d, m = sympy.symbols("d m", integer=True)
    forward = sympy.cos(s * omega + d * (2 * sympy.pi * m + t)) - sympy.cos(s * omega + d * t)
    mirrored = sympy.cos(s * omega - d * t) - sympy.cos(-s * omega + d * t)
    return vanishes(forward) and vanishes(mirrored)


def _cases() -> list[tuple[int, Fraction]]:
    """Letters with rational angles in turns, in (0, 1/2]: the ties omega/theta = 5, 7, .. among them."""
    found = set()
    for letters in range(2, 7):
        for q in (*range(2, LISTED + 1), *(letters * k for k in (5, 7, 9, 11))):
            found |= {(letters, Fraction(p, q)) for p in range(1, q // 2 + 1)}
    return sorted(found)


def _signs_fit(letters: int, turn: Fraction) -> bool:
    length = Fraction(1, letters) / (2 * turn) + Fraction(3, 2)
    first = ceil(length)
    before = all(_sign(n, letters, turn) == 1 for n in range(2, first))
    after = all(_sign(n, letters, turn) <= 0 for n in range(first, first + 3))
    return before and after and (_sign(first, letters, turn) == 0) == (length.denominator == 1)


def _sign(n: int, letters: int, turn: Fraction) -> int:
    """Of worst(n), from all pairs: the cosine falls with the distance to a whole turn, so distances are compared."""
    matches = [_distance(D * turn) for D in range(n)]
    rivals = [min(_distance(Fraction(s, letters) + d * turn) for s in range(1, letters)) for d in range(n)]
    least = min(rivals[d] - matches[D] for D in range(n) for d in range(n) if d != D)
    return (least > 0) - (least < 0)


def _distance(x: Fraction) -> Fraction:
    """To the nearest integer."""
    return min(x % 1, 1 - x % 1)


def check() -> None:
    """The real length against the engine's first failing length, and worst exactly 0 where it is an integer."""
    for angle, letters in ((3.1, 2), (2.2, 3), (1.0, 8), (0.3, 3), (0.0027, 8)):
        length, first = _value(angle, letters), trust.first_failing_length(_profile(angle, letters))
        require(ceil(length) == first, f"angle {angle}, {letters} letters: {length!r}, the engine {first}")
    for letters, odd in ((2, 1), (8, 5), (5, 23)):
        # omega/theta = odd: the length is an integer, (odd + 3)/2, and a double of it is near that.
        turn = f"1/{letters * odd} turn"
        length = _value(float(_profile(turn, letters).spectrum.inv_freq[0]), letters)
        tie = (odd + 3) // 2
        require(abs(length - tie) <= 1e-13 * tie, f"angle {turn}: {length!r}, not {tie}")
        require(trust.first_failing_length(_profile(turn, letters)) == tie, f"angle {turn} first fails elsewhere")
        worst = retrieval_margin.worst_margin(_profile(turn, letters), tie)
        require(worst.sign == 0, f"angle {turn}: worst({tie}) is {worst}, not exactly 0")
        if tie > 2:
            worst = retrieval_margin.worst_margin(_profile(turn, letters), tie - 1)
            require(worst.sign == 1, f"angle {turn}: worst({tie - 1}) is {worst}")
    require(ceil(_value(np.pi, 3)) == trust.first_failing_length(_profile("1/2 turn", 3)), "angle pi")
    require(trust.first_failing_length(_profile("1 turn", 3)) is None, "a whole turn fails somewhere")
    shape = bounds.retrieval_failing_length(np.array([0.1, 0.2]), np.array([[2.0], [3.0]])).shape
    require(shape == (2, 2), f"retrieval_failing_length does not broadcast: {shape}")
    require(abs(_value(1e-150, 2) / (np.pi / 2e-150) - 1) <= 1e-14, "angle 1e-150")
    require(abs(_value(1e-150, int(1e150)) - np.pi - 1.5) <= 1e-14, "angle 1e-150, 1e150 letters")
    for angle, count in (
        (0.0, 8.0),
        (np.nextafter(1e-150, 0), 8.0),
        (np.nextafter(np.pi, 4), 8.0),
        (0.1, 1.0),
        (0.1, 2.5),
        (0.1, np.nextafter(1e150, np.inf)),
        (np.nan, 8.0),
        (0.1, np.inf),
    ):
        refused = refuses(bounds.retrieval_failing_length, np.array(angle), np.array(count))
        require(refused, f"retrieval_failing_length takes angle {angle}, {count} letters")


def _value(angle: float, letters: int) -> float:
    return float(bounds.retrieval_failing_length(np.array(angle), np.array(float(letters))))


def _profile(angle: float | str, letters: int) -> LetterProfile:
    return LetterProfile(spectrum=RopeSpectrum.from_angle(angle), weights=np.ones(1), letters=letters)

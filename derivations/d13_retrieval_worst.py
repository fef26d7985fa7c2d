"""The smallest margin of a retrieval head over inputs whose tokens with the answer's left letter are the answer."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import sympy

from ropegeo import tasks
from ropegeo.asymptotics import bounds
from ropegeo.claims import Claim, Status, Step, argument, ball, exact, refuses, require, symbolic, vanishes
from ropegeo.engine import retrieval_margin
from ropegeo.exact import Enclosure, balls
from ropegeo.heads import LetterProfile
from ropegeo.spectrum import RopeSpectrum

CLAIM = Claim(
    title="Worst case of the retrieval head on one plane",
    statement=(
        r"Let $A \ge 2$ letters stand at turns of $\omega = 2\pi/A$, $n \ge 2$, $\theta \ge 0$ and $(n-1)\theta < "
        r"\omega$. Over globally proper inputs of length $n$ in which tokens with the answer's left letter are the "
        r"answer, the smallest margin is $\operatorname{worst}(n) = \min(\cos((n-2)\theta) - \cos(\omega - "
        r"(n-1)\theta), \cos((n-1)\theta) - \cos(\omega - (n-2)\theta))$. The first is "
        r"$2\sin\frac{\omega-\theta}{2}\sin\frac{\omega - (2n-3)\theta}{2}$, the second "
        r"$2\sin\frac{\omega+\theta}{2}\sin\frac{\omega - (2n-3)\theta}{2}$; the first is the smaller while "
        r"$(2n-3)\theta \le \omega$, the second from there on."
    ),
    source="docs/MATHEMATICS.md, section 6 (ours); for the head Urrutia et al., arXiv 2605.31558, appendix F.2",
    scope=(
        r"one plane, no centring, $A \ge 2$, $n \ge 2$, $0 \le \theta$, $(n-1)\theta < \omega$; a vocabulary with at "
        r"least one integer. Beyond $(n-1)\theta \ge \omega$ the formula is wrong"
    ),
    status=Status.PROVED,
    ties=(
        "ropegeo.asymptotics.bounds.retrieval_worst_margin",
        "ropegeo.engine.retrieval_margin.worst_margin",
        "ropegeo.engine.retrieval_margin.letter_curve",
    ),
)
ANGLE, LETTERS = Fraction(27, 10000), 8
"""At which numbers are shown."""
LISTED = ((2, 2), (2, 3), (2, 4), (3, 2), (3, 3), (4, 2), (5, 2))
"""Lengths and letters for which every input over the letters and one integer is listed."""
SHARES = (Fraction(1, 10), Fraction(1, 2), Fraction(7, 10), Fraction(95, 100))
"""Of the largest admitted angle omega/(n-1); (2n-3) theta is below omega at some, above it at others."""


def steps() -> Iterator[Step]:
    """The proof."""
    yield from _reduction()
    yield from _algebra()
    yield from _small_cases()
    yield from _numbers()


def _reduction() -> Iterator[Step]:
    yield argument(
        "worst(n) is a minimum over pairs",
        r"A token at distance $d$ whose letter is $s$ after the one sought scores $\cos(s\omega + d\theta)$. The "
        r"margin of an input is its best answer (shift 0, some distances $D$) minus its best rival ($s \not\equiv "
        r"0$), so it is at least the smallest of $\cos D\theta - \cos(s\omega + d\theta)$ over $D \ne d$ in $0, "
        r"\ldots, n-1$ and $s \not\equiv 0$. Every such pair is an input's: for $D > 0$ take the query $(L, R)$ with "
        r"$L \ne R$, the answer $(R, 1)$ at $D$ and nowhere else, the rival at $d$ (the query itself if $d = 0$, with "
        "$L$ of shift $s$; else any letter with the integer 1), and further rivals elsewhere; for $D = 0$ the query "
        "$(R, 1)$. Further rivals do not raise the margin, so it is at most the pair's.",
    )
    yield argument(
        "the strongest rival at a distance",
        r"With $x = d\theta/(2\pi) < 1/A$ and $1 \le s \le A-1$ the point $s/A + x$ is at least $1/A - x$ away from "
        r"both 0 and 1, attained at $s = A-1$. As $1/A - x \le 1/2$ and the cosine falls on $[0, \pi]$, the strongest "
        r"rival at $d$ scores $\cos(\omega - d\theta)$ (claim `retrieval_bound`).",
    )
    yield argument(
        "which pair is extremal",
        r"All $D\theta$ and $\omega - d\theta$ lie in $[0, \pi]$, where the cosine falls. So $\cos D\theta - "
        r"\cos(\omega - d\theta)$ falls in $D$ and in $d$. Of two different distances up to $n - 1$ the smaller is at "
        "most $n - 2$: for $D < d$ no pair is below $(n-2, n-1)$, for $D > d$ none is below $(n-1, n-2)$.",
    )


def _algebra() -> Iterator[Step]:
    omega, theta, n = sympy.symbols("omega theta n", real=True)
    common = 2 * sympy.sin((omega - (2 * n - 3) * theta) / 2)
    first = sympy.cos((n - 2) * theta) - sympy.cos(omega - (n - 1) * theta)
    second = sympy.cos((n - 1) * theta) - sympy.cos(omega - (n - 2) * theta)
    yield symbolic(
        "both differences factor",
        r"$\cos((n-2)\theta) - \cos(\omega - (n-1)\theta) = 2\sin\frac{\omega-\theta}{2}\sin\frac{\omega - "
        r"(2n-3)\theta}{2}$ and $\cos((n-1)\theta) - \cos(\omega - (n-2)\theta) = "
        r"2\sin\frac{\omega+\theta}{2}\sin\frac{\omega - (2n-3)\theta}{2}$: products, which lose no digits.",
        holds=vanishes(first - common * sympy.sin((omega - theta) / 2))
        and vanishes(second - common * sympy.sin((omega + theta) / 2)),
    )
    yield symbolic(
        "which is the smaller",
        r"$\theta < \omega \le \pi$ (since $n \ge 2$), so $\sin\frac{\omega-\theta}{2}$ and "
        r"$\sin\frac{\omega+\theta}{2}$ are positive, and their difference $\sin\frac{\omega+\theta}{2} - "
        r"\sin\frac{\omega-\theta}{2} = 2\cos\frac{\omega}{2}\sin\frac{\theta}{2}$ is not negative (0 for $A = 2$ or "
        r"$\theta = 0$). The common factor has the sign of $\omega - (2n-3)\theta$, as $(2n-3)\theta < 2\omega$ keeps "
        r"its argument above $-\pi/2$. So the first product is the smaller while $(2n-3)\theta \le \omega$, the "
        "second from there on.",
        holds=vanishes(
            sympy.sin((omega + theta) / 2)
            - sympy.sin((omega - theta) / 2)
            - 2 * sympy.cos(omega / 2) * sympy.sin(theta / 2)
        ),
    )
    yield symbolic(
        "n = 2",
        r"There the two are $1 - \cos(\omega - \theta)$ and $\cos\theta - \cos\omega$, and $(2n-3)\theta = \theta < "
        r"\omega$: $\operatorname{worst}(2) = 1 - \cos(\omega - \theta)$, from a query that is its own answer. If "
        r"queries $(L, R)$ with $L \ne R$ only are asked, the answer is at $D = 1$, the query at $d = 0$ the only "
        r"rival, and the smallest margin is $\cos\theta - \cos\omega$.",
        holds=vanishes(first.subs(n, 2) - 1 + sympy.cos(omega - theta))
        and vanishes(second.subs(n, 2) - sympy.cos(theta) + sympy.cos(omega)),
    )


def _small_cases() -> Iterator[Step]:
    listed = {case: _scenes(*case) for case in LISTED}
    inputs = sum((letters * (letters + 1)) ** n for n, letters in LISTED)
    yield exact(
        "every input of small cases",
        f"All {inputs} inputs over $A$ letters and one integer with $(n, A)$ in {', '.join(map(str, LISTED))} were "
        f"listed; {sum(map(len, listed.values()))} different sets of scores are in the class. In rationals, for "
        rf"$\theta$ of {', '.join(map(str, SHARES))} of $\omega/(n-1)$: both pairs of the formula occur as best "
        "answer and best rival of an input, and every input has an answer at least as near, and rivals at least as "
        "far off, as one of the two pairs.",
        holds=all(
            _formula_is_least(scenes, n, letters, share) for (n, letters), scenes in listed.items() for share in SHARES
        ),
    )
    different = _scenes(2, 3, different=True)
    yield exact(
        "n = 2 with L and R different",
        r"Of the inputs with $n = 2$, $A = 3$ and a letter-letter query with $L \ne R$, every one has its answer at "
        f"$D = 1$ and its rival at $d = 0$, of shift 1 or 2 ({len(different)} sets of scores).",
        holds={rivals for _, rivals in different} == {frozenset({(0, 1)}), frozenset({(0, 2)})}
        and {answers for answers, _ in different} == {frozenset({1})},
    )


def _numbers() -> Iterator[Step]:
    near, far = _formula(17), _formula(100)
    yield ball(
        "numbers",
        rf"$A = {LETTERS}$, $\theta = {float(ANGLE)}$: $\operatorname{{worst}}(17) = {_shown(near)}$ and "
        rf"$\operatorname{{worst}}(100) = {_shown(far)}$; $(n-1)\theta < \omega$ at both.",
        holds=bool(99 * balls.ball(ANGLE) < balls.pi() * 2 / LETTERS)
        and abs(float(near) - 0.262195) <= 5e-7
        and abs(float(far) - 0.096435) <= 5e-7,
    )
    n, match, rival = 1500, 1164, 291
    with balls.precision(128):
        truth = balls.ball(match * ANGLE).cos() - (balls.pi() * 2 / LETTERS - balls.ball(rival * ANGLE)).cos()
    yield ball(
        "beyond the scope the formula is wrong",
        rf"$n = {n}$, where $(n-1)\theta$ exceeds $\omega$: the formula gives {_shown(_formula(n))}. But an answer at "
        f"$D = {match}$ against shift $-1$ at $d = {rival}$ has the margin {_shown(truth, 9)}, so worst is not above "
        "that; nor can it be below $-2$.",
        holds=bool((n - 1) * balls.ball(ANGLE) > balls.pi() * 2 / LETTERS)
        and bool(_formula(n) > 0.37)
        and bool(truth < -1.9999),
    )


def _scenes(n: int, letters: int, *, different: bool = False) -> set[tuple[frozenset[int], frozenset[tuple[int, int]]]]:
    """Distances of the answer, and distances with shifts of the rivals, of every input of the class over one integer.

    `different`: only those whose query is (L, R) with two different letters. Inputs that hold the answer alone have
    no rival, and are left out.
    """
    alphabet = "abcdefgh"[:letters]
    vocabulary = [tasks.Bigram(left, right) for left in alphabet for right in (*alphabet, 1)]
    found = set()
    for row in product(vocabulary, repeat=n):
        query = row[-1]
        sought = query.right if isinstance(query.right, str) else query.left
        holders = {token for token in row if token.left == sought}
        if len(holders) != 1 or not tasks.globally_proper(row) or tasks.retrieval(row)[-1] not in holders:
            continue
        if different and sought == query.left:
            continue
        shifts = [(alphabet.index(token.left) - alphabet.index(sought)) % letters for token in row]
        answers = frozenset(n - 1 - place for place, shift in enumerate(shifts) if shift == 0)
        rivals = frozenset((n - 1 - place, shift) for place, shift in enumerate(shifts) if shift)
        if rivals:
            found.add((answers, rivals))
    return found


def _formula_is_least(
    scenes: set[tuple[frozenset[int], frozenset[tuple[int, int]]]], n: int, letters: int, share: Fraction
) -> bool:
    """Whether the formula's two pairs occur, and every input has an answer as near and a rival as far as one of them.

    A pair is how far, in turns, the best answer and the best rival are from a whole turn; the cosine falls with both.
    """
    turn = share / letters / (n - 1)
    far = Fraction(1, letters)
    formula = [((n - 2) * turn, far - (n - 1) * turn), ((n - 1) * turn, far - (n - 2) * turn)]
    pairs = {
        (min(d * turn for d in answers), min(_distance(Fraction(s, letters) + d * turn) for d, s in rivals))
        for answers, rivals in scenes
    }
    covered = all(any(match <= m and rival >= r for m, r in formula) for match, rival in pairs)
    return covered and set(formula) <= pairs


def _distance(x: Fraction) -> Fraction:
    """To the nearest integer."""
    return min(x % 1, 1 - x % 1)


def _formula(n: int) -> balls.Ball:
    """The smaller of the two differences, as they are written, enclosed."""
    with balls.precision(192):
        omega, theta = balls.pi() * 2 / LETTERS, balls.ball(ANGLE)
        first = ((n - 2) * theta).cos() - (omega - (n - 1) * theta).cos()
        second = ((n - 1) * theta).cos() - (omega - (n - 2) * theta).cos()
        return first.min(second)


def _shown(value: balls.Ball, digits: int = 6) -> str:
    return str(Enclosure.of_ball(value).digits(digits))


def check() -> None:
    """The closed form against the engine's exact margins, by first returns too, on both sides of the sign change."""
    cases = ((17, 0.0027, 8), (100, 0.0027, 8), (2, 0.7, 8), (3, 0.3, 8), (5, 0.25, 6), (4, 0.5, 3), (2, 3.0, 2))
    for n, angle, letters in cases:
        profile = LetterProfile(spectrum=RopeSpectrum.from_angle(angle), weights=np.ones(1), letters=letters)
        value = _value(n, angle, letters)
        for truth in (
            float(retrieval_margin.worst_margin(profile, n)),
            float(retrieval_margin.letter_curve(profile, [n], route="first_return").points[0].worst),
        ):
            require(abs(value - truth) <= 1e-12 * abs(truth), f"length {n}, angle {angle}: {value!r}, engine {truth!r}")
    far = LetterProfile(spectrum=RopeSpectrum.from_angle("0.0027"), weights=np.ones(1), letters=8)
    beyond = float(retrieval_margin.worst_margin(far, 1500))
    require(-2 <= beyond <= -1.9999, f"worst at length 1500 is {beyond!r}, not -2.00")
    still = _value(9.0, 0.0, 6.0)
    require(abs(still - 0.5) <= 1e-14, f"angle 0 and six letters: {still!r}, not 1/2")
    require(abs(_value(1e150, 1e-150, 2.0) / (2 * np.cos(1.0)) - 1) <= 1e-13, "length 1e150, angle 1e-150")
    require(abs(_value(2.0, 0.0, 1e150) / (2 * (np.pi / 1e150) ** 2) - 1) <= 1e-14, "1e150 letters")
    shape = bounds.retrieval_worst_margin(np.array([2.0, 3.0]), np.array([[0.1], [0.2]]), np.array(2.0)).shape
    require(shape == (2, 2), f"retrieval_worst_margin does not broadcast: {shape}")
    for outside in (
        (1.0, 0.1, 8.0),
        (17.0, -1e-9, 8.0),
        (17.0, 0.0027, 1.0),
        (2.5, 0.1, 8.0),
        (17.0, 0.0027, 2.5),
        (np.nextafter(1e150, np.inf), 0.0, 8.0),
        (1e308, 0.0, 8.0),
        (2.0, np.nextafter(1e-150, 0), 8.0),
        (2.0, 0.0, np.inf),
        (2.0, np.pi / 4, 8.0),
        (1500.0, 0.0027, 8.0),
        (np.nan, 0.1, 8.0),
        (2.0, np.nan, 8.0),
        (2.0, 0.1, np.nan),
    ):
        require(
            refuses(bounds.retrieval_worst_margin, *map(np.array, outside)), f"retrieval_worst_margin takes {outside}"
        )


def _value(length: float, angle: float, letters: float) -> float:
    return float(bounds.retrieval_worst_margin(*(np.array(float(x)) for x in (length, angle, letters))))

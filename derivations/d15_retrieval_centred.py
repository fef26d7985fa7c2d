"""A retrieval head centred on length n decodes the inputs of that length iff (n-1) theta < omega, twice as far."""

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
    title="The centred retrieval head reaches twice as far",
    statement=(
        r"Turn every letter-letter query of the retrieval head by a further $-c\theta$, $c = (n-1)/2$, and leave "
        r"letter-integer queries as they are. Let $A \ge 2$, $\omega = 2\pi/A$, $n \ge 2$, $0 < \theta \le \pi$. Over "
        "globally proper inputs of length $n$ in which tokens with the answer's left letter are the answer, worst is "
        r"positive iff $(n-1)\theta < \omega$, that is $n < \frac{\omega}{\theta} + 1$, and 0 if $(n-1)\theta = "
        r"\omega$. While it is positive it is $1 - \cos(\omega - (n-1)\theta)$, from a letter-integer query; "
        r"letter-letter queries have at least $2\sin\frac{\omega}{2}\sin\frac{\omega - (n-1)\theta}{2}$, attained, "
        "which is not less."
    ),
    source="docs/MATHEMATICS.md, sections 3 and 6 (ours)",
    scope=(
        r"one plane, centred on the length of the input, $A \ge 2$, $n \ge 2$, $0 < \theta \le \pi$ (the values in "
        r"closed form: $\theta \ge 0$, $(n-1)\theta < \omega$); a vocabulary with at least one integer"
    ),
    status=Status.PROVED,
    ties=(
        "ropegeo.asymptotics.bounds.centred_lookup_margin",
        "ropegeo.asymptotics.bounds.centred_failing_length",
        "ropegeo.asymptotics.bounds.nearest_rival_margin",
        "ropegeo.engine.retrieval_margin.worst_margin",
        "ropegeo.engine.retrieval_margin.letter_curve",
    ),
)
ANGLE, LETTERS = Fraction(27, 10000), 8
"""At which numbers are shown."""
LISTED = ((2, 2), (2, 3), (2, 4), (3, 2), (3, 3), (4, 2), (5, 2))
"""Lengths and letters for which every input over the letters and one integer is listed."""
SHARES = (
    Fraction(1, 10),
    Fraction(6, 10),
    Fraction(95, 100),
    Fraction(1),
    Fraction(5, 4),
    Fraction(3),
    Fraction(17, 3),
)
"""Of omega/(n-1), as far as the angle stays below pi: within the scope of the values, at its end, and beyond."""


def steps() -> Iterator[Step]:
    """The proof."""
    yield from _within()
    yield from _beyond()
    yield from _small_cases()
    yield from _letter_integer()


def _within() -> Iterator[Step]:
    omega, theta, n, y = sympy.symbols("omega theta n y", real=True)
    half = (n - 1) * theta / 2
    yield argument(
        "pairs",
        r"A token at distance $d$ with shift $s$ scores $\cos(s\omega + (d-c)\theta)$ for a letter-letter query, "
        r"$\cos(s\omega + d\theta)$ for a letter-integer one, whose answer is at distance 0. As in claim "
        r"`retrieval_worst`, worst is the minimum over pairs of an answer at $D$ and a rival at $d \ne D$, $s "
        r"\not\equiv 0$: letter-letter queries reach every such pair, $D = 0$ by a query $(R, R)$, others by $(L, "
        r"R)$, $L \ne R$.",
    )
    yield argument(
        "letter-letter queries",
        r"Let $X = (n-1)\theta/2 < \omega/2 \le \pi/2$. Every $|d - c|\theta$ is at most $X$, so an answer scores at "
        r"least $\cos X$. A point of turn $s/A + x$ with $|x| < 1/A$, $1 \le s \le A - 1$, is at least $1/A - |x|$ "
        r"from both 0 and 1, so a rival scores at most $\cos(\omega - X)$, as $\omega - X \le \pi$. Both are met at "
        r"the two ends of the window, $D = 0$ and $d = n-1$ with $s = -1$: $D \ne d$ as $n \ge 2$.",
    )
    yield symbolic(
        "as a product",
        r"$\cos X - \cos(\omega - X) = 2\sin\frac{\omega}{2}\sin\frac{\omega - (n-1)\theta}{2}$.",
        holds=vanishes(
            sympy.cos(half)
            - sympy.cos(omega - half)
            - 2 * sympy.sin(omega / 2) * sympy.sin((omega - (n - 1) * theta) / 2)
        ),
    )
    yield symbolic(
        "letter-integer queries",
        r"Their smallest margin is $1 - \cos(\omega - (n-1)\theta) = 2\sin^2 y$ with $y = \frac{\omega - "
        r"(n-1)\theta}{2}$ (claim `retrieval_bound`). That of letter-letter queries is $2\sin\frac{\omega}{2}\sin y$, "
        r"and $0 < y \le \frac{\omega}{2} \le \frac{\pi}{2}$, where the sine grows: it is not less. So worst is "
        r"$2\sin^2 y$, positive.",
        holds=vanishes(1 - sympy.cos(2 * y) - 2 * sympy.sin(y) ** 2),
    )


def _beyond() -> Iterator[Step]:
    yield argument(
        "beyond",
        r"Let $0 < \theta \le \pi$ and $(n-1)\theta \ge \omega$. Of the lengths $n' \ge 2$ with the parity of $n$ "
        r"take the smallest with $(n'-1)\theta \ge \omega$. The displacements $\pm\frac{n'-1}{2}$ from the centre "
        "occur at length $n$ too, at two different distances; an answer at the nearer one and shift $-1$ at the "
        r"farther differ by $-2\sin\frac{\omega}{2}\sin\frac{(n'-1)\theta - \omega}{2}$. Either $n' \le 3$, and "
        r"$(n'-1)\theta - \omega < 2\theta \le 2\pi$, or $(n'-3)\theta < \omega$, which says the same. So the second "
        "sine is not negative, and worst is at most 0.",
    )
    yield argument(
        "at the end",
        r"If $(n-1)\theta = \omega$, the bounds on answers and rivals still hold, with $X = \omega/2$: $\cos X - "
        r"\cos(\omega - X) = 0$, attained; and letter-integer queries have at least $1 - \cos 0 = 0$. So worst is 0.",
    )
    last = balls.pi() * 2 / (LETTERS * balls.ball(ANGLE)) + 1
    uncentred = balls.pi() / (LETTERS * balls.ball(ANGLE)) + balls.ball(Fraction(3, 2))
    yield ball(
        "number",
        rf"$A = {LETTERS}$, $\theta = {float(ANGLE)}$: $\frac{{\omega}}{{\theta}} + 1 = "
        rf"{Enclosure.of_ball(last).digits(7)}$, so the last length decoded is 291. Uncentred it is 146, below "
        rf"$\frac{{\omega}}{{2\theta}} + \frac{{3}}{{2}} = {Enclosure.of_ball(uncentred).digits(7)}$.",
        holds=bool(last > 291) and bool(last < 292) and bool(uncentred > 146) and bool(uncentred < 147),
    )


def _small_cases() -> Iterator[Step]:
    listed = {case: _scenes(*case) for case in LISTED}
    yield exact(
        "every input of small cases",
        f"All inputs over $A$ letters and one integer with $(n, A)$ in {', '.join(map(str, LISTED))} were listed, in "
        rf"rationals, for $\theta$ of {', '.join(map(str, SHARES))} of $\omega/(n-1)$ where that is at most $\pi$. In "
        r"scope the nearest rival and the farthest answer of every letter-letter query are within $\omega - X$ and "
        r"$X$, both attained by one input, and a letter-integer query's nearest rival is at $\omega - (n-1)\theta$; "
        r"every input is decoded iff $(n-1)\theta < \omega$, and some input ties, and none fails, at equality.",
        holds=all(
            _fits(scenes, n, letters, share)
            for (n, letters), scenes in listed.items()
            for share in SHARES
            if share / letters / (n - 1) <= Fraction(1, 2)
        ),
    )


def _letter_integer() -> Iterator[Step]:
    theta = sympy.symbols("theta", real=True)
    row = [tasks.Bigram("a", 5), tasks.Bigram("a", 5), tasks.Bigram("a", 3)]
    own, other = (sympy.cos((d - sympy.Rational(len(row) - 1, 2)) * theta) for d in (0, 1))
    yield symbolic(
        "an input that a turned letter-integer query loses",
        f"Input ${' '.join(f'({token.left}, {token.right})' for token in row)}$ is globally proper, and its last "
        "token outputs itself. Centred on $n = 3$, $c = 1$, the query $(a, 3)$ would score itself "
        f"${sympy.latex(own)}$ and the $(a, 5)$ at $d = 1$ as much as ${other}$: more by "
        f"$2\\sin^2\\frac{{\\theta}}{{2}}$.",
        holds=tasks.globally_proper(row)
        and tasks.retrieval(row)[-1] == row[-1]
        and vanishes(other - own - 2 * sympy.sin(theta / 2) ** 2),
    )
    yield argument(
        "why letter-integer queries stay uncentred",
        r"It would lose itself at every $\theta$ but whole turns. At any $n \ge 3$ with $c\theta \le \pi$ a token $(a, "
        r"5)$ nearer to distance $c$ does that. Uncentred, it scores itself 1 and the others $\cos\theta$ and $\cos "
        r"2\theta$. (Where equal left letters mean equal tokens nothing would be lost by turning them too: the margin "
        r"is "
        "then that of the letter-letter query $(a, a)$.)",
    )


def _scenes(n: int, letters: int) -> set[tuple[bool, frozenset[int], frozenset[tuple[int, int]]]]:
    """Of every input: is the query a letter-integer; distances of the answer; distances with shifts of the rivals."""
    alphabet = "abcdefgh"[:letters]
    vocabulary = [tasks.Bigram(left, right) for left in alphabet for right in (*alphabet, 1)]
    found = set()
    for row in product(vocabulary, repeat=n):
        query = row[-1]
        sought = query.right if isinstance(query.right, str) else query.left
        holders = {token for token in row if token.left == sought}
        if len(holders) != 1 or not tasks.globally_proper(row) or tasks.retrieval(row)[-1] not in holders:
            continue
        shifts = [(alphabet.index(token.left) - alphabet.index(sought)) % letters for token in row]
        answers = frozenset(n - 1 - place for place, shift in enumerate(shifts) if shift == 0)
        rivals = frozenset((n - 1 - place, shift) for place, shift in enumerate(shifts) if shift)
        if rivals:
            found.add((isinstance(query.right, int), answers, rivals))
    return found


def _fits(
    scenes: set[tuple[bool, frozenset[int], frozenset[tuple[int, int]]]], n: int, letters: int, share: Fraction
) -> bool:
    """Whether the claim holds for all scenes at an angle of share * omega/(n-1).

    Answers and rivals are compared by how far, in turns, they are from a perfect match: the cosine falls with that.
    """
    turn = share / letters / (n - 1)
    pairs: dict[bool, set[tuple[Fraction, Fraction]]] = {True: set(), False: set()}
    for own, answers, rivals in scenes:
        c = Fraction(0) if own else Fraction(n - 1, 2)
        match = min(_distance((d - c) * turn) for d in answers)
        pairs[own].add((match, min(_distance(Fraction(s, letters) + (d - c) * turn) for d, s in rivals)))
    least = min(rival - match for match, rival in pairs[True] | pairs[False])
    if share > 1:
        return least <= 0
    if (least > 0, least == 0) != (share < 1, share == 1):
        return False
    end, far = (n - 1) * turn / 2, Fraction(1, letters)
    within = all(match <= end and rival >= far - end for match, rival in pairs[False])
    own_least = {match for match, _ in pairs[True]} == {0} and min(rival for _, rival in pairs[True]) == far - 2 * end
    return within and (end, far - end) in pairs[False] and own_least


def _distance(x: Fraction) -> Fraction:
    """To the nearest integer."""
    return min(x % 1, 1 - x % 1)


def check() -> None:
    """The closed forms against the engine's exact margins of a head centred on the length, found by first returns."""
    for n, angle, letters in ((17, 0.0027, 8), (200, 0.0027, 8), (2, 0.7, 8), (3, 0.3, 8), (5, 0.25, 6), (4, 0.6, 3)):
        profile = _profile(angle, letters, n)
        look_up, worst = (
            float(bound(np.array(float(n)), np.array(angle), np.array(float(letters))))
            for bound in (bounds.centred_lookup_margin, bounds.nearest_rival_margin)
        )
        point = retrieval_margin.letter_curve(profile, [n], target=n - 1, route="first_return").points[0]
        for name, value, truth in (
            ("centred_lookup_margin", look_up, float(point.margin)),
            ("nearest_rival_margin", worst, float(point.worst)),
            ("nearest_rival_margin", worst, float(retrieval_margin.worst_margin(profile, n))),
        ):
            require(abs(value - truth) <= 1e-12 * truth, f"{name}, length {n}, angle {angle}: {value!r}, not {truth!r}")
    still = float(bounds.centred_lookup_margin(np.array(9.0), np.array(0.0), np.array(6.0)))
    require(abs(still - 0.5) <= 1e-14, f"angle 0 and six letters: {still!r}, not 1/2")
    _signs()
    for outside in (
        (1.0, 0.1, 8.0),
        (17.0, -1e-9, 8.0),
        (17.0, 0.0027, 1.0),
        (2.0, np.pi / 4, 8.0),
        (np.nan, 0.1, 8.0),
        (2.5, 0.1, 8.0),
        (17.0, 0.0027, 2.5),
        (np.nextafter(1e150, np.inf), 0.0, 8.0),
        (2.0, np.nextafter(1e-150, 0), 8.0),
        (2.0, 0.0, np.inf),
    ):
        refused = refuses(bounds.centred_lookup_margin, *map(np.array, outside))
        require(refused, f"centred_lookup_margin takes {outside}")
    require(abs(_value(1e-150, 2) / (np.pi / 1e-150) - 1) <= 1e-14, "angle 1e-150")
    require(abs(_value(1e-150, int(1e150)) - 2 * np.pi - 1) <= 1e-14, "angle 1e-150, 1e150 letters")
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
        refused = refuses(bounds.centred_failing_length, np.array(angle), np.array(count))
        require(refused, f"centred_failing_length takes angle {angle}, {count} letters")


def _signs() -> None:
    """worst of the head centred on n is positive iff n is below the real length, and 0 at it."""
    for angle, letters in ((3.1, 2), (2.2, 2), (0.4, 3), (0.0413, 8), (0.0027, 8)):
        length = _value(angle, letters)
        for n in {2, 3, 4, 5, int(length) - 1, int(length), int(length) + 1, int(length) + 2} - {0, 1}:
            sign = retrieval_margin.worst_margin(_profile(angle, letters, n), n).sign
            require(sign == (1 if n < length else -1), f"angle {angle}, {letters} letters: sign {sign} at length {n}")
    for letters, times in ((2, 1), (2, 4), (8, 5), (3, 6)):
        profile = _profile(f"1/{letters * times} turn", letters, times + 1)
        length = _value(float(profile.spectrum.inv_freq[0]), letters)
        require(abs(length - times - 1) <= 1e-13 * length, f"angle omega/{times}: {length!r}, not {times + 1}")
        worst = retrieval_margin.worst_margin(profile, times + 1)
        require(worst.sign == 0, f"angle omega/{times}: worst({times + 1}) is {worst}, not exactly 0")
    require(abs(_value(np.pi, 4) - 1.5) <= 1e-14, "angle pi and four letters")


def _value(angle: float, letters: int) -> float:
    return float(bounds.centred_failing_length(np.array(angle), np.array(float(letters))))


def _profile(angle: float | str, letters: int, length: int) -> LetterProfile:
    """The head centred on a length."""
    spectrum = RopeSpectrum.from_angle(angle)
    return LetterProfile(spectrum=spectrum, weights=np.ones(1), letters=letters, centre=Fraction(length - 1, 2))

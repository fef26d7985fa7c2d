"""From a least beta on softmax decodes the inputs whose tokens with the answer's left letter are the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from math import cos, exp, pi

import numpy as np
import sympy

from ropegeo import tasks
from ropegeo.claims import (
    Claim,
    Status,
    Step,
    argument,
    ball,
    counterexample,
    exact,
    refuses,
    require,
    symbolic,
    vanishes,
)
from ropegeo.engine import softmax
from ropegeo.exact import Enclosure, balls
from ropegeo.heads import LetterProfile
from ropegeo.spectrum import RopeSpectrum

CLAIM = Claim(
    title="From which scale on softmax decodes Retrieval",
    statement=(
        "Let $m(D)$ be the score of an answer at distance $D$ and $r(s, d)$ that of a token at $d$ whose letter is "
        r"$s$ after the one sought, per unit of $\beta$. Softmax decodes every globally proper input of length $n$ in "
        r"which tokens with the answer's left letter are the answer iff for every $0 \le D \le n-1$ and $s \not\equiv "
        r"0$ each $\sum_{d} \exp(-\beta(m(D) - r(s, d)))$ is below 1: over $1 \le d \le n-1$ if $D = 0$; over $0 \le "
        r"d \le D-1$, and over $1 \le d \le n-1$ without $D$, if $D \ge 1$. If $\operatorname{worst}(n) > 0$ that "
        r"holds exactly above some $\beta_{\min} \ge 0$. A centred head adds the sums of its uncentred letter-integer "
        "queries, $D = 0$."
    ),
    source="Urrutia et al., arXiv 2605.31558, softmax form of Retrieval; docs/MATHEMATICS.md, sections 6 and 8",
    scope=(
        r"inputs in which tokens with the answer's left letter are the answer; any planes, $n \ge 2$, "
        r"$\operatorname{worst}(n) > 0$, a vocabulary with at least one integer"
    ),
    status=Status.IN_SCOPE,
    ties=("ropegeo.engine.softmax.retrieval_softmax_scale",),
    as_stated=(
        r"softmax attention computes Retrieval once $\beta$ is large against the smallest discrepancy, taken to be "
        r"the one that the angle $2\pi/|\operatorname{ALPH}|$ between letters induces"
    ),
    cause=(
        "Keys depend on left letters only. A letter-integer query may meet a token with its own left letter and "
        r"another integer, which falls behind by its distance alone: one position away by $1 - \cos\theta$."
    ),
)
ANGLE, LETTERS = Fraction(27, 10000), 8
"""At which numbers are shown."""
LISTED = ((2, 2), (2, 3), (3, 2), (3, 3), (4, 2), (5, 2))
"""Lengths and letters for which every input over the letters and one integer is listed."""


def steps() -> Iterator[Step]:
    """The inputs that the source's condition misses, then the proof in scope."""
    yield from _missed()
    yield from _proof()


def _missed() -> Iterator[Step]:
    theta = sympy.symbols("theta", real=True)
    pair = [tasks.Bigram("a", 5), tasks.Bigram("a", 3)]
    yield symbolic(
        "told apart by their distance only",
        f"Input ${_written(pair)}$, globally proper; its last token outputs itself. Both tokens have the key of $a$, "
        r"so the query scores 1 on itself and $\cos\theta$ on the other: the margin is $1 - \cos\theta = "
        r"2\sin^2\frac{\theta}{2}$ exactly, whatever the angle between letters is.",
        holds=tasks.globally_proper(pair)
        and tasks.retrieval(pair)[-1] == pair[-1]
        and vanishes(1 - sympy.cos(theta) - 2 * sympy.sin(theta / 2) ** 2),
    )
    triple = [tasks.Bigram("a", 5), tasks.Bigram("a", 5), tasks.Bigram("a", 3)]
    small, large = 100, 80_000
    gaps = [_one_minus_cosine(t) for t in (1, 2)]
    with balls.precision(128):
        seen = {beta: sum(((-beta * gap).exp() for gap in gaps), balls.ball(0)) for beta in (small, large)}
    inside = _largest_sum(3, small)
    yield counterexample(
        "a scale that suffices in scope, and fails here",
        rf"$A = {LETTERS}$, $\theta = {float(ANGLE)}$, $n = 3$: at $\beta = {small}$ the largest sum of the claim is "
        rf"{_shown(inside)}, so every input in scope is decoded. But in ${_written(triple)}$ the two $(a, 5)$ "
        rf"together weigh {_shown(seen[small])} times the answer, and still {_shown(seen[large])} times at $\beta = "
        rf"{large}$: the output is $(a, 5)$. No input is shorter: at $n = 2$ the only rival is behind by $1 - "
        rf"\cos\theta > 0$ at least, and loses at every $\beta > 0$.",
        holds=tasks.globally_proper(triple)
        and tasks.retrieval(triple)[-1] == triple[-1]
        and bool(inside < 1)
        and all(bool(value > 1) for value in seen.values()),
    )


def _proof() -> Iterator[Step]:
    yield argument(
        "the read-out",
        "The head outputs the sum of softmax weights on each token, without a residual. So it decodes iff the "
        "answer's weight is above that of every other token. Dividing by the normaliser, a token with shift $s$ at "
        r"the distances $S$ weighs $\sum_{d \in S} \exp(\beta r(s, d))$, the answer at distances $P$ "
        r"$\sum_{D \in P} \exp(\beta m(D))$.",
    )
    yield argument(
        "no input has more than the sums",
        r"Let $D$ be 0 if the query is its own answer, else the largest of $P$. The answer weighs at least "
        r"$\exp(\beta m(D))$. If the query is its own answer, any other token stands within $1, \ldots, n-1$. Else "
        "the query's own token is a letter-letter one that needs the answer at or before it, so it stands within $0, "
        r"\ldots, D-1$; any other token stands neither at $D$ nor at 0. So a rival's share is at most a sum of the "
        "claim.",
    )
    yield argument(
        "each sum is an input's",
        r"$D = 0$: query $(R, 1)$, or $(R, R)$ for a centred head's letter-letter sum, rival $(L, 1)$ of shift $s$ at "
        r"all other distances. $D \ge 1$: query $(L, R)$, $L "
        r"\ne R$, answer $(R, 1)$ at $D$ only. For the first sum $L$ has shift $s$ and $(L, R)$ stands at $0, \ldots, "
        "D-1$, $(L, 1)$ beyond $D$. For the second the letter-integer token of shift $s$ stands everywhere but at 0 "
        "and $D$. All are globally proper and in the class.",
    )
    scenes = {case: _scenes(*case) for case in LISTED}
    yield exact(
        "every input of small cases",
        f"All inputs over $A$ letters and one integer with $(n, A)$ in {', '.join(map(str, LISTED))} were listed: "
        f"{sum(map(len, scenes.values()))} different sets of distances of an answer and one other token. Each lies "
        "within one of the claim's sums, for one of its answer's distances, if the query is a letter-integer one "
        "within a sum of $D = 0$; and each sum of the claim is one of a letter-letter query, those of $D = 0$ of a "
        "letter-integer one too.",
        holds=all(_are_the_sums(found, n, letters) for (n, letters), found in scenes.items()),
    )
    yield argument(
        "one least scale",
        r"If $\operatorname{worst}(n) > 0$ every exponent $m(D) - r(s, d)$, $D \ne d$, is positive, as "
        r"$\operatorname{worst}(n)$ is the smallest of them: an input's best answer less its best rival is one of them "
        r"at least, and each belongs to an input, by the steps before. So each sum falls in $\beta$, "
        r"strictly and to 0, and so does the largest: it is below 1 exactly above the root $\beta_{\min}$ of largest "
        r"sum $= 1$, or for every $\beta > 0$ if no sum has more than one term ($n = 2$). Every pair $D \ne d$ stands "
        r"in some sum, so if $\operatorname{worst}(n) \le 0$, one of them is at least 1 at every $\beta$.",
    )
    low, high = 10, 11
    yield ball(
        "number",
        rf"$A = {LETTERS}$, $\theta = {float(ANGLE)}$, $n = 17$, where worst is 0.262: the largest sum is "
        rf"{_shown(_largest_sum(17, low))} at $\beta = {low}$ and {_shown(_largest_sum(17, high))} at $\beta = "
        rf"{high}$, so $\beta_{{\min}}$ lies between.",
        holds=bool(_largest_sum(17, low) > 1) and bool(_largest_sum(17, high) < 1),
    )


def _sums(n: int) -> list[tuple[int, frozenset[int]]]:
    """Distance of the answer and distances summed over, for every sum of the claim that has a term."""
    listed = [(0, frozenset(range(1, n)))]
    for at in range(1, n):
        listed += [(at, frozenset(range(at))), (at, frozenset(range(1, n)) - {at})]
    return [(at, places) for at, places in listed if places]


_Scene = tuple[bool, frozenset[int], int, frozenset[int]]
"""Whether the query is a letter-integer; where the answer stands; shift of one other token, and where that stands."""


@cache
def _scenes(n: int, letters: int) -> frozenset[_Scene]:
    """Of every input of the class over one integer, one for each token that is not the answer."""
    alphabet = "abcdefgh"[:letters]
    vocabulary = [tasks.Bigram(left, right) for left in alphabet for right in (*alphabet, 1)]
    found: set[_Scene] = set()
    for row in product(vocabulary, repeat=n):
        query = row[-1]
        sought = query.right if isinstance(query.right, str) else query.left
        holders = {token for token in row if token.left == sought}
        if len(holders) != 1 or not tasks.globally_proper(row):
            continue
        places: dict[tasks.Bigram, list[int]] = {}
        for place, token in enumerate(reversed(row)):
            places.setdefault(token, []).append(place)
        answers = frozenset(places.pop(tasks.retrieval(row)[-1]))
        for token, stands in places.items():
            shift = (alphabet.index(token.left) - alphabet.index(sought)) % letters
            found.add((isinstance(query.right, int), answers, shift, frozenset(stands)))
    return frozenset(found)


def _are_the_sums(scenes: frozenset[_Scene], n: int, letters: int) -> bool:
    sums = _sums(n)
    within = all(
        shift and any(D in answers and places <= summed for D, summed in sums if D == 0 or not is_own)
        for is_own, answers, shift, places in scenes
    )
    seen = {(answers, shift, places) for is_own, answers, shift, places in scenes if not is_own}
    attained = all((frozenset({D}), s, summed) in seen for D, summed in sums for s in range(1, letters))
    own = {(shift, places) for is_own, answers, shift, places in scenes if is_own and answers == {0}}
    return within and attained and all((s, frozenset(range(1, n))) in own for s in range(1, letters))


def _largest_sum(n: int, beta: int) -> balls.Ball:
    """The largest sum of the claim at `ANGLE` and `LETTERS`, uncentred."""
    with balls.precision(128):
        theta, omega = balls.ball(ANGLE), balls.pi() * 2 / LETTERS
        match = [(D * theta).cos() for D in range(n)]
        largest = balls.ball(0)
        for s in range(1, LETTERS):
            weight = [(beta * (s * omega + d * theta).cos()).exp() for d in range(n)]
            for at, places in _sums(n):
                total = sum((weight[d] for d in places), balls.ball(0))
                largest = largest.max(total * (-beta * match[at]).exp())
        return largest


def _one_minus_cosine(t: int) -> balls.Ball:
    with balls.precision(128):
        return 2 * (balls.ball(t * ANGLE) / 2).sin() ** 2


def _written(row: Iterable[tasks.Bigram]) -> str:
    return "".join(f"({token.left}, {token.right})" for token in row)


def _shown(value: balls.Ball) -> str:
    return str(Enclosure.of_ball(value).digits(4))


def check() -> None:
    """Just above the scale every input is decoded, just below it some input is not; one by one, centred or not."""
    cases = (
        (3, 2, 0.9, Fraction(0)),
        (3, 3, 0.2, Fraction(0)),
        (4, 2, 0.5, Fraction(0)),
        (5, 2, 0.05, Fraction(0)),
        (4, 2, 0.8, Fraction(3, 2)),
        (3, 3, 0.9, Fraction(1)),
    )
    for n, letters, angle, centre in cases:
        spectrum = RopeSpectrum.from_angle(angle)
        profile = LetterProfile(spectrum=spectrum, weights=np.ones(1), letters=letters, centre=centre)
        scale = softmax.retrieval_softmax_scale(profile, n)
        scenes = _scenes(n, letters)
        require(
            all(_wins(scene, angle, letters, centre, scale * (1 + 1e-9)) for scene in scenes),
            f"length {n}, {letters} letters, angle {angle}: an input fails above beta {scale!r}",
        )
        require(
            not all(_wins(scene, angle, letters, centre, scale * (1 - 1e-9)) for scene in scenes),
            f"length {n}, {letters} letters, angle {angle}: no input fails below beta {scale!r}",
        )
    paper = LetterProfile(spectrum=RopeSpectrum.from_angle("0.0027"), weights=np.ones(1), letters=8)
    require(softmax.retrieval_softmax_scale(paper, 2) == 0, "two tokens need a scale")
    scale = softmax.retrieval_softmax_scale(paper, 17)
    require(10 < scale < 11, f"beta_min at length 17 is {scale!r}")
    require(refuses(softmax.retrieval_softmax_scale, paper, 147), "a scale is given where worst(n) is not positive")


def _wins(scene: _Scene, angle: float, letters: int, centre: Fraction, beta: float) -> bool:
    """Whether the answer outweighs the other token."""
    own, answers, shift, places = scene
    c = 0.0 if own else float(centre)
    answer = sum(exp(beta * cos((d - c) * angle)) for d in answers)
    return answer > sum(exp(beta * cos(2 * pi * shift / letters + (d - c) * angle)) for d in places)

"""T_Index is purely positional at every angle, T_Retrieval purely symbolic at angle 0 and nearly so at small ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import sympy

from ropegeo._arrays import FloatArray
from ropegeo.asymptotics import bounds
from ropegeo.claims import Claim, Status, Step, ball, counterexample, require, symbolic, vanishes
from ropegeo.construct import index, retrieval
from ropegeo.construct.built import BuiltHead, Token
from ropegeo.exact import balls
from ropegeo.spectrum import RopeSpectrum
from ropegeo.tasks import Bigram

CLAIM = Claim(
    title="The built heads: purely positional, and purely symbolic at angle 0",
    statement=(
        r"T_Index: the logit of a key does not depend on its content, so every swap has positional score 1, and "
        r"symbolic score $\frac{1}{\cosh(l_b - l_a)}$. T_Retrieval with $\theta$ a multiple of $2\pi$: the logit does "
        r"not depend on the position, so every swap has symbolic score 1. With any other $\theta$, $0 < (n-1)\theta < "
        r"\omega$, $n \ge 3$: every swap has a symbolic score of at least $\frac{1}{\cosh(\beta(n-2)\theta)}$, and "
        r"some swap one below 1, with positional score 1: that of two copies of the token sought, at distances 1 and "
        r"2."
    ),
    source="Urrutia et al., arXiv 2605.31558, Remark 3.1 and appendix F.2; scores: appendix D",
    scope=r"T_Index: every angle. T_Retrieval: exactly for $\theta = 0$ (modulo $2\pi$); else up to the bound given",
    status=Status.IN_SCOPE,
    ties=(
        "ropegeo.construct.index.token_index_head",
        "ropegeo.construct.retrieval.retrieval_head",
        "ropegeo.asymptotics.bounds.swap_scores",
    ),
    as_stated="T_Index is purely positional and T_Retrieval is purely symbolic.",
    cause=(
        r"T_Retrieval's logit is $\beta\cos((\phi(L_{key}) - \phi(query))\omega + (n-j)\theta)$: unless $\theta = 0$, "
        r"it depends on the position too."
    ),
)
LETTERS, LENGTH, ANGLE, SCALE = 8, 17, Fraction(27, 10_000), 10
"""A case of the paper's size for which all swaps are enclosed."""


def steps() -> Iterator[Step]:
    """The proof."""
    p, q, x, y = sympy.symbols("p q x y", real=True)
    square = (sympy.cosh(q) ** 2 / (sympy.cosh(q) ** 2 + sympy.sinh(p) ** 2)).rewrite(sympy.exp)
    scores_at_level = [
        (sympy.cosh(p) ** 2 / (sympy.cosh(p) ** 2 + sympy.sinh(q) ** 2)).subs(q, 0),
        (sympy.cosh(q) ** 2 / (sympy.cosh(q) ** 2 + sympy.sinh(p) ** 2)).subs(q, 0).subs(p, x),
    ]
    yield symbolic(
        "contents do not matter",
        r"Squares of the scores, with $x = l_b - l_a$ before, $y = l'_b - l'_a$ after, $p = \frac{x+y}{2}$, $q = "
        r"\frac{x-y}{2}$ (derivation `exclusion`): $\frac{\cosh^2 p}{\cosh^2 p + \sinh^2 q}$ positional, "
        r"$\frac{\cosh^2 q}{\cosh^2 q + \sinh^2 p}$ symbolic. T_Index scores position $j$ with $\beta \sum_k a_k "
        r"\cos((n - j - i)\theta_k)$ whatever stands there (derivation `index_logits`): $y = x$, $q = 0$, $p = x$. The "
        r"positional score is 1, the symbolic one $\frac{1}{\cosh x}$.",
        holds=scores_at_level[0] == 1 and vanishes((scores_at_level[1] * sympy.cosh(x) ** 2 - 1).rewrite(sympy.exp)),
    )
    yield symbolic(
        "positions do not matter",
        r"T_Retrieval at $\theta = 0$ (derivation `retrieval_logits`; a whole turn is 0 for integer positions): "
        r"content $c$ scores $\beta\cos((\phi(L_c) - \phi(query))\omega)$ wherever it stands. The swap moves the "
        r"logits along: $y = -x$, $p = 0$, and the symbolic score is 1.",
        holds=square.subs(p, 0) == 1 and ((x + y) / 2).subs(y, -x) == 0,
    )
    yield from _departure(p, q)


def _departure(p: sympy.Symbol, q: sympy.Symbol) -> Iterator[Step]:
    beta, theta = sympy.symbols("beta theta", positive=True)
    gap = beta * (sympy.cos(theta) - sympy.cos(2 * theta))
    at = sympy.pi / 6
    shown = sympy.simplify(gap.subs(theta, at).subs(beta, SCALE))
    yield counterexample(
        "two copies of the token sought",
        rf"They stand at distances 2 and 1, so the swap changes nothing: $y = x = \beta(\cos\theta - \cos 2\theta)$, "
        rf"positional score 1, symbolic score $\frac{{1}}{{\cosh x}}$. As $2\theta \le (n-1)\theta < \omega \le \pi$, "
        rf"cosine falls and $x > 0$. For $A = 2$ letters, $\theta = \frac{{\pi}}{{6}}$, $n = 3$ and $\beta = "
        rf"{SCALE}$: $x = {sympy.latex(shown)}$, symbolic score {float(1 / sympy.cosh(shown)):.6f}.",
        holds=shown.is_positive is True
        and _below_one(shown)
        and vanishes(gap.subs(theta, at) - beta * (sympy.sqrt(3) - 1) / 2),
    )
    over = sympy.cosh(q) ** 2 / (sympy.cosh(q) ** 2 + sympy.sinh(p) ** 2) - 1 / sympy.cosh(p) ** 2
    form = sympy.sinh(p) ** 2 * sympy.sinh(q) ** 2 / ((sympy.cosh(q) ** 2 + sympy.sinh(p) ** 2) * sympy.cosh(p) ** 2)
    a, b = sympy.symbols("a b", real=True)
    yield symbolic(
        "how far at most",
        r"The symbolic score's square is $\frac{1}{\cosh^2 p}$ plus $\frac{\sinh^2 p \sinh^2 q}{(\cosh^2 q + \sinh^2 "
        r"p)\cosh^2 p} \ge 0$, so the score is at least $\frac{1}{\cosh p}$. With contents at shifts $u$, $v$ and "
        r"distances $d_a > d_b$, $2p = x + y$ is $\beta$ times the sum of $\cos(v\omega + d_b\theta) - \cos(v\omega + "
        r"d_a\theta)$ and the same with $u$. A difference of cosines is $2 \sin \sin$ of half the sum and half the "
        r"difference of the angles, so at most $(d_a - d_b)\theta$: $|p| \le \beta (d_a - d_b)\theta \le "
        r"\beta(n-2)\theta$.",
        holds=vanishes((over - form).rewrite(sympy.exp))
        and vanishes(sympy.cos(b) - sympy.cos(a) - 2 * sympy.sin((a + b) / 2) * sympy.sin((a - b) / 2)),
    )
    lowest, floor, all_above = _enclosed()
    yield ball(
        "all swaps of one case",
        rf"$A = {LETTERS}$, $n = {LENGTH}$, $\theta = {float(ANGLE)}$, $\beta = {SCALE}$: for all {LETTERS}^2 pairs "
        rf"of letters and all pairs of distances from 1 to {LENGTH - 1} the symbolic score was enclosed. The smallest "
        rf"is {lowest:.6f}, the bound {floor:.6f}.",
        holds=all_above and lowest < 1,
    )


def _below_one(gap: sympy.Expr) -> bool:
    """Whether 1/cosh of an exact number is certainly below 1."""
    return bool(sympy.cosh(gap).evalf(30) > 1 + sympy.Rational(1, 10**6))


def _enclosed() -> tuple[float, float, bool]:
    """Smallest symbolic score, the bound, and whether every score is certainly at or above it."""
    with balls.precision(80):
        theta, omega = balls.ball(ANGLE), 2 * balls.pi() / LETTERS
        logits = {
            (shift, d): SCALE * (shift * omega + d * theta).cos() for shift in range(LETTERS) for d in range(1, LENGTH)
        }
        floor = 1 / (SCALE * (LENGTH - 2) * theta).cosh()
        scores = []
        for far, near in combinations(range(LENGTH - 1, 0, -1), 2):
            for u, v in product(range(LETTERS), repeat=2):
                phi = (logits[v, near] - logits[u, far]).exp().atan()
                psi = (logits[u, near] - logits[v, far]).exp().atan()
                scores.append((phi + psi).sin())
        return min(float(score) for score in scores), float(floor), all(score > floor for score in scores)


def _index_head(angle: str, beta: float = 3.0) -> BuiltHead:
    return index.token_index_head(RopeSpectrum.from_angle(angle), letters=("a", "b"), integers=(1, 2, 3), beta=beta)


def _retrieval_head(angle: str, beta: float, letters: Sequence[str] = ("a", "b", "c")) -> BuiltHead:
    return retrieval.retrieval_head(RopeSpectrum.from_angle(angle), letters=letters, integers=(1,), beta=beta)


def _table(made: BuiltHead, query: int, length: int) -> FloatArray:
    """C[p, c]: logit of every token of the vocabulary at every position before the last, for a query there."""
    states = made.embedding
    return np.array(
        [
            [made.head.logit(states[query], length - 1, state, position) for state in states]
            for position in range(length - 1)
        ]
    )


def _all_swaps(table: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Logits of every swap: positions a < b, contents u at a and v at b."""
    positions, contents = table.shape
    places = list(combinations(range(positions), 2))
    a, b, u, v = np.array([(*place, *pair) for place in places for pair in product(range(contents), repeat=2)]).T
    return table[a, u], table[b, v], table[a, v], table[b, u]


def check() -> None:
    """Scores of all swaps of the built heads, from their own logits."""
    made = _index_head("1")
    for query in (0, len(made.tokens) - 1):
        logits = _all_swaps(_table(made, query, 6))
        positional, symbolic_scores = bounds.swap_scores(*logits)
        require(bool((positional == 1).all()), f"token_index_head: positional scores down to {positional.min()}")
        expected = 1 / np.cosh(logits[1] - logits[0])
        require(
            bool((abs(symbolic_scores - expected) <= 1e-13).all()), "token_index_head: symbolic scores are not 1/cosh"
        )
        require(bool(symbolic_scores.min() < 1 / 2), "token_index_head: symbolic scores are high")
    still = _retrieval_head("1 turn", 5.0)
    for query in (0, len(still.tokens) - 1):
        positional, symbolic_scores = bounds.swap_scores(*_all_swaps(_table(still, query, 4)))
        require(
            bool((symbolic_scores == 1).all()), f"retrieval_head at one turn: symbolic down to {symbolic_scores.min()}"
        )
        require(bool(positional.min() < 1 / 2), "at one turn positional scores are high")
    beta, length = 5.0, 5
    for angle, theta in (("1/40 turn", np.pi / 20), ("1/400 turn", np.pi / 200)):
        turning = _retrieval_head(angle, beta)
        for query in (1, len(turning.tokens) - 1):
            _, symbolic_scores = bounds.swap_scores(*_all_swaps(_table(turning, query, length)))
            floor = 1 / np.cosh(beta * (length - 2) * theta)
            lowest = float(symbolic_scores.min())
            require(floor <= lowest < 1, f"retrieval_head at {angle}: symbolic scores down to {lowest}, bound {floor}")
    _check_copies()


def _check_copies() -> None:
    """Two letters, theta = pi/6, n = 3: two copies of the token sought."""
    turning = _retrieval_head("1/12 turn", float(SCALE), ("a", "b"))
    row: list[Token] = list(turning.tokens)
    sought, query = row.index(Bigram("a", 1)), row.index(Bigram("b", "a"))
    far, near = _table(turning, query, 3)[:, sought]
    positional, symbolic_score = bounds.swap_scores(*(np.array([logit]) for logit in (far, near, far, near)))
    expected = 1 / np.cosh(SCALE * (3**0.5 - 1) / 2)
    require(float(positional[0]) == 1, f"two copies have the positional score {positional[0]}")
    require(
        abs(float(symbolic_score[0]) - expected) <= 1e-12, f"two copies have the symbolic score {symbolic_score[0]}"
    )

"""The scores of a swap depend on four logits only: not on the normaliser, a constant, or other positions."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import sympy

from ropegeo._arrays import FloatArray
from ropegeo.asymptotics import bounds
from ropegeo.claims import Claim, Status, Step, argument, exact, require, symbolic, vanishes
from ropegeo.construct import transformer
from ropegeo.heads import head
from ropegeo.spectrum import RopeSpectrum

CLAIM = Claim(
    title="The scores of a swap need four logits and no second forward pass",
    statement=(
        r"Fix a query and let $C_{pc}$ be the logit of content $c$ at position $p$. Swap the contents of $a$ and $b$, "
        r"both before the query, and let $D, D'$ be the softmax over all visible positions before and after. The "
        r"cosine of $(D'_a, D'_b)$ with $(D_a, D_b)$, and with $(D_b, D_a)$, is a function of $C_{bb} - C_{aa}$ and "
        r"$C_{ba} - C_{ab}$ only. So one matrix $C$ gives the scores of all swaps, and a constant added to all "
        r"logits, before or after, changes none."
    ),
    source=(
        "Urrutia et al., arXiv 2605.31558, appendix D, and arXiv 2511.11579, for the scores; that no forward pass per "
        "swap is needed is ours"
    ),
    scope="finite logits, each of the query, a position and the content there, as in one layer of attention",
    status=Status.PROVED,
    ties=(
        "ropegeo.asymptotics.bounds.swap_scores",
        "ropegeo.construct.transformer.attention_weights",
        "ropegeo.heads.head.Head",
    ),
)
RATIOS = (Fraction(1, 3), Fraction(1), Fraction(2), Fraction(7))
"""Values of exp(logit) that are enumerated: softmax is rational in them."""


def steps() -> Iterator[Step]:
    """The proof."""
    yield argument(
        "what a swap changes",
        r"Attention scores each key by the query, the key's position and its content. After the swap position $a$ "
        r"holds content $b$ and position $b$ content $a$: two logits change, $C_{aa}$ to $C_{ab}$ and $C_{bb}$ to "
        r"$C_{ba}$. The query stands after both and keeps its content, and every other logit stays. Only the "
        r"normaliser $Z = \sum_p e^{C_{pp}}$ mixes them, and becomes another $Z'$.",
    )
    names = sympy.symbols("l_a l_b m_a m_b kappa lambda", real=True)
    l_a, l_b, m_a, m_b, shift, later = names
    z, w = sympy.symbols("Z W", positive=True)
    e = sympy.exp
    before, after = sympy.Matrix([e(l_a) / z, e(l_b) / z]), sympy.Matrix([e(m_a) / w, e(m_b) / w])
    plain_before, plain_after = sympy.Matrix([1, e(l_b - l_a)]), sympy.Matrix([1, e(m_b - m_a)])
    swap = sympy.Matrix([[0, 1], [1, 0]])
    yield symbolic(
        "the normalisers cancel",
        r"$(D_a, D_b) = \frac{e^{l_a}}{Z} (1, e^{l_b - l_a})$, and likewise after the swap. A cosine is free of "
        r"positive factors of either vector, so $Z$, $Z'$, $l_a$ and $l'_a$ drop out, and the differences remain. "
        r"(Squares of both cosines compared for all values of $l_a, l_b, l'_a, l'_b, Z, Z'$; all entries are "
        r"positive.)",
        holds=_same(before, after, plain_before, plain_after)
        and _same(swap * before, after, swap * plain_before, plain_after),
    )
    moved = {l_a: l_a + shift, l_b: l_b + shift, m_a: m_a + later, m_b: m_b + later}
    yield symbolic(
        "constants",
        r"Adding $\kappa$ to all logits before, and $\lambda$ to all after, leaves both differences.",
        holds=all(
            vanishes(vector[1].subs(moved, simultaneous=True) - vector[1]) for vector in (plain_before, plain_after)
        ),
    )
    rows = list(product(RATIOS, repeat=4))
    others = list(product(RATIOS, repeat=2))
    yield exact(
        "recomputed in full",
        rf"Four positions, the query the last: for {len(rows)} choices of $e^{{C_{{aa}}}}, e^{{C_{{bb}}}}, "
        rf"e^{{C_{{ab}}}}, e^{{C_{{ba}}}}$ from {', '.join(str(ratio) for ratio in RATIOS)} and each of {len(others)} "
        rf"for the two other positions, both softmax rows were computed in rationals, and the squared cosines agree "
        rf"with those of the four logits alone.",
        holds=all(_full(row, other) == _closed(row) for row in rows for other in others),
    )
    yield argument(
        "the weights of the swaps",
        r"The mean over swaps has weights proportional to $e^{|D_a - D_b|/\tau}$. They do use the normaliser, but "
        r"only the one before the swap, which the one forward pass has.",
    )


def _same(u: sympy.Matrix, v: sympy.Matrix, plain_u: sympy.Matrix, plain_v: sympy.Matrix) -> bool:
    """Whether two pairs of vectors have the same squared cosine, cross-multiplied."""
    left = u.dot(v) ** 2 * plain_u.dot(plain_u) * plain_v.dot(plain_v)
    right = plain_u.dot(plain_v) ** 2 * u.dot(u) * v.dot(v)
    return vanishes(left - right)


def _full(row: tuple[Fraction, ...], other: tuple[Fraction, ...]) -> tuple[Fraction, Fraction]:
    """Squared cosines from two whole softmax rows: a first, then another key, b, and the query itself."""
    aa, bb, ab, ba = row
    first, second = [aa, other[0], bb, other[1]], [ab, other[0], ba, other[1]]
    before, after = ([value / sum(values) for value in values] for values in (first, second))
    pair, turned, swapped = (before[0], before[2]), (before[2], before[0]), (after[0], after[2])
    return _squared(pair, swapped), _squared(turned, swapped)


def _closed(row: tuple[Fraction, ...]) -> tuple[Fraction, Fraction]:
    """Squares of cos(phi - phi') and sin(phi + phi') from their tangents."""
    aa, bb, ab, ba = row
    tan, tan_after = bb / aa, ba / ab
    sides = (1 + tan**2) * (1 + tan_after**2)
    return (1 + tan * tan_after) ** 2 / sides, (tan + tan_after) ** 2 / sides


def _squared(u: tuple[Fraction, ...], v: tuple[Fraction, ...]) -> Fraction:
    inner = u[0] * v[0] + u[1] * v[1]
    return inner**2 / ((u[0] ** 2 + u[1] ** 2) * (v[0] ** 2 + v[1] ** 2))


def check() -> None:
    """A real head, all swaps: attention recomputed after each, against four logits of one matrix."""
    length, width = 7, 10
    random = np.random.default_rng(20260)
    spectrum = RopeSpectrum.from_base("100", head_dim=6, rotary_dim=4)
    made = head.Head(
        w_q=random.normal(size=(6, width)),
        w_k=random.normal(size=(6, width)),
        w_v=np.eye(width),
        w_o=np.eye(width),
        spectrum=spectrum,
    )
    states = random.normal(size=(length, width))
    query = length - 1
    table = np.array(
        [[made.logit(states[query], query, states[c], p) for c in range(length)] for p in range(length)]
    )  # C[p, c]
    first, second = np.array(list(combinations(range(query), 2))).T
    four = table[first, first], table[second, second], table[first, second], table[second, first]
    seen = bounds.swap_scores(*four)
    shifted = bounds.swap_scores(four[0] + 3, four[1] + 3, four[2] - 5, four[3] - 5)
    expected = np.array([_cosines(made, states, a, b) for a, b in zip(first, second, strict=True)]).T
    for name, scores, moved, cosines in zip(("positional", "symbolic"), seen, shifted, expected, strict=True):
        require(bool((abs(scores - cosines) <= 1e-12).all()), f"{name} scores are {scores}, not {cosines}")
        require(bool((abs(moved - cosines) <= 1e-12).all()), f"{name} scores move with a constant")


def _cosines(made: head.Head, states: FloatArray, a: int, b: int) -> tuple[float, float]:
    """Both scores of one swap from two whole rows of attention."""
    swapped = states.copy()
    swapped[[a, b]] = states[[b, a]]
    pair, there = _attention(made, states)[[a, b]], _attention(made, swapped)[[a, b]]
    lengths = np.linalg.norm(there) * np.linalg.norm(pair)
    return float(there @ pair / lengths), float(there @ pair[::-1] / lengths)


def _attention(made: head.Head, states: FloatArray) -> FloatArray:
    """The last row of softmax attention, all visible positions in it."""
    row: FloatArray = transformer.attention_weights(made.logits(states)[-1:], "softmax", beta=1.0)[0]
    return row

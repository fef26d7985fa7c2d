"""The logit of T_Index is beta cos((n - j - i) theta), read off its matrices; on many planes it is the weighted sum."""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator

import numpy as np
import sympy

from ropegeo.claims import Claim, Status, Step, argument, require, symbolic, vanishes
from ropegeo.construct import built as built_heads
from ropegeo.construct import index
from ropegeo.spectrum import RopeSpectrum

CLAIM = Claim(
    title="Logits of T_Index",
    statement=(
        r"Let $W_Q$ send a letter to $v$ and the integer $i$ to $\rho^{-i} v$, and $W_K$ every token to $v$, where "
        r"plane $k$ of $v$ has $c \, |v_k|^2 = \beta a_k$, $c$ the scale, $\sum_k a_k = 1$. The logit of a query "
        r"at position $n$ with offset $i$ ($i = 0$ for a letter) and a key at $j$ is "
        r"$\beta \sum_k a_k \cos((n - j - i) \theta_k)$, whatever the key's token; on one plane "
        r"$\beta \cos((n - j - i) \theta)$. Its largest conceivable value, $\beta$, is reached at $j = n - i$."
    ),
    source="docs/MATHEMATICS.md, section 3; Urrutia et al., arXiv 2605.31558, appendix F.2",
    scope=r"all angles, directions of $v$, offsets and positions; every alphabet; weights $a_k \ge 0$",
    status=Status.PROVED,
    ties=(
        "ropegeo.construct.index.index_head",
        "ropegeo.construct.index.token_index_head",
        "ropegeo.construct.built.index_profile",
    ),
)


def steps() -> Iterator[Step]:
    """The proof."""
    theta, n, j, i, scale = sympy.symbols("theta n j i c", real=True)
    v = sympy.Matrix(sympy.symbols("v1 v2", real=True))
    beta = scale * (v.T * v)[0]
    offsets = (0, 0, 1, 2, 3)  # letters a, b; integers 1, 2, 3
    columns = [_rotation(-offset * theta) * v for offset in offsets]
    w_q = sympy.Matrix.hstack(*columns, sympy.zeros(2, 1))
    w_k = sympy.Matrix.hstack(*(sympy.zeros(2, 1) for _ in offsets), v)
    embedded = [_embedding(token, len(offsets)) for token in range(len(offsets))]
    yield argument(
        "what the matrices pick",
        r"$E(\sigma)$ is one-hot with a 1 after it. $W_Q$ has column $\rho(\theta)^{-i} v$ for a token of offset "
        r"$i$ and 0 for the constant, $W_K$ has only the column $v$ for the constant: so "
        r"$W_Q E(\sigma) = \rho(\theta)^{-i} v$ and $W_K E(\sigma) = v$, in any alphabet.",
    )
    yield symbolic(
        "one plane",
        r"$c \, (\rho(n\theta) \rho(-i\theta) v) \cdot (\rho(j\theta) v) = \beta \cos((n - j - i)\theta)$ with "
        r"$\beta = c \, |v|^2$, for all real $n$, $j$, $i$, $\theta$ and every $v$.",
        holds=vanishes(_logit(scale, theta, v, (n, j, i)) - beta * sympy.cos((n - j - i) * theta)),
    )
    yield symbolic(
        "token by token",
        rf"The same from these matrices, multiplied out for 2 letters and {len(offsets) - 2} integers, for every pair "
        r"of a query token and a key token (support).",
        holds=all(
            vanishes(
                scale * ((_rotation(n * theta) * w_q * query).T * (_rotation(j * theta) * w_k * key))[0]
                - beta * sympy.cos((n - j - offset) * theta)
            )
            for query, offset in zip(embedded, offsets, strict=True)
            for key in embedded
        ),
    )
    share, total = sympy.symbols("a beta", positive=True)
    direction = sympy.symbols("delta", real=True)
    length = sympy.sqrt(total * share / sympy.Symbol("c", positive=True))
    turned = length * sympy.Matrix([sympy.cos(direction), sympy.sin(direction)])
    yield symbolic(
        "a plane's share",
        r"With $|v_k|^2 = \beta a_k / c$ in direction $\delta_k$, the plane adds "
        r"$\beta a_k \cos((n - j - i)\theta_k)$: the direction drops out. An attention factor $m$ multiplies both "
        r"rotated vectors, so that $|v_k|$ is divided by it.",
        holds=vanishes(
            _logit(sympy.Symbol("c", positive=True), theta, turned, (n, j, i))
            - total * share * sympy.cos((n - j - i) * theta)
        ),
    )
    yield argument(
        "all planes, and the peak",
        r"The logit is the sum over planes (derivation `rotation`), which is the claim. Every cosine is at most 1, "
        r"so it is at most $\beta \sum_k a_k = \beta$, and at $n - j = i$ all cosines are 1.",
    )


def _rotation(angle: sympy.Expr) -> sympy.Matrix:
    return sympy.Matrix([[sympy.cos(angle), -sympy.sin(angle)], [sympy.sin(angle), sympy.cos(angle)]])


def _embedding(token: int, count: int) -> sympy.Matrix:
    return sympy.Matrix([int(row == token) for row in range(count)] + [1])


def _logit(
    scale: sympy.Expr, theta: sympy.Expr, v: sympy.Matrix, at: tuple[sympy.Expr, sympy.Expr, sympy.Expr]
) -> sympy.Expr:
    """scale <rho^n rho^-i v, rho^j v> with at = (n, j, i)."""
    n, j, i = at
    return scale * ((_rotation(n * theta) * _rotation(-i * theta) * v).T * (_rotation(j * theta) * v))[0]


def check() -> None:
    """Logits of the built matrices, by definition, against the cosines; and the profile that the engine takes."""
    cases = (
        (RopeSpectrum.from_angle("1"), (0,), (1.0,), 1.0),
        (RopeSpectrum.from_base(10000, head_dim=10, rotary_dim=8), (0, 2), (0.3, 0.7), 2.5),
    )
    pairs = ((0, 0), (3, 0), (5, 4), (11, 2), (12, 12))
    for spectrum, planes, weights, beta in cases:
        angles = [1.0] if len(planes) == 1 else [10000.0 ** (-2 * plane / 8) for plane in planes]
        directions = [cmath.exp(1j * (0.4 + plane)) for plane in planes]

        def expected(t: int, angles: list[float], weights: tuple[float, ...], beta: float) -> float:
            return beta * math.fsum(a * math.cos(t * theta) for a, theta in zip(weights, angles, strict=True))

        token = index.token_index_head(
            spectrum,
            letters=("a", "b"),
            integers=(1, 4),
            planes=planes,
            weights=weights,
            beta=beta,
            directions=directions,
        )
        fixed = index.index_head(
            spectrum, offset=3, planes=planes, weights=weights, beta=beta, letters=("a", "b"), directions=directions
        )
        for built, offsets in ((token, (0, 0, 1, 4)), (fixed, (3, 3))):
            for query, offset in zip(built.embedding, offsets, strict=True):
                for key in built.embedding:
                    for n, j in pairs:
                        seen = built.head.logit(query, n, key, j)
                        wanted = expected(n - j - offset, angles, weights, beta)
                        require(
                            abs(seen - wanted) <= 1e-12 * beta,
                            f"offset {offset}, query at {n}, key at {j}: logit {seen!r} is not {wanted!r}",
                        )
        profile = built_heads.index_profile(fixed.recipe)
        for d in (0, 1, 3, 8, 30):
            require(
                abs(float(profile.logit(np.array(d))) - expected(d - 3, angles, weights, beta)) <= 1e-12 * beta,
                f"index_profile at distance {d} is not the sum of cosines",
            )
        require(abs(float(profile.logit(np.array(3))) - beta) <= 1e-14 * beta, "the peak is not beta")

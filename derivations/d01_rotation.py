"""The logit of a rotary head depends on the positions n and j through n - j only, and has a closed form in it."""

from __future__ import annotations

import cmath
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import sympy

from ropegeo.claims import Claim, Status, Step, argument, exact, require, symbolic, vanishes
from ropegeo.heads import Head
from ropegeo.spectrum import Layout, RopeSpectrum

CLAIM = Claim(
    title="Rotation identity: the logit is a function of the distance n - j",
    statement=(
        r"Let plane $k$ turn by $\theta_k$ a position, let $q_k$, $\kappa_k$ be plane $k$ of the query and the key "
        r"as complex numbers, $q'$, $\kappa'$ their coordinates that do not rotate, $m$ the attention factor and "
        r"$c$ the scale. The logit of the query at $n$ and the key at $j$ is $c (m^2 \sum_k "
        r"\operatorname{Re}(\overline{\kappa_k} q_k e^{\mathrm{i} d \theta_k}) + q' \cdot \kappa')$ with "
        r"$d = n - j$, in either layout of coordinates; nothing else depends on $n$ or $j$."
    ),
    source="docs/MATHEMATICS.md, section 1; Urrutia et al., arXiv 2605.31558, section 2",
    scope=(
        r"every number of planes, all real angles (so any scaling of them that is the same at all positions), "
        r"partial rotation included; exact arithmetic"
    ),
    status=Status.PROVED,
    ties=(
        "ropegeo.heads.head.Head.logit",
        "ropegeo.heads.head.Head.profile",
        "ropegeo.heads.head.Head.in_layout",
        "ropegeo.heads.profile.LogitProfile.logit",
    ),
)
ENUMERATED = 64
"""Numbers of planes for which the pairing of coordinates is written out."""


def steps() -> Iterator[Step]:
    """The proof."""
    a, b, n, j, s, theta = sympy.symbols("a b n j s theta", real=True)
    yield symbolic(
        "rotations of the plane",
        r"With $\rho(a)$ the rotation by $a$: $\rho(a)^T \rho(b) = \rho(b - a)$, all four entries.",
        holds=_all_vanish(_rotation(a).T * _rotation(b) - _rotation(b - a)),
    )
    q, k = sympy.Matrix(sympy.symbols("q1 q2", real=True)), sympy.Matrix(sympy.symbols("k1 k2", real=True))
    product = _product(_rotation(n * theta) * q, _rotation(j * theta) * k)
    closed = _closed(q, k, (n - j) * theta)
    yield symbolic(
        "one plane",
        r"$(\rho(n\theta) q) \cdot (\rho(j\theta) \kappa) = \operatorname{Re}(\overline{\kappa} q "
        r"e^{\mathrm{i}(n-j)\theta})$ for $q = q_1 + \mathrm{i} q_2$, $\kappa = \kappa_1 + \mathrm{i} \kappa_2$.",
        holds=vanishes(product - closed),
    )
    yield symbolic(
        "a common shift",
        r"Moving both positions by $s$ changes nothing: the derivative of the product at $(n+s, j+s)$ by $s$ is 0.",
        holds=vanishes(sympy.diff(product.subs({n: n + s, j: j + s}, simultaneous=True), s)),
    )
    yield symbolic(
        "one plane more",
        r"If $A$, $B$ are the rotations of a head at $n$ and $j$ and one plane $a$, $b$ is added, the rotations "
        r"are block diagonal, and $\operatorname{diag}(A, a)^T \operatorname{diag}(B, b) = \operatorname{diag}(A^T "
        r"B, a^T b)$ for blocks of any size. By induction the product of a rotated query and a rotated key is the "
        r"sum over planes of what the step before shows; coordinates that do not rotate are a block with the "
        r"identity, so they add $q' \cdot \kappa'$.",
        holds=_blocks_multiply(),
    )
    m, c, rest = sympy.symbols("m c r", real=True)
    yield symbolic(
        "attention factor and scale",
        r"The factor $m$ multiplies rotated queries and rotated keys, so their product by $m^2$, and not the rest; "
        r"the scale $c$ multiplies all.",
        holds=vanishes(
            c * (_product(m * _rotation(n * theta) * q, m * _rotation(j * theta) * k) + rest)
            - c * (m**2 * closed + rest)
        ),
    )
    yield argument(
        "both layouts pair every rotated coordinate once",
        r"Of $0, \ldots, 2K-1$ the numbers $2k$ and $2k+1$, $0 \le k < K$, are the even and the odd ones, $k$ and "
        r"$k+K$ the lower and the upper half.",
    )
    yield exact(
        "both layouts, listed (support)",
        rf"For every number $K \le {ENUMERATED}$ of planes the pairs $(2k, 2k+1)$, and the pairs $(k, k+K)$, "
        r"hold each of $0, \ldots, 2K-1$ once.",
        holds=all(
            sorted(x for pair in pairs for x in pair) == list(range(2 * planes))
            for planes in range(1, ENUMERATED + 1)
            for pairs in (_interleaved(planes), _half(planes))
        ),
    )
    planes, width = 3, 8
    angles = sympy.symbols("theta1:4", real=True)
    order = _reordering(planes, width)
    yield argument(
        "one permutation",
        r"Let $P$ move the pair $(2k, 2k+1)$ to $(k, k+K)$ and leave the rest. Then the rotation of the half "
        r"layout is $P R P^T$, $R$ that of the interleaved one: $P R P^T$ has the entry of $R$ at $(x, y)$ in the "
        r"places to which $P$ moves $x$ and $y$, and $R$ has none off the pairs and the diagonal.",
    )
    yield symbolic(
        "one permutation, written out (support)",
        rf"Every entry for $K = {planes}$ planes in a head of width {width}, and $P^T P = 1$.",
        holds=_all_vanish(
            order * _full(_interleaved(planes), angles, width, a) * order.T - _full(_half(planes), angles, width, a)
        )
        and order.T * order == sympy.eye(width),
    )
    yield argument(
        "the same head in the other layout",
        r"With $W_Q$, $W_K$ and biases replaced by $P W_Q$, $P W_K$ and $P b$, the vectors become $P q$, "
        r"$P \kappa$, and $(P R_n P^T P q) \cdot (P R_j P^T P \kappa) = (R_n q) \cdot (R_j \kappa)$, since "
        r"$P^T P = 1$: all logits stay.",
    )


def _rotation(angle: sympy.Expr) -> sympy.Matrix:
    return sympy.Matrix([[sympy.cos(angle), -sympy.sin(angle)], [sympy.sin(angle), sympy.cos(angle)]])


def _product(first: sympy.Matrix, second: sympy.Matrix) -> sympy.Expr:
    return (first.T * second)[0]


def _closed(query: sympy.Matrix, key: sympy.Matrix, turned: sympy.Expr) -> sympy.Expr:
    """Re(conj(key) query exp(i turned)), multiplied out."""
    conjugate = key[0] - sympy.I * key[1]
    value = conjugate * (query[0] + sympy.I * query[1]) * (sympy.cos(turned) + sympy.I * sympy.sin(turned))
    return sympy.re(sympy.expand(value))


def _all_vanish(matrix: sympy.Matrix) -> bool:
    return all(vanishes(entry) for entry in matrix)


def _blocks_multiply() -> bool:
    n = sympy.symbols("n", integer=True, positive=True)
    large, other = sympy.MatrixSymbol("A", n, n), sympy.MatrixSymbol("B", n, n)
    small, last = sympy.MatrixSymbol("a", 2, 2), sympy.MatrixSymbol("b", 2, 2)
    left = sympy.BlockDiagMatrix(large, small).T * sympy.BlockDiagMatrix(other, last)
    return bool(sympy.block_collapse(left) == sympy.BlockDiagMatrix(large.T * other, small.T * last))


def _interleaved(planes: int) -> list[tuple[int, int]]:
    return [(2 * k, 2 * k + 1) for k in range(planes)]


def _half(planes: int) -> list[tuple[int, int]]:
    return [(k, k + planes) for k in range(planes)]


def _full(
    pairs: list[tuple[int, int]], angles: tuple[sympy.Symbol, ...], width: int, position: sympy.Symbol
) -> sympy.Matrix:
    """The rotation of a whole head at a position."""
    matrix = sympy.eye(width)
    for pair, angle in zip(pairs, angles, strict=True):
        turn = _rotation(position * angle)
        for x in (0, 1):
            for y in (0, 1):
                matrix[pair[x], pair[y]] = turn[x, y]
    return matrix


def _reordering(planes: int, width: int) -> sympy.Matrix:
    """The permutation from the interleaved layout to the half layout."""
    moved = dict(zip(_chain(_half(planes)), _chain(_interleaved(planes)), strict=True))
    return sympy.Matrix(width, width, lambda new, old: int(moved.get(new, new) == old))


def _chain(pairs: list[tuple[int, int]]) -> list[int]:
    return [x for pair in pairs for x in pair]


def check() -> None:
    """The definition, the profile and the closed form agree, in both layouts, near position 0 and far from it."""
    generator = np.random.default_rng(1)
    width, rotary, model = 9, 6, 4
    planes = rotary // 2
    query_state, key_state = generator.normal(size=model), generator.normal(size=model)
    layouts: tuple[tuple[Callable[[int], list[tuple[int, int]]], Layout, Layout], ...] = (
        (_interleaved, "interleaved", "half"),
        (_half, "half", "interleaved"),
    )
    for pairs, layout, other in layouts:
        bias_q, bias_k = generator.normal(size=width), generator.normal(size=width)
        spectrum = replace(
            RopeSpectrum.from_base(10000, head_dim=width, rotary_dim=rotary, layout=layout), attention_factor=1.25
        )
        head = Head(
            w_q=generator.normal(size=(width, model)),
            w_k=generator.normal(size=(width, model)),
            w_v=np.eye(model),
            w_o=np.eye(model),
            spectrum=spectrum,
            scale=0.3,
            b_q=bias_q,
            b_k=bias_k,
        )
        query, key = head.w_q @ query_state + bias_q, head.w_k @ key_state + bias_k
        products = [complex(query[x], query[y]) * complex(key[x], -key[y]) for x, y in pairs(planes)]
        rest = float(query[rotary:] @ key[rotary:])
        size = 0.3 * (1.25**2 * sum(map(abs, products)) + abs(rest))
        profile, moved = head.profile(query_state, key_state), head.in_layout(other)
        require(moved.spectrum.layout == other, f"in_layout({other!r}) leaves the layout as it is")
        for distance in (0, 1, 2, 17, 40):
            turned = sum(
                value * cmath.exp(1j * distance * 10000.0 ** (-2 * plane / rotary))
                for plane, value in enumerate(products)
            )
            closed = 0.3 * (1.25**2 * turned.real + rest)
            seen = {
                "Head.logit": head.logit(query_state, distance + 3, key_state, 3),
                "Head.logit far from 0": head.logit(query_state, distance + 10**15, key_state, 10**15),
                "Head.in_layout": moved.logit(query_state, distance, key_state, 0),
                "Head.profile": float(profile.logit(np.array(distance))),
            }
            for name, value in seen.items():
                require(
                    abs(value - closed) <= 1e-12 * size,
                    f"{name}, {layout} layout, distance {distance}: {value!r} is not the closed form {closed!r}",
                )

"""The logit of T_Retrieval is beta cos(dphi omega + (n - j - c) theta), read off its matrices; the paper has c = 0."""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator

import numpy as np
import sympy

from ropegeo.claims import Claim, Status, Step, argument, require, symbolic, vanishes
from ropegeo.construct import built as built_heads
from ropegeo.construct import retrieval
from ropegeo.spectrum import RopeSpectrum
from ropegeo.tasks import Bigram

CLAIM = Claim(
    title="Logits of T_Retrieval, plain and centred",
    statement=(
        r"Number $A$ letters by $\phi = 1, \ldots, A$ and put $\omega = 2\pi/A$. Let $W_K$ send the token $(L, R)$ "
        r"to $\rho(\omega)^{-\phi(L)} v$ and $W_Q$ to $\rho(\omega)^{-\phi(R)} \rho^{-c} v$ if $R$ is a letter, to "
        r"$\rho(\omega)^{-\phi(L)} v$ otherwise. With $\Delta\phi$ the number of the key's left letter less that "
        r"of the letter sought, the logit of a query at $n$ and a key at $j$ is "
        r"$\beta \sum_k a_k \cos(\Delta\phi \, \omega + (n - j - c) \theta_k)$, with $c = 0$ for (letter, integer) "
        r"queries and in the paper's head; on one plane, $\beta \cos(\Delta\phi \, \omega + (n - j) \theta)$. Only "
        r"$\Delta\phi$ modulo $A$ matters."
    ),
    source="docs/MATHEMATICS.md, section 3; Urrutia et al., arXiv 2605.31558, appendix F.2 (without the centring)",
    scope=r"all angles, directions of $v$, positions and centres; every alphabet of $A \ge 2$ letters",
    status=Status.PROVED,
    ties=("ropegeo.construct.retrieval.retrieval_head", "ropegeo.construct.built.letter_profile"),
)


def steps() -> Iterator[Step]:
    """The proof."""
    theta, omega, n, j, c, sought, found = sympy.symbols("theta omega n j c phi_q phi_k", real=True)
    scale = sympy.Symbol("s", positive=True)
    v = sympy.Matrix(sympy.symbols("v1 v2", real=True))
    beta = scale * (v.T * v)[0]
    query = _rotation(n * theta) * _rotation(-sought * omega) * _rotation(-c * theta) * v
    key = _rotation(j * theta) * _rotation(-found * omega) * v
    wanted = beta * sympy.cos((found - sought) * omega + (n - j - c) * theta)
    alphabet = (1, 2)  # numbers of two letters; a right part of 0 stands for an integer
    tokens = [(left, right) for left in alphabet for right in (*alphabet, 0)]
    seeks = [(right, c) if right else (left, 0) for left, right in tokens]
    w_k = sympy.Matrix.hstack(*(_rotation(-left * omega) * v for left, _ in tokens))
    w_q = sympy.Matrix.hstack(*(_rotation(-phi * omega) * _rotation(-centre * theta) * v for phi, centre in seeks))
    yield symbolic(
        "token by token",
        rf"The embedding is one-hot, so $W_Q E$ and $W_K E$ are the columns of the two tokens. For {len(alphabet)} "
        r"letters and one integer, multiplied out for every pair of a query token and a key token: the logit is "
        r"that of the claim, with the right letter sought, or the left one and $c = 0$ if the right part is an "
        r"integer.",
        holds=all(
            vanishes(
                scale * ((_rotation(n * theta) * w_q * one_hot).T * (_rotation(j * theta) * w_k * other))[0]
                - beta * sympy.cos((left - phi) * omega + (n - j - centre) * theta)
            )
            for one_hot, (phi, centre) in zip(_basis(len(tokens)), seeks, strict=True)
            for other, (left, _) in zip(_basis(len(tokens)), tokens, strict=True)
        ),
    )
    yield argument(
        "any alphabet",
        r"A one-hot embedding picks one column in any alphabet: the query carries the number $\phi_q$ of the "
        r"letter that it seeks, the key the number $\phi_k$ of its left letter.",
    )
    yield symbolic(
        "one plane",
        r"$s \, (\rho(n\theta) \rho(\omega)^{-\phi_q} \rho(\theta)^{-c} v) \cdot (\rho(j\theta) "
        r"\rho(\omega)^{-\phi_k} v) = \beta \cos((\phi_k - \phi_q)\omega + (n - j - c)\theta)$, "
        r"$\beta = s \, |v|^2$, $s$ the scale.",
        holds=vanishes(scale * (query.T * key)[0] - wanted),
    )
    yield symbolic(
        "the paper's head and (letter, integer) queries",
        r"With $c = 0$: $\beta \cos((\phi_k - \phi_q)\omega + (n - j)\theta)$. A (letter, integer) token seeks its "
        r"own left letter, so it scores $\beta$ on itself, the largest conceivable value.",
        holds=vanishes(
            (scale * (query.T * key)[0]).subs(c, 0) - beta * sympy.cos((found - sought) * omega + (n - j) * theta)
        )
        and vanishes((scale * (query.T * key)[0]).subs({c: 0, found: sought, j: n}, simultaneous=True) - beta),
    )
    letters, turns = sympy.symbols("A z", integer=True, positive=True)
    yield symbolic(
        "numbers modulo A",
        r"Adding a multiple of $A$ to $\Delta\phi$ adds whole turns to $\Delta\phi \, \omega$, $\omega = 2\pi/A$.",
        holds=vanishes(
            wanted.subs(omega, 2 * sympy.pi / letters)
            - wanted.subs({omega: 2 * sympy.pi / letters, found: found + turns * letters}, simultaneous=True)
        ),
    )
    yield argument(
        "many planes",
        r"With $s \, |v_k|^2 = \beta a_k$, plane $k$ adds "
        r"$\beta a_k \cos(\Delta\phi \, \omega + (n - j - c)\theta_k)$ whatever the direction of $v_k$: codes turn "
        r"by the same $\omega$ in all planes, and the logit is the sum over planes (derivation `rotation`). An "
        r"attention factor divides $|v_k|$.",
    )


def _rotation(angle: sympy.Expr) -> sympy.Matrix:
    return sympy.Matrix([[sympy.cos(angle), -sympy.sin(angle)], [sympy.sin(angle), sympy.cos(angle)]])


def _basis(count: int) -> list[sympy.Matrix]:
    """One-hot columns."""
    return [sympy.eye(count).col(token) for token in range(count)]


def check() -> None:
    """Logits of the built matrices, by definition, against the cosines; and the profile that the engine takes."""
    letters, integers = ("a", "b", "c", "d", "e"), (1, 2)
    tokens = tuple(Bigram(*pair) for pair in (("a", "c"), ("d", "a"), ("c", "c"), ("b", 1), ("e", 2), ("e", "b")))
    number = {letter: phi for phi, letter in enumerate(letters, start=1)}
    cases = (
        (RopeSpectrum.from_angle("1/20"), (0,), (1.0,), 1.0, [0.05]),
        (
            RopeSpectrum.from_base(10000, head_dim=10, rotary_dim=8),
            (1, 3),
            (0.25, 0.75),
            3.0,
            [10000.0 ** (-2 / 8), 10000.0 ** (-6 / 8)],
        ),
    )
    for spectrum, planes, weights, beta, angles in cases:
        for centre_length in (None, 6):
            built = retrieval.retrieval_head(
                spectrum,
                letters=letters,
                integers=integers,
                planes=planes,
                weights=weights,
                beta=beta,
                centre_length=centre_length,
                directions=[cmath.exp(1j * (0.4 + plane)) for plane in planes],
                tokens=tokens,
            )
            middle = 0.0 if centre_length is None else (centre_length - 1) / 2
            profile = built_heads.letter_profile(built.recipe)
            for query, sought in zip(built.embedding, tokens, strict=True):
                matches = isinstance(sought.right, str)
                looked_for = number[sought.right if isinstance(sought.right, str) else sought.left]
                centre = middle if matches else 0.0
                for key, token in zip(built.embedding, tokens, strict=True):
                    shift = number[token.left] - looked_for
                    for n, j in ((0, 0), (7, 2), (40, 9)):
                        wanted = beta * math.fsum(
                            a * math.cos(shift * 2 * math.pi / len(letters) + (n - j - centre) * theta)
                            for a, theta in zip(weights, angles, strict=True)
                        )
                        seen = {"the matrices'": built.head.logit(query, n, key, j)}
                        if matches:
                            seen["letter_profile's"] = float(profile.logit(shift, np.array(n - j)))
                        for whose, value in seen.items():
                            require(
                                abs(value - wanted) <= 1e-12 * beta,
                                f"query {sought} at {n}, key {token} at {j}: {whose} logit {value!r} is not {wanted!r}",
                            )

"""An index head has one maximum at every length iff theta/(2 pi) is irrational; theta irrational is not enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import count
from math import gcd

import numpy as np
import sympy

from ropegeo.claims import Claim, Status, Step, argument, cited, counterexample, exact, require, symbolic, vanishes
from ropegeo.engine import diophantine, trust
from ropegeo.exact import ClosedForm, read_angle
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum

CLAIM = Claim(
    title="When the peak of an index head is unique",
    statement=(
        r"Let a head on one plane score $\beta\cos((d - s)\theta)$ at distance $d = 0, \ldots, n-1$, "
        r"$\theta \ne 0$, $T = \max(s, n-1-s)$. Its maximum at $d = s$ is the only one at every length iff "
        r"$\frac{\theta}{2\pi}$ is irrational. If $\frac{\theta}{2\pi} = \frac{p}{q}$ in lowest terms, the maximum "
        r"is tied exactly when $T \ge q$. On several planes with positive weights and "
        r"$\frac{\theta_k}{2\pi} = \frac{p_k}{q_k}$ the same holds with $q = \operatorname{lcm}(q_k)$, and one "
        r"irrational $\frac{\theta_k}{2\pi}$ suffices for a unique maximum. Every algebraic $\theta \ne 0$ gives "
        r"an irrational quotient, in particular $b^{-2k/r}$ for rational $b > 0$."
    ),
    source=(
        "docs/MATHEMATICS.md, sections 5 and 6; Urrutia et al., arXiv 2605.31558, appendix F.2 (the peak of "
        "T_Index); Lindemann 1882"
    ),
    scope=(
        r"every real $\theta \ne 0$, every $s \ge 0$ and $n \ge s + 1$. Angles with $\pi$ in them, as llama3 "
        r"scaling makes, are not algebraic; for those the quotient is decided one by one"
    ),
    status=Status.REPAIRED,
    ties=(
        "ropegeo.engine.trust.tie_length",
        "ropegeo.exact.closed_form.ClosedForm.rational_turn",
        "ropegeo.engine.diophantine.one_plane_staircase",
    ),
    as_stated=r"If $\theta$ is irrational, the maximum of the logits of T_Index is unique.",
    cause=(
        r"The rotation returns when $t\theta$ is a multiple of $2\pi$, so what must be irrational is $\theta$ as a "
        r"part of a whole turn, and $\pi$ is itself irrational."
    ),
)
LARGEST = 60
"""Denominators for which first ties are enumerated."""


def steps() -> Iterator[Step]:
    """The counterexample and the proof."""
    yield cited(
        "pi is transcendental",
        r"$\pi$ is a root of no polynomial with rational coefficients other than 0; so it is irrational too.",
        source="F. Lindemann, Ueber die Zahl pi, Mathematische Annalen 20 (1882) 213-225",
    )
    theta = 2 * sympy.pi / 5
    gaps = [1 - sympy.cos(t * theta) for t in range(1, 11)]
    tied = [t for t, gap in enumerate(gaps, start=1) if gap == 0]
    shown = ", ".join(f"${sympy.latex(sympy.nsimplify(gap))}$" for gap in gaps[:5])
    yield counterexample(
        "theta = 2 pi/5",
        r"$\theta = 2\pi/5$ is irrational, since $\pi$ is. The gaps $1 - \cos t\theta$, $t = 1, \ldots, 5$, are "
        rf"{shown} exactly: 0 at $t = {tied[0]}$ and again at $t = {tied[1]}$. So with offset 0 the positions at "
        r"distances 0 and 5 tie as soon as 6 tokens are visible.",
        holds=theta.is_irrational is True
        and tied == [5, 10]
        and all(gap.is_positive for t, gap in enumerate(gaps, start=1) if t % 5),
    )
    smaller = {q: [sympy.simplify(1 - sympy.cos(2 * sympy.pi * t / q)) for t in range(1, q + 1)] for q in (1, 2, 7)}
    yield counterexample(
        "the shortest",
        r"At offset 0 the irrational angle $2\pi$ ties at $n = 2$, and $\pi$ at $n = 3$, with the gaps "
        rf"{', '.join(map(str, smaller[2]))}. Among angles up to 1 the first to tie is $2\pi/7 < 1 < 2\pi/6$, at $n = "
        rf"8$.",
        holds=all(row[-1] == 0 and all(gap.is_positive for gap in row[:-1]) for row in smaller.values())
        and bool(2 * sympy.pi / 7 < 1)
        and bool(2 * sympy.pi / 6 > 1),
    )
    turns, alpha = sympy.symbols("m alpha", real=True)
    t = sympy.symbols("t", integer=True, positive=True)
    yield symbolic(
        "when a position ties",
        r"$1 - \cos t\theta = 2\sin^2 \pi t\alpha$ with $\alpha = \frac{\theta}{2\pi}$ is 0 iff "
        r"$\sin \pi t\alpha = 0$, iff $t\alpha$ is an integer. The head sees $t = d - s$ from $-s$ to $n-1-s$, and "
        r"the cosine is even, so some position ties iff $t\alpha$ is an integer for some $1 \le t \le T$.",
        holds=vanishes(1 - sympy.cos(t * 2 * sympy.pi * alpha) - 2 * sympy.sin(sympy.pi * t * alpha) ** 2)
        and sympy.solveset(sympy.sin(sympy.pi * turns), turns, sympy.Interval(0, 1)) == sympy.FiniteSet(0, 1),
    )
    yield argument(
        "irrational quotient",
        r"If $t\alpha = m$ for integers $t \ge 1$ and $m$, then $\alpha = m/t$ is rational. So an irrational "
        r"$\alpha$ ties at no length.",
    )
    p, q, u, w = sympy.symbols("p q u w", integer=True)
    yield symbolic(
        "rational quotient",
        r"Let $\alpha = p/q$ in lowest terms, and $up + wq = 1$ (Euclid). If $q$ divides $tp$, say $tp = zq$, then "
        r"$t = t(up + wq) = q(uz + wt)$: $q$ divides $t$. So $t\alpha$ is an integer iff $q$ divides $t$, for the "
        r"first time at $t = q$.",
        holds=vanishes(
            (t * (u * p + w * q) - q * (u * turns + w * t)).subs(turns, t * p / q)  # z = tp/q
        ),
    )
    first = {
        (p0, q0): next(t0 for t0 in count(1) if (t0 * p0) % q0 == 0)
        for q0 in range(1, LARGEST + 1)
        for p0 in range(1, q0 + 1)
        if gcd(p0, q0) == 1
    }
    yield exact(
        "first ties, enumerated",
        rf"The first $t$ with $tp$ a multiple of $q$ is $q$ for all {len(first)} fractions $p/q$ in lowest terms, "
        rf"$0 < p \le q \le {LARGEST}$.",
        holds=all(q0 == found for (_, q0), found in first.items()),
    )
    yield argument(
        "several planes",
        r"A sum of $a_k (1 - \cos t\theta_k)$ with $a_k > 0$ is 0 iff every term is: iff $t\alpha_k$ is an integer "
        r"for every plane. If one $\alpha_k$ is irrational that never happens; otherwise it happens iff every "
        r"$q_k$ divides $t$, iff their least common multiple does.",
    )
    b, k, r = sympy.symbols("b k r", positive=True)
    yield symbolic(
        "RoPE angles are algebraic",
        r"$\theta = b^{-2k/r}$ satisfies $b^{2k} \theta^r = 1$; with $b = g/h$ it is a root of "
        r"$g^{2k} x^r - h^{2k}$, a polynomial with integer coefficients.",
        holds=vanishes(b ** (2 * k) * (b ** (-2 * k / r)) ** r - 1),
    )
    yield argument(
        "algebraic angles",
        r"If $\theta \ne 0$ is algebraic and $\frac{\theta}{2\pi} = \frac{p}{q}$, then $p \ne 0$ and $\pi = "
        r"\frac{q\theta}{2p}$ is algebraic, against Lindemann.",
    )
    yield cited(
        "roots are independent",
        r"Products of powers of different primes with rational exponents in $[0, 1)$ are linearly independent over "
        r"the rationals.",
        source=(
            "A. S. Besicovitch, On the linear independence of fractional powers of integers, "
            "J. London Math. Soc. 15 (1940) 3-6"
        ),
    )
    yield argument(
        "angles with pi in them",
        r"An angle in closed form is a quotient of sums of rational numbers times rational powers of primes, as in "
        r"the step before, times powers of $\pi$. By that step and Lindemann such products are independent over the "
        r"rationals, so $\frac{\theta}{2\pi}$ is rational iff numerator and denominator have the same products "
        r"with coefficients in one ratio.",
    )


def _first_tie(turns: Sequence[Fraction], offset: int) -> int:
    """The first length at which another position is a whole number of turns from the offset in every plane."""
    return next(
        length
        for length in count(offset + 1)
        if any(all(((d - offset) * turn).denominator == 1 for turn in turns) for d in range(length) if d != offset)
    )


def check() -> None:
    """First ties against a walk over positions; whether an angle divides a turn, against angles made from fractions."""
    for turns in (("1/5",), ("1",), ("3/7",), ("7/3",), ("1/12",), ("1/4", "1/6"), ("2/9", "1/2", "1/1")):
        exact_turns = [Fraction(text) for text in turns]
        angles = tuple(read_angle(f"{turn} turn") for turn in turns)
        for angle, turn in zip(angles, exact_turns, strict=True):
            require(angle.rational_turn() == turn, f"rational_turn of {turn} turn is {angle.rational_turn()}")
        spectrum = RopeSpectrum(angles=angles, head_dim=2 * len(turns))
        for offset in (0, 3, 11, 40):
            profile = LogitProfile(spectrum=spectrum, coefficients=np.ones(len(turns), np.complex128), origin=offset)
            wanted = _first_tie(exact_turns, offset)
            require(
                trust.tie_length(profile) == wanted,
                f"tie_length at turns {turns}, offset {offset} is {trust.tie_length(profile)}, not {wanted}",
            )
        if len(turns) == 1:
            period = exact_turns[0].denominator
            stairs = diophantine.one_plane_staircase(angles[0], 40)
            signs = [stairs.margin(stairs.index_at(reach)).sign for reach in range(1, 41)]
            require(
                signs == [1] * (min(period, 41) - 1) + [0] * (41 - period),
                f"the margin of {turns[0]} turn does not become 0 at reach {period}",
            )
    blend = ClosedForm.of(Fraction(1, 3)) + Fraction(1, 7) / ClosedForm.pi()  # of the form that llama3 scaling makes
    for angle in (*map(read_angle, ("1", "sqrt(2)", "10000^(-2/128)", "500000^(-62/64)", "pi*(sqrt(5)-1)")), blend):
        require(angle.rational_turn() is None, f"{angle} is taken for a rational turn")
        mixed = RopeSpectrum(angles=(angle, read_angle("1/5 turn")), head_dim=4)
        profile = LogitProfile(spectrum=mixed, coefficients=np.ones(2, np.complex128))
        require(trust.tie_length(profile) is None, f"a head with the angle {angle} is said to tie")

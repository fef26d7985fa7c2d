"""Where a step of the one-plane staircase stands: between 1 - cos(2 pi/(q_k + q_(k+1))) and 1 - cos(2 pi/q_(k+1))."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
import sympy
from sympy.ntheory.continued_fraction import continued_fraction_iterator

from ropegeo.asymptotics import bounds
from ropegeo.claims import Claim, Status, Step, argument, exact, refuses, require, symbolic, vanishes
from ropegeo.engine import diophantine
from ropegeo.exact import ClosedForm, balls, read_angle

CLAIM = Claim(
    title="Bounds on the margin from two neighbouring convergents",
    statement=(
        r"Let $\alpha = \frac{\theta}{2\pi}$ be irrational, $T \ge 1$, and $k$ the last index with $q_k \le T$. "
        r"Then $1 - \cos\frac{2\pi}{q_k + q_{k+1}} < \min_{1 \le t \le T} (1 - \cos t\theta) < 1 - "
        r"\cos\frac{2\pi}{q_{k+1}}$. More exactly $\|q_k\alpha\| = \frac{1}{q_{k+1} + y q_k}$, where "
        r"$y = \frac{|D_{k+1}|}{|D_k|} \in (0, 1)$ is the continued fraction $[0; a_{k+2}, a_{k+3}, \ldots]$. If "
        r"$\alpha$ is rational with a denominator above $T$ the same holds with $y \in [0, 1)$, so $\le$ on the "
        r"right."
    ),
    source="docs/MATHEMATICS.md, section 5",
    scope=r"every $T \ge 1$ and $\theta$ with $\frac{\theta}{2\pi}$ irrational, or rational of denominator above $T$",
    status=Status.PROVED,
    ties=(
        "ropegeo.asymptotics.bounds.convergent_lower_bound",
        "ropegeo.asymptotics.bounds.convergent_upper_bound",
        "ropegeo.asymptotics.bounds.dirichlet_bound",
        "ropegeo.engine.diophantine.one_plane_staircase",
    ),
)
DENOMINATORS = 40
"""Denominators of the rational turns that are enumerated."""


def steps() -> Iterator[Step]:
    """The proof."""
    yield argument(
        "what is known",
        r"By derivation `best_approximation` the minimum is $2\sin^2(\pi |D_k|)$, $D_k = q_k\alpha - p_k$. "
        r"Neighbouring $D_k$ have opposite signs, their sizes fall strictly ($D_{k+1}$ may be 0 for rational "
        r"$\alpha$ only), and $p_{k+1} q_k - p_k q_{k+1} = \pm 1$.",
    )
    alpha = sympy.symbols("alpha", real=True)
    p0, q0, p1, q1 = sympy.symbols("p0 q0 p1 q1", integer=True)
    yield symbolic(
        "two neighbours add up to 1",
        r"$q_{k+1} D_k - q_k D_{k+1} = p_{k+1} q_k - p_k q_{k+1} = \pm 1$. The two terms on the left have one "
        r"sign, so $q_{k+1} |D_k| + q_k |D_{k+1}| = 1$.",
        holds=vanishes(q1 * (q0 * alpha - p0) - q0 * (q1 * alpha - p1) - (p1 * q0 - p0 * q1)),
    )
    size, y, q, after = sympy.symbols("D y q Q", positive=True)
    solved = sympy.solve(sympy.Eq(after * size + q * y * size, 1), size)
    yield symbolic(
        "the exact value",
        r"With $|D_{k+1}| = y |D_k|$, $0 \le y < 1$: $|D_k| = \frac{1}{q_{k+1} + y q_k}$. In the notation of that "
        r"derivation $\frac{1}{y} = z'$ is the complete quotient $\alpha_{k+2}$, so "
        r"$y = [0; a_{k+2}, a_{k+3}, \ldots]$.",
        holds=len(solved) == 1 and vanishes(solved[0] - 1 / (after + y * q)),
    )
    slope = sympy.diff(1 / (after + y * q), y)
    yield symbolic(
        "both ends",
        r"$\frac{1}{q_{k+1} + y q_k}$ falls strictly with $y$; at $y = 0$ it is $\frac{1}{q_{k+1}}$, at $y = 1$ it "
        r"is $\frac{1}{q_k + q_{k+1}}$. Since $0 < y < 1$ (or $0 \le y < 1$), "
        r"$\frac{1}{q_k + q_{k+1}} < |D_k| < \frac{1}{q_{k+1}}$ (or $\le$). Neither constant can be improved for "
        r"given $q_k$, $q_{k+1}$: every $y$ between occurs, as the quotients after $a_{k+1}$ are free.",
        holds=bool(slope.is_negative)
        and vanishes((1 / (after + y * q)).subs(y, 0) - 1 / after)
        and vanishes((1 / (after + y * q)).subs(y, 1) - 1 / (after + q)),
    )
    x = sympy.symbols("x", real=True)
    yield symbolic(
        "from returns to margins",
        r"$1 - \cos 2\pi x = 2\sin^2 \pi x$ grows strictly on $[0, 1/2]$: its derivative is $2\pi\sin 2\pi x$. All "
        r"three numbers lie there, since $q_{k+1} > T \ge 1$ is at least 2.",
        holds=vanishes(1 - sympy.cos(2 * sympy.pi * x) - 2 * sympy.sin(sympy.pi * x) ** 2)
        and vanishes(sympy.diff(2 * sympy.sin(sympy.pi * x) ** 2, x) - 2 * sympy.pi * sympy.sin(2 * sympy.pi * x)),
    )
    cases = [
        case
        for denominator in range(2, DENOMINATORS + 1)
        for numerator in range(1, denominator)
        if sympy.igcd(numerator, denominator) == 1
        for case in _steps_of(Fraction(numerator, denominator))
    ]
    yield exact(
        "rational turns, enumerated",
        rf"For every rational turn with a denominator up to {DENOMINATORS} and every pair of neighbouring "
        rf"convergents with $q_k < q_{{k+1}}$, {len(cases)} in all: the nearest return within $q_{{k+1}} - 1$ "
        r"steps, found by trying all, is above $\frac{1}{q_k + q_{k+1}}$ and at most $\frac{1}{q_{k+1}}$, and is "
        r"that only at the last pair.",
        holds=all(
            Fraction(1, before + then) < nearest <= Fraction(1, then) and (nearest == Fraction(1, then)) == last
            for before, then, nearest, last in cases
        ),
    )


def _steps_of(turn: Fraction) -> list[tuple[int, int, Fraction, bool]]:
    """(q_k, q_(k+1), smallest distance of a multiple below q_(k+1) to an integer, whether q_(k+1) is the last)."""
    denominators, before, last = [], 1, 0
    for quotient in continued_fraction_iterator(sympy.Rational(turn.numerator, turn.denominator)):
        before, last = last, int(quotient) * last + before
        denominators.append(last)
    return [
        (
            first,
            second,
            min(min(t * turn % 1, -t * turn % 1) for t in range(1, second)),
            second == turn.denominator,
        )
        for first, second in pairwise(denominators)
        if first < second
    ]


def check() -> None:
    """Both functions against balls at the engine's own denominators, around its margins; and the edges of the scope."""
    for text, reach in (("1", 10**6), ("10000^(-2/128)", 10**6), ("pi*(sqrt(5)-1)", 10**9), ("5", 10**4)):
        angle = read_angle(text)
        stairs = diophantine.one_plane_staircase(angle, reach)
        for index, (denominator, after) in enumerate(pairwise(stairs.steps)):
            lower = float(bounds.convergent_lower_bound(np.array(float(denominator)), np.array(float(after))))
            upper = float(bounds.convergent_upper_bound(np.array(float(after))))
            _same("convergent_lower_bound", lower, denominator + after)
            _same("convergent_upper_bound", upper, after)
            with balls.precision(256):
                margin = 2 * (angle.ball(256) * denominator / 2).sin() ** 2
            seen = stairs.margin(index)
            require(
                bool(_bound(denominator + after) < margin) and bool(margin < _bound(after)),
                f"angle {text}: the gap at {denominator} is not between the two bounds",
            )
            require(
                lower * (1 - 1e-14) < float(seen) < upper * (1 + 1e-14),
                f"angle {text}: the margin from {denominator} on, {float(seen)!r}, is not in ({lower!r}, {upper!r})",
            )
            dirichlet = float(bounds.dirichlet_bound(np.array(float(after - 1))))
            require(
                abs(upper - dirichlet) <= 1e-14 * upper,
                f"at T = q - 1 = {after - 1} the upper bound {upper!r} is not Dirichlet's {dirichlet!r}",
            )
    rational = diophantine.one_plane_staircase(read_angle("2/5 turn"), 4)
    met = float(bounds.convergent_upper_bound(np.array(5.0)))
    require(
        abs(float(rational.margin(rational.index_at(4))) - met) <= 1e-15,
        "2/5 turn does not meet the upper bound at its own denominator",
    )
    large = np.array(1e30)  # doubles that hold two neighbours as one number
    _same("convergent_lower_bound", float(bounds.convergent_lower_bound(large, large)), 2 * int(1e30))
    one, two = np.array(1.0), np.array(2.0)
    _same("convergent_lower_bound", float(bounds.convergent_lower_bound(one, two)), 3)
    _same("convergent_upper_bound", float(bounds.convergent_upper_bound(two)), 2)
    require(refuses(bounds.convergent_lower_bound, one, one), "convergent_lower_bound takes q = q' = 1")
    require(refuses(bounds.convergent_lower_bound, np.array(0.0), two), "convergent_lower_bound takes q = 0")
    require(refuses(bounds.convergent_lower_bound, np.array(5.0), np.array(4.0)), "convergent_lower_bound takes q' < q")
    require(refuses(bounds.convergent_upper_bound, one), "convergent_upper_bound takes q' = 1")
    end = np.array(1e150)
    _same("convergent_lower_bound", float(bounds.convergent_lower_bound(end, end)), 2 * int(1e150))
    _same("convergent_upper_bound", float(bounds.convergent_upper_bound(end)), int(1e150))
    for outside in (2.5, np.nan, np.inf, np.nextafter(1e150, np.inf)):
        given = np.array(outside)
        require(refuses(bounds.convergent_lower_bound, one, given), f"convergent_lower_bound takes q' = {outside!r}")
        require(refuses(bounds.convergent_lower_bound, given, end), f"convergent_lower_bound takes q = {outside!r}")
        require(refuses(bounds.convergent_upper_bound, given), f"convergent_upper_bound takes q' = {outside!r}")


def _bound(total: int) -> balls.Ball:
    """1 - cos(2 pi/total), at the working precision at least."""
    with balls.precision(256):
        return 1 - (2 * ClosedForm.pi() / total).ball(256).cos()


def _same(name: str, value: float, total: int) -> None:
    """Require 1 - cos(2 pi/total) to the accuracy that the function states."""
    bits = 256 + 2 * total.bit_length()  # the difference cancels twice as many bits as the total has
    with balls.precision(bits):
        wanted = 1 - (2 * ClosedForm.pi() / total).ball(bits).cos()
        error = abs(balls.ball(Fraction(value)) / wanted - 1)
    require(bool(error < 2e-15), f"{name} is {value!r}, not 1 - cos(2 pi/{total})")

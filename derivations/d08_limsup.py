"""What (T+1)^2 margin/(2 pi^2) does as T grows: its limsup and liminf over all angles, and for almost every one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
import sympy

from ropegeo.asymptotics import bounds
from ropegeo.claims import Claim, Status, Step, argument, exact, refuses, require, symbolic, vanishes
from ropegeo.engine import diophantine
from ropegeo.exact import ClosedForm, balls, read_angle

CLAIM = Claim(
    title="The 1/n^2 law is an envelope: limsup and liminf",
    statement=(
        r"Let $m(T) = \min_{1 \le t \le T} (1 - \cos t\theta)$ and "
        r"$\alpha = \frac{\theta}{2\pi} = [a_0; a_1, a_2, \ldots]$ irrational. Then "
        r"$\operatorname{limsup} \frac{(T+1)^2 m(T)}{2\pi^2}$ lies between $(\frac{5+\sqrt{5}}{10})^2$ and 1, and "
        r"$\operatorname{liminf} \frac{(T+1)^2 m(T)}{2\pi^2}$ between 0 and $\frac{1}{5}$. If all $a_k$ are 1 from "
        r"some $k$ on, as for the golden ratio, the two are $(\frac{5+\sqrt{5}}{10})^2$ and $\frac{1}{5}$; "
        r"otherwise at least $\frac{9}{16}$ and at most $\frac{9}{64}$. If the $a_k$ are unbounded, which holds "
        r"for almost every $\theta$, they are 1 and 0; if they are bounded, neither is."
    ),
    source="docs/MATHEMATICS.md, section 5 (the envelope); Hurwitz 1891 for the constant 1/5",
    scope=r"every $\theta$ with $\frac{\theta}{2\pi}$ irrational (for rational ones $m(T) = 0$ in the end)",
    status=Status.PROVED,
    ties=(
        "ropegeo.asymptotics.bounds.envelope_constant",
        "ropegeo.asymptotics.bounds.trough_constant",
        "ropegeo.engine.diophantine.one_plane_staircase",
    ),
)
GOLDEN = "pi*(sqrt(5)-1)"
"""theta = 2 pi/phi: all quotients are 1, and the denominators are the Fibonacci numbers."""


def steps() -> Iterator[Step]:
    """The proof."""
    yield from _reduction()
    yield from _limsup()
    yield from _liminf()
    yield from _golden()
    yield from _almost_every()


def _reduction() -> Iterator[Step]:
    u = sympy.symbols("u", positive=True)
    yield symbolic(
        "the square of a cubic",
        r"$(1 - \frac{u^2}{6})^2 = 1 - \frac{u^2}{3} + \frac{u^4}{36}$.",
        holds=vanishes((1 - u**2 / 6) ** 2 - (1 - u**2 / 3) - u**4 / 36),
    )
    yield argument(
        "only the ends of steps matter",
        r"For $q_k \le T < q_{k+1}$, $m(T) = 2\sin^2 \pi\mu$ with $\mu = |q_k\alpha - p_k| < \frac{1}{q_{k+1}}$ "
        r"(derivations `best_approximation`, `lower_bound`). So "
        r"$\frac{(T+1)^2 m(T)}{2\pi^2} = ((T+1)\mu)^2 \frac{\sin^2 u}{u^2}$, $u = \pi\mu$, grows with $T$ on the "
        r"step: from $((q_k+1)\mu)^2 \frac{\sin^2 u}{u^2}$ at $T = q_k$ to $(q_{k+1}\mu)^2 \frac{\sin^2 u}{u^2}$ "
        r"at $T = q_{k+1} - 1$. From $u - \frac{u^3}{6} \le \sin u \le u$ (derivation `small_angle`) and "
        r"$u \le \frac{\pi}{2}$ follows $1 - \frac{u^2}{3} \le \frac{\sin^2 u}{u^2} \le 1$, by the step before. So "
        r"the factor is within $\frac{\pi^2}{3 q_{k+1}^2}$ of 1, and as $q_k \to \infty$ the limsup is that of "
        r"$(q_{k+1}\mu)^2$, the liminf that of $(q_k\mu)^2$.",
    )
    q, after, x, y = sympy.symbols("q Q x y", positive=True)
    size = 1 / (after + y * q)
    yield symbolic(
        "two numbers decide",
        r"Put $x_k = \frac{q_k}{q_{k+1}}$ and $y_k = [0; a_{k+2}, a_{k+3}, \ldots]$, both in $(0, 1]$. Derivation "
        r"`lower_bound` gives $\mu = \frac{1}{q_{k+1} + y_k q_k}$, so $q_{k+1}\mu = \frac{1}{1 + x_k y_k}$ and "
        r"$q_k\mu = \frac{x_k}{1 + x_k y_k} = \frac{1}{S_k}$ with $S_k = \frac{1}{x_k} + y_k$. From "
        r"$q_{k+1} = a_{k+1} q_k + q_{k-1}$: $\frac{1}{x_k} = a_{k+1} + x_{k-1}$, and "
        r"$\frac{1}{y_k} = a_{k+2} + y_{k+1}$. So the limsup is $\frac{1}{(1 + P)^2}$, "
        r"$P = \operatorname{liminf} x_k y_k$, and the liminf is $\frac{1}{S^2}$, $S = \operatorname{limsup} S_k$, "
        r"$S_k = a_{k+1} + x_{k-1} + y_k$. As $x_k y_k \ge 0$, the limsup is at most 1.",
        holds=vanishes((after * size - 1 / (1 + x * y)).subs(x, q / after))
        and vanishes((q * size - x / (1 + x * y)).subs(x, q / after))
        and vanishes(x / (1 + x * y) - 1 / (1 / x + y)),
    )


def _limsup() -> Iterator[Step]:
    a, x, y = sympy.symbols("a x y", positive=True)
    yield symbolic(
        "one quotient",
        r"$\frac{1}{a+1} - \frac{x}{a+y} = \frac{a(1-x) + (y-x)}{(a+1)(a+y)}$, and $(1 + \frac13)^{-2} = "
        r"\frac{9}{16}$.",
        holds=vanishes(1 / (a + 1) - x / (a + y) - (a * (1 - x) + (y - x)) / ((a + 1) * (a + y)))
        and 1 / (1 + sympy.Rational(1, 3)) ** 2 == sympy.Rational(9, 16),
    )
    yield argument(
        "a quotient of 2 or more, again and again",
        r"Let $a = a_{k+2} \ge 2$, $x = x_k$, $y = y_{k+1}$. Then $x_k y_k = \frac{x}{a + y}$ and "
        r"$x_{k+1} y_{k+1} = \frac{y}{a + x}$. If $x \le y$, then the difference before is not negative; if $y \le x$, "
        r"the same with $x$ and $y$ exchanged. So one of the two products is at most $\frac{1}{a+1} \le \frac{1}{3}$. "
        r"If this happens for infinitely many $k$, then $P \le \frac{1}{3}$ and the limsup is at least $\frac{9}{16}$.",
    )
    phi, psi = (sympy.sqrt(5) + 1) / 2, (sympy.sqrt(5) - 1) / 2  # psi = 1/phi
    yield symbolic(
        "the golden ratio's step",
        r"With $\phi = \frac{1+\sqrt{5}}{2}$: $\frac{1}{1 + x} - \frac{1}{\phi} = -\frac{x - 1/\phi}{\phi(1 + x)}$, "
        r"and $\frac{1}{1 + \phi^{-2}} = \frac{5+\sqrt{5}}{10}$.",
        holds=vanishes(phi * psi - 1)
        and vanishes((1 + x) * (1 / (1 + x) - psi + (x - psi) * psi / (1 + x)))
        and vanishes((1 + psi**2) * (5 + sympy.sqrt(5)) / 10 - 1),
    )
    yield argument(
        "all quotients 1 from some place on",
        r"Otherwise $y_k = [0; 1, 1, \ldots] = \frac{1}{\phi}$ in the end and $x_{k+1} = \frac{1}{1 + x_k}$, which by "
        r"the step before brings $x_k$ nearer to $\frac{1}{\phi}$ by the factor $\phi$ at least. So $x_k y_k \to "
        r"\frac{1}{\phi^2}$, and the limsup is $(\frac{5+\sqrt{5}}{10})^2$.",
    )
    least = ((5 + sympy.sqrt(5)) / 10) ** 2
    yield exact(
        "so the golden value is the least, and isolated",
        rf"$(\frac{{5+\sqrt{{5}}}}{{10}})^2 = {sympy.latex(sympy.expand(least))} \approx {sympy.N(least, 6)}$ is "
        rf"below $\frac{{9}}{{16}} = {float(Fraction(9, 16))}$: no limsup lies between the two.",
        holds=bool(least < sympy.Rational(9, 16)),
    )


def _liminf() -> Iterator[Step]:
    root, two_thirds = sympy.sqrt(5), 2 + sympy.Rational(1, 3) + sympy.Rational(1, 3)
    psi = (root - 1) / 2  # 1/phi
    yield argument(
        "three cases",
        r"$S_k = a_{k+1} + x_{k-1} + y_k$. If $a_{k+1} \ge 3$ infinitely often, $S \ge 3$ and the liminf is at "
        r"most $\frac{1}{9}$. Otherwise all quotients are 1 or 2 in the end, so "
        r"$x_{k-1} = \frac{1}{a_k + x_{k-2}} \ge \frac{1}{3}$ and "
        r"$y_k = \frac{1}{a_{k+2} + y_{k+1}} \ge \frac{1}{3}$; if 2 occurs infinitely often, $S \ge 2 + "
        rf"\frac{{1}}{{3}} + \frac{{1}}{{3}} = {sympy.latex(two_thirds)}$ and the liminf is at most "
        rf"${sympy.latex(1 / two_thirds**2)}$. If all are 1 in the end, "
        r"$S_k \to 1 + \frac{1}{\phi} + \frac{1}{\phi}$ and the liminf is $\frac{1}{5}$, the largest of the three.",
    )
    yield exact(
        "their numbers",
        rf"$1 + \frac{{2}}{{\phi}} = \sqrt{{5}} \approx {sympy.N(root, 5)}$, below ${sympy.latex(two_thirds)}$, which "
        rf"is below 3; and $(\frac{{8}}{{3}})^{{-2}} = {sympy.latex(1 / two_thirds**2)}$.",
        holds=1 / two_thirds**2 == sympy.Rational(9, 64)
        and bool(root < two_thirds)
        and bool(two_thirds < 3)
        and vanishes(1 + 2 * psi - root),
    )


def _golden() -> Iterator[Step]:
    root = sympy.sqrt(5)
    phi, psi = (root + 1) / 2, (root - 1) / 2  # psi = 1/phi
    power, sign = sympy.symbols("w e", real=True)  # w = phi^(-k-1), e = (-1)^k
    # phi^(k+1) = 1/w, so F_(k+1) = (1/w + e w)/sqrt 5 and F_(k+2) = (phi/w - e psi w)/sqrt 5.
    this, after = (1 / power + sign * power) / root, (phi / power - sign * psi * power) / root
    yield symbolic(
        "the golden ratio itself",
        r"For $\alpha = \frac{1}{\phi}$ all quotients are 1: $q_k = F_{k+1}$ (Fibonacci, $F_1 = F_2 = 1$) and "
        r"$D_k = (-1)^k \phi^{-k-1}$, since both sides begin alike and $\phi^{-2} = 1 - \phi^{-1}$. With "
        r"$F_n = (\phi^n - (-\phi)^{-n})/\sqrt{5}$ (both powers obey the recursion, and $n = 1, 2$ fit): "
        r"$q_{k+1}\mu = (\phi - (-1)^k \phi^{-2k-3})/\sqrt{5}$ and $q_k\mu = (1 + (-1)^k \phi^{-2k-2})/\sqrt{5}$, "
        r"whose squares tend to $\frac{\phi^2}{5} = (\frac{5+\sqrt{5}}{10})^2$ and $\frac{1}{5}$, exponentially "
        r"fast.",
        holds=vanishes(phi * psi - 1)
        and vanishes(psi**2 - (1 - psi))
        and vanishes(phi**2 - phi - 1)
        and vanishes((-psi) ** 2 - (-psi) - 1)
        and all(vanishes((phi**n - (-psi) ** n) / root - 1) for n in (1, 2))
        and vanishes(after * power - (phi - sign * psi * power**2) / root)
        and vanishes(this * power - (1 + sign * power**2) / root)
        and vanishes(phi / root - (5 + root) / 10),
    )


def _almost_every() -> Iterator[Step]:
    bound = sympy.symbols("A", positive=True)
    yield argument(
        "bounded and unbounded quotients",
        r"$x_k < \frac{1}{a_{k+1}}$, so if the quotients are unbounded, $x_k y_k \to 0$ and "
        r"$S_k > a_{k+1} \to \infty$ along some $k$: the limsup is 1 and the liminf 0. If all are at most $A$ in "
        r"the end, $x_k, y_k \ge \frac{1}{A+1}$ and $S_k \le A + 2$: the limsup is at most "
        r"$(1 + (A+1)^{-2})^{-2} < 1$ and the liminf at least $(A+2)^{-2} > 0$.",
    )
    p, q, p_before, q_before = sympy.symbols("p q p' q'", positive=True)

    def point(z: sympy.Expr) -> sympy.Expr:
        return (p * z + p_before) / (q * z + q_before)

    length = sympy.together(p / q - point(bound)) * q * (q * bound + q_before)  # times its denominator
    share = (q + q_before) / (q * bound + q_before)
    yield symbolic(
        "a cylinder's share",
        r"The numbers of $(0, 1)$ with given $a_1, \ldots, a_n$ are $\frac{p_n z + p_{n-1}}{q_n z + q_{n-1}}$, "
        r"$z = [a_{n+1}; a_{n+2}, \ldots]$ in $(1, \infty)$: an interval. Its part with $z > A$ has the length "
        r"$\frac{1}{q_n (q_n A + q_{n-1})}$, since $p_n q_{n-1} - p_{n-1} q_n = \pm 1$; the whole has the same "
        r"with $A = 1$. So the share is $\frac{q_n + q_{n-1}}{q_n A + q_{n-1}}$, which exceeds $\frac{1}{A}$ by "
        r"$\frac{q_{n-1} (A - 1)}{A (q_n A + q_{n-1})} \ge 0$.",
        holds=vanishes(length - (p * q_before - p_before * q))
        and vanishes(share - 1 / bound - q_before * (bound - 1) / (bound * (q * bound + q_before))),
    )
    yield argument(
        "almost every angle",
        r"Fix an integer $A \ge 2$ and let $E_n$ be the irrational numbers of $(0, 1)$ with $a_1, \ldots, a_n$ "
        r"below $A$. In each interval of given $a_1, \ldots, a_n$ those with $a_{n+1} \ge A$ have a share of "
        r"$\frac{1}{A}$ at least; so $|E_{n+1}| \le (1 - \frac{1}{A}) |E_n|$, $|E_n| \to 0$, and the numbers with "
        r"all quotients below $A$ are a null set. So is their union over all $A$: the numbers with bounded "
        r"quotients. Adding whole turns and multiplying by $2\pi$ keeps null sets, so almost every $\theta$ has "
        r"unbounded quotients, limsup 1 and liminf 0.",
    )


def check() -> None:
    """The functions against fractions, the constants against closed forms, and both against the engine's margins."""
    for x in (Fraction(0), Fraction(1, 4), Fraction(5, 8), Fraction(1)):
        for y in (Fraction(0), Fraction(3, 8), Fraction(1)):
            pair = np.array(float(x)), np.array(float(y))
            for name, seen, wanted in (
                ("envelope_constant", bounds.envelope_constant(*pair), 1 / (1 + x * y) ** 2),
                ("trough_constant", bounds.trough_constant(*pair), (x / (1 + x * y)) ** 2),
            ):
                require(
                    abs(Fraction(float(seen)) - wanted) <= wanted * Fraction(1, 10**15),
                    f"{name}({x}, {y}) is {float(seen)!r}, not {wanted}",
                )
    root = ClosedForm.of(5).sqrt()
    least = float(((5 + root) / 10) ** 2)
    require(abs(bounds.LEAST_LIMSUP - least) <= 1e-15, f"LEAST_LIMSUP is {bounds.LEAST_LIMSUP!r}, not {least!r}")
    require(abs(bounds.GREATEST_LIMINF - float(Fraction(1, 5))) <= 1e-16, "GREATEST_LIMINF is not 1/5")
    for text, reach in ((GOLDEN, 10**12), ("2*pi*(sqrt(2)-1)", 10**9), ("1", 10**6), ("10000^(-2/128)", 10**6)):
        angle = read_angle(text)
        stairs = diophantine.one_plane_staircase(angle, reach)
        returns = [_return(angle, t) for t in stairs.steps]
        for index, (denominator, after) in enumerate(pairwise(stairs.steps)):
            # y = |D_(k+1)|/|D_k|, by its definition
            pair = np.array(denominator / after), np.array(returns[index + 1] / returns[index])
            scaled = float(stairs.margin(index)) / (2 * math.pi**2)
            shortfall = math.pi**2 / (3 * after**2)
            for where, value, constant in (
                (f"before {after}", scaled * after**2, float(bounds.envelope_constant(*pair))),
                (f"at {denominator}", scaled * denominator**2, float(bounds.trough_constant(*pair))),
            ):
                require(
                    1 - shortfall - 1e-12 <= value / constant <= 1 + 1e-12,
                    f"angle {text}, {where}: T^2 margin/(2 pi^2) is {value!r}, the constant {constant!r}",
                )
            if text == GOLDEN and denominator > 10**7:  # where both limits are reached to 1e-13
                require(
                    abs(scaled * after**2 - bounds.LEAST_LIMSUP) <= 1e-12,
                    f"the golden angle's envelope at {after} is {scaled * after**2!r}, not LEAST_LIMSUP",
                )
                require(
                    abs(scaled * denominator**2 - bounds.GREATEST_LIMINF) <= 1e-12,
                    f"the golden angle's trough at {denominator} is {scaled * denominator**2!r}, not GREATEST_LIMINF",
                )
    half = np.array(0.5)
    smallest = np.array(1e-150)
    require(abs(float(bounds.trough_constant(smallest, half)) / 1e-300 - 1) <= 1e-14, "trough_constant at 1e-150")
    require(float(bounds.envelope_constant(smallest, smallest)) == 1, "envelope_constant at 1e-150")
    for beyond in (-1e-3, 1 + 1e-3, np.nextafter(1e-150, 0), np.nan):
        for function in (bounds.envelope_constant, bounds.trough_constant):
            require(refuses(function, np.array(beyond), half), f"{function.__name__} takes the ratio {beyond}")
            require(refuses(function, half, np.array(beyond)), f"{function.__name__} takes the tail {beyond}")


def _return(angle: ClosedForm, t: int) -> float:
    """Distance of t alpha to the nearest integer, from the sine of its half turn."""
    with balls.precision(256):
        low, high = balls.rational_ends(abs((angle.ball(256) * t / 2).sin()).asin() / balls.pi())
    return float((low + high) / 2)

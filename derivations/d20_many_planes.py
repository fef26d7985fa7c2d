"""No index head on F planes, phases 0, has a margin above 2 sin^2(pi (T+1)^(-1/F)) at reach T."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import sympy

from ropegeo.asymptotics import bounds
from ropegeo.claims import Claim, Status, Step, argument, ball, exact, refuses, require, symbolic, vanishes
from ropegeo.engine import routes
from ropegeo.exact import ClosedForm, balls
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum

CLAIM = Claim(
    title="Simultaneous approximation bounds the margin of an index head on several planes",
    statement=(
        r"Let $F$ planes have angles $\theta_k$ and weights $a_k \ge 0$, $\sum_k a_k = 1$, phases 0, and let $T + 1 "
        r"\ge 2^F$. Then $\min_{1 \le t \le T} \sum_k a_k (1 - \cos t\theta_k) \le 2\sin^2(\pi (T+1)^{-1/F}) \le "
        r"2\pi^2 (T+1)^{-2/F}$, whatever the angles and the weights. With phases the first power remains: every head "
        r"$\operatorname{Re} \sum_k z_k e^{it\theta_k}$, $\sum_k |z_k| \le 1$, has a margin of at most $2\sin(\pi "
        r"(T+1)^{-1/F})$ over $1 \le t \le T$."
    ),
    source="docs/MATHEMATICS.md, section 7; Dirichlet 1842, Minkowski 1896 (linear forms); proved here",
    scope=r"every real $\theta_k$, $F \ge 1$, integer $T \ge 2^F - 1$",
    status=Status.PROVED,
    ties=(
        "ropegeo.asymptotics.bounds.simultaneous_bound",
        "ropegeo.engine.routes.margin_curve",
    ),
)
TURNS = {2: 13, 3: 10}
"""Number of planes to the denominators of the turns that are enumerated."""
LATTICES = ((2, 2), (3, 2), (5, 2), (2, 3), (3, 3), (2, 5))
"""M and F of the angles that attain the approximation."""
PHASED = 60
"""Reaches at which the head with a phase is enclosed."""


def steps() -> Iterator[Step]:
    """The proof."""
    x = sympy.symbols("x", real=True)
    yield symbolic(
        "from the margin to the turns",
        r"With $\alpha_k = \frac{\theta_k}{2\pi}$ the gap at $t$ is $\sum_k a_k\, 2\sin^2 \pi\|t\alpha_k\|$, an "
        r"average of numbers that grow with $\|t\alpha_k\|$ on $[0, \frac12]$: it is at most $2\sin^2(\pi \max_k "
        r"\|t\alpha_k\|)$ for any weights. So it is enough to find $1 \le t \le T$ with $\|t\alpha_k\| \le "
        r"\varepsilon = (T+1)^{-1/F}$ for all $k$; $T + 1 \ge 2^F$ says $\varepsilon \le \frac12$.",
        holds=vanishes(1 - sympy.cos(2 * sympy.pi * x) - 2 * sympy.sin(sympy.pi * x) ** 2)
        and vanishes(sympy.diff(2 * sympy.sin(sympy.pi * x) ** 2, x) - 2 * sympy.pi * sympy.sin(2 * sympy.pi * x)),
    )
    yield argument(
        "pigeonhole by volume",
        r"In the torus of all $(x_1, \ldots, x_F)$ modulo 1, of volume 1, put a half-open cube of side $\varepsilon$ "
        r"with its lower corner at each of the $T+1$ points $(t\alpha_1, \ldots, t\alpha_F)$, $0 \le t \le T$. The "
        r"volumes add up to $(T+1)\varepsilon^F = 1$. If two of the cubes share a point, their corners differ by less "
        r"than $\varepsilon$ in every coordinate, modulo 1. If no two do, they fill the torus up to volume 0, so the "
        r"closed cubes cover it (what they miss is open). The torus is connected and $T + 1 \ge 2$, so it is no union "
        r"of closed cubes without common points: two of them meet, and their corners differ by at most $\varepsilon$ "
        r"in every coordinate. Either way $t = |t_1 - t_2|$ has $1 \le t \le T$ and $\|t\alpha_k\| \le \varepsilon$ "
        r"for all $k$.",
    )
    yield argument(
        "the classical forms",
        r"This is the case of $F$ forms $t\alpha_k - p_k$ and the form $t$ of Minkowski's theorem on linear forms. "
        r"Boxes in place of moving cubes give less: for $N^F \le T$ two of the $N^F + 1$ points lie in one of $N^F$ "
        r"boxes, so some $t \le N^F$ has all $\|t\alpha_k\| < \frac1N$.",
    )
    for planes, denominator in TURNS.items():
        turns = list(product(range(denominator), repeat=planes))
        yield exact(
            f"enumerated, {planes} planes",
            rf"For all ${denominator}^{planes}$ choices of turns that are multiples of $\frac{{1}}{{{denominator}}}$ "
            rf"and every $T$ from {2**planes - 1} to {denominator - 1} the least $m = \max_k \|t\alpha_k\|$ has "
            rf"$m^{planes} (T+1) \le 1$, in rational arithmetic.",
            holds=all(_approximates(each, denominator) for each in turns),
        )
    yield argument(
        "no better in general",
        r"Turns $\alpha_k = M^{-k}$, $k = 1 .. F$, $T + 1 = M^F$, $M \ge 2$: if $M^j$ is the largest power of $M$ in "
        r"$t$, $j < F$, then $t\alpha_{j+1} = \frac{t}{M^j} \cdot \frac1M$ is at least $\frac1M = \varepsilon$ away "
        r"from the integers. So $\min_t \max_k \|t\alpha_k\| = \varepsilon$ exactly. (The margin is an average over "
        r"planes, so it stays below the bound there for $F > 1$.)",
    )
    yield exact(
        "no better, listed (support)",
        rf"That minimum is $\frac1M$ for $(M, F)$ = {', '.join(str(case) for case in LATTICES)}, in rationals.",
        holds=all(
            _nearest([Fraction(1, m**k) for k in range(1, planes + 1)], m**planes - 1) == Fraction(1, m)
            for m, planes in LATTICES
        ),
    )
    yield symbolic(
        "the power law",
        r"$x - \sin x$ is 0 at 0 with derivative $1 - \cos x \ge 0$, so $\sin x \le x$ for $x \ge 0$ and the bound is "
        r"at most $2\pi^2 (T+1)^{-2/F}$. For $F = 1$ it is $1 - \cos\frac{2\pi}{T+1}$.",
        holds=(x - sympy.sin(x)).subs(x, 0) == 0
        and vanishes(sympy.diff(x - sympy.sin(x), x) - (1 - sympy.cos(x)))
        and vanishes(2 * sympy.sin(sympy.pi / (x + 1)) ** 2 - (1 - sympy.cos(2 * sympy.pi / (x + 1)))),
    )
    yield from _phases()


def _approximates(numerators: tuple[int, ...], denominator: int) -> bool:
    turns = [Fraction(numerator, denominator) for numerator in numerators]
    return all(
        _nearest(turns, reach) ** len(turns) * (reach + 1) <= 1 for reach in range(2 ** len(turns) - 1, denominator)
    )


def _nearest(turns: list[Fraction], reach: int) -> Fraction:
    """min over 1 <= t <= reach of max_k ||t alpha_k||."""
    return min(max(_distance(t * turn) for turn in turns) for t in range(1, reach + 1))


def _distance(x: Fraction) -> Fraction:
    """To the nearest integer."""
    return min(x % 1, 1 - x % 1)


def _phases() -> Iterator[Step]:
    x, t, h = sympy.symbols("x t h", real=True)
    yield symbolic(
        "with phases",
        r"$\operatorname{Re} z (1 - e^{2ix}) \le |z| |1 - e^{2ix}| = 2|z| |\sin x|$: the same $t$ gives the margin "
        r"bound $2\sin(\pi\varepsilon)$, of first power. Where the window holds $-t$ with every $t$, the mean over "
        r"both is $\sum_k \operatorname{Re}(z_k) (1 - \cos t\theta_k)$, and the second power is back.",
        holds=vanishes((1 - sympy.cos(2 * x)) ** 2 + sympy.sin(2 * x) ** 2 - 4 * sympy.sin(x) ** 2),
    )
    phi = sympy.pi / 2 - h
    gap = sympy.cos(phi) - sympy.cos(phi + 2 * t * h)
    yield symbolic(
        "a head with a phase",
        r"One plane, $\theta = 2h = \frac{\pi}{T+1}$, phase $\frac{\pi}{2} - h$: the gap at $t$ is $\sin((2t-1)h) + "
        r"\sin h$, and $(2T-1)h = \pi - 3h$.",
        holds=vanishes(gap - sympy.sin((2 * t - 1) * h) - sympy.sin(h))
        and vanishes(((2 * x - 1) * h - (sympy.pi - 3 * h)).subs(h, sympy.pi / (2 * (x + 1)))),
    )
    yield argument(
        "the first power is right",
        r"For $1 \le t \le T$, $h \le (2t-1)h \le \pi - 3h$. The sine rises and then falls on $[0, \pi]$, and $\sin 3h "
        r"\ge \sin h$ for $h \le \frac{\pi}{4}$, so the gap is smallest at $t = 1$: the margin is "
        r"$2\sin\frac{\pi}{2(T+1)}$, at least half the bound, where phase 0 allows $2\sin^2\frac{\pi}{T+1}$ at most.",
    )
    seen = {reach: _phased_margin(reach) for reach in range(1, PHASED + 1)}
    with balls.precision(96):
        sines = {reach: (balls.pi() / (reach + 1)).sin() for reach in seen}
        as_said = all(
            (margin - 2 * (balls.pi() / (2 * (reach + 1))).sin()).contains(0) and margin < 2 * sines[reach]
            for reach, margin in seen.items()
        )
        below = [reach for reach, margin in seen.items() if not margin > 2 * sines[reach] ** 2]
    first = max(below) + 1
    yield ball(
        "the same, enclosed (support)",
        rf"For every $T \le {PHASED}$ the smallest of the $T$ gaps, each enclosed, is that number, below the bound "
        rf"with phases, and from $T = {first}$ on above what phase 0 allows; at $T = {PHASED}$ it is "
        rf"{float(seen[PHASED]):.6f}.",
        holds=as_said and first < PHASED // 2,
    )


def _phased_margin(reach: int) -> balls.Ball:
    """cos(phi) - max_t cos(phi + t theta), enclosed (the smallest of several balls encloses the smallest number)."""
    with balls.precision(96):
        half = balls.pi() / (2 * (reach + 1))
        phase = balls.pi() / 2 - half
        gaps = [phase.cos() - (phase + 2 * t * half).cos() for t in range(1, reach + 1)]
        least = gaps[0]
        for gap in gaps[1:]:
            least = least.min(gap)
        return least


def check() -> None:
    """The function against balls, and above every margin of the engine that it speaks of."""
    with balls.precision(128):
        for planes, reach in (
            (1, 1),
            (1, 1000),
            (2, 3),
            (2, 80),
            (3, 7),
            (3, 10**6),
            (5, 31),
            (7, 10**15),
            (1, int(1e150)),
        ):
            root = (balls.ball(reach + 1).log() / -planes).exp()
            expected = 2 * (balls.pi() * root).sin() ** 2
            seen = bounds.simultaneous_bound(np.array(float(reach)), np.array(float(planes)))
            require(
                bool(abs(balls.ball(Fraction(float(seen))) / expected - 1) < balls.ball(Fraction(1, 10**13))),
                f"simultaneous_bound({reach}, {planes}) = {float(seen)!r}",
            )
    outside = (
        (0.0, 1.0),
        (2.0, 2.0),
        (6.0, 3.0),
        (7.5, 2.0),
        (9.0, 1.5),
        (9.0, 0.0),
        (np.nan, 1.0),
        (9.0, np.nan),
        (np.inf, 1.0),
        (np.nextafter(1e150, np.inf), 1.0),
    )
    for reach_given, planes_given in outside:
        require(
            refuses(bounds.simultaneous_bound, np.array(reach_given), np.array(planes_given)),
            f"simultaneous_bound takes reach {reach_given} and {planes_given} planes",
        )
    for spectrum, weights in (
        (_spectrum([Fraction(1, 3), Fraction(1, 9)]), (0.5, 0.5)),
        (_spectrum([Fraction(1, 3), Fraction(1, 9)]), (0.1, 0.9)),
        (RopeSpectrum.from_base("10000", head_dim=4), (0.7, 0.3)),
        (RopeSpectrum.from_base("10000", head_dim=6), (0.3, 0.3, 0.4)),
    ):
        profile = LogitProfile(spectrum=spectrum, coefficients=np.array(weights, np.complex128))
        lengths = [n for n in (4, 8, 9, 64, 200) if n >= 2 ** len(weights)]
        margins = routes.margin_curve(profile, lengths, route="definition").margin
        allowed = bounds.simultaneous_bound(np.array(lengths) - 1.0, np.array(float(len(weights))))
        require(bool((margins <= allowed).all()), f"margins of the weights {weights} exceed the bound: {margins}")
    # Equal weights, T = 8: the least gap is 3/4, at t = 3. The turn 1/3 alone attains the bound at T = 2.
    thirds = _spectrum([Fraction(1, 3), Fraction(1, 9)])
    for weights, n, least in (
        ((0.5, 0.5), 9, 0.75),
        ((1.0, 0.0), 3, float(bounds.simultaneous_bound(np.array(2.0), np.array(1.0)))),
    ):
        profile = LogitProfile(spectrum=thirds, coefficients=np.array(weights, np.complex128))
        margin = float(routes.margin_curve(profile, [n]).margin[0])
        require(abs(margin - least) <= 1e-14, f"weights {weights} on the turns 1/3 and 1/9: margin {margin}")


def _spectrum(turns: list[Fraction]) -> RopeSpectrum:
    return RopeSpectrum(angles=tuple(2 * ClosedForm.pi() * turn for turn in turns), head_dim=2 * len(turns))

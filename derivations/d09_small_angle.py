"""1 - cos x lies between x^2/2 - x^4/24 and x^2/2: so Dirichlet's bound at reach T is 2 pi^2/(T+1)^2 to first order."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
import sympy

from ropegeo.asymptotics import bounds
from ropegeo.claims import Claim, Status, Step, argument, refuses, require, symbolic, vanishes
from ropegeo.engine import diophantine
from ropegeo.exact import balls, read_angle

CLAIM = Claim(
    title="The series behind the 1/n^2 law",
    statement=(
        r"For every real $x$: $\frac{x^2}{2} - \frac{x^4}{24} \le 1 - \cos x \le \frac{x^2}{2}$, with equality at "
        r"$x = 0$ only. So for every $T \ge 1$: $(1 - \frac{\pi^2}{3(T+1)^2}) \frac{2\pi^2}{(T+1)^2} < "
        r"1 - \cos\frac{2\pi}{T+1} < \frac{2\pi^2}{(T+1)^2}$."
    ),
    source="docs/MATHEMATICS.md, sections 5 and 6; Urrutia et al., arXiv 2605.31558, Theorem 3.2",
    scope=r"every real $x$; every real $T \ge 1$",
    status=Status.PROVED,
    ties=(
        "ropegeo.asymptotics.bounds.small_angle_upper",
        "ropegeo.asymptotics.bounds.small_angle_lower",
        "ropegeo.asymptotics.bounds.dirichlet_bound",
        "ropegeo.engine.diophantine.one_plane_staircase",
    ),
)


def steps() -> Iterator[Step]:
    """The proof."""
    x, reach = sympy.symbols("x T", positive=True)
    chain = (
        1 - sympy.cos(x),
        x - sympy.sin(x),
        x**2 / 2 - (1 - sympy.cos(x)),
        sympy.sin(x) - x + x**3 / 6,
        (1 - sympy.cos(x)) - (x**2 / 2 - x**4 / 24),
    )
    yield symbolic(
        "a chain of derivatives",
        r"$f_0 = 1 - \cos x$, $f_1 = x - \sin x$, $f_2 = \frac{x^2}{2} - (1 - \cos x)$, "
        r"$f_3 = \sin x - x + \frac{x^3}{6}$, $f_4 = (1 - \cos x) - (\frac{x^2}{2} - \frac{x^4}{24})$: each is the "
        r"derivative of the next, and all vanish at $x = 0$.",
        holds=all(vanishes(sympy.diff(after, x) - before) for before, after in pairwise(chain))
        and all(function.subs(x, 0) == 0 for function in chain),
    )
    yield argument(
        "signs along the chain",
        r"For $x \ge 0$: $f_0 \ge 0$, and it is 0 at isolated points only. So $f_1$, which begins at 0, grows "
        r"strictly and is positive for $x > 0$; then so is $f_2$, and $f_3$, and $f_4$. The last gives the lower "
        r"bound, $f_2$ the upper one, both strict for $x > 0$. $1 - \cos x$, $x^2$ and $x^4$ are even, which gives "
        r"$x < 0$.",
    )
    angle = 2 * sympy.pi / (reach + 1)
    yield symbolic(
        "at the angle of Dirichlet's bound",
        r"For $x = \frac{2\pi}{T+1}$ the upper bound $\frac{x^2}{2}$ is $\frac{2\pi^2}{(T+1)^2}$, and the largest "
        r"shortfall $\frac{x^4}{24}$ divided by it is $\frac{x^2}{12} = \frac{\pi^2}{3(T+1)^2}$.",
        holds=vanishes(angle**2 / 2 - 2 * sympy.pi**2 / (reach + 1) ** 2)
        and vanishes((angle**4 / 24) / (angle**2 / 2) - sympy.pi**2 / (3 * (reach + 1) ** 2)),
    )
    last = sympy.series(1 - sympy.cos(x), x, 0, 6).removeO()
    yield symbolic(
        "no better constants",
        rf"The series of $1 - \cos x$ begins ${sympy.latex(last)}$, so neither $\frac{{1}}{{2}}$ in the upper "
        r"bound nor $\frac{1}{24}$ in the lower one can be replaced by a smaller number.",
        holds=vanishes(last - (x**2 / 2 - x**4 / 24)),
    )


def check() -> None:
    """Both functions against fractions, with 1 - cos x between; then Dirichlet's bound and the engine's margins."""
    for ratio in (Fraction(0), Fraction(1, 10**9), Fraction(1, 7), Fraction(-5, 3), Fraction(3), Fraction(13, 3)):
        x = np.array(float(ratio))
        rational = Fraction(float(ratio))
        upper, lower = rational**2 / 2, rational**2 / 2 - rational**4 / 24
        size = rational**2 / 2 + rational**4 / 24
        require(
            abs(Fraction(float(bounds.small_angle_upper(x))) - upper) <= upper * Fraction(1, 10**15),
            f"small_angle_upper({float(x)!r}) is not x^2/2",
        )
        require(
            abs(Fraction(float(bounds.small_angle_lower(x))) - lower) <= size * Fraction(1, 10**15),
            f"small_angle_lower({float(x)!r}) is not x^2/2 - x^4/24",
        )
        with balls.precision(256):
            deficit = 2 * (balls.ball(rational) / 2).sin() ** 2
            between = balls.ball(lower) <= deficit <= balls.ball(upper) if rational else upper == lower == 0
        require(bool(between), f"1 - cos x does not lie between the two at x = {float(x)!r}")
    reaches = np.array([1.0, 2.0, 7.0, 100.0, 1e4, 1e6])
    dirichlet = bounds.dirichlet_bound(reaches)
    upper_at = bounds.small_angle_upper(2 * np.pi / (reaches + 1))
    lower_at = bounds.small_angle_lower(2 * np.pi / (reaches + 1))
    slack = 1e-14 * dirichlet
    require(bool((dirichlet <= upper_at + slack).all()), "dirichlet_bound lies above 2 pi^2/(T+1)^2")
    require(bool((dirichlet >= lower_at - slack).all()), "dirichlet_bound lies below the series' second partial sum")
    shortfall = np.pi**2 / (3 * (reaches + 1) ** 2)
    require(
        bool((upper_at - dirichlet <= (shortfall + 1e-14) * upper_at).all()),
        "dirichlet_bound falls short of 2 pi^2/(T+1)^2 by more than pi^2/(3 (T+1)^2)",
    )
    for angle in ("1", "pi*(sqrt(5)-1)", "1/101 turn", "10000^(-2/128)"):
        stairs = diophantine.one_plane_staircase(read_angle(angle), 100)
        require(
            float(stairs.margin(stairs.index_at(100))) <= float(bounds.small_angle_upper(np.array(2 * np.pi / 101))),
            f"the margin of angle {angle} at reach 100 lies above 2 pi^2/101^2",
        )
    for value in (1e-150, -1e-150, 1e150, -1e150):
        given = np.array(value)
        require(
            abs(float(bounds.small_angle_upper(given)) / (5e-301 if abs(value) < 1 else 5e299) - 1) <= 1e-14,
            f"small_angle_upper({value}) is not x^2/2",
        )
        lower_end = float(bounds.small_angle_lower(given))
        require(lower_end > 0 if abs(value) < 1 else lower_end == -np.inf, f"small_angle_lower({value}) is {lower_end}")
    for value in (np.nan, np.inf, -np.inf, np.nextafter(1e-150, 0), np.nextafter(-1e150, -np.inf)):
        require(refuses(bounds.small_angle_upper, np.array(value)), f"small_angle_upper takes {value}")
        require(refuses(bounds.small_angle_lower, np.array(value)), f"small_angle_lower takes {value}")
    require(not refuses(bounds.small_angle_upper, np.array(1e6)), "small_angle_upper refuses a large angle")
    require(not refuses(bounds.small_angle_lower, np.array(1e6)), "small_angle_lower refuses a large angle")

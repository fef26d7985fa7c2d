"""No one-plane index head has a margin above 1 - cos(2 pi/(T+1)) at reach T, whatever its angle; and one attains it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import gcd

import numpy as np
import sympy

from ropegeo.asymptotics import bounds
from ropegeo.claims import Claim, Status, Step, argument, exact, refuses, require, symbolic, vanishes
from ropegeo.engine import diophantine
from ropegeo.exact import read_angle

CLAIM = Claim(
    title="Dirichlet's bound at reach T, and that it is attained",
    statement=(
        r"For every real $\theta$ and every $T \ge 1$: "
        r"$\min_{1 \le t \le T} (1 - \cos t\theta) \le 1 - \cos\frac{2\pi}{T+1}$, "
        r"with equality for $\theta = \frac{2\pi p}{T+1}$, $\gcd(p, T+1) = 1$."
    ),
    source="docs/MATHEMATICS.md, section 5; Dirichlet 1842",
    scope=r"every real $\theta$, every integer $T \ge 1$",
    status=Status.PROVED,
    ties=(
        "ropegeo.asymptotics.bounds.dirichlet_bound",
        "ropegeo.engine.diophantine.one_plane_staircase",
    ),
)
TESTED = 60
"""Reaches for which the extremal angles are enumerated."""


def steps() -> Iterator[Step]:
    """The proof."""
    x = sympy.symbols("x", real=True)
    sine_form = 1 - sympy.cos(2 * sympy.pi * x) - 2 * sympy.sin(sympy.pi * x) ** 2
    yield symbolic(
        "sine form",
        r"$1 - \cos 2\pi x = 2\sin^2 \pi x$, which depends on $\|x\|$ only and grows with it on $[0, 1/2]$, since its "
        r"derivative $2\pi\sin 2\pi x$ is not negative there.",
        holds=vanishes(sine_form)
        and vanishes(sympy.diff(2 * sympy.sin(sympy.pi * x) ** 2, x) - 2 * sympy.pi * sympy.sin(2 * sympy.pi * x)),
    )
    yield argument(
        "pigeonhole",
        r"The $T+1$ points $0, \alpha, \ldots, T\alpha$ cut the circle of length 1 into $T+1$ arcs, so some arc is at "
        r"most $1/(T+1)$ long. Its ends $a\alpha, b\alpha$ differ by $t = |a-b| \le T$, $t \ge 1$, and "
        r"$\|t\alpha\| \le 1/(T+1)$.",
    )
    yield argument(
        "attained",
        r"Let $\alpha = p/(T+1)$ in lowest terms. For $1 \le t \le T$ the integer $tp$ is no multiple of $T+1$, as "
        r"$p$ has no factor in common with $T+1$ and $t$ is smaller. So $\|t\alpha\| \ge 1/(T+1)$ for all of them, "
        r"with equality for one by pigeonhole.",
    )
    yield exact(
        "attained, listed (support)",
        rf"For every $T \le {TESTED}$ and every such $p$ the smallest $\|t\alpha\|$ is $1/(T+1)$ exactly, in "
        rf"rationals.",
        holds=all(
            min(_distance(Fraction(t * p, reach + 1)) for t in range(1, reach + 1)) == Fraction(1, reach + 1)
            for reach in range(1, TESTED + 1)
            for p in range(1, reach + 1)
            if gcd(p, reach + 1) == 1
        ),
    )


def _distance(x: Fraction) -> Fraction:
    """To the nearest integer."""
    return min(x % 1, 1 - x % 1)


def check() -> None:
    """The bound is never exceeded by the engine's margins, and met by the extremal angles."""
    for reach in (1, 2, 3, 6, 25, 1000):
        bound = float(bounds.dirichlet_bound(np.array(float(reach))))
        attained = diophantine.one_plane_staircase(read_angle(f"1/{reach + 1} turn"), reach)
        require(
            abs(float(attained.margin(attained.index_at(reach))) - bound) <= 1e-14 * bound,
            f"dirichlet_bound({reach}) = {bound!r} is not the margin of the angle 2 pi/{reach + 1}",
        )
        for angle in ("1", "1/3", "pi*(sqrt(5)-1)", "10000^(-2/128)"):
            steps = diophantine.one_plane_staircase(read_angle(angle), reach)
            require(float(steps.margin(steps.index_at(reach))) <= bound, f"angle {angle} exceeds it at reach {reach}")
    last = float(bounds.dirichlet_bound(np.array(1e150)))  # where 2 sin(x)^2 is 2 x^2 to 300 digits
    require(abs(last / (2 * (np.pi / 1e150) ** 2) - 1) <= 1e-14, f"dirichlet_bound(1e150) is {last!r}")
    for outside in (0.0, 1.5, 1000.9, np.nan, np.inf, np.nextafter(1e150, np.inf)):
        require(refuses(bounds.dirichlet_bound, np.array(outside)), f"dirichlet_bound takes the reach {outside!r}")

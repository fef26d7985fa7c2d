"""A one-plane index head that sees two positions or more has a margin of at most 1 - cos(theta), at any offset."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy

from ropegeo.asymptotics import bounds
from ropegeo.claims import Claim, Status, Step, argument, exact, refuses, require, symbolic, vanishes
from ropegeo.engine import index_margin
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum

CLAIM = Claim(
    title="The nearest rival of an index head stands one position beside its target",
    statement=(
        r"For every real $\theta$, every length $n \ge 2$ and every offset $0 \le s \le n-1$ the margin of a one-plane "
        r"index head is at most $1 - \cos\theta$. Equality holds at $n = 2$, and at every reach $T = \max(s, n-1-s)$ "
        r"with $\theta \ge 0$ and $(T+1)\theta \le 2\pi$."
    ),
    source="Urrutia et al., arXiv 2605.31558, Theorem 3.2; docs/MATHEMATICS.md, sections 5 and 6",
    scope=r"every real $\theta$; $n \ge 2$, since at $n = 1$ nothing competes",
    status=Status.PROVED,
    ties=("ropegeo.asymptotics.bounds.adjacent_bound", "ropegeo.engine.index_margin.index_curve"),
)
LISTED = 60
"""Lengths for which every window is listed."""


def steps() -> Iterator[Step]:
    """The proof."""
    theta, t = sympy.symbols("theta t", real=True)
    yield argument(
        "what competes",
        r"The head scores $\cos t\theta$ at displacement $t = d - s$ from its target, which is at $t = 0$. The visible "
        r"displacements are the $n$ consecutive integers $-s, \ldots, n-1-s$.",
    )
    yield argument(
        "a neighbour is visible",
        r"A run of $n \ge 2$ consecutive integers that holds $0$ holds $-1$ or $1$: $-1$ if $s \ge 1$, else $1$.",
    )
    yield exact(
        "a neighbour is visible, listed (support)",
        rf"Such a run holds $-1$ or $1$ for every $2 \le n \le {LISTED}$ and every offset.",
        holds=all({-1, 1} & set(range(-s, n - s)) for n in range(2, LISTED + 1) for s in range(n)),
    )
    yield symbolic(
        "it is that far below the target",
        r"$\cos(-\theta) = \cos\theta$, so on either side the neighbour lies $1 - \cos\theta = 2\sin^2(\theta/2)$ "
        "below the target, and the margin is at most that.",
        holds=vanishes(sympy.cos(-theta) - sympy.cos(theta))
        and vanishes(1 - sympy.cos(theta) - 2 * sympy.sin(theta / 2) ** 2),
    )
    yield symbolic(
        "equality",
        r"$\cos\theta - \cos t\theta = 2\sin\frac{(t+1)\theta}{2}\sin\frac{(t-1)\theta}{2}$. For $1 \le t \le T$, "
        r"$\theta \ge 0$ and $(T+1)\theta \le 2\pi$ both arguments lie in $[0, \pi]$, so no displacement scores above "
        r"the neighbour. At $n = 2$ the neighbour is alone.",
        holds=vanishes(
            sympy.cos(theta)
            - sympy.cos(t * theta)
            - 2 * sympy.sin((t + 1) * theta / 2) * sympy.sin((t - 1) * theta / 2)
        ),
    )


def check() -> None:
    """The engine's margins never exceed the bound, and meet it where the claim says so."""
    for angle in (1e-3, 0.1, 0.866, 1.0, 2.0, 3.0, 6.2, 40.0):
        for length, offset in ((2, 0), (2, 1), (3, 1), (5, 0), (17, 3), (60, 59)):
            bound = float(bounds.adjacent_bound(np.array(angle), np.array(float(length))))
            margin = _margin(angle, length, offset)
            what = f"angle {angle}, length {length}, offset {offset}: margin {margin!r}, bound {bound!r}"
            require(margin <= bound * (1 + 1e-13), f"adjacent_bound is exceeded at {what}")
            reach = max(offset, length - 1 - offset)
            if length == 2 or (reach + 1) * angle <= 2 * np.pi:
                require(abs(margin - bound) <= 1e-13 * bound, f"adjacent_bound is not met at {what}")
    shape = bounds.adjacent_bound(np.array([0.1, 0.2]), np.array([[2.0], [3.0], [4.0]])).shape
    require(shape == (3, 2), f"adjacent_bound does not broadcast: {shape}")
    ends = bounds.adjacent_bound(np.array([1e-150, 0.0, -1.0]), np.array(1e150))
    wanted = (5e-301, 0.0, 2 * np.sin(0.5) ** 2)
    require(bool((abs(ends - wanted) <= 1e-14 * np.array(wanted)).all()), f"adjacent_bound at its ends is {ends}")
    require(0 < float(bounds.adjacent_bound(np.array(-1e150), np.array(2.0))) <= 2, "adjacent_bound at -1e150")
    for outside in (1.0, 2.5, np.nan, np.inf, np.nextafter(1e150, np.inf)):
        require(refuses(bounds.adjacent_bound, np.array(1.0), np.array(outside)), f"adjacent_bound takes n = {outside}")
    for angle in (np.nan, np.inf, np.nextafter(1e-150, 0), np.nextafter(-1e150, -np.inf)):
        require(refuses(bounds.adjacent_bound, np.array(angle), np.array(2.0)), f"adjacent_bound takes angle {angle}")


def _margin(angle: float, length: int, offset: int) -> float:
    """Of the head with exactly this double for its angle."""
    profile = LogitProfile(
        spectrum=RopeSpectrum.from_angle(angle), coefficients=np.ones(1, np.complex128), origin=offset
    )
    return float(index_margin.index_curve(profile, [length]).points[0].margin)

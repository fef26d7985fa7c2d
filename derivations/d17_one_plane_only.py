"""The fall like 1/T^2 belongs to one plane: index heads on several planes have far larger margins."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import sympy

from ropegeo.asymptotics import bounds
from ropegeo.claims import Claim, Status, Step, argument, ball, counterexample, exact, require, symbolic, vanishes
from ropegeo.engine import routes
from ropegeo.exact import ClosedForm, Enclosure, balls
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum, preset

CLAIM = Claim(
    title="The quadratic decay of Index is a limit of one plane, not of positional heads",
    statement=(
        r"On one plane, whatever its angle, an index head has a margin of at most $1 - \cos\frac{2\pi}{T+1} \le "
        r"\frac{2\pi^2}{(T+1)^2}$ at reach $T$. Purely positional heads on several planes exceed that: equal weights "
        "on planes 0 to 11 of the base 10000 with 128 rotated coordinates have a margin above 0.1535 at $T = 1024$ "
        r"and at $T = 65536$; and equal weights on two planes with turns $\frac{1}{q}$ and $\frac{1}{q+1}$, $q \ge "
        r"2$, have $\sin^2\frac{\pi}{q+1}$, of the order of $1/T$, at $T = q(q+1) - 1$."
    ),
    source="Urrutia et al., arXiv 2605.31558, on Theorem 3.2 and length; docs/MATHEMATICS.md, sections 5 to 7",
    scope=r"the upper bound: index heads on one plane, every real angle, every offset, $T \ge 1$",
    status=Status.IN_SCOPE,
    ties=(
        "ropegeo.engine.routes.margin_curve",
        "ropegeo.asymptotics.bounds.dirichlet_bound",
    ),
    as_stated="that an index head's discrepancy falls like $1/n^2$ is a limit of positional mechanisms",
    cause=(
        r"The bound is proved for one plane. A head may put weight on several; a displacement has to bring all of them "
        r"back near a whole turn at once to be a close rival."
    ),
)
PLANES, REACH, FAR = 12, 1024, 65536
"""Equal weights on this many of the fastest planes, at these reaches."""
BLOCK = 256
"""Displacements that share a start where cosines are made by addition."""
LISTED = 40
"""Largest q for which all displacements of the two-plane head are listed."""


def steps() -> Iterator[Step]:
    """One plane, then the two families of heads."""
    yield argument(
        "one plane",
        r"Of the $T+1$ points $0, \alpha, \ldots, T\alpha$ of the circle, $\alpha = \theta/(2\pi)$, two lie at most "
        r"$1/(T+1)$ apart, so some $1 \le t \le T$ has $\|t\alpha\| \le 1/(T+1)$ and the rival at $t$ or $-t$ is at "
        r"most $1 - \cos\frac{2\pi}{T+1}$ below the target (claims `dirichlet_bound` and `index_window`).",
    )
    yield from _planes()
    yield from _two_planes()


def _planes() -> Iterator[Step]:
    angles = preset("paper").angles[:PLANES]
    gaps = [_gap(angles, t) for t in range(1, REACH + 1)]
    at = min(range(REACH), key=lambda k: float(gaps[k]))
    one = _largest_of_one_plane(REACH)
    yield counterexample(
        "twelve planes, reach 1024",
        rf"Weights $1/{PLANES}$ on planes $0, \ldots, {PLANES - 1}$, $\theta_k = 10000^{{-2k/128}}$, offset 0, $n = "
        rf"{REACH + 1}$: the gap $\sum_k \frac{{2}}{{{PLANES}}}\sin^2\frac{{t\theta_k}}{{2}}$ was enclosed at every "
        rf"$1 \le t \le {REACH}$. The smallest is {_shown(gaps[at])}, at $t = {at + 1}$; no one-plane head has more "
        f"than {_shown(one)} at that reach, a factor of {float(gaps[at] / one):.0f}.",
        holds=all(gaps[at] < gap for k, gap in enumerate(gaps) if k != at)
        and bool(gaps[at] > 5000 * one)
        and bool(gaps[at] > balls.ball(Fraction(1535, 10_000))),
    )
    beyond, one = _least_gap(angles, REACH + 1, FAR), _largest_of_one_plane(FAR)
    yield ball(
        "twelve planes, reach 65536",
        rf"The same head at $n = {FAR + 1}$: every gap at ${REACH} < t \le {FAR}$, enclosed too, is at least "
        f"{_shown(beyond)}, so the margin is still {_shown(gaps[at])}, at $t = {at + 1}$, and did not fall at all; one "
        f"plane has at most {_shown(one)}, a factor of {float(gaps[at] / one) / 10**6:.1f} million.",
        holds=bool(beyond > gaps[at]) and bool(gaps[at] > 10**7 * one),
    )


def _two_planes() -> Iterator[Step]:
    q = sympy.symbols("q", positive=True)
    yield argument(
        "two planes: what a displacement can be",
        r"With weights $1/2$ the gap at $t$ is $\sin^2\frac{\pi t}{q} + \sin^2\frac{\pi t}{q+1}$. It depends on the "
        r"two residues of $t$, and $\gcd(q, q+1) = 1$: both are 0 first at $t = q(q+1)$. Before that one of them is "
        r"not, and the gap is at least $\sin^2\frac{\pi}{q+1}$, the smaller of $\sin^2\frac{\pi}{q}$ and "
        r"$\sin^2\frac{\pi}{q+1}$ as $q \ge 2$. It is that at $t = q$, where the first residue is 0 and the second "
        "$-1$.",
    )
    yield exact(
        "listed (support)",
        rf"For every $2 \le q \le {LISTED}$ and $1 \le t < q(q+1)$, in rationals: one of $\|t/q\|$, $\|t/(q+1)\|$ is "
        "at least $1/q$ or $1/(q+1)$ respectively, and at $t = q$ they are 0 and $1/(q+1)$.",
        holds=all(_residues_fit(q) for q in range(2, LISTED + 1)),
    )
    two, one = sympy.sin(sympy.pi / (q + 1)) ** 2, 2 * sympy.sin(sympy.pi / (q * (q + 1))) ** 2
    y = sympy.symbols("y", real=True)
    yield symbolic(
        "two sines and two limits",
        r"$\sin 2y = 2\cos y\sin y$ and $2\cos\frac{\pi}{6} > \sqrt{2}$. As $q \to \infty$ with $y = "
        r"\frac{\pi}{q(q+1)}$ the ratio of $\sin^2 qy$ to $2\sin^2 y$, divided by $q^2$, tends to $\frac12$, and "
        r"$(q(q+1) - 1) \sin^2\frac{\pi}{q+1} \to \pi^2$.",
        holds=sympy.limit(two / one / q**2, q, sympy.oo) == sympy.Rational(1, 2)
        and sympy.limit((q * (q + 1) - 1) * two, q, sympy.oo) == sympy.pi**2
        and vanishes(sympy.sin(2 * y) - 2 * sympy.cos(y) * sympy.sin(y))
        and bool(2 * sympy.cos(sympy.pi / 6) > sympy.sqrt(2)),
    )
    yield argument(
        "by how much that exceeds one plane",
        r"$T = q(q+1) - 1$, so one plane has at most $2\sin^2 y$, $y = \frac{\pi}{q(q+1)} \le \frac{\pi}{6}$. As $2y "
        r"\le qy \le \frac{\pi}{3}$, $\sin qy \ge \sin 2y = 2\cos y\sin y > \sqrt{2}\sin y$ by the step before: two "
        r"planes have more for every $q \ge 2$. The ratio grows like $\frac{q^2}{2}$, and the margin of two planes "
        r"falls like $\pi^2/T$.",
    )
    side = 32
    reach = side * (side + 1) - 1
    with balls.precision(128):
        two_planes = (balls.pi() / (side + 1)).sin() ** 2
    most = _largest_of_one_plane(reach)
    yield ball(
        "two planes, a number",
        rf"$q = {side}$, $T = {reach}$: {_shown(two_planes)} against at most {_shown(most)} on one plane, "
        rf"a factor of {float(two_planes / most):.0f}.",
        holds=bool(two_planes > 500 * most),
    )


def _residues_fit(q: int) -> bool:
    """Whether ||t/q|| >= 1/q or ||t/(q+1)|| >= 1/(q+1) before t = q(q+1); 0 and 1/(q+1) at q; 0 and 0 at the end."""
    near, far = ([Fraction(min(t % count, -t % count), count) for t in range(q * (q + 1) + 1)] for count in (q, q + 1))
    apart = all(near[t] >= Fraction(1, q) or far[t] >= Fraction(1, q + 1) for t in range(1, q * (q + 1)))
    return apart and near[q] == near[-1] == far[-1] == 0 and far[q] == Fraction(1, q + 1)


def _gap(angles: tuple[ClosedForm, ...], t: int) -> balls.Ball:
    """Mean of 1 - cos(t angle)."""
    with balls.precision(96):
        return sum((2 * (angle.ball(96) * t / 2).sin() ** 2 for angle in angles), balls.ball(0)) / len(angles)


def _least_gap(angles: tuple[ClosedForm, ...], first: int, last: int) -> balls.Ball:
    """The least of the gaps at first..last; cos((u + v) x) from tables of u, multiples of `BLOCK`, and v below it."""
    with balls.precision(96):
        turns = [angle.ball(96) for angle in angles]
        rows = [[((turn * v).cos(), (turn * v).sin()) for turn in turns] for v in range(BLOCK)]
        most = balls.ball(-len(turns))
        for u in range(first - first % BLOCK, last + 1, BLOCK):
            starts = [((turn * u).cos(), (turn * u).sin()) for turn in turns]
            for row in rows[max(first - u, 0) : last + 1 - u]:
                terms = (a * c - b * s for (a, b), (c, s) in zip(starts, row, strict=True))
                most = most.max(sum(terms, balls.ball(0)))
        return 1 - most / len(turns)


def _largest_of_one_plane(reach: int) -> balls.Ball:
    with balls.precision(128):
        return 2 * (balls.pi() / (reach + 1)).sin() ** 2


def _shown(value: balls.Ball) -> str:
    return str(Enclosure.of_ball(value).digits(5))


def _head() -> LogitProfile:
    spectrum = preset("paper")
    weights = np.where(np.arange(spectrum.planes) < PLANES, 1.0, 0.0)
    return LogitProfile(spectrum=spectrum, coefficients=weights.astype(np.complex128))


def check() -> None:
    """The engine's margins of both heads against values worked out here, and against the most that one plane has."""
    head = _head()
    point = routes.margin_curve(head, [REACH + 1], route="definition").points[0]
    sines = np.sin(np.arange(1, REACH + 1)[:, None] * head.spectrum.inv_freq[:PLANES] / 2)
    truth = float((2 * sines**2).mean(axis=1).min())
    require(abs(float(point.margin) - truth) <= 1e-11, f"twelve planes: {float(point.margin)!r}, not {truth!r}")
    most = float(bounds.dirichlet_bound(np.array(float(REACH))))
    require(abs(most - float(_largest_of_one_plane(REACH))) <= 1e-12 * most, f"one plane has at most {most!r}")
    require(float(point.margin) > 5000 * most, f"twelve planes: {float(point.margin)!r}, one plane at most {most!r}")
    for q in (2, 5, 13):
        angles = tuple(2 * ClosedForm.pi() / count for count in (q, q + 1))
        spectrum = RopeSpectrum(angles=angles, head_dim=4, rope_type="angle")
        profile = LogitProfile(spectrum=spectrum, coefficients=np.ones(2, np.complex128))
        length = q * (q + 1)
        before, tie = routes.margin_curve(profile, [length, length + 1], route="definition").points
        value = np.sin(np.pi / (q + 1)) ** 2
        require(abs(float(before.margin) - value) <= 1e-12, f"turns 1/{q}, 1/{q + 1}: {before.margin}, not {value}")
        require(tie.margin.sign == 0, f"turns 1/{q}, 1/{q + 1}: {tie.margin} at length {length + 1}, not 0")
        most = float(bounds.dirichlet_bound(np.array(float(length - 1))))
        require(value > most, f"turns 1/{q}, 1/{q + 1} are not above one plane, {most}")

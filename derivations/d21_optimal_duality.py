"""The best margin of a positional head on given planes equals the smallest dual value of a distribution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil, floor

import numpy as np
import sympy

from ropegeo._arrays import FloatArray
from ropegeo.asymptotics import bounds
from ropegeo.claims import Claim, Status, Step, argument, ball, cited, exact, refuses, require, symbolic, vanishes
from ropegeo.engine import routes
from ropegeo.exact import balls
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum

CLAIM = Claim(
    title="Best margin of a positional head: weak and strong duality",
    statement=(
        r"Let $W$ be a finite set of displacements, 0 not among them, and $m(z) = \min_{t \in W} \operatorname{Re} "
        r"\sum_k z_k (1 - e^{it\theta_k})$ the margin of the head $z$. For every $z$ with $\sum_k |z_k| \le 1$ and "
        r"every distribution $\mu$ on $W$, $m(z) \le \max_k |\sum_t \mu_t (1 - e^{it\theta_k})|$, and the largest "
        r"left side equals the smallest right side. If $W = -W$, phases 0 ($z_k \ge 0$) are enough on the left and "
        r"symmetric $\mu$ on the right."
    ),
    source="docs/MATHEMATICS.md, section 7 (ours)",
    scope=r"any real angles, finitely many planes, any finite window without 0",
    status=Status.CITED,
    ties=(
        "ropegeo.asymptotics.bounds.dual_bound",
        "ropegeo.asymptotics.bounds.primal_margin",
        "ropegeo.engine.routes.margin_curve",
    ),
)
REACH = 128
PROGRAMS = {
    "10000": ((0, 1, 2, 3, 4, 8, 12, 18, 22), (1, 6, 44, 50, 57, 88, 101, 107, 126), 0.35484),
    "500000": ((0, 1, 2, 3, 4, 7, 10, 12, 15, 16), (1, 6, 25, 31, 38, 56, 69, 75, 107, 113), 0.34461),
}
"""Base to the planes and displacements at which the best pair of width 128 stands, and its value. (Found by a linear
program; what is proved of the pair does not rest on how it was found.)"""


def steps() -> Iterator[Step]:
    """The proof."""
    x, y, r, phi = sympy.symbols("x y r varphi", real=True)
    yield argument(
        "weak duality",
        r"A minimum is at most an average: with $G_k = \sum_t \mu_t (1 - e^{it\theta_k})$, $m(z) \le \sum_t \mu_t "
        r"\operatorname{Re} \sum_k z_k (1 - e^{it\theta_k}) = \operatorname{Re} \sum_k z_k G_k \le \sum_k |z_k| |G_k| "
        r"\le \max_k |G_k|$.",
    )
    yield symbolic(
        "the best head against one distribution",
        r"$\operatorname{Re} z_k G_k = |z_k| |G_k|$ for $z_k$ of the argument opposite to that of $G_k$: with $|z_k| "
        r"= 1$ on the plane of the largest $|G_k|$, the last two steps are equalities, so $\max_z \operatorname{Re} "
        r"\sum_k z_k G_k = \max_k |G_k|$. (Written out for $G = r e^{i\varphi}$, and $z G$ for $z = x + iy$.)",
        holds=vanishes(sympy.re(sympy.expand(sympy.exp(-sympy.I * phi) * r * sympy.exp(sympy.I * phi))) - r)
        and vanishes(
            (x**2 + y**2) * r**2
            - (r * (x * sympy.cos(phi) - y * sympy.sin(phi))) ** 2
            - (r * (x * sympy.sin(phi) + y * sympy.cos(phi))) ** 2
        ),
    )
    yield cited(
        "strong duality",
        r"$\operatorname{Re} \sum_t \mu_t \sum_k z_k (1 - e^{it\theta_k})$ is linear in $z$ and in $\mu$; both range "
        r"over compact convex sets. So $\max_z \min_\mu = \min_\mu \max_z$, both attained. The inner minimum over "
        r"$\mu$ is $m(z)$, the inner maximum over $z$ is $\max_k |G_k|$.",
        source=(
            "Sion, Pacific J. Math. 8 (1958) 171-176 (minimax theorem); with phases 0, for polytopes, already von "
            "Neumann, Math. Ann. 100 (1928) 295-320"
        ),
    )
    yield symbolic(
        "symmetric windows",
        r"If $W = -W$, the mean of the terms of $t$ and $-t$ is $\sum_k \operatorname{Re}(z_k) (1 - \cos t\theta_k)$, "
        r"so $m(z) \le m(\operatorname{Re} z)$, and as $1 - \cos \ge 0$, negative parts may be put to 0. Likewise "
        r"$|G_k|$ is at least its real part $\sum_t \mu_t (1 - \cos t\theta_k)$, which is the value of $\mu$ made "
        r"symmetric. Both problems are then real: a linear program and its dual.",
        holds=vanishes(
            sympy.re((x + sympy.I * y) * (1 - sympy.exp(sympy.I * phi))) / 2
            + sympy.re((x + sympy.I * y) * (1 - sympy.exp(-sympy.I * phi))) / 2
            - x * (1 - sympy.cos(phi))
        ),
    )
    yield from _cases()


def _cases() -> Iterator[Step]:
    fifth, third, half, quarter = (2 * sympy.pi / q for q in (5, 3, 2, 4))
    value = 1 - sympy.cos(fifth)
    five = list(range(-4, 0)) + list(range(1, 5))
    primal = _primal([fifth], five, [sympy.Integer(1)])
    dual = _dual([fifth], {-1: sympy.Rational(1, 2), 1: sympy.Rational(1, 2)})
    yield exact(
        "one plane, a turn of 1/5",
        rf"$\theta = \frac{{2\pi}}{{5}}$, $W = \{{-4..4\}}$ without 0. Head $z = 1$: margin {sympy.radsimp(value)}. "
        r"$\mu = \frac12$ on 1 and on $-1$: the same. So the best margin is $1 - \cos\frac{2\pi}{5}$.",
        holds=_equal(primal, value) and _equal(dual, value),
    )
    six = list(range(-5, 0)) + list(range(1, 6))
    share, best = sympy.Rational(4, 7), sympy.Rational(6, 7)
    primal = _primal([third, half], six, [share, 1 - share])
    dual = _dual([third, half], {2: share / 2, -2: share / 2, 3: (1 - share) / 2, -3: (1 - share) / 2})
    yield exact(
        "two planes, turns of 1/3 and 1/2",
        rf"$\theta = \frac{{2\pi}}{{3}}, \pi$, $W = \{{-5..5\}}$ without 0, phases 0: the gaps are $\frac32 a$ at $t "
        rf"= 2$ or 4, $2(1-a)$ at $t = 3$, and more at $t = 1$ or 5, so $a = \frac47$ is best. $\mu = \frac27$ on "
        rf"$\pm 2$, $\frac{{3}}{{14}}$ on $\pm 3$. Margin {primal}, dual value {dual}.",
        holds=_equal(primal, best) and _equal(dual, best),
    )
    root, turned = sympy.sqrt(2), (1 + sympy.I) / sympy.sqrt(2)
    primal, dual = _primal([quarter], [1, 2], [turned]), _dual([quarter], {1: sympy.Integer(1)})
    real = _primal([quarter], [1, 2], [sympy.Integer(1)])
    yield exact(
        "one side: phases matter",
        rf"$\theta = \frac{{\pi}}{{2}}$, $W = \{{1, 2\}}$. $z = e^{{i\pi/4}}$ has margin {primal}, $\mu$ all on 1 the "
        rf"dual value {dual}: best. With phase 0, $z = 1$ has {real} (and $z = a \le 1$ less): a window that is not "
        rf"symmetric is not solved by phases 0.",
        holds=_equal(primal, root) and _equal(dual, root) and _equal(real, sympy.Integer(1)),
    )
    for base in PROGRAMS:
        low, high, valid = _certified(base)
        yield ball(
            f"64 planes, base {base}",
            rf"All 64 planes of width 128, $W = \{{-{REACH}..{REACH}\}}$ without 0, phases 0. The weights on "
            rf"{len(PROGRAMS[base][0])} planes and the distribution on as many displacements (with their negatives) "
            rf"solve one linear system each; made rational, they are $\ge 0$ of sum 1. Every gap and every plane's "
            rf"sum was enclosed: the best margin lies between {low:.12f} and {high:.12f}.",
            holds=valid and high - low < 1e-11 and abs(low - PROGRAMS[base][2]) < 5e-6,
        )


def _certified(base: str) -> tuple[float, float, bool]:
    """Margin of the head and dual value of the distribution, rounded outwards, and whether both are admissible."""
    spectrum = RopeSpectrum.from_base(base, head_dim=128)
    planes, displacements, _ = PROGRAMS[base]
    head, distribution = (
        [Fraction(float(share)) for share in side] for side in _pair(spectrum.inv_freq, planes, displacements)
    )
    head, distribution = ([share / sum(side) for share in side] for side in (head, distribution))
    with balls.precision(128):
        halves = [angle.ball(160) / 2 for angle in spectrum.angles]
        sines = [[(t * half).sin() for half in halves] for t in range(1, REACH + 1)]
        gaps = [[2 * sine * sine for sine in row] for row in sines]
        margins = [_weighed(head, row) for row in gaps]
        values = [_weighed(distribution, column) for column in zip(*gaps, strict=True)]
        lower = min(balls.rational_ends(margin)[0] for margin in margins)
        upper = max(balls.rational_ends(value)[1] for value in values)
    admissible = min(head) >= 0 and min(distribution) >= 0  # of sum 1 by the division above
    return floor(lower * 10**12) / 1e12, ceil(upper * 10**12) / 1e12, admissible and lower <= upper


def _rational(shares: FloatArray) -> list[Fraction]:
    """The same numbers, exactly, over their sum."""
    exactly = [Fraction(float(share)) for share in shares]
    return [share / sum(exactly) for share in exactly]


def _weighed(shares: Sequence[Fraction], row: Sequence[balls.Ball]) -> balls.Ball:
    """sum of shares times a row, enclosed."""
    return sum((balls.ball(share) * value for share, value in zip(shares, row, strict=True) if share), balls.ball(0))


def _term(angle: sympy.Expr, t: int) -> sympy.Expr:
    """1 - exp(i t theta), in algebraic numbers."""
    return 1 - sympy.cos(t * angle) - sympy.I * sympy.sin(t * angle)


def _primal(angles: list[sympy.Expr], window: list[int], head: list[sympy.Expr]) -> sympy.Expr:
    """m(z), exactly."""
    gaps = [sympy.re(sum(z * _term(angle, t) for z, angle in zip(head, angles, strict=True))) for t in window]
    return sympy.simplify(sympy.Min(*[sympy.simplify(gap) for gap in gaps]))


def _dual(angles: list[sympy.Expr], distribution: dict[int, sympy.Expr]) -> sympy.Expr:
    """max_k |G_k|, exactly."""
    if sum(distribution.values()) != 1:
        raise ArithmeticError("the weights of a distribution must have sum 1")
    sums = [sum(mu * _term(angle, t) for t, mu in distribution.items()) for angle in angles]
    return sympy.simplify(sympy.Max(*[sympy.simplify(sympy.Abs(sympy.simplify(total))) for total in sums]))


def _equal(seen: sympy.Expr, expected: sympy.Expr) -> bool:
    """Whether two algebraic numbers are equal, decided by the minimal polynomial of their difference."""
    x = sympy.Symbol("x")
    return bool(sympy.minimal_polynomial(seen - expected, x) == x)


def check() -> None:
    """Both functions on the exact cases, against the engine, on 64 planes, and at the edges of their scope."""
    _check_cases()
    _check_engine()
    _check_program()
    _check_scope()


def _check_cases() -> None:
    both = np.array([2 * np.pi / 3, np.pi])
    six = np.array([-5, -4, -3, -2, -1, 1, 2, 3, 4, 5])
    weights = np.array([0, 0, 3 / 14, 2 / 7, 0, 0, 2 / 7, 3 / 14, 0, 0])
    fifth, five = np.array([2 * np.pi / 5]), np.array([-4, -3, -2, -1, 1, 2, 3, 4])
    quarter, side = np.array([np.pi / 2]), np.array([1, 2])
    turned = np.exp(1j * np.array([np.pi / 4]))
    for seen, expected in (
        (bounds.dual_bound(both, six, weights), 6 / 7),
        (bounds.primal_margin(both, six, np.array([4 / 7, 3 / 7], np.complex128)), 6 / 7),
        (bounds.dual_bound(fifth, five, np.array([0, 0, 0, 0.5, 0.5, 0, 0, 0])), (5 - 5**0.5) / 4),
        (bounds.primal_margin(fifth, five, np.ones(1, np.complex128)), (5 - 5**0.5) / 4),
        (bounds.dual_bound(quarter, side, np.array([1.0, 0.0])), 2**0.5),
        (bounds.primal_margin(quarter, side, turned), 2**0.5),
        (bounds.dual_bound(quarter, np.array([5, 3]), np.array([0.25, 0.75])), 1.25**0.5),  # 1 + i/2
        (bounds.primal_margin(np.array([1.0, 2.0]), np.array([3]), np.array([0.3, 0.2j])), _by_cosines()),
        (bounds.dual_bound(quarter, side, np.array([[0.25, 0.75], [0.0, 1.0]]))[1], 2.0),
        (bounds.primal_margin(quarter, side, np.array([[1.0], [0.5 + 0j]]))[1], 0.5),
    ):
        require(abs(float(seen) - expected) <= 1e-14, f"a case gives {float(seen)!r}, not {expected!r}")


def _by_cosines() -> float:
    """Re of 0.3 (1 - exp(3i)) + 0.2i (1 - exp(6i))."""
    return float(0.3 * (1 - np.cos(3.0)) + 0.2 * np.sin(6.0))


def _check_engine() -> None:
    spectrum = RopeSpectrum.from_base("10000", head_dim=6)
    window = np.arange(1, 90)
    for coefficients in ([0.2, 0.5, 0.3], [0.2j, 0.3 - 0.4j, -0.3]):
        head = np.array(coefficients, np.complex128)
        profile = LogitProfile(spectrum=spectrum, coefficients=head)
        seen = float(routes.margin_curve(profile, [90], target=0, route="definition").margin[0])
        margin = float(bounds.primal_margin(spectrum.inv_freq, window, head))
        require(abs(seen - margin) <= 1e-13, f"primal_margin gives {margin!r}, the engine {seen!r}, for {coefficients}")
        uniform = np.full(window.size, 1 / window.size)
        require(margin <= float(bounds.dual_bound(spectrum.inv_freq, window, uniform)), "a head beats dual_bound")


def _check_program() -> None:
    """Base 10000, width 128, phases 0, W = {-128..128}: the pair meets, in doubles, at its value."""
    window = np.arange(1, REACH + 1)
    base = "10000"
    planes, displacements, value = PROGRAMS[base]
    angles = RopeSpectrum.from_base(base, head_dim=128).inv_freq
    head, distribution = _pair(angles, planes, displacements)
    lower = float(bounds.primal_margin(angles, window, head.astype(np.complex128)))
    upper = float(bounds.dual_bound(angles, np.append(window, -window), np.append(distribution, distribution) / 2))
    require(-1e-13 <= upper - lower <= 1e-12, f"the pair of base {base} does not close: {lower}, {upper}")
    require(abs(lower - value) <= 5e-6, f"base {base}: the best margin over 1..{REACH} is {lower}, not {value}")


def _pair(angles: FloatArray, planes: tuple[int, ...], displacements: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """The head on these planes with equal gaps at these displacements, and the distribution with equal sums."""
    gaps = 2 * np.sin(np.outer(displacements, angles[list(planes)]) / 2) ** 2
    head, distribution = np.zeros(angles.size), np.zeros(REACH)
    ones = np.ones(len(planes))
    head[list(planes)] = np.linalg.solve(gaps, ones)
    distribution[np.array(displacements) - 1] = np.linalg.solve(gaps.T, ones)
    return head / head.sum(), distribution / distribution.sum()


def _check_scope() -> None:
    one, unit = np.array([1.0]), np.array([1 + 0j])
    ulp, miss = 2.0**-52, 2.0**-40  # a sum may miss 1 by 2^-40
    at, empty = np.array([1]), np.array([], np.int64)
    turn, sides = np.array([np.pi]), np.array([-1, 1])  # the head 1 has margin 2 there, the most there is
    for weight in (1 + miss, 1 - miss):  # divided by their sum
        upper = float(bounds.dual_bound(turn, sides, np.array([0.5, 0.5]) * weight))
        require(abs(upper - 2) <= 1e-15, f"dual_bound of a distribution of sum {weight!r} is {upper!r}, not 2")
    lower = float(bounds.primal_margin(turn, sides, np.array([1 + miss + 0j])))
    require(abs(lower - 2) <= 1e-15, f"primal_margin of a head of sum 1 + 2^-40 is {lower!r}, not 2")
    require(float(bounds.primal_margin(one, at, 0 * unit)) == 0, "primal_margin refuses the head 0")
    for distribution in ([1 + miss + ulp], [1 - miss - ulp], [0.0], [np.nan]):
        require(refuses(bounds.dual_bound, one, at, np.array(distribution)), f"dual_bound takes {distribution}")
    require(refuses(bounds.dual_bound, one, np.array([1, 2]), np.array([1.5, -0.5])), "dual_bound takes -0.5")
    for head in ([1 + miss + ulp + 0j], [1.5 + 0j], [complex(np.nan)]):
        require(refuses(bounds.primal_margin, one, at, np.array(head)), f"primal_margin takes {head}")
    for call, last in ((bounds.dual_bound, np.array([1.0])), (bounds.primal_margin, unit)):
        require(refuses(call, one, np.array([0]), last), f"{call.__name__} takes the displacement 0")
        for angle in (np.nan, np.inf, np.nextafter(1e-150, 0)):
            require(refuses(call, np.array([angle]), at, last), f"{call.__name__} takes the angle {angle!r}")
        require(float(call(np.array([0.5]), np.array([2**53 - 1]), last)) > 0, f"{call.__name__} refuses t < 2^53")
        require(refuses(call, np.array([0.5]), np.array([2**53]), last), f"{call.__name__} takes t = 2^53")
        require(refuses(call, one, np.array([1.5]), last), f"{call.__name__} takes t = 1.5")
        require(float(call(np.array([2.0]), np.array([2**52]), last)) > 0, f"{call.__name__} refuses t theta = 2^53")
        beyond = np.nextafter([2.0], 3)
        require(refuses(call, beyond, np.array([2**52]), last), f"{call.__name__} takes t theta above 2^53")
        require(refuses(call, one[0], at, last), f"{call.__name__} takes an angle for a list of them")
        require(refuses(call, one, at[0], last), f"{call.__name__} takes a displacement for a list of them")
        require(refuses(call, one, at, last[0]), f"{call.__name__} takes a number for a row")
        require(refuses(call, one, at, np.array([0.5, 0.5])), f"{call.__name__} takes a row of two for one")
    none = np.array([])
    require(refuses(bounds.dual_bound, one, empty, none), "dual_bound takes no displacement")
    require(refuses(bounds.primal_margin, one, empty, unit), "primal_margin takes no displacement")
    require(refuses(bounds.dual_bound, none, at, one), "dual_bound takes no angle")
    require(refuses(bounds.primal_margin, none, at, none.astype(np.complex128)), "primal_margin takes no angle")

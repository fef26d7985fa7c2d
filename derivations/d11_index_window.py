"""2 pi^2/n^2 bounds the margin of letter queries; a query with offset s has 2 pi^2/(T+1)^2, T = max(s, n-1-s)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy

from ropegeo.asymptotics import bounds
from ropegeo.claims import (
    Claim,
    Status,
    Step,
    argument,
    ball,
    counterexample,
    exact,
    refuses,
    require,
    symbolic,
    vanishes,
)
from ropegeo.engine import index_margin
from ropegeo.exact import ClosedForm, Enclosure, balls, read_angle
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum

CLAIM = Claim(
    title="The bound 2 pi^2/n^2 of an index head, with the number of displacements that a query sees",
    statement=(
        r"Let a one-plane index head look $s$ positions back at length $n \ge 2$, $0 \le s \le n-1$, and let "
        r"$T = \max(s, n-1-s)$. For every $\theta$ its margin is at most $1 - \cos\frac{2\pi}{T+1} \le "
        r"\frac{2\pi^2}{(T+1)^2}$. Hence it is at most $\frac{2\pi^2}{n^2}$ for letter queries ($s = 0$), "
        r"$\frac{2\pi^2}{(n-m)^2}$ for every $s \le m$, $0 \le m \le n-1$, and $\frac{8\pi^2}{(n+1)^2}$ for every $s$."
    ),
    source="Urrutia et al., arXiv 2605.31558, Theorem 3.2 with Definition 3.1; docs/MATHEMATICS.md, sections 5 and 6",
    scope=r"every real $\theta$, $n \ge 2$, offsets $0 \le s \le n-1$",
    status=Status.REPAIRED,
    ties=(
        "ropegeo.asymptotics.bounds.index_bound_as_printed",
        "ropegeo.asymptotics.bounds.index_bound",
        "ropegeo.asymptotics.bounds.index_bound_any_offset",
        "ropegeo.engine.index_margin.index_curve",
    ),
    as_stated=(
        r"$\operatorname{Index}(n) \le \frac{2\pi^2}{n^2}$, where $\operatorname{Index}(n)$ is the largest discrepancy "
        r"over inputs of length $n$, integer queries among them"
    ),
    cause=(
        r"The pigeonhole argument needs displacements up to $n - 1$. A query with offset $s$ sees them up to "
        r"$T = \max(s, n-1-s)$ only, which near half the window is about $n/2$."
    ),
)
LISTED = 200
"""Lengths for which every reach is listed."""
FAR = ("10000^(-2/128)", 623, 311)
"""Angle, length and offset of the third counterexample: plane 1 of base 10000 and 128 rotated coordinates."""


def steps() -> Iterator[Step]:
    """The counterexamples, then the proof of the repaired statement."""
    yield from _smallest()
    yield from _slow_angles()
    yield _far()
    yield from _proof()


def _smallest() -> Iterator[Step]:
    gap = _gap(ClosedForm.pi() * 2 / 3, 1)
    yield counterexample(
        "length 4",
        r"$n = 4$, input $(a, b, c, 1)$: the query $1$ looks $s = 1$ back and sees $t = -1, 0, 1, 2$. At $\theta = "
        rf"2\pi/3$ all rivals lie $1 - \cos\theta = 1 - \cos 2\theta = 3/2$ below it, so the margin is {_shown(gap)}, "
        rf"against the printed $2\pi^2/16 = \pi^2/8 = {_shown(_printed(4))}$; $3/2 > \pi^2/8$ says "
        r"$\pi^2 < 12$. The query $2$ (input $(a, b, c, 2)$) sees $t = -2, -1, 0, 1$, which is the same.",
        holds=sympy.cos(2 * sympy.pi / 3) == sympy.cos(4 * sympy.pi / 3) == -sympy.Rational(1, 2)
        and bool(gap > _printed(4)),
    )
    yield ball(
        "which angles do it at length 4",
        r"Offsets 1 and 2 at $n = 4$ exceed the printed bound iff, up to sign and whole turns, $2\arcsin\frac{\pi}{4} "
        rf"< \theta < \pi - \arcsin\frac{{\pi}}{{4}}$, that is between {_shown(_ends()[0])} and {_shown(_ends()[1])}. "
        r"Let $0 \le \theta \le \pi$ and $u = \arcsin\frac{\pi}{4}$. $2\sin^2\frac{\theta}{2} > \frac{\pi^2}{8}$ says "
        r"$\theta > 2u$; $2\sin^2\theta > \frac{\pi^2}{8}$ says $u < \theta < \pi - u$. The interval is not empty, as "
        r"$\pi/4 < \sin(\pi/3)$ gives $3u < \pi$, and $2\pi/3$ lies in it. Offsets 0 and 3 see $T = 3$ and never "
        "exceed it, by the repaired statement.",
        holds=_is_interval(),
    )
    yield ball(
        "no shorter length does",
        rf"At $n = 2$ and $n = 3$ the printed bound is {_shown(_printed(2))} and {_shown(_printed(3))}, above 2 since "
        r"$\pi > 3$. No margin exceeds 2, at any angle and offset. So $n = 4$ is the smallest.",
        holds=bool(balls.pi() > 3) and bool(_printed(2) > 2) and bool(_printed(3) > 2),
    )


def _slow_angles() -> Iterator[Step]:
    one = ClosedForm.of(1)
    gaps = [_gap(one, t) for t in range(1, 6)]
    yield counterexample(
        "length 7 with an angle of a rotary spectrum",
        r"$n = 7$, $s = 1$, $\theta = 1$: $t = -1, \ldots, 5$ without 0, $T = 5$. The gaps $1 - \cos t$ at "
        rf"$t = 1, \ldots, 5$ are {', '.join(_shown(gap) for gap in gaps)}; the smallest, {_shown(gaps[0])}, exceeds "
        rf"$2\pi^2/49 = {_shown(_printed(7))}$.",
        holds=all(gaps[0] < gap for gap in gaps[1:]) and bool(gaps[0] > _printed(7)),
    )
    yield ball(
        "angles up to 1 need length 7",
        rf"For $0 \le \theta \le 1$ the margin is at most $1 - \cos\theta \le 1 - \cos 1 = {_shown(gaps[0])}$, below "
        rf"$2\pi^2/36 = {_shown(_printed(6))}$ and so below $2\pi^2/n^2$ for every $n \le 6$.",
        holds=bool(gaps[0] < _printed(6)),
    )


def _far() -> Step:
    text, n, s = FAR
    angle = read_angle(text)
    gaps = [_gap(angle, t) for t in range(1, max(s, n - 1 - s) + 1)]
    at = min(range(len(gaps)), key=lambda k: float(gaps[k]))
    with balls.precision(128):
        ratio = gaps[at] / _printed(n)
    return counterexample(
        "a long one",
        rf"$\theta = 10000^{{-2/128}}$, $n = {n}$, $s = {s}$, $T = {len(gaps)}$: of the enclosed gaps at $t = 1, "
        rf"\ldots, {len(gaps)}$ the smallest is {_shown(gaps[at])}, at $t = {at + 1}$: {_shown(ratio, 5)} times the "
        f"printed {_shown(_printed(n))}.",
        holds=all(gaps[at] < gap for k, gap in enumerate(gaps) if k != at) and bool(ratio > 1),
    )


def _proof() -> Iterator[Step]:
    x = sympy.symbols("x", positive=True)
    rest = x**2 / 2 - (1 - sympy.cos(x))
    yield argument(
        "pigeonhole at reach T",
        r"With $\alpha = \theta/(2\pi)$ the $T+1$ points $0, \alpha, \ldots, T\alpha$ cut the circle of length 1 into "
        r"$T+1$ arcs, so two of them, $1 \le t \le T$ steps apart, are at most $1/(T+1)$ apart: $1 - \cos t\theta \le "
        r"1 - \cos\frac{2\pi}{T+1}$, as $T \ge 1$. The cosine is even and $t$ or $-t$ is visible, so the margin is at "
        r"most that. (Claim `dirichlet_bound`, where it is shown to be attained.)",
    )
    yield symbolic(
        "from the cosine to the square",
        r"$1 - \cos x \le \frac{x^2}{2}$ for $x \ge 0$: the difference $\frac{x^2}{2} - 1 + \cos x$ is 0 at 0, its "
        r"derivative $x - \sin x$ is 0 at 0, and the second derivative $1 - \cos x$ is nowhere negative. At $x = "
        r"\frac{2\pi}{T+1}$ that is $\frac{2\pi^2}{(T+1)^2}$.",
        holds=rest.subs(x, 0) == 0
        and sympy.diff(rest, x).subs(x, 0) == 0
        and vanishes(sympy.diff(rest, x, 2) - 2 * sympy.sin(x / 2) ** 2),
    )
    yield argument(
        "reach against length",
        r"$T \ge n-1-s$, so $T + 1 \ge n - s \ge n - m$ for every $s \le m$, whatever $m \le n-1$; and $2T \ge s + "
        r"(n-1-s)$, so $T + 1 \ge \frac{n+1}{2}$. With $s = 0$, $T + 1 = n$. Put in, these give the three bounds. The "
        r"smallest $T+1$ over $s \le m$ is the larger of $n - m$ and $\lceil\frac{n+1}{2}\rceil$, met at $s = m$ or $s "
        r"= \lfloor\frac{n-1}{2}\rfloor$, so the third bound is the better one from $m = \frac{n-1}{2}$ on.",
    )
    yield exact(
        "reach against length, listed (support)",
        rf"For every $2 \le n \le {LISTED}$ and every $m$ the smallest $T+1$ over $s \le m$ is that, and $n$ at $s = "
        rf"0$.",
        holds=all(_reaches_fit(n) for n in range(2, LISTED + 1)),
    )
    yield symbolic(
        "the constants are the best",
        r"At $s = 0$, $\theta = \frac{2\pi}{n}$, and for odd $n$ at $s = \frac{n-1}{2}$, $\theta = \frac{4\pi}{n+1}$, "
        r"the margin is $1 - \cos\frac{2\pi}{T+1}$ exactly, and $\frac{1 - \cos x}{x^2/2} \to 1$ as $x \to 0$. So "
        r"neither $2$ nor $8$ can be lowered; and $1 - \frac{x^2}{12} \le \frac{1 - \cos x}{x^2/2}$, at $x = "
        r"\frac{4\pi}{n+1}$ more than $1 - \frac{14}{n^2}$, says how near they come.",
        holds=sympy.limit((1 - sympy.cos(x)) / (x**2 / 2), x, 0) == 1 and _fourth_order(x),
    )


def _fourth_order(x: sympy.Symbol) -> bool:
    """Whether 1 - cos x >= x^2/2 - x^4/24: value and three derivatives vanish at 0, the fourth is not negative."""
    rest = 1 - sympy.cos(x) - x**2 / 2 + x**4 / 24
    at_zero = [sympy.diff(rest, x, k).subs(x, 0) if k else rest.subs(x, 0) for k in range(4)]
    factor = bool((4 * balls.pi()) ** 2 / 12 < 14)
    return at_zero == [0, 0, 0, 0] and vanishes(sympy.diff(rest, x, 4) - 2 * sympy.sin(x / 2) ** 2) and factor


def _reaches_fit(n: int) -> bool:
    """Whether the smallest T + 1 over offsets up to m is the larger of n - m and (n+1)/2 rounded up, for every m."""
    plus_one = [max(s, n - 1 - s) + 1 for s in range(n)]
    return plus_one[0] == n and all(min(plus_one[: m + 1]) == max(n - m, (n + 2) // 2) for m in range(n))


def _gap(angle: ClosedForm, t: int) -> balls.Ball:
    """1 - cos(t angle), by the sine."""
    with balls.precision(128):
        sine = (angle.ball(128) * t / 2).sin()
        return 2 * sine * sine


def _printed(n: int) -> balls.Ball:
    with balls.precision(128):
        return 2 * balls.pi() ** 2 / n**2


def _ends() -> tuple[balls.Ball, balls.Ball]:
    """2 arcsin(pi/4) and pi - arcsin(pi/4)."""
    with balls.precision(128):
        u = (balls.pi() / 4).asin()
        return 2 * u, balls.pi() - u


def _is_interval() -> bool:
    """Whether 0 < 2u < 2 pi/3 < pi - u, and the gaps are the printed bound at one end each."""
    low, high = _ends()
    u = sympy.asin(sympy.pi / 4)
    with balls.precision(128):
        middle = 2 * balls.pi() / 3
        apart = bool(low > 0) and bool(low < middle) and bool(middle < high)
    return apart and all(vanishes(2 * sympy.sin(at) ** 2 - 2 * sympy.pi**2 / 16) for at in (u, sympy.pi - u))


def _shown(value: balls.Ball, digits: int = 4) -> str:
    return str(Enclosure.of_ball(value).digits(digits))


def check() -> None:
    """The bounds against ball arithmetic and the engine's margins, near to them where the angle is extremal."""
    for n in (2, 3, 4, 7, 623):
        printed = float(bounds.index_bound_as_printed(np.array(float(n))))
        _close(printed, _printed(n), f"index_bound_as_printed({n})")
        anywhere = float(bounds.index_bound_any_offset(np.array(float(n))))
        _close(anywhere, 8 * balls.pi() ** 2 / (n + 1) ** 2, f"index_bound_any_offset({n})")
        for m in {0, n // 2, n - 1}:
            bound = float(bounds.index_bound(np.array(float(n)), np.array(float(m))))
            _close(bound, 2 * balls.pi() ** 2 / (n - m) ** 2, f"index_bound({n}, {m})")
            for angle in ("1", "2*pi/3", FAR[0]):
                margin = _margin(angle, n, m)
                require(
                    margin <= bound and margin <= anywhere, f"angle {angle}, offset {m}, length {n} exceeds a bound"
                )
    _near_the_engine()
    for angle, n, s, t in (("2*pi/3", 4, 1, 1), ("1", 7, 1, 1), (*FAR, 29)):
        margin = _margin(angle, n, s)
        _close(margin, _gap(read_angle(angle), t), f"the margin of angle {angle}, length {n}, offset {s}")
        above = float(bounds.index_bound_as_printed(np.array(float(n))))
        require(margin > above, f"angle {angle}, length {n}, offset {s} does not exceed the printed bound")
    for bound_of in (bounds.index_bound_as_printed, bounds.index_bound_any_offset):
        for length in (1.0, 2.5, 100.9, np.nan, np.inf, np.nextafter(1e150, np.inf)):
            require(refuses(bound_of, np.array(length)), f"{bound_of.__name__} takes the length {length!r}")
    end = np.array(1e150)
    _close(float(bounds.index_bound_as_printed(end)), _printed(int(1e150)), "index_bound_as_printed(1e150)")
    _close(float(bounds.index_bound_any_offset(end)), 4 * _printed(int(1e150)), "index_bound_any_offset(1e150)")
    last = 2**53 - 1
    nearly = float(bounds.index_bound(np.array(last), np.array(last - 1)))
    _close(nearly, 2 * balls.pi() ** 2, f"index_bound({last}, {last - 1})")
    for length, largest in (
        (1.0, 0.0),
        (5.0, -1.0),
        (5.0, 5.0),
        (5.5, 1.0),
        (5.0, 0.5),
        (5.0, np.nan),
        (np.nan, 0.0),
        (np.inf, np.inf),
        (2.0**53, 1.0),
    ):
        outside = refuses(bounds.index_bound, np.array(length), np.array(largest))
        require(outside, f"index_bound takes length {length}, offset {largest}")


def _near_the_engine() -> None:
    """At a long length the extremal angle's margin is within 1e-12 of each bound."""
    n = 20_000_001
    half = (n - 1) // 2
    for offset, count, bound in (
        (0, n, bounds.index_bound_as_printed(np.array(float(n)))),
        (3, n - 3, bounds.index_bound(np.array(float(n)), np.array(3.0))),
        (half, half + 1, bounds.index_bound_any_offset(np.array(float(n)))),
    ):
        margin = _margin(f"1/{count} turn", n, offset)
        require(0 <= 1 - margin / float(bound) <= 1e-12, f"offset {offset}: margin {margin!r} against {float(bound)!r}")


def _margin(angle: str, length: int, offset: int) -> float:
    profile = LogitProfile(
        spectrum=RopeSpectrum.from_angle(angle), coefficients=np.ones(1, np.complex128), origin=offset
    )
    return float(index_margin.index_curve(profile, [length]).points[0].margin)


def _close(value: float, truth: balls.Ball, what: str) -> None:
    require(abs(value / float(truth) - 1) <= 1e-14, f"{what} is {value!r}, the enclosure {truth}")

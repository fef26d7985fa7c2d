"""The margin of one plane at reach T is 2 sin^2(pi ||q_k alpha||), q_k the last convergent denominator up to T."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import chain, cycle

import sympy
from sympy.ntheory.continued_fraction import continued_fraction_iterator, continued_fraction_periodic

from ropegeo.claims import Claim, Status, Step, argument, exact, require, symbolic, vanishes
from ropegeo.engine import diophantine
from ropegeo.exact import ClosedForm, balls, nearest_integer, read_angle

CLAIM = Claim(
    title="Best approximation: where the one-plane margin stands",
    statement=(
        r"Let $\alpha = \frac{\theta}{2\pi}$, let $\frac{p_k}{q_k}$ be the convergents of its continued fraction, "
        r"$\|x\|$ the distance to the nearest integer, and $k$ the last index with $q_k \le T$. Then "
        r"$\min_{1 \le t \le T} (1 - \cos t\theta) = 2\sin^2(\pi \|q_k \alpha\|)$ with "
        r"$\|q_k\alpha\| = |q_k\alpha - p_k|$. If $\alpha = \frac{p}{q}$ in lowest terms, this is 0 for $T \ge q$ "
        r"and positive before."
    ),
    source=(
        "docs/MATHEMATICS.md, section 5; Lagrange 1770 (best approximations of the second kind: Khinchin, Continued "
        "Fractions, theorems 16 and 17); proved here"
    ),
    scope=r"every real $\theta$, every integer $T \ge 1$",
    status=Status.PROVED,
    ties=("ropegeo.engine.diophantine.one_plane_staircase",),
)
RATIONALS, REACH = 40, 100
"""Denominators of the rational turns, and the reach for irrational ones, that are enumerated."""

QUADRATIC = ((-1, 2, 5), (-1, 1, 2), (-1, 1, 3), (0, 3, 7), (-3, 1, 13), (-5, 2, 29), (1, 3, 2))
"""(p, q, d): the turns (p + sqrt d)/q that are enumerated."""


def steps() -> Iterator[Step]:
    """The proof."""
    x = sympy.symbols("x", real=True)
    yield symbolic(
        "sine form",
        r"$1 - \cos 2\pi x = 2\sin^2 \pi x$ depends on $\|x\|$ only and grows with it on $[0, 1/2]$ (its "
        r"derivative is $2\pi\sin 2\pi x$). So the minimum stands where $\|t\alpha\|$, $1 \le t \le T$, is "
        r"smallest.",
        holds=vanishes(1 - sympy.cos(2 * sympy.pi * x) - 2 * sympy.sin(sympy.pi * x) ** 2)
        and vanishes(sympy.diff(2 * sympy.sin(sympy.pi * x) ** 2, x) - 2 * sympy.pi * sympy.sin(2 * sympy.pi * x)),
    )
    alpha, a, z, d = sympy.symbols("alpha a z D", real=True)
    p0, q0, p1, q1 = sympy.symbols("p0 q0 p1 q1", integer=True)  # one index k - 1, the next k
    p2, q2 = a * p1 + p0, a * q1 + q0
    yield symbolic(
        "Euclid's algorithm",
        r"Put $p_{-1} = 1$, $q_{-1} = 0$, $p_0 = a_0 = \lfloor\alpha\rfloor$, $q_0 = 1$ and "
        r"$p_{k+1} = a_{k+1} p_k + p_{k-1}$, $q_{k+1} = a_{k+1} q_k + q_{k-1}$ with integers $a_{k+1} \ge 1$ "
        r"(chosen below): the $q_k$ never fall, and grow without end if there is always a next one. Then "
        r"$D_k = q_k\alpha - p_k$ has the same recursion, $D_{-1} = -1$ and $D_0 = \alpha - a_0 \in [0, 1)$.",
        holds=vanishes((q2 * alpha - p2) - (a * (q1 * alpha - p1) + (q0 * alpha - p0))),
    )
    yield symbolic(
        "signs alternate, sizes fall",
        r"Suppose $D_{k-1} = -z D_k$ with $z > 1$, $D_k \ne 0$, and take $a_{k+1} = \lfloor z \rfloor$. Then "
        r"$D_{k+1} = -(z - a_{k+1}) D_k$: of the opposite sign and smaller, or 0. If it is not 0, "
        r"$D_k = -z' D_{k+1}$ with $z' = 1/(z - a_{k+1}) > 1$, and so on. It begins with $z = 1/(\alpha - a_0)$, "
        r"unless $D_0 = 0$. So the $D_k$ alternate in sign, fall strictly in size, and become 0 only for rational "
        r"$\alpha$, at the last index; then they do: for $\alpha = p/q$ all are multiples of $1/q$.",
        holds=vanishes(a * d - z * d + (z - a) * d) and vanishes(d + (1 / (z - a)) * (-(z - a) * d)),
    )
    yield symbolic(
        "determinant",
        r"$p_{k+1} q_k - p_k q_{k+1} = -(p_k q_{k-1} - p_{k-1} q_k)$, and $p_0 q_{-1} - p_{-1} q_0 = -1$. So it is "
        r"$(-1)^k$, $p_k$ and $q_k$ have no common factor, and for $\alpha = p/q$ the last convergent has $q_k = q$.",
        holds=vanishes((p2 * q1 - p1 * q2) + (p1 * q0 - p0 * q1)),
    )
    t, p, u, v = sympy.symbols("t p u v", integer=True)
    solved = sympy.solve((u * q0 + v * q1 - t, u * p0 + v * p1 - p), (u, v), dict=True)[0]
    yield symbolic(
        "coordinates in two neighbouring convergents",
        r"The system $t = u q_k + v q_{k+1}$, $p = u p_k + v p_{k+1}$ has the determinant "
        r"$e = q_k p_{k+1} - q_{k+1} p_k = \pm 1$ and the solution $u = (t p_{k+1} - p \, q_{k+1})/e$, "
        r"$v = (p \, q_k - t p_k)/e$: integers for integer $t$, $p$. Then $t\alpha - p = u D_k + v D_{k+1}$.",
        holds=vanishes(solved[u] * (q0 * p1 - q1 * p0) - (t * p1 - p * q1))
        and vanishes(solved[v] * (q0 * p1 - q1 * p0) - (p * q0 - t * p0))
        and vanishes((u * q0 + v * q1) * alpha - (u * p0 + v * p1) - u * (q0 * alpha - p0) - v * (q1 * alpha - p1)),
    )
    yield argument(
        "no nearer return",
        r"Let $1 \le t < q_{k+1}$. If $u = 0$, then $t = v q_{k+1}$ would be at least $q_{k+1}$ or at most 0; so "
        r"$|u| \ge 1$. If $v > 0$, then $u q_k = t - v q_{k+1} < 0$; if $v < 0$, then $u q_k > 0$. So $u$ and $v$ "
        r"have opposite signs or $v = 0$; $D_k$ and $D_{k+1}$ have opposite signs or $D_{k+1} = 0$; hence $u D_k$ "
        r"and $v D_{k+1}$ do not cancel, and $|t\alpha - p| = |u||D_k| + |v||D_{k+1}| \ge |D_k|$ for every integer "
        r"$p$: $\|t\alpha\| \ge |D_k|$.",
    )
    yield argument(
        "the minimum",
        r"For the last index $k$ with $q_k \le T$, all $t \le T$ are below $q_{k+1}$, if there is a next one, and "
        r"$t = q_k$ is one of them: $|D_k| \ge \|q_k\alpha\| \ge |D_k|$. So $\|q_k\alpha\| = |D_k|$ is the "
        r"minimum. (The last index matters where $q_0 = q_1 = 1$, which is where the fractional part of $\alpha$ "
        r"is above 1/2: $\|\alpha\|$ is then $|D_1|$, not $D_0$.) If there is no next one, $\alpha = p/q$ with "
        r"$q_k = q$ and $D_k = 0$; before that $D_k \ne 0$.",
    )
    turns = [Fraction(m, q) for q in range(1, RATIONALS + 1) for m in range(1, q + 1) if math.gcd(m, q) == 1]
    yield exact(
        "rational turns, enumerated",
        rf"For all {len(turns)} rational turns with denominators up to {RATIONALS} and every "
        rf"$T \le {RATIONALS + 2}$ the smallest $\|t\alpha\|$ is $\|q_k\alpha\|$, and 0 exactly from $T = q$ on: "
        r"in fractions.",
        holds=all(_rational_case(turn) for turn in turns),
    )
    values = [(ClosedForm.of(d0).sqrt() + p) / q for p, q, d0 in QUADRATIC]
    above = sum(2 * value > 1 for value in values)
    yield exact(
        "quadratic irrational turns, enumerated",
        rf"For $\alpha = {', '.join(sympy.latex((sympy.sqrt(d0) + p) / q) for p, q, d0 in QUADRATIC)}$ ({above} of "
        rf"them above 1/2) the $t \le {REACH}$ at which $\|t\alpha\|$ falls below all before are the $q_k$, and no "
        r"others: every comparison is exact.",
        holds=all(_quadratic_case(case, value) for case, value in zip(QUADRATIC, values, strict=True)),
    )


def _denominators(quotients: Iterable[int], limit: int) -> list[int]:
    """Convergent denominators q_0, q_1, ... up to a limit."""
    found: list[int] = []
    before, last = 1, 0
    for quotient in quotients:
        before, last = last, int(quotient) * last + before
        if last > limit:
            break
        found.append(last)
    return found


def _nearness(turn: Fraction) -> Fraction:
    return min(turn % 1, 1 - turn % 1)


def _rational_case(turn: Fraction) -> bool:
    quotients = list(continued_fraction_iterator(sympy.Rational(turn.numerator, turn.denominator)))
    smallest = Fraction(1)
    for reach in range(1, RATIONALS + 3):
        smallest = min(smallest, _nearness(reach * turn))
        if smallest != _nearness(_denominators(quotients, reach)[-1] * turn):
            return False
        if (smallest == 0) != (reach >= turn.denominator):
            return False
    return True


def _quadratic_case(case: tuple[int, int, int], value: ClosedForm) -> bool:
    terms = continued_fraction_periodic(*case)
    denominators = _denominators(chain(terms[:-1], cycle(terms[-1])), REACH)
    best, records = ClosedForm.of(1), []
    for t in range(1, REACH + 1):
        rest = t * value - nearest_integer(t * value)
        nearness = rest if rest.sign() >= 0 else -rest
        if nearness < best:
            best = nearness
            records.append(t)
    return records == sorted(set(denominators))


CHECKED_VALUES = (
    ("1", 1000, 710, "1.8173640789234051e-9"),
    ("10000^(-2/128)", 16, 7, "0.024416724455925216"),
    ("10000^(-2/128)", 10**6, 945535, "2.323302208927921e-12"),
    ("10000^(-2/128)", 10**30, 405221421912788261653497754436, "1.1184245912118102e-59"),
    ("500000^(-2/128)", 1000, 887, "3.3940138169326599e-7"),
    ("pi*(sqrt(5)-1)", 1000, 987, "4.0525180671706781e-6"),
)
"""Angle, reach, where the margin stands, its digits: 120-digit arithmetic elsewhere."""


def check() -> None:
    """The engine's staircases against every displacement in balls, against fractions, and at typed-in values."""
    for text in ("1", "5", "10000^(-2/128)", "pi*(sqrt(5)-1)", "100", "1/1000"):
        angle = read_angle(text)
        stairs = diophantine.one_plane_staircase(angle, 300)
        require(stairs.steps == _records(angle, 300), f"angle {text}: steps {stairs.steps} are not the records")
        for index, at in enumerate(stairs.steps):
            with balls.precision(256):
                sine = (angle.ball(256) * at / 2).sin()
                error = abs(balls.ball(stairs.margin(index).low) / (2 * sine * sine) - 1)
            require(bool(error < 1e-16), f"angle {text}: the margin from step {at} on is not 1 - cos({at} angle)")
    for turn in (Fraction(1, 5), Fraction(3, 8), Fraction(5, 7), Fraction(1), Fraction(13, 34), Fraction(17, 5)):
        stairs = diophantine.one_plane_staircase(read_angle(f"{turn} turn"), 40)
        for reach in (1, 2, 3, 4, 7, 12, 33, 34, 40):
            nearness = min(_nearness(t * turn) for t in range(1, reach + 1))
            margin = stairs.margin(stairs.index_at(reach))
            require(
                margin.sign == 0
                if nearness == 0
                else math.isclose(float(margin), 2 * math.sin(math.pi * float(nearness)) ** 2, rel_tol=1e-14),
                f"{turn} turn, reach {reach}: margin {margin!r}, nearest return {nearness} of a turn",
            )
    for text, reach, at, digits in CHECKED_VALUES:
        stairs = diophantine.one_plane_staircase(read_angle(text), reach)
        index = stairs.index_at(reach)
        seen = (stairs.steps[index], stairs.margin(index, 17).digits(17))
        require(seen == (at, digits), f"angle {text}, reach {reach}: {seen}, not {(at, digits)}")
        low, high = balls.rational_ends((read_angle(text) / (2 * ClosedForm.pi())).ball(400))
        near = (low + high) / 2  # the same quotients as the angle's, far beyond the reach
        quotients = continued_fraction_iterator(sympy.Rational(near.numerator, near.denominator))
        require(_denominators(quotients, reach)[-1] == at, f"angle {text}, reach {reach}: last denominator is not {at}")


def _records(angle: ClosedForm, reach: int) -> tuple[int, ...]:
    """Displacements whose gap is below all before, each comparison certain."""
    found: list[int] = []
    with balls.precision(256):
        half = angle.ball(256) / 2
        best = None
        for t in range(1, reach + 1):
            size = abs((half * t).sin())
            if best is None or size < best:
                best = size
                found.append(t)
            else:
                require(bool(size > best), f"256 bits do not tell displacements {found[-1]} and {t} apart")
    return tuple(found)

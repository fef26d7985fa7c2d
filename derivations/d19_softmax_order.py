"""Softmax attention on one plane decodes lengths of order sqrt(beta): a bound for every angle, and a converse."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import factorial

import numpy as np
import sympy

from ropegeo.asymptotics import bounds
from ropegeo.claims import Claim, Status, Step, argument, ball, exact, refuses, require, symbolic, vanishes
from ropegeo.engine import diophantine, softmax
from ropegeo.exact import balls, read_angle
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum

CLAIM = Claim(
    title="Softmax attention on one plane decodes lengths of order sqrt(beta), not more",
    statement=(
        r"Let $f(x) = e^{-\beta(1 - \cos 2\pi x)}$, $\alpha = \frac{\theta}{2\pi}$, $S = \sum_{t \ne 0} f(t\alpha)$ "
        r"over the window $-s \le t \le n-1-s$, $T = \max(s, n-1-s)$, and $f_0 = e^{-\beta} I_0(\beta)$, the mean of "
        r"$f$ over the circle. For every angle $S \ge \frac{(T+1) f_0 - 1}{2}$, so $S < c$ needs $T + 1 < "
        r"\frac{2c+1}{f_0} \le \frac{(2c+1)\sqrt{2\pi\beta}}{\operatorname{erf}(\pi\sqrt{\beta/2})}$. Conversely, "
        r"with $\delta = \min_{1 \le t \le n-1} \|t\alpha\| > 0$, every $\beta \ge \frac{\pi}{8 c^2 \delta^2}$ has $S "
        r"< c$, for every offset. If $t\|t\alpha\| \ge \kappa > 0$ for all $t \ge 1$, every length with $n - 1 \le c "
        r"\kappa \sqrt{8\beta/\pi}$ is decoded: for such angles the largest length is of order $\sqrt\beta$ exactly."
    ),
    source="docs/MATHEMATICS.md, section 8; both bounds are ours (kernel: Fejer 1904)",
    scope=r"every real $\theta$, $\beta > 0$, $c > 0$, $0 \le s \le n - 1$, $n \ge 2$; the converse needs $\delta > 0$",
    status=Status.PROVED,
    ties=(
        "ropegeo.asymptotics.bounds.circle_mean",
        "ropegeo.asymptotics.bounds.softmax_length_bound",
        "ropegeo.asymptotics.bounds.softmax_sufficient_scale",
        "ropegeo.engine.softmax.index_softmax_scale",
    ),
)
LONGEST = {
    1: {10: 14, 100: 29, 1000: 58, 10_000: 312, 100_000: 1589, 1_000_000: 3178},
    3: {10: 29, 100: 87, 1000: 312, 10_000: 936, 100_000: 3178, 1_000_000: 6356},
}
"""Largest lengths of theta = 10000^(-2/128), s = 0: threshold and beta to n (enclosed in `softmax_threshold`)."""
ORDER = 24
"""Power of beta up to which the Fourier coefficients are compared."""
POINTS, GOLDEN = 14, 2000
"""Denominators of turns whose points are listed; multiples of the golden turn that are enclosed."""


def steps() -> Iterator[Step]:
    """The proof."""
    yield from _necessary()
    yield from _sufficient()
    yield from _numbers()


def _necessary() -> Iterator[Step]:
    yield argument(
        "Fourier coefficients",
        r"With $z = e^{2\pi i x}$, $e^{\beta\cos 2\pi x} = e^{\beta z/2} e^{\beta/(2z)}$; multiplying both (absolutely "
        r"convergent) series, the coefficient of $z^m$ is $I_m(\beta) = \sum_j \frac{(\beta/2)^{2j+|m|}}{j! (j+|m|)!} "
        r"> 0$. So $f(x) = \sum_m \hat f(m) z^m$ with $\hat f(m) = e^{-\beta} I_m(\beta) > 0$, absolutely convergent, "
        r"and the mean of $f$ is $\hat f(0) = f_0$.",
    )
    yield exact(
        "Fourier coefficients, term by term (support)",
        rf"The coefficients of $z^m \beta^k$ in that product and in $I_m(\beta) z^m$ agree for $|m| \le 6$, $k \le "
        rf"{ORDER}$.",
        holds=all(_product(m, power) == _bessel(abs(m), power) for m in range(-6, 7) for power in range(ORDER + 1)),
    )
    z, power = sympy.symbols("z w")  # w = z^N
    row, kernel = (power - 1) / (z - 1), (power * z - 1 / power) / (z - 1)
    inverse = {z: 1 / z, power: 1 / power}
    longer = row.subs(power, power * z)
    yield symbolic(
        "a longer row",
        r"Let $P_N(z) = \sum_{t=0}^{N-1} z^t$. For $z \ne 1$ it is $\frac{z^N - 1}{z - 1}$, $\sum_{|t| \le N} z^t = "
        r"\frac{z^{N+1} - z^{-N}}{z - 1}$, and $P_{N+1}(z) P_{N+1}(\frac1z) - P_N(z) P_N(\frac1z) = \sum_{|t| \le N} "
        r"z^t$, for every $N$ (with $w$ for $z^N$).",
        holds=vanishes((longer - row) - power)
        and vanishes((kernel - kernel.subs(power, power / z)) - power - 1 / power)
        and vanishes(
            longer * longer.subs(inverse, simultaneous=True) - row * row.subs(inverse, simultaneous=True) - kernel
        ),
    )
    yield argument(
        "Fejer's kernel",
        r"$A_N = \sum_{|t| < N} (N - |t|) z^t$ has $A_{N+1} - A_N = \sum_{|t| \le N} z^t$ and $A_1 = 1 = P_1(z) "
        r"P_1(\frac1z)$. By induction and the step before $A_N = P_N(z) P_N(\frac1z)$, at $z = 1$ by continuity; on "
        r"the circle that is $|P_N(z)|^2$. So $F_N(x) = \frac{1}{N} A_N = \sum_{|t| < N} (1 - \frac{|t|}{N}) z^t \ge "
        r"0$, and $F_N(0) = \frac{N^2}{N} = N$.",
    )
    yield argument(
        "the sum from below",
        r"Take $N = T + 1$. $\sum_{|t| < N} (1 - \frac{|t|}{N}) f(t\alpha) = \sum_m \hat f(m) F_N(m\alpha) \ge \hat "
        r"f(0) F_N(0) = N f_0$, as no term on the right is negative. $f$ is even and $f(0) = 1$, so the left side is "
        r"$1 + 2\sum_{t=1}^{T} (1 - \frac tN) f(t\alpha) \le 1 + 2\sum_{t=1}^{T} f(t\alpha)$. The window holds $t$ or "
        r"$-t$ for every $1 \le t \le T$, so $S \ge \sum_{t=1}^{T} f(t\alpha) \ge \frac{N f_0 - 1}{2}$.",
    )
    beta, x, total, c, mean = sympy.symbols("beta x N c f", positive=True)
    yield symbolic(
        "what decoding needs",
        r"$S < c$ gives $\frac{N f_0 - 1}{2} < c$, that is $N < \frac{2c+1}{f_0}$.",
        holds=vanishes((total * mean - 1) / 2 - c - mean / 2 * (total - (2 * c + 1) / mean)),
    )
    gaussian = sympy.integrate(sympy.exp(-beta * x**2 / 2), (x, 0, sympy.pi)) / sympy.pi
    form = sympy.erf(sympy.pi * sympy.sqrt(beta / 2)) / sympy.sqrt(2 * sympy.pi * beta)
    cubic = x**2 / 2 - (1 - sympy.cos(x))
    yield symbolic(
        "the mean from below",
        r"$\frac{x^2}{2} - (1 - \cos x)$ is 0 at 0 with derivative $x - \sin x$, which is 0 at 0 with derivative $1 - "
        r"\cos x \ge 0$. So $1 - \cos x \le \frac{x^2}{2}$ and $f_0 = \frac1\pi\int_0^\pi e^{-\beta(1-\cos x)} dx \ge "
        r"\frac1\pi\int_0^\pi e^{-\beta x^2/2} dx = \frac{\operatorname{erf}(\pi\sqrt{\beta/2})}{\sqrt{2\pi\beta}}$.",
        holds=cubic.subs(x, 0) == 0
        and sympy.diff(cubic, x).subs(x, 0) == 0
        and vanishes(sympy.diff(cubic, x, 2) - (1 - sympy.cos(x)))
        and vanishes(gaussian - form),
    )


def _product(m: int, power: int) -> Fraction:
    """The coefficient of z^m beta^power in the product of exp(beta z/2) and exp(beta/(2 z)), summed over all pairs."""
    return sum(
        (
            Fraction(1, factorial(up) * factorial(power - up) * 2**power)
            for up in range(power + 1)
            if up - (power - up) == m
        ),
        Fraction(0),
    )


def _bessel(m: int, power: int) -> Fraction:
    """The coefficient of beta^power in I_m(beta)."""
    j, odd = divmod(power - m, 2)
    return Fraction(0) if odd or j < 0 else Fraction(1, factorial(j) * factorial(j + m) * 2**power)


def _sufficient() -> Iterator[Step]:
    x, u, beta, delta, c = sympy.symbols("x u beta delta c", positive=True)
    parabola = sympy.sin(sympy.pi * x) - 2 * x
    yield symbolic(
        "the terms from above",
        r"$\sin \pi x \ge 2x$ on $[0, \frac12]$: the difference is 0 at both ends and concave (second derivative "
        r"$-\pi^2\sin\pi x$). So $1 - \cos 2\pi x = 2\sin^2\pi x \ge 8\|x\|^2$ and $f(x) \le e^{-8\beta\|x\|^2}$.",
        holds=parabola.subs(x, 0) == 0
        and parabola.subs(x, sympy.Rational(1, 2)) == 0
        and vanishes(sympy.diff(parabola, x, 2) + sympy.pi**2 * sympy.sin(sympy.pi * x))
        and vanishes(1 - sympy.cos(2 * sympy.pi * x) - 2 * sympy.sin(sympy.pi * x) ** 2),
    )
    yield argument(
        "the points are apart",
        r"Two of the $n$ points $t\alpha$, $-s \le t \le n-1-s$, differ by $t'\alpha$ with $1 \le t' \le n-1$, so "
        r"they are at least $\delta$ apart on the circle. 0 is one of them: on either half of the circle the $j$-th "
        r"nearest to 0 is at distance at least $j\delta$ from it.",
    )
    yield exact(
        "the points, listed (support)",
        rf"For every turn $p/q$, $q \le {POINTS}$, every length $n \le q$ and every offset, in rational arithmetic.",
        holds=all(
            _apart(Fraction(p, q), n, s)
            for q in range(2, POINTS + 1)
            for p in range(1, q)
            if Fraction(p, q).denominator == q
            for n in range(2, q + 1)
            for s in range(n)
        ),
    )
    half_line = sympy.integrate(sympy.exp(-8 * beta * delta**2 * u**2), (u, 0, sympy.oo))
    yield symbolic(
        "the sum from above",
        r"Hence $S \le 2\sum_{j \ge 1} e^{-8\beta\delta^2 j^2} < 2\int_0^\infty e^{-8\beta\delta^2 u^2} du = "
        r"\frac1\delta\sqrt{\frac{\pi}{8\beta}}$, the integrand falling, and this is at most $c$ iff "
        r"$\beta \ge \frac{\pi}{8c^2\delta^2}$, with equality there. (With the smaller reach $T$ in place of $n - 1$, "
        r"$\delta$ is larger, and both sides together count twice: $c/2$ in place of $c$.)",
        holds=vanishes(2 * half_line - sympy.sqrt(sympy.pi / (8 * beta)) / delta)
        and vanishes((2 * half_line).subs(beta, sympy.pi / (8 * c**2 * delta**2)) - c),
    )
    kappa = sympy.symbols("kappa", positive=True)
    length = c * kappa * sympy.sqrt(8 * beta / sympy.pi)
    yield symbolic(
        "badly approximable angles",
        r"If $t\|t\alpha\| \ge \kappa$ for all $t$, then $\delta \ge \frac{\kappa}{n-1}$, and "
        r"$\frac{\pi(n-1)^2}{8c^2\kappa^2} \le \beta$ iff $n - 1 \le c\kappa\sqrt{8\beta/\pi}$. Both bounds together: "
        r"the largest length grows like $\sqrt\beta$, up to a factor, for every fixed offset.",
        holds=vanishes(sympy.pi * length**2 / (8 * c**2 * kappa**2) - beta),
    )
    a, p, t = sympy.symbols("a p t")
    root = (sympy.sqrt(5) - 1) / 2
    share = a / (a * sympy.sqrt(5) + sympy.Rational(1, 2))
    other = (-sympy.sqrt(5) - 1) / 2
    yield symbolic(
        "one such angle: the golden ratio's",
        r"$\alpha = \frac{\sqrt5-1}{2}$, $\alpha' = \frac{-\sqrt5-1}{2}$: $(t\alpha - p)(t\alpha' - p) = p^2 + pt - "
        r"t^2$, an integer, and not 0 for $t \ge 1$ as $\sqrt5$ is irrational. With $p$ nearest to $t\alpha$, "
        r"$|t\alpha' - p| \le t\sqrt5 + \frac12$, so $t\|t\alpha\| \ge \frac{t}{t\sqrt5 + 1/2}$, which grows with $t$ "
        r"and at $t = 1$ is $\kappa = \frac{1}{\sqrt5 + 1/2}$. (The angle $\pi(\sqrt5 - 1)$.)",
        holds=vanishes((t * root - p) * (t * other - p) - (p**2 + p * t - t**2))
        and vanishes(sympy.diff(share, a) * (2 * a * sympy.sqrt(5) + 1) ** 2 - 2)
        and sympy.sqrt(5).is_rational is False,
    )


def _apart(turn: Fraction, n: int, s: int) -> bool:
    """Whether on both sides of 0 the j-th nearest point of the window is at least j delta away."""
    delta = min(_distance(turn * t) for t in range(1, n))
    points = [turn * t % 1 for t in range(-s, n - s) if t]
    sides = sorted(x for x in points if 2 * x <= 1), sorted(1 - x for x in points if 2 * x > 1)
    return all(x >= j * delta for side in sides for j, x in enumerate(side, start=1))


def _distance(x: Fraction) -> Fraction:
    """To the nearest integer."""
    return min(x % 1, 1 - x % 1)


def _numbers() -> Iterator[Step]:
    with balls.precision(96):
        kappa = 1 / (balls.ball(5).sqrt() + balls.ball(Fraction(1, 2)))
        turn = (balls.ball(5).sqrt() - 1) / 2
        nearest = [t * abs(t * turn - (t * turn + balls.ball(Fraction(1, 2))).floor()) for t in range(1, GOLDEN + 1)]
        smallest = min(float(value) for value in nearest)
        within = all(value > kappa for value in nearest)
        shares = {
            (c, beta): n * _mean(beta) / (2 * c + 1) for c, lengths in LONGEST.items() for beta, n in lengths.items()
        }
        units = [float(n / (2 * balls.pi() * beta).sqrt()) for beta, n in LONGEST[1].items()]
    yield ball(
        "the golden ratio, enclosed (support)",
        rf"$t\|t\alpha\| > \kappa = {float(kappa):.6f}$ for every $t \le {GOLDEN}$ (smallest seen: {smallest:.6f}).",
        holds=within,
    )
    lines = "; ".join(
        rf"$c = {c}$: " + ", ".join(f"{float(shares[c, beta]):.3f}" for beta in lengths)
        for c, lengths in LONGEST.items()
    )
    yield ball(
        "how near the bound is met",
        rf"For $\theta = 10000^{{-2/128}}$, $s = 0$ and $\beta = 10, \ldots, 10^6$ the largest decoded lengths "
        rf"(enclosed in the derivation `softmax_threshold`) are these parts of $(2c+1)/f_0$: {lines}. In units of "
        rf"$\sqrt{{2\pi\beta}}$ they lie between {min(units):.3f} and {max(units):.3f} for $c = 1$.",
        holds=all(share < 1 for share in shares.values()),
    )


def _mean(beta: Fraction | int) -> balls.Ball:
    """exp(-beta) I_0(beta), enclosed."""
    scale = balls.ball(beta)
    return (-scale).exp() * scale.bessel_i(0)


def check() -> None:
    """The three functions against balls, and the engine's least scales between the two bounds."""
    _check_values()
    for text in ("10000^(-2/128)", "pi*(sqrt(5)-1)"):
        spectrum = RopeSpectrum.from_angle(text)
        for query, offset, n, threshold in (
            ("integer", 0, 14, Fraction(1)),
            ("integer", 9, 40, Fraction(1)),
            ("letter", 0, 312, Fraction(3)),
            ("fixed", 3, 25, Fraction(1, 3)),
        ):
            profile = LogitProfile(spectrum=spectrum, coefficients=np.ones(1, np.complex128), origin=offset)
            least = np.array(softmax.index_softmax_scale(profile, n, query=query))
            c = np.array(float(threshold))
            reach = max(offset, n - 1 - offset)
            require(
                reach + 1 <= float(bounds.softmax_length_bound(least, c)) * (1 + 1e-9),
                f"softmax_length_bound: {text}, offset {offset}, length {n} decodes beyond it",
            )
            enough = bounds.softmax_sufficient_scale(np.array(_nearness(text, n - 1)), c)
            require(
                float(least) <= float(enough),
                f"softmax_sufficient_scale: {text}, offset {offset}, length {n} needs {float(least)}, not "
                f"{float(enough)}",
            )
    spectrum = RopeSpectrum.from_angle("10000^(-2/128)")
    profile = LogitProfile(spectrum=spectrum, coefficients=np.ones(1, np.complex128))
    for query, lengths in (("integer", LONGEST[1]), ("letter", LONGEST[3])):
        for beta, n in list(lengths.items())[:3]:
            last, beyond = (softmax.index_softmax_scale(profile, length, query=query) for length in (n, n + 1))
            require(
                last < beta < beyond, f"index_softmax_scale: {n} is not the last length that {beta} decodes ({query})"
            )


def _nearness(text: str, reach: int) -> float:
    """min ||t alpha|| over 1 <= t <= reach, from the step of the staircase."""
    stairs = diophantine.one_plane_staircase(read_angle(text), reach)
    step = stairs.index_at(reach)
    turn = (read_angle(text) / read_angle("2*pi")).ball(128)
    with balls.precision(128):
        return float(abs(stairs.steps[step] * (turn - turn.floor()) - stairs.numerators[step]))


def _check_values() -> None:
    with balls.precision(128):
        for beta in (Fraction(0), Fraction(1, 2), Fraction(10), Fraction(1000), Fraction(10**6)):
            mean = _mean(beta)
            given = np.array(float(beta))
            require(_near(bounds.circle_mean(given), mean), f"circle_mean({float(beta)}) is not exp(-beta) I_0(beta)")
            for c in (Fraction(1), Fraction(3), Fraction(1, 4)):
                bound = bounds.softmax_length_bound(given, np.array(float(c)))
                require(_near(bound, balls.ball(2 * c + 1) / mean), f"softmax_length_bound({float(beta)}, {float(c)})")
        for nearness, c in (
            (Fraction(1, 2), Fraction(1)),
            (Fraction(1, 1024), Fraction(3)),
            (Fraction(3, 8), Fraction(1, 4)),
            (Fraction(1, 2), Fraction(10**150)),
            (Fraction(1e-150), Fraction(1e150)),
        ):
            scale = bounds.softmax_sufficient_scale(np.array(float(nearness)), np.array(float(c)))
            expected = balls.pi() / balls.ball(8 * c**2 * nearness**2)
            require(_near(scale, expected), f"softmax_sufficient_scale({float(nearness)}, {float(c)})")
    one = np.array(1.0)
    require(float(bounds.softmax_sufficient_scale(np.array(1e-150), np.array(1e-150))) == np.inf, "a scale of 1e600")
    for outside in (-1e-9, -0.5, np.inf, np.nan, np.nextafter(1e150, np.inf)):
        require(refuses(bounds.circle_mean, np.array(outside)), f"circle_mean takes beta = {outside}")
        require(refuses(bounds.softmax_length_bound, np.array(outside), one), f"softmax_length_bound takes {outside}")
    for outside in (np.nextafter(1e-150, 0), np.inf):
        given = np.array(outside)
        require(refuses(bounds.softmax_sufficient_scale, one / 4, given), f"sufficient scale of c = {outside!r}")
        require(refuses(bounds.softmax_sufficient_scale, given, one), f"sufficient scale of delta = {outside!r}")
    for outside in (0.0, -0.5, np.nan, np.nextafter(1e150, np.inf)):
        require(
            refuses(bounds.softmax_length_bound, one, np.array(outside)), f"softmax_length_bound takes c = {outside}"
        )
        refused = refuses(bounds.softmax_sufficient_scale, np.array(0.25), np.array(outside))
        require(refused, f"softmax_sufficient_scale takes c = {outside}")
    for outside in (0.0, -0.5, float(np.nextafter(0.5, 1)), np.nan):
        require(
            refuses(bounds.softmax_sufficient_scale, np.array(outside), one), f"sufficient scale of delta = {outside}"
        )


def _near(seen: np.ndarray, expected: balls.Ball) -> bool:
    """Whether a double is within 1e-14, relatively, of an enclosed number."""
    return bool(abs(balls.ball(Fraction(float(seen))) / expected - 1) < balls.ball(Fraction(1, 10**14)))

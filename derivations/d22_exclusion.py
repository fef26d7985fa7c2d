"""Only level logits are scored 1 as positional and 1 as symbolic, and nearly level ones nearly 1."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import sympy

from ropegeo.asymptotics import bounds
from ropegeo.claims import Claim, Status, Step, argument, ball, refuses, require, symbolic, vanishes
from ropegeo.exact import balls

CLAIM = Claim(
    title="Positional and symbolic score of a swap, and why both are high only where attention is level",
    statement=(
        r"Swap the contents of positions $a$ and $b$. Let $l_a, l_b$ be their logits before, $l'_a, l'_b$ after, "
        r"$\tan\varphi = e^{l_b - l_a}$ and $\tan\varphi' = e^{l'_b - l'_a}$. The positional score is $\cos(\varphi - "
        r"\varphi')$, the symbolic one $\sin(\varphi + \varphi')$. Both are 1 iff $l_a = l_b$ and $l'_a = l'_b$. If "
        r"both are at least $1 - \gamma$, $0 \le \gamma < 1 - \frac{1}{\sqrt2}$, then $|l_b - l_a|$ and $|l'_b - "
        r"l'_a|$ are at most $\log \tan(\frac{\pi}{4} + \arccos(1 - \gamma))$, and this is attained. If only $l_a = "
        r"l_b$, both scores are $\cos(\frac{\pi}{4} - \varphi')$."
    ),
    source=(
        "Urrutia et al., arXiv 2511.11579 (the exclusion principle) and arXiv 2605.31558, appendix D (the scores); "
        "closed form and quantitative form are ours"
    ),
    scope=r"finite logits; $a < b$ before the query; $0 \le \gamma < 1 - \frac{1}{\sqrt2}$",
    status=Status.PROVED,
    ties=(
        "ropegeo.asymptotics.bounds.swap_scores",
        "ropegeo.asymptotics.bounds.exclusion_gap",
    ),
)
LOGITS = (
    (0.3, -1.7, 2.5, 0.25),
    (0.0, 2.0, 2.0, 0.0),
    (-1.0, 3.0, 0.5, -0.125),
    (10.0, -4.0, 3.0, 2.0),
    (0.0, 40.0, 40.0, 1.0),
)
"""Before at a, before at b, after at a, after at b."""
GAMMAS = (Fraction(1, 10**12), Fraction(1, 20), Fraction(1, 10), Fraction(1, 4), Fraction(29, 100))


def steps() -> Iterator[Step]:
    """The proof."""
    x, y, p, q, angle = sympy.symbols("x y p q chi", real=True)
    before, after = sympy.Matrix([1, sympy.exp(x)]), sympy.Matrix([1, sympy.exp(y)])
    flipped = sympy.Matrix([sympy.exp(x), 1])
    lengths = sympy.sqrt(1 + sympy.exp(2 * x)) * sympy.sqrt(1 + sympy.exp(2 * y))
    phi, psi = sympy.atan(sympy.exp(x)), sympy.atan(sympy.exp(y))
    yield symbolic(
        "both scores are cosines of an angle",
        r"Softmax gives attention in the ratio of $e^l$, and a cosine is free of positive factors. With $x = l_b - "
        r"l_a$, $y = l'_b - l'_a$: $v = (D_a, D_b)$ has the direction of $(1, e^x)$, at angle $\varphi$ to the first "
        r"axis, $v'$ that of $(1, e^y)$, at angle $\varphi'$, and $v$ flipped that of $(e^x, 1)$, at angle "
        r"$\frac{\pi}{2} - \varphi$. So $\cos(v', v) = \cos(\varphi - \varphi')$ and $\cos(v', \text{flipped } v) = "
        r"\sin(\varphi + \varphi')$.",
        holds=vanishes(before.dot(after) / lengths - sympy.expand_trig(sympy.cos(phi - psi)))
        and vanishes(flipped.dot(after) / lengths - sympy.expand_trig(sympy.sin(phi + psi))),
    )
    even, odd = (x + y) / 2, (x - y) / 2
    sides = (1 + sympy.exp(2 * x)) * (1 + sympy.exp(2 * y)) * sympy.exp(-x - y)
    yield symbolic(
        "the same in hyperbolic functions",
        r"With $p = \frac{x+y}{2}$, $q = \frac{x-y}{2}$ the squares are $\frac{\cosh^2 p}{\cosh^2 p + \sinh^2 q}$ "
        r"(positional) and $\frac{\cosh^2 q}{\cosh^2 q + \sinh^2 p}$ (symbolic). So the positional score is 1 iff $q "
        r"= 0$, $x = y$, and the symbolic one is 1 iff $p = 0$, $x = -y$; both are 1 iff $x = y = 0$.",
        holds=vanishes(sides - 4 * (_square(sympy.cosh(even)) + _square(sympy.sinh(odd))))
        and vanishes((1 + sympy.exp(x + y)) ** 2 * sympy.exp(-x - y) - 4 * _square(sympy.cosh(even)))
        and vanishes(
            (sympy.exp(x) + sympy.exp(y)) ** 2 * sympy.exp(-x - y) - 4 * (sympy.cosh(odd) ** 2).rewrite(sympy.exp)
        )
        and vanishes(_square(sympy.cosh(p)) + _square(sympy.sinh(q)) - _square(sympy.cosh(q)) - _square(sympy.sinh(p))),
    )
    yield argument(
        "nearly level",
        r"Let $\delta = \arccos(1 - \gamma) < \frac{\pi}{4}$. Both scores at least $1 - \gamma$ say $|\varphi - "
        r"\varphi'| \le \delta$ and $|\varphi + \varphi' - \frac{\pi}{2}| \le \delta$ (all angles between are within "
        r"$\frac{\pi}{2}$ of 0). Adding and subtracting, $|2\varphi - \frac{\pi}{2}| \le 2\delta$ and $|2\varphi' - "
        r"\frac{\pi}{2}| \le 2\delta$. So $\varphi$ and $\varphi'$ lie within $\delta$ of $\frac{\pi}{4}$, and $|x| = "
        r"|\log\tan\varphi| \le \log\tan(\frac{\pi}{4} + \delta)$, the same for $y$.",
    )
    delta = sympy.symbols("delta", positive=True)
    yield symbolic(
        "attained",
        r"$\varphi = \frac{\pi}{4} + \delta$, $\varphi' = \frac{\pi}{4}$: both scores are $\cos\delta = 1 - \gamma$. "
        r"($\log\tan$ is odd about $\frac{\pi}{4}$: $\tan(\frac{\pi}{4} + \delta) \tan(\frac{\pi}{4} - \delta) = 1$.)",
        holds=vanishes(sympy.cos(sympy.pi / 4 + delta - sympy.pi / 4) - sympy.cos(delta))
        and vanishes(sympy.sin(sympy.pi / 4 + delta + sympy.pi / 4) - sympy.cos(delta))
        and vanishes(sympy.tan(sympy.pi / 4 + delta) * sympy.tan(sympy.pi / 4 - delta) - 1),
    )
    gamma = sympy.symbols("gamma", positive=True)
    sine, cosine = sympy.symbols("s c", positive=True)
    yield symbolic(
        "without trigonometry",
        r"With $c = \cos\delta = 1 - \gamma$, $s = \sin\delta = \sqrt{\gamma(2 - \gamma)}$: $\tan(\frac{\pi}{4} + "
        r"\delta) = \frac{c + s}{c - s} = 1 + \frac{2s}{c - s}$, finite while $s < c$, that is $\gamma < 1 - "
        r"\frac{1}{\sqrt2}$.",
        holds=vanishes(1 - (1 - gamma) ** 2 - gamma * (2 - gamma))
        and vanishes(
            sympy.sin(sympy.pi / 4 + delta) * (sympy.cos(delta) - sympy.sin(delta))
            - sympy.cos(sympy.pi / 4 + delta) * (sympy.cos(delta) + sympy.sin(delta))
        )
        and vanishes((cosine + sine) / (cosine - sine) - 1 - 2 * sine / (cosine - sine)),
    )
    yield symbolic(
        "level before the swap only",
        r"$x = 0$ is $\varphi = \frac{\pi}{4}$: then $\cos(\frac{\pi}{4} - \varphi') = \sin(\frac{\pi}{4} + "
        r"\varphi')$, both scores agree, and they are 1 only if $y = 0$.",
        holds=vanishes(sympy.cos(sympy.pi / 4 - angle) - sympy.sin(sympy.pi / 4 + angle))
        and vanishes(sympy.atan(1) - sympy.pi / 4),
    )
    yield argument(
        "from one swap to the mean over swaps",
        r"A head's scores are means over swaps with positive weights $w_{ab}$ of sum 1, and no score is above 1. Both "
        r"means are 1 iff every swap's are: all logits before the query are equal, and after each swap the two that "
        r"were swapped equal each other. If both means are at least $1 - \gamma$, a swap's scores are at least "
        r"$1 - \frac{\gamma}{w_{ab}}$, and the gap of that number applies.",
    )
    yield ball(
        "the limit is right",
        rf"At $\gamma = 1 - \frac{{1}}{{\sqrt2}}$ no gap is too large: $\varphi = \frac{{\pi}}{{2}} - \eta$, "
        rf"$\varphi' = \frac{{\pi}}{{4}}$ has both scores equal to $\cos(\frac{{\pi}}{{4}} - \eta) > "
        rf"\frac{{1}}{{\sqrt2}}$ for every $0 < \eta < \frac{{\pi}}{{4}}$, with a gap of $\log\cot\eta$, as large as "
        rf"one likes: {', '.join(f'{gap:.2f}' for gap, _ in _escapes())} for $\eta = 10^{{-1}}, 10^{{-4}}, "
        rf"10^{{-16}}$.",
        holds=all(high for _, high in _escapes()),
    )


def _square(hyperbolic: sympy.Expr) -> sympy.Expr:
    """Its square in exponentials."""
    return hyperbolic.rewrite(sympy.exp) ** 2


def _escapes() -> list[tuple[float, bool]]:
    """Gap, and whether both scores are above 1/sqrt(2), for three small angles eta."""
    found = []
    with balls.precision(160):
        root = 1 / balls.ball(2).sqrt()
        for power in (1, 4, 16):
            eta = balls.ball(Fraction(1, 10**power))
            phi, psi = balls.pi() / 2 - eta, balls.pi() / 4
            high = (phi - psi).cos() > root and (phi + psi).sin() > root
            found.append((float((eta.cos() / eta.sin()).log()), bool(high)))
    return found


def check() -> None:
    """Scores and gap against their definitions in ball arithmetic, and at the edges of their scope."""
    with balls.precision(160):
        for logits in LOGITS:
            before_a, before_b, after_a, after_b = (balls.ball(Fraction(logit)) for logit in logits)
            phi, psi = (before_b - before_a).exp().atan(), (after_b - after_a).exp().atan()
            seen = bounds.swap_scores(*(np.array(logit) for logit in logits))
            for name, score, expected in zip(
                ("positional", "symbolic"), seen, ((phi - psi).cos(), (phi + psi).sin()), strict=True
            ):
                require(_near(score, expected, 13), f"{name} score of {logits} is {float(score)!r}")
        quarter = balls.pi() / 4
        for gamma in GAMMAS:
            gap = bounds.exclusion_gap(np.array(float(gamma)))
            delta = (1 - balls.ball(Fraction(float(gamma)))).acos()
            require(_near(gap, (quarter + delta).tan().log(), 12), f"exclusion_gap({float(gamma)}) = {float(gap)!r}")
            for swapped in bounds.swap_scores(np.array(0.0), gap, np.array(1.0), np.array(1.0)):
                require(_near(swapped, 1 - balls.ball(gamma), 14), f"the gap of {float(gamma)} is not attained")
    zero = np.array(0.0)
    for logit in (0.0, 1.0, -700.0, 1e4):
        same, moved, further = np.array(logit), np.array(logit / 2), np.array(1.5 * logit)
        positional, symbolic_score = bounds.swap_scores(zero, same, moved, further)
        require(float(positional) == 1, f"logits that stay are not positional at {logit}")
        require(
            float(bounds.swap_scores(zero, same, same, zero)[1]) == 1, f"logits that move are not symbolic at {logit}"
        )
        require((float(symbolic_score) == 1) == (logit == 0), f"logits that stay are symbolic at {logit}")
    require(float(bounds.exclusion_gap(zero)) == 0, "exclusion_gap(0) is not 0")
    last, beyond = _around_limit()
    require(float(bounds.exclusion_gap(np.array(last))) > 36, f"exclusion_gap refuses {last!r}, or is small there")
    tiny = float(bounds.exclusion_gap(np.array(1e-150)))  # 2 sqrt(2 gamma)
    require(abs(tiny / (2 * 2**0.5 * 1e-75) - 1) <= 1e-14, f"exclusion_gap(1e-150) is {tiny!r}")
    far = [np.array(1e150), np.array(-1e150)]
    require([float(score) for score in bounds.swap_scores(*far, *far)] == [1, 0], "logits of 1e150 that stay")
    for outside in (beyond, np.nextafter(1e-150, 0), -1e-9, -1.0, 1.0, 1.8, 2.5, np.nan):
        require(refuses(bounds.exclusion_gap, np.array(outside)), f"exclusion_gap takes {outside!r}")
    for place in range(4):
        for value in (np.inf, -np.inf, np.nan, np.nextafter(1e150, np.inf)):
            given = [np.array(value) if k == place else zero for k in range(4)]
            require(refuses(bounds.swap_scores, *given), f"swap_scores takes {value} as argument {place}")


def _around_limit() -> tuple[float, float]:
    """The largest double below 1 - 1/sqrt(2), and the next one."""
    near = 1 - 0.5**0.5
    while not _below_limit(near):
        near = float(np.nextafter(near, 0))
    while _below_limit(float(np.nextafter(near, 1))):
        near = float(np.nextafter(near, 1))
    return near, float(np.nextafter(near, 1))


def _below_limit(gamma: float) -> bool:
    """Exactly: 1 - gamma > 1/sqrt(2)."""
    return gamma < 1 and 2 * (1 - Fraction(gamma)) ** 2 > 1


def _near(seen: np.ndarray, expected: balls.Ball, digits: int) -> bool:
    """Whether a double is within 10^-digits, relatively, of an enclosed number."""
    return bool(abs(balls.ball(Fraction(float(seen))) / expected - 1) < balls.ball(Fraction(1, 10**digits)))

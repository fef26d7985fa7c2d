"""Softmax attention of an index head decodes every input iff the target's weight is above 1/2, 1/4 or 3/4."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import sympy

from ropegeo.asymptotics import bounds
from ropegeo.claims import Claim, Status, Step, argument, ball, exact, refuses, require, symbolic, vanishes
from ropegeo.construct import index, transformer
from ropegeo.engine import softmax
from ropegeo.exact import balls, read_angle
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum

CLAIM = Claim(
    title="The weight that softmax attention must give the target of an index head",
    statement=(
        r"Let the target get weight $w$. An index head's output is the right token for every input iff $w > 1/2$ (the "
        r"query is an integer), $w > 1/4$ (a letter that reads itself), $w > 3/4$ (a letter of a head with one fixed "
        r"offset $s > 0$). With $w = \frac{1}{1+S}$, $S = \sum_t e^{-\beta g(t)}$, $g(t) = \sum_k a_k (1 - \cos "
        r"t\theta_k)$, over the displacements $t \ne 0$ of the window, that is $S < 1$, $S < 3$, $S < 1/3$."
    ),
    source="docs/MATHEMATICS.md, section 8; the head: Urrutia et al., arXiv 2605.31558, appendix F.2",
    scope=(
        r"at least two letters, two positions and positive weights; the target of an integer query, or of a fixed "
        r"offset, lies within the input; the output must win without a tie"
    ),
    status=Status.PROVED,
    ties=(
        "ropegeo.asymptotics.bounds.softmax_threshold",
        "ropegeo.engine.softmax.index_softmax_scale",
        "ropegeo.construct.transformer.run_layer",
    ),
)
THRESHOLDS = {"integer": Fraction(1, 2), "letter": Fraction(1, 4), "fixed": Fraction(3, 4)}
"""The weights of the claim."""
SHARES = 12
"""Weights are enumerated as multiples of 1/12."""
ANGLE = "10000^(-2/128)"
SCALES = (10, 100, 1000, 10_000, 100_000, 1_000_000)
LONGEST = {
    (1, 0): (14, 29, 58, 312, 1589, 3178),
    (1, 3): (17, 32, 61, 315, 1592, 3181),
    (1, 16): (0, 45, 74, 328, 1605, 3194),
    (3, 0): (29, 87, 312, 936, 3178, 6356),
}
"""Largest lengths with S below a threshold, for a threshold and an offset, at each of `SCALES`; 0: none."""


def steps() -> Iterator[Step]:
    """The proof."""
    w = sympy.symbols("w", positive=True)
    yield argument(
        "what is compared",
        r"Embedding $(\text{one-hot}, 1)$, values $2$ on letters and 0 on the rest, output $x + a$: the coordinate of "
        r"letter $c$ becomes $2 W_c$, $W_c$ the total weight of the positions that hold $c$, plus 1 if the query is "
        r"$c$; that of an integer is 1 if the query is it, and 0 otherwise. The logits, so the weights, depend on "
        r"positions and on the query's token only, so whatever the other positions hold, the target keeps $w$ and "
        r"they share $1 - w$.",
    )
    yield argument(
        "enough",
        r"Integer query. If the target holds letter $c$, then $c$ gets at least $2w$, the query's integer 1, another "
        r"letter at most $2(1-w)$: right if $2w > 1$. If it holds an integer, the right output is the query itself, "
        r"which gets 1; letters share at most $2(1-w) < 1$. Letter query that reads itself: it gets at least $1 + "
        r"2w$, another letter at most $2(1-w)$, an integer 0. Fixed offset $s > 0$, target $c$, query $b$: if $b = c$ "
        r"it gets at least $1 + 2w$, another letter at most $2(1-w)$; if $b \ne c$, $c$ gets at least $2w$, $b$ at "
        r"most $1 + 2(1-w)$, the others at most $2(1-w)$.",
    )
    yield argument(
        "needed",
        r"Integer query: the target holds letter $c$ and every other earlier position another letter $b$. Then $c$ "
        r"gets $2w$ against 1 of the query. Letter query $c$: every other position holds $b \ne c$ and gets $2(1-w)$ "
        r"against $1 + 2w$. Fixed offset: the target alone holds $c$, every other position, the query's too, holds "
        r"$b$, which gets $1 + 2(1-w)$ against $2w$.",
    )
    yield symbolic(
        "the inequalities",
        r"$2w - 1 = 2(w - \frac12)$, $(1 + 2w) - 2(1-w) = 4(w - \frac14)$, $2w - (1 + 2(1-w)) = 4(w - \frac34)$. For "
        r"$w > \frac14$ the fixed head's case $b = c$ is right as well, by the second.",
        holds=vanishes(2 * w - 1 - 2 * (w - sympy.Rational(1, 2)))
        and vanishes((1 + 2 * w) - 2 * (1 - w) - 4 * (w - sympy.Rational(1, 4)))
        and vanishes(2 * w - (1 + 2 * (1 - w)) - 4 * (w - sympy.Rational(3, 4))),
    )
    total = 1 / w - 1
    yield symbolic(
        "in terms of the sum",
        r"$S = \frac1w - 1$ falls in $w$ (its derivative is $-w^{-2}$), so $w$ above a value is $S$ below that "
        r"value's: $S = 1, 3, \frac13$ at $w = \frac12, \frac14, \frac34$. An earlier query with the same offset sees "
        r"a part of the window of the last one, so its $S$ is smaller: the last position decides.",
        holds=vanishes(sympy.diff(total, w) + w**-2)
        and [total.subs(w, sympy.Rational(x)) for x in THRESHOLDS.values()] == [1, 3, sympy.Rational(1, 3)],
    )
    for query, threshold in THRESHOLDS.items():
        cases = list(_cases(query))
        agree = all(_decodes_all(query, weights, target) == (w > threshold) for weights, target, w in cases)
        inputs = sum(len(_rows(query, len(weights), target)) for weights, target, _ in cases)
        tokens = "two letters" if query == "fixed" else "two letters and the integers below the length"
        yield exact(
            f"every input, {query} query",
            rf"Lengths 2 to 4, every target, all {len(cases)} ways to share a weight of 1 in positive multiples of "
            rf"$1/{SHARES}$, every input over {tokens} ({inputs} pairs of weights and input), in rational arithmetic: "
            rf"all are decoded iff $w > {threshold.numerator}/{threshold.denominator}$.",
            holds=agree and len(cases) > 0,
        )
    seen = _longest()
    yield ball(
        "numbers",
        rf"For $\theta = 10000^{{-2/128}}$ and $\beta = 10, 10^2, \ldots, 10^6$ the sums were enclosed at every "
        rf"length; S grows with the length, so the last one with S below 1 decides: {_shown(seen[1, 0])} for $s = 0$, "
        rf"{_shown(seen[1, 3])} for $s = 3$, {_shown(seen[1, 16])} for $s = 16$; below 3 for $s = 0$: "
        rf"{_shown(seen[3, 0])}.",
        holds=seen == LONGEST,
    )


def _shown(lengths: tuple[int, ...]) -> str:
    return ", ".join(str(n) if n else "none" for n in lengths)


def _cases(query: str) -> Iterator[tuple[tuple[int, ...], int, Fraction]]:
    """Weights of the positions in units of 1/SHARES, the target's place, and its weight."""
    for n in (2, 3, 4):
        targets = [n - 1] if query == "letter" else list(range(n - 1))
        for weights in product(range(1, SHARES), repeat=n):
            if sum(weights) == SHARES:
                for target in targets:
                    yield weights, target, Fraction(weights[target], SHARES)


def _rows(query: str, n: int, target: int) -> list[tuple[str | int, ...]]:
    """All inputs of a length whose last token asks for the target."""
    vocabulary: tuple[str | int, ...] = ("a", "b") if query == "fixed" else ("a", "b", *range(1, n))
    lasts: tuple[str | int, ...] = (n - 1 - target,) if query == "integer" else ("a", "b")
    return [(*row, last) for row in product(vocabulary, repeat=n - 1) for last in lasts]


def _decodes_all(query: str, weights: tuple[int, ...], target: int) -> bool:
    return all(_decodes(row, weights, target) for row in _rows(query, len(weights), target))


def _decodes(row: tuple[str | int, ...], weights: tuple[int, ...], target: int) -> bool:
    """Whether the right token has strictly the largest coordinate at the last position, in units of 1/SHARES."""
    scores: dict[str | int, int] = {"a": 0, "b": 0}
    for token, weight in zip(row, weights, strict=True):
        if isinstance(token, str):
            scores[token] += 2 * weight
    scores[row[-1]] = scores.get(row[-1], 0) + SHARES
    right = row[target] if isinstance(row[target], str) else row[-1]
    return all(scores[right] > score for token, score in scores.items() if token != right)


def _longest() -> dict[tuple[int, int], tuple[int, ...]]:
    """Largest length with the sum certainly below a threshold, where the next length's is certainly above it; or 0."""
    found: dict[tuple[int, int], list[int]] = {case: [] for case in LONGEST}
    angle = read_angle(ANGLE).ball(96)
    with balls.precision(80):
        reach = max(max(lengths) for lengths in LONGEST.values()) + 1
        gaps = [2 * (angle * t / 2).sin() ** 2 for t in range(reach)]
        for beta in SCALES:
            sums = [balls.ball(0)]  # over 1..T
            for gap in gaps[1:]:
                sums.append(sums[-1] + (-beta * gap).exp())
            for (threshold, offset), lengths in found.items():
                behind = sums[offset]
                last = next(T for T in range(reach) if not behind + sums[T + 1] < threshold)
                decided = behind + sums[last + 1] > threshold
                # At reach T ahead the length is offset + T + 1; with none ahead the sum may be too large already.
                fits = last > 0 and behind + sums[last] < threshold
                lengths.append(offset + last + 1 if fits and decided else 0 if behind > threshold else -1)
    return {case: tuple(lengths) for case, lengths in found.items()}


def check() -> None:
    """The function, the engine's thresholds and roots, and real heads on the worst inputs."""
    for weight in (0.5, 0.25, 0.75, 0.1, 0.9, 1 - 2**-53, 1e-150):
        expected = 1 / Fraction(weight) - 1
        seen = Fraction(float(bounds.softmax_threshold(np.array(weight))))
        require(abs(seen - expected) <= expected / 10**15, f"softmax_threshold({weight}) = {float(seen)!r}")
    for outside in (0.0, np.nextafter(1e-150, 0), 1.0, -0.5, 1.5, np.nan):
        require(refuses(bounds.softmax_threshold, np.array(outside)), f"softmax_threshold takes a weight of {outside}")
    for query, least in THRESHOLDS.items():
        threshold = float(bounds.softmax_threshold(np.array(float(least))))
        require(
            abs(softmax.THRESHOLDS[query] / threshold - 1) <= 1e-15,
            f"the engine's threshold of {query} is not {threshold}",
        )
    spectrum = RopeSpectrum.from_angle(ANGLE)
    for query, offset, n in (("integer", 3, 17), ("letter", 0, 29), ("fixed", 5, 12)):
        profile = LogitProfile(spectrum=spectrum, coefficients=np.ones(1, np.complex128), origin=offset)
        root = softmax.index_softmax_scale(profile, n, query=query)
        sum_at_root = 1 / THRESHOLDS[query] - 1
        require(
            _sum(root * (1 - 1e-9), offset, n) > balls.ball(sum_at_root) > _sum(root * (1 + 1e-9), offset, n),
            f"index_softmax_scale: beta = {root!r} is not where S is {sum_at_root} ({query}, offset {offset}, length "
            f"{n})",
        )
        for factor, decodes in ((1 - 1e-6, False), (1 + 1e-6, True)):
            head = (
                index.index_head(spectrum, offset=offset, letters="ab", beta=root * factor)
                if query == "fixed"
                else index.token_index_head(spectrum, letters="ab", integers=range(1, n), beta=root * factor)
            )
            row: list[str | int] = ["b"] * n
            row[n - 1 - offset] = "a"
            if query == "integer":
                row[-1] = offset
            output = transformer.run_layer(head, row, attention="softmax").tokens[-1]
            require(
                (output == "a") == decodes, f"the worst input of a {query} query at {factor} beta_min gives {output}"
            )


def _sum(beta: float, offset: int, n: int) -> balls.Ball:
    """S(beta), enclosed."""
    angle = read_angle(ANGLE).ball(128)
    with balls.precision(96):
        scale = balls.ball(Fraction(beta))
        terms = [(-scale * 2 * (angle * t / 2).sin() ** 2).exp() for t in range(-offset, n - offset) if t]
        return sum(terms, balls.ball(0))

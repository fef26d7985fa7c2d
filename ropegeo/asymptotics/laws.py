"""The laws by which a margin may fall, as log margin(n) in a few parameters.

Every law is fitted to the logarithm of the margin: relative errors count alike at every length. A law is a value: its
formula, its parameters, where a search for them starts, and how many it costs in a comparison.

Source: docs/MATHEMATICS.md, sections 5, 6 and 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

from ropegeo._arrays import FloatArray
from ropegeo.asymptotics.data import DecayData

Model: TypeAlias = Callable[[FloatArray], FloatArray]
"""Parameters to log margins at some lengths."""

LARGEST_LENGTH = 1e150
"""Beyond, n itself is no double worth computing with: only laws in log n are fitted."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Law:
    """One law, made for given data.

    Attributes:
        name: `power`, `staircase`, `planes`, `retrieval`, `exponential`, `constant` or `power_floor`.
        formula: margin as a function of n.
        parameters: their names.
        positive: which of them are fitted by their logarithm, as they cannot be 0 or negative.
        at: lengths to the function from natural parameters to log margins there.
        starts: where the search begins; the best end is kept.
        counted: how many free numbers the law costs when laws are compared.
        fixed: what is part of the law and not fitted, for people.
        found: a number that its own search has found: name, value, and both ends of its likelihood interval.
        why_not: if the law is not for these data, why; then there is nothing to fit.
    """

    name: str
    formula: str
    parameters: tuple[str, ...] = ()
    positive: tuple[bool, ...] = ()
    at: Callable[[Sequence[int]], Model] = lambda _: lambda _: np.zeros(0)
    starts: tuple[tuple[float, ...], ...] = ((),)
    counted: int = 0
    fixed: tuple[tuple[str, str], ...] = ()
    found: tuple[str, float, float, float] | None = None
    why_not: str = ""


def constant(data: DecayData) -> Law:
    """No decay: margin = C."""

    def at(lengths: Sequence[int]) -> Model:
        return lambda p: np.full(len(lengths), math.log(p[0]))

    return Law(
        name="constant",
        formula="C",
        parameters=("C",),
        positive=(True,),
        at=at,
        starts=((math.exp(_bounded(float(data.log_margin.mean()))),),),
        counted=1,
    )


def power(data: DecayData) -> Law:
    """Power of n with a free exponent: margin = C n^exponent."""

    def at(lengths: Sequence[int]) -> Model:
        x = logarithms(lengths)
        return lambda p: math.log(p[0]) + p[1] * x

    slope, level = line(data.log_length, data.log_margin)
    return Law(
        name="power",
        formula="C n^exponent",
        parameters=("C", "exponent"),
        positive=(True, False),
        at=at,
        starts=((math.exp(_bounded(level)), slope),),
        counted=2,
    )


def planes(data: DecayData, count: int | None = None) -> Law:
    """Power -2/F with a known number of planes F: the order that simultaneous approximation allows.

    With F unknown it is the power law, of which it is a case: then the exponent's interval says which F it may be.
    """
    name, formula = "planes", "C n^(-2/F)"
    if count is None:
        return Law(name=name, formula=formula, why_not="F is not given; without it this is the power law")
    chosen = count
    level = float(np.mean(data.log_margin + 2 / chosen * data.log_length))

    def at(lengths: Sequence[int]) -> Model:
        falling = -2 / chosen * logarithms(lengths)
        return lambda p: math.log(p[0]) + falling

    return Law(
        name=name,
        formula=formula,
        parameters=("C",),
        positive=(True,),
        at=at,
        starts=((math.exp(_bounded(level)),),),
        counted=1,
        fixed=(("F", str(chosen)),),
    )


def exponential(data: DecayData) -> Law:
    """Exponential: margin = C exp(-rate n)."""
    name, formula = "exponential", "C exp(-rate n)"
    if data.lengths[-1] > LARGEST_LENGTH:
        return Law(name=name, formula=formula, why_not="lengths beyond 1e150")

    def at(lengths: Sequence[int]) -> Model:
        n = np.array([float(m) for m in lengths])
        return lambda p: math.log(p[0]) - p[1] * n

    slope, level = line(np.array([float(m) for m in data.lengths]), data.log_margin)
    return Law(
        name=name,
        formula=formula,
        parameters=("C", "rate"),
        positive=(True, False),
        at=at,
        starts=((math.exp(_bounded(level)), -slope),),
        counted=2,
    )


def power_floor(data: DecayData) -> Law:
    """Power above a floor: margin = C n^exponent + floor."""
    x = data.log_length
    _, level = line(x, data.log_margin)
    least = float(data.log_margin.min())
    lost = least - 20  # a floor 2e-9 below the least margin is none; there the search stops
    tails = [
        line(x[: max(2, round(share * x.size))], data.log_margin[: max(2, round(share * x.size))])
        for share in (1, 0.7, 0.4)
    ]
    starts = [
        (math.exp(_bounded(start)), min(slope, -0.05), math.exp(_bounded(least)) * part)
        for slope, start in tails
        for part in (0.9, 0.5, 0.01)
    ]

    def at(lengths: Sequence[int]) -> Model:
        x = logarithms(lengths)
        return lambda p: np.logaddexp(math.log(p[0]) + p[1] * x, max(math.log(p[2]), lost))

    return Law(
        name="power_floor",
        formula="C n^exponent + floor",
        parameters=("C", "exponent", "floor"),
        positive=(True, False, True),
        at=at,
        starts=tuple(starts) if math.isfinite(level) else (),
        counted=3,
    )


def retrieval(data: DecayData, *, free_weight: bool) -> Law:
    """Worst case of a one-plane Retrieval head: weight * 2 sin((omega-theta)/2) sin((omega-(2n-3) theta)/2).

    That is min(cos((n-2) theta) - cos(omega-(n-1) theta), cos((n-1) theta) - cos(omega-(n-2) theta)) as a product,
    where it is positive: (2n-3) theta < omega. `weight` is 1 where margins are in units of beta.
    """
    name = "retrieval"
    formula = "2 sin((omega-theta)/2) sin((omega-(2n-3)theta)/2)"
    formula = f"weight {formula}" if free_weight else formula
    if data.lengths[-1] > 1e12 or data.lengths[0] < 2:
        return Law(name=name, formula=formula, why_not="needs lengths from 2 to 1e12")
    span = _retrieval_span(data.lengths)

    def at(lengths: Sequence[int]) -> Model:
        return partial(_retrieval_model, _retrieval_span(lengths))

    starts = []
    for omega in np.geomspace(0.02, math.pi, 40):
        scale = (
            1.0 if not free_weight else math.exp(float(data.log_margin.max())) / (2 * math.sin(omega / 2) ** 2) * 1.05
        )
        ratio = np.exp(data.log_margin) / (scale * 2 * math.sin(omega / 2))
        if not (ratio < 1).all():
            continue
        slope, _ = line(span, 2 * np.arcsin(ratio))
        theta = float(np.clip(-slope, 1e-9 * omega / span[-1], 0.98 * omega / span[-1]))
        starts.append((float(omega), theta, scale)[: 3 if free_weight else 2])
    return Law(
        name=name,
        formula=formula,
        parameters=("omega", "theta", "weight")[: 3 if free_weight else 2],
        positive=(True, True, True)[: 3 if free_weight else 2],
        at=at,
        starts=tuple(starts),
        counted=3 if free_weight else 2,
        why_not="" if starts else "margins are too large for any omega up to pi",
    )


def _retrieval_span(lengths: Sequence[int]) -> FloatArray:
    """2n - 3 at each length."""
    return np.array([2.0 * n - 3 for n in lengths])


def _retrieval_model(span: FloatArray, p: FloatArray) -> FloatArray:
    """The law of `retrieval` at given 2n - 3; its weight is 1 unless it is the third parameter."""
    omega, theta = p[0], p[1]
    weight = p[2] if p.size > 2 else 1.0
    if not (0 < omega <= math.pi and 0 < theta < omega and weight > 0):
        return np.full(span.size, -1e3)
    far = (omega - span * theta) / 2
    # Past its scope the law is no margin: a steep slope leads the search back.
    inside = np.log(np.sin(np.maximum(far, 1e-12))) + np.minimum(far, 0) * 1e3
    return np.asarray(math.log(weight) + math.log(2 * math.sin((omega - theta) / 2)) + inside)


def logarithms(lengths: Sequence[int]) -> FloatArray:
    """Natural logarithms of lengths of any size."""
    return np.array([math.log(n) for n in lengths])


def line(x: Float[FloatArray, " points"], y: Float[FloatArray, " points"]) -> tuple[float, float]:
    """Slope and level of the least-squares line, 0 and the mean where all x are equal."""
    centred = x - x.mean()
    spread = float(centred @ centred)
    slope = float(centred @ (y - y.mean())) / spread if spread > 0 else 0.0
    return slope, float(y.mean() - slope * x.mean())


def _bounded(logarithm: float) -> float:
    """A logarithm whose exponential is a positive double."""
    return min(max(logarithm, -700.0), 700.0)


LAWS: tuple[str, ...] = ("constant", "power", "planes", "exponential", "power_floor", "retrieval", "staircase")

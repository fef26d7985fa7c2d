"""The gaps between a target and its rivals, many at once in doubles, and sums over them in ball arithmetic."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from ropegeo._arrays import FloatArray
from ropegeo.engine.exact_turns import rotations
from ropegeo.engine.work import DEFINED_AT_ONCE
from ropegeo.exact import balls
from ropegeo.heads import LogitProfile
from ropegeo.heads.profile import LOGIT_ERROR

_BITS = 192


class Gaps:
    """gap(t) = (L(0) - L(t))/W over runs of displacements, in units of the weight, by whichever way is faster.

    Attributes:
        profile: with displacements counted from 0.
        planes: how many have a weight.
        top: L(0).
        error: bound on the absolute error of a gap.
    """

    def __init__(self, profile: LogitProfile) -> None:
        self.profile = replace(profile, origin=0, constant=0.0)
        self.planes = len(profile.active_planes)
        self.top = float(self.profile.coefficients.real.sum())
        self.error = 2 * max(LOGIT_ERROR, (self.planes + 64) * 2.0**-53)

    def at(self, low: int, high: int) -> Float[FloatArray, " displacements"]:
        """The gaps of low..high, each off by at most `error`."""
        profile, count = self.profile, high - low + 1
        if self.planes * count <= DEFINED_AT_ONCE:
            t = np.arange(low, high + 1)
            gaps = profile.gap(t) if profile.is_peaked else self.top - profile.logit(t)
        else:
            from ropegeo.engine.sweep import Sweep

            gaps = self.top - Sweep((profile,)).logits(low, high)[0]
        return np.asarray(gaps / profile.weight)


def sum_ball(profile: LogitProfile, beta: float, low: int, high: int, *, period: int | None = None) -> balls.Ball:
    """sum over t = low..high without 0 of exp(-beta gap(t)), enclosed: beta is taken as exactly that double.

    Args:
        profile: displacements count from its origin.
        beta: logit scale.
        low: first displacement.
        high: last displacement.
        period: multiples of it are left out: those of the planes' common period tie, each with a term of exactly 1.
    """
    planes = rotations(profile)
    with balls.precision(_BITS):
        sizes = [plane.phase.size_ball(_BITS) for plane in planes]
        weight = balls.ball(0)
        for size in sizes:
            weight += size
        squares = [_deficit(plane.ball(0, _BITS).sin_pi(), size) for plane, size in zip(planes, sizes, strict=True)]
        base, scale, total = balls.ball(0), balls.ball(Fraction(beta)) / weight, balls.ball(0)
        for square in squares:
            base += square
        for t in range(low, high + 1):
            if t == 0 or (period is not None and t % period == 0):
                continue
            deficit = -base
            for plane, size in zip(planes, sizes, strict=True):
                deficit += _deficit(plane.ball(t, _BITS).sin_pi(), size)
            total += (-scale * deficit).exp()
        return total


def _deficit(sine: balls.Ball, size: balls.Ball) -> balls.Ball:
    return 2 * size * sine * sine

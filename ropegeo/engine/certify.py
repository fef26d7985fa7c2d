r"""The deficit of a profile at one displacement, certified.

A profile is logit(t) = constant + Re sum_k c_k exp(i t theta_k), t counted from its origin. With w_k = |c_k|, phi_k =
arg(c_k)/(2 pi) and alpha_k = theta_k/(2 pi), its *deficit*

    D(t) = sum_k w_k (1 - cos(2 pi (t alpha_k + phi_k))) = sum_k 2 w_k sin(pi (t alpha_k + phi_k))^2  >= 0

is how far the logit lies below constant + sum_k w_k. For a peaked profile (all phi_k = 0) D(t) is the gap.

The sine form is a sum of terms that are not negative, so nothing cancels: a relative error of each term is one of the
sum, however small D is. A ball of t alpha_k + phi_k has to know that number's distance to the nearest integer; the
precision is doubled until the digits asked for are proved.

Zero is decided, not measured, where it can be: D(t) = 0 iff every t alpha_k + phi_k with w_k > 0 is an integer, and
`exact_turns.py` says when that is known. Where it is not, D(t) = 0 would show as an enclosure that holds 0 after
`MAX_WORKING_BITS`.
"""

from __future__ import annotations

from fractions import Fraction

from ropegeo.engine.exact_turns import rotations
from ropegeo.exact import Enclosure, balls
from ropegeo.exact.enclosure import DOUBLE_DIGITS
from ropegeo.heads import LogitProfile

MAX_WORKING_BITS = 1 << 17
"""Where an enclosure is returned as it is: only a zero that is not decided, or a size beyond 10**9000, comes here."""
_FIRST_BITS = 128


class ExactDeficit:
    """D(t) of one profile, in units of the profile's weight, with certified digits for t of any size.

    Balls of the angles are kept per precision, so that many displacements cost little more than their sines.

    Example:
        >>> import numpy as np
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> profile = LogitProfile(spectrum=RopeSpectrum.from_angle("1"), coefficients=np.ones(1))
        >>> ExactDeficit(profile).at(710).digits()
        '1.8173640789234051e-9'
    """

    def __init__(self, profile: LogitProfile) -> None:
        self.planes = rotations(profile)

    def is_zero(self, t: int) -> bool:
        """Whether D(t) is known to be exactly 0."""
        return all(plane.is_whole(t) for plane in self.planes)

    def at(self, t: int, digits: int = DOUBLE_DIGITS) -> Enclosure:
        """D(t) / sum_k w_k.

        Args:
            t: displacement from the profile's origin; any integer.
            digits: significant digits to prove.

        Returns:
            Exactly 0 where D(t) is known to be; else an enclosure that proves the digits. Where D(t) sits on a rounding
            boundary, so that no precision proves them, its relative width is below 10**(-2 digits - 10).
        """
        if self.is_zero(t):
            return Enclosure.exactly(0)
        bits = _FIRST_BITS
        while bits < t.bit_length() + 4 * digits + 32:
            bits *= 2
        while True:
            result = self._enclosed(t, bits)
            narrow = (result.high - result.low) * 10 ** (2 * digits + 10) < result.low
            if narrow or bits >= MAX_WORKING_BITS or result.proves(digits):
                return result
            bits *= 2

    def _enclosed(self, t: int, bits: int) -> Enclosure:
        with balls.precision(bits):
            total, weight = balls.ball(0), balls.ball(0)
            for plane in self.planes:
                size, sine = plane.phase.size_ball(bits), plane.ball(t, bits).sin_pi()
                total += size * sine * sine
                weight += size
            value = 2 * total / weight
        if not value.is_finite():
            return Enclosure(low=Fraction(0), high=Fraction(2))
        found = Enclosure.of_ball(value)
        return Enclosure(low=max(found.low, Fraction(0)), high=min(found.high, Fraction(2)))

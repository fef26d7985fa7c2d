r"""One plane with a phase, exactly: the margin of any one-plane profile at any length, by first returns.

With one active plane, coefficient c = |c| exp(2 pi i phi) and alpha = theta/(2 pi), distance d scores
|c| cos(2 pi x_d), x_d = phi + (d - origin) alpha, so the margin of target D in units of |c| is

    min over d != D of cos(2 pi x_D) - cos(2 pi x_d) = 2 sin(pi (x_d + x_D)) sin(pi (x_d - x_D)),

attained where x_d is nearest to 0, (d - origin) alpha nearest to -phi: `TurnOrder.nearest` lists two such distances at
least, of which one is not D.

The gap is exactly 0 iff x_d - x_D = (d - D) alpha or x_d + x_D = (d + D - 2 origin) alpha + 2 phi is an integer.
Fractions decide if phi or alpha is rational (`exact_turns.py`: phi is a multiple of 1/8 or irrational, and with it 2
phi). If neither is, the difference is no integer, and for an algebraic theta the sum is none: with d + D = 2 origin it
is 2 phi, else exp(i (d + D - 2 origin) theta) would be algebraic, against Lindemann. For an irrational angle with pi in
it and such a phi nothing is proved: the bits are doubled up to `MOST_BITS`, and an enclosure that still holds 0 does
not tell the sign. No such angle is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial

from ropegeo.engine.exact_turns import Phase, Turn
from ropegeo.engine.first_return import TurnOrder
from ropegeo.engine.letter_exact import sharpened
from ropegeo.engine.margin import MarginCurve, MarginPoint, check_lengths, check_target
from ropegeo.errors import InvalidInputError
from ropegeo.exact import Enclosure, balls, short
from ropegeo.exact.enclosure import DOUBLE_DIGITS, least
from ropegeo.heads import LogitProfile

MOST_BITS = 1 << 16
_GRID = 1 << 64


def one_plane_phase_curve(
    profile: LogitProfile, lengths: Sequence[int], target: int, digits: int = DOUBLE_DIGITS
) -> MarginCurve:
    """Margin of a profile with one active plane and any coefficient, at any length, exactly.

    There is one key content and one query content, so `best` and `worst` are the margin itself.

    Args:
        profile: exactly one coefficient is not 0; it is taken as exactly that pair of doubles.
        lengths: n, each above the target, up to 10**1000.
        target: distance of the right position.
        digits: significant digits wanted.

    Returns:
        The curve of (logit(target) - largest logit at another distance)/|c|.

    Raises:
        InvalidInputError: a length below 2 or not above the target, or not one active plane.

    Accuracy: relative error below 10**-(digits + 3), exactly 0 where it is; see the module for angles with pi in them.

    Source: ours; proof in the module. docs/MATHEMATICS.md, section 4, for the margin.

    Example:
        >>> import numpy as np
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> profile = LogitProfile(spectrum=RopeSpectrum.from_angle("1"), coefficients=np.array([3 - 4j]))
        >>> curve = one_plane_phase_curve(profile, [7, 10**30], target=1)
        >>> [(point.margin.digits(6), point.at) for point in curve.points]
        [('0.397358', -1), ('-0.00264183', 28185989226416842972461706977)]
    """
    ns = check_lengths("margin_curve", lengths)
    check_target("margin_curve", target, ns)
    if len(profile.active_planes) != 1:
        raise InvalidInputError(
            f"margin_curve: needs one active plane; {len(profile.active_planes)} coefficients are not 0"
        )
    (plane,) = profile.active_planes
    turn = Turn(profile.spectrum.angles[plane])
    phase = Phase(complex(profile.coefficients[plane]))
    order = TurnOrder(
        turn.angle,
        max(ns),
        centre=Fraction(profile.origin),
        grid=8 if phase.rational is not None else _GRID,
        blur=0 if phase.rational is not None else 1,
    )
    points = {}
    for n in sorted(set(ns)):
        rivals = [d for d, _ in order.nearest([-phase.point(order.scale)], n) if d != target]
        margin, winner = sharpened(
            partial(_gaps, turn, phase, profile.origin, target, rivals),
            least,
            n + abs(profile.origin),
            digits,
            MOST_BITS,
        )
        points[n] = MarginPoint(
            length=n, margin=margin, best=margin, worst=margin, at=rivals[winner] - target, method="first_return"
        )
    return MarginCurve(
        points=tuple(points[n] for n in ns),
        margin_of=f"target at distance {short(target)}",
        inputs="this query and key content",
        beta=profile.weight,
    )


def _gaps(turn: Turn, phase: Phase, origin: int, target: int, rivals: list[int], bits: int) -> list[Enclosure]:
    """`_gap` to every rival."""
    return [_gap(turn, phase, origin, target, d, bits) for d in rivals]


def _gap(turn: Turn, phase: Phase, origin: int, target: int, d: int, bits: int) -> Enclosure:
    """cos(2 pi x_D) - cos(2 pi x_d); exactly 0 where the module's rules say so."""
    steps = Fraction(d + target - 2 * origin)
    whole = turn.is_whole(Fraction(d - target), Fraction(0))
    if whole or (phase.rational is not None and turn.is_whole(steps, 2 * phase.rational)):
        return Enclosure.exactly(0)
    with balls.precision(bits):
        total = turn.ball(steps, Fraction(0), bits) + 2 * phase.ball(bits)
        difference = turn.ball(Fraction(d - target), Fraction(0), bits)
        return Enclosure.of_ball(2 * total.sin_pi() * difference.sin_pi())

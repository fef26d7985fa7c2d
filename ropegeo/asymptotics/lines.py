"""What is drawn over the data of a fit: laws with their bands, bounds, and the staircase of a known angle.

Everything is computed here, as logarithms at lengths of any size; a picture only draws it.

Source: docs/MATHEMATICS.md, sections 5 and 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ropegeo._arrays import FloatArray
from ropegeo.asymptotics.bounds import simultaneous_bound
from ropegeo.asymptotics.data import DecayData, middle_log
from ropegeo.asymptotics.fitted_law import LawFit
from ropegeo.asymptotics.laws import LARGEST_LENGTH, logarithms
from ropegeo.engine.diophantine import one_plane_staircase
from ropegeo.exact import ClosedForm

SMOOTH, STEPPED, KNOTS = 81, 600, 24
"""Lengths at which a line is computed, and its band: that costs two linear programs each where there is no noise."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CurveLine:
    """A margin as a function of the length, ready to be drawn.

    Attributes:
        name: what it is, for a legend.
        lengths: n, increasing.
        log_margin: natural logarithms; NaN where the margin is not positive.
        band: lower and upper end at each length, or None.
        band_name: what the band is, for a legend.
        is_stepped: whether it is constant from each length to the next.
    """

    name: str
    lengths: tuple[int, ...]
    log_margin: Float[FloatArray, " points"]
    band: Float[FloatArray, "points 2"] | None = None
    band_name: str = ""
    is_stepped: bool = False


def law_line(fit: LawFit, data: DecayData) -> CurveLine | None:
    """A fitted law over the lengths of the data, with its band.

    Args:
        fit: of `DecayFit.fits`.
        data: the points it was fitted to.

    Returns:
        None where the law cannot be drawn: it was read from a file, which does not hold it.
    """
    if fit.shape is None or not data.lengths:
        return None
    is_stepped = fit.law == "staircase"
    count = STEPPED if is_stepped else SMOOTH
    lengths = spaced_lengths(data.lengths[0], data.lengths[-1], count)
    if len(data.lengths) <= count:  # so that the line passes by the points as it should, which may end a step
        after = [n + 1 for n in data.lengths[:-1]] if is_stepped else []
        lengths = tuple(sorted({*lengths, *data.lengths, *after}))
    heights = fit.shape.log_margin(lengths)
    band = None
    # At a few of the lengths, and its distance from the law interpolated: a convex function, so that the band of a law
    # that is linear in its parameters becomes a little wider by that and never narrower.
    knots = tuple(sorted({*lengths[:: max(1, len(lengths) // KNOTS)], lengths[-1]}))
    middle, ends = fit.shape.log_margin(knots), None if is_stepped else fit.shape.band(knots)
    if ends is not None:
        x, at = logarithms(lengths), logarithms(knots)
        band = heights[:, None] + np.column_stack([np.interp(x, at, ends[:, side] - middle) for side in (0, 1)])
    return CurveLine(
        name=f"law: {fit.law}",
        lengths=lengths,
        log_margin=heights,
        band=band,
        band_name="laws as near to every point" if fit.shape.is_exact else "95 % band of the law",
        is_stepped=is_stepped,
    )


def staircase_line(angle: ClosedForm, data: DecayData, first: int, last: int) -> CurveLine | None:
    """The exact margin of one plane of a known angle, in units of beta, at every length.

    Args:
        angle: radians per position.
        data: whose offset says the reach.
        first: smallest length.
        last: largest length.

    Returns:
        None where the data do not say how far a length sees, or the first one sees nothing.
    """
    if not data.reach_known or min(data.reaches_at([first])) < 1:
        return None
    steps = one_plane_staircase(angle, max(data.reaches_at([last])))
    begins = (_first_to_see(data, t) for t in steps.steps)
    lengths = tuple(sorted({first, last, *(n for n in begins if first < n < last)}))
    if len(lengths) > STEPPED:  # finer than a picture: milliseconds each
        lengths = spaced_lengths(first, last, STEPPED)
    places = [steps.index_at(reach) for reach in data.reaches_at(lengths)]
    heights = {place: middle_log(steps.margin(place)) for place in set(places)}
    log_margin = np.array([heights[place] for place in places])
    return CurveLine(name="one plane", lengths=lengths, log_margin=log_margin, is_stepped=True)


def bound_line(planes: int, data: DecayData, first: int, last: int) -> CurveLine | None:
    """What no index head on so many planes exceeds, in units of beta: 2 sin(pi (T+1)^(-1/F))^2.

    Args:
        planes: F >= 1.
        data: whose offset says the reach T.
        first: smallest length.
        last: largest length.

    Returns:
        None where the bound does not hold: the reach is not known, or T + 1 < 2^F at all lengths.

    Accuracy: relative error below 1e-14; from T = 1e150 on it is 2 pi^2 (T+1)^(-2/F), which is larger by as little.

    Source: docs/MATHEMATICS.md, sections 5 and 7; proof in derivations, `many_planes`.
    """
    if not data.reach_known:
        return None
    spaced = spaced_lengths(first, last, SMOOTH)
    lengths = [
        n
        for n, reach in zip(spaced, data.reaches_at(spaced), strict=True)
        if reach >= 1 and (reach + 1).bit_length() > planes
    ]
    reaches = data.reaches_at(lengths)
    near = np.array([float(reach) for reach in reaches if reach < LARGEST_LENGTH])
    heights = [
        *np.log(simultaneous_bound(near, np.full(near.size, float(planes)))).tolist(),
        *(math.log(2) + 2 * math.log(math.pi) - 2 / planes * math.log(reach + 1) for reach in reaches[near.size :]),
    ]
    name = "no one-plane head is higher: 2 sin²(π/(T+1))"
    if planes > 1:
        name = f"no head on {planes} planes is higher: 2 sin²(π(T+1)^(−1/{planes}))"
    return CurveLine(name=name, lengths=tuple(lengths), log_margin=np.array(heights)) if lengths else None


def curve_line(name: str, data: DecayData, *, is_stepped: bool) -> CurveLine:
    """Margins of a head as a line.

    Args:
        name: for the legend.
        data: of `curve_data`, at all lengths that are drawn.
        is_stepped: whether they are constant from each length to the next.
    """
    return CurveLine(name=name, lengths=data.lengths, log_margin=data.log_margin, is_stepped=is_stepped)


def spaced_lengths(first: int, last: int, count: int) -> tuple[int, ...]:
    """At most so many lengths of any size, evenly spaced in the logarithm, with both ends.

    Example:
        >>> spaced_lengths(10, 1000, 5), spaced_lengths(3, 5, 9)
        ((10, 32, 100, 316, 1000), (3, 4, 5))
    """
    octaves = math.log2(last) - math.log2(first)
    between = set()
    for step in range(1, count - 1):
        whole, part = divmod(step * octaves / (count - 1), 1)
        scaled = first * int(2.0 ** (60 + part)) << int(whole)
        between.add((scaled + (1 << 59)) >> 60)
    return tuple(sorted({first, last, *(n for n in between if first < n < last)}))


def _first_to_see(data: DecayData, displacement: int) -> int:
    """The first length whose reach is at least this."""
    if data.best_over is None:
        return displacement + 1 + data.offset
    return min(2 * displacement, displacement + 1 + data.best_over)

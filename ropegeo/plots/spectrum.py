"""Pictures of B_m over the distance, and of the bases that are admissible for a length."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.limits.bases import AdmissibleBases
from ropegeo.plots.canvas import BLACK, BLUE, FAINT, GREEN, VERMILLION, new_figure, plain, settings
from ropegeo.plots.ticks import log_ticks


def spectrum_figure(
    ranges: tuple[Int[IntArray, " bins"], Float[FloatArray, " bins"], Float[FloatArray, " bins"]],
    *,
    title: str,
    length: int,
    first_negative: int | None,
    bases: AdmissibleBases | None = None,
) -> Figure:
    """B_m over m, with the first m where it is negative; below, the admissible bases as bars.

    Args:
        ranges: first m, smallest and largest B_m of runs of neighbouring m, as of `scores.score_ranges`.
        title: headline.
        length: n, marked where it lies within the picture.
        first_negative: the first m with B_m < 0.
        bases: the set for `length`; left out if not given or empty.
    """
    with settings():
        drawn = bases is not None and bases.intervals
        figure = new_figure(title, height=4.9 if drawn else 3.6)
        figure.set_layout_engine("constrained")
        panels = figure.subplots(2 if drawn else 1, 1, squeeze=False, height_ratios=[3, 1] if drawn else [1])[:, 0]
        _scores(panels[0], ranges, length, first_negative)
        if bases is not None and drawn:
            _bases(panels[1], bases)
    return figure


def _scores(
    axes: Axes, ranges: tuple[IntArray, FloatArray, FloatArray], length: int, first_negative: int | None
) -> None:
    starts, lows, highs = ranges
    axes.axhline(0, color=BLACK, linewidth=0.8)
    axes.fill_between(starts, lows, highs, step="post", color="#B9D9EC", linewidth=0, label="all B_m", gid="scores")
    axes.plot(starts, lows, color=BLUE, linewidth=0.8, drawstyle="steps-post", label="smallest of neighbours")
    end = float(starts[-1] + max(1, int(np.diff(starts).max(initial=1))))
    axes.set_xlim(0, 1.01 * end)
    if length <= end:
        axes.axvline(length, color=FAINT, linestyle=(0, (4, 2)), linewidth=1.2, label=f"length {length}")
    if first_negative is not None and first_negative < end:
        axes.plot([first_negative], [0], "v", color=VERMILLION, markersize=7, gid="negative",
                  label=f"first negative at m = {first_negative}")  # fmt: skip
    axes.set(xlabel="distance m (positions)", ylabel="B_m = sum of cos(m angle)")
    axes.legend(loc="upper right", ncols=2)


def _bases(axes: Axes, bases: AdmissibleBases) -> None:
    """Bars over log10 of the base; the half line runs out of the picture."""
    first, last = (math.log10(float(bases.intervals[at].low)) for at in (0, -1))
    room = max(0.15, 0.15 * (last - first))
    left, right = max(0.0, first - room), last + 3 * room
    for at, each in enumerate(bases.intervals):
        low = math.log10(float(each.low))
        high = right if each.high is None else math.log10(float(each.high))
        axes.axvspan(low, high, ymin=0.15, ymax=0.85, color=GREEN, linewidth=0.4, gid=f"interval{at}")
    axes.set_xlim(left, right)
    axes.set_ylim(0, 1)
    ticks = log_ticks(left, right)
    axes.set_xticks([at for at, _ in ticks.major], labels=[text for _, text in ticks.major])
    axes.set_xticks(ticks.minor, minor=True)
    axes.set_yticks([])
    axes.set_xlabel("base")
    count = len(bases.intervals)
    text = (
        f"bases with B_m >= 0 for m < {bases.length}: {count} interval{'s' if count > 1 else ''}, the last without end"
    )
    axes.set_title(plain(text, 200, 100), fontsize=8.5)

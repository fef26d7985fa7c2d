"""Axes that hold log10 of lengths and margins of any size, and the legend under them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Patch

from ropegeo._arrays import FloatArray
from ropegeo.plots.ticks import log_ticks, whole_numbers


def log_axes(axes: Axes, n: Sequence[float], heights: Float[FloatArray, " values"]) -> None:
    """Limits and ticks for positions log10 n and heights log10 margin; heights that are not finite do not count."""
    shown = heights[np.isfinite(heights)]
    low, high = (float(shown.min()), float(shown.max())) if shown.size else (-1.0, 0.0)  # nothing positive: a decade
    axes.set_xlim(*_with_room(min(n), max(n)))
    axes.set_ylim(*_with_room(low, high))
    for axis, ticks in (
        (axes.xaxis, whole_numbers(log_ticks(*axes.get_xlim()))),
        (axes.yaxis, log_ticks(*axes.get_ylim())),
    ):
        axis.set_ticks([at for at, _ in ticks.major], labels=[text for _, text in ticks.major])
        axis.set_ticks(ticks.minor, minor=True)
    axes.grid(color="#E5E5E5", linewidth=0.6)
    axes.set_axisbelow(True)


def _with_room(low: float, high: float) -> tuple[float, float]:
    """Limits a little outside, at least an eighth of a decade apart, and half a decade for a single value."""
    room = max(0.04 * (high - low), (0.12 - (high - low)) / 2 if high > low else 0.25)
    return low - room, high + room


def legend_below(figure: Figure | SubFigure, axes: Axes) -> None:
    """The legend under the axes, in as many columns as fit the width."""
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(handles)), key=lambda at: isinstance(handles[at], Patch))
    for columns in (3, 2, 1):
        legend = figure.legend(
            [handles[at] for at in order], [labels[at] for at in order], loc="outside lower center", ncols=columns
        )
        if columns == 1 or legend.get_window_extent().width <= 0.98 * figure.bbox.width:
            return
        legend.remove()

"""The picture of a fit: data, law, band, bound and theory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ropegeo._arrays import FloatArray
from ropegeo.asymptotics.data import DecayData
from ropegeo.asymptotics.lines import CurveLine
from ropegeo.plots.canvas import BLACK, BLUE, COLOURS, FAINT, GREEN, SKY, VERMILLION, new_figure, plain, settings
from ropegeo.plots.log_axes import legend_below, log_axes

MANY = 2000
"""More points than this are drawn as an image within the picture."""


def fit_figure(
    given: DecayData,
    used: DecayData,
    *,
    title: str,
    subtitle: str = "",
    law: CurveLine | None = None,
    bound: CurveLine | None = None,
    theory: CurveLine | None = None,
) -> Figure:
    """Margins against length with what is fitted to them, both on logarithmic axes of any range.

    Lengths whose margin is 0 or below are crosses on the lower edge, where a logarithmic axis has no place for them.

    Args:
        given: all rows.
        used: the points that the law is fitted to: the ends of the steps of a staircase.
        title: headline.
        subtitle: a line under it.
        law: the fitted law, with its band.
        bound: what no head of the kind exceeds.
        theory: the exact curve of a head.
    """
    with settings():
        figure = new_figure(title, height=4.8)
        figure.set_layout_engine("constrained")
        axes = figure.add_subplot()
        axes.set_title(plain(subtitle or "margins and lengths", 200, 100), fontsize=8.5)
        unit = "units of beta" if given.unit == "beta" else "units of the data"
        axes.set(xlabel="length n (positions)", ylabel=f"margin ({unit})")
        drawn = [_log10(data.log_margin) for data in (given, used)]
        if bound is not None:
            drawn.append(_draw(axes, bound, color=GREEN, linestyle=(0, (6, 2)), linewidth=1.6, zorder=3, gid="bound"))
        if theory is not None:
            # Over the law and dashed: where both coincide, both are seen.
            style: Any = {"color": VERMILLION, "linestyle": (0, (3, 2)), "linewidth": 1.2}
            drawn.append(_draw(axes, theory, zorder=5, gid="theory", **style))
        if law is not None:
            drawn.append(_draw(axes, law, color=BLUE, linewidth=1.9, zorder=4, gid="law"))
        _draw_points(axes, given, used)
        log_axes(axes, [math.log10(n) for n in (*given.lengths, *used.lengths)], np.concatenate(drawn))
        if law is not None and law.band is not None:
            _draw_band(axes, law, law.band)
        _draw_deviations(axes, given)
        legend_below(figure, axes)
    return figure


def _log10(logarithms: Float[FloatArray, " values"]) -> Float[FloatArray, " values"]:
    return logarithms / math.log(10)


def _positions(lengths: tuple[int, ...]) -> FloatArray:
    return np.array([math.log10(n) for n in lengths])


def _draw(axes: Axes, line: CurveLine, **style: Any) -> FloatArray:
    heights = _log10(line.log_margin)
    steps: dict[str, Any] = {"drawstyle": "steps-post"} if line.is_stepped else {}
    axes.plot(_positions(line.lengths), heights, label=plain(line.name, 80), **steps, **style)
    return heights


def _draw_points(axes: Axes, given: DecayData, used: DecayData) -> None:
    size = 5.5 if len(used.lengths) <= 60 else 3.5 if len(used.lengths) <= 1000 else 2
    seen = set(used.lengths)
    others = given.at(np.array([n not in seen for n in given.lengths], dtype=bool) & given.positive)
    many = len(others.lengths) > MANY
    if given.begins:
        axes.plot(
            _positions(given.lengths), _log10(given.log_margin), color=FAINT, linewidth=0.9, zorder=2,
            drawstyle="steps-post", label="the data's steps", gid="given",
        )  # fmt: skip
    elif others.lengths:
        axes.plot(
            _positions(others.lengths), _log10(others.log_margin), "o", color=FAINT, markersize=1 if many else 2.5,
            zorder=2, label="other points given", gid="given", rasterized=many,
        )  # fmt: skip
    edge: Any = {"markeredgecolor": BLACK, "markeredgewidth": 0.8 if size > 4 else 0.3}
    if used.lengths:
        axes.plot(
            _positions(used.lengths), _log10(used.log_margin), "o", color=COLOURS["asked"], markersize=size,
            label="points used" if others.lengths else "data", gid="used", rasterized=len(used.lengths) > MANY,
            zorder=6 if len(used.lengths) <= 200 else 2.6, **edge,  # a cloud of points would hide the law
        )  # fmt: skip
    lost = _positions(given.at(~given.positive).lengths)
    if lost.size:
        axes.plot(
            lost, np.zeros(lost.size), "X", transform=axes.get_xaxis_transform(), clip_on=False, zorder=7,
            color=COLOURS["asked"], markersize=6 if lost.size <= 60 else 3.5, label="margin 0 or below", gid="lost",
            **edge,
        )  # fmt: skip


def _draw_band(axes: Axes, line: CurveLine, band: FloatArray) -> None:
    low, high = axes.get_ylim()
    ends = np.clip(_log10(band.ravel()).reshape(band.shape), low - 1, high + 1)
    axes.fill_between(
        _positions(line.lengths), ends[:, 0], ends[:, 1], color=SKY, alpha=0.3, linewidth=0, zorder=1,
        label=plain(line.band_name, 60), gid="band",
    )  # fmt: skip


def _draw_deviations(axes: Axes, data: DecayData) -> None:
    """Each margin with its standard deviation to both sides; down to the edge where the lower end is not positive."""
    wins = data.positive
    if data.sd is None or not wins.any():
        return
    relative = data.sd[wins] / data.margin[wins]
    heights = _log10(data.log_margin[wins])
    low = np.where(relative < 1, np.log10(np.maximum(1 - relative, 1e-300)), -np.inf)
    axes.vlines(
        _positions(data.at(wins).lengths), np.maximum(heights + low, axes.get_ylim()[0] - 1),
        heights + np.log10(1 + relative), color=FAINT, linewidth=0.8, zorder=2.5, label="one standard deviation",
        gid="sd", rasterized=heights.size > MANY,
    )  # fmt: skip

"""The picture of a limit: how far softmax carries a head at each scale, and the length at which each format fails."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ropegeo._arrays import FloatArray
from ropegeo.limits.limit import Limit
from ropegeo.limits.softmax import SoftmaxLimit
from ropegeo.plots.canvas import BLACK, BLUE, GREEN, ORANGE, VERMILLION, new_figure, plain, settings
from ropegeo.plots.log_axes import legend_below, log_axes
from ropegeo.plots.ticks import log_ticks, whole_numbers

ROW = 0.34
"""Inches of a bar."""


def limit_figure(
    found: Limit,
    *,
    title: str,
    curve: Sequence[SoftmaxLimit],
    bound: Float[FloatArray, " scales"] | None = None,
) -> Figure:
    """n_max against the scale beta; below it, the first length at which each number format fails.

    All axes of lengths and scales are logarithmic. Where no length is right n_max has a gap; where none failed as far
    as was searched it has arrowheads, and a format a hatched bar with one.

    Args:
        found: the limits, with formats or without.
        title: headline.
        curve: the softmax limits to draw, at increasing scales.
        bound: what n_max stays below for any head on one plane, at those scales.
    """
    count = len(found.formats)
    with settings():
        heights = [3.9, 1.75 + ROW * count] if count else [4.4]
        figure = new_figure(title, height=sum(heights) + 0.3)
        figure.set_layout_engine("constrained")
        parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        upper = parts[0].add_subplot()
        _draw_scales(upper, found, curve, bound)
        legend_below(parts[0], upper)
        if count:
            lower = parts[1].add_subplot()
            _draw_formats(lower, found)
            legend_below(parts[1], lower)
    return figure


def _draw_scales(axes: Axes, found: Limit, curve: Sequence[SoftmaxLimit], bound: FloatArray | None) -> None:
    axes.set_title(plain(f"largest length that softmax reaches, rule {found.rule}", 200, 100), fontsize=8.5)
    axes.set(xlabel="logit scale beta (natural units)", ylabel="n_max (positions)")
    betas = np.array([math.log10(limit.beta) for limit in curve])
    heights = _log_lengths(curve)
    drawn = [heights]
    axes.plot(
        betas, heights, color=BLACK, linewidth=1.6, drawstyle="steps-post", zorder=4,
        label="n_max, from exact sums", gid="n_max",
    )  # fmt: skip
    if bound is not None:
        order = (np.log10(2 * np.pi) + betas) / 2
        axes.plot(
            betas, order, color=BLUE, linestyle=(0, (1, 1.2)), linewidth=1.5, label="√(2π beta), for comparison",
            gid="order",
        )  # fmt: skip
        drawn += [order, np.log10(bound)]
        axes.plot(
            betas, drawn[-1], color=VERMILLION, linestyle=(0, (4, 1.5)), linewidth=1.4,
            label="no head on one plane above (proved)", gid="bound",
        )  # fmt: skip
    fails = found.argmax.first_failing_length
    if fails is not None:
        drawn.append(np.array([math.log10(fails)]))
        axes.axhline(
            math.log10(fails), color=GREEN, linestyle=(0, (6, 2)), linewidth=1.4, label="the argmax fails from here on",
            gid="argmax",
        )  # fmt: skip
    endless = np.array([limit.first_failing_length is None for limit in curve])
    if endless.any():
        axes.plot(
            betas[endless], heights[endless], "^", color=BLACK, markersize=4.5, label="right as far as searched",
            gid="endless", zorder=5,
        )  # fmt: skip
    marked = [limit for limit in found.softmax if limit.last_length is not None]
    if marked:
        axes.plot(
            [math.log10(limit.beta) for limit in marked], _log_lengths(marked), "o", color=ORANGE, markersize=6,
            markeredgecolor=BLACK, markeredgewidth=0.8, label="scales in the table", gid="asked", zorder=6,
        )  # fmt: skip
    log_axes(axes, betas.tolist(), np.concatenate(drawn))


def _draw_formats(axes: Axes, found: Limit) -> None:
    formats = found.formats
    names: dict[str, str] = {}
    axes.set_title("first length that fails in the arithmetic of each number format", fontsize=8.5)
    axes.set(xlabel="length n (positions)", ylabel="format (logits)")
    top = 0.0
    for row, each in enumerate(formats):
        first = each.first_failing_length
        end = math.log10(each.max_length if first is None else first)
        top = max(top, end)
        colour, name = (
            (VERMILLION, "fails at the end of the bar") if first is not None else (GREEN, "right as far as searched")
        )
        axes.barh(
            row, end, height=0.6, color=colour, hatch=None if first is not None else "///", edgecolor="white",
            linewidth=0, label=names.setdefault(name, name) if name not in names else None,
            gid="holds" if first is None else "fails",
        )  # fmt: skip
        if first is None:
            axes.plot([end], [row], ">", color=GREEN, markersize=7, clip_on=False, gid="arrow")
        text = f"right to {each.max_length}" if first is None else f"{first}: {each.cause}"
        axes.annotate(text, (end, row), xytext=(8, 0), textcoords="offset points", va="center", fontsize=8.5,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0}, zorder=6)  # fmt: skip
    for mark, colour, dashes, name in (
        (found.argmax.first_failing_length, BLACK, (0, (6, 2)), "fails in exact arithmetic"),
        (found.length, BLUE, (0, (1, 1.2)), "length asked for"),
    ):
        if mark is not None and math.log10(mark) < top + 3:
            top = max(top, math.log10(mark))
            axes.axvline(math.log10(mark), color=colour, linestyle=dashes, linewidth=1.4, label=name)
    axes.set_yticks(
        range(len(formats)), labels=[plain(f"{each.number_format} ({each.logits})", 40) for each in formats]
    )
    axes.set_ylim(len(formats) - 0.4, -0.6)
    axes.set_xlim(0, 1.38 * top)
    ticks = whole_numbers(log_ticks(0, top))
    axes.xaxis.set_ticks([at for at, _ in ticks.major], labels=[text for _, text in ticks.major])
    axes.grid(axis="x", color="#E5E5E5", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)


def _log_lengths(limits: Sequence[SoftmaxLimit]) -> FloatArray:
    """log10 of each n_max; nan where no length is right."""
    return np.array([math.nan if limit.last_length is None else math.log10(limit.last_length) for limit in limits])

"""The picture of a head: one plane on the circle, logits by distance."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle
from matplotlib.ticker import MaxNLocator

from ropegeo._arrays import BoolArray, ComplexArray, FloatArray, IntArray
from ropegeo.construct.geometry import DistanceLogits, PlaneGeometry
from ropegeo.plots.canvas import COLOURS, FAINT, new_figure, settings
from ropegeo.plots.labels import CircleLabel, circle_labels, spread
from ropegeo.plots.ticks import scientific

LABEL_SIZE = 8
LARGE = 10**5
"""From this target distance on, distances are counted from the target."""


def head_figure(geometry: PlaneGeometry, logits: DistanceLogits, *, title: str) -> Figure:
    """One plane of a head on the circle, and the head's logits by distance, as Figure 4A of arXiv 2605.31558.

    Left: keys as points, queries as arrows that end in a ring, so that a key under its query is seen; points closer
    than a few degrees share a label, and labels keep clear of each other. Right: for an index head the logit of any
    token at each distance, its target and the strongest other distance drawn; for a letter head the logit of the match
    and of the strongest rival, with the gap between them shaded.

    Args:
        geometry: queries and keys.
        logits: logits by distance.
        title: headline.
    """
    with settings():
        figure = new_figure(title, height=4.6)  # two fixed frames: the labels need to know their room
        _draw_circle(figure.add_axes((0.068, 0.24, 0.442, 0.61)), geometry)
        _draw_logits(figure.add_axes((0.65, 0.24, 0.335, 0.61)), logits)
        for axes, centre in zip(figure.axes, (0.289, 0.775), strict=True):
            axes.legend(loc="lower center", bbox_to_anchor=(centre, 0.005), bbox_transform=figure.transFigure, ncols=2)
    return figure


def _draw_circle(axes: Axes, geometry: PlaneGeometry) -> None:
    query_at, key_at = geometry.matched
    axes.set_title(f"plane {geometry.plane}: turns by {geometry.angle:.4g} rad per position")
    axes.set(xlabel="first coordinate (units of |v|)", ylabel="second coordinate (units of |v|)", aspect="equal")
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.add_patch(Circle((0, 0), 1, fill=False, edgecolor=FAINT, linewidth=0.8))
    for number, query in enumerate(geometry.queries):
        _arrow(axes, query, matched=number == query_at)
    styles: tuple[tuple[ComplexArray, str, dict[str, Any]], ...] = (
        (np.delete(geometry.keys, key_at), "key", {"color": COLOURS["key"], "markersize": 4, "zorder": 4}),
        (
            np.delete(geometry.queries, query_at),
            "query (arrow to a ring)",
            {"color": COLOURS["query"], "markersize": 8, "fillstyle": "none", "zorder": 3},
        ),
    )
    for points, label, style in styles:
        if points.size:
            axes.plot(*_coordinates(points), "o", label=label, **style)
    match = COLOURS["match"]
    axes.plot(*_coordinates(geometry.keys[[key_at]]), "o", color=match, markersize=6, zorder=6, gid="matched-key")
    axes.plot(
        *_coordinates(geometry.queries[[query_at]]),
        "o", fillstyle="none", color=match, markersize=12, markeredgewidth=1.8, zorder=5, gid="matched-query",
    )  # fmt: skip
    # The legend shows the pair as one: ring and point.
    axes.plot(
        [], [], "o", color=match, markersize=10, markeredgewidth=1.8, markerfacecolor="none", label="matched pair"
    )
    _place_labels(axes, circle_labels(geometry))


def _coordinates(points: ComplexArray) -> tuple[FloatArray, FloatArray]:
    return points.real, points.imag


def _arrow(axes: Axes, query: complex, *, matched: bool) -> None:
    style = {
        "arrowstyle": "-|>",
        "mutation_scale": 11 if matched else 7,
        "color": COLOURS["match" if matched else "query"],
        "linewidth": 1.8 if matched else 0.7,
        "shrinkA": 0,
        "shrinkB": 6 if matched else 4,  # ends at its ring
    }
    tip = (float(query.real), float(query.imag))
    axes.annotate("", xy=tip, xytext=(0, 0), arrowprops=style, zorder=2 if matched else 1)


def _place_labels(axes: Axes, coarser: Iterator[list[CircleLabel]]) -> None:
    """Put the labels outside the circle without overlap, in two columns that hug it, each tied to its point by a line.

    The widths of texts are measured, then the circle takes what room they leave.
    """
    box = axes.get_window_extent()
    pixel = axes.figure.dpi / 72
    gap, away = 2 * pixel, 1.16
    for labels in coarser:
        texts = [
            axes.text(0, 0, label.text, fontsize=LABEL_SIZE, va="center", in_layout=False,
                      linespacing=1.05, color=COLOURS["match" if label.matched else "key"],
                      weight="bold" if label.matched else "normal", gid="circle-label")
            for label in labels
        ]  # fmt: skip
        extents = [text.get_window_extent() for text in texts]
        heights = np.array([extent.height for extent in extents]) + gap
        sides = [[n for n, label in enumerate(labels) if (math.cos(label.angle) >= 0) == right] for right in (0, 1)]
        if all(heights[side].sum() <= box.height for side in sides):
            break
        for text in texts:
            text.remove()
    radius = (box.height / 2 - heights.max()) / away
    while True:
        places: dict[int, tuple[float, float]] = {}
        for side in sides:
            wanted = [away * radius * math.sin(labels[n].angle) for n in side]
            for n, y in zip(side, spread(wanted, heights[side], box.height / 2), strict=True):
                nearest = max(abs(y) - heights[n] / 2, 0)  # of the text's box to the horizontal through the centre
                places[n] = (math.sqrt(max((away * radius) ** 2 - nearest**2, 0)) + 2 * gap, y)
        if radius < box.height / 8 or all(
            x + extents[n].width <= box.width / 2 - 2 * gap for n, (x, _) in places.items()
        ):
            break
        radius *= 0.98
    axes.set_xlim(-box.width / 2 / radius, box.width / 2 / radius)
    axes.set_ylim(-box.height / 2 / radius, box.height / 2 / radius)
    axes.set_xticks([-1, 0, 1], ["−1", "0", "1"])
    axes.set_yticks([-1, 0, 1], ["−1", "0", "1"])
    for n, (x, y) in places.items():
        sign = 1 if n in sides[1] else -1
        texts[n].set(x=sign * x / radius, y=y / radius, ha="left" if sign > 0 else "right")
        rim = 1.03 * np.exp(1j * labels[n].angle)
        ends = ([rim.real, sign * (x - gap) / radius], [rim.imag, y / radius])
        axes.add_line(Line2D(*ends, color=FAINT, linewidth=0.6, zorder=0))


def _draw_logits(axes: Axes, logits: DistanceLogits) -> None:
    axes.set(ylabel="logit (natural units)")
    # Distances with many digits are shown from the target: their texts would be too wide, and as doubles they collapse.
    base = logits.target if logits.target is not None and logits.target >= LARGE else 0
    axes.set_xlabel("distance d − target (positions)" if base else "distance d (positions)")
    d, match = logits.distances - base, logits.match
    few, many = d.size <= 40, d.size > 4000
    line: dict[str, Any] = {"linewidth": 1.1, "markersize": 3.5, "rasterized": many}
    values = [match]
    if logits.rival is not None:
        axes.set_title("logits by distance")
        values.append(logits.rival)
        axes.plot(d, match, "-o" if few else "-", color=COLOURS["match"], label="match", **line)
        axes.plot(d, logits.rival, "--s" if few else "--", color=COLOURS["rival"], label="strongest rival", **line)
        wins: BoolArray = match > logits.rival
        fill = partial(axes.fill_between, d, match, logits.rival, interpolate=True, linewidth=0, rasterized=many)
        if wins.any():
            fill(where=wins, label="gap", color=COLOURS["gap"], alpha=0.3)
        if not wins.all():
            fill(where=~wins, label="rival wins", facecolor="none", edgecolor=FAINT, hatch="xx")
    else:
        # A long curve oscillates within a pixel: thin and faint it stays a texture, and the marks on it are seen.
        crowded = {"linewidth": 0.6, "color": FAINT} if d.size > 200 else {"color": COLOURS["key"]}
        axes.plot(d, match, "-o" if few else "-", label="any token", **{**line, **crowded})
        _mark_target(axes, d, match, None if logits.target is None else logits.target - base, large=base > 0)
    axes.set_xlim(d[0] - 0.03 * max(d[-1] - d[0], 1), d[-1] + 0.03 * max(d[-1] - d[0], 1))
    ticks = [tick for tick in MaxNLocator(5, integer=True).tick_values(d[0], d[-1]) if d[0] <= tick <= d[-1]]
    axes.set_xticks(ticks, [f"{tick:.0f}".replace("-", "−") for tick in ticks])
    _logit_axis(axes, np.concatenate(values))


def _mark_target(axes: Axes, d: IntArray, match: FloatArray, target: int | None, *, large: bool) -> None:
    """Mark the target and the strongest other distance; with `large`, distances are counted from the target."""
    axes.set_title("logits by distance")
    if target is None:
        return
    named = "target at 0" if large else f"target d = {target}"
    if target not in d:
        axes.set_title(f"{'the target' if large else named} lies outside these distances")
        return
    at = int(np.flatnonzero(d == target)[0])
    others = d != target
    if others.any():
        strongest = match[others].max()
        second = d[others & (match == strongest)]
        shown = ", ".join(f"{at:+d}" if large else f"{at}" for at in second[:2].tolist()).replace("-", "−")
        shown = ("at " if large else "d = ") + shown + (", …" if second.size > 2 else "")
        rank = "runner-up" if strongest < match[at] else "as high:"
        if strongest < match[at]:
            axes.axhspan(strongest, match[at], color=COLOURS["gap"], alpha=0.3, linewidth=0, label="gap in this window")
        axes.plot(
            second, np.full(second.size, strongest), "D", color=COLOURS["rival"], markersize=7, fillstyle="none",
            markeredgewidth=1.8, label=f"{rank} {shown}", gid="runner-up", zorder=4, clip_on=False,
        )  # fmt: skip
    axes.plot(
        [target], [match[at]], "o", color=COLOURS["match"], markersize=9, fillstyle="none", markeredgewidth=1.8,
        label=named, gid="target", zorder=5, clip_on=False,
    )  # fmt: skip


def _logit_axis(axes: Axes, values: FloatArray) -> None:
    """Limits and ticks; where all logits are nearly equal the ticks say by how little they fall below the top one."""
    low, top = float(values.min()), float(values.max())
    span = top - low
    if span <= 1e-14 * abs(top):
        span = max(abs(top), 1e-300)
        low, top = top - span / 2, top + span / 2
    axes.set_ylim(low - 0.06 * span, top + 0.06 * span)
    if span > 1e-3 * max(abs(low), abs(top)):
        locator = MaxNLocator(6, steps=[1, 2, 5, 10])
        ticks = [at for at in locator.tick_values(low, top) if low - 0.05 * span <= at <= top + 0.05 * span]
        axes.set_yticks(ticks, [f"{at:.6g}".replace("-", "−") for at in ticks])
        return
    drops = [drop for drop in MaxNLocator(5).tick_values(0, span) if 0 <= drop <= span]
    axes.set_yticks(
        [top - drop for drop in drops],
        [f"{top:.4g}" + (f" − {scientific(drop)}" if drop else "") for drop in drops],
    )

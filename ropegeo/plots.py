"""Pictures of a built head and of its margin curve: values drawn on axes, nothing computed.

Figures are made without pyplot, so there is no global figure, no display, and no state between calls; matplotlib's
settings are read under a lock, and a user's own matplotlibrc does not change the pictures. Colours are those of Okabe
and Ito, which stay apart for colour-blind readers, and every role also has its own marker or line style. Texts that
come from outside are drawn as they are (no mathtext), in one line.
"""

from __future__ import annotations

import io
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch
from matplotlib.ticker import MaxNLocator

from ropegeo._arrays import BoolArray, FloatArray
from ropegeo._plot_texts import CircleLabel, circle_labels, log_ticks, plain, scientific, spread, whole_numbers
from ropegeo.construct.geometry import DistanceLogits, PlaneGeometry
from ropegeo.engine.margin import MarginCurve, MarginPoint
from ropegeo.errors import InvalidInputError
from ropegeo.exact import Enclosure

SUFFIXES = (".png", ".svg")

# Okabe & Ito, Color Universal Design (2008): the six of their colours that are used, by what they are used for.
BLACK, BLUE, VERMILLION, GREEN, SKY, ORANGE = "#000000", "#0072B2", "#D55E00", "#009E73", "#56B4E9", "#E69F00"
COLOURS = {"key": BLACK, "query": BLUE, "match": VERMILLION, "rival": GREEN, "gap": SKY, "asked": ORANGE}
_FAINT = "#8C8C8C"
_DASHES: tuple[tuple[str, Any], ...] = (
    (GREEN, (0, (6, 2))),
    (ORANGE, (0, (3, 1.5))),
    (SKY, (0, (8, 2, 1.5, 2))),
    (BLUE, (0, (1, 1.5))),
)
_WHY_NO_MARGIN = {
    "tie": ("tie: margin 0", "////"),
    "fails": ("fails: margin below 0", "xx"),
    "undecided": ("sign of the margin undecided", ".."),
}

_DPI = 200
_SMALL = 8
_STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # ships with matplotlib: the same text widths everywhere
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "figure.titlesize": 11,
    "text.usetex": False,
    "savefig.bbox": None,
    "svg.fonttype": "path",  # text as outlines shows the same in every viewer
    "svg.hashsalt": "ropegeo",  # otherwise the ids in the file are random
}
_SETTINGS = threading.RLock()


@contextmanager
def _settings() -> Iterator[None]:
    with _SETTINGS, rc_context(_STYLE):
        yield


def figure_bytes(figure: Figure, suffix: str) -> bytes:
    """A figure as the content of a file; the same figure gives the same bytes.

    Args:
        figure: of `head_figure` or `curve_figure`.
        suffix: `.png` (1600 pixels wide) or `.svg` (text as outlines).

    Raises:
        InvalidInputError: any other suffix.
    """
    kind = suffix.lower()
    if kind not in SUFFIXES:
        raise InvalidInputError(f"figure_bytes: suffix {suffix[:20]!r} is not known; use {' or '.join(SUFFIXES)}")
    # Neither the date nor the version of matplotlib goes into the file.
    metadata = {"Date": None} if kind == ".svg" else {"Software": None}
    buffer = io.BytesIO()
    with _settings():
        figure.savefig(buffer, format=kind[1:], dpi=figure.dpi, metadata=metadata)
    return buffer.getvalue()


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
    with _settings():
        figure = _new_figure(title, height=4.6)
        _draw_circle(figure.add_axes((0.075, 0.24, 0.415, 0.61)), geometry)
        _draw_logits(figure.add_axes((0.625, 0.24, 0.355, 0.61)), logits)
        for axes, centre in zip(figure.axes, (0.2825, 0.8025), strict=True):
            axes.legend(loc="lower center", bbox_to_anchor=(centre, 0.005), bbox_transform=figure.transFigure, ncols=2)
    return figure


def _new_figure(title: str, *, height: float) -> Figure:
    figure = Figure(figsize=(8, height), dpi=_DPI)
    FigureCanvasAgg(figure)
    figure.suptitle(plain(title, 160, 84), y=0.985, parse_math=False)
    return figure


def _draw_circle(axes: Axes, geometry: PlaneGeometry) -> None:
    query_at, key_at = geometry.matched
    axes.set_title(f"plane {geometry.plane}: turns by {geometry.angle:.4g} rad per position")
    axes.set(xlabel="first coordinate (units of |v|)", ylabel="second coordinate (units of |v|)", aspect="equal")
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.add_patch(Circle((0, 0), 1, fill=False, edgecolor=_FAINT, linewidth=0.8))
    for number, query in enumerate(geometry.queries):
        _arrow(axes, query, matched=number == query_at)
    for points, label, style in (
        (np.delete(geometry.keys, key_at), "key", {"color": COLOURS["key"], "markersize": 4, "zorder": 4}),
        (
            np.delete(geometry.queries, query_at),
            "query (arrow to a ring)",
            {"color": COLOURS["query"], "markersize": 8, "fillstyle": "none", "zorder": 3},
        ),
    ):
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


def _coordinates(points: np.ndarray) -> tuple[FloatArray, FloatArray]:
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
            axes.text(0, 0, label.text, fontsize=_SMALL, va="center", parse_math=False, in_layout=False,
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
            x + extents[n].width <= box.width / 2 - 4 * gap for n, (x, _) in places.items()
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
        axes.add_line(Line2D(*ends, color=_FAINT, linewidth=0.6, zorder=0))


def _draw_logits(axes: Axes, logits: DistanceLogits) -> None:
    axes.set(xlabel="distance d (positions)", ylabel="logit (units of beta = 1)")
    d, match = logits.distances, logits.match
    few, many = d.size <= 40, d.size > 4000
    # A long curve may oscillate within a pixel: thin and faint, it stays a texture and its marks stay visible.
    line: dict[str, Any] = {"linewidth": 1.1 if d.size <= 200 else 0.6, "markersize": 3.5, "rasterized": many}
    values = [match]
    if logits.rival is not None:
        axes.set_title("logits by distance")
        values.append(logits.rival)
        axes.plot(d, match, "-o" if few else "-", color=COLOURS["match"], label="match", **line)
        axes.plot(d, logits.rival, "--s" if few else "--", color=COLOURS["rival"], label="strongest rival", **line)
        wins: BoolArray = match > logits.rival
        for won, label, style in (
            (wins, "gap", {"alpha": 0.3, "linewidth": 0}),
            (~wins, "rival wins", {"facecolor": "none", "edgecolor": _FAINT, "hatch": "xx", "linewidth": 0}),
        ):
            if won.any():
                fill = {"color": COLOURS["gap"]} if "alpha" in style else {}
                axes.fill_between(
                    d, match, logits.rival, where=won, interpolate=True, label=label, rasterized=many, **style, **fill
                )
    else:
        axes.plot(
            d, match, "-o" if few else "-", color=COLOURS["key"] if d.size <= 200 else _FAINT, label="any token", **line
        )
        _mark_target(axes, logits)
    axes.set_xlim(d[0] - 0.03 * max(d[-1] - d[0], 1), d[-1] + 0.03 * max(d[-1] - d[0], 1))
    ticks = [tick for tick in MaxNLocator(6, integer=True).tick_values(d[0], d[-1]) if d[0] <= tick <= d[-1]]
    axes.set_xticks(ticks, [f"{tick:.0f}" for tick in ticks])
    _logit_axis(axes, np.concatenate(values))


def _mark_target(axes: Axes, logits: DistanceLogits) -> None:
    d, match, target = logits.distances, logits.match, logits.target
    if target not in d:
        axes.set_title(f"target d = {target} lies outside these distances" if target is not None else "")
        return
    at = int(np.flatnonzero(d == target)[0])
    others = d != target
    axes.set_title("logits by distance")
    if others.any():
        strongest = match[others].max()
        second = d[others & (match == strongest)]
        shown = ", ".join(map(str, second[:2])) + (", …" if second.size > 2 else "")
        rank = "runner-up" if strongest < match[at] else "as high:"
        if strongest < match[at]:
            axes.axhspan(strongest, match[at], color=COLOURS["gap"], alpha=0.3, linewidth=0, label="margin")
        axes.plot(
            second, np.full(second.size, strongest), "D", color=COLOURS["rival"], markersize=7, fillstyle="none",
            markeredgewidth=1.8, label=f"{rank} d = {shown}", gid="runner-up", zorder=4, clip_on=False,
        )  # fmt: skip
    axes.plot(
        [target], [match[at]], "o", color=COLOURS["match"], markersize=9, fillstyle="none", markeredgewidth=1.8,
        label=f"target d = {target}", gid="target", zorder=5, clip_on=False,
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


def curve_figure(
    dense: MarginCurve, asked: MarginCurve, *, title: str, bounds: Mapping[str, FloatArray] | None = None
) -> Figure:
    """Margin against length, both on logarithmic axes of any range (lengths to 1e1000, margins below 1e-2000).

    A logarithmic axis has no place for a margin of 0 or below. Where the head ties, fails, or its sign is undecided,
    the lengths are shaded and hatched over the whole height and the legend says by which length that begins; asked
    points there are crosses on the lower edge. (A symmetrical logarithm would show how deep the head fails, but the
    depth decides nothing, and the same picture would then read in two ways.)

    Args:
        dense: the curve that is drawn as a staircase: it must hold every length at which its values change, or
            its steps are as wide as the gaps between its lengths; in increasing order.
        asked: the lengths to mark.
        title: headline.
        bounds: closed forms by name, one value per length of `dense`, in units of beta; what is not a positive
            finite number is left out.

    Raises:
        InvalidInputError: a bound without one value per length of `dense`.
    """
    bounds = {} if bounds is None else bounds
    for name, values in bounds.items():
        if np.shape(values) != (len(dense.points),):
            raise InvalidInputError(
                f"curve_figure: bound {name!r} needs one value for each of the {len(dense.points)} lengths of dense"
            )
    with _settings():
        figure = _new_figure(title, height=4.8)
        figure.set_layout_engine("constrained")
        axes = figure.add_subplot()
        axes.set_title(plain(f"best and worst over {dense.inputs}", 200, 100), parse_math=False, fontsize=8.5)
        axes.set(xlabel="length n (positions)", ylabel="margin (units of beta)")
        n = np.array([math.log10(length) for length in dense.lengths])
        drawn = _draw_staircases(axes, dense, n)
        for number, (name, values) in enumerate(bounds.items()):
            shown = np.isfinite(values) & (values > 0)
            heights = np.log10(values, where=shown, out=np.full(n.shape, np.nan))
            colour, dash = _DASHES[number % len(_DASHES)]
            axes.plot(n, heights, color=colour, linestyle=dash, linewidth=1.6, label=plain(name, 60), zorder=3)
            drawn.append(heights)
        drawn.append(_draw_asked(axes, asked))
        _log_axes(axes, [math.log10(length) for length in (*dense.lengths, *asked.lengths)], np.concatenate(drawn))
        _shade_where_no_margin(axes, dense, n)
        _legend_below(figure, axes)
    return figure


def _log10(value: Enclosure | None) -> float:
    """log10 of a number known to be positive, of any size; else nan, which is not drawn."""
    if value is None or value.sign != 1:
        return math.nan
    middle = (value.low + value.high) / 2
    return math.log10(middle.numerator) - math.log10(middle.denominator)


def _draw_staircases(axes: Axes, curve: MarginCurve, n: FloatArray) -> list[FloatArray]:
    margin, best, worst = (
        np.array([_log10(getattr(point, name)) for point in curve.points]) for name in ("margin", "best", "worst")
    )
    label = f"margin, {curve.margin_of}"
    # A class of one input, or a head asked for its worst case, has two equal curves: one line, one entry.
    thin = {}
    for name, values, colour, style in (("best", best, BLUE, (0, (5, 1.5))), ("worst", worst, VERMILLION, (0, (1, 1)))):
        if np.array_equal(values, margin, equal_nan=True):
            label += f" (= {name})"
        elif np.isfinite(values).any():
            thin[name] = (values, colour, style)
    dot = "o" if n.size == 1 else ""
    axes.fill_between(n, worst, best, step="post", color=COLOURS["gap"], alpha=0.22, linewidth=0)
    for name, (values, colour, style) in thin.items():
        axes.step(
            n, values, marker=dot, where="post", color=colour, linestyle=style, linewidth=1.1, label=name, zorder=4
        )
    axes.step(
        n, margin, marker=dot, where="post", color=BLACK, linewidth=1.4, label=plain(label, 80), zorder=5, gid="margin"
    )
    return [margin, best, worst]


def _draw_asked(axes: Axes, asked: MarginCurve) -> FloatArray:
    n = np.array([math.log10(length) for length in asked.lengths])
    margin = np.array([_log10(point.margin) for point in asked.points])
    lost = np.isnan(margin)
    size = 6 if n.size <= 40 else 3.5
    style: dict[str, Any] = {"markersize": size, "color": COLOURS["asked"], "markeredgecolor": BLACK, "zorder": 6}
    if not lost.all():
        axes.plot(n, margin, "o", label="asked lengths", gid="asked", **style)
    if lost.any():
        axes.plot(
            n[lost], np.zeros(lost.sum()), "X", transform=axes.get_xaxis_transform(), clip_on=False,
            label="asked, no positive margin", gid="asked-lost", **style,
        )  # fmt: skip
    return margin


def _log_axes(axes: Axes, n: Sequence[float], heights: FloatArray) -> None:
    shown = heights[np.isfinite(heights)]
    for axis, low, high in (
        (axes.xaxis, min(n), max(n)),
        (axes.yaxis, float(shown.min(initial=math.inf)), float(shown.max(initial=-math.inf))),
    ):
        if low > high:  # no positive number at all: an empty decade
            low, high = -1.0, 0.0
        room = max(0.04 * (high - low), 0.02, (0.3 - (high - low)) / 2)
        low, high = low - room, high + room
        (axes.set_xlim if axis is axes.xaxis else axes.set_ylim)(low, high)
        ticks = log_ticks(low, high)
        if axis is axes.xaxis:
            ticks = whole_numbers(ticks)
        axis.set_ticks([at for at, _ in ticks.major], [text for _, text in ticks.major])
        axis.set_ticks(ticks.minor, minor=True)
    axes.grid(color="#E5E5E5", linewidth=0.6)
    axes.set_axisbelow(True)


def _shade_where_no_margin(axes: Axes, curve: MarginCurve, n: FloatArray) -> None:
    """Hatch the runs of lengths without a positive margin; each kind of run is named once, by its first length."""
    named = set()
    runs: list[tuple[int, MarginPoint]] = []
    for number, point in enumerate(curve.points):
        if not runs or runs[-1][1].status != point.status:
            runs.append((number, point))
    right = axes.get_xlim()[1]
    for (number, point), following in zip(runs, [*[n[at] for at, _ in runs[1:]], right], strict=True):
        if point.status == "wins":
            continue
        words, hatch = _WHY_NO_MARGIN[point.status]
        # Exact only if the length before is there too; otherwise it began somewhere since the last one.
        exact = number == 0 or curve.lengths[number - 1] == point.length - 1
        size = str(point.length) if point.length < 10**7 else f"10^{n[number]:.6g}"
        label = None if words in named else f"{words} {'from' if exact else 'by'} n = {size}"
        named.add(words)
        axes.axvspan(n[number], following, facecolor="#F2F2F2", edgecolor="#C8C8C8", hatch=hatch, linewidth=0,
                     zorder=0, label=label, gid="no-margin")  # fmt: skip


def _legend_below(figure: Figure, axes: Axes) -> None:
    """The legend under the axes, in as many columns as fit the width."""
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(handles)), key=lambda at: isinstance(handles[at], Patch))
    for columns in (3, 2, 1):
        legend = figure.legend(
            [handles[at] for at in order], [labels[at] for at in order], loc="outside lower center", ncols=columns
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
        if columns == 1 or legend.get_window_extent().width <= 0.98 * figure.bbox.width:
            return
        legend.remove()

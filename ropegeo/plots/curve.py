"""The picture of a margin curve."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ropegeo._arrays import FloatArray
from ropegeo.engine.margin import MarginCurve, MarginPoint
from ropegeo.errors import InvalidInputError
from ropegeo.exact import Enclosure
from ropegeo.plots.canvas import BLACK, BLUE, COLOURS, GREEN, ORANGE, SKY, VERMILLION, new_figure, plain, settings
from ropegeo.plots.log_axes import legend_below, log_axes

_DASHES: tuple[tuple[str, Any], ...] = (
    (GREEN, (0, (6, 2))),
    (ORANGE, (0, (3, 1.5))),
    (SKY, (0, (8, 2, 1.5, 2))),
    (BLUE, (0, (1, 1.5))),
)
_HATCHED = {
    "tie": ("tie: margin 0", "//"),
    "fails": ("fails: margin below 0", "x"),
    "undecided": ("sign of the margin undecided", ".."),
    "bound": ("upper bound only", "--"),
}


def curve_figure(
    dense: MarginCurve, asked: MarginCurve, *, title: str, bounds: Mapping[str, FloatArray] | None = None
) -> Figure:
    """Margin against length, both on logarithmic axes of any range (lengths to 1e1000, margins below 1e-2000).

    A logarithmic axis has no place for a margin of 0 or below. Where the head ties, fails, or its sign is undecided,
    the lengths are shaded and hatched over the whole height and the legend says by which length that begins; asked
    points there are crosses on the lower edge; `best` and `worst` end where they stop being positive. (A symmetrical
    logarithm would show how deep the head fails, but the depth decides nothing, and the same picture would then read
    in two ways.)

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
    with settings():
        figure = new_figure(title, height=4.8)
        figure.set_layout_engine("constrained")
        axes = figure.add_subplot()
        axes.set_title(plain(f"best and worst over {dense.inputs}", 200, 100), fontsize=8.5)
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
        log_axes(axes, [math.log10(length) for length in (*dense.lengths, *asked.lengths)], np.concatenate(drawn))
        _shade_where_no_margin(axes, dense, n)
        legend_below(figure, axes)
    return figure


def _log10(value: Enclosure | None) -> float:
    """log10 of a number known to be positive, of any size, or of an upper bound; else nan, which is not drawn."""
    if value is not None and value.is_bound:
        return math.log10(value.high.numerator) - math.log10(value.high.denominator)
    if value is None or value.sign != 1:
        return math.nan
    low, high = (math.log10(end.numerator) - math.log10(end.denominator) for end in (value.low, value.high))
    return high + math.log10((1 + 10 ** (low - high)) / 2)  # the middle, without adding fractions of 1e4 digits


def _draw_staircases(axes: Axes, curve: MarginCurve, n: FloatArray) -> list[FloatArray]:
    margin, best, worst = (
        np.array([_log10(getattr(point, name)) for point in curve.points]) for name in ("margin", "best", "worst")
    )
    # A head asked for its worst case, or a short curve, has equal curves: one line, one entry in the legend.
    equal, thin = [f"margin, {curve.margin_of}"], {}
    for name, values, colour, style in (("best", best, BLUE, (0, (5, 1.5))), ("worst", worst, VERMILLION, (0, (1, 1)))):
        if np.array_equal(values, margin, equal_nan=True):
            equal.append(name)
        elif np.isfinite(values).any():
            thin[name] = (values, colour, style)
    dot = "o" if n.size == 1 else ""
    axes.fill_between(n, worst, best, step="post", color=COLOURS["gap"], alpha=0.22, linewidth=0)
    steps: dict[str, Any] = {"where": "post", "marker": dot}
    if np.isfinite(margin).any():
        label = plain(" = ".join(equal), 80)
        axes.step(n, margin, color=BLACK, linewidth=1.4, label=label, zorder=5, gid="margin", **steps)
    for name, (values, colour, dashes) in thin.items():
        axes.step(n, values, color=colour, linestyle=dashes, linewidth=1.1, label=name, zorder=4, gid=name, **steps)
    return [margin, best, worst]


def _draw_asked(axes: Axes, asked: MarginCurve) -> FloatArray:
    n = np.array([math.log10(length) for length in asked.lengths])
    margin = np.array([_log10(point.margin) for point in asked.points])
    lost = np.isnan(margin)
    size = 6 if n.size <= 40 else 3.5
    style: dict[str, Any] = {"markersize": size, "color": COLOURS["asked"], "markeredgecolor": BLACK, "zorder": 6}
    style["markeredgewidth"] = 1 if size > 4 else 0.4
    if not lost.all():
        axes.plot(n, margin, "o", label="asked lengths", gid="asked", **style)
    if lost.any():
        axes.plot(
            n[lost], np.zeros(lost.sum()), "X", transform=axes.get_xaxis_transform(), clip_on=False,
            label="asked, no positive margin", gid="asked-lost", **style,
        )  # fmt: skip
    return margin


def _shade_where_no_margin(axes: Axes, curve: MarginCurve, n: FloatArray) -> None:
    """Hatch the runs of lengths without a margin known to be positive; each kind is named once, by its first length."""
    named = set()
    runs: list[tuple[int, MarginPoint]] = []
    for number, point in enumerate(curve.points):
        if not runs or runs[-1][1].status != point.status:
            runs.append((number, point))
    right = axes.get_xlim()[1]
    for (number, point), following in zip(runs, [*[n[at] for at, _ in runs[1:]], right], strict=True):
        if point.status == "wins":
            continue
        words, hatch = _HATCHED[point.status]
        # Of the lengths between the last one known and the first of a bound nothing is known either.
        first = number - 1 if point.status == "bound" and number else number
        # Exact only if the length before is there too; otherwise it began somewhere since the last one.
        exact = number == 0 or curve.lengths[number - 1] == point.length - 1
        since = "beyond" if first < number else "from" if exact else "by"
        length = curve.lengths[first]
        size = str(length) if length < 10**7 else f"10^{n[first]:.6g}"
        label = None if words in named else f"{words} {since} n = {size}"
        named.add(words)
        axes.axvspan(n[first], following, facecolor="#F2F2F2", edgecolor="#C8C8C8", hatch=hatch, linewidth=0,
                     zorder=0, label=label, gid="no-margin")  # fmt: skip

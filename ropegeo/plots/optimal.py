"""Pictures of best heads: their weights by plane, and their margin by length beside simpler heads."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure

from ropegeo._arrays import FloatArray
from ropegeo.exact import Enclosure
from ropegeo.optimal.curve import OptimalCurve
from ropegeo.optimal.head import OptimalHead
from ropegeo.plots.canvas import BLACK, BLUE, FAINT, GREEN, ORANGE, VERMILLION, new_figure, plain, settings
from ropegeo.plots.log_axes import legend_below, log_axes


def weights_figure(best: OptimalHead, *, title: str) -> Figure:
    """Weight and phase of every plane of a best head, and how often each plane turns within its length.

    Args:
        best: the head.
        title: headline.
    """
    certificate = best.certificate
    window, spectrum = certificate.window, certificate.spectrum
    planes = np.array(best.planes)
    rows = 2 if certificate.phases == "free" else 1
    with settings():
        figure = new_figure(title, height=2.4 + 1.8 * rows)
        figure.set_layout_engine("constrained")
        axes = figure.subplots(rows, 1, sharex=True, squeeze=False, height_ratios=[2, 1][:rows])[:, 0]
        low, high = (f"{math.floor(certificate.low * 1e9) / 1e9:.9f}", f"{math.ceil(certificate.high * 1e9) / 1e9:.9f}")
        axes[0].set_title(
            plain(f"margin at length {window.length}: {low}, no head above {high} (units of beta)", 200, 100),
            fontsize=8.5,
        )
        axes[0].bar(planes, best.weights, width=0.8, color=BLUE, label="weight of the plane", gid="weights")
        axes[0].set_ylabel("weight (share of beta)")
        if best.slow_planes:
            for each in axes:
                each.axvspan(best.slow_planes[0] - 0.5, spectrum.planes - 0.5, color="#EFEFEF", zorder=0, linewidth=0)
            axes[0].plot([], [], "s", color="#DDDDDD", markersize=9, label=f"less than one turn in {window.length}")
        if rows == 2:
            axes[1].axhline(0, color=FAINT, linewidth=0.8)
            axes[1].plot(planes, best.query_phases, "o", color=VERMILLION, markersize=4, label="phase of its query",
                         gid="phases")  # fmt: skip
            axes[1].set_ylabel("phase (radians)")
            largest = max(0.1, *(abs(phase) for phase in best.query_phases))
            axes[1].set_ylim(-1.15 * largest, 1.15 * largest)
        axes[-1].set_xlabel("plane (from 0, fastest first)")
        axes[-1].set_xlim(-0.9, spectrum.planes - 0.1)
        handles = [pair for each in axes for pair in zip(*each.get_legend_handles_labels(), strict=True)]
        figure.legend(*zip(*handles, strict=True), loc="outside lower center", ncols=3)
    return figure


def optimal_figure(curve: OptimalCurve, *, title: str) -> Figure:
    """Margin by length: the best head of each length with the upper bound, equal weights, and the best single plane.

    Both axes are logarithmic; where a margin is not positive its line has a gap.

    Args:
        curve: at least one length.
        title: headline.
    """
    with settings():
        figure = new_figure(title, height=4.6)
        figure.set_layout_engine("constrained")
        axes = figure.add_subplot()
        axes.set_title(plain("every length has a best head of its own", 200, 100), fontsize=8.5)
        axes.set(xlabel="length n (positions)", ylabel="margin (units of beta)")
        n = np.array([math.log10(length) for length in curve.lengths])
        limit = "" if curve.max_planes is None else f" on at most {curve.max_planes} planes"
        lines: list[tuple[str, list[Enclosure], dict[str, object]]] = [
            (
                "upper bound for every head (proved)",
                [point.best.upper_bound for point in curve.points],
                {"color": VERMILLION, "marker": "v", "linestyle": (0, (4, 1.5)), "markersize": 7, "mfc": "none"},
            ),
            (
                f"best head{limit}",
                [point.best.margin for point in curve.points],
                {"color": BLACK, "marker": "o", "linestyle": "-", "markersize": 4},
            ),
            (
                "equal weights on all planes",
                [point.equal_weights for point in curve.points],
                {"color": GREEN, "marker": "s", "linestyle": (0, (6, 2)), "markersize": 4},
            ),
            (
                "best single plane without a phase",
                [point.one_plane for point in curve.points],
                {"color": BLUE, "marker": "^", "linestyle": (0, (1, 1.2)), "markersize": 5},
            ),
        ]
        heights = []
        for name, values, style in lines:
            logs = _log10(values)
            heights.append(logs)
            axes.plot(n, logs, label=name, linewidth=1.5, **style)  # type: ignore[arg-type]
        bound = np.log10([point.any_plane for point in curve.points])
        heights.append(bound)
        axes.plot(n, bound, color=ORANGE, linewidth=1, label="one plane without a phase, whatever its angle")
        log_axes(axes, n.tolist(), np.concatenate(heights))
        legend_below(figure, axes)
    return figure


def _log10(values: list[Enclosure]) -> FloatArray:
    """log10 of each; nan where it is not known to be positive."""
    return np.array([math.log10(float(value)) if value.sign == 1 else math.nan for value in values])

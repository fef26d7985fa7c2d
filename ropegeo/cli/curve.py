"""`ropegeo curve`: margin, best and worst of a head at given lengths, or its whole curve."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group

from ropegeo._version import __version__
from ropegeo.cli.curve_files import csv_text, npz_bytes
from ropegeo.cli.optimal import OPTIMAL, run_curve
from ropegeo.cli.output import Destinations, console, json_text, print_json, suffix_of, table, working
from ropegeo.cli.request import HeadRequest, head_curve, read_head, read_head_file, read_integer, read_lengths
from ropegeo.construct.built import BuiltHead
from ropegeo.construct.recipe import LETTER_MODES
from ropegeo.engine.margin import MarginCurve, MarginPoint
from ropegeo.engine.route_names import AUTO, BOUND, ROUTES
from ropegeo.engine.routes import drawn_lengths, record_curve
from ropegeo.errors import InvalidInputError
from ropegeo.exact import Enclosure, short
from ropegeo.heads import LogitProfile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropegeo.cli.options import CurveOptions, HeadOptions, LengthOptions, OutputOptions, PlotOptions, RopeOptions

TINY = 1e-300
"""Below this a double says nothing of an error; the certified digits do."""
MAX_ROWS = 10**6
SHOWN_ROWS = 60


def run(
    head: HeadOptions,
    rope: RopeOptions,
    lengths: LengthOptions,
    which: CurveOptions,
    output: OutputOptions,
    plot: PlotOptions,
    head_file: str | None,
) -> None:
    """Compute, show, and write what was asked for."""
    if head.planes == OPTIMAL and head_file is None:
        run_curve(head, rope, lengths, which, output, plot)
        return
    written_as = suffix_of(output.output, (".csv", ".json", ".npz"), "--output")
    drawing = suffix_of(plot.plot, (".svg", ".png"), "--plot")
    destinations = Destinations(output.output, plot.plot, force=output.force)
    _check(which)
    request = (
        read_head(head, rope, read_lengths(lengths), ladder=False)
        if head_file is None
        else _from_file(head_file, head, rope, lengths)
    )
    asked = _lengths(request, which)
    with working("computing margins", max(asked)) as progress:
        if which.records:
            curve = record_curve(
                _staircase_of(request),
                max(asked),
                target=request.offset,
                digits=lengths.digits,
                route=which.route,
                progress=progress,
            )
        else:
            curve = head_curve(request, asked, lengths.digits, route=which.route, progress=progress)
    about = {"package_version": __version__, "recipe": request.built.recipe.to_dict()}
    data = {**curve.to_dict(lengths.digits), **about} if written_as == ".json" or output.as_json else {}
    contents: list[tuple[str | None, bytes]] = []
    if written_as == ".csv":
        contents.append((output.output, csv_text(curve, lengths.digits).encode()))
    elif written_as == ".json":
        contents.append((output.output, json_text(data).encode()))
    elif written_as == ".npz":
        contents.append((output.output, npz_bytes(curve, about)))
    if drawing is not None:
        contents.append((plot.plot, _picture(request, curve, drawing)))
    written = destinations.write(*contents)
    if output.as_json:
        print_json(data)
        return
    out = console()
    out.print(head_title(request.built), style="bold")
    out.print(curve_table(curve))
    out.print(f"margin of {curve.margin_of}; best and worst over {curve.inputs}; unit: beta", style="italic")
    if which.records:
        out.print(_records_line(curve, max(asked)))
    if any(point.method == BOUND for point in curve.points):
        out.print("upper bound: certified, by a displacement that nearly returns; the margin lies between 0 and it")
    if len(_shown(curve)) < len(curve.points) and not written:
        out.print("all rows: --json, or --output FILE.csv, .json or .npz")
    for path in written:
        out.print(f"wrote {path}")


def _check(which: CurveOptions) -> None:
    if which.records and which.every is not None:
        raise InvalidInputError("give --records for the steps or --every for evenly spaced lengths, not both")
    if which.route not in (AUTO, *ROUTES):
        raise InvalidInputError(f"--route {which.route!r} is unknown; use one of {', '.join((AUTO, *ROUTES))}")


def _lengths(request: HeadRequest, which: CurveOptions) -> Sequence[int]:
    """The lengths to compute: those asked for, or with --every all multiples of a step up to the one asked for."""
    if (which.records or which.every is not None) and len(request.lengths) != 1:
        raise InvalidInputError("--every and --records go with one --length: the largest")
    if which.every is None:
        return request.lengths
    step, last = read_integer(which.every, "--every"), request.lengths[0]
    if step < 1:
        raise InvalidInputError(f"--every {which.every.strip()[:40]!r} must be at least 1")
    smallest = max(2, (request.offset or request.built.recipe.offset) + 1)
    if last // step > MAX_ROWS:
        raise InvalidInputError(
            f"--every {short(step)} up to length {short(last)} is more than {MAX_ROWS} rows; use a larger step, or "
            "--records for the whole curve of an index head"
        )
    return [*(n for n in range(step, last, step) if n >= smallest), last]


def _staircase_of(request: HeadRequest) -> LogitProfile:
    profile = request.built.profile
    if not isinstance(profile, LogitProfile):
        raise InvalidInputError(
            "--records is for index heads, whose margin is a staircase; this head matches letters: use --every"
        )
    return profile


def _records_line(curve: MarginCurve, length: int) -> str:
    last = curve.points[-1]
    if len(curve.points) == 1:
        return f"one step up to length {short(length)}: after length {short(last.length)} the margin does not fall"
    return f"{len(curve.points)} steps up to length {short(length)}; between them the margin does not change"


def _from_file(path: str, head: HeadOptions, rope: RopeOptions, lengths: LengthOptions) -> HeadRequest:
    asked = read_lengths(lengths)
    if asked is None:
        raise InvalidInputError("curve: give --length n or --lengths a,b,c")
    return read_head_file(path, head, rope, asked)


def drawn_curve(request: HeadRequest, curve: MarginCurve) -> MarginCurve:
    """The curve with every length at which it changes, from the first one that the head can win to its own largest."""
    if any(point.method == BOUND for point in curve.points):  # seconds each: only those asked for
        known = {point.length: point for point in curve.points}
        return replace(curve, points=tuple(known[length] for length in sorted(known)))
    offset = request.offset or request.built.recipe.offset
    first = min(max(2, offset + 1), *curve.lengths, max(curve.lengths))
    between = drawn_lengths(request.built.profile, first, max(*curve.lengths, first + 1), offset=offset)
    return head_curve(request, sorted({*between, *curve.lengths}), 6)


def _picture(request: HeadRequest, curve: MarginCurve, suffix: str) -> bytes:
    from ropegeo.asymptotics.bounds import dirichlet_bound, index_bound_as_printed
    from ropegeo.plots import curve_figure, figure_bytes

    recipe = request.built.recipe
    offset = request.offset or recipe.offset
    dense = drawn_curve(request, curve)
    bounds = {}
    if recipe.mode not in LETTER_MODES:
        # Beyond 1e150 the bounds leave the range of doubles and are not drawn.
        inside = np.array([max(n, offset) < 10**150 for n in dense.lengths])
        ns = np.array([float(n) for n in np.array(dense.lengths, dtype=object)[inside]])
        if len(recipe.planes) == 1:
            for name, values in (
                ("Dirichlet: 1 - cos(2π/(T+1))", dirichlet_bound(np.maximum(offset, ns - 1 - offset))),
                ("Theorem 3.2 as printed: 2π²/n²", index_bound_as_printed(ns)),
            ):
                bounds[name] = np.full(inside.size, np.nan)
                bounds[name][inside] = values
    planes = f"plane {recipe.planes[0]}" if len(recipe.planes) == 1 else f"{len(recipe.planes)} planes"
    title = f"Margin, {recipe.mode.replace('_', ' ')} head ({curve.margin_of}): {planes} of {recipe.spectrum.source}"
    return figure_bytes(curve_figure(dense, curve, title=title, bounds=bounds), suffix)


MODE_TITLES = {
    "index": "Index head, fixed offset",
    "token_index": "Index head, the query token says the offset",
    "retrieval": "Retrieval head",
    "reflexive": "Reflexive head, positional",
    "symbolic_reflexive": "Reflexive head, symbolic",
}


def head_title(built: BuiltHead) -> str:
    """One line that says which head it is."""
    recipe = built.recipe
    planes = f"plane {recipe.planes[0]}" if len(recipe.planes) == 1 else f"{len(recipe.planes)} planes"
    aim = f", offset {short(recipe.offset)}" if recipe.mode == "index" else ""
    aim += f", centred on length {short(recipe.centre_length)}" if recipe.centre_length is not None else ""
    return f"{MODE_TITLES[recipe.mode]}{aim}: {planes} of {recipe.spectrum.source}"


def curve_table(curve: MarginCurve) -> Group:
    """The rows of a curve for people."""
    return table(
        "",
        [
            ("length", "right"),
            ("margin", "right"),
            ("best", "right"),
            ("worst", "right"),
            ("second at t", "right"),
            ("abs. error", "right"),
            ("route", "left"),
        ],
        [*map(_row, _shown(curve)), *_rest(curve)],
    )


def _shown(curve: MarginCurve) -> Sequence[MarginPoint]:
    """All rows, or the first ones where that spares at least one besides the last."""
    return curve.points if len(curve.points) <= SHOWN_ROWS + 1 else curve.points[:SHOWN_ROWS]


def _rest(curve: MarginCurve) -> list[list[str]]:
    """What stands for the rows that a terminal is spared: how many, and the last one."""
    if len(curve.points) <= SHOWN_ROWS + 1:
        return []
    return [[f"... {len(curve.points) - SHOWN_ROWS - 1} more", *[""] * 6], _row(curve.points[-1])]


def _row(point: MarginPoint) -> list[str]:
    verdict = {"tie": " (tie)", "fails": " (fails)", "undecided": " (undecided)"}.get(point.status, "")
    return [
        short(point.length),
        _cell(point.margin) + verdict,
        "-" if point.best is None else _cell(point.best),
        _cell(point.worst),
        short(point.at),
        _error_cell(point.margin.abs_error),
        ROUTES.get(point.method, point.method),
    ]


def _error_cell(error: float) -> str:
    return "0" if error == 0 else f"{error:.0e}" if error > TINY else f"< {TINY:.0e}"


def _cell(value: Enclosure) -> str:
    if value.is_bound:
        return f"<= {Enclosure.exactly(value.high).digits(6)}"
    return value.digits(6) or f"{float(value):.3g}"

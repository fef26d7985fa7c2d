"""`ropegeo construct`: build a head, show its matrices, where it looks, and by how much it wins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group

from ropegeo._version import __version__
from ropegeo.cli.curve import curve_table, head_title
from ropegeo.cli.optimal import OPTIMAL, certificate_bytes, optimal_data, optimal_lines, optimal_picture
from ropegeo.cli.output import Destinations, busy, console, number_text, print_json, suffix_of, table
from ropegeo.cli.request import HeadRequest, head_curve, read_head, read_lengths
from ropegeo.construct.built import BuiltHead
from ropegeo.construct.files import head_bytes, head_matrices
from ropegeo.construct.geometry import DistanceLogits, distance_logits, plane_geometry
from ropegeo.construct.recipe import LETTER_MODES
from ropegeo.engine.margin import MarginCurve
from ropegeo.engine.trust import first_failing_length, rounding_lengths, tie_length
from ropegeo.errors import InvalidInputError
from ropegeo.exact import safe_integer
from ropegeo.heads import LetterProfile

if TYPE_CHECKING:
    from ropegeo._arrays import FloatArray
    from ropegeo.cli.options import HeadOptions, LengthOptions, OutputOptions, PlotOptions, RopeOptions

SCHEMA = "ropegeo.construct/1"
SHOWN_ROWS = 4
SHOWN_COLUMNS = 8
SHOWN_DISTANCES = 11
DRAWN_DISTANCES = 64
MAX_SHOWN_OFFSET = 1 << 60


def run(
    head: HeadOptions,
    rope: RopeOptions,
    lengths: LengthOptions,
    output: OutputOptions,
    plot: PlotOptions,
    certificate: str | None,
) -> None:
    """Build, show, and write what was asked for."""
    suffix_of(output.output, (".safetensors",), "--output")
    drawing = suffix_of(plot.plot, (".svg", ".png"), "--plot")
    suffix_of(certificate, (".json",), "--certificate")
    if certificate is not None and (head.planes != OPTIMAL or head.mode == "retrieval"):
        raise InvalidInputError("--certificate goes with --planes optimal of an index head: it proves none is better")
    destinations = Destinations(output.output, plot.plot, certificate, force=output.force)
    with busy("building the head and its margins"):
        request = read_head(head, rope, read_lengths(lengths), ladder=True)
        _offset(request)  # refuses an offset too large to show before anything is written
        curve = head_curve(request, request.lengths, lengths.digits)
    contents: list[tuple[str | None, bytes]] = []
    if output.output is not None:
        contents.append((output.output, head_bytes(request.built)))
    if drawing is not None:
        contents.append((plot.plot, _picture(request, drawing)))
    if request.optimal is not None and certificate is not None:
        contents.append((certificate, certificate_bytes(request.optimal)))
    written = destinations.write(*contents)
    if output.as_json:
        print_json(_json(request, curve, lengths.digits))
    else:
        _show(request, curve, written)


def _picture(request: HeadRequest, suffix: str) -> bytes:
    from ropegeo.plots import figure_bytes, head_figure

    built = request.built
    if request.optimal is not None:
        drawn = optimal_picture(request.optimal, head_title(built), suffix)
        if drawn is not None:
            return drawn
    offset = _offset(request)
    first = max(0, offset - DRAWN_DISTANCES // 2)
    count = min(max(SHOWN_DISTANCES, 2 * offset + 8), DRAWN_DISTANCES)
    logits = distance_logits(built, count, first=first, offset=offset)
    return figure_bytes(head_figure(plane_geometry(built, offset=offset), logits, title=head_title(built)), suffix)


def _offset(request: HeadRequest) -> int:
    """The distance aimed at by the query that is shown; 0 for a letter-matching head."""
    recipe = request.built.recipe
    offset = 0 if recipe.mode in LETTER_MODES else request.offset or recipe.offset
    if offset >= MAX_SHOWN_OFFSET:
        raise InvalidInputError(
            "construct shows logits by distance, for offsets below 2^60; use `ropegeo curve` for larger ones"
        )
    return offset


def _peak(request: HeadRequest) -> float:
    """The logit of the target, or of a match at the distance that a retrieval head is centred on."""
    profile = request.built.profile
    if isinstance(profile, LetterProfile) or profile.is_peaked:
        return request.built.recipe.beta
    return float(replace(profile, origin=0).logit(np.zeros(1, np.int64))[0])


def _shown_logits(request: HeadRequest) -> DistanceLogits:
    """Logits at the first distances, or at those around a target further away."""
    offset = _offset(request)
    first = 0 if offset < SHOWN_DISTANCES else offset - SHOWN_DISTANCES // 2
    return distance_logits(request.built, SHOWN_DISTANCES, first=first, offset=offset)


def _planes_data(built: BuiltHead) -> list[dict[str, Any]]:
    recipe = built.recipe
    phases = recipe.phases or (0.0,) * len(recipe.planes)
    return [
        {
            "plane": plane,
            "weight": weight,
            "angle": float(recipe.spectrum.inv_freq[plane]),
            "angle_exact": recipe.spectrum.angle_texts[plane],
            "wavelength": float(2 * np.pi / recipe.spectrum.inv_freq[plane]),
            "phase": phase,
        }
        for plane, weight, phase in zip(recipe.planes, recipe.weights, phases, strict=True)
    ]


def _trust(request: HeadRequest) -> dict[str, Any]:
    built = request.built
    if isinstance(built.profile, LetterProfile):
        failing = first_failing_length(built.profile)
        return {"first_failing_length": _optional(failing)}
    profile = replace(built.profile, origin=_offset(request))
    if not profile.is_peaked:
        return {"note": "a head with phases is made for lengths up to one; `ropegeo limit` finds where it fails"}
    return {
        "tie_length": _optional(tie_length(profile)),
        "margin_below_rounding_step": [
            {
                "format": entry.number_format,
                "step": entry.step,
                "length": _optional(entry.length),
                "searched_to": safe_integer(entry.searched),
            }
            for entry in rounding_lengths(profile)
        ],
        "note": "margin_below_rounding_step is an estimate: the first length whose margin is below the spacing of the "
        "format at the peak logit; not an emulation of a model's arithmetic",
    }


def _optional(value: int | None) -> int | str | None:
    return None if value is None else safe_integer(value)


def _json(request: HeadRequest, curve: MarginCurve, digits: int) -> dict[str, Any]:
    built = request.built
    logits = _shown_logits(request)
    return {
        "schema": SCHEMA,
        "package_version": __version__,
        "plane_choice": request.plane_choice,
        "optimal": None if request.optimal is None else optimal_data(request.optimal),
        "planes": _planes_data(built),
        "peak": {
            "distance": safe_integer(_offset(request)),
            "logit": _peak(request),
            "of": "a match" if built.recipe.mode == "retrieval" else "the target",
        },
        "recipe": built.recipe.to_dict(),
        "scale": built.head.logit_scale,
        "tokens": [str(token) for token in built.tokens],
        "residual": built.residual,
        "matrices": {
            name: {"shape": list(matrix.shape), "data": matrix.tolist()}
            for name, matrix in head_matrices(built).items()
        },
        "logits": {
            "distance": logits.distances.tolist(),
            "match": logits.match.tolist(),
            "strongest_rival": None if logits.rival is None else logits.rival.tolist(),
            "abs_error": built.profile.abs_error,
        },
        "trust": _trust(request),
        "curve": curve.to_dict(digits),
    }


def _show(request: HeadRequest, curve: MarginCurve, written: list[str]) -> None:
    out, built = console(), request.built
    recipe = built.recipe
    out.print(head_title(built), style="bold")
    out.print(
        f"head_dim {recipe.spectrum.head_dim}, rotary_dim {recipe.spectrum.rotary_dim}, layout "
        f"{recipe.spectrum.layout}, beta {recipe.beta:g}, scale {built.head.logit_scale:.6g}; planes count from 0 "
        "(the paper's frequency ID is plane + 1)"
    )
    choice = f" (best for length {curve.lengths[-1]})" if request.plane_choice == "best" else ""
    data = _planes_data(built)
    if request.optimal is not None:
        data.sort(key=lambda entry: -entry["weight"])  # the heaviest ones are shown
    for entry in data[:SHOWN_ROWS]:
        phase = f", phase {entry['phase']:.4g}" if recipe.phases else ""
        exact = entry["angle_exact"] if len(entry["angle_exact"]) <= 30 else "closed form in --json"
        out.print(
            f"plane {entry['plane']}{choice}: weight {entry['weight']:.4g}{phase}, angle {entry['angle']:.12g} "
            f"rad/position = {exact}, wavelength {entry['wavelength']:.6g}"
        )
    if len(data) > SHOWN_ROWS:
        out.print(f"... and {len(data) - SHOWN_ROWS} more planes (all in --json)")
    if request.optimal is not None:
        for line in optimal_lines(request.optimal):
            out.print(line)
    out.print()
    names = (("W_Q", built.head.w_q), ("W_K", built.head.w_k), ("W_V", built.head.w_v))
    columns = [str(token) for token in built.tokens]
    for name, matrix in names:
        headings = columns + ["1"] * (matrix.shape[1] - len(columns))
        out.print(_matrix_table(name, matrix, headings))
        out.print()
    _show_peak(out, request)
    out.print(curve_table(curve))
    out.print(f"margin of {curve.margin_of}; best and worst over {curve.inputs}; unit: beta", style="italic")
    for line in _trust_lines(request, curve):
        out.print(line)
    for path in written:
        out.print(f"wrote {path}")


def _matrix_table(name: str, matrix: FloatArray, headings: list[str]) -> Group:
    rows = np.flatnonzero(np.abs(matrix).max(axis=1))
    shown = rows[:SHOWN_ROWS]
    filled = np.flatnonzero(np.abs(matrix).max(axis=0))
    columns = np.arange(matrix.shape[1]) if matrix.shape[1] <= SHOWN_COLUMNS else filled[:SHOWN_COLUMNS]
    hidden = f"; {len(rows) - len(shown)} more in --json" if len(rows) > len(shown) else ""
    wide = f"; {len(columns)} of {len(filled)} non-zero columns" if len(columns) < matrix.shape[1] else ""
    title = f"{name}  {matrix.shape[0]} x {matrix.shape[1]}, {len(rows)} non-zero rows{hidden}{wide}"
    return table(
        title,
        [("row", "right"), *((headings[column], "right") for column in columns)],
        [[str(row), *(f"{value + 0.0:.5f}" for value in matrix[row, columns])] for row in shown],
    )


def _show_peak(out: Any, request: HeadRequest) -> None:
    logits = _shown_logits(request)
    if logits.rival is None:
        query = " (letter query)" if request.built.recipe.integers and not logits.target else ""
        out.print(f"peak at distance {logits.target}{query}: logit {_peak(request):.6g}")
    else:
        out.print("a match against the strongest other letter, by distance")
    rows = [["logit", *(f"{value:.3f}" for value in logits.match)]]
    if logits.rival is not None:
        rows = [
            ["match", *(f"{value:.3f}" for value in logits.match)],
            ["rival", *(f"{value:.3f}" for value in logits.rival)],
        ]
    out.print(table("", [("distance", "left"), *((str(d), "right") for d in logits.distances)], rows))
    out.print()


def _trust_lines(request: HeadRequest, curve: MarginCurve) -> list[str]:
    built, trust = request.built, _trust(request)
    if built.recipe.mode in LETTER_MODES:
        failing = trust["first_failing_length"]
        if failing is None and built.recipe.mode == "symbolic_reflexive" and len(built.recipe.planes) == 1:
            return ["the own token wins at every length, by a margin that falls as rivals come near"]
        if failing is None:
            return []
        if int(failing) > 2:
            return [f"worst case: every input is decoded up to length {int(failing) - 1}, not from length {failing} on"]
        return [
            "worst case: not every input is decoded at any length: the plane turns too fast for this many letters; "
            "try --plane best --length n"
        ]
    if request.built.recipe.phases:
        runner = curve.points[-1]
        return [
            f"at length {runner.length} second comes distance {_offset(request) + runner.at} (displacement "
            f"{runner.at}); beyond the length it is made for it may point elsewhere, see `ropegeo limit`",
        ]
    lines = []
    if trust["tie_length"] is not None:
        lines.append(
            f"the angle divides whole turns: the margin is exactly 0 (a tie) from length {trust['tie_length']} on"
        )
    found = [
        f"{entry['format']} n = {entry['length']}"
        for entry in trust["margin_below_rounding_step"]
        if entry["length"] is not None
    ]
    if found:
        lines.append("margin below one rounding step of the peak logit (estimate) from: " + ", ".join(found))
    else:
        searched = trust["margin_below_rounding_step"][0]["searched_to"]
        lines.append(f"the margin stays above one rounding step of bfloat16 up to length {searched}")
    runner = curve.points[-1]
    lines.append(
        f"at length {runner.length} second comes distance {_offset(request) + runner.at} "
        f"(displacement {runner.at}), margin {runner.margin.digits() or number_text(float(runner.margin))}"
        if runner.length < 10**20
        else f"the runner-up at the last length stands at displacement {runner.at}"
    )
    return lines

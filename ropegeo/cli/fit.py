"""`ropegeo fit`: by which law a margin curve falls, with intervals, and whether it is that of a head."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from ropegeo._version import __version__
from ropegeo.asymptotics.compare import Comparison, compare_decay
from ropegeo.asymptotics.curve_input import read_curve
from ropegeo.asymptotics.data import DecayData, curve_data
from ropegeo.asymptotics.fit import STATUSES, DecayFit, fit_decay
from ropegeo.cli.curve import drawn_curve, head_title
from ropegeo.cli.fit_text import comparison_lines, fit_lines, law_numbers, law_table, points_text
from ropegeo.cli.output import Destinations, busy, console, json_text, print_json, printable, suffix_of, table, working
from ropegeo.cli.request import HeadRequest, head_curve, read_head, read_head_file, read_integer
from ropegeo.construct.recipe import LETTER_MODES
from ropegeo.engine.margin import MarginCurve
from ropegeo.engine.route_names import BOUND
from ropegeo.errors import InvalidInputError
from ropegeo.exact import ClosedForm, read_angle, short

if TYPE_CHECKING:
    from ropegeo.asymptotics.lines import CurveLine
    from ropegeo.cli.options import FitOptions, HeadOptions, OutputOptions, PlotOptions, RopeOptions

LABEL = 13
"""Columns for the labels below the table."""
DIGITS = 17
DISAGREE = ("differs", "differs_by_factor", "opposite_signs")


@dataclass(frozen=True, eq=False, kw_only=True)
class Theory:
    """The exact margins of a head at the lengths of the data, and what came of comparing them."""

    request: HeadRequest
    curve: MarginCurve
    data: DecayData
    comparison: Comparison


def run(
    path: str,
    which: FitOptions,
    head: HeadOptions,
    rope: RopeOptions,
    output: OutputOptions,
    plot: PlotOptions,
    head_file: str | None,
) -> None:
    """Fit, compare, show, and write what was asked for; status 1 if the data are not those of the head named."""
    suffix_of(output.output, (".json",), "--output")
    drawing = suffix_of(plot.plot, (".svg", ".png"), "--plot")
    destinations = Destinations(output.output, plot.plot, force=output.force)
    _check(which, head, rope, head_file)
    first, last = (_bound(text, name) for text, name in ((which.min_length, "min"), (which.max_length, "max")))
    data = read_curve(path, column=which.column)
    given = data.between(first, last)
    request, angle = None, None
    if which.compare is not None:
        request = _head(head, rope, head_file, data, given)
        angle = _one_angle(request)
        data = _aimed(data, which.column, request.offset or request.built.recipe.offset)
    elif rope.angle is not None:
        angle = read_angle(rope.angle)
        data = _aimed(data, which.column, None if head.offset is None else _offset(head.offset))
    theory = None if request is None else _compared(request, given, which.column)
    with busy("fitting laws"):
        fit = fit_decay(
            data,
            laws=None if which.laws is None else [name.strip() for name in which.laws.split(",")],
            angle=angle,
            planes_used=which.planes_used,
            unit_weight=None if which.weight is None else which.weight == "1",
            first=first,
            last=last,
        )
    result = _json(fit, theory)
    contents: list[tuple[str | None, bytes]] = []
    if output.output is not None:
        contents.append((output.output, json_text(result).encode()))
    if drawing is not None:
        drawn = given if data.offset == given.offset else replace(given, offset=data.offset)
        contents.append((plot.plot, _picture(fit, drawn, theory, angle, rope.angle, which, drawing)))
    written = destinations.write(*contents)
    if output.as_json:
        print_json(result)
    else:
        _show(fit, theory, rope.angle, written)
    if theory is not None and theory.comparison.verdict in DISAGREE:
        raise typer.Exit(1)


# ---- what is asked for ----


def _check(which: FitOptions, head: HeadOptions, rope: RopeOptions, head_file: str | None) -> None:
    if which.weight not in (None, "1", "free"):
        raise InvalidInputError(f"--weight {which.weight!r} must be 1 or free")
    if which.compare not in (None, "theory"):
        raise InvalidInputError(f"--compare {which.compare!r} is unknown; use --compare theory")
    nameless = (type(head)(offset=head.offset, mode=head.mode), type(rope)(), None)
    if which.compare == "theory" and (head, rope, head_file) == nameless:
        raise InvalidInputError("--compare theory: with which head? Give --angle, --rope with --plane, or --head FILE")
    alone = (type(head)(offset=head.offset), type(rope)(angle=rope.angle), None)
    if which.compare is None and (head, rope, head_file) != alone:
        raise InvalidInputError(
            "the options of a head say which one --compare theory is about: give that too, or only --angle and --offset"
        )
    if which.compare is None and head.offset is not None and rope.angle is None:
        raise InvalidInputError("--offset goes with --angle, the angle of the staircase law, or with --compare theory")


def _bound(text: str | None, which: str) -> int | None:
    if text is None:
        return None
    length = read_integer(text, f"--{which}-length")
    if length < 1:
        raise InvalidInputError(f"--{which}-length {text.strip()[:60]!r} must be at least 1")
    return length


def _offset(text: str) -> int:
    offset = read_integer(text, "offset")
    if offset < 0:
        raise InvalidInputError(f"offset {text.strip()[:60]!r} must not be negative: a causal head cannot look ahead")
    return offset


def _aimed(data: DecayData, column: str, offset: int | None) -> DecayData:
    """The data with the offset that is asked for. `worst` and `best` range over all offsets and have none."""
    return data if offset is None or column != "margin" else replace(data, offset=offset)


def _head(
    head: HeadOptions, rope: RopeOptions, head_file: str | None, data: DecayData, given: DecayData
) -> HeadRequest:
    lengths = list(given.lengths)
    if not lengths:
        raise InvalidInputError("--compare theory: the file has no margin at these lengths")
    if head_file is not None:
        return read_head_file(head_file, head, rope, lengths)
    if head.offset is None and head.mode == "index" and head.integers is None and data.offset:
        head = replace(head, offset=str(data.offset))  # the one that the file states
    return read_head(head, rope, lengths, ladder=False)


def _one_angle(request: HeadRequest) -> ClosedForm | None:
    """The angle of an index head on one plane."""
    recipe = request.built.recipe
    if recipe.mode in LETTER_MODES or len(recipe.planes) != 1:
        return None
    return recipe.spectrum.angles[recipe.planes[0]]


def _compared(request: HeadRequest, given: DecayData, column: str) -> Theory:
    """The head's margins at the lengths of the data, in the unit of the data."""
    recipe = request.built.recipe
    least = max(2, (request.offset or recipe.offset) + 1)
    if given.lengths[0] < least:
        raise InvalidInputError(
            f"--compare theory: the head sees a rival from length {short(least)} on, the file starts at "
            f"{short(given.lengths[0])}; use --min-length {short(least)}"
        )
    with working("computing the theory's margins", given.lengths[-1]) as progress:
        curve = head_curve(request, given.lengths, DIGITS, progress=progress)
    exact = _in_unit_of(given, curve_data(curve, column=column), recipe.beta)
    known = set(exact.lengths)
    comparison = compare_decay(given.at([k for k, n in enumerate(given.lengths) if n in known]), exact)
    return Theory(request=request, curve=curve, data=exact, comparison=comparison)


def _in_unit_of(data: DecayData, theory: DecayData, beta: float) -> DecayData:
    """The theory in logits where the data are not in units of beta."""
    if data.unit == "beta":
        return theory
    return replace(theory, margin=beta * theory.margin, log_margin=theory.log_margin + math.log(beta), unit=data.unit)


# ---- what is said ----


def _json(fit: DecayFit, theory: Theory | None) -> dict[str, Any]:
    result = {**fit.to_dict(), "package_version": __version__}
    if theory is not None:
        result["comparison"] = {**theory.comparison.to_dict(), "recipe": theory.request.built.recipe.to_dict()}
    return result


def _show(fit: DecayFit, theory: Theory | None, angle: str | None, written: Sequence[str]) -> None:
    out = console()
    out.print(printable(f"Fit: {fit.source}"), style="bold", soft_wrap=True)
    _print(points_text(fit))
    if fit.fits:
        out.print()
        out.print(table("", *law_table(fit, angle)))
        out.print()
    for label, text in fit_lines(fit):
        _print(f"{label:<{LABEL}}{text}")
    if theory is not None:
        out.print()
        recipe = theory.request.built.recipe
        in_logits = f", beta {recipe.beta:g}" if theory.data.unit != "beta" else ""
        _print(f"{'theory':<{LABEL}}{head_title(theory.request.built)}{in_logits}")
        for label, text in comparison_lines(theory.comparison):
            _print(f"{label:<{LABEL}}{text}")
    for path in written:
        out.print(f"wrote {path}")


def _print(text: str) -> None:
    out = console()
    for line in textwrap.wrap(printable(text), out.width, subsequent_indent=" " * LABEL, break_on_hyphens=False):
        out.print(line, soft_wrap=True)


# ---- what is drawn ----


def _picture(
    fit: DecayFit,
    given: DecayData,
    theory: Theory | None,
    angle: ClosedForm | None,
    angle_text: str | None,
    which: FitOptions,
    suffix: str,
) -> bytes:
    from ropegeo.asymptotics.lines import bound_line, curve_line, law_line, staircase_line
    from ropegeo.plots import figure_bytes, fit_figure

    if not given.lengths:
        raise InvalidInputError("--plot: there is no margin to draw at these lengths")
    first, last = given.lengths[0], given.lengths[-1]
    chosen = fit.fit(fit.chosen) if fit.chosen else None
    planes = _planes_of_bound(given, theory, angle, which)
    line: CurveLine | None = None
    if theory is not None:
        points = theory.curve.points
        if all(point.method != BOUND for point in points):  # those between are computed anew, where it changes
            points = (points[0], points[-1])
        whole = drawn_curve(theory.request, replace(theory.curve, points=points))
        exact = curve_data(whole, column=which.column)
        exact = _in_unit_of(given, exact, theory.request.built.recipe.beta).between(first, last)
        is_stepped = theory.request.built.recipe.mode not in LETTER_MODES
        name = head_title(theory.request.built).replace("fixed offset, ", "")
        line = curve_line(f"theory: {name}", exact, is_stepped=is_stepped)
    elif angle is not None:
        line = staircase_line(angle, given, first, last)
        line = None if line is None else _at_fitted_height(line, fit)
    figure = fit_figure(
        given,
        fit.data,
        title=f"Fit: {fit.source}",
        subtitle=f"{chosen.law}: {', '.join(law_numbers(chosen, angle_text))}"
        if chosen
        else f"{fit.status}: {STATUSES[fit.status]}",
        law=None if chosen is None else law_line(chosen, fit.data),
        bound=None if planes is None else bound_line(planes, given, first, last),
        theory=line,
    )
    return figure_bytes(figure, suffix)


def _planes_of_bound(
    given: DecayData, theory: Theory | None, angle: ClosedForm | None, which: FitOptions
) -> int | None:
    """On how many planes the head is whose bound is drawn; None where none is known to hold for these margins."""
    if not (which.weight == "1" or (given.unit == "beta" and which.weight is None)):
        return None
    if which.planes_used is not None:
        return which.planes_used
    if theory is not None and theory.request.built.recipe.mode not in LETTER_MODES:
        return len(theory.request.built.recipe.planes)
    return 1 if angle is not None or given.one_plane else None


def _at_fitted_height(line: CurveLine, fit: DecayFit) -> CurveLine:
    """The staircase of a known angle times its fitted weight, where it has one."""
    weights = [law.parameters["weight"].value for law in fit.fits if law.law == "staircase" and law.parameters]
    name = "theory: one plane of the given angle"
    if not weights:
        return replace(line, name=name)
    return replace(line, name=f"{name}, height fitted", log_margin=line.log_margin + math.log(weights[0]))

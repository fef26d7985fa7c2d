"""`ropegeo fit`: by which law a margin curve falls, with intervals, and whether it is that of a head."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from ropegeo._version import __version__
from ropegeo.asymptotics.compare import VERDICTS, Comparison, compare_decay
from ropegeo.asymptotics.curve_input import read_curve
from ropegeo.asymptotics.data import DecayData, curve_data
from ropegeo.asymptotics.fit import STATUSES, DecayFit, fit_decay
from ropegeo.asymptotics.fitted_law import Estimate, LawFit
from ropegeo.asymptotics.intervals import KINDS
from ropegeo.cli.curve import drawn_curve, head_title
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
PARAMETERS = 58
"""Columns for the parameters of a law."""
DIGITS = 17
DISAGREE = ("differs", "differs_by_factor", "opposite_signs")
LEFT_OUT = {
    "bound": "upper bounds only",
    "undecided": "sign not decided",
    "unresolved": "not known well enough",
}


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
        data = _aimed(data, request.offset or request.built.recipe.offset)
    elif rope.angle is not None:
        angle = read_angle(rope.angle)
        data = _aimed(data, None if head.offset is None else _offset(head.offset))
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
    contents: list[tuple[str | None, bytes]] = [(output.output, json_text(result).encode())]
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


def _aimed(data: DecayData, offset: int | None) -> DecayData:
    """The data with the offset that is asked for. `worst` and `best` range over all offsets and have none."""
    return data if offset is None or not data.source.startswith("margin") else replace(data, offset=offset)


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
    _print(_points(fit))
    if fit.fits:
        columns = [("law", "left"), ("parameters", "left"), ("rms", "right"), ("dAICc", "right"), ("weight", "right")]
        out.print()
        out.print(table("", columns, [_row(fit, law, angle) for law in fit.fits]))
        out.print()
    for label, text in _lines(fit):
        _print(f"{label:<{LABEL}}{text}")
    if theory is not None:
        out.print()
        for label, text in _comparison_lines(theory):
            _print(f"{label:<{LABEL}}{text}")
    for path in written:
        out.print(f"wrote {path}")


def _print(text: str) -> None:
    out = console()
    for line in textwrap.wrap(printable(text), out.width, subsequent_indent=" " * LABEL, break_on_hyphens=False):
        out.print(line, soft_wrap=True)


def _points(fit: DecayFit) -> str:
    given = f"{fit.points_given} points given, {fit.points_used} used"
    if fit.lengths is not None:
        ends = "ends of steps, " if fit.on_envelope else ""
        given += f": {ends}lengths {short(fit.lengths[0])} to {short(fit.lengths[1])}"
    if fit.on_envelope and not fit.ends_known:
        given += " (a step ends where the lengths given show it)"
    left_out = [f"{count} {LEFT_OUT[kind]}" for kind, count in fit.left_out]
    kind = "measured margins" + (" with standard deviations" if fit.data.sd is not None else "")
    kind = "computed margins, without noise" if fit.is_exact else kind
    return "; ".join([given, *([f"left out: {', '.join(left_out)}"] if left_out else []), kind])


def _row(fit: DecayFit, law: LawFit, angle: str | None) -> list[str]:
    gap = law.aicc - fit.fits[0].aicc
    compared = math.isfinite(gap)
    return [
        law.law,
        "\n".join(_packed(_numbers(law, angle), PARAMETERS)) or "none",
        _deviation(law.rms),
        (f"{gap:.1f}" if gap < 1e5 else _power(gap)) if compared else "-",
        _share(fit.weights[law.law]) if compared else "-",
    ]


def _numbers(law: LawFit, angle: str | None) -> list[str]:
    """The numbers of a law: fitted ones with their intervals, and known ones; an angle as it was given."""
    numbers = [f"{name} {estimate_text(estimate)}" for name, estimate in law.parameters.items()]
    return numbers + [f"{name} = {angle if name == 'angle' and angle else text}" for name, text in law.fixed.items()]


def _lines(fit: DecayFit) -> Iterator[tuple[str, str]]:
    """Everything below the table: label and text."""
    if fit.exponent is not None:
        on = " on the envelope" if fit.on_envelope else ""
        yield "exponent", f"{estimate_text(fit.exponent)} of n{on}, by the power law"
    for kind, names in _kinds(fit).items():
        yield "intervals", f"of {names}: {KINDS[kind]}" if len(_kinds(fit)) > 1 else KINDS[kind]
    if fit.plain_slope is not None:
        yield (
            "plain slope",
            f"{fit.plain_slope:.3f} of the line through the logarithms of all positive points given: biased on a "
            "staircase, depends on which lengths are sampled",
        )
    shown = fit.fit(fit.chosen) if fit.chosen else None
    if shown is not None:
        yield "residuals", _residuals(fit, shown)
    short_of = [law.law for law in fit.fits if not math.isfinite(law.aicc)]
    if short_of:
        yield "not compared", f"{', '.join(short_of)}: too few points for so many free numbers"
    for name, why in fit.not_fitted:
        yield "not fitted", f"{name}: {why}"
    if fit.first_nonpositive is not None:
        yield "fails", f"the first length given with a margin of 0 or below is {short(fit.first_nonpositive)}"
    if fit.status != "ok":
        yield "status", f"{fit.status}: {STATUSES[fit.status]}"
        yield "because", fit.reason
    if fit.chosen is not None:
        yield "chosen", fit.chosen + (f": {fit.reason}" if fit.status == "ok" else "")


def _kinds(fit: DecayFit) -> dict[str, str]:
    """Each kind of interval in the table, and the parameters that have it."""
    found: dict[str, list[str]] = {}
    for law in fit.fits:
        for name, estimate in law.parameters.items():
            names = found.setdefault(estimate.kind, [])
            if name not in names:
                names.append(name)
    return {kind: ", ".join(names) for kind, names in found.items()}


def _residuals(fit: DecayFit, law: LawFit) -> str:
    nature = "deterministic, no noise" if fit.is_exact else "taken as noise"
    texts = [f"of {law.law}: {nature}", f"at most {_deviation(law.largest).replace('x ', 'a factor ')}"]
    if math.isfinite(law.lag1) and law.rms > 1e-12:
        texts.append(f"neighbours correlate by {law.lag1:.2f}")
    if not fit.is_exact:
        allowed = f"a correlation of {law.correlation:.2f} between the errors of neighbours is allowed for"
        texts.append(allowed if law.correlation else "none between errors is allowed for")
    if math.isfinite(law.scale):
        texts.append(f"on the whole {law.scale:.2g} times the standard deviations given")
    return ", ".join(texts)


def _comparison_lines(theory: Theory) -> Iterator[tuple[str, str]]:
    found, recipe = theory.comparison, theory.request.built.recipe
    in_logits = f", beta {recipe.beta:g}" if theory.data.unit != "beta" else ""
    yield "theory", head_title(theory.request.built) + in_logits
    yield "verdict", f"{found.verdict}: {VERDICTS[found.verdict]}"
    exact = not math.isfinite(found.p_agrees)
    if found.verdict == "identical":
        yield "apart", f"by no more than rounding at {found.points} lengths"
    elif math.isfinite(found.factor.value):
        noise = ": of computed margins, without noise" if exact else ""
        yield "data/theory", f"factor {estimate_text(found.factor)}, drift n^{estimate_text(found.drift)}{noise}"
    if not exact:
        yield (
            "p",
            f"{found.p_agrees:.2g} for a departure as large by noise alone; {found.p_factor:.2g} for a drift as large "
            "beside a constant factor",
        )
    if found.at is not None and found.verdict != "identical":
        apart = f"a factor {found.largest:.4g}" if math.isfinite(found.largest) else "a factor above 1e300"
        yield "apart", f"by {apart} at most, at length {short(found.at)}; {found.points} lengths compared"
    if found.opposite:
        shown = ", ".join(short(n) for n in found.opposite[:8]) + (", ..." if len(found.opposite) > 8 else "")
        yield "signs", f"opposite at {len(found.opposite)} lengths: {shown}"


def estimate_text(estimate: Estimate) -> str:
    """A number and its interval, to two digits of the interval's width.

    Example:
        >>> estimate_text(Estimate(value=-1.99213, low=-2.02060, high=-1.95979, kind="enclosure"))
        '-1.992 [-2.021, -1.960]'
        >>> estimate_text(Estimate(value=0.0027, low=0.0027 - 1e-15, high=0.0027 + 2e-15, kind="enclosure"))
        '0.0027 (+-2e-15)'
    """
    ends = (estimate.low, estimate.high)
    if any(map(math.isnan, ends)):
        return f"{_short_float(estimate.value, 4)} (no interval)"
    if not all(map(math.isfinite, ends)):
        return f"{_short_float(estimate.value, 3)} ({_short_float(ends[0], 2)}, {_short_float(ends[1], 2)})"
    width, size = ends[1] - ends[0], max(abs(estimate.value), *map(abs, ends))
    if width < 1e-8 * size:  # both ends would be the same digits again
        half = max(estimate.value - ends[0], ends[1] - estimate.value)
        digits = 10 if half <= 0 else min(max(math.ceil(math.log10(size / half)) + 1, 9), 15)
        return f"{estimate.value:.{digits}g} (+-{_power(half)})"
    digits = max(math.ceil(math.log10(size / width)) + 2, 2)
    value, low, high = (_short_float(number, digits) for number in (estimate.value, *ends))
    return f"{value} [{low}, {high}]"


def _short_float(value: float, digits: int) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{abs(value):g}" if value == 0 else f"{value:g}"
    text = f"{value:#.{digits}g}".rstrip(".")
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa.rstrip('.')}e{int(exponent)}" if mark else text


def _packed(parts: Sequence[str], width: int) -> list[str]:
    """Parts joined by commas, in lines that break between parts only."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + 2 + len(part) <= width:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return lines


def _deviation(logarithm: float) -> str:
    """A deviation of the log margin: per cent, or a factor where it is large."""
    if logarithm == 0:
        return "0 %"
    if logarithm < 0.5:
        return f"{100 * logarithm:.3g} %" if logarithm > 1e-6 else f"{_power(100 * logarithm)} %"
    factor = math.exp(min(logarithm, 700))
    return f"x {factor:.3g}" if factor < 1000 else f"x {factor:.0f}" if factor < 1e5 else f"x {_power(factor)}"


def _share(weight: float) -> str:
    return f"{weight:.2f}" if weight >= 0.005 else _power(weight) if weight > 1e-99 else "<1e-99"


def _power(value: float) -> str:
    """One digit and its power of ten; 0 as it is."""
    if value == 0:
        return "0"
    mantissa, _, exponent = f"{value:.0e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


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
        line = curve_line(f"theory: {head_title(theory.request.built)}", exact, is_stepped=is_stepped)
    elif angle is not None:
        line = staircase_line(angle, given, first, last)
        line = None if line is None else _at_fitted_height(line, fit)
    figure = fit_figure(
        given,
        fit.data,
        title=f"Fit: {fit.source}",
        subtitle=f"{chosen.law}: {', '.join(_numbers(chosen, angle_text))}"
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

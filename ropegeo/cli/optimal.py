"""`--planes optimal`: the best head that a rotation allows at a length, designed, shown, and as JSON."""

from __future__ import annotations

import csv
import io
import math
import textwrap
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING, Any

from ropegeo._version import __version__
from ropegeo.cli.output import Destinations, console, json_text, print_json, suffix_of, table, working
from ropegeo.errors import InvalidInputError
from ropegeo.exact import Enclosure, short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Group

    from ropegeo.cli.options import CurveOptions, HeadOptions, LengthOptions, OutputOptions, PlotOptions, RopeOptions
    from ropegeo.construct.recipe import Recipe
    from ropegeo.optimal.codes import OptimalCode
    from ropegeo.optimal.curve import OptimalCurve
    from ropegeo.optimal.head import OptimalHead
    from ropegeo.optimal.window import Window

OPTIMAL = "optimal"
SHOWN_DISPLACEMENTS = 8


def check_optimal(head: HeadOptions) -> None:
    """Refuse options of the best head without it, and others with it.

    Raises:
        InvalidInputError: options that do not go together.
    """
    if head.planes != OPTIMAL:
        for name in ("phases", "max_planes", "max_offset"):
            if getattr(head, name) is not None:
                raise InvalidInputError(f"--{name.replace('_', '-')} goes with --planes optimal")
        return
    if head.weights is not None:
        raise InvalidInputError("--planes optimal chooses the weights; leave --weights out")
    if head.mode == "reflexive" and head.symbolic:
        raise InvalidInputError("--planes optimal is for --mode index, reflexive and retrieval; leave --symbolic out")
    if head.mode == "retrieval" and head.phases is not None:
        raise InvalidInputError("--phases goes with index heads; a retrieval head has codes instead")
    if head.max_offset is not None:
        if head.mode != "index":
            raise InvalidInputError("--max-offset goes with --mode index")
        if head.integers is not None and head.integers != head.max_offset:
            raise InvalidInputError("--max-offset m and --integers m say the same thing; give one of them")
        if head.max_offset < 1:
            raise InvalidInputError(f"--max-offset {head.max_offset} must be at least 1; for one offset use --offset")


def designed(recipe: Recipe, head: HeadOptions, length: int) -> tuple[Recipe, OptimalHead | OptimalCode]:
    """The best head of a recipe's mode, rotation and offsets at a length, and the recipe that builds it.

    Raises:
        InvalidInputError: a mode that has none, or values out of range.
    """
    from ropegeo.optimal.codes import optimal_code
    from ropegeo.optimal.head import optimal_head

    if recipe.mode == "retrieval":
        code = optimal_code(
            recipe.spectrum,
            letters=len(recipe.letters),
            length=length,
            centred=recipe.centre_length is not None,
            max_planes=head.max_planes,
        )
        coded = replace(recipe, planes=code.planes, weights=code.weights, multipliers=code.multipliers, directions=None)
        return coded, code
    several = recipe.mode == "token_index"
    best = optimal_head(
        recipe.spectrum,
        length=length,
        offset=0 if several else recipe.offset,
        max_offset=max(recipe.integers) if several else None,
        phases="free" if head.phases is None else head.phases,
        max_planes=head.max_planes,
    )
    phases = best.query_phases if any(best.query_phases) else ()
    built = replace(recipe, planes=best.planes, weights=best.weights, phases=phases, directions=None)
    return built, best


def aim_text(window: Window) -> str:
    """Which offsets a window is for."""
    if window.max_offset is None:
        return f"offset {window.offset}"
    return f"offsets 0..{window.max_offset} with one key and one query turned back by the offset"


def certificate_bytes(best: OptimalHead | OptimalCode) -> bytes:
    """The file of `--certificate`; retrieval codes have none.

    Raises:
        InvalidInputError: a code.
    """
    from ropegeo.optimal.codes import OptimalCode

    if isinstance(best, OptimalCode):
        raise InvalidInputError("--certificate goes with index heads; the bound of a retrieval code is in --json")
    return json_text(best.certificate.to_dict()).encode()


def optimal_picture(best: OptimalHead | OptimalCode, title: str, suffix: str) -> bytes | None:
    """The weights of a best index head by plane; None for a code, which is drawn as any retrieval head."""
    from ropegeo.optimal.codes import OptimalCode

    if isinstance(best, OptimalCode):
        return None
    from ropegeo.plots import figure_bytes
    from ropegeo.plots.optimal import weights_figure

    return figure_bytes(weights_figure(best, title=title), suffix)


def optimal_data(best: OptimalHead | OptimalCode) -> dict[str, Any]:
    """JSON of a best head: what it wins by, what none exceeds, and what decides it."""
    from ropegeo.optimal.codes import OptimalCode

    if isinstance(best, OptimalCode):
        return {name: value for name, value in best.to_dict().items() if name != "spectrum"}
    window = best.certificate.window
    offsets = best.offset_margins() if window.max_offset is not None else ()
    data = {
        "length": window.length,
        "offset": window.offset,
        "max_offset": window.max_offset,
        "phases": best.certificate.phases,
        "max_planes": best.max_planes,
        **best.margin.to_dict("margin", 12),
        **best.upper_bound.to_dict("upper_bound", 12),
        "gap": best.gap,
        "decided_at": best.decided_at,
        "active_displacements": list(best.active_displacements),
        "rounds": best.rounds,
        "status": best.status,
    }
    if offsets:
        data["offset_margins"] = [float(margin) for margin in offsets]
    return data


def optimal_lines(best: OptimalHead | OptimalCode) -> list[str]:
    """A best head in a few lines."""
    from ropegeo.optimal.codes import OptimalCode

    if isinstance(best, OptimalCode):
        return _code_lines(best)
    window = best.certificate.window
    aim = aim_text(window)
    kind = "" if best.certificate.phases == "free" else " without phases"
    if best.gap == 0 and best.margin.low <= 0:
        return [
            f"length {window.length}, {aim}: no head wins, as some displacement brings every plane back:",
            "every margin is at most 1e-25 (proved in balls), and this head's is a tie",
        ]
    few = "" if best.max_planes is None else f", on at most {best.max_planes} planes"
    lines = [
        f"length {window.length}, {aim}:",
        f"this head wins by {outward(best.certificate.low, 9, up=False)}{few},",
        f"and no head{kind} by more than {outward(best.certificate.high, 9, up=True)}: proved, relative gap "
        f"{best.gap:.1e}",
    ]
    if best.status != "converged":
        lines.append(f"search: {best.status}")
    active = [str(t) for t in best.active_displacements[:SHOWN_DISPLACEMENTS]]
    more = len(best.active_displacements) - len(active)
    lines.append(
        f"the bound rests on {len(best.active_displacements)} displacements: {', '.join(active)}"
        + (f" and {more} more" if more else "")
    )
    if window.max_offset is not None:
        margins = best.offset_margins()
        low, high = _extreme(margins, min), _extreme(margins, max)
        if float(margins[high]) - float(margins[low]) < 1e-9:
            return [*lines, f"margin by offset: {float(margins[low]):.6g} at each"]
        lines.append(
            f"margin by offset: best {float(margins[high]):.6g} (offset {high}), worst {float(margins[low]):.6g} "
            f"(offset {low})"
        )
    return lines


def _code_lines(best: OptimalCode) -> list[str]:
    codes = ", ".join(f"{plane}:{step}" for plane, step in zip(best.planes, best.multipliers, strict=True))
    lines = [
        f"length {best.length}, {best.letters} letters, best code found: every input is decoded by "
        f"{outward(float(best.margin.low), 9, up=False)} or more,",
        f"and no code at all by more than {outward(float(best.upper_bound.high), 9, up=True)} (proved in balls): what "
        f"lies between, {best.gap:.1e} of it, is open",
        f"the best single plane, {best.single_plane}, has {float(best.single_margin):.9g}",
        *textwrap.wrap(f"plane:steps of 2 pi/{best.letters} between neighbouring letters {codes}", 100),
    ]
    return lines if best.status == "converged" else [*lines, *textwrap.wrap(f"search: {best.status}", 100)]


def _extreme(margins: Sequence[Enclosure], pick: Any) -> int:
    return int(pick(range(len(margins)), key=lambda offset: float(margins[offset])))


def run_curve(
    head: HeadOptions,
    rope: RopeOptions,
    lengths: LengthOptions,
    which: CurveOptions,
    output: OutputOptions,
    plot: PlotOptions,
) -> None:
    """`ropegeo curve --planes optimal`: a best head for every length asked for, beside simpler heads."""
    from ropegeo.cli.request import read_lengths, read_request

    written_as = suffix_of(output.output, (".csv", ".json"), "--output")
    drawing = suffix_of(plot.plot, (".svg", ".png"), "--plot")
    destinations = Destinations(output.output, plot.plot, force=output.force)
    asked = read_lengths(lengths)
    if asked is None:
        raise InvalidInputError("curve: give --length n or --lengths a,b,c")
    if which != type(which)():
        raise InvalidInputError("--records, --every and --route do not go with --planes optimal; use --lengths a,b,c")
    plain = type(head)()
    for name in ("beta", "seed", "letters"):
        if getattr(head, name) != getattr(plain, name):
            raise InvalidInputError(f"--{name} does not go with curve --planes optimal: margins are in units of beta")
    if lengths.digits != type(lengths)().digits:
        raise InvalidInputError("--digits does not go with curve --planes optimal: what is printed is proved")
    recipe = read_request(head, rope, asked)
    if recipe.mode != "index":
        raise InvalidInputError("curve --planes optimal is for --mode index with one --offset; see ropegeo construct")
    from ropegeo.optimal.curve import optimal_curve

    with working("designing heads", len(asked)) as progress:
        curve = optimal_curve(
            recipe.spectrum,
            asked,
            offset=recipe.offset,
            phases="zero" if head.phases == "zero" else "free",
            max_planes=head.max_planes,
            progress=progress,
        )
    data = curve.to_dict() | {"package_version": __version__}
    contents: list[tuple[str | None, bytes]] = []
    if written_as is not None:
        contents.append((output.output, (_csv(curve) if written_as == ".csv" else json_text(data)).encode()))
    if drawing is not None:
        from ropegeo.plots import figure_bytes
        from ropegeo.plots.optimal import optimal_figure

        title = f"Best index head, offset {short(recipe.offset)}: {recipe.spectrum.source}"
        contents.append((plot.plot, figure_bytes(optimal_figure(curve, title=title), drawing)))
    written = destinations.write(*contents)
    if output.as_json:
        print_json(data)
        return
    out = console()
    out.print(f"Best index head of each length, offset {short(recipe.offset)}: {recipe.spectrum.source}", style="bold")
    out.print(optimal_table(curve))
    out.print("best head and upper bound are proved in balls; unit: beta", style="italic")
    for point in curve.points:
        if point.best.status != "converged":
            out.print(f"length {point.length}: search {point.best.status}")
    for path in written:
        out.print(f"wrote {path}")


CSV_COLUMNS = ("length", "margin", "upper_bound", "gap", "planes", "equal_weights", "plane", "plane_margin")


def _csv(curve: OptimalCurve) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for point in curve.points:
        writer.writerow(
            [
                point.length,
                repr(point.best.certificate.low),
                repr(point.best.certificate.high),
                f"{point.best.gap:.3g}",
                len(point.best.planes),
                repr(float(point.equal_weights)),
                point.plane,
                repr(float(point.one_plane)),
            ]
        )
    return buffer.getvalue()


def optimal_table(curve: OptimalCurve) -> Group:
    """The best margin by length, beside simpler heads, for people."""
    return table(
        "",
        [
            ("length", "right"),
            ("best head", "right"),
            ("no head above", "right"),
            ("gap", "right"),
            ("planes", "right"),
            ("equal weights", "right"),
            ("plane, no phase", "right"),
            ("its margin", "right"),
        ],
        [
            [
                str(point.length),
                outward(point.best.certificate.low, 7, up=False),
                outward(point.best.certificate.high, 7, up=True),
                _below(point.best.gap),
                str(len(point.best.planes)),
                _cell(point.equal_weights),
                str(point.plane),
                _cell(point.one_plane),
            ]
            for point in curve.points
        ],
    )


def outward(value: float, digits: int, *, up: bool) -> str:
    """A bound as a decimal of so many significant digits that is a bound too: rounded up or down.

    Example:
        >>> outward(0.32964, 3, up=True), outward(0.32964, 3, up=False), outward(1.8173e-9, 2, up=True)
        ('0.330', '0.329', '1.9e-9')
    """
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR, Emin=-999_999, Emax=999_999)
    rounded = context.create_decimal(Decimal(value))
    if rounded and rounded.adjusted() < -4:
        return f"{rounded.scaleb(-rounded.adjusted())}e{rounded.adjusted()}"
    return f"{rounded:f}"


def _below(gap: float) -> str:
    """A gap by the power of ten above it."""
    return "0" if gap <= 0 else f"< 1e{math.floor(math.log10(gap)) + 1}"


def _cell(value: Enclosure) -> str:
    return value.digits(6) or f"{float(value):.3g}"

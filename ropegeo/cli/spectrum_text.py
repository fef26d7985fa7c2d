"""What `ropegeo spectrum` says: the planes, the critical one, B_m, bases and scalings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from ropegeo.cli.optimal import outward
from ropegeo.cli.output import WIDTH, console, number_text, table
from ropegeo.exact import Enclosure, short

if TYPE_CHECKING:
    from fractions import Fraction

    from rich.console import Group

    from ropegeo.cli.spectrum import AtLength
    from ropegeo.limits.bases import AdmissibleBases, BaseInterval
    from ropegeo.limits.scalings import ScalingRow
    from ropegeo.optimal.head import OptimalHead
    from ropegeo.spectrum import RopeSpectrum

SHOWN_INTERVALS = 24
"""More than this are cut in the middle."""


def show(spectrum: RopeSpectrum, rows: list[dict[str, Any]], found: AtLength | None, written: Sequence[str]) -> None:
    """Print a spectrum for people."""
    out = console()
    out.print(spectrum.source or "spectrum", style="bold")
    out.print(
        f"rope type {spectrum.rope_type}, head_dim {spectrum.head_dim}, rotary_dim {spectrum.rotary_dim}, layout "
        f"{spectrum.layout}, attention factor {spectrum.attention_factor:g}; planes count from 0"
    )
    columns = [("plane", "right"), ("angle (rad/position)", "right"), ("wavelength (positions)", "right")]
    if found is not None:
        columns += [(f"turns in {short(found.length)}", "right"), ("margin, offset 0", "right"), ("second at", "right")]
    out.print(table("", columns, [_cells(row, found is not None) for row in rows]))
    if found is not None:
        for line in _sentences(found):
            for part in wrap(line, WIDTH, subsequent_indent="  "):
                out.print(part)
        if found.bases is not None:
            out.print("")
            out.print(_bases_table(found.bases))
            for line in _bases_sentences(found):
                for part in wrap(line, WIDTH, subsequent_indent="  "):
                    out.print(part)
        if found.scalings:
            out.print("")
            out.print(_scalings_table(found.scalings, found.best))
            for part in wrap(_SCALINGS_NOTE, WIDTH):
                out.print(part)
    for path in written:
        out.print(f"wrote {path}")


def _cells(row: dict[str, Any], with_length: bool) -> list[str]:
    cells = [str(row["plane"]), f"{row['angle']:.12g}", f"{row['wavelength']:.6g}"]
    if with_length:
        cells += [row["turns_digits"], Enclosure.from_dict(row, "margin").digits(6) or "?", short(int(row["at"]))]
    return cells


def _sentences(found: AtLength) -> Iterator[str]:
    n = short(found.length)
    if found.critical is None:
        yield f"critical plane: none; no plane completes a turn within {n} positions"
    else:
        yield f"critical plane: {found.critical}, the slowest that completes a whole turn within {n} positions"
    name = "B_m = sum over planes of cos(m angle)"
    if found.first_negative is None:
        yield f"{name} is not negative for any m below {short(found.searched)}"
    else:
        yield f"{name} is first negative at m = {short(found.first_negative)}"
    verdict = {
        True: f"admissible for length {n}: no B_m is negative for m < {n}",
        False: f"not admissible for length {n}: a B_m with m < {n} is negative",
        None: f"whether it is admissible for length {n} is not known: larger m were not looked at",
    }
    yield verdict[found.admissible]


def _bases_table(bases: AdmissibleBases) -> Group:
    if not bases.intervals:
        return table(f"bases with B_m >= 0 for all m < {bases.length}: none", [], [])
    intervals = list(enumerate(bases.intervals, 1))
    cut = len(intervals) > SHOWN_INTERVALS
    half = SHOWN_INTERVALS // 2
    rows = [_interval(number, each) for number, each in (intervals[:half] if cut else intervals)]
    if cut:
        rows.append(["..", f"{len(intervals) - 2 * half} more: --json", "", "", ""])
        rows += [_interval(number, each) for number, each in intervals[-half:]]
    return table(
        f"bases with B_m >= 0 for all m < {bases.length}, {bases.rotary_dim} rotated coordinates, no scaling",
        [("", "right"), ("from base", "right"), ("to base", "right"), ("B_m = 0 at m", "right"), ("and m", "right")],
        rows,
    )


def _interval(number: int, each: BaseInterval) -> list[str]:
    return [
        str(number),
        each.low.digits(12) or number_text(float(each.low)),
        "no end" if each.high is None else each.high.digits(12) or number_text(float(each.high)),
        "-" if each.low_distance is None else str(each.low_distance),
        "-" if each.high_distance is None else str(each.high_distance),
    ]


def _bases_sentences(found: AtLength) -> Iterator[str]:
    bases = found.bases
    if bases is None or bases.half_line is None or bases.smallest is None:
        yield "no base is admissible: the one plane turns by 1 whatever the base"
        return
    count = len(bases.intervals)
    least, sure = _rounded(bases.smallest.low, ROUND_FLOOR), _rounded(bases.half_line.high, ROUND_CEILING)
    yield (
        f"{count} interval{'s' if count > 1 else ''}, proved to be all: no base below {least} is admissible, and every "
        f"base from {sure} on"
    )


def _rounded(value: Fraction, rounding: str) -> str:
    """Eight digits of a bound, rounded so that it stays one."""
    with localcontext(Context(prec=8, rounding=rounding)):
        return number_text(float(Decimal(value.numerator) / Decimal(value.denominator)), 8)


_SCALINGS_NOTE = (
    "Margins at the length, in units of beta. index: one plane, offset 0 (the plane); equal: all planes with equal "
    "weights; best: of any index head, offset 0 (to length 2^17); letters: the centred head on 8 letters, worst case "
    "(the plane). ntk (ours): the base changed so that the slowest plane is slowed by the factor. B_m < 0 from: the "
    "first such m; '-': none within the length."
)


def _scalings_table(rows: Sequence[ScalingRow], best: Sequence[OptimalHead]) -> Group:
    columns = [("scaling", "left"), ("slowest angle", "right"), ("critical", "right"), ("B_m < 0 from", "right")]
    columns += [("index", "right"), ("equal", "right"), ("best", "right"), ("letters", "right")]
    margins = [outward(head.certificate.low, 5, up=False) for head in best] or ["-"] * len(rows)
    return table(
        f"scalings at length {short(rows[0].length)}",
        columns,
        [
            [
                row.name,
                number_text(row.slowest),
                "-" if row.critical is None else str(row.critical),
                "-" if row.first_negative is None else str(row.first_negative),
                f"{_margin(row.index_margin)} ({row.index_plane})",
                _margin(row.equal_weights),
                margin,
                f"{_margin(row.letter_margin)} ({row.letter_plane})",
            ]
            for row, margin in zip(rows, margins, strict=True)
        ],
    )


def _margin(value: Enclosure) -> str:
    return value.digits(5) or number_text(float(value), 5)

"""`ropegeo spectrum`: the planes of a rotation."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import numpy as np

from ropegeo._version import __version__
from ropegeo.cli.output import Destinations, console, json_text, print_json, suffix_of, table
from ropegeo.cli.request import read_length, read_spectrum
from ropegeo.engine.index_margin import index_curve
from ropegeo.engine.planes import one_plane
from ropegeo.exact import ClosedForm, Enclosure, safe_integer, short
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum

if TYPE_CHECKING:
    from ropegeo.cli.options import OutputOptions, RopeOptions


def run(rope: RopeOptions, output: OutputOptions, length_text: str | None) -> None:
    """Show the planes, and write what was asked for."""
    written_as = suffix_of(output.output, (".csv", ".json"), "--output")
    destinations = Destinations(output.output, force=output.force)
    spectrum = read_spectrum(rope)
    length = None if length_text is None else read_length(length_text)
    rows = [_plane(spectrum, plane, length) for plane in range(spectrum.planes)]
    data = {
        **spectrum.to_dict(),
        "package_version": __version__,
        "length": None if length is None else safe_integer(length),
        "planes": rows,
    }
    contents: list[tuple[str | None, bytes]] = []
    if written_as == ".csv":
        contents.append((output.output, _csv(rows).encode()))
    elif written_as == ".json":
        contents.append((output.output, json_text(data).encode()))
    written = destinations.write(*contents)
    if output.as_json:
        print_json(data)
        return
    out = console()
    out.print(spectrum.source or "spectrum", style="bold")
    out.print(
        f"rope type {spectrum.rope_type}, head_dim {spectrum.head_dim}, rotary_dim {spectrum.rotary_dim}, layout "
        f"{spectrum.layout}, attention factor {spectrum.attention_factor:g}; planes count from 0"
    )
    columns = [("plane", "right"), ("angle (rad/position)", "right"), ("wavelength (positions)", "right")]
    if length is not None:
        columns += [(f"turns in {length_text}", "right"), ("margin, offset 0", "right"), ("second at", "right")]
    out.print(table("", columns, [_cells(row, length is not None) for row in rows]))
    for path in written:
        out.print(f"wrote {path}")


def _plane(spectrum: RopeSpectrum, plane: int, length: int | None) -> dict[str, Any]:
    angle = float(spectrum.inv_freq[plane])
    row: dict[str, Any] = {
        "plane": plane,
        "angle": angle,
        "angle_exact": spectrum.angle_texts[plane],
        "wavelength": 2 * np.pi / angle,
    }
    if length is not None:
        profile = LogitProfile(spectrum=spectrum, coefficients=one_plane(spectrum, plane).astype(np.complex128))
        point = index_curve(profile, [length]).points[0]
        turns = Enclosure.of_ball((length * spectrum.angles[plane] / (2 * ClosedForm.pi())).ball(256))
        row["turns"] = float(turns) if turns.high < 10**300 else None
        row["turns_digits"] = turns.digits(6)
        row |= point.margin.to_dict("margin")
        row["at"] = safe_integer(point.at)
    return row


def _cells(row: dict[str, Any], with_length: bool) -> list[str]:
    cells = [str(row["plane"]), f"{row['angle']:.12g}", f"{row['wavelength']:.6g}"]
    if with_length:
        cells += [row["turns_digits"], Enclosure.from_dict(row, "margin").digits(6) or "?", short(int(row["at"]))]
    return cells


def _csv(rows: list[dict[str, Any]]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()

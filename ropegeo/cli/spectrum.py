"""`ropegeo spectrum`: the planes of a rotation, what each is worth at a length, and what other bases would do."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ropegeo._version import __version__
from ropegeo.cli.output import Destinations, busy, json_text, print_json, suffix_of, working
from ropegeo.cli.request import read_integer, read_length, read_spectrum
from ropegeo.cli.spectrum_text import show
from ropegeo.engine.index_margin import index_curve
from ropegeo.engine.planes import one_plane
from ropegeo.errors import InvalidInputError
from ropegeo.exact import ClosedForm, Enclosure, parse_decimal, safe_integer
from ropegeo.heads import LogitProfile
from ropegeo.limits.base_search import PARTS
from ropegeo.limits.bases import AdmissibleBases, admissible_bases
from ropegeo.limits.scalings import NAMES, ScalingRow, compare_scalings
from ropegeo.limits.scores import critical_plane, first_negative, score_ranges

if TYPE_CHECKING:
    from fractions import Fraction

    from ropegeo.cli.options import OutputOptions, PlotOptions, RopeOptions
    from ropegeo.optimal.head import OptimalHead
    from ropegeo.spectrum import RopeSpectrum

SEARCHED = 1 << 17, 1 << 23
"""How far B_m is looked at: to the length, but at least and at most this far."""
DESIGNED = 1 << 17
"""Longest length for which best heads are designed; one takes some seconds there."""
DRAWN = 1 << 17
BINS = 1500


def run(
    rope: RopeOptions,
    output: OutputOptions,
    plot: PlotOptions,
    *,
    length_text: str | None,
    with_bases: bool,
    factor_text: str | None,
    original_text: str | None,
) -> None:
    """Show the planes, and write what was asked for.

    Args:
        rope: which rotation.
        output: where results go.
        plot: a picture of B_m.
        length_text: the length to show more at.
        with_bases: also find all admissible bases.
        factor_text: of the scalings to compare.
        original_text: original length of llama3 scaling.
    """
    written_as = suffix_of(output.output, (".csv", ".json"), "--output")
    drawing = suffix_of(plot.plot, (".svg", ".png"), "--plot")
    destinations = Destinations(output.output, plot.plot, force=output.force)
    spectrum = read_spectrum(rope)
    length = None if length_text is None else read_length(length_text)
    factor, original_length = _scaling(factor_text, original_text)
    if length is None:
        for option, given in (
            ("--bases", with_bases),
            ("--compare-scalings", factor is not None),
            ("--plot", drawing is not None),
        ):
            if given:
                raise InvalidInputError(f"spectrum: {option} goes with --length n")
    found = None
    if length is not None:  # first, since it may refuse
        found = _at_length(spectrum, length, with_bases, factor, original_length)
    rows = [_plane(spectrum, plane, length) for plane in range(spectrum.planes)]
    data: dict[str, Any] = {
        **spectrum.to_dict(),
        "package_version": __version__,
        "length": None if length is None else safe_integer(length),
        "planes": rows,
    }
    if found is not None:
        data |= found.to_dict()
    contents: list[tuple[str | None, bytes]] = []
    if written_as == ".csv":
        contents.append((output.output, _csv(rows).encode()))
    elif written_as == ".json":
        contents.append((output.output, json_text(data).encode()))
    if drawing is not None and found is not None:
        contents.append((plot.plot, _picture(found, drawing)))
    written = destinations.write(*contents)
    if output.as_json:
        print_json(data)
    else:
        show(spectrum, rows, found, written)


@dataclass(frozen=True, eq=False, kw_only=True)
class AtLength:
    """What holds of a rotation at one length.

    Attributes:
        spectrum: the rotation.
        length: n.
        critical: the slowest plane that comes round within n; None if none does.
        first_negative: the smallest m with B_m < 0; None if there is none below `searched`.
        searched: how many distances were looked at.
        bases: the bases that are admissible for n, if asked for.
        scalings: the comparison, if asked for.
        best: for each of them the best index head with offset 0; none beyond `DESIGNED` positions.
    """

    spectrum: RopeSpectrum
    length: int
    critical: int | None
    first_negative: int | None
    searched: int
    bases: AdmissibleBases | None
    scalings: tuple[ScalingRow, ...]
    best: tuple[OptimalHead, ...]

    @property
    def admissible(self) -> bool | None:
        """Whether no B_m, m < n, is negative; None where the search did not get that far."""
        if self.first_negative is not None:
            return self.first_negative >= self.length
        return True if self.searched >= self.length else None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "critical_plane": self.critical,
            "first_negative": self.first_negative,
            "first_negative_searched": self.searched,
            "admissible": self.admissible,
            "bases": None if self.bases is None else self.bases.to_dict(),
            "scalings": self._scalings() or None,
        }

    def _scalings(self) -> list[dict[str, Any]]:
        rows = [row.to_dict() for row in self.scalings]
        for row, best in zip(rows, self.best, strict=False):
            row |= {"best_margin_low": best.certificate.low, "best_margin_high": best.certificate.high}
        return rows


def _scaling(factor_text: str | None, original_text: str | None) -> tuple[Fraction | None, int | None]:
    """The factor and the original length of --compare-scalings."""
    if factor_text is None:
        if original_text is not None:
            raise InvalidInputError("spectrum: --original-length goes with --compare-scalings")
        return None, None
    try:
        factor = parse_decimal(factor_text)
    except InvalidInputError as error:
        raise InvalidInputError(f"--compare-scalings: {error}") from error
    original = None if original_text is None else read_integer(original_text, "--original-length")
    return factor, original


def _at_length(
    spectrum: RopeSpectrum, length: int, bases: bool, factor: Fraction | None, original_length: int | None
) -> AtLength:
    scalings: tuple[ScalingRow, ...] = ()
    if factor is not None:  # first, since it may refuse the spectrum
        with working("comparing scalings", len(NAMES)) as progress:
            scalings = compare_scalings(
                spectrum, factor=factor, length=length, original_length=original_length, progress=progress
            )
    best: tuple[OptimalHead, ...] = ()
    if scalings and length <= DESIGNED:
        from ropegeo.optimal.head import optimal_head

        with busy("designing the best heads"):
            best = tuple(optimal_head(row.spectrum, length=length) for row in scalings)
    admissible = None
    if bases:
        with working("covering the bases", PARTS) as progress:
            admissible = admissible_bases(spectrum.rotary_dim, length, progress=progress)
    searched = min(max(length, SEARCHED[0]), SEARCHED[1])
    with working("looking for a negative B_m", searched) as progress:
        negative = first_negative(spectrum, max_length=searched, progress=progress)
    return AtLength(
        spectrum=spectrum,
        length=length,
        critical=critical_plane(spectrum, length),
        first_negative=negative,
        searched=searched,
        bases=admissible,
        scalings=scalings,
        best=best,
    )


def _picture(found: AtLength, suffix: str) -> bytes:
    from ropegeo.plots import figure_bytes
    from ropegeo.plots.spectrum import spectrum_figure

    shown = min(max(found.length, 2 * (found.first_negative or 0)), DRAWN)
    ranges = score_ranges(found.spectrum, max_length=shown, bins=BINS)
    figure = spectrum_figure(
        ranges,
        title=f"B_m of {found.spectrum.source or 'a spectrum'}",
        length=found.length,
        first_negative=found.first_negative,
        bases=found.bases,
    )
    return figure_bytes(figure, suffix)


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


def _csv(rows: list[dict[str, Any]]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()

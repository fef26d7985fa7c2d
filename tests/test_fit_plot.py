"""Pictures of fits: what is drawn where, what is not drawn, and that no text covers another."""

from __future__ import annotations

import functools
import math
import shlex
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from test_plots import by_gid, legend_texts, line, overlapping_texts

from ropegeo.asymptotics.bounds import dirichlet_bound, simultaneous_bound
from ropegeo.asymptotics.data import DecayData, curve_data, decay_data
from ropegeo.asymptotics.fit import DecayFit, fit_decay
from ropegeo.asymptotics.fitted_law import fit_law
from ropegeo.asymptotics.laws import LAWS, power
from ropegeo.asymptotics.lines import CurveLine, bound_line, law_line, spaced_lengths, staircase_line
from ropegeo.cli import main
from ropegeo.engine.routes import margin_curve, record_curve
from ropegeo.exact import read_angle
from ropegeo.heads import LogitProfile
from ropegeo.plots import figure_bytes, fit_figure
from ropegeo.spectrum import RopeSpectrum

PLANE = "10000^(-2/128)"
TITLE = "Fit: margin of seen.csv"
LN10 = math.log(10)


def one_plane(angle: str = PLANE, offset: int = 0) -> LogitProfile:
    return LogitProfile(spectrum=RopeSpectrum.from_angle(angle), coefficients=np.ones(1, complex), origin=offset)


def measured(count: int = 40, last: int = 10**5, shift: float = 0.0) -> DecayData:
    """5 n^-1.3 with 20 % noise, less a shift."""
    lengths = np.unique(np.rint(np.geomspace(10, last, count)).astype(int))
    margins = 5.0 * lengths**-1.3 * np.exp(np.random.default_rng(0).normal(0, 0.2, lengths.size))
    return decay_data(lengths.tolist(), margins - shift, sd=0.2 * margins)


CASES: dict[str, tuple[Callable[[], DecayData], dict[str, Any]]] = {
    "records": (lambda: curve_data(record_curve(one_plane(), 10**6)), {"laws": ["power"]}),
    "known angle": (
        lambda: curve_data(record_curve(one_plane(), 10**6)),
        {"laws": ["power", "staircase"], "angle": read_angle(PLANE)},
    ),
    "every length": (lambda: curve_data(margin_curve(one_plane(), range(2, 2000))), {"laws": ["power"]}),
    "measured": (measured, {"laws": ["power"]}),
    "narrow": (lambda: decay_data([100, 101, 102, 103, 104], [5.0, 4.9, 4.7, 4.8, 4.5]), {"laws": ["power"]}),
    "fails": (lambda: measured(shift=1e-4), {"laws": ["power"]}),
    "fails everywhere": (lambda: decay_data([10, 20, 30, 40], [-1.0, -1.0, 0.0, -2.0]), {"laws": ["power"]}),
    "1e1000": (
        lambda: decay_data([10 ** (100 * k) for k in range(1, 11)], [Decimal(f"1e-{200 * k}") for k in range(1, 11)]),
        {"laws": ["power"]},
    ),
    "many points": (lambda: measured(5000, 10**6), {"laws": ["power"]}),
}  # fmt: skip


@functools.cache
def fitted(name: str) -> tuple[DecayData, DecayFit]:
    make, options = CASES[name]
    data = make()
    return data, fit_decay(data, **options)


@functools.cache
def drawn(name: str) -> Figure:
    data, fit = fitted(name)
    first, last = data.lengths[0], data.lengths[-1]
    return fit_figure(
        data,
        fit.data,
        title=TITLE,
        subtitle=f"{fit.chosen or fit.status}: C 15.7 [11.1, 17.1], exponent -1.992 [-2.021, -1.960]",
        law=law_line(fit.fit(fit.chosen), fit.data) if fit.chosen else None,
        bound=bound_line(1, data, first, last) if data.unit else None,
        theory=staircase_line(read_angle(PLANE), data, first, last) if data.unit else None,
    )


# ---- readable ----


@pytest.mark.parametrize("name", CASES)
def test_no_text_covers_another(name: str) -> None:
    assert overlapping_texts(drawn(name)) == []


@pytest.mark.parametrize("name", CASES)
def test_axes_say_what_they_show(name: str) -> None:
    figure = drawn(name)
    (axes,) = figure.axes
    unit = "units of beta" if fitted(name)[0].unit else "units of the data"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("length n (positions)", f"margin ({unit})")
    assert figure.get_suptitle() == TITLE
    assert axes.get_title()
    for ticks in (axes.get_xticklabels(), axes.get_yticklabels()):
        assert len(ticks) >= 2
    for legend in figure.legends:
        assert legend.get_window_extent().y1 < axes.get_window_extent().y0


def test_every_line_has_its_own_colour_and_style() -> None:
    lines = [artist for gid in ("law", "theory", "bound", "given") for artist in by_gid(drawn("records"), gid)]
    looks = [(one.get_color(), one.get_linestyle()) for one in lines if isinstance(one, Line2D)]
    assert len(looks) == 4
    assert len({colour for colour, _ in looks}) == 4
    assert len(legend_texts(drawn("records"))) == 6


# ---- what is drawn where ----


def test_points_stand_at_their_logarithms() -> None:
    for name in CASES:
        data, fit = fitted(name)
        if fit.data.lengths:
            n, height = line(drawn(name), "used")
            np.testing.assert_allclose(n, [math.log10(m) for m in fit.data.lengths], rtol=1e-15)
            np.testing.assert_allclose(height * LN10, fit.data.log_margin, rtol=1e-12)
        lost = [math.log10(m) for m, wins in zip(data.lengths, data.positive, strict=True) if not wins]
        found = by_gid(drawn(name), "lost")
        assert len(found) == bool(lost)
        if lost:
            x, y = line(drawn(name), "lost")
            np.testing.assert_allclose(x, lost, rtol=1e-15)
            assert not y.any()
            assert "margin 0 or below" in legend_texts(drawn(name))


def test_the_steps_of_records_are_drawn() -> None:
    figure = drawn("records")
    (steps,) = by_gid(figure, "given")
    assert isinstance(steps, Line2D)
    assert steps.get_drawstyle() == "steps-post"
    assert len(np.asarray(steps.get_xdata())) == 10
    (used,) = by_gid(figure, "used")
    assert isinstance(used, Line2D)
    assert len(np.asarray(used.get_xdata())) == 9
    assert {"the data's steps", "points used"} <= set(legend_texts(figure))
    assert "data" in legend_texts(drawn("measured"))
    assert by_gid(drawn("measured"), "given") == []
    assert len(line(drawn("every length"), "given")[0]) == 1998 - len(fitted("every length")[1].data.lengths)


def test_the_law_and_its_band() -> None:
    """The line is C n^exponent; the band holds it, is narrow amid the data, and is named by what it is."""
    for name, words in (("measured", "95 % band of the law"), ("records", "laws as near to every point")):
        fit = fitted(name)[1].fit("power")
        n, height = line(drawn(name), "law")
        expected = math.log10(fit.parameters["C"].value) + fit.parameters["exponent"].value * n
        np.testing.assert_allclose(height, expected, atol=1e-9)
        (band,) = by_gid(drawn(name), "band")
        assert isinstance(band, PolyCollection)
        corners = band.get_paths()[0].vertices
        for x, y in zip(n, height, strict=True):
            at = np.asarray(corners)[np.abs(np.asarray(corners)[:, 0] - x) < 1e-12, 1]
            assert at.min() <= y + 1e-9
            assert at.max() >= y - 1e-9
        assert words in legend_texts(drawn(name))


def test_standard_deviations_are_drawn() -> None:
    (bars,) = by_gid(drawn("measured"), "sd")
    assert isinstance(bars, LineCollection)
    data = fitted("measured")[0]
    for segment, margin in zip(bars.get_segments(), data.margin, strict=True):
        (x0, low), (x1, high) = np.asarray(segment).tolist()
        assert x0 == x1
        assert data.sd is not None
        assert (10**low, 10**high) == pytest.approx((0.8 * margin, 1.2 * margin), rel=1e-9)
    assert by_gid(drawn("records"), "sd") == []


def test_nothing_is_drawn_where_nothing_is_fitted() -> None:
    figure = drawn("fails everywhere")
    for gid in ("law", "band", "bound", "theory", "used", "given"):
        assert by_gid(figure, gid) == []
    assert legend_texts(figure) == ["margin 0 or below"]


# ---- lines ----


def test_a_band_is_the_interval_of_the_parameters() -> None:
    """At n = 1 a power law is C: with noise, and without."""
    for name in ("measured", "records", "narrow"):
        law = fitted(name)[1].fit("power")
        assert law.shape is not None
        band = law.shape.band([1])
        assert band is not None
        level = law.parameters["C"]
        np.testing.assert_allclose(band[0], np.log([level.low, level.high]), rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_a_band_covers_the_truth_as_often_as_it_says() -> None:
    """In 1000 draws of a power law with noise the true height at n = 1000 lies in the band 95 % of the time."""
    lengths = [10, 30, 100, 300, 1000, 3000, 10**4, 30000]
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(1000):
        truth = 3.0 * np.array(lengths) ** -1.2
        data = decay_data(lengths, truth * np.exp(rng.normal(0, 0.3, 8)))
        fit = fit_law(power(data), data)
        assert fit is not None
        assert fit.shape is not None
        band = fit.shape.band([1000])
        assert band is not None
        low, high = band[0]
        covered += low < math.log(truth[4]) < high
    assert 0.93 * 1000 < covered < 0.97 * 1000


def test_the_band_of_exact_data_holds_the_laws_that_are_as_near() -> None:
    """Any C and exponent that stay within the largest deviation of the fit lie in the band; some come near its ends."""
    _, fit = fitted("records")
    law = fit.fit("power")
    assert law.shape is not None
    x, y = fit.data.log_length, fit.data.log_margin
    band = law.shape.band([30, 1000, 10**6])
    assert band is not None
    at = np.log([30, 1000, 10**6])
    rng = np.random.default_rng(0)
    best = (math.log(law.parameters["C"].value), law.parameters["exponent"].value)
    spread = np.array([best[0], best[1]]) + rng.normal(0, 1, (20_000, 2)) * [0.5, 0.05]
    heights = []
    for level, exponent in spread:
        if np.abs(y - level - exponent * x).max() <= law.largest:
            heights.append(level + exponent * at)
    assert len(heights) > 20
    assert (np.array(heights) >= band[:, 0] - 1e-9).all()
    assert (np.array(heights) <= band[:, 1] + 1e-9).all()
    width = np.ptp(np.array(heights), axis=0)
    assert (width > 0.5 * np.ptp(band, axis=1)).all()


def test_the_staircase_line_is_the_margin_at_every_length() -> None:
    for offset, column in ((0, "margin"), (7, "margin"), (7, "best"), (7, "worst")):
        curve = margin_curve(one_plane("1", offset), range(offset + 2, 500))
        data = curve_data(curve, column=column)
        drawn_line = staircase_line(read_angle("1"), data, data.lengths[0], data.lengths[-1])
        assert drawn_line is not None
        place = np.searchsorted(drawn_line.lengths, data.lengths, side="right") - 1
        np.testing.assert_allclose(drawn_line.log_margin[place], data.log_margin, rtol=1e-14, atol=1e-14)
    tie = staircase_line(read_angle("1/5 turn"), data, 5, 100)
    assert tie is not None
    assert np.isnan(tie.log_margin[-1])


@pytest.mark.parametrize("planes", [1, 2, 6])
def test_the_bound_line_is_the_bound(planes: int) -> None:
    """Where T + 1 >= 2^F; also beyond the range of doubles."""
    data = decay_data([2, 10**6], [1.0, 0.5], offset=3)
    found = bound_line(planes, data, 2, 10**6)
    assert found is not None
    reaches = np.array(data.reaches_at(found.lengths), dtype=float)
    assert reaches.min() + 1 >= 2**planes
    expected = simultaneous_bound(reaches, np.full(reaches.size, float(planes)))
    np.testing.assert_allclose(np.exp(found.log_margin), expected, rtol=1e-12)
    if planes == 1:
        np.testing.assert_allclose(np.exp(found.log_margin), dirichlet_bound(reaches), rtol=1e-12)
    far = bound_line(planes, data, 10**140, 10**400)
    assert far is not None
    steps = np.diff(far.log_margin) / np.diff([math.log(n) for n in far.lengths])
    np.testing.assert_allclose(steps, -2 / planes, rtol=1e-9)
    assert bound_line(40, data, 2, 1000) is None


def test_spaced_lengths_are_even_and_exact() -> None:
    for first, last in ((2, 10), (10, 10**6), (10**299, 10**1000), (10**30, 10**30 + 3), (7, 7)):
        lengths = spaced_lengths(first, last, 50)
        assert (lengths[0], lengths[-1]) == (first, last)
        assert all(before < after for before, after in pairwise(lengths))
        assert len(lengths) <= 50
    steps = np.diff([math.log(n) for n in spaced_lengths(10**299, 10**1000, 50)])
    np.testing.assert_allclose(steps, steps[0], rtol=1e-9)


def test_laws_are_drawn_as_they_are_fitted() -> None:
    """Each law's line at the lengths of the data is what the fit says there."""
    data = measured(30, 5000)
    fit = fit_decay(data, laws=[name for name in LAWS if name != "staircase"], unit_weight=False)
    assert len(fit.fits) >= 5
    for law in fit.fits:
        found = law_line(law, fit.data)
        assert isinstance(found, CurveLine), law.law
        place = np.searchsorted(found.lengths, data.lengths)
        np.testing.assert_allclose(found.log_margin[place], law.log_margin, atol=1e-9)
        assert found.band is not None
    read = DecayFit.from_dict(fit.to_dict())
    assert law_line(read.fits[0], fit.data) is None


# ---- the command ----


@pytest.fixture(name="names")
def _names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, str | None]]:
    """The names of the lines that a command has drawn; the drawing itself is left out."""
    monkeypatch.chdir(tmp_path)
    seen: list[dict[str, Any]] = []

    def kept(*_: Any, **options: Any) -> Figure:
        seen.append(options)
        return Figure()

    monkeypatch.setattr("ropegeo.plots.fit_figure", kept)
    monkeypatch.setattr("ropegeo.plots.figure_bytes", lambda _figure, suffix: suffix.encode())

    def names(line: str, *, status: int = 0) -> dict[str, str | None]:
        assert main(shlex.split(f"{line} --plot p.svg --force")) == status
        assert Path("p.svg").read_bytes() == b".svg"
        lines = {kind: seen[-1][kind] for kind in ("law", "bound", "theory")}
        return {kind: None if one is None else one.name for kind, one in lines.items()}

    return names


@pytest.mark.slow
def test_only_bounds_that_hold_are_drawn(names: Callable[..., dict[str, str | None]]) -> None:
    """In units of beta, on a known number of planes; and the theory that is asked about."""
    main(shlex.split(f"curve --angle '{PLANE}' --length 1e5 --records --output one.csv"))
    main(shlex.split("curve --planes 0-2 --base 10000 --head-dim 16 --length 2000 --records --output three.csv"))
    main(shlex.split("curve --mode retrieval --angle 0.002 --length 24 --every 4 --output letters.csv"))
    rows = [f"{n},{7 / n**2}" for n in (10, 20, 40, 80, 160)]
    Path("seen.csv").write_text("\n".join(["length,margin", *rows]))
    one, three = "no one-plane head is higher: 2 sin²(π/(T+1))", "no head on 3 planes is higher: 2 sin²(π(T+1)^(−1/3))"
    planes = "--planes 0-2 --base 10000 --head-dim 16"
    letters = "--mode retrieval --angle 0.002"
    for command, bound in {
        "fit one.csv": one,
        "fit one.csv --weight free": None,
        "fit three.csv": None,
        "fit three.csv --planes-used 3": three,
        f"fit three.csv --compare theory {planes}": three,
        "fit letters.csv": None,
        f"fit letters.csv --compare theory {letters}": None,
        "fit seen.csv --angle 1": None,
        "fit seen.csv --angle 1 --weight 1": one,
    }.items():
        assert names(f"{command} --laws power")["bound"] == bound, command
    theory = "theory: Index head, offset 0: 3 planes of base 10000, head_dim 16, rotary_dim 16"
    assert names(f"fit three.csv --laws power --compare theory {planes}")["theory"] == theory
    assert names(f"fit letters.csv --laws power --compare theory {letters}")["theory"] == (
        "theory: Retrieval head: plane 0 of angle 0.002"
    )
    drawn = names("fit seen.csv --laws staircase --angle 1")
    assert drawn == {
        "law": "law: staircase", "bound": None, "theory": "theory: one plane of the given angle, height fitted"
    }  # fmt: skip


@pytest.mark.slow
def test_bytes_are_the_same_every_time() -> None:
    data, fit = fitted("fails")
    law = law_line(fit.fits[0], fit.data)
    first, again, other = (
        figure_bytes(fit_figure(data, fit.data, title=TITLE, law=one), ".svg") for one in (law, law, None)
    )
    assert first == again != other
    assert len(figure_bytes(drawn("many points"), ".svg")) < 1_000_000

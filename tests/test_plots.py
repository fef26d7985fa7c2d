"""The pictures: what is drawn where, that no text covers another, and that the bytes are the same every time."""

from __future__ import annotations

import functools
import itertools
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text

import ropegeo.plots.head as head_module
from ropegeo.construct.built import BuiltHead
from ropegeo.construct.geometry import DistanceLogits, PlaneGeometry, distance_logits, plane_geometry
from ropegeo.construct.index import index_head, token_index_head
from ropegeo.construct.retrieval import retrieval_head
from ropegeo.engine.margin import MarginCurve, MarginPoint
from ropegeo.errors import InvalidInputError
from ropegeo.exact import Enclosure
from ropegeo.plots import curve_figure, figure_bytes, head_figure
from ropegeo.plots.canvas import COLOURS, plain
from ropegeo.plots.labels import joined, spread
from ropegeo.plots.ticks import log_ticks
from ropegeo.spectrum import RopeSpectrum
from ropegeo.tasks import letter_names

PAPER = RopeSpectrum.from_base(10000, head_dim=128, layout="interleaved")
A8, A26 = letter_names(8), letter_names(26)
TITLE = "index head, offset 3: plane 0 of base 10000, head_dim 128, rotary_dim 128"

# name: head, length, how many keys and integers are drawn
HEADS: dict[str, tuple[Callable[[], BuiltHead], int, int]] = {
    "index": (lambda: index_head(PAPER, offset=3), 17, 12),
    "offset 0": (lambda: index_head(PAPER, offset=0), 17, 12),
    "offset 500": (lambda: index_head(PAPER, offset=500), 600, 12),
    "target outside": (lambda: index_head(PAPER, offset=500), 100, 12),
    "five digits": (lambda: index_head(RopeSpectrum.from_angle("1/5 turn"), offset=99_900), 99_990, 12),
    "a far target": (lambda: index_head(PAPER, offset=10**15), 64, 12),
    "many keys": (lambda: index_head(PAPER, offset=30), 61, 60),
    "integers": (lambda: token_index_head(PAPER, letters=A8, integers=range(1, 9)), 17, 12),
    "many integers": (lambda: token_index_head(PAPER, letters=A8, integers=range(1, 25)), 50, 24),
    "letters": (lambda: retrieval_head(PAPER, letters=A8, planes=(60,)), 17, 12),
    "centred": (lambda: retrieval_head(PAPER, letters=A8, planes=(60,), centre_length=17), 17, 12),
    "centred, apart": (lambda: retrieval_head(PAPER, letters=A8, planes=(20,), centre_length=9), 17, 12),
    "26 letters": (lambda: retrieval_head(PAPER, letters=A26, planes=(60,)), 17, 26),
    "fails": (lambda: retrieval_head(PAPER, letters=A8, planes=(30,)), 300, 12),
    "tie": (lambda: index_head(RopeSpectrum.from_angle("1/5 turn"), offset=3), 17, 12),
    "crowded": (lambda: index_head(PAPER, offset=3, planes=(60,)), 17, 12),
    "slower": (lambda: index_head(RopeSpectrum.from_angle("1e-7"), offset=3), 17, 12),
    "slow integers": (lambda: token_index_head(PAPER, letters=A8, integers=range(1, 9), planes=(60,)), 17, 12),
    "planes, beta 10": (lambda: index_head(PAPER, offset=3, planes=range(21), beta=10.0), 300, 12),
    "one distance": (lambda: index_head(PAPER, offset=0), 1, 12),
    "odd names": (
        lambda: retrieval_head(PAPER, letters=["$x^$", "a=b c", "字", "pneumonoultramicroscopic", "\n"], integers=[1]),
        17,
        12,
    ),
}


@functools.cache
def drawn(name: str) -> tuple[Figure, PlaneGeometry, DistanceLogits]:
    make, length, keys = HEADS[name]
    built = make()
    first = 10**15 - 32 if name == "a far target" else 0
    geometry, logits = plane_geometry(built, keys=keys), distance_logits(built, length, first=first)
    return head_figure(geometry, logits, title=TITLE), geometry, logits


def point(length: int, margin: Fraction | int, best: Fraction | int | None, worst: Fraction | int) -> MarginPoint:
    return MarginPoint(
        length=length,
        margin=Enclosure.exactly(margin),
        best=None if best is None else Enclosure.exactly(best),
        worst=Enclosure.exactly(worst),
        at=1,
        method="definition",
    )


def curve(*points: MarginPoint) -> MarginCurve:
    return MarginCurve(points=points, margin_of="offset 3", inputs="offsets 0..n-1", beta=1.0)


def falling(lengths: Sequence[int], zero: int | None = None) -> MarginCurve:
    """1/n^2, 4/n^2 and 1/n^2/2; margin and worst turn to 0 at `zero` and below it one length later."""
    points = []
    for n in lengths:
        margin = Fraction(1, n**2) if zero is None or n < zero else Fraction(zero - n, n)
        points.append(point(n, margin, Fraction(4, n**2), margin / 2))
    return curve(*points)


NINTH = Fraction(1, 9)
CURVES: dict[str, tuple[MarginCurve, MarginCurve]] = {
    "ordinary": (falling(range(4, 300)), falling([8, 64, 256])),
    "two decades": (falling(range(4, 90)), falling([8, 64])),
    "narrow": (falling(range(100, 111)), falling([100, 104, 110])),
    "1e30": (falling([10**k for k in range(1, 31)]), falling([10**10, 10**30])),
    "1e1000": (falling([10**k for k in range(1, 1001, 9)]), falling([10, 10**500, 10**1000])),
    "single": (falling([17]), falling([17])),
    "single, huge": (falling([10**1000]), falling([10**1000])),
    "fails": (falling(range(2, 200), zero=147), falling([17, 100, 147, 150], zero=147)),
    "fails, sparse": (falling([2, 100, 200], zero=147), falling([200], zero=147)),
    "fails from the start": (falling([2, 3, 4, 9], zero=1), falling([3, 9], zero=1)),
    "nothing positive": (curve(point(2, -1, None, -1), point(9, -1, None, -2)), curve(point(9, -1, None, -2))),
    "no best": (curve(point(2, 1, None, 1), point(9, NINTH, None, NINTH)), curve(point(2, 1, None, 1))),
    "many asked": (falling(range(2, 200)), falling(range(2, 200))),
}  # fmt: skip
BOUNDS = ("Dirichlet: 1 - cos(2π/(T+1))", "Theorem 3.2 as printed: 2π²/n²")


@functools.cache
def curve_drawn(name: str) -> Figure:
    dense, asked = CURVES[name]
    values = np.array([float(n) ** -2.0 if n < 10**150 else 0.0 for n in dense.lengths])
    return curve_figure(dense, asked, title=TITLE, bounds={BOUNDS[0]: 30 * values, BOUNDS[1]: 20 * values})


def figures() -> list[Figure]:
    return [drawn(name)[0] for name in HEADS] + [curve_drawn(name) for name in CURVES]


def by_gid(figure: Figure, gid: str) -> list[Artist]:
    return [artist for artist in figure.findobj() if artist.get_gid() == gid]


def line(figure: Figure, gid: str) -> tuple[np.ndarray, np.ndarray]:
    (found,) = by_gid(figure, gid)
    assert isinstance(found, Line2D)
    return np.asarray(found.get_xdata()), np.asarray(found.get_ydata())


def legend_texts(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.findobj(Legend) for text in legend.get_texts()]


def overlapping_texts(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts whose boxes share more than a hair, and texts that leave the figure."""
    figure.draw_without_rendering()  # type: ignore[no-untyped-call, unused-ignore]
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    assert len(boxes) > 8
    faults = [
        (first, second)
        for (first, a), (second, b) in itertools.combinations(boxes, 2)
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 0.5 and min(a.y1, b.y1) - max(a.y0, b.y0) > 0.5
    ]
    width, height = figure.bbox.width, figure.bbox.height
    return faults + [(text, "edge") for text, b in boxes if b.x0 < 0 or b.y0 < 0 or b.x1 > width or b.y1 > height]


# ---- readable ----


@pytest.mark.parametrize("name", HEADS)
def test_no_text_covers_another_in_a_head(name: str) -> None:
    assert overlapping_texts(drawn(name)[0]) == []


@pytest.mark.parametrize("name", CURVES)
def test_no_text_covers_another_in_a_curve(name: str) -> None:
    assert overlapping_texts(curve_drawn(name)) == []


@pytest.mark.parametrize("name", ["integers", "crowded", "many keys"])
def test_labels_put_at_their_angle_would_overlap(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check above can fail: without `spread` it does."""
    monkeypatch.setattr(head_module, "spread", lambda wanted, *_: list(wanted))
    _, geometry, logits = drawn(name)
    assert overlapping_texts(head_figure(geometry, logits, title=TITLE)) != []


def test_every_axis_says_what_it_shows_in_which_unit() -> None:
    for figure in figures():
        assert figure.get_suptitle().replace("\n", " ") == TITLE
        for axes in figure.axes:
            assert axes.get_title()
            for label in (axes.get_xlabel(), axes.get_ylabel()):
                assert re.fullmatch(r"[a-z0-9− ]+ \((positions|units of beta|natural units|units of \|v\|)\)", label)
            assert axes.get_xticks().size
            assert axes.get_yticks().size
    curves, heads = curve_drawn("ordinary").axes, drawn("index")[0].axes
    assert curves[0].get_xlabel() == "length n (positions)"
    assert curves[0].get_ylabel() == "margin (units of beta)"
    assert heads[1].get_xlabel() == "distance d (positions)"


def test_legends_stand_beside_the_data() -> None:
    for figure in figures():
        figure.draw_without_rendering()  # type: ignore[no-untyped-call, unused-ignore]
        legends = figure.findobj(Legend)
        assert len(legends) == len(figure.axes)
        for legend, axes in itertools.product(legends, figure.axes):
            assert legend.get_window_extent().y1 < axes.get_window_extent().y0


def test_colours_stay_apart_without_green_cones() -> None:
    """Machado, Oliveira & Fernandes (2009), severity 1, on linear RGB; distance in CIELAB (2.3 is just noticeable)."""
    deuteranopia = np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    )
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])

    def lab(rgb: np.ndarray) -> np.ndarray:
        x, y, z = np.cbrt(np.maximum(to_xyz @ np.clip(rgb, 0, 1) / np.array([0.9505, 1, 1.089]), 0.008856)).tolist()
        return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])

    def linear(colour: str) -> np.ndarray:
        c = np.array(matplotlib.colors.to_rgb(colour))
        return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)

    def nearest(colours: Sequence[str]) -> float:
        seen = [lab(deuteranopia @ linear(colour)) for colour in colours]
        return min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2))

    assert nearest(list(COLOURS.values())) > 15
    assert nearest(["tab:green", "tab:red"]) < 15


# ---- what is drawn where ----


@pytest.mark.parametrize("name", [name for name in HEADS if name != "centred, apart"])
def test_the_matched_pair_coincides(name: str) -> None:
    figure, geometry, _ = drawn(name)
    query, key = line(figure, "matched-query"), line(figure, "matched-key")
    shift = abs(geometry.queries[geometry.matched[0]] - geometry.keys[geometry.matched[1]])
    np.testing.assert_allclose(query, key, atol=0.002 if name == "centred" else 1e-12)
    assert shift < 0.002


def test_a_centred_query_stands_apart_from_its_letter() -> None:
    figure, geometry, _ = drawn("centred, apart")
    (x,), (y,) = line(figure, "matched-query")
    assert complex(x, y) == geometry.queries[0] != geometry.keys[0]


def test_the_ring_leaves_the_key_under_it_visible() -> None:
    (query,), (key,) = (by_gid(drawn("index")[0], f"matched-{kind}") for kind in ("query", "key"))
    assert isinstance(query, Line2D)
    assert isinstance(key, Line2D)
    assert query.get_fillstyle() == "none"
    assert query.get_markersize() > key.get_markersize() + 2


def test_target_and_runner_up_are_marked() -> None:
    figure = drawn("index")[0]
    np.testing.assert_allclose(line(figure, "target"), [[3], [1]], atol=1e-15)
    # cos(6) is the largest cosine of 1..13 and of 1..3; docs/MATHEMATICS.md, section 3.
    np.testing.assert_allclose(line(figure, "runner-up"), [[9], [np.cos(6)]], atol=1e-14)
    assert {"target d = 3", "runner-up d = 9", "gap in this window"} <= set(legend_texts(figure))


def test_a_tie_is_called_a_tie() -> None:
    texts = legend_texts(drawn("tie")[0])
    assert "as high: d = 8, 13" in texts
    assert "gap in this window" not in texts


def test_a_target_out_of_sight_is_said() -> None:
    figure = drawn("target outside")[0]
    assert figure.axes[1].get_title() == "target d = 500 lies outside these distances"
    assert by_gid(figure, "target") == by_gid(figure, "runner-up") == []


def test_distances_beyond_exact_doubles_are_counted_from_the_target() -> None:
    """At 2**60 doubles are 256 apart: drawn as they are, 64 distances would fall on one another."""
    built = index_head(PAPER, offset=2**60 + 1)
    logits = distance_logits(built, 64, first=2**60 - 31)
    figure = head_figure(plane_geometry(built), logits, title=TITLE)
    assert figure.axes[1].get_xlabel() == "distance d − target (positions)"
    assert np.asarray(figure.axes[1].lines[0].get_xdata()).tolist() == list(range(-32, 32))
    # Of t = 1..32, 25 is nearest to a multiple of 2 pi (8 pi = 25.13).
    np.testing.assert_allclose(line(figure, "runner-up"), [[-25, 25], [np.cos(25)] * 2], atol=1e-12)
    assert {"target at 0", "runner-up at −25, +25"} <= set(legend_texts(figure))
    assert overlapping_texts(figure) == []


def test_a_rival_that_wins_is_hatched() -> None:
    assert "rival wins" in legend_texts(drawn("fails")[0])
    assert "rival wins" not in legend_texts(drawn("letters")[0])


def test_the_margin_is_a_staircase_of_the_values_given() -> None:
    figure = curve_drawn("ordinary")
    (stairs,) = by_gid(figure, "margin")
    assert isinstance(stairs, Line2D)
    assert stairs.get_drawstyle() == "steps-post"
    n, margin = line(figure, "margin")
    np.testing.assert_allclose(n, np.log10(np.arange(4, 300)), rtol=1e-15)
    np.testing.assert_allclose(margin, -2 * n, rtol=1e-13)
    np.testing.assert_allclose(line(figure, "asked")[1], -2 * np.log10([8, 64, 256]), rtol=1e-13)
    for name, shift in (("best", np.log10(4)), ("worst", -np.log10(2))):
        np.testing.assert_allclose(line(figure, name)[1], -2 * n + shift, rtol=1e-13)


def test_numbers_beyond_doubles_stand_at_their_logarithm() -> None:
    figure = curve_drawn("1e1000")
    np.testing.assert_allclose(line(figure, "asked"), [[1, 500, 1000], [-2, -1000, -2000]], rtol=1e-13)
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()][-1] == "10¹⁰⁰⁰"
    (bound,) = (a for a in figure.axes[0].lines if a.get_label() == BOUNDS[0])
    heights = np.asarray(bound.get_ydata())
    assert np.isfinite(heights[0])
    assert np.isnan(heights[-1])  # the bound has left the doubles


def test_an_enclosure_is_drawn_at_its_middle() -> None:
    wide = replace(point(5, 1, 1, 1), margin=Enclosure(low=Fraction(1), high=Fraction(3)))
    figure = curve_figure(curve(wide), curve(wide), title=TITLE)
    np.testing.assert_allclose(line(figure, "asked")[1], np.log10(2), rtol=1e-15)


# ---- where the head does not win ----


def test_failing_and_tying_lengths_are_shaded_and_named() -> None:
    figure = curve_drawn("fails")
    texts = legend_texts(figure)
    assert "tie: margin 0 from n = 147" in texts
    assert "fails: margin below 0 from n = 148" in texts
    assert len(by_gid(figure, "no-margin")) == 2
    n, margin = line(figure, "margin")
    assert np.isfinite(margin[n < np.log10(146.5)]).all()
    assert np.isnan(margin[n > np.log10(146.5)]).all()
    np.testing.assert_allclose(line(figure, "asked-lost"), [np.log10([147, 150]), np.zeros(2)], rtol=1e-15)


def test_a_sparse_curve_does_not_claim_the_first_failing_length() -> None:
    assert "fails: margin below 0 by n = 200" in legend_texts(curve_drawn("fails, sparse"))


def test_an_undecided_sign_is_no_win() -> None:
    unclear = replace(point(5, 1, 1, 1), margin=Enclosure(low=Fraction(-1, 10**9), high=Fraction(1, 10**9)))
    figure = curve_figure(curve(unclear), curve(unclear), title=TITLE)
    assert "sign of the margin undecided from n = 5" in legend_texts(figure)
    assert by_gid(figure, "asked") == []


def test_equal_curves_are_one_entry() -> None:
    assert "margin, offset 3 = worst" in legend_texts(curve_drawn("no best"))
    assert by_gid(curve_drawn("no best"), "worst") == []


# ---- bytes ----


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_bytes_are_the_same_every_time(suffix: str) -> None:
    def again(turn: int) -> tuple[bytes, bytes]:
        _, geometry, logits = drawn("integers")
        dense, asked = CURVES["fails"]
        head, margins = head_figure(geometry, logits, title=TITLE), curve_figure(dense, asked, title=TITLE)
        return figure_bytes(head, suffix), figure_bytes(margins, suffix)

    first = again(0)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(again, range(4))) == {first}
    figure = drawn("integers")[0]
    assert figure_bytes(figure, suffix) == figure_bytes(figure, suffix)


def test_a_png_is_1600_wide_also_after_an_svg() -> None:
    both: tuple[Figure, Figure] = (drawn("index")[0], curve_drawn("ordinary"))
    for figure in both:
        assert b"<svg" in figure_bytes(figure, ".svg")[:800]
        png = figure_bytes(figure, ".PNG")
        assert png[:8] == b"\x89PNG\r\n\x1a\n"
        assert int.from_bytes(png[16:20], "big") == 1600
        assert 800 <= int.from_bytes(png[20:24], "big") <= 1200


def test_an_svg_needs_no_fonts_and_no_date() -> None:
    svg = figure_bytes(drawn("index")[0], ".svg")
    assert b"<text" not in svg
    assert b"dc:date" not in svg


@pytest.mark.slow
def test_a_long_curve_stays_a_small_file() -> None:
    built = index_head(PAPER, offset=3)
    figure = head_figure(plane_geometry(built), distance_logits(built, 50_000), title=TITLE)
    assert len(figure_bytes(figure, ".svg")) < 1_000_000


@pytest.mark.parametrize("suffix", [".pdf", "svg", "", ".svg.gz"])
def test_other_suffixes_are_refused(suffix: str) -> None:
    with pytest.raises(InvalidInputError, match=r"use \.png or \.svg"):
        figure_bytes(Figure(), suffix)


def test_a_bound_of_another_length_is_refused() -> None:
    dense, asked = CURVES["single"]
    with pytest.raises(InvalidInputError, match="bound 'b' needs one value for each of the 1 lengths"):
        curve_figure(dense, asked, title=TITLE, bounds={"b": np.ones(2)})


def test_the_users_own_settings_neither_enter_nor_change() -> None:
    expected = figure_bytes(drawn("index")[0], ".svg")
    _, geometry, logits = drawn("index")
    own = {"font.size": 30.0, "text.usetex": True, "savefig.bbox": "tight", "axes.grid": True}
    with matplotlib.rc_context(own):  # type: ignore[arg-type, unused-ignore]
        assert figure_bytes(head_figure(geometry, logits, title=TITLE), ".svg") == expected
        assert {key: matplotlib.rcParams[key] for key in own} == own  # type: ignore[index, unused-ignore]


@pytest.mark.slow
def test_pyplot_stays_out() -> None:
    code = "import sys, ropegeo.plots; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# ---- words and room ----


@given(st.lists(st.tuples(st.floats(-100, 100), st.floats(1, 10)), min_size=1, max_size=15))
def test_spread_boxes_keep_order_distance_and_limits(boxes: list[tuple[float, float]]) -> None:
    wanted, heights = [y for y, _ in boxes], np.array([height for _, height in boxes])
    limit = 100.0  # twice it is more than all heights together
    placed = spread(wanted, heights, limit)
    order = sorted(range(len(boxes)), key=lambda n: wanted[n])
    for before, after in itertools.pairwise(order):
        assert placed[after] - placed[before] >= (heights[before] + heights[after]) / 2 - 1e-9
    assert all(abs(y) + height / 2 <= limit + 1e-9 for y, height in zip(placed, heights, strict=True))
    if len(boxes) == 1 and abs(wanted[0]) < 90:
        assert placed == wanted


@given(st.floats(-2100, 1001), st.floats(0.12, 2100))
def test_any_range_has_a_few_ticks_inside(low: float, span: float) -> None:
    ticks = log_ticks(low, low + span)
    assert 2 <= len(ticks.major) <= 10
    assert len({text for _, text in ticks.major}) == len(ticks.major)
    assert all(low <= at <= low + span for at in [*ticks.minor, *(at for at, _ in ticks.major)])
    assert len(ticks.minor) <= 100


def test_labels_are_joined_and_cleaned() -> None:
    assert joined(["a", "b"]) == "a, b"
    assert joined(["seeks a", "seeks b"]) == "seeks a, b"
    assert joined([f"d={d}" for d in (0, 5, 10, 15, 20)]) == "d=0, 5, …, 20"
    assert plain("a\n b\t字\x07", 20) == "a b □□"
    assert plain("abcdef", 4) == "abc…"

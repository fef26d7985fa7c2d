"""The picture of a limit: what is drawn where, and that no text covers another."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from test_plots import by_gid, legend_texts, line, overlapping_texts

from ropegeo.construct.built import BuiltHead
from ropegeo.construct.index import index_head
from ropegeo.heads import LogitProfile
from ropegeo.limits.arithmetic import Arithmetic
from ropegeo.limits.formats import FormatLimit
from ropegeo.limits.head_limit import head_limit
from ropegeo.limits.limit import Limit
from ropegeo.limits.rules import Rule
from ropegeo.limits.softmax import Demand, SoftmaxLimit, softmax_lengths
from ropegeo.plots.limit import limit_figure
from ropegeo.spectrum import RopeSpectrum

PAPER = RopeSpectrum.from_base(10000, head_dim=128)
TITLE = "Index head, fixed offset, offset 3: plane 0 of base 10000, head_dim 128"
BETAS = np.geomspace(1, 1e7, 29)


def failing(name: str, logits: str, first: int | None, cause: Any) -> FormatLimit:
    """A row as the emulation gives it, without the time that it takes."""
    return FormatLimit(
        arithmetic=Arithmetic(number_format=name, logits=logits),
        first_wrong_length=first,
        first_light_length=None,
        max_length=4096,
        cause=cause,
        outcome="none" if first is None else "wrong",
        offset=3,
        rival=None,
        exact_gap=None,
        order_matters=False,
    )


FORMATS = [
    failing("float32", "fused", 714, "near return"),
    failing("float16", "fused", 51, "near return"),
    failing("bfloat16", "eager", 5, "rounding"),
    failing("tf32", "fused", None, None),
]
CASES: dict[str, Callable[[], tuple[BuiltHead, dict[str, Any]]]] = {
    "one plane": lambda: (index_head(PAPER, offset=3), {"formats": FORMATS, "length": 1000}),
    "no formats": lambda: (index_head(PAPER, offset=3, planes=(1,)), {"beta": 1e3}),
    "several planes": lambda: (index_head(PAPER, offset=3, planes=range(4)), {"formats": FORMATS[:1]}),
    "tie": lambda: (
        index_head(RopeSpectrum.from_angle("2*pi/50"), offset=3),
        {"formats": FORMATS * 2, "length": 10**6},
    ),
}


SHOWN = [name if name in ("one plane", "tie") else pytest.param(name, marks=pytest.mark.slow) for name in CASES]


@functools.cache
def limit_of(name: str) -> tuple[Limit, tuple[SoftmaxLimit, ...]]:
    built, options = CASES[name]()
    found = head_limit(built, rule=Rule(), max_length=10_000, **options)
    assert isinstance(built.profile, LogitProfile)
    demands = [Demand(offset=query.offset, threshold=found.rule.threshold(query.kind)) for query in found.queries]
    return found, softmax_lengths(built.profile, BETAS.tolist(), demands=demands, max_length=10_000)


@functools.cache
def drawn(name: str) -> Figure:
    found, curve = limit_of(name)
    bounds = [found.softmax_bound(beta) for beta in BETAS.tolist()]
    bound = None if bounds[0] is None else np.array(bounds, dtype=np.float64)
    return limit_figure(found, title=TITLE, curve=curve, bound=bound)


@pytest.mark.parametrize("name", SHOWN)
def test_no_text_covers_another(name: str) -> None:
    assert overlapping_texts(drawn(name)) == []


@pytest.mark.parametrize("name", SHOWN)
def test_axes_say_what_they_show(name: str) -> None:
    figure = drawn(name)
    assert figure.get_suptitle().replace("\n", " ") == TITLE
    labels = [(axes.get_xlabel(), axes.get_ylabel()) for axes in figure.axes]
    wanted = [
        ("logit scale beta (natural units)", "n_max (positions)"),
        ("length n (positions)", "format (logits)"),
    ]
    assert labels == wanted[: 2 if limit_of(name)[0].formats else 1]
    for axes in figure.axes:
        assert axes.get_title()
        assert len(axes.get_xticks()) >= 2


@pytest.mark.parametrize("name", SHOWN)
def test_n_max_is_drawn_as_it_is(name: str) -> None:
    found, curve = limit_of(name)
    betas, heights = line(drawn(name), "n_max")
    assert betas == pytest.approx(np.log10(BETAS))
    wanted = [math.nan if each.last_length is None else math.log10(each.last_length) for each in curve]
    assert heights == pytest.approx(wanted, nan_ok=True)
    marked, _ = line(drawn(name), "asked")
    assert len(marked) == sum(each.last_length is not None for each in found.softmax)
    assert bool(by_gid(drawn(name), "endless")) == any(each.first_failing_length is None for each in curve)


def test_the_bound_is_above_and_only_where_it_is_proved() -> None:
    _, bound = line(drawn("one plane"), "bound")
    _, heights = line(drawn("one plane"), "n_max")
    assert (bound[~np.isnan(heights)] > heights[~np.isnan(heights)]).all()
    found, curve = limit_of("one plane")
    assert by_gid(limit_figure(found, title=TITLE, curve=curve), "bound") == []


def test_bars_end_where_formats_fail() -> None:
    figure = drawn("one plane")
    ends = {gid: [bar.get_width() for bar in by_gid(figure, gid) if isinstance(bar, Rectangle)]
            for gid in ("fails", "holds")}  # fmt: skip
    assert ends["fails"] == pytest.approx(np.log10([714, 51, 5]))
    assert ends["holds"] == pytest.approx(np.log10([4096]))
    assert len(by_gid(figure, "arrow")) == 1
    texts = [text.get_text() for text in figure.axes[1].texts]
    assert texts == ["714: near return", "51: near return", "5: rounding", "right to 4096"]
    holds, fails = by_gid(figure, "holds")[0], by_gid(figure, "fails")[0]
    assert isinstance(holds, Rectangle)
    assert isinstance(fails, Rectangle)
    assert holds.get_hatch()  # not told apart by colour alone
    assert not fails.get_hatch()


def test_legends_name_what_is_there() -> None:
    assert "the argmax fails from here on" in legend_texts(drawn("tie"))
    assert "the argmax fails from here on" not in legend_texts(drawn("one plane"))
    assert "length asked for" in legend_texts(drawn("one plane"))

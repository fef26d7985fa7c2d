"""`--planes optimal` of construct and curve, in process: what is printed, written and refused."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ropegeo
from ropegeo.cli import main
from ropegeo.optimal.certificate import certify, read_certificate
from ropegeo.optimal.codes import optimal_code
from ropegeo.optimal.curve import optimal_curve
from ropegeo.optimal.head import optimal_head
from ropegeo.plots.optimal import optimal_figure, weights_figure

Run = Callable[..., str]
SMALL = "--base 100 --head-dim 8"
SPECTRUM = ropegeo.RopeSpectrum.from_base(100, head_dim=8)

pytestmark = pytest.mark.usefixtures("command_folder")


def test_construct_designs_builds_and_proves(run: Run) -> None:
    line = f"construct {SMALL} --offset 2 --planes optimal --length 30"
    out = run(f"{line} --output h.safetensors --certificate c.json --plot w.svg")
    assert "proved, relative gap" in out
    assert "wrote c.json" in out
    assert "<svg" in Path("w.svg").read_text()
    certificate, fault = read_certificate("c.json")
    assert fault is None
    assert certify(certificate).holds
    data = json.loads(run(f"{line} --json"))
    best = optimal_head(SPECTRUM, length=30, offset=2)
    assert data["optimal"]["margin"] == float(best.margin)
    assert data["optimal"]["gap"] == best.gap < 1e-6
    assert data["optimal"]["active_displacements"] == list(best.active_displacements)
    assert data["peak"]["logit"] == pytest.approx(best.profile().coefficients.real.sum())
    assert data["curve"]["rows"][-1]["margin"] == pytest.approx(float(best.margin), abs=1e-14)
    # The file is a head like any other, and its curve at the length is what was proved.
    seen = json.loads(run("curve --head h.safetensors --lengths 30,31,500 --json"))
    assert seen["rows"][0]["margin"] == pytest.approx(float(best.margin), abs=1e-14)
    run("curve --head h.safetensors --lengths 30,60 --plot s.svg")
    assert "<svg" in Path("s.svg").read_text()
    built = ropegeo.load_head("h.safetensors")
    assert built.recipe.phases == best.query_phases


def test_without_phases_the_head_is_an_ordinary_one(run: Run) -> None:
    data = json.loads(run(f"construct {SMALL} --planes optimal --phases zero --length 30 --json"))
    assert "phases" not in data["recipe"]
    assert data["optimal"]["phases"] == "zero"
    assert data["trust"]["tie_length"] is None


def test_several_offsets_with_one_key(run: Run) -> None:
    out = run(f"construct {SMALL} --planes optimal --max-offset 4 --length 30")
    assert "with one key and one query turned back by the offset" in out
    assert "margin by offset: " in out
    data = json.loads(run(f"construct {SMALL} --planes optimal --integers 4 --length 30 --json"))
    assert data["recipe"]["mode"] == "token_index"
    assert data["recipe"]["integers"] == [1, 2, 3, 4]
    assert len(data["optimal"]["offset_margins"]) == 5
    assert min(data["optimal"]["offset_margins"]) == pytest.approx(data["optimal"]["margin"], abs=1e-12)
    run(f"construct {SMALL} --planes optimal --max-offset 4 --length 30 --output h.safetensors")
    by_offset = [
        json.loads(run(f"curve --head h.safetensors --offset {s} --length 30 --json"))["rows"][0]["margin"]
        for s in range(5)
    ]
    assert by_offset == pytest.approx(data["optimal"]["offset_margins"], abs=1e-12)


@pytest.mark.slow
def test_a_retrieval_code(run: Run) -> None:
    line = "construct --mode retrieval --letters 5 --integers 2 --centred --planes optimal --length 40"
    out = run(f"{line} --output r.safetensors --plot r.svg")
    assert "5 letters, best code found: every input is decoded by" in out
    assert "and no code at all by more than" in out
    data = json.loads(run(f"{line} --json"))
    best = optimal_code(ropegeo.preset("paper"), letters=5, length=40)
    assert data["optimal"]["margin"] == float(best.margin)
    assert data["recipe"]["multipliers"] == list(best.multipliers)
    assert data["curve"]["rows"][-1]["worst"] == pytest.approx(float(best.margin), abs=1e-13)
    assert float(best.margin) > 1.2 > 1 - np.cos(2 * np.pi / 5)  # a simplex of 5 has 5/4, the circle 0.69
    seen = json.loads(run("curve --head r.safetensors --length 40 --json"))
    assert seen["rows"][0]["worst"] == data["curve"]["rows"][-1]["worst"]
    built = ropegeo.load_head("r.safetensors")
    tokens = [ropegeo.Bigram(*pair) for pair in ("ab", "bc", "cd", "de", "ea")]
    # Every letter-letter token finds the token whose left letter is its right one, if it stands before it.
    assert ropegeo.run_layer(built, [*reversed(tokens[1:]), tokens[0]]).tokens[-1] == tokens[1]


def test_few_planes_say_what_is_not_proved(run: Run) -> None:
    out = run(f"construct {SMALL} --planes optimal --max-planes 2 --length 30")
    assert "at most 2 planes" in out
    assert "not proved to be best" in " ".join(out.split())


@pytest.mark.slow
def test_curve_has_a_head_for_every_length(run: Run) -> None:
    line = f"curve {SMALL} --offset 2 --planes optimal --lengths 10,20,40,80"
    out = run(f"{line} --output c.csv --plot c.svg")
    assert "no head above" in out
    with Path("c.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["length"]) for row in rows] == [10, 20, 40, 80]
    for row, point in zip(rows, optimal_curve(SPECTRUM, [10, 20, 40, 80], offset=2).points, strict=True):
        assert float(row["margin"]) == point.best.certificate.low
        assert float(row["upper_bound"]) == point.best.certificate.high
        assert float(row["equal_weights"]) == float(point.equal_weights)
        assert float(row["plane_margin"]) == float(point.one_plane)
    data = json.loads(run(f"{line} --json"))
    assert [point["margin"] for point in data["rows"]] == pytest.approx([float(row["margin"]) for row in rows])
    assert json.loads(run("fit c.csv --laws constant,power --json"))["points_used"]


def test_pictures() -> None:
    best = optimal_head(SPECTRUM, length=30, offset=2)
    figure = weights_figure(best, title="t")
    (bars,) = [group for group in figure.axes[0].containers if group.get_label() == "weight of the plane"]
    assert [bar.get_height() for bar in bars] == list(best.weights)
    assert [bar.get_x() + bar.get_width() / 2 for bar in bars] == pytest.approx(list(best.planes))
    assert np.asarray(figure.axes[1].get_lines()[1].get_ydata()).tolist() == list(best.query_phases)
    curve = optimal_curve(SPECTRUM, [10, 20], offset=2)
    lines = optimal_figure(curve, title="t").axes[0].get_lines()
    margins = [float(point.best.margin) for point in curve.points]
    assert 10 ** np.asarray(lines[1].get_ydata(), float) == pytest.approx(margins)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("construct --planes optimal", "--planes optimal needs --length n"),
        ("construct --planes optimal --length 10 --weights 1", "leave --weights out"),
        ("construct --planes optimal --plane 1 --length 10", "give --plane for one plane or --planes for several"),
        ("construct --planes 0-3 --phases zero", "--phases goes with --planes optimal"),
        ("construct --max-planes 3", "--max-planes goes with --planes optimal"),
        ("construct --max-offset 3", "--max-offset goes with --planes optimal"),
        ("construct --planes optimal --max-offset 3 --integers 4 --length 10", "give one of them"),
        ("construct --planes optimal --max-offset 0 --length 10", "must be at least 1"),
        ("construct --planes optimal --max-offset 12 --length 10", "offset 12 is outside the length"),
        ("construct --planes optimal --offset 10 --length 10", "offset 10 is outside the length"),
        ("construct --planes optimal --phases some --length 10", "phases 'some' are unknown; use zero or free"),
        ("construct --planes optimal --max-planes 0 --length 10", "max_planes 0 must be at least 1"),
        ("construct --planes optimal --length 1e9", "up to 100000000 displacements"),
        ("construct --planes optimal --angle 2*pi --length 10", "no plane rotates"),
        ("construct --certificate c.json", "--certificate goes with --planes optimal"),
        ("construct --planes optimal --length 10 --certificate c.txt", "the name must end in .json"),
        ("construct --planes optimal --length 10 --certificate nowhere/c.json", "does not exist"),
        ("construct --mode retrieval --planes optimal --length 9 --phases zero", "--phases goes with index heads"),
        ("construct --mode retrieval --planes optimal --length 9 --max-offset 3", "--max-offset goes with --mode ind"),
        ("construct --mode retrieval --planes optimal --length 9 --certificate c.json", "--certificate goes with"),
        ("construct --mode reflexive --symbolic --planes optimal --length 9", "leave --symbolic out"),
        ("curve --planes optimal", "give --length n or --lengths"),
        ("curve --planes optimal --length 10 --beta 7", "--beta does not go with curve --planes optimal"),
        ("curve --planes optimal --length 10 --digits 30", "--digits does not go with curve --planes optimal"),
        ("curve --planes optimal --length 10 --records", "do not go with --planes optimal"),
        ("curve --planes optimal --length 10 --max-offset 3", "is for --mode index with one --offset"),
        ("curve --planes optimal --length 10 --output c.npz", "the name must end in .csv or .json"),
        ("curve --head h.safetensors --planes optimal --length 10", "only --offset goes with it"),
    ],
)
def test_refused(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(line)) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err
    assert not list(Path().iterdir())

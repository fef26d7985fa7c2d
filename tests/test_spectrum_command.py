"""`ropegeo spectrum`, in process: planes, the critical one, B_m, bases, scalings; what is written and refused."""

from __future__ import annotations

import csv
import json
import math
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from ropegeo.cli import main
from ropegeo.limits.bases import AdmissibleBases, admissible_bases
from ropegeo.limits.scalings import NAMES
from ropegeo.limits.scores import score_ranges
from ropegeo.plots.spectrum import spectrum_figure
from ropegeo.spectrum import RopeSpectrum

Run = Callable[..., str]
SMALL = "--base 1720 --head-dim 16"

pytestmark = pytest.mark.usefixtures("command_folder")


def test_what_is_said_of_a_length(run: Run) -> None:
    angles = 1720.0 ** (-np.arange(8) / 8)
    m = int(np.flatnonzero(np.cos(np.arange(500)[:, None] * angles).sum(axis=1) < 0)[0])
    plane = int(np.flatnonzero(500 * angles >= 2 * math.pi)[-1])
    out = run(f"spectrum {SMALL} --length 500")
    assert f"critical plane: {plane}, the slowest that completes a whole turn within 500 positions" in out
    assert f"first negative at m = {m}" in out
    assert "not admissible for length 500" in out
    data = json.loads(run(f"spectrum {SMALL} --length {m} --json"))
    assert data["critical_plane"] == int(np.flatnonzero(m * angles >= 2 * math.pi)[-1])
    assert (data["first_negative"], data["admissible"]) == (m, True)  # distance m does not occur within m positions
    assert data["first_negative_searched"] >= m
    assert data["bases"] is data["scalings"] is None
    assert data["planes"][0]["turns"] == pytest.approx(m / (2 * math.pi))
    assert "critical_plane" not in json.loads(run(f"spectrum {SMALL} --json"))
    assert "critical plane: none" in run(f"spectrum {SMALL} --length 6")


def test_what_was_not_looked_at_is_not_claimed(run: Run) -> None:
    data = json.loads(run("spectrum --angle 2*pi --length 1e30 --json"))  # B_m = 1 for every m
    assert (data["first_negative"], data["admissible"], data["first_negative_searched"]) == (None, None, 1 << 23)
    assert "is not known" in run("spectrum --angle 2*pi --length 1e9")
    assert "admissible for length 100: no B_m" in run("spectrum --angle 2*pi --length 100")


@pytest.mark.slow
def test_the_set_of_bases(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    out = run(f"spectrum {SMALL} --length 64 --bases")
    assert "2 intervals, proved to be all: no base below 1706.1029 is admissible, and every base from" in " ".join(
        out.split()
    )
    assert "2768.1818" in out  # rounded up, so that it holds
    assert "1706.10294599" in out
    data = json.loads(run(f"spectrum {SMALL} --length 64 --bases --json"))
    read = AdmissibleBases.from_dict(data["bases"])
    expected = admissible_bases(16, 64)
    assert [float(each.low) for each in read.intervals] == [float(each.low) for each in expected.intervals]
    assert (data["admissible"], read.contains(1720)) == (True, True)
    assert "no base is admissible" in run("spectrum --angle 1 --length 9 --bases")
    count = len(admissible_bases(16, 150).intervals)
    assert count > 3
    monkeypatch.setattr("ropegeo.cli.spectrum_text.SHOWN_INTERVALS", 2)
    many = run(f"spectrum {SMALL} --length 150 --bases")
    assert f"{count - 2} more: --json" in many
    assert f"{count} intervals, proved to be all" in many


@pytest.mark.slow
def test_scalings_side_by_side(run: Run) -> None:
    line = "spectrum --base 1720 --head-dim 8 --length 64 --compare-scalings 4 --original-length 16"
    out = run(line)
    assert "scalings at length 64" in out
    assert "ntk (ours)" in out
    rows = json.loads(run(f"{line} --json"))["scalings"]
    assert [row["scaling"] for row in rows] == list(NAMES)
    assert [round(row["slowest_angle"] / rows[0]["slowest_angle"], 12) for row in rows] == [1, 0.25, 0.25, 0.25]


@pytest.mark.slow
def test_a_scaled_model_is_compared_from_its_base(run: Run) -> None:
    own = json.loads(run("spectrum --rope llama-3.2-1b --length 32 --compare-scalings 32 --json"))
    slowest = [row["slowest_angle"] for row in own["scalings"]]
    assert own["planes"][-1]["angle"] == pytest.approx(slowest[2])
    assert slowest[0] == pytest.approx(500_000 ** (-62 / 64))


def test_what_is_written(run: Run) -> None:
    run(f"spectrum {SMALL} --length 64 --output s.csv --plot b.svg")
    assert "<svg" in Path("b.svg").read_text()
    with Path("s.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["plane"]) for row in rows] == list(range(8))
    run(f"spectrum {SMALL} --length 64 --output s.json")
    assert json.loads(Path("s.json").read_text()) == json.loads(run(f"spectrum {SMALL} --length 64 --json"))


def test_the_picture_shows_the_numbers() -> None:
    spectrum = RopeSpectrum.from_base(1720, head_dim=16)
    bases = admissible_bases(16, 64)
    ranges = score_ranges(spectrum, max_length=200, bins=50)
    figure = spectrum_figure(ranges, title="t", length=64, first_negative=70, bases=bases)
    scores, bars = figure.axes
    drawn = {line.get_gid(): line for line in scores.lines}
    assert list(np.asarray(drawn["negative"].get_xdata())) == [70]
    assert any(np.array_equal(line.get_ydata(), ranges[1]) for line in scores.lines)
    spans = [patch for patch in bars.patches if isinstance(patch, Rectangle)]
    assert [span.get_x() for span in spans] == pytest.approx([math.log10(float(x.low)) for x in bases.intervals])
    end = bases.intervals[0].high
    assert end is not None
    assert spans[0].get_x() + spans[0].get_width() == pytest.approx(math.log10(float(end)))
    assert len(spectrum_figure(ranges, title="t", length=64, first_negative=None).axes) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("spectrum --bases", "--bases goes with --length n"),
        ("spectrum --compare-scalings 2", "--compare-scalings goes with --length n"),
        ("spectrum --plot x.svg", "--plot goes with --length n"),
        ("spectrum --length 9 --original-length 9", "goes with --compare-scalings"),
        ("spectrum --length 9 --compare-scalings x", "--compare-scalings"),
        ("spectrum --length 9 --compare-scalings 0.5", "must be at least 1"),
        ("spectrum --length 9 --compare-scalings 2 --original-length 0", "must be at least 1"),
        ("spectrum --length 9 --compare-scalings 2 --original-length 1.5", "is not an integer"),
        ("spectrum --angle 1 --length 9 --compare-scalings 2", "at least two planes"),
        ("spectrum --length 1e9 --bases", "use at most 131072 positions"),
        ("spectrum --length 9 --plot x.pdf", "must end in .svg or .png"),
    ],
)
def test_what_is_refused(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(line)) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert (out, err.count("\n")) == ("", 1)
    assert not list(Path().iterdir())

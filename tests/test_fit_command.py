"""`ropegeo fit` in process: what it prints, writes and returns, and one line of error for what it cannot use."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

import ropegeo
from ropegeo import Comparison, DecayFit, FileFormatError, compare_decay, curve_data, decay_data, fit_decay, read_curve
from ropegeo.asymptotics.fit import STATUSES
from ropegeo.asymptotics.fitted_law import Estimate
from ropegeo.asymptotics.laws import LAWS
from ropegeo.cli import main
from ropegeo.cli.fit_text import estimate_text
from ropegeo.cli.options import FitOptions

Run = Callable[..., str]

PLANE = "10000^(-2/128)"
SHORT = "--laws constant,power"
"""Most tests need no search for an angle."""


pytestmark = pytest.mark.usefixtures("command_folder")


@pytest.fixture(name="refused")
def _refused(capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    def refused(line: str) -> str:
        code = main(shlex.split(line))
        out, err = capsys.readouterr()
        assert (code, out) == (2, ""), line
        assert err.startswith("ropegeo: error: ")
        assert err.count("\n") == 1
        assert "Traceback" not in err
        return err

    return refused


def spaced(count: int = 30, last: int = 10**5) -> Any:
    return np.unique(np.rint(np.geomspace(10, last, count)).astype(int))


def csv(name: str, lengths: Any, margins: Any, sd: Any = None) -> None:
    columns = [lengths, margins] if sd is None else [lengths, margins, sd]
    rows = [
        ",".join(repr(float(v)) if k else str(int(v)) for k, v in enumerate(row)) for row in zip(*columns, strict=True)
    ]
    Path(name).write_text("\n".join(["length,margin" + (",sd" if sd is not None else ""), *rows]) + "\n")


def noisy(name: str = "noisy.csv", seed: int = 0) -> None:
    """4 n^-1.5 with 10 % noise."""
    lengths = spaced()
    noise = np.random.default_rng(seed).normal(0, 0.1, lengths.size)
    margins = 4.0 * lengths**-1.5 * np.exp(noise)
    csv(name, lengths, margins, 0.1 * margins)


# ---- what is fitted ----


@pytest.mark.parametrize("suffix", ["csv", "json", "npz"])
def test_the_records_of_a_curve(suffix: str, run: Run) -> None:
    """The same fit from each kind of file, and from the API; the envelope's exponent, not the plain slope."""
    run(f"curve --angle '{PLANE}' --length 1e6 --records --output c.{suffix}")
    text = run(f"fit c.{suffix} --min-length 10 --angle '{PLANE}' --laws power,staircase")
    words = " ".join(text.split())
    assert "8 points given, 8 used: ends of steps, lengths 22 to 945535" in words
    assert "computed margins, without noise" in words
    assert ("taking the rows for all steps" in words) == (suffix == "csv")  # which the other two say themselves
    for part in (
        "-1.992 [-2.021, -1.960] of n on the envelope",
        "-1.940 of the line",
        "no noise, so no error bar",
    ):
        assert part in text
    assert f"angle = {PLANE}" in text
    assert "\nchosen       staircase: staircase has the least AICc" in text
    data = json.loads(run(f"fit c.{suffix} --min-length 10 --angle '{PLANE}' --laws power,staircase --json"))
    fit = fit_decay(read_curve(f"c.{suffix}"), first=10, angle=ropegeo.read_angle(PLANE), laws=["power", "staircase"])
    assert data == json.loads(json.dumps({**fit.to_dict(), "package_version": ropegeo.__version__}))


def test_every_length_and_records_have_one_exponent(run: Run) -> None:
    run(f"curve --angle '{PLANE}' --length 800 --every 1 --output every.csv")
    run(f"curve --angle '{PLANE}' --length 800 --records --output steps.csv")
    found = [json.loads(run(f"fit {name}.csv {SHORT} --json")) for name in ("every", "steps")]
    assert found[0]["exponent"] == found[1]["exponent"]
    assert [one["on_envelope"] for one in found] == [True, True]
    assert found[0]["plain_slope"] != pytest.approx(found[1]["plain_slope"], abs=0.01)
    sampled = run("curve --angle 1 --lengths 10,11,100,101,200,400,401,800,900,990 --output s.csv")
    assert "wrote s.csv" in sampled
    assert "(a step ends where the lengths given show it)" in " ".join(run(f"fit s.csv {SHORT}").split())


@pytest.mark.parametrize("suffix", ["csv", "npz"])
@pytest.mark.parametrize(
    "head",
    [
        "--mode retrieval --angle 0.0027 --letters 8 --offset 5 --lengths 10,20,40,80,100,120,160,200",
        "--angle 'pi*(sqrt(5)-1)' --lengths 9,56,378,2585,17712,121394,832041",
    ],
)
def test_a_sample_is_not_taken_for_records(head: str, suffix: str, run: Run) -> None:
    """Rows whose runners-up happen to stand farthest, of a head without steps, and with steps left out between."""
    run(f"curve {head} --output s.{suffix}")
    assert not read_curve(f"s.{suffix}").begins


def test_measured_margins(run: Run) -> None:
    noisy()
    text = run("fit noisy.csv --laws constant,power,planes,exponential")
    lengths = spaced()
    assert (
        f"{lengths.size} points given, {lengths.size} used: lengths 10 to 100000; measured margins with standard"
        in text
    )
    data = json.loads(run("fit noisy.csv --laws constant,power,planes,exponential --json"))
    power = next(law for law in data["laws"] if law["law"] == "power")
    exponent = power["parameters"]["exponent"]
    assert exponent["low"] < -1.5 < exponent["high"]
    shown = estimate_text(Estimate(**exponent))
    assert f"exponent {shown}" in text
    assert f"\nexponent     {shown} of n, by the power law\n" in text
    assert 0.5 < power["scale"] < 2
    assert data["chosen"] == "power"
    assert [law["law"] for law in data["laws"]] == sorted(
        [law["law"] for law in data["laws"]], key=lambda name: text.index(f"\n{name}")
    )
    for part in ("95 % interval, t with the residuals' correlation", "times the sd given", "dAICc"):
        assert part in " ".join(text.split())


def test_a_window(run: Run) -> None:
    """Both ends included; 1e3 is exactly 1000."""
    lengths = [10, 100, 1000, 10**4, 10**5, 10**6, 10**30]
    csv("c.csv", lengths, [1 / n for n in lengths])
    data = json.loads(run(f"fit c.csv {SHORT} --min-length 1e2 --max-length 1e5 --json"))
    assert (data["lengths"], data["points_given"]) == ([100, 10**5], 4)
    assert json.loads(run(f"fit c.csv {SHORT} --json"))["lengths"] == [10, str(10**30)]
    assert "lengths 10 to 1.0000e30" in run(f"fit c.csv {SHORT}")


def test_columns(run: Run) -> None:
    run("curve --mode index --offset 5 --angle 1 --every 1 --length 130 --output c.npz")
    found = {
        column: json.loads(run(f"fit c.npz {SHORT} --column {column} --json")) for column in ("margin", "best", "worst")
    }
    slopes = [one["plain_slope"] for one in found.values()]
    assert len(set(slopes)) == 3
    assert {one["source"] for one in found.values()} == {f"{column} of c.npz" for column in found}


@pytest.mark.parametrize(("column", "offset"), [("margin", 5), ("best", 0), ("worst", 0)])
def test_the_known_staircase_is_exact_in_each_column(column: str, offset: int, run: Run) -> None:
    """The reach is that of the column: T = max(s, n-1-s), the half of n, n-1."""
    run("curve --offset 5 --angle 1 --every 1 --length 130 --output c.json")
    data = json.loads(run(f"fit c.json --angle 1 --laws power,staircase --column {column} --json"))
    assert data["chosen"] == "staircase"
    assert data["laws"][0]["largest"] < 1e-12
    if column == "margin":  # a CSV does not say the offset
        run("curve --offset 5 --angle 1 --every 1 --length 130 --output c.csv")
        told = json.loads(run(f"fit c.csv --angle 1 --offset {offset} --laws staircase --json"))
        assert told["laws"][0]["largest"] < 1e-12
    if column == "best":
        run("curve --offset 5 --angle 1 --every 1 --length 130 --output c.csv")
        assert "not fitted   staircase: the data do not say over which offsets" in run(
            "fit c.csv --angle 1 --column best --laws power,staircase"
        )


def test_the_height_of_the_staircase(run: Run) -> None:
    """1 in files of `ropegeo curve`, else fitted; --weight says otherwise."""
    run(f"curve --angle '{PLANE}' --length 1e5 --records --output c.json")
    known = f"fit c.json --angle '{PLANE}' --laws staircase"
    assert "weight" not in json.loads(run(f"{known} --json"))["laws"][0]["parameters"]
    weight = json.loads(run(f"{known} --weight free --json"))["laws"][0]["parameters"]["weight"]
    assert weight["value"] == pytest.approx(1, rel=1e-12)
    points = ropegeo.margin_curve(
        ropegeo.index_head(ropegeo.RopeSpectrum.from_angle(PLANE), offset=0).profile, spaced().tolist()
    )
    csv("seven.csv", points.lengths, 7 * points.margin)
    seven = f"fit seven.csv --angle '{PLANE}' --laws staircase"
    assert "weight 7" in run(seven)
    assert json.loads(run(f"{seven} --weight 1 --json"))["laws"][0]["rms"] == pytest.approx(math.log(7), rel=1e-9)


def test_a_known_number_of_planes(run: Run) -> None:
    lengths = spaced()
    csv("c.csv", lengths, lengths**-0.5 * np.exp(np.random.default_rng(0).normal(0, 0.01, lengths.size)))
    text = run("fit c.csv --laws power,planes")
    assert "\nplanes       -2/F, the order of F planes, lies in the exponent's interval for F = 4\n" in text
    assert "\nnot fitted   planes: F is not given" in text
    assert "F = 2" in run("fit c.csv --laws planes --planes-used 2")


# ---- statuses ----


def test_every_status_is_explained(run: Run) -> None:
    """A result, not an error: exit status 0, and a sentence."""
    lengths = spaced()
    falling = 5.0 / lengths**2
    csv("ok.csv", lengths, falling)
    csv("does_not_decay.csv", lengths, np.full(lengths.size, 2.0))
    csv("changes_sign.csv", lengths, falling - 1e-8)
    csv("fails.csv", lengths, -falling)
    run("curve --angle 1 --length 20 --records --output too_few_steps.csv")
    csv("degenerate.csv", [10**300 + k for k in range(4)], [1.1, 1.2, 1.05, 1.3])
    rows = ["length,margin,at,abs_error,status,method"] + [f"{n},1e-9,1,1.0,wins,streamed" for n in range(10, 20)]
    Path("window_outside_precision.csv").write_text("\n".join(rows))
    for status in STATUSES:
        text = run(f"fit {status}.csv {SHORT}")
        data = json.loads(run(f"fit {status}.csv {SHORT} --json"))
        assert data["status"] == status
        if status != "ok":
            words = " ".join(text.split())
            assert f"status {status}: {STATUSES[status]}" in words
            assert f"because {data['reason']}" in words
    assert "left out: 10 sign not decided" in run(f"fit window_outside_precision.csv {SHORT}")
    first = int(lengths[(falling - 1e-8) <= 0][0])
    assert f"fails        the first length given with a margin of 0 or below is {first}" in run(
        f"fit changes_sign.csv {SHORT}"
    )
    assert "40 points given, 0 used" not in run(f"fit fails.csv {SHORT}")
    assert "30 points given, 0 used; measured margins" in run(f"fit fails.csv {SHORT}")


# ---- against a theory ----


@pytest.mark.parametrize(
    ("head", "lengths", "suffix"),
    [
        (f"--angle '{PLANE}'", "--length 1e5 --records", "csv"),
        (f"--angle '{PLANE}'", "--lengths 10,1e10,1e20,1e100", "json"),
        ("--offset 3 --base 10000 --head-dim 16 --planes 0-2", "--length 300 --every 7", "csv"),
        ("--offset 3 --base 10000 --head-dim 16 --planes 0-2", "--length 300 --every 7", "npz"),
        ("--mode retrieval --angle 0.0027", "--length 200 --every 9", "csv"),
        ("--mode reflexive --symbolic --angle 0.3", "--lengths 4,8,16,32,64", "csv"),
    ],
)
def test_a_curve_is_its_own_theory(head: str, lengths: str, suffix: str, run: Run) -> None:
    run(f"curve {head} {lengths} --output c.{suffix}")
    text = run(f"fit c.{suffix} {SHORT} --compare theory {head}")
    assert "\nverdict      identical: the data are the theory, to the rounding of either\n" in text


def test_another_head_is_told_apart(run: Run) -> None:
    """With exit status 1, the result printed and written all the same."""
    run(f"curve --angle '{PLANE}' --length 1e5 --records --output c.csv")
    for other in ("--planes 0-1 --base 10000 --head-dim 16", f"--angle '{PLANE}' --offset 1"):
        text = run(f"fit c.csv {SHORT} --min-length 4 --compare theory {other}", status=1)
        assert "\nverdict      differs: the data depart from the theory" in text
    line = f"fit c.csv {SHORT} --compare theory --angle 1"
    data = json.loads(run(f"{line} --json --output o.json", status=1))
    assert json.loads(Path("o.json").read_text()) == data
    given = read_curve("c.csv")
    theory = ropegeo.margin_curve(
        ropegeo.index_head(ropegeo.RopeSpectrum.from_angle("1"), offset=0).profile, given.lengths
    )
    expected = compare_decay(given, curve_data(theory)).to_dict()
    comparison = data["comparison"]
    assert comparison.pop("recipe")["mode"] == "index"
    assert comparison == json.loads(json.dumps(expected))


def test_noise_agrees_and_a_factor_does_not(run: Run) -> None:
    """Measured logits of a head with beta 7: its exact margins times 7."""
    lengths = spaced(40)
    profile = ropegeo.index_head(ropegeo.RopeSpectrum.from_angle(PLANE), offset=3).profile
    seen = 7 * ropegeo.margin_curve(profile, lengths.tolist()).margin
    csv("seen.csv", lengths, seen * np.exp(np.random.default_rng(0).normal(0, 0.1, lengths.size)))
    line = f"fit seen.csv --laws power,staircase --compare theory --angle '{PLANE}' --offset 3"
    text = run(f"{line} --beta 7")
    assert "\nverdict      no_trend: data over theory shows no factor and no drift beyond its scatter" in text
    assert "\nchosen       staircase" in text  # of the theory's angle and offset
    text = run(line, status=1)
    assert "\nverdict      differs_by_factor: the data are the theory times a constant factor\n" in text
    factor = json.loads(run(f"{line} --json", status=1))["comparison"]["factor"]
    assert factor["low"] < 7 < factor["high"]
    csv("drift.csv", lengths, seen * (lengths / 100.0) ** 0.3)
    assert "\nverdict      differs:" in run(line.replace("seen", "drift"), status=1)
    csv("signs.csv", lengths, np.where(lengths > 1000, -seen, seen))
    text = run(line.replace("seen", "signs"), status=1)
    assert f"\nsigns        opposite at {(lengths > 1000).sum()} lengths: " in text


def test_a_head_file_is_a_theory(run: Run) -> None:
    run("construct --offset 3 --angle 1 --output h.safetensors")
    run("curve --head h.safetensors --every 5 --length 200 --output c.json")
    assert "identical" in run(f"fit c.json {SHORT} --compare theory --head h.safetensors")
    assert "identical" in run(f"fit c.json {SHORT} --compare theory --angle 1")  # the file says its offset
    assert "differs" in run(f"fit c.json {SHORT} --compare theory --angle 1 --offset 4 --min-length 10", status=1)


@pytest.mark.parametrize("column", ["best", "worst"])
def test_a_theory_has_each_column(column: str, run: Run) -> None:
    run("curve --offset 3 --angle 1 --every 5 --length 200 --output c.json")
    assert "identical" in run(f"fit c.json {SHORT} --column {column} --compare theory --offset 3 --angle 1")


def test_few_lengths_are_no_verdict(run: Run) -> None:
    """Three steps and their theory: a result, of which the numbers that are not there are null."""
    run("curve --angle 1 --length 20 --records --output c.csv")
    data = json.loads(run("fit c.csv --compare theory --angle 1 --json"))["comparison"]
    assert (data["verdict"], data["factor"]["value"], data["p_trend"]) == ("too_few_points", None, None)
    assert "too_few_points: fewer than 4 lengths" in run("fit c.csv --compare theory --angle 1")


# ---- files ----


def test_output_and_force(run: Run, refused: Callable[[str], str]) -> None:
    noisy()
    assert run(f"fit noisy.csv {SHORT} --output f.json --plot f.svg").endswith("wrote f.json\nwrote f.svg\n")
    saved = Path("f.json").read_bytes()
    assert json.loads(saved) == json.loads(run(f"fit noisy.csv {SHORT} --json"))
    assert b"<svg" in Path("f.svg").read_bytes()[:800]
    assert "exists; choose another name or pass --force" in refused(f"fit noisy.csv {SHORT} --output f.json")
    noisy(seed=1)
    run(f"fit noisy.csv {SHORT} --output f.json --force")
    assert Path("f.json").read_bytes() != saved
    assert sorted(path.name for path in Path().iterdir()) == ["f.json", "f.svg", "noisy.csv"]


def test_what_is_saved_is_read_back(run: Run) -> None:
    noisy()
    run("fit noisy.csv --laws constant,power,planes,retrieval --planes-used 2 --output f.json")
    saved = json.loads(Path("f.json").read_text())
    fit = DecayFit.from_dict(saved)
    assert {**fit.to_dict(), "package_version": ropegeo.__version__} == saved
    assert fit.exponent is not None
    assert fit.data.lengths == ()
    run("curve --angle 1 --length 1e5 --records --output c.csv")
    run("fit c.csv --laws power --compare theory --angle 1 --output g.json", status=0)
    saved = json.loads(Path("g.json").read_text())["comparison"]
    recipe = saved.pop("recipe")
    assert recipe["offset"] == 0
    assert Comparison.from_dict(saved).to_dict() == saved


@pytest.mark.parametrize(
    "broken", [None, [], {}, {"schema": "ropegeo.decay_fit/1"}, {"schema": "ropegeo.comparison/1"}]
)
@pytest.mark.parametrize("kind", [DecayFit, Comparison])
def test_what_is_no_result_is_refused(kind: Any, broken: Any) -> None:
    with pytest.raises(FileFormatError):
        kind.from_dict(broken)


def test_each_field_of_a_saved_fit_is_checked() -> None:
    """A wrong value in any field is refused or harmless, and a missing one is refused, by our own error."""
    lengths = [10, 20, 40, 80, 160]
    data = decay_data(lengths, [1 / n for n in lengths])
    results = (fit_decay(data, laws=["power", "constant"]), compare_decay(data, data))
    for result in results:
        whole = json.loads(json.dumps(result.to_dict()))
        needed = set(whole) - {"meaning", "intervals", "planes_within", "opposite_signs_count"}
        for name in needed:
            with pytest.raises(FileFormatError):
                type(result).from_dict({key: value for key, value in whole.items() if key != name})
            for wrong in ("x", -1.5, [3], {"a": 1}, None, True):
                try:
                    type(result).from_dict({**whole, name: wrong})
                except FileFormatError as error:
                    assert "\n" not in str(error)  # noqa: PT017 - not every change is refused


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fit", "Missing argument 'CURVE'"),
        ("fit none.csv", "curve file 'none.csv': there is no such file"),
        ("fit noisy.txt", "the name must end in .csv, .json, .npz"),
        ("fit bad.csv", "curve file 'bad.csv': row 2: margin 'x' is not a number"),
        ("fit noisy.csv --column top", "column 'top' is unknown"),
        ("fit noisy.csv --laws power,cubic", "law 'cubic' is unknown; use some of constant, power"),
        ("fit noisy.csv --min-length 0", "--min-length '0' must be at least 1"),
        ("fit noisy.csv --max-length 1.5", "--max-length '1.5' is not an integer"),
        ("fit noisy.csv --min-length 1e9", "0 points from 1000000000; a fit needs at least 4"),
        ("fit noisy.csv --min-length 100 --max-length 50", "0 points from 100 to 50"),
        ("fit noisy.csv --max-length 20", "3 points from 1 to 20; a fit needs at least 4"),
        ("fit noisy.csv --weight 2", "--weight '2' must be 1 or free"),
        ("fit noisy.csv --planes-used 0", "--planes-used"),
        ("fit noisy.csv --compare data", "--compare 'data' is unknown; use --compare theory"),
        ("fit noisy.csv --plane 3", "the options of a head say which one --compare theory is about"),
        ("fit noisy.csv --head h.safetensors", "the options of a head say which one --compare theory is about"),
        ("fit noisy.csv --offset 3", "--offset goes with --angle"),
        ("fit noisy.csv --angle 1 --offset -3", "offset '-3' must not be negative"),
        ("fit noisy.csv --angle x", "cannot read 'x'"),
        ("fit noisy.csv --angle 0", "angle '0' must be positive"),
        (
            "fit noisy.csv --compare theory --angle 1 --offset 50",
            "the head sees a rival from length 51 on, the file starts at 10",
        ),
        ("fit noisy.csv --compare theory --offset 5", "with which head? Give --angle"),
        ("fit noisy.csv --compare theory --angle 1 --rope paper", "give one of --rope, --angle, not several"),
        ("fit noisy.csv --compare theory --head none.safetensors", "none.safetensors"),
        ("fit noisy.csv --compare theory --mode index --centred", "--centred goes with --mode retrieval"),
        ("fit noisy.csv --output f.csv", "--output 'f.csv': the name must end in .json"),
        ("fit noisy.csv --plot f.pdf", "--plot 'f.pdf': the name must end in .svg or .png"),
        ("fit noisy.csv --output gone/f.json", "the folder 'gone' does not exist"),
        ("fit noisy.csv --threads 0", "--threads"),
    ],
)
def test_what_cannot_be_used_is_one_line(line: str, words: str, refused: Callable[[str], str]) -> None:
    noisy()
    Path("bad.csv").write_text("length,margin\n1,1\n2,x\n")
    assert words in refused(f"{line} --plot p.png" if line.startswith("fit n") and "--plot" not in line else line)
    assert sorted(path.name for path in Path().iterdir()) == ["bad.csv", "noisy.csv"]


def test_ctrl_c_leaves_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    noisy()

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ropegeo.cli.fit.fit_decay", stopped)
    assert main(["fit", "noisy.csv", "--output", "f.json", "--plot", "f.png"]) == 130
    assert capsys.readouterr().err == "ropegeo: stopped; nothing was written\n"
    assert [path.name for path in Path().iterdir()] == ["noisy.csv"]


def test_a_file_name_cannot_steer_the_terminal(run: Run) -> None:
    noisy("a\x1b[2Jb.csv")
    assert run(f"fit 'a\x1b[2Jb.csv' {SHORT}").startswith("Fit: margin of a\\x1b[2Jb.csv\n")


# ---- words ----


def test_help_names_every_law() -> None:
    (option,) = (part for part in get_args(get_type_hints(FitOptions, include_extras=True)["laws"])[1:])
    assert all(name in option.help for name in LAWS)
    assert option.help.split(": ")[1].split(". ")[0].split(", ") == list(LAWS)


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (-1.99213, -2.0206, -1.95979, "-1.992 [-2.021, -1.960]"),
        (2.5, 2.0, 3.0, "2.50 [2.00, 3.00]"),
        (0.0, -1.0, 1.0, "0 [-1.0, 1.0]"),
        (1.234e-7, 1.2e-7, 1.3e-7, "1.234e-7 [1.200e-7, 1.300e-7]"),
        (1234567.0, 1.0e6, 2.0e6, "1.23e6 [1.00e6, 2.00e6]"),
        (1.0, 1.0, 1.0, "1 (+-0)"),
        (0.6, 0.6 - 1e-12, 0.6 + 1e-12, "0.6 (+-1e-12)"),
        (3.0, math.nan, math.nan, "3.000 (no interval)"),
        (3.0, 0.0, math.inf, "3.00 (0, inf)"),
        (0.0, 0.0, 0.0, "0 (+-0)"),
    ],
)
def test_numbers_are_written_to_two_digits_of_their_interval(value: float, low: float, high: float, text: str) -> None:
    assert estimate_text(Estimate(value=value, low=low, high=high, kind="student_t")) == text

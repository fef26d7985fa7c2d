"""`ropegeo limit` in process: its table, verdict and exit status, JSON, files, and one line for what cannot be used."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropegeo.cli import main

Run = Callable[..., str]
PLANE_0 = "limit --base 10000 --head-dim 128 --offset 3"
PLANE_1 = "limit --angle '10000^(-2/128)' --integers 16 --formats none"
SHORT = "--max-length 64"

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


def rows_of(text: str) -> dict[str, list[str]]:
    """The table: what is limited, and the words after it."""
    lines = text.splitlines()
    (start,) = [k for k, line in enumerate(lines) if line.startswith("limit  ")]
    table = {}
    for line in lines[start + 1 :]:
        what, _, rest = line.partition("  ")
        if not rest.strip() or not what:
            continue
        table[what] = rest.split()
    return table


def test_formats_of_section_8(run: Run) -> None:
    """The lengths of docs/MATHEMATICS.md, section 8, plane 0, whatever the scale, in the table and as JSON."""
    rows = rows_of(run(f"{PLANE_0} {SHORT} --logits both"))
    assert {name: rows[name][0] for name in rows if "16" in name} == {
        "float16, fused": "51",
        "float16, eager": "48",
        "bfloat16, fused": "50",
        "bfloat16, eager": "48",
    }
    assert rows["float32, fused"][:2] == ["-", "64"]
    for options in ("", "--beta 1000 --rule 'weight>=0.1'"):
        data = json.loads(run(f"{PLANE_0} {SHORT} {options} --formats bfloat16,float16 --json"))
        assert data["schema"] == "ropegeo.limit/1"
        assert data["formats"]["bfloat16"]["first_wrong_length"] == 50
        assert data["formats"]["float16"]["first_wrong_length"] == 51
        assert data["formats"]["float16"]["max_length"] == 64
        assert data["formats"]["float16"]["cause"] == "near return"
        assert data["formats"]["float16"]["fused"]["logits"] == "fused"


def test_formats_are_emulated_to_4096_or_the_length(run: Run) -> None:
    line = f"{PLANE_0} --formats float16 --json"
    assert json.loads(run(line))["formats"]["float16"]["max_length"] == 4096
    assert json.loads(run(f"{line} --length 4100", status=1))["formats"]["float16"]["max_length"] == 4100


def test_scales_of_section_8(run: Run) -> None:
    """Without --beta the six scales are shown; a token-conditional head is asked by all queries or by --offset."""
    for offset, lengths in ((3, [17, 32, 61, 315, 1592, 3181]), (16, [None, 45, 74, 328, 1605, 3194])):
        data = json.loads(run(f"{PLANE_1} --offset {offset} --json"))
        assert [row["n_max"] for row in data["softmax"]] == lengths
        assert data["beta"] is None
    text = run(f"{PLANE_1} --offset 16")
    assert rows_of(text)["softmax, beta 10"][-2:] == ["n_max", "none"]
    assert "n_max 3194; displacement" in text
    assert "no scale is judged (give --beta)" in text


def test_a_length_is_judged(run: Run) -> None:
    """Exit status 1 where something fails up to it; scales that are only shown do not count."""
    good = run(f"{PLANE_1} --offset 3 --beta 1000 --length 61")
    assert "verdict: reaches length 61" in good
    assert "beta_min(61) = " in good
    bad = run(f"{PLANE_1} --offset 3 --beta 1000 --length 62", status=1)
    assert "verdict: does not reach length 62: softmax, beta 1000 fails from length 62 on (near return)" in bad
    run(f"{PLANE_1} --offset 3 --length 62")
    run(f"{PLANE_0} --formats bfloat16 --length 50", status=1)
    run(f"{PLANE_0} --formats bfloat16 --length 49")
    run(f"{PLANE_1} --offset 3 --beta 1000 --rule 'weight>=0.9' --length 61", status=1)


def test_the_window(run: Run) -> None:
    text = run(f"{PLANE_1} --window 16 --length 20", status=1)
    assert rows_of(text)["window of 16"][0] == "17"
    assert "window: the target lies outside the sliding window" in text
    assert rows_of(run(f"{PLANE_1} --window 17 --length 20"))["window of 17"][0] == "-"
    data = json.loads(run(f"{PLANE_1} --offset 3 --beta 1000 --window 61 --length 100000 --json"))
    assert data["softmax"][0]["first_failing_length"] is None
    assert data["softmax"][0]["searched"] is None


@pytest.mark.slow
def test_a_length_that_was_not_searched_is_not_decided(run: Run) -> None:
    """Right as far as it was emulated, which is not the length asked for: exit status 1, and JSON says null."""
    line = f"{PLANE_0} --formats bfloat16 --length 49 --max-length"
    text = " ".join(run(f"{line} 20", status=1).split())
    assert (
        "verdict: not decided beyond length 20 of the 49 asked for (argmax, bfloat16): bfloat16, fused was sea" in text
    )
    data = json.loads(run(f"{line} 20 --json", status=1))
    assert (data["holds"], data["formats"]["bfloat16"]["max_length"]) == (None, 20)
    assert json.loads(run(f"{line} 49 --json"))["holds"] is True
    assert json.loads(run(f"{PLANE_0} --formats none --json"))["holds"] is None


@pytest.mark.slow
def test_a_head_that_looks_for_itself_in_a_window(run: Run) -> None:
    """Its formats are emulated up to the window, and say so; a longer length is not decided by them."""
    line = "limit --mode reflexive --symbolic --angle 0.001 --window 20 --formats float32"
    text = run(line)
    assert rows_of(text)["float32, fused"][:2] == ["-", "20"]
    assert "emulated up to the window of 20" in text
    assert json.loads(run(f"{line} --length 30 --json", status=1))["holds"] is None


def test_a_window_is_right_in_exact_arithmetic_only(run: Run) -> None:
    """Positions held in bfloat16 meet above 256, far beyond the window."""
    line = "limit --angle 0.1 --offset 3 --window 16 --formats bfloat16 --positions format --max-length 300"
    rows = rows_of(run(line))
    assert rows["argmax, exact"][:2] == ["-", "any"]
    assert rows["bfloat16, fused"][0] == "258"
    assert json.loads(run(f"{line} --length 257 --json"))["holds"] is True
    run(f"{line} --length 258", status=1)


def test_a_scale_is_looked_for(run: Run) -> None:
    line = "limit --angle 1 --offset 3 --length 20 --formats none --find-beta"
    whole = json.loads(run(f"{line} bfloat16 --json"))
    data = whole["found_beta"]
    assert whole["holds"] is True
    assert data["beta"] > data["beta_min_exact"]
    assert data["query_positions"] == "every one"
    assert data["number_format"] == "bfloat16"
    text = " ".join(run(f"{PLANE_0} --formats none --length 60 --find-beta bfloat16", status=1).split())
    assert "found no beta that is right in bfloat16, fused logits at every query position up to length 60" in text
    assert "verdict: does not reach length 60: found beta, bfloat16 is first wrong at length 50 (near return" in text
    assert "not emulated are tensor cores that truncate sums" in text
    lost = json.loads(
        run("limit --angle 1 --offset 3 --length 60 --formats none --find-beta bfloat16 --json", status=1)
    )
    assert lost["holds"] is False


@pytest.mark.slow
def test_the_best_head_for_llama_is_right_in_bfloat16_at_65536(run: Run) -> None:
    """At a scale that is found, at every query position: half a minute."""
    line = "limit --rope llama-3.1-8b --planes optimal --offset 3 --length 65536 --formats none"
    data = json.loads(run(f"{line} --find-beta bfloat16 --json"))["found_beta"]
    assert (data["number_format"], data["length"], data["query_positions"]) == ("bfloat16", 65536, "every one")
    assert data["beta_min_exact"] < data["beta"] < 2 * data["beta_min_exact"]
    assert data["last"]["first_failing_length"] is None
    assert data["smallest_weight"] > 3 / 4


@pytest.mark.slow
def test_files_and_pictures(run: Run) -> None:
    """A head file at its own scale or another; the JSON that is written is what is printed; a picture."""
    run("construct --base 10000 --head-dim 128 --offset 3 --beta 100 --output head.safetensors")
    line = f"limit --head head.safetensors {SHORT} --formats bfloat16"
    printed = run(f"{line} --json --output a.json --plot a.svg")
    data = json.loads(printed)
    assert json.loads(Path("a.json").read_text()) == data
    assert data["beta"] == data["recipe"]["beta"] == 100
    assert [row["n_max"] for row in data["softmax"]] == [22]
    assert Path("a.svg").read_text().startswith("<?xml")
    other = json.loads(run(f"{line} --beta 1000 --json"))
    assert other["beta"] == other["recipe"]["beta"] == 1000
    assert "wrote b.json" in run(f"{line} --output b.json")


def test_a_head_file_is_judged_at_its_own_scale_even_of_1(run: Run) -> None:
    """The default of --beta is another matter: it is not judged."""
    run("construct --angle 1 --offset 3 --output one.safetensors")
    data = json.loads(run("limit --head one.safetensors --formats none --length 5 --json", status=1))
    assert (data["beta"], data["holds"], len(data["softmax"])) == (1.0, False, 1)
    data = json.loads(run("limit --angle 1 --offset 3 --formats none --length 5 --json"))
    assert (data["beta"], data["holds"], len(data["softmax"])) == (None, True, 6)
    run("limit --head one.safetensors --formats none --length 10 --find-beta float32")


@pytest.mark.slow
def test_pictures_at_the_largest_scale_and_of_what_is_hidden(run: Run) -> None:
    for options in ("--beta 5e9", "--offset 3 --window 3 --beta 100"):
        run(f"limit --angle 1 --formats none {options} --plot a.svg --force")
        assert Path("a.svg").read_text().startswith("<?xml")


def test_what_the_user_never_gave_is_not_refused(run: Run) -> None:
    """Twice the offset, ten times the scale, the longest sum: each is cut to what is served."""
    data = json.loads(run("limit --angle 0.01 --offset 140000 --formats none --json"))
    assert data["argmax"]["first_failing_length"] is None
    assert json.loads(run("limit --angle 1 --length 1e30 --formats none --json"))["holds"] is True
    text = run("limit --angle 1 --offset 3 --window 3 --length 20 --formats none", status=1)
    assert rows_of(text)["argmax, exact"][:3] == ["4", "any", "window"]
    run("limit --angle 1 --offset 3 --window 3 --length 20 --formats none --find-beta bfloat16", status=1)


def test_letters(run: Run) -> None:
    text = run(f"limit --mode retrieval --angle 0.0027 {SHORT} --formats bfloat16 --beta 20 --length 30")
    assert rows_of(text)["argmax, exact"][:2] == ["147", "any"]
    assert "beta_min(30)" in text


def test_help_names_every_option(run: Run) -> None:
    text = run("limit --help")
    for name in (
        "beta",
        "rule",
        "length",
        "formats",
        "logits",
        "positions",
        "vectors",
        "max-length",
        "window",
        "find-beta",
    ):
        assert f"--{name}" in text


REFUSED: list[tuple[str, str]] = [
    ("--beta 0", "beta 0 must be a positive number"),
    ("--beta -3", "beta -3 must be a positive number"),
    ("--beta 1e12", "beta 1e+12 is above 1e+10"),
    ("--formats fp8", "number format 'fp8' is unknown; use float32, float16, bfloat16, tf32, all or none"),
    ("--find-beta fp8 --length 9", "number format 'fp8' is unknown"),
    ("--find-beta bfloat16", "--find-beta needs --length n, and looks for the --beta"),
    ("--find-beta all --length 9", "--find-beta 'all' with --logits fused: give one format"),
    ("--find-beta none --length 9", "--find-beta 'none' with --logits fused: give one format"),
    ("--find-beta float16,tf32 --length 9", "give one format"),
    ("--find-beta tf32 --length 9 --logits both", "with --logits both: give one format, and --logits fused or eager"),
    ("--mode retrieval --length 1e7 --formats none", "8 letters are judged up to length 1250000; 10000000 is more"),
    ("--rule 'weight>=1e400'", "must lie strictly between 0 and 1"),
    ("--offset 5 --length 5", "offset 5 needs a length above it; length 5 is too short"),
    ("--offset 5000 --max-length 100", "offset 5000 needs a length above it; max_length 100 is too short"),
    ("--rule 'weight>=1.5'", "must lie strictly between 0 and 1"),
    ("--rule most", "rule 'most' is unknown; use majority or 'weight>=0.9'"),
    ("--window 0", "--window 0 must be at least 1"),
    ("--max-length 1e9", "number formats are emulated up to length 262144"),
    ("--length 1e6", "number formats are emulated up to length 262144"),
    ("--max-length 1e10 --formats none", "lengths are searched up to 1000000000"),
    ("--offset 5e8 --plane 10 --length 6e8 --formats none --beta 1e6", "for offsets up to 20000000; 500000000 is more"),
    ("--vectors own --formats none", "vectors 'own' are unknown; use unit or head"),
    ("--rule 'weight>=1e-400'", "must lie from 1e-12 to 1 - 1e-12"),
    ("--angle '1 turn'", "no plane of the head turns"),
    ("--logits half", "logits 'half' are unknown; use one of fused, eager"),
    ("--positions half", "positions 'half' are unknown; use one of exact, format"),
    ("--vectors own", "vectors 'own' are unknown; use unit or head"),
    ("--mode retrieval --offset 2", "judged at its worst distance; leave --offset out"),
    ("--planes optimal", "are made for a length: add --length n"),
    ("--plane best", "are made for a length: add --length n"),
    ("--output a.csv", "the name must end in .json"),
    ("--head missing.safetensors", "missing.safetensors"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_refusals(options: str, message: str, refused: Callable[[str], Any]) -> None:
    assert message in refused(f"limit {options}")
    assert list(Path().iterdir()) == []

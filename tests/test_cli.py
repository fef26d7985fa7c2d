"""The command line in process: what it prints and writes, and one line on standard error for whatever it cannot use."""

from __future__ import annotations

import csv
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file, save_file

import ropegeo
from ropegeo.cli import main
from ropegeo.spectrum import preset_names

NUMBER, LETTER = "C B A 1 4 1 3 2 1", "C2 B1 A3 FA EC DE HF GD IG"


pytestmark = pytest.mark.usefixtures("command_folder")


# ---- construct ----


def test_construct_index(run: Callable[..., str]) -> None:
    text = run("construct --mode index --offset 3")
    for part in ("W_Q", "W_K", "W_V", "peak at distance 3: logit 1", "1.8173", "710"):
        assert part in text
    data = json.loads(run("construct --mode index --offset 3 --json"))
    shapes = {name: matrix["shape"] for name, matrix in data["matrices"].items()}
    assert (shapes["w_q"], shapes["w_k"], shapes["w_v"]) == ([128, 5], [128, 5], [5, 5])
    assert all([len(m["data"]), len(m["data"][0])] == m["shape"] for m in data["matrices"].values())
    assert data["peak"]["distance"] == 3
    assert max(zip(data["logits"]["match"], data["logits"]["distance"], strict=True))[1] == 3
    for row in data["curve"]["rows"]:
        assert {"length", "margin", "margin_digits", "abs_error", "best", "worst", "at", "method"} <= set(row)
        assert float(row["margin_digits"]) == pytest.approx(row["margin"], rel=1e-15)
        assert 0 < row["abs_error"] < 1e-15 * row["margin"]
    assert data["schema"] == "ropegeo.construct/1"
    first, again, other = (run(f"construct --offset 3 --seed {seed} --json") for seed in (7, 7, 8))
    assert first == again != other
    assert json.loads(first)["curve"] == json.loads(other)["curve"]


@pytest.mark.parametrize(
    ("line", "mode", "distance"),
    [
        ("construct --mode retrieval --angle 0.002", "retrieval", 0),
        ("construct --mode retrieval --angle 0.002 --centred --length 64", "retrieval", 0),
        ("construct --mode retrieval --plane best --length 64 --base 9e4 --head-dim 12", "retrieval", 0),
        ("construct --mode reflexive", "reflexive", 0),
        ("construct --mode reflexive --symbolic --plane 60", "symbolic_reflexive", 0),
        ("construct --integers 5 --offset 2", "token_index", 2),
        ("construct --offset 7 --planes 0,3,9 --weights 3,2,1 --length 500", "index", 7),
        ("construct --offset 7 --plane best --length 8192 --rope llama-3.1-8b --seed 1", "index", 7),
        ("construct --offset 40 --base 500000 --head-dim 32 --rotary-dim 8 --layout interleaved", "index", 40),
        ("construct --angle '10000^(-2/128)' --offset 3 --beta 50 --lengths 10,1e30", "index", 3),
        ("construct --offset 1e15", "index", 10**15),
    ],
)
def test_construct(line: str, mode: str, distance: int, run: Callable[..., str]) -> None:
    assert "W_Q" in run(line)
    data = json.loads(run(f"{line} --json"))
    assert data["recipe"]["mode"] == mode
    assert data["peak"]["distance"] == distance
    assert data["curve"]["rows"]


@pytest.mark.parametrize("name", preset_names())
def test_presets(name: str, run: Callable[..., str]) -> None:
    data = json.loads(run(f"construct --rope {name} --offset 3 --length 100 --json"))
    assert data["recipe"]["spectrum"]["source"] == f"preset {name}"
    assert data["curve"]["rows"][-1]["status"] == "wins"


# ---- curve ----

SECTION_5 = [  # docs/MATHEMATICS.md, section 5: angle, T, margin, at
    ("1", "1001", "1.8173640789234051e-9", 710),
    ("10000^(-2/128)", "17", "0.024416724455925216", 7),
    ("10000^(-2/128)", "1000001", "2.323302208927921e-12", 945535),
    ("10000^(-2/128)", "1e30+1", "1.1184245912118102e-59", "405221421912788261653497754436"),
    ("500000^(-2/128)", "1001", "3.3940138169326599e-7", 887),
    ("pi*(sqrt(5)-1)", "1001", "4.0525180671706781e-6", 987),
]


@pytest.mark.parametrize(("angle", "length", "margin", "at"), SECTION_5)
def test_published_values(angle: str, length: str, margin: str, at: int | str, run: Callable[..., str]) -> None:
    (row,) = json.loads(run(f"curve --angle '{angle}' --lengths {length} --json"))["rows"]
    assert row["margin_digits"] == margin
    assert row["at"] == at
    assert row["length"] == ("1" + "0" * 29 + "1" if "e" in length else int(length))
    assert (row["method"], row["status"]) == ("continued_fraction", "wins")


def test_a_length_is_exact(run: Callable[..., str]) -> None:
    for text in ("1e30", "10^30", "1" + "0" * 30):
        (row,) = json.loads(run(f"curve --angle 1 --length {text} --json"))["rows"]
        assert row["length"] == str(10**30)
    (row,) = json.loads(run("curve --angle 1 --length 1001 --digits 40 --json"))["rows"]
    assert row["margin_digits"].startswith("1.817364078923405")
    assert len(row["margin_digits"]) >= 40


def test_a_rational_turn_ties(run: Callable[..., str]) -> None:
    rows = json.loads(run("curve --angle '1/5 turn' --lengths 5,6,1e30 --json"))["rows"]
    assert [(row["margin_digits"], row["status"]) for row in rows[1:]] == [("0", "tie")] * 2
    assert [row["margin"] for row in rows[1:]] == [0.0, 0.0]
    assert "tie" in run("curve --angle '1/5 turn' --length 6")
    assert "exactly 0 (a tie) from length 6 on" in run("construct --angle '1/5 turn' --offset 0")


@pytest.mark.parametrize(
    ("options", "lengths"),
    [
        ("--mode index --offset 3 --plane 1", "16,1e30"),
        ("--mode index --offset 3 --planes 0-5 --weights 6,5,4,3,2,1 --beta 9", "16,200"),
        ("--mode retrieval --plane 62 --letters 4", "17,64"),
        ("--mode reflexive --symbolic --plane 62", "17,64"),
        ("--mode reflexive", "17,1e6"),
        ("--integers 4 --offset 2", "17,64"),
    ],
)
def test_curve_of_a_file(options: str, lengths: str, run: Callable[..., str], tmp_path: Path) -> None:
    run(f"construct {options} --output head.safetensors")
    assert os.listdir(tmp_path) == ["head.safetensors"]
    assert set(load_file("head.safetensors")) >= {"w_q", "w_k", "w_v"}
    again = "--offset 2" if "--integers" in options else ""
    first, second = (
        json.loads(run(f"curve {which} --lengths {lengths} --json"))
        for which in (options, f"--head head.safetensors {again}")
    )
    assert first == second


def test_csv(run: Callable[..., str]) -> None:
    run("curve --angle 1 --lengths 1001,1e30 --output c.csv")
    text = Path("c.csv").read_text()
    assert text.splitlines()[0] == "length,margin,best,worst,at,abs_error,status,method"
    rows = list(csv.DictReader(text.splitlines()))
    assert [rows[0][name] for name in ("length", "margin", "at")] == ["1001", "1.8173640789234051e-9", "710"]
    assert rows[1]["length"] == str(10**30)
    assert all(float(row["abs_error"]) < 1e-15 * float(row["margin"]) for row in rows)


def test_files_are_written_and_kept(run: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    line = "curve --angle 1 --lengths 100,1000 --output c.json --plot c.svg"
    assert "wrote c.json" in run(line)
    assert Path("c.svg").read_text().lstrip().startswith("<?xml")
    assert json.loads(Path("c.json").read_text())["rows"][1]["length"] == 1000
    Path("c.json").write_text("old")
    assert main(shlex.split(line)) == 2
    assert "exists; choose another name or pass --force" in capsys.readouterr().err
    assert Path("c.json").read_text() == "old"
    run(f"{line} --force")
    run("construct --offset 3 --output h.safetensors --plot h.png")
    assert Path("h.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(os.listdir()) == ["c.json", "c.svg", "h.png", "h.safetensors"]


# ---- solve, spectrum, the rest ----


@pytest.mark.parametrize(
    ("line", "answer", "last"),
    [
        (f"solve '{NUMBER}'", "C", "C B A A C C A C C"),
        (f"solve '{LETTER}' --task letter", "C2", "C2 B1 A3 A3 C2 C2 A3 C2 C2"),
        (f"solve '{NUMBER}' --depth 6 --attention softmax --beta 200", "C", "C B A A C C A C C"),
    ],
)
def test_solve(line: str, answer: str, last: str, run: Callable[..., str]) -> None:
    text = run(line)
    assert f"answer {answer}" in text
    assert "path 9 -> 8 -> 6 -> 5 -> 1 (4 hops)" in text
    data = json.loads(run(f"{line} --json"))
    assert (data["answer"], data["hops"], data["correct"]) == (answer, 4, True)
    assert " ".join(data["table"][4]["tokens"]) == " ".join(data["table"][-1]["tokens"]) == last
    run(f"{line} --output s.json")
    assert json.loads(Path("s.json").read_text()) == data
    run("solve '" + " ".join(f"letter{k}" for k in range(60)) + " 7 1'")  # as wide as its tables may be


def test_a_wrong_answer_is_a_verdict(run: Callable[..., str]) -> None:
    assert "the oracle answers C" in run(f"solve '{NUMBER}' --attention softmax --beta 1", status=1)
    assert json.loads(run(f"solve '{NUMBER}' --attention softmax --beta 1 --json", status=1))["correct"] is False


def test_spectrum(run: Callable[..., str]) -> None:
    assert "llama3" in run("spectrum --rope llama-3.1-8b --length 8192")
    data = json.loads(run("spectrum --length 1e30 --json"))
    assert (data["length"], len(data["planes"])) == (str(10**30), 64)
    assert data["planes"][1]["angle"] == pytest.approx(10000 ** (-2 / 128), rel=1e-15)
    run("spectrum --output s.csv")
    assert len(Path("s.csv").read_text().splitlines()) == 65


def test_help_and_version(run: Callable[..., str]) -> None:
    assert run("--version") == f"ropegeo {ropegeo.__version__}\n"
    for line in ("", "--help", "construct --help", "curve -h", "solve --help", "spectrum --help", "derive --help"):
        assert "Usage" in run(line)


@pytest.mark.parametrize("extra", [{}, {"COLUMNS": "200", "TERM": "xterm-256color"}])
def test_pipes_carry_no_escape_codes(extra: dict[str, str]) -> None:
    for line in ("--help", "construct --offset 3", "curve --angle 1 --length x"):
        command = [sys.executable, "-m", "ropegeo", *line.split()]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **extra})
        assert "\x1b" not in done.stdout + done.stderr
        assert max((len(row) for row in done.stdout.splitlines()), default=0) <= 100


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
@pytest.mark.parametrize("line", ["solve 'é B 2'", "solve 'é B 2' --json", "construct --angle π", "curve -h"])
def test_any_encoding_of_the_terminal(line: str, encoding: str) -> None:
    command = [sys.executable, "-m", "ropegeo", *shlex.split(line)]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding})
    assert done.returncode in (0, 2)
    assert b"Traceback" not in done.stderr


@pytest.mark.slow
def test_a_full_disk_is_said_in_one_line() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    for line in ("construct", "curve --angle 1 --length 10 --json", "--version"):
        with Path("/dev/full").open("w") as full:
            command = [sys.executable, "-m", "ropegeo", *line.split()]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode != 0
        assert "Traceback" not in done.stderr, line


def test_a_terminal_without_a_size(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("os.get_terminal_size", lambda *_: os.terminal_size((0, 0)))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["curve", "--angle", "1", "--length", "1001"]) == 0
    assert "1.81736" in capsys.readouterr().out


def test_control_characters_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    for letter in ("\x1b[31mA", "\udcffA"):
        for json_too in ([], ["--json"]):
            assert main(["solve", f"{letter} B 1", *json_too]) in (0, 2)
            out, err = capsys.readouterr()
            assert "\x1b" not in out + err
            (out + err).encode()  # a lone surrogate cannot be written to any terminal


# ---- bad input: what the one line says, and command lines separated by ";;" that must say it ----

BAD: dict[str, str] = {
    "must be even": """construct --base 1e4 --head-dim 127 ;; construct --base 1e4 --head-dim 0 ;;
        construct --base 1e4 --head-dim -2 ;; construct --base 1e4 --head-dim 64 --rotary-dim 31 ;;
        construct --base 1e4 --head-dim 64 --rotary-dim 0""",
    "larger than head_dim 64": "construct --base 1e4 --head-dim 64 --rotary-dim 128",
    "go together": "construct --base 1e4 ;; construct --head-dim 64",
    "goes with": """construct --rotary-dim 64 ;; construct --layer-type x ;; construct --weights 1 ;;
        construct --centred ;; construct --symbolic ;; construct --mode reflexive --integers 3 ;;
        curve --length 9 --head head.safetensors --angle 1 ;; curve --length 9 --head head.safetensors --beta 2""",
    "leave --offset out": "curve --length 9 --head head.safetensors --offset 2",
    "must not be negative": """construct --offset -1 ;; construct --offset=-1 ;; curve --offset=-1e30 --length 9 ;;
        construct --seed -1 ;; construct --seed=-1""",
    "too short": """construct --offset 16 --length 16 ;; curve --offset 20 --lengths 10,30 ;;
        curve --integers 3 --offset 3 --length 3 ;; construct --mode retrieval --offset 20 --length 16""",
    "is not an integer": """construct --offset 1.5 ;; construct --offset x ;; construct --offset '' ;;
        curve --length 1.5 ;; curve --length x ;; curve --length 1e-3 ;; curve --length '' ;; curve --length nan ;;
        curve --length inf ;; curve --length pi ;; curve --lengths 10,,20 ;; curve --lengths '' ;;
        curve --lengths '10;20' ;; curve --length 1e99999 ;; spectrum --length x ;; curve --length 1_000""",
    "must lie between 2 and 10^1000": """curve --length 0 ;; curve --length 1 ;; curve --length=-5 ;;
        curve --length 1e1001 ;; curve --length 10^1000+1 ;; construct --length 1""",
    "length": """spectrum --length 0 ;; spectrum --length 1 ;; spectrum --length 1e1001 ;;
        curve ;; curve --head head.safetensors ;; curve --plane best ;; construct --plane best ;;
        construct --mode retrieval --centred ;; curve --mode retrieval --planes all --length 1e30 ;;
        curve --planes all --length 1e15 --route streamed ;; construct --mode retrieval --centred --length 1e30""",
    "curve": "construct --offset 1e999 ;; construct --offset 1e30 --json",
    "not both": """curve --length 10 --lengths 10,20 ;; construct --plane 1 --planes 1,2 ;;
        curve --length 99 --records --every 3""",
    "at least 1": "curve --length 99 --every 0 ;; curve --length 99 --every=-2",
    "go with one --length": "curve --lengths 9,99 --every 3 ;; curve --lengths 9,99 --records",
    "more than 1000000 rows": "curve --length 1e9 --every 1 ;; curve --length 1e30 --every 1e20",
    "is unknown; use one of auto": "curve --length 99 --route fast ;; curve --length 99 --route ''",
    "for one plane": """curve --length 99 --planes 0,1 --route continued_fraction ;;
        curve --mode retrieval --planes 0,1 --length 99 --route first_return""",
    "matches letters": "curve --mode retrieval --length 99 --records",
    "does not reach length": "curve --mode retrieval --length 99 --route closed_form",
    "must be in increasing order": "curve --lengths 20,10 ;; curve --mode retrieval --lengths 1e30,9",
    "must end in .csv or .json or .npz": "curve --length 99 --output curve.txt",
    "angle": """construct --angle 0 ;; construct --angle=-1 ;; construct --angle '1 - 1' ;;
        construct --angle '0 turn' ;; construct --angle 1e-400 ;; construct --angle 1e400""",
    "use numbers, pi, sqrt()": """construct --angle nan ;; construct --angle inf ;;
        construct --angle "__import__('os')" ;; construct --angle '2**' ;; construct --angle '' ;;
        construct --angle pi^pi ;; construct --angle turn ;; construct --angle 0x10 ;; construct --angle ½ ;;
        construct --angle '(1' ;; construct --angle exp(1)""",
    "closed form": """construct --angle 'sqrt(2+sqrt(2))' ;; construct --angle 1/0 ;; construct --angle 2^100000 ;;
        construct --angle '(-1)^(1/2)' ;; construct --angle '1/0 turn'""",
    "larger than 1": """construct --base 1 --head-dim 8 ;; construct --base 0.5 --head-dim 8 ;;
        spectrum --base=-5 --head-dim 8 ;; construct --base 0 --head-dim 8""",
    "is not a decimal number": """construct --base nan --head-dim 8 ;; construct --base inf --head-dim 8 ;;
        construct --base x --head-dim 8 ;; construct --base '' --head-dim 8 ;;
        construct --planes 0,1 --weights nan,1 ;; construct --planes 0,1 --weights '' ;;
        construct --planes 0,1 --weights inf,1""",
    "base": "construct --base 1e400 --head-dim 8 ;; construct --base 1e40000 --head-dim 8",
    "plane": """construct --plane 64 ;; construct --plane=-1 ;; construct --plane x ;; construct --plane 1.5 ;;
        construct --plane '' ;; construct --plane 99999999999 ;; construct --planes 5-3 ;; construct --planes 0,0 ;;
        construct --planes 0-999 ;; construct --planes '' ;; construct --planes 0, ;; construct --planes=-3 ;;
        construct --planes 3,1 ;; construct --planes all,1 ;; construct --angle 1 --plane 1""",
    "weights": """construct --planes 0,1 --weights 1 ;; construct --planes 0,1 --weights 1,2,3 ;;
        construct --planes 0,1 --weights 1,-1 ;; construct --planes 0,1 --weights 0,0 ;;
        construct --planes 0,1 --weights 1e308,1e308 ;; construct --planes 0,1 --weights 1e309,1""",
    "is unknown; use one of": """construct --mode indx ;; construct --mode '' ;; construct --layout diagonal ;;
        solve 'A 1' --task colour ;; solve 'A 1' --attention warm""",
    "presets: ": """construct --rope gpt5 ;; construct --rope missing.json ;; construct --rope folder ;;
        spectrum --rope nope ;; construct --rope ''""",
    "is not supported in this version": "construct --rope yarn.json ;; spectrum --rope zigzag.json",
    "json": "construct --rope notjson.json ;; construct --rope list.json",
    "leave layer_type": "construct --rope paper --layer-type x",
    "not several": """construct --rope paper --angle 1 ;; construct --rope paper --base 9 --head-dim 8 ;;
        construct --angle 1 --head-dim 8""",
    "does not exist; make it first": """construct --output missing/x.safetensors ;;
        curve --length 9 --plot missing/x.svg ;; spectrum --output missing/x.csv ;;
        solve 'A 1' --output missing/x.json""",
    "exists; choose another name": """curve --length 9 --output there.csv ;;
        curve --length 9 --output there.csv --json ;; construct --output there.safetensors""",
    "must end in": """construct --output x.txt ;; construct --output '' ;; construct --output . ;;
        construct --output folder ;; construct --output x.safetensors --plot x.pdf ;;
        curve --length 9 --output x.svg ;; curve --length 9 --plot '' ;; curve --length 9 --output .csv ;;
        solve 'A 1' --output x.csv ;; spectrum --output x.svg""",
    "head file": """curve --length 9 --head cut.safetensors ;; curve --length 9 --head foreign.safetensors ;;
        curve --length 9 --head missing.safetensors ;; curve --length 9 --head folder ;;
        curve --length 9 --head there.csv ;; curve --length 9 --head '' ;; curve --length 9 --head notjson.json""",
    "letters": """construct --mode retrieval --letters 0 ;; construct --mode retrieval --letters 1 ;;
        construct --letters -1 ;; construct --letters 5000 ;; construct --letters 99999999999999999999999""",
    "a vocabulary of": "construct --mode retrieval --letters 100 ;; construct --integers 4096",
    "integers": """construct --integers 0 ;; construct --integers -1 ;; construct --integers 9999999999 ;;
        construct --integers 3 --offset 4""",
    "must be 0": "construct --mode reflexive --offset 1",
    "beta": """construct --beta 0 ;; construct --beta -1 ;; construct --beta=-1 ;; construct --beta nan ;;
        construct --beta inf ;; construct --beta x ;; construct --beta 1e308 ;; solve 'A 1' --beta 0 ;;
        solve 'A 1' --beta nan ;; solve 'A A' --beta nan ;; solve 'A A' --beta=-1 ;;
        solve 'C2 C2' --task letter --beta nan --json""",
    "Try 'ropegeo --help'": """curve --length 9 --digits 0 ;; curve --length 9 --digits 1001 ;;
        curve --length 9 --digits x ;; construct --seed x ;; construct --json --bogus ;; bogus ;; --bogus ;;
        construct extra ;; solve ;; spectrum extra ;; construct --threads 0 ;; solve 'A 1' --depth 0 ;;
        construct --base 1e4 --head-dim x ;; construct --output""",
    "token": "solve '' ;; solve A ;; solve 'A 0' ;; solve 'A -1' ;; solve 'foo bar' --task letter ;; solve 'A,B,C'",
    "position": """solve 'A 1 5' ;; solve 'C2 FC GH' --task letter ;; solve 'C2 CC' --task letter ;;
        solve 'C2 C3 FC' --task letter""",
    "more than the 1 layers": "solve 'A 1 1' --depth 1",
}
LINES = [(line.strip(), part) for part, lines in BAD.items() for line in lines.split(";;")]


@pytest.fixture(name="files", scope="module")
def _files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad")
    llama: dict[str, Any] = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32}
    for kind in ("yarn", "zigzag"):
        (folder / f"{kind}.json").write_text(json.dumps(llama | {"rope_scaling": {"rope_type": kind, "factor": 4}}))
    for name, text in {"notjson.json": "{", "list.json": "[]", "there.csv": "old", "there.safetensors": "old"}.items():
        (folder / name).write_text(text)
    (folder / "folder").mkdir()
    head = folder / "head.safetensors"
    assert main(["construct", "--output", str(head)]) == 0
    (folder / "cut.safetensors").write_bytes(head.read_bytes()[:-1])
    save_file(load_file(head), folder / "foreign.safetensors")
    return folder


@pytest.mark.parametrize(("line", "part"), LINES)
def test_bad_input(
    line: str, part: str, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2, one line that names the fault, nothing on standard output, no file made or changed."""
    monkeypatch.chdir(files)
    before = {path.name: path.is_dir() or path.read_bytes() for path in files.iterdir()}
    code = main(shlex.split(line))
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("ropegeo: error: ")
    assert err.count("\n") == 1
    assert part in err
    assert {path.name: path.is_dir() or path.read_bytes() for path in files.iterdir()} == before

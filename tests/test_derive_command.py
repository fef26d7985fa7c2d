"""`ropegeo derive` in process: what it prints and writes, and its exit status."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ropegeo.claims import catalogue, claim_names, load_claim
from ropegeo.cli import derive, main

CLAIM = """
from ropegeo.claims import Claim, Status, argument, exact, require

CLAIM = Claim(title="{title}", statement=r"$\\frac{{1}}{{2}} \\le {value}$", source="docs", scope="one",
              status=Status.PROVED, ties=("ropegeo.nothing",))

def steps():
    yield exact("one", r"$1 \\le 2 \\cdot {value}$", holds=1 <= 2 * {value})
    yield argument("so", "it follows")

def check():
    require({value} != 2, "the function says 2")
"""
LONG = "A title that is so long that no table of a hundred columns has room for all of it, however it is laid out"


@pytest.fixture(name="folder", autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three claims of our own, one with a step that fails and one with a check that does; run in an empty folder."""
    folder = tmp_path / "derivations"
    folder.mkdir()
    for number, (name, value) in enumerate((("good", 1), ("bad_step", 0), ("bad_check", 2)), 1):
        (folder / f"d{number:02}_{name}.py").write_text(CLAIM.format(title=LONG, value=value), encoding="utf-8")
    monkeypatch.setattr(catalogue, "folder", lambda: folder)
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "TERMINAL_WIDTH"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture(name="run")
def _run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(line: str, *, status: int = 0) -> str:
        code = main(["derive", *shlex.split(line)])
        out, err = capsys.readouterr()
        assert (code, err) == (status, ""), line
        if "--json" not in line:
            assert max(len(row.rstrip()) for row in out.splitlines()) <= 100, out
        assert "\x1b" not in out
        return out

    return run


def test_the_table(run: Callable[..., str]) -> None:
    """Under the heading of each verdict its claims, titles in full; failures last."""
    lines = [" ".join(line.split()) for line in run("", status=1).splitlines()]
    assert [line for line in lines if line in ("proved", "cited", "holds in scope", "FAILED")] == ["proved", "FAILED"]
    assert lines[1] == "no. name cites seconds title"
    assert lines[2].split()[:2] == ["1", "good"]
    failed = lines[lines.index("FAILED") :]
    assert {line.split()[1] for line in failed if line[:1].isdigit()} >= {"bad_step", "bad_check"}
    assert LONG.rsplit(maxsplit=1)[-1] in " ".join(lines)
    assert lines[-3:] == [
        "bad_step: step 1, one: does not hold",
        "bad_check: check: ClaimError: the function says 2",
        "3 claims: 1 proved; 2 FAILED (bad_step, bad_check)",
    ]


def test_the_table_where_all_holds(folder: Path, run: Callable[..., str]) -> None:
    for path in folder.glob("*bad*"):
        path.unlink()
    assert run("").splitlines()[-1] == "1 claim: 1 proved. Every step and every check holds."


def test_a_claim(run: Callable[..., str]) -> None:
    text = run("good")
    for part in ("1/2 <= 1", "1. one (machine: exact)", "1 <= 2 * 1", "2. so (words)", "ropegeo.nothing"):
        assert part in text
    assert text.splitlines()[-1].startswith("proved (1 by machine, 1 in words): every step holds")
    assert run("1") == run("d01") == run("good 1 good") == text
    both = run("good bad-step", status=1)
    assert both.startswith(text)
    assert "1. one (machine: exact; DOES NOT HOLD)" in both
    assert "* step 1, one: does not hold" in both
    assert both.splitlines()[-1] == "2 claims: 1 proved; 1 FAILED (bad_step)"


def test_list_runs_nothing(run: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(derive, "run_claim")
    text = run("--list")
    assert [line.split()[:3] for line in text.splitlines() if line[2:3].isdigit()] == [
        ["1", "good", "proved"],
        ["2", "bad_step", "proved"],
        ["3", "bad_check", "proved"],
    ]
    assert json.loads(run("--list --json"))[1] == {"number": 2, "name": "bad_step", "status": "proved", "title": LONG}
    assert [entry["name"] for entry in json.loads(run("--list --json 3"))] == ["bad_check"]


def test_json(run: Callable[..., str]) -> None:
    data = json.loads(run("--json", status=1))
    assert [(entry["name"], entry["passed"]) for entry in data] == [
        ("good", True),
        ("bad_step", False),
        ("bad_check", False),
    ]
    (entry,) = json.loads(run("good --json"))
    assert entry["schema"] == "ropegeo.derivation/1"
    assert [step["kind"] for step in entry["steps"]] == ["exact", "argument"]
    assert entry["statement"] == r"$\frac{1}{2} \le 1$"


@pytest.mark.parametrize("suffix", ["md", "html"])
def test_report(suffix: str, run: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"--report out.{suffix}", status=1).splitlines()[-1] == f"wrote out.{suffix}"
    text = Path(f"out.{suffix}").read_text(encoding="utf-8")
    if suffix == "html":
        assert len(list(ElementTree.fromstring(text).iter("math"))) == 6  # noqa: S314 - our own page
    else:
        assert text.count(r"$\frac{1}{2} \le 1$") == 1
    Path(f"out.{suffix}").write_text("old")
    assert main(["derive", "--report", f"out.{suffix}"]) == 2
    assert "exists; choose another name or pass --force" in capsys.readouterr().err
    assert Path(f"out.{suffix}").read_text() == "old"
    run(f"good --report out.{suffix} --force")
    assert "bad_step" not in Path(f"out.{suffix}").read_text(encoding="utf-8")
    assert json.loads(run(f"good --json --report again.{suffix}"))[0]["name"] == "good"
    assert sorted(os.listdir()) == [f"again.{suffix}", f"out.{suffix}"]


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("nope", "no claim is called 'nope'"),
        ("good nope --report out.md", "no claim is called 'nope'"),
        ("4", "no claim is called '4'"),
        ("''", "no claim is called ''"),
        ("--report out.pdf", "must end in .md or .html"),
        ("--report ''", "must end in .md or .html"),
        ("--report missing/out.md", "does not exist; make it first"),
        ("--list --report out.md", "leave out --list or --report"),
        ("--bogus", "Try 'ropegeo --help'"),
    ],
)
def test_bad_input(line: str, part: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2 and one line, before anything is run."""
    monkeypatch.delattr(derive, "run_claim")
    code = main(["derive", *shlex.split(line)])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("ropegeo: error: ")
    assert err.count("\n") == 1
    assert part in err
    assert os.listdir() == []


def test_an_interrupt_leaves_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(_derivation: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(derive, "run_claim", interrupted)
    assert main(["derive", "--report", "out.html"]) == 130
    assert capsys.readouterr() == ("", "ropegeo: stopped; nothing was written\n")
    assert os.listdir() == []


@pytest.mark.parametrize("columns", [0, 20, 60, 300])
def test_any_width_of_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.get_terminal_size", lambda *_: os.terminal_size((columns, 0)))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for line in (["derive", "good"], ["derive"], ["derive", "--list"]):
        assert main(line) in (0, 1)
        rows = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
        assert max(len(row.rstrip()) for row in rows) <= max(40, min(columns or 100, 100))


def test_control_characters_do_not_reach_the_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "d04_steered.py"
    path.write_text(CLAIM.format(title="\\x1b[31mred", value=1), encoding="utf-8")
    for line in (["derive", "steered"], ["derive"], ["derive", "--list"]):
        assert main(line) in (0, 1)
        assert "\x1b" not in capsys.readouterr().out


def test_the_real_claims_are_listed(run: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    data = json.loads(run("--list --json"))
    assert [entry["name"] for entry in data] == list(claim_names())
    assert all(entry["title"] == load_claim(entry["name"]).claim.title for entry in data)
    run("--list")

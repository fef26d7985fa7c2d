"""`ropegeo curve` for whole curves: steps, every length, routes, files, what a terminal sees, and Ctrl-C."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ropegeo.cli.curve_files import csv_text, npz_bytes
from ropegeo.engine.margin import MarginCurve

Run = Callable[..., str]
Rows = Callable[[str], list[dict[str, Any]]]

SMALL = "--base 10000 --head-dim 16"
"""Eight planes: most tests need no more, and those of a preset are built anew by every command."""


pytestmark = pytest.mark.usefixtures("command_folder")


@pytest.fixture(name="rows")
def _rows(run: Run) -> Rows:
    def rows(line: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(run(f"{line} --json"))["rows"]
        return found

    return rows


def table(text: str) -> list[list[str]]:
    """The rows of the printed table, by words."""
    rows = [line.split() for line in text.split("second at t", 1)[1].splitlines()[1:]]
    return rows[: next(k for k, row in enumerate(rows) if row[:2] == ["margin", "of"])]


# ---- the steps of a curve ----


def margins(planes: range, offset: int, last: int) -> dict[int, float]:
    """margin(n) of some planes of `SMALL` with equal weights, by its definition, for every n up to the last one."""
    angles = [10000 ** (-plane / 8) for plane in planes]

    def logit(displacement: int) -> float:
        return math.fsum(math.cos(displacement * angle) for angle in angles) / len(angles)

    found, rival = {}, -math.inf
    for distance in range(last):
        if distance != offset:
            rival = max(rival, logit(distance - offset))
        if distance + 1 >= max(2, offset + 1):
            found[distance + 1] = 1 - rival
    return found


@pytest.mark.parametrize(("planes", "offset"), [("0-0", 0), ("1-1", 3), ("0-2", 0), ("0-2", 3), ("0-7", 50)])
def test_records_are_where_the_margin_falls(planes: str, offset: int, run: Run) -> None:
    first, last = map(int, planes.split("-"))
    truth = margins(range(first, last + 1), offset, 700)
    falls = [n for n in truth if n - 1 not in truth or truth[n] < truth[n - 1] - 1e-13]
    line = f"curve {SMALL} --planes {planes} --offset {offset} --length 700 --records"
    text = run(f"{line} --output c.json")
    rows = json.loads(Path("c.json").read_text())["rows"]
    assert [row["length"] for row in rows] == falls
    assert [row["margin"] for row in rows] == pytest.approx([truth[n] for n in falls], abs=1e-13)
    if len(falls) > 1:
        assert f"\n{len(falls)} steps up to length 700; between them the margin does not change\n" in text
    else:
        assert f"\none step up to length 700: after length {falls[0]} the margin does not fall\n" in text
    assert text.endswith("wrote c.json\n")


def test_equal_planes_have_one_record(run: Run) -> None:
    """64 planes do not come back as close as at distance 1 for long."""
    text = run("curve --planes all --length 1e5 --records")
    assert text.endswith("\none step up to length 100000: after length 2 the margin does not fall\n")


def test_the_last_record_may_be_the_length_itself(rows: Rows) -> None:
    """1/(2 pi) = [0; 6, 3, 1, 1, 7, ...] has convergents with the denominators 1, 6, 19, 25, 44, 333."""
    assert [row["length"] for row in rows("curve --angle 1 --length 45 --records")] == [2, 7, 20, 26, 45]
    assert [row["length"] for row in rows("curve --angle 1 --length 44 --records")] == [2, 7, 20, 26]


# ---- every so many lengths ----


@pytest.mark.parametrize(
    ("options", "lengths"),
    [
        ("--every 7 --length 23", [7, 14, 21, 23]),
        ("--every 7 --length 21", [7, 14, 21]),
        ("--every 1 --length 6", [2, 3, 4, 5, 6]),
        ("--every 100 --length 9", [9]),
        ("--every 2 --length 9 --offset 3", [4, 6, 8, 9]),
        ("--every 8 --length 30 --planes 0-6 --offset 8", [16, 24, 30]),
        ("--every 4 --length 30 --mode retrieval --plane 7 --offset 12", [16, 20, 24, 28, 30]),
        ("--every 2 --length 9 --integers 5 --offset 4", [6, 8, 9]),
        (
            "--every 4e29 --length 1e30",
            ["400000000000000000000000000000", "800000000000000000000000000000", "1" + "0" * 30],
        ),
    ],
)
def test_every(options: str, lengths: list[int | str], rows: Rows) -> None:
    found = rows(f"curve {SMALL} {options}")
    assert [row["length"] for row in found] == lengths
    head = " ".join(options.split()[4:])
    assert found == rows(f"curve {SMALL} {head} --lengths {','.join(map(str, lengths))}")


@pytest.mark.parametrize(
    ("head", "again", "which"),
    [
        ("--offset 3 --planes 0-5 --weights 6,5,4,3,2,1 --beta 9", "", "--length 300 --records"),
        ("--mode reflexive --plane 1", "", "--length 1e12 --records"),
        ("--integers 4 --offset 2", "--offset 2", "--length 99 --records"),
        ("--mode retrieval --plane 7", "", "--length 99 --every 10"),
    ],
)
def test_a_head_file_says_the_same(head: str, again: str, which: str, run: Run) -> None:
    run(f"construct {SMALL} {head} --output h.safetensors")
    assert run(f"curve --head h.safetensors {again} {which} --json") == run(f"curve {SMALL} {head} {which} --json")


# ---- routes ----

SEVERAL = "--planes 0,1 --offset 3 --length 3000"
SLOW = "--mode retrieval --plane 7 --length 64"


@pytest.mark.parametrize(
    ("head", "routes", "chosen"),
    [
        ("--plane 1 --length 3000", ["continued_fraction", "definition", "streamed"], "continued_fraction"),
        (f"{SEVERAL} --records", ["definition", "streamed", "pruned", "lattice"], "definition"),
        (SLOW, ["closed_form", "first_return", "streamed", "definition"], "closed_form"),
    ],
)
def test_the_route_asked_for_is_taken(head: str, routes: list[str], chosen: str, rows: Rows) -> None:
    head = f"{SMALL} {head}"
    automatic = rows(f"curve {head}")
    assert {row["method"] for row in automatic} == {chosen}
    assert rows(f"curve {head} --route auto") == automatic
    for route in routes:
        found = rows(f"curve {head} --route {route}")
        assert {row["method"] for row in found} == {route}
        assert [(row["length"], row["at"]) for row in found] == [(row["length"], row["at"]) for row in automatic]
        for row, other in zip(found, automatic, strict=True):
            assert abs(row["margin"] - other["margin"]) <= row["abs_error"] + other["abs_error"] + 1e-16


def bounded(run: Run, line: str) -> None:
    """Upper bounds are said to be such: in the table, below it, and in the JSON."""
    text = run(f"{line} --output b.json")
    (row,) = json.loads(Path("b.json").read_text())["rows"]
    assert (row["status"], row["method"]) == ("bound", "return_bound")
    assert row["margin"] - row["abs_error"] <= 0 < row["margin"]
    (shown,) = (line for line in text.splitlines() if line.rstrip().endswith(" upper bound"))
    assert shown.count("<= ") == 3
    bound = float(shown.split("<= ")[1].split()[0])
    assert bound == pytest.approx(row["margin"], rel=1e-5)
    assert "\nupper bound: certified, by a displacement that nearly returns; the margin lies between 0 and it\n" in text


def test_bounds_are_labelled(run: Run, rows: Rows) -> None:
    """One plane has the truth beside it."""
    for length in ("1e30", "1e100"):
        bounded(run, f"curve {SMALL} --plane 1 --length {length} --route return_bound --force")
        (bound,) = json.loads(Path("b.json").read_text())["rows"]
        (truth,) = rows(f"curve {SMALL} --plane 1 --length {length}")
        assert truth["status"] == "wins"
        for name in ("margin", "best", "worst"):
            assert 0 < truth[name] <= (bound[name] + bound["best_abs_error" if name == "best" else "abs_error"])
    assert "upper bound" not in run("curve --angle 1 --length 1e30")


@pytest.mark.slow
def test_bounds_come_last(run: Run) -> None:
    bounded(run, "curve --planes all --rope llama-3-8b --length 1e40")


# ---- files ----

HEADS = [
    "--angle 1 --lengths 1001,1e30,1e30+1",
    "--angle '1/5 turn' --lengths 5,6,1e30",
    f"{SMALL} --planes 0-5 --weights 6,5,4,3,2,1 --beta 9 --offset 3 --length 3000 --records",
    pytest.param(f"{SMALL} --plane 1 --length 1e100 --route return_bound", marks=pytest.mark.slow),
    f"{SMALL} --mode retrieval --plane 7 --every 20 --length 99",
]


@pytest.mark.parametrize("head", ["--offset 0 --lengths 1001,1e160", "--offset 1e160 --lengths 1e161,1e162"])
def test_bounds_are_drawn_as_far_as_they_are_doubles(head: str, run: Run) -> None:
    run(f"curve --mode index --angle 1 {head} --plot x.svg")
    assert Path("x.svg").stat().st_size > 1000


@pytest.mark.parametrize("head", HEADS)
def test_files_say_what_the_json_says(head: str, run: Run) -> None:
    data = json.loads(run(f"curve {head} --json"))
    rows = data["rows"]
    for suffix in ("json", "csv", "npz"):
        shown = run(f"curve {head} --output c.{suffix}")
        assert f"wrote c.{suffix}" in shown
        assert len(table(shown)) == len(rows)
    assert json.loads(Path("c.json").read_text()) == data

    text = Path("c.csv").read_text()
    assert text.splitlines()[0] == "length,margin,best,worst,at,abs_error,status,method"
    for line, row in zip(csv.DictReader(text.splitlines()), rows, strict=True):
        assert [line["length"], line["at"]] == [str(row["length"]), str(row["at"])]
        assert float(line["abs_error"]) == row["abs_error"]
        for name in ("margin", "best", "worst"):
            digits = row[f"{name}_digits"]
            assert line[name] == ("" if row[name] is None else repr(row[name]) if digits is None else digits)

    with np.load("c.npz", allow_pickle=False) as archive:
        columns = {name: archive[name] for name in archive.files}
    metadata = json.loads(str(columns.pop("metadata")))
    assert metadata == {name: value for name, value in data.items() if name != "rows"}
    assert {array.shape for array in columns.values()} == {(len(rows),)}
    for name in ("length", "at"):
        small = all(int(row[name]) < 2**63 for row in rows)
        assert columns[name].dtype.kind == ("i" if small else "U")
        assert [int(value) for value in columns[name]] == [int(row[name]) for row in rows]
    for name in ("margin", "abs_error", "best", "best_abs_error", "worst", "worst_abs_error"):
        right = [math.nan if row[name] is None else row[name] for row in rows]
        assert np.array_equal(columns[name], right, equal_nan=True), name
    for name in ("status", "method"):
        assert columns[name].tolist() == [row[name] for row in rows]
    assert sorted(os.listdir()) == ["c.csv", "c.json", "c.npz"]


def test_a_best_that_is_not_known_is_nan() -> None:
    """Only a head of more letters than a vocabulary holds has no `best`: null in JSON, an empty cell, NaN."""
    half = {"margin": 0.5, "margin_digits": "0.5", "abs_error": 0.0, "worst": 0.25, "worst_abs_error": 0.125}
    rest = {"worst_digits": None, "best": None, "best_digits": None, "best_abs_error": None}
    row = {"length": 9, "at": 1, "method": "closed_form", **half, **rest}
    head = {"schema": "ropegeo.margin_curve/1", "margin_of": "x", "inputs": "y", "beta": 1.0}
    curve = MarginCurve.from_dict({**head, "rows": [row]})
    assert csv_text(curve, 17).splitlines()[1] == "9,0.5,,0.25,1,0.0,wins,closed_form"
    with np.load(io.BytesIO(npz_bytes(curve, head)), allow_pickle=False) as archive:
        assert np.isnan([archive["best"], archive["best_abs_error"]]).all()
        assert [archive[name].tolist() for name in ("margin", "worst", "worst_abs_error")] == [[0.5], [0.25], [0.125]]


# ---- tables for people ----


@pytest.mark.parametrize("count", [60, 61, 62, 200])
def test_many_rows_are_shortened_on_the_terminal_only(count: int, run: Run) -> None:
    """The last row always stands there, and what is left out is counted: at least one row."""
    text = run(f"curve --angle 1 --every 1 --length {count + 1} --output c.csv")
    assert len(Path("c.csv").read_text().splitlines()) == count + 1
    everything = [str(n) for n in range(2, count + 2)]
    assert [row.split(",")[0] for row in Path("c.csv").read_text().splitlines()[1:]] == everything
    lengths = [row[0] for row in table(text)]
    if "..." in lengths:
        place = lengths.index("...")
        hidden = count - (len(lengths) - 1)
        assert hidden >= 1
        assert table(text)[place] == ["...", str(hidden), "more"]
        assert lengths == [*everything[:place], "...", *everything[place + hidden :]]
    else:
        assert lengths == everything
    assert len(lengths) == count if count == 60 else len(lengths) <= 62


# ---- terminals ----

# As `ropegeo`, with Ctrl-C as a shell leaves it, and with every compilation mentioned.
SCRIPT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from ropegeo.cli import output, script
output.NOTICED_SECONDS = 1e-9
script()
"""


class Ended(NamedTuple):
    """How a command ended, and what it wrote to the terminal that was its standard error."""

    status: int
    out: str
    err: str


def on_terminal(line: str, *, cache: Path, interrupt: bool = False) -> Ended:
    """Run with standard error on a terminal; with `interrupt`, Ctrl-C once the bar shows that distances are counted."""
    pty = pytest.importorskip("pty")
    parent, child = pty.openpty()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *shlex.split(line)],
        stdout=subprocess.PIPE,
        stderr=child,
        env=environment,
        start_new_session=True,
        text=True,
    )
    os.close(child)
    limit = threading.Timer(120, process.kill)
    limit.start()
    written = b""
    try:
        while True:
            try:
                part = os.read(parent, 4096)
            except OSError:  # how Linux says that the other end has gone
                break
            if not part:
                break
            written += part
            if interrupt and b"%" in written:
                interrupt = False
                process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
    finally:
        limit.cancel()
        process.kill()
        os.close(parent)
    return Ended(process.returncode, out, written.decode())


@pytest.fixture(name="cache", scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache of kernels, empty at first, for the commands that run in an interpreter of their own."""
    return tmp_path_factory.mktemp("cache")


STREAMED = "curve --planes all --length 1e6 --route streamed"
LONG = "curve --planes all --length 1e12 --route streamed"  # minutes


@pytest.mark.slow
def test_a_terminal_sees_progress(cache: Path, tmp_path: Path) -> None:
    """A bar while it computes, what compiling took the first time only, and results on standard output alone."""
    line = f"{STREAMED} --output c.csv"
    first = on_terminal(line, cache=cache)
    again = on_terminal(f"{line} --force", cache=cache)
    for ended in (first, again):
        assert ended.status == 0, ended.err
        assert "computing margins" in ended.err
        assert "%" in ended.err
        assert "wrote c.csv" in ended.out
        assert "\x1b" not in ended.out
    assert "compiled the kernels in" in first.err
    assert "compiled" not in again.err
    assert os.listdir(tmp_path) == ["c.csv"]


@pytest.mark.slow
def test_a_pipe_sees_none(cache: Path) -> None:
    command = [sys.executable, "-m", "ropegeo", *shlex.split(STREAMED)]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "streamed" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.slow
def test_ctrl_c_stops_and_leaves_nothing(cache: Path, tmp_path: Path) -> None:
    ended = on_terminal(f"{LONG} --output x.csv --plot x.svg", cache=cache, interrupt=True)
    assert ended.status == 130, ended.err
    assert "ropegeo: stopped; nothing was written" in ended.err
    assert "Traceback" not in ended.err
    assert ended.out == ""
    assert os.listdir(tmp_path) == []

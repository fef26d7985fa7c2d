"""Curves from files: what is read of them, and one clear line with the row for what is wrong with them."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ropegeo.asymptotics.curve_input import MAX_ROWS, read_curve
from ropegeo.asymptotics.data import DecayData, curve_data
from ropegeo.cli.curve_files import csv_text, npz_bytes
from ropegeo.construct.retrieval import retrieval_head
from ropegeo.engine.margin import MarginCurve
from ropegeo.engine.routes import margin_curve, record_curve
from ropegeo.errors import FileFormatError, InvalidInputError, RopegeoError
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum

PLANE = "10000^(-2/128)"


def one_plane(angle: str, offset: int = 0) -> LogitProfile:
    return LogitProfile(spectrum=RopeSpectrum.from_angle(angle), coefficients=np.ones(1, complex), origin=offset)


def read(folder: Path, suffix: str, content: str | bytes, **options: Any) -> DecayData:
    path = folder / f"c{suffix}"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_curve(path, **options)


def npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def written(curve: MarginCurve, suffix: str) -> bytes:
    """As `ropegeo curve --output` writes it."""
    if suffix == ".npz":
        return npz_bytes(curve, {"package_version": "0"})
    text = csv_text(curve, 17) if suffix == ".csv" else json.dumps({**curve.to_dict(), "package_version": "0"})
    return text.encode()


# ---- what is wrong ----

FOUR = "length,margin\n10,4\n20,3\n30,2\n"
CSV: dict[str, tuple[str | bytes, str]] = {
    "nan": (FOUR + "40,NaN\n", "row 4: margin is NaN; leave out rows without a value"),
    "infinite": (FOUR + "40,-inf\n", "row 4: margin is -inf"),
    "empty cell": (FOUR + "40,\n", "row 4: margin is missing"),
    "text": (FOUR + "40,high\n", "row 4: margin 'high' is not a number"),
    "hexadecimal": (FOUR + "40,0x10\n", "row 4: margin '0x10' is not a number"),
    "underscore": (FOUR + "4_0,1\n", "row 4: length '4_0' must be a whole number from 1 to 10^1000"),
    "arabic digits": (FOUR + "٤٠,1\n", "row 4: length '٤٠' must be a whole number"),
    "duplicate": (FOUR + "30,1\n", "row 4: length 30 is there twice; sort by length, one row each"),
    "unsorted": (FOUR + "25,1\n", "row 4: length 25 comes after 30; sort by length"),
    "length 0": ("length,margin\n0,1\n1,1\n2,1\n3,1\n", "row 1: length '0' must be a whole number from 1"),
    "negative length": ("length,margin\n-3,1\n1,1\n2,1\n3,1\n", "row 1: length '-3' must be a whole number"),
    "length 1.5": (FOUR + "40.5,1\n", "row 4: length '40.5' must be a whole number"),
    "length too large": (FOUR + "1e1001,1\n", "row 4: length '1e1001' must be a whole number from 1 to 10^1000"),
    "length far too large": (FOUR + "1e9999999,1\n", "row 4: length '1e9999999' must be"),
    "length too long": (FOUR + "9" * 5000 + ",1\n", "row 4: length '9999999999"),
    "margin too large": (FOUR + "40,1e400\n", "row 4: margin '1e400' is out of range"),
    "margin too small": (FOUR + "40,1e-99999\n", "row 4: margin '1e-99999' is out of range"),
    "sd 0": ("length,margin,sd\n1,1,1\n2,1,1\n3,1,0\n4,1,1\n", "row 3 (length 3): sd 0 must be above 0"),
    "sd missing": ("length,margin,sd\n1,1,1\n2,1,\n3,1,1\n4,1,1\n", "row 2: sd is missing"),
    "three rows": (FOUR, "3 rows; a fit needs at least 4"),
    "only a heading": ("length,margin\n", "0 rows; a fit needs at least 4"),
    "no margin": ("length,score\n1,1\n", "needs the columns length and margin; it has length, score"),
    "no length": ("n,margin\n1,1\n", "needs the columns length and margin; it has margin, n"),
    "semicolons": ("length;margin\n1;1\n", "needs the columns length and margin; it has length;margin"),
    "duplicate headings": ("length,margin,Margin\n1,1,1\n", "two columns have the same heading"),
    "ragged, long": (FOUR + "40,1,7\n", "row 4: 3 cells where the heading has 2"),
    "ragged, short": (FOUR + "40\n", "row 4: 1 cells where the heading has 2"),
    "not UTF-8": (FOUR.encode() + b"40,\xff\n", "not UTF-8 text"),
    "null bytes": (FOUR + "40,\0\n", "not a text file: it holds null bytes"),
    "UTF-16": ("length,margin\n".encode("utf-16"), "not UTF-8 text"),
    "open quote": (FOUR + '40,"1\n', "not CSV"),
    "empty": ("", "it is empty; it needs a heading line with the columns length and margin"),
    "blank": ("\n\n", "it is empty"),
    "a steering title": ("length,\x1b[2J\n1,1\n", "needs the columns length and margin"),
}
JSON: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "not JSON"),
    "nested": ("[" * 200_000, "not JSON"),
    "a huge integer": ('[{"length": ' + "9" * 5000 + "}]", "not JSON"),
    "a number": ("3", "needs the JSON of 'ropegeo curve', or a list of objects with length and margin"),
    "columns": ('{"length": [1], "margin": [1]}', "needs the JSON of 'ropegeo curve'"),
    "no objects": ("[1, 2, 3, 4]", "needs the JSON of 'ropegeo curve'"),
    "no rows": ("[]", "needs the columns length and margin; it has nothing"),
    "another schema": ('{"schema": "ropegeo.head/1"}', "expected schema 'ropegeo.margin_curve/1'"),
    "a broken curve": ('{"schema": "ropegeo.margin_curve/1", "rows": [{}]}', "a row is missing a field"),
    "bool length": ('[{"length": true, "margin": 1}]', "row 1: length 'True' must be a whole number"),
    "null margin": ('[{"length": 1, "margin": null}]', "row 1: margin is missing"),
    "nan": ('[{"length": 1, "margin": NaN}]', "row 1: margin is nan"),
    "a list": ('[{"length": 1, "margin": [1]}]', "row 1: margin '[1]' is not a number"),
    "other fields": ('[{"length": 1, "margin": 1}, {"length": 2}]', "row 2: its fields differ from those of the first"),
    "not UTF-8": (b'[{"length": "\xff"}]', "not JSON"),
}  # fmt: skip


def archive(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return stream.getvalue()


def header(shape: str, descr: str = "'<f8'") -> bytes:
    """An npy file that is nothing but its header."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


FOUR_ROWS = np.array([10, 20, 30, 40])
NPZ: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "not an npz archive of plain arrays"),
    "text": (FOUR.encode, "not an npz archive of plain arrays"),
    "an array": (lambda: header("(0,)"), "not an npz archive of plain arrays"),
    "no members": (archive, "its arrays must be rows of the same length"),
    "another zip": (lambda: archive(**{"a.txt": b"length,margin"}), "not an npz archive: it holds other files"),
    "pickled": (
        lambda: npz(length=FOUR_ROWS, margin=np.array([1, None, 2, 3], dtype=object)),
        "not an npz archive of plain arrays",
    ),
    "a lying header": (lambda: archive(**{"length.npy": header("(10**12,)")}), "not an npz archive of plain arrays"),
    "rows of nothing": (
        lambda: archive(**{f"{name}.npy": header("(1000000000000,)", "'<U0'") for name in ("length", "margin")}),
        f"at most {MAX_ROWS} are read",
    ),
    "unequal": (lambda: npz(length=FOUR_ROWS, margin=np.ones(3)), "its arrays must be rows of the same length"),
    "no margin": (lambda: npz(length=FOUR_ROWS), "needs the columns length and margin; it has length"),
    "nan": (lambda: npz(length=FOUR_ROWS, margin=[1, 2, np.nan, 3]), "row 3: margin is nan"),
    "half a length": (lambda: npz(length=FOUR_ROWS + 0.5, margin=np.ones(4)), "row 1: length '10.5' must be"),
    "bool": (lambda: npz(length=FOUR_ROWS > 0, margin=np.ones(4)), "row 1: length 'True' must be"),
    "complex": (lambda: npz(length=FOUR_ROWS, margin=np.ones(4) * 1j), "row 1: margin '1j' is not a number"),
}


def refused(folder: Path, suffix: str, content: str | bytes, words: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        read(folder, suffix, content)
    message = str(caught.value)
    assert message.startswith(f"curve file {str(folder / ('c' + suffix))!r}: ")
    assert words in message
    assert "\n" not in message
    assert len(message) < 500


@pytest.mark.parametrize("name", CSV)
def test_a_malformed_csv_is_refused(name: str, tmp_path: Path) -> None:
    refused(tmp_path, ".csv", *CSV[name])


@pytest.mark.parametrize("name", JSON)
def test_malformed_json_is_refused(name: str, tmp_path: Path) -> None:
    refused(tmp_path, ".json", *JSON[name])


@pytest.mark.parametrize("name", NPZ)
def test_a_malformed_npz_is_refused(name: str, tmp_path: Path) -> None:
    make, words = NPZ[name]
    refused(tmp_path, ".npz", make(), words)


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is unpacked; and a file that is too large before it is read."""
    bomb = archive(**{"length.npy": b"\0" * (3 << 20)})
    monkeypatch.setattr("ropegeo.asymptotics.curve_input.MAX_BYTES", 2 << 20)
    assert len(bomb) < 10_000
    refused(tmp_path, ".npz", bomb, "its arrays are above 2 MiB")
    (tmp_path / "c.csv").write_bytes(b"\n" * (3 << 20))
    with pytest.raises(InvalidInputError, match="above 2 MiB; write fewer rows"):
        read_curve(tmp_path / "c.csv")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for path, words in (
        (tmp_path / "none.csv", "there is no such file"),
        (tmp_path / "folder.csv", "a folder, or no plain file"),
        (tmp_path / "c.txt", "the name must end in .csv, .json, .npz"),
        (tmp_path / "c", "the name must end in"),
        ("\0.csv", ""),
    ):
        with pytest.raises(InvalidInputError, match="curve file") as caught:
            read_curve(path)
        assert words in str(caught.value)
    with pytest.raises(InvalidInputError, match="column 'top' is unknown; use one of margin, best, worst"):
        read_curve(tmp_path / "c.csv", column="top")


@pytest.mark.slow
def test_bytes_cut_or_changed_anywhere_are_read_or_refused(tmp_path: Path) -> None:
    """No other error than ours, whatever single byte of a file is changed, and wherever it is cut."""
    curve = record_curve(one_plane(PLANE), 2000)
    for suffix in (".csv", ".json", ".npz"):
        content = written(curve, suffix)
        rng = np.random.default_rng(0)
        for _ in range(300):
            place = int(rng.integers(len(content)))
            changed = content[:place] + bytes([int(rng.integers(256))]) + content[place + 1 :]
            for broken in (changed, content[:place]):
                try:
                    read(tmp_path, suffix, broken)
                except RopegeoError as error:
                    assert "\n" not in str(error)  # noqa: PT017 - not every change is refused


# ---- what is read ----


def test_a_plain_csv(tmp_path: Path) -> None:
    """Any order of columns, spaces, comments, a byte-order mark, exact lengths of any size."""
    heading = "\ufeff# seen in run 7\n SD ,note, Length,MARGIN\n"
    data = read(tmp_path, ".csv", heading + "1e-3,a,10,.5\n2e-3,b,1e3,-2.5e-1\n\n.1,c,1e30,+3\n1,d,1e1000,0\n")
    assert data.lengths == (10, 1000, 10**30, 10**1000)
    assert data.margin.tolist() == [0.5, -0.25, 3.0, 0.0]
    assert data.sd is not None
    assert data.sd.tolist() == [0.001, 0.002, 0.1, 1.0]
    assert (data.proved, data.unit, data.begins, data.left_out) == (None, "", False, ())
    assert data.first_nonpositive == 1000
    assert data.source == "margin of c.csv"


def test_json_rows_and_integers_as_text(tmp_path: Path) -> None:
    rows = [{"length": str(10**k), "margin": 2.0**-k} for k in range(1, 6)]
    for content in (rows, {"rows": rows}):
        data = read(tmp_path, ".json", json.dumps(content))
        assert data.lengths == tuple(10**k for k in range(1, 6))
        assert data.margin.tolist() == [2.0**-k for k in range(1, 6)]
        assert not data.is_exact


def test_a_plain_npz(tmp_path: Path) -> None:
    data = read(
        tmp_path, ".npz", npz(length=FOUR_ROWS.astype(float), margin=np.array([4, 3, 2, 1], np.float32), sd=np.ones(4))
    )
    assert data.lengths == (10, 20, 30, 40)
    assert data.margin.tolist() == [4, 3, 2, 1]
    assert data.sd is not None


def test_margins_below_the_range_of_doubles_keep_their_logarithm(tmp_path: Path) -> None:
    data = read(tmp_path, ".csv", "length,margin\n1,1\n2,1e-300\n3,1e-400\n4,2.5e-4000\n")
    assert data.margin.tolist() == [1.0, 1e-300, 0.0, 0.0]
    expected = [0.0, -300 * math.log(10), -400 * math.log(10), math.log(2.5) - 4000 * math.log(10)]
    np.testing.assert_allclose(data.log_margin, expected, rtol=1e-15)
    assert data.first_nonpositive is None
    curve = margin_curve(one_plane("1"), [10, 10**100, 10**200, 10**300])
    known = curve_data(curve)
    for suffix in (".csv", ".json"):
        data = read(tmp_path, suffix, written(curve, suffix))
        np.testing.assert_allclose(data.log_margin, known.log_margin, rtol=1e-15)
        assert (data.relative_error < 1e-14).all()
    with pytest.raises(FileFormatError, match="row 3: the margin is below the range of doubles, which npz holds"):
        read(tmp_path, ".npz", written(curve, ".npz"))


CURVES: dict[str, Callable[[], MarginCurve]] = {
    "records": lambda: record_curve(one_plane(PLANE), 10**6),
    "records, offset 3": lambda: record_curve(one_plane(PLANE, 3), 10**4),
    "every length": lambda: margin_curve(one_plane(PLANE, 3), range(4, 200)),
    "huge": lambda: margin_curve(one_plane("1"), [10, 10**20, 10**40, 10**60]),
    "ties": lambda: margin_curve(one_plane("1/5 turn"), [2, 3, 4, 5, 6, 7]),
    "two planes": lambda: record_curve(
        LogitProfile(spectrum=RopeSpectrum.from_base(10000, head_dim=4), coefficients=np.full(2, 0.5 + 0j), origin=2),
        3000,
    ),
    "letters": lambda: margin_curve(
        retrieval_head(RopeSpectrum.from_angle("0.0027"), letters=tuple("abcdefgh")).profile, range(17, 200, 7)
    ),
}


@pytest.mark.parametrize("suffix", [".csv", ".json", ".npz"])
@pytest.mark.parametrize("name", CURVES)
def test_what_curve_writes_is_read_back(name: str, suffix: str, tmp_path: Path) -> None:
    """From each kind of file as from the curve itself."""
    curve = CURVES[name]()
    for column in ("margin", "worst", "best"):
        try:
            known = curve_data(curve, column=column)
        except InvalidInputError as error:
            with pytest.raises(FileFormatError) as caught:
                read(tmp_path, suffix, written(curve, suffix), column=column)
            assert str(error) in str(caught.value)  # noqa: PT017 - some curves have every column
            continue
        data = read(tmp_path, suffix, written(curve, suffix), column=column)
        assert data.lengths == known.lengths
        np.testing.assert_allclose(data.log_margin, known.log_margin, rtol=4e-15, atol=4e-15)
        np.testing.assert_allclose(data.margin, known.margin, rtol=1e-15)
        for field in ("begins", "unit", "left_out", "one_plane", "is_exact", "first_nonpositive"):
            assert getattr(data, field) == getattr(known, field), field
        if column == "margin" and (suffix != ".csv" or known.begins):
            assert data.offset == known.offset
        assert (data.reach_known, data.best_over) == (
            (False, None) if suffix == ".csv" and column == "best" else (known.reach_known, known.best_over)
        )
        resolved = np.isfinite(known.relative_error)
        assert (data.relative_error[resolved] < 1e-12).all()


def test_records_of_another_column_are_refused() -> None:
    """The rows are where the margin falls: `worst` falls there too if the offset is 0, `best` does not."""
    curve = record_curve(one_plane(PLANE), 1000)
    assert curve_data(curve, column="worst").begins
    for column, made in (("best", curve), ("worst", record_curve(one_plane(PLANE, 3), 1000))):
        with pytest.raises(InvalidInputError, match=f"the rows are the steps of margin, not of {column}; compute"):
            curve_data(made, column=column)


@pytest.mark.parametrize("suffix", [".csv", ".json", ".npz"])
def test_bounds_and_undecided_rows_are_counted(suffix: str, tmp_path: Path) -> None:
    """Not taken for margins."""
    exact = margin_curve(one_plane("1"), [10, 20, 40, 80]).to_dict()
    half = {"margin": 1e-50, "margin_digits": None, "abs_error": 1e-50, "worst": 1e-50, "worst_digits": None}
    bound = {**exact["rows"][3], **half, "worst_abs_error": 1e-50, "length": str(10**30), "method": "return_bound"}
    undecided: dict[str, Any] = {
        "margin": 1e-18,
        "margin_digits": None,
        "abs_error": 1e-17,
        "worst": 1e-18,
        "worst_digits": None,
    }
    undecided |= {"worst_abs_error": 1e-17, "best": 0.5, "best_digits": "0.5", "best_abs_error": 0.0}
    last = {**undecided, "length": 320, "at": 3, "status": "undecided", "method": "streamed"}
    curve = MarginCurve.from_dict({**exact, "rows": [*exact["rows"], last, bound]})
    assert [point.status for point in curve.points] == ["wins"] * 4 + ["undecided", "bound"]
    for column in ("margin", "worst"):
        data = read(tmp_path, suffix, written(curve, suffix), column=column)
        assert data.lengths == (10, 20, 40, 80)
        assert data.left_out == (("bound", 1), ("undecided", 1))


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_a_worst_within_its_error_of_0_is_undecided(suffix: str, tmp_path: Path) -> None:
    """The status in the file is that of the margin."""
    exact = margin_curve(one_plane("1", 3), [10, 20, 40, 80]).to_dict()
    row = {**exact["rows"][2], "worst": 1e-18, "worst_digits": None, "worst_abs_error": 1e-17, "method": "streamed"}
    row |= {"abs_error": 1e-17}
    curve = MarginCurve.from_dict({**exact, "rows": [*exact["rows"][:2], row, exact["rows"][3]]})
    data = read(tmp_path, suffix, written(curve, suffix), column="worst")
    assert (data.lengths, data.left_out) == ((10, 20, 80), (("undecided", 1),))


def test_the_reach_is_that_of_the_margins() -> None:
    """T of section 5 for each column: the margin of that reach is the one in the column."""
    curve = margin_curve(one_plane("1", 5), [6, 7, 12, 50, 333])
    for column in ("margin", "best", "worst"):
        data = curve_data(curve, column=column)
        steps = margin_curve(one_plane("1"), [reach + 1 for reach in sorted(set(data.reaches))])
        by_reach = dict(zip(sorted(set(data.reaches)), steps.margin.tolist(), strict=True))
        assert [by_reach[reach] for reach in data.reaches] == data.margin.tolist()

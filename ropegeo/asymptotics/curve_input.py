"""Curves from files: what `ropegeo curve` writes as JSON, CSV and npz, and any CSV with columns length and margin."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ropegeo.asymptotics.data import (
    COLUMNS,
    FEWEST_POINTS,
    ONE_PLANE,
    DecayData,
    begins_steps,
    check_steps,
    counted,
    curve_data,
    decay_data,
    reach_of,
)
from ropegeo.engine.margin import MAX_LENGTH, MarginCurve
from ropegeo.engine.route_names import BOUND
from ropegeo.errors import FileFormatError, InvalidInputError
from ropegeo.exact import short

SUFFIXES = (".csv", ".json", ".npz")
MAX_BYTES = 1 << 28
MAX_ROWS = 2_000_000
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,7})?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
SMALLEST_ERROR = Decimal("1e-300")
MAX_TEXT = 4300
"""Digits that a number in a file may have."""


def read_curve(path: str | Path, *, column: str = "margin") -> DecayData:
    """Read a margin curve.

    Args:
        path: JSON of `ropegeo curve`; CSV with the columns `length`, `margin` (or `best`, `worst`) and perhaps `sd`;
            npz with such arrays. Where `abs_error` stands beside `status` and `method`, as in files of `ropegeo curve`,
            the margins are computed ones, exact to that error; rows of status `bound` or `undecided` are only counted.
        column: which margin: `margin`, `best` or `worst`.

    Returns:
        The data. That the rows are all the steps of a staircase (`curve --records`) is said by JSON and npz; a CSV is
        taken for such if each of its rows has its runner-up at the farthest displacement, but is not certain to be.

    Raises:
        FileFormatError: not such a file, with the row and what is wrong with it: a malformed number, NaN, unsorted or
            repeated lengths, fewer than 4 rows.
        InvalidInputError: an unknown column or suffix, or a file that cannot be read.
    """
    if column not in COLUMNS:
        raise InvalidInputError(f"curve file: column {column!r} is unknown; use one of {', '.join(COLUMNS)}")
    place = Path(path)
    shown = repr(str(path)[:200])
    suffix = place.suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidInputError(f"curve file {shown}: the name must end in {', '.join(SUFFIXES)}")
    content = _content(place, shown)
    try:
        if suffix == ".json":
            data = _of_json(content, column)
        elif suffix == ".csv":
            data = _of_csv(content, column)
        else:
            data = _of_npz(content, column)
    except (FileFormatError, InvalidInputError) as error:
        raise FileFormatError(f"curve file {shown}: {error}") from error
    rows = len(data.lengths) + sum(count for _, count in data.left_out)
    if rows < FEWEST_POINTS and not data.begins:
        raise FileFormatError(f"curve file {shown}: {rows} rows; a fit needs at least {FEWEST_POINTS}")
    return replace(
        data, source=f"{data.source} of {place.name}" if data.source == column else f"{data.source}, {place.name}"
    )


def _content(path: Path, shown: str) -> bytes:
    try:
        if not path.is_file():
            what = "a folder, or no plain file" if path.exists() else "there is no such file"
            raise InvalidInputError(f"curve file {shown}: {what}")
        if path.stat().st_size > MAX_BYTES:
            raise InvalidInputError(f"curve file {shown}: above {MAX_BYTES >> 20} MiB; write fewer rows")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(
            f"curve file {shown}: cannot be read ({getattr(error, 'strerror', None) or error})"
        ) from error


def _of_json(content: bytes, column: str) -> DecayData:
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"not JSON ({str(error)[:100]})") from error
    if isinstance(parsed, dict) and "schema" in parsed:
        return curve_data(MarginCurve.from_dict(parsed), column=column)
    rows = parsed.get("rows") if isinstance(parsed, dict) else parsed
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise FileFormatError("needs the JSON of 'ropegeo curve', or a list of objects with length and margin")
    names = set(rows[0]) if rows else set()
    for number, row in enumerate(rows, start=1):
        if set(row) != names:
            raise FileFormatError(f"row {number}: its fields differ from those of the first row")
    return _of_columns({name: [_as_text(row[name]) for row in rows] for name in names}, column)


def _as_text(value: Any) -> str:
    """A JSON number as it stands, as far as Python keeps it."""
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def _of_csv(content: bytes, column: str) -> DecayData:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"not UTF-8 text ({error.reason} at byte {error.start})") from error
    if "\0" in text:
        raise FileFormatError("not a text file: it holds null bytes")
    try:
        rows = [
            row for row in csv.reader(io.StringIO(text), strict=True) if row and not row[0].lstrip().startswith("#")
        ]
    except csv.Error as error:
        raise FileFormatError(f"not CSV ({error})") from error
    if not rows:
        raise FileFormatError("it is empty; it needs a heading line with the columns length and margin")
    names = [name.strip().lower() for name in rows[0]]
    if len(set(names)) != len(names):
        raise FileFormatError("two columns have the same heading")
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != len(names):
            raise FileFormatError(f"row {number}: {len(row)} cells where the heading has {len(names)}")
    return _of_columns(
        {name: [row[place].strip() for row in rows[1:]] for place, name in enumerate(names)}, column, has_digits=True
    )


def _of_npz(content: bytes, column: str) -> DecayData:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MAX_BYTES:
                raise FileFormatError(f"its arrays are above {MAX_BYTES >> 20} MiB")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            columns = {name: arrays[name] for name in arrays.files}
        if not all(isinstance(values, np.ndarray) for values in columns.values()):
            raise FileFormatError("not an npz archive: it holds other files than arrays")
    except FileFormatError:
        raise
    except Exception as error:  # a foreign archive can fail in as many ways as there are
        raise FileFormatError(f"not an npz archive of plain arrays ({str(error)[:100]})") from error
    metadata = columns.pop("metadata", None)
    flat = {name: values for name, values in columns.items() if values.ndim == 1}
    sizes = {values.size for values in flat.values()}
    if len(sizes) != 1:
        raise FileFormatError("its arrays must be rows of the same length")
    _check_count(*sizes)
    texts = {
        name: [repr(float(v)) if values.dtype.kind == "f" else str(v) for v in values] for name, values in flat.items()
    }
    data = _of_columns(texts, column)
    try:
        about = json.loads(str(metadata)) if metadata is not None else {}
    except (ValueError, RecursionError):
        about = {}
    if not isinstance(about, dict):
        return data
    words = str(about.get("margin_of")), str(about.get("inputs"))
    is_whole = about.get("complete_to") is not None
    if is_whole:
        check_steps(column, reach_of("margin", *words).get("offset", data.offset))
    begins = is_whole if "margin_of" in about else data.begins
    return replace(data, begins=begins, whole=is_whole, **{"reach_known": True, **reach_of(column, *words)})


def _check_count(rows: int) -> None:
    if rows > MAX_ROWS:
        raise FileFormatError(f"{rows} rows; at most {MAX_ROWS} are read")


def _of_columns(columns: Mapping[str, Sequence[str]], column: str, *, has_digits: bool = False) -> DecayData:
    for name in ("length", column):
        if name not in columns:
            there = ", ".join(sorted(columns))[:200] or "nothing"
            raise FileFormatError(f"needs the columns length and {column}; it has {there}")
    count = len(columns["length"])
    _check_count(count)
    is_ours = {"abs_error", "status", "method"} <= set(columns)
    statuses = columns.get("status", [""] * count)
    kinds = [status if status in ("bound", "undecided") else "" for status in statuses]
    rows = [place for place in range(count) if not kinds[place]]
    lengths = [_length(columns["length"][place], place + 1) for place in rows]
    margins = [_number(columns[column][place], column, place + 1) for place in rows]
    sd = None if "sd" not in columns else [float(_number(columns["sd"][place], "sd", place + 1)) for place in rows]
    _check_rows(rows, lengths, sd)
    if not is_ours:
        return replace(decay_data(lengths, margins, sd=sd, source=column), left_out=counted(kinds))
    errors = _errors(columns, column, rows, margins, has_digits=has_digits)
    decided = np.ones(len(rows), dtype=bool)
    for place, (row, value, error) in enumerate(zip(rows, margins, errors, strict=True)):
        decided[place] = error == 0 or abs(value) > error
        if not decided[place] and error < SMALLEST_ERROR:
            raise FileFormatError(
                f"row {row + 1}: the {column} is below the range of doubles, which npz holds; use the CSV or JSON of "
                "'ropegeo curve'"
            )
        kinds[row] = "" if decided[place] else "undecided"
    data = decay_data(lengths, margins, sd=sd, abs_error=errors, source=column, unit="beta")
    data = replace(
        data.at(decided),
        left_out=counted(kinds),
        one_plane=bool(rows) and set(columns["method"]) <= {ONE_PLANE, BOUND},
        reach_known=column != "best",  # over which offsets is not said
    )
    of_margin = margins if column == "margin" else [_number(columns["margin"][row], "margin", row + 1) for row in rows]
    offset = _begins(columns, rows, lengths, of_margin)
    return data if offset is None else replace(data, begins=True, offset=check_steps(column, offset))


def _check_rows(rows: Sequence[int], lengths: Sequence[int], sd: Sequence[float] | None) -> None:
    """What `decay_data` would find too, but with the row of the file."""
    for place, (row, n) in enumerate(zip(rows, lengths, strict=True)):
        if place and n <= lengths[place - 1]:
            what = "is there twice" if n == lengths[place - 1] else f"comes after {short(lengths[place - 1])}"
            raise FileFormatError(f"row {row + 1}: length {short(n)} {what}; sort by length, one row each")
        if sd is not None and not sd[place] > 0:
            raise FileFormatError(f"row {row + 1} (length {short(n)}): sd {sd[place]:g} must be above 0")


def _errors(
    columns: Mapping[str, Sequence[str]],
    column: str,
    rows: Sequence[int],
    margins: Sequence[Decimal],
    *,
    has_digits: bool,
) -> list[Decimal]:
    """Proved errors: those of the file; in a CSV half a unit of the last digit where doubles cannot say it.

    `ropegeo curve` writes only digits that are proved, or where not one is, a double within its error of 0. A CSV has
    no error of `best` and `worst`; that of the margin is of the same order, which is enough to tell such a double.
    """
    halves = [abs(value) and Decimal(5).scaleb(int(value.as_tuple().exponent) - 1) for value in margins]
    name = "abs_error" if column == "margin" else f"{column}_abs_error"
    if name in columns:
        stated = [abs(_number(columns[name][row], name, row + 1)) for row in rows]
        return [
            half if has_digits and 0 < one < SMALLEST_ERROR else one for one, half in zip(stated, halves, strict=True)
        ]
    others = [abs(_number(columns["abs_error"][row], "abs_error", row + 1)) for row in rows]
    return [
        10 * other if other >= SMALLEST_ERROR and 0 < abs(value) < 10 * other else half
        for value, half, other in zip(margins, halves, others, strict=True)
    ]


def _begins(
    columns: Mapping[str, Sequence[str]], rows: Sequence[int], lengths: Sequence[int], margins: Sequence[Decimal]
) -> int | None:
    """As `data.begins_steps`, for a file that says where the runner-up stands."""
    methods = set(columns["method"])
    if "at" not in columns or methods & {"closed_form", "first_return"}:  # heads that match letters have no staircase
        return None
    try:
        at = [int(columns["at"][row]) for row in rows]
    except ValueError:
        return None
    return begins_steps(lengths, at, margins, one_plane=methods <= {ONE_PLANE})


def _length(text: str, row: int) -> int:
    if len(text) < 19 and text.isascii() and text.isdecimal() and text.strip("0"):  # nearly all of them
        return int(text)
    value = _decimal(text)
    if value is None or not value.is_finite() or value != value.to_integral_value() or not 1 <= value <= MAX_LENGTH:
        raise FileFormatError(f"row {row}: length {text[:40]!r} must be a whole number from 1 to 10^1000")
    return int(value)


def _number(text: str, name: str, row: int) -> Decimal:
    value = _decimal(text)
    if value is None:
        what = "is missing" if not text else f"{text[:40]!r} is not a number"
        raise FileFormatError(f"row {row}: {name} {what}")
    if not value.is_finite():
        raise FileFormatError(f"row {row}: {name} is {text[:40]}; leave out rows without a value")
    if value and not -10_000 <= value.adjusted() <= 300:
        raise FileFormatError(f"row {row}: {name} {text[:40]!r} is out of range")
    return value


@lru_cache(maxsize=4096)  # a staircase repeats its numbers
def _decimal(text: str) -> Decimal | None:
    if len(text) > MAX_TEXT or not NUMBER.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None

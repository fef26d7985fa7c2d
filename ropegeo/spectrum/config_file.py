"""Strict reading of a `config.json`: exact numbers, no surprises, one clear line when something is wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from numbers import Integral, Rational, Real
from pathlib import Path
from typing import Any, NoReturn

from ropegeo.errors import FileFormatError, InvalidInputError
from ropegeo.exact import parse_decimal

MAX_CONFIG_BYTES = 10_000_000
CONFIG_NAME = "config.json"


def config_path(path: str | Path) -> Path:
    """The file that `path` means: itself, or `config.json` in it if it is a folder.

    Raises:
        InvalidInputError: there is no such file.
    """
    try:
        found = Path(path) / CONFIG_NAME if Path(path).is_dir() else Path(path)
        if found.is_file():
            return found
    except (OSError, ValueError):  # a name too long for the file system, or with a null character in it
        pass
    raise InvalidInputError(
        f"read_config: no file at {str(path)[:200]!r}; give a config.json or a folder that holds one"
    )


def read_config(path: str | Path) -> dict[str, Any]:
    """The object in a JSON file, every decimal as the exact fraction written.

    Args:
        path: a `config.json` or the folder that holds it.

    Returns:
        The content; integers are `int`, other numbers `fractions.Fraction`.

    Raises:
        InvalidInputError: there is no such file, or it cannot be opened.
        FileFormatError: it is too large, no JSON, no object, nested too deeply, names a key twice, or holds NaN or
            infinity.
    """
    found = config_path(path)
    try:
        with found.open("rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise InvalidInputError(f"read_config: cannot open {found}: {error.strerror}") from error
    if len(data) > MAX_CONFIG_BYTES:
        raise FileFormatError(
            f"{found}: larger than {MAX_CONFIG_BYTES // 10**6} MB, so it is no config.json; give that file"
        )
    try:
        content = json.loads(
            data.decode("utf-8-sig"),
            parse_float=parse_decimal,
            parse_constant=_refuse_constant,
            object_pairs_hook=_unique_keys,
        )
    except RecursionError as error:
        raise FileFormatError(f"{found}: nested too deeply for a config.json; give the file of the model") from error
    except ValueError as error:  # malformed JSON, bytes that are no text, a number too long to read
        reason = " ".join(str(error).split())[:200]
        raise FileFormatError(f"{found}: not a readable JSON file ({reason}); mend it or download it again") from error
    if not isinstance(content, dict):
        raise FileFormatError(
            f"{found}: holds a JSON {type(content).__name__}, not an object; give the model's config.json"
        )
    return content


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"key {twice[:60]!r} stands twice in one object")
    return content


class ConfigSection:
    """A mapping from a file, read key by key; every refusal names the file and the key."""

    def __init__(self, where: str, values: Mapping[str, Any]) -> None:
        self.where = where
        self.values = values

    def refuse(self, key: str, problem: str) -> NoReturn:
        """Raise `FileFormatError` about a key."""
        raise FileFormatError(f"{self.where}: {key} {problem}")

    def text(self, key: str) -> str | None:
        """The text under `key`; None if it is absent or null."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            self.refuse(key, f"must be a text, not {shown_value(value)}")
        return value

    def mapping(self, key: str) -> Mapping[str, Any]:
        """The dictionary under `key`; empty if it is absent or null."""
        value = self.values.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.refuse(key, f"must be an object or null, not {shown_value(value)}")
        return value

    def number(self, key: str) -> Fraction:
        """A finite number, exactly as written."""
        value = self.values[key]
        if value is None:
            self.refuse(key, "is null; write the number, or remove the key to take the default of the model class")
        if isinstance(value, bool) or not isinstance(value, Real):
            self.refuse(key, f"must be a number, not {shown_value(value)}")
        try:
            return Fraction(value) if isinstance(value, Rational) else Fraction(float(value))
        except (ValueError, OverflowError):
            self.refuse(key, f"must be a finite number, not {shown_value(value)}")

    def count(self, key: str, largest: int) -> int:
        """A whole number from 1 to `largest`."""
        value = self.values[key]
        if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= largest:
            self.refuse(key, f"must be a whole number from 1 to {largest}, not {shown_value(value)}")
        return int(value)

    def first(self, keys: tuple[str, ...]) -> str | None:
        """The first of `keys` that is present, be it null."""
        return next((key for key in keys if key in self.values), None)


def shown_value(value: object) -> str:
    """A value from a file on one short line."""
    if isinstance(value, Fraction):
        if value.denominator == 1 and abs(value) < 1 << 64:
            return str(value.numerator)
        try:
            return f"{float(value):g}"
        except OverflowError:
            return "a number too large for a double"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 64:
        return "an integer of more than 64 bits"
    text = repr(value) if isinstance(value, (str, int, float, bool, type(None))) else f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."

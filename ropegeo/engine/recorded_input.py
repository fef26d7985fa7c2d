"""What `recorded_margins` and `RecordedMargins.from_dict` are given, checked: one clear line for what is of no use."""

from __future__ import annotations

import math
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropegeo._arrays import BoolArray, FloatArray, IntArray
from ropegeo.errors import InvalidInputError
from ropegeo.exact import short
from ropegeo.spectrum import RopeSpectrum

MAX_POSITION = 1 << 62
MAX_ROWS = 1 << 31
INPUT_TYPES = ("float16", "bfloat16", "float32", "float64")


def check_overflow(size_q: FloatArray, size_k: FloatArray, dtype: np.dtype[Any]) -> None:
    """Refuse vectors whose logits could leave the range of the precision.

    Raises:
        InvalidInputError: the largest query times the largest key is not well inside it.
    """
    limit = float(np.finfo(dtype).max) / 16
    with np.errstate(over="ignore", invalid="ignore"):
        one, other = float(size_q.max()), float(size_k.max())
        inside = one < limit and other < limit and one * other < limit
    if not inside:
        advice = "; ask for precision='float64'" if dtype == np.float32 else "; give smaller vectors"
        raise InvalidInputError(
            f"recorded_margins: logits must stay below {limit:.1e} in {dtype}; scaled queries of norm {one:.1e} and "
            f"keys of norm {other:.1e} could exceed it{advice}"
        )


def target_rows(wanted: IntArray, query_at: IntArray, key_at: IntArray, window: int) -> IntArray:
    """Index of each target among the keys, -1 for none.

    Raises:
        InvalidInputError: a target that is no key, or one that its query does not see.
    """
    rows = np.searchsorted(key_at, wanted)
    there = key_at[np.minimum(rows, len(key_at) - 1)] == wanted
    distance = query_at - wanted
    for wrong, what in (
        (wanted < -1, "must be a position, or -1 for none"),
        (~there, "is the position of no key, or of a masked one"),
        (distance < 0, "comes after its query"),
        (distance >= window, "lies outside the window"),
    ):
        found = wrong & (wanted != -1)
        if found.any():
            i = int(found.argmax())
            raise InvalidInputError(
                f"recorded_margins: target {wanted[i]} of query {i}, at position {query_at[i]}, {what}"
            )
    return np.where(wanted == -1, -1, rows)


def vectors(name: str, given: Any, spectrum: RopeSpectrum) -> NDArray[Any]:
    """Queries or keys as an array of rows of the spectrum's width, in the type they came in.

    Raises:
        InvalidInputError: another shape, no rows, or no floating-point numbers.
    """
    array = np.asarray(given)
    width = spectrum.head_dim
    if array.ndim != 2 or array.shape[1] != width:
        raise InvalidInputError(
            f"recorded_margins: {name} must have shape (rows, {width}), head_dim of the spectrum; got {array.shape}"
        )
    if not 1 <= len(array) < MAX_ROWS:
        raise InvalidInputError(f"recorded_margins: {name} must have at least one row, and fewer than 2**31")
    if array.dtype.name not in INPUT_TYPES:
        raise InvalidInputError(
            f"recorded_margins: {name} must be {', '.join(INPUT_TYPES)}; got {array.dtype}, convert it first"
        )
    return array


def integers(name: str, given: Any, count: int) -> IntArray:
    """One integer per row.

    Raises:
        InvalidInputError: another shape or type, or beyond 2**62.
    """
    array = np.asarray(given)
    if array.shape != (count,) or not np.issubdtype(array.dtype, np.integer):
        raise InvalidInputError(
            f"recorded_margins: {name} must be {count} integers, one per row; got {array.dtype} of shape {array.shape}"
        )
    if array.max() >= MAX_POSITION or array.min() <= -MAX_POSITION:
        raise InvalidInputError(f"recorded_margins: {name} must be below 2**62")
    return array.astype(np.int64)


def increasing_positions(name: str, given: Any, count: int) -> IntArray:
    """One position per row.

    Raises:
        InvalidInputError: as `integers`, or negative, or not increasing.
    """
    array = integers(name, given, count)
    if array[0] < 0:
        raise InvalidInputError(f"recorded_margins: {name} must not be negative; row 0 has {array[0]}")
    falls = np.diff(array) <= 0
    if falls.any():
        row = int(falls.argmax())
        raise InvalidInputError(
            f"recorded_margins: {name} must increase from row to row; row {row} has {array[row]}, "
            f"row {row + 1} has {array[row + 1]}"
        )
    return array


def mask_of_keys(given: Any, count: int) -> BoolArray:
    """The mask of keys.

    Raises:
        InvalidInputError: another shape or type, or it hides every key.
    """
    array: BoolArray = np.asarray(given)
    if array.shape != (count,) or array.dtype != np.bool_:
        raise InvalidInputError(
            f"recorded_margins: key_mask must be {count} booleans, one per key; got {array.dtype} of shape "
            f"{array.shape}"
        )
    if not array.any():
        raise InvalidInputError("recorded_margins: key_mask hides every key; leave at least one True")
    return array


def window_length(given: Any) -> int:
    """The window, cut to the longest distance there is.

    Raises:
        InvalidInputError: not an integer, or below 1.
    """
    try:
        window = 0 if isinstance(given, bool | np.bool_) else index(given)
    except TypeError as error:
        raise InvalidInputError(f"recorded_margins: window must be an integer of at least 1 ({error})") from error
    if window < 1:
        raise InvalidInputError(
            f"recorded_margins: window {short(window)} must be at least 1, which sees the query's own position only"
        )
    return min(window, MAX_POSITION)


def logit_scale(given: Any, spectrum: RopeSpectrum) -> float:
    """The factor on the dot product.

    Raises:
        InvalidInputError: not positive and finite.
    """
    if given is None:
        return 1 / math.sqrt(spectrum.head_dim)
    try:
        scale = float(given)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"recorded_margins: scale must be a number ({error})") from error
    if not (scale > 0 and math.isfinite(scale)):
        raise InvalidInputError(f"recorded_margins: scale {scale} must be positive and finite")
    return scale


def precision_type(given: Any, queries: NDArray[Any], keys: NDArray[Any]) -> np.dtype[Any]:
    """The precision as a type of numpy.

    Raises:
        InvalidInputError: a word that is none.
    """
    if given is None:
        given = "float64" if np.float64 in (queries.dtype, keys.dtype) else "float32"
    if given not in ("float32", "float64"):
        raise InvalidInputError(f"recorded_margins: precision {given!r} must be 'float32' or 'float64'")
    return np.dtype(np.float32 if given == "float32" else np.float64)


INFINITIES = {"inf": math.inf, "-inf": -math.inf}


def json_numbers(values: FloatArray) -> list[float | str | None]:
    """Floats as JSON has them: NaN as None, infinities as texts."""
    return [
        None if math.isnan(value) else value if math.isfinite(value) else f"{value}"  # "inf" or "-inf"
        for value in values.tolist()
    ]


def _checked_list(given: Any, count: int) -> list[Any]:
    """The list itself if it has that many entries."""
    if not isinstance(given, list) or len(given) != count:
        raise ValueError(f"every list must have {count} entries, one per query")
    return given


def read_numbers(given: Any, count: int) -> list[float]:
    """What `json_numbers` wrote.

    Raises:
        ValueError: no list of that many numbers, None, "inf" and "-inf".
        OverflowError: an integer beyond the largest double.
    """
    numbers = []
    for value in _checked_list(given, count):
        if value is None:
            number = math.nan
        elif isinstance(value, str) and value in INFINITIES:
            number = INFINITIES[value]
        elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            number = float(value)
        else:
            raise ValueError(f"{value!r:.40} is no number, null, 'inf' or '-inf'")
        numbers.append(number)
    return numbers


def read_integers(given: Any, count: int) -> list[int]:
    """A list of integers; whether they fit 64 bits is numpy's to say.

    Raises:
        ValueError: no list of that many.
    """
    values = _checked_list(given, count)
    if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        raise ValueError("positions, counts and targets must be integers")
    return values


def read_booleans(given: Any, count: int) -> list[bool]:
    """A list of booleans.

    Raises:
        ValueError: no list of that many.
    """
    values = _checked_list(given, count)
    if not all(isinstance(value, bool) for value in values):
        raise ValueError("tied must be booleans")
    return values

"""What every bound takes, and its scope: numbers come in as doubles, and what lies outside raises.

One policy for all: numbers are finite and of size up to `LARGEST`; those that are divided by or squared (angles and
the like) are 0 or of size `LEAST` and more. Then squares, and what is divided by them, are doubles of full precision:
nothing overflows unsaid, and no upper bound is rounded to 0. Lengths, reaches and letters are whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ropegeo._arrays import ComplexArray, FloatArray
from ropegeo.errors import InvalidInputError

LARGEST, LEAST = 1e150, 1e-150
"""Sizes of what a bound takes: at most the first; 0 or at least the second where it is divided by or squared."""

EXACT = 2.0**53
"""Below it a double and its neighbours among the whole numbers are exact, and so are their differences."""


def doubles(call: str, **values: ArrayLike) -> list[FloatArray]:
    """Arguments as doubles, broadcast against each other.

    Integers, lists, narrow floats and scalars are converted first, so that nothing wraps and no precision is lost.

    Args:
        call: the function's name.
        values: its arguments by name, in the order in which they are wanted.

    Returns:
        Arrays of one shape, some of them views that cannot be written to.

    Raises:
        InvalidInputError: what is not real numbers, NaN, sizes above `LARGEST`, or shapes that do not go together.
    """
    arrays = {name: _converted(call, name, value, np.float64) for name, value in values.items()}
    for name, array in arrays.items():
        within(call, np.abs(array) <= LARGEST, f"finite numbers of size up to {LARGEST:g}", **{name: array})
    try:
        return list(np.broadcast_arrays(*arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise InvalidInputError(f"{call}: needs shapes that broadcast to one; they are {shapes}") from None


def complexes(call: str, **values: ArrayLike) -> list[ComplexArray]:
    """Arguments as complex doubles, not broadcast; refused are the kinds and sizes that `doubles` refuses."""
    arrays = {name: _converted(call, name, value, np.complex128) for name, value in values.items()}
    for name, array in arrays.items():
        sizes = np.maximum(np.abs(array.real), np.abs(array.imag))
        within(call, sizes <= LARGEST, f"finite numbers of size up to {LARGEST:g}", **{name: sizes})
    return list(arrays.values())


def whole(call: str, **values: FloatArray) -> None:
    """Refuse what is not a whole number."""
    for name, value in values.items():
        within(call, value == np.floor(value), f"a whole number for {name}", **{name: value})


def sizeable(call: str, **values: FloatArray) -> None:
    """Refuse sizes that are neither 0 nor at least `LEAST`."""
    for name, value in values.items():
        inside = (value == 0) | (np.abs(value) >= LEAST)
        within(call, inside, f"0 or a size of at least {LEAST:g} for {name}", **{name: value})


def within(call: str, inside: ArrayLike, needs: str, **values: ArrayLike) -> None:
    """Refuse values for which a bound is not proved.

    Args:
        call: the function's name.
        inside: where the scope holds, broadcast with the values.
        needs: the scope, as in `length >= 2`.
        values: the arguments to show, by name.

    Raises:
        InvalidInputError: somewhere outside, NaN included, with the first such values in full.
    """
    held = np.asarray(inside, dtype=bool)
    if held.all():
        return
    shown: list[Any] = [np.broadcast_to(np.asarray(value), held.shape)[~held].flat[0] for value in values.values()]
    came = ", ".join(f"{name} {_in_full(value)}" for name, value in zip(values, shown, strict=True))
    raise InvalidInputError(f"{call}: needs {needs}; {came} is outside the scope in which it is proved")


def _in_full(value: Any) -> str:
    """A number with all its digits: rounded ones may look as if they were inside."""
    return repr(float(value)).removesuffix(".0")


def _converted(call: str, name: str, value: ArrayLike, dtype: type[Any]) -> Any:
    """An array of this type, from numbers only: not from texts, truth values or ragged lists."""
    kinds = "iufO" if dtype is np.float64 else "iufcO"
    try:
        array = np.asarray(value)
        if array.dtype.kind in kinds:
            with np.errstate(over="ignore"):  # long doubles beyond doubles become infinite, which is refused
                return array.astype(dtype)
    except OverflowError:
        raise InvalidInputError(f"{call}: needs finite numbers of size up to {LARGEST:g}; {name} is beyond") from None
    except (TypeError, ValueError):
        pass
    what = "real numbers" if dtype is np.float64 else "numbers"
    raise InvalidInputError(f"{call}: needs {what}; {name} is none ({type(value).__name__})")

"""The scope of a bound: what lies outside raises, naming the first value that does."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ropegeo.errors import InvalidInputError


def within(call: str, inside: ArrayLike, needs: str, **values: ArrayLike) -> None:
    """Refuse values for which a bound is not proved.

    Args:
        call: the function's name.
        inside: where the scope holds, broadcast with the values.
        needs: the scope, as in `length >= 2`.
        values: the arguments to show, by name.

    Raises:
        InvalidInputError: somewhere outside, NaN included, with the first such values.
    """
    held = np.asarray(inside, dtype=bool)
    if held.all():
        return
    shown: list[Any] = [np.broadcast_to(np.asarray(value), held.shape)[~held].flat[0] for value in values.values()]
    came = ", ".join(f"{name} {float(value):g}" for name, value in zip(values, shown, strict=True))
    raise InvalidInputError(f"{call}: needs {needs}; {came} is outside the scope in which it is proved")

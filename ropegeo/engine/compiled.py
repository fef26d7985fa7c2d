"""Compiled loops: the one place that talks to numba."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """The function compiled for its argument types on first use, kept on disk, and free of the interpreter's lock."""
    # The tests wrap every function in a check of its annotations; numba compiles what is inside.
    return cast(Function, numba.njit(nogil=True, cache=True)(inspect.unwrap(function)))

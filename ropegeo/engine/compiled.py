"""`compiled`: how a loop of the engine is turned into machine code."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """numba's translation, without the interpreter's lock and kept on disk; checks wrapped around it are left out."""
    return cast("Function", numba.njit(nogil=True, cache=True)(inspect.unwrap(function)))

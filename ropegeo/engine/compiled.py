"""`compiled`: how every kernel is compiled. No `fastmath`: it would reorder sums whose error is stated."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel) -> Kernel:
    """The function, compiled on its first call, without the interpreter's lock while it runs.

    The tests wrap every function of the engine to check its arguments; a kernel is compiled without that wrapper.
    """
    return cast(Kernel, numba.njit(nogil=True, cache=True)(inspect.unwrap(function)))

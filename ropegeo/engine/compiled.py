"""`compiled`: how every kernel of the engine is compiled. No `fastmath`: it would reorder sums whose error is stated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel) -> Kernel:
    """The function, compiled on its first call, without the interpreter's lock while it runs."""
    return cast(Kernel, numba.njit(nogil=True, cache=True)(function))

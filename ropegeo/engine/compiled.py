"""How the engine compiles its loops: without the interpreter's lock, cached on disk, and never with `fastmath`.

`fastmath` lets the compiler assume that no number is infinite or NaN; the loops here start from -infinity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """The function, compiled at its first call for the types it is called with."""
    return cast(Function, numba.njit(nogil=True, cache=True)(function))

"""`compiled`: how every kernel of the engine is compiled, and what that costs the first time.

Kernels release the interpreter's lock, so that the engine's threads run side by side, and are cached on disk, so that
only the first run after an installation compiles. No `fastmath`: it would drop infinities and reorder sums whose error
is stated. Where no folder for the cache can be written, kernels are compiled in memory, with one notice.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

NO_CACHE = (
    "ropegeo: compiled kernels cannot be cached (no writable cache folder), so each run compiles them again; set "
    "NUMBA_CACHE_DIR to a writable folder"
)
_noticed = False


def compiled(function: Kernel) -> Kernel:
    """The function, compiled on its first call, cached where that is possible."""
    global _noticed  # noqa: PLW0603 - one notice per process, not one per kernel
    try:
        return cast(Kernel, numba.njit(nogil=True, cache=True)(function))
    except RuntimeError as error:  # numba: "cannot cache function ...: no locator available"
        if "cannot cache" not in str(error):
            raise
        if not _noticed:
            _noticed = True
            warnings.warn(NO_CACHE, RuntimeWarning, stacklevel=2)
        return cast(Kernel, numba.njit(nogil=True)(function))


_clock = event.TimingListener()  # type: ignore[no-untyped-call]
event.register("numba:compile", _clock)  # type: ignore[no-untyped-call]


def compile_seconds() -> float:
    """Seconds spent compiling kernels in this process so far: a one-off where the cache can be written."""
    return float(_clock.duration) if _clock.done else 0.0

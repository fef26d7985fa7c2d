"""`compiled`: how every kernel of the engine is compiled, and what that costs the first time.

Kernels release the interpreter's lock, so that the engine's threads run side by side, and are cached on disk, so that
only the first run after an installation compiles. No `fastmath`: it would drop infinities and reorder sums whose error
is stated. Where no folder for the cache can be written, kernels are compiled in memory, with one notice.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ropegeo.engine import announce
from ropegeo.errors import InvalidInputError

_threads = os.environ.get("NUMBA_NUM_THREADS", "1").strip()
if not (_threads.isascii() and _threads.isdecimal() and int(_threads[:9]) >= 1):  # numba fails on it when it is loaded
    raise InvalidInputError(f"NUMBA_NUM_THREADS is {_threads[:40]!r} in the environment; it must be a positive integer")

import numba  # noqa: E402
from numba.core import event  # noqa: E402

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

NO_CACHE = (
    "compiled kernels cannot be cached (no folder for them can be written), so each run compiles them again; set "
    "NUMBA_CACHE_DIR to a writable folder"
)
_noticed = False


def compiled(function: Kernel) -> Kernel:
    """The function, compiled on its first call, cached where that is possible."""
    try:
        kernel = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError as error:  # numba: "cannot cache function ...: no locator available"
        if "cannot cache" not in str(error):
            raise
        _notice()
        return cast(Kernel, numba.njit(nogil=True)(function))
    if hasattr(kernel, "_cache"):  # not where numba is told to leave functions as they are
        kernel._cache = _Lenient(kernel._cache)
    return cast(Kernel, kernel)


class _Lenient:
    """A cache of numba's whose files may fail, as on a full disk: what cannot be kept or read is compiled instead."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, *arguments: Any) -> Any:
        """The compiled code, or None where it is not there or not readable."""
        try:
            return self._cache.load_overload(*arguments)
        except (OSError, EOFError):
            return None

    def save_overload(self, *arguments: Any) -> None:
        """Keep compiled code if that is possible."""
        try:
            self._cache.save_overload(*arguments)
        except OSError:
            _notice()


def is_cached() -> bool:
    """Whether kernels compiled in this process will be found by the next one."""
    return not _noticed


def _notice() -> None:
    global _noticed  # noqa: PLW0603 - one notice per process, not one per kernel
    if not _noticed:
        _noticed = True
        warnings.warn(NO_CACHE, RuntimeWarning, stacklevel=3)


class _Clock(event.TimingListener):
    """Adds up what numba compiles, and says when it begins."""

    def on_start(self, event: Any) -> None:
        """One compilation begins."""
        for tell in announce.listeners:
            tell()
        super().on_start(event)  # type: ignore[no-untyped-call]


_clock = _Clock()  # type: ignore[no-untyped-call]
event.register("numba:compile", _clock)  # type: ignore[no-untyped-call]


def compile_seconds() -> float:
    """Seconds spent compiling kernels in this process so far: a one-off where the cache can be written."""
    return float(_clock.duration) if _clock.done else 0.0

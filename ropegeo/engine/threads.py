"""One pool of threads for the engine: Python threads that run compiled code without the interpreter's lock.

A chunk of work is a BLAS product followed by a compiled scan. If BLAS ran its own threads, two pools would share the
cores: each waits, spinning, for cores the other holds, and both were seen to lose tenfold. So BLAS is held to one
thread while the engine works, and the chunks are spread over threads here. numba's own parallel layer is not used:
its default layer aborts the process when two threads enter it at once (numba issue 10565).
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from operator import index
from typing import TYPE_CHECKING, TypeVar

from ropegeo.errors import InvalidInputError

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_THREADS = 1024
_lock = threading.Lock()
_holders = 0
_release: Callable[[], None] | None = None


def thread_count(asked: int | None = None) -> int:
    """Number of threads: the one asked for, else `NUMBA_NUM_THREADS` or `OMP_NUM_THREADS`, else the usable cores.

    Raises:
        InvalidInputError: not from 1 to `MAX_THREADS`.
    """
    if asked is None:
        for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
            text = os.environ.get(name, "").strip()
            if text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= MAX_THREADS:
                return int(text)
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        count = index(asked)
    except TypeError as error:
        raise InvalidInputError(f"threads {asked!r} must be an integer from 1 to {MAX_THREADS}") from error
    if not 1 <= count <= MAX_THREADS:
        raise InvalidInputError(f"threads {asked!r} must be an integer from 1 to {MAX_THREADS}")
    return count


@cache
def _controller() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _take_control() -> None:
    """Let this thread set the limit: threadpoolctl (since 3.8) heeds the first thread that did, here any holder may."""
    for library in _controller().lib_controllers:
        clear = getattr(type(library), "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold numpy's BLAS to one thread; the first holder sets the limit and the last one lifts it.

    The limit is the process's, not a thread's: counting holders keeps two overlapping uses from restoring each other's
    limit and leaving the process at one thread for good.
    """
    global _holders, _release  # noqa: PLW0603 - the limit it counts is global too
    with _lock:
        if _holders == 0:  # set before it is counted, so that a failure leaves nothing counted
            _take_control()
            _release = _controller().limit(limits=1, user_api="blas").restore_original_limits
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0 and _release is not None:
                _take_control()
                _release()
                _release = None


def in_order(work: Callable[[Item], Result], items: Iterable[Item], *, threads: int) -> Iterator[Result]:
    """`map(work, items)` on several threads, results in the order of the items, with few of them in flight.

    `items` is drawn lazily, as results are taken, so that what an item says may depend on results already taken. An
    exception, Ctrl-C included, cancels what has not begun and waits for the chunks that run.

    Args:
        work: releases the interpreter's lock for most of its time.
        items: one per chunk.
        threads: 1 runs in the calling thread.
    """
    if threads == 1:
        with one_blas_thread():
            yield from map(work, items)
        return
    waiting: deque[Future[Result]] = deque()
    pool = _pool(threads)
    with one_blas_thread():
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > threads:  # one more than there are threads, so that none waits for the caller
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            wait([future for future in waiting if not future.cancel()])


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads are kept: to start them, and to touch their buffers for the first time, takes milliseconds."""
    return ThreadPoolExecutor(threads, thread_name_prefix="ropegeo")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of its parent's threads

"""What commands print and write: tables, JSON, CSV, files."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn
from rich.status import Status
from rich.table import Table
from rich.text import Text

from ropegeo.engine.announce import listeners
from ropegeo.errors import InvalidInputError
from ropegeo.files import check_destination, write_atomically

WIDTH = 100
NOTICED_SECONDS = 0.5
"""Compiling for less than this is not worth a line."""


def console() -> Console:
    """Standard output, at most `WIDTH` columns; rich itself honours NO_COLOR and pipes."""
    columns = os.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    width = min(WIDTH, columns or WIDTH)  # some terminals report a size of 0
    return Console(width=width, highlight=False, emoji=False, markup=False, soft_wrap=False)


def busy(what: str) -> Status:
    """A spinner on standard error while something is computed; nothing where that is not a terminal."""
    return Console(stderr=True).status(what)


@contextmanager
def working(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """As `busy`, with a bar: yields what to call with how much of `total` is done. Says when kernels are compiled."""
    err = Console(stderr=True)
    if not err.is_terminal:
        yield lambda _done: None
        return
    before = _compile_seconds()
    columns = ("{task.description}", BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(what, total=None)
        with _announced(lambda: bar.update(task, description="compiling kernels, once")):
            yield lambda done: bar.update(task, description=what, total=total, completed=min(done, total))
    seconds = _compile_seconds() - before
    if seconds >= NOTICED_SECONDS:
        kept = "once: later runs load them from a cache" if _is_cached() else "and will in every run: see the warning"
        err.print(f"compiled the kernels in {seconds:.1f} s, {kept}", soft_wrap=True)


@contextmanager
def _announced(tell: Callable[[], None]) -> Iterator[None]:
    """Have something called when kernels begin to be compiled, should they be loaded at all."""
    listeners.append(tell)
    try:
        yield
    finally:
        listeners.remove(tell)


def _is_cached() -> bool:
    return bool(sys.modules["ropegeo.engine.compiled"].is_cached())


def _compile_seconds() -> float:
    """What `ropegeo.engine.compiled` has counted, without loading it: most commands need no kernel."""
    loaded = sys.modules.get("ropegeo.engine.compiled")
    return 0.0 if loaded is None else float(loaded.compile_seconds())


def table(title: str, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]]) -> Group:
    """A plain table under a title (none if empty); each column is (heading, `left` or `right`)."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading, side in columns:
        grid.add_column(heading, justify="right" if side == "right" else "left", overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return Group(Text(title, style="bold"), grid) if title else Group(grid)


def print_json(data: Any) -> None:
    """JSON on standard output."""
    sys.stdout.write(json_text(data))


def json_text(data: Any) -> str:
    """Indented JSON; refuses NaN and infinity, which JSON does not have."""
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


class Destinations:
    """The files a command will write: all checked before any work, all written after it.

    Args of the constructor: paths from the command line (None where not given) and `--force`.

    Raises:
        InvalidInputError: a destination that cannot be written, or the same one twice.
    """

    def __init__(self, *paths: str | None, force: bool) -> None:
        self._force = force
        given = [Path(path) for path in paths if path is not None]
        if any(str(path) in ("", ".") for path in given):
            raise InvalidInputError("an output needs a file name")
        if len({path.absolute() for path in given}) != len(given):
            raise InvalidInputError(f"two outputs have the same name {str(given[0])!r}; give each its own")
        for path in given:
            check_destination(path, force=force)

    def write(self, *contents: tuple[str | None, bytes]) -> list[str]:
        """Write each content to its path, skipping paths that are None; returns what was written."""
        wanted = [(Path(path), content) for path, content in contents if path is not None]
        write_atomically(wanted, force=self._force)
        return [str(path) for path, _ in wanted]


def suffix_of(path: str | None, allowed: Sequence[str], option: str) -> str | None:
    """The lower-case suffix of a path, one of `allowed`; None where no path is given.

    Raises:
        InvalidInputError: another suffix.
    """
    if path is None:
        return None
    suffix = Path(path).suffix.lower()
    if suffix not in allowed:
        raise InvalidInputError(f"{option} {path!r}: the name must end in {' or '.join(allowed)}")
    return suffix


def printable(text: str) -> str:
    """Text for a terminal: characters that would steer it are written out."""
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)


def number_text(value: float, digits: int = 6) -> str:
    """A float for a table cell."""
    return f"{value:.{digits}g}"

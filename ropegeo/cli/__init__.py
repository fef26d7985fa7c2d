"""The command line: text to values to text. No mathematics lives here."""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
import warnings
from types import FrameType
from typing import Any

WIDTH = 100
STOPPED = 130
TERMINATED = 143


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status: 0, 1 for a negative verdict, 2 for input that cannot be used.

    Every failure that a user can cause is one line on standard error.
    """
    # typer's help is as wide as the terminal unless told; ours fits WIDTH columns.
    os.environ.setdefault("TERMINAL_WIDTH", str(min(WIDTH, shutil.get_terminal_size().columns)))
    import typer

    from ropegeo.cli.app import app
    from ropegeo.errors import RopegeoError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character that the terminal lacks is escaped, not an error
            stream.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warned
            status = app(arguments, standalone_mode=False)
        sys.stdout.flush()
    except RopegeoError as error:
        return _fail(str(error))
    except typer.Exit as stop:
        return _stopped() if stop.exit_code == STOPPED else stop.exit_code
    except MemoryError:
        return _fail("not enough memory for this request; use fewer planes, tokens or a shorter length")
    except (KeyboardInterrupt, typer.Abort):
        return _stopped()
    except SystemExit as stop:  # how typer leaves when the reader of a pipe has gone; SIGTERM keeps its status
        _silence()
        return TERMINATED if stop.code == TERMINATED else 0
    except BrokenPipeError:
        _silence()
        return 0
    except OSError as error:
        _silence()
        return _fail(
            f"standard output cannot be written ({error.strerror or error}); free some space or pipe elsewhere"
        )
    except Exception as error:
        # click's usage errors: their class moves between versions of typer, their message method does not.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        return _fail(f"{message()} Try 'ropegeo --help'.")
    if status == STOPPED:
        return _stopped()
    return status if isinstance(status, int) else 0


def _warned(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"ropegeo: warning: {message}", file=sys.stderr)  # noqa: T201


def _stopped() -> int:
    print("ropegeo: stopped; nothing was written", file=sys.stderr)  # noqa: T201
    return STOPPED


def _fail(message: str) -> int:
    from ropegeo.cli.output import printable

    print("ropegeo: error:", printable(" ".join(message.split())), file=sys.stderr)  # noqa: T201
    return 2


def _silence() -> None:
    """Nobody reads standard output any more: do not fail on it again when the interpreter flushes it at exit."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(TERMINATED)  # so that temporary files are removed on the way out


def script() -> None:
    """Entry point of the console script."""
    if sys.stdout is None:  # closed by the caller
        _silence()
    signal.signal(signal.SIGTERM, _terminate)
    sys.exit(main())

"""The command line: text to values to text. No mathematics lives here."""

from __future__ import annotations

import os
import shutil
import sys

WIDTH = 100


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status: 0, 1 for a negative verdict, 2 for input that cannot be used.

    Every failure that a user can cause is one line on standard error.
    """
    # typer's help is as wide as the terminal unless told; ours fits WIDTH columns.
    os.environ.setdefault("TERMINAL_WIDTH", str(min(WIDTH, shutil.get_terminal_size().columns)))
    import typer

    from ropegeo.cli.app import app
    from ropegeo.errors import RopegeoError

    try:
        status = app(arguments, standalone_mode=False)
    except RopegeoError as error:
        return _fail(str(error))
    except typer.Exit as stop:
        return stop.exit_code
    except MemoryError:
        return _fail("not enough memory for this request; use fewer planes, tokens or a shorter length")
    except (KeyboardInterrupt, typer.Abort):
        print("ropegeo: stopped; nothing was written", file=sys.stderr)  # noqa: T201
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; there is nobody to tell
        return 0
    except Exception as error:
        # click's usage errors: their class moves between versions of typer, their message method does not.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        return _fail(f"{message()} Try 'ropegeo --help'.")
    return status if isinstance(status, int) else 0


def _fail(message: str) -> int:
    print("ropegeo: error:", " ".join(message.split()), file=sys.stderr)  # noqa: T201
    return 2


def script() -> None:
    """Entry point of the console script."""
    sys.exit(main())

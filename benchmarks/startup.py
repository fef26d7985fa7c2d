"""README: `ropegeo --help` starts about as fast as an empty typer application.

Runs both in turn in fresh processes and prints the ratio of medians as JSON; wall-clock, so keep the machine idle. Also
the wall time of `ropegeo construct --mode index --offset 3`, which compiles nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial

from measure import alternate, machine

ROUNDS = 11
EMPTY = "import typer; app = typer.Typer(); app.command()(lambda: None); app(['--help'])"
COMMANDS = {
    "empty_typer_help": [sys.executable, "-c", EMPTY],
    "ropegeo_help": [sys.executable, "-m", "ropegeo", "--help"],
    "ropegeo_construct": [sys.executable, "-m", "ropegeo", "construct", "--mode", "index", "--offset", "3"],
}


def main() -> None:
    """Run the commands in turn and print medians and ratio."""
    sides: dict[str, Callable[[], object]] = {
        name: partial(subprocess.run, command, check=True, capture_output=True) for name, command in COMMANDS.items()
    }
    times = alternate(sides, ROUNDS, pause=0)
    result = {**machine(), **times.shown(), "help_ratio": times.ratio("ropegeo_help", "empty_typer_help")}
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

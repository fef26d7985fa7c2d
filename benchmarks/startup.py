"""README: `ropegeo --help` starts about as fast as an empty typer application.

Runs both alternately in fresh processes and prints the ratio of medians as JSON; wall-clock, so keep the machine idle.
Also the wall time of `ropegeo construct --mode index --offset 3`, which compiles nothing.
"""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version

ROUNDS = 11
EMPTY = "import typer; app = typer.Typer(); app.command()(lambda: None); app(['--help'])"
COMMANDS = {
    "empty_typer_help": [sys.executable, "-c", EMPTY],
    "ropegeo_help": [sys.executable, "-m", "ropegeo", "--help"],
    "ropegeo_construct": [sys.executable, "-m", "ropegeo", "construct", "--mode", "index", "--offset", "3"],
}


def seconds(command: list[str]) -> float:
    """Wall time of one fresh process."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    """Alternate the commands and print medians and ratios."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS + 1):
        for name, command in COMMANDS.items():
            times[name].append(seconds(command))
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}  # the first round warms caches
    result = {
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "typer": version("typer"),
        "rounds": ROUNDS,
        "median_seconds": medians,
        "help_ratio": medians["ropegeo_help"] / medians["empty_typer_help"],
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

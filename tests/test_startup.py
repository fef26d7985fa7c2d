"""What a fresh interpreter loads: nothing numerical for `--help`, only what a construction needs for `construct`."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numba", "sympy", "scipy", "matplotlib", "torch")

# Runs a command line in a fresh interpreter and prints, last, the top-level modules that it loaded.
PROBE = """
import sys
from ropegeo.cli import main
status = main(sys.argv[1:])
print()
print(status, *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def loaded(*arguments: str) -> tuple[int, set[str]]:
    """Exit status and top-level modules of one command."""
    done = subprocess.run([sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, check=True)
    status, *modules = done.stdout.splitlines()[-1].split()
    return int(status), set(modules)


HELP = [(), ("--help",), ("--version",), ("curve", "--help"), ("derive", "--help"), ("bogus",)]


@pytest.mark.parametrize("arguments", HELP)
def test_help_loads_nothing_numerical(arguments: tuple[str, ...]) -> None:
    status, modules = loaded(*arguments)
    assert status == (2 if arguments == ("bogus",) else 0)
    assert {"ropegeo", "typer"} <= modules
    assert not modules & {*HEAVY, "numpy", "flint", "safetensors", "jaxtyping"}


def test_module_help_loads_nothing_numerical() -> None:
    """`python -m ropegeo --help`, as a user runs it."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ropegeo", "--help"], capture_output=True, text=True, check=True
    )
    modules = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "typer" in modules
    assert not modules & {*HEAVY, "numpy"}
    assert "construct" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("construct", "--mode", "index", "--offset", "3"),
        ("construct", "--mode", "index", "--offset", "3", "--json"),
        ("curve", "--angle", "1", "--lengths", "1001,1e30"),
        ("solve", "C B A 1 4 1 3 2 1"),
        ("spectrum",),
    ],
)
def test_commands_load_what_they_need(arguments: tuple[str, ...]) -> None:
    status, modules = loaded(*arguments)
    assert status == 0
    assert "numpy" in modules
    assert not modules & set(HEAVY)


def test_import_is_free() -> None:
    """`import ropegeo` and its list of names load none of the rooms."""
    code = "import sys, ropegeo; dir(ropegeo); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    assert not {name.partition(".")[0] for name in modules} & {*HEAVY, "numpy", "typer", "rich"}
    assert [name for name in modules if name.startswith("ropegeo.")] == ["ropegeo._version"]

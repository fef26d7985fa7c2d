"""Every import of the package and of the derivations against the tables of docs/ARCHITECTURE.md."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ropegeo"
DERIVATIONS = ROOT / "derivations"
DOCUMENT = ROOT / "docs" / "ARCHITECTURE.md"
EVERYONE = {"errors.py", "_arrays.py", "_version.py"}
NOTHING = "nothing of ours"
MODULE_OF = {"python-flint": "flint", "ml-dtypes": "ml_dtypes"}

pytestmark = pytest.mark.skipif(not DOCUMENT.is_file(), reason="needs docs/ARCHITECTURE.md (a checkout)")


class Import(NamedTuple):
    """One import: where it stands and the dotted name of what it loads."""

    file: str
    line: int
    module: str


# ---- the tables ----


def table(text: str, *headings: str) -> list[list[str]]:
    """The rows of the one markdown table with these headings."""
    lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines()]
    (start,) = [k for k, cells in enumerate(lines) if cells == list(headings)]
    rows = []
    for cells in lines[start + 2 :]:
        if len(cells) != len(headings):
            break
        rows.append(cells)
    return rows


def ticked(cell: str) -> list[str]:
    """The names in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def rooms(text: str) -> dict[str, set[str]]:
    """Room to rooms that it may import, closed transitively, with what everyone may import."""
    direct: dict[str, set[str]] = {}
    for room, _, may in table(text, "room", "what lives there", "may import"):
        (name,) = ticked(room)
        assert name not in direct, f"{name} stands twice"
        assert ticked(may) or may == NOTHING, f"{name}: {may!r} is neither a list of rooms nor {NOTHING!r}"
        direct[name] = set(ticked(may))
    unknown = set().union(*direct.values()) - set(direct)
    assert not unknown, f"rooms that may be imported but are not in the table: {unknown}"
    closed = {}
    for name in direct:
        reached, todo = set(EVERYONE), [name]
        while todo:
            new = direct[todo.pop()] - reached
            reached |= new
            todo += new
        closed[name] = reached | {name}
    return closed


def dependencies(text: str, kind: str = "dependency") -> dict[str, set[str] | None]:
    """Import name of a dependency to the rooms that import it: None for every room, none of them for not yet."""
    found: dict[str, set[str] | None] = {}
    for package, licence, why, by in table(text, kind, "licence", "why", "imported by"):
        (name,) = ticked(package)
        assert licence, f"{name}: no licence"
        assert why, f"{name}: no reason"
        if by == "every room":
            by_rooms: set[str] | None = None
        elif by.startswith("not yet:"):
            by_rooms = set()
        else:
            by_rooms = set(ticked(by))
            assert by_rooms, f"{name}: {by!r} names no room"
        found[MODULE_OF.get(name, name)] = by_rooms
    return found


# ---- the imports ----


def imports(source: str, file: str, *, package: str) -> Iterator[Import]:
    """Every import in a file, those inside functions and under TYPE_CHECKING too; relative ones made absolute.

    `from a import b` may load a.b, so both are named; `importlib.import_module("a")` and `__import__("a")` count.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(file, node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield Import(file, node.lineno, f"{module}.{alias.name}")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield Import(file, node.lineno, argument.value)


def files() -> list[Path]:
    """Every file that the tables speak of."""
    return sorted([*PACKAGE.rglob("*.py"), *DERIVATIONS.rglob("*.py")])


def room_of_file(path: Path) -> str:
    """`engine/` for a file in that folder, `files.py` for a module at the top, `derivations/` outside the package."""
    parts = path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT).parts
    return parts[0] if len(parts) == 1 else f"{parts[0]}/"


def room_of_module(module: str, known: Mapping[str, object]) -> str:
    """The room that a dotted name of ours lies in."""
    parts = module.split(".")
    if len(parts) > 1:
        for room in (f"{parts[1]}/", f"{parts[1]}.py"):
            if room in known:
                return room
        if (PACKAGE / parts[1]).is_dir() or (PACKAGE / f"{parts[1]}.py").is_file():
            return parts[1]  # a room that is not in the table
    return "__init__.py"


def faults(
    found: Import, room: str, allowed: Mapping[str, set[str]], third: Mapping[str, set[str] | None]
) -> list[str]:
    """What is wrong with one import in one room."""
    where = f"{found.file}:{found.line}"
    top = found.module.partition(".")[0]
    if top == "ropegeo":
        target = room_of_module(found.module, allowed)
        if target in allowed[room]:
            return []
        return [f"{where}: {room} imports {found.module} of {target}, which the table does not allow"]
    if top in sys.stdlib_module_names:
        return []
    if top not in third:
        return [f"{where}: {top} is not in the table of dependencies"]
    only = third[top]
    if only is None or room in only:
        return []
    return [f"{where}: {room} imports {top}, which only {', '.join(sorted(only)) or 'nobody, yet,'} may"]


def all_faults(allowed: Mapping[str, set[str]], third: Mapping[str, set[str] | None]) -> list[str]:
    found = []
    for path in files():
        inside = ".".join(path.relative_to(ROOT).parent.parts)
        for one in imports(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)), package=inside):
            found += faults(one, room_of_file(path), allowed, third)
    return found


@pytest.fixture(name="text", scope="module")
def _text() -> str:
    return DOCUMENT.read_text(encoding="utf-8")


def test_every_arrow_is_in_the_table(text: str) -> None:
    assert not all_faults(rooms(text), dependencies(text) | dependencies(text, "extra dependency"))


def test_every_room_is_in_the_table(text: str) -> None:
    """And every row of the table is a room."""
    there = {room_of_file(path) for path in files()}
    assert there == set(rooms(text))


def test_nothing_flows_back(text: str) -> None:
    """No two rooms may import each other."""
    allowed = rooms(text)
    for one, may in allowed.items():
        for other in may - {one} - EVERYONE:
            assert one not in allowed[other], f"{one} and {other} may import each other"


def test_every_dependency_is_in_the_table(text: str) -> None:
    """The core dependencies of pyproject.toml, no more and no fewer; each is imported by the rooms named."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = {re.split(r"[<>=!~ \[]", line)[0] for line in project["dependencies"]}
    third = dependencies(text)
    assert {MODULE_OF.get(name, name) for name in core} == set(third)
    extra = dependencies(text, "extra dependency")
    optional = {re.split(r"[<>=!~ \[]", line)[0] for line in project["optional-dependencies"]["models"]}
    assert set(extra) <= optional
    third |= extra
    used: dict[str, set[str]] = {}
    for path in files():
        for one in imports(path.read_text(encoding="utf-8"), "", package=""):
            used.setdefault(one.module.partition(".")[0], set()).add(room_of_file(path))
    for name, by_rooms in third.items():
        found = used.get(name, set())
        as_said = found if by_rooms is None else by_rooms
        assert found == as_said, f"{name}: the table says {by_rooms}, found in {found}"
        assert by_rooms is not None or found, f"{name}: no room imports it"


FAKE = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from ropegeo.cli.output import WIDTH
def late():
    import ropegeo.plots
    from ..plots import figure_bytes
    from ropegeo import index_head
    import scipy.special
    import numba
    import pandas
    import importlib
    importlib.import_module("ropegeo.construct.index")
    from ropegeo.cellar import wine
import numpy, os
from ropegeo.errors import RopegeoError
from ropegeo.exact import ClosedForm
from . import margin
from ._arrays import frozen
"""


def test_a_forbidden_arrow_is_caught() -> None:
    """The checker on a file that breaks the table in every way it knows."""
    text = """
| room | what lives there | may import |
| --- | --- | --- |
| `errors.py` | x | nothing of ours |
| `exact/` | x | `errors.py` |
| `heads/` | x | `exact/` |
| `engine/` | x | `heads/` |
| `construct/` | x | `heads/` |
| `plots/` | x | `engine/` |
| `cli/` | x | `plots/`, `construct/` |
| `__init__.py` | x | `cli/` |

| dependency | licence | why | imported by |
| --- | --- | --- | --- |
| `numpy` | BSD | arrays | every room |
| `scipy` | BSD | roots | `asymptotics/`, `construct/` |
| `numba` | BSD | loops | not yet: `engine/` |
"""
    allowed, third = rooms(text), dependencies(text)
    found = [
        fault.split(": ", 1)[1]
        for one in imports(FAKE, "engine/fake.py", package="ropegeo.engine")
        for fault in faults(one, "engine/", allowed, third)
    ]
    assert sorted(found) == [
        "engine/ imports numba, which only nobody, yet, may",
        "engine/ imports ropegeo.cellar.wine of __init__.py, which the table does not allow",
        "engine/ imports ropegeo.cli.output.WIDTH of cli/, which the table does not allow",
        "engine/ imports ropegeo.construct.index of construct/, which the table does not allow",
        "engine/ imports ropegeo.index_head of __init__.py, which the table does not allow",
        "engine/ imports ropegeo.plots of plots/, which the table does not allow",
        "engine/ imports ropegeo.plots.figure_bytes of plots/, which the table does not allow",
        "engine/ imports scipy, which only asymptotics/, construct/ may",
        "pandas is not in the table of dependencies",
    ]


@pytest.mark.parametrize(
    "row",
    ["| `heads/` | x | everything |", "| `heads/` | x | `cellar/` |", "| `errors.py` | x | nothing of ours |"],
)
def test_a_broken_table_is_caught(row: str) -> None:
    """A cell that is neither rooms nor the agreed words, an unknown room, a room twice."""
    head = "| room | what lives there | may import |\n| --- | --- | --- |\n| `errors.py` | x | nothing of ours |\n"
    with pytest.raises(AssertionError):
        rooms(head + row)


def test_a_dependency_of_no_room_is_caught() -> None:
    """Neither rooms in backticks nor the agreed words."""
    head = "| dependency | licence | why | imported by |\n| --- | --- | --- | --- |\n"
    assert dependencies(f"{head}| `scipy` | BSD | roots | `engine/`, `cli/` |") == {"scipy": {"engine/", "cli/"}}
    with pytest.raises(AssertionError, match="names no room"):
        dependencies(f"{head}| `scipy` | BSD | roots | somewhere |")


def test_files_outside_the_package_are_looked_at() -> None:
    assert room_of_file(DERIVATIONS / "d05_dirichlet_bound.py") == "derivations/"
    assert DERIVATIONS / "d05_dirichlet_bound.py" in files()

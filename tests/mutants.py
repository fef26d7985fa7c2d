"""Small changes to the code of the bounds, each of which some derivation must notice."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ropegeo.asymptotics import bounds

FOLDER = Path(bounds.__file__).parent
NOT_BOUNDS = ("__init__.py", "scope.py")
"""Files without a bound of their own; `within` has tests of its own."""
FLIPPED: dict[type[ast.AST], type[Any]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}
SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Add: "+", ast.Sub: "-"}
PART = 1e-3
"""By which part of itself a decimal is changed."""


@dataclass(frozen=True)
class Mutant:
    """One change in one file: `change` counts those of one place, `place` the places that can be changed."""

    file: str
    owner: str
    place: int
    change: int
    label: str

    def __str__(self) -> str:
        return f"{self.file.removesuffix('.py')}.{self.owner}[{self.label}]"

    @property
    def module(self) -> str:
        """The module whose code is changed."""
        return f"{bounds.__name__}.{self.file.removesuffix('.py')}"

    def load(self) -> ModuleType:
        """The changed module, run under another name."""
        tree = _tree(self.file)
        _, node = list(_places(tree))[self.place]
        _, apply = list(_changes(node))[self.change]
        apply()
        module = ModuleType("changed_bounds")
        module.__dict__["__package__"] = bounds.__name__
        exec(compile(tree, self.file, "exec"), module.__dict__)  # noqa: S102 - our own code, changed
        return module

    def affected(self) -> set[str]:
        """Names of the file that use the changed one, however indirectly, and itself."""
        uses = _uses(self.file)
        reached, todo = set[str](), [self.owner]
        while todo:
            name = todo.pop()
            reached.add(name)
            todo += [user for user, used in uses.items() if name in used and user not in reached]
        return reached


def all_mutants() -> list[Mutant]:
    """Every change of every file that holds bounds, in the order of the code."""
    return [
        Mutant(path.name, owner, place, change, f"{_where(node)} {label}")
        for path in sorted(FOLDER.glob("*.py"))
        if path.name not in NOT_BOUNDS
        for place, (owner, node) in enumerate(_places(_tree(path.name)))
        for change, (label, _) in enumerate(_changes(node))
    ]


def put_in_place(mutant: Mutant, patch: pytest.MonkeyPatch) -> None:
    """Let everyone see the changed module's functions and constants in place of the real ones."""
    changed, real = mutant.load(), sys.modules[mutant.module]
    for name in mutant.affected():
        replace_everywhere(getattr(real, name), getattr(changed, name), name, patch)


def replace_everywhere(old: object, new: object, name: str, patch: pytest.MonkeyPatch) -> None:
    """Set a name anew in every module of ropegeo that has the old object under it."""
    for module in list(sys.modules.values()):
        if (module.__name__ == "ropegeo" or module.__name__.startswith("ropegeo.")) and vars(module).get(name) is old:
            patch.setattr(module, name, new)


def _tree(file: str) -> ast.Module:
    return ast.parse((FOLDER / file).read_text(encoding="utf-8"))


def _owners(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Functions and constants of a module."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node


def _places(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """What can be changed: numbers, comparisons and sums, but not annotations and decorators."""
    for owner, top in _owners(tree):
        for node in _code(top):
            if next(_changes(node), None) is not None:
                yield owner, node


def _code(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _code(child)


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[], None]]]:
    """Every way to change a place, with words for it."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float, complex):
        value = node.value
        assert isinstance(value, int | float | complex)
        others = (value + 1, value - 1) if isinstance(value, int) else (value * (1 + PART) if value else PART,)
        for other in others:
            yield f"{value} -> {other}", partial(setattr, node, "value", other)
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in FLIPPED:
        flipped = FLIPPED[type(node.op)]
        yield f"{SIGNS[type(node.op)]} -> {SIGNS[flipped]}", partial(setattr, node, "op", flipped())
    elif isinstance(node, ast.Compare):
        for k, sign in enumerate(node.ops):
            if type(sign) in FLIPPED:
                flipped = FLIPPED[type(sign)]
                text = f"{SIGNS[type(sign)]} -> {SIGNS[flipped]}" + (f" ({k + 1}.)" if k else "")
                yield text, partial(node.ops.__setitem__, k, flipped())


def _where(node: ast.AST) -> str:
    """Line and column, which tell places of one function apart."""
    return f"{getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)}"


@cache
def _uses(file: str) -> dict[str, set[str]]:
    """Each function and constant of a file to the names it mentions."""
    return {
        owner: {node.id for node in ast.walk(top) if isinstance(node, ast.Name)} for owner, top in _owners(_tree(file))
    }

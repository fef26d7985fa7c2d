"""How kernels are compiled: cached or not, with and without the compiler, from one module only, late."""

from __future__ import annotations

import ast
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ropegeo
from ropegeo.engine import compiled as compiling

PACKAGE = Path(ropegeo.__file__).parent
INTERPRETED = Path(__file__).with_name("interpreted.py")


def python(*arguments: str, **environment: str) -> str:
    """Standard output of a fresh interpreter, without what the caller's shell says of numba."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    command = [sys.executable, "-P", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=inherited | environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- the cache ----

TINY = """
import json, warnings
import numpy as np
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from ropegeo.engine import kernels, lattice_kernels, one_plane_kernels, pruned_kernels, recorded_kernels
    from ropegeo.engine.compiled import compile_seconds
    from ropegeo.engine.sweep import Sweep
    profile = LogitProfile(spectrum=RopeSpectrum.from_base(10000, head_dim=8), coefficients=np.ones(4))
    (largest,) = Sweep((profile,), threads=1, rows=3, half=4).maxima(5, 100)
print(json.dumps({
    "largest": largest,
    "seconds": compile_seconds(),
    "notices": [[warning.category.__name__, str(warning.message)] for warning in caught],
    "file": kernels.__file__,
}))
"""


def tiny(**environment: str) -> dict[str, Any]:
    """A small sweep in a fresh interpreter whose maximum is checked here: what it says of itself."""
    told: dict[str, Any] = json.loads(python("-c", TINY, **environment))
    largest = max(math.fsum(math.cos(t * 10000 ** (-k / 4)) for k in range(4)) for t in range(5, 101))
    assert told["largest"] == pytest.approx(largest, abs=1e-12)
    return told


@pytest.mark.slow
def test_the_first_run_compiles_and_the_next_does_not(tmp_path: Path) -> None:
    first, second = (tiny(NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first["notices"] == second["notices"] == []
    assert first["seconds"] > 0.01  # three kernels take longer on any machine
    assert second["seconds"] == 0
    assert list(tmp_path.rglob("*.nbi"))


@pytest.mark.slow
def test_without_a_cache_there_is_one_notice(tmp_path: Path) -> None:
    """No folder can be made where a file stands, whoever asks: so this holds for root as well."""
    copy = tmp_path / "ropegeo"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "engine" / "__pycache__").write_text("")
    nowhere = str(copy / "engine" / "__pycache__" / "cache")
    told = tiny(
        PYTHONPATH=str(tmp_path), NUMBA_CACHE_DIR=nowhere, XDG_CACHE_HOME=nowhere, HOME=nowhere, LOCALAPPDATA=nowhere
    )
    assert Path(told["file"]) == copy / "engine" / "kernels.py"
    assert told["notices"] == [["RuntimeWarning", compiling.NO_CACHE]]
    assert "NUMBA_CACHE_DIR" in compiling.NO_CACHE
    assert told["seconds"] > 0.01
    assert not [*tmp_path.rglob("*.nb[ic]")]


def test_other_errors_of_the_compiler_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(**_options: object) -> None:
        raise RuntimeError("locator: no such class")

    monkeypatch.setattr("numba.njit", fails)
    with pytest.raises(RuntimeError, match="no such class"):
        compiling.compiled(lambda x: x)


# ---- without the compiler ----


def leaves(found: Any) -> Iterator[int | float]:
    """The numbers in nested lists."""
    if isinstance(found, list):
        for part in found:
            yield from leaves(part)
    else:
        yield found


def split(found: Any) -> tuple[list[int], list[float]]:
    """Places, counts and displacements of any size; and the rest, which rounds."""
    whole = [each for each in leaves(found) if isinstance(each, int)]
    return whole, [each for each in leaves(found) if isinstance(each, float)]


@pytest.mark.slow
def test_kernels_are_plain_python_too() -> None:
    """`NUMBA_DISABLE_JIT=1`: every kernel gives the same numbers and no warning, as of an overflow, is raised."""
    with_it, without = (
        json.loads(python("-W", "error", str(INTERPRETED), NUMBA_DISABLE_JIT=disabled)) for disabled in ("0", "1")
    )
    assert without["called"] == sorted(kernel_names())
    assert with_it["results"].keys() == without["results"].keys()
    for name, found in with_it["results"].items():
        (whole, rounded), (other_whole, other_rounded) = split(found), split(without["results"][name])
        assert whole == other_whole, name
        assert len(whole) + len(rounded) > 1, name
        # float32 kernels may sum in another precision.
        tolerance = {"rel": 1e-5, "abs": 1e-6} if name == "float32" else {"rel": 1e-14, "abs": 1e-13}
        assert rounded == pytest.approx(other_rounded, nan_ok=True, **tolerance), name


# ---- where the compiler may stand ----


def kernel_modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.stem == "kernels" or path.stem.endswith("_kernels"))


def kernel_names() -> list[str]:
    """Every function of a kernel module, as "module.function"."""
    return [
        f"{path.stem}.{node.name}"
        for path in kernel_modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]


def documented(tree: ast.AST) -> set[int]:
    """The docstrings of a module, by the identity of their nodes."""
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    return {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}


def faults(source: str, file: str) -> list[str]:
    """What is wrong with the way one file of the package compiles.

    A cached kernel is stale only when its own file changes, so kernel modules use nothing of ours but types.
    """
    is_kernels = Path(file).stem == "kernels" or Path(file).stem.endswith("_kernels")
    is_compiler = file == "ropegeo/engine/compiled.py"
    tree = ast.parse(source)
    docstrings = documented(tree)
    found = []
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        loaded: list[str] = []
        if isinstance(node, ast.Import):
            loaded = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            loaded = ["." * node.level + (node.module or "")]
        for module in loaded:
            if module.partition(".")[0] in ("numba", "llvmlite") and not is_compiler:
                found.append(f"{line}: imports {module}")
            if is_kernels and module.startswith((".", "ropegeo")) and module not in ALLOWED:
                found.append(f"{line}: a kernel module imports {module}")
        if is_kernels and isinstance(node, ast.FunctionDef) and [*map(ast.unparse, node.decorator_list)] != [MARK]:
            found.append(f"{line}: {node.name} is not compiled")
        words = [] if id(node) in docstrings else [word for _, word in ast.iter_fields(node) if isinstance(word, str)]
        if any("fastmath" in word for word in words):
            found.append(f"{line}: fastmath")
        if MARK in words and not (is_kernels or is_compiler):
            found.append(f"{line}: compiles outside a kernel module")
    return sorted(found)


MARK = "compiled"
ALLOWED = ("ropegeo._arrays", "ropegeo.engine.compiled")


@pytest.mark.slow
def test_kernels_compile_in_one_way() -> None:
    """Public case 65 and the engine's table of rooms: no `fastmath`, no other way in."""
    assert len(kernel_modules()) >= 5
    for path in PACKAGE.rglob("*.py"):
        file = path.relative_to(PACKAGE.parent).as_posix()
        assert faults(path.read_text(encoding="utf-8"), file) == [], file


FAKE = '''
"""No fastmath here."""
from numba.core import types
from ropegeo.engine.compiled import compile_seconds, compiled
from ropegeo.engine.planes import best_index_plane
from ropegeo._arrays import FloatArray

@compiled
def one() -> None:
    """Nor fastmath here."""

def two(**options: bool) -> None:
    two(fastmath=True)
    two(**{"fastmath": True})
'''


def test_another_way_is_caught() -> None:
    assert faults(FAKE, "ropegeo/engine/any.py") == [
        "13: fastmath",
        "14: fastmath",
        "3: imports numba.core",
        "4: compiles outside a kernel module",
        "8: compiles outside a kernel module",
    ]
    assert faults(FAKE, "ropegeo/engine/any_kernels.py") == [
        "12: two is not compiled",
        "13: fastmath",
        "14: fastmath",
        "3: imports numba.core",
        "5: a kernel module imports ropegeo.engine.planes",
    ]
    assert "3: imports numba.core" not in faults(FAKE, "ropegeo/engine/compiled.py")


# ---- who pays for it ----

ONE_PLANE = """
import sys
import ropegeo
import ropegeo.engine.routes
curve = ropegeo.margin_curve(ropegeo.index_head(ropegeo.preset("paper"), offset=3).profile, [1024, 10**30])
small = ropegeo.margin_curve(ropegeo.index_head(ropegeo.preset("paper"), offset=3, planes=(0, 1)).profile, [1024])
print(*(point.margin.digits(6) for point in curve.points), small.points[0].method, "numba" in sys.modules)
import ropegeo.engine.sweep
print("numba" in sys.modules)
"""


def test_one_plane_and_short_curves_load_no_compiler() -> None:
    assert python("-c", ONE_PLANE).split() == ["1.81736e-9", "7.11866e-60", "definition", "False", "True"]


def test_a_cache_that_cannot_be_written_costs_nothing_but_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk when numba saves: one notice, and the right result."""

    def double(value: int) -> int:
        return 2 * value

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(compiling, "_noticed", False)
    kernel = compiling.compiled(double)
    cache: Any = kernel
    monkeypatch.setattr(cache._cache, "_cache", SimpleNamespace(load_overload=full, save_overload=full))
    with pytest.warns(RuntimeWarning, match="cannot be cached") as notices:
        assert kernel(21) == 42
    assert len(notices) == 1
    assert not compiling.is_cached()

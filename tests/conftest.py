"""Shapes in annotations are checked in every test; what is not there is skipped by name."""

from __future__ import annotations

import importlib.util
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

# Before anything of ropegeo is imported: jaxtyping and beartype check every call of the rooms that carry arrays.
# Not `exact`, `tasks`, `claims` and `cli`, which hold none: their tests hand over wrong types on purpose.
# Nor compiled kernels (`kernels.py`, `*_kernels.py`): a wrapped function does not compile.
ROOMS = ("asymptotics", "construct", "engine", "heads", "limits", "optimal", "plots", "spectrum")
PACKAGE = Path(__file__).parents[1] / "ropegeo"
CHECKED = [
    ".".join(("ropegeo", *path.relative_to(PACKAGE).with_suffix("").parts))
    for room in ROOMS
    for path in (PACKAGE / room).rglob("*.py")
    if not path.stem.endswith("kernels") and path.stem != "__init__"
]
install_import_hook(CHECKED, "typecheck.typechecker")

SHARED = Path(__file__).parents[2] / "shared"

settings.register_profile("ropegeo", deadline=None, print_blob=True, derandomize=True, max_examples=75)
settings.load_profile("ropegeo")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip by name what this machine does not have; leave `slow` tests to `-m slow`."""
    has_models = importlib.util.find_spec("transformers") is not None and importlib.util.find_spec("torch") is not None
    chosen = config.option.markexpr
    for item in items:
        if "shared" in item.keywords and not SHARED.is_dir():
            item.add_marker(pytest.mark.skip(reason="needs the folder ../shared"))
        if "models" in item.keywords and not has_models:
            item.add_marker(pytest.mark.skip(reason="needs the extra `models`: pip install 'ropegeo[models]'"))
        if "slow" in item.keywords and "slow" not in chosen:
            item.add_marker(pytest.mark.skip(reason="slow: run with -m slow"))


@pytest.fixture
def shared() -> Path:
    """The folder ../shared."""
    return SHARED


@pytest.fixture
def command_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command runs in a folder of its own, without what the caller's terminal says."""
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "TERMINAL_WIDTH", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command prints; nothing goes to standard error, and rows for people are plain and fit 100 columns."""
    from ropegeo.cli import main  # not before the import hook

    def run(line: str, *, status: int = 0) -> str:
        code = main(shlex.split(line))
        out, err = capsys.readouterr()
        assert (code, err) == (status, ""), line
        if "--json" not in line:
            assert max((len(row) for row in out.splitlines()), default=0) <= 100, out
        assert "\x1b" not in out
        return out

    return run

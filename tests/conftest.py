"""Shapes in annotations are checked in every test; what is not there is skipped by name."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

# Before anything of ropegeo is imported: jaxtyping and beartype check every call of the rooms that carry arrays.
# Not `exact`, `tasks`, `claims` and `cli`, which hold none: their tests hand over wrong types on purpose.
# Nor compiled kernels (`kernels.py`, `*_kernels.py`): a wrapped function does not compile.
ROOMS = ("asymptotics", "construct", "engine", "heads", "plots", "spectrum")
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

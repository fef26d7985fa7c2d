"""Where derivations are found: inside an installed package, or beside the package in a checkout."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from ropegeo.claims.claim import Claim, Step
from ropegeo.errors import InvalidInputError, UnsupportedError

_PACKAGE = Path(__file__).parents[1]
_FILE = re.compile(r"d([0-9]{2})_([a-z0-9_]+)\.py")


@dataclass(frozen=True, eq=False, kw_only=True)
class Derivation:
    """A claim with its proof.

    Attributes:
        number: from the file's name.
        name: from the file's name.
        path: the file.
        claim: what is claimed.
        steps: yields the proof.
        check: holds the functions of ropegeo against the claim; raises `ClaimError`.
    """

    number: int
    name: str
    path: Path
    claim: Claim
    steps: Callable[[], Iterable[Step]]
    check: Callable[[], None]


def folder() -> Path:
    """The folder of derivations that belongs to this package: a checkout's, or the one that its wheel carries.

    One that happens to lie beside installed packages or in the working directory is never taken: files of it are run.

    Raises:
        UnsupportedError: there is none.
    """
    for path, is_ours in (
        (_PACKAGE.parent / "derivations", _is_checkout(_PACKAGE.parent)),
        (_PACKAGE / "derivations", True),
    ):
        if is_ours and path.is_dir():
            return path
    raise UnsupportedError("derivations: this installation does not carry them; install ropegeo from its wheel")


def _is_checkout(root: Path) -> bool:
    """Whether a folder is the source of ropegeo, and not one of installed packages."""
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return bool(project["name"] == "ropegeo")
    except (OSError, ValueError, LookupError, TypeError):
        return False


def claim_names() -> tuple[str, ...]:
    """Names of all claims, in the order of their numbers."""
    return tuple(_files())


def _files() -> dict[str, Path]:
    found = sorted((match[0], match[2], path) for path in folder().iterdir() if (match := _FILE.fullmatch(path.name)))
    return {name: path for _, name, path in found}


def load_claim(name: str) -> Derivation:
    """A claim by name (`dirichlet_bound` or `dirichlet-bound`) or number (`5` or `d05`).

    Raises:
        InvalidInputError: no such claim.
    """
    files = _files()
    wanted = name.strip().lower().replace("-", "_")
    if number := re.fullmatch(r"d?([0-9]{1,2})", wanted):
        wanted = next((key for key, path in files.items() if int(path.name[1:3]) == int(number[1])), wanted)
    if wanted not in files:
        raise InvalidInputError(f"derive: no claim is called {name[:60]!r}; 'ropegeo derive --list' names them all")
    return _load(files[wanted], wanted)


@cache
def _load(path: Path, name: str) -> Derivation:
    module_name = f"ropegeo_derivations.{path.stem}"
    spec = spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise UnsupportedError(f"derivations: {path.name} cannot be loaded")
    module = module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses and pickles of a module look it up there
    spec.loader.exec_module(module)
    return Derivation(
        number=int(path.name[1:3]), name=name, path=path, claim=module.CLAIM, steps=module.steps, check=module.check
    )

"""Where derivations are found: inside an installed package, or beside the package in a checkout."""

from __future__ import annotations

import re
import sys
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
    """The folder of derivations that belongs to this package, never one found elsewhere.

    Raises:
        UnsupportedError: there is none.
    """
    for path, marker in ((_PACKAGE / "derivations", _PACKAGE), (_PACKAGE.parent / "derivations", _pyproject())):
        if path.is_dir() and marker.exists():
            return path
    raise UnsupportedError("derivations: this installation does not carry them; install ropegeo from its wheel")


def _pyproject() -> Path:
    """What tells a checkout from a folder of installed packages."""
    return _PACKAGE.parent / "pyproject.toml"


def claim_names() -> tuple[str, ...]:
    """Names of all claims, in the order of their numbers."""
    return tuple(_files())


def _files() -> dict[str, Path]:
    found = sorted((match[0], match[2], path) for path in folder().iterdir() if (match := _FILE.fullmatch(path.name)))
    return {name: path for _, name, path in found}


@cache
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

"""Head files: one safetensors file with the matrices, and the recipe in its metadata.

Metadata key `ropegeo` holds a JSON object: the recipe's fields (`spectrum`, `offset`, `beta`, `layout`, ...) with
`schema` and `package_version`. A file is accepted only if the matrices rebuilt from the recipe are those in the file,
so a margin computed from the recipe is the margin of the matrices.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from ropegeo._version import __version__
from ropegeo.construct.built import BuiltHead
from ropegeo.construct.index import build_index
from ropegeo.construct.recipe import SCHEMA as RECIPE_SCHEMA
from ropegeo.construct.recipe import Recipe
from ropegeo.construct.reflexive import build_symbolic_reflexive
from ropegeo.construct.retrieval import build_retrieval
from ropegeo.errors import FileFormatError, InvalidInputError, RopegeoError
from ropegeo.files import write_atomically

SCHEMA = "ropegeo.head/1"
METADATA_KEY = "ropegeo"
MATRICES = ("w_q", "w_k", "w_v", "w_o", "embedding", "unembedding")
MAX_FILE_BYTES = 1 << 31
TOLERANCE = 1e-12
"""Largest difference accepted between stored and rebuilt matrices, relative to the largest entry: cosines of different
libraries differ in the last bit."""


def build(recipe: Recipe) -> BuiltHead:
    """The head of a recipe, whatever its mode."""
    if recipe.mode == "retrieval":
        return build_retrieval(recipe)
    return build_symbolic_reflexive(recipe) if recipe.mode == "symbolic_reflexive" else build_index(recipe)


def head_matrices(built: BuiltHead) -> dict[str, Any]:
    """The matrices of a built head by their names in the file, float64."""
    head = built.head
    return {
        "w_q": head.w_q,
        "w_k": head.w_k,
        "w_v": head.w_v,
        "w_o": head.w_o,
        "embedding": built.embedding,
        "unembedding": built.unembedding,
    }


def head_bytes(built: BuiltHead) -> bytes:
    """A head file as bytes."""
    metadata = built.recipe.to_dict() | {"schema": SCHEMA, "package_version": __version__}
    tensors = {name: np.ascontiguousarray(matrix) for name, matrix in head_matrices(built).items()}
    return bytes(save(tensors, metadata={METADATA_KEY: json.dumps(metadata, allow_nan=False)}))


def save_head(built: BuiltHead, path: str | Path, *, force: bool = False) -> None:
    """Write a head file, whole or not at all.

    Args:
        built: the head.
        path: destination; its folder must exist.
        force: overwrite an existing file.

    Raises:
        InvalidInputError: the destination cannot be written, or exists without `force`.
    """
    write_atomically([(Path(path), head_bytes(built))], force=force)


def load_head(path: str | Path) -> BuiltHead:
    """Read a head file that ropegeo wrote, and check it against its own recipe.

    Raises:
        InvalidInputError: no such file.
        FileFormatError: truncated, foreign, of another schema, or with matrices that its recipe does not give.
    """
    file = Path(path)
    shown = repr(str(path)[:120])
    try:
        if not file.is_file():
            raise InvalidInputError(
                f"head file {shown} does not exist or is not a file; write one with `ropegeo construct --output`"
            )
        if file.stat().st_size > MAX_FILE_BYTES:
            raise FileFormatError(
                f"head file {shown} is larger than {MAX_FILE_BYTES >> 30} GiB; it is not one of ropegeo's"
            )
        with safe_open(file, framework="numpy") as stream:
            metadata = _metadata(stream.metadata())
            recipe = Recipe.from_dict(metadata | {"schema": RECIPE_SCHEMA})
            stored = {name: stream.get_tensor(name) for name in MATRICES if name in stream.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        if isinstance(error, RopegeoError):
            raise
        raise FileFormatError(
            f"head file {shown} cannot be read as safetensors ({error}); write one with `ropegeo construct --output`"
        ) from error
    except FileFormatError as error:
        raise FileFormatError(f"head file {shown}: {error}") from error
    return _checked(recipe, stored, shown)


def _metadata(raw: dict[str, str] | None) -> dict[str, Any]:
    text = (raw or {}).get(METADATA_KEY)
    if text is None:
        raise FileFormatError(
            "no ropegeo metadata, so it is not a head that ropegeo built; write one with `ropegeo construct --output`"
        )
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"its metadata is not JSON ({error})") from error
    if not isinstance(metadata, dict) or metadata.get("schema") != SCHEMA:
        raise FileFormatError(
            f"expected schema {SCHEMA!r}, the file has another; use the version of ropegeo that wrote it"
        )
    return metadata


def _checked(recipe: Recipe, stored: dict[str, Any], shown: str) -> BuiltHead:
    try:
        built = build(recipe)
    except RopegeoError as error:
        raise FileFormatError(f"head file {shown}: its recipe cannot be built ({error})") from error
    for name, matrix in head_matrices(built).items():
        found = stored.get(name)
        if found is None or found.shape != matrix.shape or found.dtype != np.float64:
            raise FileFormatError(f"head file {shown}: matrix {name} is missing or not {matrix.shape} of float64")
        if not np.allclose(found, matrix, rtol=0, atol=TOLERANCE * np.abs(matrix).max()):
            raise FileFormatError(
                f"head file {shown}: matrix {name} is not the one its recipe gives; the file was altered"
            )
    return built

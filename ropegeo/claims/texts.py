"""The texts of claims: plain sentences with LaTeX between dollar signs."""

from __future__ import annotations

from typing import NamedTuple

from ropegeo.errors import InvalidInputError


class Piece(NamedTuple):
    """A run of plain text, or what stands between two dollar signs."""

    text: str
    is_math: bool


def pieces(text: str) -> list[Piece]:
    """A text cut at its dollar signs.

    Raises:
        InvalidInputError: an odd number of dollar signs, or nothing between two of them.
    """
    runs = text.split("$")
    if len(runs) % 2 == 0:
        raise InvalidInputError(f"text {text[:60]!r}: dollar signs come in pairs")
    if not all(run.strip() for run in runs[1::2]):
        raise InvalidInputError(f"text {text[:60]!r}: nothing stands between two of its dollar signs")
    return [Piece(run, bool(k % 2)) for k, run in enumerate(runs) if run]

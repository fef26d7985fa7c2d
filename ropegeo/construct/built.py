"""`BuiltHead`: a recipe with its matrices, vocabulary and exact profile."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from ropegeo._arrays import FloatArray, frozen
from ropegeo.construct.recipe import LETTER_MODES, MAX_TOKENS, Recipe
from ropegeo.errors import InvalidInputError
from ropegeo.heads import Head, LetterProfile, LogitProfile
from ropegeo.tasks import Bigram

Token = str | int | Bigram


@dataclass(frozen=True, eq=False, kw_only=True)
class BuiltHead:
    """A one-layer transformer made by hand: embedding, one head, optional residual, unembedding.

    Attributes:
        recipe: what it is made from.
        head: query, key, value and output matrices.
        tokens: the vocabulary, in the order of the rows of `embedding`.
        embedding: shape (tokens, d_model).
        unembedding: shape (tokens, d_model); the output token is the row with the largest product.
        residual: whether the layer returns x + a (attention added to its input) or a alone.
    """

    recipe: Recipe
    head: Head
    tokens: tuple[Token, ...]
    embedding: Float[FloatArray, "tokens d_model"]
    unembedding: Float[FloatArray, "tokens d_model"]
    residual: bool

    def __post_init__(self) -> None:
        for name in ("embedding", "unembedding"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float64))
            if getattr(self, name).shape != (len(self.tokens), self.head.d_model):
                raise InvalidInputError(f"BuiltHead: {name} must have one row of width d_model per token")

    @cached_property
    def profile(self) -> LogitProfile | LetterProfile:
        """What the head scores, exactly as the recipe says: see `index_profile` and `letter_profile`."""
        return letter_profile(self.recipe) if self.recipe.mode in LETTER_MODES else index_profile(self.recipe)


def index_profile(recipe: Recipe) -> LogitProfile:
    """beta * sum_k a_k cos((d - offset) theta_k + phase_k): without phases, real coefficients about the offset."""
    coefficients = (recipe.beta * recipe.plane_weights()).astype(np.complex128)
    coefficients[list(recipe.planes)] *= recipe.query_turns()
    return LogitProfile(
        spectrum=recipe.spectrum,
        coefficients=coefficients,
        origin=recipe.offset,
        max_offset=max(recipe.integers) if recipe.integers else None,
    )


def letter_profile(recipe: Recipe) -> LetterProfile:
    """beta * sum_k a_k cos(shift * m_k * omega + (d - centre) theta_k), m_k the multipliers."""
    return LetterProfile(
        spectrum=recipe.spectrum,
        weights=recipe.beta * recipe.plane_weights(),
        letters=len(recipe.letters),
        centre=recipe.centre,
        self_only=recipe.mode == "symbolic_reflexive",
        multipliers=recipe.letter_multipliers(),
    )


def one_hot(count: int) -> Float[FloatArray, "count count"]:
    """The identity: one token per row.

    Raises:
        InvalidInputError: a vocabulary too large to write as matrices.
    """
    if not 1 <= count <= MAX_TOKENS:
        raise InvalidInputError(f"a vocabulary of {count} tokens: matrices are written for 1 to {MAX_TOKENS}")
    return np.eye(count)

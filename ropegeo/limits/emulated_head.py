r"""A built head as it is handed to the emulation of a number format.

`vectors="unit"`: query and key have length 1, plane k of them sqrt(a_k) rho_k^-s P_k v_k and sqrt(a_k) v_k with unit
v_k (divided by the attention factor, which the rotation multiplies in), and beta is the scale of the dot product. Where
a beta is judged the argmax is that of the scaled logits, as the model has them: rounding after the scale may tie what
the products tell apart. Without one it is that of the products themselves: the lengths at which it fails are those of
docs/MATHEMATICS.md, section 8. Where they tie or fail they do at every scale, since rounding never changes an order.

`vectors="head"`: the columns of the head's own W_Q and W_K and its scale 1/sqrt(head_dim), so that beta lies in the
vectors, as in a model whose attention has that scale.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np
from jaxtyping import Float

from ropegeo._arrays import ComplexArray, FloatArray
from ropegeo.construct.built import BuiltHead
from ropegeo.construct.index import turned_back
from ropegeo.construct.recipe import LETTER_MODES, Recipe
from ropegeo.construct.retrieval import letter_code
from ropegeo.errors import InvalidInputError
from ropegeo.limits.rules import IndexQuery, Rule, index_queries

Vectors: TypeAlias = Literal["unit", "head"]


@dataclass(frozen=True, eq=False, kw_only=True)
class EmulatedHead:
    """A built head as it is handed to the emulation.

    Attributes:
        recipe: the head.
        rule: of the softmax weight.
        queries: what it is asked, by offset; empty for heads that match letters.
        beta: the scale that weights are judged at, or None where they are not.
        window: sliding window in positions, or None.
        vectors: `unit` or `head`, see the module.

    Raises:
        InvalidInputError: another word for `vectors`.
    """

    recipe: Recipe
    rule: Rule
    queries: tuple[IndexQuery, ...]
    beta: float | None = None
    window: int | None = None
    vectors: Vectors | str = "unit"

    def __post_init__(self) -> None:
        if self.vectors not in get_args(Vectors):
            raise InvalidInputError(
                f"EmulatedHead: vectors {self.vectors!r} are unknown; use {' or '.join(get_args(Vectors))}"
            )

    @classmethod
    def of(
        cls,
        built: BuiltHead,
        *,
        rule: Rule,
        offset: int | None = None,
        beta: float | None = None,
        window: int | None = None,
        vectors: Vectors | str = "unit",
    ) -> EmulatedHead:
        """A built head, ready for the emulation.

        Args:
            built: the head.
            rule: of the softmax weight.
            offset: of a token-conditional head, the one query to ask; all of them if not given.
            beta: the scale that weights are judged at; they are not if it is not given.
            window: sliding window in positions.
            vectors: `unit` or `head`, see the module.

        Returns:
            The head with its queries; none for a head that matches letters.

        Raises:
            InvalidInputError: another word for `vectors`, or an offset that is not one of the head's.
        """
        queries = () if built.recipe.mode in LETTER_MODES else index_queries(built.recipe, offset)
        return cls(recipe=built.recipe, rule=rule, queries=queries, beta=beta, window=window, vectors=vectors)

    def at(self, beta: float) -> EmulatedHead:
        """The head at another scale."""
        return replace(self, beta=beta)

    @property
    def scale(self) -> float:
        """Factor on the dot product."""
        if self.vectors == "head":
            return self.recipe.scale
        return 1.0 if self.beta is None else self.beta

    def key(self) -> Float[FloatArray, " head_dim"]:
        """Content of every key of an index head."""
        return self._scaled.spectrum.from_planes(self._scaled.vector())

    def query(self, offset: int) -> Float[FloatArray, " head_dim"]:
        """Content of a query that aims at an offset."""
        return turned_back(self._scaled, offset)

    def letter_keys(self) -> Float[FloatArray, "letters head_dim"]:
        """Content of a key of each letter, of a head that matches letters."""
        return self._scaled.spectrum.from_planes(self._letter_codes())

    def letter_queries(self) -> Float[FloatArray, "letters head_dim"]:
        """Content of a query that looks for each letter and is centred, if the head is."""
        centring = np.exp(-1j * self.recipe.spectrum.phases_at(self.recipe.centre))
        return self._scaled.spectrum.from_planes(self._letter_codes() * centring)

    def _letter_codes(self) -> ComplexArray:
        return np.stack([letter_code(self._scaled, phi) for phi in range(1, len(self.recipe.letters) + 1)])

    @property
    def unit(self) -> float:
        """What a perfect match scores."""
        if self.vectors == "unit":
            return self.scale
        return self.recipe.beta if self.beta is None else self.beta

    @property
    def _scaled(self) -> Recipe:
        """The recipe whose vectors have the length asked for: |v|^2 = beta/scale, which is 1 for beta = scale."""
        if self.vectors == "unit":
            return replace(self.recipe, beta=self.recipe.scale)
        return self.recipe if self.beta is None else replace(self.recipe, beta=self.beta)

r"""What a head must do to be right: the rule of decision, and the questions that a head is asked.

A *query* of an index head aims at one offset s. Its *sum* is S = sum over the rivals t != 0 of exp(-beta gap(t)), the
target's weight w = 1/(1 + S), and a rule holds a number against S:

* `majority`: the read-out of the built head is right for every input iff S < 1 for an integer query (w > 1/2), S < 3
  for a letter query, which looks at itself (w > 1/4), S < 1/3 for a fixed offset s > 0 (w > 3/4); proofs in
  `ropegeo.engine.softmax`;
* `weight>=p`: the target has at least the weight p, S <= (1 - p)/p, whatever is read out.

Every gap of a head whose argmax is right is positive, so S grows strictly with the length: whether the rule says `<`
or `<=` matters only where S is the threshold exactly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from ropegeo.construct.recipe import LETTER_MODES, Recipe
from ropegeo.errors import InvalidInputError
from ropegeo.exact import parse_decimal, short

QueryKind: TypeAlias = Literal["integer", "letter", "fixed"]
MAJORITY: dict[QueryKind, Fraction] = {"integer": Fraction(1), "letter": Fraction(3), "fixed": Fraction(1, 3)}
"""The sum at which the read-out of each kind of query ties at worst."""
_WEIGHT = re.compile(r"\s*weight\s*>=?\s*(\S+)\s*", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How much weight the right position needs.

    Attributes:
        weight: the weight p to reach, or None for `majority`.

    Raises:
        InvalidInputError: a weight that is not strictly between 0 and 1.

    Example:
        >>> Rule.read("weight>=0.9").threshold("letter")
        Fraction(1, 9)
    """

    weight: Fraction | None = None

    def __post_init__(self) -> None:
        if self.weight is not None and not 0 < self.weight < 1:
            raise InvalidInputError(f"rule: the weight {float(self.weight):g} must lie strictly between 0 and 1")

    @classmethod
    def read(cls, text: str) -> Rule:
        """`majority`, or `weight>=p` with a decimal p; `>` means the same, see the module.

        Raises:
            InvalidInputError: anything else.
        """
        if text.strip() == "majority":
            return cls()
        found = _WEIGHT.fullmatch(text)
        if found is None:
            raise InvalidInputError(f"rule {text.strip()[:40]!r} is unknown; use majority or 'weight>=0.9'")
        try:
            return cls(weight=Fraction(parse_decimal(found[1])))
        except InvalidInputError as error:
            raise InvalidInputError(f"rule {text.strip()[:40]!r}: {error}") from error

    def threshold(self, kind: QueryKind) -> Fraction:
        """The sum S that a query of a kind must stay below."""
        return MAJORITY[kind] if self.weight is None else (1 - self.weight) / self.weight

    def __str__(self) -> str:
        """As it is read."""
        return "majority" if self.weight is None else f"weight>={float(self.weight):g}"


@dataclass(frozen=True, kw_only=True)
class IndexQuery:
    """One question of an index head.

    Attributes:
        offset: the distance aimed at.
        kind: what asks: an integer, a letter, or any token of a head with a fixed offset above 0.
    """

    offset: int
    kind: QueryKind

    def __str__(self) -> str:
        """For people."""
        if self.kind == "integer":
            return f"integer {short(self.offset)}"
        return "a letter" if self.kind == "letter" else f"offset {short(self.offset)}"


def index_queries(recipe: Recipe, offset: int | None = None) -> tuple[IndexQuery, ...]:
    """The queries of an index head, by offset: its one offset, or those of a letter and of every integer.

    Args:
        recipe: of mode `index`, `token_index` or `reflexive`.
        offset: of a token-conditional head, only this query.

    Raises:
        InvalidInputError: a head that matches letters, or an offset that is not one of the head's.
    """
    if recipe.mode in LETTER_MODES:
        raise InvalidInputError(f"index_queries: a {recipe.mode} head matches letters and aims at no offset")
    if recipe.mode != "token_index":
        if offset not in (None, recipe.offset):
            raise InvalidInputError(f"index_queries: the head has the fixed offset {short(recipe.offset)}")
        return (IndexQuery(offset=recipe.offset, kind="fixed" if recipe.offset else "letter"),)
    every = (
        IndexQuery(offset=0, kind="letter"),
        *(IndexQuery(offset=number, kind="integer") for number in sorted(recipe.integers)),
    )
    if offset is None:
        return every
    asked = tuple(query for query in every if query.offset == offset)
    if not asked:
        raise InvalidInputError(
            f"index_queries: offset {short(offset)} is not one of the head's integers (0: a letter)"
        )
    return asked

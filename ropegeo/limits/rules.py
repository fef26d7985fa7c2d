r"""What a head must do to be right: the rule of decision, the questions that a head is asked, and why it may fail.

A *query* of an index head aims at one offset s. Its *sum* is S = sum over the rivals t != 0 of exp(-beta gap(t)), the
target's weight w = 1/(1 + S), and a rule holds a number against S:

* `majority`: the read-out of the built head is right for every input iff S < 1 for an integer query (w > 1/2), S < 3
  for a letter query, which looks at itself (w > 1/4), S < 1/3 for a fixed offset s > 0 (w > 3/4); proofs in
  `ropegeo.engine.softmax`;
* `weight>=p`: the target has at least the weight p, S <= (1 - p)/p, whatever is read out.

Every gap of a head whose argmax is right is positive, so S grows strictly with the length: whether the rule says `<`
or `<=` matters only where S is the threshold exactly.

Where the sum is what fails, its largest term says why (`sum_cause`): with one rival t, |t| > 1, whose term is more than
half of the sum, or reaches the threshold alone where all the others together do not, it is that rival's near return;
else it takes several, and the cause is dispersion. A neighbour, |t| = 1, does not return: where it is the largest the
planes are slow, and its neighbours follow.
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
Cause: TypeAlias = Literal["rounding", "near return", "tie", "dispersion", "overflow", "window"]
CAUSES: dict[Cause, str] = {
    "rounding": "the format's rounding does it: exact arithmetic tells that rival apart better than the runner-up, or "
    "gives the target enough weight there",
    "near return": "the planes come near to where they were (letters: a step on), so the exact margin is tiny or gone, "
    "or that one rival takes too much of the weight",
    "tie": "the planes come back exactly: the rival's logit is the target's",
    "dispersion": "the target scores highest, but several rivals together leave it too little weight",
    "overflow": "a number leaves the range of the format",
    "window": "the target lies outside the sliding window",
}
"""What stops a head, in a sentence each."""
LEAST_WEIGHT = Fraction(1, 10**12)
"""A rule asks for at least this weight, and for at most 1 less it: sums and weights in float64 tell no more."""
_WEIGHT = re.compile(r"\s*weight\s*>=?\s*(\S+)\s*", re.ASCII)
_RATIO = re.compile(r"(\d{1,300})/(\d{1,300})", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How much weight the right position needs.

    Attributes:
        weight: the weight p to reach, or None for `majority`.

    Raises:
        InvalidInputError: a weight that is not strictly between 0 and 1, or nearer to them than `LEAST_WEIGHT`.

    Example:
        >>> Rule.read("weight>=0.9").threshold("letter")
        Fraction(1, 9)
        >>> str(Rule.read("weight > 0.99999999")), str(Rule(weight=Fraction(2, 3)))
        ('weight>=0.99999999', 'weight>=2/3')
    """

    weight: Fraction | None = None

    def __post_init__(self) -> None:
        if self.weight is not None and not 0 < self.weight < 1:
            raise InvalidInputError(f"rule: the weight {_exact_text(self.weight)} must lie strictly between 0 and 1")
        if self.weight is not None and not LEAST_WEIGHT <= self.weight <= 1 - LEAST_WEIGHT:
            raise InvalidInputError(f"rule: the weight {_exact_text(self.weight)} must lie from 1e-12 to 1 - 1e-12")

    @classmethod
    def read(cls, text: str) -> Rule:
        """`majority`, or `weight>=p` with p a decimal or a ratio `1/3`; `>` means the same, see the module.

        Raises:
            InvalidInputError: anything else.
        """
        if text.strip() == "majority":
            return cls()
        found = _WEIGHT.fullmatch(text)
        if found is None:
            raise InvalidInputError(f"rule {text.strip()[:40]!r} is unknown; use majority or 'weight>=0.9'")
        try:
            ratio = _RATIO.fullmatch(found[1])
            if ratio is not None and int(ratio[2]):
                return cls(weight=Fraction(int(ratio[1]), int(ratio[2])))
            return cls(weight=parse_decimal(found[1]))
        except InvalidInputError as error:
            raise InvalidInputError(f"rule {text.strip()[:40]!r}: {error}") from error

    def threshold(self, kind: QueryKind) -> Fraction:
        """The sum S that a query of a kind must stay below."""
        return MAJORITY[kind] if self.weight is None else (1 - self.weight) / self.weight

    def __str__(self) -> str:
        """As it is read, without loss of a digit."""
        return "majority" if self.weight is None else f"weight>={_exact_text(self.weight)}"


def sum_cause(rival: int, term: float, total: float, threshold: float) -> Cause:
    """Why a sum over rivals is too large: the return of one of them, or all together.

    Args:
        rival: displacement t of the largest term.
        term: exp(-beta gap(t)).
        total: S.
        threshold: what S must stay below.

    Source: ours; module.

    Example:
        >>> sum_cause(44, 0.855, 1.2, 1 / 3), sum_cause(44, 0.2, 0.5, 1 / 3), sum_cause(1, 0.9, 1.0, 1 / 3)
        ('near return', 'dispersion', 'dispersion')
    """
    alone = 2 * term > total or total - term < threshold <= term
    return "near return" if abs(rival) > 1 and alone else "dispersion"


def _exact_text(value: Fraction) -> str:
    """A fraction as a decimal where it is one of at most 60 digits (or one times a power of ten), else as a ratio."""
    digits, power = value.numerator, 0
    rest = value.denominator
    twos = (rest & -rest).bit_length() - 1
    rest >>= twos
    fives = 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        return _short_ratio(value)
    power = max(twos, fives)
    digits = value.numerator * 2 ** (power - twos) * 5 ** (power - fives)
    if abs(digits) >= 10**60:
        return short(value.numerator) if power == 0 else _short_ratio(value)
    text = str(abs(digits))
    sign = "-" if value < 0 else ""
    if power > 60:
        return f"{sign}{text}e-{power}"
    text = text.rjust(power + 1, "0")
    return sign + (f"{text[: len(text) - power]}.{text[len(text) - power :]}" if power else text)


def _short_ratio(value: Fraction) -> str:
    ends = value.numerator, value.denominator
    exact = max(map(abs, ends)) < 10**300
    return "/".join(str(end) if exact else short(end) for end in ends)


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

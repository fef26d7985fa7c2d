"""`MarginCurve`: by how much a head wins, at each length, with the route and the error of every number.

*Margin* is signed: the largest logit among positions that hold the right token minus the largest among positions
whose token differs, in units of beta. It is the *discrepancy* of Urrutia et al. (which has nothing to do with that of
equidistribution) where the head is right and no copy of the answer is runner-up. `best` and `worst` are its largest
and smallest value over a named class of inputs of that length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import index
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from ropegeo._arrays import BoolArray, FloatArray
from ropegeo.engine.route_names import BOUND
from ropegeo.errors import FileFormatError, InvalidInputError
from ropegeo.exact import Enclosure, read_safe_integer, safe_integer, short
from ropegeo.exact.enclosure import DOUBLE_DIGITS
from ropegeo.heads import LogitProfile

SCHEMA = "ropegeo.margin_curve/1"
MAX_LENGTH = 10**1000
MAX_DIGITS = 1000


def status_of(margin: Enclosure) -> str:
    """`wins`, `tie` (exactly 0), `fails`, or `undecided` where the error is larger than the margin."""
    return {1: "wins", 0: "tie", -1: "fails", None: "undecided"}[margin.sign]


@dataclass(frozen=True, kw_only=True)
class MarginPoint:
    """The margin at one length.

    Attributes:
        length: n, number of visible positions.
        margin: the curve's own margin, in units of beta.
        best: largest margin over the curve's class of inputs, or None where no route reaches it.
        worst: smallest margin over the class.
        at: displacement t = d - s of the runner-up from the target.
        method: the route taken, one of `routes.ROUTES`.
    """

    length: int
    margin: Enclosure
    best: Enclosure | None
    worst: Enclosure
    at: int
    method: str

    @property
    def status(self) -> str:
        """As `status_of`; `bound` where only an upper bound is known."""
        return "bound" if self.method == BOUND else status_of(self.margin)

    def to_dict(
        self, digits: int = DOUBLE_DIGITS, written: Callable[[Enclosure, str], dict[str, Any]] | None = None
    ) -> dict[str, Any]:
        """JSON-ready form; integers above 2**53 are texts, so that no reader rounds them.

        Args:
            digits: significant digits to write where they are proved.
            written: another way to `Enclosure.to_dict`, of a value and its name.
        """
        write = written or (lambda value, name: value.to_dict(name, digits))
        row: dict[str, Any] = {"length": safe_integer(self.length)}
        row |= write(self.margin, "margin")
        row["abs_error"] = row.pop("margin_abs_error")
        row |= {"best": None, "best_digits": None, "best_abs_error": None}
        if self.best is not None:
            row |= write(self.best, "best")
        row |= write(self.worst, "worst")
        return row | {"at": safe_integer(self.at), "status": self.status, "method": self.method}

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> MarginPoint:
        """Read what `to_dict` wrote.

        Raises:
            FileFormatError: a missing or malformed field.
        """
        try:
            named = {**row, "margin_abs_error": row["abs_error"]}
            return cls(
                length=read_safe_integer(row["length"]),
                margin=Enclosure.from_dict(named, "margin"),
                best=None if row["best"] is None else Enclosure.from_dict(named, "best"),
                worst=Enclosure.from_dict(named, "worst"),
                at=read_safe_integer(row["at"]),
                method=str(row["method"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise FileFormatError(f"margin curve: a row is missing a field or has a wrong one ({error})") from error


@dataclass(frozen=True, kw_only=True)
class MarginCurve:
    """Margins of one head at several lengths.

    Attributes:
        points: one per length, increasing.
        margin_of: what `margin` is the margin of.
        inputs: the class that `best` and `worst` range over.
        beta: logit units per unit of margin.
        complete_to: if the points are all steps of a staircase up to some length, that length; else None.
    """

    points: tuple[MarginPoint, ...]
    margin_of: str
    inputs: str
    beta: float
    complete_to: int | None = None

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths, as exact integers."""
        return tuple(point.length for point in self.points)

    @property
    def margin(self) -> Float[FloatArray, " lengths"]:
        """Nearest doubles of the margins."""
        return np.array([float(point.margin) for point in self.points])

    @property
    def abs_error(self) -> Float[FloatArray, " lengths"]:
        """Bound on the error of each entry of `margin`."""
        return np.array([point.margin.abs_error for point in self.points])

    def to_dict(self, digits: int = DOUBLE_DIGITS) -> dict[str, Any]:
        """JSON-ready form."""
        known: dict[tuple[int, str], dict[str, Any]] = {}

        def written(value: Enclosure, name: str) -> dict[str, Any]:
            """A staircase hands out one value for many lengths: its digits are worked out once."""
            if (id(value), name) not in known:
                known[id(value), name] = value.to_dict(name, digits)
            return known[id(value), name]

        return {
            "schema": SCHEMA,
            "unit": "beta",
            "beta": self.beta,
            "margin_of": self.margin_of,
            "inputs": self.inputs,
            **({} if self.complete_to is None else {"complete_to": safe_integer(self.complete_to)}),
            "rows": [point.to_dict(digits, written) for point in self.points],
        }

    @classmethod
    def from_dict(cls, data: Any) -> MarginCurve:
        """Read what `to_dict` wrote.

        Raises:
            FileFormatError: a wrong schema, a missing or malformed field.
        """
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise FileFormatError(f"margin curve: expected schema {SCHEMA!r}")
        try:
            complete_to = data.get("complete_to")
            return cls(
                points=tuple(MarginPoint.from_dict(row) for row in data["rows"]),
                margin_of=str(data["margin_of"]),
                inputs=str(data["inputs"]),
                beta=float(data["beta"]),
                complete_to=None if complete_to is None else read_safe_integer(complete_to),
            )
        except FileFormatError:
            raise
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise FileFormatError(f"margin curve: a field is missing or wrong ({error})") from error


def per_input(logits: Float[FloatArray, " n"], is_answer: Bool[BoolArray, " n"]) -> float:
    """The signed margin of one input and query, by definition, in the units of `logits`.

    Args:
        logits: of the visible positions.
        is_answer: which of them hold the right token.

    Returns:
        max over answers - max over the others; 0 or below where the head fails.

    Raises:
        InvalidInputError: no answer, or nothing to win against.

    Source: docs/MATHEMATICS.md, section 4; the repaired form of Definition 3.1 of arXiv 2605.31558.

    Example:
        >>> per_input(np.array([0.5, 2.0, 1.0]), np.array([False, True, False]))
        1.0
    """
    if is_answer.dtype != np.bool_ or np.isnan(logits).any():
        raise InvalidInputError("per_input: is_answer must be a boolean mask, and no logit NaN")
    if not is_answer.any() or is_answer.all():
        raise InvalidInputError("per_input: needs at least one position with the answer and one with another token")
    return float(logits[is_answer].max() - logits[~is_answer].max())


def check_digits(call: str, digits: int) -> int:
    """The number of digits to prove.

    Raises:
        InvalidInputError: not an integer from 1 to `MAX_DIGITS`.
    """
    try:
        count = index(digits)
    except TypeError as error:
        raise InvalidInputError(f"{call}: digits {digits!r} must be an integer") from error
    if not 1 <= count <= MAX_DIGITS:
        raise InvalidInputError(f"{call}: digits {count} must lie between 1 and {MAX_DIGITS}")
    return count


def check_profile(call: str, profile: object) -> LogitProfile:
    """The profile, if it is one of a query content and a key content.

    Raises:
        InvalidInputError: something else.
    """
    if not isinstance(profile, LogitProfile):
        raise InvalidInputError(
            f"{call}: needs a LogitProfile, not a {type(profile).__name__}; use .profile of a head, or .profile(shift) "
            "of a LetterProfile"
        )
    return profile


def check_lengths(call: str, lengths: Sequence[int]) -> tuple[int, ...]:
    """Lengths as a tuple of ints.

    Raises:
        InvalidInputError: none given, no integers, below 2 (nothing to win against), above 10**1000, or not in
            increasing order.
    """
    try:
        checked = tuple(index(length) for length in lengths)
    except TypeError as error:
        raise InvalidInputError(f"{call}: lengths must be a sequence of integers ({error})") from error
    if not checked:
        raise InvalidInputError(f"{call}: give at least one length")
    for length in checked:
        if length < 2:
            raise InvalidInputError(
                f"{call}: length {length} must be at least 2: with one position there is nothing to win against"
            )
        if length > MAX_LENGTH:
            raise InvalidInputError(f"{call}: a length is above 10^1000, the largest that is computed")
    for before, length in pairwise(checked):
        if length < before:
            raise InvalidInputError(
                f"{call}: lengths must be in increasing order; {short(length)} comes after {short(before)}: sort them"
            )
    return checked


def check_target(call: str, target: int, lengths: Sequence[int]) -> int:
    """The distance of the answer, if it is inside every length.

    Raises:
        InvalidInputError: no integer, negative, or not below a length.
    """
    try:
        target = index(target)
    except TypeError as error:
        raise InvalidInputError(f"{call}: target distance {target!r} must be an integer") from error
    if target < 0:
        raise InvalidInputError(f"{call}: target distance {short(target)} must not be negative")
    for length in lengths:
        if length <= target:
            raise InvalidInputError(
                f"{call}: offset {short(target)} needs a length above it; length {short(length)} is too short"
            )
    return target

"""A claim, and the steps of its derivation.

A file of the folder `derivations` holds one claim: `CLAIM` says what holds, where and by which source; `steps()` yields
the proof, each step with what the machine found; `check()` ties the claim to the functions of ropegeo that use it.
Texts are plain sentences with LaTeX between dollar signs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from ropegeo.errors import InvalidInputError, RopegeoError


class ClaimError(RopegeoError):
    """A step or a tie of a derivation that does not hold."""


class Status(StrEnum):
    """What is known of a statement."""

    PROVED = "proved"
    """Proved here, no theorem is cited."""
    IN_SCOPE = "holds in scope"
    """True under a condition that the source does not state, or states otherwise; the condition is the scope."""
    REPAIRED = "fails as stated, repaired"
    """A counterexample is given, and the repaired statement is proved, but for theorems that are cited, if any."""
    CITED = "cited"
    """Proved but for a theorem that is cited, by name and place."""


class Kind(StrEnum):
    """How a step is known."""

    SYMBOLIC = "symbolic"
    """Algebra for all values of the symbols, by sympy."""
    EXACT = "exact"
    """Rational or algebraic arithmetic, or every case of a finite set."""
    BALL = "ball"
    """Ball arithmetic: the result is an enclosure; the text says why it covers every case."""
    ARGUMENT = "argument"
    """A proof in words; the machine runs none of it."""
    CITED = "cited"
    """A theorem from elsewhere."""
    COUNTEREXAMPLE = "counterexample"
    """An exact or certified case in which the statement as printed is false."""


MACHINE_KINDS = frozenset({Kind.SYMBOLIC, Kind.EXACT, Kind.BALL, Kind.COUNTEREXAMPLE})


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a derivation.

    Attributes:
        kind: how it is known.
        title: a few words.
        text: what is shown, with the numbers seen.
        holds: what the machine found; True for words and citations.
        source: of a cited theorem, its author, year and number.
    """

    kind: Kind
    title: str
    text: str
    holds: bool = True
    source: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.holds, bool):
            raise InvalidInputError(f"step {self.title!r}: holds must be True or False, not {self.holds!r}")
        if (self.kind is Kind.CITED) != bool(self.source):
            raise InvalidInputError(f"step {self.title!r}: a cited step, and no other, names a source")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a derivation is about.

    Attributes:
        title: one line of plain text.
        statement: what holds, as it is proved.
        source: section of docs/MATHEMATICS.md, paper and equation.
        scope: for which values it is proved.
        status: what is known of the statement in the source.
        ties: dotted names of the functions that `check()` holds against the claim.
        as_stated: what the source prints, where that is not what holds.
        cause: why the printed statement fails, in neutral words.
    """

    title: str
    statement: str
    source: str
    scope: str
    status: Status
    ties: tuple[str, ...]
    as_stated: str = ""
    cause: str = ""

    def __post_init__(self) -> None:
        if not (self.title and self.statement and self.source and self.scope and self.ties):
            raise InvalidInputError(f"claim {self.title!r}: title, statement, source, scope and ties are all needed")
        differs = bool(self.as_stated and self.cause)
        if self.status is Status.REPAIRED and not differs:
            raise InvalidInputError(f"claim {self.title!r}: a repaired claim says as_stated and cause")
        if self.status in (Status.PROVED, Status.CITED) and (self.as_stated or self.cause):
            raise InvalidInputError(f"claim {self.title!r}: what holds as stated has neither as_stated nor cause")


def require(holds: bool, what: str) -> None:
    """End a check that does not hold.

    Raises:
        ClaimError: `holds` is not true.
    """
    if not holds:
        raise ClaimError(what)


def refuses(call: Callable[..., object], *arguments: object, **named: object) -> bool:
    """Whether a call says that what it is asked lies outside its scope."""
    try:
        call(*arguments, **named)
    except InvalidInputError:
        return True
    return False


def symbolic(title: str, text: str, *, holds: bool) -> Step:
    """A step that sympy decides for all values of its symbols (see `vanishes`)."""
    return Step(kind=Kind.SYMBOLIC, title=title, text=text, holds=holds)


def exact(title: str, text: str, *, holds: bool) -> Step:
    """A step of rational or algebraic arithmetic, or of every case of a finite set."""
    return Step(kind=Kind.EXACT, title=title, text=text, holds=holds)


def ball(title: str, text: str, *, holds: bool) -> Step:
    """A step decided by an enclosure; the text says why it covers every case that the claim is about."""
    return Step(kind=Kind.BALL, title=title, text=text, holds=holds)


def argument(title: str, text: str) -> Step:
    """A step in words."""
    return Step(kind=Kind.ARGUMENT, title=title, text=text)


def cited(title: str, text: str, *, source: str) -> Step:
    """A theorem from elsewhere: what it says, and where it stands."""
    return Step(kind=Kind.CITED, title=title, text=text, source=source)


def counterexample(title: str, text: str, *, holds: bool) -> Step:
    """A case in which the printed statement is false; `holds` is that it is."""
    return Step(kind=Kind.COUNTEREXAMPLE, title=title, text=text, holds=holds)

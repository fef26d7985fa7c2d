r"""`Limit`: everything that stops one head, side by side, and one sentence of verdict.

A head as built is asked in four ways, each with the first length at which it fails:

* *argmax*: in exact arithmetic, does the target score highest? (`argmax`, `letters`)
* *softmax*: at a scale beta, does the target get the weight that a rule asks for? (`softmax`, `letters`)
* *formats*: with the arithmetic of a number format, rotated at absolute positions (`formats`)
* *window*: with a sliding window of W positions, query i sees the keys i - W < j <= i: a distance of W or more is out
  of reach at every length, and with a smaller one the head at length n is the one at length min(n, W) without a window.

The last statement gives the exact rows their window: what fails first at a length above W never fails. It holds in
exact arithmetic only. Number formats rotate at absolute positions, and their errors grow with them: formats are judged
at every query position up to the length, whatever W is.

A length n is judged by every row that counts. It is *right* if each says so: it was looked at as far as n, and what
fails fails from a later length on. It *fails* if a row says so. Otherwise, with a row that was not searched to n, or
one that rounding leaves open there, it is *not decided*, and `holds` is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ropegeo.asymptotics.bounds import softmax_length_bound
from ropegeo.construct.built import BuiltHead
from ropegeo.exact import safe_integer, short
from ropegeo.heads import LogitProfile
from ropegeo.limits.argmax import ArgmaxLimit
from ropegeo.limits.formats import FormatLimit
from ropegeo.limits.rules import CAUSES, Cause, IndexQuery, Rule
from ropegeo.limits.scale_search import ScaleSearch
from ropegeo.limits.softmax import SoftmaxLimit

SCHEMA = "ropegeo.limit/1"
LADDER = (10.0, 1e2, 1e3, 1e4, 1e5, 1e6)
"""Scales that are shown where none is asked for."""
Known: TypeAlias = Literal["exact", "certified", "emulated", "estimate"]
KNOWN: dict[Known, str] = {
    "exact": "decided in exact or ball arithmetic",
    "certified": "computed with an error that is too small to matter",
    "emulated": "the format's arithmetic, bit by bit, at every query position",
    "estimate": "the error leaves more than one length open",
}
NOT_EMULATED = (
    "number formats: not emulated are tensor cores that truncate sums, other orders of the sums, and softmax weights "
    "and values in 16 bits; from the first wrong length on some lengths may be right again"
)
"""What the word emulated does not cover."""


@dataclass(frozen=True, kw_only=True)
class LimitRow:
    """One thing that may stop a head.

    Attributes:
        what: for people.
        first_failing_length: the first length that fails, or None.
        searched: the largest length looked at, the failing one where there is one; None: known for every length.
        cause: one of `rules.CAUSES`, or None where nothing fails.
        known: how the row is known.
        note: more on it; may be empty.
        judged: whether the row counts when a length is judged (not one scale of many that are only shown).
        at_most: the first length that certainly fails: `first_failing_length`, unless that is an estimate; or None.
    """

    what: str
    first_failing_length: int | None
    searched: int | None
    cause: Cause | None
    known: Known
    note: str = ""
    judged: bool = True
    at_most: int | None = None

    def fails_at(self, length: int) -> bool:
        """Whether the row says that a length fails."""
        return self.at_most is not None and self.at_most <= length

    @property
    def right_to(self) -> int | None:
        """The largest length that the row says is right (if its queries fit it); None: every length."""
        return self.searched if self.first_failing_length is None else self.first_failing_length - 1

    def reaches(self, length: int) -> bool:
        """Whether the row says that a length is right."""
        return self.right_to is None or length <= self.right_to

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "what": self.what,
            "first_failing_length": _number(self.first_failing_length),
            "first_failing_at_most": _number(self.at_most),
            "searched": _number(self.searched),
            "cause": self.cause,
            "known": self.known,
            "note": self.note,
            "judged": self.judged,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Limit:
    """What stops a head, and where.

    Attributes:
        built: the head.
        queries: what it is asked, by offset; empty for heads that match letters.
        rule: what the softmax weight is held against.
        beta: the scale that is judged, or None where several are only shown.
        length: the length that is judged, or None.
        window: the sliding window, or None.
        argmax: in exact arithmetic.
        softmax: at `beta`, or at each of `LADDER`.
        scale: beta_min(length), or None where no length is judged or no scale is enough.
        scale_note: why there is no scale, or empty.
        formats: by format and mode.
        window_fails: the first length at which the window hides the target, or None.
        search: for a scale that is right in a number format, or None.
    """

    built: BuiltHead
    queries: tuple[IndexQuery, ...]
    rule: Rule
    beta: float | None
    length: int | None
    window: int | None
    argmax: ArgmaxLimit
    softmax: tuple[SoftmaxLimit, ...]
    scale: float | None
    scale_note: str
    formats: tuple[FormatLimit, ...]
    window_fails: int | None
    search: ScaleSearch | None = None

    def rows(self) -> tuple[LimitRow, ...]:
        """One row a limit."""
        return (
            *self._window_rows(),
            self._argmax_row(),
            *map(self._softmax_row, self.softmax),
            *self._format_rows(),
            *self._search_rows(),
        )

    @property
    def first_failure(self) -> LimitRow | None:
        """The row that fails at the smallest length, of those that are judged."""
        failing = [row for row in self.rows() if row.judged and row.first_failing_length is not None]
        return min(failing, key=lambda row: row.first_failing_length or 0, default=None)

    @property
    def holds(self) -> bool | None:
        """Whether the length asked for is right by every row that is judged.

        Returns:
            None where no length is asked for, and where a row does not decide it and none fails.
        """
        if self.length is None:
            return None
        judged = [row for row in self.rows() if row.judged]
        if any(row.fails_at(self.length) for row in judged):
            return False
        return True if all(row.reaches(self.length) for row in judged) else None

    def verdict(self) -> str:
        """One sentence."""
        judged, n = [row for row in self.rows() if row.judged], self.length
        ends = [(row.right_to, row) for row in judged if row.right_to is not None]
        last, first = min(ends, key=lambda end: end[0], default=(None, None))
        if n is not None:
            late = [row for row in judged if row.fails_at(n)]
            if late:
                worst = min(late, key=lambda row: row.first_failing_length or 0)
                more = f", and {len(late) - 1} more of the rows above" if len(late) > 1 else ""
                return f"does not reach length {short(n)}: {_failing(worst)}{more}"
            if last is None or first is None or n <= last:
                return f"reaches length {short(n)} ({self._judged()}){self._unjudged()}"
            return f"not decided beyond length {short(last)} of the {short(n)} asked for{self._scope()}: {_open(first)}"
        if last is None or first is None:
            return f"nothing that is judged fails at any length ({self._judged()}){self._unjudged()}"
        failure = self.first_failure
        if failure is None:
            return f"nothing that is judged fails up to length {short(last)} ({self._judged()}){self._unjudged()}"
        if failure.right_to == last:
            return f"{self._right_to(last)}{self._scope()}: then {_failing(failure)}"
        return f"{self._right_to(last)}{self._scope()}: {_open(first)}; {_failing(failure)}"

    def _right_to(self, last: int) -> str:
        """At a length that no query fits nothing is right, and a single token has no rival."""
        least = max(2, self.queries[0].offset + 1) if self.queries else 2
        return f"right up to length {short(last)}" if last >= least else "right at no length"

    def softmax_bound(self, beta: float) -> float | None:
        """What n_max stays below at a scale, whatever the angle: heads on one plane, without a phase or a window.

        Source: `asymptotics.bounds.softmax_length_bound`: T + 1 is below it, and n <= T + 1 + s.
        """
        profile = self.built.profile
        if not isinstance(profile, LogitProfile) or not profile.is_peaked or len(profile.active_planes) != 1:
            return None
        if self.window is not None:
            return None
        thresholds = np.array([float(self.rule.threshold(query.kind)) for query in self.queries])
        bounds = softmax_length_bound(np.full(thresholds.shape, beta), thresholds)
        return float((bounds + [query.offset for query in self.queries]).min())

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; integers above 2**53 are texts."""
        return {
            "schema": SCHEMA,
            "recipe": self.built.recipe.to_dict(),
            "queries": [{"offset": safe_integer(query.offset), "kind": query.kind} for query in self.queries],
            "rule": str(self.rule),
            "beta": self.beta,
            "length": _number(self.length),
            "window": _number(self.window),
            "argmax": self.argmax.to_dict(),
            "softmax": [{**each.to_dict(), "proved_bound": self.softmax_bound(each.beta)} for each in self.softmax],
            "beta_min": self.scale,
            "beta_min_note": self.scale_note,
            "formats": _formats(self.formats),
            "window_fails": _number(self.window_fails),
            "found_beta": None if self.search is None else self.search.to_dict(),
            "rows": [row.to_dict() for row in self.rows()],
            "causes": CAUSES,
            "holds": self.holds,
            "verdict": self.verdict(),
        }

    def _unjudged(self) -> str:
        return "; no scale is judged: give a beta" if self.beta is None else ""

    def _scope(self) -> str:
        judged = self._judged()
        return f" ({judged})" if judged != "argmax" else ""

    def _judged(self) -> str:
        parts = ["argmax"]
        if self.beta is not None:
            parts.append(f"softmax at beta {self.beta:g} ({self.rule})")
        names = list(dict.fromkeys(each.number_format for each in self.formats))
        if self.search is not None and self.search.beta is not None:
            names.append(f"{self.search.arithmetic.number_format} at beta {self.search.beta:.6g}")
        return ", ".join([*parts, *names])

    def _window_rows(self) -> list[LimitRow]:
        if self.window is None:
            return []
        fails = self.window_fails
        note = "" if fails is None else self._hidden()
        return [
            LimitRow(
                what=f"window of {short(self.window)}",
                first_failing_length=fails,
                searched=None,
                cause=None if fails is None else "window",
                known="exact",
                note=note
                or "sees all that the head looks for; exact rows stay as they are beyond it, number formats "
                "may still fail",
                at_most=fails,
            )
        ]

    def _hidden(self) -> str:
        if not self.queries:
            return f"an answer {short(self.window or 0)} positions back is out of sight"
        query = next(query for query in self.queries if query.offset + 1 == self.window_fails)
        return f"{query} looks {short(query.offset)} back, where it never sees"

    def _argmax_row(self) -> LimitRow:
        found = self.argmax
        note = "right at every length" if found.searched is None and found.first_failing_length is None else ""
        if found.rival is not None:
            word = {"tie": "ties", "wrong": "wins", "undecided": "ties to 160 digits"}[found.outcome]
            aim = f", asked by {self._query(found.offset)}" if len(self.queries) > 1 else ""
            note = f"displacement {short(found.rival)} {word}{aim}"
        elif found.outcome == "hidden":
            note = "the window hides the target"
        elif found.first_failing_length is not None:
            note = "worst case over inputs"
        return LimitRow(
            what="argmax, exact",
            first_failing_length=found.first_failing_length,
            searched=found.searched,
            cause=self._argmax_cause,
            known="exact" if found.outcome != "undecided" else "estimate",
            note=note,
            at_most=None if found.outcome == "undecided" else found.first_failing_length,
        )

    @property
    def _argmax_cause(self) -> Cause | None:
        if self.argmax.first_failing_length is None:
            return None
        named: dict[str, Cause] = {"tie": "tie", "hidden": "window"}
        return named.get(self.argmax.outcome, "near return")

    def _softmax_row(self, found: SoftmaxLimit) -> LimitRow:
        failing = found.first_failing_length
        note = f"n_max {'none' if found.last_length is None else short(found.last_length)}"
        if failing is None:
            note = (
                f"n_max at least {short(found.last_length or 0)}"
                if found.searched is not None
                else "right at every length"
            )
        elif not found.is_certain:
            note += " or more" if found.at_most is None else f" to {short(found.at_most - 1)}"
        elif len(self.queries) > 1:
            note += f", by {self._query(found.offset)}"
        if found.cause == "near return" and found.rival is not None and found.term is not None and found.total:
            note += f"; displacement {short(found.rival)} is {found.term / found.total:.0%} of the sum"
        # From where the argmax fails on it is not the number of rivals that is too much for softmax.
        wrong = self.argmax.first_failing_length
        cause: Cause | None = None
        if failing is not None:
            cause = self._argmax_cause if wrong is not None and wrong <= failing else found.cause
        return LimitRow(
            what=f"softmax, beta {found.beta:g}",
            first_failing_length=failing,
            searched=found.searched,
            cause=cause,
            known="certified" if found.is_certain else "estimate",
            note=note,
            judged=self.beta is not None,
            at_most=found.at_most,
        )

    def _format_rows(self) -> list[LimitRow]:
        return [
            LimitRow(
                what=each.name,
                first_failing_length=each.first_failing_length,
                searched=each.max_length if each.first_failing_length is None else each.first_failing_length,
                cause=each.cause,
                known="emulated",
                note=each.note,
                at_most=each.first_failing_length,
            )
            for each in self.formats
        ]

    def _search_rows(self) -> list[LimitRow]:
        """The scale that was found; or where the last one tried fails, which rules others out if the argmax does."""
        if self.search is None:
            return []
        last, first = self.search.last, self.search.last.first_failing_length
        return [
            LimitRow(
                what=f"found beta, {last.number_format}",
                first_failing_length=first,
                searched=self.search.length if first is None else first,
                cause=last.cause,
                known="emulated" if self.search.is_decided else "estimate",
                note=f"beta {self.search.beta:.6g}" if self.search.beta is not None else "no beta was found",
                at_most=first if self.search.is_decided else None,
            )
        ]

    def _query(self, offset: int) -> str:
        return str(next(query for query in self.queries if query.offset == offset))


def _failing(row: LimitRow) -> str:
    """Exact rows fail for good; a format may be right again at later positions."""
    first = short(row.first_failing_length or 0)
    if row.known == "emulated":
        return f"{row.what} is first wrong at length {first} ({row.cause})"
    return f"{row.what} fails from length {first} on ({row.cause})"


def _open(row: LimitRow) -> str:
    """Why a row does not say what is beyond the length it is right to."""
    if row.first_failing_length is None:
        return f"{row.what} was searched that far only"
    return f"{row.what} may fail from length {short(row.first_failing_length)} on ({row.note or row.known})"


def _formats(formats: Sequence[FormatLimit]) -> dict[str, Any]:
    """By format: of the first mode its first wrong length, how far it is known and the cause; each mode by its name."""
    found: dict[str, Any] = {}
    for each in formats:
        first = {"first_wrong_length": each.first_wrong_length, "max_length": each.max_length, "cause": each.cause}
        found.setdefault(each.number_format, first)[each.logits] = each.to_dict()
    return found


def _number(value: int | None) -> int | str | None:
    return None if value is None else safe_integer(value)

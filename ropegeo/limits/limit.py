r"""`Limit`: everything that stops one head, side by side, and one sentence of verdict.

A head as built is asked in four ways, each with the first length at which it fails:

* *argmax*: in exact arithmetic, does the target score highest? (`argmax`, `letters`)
* *softmax*: at a scale beta, does the target get the weight that a rule asks for? (`softmax`, `letters`)
* *formats*: with the arithmetic of a number format, rotated at absolute positions (`formats`)
* *window*: with a sliding window of W positions, query i sees the keys i - W < j <= i: a distance of W or more is out
  of reach at every length, and with a smaller one the head at length n is the one at length min(n, W) without a window.

The last statement gives the other rows their window: what fails first at a length above W never fails.
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
from ropegeo.limits.formats import CAUSES, Cause, FormatLimit
from ropegeo.limits.rules import IndexQuery, Rule
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


@dataclass(frozen=True, kw_only=True)
class LimitRow:
    """One thing that may stop a head.

    Attributes:
        what: for people.
        first_failing_length: the first length that fails, or None.
        searched: the largest length looked at; None: every length.
        cause: one of `formats.CAUSES`, or None where nothing fails.
        known: how the row is known.
        note: more on it; may be empty.
        judged: whether the row counts when a length is judged (not one scale of many that are only shown).
    """

    what: str
    first_failing_length: int | None
    searched: int | None
    cause: Cause | None
    known: Known
    note: str = ""
    judged: bool = True

    def fails_at(self, length: int) -> bool:
        """Whether the row says that a length fails."""
        return self.first_failing_length is not None and self.first_failing_length <= length

    def reaches(self, length: int) -> bool:
        """Whether the row says that a length is right."""
        return not self.fails_at(length) and (self.searched is None or length <= self.searched)


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

    def rows(self) -> tuple[LimitRow, ...]:
        """One row a limit."""
        return (*self._window_rows(), self._argmax_row(), *map(self._softmax_row, self.softmax), *self._format_rows())

    @property
    def first_failure(self) -> LimitRow | None:
        """The row that fails at the smallest length, of those that are judged."""
        failing = [row for row in self.rows() if row.judged and row.first_failing_length is not None]
        return min(failing, key=lambda row: row.first_failing_length or 0, default=None)

    @property
    def holds(self) -> bool:
        """Whether no row that is judged fails at the length asked for; True where none is asked for."""
        return self.length is None or not any(row.judged and row.fails_at(self.length) for row in self.rows())

    def verdict(self) -> str:
        """One sentence."""
        failure, n = self.first_failure, self.length
        if n is not None:
            late = [row for row in self.rows() if row.judged and row.fails_at(n)]
            if late:
                first = min(late, key=lambda row: row.first_failing_length or 0)
                more = f", and {len(late) - 1} more of the rows above" if len(late) > 1 else ""
                return f"does not reach length {short(n)}: {_failing(first)}{more}"
            return f"reaches length {short(n)}{self._scope()}"
        if failure is None:
            far = min((row.searched for row in self.rows() if row.judged and row.searched is not None), default=None)
            end = "at any length" if far is None else f"up to length {short(far)}"
            return f"nothing that was looked at fails {end}{self._scope()}"
        last = (failure.first_failing_length or 1) - 1
        right = f"right up to length {short(last)}" if last >= 2 else "right at no length"
        return f"{right}{self._scope()}: then {_failing(failure)}"

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
            "argmax": {
                "first_failing_length": _number(self.argmax.first_failing_length),
                "searched": _number(self.argmax.searched),
                "outcome": self.argmax.outcome,
                "offset": safe_integer(self.argmax.offset),
                "rival": _number(self.argmax.rival),
            },
            "softmax": [
                {
                    "beta": each.beta,
                    "n_max": _number(each.last_length),
                    "first_failing_length": _number(each.first_failing_length),
                    "searched": _number(each.searched),
                    "offset": safe_integer(each.offset),
                    "certain": each.is_certain,
                    "first_failing_at_most": _number(each.at_most),
                    "proved_bound": self.softmax_bound(each.beta),
                }
                for each in self.softmax
            ],
            "beta_min": self.scale,
            "beta_min_note": self.scale_note,
            "formats": _formats(self.formats),
            "window_fails": _number(self.window_fails),
            "rows": [
                {
                    "what": row.what,
                    "first_failing_length": _number(row.first_failing_length),
                    "searched": _number(row.searched),
                    "cause": row.cause,
                    "known": row.known,
                    "note": row.note,
                    "judged": row.judged,
                }
                for row in self.rows()
            ],
            "causes": CAUSES,
            "holds": self.holds,
            "verdict": self.verdict(),
        }

    def _scope(self) -> str:
        parts = ["argmax"]
        if self.beta is not None:
            parts.append(f"softmax at beta {self.beta:g} ({self.rule})")
        names = list(dict.fromkeys(each.number_format for each in self.formats))
        return f" ({', '.join([*parts, *names])})" if len(parts) + len(names) > 1 else ""

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
                note=note or "sees all that the head looks for; nothing changes beyond it",
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
        elif found.first_failing_length is not None:
            note = "worst case over inputs"
        return LimitRow(
            what="argmax, exact",
            first_failing_length=found.first_failing_length,
            searched=found.searched,
            cause=self._argmax_cause,
            known="exact" if found.outcome != "undecided" else "estimate",
            note=note,
        )

    @property
    def _argmax_cause(self) -> Cause | None:
        if self.argmax.first_failing_length is None:
            return None
        return "tie" if self.argmax.outcome == "tie" else "near return"

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
            note += f" to {short((found.at_most or failing) - 1)}"
        elif len(self.queries) > 1:
            note += f", by {self._query(found.offset)}"
        # From where the argmax fails on it is not the number of rivals that is too much for softmax.
        wrong = self.argmax.first_failing_length
        cause: Cause | None = None
        if failing is not None:
            cause = self._argmax_cause if wrong is not None and wrong <= failing else "dispersion"
        return LimitRow(
            what=f"softmax, beta {found.beta:g}",
            first_failing_length=failing,
            searched=found.searched,
            cause=cause,
            known="certified" if found.is_certain else "estimate",
            note=note,
            judged=self.beta is not None,
        )

    def _format_rows(self) -> list[LimitRow]:
        return [
            LimitRow(
                what=each.name,
                first_failing_length=each.first_failing_length,
                searched=each.max_length,
                cause=each.cause,
                known="emulated",
                note=each.note,
            )
            for each in self.formats
        ]

    def _query(self, offset: int) -> str:
        return str(next(query for query in self.queries if query.offset == offset))


def _failing(row: LimitRow) -> str:
    return f"{row.what} fails from length {short(row.first_failing_length or 0)} on ({row.cause})"


def _formats(formats: Sequence[FormatLimit]) -> dict[str, Any]:
    """By format: the first mode's fields, and every mode under its name."""
    found: dict[str, Any] = {}
    for each in formats:
        entry = found.setdefault(each.number_format, each.to_dict())
        entry[each.logits] = each.to_dict()
    return found


def _number(value: int | None) -> int | str | None:
    return None if value is None else safe_integer(value)

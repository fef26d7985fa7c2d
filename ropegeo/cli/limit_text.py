"""What `ropegeo limit` says: one table, a few lines on what was looked at, one sentence of verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from ropegeo.cli.output import WIDTH, console, number_text, table
from ropegeo.exact import short
from ropegeo.limits.limit import KNOWN, NOT_EMULATED, Limit
from ropegeo.limits.rules import CAUSES

NOTE = 32
"""Columns of the notes."""


def show(title: str, found: Limit, written: Sequence[str]) -> None:
    """Print a limit for people."""
    out = console()
    out.print(title, style="bold")
    for line in _asked(found):
        out.print(line)
    rows = [
        [
            row.what,
            "-" if row.first_failing_length is None else short(row.first_failing_length),
            "any" if row.searched is None else short(row.searched),
            row.cause or "-",
            row.known,
            "\n".join(wrap(row.note, NOTE)),
        ]
        for row in found.rows()
    ]
    columns = [("limit", "left"), ("fails from", "right"), ("searched", "right")]
    out.print(table("", [*columns, ("cause", "left"), ("known", "left"), ("", "left")], rows))
    for line in _below(found):
        for part in wrap(line, WIDTH, subsequent_indent="  "):
            out.print(part)
    if found.search is not None:
        for part in wrap(found.search.sentence(), WIDTH, subsequent_indent="  "):
            out.print(part)
    for part in wrap(f"verdict: {found.verdict()}", WIDTH, subsequent_indent="  "):
        out.print(part, style="bold")
    for path in written:
        out.print(f"wrote {path}")


def _asked(found: Limit) -> Iterator[str]:
    if len(found.queries) > 1:
        yield f"asked by a letter and by the integers up to {short(found.queries[-1].offset)}"
    elif found.queries:
        yield f"asked by {found.queries[0]}"
    scale = "no scale is judged (give --beta)" if found.beta is None else f"beta {number_text(found.beta)}"
    yield f"rule {found.rule}{_needed(found)}; {scale}"


def _needed(found: Limit) -> str:
    """What `majority` asks of the target's weight, by what looks: 3/4, 1/2 or 1/4; letter heads have no one number."""
    if found.rule.weight is not None or not found.queries:
        return ""
    weights = sorted({1 / (1 + found.rule.threshold(query.kind)) for query in found.queries})
    return " (a weight above " + " or ".join(str(weight) for weight in weights) + ")"


def _below(found: Limit) -> Iterator[str]:
    for each in found.softmax if found.beta is not None else ():
        bound = found.softmax_bound(each.beta)
        if bound is not None:
            yield f"one plane: n_max is below {number_text(bound, 5)} at any angle (proved)"
    if found.length is not None:
        if found.scale is not None:
            yield f"beta_min({short(found.length)}) = {number_text(found.scale, 8)}: the least scale for that length"
        else:
            yield found.scale_note
    rows = found.rows()
    for cause in dict.fromkeys(row.cause for row in rows if row.cause is not None):
        yield f"{cause}: {CAUSES[cause]}"
    if "estimate" in {row.known for row in rows}:
        yield f"estimate: {KNOWN['estimate']}"
    if "emulated" in {row.known for row in rows}:
        yield NOT_EMULATED

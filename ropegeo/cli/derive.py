"""`ropegeo derive`: run the derivations, and show or write what they say."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import typer

from ropegeo.claims import Status, claim_names, load_claim, run_claim
from ropegeo.claims.report import noted, report_html, report_markdown, summary, verdict
from ropegeo.claims.running import FAILED
from ropegeo.claims.terminal import NO_BREAK, readable
from ropegeo.cli.output import Destinations, console, print_json, printable, suffix_of, table, working
from ropegeo.errors import InvalidInputError

if TYPE_CHECKING:
    from ropegeo.claims import ClaimOutcome, Derivation
    from ropegeo.cli.options import ReportOptions

LABEL = 14
"""Columns for the labels of a claim."""
INDENT = 4
STATUS_ORDER = tuple(map(str, (Status.PROVED, Status.CITED, Status.IN_SCOPE, Status.REPAIRED)))
"""Of the table: what is most surprising stands last, where it is seen."""
NARROW = 40
"""Lines are not wrapped below this, however narrow the terminal."""


def run(names: Sequence[str], output: ReportOptions, *, names_only: bool) -> None:
    """Run the claims asked for, show them, and write what was asked for; status 1 if one of them does not hold."""
    suffix = suffix_of(output.report, (".md", ".html"), "--report")
    destinations = Destinations(output.report, force=output.force)
    if names_only and suffix is not None:
        raise InvalidInputError("--list runs nothing, so there is nothing to report; leave out --list or --report")
    derivations = list({one.number: one for one in map(load_claim, names or claim_names())}.values())
    if names_only:
        _show_list(derivations, as_json=output.as_json)
        return
    outcomes = _run_all(derivations)
    report = report_html if suffix == ".html" else report_markdown
    written = destinations.write((output.report, b"" if suffix is None else report(outcomes).encode()))
    if output.as_json:
        print_json([outcome.to_dict() for outcome in outcomes])
    elif names:
        _show_claims(outcomes)
    else:
        _show_table(outcomes)
    if not output.as_json:
        for path in written:
            console().print(f"wrote {path}")
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(1)


def _run_all(derivations: Sequence[Derivation]) -> list[ClaimOutcome]:
    outcomes: list[ClaimOutcome] = []
    with working("running derivations", len(derivations)) as progress:
        for derivation in derivations:
            progress(len(outcomes))
            outcomes.append(run_claim(derivation))
    return outcomes


def _show_list(derivations: Sequence[Derivation], *, as_json: bool) -> None:
    entries = [
        {"number": one.number, "name": one.name, "status": str(one.claim.status), "title": one.claim.title}
        for one in derivations
    ]
    if as_json:
        print_json(entries)
        return
    columns = [("no.", "right"), ("name", "left"), ("status", "left"), ("title", "left")]
    rows = [[str(one["number"]), str(one["name"]), str(one["status"]), _shown(str(one["title"]))] for one in entries]
    console().print(table("", columns, rows))


def _show_table(outcomes: Sequence[ClaimOutcome]) -> None:
    """One line a claim under the heading of its verdict, then what failed, then how many hold."""
    columns = [("no.", "right"), ("name", "left"), ("cites", "right"), ("seconds", "right"), ("title", "left")]
    longest = max(len(one.name) for one in outcomes)
    for heading in (*STATUS_ORDER, FAILED):
        rows = [
            [
                f"{one.number:3}",
                f"{one.name:<{longest}}",
                str(len(one.citations) or ""),
                f"{one.seconds:7.2f}",
                _shown(one.claim.title),
            ]
            for one in outcomes
            if one.verdict == heading
        ]
        if rows:
            console().print(table(heading, columns, rows))
    _print(line for one in outcomes for text in one.failures for line in _wrapped(f"{one.name}: {text}", INDENT))
    _print(_wrapped(summary(outcomes)))


def _show_claims(outcomes: Sequence[ClaimOutcome]) -> None:
    for k, outcome in enumerate(outcomes):
        title = f"{outcome.number} {outcome.name}: {readable(outcome.claim.title)}"
        _print(([""] if k else []) + _wrapped(title), style="bold")
        _print(_claim_lines(outcome))
    if len(outcomes) > 1:
        _print(["", *_wrapped(summary(outcomes))])


def _claim_lines(outcome: ClaimOutcome) -> Iterator[str]:
    """A claim, its steps and what came of them."""
    claim = outcome.claim
    facts = {
        "statement": claim.statement,
        "scope": claim.scope,
        "as stated": claim.as_stated,
        "cause": claim.cause,
        "source": claim.source,
        "checked code": ", ".join(claim.ties),
    }
    for label, text in facts.items():
        if text:
            yield from _wrapped(f"{label:<{LABEL}}{readable(text)}", LABEL)
    yield ""
    for number, step in enumerate(outcome.steps, 1):
        yield from _wrapped(f"{number:>2}. {readable(step.title)} ({readable(noted(step))})", INDENT)
        yield from _wrapped(" " * INDENT + readable(step.text), INDENT)
    yield ""
    yield from _wrapped(verdict(outcome))
    for failure in outcome.failures:
        yield from _wrapped(f"* {failure}", 2)


def _shown(text: str) -> str:
    """A text of a claim in a cell."""
    return printable(readable(text).replace(NO_BREAK, " "))


def _wrapped(text: str, indent: int = 0) -> list[str]:
    """Lines no wider than the terminal, all but the first indented."""
    width = max(NARROW, console().width)
    lines = textwrap.wrap(text, width, subsequent_indent=" " * indent, break_on_hyphens=False)
    return [line.replace(NO_BREAK, " ") for line in lines]


def _print(lines: Iterable[str], style: str | None = None) -> None:
    out = console()
    for line in lines:
        out.print(printable(line), soft_wrap=True, style=style)

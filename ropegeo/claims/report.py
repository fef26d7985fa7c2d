"""The report on claims that were run: what each says, how its steps are known, where the source states otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ropegeo._version import __version__
from ropegeo.claims.claim import Kind, Status, Step
from ropegeo.claims.document import Block, Document, Fact, Facts, Grid, Heading, Item, Items, Link, Paragraph
from ropegeo.claims.markdown import as_markdown
from ropegeo.claims.running import ClaimOutcome
from ropegeo.claims.webpage import as_webpage
from ropegeo.claims.wording import COUNTED, KINDS, STATUSES, kind_of


def report_markdown(outcomes: Sequence[ClaimOutcome]) -> str:
    """The report as Markdown, with LaTeX between dollar signs.

    Args:
        outcomes: what `run_claim` returned, in the order of the report.
    """
    return as_markdown(_document(outcomes))


def report_html(outcomes: Sequence[ClaimOutcome]) -> str:
    """The report as one web page that loads nothing: formulas are MathML.

    Args:
        outcomes: what `run_claim` returned, in the order of the report.
    """
    return as_webpage(_document(outcomes))


def summary(outcomes: Sequence[ClaimOutcome]) -> str:
    """One line: how many claims have which status, and whether all of them hold.

    Example:
        >>> summary([])
        '0 claims'
    """
    total = f"{len(outcomes)} claim{'' if len(outcomes) == 1 else 's'}"
    counts = Counter(outcome.claim.status for outcome in outcomes if outcome.passed)
    parts = [f"{counts[status]} {COUNTED[status][counts[status] > 1]}" for status in Status if counts[status]]
    failed = [outcome.name for outcome in outcomes if not outcome.passed]
    if failed:
        parts.append(f"{len(failed)} FAILED ({', '.join(failed)})")
    elif outcomes:
        return f"{total}: {'; '.join(parts)}. Every step and every check holds."
    return f"{total}: {'; '.join(parts)}" if parts else total


def verdict(outcome: ClaimOutcome) -> str:
    """Whether one claim holds, in a sentence."""
    counts = Counter(_how(step) for step in outcome.steps)
    known = ", ".join(f"{counts[how]} {how}" for how in ("by machine", "in words", "cited") if counts[how])
    if not outcome.passed:
        return f"FAILED ({known})" if known else "FAILED"
    return f"{outcome.claim.status} ({known}): every step holds, and so does the check of ropegeo's functions"


def _how(step: Step) -> str:
    return {Kind.ARGUMENT: "in words", Kind.CITED: "cited"}.get(step.kind, "by machine")


def _document(outcomes: Sequence[ClaimOutcome]) -> Document:
    return Document(title=f"Derivations of ropegeo {__version__}", blocks=tuple(_blocks(outcomes)))


def _blocks(outcomes: Sequence[ClaimOutcome]) -> Iterator[Block]:
    yield Paragraph(
        "Claims about the margins of attention heads under rotary position embedding, with the steps of their proofs. "
        "What a machine can decide it has decided, in the run that wrote this report; what rests on words or on a "
        "theorem from elsewhere says so. A claim's check holds functions of ropegeo against it."
    )
    yield Paragraph(summary(outcomes))
    yield Grid(
        headings=("no.", "claim", "status", "cites"),
        rows=tuple(
            (str(one.number), Link(one.claim.title, one.name), one.verdict, str(len(one.citations) or "-"))
            for one in outcomes
        ),
    )
    failed = [one for one in outcomes if not one.passed]
    if failed:
        yield Heading(level=2, text="What failed")
        yield Facts(tuple(Fact(one.name, _failures(one), link=Link(one.claim.title, one.name)) for one in failed))
    differing = [one for status in (Status.REPAIRED, Status.IN_SCOPE) for one in outcomes if one.claim.status is status]
    if differing:
        yield Heading(level=2, text="What the paper states and what holds")
        for one in differing:
            yield from _difference(one)
    yield Heading(level=2, text="How steps are known, and what statuses mean")
    yield Grid(headings=("step", "meaning"), rows=tuple(KINDS.values()))
    yield Grid(headings=("status", "meaning"), rows=tuple((str(key), text) for key, text in STATUSES.items()))
    yield Heading(level=2, text="Derivations")
    for one in outcomes:
        yield from _derivation(one)


def _difference(outcome: ClaimOutcome) -> Iterator[Block]:
    claim = outcome.claim
    numbers = tuple(step.text for step in outcome.steps if step.kind is Kind.COUNTEREXAMPLE)
    yield Heading(level=3, text=claim.title, anchor=f"{outcome.name}-stated")
    yield Facts(
        (
            Fact("Source", (claim.source,)),
            *_optional("As stated", claim.as_stated),
            *([Fact("Numbers", numbers)] if numbers else []),
            *_optional("Cause", claim.cause),
            Fact("What holds", (claim.statement,)),
            Fact("Scope", (claim.scope,)),
            Fact("Verdict", (outcome.verdict,)),
            Fact("Proof", link=Link(f"derivation {outcome.number}", outcome.name)),
        )
    )


def _derivation(outcome: ClaimOutcome) -> Iterator[Block]:
    claim = outcome.claim
    yield Heading(level=3, text=f"{outcome.number}. {claim.title}", anchor=outcome.name)
    yield Facts(
        (
            Fact("Name", codes=(outcome.name,)),
            Fact("Statement", (claim.statement,)),
            Fact("Scope", (claim.scope,)),
            *_optional("As stated", claim.as_stated),
            *_optional("Cause", claim.cause),
            Fact("Source", (claim.source,)),
            Fact("Checked code", codes=claim.ties),
        )
    )
    yield Items(tuple(Item(title=step.title, note=noted(step), text=step.text) for step in outcome.steps))
    yield Facts((Fact("Result", (verdict(outcome), *_failures(outcome))),))


def _failures(outcome: ClaimOutcome) -> tuple[str, ...]:
    """Messages of whatever was raised: their dollar signs stand for nothing."""
    return tuple(text.replace("$", "") if text.count("$") % 2 else text for text in outcome.failures)


def noted(step: Step) -> str:
    """How a step is known, and whether it fails."""
    return kind_of(step) if step.holds else f"{kind_of(step)}; DOES NOT HOLD"


def _optional(label: str, text: str) -> list[Fact]:
    return [Fact(label, (text,))] if text else []

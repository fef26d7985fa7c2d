"""What kinds of steps and statuses of claims are called, and what each means, for tables and reports."""

from __future__ import annotations

from ropegeo.claims.claim import Kind, Status, Step

KINDS = {
    Kind.SYMBOLIC: ("machine: symbolic", "algebra for all values of the symbols, by sympy"),
    Kind.EXACT: ("machine: exact", "rational or algebraic arithmetic, or every case of a finite set"),
    Kind.BALL: (
        "machine: enclosure",
        "ball arithmetic: what is computed lies within known bounds; the text says why that covers every case",
    ),
    Kind.COUNTEREXAMPLE: (
        "machine: counterexample",
        "a case, exact or certified, in which the statement as printed is false",
    ),
    Kind.ARGUMENT: ("words", "a proof in words; no machine runs it"),
    Kind.CITED: ("cited", "a theorem proved elsewhere; its source is named"),
}
"""Kind of a step to its name and its meaning."""

STATUSES = {
    Status.PROVED: "what the source states is proved here, and no theorem is cited",
    Status.CITED: "what the source states is proved here but for theorems that are cited, by name and place",
    Status.IN_SCOPE: "true under a condition that the source does not state, or states otherwise; the scope names it",
    Status.REPAIRED: (
        "false as the source prints it: numbers show it, and a repaired statement is proved in its place, but for the "
        "theorems it cites, if any"
    ),
}
"""Status of a claim to its meaning."""

COUNTED = {
    Status.PROVED: ("proved", "proved"),
    Status.CITED: ("cited", "cited"),
    Status.IN_SCOPE: ("holds in scope", "hold in scope"),
    Status.REPAIRED: ("fails as stated, repaired", "fail as stated, repaired"),
}
"""Status after a number of claims: one, several."""


def kind_of(step: Step) -> str:
    """How a step is known: `machine: exact`, `words`, `cited: Sos 1958`."""
    name = KINDS[step.kind][0]
    return f"{name}: {step.source}" if step.source else name

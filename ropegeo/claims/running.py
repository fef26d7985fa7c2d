"""Running a derivation: its steps, then what ties it to ropegeo."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

from ropegeo.claims.catalogue import Derivation
from ropegeo.claims.claim import MACHINE_KINDS, Claim, Kind, Status, Step

SCHEMA = "ropegeo.derivation/1"
FAILED = "FAILED"
"""Verdict of a claim of which something does not hold."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ClaimOutcome:
    """What running a derivation said.

    Attributes:
        number: of the claim.
        name: of the claim.
        claim: what is claimed.
        steps: as far as they were reached.
        failures: one line for each thing that does not hold; none if all does.
        seconds: how long it took.
    """

    number: int
    name: str
    claim: Claim
    steps: tuple[Step, ...]
    failures: tuple[str, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every step and every tie holds."""
        return not self.failures

    @property
    def verdict(self) -> str:
        """The claim's status, or `FAILED`."""
        return str(self.claim.status) if self.passed else FAILED

    @property
    def citations(self) -> tuple[str, ...]:
        """Sources of the cited steps."""
        return tuple(step.source for step in self.steps if step.kind is Kind.CITED)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        claim = self.claim
        return {
            "schema": SCHEMA,
            "number": self.number,
            "name": self.name,
            "title": claim.title,
            "status": str(claim.status),
            "passed": self.passed,
            "failures": list(self.failures),
            "statement": claim.statement,
            "scope": claim.scope,
            "source": claim.source,
            "as_stated": claim.as_stated or None,
            "cause": claim.cause or None,
            "ties": list(claim.ties),
            "cited": list(self.citations),
            "seconds": round(self.seconds, 3),
            "steps": [
                {
                    "kind": str(step.kind),
                    "title": step.title,
                    "text": step.text,
                    "holds": step.holds,
                    "source": step.source or None,
                }
                for step in self.steps
            ],
        }


def run_claim(derivation: Derivation) -> ClaimOutcome:
    """Run every step and the check; what goes wrong is a line in the outcome, not an exception."""
    begun = perf_counter()
    steps: list[Step] = []
    failures: list[str] = []
    try:
        for step in derivation.steps():
            steps.append(step)
            if not step.holds:
                failures.append(f"step {len(steps)}, {step.title}: does not hold")
        failures += _unfit(derivation.claim, steps)
    except Exception as error:  # whatever a derivation raises is its failure, to be shown beside the others
        failures.append(f"step {len(steps) + 1}: {_described(error)}")
    try:
        derivation.check()
    except Exception as error:
        failures.append(f"check: {_described(error)}")
    return ClaimOutcome(
        number=derivation.number,
        name=derivation.name,
        claim=derivation.claim,
        steps=tuple(steps),
        failures=tuple(failures),
        seconds=perf_counter() - begun,
    )


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _unfit(claim: Claim, steps: list[Step]) -> list[str]:
    """Where the steps do not carry the status that the claim gives itself."""
    kinds = {step.kind for step in steps}
    faults = []
    if not kinds & MACHINE_KINDS:
        faults.append("no step is decided by a machine")
    if claim.status is Status.PROVED and Kind.CITED in kinds:
        faults.append("called proved, but a step is cited")
    if claim.status is Status.CITED and Kind.CITED not in kinds:
        faults.append("called cited, but no step is")
    if (claim.status is Status.REPAIRED) != (Kind.COUNTEREXAMPLE in kinds) and claim.status is not Status.IN_SCOPE:
        faults.append("a repaired claim, and no other, has a counterexample to what was stated")
    return faults

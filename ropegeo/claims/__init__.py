"""Claims and their derivations: what one is, where they are found, what running them says, and how that is written."""

from ropegeo.claims.catalogue import Derivation, claim_names, load_claim
from ropegeo.claims.claim import (
    Claim,
    ClaimError,
    Kind,
    Status,
    Step,
    argument,
    ball,
    cited,
    counterexample,
    exact,
    refuses,
    require,
    symbolic,
)
from ropegeo.claims.running import ClaimOutcome, run_claim
from ropegeo.claims.symbols import vanishes

__all__ = [
    "Claim",
    "ClaimError",
    "ClaimOutcome",
    "Derivation",
    "Kind",
    "Status",
    "Step",
    "argument",
    "ball",
    "cited",
    "claim_names",
    "counterexample",
    "exact",
    "load_claim",
    "refuses",
    "require",
    "run_claim",
    "symbolic",
    "vanishes",
]

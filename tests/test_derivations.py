"""The derivations: that they hold, and that each notices when the code it speaks of is not what was proved."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from mutants import Mutant, all_mutants, put_in_place, replace_everywhere

from ropegeo.asymptotics import bounds
from ropegeo.asymptotics.bounds import one_plane
from ropegeo.claims import ClaimError, Derivation, catalogue, claim_names, load_claim, run_claim
from ropegeo.claims.mathml import mathml
from ropegeo.claims.terminal import plain
from ropegeo.claims.texts import pieces

NAMES = claim_names()
TIES = [(name, tie) for name in NAMES for tie in load_claim(name).claim.ties]
PUBLIC = [name for name in bounds.__all__ if callable(getattr(bounds, name))]
MUTANTS = all_mutants()
SAMPLE = {mutant.owner: mutant for mutant in MUTANTS if mutant.owner in PUBLIC}.values()
FEWEST = 18

EQUIVALENT: dict[str, str] = {}
"""Changes that change nothing, by file, function and change, with the reason."""


def unchanged_kind(mutant: Mutant) -> str:
    """A mutant without its line, as `EQUIVALENT` names it."""
    return f"{mutant.file}:{mutant.owner}: {mutant.label.split(' ', 1)[1]}"


def fresh(name: str) -> Derivation:
    """A derivation run anew, so that nothing it remembers is from before a change."""
    known = load_claim(name)
    load: Callable[..., Derivation] = inspect.unwrap(catalogue._load)
    return load(known.path, known.name)


def complaint(name: str) -> Exception | None:
    """What a claim's check raises; warnings do not count, since a user would not see them as failures."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fresh(name).check()
        except Exception as error:  # whatever it is, the claim has noticed
            return error
    return None


@cache
def held_before(name: str) -> bool:
    """Whether a check passes on the code as it is: only then does a failure mean anything."""
    return complaint(name) is None


def resolve(tie: str) -> tuple[Any, str]:
    """The module or class that a dotted name ends in, and the last part."""
    parts = tie.split(".")
    for k in range(len(parts) - 1, 0, -1):
        try:
            holder = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:-1]:
            holder = getattr(holder, part)
        return holder, parts[-1]
    raise LookupError(tie)


def tied_to(names: set[str]) -> list[str]:
    """Claims tied to one of these bounds."""
    wanted = {f"{bounds.__name__}.{name}" for name in names}
    return [name for name in NAMES if wanted & set(load_claim(name).claim.ties)]


# ---- every claim ----


def test_there_are_enough() -> None:
    assert len(NAMES) >= FEWEST
    numbers = [load_claim(name).number for name in NAMES]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_step_and_every_check_holds(name: str) -> None:
    outcome = run_claim(load_claim(name))
    assert outcome.failures == ()
    for step in outcome.steps:
        for text in (step.title, step.text, step.source):
            assert_typeset(text)


def assert_typeset(text: str) -> None:
    """Both readers of formulas know all of a text."""
    for piece in pieces(text):
        if piece.is_math:
            mathml(piece.text)
        else:
            assert "\\" not in piece.text, text
    shown = plain(text)
    assert "\\" not in shown
    assert "$" not in shown


@pytest.mark.parametrize("name", NAMES)
def test_claims_are_sound(name: str) -> None:
    claim = load_claim(name).claim
    for text in (claim.title, claim.statement, claim.scope, claim.source, claim.as_stated, claim.cause):
        assert_typeset(text)
        assert text == " ".join(text.split())
    assert "$" not in claim.title
    assert len(claim.title) <= 100
    assert len(set(claim.ties)) == len(claim.ties)


@pytest.mark.parametrize(("name", "tie"), TIES, ids=[f"{name}-{tie}" for name, tie in TIES])
def test_ties_are_real(name: str, tie: str) -> None:
    holder, last = resolve(tie)
    thing = inspect.getattr_static(holder, last)
    assert callable(getattr(holder, last)) or isinstance(thing, property)
    assert tie.startswith("ropegeo.")


@pytest.mark.parametrize("bound", PUBLIC)
def test_every_bound_has_a_claim(bound: str) -> None:
    assert tied_to({bound}), f"no claim is tied to {bound}"


# ---- what a claim notices ----


class ReplacedError(Exception):
    """Raised by what stands in for a tied function."""


def stand_in(*_: object, **__: object) -> Any:
    raise ReplacedError


@pytest.mark.parametrize(("name", "tie"), TIES, ids=[f"{name}-{tie}" for name, tie in TIES])
def test_every_tie_is_used(name: str, tie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check calls every function that its claim is tied to."""
    holder, last = resolve(tie)
    thing = inspect.getattr_static(holder, last)
    monkeypatch.setattr(holder, last, property(stand_in) if isinstance(thing, property) else stand_in)
    if inspect.ismodule(holder):
        replace_everywhere(thing, stand_in, last, monkeypatch)
    assert isinstance(complaint(name), ReplacedError)


def noticed(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> bool:
    claims = tied_to(mutant.affected()) or tied_to(set(PUBLIC) & set(vars(importlib.import_module(mutant.module))))
    assert claims, f"no claim is tied to {mutant}"
    assert all(held_before(name) for name in claims)
    put_in_place(mutant, monkeypatch)
    return any(complaint(name) is not None for name in claims)


@pytest.mark.parametrize(
    "mutant", [pytest.param(one, marks=() if one in SAMPLE else pytest.mark.slow) for one in MUTANTS], ids=str
)
def test_every_change_of_a_bound_is_noticed(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """One change of each function in every run, all of them in the slow one."""
    assert noticed(mutant, monkeypatch) != (unchanged_kind(mutant) in EQUIVALENT)


def test_changes_are_made_and_undone() -> None:
    """A changed number is seen under every name of the bound; a claim about something else does not mind."""
    (mutant,) = [one for one in MUTANTS if one.owner == "dirichlet_bound" and one.label.endswith(" 2 -> 3")][:1]
    real, reach = bounds.dirichlet_bound, np.array(1.0)
    with pytest.MonkeyPatch.context() as patch:
        put_in_place(mutant, patch)
        assert bounds.dirichlet_bound is one_plane.dirichlet_bound is not real
        assert bounds.dirichlet_bound(reach) == 3 > real(reach)
        assert isinstance(complaint("dirichlet_bound"), ClaimError)
        assert complaint("rotation") is None
    assert bounds.dirichlet_bound is one_plane.dirichlet_bound is real
    assert complaint("dirichlet_bound") is None


def test_every_bound_is_changed() -> None:
    """Directly or in what it uses; equivalent changes are ones that exist."""
    assert set(PUBLIC) <= {name for mutant in MUTANTS for name in mutant.affected()}
    assert set(EQUIVALENT) <= {unchanged_kind(mutant) for mutant in MUTANTS}
    assert len({str(mutant) for mutant in MUTANTS}) == len(MUTANTS)

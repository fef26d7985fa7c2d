"""Deliberate faults: the checks that hold for ropegeo must fail for each broken copy of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import checks
import numpy as np
import oracles
import pytest

from ropegeo.construct import index as construct_index
from ropegeo.engine import diophantine, exact_turns, first_return, letter_exact, softmax, staircase
from ropegeo.errors import RopegeoError
from ropegeo.exact import Enclosure
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import Layout, RopeSpectrum, phases, rope
from ropegeo.spectrum import layout as layout_room

Patch = pytest.MonkeyPatch
Fault = Callable[[Patch], None]
Check = Callable[[], None]

PLANE = {"10000^(-2/128)": oracles.ANGLES["10000^(-2/128)"]}
GPT_J: Check = lambda: checks.check_rotation("interleaved", checks.GPT_J)  # noqa: E731 - a table of checks
NEAR: Check = lambda: checks.check_phases(PLANE, [0, 1, -7, 1000])  # noqa: E731
FAR: Check = lambda: checks.check_phases(PLANE, [10**12])  # noqa: E731
FARTHEST: Check = lambda: checks.check_phases(PLANE, [2**61 + 1])  # noqa: E731
INDEX: Check = lambda: checks.check_index_head(3, 12)  # noqa: E731
ROW: Check = lambda: checks.check_section_5(*checks.SECTION_5[3])  # noqa: E731
STAIRS: Check = lambda: checks.check_staircase("4", oracles.ANGLES["4"], 50)  # noqa: E731
RETRIEVAL: Check = lambda: checks.check_retrieval_worst("0.3", 0.3, 3, 1, 4, Fraction(0))  # noqa: E731
CENTRED: Check = lambda: checks.check_retrieval_worst("0.3", 0.3, 3, 1, 4, Fraction(3, 2))  # noqa: E731
SOFTMAX: Check = lambda: checks.check_retrieval_softmax("0.34", 0.34, 3, 1, 4, Fraction(0))  # noqa: E731


def head() -> None:
    built = checks.random_head(5, head_dim=8, rotary_dim=6, layout="half", biases=True, factor=1.25)
    checks.check_head(built, 6, 40, 3)


CHECKS: dict[str, Check] = {
    "GPT-J rotation": GPT_J,
    "phases": NEAR,
    "phases at 10**12": FAR,
    "phases at 2**61": FARTHEST,
    "index head": INDEX,
    "section 5 at 10**30": ROW,
    "staircase": STAIRS,
    "retrieval worst": RETRIEVAL,
    "centred worst": CENTRED,
    "retrieval far out": checks.check_first_returns,
    "retrieval softmax": SOFTMAX,
    "head": head,
    "small gap": checks.check_small_gap,
}


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_checks_hold(name: str) -> None:
    CHECKS[name]()


# ---- faults ----


def wrong_sign(patch: Patch) -> None:
    """Vectors turn backwards."""
    right = RopeSpectrum.rotate
    patch.setattr(RopeSpectrum, "rotate", lambda self, vectors, positions: right(self, vectors, -positions))


def off_by_one_offset(patch: Patch) -> None:
    """The query is turned back by one position too few."""
    right = construct_index.turned_back
    patch.setattr(construct_index, "turned_back", lambda recipe, displacement: right(recipe, displacement - 1))


def off_by_one_origin(patch: Patch) -> None:
    """The profile counts distances from one position too far."""
    right = LogitProfile.logit
    patch.setattr(LogitProfile, "logit", lambda self, distances: right(self, distances + 1))


def other_layout(patch: Patch) -> None:
    """Interleaved heads rotate halves, and the other way round."""
    swapped: dict[Layout, Layout] = {"interleaved": "half", "half": "interleaved"}
    patch.setattr(
        rope, "pair_indices", lambda layout, rotary_dim: layout_room.pair_indices(swapped[layout], rotary_dim)
    )


def dropped_plane(patch: Patch) -> None:
    """The slowest plane does not turn."""
    right = RopeSpectrum.phases

    def dropped(self: RopeSpectrum, displacements: Any) -> Any:
        turned = right(self, displacements)
        turned[..., -1] = 0
        return turned

    patch.setattr(RopeSpectrum, "phases", dropped)


def lost_plane(patch: Patch) -> None:
    """The last plane is left out of the products."""
    right = RopeSpectrum.to_planes

    def lost(self: RopeSpectrum, vectors: Any) -> Any:
        planes = right(self, vectors)
        planes[..., -1] = 0
        return planes

    patch.setattr(RopeSpectrum, "to_planes", lost)


def unscaled_once(patch: Patch) -> None:
    """The attention factor acts on queries but not on keys."""
    right = RopeSpectrum.rotate

    def once(self: RopeSpectrum, vectors: Any, positions: Any) -> Any:
        return right(self, vectors, positions) / np.sqrt(self.attention_factor)

    patch.setattr(RopeSpectrum, "rotate", once)


def float32_phase(patch: Patch) -> None:
    """position * inv_freq in float32, as models do it."""

    def single(self: RopeSpectrum, displacements: Any) -> Any:
        return (displacements[..., None].astype(np.float32) * self.inv_freq.astype(np.float32)).astype(np.float64)

    patch.setattr(RopeSpectrum, "phases", single)


def float_phase(patch: Patch) -> None:
    """position * inv_freq in float64."""
    patch.setattr(RopeSpectrum, "phases", lambda self, t: t[..., None].astype(np.float64) * self.inv_freq)


def one_word(patch: Patch) -> None:
    """Phases from the upper 64 bits of the turn only."""
    patch.setattr(phases, "_high_word", lambda a, b: np.zeros_like(a * b))


def cosine_gap(patch: Patch) -> None:
    """1 - cos instead of 2 sin**2."""

    def plain(self: LogitProfile, displacements: Any) -> Any:
        return (self.coefficients.real * (1 - np.cos(self.spectrum.phases(displacements)))).sum(axis=-1)

    patch.setattr(LogitProfile, "gap", plain)


def cosine_margin(patch: Patch) -> None:
    """1 - cos of a float64 phase on the exact route."""

    def plain(self: diophantine.OnePlaneStaircase, index: int, digits: int = 17) -> Enclosure:
        turned = RopeSpectrum(angles=(self.angle,), head_dim=2).phases_at(self.steps[index])[0]
        return Enclosure.exactly(Fraction(float(1 - np.cos(turned))))

    patch.setattr(diophantine.OnePlaneStaircase, "margin", plain)


def first_q(patch: Patch) -> None:
    """Where q_0 = q_1 = 1, the first convergent is kept: its numerator is not the nearest."""
    right = diophantine.one_plane_staircase

    def first(angle: Any, reach: int) -> diophantine.OnePlaneStaircase:
        stairs = right(angle, reach)
        return replace(stairs, numerators=(0, *stairs.numerators[1:]))

    for module in (diophantine, staircase):
        patch.setattr(module, "one_plane_staircase", first)


def one_step_early(patch: Patch) -> None:
    """The step before the one that holds at a reach."""
    right = diophantine.OnePlaneStaircase.index_at
    patch.setattr(diophantine.OnePlaneStaircase, "index_at", lambda self, reach: max(0, right(self, reach) - 1))


def semiconvergent(patch: Patch) -> None:
    """A fall at a denominator that is not a convergent's."""
    right = diophantine.one_plane_staircase

    def extra(angle: Any, reach: int) -> diophantine.OnePlaneStaircase:
        stairs = right(angle, reach)
        t = next(t for t in range(2, reach) if t not in stairs.steps)
        pairs = sorted({*zip(stairs.steps, stairs.numerators, strict=True), (t, round(t * float(angle) / (2 * np.pi)))})
        return replace(stairs, steps=tuple(q for q, _ in pairs), numerators=tuple(p for _, p in pairs))

    for module in (diophantine, staircase):
        patch.setattr(module, "one_plane_staircase", extra)


def rival_one_nearer(patch: Patch) -> None:
    """The closed form of retrieval at one position less."""
    right = letter_exact.LetterPlane.closed
    patch.setattr(
        letter_exact.LetterPlane, "closed", lambda self, n, target, digits: right(self, n - 1, target, digits)
    )


def centred_itself(patch: Patch) -> None:
    """Letter-integer queries of a centred head are forgotten, and the rivals with them."""
    right = letter_exact.Pair.gap

    def forgotten(self: Any, turn: exact_turns.Turn, bits: int) -> Enclosure:
        found = right(self, turn, bits)
        return found if self.displacement not in (-3, 3) else Enclosure.exactly(1)

    patch.setattr(letter_exact.Pair, "gap", forgotten)


def from_above_only(patch: Patch) -> None:
    """First returns: the turns below a point are not looked at."""
    right = first_return.TurnOrder.lowest
    patch.setattr(
        first_return.TurnOrder,
        "lowest",
        lambda self, point, side, first, end: right(self, point, abs(side), first, end),
    )


def nearest_only(patch: Patch) -> None:
    """First returns: no second nearest, for when the nearest holds the answer."""
    patch.setattr(first_return.TurnOrder, "second", lambda *_: [])


def rivals_anywhere(patch: Patch) -> None:
    """Softmax: the rival may stand at the answer's own distance too."""

    def everywhere(profile: Any, n: int, beta: float, **_: Any) -> float:
        scores = profile.logits(np.arange(n)) * (beta / profile.weight)
        return float(np.logaddexp.reduce(scores[1:], axis=1).max() - scores[0].min())

    patch.setattr(softmax, "_log_largest_sum", everywhere)


def own_answers_only(patch: Patch) -> None:
    """Softmax: only queries that look for themselves are considered."""
    right = softmax._log_largest_sum
    patch.setattr(softmax, "_log_largest_sum", lambda profile, n, beta, **_: right(profile, n, beta, own_only=True))


FAULTS: list[tuple[Fault, tuple[str, ...]]] = [
    (wrong_sign, ("GPT-J rotation", "head", "index head")),
    (off_by_one_offset, ("index head",)),
    (off_by_one_origin, ("head",)),
    (other_layout, ("GPT-J rotation", "head")),
    (dropped_plane, ("GPT-J rotation", "head", "phases")),
    (lost_plane, ("GPT-J rotation", "head")),
    (unscaled_once, ("head",)),
    (float32_phase, ("phases", "phases at 10**12")),
    (float_phase, ("phases at 10**12",)),
    (one_word, ("phases at 2**61",)),
    (cosine_gap, ("small gap",)),
    (cosine_margin, ("section 5 at 10**30",)),
    (first_q, ("staircase",)),
    (one_step_early, ("section 5 at 10**30", "staircase")),
    (semiconvergent, ("staircase",)),
    (rival_one_nearer, ("retrieval worst", "centred worst")),
    (centred_itself, ("centred worst",)),
    (from_above_only, ("retrieval far out",)),
    (nearest_only, ("retrieval far out",)),
    (rivals_anywhere, ("retrieval softmax",)),
    (own_answers_only, ("retrieval softmax",)),
]


@pytest.mark.parametrize(
    ("fault", "name"),
    [(fault, name) for fault, names in FAULTS for name in names],
    ids=lambda v: getattr(v, "__name__", v),
)
def test_a_fault_is_found(fault: Fault, name: str, monkeypatch: Patch) -> None:
    fault(monkeypatch)
    with pytest.raises((AssertionError, RopegeoError)):
        CHECKS[name]()

"""The pruned search of many planes, against every displacement evaluated in plain fractions and mpmath."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from math import factorial, floor, inf, pi

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as budgeted
from hypothesis import strategies as st
from oracles import Deficits, Thunk, rope_angle

from ropegeo.engine import pruned, pruned_kernels
from ropegeo.engine.diophantine import one_plane_staircase
from ropegeo.engine.pruned import PrunedEstimate, pruned_estimate, pruned_records
from ropegeo.engine.pruned_plan import plan_of
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import ClosedForm
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum

U = 2.0**-53


# ---- the oracle, and profiles ----


def turns_of_base(base: str, planes: int) -> list[Fraction]:
    """Turns per position of the default spectrum, to 300 bits."""
    with mpmath.workprec(400):
        exact = [theta() / (2 * mpmath.pi) for theta in angles_of_base(base, planes)]
        return [Fraction(int(mpmath.floor(turn * 2**300)), 2**300) for turn in exact]


def angles_of_base(base: str, planes: int) -> list[Thunk]:
    return [rope_angle(int(base), plane, 2 * planes) for plane in range(planes)]


def deficits(base: str, coefficients: Sequence[complex], displacements: Iterable[int]) -> np.ndarray:
    oracle = Deficits(angles_of_base(base, len(coefficients)), coefficients, bits=256)
    return np.array([oracle.at(t) for t in displacements])


def record_minima(values: np.ndarray, budget: float, clear: float) -> list[int]:
    """Places where the running minimum falls by more than `clear`, what the oracle's own rounding cannot decide."""
    places, lowest = [], budget
    for place, value in enumerate(values):
        if value < lowest - clear:
            places.append(place)
        lowest = min(lowest, value)
    return places


def slacks(head: LogitProfile) -> Callable[[float], float]:
    """What a computed deficit may differ by from a true one: the proof's s(R) is more than twice its E."""
    plan = plan_of(head)
    return lambda deficit: float(pruned_kernels.slackened(deficit, plan.leaf_slack)) - deficit


def profile(base: str, coefficients: Sequence[complex]) -> LogitProfile:
    spectrum = RopeSpectrum.from_base(base, head_dim=2 * len(coefficients))
    return LogitProfile(spectrum=spectrum, coefficients=np.array(coefficients))


def rational(turns: Sequence[Fraction], coefficients: Sequence[complex]) -> LogitProfile:
    angles = tuple(2 * turn * ClosedForm.pi() for turn in turns)
    spectrum = RopeSpectrum(angles=angles, head_dim=2 * len(turns))
    return LogitProfile(spectrum=spectrum, coefficients=np.array(coefficients))


PHASED = [complex(np.exp(2j * pi * k * k / 7)) for k in range(8)]  # a head with many records
planes_st = st.integers(1, 11)


@st.composite
def heads(draw: st.DrawFn) -> tuple[str, list[complex]]:
    planes = draw(planes_st)
    phased = draw(st.booleans())
    weights = draw(st.lists(st.sampled_from([0.0, 1e-3, 0.3, 1.0, 1.7]), min_size=planes, max_size=planes))
    weights[draw(st.integers(0, planes - 1))] = 1.0
    angles = draw(st.lists(st.floats(0, 6.3), min_size=planes, max_size=planes)) if phased else [0.0] * planes
    coefficients = [complex(w * np.exp(1j * a)) for w, a in zip(weights, angles, strict=True)]
    return draw(st.sampled_from(["3", "50", "10000", "500000"])), coefficients


# ---- records ----


@budgeted(max_examples=25)
@given(
    head=heads(),
    low=st.sampled_from([-1500, 0, 1, 777, 10**9, 10**15, -(10**15), 2**62 - 2001]),
    length=st.integers(1, 1500),
    share=st.sampled_from([0.05, 0.4, inf]),
)
def test_every_record_is_among_the_candidates(
    head: tuple[str, list[complex]], low: int, length: int, share: float
) -> None:
    base, c = head
    weight = float(np.abs(c).sum())
    budget = share * weight
    head_profile = profile(base, c)
    slack = slacks(head_profile)
    values = deficits(base, c, range(low, low + length))
    found = pruned_records(head_profile, low, low + length - 1, budget, threads=1)
    assert found.complete
    assert found.complete_to == low + length - 1
    at = found.displacements.tolist()
    assert at == sorted(set(at))
    assert {low + place for place in record_minima(values, budget, clear=0.0)} <= set(at)
    # A deficit is right to the rounding that the module states (less than the slack; the oracle's is less again), and
    # what is found is a record to within that: its own, the slack, the record's own. One slack covers two of the first.
    running = np.minimum.accumulate(np.concatenate([[budget], values]))
    for t, deficit in zip(at, found.deficits.tolist(), strict=True):
        value = values[t - low]
        assert abs(deficit - value) <= slack(value)
        if running[t - low] < inf:
            assert value <= running[t - low] + slack(value) + 2 * slack(running[t - low])
    least = float(min((values[t - low] for t in at), default=budget))
    assert least * (1 - 4 * U) <= found.lowest
    assert found.lowest == budget or found.lowest <= least + 3 * slack(least)


@pytest.mark.parametrize("low", [1, 10**15, -(2**61)])
def test_long_range_with_few_blocks(low: int) -> None:
    c = [1.0] * 8
    length = 200_000
    head = profile("10000", c)
    alpha = np.array([floor(turn * 2**64) for turn in turns_of_base("10000", 8)], dtype=np.uint64)
    start = np.array([floor((low * turn) % 1 * 2**64) for turn in turns_of_base("10000", 8)], dtype=np.uint64)
    # A turn is off by (length + 1) 2**-64 for the floors and 2**-53 for the double: delta in all, so a deficit by
    # 2 pi delta sqrt(2 D W) at most, D <= 2 W = 16; a record below another by more than twice that is one.
    turns = (start + np.arange(length, dtype=np.uint64)[:, None] * alpha) * 2.0**-64
    clear = 2 * 2 * pi * ((length + 1) * 2.0**-64 + 2.0**-53) * (2 * 16 * 8) ** 0.5
    values = (2 * np.sin(pi * turns) ** 2).sum(axis=1)
    found = pruned_records(head, low, low + length - 1, inf)
    expected = [low + place for place in record_minima(values, inf, clear=clear)]
    assert set(expected) <= set(found.displacements.tolist())
    assert len(found.displacements) <= len(expected) + 1
    assert found.blocks < length / 10


def test_chunks_and_threads_do_not_change_the_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    head = profile("10000", list(rng.random(6) * np.exp(2j * pi * rng.random(6))))
    whole = pruned_records(head, -3, 50_000, inf, threads=1)
    assert len(whole.displacements) > 5
    for first, blocks, threads in ((1, 1 << 19, 1), (3, 7, 1), (3, 7, 2), (64, 100, 3), (1 << 14, 1 << 19, 2)):
        monkeypatch.setattr(pruned, "_FIRST_CHUNK", first)
        monkeypatch.setattr(pruned, "CHUNK_BLOCKS", blocks)
        again = pruned_records(head, -3, 50_000 if first > 50 else 3000, inf, threads=threads)
        kept = whole.displacements <= again.high
        assert again.complete
        assert again.displacements.tolist() == whole.displacements[kept].tolist()
        assert again.deficits.tolist() == whole.deficits[kept].tolist()


def test_records_of_one_plane_are_the_convergents() -> None:
    spectrum = RopeSpectrum.from_base("10000", head_dim=4)
    for plane, reach in ((0, 30_000), (1, 10**6)):
        c = np.zeros(2, dtype=np.complex128)
        c[plane] = 2.5
        steps = one_plane_staircase(spectrum.angles[plane], reach).steps
        found = pruned_records(LogitProfile(spectrum=spectrum, coefficients=c), 1, reach, inf)
        assert set(steps) <= set(found.displacements.tolist())
        if plane == 0:
            assert tuple(found.displacements.tolist()) == steps


def test_rational_planes_return_exactly_and_ties_are_kept() -> None:
    head = rational([Fraction(1, 6), Fraction(1, 10), Fraction(5, 1)], [1.0, 0.5, 0.7])
    found = pruned_records(head, 1, 200, inf)
    assert [t for t in found.displacements.tolist() if t % 30 == 0] == [30, 60, 90, 120, 150, 180]
    assert 0 < found.deficits[found.displacements == 30] < slacks(head)(0.0)
    assert 0 < found.lowest < slacks(head)(0.0) * 2
    assert pruned_records(head, 1, 29, 1e-9).displacements.size == 0


def test_a_flat_profile_gives_up_with_its_ties() -> None:
    head = rational([Fraction(1), Fraction(3)], [1.0, 1j])
    found = pruned_records(head, 1, 10**9, inf, max_candidates=1000)
    assert not found.complete
    assert 1000 < len(found.displacements) < 10_000
    assert found.complete_to >= found.displacements[-1]
    assert np.allclose(found.deficits, 1.0)
    assert pruned_records(head, 1, 10**12, 0.5).complete  # nothing can be below: one look at each of the largest blocks


def test_zero_weights_change_nothing() -> None:
    c = np.array([0.0, 1.0, 0.0, 0.6, 0.0])
    spectrum = RopeSpectrum.from_base("10000", head_dim=10)
    few = RopeSpectrum(angles=(spectrum.angles[1], spectrum.angles[3]), head_dim=4)
    first = pruned_records(LogitProfile(spectrum=spectrum, coefficients=c), 1, 5000, inf)
    second = pruned_records(LogitProfile(spectrum=few, coefficients=c[[1, 3]]), 1, 5000, inf)
    assert first.displacements.tolist() == second.displacements.tolist()


@pytest.mark.parametrize("factor", [2.0**-664, 2.0**664], ids=["1e-200", "1e200"])
def test_units_do_not_matter(factor: float) -> None:
    for c in ([1.0, 0.5, 2.0, 0.7], PHASED[:5]):
        plain, scaled = profile("10000", c), profile("10000", [factor * x for x in c])
        for low, high, budget in ((1, 10**5, inf), (-(10**15), -(10**15) + 10**5, 1.0)):
            one = pruned_records(plain, low, high, budget)
            other = pruned_records(scaled, low, high, budget * factor)
            assert one.displacements.size
            assert one.displacements.tolist() == other.displacements.tolist()
            assert np.allclose(one.deficits * factor, other.deficits, rtol=1e-15, atol=0)
            assert other.lowest == pytest.approx(one.lowest * factor, rel=1e-14)


def test_what_rounds_to_zero_is_not_called_zero() -> None:
    """Turns of 1e-30: the computed deficit of t = 1 is 0, the true one about 1e-60."""
    angle = ClosedForm.pi() * Fraction(2, 10**30)
    slow = LogitProfile(spectrum=RopeSpectrum(angles=(angle,), head_dim=2), coefficients=np.ones(1, complex))
    found = pruned_records(slow, 1, 1000, inf)
    assert (found.deficits > 0).all()
    assert found.lowest >= 2 * pi**2 * 1e-60


def test_budgets_beyond_doubles_are_refused() -> None:
    for factor in (1.0, 1e-200, 1e200):
        for call in (pruned_records, pruned_estimate):
            with pytest.raises(UnsupportedError, match="beyond doubles"):
                call(profile("10000", [factor, factor]), 1, 10, 1e-291 * factor)


def test_giving_up_says_how_far() -> None:
    head = profile("10000", PHASED)
    whole = pruned_records(head, 1, 10**6, inf, threads=1)
    assert whole.blocks > 2000
    for threads in (1, 2):
        part = pruned_records(head, 1, 10**6, inf, threads=threads, max_blocks=2000)
        assert not part.complete
        assert 1 <= part.complete_to < 10**6
        kept = whole.displacements <= part.complete_to
        assert part.displacements.tolist() == whole.displacements[kept].tolist()


def test_progress_and_interrupts_between_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    head = profile("10000", [1.0] * 8)
    done: list[int] = []
    pruned_records(head, 1, 200_000, inf, threads=1, progress=done.append)
    assert done == sorted(done)
    assert done[-1] == 200_000
    monkeypatch.setattr(pruned, "CHUNK_BLOCKS", 1 << 10)

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    for threads in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            pruned_records(head, 1, 10**14, inf, threads=threads, progress=interrupt)


# ---- the bound ----


@budgeted(max_examples=60)
@given(
    head=heads(),
    start=st.integers(-(10**17), 10**17),
    level=st.integers(0, 20),
    inside=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=8),
)
def test_the_bound_is_below_every_deficit_in_the_block(
    head: tuple[str, list[complex]], start: int, level: int, inside: list[float]
) -> None:
    base, c = head
    plan = plan_of(profile(base, c))
    level = min(level, plan.top)
    turns, least = np.zeros((plan.top + 2, plan.weights.size)), np.zeros(plan.weights.size)
    for i in range(plan.weights.size):
        turns[level + 1, i] = pruned_kernels.turn_at(plan.limbs, i, start) + plan.shifts[i] + plan.roots[level, i]
    pruned_kernels.bound_planes(turns, plan.steps, plan.halves, plan.weights, least, level, 0.0, 0, least.size)
    bound = least.sum()
    points = sorted({start, start + (1 << level) - 1, *(start + int(x * (1 << level)) for x in inside)})
    values = deficits(base, c, points)
    assert bound <= pruned_kernels.slackened(values.min(), plan.block_slack)
    if level == 0:  # the polynomial keeps 0.98 of each share (see below), the rest is rounding
        assert pruned_kernels.slackened(bound, plan.block_slack) >= 0.98 * values[0]


def test_centres_of_halves_are_those_of_their_own_blocks() -> None:
    plan = plan_of(profile("10000", [1.0, 1j, 0.5]))
    for level in range(plan.top):
        exact = plan.roots[level + 1]  # centre of the whole, then of the left half
        left = (exact - plan.steps[level] - plan.roots[level]) % 1
        assert np.all(np.minimum(left, 1 - left) < 4 * U)


def test_exact_turns_of_large_displacements() -> None:
    turns = turns_of_base("500000", 5)
    plan = plan_of(profile("500000", [1.0] * 5))
    order = sorted(range(5), key=lambda k: min(turns[k], 1 - turns[k]))
    for t in (0, 1, -1, 2**32, 2**32 - 1, 10**15 + 7, -(10**18), 2**62 - 1, -(2**62) + 1):
        for i, k in enumerate(order):
            expected = (turns[k] * t + Fraction(1, 2)) % 1 - Fraction(1, 2)
            off = abs(Fraction(pruned_kernels.turn_at(plan.limbs, i, t)) - expected)
            assert min(off, 1 - off) < Fraction(1, 2**53)


def test_polynomial_is_below_and_near() -> None:
    y = np.linspace(0, 0.5, 2001)
    least = np.zeros(y.size)
    flat = np.zeros((1, y.size))
    pruned_kernels.bound_planes(np.stack([y, y]), flat, flat, np.ones(y.size), least, 0, 0.0, 0, y.size)
    with mpmath.workdps(30):
        exact = np.array([float(1 - mpmath.cos(2 * mpmath.pi * mpmath.mpf(float(x)))) for x in y])
    assert np.all(least <= exact * (1 + 40 * U))
    assert np.all(least >= 0.98 * exact)
    assert least[-1] == pytest.approx(sum((-1) ** (m + 1) * pi ** (2 * m) / factorial(2 * m) for m in range(1, 5)))


def test_fault_a_bound_without_half_widths_loses_records(monkeypatch: pytest.MonkeyPatch) -> None:
    c = PHASED
    right = pruned_records(profile("10000", c), 1, 100_000, inf, threads=1).displacements.tolist()

    def faulty(head: LogitProfile) -> object:
        plan = plan_of(head)
        plan.halves[:] = 0.0
        return plan

    monkeypatch.setattr(pruned, "plan_of", faulty)
    wrong = pruned_records(profile("10000", c), 1, 100_000, inf, threads=1).displacements.tolist()
    assert not set(right) <= set(wrong)


# ---- the estimate, bad input, plain Python ----


def test_estimate_is_near_the_work() -> None:
    head = profile("10000", [1.0] * 12)
    budget = 1.0
    found = pruned_records(head, 1, 3 * 10**6, budget, threads=1)
    estimate = pruned_estimate(head, 1, 3 * 10**6, budget, samples=64)
    # Estimates steer which search is tried, no result depends on them: within a factor of 4 is near enough.
    assert found.blocks / 4 < estimate.blocks * 3e6 < found.blocks * 4
    assert estimate == pruned_estimate(head, 1, 3 * 10**6, budget, samples=64)
    assert PrunedEstimate(blocks=0.5, shares=4.0).seconds(10**9, block_ns=2.0, share_ns=0.25) == pytest.approx(2.0)


def test_bad_input() -> None:
    head = profile("10000", [1.0, 1.0])
    nothing = LogitProfile(spectrum=head.spectrum, coefficients=np.zeros(2, dtype=np.complex128))
    for low, high in ((2, 1), (1, 2**62), (-(2**62), 1)):
        with pytest.raises(InvalidInputError, match="low <= high"):
            pruned_records(head, low, high, 1.0)
        with pytest.raises(InvalidInputError, match="low <= high"):
            pruned_estimate(head, low, high, 1.0)
    for budget in (-1.0, float("nan")):
        with pytest.raises(InvalidInputError, match="budget"):
            pruned_records(head, 1, 2, budget)
    with pytest.raises(InvalidInputError, match="all coefficients are zero"):
        pruned_records(nothing, 1, 2, 1.0)
    with pytest.raises(InvalidInputError, match="all coefficients are zero"):
        pruned_estimate(nothing, 1, 2, 1.0)
    with pytest.raises(InvalidInputError, match="at least 1"):
        pruned_records(head, 1, 2, 1.0, max_blocks=0)
    with pytest.raises(InvalidInputError, match="samples"):
        pruned_estimate(head, 1, 2, 1.0, samples=0)

"""Near returns and certified deficits against sums of cosines at every displacement, in integers and mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple
from unittest.mock import patch

import checks
import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import Deficits, mp_fraction

from ropegeo.engine import lattice, return_lattice, searches
from ropegeo.engine.certify import ExactDeficit
from ropegeo.engine.deficits import Scaled, fine_deficits, scaled_deficits
from ropegeo.engine.exact_turns import Rotation, rotations
from ropegeo.engine.return_bound import return_bound
from ropegeo.engine.staircase import staircase
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import read_angle
from ropegeo.exact.lattice import reduced_basis
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum

ROUNDING = 1e-12
"""What `lattice` promises of a fine deficit, relative; the oracle's own error is below 1e-14."""


# ---- planes ----


class Plane(NamedTuple):
    """One plane: how ropegeo's grammar writes the angle, the same for mpmath, and the coefficient."""

    text: str
    theta: Callable[[], Any]
    coefficient: complex


def oracle_of(planes: list[Plane], bits: int = 512) -> Deficits:
    return Deficits([plane.theta for plane in planes], [plane.coefficient for plane in planes], bits)


def profile_of(planes: list[Plane]) -> LogitProfile:
    spectrum = RopeSpectrum(angles=tuple(read_angle(plane.text) for plane in planes), head_dim=2 * len(planes))
    return LogitProfile(spectrum=spectrum, coefficients=np.array([plane.coefficient for plane in planes]))


Angle = tuple[str, Callable[[], Any]]


def plane_of(angle: Angle, coefficient: complex) -> Plane:
    return Plane(*angle, coefficient)


def rational(turn: Fraction) -> Angle:
    return f"{turn.numerator}/{turn.denominator} turn", lambda: 2 * mpmath.pi * mp_fraction(turn)


def power(base: int, k: int, width: int) -> Angle:
    return f"{base}^(-{k}/{width})", lambda: mpmath.mpf(base) ** (-mpmath.mpf(k) / width)


def decimal(value: Fraction) -> Angle:
    return f"{value.numerator}/{value.denominator}", lambda: mp_fraction(value)


def llama_31(count: int) -> list[Plane]:
    """The fast planes of llama-3.1, which its scaling leaves alone: 500000**(-k/64), equal weights."""
    return [plane_of(power(500000, k, 64), 1 / count + 0j) for k in range(count)]


angles = st.one_of(
    st.builds(rational, st.fractions(Fraction(1, 60), Fraction(5, 2), max_denominator=60)),
    st.builds(power, st.sampled_from([10, 10000, 500000]), st.integers(1, 40), st.sampled_from([17, 32, 64])),
    st.builds(decimal, st.fractions(Fraction(1, 900), Fraction(9), max_denominator=997)),
)
weights = st.one_of(st.just(1.0), st.floats(0.01, 3.0), st.sampled_from([1e-6, 1e-3, 20.0]))
phased = st.builds(
    complex,
    st.floats(-2, 2).map(lambda x: x or 1.0),
    st.one_of(st.just(0.0), st.floats(-2, 2), st.just(1.0)),
)
starts = st.one_of(
    st.integers(-3000, 10), st.integers(1, 10**6), st.integers(10**8, 10**18), st.integers(-(10**40), 10**40)
)


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Plane], int, int, float]:
    count = draw(st.integers(1, 12))
    coefficients = phased if draw(st.booleans()) else weights.map(complex)
    planes = [plane_of(draw(angles), draw(coefficients)) for _ in range(count)]
    low = draw(starts)
    high = low + draw(st.integers(0, 6000))
    # A budget at one of the values met: some below, one on the edge, the others above.
    oracle = oracle_of(planes)
    values = np.sort(oracle.block(low, high - low + 1))
    share = draw(st.one_of(st.just(0.0), st.floats(0, 0.05), st.floats(0, 1)))
    edge = float(values[int(share * (len(values) - 1))])
    factor = draw(st.sampled_from([0.5, 1.0, 1.0001, 3.0]))
    return planes, low, high, max(edge, 1e-9 * oracle.weight) * factor


def check_complete(planes: list[Plane], low: int, high: int, budget: float) -> lattice.NearReturns:
    """All of them, nothing beyond the budget but for rounding, in order, with their deficits and a bound on the least.

    A rounded exact 0 is what the oracle's 512 bits leave of it.
    """
    oracle = oracle_of(planes)
    found = lattice.near_returns(profile_of(planes), low, high, budget)
    truth = oracle.below(low, high, budget * (1 + 2e-9))
    missed = {t for t, value in truth.items() if value < budget * (1 - ROUNDING)} - set(found.displacements)
    assert not missed
    assert list(found.displacements) == sorted(set(found.displacements))
    for t, value in zip(found.displacements, found.deficits, strict=True):
        assert abs(value - truth[t]) <= ROUNDING * truth[t] + 1e-100
    least = min((truth[t] for t in found.displacements), default=math.inf)
    assert least * (1 - 1e-14) - 1e-100 <= found.lowest
    assert found.lowest <= least * (1 + 5e-12) or least == math.inf
    return found


# ---- completeness ----


@pytest.mark.slow
@given(problems())
@settings(max_examples=40)
def test_every_near_return_is_found(problem: tuple[list[Plane], int, int, float]) -> None:
    check_complete(*problem)


PHASES = [1 + 0j, 0.5 - 0.25j, -0.75j, -0.3 + 0.8j, 0.2 + 0.2j]


@pytest.mark.parametrize("low", [-200_000, 1, 10**17, 10**30])
@pytest.mark.parametrize("count", [2, 3, 7])
@pytest.mark.parametrize("peaked", [True, False])
def test_longer_ranges(low: int, count: int, *, peaked: bool) -> None:
    """400000 displacements in a row, a budget that a few dozen meet."""
    planes = [
        plane._replace(coefficient=(1 + k / 7 + 0j) if peaked else PHASES[k % 5])
        for k, plane in enumerate(llama_31(count))
    ]
    oracle = oracle_of(planes)
    sample = np.sort(oracle.block(low + 5, 50_000))
    found = check_complete(planes, low, low + 400_000, float(sample[3]))
    assert len(found.displacements) > 3
    assert found.nodes < 50_000


def test_all_of_them() -> None:
    """A budget beyond the largest deficit."""
    found = lattice.near_returns(profile_of(llama_31(3)), -50, 200, 2.5)
    assert found.displacements == tuple(range(-50, 201))


def test_one_displacement() -> None:
    profile = profile_of(llama_31(8))
    assert lattice.near_returns(profile, 957769932, 957769932, 0.0073).displacements == (957769932,)
    assert lattice.near_returns(profile, 957769933, 957769933, 0.0073).displacements == ()


def test_mirrored_ranges_of_a_peaked_profile() -> None:
    profile = profile_of(llama_31(6))
    right = lattice.near_returns(profile, 1, 10**6, 0.02).displacements
    both = lattice.near_returns(profile, -(10**6), 10**6, 0.02).displacements
    assert both == (*(-t for t in reversed(right)), 0, *right)
    assert lattice.near_returns(profile, -(10**6), -1, 0.02).displacements == tuple(-t for t in reversed(right))


@pytest.mark.parametrize("exponent", [3, 9, 20, 40])
def test_exact_returns_have_deficit_zero(exponent: int) -> None:
    """Turns 1/6, 3/10, 1/4: whole together at multiples of 60, whatever the budget; plus a phase of 1/8 against it."""
    turns = [Fraction(1, 6), Fraction(3, 10), Fraction(1, 4)]
    planes = [Plane(*rational(turn), 1 + 0j) for turn in turns]
    low = 10**exponent
    found = lattice.near_returns(profile_of(planes), low, low + 600, 1e-60)
    assert found.displacements == tuple(t for t in range(low, low + 601) if t % 60 == 0)
    assert set(found.deficits) == {0.0}
    tilted = [planes[0], planes[1], planes[2]._replace(coefficient=1 + 1j)]
    assert lattice.near_returns(profile_of(tilted), low, low + 600, 1e-60).displacements == ()
    turned = [planes[0], planes[1], planes[2]._replace(coefficient=-2j)]  # a quarter back
    found = lattice.near_returns(profile_of(turned), low, low + 600, 1e-60)
    assert found.displacements == tuple(t for t in range(low, low + 601) if t % 30 == 0 and (t - 1) % 4 == 0)


def test_one_plane_and_the_continued_fraction() -> None:
    """Convergents of 1/(2 pi), from mpmath: each beats all before, so a budget just above its gap finds it."""
    with mpmath.workdps(120):
        rest, before, q = 1 / (2 * mpmath.pi), 0, 1
        for _ in range(25):
            rest = 1 / rest
            quotient = int(rest)
            rest -= quotient
            before, q = q, quotient * q + before
            turn = q / (2 * mpmath.pi)
            gap = float(2 * mpmath.sin(mpmath.pi * (turn - mpmath.nint(turn))) ** 2)
            profile = profile_of([Plane("1", lambda: mpmath.mpf(1), 1 + 0j)])
            assert lattice.near_returns(profile, 1, q, gap * (1 + 1e-6)).displacements[0] == q
            assert lattice.near_returns(profile, 1, q, gap * (1 - 1e-6)).displacements == ()


# ---- limits ----


def test_a_search_that_is_too_long_says_so() -> None:
    profile = profile_of(llama_31(8))
    with pytest.raises(UnsupportedError, match="passes its limit of 50 nodes"):
        lattice.near_returns(profile, 1, 10**9, 0.01, max_nodes=50)
    with pytest.raises(UnsupportedError, match="points"):  # more than can be stored
        lattice.near_returns(profile, 1, 10**9, 1.0)


def test_the_estimate_tells_the_easy_from_the_hopeless() -> None:
    profile = profile_of(llama_31(8))
    easy = lattice.near_returns(profile, 1, 10**9, 0.01)
    # Estimates steer which search is tried, no result depends on them: an order of magnitude or so is asked for.
    assert easy.nodes / 30 < lattice.estimated_nodes(profile, 1, 10**9, 0.01) < 30 * easy.nodes
    assert lattice.estimated_nodes(profile, 1, 10**30, 0.3) > 1e12


@pytest.mark.parametrize(("low", "high", "budget"), [(2, 1, 0.1), (1, 2, 0.0), (1, 2, -1.0), (1, 2, math.inf)])
def test_bad_requests(low: int, high: int, budget: float) -> None:
    with pytest.raises(InvalidInputError):
        lattice.near_returns(profile_of(llama_31(2)), low, high, budget)
    with pytest.raises(InvalidInputError):
        lattice.estimated_nodes(profile_of(llama_31(2)), low, high, budget)


def test_profiles_without_a_return() -> None:
    empty = LogitProfile(spectrum=RopeSpectrum.from_base(10000, head_dim=4), coefficients=np.zeros(2, complex))
    with pytest.raises(InvalidInputError):
        lattice.near_returns(empty, 1, 10, 0.1)


# ---- huge reaches, tiny and huge weights ----

HUGE = [309, 330, 1000]


def wide_oracle(planes: list[Plane]) -> Deficits:
    return oracle_of(planes, bits=7000)


@pytest.mark.parametrize("peaked", [True, False])
@pytest.mark.parametrize("exponent", HUGE)
def test_deficits_beyond_doubles(exponent: int, *, peaked: bool) -> None:
    t = 10**exponent
    planes = llama_31(2) if peaked else [plane._replace(coefficient=PHASES[k]) for k, plane in enumerate(llama_31(2))]
    profile, oracle = profile_of(planes), wide_oracle(planes)
    for at in (t, -t, t + 1):
        (fine,) = fine_deficits(rotations(profile), [at])
        assert fine == pytest.approx(oracle.at(at), rel=ROUNDING)
        assert float(ExactDeficit(profile).at(at)) * oracle.weight == pytest.approx(oracle.at(at), rel=ROUNDING)
        values = oracle.block(t, 2001)
        budget = float(np.sort(values)[5])
        found = lattice.near_returns(profile, t, t + 2000, budget * (1 + 1e-6))
        assert found.displacements == tuple(t + j for j in np.flatnonzero(values <= budget * (1 + 1e-6)).tolist())


@pytest.mark.parametrize("peaked", [True, False])
@pytest.mark.parametrize("exponent", HUGE)
def test_bounds_beyond_doubles(exponent: int, *, peaked: bool) -> None:
    """Two turns come near whole ones together as counting says, to reach**-1/2 each; eight are searched again."""
    reach = 10**exponent
    for count, worst in ((2, Fraction(10**6, reach)), (8, None)):
        planes = llama_31(count)
        if not peaked:
            planes = [plane._replace(coefficient=PHASES[k % 5]) for k, plane in enumerate(planes)]
        profile, oracle = profile_of(planes), wide_oracle(planes)
        bound = return_bound(profile, reach)
        assert 1 <= bound.displacement <= reach
        with mpmath.workdps(60):
            total = mpmath.mpf(0)
            for (step, phase), size in zip(oracle.fixed, oracle.sizes, strict=True):
                turn = bound.displacement * step + phase
                away = mpmath.mpf(min(turn % (1 << oracle.bits), -turn % (1 << oracle.bits))) / 2**oracle.bits
                total += 2 * size * mpmath.sin(mpmath.pi * away) ** 2
            assert bound.deficit.proves(17)
            assert abs(mp_fraction(bound.deficit.low) * oracle.weight / total - 1) < 1e-14
        if worst is not None:
            assert bound.deficit.high < worst
            low, high = scaled_deficits(rotations(profile), [bound.displacement, 1])
            assert Scaled(-(1 << 40), 0.5) < low < high
            assert float(low) >= math.ulp(0.0)  # not 0, though below any double
            with pytest.raises(UnsupportedError, match="beyond doubles"):
                lattice.near_returns(profile, 1, reach, 1e-300)
        else:
            budget = float(bound.deficit) * oracle.weight * (1 + 1e-9)
            assert bound.displacement in lattice.near_returns(profile, 1, reach, budget).displacements


def test_the_hopeless_is_said_at_once() -> None:
    """Lattices of which none could be searched are not reduced: 64 planes and a reach of 10**1000."""
    profile = LogitProfile(spectrum=RopeSpectrum.from_base(500000, head_dim=128), coefficients=np.ones(64, complex))
    with patch.object(return_lattice, "reduced_basis", wraps=reduced_basis) as reduced:
        assert lattice.estimated_nodes(profile, 1, 10**1000, 1.0) > 1e15
    assert reduced.call_count == 1


@pytest.mark.parametrize("peaked", [True, False])
@pytest.mark.parametrize("factor", [2.0**-664, 2.0**664], ids=["1e-200", "1e200"])  # exact: phases stay
def test_units_do_not_matter(factor: float, *, peaked: bool) -> None:
    coefficients = [1 + 0j] * 4 if peaked else PHASES[:4]
    spectrum = RopeSpectrum.from_base(10000, head_dim=8)
    plain, scaled = (
        LogitProfile(spectrum=spectrum, coefficients=np.array([unit * c for c in coefficients]))
        for unit in (1.0, factor)
    )
    for low, high, budget in ((1, 10**5, 0.9), (-(10**5), 10**5, 0.9), (10**20, 10**20 + 10**6, 0.05)):
        one = lattice.near_returns(plain, low, high, budget)
        other = lattice.near_returns(scaled, low, high, budget * factor)
        assert one.displacements
        assert one.displacements == other.displacements
        assert np.allclose(np.array(one.deficits) * factor, other.deficits, rtol=1e-11, atol=0)
        assert other.lowest == pytest.approx(one.lowest * factor, rel=1e-11)
    for reach in (10**9, 10**330):
        assert return_bound(plain, reach).displacement == return_bound(scaled, reach).displacement
    for t in (1, -710, 10**30, 10**330):
        deficit, same = (float(ExactDeficit(profile).at(t)) for profile in (plain, scaled))
        assert same == pytest.approx(deficit, rel=1e-14)


def test_what_underflows_is_not_zero() -> None:
    """Weight 1e-200 and turns of 1e-100: D is some 1e-400, which no double is."""
    planes = rotations(profile_of([plane_of(decimal(Fraction(1, 10**100)), 1e-200 + 0j)]))
    assert fine_deficits(planes, [0, 1, -7]) == [0.0, math.ulp(0.0), math.ulp(0.0)]
    zero, one, seven = scaled_deficits(planes, [0, 1, 7])
    assert zero < one < seven
    assert math.log2(seven.mantissa / one.mantissa) + seven.exponent - one.exponent == pytest.approx(math.log2(49))


def test_lowest_is_a_bound_on_the_least() -> None:
    """Thousands of near returns, most of them judged in numpy: the least is known as well as it is alone."""
    profile = profile_of(llama_31(3))
    found = lattice.near_returns(profile, 1, 10**6, 0.5)
    assert len(found.displacements) > 10**5
    exact = ExactDeficit(profile).at(found.displacements[int(np.argmin(found.deficits))])
    weight = sum(Fraction(float(c.real)) for c in profile.coefficients)
    assert exact.high * weight <= Fraction(found.lowest) <= exact.low * weight * (1 + Fraction(5, 10**12))
    assert lattice.near_returns(profile, 1, 10, 1e-9).lowest == math.inf
    assert lattice.near_returns(profile, -3, 10, 1e-9).lowest == 0.0
    tiny = lattice.near_returns(profile, 1, 4 * 10**6, found.lowest)
    assert all(value <= found.lowest * (1 + 3e-9) for value in tiny.deficits)


# ---- records ----

# Every t up to 10**9 evaluated by a compiled loop of its own (angle addition from exact 64-bit phases every 1024 steps,
# candidates decided with mpmath at 60 digits); `scanned_records` below is the same in numpy.
RECORDS = {
    8: [
        1,
        26710,
        50096,
        80500,
        133606,
        279382,
        597877,
        2015652,
        2437116,
        3072232,
        4452768,
        19577331,
        57086012,
        92093998,
        215488180,
        235065511,
        665618409,
        900683920,
        957769932,
    ],
    12: [1, 8846493, 11370944, 33230328, 33270019, 46044546, 219241799, 230612743, 285742146],
}


def scanned_records(planes: list[Plane], reach: int) -> list[int]:
    """Record minima of D over 1..reach: all t in float64, those that may be records again in integers."""
    oracle = oracle_of(planes)
    size = 1 << 16
    waves = [w * np.exp(2j * np.pi * np.array([oracle.centred(j * step) for j in range(size)]))
             for w, (step, _) in zip(oracle.sizes, oracle.fixed, strict=True)]  # fmt: skip
    records: list[int] = []
    lowest, least = math.inf, math.inf
    for start in range(0, reach + 1, size):
        total = np.full(size, oracle.weight)
        for wave, (step, _) in zip(waves, oracle.fixed, strict=True):
            x = 2 * math.pi * oracle.centred(start * step)
            total -= math.cos(x) * wave.real - math.sin(x) * wave.imag
        total[: max(0, 1 - start)] = math.inf
        running = np.minimum.accumulate(np.concatenate([[lowest], total[: reach + 1 - start]]))
        lowest = float(running[-1])
        for j in np.flatnonzero(total[: reach + 1 - start] <= running[:-1] + 1e-12).tolist():
            if start + j and (value := oracle.at(start + j)) < least:
                records.append(start + j)
                least = value
    return records


def lattice_records(planes: list[Plane], reach: int, first: int = 1 << 16) -> list[int]:
    """Steps of the lattice route, which evaluates 1..`first` and then searches ever longer ranges."""
    with patch.object(searches, "STREAMED_AT_ONCE", first * len(planes)):
        return list(staircase(profile_of(planes), reach, route="lattice").steps)


@pytest.mark.parametrize("count", [8, 12])
def test_records_to_a_billion(count: int) -> None:
    assert lattice_records(llama_31(count), 10**9) == RECORDS[count]


@pytest.mark.parametrize("count", [8, 12])
def test_the_records_by_brute_force(count: int) -> None:
    assert scanned_records(llama_31(count), 2_100_000) == [t for t in RECORDS[count] if t <= 2_100_000]


@pytest.mark.slow
@pytest.mark.parametrize("count", [8, 12])
def test_the_records_to_a_billion_by_brute_force(count: int) -> None:
    assert scanned_records(llama_31(count), 10**9) == RECORDS[count]


@pytest.mark.slow
@given(st.lists(st.tuples(angles, weights), min_size=2, max_size=5), st.integers(200, 60_000))
@settings(max_examples=8)
@example([(power(10000, k, 4), 1.0) for k in (1, 2, 3)], 60_000)
def test_records_of_random_planes(drawn: list[tuple[Angle, float]], reach: int) -> None:
    """From a first stretch of 64, so that the search has several ranges to do."""
    planes = [plane_of(angle, complex(weight)) for angle, weight in drawn]
    found = lattice_records(planes, reach, first=64)
    oracle = oracle_of(planes)
    least, records = math.inf, []
    for t in oracle.below(1, reach, 2 * oracle.weight):
        value = oracle.at(t)
        if value < least * (1 - 1e-11):
            records.append(t)
            least = value
            if value < 1e-100:
                break
    assert set(records) <= set(found)


def test_records_end_where_all_planes_return() -> None:
    planes = [Plane(*rational(Fraction(1, q)), 1 + 0j) for q in (97, 101, 103)]
    found = lattice_records(planes, 10**20)
    assert found[-1] == 97 * 101 * 103
    stairs = staircase(profile_of(planes), 10**20, route="lattice")
    assert [stairs.margin(place, 5).sign for place in (-2, -1)] == [1, 0]


@pytest.mark.slow
@pytest.mark.parametrize("base", [10000, 500000])
def test_sixty_four_planes_do_not_return_soon(base: int) -> None:
    """t = 1 stays the nearest up to 10**10: no other t comes as near, by the planes that are searched alone."""
    spectrum = RopeSpectrum.from_base(base, head_dim=128)
    profile = LogitProfile(spectrum=spectrum, coefficients=np.ones(64, complex))
    with patch.object(searches, "STREAMED_AT_ONCE", 1 << 20):
        assert staircase(profile, 10**10, route="lattice").steps == (1,)


@pytest.mark.slow
def test_records_far_away() -> None:
    """Up to 10**30: each is a record in integers among those found, and none lies in a range searched by itself."""
    planes = llama_31(8)
    found = lattice_records(planes, 10**30)
    assert found[:19] == RECORDS[8]
    oracle = oracle_of(planes)
    values = [oracle.at(t) for t in found]
    assert values == sorted(values, reverse=True)
    last, lowest = found[-1], values[-1]
    again = lattice.near_returns(profile_of(planes), 1, 10**30, lowest * 1.0001)
    assert again.displacements == (last,)


# ---- a bound ----


@pytest.mark.parametrize("peaked", [True, False])
@pytest.mark.parametrize("reach", [50, 10**5, 10**9, 10**40])
def test_the_bound_is_the_deficit_of_one_displacement(reach: int, *, peaked: bool) -> None:
    planes = llama_31(6)
    if not peaked:
        planes = [plane._replace(coefficient=PHASES[k % 5]) for k, plane in enumerate(planes)]
    oracle = oracle_of(planes)
    bound = return_bound(profile_of(planes), reach)
    assert 1 <= bound.displacement <= reach
    assert float(bound.deficit) == pytest.approx(oracle.at(bound.displacement) / oracle.weight, rel=ROUNDING)
    assert float(bound.deficit) <= float(oracle.block(1, min(reach, 1000)).min()) / oracle.weight * (1 + 1e-9)
    budget = float(bound.deficit) * oracle.weight * (1 + 1e-6)
    if lattice.estimated_nodes(profile_of(planes), 1, reach, budget) < 1e4:
        assert bound.displacement in lattice.near_returns(profile_of(planes), 1, reach, budget).displacements


def test_a_bound_for_many_planes() -> None:
    spectrum = RopeSpectrum.from_base(10000, head_dim=64)
    bound = return_bound(LogitProfile(spectrum=spectrum, coefficients=np.ones(32, complex)), 10**50, tries=3)
    assert bound.deficit.proves(17)
    assert 0 < float(bound.deficit) < 0.02
    nothing = return_bound(LogitProfile(spectrum=spectrum, coefficients=np.ones(32, complex)), 5, low=-5)
    assert (nothing.displacement, float(nothing.deficit)) == (0, 0.0)


# ---- certified deficits ----


def true_deficit(planes: list[Plane], t: int) -> Any:
    with mpmath.workdps(220):
        total, weight = mpmath.mpf(0), mpmath.mpf(0)
        for plane in planes:
            c = mpmath.mpc(plane.coefficient)
            total += 2 * abs(c) * mpmath.sin((t * plane.theta() + mpmath.arg(c)) / 2) ** 2
            weight += abs(c)
        return total / weight


@pytest.mark.parametrize("peaked", [True, False])
@pytest.mark.parametrize("t", [1, -3, 710, 957769932, 10**30 + 7, -(10**60)])
def test_certified_digits(t: int, *, peaked: bool) -> None:
    planes = llama_31(9)
    if not peaked:
        planes = [plane._replace(coefficient=PHASES[k % 5]) for k, plane in enumerate(planes)]
    planes.append(Plane(*rational(Fraction(2, 7)), 0.3 + 0j))
    exact = ExactDeficit(profile_of(planes))
    with mpmath.workdps(220):
        for digits in (17, 50):
            checks.check_digits(exact.at(t, digits), true_deficit(planes, t), digits)


def test_zero_is_decided() -> None:
    planes = [Plane(*rational(Fraction(1, 6)), 1 + 0j), Plane(*rational(Fraction(3, 8)), -0.1 - 0.1j)]
    profile = profile_of(planes)
    exact = ExactDeficit(profile)
    zeros = [
        t for t in range(-48, 48) if (Fraction(t, 6)).denominator == 1 and (Fraction(3 * t + 5, 8)).denominator == 1
    ]
    assert not zeros  # 6 divides t, so t is even, and 3 t + 5 is odd
    turned = profile_of([planes[0], planes[1]._replace(coefficient=-0.1j)])  # (3 t + 6)/8: t = 6 mod 8
    assert [t for t in range(-48, 48) if ExactDeficit(turned).at(t).sign == 0] == [-42, -18, 6, 30]
    assert all(exact.at(t).sign == 1 for t in range(-48, 48))
    assert ExactDeficit(profile_of(llama_31(3))).at(0).sign == 0
    assert ExactDeficit(profile_of(llama_31(3))).at(5).sign == 1


def test_a_deficit_on_a_rounding_boundary_comes_to_an_end() -> None:
    """D = 1/2**25 of the weight has 18 digits and ends in 5, so that 17 digits are never proved."""
    planes = [Plane(*rational(Fraction(1, 4)), 1 + 0j), Plane(*rational(Fraction(1, 1)), 2.0**25 - 1 + 0j)]
    value = ExactDeficit(profile_of(planes)).at(1)
    assert value.low <= Fraction(1, 2**25) <= value.high
    assert value.high - value.low < Fraction(1, 10**40)
    assert value.digits(18) == "2.98023223876953125e-8"


@given(st.tuples(angles, st.one_of(weights.map(complex), phased)), st.integers(1, 300))
@settings(max_examples=40)
def test_fixed_point_turns(drawn: tuple[Angle, complex], bits: int) -> None:
    plane = plane_of(*drawn)
    (rotation,) = rotations(profile_of([plane]))
    with mpmath.workdps(220):
        for mine, true in zip(rotation.fixed(bits), oracle_of([plane]).fixed[0], strict=True):
            away = (mpmath.mpf(true) / 2 ** (512 - bits) - mine) % 2**bits
            assert min(away, 2**bits - away) <= 1 + 1e-9


def test_the_reduced_basis_spans_the_same_lattice() -> None:
    rows = [[1, 31415926535, 27182818284], [0, 10**11, 0], [0, 0, 10**11]]
    reduced = reduced_basis(rows)
    assert abs(round(np.linalg.det(np.array(reduced, dtype=float)) / 1e22)) == 1
    for row in reduced:
        assert all((row[0] * rows[0][k] - row[k]) % 10**11 == 0 for k in (1, 2))
    assert max(abs(x) for row in reduced for x in row) < 10**9


# ---- faults ----


def boundary_returns() -> list[int]:
    """t at the end of the range and its own gap the budget: on the surface of the ellipsoid, to rounding."""
    plane = Plane("1", lambda: mpmath.mpf(1), 1 + 0j)
    oracle = oracle_of([plane])
    lost = []
    for t in range(1000, 1016):
        budget = oracle.at(t) * (1 + 1e-15)
        if t not in lattice.near_returns(profile_of([plane]), 1, t, budget).displacements:
            lost.append(t)
    return lost


def test_returns_on_the_surface() -> None:
    assert boundary_returns() == []


def test_without_slack_a_return_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(return_lattice, "SLACK", 0.0)
    monkeypatch.setattr(return_lattice, "UNIT", 0.0)
    assert boundary_returns()


def test_without_the_range_term_a_return_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(return_lattice, "_radius", lambda _count: 1.0)
    assert boundary_returns()


def test_with_the_curvature_at_zero_a_return_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 - cos(2 pi x) < 2 pi^2 x^2: with that factor the ellipsoid is too small."""
    right = return_lattice._scale

    def steeper(plane: Rotation, budget: float) -> float:
        return right(plane, 1e-12) * math.sqrt(1e-12 / budget)

    monkeypatch.setattr(return_lattice, "_scale", steeper)
    assert boundary_returns()

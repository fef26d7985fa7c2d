"""One plane, exactly: continued fractions against brute force, certified digits, bounds, scaling."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import checks
import mpmath  # type: ignore[import-untyped]
import numpy as np
import oracles
import pytest
from checks import EPS, one_plane
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import Thunk, mp_fraction

import ropegeo
from ropegeo.asymptotics.bounds import dirichlet_bound, index_bound_as_printed
from ropegeo.engine.diophantine import one_plane_staircase
from ropegeo.engine.index_margin import index_curve
from ropegeo.errors import InvalidInputError
from ropegeo.exact import Enclosure, read_angle, short
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum

IRRATIONAL = [text for text in oracles.ANGLES if text != "2*pi/5"]
bases = st.tuples(st.integers(2, 10**6), st.integers(0, 20), st.sampled_from([16, 64, 96, 128]))
reaches = st.integers(1, 10**40) | st.integers(1, 60)


def rope(drawn: tuple[int, int, int]) -> tuple[str, Thunk]:
    """An angle of a default spectrum, as a text and as an oracle."""
    base, plane, width = drawn
    return f"{base}^(-{2 * plane}/{width})", oracles.rope_angle(base, plane, width)


@pytest.mark.parametrize(("angle", "reach", "digits", "t"), checks.SECTION_5)
def test_rows_of_section_5(angle: str, reach: int, digits: str, t: int) -> None:
    checks.check_section_5(angle, reach, digits, t)
    with mpmath.workdps(120):  # the table's own digits
        assert mpmath.nstr(oracles.gap_at(oracles.ANGLES[angle], t), 17) == mpmath.nstr(mpmath.mpf(digits), 17)


@pytest.mark.parametrize("angle", IRRATIONAL)
def test_staircase_is_the_record_minima(angle: str) -> None:
    checks.check_staircase(angle, oracles.ANGLES[angle], 400)


@given(bases | st.just((10, 0, 16)), st.integers(1, 150))
@settings(max_examples=25)
def test_staircase_of_random_rope_angles(drawn: tuple[int, int, int], reach: int) -> None:
    checks.check_staircase(*rope(drawn), reach)


@given(st.integers(1, 10**6), st.integers(1, 10**4), st.integers(1, 150))
@settings(max_examples=25)
def test_staircase_of_rational_radians_beyond_a_turn_too(p: int, q: int, reach: int) -> None:
    checks.check_staircase(f"{p}/{q}", oracles.constant(Fraction(p, q)), reach)


@given(st.fractions(0, 4, max_denominator=60).filter(bool), st.integers(1, 130))
@settings(max_examples=50)
def test_rational_turns_with_their_ties(turn: Fraction, reach: int) -> None:
    """Exact fractions: the smallest distance, and 0 from the denominator on; t may be any of several equals."""
    stairs = one_plane_staircase(read_angle(f"{turn.numerator}/{turn.denominator} turn"), reach)
    distance, _ = oracles.rational_gap_turns(turn, reach)
    index = stairs.index_at(reach)
    t = stairs.steps[index]
    assert min(t * turn % 1, -t * turn % 1) == distance
    margin = stairs.margin(index)
    if distance == 0:
        assert margin == Enclosure.exactly(0)
        assert t == turn.denominator
    else:
        with mpmath.workdps(60):
            checks.check_digits(margin, 2 * mpmath.sin(mpmath.pi * mp_fraction(distance)) ** 2)
    assert list(stairs.steps) == sorted(set(stairs.steps))
    assert all(abs(t * (turn % 1) - p) <= Fraction(1, 2) for t, p in zip(stairs.steps, stairs.numerators, strict=True))


@given(bases, reaches, st.sampled_from([1, 6, 17, 40]))
@settings(max_examples=60)
def test_certified_digits(drawn: tuple[int, int, int], reach: int, asked: int) -> None:
    text, theta = rope(drawn)
    stairs = one_plane_staircase(read_angle(text), reach)
    index = stairs.index_at(reach)
    q = oracles.denominators(theta, reach)
    assert stairs.steps[index] == q[-2]
    assert set(stairs.steps) == set(q[:-1])  # falls at convergent denominators and nowhere else
    with mpmath.workdps(120):
        truth = oracles.gap_at(theta, q[-2])
        checks.check_digits(stairs.margin(index, asked), truth, asked)
        assert truth > 2 * mpmath.sin(mpmath.pi / (q[-2] + q[-1])) ** 2  # lower bound of docs/MATHEMATICS.md, section 5


@given(st.integers(1, 10**6), st.integers(1, 10**6), reaches)
@settings(max_examples=20)
def test_certified_digits_of_rational_radians(p: int, q: int, reach: int) -> None:
    theta = oracles.constant(Fraction(p, q))
    stairs = one_plane_staircase(read_angle(f"{p}/{q}"), reach)
    with mpmath.workdps(120):
        for index, t in enumerate(stairs.steps):
            checks.check_digits(stairs.margin(index), oracles.gap_at(theta, t))
    assert list(dict.fromkeys(oracles.denominators(theta, reach)[:-1])) == list(stairs.steps)


def test_an_immense_length() -> None:
    point = ropegeo.margin_curve(one_plane("1"), [10**1000]).points[0]
    q = oracles.denominators(oracles.ANGLES["1"], 10**1000 - 1)
    assert point.at == q[-2]
    with mpmath.workdps(4000):
        checks.check_digits(point.margin, oracles.gap_at(oracles.ANGLES["1"], q[-2]))
    assert float(point.margin) == 0.0  # below every double; the digits and the sign are still known
    assert point.margin.abs_error == 5e-324
    assert point.status == "wins"


def test_angle_within_4000_digits_of_a_tie() -> None:
    """alpha = (1 + 1e-3000)/2: at t = 2 the distance is 1e-3000, hence the margin 2 (pi 1e-3000)^2."""
    point = ropegeo.margin_curve(one_plane("pi+pi*1e-3000"), [10]).points[0]
    with mpmath.workdps(50):
        checks.check_digits(point.margin, 2 * (mpmath.pi * mpmath.mpf(10) ** -3000) ** 2)
    assert point.at in (2, -2)


# ---- bounds ----


@given(st.integers(1, 300), st.integers(1, 300))
@settings(max_examples=30)
def test_dirichlet_bound_is_attained(reach: int, p: int) -> None:
    if math.gcd(p, reach + 1) > 1:
        return
    margin = ropegeo.margin_curve(one_plane(f"{p}/{reach + 1} turn"), [reach + 1]).points[0].margin
    with mpmath.workdps(60):
        truth = 2 * mpmath.sin(mpmath.pi / (reach + 1)) ** 2
        checks.check_digits(margin, truth)
        assert abs(float(dirichlet_bound(np.array([float(reach)]))[0]) - truth) <= 1e-15 * truth


@given(bases, st.integers(1, 10**12))
@settings(max_examples=30)
def test_dirichlet_bound_is_never_exceeded(drawn: tuple[int, int, int], reach: int) -> None:
    margin = ropegeo.margin_curve(one_plane(rope(drawn)[0]), [reach + 1]).points[0].margin
    with mpmath.workdps(60):
        assert mp_fraction(margin.low) <= 2 * mpmath.sin(mpmath.pi / (reach + 1)) ** 2


def test_the_printed_bound_fails_where_it_is_said_to() -> None:
    """docs/MATHEMATICS.md, section 6: n = 7, offset 1, angle 1; and base 1e4, n = 623, offset 311: ratio 3.8448."""
    point = ropegeo.margin_curve(one_plane("1", offset=1), [7]).points[0]
    bound = float(index_bound_as_printed(np.array([7.0]))[0])
    assert abs(float(point.margin) - 0.4597) <= 0.5e-4
    assert abs(bound - 0.4028) <= 0.5e-4
    assert float(point.margin) > bound
    far = ropegeo.margin_curve(one_plane("10000^(-2/128)", offset=311), [623]).points[0]
    assert abs(float(far.margin) / float(index_bound_as_printed(np.array([623.0]))[0]) - 3.8448) <= 0.5e-4
    assert float(far.margin) < float(dirichlet_bound(np.array([311.0]))[0])


@given(st.integers(2, 10**9), bases)
@settings(max_examples=30)
def test_the_printed_bound_holds_for_letter_queries(n: int, drawn: tuple[int, int, int]) -> None:
    margin = float(ropegeo.margin_curve(one_plane(rope(drawn)[0]), [n]).points[0].margin)
    assert margin <= float(index_bound_as_printed(np.array([float(n)]))[0]) * (1 + 4 * EPS)


@pytest.mark.parametrize("bound", [dirichlet_bound, index_bound_as_printed])
def test_bounds_refuse(bound: object) -> None:
    assert callable(bound)
    with pytest.raises(InvalidInputError, match="needs"):
        bound(np.array([0.5, 3.0]))


# ---- best, worst, at: definitions ----


@given(st.sampled_from(sorted(oracles.ANGLES)), st.integers(2, 40), st.integers(0, 39), st.none() | st.integers(0, 60))
@settings(max_examples=25)
def test_best_worst_and_at_by_definition(angle: str, n: int, offset: int, largest: int | None) -> None:
    offset = min(offset, n - 1, n if largest is None else largest)
    theta = oracles.ANGLES[angle]
    profile = replace(one_plane(angle, offset), max_offset=largest)
    point = ropegeo.margin_curve(profile, [n]).points[0]
    with mpmath.workdps(40):

        def margin(s: int) -> mpmath.mpf:
            return min(oracles.gap_at(theta, t) for t in oracles.window(s, n))

        margins = [margin(s) for s in range(n if largest is None else min(largest, n - 1) + 1)]
        for enclosure, truth in (
            (point.margin, margin(offset)),
            (point.best, max(margins)),
            (point.worst, min(margins)),
        ):
            assert enclosure is not None
            if truth < mpmath.mpf(10) ** -35:  # 2 pi/5 returns
                assert enclosure.low == enclosure.high == 0
            else:
                checks.check_digits(enclosure, truth)
        assert point.at in oracles.window(offset, n)
        assert abs(oracles.gap_at(theta, point.at) - margin(offset)) <= mpmath.mpf(10) ** -35


@given(st.sampled_from(sorted(oracles.ANGLES)), st.lists(st.integers(2, 10**12), min_size=2, max_size=6))
@settings(max_examples=30)
def test_worst_and_margin_never_grow(angle: str, lengths: list[int]) -> None:
    points = ropegeo.margin_curve(one_plane(angle), sorted(lengths)).points
    for before, after in itertools.pairwise(points):
        assert after.worst.low <= before.worst.high
        assert after.margin.low <= before.margin.high
        assert before.best is not None
        assert before.worst.low <= before.best.high


@pytest.mark.parametrize("offset", [0, 1, 4, 5, 6, 30])
def test_the_first_tie_is_at_the_denominator(offset: int) -> None:
    """theta = 2 pi/5, T = max(s, n-1-s): positive at T = 4, 0 at T = 5."""
    profile = one_plane("2*pi/5", offset)
    first = offset + 1 if offset >= 5 else offset + 6
    assert ropegeo.tie_length(profile) == first
    lengths = range(max(2, offset + 1), offset + 12)
    for point in ropegeo.margin_curve(profile, lengths).points:
        tied = max(offset, point.length - 1 - offset) >= 5
        assert point.status == ("tie" if tied else "wins")
        assert tied == (point.length >= first)


@given(st.sampled_from(IRRATIONAL), st.floats(1e-6, 1e6), st.integers(1, 10**6))
@settings(max_examples=12)
def test_margins_are_in_units_of_beta(angle: str, beta: float, reach: int) -> None:
    plain = one_plane(angle)
    scaled = LogitProfile(spectrum=plain.spectrum, coefficients=np.array([beta], complex))
    one, other = (ropegeo.margin_curve(p, [reach + 1]) for p in (plain, scaled))
    assert (one.points[0].margin, one.points[0].at) == (other.points[0].margin, other.points[0].at)
    assert other.beta == beta


def test_the_plane_is_the_only_one_that_counts() -> None:
    spectrum = RopeSpectrum.from_base(10000, head_dim=128)
    profile = LogitProfile(spectrum=spectrum, coefficients=np.eye(64)[1])
    assert ropegeo.margin_curve(profile, [17]).points[0].margin.digits() == "0.024416724455925216"  # section 5


@pytest.mark.parametrize(
    ("lengths", "keywords", "message"),
    [
        ([], {}, "give at least one length"),
        ([1], {}, "length 1 must be at least 2"),
        ([0], {}, "length 0 must be at least 2"),
        ([3], {"target": 3}, "offset 3 needs a length above it; length 3 is too short"),
        ([9], {"target": -2}, "target distance -2 must not be negative"),
        ([10**1000 + 1], {}, r"length is above 10\^1000"),
    ],
)
def test_refusals(lengths: Any, keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        index_curve(replace(one_plane("1"), origin=keywords.get("target", 0)), lengths)


def test_other_refusals() -> None:
    with pytest.raises(InvalidInputError, match=r"offset 3 is outside the class of offsets 0\.\.2"):
        index_curve(replace(one_plane("1", 3), max_offset=2), [9])
    with pytest.raises(InvalidInputError, match="reach 0 must be at least 1"):
        one_plane_staircase(read_angle("1"), 0)
    with pytest.raises(InvalidInputError, match=r"reach 11 lies outside 1\.\.10"):
        one_plane_staircase(read_angle("1"), 10).index_at(11)


@given(st.integers(20, 900), st.integers(1, 10**6))
def test_numbers_in_messages(exponent: int, head: int) -> None:
    """Five digits after the point, cut off or rounded, with one digit before it."""
    number = head * 10**exponent + 1
    mantissa, _, power = short(number).partition("e")
    assert 1 <= float(mantissa) < 10
    assert abs(Fraction(mantissa) * 10 ** int(power) - number) <= Fraction(10) ** int(power) * Fraction(1, 10**4)

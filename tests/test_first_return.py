"""First returns: lowest values and nearest turns against counting, letter and phase margins against every pair."""

from __future__ import annotations

import cmath
import itertools
from dataclasses import replace
from fractions import Fraction
from math import lcm
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import oracles
import pytest
from checks import one_plane_letters
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import Real, Thunk, mp_fraction

import ropegeo
from ropegeo.engine.first_return import TurnOrder, first_in_interval, lowest_turn
from ropegeo.engine.phase_margin import one_plane_phase_curve
from ropegeo.engine.planes import best_letter_plane
from ropegeo.engine.trust import first_failing_length
from ropegeo.errors import InvalidInputError
from ropegeo.exact import Enclosure, read_angle
from ropegeo.heads import LetterProfile, LogitProfile
from ropegeo.spectrum import RopeSpectrum

ANGLES: dict[str, Thunk] = {
    **oracles.ANGLES,
    "1/7 turn": lambda: 2 * mpmath.pi / 7,
    "5/12 turn": lambda: 10 * mpmath.pi / 12,
    "1/2 turn": lambda: mpmath.pi,
    "3 turn": lambda: 6 * mpmath.pi,
    "1/1000 turn": lambda: 2 * mpmath.pi / 1000,
    "6.28": oracles.constant(Fraction(628, 100)),
}
RATIONAL = {text: Fraction(text.removesuffix(" turn")) for text in ANGLES if text.endswith("turn")} | {
    "2*pi/5": Fraction(1, 5)
}


def floor_sum(terms: int, modulus: int, slope: int, start: int) -> int:
    """Sum of floor((slope x + start)/modulus) over 0 <= x < terms: Euclid on areas, nothing to do with records."""
    total, sign = 0, 1
    while terms > 0:
        over, slope = divmod(slope, modulus)
        total += sign * over * (terms * (terms - 1) // 2)
        over, start = divmod(start, modulus)
        total += sign * over * terms
        top = slope * terms + start
        if top < modulus:
            break
        # lattice points under the line = a rectangle minus those to the left of it, seen along the other axis
        columns = top // modulus
        total += sign * terms * columns
        sign = -sign
        # points (x, y), 1 <= y <= columns, to the left: x < (modulus y - start)/slope, so ceil(..) of them
        start, slope, modulus, terms = modulus - start + slope - 1, modulus, slope, columns
    return total


def how_many(slope: int, start: int, modulus: int, terms: int, width: int) -> int:
    """How many of the values (slope x + start) mod modulus, x < terms, are below `width` <= modulus."""
    return floor_sum(terms, modulus, slope, start) - floor_sum(terms, modulus, slope, start - width)


# ---- integers ----


def test_counting_counts() -> None:
    for modulus, slope, start, terms in itertools.product((1, 2, 7, 12), range(8), (-9, 0, 5), (1, 6, 15)):
        values = [(slope * x + start) % modulus for x in range(terms)]
        for width in range(modulus + 1):
            assert how_many(slope, start, modulus, terms, width) == sum(v < width for v in values)


def test_lowest_turn_everywhere() -> None:
    """Every slope, start and number of terms of every small modulus."""
    for modulus in range(1, 14):
        for slope, start in itertools.product(range(modulus), repeat=2):
            best = (start, 0)
            for x in range(modulus + 1):
                best = min(best, ((slope * x + start) % modulus, x))
                assert lowest_turn(slope, start, modulus, x + 1) == best


BIG = st.integers(1, 10**45)


@given(BIG, st.integers(-(10**45), 10**45), BIG, st.integers(1, 10**40))
@settings(max_examples=60)
@example(1, 0, 1, 10**40)
@example(10**30 + 1, 10**29, 10**30, 10**31)
def test_lowest_turn_of_large_numbers(slope: int, start: int, modulus: int, terms: int) -> None:
    """It is attained, none is below, and none so low stands before."""
    value, at = lowest_turn(slope, start, modulus, terms)
    assert 0 <= at < terms
    assert (slope * at + start) % modulus == value
    assert how_many(slope, start, modulus, terms, value) == 0
    assert how_many(slope, start, modulus, at, value + 1) == 0


def test_lowest_turn_refuses_what_is_empty() -> None:
    for modulus, terms in ((0, 1), (1, 0)):
        with pytest.raises(InvalidInputError, match="must be at least 1"):
            lowest_turn(1, 0, modulus, terms)


# ---- turns of an angle ----


def turns_at(angle: str, steps: Fraction) -> Real:
    """steps * alpha, exactly if alpha is rational."""
    if angle in RATIONAL:
        return steps * RATIONAL[angle]
    return mp_fraction(steps) * ANGLES[angle]() / (2 * mpmath.pi)


def part(value: Real) -> Real:
    """The value modulo 1."""
    return value - (value.numerator // value.denominator if isinstance(value, Fraction) else mpmath.floor(value))


FRACTIONS = st.fractions(-2, 2, max_denominator=60)


@given(
    st.sampled_from(sorted(ANGLES)), FRACTIONS, st.fractions(0, Fraction(1, 2), max_denominator=300), st.integers(0, 9)
)
@settings(max_examples=50)
@example("1/7 turn", Fraction(3, 7), Fraction(0), 4)
@example("1", Fraction(0), Fraction(0), 0)
def test_first_in_interval(angle: str, low: Fraction, width: Fraction, start: int) -> None:
    found = first_in_interval(read_angle(angle), low, low + width, start=start)
    with mpmath.workdps(40):

        def inside(t: int) -> bool:
            turn = turns_at(angle, Fraction(t))
            if isinstance(turn, Fraction):
                return bool(part(turn - low) <= width)
            return part(-low) <= width if t == 0 else bool(part(turn - mp_fraction(low)) <= mp_fraction(width))

        right = next((t for t in range(start, start + 1500) if inside(t)), None)
    assert found == right or (right is None and found is not None and found >= start + 1500)
    if right is None and angle in RATIONAL:
        assert found is None


def test_first_in_interval_far_out() -> None:
    """A window of 10^-30 turn: the hit is one, and counting finds none before; then the next one."""
    angle, low, width = "10000^(-2/128)", Fraction(1, 3), Fraction(1, 10**30)
    bits = 400
    with mpmath.workprec(bits + 64):
        slope = int(mpmath.floor(ANGLES[angle]() / (2 * mpmath.pi) * 2**bits))
    modulus, inside, start = 1 << bits, (1 << bits) // 10**30, 1
    for _ in range(2):
        t = first_in_interval(read_angle(angle), low, low + width, start=start)
        assert t is not None
        assert (slope * t - modulus // 3) % modulus < inside
        assert how_many(slope, slope * start - modulus // 3, modulus, t - start, inside) == 0
        start = t + 1
    assert first_in_interval(read_angle("1e-30"), Fraction(1, 2), Fraction(1)) == 3141592653589793238462643383280
    with pytest.raises(InvalidInputError, match="must not be negative"):
        first_in_interval(read_angle("1"), 0, 1, start=-1)


@given(
    st.sampled_from(sorted(ANGLES)),
    st.integers(1, 60),
    st.lists(FRACTIONS, min_size=1, max_size=3),
    st.integers(-9, 80),
)
@settings(max_examples=80)
@example("1", 9, [Fraction(0)], 6)
@example("1", 1, [Fraction(1, 2)], 0)
def test_nearest_turns(angle: str, n: int, points: list[Fraction], twice: int) -> None:
    """The nearest to any of the points is listed, and whichever distance is left out, the nearest of the others."""
    centre, grid = Fraction(twice, 2), lcm(*(point.denominator for point in points))
    order = TurnOrder(read_angle(angle), n, centre=centre, grid=grid)
    listed = order.nearest([int(point * grid) * order.modulus for point in points], n)
    assert len(set(listed)) == len(listed)
    assert {d for d, _ in listed} <= set(range(n))
    with mpmath.workdps(40):

        def separation(d: int, index: int) -> Real:
            steps = d - centre
            turn = turns_at(angle, steps) if steps else Fraction(0)
            away = turn - (points[index] if isinstance(turn, Fraction) else mp_fraction(points[index]))
            near = min(part(away), part(-away))
            return mp_fraction(near) if isinstance(near, Fraction) else near

        everyone = {(d, index): separation(d, index) for d in range(n) for index in range(len(points))}
        for left_out in (None, *{d for d, _ in listed}):
            others = [away for (d, _), away in everyone.items() if d != left_out]
            ours = [everyone[pair] for pair in listed if pair[0] != left_out]
            assert not others or min(ours) <= min(others) + mpmath.mpf(10) ** -35


# ---- letters ----


def letter_extremes(angle: str, letters: int, n: int, centre: Fraction, own: bool) -> tuple[Real, Real]:
    """Worst and best over the class, by the definition: every target, rival and shift, both kinds of query."""

    def f(shift: int, steps: Fraction) -> Real:
        turns = turns_at(angle, steps)
        code = Fraction(shift, letters)
        return mpmath.cos(
            2 * mpmath.pi * (mp_fraction(code) + (mp_fraction(turns) if isinstance(turns, Fraction) else turns))
        )

    margins, bests = [], []
    for c, only_own in [(centre, own)] + ([(Fraction(0), True)] if centre else []):
        match = [f(0, d - c) for d in range(n)]
        rivals = [[f(s, d - c) for s in range(1, letters)] for d in range(n)]
        for at in (0,) if only_own else range(n):
            margins.append(match[at] - max(max(rivals[d]) for d in range(n) if d != at))
            bests += [match[at] - min(rivals[d]) for d in range(n) if d != at]
    return min(margins), max(bests)


def agrees(enclosure: Enclosure | None, truth: Real) -> None:
    """The enclosure holds the truth up to the oracle's rounding, is narrow, and knows a 0."""
    assert enclosure is not None
    if abs(truth) < mpmath.mpf(10) ** -30:
        assert enclosure == Enclosure.exactly(0)
    slack = mpmath.mpf(10) ** -35
    assert mp_fraction(enclosure.low) - slack <= truth <= mp_fraction(enclosure.high) + slack
    assert (enclosure.high - enclosure.low) * 10**19 <= abs(enclosure.low)


@given(
    st.sampled_from(sorted(ANGLES)), st.integers(2, 6), st.integers(2, 16), st.integers(0, 25), st.booleans(), st.data()
)
@settings(max_examples=35)
@example("1/2 turn", 2, 2, 1, False, None)
@example("3 turn", 3, 4, 3, False, None)
@example("5/12 turn", 6, 12, 0, True, None)
def test_letter_margins_by_definition(angle: str, letters: int, n: int, twice: int, own: bool, data: Any) -> None:
    centre = Fraction(0) if own else Fraction(twice, 2)
    profile = replace(one_plane_letters(angle, letters, centre), self_only=own)
    point = ropegeo.margin_curve(profile, [n]).points[0]
    with mpmath.workdps(45):
        worst, best = letter_extremes(angle, letters, n, centre, own)
        agrees(point.worst, worst)
        agrees(point.margin, worst)
        agrees(point.best, best)
        if data is not None and not own:
            target = data.draw(st.integers(0, n - 1))

            def score(shift: int, d: int) -> Real:
                return mpmath.cos(
                    2 * mpmath.pi * mpmath.mpf(shift) / letters + mp_fraction(d - centre) * ANGLES[angle]()
                )

            gaps = {d: score(0, target) - max(score(s, d) for s in range(1, letters)) for d in range(n) if d != target}
            aimed = ropegeo.margin_curve(profile, [n], target=target).points[0]
            agrees(aimed.margin, min(gaps.values()))
            assert abs(gaps[target + aimed.at] - min(gaps.values())) < mpmath.mpf(10) ** -30
    assert point.method in ("closed_form", "first_return")


def separation(slope: int, start: int, bits: int, n: int) -> int:
    """How near the nearest of the n turns comes to the point 0, in units of 2^-bits: bisection on counts."""
    low, high = 0, 1 << (bits - 1)
    while low < high:
        middle = (low + high) // 2
        if how_many(slope, start + middle, 1 << bits, n, 2 * middle + 1):
            high = middle
        else:
            low = middle + 1
    return low


@pytest.mark.parametrize(("letters", "n"), [(3, 10**30), (5, 10**12 + 7)])
def test_letter_margins_far_out(letters: int, n: int) -> None:
    """The extremes by counting alone; with an odd alphabet, a match and a rival do not aim at one point."""
    angle, bits = "10000^(-2/128)", 330
    profile = one_plane_letters(angle, letters)
    point = ropegeo.margin_curve(profile, [n], digits=70).points[0]
    modulus = 1 << bits
    with mpmath.workprec(bits + 64):
        slope = int(mpmath.floor(ANGLES[angle]() / (2 * mpmath.pi) * modulus))

        def nearest(points: list[Fraction]) -> Real:
            return min(mpmath.mpf(separation(slope, -int(z * modulus), bits, n)) / modulus for z in points)

        half, rest = Fraction(1, 2), [Fraction(k, letters) for k in range(1, letters)]
        worst = -mpmath.cos(2 * mpmath.pi * nearest([half])) - mpmath.cos(2 * mpmath.pi * nearest(rest))
        best = 1 + mpmath.cos(2 * mpmath.pi * nearest([half - z for z in rest]))
        for enclosure, truth in ((point.worst, worst), (point.best, best)):
            assert enclosure is not None
            error = (
                4 * n * mpmath.mpf(2) ** -bits + mpmath.mpf(10) ** -65
            )  # the slope's rounding, slope of a cosine < 8
            assert abs(mp_fraction(enclosure.low) - truth) <= error
    assert point.method == "first_return"


@pytest.mark.slow
@given(st.sampled_from(sorted(ANGLES)), st.integers(2, 9), st.integers(0, 40))
@settings(max_examples=10)
def test_worst_never_grows_and_best_never_falls(angle: str, letters: int, twice: int) -> None:
    lengths = [2, 3, 10, 10**3, 10**6, 10**12, 10**30, 10**100]
    points = ropegeo.margin_curve(one_plane_letters(angle, letters, Fraction(twice, 2)), lengths).points
    for before, after in itertools.pairwise(points):
        assert before.best is not None
        assert after.best is not None
        assert after.worst.low <= before.worst.high
        assert after.best.high >= before.best.low
        assert after.worst.sign is not None


def test_ties_of_rational_turns_stay_exact() -> None:
    """alpha = 1/4, two letters: every turn is a match's 0 or a rival's, so the own answer ties from distance 2 on."""
    own = replace(one_plane_letters("1/4 turn", 2), self_only=True)
    points = ropegeo.margin_curve(own, [2, 3, 10**30]).points
    assert [point.status for point in points] == ["wins", "tie", "tie"]
    assert points[2].worst == Enclosure.exactly(0)
    assert first_failing_length(own) == 3


def test_where_letter_heads_fail_is_known_for_every_plane() -> None:
    assert first_failing_length(one_plane_letters("1 turn", 8)) is None  # no turn at all: every distance scores alike
    assert first_failing_length(one_plane_letters("2 turn", 8, Fraction(7, 2))) is None
    assert first_failing_length(one_plane_letters("1 turn", 8, Fraction(7, 2))) == 2
    far = one_plane_letters("3", 8, Fraction(10**12 - 1, 2))
    failing = first_failing_length(far)
    assert failing is not None
    assert ropegeo.margin_curve(far, [failing]).points[0].worst.sign != 1
    assert failing == 2 or ropegeo.margin_curve(far, [failing - 1]).points[0].worst.sign == 1


def test_very_many_letters_keep_the_closed_form_and_the_definition() -> None:
    many = one_plane_letters("1e-30", 20_000)
    closed, beyond = ropegeo.margin_curve(many, [10**20]).points[0], one_plane_letters("1", 20_000)
    assert (closed.method, closed.best, closed.status) == ("closed_form", None, "wins")
    assert ropegeo.margin_curve(beyond, [20]).points[0].method == "definition"
    with pytest.raises(ropegeo.UnsupportedError, match="are streamed up to distance 2500000000"):
        ropegeo.margin_curve(beyond, [10**20])


@pytest.mark.slow
def test_best_letter_plane_at_any_length() -> None:
    """No plane of the paper's spectrum holds 10^12 positions; the least bad one is still found."""
    plane, margin = best_letter_plane(ropegeo.preset("paper"), letters=8, length=10**12)
    assert margin.sign == -1
    profile = LetterProfile(
        spectrum=ropegeo.preset("paper"), weights=np.eye(ropegeo.preset("paper").planes)[plane], letters=8
    )
    assert ropegeo.margin_curve(profile, [10**12]).points[0].worst.low <= margin.high


# ---- one plane with a phase ----

COEFFICIENTS = [3 - 4j, -1 + 0j, 2j, 1 + 1j, -0.5 + 0.5j, 0.1 + 1e-9j, complex(1e-300, 3e-300), 5 + 0j]


@given(
    st.sampled_from(sorted(ANGLES)),
    st.sampled_from(COEFFICIENTS),
    st.integers(2, 25),
    st.integers(0, 24),
    st.integers(-9, 30),
)
@settings(max_examples=60)
@example("1", 5 + 0j, 12, 3, 5)  # the mirror image of the target about the peak ties
def test_phase_margins_by_definition(angle: str, c: complex, n: int, target: int, origin: int) -> None:
    target %= n
    profile = LogitProfile(spectrum=RopeSpectrum.from_angle(angle), coefficients=np.array([c]), origin=origin)
    point = one_plane_phase_curve(profile, [n], target).points[0]
    with mpmath.workdps(45):
        phase = mpmath.atan2(mp_fraction(c.imag), mp_fraction(c.real))
        score = [mpmath.cos(phase + (d - origin) * ANGLES[angle]()) for d in range(n)]
        margin = score[target] - max(value for d, value in enumerate(score) if d != target)
        agrees(point.margin, margin)
        assert abs(score[target] - score[target + point.at] - margin) < mpmath.mpf(10) ** -30
    assert point.method == "first_return"


def test_phase_margin_far_out() -> None:
    """At 10^30 the largest other logit is as near to |c| as counting says."""
    n, bits, c = 10**30, 330, 3 - 4j
    profile = LogitProfile(spectrum=RopeSpectrum.from_angle("1"), coefficients=np.array([c]))
    curve = one_plane_phase_curve(profile, [n], 1, digits=70)
    with mpmath.workprec(bits + 64):
        slope = int(mpmath.floor(2**bits / (2 * mpmath.pi)))
        phase = mpmath.atan2(-4, 3)
        near = separation(slope, int(mpmath.floor(phase / (2 * mpmath.pi) * 2**bits)), bits, n)
        margin = mpmath.cos(phase + 1) - mpmath.cos(2 * mpmath.pi * mpmath.mpf(near) / 2**bits)
        error = 4 * n * mpmath.mpf(2) ** -bits + mpmath.mpf(10) ** -65
        assert abs(mp_fraction(curve.points[0].margin.low) - margin) <= error
    assert abs(cmath.phase(c) + 1 - float(phase + 1)) < 1e-15


def test_phase_curve_refuses_several_planes() -> None:
    profile = LogitProfile(spectrum=RopeSpectrum.from_base(100, head_dim=4), coefficients=np.ones(2, complex))
    with pytest.raises(InvalidInputError, match="needs one active plane"):
        one_plane_phase_curve(profile, [4], 0)

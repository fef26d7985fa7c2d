"""Sums of cosines in ball arithmetic against mpmath and brute force."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import Thunk, constant, mp_fraction, rope_angle

from ropegeo.exact import Enclosure, parse_closed_form, trigonometric
from ropegeo.exact.trigonometric import TrigonometricSums

ANGLES: dict[str, Thunk] = {
    "1": constant(1),
    "10000^(-2/128)": rope_angle(10000, 1, 128),
    "1/7": constant(Fraction(1, 7)),
    "2*pi/5": lambda: 2 * mpmath.pi / 5,
    "100": constant(100),
    "3/1000000": constant(Fraction(3, 10**6)),
}

Term = tuple[Fraction, Fraction]


def sums_of(texts: Sequence[str], reach: int) -> TrigonometricSums:
    return TrigonometricSums([parse_closed_form(text) for text in texts], reach)


def truth(texts: Sequence[str], terms: Sequence[Term], t: int) -> mpmath.mpf:
    return sum(
        mp_fraction(weight) * mpmath.cos(t * ANGLES[text]() + mp_fraction(phase))
        for text, (weight, phase) in zip(texts, terms, strict=True)
    )


def holds(enclosure: Enclosure, value: mpmath.mpf) -> bool:
    return bool(mp_fraction(enclosure.low) <= value <= mp_fraction(enclosure.high))


doubles = st.floats(-2, 2).map(Fraction)


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(ANGLES)), doubles, doubles), min_size=1, max_size=4),
    st.integers(-40, 40),
    st.integers(0, 60),
    st.integers(-10, 10),
)
def test_largest_is_that_of_brute_force(
    planes: list[tuple[str, Fraction, Fraction]], first: int, size: int, hole: int
) -> None:
    texts = [text for text, _, _ in planes]
    terms = [(weight, phase) for _, weight, phase in planes]
    last = first + size
    ranges = [(first, hole - 1), (hole + 1, last)] if first < hole < last else [(first, last)]
    found, at = sums_of(texts, 200).largest(terms, ranges)
    with mpmath.workdps(60):
        values = {t: truth(texts, terms, t) for low, high in ranges for t in range(low, high + 1)}
        assert holds(found, max(values.values()))
        assert values[at] > max(values.values()) - mpmath.mpf(10) ** -28
    assert found.high - found.low < Fraction(1, 10**28)


@pytest.mark.parametrize("far", [1, 10**12])
def test_rows_and_blocks_meet(far: int) -> None:
    """A range over several blocks, near 0 and far from it."""
    texts, terms = ("1", "10000^(-2/128)"), [(Fraction(1, 3), Fraction(1, 2)), (Fraction(2, 3), Fraction(-1))]
    last = far + trigonometric.ROWS * trigonometric.WIDTH + 5
    done: list[int] = []
    found, at = sums_of(texts, last).largest(terms, [(far, last)], progress=done.append)
    assert far <= at <= last
    with mpmath.workdps(60):
        assert holds(found, truth(texts, terms, at))
        for t in [far, last, *np.random.default_rng(7).integers(far, last, 40).tolist()]:
            assert truth(texts, terms, t) <= mp_fraction(found.high)
    assert done == sorted(done)
    assert done[-1] == last + 1 - far


def test_weights_of_zero_are_left_out_and_exact_ties_are_kept() -> None:
    sums = sums_of(("2*pi/5", "1"), 100)
    found, at = sums.largest([(Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))], [(1, 100)])
    assert holds(found, mpmath.mpf(1))  # every fifth ties, and none is above
    assert at % 5 == 0
    nothing, _ = sums.largest([(Fraction(0), Fraction(0))] * 2, [(1, 3)])
    assert nothing.sign == 0


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(-500, 500), st.floats(0, 1)), min_size=1, max_size=5))
def test_averages(rows: list[tuple[int, float]]) -> None:
    places, shares = [t for t, _ in rows], [Fraction(share) for _, share in rows]
    sums = sums_of(sorted(ANGLES), 500)
    with mpmath.workdps(60):
        for text, (short, across) in zip(sorted(ANGLES), sums.averages(places, shares), strict=True):
            turned = [(mp_fraction(mu), t * ANGLES[text]()) for t, mu in zip(places, shares, strict=True)]
            shortfall = sum(2 * mu * mpmath.sin(x / 2) ** 2 for mu, x in turned)
            sine = sum(mu * mpmath.sin(x) for mu, x in turned)
            assert holds(Enclosure.of_ball(short), shortfall)
            assert holds(Enclosure.of_ball(across), sine)
            assert holds(Enclosure.of_ball(sums.modulus(short, across)), mpmath.hypot(shortfall, sine))


def test_the_size_of_what_is_exactly_nothing() -> None:
    """A whole number of turns: both averages are 0, their balls are not, and the size is still enclosed."""
    sums = sums_of(("2*pi/5",), 10)
    ((short, across),) = sums.averages([5, 10], [Fraction(1, 2)] * 2)
    size = Enclosure.of_ball(sums.modulus(short, across))
    assert holds(size, mpmath.mpf(0))
    assert size.high < Fraction(1, 10**15)

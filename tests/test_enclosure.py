"""`Enclosure`: the digits it prints are proved, and a saved one still contains the number."""

from __future__ import annotations

import json
from fractions import Fraction

import mpmath  # type: ignore[import-untyped]
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import mp_fraction

from ropegeo.errors import FileFormatError, InvalidInputError
from ropegeo.exact import ClosedForm, Enclosure
from ropegeo.exact.enclosure import least

values = st.fractions(-(10**6), 10**6, max_denominator=10**9) | st.fractions(
    Fraction(1, 10**30), Fraction(1, 10**20), max_denominator=10**40
)


@st.composite
def enclosures(draw: st.DrawFn) -> Enclosure:
    low = draw(values)
    width = draw(st.integers(0, 30).map(lambda e: Fraction(1, 10**e)) | st.just(Fraction(0)))
    return Enclosure(low=low, high=low + abs(low) * width * draw(st.fractions(0, 3, max_denominator=100)))


@given(enclosures(), st.integers(1, 25))
def test_digits_are_those_on_which_both_ends_agree(enclosure: Enclosure, count: int) -> None:
    text = enclosure.digits(count)
    low, high = enclosure.low, enclosure.high
    if low == high == 0:
        assert text == "0"
        return
    proved = [k for k in range(1, count + 1) if oracles.rounded(low, k) == oracles.rounded(high, k)]
    if low <= 0 <= high or not proved:
        assert text is None
        return
    assert text is not None
    assert Fraction(text) == oracles.rounded(low, proved[-1])


@given(enclosures(), st.integers(1, 25))
def test_no_digit_is_printed_that_the_interval_does_not_prove(enclosure: Enclosure, count: int) -> None:
    """Every number of the interval lies within half a unit of the last digit shown."""
    text = enclosure.digits(count)
    if text is not None and text != "0":
        half = oracles.last_place(text) / 2
        assert abs(enclosure.low - Fraction(text)) <= half
        assert abs(enclosure.high - Fraction(text)) <= half


@pytest.mark.parametrize(
    ("low", "high", "wrong"),
    [(18, 22, "20"), (1850, 1949, "1900"), (96, 104, "100")],
)
def test_zeros_before_the_point_are_digits_too(low: int, high: int, wrong: str) -> None:
    assert Enclosure(low=Fraction(low), high=Fraction(high)).digits() != wrong


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        ("0", "0", "0"),
        ("-1", "1", None),
        ("0", "1", None),
        ("1", "1", "1"),
        ("0.25", "0.25", "0.25"),
        ("0.24996", "0.25004", "0.25"),
        ("0.15", "0.25", "0.2"),  # half to even, both ways
        ("0.1499", "0.25", None),
        ("0.99996", "1.00004", "1"),
        ("0.00012344", "0.00012341", "0.0001234"),
        ("0.000012344", "0.000012341", "1.234e-5"),
        ("-2.5001", "-2.4999", "-2.5"),
        ("123456789012345678", "123456789012345678", "1.2345678901234568e17"),
    ],
)
def test_digit_table(low: str, high: str, text: str | None) -> None:
    ends = sorted([Fraction(low), Fraction(high)])
    assert Enclosure(low=ends[0], high=ends[1]).digits() == text


@given(enclosures(), st.integers(1, 25))
def test_what_is_read_back_still_contains_the_number(enclosure: Enclosure, count: int) -> None:
    data = json.loads(json.dumps(enclosure.to_dict("x", count)))
    again = Enclosure.from_dict(data, "x")
    assert again.low <= enclosure.low
    assert again.high >= enclosure.high


@given(enclosures())
def test_float_and_its_error(enclosure: Enclosure) -> None:
    value, error = Fraction(float(enclosure)), Fraction(enclosure.abs_error)
    assert value - error <= enclosure.low
    assert value + error >= enclosure.high
    width = enclosure.high - enclosure.low
    middle = (enclosure.high + enclosure.low) / 2
    assert error <= (width / 2 + 2 * oracles.DOUBLE * abs(middle)) * (1 + 2 * oracles.DOUBLE)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"x": 1.0, "x_digits": None},
        {"x": "one", "x_digits": None, "x_abs_error": 0.0},
        {"x": float("nan"), "x_digits": None, "x_abs_error": 0.0},
        {"x": float("inf"), "x_digits": None, "x_abs_error": 0.0},
        {"x": 1.0, "x_digits": None, "x_abs_error": -1.0},
        {"x": 10**400, "x_digits": None, "x_abs_error": 0.0},
        {"x": 1.0, "x_digits": "2", "x_abs_error": 1e-9},  # contradicts the float
        {"x": 1.0, "x_digits": "1e999999999", "x_abs_error": 1e-9},
        {"x": 1.0, "x_digits": "__import__('os')", "x_abs_error": 1e-9},
    ],
)
def test_malformed_data_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(FileFormatError, match=r"missing, malformed or contradictory|out of range"):
        Enclosure.from_dict(data, "x")


def test_refusals_and_small_ones() -> None:
    with pytest.raises(InvalidInputError, match="the lower end is above the upper end"):
        Enclosure(low=Fraction(1), high=Fraction(0))
    assert Enclosure.exactly(Fraction(1, 3)).sign == 1
    assert Enclosure.around(0.0, 1e-20).sign is None
    both = least([Enclosure(low=Fraction(1), high=Fraction(5)), Enclosure(low=Fraction(2), high=Fraction(3))])
    assert both == Enclosure(low=Fraction(1), high=Fraction(3))


@given(st.integers(2, 10**6), st.integers(-60, 60), st.integers(30, 300), st.integers(1, 40))
@settings(max_examples=40)
def test_digits_of_balls_against_mpmath(base: int, power: int, bits: int, count: int) -> None:
    text = Enclosure.of_ball((ClosedForm.of(base) ** Fraction(power, 64)).ball(bits)).digits(count)
    if text is not None:
        with mpmath.workdps(120):
            truth = mpmath.mpf(base) ** (mpmath.mpf(power) / 64)
            assert abs(mpmath.mpf(text) - truth) <= mp_fraction(oracles.last_place(text)) / 2

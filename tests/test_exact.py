"""`ClosedForm` and its grammar: field laws, decisions against 60 digits of mpmath, and refusals that come quickly."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, TypeAlias

import mpmath  # type: ignore[import-untyped]
import oracles
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import Real, mp_fraction

from ropegeo.errors import InvalidInputError
from ropegeo.exact import ClosedForm, balls, parse_closed_form, parse_decimal, read_angle

DIGITS = 60


@contextmanager
def must_end(seconds: int) -> Iterator[None]:
    """Turns a hang into a failure, where the platform has alarms."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def ring(*_: Any) -> None:
        raise AssertionError(f"still running after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


fractions = st.builds(Fraction, st.integers(-50, 50), st.integers(1, 30))
exponents = st.sampled_from([Fraction(n, d) for d in (2, 3, 4, 64) for n in range(-5, 6) if n])
pi_powers = st.sampled_from([Fraction(0), Fraction(0), Fraction(1), Fraction(-1), Fraction(2), Fraction(1, 2)])
terms = st.tuples(fractions, st.integers(2, 60), exponents, pi_powers)
"""rational, base, its exponent, exponent of pi: plain numbers, so that strategies run no code of ropegeo."""
sums = st.lists(terms, min_size=1, max_size=2)
quotients = st.tuples(sums, sums)

Term: TypeAlias = tuple[Fraction, int, Fraction, Fraction]
Quotient: TypeAlias = tuple[list[Term], list[Term]]


def form_of(parts: list[Term]) -> ClosedForm:
    total = ClosedForm.of(0)
    for coefficient, base, power, pi_power in parts:
        total = total + coefficient * ClosedForm.of(base) ** power * ClosedForm.pi() ** pi_power
    return total


def value_of(parts: list[Term]) -> Real:
    return mpmath.fsum(
        mp_fraction(coefficient) * mpmath.mpf(base) ** mp_fraction(power) * mpmath.pi ** mp_fraction(pi_power)
        for coefficient, base, power, pi_power in parts
    )


def quotient(parts: tuple[list[Term], list[Term]]) -> ClosedForm:
    bottom = form_of(parts[1])
    assume(not bottom.is_zero())
    return form_of(parts[0]) / bottom


def quotient_value(parts: tuple[list[Term], list[Term]]) -> Real:
    return value_of(parts[0]) / value_of(parts[1])


# ---- ring and field ----


@given(sums, sums, sums)
@settings(max_examples=30)
def test_ring_laws(first: list[Term], second: list[Term], third: list[Term]) -> None:
    a, b, c = form_of(first), form_of(second), form_of(third)
    assert a + b == b + a
    assert a * b == b * a
    assert (a + b) + c == a + (b + c)
    assert (a * b) * c == a * (b * c)
    assert a * (b + c) == a * b + a * c
    assert (a - b) + b == a
    assert (a - a).is_zero()
    assert a + 0 == 0 + a == a * 1 == 1 * a == a
    assert 0 - (-a) == a
    assert 2 - a == -(a - 2)
    assert hash(a + b) == hash(b + a)


@given(quotients, sums)
@settings(max_examples=40)
def test_field_laws(first: Quotient, second: list[Term]) -> None:
    a, b = quotient(first), form_of(second)
    assume(not a.is_zero() and not b.is_zero())
    assert a / a == 1
    assert (a / b) * b == a
    assert (1 / a) ** -1 == a
    assert (1 / b).sign() == b.sign()
    assert (a * b).sign() == a.sign() * b.sign()
    assert a**2 == a * a
    assert b**-2 == 1 / (b * b)
    assert a**0 == 1


@given(terms, st.integers(1, 9), st.integers(1, 9))
def test_powers_of_a_term(term: Term, p: int, q: int) -> None:
    form = form_of([(abs(term[0]), *term[1:])])
    assume(not form.is_zero())
    root = form ** Fraction(p, q)
    assert root**q == form**p
    assert form.sqrt() * form.sqrt() == form


@given(quotients, quotients)
@settings(max_examples=80)
def test_order_and_equality_against_mpmath(first: Quotient, second: Quotient) -> None:
    a, b = quotient(first), quotient(second)
    with mpmath.workdps(DIGITS + 20):
        x = quotient_value(first)
        difference = x - quotient_value(second)
        small = mpmath.mpf(10) ** -DIGITS * (1 + abs(x))
        order = 0 if abs(difference) < small else 1 if difference > 0 else -1
    assert (a == b) is (order == 0)
    assert (a < b, a <= b, a > b, a >= b) == (order < 0, order <= 0, order > 0, order >= 0)
    assert (a - b).sign() == order


@given(quotients)
@settings(max_examples=80)
def test_float_is_the_nearest_double_and_the_ball_contains_the_number(parts: Quotient) -> None:
    form = quotient(parts)
    double = float(form)
    with mpmath.workdps(DIGITS):
        truth = quotient_value(parts)
        error = abs(truth - mpmath.mpf(double))
        for neighbour in (math.nextafter(double, -math.inf), math.nextafter(double, math.inf)):
            assert error <= abs(truth - mpmath.mpf(neighbour))
        low, high = balls.rational_ends(form.ball(100))
        slack = mpmath.mpf(10) ** (5 - DIGITS) * (1 + abs(truth))
        assert mp_fraction(low) - slack <= truth <= mp_fraction(high) + slack


@given(quotients)
@settings(max_examples=40)
def test_text_reads_back_as_the_same_number(parts: Quotient) -> None:
    form = quotient(parts)
    text = str(form)
    assert parse_closed_form(text) == form
    assert str(parse_closed_form(text)) == text
    assert text in repr(form)


def test_a_number_is_equal_to_and_hashes_like_the_fraction_it_is() -> None:
    for value in (0, 1, -7, Fraction(1, 3), Fraction(10**20, 7)):
        form = ClosedForm.of(value)
        assert form == value
        assert hash(form) == hash(value)  # Python's rule: equal values have equal hashes
    assert ClosedForm.of(1) != "1"


# ---- rational turns: docs/MATHEMATICS.md, sections 5 and 6 ----


@pytest.mark.parametrize(
    ("text", "turn"),
    [
        ("2*pi/5", Fraction(1, 5)),
        ("pi", Fraction(1, 2)),
        ("2*pi", Fraction(1)),
        ("7*pi/3", Fraction(7, 6)),
        ("pi*(sqrt(5)-1)", None),
        ("2*pi*(1+sqrt(5))/(3+3*sqrt(5))", Fraction(1, 3)),
        ("2*pi*(sqrt(2)+sqrt(3))*(sqrt(3)-sqrt(2))/7", Fraction(1, 7)),
        ("pi*sqrt(2)*sqrt(8)/3", Fraction(2, 3)),
        ("pi^2/pi/4", Fraction(1, 8)),
        ("(pi^3)^(1/3)", Fraction(1, 2)),
        ("1", None),
        ("3.14159265358979323846264338327950288", None),
        ("pi+1", None),
        ("pi^2", None),
        ("10000^(-2/128)", None),
        ("1e4^(-64/128)", None),
        ("sqrt(10000)", None),
    ],
)
def test_rational_turn(text: str, turn: Fraction | None) -> None:
    assert parse_closed_form(text).rational_turn() == turn


@given(st.fractions(1, 10**6, max_denominator=99), st.integers(0, 63))
def test_no_plane_of_a_rational_base_divides_a_turn(base: Fraction, plane: int) -> None:
    assume(base != 1)
    assert (ClosedForm.of(base) ** Fraction(-2 * plane, 128)).rational_turn() is None


@given(st.fractions(Fraction(1, 100), 50, max_denominator=10**6))
def test_turns_are_read_exactly(turn: Fraction) -> None:
    assert read_angle(f"{turn.numerator}/{turn.denominator} turn").rational_turn() == turn
    assert read_angle(f"2*pi*{turn.numerator}/{turn.denominator}").rational_turn() == turn


# ---- grammar ----


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", Fraction(1, 10)),
        ("1.", 1),
        (".5", Fraction(1, 2)),
        ("1e4", 10000),
        ("1E-3", Fraction(1, 1000)),
        ("2+3*4", 14),
        ("(2+3)*4", 20),
        ("2-3-4", -5),
        ("16/4/2", 2),
        ("-2^2", -4),
        ("(-2)^2", 4),
        ("2^-1", Fraction(1, 2)),
        ("2**3", 8),
        ("2^3^2", 512),
        ("--1", 1),
        ("+-+1", -1),
        ("4^(1/2)", 2),
        ("8^(-2/3)", Fraction(1, 4)),
        ("sqrt(9/4)", Fraction(3, 2)),
        ("sqrt(2)*sqrt(2)", 2),
        ("π/pi", 1),
        (" 1\t+ 1\n", 2),
        ("0^0", 1),
        ("0*pi", 0),
        ("(1+sqrt(5))*(1-sqrt(5))", -4),
    ],
)
def test_grammar_reads(text: str, value: Fraction | int) -> None:
    assert parse_closed_form(text).as_rational() == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it ends too early at character 1"),
        ("1+", "it ends too early at character 3"),
        ("()", r"'\)' is not expected at character 2"),
        ("(1", "a parenthesis is not closed at character 1"),
        ("1)", r"'\)' is not expected at character 2"),
        ("2pi", "'pi' is not expected at character 2"),
        ("1 2", "'2' is not expected at character 3"),
        ("sqrt 2", "sqrt needs parentheses"),
        ("pi^pi", "an exponent must be a rational number"),
        ("2^sqrt(2)", "an exponent must be a rational number"),
        ("1/0", "division by zero"),
        ("1/(sqrt(2)-sqrt(2))", "division by zero"),
        ("0^-1", "division by zero"),
        ("(-2)^(1/2)", "a root of a negative number is not real"),
        ("(1+pi)^(1/2)", "roots are taken of a single positive term"),
        ("1_000", "cannot read '_000' at character 2"),
        ("0x10", "cannot read 'x10' at character 2"),
        ("1,5", "cannot read ',5'"),
        ("10//3", "'/' is not expected"),
        ("5%2", "cannot read '%2'"),
        ("nan", "cannot read 'nan'"),
        ("inf", "cannot read 'inf'"),
        ("e", "cannot read 'e'"),
        ("1j", "cannot read 'j'"),
        ("exp(1)", "cannot read 'exp"),
        ("pip", "cannot read 'pip'"),
        ("٣", "cannot read"),
        ("__import__('os').system('true')", "cannot read .__import__"),
        ("(lambda: 1)()", "cannot read 'lambda"),
        ("pi.real", r"cannot read '\.real'"),
        ("[1][0]", r"cannot read '\[1\]\[0\]'"),
        ("1 if 1 else 2", "cannot read 'if 1 else 2'"),
        ("1;2", "cannot read ';2'"),
        ("1e999999999", "too large to write out"),
        ("9^9^9", "needs more than 14000 bits"),
        ("sqrt(2)^1e20", "needs more than 14000 bits"),
        ("(1+pi)^1e8", "64 terms"),
        ("(1/(1+pi))^1e8", "64 terms"),
        ("sqrt(" + "9" * 60 + ")", "integers up to 128 bits"),
        ("(" * 60 + "1" + ")" * 60, "nested deeper than 50 levels"),
        ("-" * 60 + "1", "nested deeper than 50 levels"),
        ("2^" * 60 + "1", "nested deeper than 50 levels"),
        ("1" * 4001, "expression of 4001 characters; at most 4000"),
        ("(" * 4000, "nested deeper than 50 levels"),
    ],
)
def test_grammar_refuses(text: str, message: str) -> None:
    with must_end(5), pytest.raises(InvalidInputError, match=message):
        parse_closed_form(text)


@pytest.mark.parametrize(("text", "value"), [("0^999999999", 0), ("(0*pi)^1e20", 0), ("1^1e3000", 1), ("(-1)^1e20", 1)])
def test_large_powers_of_small_numbers_are_quick(text: str, value: int) -> None:
    with must_end(5):
        assert parse_closed_form(text) == value


def test_numbers_too_long_to_print_are_refused_or_printed_but_do_not_crash() -> None:
    for text in ("1e5000", "1e-5000", "1/2+1e-5000", "10^3400*10^3400"):
        with pytest.raises(InvalidInputError, match=r"too large to write out|needs more than 14000 bits"):
            str(parse_closed_form(text))


@pytest.mark.parametrize("text", ["0", "-1", "1-1", "pi-4", "0 turn", "-1/5 turn", "2-3*pi/pi"])
def test_angles_are_positive(text: str) -> None:
    with pytest.raises(InvalidInputError, match="must be positive: an angle of 0 rotates nothing"):
        read_angle(text)


@pytest.mark.parametrize("text", ["turn", "1/5 turnx", "1/5 turn turn", "rev", "90 deg"])
def test_angle_words(text: str) -> None:
    with pytest.raises(InvalidInputError):
        read_angle(text)


@given(st.integers(-(10**30), 10**30), st.integers(-40, 40))
def test_decimals_mean_exactly_what_they_say(mantissa: int, exponent: int) -> None:
    assert parse_decimal(f"{mantissa}e{exponent}") == Fraction(mantissa) * Fraction(10) ** exponent


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_decimal_reads_a_double_as_python_does(value: float) -> None:
    assert float(parse_decimal(repr(value))) == value


@pytest.mark.parametrize(
    "text", ["", ".", "e5", "1e", "--1", "1 2", "nan", "inf", "0x1", "1_0", "١", "1e8193", "1e-99999"]
)
def test_decimal_refuses(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"is not a decimal number|is too large to write out"):
        parse_decimal(text)


def test_near_misses_are_told_apart() -> None:
    """pi to 3900 digits is not pi, and the sign of the difference is right."""
    with mpmath.workdps(3950):
        digits = mpmath.nstr(+mpmath.pi, 3905)[:3900]
    below = parse_closed_form(digits)
    assert below != ClosedForm.pi()
    assert below < ClosedForm.pi()
    assert (ClosedForm.pi() - below).sign() == 1
    assert below.rational_turn() is None


def test_oracle_of_rounding() -> None:
    assert oracles.rounded(Fraction(25, 10), 1) == 2
    assert oracles.rounded(Fraction(999, 10), 2) == 100
    assert oracles.last_place("1.5e-9") == Fraction(1, 10**10)
    assert oracles.last_place("20") == 1

"""Index margins of several planes, retrieval margins against every input, where heads fail, and saved curves."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import checks
import mpmath  # type: ignore[import-untyped]
import numpy as np
import oracles
import pytest
from checks import EPS, one_plane, one_plane_letters
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import mp_fraction

import ropegeo
from ropegeo.engine.planes import best_index_plane, best_letter_plane
from ropegeo.engine.trust import first_failing_length, rounding_lengths, tie_length
from ropegeo.errors import FileFormatError, InvalidInputError, UnsupportedError
from ropegeo.exact import Enclosure, read_angle
from ropegeo.heads import LetterProfile, LogitProfile
from ropegeo.spectrum import RopeSpectrum

GAP = 1e-14
"""LOGIT_ERROR, the bound that several planes promise per unit of beta."""


def spectrum_of(*texts: str) -> RopeSpectrum:
    return RopeSpectrum(angles=tuple(read_angle(text) for text in texts), head_dim=2 * len(texts))


# ---- index, several planes ----


@given(
    st.lists(st.sampled_from(sorted(oracles.ANGLES)), min_size=2, max_size=3, unique=True),
    st.integers(2, 30),
    st.integers(0, 29),
    st.none() | st.integers(0, 40),
    st.integers(0, 10**6),
)
@settings(max_examples=25)
def test_several_planes(texts: list[str], n: int, offset: int, largest: int | None, seed: int) -> None:
    offset = min(offset, n - 1, n if largest is None else largest)
    shares = np.random.default_rng(seed).uniform(0.05, 1, size=len(texts))
    coefficients = 3 * shares.astype(complex)
    spectrum = spectrum_of(*texts)
    profile = LogitProfile(spectrum=spectrum, coefficients=coefficients, origin=offset, max_offset=largest)
    point = ropegeo.margin_curve(profile, [n]).points[0]
    thetas = [oracles.ANGLES[text] for text in texts]
    with mpmath.workdps(40):
        weights = coefficients.real.tolist()  # exact doubles: 3 * share is rounded
        total = mpmath.fsum(mp_fraction(weight) for weight in weights)
        gaps = {t: oracles.planes_gap(thetas, weights, t) / total for t in range(-n, n + 1)}
        margins = [min(gaps[t] for t in oracles.window(s, n)) for s in range(n)]
        among = margins if largest is None else margins[: largest + 1]
        assert point.best is not None
        for enclosure, truth in ((point.margin, margins[offset]), (point.best, max(among)), (point.worst, min(among))):
            assert mp_fraction(enclosure.low) <= truth <= mp_fraction(enclosure.high)
            assert enclosure.proves(17) or enclosure.sign == 0
        assert point.at in oracles.window(offset, n)
        assert gaps[point.at] <= margins[offset] + mpmath.mpf(10) ** -38
    assert point.method == "definition"


def test_two_planes_with_rational_turns_tie_where_both_return() -> None:
    profile = LogitProfile(spectrum=spectrum_of("1/4 turn", "1/6 turn"), coefficients=np.ones(2, complex), origin=3)
    assert tie_length(profile) == 3 + 1 + 12
    before, at = ropegeo.margin_curve(profile, [15, 16]).points
    assert before.status == "wins"
    assert at.status == "tie"
    assert tie_length(LogitProfile(spectrum=spectrum_of("1/4 turn", "1"), coefficients=np.ones(2, complex))) is None
    assert (
        tie_length(LogitProfile(spectrum=spectrum_of("1/4 turn", "1"), coefficients=np.array([1.0, 0], complex))) == 5
    )
    assert tie_length(one_plane("2*pi", offset=7)) == 8


def test_too_many_phases_are_refused() -> None:
    profile = LogitProfile(spectrum=spectrum_of("1", "0.5"), coefficients=np.ones(2, complex))
    with pytest.raises(UnsupportedError, match="evaluates 2 planes at every distance, up to 100000000"):
        ropegeo.margin_curve(profile, [10**9], route="definition")
    with pytest.raises(UnsupportedError, match="2 planes are streamed up to distance 50000000000000"):
        ropegeo.margin_curve(profile, [10**15], route="streamed")


@given(st.sampled_from([t for t in oracles.ANGLES if t != "2*pi/5"]), st.integers(0, 40))
@settings(max_examples=8)
def test_rounding_lengths(angle: str, offset: int) -> None:
    """First n whose reach holds a displacement with a gap below the step."""
    theta = oracles.ANGLES[angle]
    steps = {"bfloat16": Fraction(1, 2**8), "float16": Fraction(1, 2**11), "float32": Fraction(1, 2**24)}
    found = {row.number_format: row for row in rounding_lengths(one_plane(angle, offset))}
    with mpmath.workdps(60):
        records = oracles.denominators(theta, 10**9)
        for name, step in steps.items():
            first = next(q for q in records if oracles.gap_at(theta, q) < mp_fraction(step))
            length = next(n for n in (offset + 1, offset + 1 + first) if max(offset, n - 1 - offset) >= first)
            assert found[name].length == length
            assert found[name].step == float(step)


def test_an_exact_tie_of_two_planes_is_below_every_rounding_step() -> None:
    """2 pi/5 and 4 pi/5 both return at t = 5: the margin is 0 from length 6 on."""
    rows = rounding_lengths(
        LogitProfile(spectrum=spectrum_of("1/5 turn", "2/5 turn"), coefficients=np.ones(2, complex))
    )
    assert {row.number_format: row.length for row in rows} == dict.fromkeys(
        ("bfloat16", "float16", "float32", "float64"), 6
    )


def test_best_plane_is_the_best() -> None:
    spectrum = RopeSpectrum.from_base(10000, head_dim=32)
    plane, margin = best_index_plane(spectrum, offset=2, length=40)
    with mpmath.workdps(40):
        truth = [
            min(oracles.gap_at(oracles.rope_angle(10000, k, 32), t) for t in oracles.window(2, 40)) for k in range(16)
        ]
        assert plane == max(range(16), key=lambda k: truth[k])
        checks.check_digits(margin, truth[plane])
    plane, margin = best_letter_plane(spectrum, letters=8, length=17)
    worst = [oracles.worst_letter_margin(8, [(float(f), 1.0)], 0.0, 17) for f in spectrum.inv_freq]
    assert plane == int(np.argmax(worst))
    assert abs(float(margin) - max(worst)) <= 64 * 17 * EPS


# ---- retrieval against every input ----

SMALL = [(2, 2, 2), (2, 2, 3), (2, 2, 4), (2, 1, 5), (3, 1, 2), (3, 1, 3), (3, 1, 4), (4, 1, 3)]
THETAS = [("0.01", 0.01), ("0.3", 0.3), ("1.7", 1.7), ("4", 4.0), ("6.2", 6.2)]


@pytest.mark.parametrize(("letters", "integers", "length"), SMALL)
@pytest.mark.parametrize(("angle", "theta"), THETAS)
@pytest.mark.parametrize("centre_length", [None, 2, 9])
def test_retrieval_worst_and_best_over_all_inputs(
    angle: str, theta: float, letters: int, integers: int, length: int, centre_length: int | None
) -> None:
    centre = Fraction(0) if centre_length is None else Fraction(centre_length - 1, 2)
    checks.check_retrieval_worst(angle, theta, letters, integers, length, centre)


@given(st.integers(2, 7), st.integers(2, 25), st.integers(1, 10**4), st.integers(0, 40), st.none() | st.integers(0, 24))
@settings(max_examples=25)
def test_retrieval_worst_by_definition(letters: int, n: int, milli: int, twice: int, target: int | None) -> None:
    """Plain double loops over targets, rivals and shifts; letter-integer queries too."""
    theta, centre = milli / 1000, Fraction(twice, 2)
    profile = one_plane_letters(f"{milli}/1000", letters, centre)
    error = 64 * (n + twice) * (1 + theta) * EPS
    point = ropegeo.margin_curve(profile, [n], target=None if target is None else target % n).points[0]
    assert abs(float(point.worst) - oracles.worst_letter_margin(letters, [(theta, 1.0)], twice / 2, n)) <= error
    if target is not None:
        score = oracles.letter_score(letters, [(theta, 1.0)], twice / 2)
        where = target % n
        gaps = {
            d: score(False, 0, where) - max(score(False, s, d) for s in range(1, letters))
            for d in range(n)
            if d != where
        }
        assert abs(float(point.margin) - min(gaps.values())) <= error
        assert abs(gaps[where + point.at] - min(gaps.values())) <= error


@given(st.integers(2, 6), st.integers(2, 12), st.integers(0, 12), st.integers(0, 10**6))
@settings(max_examples=20)
def test_several_planes_of_letters(letters: int, n: int, twice: int, seed: int) -> None:
    shares = np.random.default_rng(seed).uniform(0.1, 1, size=3)
    spectrum = RopeSpectrum.from_base(100, head_dim=6)
    profile = LetterProfile(spectrum=spectrum, weights=shares, letters=letters, centre=Fraction(twice, 2))
    planes = [(float(f), float(w / shares.sum())) for f, w in zip(spectrum.inv_freq, shares, strict=True)]
    point = ropegeo.margin_curve(profile, [n]).points[0]
    assert abs(float(point.worst) - oracles.worst_letter_margin(letters, planes, twice / 2, n)) <= 64 * (n + 8) * EPS
    assert first_failing_length(profile) is None


def test_the_matrices_have_these_margins() -> None:
    """Every input of length 3 over two letters and two integers through the built head's own matrices."""
    built = ropegeo.retrieval_head(RopeSpectrum.from_angle("0.4"), letters=("a", "b"), integers=(1, 2), beta=2.0)
    table = built.head.logits(built.embedding)  # only for its shape check; logits below are at real positions
    assert table.shape == (8, 8)
    least = math.inf
    for code in range(8**3):
        row = [built.tokens[code // 8**k % 8] for k in range(3)]
        tokens = [
            (t.left, t.right if isinstance(t.right, str) else f"#{t.right}")
            for t in row
            if isinstance(t, ropegeo.Bigram)
        ]
        numbered: list[oracles.Token] = [("ab".index(a), "ab".index(b) if b in "ab" else b) for a, b in tokens]
        left, right = numbered[-1]
        sought = right if isinstance(right, int) else left
        holders = {t for t in numbered if t[0] == sought}
        if len(holders) != 1 or not oracles.is_globally_proper(numbered) or len(set(numbered)) == 1:
            continue
        states = built.embedding[[built.tokens.index(t) for t in row]]
        is_answer = np.array([t in holders for t in numbered])
        least = min(least, ropegeo.per_input(built.head.logits(states)[-1], is_answer) / 2)
    worst = ropegeo.margin_curve(built.profile, [3]).points[0].worst
    assert abs(least - float(worst)) <= 1e-12


# ---- docs/MATHEMATICS.md, section 6 ----


def theta27(n: int, keyword: int | None = None) -> float:
    return float(ropegeo.margin_curve(one_plane_letters("0.0027", 8), [n], target=keyword).points[0].margin)


def test_values_of_section_6() -> None:
    """8 letters, theta = 0.0027."""
    assert abs(theta27(17) - 0.262195) <= 0.5e-6
    assert abs(theta27(100) - 0.096435) <= 0.5e-6
    assert theta27(146) > 0 > theta27(147)
    assert abs(theta27(1500) - -2.00) <= 0.5e-2
    assert abs(theta27(17, 0) - 0.263015) <= 0.5e-6  # above the paper's 1 - cos(omega - n theta) = 0.261193
    assert first_failing_length(one_plane_letters("0.0027", 8)) == 147
    for n, sign in ((290, 1), (291, 1), (292, -1)):
        centred = one_plane_letters("0.0027", 8, Fraction(n - 1, 2))
        assert ropegeo.margin_curve(centred, [n]).points[0].worst.sign == sign


@given(st.integers(2, 12), st.integers(2, 60), st.integers(1, 10**5))
@settings(max_examples=20)
def test_closed_form_digits(letters: int, n: int, micro: int) -> None:
    """min(cos((n-2)t) - cos(w-(n-1)t), cos((n-1)t) - cos(w-(n-2)t)) while (n-1)t < w."""
    theta = Fraction(micro, 10**6)
    point = ropegeo.margin_curve(one_plane_letters(f"{micro}/1000000", letters), [n]).points[0]
    with mpmath.workdps(60):
        omega, t = 2 * mpmath.pi / letters, mp_fraction(theta)
        assert (point.method == "closed_form") == ((n - 1) * t < omega)
        if point.method == "closed_form":
            first = mpmath.cos((n - 2) * t) - mpmath.cos(omega - (n - 1) * t)
            second = mpmath.cos((n - 1) * t) - mpmath.cos(omega - (n - 2) * t)
            checks.check_digits(point.worst, min(first, second))
            assert (point.worst.sign == 1) == ((2 * n - 3) * t < omega)


@given(st.integers(2, 12), st.integers(3, 60))
@settings(max_examples=3)
def test_exact_zero(letters: int, n: int) -> None:
    """(2n - 3) theta = omega exactly, theta = 1/(A (2n - 3)) turn: a tie at n, a win before (n >= 3: closed form)."""
    profile = one_plane_letters(f"1/{letters * (2 * n - 3)} turn", letters)
    point = ropegeo.margin_curve(profile, [n]).points[0]
    assert point.worst == Enclosure.exactly(0)
    assert point.status == "tie"
    assert point.margin.digits() == "0"
    assert first_failing_length(profile) == n
    assert ropegeo.margin_curve(profile, [n - 1]).points[0].status == "wins"


@given(st.integers(2, 30), st.integers(5000, 10**6))
@settings(max_examples=4)
def test_first_failing_length_is_the_ceiling(letters: int, micro: int) -> None:
    profile = one_plane_letters(f"{micro}/1000000", letters)
    with mpmath.workdps(40):
        omega = 2 * mpmath.pi / letters
        right = int(mpmath.ceil(omega / (2 * mp_fraction(Fraction(micro, 10**6))) + mpmath.mpf(3) / 2))
    assert first_failing_length(profile) == right


@pytest.mark.slow
@pytest.mark.parametrize(
    ("letters", "angle", "theta", "centre_length"),
    [
        (8, "0.0027", 0.0027, None),
        (8, "0.0027", 0.0027, 100),
        (8, "0.0027", 0.0027, 291),
        (8, "0.0027", 0.0027, 293),  # centred so far out that the first positions already fail
        (8, "0.1", 0.1, 40),
        (3, "0.5", 0.5, 4),
        (2, "4", 4.0, None),  # beyond half a turn
        (8, "6.28", 6.28, None),  # turns back by 0.0032
        (8, "6.3", 6.3, None),  # beyond a whole turn
    ],
)
def test_first_failing_length_by_definition(letters: int, angle: str, theta: float, centre_length: int | None) -> None:
    centre = 0.0 if centre_length is None else (centre_length - 1) / 2
    profile = one_plane_letters(angle, letters, Fraction(centre))
    found = first_failing_length(profile)
    right = next(n for n in range(2, 500) if oracles.worst_letter_margin(letters, [(theta, 1.0)], centre, n) <= 1e-9)
    assert found == right


@given(st.integers(2, 9), st.integers(1, 2000), st.integers(0, 30))
@settings(max_examples=6)
def test_retrieval_worst_never_grows(letters: int, milli: int, twice: int) -> None:
    points = ropegeo.margin_curve(
        one_plane_letters(f"{milli}/1000", letters, Fraction(twice, 2)), range(2, 30, 3)
    ).points
    for before, after in itertools.pairwise(points):
        assert after.worst.low <= before.worst.high


def test_symbolic_reflexive_looks_for_itself() -> None:
    """Only the own position is the target: 1 - max over d >= 1 and shifts."""
    for theta, n in ((0.01, 20), (0.7, 9), (2.0, 6)):
        score = oracles.letter_score(5, [(theta, 1.0)], 0.0)
        right = 1 - max(score(True, s, d) for s in range(1, 5) for d in range(1, n))
        best = 1 - min(score(True, s, d) for s in range(1, 5) for d in range(1, n))
        profile = replace(one_plane_letters(repr(theta), 5), self_only=True)
        point = ropegeo.margin_curve(profile, [n]).points[0]
        assert abs(float(point.worst) - right) <= 64 * n * EPS
        assert point.best is not None
        assert abs(float(point.best) - best) <= 64 * n * EPS


# ---- per_input, and saved curves ----


def test_per_input() -> None:
    assert ropegeo.per_input(np.array([3.0, 1, 2.5]), np.array([True, True, False])) == 0.5
    assert ropegeo.per_input(np.array([0.0, 1]), np.array([True, False])) == -1
    for answers in ([True, True], [False, False]):
        with pytest.raises(InvalidInputError, match="needs at least one position with the answer"):
            ropegeo.per_input(np.zeros(2), np.array(answers))


@pytest.mark.parametrize(
    ("profile", "lengths"),
    [
        (one_plane("1", 3), [4, 100, 2**53, 2**53 + 1, 10**30, 10**1000]),
        (one_plane("2*pi/5"), [2, 5, 6, 10**20]),
        (LogitProfile(spectrum=spectrum_of("1", "0.1"), coefficients=np.array([2.0, 1], complex)), [2, 50]),
        (one_plane_letters("0.0027", 8), [2, 17, 147, 1500]),
        (one_plane_letters("1/248 turn", 8), [16, 17, 18]),
        (one_plane("pi*(1+1e-3000)"), [10]),  # margin near 1e-5999
    ],
)
def test_saved_curves_still_contain_the_numbers(profile: Any, lengths: list[int]) -> None:
    curve = ropegeo.margin_curve(profile, lengths)
    text = json.dumps(curve.to_dict(), allow_nan=False)
    data = json.loads(text)
    for row, n in zip(data["rows"], lengths, strict=True):
        assert row["length"] == (n if n <= 2**53 else str(n))
        assert isinstance(row["at"], str) == (abs(int(row["at"])) > 2**53)
    again = ropegeo.MarginCurve.from_dict(data)
    assert (again.lengths, again.beta, again.inputs) == (curve.lengths, curve.beta, curve.inputs)
    for old, new in zip(curve.points, again.points, strict=True):
        assert (old.at, old.status, old.method) == (new.at, new.status, new.method)
        for before, after in ((old.margin, new.margin), (old.worst, new.worst), (old.best, new.best)):
            assert (before is None) == (after is None)
            if before is not None and after is not None:
                assert after.low <= before.low <= before.high <= after.high
                assert abs(float(after) - float(before)) <= before.abs_error + after.abs_error


GOOD = ropegeo.margin_curve(one_plane("1"), [10]).to_dict()


@pytest.mark.parametrize(
    ("change", "row"),
    [
        ({"schema": "ropegeo.margin_curve/0"}, {}),
        ({"rows": None}, {}),
        ({"beta": "x"}, {}),
        ({"beta": 10**400}, {}),
        ({}, {"length": None}),
        ({}, {"length": "ten"}),
        ({}, {"length": float("inf")}),
        ({}, {"length": 3.7}),
        ({}, {"margin": None}),
        ({}, {"margin_digits": 5}),
        ({}, {"margin_digits": "0.9"}),  # contradicts the float
        ({}, {"abs_error": -1.0}),
    ],
)
def test_malformed_curves_are_refused(change: dict[str, Any], row: dict[str, Any]) -> None:
    data = {**GOOD, "rows": [{**GOOD["rows"][0], **row}], **change}
    with pytest.raises(FileFormatError):
        ropegeo.MarginCurve.from_dict(data)


@pytest.mark.parametrize("n", [2, 3, 10**9, 10**20])
def test_retrieval_far_out_costs_nothing(n: int) -> None:
    """The closed form takes no step per position: a plane slow enough is certified at any length."""
    point = ropegeo.margin_curve(one_plane_letters("1e-30", 8), [n]).points[0]
    assert point.method == "closed_form"
    with mpmath.workdps(60):
        theta, omega = mpmath.mpf(10) ** -30, mpmath.pi / 4
        right = min(
            mpmath.cos((n - 2) * theta) - mpmath.cos(omega - (n - 1) * theta),
            mpmath.cos((n - 1) * theta) - mpmath.cos(omega - (n - 2) * theta),
        )
        assert mp_fraction(point.worst.low) <= right <= mp_fraction(point.worst.high)
        failing = first_failing_length(one_plane_letters("1e-30", 8))
        assert failing is not None
        assert (2 * (failing - 1) - 3) * theta < omega <= (2 * failing - 3) * theta

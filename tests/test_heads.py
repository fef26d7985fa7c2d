"""Heads: the definition against nested loops, the profile against the definition, both layouts, refusals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import checks
import mpmath  # type: ignore[import-untyped]
import numpy as np
import oracles
import pytest
from checks import COSINE, EPS, score_at
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import mp_fraction

from ropegeo.errors import InvalidInputError
from ropegeo.exact import read_angle
from ropegeo.heads import LOGIT_ERROR, Head, LetterProfile, LogitProfile
from ropegeo.spectrum import Layout, RopeSpectrum

layouts: st.SearchStrategy[Layout] = st.sampled_from(["interleaved", "half"])
seeds = st.integers(0, 10**6)


@given(
    seeds,
    st.integers(1, 3),
    st.integers(0, 2),
    layouts,
    st.booleans(),
    st.sampled_from([1.0, 1.25, 0.5]),
    st.integers(0, 2**61),
    st.integers(0, 5000),
)
@settings(max_examples=35)
def test_definition_and_profile(
    seed: int, planes: int, passed: int, layout: Layout, biases: bool, factor: float, i: int, d: int
) -> None:
    head = checks.random_head(
        seed, head_dim=2 * planes + passed, rotary_dim=2 * planes, layout=layout, biases=biases, factor=factor
    )
    checks.check_head(head, seed + 1, i + d, i)


def test_biases_are_rotated() -> None:
    """Public case 43: width 4, half, base 1e4, scale 1/2, key at 0; with and without the biases."""
    column = np.array([[1.0], [2], [3], [4]])
    head = Head(
        w_q=column,
        w_k=np.array([[2.0], [-1], [0.5], [1]]),
        w_v=np.ones((1, 1)),
        w_o=np.ones((1, 1)),
        b_q=np.array([10.0, 0, 0, 0]),
        b_k=np.array([0.0, 0, 20, 0]),
        spectrum=RopeSpectrum.from_base(10000, head_dim=4),
    )
    one = np.ones(1)
    for biased, right in (
        (head, (42.75, 115.939011353, 83.481058175)),
        (replace(head, b_q=None, b_k=None), (2.75, -0.338566673, -2.169028882)),
    ):
        for distance, value in enumerate(right):
            for got in (biased.logit(one, distance, one, 0), score_at(biased.profile(one, one), distance)):
                # Nine decimals are given; the tolerance of those cases is 1e-9 relative.
                assert abs(got - value) <= max(0.5e-9, 1e-9 * abs(value))
    # The bias-only term is 100 sin(distance): a pattern that needs no content.
    nothing = head.profile(np.zeros(1), np.zeros(1)).logit(np.arange(50))
    assert np.abs(nothing - 100 * np.sin(np.arange(50))).max() <= 100 * (COSINE + EPS)


@given(seeds, layouts, st.integers(1, 3), st.integers(0, 2))
@settings(max_examples=30)
def test_another_layout_keeps_logits_and_profile(seed: int, layout: Layout, planes: int, passed: int) -> None:
    head = checks.random_head(
        seed, head_dim=2 * planes + passed, rotary_dim=2 * planes, layout="half", biases=True, factor=1.5
    )
    moved = head.in_layout(layout)
    assert moved.spectrum.layout == layout
    x, y = np.random.default_rng(seed).normal(size=(2, 3))
    before, after = head.profile(x, y), moved.profile(x, y)
    assert np.abs(before.coefficients - after.coefficients).max() <= 1e-12 * before.weight
    assert abs(before.constant - after.constant) <= 1e-12 * (before.weight + abs(before.constant))
    assert abs(head.logit(x, 70, y, 3) - moved.logit(x, 70, y, 3)) <= 1e-12 * (before.weight + abs(before.constant))


@given(seeds, st.integers(2, 6), st.integers(0, 10**15))
@settings(max_examples=30)
def test_a_whole_sequence(seed: int, n: int, start: int) -> None:
    head = checks.random_head(seed, head_dim=6, rotary_dim=4, layout="half", biases=True, factor=1.0)
    states = np.random.default_rng(seed).normal(size=(n, 3))
    table = head.logits(states, start_position=start)
    for i in range(n):
        for j in range(n):
            if j > i:
                assert table[i, j] == -np.inf
            else:
                single = head.logit(states[i], start + i, states[j], start + j)
                size = head.logit_scale * np.linalg.norm(head.queries(states[i])) * np.linalg.norm(head.keys(states[j]))
                assert abs(table[i, j] - single) <= 1e-13 * size


def test_grouped_spectrum_and_scale_defaults() -> None:
    head = checks.random_head(0, head_dim=16, rotary_dim=8, layout="half", biases=False, factor=1.0)
    assert head.logit_scale == 0.25
    assert head.d_model == 3
    assert replace(head, scale=0.0625).logit_scale == 0.0625  # public case 45
    assert not head.w_q.flags.writeable


# ---- profiles ----


@settings(max_examples=25)
@given(st.integers(2, 9), st.integers(-20, 20), st.integers(0, 10**9), st.integers(0, 10**6), seeds)
def test_letter_profile_against_the_definition(letters: int, shift: int, d: int, twice: int, seed: int) -> None:
    weights, centre = np.random.default_rng(seed).uniform(size=3) * [1, 0, 1], Fraction(twice, 2)
    profile = LetterProfile(
        spectrum=RopeSpectrum.from_base(10000, head_dim=6), weights=weights, letters=letters, centre=centre
    )
    with mpmath.workdps(50):
        truth = mpmath.fsum(
            mp_fraction(float(weight))
            * mpmath.cos(2 * mpmath.pi * shift / letters + mp_fraction(d - centre) * oracles.rope_angle(10000, k, 6)())
            for k, weight in enumerate(weights)
        )
        assert abs(mp_fraction(float(profile.logit(shift, np.array([d]))[0])) - truth) <= profile.abs_error
        assert abs(mp_fraction(score_at(profile.profile(shift), d)) - truth) <= 2 * profile.abs_error
    assert profile.abs_error <= 2 * LOGIT_ERROR * profile.weight
    assert profile.active_planes == (0, 2)
    assert profile.code_turn == Fraction(1, letters)


@settings(max_examples=25)
@given(st.integers(-(2**60), 2**60), st.integers(-(2**61), 2**61), seeds)
def test_logit_profile_about_an_origin(origin: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    c = rng.normal(size=3) + 1j * rng.normal(size=3)
    profile = LogitProfile(
        spectrum=RopeSpectrum.from_base(10000, head_dim=6), coefficients=c, constant=2.5, origin=origin
    )
    with mpmath.workdps(60):
        truth = mp_fraction(2.5)
        for k in range(3):
            phase = (d - origin) * oracles.rope_angle(10000, k, 6)()
            truth += mp_fraction(c[k].real) * mpmath.cos(phase) - mp_fraction(c[k].imag) * mpmath.sin(phase)
        assert abs(mp_fraction(score_at(profile, d)) - truth) <= profile.abs_error
    assert not profile.is_peaked


def test_gap_against_the_definition() -> None:
    weights = [0.5, 0.25, 0.25]
    thetas = [oracles.rope_angle(10000, k, 6) for k in range(3)]
    profile = LogitProfile(
        spectrum=RopeSpectrum.from_base(10000, head_dim=6), coefficients=np.array(weights, complex), origin=9
    )
    with mpmath.workdps(50):
        for t in (0, 1, -1, 44, -355, 10**6, 2**61):
            truth = oracles.planes_gap(thetas, weights, t)
            assert abs(float(profile.gap(np.array([t]))[0]) - truth) <= LOGIT_ERROR * profile.weight
    checks.check_small_gap()


# ---- refusals ----

SPECTRUM = RopeSpectrum.from_angle("1")
GOOD: dict[str, Any] = {
    "w_q": np.ones((2, 3)),
    "w_k": np.ones((2, 3)),
    "w_v": np.ones((4, 3)),
    "w_o": np.ones((3, 4)),
    "spectrum": SPECTRUM,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"w_q": np.full((2, 3), np.nan)}, "Head: w_q has NaN or infinite entries"),
        ({"b_k": np.array([np.inf, 0])}, "Head: b_k has NaN or infinite entries"),
        ({"spectrum": RopeSpectrum.from_base(10000, head_dim=4)}, r"w_q must have shape \(4, 3\), got \(2, 3\)"),
        ({"scale": 0.0}, "scale 0.0 must be positive and finite"),
        ({"scale": float("inf")}, "scale inf must be positive and finite"),
        ({"scale": float("nan")}, "scale nan must be positive and finite"),
    ],
)
def test_heads_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Head(**{**GOOD, **change})


def test_profiles_refused() -> None:
    with pytest.raises(InvalidInputError, match="needs 1 coefficients, one per plane"):
        LogitProfile(spectrum=SPECTRUM, coefficients=np.ones(2, complex))
    with pytest.raises(InvalidInputError, match="coefficients and constant must be finite"):
        LogitProfile(spectrum=SPECTRUM, coefficients=np.array([np.nan], complex))
    with pytest.raises(InvalidInputError, match=r"the origin is beyond 2\*\*62"):
        LogitProfile(spectrum=SPECTRUM, coefficients=np.ones(1, complex), origin=2**62).logit(np.array([0]))
    with pytest.raises(InvalidInputError, match="needs real, non-negative coefficients"):
        LogitProfile(spectrum=SPECTRUM, coefficients=-np.ones(1, complex)).gap(np.array([1]))
    with pytest.raises(InvalidInputError, match="needs 1 weights; got"):
        LetterProfile(spectrum=SPECTRUM, weights=np.ones(2), letters=3)
    with pytest.raises(InvalidInputError, match="weights must be finite and not negative"):
        LetterProfile(spectrum=SPECTRUM, weights=-np.ones(1), letters=3)
    with pytest.raises(InvalidInputError, match="needs at least 2 letters, got 1"):
        LetterProfile(spectrum=SPECTRUM, weights=np.ones(1), letters=1)


def test_angles_beyond_a_turn_are_served() -> None:
    spectrum = RopeSpectrum(angles=(read_angle("100"),), head_dim=2)
    assert abs(float(np.cos(spectrum.phases(np.array([1])))[0, 0]) - 0.8623188722876839) <= COSINE  # cos 100, mpmath

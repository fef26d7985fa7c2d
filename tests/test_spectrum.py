"""Spectra: frequencies, phases at any position, rotation, layouts, files."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import checks
import mpmath  # type: ignore[import-untyped]
import numpy as np
import oracles
import pytest
from checks import EPS, TURN
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import mp_fraction

from ropegeo.errors import FileFormatError, InvalidInputError
from ropegeo.exact import read_angle
from ropegeo.heads import Head
from ropegeo.spectrum import Layout, RopeSpectrum, convert_projection, layout_permutation, spectrum_from_config
from ropegeo.spectrum.layout import check_layout, pair_indices
from ropegeo.spectrum.phases import turn_of, turn_words, turns

LAYOUTS: tuple[Layout, ...] = ("interleaved", "half")
layouts = st.sampled_from(LAYOUTS)
MAX = 2**62 - 1


def near(value: float, right: float) -> bool:
    """Equal to the digits given, at most 1e-9 relative: the tolerance of those cases."""
    return abs(value - right) <= 1e-9 * abs(right)


# ---- frequencies ----


@given(st.integers(2, 10**7), st.integers(1, 64), st.integers(0, 40))
@settings(max_examples=15)
def test_inv_freq_is_the_nearest_double(base: int, planes: int, passed: int) -> None:
    spectrum = RopeSpectrum.from_base(base, head_dim=2 * planes + passed, rotary_dim=2 * planes)
    assert (spectrum.planes, spectrum.rotary_dim) == (planes, 2 * planes)
    with mpmath.workdps(60):
        for plane in {0, planes // 2, planes - 1}:
            truth, double = oracles.rope_angle(base, plane, 2 * planes)(), float(spectrum.inv_freq[plane])
            for neighbour in (math.nextafter(double, 0), math.nextafter(double, 2)):
                assert abs(truth - double) <= abs(truth - neighbour)
        assert spectrum.rational_turn(planes - 1) is None


def test_exponent_and_pairs_come_from_the_rotated_width() -> None:
    """Public case 5."""
    spectrum = RopeSpectrum.from_base(10**7, head_dim=256, rotary_dim=64)
    assert abs(spectrum.inv_freq[1] - 0.6042963902381329) <= 2 * EPS
    assert near(spectrum.inv_freq[31], 1.6548170999431814e-07)
    first, second = pair_indices("half", 64)
    assert first.tolist() == list(range(32))
    assert second.tolist() == list(range(32, 64))
    x = np.random.default_rng(0).normal(size=256)
    assert (spectrum.rotate(x, 12345)[64:] == x[64:]).all()


def test_llama3_scaling() -> None:
    """Public case 21: Llama 3.2 1B, and the same with factor 8."""

    def scaled(factor: int) -> RopeSpectrum:
        return spectrum_from_config(
            {
                "model_type": "llama",
                "hidden_size": 2048,
                "num_attention_heads": 32,
                "head_dim": 64,
                "rope_theta": 500000.0,
                "rope_scaling": {
                    "rope_type": "llama3",
                    "factor": factor,
                    "low_freq_factor": 1.0,
                    "high_freq_factor": 4.0,
                    "original_max_position_embeddings": 8192,
                },
            }
        )

    plain = RopeSpectrum.from_base(500000, head_dim=64)
    by_32, by_8 = scaled(32), scaled(8)
    assert by_32.angles[:15] == plain.angles[:15]
    assert near(by_32.inv_freq[14], 0.003211445994752591)
    # Ten digits are given.
    assert np.abs(by_32.inv_freq[15:18] - [0.001290547928, 0.000429556797, 0.000097082878]).max() <= 0.5e-12
    assert np.abs(by_8.inv_freq[15:18] - [0.001371893568, 0.000524846161, 0.000178507813]).max() <= 0.5e-12
    assert all(by_32.angles[k] * 32 == plain.angles[k] for k in range(18, 32))
    assert near(by_32.inv_freq[31], 9.41830672543491e-08)
    assert abs(by_8.inv_freq[31] - 3.767e-07) <= 0.5e-10


def test_linear_scaling_of_global_layers_only() -> None:
    """Public case 25: Gemma 3; neighbour gap of a ones head, 2 sum (1 - cos f)/16."""
    config = {
        "model_type": "gemma3_text",
        "hidden_size": 640,
        "num_attention_heads": 4,
        "head_dim": 256,
        "rope_theta": 1e6,
        "rope_local_base_freq": 1e4,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    }
    whole = spectrum_from_config(config, layer_type="full_attention")
    local = spectrum_from_config(config, layer_type="sliding_attention")
    assert whole.inv_freq[0] == 0.125
    assert abs(whole.inv_freq[1] - 0.112210891556) <= 0.5e-12
    assert local.inv_freq[0] == 1
    assert near(local.inv_freq[1], 0.9305720409296989)
    for spectrum, gap in ((local, 0.4459573769), (whole, 0.0050261106)):
        assert abs((4 * np.sin(spectrum.inv_freq / 2) ** 2).sum() / 16 - gap) <= 0.5e-10 + 128 * EPS


# ---- phases ----

PHASE_ANGLES = {text: oracles.ANGLES[text] for text in ("1", "10000^(-2/128)", "pi*(sqrt(5)-1)", "100", "2*pi/5")}


def test_phases_far_out() -> None:
    checks.check_phases(PHASE_ANGLES, [0, 1, -1, 10**6, 10**12, -(10**15), 10**18, MAX, -MAX, 2**61 + 1])


@given(st.lists(st.integers(-MAX, MAX), min_size=1, max_size=4))
@settings(max_examples=20)
def test_phases_at_random_positions(positions: list[int]) -> None:
    checks.check_phases(PHASE_ANGLES, positions)


@given(st.fractions(0, 3, max_denominator=10**6).filter(bool), st.integers(-MAX, MAX))
def test_turns_of_rational_angles_exactly(turn: Fraction, t: int) -> None:
    angle = read_angle(f"{turn.numerator}/{turn.denominator} turn")
    for got in (float(turns(turn_words((angle,)), np.array([t]))[0, 0]), turn_of(angle, t)):
        off = Fraction(got) - t * turn
        assert abs(off - round(off)) <= TURN
        assert abs(got) <= 0.5


@given(st.integers(-(10**40), 10**40), st.sampled_from(sorted(PHASE_ANGLES)))
def test_turn_of_any_size(t: int, text: str) -> None:
    with mpmath.workdps(120):
        turn = t * PHASE_ANGLES[text]() / (2 * mpmath.pi) - mp_fraction(turn_of(read_angle(text), t))
        assert abs(turn - mpmath.nint(turn)) <= TURN


def test_turn_of_agrees_with_phases_and_has_their_sign() -> None:
    spectrum = RopeSpectrum.from_base(10000, head_dim=8)
    for t in (0, 1, -1, 17, -(2**40)):
        assert np.abs(spectrum.phases_at(t) - spectrum.phases(np.array([t]))[0]).max() <= 2 * np.pi * (
            2 * TURN + 2 * EPS
        )
        assert (spectrum.phases_at(t) == -spectrum.phases_at(-t)).all()


@pytest.mark.parametrize("t", [2**62, -(2**62), 2**63 - 1, -(2**63)])
def test_positions_beyond_the_range_are_refused(t: int) -> None:
    with pytest.raises(InvalidInputError, match=r"displacements must lie strictly between -2\*\*62 and 2\*\*62"):
        RopeSpectrum.from_angle("1").phases(np.array([0, t]))


# ---- rotation ----


def test_gpt_j_rotation() -> None:
    """Public case 3, and the values of the other layout."""
    checks.check_rotation("interleaved", checks.GPT_J)
    checks.check_rotation("half", checks.HALF)


@given(
    st.integers(1, 5),
    st.integers(0, 3),
    layouts,
    st.lists(st.integers(-MAX, MAX), min_size=1, max_size=3),
    st.integers(),
)
@settings(max_examples=25)
def test_rotation_against_the_definition(planes: int, passed: int, layout: Layout, at: list[int], seed: int) -> None:
    spectrum = RopeSpectrum.from_base(10000, head_dim=2 * planes + passed, rotary_dim=2 * planes, layout=layout)
    vectors = np.random.default_rng(abs(seed)).normal(size=(len(at), spectrum.head_dim))
    turned = spectrum.rotate(vectors, np.array(at))
    thetas = [oracles.rope_angle(10000, k, 2 * planes) for k in range(planes)]
    with mpmath.workdps(50):
        for row, position in enumerate(at):
            truth = oracles.rotated([mp_fraction(x) for x in vectors[row]], position, thetas, layout, 1.0)
            for first, second in oracles.pairs(layout, 2 * planes):
                size = math.hypot(vectors[row, first], vectors[row, second])
                for index in (first, second):
                    assert abs(mp_fraction(float(turned[row, index])) - truth[index]) <= 3e-15 * size
    norms = np.linalg.norm(vectors, axis=-1)
    assert (np.abs(np.linalg.norm(turned, axis=-1) - norms) <= (3e-15 + 8 * EPS) * norms).all()


def score(spectrum: RopeSpectrum, q: Any, i: int, k: Any, j: int) -> float:
    return float(spectrum.rotate(np.array(q, dtype=float), i) @ spectrum.rotate(np.array(k, dtype=float), j))


UP, DOWN = np.arange(1.0, 9.0), np.arange(8.0, 0.0, -1.0)
ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def test_both_layouts_agree_after_the_permutation() -> None:
    """Public case 1."""
    interleaved = RopeSpectrum.from_base(10000, head_dim=8, layout="interleaved")
    half = interleaved.with_layout("half")
    assert interleaved.permutation_to("half").tolist() == ORDER
    assert near(score(interleaved, UP, 5, DOWN, 2), 70.27903255028566)
    assert near(score(half, UP[ORDER], 5, DOWN[ORDER], 2), 70.27903255028566)
    assert near(score(half, UP, 5, DOWN, 2), 45.92956725201566)
    inverse = np.argsort(ORDER)
    assert abs(score(half, UP[inverse], 5, DOWN[inverse], 2) - 58.27277708) <= 0.5e-8


@pytest.mark.parametrize("shift", [0, 1, 100000, 10**9, 10**15, 2**62 - 6, -(2**62) + 6])
def test_shift_of_all_positions(shift: int) -> None:
    """Public case 51, to 1e-10."""
    spectrum = RopeSpectrum.from_base(10000, head_dim=8)
    assert abs(score(spectrum, UP, 5 + shift, DOWN, 2 + shift) - 45.92956725201566) <= 1e-10


@given(st.integers(1, 6), st.integers(0, 3), st.integers(0, 10**9), st.integers(0, 10**9), st.integers(-(2**61), 2**61))
@settings(max_examples=40)
def test_products_depend_on_the_difference_only(planes: int, passed: int, i: int, j: int, shift: int) -> None:
    spectrum = RopeSpectrum.from_base(500000, head_dim=2 * planes + passed, rotary_dim=2 * planes)
    q, k = np.random.default_rng(planes + passed).normal(size=(2, spectrum.head_dim))
    size = float(np.linalg.norm(q) * np.linalg.norm(k))
    here, there = score(spectrum, q, i, k, j), score(spectrum, q, i + shift, k, j + shift)
    assert abs(here - there) <= (4 * 3e-15 + 2 * (spectrum.head_dim + 2) * EPS) * size


def test_attention_factor_acts_on_the_rotated_part_only() -> None:
    """Public case 14: ones, 64 of 128 dims, yarn factor 32 with g = 0.1 ln 32 + 1, same position, scale 1/sqrt(128)."""
    plain = RopeSpectrum.from_base(10000, head_dim=128, rotary_dim=64)
    spectrum = RopeSpectrum(angles=plain.angles, head_dim=128, attention_factor=0.1 * math.log(32) + 1)
    one = np.ones((128, 1))
    head = Head(w_q=one, w_k=one, w_v=np.ones((1, 1)), w_o=np.ones((1, 1)), spectrum=spectrum)
    state = np.ones(1)
    assert near(head.logit(state, 9, state, 9), 15.914204241225097)
    assert near(checks.score_at(head.profile(state, state), 0), 15.914204241225097)


# ---- conversion of weights ----


@given(st.integers(1, 6), st.integers(0, 5), st.integers(1, 4), st.integers(0, 3), layouts)
def test_conversion_by_definition(planes: int, passed: int, heads: int, width: int, source: Layout) -> None:
    """Row of plane k, part p of head h goes to the row of the same plane and part; the rest stays."""
    head_dim, rotary_dim = 2 * planes + passed, 2 * planes
    target: Layout = "half" if source == "interleaved" else "interleaved"
    shape = (heads * head_dim, width) if width else (heads * head_dim,)
    weight = np.random.default_rng(1).normal(size=shape)
    widths = {"head_dim": head_dim, "rotary_dim": rotary_dim}
    converted = convert_projection(weight, source=source, target=target, **widths)
    for h in range(heads):
        for old, new in zip(oracles.pairs(source, rotary_dim), oracles.pairs(target, rotary_dim), strict=True):
            for a, b in zip(old, new, strict=True):
                assert (converted[h * head_dim + b] == weight[h * head_dim + a]).all()
        for rest in range(rotary_dim, head_dim):
            assert (converted[h * head_dim + rest] == weight[h * head_dim + rest]).all()
    assert (convert_projection(converted, source=target, target=source, **widths) == weight).all()
    assert (convert_projection(weight, source=source, target=source, **widths) == weight).all()


def test_grouped_keys_keep_their_logits() -> None:
    """Four query heads on two key heads, weights and biases, partial rotary: all logits survive the conversion."""
    rng = np.random.default_rng(3)
    interleaved = RopeSpectrum.from_base(10000, head_dim=10, rotary_dim=6, layout="interleaved")
    half = interleaved.with_layout("half")
    x, y = rng.normal(size=(2, 5))
    w_q, w_k, b_q, b_k = (rng.normal(size=s) for s in ((40, 5), (20, 5), (40,), (20,)))
    q, k = (w_q @ x + b_q).reshape(4, 10), (w_k @ y + b_k).reshape(2, 10)
    to_half: dict[str, Any] = {"head_dim": 10, "rotary_dim": 6, "source": "interleaved", "target": "half"}
    v_q, c_q, v_k, c_k = (convert_projection(w, **to_half) for w in (w_q, b_q, w_k, b_k))
    u, v = (v_q @ x + c_q).reshape(4, 10), (v_k @ y + c_k).reshape(2, 10)
    for h in range(4):
        size = float(np.linalg.norm(q[h]) * np.linalg.norm(k[h // 2]))
        error = (2 * 3e-15 + 2 * (10 + 5 + 2) * EPS) * size * 8  # rows are sums of 5 products and may cancel
        assert abs(score(interleaved, q[h], 9, k[h // 2], 4) - score(half, u[h], 9, v[h // 2], 4)) <= error


# ---- refusals and files ----


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base": 10000, "head_dim": 7}, "head_dim 7 must be even and at least 2"),
        ({"base": 10000, "head_dim": 65}, "head_dim 65 must be even"),  # public case 9
        ({"base": 10000, "head_dim": 4, "rotary_dim": 3}, "rotary_dim 3 must be even and at least 2"),  # public case 9
        ({"base": 10000, "head_dim": 4, "rotary_dim": 0}, "rotary_dim 0 must be even"),
        ({"base": 10000, "head_dim": 4, "rotary_dim": -2}, "rotary_dim -2 must be even"),
        ({"base": 10000, "head_dim": 4, "rotary_dim": 6}, "rotary_dim 6 is larger than head_dim 4"),
        ({"base": 10000, "head_dim": 0}, "head_dim 0 must be even"),
        ({"base": 10000, "head_dim": 16384}, "head_dim 16384 must be between 1 and 8192"),
        ({"base": 1, "head_dim": 4}, "base 1 must be larger than 1"),
        ({"base": 0, "head_dim": 4}, "base 0 must be larger than 1"),
        ({"base": -10000, "head_dim": 4}, "base -10000 must be larger than 1"),
        ({"base": "ten", "head_dim": 4}, "'ten' is not a decimal number"),
        ({"base": float("nan"), "head_dim": 4}, "base nan is not a finite number"),
        ({"base": float("inf"), "head_dim": 4}, "base inf is not a finite number"),
        ({"base": "1e-8000", "head_dim": 4}, "too large to write out"),
        ({"base": "1e5000", "head_dim": 2}, "base"),
    ],
)
def test_bases_and_widths_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        RopeSpectrum.from_base(arguments.pop("base"), **arguments)


@pytest.mark.parametrize(
    ("angle", "message"),
    [
        ("0", "must be positive"),
        ("-1", "must be positive"),
        (0, "must lie between 1e-300 and 1e"),
        (-0.5, "must lie between"),
        ("1e-301", "must lie between"),
        ("1e301", "must lie between"),
        (float("nan"), "angle nan is not a finite number"),
        ("one", "cannot read 'one'"),
    ],
)
def test_angles_refused(angle: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        RopeSpectrum.from_angle(angle)


def test_an_angle_too_long_to_print_is_refused_by_name_or_served() -> None:
    try:
        spectrum = RopeSpectrum.from_angle("(1/2+1e-5000) turn")
    except InvalidInputError:
        return
    assert RopeSpectrum.from_dict(spectrum.to_dict()).angles == spectrum.angles


def test_conversions_refused() -> None:
    with pytest.raises(InvalidInputError, match="layout 'gptj' is unknown; use one of interleaved, half"):
        check_layout("gptj")
    with pytest.raises(InvalidInputError, match="9 rows are not a whole number of heads of width 4"):
        convert_projection(np.ones((9, 2)), head_dim=4, rotary_dim=4, source="half", target="interleaved")
    with pytest.raises(InvalidInputError, match="rotary_dim 3 must be even"):
        layout_permutation(4, 3, source="half", target="interleaved")
    with pytest.raises(InvalidInputError, match="vectors have width 4, the spectrum has head_dim 2"):
        RopeSpectrum.from_angle("1").rotate(np.ones(4), 0)
    with pytest.raises(InvalidInputError, match="plane 1 is out of range: angle 1 has planes 0 to 0"):
        RopeSpectrum.from_angle("1").rational_turn(1)


@pytest.mark.parametrize(
    "spectrum",
    [
        RopeSpectrum.from_base(10000, head_dim=8, rotary_dim=6, layout="interleaved"),
        RopeSpectrum.from_base(Fraction(20001, 2), head_dim=4),
        RopeSpectrum.from_base(10000.1, head_dim=4),
        RopeSpectrum.from_angle("1/7 turn"),
        RopeSpectrum.from_angle("pi*(sqrt(5)-1)"),
        RopeSpectrum.from_angle(0.1),
        RopeSpectrum(angles=(read_angle("1"), read_angle("2*pi/5")), head_dim=5, attention_factor=1.25),
    ],
)
def test_saved_spectra_read_back_exactly(spectrum: RopeSpectrum) -> None:
    data = json.loads(json.dumps(spectrum.to_dict()))
    again = RopeSpectrum.from_dict(data)
    assert again.angles == spectrum.angles
    assert again.to_dict() == spectrum.to_dict()
    assert (again.inv_freq == spectrum.inv_freq).all()


GOOD = RopeSpectrum.from_base(10000, head_dim=4).to_dict()


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "ropegeo.spectrum/2"},
        {"angles": ["__import__('os')", "1"]},
        {"angles": [1.0, 0.01]},
        {"angles": ["1", "0"]},
        {"angles": ["1"] * 5000},
        {"angles": ["1"], "head_dim": 1},
        {"angles": None},
        {"head_dim": 4.0},
        {"head_dim": True},
        {"layout": "both"},
        {"attention_factor": 0},
        {"attention_factor": float("nan")},
        {"attention_factor": 10**400},
        {"attention_factor": "x"},
    ],
)
def test_malformed_spectra_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(FileFormatError, match="spectrum: "):
        RopeSpectrum.from_dict({**GOOD, **change})

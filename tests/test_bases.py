"""B_m, the critical plane, the set of admissible bases, and scalings side by side."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ropegeo.errors import FileFormatError, InvalidInputError, RopegeoError, UnsupportedError
from ropegeo.exact import Enclosure
from ropegeo.limits import base_ends, scalings
from ropegeo.limits.base_ends import admissible_pieces
from ropegeo.limits.base_search import Stretch, cover, score_error, search_end
from ropegeo.limits.bases import AdmissibleBases, admissible_bases
from ropegeo.limits.scalings import compare_scalings, ntk_angles, scaled_spectra, unscaled
from ropegeo.limits.scores import (
    base_score,
    critical_plane,
    first_negative,
    score_accuracy,
    score_ranges,
    score_sign,
)
from ropegeo.spectrum import RopeSpectrum, preset, preset_names

# ---- oracles: nothing of ours ----


def angles_of(base: float, rotary_dim: int) -> list[float]:
    """The definition, in floats."""
    return [float(base) ** (-2 * k / rotary_dim) for k in range(rotary_dim // 2)]


def smallest_score(base: float, rotary_dim: int, length: int) -> float:
    """The least B_m, m < length, or one that is clearly negative, evaluated directly; off by some 1e-10."""
    least = math.inf
    angles = np.array(angles_of(base, rotary_dim))[:, None]
    start, size = 0, 64
    while start < length and least >= -1e-3:
        m = np.arange(start, min(start + size, length))
        least = min(least, float(np.cos(m * angles).sum(axis=0).min()))
        start, size = start + size, min(2 * size, 2048)
    return least


def mp_score(base: Any, rotary_dim: int, m: int) -> Any:
    """B_m to 50 digits."""
    with mpmath.workdps(50):
        return mpmath.fsum(mpmath.cos(m * mpmath.mpf(base) ** (-mpmath.mpf(2 * k) / rotary_dim)) for k in
                           range(rotary_dim // 2))  # fmt: skip


def mp_number(value: Fraction) -> Any:
    """A fraction to 50 digits."""
    with mpmath.workdps(50):
        return mpmath.mpf(value.numerator) / value.denominator


def faults(bases: AdmissibleBases, drawn: Sequence[float]) -> list[str]:
    """What is wrong with a set of bases, against direct evaluation at drawn bases, beside every end, and between."""
    found = []
    ends = [end for each in bases.intervals for end in (each.low, each.high) if end is not None and end.low > 1]
    places = [float(end) for end in ends]
    near = []
    for at, place in enumerate(places):
        width = min(
            [abs(place - other) / place for other in places[max(at - 1, 0) : at + 2] if other != place] + [1e-3]
        )
        step = min(1e-6, width / 4)
        near += [place * (1 - step), place * (1 + step)]
    between = [math.sqrt(one * other) for one, other in pairwise(places)]
    for base in [*drawn, *near, *between]:
        least = smallest_score(base, bases.rotary_dim, bases.length)
        verdict = bases.contains(float(base))
        if abs(least) > 1e-9 and verdict is not (least >= 0):
            found.append(f"base {base!r}: least B_m {least:.3g}, said to be {verdict}")
    for each in bases.intervals:
        for end, m, rising in ((each.low, each.low_distance, True), (each.high, each.high_distance, False)):
            if end is None or m is None:
                continue
            before, after = (mp_score(mp_number(x), bases.rotary_dim, m) for x in (end.low, end.high))
            if not (before < 0 < after if rising else after < 0 < before):
                found.append(f"end {float(end)!r}: B_{m} is {before} before and {after} after")
    return found


def random_bases(bases: AdmissibleBases, count: int, seed: int) -> list[float]:
    """Bases, evenly spread in their logarithm, up to within the half line."""
    half_line = bases.half_line
    top = 3 * float(half_line) if half_line is not None else 1e6
    drawn = np.random.default_rng(seed).uniform(0, math.log(top), count)
    return [float(base) for base in np.exp(drawn) if base > 1]


# ---- the set of admissible bases ----


@settings(max_examples=4)
@given(
    rotary_dim=st.integers(min_value=1, max_value=40).map(lambda planes: 2 * planes),
    length=st.integers(min_value=2, max_value=150),
    seed=st.integers(min_value=0, max_value=2**32 - 1),
)
@example(rotary_dim=2, length=2, seed=0)
@example(rotary_dim=2, length=50, seed=0)
@example(rotary_dim=4, length=400, seed=0)  # 1 + cos(355) is 5e-10: ends where B_355 hardly moves
def test_the_set_is_what_direct_evaluation_says(rotary_dim: int, length: int, seed: int) -> None:
    bases = admissible_bases(rotary_dim, length)
    assert faults(bases, random_bases(bases, 20, seed)) == []
    for each in bases.intervals:
        for end in (each.low, each.high):
            assert end is None or end.high - end.low <= end.low / 10**18


@pytest.mark.slow
@pytest.mark.parametrize("length", [512, 4096, 32768])
def test_head_dim_128(length: int) -> None:
    done: list[int] = []
    bases = admissible_bases(128, length, progress=done.append)
    assert done == sorted(done)
    assert done[-1] == 1000
    assert len(bases.intervals) == {512: 4, 4096: 16, 32768: 96}[length]
    assert faults(bases, random_bases(bases, 100 if length < 4096 else 10_000, length)) == []


@pytest.mark.slow
def test_a_wrong_set_is_caught() -> None:
    bases = admissible_bases(16, 150)
    first, *rest = bases.intervals
    assert faults(bases, []) == []
    assert first.high is not None

    def moved(end: Enclosure, factor: Fraction) -> Enclosure:
        return Enclosure(low=end.low * factor, high=end.high * factor)

    up, down = Fraction(100_001, 100_000), Fraction(99_999, 100_000)
    wrong = {
        "low end up": (replace(first, low=moved(first.low, up)), *rest),
        "low end down": (replace(first, low=moved(first.low, down)), *rest),
        "high end up": (replace(first, high=moved(first.high, up)), *rest),
        "one left out": tuple(rest),
        "gap closed": (replace(rest[0], low=first.low, low_distance=first.low_distance), *rest[1:]),
    }
    gap = math.sqrt(float(first.high) * float(rest[0].low))
    for name, intervals in wrong.items():
        assert faults(replace(bases, intervals=intervals), [float(first.low) + 1, gap]), name


def test_a_cover_leaves_nothing_out_and_claims_nothing_wrong() -> None:
    stretches = cover(8, 120)
    assert stretches[0].start == 0
    assert stretches[-1].end == search_end(8, 120)
    assert all(one.end == other.start for one, other in pairwise(stretches))
    assert all(stretch.start < stretch.end for stretch in stretches)
    for stretch in stretches[::7]:
        for share in (0.0, 0.31, 1.0):
            base = math.exp(stretch.start + share * (stretch.end - stretch.start))
            if stretch.admissible:
                assert smallest_score(base, 16, 120) >= -1e-10
            if stretch.admissible is False:
                (witness,) = stretch.distances
                assert sum(math.cos(witness * angle) for angle in angles_of(base, 16)) < 1e-10


@settings(max_examples=12)
@given(
    planes=st.integers(min_value=2, max_value=64),
    length=st.sampled_from([3, 100, 3000]),
    u=st.floats(min_value=0, max_value=63),
)
def test_the_stated_error_of_a_score_holds(planes: int, length: int, u: float) -> None:
    from ropegeo.limits.base_search import _Scores

    scores = _Scores(planes, length)
    values, m = scores.all(u), length - 1
    assert len(values) == length
    with mpmath.workdps(50):
        powers = [mpmath.exp(-mpmath.mpf(k) / planes * mpmath.mpf(u)) for k in range(planes)]
        truth = mpmath.fsum(mpmath.cos(m * power) for power in powers)
        slope = m * mpmath.fsum(mpmath.mpf(k) / planes * x * mpmath.sin(m * x) for k, x in enumerate(powers))
    direct, slopes = scores.some(u, np.array([m]))
    assert abs(values[m] - truth) <= score_error(planes, length)
    assert abs(direct[0] - truth) <= score_error(planes, length)
    assert abs(slopes[0] - slope) <= m * scores.bounds(u)[0] * score_error(planes, length) / planes


def test_every_base_from_the_end_of_the_search_on() -> None:
    for planes, length in ((2, 50), (5, 100), (64, 1000)):
        end = search_end(planes, length)
        assert end > 0
        for base in (math.exp(end), math.exp(1.1 * end), 1e30):
            assert smallest_score(base, 2 * planes, length) >= 0


def test_one_plane_and_two_positions() -> None:
    assert admissible_bases(2, 3).intervals == ()
    assert admissible_bases(2, 3).half_line is admissible_bases(2, 3).smallest is None
    assert admissible_bases(2, 3).contains(10_000) is False
    everything = admissible_bases(128, 2)
    assert everything.contains(1.0000001) is True
    assert everything.smallest == Enclosure.exactly(1)


def test_inside_an_end_nothing_is_said() -> None:
    bases = admissible_bases(16, 64)
    end = bases.intervals[0].low
    assert bases.contains((end.low + end.high) / 2) is None
    assert bases.contains(end.low - end.low / 10**25) is False
    assert bases.contains(end.high + end.high / 10**25) is True
    assert bases.contains("1720") is bases.contains(Fraction(1720)) is True


def test_ends_that_cannot_be_told_apart_are_refused() -> None:
    root = math.log(float(admissible_bases(16, 64).intervals[0].low))
    m = admissible_bases(16, 64).intervals[0].low_distance
    assert m is not None

    def pieces(*stretches: Stretch) -> list[base_ends.Piece]:
        return admissible_pieces(8, stretches)

    near = Stretch(start=root - 1e-9, end=root + 1e-9, admissible=None, distances=(m,))
    (piece,) = pieces(near)
    assert piece.low.distance == m
    assert piece.low.place.low < Fraction(root + 1e-12) < Fraction(root + 1e-9) == piece.high.place.low
    far = replace(near, end=root + 3.0)  # B_m turns on the way
    with pytest.raises(UnsupportedError, match="may touch 0"):
        pieces(far)
    beyond = Stretch(start=near.end, end=near.end + 1e-9, admissible=False, distances=(m,))
    with pytest.raises(RopegeoError, match="contradict"):
        pieces(near, beyond)


def test_a_saved_set_reads_back() -> None:
    bases = admissible_bases(16, 64)
    saved = json.loads(json.dumps(bases.to_dict()))
    again = AdmissibleBases.from_dict(saved)
    for one, other in zip(bases.intervals, again.intervals, strict=True):
        assert other.low.low <= one.low.low <= one.low.high <= other.low.high
        assert (one.low_distance, one.high_distance) == (other.low_distance, other.high_distance)
    assert [again.contains(base) for base in (1500, 1720, 2000, 3000)] == [False, True, False, True]
    for data in (
        {},
        None,
        {"schema": "ropegeo.bases/1"},
        saved | {"intervals": saved["intervals"][::-1]},
        saved | {"intervals": saved["intervals"][:1]},
        saved | {"intervals": [{"low": 1}]},
        saved | {"length": "x"},
    ):
        with pytest.raises(FileFormatError):
            AdmissibleBases.from_dict(data)


# ---- B_m and the critical plane of any spectrum ----


@settings(max_examples=6)
@given(base=st.integers(min_value=2, max_value=10**7), planes=st.integers(min_value=1, max_value=70),
       m=st.integers(min_value=0, max_value=10**6))  # fmt: skip
def test_scores(base: int, planes: int, m: int) -> None:
    spectrum = RopeSpectrum.from_base(base, head_dim=2 * planes)
    truth = mp_score(base, 2 * planes, m)
    assert abs(base_score(spectrum, np.array([m]))[0] - truth) <= score_accuracy(spectrum)
    assert score_sign(spectrum, m) == (truth > 0) - (truth < 0)


@settings(max_examples=6)
@given(base=st.integers(min_value=2, max_value=10**5), planes=st.integers(min_value=1, max_value=40))
@example(base=3, planes=64)
def test_first_negative(base: int, planes: int) -> None:
    spectrum = RopeSpectrum.from_base(base, head_dim=2 * planes)
    scores = np.cos(np.arange(5000)[:, None] * np.array(angles_of(base, 2 * planes))).sum(axis=1)
    expected = np.flatnonzero(scores < 0)
    found = first_negative(spectrum, max_length=5000)
    assert found == (int(expected[0]) if expected.size else None)
    if found is not None:
        assert first_negative(spectrum, max_length=found) is None
        assert first_negative(spectrum, max_length=found + 1) == found


def test_balls_decide_where_floats_cannot() -> None:
    bases = admissible_bases(16, 64)
    end, m = bases.intervals[0].low, bases.intervals[0].low_distance
    scale = 10**17
    below = Fraction(math.floor(end.low * scale), scale)
    above = Fraction(math.ceil(end.high * scale), scale)
    assert above - below <= Fraction(2, scale)
    spectra = [RopeSpectrum.from_base(base, head_dim=16) for base in (below, above)]
    assert all(abs(base_score(each, np.array([m]))[0]) <= score_accuracy(each) for each in spectra)
    assert [first_negative(each, max_length=64) for each in spectra] == [m, None]
    quarter = RopeSpectrum.from_angle("1/4 turn")
    assert [score_sign(quarter, m) for m in range(5)] == [1, 0, -1, 0, 1]
    assert first_negative(quarter, max_length=10) == 2
    assert first_negative(RopeSpectrum.from_angle("2*pi"), max_length=300) is None


def test_critical_plane() -> None:
    spectrum = RopeSpectrum.from_base(10_000, head_dim=128)
    for length in (1, 6, 7, 50, 1000, 10**5):
        turns = [length * angle / (2 * math.pi) for angle in angles_of(10_000, 128)]
        whole = [plane for plane, turn in enumerate(turns) if turn >= 1]
        assert critical_plane(spectrum, length) == (whole[-1] if whole else None)
    assert critical_plane(RopeSpectrum.from_angle("1/5 turn"), 4) is None
    assert critical_plane(RopeSpectrum.from_angle("1/5 turn"), 5) == 0  # exactly one turn counts
    assert critical_plane(spectrum, 10**300) == 63


def test_score_ranges_look_at_every_distance() -> None:
    spectrum = preset("paper")
    starts, lows, highs = score_ranges(spectrum, max_length=1000, bins=30)
    scores = base_score(spectrum, np.arange(1000))
    for at, start in enumerate(starts):
        part = scores[start : starts[at + 1] if at + 1 < len(starts) else None]
        assert (lows[at], highs[at]) == (part.min(), part.max())


# ---- scalings ----


def llama3_float(angle: float, factor: float, length: float, low: float, high: float) -> float:
    """The rule of Hugging Face, in floats."""
    wavelength = 2 * math.pi / angle
    if wavelength < length / high:
        return angle
    if wavelength > length / low:
        return angle / factor
    smooth = (length / wavelength - low) / (high - low)
    return (1 - smooth) * angle / factor + smooth * angle


@settings(max_examples=6)
@given(base=st.integers(min_value=2, max_value=10**6), planes=st.integers(min_value=2, max_value=12),
       factor=st.integers(min_value=4, max_value=80).map(lambda quarters: Fraction(quarters, 4)))  # fmt: skip
def test_scaled_spectra(base: int, planes: int, factor: Fraction) -> None:
    width, f = 2 * planes, float(factor)
    made = scaled_spectra(RopeSpectrum.from_base(base, head_dim=width), factor, original_length=100)
    plain = angles_of(base, width)
    other = angles_of(base * f ** (width / (width - 2)), width)
    expected = {
        "default": plain,
        "linear": [angle / f for angle in plain],
        "llama3": [llama3_float(angle, f, 100, 1, 4) for angle in plain],
        "ntk": other,
    }
    assert tuple(made) == scalings.NAMES
    for name, spectrum in made.items():
        assert spectrum.inv_freq.tolist() == pytest.approx(expected[name], rel=1e-12)
        assert RopeSpectrum.from_dict(spectrum.to_dict()).angles == spectrum.angles
    assert made["ntk"].angles[-1] * factor == made["default"].angles[-1]
    assert made["ntk"].angles[0] == 1


@pytest.mark.parametrize(
    "name",
    [
        "llama-3.2-1b",
        *(pytest.param(name, marks=pytest.mark.slow) for name in preset_names() if name != "llama-3.2-1b"),
    ],
)
def test_the_unscaled_base_of_a_preset(name: str) -> None:
    spectrum = preset(name)
    known = unscaled(spectrum)
    again = scaled_spectra(spectrum, known.factor)  # a base is right if scaling it again gives every angle
    assert again[spectrum.rope_type].angles == spectrum.angles


def test_the_unscaled_base_is_found_again() -> None:
    made = scaled_spectra(RopeSpectrum.from_base("12345.5", head_dim=32), "2.5", original_length=300)
    for name in ("default", "linear", "llama3"):
        assert unscaled(made[name]).base == Fraction("12345.5")
        assert unscaled(made[name]).factor == (1 if name == "default" else Fraction(5, 2))
    assert unscaled(made["llama3"]).llama3 == (Fraction(300), Fraction(1), Fraction(4))
    assert scaled_spectra(made["llama3"], "2.5")["llama3"].angles == made["llama3"].angles
    altered = replace(made["llama3"], angles=(*made["llama3"].angles[:9], *made["default"].angles[9:]), angle_texts=())
    with pytest.raises(UnsupportedError, match="cannot be told"):
        unscaled(altered)


def test_compare_scalings() -> None:
    spectrum = RopeSpectrum.from_base(100, head_dim=8)
    rows = compare_scalings(spectrum, factor=2, length=40, original_length=30, searched=500)
    assert [row.name for row in rows] == list(scalings.NAMES)
    t = np.arange(1, 40)[:, None]
    for row in rows:
        angles = row.spectrum.inv_freq
        alone = (1 - np.cos(t * angles)).min(axis=0)
        assert float(row.index_margin) == pytest.approx(alone.max())
        assert row.index_plane == int(alone.argmax())
        assert float(row.equal_weights) == pytest.approx((1 - np.cos(t * angles).mean(axis=1)).min())
        # 8 letters, a rival of another letter anywhere else: a centred query, whose answer may be anywhere, and one
        # that looks for itself, which is not centred.
        d, wrong = np.arange(40) - 39 / 2, np.arange(1, 8)[:, None] * 2 * math.pi / 8
        worst = [
            min(
                1 - float(np.cos(wrong + np.arange(1, 40) * angle).max()),
                *(float(np.cos(d[at] * angle) - np.cos(wrong + np.delete(d, at) * angle).max()) for at in range(40)),
            )
            for angle in angles
        ]
        assert float(row.letter_margin) == pytest.approx(max(worst))
        scores = np.cos(np.arange(500)[:, None] * angles).sum(axis=1)
        assert row.first_negative == int(np.flatnonzero(scores < 0)[0])
        assert row.admissible == (scores[:40].min() >= 0)
        assert row.critical == critical_plane(row.spectrum, 40)
        assert row.to_dict()["slowest_angle"] == row.slowest == angles.min()


# ---- what is refused, and how ----

PAPER = RopeSpectrum.from_base(10_000, head_dim=128)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: admissible_bases(128, 1), InvalidInputError, "length 1 must be at least 2"),
        (lambda: admissible_bases(0, 9), InvalidInputError, "no plane turns"),
        (lambda: admissible_bases(7, 9), InvalidInputError, "must be even"),
        (lambda: admissible_bases(128, 10**6), UnsupportedError, "at most 131072 positions"),
        (lambda: admissible_bases(10**6, 9), UnsupportedError, "8192 coordinates"),
        (lambda: admissible_bases(4, 110_000), UnsupportedError, "use more coordinates"),
        (lambda: admissible_bases(16, 64).contains(1), InvalidInputError, "base 1 must be larger than 1"),
        (lambda: admissible_bases(16, 64).contains(math.nan), InvalidInputError, "not a finite number"),
        (lambda: first_negative(PAPER, max_length=0), InvalidInputError, "must be at least 1"),
        (lambda: first_negative(PAPER, max_length=10**10), UnsupportedError, "use at most 1000000000"),
        (lambda: base_score(PAPER, np.array([-1])), InvalidInputError, "must not be negative"),
        (lambda: critical_plane(PAPER, 0), InvalidInputError, "must be at least 1"),
        (lambda: score_ranges(PAPER, max_length=0, bins=3), InvalidInputError, "at least 1"),
        (lambda: scaled_spectra(PAPER, "0.5"), InvalidInputError, "factor (1/2) must be at least 1"),
        (lambda: scaled_spectra(PAPER, 2, original_length=0), InvalidInputError, "original_length 0"),
        (lambda: scaled_spectra(RopeSpectrum.from_angle("1"), 2), InvalidInputError, "at least two planes"),
        (lambda: unscaled(replace(PAPER, rope_type="yarn")), UnsupportedError, "cannot be told"),
        (lambda: unscaled(replace(PAPER, angles=PAPER.angles[::-1])), UnsupportedError, "cannot be told"),
        (lambda: ntk_angles(Fraction(10), 2, factor=Fraction(2)), InvalidInputError, "at least two planes"),
        (lambda: compare_scalings(PAPER, factor=2, length=1), InvalidInputError, "length"),
    ],
)
def test_refusals(call: Any, error: type[RopegeoError], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)

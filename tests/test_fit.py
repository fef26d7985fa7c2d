"""Fits of decay: the lines that must hold, each status, and laws against formulas typed here."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import curve_fit
from scipy.stats import linregress
from scipy.stats import t as student

from ropegeo.asymptotics.compare import compare_decay
from ropegeo.asymptotics.data import curve_data, decay_data, envelope
from ropegeo.asymptotics.fit import STATUSES, DecayFit, fit_decay
from ropegeo.asymptotics.intervals import ENCLOSURE, SERIAL, STUDENT
from ropegeo.asymptotics.laws import LAWS
from ropegeo.construct.retrieval import retrieval_head
from ropegeo.engine.routes import margin_curve, record_curve
from ropegeo.errors import InvalidInputError
from ropegeo.exact import read_angle
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum

PLANE = "10000^(-2/128)"
GOLDEN = "pi*(sqrt(5)-1)"
SMOOTH = ["constant", "power", "planes", "exponential", "power_floor"]


def one_plane(angle: str, offset: int = 0) -> LogitProfile:
    return LogitProfile(
        spectrum=RopeSpectrum.from_angle(angle), coefficients=np.ones(1, dtype=np.complex128), origin=offset
    )


def fitted(lengths: Any, margins: Any, **options: Any) -> DecayFit:
    return fit_decay(decay_data(np.asarray(lengths).tolist(), np.asarray(margins)), **options)


def spaced(count: int, first: int = 10, last: int = 10**6) -> Any:
    return np.unique(np.rint(np.geomspace(first, last, count)).astype(int))


# ---- what must hold ----


@pytest.mark.parametrize(("angle", "within"), [(PLANE, 0.05), (GOLDEN, 0.01)])
def test_the_envelope_of_a_staircase_falls_like_n_to_minus_2(angle: str, within: float) -> None:
    """docs/MATHEMATICS.md, section 10: on the envelope, whatever a line through all lengths says."""
    found = fit_decay(record_curve(one_plane(angle), 10**6), first=10, laws=SMOOTH)
    assert found.exponent is not None
    assert found.status == "ok"
    assert found.on_envelope
    assert found.ends_known
    assert found.exponent.value == pytest.approx(-2, abs=within)
    assert found.exponent.kind == ENCLOSURE
    assert found.exponent.low <= found.exponent.value <= found.exponent.high
    assert found.plain_slope is not None
    assert found.plain_slope != pytest.approx(found.exponent.value, abs=1e-3)


def test_the_plain_slope_depends_on_the_sampling_and_the_envelope_does_not() -> None:
    """Of the specification: -1.80 over every n from 2 to 1000, other numbers over other samples (T = n - 1)."""
    profile = one_plane(PLANE)
    every = curve_data(margin_curve(profile, range(2, 1001)))
    assert fit_decay(every, laws=["power"]).plain_slope == pytest.approx(-1.80, abs=0.005)
    sampled = curve_data(margin_curve(profile, spaced(400, 8, 10**6).tolist()))
    assert fit_decay(sampled, laws=["power"]).plain_slope == pytest.approx(-1.90, abs=0.02)
    whole = fit_decay(record_curve(profile, 1000), laws=["power"])
    assert fit_decay(every, laws=["power"]).exponent == whole.exponent  # all lengths show all ends


def test_the_staircase_of_the_known_angle_is_exact() -> None:
    found = fit_decay(record_curve(one_plane(PLANE), 10**6), first=10, angle=read_angle(PLANE))
    assert found.chosen == "staircase"
    assert found.fit("staircase").largest == 0
    other = fit_decay(record_curve(one_plane(PLANE), 10**6), first=10, angle=read_angle("1"))
    assert other.chosen != "staircase"


@pytest.mark.slow
@pytest.mark.parametrize("plain", [False, True])
def test_the_cosine_law_of_retrieval_is_found(plain: bool) -> None:
    """omega and theta within 1 %, as engine data in units of beta and as bare numbers with a free weight."""
    head = retrieval_head(RopeSpectrum.from_angle("0.0027"), letters=tuple("abcdefgh"))
    data = curve_data(margin_curve(head.profile, range(17, 141)), column="worst")
    found = fit_decay(decay_data(data.lengths, data.margin) if plain else data, laws=[*SMOOTH, "retrieval"])
    assert (found.status, found.chosen) == ("ok", "retrieval")
    parameters = found.fit("retrieval").parameters
    assert parameters["omega"].value == pytest.approx(2 * math.pi / 8, rel=0.01)
    assert parameters["theta"].value == pytest.approx(0.0027, rel=0.01)
    assert ("weight" in parameters) is plain


def test_case_62_unweighted_squares_of_a_decaying_law() -> None:
    """Case 62: 1.9941 +- 0.0119 by least squares in logarithms, where unweighted ones give 2.7867."""
    x = np.geomspace(1, 1e5, 30)
    y = x**-2.0 * np.random.RandomState(1).normal(1, 0.2, 30)
    lengths = np.rint(x * 10**6).astype(int)
    found = fitted(lengths, y, laws=["power", "constant"])
    assert found.exponent is not None
    assert found.chosen == "power"
    assert found.exponent.value == pytest.approx(-1.9941, abs=5e-5)
    assert found.exponent.high - found.exponent.low < 0.06
    assert found.exponent.kind == SERIAL
    assert linregress(np.log(lengths), np.log(y)).slope == pytest.approx(found.exponent.value, rel=1e-9)


def test_a_constant_does_not_decay() -> None:
    rng = np.random.default_rng(0)
    lengths = spaced(40)
    assert fitted(lengths, np.full(lengths.size, 0.3), laws=SMOOTH).status == "does_not_decay"
    noisy = fitted(lengths, 0.3 * np.exp(rng.normal(0, 0.1, lengths.size)), laws=SMOOTH)
    assert (noisy.status, noisy.chosen) == ("does_not_decay", "constant")
    whole = fit_decay(record_curve(one_plane("1/1000"), 1000))  # one step: 1 - cos(1/1000)
    assert whole.status == "does_not_decay"


# ---- laws ----


@settings(max_examples=6)
@given(law=st.sampled_from(["power", "exponential", "power_floor"]), a=st.floats(0.1, 10), b=st.floats(0.3, 3))
def test_a_law_finds_itself(law: str, a: float, b: float) -> None:
    """Data of a law without noise are fitted by it to rounding, and it is chosen: no smaller law is as near."""
    lengths = spaced(24, 10, 3000)
    n = lengths.astype(float)
    margins = {
        "power": a * n**-b,
        "exponential": a * np.exp(-b * n / 1000),
        "power_floor": a * n**-b + 0.3 * a * 1000.0**-b,
    }[law]
    found = fitted(lengths, margins, laws=SMOOTH)
    assert (found.status, found.chosen) == ("ok", law)
    assert found.fit(law).largest < 1e-5


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_planes_are_told_by_the_exponent(count: int) -> None:
    """Unless F is given the power -2/F is a case of the power law, and the interval says which F it may be."""
    lengths = spaced(40)
    rng = np.random.default_rng(count)
    margins = 2.0 * lengths ** (-2 / count) * np.exp(rng.normal(0, 0.05, lengths.size))
    found = fitted(lengths, margins, laws=SMOOTH)
    assert found.chosen == "power"
    assert found.planes == (count,)
    assert found.to_dict()["planes_within"] == [count]
    given = fitted(lengths, margins, laws=SMOOTH, planes_used=count)
    assert given.chosen == "planes"
    wrong = fitted(lengths, margins, laws=SMOOTH, planes_used=count + 1)
    assert wrong.chosen == "power"


@pytest.mark.slow
def test_laws_are_told_apart_under_noise() -> None:
    """In 20 draws each with 5 % noise the true law is chosen nearly always."""
    lengths = spaced(60, 10, 3000)
    n = lengths.astype(float)
    truths = {"power": 3 * n**-1.3, "exponential": np.exp(-n / 700), "power_floor": 3 * n**-1.5 + 0.003}
    rng = np.random.default_rng(7)
    for law, margins in truths.items():
        chosen = [fitted(lengths, margins * np.exp(rng.normal(0, 0.05, n.size)), laws=SMOOTH).chosen for _ in range(20)]
        assert chosen.count(law) >= 17, (law, chosen)


@pytest.mark.slow
@settings(max_examples=6)
@given(seed=st.integers(0, 10_000), count=st.integers(5, 24), noise=st.sampled_from([0.05, 0.5]))
def test_any_positive_data_get_a_status(seed: int, count: int, noise: float) -> None:
    """No law ends in an exception or a warning, whatever the margins; none is less likely than a case of it."""
    rng = np.random.default_rng(seed)
    lengths = np.unique(np.rint(np.geomspace(8, 4000, count)).astype(int))
    margins = rng.choice([1.0, 3.0 / np.sqrt(lengths[0])]) * np.exp(rng.normal(0, noise, lengths.size))
    found = fitted(lengths, margins, laws=[*SMOOTH, "retrieval"])
    assert found.status in STATUSES
    fits = {fit.law: fit.mean_square for fit in found.fits}
    for small, large in (("constant", "power"), ("power", "power_floor"), ("constant", "exponential")):
        if small in fits and large in fits:
            assert fits[large] <= fits[small] * (1 + 1e-4)


def test_strong_correlation_leaves_a_choice() -> None:
    """Residuals that hang together make points worth less, never nothing."""
    lengths = spaced(33)
    found = fitted(lengths, np.exp(-0.2 * np.log(lengths) ** 1.6), laws=SMOOTH)
    assert found.chosen is not None
    assert found.status == "ok"


@pytest.mark.slow
def test_additive_noise_is_fitted_as_such() -> None:
    """With sd given, exponents of 3/n with constant noise are right on average and covered; of logarithms not."""
    lengths = spaced(30, 8, 300)
    truth = 3.0 / lengths
    rng = np.random.default_rng(11)
    covered, values = 0, []
    for _ in range(60):
        margins = truth + rng.normal(0, 0.005, lengths.size)
        data = decay_data(lengths.tolist(), margins, sd=np.full(lengths.size, 0.005))
        exponent = fit_decay(data, laws=["power"]).exponent
        assert exponent is not None
        covered += exponent.low <= -1 <= exponent.high
        values.append(exponent.value)
    assert np.mean(values) == pytest.approx(-1, abs=0.015)
    assert covered >= 0.87 * 60


def test_predictions_are_the_law() -> None:
    lengths = spaced(30)
    found = fitted(lengths, 3.0 / lengths, laws=["power"])
    assert found.best is found.fit("power")
    assert found.predict([5, 10**7])[:, 0] == pytest.approx([3 / 5, 3e-7], rel=1e-8)
    with pytest.raises(InvalidInputError, match="read from a file"):
        DecayFit.from_dict(found.to_dict()).predict([5])


def test_four_points_tell_nothing_apart() -> None:
    found = fitted([8, 16, 32, 64], [0.25, 0.125, 0.0625, 0.03125], laws=SMOOTH)
    assert found.status == "too_few_steps"
    assert "too few to tell" in found.reason


def test_a_found_staircase_is_chosen_where_it_meets_every_digit() -> None:
    found = fit_decay(record_curve(one_plane(PLANE), 10**6), first=10)
    assert found.chosen == "staircase"
    assert found.fit("staircase").parameters["angle"].value == pytest.approx(10000 ** (-2 / 128), rel=1e-12)


def test_the_retrieval_law_is_its_formula() -> None:
    """The product of sines against the minimum of differences of cosines, MATH's own form."""
    lengths = np.arange(5, 60)
    omega, theta = 1.1, 0.004
    direct = np.minimum(
        np.cos((lengths - 2) * theta) - np.cos(omega - (lengths - 1) * theta),
        np.cos((lengths - 1) * theta) - np.cos(omega - (lengths - 2) * theta),
    )
    found = fitted(lengths, direct, laws=["retrieval"], unit_weight=True).fit("retrieval")
    assert found.largest < 1e-12
    assert found.parameters["omega"].value == pytest.approx(omega, rel=1e-9)


def test_a_known_number_of_planes_is_not_fitted() -> None:
    lengths = spaced(30)
    found = fitted(lengths, lengths**-0.9, laws=["planes", "power"], planes_used=4)
    assert found.fit("planes").fixed == {"F": "4"}
    assert found.fit("planes").counted == found.fit("power").counted - 1


def test_standard_deviations_are_those_of_the_margins() -> None:
    """Against scipy's weighted fit of the margins themselves; and a point of huge sd does not count."""
    rng = np.random.default_rng(5)
    lengths = spaced(15)
    sd = 2.0 / lengths * rng.uniform(0.01, 0.3, lengths.size)
    margins = 2.0 / lengths + sd * rng.normal(size=lengths.size)
    found = fit_decay(decay_data(lengths.tolist(), margins, sd=sd), laws=["power"])
    (c, exponent), covariance = curve_fit(lambda n, c, p: c * n**p, lengths.astype(float), margins, (2, -1), sd)
    assert found.exponent is not None
    assert found.exponent.value == pytest.approx(exponent, rel=1e-5)
    assert found.fit("power").parameters["C"].value == pytest.approx(c, rel=1e-5)
    half = student.ppf(0.975, lengths.size - 2) * np.sqrt(covariance[1, 1])
    assert found.exponent.high - exponent == pytest.approx(half, rel=1e-3)
    assert 0.3 < found.fit("power").scale < 3
    spoiled = margins.copy()
    spoiled[3] *= 1e3
    far = fit_decay(decay_data(lengths.tolist(), spoiled, sd=np.where(lengths == lengths[3], 1e9, sd)), laws=["power"])
    rest = np.arange(lengths.size) != 3
    without = fit_decay(decay_data(lengths[rest].tolist(), margins[rest], sd=sd[rest]), laws=["power"])
    assert far.exponent is not None
    assert without.exponent is not None
    assert far.exponent.value == pytest.approx(without.exponent.value, rel=1e-6)


@settings(max_examples=5)
@given(factor=st.floats(1e-6, 1e6))
def test_a_factor_changes_the_level_only(factor: float) -> None:
    rng = np.random.default_rng(1)
    lengths = spaced(25)
    margins = lengths**-1.5 * np.exp(rng.normal(0, 0.2, lengths.size))
    one, two = (fitted(lengths, margins * f, laws=["power", "constant"]) for f in (1.0, factor))
    assert one.exponent is not None
    assert two.exponent is not None
    for name in ("value", "low", "high"):
        assert getattr(two.exponent, name) == pytest.approx(getattr(one.exponent, name), abs=1e-6)
    assert two.fit("power").parameters["C"].value == pytest.approx(
        factor * one.fit("power").parameters["C"].value, rel=1e-6
    )


def test_few_points_say_student() -> None:
    lengths = spaced(12)
    rng = np.random.default_rng(0)
    found = fitted(lengths, lengths**-1.0 * np.exp(rng.normal(0, 0.1, lengths.size)), laws=["power"])
    expected = linregress(np.log(lengths), found.data.log_margin)
    assert found.exponent is not None
    assert found.exponent.kind == STUDENT
    assert found.exponent.high - found.exponent.value == pytest.approx(2.2281388519649385 * expected.stderr, rel=1e-6)


# ---- data ----


def test_the_envelope_is_the_last_length_of_each_step() -> None:
    lengths = [2, 3, 4, 5, 9, 10]
    data = decay_data(lengths, [3.0, 3.0, 2.0, 1.5, 1.5, 1.0])
    ends = envelope(data)
    assert ends.lengths == (3, 4, 9)
    assert ends.margin.tolist() == [3.0, 2.0, 1.5]
    assert ends.ends_known
    assert not envelope(decay_data([2, 3, 7, 9], [3.0, 3.0, 2.0, 1.0])).ends_known
    smooth = decay_data(lengths, [6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    assert envelope(smooth) is smooth


@settings(max_examples=12)
@given(turn=st.floats(0.01, 0.49), offset=st.integers(0, 5))
def test_records_and_every_length_have_one_envelope(turn: float, offset: int) -> None:
    profile = one_plane(f"{turn!r}", offset)
    last = 120
    every = curve_data(margin_curve(profile, range(max(2, offset + 1), last + 1)))
    whole = curve_data(record_curve(profile, last))
    one, two = envelope(every), envelope(whole)
    if len(whole.lengths) > 1:
        assert two.lengths == one.lengths
        assert two.margin.tolist() == one.margin.tolist()
        assert two.begins is False


def test_margins_below_the_range_of_doubles_keep_their_logarithm() -> None:
    data = decay_data([10, 100], [Decimal("2e-4000"), 1e-3])
    assert data.log_margin[0] == pytest.approx(math.log(2) - 4000 * math.log(10), rel=1e-14)
    curve = curve_data(margin_curve(one_plane("1"), [10**6, 10**400, 10**401, 10**402]))
    assert curve.log_margin[1] == pytest.approx(-2 * 400 * math.log(10), rel=0.01)
    exponent = fit_decay(curve, laws=["power"]).exponent
    assert exponent is not None
    assert exponent.value == pytest.approx(-2, abs=0.02)


# ---- statuses ----


def test_every_status_is_reached() -> None:
    lengths = spaced(30)
    falling = 5.0 / lengths**2
    rng = np.random.default_rng(0)
    far = 10**300
    seen = {
        "ok": fitted(lengths, falling, laws=SMOOTH),
        "does_not_decay": fitted(lengths, np.full(lengths.size, 2.0), laws=SMOOTH),
        "changes_sign": fitted(lengths, falling - 1e-8, laws=SMOOTH),
        "too_few_steps": fit_decay(record_curve(one_plane("1"), 20)),
        "degenerate": fit_decay(decay_data([far, far + 1, far + 2, far + 3], rng.uniform(1, 2, 4))),
        "window_outside_precision": fit_decay(
            decay_data(lengths.tolist(), falling, abs_error=np.full(lengths.size, 1.0)), laws=SMOOTH
        ),
    }
    assert set(seen) == set(STATUSES)
    for status, fit in seen.items():
        assert fit.status == status, fit.reason
        assert fit.reason
        assert fit.to_dict()["status"] == status


def test_margins_of_0_or_below_are_data() -> None:
    """The first length is named; what lies before is fitted; nothing is lost silently."""
    lengths = spaced(30)
    margins = 5.0 / lengths
    margins[20] = 0.0
    margins[25] = -1.0
    found = fitted(lengths, margins, laws=SMOOTH)
    assert found.status == "changes_sign"
    assert found.first_nonpositive == lengths[20]
    assert found.points_used == 20
    assert found.lengths == (lengths[0], lengths[19])
    assert found.exponent is not None
    assert found.exponent.value == pytest.approx(-1, abs=1e-9)
    early = fitted(lengths, np.where(np.arange(lengths.size) < 2, 1.0 / lengths, -1.0))
    assert (early.status, early.chosen, early.points_used) == ("changes_sign", None, 2)


def test_a_rising_margin_does_not_decay() -> None:
    lengths = spaced(30)
    assert fitted(lengths, lengths**0.5, laws=SMOOTH).status == "does_not_decay"


def test_unresolved_margins_are_left_out_and_counted() -> None:
    lengths = spaced(30)
    margins = 5.0 / lengths**2
    found = fit_decay(decay_data(lengths.tolist(), margins, abs_error=np.full(lengths.size, 1e-8)), laws=SMOOTH)
    lost = int((margins < 2e-8).sum())
    assert dict(found.left_out) == {"unresolved": lost}
    assert found.points_used == lengths.size - lost


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"laws": ["cubic"]}, "law 'cubic' is unknown"),
        ({"planes_used": 0}, "planes_used 0"),
        ({"first": 10**7}, "0 points from 10000000"),
        ({"last": 11}, "a fit needs at least 4"),
    ],
)
def test_what_cannot_be_fitted_is_refused(options: dict[str, Any], words: str) -> None:
    lengths = spaced(30)
    with pytest.raises(InvalidInputError, match=words):
        fitted(lengths, 1.0 / lengths, **options)


@pytest.mark.parametrize(
    ("lengths", "margins", "options", "words"),
    [
        ([1, 2, 3], [1.0, 2.0], {}, "3 lengths, but 2 margins"),
        ([1, 3, 2, 4], [1.0] * 4, {}, "row 3: length 2 comes after 3"),
        ([1, 2, 2, 4], [1.0] * 4, {}, "row 3: length 2 is there twice"),
        ([0, 1, 2, 4], [1.0] * 4, {}, "row 1: length 0 must be at least 1"),
        ([1, 2, 3, 4], [1.0, 1.0, math.nan, 1.0], {}, r"row 3 \(length 3\): margin is nan"),
        ([1, 2, 3, 4], [1.0, math.inf, 1.0, 1.0], {}, r"row 2 \(length 2\): margin is inf"),
        ([1, 2, 3, 4], [1.0] * 4, {"sd": [1.0, 0.0, 1.0, 1.0]}, r"row 2 \(length 2\): sd is 0"),
        ([1, 2, 3, 4], [1.0] * 4, {"sd": [1.0]}, "4 lengths, but 1 sd"),
        ([1, 2, 3, 4], [1.0] * 4, {"abs_error": [1.0, -1.0, 1.0, 1.0]}, "abs_error is -1"),
    ],
)
def test_wrong_data_are_refused_by_row(lengths: Any, margins: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        decay_data(lengths, margins, **options)


@pytest.mark.slow
def test_all_laws_run_on_any_falling_data() -> None:
    """Every law is either fitted or says why not."""
    lengths = spaced(12, 10, 10**5)
    found = fitted(lengths, 3.0 / lengths**1.2)
    assert {fit.law for fit in found.fits} | {name for name, _ in found.not_fitted} == set(LAWS)
    assert sum(found.weights.values()) == pytest.approx(1)
    with pytest.raises(InvalidInputError, match="was not fitted"):
        fitted(lengths, 3.0 / lengths**1.2, laws=["power"]).fit("constant")


# ---- comparison ----


def test_theory_and_its_own_noise_agree_at_the_stated_rate() -> None:
    """The test rejects about 5 % of the time when the data are the theory with noise: at most 10 % of 200 draws."""
    lengths = spaced(40)
    truth = 3.0 / lengths**2
    rng = np.random.default_rng(3)
    theory = decay_data(lengths.tolist(), truth)
    rejected = 0
    for _ in range(200):
        data = decay_data(lengths.tolist(), truth * np.exp(rng.normal(0, 0.2, lengths.size)))
        rejected += compare_decay(data, theory).verdict != "no_trend"
    assert 2 <= rejected <= 20


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (lambda n: np.full(n.size, 1.5), "differs_by_factor"),
        (lambda n: (n / 1000) ** 0.3, "differs"),
        (lambda n: np.where(n > 10**5, -1.0, 1.0), "opposite_signs"),
    ],
)
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_departure_is_found_and_named(change: Any, verdict: str, noise: float) -> None:
    lengths = spaced(40)
    truth = 3.0 / lengths**2
    seen = truth * change(lengths) * np.exp(np.random.default_rng(1).normal(0, noise, lengths.size))
    found = compare_decay(decay_data(lengths.tolist(), seen), decay_data(lengths.tolist(), truth))
    assert found.verdict == verdict
    assert found.to_dict()["verdict"] == verdict
    if verdict == "differs_by_factor":
        assert found.factor.value == pytest.approx(1.5, rel=0.05)
        assert found.largest == pytest.approx(1.5, rel=0.3)
    if verdict == "opposite_signs":
        assert found.opposite == tuple(lengths[lengths > 10**5].tolist())


def test_standard_deviations_tell_noise_from_a_departure() -> None:
    """An oscillation beside the theory leaves no trend: it is found only where the noise is known."""
    lengths = spaced(40)
    truth = 3.0 / lengths**2
    rng = np.random.default_rng(2)
    wave = np.exp(0.7 * np.sin(3 * np.log(lengths)))
    theory = decay_data(lengths.tolist(), truth)
    noise = 1 + rng.normal(0, 0.05, lengths.size)
    assert compare_decay(decay_data(lengths.tolist(), truth * wave * noise), theory).verdict == "no_trend"
    sd = 0.05 * truth
    assert compare_decay(decay_data(lengths.tolist(), truth * wave * noise, sd=sd), theory).verdict == "differs"
    same = compare_decay(decay_data(lengths.tolist(), truth * noise, sd=sd), theory)
    assert same.verdict == "agrees"
    assert 0.05 < same.p_scatter <= 1


def test_exact_curves_are_identical_or_not() -> None:
    profile = one_plane(PLANE)
    lengths = spaced(40).tolist()
    one = curve_data(margin_curve(profile, lengths))
    assert compare_decay(one, curve_data(margin_curve(profile, lengths))).verdict == "identical"
    assert compare_decay(one, curve_data(margin_curve(one_plane(GOLDEN), lengths))).verdict == "differs"
    with pytest.raises(InvalidInputError, match="same lengths"):
        compare_decay(one, one.between(20, None))

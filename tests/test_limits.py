"""Limits against their definitions: brute force in mpmath, the tables of docs/MATHEMATICS.md, section 8, and faults."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import oracles
import pytest
from checks import one_plane
from hypothesis import given, settings
from hypothesis import strategies as st

from ropegeo.construct.built import BuiltHead
from ropegeo.construct.index import index_head, token_index_head
from ropegeo.construct.reflexive import reflexive_head
from ropegeo.construct.retrieval import retrieval_head
from ropegeo.engine.softmax import retrieval_log_sum, softmax_scale
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import balls
from ropegeo.heads import LetterProfile, LogitProfile
from ropegeo.limits import argmax, gaps, softmax
from ropegeo.limits.argmax import argmax_limit
from ropegeo.limits.arithmetic import Arithmetic
from ropegeo.limits.emulated_head import EmulatedHead
from ropegeo.limits.formats import CAUSES, FormatLimit, check_emulated, format_limit, read_formats
from ropegeo.limits.gaps import sum_ball
from ropegeo.limits.head_limit import head_limit
from ropegeo.limits.letters import letter_argmax_limit, letter_softmax_length, letter_softmax_scale
from ropegeo.limits.rules import IndexQuery, Rule, index_queries
from ropegeo.limits.scale_search import find_scale
from ropegeo.limits.softmax import Demand, head_softmax_scale, softmax_length, softmax_lengths
from ropegeo.spectrum import RopeSpectrum

PLANE_1 = "10000^(-2/128)"
PAPER = RopeSpectrum.from_base(10000, head_dim=128)
TWO_PLANES = RopeSpectrum.from_base(10000, head_dim=4)
BETAS = [10.0, 1e2, 1e3, 1e4, 1e5, 1e6]
# docs/MATHEMATICS.md, section 8, theta = 10000^(-2/128): offset, threshold, n_max at each beta (None: no length).
TABLE: list[tuple[int, int, list[int | None]]] = [
    (0, 1, [14, 29, 58, 312, 1589, 3178]),
    (3, 1, [17, 32, 61, 315, 1592, 3181]),
    (16, 1, [None, 45, 74, 328, 1605, 3194]),
    (0, 3, [29, 87, 312, 936, 3178, 6356]),
]
MAJORITY = Rule()


def phased(coefficients: Sequence[complex], offset: int = 0, spectrum: RopeSpectrum = TWO_PLANES) -> LogitProfile:
    return LogitProfile(spectrum=spectrum, coefficients=np.array(coefficients, complex), origin=offset)


def mp_logit(coefficients: Sequence[complex], t: int) -> Any:
    """Re sum_k c_k exp(i t theta_k), for base 1e4 and head_dim 4."""
    thetas = [oracles.rope_angle(10000, k, 4)() for k in range(len(coefficients))]
    return mpmath.fsum(
        mpmath.mpf(c.real) * mpmath.cos(t * theta) - mpmath.mpf(c.imag) * mpmath.sin(t * theta)
        for c, theta in zip(coefficients, thetas, strict=True)
    )


def mp_sums(coefficients: Sequence[complex], beta: float, offset: int, longest: int) -> list[Any]:
    """S(n) for n = offset+1 .. longest, by its definition."""
    weight = mpmath.fsum(mpmath.sqrt(mpmath.mpf(c.real) ** 2 + mpmath.mpf(c.imag) ** 2) for c in coefficients)
    top = mp_logit(coefficients, 0)
    terms = {
        t: mpmath.exp(-mpmath.mpf(beta) * (top - mp_logit(coefficients, t)) / weight)
        for t in range(-offset, longest - offset)
        if t
    }
    return [
        mpmath.fsum(terms[t] for t in range(-offset, n - offset) if t) for n in range(offset + 1, longest + 1)
    ]  # fmt: skip


# ---- softmax: how far a scale reaches ----


def check_table(offset: int, threshold: int, lengths: list[int | None]) -> None:
    profile = one_plane(PLANE_1, offset)
    found = softmax_lengths(profile, BETAS, demands=[Demand(offset=offset, threshold=Fraction(threshold))])
    assert [each.last_length for each in found] == lengths
    assert all(each.is_certain for each in found)
    for each, beta in zip(found, BETAS, strict=True):
        assert softmax_length(profile, beta, threshold=threshold) == each


@pytest.mark.parametrize(("offset", "threshold", "lengths"), TABLE)
def test_table_of_section_8(offset: int, threshold: int, lengths: list[int | None]) -> None:
    check_table(offset, threshold, lengths)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("a displacement left out", lambda at, low, high: at(low + 1, high + 1)),
        ("gaps of half the size", lambda at, low, high: at(low, high) / 2),
        ("the target among its rivals", lambda at, low, high: np.append(0.0, at(low, high - 1))),
    ],
)
def test_the_table_catches_faults(name: str, fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = gaps.Gaps.at
    monkeypatch.setattr(gaps.Gaps, "at", lambda self, low, high: fault(lambda a, b: right(self, a, b), low, high))
    with pytest.raises(AssertionError):
        check_tables()


def check_tables() -> None:
    for row in TABLE:
        check_table(*row)


COEFFICIENTS = st.lists(
    st.complex_numbers(max_magnitude=1, allow_nan=False).filter(lambda z: abs(z) > 0.05), min_size=2, max_size=2
)


@given(
    COEFFICIENTS,
    st.floats(0.3, 60),
    st.integers(0, 12),
    st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(3), Fraction(1, 9)]),
)
@settings(max_examples=12)
def test_softmax_length_is_where_the_sum_crosses(
    coefficients: list[complex], beta: float, offset: int, threshold: Fraction
) -> None:
    """Two planes, any phases; n_max is the last length whose sum is below the threshold."""
    longest = 50
    found = softmax_length(phased(coefficients, offset), beta, threshold=threshold, max_length=longest)
    with mpmath.workdps(40):
        level = oracles.mp_fraction(threshold)
        sums = mp_sums(coefficients, beta, offset, longest)
        below = [n for n, total in enumerate(sums, start=offset + 1) if total < level]
    first = offset + 1 + len(below)
    assert below == list(range(offset + 1, first))  # never right again
    assert found.first_failing_length == (first if first <= longest else None)
    assert found.last_length == (below[-1] if below else None)
    assert found.is_certain


@pytest.mark.parametrize("sign", [-1, 1])
def test_what_rounding_leaves_open_is_decided_in_balls(sign: int) -> None:
    """A threshold 1e-25 beside the sum of length 30: no double tells them apart."""
    coefficients, beta, offset, n = [0.7 + 0.1j, 0.2 - 0.1j], 20.0, 2, 30
    with mpmath.workdps(60):
        total = mp_sums(coefficients, beta, offset, n)[-1]
        numerator = int(mpmath.nint(total * mpmath.mpf(10) ** 40)) + sign * 10**15
    found = softmax_length(phased(coefficients, offset), beta, threshold=Fraction(numerator, 10**40))
    assert found.is_certain
    assert found.first_failing_length == (n if sign < 0 else n + 1)


def test_what_balls_cannot_afford_is_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    coefficients, beta, n = [0.7 + 0.1j, 0.2 - 0.1j], 20.0, 30
    with mpmath.workdps(30):
        threshold = Fraction(str(mp_sums(coefficients, beta, 0, n)[-1]))
    monkeypatch.setattr(softmax, "MAX_BALLS", 1)
    found = softmax_length(phased(coefficients), beta, threshold=threshold)
    assert not found.is_certain
    assert found.first_failing_length is not None
    assert found.at_most is not None
    assert n - 4 < found.first_failing_length <= n <= found.at_most < n + 4


def test_a_sum_in_balls_holds_the_sum() -> None:
    coefficients, beta = [0.3 - 0.4j, 0.5 + 0j], 7.25
    with mpmath.workdps(60):
        total = mp_sums(coefficients, beta, 4, 20)[-1]
        low, high = (oracles.mp_fraction(end) for end in balls.rational_ends(
            sum_ball(phased(coefficients), beta, -4, 15)
        ))  # fmt: skip
        assert low <= total <= high
        assert high - low < mpmath.mpf(10) ** -40


@given(COEFFICIENTS, st.floats(1, 60), st.sets(st.integers(1, 9), min_size=1, max_size=4))
@settings(max_examples=10)
def test_a_head_fails_where_its_first_query_does(coefficients: list[complex], beta: float, integers: set[int]) -> None:
    demands = [Demand(offset=0, threshold=Fraction(3)), *(Demand(offset=i, threshold=Fraction(1)) for i in integers)]
    (found,) = softmax_lengths(phased(coefficients), [beta], demands=demands, max_length=200)
    each = [
        softmax_length(phased(coefficients, d.offset), beta, threshold=d.threshold, max_length=200) for d in demands
    ]
    failing = [one.first_failing_length for one in each if one.first_failing_length is not None]
    assert found.first_failing_length == min(failing, default=None)
    if failing:
        assert found.offset in {one.offset for one in each if one.first_failing_length == min(failing)}


@pytest.mark.slow
def test_long_searches_sweep_and_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrix products instead of sines, and chunks; the same lengths."""
    profile, demands = phased([0.6 + 0.05j, 0.3 - 0.02j], 3), [Demand(offset=3, threshold=Fraction(1))]
    betas = [5.0, 50.0, 5e3, 5e5]
    plain = softmax_lengths(profile, betas, demands=demands, max_length=20_000)
    monkeypatch.setattr(gaps, "DEFINED_AT_ONCE", 0)
    assert softmax_lengths(profile, betas, demands=demands, max_length=20_000) == plain
    assert len({each.first_failing_length for each in plain}) == 3


@pytest.mark.parametrize(("offset", "threshold", "lengths"), TABLE)
def test_the_least_scale_is_the_inverse(offset: int, threshold: int, lengths: list[int | None]) -> None:
    profile, demands = one_plane(PLANE_1, offset), [Demand(offset=offset, threshold=Fraction(threshold))]
    for beta, n in zip(BETAS, lengths, strict=True):
        first = offset + 1 if n is None else n
        if n is not None:
            assert head_softmax_scale(profile, n, demands=demands) < beta
            assert softmax_scale(profile, n, threshold=threshold) < beta
        assert head_softmax_scale(profile, first + (n is not None), demands=demands) > beta


@given(COEFFICIENTS, st.integers(0, 6), st.integers(2, 20))
@settings(max_examples=12)
def test_the_least_scale_with_phases_is_the_root(coefficients: list[complex], offset: int, more: int) -> None:
    """Both routes to it, against the sum in mpmath a little below and above; none where the argmax fails."""
    n = offset + more
    with mpmath.workdps(30):
        top = mp_logit(coefficients, 0)
        smallest = min(top - mp_logit(coefficients, t) for t in range(-offset, n - offset) if t)
    profile, demand = phased(coefficients, offset), Demand(offset=offset, threshold=Fraction(1))
    if smallest < 1e-3:
        if smallest < 0:
            with pytest.raises(InvalidInputError, match="and no scale resolves that"):
                softmax_scale(profile, n, threshold=1.0)
            with pytest.raises(InvalidInputError, match="the argmax fails from length"):
                head_softmax_scale(profile, n, demands=[demand])
        return
    scale = softmax_scale(profile, n, threshold=1.0)
    assert abs(head_softmax_scale(profile, n, demands=[demand]) - scale) <= 1e-9 * scale
    if scale == 0:
        assert n - 1 <= 1
        return
    with mpmath.workdps(30):
        assert mp_sums(coefficients, scale * (1 - 1e-8), offset, n)[-1] > 1
        assert mp_sums(coefficients, scale * (1 + 1e-8), offset, n)[-1] < 1


# ---- argmax ----


def mp_first_failing(coefficients: Sequence[complex], offsets: Sequence[int], longest: int) -> int | None:
    with mpmath.workdps(40):
        top = mp_logit(coefficients, 0)
        wins = {t: mp_logit(coefficients, t) >= top for t in range(-max(offsets), longest) if t}
    for n in range(1, longest + 1):
        if any(wins[t] for s in offsets if s < n for t in range(-s, n - s) if t):
            return n
    return None


@given(COEFFICIENTS, st.sets(st.integers(0, 15), min_size=1, max_size=3), st.booleans())
@settings(max_examples=12)
def test_argmax_limit_is_the_first_length_that_fails(
    coefficients: list[complex], offsets: set[int], plain: bool
) -> None:
    if plain:  # phases of a few hundredths, so that the head is right for a while
        coefficients = [abs(c) * np.exp(1j * c.imag / 20) for c in coefficients]
    found = argmax_limit(phased(coefficients), offsets=sorted(offsets), max_length=60)
    assert found.first_failing_length == mp_first_failing(coefficients, sorted(offsets), 60)
    assert found.searched == 60 or found.searched is None


def test_far_rivals_are_found_by_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    coefficients = [0.5 * np.exp(0.02j), 0.5 * np.exp(-0.015j)]
    plain = argmax_limit(phased(coefficients, 2), max_length=100_000)
    monkeypatch.setattr(argmax, "DEFINED_AT_ONCE", 0)
    monkeypatch.setattr(argmax, "_FIRST_CHUNK", 64)
    assert argmax_limit(phased(coefficients, 2), max_length=100_000) == plain
    assert plain.first_failing_length is not None
    assert plain.rival is not None
    assert plain.first_failing_length == 3 + plain.rival > 64 + 3
    with mpmath.workdps(40):
        top = mp_logit(coefficients, 0)
        assert mp_logit(coefficients, plain.rival) >= top
        assert all(mp_logit(coefficients, t) < top for t in range(1, plain.rival))


def test_one_plane_with_a_phase_is_exact_at_any_length() -> None:
    """|t theta + phi| <= |phi| modulo 2 pi for the first time: 710 for theta = 1 and phi = -1e-4; far for 1e-12."""
    spectrum = RopeSpectrum.from_angle("1")
    found = argmax_limit(phased([np.exp(-1e-4j)], 2, spectrum))
    assert (found.first_failing_length, found.rival, found.outcome, found.searched) == (713, 710, "wrong", None)
    far = argmax_limit(phased([np.exp(1e-12j)], 0, spectrum))
    assert far.rival is not None
    with mpmath.workdps(60):
        phi = mpmath.arg(mpmath.mpc(np.exp(1e-12j)))
        turned = mpmath.fmod(far.rival + phi, 2 * mpmath.pi)
        assert min(turned, 2 * mpmath.pi - turned) <= phi
        assert far.rival > 10**11


@pytest.mark.parametrize(
    ("angle", "offsets", "first"),
    [("2*pi/5", [0], 6), ("2*pi/5", [3], 9), ("2*pi/5", [7], 8), ("2*pi/5", [0, 7], 6), ("1", [3], None)],
)
def test_ties_without_phases(angle: str, offsets: list[int], first: int | None) -> None:
    found = argmax_limit(one_plane(angle), offsets=offsets)
    assert (found.first_failing_length, found.searched) == (first, None)
    assert found.outcome == ("none" if first is None else "tie")


def test_a_tie_of_two_planes_with_phases() -> None:
    """Turns of 1/6 and 1/10 are whole together after 30, unless a phase wins before."""
    spectrum = RopeSpectrum(angles=tuple(RopeSpectrum.from_angle(f"2*pi/{q}").angles[0] for q in (6, 10)), head_dim=4)
    found = argmax_limit(phased([0.5 * np.exp(0.01j), 0.5 * np.exp(-0.017j)], 0, spectrum), max_length=1000)
    assert (found.first_failing_length, found.outcome, found.searched) == (31, "tie", None)


# ---- letters ----


def all_rivals_sum(letters: int, theta: float, n: int, beta: float) -> float:
    """Largest sum over answers D of the strongest rival at every other distance, by definition."""

    def rival(d: int) -> float:
        return max(math.cos(2 * math.pi * shift / letters + d * theta) for shift in range(1, letters))

    return max(
        math.fsum(math.exp(beta * (rival(d) - math.cos(answer * theta))) for d in range(n) if d != answer)
        for answer in range(n)
    )


@pytest.mark.parametrize("weight", [Fraction(1, 2), Fraction(9, 10)])
def test_letters_with_a_weight(weight: Fraction) -> None:
    letters, theta, beta = 5, 0.01, 30.0
    profile = LetterProfile(spectrum=RopeSpectrum.from_angle("0.01"), weights=np.ones(1), letters=letters)
    found = letter_softmax_length(profile, beta, weight=weight, max_length=200)
    limit = float((1 - weight) / weight)
    assert found.last_length is not None
    assert all_rivals_sum(letters, theta, found.last_length, beta) < limit
    assert all_rivals_sum(letters, theta, found.last_length + 1, beta) >= limit
    scale = letter_softmax_scale(profile, found.last_length, weight=weight)
    assert all_rivals_sum(letters, theta, found.last_length, scale) == pytest.approx(limit, rel=1e-9)
    assert scale < beta < letter_softmax_scale(profile, found.last_length + 1, weight=weight)


def test_letters_that_decode() -> None:
    """The read-out's rule, against the scale at the length and the one after; queries that look for themselves."""
    profile = LetterProfile(spectrum=RopeSpectrum.from_angle("0.01"), weights=np.ones(1), letters=5)
    found = letter_softmax_length(profile, 30.0)
    assert found.last_length is not None
    assert letter_softmax_scale(profile, found.last_length) < 30 < letter_softmax_scale(profile, found.last_length + 1)
    own = LetterProfile(spectrum=profile.spectrum, weights=np.ones(1), letters=5, self_only=True)
    log_sum = max(
        np.log(sum(np.exp(30 * (np.cos(2 * np.pi * shift / 5 + 0.01 * d) - 1)) for d in range(1, 40)))
        for shift in range(1, 5)
    )
    assert retrieval_log_sum(own, 40, 30.0) == pytest.approx(log_sum, abs=1e-9)


def test_letters_fail_where_the_worst_case_does() -> None:
    """Section 6: 8 letters, theta = 0.0027, last length 146; two planes by bisection, of the same angle as one."""
    one = LetterProfile(spectrum=RopeSpectrum.from_angle("0.0027"), weights=np.ones(1), letters=8)
    found = letter_argmax_limit(one)
    assert (found.first_failing_length, found.searched, found.outcome) == (147, None, "wrong")
    angles = RopeSpectrum.from_angle("0.0027").angles
    two = LetterProfile(
        spectrum=RopeSpectrum(angles=(*angles, *angles), head_dim=4), weights=np.full(2, 0.5), letters=8
    )
    assert letter_argmax_limit(two, max_length=1000).first_failing_length == 147
    assert letter_argmax_limit(two, max_length=146).first_failing_length is None


# ---- formats ----


def emulated(built: BuiltHead, text: str = "bfloat16", *, max_length: int = 200, **options: Any) -> FormatLimit:
    logits = options.pop("logits", "fused")
    (arithmetic,) = read_formats(text, logits=logits)
    return format_limit(EmulatedHead.of(built, rule=MAJORITY, **options), arithmetic, max_length=max_length)


# docs/MATHEMATICS.md, section 8, offset 3: plane, then float16 and bfloat16 fused, and both eager.
SECTION_8 = [(0, [51, 50, 48, 48]), (1, [34, 35, 33, 33]), (5, [134, 18, 133, 17])]


@pytest.mark.parametrize(("plane", "lengths"), SECTION_8)
def test_formats_of_section_8(plane: int, lengths: list[int]) -> None:
    built = index_head(PAPER, offset=3, planes=(plane,))
    found = [
        emulated(built, number_format, logits=logits).first_wrong_length
        for logits in ("fused", "eager")
        for number_format in ("float16", "bfloat16")
    ]
    assert found == lengths


def test_float32_spreads_where_exact_arithmetic_does() -> None:
    """Far from any rounding: the n_max of section 8, theta = 10000^(-2/128): queries of offset 3 and 16, a letter."""
    built = token_index_head(PAPER, planes=(1,), letters="ab", integers=range(1, 17))
    for offset, kind, beta in ((3, "integer", 100.0), (0, "letter", 100.0), (16, "integer", 1000.0)):
        exact = softmax_length(one_plane(PLANE_1, offset), beta, threshold=MAJORITY.threshold(kind))  # type: ignore[arg-type]
        found = emulated(built, "float32", offset=offset, beta=beta)
        assert (found.first_light_length, found.cause) == (exact.first_failing_length, "dispersion")
        assert found.first_failing_length == found.first_light_length


def test_a_head_in_a_format_fails_with_its_first_query() -> None:
    built = token_index_head(PAPER, planes=(1,), letters="ab", integers=range(1, 9))
    found = emulated(built, beta=50.0)
    each = [emulated(built, beta=50.0, offset=offset) for offset in range(9)]
    assert found.first_failing_length == min(one.first_failing_length or 10**9 for one in each)


def cause_of(name: str) -> FormatLimit:
    slow = index_head(RopeSpectrum.from_angle("0.01"), offset=0)
    return {
        "rounding": lambda: emulated(slow, logits="eager"),
        "near return": lambda: emulated(index_head(PAPER, offset=3)),
        "tie": lambda: emulated(index_head(RopeSpectrum.from_angle("pi/2"), offset=1), "float32"),
        "dispersion": lambda: emulated(index_head(PAPER, offset=3), beta=100.0),
        "overflow": lambda: emulated(index_head(PAPER, offset=3), "float16", beta=1e9, vectors="head"),
        "window": lambda: emulated(index_head(PAPER, offset=3), window=3),
    }[name]()


@pytest.mark.parametrize("name", CAUSES)
def test_every_cause_occurs(name: str) -> None:
    found = cause_of(name)
    assert found.cause == name
    assert found.first_failing_length is not None
    assert found.note
    assert json.loads(json.dumps(found.to_dict()))["cause"] == name


def test_vectors_of_the_head_and_of_length_1() -> None:
    """|q| |k| scale is beta either way; directions and phases are kept, the attention factor is divided out."""
    spectrum = RopeSpectrum(angles=PAPER.angles, head_dim=128, layout="half", attention_factor=1.5)
    built = index_head(
        spectrum, offset=3, planes=(0, 5), weights=(0.3, 0.7), directions=(1j, 1), phases=(0.5, -1), beta=7
    )
    for vectors in ("unit", "head"):
        head = EmulatedHead.of(built, rule=MAJORITY, beta=7.0, vectors=vectors)
        key, query = (spectrum.to_planes(vector) for vector in (head.key(), head.query(3)))
        products = head.scale * 1.5**2 * query * np.conj(key) * np.exp(3j * spectrum.phases(np.array(1)))
        assert np.abs(products[[0, 5]] - 7 * np.array([0.3, 0.7]) * np.exp([0.5j, -1j])).max() < 1e-13
        assert head.unit == pytest.approx(7 * head.argmax_scale / head.scale, rel=1e-15)
    with pytest.raises(InvalidInputError, match="vectors 'own' are unknown; use unit or head"):
        EmulatedHead.of(built, rule=MAJORITY, vectors="own")


@pytest.mark.parametrize("centre", [None, 40])
def test_letters_in_a_format(centre: int | None) -> None:
    """Float32 fails where exact arithmetic does, to a length; in a window of 20 answers are hidden from 21 on."""
    built = retrieval_head(RopeSpectrum.from_angle("0.01"), letters="abcdefgh", integers=(1,), centre_length=centre)
    assert isinstance(built.profile, LetterProfile)
    exact = letter_argmax_limit(built.profile).first_failing_length
    found = emulated(built, "float32", max_length=120)
    assert exact is not None
    assert found.first_wrong_length == exact
    assert found.query_letters == tuple(range(8))
    assert (found.cause, found.outcome) == ("near return", "wrong")
    hidden = emulated(built, "float32", max_length=120, window=20)
    assert (hidden.first_wrong_length, hidden.cause) == (21, "window")


def test_a_scale_is_found_and_is_right() -> None:
    """Equal weights on 21 planes in bfloat16: every position at the scale found, and not 2 % below beta_min."""
    head = EmulatedHead.of(index_head(PAPER, offset=3, planes=range(21)), rule=MAJORITY)
    arithmetic = Arithmetic(number_format="bfloat16")
    found = find_scale(head, arithmetic, length=300)
    assert found.beta is not None
    assert found.beta >= found.exact_least
    assert format_limit(head.at(found.beta), arithmetic, max_length=300).first_failing_length is None
    assert format_limit(head.at(0.9 * found.exact_least), arithmetic, max_length=300).cause == "dispersion"
    assert json.loads(json.dumps(found.to_dict()))["beta"] == found.beta
    lost = find_scale(EmulatedHead.of(index_head(PAPER, offset=3), rule=MAJORITY), arithmetic, length=100)
    assert lost.beta is None
    assert lost.failed[-1][1] == 50
    assert "found no beta" in lost.sentence()


# ---- the window, public case 53 ----


def test_case_53_the_window_includes_the_token_itself() -> None:
    """A window of 512 reaches offset 511 and not 512; one of 3 shows query 4 the keys 2, 3, 4."""
    for offset, fails in ((511, None), (512, 513)):
        found = head_limit(index_head(PAPER, offset=offset), rule=MAJORITY, window=512)
        assert found.window_fails == fails
        assert found.rows()[0].cause == (None if fails is None else "window")
    for offset, fails in ((2, None), (3, 4)):
        assert emulated(index_head(PAPER, offset=offset), "float32", window=3, max_length=5).first_wrong_length == fails


def test_margins_stop_falling_at_the_window() -> None:
    """n_max 61 without a window; with one of 61 positions every length is right, with 62 none beyond 61."""
    built = token_index_head(PAPER, planes=(1,), letters="ab", integers=(3,))
    for window, first in ((None, 62), (62, 62), (61, None), (20, None)):
        found = head_limit(built, rule=MAJORITY, offset=3, beta=1000.0, window=window)
        assert found.softmax[0].first_failing_length == first
        light = emulated(built, "float32", offset=3, beta=1000.0, window=window, max_length=100).first_light_length
        assert light == first


# ---- all together ----


def test_a_limit_says_what_stops_a_head() -> None:
    built = index_head(PAPER, offset=3, beta=100.0)
    formats = [emulated(built, name, beta=100.0, max_length=100, logits=mode) for name in ("bfloat16", "float32")
               for mode in ("fused", "eager")]  # fmt: skip
    found = head_limit(built, rule=MAJORITY, beta=100.0, length=20, formats=formats)
    assert found.holds
    data = json.loads(json.dumps(found.to_dict()))
    assert data["schema"] == "ropegeo.limit/1"
    assert data["softmax"][0]["n_max"] == 22
    for name in ("bfloat16", "float32"):
        assert data["formats"][name]["first_wrong_length"] == data["formats"][name]["fused"]["first_wrong_length"]
        assert data["formats"][name]["max_length"] == data["formats"][name]["eager"]["max_length"] == 100
    assert data["formats"]["bfloat16"]["first_wrong_length"] == 50
    assert data["formats"]["bfloat16"]["eager"]["first_wrong_length"] == 48
    assert data["beta_min"] < 100
    assert found.verdict().startswith("reaches length 20 ")
    longer = head_limit(built, rule=MAJORITY, beta=100.0, length=23, formats=formats)
    assert not longer.holds
    assert longer.verdict().startswith("does not reach length 23: ")
    assert longer.first_failure is not None
    assert longer.first_failure.cause == "dispersion"
    assert head_limit(built, rule=MAJORITY, length=23, formats=()).holds  # no scale is judged


def test_the_proved_bound_holds() -> None:
    for offset, beta in ((0, 10.0), (3, 1e3), (16, 1e5)):
        built = index_head(PAPER, offset=offset, planes=(1,))
        found = head_limit(built, rule=MAJORITY, beta=beta)
        bound, last = found.softmax_bound(beta), found.softmax[0].last_length
        assert bound is not None
        assert last is None or last < bound
    assert head_limit(index_head(PAPER, offset=0, planes=(1, 2)), rule=MAJORITY, beta=5.0).softmax_bound(5.0) is None


def test_queries_of_each_head() -> None:
    assert index_queries(index_head(PAPER, offset=3).recipe) == (IndexQuery(offset=3, kind="fixed"),)
    assert index_queries(reflexive_head(PAPER).recipe) == (IndexQuery(offset=0, kind="letter"),)
    several = token_index_head(PAPER, letters="ab", integers=(2, 1)).recipe
    assert [query.offset for query in index_queries(several)] == [0, 1, 2]
    assert index_queries(several, 2) == (IndexQuery(offset=2, kind="integer"),)
    assert [Rule.read(text).threshold("integer") for text in ("majority", "weight>=0.25", "weight > 0.9")] == [
        1, 3, Fraction(1, 9)
    ]  # fmt: skip


REFUSED: list[tuple[str, Any, type[Exception], str]] = [
    ("beta 0", lambda: softmax_length(one_plane("1"), 0.0, threshold=1), InvalidInputError, "beta 0 must be a posit"),
    ("beta < 0", lambda: softmax_length(one_plane("1"), -2.0, threshold=1), InvalidInputError, "beta -2 must be a pos"),
    ("beta nan", lambda: softmax_length(one_plane("1"), np.nan, threshold=1), InvalidInputError, "beta nan must be"),
    ("beta 1e11", lambda: softmax_length(one_plane("1"), 1e11, threshold=1), UnsupportedError, "is above 1e"),
    ("threshold", lambda: softmax_length(one_plane("1"), 1.0, threshold=0), InvalidInputError, "must be positive"),
    ("offset", lambda: softmax_length(one_plane("1", 9), 1.0, threshold=1, max_length=9), InvalidInputError,
     "offset 9 needs a length above it"),
    ("length", lambda: softmax_length(one_plane("1"), 1.0, threshold=1, max_length=1), InvalidInputError, "at least 2"),
    ("too long", lambda: softmax_length(one_plane("1"), 1.0, threshold=1, max_length=10**10), UnsupportedError,
     "lengths are searched up to 1000000000"),
    ("no turn", lambda: argmax_limit(one_plane("2*pi")), InvalidInputError, "no plane of the head turns"),
    ("no weight", lambda: argmax_limit(phased([0, 0])), InvalidInputError, "no plane of the head has a weight"),
    ("p", lambda: Rule.read("weight>=1"), InvalidInputError, "must lie strictly between 0 and 1"),
    ("p = 0", lambda: Rule(weight=Fraction(0)), InvalidInputError, "must lie strictly between 0 and 1"),
    ("rule", lambda: Rule.read("most"), InvalidInputError, "rule 'most' is unknown; use majority or 'weight>=0.9'"),
    ("format", lambda: read_formats("fp8"), InvalidInputError, "number format 'fp8' is unknown; use float32, float16"),
    ("twice", lambda: read_formats("float16,float16"), InvalidInputError, "names a format twice"),
    ("logits", lambda: read_formats("none", logits="half"), InvalidInputError, "logits 'half' are unknown"),
    ("emulated", lambda: check_emulated(10**6), UnsupportedError, "emulated up to length 262144"),
    ("window", lambda: head_limit(index_head(PAPER, offset=0), rule=MAJORITY, window=0), InvalidInputError,
     "window 0 must be at least 1"),
    ("within", lambda: head_limit(index_head(PAPER, offset=9), rule=MAJORITY, length=9), InvalidInputError,
     "offset 9 needs a length above it; length 9 is too short"),
    ("a query", lambda: index_queries(token_index_head(PAPER, letters="ab", integers=(1,)).recipe, 5),
     InvalidInputError, "offset 5 is not one of the head's integers"),
    ("hidden", lambda: find_scale(EmulatedHead.of(index_head(PAPER, offset=9), rule=MAJORITY, window=5), Arithmetic(),
     length=20), InvalidInputError, "hides a target, and no scale shows it"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call", "kind", "message"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refusals(name: str, call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()

"""Limits against their definitions: brute force in mpmath, the tables of docs/MATHEMATICS.md, section 8, and faults."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
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
from ropegeo.limits.arithmetic import Arithmetic, emulated_logits
from ropegeo.limits.emulated_head import EmulatedHead
from ropegeo.limits.formats import FormatLimit, check_emulated, format_limit, read_formats
from ropegeo.limits.gaps import sum_ball
from ropegeo.limits.head_limit import head_limit, searched_to
from ropegeo.limits.letters import letter_argmax_limit, letter_softmax_length, letter_softmax_scale
from ropegeo.limits.limit import Limit, LimitRow
from ropegeo.limits.rules import CAUSES, IndexQuery, Rule, index_queries
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
LETTERS = retrieval_head(RopeSpectrum.from_angle("0.01"), letters="abcdefgh", integers=(1,))


def phased(coefficients: Sequence[complex], offset: int = 0, spectrum: RopeSpectrum = TWO_PLANES) -> LogitProfile:
    return LogitProfile(spectrum=spectrum, coefficients=np.array(coefficients, complex), origin=offset)


def mp_logits(coefficients: Sequence[complex], displacements: Iterable[int]) -> list[Any]:
    """Re sum_k c_k exp(i t theta_k), for base 1e4 and head_dim 4."""
    thetas = [oracles.rope_angle(10000, k, 4)() for k in range(len(coefficients))]
    numbers = [mpmath.mpc(c.real, c.imag) for c in coefficients]
    return [
        mpmath.fsum((c * mpmath.expj(t * theta)).real for c, theta in zip(numbers, thetas, strict=True))
        for t in displacements
    ]


def mp_logit(coefficients: Sequence[complex], t: int) -> Any:
    return mp_logits(coefficients, [t])[0]


def mp_sums(coefficients: Sequence[complex], beta: float, offset: int, longest: int) -> list[Any]:
    """S(n) for n = offset+1 .. longest, by its definition."""
    weight = mpmath.fsum(mpmath.sqrt(mpmath.mpf(c.real) ** 2 + mpmath.mpf(c.imag) ** 2) for c in coefficients)
    top, seen = mp_logit(coefficients, 0), [t for t in range(-offset, longest - offset) if t]
    terms = {
        t: mpmath.exp(-mpmath.mpf(beta) * (top - logit) / weight)
        for t, logit in zip(seen, mp_logits(coefficients, seen), strict=True)
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
        top, seen = mp_logit(coefficients, 0), range(-max(offsets), longest)
        wins = {t: logit >= top for t, logit in zip(seen, mp_logits(coefficients, seen), strict=True)}
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
    assert found.searched == (found.first_failing_length or 60)


def test_far_rivals_are_found_by_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    coefficients = [0.5 * np.exp(0.1j), 0.5 * np.exp(-0.08j)]
    plain = argmax_limit(phased(coefficients, 2), max_length=100_000)
    monkeypatch.setattr(argmax, "DEFINED_AT_ONCE", 0)
    monkeypatch.setattr(argmax, "_FIRST_CHUNK", 64)
    assert argmax_limit(phased(coefficients, 2), max_length=100_000) == plain
    assert plain.first_failing_length is not None
    assert plain.rival is not None
    assert plain.first_failing_length == 3 + plain.rival > 64 + 3
    with mpmath.workdps(40):
        top = mp_logit(coefficients, 0)
        *before, there = mp_logits(coefficients, range(1, plain.rival + 1))
        assert there >= top
        assert max(before) < top


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


@pytest.mark.slow
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


@pytest.mark.parametrize("weight", [1.0, 20.0])
@pytest.mark.parametrize(("beta", "cause"), [(20.0, "dispersion"), (3e4, "near return")])
def test_why_letters_have_too_little_weight(weight: float, beta: float, cause: str) -> None:
    """The worst input's strongest rival, by the formula of section 6, against the whole sum, whatever the weight."""
    profile = LetterProfile(spectrum=RopeSpectrum.from_angle("0.0027"), weights=np.array([weight]), letters=8)
    found = letter_softmax_length(profile, beta, max_length=200)
    assert found.first_failing_length is not None
    near, far = (0.0027 * (found.first_failing_length - back) for back in (2, 1))
    omega = math.pi / 4
    worst = min(math.cos(near) - math.cos(omega - far), math.cos(far) - math.cos(omega - near))
    assert found.term == pytest.approx(math.exp(-beta * worst), rel=1e-6)
    assert found.total == pytest.approx(math.exp(retrieval_log_sum(profile, found.first_failing_length, beta)))
    assert found.cause == cause


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
        assert (found.first_light_length, found.cause) == (exact.first_failing_length, exact.cause)
        assert found.first_failing_length == found.first_light_length


@pytest.mark.slow
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
        "dispersion": lambda: emulated(index_head(PAPER, offset=3, planes=(20, 21)), "float32", beta=20.0),
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
        assert head.unit == 7
    with pytest.raises(InvalidInputError, match="vectors 'own' are unknown; use unit or head"):
        EmulatedHead.of(built, rule=MAJORITY, vectors="own")


@pytest.mark.slow
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
    assert found.exact_least is not None
    assert found.beta >= found.exact_least
    assert format_limit(head.at(found.beta), arithmetic, max_length=300).first_failing_length is None
    light = format_limit(head.at(0.9 * found.exact_least), arithmetic, max_length=300)
    assert light.cause == "dispersion"
    assert light.first_light_length is not None
    assert json.loads(json.dumps(found.to_dict()))["beta"] == found.beta
    lost = find_scale(EmulatedHead.of(index_head(PAPER, offset=3), rule=MAJORITY), arithmetic, length=100)
    assert lost.beta is None
    assert lost.failed[-1][1] == 50
    assert lost.is_decided
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


@pytest.mark.slow
def test_a_window_does_not_end_the_search_of_a_format() -> None:
    """Positions in bfloat16: right at every length up to the window of 64, wrong where positions above 256 meet."""
    spectrum = RopeSpectrum.from_base(500000, head_dim=128)
    head = EmulatedHead.of(index_head(spectrum, offset=3, planes=range(64)), rule=MAJORITY, window=64)
    found = format_limit(head, Arithmetic(number_format="bfloat16", positions="format"), max_length=260)
    assert (found.first_wrong_length, found.cause) == (258, "rounding")
    limit = head_limit(index_head(spectrum, offset=3, planes=range(64)), rule=MAJORITY, window=64, formats=[found])
    assert limit.argmax.first_failing_length is None
    assert "number formats may still fail" in limit.rows()[0].note


@pytest.mark.parametrize(("window", "searched"), [(20, 20), (1, 40), (60, 40)])
def test_a_head_that_looks_for_itself_is_emulated_up_to_its_window(window: int, searched: int) -> None:
    built = reflexive_head(RopeSpectrum.from_angle("0.001"), letters="abcd", symbolic=True)
    found = emulated(built, "float32", max_length=40, window=window)
    assert (found.first_wrong_length, found.max_length) == (None, searched)
    limit = head_limit(built, rule=MAJORITY, window=window, length=40, formats=[found])
    assert limit.holds is (True if searched == 40 else None)
    assert ("up to the window of 20" in found.note) == (searched == 20)


def test_letters_next_to_each_other_are_hidden_in_a_window_of_1() -> None:
    found = emulated(LETTERS, "float32", window=1)
    assert (found.first_wrong_length, found.cause) == (2, "window")


# ---- why a sum is too large ----


@pytest.mark.parametrize(
    ("beta", "n", "rival", "share"),
    [(1e3, 48, 44, 1.0), (1e4, 337, 333, 0.74), (1e5, 714, 710, 0.96), (1e6, 714, 710, 1)],
)
def test_one_near_return_is_no_dispersion(beta: float, n: int, rival: int, share: float) -> None:
    """Plane 0, offset 3, threshold 1/3: at the failing length one term is above the threshold alone."""
    with mpmath.workdps(30):
        terms = {t: mpmath.exp(-beta * (1 - mpmath.cos(t))) for t in range(-3, n - 3) if t}
        largest = max(terms, key=lambda t: terms[t])
        assert (largest, terms[largest] > mpmath.mpf(1) / 3) == (rival, True)
        total, before = mpmath.fsum(terms.values()), mpmath.fsum(terms.values()) - terms[rival]
        assert before < mpmath.mpf(1) / 3 <= total
    found = softmax_length(one_plane("1", 3), beta, threshold=Fraction(1, 3))
    assert (found.first_failing_length, found.rival, found.cause) == (n, rival, "near return")
    assert found.term == pytest.approx(float(terms[rival]), rel=1e-6)
    assert found.total == pytest.approx(float(total), rel=1e-6)
    assert float(terms[rival] / total) == pytest.approx(share, abs=0.005)
    row = head_limit(index_head(PAPER, offset=3), rule=MAJORITY, beta=beta).rows()[1]
    assert row.cause == "near return"
    assert f"displacement {rival} is {share:.0%} of the sum" in row.note
    light = emulated(index_head(PAPER, offset=3), "float32", beta=beta, max_length=n - 1)
    assert light.first_failing_length is None


@given(COEFFICIENTS, st.floats(0.3, 60), st.integers(0, 8), st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(3)]))
@settings(max_examples=10)
def test_the_largest_term_is_named(coefficients: list[complex], beta: float, offset: int, threshold: Fraction) -> None:
    found = softmax_length(phased(coefficients, offset), beta, threshold=threshold, max_length=50)
    n = found.first_failing_length
    if n is None:
        assert (found.rival, found.cause, found.searched) == (None, None, 50)
        return
    assert found.searched == n
    assert found.rival is not None
    assert found.term is not None
    weight = sum(map(abs, coefficients))
    with mpmath.workdps(30):
        seen = [t for t in range(-offset, n - offset) if t]
        top = mp_logit(coefficients, 0)
        terms = [float(mpmath.exp(-beta * (top - each) / weight)) for each in mp_logits(coefficients, seen)]
    assert found.term == pytest.approx(max(terms), rel=1e-9)
    assert terms[seen.index(found.rival)] == pytest.approx(max(terms), rel=1e-9)
    assert found.total == pytest.approx(math.fsum(terms), rel=1e-9)
    alone = max(terms) >= threshold or max(terms) > math.fsum(terms) / 2
    assert found.cause == ("near return" if alone and abs(found.rival) > 1 else "dispersion")


def test_many_small_rivals_are_dispersion() -> None:
    """Golden angle: no rival comes near, so that it takes many."""
    found = softmax_length(one_plane("pi*(sqrt(5)-1)"), 20.0, threshold=3)
    assert found.cause == "dispersion"
    assert found.term is not None
    assert found.total is not None
    assert found.term < found.total / 2
    assert softmax_length(one_plane("0.01", 1), 10.0, threshold=Fraction(1, 3)).cause == "dispersion"  # a neighbour


@pytest.mark.parametrize(
    ("beta", "name", "first", "cause"),
    [
        (1e4, "float32", 337, "near return"),
        (20.0, "bfloat16", None, "dispersion"),
        (100.0, "float32", None, "dispersion"),
    ],
)
def test_why_an_emulated_weight_is_too_small(beta: float, name: str, first: int | None, cause: str) -> None:
    """The same as in exact arithmetic, where the format is fine enough; theta = 1, and 21 planes."""
    built = index_head(PAPER, offset=3) if first else index_head(PAPER, offset=3, planes=(20, 21))
    found = emulated(built, name, beta=beta, max_length=400)
    assert (found.cause, found.outcome) == (cause, "light")
    if first is not None:
        assert (found.first_failing_length, found.rival) == (first, 333)
        assert "displacement 333 has most of the rest" in found.note


def test_rounding_that_makes_a_weight_too_small_is_named_so() -> None:
    """Exact arithmetic gives the target enough to length 300; eager bfloat16 rounds logits of 20 to eighths."""
    built, beta = index_head(PAPER, offset=3, planes=range(21)), 20.5
    assert head_limit(built, rule=MAJORITY, beta=beta, length=300, max_length=300).holds
    found = emulated(built, "bfloat16", logits="eager", beta=beta, max_length=300)
    assert (found.first_failing_length, found.outcome, found.cause) == (5, "light", "rounding")


@pytest.mark.parametrize(
    ("planes", "beta", "name", "first"), [((1, 6), 300.0, "float16", 284), ((2, 8), 777.0, "bfloat16", 161)]
)
def test_the_argmax_of_a_judged_scale_is_that_of_the_scaled_logits(
    planes: tuple[int, ...], beta: float, name: str, first: int
) -> None:
    """Eager logits are rounded before and after the scale; without a scale later lengths are the first that fail."""
    built, way = index_head(PAPER, offset=0, planes=planes), Arithmetic(number_format=name, logits="eager")
    found = emulated(built, name, logits="eager", beta=beta, max_length=300)
    assert (found.first_wrong_length, found.outcome, found.cause) == (first, "tie", "near return")
    plain = emulated(built, name, logits="eager", max_length=300)
    assert plain.first_wrong_length is None or plain.first_wrong_length > first
    head = EmulatedHead.of(built, rule=MAJORITY, beta=beta)
    for n in range(first - 6, first + 1):
        logits = emulated_logits(
            head.query(0),
            head.key(),
            PAPER,
            scale=beta,
            query_position=n - 1,
            key_positions=np.arange(n),
            arithmetic=way,
        )
        assert (logits[:-1].max() >= logits[-1]) == (n == first)


def test_a_logit_beyond_the_format_is_an_overflow() -> None:
    found = emulated(index_head(PAPER, offset=0), "float16", logits="eager", beta=1e5, max_length=20)
    assert (found.first_failing_length, found.cause, found.weight) == (1, "overflow", None)
    assert not found.order_matters  # 1e5 is beyond 65504 in any order
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["cause"] == "overflow"


def test_a_weight_is_reached_by_itself() -> None:
    """The smallest weight that is emulated meets `weight>=` itself, and not a little more."""
    built = index_head(PAPER, offset=0, planes=range(21))
    smallest = emulated(built, "float32", beta=10.0, max_length=60).weight
    assert smallest is not None
    for more, fails in ((Fraction(0), False), (Fraction(1, 10**9), True)):
        head = EmulatedHead.of(built, rule=Rule(weight=Fraction(smallest) + more), beta=10.0)
        found = format_limit(head, Arithmetic(), max_length=60)
        assert (found.first_light_length is not None) is fails


@pytest.mark.parametrize(("offset", "threshold"), [(0, 3), (7, 3), (12, 2)])
def test_exact_ties_are_counted(offset: int, threshold: int) -> None:
    """A turn of 1/5: every fifth rival has a term of exactly 1, and no digits tell the rest of the sum from 0."""
    found = softmax_length(one_plane("2*pi/5", offset), 1e4, threshold=threshold)
    ties = [n for n in range(offset + 1, 60) if sum(t % 5 == 0 for t in range(-offset, n - offset) if t) >= threshold]
    assert (found.first_failing_length, found.is_certain) == (ties[0], True)


# ---- what is not known ----


def row(first: int | None, searched: int | None, at_most: int | None = None) -> LimitRow:
    return LimitRow(
        what="x", first_failing_length=first, searched=searched, cause=None, known="exact", at_most=at_most or first
    )


def test_a_row_says_no_more_than_was_looked_at() -> None:
    assert row(None, 100).reaches(100)
    assert not row(None, 100).reaches(101)
    assert not row(None, 100).fails_at(10**9)
    assert row(None, None).reaches(10**9)
    assert (row(50, 50).reaches(49), row(50, 50).reaches(50), row(50, 50).fails_at(50)) == (True, False, True)
    open_row = row(50, 60, 60)
    assert [(open_row.reaches(n), open_row.fails_at(n)) for n in (49, 50, 59, 60)] == [
        (True, False), (False, False), (False, False), (False, True)
    ]  # fmt: skip


def judged(length: int | None, **options: Any) -> Limit:
    """21 planes in bfloat16, emulated to 100 and right so far."""
    built = index_head(PAPER, offset=3, planes=range(21))
    formats = [emulated(built, max_length=100)]
    return head_limit(built, rule=MAJORITY, length=length, formats=formats, max_length=1000, **options)


def test_a_length_that_was_not_searched_is_not_decided() -> None:
    found = judged(101)
    assert found.holds is None
    assert json.loads(json.dumps(found.to_dict()))["holds"] is None
    assert found.verdict() == (
        "not decided beyond length 100 of the 101 asked for (argmax, bfloat16): bfloat16, fused was searched that far "
        "only"
    )
    assert judged(100).holds is True
    late = replace(judged(None), argmax=replace(found.argmax, first_failing_length=400, outcome="wrong", rival=396))
    assert late.verdict().startswith(
        "right up to length 100 (argmax, bfloat16): bfloat16, fused was searched that far "
    )
    assert late.verdict().endswith("; argmax, exact fails from length 400 on (near return)")
    assert replace(late, length=400).holds is False
    assert replace(late, length=399).holds is None
    unsure = replace(late, argmax=replace(late.argmax, outcome="undecided"), length=400)
    assert unsure.holds is None


def test_an_estimate_decides_only_what_it_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    coefficients, beta, n = [0.7 + 0.1j, 0.2 - 0.1j], 20.0, 30
    with mpmath.workdps(30):
        threshold = Fraction(str(mp_sums(coefficients, beta, 0, n)[-1]))
    monkeypatch.setattr(softmax, "MAX_BALLS", 1)
    found = softmax_length(phased(coefficients), beta, threshold=threshold, max_length=n)
    assert not found.is_certain
    assert (found.at_most, found.searched) == (None, n)  # not "fails from n + 1 on", which nobody looked at
    assert found.cause == "dispersion"


@pytest.mark.slow
def test_letters_are_searched_to_the_length() -> None:
    """12500 is the default for 8 letters; a longer length is searched, not passed over."""
    built = reflexive_head(RopeSpectrum.from_angle("1e-9"), letters="abcdefgh", symbolic=True)
    assert searched_to(built) == 12_500
    assert searched_to(built, length=20_000) == 20_000
    assert searched_to(built, length=20_000, window=100) == 12_500
    found = head_limit(built, rule=MAJORITY, beta=40.0, length=20_000)
    assert found.holds is True
    assert found.softmax[0].searched == 20_000


def test_a_window_that_hides_the_target_leaves_no_scale() -> None:
    found = head_limit(index_head(PAPER, offset=3), rule=MAJORITY, window=2, length=20, max_length=100)
    assert (found.holds, found.scale) == (False, None)
    assert "the window hides a target" in found.scale_note
    assert (found.argmax.outcome, found.argmax.first_failing_length) == ("hidden", 4)
    assert {(each.first_failing_length, each.last_length, each.cause) for each in found.softmax} == {
        (4, None, "window")
    }
    search = find_scale(EmulatedHead.of(found.built, rule=MAJORITY, window=2), Arithmetic(), length=20)
    assert (search.beta, search.exact_least, search.is_decided) == (None, None, True)
    assert "out of sight" in search.sentence()


def test_where_exact_arithmetic_fails_no_scale_is_found() -> None:
    built = index_head(RopeSpectrum.from_angle("2*pi/5"), offset=0)
    search = find_scale(EmulatedHead.of(built, rule=MAJORITY), Arithmetic(), length=20)
    assert (search.beta, search.is_decided) == (None, True)
    assert json.loads(json.dumps(search.to_dict()))["beta_min_exact"] is None
    assert head_limit(built, rule=MAJORITY, length=20, search=search).holds is False


def test_one_position_has_no_rival() -> None:
    assert head_softmax_scale(one_plane("1"), 1, demands=[Demand(offset=0, threshold=Fraction(1))]) == 0
    assert head_limit(index_head(PAPER, offset=0), rule=MAJORITY, length=5, window=1, max_length=10).scale == 0


def test_a_length_beyond_all_sums_is_decided_by_the_argmax_alone() -> None:
    built = index_head(PAPER, offset=0)
    assert head_limit(built, rule=MAJORITY, length=10**30).holds is True
    far = head_limit(built, rule=MAJORITY, length=10**30, beta=1e10, max_length=1000)
    assert (far.holds, far.softmax[0].searched) == (None, 1000)


def test_right_at_no_length_a_query_fits() -> None:
    found = head_limit(index_head(PAPER, offset=16), rule=MAJORITY, beta=10.0)
    assert found.softmax[0].last_length is None
    assert found.verdict().startswith("right at no length (")
    assert found.softmax[0].cause == "dispersion"  # its largest term is above 1/3, as are the others together
    shown = head_limit(index_head(PAPER, offset=16), rule=MAJORITY, max_length=100)
    assert shown.verdict() == "nothing that is judged fails at any length (argmax); no scale is judged: give a beta"


def test_a_search_for_a_scale_is_judged() -> None:
    built, arithmetic = index_head(PAPER, offset=3), Arithmetic(number_format="bfloat16")
    head = EmulatedHead.of(built, rule=MAJORITY)
    for length, holds in ((20, True), (60, False)):
        search = find_scale(head, arithmetic, length=length)
        found = head_limit(built, rule=MAJORITY, length=length, search=search, max_length=100)
        assert found.holds is holds
        assert (search.beta is not None) is holds
        assert found.verdict().startswith("reaches length 20" if holds else "does not reach length 60: found beta, bfl")
        assert found.to_dict()["found_beta"]["beta"] == search.beta


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("weight>=0.99999999", None),
        ("weight>=0.1", None),
        ("weight > 0.50", "weight>=0.5"),
        ("weight>=1e-9", "weight>=0.000000001"),
        ("weight>=2/3", None),
        ("weight>=3e-1", "weight>=0.3"),
        ("majority", None),
    ],
)
def test_a_rule_is_shown_with_all_its_digits(text: str, shown: str | None) -> None:
    assert str(Rule.read(text)) == (shown or text)
    assert Rule.read(str(Rule.read(text))) == Rule.read(text)


@settings(max_examples=25)
@given(st.fractions(min_value=Fraction(1, 10**9), max_value=1 - Fraction(1, 10**9)))
def test_a_rule_is_read_as_it_is_shown(weight: Fraction) -> None:
    assert Rule.read(str(Rule(weight=weight))).weight == weight


def test_a_phase_of_1e_100_is_no_proof_for_every_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """exp(i 1e-100) is a number of doubles; it may be met beyond what is searched, where the answer ends."""
    monkeypatch.setattr(argmax, "FARTHEST", 1 << 40)
    found = argmax_limit(phased([1 + 1e-100j], 0, RopeSpectrum.from_angle("1")))
    assert (found.first_failing_length, found.searched) == (None, argmax.FARTHEST)


# ---- JSON ----


def test_what_is_saved_has_a_schema_with_underscores() -> None:
    built = index_head(PAPER, offset=3, planes=(1,))
    found = head_limit(built, rule=MAJORITY, beta=100.0, max_length=100, formats=[emulated(built)])
    data = json.loads(json.dumps(found.to_dict()))
    schemas = [
        part["schema"] for part in (data, data["argmax"], *data["softmax"], data["formats"]["bfloat16"]["fused"])
    ]
    assert schemas == [f"ropegeo.{name}/1" for name in ("limit", "argmax_limit", "softmax_limit", "format_limit")]
    assert data["softmax"][0]["n_max"] == found.softmax[0].last_length
    assert data["softmax"][0]["rival_term"] == found.softmax[0].term


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
    assert set(data["formats"]["float32"]) == {"first_wrong_length", "max_length", "cause", "fused", "eager"}
    for name in ("bfloat16", "float32"):
        assert data["formats"][name]["first_wrong_length"] == data["formats"][name]["fused"]["first_wrong_length"]
        assert data["formats"][name]["max_length"] == data["formats"][name]["eager"]["max_length"] == 100
    assert data["formats"]["bfloat16"]["first_wrong_length"] == 50
    assert data["formats"]["bfloat16"]["eager"]["first_wrong_length"] == 39  # tied by rounding after the scale
    assert data["beta_min"] < 100
    assert found.verdict().startswith("reaches length 20 ")
    longer = head_limit(built, rule=MAJORITY, beta=100.0, length=23, formats=formats)
    assert not longer.holds
    assert longer.verdict().startswith("does not reach length 23: ")
    assert longer.first_failure is not None
    assert longer.first_failure.cause == "near return"
    assert head_limit(built, rule=MAJORITY, length=23, formats=()).holds  # no scale is judged
    assert head_limit(built, rule=MAJORITY).holds is None


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
    ("nan", lambda: softmax_length(one_plane("1"), 1.0, threshold=np.nan), InvalidInputError, "positive and finite"),
    ("demand", lambda: Demand(offset=0, threshold=Fraction(0)), InvalidInputError, "Demand: threshold 0 must be posit"),
    ("asked for", lambda: Demand(offset=-1, threshold=Fraction(1)), InvalidInputError, "-1 must not be negative"),
    ("no demand", lambda: softmax_lengths(one_plane("1"), [1.0], demands=[]), InvalidInputError, "at least one demand"),
    ("offset", lambda: softmax_length(one_plane("1", 9), 1.0, threshold=1, max_length=9), InvalidInputError,
     "offset 9 needs a length above it"),
    ("length", lambda: softmax_length(one_plane("1"), 1.0, threshold=1, max_length=1), InvalidInputError, "at least 2"),
    ("too long", lambda: softmax_length(one_plane("1"), 1.0, threshold=1, max_length=10**10), UnsupportedError,
     "lengths are searched up to 1000000000"),
    ("no turn", lambda: argmax_limit(one_plane("2*pi")), InvalidInputError, "no plane of the head turns"),
    ("no weight", lambda: argmax_limit(phased([0, 0])), InvalidInputError, "no plane of the head has a weight"),
    ("p", lambda: Rule.read("weight>=1"), InvalidInputError, "must lie strictly between 0 and 1"),
    ("p = 1e400", lambda: Rule.read("weight>=1e400"), InvalidInputError, "the weight 1.0000e400 must lie strictly"),
    ("p = 1e-301", lambda: Rule.read("weight>=1e-301"), InvalidInputError, "must lie from 1e-12 to 1 - 1e-12"),
    ("p near 1", lambda: Rule.read("weight>=0.9999999999999"), InvalidInputError, "must lie from 1e-12 to 1 - 1e-12"),
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
    ("letters", lambda: searched_to(LETTERS, length=2 * 10**6), UnsupportedError,
     "8 letters are judged up to length 1250000; 2000000 is more"),
    ("far", lambda: softmax_lengths(one_plane("1"), [1e6], demands=[Demand(offset=3 * 10**7, threshold=Fraction(1))],
     max_length=10**8), UnsupportedError, "for offsets up to 20000000; 30000000 is more"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call", "kind", "message"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refusals(name: str, call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()

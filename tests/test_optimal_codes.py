"""Retrieval codes: what they win by, by hand; what no code exceeds, held against codes of every kind."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from letter_oracle import Brute
from oracles import mp_fraction

import ropegeo
from ropegeo._arrays import ComplexArray, FloatArray, IntArray
from ropegeo.engine.retrieval_margin import worst_margin
from ropegeo.errors import InvalidInputError, SolverError, UnsupportedError
from ropegeo.exact import ClosedForm
from ropegeo.heads import LetterProfile
from ropegeo.optimal import code_bound as bounds
from ropegeo.optimal import code_search, codes
from ropegeo.optimal.code_bound import code_bound, enclosed_code_bound, few_planes_bound
from ropegeo.optimal.codes import OptimalCode, optimal_code
from ropegeo.optimal.game import solve_game
from ropegeo.spectrum import RopeSpectrum

BASE = RopeSpectrum.from_base(10000, head_dim=32)


def turning(*angles: str) -> RopeSpectrum:
    """A spectrum of these angles."""
    return RopeSpectrum(angles=tuple(ClosedForm.of(Fraction(angle)) for angle in angles), head_dim=2 * len(angles))


def worst_of(keys: ComplexArray, queries: ComplexArray, theta: FloatArray, length: int, centre: float = 0.0) -> float:
    """The least margin of any keys and queries (letters x planes), by the definition: all letters, all distances."""
    least = math.inf
    letters = len(keys)
    turned = [np.exp(1j * (d - centre) * theta) for d in range(length)]
    scores = np.array(
        [
            [[(queries[b] * keys[a].conj() * e).sum().real for e in turned] for a in range(letters)]
            for b in range(letters)
        ]
    )
    for b in range(letters):
        rivals = [a for a in range(letters) if a != b]
        for answer in range(length):
            others = [d for d in range(length) if d != answer]
            least = min(least, scores[b, b, answer] - scores[b][np.ix_(rivals, others)].max())
    return float(least)


# ---- the codes found ----

CASES = [(2, 9, True), (3, 2, True), (4, 20, True), (5, 12, False)]


@pytest.mark.slow
@pytest.mark.parametrize(("letters", "length", "centred"), CASES)
def test_the_margin_is_that_of_the_code(letters: int, length: int, centred: bool) -> None:
    """By double loop over answers and rivals; never below the best single plane, never above the bound."""
    best = optimal_code(BASE, letters=letters, length=length, centred=centred)
    theta = [10000.0 ** (-2 * k / 32) for k in best.planes]
    brute = Brute(
        letters, list(zip(theta, best.weights, best.multipliers, strict=True)), (length - 1) / 2 if centred else 0.0
    )
    assert abs(float(best.margin) - min(brute.margins(length))) <= 1e-12
    assert best.single_margin.low <= best.margin.low
    assert best.margin.high <= best.upper_bound.high
    assert best.status == "converged"
    assert abs(sum(best.weights) - 1) <= 1e-12
    assert list(best.planes) == sorted(set(best.planes))
    assert 0 <= best.gap == float((best.upper_bound.high - best.margin.low) / best.upper_bound.high)
    assert best.gap < 0.01


@pytest.mark.parametrize("letters", [2, 5, 8])
def test_planes_that_hardly_turn_hold_a_simplex(letters: int) -> None:
    """A/(A - 1), to what the turning takes."""
    slow = turning("1e-9", "1.1e-9", "1.2e-9", "1.3e-9")
    best = optimal_code(slow, letters=letters, length=6)
    assert abs(float(best.margin) - letters / (letters - 1)) <= 1e-7
    assert abs(float(best.upper_bound) - letters / (letters - 1)) <= 1e-7


def test_too_few_planes_for_a_simplex_hold_a_cross_polytope() -> None:
    """8 letters on 2 planes of 4 dimensions: 1, and no code has more (8 > 2 * 2 + 1)."""
    best = optimal_code(turning("1e-9", "1.1e-9"), letters=8, length=6)
    assert abs(float(best.margin) - 1) <= 1e-7
    assert best.upper_bound.high == 1


@pytest.mark.parametrize("letters", [4, 7])
def test_one_plane_is_the_papers_and_proved_best(letters: int) -> None:
    """Its letter-letter queries reach the bound; those that look for themselves, uncentred, are a little worse."""
    best = optimal_code(BASE, letters=letters, length=12, max_planes=1)
    assert (best.planes, best.multipliers, best.weights) == ((best.single_plane,), (1,), (1.0,))
    assert best.margin == best.single_margin
    margins = Brute(letters, [(10000.0 ** (-30 / 32), 1.0, 1)], 5.5).margins(12)
    assert abs(min(margins[:-1]) - float(best.upper_bound)) <= 1e-12
    assert abs(margins[-1] - float(best.margin)) <= 1e-12


@pytest.mark.slow
def test_at_most_so_many_planes() -> None:
    one, two = (optimal_code(BASE, letters=9, length=16, max_planes=count) for count in (1, 2))
    assert (len(one.planes), len(two.planes)) == (1, 2)
    assert float(one.margin) < float(two.margin) < two.upper_bound.high == 1


def test_brute_force_over_two_planes() -> None:
    """Every pair of characters with weights in steps of 1/50, on the two slowest planes: none is better."""
    letters, length = 5, 10
    spectrum = turning("0.3", "0.02", "0.011")
    best = optimal_code(spectrum, letters=letters, length=length, max_planes=2)
    for first in range(1, letters):
        for second in range(1, letters):
            for part in range(0, 51, 10):
                planes = [(0.011, part / 50, first), (0.02, 1 - part / 50, second)]
                assert min(Brute(letters, planes, (length - 1) / 2).margins(length)) <= float(best.margin) + 1e-9


def test_no_plane_is_slow_enough() -> None:
    best = optimal_code(turning("1", "2"), letters=5, length=60)
    assert best.margin.high <= 0
    assert best.status.startswith("no plane is slow enough")
    assert best.upper_bound.high >= 0


def test_the_head_that_is_built_has_this_margin() -> None:
    best = optimal_code(BASE, letters=5, length=14)
    head = ropegeo.retrieval_head(
        BASE,
        letters="abcde",
        planes=best.planes,
        weights=best.weights,
        multipliers=best.multipliers,
        centre_length=best.centre_length,
        beta=3.0,
    )
    assert isinstance(head.profile, LetterProfile)
    d = np.arange(14)
    for shift in range(5):
        assert np.abs(head.profile.logit(shift, d) - best.profile(beta=3.0).logit(shift, d)).max() <= 1e-12
    assert worst_margin(head.profile, 14).low <= best.margin.high
    assert best.margin.low <= worst_margin(head.profile, 14).high


def test_json() -> None:
    best = optimal_code(BASE, letters=4, length=9)
    data = json.loads(json.dumps(best.to_dict()))
    assert data["schema"] == "ropegeo.code/1"
    assert data["planes"] == list(best.planes)
    assert data["centre_length"] == 9
    assert float(data["upper_bound"]) == float(best.upper_bound)
    rows = data["bound"]["rows"]
    again = enclosed_code_bound(
        RopeSpectrum.from_dict(data["spectrum"]),
        letters=4,
        length=9,
        centred=True,
        pairs=[(answer, rival) for answer, rival, _ in rows],
        distribution=[share for _, _, share in rows],
    )
    assert again == best.bound.value


# ---- the bound ----

unit = st.floats(-1, 1, allow_nan=False)
PLANES = turning("0.9", "0.2", "0.03")
THETA = np.array([0.9, 0.2, 0.03])


def random_codes(rng: np.random.Generator, letters: int, planes: int, spread: float) -> ComplexArray:
    """Codes of length at most 1, of different lengths; simplex-like if the letters' mean is taken out (spread 1)."""
    raw = rng.normal(size=(letters, planes)) + 1j * rng.normal(size=(letters, planes))
    raw = raw - spread * raw.mean(axis=0)
    raw /= np.linalg.norm(raw, axis=1).max()
    return np.asarray(raw)


@given(st.integers(2, 5), st.integers(2, 6), st.integers(0, 10**6), st.sampled_from([0.0, 1.0]))
@settings(max_examples=8)
def test_no_queries_and_keys_exceed_the_bound(letters: int, length: int, seed: int, spread: float) -> None:
    """Any keys with any queries; queries near the keys turned back to the middle, which do well."""
    rng = np.random.default_rng(seed)
    bound = code_bound(PLANES, letters=letters, length=length, centred=True)
    keys = random_codes(rng, letters, 3, spread)
    near = keys * np.exp(-1j * THETA * (length - 1) / 2) + rng.choice([0.0, 0.1]) * random_codes(rng, letters, 3, 0)
    near /= max(1.0, float(np.linalg.norm(near, axis=1).max()))
    for queries in (near, random_codes(rng, letters, 3, spread)):
        assert worst_of(keys, queries, THETA, length) <= bound.value.high + 1e-12


@given(st.integers(2, 5), st.integers(2, 6), st.integers(0, 10**6), st.sampled_from([0.0, 1.0]))
@settings(max_examples=8)
def test_no_uncentred_code_exceeds_its_bound(letters: int, length: int, seed: int, spread: float) -> None:
    keys = random_codes(np.random.default_rng(seed), letters, 3, spread)
    bound = code_bound(PLANES, letters=letters, length=length, centred=False)
    assert worst_of(keys, keys, THETA, length) <= bound.value.high + 1e-12


@given(st.integers(4, 9), st.integers(2, 7), st.integers(0, 10**6), st.sampled_from(["0.01", "0.3", "1.5", "3"]))
@settings(max_examples=8)
def test_no_code_on_few_planes_exceeds_its_bound(letters: int, length: int, seed: int, angle: str) -> None:
    """One plane: letters near equal turns, of lengths near 1, centred; a bound of 1 for more planes."""
    rng = np.random.default_rng(seed)
    theta = np.array([float(angle)])
    wobble = rng.normal(size=letters) * rng.choice([0.0, 0.05, 1.0])
    radii = 1 - rng.choice([0.0, 0.1, 1.0]) * rng.uniform(size=letters)
    keys = (radii * np.exp(2j * np.pi * (np.arange(letters) + wobble) / letters))[:, None]
    bound = few_planes_bound(turning(angle), letters=letters, length=length, centred=True, planes=1)
    assert bound is not None
    assert worst_of(keys, keys, theta, length, (length - 1) / 2) <= bound.high + 1e-12
    if letters >= 8:
        two = np.array([float(angle), 0.011])
        codes_of_two = random_codes(rng, letters, 2, 1.0)
        assert worst_of(codes_of_two, codes_of_two, two, length, (length - 1) / 2) <= 1
        found = few_planes_bound(turning(angle, "0.011"), letters=letters, length=length, centred=True, planes=2)
        assert found is not None
        assert found.high == 1


def test_few_planes_say_nothing_where_nothing_is_proved() -> None:
    assert few_planes_bound(PLANES, letters=5, length=9, centred=True, planes=2) is None  # 5 = 2 * 2 + 1
    assert few_planes_bound(turning("4"), letters=9, length=9, centred=True, planes=1) is None  # beyond half a turn
    assert few_planes_bound(turning("0.1"), letters=3, length=9, centred=True, planes=1) is None
    unturned = few_planes_bound(turning("0.1"), letters=4, length=9, centred=False, planes=1)
    assert unturned is not None
    assert unturned.high == 1


@given(st.integers(2, 9), st.integers(2, 30), st.booleans(), st.integers(0, 10**6))
@settings(max_examples=8)
def test_the_bound_in_balls_by_mpmath(letters: int, length: int, centred: bool, seed: int) -> None:
    """Any weights on any pairs; and none is lower than the one found."""
    rng = np.random.default_rng(seed)
    drawn = [rng.choice(length, size=2, replace=False).tolist() for _ in range(3)]
    pairs = [(int(answer), int(rival)) for answer, rival in drawn]
    shares = rng.uniform(0.1, 1, size=3).tolist()
    found = enclosed_code_bound(
        PLANES, letters=letters, length=length, centred=centred, pairs=pairs, distribution=shares
    )
    with mpmath.workdps(50):
        c = mpmath.mpf(length - 1) / 2 if centred else mpmath.mpf(0)
        sizes = [mpmath.mpf(0)]
        for text in ("0.9", "0.2", "0.03"):
            theta = mp_fraction(Fraction(text))
            for rival in (mpmath.mpf(-1), 1 / mpmath.mpf(letters - 1)):
                paid = mpmath.fsum(
                    mp_fraction(mu) * (mpmath.cos((m - c) * theta) + rival * mpmath.cos((r - c) * theta))
                    for (m, r), mu in zip(pairs, shares, strict=True)
                )
                sizes.append(abs(paid) if centred else paid)
        truth = max(sizes) / mpmath.fsum(map(mp_fraction, shares))
        assert (
            mp_fraction(found.low) - mpmath.mpf(10) ** -40 <= truth <= mp_fraction(found.high) + mpmath.mpf(10) ** -40
        )
    assert found.high - found.low < Fraction(1, 10**25)
    best = code_bound(PLANES, letters=letters, length=length, centred=centred)
    assert best.is_converged
    assert float(best.value) <= float(found) + 1e-8


# ---- what may go wrong ----


def gives_up(count: int) -> Callable[[FloatArray], object]:
    """A solver that fails after so many games."""
    right, done = solve_game, 0

    def solve(payoffs: FloatArray) -> object:
        nonlocal done
        done += 1
        if done > count:
            raise SolverError("linear program of 3 rows and 3 atoms met numerical difficulties")
        return right(payoffs)

    return solve


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 6])
def test_a_solver_that_gives_up_is_told(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    right = optimal_code(BASE, letters=5, length=12)
    monkeypatch.setattr(code_search, "solve_game", gives_up(count))
    found = optimal_code(BASE, letters=5, length=12)
    assert "the search ended early: linear program" in found.status
    assert found.single_margin.low <= found.margin.low <= right.margin.high
    assert found.upper_bound == right.upper_bound
    assert found.gap >= right.gap - 1e-9
    monkeypatch.setattr(bounds, "solve_game", gives_up(0))
    loose = code_bound(BASE, letters=5, length=12, centred=True)
    assert not loose.is_converged
    assert loose.value.high >= right.margin.low
    monkeypatch.setattr(codes, "code_bound", lambda *_, **__: loose)
    assert "the bound was still falling" in optimal_code(BASE, letters=5, length=12).status


def test_rounds_that_run_out_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_search, "MAX_ROUNDS", 1)
    monkeypatch.setattr(code_search, "TOLERANCE", -1.0)
    found = optimal_code(BASE, letters=5, length=40)
    assert "the weights were still growing after 1 rounds" in found.status


REFUSED: list[tuple[str, Callable[[], OptimalCode], type[Exception], str]] = [
    ("one letter", lambda: optimal_code(BASE, letters=1, length=9), InvalidInputError, "letters 1 must be at least 2"),
    ("length 1", lambda: optimal_code(BASE, letters=4, length=1), InvalidInputError, "length 1 must be at least 2"),
    ("no plane", lambda: optimal_code(BASE, letters=4, length=9, max_planes=0), InvalidInputError, "max_planes 0"),
    ("many letters", lambda: optimal_code(BASE, letters=5000, length=9), UnsupportedError, "up to 4096 letters"),
    ("length", lambda: optimal_code(BASE, letters=100, length=10**8), UnsupportedError, "here length 2000000; got"),
]


@pytest.mark.parametrize(("make", "error", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(make: Callable[[], OptimalCode], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


# ---- faults ----


def simplex_reaches_the_bound() -> None:
    """Three letters on one plane are a simplex: its margin, by the definition, is the bound itself."""
    length, theta = 7, np.array([0.05])
    keys = np.exp(2j * np.pi * np.arange(3) / 3)[:, None]
    margin = worst_of(keys, keys, theta, length, (length - 1) / 2)
    bound = code_bound(turning("0.05"), letters=3, length=length, centred=True)
    assert margin <= bound.value.high
    assert bound.value.high - Fraction(margin) < Fraction(1, 5)
    assert code_bound(turning("1e-6"), letters=3, length=length, centred=True).value.high >= Fraction(14999999, 10**7)


def one_circle_reaches_its_bound() -> None:
    length = 6
    keys = np.exp(2j * np.pi * np.arange(7) / 7)[:, None]
    bound = few_planes_bound(turning("0.05"), letters=7, length=length, centred=True, planes=1)
    assert bound is not None
    margin = worst_of(keys, keys, np.array([0.05]), length, (length - 1) / 2)
    assert margin <= bound.high + 1e-15
    assert bound.high <= margin + 1e-12


def found_at_its_rows() -> None:
    """The margin that the search believes in is the engine's."""
    best = optimal_code(BASE, letters=4, length=12)
    slow = codes._slow_planes(BASE, 12, Fraction(11, 2))
    task = code_search.Task(spectrum=BASE, letters=4, length=12, centre=Fraction(11, 2), planes=slow)
    code, _ = code_search.best_code(task)
    assert code is not None
    assert abs(code.margin - float(best.margin)) <= 1e-9


def one_letter_less(patch: pytest.MonkeyPatch) -> None:
    """Simplices of one corner more."""
    right = bounds.enclosed_code_bound
    patch.setattr(
        bounds, "enclosed_code_bound", lambda spectrum, letters, **more: right(spectrum, letters=letters + 1, **more)
    )


def wrong_centre(patch: pytest.MonkeyPatch) -> None:
    """The middle of the window taken at n/2 in the bound of one plane."""
    right = bounds.few_planes_bound
    patch.setitem(
        globals(), "few_planes_bound", lambda spectrum, length, **more: right(spectrum, length=length + 1, **more)
    )


def second_first(patch: pytest.MonkeyPatch) -> None:
    """The search takes the second strongest rival of a query that looks for itself for the strongest."""
    right = code_search._two_largest

    def swapped(
        values: FloatArray, places: IntArray, more: FloatArray, distances: IntArray
    ) -> tuple[FloatArray, IntArray]:
        found, where = right(values, places, more, distances)
        return found[:, ::-1], where[:, ::-1]

    patch.setattr(code_search, "_two_largest", swapped)


FAULTS = [
    (simplex_reaches_the_bound, one_letter_less),
    (one_circle_reaches_its_bound, wrong_centre),
    (found_at_its_rows, second_first),
]


@pytest.mark.slow
@pytest.mark.parametrize(("check", "fault"), FAULTS, ids=[fault.__name__ for _, fault in FAULTS])
def test_faults_are_caught(check: Callable[[], None], fault: Callable[[pytest.MonkeyPatch], None]) -> None:
    check()
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        with pytest.raises(AssertionError):
            check()


@pytest.mark.slow
def test_real_rotations() -> None:
    """8, 26 and 120 letters at real lengths: the shape of what is gained."""
    spectrum = ropegeo.preset("llama-3.1-8b")
    for letters, most in ((8, 1e-5), (26, 1e-3), (120, 0.1)):
        best = optimal_code(spectrum, letters=letters, length=8192)
        assert best.status == "converged"
        assert best.gap < most
        assert float(best.margin) > 3 * float(best.single_margin)
        theta = np.array([float(spectrum.inv_freq[k]) for k in best.planes])
        ends = Brute(letters, list(zip(theta.tolist(), best.weights, best.multipliers, strict=True)), 8191 / 2)
        assert float(best.margin) <= ends.logit(0, 0) - max(ends.logit(s, 8191) for s in range(1, letters)) + 1e-12

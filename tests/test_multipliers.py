"""Letter heads whose planes code letters several steps apart: every formula against sums written out here."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from letter_oracle import Brute
from oracles import mp_fraction

import ropegeo
from ropegeo.engine import letter_exact, letter_window
from ropegeo.engine.softmax import retrieval_log_sum
from ropegeo.engine.trust import first_failing_length
from ropegeo.errors import InvalidInputError
from ropegeo.heads import LetterProfile
from ropegeo.spectrum import RopeSpectrum

SPECTRUM = RopeSpectrum.from_base(100, head_dim=6)
ANGLES = [100.0 ** (-2 * k / 6) for k in range(3)]


def made(
    letters: int, multipliers: tuple[int, ...], seed: int = 0, twice: int = 0, own: bool = False
) -> tuple[LetterProfile, list[float]]:
    """A profile of three planes, and its weights."""
    weights = np.random.default_rng(seed).uniform(0.1, 1, size=3)
    profile = LetterProfile(
        spectrum=SPECTRUM,
        weights=weights,
        letters=letters,
        centre=Fraction(twice, 2),
        self_only=own,
        multipliers=multipliers,
    )
    return profile, weights.tolist()


three = st.tuples(*[st.integers(1, 11)] * 3)


@given(st.integers(2, 9), three, st.integers(-20, 20), st.integers(0, 10**9), st.integers(0, 10**6), st.integers(0, 99))
@settings(max_examples=12)
def test_logits_by_definition(
    letters: int, multipliers: tuple[int, ...], shift: int, d: int, twice: int, seed: int
) -> None:
    profile, weights = made(letters, multipliers, seed, twice)
    with mpmath.workdps(50):
        truth = mpmath.fsum(
            mp_fraction(w)
            * mpmath.cos(
                2 * mpmath.pi * m * shift / letters
                + mp_fraction(Fraction(2 * d - twice, 2)) * mpmath.mpf(100) ** (mpmath.mpf(-2 * k) / 6)
            )
            for k, (w, m) in enumerate(zip(weights, multipliers, strict=True))
        )
        at = np.array([[d]])
        assert abs(mp_fraction(float(profile.logit(shift, at)[0, 0])) - truth) <= profile.abs_error
        assert abs(mp_fraction(float(profile.logits(at)[shift % letters, 0, 0])) - truth) <= profile.abs_error
        assert abs(mp_fraction(float(profile.profile(shift).logit(at)[0, 0])) - truth) <= 2 * profile.abs_error
    assert profile.logits(at).shape == (letters, 1, 1)


def test_logits_of_no_active_plane_and_of_many_kinds() -> None:
    nothing = LetterProfile(spectrum=SPECTRUM, weights=np.zeros(3), letters=4)
    assert (nothing.logits(np.arange(3)) == 0).all()
    many = RopeSpectrum.from_base(10000, head_dim=400)
    profile = LetterProfile(spectrum=many, weights=np.ones(200), letters=401, multipliers=tuple(range(1, 201)))
    assert profile.abs_error > 200 * 2e-14
    d = np.array([0, 5, 1000])
    assert np.abs(profile.logits(d)[7] - profile.logit(7, d)).max() <= 2 * profile.abs_error


@pytest.mark.parametrize("centre_length", [None, 9])
def test_the_matrices_have_these_logits(centre_length: int | None) -> None:
    """Every pair of tokens of a built head, to 1e-12."""
    letters, steps = ("a", "b", "c", "d", "e", "f"), (1, 3, 4)
    built = ropegeo.retrieval_head(
        SPECTRUM,
        letters=letters,
        integers=(1,),
        planes=(0, 1, 2),
        weights=(0.5, 0.3, 0.2),
        multipliers=steps,
        centre_length=centre_length,
        beta=2.0,
    )
    profile = built.profile
    assert isinstance(profile, LetterProfile)
    assert profile.multipliers == steps
    d = np.arange(0, 40, 3)
    for (q, query), (k, key) in itertools.product(enumerate(built.tokens), enumerate(built.tokens)):
        if (q + 3 * k) % 17:
            continue
        assert isinstance(query, ropegeo.Bigram)
        assert isinstance(key, ropegeo.Bigram)
        sought = query.right if isinstance(query.right, str) else query.left
        centred = profile if isinstance(query.right, str) else replace(profile, centre=Fraction(0))
        shift = letters.index(key.left) - letters.index(sought)
        found = built.head.profile(built.embedding[q], built.embedding[k]).logit(d)
        assert np.abs(found - centred.logit(shift, d)).max() <= 1e-12


@given(st.integers(2, 6), three, st.integers(2, 12), st.integers(0, 12), st.integers(0, 99), st.booleans())
@settings(max_examples=10)
def test_several_planes(letters: int, multipliers: tuple[int, ...], n: int, twice: int, seed: int, own: bool) -> None:
    profile, weights = made(letters, multipliers, seed, 0 if own else twice, own)
    brute = Brute(letters, list(zip(ANGLES, weights, multipliers, strict=True)), 0 if own else twice / 2, own)
    point = ropegeo.margin_curve(profile, [n]).points[0]
    assert abs(float(point.worst) * sum(weights) - min(brute.margins(n))) <= 1e-12
    assert point.best is not None
    assert abs(float(point.best) * sum(weights) - brute.best(n)) <= 1e-12
    if not own:
        logs = retrieval_log_sum(profile, n, 3.0), brute.log_sum(n, 3.0 / sum(weights))
        assert abs(logs[0] - logs[1]) <= 1e-11


@pytest.mark.slow
def test_streamed_and_definition() -> None:
    profile, _ = made(7, (2, 3, 2), twice=50)
    swept, defined = (
        ropegeo.margin_curve(profile, [5000], route=route).points[0] for route in ("streamed", "definition")
    )
    for one, other in ((swept.worst, defined.worst), (swept.best, defined.best)):
        assert one is not None
        assert other is not None
        assert one.low <= other.high
        assert other.low <= one.high


TURNS = {"1": 1.0, "0.11": 0.11, "2/7 turn": 4 * math.pi / 7, "1/3 turn": 2 * math.pi / 3, "1 turn": 2 * math.pi}


@given(
    st.sampled_from(sorted(TURNS)),
    st.integers(2, 12),
    st.integers(1, 14),
    st.integers(2, 25),
    st.integers(0, 30),
    st.booleans(),
)
@settings(max_examples=12)
@example("0.11", 8, 3, 20, 0, False)  # as good as multiplier 1
@example("0.11", 8, 2, 20, 5, False)  # letters 4 apart share a code
@example("0.11", 8, 8, 20, 0, False)  # all letters do
@example("1/3 turn", 6, 4, 9, 0, True)
def test_one_plane_exactly(angle: str, letters: int, multiplier: int, n: int, twice: int, own: bool) -> None:
    centre = Fraction(0 if own else twice, 2)
    profile = LetterProfile(
        spectrum=RopeSpectrum.from_angle(angle),
        weights=np.ones(1),
        letters=letters,
        centre=centre,
        self_only=own,
        multipliers=(multiplier,),
    )
    brute = Brute(letters, [(TURNS[angle], 1.0, multiplier)], float(centre), own)
    point = ropegeo.margin_curve(profile, [n]).points[0]
    assert point.method in ("closed_form", "first_return")
    assert abs(float(point.worst) - min(brute.margins(n))) <= 1e-12
    assert point.best is not None
    assert abs(float(point.best) - brute.best(n)) <= 1e-12
    if math.gcd(multiplier, letters) > 1 and not own:
        assert point.worst.sign != 1


@given(st.sampled_from(sorted(TURNS)), st.integers(2, 9), st.integers(1, 10), st.integers(0, 9), st.booleans())
@settings(max_examples=15)
def test_first_failing_length(angle: str, letters: int, multiplier: int, twice: int, own: bool) -> None:
    centre = Fraction(0 if own else twice, 2)
    profile = LetterProfile(
        spectrum=RopeSpectrum.from_angle(angle),
        weights=np.ones(1),
        letters=letters,
        centre=centre,
        self_only=own,
        multipliers=(multiplier,),
    )
    brute = Brute(letters, [(TURNS[angle], 1.0, multiplier)], float(centre), own)
    right = next((n for n in range(2, 60) if min(brute.margins(n)) <= 1e-9), None)
    assert first_failing_length(profile) == right


Check = Callable[[], None]


def several() -> None:
    """Several planes where the uncentred query is the worst one."""
    profile, weights = made(7, (1, 2, 3), twice=1)
    brute = Brute(7, list(zip(ANGLES, weights, (1, 2, 3), strict=True)), 0.5)
    margins = brute.margins(2)
    assert margins[-1] < min(margins[:-1]) - 1e-3
    worst = ropegeo.margin_curve(profile, [2]).points[0].worst
    assert abs(float(worst) * sum(weights) - margins[-1]) <= 1e-12


def one() -> None:
    """One plane on which letters 4 apart share a code."""
    profile = LetterProfile(spectrum=RopeSpectrum.from_angle("0.11"), weights=np.ones(1), letters=8, multipliers=(2,))
    point = ropegeo.margin_curve(profile, [6], route="first_return").points[0]
    assert abs(float(point.worst) - min(Brute(8, [(0.11, 1.0, 2)]).margins(6))) <= 1e-12
    assert first_failing_length(profile) == 2


def steps_of_one(patch: pytest.MonkeyPatch) -> None:
    """Every plane codes letters one step apart."""
    patch.setattr(LetterProfile, "_kinds", property(lambda self: ((1, np.array(self.active_planes)),)))


def lost_by_the_uncentred(patch: pytest.MonkeyPatch) -> None:
    """The query that looks for itself forgets the multipliers."""
    patch.setattr(
        letter_window,
        "replace",
        lambda profile, **_: LetterProfile(spectrum=profile.spectrum, weights=profile.weights, letters=profile.letters),
    )


def no_common_factor(patch: pytest.MonkeyPatch) -> None:
    """Every multiplier is taken to give each letter its own code."""
    patch.setattr(letter_exact, "gcd", lambda *_: 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "fault"),
    [(several, steps_of_one), (several, lost_by_the_uncentred), (one, no_common_factor)],
)
def test_faults_are_caught(check: Check, fault: Callable[[pytest.MonkeyPatch], None]) -> None:
    check()
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        with pytest.raises(AssertionError):
            check()


@pytest.mark.parametrize(
    ("multipliers", "message"),
    [((1, 2), "needs 3 multipliers, each at least 1"), ((1, 0, 1), "each at least 1")],
)
def test_refusals(multipliers: tuple[int, ...], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        made(5, multipliers)

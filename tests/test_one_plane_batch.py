"""Many one-plane margins at once against mpmath, in and out of the range of the compiled digits."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import oracles
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import Real, mp_fraction

from ropegeo.engine import diophantine, one_plane_batch, one_plane_kernels
from ropegeo.engine.one_plane_batch import RELATIVE_ERROR, one_plane_margins
from ropegeo.errors import InvalidInputError


def truth(angle: float, reach: int) -> Real:
    """2 sin(pi ||q alpha||)^2 at the last convergent: plain continued fraction of an mpmath number."""
    exact = Fraction(angle)
    digits = 3 * len(str(reach)) + 60 + abs(math.frexp(angle)[1])
    with mpmath.workdps(digits):
        alpha = mp_fraction(exact) / (2 * mpmath.pi)
        alpha -= mpmath.floor(alpha)
        q_before, q, rest = 0, 1, alpha
        while True:
            rest = 1 / rest
            quotient = int(mpmath.floor(rest))
            rest -= quotient
            q_before, q = q, quotient * q + q_before
            if q > reach:
                turns = q_before * alpha
                return 2 * mpmath.sin(mpmath.pi * (turns - mpmath.nint(turns))) ** 2


def is_right(margin: float, angle: float, reach: int) -> bool:
    right = truth(angle, reach)
    with mpmath.workdps(60):
        return bool(abs(mp_fraction(margin) - right) <= RELATIVE_ERROR * right)


ANGLES = st.floats(1e-9, 7) | st.floats(5e-324, 1.7e308) | st.sampled_from([math.pi, 2 * math.pi, math.pi / 2, 1.0])
REACHES = st.integers(0, 100).flatmap(lambda bits: st.integers(1 << max(bits - 1, 0), 1 << bits)) | st.integers(1, 9)


@given(st.lists(st.tuples(ANGLES, REACHES), min_size=1, max_size=20))
@settings(max_examples=25)
@example([(5e-324, 1), (1.7e308, 10**30), (1e300, 7), (1e-60, 10**30), (2.0, 1 << 120), (2.0, (1 << 120) - 1)])
@example([(3.3e-17, 1 << 62), (2 * math.pi, 10**30), (math.pi, 10**17), (1.0, 709), (1.0, 710), (1.0, 10**60)])
def test_margins_are_right(pairs: list[tuple[float, int]]) -> None:
    margins = one_plane_margins([angle for angle, _ in pairs], [reach for _, reach in pairs])
    for margin, (angle, reach) in zip(margins.tolist(), pairs, strict=True):
        if truth(angle, reach) > 1e-300:  # below that a double has no 53 bits
            assert is_right(margin, angle, reach), (angle, reach)


def test_definition_at_small_reaches() -> None:
    rng = np.random.default_rng(5)
    angles, reaches = rng.uniform(1e-3, 7, size=40), rng.integers(1, 60, size=40)
    with mpmath.workdps(40):
        for angle, reach, margin in zip(angles, reaches, one_plane_margins(angles, reaches), strict=True):
            right = min(oracles.gap_at(oracles.constant(float(angle)), t) for t in range(1, int(reach) + 1))
            assert abs(mp_fraction(float(margin)) - right) <= RELATIVE_ERROR * right


def test_kinds_of_reaches_agree() -> None:
    angles = np.array([1.0, 0.3, 2.0])
    whole = [7, 10**6, 2**52]
    right = one_plane_margins(angles, whole)
    for given_reaches in (
        np.array(whole),
        np.array(whole, dtype=np.uint64),
        np.array(whole, dtype=np.int32 if max(whole) < 2**31 else np.int64),
        np.array(whole, dtype=float),
        np.array(whole, dtype=object),
        [7.0, 1e6, 2.0**52],
    ):
        assert (one_plane_margins(angles, given_reaches) == right).all()
    assert one_plane_margins([1.0], [1e30])[0] == one_plane_margins([1.0], [int(1e30)])[0]
    assert one_plane_margins([], []).shape == (0,)


@pytest.mark.parametrize(
    ("angles", "reaches"),
    [
        ([0.0], [1]),
        ([-1.0], [1]),
        ([math.nan], [1]),
        ([math.inf], [1]),
        ([1.0], [0]),
        ([1.0], [-(10**40)]),
        ([1.0], [1.5]),
        ([1.0], [math.nan]),
        ([1.0], [math.inf]),
        ([1.0, 2.0], [3]),
    ],
)
def test_bad_pairs_are_refused(angles: list[float], reaches: list[Any]) -> None:
    with pytest.raises(InvalidInputError, match="one_plane_margins"):
        one_plane_margins(angles, reaches)


def test_most_pairs_take_the_compiled_route(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the others the certified one: NaN marks them, and nothing else may."""
    asked = []
    certified = diophantine.one_plane_staircase

    def counted(angle: Any, reach: int) -> Any:
        asked.append(reach)
        return certified(angle, reach)

    monkeypatch.setattr(one_plane_batch, "one_plane_staircase", counted)
    rng = np.random.default_rng(6)
    reaches = [int(10.0**u) for u in rng.uniform(0, 30, size=500)]
    one_plane_margins(np.exp(rng.uniform(-14, 2, size=500)), reaches)
    assert not asked
    one_plane_margins([1.0, 1e-60], [1 << 121, 10**30])
    assert asked == [1 << 121, 10**30]


def test_a_lost_digit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in 1/(2 pi), sixty digits in, shows."""
    digits = one_plane_batch.inverse_turn_digits().copy()
    digits[one_plane_kernels.PLACES + one_plane_kernels.EXTRA + 6] ^= 1
    monkeypatch.setattr(one_plane_batch, "inverse_turn_digits", lambda: digits)
    assert not is_right(float(one_plane_margins([1.0], [10**30])[0]), 1.0, 10**30)

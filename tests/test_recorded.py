"""Margins of recorded queries and keys against the whole matrix, written out."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import ml_dtypes
import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropegeo.engine import recorded, recorded_input, recorded_kernels, recorded_walk
from ropegeo.engine.recorded import RecordedMargins, recorded_margins
from ropegeo.errors import FileFormatError, InvalidInputError
from ropegeo.spectrum import Layout, RopeSpectrum

BASE = 100
EPS = 2.0**-53
ARRAYS = ("top", "second", "margin", "target_weight", "entropy", "log_sum_exp", "top_at", "second_at", "abs_error")


def spectrum_of(
    head_dim: int = 8, rotary_dim: int | None = None, layout: Layout = "half", factor: float = 1.0
) -> RopeSpectrum:
    plain = RopeSpectrum.from_base(BASE, head_dim=head_dim, rotary_dim=rotary_dim, layout=layout)
    return RopeSpectrum(angles=plain.angles, head_dim=head_dim, layout=layout, attention_factor=factor)


def normal(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


# ---- the oracle: nothing of ours ----


def turned(x: Any, position: int, rotary_dim: int, layout: str, factor: float) -> list[Any]:
    """One vector turned pair by pair, in the arithmetic of mpmath."""
    out = [mpmath.mpf(float(value)) for value in x]
    for plane in range(rotary_dim // 2):
        a, b = (2 * plane, 2 * plane + 1) if layout == "interleaved" else (plane, plane + rotary_dim // 2)
        angle = position * mpmath.mpf(BASE) ** (-mpmath.mpf(2 * plane) / rotary_dim)
        c, s = factor * mpmath.cos(angle), factor * mpmath.sin(angle)
        out[a], out[b] = out[a] * c - out[b] * s, out[a] * s + out[b] * c
    return out


def exact_logits(q: Any, k: Any, q_at: Any, k_at: Any, spectrum: RopeSpectrum, scale: float) -> Any:
    """Every logit, visible or not, correct to the last bit of a double."""
    shape = (spectrum.rotary_dim, spectrum.layout, spectrum.attention_factor)
    with mpmath.workdps(40):
        left = [turned(x, int(p), *shape) for x, p in zip(q, q_at, strict=True)]
        right = [turned(x, int(p), *shape) for x, p in zip(k, k_at, strict=True)]
        return np.array([[float(scale * mpmath.fdot(x, y)) for y in right] for x in left])


def expected(row: Any, k_at: Any, seen: Any, target: int) -> dict[str, float]:
    """What one query sees, from its logits, by sorting."""
    order = sorted((j for j in range(len(row)) if seen[j]), key=lambda j: (-row[j], j))
    nan, inf = math.nan, math.inf
    if not order:
        return {"top": -inf, "second": -inf, "margin": nan, "target_weight": nan, "entropy": nan, "log_sum_exp": -inf}
    top = float(row[order[0]])
    second = float(row[order[1]]) if len(order) > 1 else -inf
    total = math.fsum(math.exp(row[j] - top) for j in order)
    weights = [math.exp(row[j] - top) / total for j in order]
    wanted = [j for j in order if k_at[j] == target]
    others = [row[j] for j in order if k_at[j] != target]
    margin = top - second
    if wanted:
        margin = float(row[wanted[0]] - max(others)) if others else inf
    return {
        "top": top,
        "second": second,
        "margin": margin,
        "target_weight": math.exp(row[wanted[0]] - top) / total if wanted else nan,
        "entropy": -math.fsum(w * math.log(w) for w in weights if w),
        "log_sum_exp": top + math.log(total),
    }


def bounds(found: RecordedMargins) -> dict[str, Any]:
    return {
        "top": found.abs_error,
        "second": found.abs_error,
        "margin": found.margin_error,
        "target_weight": found.target_weight_error,
        "entropy": found.entropy_error,
        "log_sum_exp": found.log_sum_exp_error,
    }


def check(
    found: RecordedMargins,
    logits: Any,
    *,
    q_at: Any,
    k_at: Any,
    targets: Any,
    window: int | None = None,
    mask: Any = None,
) -> None:
    """Every number within its own bound of the expected one, plus a few roundings of the oracle's doubles."""
    for i, row in enumerate(logits):
        seen = [
            k_at[j] <= q_at[i] and (window is None or q_at[i] - k_at[j] < window) and (mask is None or mask[j])
            for j in range(len(row))
        ]
        assert found.visible[i] == sum(seen)
        for name, value in expected(row, k_at, seen, targets[i]).items():
            got = float(getattr(found, name)[i])
            slack = 64 * EPS * (1 + abs(value)) if math.isfinite(value) else 0.0
            same = got == value or (math.isnan(got) and math.isnan(value))
            assert same or abs(got - value) <= float(bounds(found)[name][i]) + slack, (name, i, got, value)
        for at, logit in ((found.top_at[i], found.top[i]), (found.second_at[i], found.second[i])):
            if at < 0:
                assert logit == -math.inf
            else:
                (j,) = np.flatnonzero(k_at == at)
                assert seen[j]
                assert abs(row[j] - logit) <= found.abs_error[i] + 64 * EPS * abs(logit)
        assert found.top_at[i] != found.second_at[i] or found.top_at[i] == -1
        if found.tied[i]:
            assert abs(expected(row, k_at, seen, targets[i])["margin"]) <= 64 * EPS * abs(found.top[i])
        sign = {"wins": 1, "fails": -1}.get(str(found.status[i]))
        if sign is not None:
            assert np.sign(expected(row, k_at, seen, targets[i])["margin"]) == sign


def scene(draw: Any) -> tuple[dict[str, Any], Any, Any]:
    """A call of `recorded_margins` and the keyword arguments that say the same to `check`."""
    n = draw(st.integers(1, 14))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    head_dim = draw(st.sampled_from([2, 5, 8]))
    rotary_dim = draw(st.sampled_from([w for w in (2, 4, 8) if w <= head_dim]))
    spectrum = spectrum_of(
        head_dim, rotary_dim, draw(st.sampled_from(["half", "interleaved"])), draw(st.sampled_from([1.0, 1.25]))
    )
    spread = draw(st.integers(0, 3))
    k_at = np.cumsum(rng.integers(1, 2 + spread, size=n)) - 1
    if draw(st.booleans()):
        q_at, given_q_at = k_at, None
    else:
        pool = np.arange(k_at[-1] + 4)
        q_at = np.sort(rng.choice(pool, size=draw(st.integers(1, len(pool))), replace=False))
        given_q_at = q_at
    q = rng.normal(size=(len(q_at), head_dim)) * draw(st.sampled_from([0.1, 1.0, 6.0]))
    k = rng.normal(size=(n, head_dim))
    kind = draw(st.sampled_from(["float16", "float32", "float64"]))
    q, k = q.astype(kind), k.astype(kind)
    window = draw(st.none() | st.integers(1, 12))
    mask = rng.random(n) < 0.7 if draw(st.booleans()) else None
    if mask is not None:
        mask[draw(st.integers(0, n - 1))] = True
    targets = np.full(len(q_at), -1)
    if draw(st.booleans()):
        for i, p in enumerate(q_at):
            visible = (k_at <= p) & (p - k_at < (window or p + 1)) & (True if mask is None else mask)
            if visible.any() and rng.random() < 0.8:
                targets[i] = rng.choice(k_at[visible])
    scale = draw(st.none() | st.just(0.7))
    call = {
        "q": q,
        "k": k,
        "spectrum": spectrum,
        "scale": scale,
        "targets": targets,
        "positions": k_at,
        "query_positions": given_q_at,
        "window": window,
        "key_mask": mask,
        "precision": draw(st.sampled_from([None, "float32", "float64"])),
        "threads": draw(st.sampled_from([1, 2])),
    }
    logits = exact_logits(q, k, q_at, k_at, spectrum, 1 / math.sqrt(head_dim) if scale is None else scale)
    return call, logits, {"q_at": q_at, "k_at": k_at, "targets": targets, "window": window, "mask": mask}


@given(st.data(), st.integers(1, 9), st.integers(1, 9))
@settings(max_examples=30)
def test_the_whole_matrix(data: st.DataObject, query_block: int, key_block: int) -> None:
    """Any lengths, windows, masks, types, layouts and targets, with blocks of any shape."""
    call, logits, said = scene(data.draw)
    with patch.multiple(recorded_walk, QUERY_BLOCK=query_block, KEY_BLOCK=key_block, ROTATE_ROWS=3):
        found = recorded_margins(**call)
    check(found, logits, **said)
    assert found.method == "recorded"
    is_double = (call["precision"] or ("float64" if call["q"].dtype == np.float64 else "float32")) == "float64"
    assert found.precision == ("float64" if is_double else "float32")


@pytest.mark.parametrize("window", [None, 1, 255, 256, 257])
def test_real_blocks(window: int | None) -> None:
    """600 queries cross the blocks' own edges; the matrix in plain numpy, positions small enough for its phases."""
    n, d = 600, 16
    q, k = normal(1, n, d), normal(2, n, d)
    spectrum = spectrum_of(d)
    angle = np.arange(n)[:, None] * BASE ** (-np.arange(d // 2) * 2 / d)
    cos, sin = np.cos(angle), np.sin(angle)

    def turn(x: Any) -> Any:
        a, b = x[:, : d // 2], x[:, d // 2 :]
        return np.hstack([a * cos - b * sin, a * sin + b * cos])

    logits = turn(q) @ turn(k).T / 4
    oracle_error = 4 * (n + d) * EPS * np.linalg.norm(q, axis=1).max() * np.linalg.norm(k, axis=1).max()
    distance = np.arange(n)[:, None] - np.arange(n)
    logits[(distance < 0) | (distance >= (window or n))] = -np.inf
    top = logits.max(axis=1)
    second = np.sort(logits, axis=1)[:, -2]
    weights = np.exp(logits - top[:, None])
    for precision in ("float32", "float64"):
        found = recorded_margins(q, k, spectrum, window=window, precision=precision)
        assert (np.abs(found.top - top) <= found.abs_error + oracle_error).all()
        some = np.isfinite(second)
        assert (found.second[~some] == -np.inf).all()
        assert (np.abs(found.second[some] - second[some]) <= found.abs_error[some] + oracle_error).all()
        log_sum = top + np.log(weights.sum(axis=1))
        assert (np.abs(found.log_sum_exp - log_sum) <= found.log_sum_exp_error + oracle_error).all()
        assert found.abs_error.max() < (1e-4 if precision == "float32" else 1e-12)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_far_positions(layout: Layout) -> None:
    """Only distance counts: the phases of positions near 2**61 are those of positions near 0."""
    q, k = normal(3, 9, 8), normal(4, 9, 8)
    spectrum = spectrum_of(layout=layout)
    near = recorded_margins(q, k, spectrum)
    far = recorded_margins(q, k, spectrum, positions=2**61 + np.arange(9))
    assert (np.abs(near.margin[1:] - far.margin[1:]) <= near.margin_error[1:] + far.margin_error[1:]).all()
    assert (far.top_at - 2**61 == near.top_at).all()


# ---- one key, no key, ties ----


def test_a_single_key() -> None:
    """Public case 65: one finite logit among hidden ones has entropy 0 and no NaN."""
    found = recorded_margins(
        5 * np.ones((3, 2)), np.ones((3, 2)), spectrum_of(2), window=1, targets=np.array([0, -1, 2])
    )
    assert found.status.tolist() == ["only"] * 3
    assert found.entropy.tolist() == [0, 0, 0]
    assert found.second.tolist() == [-math.inf] * 3
    assert found.second_at.tolist() == [-1] * 3
    assert found.margin.tolist() == [math.inf] * 3
    assert found.target_weight[[0, 2]].tolist() == [1, 1]
    assert np.isnan(found.target_weight[1])
    assert (found.log_sum_exp == found.top).all()


def test_no_key() -> None:
    """Left padding: the queries of the padding see nothing, and say so."""
    k = np.ones((4, 2))
    k[:2] = np.nan  # masked keys may hold anything
    found = recorded_margins(np.ones((4, 2)), k, spectrum_of(2), key_mask=np.array([False, False, True, True]))
    assert found.status.tolist() == ["none", "none", "only", "wins"]
    assert np.isnan(found.margin[:2]).all()
    assert np.isnan(found.entropy[:2]).all()
    assert found.log_sum_exp[:2].tolist() == [-math.inf] * 2
    assert found.top_at.tolist() == [-1, -1, 2, 3]


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_weights_that_vanish(precision: str) -> None:
    """Logits far apart, in either order: no NaN, and all the weight on one key."""
    size = 1e30 if precision == "float32" else 1e150
    spectrum = spectrum_of(4, 2)
    k = np.zeros((600, 4))
    k[:, 3] = [-size, size] * 300
    k[:300, 3] /= 2
    q = np.array([[0.0, 0, 0, 1]])
    found = recorded_margins(q, k, spectrum, query_positions=np.array([599]), scale=1.0, precision=precision)
    assert found.top_at[0] == 301
    assert found.entropy[0] == pytest.approx(math.log(150), abs=1e-4)
    assert found.status[0] == "tie"


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_equal_keys_that_do_not_turn_tie(kind: str) -> None:
    """Equal keys tie wherever they stand, also where BLAS gives their logits different last bits."""
    n, d = 700, 12
    spectrum = spectrum_of(d, 4)
    q, k = normal(5, n, d), normal(6, 1, d).repeat(n, axis=0)
    k[:, :4] = 0
    found = recorded_margins(q.astype(kind), k.astype(kind), spectrum)
    assert set(found.status[1:]) == {"tie"}
    assert (found.margin[1:] == 0).all()
    assert (np.abs(found.entropy - np.log(np.arange(1, n + 1))) <= found.entropy_error).all()
    aimed = recorded_margins(q, k, spectrum, targets=np.arange(n))
    assert set(aimed.status[1:]) == {"tie"}


def test_whole_turns_tie() -> None:
    """A quarter turn per position: equal keys four positions apart tie, those of an irrational angle do not."""
    k = np.zeros((9, 2))
    k[[0, 4, 8], 0] = 1
    q, at = np.array([[1.0, 0]]), np.array([8])
    assert recorded_margins(q, k, RopeSpectrum.from_angle("1/4 turn"), query_positions=at).status[0] == "tie"
    found = recorded_margins(q, k, RopeSpectrum.from_angle("pi/2+1e-12"), query_positions=at, precision="float32")
    assert found.status[0] == "undecided"
    aimed = recorded_margins(
        q, k, RopeSpectrum.from_angle("1/4 turn"), query_positions=at, targets=np.array([4]), precision="float32"
    )
    assert aimed.tied[0]
    assert aimed.margin[0] == 0
    assert aimed.target_weight[0] == pytest.approx(np.exp(2**-0.5) / (3 * np.exp(2**-0.5) + 6), abs=1e-6)


def test_a_query_of_zeros_ties() -> None:
    """All its logits are 0; in the last coordinate, where it is not, the keys are equal."""
    q, k = np.zeros((5, 5)), normal(13, 5, 5)
    assert recorded_margins(q, k, spectrum_of(5, 4)).status.tolist() == ["only", *["tie"] * 4]
    q[:, 4], k[:, 4] = 1, 0.1
    assert recorded_margins(q, k, spectrum_of(5, 4)).status.tolist() == ["only", *["tie"] * 4]
    k[:, 4] *= [1, 2, 3, 4, 5]
    assert recorded_margins(q, k, spectrum_of(5, 4)).status.tolist() == ["only", *["wins"] * 4]


STILL = RopeSpectrum.from_angle("1 turn")


@pytest.mark.parametrize(("precision", "small"), [("float32", 1e-5), ("float64", 1e-13)])
def test_an_exact_pair_below_a_third_key(precision: str, small: float) -> None:
    """Two equal keys in front by rounding; the third one scores more by small**2, less than the error."""
    q, k, at = np.array([[1, small]]), np.array([[1, 0], [1, 0], [1, small]]), np.array([2])
    call: dict[str, Any] = {"q": q, "spectrum": STILL, "scale": 1.0, "query_positions": at, "precision": precision}
    for targets in (None, [0], [1], [2]):
        found = recorded_margins(**call, k=k, targets=targets)
        assert found.status[0] == "undecided"
        assert not found.tied[0]
        assert abs(found.margin[0]) <= found.margin_error[0]
    equal = recorded_margins(**call, k=k[[0, 1, 0]])
    assert equal.status[0] == "tie"
    for target in (0, 1, 2):
        assert recorded_margins(**call, k=k[[0, 1, 0]], targets=[target]).status[0] == "tie"
    # Out of sight, by a mask or a window, the third key does not count.
    assert recorded_margins(**call, k=k, key_mask=np.array([True, True, False])).status[0] == "tie"
    assert recorded_margins(**call, k=k[[2, 0, 1]], window=2).status[0] == "tie"
    assert recorded_margins(**call, k=k[[2, 0, 1]], window=3).status[0] == "undecided"


def test_a_third_key_above_by_more_than_the_error() -> None:
    """In float64 the first case is decided."""
    q, k, at = np.array([[1, 1e-5]]), np.array([[1, 0], [1, 0], [1, 1e-5]]), np.array([2])
    assert recorded_margins(q, k, STILL, scale=1.0, query_positions=at).status[0] == "wins"
    assert recorded_margins(q, k, STILL, scale=1.0, query_positions=at, targets=[0]).status[0] == "fails"


def test_a_third_key_that_turns() -> None:
    """A third key near the top counts where the query is not 0; one that has turned by 1e-9 is no equal one."""
    quarter = RopeSpectrum(angles=RopeSpectrum.from_angle("1/4 turn").angles * 2, head_dim=4)
    wrong = RopeSpectrum(angles=(quarter.angles[0], RopeSpectrum.from_angle("pi/2+1e-9").angles[0]), head_dim=4)
    k = np.zeros((9, 4))
    k[[0, 4, 8], 0] = 1
    k[8, 1] = 1e-9
    at = np.array([8])
    for spectrum, query, status in (
        (quarter, [1.0, 0, 0, 0], "tie"),  # blind where the third key differs
        (wrong, [1.0, 0, 0, 0], "tie"),
        (quarter, [1.0, 1e-9, 0, 0], "undecided"),
    ):
        found = recorded_margins(np.array([query]), k, spectrum, query_positions=at, precision="float32")
        assert found.status[0] == status


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
def test_a_third_key_less_than_a_turn_away(kind: str) -> None:
    """The first two of three equal keys are a whole turn apart; the last one scores more by 1 - cos(1e-6 turns)."""
    million = RopeSpectrum.from_angle("1/1000000 turn")
    k = np.array([[1.0, 0]] * 3).astype(kind)
    at = np.array([0, 10**6, 10**6 + 1])
    found = recorded_margins(k[:1], k, million, positions=at, query_positions=at[2:])
    assert found.status[0] == "undecided"
    before = recorded_margins(k[:1], k[:2], million, positions=at[:2], query_positions=at[2:])
    assert before.status[0] == "tie"


@pytest.mark.parametrize("count", [3, 64, 100, 700])
def test_any_number_of_equal_keys_ties(count: int) -> None:
    """There is no limit on equal keys; one that differs where the query is not 0 undoes the tie, wherever it stands."""
    q = np.tile([1, 1e-5], (count, 1))
    k = np.tile([1.0, 0], (count, 1))
    assert set(recorded_margins(q, k, STILL, precision="float32").status[1:]) == {"tie"}
    for odd in (0, count // 2, count - 1):
        changed = k.copy()
        changed[odd, 1] = 1e-5
        status = recorded_margins(q, changed, STILL, precision="float32").status[1:]
        assert (status == "tie").tolist() == [i < odd for i in range(1, count)]
        assert set(status) <= {"tie", "undecided"}
    assert set(recorded_margins(q * 0, normal(16, count, 2), STILL).status[1:]) == {"tie"}


def fraction_margin(q: Any, k: Any, target: int) -> Fraction:
    """The margin of a query that sees every key, in exact arithmetic; nothing turns."""
    left, right = [Fraction(float(a)) for a in q], [[Fraction(float(b)) for b in key] for key in k]
    scores = [sum((a * b for a, b in zip(left, key, strict=True)), Fraction(0)) for key in right]
    if target < 0:
        first, second = sorted(scores)[:-3:-1]
        return first - second
    return scores[target] - max(score for j, score in enumerate(scores) if j != target)


def ties_check(seed: int, precision: str) -> None:
    """Keys from few values, some of them too small to be seen: what is said of the last query's sign holds exactly."""
    rng = np.random.default_rng(seed)
    small = 1e-5 if precision == "float32" else 1e-13
    said = set()
    for _ in range(100):
        n = int(rng.integers(2, 7))
        k = np.stack([rng.choice([1, 0, small], size=n, p=[0.7, 0.2, 0.1]), rng.choice([0, small, -small], size=n)], 1)
        q = np.array([[1, small], [small, 1], [1, 0], [0, 1], [0, 0]])[[rng.integers(5)]]
        target = int(rng.integers(-1, n))
        found = recorded_margins(q, k, STILL, scale=1.0, query_positions=[n - 1], targets=[target], precision=precision)
        truth = fraction_margin(q[0], k, target)
        said.add(str(found.status[0]))
        sign = {"wins": 1, "tie": 0, "fails": -1}.get(str(found.status[0]))
        assert sign is None or sign == (truth > 0) - (truth < 0), (q, k, target)
    assert said == {"wins", "tie", "fails", "undecided"}


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_signs_against_fractions(seed: int, precision: str) -> None:
    with patch.multiple(recorded_walk, QUERY_BLOCK=2, KEY_BLOCK=3, ROTATE_ROWS=2):
        ties_check(seed, precision)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_an_unproved_tie_is_caught(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the second walk left out, as before, the check against fractions fails."""
    monkeypatch.setattr(recorded_walk.Ties, "_unbeaten", lambda _, part, *__: np.ones(len(part), bool))
    with pytest.raises(AssertionError, match="array"):
        ties_check(0, precision)


def test_bfloat16() -> None:
    q, k = (normal(seed, 20, 8).astype(ml_dtypes.bfloat16) for seed in (14, 15))
    found = recorded_margins(q, k, spectrum_of())
    assert found.precision == "float32"
    assert np.array_equal(
        found.margin, recorded_margins(q.astype(np.float32), k.astype(np.float32), spectrum_of()).margin
    )


def test_undecided_within_the_error() -> None:
    """Two keys that differ in the last bit of float32 are not told apart, and said not to be."""
    k = np.zeros((2, 4))
    k[:, 2:] = 1
    k[1, 2] = 1 + 2.0**-23
    q = np.array([[0.0, 0, 1, 1]])
    for precision, status in (("float32", "undecided"), ("float64", "wins")):
        found = recorded_margins(q, k, spectrum_of(4, 2), query_positions=np.array([1]), precision=precision)
        assert found.status[0] == status
    assert found.top_at[0] == 1


def test_a_target_that_loses() -> None:
    q, k = normal(7, 40, 8), normal(8, 40, 8)
    plain = recorded_margins(q, k, spectrum_of())
    found = recorded_margins(q, k, spectrum_of(), targets=np.where(np.arange(40) > 0, plain.second_at, 0))
    assert set(found.status[1:]) == {"fails"}
    assert (found.margin[1:] == -plain.margin[1:]).all()
    assert (found.target_weight[1:] < 0.5).all()


# ---- threads and processes ----


def test_threads_do_not_matter() -> None:
    """Public case 67 too: two threads may call at once."""
    q, k = normal(9, 900, 16), normal(10, 900, 16)

    def call(threads: int) -> RecordedMargins:
        return recorded_margins(q, k, spectrum_of(16), targets=np.arange(900) // 2, threads=threads)

    once = call(1)
    with ThreadPoolExecutor(2) as pool:
        others = [call(2), call(3), *pool.map(call, [1, 2, 2, 2])]
    for other in others:
        for name in ARRAYS:
            assert np.array_equal(getattr(once, name), getattr(other, name), equal_nan=True), name


def test_float32_exponential() -> None:
    """The bound of `EXP_ERROR` half ulps, on 10**6 arguments and at the ends."""
    d = np.concatenate([-np.linspace(0, 87, 10**6), [-0.0, -1e-30, -math.log(2) / 2]]).astype(np.float32)
    part, moment = np.zeros_like(d), np.zeros_like(d)
    ends = np.zeros(1, np.int64), np.full(1, d.size)
    recorded_kernels.add_weights_single(d[None], *ends, np.zeros_like(d), part, moment)
    truth = np.exp(d.astype(np.float64))
    assert (np.abs(part / truth - 1)).max() <= recorded_kernels.EXP_ERROR * 2.0**-24
    far = np.full((1, 1), -1e30, np.float32)
    part, moment = np.zeros(1, np.float32), np.zeros(1, np.float32)
    recorded_kernels.add_weights_single(far, *ends[:1], np.ones(1, np.int64), np.zeros(1, np.float32), part, moment)
    assert 0 <= part[0] < 2e-38


# ---- faults ----


def small_check() -> None:
    q, k, at = normal(11, 7, 4), normal(12, 7, 4), np.arange(7)
    targets = np.array([0, 0, 2, 1, 3, 5, 4])
    found = recorded_margins(q, k, spectrum_of(4), targets=targets, window=3)
    check(found, exact_logits(q, k, at, at, spectrum_of(4), 0.5), q_at=at, k_at=at, targets=targets, window=3)


def late_mask(right: Any) -> Any:
    return lambda k_at, q_at, window: (right(k_at + 1, q_at, window)[0], right(k_at, q_at, window)[1])


def early_mask(right: Any) -> Any:
    return lambda k_at, q_at, window: (right(k_at - 1, q_at, window)[0], right(k_at, q_at, window)[1])


def wide_window(right: Any) -> Any:
    return lambda k_at, q_at, window: right(k_at, q_at, window + 1)


def nothing(*_: Any) -> None:
    return None


def test_a_small_check_holds() -> None:
    small_check()


@pytest.mark.parametrize("fault", [late_mask, early_mask, wide_window])
def test_a_shifted_mask_is_caught(fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "visible_queries", fault(recorded_walk.visible_queries))
    with pytest.raises(AssertionError):
        small_check()


@pytest.mark.parametrize("kernel", ["pick", "add_weights_double", "best_two", "rebase"])
def test_a_lost_step_is_caught(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_kernels, kernel, nothing)
    with pytest.raises(AssertionError), np.errstate(all="ignore"):
        small_check()


# ---- what is refused ----

GOOD = np.ones((3, 2))
AT = np.arange(3)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"q": np.ones(2)}, r"q must have shape \(rows, 2\)"),
        ({"k": np.ones((3, 4))}, r"k must have shape \(rows, 2\), head_dim of the spectrum; got \(3, 4\)"),
        ({"q": np.ones((0, 2))}, "q must have at least one row"),
        ({"k": np.ones((0, 2))}, "k must have at least one row"),
        ({"q": np.ones((3, 2), int)}, "q must be float16, .* got int64"),
        ({"k": np.ones((3, 2), complex)}, "k must be float16, .* got complex128"),
        ({"q": np.array([[1, 1], [1, np.nan], [np.inf, 1]])}, "q must be finite; row 1 "),
        ({"k": np.array([[1, 1], [1, 1], [np.inf, 1]])}, "k must be finite; row 2 "),
        (
            {"k": np.array([[1, 1], [1, 1], [np.inf, 1]]), "key_mask": np.array([False, True, True])},
            "k must be finite; row 2 ",
        ),
        ({"q": np.ones((2, 2))}, "2 queries and 3 keys: give query_positions"),
        ({"scale": math.nan}, "scale nan must be positive and finite"),
        ({"scale": math.inf}, "scale inf must be positive"),
        ({"scale": 0}, "scale 0.0 must be positive"),
        ({"targets": AT[:2]}, "targets must be 3 integers"),
        ({"targets": AT.astype(float)}, "targets must be 3 integers, one per row; got float64"),
        ({"targets": np.array([0, 2, 0])}, "target 2 of query 1, at position 1, comes after its query"),
        ({"targets": np.array([0, 0, 3])}, "target 3 of query 2, at position 2, is the position of no key"),
        ({"targets": np.array([0, -2, 0])}, "target -2 of query 1, at position 1, must be a position, or -1"),
        ({"targets": np.array([0, 0, 0]), "window": 2}, "target 0 of query 2, at position 2, lies outside the window"),
        (
            {"targets": np.array([-1, 0, -1]), "key_mask": np.array([False, True, True])},
            "target 0 of query 1, at position 1, is the position of no key, or of a masked one",
        ),
        ({"positions": np.array([0, 2, 2])}, "positions must increase from row to row; row 1 has 2, row 2 has 2"),
        ({"positions": np.array([-1, 2, 3])}, "positions must not be negative; row 0 has -1"),
        ({"positions": np.array([0, 1, 2**62])}, r"positions must be below 2\*\*62"),
        ({"positions": np.array([0.0, 1, 2])}, "positions must be 3 integers"),
        ({"query_positions": np.array([1, 0, 2])}, "query_positions must increase"),
        ({"window": 0}, "window 0 must be at least 1"),
        ({"window": True}, "window 0 must be at least 1"),
        ({"key_mask": AT}, "key_mask must be 3 booleans"),
        ({"key_mask": np.zeros(3, bool)}, "key_mask hides every key"),
        ({"precision": "float16"}, "precision 'float16' must be"),
        ({"threads": 0}, "threads 0 must be an integer"),
        ({"q": 1e30 * GOOD, "k": 1e30 * GOOD, "precision": "float32"}, "could exceed it; ask for precision='float64'"),
        ({"q": 1e300 * GOOD, "k": 1e300 * GOOD}, "could exceed it; give smaller vectors"),
    ],
)
def test_refused(change: dict[str, Any], says: str) -> None:
    call = {"q": GOOD, "k": GOOD, "spectrum": spectrum_of(2), **change}
    with pytest.raises(InvalidInputError, match=says) as caught:
        recorded_margins(**call)
    assert "\n" not in str(caught.value)


def test_words_for_numbers() -> None:
    """What the type checker of the tests would not let through."""
    with pytest.raises(InvalidInputError, match="scale must be a number"):
        recorded_input.logit_scale("x", spectrum_of(2))
    with pytest.raises(InvalidInputError, match="window must be an integer"):
        recorded_input.window_length(1.5)


NO_INTEGERS = """
import numpy as np
from ropegeo import InvalidInputError, RopeSpectrum, recorded_margins
for threads in ("2", 1.5, 0):
    try:
        recorded_margins(np.ones((3, 2)), np.ones((3, 2)), RopeSpectrum.from_base(100, head_dim=2), threads=threads)
    except InvalidInputError as error:
        print(error)
"""


def test_threads_that_are_no_integer() -> None:
    """In a process without the type checker of the tests."""
    run = subprocess.run([sys.executable, "-c", NO_INTEGERS], capture_output=True, text=True)
    assert run.stdout.splitlines() == [f"threads {said} must be an integer from 1 to 1024" for said in ("'2'", 1.5, 0)]


def test_arrays_are_read_only() -> None:
    found = recorded_margins(GOOD, GOOD, spectrum_of(2), window=2**70)
    for name in (*ARRAYS, "positions", "visible", "targets"):
        assert not getattr(found, name).flags.writeable


# ---- files ----


def written() -> tuple[RecordedMargins, dict[str, Any]]:
    """Queries with no key, one key and several, tied and not, with and without a target; and their dictionary."""
    k = np.ones((6, 2))
    k[4:] = [[1, 2], [3, 4]]
    mask = np.array([False, True, True, True, True, True])
    found = recorded_margins(np.ones((6, 2)), k, STILL, key_mask=mask, targets=[-1, 1, 2, -1, 1, 5])
    assert set(found.status) == {"none", "only", "tie", "wins", "fails"}
    return found, json.loads(json.dumps(found.to_dict(), allow_nan=False))


def test_round_trip() -> None:
    found, data = written()
    assert data["schema"] == "ropegeo.recorded_margins/1"
    assert data["unit"] == "logit"
    assert data["margin"][:3] == [None, "inf", 0.0]
    assert data["top"][0] == "-inf"
    assert data["top_at"][:2] == [-1, 1]
    again = RecordedMargins.from_dict(data)
    for name in (*ARRAYS, "positions", "visible", "targets", "tied", "status"):
        one, other = getattr(found, name), getattr(again, name)
        assert one.dtype == other.dtype
        assert np.array_equal(one, other, equal_nan=one.dtype == np.float64)
    assert not again.margin.flags.writeable
    assert again.to_dict() == data
    assert (again.precision, again.method, again.sum_error) == ("float64", "recorded", found.sum_error)


def test_round_trip_of_far_positions() -> None:
    found = recorded_margins(GOOD, GOOD, STILL, positions=2**61 + AT, precision="float32")
    again = RecordedMargins.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.positions.tolist() == [2**61, 2**61 + 1, 2**61 + 2]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("schema", "ropegeo.recorded_margins/2"),
        ("unit", "beta"),
        ("precision", "float16"),
        ("precision", None),
        ("method", "sampled"),
        ("positions", 3),
        ("positions", [0.0, 1, 2, 3, 4, 5]),
        ("positions", [True, 1, 2, 3, 4, 5]),
        ("visible", [0, 1, 2, 3, 4]),
        ("visible", [0, 1, 2, 3, 4, 2**63]),
        ("targets", "012345"),
        ("top", ["-inf", 1, 1, 1, 1, "inf or so"]),
        ("top", ["-inf", 1, 1, 1, 1, math.nan]),
        ("top", ["-inf", 1, 1, 1, 1, 10**400]),
        ("top", ["-inf", 1, 1, 1, 1, [1]]),
        ("margin", [None, "inf", 1.0, 0.0, 1.0, 1.0]),
        ("tied", [0, 0, 1, 1, 0, 0]),
        ("status", ["none", "only", "wins", "tie", "fails", "wins"]),
        ("status", None),
        ("abs_error", [-1.0, 0, 0, 0, 0, 0]),
        ("abs_error", [None, 0, 0, 0, 0, 0]),
        ("sum_error", "inf"),
        ("sum_error", "x"),
    ],
)
def test_malformed_files(name: str, value: Any) -> None:
    _, data = written()
    without = {key: entry for key, entry in data.items() if key != name}
    for broken in ({**data, name: value}, without):
        with pytest.raises(FileFormatError, match="recorded margins: ") as caught:
            RecordedMargins.from_dict(broken)
        assert "\n" not in str(caught.value)
    with pytest.raises(FileFormatError, match="expected schema"):
        RecordedMargins.from_dict([data])

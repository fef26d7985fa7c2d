"""The sweep against mpmath and plain loops: logits, maxima, running records, top two, sums; threads, ties, ranges."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import mpmath  # type: ignore[import-untyped]
import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropegeo._arrays import FloatArray
from ropegeo.engine import threads as pool
from ropegeo.engine.candidates import CAPACITY, TooManyTiesError
from ropegeo.engine.kernels import add_exponentials
from ropegeo.engine.sweep import MAX_RANGE, Sweep, sweep_error
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import read_angle
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum

ANGLES = sorted(oracles.ANGLES)


def profile_of(texts: list[str], seed: int = 0, *, peaked: bool = False) -> LogitProfile:
    spectrum = RopeSpectrum(angles=tuple(read_angle(text) for text in texts), head_dim=2 * len(texts))
    rng = np.random.default_rng(seed)
    real, imag = rng.normal(size=(2, len(texts)))
    return LogitProfile(spectrum=spectrum, coefficients=np.abs(real) if peaked else real + 1j * imag, constant=0.25)


def true_logit(texts: list[str], profile: LogitProfile, t: int) -> mpmath.mpf:
    with mpmath.workdps(50):
        return mpmath.mpf(profile.constant) + mpmath.fsum(
            mpmath.mpf(c.real) * mpmath.cos(t * oracles.ANGLES[text]())
            - mpmath.mpf(c.imag) * mpmath.sin(t * oracles.ANGLES[text]())
            for c, text in zip(profile.coefficients.tolist(), texts, strict=True)
        )


def sweep_of(*profiles: LogitProfile, threads: int = 1, rows: int = 3, half: int = 4) -> Sweep:
    """Blocks of 24 displacements, so that short ranges cross many of them."""
    return Sweep(profiles, threads=threads, rows=rows, half=half)


# ---- logits ----


@given(
    st.lists(st.sampled_from(ANGLES), min_size=1, max_size=6, unique=True),
    st.integers(-60, 60) | st.sampled_from([10**9, -(10**9), 10**12 + 7, 10**15, 2**59]),
    st.integers(0, 60),
    st.integers(0, 10**6),
)
@settings(max_examples=40)
def test_logits_are_those_of_mpmath(texts: list[str], low: int, width: int, seed: int) -> None:
    profile = profile_of(texts, seed)
    swept = sweep_of(profile)
    logits = swept.logits(low, low + width)
    assert logits.shape == (1, width + 1)
    with mpmath.workdps(50):
        for place in {0, width // 2, width}:
            error = abs(mpmath.mpf(float(logits[0, place])) - true_logit(texts, profile, low + place))
            assert error <= swept.abs_errors[0] + 2**-52 * abs(profile.constant)


def test_the_stated_error_is_below_what_the_house_promises() -> None:
    assert sweep_error(64) < 1.5e-14
    assert sweep_error(4096) < 1e-12


@pytest.mark.slow
def test_blocks_of_the_size_in_use_agree_with_the_definition() -> None:
    spectrum = RopeSpectrum.from_base(10000, head_dim=128)
    rng = np.random.default_rng(7)
    profile = LogitProfile(spectrum=spectrum, coefficients=rng.normal(size=64) + 1j * rng.normal(size=64))
    t = np.arange(-70_000, 200_001)
    error = np.abs(Sweep((profile,), threads=2).logits(-70_000, 200_000)[0] - profile.logit(t)).max()
    assert error <= sweep_error(64) * profile.weight + profile.abs_error


def test_several_profiles_share_a_pass() -> None:
    texts = ["1", "0.0027", "10000^(-2/128)"]
    one, other = profile_of(texts, 1), profile_of(texts, 2)
    both = sweep_of(one, other).logits(-30, 100)
    for row, profile in zip(both, (one, other), strict=True):
        assert np.abs(row - sweep_of(profile).logits(-30, 100)[0]).max() <= 4 * sweep_error(3) * profile.weight


# ---- maxima, records, the top two ----


def running_records(logits: FloatArray, low: int) -> list[int]:
    best, found = -np.inf, []
    for place, value in enumerate(logits.tolist()):
        if value > best:
            best = value
            found.append(low + place)
    return found


@given(
    st.lists(st.sampled_from(ANGLES), min_size=2, max_size=4, unique=True),
    st.integers(-100, 100),
    st.integers(0, 400),
    st.integers(0, 10**6),
    st.sampled_from([1, 2, 3]),
)
@settings(max_examples=40)
def test_records_and_maxima(texts: list[str], low: int, width: int, seed: int, threads: int) -> None:
    profile = profile_of(texts, seed)
    swept = sweep_of(profile, threads=threads)
    logits = profile.logit(np.arange(low, low + width + 1)) - profile.constant
    (found,) = swept.records(low, low + width)
    room = 2 * swept.abs_errors[0] + 2 * profile.abs_error
    assert set(running_records(logits, low)) <= set(found.at.tolist())
    assert found.at.tolist() == sorted(set(found.at.tolist()))
    before = np.maximum.accumulate(np.concatenate([[-np.inf], logits]))
    assert all(logits[t - low] > before[t - low] - room for t in found.at.tolist())
    assert abs(found.best - logits.max()) <= room
    assert abs(swept.maxima(low, low + width)[0] - profile.constant - logits.max()) <= room


@given(st.integers(-100, 100), st.integers(0, 300), st.integers(0, 10**6))
@settings(max_examples=25)
def test_records_above_what_is_known(low: int, width: int, seed: int) -> None:
    profile = profile_of(["1", "4", "0.0027"], seed)
    logits = profile.logit(np.arange(low, low + width + 1)) - profile.constant
    known = float(np.median(logits)) + 1e-9
    (found,) = sweep_of(profile, threads=2).records(low, low + width, best=[known])
    before = np.maximum.accumulate(np.concatenate([[known], logits]))[:-1]
    assert set((np.flatnonzero(logits > before) + low).tolist()) <= set(found.at.tolist())
    assert found.best == max(known, found.best)


@given(
    st.lists(st.sampled_from(ANGLES), min_size=1, max_size=4, unique=True),
    st.integers(-100, 100),
    st.integers(1, 400),
    st.integers(0, 10**6),
    st.sampled_from([1, 2]),
)
@settings(max_examples=40)
def test_the_top_two(texts: list[str], low: int, width: int, seed: int, threads: int) -> None:
    profile = profile_of(texts, seed)
    swept = sweep_of(profile, threads=threads)
    logits = profile.logit(np.arange(low, low + width + 1)) - profile.constant
    first, second = np.sort(logits)[::-1][:2]
    (found,) = swept.top_two(low, low + width)
    near = {low + int(place) for place in np.flatnonzero(logits >= second)}
    room = 4 * swept.abs_errors[0] + 2 * profile.abs_error
    assert near <= set(found.at.tolist())
    assert all(logits[t - low] >= second - room for t in found.at.tolist())
    assert abs(found.best - first) <= room
    (strict,) = swept.top_two(low, low + width, slack=0.0)
    assert np.allclose(np.sort(strict.logits)[::-1][:2], [first, second], rtol=0, atol=room)


def test_a_second_of_minus_infinity_is_no_second() -> None:
    """Case 65: over one displacement there is a largest logit and nothing else."""
    (found,) = sweep_of(profile_of(["1"])).top_two(5, 5)
    assert found.at.tolist() == [5]
    assert np.isfinite(found.best)


def test_thousands_of_ties_are_reported_not_dropped() -> None:
    profile = profile_of(["2*pi/5"], peaked=True)
    with pytest.raises(TooManyTiesError):
        Sweep((profile,), threads=2).records(1, 6 * CAPACITY)
    (strict,) = Sweep((profile,), threads=2).records(1, 6 * CAPACITY, slack=0.0)
    assert strict.at[0] == 1
    assert abs(strict.best - profile.weight) <= sweep_error(1) * profile.weight


@pytest.mark.parametrize("places", [1, 2])
def test_a_logit_that_rises_for_long_is_thinned(places: int) -> None:
    """Every displacement is a running maximum; only those at the ends asked for are kept."""
    spectrum = RopeSpectrum(angles=(read_angle("10^-7"),), head_dim=2)
    profile = LogitProfile(spectrum=spectrum, coefficients=np.array([-1j]))  # sin(t theta), rising to t = 1.57e7
    swept = Sweep((profile,), threads=2)
    ends = [100, 5000, 50_000, 299_999]
    if places == 2:
        (found,) = swept.top_two(0, ends[-1], slack=0.0)
        assert found.at.tolist() == [ends[-1] - 1, ends[-1]]
        return
    (found,) = swept.records(0, ends[-1], ends=ends)
    assert set(ends) <= set(found.at.tolist())
    assert found.at.size < 50
    with pytest.raises(TooManyTiesError):
        swept.records(0, ends[-1])


def test_results_do_not_depend_on_threads_or_blocks() -> None:
    profile = profile_of(["1", "10000^(-2/128)", "0.0027", "4"], 3)
    found = [
        sweep_of(profile, threads=threads, rows=rows, half=half).records(-500, 30_000)[0].at.tolist()
        for threads, rows, half in ((1, 3, 4), (2, 3, 4), (4, 3, 4), (1, 1, 1), (2, 16, 8))
    ]
    assert all(each == found[0] for each in found)


# ---- sums for the softmax ----


@given(st.integers(-80, 40), st.integers(0, 300), st.integers(0, 10**6), st.none() | st.integers(-80, 300))
@settings(max_examples=25)
def test_exponential_sums(low: int, width: int, seed: int, skip: int | None) -> None:
    one, other = profile_of(["1", "0.0027"], seed), profile_of(["1", "0.0027"], seed + 1)
    betas = [0.0, 1.5, 40.0]
    tops = [1.0, -0.5]
    sums = sweep_of(one, other, threads=2).exponential_sums(low, low + width, betas, tops=tops, skip=skip)
    t = np.array([each for each in range(low, low + width + 1) if each != skip], dtype=np.int64)
    for row, profile, top in zip(sums, (one, other), tops, strict=True):
        terms = np.exp(np.outer(betas, profile.logit(t) - profile.constant - top))
        assert np.allclose(row, terms.sum(axis=1), rtol=1e-11, atol=0)


def test_small_terms_are_not_lost_in_a_sum() -> None:
    """Case 65: one term of 1, and a million of 1e-16 that would each be rounded away."""
    logits = np.full(10**6 + 1, np.log(1e-16))
    logits[0] = 0.0
    sums, lost = np.zeros(1), np.zeros(1)
    add_exponentials(logits, 0.0, np.ones(1), sums, lost)
    assert abs((sums + lost)[0] - 1.0000000001) < 300 * 2.0**-53  # adding them one by one is off by 1e-10


# ---- threads ----


def records_on_two_threads(profile: LogitProfile) -> list[int]:
    found: list[int] = sweep_of(profile, threads=2).records(1, 20_000)[0].at.tolist()
    return found


def test_two_threads_sweep_at_once() -> None:
    """Case 67: results equal the serial ones and the process lives."""
    profiles = [profile_of(["1", "0.0027", "4"], seed) for seed in range(4)]
    serial = [sweep_of(profile).records(1, 20_000)[0].at.tolist() for profile in profiles]
    with ThreadPoolExecutor(4) as executor:
        found = executor.map(records_on_two_threads, profiles)
        assert list(found) == serial


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_sweeps() -> None:
    """Case 67, under a fork."""
    profile = profile_of(["1", "0.0027"], 5)
    expected = sweep_of(profile, threads=2).records(1, 5000)[0].at.tolist()
    child = os.fork()
    if child == 0:
        same = sweep_of(profile, threads=2).records(1, 5000)[0].at.tolist() == expected
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in pool._controller().info() if library["user_api"] == "blas"]


def test_blas_gets_its_threads_back_after_overlapping_uses() -> None:
    before = blas_threads()
    started, release = threading.Event(), threading.Event()

    def hold() -> None:
        with pool.one_blas_thread():
            started.set()
            release.wait()

    for first in (True, False):  # the first holder leaves last, and the other way round
        other = threading.Thread(target=hold)
        if not first:
            other.start()
            started.wait()
        with pool.one_blas_thread():
            if first:
                other.start()
                started.wait()
            else:
                release.set()
                other.join()
            assert all(count == 1 for count in blas_threads())
        release.set()
        other.join()
        assert blas_threads() == before
        started.clear()
        release.clear()


def test_an_exception_in_a_task_reaches_the_caller_and_stops_the_rest() -> None:
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        if item == 3:
            raise ValueError("task 3")
        return item

    with pytest.raises(ValueError, match="task 3"):
        list(pool.in_order(work, range(1000), threads=2))
    assert len(begun) < 20
    assert list(pool.in_order(lambda item: item * item, range(50), threads=3)) == [i * i for i in range(50)]


@pytest.mark.parametrize("asked", [0, -1, 1025])
def test_thread_counts_are_checked(asked: int) -> None:
    with pytest.raises(InvalidInputError, match="must be an integer from 1 to 1024"):
        pool.thread_count(asked)


def test_thread_count_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", "5")
    assert pool.thread_count() == 5
    monkeypatch.setenv("NUMBA_NUM_THREADS", "many")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert pool.thread_count() == 3
    assert pool.thread_count(2) == 2


# ---- what is refused ----


def test_refusals() -> None:
    profile = profile_of(["1", "4"])
    other = profile_of(["1", "0.0027"])
    with pytest.raises(InvalidInputError, match="at least one profile"):
        Sweep(())
    with pytest.raises(InvalidInputError, match="share one spectrum"):
        Sweep((profile, other))
    with pytest.raises(InvalidInputError, match="is empty"):
        sweep_of(profile).records(5, 4)
    with pytest.raises(UnsupportedError, match="up to 2\\^60"):
        sweep_of(profile).logits(MAX_RANGE, MAX_RANGE + 1)


# ---- faults that the tests above would find ----


def test_float_phases_would_be_found() -> None:
    """A product t * angle in float64 is beyond the stated error long before 10^9."""
    texts = ["1", "10000^(-2/128)", "500000^(-2/128)"]
    profile = profile_of(texts, 9)
    t = 10**9 - 17
    angles = profile.spectrum.inv_freq
    wrong = float((profile.coefficients * np.exp(1j * t * angles)).sum().real) + profile.constant
    with mpmath.workdps(50):
        assert abs(mpmath.mpf(wrong) - true_logit(texts, profile, t)) > 100 * sweep_error(3) * profile.weight

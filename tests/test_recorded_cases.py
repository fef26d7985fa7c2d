"""Public cases of masks, windows, positions and baselines, through `recorded_margins` (tests/CASES.md)."""

from __future__ import annotations

import numpy as np
import pytest

import ropegeo
from ropegeo.spectrum import RopeSpectrum

STILL = RopeSpectrum.from_angle("1 turn")
"""A plane that is back after every position: logits are plain dot products."""


def test_case_49_a_query_is_rotated_at_its_own_position() -> None:
    spectrum = RopeSpectrum.from_base(10000, head_dim=8)
    four_back = spectrum.from_planes(np.exp(-4j * spectrum.inv_freq))[None]
    keys = spectrum.from_planes(np.ones((21, 4), complex))
    for start in (0, 7, 100_000):
        seen = ropegeo.recorded_margins(
            four_back, keys, spectrum, positions=np.arange(start, start + 21), query_positions=[start + 20]
        )
        assert seen.top_at.tolist() == [start + 16]
    late = ropegeo.recorded_margins(four_back, keys, spectrum, positions=np.arange(21), query_positions=[21])
    assert late.top_at.tolist() == [17]


@pytest.mark.parametrize(("window", "count", "query"), [(3, 5, 4), (512, 600, 599)])
def test_case_53_a_window_includes_the_token_itself(window: int, count: int, query: int) -> None:
    keys = np.ones((count, 2))
    seen = ropegeo.recorded_margins(keys, keys, STILL, window=window)
    assert seen.visible[query] == window
    nearest = np.full(count, -1)
    nearest[query] = query - (window - 1)
    assert ropegeo.recorded_margins(keys, keys, STILL, window=window, targets=nearest).target_weight[query] > 0
    nearest[query] -= 1
    with pytest.raises(ropegeo.InvalidInputError, match="lies outside the window"):
        ropegeo.recorded_margins(keys, keys, STILL, window=window, targets=nearest)


SCORES = [-110208.0547, -110189.8125, -110206.5234, -110208.4531, -110192.6016]
WEIGHTS = [1.1262e-08, 0.942083891868, 5.2076e-08, 7.561e-09, 0.057916037233]


def test_case_54_masked_keys_never_enter() -> None:
    """Scores below any filler: the three later keys, which score far higher, get nothing."""
    keys = np.array([[score, 0.0] for score in [*SCORES, 0.0, 0.0, 0.0]])
    query = np.array([[1.0, 0.0]])
    for target, weight in enumerate(WEIGHTS):
        seen = ropegeo.recorded_margins(
            query, keys, STILL, scale=1.0, positions=np.arange(8), query_positions=[4], targets=[target]
        )
        assert seen.target_weight[0] == pytest.approx(weight, rel=1e-4)
        assert seen.top_at.tolist() == [1]
        assert seen.visible.tolist() == [5]
    plain = ropegeo.recorded_margins(query, keys, STILL, scale=1.0, positions=np.arange(8), query_positions=[4])
    assert plain.margin[0] == pytest.approx(2.7891, abs=5e-5)


def test_case_56_the_baseline_of_a_uniform_head() -> None:
    n = 128
    keys = np.random.default_rng(0).normal(size=(n, 2))
    before = np.arange(n) - 1
    seen = ropegeo.recorded_margins(np.zeros((n, 2)), keys, STILL, targets=before)
    assert seen.target_weight[1:].mean() == pytest.approx(0.03490667002038719, rel=1e-6)
    first = ropegeo.recorded_margins(np.zeros((n, 2)), keys, STILL, targets=np.zeros(n, np.int64))
    assert first.target_weight[1:].mean() == pytest.approx(seen.target_weight[1:].mean(), rel=1e-6)
    assert first.target_weight.mean() == pytest.approx(0.0424464617, rel=1e-6)
    assert np.allclose(seen.entropy, np.log(np.arange(1, n + 1)), rtol=0, atol=1e-5)
    assert set(seen.status[1:]) == {"tie"}

"""The one-plane staircase as a law: known angles against the engine, and angles that are found again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ropegeo.asymptotics.data import DecayData, decay_data
from ropegeo.asymptotics.fitted_law import fit_law
from ropegeo.asymptotics.staircase_law import fitted_staircase, known_staircase
from ropegeo.engine.diophantine import one_plane_staircase
from ropegeo.exact import read_angle

QUICK = ["0.3", "500000^(-40/128)", "2.1"]
ANGLES = ["10000^(-2/128)", "1", "pi*(sqrt(5)-1)", "0.001"]


def margins(angle: str, lengths: list[int], offset: int = 0) -> Any:
    """Of the engine."""
    reaches = [max(offset, n - 1 - offset) for n in lengths]
    steps = one_plane_staircase(read_angle(angle), max(reaches))
    return np.array([float(steps.margin(steps.index_at(reach))) for reach in reaches])


def sampled(angle: str, count: int = 40, noise: float = 0.0, seed: int = 0) -> DecayData:
    lengths = np.unique(np.rint(np.geomspace(10, 10**6, count)).astype(int)).tolist()
    drawn = np.random.default_rng(seed).normal(0, noise, len(lengths)) if noise else np.zeros(len(lengths))
    return decay_data(lengths, margins(angle, lengths) * np.exp(drawn))


def folded(angle: str) -> float:
    """In (0, pi]: an angle and 2 pi minus it have one staircase."""
    turn = float(read_angle(angle)) % (2 * math.pi)
    return min(turn, 2 * math.pi - turn)


@pytest.mark.parametrize("angle", [*QUICK, *(pytest.param(angle, marks=pytest.mark.slow) for angle in ANGLES)])
def test_an_angle_is_found_from_its_margins(angle: str) -> None:
    """To the last digits, and within its own interval, from sampled lengths."""
    law = fitted_staircase(sampled(angle), free_weight=False)
    assert law.found is not None
    name, value, low, high = law.found
    assert name == "angle"
    assert value == pytest.approx(folded(angle), rel=1e-12)
    assert low <= folded(angle) <= high
    assert high - low < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("angle", [*QUICK, *ANGLES])
def test_the_truth_is_within_under_noise(angle: str) -> None:
    """Of 10 draws of 20 % noise at least 8: the interval is a hull of many angles, 95 % to first order."""
    held = 0
    for seed in range(10):
        found = fitted_staircase(sampled(angle, 60, 0.2, seed), free_weight=True).found
        assert found is not None
        held += found[2] <= folded(angle) <= found[3]
    assert held >= 8


@pytest.mark.parametrize("offset", [0, 7])
def test_a_known_angle_is_the_engines_staircase(offset: int) -> None:
    lengths = [20, 21, 50, 700, 5000]
    exact = margins("0.3", lengths, offset)
    data = decay_data(lengths, 5 * exact, offset=offset)
    found = fit_law(known_staircase(data, read_angle("0.3"), free_weight=True), data)
    assert found is not None
    assert found.parameters["weight"].value == pytest.approx(5, rel=1e-12)
    assert found.log_margin == pytest.approx(np.log(5 * exact), abs=1e-12)


@pytest.mark.parametrize(
    ("lengths", "angle"), [([10, 20, 30, 40, 50, 60, 70, 80], "1/25 turn"), ([1, 2, 3, 4, 5, 6, 7, 8], "0.3")]
)
def test_what_has_no_staircase_says_why(lengths: list[int], angle: str) -> None:
    """A tie within the lengths; a length that sees nothing."""
    data = decay_data(lengths, [1.0 / n for n in lengths])
    assert known_staircase(data, read_angle(angle), free_weight=False).why_not


def test_few_points_are_not_searched() -> None:
    data = decay_data([10, 20, 40, 80], [0.1, 0.05, 0.02, 0.01])
    assert "points" in fitted_staircase(data, free_weight=False).why_not

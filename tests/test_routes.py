"""Every route that applies gives the same numbers: routes x heads x layouts; choice, overriding and refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import ropegeo
from ropegeo.engine.margin import BOUND, MarginCurve, MarginPoint
from ropegeo.engine.routes import ROUTES, margin_curves, record_curve
from ropegeo.engine.staircase import staircase
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import Enclosure, read_angle
from ropegeo.heads import LetterProfile, LogitProfile
from ropegeo.spectrum import Layout, RopeSpectrum

LAYOUTS: tuple[Layout, ...] = ("interleaved", "half")
LENGTHS = (12, 100, 3000, 40_000)

PEAKED = ("lattice", "pruned", "streamed", "definition")
LETTERS = ("streamed", "definition")

Make = Callable[[RopeSpectrum], LogitProfile | LetterProfile]


def built(mode: str, planes: tuple[int, ...], **options: object) -> Make:
    """A profile as `construct` makes it: through the matrices' recipe."""

    def make(spectrum: RopeSpectrum) -> LogitProfile | LetterProfile:
        maker = getattr(ropegeo, f"{mode}_head")
        profile: LogitProfile | LetterProfile = maker(spectrum, planes=planes, **options).profile
        return profile

    return make


def phased(planes: tuple[int, ...], seed: int) -> Make:
    """Random phases, as a trained head has."""

    def make(spectrum: RopeSpectrum) -> LogitProfile:
        rng = np.random.default_rng(seed)
        coefficients = np.zeros(spectrum.planes, dtype=complex)
        coefficients[list(planes)] = rng.normal(size=len(planes)) + 1j * rng.normal(size=len(planes))
        return LogitProfile(spectrum=spectrum, coefficients=coefficients, constant=0.5)

    return make


HEADS: dict[str, tuple[Make, tuple[str, ...], int | None]] = {
    "index, one plane": (built("index", (1,), offset=3), ("continued_fraction", *PEAKED), None),
    "index, planes 0-4": (built("index", (0, 1, 2, 3, 4), offset=3), PEAKED, None),
    "index, all planes": (built("index", tuple(range(32)), offset=7), PEAKED, None),
    "reflexive, planes 2 and 9": (built("reflexive", (2, 9)), PEAKED, None),
    "retrieval, one slow plane": (
        built("retrieval", (31,), letters="abcdefgh"),
        ("closed_form", "first_return", *LETTERS),
        None,
    ),
    "retrieval, one fast plane": (built("retrieval", (3,), letters="abcdefgh"), ("first_return", *LETTERS), None),
    "retrieval, three planes": (built("retrieval", (20, 25, 31), letters="abcde"), LETTERS, None),
    "retrieval, centred": (built("retrieval", (28, 31), letters="abcd", centre_length=100), LETTERS, None),
    "retrieval, answer 5 back": (built("retrieval", (25, 31), letters="abc"), LETTERS, 5),
    "trained, one plane": (phased((2,), 1), ("first_return", "streamed", "definition"), 3),
    "trained, all planes": (phased(tuple(range(32)), 2), ("streamed", "definition"), 3),
    "trained, target 0": (phased((0, 5, 9, 30), 3), ("streamed", "definition"), 0),
}


def agree(one: Enclosure, other: Enclosure) -> bool:
    return one.low <= other.high and other.low <= one.high


def assert_same(one: MarginPoint, other: MarginPoint) -> None:
    assert one.length == other.length
    assert agree(one.margin, other.margin)
    assert agree(one.worst, other.worst)
    assert one.best is not None
    assert other.best is not None
    assert agree(one.best, other.best)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", HEADS)
def test_routes_agree(name: str, layout: Layout) -> None:
    make, routes, target = HEADS[name]
    spectrum = RopeSpectrum.from_base(10000, head_dim=64, layout=layout)
    profile = make(spectrum)
    curves = {}
    for route in routes:
        lengths = [n for n in LENGTHS if route != "closed_form" or n < 100]
        curves[route] = ropegeo.margin_curve(profile, lengths, target=target, route=route)
    automatic = ropegeo.margin_curve(profile, LENGTHS, target=target)
    for route, curve in curves.items():
        for point, expected in zip(curve.points, automatic.points, strict=False):
            assert point.method == route
            assert_same(point, expected)
            assert point.at == expected.at


def test_every_route_is_in_the_matrix() -> None:
    used = {route for _, routes, _ in HEADS.values() for route in routes}
    assert used | {"auto", BOUND} == set(ROUTES)


def weights_on(spectrum: RopeSpectrum, planes: range | list[int]) -> LogitProfile:
    weights = np.zeros(spectrum.planes, complex)
    weights[list(planes)] = 1 / len(planes)
    return LogitProfile(spectrum=spectrum, coefficients=weights)


LLAMA = RopeSpectrum.from_base(500000, head_dim=128)


@pytest.mark.parametrize("planes", [range(8), range(12), range(64)])
def test_searches_find_the_streamed_steps(planes: range) -> None:
    profile = weights_on(LLAMA, planes)
    steps = {route: staircase(profile, 3_000_000, route=route).steps for route in ("streamed", "pruned", "lattice")}
    assert steps["pruned"] == steps["streamed"] == steps["lattice"]
    assert (len(steps["streamed"]) > 1) == (len(planes) == 8)


# ---- the choice ----


@pytest.mark.parametrize(
    ("planes", "length", "method"),
    [
        ([5], 10**30, "continued_fraction"),
        (list(range(20)), 1000, "definition"),
        (list(range(64)), 10**6, "streamed"),
        (list(range(8)), 10**10, "lattice"),
        (list(range(8)), 10**30, "lattice"),
        (list(range(64)), 10**11, "pruned"),
        (list(range(64)), 10**40, BOUND),
    ],
)
def test_the_route_that_reaches_is_taken(planes: list[int], length: int, method: str) -> None:
    point = ropegeo.margin_curve(weights_on(LLAMA, planes), [length]).points[0]
    assert point.method == method
    assert point.status == ("bound" if method == BOUND else "wins")
    assert point.margin.proves(17) or method == BOUND


def test_bounds_are_bounds() -> None:
    profile = weights_on(LLAMA, range(8))
    lengths = [10**9, 10**12, 10**20]
    exact = ropegeo.margin_curve(profile, lengths)
    bounds = ropegeo.margin_curve(profile, lengths, route=BOUND)
    for point, bound in zip(exact.points, bounds.points, strict=True):
        assert bound.method == BOUND
        assert bound.margin.low == 0
        assert bound.margin.high >= point.margin.low
        assert bound.margin.high <= 40 * point.margin.high  # no number to be proud of, but no placeholder either
    assert MarginCurve.from_dict(bounds.to_dict()).points[0].status == "bound"


# ---- ties and nothing at all ----


@pytest.mark.parametrize("route", ["auto", "streamed", "definition", "pruned", "lattice"])
def test_rational_turns_tie_exactly(route: str) -> None:
    angles = tuple(read_angle(text) for text in ("1/6 turn", "3/10 turn"))
    profile = LogitProfile(spectrum=RopeSpectrum(angles=angles, head_dim=4), coefficients=np.array([0.5, 0.5], complex))
    curve = ropegeo.margin_curve(profile, [30, 31, 10_000], route=route)
    assert [point.status for point in curve.points] == ["wins", "tie", "tie"]
    assert curve.points[1].margin.high == 0
    assert curve.points[2].at == 30


@pytest.mark.parametrize("coefficients", [[0.0, 0.0], [1.0, 2.0]])
@pytest.mark.parametrize("angle", ["2*pi", "1"])
def test_equal_logits_tie(coefficients: list[float], angle: str) -> None:
    """All-zero weights, and planes that turn whole turns, are no error: margin 0, a tie."""
    if angle == "1" and any(coefficients):
        return
    spectrum = RopeSpectrum(angles=(read_angle(angle), read_angle("4*pi")), head_dim=4)
    profile = LogitProfile(spectrum=spectrum, coefficients=np.array(coefficients, complex), constant=2.0)
    for curve in (
        ropegeo.margin_curve(profile, [2, 10**6, 10**100]),
        ropegeo.margin_curve(replace(profile, coefficients=-profile.coefficients), [10, 10**6], target=3),
    ):
        assert {point.status for point in curve.points} == {"tie"}
        assert {point.margin.high for point in curve.points} == {Fraction(0)}
    letters = LetterProfile(spectrum=spectrum, weights=np.zeros(2), letters=3)
    assert ropegeo.margin_curve(letters, [5]).points[0].status == "tie"


def test_mirrored_distances_tie() -> None:
    """Real coefficients score alike on both sides of the origin, whatever the angles."""
    profile = LogitProfile(spectrum=LLAMA, coefficients=-np.linspace(0.1, 1, 64).astype(complex), origin=5)
    point = ropegeo.margin_curve(profile, [11], target=8).points[0]
    equal = ropegeo.top_two(profile, 11)
    assert set(equal.tied) == {equal.at, 10 - equal.at}
    assert equal.status == "tie"
    assert point.margin.sign in (-1, 0)


# ---- whole curves ----


@pytest.mark.parametrize("offset", [0, 3, 50])
@pytest.mark.parametrize("planes", [[1], [0, 1, 2], list(range(64))])
def test_records_are_the_whole_curve(offset: int, planes: list[int]) -> None:
    profile = replace(weights_on(LLAMA, planes), origin=offset)
    last = 5000
    steps = record_curve(profile, last)
    every = ropegeo.margin_curve(profile, range(max(2, offset + 1), last + 1))
    falls = {steps.points[0].length: steps.points[0]}
    for before, point in zip(every.points, every.points[1:], strict=False):
        if point.margin.high < before.margin.low:
            falls[point.length] = point
    assert [point.length for point in steps.points] == sorted(falls)
    for point in steps.points:
        assert_same(point, falls[point.length])


def test_many_heads_in_one_pass() -> None:
    rng = np.random.default_rng(4)
    profiles = [LogitProfile(spectrum=LLAMA, coefficients=rng.uniform(0, 1, 64), origin=offset) for offset in (0, 2, 9)]
    together = margin_curves(profiles, [20, 5000, 100_000])
    for profile, curve in zip(profiles, together, strict=True):
        for point, alone in zip(curve.points, ropegeo.margin_curve(profile, [20, 5000, 100_000]).points, strict=True):
            assert_same(point, alone)
            assert point.at == alone.at


# ---- top two and contributions ----


def test_top_two_of_a_trained_head() -> None:
    profile = phased(tuple(range(64)), 6)(LLAMA)
    assert isinstance(profile, LogitProfile)
    found = ropegeo.top_two(profile, 50_000)
    logits = profile.logit(np.arange(50_000))
    order = np.argsort(logits)[::-1]
    assert (found.at, found.second_at) == (order[0], order[1])
    assert abs(found.top - logits[order[0]]) <= 2 * found.abs_error
    difference = (logits[order[0]] - logits[order[1]]) / profile.weight
    assert abs(float(found.margin) - difference) < 1e-13
    assert found.margin.proves(17)


def test_contributions_add_up_to_the_logit() -> None:
    drawn = phased((0, 7, 40), 8)(LLAMA)
    assert isinstance(drawn, LogitProfile)
    profile = replace(drawn, origin=4)
    distances = np.array([[0, 3], [10**9, 2**40]])
    parts = ropegeo.plane_contributions(profile, distances)
    assert parts.shape == (2, 2, 64)
    assert np.abs(parts.sum(axis=-1) + profile.constant - profile.logit(distances)).max() <= 2 * profile.abs_error
    assert not parts[..., 1].any()


# ---- what is refused ----


@pytest.mark.parametrize(
    ("planes", "target", "route", "says"),
    [
        ([0, 1], None, "continued_fraction", "for one plane"),
        ([0, 1], None, "closed_form", "does not apply to this head"),
        ([0, 1], None, "fast", "is unknown; use one of auto"),
    ],
)
def test_routes_that_do_not_apply(planes: list[int], target: int | None, route: str, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        ropegeo.margin_curve(weights_on(LLAMA, planes), [100], target=target, route=route)


def test_routes_say_how_far_they_reach() -> None:
    profile = weights_on(LLAMA, range(64))
    with pytest.raises(UnsupportedError, match=r"route 'definition' evaluates 64 planes .* up to 3125000"):
        ropegeo.margin_curve(profile, [10**9], route="definition")
    with pytest.raises(UnsupportedError, match="64 planes are streamed up to distance 1562500000000"):
        ropegeo.margin_curve(profile, [10**13], route="streamed")
    with pytest.raises(InvalidInputError, match="does not apply to this head"):
        ropegeo.margin_curve(phased((1, 2), 1)(LLAMA), [100], target=3, route="first_return")
    with pytest.raises(InvalidInputError, match="letter head"):
        ropegeo.margin_curve(LetterProfile(spectrum=LLAMA, weights=np.ones(64), letters=3), [100], route="lattice")
    with pytest.raises(InvalidInputError, match="staircase"):
        record_curve(LetterProfile(spectrum=LLAMA, weights=np.ones(64), letters=3), 100)
    with pytest.raises(InvalidInputError, match="needs profiles of index heads"):
        margin_curves([], [100])

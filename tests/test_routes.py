"""Every route that applies gives the same numbers: routes x heads x layouts; choice, overriding and refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import ropegeo
from ropegeo.engine import index_margin, searches
from ropegeo.engine.margin import MarginCurve, MarginPoint
from ropegeo.engine.route_names import BOUND, ROUTES
from ropegeo.engine.routes import margin_curves, record_curve
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
    assert used | {BOUND} == set(ROUTES)


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
        pytest.param(list(range(64)), 10**40, BOUND, marks=pytest.mark.slow),
    ],
)
def test_the_route_that_reaches_is_taken(
    planes: list[int], length: int, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searches, "STREAMED_AT_ONCE", 1 << 26)  # the choice is the same, and costs less
    point = ropegeo.margin_curve(weights_on(LLAMA, planes), [length]).points[0]
    assert point.method == method
    assert point.status == ("bound" if method == BOUND else "wins")
    assert point.margin.proves(17) or method == BOUND


@pytest.mark.slow
def test_bounds_are_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searches, "STREAMED_AT_ONCE", 1 << 26)
    monkeypatch.setattr(index_margin, "STREAMED_AT_ONCE", 1 << 22)
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


@pytest.mark.parametrize(("angle", "coefficients"), [("2*pi", [0.0, 0.0]), ("2*pi", [1.0, 2.0]), ("1", [0.0, 0.0])])
def test_equal_logits_tie(angle: str, coefficients: list[float]) -> None:
    """All-zero weights, and planes that turn whole turns, are no error: margin 0, a tie."""
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
    two = ropegeo.top_two(profile, 10**5)
    assert (two.status, two.at, two.second_at, two.tied_count, len(two.tied)) == ("tie", 0, 1, 10**5, 4096)


def test_a_far_target_with_a_period_is_decided_by_two_periods() -> None:
    angles = tuple(read_angle(text) for text in ("1/5 turn", "1/3 turn"))
    profile = LogitProfile(
        spectrum=RopeSpectrum(angles=angles, head_dim=4), coefficients=np.array([1.0, 0.5j]), constant=1e15
    )
    near = ropegeo.margin_curve(profile, [30], target=7).points[0]
    far = ropegeo.margin_curve(profile, [10**15 + 30], target=15 * 10**13 + 7).points[0]
    assert far.margin.digits() == near.margin.digits()


# ---- units ----


@pytest.mark.parametrize("factor", [1e-200, 3e200, 2.0**-900])
@pytest.mark.parametrize("route", ["streamed", "pruned", "lattice", "definition"])
def test_margins_do_not_depend_on_the_unit(factor: float, route: str) -> None:
    """Nothing underflows or overflows on the way, and the constant cancels."""
    spectrum = RopeSpectrum(angles=tuple(read_angle(text) for text in ("1", "10000^(-2/128)")), head_dim=4)
    for coefficients in (np.array([1.0, 0.5], complex), np.array([1.0 + 0.5j, 0.75])):
        profile = LogitProfile(spectrum=spectrum, coefficients=coefficients)
        target = None if profile.is_peaked else 3
        expected = ropegeo.margin_curve(profile, [50_000], target=target, route=route).points[0]
        other = replace(profile, coefficients=coefficients * complex(factor), constant=1e15 * factor)
        point = ropegeo.margin_curve(other, [50_000], target=target, route=route).points[0]
        assert point.at == expected.at
        assert abs(float(point.margin) / float(expected.margin) - 1) < 1e-12  # the factor rounds the coefficients


@pytest.mark.slow
def test_a_tiny_weight_reaches_as_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searches, "STREAMED_AT_ONCE", 1 << 20)
    spectrum = RopeSpectrum(angles=tuple(read_angle(text) for text in ("1", "10000^(-2/128)")), head_dim=4)
    profile = LogitProfile(spectrum=spectrum, coefficients=np.ones(2, complex))
    tiny = replace(profile, coefficients=profile.coefficients * complex(2.0**-700))
    one, other = (ropegeo.margin_curve(each, [10**140]).points[0] for each in (profile, tiny))
    assert one.margin.digits() == other.margin.digits()
    assert one.at == other.at


def test_a_large_constant_leaves_softmax_alone() -> None:
    profile = phased((0, 5, 9), 11)(LLAMA)
    assert isinstance(profile, LogitProfile)
    weights = [
        ropegeo.softmax_weight(replace(profile, constant=constant), 3000, [1.0, 30.0], target=2)
        for constant in (0.0, 1e15)
    ]
    assert (weights[0] == weights[1]).all()


@pytest.mark.slow
def test_a_slow_plane_is_followed_to_thousands_of_lengths() -> None:
    """Every distance raises the largest rival; each length asked for still gets its own."""
    angles = tuple(read_angle(text) for text in ("1e-7", "1.5e-7"))
    profile = LogitProfile(spectrum=RopeSpectrum(angles=angles, head_dim=4), coefficients=np.array([-1j, -1j], complex))
    lengths = list(range(1_200_000, 1_202_500))  # more than a task holds candidates for without being asked for them
    curve = ropegeo.margin_curve(profile, lengths, target=0, route="streamed")
    assert [point.at for point in curve.points] == [n - 1 for n in lengths]
    assert {point.status for point in curve.points} == {"fails"}


def test_mirrored_distances_tie() -> None:
    """Real coefficients score alike on both sides of the origin, whatever the angles."""
    profile = LogitProfile(spectrum=LLAMA, coefficients=-np.linspace(0.1, 1, 64).astype(complex), origin=5)
    point = ropegeo.margin_curve(profile, [11], target=8).points[0]
    equal = ropegeo.top_two(profile, 11)
    assert set(equal.tied) == {equal.at, 10 - equal.at}
    assert equal.status == "tie"
    assert point.margin.sign in (-1, 0)


# ---- whole curves ----


@pytest.mark.parametrize("offset", [0, pytest.param(3, marks=pytest.mark.slow), 50])
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
    drawn = [rng.uniform(0, 1, 64).astype(np.complex128) for _ in range(3)]
    profiles = [
        LogitProfile(spectrum=LLAMA, coefficients=coefficients, origin=offset)
        for coefficients, offset in zip(drawn, (0, 2, 9), strict=True)
    ]
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
        record_curve(replace(weights_on(LLAMA, range(2)), coefficients=-np.ones(64, complex)), 100)
    with pytest.raises(InvalidInputError, match="needs profiles of index heads"):
        margin_curves([], [100])

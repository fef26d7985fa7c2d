"""What every bound takes: all kinds of numbers alike, only what is in scope, up to the ends without a warning.

Warnings are errors in these tests. What the bounds say is held against the proofs by the derivations.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ropegeo.asymptotics import bounds
from ropegeo.asymptotics.bounds import scope
from ropegeo.errors import InvalidInputError

BEYOND, BELOW = float(np.nextafter(scope.LARGEST, np.inf)), float(np.nextafter(scope.LEAST, 0))


@dataclass(frozen=True)
class Kind:
    """One bound: arguments that narrow floats hold, and its corners; `whole` and `sized` are argument numbers."""

    usual: tuple[float, ...]
    corners: tuple[tuple[float, ...], ...]
    whole: tuple[int, ...] = ()
    sized: tuple[int, ...] = ()


END, START = scope.LARGEST, scope.LEAST
LAST = scope.EXACT - 1
LOOKED_UP = Kind(
    (5.0, 0.125, 8.0), ((END, START, 2.0), (2.0, 0.0, END), (2.0, 0.0, 2.0), (END, 0.0, END)), (0, 2), sized=(1,)
)
FAILING = Kind((0.125, 8.0), ((START, END), (START, 2.0), (np.pi, 2.0), (np.pi, END)), (1,), sized=(0,))
FRACTIONS = Kind((0.5, 0.25), ((START, START), (START, 1.0), (1.0, START), (1.0, 1.0)), sized=(0, 1))
KINDS = {
    "adjacent_bound": Kind((0.5, 7.0), ((START, 2.0), (-START, END), (END, END), (-END, 2.0)), (1,), sized=(0,)),
    "centred_failing_length": FAILING,
    "centred_lookup_margin": LOOKED_UP,
    "circle_mean": Kind((3.0,), ((0.0,), (5e-324,), (END,))),
    "convergent_lower_bound": Kind((3.0, 7.0), ((1.0, 2.0), (1.0, END), (END, END)), (0, 1)),
    "convergent_upper_bound": Kind((7.0,), ((2.0,), (END,)), (0,)),
    "dirichlet_bound": Kind((7.0,), ((1.0,), (END,)), (0,)),
    "envelope_constant": FRACTIONS,
    "exclusion_gap": Kind((0.125,), ((START,), (float(np.nextafter(1 - 0.5**0.5, 0)),)), sized=(0,)),
    "index_bound": Kind((9.0, 2.0), ((2.0, 0.0), (2.0, 1.0), (LAST, 0.0), (LAST, LAST - 1)), (0, 1)),
    "index_bound_any_offset": Kind((9.0,), ((2.0,), (END,)), (0,)),
    "index_bound_as_printed": Kind((9.0,), ((2.0,), (END,)), (0,)),
    "nearest_rival_margin": LOOKED_UP,
    "retrieval_failing_length": FAILING,
    "retrieval_worst_margin": LOOKED_UP,
    "simultaneous_bound": Kind((9.0, 2.0), ((1.0, 1.0), (END, 1.0), (END, 498.0)), (0, 1)),
    "small_angle_lower": Kind((0.5,), ((START,), (-START,), (END,), (-END,))),
    "small_angle_upper": Kind((0.5,), ((START,), (-START,), (END,), (-END,)), sized=(0,)),
    "softmax_length_bound": Kind((3.0, 0.5), ((0.0, 5e-324), (END, 5e-324), (END, END))),
    "softmax_sufficient_scale": Kind((0.25, 3.0), ((START, START), (0.5, END), (START, END)), sized=(0, 1)),
    "softmax_threshold": Kind((0.25,), ((START,), (float(np.nextafter(1, 0)),)), sized=(0,)),
    "swap_scores": Kind((1.0, 2.0, 0.0, 3.0), ((END, -END, -END, END), (-END, END, 0.0, 5e-324), (0.0, END, END, 0.0))),
    "trough_constant": FRACTIONS,
}
ON_LISTS = ("dual_bound", "primal_margin")
NEGATIVE_OR_ZERO = ("small_angle_lower", "swap_scores")
"""No upper bound, or above 0 but for underflow as its text says; at the corners."""

NAMED = [pytest.param(name, kind, id=name) for name, kind in KINDS.items()]
each_bound = pytest.mark.parametrize(("name", "kind"), NAMED)


def call(name: str, *arguments: Any) -> Any:
    """A bound's values in one array."""
    return np.stack(getattr(bounds, name)(*arguments)) if name == "swap_scores" else getattr(bounds, name)(*arguments)


def refused(name: str, *arguments: Any) -> str:
    """What a bound says when it refuses; its own name is in front."""
    with pytest.raises(InvalidInputError, match=f"^{name}: needs ") as caught:
        getattr(bounds, name)(*arguments)
    return str(caught.value)


def test_all_bounds_are_here() -> None:
    callables: set[str] = {name for name in bounds.__all__ if callable(getattr(bounds, name))}
    assert {*KINDS, *ON_LISTS} == callables


# ---- kinds of numbers ----

FORMS: tuple[Callable[[float], Any], ...] = (
    float,
    np.float64,
    np.float32,
    np.float16,
    lambda x: np.array(x, dtype=np.float32),
    lambda x: int(x) if x == int(x) else x,
    lambda x: np.array(x, dtype=np.int64 if x == int(x) else np.float64),
    lambda x: np.array(x, dtype=np.uint8 if x == int(x) else np.float64),
    lambda x: np.array(Fraction(x), dtype=object),
)


@each_bound
def test_kinds_of_numbers_agree(name: str, kind: Kind) -> None:
    wanted = call(name, *map(np.array, kind.usual))
    assert wanted.dtype == np.float64
    for form in FORMS:
        seen = call(name, *map(form, kind.usual))
        assert seen.dtype == np.float64
        assert seen.tolist() == wanted.tolist()
    for several in ([[x, x] for x in kind.usual], [np.array([x, x], np.float32) for x in kind.usual]):
        assert call(name, *several).tolist() == np.stack([wanted, wanted], axis=-1).tolist()


@each_bound
def test_broadcasting(name: str, kind: Kind) -> None:
    wanted = call(name, *map(np.array, kind.usual))
    count = len(kind.usual)
    for k in range(count):
        shapes = [(3, 1) if j == k else (2,) for j in range(count)]
        seen = call(name, *(np.full(shape, x) for shape, x in zip(shapes, kind.usual, strict=True)))
        assert seen.shape == wanted.shape + ((3, 2) if count > 1 else (3, 1))
        assert (seen == wanted.reshape((*wanted.shape, 1, 1))).all()
    empty = call(name, *([] for _ in kind.usual))
    assert empty.shape[-1] == 0
    if count > 1:
        assert "shapes" in refused(name, [kind.usual[0]] * 2, *([x] * 3 for x in kind.usual[1:]))


def test_integers_do_not_wrap() -> None:
    large = np.array(4_000_000_000)
    assert bounds.small_angle_upper(large) == 8e18
    assert bounds.small_angle_lower(large) == bounds.small_angle_lower(4e9) < -1e37
    assert bounds.simultaneous_bound(np.array(2**63 - 1), 2) == bounds.simultaneous_bound(2.0**63, 2)
    assert bounds.index_bound(np.array(250, np.uint8), np.array(10, np.uint8)) == bounds.index_bound(250, 10)
    assert bounds.dirichlet_bound(np.array(255, np.uint8)) == bounds.dirichlet_bound(255)
    assert bounds.dirichlet_bound(10**100) == bounds.dirichlet_bound(1e100)


# ---- what is refused ----


@each_bound
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, BEYOND, -BEYOND])
def test_one_bad_number_is_refused(name: str, kind: Kind, bad: float) -> None:
    for k in range(len(kind.usual)):
        given: list[Any] = [*kind.usual]
        given[k] = [kind.usual[k], bad, kind.usual[k]]
        argument = list(inspect.signature(getattr(bounds, name)).parameters)[k]
        assert f"{argument} {bad!r} is outside" in refused(name, *given)


@each_bound
def test_numbers_that_are_not_whole_are_refused(name: str, kind: Kind) -> None:
    for k in kind.whole:
        given = [*kind.usual]
        given[k] += 0.5
        assert "a whole number" in refused(name, *given)


@each_bound
def test_sizes_too_small_are_refused(name: str, kind: Kind) -> None:
    for k in kind.sized:
        given = [*kind.usual]
        given[k] = BELOW
        assert "at least 1e-150" in refused(name, *given)


@each_bound
def test_what_is_not_real_numbers_is_refused(name: str, kind: Kind) -> None:
    others = kind.usual[1:]
    for what in (1j, "2", True, [[1.0, 2.0], [3.0]], np.array(["a"], object)):
        assert "needs real numbers" in refused(name, what, *others)
    refused(name, np.array([None]), *others)
    assert "is beyond" in refused(name, 10**400, *others)


def test_messages_show_all_digits() -> None:
    limit = float(np.nextafter(1 - 0.5**0.5, 1))
    assert f"gamma {limit!r} is outside" in refused("exclusion_gap", limit)
    assert "max_offset 5 is outside" in refused("index_bound", 5, 5)


# ---- the ends ----


@each_bound
def test_the_ends_are_computed(name: str, kind: Kind) -> None:
    """Without a warning, and no bound is rounded to 0."""
    for corner in kind.corners:
        seen = call(name, *corner)
        assert not np.isnan(seen).any()
        assert name in NEGATIVE_OR_ZERO or (seen > 0).all()


@each_bound
def test_unsized_arguments_may_be_tiny(name: str, kind: Kind) -> None:
    """A number that is neither whole nor divided by may be as small as doubles go; else it is 0 or refused."""
    for k in {*range(len(kind.usual))} - {*kind.whole, *kind.sized}:
        if name != "small_angle_lower":
            assert not np.isnan(call(name, *kind.usual[:k], 5e-324, *kind.usual[k + 1 :])).any()
    assert "at least" in refused("small_angle_lower", 5e-324)


# ---- bounds on lists ----


def test_lists_of_all_kinds() -> None:
    upper = bounds.dual_bound(np.array([1.0, 2.0]), np.array([-3, 1]), np.array([0.25, 0.75]))
    lower = bounds.primal_margin(np.array([1.0, 2.0]), np.array([-3, 1]), np.array([0.25, 0.75 + 0j]))
    assert upper.shape == lower.shape == ()
    for angles, window, row in (
        ([1, 2], [-3, 1], [0.25, 0.75]),
        (np.array([1, 2], np.uint8), [-3.0, 1.0], np.array([0.25, 0.75], np.float32)),
        (np.array([1, 2], np.float16), np.array([-3, 1], np.int8), np.array([[0.25, 0.75]] * 2)),
    ):
        assert np.unique(bounds.dual_bound(angles, window, row)) == upper
        assert np.unique(bounds.primal_margin(angles, window, row)) == lower
        assert np.unique(bounds.primal_margin(angles, window, np.asarray(row, np.complex64))) == lower


def test_sums_near_one_are_made_one() -> None:
    for miss in (-(2.0**-40), 2.0**-40):
        assert abs(bounds.dual_bound([np.pi], [-1, 1], np.array([0.5, 0.5]) * (1 + miss)) - 2) < 1e-15
    assert abs(bounds.primal_margin([np.pi], [-1, 1], [1 + 2.0**-40]) - 2) < 1e-15
    assert bounds.primal_margin([np.pi], [-1, 1], [0.5]) == 1


@pytest.mark.parametrize("name", ON_LISTS)
@pytest.mark.parametrize(
    ("angles", "window", "row", "why"),
    [
        ([np.nan], [1], [1.0], "angles nan"),
        ([1e308], [10], [1.0], "angles 1e+308"),
        ([1.0, BELOW], [10], [1.0], f"angles {BELOW!r}"),
        ([1.0], [1, 1.5], [0.5, 0.5], "displacements 1.5"),
        ([1.0], [1, 0], [0.5, 0.5], "displacements 0"),
        ([1.0], [2**53 + 1], [1.0], "displacements 9007199254740992"),
        ([4.0], [2**52], [1.0], "angle 4 is outside"),
        (1.0, [1], [1.0], "a list of at least one angle"),
        ([], [1], [], "a list of at least one angle"),
        ([1.0], 1, [1.0], "a list of at least one displacement"),
        ([1.0], [[1]], [1.0], "a list of at least one displacement"),
        ([1.0], [1], [0.5, 0.25, 0.25], "along the last axis; numbers 3,"),
        ([1.0], [1], 1.0, "along the last axis"),
        ([1.0], [1], [np.nan], "finite numbers"),
        ([1.0], [1], [np.inf], "finite numbers"),
        ([1.0], [1], [1.5], "sum 1.5"),
        ([1.0], [1], ["1"], "numbers; "),
    ],
)
def test_lists_that_are_refused(name: str, angles: Any, window: Any, row: Any, why: str) -> None:
    assert why in refused(name, angles, window, row)


def test_rows_that_are_refused() -> None:
    assert "distribution -0.5" in refused("dual_bound", [1.0], [1, 2], [1.5, -0.5])
    assert "needs real numbers" in refused("dual_bound", [1.0], [1], [1 + 0j])
    for bad in (complex(np.nan, 1), complex(1, np.nan), complex(np.inf, np.nan), complex(1e308, 1e308)):
        assert re.search("coefficients (nan|inf|1e[+]308) is", refused("primal_margin", [1.0], [1], [bad]))


def test_lists_at_their_ends() -> None:
    """A symmetric window at the smallest angle: the bound is 2 sin(x/2)^2, far below what a double of 1 resolves."""
    assert bounds.dual_bound([scope.LEAST], [-1, 1], [0.5, 0.5]) > 0
    for t in (2**53 - 1, -(2**53) + 1):
        assert 0 < bounds.dual_bound([1.0], [t], [1.0]) <= 2
        assert abs(bounds.primal_margin([1.0], [t], [1.0])) <= 2

"""Number formats bit for bit: rounding, rotation and sums against exact fractions; lengths against brute force."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ropegeo.errors import RopegeoError
from ropegeo.exact import balls
from ropegeo.limits import arithmetic as arithmetic_room
from ropegeo.limits import emulation, letter_emulation, rounding, sums
from ropegeo.limits.arithmetic import Arithmetic, emulated_logits, rotated
from ropegeo.spectrum import RopeSpectrum
from ropegeo.spectrum.layout import LAYOUTS

FORMATS = rounding.NUMBER_FORMATS
WAYS = [
    Arithmetic(number_format=name, logits=logits, positions=positions)
    for name, logits, positions in itertools.product(FORMATS, ("fused", "eager"), ("exact", "format"))
]
FEW = WAYS[7], WAYS[8]
SOME_SLOW = [pytest.param(way, id=str(way), marks=() if way in FEW else pytest.mark.slow) for way in WAYS]
BF16, F16 = Arithmetic(number_format="bfloat16"), Arithmetic(number_format="float16")

# ---- an oracle in exact fractions; floats only to hold their results ----

BITS = {"float32": (24, -126, 127), "float16": (11, -14, 15), "bfloat16": (8, -126, 127), "tf32": (11, -126, 127)}
"""Significant bits, and the exponents of the smallest normal and of the largest numbers."""


def to_format(value: Fraction, name: str) -> float:
    """The number of a format nearest to a fraction; ties to even, in tf32 away from zero."""
    if value < 0:
        return -to_format(-value, name)
    if value == 0:
        return 0.0
    bits, lowest, highest = BITS[name]
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    exponent -= value < Fraction(2) ** exponent
    step = Fraction(2) ** (max(exponent, lowest) - bits + 1)
    count, rest = divmod(value, step)
    if rest * 2 > step or (rest * 2 == step and (count % 2 or name == "tf32")):
        count += 1
    rounded = count * step
    return math.inf if rounded >= Fraction(2) ** (highest + 1) else float(rounded)


def cosine_oracle(function: Callable[[Any], Any], angle: float) -> float:
    """The nearest float32, by mpmath with more digits than could be needed."""
    with mpmath.workdps(60):
        value = function(mpmath.mpf(angle))
        man, exponent = int(value.man), int(value.exp)
    return to_format(Fraction(man) * (-1 if value < 0 else 1) * Fraction(2) ** exponent, "float32")


def pair_oracle(x: float, y: float, at: int, angle: Fraction, way: Arithmetic, factor: float) -> tuple[float, float]:
    """A pair of coordinates at a position: each operation in exact fractions, then rounded."""
    name = "float32" if way.number_format == "tf32" else str(way.number_format)

    def op(value: Fraction) -> Fraction:  # float32, then the format
        return Fraction(to_format(Fraction(to_format(value, "float32")), name))

    where = Fraction(to_format(Fraction(at), name)) if way.positions == "format" else Fraction(at)
    turned = to_format(where * Fraction(to_format(angle, "float32")), "float32")
    table = [
        op(Fraction(cosine_oracle(function, turned)) * Fraction(to_format(Fraction(factor), "float32")))
        for function in (mpmath.cos, mpmath.sin)
    ]
    a, b = (Fraction(to_format(Fraction(value), name)) for value in (x, y))
    turned_pair = (op(op(a * table[0]) + op(-b * table[1])), op(op(b * table[0]) + op(a * table[1])))
    last = "tf32" if way.number_format == "tf32" else "float32"
    first, second = (to_format(value, last) for value in turned_pair)
    return first, second


def vector_oracle(vector: np.ndarray, at: int, spectrum: RopeSpectrum, angles: list[Fraction], way: Arithmetic) -> Any:
    """A whole vector, in either layout, with what passes through."""
    half = spectrum.rotary_dim // 2
    out = [to_format(Fraction(to_format(Fraction(float(v)), str(way.number_format))), "float32") for v in vector]
    if way.number_format == "tf32":
        out = [to_format(Fraction(to_format(Fraction(float(v)), "float32")), "tf32") for v in vector]
    for k, angle in enumerate(angles):
        i, j = (k, k + half) if spectrum.layout == "half" else (2 * k, 2 * k + 1)
        out[i], out[j] = pair_oracle(float(vector[i]), float(vector[j]), at, angle, way, spectrum.attention_factor)
    return out


def logit_oracle(query: list[float], key: list[float], scale: float, way: Arithmetic) -> float:
    """Products and sums in order, rounded to float32; the scale; the format."""
    total = Fraction(0)
    for q, k in zip(query, key, strict=True):
        product = to_format(Fraction(q) * Fraction(k), "float32")
        total = Fraction(to_format(total + Fraction(product), "float32"))
    factor = Fraction(to_format(Fraction(scale), "float32"))
    name = "float32" if way.number_format == "tf32" or way.logits == "fused" else str(way.number_format)
    stored = Fraction(to_format(total, name))
    return to_format(Fraction(to_format(stored * factor, "float32")), name)


# ---- rounding ----


def singles(*values: float) -> rounding.SingleArray:
    """Numbers as float32."""
    return np.array(values, np.float32)


SINGLES = st.floats(width=32, allow_nan=False, allow_infinity=False)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


@given(SINGLES, st.sampled_from(FORMATS))
@example(65519.996, "float16")
@example(65520.0, "float16")
@example(2.0**-25, "float16")
@example(2.0**-133, "bfloat16")
@example(2.0**-134, "bfloat16")
@example(float(np.finfo(np.float32).max), "bfloat16")
@example(float(np.finfo(np.float32).max), "tf32")
@example(1 + 2.0**-11, "tf32")
@example(1 + 2.0**-8, "bfloat16")
@example(1 + 3 * 2.0**-8, "bfloat16")
def test_nearest_is_the_nearest_fraction(value: float, name: rounding.NumberFormat) -> None:
    found = float(rounding.nearest(singles(value), name)[0])
    assert found == to_format(Fraction(value), name)
    assert math.copysign(1, found) == math.copysign(1, value)


@given(DOUBLES, st.sampled_from(FORMATS))
@example(1 + 2.0**-8 + 2.0**-40, "bfloat16")  # float32 would round to the halfway point, and that to even
@example(1 + 2.0**-11 + 2.0**-40, "float16")
@example(1 + 3 * 2.0**-8 - 2.0**-40, "bfloat16")
@example(2.0**-150, "float32")
@example(1e308, "float16")
def test_cast_from_float64_rounds_once(value: float, name: rounding.NumberFormat) -> None:
    found = float(rounding.cast(np.array([value]), name)[0])
    assert found == to_format(Fraction(value), "float32" if name == "tf32" else name)


def test_every_bfloat16_and_every_point_between_against_ml_dtypes() -> None:
    high = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    singles = np.concatenate([high | np.uint32(low) for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]).view(np.float32)
    with np.errstate(all="ignore"):
        right = singles.astype(ml_dtypes.bfloat16).astype(np.float32)
    found = rounding.nearest(singles, "bfloat16")
    assert np.array_equal(found, right, equal_nan=True)
    assert np.array_equal(np.signbit(found), np.signbit(right))
    assert np.isnan(found).sum() == np.isnan(singles).sum() > 0


@pytest.mark.parametrize("name", FORMATS)
def test_infinities_and_nan_stay(name: rounding.NumberFormat) -> None:
    found = rounding.nearest(singles(np.inf, -np.inf, np.nan), name)
    assert found[0] == np.inf
    assert found[1] == -np.inf
    assert np.isnan(found[2])


@given(st.integers(0, 2**16 - 1), st.integers(0, 2**16 - 1), st.sampled_from(["float16", "bfloat16"]))
def test_float32_in_between_is_no_second_rounding(a: int, b: int, name: rounding.NumberFormat) -> None:
    """Products and sums of two 16-bit numbers, rounded through float32, are the correctly rounded ones."""
    kind = np.float16 if name == "float16" else ml_dtypes.bfloat16
    one, two = np.array([a, b], np.uint16).view(kind).astype(np.float32)
    if not np.isfinite([one, two]).all():
        return
    with np.errstate(over="ignore", under="ignore"):
        product, total = rounding.nearest(np.array([one * two, one + two]), name)
    exact = Fraction(float(one)) * Fraction(float(two))
    assert total == to_format(Fraction(float(one)) + Fraction(float(two)), name)
    if abs(exact) >= Fraction(2) ** -126:  # below, bfloat16 products have no bits to spare in float32
        assert product == to_format(exact, name)


@given(SINGLES.filter(lambda value: abs(value) < 2.0**24))
@example(241.6792449951172)  # its float64 sine lies one unit from halfway between two float32 numbers
@example(2.0**-12)
@example(1.401298464324817e-45)
def test_cosines_are_correctly_rounded(angle: float) -> None:
    cosine, sine = rounding.cosine_and_sine(singles(angle))
    assert float(cosine[0]) == cosine_oracle(mpmath.cos, angle)
    assert float(sine[0]) == cosine_oracle(mpmath.sin, angle)


@pytest.mark.parametrize("units", [-20, -3, 3, 20])
def test_a_worse_cosine_of_a_library_changes_nothing(units: int) -> None:
    """Among these angles are some whose float64 sine is within 20 units of halfway; the ball decides them."""
    start = int(np.float32(200).view(np.uint32))
    angles = np.concatenate([np.arange(start, start + 2**17, dtype=np.uint32).view(np.float32), [241.6792449951172]])
    angles = angles.astype(np.float32)
    doubles = angles.astype(np.float64)
    sine = np.sin(doubles)
    moved = (sine.view(np.int64) + units).view(np.float64)
    right = rounding._decided(sine, doubles, balls.sine)
    assert np.array_equal(rounding._decided(moved, doubles, balls.sine), right)
    if units < 0:  # without balls the last angle goes wrong
        assert moved.astype(np.float32)[-1] != right[-1]


def test_inv_freq_is_the_nearest_float32_of_the_exact_angle() -> None:
    spectrum = RopeSpectrum.from_base(500000, head_dim=128)
    with mpmath.workdps(40):
        right = [mpmath.mpf(500000) ** (-mpmath.mpf(k) / 64) for k in range(64)]
        fractions = [Fraction(int(value.man)) * Fraction(2) ** int(value.exp) for value in right]
    assert rounding.single_inv_freq(spectrum).tolist() == [to_format(value, "float32") for value in fractions]
    # A float64 that lies just halfway, rounded up from below it and down from above: float32 goes to even from both.
    for tiny, side in ((Fraction(-1, 2**70), 0.5), (Fraction(1, 2**70), 0.5 + 2.0**-24)):
        near = RopeSpectrum.from_angle(Fraction(1, 2) + Fraction(1, 2**25) + tiny)
        assert float(near.inv_freq[0]) == 0.5 + 2.0**-25
        assert rounding.single_inv_freq(near).tolist() == [side]


# ---- rotation and logits, bit for bit ----

LLAMA = [Fraction(1), Fraction(3, 7), Fraction(1, 90)]


def small(layout: Any, factor: float, rotary: int = 6, width: int = 8) -> RopeSpectrum:
    """Three planes with rational angles, and two coordinates that pass through."""
    plain = RopeSpectrum.from_angle("1")
    angles = tuple(RopeSpectrum.from_angle(angle).angles[0] for angle in LLAMA[: rotary // 2])
    assert plain.planes == 1
    return RopeSpectrum(angles=angles, head_dim=width, layout=layout, attention_factor=factor)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(("layout", "factor"), [("half", 1.0), ("interleaved", 1.1902380714238083)])
def test_logits_against_exact_fractions(way: Arithmetic, layout: Any, factor: float) -> None:
    spectrum = small(layout, factor)
    rng = np.random.default_rng(len(str(way)))
    query, key = rng.normal(size=(2, 8))
    places = [(3, 2), (1000, 17), (40013, 39999), (262145, 0)]
    for i, j in places:
        if way.positions == "format" and math.isinf(to_format(Fraction(i), way.model_format)):
            continue
        turned = rotated(np.array([query, key]), spectrum, np.array([i, j]), way)
        q, k = (vector_oracle(v, at, spectrum, LLAMA, way) for v, at in ((query, i), (key, j)))
        assert turned.tolist() == [q, k], (i, j)
        scale = 8**-0.5
        (found,) = emulated_logits(
            query, key, spectrum, scale=scale, query_position=i, key_positions=np.array([j]), arithmetic=way
        )
        assert float(found) == logit_oracle(q, k, scale, way)


def test_compiled_sums_are_the_plain_ones() -> None:
    from ropegeo.limits.emulation_kernels import sequential_dots

    rng = np.random.default_rng(3)
    for rows, width, count in ((1, 1, 3), (2, 5, 256), (5, 9, 7), (128, 31, 64)):
        queries = rng.normal(size=(rows, width)).astype(np.float32)
        keys = rng.normal(size=(width, count)).astype(np.float32)
        out = np.full((rows, count), np.nan, np.float32)
        sequential_dots(queries, keys, out)
        right = arithmetic_room.in_order_sums(queries[:, None], keys.T[None])
        assert np.array_equal(out, right)
        if width > 4:  # the order is one of several that differ
            other = arithmetic_room.in_order_sums(queries[:, None, ::-1], keys.T[None, :, ::-1])
            assert not np.array_equal(out, other)


# ---- first wrong length ----

BASE = RopeSpectrum.from_base(10000, head_dim=128)
TABLE: dict[str, dict[tuple[int, ...], tuple[int | None, ...]]] = {
    "fused": {(0,): (714, 51, 50), (1,): (1593, 34, 35), (5,): (None, 134, 18), tuple(range(21)): (None, None, None)},
    "eager": {(0,): (714, 48, 48), (1,): (1593, 33, 33), (5,): (None, 133, 17)},
}
"""docs/MATHEMATICS.md, section 8: float32, float16, bfloat16; offset 3, to 4096 (21 planes: 3000)."""


def index_vectors(spectrum: RopeSpectrum, planes: tuple[int, ...], offset: int) -> tuple[np.ndarray, np.ndarray]:
    """q = sqrt(a) rho^-s v and k = sqrt(a) v with equal weights, v = (1, 0)."""
    z = np.zeros(spectrum.planes, complex)
    z[list(planes)] = len(planes) ** -0.5
    turned = z * np.exp(-1j * spectrum.phases(np.array(offset)))
    return spectrum.from_planes(turned), spectrum.from_planes(z)


def table_row(logits: str, planes: tuple[int, ...]) -> list[int | None]:
    """First wrong lengths as ropegeo finds them."""
    query, key = index_vectors(BASE, planes, 3)
    return [
        emulation.first_wrong_length(
            query, key, BASE, offset=3, scale=1.0, arithmetic=Arithmetic(number_format=name, logits=logits),
            max_length=3000 if len(planes) > 1 else 4096,
        ).first_wrong_length
        for name in ("float32", "float16", "bfloat16")
    ]  # fmt: skip


@pytest.mark.parametrize(("logits", "planes"), [(logits, planes) for logits, rows in TABLE.items() for planes in rows])
def test_section_8(logits: str, planes: tuple[int, ...]) -> None:
    found, right = table_row(logits, planes), TABLE[logits][planes]
    assert found[1:] == list(right[1:])
    if right[0] is None or found[0] is None:
        assert found[0] == right[0]
    else:  # moves with the last bit of inv_freq and cosine
        assert abs(found[0] - right[0]) <= right[0] / 20


FAULTS: dict[str, Callable[[Any, str], Any]] = {
    "products are not rounded": lambda values, _: values,
    "rounded towards zero": lambda values, name: (
        values if name == "float32" else (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_another_rounding_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arithmetic_room, "nearest", FAULTS[fault])
    assert table_row("fused", (0,))[1:] != [51, 50]


def brute(query: np.ndarray, key: np.ndarray, spectrum: RopeSpectrum, way: Arithmetic, **at: Any) -> tuple[Any, ...]:
    """First wrong length, outcome and rivals, one query at a time with plain sums."""
    offset, count = at["offset"], at["max_length"]
    places = at["start_position"] + np.arange(count)
    queries, keys = (rotated(vector, spectrum, places, way) for vector in (query, key))
    for i in range(offset, count):
        first = 0 if at["window"] is None else max(0, i - at["window"] + 1)
        seen = keys[first : i + 1]
        logits = way.finished(arithmetic_room.in_order_sums(np.broadcast_to(queries[i], seen.shape), seen), at["scale"])
        mine = logits[i - offset - first]
        rest = logits.copy()
        rest[i - offset - first] = -np.inf
        if rest.max() >= mine:
            rivals = {i - first - int(j) - offset for j in np.flatnonzero(rest == rest.max())}
            return i + 1, "wrong" if rest.max() > mine else "tie", rivals
    return None, "none", {None}


@pytest.mark.parametrize("way", SOME_SLOW)
def test_first_wrong_length_is_the_one_of_brute_force(way: Arithmetic) -> None:
    """Some planes with phases and something that passes through; shifted positions, a window, several tiles of keys."""
    rng = np.random.default_rng(7)
    spectrum = RopeSpectrum.from_base(10000, head_dim=12, rotary_dim=10)
    seen = set()
    for planes, offset, start, window in (
        ((1,), 0, 0, None),
        ((0,), 3, 5, None),
        ((0, 1), 4, 1000, 40),
        ((0, 2, 3), 0, 300, None),
        ((0, 1, 2, 3, 4), 3, 0, 100),
    ):
        z = np.zeros(5, complex)
        z[list(planes)] = np.exp(1j * rng.uniform(-3, 3, len(planes)))
        passed = rng.normal(size=2)
        turned = z * np.exp(-1j * spectrum.phases(np.array(offset)))
        vectors = spectrum.from_planes(turned, passed), spectrum.from_planes(z, passed)
        at: Any = {"offset": offset, "start_position": start, "window": window, "max_length": 300, "scale": 12**-0.5}
        length, outcome, rivals = brute(*vectors, spectrum, way, **at)
        found = emulation.first_wrong_length(*vectors, spectrum, arithmetic=way, threads=1, **at)
        assert (found.cause is None) == (length is None)
        assert (found.first_wrong_length, found.outcome) == (length, outcome)
        assert found.rival in rivals
        assert found.searched == (length or 300)
        seen.add(length)
    assert len(seen) > 1 or way.model_format == "float32"


def test_weights_are_those_of_the_plain_logits() -> None:
    spectrum = RopeSpectrum.from_base(10000, head_dim=16)
    query, key = (5 * v for v in index_vectors(spectrum, tuple(range(8)), 2))
    for way, window in itertools.product((BF16, Arithmetic(number_format="float16", logits="eager")), (None, 100)):
        found = emulation.emulated_weights(
            query, key, spectrum, offset=2, scale=0.25, arithmetic=way, first=250, last=560, window=window
        )
        assert found.lengths.tolist() == list(range(250, 561))
        for place in (0, 7, 310):
            i = int(found.lengths[place]) - 1
            seen = np.arange(0 if window is None else i - window + 1, i + 1)
            logits = emulated_logits(
                query, key, spectrum, scale=0.25, query_position=i, key_positions=seen, arithmetic=way
            )[::-1].tolist()
            target = logits.pop(2)
            with mpmath.workdps(40):
                total = mpmath.fsum(mpmath.exp(mpmath.mpf(value)) for value in logits)
                log_sum, weight = mpmath.log(total), 1 / (1 + total / mpmath.exp(target))
            assert float(found.target[place]) == target
            assert float(found.rival[place]) == max(logits)
            assert abs(found.log_rivals[place] - log_sum) <= found.log_error + 2.0**-52 * abs(log_sum)
            assert abs(found.weight[place] - weight) <= found.log_error / 4 + 1e-15
        saved = json.loads(json.dumps(found.to_dict()))
        assert saved["schema"] == "ropegeo.emulated_weights/1"
        assert (saved["lengths"], saved["weight"]) == (found.lengths.tolist(), found.weight.tolist())
        light = float(found.weight[40:].max())
        first = emulation.first_light_length(
            query, key, spectrum, offset=2, scale=0.25, arithmetic=way, weight=light, max_length=560, window=window
        )
        every = emulation.emulated_weights(
            query, key, spectrum, offset=2, scale=0.25, arithmetic=way, last=560, window=window
        )
        here = np.flatnonzero(every.weight <= light)[0]
        assert first.first_light_length == every.lengths[here]
        assert first.smallest_weight == every.weight[: here + 1].min()
        again = json.loads(json.dumps(first.to_dict()))
        assert again["schema"] == "ropegeo.emulated_weight_length/1"
        assert (again["first_light_length"], again["smallest_weight"]) == (every.lengths[here], first.smallest_weight)
        heavy = emulation.first_light_length(
            query, key, spectrum, offset=2, scale=0.25, arithmetic=way, weight=1e-9, max_length=560, window=window
        )
        assert (heavy.first_light_length, heavy.searched) == (None, 560)
        assert (heavy.smallest_weight, heavy.wrong) == (every.weight.min(), False)


def test_a_tie_of_two_is_half_the_weight_and_so_light() -> None:
    still = RopeSpectrum.from_angle("1 turn")
    v = np.array([2.0, 0.0])
    way = Arithmetic(positions="format")
    found = emulation.first_light_length(v, 0 * v, still, offset=0, scale=1.0, arithmetic=way, weight=0.5)
    assert (found.first_light_length, found.wrong, found.smallest_weight) == (2, True, 0.5)


# ---- why, and whether the order matters ----


def test_causes() -> None:
    near = emulation.first_wrong_length(*index_vectors(BASE, (0,), 3), BASE, offset=3, scale=1.0, arithmetic=BF16)
    assert (near.rival, near.runner_up, near.cause) == (44, 44, "near return")
    with mpmath.workdps(30):
        assert abs(near.exact_gap - (1 - mpmath.cos(44))) <= near.exact_gap_error + 2.0**-52
    planes = tuple(range(21))
    rounded = Arithmetic(number_format="bfloat16", positions="format")
    beside = emulation.first_wrong_length(
        *index_vectors(BASE, planes, 3), BASE, offset=3, scale=1.0, arithmetic=rounded
    )
    assert (beside.first_wrong_length, abs(beside.rival or 0), beside.cause) == (258, 1, "rounding")
    query, key = index_vectors(BASE, (0,), 0)
    over = emulation.first_wrong_length(
        300 * query,
        300 * key,
        BASE,
        offset=0,
        scale=1.0,
        arithmetic=Arithmetic(number_format="float16", logits="eager"),
    )
    assert (over.first_wrong_length, over.outcome, over.cause) == (1, "overflow", "overflow")
    assert over.to_dict()["target_logit"] is None
    assert over.to_dict()["schema"] == "ropegeo.emulated_length/1"
    late = Arithmetic(number_format="float16", positions="format")
    far = emulation.first_wrong_length(
        *index_vectors(BASE, (30,), 0), BASE, offset=0, scale=1.0, arithmetic=late, start_position=65519, max_length=9
    )
    assert (far.first_wrong_length, far.outcome) == (2, "overflow")  # 65520 is the first position that is infinite


def test_order_matters_only_where_an_order_changes_the_answer() -> None:
    """Three planes of one angle, nearly back after 710 positions. The layouts differ in the order of the sum only."""
    rng = np.random.default_rng(11)
    spectrum = RopeSpectrum(angles=RopeSpectrum.from_angle("1").angles * 3, head_dim=6)
    lengths = []
    for _ in range(2):
        z = np.exp(1j * rng.uniform(-3, 3, 3))
        ours = [z * np.exp(-1j * spectrum.phases(np.array(1))), z]
        found = []
        for layout in LAYOUTS:
            there = spectrum.with_layout(layout)
            query, key = (there.from_planes(v) for v in ours)
            at: Any = {"offset": 1, "scale": 1.0, "arithmetic": Arithmetic(), "max_length": 900}
            found.append(emulation.first_wrong_length(query, key, there, **at))
        assert all(result.order_matters for result in found)
        lengths.append([result.first_wrong_length for result in found])
    assert any(one != other for one, other in lengths)
    planes = tuple(range(21))
    for way in (Arithmetic(), BF16):  # a margin of 0.09, or two exact products
        wide = emulation.first_wrong_length(*index_vectors(BASE, planes, 3), BASE, offset=3, scale=1.0, arithmetic=way)
        assert (wide.first_wrong_length, wide.order_matters) == (None, False)
    one = emulation.first_wrong_length(*index_vectors(BASE, (0,), 3), BASE, offset=3, scale=1.0, arithmetic=F16)
    assert (one.first_wrong_length, one.order_matters) == (51, False)


def test_order_slack_bounds_every_order() -> None:
    rng = np.random.default_rng(5)
    for way in (Arithmetic(), BF16):
        q = rounding.nearest(rng.normal(size=(40, 24)).astype(np.float32), way.model_format)
        k = rounding.nearest(rng.normal(size=(40, 24)).astype(np.float32), way.model_format)
        plain = arithmetic_room.in_order_sums(q, k).astype(np.float64)
        longest = sums.norms(k)
        for _ in range(20):
            order = rng.permutation(24)
            other = arithmetic_room.in_order_sums(q[:, order], k[:, order]).astype(np.float64)
            for row in range(40):
                slack = sums.order_slacks(q[row : row + 1], float(longest[row]), way)[0]
                assert abs(other[row] - plain[row]) <= slack
            assert (other != plain).any()


# ---- retrieval ----


def letter_brute(queries: np.ndarray, keys: np.ndarray, spectrum: RopeSpectrum, way: Arithmetic, **at: Any) -> Any:
    """First length at which some answer, rival and pair of places fails, by loops."""
    places = at["start_position"] + np.arange(at["max_length"])
    asking, seen = ([rotated(v, spectrum, places, way) for v in vectors] for vectors in (queries, keys))
    for i in range(1, at["max_length"]):
        for b, a in itertools.permutations(range(len(keys)), 2):
            match, rival = (
                way.finished(arithmetic_room.in_order_sums(asking[b][i : i + 1], seen[x][i::-1]), at["scale"]).tolist()
                for x in (b, a)
            )
            for own in (0,) if at["own_only"] else range(i + 1):
                if max(rival[:own] + rival[own + 1 :]) >= match[own]:
                    return i + 1
    return None


@pytest.mark.slow
@pytest.mark.parametrize("own_only", [False, True])
@pytest.mark.parametrize(
    "way", SOME_SLOW[:8] + [pytest.param(way, id=str(way), marks=pytest.mark.slow) for way in WAYS[8:]]
)
def test_letters_against_loops(way: Arithmetic, own_only: bool) -> None:
    seen = set()
    for letters, angle, centre in ((3, "0.05", 0.0), (4, "0.02", 9.5), (2, "2.9", 0.0), (3, "0.9", 20.0)):
        spectrum = RopeSpectrum.from_angle(angle)
        code = np.exp(-2j * np.pi * np.arange(letters) / letters)
        keys = spectrum.from_planes(code[:, None])
        queries = spectrum.from_planes((code * np.exp(-1j * centre * spectrum.inv_freq[0]))[:, None])
        at: Any = {"scale": 0.7, "max_length": 26, "start_position": 3, "own_only": own_only}
        found = letter_emulation.first_wrong_retrieval_length(queries, keys, spectrum, arithmetic=way, threads=1, **at)
        assert found.first_wrong_length == letter_brute(queries, keys, spectrum, way, **at)
        if found.first_wrong_length is not None:
            assert found.query_letter != found.rival_letter
            assert found.match_distance != found.rival_distance
            assert found.rival_logit >= found.match_logit  # type: ignore[operator]
        seen.add(found.first_wrong_length)
    assert len(seen) > 1


def test_letters_in_float32_fail_where_they_do_exactly() -> None:
    """docs/MATHEMATICS.md, section 6: 8 letters, angle 0.0027: first failing length 147; centred on 292: 292."""
    spectrum = RopeSpectrum.from_angle("0.0027")
    code = np.exp(-2j * np.pi * np.arange(8) / 8)
    keys = spectrum.from_planes(code[:, None])
    for centre, length in ((0.0, 147), (291 / 2, 292)):
        queries = spectrum.from_planes((code * np.exp(-1j * centre * 0.0027))[:, None])
        found = letter_emulation.first_wrong_retrieval_length(
            queries, keys, spectrum, scale=1.0, arithmetic=Arithmetic(), max_length=300
        )
        assert found.first_wrong_length == length
        assert found.query_letters == tuple(range(8))
        assert found.to_dict()["schema"] == "ropegeo.emulated_letters/1"


@given(st.lists(st.integers(-4, 4), min_size=2, max_size=6), st.data())
def test_closest_pairs_hold_the_closest_of_all(match: list[int], data: st.DataObject) -> None:
    rivals = data.draw(st.lists(st.integers(-4, 4), min_size=len(match), max_size=len(match)))
    pairs = letter_emulation.closest_pairs(singles(*match)[None], singles(*rivals)[None])
    best = max(pairs, key=lambda pair: pair.rival[0] - pair.match[0])
    every = [rivals[d] - match[own] for own in range(len(match)) for d in range(len(rivals)) if d != own]
    assert best.rival[0] - best.match[0] == max(every)
    assert best.match_at[0] != best.rival_at[0]
    assert (best.rival[0], best.match[0]) == (rivals[best.rival_at[0]], match[best.match_at[0]])


def test_query_letters_are_left_out_only_where_it_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    choose, most = letter_emulation._query_letters, letter_emulation.MAX_WORK
    assert choose(8, 4096, None) == (tuple(range(8)), 4096)
    some, all_to = choose(120, 4096, None)
    assert 1 < len(some) < 120
    assert len(some) * 120 * 4096**2 / 2 <= most
    assert 120**2 * all_to**2 / 2 <= most < 120**2 * (all_to + 1) ** 2 / 2
    assert choose(120, 1 << 18, None)[0] == (0,)
    assert choose(5, 9, [4, 1]) == ((1, 4), 0)
    assert choose(2, 9, [1, 0]) == ((0, 1), 9)
    # Letter 1 fails before the end; with the others left out beyond a length it is seen only before that.
    spectrum = RopeSpectrum.from_angle("0.02")
    code = np.exp(-2j * np.pi * np.arange(3) / 3)
    keys = spectrum.from_planes(code[:, None])
    queries = spectrum.from_planes((code * np.exp(-1j * np.array([40, 0, 40]) * 0.02))[:, None])
    at: Any = {"scale": 1.0, "arithmetic": Arithmetic(), "max_length": 90}
    every = letter_emulation.first_wrong_retrieval_length(queries, keys, spectrum, **at)
    assert (every.query_letter, every.all_letters_to) == (1, every.first_wrong_length)
    for all_to, length in ((60, every.first_wrong_length), (40, None)):
        monkeypatch.setattr(letter_emulation, "MAX_WORK", 9 * all_to**2 // 2 + 1)
        found = letter_emulation.first_wrong_retrieval_length(queries, keys, spectrum, **at)
        assert found.query_letters == ((0,) if length is None else (0, 1, 2))
        assert (found.first_wrong_length, found.all_letters_to) == (length, length or all_to)


# ---- public cases ----


def test_case_31_positions_held_in_bfloat16() -> None:
    held = rounding.nearest(np.arange(4096, dtype=np.float32), "bfloat16")
    assert float(rounding.nearest(singles(15962), "bfloat16")[0]) == 15936
    assert len(set(held.tolist())) == 769
    one = RopeSpectrum.from_angle("1")
    positions = Arithmetic(number_format="bfloat16", positions="format")
    for way, cosine in ((BF16, -0.908015901251), (positions, -0.267950071128)):
        table, _ = arithmetic_room.cosines(one, np.array([15962]), way)
        assert abs(float(table[0, 0]) - cosine) <= 2.0**-9
    spectrum = RopeSpectrum.from_base(500000, head_dim=128)
    query, key = spectrum.from_planes((1 + 1j) * np.exp(-3j * spectrum.inv_freq)), np.ones(128)
    at: Any = {"scale": 128**-0.5, "query_position": 4095, "key_positions": np.arange(4096)}
    logits = emulated_logits(query, key, spectrum, arithmetic=positions, **at)
    assert np.flatnonzero(logits == logits.max()).tolist() == list(range(4088, 4096))
    exact = emulated_logits(query, key, spectrum, arithmetic=Arithmetic(), **at)
    best, second = np.sort(exact)[:-3:-1]
    assert int(exact.argmax()) == 4092
    assert abs(float(best) - float(second) - 0.2499285983) <= 1e-5  # float32
    found = emulation.first_wrong_length(query, key, spectrum, offset=3, scale=128**-0.5, arithmetic=positions)
    assert (found.first_wrong_length, found.cause) == (258, "rounding")  # 257 is the first position that moves
    assert abs((found.runner_up_gap or 0) - 0.2499285983) <= 1e-10 + found.exact_gap_error


def test_case_33_frequencies_rounded_to_bfloat16() -> None:
    spectrum = RopeSpectrum.from_base(10000, head_dim=128)
    coarse = rounding.cast(spectrum.inv_freq, "bfloat16").astype(np.float64)
    assert float(coarse[1]) == 0.8671875
    assert abs(4095 * (float(coarse[1]) - float(spectrum.inv_freq[1])) - 5.0089083405) <= 5e-11
    error = np.abs(np.cos(4095 * coarse) - np.cos(4095 * spectrum.inv_freq))
    assert abs(error.max() - 1.6788) <= 5e-5
    kept = rounding.single_inv_freq(spectrum).astype(np.float64)  # as here: float32 stays within a part in 2^24
    assert (np.abs(kept - spectrum.inv_freq) <= 2.0**-24 * spectrum.inv_freq).all()


# ---- what is refused ----

V = np.array([1.0, 0.0])
ONE = RopeSpectrum.from_angle("1")
INDEX: dict[str, Any] = {"offset": 0, "scale": 1.0, "arithmetic": BF16}
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: Arithmetic(number_format="fp8"), "number format 'fp8' is unknown; use one of float32, float16, bfloat16"),
    (lambda: Arithmetic(logits="both"), "logits 'both' are unknown; use one of fused, eager"),
    (lambda: Arithmetic(positions="int"), "positions 'int' are unknown; use one of exact, format"),
    (lambda: rotated(V, ONE, np.array([1 << 24]), BF16), "positions must lie from 0 to 16777215"),
    (lambda: rotated(V, ONE, np.array([-1]), BF16), "positions must lie from 0 to 16777215"),
    (lambda: rotated(np.ones(4), ONE, np.array([1]), BF16), "vectors have shape"),
    (lambda: rotated(np.array([np.inf, 0]), ONE, np.array([1]), BF16), "NaN or infinite"),
    (lambda: rounding.single_inv_freq(RopeSpectrum.from_angle("10^39")), "beyond the range of float32"),
    (lambda: emulation.first_wrong_length(V, V, ONE, **{**INDEX, "offset": 4096}), "must lie from 0 to 4095"),
    (lambda: emulation.first_wrong_length(V, V, ONE, **{**INDEX, "offset": -1}), "must lie from 0 to 4095"),
    (lambda: emulation.first_wrong_length(V, V, ONE, **{**INDEX, "scale": 0.0}), "scale 0.0 must be positive"),
    (lambda: emulation.first_wrong_length(V, V, ONE, **{**INDEX, "offset": 8}, window=8), "outside the window"),
    (lambda: emulation.first_wrong_length(V, V, ONE, **INDEX, window=0), "window 0 must be at least 1"),
    (lambda: emulation.first_wrong_length(V, V, ONE, **INDEX, max_length=1 << 19), "up to length 262144"),
    (lambda: emulation.first_wrong_length(V, V, ONE, **INDEX, max_length=0), "max_length 0 must be at least 1"),
    (lambda: emulation.first_wrong_length(V, V, ONE, **INDEX, start_position=1 << 24), "must lie from 0 to 16777215"),
    (lambda: emulation.first_light_length(V, V, ONE, **INDEX, weight=1.0), "weight 1.0 must lie strictly between"),
    (lambda: emulation.emulated_weights(V, V, ONE, **INDEX, first=9, last=8), "must begin above the offset 0"),
    (
        lambda: letter_emulation.first_wrong_retrieval_length(V[None], V[None], ONE, scale=1.0, arithmetic=BF16),
        "at least 2 letters",
    ),
    (
        lambda: letter_emulation.first_wrong_retrieval_length(
            np.array([V, -V]), np.array([V, -V]), ONE, scale=1.0, arithmetic=BF16, query_letters=[2]
        ),
        "query_letters must be numbers from 0 to 1",
    ),
    (
        lambda: letter_emulation.first_wrong_retrieval_length(
            np.array([V, -V]), np.array([V, -V]), ONE, scale=1.0, arithmetic=BF16, max_length=1
        ),
        "a single token has no rival",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(RopegeoError) as raised:
        call()
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


# ---- against torch ----


@pytest.mark.models
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_rotation_and_eager_logits_are_those_of_torch(name: rounding.NumberFormat) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    llama = pytest.importorskip("transformers.models.llama.modeling_llama", reason="transformers is not installed")
    kind = getattr(torch, name)
    positions = np.array([0, 1, 2, 77, 4095, 65535])
    plain = RopeSpectrum.from_base(10000, head_dim=64)
    spectrum = RopeSpectrum(angles=plain.angles, head_dim=64, attention_factor=1.1902380714238083)
    vectors = np.random.default_rng(2).normal(size=(6, 64))
    way = Arithmetic(number_format=name, logits="eager")
    tables = [torch.from_numpy(table.astype(np.float32)) for table in arithmetic_room.cosines(spectrum, positions, way)]
    cosine, sine = (torch.cat([table, table], dim=-1).to(kind)[None] for table in tables)
    # From float32: torch casts a float64 by way of float32, which rounds twice.
    given_singles = torch.from_numpy(vectors.astype(np.float32)).to(kind)[None, None]
    turned, _ = llama.apply_rotary_pos_emb(given_singles, given_singles, cosine, sine)
    ours = rotated(vectors.astype(np.float32).astype(np.float64), spectrum, positions, way)
    assert np.array_equal(turned[0, 0].float().numpy(), ours)
    # The table itself: torch's own float32 cosines may differ in their last bit, which the format seldom shows.
    angles = torch.from_numpy(positions.astype(np.float32))[:, None] * torch.from_numpy(
        rounding.single_inv_freq(spectrum).astype(np.float32)
    )
    theirs = (angles.cos() * spectrum.attention_factor).to(kind).float().numpy()
    assert (theirs != tables[0].numpy()).mean() < 0.01
    # A product of two coordinates has one sum, so that torch's order is ours; then the scale, in either way.
    pairs = ours[:, :2]
    stored = torch.from_numpy(np.ascontiguousarray(pairs)).to(kind)
    scaled = torch.matmul(stored, stored.T) * 64**-0.5
    sums_here = arithmetic_room.in_order_sums(pairs[:, None], pairs[None])
    assert np.array_equal(scaled.float().numpy(), way.finished(sums_here, 64**-0.5))

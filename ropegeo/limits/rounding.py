r"""Number formats, bit for bit: rounding to float32, float16, bfloat16 and tf32, and correctly rounded cosines.

Values of every format are held as float32, which contains them all: a *number format* here is a subset of float32.

| format | significant bits p' | smallest normal | rounding to it |
| --- | --- | --- | --- |
| `float32` | 24 | 2^-126 | nearest, ties to even |
| `float16` | 11 | 2^-14 | nearest, ties to even |
| `bfloat16` | 8 | 2^-126 | nearest, ties to even |
| `tf32` | 11 | 2^-126 | nearest, ties away from zero |

tf32 is no storage format: only the two inputs of a matrix product are rounded to it. Ties go away from zero because
that is what the one conversion of PTX that every tf32 device has does (`cvt.rna.tf32.f32`), and CUTLASS with it. A
kernel that skips the conversion has its inputs cut off instead: their error is up to twice as large, and biased.

**Two roundings in a row.** Frameworks compute an operation on 16-bit numbers in float32 (p = 24) and round the result
to the format (p'). This is the correctly rounded operation, wherever the float32 result is exact or normal, as p >= 2
p' + 2. Products have at most 2 p' <= 22 bits: exact in float32. A sum a + b, |a| >= |b|, with exponents e_a and e_b,
that float32 cannot hold needs more than p bits, from an exponent <= e_a + 1 down to e_b - p' + 1; hence e_b <= e_a +
p' - p <= e_a - p' - 2 and |b| <= (1 - 2^-p') 2^(e_a - p' - 1). The points halfway between a and its neighbours in the
format are at least 2^(e_a - p' - 1) from a (below a power of 2; twice that otherwise), so the sum is at least 2^(e_a
- 2p' - 1) away from them, while float32 moves it by at most 2^(e_a - p) <= 2^(e_a - 2p' - 2). So it stays on its side
of them, and both ways give a. Where the result is subnormal in the format a sum is exact. What is left are bfloat16
products below 2^-126: what the frameworks do there, float32 first, is what is done here.

**From float64** to a 16-bit format a rounding through float32 would not be innocent: 53 bits may lie anywhere. The
number is first rounded to *odd*: to float32 towards zero, and the last bit set if anything was lost. With two bits
more than the format, an odd last bit keeps it off every halfway point, on its own side (Boldo and Melquiond, 2008).

**Cosines.** cos and sin of a float32 angle are correctly rounded to float32: computed in float64 and rounded, and
where the float64 value lies within `DOUBT` units in its last place of a point halfway between two float32 numbers
(one value in ten million), decided in ball arithmetic. A cosine of a rational number other than 0 is transcendental,
so never halfway. Results thus do not depend on the last bit of a library's cosine. Below an angle x of 2^-12 the
cosine rounds to 1 and the sine to x: x^2/2 and x^3/6 are less than half the spacing of float32 below 1 and below x,
by far more than a library errs.

Source: ours; the first theorem is Figueroa's (1995).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from jaxtyping import Float32, Float64
from numpy.typing import NDArray

from ropegeo._arrays import FloatArray
from ropegeo.errors import InvalidInputError
from ropegeo.exact import balls
from ropegeo.spectrum import RopeSpectrum

if TYPE_CHECKING:
    SingleArray = NDArray[np.float32]
else:  # as in `ropegeo._arrays`
    SingleArray = np.ndarray

NumberFormat: TypeAlias = Literal["float32", "float16", "bfloat16", "tf32"]
NUMBER_FORMATS: tuple[NumberFormat, ...] = ("float32", "float16", "bfloat16", "tf32")

DOUBT = 32
"""Units in the last place within which a library's float64 cosine is trusted: numpy's own bound is 4."""
_CUT = 29
"""Bits of a float64 significand that float32 does not keep."""


def check_format(call: str, number_format: str) -> NumberFormat:
    """`number_format` itself if it is a known format.

    Raises:
        InvalidInputError: any other word.
    """
    for known in NUMBER_FORMATS:
        if number_format == known:
            return known
    raise InvalidInputError(
        f"{call}: number format {str(number_format)[:40]!r} is unknown; use one of {', '.join(NUMBER_FORMATS)}"
    )


def nearest(values: Float32[SingleArray, "*shape"], number_format: NumberFormat) -> Float32[SingleArray, "*shape"]:
    """The number of a format nearest to each float32, as float32.

    Args:
        values: any float32, infinities and NaN too.
        number_format: ties go to even, in tf32 away from zero; beyond the largest number is infinity.

    Accuracy: exact.

    Source: module.

    Example:
        >>> nearest(np.float32([1.00390625, 1.01171875, 3.4e38, 1e-45]), "bfloat16").tolist()
        [1.0, 1.015625, inf, 0.0]
    """
    if number_format == "float32":
        return values
    if number_format == "float16":
        with np.errstate(over="ignore", under="ignore"):
            return values.astype(np.float16).astype(np.float32)
    bits = values.view(np.uint32)
    # Added to the bits that are cut off, this carries into those that stay where they are above half, or half and odd.
    # A carry out of the significand raises the exponent, as it must, up to infinity.
    if number_format == "bfloat16":
        kept = (bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))) & np.uint32(0xFFFF0000)
    else:
        kept = (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return np.where(np.isnan(values), values, kept.view(np.float32))


def cast(values: Float64[FloatArray, "*shape"], number_format: NumberFormat) -> Float32[SingleArray, "*shape"]:
    """The number of a format nearest to each float64, as float32, in one rounding; to float32 in the case of tf32.

    Accuracy: exact.

    Source: module, rounding to odd.
    """
    with np.errstate(over="ignore", under="ignore"):
        single = values.astype(np.float32)
    if number_format in ("float32", "tf32"):
        return single
    with np.errstate(invalid="ignore"):
        lost = (single.astype(np.float64) != values) & np.isfinite(values)
    towards_zero = np.where(np.abs(single) > np.abs(values), np.nextafter(single, np.float32(0)), single)
    odd = (towards_zero.view(np.uint32) | np.uint32(1)).view(np.float32)
    return nearest(np.where(lost, odd, single), number_format)


def single_inv_freq(spectrum: RopeSpectrum) -> Float32[SingleArray, " planes"]:
    """The float32 nearest to each exact angle, in radians per position.

    Libraries compute theirs in float32 and differ from it, and from each other, in the last bit.

    Raises:
        InvalidInputError: an angle beyond the range of float32.

    Accuracy: correctly rounded.
    """
    with np.errstate(over="ignore", under="ignore"):
        single = spectrum.inv_freq.astype(np.float32)
    if not np.isfinite(single).all():
        raise InvalidInputError("number formats: an angle is beyond the range of float32, so no model can hold it")
    # The float64 is itself rounded: one that lies just halfway may come from either side.
    for plane in np.flatnonzero(_halfway_distance(spectrum.inv_freq) == 0):
        low, middle, high = _neighbours(float(spectrum.inv_freq[plane]))
        exact = spectrum.angles[plane]
        if exact != middle:
            single[plane] = low if exact < middle else high
    return np.asarray(single)


def cosine_and_sine(
    angles: Float32[SingleArray, "*shape"],
) -> tuple[Float32[SingleArray, "*shape"], Float32[SingleArray, "*shape"]]:
    """The float32 nearest to the cosine and to the sine of each float32 angle; NaN where it is infinite.

    Accuracy: correctly rounded.

    Source: module.
    """
    doubles = angles.astype(np.float64)
    with np.errstate(invalid="ignore", under="ignore"):
        cosine, sine = np.cos(doubles), np.sin(doubles)
    return _decided(cosine, doubles, balls.cosine), _decided(sine, doubles, balls.sine)


def _decided(values: FloatArray, angles: FloatArray, function: Callable[[balls.Ball], balls.Ball]) -> SingleArray:
    """Values of a function at some angles as float32, those in doubt by the function itself."""
    with np.errstate(under="ignore"):
        single = values.astype(np.float32)
    doubtful = (np.abs(_halfway_distance(values)) <= DOUBT) & (np.abs(angles) >= 2.0**-12)
    for place in np.flatnonzero(doubtful):
        single.flat[place] = _by_balls(float(values.flat[place]), Fraction(float(angles.flat[place])), function)
    return np.asarray(single)


def _by_balls(value: float, angle: Fraction, function: Callable[[balls.Ball], balls.Ball]) -> np.float32:
    low, middle, high = _neighbours(abs(value))
    bits = 128
    while True:  # ends, since the function is never rational at a rational number that is not 0
        with balls.precision(bits):
            ends = sorted(abs(end) for end in balls.rational_ends(function(balls.ball(angle))))
        if ends[0] > middle or ends[1] < middle:
            return np.float32(np.copysign(high if ends[0] > middle else low, value))
        bits *= 2


def _halfway_distance(values: FloatArray) -> NDArray[np.int64]:
    """How far the bits that float32 cuts off are from one half, in units in the last place of float64."""
    cut = values.view(np.int64) & ((1 << _CUT) - 1)
    return np.asarray(cut - (1 << (_CUT - 1)))


def _neighbours(value: float) -> tuple[np.float32, Fraction, np.float32]:
    """The float32 numbers below and above a positive number, and the point halfway."""
    bits = np.float64(value).view(np.int64)
    low = np.int64(bits & ~((1 << _CUT) - 1)).view(np.float64)
    high = np.float64(np.nextafter(np.float32(low), np.float32(np.inf)))
    return np.float32(low), (Fraction(float(low)) + Fraction(float(high))) / 2, np.float32(high)

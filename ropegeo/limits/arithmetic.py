r"""As run: number formats. How models compute a rotated logit, operation by operation, bit for bit.

Exact logits depend on the distance only. Models rotate queries and keys at their *absolute* positions in a number
format, and logits then depend on both positions. With R the rounding to the model's format (`rounding.py`) and r that
to float32, a coordinate pair (x, y) of a query or key at position p is turned as Hugging Face's models turn it:

    angle = r(p * w),    w the float32 nearest to the plane's exact inv_freq; p is R(p) first if `positions="format"`,
    c = R(r(r(cos angle) * m)),    s = R(r(r(sin angle) * m)),    m the attention factor as float32,
    x' = R(R(x) c) + R(-R(y) s) rounded by R,    y' = R(R(y) c) + R(R(x) s) rounded by R.

cos and sin are correctly rounded to float32. Coordinates that pass through are R(x). Each product and each sum is
rounded by itself: frameworks do this, in float32 and then to the format, and `rounding.py` proves that this is one
correct rounding. A format of 16 bits has R = its own rounding throughout; float32 has R = r; tf32 has R = r too, but
both inputs of the matrix product, x' and y' of query and key, are rounded to tf32.

The logit of a query and a key is then

    a = (((q_0 k_0 + q_1 k_1) + q_2 k_2) + ...,    coordinates in order, each product and each sum rounded by r,

the one order of the sum that is fixed here (`a` is exact in its products but for float32: 16-bit and tf32 numbers
have at most 11 bits). Hardware sums in other orders. For m coordinates that are not zero in both, u = 2^-24, S = sum
|q_k k_k|, every order of additions in float32 gives a value within

    gamma S,    gamma = m' u/(1 - m' u),    m' = m - 1 if products are exact, else m (fused multiply-adds included),

of the exact sum, and for m <= 2 with exact products all orders agree, as an addition commutes. So orders differ by at
most 2 gamma S <= 2 gamma |q| |k|, and results say whether that could change them (`order_matters`). Tensor cores that
cut off instead of rounding their sums are not covered.

Last, the scale:

* `logits="fused"`, as attention kernels do: r(a * scale), kept in float32;
* `logits="eager"`, as matrix product by matrix product: R(r(R(a) * scale)), the product's output in the format, times
  the scale in float32 arithmetic, and to the format again. (In float32 and tf32 the same as fused.) A scale of 1, or
  another power of two, changes no order of logits.

Both maps of a are monotone: the largest logit is that of the largest a, and a rival reaches the target iff the map of
the largest a among the rivals reaches the map of the target's. The softmax that follows is taken in float32 by
models; here its exact value for these logits is given, in float64.

Positions are below 2^24, where float32 holds every integer.

Source: ours; docs/MATHEMATICS.md, section 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from jaxtyping import Float32, Float64, Int

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.errors import InvalidInputError
from ropegeo.limits.rounding import (
    NumberFormat,
    SingleArray,
    cast,
    check_format,
    cosine_and_sine,
    nearest,
    single_inv_freq,
)
from ropegeo.spectrum import RopeSpectrum
from ropegeo.spectrum.layout import pair_indices

Logits: TypeAlias = Literal["fused", "eager"]
Positions: TypeAlias = Literal["exact", "format"]
MAX_POSITION = 1 << 24
_ROWS = 2048
"""Positions rotated at once: a few megabytes of cosines."""


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """How a model computes.

    Attributes:
        number_format: `float32`, `float16`, `bfloat16` or `tf32`.
        logits: `fused` keeps logits in float32, `eager` rounds them to the format.
        positions: `exact`, or `format`: rounded to the format before they are multiplied, a known fault.

    Raises:
        InvalidInputError: an unknown word.

    Example:
        >>> str(Arithmetic(number_format="bfloat16", logits="eager"))
        'bfloat16, eager logits'
    """

    number_format: NumberFormat | str = "float32"
    logits: Logits | str = "fused"
    positions: Positions | str = "exact"

    def __post_init__(self) -> None:
        check_format("Arithmetic", self.number_format)
        for name, known in (("logits", get_args(Logits)), ("positions", get_args(Positions))):
            if getattr(self, name) not in known:
                given = str(getattr(self, name))[:40]
                raise InvalidInputError(f"Arithmetic: {name} {given!r} are unknown; use one of {', '.join(known)}")

    @property
    def model_format(self) -> NumberFormat:
        """The format of everything but the inputs of a matrix product: float32 where those are tf32."""
        known = check_format("Arithmetic", self.number_format)
        return "float32" if known == "tf32" else known

    @property
    def exact_products(self) -> bool:
        """Whether a product of two coordinates is exact in float32."""
        return self.number_format != "float32"

    def finished(self, sums: Float32[SingleArray, "*shape"], scale: float) -> Float32[SingleArray, "*shape"]:
        """Float32 sums as logits: times the scale, and rounded to the format where logits are `eager`."""
        factor = np.float32(scale)
        if self.logits == "fused" or self.model_format == "float32":
            return sums if factor == 1 else np.asarray(sums * factor)
        stored = nearest(sums, self.model_format)
        return stored if factor == 1 else nearest(np.asarray(stored * factor), self.model_format)

    def __str__(self) -> str:
        """For people."""
        rounded = "" if self.positions == "exact" else f", positions in {self.model_format}"
        return f"{self.number_format}, {self.logits} logits{rounded}"


def rotated(
    vectors: Float64[FloatArray, "*#batch head_dim"],
    spectrum: RopeSpectrum,
    positions: Int[IntArray, "*#batch"],
    arithmetic: Arithmetic,
) -> Float32[SingleArray, "*batch head_dim"]:
    """Queries or keys, rotated as a model rotates them and as they enter the matrix product.

    Args:
        vectors: before rotation, float64; they are cast to the format first. One vector may serve all positions.
        spectrum: the rotation.
        positions: absolute, 0 to 2^24 - 1.
        arithmetic: the format; its `logits` do not matter here.

    Returns:
        Numbers of the format (tf32 too), held as float32; infinite or NaN where the format overflows.

    Raises:
        InvalidInputError: positions out of range, a width that is not the spectrum's, NaN or infinite entries, or an
            angle beyond float32.

    Accuracy: bit for bit what the module says.

    Source: module.

    Example:
        >>> spectrum = RopeSpectrum.from_angle("1")
        >>> rotated(np.array([1.0, 0.0]), spectrum, np.array([0, 1, 44]), Arithmetic(number_format="bfloat16")).tolist()
        [[1.0, 0.0], [0.5390625, 0.83984375], [1.0, 0.0177001953125]]
    """
    given, at = np.asarray(vectors, np.float64), np.asarray(positions)
    if given.ndim < 1 or given.shape[-1] != spectrum.head_dim:
        raise InvalidInputError(f"rotated: vectors have shape {given.shape}, the spectrum head_dim {spectrum.head_dim}")
    if not np.isfinite(given).all():
        raise InvalidInputError("rotated: vectors have NaN or infinite entries")
    check_positions("rotated", at)
    batch = np.broadcast_shapes(given.shape[:-1], at.shape)
    flat_at = np.broadcast_to(at, batch).reshape(-1)
    stored = cast(given, arithmetic.model_format)
    rows = np.broadcast_to(stored, (*batch, spectrum.head_dim)).reshape(-1, spectrum.head_dim)
    turned = np.empty(rows.shape, np.float32)
    inv_freq = single_inv_freq(spectrum)
    for start in range(0, len(rows), _ROWS):
        part = slice(start, start + _ROWS)
        turned[part] = _turned(rows[part], spectrum, inv_freq, flat_at[part], arithmetic)
    if arithmetic.number_format == "tf32":
        turned = nearest(turned, "tf32")
    return turned.reshape(*batch, spectrum.head_dim)


def cosines(
    spectrum: RopeSpectrum, positions: Int[IntArray, " n"], arithmetic: Arithmetic
) -> tuple[Float32[SingleArray, "n planes"], Float32[SingleArray, "n planes"]]:
    """The table of cosines and sines of a model, in its format, times the attention factor.

    Args:
        spectrum: the rotation.
        positions: 0 to 2^24 - 1.
        arithmetic: the format.

    Accuracy: bit for bit what the module says.
    """
    check_positions("cosines", np.asarray(positions))
    return _cosines(spectrum, single_inv_freq(spectrum), positions, arithmetic)


def emulated_logits(
    query: Float64[FloatArray, " head_dim"],
    keys: Float64[FloatArray, "*#n head_dim"],
    spectrum: RopeSpectrum,
    *,
    scale: float,
    query_position: int,
    key_positions: Int[IntArray, " n"],
    arithmetic: Arithmetic,
) -> Float32[SingleArray, " n"]:
    """The logits of one query as a model computes them: rotate, multiply and add in order, scale. Slow and plain.

    Args:
        query: before rotation.
        keys: before rotation, one per position, or one for all.
        spectrum: the rotation.
        scale: factor on the dot product.
        query_position: absolute, 0 to 2^24 - 1.
        key_positions: absolute.
        arithmetic: how the model computes.

    Raises:
        InvalidInputError: as `rotated`, or a scale that float32 cannot hold.

    Accuracy: bit for bit what the module says.

    Source: module.

    Example:
        >>> spectrum, v = RopeSpectrum.from_angle("1"), np.array([1.0, 0.0])
        >>> at = {"scale": 1.0, "query_position": 44, "key_positions": np.array([0, 44])}
        >>> fused, eager = (Arithmetic(number_format="bfloat16", logits=kind) for kind in ("fused", "eager"))
        >>> emulated_logits(v, v, spectrum, arithmetic=fused, **at).tolist()
        [1.0, 1.0003132820129395]
        >>> emulated_logits(v, v, spectrum, arithmetic=eager, **at).tolist()
        [1.0, 1.0]
    """
    check_scale("emulated_logits", scale)
    q = rotated(query, spectrum, np.array(query_position), arithmetic)
    k = rotated(keys, spectrum, np.asarray(key_positions), arithmetic)
    return arithmetic.finished(in_order_sums(q, k), scale)


def in_order_sums(
    queries: Float32[SingleArray, "*#n width"], keys: Float32[SingleArray, "*#n width"]
) -> Float32[SingleArray, "*n"]:
    """Dot products, coordinates in order, each product and each sum rounded to float32: numpy does one at a time."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        total = queries[..., 0] * keys[..., 0]
        for k in range(1, queries.shape[-1]):
            total = total + queries[..., k] * keys[..., k]
    return np.asarray(total)


def check_scale(call: str, scale: float) -> None:
    """Raise unless float32 holds the scale as a positive normal number.

    Raises:
        InvalidInputError: not positive, or too large or too small.
    """
    if not 2.0**-126 <= scale <= float(np.finfo(np.float32).max):
        raise InvalidInputError(f"{call}: scale {scale} must be positive and within the range of float32")


def check_positions(call: str, positions: IntArray) -> None:
    """Raise unless positions are integers from 0 to 2^24 - 1.

    Raises:
        InvalidInputError: anything else.
    """
    if not np.issubdtype(positions.dtype, np.integer):
        raise InvalidInputError(f"{call}: positions are integers; got {positions.dtype}")
    if positions.size and not 0 <= int(positions.min()) <= int(positions.max()) < MAX_POSITION:
        raise InvalidInputError(
            f"{call}: positions must lie from 0 to {MAX_POSITION - 1}, where float32 holds them all"
        )


def _cosines(
    spectrum: RopeSpectrum, inv_freq: SingleArray, positions: IntArray, arithmetic: Arithmetic
) -> tuple[SingleArray, SingleArray]:
    kept = positions.astype(np.float32)  # exact below 2^24
    if arithmetic.positions == "format":
        kept = nearest(kept, arithmetic.model_format)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        tables = cosine_and_sine(kept[:, None] * inv_freq)
        if spectrum.attention_factor != 1:
            factor = np.float32(spectrum.attention_factor)
            tables = (tables[0] * factor, tables[1] * factor)
    return nearest(tables[0], arithmetic.model_format), nearest(tables[1], arithmetic.model_format)


def _turned(
    rows: SingleArray, spectrum: RopeSpectrum, inv_freq: SingleArray, positions: IntArray, arithmetic: Arithmetic
) -> SingleArray:
    """Rows of the format at their positions; every line below is one operation of the model."""
    number_format = arithmetic.model_format
    cosine, sine = _cosines(spectrum, inv_freq, positions, arithmetic)
    first, second = pair_indices(spectrum.layout, spectrum.rotary_dim)
    x, y = rows[:, first], rows[:, second]
    turned = rows.copy()
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        turned[:, first] = nearest(
            nearest(x * cosine, number_format) + nearest(-y * sine, number_format), number_format
        )
        turned[:, second] = nearest(
            nearest(y * cosine, number_format) + nearest(x * sine, number_format), number_format
        )
    return turned

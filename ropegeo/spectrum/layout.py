"""Which two coordinates of a head turn together, and conversion of weights between the two conventions.

*interleaved* pairs coordinates (2k, 2k+1) (GPT-J, original Llama files); *half* pairs (k, k + rotary_dim/2)
(Hugging Face Llama, GPT-NeoX). The same head can be written either way: permuting the rows of W_Q and W_K alike
leaves every dot product unchanged. W_V and W_O are never permuted.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.errors import InvalidInputError

Layout: TypeAlias = Literal["interleaved", "half"]
LAYOUTS: tuple[Layout, ...] = ("interleaved", "half")


def check_layout(layout: str) -> Layout:
    """`layout` itself if it is a known layout.

    Raises:
        InvalidInputError: any other word.
    """
    for known in LAYOUTS:
        if layout == known:
            return known
    raise InvalidInputError(f"layout {layout!r} is unknown; use one of {', '.join(LAYOUTS)}")


def pair_indices(layout: Layout, rotary_dim: int) -> tuple[Int[IntArray, " planes"], Int[IntArray, " planes"]]:
    """First and second coordinate of each plane, in plane order.

    Example:
        >>> pair_indices("half", 6)[1]
        array([3, 4, 5])
    """
    plane = np.arange(rotary_dim // 2)
    return (2 * plane, 2 * plane + 1) if layout == "interleaved" else (plane, plane + rotary_dim // 2)


def layout_permutation(head_dim: int, rotary_dim: int, *, source: Layout, target: Layout) -> Int[IntArray, " head_dim"]:
    """Row order that turns a head in layout `source` into the same head in layout `target`.

    New row i is old row `permutation[i]`. Coordinates beyond `rotary_dim` stay where they are.

    Raises:
        InvalidInputError: an odd or out-of-range width, or an unknown layout.

    Example:
        >>> layout_permutation(8, 8, source="interleaved", target="half")
        array([0, 2, 4, 6, 1, 3, 5, 7])
    """
    check_widths(head_dim, rotary_dim)
    order = np.arange(head_dim)
    for old, new in zip(
        pair_indices(check_layout(source), rotary_dim), pair_indices(check_layout(target), rotary_dim), strict=True
    ):
        order[new] = old
    return order


def convert_projection(
    weight: Float[FloatArray, "rows *d_model"], *, head_dim: int, rotary_dim: int, source: Layout, target: Layout
) -> Float[FloatArray, "rows *d_model"]:
    """Convert W_Q or W_K (or its bias) between layouts, head by head.

    Args:
        weight: shape (heads * head_dim, d_model), or (heads * head_dim,) for a bias. The number of heads is read
            off the shape, so grouped keys with fewer heads are converted by the same call.
        head_dim: width of one head.
        rotary_dim: rotated width of one head.
        source: layout that `weight` is in.
        target: layout wanted.

    Raises:
        InvalidInputError: the rows are not a whole number of heads, or a width or layout is wrong.
    """
    order = layout_permutation(head_dim, rotary_dim, source=source, target=target)
    rows = weight.shape[0]
    if rows == 0 or rows % head_dim:
        raise InvalidInputError(f"convert_projection: {rows} rows are not a whole number of heads of width {head_dim}")
    blocks = weight.reshape(rows // head_dim, head_dim, *weight.shape[1:])
    return np.ascontiguousarray(blocks[:, order].reshape(weight.shape))


def check_widths(head_dim: int, rotary_dim: int) -> None:
    """Refuse widths that cannot be rotated in pairs.

    Raises:
        InvalidInputError: odd, zero or negative widths, or more rotated than there are.
    """
    if head_dim < 1 or head_dim > MAX_HEAD_DIM:
        raise InvalidInputError(f"head_dim {head_dim} must be between 1 and {MAX_HEAD_DIM}")
    if rotary_dim < 2 or rotary_dim % 2:
        raise InvalidInputError(f"rotary_dim {rotary_dim} must be even and at least 2: coordinates turn in pairs")
    if rotary_dim > head_dim:
        raise InvalidInputError(f"rotary_dim {rotary_dim} is larger than head_dim {head_dim}")


MAX_HEAD_DIM = 8192

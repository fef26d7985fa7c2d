r"""Margins of a million one-plane index heads at once: the continued fraction of `diophantine.py` in compiled integers.

The margin at reach T is 2 sin(pi r)^2, r = min over 1 <= t <= T of ||t alpha||. A double is a dyadic rational, so
alpha = angle/(2 pi) modulo 1 is known to as many bits as 1/(2 pi): it is held as an integer a in units of 2^-341,
a <= alpha < a + 2. Euclid's algorithm on (2^341, a) gives r exactly for the number a/2^341:

    d_(k-1) = m d_k + d_(k+1),    q_(k+1) = m q_k + q_(k-1),

until q_(k+1) > T; then r is d_k. A quotient m is taken in parts, each a little below the rest of it as floats see it;
the sums q_(k-1) + m' q_k with m' <= m stay at or below q_(k+1), so that one of them above T already ends the search.

Error. Each ||t alpha|| differs from that of a by less than 2 t <= 2 T units, so the two minima do too, wherever they
stand. A pair is accepted if d_k >= 2^52 T: with u = 2^-53, r is then off by 4u; by 2u as it becomes a double, by 2u
when multiplied by pi, and the sine by 2u more. Squared, with one rounding, 21u = 2.4e-15. Any other pair (returns below
2^-289 T turns, as of very small angles; a reach of 2^120 or more) goes to the certified route.

Numbers are rows of 31-bit digits in int64, the most significant first, so that no product or sum overflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from operator import index
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Shaped

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.engine.diophantine import one_plane_staircase
from ropegeo.engine.one_plane_kernels import BASE, DIGIT, EXTRA, MASK, PLACES, REACH_PLACES, fill_margins
from ropegeo.errors import InvalidInputError
from ropegeo.exact import ClosedForm, balls

Whole: TypeAlias = Shaped[np.ndarray, " pairs"] | Sequence[float | int]
"""Whole numbers as an array of any kind of integers, of Python integers or of floats, or as a list of them."""

RELATIVE_ERROR = 1e-14
"""Bound on the relative error of every margin; the module derives 2.4e-15."""
_LARGEST_REACH = 1 << 120
_LONGEST = (1024 + DIGIT * PLACES) // DIGIT + 4  # digits of 1/(2 pi) that the largest double asks for


def one_plane_margins(
    angles: Float[FloatArray, " pairs"] | Sequence[float | int], reaches: Whole
) -> Float[FloatArray, " pairs"]:
    """Margins of many one-plane index heads: angles[i] at reach T = reaches[i], in units of beta.

    Args:
        angles: radians per position, positive finite doubles, each taken as exactly that number.
        reaches: largest displacement of each, whole numbers of at least 1; of any size as Python integers.

    Returns:
        min over 1 <= t <= T of 1 - cos(t angle), one per pair.

    Raises:
        InvalidInputError: shapes that differ, an angle that is not positive and finite, a reach that is not whole or
            is below 1.

    Accuracy: relative error below `RELATIVE_ERROR`, for margins above 1e-300 (below, doubles have fewer digits).

    Source: docs/MATHEMATICS.md, section 5; error in the module.

    Example:
        >>> one_plane_margins([1.0, 1.0], [1000, 10**30])
        array([1.81736408e-09, 7.11865635e-60])
    """
    try:
        thetas = np.asarray(angles, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"one_plane_margins: angles must be a row of numbers ({error})") from error
    if thetas.ndim != 1 or not (np.isfinite(thetas).all() and (thetas > 0).all()):
        raise InvalidInputError("one_plane_margins: angles must be a row of positive, finite numbers")
    digits, sizes = _reach_digits(reaches)
    if len(sizes) != len(thetas):
        raise InvalidInputError(f"one_plane_margins: {len(thetas)} angles and {len(sizes)} reaches")
    mantissas, exponents = np.frexp(thetas)
    margins = np.empty(len(thetas))
    fill_margins(
        (mantissas * 2.0**53).astype(np.int64),
        exponents.astype(np.int64) - 53,
        digits,
        sizes,
        inverse_turn_digits(),
        margins,
    )
    for pair in np.flatnonzero(np.isnan(margins)):
        reach = int(reaches[int(pair)])
        stairs = one_plane_staircase(ClosedForm.of(Fraction(float(thetas[pair]))), reach)
        margins[pair] = float(stairs.margin(stairs.index_at(reach)))
    return margins


def _reach_digits(reaches: Whole) -> tuple[IntArray, FloatArray]:
    """The digits of each reach and its size as a float: infinite where there are not digits enough.

    Raises:
        InvalidInputError: as `one_plane_margins`.
    """
    values = _whole_numbers(reaches)
    if values.size and not values.min() >= 1:
        raise InvalidInputError("one_plane_margins: a reach must be at least 1")
    too_large = np.asarray(values >= _LARGEST_REACH, dtype=bool)
    values = np.where(too_large, 1, values)
    digits = np.zeros((len(values), REACH_PLACES), dtype=np.int64)
    rest = values
    for place in range(REACH_PLACES - 1, -1, -1):
        above = np.floor(rest / BASE) if rest.dtype.kind == "f" else rest // (1 << DIGIT)
        digits[:, place] = (rest - above * (1 << DIGIT)).astype(np.int64)
        rest = above
    return digits, np.where(too_large, np.inf, values.astype(np.float64))


def _whole_numbers(reaches: Whole) -> Shaped[np.ndarray, " pairs"]:
    """An array of integers, of Python integers, or of floats without a fractional part."""
    given = reaches
    if not isinstance(given, np.ndarray):
        items: Sequence[Any] = given
        try:
            given = np.array([index(value) for value in items], dtype=object)
        except TypeError:
            given = np.asarray(reaches)
    if given.dtype == object and all(isinstance(value, int) for value in given.flat):
        whole = True
    else:
        whole = given.dtype.kind in "iu" or (given.dtype == np.float64 and bool((given == np.floor(given)).all()))
    if given.ndim != 1 or not whole or (given.dtype == np.float64 and not np.isfinite(given).all()):
        raise InvalidInputError("one_plane_margins: reaches must be a row of whole numbers")
    return given


@cache
def inverse_turn_digits() -> IntArray:
    """Digits of 1/(2 pi) after the point, the last one rounded down, with zeros before them."""
    bits = DIGIT * _LONGEST
    low, high = balls.rational_ends((1 / (2 * ClosedForm.pi())).ball(bits + 128))
    fixed = (low.numerator << bits) // low.denominator
    if fixed != (high.numerator << bits) // high.denominator:  # would need 128 equal bits in a row
        raise AssertionError("1/(2 pi) is not decided")
    digits = [(fixed >> (DIGIT * place)) & MASK for place in reversed(range(_LONGEST))]
    return np.array([0] * (PLACES + EXTRA) + digits, dtype=np.int64)

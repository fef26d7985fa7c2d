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
from ropegeo.engine.compiled import compiled
from ropegeo.engine.diophantine import one_plane_staircase
from ropegeo.errors import InvalidInputError
from ropegeo.exact import ClosedForm, balls

Whole: TypeAlias = Shaped[np.ndarray, " pairs"] | Sequence[float | int]
"""Whole numbers as an array of any kind of integers, of Python integers or of floats, or as a list of them."""

RELATIVE_ERROR = 1e-14
"""Bound on the relative error of every margin; the module derives 2.4e-15."""
DIGIT = 31
_MASK = (1 << DIGIT) - 1
_BASE = float(1 << DIGIT)
_PLACES = 11  # of alpha, after the point
_REACH_PLACES = 4
_LARGEST_REACH = 1 << 120
_EXTRA = 3  # digits of 1/(2 pi) below those of alpha that a product with a mantissa reaches
_LONGEST = (1024 + DIGIT * _PLACES) // DIGIT + 4  # digits of 1/(2 pi) that the largest double asks for
_BELOW = 1 - 2.0**-45  # floats of three digits each, and their quotient, are right to 2^-50


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
    thetas = np.asarray(angles, dtype=np.float64)
    if thetas.ndim != 1 or not (np.isfinite(thetas).all() and (thetas > 0).all()):
        raise InvalidInputError("one_plane_margins: angles must be a row of positive, finite numbers")
    digits, sizes = _reach_digits(reaches)
    if len(sizes) != len(thetas):
        raise InvalidInputError(f"one_plane_margins: {len(thetas)} angles and {len(sizes)} reaches")
    mantissas, exponents = np.frexp(thetas)
    margins = np.empty(len(thetas))
    _margins(
        (mantissas * 2.0**53).astype(np.int64),
        exponents.astype(np.int64) - 53,
        digits,
        sizes,
        _inverse_turn(),
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
    digits = np.zeros((len(values), _REACH_PLACES), dtype=np.int64)
    rest = values
    for place in range(_REACH_PLACES - 1, -1, -1):
        above = np.floor(rest / _BASE) if rest.dtype.kind == "f" else rest // (1 << DIGIT)
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
def _inverse_turn() -> IntArray:
    """Digits of 1/(2 pi) after the point, the last one rounded down, with zeros before them."""
    bits = DIGIT * _LONGEST
    low, high = balls.rational_ends((1 / (2 * ClosedForm.pi())).ball(bits + 128))
    fixed = (low.numerator << bits) // low.denominator
    if fixed != (high.numerator << bits) // high.denominator:  # would need 128 equal bits in a row
        raise AssertionError("1/(2 pi) is not decided")
    digits = [(fixed >> (DIGIT * place)) & _MASK for place in reversed(range(_LONGEST))]
    return np.array([0] * (_PLACES + _EXTRA) + digits, dtype=np.int64)


@compiled
def _margins(
    mantissas: IntArray,
    exponents: IntArray,
    reaches: IntArray,
    sizes: FloatArray,
    inverse: IntArray,
    margins: FloatArray,
) -> None:
    """Fill in the margins, NaN where the digits do not suffice."""
    rests = np.zeros((2, _PLACES + 3), dtype=np.int64)  # two zeros more, so that three digits can always be read
    product = np.zeros(_PLACES + _EXTRA, dtype=np.int64)
    steps = np.zeros((3, _REACH_PLACES), dtype=np.int64)
    for pair in range(len(margins)):
        _set_turn(mantissas[pair], exponents[pair], inverse, product, rests[1])
        nearest = _nearest(rests, steps, reaches[pair])
        if nearest * 2.0 ** (DIGIT * _PLACES - 52) >= sizes[pair]:
            sine = np.sin(np.pi * nearest)
            margins[pair] = 2.0 * (sine * sine)
        else:
            margins[pair] = np.nan


@compiled
def _set_turn(mantissa: int, exponent: int, inverse: IntArray, product: IntArray, turn: IntArray) -> None:
    """mantissa * 2^exponent / (2 pi) modulo 1 into the digits after turn[0], which is 0; low by less than 2 units.

    With s = exponent + 31 places, it is mantissa * floor(2^(s+g)/(2 pi)) / 2^g for g = 62 .. 92 such that 31 divides
    s + g: the floor is a row of digits of 1/(2 pi), of which the lowest places + 3 matter. The floor costs less than
    2^53 / 2^g units, dropping the digits below the units less than one.
    """
    shift = exponent + DIGIT * _PLACES
    extra = 2 * DIGIT + (-shift) % DIGIT
    end = (shift + extra) // DIGIT + _PLACES + _EXTRA  # one behind the last digit used, the zeros in front counted
    low, high = mantissa & _MASK, mantissa >> DIGIT
    carry, below = 0, 0
    for place in range(_PLACES + _EXTRA - 1, -1, -1):
        at = end - (_PLACES + _EXTRA) + place
        digit = inverse[at] if at >= 0 else 0
        total = digit * low + below * high + carry  # below 2^62 + 2^53 + 2^32
        product[place] = total & _MASK
        carry = total >> DIGIT
        below = digit
    fine = extra - 2 * DIGIT  # the last two digits drop out, then so many bits
    turn[0] = 0
    for place in range(_PLACES):
        turn[1 + place] = ((product[place] << (DIGIT - fine)) & _MASK) | (product[place + 1] >> fine)


@compiled
def _size(row: IntArray, top: int) -> float:
    """Three digits from `top` on as a float."""
    size: float = (row[top] * _BASE + row[top + 1]) * _BASE + row[top + 2]
    return size


@compiled
def _nearest(rests: IntArray, steps: IntArray, reach: IntArray) -> float:
    """Euclid's algorithm until a denominator is beyond the reach: the nearest return, in turns; 0 where it is lost.

    rests[1] is alpha on entry; steps[2] holds a sum before it is accepted.
    """
    large, small = 0, 1
    rests[0, :] = 0
    rests[0, 0] = 1
    steps[:2, :] = 0
    steps[1, _REACH_PLACES - 1] = 1
    top_large, top_small = 0, 0
    while True:
        while top_small <= _PLACES and rests[small, top_small] == 0:
            top_small += 1
        if top_small > _PLACES:
            return 0.0
        while top_large <= _PLACES and rests[large, top_large] == 0:
            top_large += 1
        smaller = top_small > top_large
        if top_small == top_large:
            place = top_large
            while place < _PLACES and rests[large, place] == rests[small, place]:
                place += 1
            smaller = rests[small, place] <= rests[large, place]
        if not smaller:
            large, small = small, large
            top_large, top_small = top_small, top_large
            continue
        # part * 2^(31 lift) is at most the quotient, and what is left of it is small or less than two
        lift = top_small - top_large
        ratio = _size(rests[large], top_large) / _size(rests[small], top_small) * _BELOW
        if ratio < 1.0 and lift > 0:
            ratio *= _BASE
            lift -= 1
        part = int(ratio)
        if part == 0 and lift > 0:  # the ratio is 1 - 2^-45 or more
            part = _MASK
            lift -= 1
        part = max(part, 1)

        beyond, carry = 0, 0
        for place in range(_REACH_PLACES - 1, -1, -1):
            digit = steps[small, place + lift] if place + lift < _REACH_PLACES else 0
            total = steps[large, place] + part * digit + carry
            steps[2, place] = total & _MASK
            carry = total >> DIGIT
        if carry:
            beyond = 1
        for place in range(min(lift, _REACH_PLACES)):
            if steps[small, place]:
                beyond = 1
        for place in range(_REACH_PLACES):
            if beyond == 0 and steps[2, place] != reach[place]:
                beyond = 1 if steps[2, place] > reach[place] else -1
        if beyond == 1:
            return _size(rests[small], top_small) * 2.0 ** (-DIGIT * (top_small + 2))
        steps[large, :] = steps[2, :]

        borrow = 0
        for place in range(_PLACES, top_large - 1, -1):
            digit = rests[small, place + lift] if place + lift <= _PLACES else 0
            rest = rests[large, place] - part * digit - borrow
            rests[large, place] = rest & _MASK
            borrow = -(rest >> DIGIT)

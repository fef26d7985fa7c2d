"""The compiled integers of `one_plane_batch.py`, which has the algorithm and its error."""

from __future__ import annotations

import numpy as np

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.engine.compiled import compiled

DIGIT = 31
MASK = (1 << DIGIT) - 1
BASE = float(1 << DIGIT)
PLACES = 11  # of alpha, after the point
REACH_PLACES = 4
EXTRA = 3  # digits of 1/(2 pi) below those of alpha that a product with a mantissa reaches
BELOW = 1 - 2.0**-45  # floats of three digits each, and their quotient, are right to 2^-50


@compiled
def fill_margins(
    mantissas: IntArray,
    exponents: IntArray,
    reaches: IntArray,
    sizes: FloatArray,
    inverse: IntArray,
    margins: FloatArray,
) -> None:
    """Fill in the margins, NaN where the digits do not suffice."""
    rests = np.zeros((2, PLACES + 3), dtype=np.int64)  # two zeros more, so that three digits can always be read
    product = np.zeros(PLACES + EXTRA, dtype=np.int64)
    steps = np.zeros((3, REACH_PLACES), dtype=np.int64)
    for pair in range(len(margins)):
        set_turn(mantissas[pair], exponents[pair], inverse, product, rests[1])
        nearest = nearest_return(rests, steps, reaches[pair])
        if nearest * 2.0 ** (DIGIT * PLACES - 52) >= sizes[pair]:
            sine = np.sin(np.pi * nearest)
            margins[pair] = 2.0 * (sine * sine)
        else:
            margins[pair] = np.nan


@compiled
def set_turn(mantissa: int, exponent: int, inverse: IntArray, product: IntArray, turn: IntArray) -> None:
    """mantissa * 2^exponent / (2 pi) modulo 1 into the digits after turn[0], which is 0; low by less than 2 units.

    With s = exponent + 31 places, it is mantissa * floor(2^(s+g)/(2 pi)) / 2^g for g = 62 .. 92 such that 31 divides
    s + g: the floor is a row of digits of 1/(2 pi), of which the lowest places + 3 matter. The floor costs less than
    2^53 / 2^g units, dropping the digits below the units less than one.
    """
    shift = exponent + DIGIT * PLACES
    extra = 2 * DIGIT + (-shift) % DIGIT
    end = (shift + extra) // DIGIT + PLACES + EXTRA  # one behind the last digit used, the zeros in front counted
    low, high = mantissa & MASK, mantissa >> DIGIT
    carry, below = 0, 0
    for place in range(PLACES + EXTRA - 1, -1, -1):
        at = end - (PLACES + EXTRA) + place
        digit = inverse[at] if at >= 0 else 0
        total = digit * low + below * high + carry  # below 2^62 + 2^53 + 2^32
        product[place] = total & MASK
        carry = total >> DIGIT
        below = digit
    fine = extra - 2 * DIGIT  # the last two digits drop out, then so many bits
    turn[0] = 0
    for place in range(PLACES):
        turn[1 + place] = ((product[place] << (DIGIT - fine)) & MASK) | (product[place + 1] >> fine)


@compiled
def leading(row: IntArray, top: int) -> float:
    """Three digits from `top` on as a float."""
    size: float = (row[top] * BASE + row[top + 1]) * BASE + row[top + 2]
    return size


@compiled
def nearest_return(rests: IntArray, steps: IntArray, reach: IntArray) -> float:
    """Euclid's algorithm until a denominator is beyond the reach: the nearest return, in turns; 0 where it is lost.

    rests[1] is alpha on entry; steps[2] holds a sum before it is accepted.
    """
    large, small = 0, 1
    rests[0, :] = 0
    rests[0, 0] = 1
    steps[:2, :] = 0
    steps[1, REACH_PLACES - 1] = 1
    top_large, top_small = 0, 0
    while True:
        while top_small <= PLACES and rests[small, top_small] == 0:
            top_small += 1
        if top_small > PLACES:
            return 0.0
        while top_large <= PLACES and rests[large, top_large] == 0:
            top_large += 1
        smaller = top_small > top_large
        if top_small == top_large:
            place = top_large
            while place < PLACES and rests[large, place] == rests[small, place]:
                place += 1
            smaller = rests[small, place] <= rests[large, place]
        if not smaller:
            large, small = small, large
            top_large, top_small = top_small, top_large
            continue
        # part * 2^(31 lift) is at most the quotient, and what is left of it is small or less than two
        lift = top_small - top_large
        ratio = leading(rests[large], top_large) / leading(rests[small], top_small) * BELOW
        if ratio < 1.0 and lift > 0:
            ratio *= BASE
            lift -= 1
        part = int(ratio)
        if part == 0 and lift > 0:  # the ratio is 1 - 2^-45 or more
            part = MASK
            lift -= 1
        part = max(part, 1)

        beyond, carry = 0, 0
        for place in range(REACH_PLACES - 1, -1, -1):
            digit = steps[small, place + lift] if place + lift < REACH_PLACES else 0
            total = steps[large, place] + part * digit + carry
            steps[2, place] = total & MASK
            carry = total >> DIGIT
        if carry:
            beyond = 1
        for place in range(min(lift, REACH_PLACES)):
            if steps[small, place]:
                beyond = 1
        for place in range(REACH_PLACES):
            if beyond == 0 and steps[2, place] != reach[place]:
                beyond = 1 if steps[2, place] > reach[place] else -1
        if beyond == 1:
            return leading(rests[small], top_small) * 2.0 ** (-DIGIT * (top_small + 2))
        steps[large, :] = steps[2, :]

        borrow = 0
        for place in range(PLACES, top_large - 1, -1):
            digit = rests[small, place + lift] if place + lift <= PLACES else 0
            rest = rests[large, place] - part * digit - borrow
            rests[large, place] = rest & MASK
            borrow = -(rest >> DIGIT)

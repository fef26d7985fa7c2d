r"""Exact phases: how many turns a plane has made after t positions.

A float product `t * inv_freq` loses one digit of phase with every digit of t. Here alpha = angle/(2 pi) is held as
a 128-bit fixed-point fraction A/2**128, and t*A is formed modulo 2**128 in unsigned arithmetic, so whole turns
drop out exactly. For |t| < 2**62 the turn returned is within `TURN_ERROR` of the true one:

    |t| * 2**-128 (A is rounded down)  +  2**-64 (only the top word is kept)  +  2**-54 (conversion to float64)
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int, UInt64

from ropegeo._arrays import FloatArray, IntArray, UintArray
from ropegeo.errors import InvalidInputError
from ropegeo.exact import ClosedForm, balls

MAX_DISPLACEMENT = 1 << 62
TURN_ERROR = 2.0**-53
_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def turn_words(angles: tuple[ClosedForm, ...]) -> UInt64[UintArray, "2 planes"]:
    """alpha mod 1 of each angle as two 64-bit words (high, low), rounded down.

    Accuracy: error below 2**-128 turn.
    """
    words = np.empty((2, len(angles)), dtype=np.uint64)
    for plane, angle in enumerate(angles):
        fixed = fixed_turn(angle, 128)
        words[0, plane], words[1, plane] = fixed >> 64, fixed & (2**64 - 1)
    return words


def fixed_turn(angle: ClosedForm, bits: int) -> int:
    """The angle in turns, whole turns dropped, as a fixed-point fraction: floor(2**bits * angle / (2 pi)) mod 2**bits.

    Accuracy: exact; rounded down, so that the true fraction is less than 2**-bits above it.
    """
    rational = angle.rational_turn()
    if rational is not None:
        return ((rational.numerator << bits) // rational.denominator) % (1 << bits)
    turn = angle / (2 * ClosedForm.pi())
    extra = 64
    while True:  # alpha is irrational, so 2**bits * alpha is no integer and some precision decides its floor.
        low, high = balls.rational_ends(turn.ball(bits + extra))
        if (floor := (low.numerator << bits) // low.denominator) == (high.numerator << bits) // high.denominator:
            return floor % (1 << bits)
        extra *= 2


def turns(
    words: UInt64[UintArray, "2 planes"], displacements: Int[IntArray, "*shape"]
) -> Float[FloatArray, "*shape planes"]:
    """Turns made after each displacement, reduced to [-1/2, 1/2].

    Args:
        words: from `turn_words`.
        displacements: positions or differences of positions, |t| < 2**62.

    Raises:
        InvalidInputError: a displacement outside that range.

    Accuracy: within `TURN_ERROR` of a turn.
    """
    given = np.asarray(displacements)
    if not np.issubdtype(given.dtype, np.integer):
        raise InvalidInputError(f"phases: positions and displacements are integers; got {given.dtype}")
    t = given.astype(np.int64)
    if t.size and (t.max() >= MAX_DISPLACEMENT or t.min() <= -MAX_DISPLACEMENT):
        raise InvalidInputError("phases: displacements must lie strictly between -2**62 and 2**62")
    size = np.abs(t).astype(np.uint64)[..., None]
    high, low = words
    top = size * high + _high_word(size, low)  # wraps modulo 2**64, which is modulo one turn
    turn = top.view(np.int64).astype(np.float64) * 2.0**-64
    signed: FloatArray = np.where(t[..., None] < 0, -turn, turn)
    return signed


def _high_word(a: UintArray, b: UintArray) -> UintArray:
    """The upper 64 bits of the 128-bit product a*b, by four 32-bit products."""
    a_low, a_high, b_low, b_high = a & _MASK, a >> _HALF, b & _MASK, b >> _HALF
    middle = a_high * b_low + ((a_low * b_low) >> _HALF)
    carry = ((middle & _MASK) + a_low * b_high) >> _HALF
    top: UintArray = a_high * b_high + (middle >> _HALF) + carry
    return top


def turn_of(angle: ClosedForm, displacement: int) -> float:
    """Turns made by one plane after one displacement of any size, reduced to [-1/2, 1/2].

    Accuracy: within `TURN_ERROR` of a turn.
    """
    size = abs(displacement)
    bits = 64 + size.bit_length()
    fraction = (size * fixed_turn(angle, bits)) % (1 << bits)
    if fraction >= 1 << (bits - 1):
        fraction -= 1 << bits
    turn = fraction / (1 << bits)
    return -turn if displacement < 0 else turn

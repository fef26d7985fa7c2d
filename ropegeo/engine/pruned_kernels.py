"""Compiled loops of the pruned search; numba only, no decisions. `pruned.py` says what the arrays mean and proves them.

They also run as plain Python (`NUMBA_DISABLE_JIT=1`), where numpy would warn of integers that overflow: products are
therefore of 32-bit halves only, and nothing wraps.
"""

from __future__ import annotations

import math

import numpy as np

from ropegeo._arrays import FloatArray, IntArray, UintArray
from ropegeo.engine.compiled import compiled

LANES = 8
"""Planes that are summed before the sum is looked at; plane arrays are padded to a multiple of it."""
ROOT, LINEAR, CONSTANT = 0, 1, 2

_BATCH = 4  # groups that are bounded in one loop: the loop costs as much again as 20 planes
_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ROUND = 1.5 * 2.0**52  # (x + _ROUND) - _ROUND is x rounded to an integer, for |x| < 2**51, in two vector additions
_PI = math.pi
# 1 - cos(2 pi y) = sum over m of (-1)**(m + 1) (2 pi y)**(2 m) / (2 m)!, here up to m = 4.
_C1 = (2 * math.pi) ** 2 / 2
_C2 = (2 * math.pi) ** 4 / 24
_C3 = (2 * math.pi) ** 6 / 720
_C4 = (2 * math.pi) ** 8 / 40320


@compiled
def turn_at(limbs: UintArray, plane: int, t: int) -> float:
    """t * alpha modulo 1 in [-1/2, 1/2], where `limbs` (4, planes) are the 32-bit digits of 2**128 alpha, lowest first.

    The upper two digits of the product of 128 bits are kept; column i takes the carry of column i - 1, the low halves
    of its own products and the high halves of those of column i - 1. No sum exceeds 2**36.
    """
    size = -t if t < 0 else t
    low = np.uint64(size & 0xFFFFFFFF)
    high = np.uint64(size >> 32)
    carry = np.uint64(0)
    before = np.uint64(0)
    digit = np.uint64(0)
    for i in range(4):
        own = low * limbs[i, plane]
        total = carry + (own & _MASK)
        carry = own >> _HALF
        if i > 0:
            other = high * limbs[i - 1, plane]
            total += other & _MASK
            carry += other >> _HALF
        before = digit
        digit = total & _MASK
        carry += total >> _HALF
    upper = float(digit)
    if upper >= 2147483648.0:
        upper -= 4294967296.0
    turn: float = upper * 2.0**-32 + float(before) * 2.0**-64
    return -turn if t < 0 else turn


@compiled
def deficit_at(limbs: UintArray, shifts: FloatArray, weights: FloatArray, t: int) -> float:
    """sum over planes of 2 w sin(pi (t alpha + shift))**2, each phase formed exactly."""
    total = 0.0
    for k in range(weights.size):
        if weights[k] > 0.0:  # padding
            turn = turn_at(limbs, k, t) + shifts[k]
            turn -= (turn + _ROUND) - _ROUND
            sine = math.sin(_PI * turn)
            total += 2.0 * weights[k] * sine * sine
    return total


@compiled
def slackened(record: float, slack: FloatArray) -> float:
    """The record and what rounding may add to a deficit below it."""
    more: float = slack[ROOT] * math.sqrt(record) + slack[LINEAR] * record + slack[CONSTANT]
    return record + more


@compiled
def bound_planes(
    turns: FloatArray,
    steps: FloatArray,
    halves: FloatArray,
    weights: FloatArray,
    least: FloatArray,
    level: int,
    side: float,
    first: int,
    last: int,
) -> None:
    """Centres of a block, from those of the one above it, and the least that planes first..last-1 add in the block."""
    for i in range(np.uint64(first), np.uint64(last)):  # unsigned: a negative index would count from the end
        turn = turns[level + 1, i] + side * steps[level, i]
        turn -= (turn + _ROUND) - _ROUND
        turns[level, i] = turn
        away = abs(turn) - halves[level, i]
        away = away if away > 0.0 else 0.0
        y = away * away
        least[i] = weights[i] * (y * (_C1 - y * (_C2 - y * (_C3 - y * _C4))))


@compiled
def move_planes(turns: FloatArray, steps: FloatArray, level: int, side: float, first: int) -> None:
    """Centres alone, of planes that cannot bound a block this long but will bound its parts."""
    for i in range(np.uint64(first), np.uint64(turns.shape[1])):
        turn = turns[level + 1, i] + side * steps[level, i]
        turns[level, i] = turn - ((turn + _ROUND) - _ROUND)


@compiled
def search(
    limbs: UintArray,
    shifts: FloatArray,
    weights: FloatArray,
    roots: FloatArray,
    steps: FloatArray,
    halves: FloatArray,
    groups: IntArray,
    block_slack: FloatArray,
    leaf_slack: FloatArray,
    level: int,
    tested: int,
    start: int,
    stop: int,
    record: float,
    max_blocks: int,
    found: IntArray,
    deficits: FloatArray,
    tries: IntArray,
) -> tuple[int, int, int, int, float]:
    """Depth-first search of start <= t < stop, in increasing order of t.

    Args:
        limbs: digits of alpha, see `turn_at`.
        shifts: phase of each plane at t = 0, in turns.
        weights: of the planes, slow to fast.
        roots: (levels, planes): turns from the start of a block of 2**level displacements to its centre.
        steps: (levels, planes): turns from the centre of a block of 2**(level + 1) to that of its right half.
        halves: (levels, planes): half the turn that a block spans.
        groups: (levels): how many groups of `LANES` planes bound a block.
        block_slack: see `slackened`; for the bound of a block.
        leaf_slack: the same for a deficit.
        level: of the largest blocks, whose phases are formed exactly.
        tested: level of the largest blocks that are bounded, at most `level`; larger ones are halved unseen.
        start: first displacement.
        stop: one past the last displacement.
        record: the least deficit known before `start`, or the budget.
        max_blocks: number of blocks after which to stop, though not before something is done.
        found: to be filled with candidates.
        deficits: to be filled with their deficits.
        tries: (2, levels): counts of blocks bounded and of those that survived, added to.

    Returns:
        Where the search stopped (all before it is done), number of candidates, of blocks, of groups of planes looked
        at, and the record.
    """
    width = weights.size
    turns = np.empty((level + 2, width))
    parts = np.zeros((level + 2, width // LANES))
    totals = np.zeros(level + 2)
    least = np.empty(width)
    block_limit = slackened(record, block_slack)
    leaf_limit = slackened(record, leaf_slack)
    at, lev = start, level
    count, blocks, looked = 0, 0, 0
    while at < stop and (blocks < max_blocks or at == start) and count < found.size:
        if lev == level:
            for k in range(width):
                turn = turn_at(limbs, k, at) + shifts[k]
                turn += roots[level, k]
                turns[level + 1, k] = turn - ((turn + _ROUND) - _ROUND)
            side = 0.0
        else:
            side = 1.0 if ((at - start) >> lev) & 1 else -1.0
        if lev > tested:
            move_planes(turns, steps, lev, side, 0)
            lev -= 1
            continue
        blocks += 1
        tries[0, lev] += 1
        total = totals[lev + 1]
        group = groups[lev]
        # Fast planes first: the parent's total has the slow ones, and they have hardly moved.
        while group > 0 and total < block_limit:
            first = group - _BATCH if group > _BATCH else 0
            looked += group - first
            bound_planes(turns, steps, halves, weights, least, lev, side, first * LANES, group * LANES)
            for g in range(first, group):
                i = g * LANES
                part = ((least[i] + least[i + 1]) + (least[i + 2] + least[i + 3])) + (
                    (least[i + 4] + least[i + 5]) + (least[i + 6] + least[i + 7])
                )
                part = max(part, parts[lev + 1, g])
                parts[lev, g] = part
                total += part - parts[lev + 1, g]
            group = first
        if total < block_limit:
            tries[1, lev] += 1
            if lev > 0:
                move_planes(turns, steps, lev, side, groups[lev] * LANES)
                fresh = 0.0
                for g in range(groups[lev]):
                    fresh += parts[lev, g]
                totals[lev] = fresh
                lev -= 1
                continue
            deficit = deficit_at(limbs, shifts, weights, at)
            if deficit < leaf_limit:
                found[count] = at
                deficits[count] = deficit
                count += 1
                if deficit < record:
                    record = deficit
                    block_limit = slackened(record, block_slack)
                    leaf_limit = slackened(record, leaf_slack)
        at += 1 << lev
        while lev < level and ((at - start) >> lev) & 1 == 0:
            lev += 1
    return min(at, stop), count, blocks, looked, record

"""A profile as the compiled search of `pruned.py` reads it; the proof of the slacks is there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ropegeo._arrays import FloatArray, IntArray, UintArray
from ropegeo.engine.deficits import UNIT
from ropegeo.engine.pruned_kernels import LANES, search
from ropegeo.heads import LogitProfile

_TOP_LEVEL = 44
_TURN = 1 << 128


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """A profile as `pruned_kernels.search` reads it: planes of non-zero weight, slow to fast, padded."""

    limbs: UintArray
    shifts: FloatArray
    weights: FloatArray
    roots: FloatArray
    steps: FloatArray
    halves: FloatArray
    groups: IntArray
    block_slack: FloatArray
    leaf_slack: FloatArray

    @property
    def top(self) -> int:
        """Level of the longest blocks that some plane bounds."""
        return len(self.groups) - 1

    def run(
        self, start: int, stop: int, record: float, max_blocks: int, tested: int, tries: IntArray
    ) -> tuple[int, IntArray, FloatArray, int, int, float]:
        """The search of start <= t < stop: where it stopped, candidates, deficits, blocks, shares, record."""
        room = 4096
        found, deficits = np.empty(room, dtype=np.int64), np.empty(room)
        level = min(self.top, (stop - start - 1).bit_length())
        at, count, blocks, looked, record = search(
            self.limbs,
            self.shifts,
            self.weights,
            self.roots,
            self.steps,
            self.halves,
            self.groups,
            self.block_slack,
            self.leaf_slack,
            level,
            min(level, tested),
            start,
            stop,
            record,
            max_blocks,
            found,
            deficits,
            tries,
        )
        return int(at), found[:count], deficits[:count], int(blocks), int(looked) * LANES, float(record)


def plan_of(profile: LogitProfile) -> Plan:
    """The active planes of a profile, ready to be searched."""
    planes = np.array(profile.active_planes, dtype=np.int64)
    words = profile.spectrum.words
    exact = {int(k): (int(words[0, k]) << 64) | int(words[1, k]) for k in planes}
    signed = {k: a - _TURN if 2 * a >= _TURN else a for k, a in exact.items()}
    order = sorted(signed, key=lambda k: (abs(signed[k]), k))
    width = -(-len(order) // LANES) * LANES
    # A block of 2**level spans |alpha| (2**level - 1) turns of a plane; from a whole turn on the plane says nothing.
    top = max(level for level in range(_TOP_LEVEL + 1) if abs(signed[order[0]]) * ((1 << level) - 1) < _TURN)
    limbs = np.zeros((4, width), dtype=np.uint64)
    shifts, weights = np.zeros(width), np.zeros(width)
    roots, steps, halves = (np.zeros((top + 1, width)) for _ in range(3))
    groups = np.zeros(top + 1, dtype=np.int64)
    for i, k in enumerate(order):
        limbs[:, i] = [(exact[k] >> (32 * digit)) & 0xFFFFFFFF for digit in range(4)]
        c = complex(profile.coefficients[k])
        shifts[i], weights[i] = math.atan2(c.imag, c.real) / (2 * math.pi), abs(c)
        for level in range(top + 1):
            span = signed[k] * ((1 << level) - 1)
            roots[level, i] = _half_turns(span)
            steps[level, i] = _half_turns(signed[k] << level)
            halves[level, i] = math.ldexp(float(abs(span)), -129)
            if abs(span) < _TURN:
                groups[level] = i // LANES + 1
    weight = math.fsum(weights)
    return Plan(
        limbs=limbs,
        shifts=shifts,
        weights=weights,
        roots=roots,
        steps=steps,
        halves=halves,
        groups=groups,
        block_slack=_slack(weight, (6 + top) * UNIT, (len(order) + 128) * UNIT, 5.0, 48.0),
        leaf_slack=_slack(weight, 4 * UNIT, (len(order) + 16) * UNIT, 2.1, 16.0),
    )


def _half_turns(doubled: int) -> float:
    """doubled/2 of 2**-128 turn, reduced to [-1/2, 1/2]."""
    rest = doubled % (2 * _TURN)
    return math.ldexp(float(rest - 2 * _TURN if rest >= _TURN else rest), -129)


def _slack(weight: float, delta: float, relative: float, times: float, constant: float) -> FloatArray:
    """times a, times b and constant c of the module's proof, in the order of `pruned_kernels.slackened`."""
    root = 2 * math.pi * delta * math.sqrt(2 * weight)
    return np.array([times * root, times * relative, constant * root**2 / 4])

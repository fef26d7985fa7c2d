"""What a search is asked for, and how much of it is too much."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from ropegeo._arrays import ComplexArray
from ropegeo.errors import UnsupportedError
from ropegeo.exact import short
from ropegeo.heads import LogitProfile

Progress: TypeAlias = Callable[[int], None]
"""Called now and then with how much is done."""

Outcome: TypeAlias = tuple[list[int], float]
"""Candidates in increasing order; and the slack: how far below them a missed step may lie, per unit of weight."""

MAX_PHASES = 2 * 10**8
"""Planes times distances that the definition is evaluated for (seconds of numpy)."""
MAX_STREAMED = 10**14
"""Planes times distances that are streamed: under an hour on two cores."""
DEFINED_AT_ONCE = 1 << 21
"""The same that is evaluated by definition, in numpy: some 30 ms, less than it takes to load compiled kernels."""
STREAMED_AT_ONCE = 1 << 30
"""The same that is streamed without looking for a faster route: a fraction of a second."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Work:
    """What is searched: the displacements of some ranges, in increasing order, as if they were one.

    Attributes:
        profile: any coefficients, not all zero. It is held without its constant and scaled by a power of 2 to a weight
            between 1/2 and 1: deficits per unit of weight stay the same, and none underflows.
        ranges: (first, last) of each; a target's own displacement is left out between two.
        ends: where the maxima up to some displacements are all that is wanted, those, increasing; None for every
            running maximum.
        threads: for searches that share work out; all usable cores if None.
        progress: called now and then with the number of displacements done.
    """

    profile: LogitProfile
    ranges: tuple[tuple[int, int], ...]
    ends: tuple[int, ...] | None = None
    threads: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        exponent = math.frexp(self.profile.weight)[1]
        if exponent or self.profile.constant:
            coefficients: ComplexArray = scaled(self.profile.coefficients, -exponent)
            object.__setattr__(self, "profile", replace(self.profile, coefficients=coefficients, constant=0.0))
        if self.ends is not None and self.ranges:
            last = self.ranges[-1][1]
            object.__setattr__(self, "ends", tuple(sorted({min(end, last) for end in self.ends})))

    @property
    def planes(self) -> int:
        """How many planes are active."""
        return len(self.profile.active_planes)

    @property
    def size(self) -> int:
        """How many displacements there are."""
        return sum(last - first + 1 for first, last in self.ranges)

    def parts(self) -> Iterator[tuple[int, int, Progress | None]]:
        """Each range, with a progress that counts on from the ranges before it."""
        before = 0
        for first, last in self.ranges:
            yield first, last, None if self.progress is None else partial(_counted, self.progress, before)
            before += last - first + 1

    def split(self, size: int) -> tuple[Work, Work]:
        """The first `size` displacements, and the rest."""
        ahead: list[tuple[int, int]] = []
        rest: list[tuple[int, int]] = []
        for first, last in self.ranges:
            taken = min(size, last - first + 1)
            if taken:
                ahead.append((first, first + taken - 1))
            if first + taken <= last:
                rest.append((first + taken, last))
            size -= taken
        return replace(self, ranges=tuple(ahead), progress=None), replace(self, ranges=tuple(rest))


def scaled(coefficients: ComplexArray, exponent: int) -> ComplexArray:
    """Coefficients times 2**exponent, exactly but for what is below the smallest double."""
    return np.asarray(np.ldexp(coefficients.real, exponent) + 1j * np.ldexp(coefficients.imag, exponent))


def _counted(progress: Progress, before: int, done: int) -> None:
    progress(before + done)


def check_phases(planes: int, length: int) -> None:
    """Raise if the definition has too much to evaluate.

    Raises:
        UnsupportedError: more than `MAX_PHASES` phases.
    """
    if planes * length > MAX_PHASES:
        raise UnsupportedError(
            f"route 'definition' evaluates {planes} planes at every distance, up to {MAX_PHASES // planes}, here "
            f"{short(length)}: use another route"
        )


def check_streamed(planes: int, length: int) -> None:
    """Raise if there is too much to stream.

    Raises:
        UnsupportedError: planes times length above `MAX_STREAMED`.
    """
    if planes * length > MAX_STREAMED:
        raise UnsupportedError(
            f"{planes} planes are streamed up to distance {MAX_STREAMED // planes}, here {short(length)}: use fewer "
            "planes or a shorter length"
        )

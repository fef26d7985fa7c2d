"""What a search for the best head holds: rows (displacements), atoms (planes with a phase), distributions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ropegeo._arrays import BoolArray, ComplexArray, FloatArray, IntArray
from ropegeo.engine.work import DEFINED_AT_ONCE
from ropegeo.heads import LogitProfile
from ropegeo.optimal.window import Phases, Window
from ropegeo.spectrum import RopeSpectrum

FIRST_PHASES = 8
"""Phases of each plane to begin with."""
NEAR, SPACED = 24, 64
"""Displacements to begin with, on each side: the nearest, and as many evenly spaced in the logarithm."""
ADDED_ROWS = 256
"""Displacements added a round, the worst ones first."""
_CHUNK = 1 << 22


@dataclass(frozen=True, eq=False)
class Atoms:
    """Planes (their places in the list of those allowed) with a phase each."""

    places: IntArray
    angles: FloatArray

    @classmethod
    def even(cls, planes: int, phases: int) -> Atoms:
        """So many phases of every plane, evenly spaced from 0."""
        angles = 2 * np.pi * np.arange(phases) / phases
        return cls(np.repeat(np.arange(planes), phases), np.tile(angles, planes))

    def payoffs(self, shortfalls: ComplexArray) -> FloatArray:
        """Re exp(i phi) (1 - exp(i t theta)) of every row and atom."""
        return np.asarray((shortfalls[:, self.places] * np.exp(1j * self.angles)).real)

    def mixed(self, shares: FloatArray, count: int) -> ComplexArray:
        """z_k, divided by sum |z_k|: two phases of one plane cancel in part, and what that frees may be used."""
        z = np.zeros(count, np.complex128)
        np.add.at(z, self.places, shares * np.exp(1j * self.angles))
        return np.asarray(z / np.abs(z).sum())

    def kept(self, which: BoolArray) -> Atoms:
        """Some of them."""
        return Atoms(self.places[which], self.angles[which])

    def with_best(self, averages: ComplexArray, value: float) -> Atoms:
        """These, and of each plane with |g_k| above a value the phase that is best against that distribution."""
        promising = np.flatnonzero(np.abs(averages) > value * (1 + 1e-12))
        return Atoms(np.append(self.places, promising), np.append(self.angles, -np.angle(averages[promising])))


@dataclass(frozen=True, eq=False)
class Distribution:
    """A distribution on displacements, with g_k = sum_t mu_t (1 - exp(i t theta_k)) of each plane allowed."""

    at: IntArray
    shares: FloatArray
    averages: ComplexArray

    def bound(self, phases: Phases) -> float:
        """What no head exceeds."""
        sizes = np.abs(self.averages) if phases == "free" else self.averages.real
        return max(0.0, float(sizes.max()))

    def mirrored(self, window: Window) -> Distribution:
        """Half of each share moved from t to -t, if the window has every -t; else itself.

        Where the window is symmetric the best head has no phases, and g_k should be real. A solver's mu often is not
        mirrored, as t and -t are paid alike there.
        """
        if not self.at.size or not (window.low <= -self.at.max() and -self.at.min() <= window.high):
            return self
        return Distribution(
            np.concatenate([self.at, -self.at]),
            np.concatenate([self.shares, self.shares]) / 2,
            self.averages.real.astype(np.complex128),
        )

    def mixed(self, other: Distribution) -> Distribution:
        """Half of each: distributions of later games swing about the best one."""
        return Distribution(
            np.concatenate([self.at, other.at]),
            np.concatenate([self.shares, other.shares]) / 2,
            (self.averages + other.averages) / 2,
        )

    def merged(self) -> tuple[IntArray, FloatArray]:
        """Every displacement once, those without a share left out; shares of sum 1."""
        at, places = np.unique(self.at, return_inverse=True)
        shares = np.bincount(places, weights=self.shares, minlength=at.size)
        shares[shares < 1e-15 * shares.max()] = 0
        return at[shares > 0], shares[shares > 0] / shares.sum()


@dataclass(eq=False)
class Rows:
    """Displacements of a window that are rows of the game, and the pass over all of the window."""

    spectrum: RopeSpectrum
    window: Window
    planes: Sequence[int]
    at: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    shortfalls: ComplexArray = field(init=False)
    _left: IntArray = field(init=False, default_factory=lambda: np.zeros(0, np.int64))
    _stay: IntArray = field(init=False, default_factory=lambda: np.zeros(0, np.int64))
    _all: tuple[IntArray, ComplexArray] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.shortfalls = np.zeros((0, len(self.planes)), np.complex128)
        if (self.window.high - self.window.low) * len(self.planes) <= DEFINED_AT_ONCE:
            every = np.concatenate([np.arange(first, last + 1) for first, last in self.window.ranges])
            self._all = every, self._shortfalls(every)
        self.add(np.concatenate([_spread(first, last) for first, last in self.window.ranges]))

    def add(self, displacements: IntArray) -> None:
        """Take in rows that are not there yet."""
        new = np.setdiff1d(displacements, self.at)
        self._stay = np.union1d(self._stay, np.intersect1d(new, self._left))
        self.at = np.concatenate([self.at, new])
        self.shortfalls = np.concatenate([self.shortfalls, self._shortfalls(new)])

    def drop(self, which: BoolArray) -> None:
        """Leave out rows, but for those that came back once after they were left out: else rounds may go in circles."""
        which = which & ~np.isin(self.at, self._stay)
        self._left = np.union1d(self._left, self.at[which])
        self.at, self.shortfalls = self.at[~which], self.shortfalls[~which]

    def distribution(self, shares: FloatArray) -> Distribution:
        """A distribution on the rows."""
        carrying = shares > 0
        return Distribution(self.at[carrying], shares[carrying], shares @ self.shortfalls)

    def worst(self, z: ComplexArray, value: float) -> tuple[float, IntArray]:
        """The margin of a head over the window, and the displacements at which its local minima fall below a value."""
        least, found = np.inf, []
        for displacements, margins in self._margins(z):
            least = min(least, float(margins.min()))
            inner = np.concatenate([[np.inf], margins, [np.inf]])
            low = (inner[1:-1] <= inner[:-2]) & (inner[1:-1] <= inner[2:]) & (margins < value * (1 - 1e-12))
            places = np.flatnonzero(low)
            worst = places[np.argsort(margins[places], kind="stable")[:ADDED_ROWS]]
            found.append((displacements[worst], margins[worst]))
        at, margins = (np.concatenate(each) for each in zip(*found, strict=True))
        return least, at[np.argsort(margins, kind="stable")[:ADDED_ROWS]]

    def _margins(self, z: ComplexArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Displacements and a head's margin at each: in one piece by definition, or piece by piece by the sweep."""
        if self._all is not None:
            yield self._all[0], (self._all[1] @ z).real
            return
        from ropegeo.engine.sweep import Sweep

        coefficients = np.zeros(self.spectrum.planes, np.complex128)
        coefficients[list(self.planes)] = z
        sweep = Sweep((LogitProfile(spectrum=self.spectrum, coefficients=coefficients),))
        target = float(z.real.sum())
        for first, last in self.window.ranges:
            for start in range(first, last + 1, _CHUNK):
                end = min(last, start + _CHUNK - 1)
                yield np.arange(start, end + 1), target - sweep.logits(start, end)[0]

    def _shortfalls(self, displacements: IntArray) -> ComplexArray:
        """1 - exp(i t theta_k) as 2 sin(x) (sin(x) - i cos(x)), x = t theta_k/2, which keeps small ones."""
        halves = self.spectrum.phases(displacements)[:, list(self.planes)] / 2
        sines = np.sin(halves)
        return np.asarray(2 * sines * (sines - 1j * np.cos(halves)))


def _spread(first: int, last: int) -> IntArray:
    """Displacements of one side to begin with."""
    size = last - first + 1
    spaced = np.unique(np.geomspace(1, size, SPACED).round().astype(np.int64))
    steps = np.union1d(np.arange(1, min(NEAR, size) + 1), spaced)
    return steps if first == 1 else -steps

r"""Letter heads on several planes: the extremes over a window of distances that decide best and worst.

Two ways to the same extremes: `definition` evaluates every shift at every distance in numpy, as the formulas are
written; `streamed` sweeps the profile of each shift, and its negative, in one compiled pass (`sweep.py`).

Error, with u = 2**-53 and W the weight: a swept logit is within `sweep_error` W of that of its coefficients, and those
are w_k exp(i phase), off by the centre's phase (12.6u), the code and the sum (6u), and 4u for cosine, sine
and product; a margin is a difference of two. By definition: `LetterProfile.abs_error` each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.engine.margin import MarginPoint
from ropegeo.engine.work import DEFINED_AT_ONCE, MAX_STREAMED, Progress, check_phases
from ropegeo.errors import UnsupportedError
from ropegeo.exact import Enclosure, short
from ropegeo.heads import LetterProfile

if TYPE_CHECKING:
    from ropegeo.engine.sweep import Sweep

_BLOCK = 1 << 12


class _TopTwo:
    """The two largest values seen, at different distances."""

    def __init__(self) -> None:
        self.found: list[tuple[float, int]] = []

    def add(self, values: FloatArray, distances: IntArray) -> None:
        """Take in values and where they are."""
        first = np.argsort(values)[::-1][:2]
        self.take([(float(values[place]), int(distances[place])) for place in first])

    def take(self, pairs: Sequence[tuple[float, int]]) -> None:
        """Take in pairs of a value and its distance; of several at one distance the largest counts."""
        largest: dict[int, float] = {}
        for value, distance in [*self.found, *pairs]:
            largest[distance] = max(value, largest.get(distance, -np.inf))
        self.found = sorted(((value, distance) for distance, value in largest.items()), reverse=True)[:2]

    def without(self, distance: int) -> tuple[float, int]:
        """The largest value at another distance, and where."""
        return next(pair for pair in self.found if pair[1] != distance)


class _Window:
    """Extremes over the distances 0..n-1 seen so far, for queries centred on `profile.centre`."""

    def __init__(self, profile: LetterProfile) -> None:
        self.profile = profile
        self.match, self.weakest_match, self.rival, self.weakest_rival = (_TopTwo() for _ in range(4))
        self._swept: Sweep | None = None

    def evaluate(self, low: int, high: int) -> None:
        """Take in the distances low..high by definition: every shift at each."""
        for start in range(low, high + 1, _BLOCK):
            d = np.arange(start, min(start + _BLOCK, high + 1))
            scores = self.profile.logits(d)
            match, rivals = scores[0], scores[1:]
            self.match.add(match, d)
            self.weakest_match.add(-match, d)
            self.rival.add(rivals.max(axis=0), d)
            self.weakest_rival.add(-rivals.min(axis=0), d)

    def sweep(self, low: int, high: int, threads: int | None, progress: Progress | None) -> None:
        """Take in the distances low..high in one compiled pass over the profiles of all shifts and their negatives."""
        if high - low < _BLOCK:  # less than a block of the sweep
            self.evaluate(low, high)
            return
        if self._swept is None:
            from ropegeo.engine.sweep import Sweep

            shifted = [self.profile.profile(shift) for shift in range(self.profile.letters)]
            self._swept = Sweep((*shifted, *(profile.negative() for profile in shifted)), threads=threads)
        done = None if progress is None else (lambda count: progress(low + count))
        found = self._swept.top_two(low, high, slack=0.0, progress=done)
        pairs = [list(zip(part.logits.tolist(), part.at.tolist(), strict=True)) for part in found]
        letters = self.profile.letters
        self.match.take(pairs[0])
        self.weakest_match.take(pairs[letters])
        for shift in range(1, letters):
            self.rival.take(pairs[shift])
            self.weakest_rival.take(pairs[letters + shift])

    def margin(self, target: int) -> tuple[float, int]:
        """Margin with the answer at one distance, and the displacement of the runner-up."""
        strongest, distance = self.rival.without(target)
        return float(self.profile.logit(0, np.array([target]))[0]) - strongest, distance - target

    def worst(self) -> tuple[float, int]:
        """The smallest margin over targets: at one of the two weakest matches, or where the strongest rival stands.

        With r the strongest rival's distance, every target D != r meets that rival, so the weakest match among them
        is worst; D = r meets the second rival.
        """
        candidates = [distance for _, distance in (*self.weakest_match.found, self.rival.found[0])]
        return min(self.margin(distance) for distance in candidates)

    def best(self, *, own: bool) -> float:
        """The largest margin: one rival, at the distance of one of the two weakest, against the best match elsewhere.

        `own`: the query looks for itself, so that distance 0 holds the answer.
        """
        return max(
            self.match.without(distance)[0] + value
            for value, distance in self.weakest_rival.found
            if distance or not own
        )


def window_points(
    profile: LetterProfile,
    lengths: Sequence[int],
    target: int | None,
    *,
    route: str,
    threads: int | None = None,
    progress: Progress | None = None,
) -> dict[int, MarginPoint]:
    """The points of a curve at increasing lengths, by `streamed` or `definition`, or whichever is faster (`auto`).

    Raises:
        UnsupportedError: more than the route takes on.
    """
    planes = len(profile.active_planes)
    if route == "auto":
        small = planes * profile.letters * lengths[-1] <= DEFINED_AT_ONCE
        route = "definition" if small else "streamed"
    if route == "definition":
        check_phases(planes * profile.letters, lengths[-1])
    else:
        largest = MAX_STREAMED // (2 * planes * profile.letters)
        if lengths[-1] > largest:
            raise UnsupportedError(
                f"{planes} planes and {profile.letters} letters are streamed up to distance {largest}, here "
                f"{short(lengths[-1])}: use one plane, which reaches any length, or a shorter length"
            )
    error = margin_error(profile, route)
    window = _Window(profile)
    uncentred = replace(profile, centre=Fraction(0))
    # Letter-integer queries of a centred head look for themselves, uncentred.
    itself = _Window(uncentred) if profile.centre else None
    windows = [window] if itself is None else [window, itself]
    points = {}
    done = 0
    for n in lengths:
        for each in windows:
            if route == "definition":
                each.evaluate(done, n - 1)
            else:
                each.sweep(done, n - 1, threads, progress)
        done = n
        worst, at = window.margin(0) if profile.self_only else window.worst()
        best = window.best(own=profile.self_only)
        if itself is not None:
            worst, at = min((worst, at), itself.margin(0))
            best = max(best, itself.best(own=True))
        margin = worst
        if target is not None:
            margin, at = window.margin(target)
        unit = profile.weight
        points[n] = MarginPoint(
            length=n,
            margin=Enclosure.around(margin / unit, error),
            best=Enclosure.around(best / unit, error),
            worst=Enclosure.around(worst / unit, error),
            at=at,
            method=route,
        )
    return points


def margin_error(profile: LetterProfile, route: str) -> float:
    """Bound on the absolute error of a margin, per unit of weight; derived in the module."""
    defined = 2 * profile.abs_error / profile.weight
    swept = 2 * (len(profile.active_planes) + 64 + 24) * 2.0**-53
    return defined if route == "definition" else max(defined, swept)

"""The best margin by length, beside what simpler heads on the same rotation reach."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ropegeo.engine.margin import check_lengths
from ropegeo.engine.planes import best_index_plane
from ropegeo.engine.routes import margin_curve
from ropegeo.engine.work import Progress
from ropegeo.exact import Enclosure
from ropegeo.heads import LogitProfile
from ropegeo.optimal.head import OptimalHead, optimal_head
from ropegeo.optimal.window import Phases
from ropegeo.spectrum import RopeSpectrum

SCHEMA = "ropegeo.optimal_curve/1"
DIGITS = 12


@dataclass(frozen=True, eq=False, kw_only=True)
class OptimalPoint:
    """One length: the best head made for it, and simpler heads.

    Attributes:
        best: the best head of this length, with its bound.
        plane: the best single plane without a phase.
        one_plane: its margin.
        equal_weights: margin of equal weights on all planes.
    """

    best: OptimalHead
    plane: int
    one_plane: Enclosure
    equal_weights: Enclosure

    @property
    def length(self) -> int:
        """n."""
        return self.best.certificate.window.length

    @property
    def any_plane(self) -> float:
        """What one plane without a phase can win by, whatever its angle: 1 - cos(2 pi/(T + 1)), T the reach."""
        return 2 * math.sin(math.pi / (self.best.certificate.window.reach + 1)) ** 2

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "length": self.length,
            **self.best.margin.to_dict("margin", DIGITS),
            **self.best.upper_bound.to_dict("upper_bound", DIGITS),
            "gap": self.best.gap,
            "status": self.best.status,
            "planes": list(self.best.planes),
            "plane": self.plane,
            **self.one_plane.to_dict("one_plane", DIGITS),
            **self.equal_weights.to_dict("equal_weights", DIGITS),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class OptimalCurve:
    """The best margin at several lengths; every length has a best head of its own.

    Attributes:
        spectrum: the rotation.
        offset: distance aimed at.
        phases: `free` or `zero`.
        max_planes: how many planes were allowed, or None for all.
        points: one a length, in increasing order.
    """

    spectrum: RopeSpectrum
    offset: int
    phases: Phases
    max_planes: int | None
    points: tuple[OptimalPoint, ...]

    @property
    def lengths(self) -> tuple[int, ...]:
        """n of each point."""
        return tuple(point.length for point in self.points)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "schema": SCHEMA,
            "spectrum": self.spectrum.to_dict(),
            "offset": self.offset,
            "phases": self.phases,
            "max_planes": self.max_planes,
            "unit": "beta",
            "rows": [point.to_dict() for point in self.points],
        }


def optimal_curve(
    spectrum: RopeSpectrum,
    lengths: Sequence[int],
    *,
    offset: int = 0,
    phases: Phases = "free",
    max_planes: int | None = None,
    progress: Progress | None = None,
) -> OptimalCurve:
    """The best margin at several lengths, the best single plane and equal weights beside it.

    Args:
        spectrum: any rotation.
        lengths: n, increasing, each above the offset.
        offset: distance aimed at.
        phases: of the best heads.
        max_planes: of the best heads.
        progress: called after each length with how many are done.

    Raises:
        InvalidInputError: as `optimal_head`.
        UnsupportedError: as `optimal_head`.
        SolverError: as `optimal_head`.

    Accuracy: every margin and bound is an enclosure.

    Source: docs/MATHEMATICS.md, sections 5 and 7.
    """
    equal = LogitProfile(
        spectrum=spectrum, coefficients=np.full(spectrum.planes, 1 / spectrum.planes, np.complex128), origin=offset
    )
    points = []
    for done, n in enumerate(check_lengths("optimal_curve", lengths), start=1):
        best = optimal_head(spectrum, length=n, offset=offset, phases=phases, max_planes=max_planes)
        plane, one_plane = best_index_plane(spectrum, offset=offset, length=n)
        points.append(
            OptimalPoint(
                best=best,
                plane=plane,
                one_plane=one_plane,
                equal_weights=margin_curve(equal, [n]).points[0].margin,
            )
        )
        if progress is not None:
            progress(done)
    return OptimalCurve(spectrum=spectrum, offset=offset, phases=phases, max_planes=max_planes, points=tuple(points))

"""Labels around a circle: which points share one, and where each has room."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ropegeo._arrays import FloatArray
from ropegeo.construct.geometry import PlaneGeometry
from ropegeo.plots.canvas import plain

_LINE = 15
_ONE_LINE = 12


@dataclass(frozen=True, kw_only=True)
class CircleLabel:
    """A label for the points near one direction.

    Attributes:
        angle: direction in radians.
        text: one or two lines.
        matched: whether it names the matched pair.
    """

    angle: float
    text: str
    matched: bool


def circle_labels(geometry: PlaneGeometry) -> Iterator[list[CircleLabel]]:
    """Labels for all keys and queries, then ever fewer that stand for more points each, down to one or two.

    Keys and queries within a few degrees share a label, "keys ← queries". The matched pair keeps its own. Of numbers
    with more than eight digits the last four are shown.
    """
    matched_query, matched_key = geometry.matched
    points = [
        (math.atan2(point.imag, point.real) % math.tau, _shortened(label), kind)
        for kind, (directions, labels, matched) in enumerate(
            (
                (geometry.keys, geometry.key_labels, matched_key),
                (geometry.queries, geometry.query_labels, matched_query),
            )
        )
        for number, (point, label) in enumerate(zip(directions.tolist(), labels, strict=True))
        if number != matched
    ]
    pair = [
        (math.atan2(point.imag, point.real) % math.tau, _shortened(label), kind)
        for kind, (point, label) in enumerate(
            (
                (complex(geometry.keys[matched_key]), geometry.key_labels[matched_key]),
                (complex(geometry.queries[matched_query]), geometry.query_labels[matched_query]),
            )
        )
    ]
    width = math.radians(3)
    while True:
        yield [
            CircleLabel(angle=angle, text=text, matched=chosen is pair)
            for chosen in (pair, points)
            for angle, text in _clusters(chosen, width)
        ]
        if width > math.tau:
            return
        width *= 2


def _shortened(label: str) -> str:
    return re.sub(r"[0-9]{5,}([0-9]{4})", r"…\1", label)


def _clusters(points: list[tuple[float, str, int]], width: float) -> list[tuple[float, str]]:
    if not points:
        return []
    points = sorted(points)
    gaps = [after[0] - before[0] for before, after in pairwise(points)]
    gaps.append(points[0][0] + math.tau - points[-1][0])
    first = int(np.argmax(gaps)) + 1  # after the widest gap, so that no cluster is cut at angle 0
    points = points[first:] + [(angle + math.tau, label, kind) for angle, label, kind in points[:first]]
    groups: list[list[tuple[float, str, int]]] = []
    for point in points:
        if groups and point[0] - groups[-1][0][0] <= width:
            groups[-1].append(point)
        else:
            groups.append([point])
    return [
        (
            (group[0][0] + group[-1][0]) / 2,
            _two_parts(*(joined([label for _, label, of in group if of == kind]) for kind in (0, 1))),
        )
        for group in groups
    ]


def _two_parts(keys: str, queries: str) -> str:
    parts = [keys, f"← {queries}" if queries else ""]
    lines = [line for part in parts for line in textwrap.wrap(plain(part, 200), _LINE, max_lines=2, placeholder=" …")]
    return "\n".join(lines) if sum(map(len, lines)) >= _ONE_LINE else " ".join(lines)


def joined(labels: Sequence[str]) -> str:
    """Several labels in one, what they share said once and runs of numbers as ranges.

    Example:
        >>> joined(["d=0", "d=1", "d=2", "d=9"]), joined(["letter", "integer 1", "integer 3"])
        ('d=0–2, 9', 'letter, integer 1, 3')
    """
    tails: dict[str, list[str]] = {}
    for label in labels:
        stem, tail = re.fullmatch(r"(.*[ =])?(.*)", label, re.DOTALL).groups("")  # type: ignore[union-attr]
        tails.setdefault(stem, []).append(tail)
    return ", ".join(stem + ", ".join(_runs(found)) for stem, found in tails.items())


def _runs(tails: list[str]) -> list[str]:
    if not all(re.fullmatch(r"[0-9]{1,18}", tail) for tail in tails):
        return tails if len(tails) < 5 else [*tails[:2], "…", tails[-1]]
    numbers = sorted({int(tail) for tail in tails})
    runs = [[numbers[0]]]
    for number in numbers[1:]:
        if number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [text for run in runs for text in ([f"{run[0]}–{run[-1]}"] if len(run) > 2 else map(str, run))]
    return texts if len(texts) < 5 else [*texts[:2], "…", texts[-1]]


def spread(wanted: Sequence[float], heights: FloatArray, limit: float) -> list[float]:
    """Centres near the wanted ones, in the same order, for boxes of these heights that do not overlap within +-limit.

    The mean of pushing up from below and down from above: each keeps all distances, so their mean does.
    """
    order = sorted(range(len(wanted)), key=lambda n: wanted[n])
    tall = [float(heights[n]) for n in order]
    up = _pushed([wanted[n] for n in order], tall, limit)
    down = [-y for y in _pushed([-wanted[n] for n in reversed(order)], tall[::-1], limit)][::-1]
    placed = [0.0] * len(order)
    for n, first, second in zip(order, up, down, strict=True):
        placed[n] = (first + second) / 2
    return placed


def _pushed(wanted: list[float], tall: list[float], limit: float) -> list[float]:
    placed = list(wanted)
    edge = -limit
    for n, height in enumerate(tall):
        placed[n] = max(placed[n], edge + height / 2)
        edge = placed[n] + height / 2
    edge = limit
    for n in range(len(tall) - 1, -1, -1):
        placed[n] = min(placed[n], edge - tall[n] / 2)
        edge = placed[n] - tall[n] / 2
    return placed

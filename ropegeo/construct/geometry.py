"""What one plane of a built head looks like: queries and keys on the circle, and the logits by distance.

These are the values behind the paper's Figure 4A; `ropegeo.plots` draws them and computes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Complex, Float, Int

from ropegeo._arrays import ComplexArray, FloatArray, IntArray, frozen
from ropegeo.construct.built import BuiltHead, index_profile, letter_profile
from ropegeo.construct.recipe import LETTER_MODES
from ropegeo.construct.retrieval import letter_code

MAX_LETTERS = 40
MAX_INTEGERS = 9


@dataclass(frozen=True, eq=False, kw_only=True)
class PlaneGeometry:
    """Queries and keys of one plane as unit complex numbers, seen from the query's position.

    Attributes:
        plane: which plane.
        angle: radians per position.
        keys: directions of the keys.
        key_labels: what each key is: a distance (`d=3`) or a letter.
        queries: directions of the queries.
        query_labels: what each query looks for.
        matched: index of the query and of the key that fit each other.
    """

    plane: int
    angle: float
    keys: Complex[ComplexArray, " keys"]
    key_labels: tuple[str, ...]
    queries: Complex[ComplexArray, " queries"]
    query_labels: tuple[str, ...]
    matched: tuple[int, int]

    def __post_init__(self) -> None:
        for name in ("keys", "queries"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.complex128))


@dataclass(frozen=True, eq=False, kw_only=True)
class DistanceLogits:
    """Logits of a head by distance, in logit units.

    Attributes:
        distances: d = i - j.
        match: logit of the token looked for (for an index head, of any token) at each distance.
        rival: largest logit of any other letter at each distance, or None for an index head.
        target: distance of the match that the head is built for, or None where it may stand anywhere.
    """

    distances: Int[IntArray, " distances"]
    match: Float[FloatArray, " distances"]
    rival: Float[FloatArray, " distances"] | None
    target: int | None


def plane_geometry(built: BuiltHead, *, keys: int = 12, offset: int | None = None) -> PlaneGeometry:
    """The heaviest plane of a built head.

    Args:
        built: the head.
        keys: number of keys by distance that are drawn; letters are drawn up to `MAX_LETTERS`.
        offset: token-conditional index head: the offset of the query that is highlighted; the head's own if not given.

    Index: a key at distance d stands at -d theta, a query with offset s at -s theta, so the query meets the key at
    d = s. Retrieval: letter phi stands at -phi omega, as key and as query (at distance `centre` if centred).
    """
    recipe = built.recipe
    heaviest = int(np.argmax(recipe.weights))
    plane, turn = recipe.planes[heaviest], recipe.query_turns()[heaviest]
    angle = float(recipe.spectrum.inv_freq[plane])
    if recipe.mode in LETTER_MODES:
        shown = recipe.letters[:MAX_LETTERS]
        codes = np.stack([letter_code(recipe, phi) for phi in range(1, len(shown) + 1)])[:, plane]
        codes = codes / np.abs(codes)
        turned = np.exp(-1j * recipe.spectrum.phases_at(recipe.centre)[plane])
        return PlaneGeometry(
            plane=plane,
            angle=angle,
            keys=codes,
            key_labels=shown,
            queries=codes * turned,
            query_labels=tuple(f"seeks {letter}" for letter in shown),
            matched=(0, 0),
        )
    target = recipe.offset if offset is None else offset
    first = max(0, target - keys // 2)  # a window of distances around the target
    distances = [first + d for d in range(keys)]
    offsets = [recipe.offset, *recipe.integers] if recipe.integers else [recipe.offset]
    drawn = sorted({*offsets[:MAX_INTEGERS], target})
    return PlaneGeometry(
        plane=plane,
        angle=angle,
        keys=np.array([np.exp(-1j * recipe.spectrum.phases_at(d)[plane]) for d in distances]),
        key_labels=tuple(f"d={d}" for d in distances),
        queries=turn * np.array([np.exp(-1j * recipe.spectrum.phases_at(s)[plane]) for s in drawn]),
        query_labels=tuple(f"offset {s}" if not recipe.integers else f"integer {s}" if s else "letter" for s in drawn),
        matched=(drawn.index(target), distances.index(target)),
    )


def distance_logits(built: BuiltHead, length: int, *, first: int = 0, offset: int | None = None) -> DistanceLogits:
    """The logits of a built head at distances first..first+length-1, in logit units.

    Args:
        built: the head.
        length: number of distances.
        first: smallest distance.
        offset: token-conditional index head: the offset of the query shown; the head's own if not given.
    """
    distances = np.arange(first, first + length)
    if built.recipe.mode in LETTER_MODES:
        letters = letter_profile(built.recipe)
        rivals = np.stack([letters.logit(shift, distances) for shift in range(1, letters.letters)])
        return DistanceLogits(
            distances=distances, match=letters.logit(0, distances), rival=rivals.max(axis=0), target=None
        )
    target = built.recipe.offset if offset is None else offset
    return DistanceLogits(
        distances=distances,
        match=replace(index_profile(built.recipe), origin=target).logit(distances),
        rival=None,
        target=target,
    )

r"""The best retrieval code of a rotation at a length: letters told apart on many slow planes at once.

A head that matches letters on one plane has only the circle to put A letters on, 2 pi/A apart, and a margin of at
most 1 - cos(2 pi/A). On several planes the codes can be up to a regular simplex, with a margin of A/(A - 1) where
nothing turns. How much of that a rotation leaves at length n is asked here: which planes are slow enough, which
character of the alphabet goes on each, with which weight (`code_search.py`); and what no code exceeds, proved
(`code_bound.py`).

The code found is what `ropegeo.retrieval_head` builds from its planes, weights, multipliers and centre length. Its
margin is the engine's, over every distance; that it is the best one is not proved, but how much better one could be
is.

Source: docs/MATHEMATICS.md, section 3; ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from operator import index
from typing import Any

import numpy as np

from ropegeo.engine.planes import best_letter_plane
from ropegeo.engine.retrieval_margin import worst_margin
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import Enclosure, short
from ropegeo.heads import LetterProfile
from ropegeo.optimal.code_bound import CodeBound, code_bound, few_planes_bound
from ropegeo.optimal.code_search import Code, Task, best_code
from ropegeo.spectrum import RopeSpectrum

SCHEMA = "ropegeo.code/1"
MAX_LETTERS = 4096
MAX_SCORES = 2 * 10**8
"""Letters times distances: a pass over all of them takes some seconds, and a search some ten passes."""
CONVERGED = "converged"
TOO_FAST = "no plane is slow enough: no code was found that decodes every input of this length"
_NEGLIGIBLE = 1e-12
"""Weights below this are left out of a code."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OptimalCode:
    """A retrieval code, what it wins by at its length, and what no code can exceed.

    Attributes:
        spectrum: the rotation.
        letters: A.
        length: n.
        centre_length: n if queries are turned back to the middle of the window, or None.
        planes: used, increasing.
        weights: w_k of each, their sum 1.
        multipliers: m_k of each: steps of 2 pi/A between neighbouring letters.
        margin: the worst case over the class of inputs of `engine.retrieval_margin`, in units of beta; an enclosure.
        upper_bound: what no code exceeds: see `bound`, or 1 or the best circle's margin if that is less and the number
            of planes decides (`code_bound.few_planes_bound`).
        bound: the bound over all codes, with the distances that carry it.
        single_plane: the best single plane with the paper's code.
        single_margin: its margin.
        rounds: linear programs solved for the last weights and for the bound.
        status: `converged` (these weights are best for these planes and multipliers, and the bound for its kind), or
            what is missing.
        max_planes: how many planes were allowed, or None for all.
    """

    spectrum: RopeSpectrum
    letters: int
    length: int
    centre_length: int | None
    planes: tuple[int, ...]
    weights: tuple[float, ...]
    multipliers: tuple[int, ...]
    margin: Enclosure
    upper_bound: Enclosure
    bound: CodeBound
    single_plane: int
    single_margin: Enclosure
    rounds: int
    status: str
    max_planes: int | None = None

    @property
    def gap(self) -> float:
        """(upper bound - margin)/upper bound, proved; 0 where the bound says that no code wins and none was found."""
        high, low = self.upper_bound.high, self.margin.low
        return float((high - low) / high) if high > 0 else 0.0

    def profile(self, *, beta: float = 1.0) -> LetterProfile:
        """What the head scores by shift and distance.

        Args:
            beta: logit scale.
        """
        centre = Fraction(0) if self.centre_length is None else Fraction(self.centre_length - 1, 2)
        return _profile(self.spectrum, self.letters, centre, self.planes, self.weights, self.multipliers, beta)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; rows of `bound` are distances of the answer and of the rival, and a share."""
        rows = zip(self.bound.pairs, self.bound.distribution, strict=True)
        return {
            "schema": SCHEMA,
            "unit": "beta",
            "letters": self.letters,
            "length": self.length,
            "centre_length": self.centre_length,
            "max_planes": self.max_planes,
            "planes": list(self.planes),
            "weights": list(self.weights),
            "multipliers": list(self.multipliers),
            **self.margin.to_dict("margin"),
            **self.upper_bound.to_dict("upper_bound"),
            "gap": self.gap,
            "status": self.status,
            "rounds": self.rounds,
            "single_plane": self.single_plane,
            **self.single_margin.to_dict("single_margin"),
            "bound": {
                **self.bound.value.to_dict("value"),
                "rows": [[answer, rival, share] for (answer, rival), share in rows],
            },
            "spectrum": self.spectrum.to_dict(),
        }


def optimal_code(
    spectrum: RopeSpectrum, *, letters: int, length: int, centred: bool = True, max_planes: int | None = None
) -> OptimalCode:
    """The best retrieval code found on a rotation for a length, never worse than the best single plane.

    Args:
        spectrum: any rotation; only its turning planes are used, not the coordinates that pass through.
        letters: A, 2 to 4096.
        length: n >= 2; letters times length up to `MAX_SCORES`.
        centred: turn letter-letter queries back to the middle of the window, (n - 1)/2.
        max_planes: use at most so many planes.

    Returns:
        The code; where its margin is not positive, the status says so.

    Raises:
        InvalidInputError: fewer than two letters, a length below 2, no plane allowed.
        UnsupportedError: too many letters, or letters times distances.

    Accuracy: the margin is proved to the engine's error, the upper bound to 1e-28; `gap` is what lies between.

    Source: ours; proofs in `ropegeo.optimal.code_bound`.

    Example:
        >>> best = optimal_code(RopeSpectrum.from_base(10000, head_dim=32), letters=4, length=16)
        >>> best.planes, best.multipliers
        ((13, 14, 15), (3, 2, 1))
        >>> round(float(best.margin), 6), round(float(best.single_margin), 6), round(float(best.upper_bound), 6)
        (1.33333, 0.997333, 1.333332)
    """
    for name, value in (("letters", letters), ("length", length)):
        if index(value) < 2:
            raise InvalidInputError(f"optimal_code: {name} {value} must be at least 2")
    if max_planes is not None and index(max_planes) < 1:
        raise InvalidInputError(f"optimal_code: max_planes {max_planes} must be at least 1")
    if letters > MAX_LETTERS:
        raise UnsupportedError(f"optimal_code: codes are sought for up to {MAX_LETTERS} letters; got {short(letters)}")
    if letters * length > MAX_SCORES:
        raise UnsupportedError(
            f"optimal_code: codes are sought up to {MAX_SCORES} letters times distances, here length "
            f"{MAX_SCORES // letters}; got {short(length)}"
        )
    centre = Fraction(length - 1, 2) if centred else Fraction(0)
    plane, single = best_letter_plane(spectrum, letters=letters, length=length, centre=centre)
    best, margin = Code(planes=(plane,), multipliers=(1,), weights=(1.0,), is_converged=True), single
    slow = _slow_planes(spectrum, length, centre)[:max_planes]
    missing = []
    if slow:
        task = Task(spectrum=spectrum, letters=letters, length=length, centre=centre, planes=slow)
        found, stopped = best_code(task)
        if found is not None:
            tidy = _tidied(found)
            reached = worst_margin(
                _profile(spectrum, letters, centre, tidy.planes, tidy.weights, tidy.multipliers), length
            )
            if reached.low > margin.low:
                best, margin = tidy, reached
        if stopped:
            missing.append(f"the search ended early: {stopped}")
        elif not best.is_converged:
            missing.append(f"the weights were still growing after {best.rounds} rounds")
    bound = code_bound(spectrum, letters=letters, length=length, centred=centred)
    if not bound.is_converged:
        missing.append(f"the bound was still falling after {bound.rounds} rounds")
    if margin.high <= 0:
        missing.insert(0, TOO_FAST)
    allowed = spectrum.planes if max_planes is None else min(max_planes, spectrum.planes)
    few = few_planes_bound(spectrum, letters=letters, length=length, centred=centred, planes=allowed)
    return OptimalCode(
        spectrum=spectrum,
        letters=letters,
        length=length,
        centre_length=length if centred else None,
        planes=best.planes,
        weights=best.weights,
        multipliers=best.multipliers,
        margin=margin,
        upper_bound=bound.value if few is None or few.high >= bound.value.high else few,
        bound=bound,
        single_plane=plane,
        single_margin=single,
        rounds=best.rounds + bound.rounds,
        status="; ".join(missing) or CONVERGED,
        max_planes=max_planes,
    )


def _slow_planes(spectrum: RopeSpectrum, length: int, centre: Fraction) -> tuple[int, ...]:
    """Planes that turn by less than half a turn from the centre of a window to its end, slowest first.

    Distances from the centre are whole or half numbers, and so angles are as good as modulo one turn or two.
    """
    period = 2 * np.pi * centre.denominator
    folded = np.abs((spectrum.inv_freq + period / 2) % period - period / 2)
    reach = float(max(length - 1 - centre, centre))
    slow = [plane for plane in range(spectrum.planes) if folded[plane] * reach < np.pi]
    return tuple(sorted(slow, key=lambda plane: (folded[plane], plane)))


def _tidied(code: Code) -> Code:
    """The code without negligible weights, its planes increasing."""
    used = sorted(
        (plane, multiplier, weight)
        for plane, multiplier, weight in zip(code.planes, code.multipliers, code.weights, strict=True)
        if weight > _NEGLIGIBLE
    )
    total = sum(weight for _, _, weight in used)
    return Code(
        planes=tuple(plane for plane, _, _ in used),
        multipliers=tuple(multiplier for _, multiplier, _ in used),
        weights=tuple(weight / total for _, _, weight in used),
        margin=code.margin,
        rounds=code.rounds,
        is_converged=code.is_converged,
    )


def _profile(
    spectrum: RopeSpectrum,
    letters: int,
    centre: Fraction,
    planes: tuple[int, ...],
    weights: tuple[float, ...],
    multipliers: tuple[int, ...],
    beta: float = 1.0,
) -> LetterProfile:
    shares, steps = np.zeros(spectrum.planes), [1] * spectrum.planes
    for plane, weight, multiplier in zip(planes, weights, multipliers, strict=True):
        shares[plane], steps[plane] = beta * weight, multiplier
    return LetterProfile(spectrum=spectrum, weights=shares, letters=letters, centre=centre, multipliers=tuple(steps))

"""The best single plane of a spectrum for a given head and length."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from jaxtyping import Float

from ropegeo._arrays import FloatArray
from ropegeo.engine.index_margin import index_curve
from ropegeo.engine.retrieval_margin import has_closed_form, letter_curve
from ropegeo.errors import UnsupportedError
from ropegeo.exact import Enclosure
from ropegeo.heads import LetterProfile, LogitProfile
from ropegeo.spectrum import RopeSpectrum


def one_plane(spectrum: RopeSpectrum, plane: int) -> Float[FloatArray, " planes"]:
    """Weights that use one plane only."""
    weights = np.zeros(spectrum.planes)
    weights[spectrum.check_plane(plane)] = 1.0
    return weights


def best_index_plane(spectrum: RopeSpectrum, *, offset: int, length: int) -> tuple[int, Enclosure]:
    """The plane whose one-plane index head has the largest exact margin, and that margin.

    Args:
        spectrum: candidate planes.
        offset: distance aimed at.
        length: n, above the offset.

    Raises:
        InvalidInputError: as `index_curve`.

    Accuracy: margins are enclosed, so the choice is proved up to planes with equal margins (the first wins).
    """
    margins = [
        index_curve(
            LogitProfile(
                spectrum=spectrum, coefficients=one_plane(spectrum, plane).astype(np.complex128), origin=offset
            ),
            [length],
        )
        .points[0]
        .margin
        for plane in range(spectrum.planes)
    ]
    plane = max(range(spectrum.planes), key=lambda index: margins[index].low)
    return plane, margins[plane]


def best_letter_plane(
    spectrum: RopeSpectrum, *, letters: int, length: int, centre: Fraction = Fraction(0), self_only: bool = False
) -> tuple[int, Enclosure]:
    """The plane whose letter-matching head has the largest worst-case margin, and that margin.

    Planes in the range of the closed form are tried first. A plane with an angle of at most pi that turns by 2
    pi/letters or more within the length has a worst case of at most 0 (see `first_failing_length`), so for the planes
    of a model the others matter only where no plane in range wins.

    Args:
        spectrum: candidate planes.
        letters: size of the alphabet.
        length: n >= 2.
        centre: distance the head is centred on.
        self_only: queries look for themselves (symbolic Reflexive).

    Raises:
        UnsupportedError: no plane is slow enough, and the length is too large to evaluate the others.
    """
    profiles = [
        LetterProfile(
            spectrum=spectrum,
            weights=one_plane(spectrum, plane),
            letters=letters,
            centre=centre,
            self_only=self_only,
        )
        for plane in range(spectrum.planes)
    ]

    def worst(plane: int) -> Enclosure:
        return letter_curve(profiles[plane], [length]).points[0].worst

    closed = {plane: worst(plane) for plane in range(spectrum.planes) if has_closed_form(profiles[plane], length)}
    if not any(margin.sign == 1 for margin in closed.values()) or self_only:
        for plane in range(spectrum.planes):
            if plane not in closed:
                try:
                    closed[plane] = worst(plane)
                except UnsupportedError:
                    continue
    if not closed:
        raise UnsupportedError(
            f"no plane of {spectrum.source or 'this spectrum'} is slow enough for {letters} letters at this length, "
            "and the margins of the others are too long to evaluate; use a shorter length or a larger base"
        )
    plane = max(closed, key=lambda index: closed[index].low)
    return plane, closed[plane]

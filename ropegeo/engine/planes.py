"""The best single plane of a spectrum for a given head and length."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from jaxtyping import Float

from ropegeo._arrays import FloatArray
from ropegeo.engine.index_margin import index_curve
from ropegeo.engine.margin import check_lengths
from ropegeo.engine.retrieval_margin import worst_margin
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

    Args:
        spectrum: candidate planes.
        letters: size of the alphabet.
        length: n >= 2.
        centre: distance the head is centred on.
        self_only: queries look for themselves (symbolic Reflexive).

    Raises:
        InvalidInputError: as `LetterProfile` and `letter_curve`.
        UnsupportedError: more letters than the exact route takes, at a length too large for the definition.

    Accuracy: margins are enclosed, so the choice is proved up to planes with equal margins (the first wins).
    """
    (n,) = check_lengths("best_letter_plane", [length])
    margins = [
        worst_margin(
            LetterProfile(
                spectrum=spectrum,
                weights=one_plane(spectrum, plane),
                letters=letters,
                centre=centre,
                self_only=self_only,
            ),
            n,
        )
        for plane in range(spectrum.planes)
    ]
    plane = max(range(spectrum.planes), key=lambda index: margins[index].low)
    return plane, margins[plane]

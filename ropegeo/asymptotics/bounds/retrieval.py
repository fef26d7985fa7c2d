"""Margins of a retrieval head on one plane in closed form, and the lengths at which they end, section 6.

A letters stand at turns of omega = 2 pi/A; a token whose letter is s after the one sought scores cos(s omega + (d - c)
theta) at distance d, with c = 0 for the paper's head and c = (n-1)/2 for one centred on the length n. The class of
inputs, at every length n >= 2, is that of `ropegeo.engine.retrieval_margin`: globally proper ones whose tokens with the
answer's left letter are the answer, over a vocabulary that has an integer. Margins are in units of beta.
Arguments: see `scope`.

theta is taken as it is. Of an uncentred head it may be folded first: distances are integers, so 2 pi - theta gives the
margins of theta.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ropegeo._arrays import FloatArray
from ropegeo.asymptotics.bounds.scope import doubles, sizeable, whole, within


def nearest_rival_margin(length: ArrayLike, angle: ArrayLike, letters: ArrayLike) -> Float[FloatArray, "*shape"]:
    """1 - cos(omega - (n-1) theta): the least margin of an uncentred query that is its own answer (distance 0).

    It is the margin of every such input, letter-integer queries among them, in which the letter before the one sought
    (shift -1) stands at the far end, d = n-1; none of the class has less. It is also worst(n) of the head centred
    on n, letter-integer queries included.

    Args:
        length: n, a whole number from 2 to 1e150.
        angle: theta in radians per position, 0 or from 1e-150, (n-1) theta < omega.
        letters: A, a whole number from 2 to 1e150.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 1e-14 omega/(omega - (n-1) theta): the difference is taken in doubles.

    Source: docs/MATHEMATICS.md, section 6; proof in derivations, `retrieval_bound` and `retrieval_centred`. Theorem
    3.2 of Urrutia et al., arXiv 2605.31558, has n in place of n - 1.

    Example:
        >>> float(nearest_rival_margin(np.array(17.0), np.array(0.0027), np.array(8.0)).round(6))
        0.263015
    """
    length, angle, letters = _short("nearest_rival_margin", length, angle, letters)
    margin: FloatArray = np.asarray(2 * np.sin(np.pi / letters - (length - 1) * angle / 2) ** 2)
    return margin


def retrieval_worst_margin(length: ArrayLike, angle: ArrayLike, letters: ArrayLike) -> Float[FloatArray, "*shape"]:
    """worst(n), uncentred: min of cos((n-2)theta)-cos(omega-(n-1)theta) and cos((n-1)theta)-cos(omega-(n-2)theta).

    Computed as 2 sin((omega -+ theta)/2) sin((omega - (2n-3) theta)/2), the smaller of the two.

    Args:
        length: n, a whole number from 2 to 1e150.
        angle: theta in radians per position, 0 or from 1e-150, (n-1) theta < omega.
        letters: A, a whole number from 2 to 1e150.

    Raises:
        InvalidInputError: anything else. For longer turns the formula is wrong, in its sign too.

    Accuracy: relative error below 1e-14 omega/min(omega - theta, |omega - (2n-3) theta|).

    Source: docs/MATHEMATICS.md, section 6; proof in derivations, `retrieval_worst`.

    Example:
        >>> float(retrieval_worst_margin(np.array(17.0), np.array(0.0027), np.array(8.0)).round(6))
        0.262195
    """
    length, angle, letters = _short("retrieval_worst_margin", length, angle, letters)
    common = 2 * np.sin(np.pi / letters - (2 * length - 3) * angle / 2)
    near, far = np.sin(np.pi / letters - angle / 2), np.sin(np.pi / letters + angle / 2)
    margin: FloatArray = np.asarray(np.minimum(near * common, far * common))
    return margin


def retrieval_failing_length(angle: ArrayLike, letters: ArrayLike) -> Float[FloatArray, "*shape"]:
    """omega/(2 theta) + 3/2: a length n decodes every input of the class (worst(n) > 0) iff it is below, uncentred.

    The first length that fails is the ceiling of this real number; where it is an integer, worst is exactly 0 there.
    A double cannot tell that case apart: `ropegeo.engine.trust.first_failing_length` decides it.

    Args:
        angle: theta in radians per position, 1e-150 <= theta <= pi; an angle beyond is folded first.
        letters: A, a whole number from 2 to 1e150.

    Returns:
        The real number.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 1e-15.

    Source: docs/MATHEMATICS.md, section 6; proof in derivations, `retrieval_failing_length`.

    Example:
        >>> float(retrieval_failing_length(np.array(0.0027), np.array(8.0)).round(4))
        146.9441
    """
    angle, letters = _folded("retrieval_failing_length", angle, letters)
    length: FloatArray = np.asarray(np.pi / (letters * angle) + 3 / 2)
    return length


def centred_lookup_margin(length: ArrayLike, angle: ArrayLike, letters: ArrayLike) -> Float[FloatArray, "*shape"]:
    """cos((n-1)theta/2) - cos(omega-(n-1)theta/2): the least margin of a letter-letter query of a head centred on n.

    Computed as 2 sin(omega/2) sin((omega - (n-1) theta)/2). Letter-integer queries stay uncentred and may have less:
    with them worst(n) is `nearest_rival_margin`.

    Args:
        length: n, which the head is centred on, a whole number from 2 to 1e150.
        angle: theta in radians per position, 0 or from 1e-150, (n-1) theta < omega.
        letters: A, a whole number from 2 to 1e150.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 1e-14 omega/(omega - (n-1) theta): the difference is taken in doubles.

    Source: docs/MATHEMATICS.md, section 6; proof in derivations, `retrieval_centred`.
    """
    length, angle, letters = _short("centred_lookup_margin", length, angle, letters)
    far_end = np.sin(np.pi / letters - (length - 1) * angle / 2)
    margin: FloatArray = np.asarray(2 * np.sin(np.pi / letters) * far_end)
    return margin


def centred_failing_length(angle: ArrayLike, letters: ArrayLike) -> Float[FloatArray, "*shape"]:
    """omega/theta + 1: a head centred on n decodes every input of the class of length n iff n is below.

    Where this real number is an integer, worst is exactly 0 there.

    Args:
        angle: theta in radians per position, 1e-150 <= theta <= pi.
        letters: A, a whole number from 2 to 1e150.

    Returns:
        The real number.

    Raises:
        InvalidInputError: anything else.

    Accuracy: relative error below 1e-15.

    Source: docs/MATHEMATICS.md, section 6; proof in derivations, `retrieval_centred`.

    Example:
        >>> float(centred_failing_length(np.array(0.0027), np.array(8.0)).round(4))
        291.8882
    """
    angle, letters = _folded("centred_failing_length", angle, letters)
    length: FloatArray = np.asarray(2 * np.pi / (letters * angle) + 1)
    return length


def _short(
    call: str, length: ArrayLike, angle: ArrayLike, letters: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lengths, angles and letters for which every distance turns by less than the code of a letter."""
    n, theta, count = doubles(call, length=length, angle=angle, letters=letters)
    whole(call, length=n, letters=count)
    sizeable(call, angle=theta)
    with np.errstate(over="ignore"):  # infinity is outside
        turned = (n - 1) * theta * count
    inside = (n >= 2) & (count >= 2) & (theta >= 0) & (turned < 2 * np.pi)
    needs = "length >= 2, letters >= 2, 0 <= angle, (length - 1) * angle < 2 pi/letters"
    within(call, inside, needs, length=n, angle=theta, letters=count)
    return n, theta, count


def _folded(call: str, angle: ArrayLike, letters: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Angles above 0 and up to pi, and letters."""
    theta, count = doubles(call, angle=angle, letters=letters)
    whole(call, letters=count)
    sizeable(call, angle=theta)
    inside = (theta > 0) & (theta <= np.pi) & (count >= 2)
    within(call, inside, "0 < angle <= pi, letters >= 2", angle=theta, letters=count)
    return theta, count

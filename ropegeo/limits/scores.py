r"""B_m, by how much likeness counts at a distance, and the slowest plane that still comes round.

B_m = sum_k cos(m theta_k): let the coordinates of a query and of a random key be independent with one mean and
variance, and another key be like the query, up to independent noise of mean 0. At distance m its expected logit
exceeds that of the random key by B_m, up to a positive factor. A negative B_m says that likeness counts against
itself there (arXiv 2405.14591, eq. 9 to 11).

The sign is decided, not measured: phases are exact (`ropegeo.spectrum.phases`), float64 decides wherever the sum
exceeds the bound on its error, and balls of growing precision decide the rest. A sum that is exactly 0 is no root
that balls could find; cosines of rational turns that vanish are dropped beforehand, which decides it for one plane.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from jaxtyping import Float, Int

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.engine.threads import one_blas_thread
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import ClosedForm, balls, short
from ropegeo.spectrum import RopeSpectrum

MAX_SEARCHED = 10**9
MAX_BITS = 1 << 13
_PHASE = 2e-15
_EPS = 2.0**-53
_COLUMNS = 256
_ROWS = (16, 256)
"""Rows of the first block and of later ones: most sums turn negative soon."""
_CHUNK = 1 << 14


def base_score(spectrum: RopeSpectrum, distances: Int[IntArray, " distances"]) -> Float[FloatArray, " distances"]:
    """B_m = sum_k cos(m theta_k) at some distances m.

    Args:
        spectrum: any; attention factors do not count.
        distances: m >= 0, in positions, below 2^62.

    Raises:
        InvalidInputError: a distance that is negative or too large.

    Accuracy: absolute error below `score_accuracy(spectrum)`, some 1e-12 for 64 planes.

    Source: arXiv 2405.14591, eq. 9 to 11.

    Example:
        >>> base_score(RopeSpectrum.from_base(10_000, head_dim=4), np.array([0, 3])).round(6).tolist()
        [2.0, 0.009558]
    """
    if distances.size and distances.min() < 0:
        raise InvalidInputError(f"base_score: distance {distances.min()} must not be negative")
    parts = [
        np.cos(spectrum.phases(distances[start : start + _CHUNK])).sum(axis=1)
        for start in range(0, len(distances), _CHUNK)
    ]
    return np.concatenate(parts) if parts else np.empty(0)


def score_accuracy(spectrum: RopeSpectrum) -> float:
    """What a computed B_m of P planes may be off by: P (4e-15 + (32 + 3 P) 2^-53).

    Each phase is right to 2e-15, its cosine to 4 units of the last place more, and P terms are added; a block of
    `first_negative` adds 2P products of cosines and sines of two phases, right to 24 units of 2^-53 each pair.
    """
    planes = spectrum.planes
    return planes * (2 * _PHASE + (32 + 3 * planes) * _EPS)


def first_negative(
    spectrum: RopeSpectrum, *, max_length: int, progress: Callable[[int], None] | None = None
) -> int | None:
    """The smallest distance m < `max_length` with B_m < 0; None if there is none.

    Args:
        spectrum: any.
        max_length: how many distances 0, 1, .. are looked at, up to 10^9.
        progress: called now and then with the number of distances done.

    Raises:
        InvalidInputError: `max_length` below 1.
        UnsupportedError: `max_length` above 10^9, or a sum that is 0 to 2000 digits.

    Accuracy: decided, see the module's docstring.

    Example:
        >>> first_negative(RopeSpectrum.from_base(10_000, head_dim=128), max_length=4096)
        1707
    """
    if max_length < 1:
        raise InvalidInputError(f"first_negative: max_length {short(max_length)} must be at least 1")
    if max_length > MAX_SEARCHED:
        raise UnsupportedError(
            f"first_negative: max_length {short(max_length)} would take hours; use at most {MAX_SEARCHED}"
        )
    error = score_accuracy(spectrum)
    offsets = _unit(spectrum.phases(np.arange(_COLUMNS)).T, sign=1)
    first, rows = 0, _ROWS[0]
    with one_blas_thread():
        while first < max_length:
            starts = first + _COLUMNS * np.arange(rows)
            scores = (_unit(spectrum.phases(starts).T, sign=-1).T @ offsets).ravel()[: max_length - first]
            for at in np.flatnonzero(scores <= error).tolist():
                if scores[at] < -error or score_sign(spectrum, first + at) < 0:
                    return first + int(at)
            first, rows = first + rows * _COLUMNS, _ROWS[1]
            if progress is not None:
                progress(min(first, max_length))
    return None


def _unit(phases: Float[FloatArray, "planes points"], *, sign: int) -> Float[FloatArray, "coordinates points"]:
    """Cosines over sines, the latter with a sign: a product of two of these adds angles."""
    return np.concatenate([np.cos(phases), sign * np.sin(phases)])


def score_sign(spectrum: RopeSpectrum, distance: int) -> int:
    """The sign of B_m: -1, 0 or 1.

    Args:
        spectrum: any.
        distance: m >= 0.

    Raises:
        UnsupportedError: a sum of several planes that is 0 to 2000 digits.

    Accuracy: exact.
    """
    angles = [angle for angle in spectrum.angles if not _vanishes(angle, distance)]
    if not angles:
        return 0
    bits = 128
    while bits <= MAX_BITS:
        needed = bits + distance.bit_length()
        turned = [angle.ball(needed) for angle in angles]
        with balls.precision(needed):
            total = sum((balls.cosine(distance * angle) for angle in turned), balls.ball(0))
        if total > 0:
            return 1
        if total < 0:
            return -1
        bits *= 2
    raise UnsupportedError(
        f"first_negative: B_m at m = {distance} is 0 to {int(MAX_BITS * 0.3)} digits, which does not decide its sign"
    )


def _vanishes(angle: ClosedForm, distance: int) -> bool:
    """Whether cos(m theta) is exactly 0: m theta an odd number of quarter turns."""
    turn = angle.rational_turn()
    return turn is not None and distance * turn % 1 in (Fraction(1, 4), Fraction(3, 4))


def critical_plane(spectrum: RopeSpectrum, length: int) -> int | None:
    """The slowest plane that completes a whole turn within a length: the least theta_k with n theta_k >= 2 pi.

    Planes slower than it meet, within n positions, no angle twice; they are the ones that a model trained on
    this length has not seen all round (arXiv 2310.05209 calls their number the critical dimension).

    Args:
        spectrum: any.
        length: n >= 1, any size.

    Returns:
        The plane, counted from 0; of several with one angle the last. None if none comes round.

    Raises:
        InvalidInputError: a length below 1.

    Accuracy: exact.

    Example:
        >>> critical_plane(RopeSpectrum.from_base(10_000, head_dim=128), 4096)
        45
    """
    if length < 1:
        raise InvalidInputError(f"critical_plane: length {short(length)} must be at least 1")
    full = 2 * ClosedForm.pi() / length
    found: int | None = None
    for plane, angle in enumerate(spectrum.angles):
        if angle >= full and (found is None or angle <= spectrum.angles[found]):
            found = plane
    return found


def score_ranges(
    spectrum: RopeSpectrum, *, max_length: int, bins: int
) -> tuple[Int[IntArray, " bins"], Float[FloatArray, " bins"], Float[FloatArray, " bins"]]:
    """B_m over m < `max_length` in at most `bins` runs of neighbours: first m, smallest and largest B_m of each.

    Args:
        spectrum: any.
        max_length: how many distances, at least 1.
        bins: at least 1.

    Raises:
        InvalidInputError: either below 1.

    Accuracy: as `base_score`; every distance is looked at.
    """
    if min(max_length, bins) < 1:
        raise InvalidInputError(f"score_ranges: max_length {max_length} and bins {bins} must be at least 1")
    width = -(-max_length // bins)
    starts = np.arange(0, max_length, width)
    scores = base_score(spectrum, np.arange(max_length))
    return starts, np.minimum.reduceat(scores, starts), np.maximum.reduceat(scores, starts)

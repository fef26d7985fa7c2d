"""Logit profiles: what a head scores at each distance. After this point no code knows where a head came from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from operator import index

import numpy as np
from jaxtyping import Float, Inexact, Int

from ropegeo._arrays import ComplexArray, FloatArray, IntArray, frozen
from ropegeo.errors import InvalidInputError
from ropegeo.spectrum import RopeSpectrum
from ropegeo.spectrum.phases import MAX_DISPLACEMENT

LOGIT_ERROR = 1e-14
"""Bound on the absolute error of a computed logit or gap, per unit of the profile's weight. With u = 2**-53:

* a phase is off by 2 pi * TURN_ERROR = 6.3u and by 2 pi u when the turn, at most 1/2, is scaled: together 12.6u;
* sine and cosine of the C library are within one unit in the last place, 2u; each product adds u;
* numpy adds a row of at most 4096 planes pairwise, in at most 24 levels, each u times the sum of moduli.

A logit has moduli of sum <= weight: 12.6u + 4u + 24u < 41u = 4.6e-15. A gap has twice that: 2 sin(x/2)**2 moves by at
most its slope |sin x| <= 1 times 12.6u, by 8u for rounding, and by 48u for the sum: below 70u = 7.8e-15."""


LARGEST_WEIGHT, SMALLEST_WEIGHT = 1e300, 1e-280
"""Sums and differences of logits, and errors of 1e-14 of them, must stay normal doubles."""


def displaced(distances: Int[IntArray, "*shape"], origin: int) -> Int[IntArray, "*shape"]:
    """Distances less an origin below 2**62, whatever integers they come as: narrow and unsigned ones would wrap.

    Raises:
        InvalidInputError: no integers, or beyond 2**62.
    """
    given = np.asarray(distances)
    if not np.issubdtype(given.dtype, np.integer):
        raise InvalidInputError(f"distances are integers; got {given.dtype}")
    if given.size and not -MAX_DISPLACEMENT < int(given.min()) <= int(given.max()) < MAX_DISPLACEMENT:
        raise InvalidInputError("distances must lie strictly between -2**62 and 2**62")
    return np.asarray(given.astype(np.int64) - origin)


def _check_weight(call: str, sizes: FloatArray) -> None:
    """Raise unless the weight, the unit of margins and errors, is a number that sums and products can carry."""
    with np.errstate(over="ignore"):
        weight = float(sizes.sum())
    if weight and not SMALLEST_WEIGHT <= weight <= LARGEST_WEIGHT:
        raise InvalidInputError(
            f"{call}: the sum of |coefficients|, {weight:g}, must be 0 or lie between {SMALLEST_WEIGHT:g} and "
            f"{LARGEST_WEIGHT:g}; scale them"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class LogitProfile:
    r"""logit(d) = constant + Re sum_k c_k exp(i theta_k (d - origin)) for one query content and one key content.

    Attributes:
        spectrum: angles theta_k.
        coefficients: c_k, one per plane, in logit units.
        constant: part of the logit that does not turn (pass-through coordinates).
        origin: distance from which phases are counted. A built index head has its offset here and real,
            non-negative coefficients, so that its peak is known exactly rather than to rounding.
        max_offset: largest offset among the queries of the head, for `best` and `worst`; None for any offset.

    Raises:
        InvalidInputError: a wrong shape, NaN or infinite values.
    """

    spectrum: RopeSpectrum
    coefficients: Inexact[ComplexArray, " planes"]  # reals are taken and stored as complex numbers
    constant: float = 0.0
    origin: int = 0
    max_offset: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficients", frozen(self.coefficients, np.complex128))
        if self.coefficients.shape != (self.spectrum.planes,):
            raise InvalidInputError(
                f"LogitProfile: needs {self.spectrum.planes} coefficients, one per plane; "
                f"got shape {self.coefficients.shape}"
            )
        if not (np.isfinite(self.coefficients).all() and np.isfinite(self.constant)):
            raise InvalidInputError("LogitProfile: coefficients and constant must be finite")
        _check_weight("LogitProfile", np.abs(self.coefficients))
        for name in ("origin", "max_offset"):
            value = getattr(self, name)
            try:
                object.__setattr__(self, name, None if value is None and name == "max_offset" else index(value))
            except TypeError as error:
                raise InvalidInputError(f"LogitProfile: {name} {value!r} must be an integer") from error

    @property
    def weight(self) -> float:
        """Sum of |c_k|: the scale beta of a built head, and the unit of error bounds."""
        return float(np.abs(self.coefficients).sum())

    @property
    def abs_error(self) -> float:
        """Bound on the absolute error of `logit`, in logit units."""
        return LOGIT_ERROR * self.weight + 2.0**-52 * abs(self.constant)

    @property
    def active_planes(self) -> tuple[int, ...]:
        """Planes with a non-zero coefficient."""
        return tuple(int(plane) for plane in np.flatnonzero(self.coefficients))

    @property
    def is_peaked(self) -> bool:
        """Whether all coefficients are real and non-negative, so that the logit is even about its peak at `origin`."""
        return bool((self.coefficients.imag == 0).all() and (self.coefficients.real >= 0).all())

    def negative(self) -> LogitProfile:
        """The profile whose logit is the negative at every distance: its largest is this one's smallest."""
        return replace(self, coefficients=-self.coefficients, constant=-self.constant)

    def logit(self, distances: Int[IntArray, "*shape"]) -> Float[FloatArray, "*shape"]:
        """The logit at each distance d = i - j, in logit units.

        Args:
            distances: integers with |d - origin| < 2**62.

        Accuracy: absolute error below `abs_error`.

        Source: docs/MATHEMATICS.md, section 1; Urrutia et al., arXiv 2605.31558, section 2.
        """
        return np.asarray(self.contributions(distances).sum(axis=-1) + self.constant)

    def contributions(self, distances: Int[IntArray, "*shape"]) -> Float[FloatArray, "*shape planes"]:
        """What each plane adds to the logit at each distance: Re c_k exp(i theta_k (d - origin)), in logit units.

        Args:
            distances: integers with |d - origin| < 2**62.

        Accuracy: each within `LOGIT_ERROR` times |c_k|.
        """
        if abs(self.origin) >= MAX_DISPLACEMENT:
            raise InvalidInputError("LogitProfile: the origin is beyond 2**62; only closed routes reach there")
        phases = self.spectrum.phases(displaced(distances, self.origin))
        c = self.coefficients
        return np.asarray(c.real * np.cos(phases) - c.imag * np.sin(phases))

    def gap(self, displacements: Int[IntArray, "*shape"]) -> Float[FloatArray, "*shape"]:
        """logit(origin) - logit(origin + t) of a peaked profile, as sum_k 2 c_k sin(t theta_k / 2)**2.

        The sine form keeps small gaps that a difference of cosines would lose.

        Raises:
            InvalidInputError: the profile is not peaked.

        Accuracy: absolute error below `LOGIT_ERROR * weight`.
        """
        if not self.is_peaked:
            raise InvalidInputError("LogitProfile.gap: needs real, non-negative coefficients; use logit() differences")
        sines = np.sin(self.spectrum.phases(displacements) / 2)
        return np.asarray((2 * self.coefficients.real * sines**2).sum(axis=-1))


@dataclass(frozen=True, eq=False, kw_only=True)
class LetterProfile:
    r"""logit(shift, d) = sum_k w_k cos(2 pi m_k shift / letters + (d - centre) theta_k).

    The profile of a head that matches letters coded by equal turns of circles, neighbours m_k steps apart in plane k:
    `shift` is the number of the key's letter minus the number of the letter that the query looks for, modulo
    `letters`. Shift 0 is a match.

    Attributes:
        spectrum: angles theta_k.
        weights: w_k >= 0, one per plane, in logit units.
        letters: size of the alphabet, at least 2.
        centre: distance at which a match scores highest; (n - 1)/2 for a head centred on length n, else 0.
        self_only: every query looks for its own letter (symbolic Reflexive), so that the answer is at distance 0.
        multipliers: m_k, 1 or more; all 1 if not given. Only their remainders modulo `letters` matter: a plane with
            remainder 0 scores every letter alike, one that shares a factor with `letters` some of them.

    Raises:
        InvalidInputError: wrong shape, negative or non-finite weights, fewer than two letters.
    """

    spectrum: RopeSpectrum
    weights: Float[FloatArray, " planes"]
    letters: int
    centre: Fraction = Fraction(0)
    self_only: bool = False
    multipliers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", frozen(self.weights, np.float64))
        if self.weights.shape != (self.spectrum.planes,):
            raise InvalidInputError(f"LetterProfile: needs {self.spectrum.planes} weights; got {self.weights.shape}")
        if not (np.isfinite(self.weights).all() and (self.weights >= 0).all()):
            raise InvalidInputError("LetterProfile: weights must be finite and not negative")
        _check_weight("LetterProfile", self.weights)
        if self.self_only and self.centre:
            raise InvalidInputError("LetterProfile: queries that look for themselves are not centred")
        if self.letters < 2:
            raise InvalidInputError(f"LetterProfile: needs at least 2 letters, got {self.letters}")
        object.__setattr__(self, "multipliers", self.multipliers or (1,) * self.spectrum.planes)
        if len(self.multipliers) != self.spectrum.planes or min(self.multipliers) < 1:
            raise InvalidInputError(
                f"LetterProfile: needs {self.spectrum.planes} multipliers, each at least 1; got {self.multipliers}"
            )

    @property
    def weight(self) -> float:
        """Sum of the weights: the scale beta."""
        return float(self.weights.sum())

    @property
    def abs_error(self) -> float:
        """Bound on the absolute error of `logit` and `logits`, in logit units.

        Two phases are added where a profile has one; and `logits` adds M products for M kinds of multipliers, of sum at
        most sqrt(2) weight, in any order: with u = 2**-53 below 72u + (1.42 M + 2) u, under 2 `LOGIT_ERROR` to M = 64.
        """
        return LOGIT_ERROR * (2 + max(0, len(self._kinds) - 64) / 60) * self.weight

    @property
    def active_planes(self) -> tuple[int, ...]:
        """Planes with a non-zero weight."""
        return tuple(int(plane) for plane in np.flatnonzero(self.weights))

    @property
    def code_turn(self) -> Fraction:
        """The smallest angle between the codes of different letters where all multipliers are 1, in turns."""
        return Fraction(1, self.letters)

    @cached_property
    def _kinds(self) -> tuple[tuple[int, IntArray], ...]:
        """The multipliers of active planes modulo `letters`, each with its planes."""
        planes: dict[int, list[int]] = {}
        for plane in self.active_planes:
            planes.setdefault(self.multipliers[plane] % self.letters, []).append(plane)
        return tuple((multiplier, np.array(which)) for multiplier, which in sorted(planes.items()))

    def _code_phases(self, shift: int) -> FloatArray:
        """2 pi m_k shift/letters of every plane, whole turns dropped."""
        steps = [multiplier * shift % self.letters for multiplier in self.multipliers]
        return np.asarray(2 * np.pi * np.array(steps) / self.letters)

    @cached_property
    def _centre_phases(self) -> FloatArray:
        return self.spectrum.phases_at(self.centre)

    def logit(self, shift: int, distances: Int[IntArray, "*shape"]) -> Float[FloatArray, "*shape"]:
        """The logit of a key whose letter is `shift` after the one looked for, at each distance, in logit units.

        Args:
            shift: difference of letter numbers; any integer.
            distances: integers with |d| < 2**62.

        Accuracy: absolute error below `abs_error`.

        Source: docs/MATHEMATICS.md, section 3; Urrutia et al., arXiv 2605.31558, appendix F.2.
        """
        turned = self.spectrum.phases(displaced(distances, 0)) - self._centre_phases + self._code_phases(shift)
        return np.asarray((self.weights * np.cos(turned)).sum(axis=-1))

    def logits(self, distances: Int[IntArray, "*shape"]) -> Float[FloatArray, "letters *shape"]:
        """The logits of all shifts 0..letters-1 at each distance, in logit units; row 0 is a match.

        The planes of one multiplier m are added first, P_m(d) = sum w_k exp(i (d - centre) theta_k): the logit of a
        shift is Re sum_m exp(2 pi i m shift/letters) P_m(d).

        Args:
            distances: integers with |d| < 2**62.

        Accuracy: absolute error below `abs_error`.

        Source: docs/MATHEMATICS.md, section 3.
        """
        given = displaced(distances, 0)
        turned = self.spectrum.phases(given.ravel()) - self._centre_phases
        sums = np.zeros((len(self._kinds), given.size), np.complex128)
        steps = np.zeros((self.letters, len(self._kinds)))
        for place, (multiplier, planes) in enumerate(self._kinds):
            sums[place] = (self.weights[planes] * np.exp(1j * turned[:, planes])).sum(axis=-1)
            steps[:, place] = multiplier * np.arange(self.letters) % self.letters
        codes = np.exp(2j * np.pi * steps / self.letters)
        return np.asarray(codes.real @ sums.real - codes.imag @ sums.imag).reshape(self.letters, *given.shape)

    def profile(self, shift: int) -> LogitProfile:
        """The ordinary profile of one shift: c_k = w_k exp(i (2 pi m_k shift/letters - centre theta_k))."""
        turns = np.exp(1j * (self._code_phases(shift) - self._centre_phases))
        return LogitProfile(spectrum=self.spectrum, coefficients=self.weights * turns)

"""`Recipe`: the few numbers a built head is made from. The matrices follow from it; a head file carries both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from operator import index
from typing import Any, Literal, TypeAlias

import numpy as np
from jaxtyping import Complex, Float

from ropegeo._arrays import ComplexArray, FloatArray, frozen
from ropegeo.errors import FileFormatError, InvalidInputError, RopegeoError
from ropegeo.exact import plain_integer, read_safe_integer, safe_integer, short
from ropegeo.spectrum import RopeSpectrum
from ropegeo.tasks import Bigram

Mode: TypeAlias = Literal["index", "token_index", "retrieval", "reflexive", "symbolic_reflexive"]
MODES: tuple[Mode, ...] = ("index", "token_index", "retrieval", "reflexive", "symbolic_reflexive")

LETTER_MODES: tuple[Mode, ...] = ("retrieval", "symbolic_reflexive")
"""Modes that match letters; the others count positions."""

MAX_TOKENS = 4096
BETA_RANGE = (1e-100, 1e100)
SCHEMA = "ropegeo.recipe/1"
_UNIT_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class Recipe:
    """What a hand-built head is made from.

    Attributes:
        mode: which construction: `index` (one fixed offset), `token_index` (the query token says the offset),
            `retrieval`, `reflexive` (positional) or `symbolic_reflexive`.
        spectrum: the rotation.
        planes: planes used, increasing.
        weights: share of each plane used, summing to 1.
        beta: logit scale: the logit of a perfect match.
        offset: distance aimed at by `index` and `reflexive` heads; 0 for the others.
        letters: letters of the vocabulary.
        integers: integers of the vocabulary.
        bigrams: `retrieval`: the tokens of the vocabulary; all pairs of a letter with a letter or integer if empty.
        centre_length: length that a `retrieval` head is centred on, or None for the paper's head.
        directions: unit complex number per plane used, the direction of v; the first axis if not given.
        phases: index heads: radians per plane used by which the query is turned on, beyond its offset; 0 if not given.
        multipliers: `retrieval`: how many steps of 2 pi/A apart plane k codes neighbouring letters; 1 if not given.

    Raises:
        InvalidInputError: any value outside these ranges.
    """

    mode: Mode
    spectrum: RopeSpectrum
    planes: tuple[int, ...] = (0,)
    weights: tuple[float, ...] = ()
    beta: float = 1.0
    offset: int = 0
    letters: tuple[str, ...] = ()
    integers: tuple[int, ...] = ()
    bigrams: tuple[Bigram, ...] = ()
    centre_length: int | None = None
    directions: Complex[ComplexArray, " used"] | None = None
    phases: tuple[float, ...] = ()
    multipliers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidInputError(f"mode {self.mode!r} is unknown; use one of {', '.join(MODES)}")
        try:
            object.__setattr__(self, "planes", tuple(index(plane) for plane in self.planes))
            object.__setattr__(self, "integers", tuple(index(number) for number in self.integers))
            object.__setattr__(self, "offset", index(self.offset))
            object.__setattr__(self, "multipliers", tuple(index(number) for number in self.multipliers))
        except TypeError as error:
            raise InvalidInputError(
                f"recipe: planes, offset, integers and multipliers must be integers ({error})"
            ) from error
        if not self.planes or list(self.planes) != sorted(set(self.planes)):
            raise InvalidInputError("planes must be a non-empty increasing list without repetition")
        for plane in self.planes:
            self.spectrum.check_plane(plane)
        object.__setattr__(self, "weights", normalised_weights(self.weights, len(self.planes)))
        if not BETA_RANGE[0] <= self.beta <= BETA_RANGE[1]:
            raise InvalidInputError(
                f"beta {self.beta} must be a positive number, {BETA_RANGE[0]:g} to {BETA_RANGE[1]:g}"
            )
        if self.offset < 0:
            raise InvalidInputError(
                f"offset {short(self.offset)} must not be negative: a causal head cannot look ahead"
            )
        self._check_vocabulary()
        if self.centre_length is not None and not 1 <= self.centre_length < 2**61:
            raise InvalidInputError(f"centre length {self.centre_length} must lie between 1 and 2**61")
        self._check_unused()
        directions = np.ones(len(self.planes)) if self.directions is None else self.directions
        object.__setattr__(self, "directions", frozen(directions, np.complex128))
        if self.unit_directions.shape != (len(self.planes),) or not np.allclose(
            np.abs(self.unit_directions), 1, rtol=0, atol=_UNIT_TOLERANCE
        ):
            raise InvalidInputError("directions must be one complex number of modulus 1 per plane used")
        self._check_codes()

    def _check_codes(self) -> None:
        for name, values in (("phases", self.phases), ("multipliers", self.multipliers)):
            if values and len(values) != len(self.planes):
                raise InvalidInputError(f"{len(values)} {name} for {len(self.planes)} planes; give one per plane used")
        if not all(-math.pi <= phase <= math.pi for phase in self.phases):
            raise InvalidInputError("phases must lie between -pi and pi radians")
        if not all(1 <= number < len(self.letters) for number in self.multipliers):
            raise InvalidInputError("multipliers must lie between 1 and the number of letters less 1")

    def _check_unused(self) -> None:
        """Refuse a field that the mode would ignore: the head would not be what it says."""
        if self.mode == "token_index" and not self.integers:
            raise InvalidInputError("a token_index head needs integers; use mode index for a fixed offset")
        uses = {
            "offset": ("index",),
            "integers": ("token_index", "retrieval"),
            "bigrams": ("retrieval",),
            "centre_length": ("retrieval",),
            "phases": ("index", "token_index", "reflexive"),
            "multipliers": ("retrieval",),
        }
        for name, modes in uses.items():
            if getattr(self, name) and self.mode not in modes:
                raise InvalidInputError(f"a {self.mode} head has no {name}: leave it out")

    def _check_vocabulary(self) -> None:
        if not self.letters:
            raise InvalidInputError("a head needs at least one letter in its vocabulary")
        if len(set(self.letters)) != len(self.letters) or len(set(self.integers)) != len(self.integers):
            raise InvalidInputError("the letters, and the integers, of a vocabulary must differ from each other")
        if any(number < 1 for number in self.integers):
            raise InvalidInputError("the integers of a vocabulary start at 1: integer i looks i positions back")
        if any(
            token.left not in self.letters or token.right not in (*self.letters, *self.integers)
            for token in self.bigrams
        ):
            raise InvalidInputError("the bigrams of a vocabulary must be made of its letters and integers")
        if len(set(self.bigrams)) != len(self.bigrams):
            raise InvalidInputError("the bigrams of a vocabulary must differ from each other")
        if self.mode in LETTER_MODES and len(self.letters) < 2:
            raise InvalidInputError(f"a {self.mode} head needs at least 2 letters to tell apart")

    @property
    def unit_directions(self) -> Complex[ComplexArray, " used"]:
        """The direction of v in each plane used."""
        return np.ones(len(self.planes), np.complex128) if self.directions is None else self.directions

    @property
    def scale(self) -> float:
        """Factor on the dot product, 1/sqrt(head_dim)."""
        return 1 / math.sqrt(self.spectrum.head_dim)

    @property
    def centre(self) -> Fraction:
        """Distance at which a match of a retrieval head scores highest."""
        return Fraction(0) if self.centre_length is None else Fraction(self.centre_length - 1, 2)

    def plane_weights(self) -> Float[FloatArray, " planes"]:
        """The share of every plane of the spectrum (zero where unused)."""
        shares = np.zeros(self.spectrum.planes)
        shares[list(self.planes)] = self.weights
        return shares

    def vector(self) -> Complex[ComplexArray, " planes"]:
        """v as one complex number per plane, with scale * attention_factor**2 * |v_k|**2 = beta * weight_k."""
        values = np.zeros(self.spectrum.planes, np.complex128)
        length = np.sqrt(self.beta * np.array(self.weights) / self.scale) / self.spectrum.attention_factor
        values[list(self.planes)] = length * self.unit_directions
        return values

    def query_turns(self) -> Complex[ComplexArray, " used"]:
        """exp(i phase) of each plane used, exactly 1 where there are no phases."""
        if not self.phases:
            return np.ones(len(self.planes), np.complex128)
        return np.asarray(np.exp(1j * np.array(self.phases)))

    def letter_multipliers(self) -> tuple[int, ...]:
        """The multiplier of every plane of the spectrum (1 where unused or not given)."""
        steps = dict(zip(self.planes, self.multipliers, strict=False))
        return tuple(steps.get(plane, 1) for plane in range(self.spectrum.planes))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; `phases` and `multipliers` where there are any."""
        codes = {"phases": list(self.phases), "multipliers": list(self.multipliers)}
        return {
            "schema": SCHEMA,
            "mode": self.mode,
            "offset": safe_integer(self.offset),
            "planes": list(self.planes),
            "weights": list(self.weights),
            "beta": self.beta,
            "letters": list(self.letters),
            "integers": [safe_integer(number) for number in self.integers],
            "bigrams": [[token.left, token.right] for token in self.bigrams],
            "centre_length": self.centre_length,
            "directions": [[float(z.real), float(z.imag)] for z in self.unit_directions],
            "layout": self.spectrum.layout,
            **{name: values for name, values in codes.items() if values},
            "spectrum": self.spectrum.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Any) -> Recipe:
        """Read what `to_dict` wrote, trusting nothing.

        Raises:
            FileFormatError: a wrong schema, a missing or malformed field.
        """
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise FileFormatError(f"recipe: expected schema {SCHEMA!r}")
        try:
            if max(len(data[name]) for name in ("letters", "integers", "bigrams")) > MAX_TOKENS:
                raise FileFormatError(f"recipe: more than {MAX_TOKENS} letters, integers or bigrams")
            return cls(
                mode=data["mode"],
                spectrum=RopeSpectrum.from_dict(data["spectrum"]),
                planes=tuple(plain_integer(plane) for plane in data["planes"]),
                weights=tuple(float(weight) for weight in data["weights"]),
                beta=float(data["beta"]),
                offset=read_safe_integer(data["offset"]),
                letters=tuple(_text(letter) for letter in data["letters"]),
                integers=tuple(read_safe_integer(number) for number in data["integers"]),
                bigrams=tuple(Bigram(left, right) for left, right in data["bigrams"]),
                centre_length=None if data["centre_length"] is None else plain_integer(data["centre_length"]),
                directions=np.array([complex(real, imaginary) for real, imaginary in data["directions"]]),
                phases=tuple(float(phase) for phase in data.get("phases", ())),
                multipliers=tuple(plain_integer(number) for number in data.get("multipliers", ())),
            )
        except FileFormatError:
            raise
        except (KeyError, TypeError, ValueError, ArithmeticError, RopegeoError) as error:
            raise FileFormatError(f"recipe: a field is missing or wrong ({error})") from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInputError(f"{value!r} is not a text")
    return value


def normalised_weights(weights: tuple[float, ...], count: int) -> tuple[float, ...]:
    """Weights divided by their sum; equal ones if none are given.

    Raises:
        InvalidInputError: a wrong number of weights, a negative or non-finite one, or all of them zero.
    """
    if not weights:
        return (1 / count,) * count
    if len(weights) != count:
        raise InvalidInputError(f"{len(weights)} weights for {count} planes; give one per plane")
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights):
        raise InvalidInputError("weights must be finite and not negative")
    total = sum(weights)  # not fsum, which raises where a sum is infinite
    if abs(total - 1) <= len(weights) * 2.0**-52:  # normalised before: dividing again would move the last bit
        return weights
    if not (total > 0 and math.isfinite(total)):
        raise InvalidInputError("weights must not all be zero, and their sum must be finite")
    return tuple(weight / total for weight in weights)

"""`RopeSpectrum`: how fast each plane of a head turns, exactly, and the rotation it does to vectors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Complex, Float, Int, UInt64

from ropegeo._arrays import ComplexArray, FloatArray, IntArray, UintArray, frozen
from ropegeo.errors import FileFormatError, InvalidInputError, RopegeoError
from ropegeo.exact import ClosedForm, parse_closed_form, parse_decimal, plain_integer, read_angle
from ropegeo.exact.closed_form import MAX_BITS
from ropegeo.spectrum.layout import Layout, check_layout, check_widths, layout_permutation, pair_indices
from ropegeo.spectrum.phases import MAX_DISPLACEMENT, turn_of, turn_words, turns
from ropegeo.spectrum.rope_types import default_angles

SCHEMA = "ropegeo.spectrum/1"
_SMALLEST, _LARGEST = 1e-300, 1e300


@dataclass(frozen=True, eq=False, kw_only=True)
class RopeSpectrum:
    """The angles of a rotary position embedding and the coordinates they turn.

    Plane k, counted from 0, turns by `angles[k]` radians per position. Angles are exact closed forms;
    `inv_freq` holds the nearest doubles.

    Attributes:
        angles: exact radians per position of each plane, all positive.
        head_dim: width of the head; coordinates from `rotary_dim` on pass through.
        layout: which coordinates form a plane, see `ropegeo.spectrum.layout`.
        attention_factor: factor on rotated queries and on rotated keys (logits of the rotated part scale by its
            square), as in Hugging Face.
        rope_type: `default`, `linear`, `llama3`, or `angle` for a free one.
        source: where the spectrum came from, for titles and metadata.
        angle_texts: how each angle is written; reads back as the exact angle.
        inv_freq: radians per position of each plane, float64, each correctly rounded.

    Raises:
        InvalidInputError: widths that cannot rotate, angles that are not positive, an unknown layout.
    """

    angles: tuple[ClosedForm, ...]
    head_dim: int
    layout: Layout = "half"
    attention_factor: float = 1.0
    rope_type: str = "default"
    source: str = ""
    angle_texts: tuple[str, ...] = ()
    inv_freq: Float[FloatArray, " planes"] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_widths(self.head_dim, self.rotary_dim)
        check_layout(self.layout)
        if not 1e-30 <= self.attention_factor <= 1e30:
            raise InvalidInputError(f"attention_factor {self.attention_factor} must lie between 1e-30 and 1e30")
        # The label may come from a file: nothing in it may steer a terminal.
        object.__setattr__(self, "source", "".join(x if x.isprintable() else "?" for x in self.source))
        for plane, angle in enumerate(self.angles):
            if angle.sign() <= 0 or not Fraction(_SMALLEST) < angle < Fraction(_LARGEST):
                raise InvalidInputError(f"angle of plane {plane} must lie between {_SMALLEST:g} and {_LARGEST:g}")
        if not self.angle_texts:
            object.__setattr__(self, "angle_texts", tuple(str(angle) for angle in self.angles))
        if len(self.angle_texts) != len(self.angles):
            raise InvalidInputError("angle_texts must have one text per angle")
        object.__setattr__(self, "inv_freq", frozen([float(angle) for angle in self.angles], np.float64))

    @classmethod
    def from_base(
        cls,
        base: Fraction | int | float | str,
        *,
        head_dim: int,
        rotary_dim: int | None = None,
        layout: Layout = "half",
        source: str = "",
    ) -> RopeSpectrum:
        """The default spectrum, angle_k = base**(-2k/rotary_dim).

        Args:
            base: the RoPE base (`rope_theta`), above 1. Text is read as exactly that decimal, a float as exactly
                the double it is.
            head_dim: width of the head.
            rotary_dim: rotated width, even; the whole head if not given.
            layout: `half` (Hugging Face Llama) or `interleaved` (GPT-J).
            source: label for titles and metadata.

        Raises:
            InvalidInputError: a base or width outside these ranges.

        Example:
            >>> float(RopeSpectrum.from_base(10000, head_dim=128).inv_freq[1])
            0.8659643233600653
        """
        width = head_dim if rotary_dim is None else rotary_dim
        if rotary_dim is None and (head_dim < 2 or head_dim % 2):
            raise InvalidInputError(
                f"head_dim {head_dim} must be even and at least 2, or give a smaller even rotary_dim"
            )
        check_widths(head_dim, width)
        exact = exact_number("base", base)
        angles = default_angles(exact, width)
        return cls(
            angles=angles,
            head_dim=head_dim,
            layout=layout,
            source=source or f"base {decimal_text(exact)}, head_dim {head_dim}, rotary_dim {width}",
            angle_texts=angle_texts(angles, exact, width),
        )

    @classmethod
    def from_angle(cls, angle: ClosedForm | Fraction | int | float | str, *, layout: Layout = "half") -> RopeSpectrum:
        """One plane that turns by `angle` radians per position, in a head of width 2.

        Args:
            angle: text of the grammar of `ropegeo.exact` (`"1"`, `"1/5 turn"`, `"pi*(sqrt(5)-1)"`), a closed form, an
                exact fraction, or a float, which is taken as exactly the double it is.
            layout: either; with one plane they are the same.

        Raises:
            InvalidInputError: an angle that is not positive or outside the grammar.

        Example:
            >>> RopeSpectrum.from_angle("2*pi/5").rational_turn(0)
            Fraction(1, 5)
        """
        if isinstance(angle, str):
            exact, text = read_angle(angle), angle.strip()
            if parse_text(text) != exact:  # `p/q turn` is written out, so that metadata needs one grammar only
                text = str(exact)
        else:
            exact = angle if isinstance(angle, ClosedForm) else ClosedForm.of(exact_number("angle", angle))
            text = str(exact)
        return cls(
            angles=(exact,), head_dim=2, layout=layout, rope_type="angle", source=f"angle {text}", angle_texts=(text,)
        )

    @property
    def planes(self) -> int:
        """Number of planes that rotate."""
        return len(self.angles)

    @property
    def rotary_dim(self) -> int:
        """Number of coordinates that rotate."""
        return 2 * len(self.angles)

    @cached_property
    def words(self) -> UInt64[UintArray, "2 planes"]:
        """Turns per position as two 64-bit words, see `ropegeo.spectrum.phases`."""
        words = turn_words(self.angles)
        words.flags.writeable = False
        return words

    def rational_turn(self, plane: int) -> Fraction | None:
        """The angle of a plane as a fraction of a turn, reduced to [0, 1), if it is rational; else None."""
        turn = self.angles[self.check_plane(plane)].rational_turn()
        return None if turn is None else turn % 1

    def check_plane(self, plane: int) -> int:
        """`plane` itself if the spectrum has it.

        Raises:
            InvalidInputError: out of range.
        """
        if not 0 <= plane < self.planes:
            raise InvalidInputError(
                f"plane {plane} is out of range: {self.source or 'this spectrum'} has planes 0 to {self.planes - 1}"
            )
        return plane

    def phases(self, displacements: Int[IntArray, "*shape"]) -> Float[FloatArray, "*shape planes"]:
        """Angle in radians, reduced to [-pi, pi], by which each plane has turned after each displacement.

        Accuracy: absolute error below 2e-15 radian for |displacement| < 2**62.

        Raises:
            InvalidInputError: a displacement outside that range.
        """
        return 2 * np.pi * turns(self.words, displacements)

    def phases_at(self, displacement: int | Fraction) -> Float[FloatArray, " planes"]:
        """As `phases`, for one displacement of any size; also a fraction, such as a half-integer centre."""
        exact = Fraction(displacement)
        if exact.denominator == 1 and abs(exact) < MAX_DISPLACEMENT:
            return self.phases(np.array(exact.numerator))
        # Part of an exact phase would lose whole turns, so the angle is divided instead.
        return np.array([2 * np.pi * turn_of(angle / exact.denominator, exact.numerator) for angle in self.angles])

    def to_planes(self, vectors: Float[FloatArray, "*batch head_dim"]) -> Complex[ComplexArray, "*batch planes"]:
        """The rotated coordinates as one complex number per plane, in plane order."""
        self._check_width(vectors)
        first, second = pair_indices(self.layout, self.rotary_dim)
        return vectors[..., first] + 1j * vectors[..., second]

    def from_planes(
        self, values: Complex[ComplexArray, "*batch planes"], passed: Float[FloatArray, "*batch rest"] | None = None
    ) -> Float[FloatArray, "*batch head_dim"]:
        """Vectors with the given complex number in each plane; coordinates that pass through are 0 or `passed`."""
        first, second = pair_indices(self.layout, self.rotary_dim)
        vectors = np.zeros((*values.shape[:-1], self.head_dim))
        vectors[..., first], vectors[..., second] = values.real, values.imag
        if passed is not None:
            vectors[..., self.rotary_dim :] = passed
        return vectors

    def rotate(
        self, vectors: Float[FloatArray, "*batch head_dim"], positions: Int[IntArray, "*batch"] | int
    ) -> Float[FloatArray, "*batch head_dim"]:
        """Turn each vector to its position: (a, b) of plane k becomes (a cos - b sin, b cos + a sin).

        Args:
            vectors: queries or keys before rotation; float64.
            positions: position of each vector, |position| < 2**62; an int for all of them alike.

        Returns:
            The rotated vectors, times `attention_factor` in the rotated coordinates.

        Accuracy: relative error of a rotated pair below 3e-15 at any position.
        """
        turned = self.to_planes(vectors) * np.exp(1j * self.phases(np.asarray(positions)))
        return self.from_planes(self.attention_factor * turned, vectors[..., self.rotary_dim :])

    def _check_width(self, vectors: FloatArray) -> None:
        if vectors.shape[-1] != self.head_dim:
            raise InvalidInputError(
                f"vectors have width {vectors.shape[-1]}, the spectrum has head_dim {self.head_dim}"
            )

    def with_layout(self, layout: Layout) -> RopeSpectrum:
        """The same angles on the other pairing of coordinates."""
        return replace(self, layout=check_layout(layout))

    def permutation_to(self, layout: Layout) -> Int[IntArray, " head_dim"]:
        """Row order that rewrites W_Q and W_K of a head on this spectrum for `layout`."""
        return layout_permutation(self.head_dim, self.rotary_dim, source=self.layout, target=layout)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; `angles` are exact, `inv_freq` is for the reader."""
        return {
            "schema": SCHEMA,
            "source": self.source,
            "rope_type": self.rope_type,
            "head_dim": self.head_dim,
            "rotary_dim": self.rotary_dim,
            "layout": self.layout,
            "attention_factor": self.attention_factor,
            "angles": list(self.angle_texts),
            "inv_freq": self.inv_freq.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Any) -> RopeSpectrum:
        """Read what `to_dict` wrote.

        Angles are read by the grammar, never evaluated; `inv_freq` is recomputed and must be what was written.

        Raises:
            FileFormatError: a wrong schema, a missing or malformed field.
        """
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise FileFormatError(f"spectrum: expected schema {SCHEMA!r}")
        try:
            texts = tuple(data["angles"])
            if not all(isinstance(text, str) for text in texts) or len(texts) > MAX_PLANES:
                raise FileFormatError(f"spectrum: angles must be at most {MAX_PLANES} texts")
            spectrum = cls(
                angles=tuple(parse_closed_form(text) for text in texts),
                head_dim=plain_integer(data["head_dim"]),
                layout=check_layout(data["layout"]),
                attention_factor=float(data["attention_factor"]),
                rope_type=str(data["rope_type"]),
                source=str(data["source"]),
                angle_texts=texts,
            )
            if list(data["inv_freq"]) != spectrum.inv_freq.tolist():
                raise FileFormatError("spectrum: inv_freq is not that of the angles; the data were altered")
            return spectrum
        except FileFormatError:
            raise
        except (KeyError, TypeError, ValueError, ArithmeticError, RopegeoError) as error:
            raise FileFormatError(f"spectrum: a field is missing or wrong ({error})") from error


MAX_PLANES = 4096


def parse_text(text: str) -> ClosedForm | None:
    """`parse_closed_form`, or None where the text is not of that grammar."""
    try:
        return parse_closed_form(text)
    except InvalidInputError:
        return None


def exact_number(name: str, value: Fraction | int | float | str) -> Fraction:
    """A number as a fraction: text as the decimal it says, a float as the double it is.

    Raises:
        InvalidInputError: NaN, infinite, or not a number.
    """
    if isinstance(value, str):
        try:
            exact = parse_decimal(value)
        except InvalidInputError as error:
            raise InvalidInputError(f"{name}: {error}") from error
    else:
        try:
            exact = Fraction(value)
        except (ValueError, OverflowError, TypeError) as error:
            raise InvalidInputError(f"{name} {str(value)[:40]} is not a finite number") from error
    if max(exact.numerator.bit_length(), exact.denominator.bit_length()) > MAX_BITS:
        raise InvalidInputError(f"{name}: a number of more than {MAX_BITS} bits; write a shorter one")
    return exact


def decimal_text(value: Fraction) -> str:
    """A fraction as the grammar reads it: digits where it is an integer, p/q otherwise."""
    return str(value.numerator) if value.denominator == 1 else f"({value.numerator}/{value.denominator})"


def angle_texts(angles: tuple[ClosedForm, ...], base: Fraction, rotary_dim: int) -> tuple[str, ...]:
    """How the angles of a base are written: `500000^(-2/128)`, times a factor where scaling is one, else in full."""
    texts = []
    for plane, (angle, plain) in enumerate(zip(angles, default_angles(base, rotary_dim), strict=True)):
        ratio = (angle / plain).as_rational()
        power = f"{decimal_text(base)}^(-{2 * plane}/{rotary_dim})"
        texts.append(str(angle) if ratio is None else power if ratio == 1 else f"{power}*({ratio})")
    return tuple(texts)

"""One function per rope type: exact radians per position of every plane, after scaling.

Each returns the angles in closed form; none of the types here rescales attention, so their attention factor is 1.
Names and rules are those of Hugging Face `modeling_rope_utils`.
"""

from __future__ import annotations

from fractions import Fraction

from ropegeo.errors import InvalidInputError
from ropegeo.exact import ClosedForm, balls

Angles = tuple[ClosedForm, ...]


def default_angles(base: Fraction, rotary_dim: int) -> Angles:
    """angle_k = base**(-2k/rotary_dim).

    Raises:
        InvalidInputError: base not above 1.
    """
    if base <= 1:
        raise InvalidInputError(f"base {str(base)[:40]} must be larger than 1: planes must turn slower one by one")
    if max(base.numerator.bit_length(), base.denominator.bit_length()) > balls.MAX_FACTOR_BITS:
        raise InvalidInputError(
            f"base: numerator and denominator must be below 2**{balls.MAX_FACTOR_BITS}, to be factored"
        )
    root = ClosedForm.of(base)
    return tuple(root ** Fraction(-2 * plane, rotary_dim) for plane in range(rotary_dim // 2))


def linear_angles(base: Fraction, rotary_dim: int, *, factor: Fraction) -> Angles:
    """Position interpolation: every default angle divided by `factor`.

    Raises:
        InvalidInputError: factor not positive.
    """
    _check_positive("linear", factor=factor)
    return tuple(angle / factor for angle in default_angles(base, rotary_dim))


def llama3_angles(
    base: Fraction,
    rotary_dim: int,
    *,
    factor: Fraction,
    low_freq_factor: Fraction,
    high_freq_factor: Fraction,
    original_max_position_embeddings: Fraction,
) -> Angles:
    """Llama 3.1: slow planes divided by `factor`, fast ones kept, a linear blend between.

    With w = 2 pi / angle and L the original length: kept where w < L/high, divided where w > L/low, and otherwise
    (1 - s) * angle/factor + s * angle with s = (L/w - low) / (high - low). The comparisons are exact.

    Raises:
        InvalidInputError: a parameter not positive, or high_freq_factor below low_freq_factor.
    """
    length = original_max_position_embeddings
    _check_positive(
        "llama3",
        factor=factor,
        low_freq_factor=low_freq_factor,
        high_freq_factor=high_freq_factor,
        original_max_position_embeddings=length,
    )
    if high_freq_factor < low_freq_factor:
        raise InvalidInputError("llama3 scaling: high_freq_factor must not be below low_freq_factor")

    def scaled(angle: ClosedForm) -> ClosedForm:
        turns_in_length = length * angle / (2 * ClosedForm.pi())  # L / w
        if turns_in_length > high_freq_factor:
            return angle
        if turns_in_length < low_freq_factor or high_freq_factor == low_freq_factor:
            return angle / factor
        blend = (turns_in_length - low_freq_factor) / (high_freq_factor - low_freq_factor)
        return (1 - blend) * angle / factor + blend * angle

    return tuple(scaled(angle) for angle in default_angles(base, rotary_dim))


def _check_positive(rope_type: str, **values: Fraction) -> None:
    for name, value in values.items():
        if value <= 0:
            raise InvalidInputError(f"{rope_type} scaling: {name} must be positive, not {str(value)[:40]}")

r"""What a scaling of a rotation does to its planes and to what heads can win on them, side by side.

From one base and one factor f the following rotations are made; a length that is f times as long is what they are
meant for.

* `default`: angle_k = base^(-2k/r).
* `linear`: every angle divided by f.
* `llama3`: slow planes divided by f, fast ones kept, a blend between (`ropegeo.spectrum.rope_types.llama3_angles`).
* `ntk` (ours, for a plain change of base): base' = base f^(r/(r-2)), so that plane k turns slower by f^(2k/(r-2)):
  plane 0 is kept, and the slowest plane, k = r/2 - 1, is slowed by exactly f. It is no rope type of a configuration.

**The unscaled base of a spectrum.** Only angles are kept in a spectrum, exactly. With q = angle_1/angle_0 the base can
be nothing but q^(-r/2) where both planes are slowed alike, as in all three types unless plane 1 of llama3 is in its
blend; it is accepted only if the scaling named is found again in every plane: ratios to base^(-2k/r) all 1, all 1/f,
or those that llama3 gives. Of llama3 the ratio of a blended plane is (1 - s)/f + s with s = A angle_k - C, A = L/(2
pi (high - low)) and C = low/(high - low); two blended planes give A and C. L, low and high have one common factor
that no angle depends on; the one with low = 1 is taken, so L = 2 pi A/C and high = 1 + 1/C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ropegeo.engine.index_margin import index_curve
from ropegeo.engine.margin import check_lengths
from ropegeo.engine.planes import best_index_plane, best_letter_plane
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import ClosedForm, Enclosure, safe_integer
from ropegeo.heads import LogitProfile
from ropegeo.limits.scores import critical_plane, first_negative
from ropegeo.spectrum import RopeSpectrum
from ropegeo.spectrum.rope import angle_texts, decimal_text, exact_number
from ropegeo.spectrum.rope_types import Angles, default_angles, linear_angles, llama3_angles

ORIGINAL_LENGTH = 8192
LOW_FREQ_FACTOR, HIGH_FREQ_FACTOR = Fraction(1), Fraction(4)
LETTERS = 8
NAMES = ("default", "linear", "llama3", "ntk")


@dataclass(frozen=True, kw_only=True)
class Unscaled:
    """What a spectrum was before it was scaled.

    Attributes:
        base: of the default angles.
        factor: of its scaling; 1 if it has none.
        llama3: original length, low and high frequency factor with low = 1; None for other types, or where the angles
            do not say.
    """

    base: Fraction
    factor: Fraction
    llama3: tuple[Fraction, Fraction, Fraction] | None


def unscaled(spectrum: RopeSpectrum) -> Unscaled:
    """The base and the scaling that a spectrum's angles come from.

    Args:
        spectrum: of type default, linear or llama3, with at least two planes.

    Raises:
        UnsupportedError: angles that are no scaling of a base that this version knows.

    Accuracy: exact.

    Example:
        >>> from ropegeo.spectrum import preset
        >>> found = unscaled(preset("llama-3.1-8b"))
        >>> str(found.base), str(found.factor), [str(part) for part in found.llama3]
        ('500000', '8', ['8192', '1', '4'])
    """
    refusal = UnsupportedError(
        f"unscaled: the base that {spectrum.source or 'this spectrum'} is scaled from cannot be told from its "
        f"{spectrum.planes} angles; give a default, linear or llama3 rotation, such as --base with --head-dim"
    )
    if spectrum.planes < 2 or spectrum.rope_type not in ("default", "linear", "llama3"):
        raise refusal
    try:
        base = ((spectrum.angles[0] / spectrum.angles[1]) ** Fraction(spectrum.rotary_dim, 2)).as_rational()
    except InvalidInputError:  # a root of a sum
        base = None
    if base is None or base <= 1:
        raise refusal
    plain = default_angles(base, spectrum.rotary_dim)
    ratios = [angle / original for angle, original in zip(spectrum.angles, plain, strict=True)]
    last = ratios[-1].as_rational()
    if last is None or last <= 0:
        raise refusal
    if all(ratio == last for ratio in ratios):
        return Unscaled(base=base, factor=1 / last, llama3=None)
    if spectrum.rope_type != "llama3":
        raise refusal
    parameters = _llama3_parameters(spectrum, plain, ratios, last)
    if parameters is None:
        if all(ratio in (1, last) for ratio in ratios):  # no plane in the blend
            return Unscaled(base=base, factor=1 / last, llama3=None)
        raise refusal
    return Unscaled(base=base, factor=1 / last, llama3=parameters)


def _llama3_parameters(
    spectrum: RopeSpectrum, plain: Angles, ratios: list[ClosedForm], last: Fraction
) -> tuple[Fraction, Fraction, Fraction] | None:
    """Original length, 1 and high_freq_factor that give all the angles; None where the angles do not say."""
    blended = [plane for plane, ratio in enumerate(ratios) if ratio not in (1, last)]
    if len(blended) < 2 or last == 1:
        return None
    one, other = blended[0], blended[-1]
    shares = [(ratios[plane] - last) / (1 - last) for plane in (one, other)]
    slope = (shares[0] - shares[1]) / (plain[one] - plain[other])
    offset = (slope * plain[one] - shares[0]).as_rational()
    if offset is None or offset <= 0:
        return None
    length = (2 * ClosedForm.pi() * slope / offset).as_rational()
    if length is None or length <= 0:
        return None
    parameters = (length, Fraction(1), 1 + 1 / offset)
    base = ((plain[0] / plain[1]) ** Fraction(spectrum.rotary_dim, 2)).as_rational() or Fraction(2)
    rebuilt = _llama3(base, spectrum.rotary_dim, 1 / last, parameters)
    return parameters if rebuilt == spectrum.angles else None


def _llama3(
    base: Fraction, rotary_dim: int, factor: Fraction, parameters: tuple[Fraction, Fraction, Fraction]
) -> Angles:
    length, low, high = parameters
    return llama3_angles(
        base,
        rotary_dim,
        factor=factor,
        low_freq_factor=low,
        high_freq_factor=high,
        original_max_position_embeddings=length,
    )


def scaled_spectra(
    spectrum: RopeSpectrum, factor: Fraction | int | float | str, *, original_length: int | None = None
) -> dict[str, RopeSpectrum]:
    """The rotations `default`, `linear`, `llama3` and `ntk` of one base and one factor.

    Args:
        spectrum: whose base, widths and layout are taken; if it is scaled, its scaling is taken off.
        factor: f >= 1. Text is read as exactly that decimal.
        original_length: of llama3, in positions; the spectrum's own if it is llama3, else 8192.

    Raises:
        InvalidInputError: a factor below 1, an original length below 1, one plane only.
        UnsupportedError: a spectrum whose base cannot be told, see `unscaled`.

    Accuracy: angles are exact.

    Source: `rope_types.py`; `ntk` is ours, see the module's docstring.

    Example:
        >>> made = scaled_spectra(RopeSpectrum.from_base(10_000, head_dim=8), 4, original_length=1000)
        >>> [round(float(each.angles[-1]) * 1000, 6) for each in made.values()]
        [1.0, 0.25, 0.25, 0.25]
    """
    slowed = exact_number("factor", factor)
    if slowed < 1:
        raise InvalidInputError(f"scaled_spectra: factor {decimal_text(slowed)[:40]} must be at least 1")
    if original_length is not None and original_length < 1:
        raise InvalidInputError(f"scaled_spectra: original_length {original_length} must be at least 1")
    if spectrum.planes < 2:
        raise InvalidInputError(
            "scaled_spectra: a rotation of one plane has no base to change; give one with at least two planes"
        )
    known = unscaled(spectrum)
    base, width = known.base, spectrum.rotary_dim
    length, low, high = known.llama3 or (Fraction(ORIGINAL_LENGTH), LOW_FREQ_FACTOR, HIGH_FREQ_FACTOR)
    if original_length is not None:
        length = Fraction(original_length)
    angles = {
        "default": default_angles(base, width),
        "linear": linear_angles(base, width, factor=slowed),
        "llama3": _llama3(base, width, slowed, (length, low, high)),
        "ntk": ntk_angles(base, width, factor=slowed),
    }
    label = f"base {decimal_text(base)}, rotary_dim {width}"
    return {
        name: replace(
            spectrum,
            angles=each,
            attention_factor=1.0,
            rope_type=name,
            source=label if name == "default" else f"{label}, {name} scaling, factor {decimal_text(slowed)}",
            angle_texts=() if name == "ntk" else angle_texts(each, base, width),
        )
        for name, each in angles.items()
    }


def ntk_angles(base: Fraction, rotary_dim: int, *, factor: Fraction) -> Angles:
    """angle_k = base'^(-2k/r), base' = base f^(r/(r-2)): the slowest plane is slowed by exactly f.

    Raises:
        InvalidInputError: base not above 1, factor not positive, fewer than two planes.

    Accuracy: exact.

    Source: ours in name; the change of base is known as NTK-aware scaling.
    """
    if rotary_dim < 4 or factor <= 0:
        raise InvalidInputError(f"ntk scaling: needs a positive factor and at least two planes, not {rotary_dim // 2}")
    slower = ClosedForm.of(factor)
    return tuple(
        angle * slower ** Fraction(-2 * plane, rotary_dim - 2)
        for plane, angle in enumerate(default_angles(base, rotary_dim))
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class ScalingRow:
    """One scaling of a comparison.

    Attributes:
        name: of `NAMES`.
        spectrum: the rotation.
        length: n that everything is said for.
        critical: the slowest plane that comes round within n; None if none does.
        first_negative: the smallest m with B_m < 0; None if there is none below `searched`.
        searched: how many distances were looked at.
        index_plane: the plane whose index head with offset 0 has the largest margin.
        index_margin: that margin at n.
        equal_weights: the margin at n of the index head on all planes with equal weights.
        letter_plane: the plane whose centred retrieval head on 8 letters has the largest worst-case margin.
        letter_margin: that margin at n.
    """

    name: str
    spectrum: RopeSpectrum
    length: int
    critical: int | None
    first_negative: int | None
    searched: int
    index_plane: int
    index_margin: Enclosure
    equal_weights: Enclosure
    letter_plane: int
    letter_margin: Enclosure

    @property
    def slowest(self) -> float:
        """Radians per position of the slowest plane."""
        return float(self.spectrum.inv_freq.min())

    @property
    def admissible(self) -> bool:
        """Whether no B_m, m < n, is negative."""
        return self.first_negative is None or self.first_negative >= self.length

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "scaling": self.name,
            "length": safe_integer(self.length),
            "slowest_angle": self.slowest,
            "critical_plane": self.critical,
            "first_negative": self.first_negative,
            "first_negative_searched": self.searched,
            "admissible": self.admissible,
            "index_plane": self.index_plane,
            **self.index_margin.to_dict("index_margin"),
            **self.equal_weights.to_dict("equal_weights_margin"),
            "letter_plane": self.letter_plane,
            **self.letter_margin.to_dict("letter_margin"),
        }


def compare_scalings(
    spectrum: RopeSpectrum,
    *,
    factor: Fraction | int | float | str,
    length: int,
    original_length: int | None = None,
    searched: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[ScalingRow, ...]:
    """What each scaling of `scaled_spectra` leaves at a length: planes that come round, B_m, margins of both kinds.

    Args:
        spectrum: as in `scaled_spectra`.
        factor: as there.
        length: n >= 2.
        original_length: as there.
        searched: how many distances B_m is looked at, at least n; n if not given.
        progress: called with the number of scalings done.

    Raises:
        InvalidInputError: a length below 2, and as `scaled_spectra`.
        UnsupportedError: a length that the margins of several planes, or B_m, are not computed for.

    Accuracy: margins are enclosed; B_m's sign is decided.

    Source: docs/MATHEMATICS.md, sections 3 to 5, for the heads.
    """
    (n,) = check_lengths("compare_scalings", [length])
    limit = max(n, n if searched is None else searched)
    rows = []
    for name, each in scaled_spectra(spectrum, factor, original_length=original_length).items():
        index_plane, index_margin = best_index_plane(each, offset=0, length=n)
        letter_plane, letter_margin = best_letter_plane(each, letters=LETTERS, length=n, centre=Fraction(n - 1, 2))
        equal = LogitProfile(spectrum=each, coefficients=np.full(each.planes, 1 / each.planes, dtype=np.complex128))
        rows.append(
            ScalingRow(
                name=name,
                spectrum=each,
                length=n,
                critical=critical_plane(each, n),
                first_negative=first_negative(each, max_length=limit),
                searched=limit,
                index_plane=index_plane,
                index_margin=index_margin,
                equal_weights=index_curve(equal, [n]).points[0].margin,
                letter_plane=letter_plane,
                letter_margin=letter_margin,
            )
        )
        if progress is not None:
            progress(len(rows))
    return tuple(rows)

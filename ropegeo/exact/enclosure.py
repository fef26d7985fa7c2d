"""`Enclosure`: a real number known to lie between two fractions, and the digits that this proves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

from ropegeo.errors import FileFormatError, InvalidInputError
from ropegeo.exact import balls

DOUBLE_DIGITS = 17
MAX_EXPONENT = 100_000


@dataclass(frozen=True, kw_only=True, repr=False)
class Enclosure:
    """A real number x with low <= x <= high.

    Attributes:
        low: exact lower end.
        high: exact upper end.

    Example:
        >>> Enclosure.around(0.25, 1e-9).digits()
        '0.25'
    """

    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise InvalidInputError("enclosure: the lower end is above the upper end")

    @classmethod
    def of_ball(cls, value: balls.Ball) -> Enclosure:
        """Both ends of a ball."""
        low, high = balls.rational_ends(value)
        return cls(low=low, high=high)

    @classmethod
    def exactly(cls, value: Fraction | int) -> Enclosure:
        """A number that is known."""
        return cls(low=Fraction(value), high=Fraction(value))

    @classmethod
    def around(cls, value: float, error: float) -> Enclosure:
        """A floating-point result with a bound on its error."""
        return cls(low=Fraction(value) - Fraction(error), high=Fraction(value) + Fraction(error))

    @property
    def sign(self) -> int | None:
        """-1, 0 or 1, or None where the enclosure does not decide it."""
        if self.low == self.high == 0:
            return 0
        return 1 if self.low > 0 else -1 if self.high < 0 else None

    @property
    def is_bound(self) -> bool:
        """Whether this only bounds a number that is not negative: from exactly 0 up to something."""
        return self.low == 0 < self.high

    def __float__(self) -> float:
        """The double nearest to the middle; of a mere bound, the bound, rounded up."""
        if self.is_bound:
            value = float(self.high)
            return value if Fraction(value) >= self.high else math.nextafter(value, math.inf)
        return float((self.low + self.high) / 2)

    def __repr__(self) -> str:
        """Short: the proved digits, or the number with its error."""
        if self.is_bound:
            return f"Enclosure(0 <= x <= {float(self):.6g})"
        digits = self.digits()
        return f"Enclosure({float(self):.6g} +- {self.abs_error:.1g})" if digits is None else f"Enclosure({digits}...)"

    @property
    def abs_error(self) -> float:
        """A double that bounds |x - float(self)|, rounding to double included."""
        if self.low == self.high and Fraction(float(self.low)) == self.low:
            return 0.0
        value = Fraction(float(self))
        bound = max(self.high - value, value - self.low)
        rounded = float(bound)
        return rounded if Fraction(rounded) >= bound else math.nextafter(rounded, math.inf)

    def digits(self, count: int = DOUBLE_DIGITS) -> str | None:
        """The most significant digits, at most `count`, that every number of the enclosure rounds to.

        Both ends are rounded half-even to the same number of digits, and a text is returned only where they agree:
        all its digits are proved, the last one as a rounded digit. Trailing zeros are dropped. None where the
        enclosure does not prove even one digit.
        """
        if self.sign is None:
            return None
        if self.sign == 0:
            return "0"
        for size in range(count, 0, -1):
            if self.proves(size):
                return scientific(_rounded(self.low, size), size)
        return None

    def proves(self, count: int) -> bool:
        """Whether every number of the enclosure rounds to the same `count` significant digits."""
        return self.sign is not None and _rounded(self.low, count) == _rounded(self.high, count)

    def to_dict(self, name: str, digits: int = DOUBLE_DIGITS) -> dict[str, Any]:
        """`{name: float64, name_digits: certified text or None, name_abs_error: float64}`."""
        return {name: float(self), f"{name}_digits": self.digits(digits), f"{name}_abs_error": self.abs_error}

    @classmethod
    def from_dict(cls, data: dict[str, Any], name: str) -> Enclosure:
        """The tighter of what `to_dict` wrote: the float with its error, or the digits with half a unit of the last.

        Raises:
            FileFormatError: a missing or malformed field, or digits that contradict the float.
        """
        try:
            value = cls.around(float(data[name]), float(data[f"{name}_abs_error"]))
            text = data[f"{name}_digits"]
            if text is None and data[name] == data[f"{name}_abs_error"] != 0:  # a mere bound
                return cls(low=Fraction(0), high=Fraction(float(data[name])))
            if text is None:
                return value
            if text == "0":
                return cls.exactly(0)
            written = Decimal(text)
            if not written.is_finite() or abs(written.adjusted()) > MAX_EXPONENT:
                raise FileFormatError(f"{name}: digits {str(text)[:40]!r} are out of range")
            exponent = written.as_tuple().exponent
            half = Fraction(10) ** int(exponent) / 2
            middle = Fraction(written)
            return cls(low=max(value.low, middle - half), high=min(value.high, middle + half))
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise FileFormatError(f"{name}: missing, malformed or contradictory ({error})") from error


def least(values: list[Enclosure]) -> Enclosure:
    """The enclosure of the smallest of several numbers."""
    return Enclosure(low=min(value.low for value in values), high=min(value.high for value in values))


def _rounded(value: Fraction, digits: int) -> Decimal:
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=-999_999, Emax=999_999)
    with localcontext(context):
        return Decimal(value.numerator) / Decimal(value.denominator)


def scientific(value: Decimal, proved: int) -> str:
    """A decimal without trailing zeros: fixed point from 1e-4 up to 1e16 if its units digit is proved, else scientific.

    Example:
        >>> scientific(Decimal("1.5000E-9"), 5), scientific(Decimal("0.0244"), 3), scientific(Decimal("2E+1"), 1)
        ('1.5e-9', '0.0244', '2e1')
    """
    sign, digits, _ = value.as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    exponent = value.adjusted()
    prefix = "-" if sign else ""
    if -4 <= exponent < 0:
        return f"{prefix}0.{'0' * (-exponent - 1)}{text}"
    if 0 <= exponent < min(16, proved):  # zeros before the point are digits too, and only proved ones are written
        whole = text[: exponent + 1].ljust(exponent + 1, "0")
        rest = text[exponent + 1 :]
        return f"{prefix}{whole}.{rest}" if rest else f"{prefix}{whole}"
    tail = f".{text[1:]}" if len(text) > 1 else ""
    return f"{prefix}{text[0]}{tail}e{exponent}"

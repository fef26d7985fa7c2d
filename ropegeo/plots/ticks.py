"""Ticks of axes that hold logarithms, and how numbers are written on them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from matplotlib.ticker import MaxNLocator

_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclass(frozen=True, kw_only=True)
class LogTicks:
    """Ticks of a logarithmic axis, as log10 of their values.

    Attributes:
        major: position and label.
        minor: positions.
    """

    major: list[tuple[float, str]]
    minor: list[float]


def log_ticks(low: float, high: float) -> LogTicks:
    """About three to eight ticks between 10**low and 10**high, whatever their size."""
    decades = range(math.ceil(low), math.floor(high) + 1)
    halves = [k + math.log10(digit) for k in range(decades.start - 1, decades.stop) for digit in range(2, 10)]
    halves = [at for at in halves if low <= at <= high]
    if len(decades) >= 3:
        step = next(size for power in range(9) for size in (10**power * c for c in (1, 2, 5)) if high - low <= 8 * size)
        minor = halves if step == 1 else [float(k) for k in decades] if len(decades) <= 60 else []
        return LogTicks(major=[(float(k), power_of_ten(k)) for k in decades if k % step == 0], minor=minor)
    start = math.floor(low)
    found = [(digit, k) for k in range(start, math.floor(high) + 1) for digit in (1, 2, 5)]
    major = [(k + math.log10(digit), number(digit, k)) for digit, k in found if low <= k + math.log10(digit) <= high]
    if len(major) < 3:
        values = MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(10 ** (low - start), 10 ** (high - start))
        tens = [(v, start) if v < 10 else (v / 10, start + 1) for v in values if v > 0]
        major = [(k + math.log10(digit), number(digit, k)) for digit, k in tens]
        major = [tick for tick in major if low <= tick[0] <= high]
        halves = []
    return LogTicks(major=major, minor=[float(k) for k in decades] + halves)


def whole_numbers(ticks: LogTicks) -> LogTicks:
    """The ticks without labels such as 2.5."""
    return LogTicks(major=[tick for tick in ticks.major if "." not in tick[1] or "×" in tick[1]], minor=ticks.minor)


def scientific(value: float) -> str:
    """A positive number with raised exponent, three digits.

    Example:
        >>> scientific(1.5e-7)
        '1.5×10⁻⁷'
    """
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    return f"{float(mantissa):g}×{power_of_ten(int(exponent))}"


def power_of_ten(exponent: int) -> str:
    """10 to an integer, with raised digits.

    Example:
        >>> power_of_ten(-12)
        '10⁻¹²'
    """
    return "10" + str(exponent).translate(_SUPERSCRIPTS)


def number(mantissa: float, exponent: int) -> str:
    """mantissa * 10**exponent, written out near 1.

    Example:
        >>> number(5, -2), number(2.5, 30)
        ('0.05', '2.5 × 10³⁰')
    """
    if -5 < exponent < 6:
        return f"{mantissa * 10**exponent:.6g}"
    return power_of_ten(exponent) if mantissa == 1 else f"{mantissa:.4g} × {power_of_ten(exponent)}"

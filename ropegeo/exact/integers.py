"""Integers of any size: how they are shown, and how they go to JSON and come back."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

from ropegeo.errors import InvalidInputError

SAFE_INTEGER = 2**53
"""The largest size that every JSON reader keeps exactly."""


def safe_integer(value: int) -> int | str:
    """An integer for JSON: as text above 2**53, so that no reader rounds it."""
    return value if abs(value) <= SAFE_INTEGER else str(value)


def read_safe_integer(value: Any) -> int:
    """The integer that `safe_integer` wrote.

    Raises:
        InvalidInputError: neither an integer nor the text of one.
    """
    if isinstance(value, str) and len(value) <= 4300 and value.removeprefix("-").isdecimal() and value.isascii():
        return int(value)
    return plain_integer(value)


def plain_integer(value: Any) -> int:
    """`value` itself if it is an int and no bool.

    Raises:
        InvalidInputError: anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInputError(f"{str(value)[:40]!r} is not an integer")
    return value


def short(number: int) -> str:
    """An integer for a message or a table: as it is up to 20 digits, otherwise five digits and its power of ten.

    Example:
        >>> short(1000), short(10**30)
        ('1000', '1.0000e30')
    """
    if abs(number) < 10**20:
        return str(number)
    rounded = Context(prec=5, Emax=999_999).create_decimal(Decimal(number))
    return f"{rounded:.4e}".replace("e+", "e")

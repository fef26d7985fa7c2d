"""Exact numbers: closed forms, the grammar that reads them, and the enclosures that they prove."""

from ropegeo.exact.closed_form import ClosedForm, nearest_integer
from ropegeo.exact.enclosure import Enclosure
from ropegeo.exact.grammar import parse_closed_form, parse_decimal, read_angle
from ropegeo.exact.integers import plain_integer, read_safe_integer, safe_integer, short

__all__ = [
    "ClosedForm",
    "Enclosure",
    "nearest_integer",
    "parse_closed_form",
    "parse_decimal",
    "plain_integer",
    "read_angle",
    "read_safe_integer",
    "safe_integer",
    "short",
]

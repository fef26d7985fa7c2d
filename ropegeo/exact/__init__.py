"""Exact numbers: closed forms, the grammar that reads them, and the enclosures that they prove."""

from ropegeo.exact.closed_form import ClosedForm
from ropegeo.exact.enclosure import Enclosure
from ropegeo.exact.grammar import parse_closed_form, parse_decimal, read_angle

__all__ = ["ClosedForm", "Enclosure", "parse_closed_form", "parse_decimal", "read_angle"]

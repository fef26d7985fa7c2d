"""A small grammar for exact numbers, so that no text from a user or a file is ever evaluated as code.

    sum     = product (("+" | "-") product)*
    product = signed (("*" | "/") signed)*
    signed  = ("+" | "-") signed | power
    power   = atom (("^" | "**") signed)?
    atom    = number | "pi" | "sqrt" "(" sum ")" | "(" sum ")"

A number is a decimal and means exactly that decimal. `read_angle` also reads `SUM turn` for 2*pi times SUM.
"""

from __future__ import annotations

import re
from fractions import Fraction

from ropegeo.errors import InvalidInputError
from ropegeo.exact.closed_form import MAX_BITS, ClosedForm

MAX_TEXT = 4000
MAX_DEPTH = 50
_MAX_EXPONENT = MAX_BITS // 4  # 10**e needs 3.33 e bits

_TOKEN = re.compile(
    r"\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|(pi\b|π|sqrt\b)|(\*\*|[-+*/^()]))", re.ASCII
)


def parse_decimal(text: str) -> Fraction:
    """The exact value of a decimal such as `0.1`, `1e4` or `500000.0`.

    Raises:
        InvalidInputError: not a decimal, or an exponent too large to write out.
    """
    match = re.fullmatch(r"([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?", text.strip(), re.ASCII)
    if match is None or not (match[2] or match[3]):
        raise InvalidInputError(f"{text.strip()[:60]!r} is not a decimal number")
    if len(text) > MAX_TEXT or (match[4] is not None and (len(match[4]) > 6 or abs(int(match[4])) > _MAX_EXPONENT)):
        raise InvalidInputError(f"{text.strip()[:60]!r} is too large to write out (exponent at most {_MAX_EXPONENT})")
    digits = (match[2] or "") + (match[3] or "")
    power = int(match[4] or 0) - len(match[3] or "")
    value = Fraction(int(digits)) * Fraction(10) ** power
    return -value if match[1] == "-" else value


def parse_closed_form(text: str) -> ClosedForm:
    """Read an expression of the grammar above.

    Raises:
        InvalidInputError: anything outside the grammar, with the place where it stops.

    Example:
        >>> float(parse_closed_form("10000^(-2/128)"))
        0.8659643233600653
    """
    return _Reader(text).whole()


def read_angle(text: str) -> ClosedForm:
    """Read an angle in radians: a decimal, a closed form, or `p/q turn`.

    Raises:
        InvalidInputError: outside the grammar, zero or negative.

    Example:
        >>> read_angle("1/5 turn") == read_angle("2*pi/5")
        True
    """
    match = re.fullmatch(r"(.*[\d)\s])turns?\s*", text, re.DOTALL)
    value = 2 * ClosedForm.pi() * parse_closed_form(match[1]) if match else parse_closed_form(text)
    if value.sign() <= 0:
        raise InvalidInputError(f"angle {text.strip()[:60]!r} must be positive: an angle of 0 rotates nothing")
    return value


class _Reader:
    def __init__(self, text: str) -> None:
        if len(text) > MAX_TEXT:
            raise InvalidInputError(f"expression of {len(text)} characters; at most {MAX_TEXT} are read")
        self._text = text
        self._tokens: list[tuple[str, int]] = []
        self._next = 0
        self._depth = 0
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                start = at + len(text[at:]) - len(text[at:].lstrip())
                raise self._error(f"cannot read {text[start : start + 12]!r}", start)
            self._tokens.append((match.group(match.lastindex or 0), match.start(match.lastindex or 0)))
            at = match.end()

    def _error(self, what: str, at: int) -> InvalidInputError:
        return InvalidInputError(
            f"expression {self._text.strip()[:60]!r}: {what} at character {at + 1}; "
            "use numbers, pi, sqrt(), + - * / ^ and parentheses"
        )

    def _peek(self) -> str:
        return self._tokens[self._next][0] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def _here(self) -> int:
        return self._tokens[self._next][1] if self._next < len(self._tokens) else len(self._text)

    def whole(self) -> ClosedForm:
        value = self._sum()
        if self._peek():
            raise self._error(f"{self._peek()!r} is not expected", self._here())
        return value

    def _sum(self) -> ClosedForm:
        value = self._product()
        while self._peek() in ("+", "-"):
            value = value + self._product() if self._take() == "+" else value - self._product()
        return value

    def _product(self) -> ClosedForm:
        value = self._signed()
        while self._peek() in ("*", "/"):
            value = value * self._signed() if self._take() == "*" else value / self._signed()
        return value

    def _signed(self) -> ClosedForm:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH} levels", self._here())
        try:
            if self._peek() in ("+", "-"):
                return self._signed() if self._take() == "+" else -self._signed()
            return self._power()
        finally:
            self._depth -= 1

    def _power(self) -> ClosedForm:
        base = self._atom()
        if self._peek() not in ("^", "**"):
            return base
        at = self._here()
        self._take()
        exponent = self._signed().as_rational()
        if exponent is None:
            raise self._error("an exponent must be a rational number", at)
        return base**exponent

    def _atom(self) -> ClosedForm:
        at = self._here()
        symbol = self._take()
        if symbol in ("pi", "π"):
            return ClosedForm.pi()
        if symbol == "sqrt":
            if self._peek() != "(":
                raise self._error("sqrt needs parentheses", self._here())
            return self._atom().sqrt()
        if symbol == "(":
            value = self._sum()
            if self._take() != ")":
                raise self._error("a parenthesis is not closed", at)
            return value
        if symbol and (symbol[0].isdigit() or symbol[0] == "."):
            return ClosedForm.of(parse_decimal(symbol))
        raise self._error(f"{symbol!r} is not expected" if symbol else "it ends too early", at)

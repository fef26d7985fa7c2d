r"""LaTeX in ASCII, for terminals: `\frac{2\pi}{T+1}` becomes `2 pi/(T+1)`.

A reader of the part of LaTeX that claims are written in, no more; what it does not know it refuses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum, auto

from ropegeo.claims.texts import pieces
from ropegeo.errors import InvalidInputError

RELATIONS = {
    "le": "<=",
    "leq": "<=",
    "ge": ">=",
    "geq": ">=",
    "lt": "<",
    "gt": ">",
    "ne": "!=",
    "neq": "!=",
    "equiv": "==",
    "approx": "~=",
    "sim": "~",
    "ll": "<<",
    "gg": ">>",
    "in": "in",
    "notin": "not in",
    "subset": "within",
    "subseteq": "within",
    "to": "->",
    "rightarrow": "->",
    "mapsto": "->",
    "Rightarrow": "=>",
    "implies": "=>",
    "iff": "<=>",
    "Leftrightarrow": "<=>",
    "mid": "|",
    "nmid": "does not divide",
    "bmod": "mod",
    "cdot": "*",
    "times": "*",
    "ast": "*",
    "div": "/",
    "pm": "+-",
    "mp": "-+",
    "cup": "union",
    "cap": "intersected with",
    "setminus": "without",
    "forall": "for all",
    "exists": "there is",
    "land": "and",
    "lor": "or",
    "quad": "",
    "qquad": "",
}
LETTERS = (  # noqa: SIM905 - as a list it would be 37 lines
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
).split()
FUNCTIONS = (  # noqa: SIM905
    "cos sin tan cot arccos arcsin arctan cosh sinh tanh exp log ln min max inf sup lim limsup liminf gcd det deg dim "
    "arg sum prod Re Im"
).split()
SYMBOLS = {
    **{name: name.removeprefix("var") for name in LETTERS},
    "infty": "infinity",
    "ell": "l",
    "ldots": "...",
    "cdots": "...",
    "dots": "...",
    "prime": "'",
    "circ": "o",
    "partial": "d",
    "emptyset": "{}",
    "int": "integral",
}
OPENING = {"lfloor": "floor(", "lceil": "ceil(", "lvert": "|", "lVert": "||", "langle": "<", "lbrace": "{"}
CLOSING = {"rfloor": ")", "rceil": ")", "rvert": "|", "rVert": "||", "rangle": ">", "rbrace": "}"}
FENCES = {"|": "|", r"\|": "||", r"\Vert": "||", r"\vert": "|"}
"""Open and close alike, by turns."""
ACCENTS = ("bar", "overline", "hat", "widehat", "tilde", "widetilde", "vec", "dot", "underline")
FONTS = ("mathbb", "mathcal", "mathrm", "mathbf", "mathit", "mathsf", "boldsymbol")
WORDS = ("text", "textrm", "textit", "textbf", "mbox")
SIZES = (
    "left",
    "right",
    "big",
    "Big",
    "bigl",
    "bigr",
    "Bigl",
    "Bigr",
    "bigg",
    "Bigg",
    "biggl",
    "biggr",
    "displaystyle",
)
NAMES_OF_FRACTIONS = ("frac", "dfrac", "tfrac")
SPACES = (r"\,", r"\;", r"\:", r"\!", r"\ ", "~")

NO_BREAK = "\u00a0"
SHORT = 30
"""Formulas up to this length stay on one line."""
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[0-9]+(?:\.[0-9]+)?|\s+|.", re.DOTALL)
_SIMPLE = re.compile(r"-?(?:[A-Za-z]+|[0-9]+(?:\.[0-9]+)?)|\.\.\.|[*'o]")


class _Role(Enum):
    """What a part is to its neighbours."""

    ATOM = auto()
    FRACTION = auto()
    FUNCTION = auto()
    RELATION = auto()
    OPENING = auto()
    CLOSING = auto()
    SIGN = auto()


@dataclass
class _Part:
    text: str
    role: _Role
    gap: bool = False  # whether white space stood before it
    closed: bool = False  # whether nothing may be written onto its end: it has an index or a power


def plain(text: str) -> str:
    r"""A text of a claim without LaTeX; spaces in short formulas are `NO_BREAK`, so that lines do not end there.

    Raises:
        InvalidInputError: as `ascii_math`, or dollar signs that do not pair.

    Example:
        >>> text = plain(r"At most $1 - \cos\frac{2\pi}{T+1}$, since $\|t\alpha\| \le \frac{1}{T+1}$.")
        >>> text.replace(NO_BREAK, " ")
        'At most 1 - cos(2 pi/(T+1)), since ||t alpha|| <= 1/(T+1).'
    """
    return "".join(_held_together(ascii_math(piece.text)) if piece.is_math else piece.text for piece in pieces(text))


def _held_together(formula: str) -> str:
    return formula.replace(" ", NO_BREAK) if len(formula) <= SHORT else formula


def readable(text: str) -> str:
    """As `plain`, but a text that cannot be read is shown as it is (no claim holds any: a test sees to it)."""
    try:
        return plain(text)
    except InvalidInputError:
        return text


def ascii_math(latex: str) -> str:
    """A formula in ASCII.

    Raises:
        InvalidInputError: a command that is not in the tables above, or braces that do not match.
    """
    reader = _Reader(latex)
    parts = reader.parts(until=None)
    return _joined(parts)


class _Reader:
    """Reads a formula from left to right."""

    def __init__(self, latex: str) -> None:
        self._latex = latex
        self._tokens = _TOKEN.findall(latex)
        self._at = 0

    def parts(self, until: str | None) -> list[_Part]:
        """What stands before a closing mark, which is read too; None: all there is."""
        found: list[_Part] = []
        fences: dict[str, bool] = {}
        gap = False
        while (mark := self._next()) != until:
            if mark is None or mark == "}":
                raise self._refused("its braces do not match")
            if mark.isspace() or mark in SPACES:
                gap = True
                continue
            if mark[0] == "\\" and mark[1:] in SIZES:
                self._skip_empty_fence()
                continue
            if mark in ("^", "_", "'"):
                self._script(found, mark)
                continue
            if mark in FENCES:
                fences[mark] = not fences.get(mark, False)
                role = _Role.OPENING if fences[mark] else _Role.CLOSING
                found.append(_Part(FENCES[mark], role, gap))
            else:
                found.append(self._part(mark, gap))
            gap = False
        return found

    def _next(self) -> str | None:
        if self._at == len(self._tokens):
            return None
        self._at += 1
        return str(self._tokens[self._at - 1])

    def _refused(self, why: str) -> InvalidInputError:
        return InvalidInputError(f"LaTeX {self._latex!r}: {why}")

    def _skip_empty_fence(self) -> None:
        if self._tokens[self._at : self._at + 1] == ["."]:
            self._at += 1

    def _part(self, mark: str, gap: bool) -> _Part:
        if mark == "{":
            inner = self.parts(until="}")
            return replace(inner[0], gap=gap) if len(inner) == 1 else _Part(_joined(inner), _Role.ATOM, gap)
        if mark in ("(", "[", r"\{"):
            return _Part(mark[-1], _Role.OPENING, gap)
        if mark in (")", "]", r"\}"):
            return _Part(mark[-1], _Role.CLOSING, gap)
        if mark[0] == "\\":
            return self._command(mark[1:], gap)
        if mark[0].isalnum():
            return _Part(mark, _Role.ATOM, gap)
        if mark in "&#%$":
            raise self._refused(f"{mark} is not known")
        return _Part(mark, _Role.SIGN, gap)

    def _command(self, name: str, gap: bool) -> _Part:
        if name in RELATIONS:
            return _Part(RELATIONS[name], _Role.RELATION, gap)
        if name == "not":
            return _Part(f"not {self._negated()}", _Role.RELATION, gap)
        if name in SYMBOLS:
            return _Part(SYMBOLS[name], _Role.ATOM, gap)
        if name in FUNCTIONS:
            return _Part(name, _Role.FUNCTION, gap)
        if name in OPENING:
            return _Part(OPENING[name], _Role.OPENING, gap)
        if name in CLOSING:
            return _Part(CLOSING[name], _Role.CLOSING, gap)
        if name in NAMES_OF_FRACTIONS:
            above, below = self._argument(), self._argument()
            return _Part(f"{_bracketed(above, product=True)}/{_bracketed(below)}", _Role.FRACTION, gap)
        if name == "sqrt":
            return self._root(gap)
        if name == "binom":
            above, below = self._argument(), self._argument()
            return _Part(f"binomial({_joined(above)}, {_joined(below)})", _Role.ATOM, gap)
        if name == "pmod":
            return _Part(f"(mod {_joined(self._argument())})", _Role.RELATION, gap)
        if name in ACCENTS:
            return _Part(f"{name.removeprefix('wide')}({_joined(self._argument())})", _Role.ATOM, gap)
        if name in FONTS:
            return _Part(_joined(self._argument()), _Role.ATOM, gap)
        if name == "operatorname":
            return _Part(self._words(), _Role.FUNCTION, gap)
        if name in WORDS:
            return _Part(self._words().strip(), _Role.RELATION, gap)
        if name in ("%", "#", "&", "_"):
            return _Part(name, _Role.SIGN, gap)
        raise self._refused(f"\\{name} is not known")

    def _argument(self) -> list[_Part]:
        mark = self._next()
        while mark is not None and mark.isspace():
            mark = self._next()
        if mark is None or mark == "}":
            raise self._refused("an argument is missing")
        if mark == "{":
            return self.parts(until="}")
        if mark.isdigit() and len(mark) > 1:  # \frac12 is one half
            self._at -= 1
            self._tokens[self._at : self._at + 1] = list(mark)
            mark = str(self._next())
        return [self._part(mark, gap=False)]

    def _negated(self) -> str:
        """The relation that `not` strikes through."""
        mark = self._next() or ""
        if mark[:1] != "\\" or mark[1:] not in RELATIONS:
            raise self._refused("not stands before the name of a relation")
        return RELATIONS[mark[1:]]

    def _words(self) -> str:
        """The text in braces, as it is."""
        if self._next() != "{":
            raise self._refused("an argument is missing")
        words = ""
        while (mark := self._next()) != "}":
            if mark is None or mark[0] in "\\{":
                raise self._refused("only words stand in text")
            words += mark
        return words

    def _root(self, gap: bool) -> _Part:
        degree = ""
        if self._tokens[self._at : self._at + 1] == ["["]:
            self._at += 1
            degree = _joined(self.parts(until="]"))
        inner = _joined(self._argument())
        text = f"({inner})^(1/{degree})" if degree else f"sqrt({inner})"
        return _Part(text, _Role.ATOM, gap, closed=bool(degree))

    def _script(self, found: list[_Part], mark: str) -> None:
        """Write an index, a power or a prime onto the part before it."""
        if not found:
            raise self._refused(f"nothing stands before {mark}")
        base = found[-1]
        if base.role is _Role.FRACTION:
            base.text, base.role = f"({base.text})", _Role.ATOM
        base.closed = True
        if mark == "'":
            base.text += "'"
            return
        script = _joined(self._argument())
        if mark == "^" and script == "'":
            base.text += "'"
        elif _SIMPLE.fullmatch(script):
            base.text += mark + script
        else:
            base.text += f"^({script})" if mark == "^" else f"_{{{script}}}"


def _joined(parts: list[_Part]) -> str:
    """Parts side by side, with the spaces that keep them apart."""
    text = ""
    for k, part in enumerate(parts):
        before = parts[k - 1] if k else None
        after = parts[k + 1] if k + 1 < len(parts) else None
        shown = part.text
        if part.role is _Role.FRACTION and (
            (before is not None and before.role is _Role.FUNCTION) or (after is not None and _multiplies(after))
        ):
            shown = f"({shown})"
        text += (" " if before is not None and _apart(before, part, shown) else "") + shown
    return " ".join(text.split())


def _multiplies(part: _Part) -> bool:
    """Whether a part, written after another, is a factor."""
    return part.role in (_Role.ATOM, _Role.FRACTION, _Role.FUNCTION, _Role.OPENING)


def _apart(before: _Part, part: _Part, shown: str) -> bool:
    """Whether a space stands between two parts."""
    roles = (before.role, part.role)
    if _Role.RELATION in roles:
        return True
    if before.role is _Role.OPENING or part.role is _Role.CLOSING:
        return False
    if before.role is _Role.FUNCTION:
        return not shown.startswith("(") or (part.gap and before.closed)
    if part.gap:
        return True
    if _Role.SIGN in roles:
        return False
    if part.role is _Role.OPENING:
        return before.role is _Role.FRACTION or (shown[0].isalpha() and before.text[-1].isalnum())
    return part.role in (_Role.FUNCTION, _Role.FRACTION) or _would_merge(before, shown)


def _would_merge(before: _Part, shown: str) -> bool:
    """Whether two factors, written without a space, would read as one name: `2 pi`, but 2x and tp."""
    if not shown[0].isalnum():
        return False
    words = len(before.text) > 1 or len(shown) > 1
    coefficient = before.text.replace(".", "").isdigit() and len(shown) == 1
    return before.closed or (before.text[-1].isalnum() and words and not coefficient)


def _bracketed(parts: list[_Part], *, product: bool = False) -> str:
    """An argument of a fraction in brackets, unless it is one thing (or, above the bar, a product)."""
    text = _joined(parts)
    roles = {part.role for part in parts}
    loose = {_Role.RELATION, _Role.FUNCTION, _Role.FRACTION}
    signs = any(part.role is _Role.SIGN for part in parts)
    if len(parts) == 1 and not roles & loose and " " not in text:
        return text
    if _is_one_bracket(parts):
        return text
    if product and not roles & loose and not signs:
        return text
    return f"({text})"


def _is_one_bracket(parts: list[_Part]) -> bool:
    """Whether parts are one pair of brackets, or a function with one, as `cos(x)`; q(x), a product, is not."""
    head = re.escape(parts[0].text) if parts and parts[0].role is _Role.FUNCTION else "(?:floor|ceil)?"
    match = re.fullmatch(rf"{head}\((.*)\)", _joined(parts))
    if match is None:
        return False
    depth = 0
    for letter in match[1]:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return False
    return depth == 0

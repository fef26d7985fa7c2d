"""The text a user writes the two tasks in."""

import re

from ropegeo.errors import InvalidInputError
from ropegeo.tasks.oracles import LETTERS_THEN_DIGITS, MAX_INTEGER_DIGITS, Bigram, NumberToken, is_digits, shown

MAX_TOKENS = 100_000
MAX_TOKEN_CHARACTERS = 100

_NUMBER_CHARACTERS = frozenset("0123456789+-\u2212.,;")  # U+2212 is the minus sign that comes out of a PDF.


def _words(call: str, text: str, example: str) -> list[str]:
    if not isinstance(text, str):
        raise InvalidInputError(f"{call}: a {type(text).__name__} came; pass one text such as {example!r}")
    words = text.split()
    fault = ""
    if len(words) < 2:
        came = f"one token only, {shown(words[0])}," if words else "no token"
        fault = f"{came} came; write tokens with spaces between, such as {example!r}"
    elif len(words) > MAX_TOKENS:
        fault = f"{len(words)} tokens came; use at most {MAX_TOKENS}"
    elif (longest := max(words, key=len)) and len(longest) > MAX_TOKEN_CHARACTERS:
        where = f"token {words.index(longest) + 1} {shown(longest)}"
        fault = f"{where} has {len(longest)} characters; use at most {MAX_TOKEN_CHARACTERS}"
    if fault:
        raise InvalidInputError(f"{call}: {fault}")
    return words


def _symbol(where: str, text: str) -> NumberToken:
    """A letter or an integer from text; refuses what looks like a number and is no integer >= 1."""
    if is_digits(text):
        if len(text.lstrip("0")) > MAX_INTEGER_DIGITS:
            raise InvalidInputError(f"{where} has {len(text)} digits; use an integer of at most {MAX_INTEGER_DIGITS}")
        if int(text) == 0:
            raise InvalidInputError(f"{where} has the integer 0; write 1 or more")
        return int(text)
    if _NUMBER_CHARACTERS.issuperset(text) and re.search("[0-9]", text):
        raise InvalidInputError(f"{where} looks like a number but is no integer >= 1; write its digits only")
    return text


def parse_number_task(text: str) -> list[NumberToken]:
    """The number task in `text`: tokens with white space between, ASCII digits an integer, anything else a letter.

    What consists of digits, signs and punctuation (`-1`, `+2`, `1.5`, `3,`) is refused, since as a letter it would
    silently end a path; `1e5` and `x2` are letters. A single token is refused as well: mostly quotes are missing, or
    commas stand in place of spaces (the other functions do take a list of one).

    Raises:
        InvalidInputError: With the position, what came and the fix.
    """
    words = _words("parse_number_task", text, "C B A 1 4")
    return [_symbol(f"parse_number_task: token {k} {shown(word)}", word) for k, word in enumerate(words, 1)]


def _halves(where: str, body: str, known: set[str]) -> tuple[str, str]:
    """Left and right part of a bigram, by the first rule of `parse_letter_task` that applies."""
    if "," in body or ":" in body:
        parts = re.split("[,:]", body)
        cuts = [(parts[0], parts[1])] if len(parts) == 2 and all(parts) else []
    elif plain := LETTERS_THEN_DIGITS.fullmatch(body):
        cuts = [(plain[1], plain[2])]
    elif len(body) == 2:
        cuts = [(body[0], body[1])]
    else:
        cuts = [(body[:k], body[k:]) for k in range(1, len(body)) if body[k:] in known or body[:k] == body[k:]]
    if "(" in body or ")" in body or not cuts:
        raise InvalidInputError(f"{where} does not split into a left letter and a right part; write foo,bar")
    if len(cuts) > 1:
        raise InvalidInputError(f"{where} can be {' or '.join(map(','.join, cuts[:2]))}; write foo,bar to say which")
    return cuts[0]


def parse_letter_task(text: str) -> list[Bigram]:
    """The letter task in `text`: bigrams with white space between.

    The first rule that applies decides: `foo,bar` and `foo:2`, in brackets or not, split at their one separator;
    letters without digits, then digits (`C2`, `aa12`; not `C-1`, `C.5`), are a letter and an integer; two characters
    split in the middle; anything longer splits where its right part is the left letter of an earlier token or equals
    its own left part, if there is exactly one such place. A right part of ASCII digits is an integer.

    So digits may stand inside letters, but need the separator unless the last rule settles it: after `b1`, `a1b` is
    (a1, b), and `ca1` is always (ca, 1), also after `a1,3`: write `c,a1`. Separators and brackets cannot be letters.

    Raises:
        InvalidInputError: With the position, what came and the fix.

    Example:
        >>> parse_letter_task("foo:2 barfoo")
        [Bigram(left='foo', right=2), Bigram(left='bar', right='foo')]
    """
    bigrams: list[Bigram] = []
    known: set[str] = set()
    for position, word in enumerate(_words("parse_letter_task", text, "C2 B1 FC"), 1):
        where = f"parse_letter_task: token {position} {shown(word)}"
        body = word[1:-1] if word[0] == "(" and word[-1] == ")" else word
        left, right = (_symbol(where, half) for half in _halves(where, body, known))
        if isinstance(left, int):
            raise InvalidInputError(f"{where} has the integer {left} on the left; put the letter first, such as C2")
        bigrams.append(Bigram(left, right))
        known.add(left)
    return bigrams

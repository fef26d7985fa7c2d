"""The number task and the letter task: tokens, oracles and paths.

Number task: a token is a letter (`str`) or an integer (`int` >= 1), and a layer of Index lets a token read the token
that many positions back. Letter task: a token is a `Bigram`, and a layer of Retrieval lets a token read the token whose
left letter is its own right letter. Positions count from 1, as in the paper, in results and in messages.

Source: Urrutia et al., arXiv 2605.31558, appendices B and F. Departure: Definition F.2 (`proper`) looks at prefixes
only, which Retrieval does not preserve, so stacks of hops use `globally_proper` or the condition of `letter_path`.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, cast

from ropegeo.errors import IllDefinedTaskError, InvalidInputError

MAX_INTEGER_DIGITS = 18

# A sign or a point before the digits is more often a wrong integer (C-1, C.5) than the end of a letter.
LETTERS_THEN_DIGITS = re.compile("([^0-9]*[^0-9+\\-\u2212.])([0-9]+)")


def is_digits(text: str) -> bool:
    """Whether a text is ASCII digits and nothing else."""
    return text.isascii() and text.isdigit()


def shown(thing: object) -> str:
    """What came, escaped to one line and cut to a readable length."""
    text = repr(str(thing))
    return text if len(text) <= 40 else f"{text[:36]}...{text[0]}"


def _symbol_fault(symbol: object) -> str:
    """Why `symbol` is neither a letter nor an integer of a task, or "" if it is one."""
    if isinstance(symbol, str):
        if symbol and not is_digits(symbol):
            return ""
        # A letter "4" would read like the integer and end a path in silence.
        return f"is the text {shown(symbol)}; a letter is not empty and not all digits, an integer is an int"
    if isinstance(symbol, bool) or not isinstance(symbol, int):
        return f"is of type {type(symbol).__name__}; use a letter (str) or an integer (int)"
    in_bounds = 1 <= symbol < 10**MAX_INTEGER_DIGITS
    return "" if in_bounds else f"is an integer below 1 or of more than {MAX_INTEGER_DIGITS} digits; use 1 or more"


@dataclass(frozen=True, slots=True)
class Bigram:
    """A token of the letter task; positional on purpose, since `Bigram("C", 2)` reads as the token does.

    `str` gives a form that `parse_letter_task`, for letters it allows, reads back in any context: `C2`, `aa12` for a
    plain left letter and an integer, `FA` for two single characters, `foo,bar` for all others.

    Args:
        left: The letter under which the token is found.
        right: The letter it looks up, or the integer >= 1 that ends a path.

    Raises:
        InvalidInputError: If `left` is not a letter or `right` is neither a letter nor an integer >= 1.
    """

    left: str
    right: str | int

    def __post_init__(self) -> None:
        """Check both parts."""
        left: object = self.left  # callers without a type checker pass anything
        left_fault = _symbol_fault(left) if isinstance(left, str) else "is not a str; use a letter"
        for name, fault in (("left", left_fault), ("right", _symbol_fault(self.right))):
            if fault:
                raise InvalidInputError(f"Bigram: {name} {fault}")

    def __str__(self) -> str:
        """The canonical text of the token."""
        joined, right = f"{self.left}{self.right}", str(self.right)
        plain = LETTERS_THEN_DIGITS.fullmatch(joined)
        safe = plain[2] == right if plain else len(joined) == 2 and isinstance(self.right, str)
        return joined if safe else f"{self.left},{right}"


NumberToken: TypeAlias = str | int
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Path:
    """The hops from the last token to the answer.

    Args:
        positions: The positions visited, counted from 1, from the last token down to the answer.
        hops: The number of steps, one less than the number of positions.
        answer: The token at the end: a letter (number task) or a letter-integer `Bigram` (letter task).
    """

    positions: tuple[int, ...]
    hops: int
    answer: str | Bigram


def _bigram_fault(token: object) -> str:
    return "" if isinstance(token, Bigram) else f"is of type {type(token).__name__}; use Bigram(left, right)"


def _checked(call: str, tokens: Sequence[T], fault_of: Callable[[object], str]) -> list[T]:
    if isinstance(tokens, str):
        raise InvalidInputError(f"{call}: came as the text {shown(tokens)}; parse it first (parse_number_task, ...)")
    for position, token in enumerate(tokens, 1):
        if fault := fault_of(token):
            raise InvalidInputError(f"{call}: token {position} {fault}")
    return list(tokens)


def _is_letter_task(tokens: Sequence[object]) -> bool:
    return len(tokens) > 0 and isinstance(tokens[0], Bigram)


def reflexive(tokens: Sequence[T]) -> list[T]:
    """Output = input, for either task."""
    return _checked("reflexive", tokens, _bigram_fault if _is_letter_task(tokens) else _symbol_fault)


def index(tokens: Sequence[NumberToken]) -> list[NumberToken]:
    """One layer of Index: an integer i at j outputs token j - i if that is a letter; all others output themselves.

    An integer that points before the first token outputs itself too. A built head does something else there, so
    compare the two only where `in_range` holds.
    """
    row = _checked("index", tokens, _symbol_fault)
    state = list(row)
    for position, token in enumerate(row, 1):
        if isinstance(token, int) and token < position and isinstance(row[position - token - 1], str):
            state[position - 1] = row[position - token - 1]
    return state


def in_range(tokens: Sequence[NumberToken]) -> list[bool]:
    """Whether each position of a number task is a letter or an integer that points at a token (i <= j - 1)."""
    row = _checked("in_range", tokens, _symbol_fault)
    return [isinstance(token, str) or token < position for position, token in enumerate(row, 1)]


class _Lookups:
    """What each token of a letter task looks up.

    `source` holds for each token the latest position at or before it whose left letter it looks up (0: none; a
    letter-integer: its own), `first` the first position of each left letter, `clash` the first one with another token.
    """

    def __init__(self, row: list[Bigram]) -> None:
        self.row = row
        self.source: list[int] = []
        self.first: dict[str, int] = {}
        self.clash: dict[str, int] = {}
        latest: dict[str, int] = {}
        for position, token in enumerate(row, 1):
            if row[self.first.setdefault(token.left, position) - 1] != token:
                self.clash.setdefault(token.left, position)
            latest[token.left] = position
            self.source.append(position if isinstance(token.right, int) else latest.get(token.right, 0))

    def fault(self, position: int, seen: int) -> str:
        """Why the lookup is not well defined when the first `seen` tokens count for uniqueness, or ""."""
        token = self.row[position - 1]
        if isinstance(token.right, int):
            return ""
        what = f"position {position} ({shown(token)}) looks up left letter {shown(token.right)}, which"
        if self.source[position - 1] == 0:
            return f"{what} no token at or before it has; put such a token before it"
        if self.clash.get(token.right, math.inf) > seen:
            return ""
        pair = (self.first[token.right], self.clash[token.right])
        found = " and ".join(f"{shown(self.row[k - 1])} at {k}" for k in pair)
        return f"{what} has different tokens ({found}); make them equal"


def _retrieve(call: str, tokens: Sequence[Bigram]) -> tuple[list[Bigram], str]:
    """One layer of Retrieval in which improper positions keep their token, and what is wrong at the first of them."""
    lookups = _Lookups(_checked(call, tokens, _bigram_fault))
    faults = [lookups.fault(position, position) for position in range(1, len(tokens) + 1)]
    looked_up = zip(lookups.row, lookups.source, faults, strict=True)
    state = [token if fault else lookups.row[source - 1] for token, source, fault in looked_up]
    return state, next(filter(None, faults), "")


def retrieval(tokens: Sequence[Bigram]) -> list[Bigram]:
    """One layer of Retrieval: a letter-letter token outputs the earlier or own token that it looks up.

    That is the token whose left letter equals its right letter. A letter-integer token outputs itself.

    Raises:
        IllDefinedTaskError: If the input is not `proper`; the message names the first position where it is not.

    Example:
        >>> " ".join(map(str, retrieval([Bigram("C", 2), Bigram("F", "C"), Bigram("G", "F")])))
        'C2 C2 FC'
    """
    state, fault = _retrieve("retrieval", tokens)
    if fault:
        raise IllDefinedTaskError(f"retrieval: {fault}")
    return state


def proper(tokens: Sequence[Bigram]) -> bool:
    """Definition F.2: every lookup from j finds a token at some k <= j, and all that it finds there are equal."""
    return not _retrieve("proper", tokens)[1]


def globally_proper(tokens: Sequence[Bigram]) -> bool:
    """As `proper`, with all tokens of the *whole* sequence that have the left letter equal.

    Retrieval preserves this. A token (L, R) of the image stands in the input at some k <= j, and there R is found at
    or before k, so position k of the image holds a token with left letter R. Tokens of the image are tokens of the
    input, so those with left letter R are still all equal.
    """
    lookups = _Lookups(_checked("globally_proper", tokens, _bigram_fault))
    return not any(lookups.fault(position, len(tokens)) for position in range(1, len(tokens) + 1))


def number_path(tokens: Sequence[NumberToken]) -> Path:
    """From the last token hop back by the integer that stands there, until a letter (0 hops if it is one).

    Why a stack of Index layers gives this answer: let p_0 = n > .. > p_h be the positions and C the letter at p_h.
    Claim: after t layers p_s holds C if t >= h - s, and its own integer before. For t = 0 that is the path. A letter
    stays, and the integer at p_s reads p_{s+1} only, which is a letter exactly from t = h - s - 1 on, so p_s takes C in
    the next layer. Nothing else is read: off-path positions may do anything. Hence the last position keeps its integer
    for t < h and holds the answer for t >= h. (Index waits where Retrieval walks: see `letter_path`.)

    Raises:
        InvalidInputError: If there is no token, or one is neither a letter nor an integer >= 1.
        IllDefinedTaskError: If the path reaches an integer that points before the first token.

    Example:
        >>> number_path(["C", "B", "A", 1, 4, 1, 3, 2, 1])
        Path(positions=(9, 8, 6, 5, 1), hops=4, answer='C')
    """
    row = _checked("number_path", tokens, _symbol_fault)
    if not row:
        raise InvalidInputError("number_path: no tokens came; give at least one letter")
    positions = [len(row)]
    while isinstance(token := row[positions[-1] - 1], int):
        position = positions[-1]
        if token >= position:
            fix = f"an integer of at most {position - 1}" if position > 1 else "a letter"
            raise IllDefinedTaskError(
                f"number_path: position {position} holds {token}, which points before the first token; use {fix} there"
            )
        positions.append(position - token)
    return Path(positions=tuple(positions), hops=len(positions) - 1, answer=token)


def letter_path(tokens: Sequence[Bigram]) -> Path:
    """From the last token hop to the token whose left letter is the current right letter, until a letter-integer.

    Of several equal tokens the latest one before the current position is taken: that accepts the most inputs.

    Why a stack of Retrieval layers gives this answer: let p_0 = n > .. > p_h be the positions, x_s the token at p_s.
    Let all tokens of the sequence with a left letter looked up on the path be equal, and let off-path positions, the
    improper ones too, only ever output some token of the input. Claim: after t layers p_s holds x_min(s+t, h). For
    t = 0 that is the path. If s + t >= h, p_s holds the letter-integer x_h, which stays. Otherwise p_s looks up the
    right letter of x_{s+t}. Position p_{s+1} < p_s holds x_{s+t+1}, which has it as left letter, and whatever else is
    visible is a token of the input, hence equal to x_{s+t+1} if it has that left letter too. So the lookup is well
    defined and gives x_{s+t+1}. Hence the last position holds x_t after t layers, and the answer from t = h on.
    The path ends: L != R, so the token found is a different one and stands strictly before.

    Raises:
        InvalidInputError: If there is no token, or one is not a `Bigram`.
        IllDefinedTaskError: At the position whose token finds itself, finds none, or looks up a left letter for which
            the sequence has two different tokens, before or after it.

    Example:
        >>> letter_path([Bigram("C", 2), Bigram("F", "C"), Bigram("G", "F")])
        Path(positions=(3, 2, 1), hops=2, answer=Bigram(left='C', right=2))
    """
    row = _checked("letter_path", tokens, _bigram_fault)
    if not row:
        raise InvalidInputError("letter_path: no tokens came; give at least one letter-integer bigram")
    lookups = _Lookups(row)
    positions = [len(row)]
    while isinstance((token := row[positions[-1] - 1]).right, str):
        fault = lookups.fault(positions[-1], len(row))
        if token.left == token.right:
            fault = f"position {positions[-1]} ({shown(token)}) finds itself and never ends; change its right letter"
        if fault:
            raise IllDefinedTaskError(f"letter_path: {fault}")
        positions.append(lookups.source[positions[-1] - 1])
    return Path(positions=tuple(positions), hops=len(positions) - 1, answer=token)


def well_defined(tokens: Sequence[NumberToken] | Sequence[Bigram]) -> list[bool]:
    """Whether the tokens up to each position have a path, for either task.

    Only the prefix counts, because that is all a causal stack sees there: where this is True, `iterate` reaches the
    answer of `tokens[:j]` at position j.
    """
    # until[j]: the path from j holds for every prefix shorter than this (0: for none). One pass, no walking.
    until: list[float] = []
    if not _is_letter_task(tokens):
        numbers = _checked("well_defined", cast(Sequence[NumberToken], tokens), _symbol_fault)
        for position, number in enumerate(numbers, 1):
            ends = isinstance(number, str)
            until.append(math.inf if ends else until[-int(number)] if int(number) < position else 0)
    else:
        lookups = _Lookups(_checked("well_defined", cast(Sequence[Bigram], tokens), _bigram_fault))
        for token, source in zip(lookups.row, lookups.source, strict=True):
            if isinstance(token.right, int):
                until.append(math.inf)
            elif source == 0 or token.left == token.right:
                until.append(0)
            else:
                until.append(min(lookups.clash.get(token.right, math.inf), until[source - 1]))
    return [end > position for position, end in enumerate(until, 1)]


def iterate(oracle: Callable[[Sequence[T]], list[T]], tokens: Sequence[T], hops: int) -> list[list[T]]:
    """The states after 0, 1, .., `hops` layers of an oracle: hops + 1 rows.

    A position at which `retrieval` is improper keeps its token in that layer instead of stopping the stack, as `index`
    does out of range. It is a token of the input, which is all that the proof in `letter_path` asks of off-path
    positions; `well_defined` flags the positions that can be read.

    Raises:
        InvalidInputError: If `hops` is not an integer >= 0, or the tokens are not those of the oracle's task.
    """
    came: object = hops
    if isinstance(came, bool) or not isinstance(came, int) or hops < 0:
        raise InvalidInputError(f"iterate: hops is {shown(hops)}; use an integer of 0 or more")
    states = [reflexive(tokens)]
    for _ in range(hops):
        if oracle is retrieval:
            states.append(cast(list[T], _retrieve("retrieval", cast(list[Bigram], states[-1]))[0]))
        else:
            states.append(oracle(states[-1]))
    return states

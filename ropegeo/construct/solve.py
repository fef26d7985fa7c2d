r"""Stacks that solve the two tasks: Index layers for numbers, Retrieval layers for letters.

The vocabulary is that of the input. Number: T_Index on the given plane; `ropegeo.tasks.number_path` proves that h
layers give the answer where every layer computes Index on the path, which `ropegeo.construct.index` proves for in-range
positions. Letter: T_Retrieval with omega = 2 pi/A and, if no angle is given, theta = omega/(4 n), so that
(2n - 3) theta < omega and every match beats every mismatch (`ropegeo.construct.retrieval`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ropegeo.construct.built import BuiltHead, Token
from ropegeo.construct.index import token_index_head
from ropegeo.construct.retrieval import retrieval_head
from ropegeo.construct.transformer import MAX_LENGTH, TIE_TOLERANCE, Attention, LayerOutput, run_stack
from ropegeo.errors import InvalidInputError
from ropegeo.exact import ClosedForm
from ropegeo.spectrum import RopeSpectrum
from ropegeo.tasks import Bigram, NumberToken, Path, letter_path, number_path, well_defined


@dataclass(frozen=True, kw_only=True)
class Solution:
    """A task input and what a stack of built heads made of it.

    Attributes:
        tokens: the input.
        head: the head that every layer uses.
        layers: output of each layer.
        path: the path of the oracle.
        readable: whether each position has a well-defined path of its own; where not, its states mean nothing.
    """

    tokens: tuple[Token, ...]
    head: BuiltHead
    layers: tuple[LayerOutput, ...]
    path: Path
    readable: tuple[bool, ...]

    @property
    def answer(self) -> Token:
        """What the last position holds after the last layer."""
        return self.states[-1][-1]

    @property
    def correct(self) -> bool:
        """Whether that is the oracle's answer."""
        return self.answer == self.path.answer

    @property
    def states(self) -> tuple[tuple[Token, ...], ...]:
        """Tokens after 0, 1, .. layers."""
        return (self.tokens, *(layer.tokens for layer in self.layers))


def solve_number(
    tokens: Sequence[NumberToken],
    *,
    spectrum: RopeSpectrum,
    plane: int = 0,
    depth: int | None = None,
    attention: Attention = "hard",
    beta: float = 1.0,
) -> Solution:
    """Solve a number task with a stack of T_Index layers.

    Args:
        tokens: letters and integers.
        spectrum: the rotation.
        plane: the plane the heads use.
        depth: number of layers, at least the hops of the input, which is the default.
        attention: `hard` or `softmax`.
        beta: logit scale.

    Raises:
        IllDefinedTaskError: no well-defined path; the position where it breaks.
        InvalidInputError: too few layers, too many tokens.
    """
    path = number_path(tokens)
    _check(tokens, path, depth)
    numbers = sorted({token for token in tokens if isinstance(token, int)}) or [1]  # T_Index has at least one
    head = token_index_head(
        spectrum,
        letters=list(dict.fromkeys(token for token in tokens if isinstance(token, str))),
        integers=numbers,
        planes=(plane,),
        beta=beta,
    )
    return _solution(head, tokens, path, depth, attention)


def solve_letter(
    tokens: Sequence[Bigram],
    *,
    angle: ClosedForm | None = None,
    depth: int | None = None,
    attention: Attention = "hard",
    beta: float = 1.0,
) -> Solution:
    """Solve a letter task with a stack of T_Retrieval layers.

    Args:
        tokens: bigrams.
        angle: radians per position of the one plane used; omega/(4 n) if not given.
        depth: as in `solve_number`.
        attention: as in `solve_number`.
        beta: as in `solve_number`.

    Raises:
        IllDefinedTaskError: no well-defined path; the position where it breaks.
        InvalidInputError: too few layers, too many tokens.
    """
    path = letter_path(tokens)
    _check(tokens, path, depth)
    rights = (token.right for token in tokens if isinstance(token.right, str))
    letters = list(dict.fromkeys([token.left for token in tokens] + list(rights)))
    if len(letters) < 2:  # a code needs a second letter to be told from
        letters.append(letters[0] + "'")
    if angle is None:
        angle = 2 * ClosedForm.pi() * Fraction(1, 4 * len(letters) * len(tokens))
    head = retrieval_head(
        RopeSpectrum.from_angle(angle),
        letters=letters,
        integers=sorted({token.right for token in tokens if isinstance(token.right, int)}),
        beta=beta,
        tokens=list(dict.fromkeys(tokens)),
    )
    if depth is None or depth > 0:
        _check_resolution(tokens, head)
    return _solution(head, tokens, path, depth, attention)


def _check_resolution(tokens: Sequence[Bigram], head: BuiltHead) -> None:
    """Refuse an input whose (letter, integer) tokens need a difference of logits that float64 does not resolve.

    Such a token tells itself from another with the same left letter by 1 - cos(theta) only.
    """
    lefts = {token.left: token for token in tokens}
    if any(lefts[token.left] != token for token in tokens):
        gap = 2 * math.sin(float(head.recipe.spectrum.inv_freq[0]) / 2) ** 2
        if gap < 10 * TIE_TOLERANCE:
            raise InvalidInputError(
                f"solve: tokens with equal left letters but different right parts differ by 1 - cos(angle) = {gap:.1e},"
                " which float64 does not resolve; use a larger angle, or fewer tokens and letters"
            )


def _check(tokens: Sequence[Token], path: Path, depth: int | None) -> None:
    if len(tokens) > MAX_LENGTH:
        raise InvalidInputError(f"solve: {len(tokens)} tokens; at most {MAX_LENGTH} are run")
    if depth is not None and depth < path.hops:
        raise InvalidInputError(f"solve: the input has {path.hops} hops, more than the {depth} layers given")


def _solution(
    head: BuiltHead, tokens: Sequence[Token], path: Path, depth: int | None, attention: Attention
) -> Solution:
    layers = path.hops if depth is None else depth
    outputs = run_stack([head] * layers, tokens, attention=attention) if layers else []
    return Solution(
        tokens=tuple(tokens),
        head=head,
        layers=tuple(outputs),
        path=path,
        readable=tuple(well_defined(tokens)),  # type: ignore[arg-type]
    )

"""Transformers that run: a built head as a one-layer model, and stacks of them that hop.

A stack composes functions, as the paper's f_NUM = Reflexive^(l-h) . Index^h does: each layer's output is read out to a
token and embedded again before the next. (A linear read-in cannot undo x + a of T_Index; the read-out is the
non-linearity that a trained model has in its MLP.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Float

from ropegeo._arrays import FloatArray, frozen
from ropegeo.construct.built import BuiltHead, Token
from ropegeo.errors import InvalidInputError

Attention: TypeAlias = Literal["hard", "softmax"]
ATTENTIONS: tuple[Attention, ...] = ("hard", "softmax")

MAX_LENGTH = 4096
TIE_TOLERANCE = 1e-13
"""Logits closer than this, per unit of beta, share hard attention: the error of a float64 logit decides nothing."""
_BLOCK = 256


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerOutput:
    """What one layer made of a sequence.

    Attributes:
        tokens: output token of every position.
        margins: output score of that token minus the best other, shape (n,).
        weight: attention on the most attended position, shape (n,).
    """

    tokens: tuple[Token, ...]
    margins: Float[FloatArray, " n"]
    weight: Float[FloatArray, " n"]

    def __post_init__(self) -> None:
        for name in ("margins", "weight"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float64))


def attention_weights(
    logits: Float[FloatArray, "rows n"], attention: Attention, *, beta: float
) -> Float[FloatArray, "rows n"]:
    """Rows of attention from rows of logits; entries of -infinity get exactly 0.

    Args:
        logits: one row per query, -infinity where a key is not visible.
        attention: `hard` (equal shares for the positions within `TIE_TOLERANCE * beta` of the top) or `softmax`.
        beta: logit scale, the unit of the tolerance.

    Raises:
        InvalidInputError: an unknown rule.
    """
    top = logits.max(axis=-1, keepdims=True)
    if attention == "hard":
        shares = (logits >= top - TIE_TOLERANCE * beta).astype(np.float64)
    elif attention == "softmax":
        shares = np.exp(logits - top)
    else:
        raise InvalidInputError(f"attention {attention!r} is unknown; use one of {', '.join(ATTENTIONS)}")
    weights: FloatArray = shares / shares.sum(axis=-1, keepdims=True)
    return weights


def run_layer(built: BuiltHead, tokens: Sequence[Token], *, attention: Attention = "hard") -> LayerOutput:
    """Run a built head on a sequence: embed, attend, add the residual if it has one, read out.

    Args:
        built: a head with its vocabulary.
        tokens: input, each one in the vocabulary; at most `MAX_LENGTH`.
        attention: `hard` or `softmax` (at the head's own beta).

    Raises:
        InvalidInputError: a token outside the vocabulary, an empty or too long input, an unknown attention rule.

    Accuracy: attention is decided on float64 logits; see `TIE_TOLERANCE`.

    Example:
        >>> from ropegeo.construct.index import token_index_head
        >>> from ropegeo.spectrum import preset
        >>> head = token_index_head(preset("paper"), letters="AB", integers=(1, 2))
        >>> run_layer(head, ["A", "B", 2]).tokens
        ('A', 'B', 'A')
    """
    if not 0 < len(tokens) <= MAX_LENGTH:
        raise InvalidInputError(f"run_layer: {len(tokens)} tokens; give between 1 and {MAX_LENGTH}")
    row = {token: index for index, token in enumerate(built.tokens)}
    unknown = [position for position, token in enumerate(tokens, start=1) if token not in row]
    if unknown:
        raise InvalidInputError(
            f"run_layer: token {str(tokens[unknown[0] - 1])!r} at position {unknown[0]} is not in the vocabulary"
        )
    states = built.embedding[[row[token] for token in tokens]]
    head, spectrum = built.head, built.head.spectrum
    positions = np.arange(len(tokens))
    queries = spectrum.rotate(head.queries(states), positions)
    keys = spectrum.rotate(head.keys(states), positions)
    values = states @ head.w_v.T @ head.w_o.T
    outputs = states.copy() if built.residual else np.zeros_like(states)
    weight = np.empty(len(tokens))
    for start in range(0, len(tokens), _BLOCK):  # rows in blocks, so that no n x n matrix is held
        rows = slice(start, start + _BLOCK)
        logits = head.logit_scale * (queries[rows] @ keys.T)
        logits[positions[rows, None] < positions] = -np.inf
        shares = attention_weights(logits, attention, beta=built.recipe.beta)
        outputs[rows] += shares @ values
        weight[rows] = shares.max(axis=-1)
    scores = outputs @ built.unembedding.T
    best = scores.argmax(axis=-1)
    top = scores[positions, best]
    scores[positions, best] = -np.inf
    second = scores.max(axis=-1) if len(built.tokens) > 1 else np.full(len(tokens), -np.inf)
    return LayerOutput(tokens=tuple(built.tokens[index] for index in best), margins=top - second, weight=weight)


def run_stack(
    layers: Sequence[BuiltHead], tokens: Sequence[Token], *, attention: Attention = "hard"
) -> list[LayerOutput]:
    """Run layers one after the other on their token outputs; one result per layer.

    Raises:
        InvalidInputError: as `run_layer`, or no layers.
    """
    if not layers:
        raise InvalidInputError("run_stack: needs at least one layer")
    outputs: list[LayerOutput] = []
    state: Sequence[Token] = tokens
    for built in layers:
        outputs.append(run_layer(built, state, attention=attention))
        state = outputs[-1].tokens
    return outputs

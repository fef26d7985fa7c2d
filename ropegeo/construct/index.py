r"""Index: the head that counts. It attends to the token a fixed number of positions back.

The weights. Embed token sigma as x = (onehot(sigma), 1), width |Sigma| + 1. In plane k let v_k be a non-zero 2-vector
with scale * |v_k|^2 = beta * a_k, a_k >= 0, sum a_k = 1, and rho_k the rotation by theta_k. For an offset s

    W_K x = v,      W_Q x = rho^(-s) v,      W_V = 2 on letter coordinates, 0 elsewhere,      output x + a.

The peak. A query at i is rotated by rho^i, a key at j by rho^j, and rotations preserve products, so with d = i - j

    logit(d) = scale * sum_k < rho_k^(i-s) v_k, rho_k^j v_k > = beta * sum_k a_k cos((d - s) theta_k).

Each cosine is at most 1 with equality iff (d - s) theta_k is a multiple of 2 pi. At d = s all are 1, so the logit has
its maximum beta there. It is the only maximum over all integers d iff no t != 0 makes t*theta_k/(2 pi) an integer for
every plane with a_k > 0; one plane with irrational theta_k/(2 pi) suffices. A rational or algebraic theta_k > 0 gives
an irrational quotient, because pi is transcendental; theta irrational is *not* enough (theta = 2 pi/5 ties every 5).
If theta_k/(2 pi) = p_k/q_k for all planes, the head ties first at |t| = lcm(q_k).

Phases. W_Q x = rho^(-s) P v, with P a rotation of plane k by phi_k, makes the logit
beta * sum_k a_k cos((d - s) theta_k + phi_k). Its peak is no longer at d = s for every length; `ropegeo.optimal` picks
a_k and phi_k so that it is, by the largest margin possible, for all distances up to a length.

The read-out. With weight w on the target, which holds a letter, the letter gets 2w; a letter query adds 1 to its own
coordinate (its target is itself, s = 0) and an integer query adds 1 to the coordinate of the integer. Under hard
attention w = 1: the letter wins with 2 against 1. If the target holds an integer its value is 0 and the token stays.

Source: Urrutia et al., arXiv 2605.31558, appendix F.2 (one plane, token-conditional); many planes and the fixed offset
are docs/MATHEMATICS.md, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ropegeo._arrays import FloatArray
from ropegeo.construct.built import BuiltHead, Token, one_hot
from ropegeo.construct.recipe import Recipe
from ropegeo.errors import InvalidInputError
from ropegeo.heads import Head
from ropegeo.spectrum import RopeSpectrum

DEFAULT_LETTERS = ("a", "b", "c", "d")


def index_head(
    spectrum: RopeSpectrum,
    *,
    offset: int,
    planes: Sequence[int] = (0,),
    weights: Sequence[float] = (),
    beta: float = 1.0,
    letters: Sequence[str] = DEFAULT_LETTERS,
    directions: Sequence[complex] | None = None,
    phases: Sequence[float] = (),
) -> BuiltHead:
    """The head that looks `offset` positions back whatever the query token: see the module for weights and proof.

    Args:
        spectrum: the rotation.
        offset: distance aimed at, >= 0.
        planes: planes used.
        weights: share of each plane, normalised to sum 1; equal if not given.
        beta: logit of a perfect match.
        letters: vocabulary.
        directions: unit complex number per plane, the direction of v; the first axis if not given.
        phases: radians per plane by which the query is turned on; 0 if not given.

    Raises:
        InvalidInputError: a value outside these ranges.

    Example:
        >>> from ropegeo.spectrum import preset
        >>> head = index_head(preset("paper"), offset=3)
        >>> int(head.profile.logit(np.arange(10)).argmax())
        3
    """
    return build_index(
        Recipe(
            mode="index",
            spectrum=spectrum,
            planes=tuple(planes),
            weights=tuple(weights),
            beta=beta,
            offset=offset,
            letters=tuple(letters),
            directions=None if directions is None else np.asarray(directions, dtype=np.complex128),
            phases=tuple(phases),
        )
    )


def token_index_head(
    spectrum: RopeSpectrum,
    *,
    letters: Sequence[str],
    integers: Sequence[int],
    planes: Sequence[int] = (0,),
    weights: Sequence[float] = (),
    beta: float = 1.0,
    directions: Sequence[complex] | None = None,
    phases: Sequence[float] = (),
) -> BuiltHead:
    """T_Index of the paper: an integer i looks i positions back, a letter looks at itself.

    W_Q x = v for a letter and rho^(-i) v for integer i; all else as in `index_head`, whose proof holds for each query
    token with s = i or s = 0. It equals Index at every in-range position (i <= positions before it). Out of range no
    position realises the offset and the head attends to whichever visible one maximises the cosine.

    Args:
        spectrum: the rotation.
        letters: ALPH.
        integers: INT, each >= 1.
        planes: as in `index_head`.
        weights: as in `index_head`.
        beta: as in `index_head`.
        directions: as in `index_head`.
        phases: as in `index_head`; the same for every query.

    Raises:
        InvalidInputError: a value outside these ranges, or no integer.
    """
    if not integers:
        raise InvalidInputError("token_index_head: needs at least one integer; use index_head for a fixed offset")
    return build_index(
        Recipe(
            mode="token_index",
            spectrum=spectrum,
            planes=tuple(planes),
            weights=tuple(weights),
            beta=beta,
            letters=tuple(letters),
            integers=tuple(integers),
            directions=None if directions is None else np.asarray(directions, dtype=np.complex128),
            phases=tuple(phases),
        )
    )


def build_index(recipe: Recipe) -> BuiltHead:
    """The matrices of an `index`, `token_index` or `reflexive` recipe."""
    tokens: tuple[Token, ...] = (*recipe.letters, *recipe.integers)
    count, letters = len(tokens), len(recipe.letters)
    identity = one_hot(count)
    embedding = np.hstack([identity, np.ones((count, 1))])
    w_k = np.zeros((recipe.spectrum.head_dim, count + 1))
    w_k[:, count] = recipe.spectrum.from_planes(recipe.vector())
    # The query acts on the one-hot part, the key on the constant: both are linear maps of the embedding.
    offsets = [recipe.offset] * letters + list(recipe.integers)
    w_q = np.zeros_like(w_k)
    turned = {offset: turned_back(recipe, offset) for offset in set(offsets)}
    w_q[:, :count] = np.stack([turned[offset] for offset in offsets], axis=1)
    value = np.zeros((count + 1, count + 1))
    value[range(letters), range(letters)] = 2.0
    return BuiltHead(
        recipe=recipe,
        head=Head(w_q=w_q, w_k=w_k, w_v=value, w_o=np.eye(count + 1), spectrum=recipe.spectrum, scale=recipe.scale),
        tokens=tokens,
        embedding=embedding,
        unembedding=np.hstack([identity, np.zeros((count, 1))]),
        residual=True,
    )


def turned_back(recipe: Recipe, displacement: int) -> FloatArray:
    """rho^(-displacement) P v as a vector of width head_dim, phases exact for any displacement."""
    turned = recipe.vector()
    used = list(recipe.planes)
    turned[used] *= recipe.query_turns() * np.exp(-1j * recipe.spectrum.phases_at(displacement)[used])
    return recipe.spectrum.from_planes(turned)

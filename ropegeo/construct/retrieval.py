r"""Retrieval: the head that matches. A bigram (L, R) attends to the token whose left letter is R.

The weights. Tokens are bigrams (L, R), L a letter, R a letter or an integer; embed one-hot. Number the letters
phi = 1..A, put omega = 2 pi/A, and let v, theta_k, a_k, rho_k be as for Index:

    W_K x = rho(omega)^(-phi(L)) v,    W_V = identity,    output a (no residual),
    W_Q x = rho(omega)^(-phi(R)) v  for (letter, letter),   rho(omega)^(-phi(L)) v  for (letter, integer).

The logit. With shift = phi(L_key) - phi(query) and d = i - j,

    logit = beta * sum_k a_k cos(shift * omega + (d - c) theta_k),       c = 0 for the paper's head.

The peak, one plane. Let n positions be visible, 0 <= d <= n - 1, and (n - 1) theta < omega. A match scores
cos((d - c) theta); a token with another letter scores at most cos(omega - |x|) with x the largest |(d' - c) theta| on
its side. For c = 0 the smallest match is at d = n - 1 or n - 2 and the largest competitor, at the other of the two,
is one letter short (shift -1). Over all inputs whose tokens with the answer's left letter are the answer

    worst(n) = min( cos((n-2) theta) - cos(omega - (n-1) theta),  cos((n-1) theta) - cos(omega - (n-2) theta) ),

positive iff (2n - 3) theta < omega: cosine falls on [0, pi], (n - 2) theta < omega - (n - 1) theta is that condition,
and so is the second difference's. Then every match beats every mismatch, at whatever distances they stand.

Centred. A *letter-letter* query turned by a further rho(theta)^(-c), c = (n0 - 1)/2, halves the largest |(d - c)
theta|: positive at n = n0 iff (n0 - 1) theta < omega. Letter-integer queries stay as they are: turned, they would
lose themselves; at c = 0 they win by at least 1 - cos(omega - (n - 1) theta).

Codes. Plane k may turn by m_k omega a letter, m_k a whole number, so that
logit = beta * sum_k a_k cos(shift m_k omega + (d - c) theta_k). The m_k = 1..(A-1)/2 on planes of equal angle are the
corners of a regular simplex; `ropegeo.optimal` chooses planes, weights and m_k.

Source: Urrutia et al., arXiv 2605.31558, appendix F.2; worst case, centring and many planes: docs/MATHEMATICS.md,
sections 3 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ropegeo._arrays import ComplexArray
from ropegeo.construct.built import BuiltHead, one_hot
from ropegeo.construct.recipe import Recipe
from ropegeo.heads import Head
from ropegeo.spectrum import RopeSpectrum
from ropegeo.tasks import Bigram

DEFAULT_INTEGERS = tuple(range(1, 9))


def retrieval_head(
    spectrum: RopeSpectrum,
    *,
    letters: Sequence[str],
    integers: Sequence[int] = DEFAULT_INTEGERS,
    planes: Sequence[int] = (0,),
    weights: Sequence[float] = (),
    beta: float = 1.0,
    centre_length: int | None = None,
    directions: Sequence[complex] | None = None,
    multipliers: Sequence[int] = (),
    tokens: Sequence[Bigram] | None = None,
) -> BuiltHead:
    """The head that looks up the right letter of its query: see the module for weights and proof.

    Args:
        spectrum: the rotation.
        letters: ALPH, at least two, numbered in this order.
        integers: right parts that mark the end of a path.
        planes: planes used; slow ones, since (n - 1) theta must stay below 2 pi/A.
        weights: share of each plane, normalised to sum 1; equal if not given.
        beta: logit of a perfect match.
        centre_length: centre the head on inputs of this length; None for the paper's head.
        directions: unit complex number per plane, the direction of v.
        multipliers: steps of 2 pi/A between neighbouring letters in each plane; 1 if not given.
        tokens: the bigrams of the vocabulary; all A*A + A*m if not given.

    Raises:
        InvalidInputError: a value outside these ranges, or a vocabulary too large for matrices.
    """
    recipe = Recipe(
        mode="retrieval",
        spectrum=spectrum,
        planes=tuple(planes),
        weights=tuple(weights),
        beta=beta,
        letters=tuple(letters),
        integers=tuple(integers),
        bigrams=tuple(tokens or ()),
        centre_length=centre_length,
        directions=None if directions is None else np.asarray(directions, dtype=np.complex128),
        multipliers=tuple(multipliers),
    )
    return build_retrieval(recipe)


def build_retrieval(recipe: Recipe) -> BuiltHead:
    """The matrices of a `retrieval` recipe."""
    tokens = recipe.bigrams
    if not tokens:
        rights: tuple[str | int, ...] = (*recipe.letters, *recipe.integers)
        one_hot(len(recipe.letters) * len(rights))  # refuses a vocabulary too large before it is listed
        tokens = tuple(Bigram(left, right) for left in recipe.letters for right in rights)
    number = {letter: phi for phi, letter in enumerate(recipe.letters, start=1)}
    keys = np.stack([letter_code(recipe, number[token.left]) for token in tokens])
    centring = np.exp(-1j * recipe.spectrum.phases_at(recipe.centre))
    queries = np.stack(
        [
            letter_code(recipe, number[token.right]) * centring
            if isinstance(token.right, str)
            else letter_code(recipe, number[token.left])
            for token in tokens
        ]
    )
    identity = one_hot(len(tokens))
    return BuiltHead(
        recipe=recipe,
        head=Head(
            w_q=recipe.spectrum.from_planes(queries).T,
            w_k=recipe.spectrum.from_planes(keys).T,
            w_v=identity,
            w_o=identity,
            spectrum=recipe.spectrum,
            scale=recipe.scale,
        ),
        tokens=tokens,
        embedding=identity,
        unembedding=identity,
        residual=False,
    )


def letter_code(recipe: Recipe, phi: int) -> ComplexArray:
    """rho(m_k omega)^(-phi) v, one complex number per plane, m_k the multipliers."""
    steps = np.array([phi * multiplier % len(recipe.letters) for multiplier in recipe.letter_multipliers()])
    code: ComplexArray = recipe.vector() * np.exp(-2j * np.pi * steps / len(recipe.letters))
    return code

r"""Reflexive: the head that looks at itself, and returns its own token. It fills layers that have nothing left to do.

*Positional*: Index with offset 0. The logit beta * sum_k a_k cos(d theta_k) peaks at d = 0 by the proof in
`ropegeo.construct.index` with s = 0.

*Symbolic*: key and query are both the token's own code, W_K x = W_Q x = rho(omega)^(-phi(sigma)) v, omega = 2 pi/A
over the A tokens. The logit beta * sum_k a_k cos(shift * omega + d theta_k) is that of Retrieval for a query that
looks for itself, c = 0: while (n - 1) theta < omega, the own position scores beta and any other token at most beta *
cos(omega - (n - 1) theta). Copies of the own token score less than the own position but hold the same answer.

Source: Urrutia et al., arXiv 2605.31558, appendix F.2; docs/MATHEMATICS.md, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ropegeo.construct.built import BuiltHead, one_hot
from ropegeo.construct.index import DEFAULT_LETTERS, build_index
from ropegeo.construct.recipe import Recipe
from ropegeo.construct.retrieval import letter_code
from ropegeo.heads import Head
from ropegeo.spectrum import RopeSpectrum


def reflexive_head(
    spectrum: RopeSpectrum,
    *,
    symbolic: bool = False,
    planes: Sequence[int] = (0,),
    weights: Sequence[float] = (),
    beta: float = 1.0,
    letters: Sequence[str] = DEFAULT_LETTERS,
    directions: Sequence[complex] | None = None,
) -> BuiltHead:
    """The head that looks at its own position: see the module for weights and proof.

    Args:
        spectrum: the rotation.
        symbolic: match the own token instead of distance 0.
        planes: planes used.
        weights: share of each plane, normalised to sum 1; equal if not given.
        beta: logit of a perfect match.
        letters: vocabulary.
        directions: unit complex number per plane, the direction of v.

    Raises:
        InvalidInputError: a value outside these ranges.
    """
    recipe = Recipe(
        mode="symbolic_reflexive" if symbolic else "reflexive",
        spectrum=spectrum,
        planes=tuple(planes),
        weights=tuple(weights),
        beta=beta,
        letters=tuple(letters),
        directions=None if directions is None else np.asarray(directions, dtype=np.complex128),
    )
    return build_symbolic_reflexive(recipe) if symbolic else build_index(recipe)


def build_symbolic_reflexive(recipe: Recipe) -> BuiltHead:
    """The matrices of a `symbolic_reflexive` recipe."""
    codes = np.stack([letter_code(recipe, phi) for phi in range(1, len(recipe.letters) + 1)])
    rows = recipe.spectrum.from_planes(codes).T
    identity = one_hot(len(recipe.letters))
    return BuiltHead(
        recipe=recipe,
        head=Head(w_q=rows, w_k=rows, w_v=identity, w_o=identity, spectrum=recipe.spectrum, scale=recipe.scale),
        tokens=recipe.letters,
        embedding=identity,
        unembedding=identity,
        residual=False,
    )

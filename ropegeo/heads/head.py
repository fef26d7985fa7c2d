"""`Head`: the matrices of one attention head and the slow, obviously right definition of its logits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from ropegeo._arrays import FloatArray, frozen
from ropegeo.errors import InvalidInputError
from ropegeo.heads.profile import LogitProfile
from ropegeo.spectrum import Layout, RopeSpectrum


@dataclass(frozen=True, eq=False, kw_only=True)
class Head:
    """One attention head as matrices that act on column vectors: q = W_Q x + b_Q, and so on.

    Attributes:
        w_q: shape (head_dim, d_model).
        w_k: shape (head_dim, d_model).
        w_v: shape (value_dim, d_model).
        w_o: shape (d_model, value_dim).
        spectrum: the rotation of queries and keys.
        scale: factor on the dot product; 1/sqrt(head_dim) if not given.
        b_q: shape (head_dim,); zero if not given.
        b_k: shape (head_dim,); zero if not given.

    Raises:
        InvalidInputError: shapes that do not fit together, NaN or infinite entries, a scale that is not positive.
    """

    w_q: Float[FloatArray, "head_dim d_model"]
    w_k: Float[FloatArray, "head_dim d_model"]
    w_v: Float[FloatArray, "value_dim d_model"]
    w_o: Float[FloatArray, "d_model value_dim"]
    spectrum: RopeSpectrum
    scale: float | None = None
    b_q: Float[FloatArray, " head_dim"] | None = None
    b_k: Float[FloatArray, " head_dim"] | None = None

    def __post_init__(self) -> None:
        width = self.spectrum.head_dim
        for name in ("w_q", "w_k", "w_v", "w_o", "b_q", "b_k"):
            if getattr(self, name) is None:
                continue
            array = frozen(getattr(self, name), np.float64)
            if not np.isfinite(array).all():
                raise InvalidInputError(f"Head: {name} has NaN or infinite entries")
            object.__setattr__(self, name, array)
        if self.w_q.ndim != 2 or self.w_v.ndim != 2:
            raise InvalidInputError("Head: weights must be matrices")
        d_model, value_dim = self.w_q.shape[1], self.w_v.shape[0]
        expected = {
            "w_q": (width, d_model),
            "w_k": (width, d_model),
            "w_v": (value_dim, d_model),
            "w_o": (d_model, value_dim),
            "b_q": (width,),
            "b_k": (width,),
        }
        for name, shape in expected.items():
            if getattr(self, name) is not None and getattr(self, name).shape != shape:
                raise InvalidInputError(f"Head: {name} must have shape {shape}, got {getattr(self, name).shape}")
        if self.scale is None:
            object.__setattr__(self, "scale", 1 / math.sqrt(width))
        if not (self.logit_scale > 0 and math.isfinite(self.logit_scale)):
            raise InvalidInputError(f"Head: scale {self.scale} must be positive and finite")

    @property
    def d_model(self) -> int:
        """Width of the residual stream."""
        return int(self.w_q.shape[1])

    @property
    def logit_scale(self) -> float:
        """The factor on the dot product, as a number."""
        return 1 / math.sqrt(self.spectrum.head_dim) if self.scale is None else self.scale

    def queries(self, states: Float[FloatArray, "*batch d_model"]) -> Float[FloatArray, "*batch head_dim"]:
        """W_Q x + b_Q, before rotation."""
        return _affine(states, self.w_q, self.b_q)

    def keys(self, states: Float[FloatArray, "*batch d_model"]) -> Float[FloatArray, "*batch head_dim"]:
        """W_K x + b_K, before rotation."""
        return _affine(states, self.w_k, self.b_k)

    def logit(
        self,
        query_state: Float[FloatArray, " d_model"],
        query_position: int,
        key_state: Float[FloatArray, " d_model"],
        key_position: int,
    ) -> float:
        """The logit by definition: rotate the query and the key to their positions, multiply, scale.

        Slow, and obviously right; `profile` must agree with it to 1e-12 of the profile's weight.

        Source: docs/MATHEMATICS.md, section 1.
        """
        query = self.spectrum.rotate(self.queries(query_state), query_position)
        key = self.spectrum.rotate(self.keys(key_state), key_position)
        return self.logit_scale * float(query @ key)

    def logits(self, states: Float[FloatArray, "n d_model"], *, start_position: int = 0) -> Float[FloatArray, "n n"]:
        """All causal logits of a sequence by definition; row i is a query, entries j > i are -infinity."""
        positions = start_position + np.arange(len(states))
        queries = self.spectrum.rotate(self.queries(states), positions)
        keys = self.spectrum.rotate(self.keys(states), positions)
        values = self.logit_scale * (queries @ keys.T)
        values[np.triu_indices(len(states), 1)] = -np.inf
        return values

    def profile(
        self, query_state: Float[FloatArray, " d_model"], key_state: Float[FloatArray, " d_model"]
    ) -> LogitProfile:
        """The logit of one query content and one key content as a function of distance.

        c_k = scale * attention_factor**2 * conj(k_k) q_k with query and key planes as complex numbers, and
        constant = scale * (q . k) over the coordinates that pass through.
        """
        query, key = self.queries(query_state), self.keys(key_state)
        turning = self.spectrum.to_planes(query) * np.conj(self.spectrum.to_planes(key))
        rest = slice(self.spectrum.rotary_dim, None)
        return LogitProfile(
            spectrum=self.spectrum,
            coefficients=self.logit_scale * self.spectrum.attention_factor**2 * turning,
            constant=self.logit_scale * float(query[rest] @ key[rest]),
        )

    def in_layout(self, layout: Layout) -> Head:
        """The same head with its query and key rows written for another layout; all logits stay the same."""
        order = self.spectrum.permutation_to(layout)
        return replace(
            self,
            w_q=self.w_q[order],
            w_k=self.w_k[order],
            b_q=None if self.b_q is None else self.b_q[order],
            b_k=None if self.b_k is None else self.b_k[order],
            spectrum=self.spectrum.with_layout(layout),
        )


def _affine(states: FloatArray, weight: FloatArray, bias: FloatArray | None) -> FloatArray:
    values: FloatArray = states @ weight.T
    return values if bias is None else values + bias

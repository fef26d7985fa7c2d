"""Closed-form bounds on margins, one function each, with equation and proved scope; outside it they raise.

Every one is proved by a file of the folder `derivations`, whose `check()` holds the function against the proof.
"""

from ropegeo.asymptotics.bounds.index_window import (
    adjacent_bound,
    index_bound,
    index_bound_any_offset,
    index_bound_as_printed,
)
from ropegeo.asymptotics.bounds.many_planes import dual_bound, primal_margin, simultaneous_bound
from ropegeo.asymptotics.bounds.one_plane import (
    GREATEST_LIMINF,
    LEAST_LIMSUP,
    convergent_lower_bound,
    convergent_upper_bound,
    dirichlet_bound,
    envelope_constant,
    small_angle_lower,
    small_angle_upper,
    trough_constant,
)
from ropegeo.asymptotics.bounds.retrieval import (
    centred_failing_length,
    centred_lookup_margin,
    nearest_rival_margin,
    retrieval_failing_length,
    retrieval_worst_margin,
)
from ropegeo.asymptotics.bounds.scores import exclusion_gap, swap_scores
from ropegeo.asymptotics.bounds.softmax import (
    circle_mean,
    softmax_length_bound,
    softmax_sufficient_scale,
    softmax_threshold,
)

__all__ = [
    "GREATEST_LIMINF",
    "LEAST_LIMSUP",
    "adjacent_bound",
    "centred_failing_length",
    "centred_lookup_margin",
    "circle_mean",
    "convergent_lower_bound",
    "convergent_upper_bound",
    "dirichlet_bound",
    "dual_bound",
    "envelope_constant",
    "exclusion_gap",
    "index_bound",
    "index_bound_any_offset",
    "index_bound_as_printed",
    "nearest_rival_margin",
    "primal_margin",
    "retrieval_failing_length",
    "retrieval_worst_margin",
    "simultaneous_bound",
    "small_angle_lower",
    "small_angle_upper",
    "softmax_length_bound",
    "softmax_sufficient_scale",
    "softmax_threshold",
    "swap_scores",
    "trough_constant",
]

"""Closed-form bounds on margins, one function each, with equation and proved scope; outside it they raise.

Every one is proved by a file of the folder `derivations`, whose `check()` holds the function against the proof.
"""

from ropegeo.asymptotics.bounds.one_plane import dirichlet_bound, index_bound_as_printed

__all__ = ["dirichlet_bound", "index_bound_as_printed"]

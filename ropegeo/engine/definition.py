"""Running maxima by the formula as it is written: every displacement, in numpy. Slow, and obviously right."""

from __future__ import annotations

import numpy as np

from ropegeo.engine.candidates import CAPACITY, thinned
from ropegeo.engine.work import Outcome, Work, check_phases

_BLOCK = 1 << 14


def by_definition(work: Work) -> Outcome:
    """Candidates for the running maxima of the logit (the minima of the gap, where the profile has one).

    Raises:
        UnsupportedError: more phases than are evaluated.
    """
    check_phases(work.planes, work.size)
    room = 2 * work.profile.abs_error
    listed = _evaluated(work, room)
    if len(listed) <= CAPACITY + 2 * len(work.ends or ()):
        return listed, 0.0
    return _evaluated(work, 0.0), room / work.profile.weight


def _evaluated(work: Work, room: float) -> list[int]:
    profile = work.profile
    at, logits = np.empty(0, np.int64), np.empty(0)
    best = -np.inf
    for low, high, _ in work.parts():
        for start in range(low, high + 1, _BLOCK):
            t = np.arange(start, min(start + _BLOCK, high + 1))
            values = -profile.gap(t) if profile.is_peaked else profile.logit(t + profile.origin)
            before = np.maximum.accumulate(np.concatenate([[best], values]))
            kept = values > before[:-1] - room
            at, logits = np.concatenate([at, t[kept]]), np.concatenate([logits, values[kept]])
            best = before[-1]
            if work.ends is not None and at.size > CAPACITY:
                at, logits = thinned(at, logits, ends=work.ends, slack=room, places=1)
    return [int(t) for t in at]

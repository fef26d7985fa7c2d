r"""The largest and the second largest logit of a profile over a window: two searches, the second without the winner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ropegeo.engine.certify import ExactDeficit
from ropegeo.engine.margin import check_digits, check_lengths, check_profile, status_of
from ropegeo.engine.profile_margin import margin_between, others
from ropegeo.engine.route_names import AUTO
from ropegeo.engine.searches import search
from ropegeo.engine.staircase import common_period, exact_records, lowered
from ropegeo.engine.threads import thread_count
from ropegeo.engine.work import Progress, Work
from ropegeo.exact import Enclosure, safe_integer
from ropegeo.exact.enclosure import DOUBLE_DIGITS
from ropegeo.heads import LogitProfile
from ropegeo.spectrum.phases import MAX_DISPLACEMENT

SCHEMA = "ropegeo.top_two/1"
MAX_LISTED = 4096
"""Distances of a tie that are listed."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TopTwo:
    """The two largest logits of a profile over the distances 0..n-1.

    Attributes:
        length: n.
        at: distance of the largest; the smallest of several.
        second_at: distance of the second largest.
        top: the largest logit, to `abs_error`; NaN where its distance is beyond 2**62 from the origin.
        second: the second largest logit, likewise.
        abs_error: bound on the error of both, in logit units.
        margin: their difference, in units of the weight, proved.
        tied: distances whose logit is known to be the largest, increasing, `at` among them: several if and only if the
            margin is exactly 0.
        tied_count: how many there are, which is more than are listed beyond `MAX_LISTED`.
        method: the route taken.
    """

    length: int
    at: int
    second_at: int
    top: float
    second: float
    abs_error: float
    margin: Enclosure
    tied: tuple[int, ...]
    tied_count: int
    method: str

    @property
    def status(self) -> str:
        """`wins` or `tie` (exactly 0); `undecided` where two logits agree in `LAST_DIGITS` digits."""
        return status_of(self.margin)

    def to_dict(self, digits: int = DOUBLE_DIGITS) -> dict[str, Any]:
        """JSON-ready form; the margin is in units of the weight, the logits in their own."""
        row: dict[str, Any] = {"schema": SCHEMA, "length": safe_integer(self.length)}
        row |= {"at": safe_integer(self.at), "second_at": safe_integer(self.second_at)}
        for name in ("top", "second"):
            value = getattr(self, name)
            row[name] = None if np.isnan(value) else value
        row |= {"logit_abs_error": self.abs_error, "unit": "weight", **self.margin.to_dict("margin", digits)}
        row |= {"tied": [safe_integer(d) for d in self.tied], "tied_count": safe_integer(self.tied_count)}
        return row | {"status": self.status, "method": self.method}


def top_two(
    profile: LogitProfile,
    length: int,
    *,
    digits: int = DOUBLE_DIGITS,
    route: str = AUTO,
    threads: int | None = None,
    progress: Progress | None = None,
) -> TopTwo:
    """The largest and the second largest logit over the distances 0..n-1.

    Args:
        profile: any coefficients.
        length: n >= 2.
        digits: significant digits of the margin to prove.
        route: how they are searched for, see `searches.py`; `auto` takes the fastest.
        threads: all usable cores if not given.
        progress: called now and then with the number of distances done, in each of two searches.

    Raises:
        InvalidInputError: a length below 2, or no profile.
        UnsupportedError: a length that no search reaches.

    Accuracy: the margin proves `digits` digits, unless the two logits agree in `LAST_DIGITS` digits.

    Example:
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> profile = LogitProfile(spectrum=RopeSpectrum.from_angle("1/5 turn"), coefficients=np.ones(1), origin=3)
        >>> found = top_two(profile, 19)
        >>> found.at, found.second_at, found.status, found.tied
        (3, 8, 'tie', (3, 8, 13, 18))
    """
    check_profile("top_two", profile)
    check_digits("top_two", digits)
    thread_count(threads)
    (n,) = check_lengths("top_two", [length])
    if profile.weight == 0:
        return _value(profile, n, (0, 1), Enclosure.exactly(0), range(n), "closed_form")
    at, _, slack = _largest(profile, n, None, route, threads, progress)
    second, method, other_slack = _largest(profile, n, at, route, threads, progress)
    margin = margin_between(profile, ExactDeficit(profile), at, second, digits)
    margin = lowered(margin, slack + other_slack)
    tied = _ties(profile, n, at) if margin.sign == 0 else range(at, at + 1)
    return _value(profile, n, (at, second), margin, tied, method)


def _largest(
    profile: LogitProfile, length: int, without: int | None, route: str, threads: int | None, progress: Progress | None
) -> tuple[int, str, float]:
    """Distance of the largest logit but one's, the route, and the slack."""
    ranges = others(profile, length, without)
    work = Work(profile=profile, ranges=ranges, ends=(ranges[-1][1],), threads=threads, progress=progress)
    method, (candidates, slack) = search(work, route)
    return exact_records(ExactDeficit(profile), candidates)[-1] + profile.origin, method, slack


def _ties(profile: LogitProfile, length: int, at: int) -> range | list[int]:
    """All distances known to score as `at` does: whole periods away, or as far on the other side of the origin."""
    period = common_period(profile) or length
    mirrored = 2 * profile.origin - at if not profile.coefficients.imag.any() else at
    if mirrored % period == at % period:
        return range(at % period, length, period)
    ties = [d for start in {at % period, mirrored % period} for d in range(start, length, period)[: MAX_LISTED + 1]]
    return sorted(ties)


def _value(
    profile: LogitProfile, length: int, at: tuple[int, int], margin: Enclosure, tied: range | list[int], method: str
) -> TopTwo:
    logits = [
        float(profile.logit(np.array([d]))[0]) if max(d, abs(profile.origin)) < MAX_DISPLACEMENT // 2 else float("nan")
        for d in at
    ]
    return TopTwo(
        length=length,
        at=at[0],
        second_at=at[1],
        top=logits[0],
        second=logits[1],
        abs_error=profile.abs_error,
        margin=margin,
        tied=tuple(tied[:MAX_LISTED]),
        tied_count=len(tied),
        method=method,
    )

"""A scale beta at which a head stays right in a number format, at every query position up to a length.

The exact beta_min(n) is where exact logits just meet the rule. Rounded logits need a little more, or never do: where
the format's argmax itself fails, no scale helps. So the search starts a little above beta_min and goes up by a factor
at a time. Each scale is tried by emulating every query position, up to the first that fails, and the first scale with
none is the answer. It is *a* scale that works, not the least: a factor of `FACTOR` lies between it and the last that
failed. The search gives up where the argmax fails whatever the scale, and after `MOST_TRIED` scales.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ropegeo.construct.built import index_profile
from ropegeo.errors import InvalidInputError
from ropegeo.exact import short
from ropegeo.limits.argmax import argmax_limit
from ropegeo.limits.arithmetic import Arithmetic
from ropegeo.limits.emulated_head import EmulatedHead
from ropegeo.limits.formats import FormatLimit, format_limit
from ropegeo.limits.softmax import LARGEST_BETA, Demand, head_softmax_scale

FIRST_FACTOR, FACTOR = 1.05, 1.25
MOST_TRIED = 24
SCHEMA = "ropegeo.scale_search/1"
LEAST = 1.0
"""Where beta_min is smaller, as at the shortest lengths, the search starts here."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ScaleSearch:
    """What a search for a scale came to.

    Attributes:
        arithmetic: how the head was computed.
        length: n; every query position below it was emulated.
        beta: a scale at which the head is right at all of them, or None.
        exact_least: beta_min(n) in exact arithmetic; None where the argmax fails there or the window hides a target.
        failed: the scales tried before, with the first length that failed.
        last: what the last scale tried came to.
        is_decided: whether one was found, or none can be: exact arithmetic fails, the window hides a target, or the
            format's argmax of unit vectors fails before the scale.
    """

    arithmetic: Arithmetic
    length: int
    beta: float | None
    exact_least: float | None
    failed: tuple[tuple[float, int], ...]
    last: FormatLimit
    is_decided: bool

    def sentence(self) -> str:
        """For people."""
        where = f"in {self.arithmetic} at every query position up to length {short(self.length)}"
        if self.beta is not None:
            weight = "" if self.last.weight is None else f", the target's weight {self.last.weight:.6g} or more"
            order = "; in another order of the sums that may be otherwise" if self.last.order_matters else ""
            least = f"beta_min in exact arithmetic {self.exact_least:.8g}{order}"
            return f"found: beta = {self.beta:.8g} is right {where}{weight} ({least})"
        if not self.failed:
            return f"found no beta that is right {where}: the argmax fails in exact arithmetic"
        return (
            f"found no beta that is right {where}: at beta = {self.failed[-1][0]:.6g} length {self.failed[-1][1]} "
            f"fails ({self.last.cause}; {self.last.note})"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "schema": SCHEMA,
            "number_format": str(self.arithmetic.number_format),
            "logits": str(self.arithmetic.logits),
            "positions": str(self.arithmetic.positions),
            "decided": self.is_decided,
            "length": self.length,
            "query_positions": "every one",
            "beta": self.beta,
            "beta_min_exact": self.exact_least,
            "failed": [{"beta": beta, "first_failing_length": length} for beta, length in self.failed],
            "smallest_weight": self.last.weight,
            "last": self.last.to_dict(),
        }


def find_scale(
    head: EmulatedHead, arithmetic: Arithmetic, *, length: int, progress: Callable[[int], None] | None = None
) -> ScaleSearch:
    """A scale at which a head is right in a number format at every length up to n, if one is found.

    Args:
        head: an index head.
        arithmetic: how it is computed.
        length: n.
        progress: called now and then with the number of query positions done, from the start for each scale.

    Returns:
        The scale found, or None in it with the scales that were tried and where each failed.

    Raises:
        InvalidInputError: a head that matches letters, or no query within the length.
        UnsupportedError: a length beyond what is emulated.

    Accuracy: what is said of the scale found is exact for the arithmetic of `ropegeo.limits.arithmetic`.

    Source: ours; module.

    Example:
        >>> from ropegeo.construct.index import index_head
        >>> from ropegeo.limits.rules import Rule
        >>> from ropegeo.spectrum import RopeSpectrum
        >>> head = EmulatedHead.of(index_head(RopeSpectrum.from_angle("1"), offset=3), rule=Rule())
        >>> found = find_scale(head, Arithmetic(number_format="bfloat16"), length=20)
        >>> found.beta is not None and found.exact_least < found.beta < 2 * found.exact_least
        True
    """
    if not head.queries:
        raise InvalidInputError(
            "find_scale: is for index heads; the weights of heads that match letters are not emulated"
        )
    seen = length if head.window is None else min(length, head.window)
    hidden = head.window is not None and any(head.window <= query.offset < length for query in head.queries)
    offsets = [query.offset for query in head.queries]
    first = argmax_limit(index_profile(head.recipe), offsets=offsets, max_length=max(2, seen)).first_failing_length
    if hidden or (first is not None and first <= seen):
        last = format_limit(head.at(LEAST), arithmetic, max_length=length, progress=progress)
        at = last.first_failing_length
        return ScaleSearch(
            arithmetic=arithmetic,
            length=length,
            beta=None,
            exact_least=None,
            failed=() if at is None else ((LEAST, at),),
            last=last,
            is_decided=True,
        )
    demands = [Demand(offset=query.offset, threshold=head.rule.threshold(query.kind)) for query in head.queries]
    least = head_softmax_scale(index_profile(head.recipe), seen, demands=demands, argmax_fails=seen + 1)
    beta, failed = max(LEAST, FIRST_FACTOR * least), []
    while True:
        found = format_limit(head.at(beta), arithmetic, max_length=length, progress=progress)
        at, hopeless = found.first_failing_length, False
        if at is not None:
            failed.append((beta, at))
        if found.first_wrong_length is not None and head.vectors == "unit":  # at this scale; at every one?
            plain = format_limit(replace(head, beta=None), arithmetic, max_length=length, progress=progress)
            hopeless = plain.first_wrong_length is not None
        if at is None or hopeless or len(failed) == MOST_TRIED or FACTOR * beta > LARGEST_BETA:
            return ScaleSearch(
                arithmetic=arithmetic,
                length=length,
                beta=beta if at is None else None,
                exact_least=least,
                failed=tuple(failed),
                last=found,
                is_decided=at is None or hopeless,
            )
        beta *= FACTOR

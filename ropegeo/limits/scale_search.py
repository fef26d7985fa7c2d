"""A scale beta at which a head stays right in a number format, at every query position up to a length.

The exact beta_min(n) is where exact logits just meet the rule. Rounded logits need a little more, or never do: where
the format's argmax itself fails, no scale helps. So the search starts a little above beta_min and goes up by a factor
at a time. Each scale is tried by emulating every query position, up to the first that fails, and the first scale with
none is the answer. It is *a* scale that works, not the least: a factor of `FACTOR` lies between it and the last that
failed. The search gives up where the argmax fails whatever the scale, and after `MOST_TRIED` scales.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ropegeo.construct.built import index_profile
from ropegeo.errors import InvalidInputError
from ropegeo.exact import short
from ropegeo.limits.arithmetic import Arithmetic
from ropegeo.limits.emulated_head import EmulatedHead
from ropegeo.limits.formats import FormatLimit, format_limit
from ropegeo.limits.softmax import LARGEST_BETA, Demand, head_softmax_scale

FIRST_FACTOR, FACTOR = 1.05, 1.25
MOST_TRIED = 24
LEAST = 1.0
"""Where beta_min is smaller, as at the shortest lengths, the search starts here."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ScaleSearch:
    """What a search for a scale came to.

    Attributes:
        arithmetic: how the head was computed.
        length: n; every query position below it was emulated.
        beta: a scale at which the head is right at all of them, or None.
        exact_least: beta_min(n) in exact arithmetic.
        failed: the scales tried before, with the first length that failed.
        last: what the last scale tried came to.
    """

    arithmetic: Arithmetic
    length: int
    beta: float | None
    exact_least: float
    failed: tuple[tuple[float, int], ...]
    last: FormatLimit

    def sentence(self) -> str:
        """For people."""
        where = f"in {self.arithmetic} at every query position up to length {short(self.length)}"
        if self.beta is not None:
            weight = "" if self.last.weight is None else f", the target's weight {self.last.weight:.6g} or more"
            least = f"beta_min in exact arithmetic {self.exact_least:.8g}"
            return f"found: beta = {self.beta:.8g} is right {where}{weight} ({least})"
        return (
            f"found no beta that is right {where}: at beta = {self.failed[-1][0]:.6g} length {self.failed[-1][1]} "
            f"fails ({self.last.cause}; {self.last.note})"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "number_format": str(self.arithmetic.number_format),
            "logits": str(self.arithmetic.logits),
            "positions": str(self.arithmetic.positions),
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

    Raises:
        InvalidInputError: a head that matches letters, a window that hides a target, or an argmax that fails in exact
            arithmetic.
        UnsupportedError: a length beyond what is emulated.

    Accuracy: what is said of the scale found is exact for the arithmetic of `ropegeo.limits.arithmetic`.

    Source: ours.
    """
    if not head.queries:
        raise InvalidInputError(
            "find_scale: is for index heads; the weights of heads that match letters are not emulated"
        )
    if head.window is not None and any(head.window <= query.offset < length for query in head.queries):
        raise InvalidInputError(f"find_scale: the window of {head.window} hides a target, and no scale shows it")
    demands = [Demand(offset=query.offset, threshold=head.rule.threshold(query.kind)) for query in head.queries]
    seen = length if head.window is None else min(length, head.window)
    least = head_softmax_scale(index_profile(head.recipe), seen, demands=demands)
    beta, failed = max(LEAST, FIRST_FACTOR * least), []
    while True:
        found = format_limit(head.at(beta), arithmetic, max_length=length, progress=progress)
        first = found.first_failing_length
        if first is not None:
            failed.append((beta, first))
        hopeless = found.first_wrong_length is not None or len(failed) == MOST_TRIED or FACTOR * beta > LARGEST_BETA
        if first is None or hopeless:
            return ScaleSearch(
                arithmetic=arithmetic,
                length=length,
                beta=beta if first is None else None,
                exact_least=least,
                failed=tuple(failed),
                last=found,
            )
        beta *= FACTOR

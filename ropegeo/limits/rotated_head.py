r"""One query content and one key content at every position in a number format, walked block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ropegeo._arrays import BoolArray, FloatArray
from ropegeo.engine.threads import in_order, thread_count
from ropegeo.engine.work import Progress
from ropegeo.errors import InvalidInputError
from ropegeo.exact import short
from ropegeo.heads import LogitProfile
from ropegeo.limits.arithmetic import Arithmetic, check_scale, in_order_sums
from ropegeo.limits.rounding import SingleArray
from ropegeo.limits.sums import (
    QUERY_BLOCK,
    TILE,
    Keys,
    Rotation,
    check_walk,
    lifted,
    norms,
    order_slacks,
)
from ropegeo.spectrum import RopeSpectrum

Failure: TypeAlias = Literal["tie", "wrong", "overflow", "none"]
_DISTANCES = 4096


@dataclass(frozen=True, kw_only=True)
class Failing:
    """What happens at a query that fails.

    Attributes:
        outcome: `wrong`, `tie` or `overflow`.
        rival: displacement of the winning rival, or None for an overflow of the target.
        target_logit: as emulated.
        rival_logit: as emulated.
        gap: exact gap of that rival.
        runner_up: displacement of the rival with the smallest exact gap.
        runner_up_gap: that gap.
        order_may_mend: whether in another order of the sums the query might be right.
    """

    outcome: Failure
    rival: int | None
    target_logit: float
    rival_logit: float | None
    gap: float | None
    runner_up: int | None
    runner_up_gap: float | None
    order_may_mend: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class RotatedHead:
    """One query content and one key content, rotated at all positions.

    Attributes:
        queries: rotated, coordinates that are kept.
        keys: rotated.
        profile: the logits in real arithmetic.
        offset: distance of the target.
        scale: factor on the sums.
        arithmetic: how the model computes.
        slacks: for each query by how much a sum may differ between two orders.
    """

    queries: SingleArray
    keys: Keys
    profile: LogitProfile
    offset: int
    scale: float
    arithmetic: Arithmetic
    slacks: FloatArray

    @classmethod
    def checked(
        cls,
        call: str,
        query: FloatArray,
        key: FloatArray,
        spectrum: RopeSpectrum,
        *,
        offset: int,
        scale: float,
        arithmetic: Arithmetic,
        max_length: int,
        start_position: int,
        window: int | None,
    ) -> RotatedHead:
        """Rotated, once everything is checked for the call.

        Raises:
            InvalidInputError: an offset outside the length or the window, or another value out of range.
            UnsupportedError: too long.
        """
        check_scale(call, scale)
        vectors = np.asarray(query, np.float64), np.asarray(key, np.float64)
        for vector in vectors:
            check_walk(call, spectrum, vector, max_length, start_position, window)
        if not 0 <= offset < max_length:
            raise InvalidInputError(
                f"{call}: offset {short(offset)} must lie from 0 to {max_length - 1}, below the length {max_length}"
            )
        if window is not None and offset >= window:
            raise InvalidInputError(
                f"{call}: offset {short(offset)} lies outside the window: one of {window} sees the distances 0 to "
                f"{window - 1}"
            )
        rotation = Rotation.of(
            *vectors, spectrum, start_position=start_position, count=max_length, arithmetic=arithmetic
        )
        queries, keys = map(rotation.rows, vectors)
        one, other = (spectrum.to_planes(vector) for vector in vectors)
        coefficients = scale * spectrum.attention_factor**2 * one * np.conj(other)
        return cls(
            queries=queries,
            keys=Keys(keys, window),
            profile=LogitProfile(spectrum=spectrum, coefficients=coefficients),
            offset=offset,
            scale=scale,
            arithmetic=arithmetic,
            slacks=order_slacks(queries, float(norms(keys).max()), arithmetic),
        )

    @property
    def gap_error(self) -> float:
        """Bound on the absolute error of an exact gap: two logits, and the roundings of their coefficients."""
        return 3 * self.profile.abs_error

    def logits(self, sums: SingleArray) -> SingleArray:
        """Sums as logits."""
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            return self.arithmetic.finished(sums, self.scale)

    def walk(
        self,
        work: Callable[[tuple[int, int]], tuple[Any, ...]],
        begin: int,
        end: int,
        threads: int | None,
        progress: Progress | None,
    ) -> Iterator[tuple[Any, ...]]:
        """What `work` says of the queries begin..end-1, block by block, in order."""
        blocks = ((start, min(start + QUERY_BLOCK, end)) for start in range(begin, end, QUERY_BLOCK))
        for part in in_order(work, blocks, threads=thread_count(threads)):
            yield part
            if progress is not None:
                progress(part[0] + len(part[1]))

    def targets(self, start: int, stop: int) -> SingleArray:
        """The sums of some queries with their targets."""
        return in_order_sums(self.queries[start:stop], self.keys.rows(start - self.offset, stop - self.offset))

    def tops(self, block: tuple[int, int]) -> tuple[int, SingleArray, SingleArray]:
        """First query of a block, its queries' sums with their targets, and the largest with a rival, or NaN."""
        start, stop = block
        top = np.full(stop - start, -np.inf, np.float32)
        with np.errstate(invalid="ignore"):
            for _, sums in self.keys.blocks(self.queries[start:stop], start, skip=self.offset):
                np.maximum(top, sums.max(axis=1), out=top)
        return start, self.targets(start, stop), top

    def weights(self, block: tuple[int, int]) -> tuple[int, SingleArray, SingleArray, FloatArray]:
        """First query of a block, logits of targets and of the best rivals, log of the rivals' sum of exponentials."""
        start, stop = block
        top = np.full(stop - start, -np.inf)
        total = np.zeros(stop - start)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            for _, sums in self.keys.blocks(self.queries[start:stop], start, skip=self.offset):
                logits = self.logits(sums).astype(np.float64)
                new = np.maximum(top, logits.max(axis=1))
                base = np.where(new == -np.inf, 0.0, new)
                total = total * np.exp(top - base) + np.exp(logits - base[:, None]).sum(axis=1)
                top = new
            log_sum = np.log(total) + np.where(top == -np.inf, 0.0, top)
        return start, self.logits(self.targets(start, stop)), top.astype(np.float32), log_sum

    def order_may_fail(self, start: int, targets: SingleArray, tops: SingleArray) -> BoolArray:
        """Which of some queries another order of the sums might make wrong or tied."""
        slack = self.slacks[start : start + len(targets)]
        return np.asarray(~(self.logits(lifted(tops, slack)) < self.logits(lifted(targets, -slack))))

    def failure(self, query: int) -> Failing:
        """All that is to be said of a query that fails.

        Args:
            query: its index; its length is one more.
        """
        distances = np.arange(min(query + 1, self.keys.window))
        gaps = self._exact_gaps(distances)
        keys = self.keys.rows(query + 1 - len(distances), query + 1)[::-1]
        sums = in_order_sums(np.broadcast_to(self.queries[query], keys.shape), keys)
        logits = self.logits(sums)
        rivals = distances != self.offset
        target = float(logits[self.offset])
        runner_up = int(np.where(rivals, gaps, np.inf).argmin()) if rivals.any() else None
        bad = overflowed(logits)
        if bad.any():
            winners, outcome = bad & rivals, "overflow"
            # A finite sum that overflows as a logit even if less by the slack does so in every order.
            high = sums[np.isfinite(sums) & bad]
            sure = overflowed(self.logits(lifted(high, -self.slacks[query : query + 1])))
            finite = bool(np.isfinite(keys).all() and np.isfinite(self.queries[query]).all())
            may_mend = finite and not bool(sure.any())
        else:
            top = logits[rivals].max()
            winners = rivals & (logits == top)
            outcome = "wrong" if top > target else "tie"
            same = (keys == keys[self.offset]).all(axis=1)  # a rival with the target's own numbers ties in every order
            slack = self.slacks[query : query + 1]
            low = self.logits(lifted(sums[winners].max(keepdims=True), -slack))
            sure = low >= self.logits(lifted(sums[self.offset : self.offset + 1], slack))
            may_mend = not (bool(sure[0]) or bool((same & rivals).any()))
        rival = int(np.where(winners, gaps, np.inf).argmin()) if winners.any() else None
        return Failing(
            outcome=outcome,  # type: ignore[arg-type]
            rival=None if rival is None else rival - self.offset,
            target_logit=target,
            rival_logit=None if rival is None else float(logits[rival]),
            gap=None if rival is None else float(gaps[rival]),
            runner_up=None if runner_up is None else runner_up - self.offset,
            runner_up_gap=None if runner_up is None else float(gaps[runner_up]),
            order_may_mend=may_mend,
        )

    def _exact_gaps(self, distances: Any) -> FloatArray:
        """The target's logit less that of each distance, in real arithmetic."""
        target = self.profile.logit(np.array([self.offset]))
        parts = [
            target - self.profile.logit(distances[start : start + _DISTANCES])
            for start in range(0, len(distances), _DISTANCES)
        ]
        return np.concatenate(parts)


def overflowed(logits: SingleArray) -> BoolArray:
    """NaN or +infinity; -infinity is none: it is what a key out of sight has."""
    return np.asarray(np.isnan(logits) | (logits == np.inf))


def log_error(length: int) -> float:
    """Bound on the absolute error of the log of a softmax sum over so many keys; proof in `limits.emulation`."""
    return (6 * (length // TILE + 1) + 64) * 2.0**-53

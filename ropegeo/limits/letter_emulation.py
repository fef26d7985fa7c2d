r"""Retrieval heads as run: the first length at which a number format lets another letter win.

A query that looks for letter b stands at position i; the answer, of letter b, is at some distance D, and every other
place d != D may hold any other letter a. So a length is decoded, for every input of this class, iff

    min over D of [m(D) - max over d != D of r(d)] > 0,    m(D) = l(b, D),    r(d) = max over a != b of l(a, d),

with l the emulated logits, for every letter b that is looked for and every query position i < n. The left side is
positive iff every pair D != d has m(D) > r(d), so the smallest m and the largest r decide it, unless both are at the
same distance: then each of them with the next best of the other. Queries that look for their own token (`own_only`)
have D = 0 only.

All pairs of letters and positions are computed. Beyond the length where that is `MAX_WORK` sums, only some evenly
spaced letters are still looked for, as many as another `MAX_WORK` allows: the result says which, and from what length.
Keys always are of every letter.

Source: ours; docs/MATHEMATICS.md, sections 3 and 8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64, Int

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.engine.threads import in_order, thread_count
from ropegeo.engine.work import Progress
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.limits.arithmetic import Arithmetic, check_scale, in_order_sums
from ropegeo.limits.emulation import DEFAULT_SEARCHED
from ropegeo.limits.rotated_head import Failure, overflowed
from ropegeo.limits.rounding import SingleArray
from ropegeo.limits.sums import (
    QUERY_BLOCK,
    Keys,
    Rotation,
    check_walk,
    lifted,
    norms,
    order_slacks,
)
from ropegeo.spectrum import RopeSpectrum

MAX_WORK = 10**10
"""Sums that are computed before letters are left out: some ten seconds of two threads for one plane."""
MAX_NUMBERS = 10**8
"""Coordinates of rotated queries and keys that are held, at four bytes each."""
MAX_SCORES = 1 << 21
"""Queries times keys of a block."""
SCHEMA = "ropegeo.emulated_letters/1"


@dataclass(frozen=True, eq=False, kw_only=True)
class EmulatedLetterLength:
    """Where a number format first fails a retrieval head.

    Attributes:
        first_wrong_length: the first length n with an input of the class that is decoded wrongly, or None.
        searched: the largest length looked at, every query position below it: the failing one where there is one.
        outcome: `wrong`, `tie`, `overflow` or `none`.
        query_letter: number of the letter that is looked for where it fails, from 0.
        match_distance: D of the answer there.
        rival_letter: letter that wins.
        rival_distance: where it stands.
        match_logit: as emulated.
        rival_logit: as emulated.
        order_matters: whether another order of the float32 sums could move `first_wrong_length`.
        query_letters: the letters that were looked for at every length up to `searched`; all, unless that was too
            much or others were asked for.
        all_letters_to: the largest length up to which every letter was looked for.
        own_only: whether queries look for their own token only.
        arithmetic: how it was computed.
        start_position: position of the first token.
    """

    first_wrong_length: int | None
    searched: int
    outcome: Failure
    query_letter: int | None = None
    match_distance: int | None = None
    rival_letter: int | None = None
    rival_distance: int | None = None
    match_logit: float | None = None
    rival_logit: float | None = None
    order_matters: bool = False
    query_letters: tuple[int, ...]
    all_letters_to: int
    own_only: bool = False
    arithmetic: Arithmetic
    start_position: int = 0

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        logits = {"match_logit": self.match_logit, "rival_logit": self.rival_logit}
        return {
            "schema": SCHEMA,
            "number_format": self.arithmetic.number_format,
            "logits": self.arithmetic.logits,
            "positions": self.arithmetic.positions,
            "first_wrong_length": self.first_wrong_length,
            "searched": self.searched,
            "outcome": self.outcome,
            "query_letter": self.query_letter,
            "match_distance": self.match_distance,
            "rival_letter": self.rival_letter,
            "rival_distance": self.rival_distance,
            **{name: value if value is not None and np.isfinite(value) else None for name, value in logits.items()},
            "order_matters": self.order_matters,
            "query_letters": list(self.query_letters),
            "all_letters_to": self.all_letters_to,
            "own_only": self.own_only,
            "start_position": self.start_position,
        }


def first_wrong_retrieval_length(
    queries: Float64[FloatArray, "letters head_dim"],
    keys: Float64[FloatArray, "letters head_dim"],
    spectrum: RopeSpectrum,
    *,
    scale: float,
    arithmetic: Arithmetic,
    max_length: int = DEFAULT_SEARCHED,
    start_position: int = 0,
    own_only: bool = False,
    query_letters: Sequence[int] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> EmulatedLetterLength:
    """First length at which a retrieval head, computed in a number format, decodes some input of its class wrongly.

    Args:
        queries: content of a query that looks for each letter, before rotation.
        keys: content of a key of each letter, before rotation.
        spectrum: the rotation.
        scale: factor on the dot product.
        arithmetic: how the model computes.
        max_length: the largest length to look at, 2 to 2^18.
        start_position: position of the first token.
        own_only: queries look for the letter of their own token (distance 0), as those of letter-integer tokens do.
        query_letters: letters to look for, from 0; if not given all, and at large lengths as many as `MAX_WORK` allows.
        threads: all usable cores if not given.
        progress: called now and then with the number of query positions done.

    Raises:
        InvalidInputError: fewer than two letters, a letter that is not there, or another value out of range.
        UnsupportedError: a length beyond 2^18.

    Accuracy: exact for the arithmetic of `ropegeo.limits.arithmetic`, all letters up to `all_letters_to` and those of
        `query_letters` beyond.

    Source: ours; docs/MATHEMATICS.md, sections 3 and 8.

    Example:
        >>> spectrum = RopeSpectrum.from_angle("0.27")
        >>> codes = np.array([[np.cos(a), -np.sin(a)] for a in 2 * np.pi * np.arange(8) / 8])
        >>> found = first_wrong_retrieval_length(codes, codes, spectrum, scale=1.0, arithmetic=Arithmetic())
        >>> found.first_wrong_length, found.outcome, found.match_distance, found.rival_distance
        (3, 'wrong', 2, 1)
    """
    call = "first_wrong_retrieval_length"
    check_scale(call, scale)
    vectors = np.asarray(queries, np.float64), np.asarray(keys, np.float64)
    for vector in vectors:
        check_walk(call, spectrum, vector, max_length, start_position, None)
    if vectors[0].shape != vectors[1].shape or vectors[0].ndim != 2 or len(vectors[0]) < 2:
        raise InvalidInputError(
            f"{call}: needs a query and a key for each of at least 2 letters; got shapes {vectors[0].shape} and "
            f"{vectors[1].shape}"
        )
    if max_length < 2:
        raise InvalidInputError(f"{call}: max_length {max_length} must be at least 2: a single token has no rival")
    letters, all_to = _query_letters(len(vectors[0]), max_length, query_letters)
    head = _Letters.rotated(
        *vectors,
        spectrum,
        letters,
        all_to=all_to,
        length=max_length,
        start_position=start_position,
        own_only=own_only,
        scale=scale,
        arithmetic=arithmetic,
    )
    found: dict[str, Any] = {"first_wrong_length": None, "searched": max_length, "outcome": "none"}
    unsure = False
    size = max(1, min(QUERY_BLOCK, MAX_SCORES // max_length))
    ends = [*range(1 + size, max_length, size), max_length]
    ends = sorted({*ends, all_to} if 1 < all_to < max_length else ends)  # no block with a letter half left out
    blocks = list(pairwise([1, *ends]))
    for stop, failing, shaky in in_order(head.block, blocks, threads=thread_count(threads)):
        if failing is not None:
            query, letter, before = failing
            found = head.failure(query, letter)
            unsure = unsure or before or found.pop("order_matters")
            break
        unsure = unsure or shaky
        if progress is not None:
            progress(stop)
    return EmulatedLetterLength(
        **found,
        order_matters=unsure,
        query_letters=tuple(range(len(vectors[0]))) if found["searched"] <= all_to else letters,
        all_letters_to=min(all_to, found["searched"]),
        own_only=own_only,
        arithmetic=arithmetic,
        start_position=start_position,
    )


def _query_letters(letters: int, max_length: int, asked: Sequence[int] | None) -> tuple[tuple[int, ...], int]:
    """The letters that are looked for at every length, and the length up to which all are."""
    if asked is not None:
        chosen = tuple(sorted(set(asked)))
        if not chosen or not 0 <= chosen[0] <= chosen[-1] < letters:
            raise InvalidInputError(
                f"first_wrong_retrieval_length: query_letters must be numbers from 0 to {letters - 1}, not "
                f"{list(asked)[:10]}"
            )
        return chosen, max_length if len(chosen) == letters else 0
    all_to = min(max_length, math.isqrt(2 * MAX_WORK // letters**2))
    if all_to == max_length:
        return tuple(range(letters)), max_length
    count = max(1, min(letters, 2 * MAX_WORK // (letters * max_length**2)))
    return tuple(sorted({place * letters // count for place in range(count)})), all_to


@dataclass(frozen=True, eq=False, kw_only=True)
class _Letters:
    """Queries and keys of every letter, rotated at all positions."""

    queries: dict[int, SingleArray]
    keys: list[Keys]
    slacks: dict[int, FloatArray]
    own_only: bool
    scale: float
    arithmetic: Arithmetic

    @classmethod
    def rotated(
        cls,
        queries: FloatArray,
        keys: FloatArray,
        spectrum: RopeSpectrum,
        letters: tuple[int, ...],
        *,
        all_to: int,
        length: int,
        start_position: int,
        own_only: bool,
        scale: float,
        arithmetic: Arithmetic,
    ) -> _Letters:
        """Of all keys, and the queries of some letters; those of the others up to a length.

        Raises:
            UnsupportedError: more numbers than are held.
        """
        rotation = Rotation.of(
            queries if all_to else queries[list(letters)],
            keys,
            spectrum,
            start_position=start_position,
            count=length,
            arithmetic=arithmetic,
        )
        kept = rotation.kept
        if ((len(keys) + len(letters)) * length + len(keys) * all_to) * len(kept) > MAX_NUMBERS:
            raise UnsupportedError(
                f"first_wrong_retrieval_length: {len(keys)} letters at {length} positions in {len(kept)} coordinates "
                f"are more than {MAX_NUMBERS} numbers; use fewer letters or a smaller max_length"
            )
        longest, tiles = 0.0, []
        for key in keys:
            turned = rotation.rows(key)
            longest = max(longest, float(norms(turned).max()))
            tiles.append(Keys(turned, None))
        asking = {letter: rotation.rows(queries[letter]) for letter in letters}
        for letter in range(len(keys) if all_to else 0):
            if letter not in asking:
                asking[letter] = rotation.rows(queries[letter])[:all_to].copy()
        slacks = {letter: order_slacks(query, longest, arithmetic) for letter, query in asking.items()}
        return cls(queries=asking, keys=tiles, slacks=slacks, own_only=own_only, scale=scale, arithmetic=arithmetic)

    def logits(self, sums: SingleArray) -> SingleArray:
        """Sums as logits."""
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            return self.arithmetic.finished(sums, self.scale)

    def block(self, block: tuple[int, int]) -> tuple[int, tuple[int, int, bool] | None, bool]:
        """A block's end; the query that fails first, its letter, and whether order matters before; whether in all."""
        start, stop = block
        failing: tuple[int, int] | None = None
        shaky = np.zeros(stop - start, np.bool_)
        for letter, queries in self.queries.items():
            if len(queries) < stop:
                continue  # left out from here on
            match, rivals, top = self._scores(letter, start, stop)
            slack = self.slacks[letter][start:stop]
            bad = overflowed(self.logits(top)) | overflowed(self.logits(rivals.max(axis=1)))
            for pairs in closest_pairs(match, rivals):
                bad |= self.logits(pairs.rival) >= self.logits(pairs.match)
                shaky |= self.logits(lifted(pairs.rival, slack)) >= self.logits(lifted(pairs.match, -slack))
            if bad.any() and (failing is None or start + int(bad.argmax()) < failing[0]):
                failing = start + int(bad.argmax()), letter
        if failing is None:
            return stop, None, bool(shaky.any())
        return stop, (*failing, bool(shaky[: failing[0] - start].any())), True

    def _scores(self, letter: int, start: int, stop: int) -> tuple[SingleArray, SingleArray, SingleArray]:
        """Sums of some queries with matches and with the best other letter, by key; the largest with a match.

        Keys out of sight are +infinity among the matches, -infinity among the rivals.
        """
        queries = self.queries[letter][start:stop]
        match = np.full((stop - start, stop), np.inf, np.float32)
        rivals = np.full((stop - start, stop), -np.inf, np.float32)
        at = np.arange(start, stop)
        with np.errstate(invalid="ignore"):
            for other, keys in enumerate(self.keys):
                if other == letter:
                    continue
                for first, sums in keys.blocks(queries, start, skip=0 if self.own_only else None):
                    part = rivals[:, first : first + sums.shape[1]]
                    np.maximum(part, sums[:, : part.shape[1]], out=part)
            if self.own_only:
                own = in_order_sums(queries, self.keys[letter].rows(start, stop))
                match[at - start, at] = own
                return match, rivals, own
            for first, sums in self.keys[letter].blocks(queries, start):
                part = match[:, first : first + sums.shape[1]]
                part[...] = sums[:, : part.shape[1]]
            top = match.max(axis=1)
        match[np.arange(stop) > at[:, None]] = np.inf
        return match, rivals, top

    def failure(self, query: int, letter: int) -> dict[str, Any]:
        """What is to be said of a query that fails, as fields of the result."""
        match, rivals, top = self._scores(letter, query, query + 1)
        best = rivals.max(axis=1)
        slack = self.slacks[letter][query : query + 1]
        fields: dict[str, Any] = {
            "first_wrong_length": query + 1,
            "searched": query + 1,
            "outcome": "overflow",
            "query_letter": letter,
            "order_matters": bool(np.isfinite(self.queries[letter][query]).all()),
        }
        if overflowed(self.logits(top))[0] or overflowed(self.logits(best))[0]:
            return fields
        pairs = [
            (self.logits(pair.rival)[0], self.logits(pair.match)[0], pair) for pair in closest_pairs(match, rivals)
        ]
        theirs, ours, pair = max(pairs, key=lambda each: float(each[0]) - float(each[1]))
        ours_at, theirs_at = int(pair.match_at[0]), int(pair.rival_at[0])
        row = self.queries[letter][query : query + 1]
        sums = [in_order_sums(row, keys.rows(theirs_at, theirs_at + 1))[0] for keys in self.keys]
        low, high = self.logits(lifted(pair.rival, -slack))[0], self.logits(lifted(pair.match, slack))[0]
        fields.update(
            outcome="wrong" if theirs > ours else "tie",
            match_distance=query - ours_at,
            rival_distance=query - theirs_at,
            rival_letter=max((a for a in range(len(sums)) if a != letter), key=lambda a: float(sums[a])),
            match_logit=float(ours),
            rival_logit=float(theirs),
            order_matters=bool(low < high),
        )
        return fields


@dataclass(frozen=True, eq=False)
class Pairs:
    """For each query a match and a rival at two places."""

    match: Float32[SingleArray, " rows"]
    match_at: Int[IntArray, " rows"]
    rival: Float32[SingleArray, " rows"]
    rival_at: Int[IntArray, " rows"]


def closest_pairs(
    match: Float32[SingleArray, "rows keys"], rivals: Float32[SingleArray, "rows keys"]
) -> tuple[Pairs, Pairs]:
    """For each query two pairs of places among which is the one where the rival is ahead most, or least behind.

    That is the smallest match and the largest rival; or, where they are at one place, one of them with the next best of
    the other.
    """
    rows = np.arange(len(match))
    low, high = match.argmin(axis=1), rivals.argmax(axis=1)
    smallest, largest = match[rows, low], rivals[rows, high]
    shared = np.flatnonzero(low == high)
    other_low, other_high = low.copy(), high.copy()
    if shared.size:
        some = rivals[shared]
        some[np.arange(len(shared)), low[shared]] = -np.inf
        other_high[shared] = some.argmax(axis=1)
        some = match[shared]
        some[np.arange(len(shared)), high[shared]] = np.inf
        other_low[shared] = some.argmin(axis=1)
    apart = low != other_high  # not so only where there is no other place
    second = np.where(apart, rivals[rows, other_high], np.float32(-np.inf))
    apart = other_low != high
    next_match = np.where(apart, match[rows, other_low], np.float32(np.inf))
    return Pairs(smallest, low, second, other_high), Pairs(next_match, other_low, largest, high)

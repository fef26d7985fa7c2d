r"""One pass over every displacement of a range: logits as matrix products, exact phases, bounded memory.

Angle addition. Cut the displacements into rows of 2*H consecutive ones and let S be a row's centre, half-way between
two integers. With z_k = c_k exp(i theta_k S) and h = 1/2, 3/2, .., H - 1/2,

    Re sum_k c_k exp(i theta_k (S +- h)) = P -+ Q,
    P = sum_k Re z_k cos(theta_k h),   Q = sum_k Im z_k sin(theta_k h).

So a block of R rows is two products (R x K)(K x H) with tables of cosines and sines that never change, 2 flops a plane
and distance: half of what the plain product (R x 2K)(2K x 2H) takes, because +h and -h share both P and Q. BLAS does
the products; compiled scans read P and Q while they are in the cache. The z_k of a block's rows come from those of
its first row by one complex product each, and those from exact 128-bit turns, so no error grows with the distance.

Error, with u = 2**-53 and W = sum |c_k|: z_k carries two phases (12.6u each, see `heads/profile.py`), their cosines
and sines (2u each), two complex products (3u each): 36u |c_k|. A table entry: 14.6u. |Re z cos| + |Im z sin| <=
|z|, so a sum of K products and the last addition add at most (K + 2)u W. Together below (K + 64)u W: `sweep_error`.

Work is shared out in tasks of consecutive blocks (`threads.py`). Running maxima are seeded with what earlier tasks
found, so that a task keeps few candidates; they are merged in order, hence the result depends on no number of
threads.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float

from ropegeo._arrays import ComplexArray, FloatArray, IntArray, UintArray
from ropegeo.engine.candidates import CAPACITY, Found, TooManyTiesError, thinned
from ropegeo.engine.kernels import add_exponentials, column_tops, fill_rows, raise_tops, retain, scan_tops, unfold
from ropegeo.engine.threads import in_order, thread_count
from ropegeo.engine.work import Progress
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.heads import LogitProfile
from ropegeo.spectrum.phases import MAX_DISPLACEMENT, turns

ROWS = 512
HALF = 128
"""Rows and half their length: P and Q take 0.5 MiB each, which stays in a core's second-level cache; measured
fastest."""
BLOCKS = 32
"""Blocks of a task: some 4 million displacements, 10 ms of work, so that Ctrl-C and progress are prompt."""
MAX_RANGE = MAX_DISPLACEMENT // 4
"""Displacements are doubled, and a block may reach beyond the range asked for."""


def sweep_error(planes: int) -> float:
    """Bound on the absolute error of a swept logit, per unit of weight; derived in the module."""
    return (planes + 64) * 2.0**-53


@dataclass(frozen=True, eq=False)
class Sweep:
    """The tables of some profiles on one spectrum, ready to be swept over any displacements t = d - origin.

    Attributes:
        profiles: what is swept, together in one pass; their constants and origins are left out.
        threads: how many threads share the work; all usable cores if not given.
        rows: rows of a block.
        half: half the length of a row.

    Raises:
        InvalidInputError: no profile, profiles of different spectra, or a number of threads that is none.
    """

    profiles: tuple[LogitProfile, ...]
    threads: int | None = None
    rows: int = ROWS
    half: int = HALF
    _local: threading.local = field(default_factory=threading.local, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "threads", thread_count(self.threads))
        if not self.profiles:
            raise InvalidInputError("Sweep: needs at least one profile")
        spectrum = self.profiles[0].spectrum
        if any(profile.spectrum.angles != spectrum.angles for profile in self.profiles):
            raise InvalidInputError("Sweep: the profiles must share one spectrum; sweep the others apart")
        planes = sorted({plane for profile in self.profiles for plane in profile.active_planes})
        high, low = spectrum.words[:, planes]
        halved = np.stack([high >> np.uint64(1), (low >> np.uint64(1)) | (high << np.uint64(63))])
        offsets = 2 * np.pi * turns(halved, 2 * np.arange(self.half) + 1)
        rows = np.exp(2j * np.pi * turns(halved, 4 * self.half * np.arange(self.rows)))
        tables = _Tables(
            halved=halved,
            coefficients=np.array([profile.coefficients[planes] for profile in self.profiles]),
            cos=np.ascontiguousarray(np.cos(offsets).T),
            sin=np.ascontiguousarray(np.sin(offsets).T),
            row_re=np.ascontiguousarray(rows.real),
            row_im=np.ascontiguousarray(rows.imag),
        )
        object.__setattr__(self, "_tables", tables)

    _tables: _Tables = field(init=False, repr=False)

    @property
    def abs_errors(self) -> Float[FloatArray, " profiles"]:
        """Bound on the absolute error of each profile's swept logits, in logit units."""
        planes = self._tables.coefficients.shape[1]
        return np.array([sweep_error(planes) * profile.weight for profile in self.profiles])

    @property
    def block(self) -> int:
        """Displacements of a block."""
        return 2 * self.rows * self.half

    def logits(self, low: int, high: int) -> Float[FloatArray, "profiles displacements"]:
        """The logits at displacements low..high, constants included, all of them in one array.

        Raises:
            InvalidInputError: an empty range.
            UnsupportedError: a range beyond `MAX_RANGE`.
        """
        check_range("Sweep.logits", low, high)
        out = np.empty((len(self.profiles), high - low + 1))

        def work(task: tuple[int, int]) -> None:
            for start, size, head, even, odd in self._blocks(*task):
                unfold(even, odd, out[head, start - low : start - low + size])

        for _ in in_order(work, self._tasks(low, high), threads=self._count):
            pass
        out += np.array([profile.constant for profile in self.profiles])[:, None]
        return out

    def maxima(self, low: int, high: int, *, progress: Progress | None = None) -> Float[FloatArray, " profiles"]:
        """The largest logit of each profile over displacements low..high, constants included.

        Accuracy: absolute error below `abs_errors`.

        Raises:
            InvalidInputError: an empty range.
            UnsupportedError: a range beyond `MAX_RANGE`.
        """
        check_range("Sweep.maxima", low, high)

        def work(task: tuple[int, int]) -> tuple[FloatArray, int]:
            tops, columns, flat = np.full(len(self.profiles), -np.inf), np.empty(self.half), np.empty(self.block)
            for _, size, head, even, odd in self._blocks(*task):
                if size == self.block:
                    top = column_tops(even, odd, self.rows, columns)
                else:
                    unfold(even, odd, flat[:size])
                    top = flat[:size].max()
                tops[head] = max(tops[head], top)
            return tops, task[1]

        best = np.full(len(self.profiles), -np.inf)
        for tops, last in in_order(work, self._tasks(low, high), threads=self._count):
            np.maximum(best, tops, out=best)
            if progress is not None:
                progress(last + 1 - low)
        best += np.array([profile.constant for profile in self.profiles])
        return best

    def records(
        self,
        low: int,
        high: int,
        *,
        best: Sequence[float] | None = None,
        slack: float | None = None,
        ends: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> tuple[Found, ...]:
        """Running maxima of each profile's logit over displacements low..high, in increasing order.

        Args:
            low: first displacement.
            high: last one.
            best: maximum of each before `low`, without the constant: only what rises above it is looked for.
            slack: candidates are what comes within this of a running maximum: twice the error if not given, so that
                every true record is among them. 0: strict running maxima of the rounded logits.
            ends: where the maxima over low..end are all that is wanted, those ends in increasing order; the running
                maxima between may then be left out.
            progress: called with the number of displacements done, now and then.

        Raises:
            InvalidInputError: an empty range.
            UnsupportedError: a range beyond `MAX_RANGE`.
            TooManyTiesError: more than `CAPACITY` candidates in one task.
        """
        check_range("Sweep.records", low, high)
        seeds = np.full((len(self.profiles), 1), -np.inf)
        if best is not None:
            seeds[:, 0] = best
        return self._candidates(low, high, seeds, slack, ends, progress)

    def top_two(
        self, low: int, high: int, *, slack: float | None = None, progress: Progress | None = None
    ) -> tuple[Found, ...]:
        """Of each profile, every displacement of low..high whose logit may be one of the two largest.

        Args:
            low: first displacement.
            high: last one.
            slack: candidates are what comes within this of the second largest: twice the error if not given. 0: the
                two largest of the rounded logits, and what equals the second of them.
            progress: called with the number of displacements done, now and then.

        Raises:
            InvalidInputError: an empty range.
            UnsupportedError: a range beyond `MAX_RANGE`.
            TooManyTiesError: more than `CAPACITY` candidates in one task.
        """
        check_range("Sweep.top_two", low, high)
        seeds = np.full((len(self.profiles), 2), -np.inf)
        return self._candidates(low, high, seeds, slack, [high], progress)

    def _candidates(
        self,
        low: int,
        high: int,
        seeds: FloatArray,
        slack: float | None,
        ends: Sequence[int] | None,
        progress: Progress | None,
    ) -> tuple[Found, ...]:
        """What comes near the running maximum (seeds with one column) or second largest (two) of each profile."""
        rooms = 2 * self.abs_errors if slack is None else np.full(len(self.profiles), slack)
        lists: list[list[tuple[IntArray, FloatArray]]] = [[] for _ in self.profiles]

        def work(task: tuple[int, int, FloatArray]) -> tuple[list[tuple[IntArray, FloatArray]], int]:
            first, last, tops = task
            wanted = None if ends is None else [end for end in ends if first <= end < last] + [last]
            held = [_Held(room=room, ends=wanted, places=seeds.shape[1]) for room in rooms.tolist()]
            columns = np.empty(self.half)
            for start, size, head, even, odd in self._blocks(first, last):
                # Whole rows are looked at: a value beyond the range only costs a closer look.
                if column_tops(even, odd, -(-size // (2 * self.half)), columns) > tops[head, -1] - rooms[head]:
                    held[head].scan(even, odd, size, start, tops[head])
            return [each.parts for each in held], last

        # Tasks begin before the first one has ended. The first displacements are known beforehand, so that a later task
        # does not take each of thousands of rising logits for a running maximum.
        known = seeds.copy()
        for head, profile in enumerate(self.profiles):
            for t in range(low, min(low + seeds.shape[1], high) + 1)[: seeds.shape[1]]:
                logit = float(replace(profile, constant=0.0).logit(np.array([t + profile.origin]))[0])
                raise_tops(known[head], logit - 2 * self.abs_errors[head])
        jobs = (
            (first, last, seeds.copy() if first == low else np.maximum(seeds, known))
            for first, last in self._tasks(low, high)
        )
        for found, last in in_order(work, jobs, threads=self._count):
            for head, (at, values) in enumerate(found):
                kept = retain(values, seeds[head], rooms[head])
                lists[head].append((at[kept], values[kept]))
            if progress is not None:
                progress(last + 1 - low)
        results = []
        for head, parts in enumerate(lists):
            at, values = np.concatenate([at for at, _ in parts]), np.concatenate([values for _, values in parts])
            if ends is not None:
                at, values = thinned(at, values, ends=ends, slack=rooms[head], places=seeds.shape[1])
            results.append(Found(at=at, logits=values, best=float(seeds[head, 0])))
        return tuple(results)

    def exponential_sums(
        self,
        low: int,
        high: int,
        betas: Sequence[float],
        *,
        tops: Sequence[float],
        skip: int | None = None,
        progress: Progress | None = None,
    ) -> Float[FloatArray, "profiles betas"]:
        """sum over low..high of exp(beta (logit(t) - top)) for each profile and beta, constants left out.

        Args:
            low: first displacement.
            high: last one.
            betas: factors of the logits.
            tops: one per profile.
            skip: a displacement to leave out.
            progress: called with the number of displacements done, now and then.

        Accuracy: relative error below beta * `abs_errors` + 300 * 2**-53, for tops that do not exceed the weight.

        Raises:
            InvalidInputError: an empty range.
            UnsupportedError: a range beyond `MAX_RANGE`.
        """
        check_range("Sweep.exponential_sums", low, high)
        scales = np.array(betas, dtype=np.float64)
        shape = (len(self.profiles), scales.size)

        def work(task: tuple[int, int]) -> tuple[FloatArray, int]:
            sums, lost = np.zeros(shape), np.zeros(shape)
            flat = np.empty(self.block)
            for start, size, head, even, odd in self._blocks(*task):
                part = flat[:size]
                unfold(even, odd, part)
                if skip is not None and start <= skip < start + size:
                    part = np.delete(part, skip - start)
                add_exponentials(part, float(tops[head]), scales, sums[head], lost[head])
            return sums + lost, task[1]

        total = np.zeros(shape)
        for part, last in in_order(work, self._tasks(low, high), threads=self._count):
            total += part
            if progress is not None:
                progress(last + 1 - low)
        return total

    @property
    def _count(self) -> int:
        return thread_count(self.threads)

    def _tasks(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        blocks = -(-(high - low + 1) // self.block)
        step = max(1, min(BLOCKS, blocks // (4 * self._count))) * self.block
        return ((start, min(start + step - 1, high)) for start in range(low, high + 1, step))

    def _blocks(self, first: int, last: int) -> Iterator[tuple[int, int, int, FloatArray, FloatArray]]:
        """(start, size, profile, P, Q) of the blocks that cover first..last.

        P and Q are the calling thread's own and are written again by the next step.
        """
        tables = self._tables
        if not hasattr(self._local, "arrays"):
            shapes = [tables.row_re.shape] * 2 + [(self.rows, self.half)] * 2
            self._local.arrays = tuple(np.empty(shape) for shape in shapes)
        centre_re, centre_im, even, odd = self._local.arrays
        starts = range(first, last + 1, self.block)
        doubled = 2 * np.array(starts, dtype=np.int64) + 2 * self.half - 1
        turned = np.exp(2j * np.pi * turns(tables.halved, doubled))
        for start, centre in zip(starts, turned, strict=True):
            size = min(self.block, last + 1 - start)
            for head, coefficients in enumerate(tables.coefficients):
                z = coefficients * centre
                fill_rows(z.real.copy(), z.imag.copy(), tables.row_re, tables.row_im, centre_re, centre_im)
                np.dot(centre_re, tables.cos, out=even)
                np.dot(centre_im, tables.sin, out=odd)
                yield start, size, head, even, odd


class _Held:
    """The candidates of one profile in one task, thinned when room runs out."""

    def __init__(self, *, room: float, ends: Sequence[int] | None, places: int) -> None:
        size = CAPACITY + 2 * len(ends or ())
        self._at, self._values, self._count = np.empty(size, np.int64), np.empty(size), 0
        self._room, self._ends, self._places = room, ends, places

    @property
    def parts(self) -> tuple[IntArray, FloatArray]:
        """Displacements and logits, in increasing order of displacement."""
        return self._at[: self._count], self._values[: self._count]

    def scan(self, even: FloatArray, odd: FloatArray, size: int, start: int, tops: FloatArray) -> None:
        """Take in a block."""
        place = 0
        while True:
            place, self._count = scan_tops(
                even, odd, place, size, start, tops, self._room, self._at, self._values, self._count
            )
            if place == size:
                return
            if self._ends is None:
                raise TooManyTiesError
            at, values = thinned(*self.parts, ends=self._ends, slack=self._room, places=self._places)
            if at.size > CAPACITY // 2 + len(self._ends):
                raise TooManyTiesError
            self._count = at.size
            self._at[: at.size], self._values[: at.size] = at, values


@dataclass(frozen=True, eq=False, kw_only=True)
class _Tables:
    halved: UintArray  # half the turns per position, 2 x planes
    coefficients: ComplexArray  # profiles x planes
    cos: FloatArray  # planes x half, of the places in a row, and
    sin: FloatArray
    row_re: FloatArray  # rows x planes, from a block's first row to each
    row_im: FloatArray


def check_range(call: str, low: int, high: int) -> None:
    """Raise unless low..high is a range of displacements that phases are exact for.

    Raises:
        InvalidInputError: empty.
        UnsupportedError: beyond `MAX_RANGE`.
    """
    if low > high:
        raise InvalidInputError(f"{call}: the range of displacements is empty")
    if max(abs(low), abs(high)) > MAX_RANGE:
        raise UnsupportedError(f"{call}: displacements are swept up to 2^60 in size")

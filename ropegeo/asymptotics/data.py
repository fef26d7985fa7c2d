"""What a decay is fitted to: margins at lengths, how well each is known, and the envelope of a staircase."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from itertools import pairwise
from operator import index
from typing import Any

import numpy as np
from jaxtyping import Float

from ropegeo._arrays import BoolArray, FloatArray, frozen
from ropegeo.engine.margin import MAX_LENGTH, MarginCurve
from ropegeo.engine.route_names import BOUND
from ropegeo.errors import InvalidInputError
from ropegeo.exact import Enclosure, short

FEWEST_POINTS = 4
COLUMNS = ("margin", "best", "worst")
ONE_PLANE = "continued_fraction"
"""The route that only index heads on one plane take."""
ARRAYS = ("margin", "log_margin", "sd", "proved")


@dataclass(frozen=True, eq=False, kw_only=True)
class DecayData:
    """Margins at increasing lengths.

    Attributes:
        lengths: n, strictly increasing, of any size.
        margin: nearest doubles, in the unit of the source; 0 or below where the head fails.
        log_margin: natural logarithms, also where a margin is below the range of doubles; NaN where it is not positive.
        sd: standard deviation of each margin, or None where none is given.
        proved: bound on the relative error of each margin (infinite where nothing is known), or None for measured data.
        ends_known: whether each length is known to be the last one of its step (see `envelope`).
        begins: whether the lengths are those at which steps begin (records).
        whole: whether it is certain that no such step is missing: a curve or a file says so, not its rows.
        offset: distance that the head aims at: T = max(offset, n - 1 - offset).
        best_over: where each margin is the best over the offsets 0..m, that m: T = max(ceil((n - 1)/2), n - 1 - m).
        reach_known: whether offset or best_over say what T is.
        one_plane: whether the margins are known to be those of an index head on one plane.
        left_out: rows that were no margins, by what they were: `bound`, `undecided`.
        source: what the data are, for people.
        unit: `beta` where margins are in units of the logit scale, else empty.
    """

    lengths: tuple[int, ...]
    margin: Float[FloatArray, " points"]
    log_margin: Float[FloatArray, " points"]
    sd: Float[FloatArray, " points"] | None = None
    proved: Float[FloatArray, " points"] | None = None
    ends_known: bool = False
    begins: bool = False
    whole: bool = False
    offset: int = 0
    best_over: int | None = None
    reach_known: bool = True
    one_plane: bool = False
    left_out: tuple[tuple[str, int], ...] = ()
    source: str = "data"
    unit: str = ""

    def __post_init__(self) -> None:
        for name in ARRAYS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name), np.float64))
        _check(self)

    @property
    def log_length(self) -> Float[FloatArray, " points"]:
        """Natural logarithms of the lengths."""
        return np.array([math.log(n) for n in self.lengths])

    @property
    def reaches(self) -> list[int]:
        """T, the farthest displacement that an index head sees at each length."""
        return self.reaches_at(self.lengths)

    def reaches_at(self, lengths: Sequence[int]) -> list[int]:
        """As `reaches`, at other lengths."""
        if self.best_over is None:
            return [max(self.offset, n - 1 - self.offset) for n in lengths]
        return [max(n // 2, n - 1 - self.best_over) for n in lengths]

    @property
    def is_exact(self) -> bool:
        """Whether every margin is a computed one with a proved error, so that there is no noise to speak of."""
        return self.proved is not None

    @property
    def relative_error(self) -> Float[FloatArray, " points"]:
        """Bound on the relative rounding error of each margin: at least that of a double."""
        rounding: FloatArray = np.full(len(self.lengths), 2.0**-52)
        return rounding if self.proved is None else np.asarray(np.maximum(rounding, self.proved))

    @property
    def positive(self) -> BoolArray:
        """Where the head wins."""
        return np.asarray(np.isfinite(self.log_margin))

    @property
    def heights(self) -> list[tuple[float, float]]:
        """What tells one margin from another: the double, and its logarithm where doubles end; 0 where it has none."""
        logs = np.where(self.positive, self.log_margin, 0.0)
        return list(zip(self.margin.tolist(), logs.tolist(), strict=True))

    @property
    def first_nonpositive(self) -> int | None:
        """The first length at which the margin is 0 or below: the head fails there. None if there is none."""
        return next((n for n, wins in zip(self.lengths, self.positive, strict=True) if not wins), None)

    def at(self, chosen: Sequence[int] | BoolArray) -> DecayData:
        """Some of the points, in order: by their places, or a mask."""
        mask = isinstance(chosen, np.ndarray)
        places = np.flatnonzero(chosen) if mask else np.array(chosen, dtype=np.int64)
        return replace(
            self,
            lengths=tuple(self.lengths[place] for place in places),
            margin=self.margin[places],
            log_margin=self.log_margin[places],
            sd=None if self.sd is None else self.sd[places],
            proved=None if self.proved is None else self.proved[places],
        )

    def between(self, first: int | None, last: int | None) -> DecayData:
        """The points with lengths from `first` to `last`, both included."""
        low, high = first or 0, last or math.inf
        return self.at(np.array([low <= n <= high for n in self.lengths], dtype=bool))


def _check(data: DecayData) -> None:
    count = len(data.lengths)
    for name in ARRAYS:
        values = getattr(data, name)
        if values is not None and values.shape != (count,):
            raise InvalidInputError(f"decay data: {count} lengths, but {name} has the shape {values.shape}")
    for row, (before, after) in enumerate(pairwise(data.lengths), start=2):
        if after <= before:
            what = "is there twice" if after == before else f"comes after {short(before)}"
            raise InvalidInputError(
                f"decay data, row {row}: length {short(after)} {what}; sort by length, one row each"
            )
    for row, n in enumerate(data.lengths, start=1):
        if n < 1:
            raise InvalidInputError(f"decay data, row {row}: length {short(n)} must be at least 1")
    for name in ("margin", "sd"):
        values = getattr(data, name)
        if values is None:
            continue
        bad = ~np.isfinite(values) | ((values <= 0) & (name == "sd"))
        if bad.any():
            row = int(np.argmax(bad))
            raise InvalidInputError(
                f"decay data, row {row + 1} (length {short(data.lengths[row])}): {name} is {values[row]:g}; it must be "
                + {"margin": "a finite number", "sd": "above 0"}[name]
            )


def decay_data(
    lengths: Sequence[int],
    margins: Sequence[float | Decimal] | Float[FloatArray, " points"],
    *,
    sd: Sequence[float] | Float[FloatArray, " points"] | None = None,
    abs_error: Sequence[float | Decimal] | Float[FloatArray, " points"] | None = None,
    offset: int = 0,
    source: str = "data",
    unit: str = "",
) -> DecayData:
    """Data from numbers.

    Args:
        lengths: n >= 1, strictly increasing integers of any size.
        margins: one a length; decimals keep what is below the range of doubles.
        sd: standard deviation of each margin, where it is known.
        abs_error: proved error of each margin, for computed ones: says that there is no noise.
        offset: distance that the head aims at.
        source: what the data are, for people.
        unit: `beta` where margins are in units of the logit scale.

    Raises:
        InvalidInputError: with the row: not as many of each, unsorted or repeated lengths, NaN, an sd that is not
            positive.

    Example:
        >>> decay_data([10, 20, 40], [0.04, 0.01, -0.002]).first_nonpositive
        40
    """
    try:
        exact = tuple(index(n) for n in lengths)
    except TypeError as error:
        raise InvalidInputError(f"decay data: lengths must be integers ({error})") from error
    for name, values in (("margins", margins), ("sd", sd), ("abs_error", abs_error)):
        if values is not None and len(values) != len(exact):
            raise InvalidInputError(f"decay data: {len(exact)} lengths, but {len(values)} {name}")
    return DecayData(
        lengths=exact,
        margin=np.array([float(value) for value in margins]),
        log_margin=np.array([_log(value) for value in margins]),
        sd=None if sd is None else np.asarray(sd, dtype=np.float64),
        proved=None if abs_error is None else np.array(list(map(_relative, abs_error, margins))),
        offset=offset,
        source=source,
        unit=unit,
    )


def curve_data(curve: MarginCurve, *, column: str = "margin") -> DecayData:
    """Data from a curve of the engine.

    Args:
        curve: of `margin_curve` or `record_curve`; of the latter it is known that all steps are there.
        column: `margin`, `best` or `worst`.

    Raises:
        InvalidInputError: another column, or one that has no value at some length.
    """
    if column not in COLUMNS:
        raise InvalidInputError(f"curve data: column {column!r} is unknown; use one of {', '.join(COLUMNS)}")
    rows, kept = [], []
    for point in curve.points:
        value: Enclosure | None = getattr(point, column)
        if value is None:
            raise InvalidInputError(f"curve data: {column} is not known at length {short(point.length)}")
        kind = "bound" if point.status == "bound" else "undecided" if value.sign is None else ""
        rows.append(kind)
        if not kind:
            kept.append((point.length, value, point.at))
    known: dict[int, tuple[float, float, float]] = {}
    for _, value, _ in kept:  # a staircase hands out one value for many lengths
        if id(value) not in known:
            known[id(value)] = (float(value), middle_log(value), _relative_of(value))
    numbers = np.array([known[id(value)] for _, value, _ in kept]).reshape(-1, 3)
    is_whole, offset = curve.complete_to is not None, 0
    if is_whole:
        seen = _offset([(n, at) for n, _, at in kept]) or 0
        offset = check_steps(column, reach_of("margin", curve.margin_of, curve.inputs).get("offset", seen))
    data = DecayData(
        lengths=tuple(n for n, _, _ in kept),
        margin=numbers[:, 0],
        log_margin=numbers[:, 1],
        proved=numbers[:, 2],
        begins=is_whole,
        whole=is_whole,
        offset=offset,
        one_plane=bool(kept) and {point.method for point in curve.points} <= {ONE_PLANE, BOUND},
        left_out=counted(rows),
        source=f"{column} of {curve.margin_of}" if column == "margin" else f"{column} over {curve.inputs}",
        unit="beta",
    )
    return replace(data, **reach_of(column, curve.margin_of, curve.inputs))


def check_steps(column: str, offset: int) -> int:
    """The offset, if the lengths at which the margin of that offset falls are those at which the column does.

    `worst` is the margin of offset 0; `best` falls elsewhere.

    Raises:
        InvalidInputError: they are not: the rows would be a sample of the column that favours some of its steps.
    """
    if column == "best" or (column == "worst" and offset != 0):
        raise InvalidInputError(
            f"the rows are the steps of margin, not of {column}; compute the curve with --every instead of --records"
        )
    return offset


def reach_of(column: str, margin_of: str, inputs: str) -> dict[str, Any]:
    """What a curve's own words say of T, as fields of `DecayData`: nothing of heads that match letters."""
    if column == "best":
        bounded = re.fullmatch(r"offsets 0\.\.([0-9]{1,1001}) within the length", inputs)
        if inputs == "offsets 0..n-1":
            return {"best_over": MAX_LENGTH}
        return {"reach_known": False} if bounded is None else {"best_over": int(bounded[1])}
    stated = re.fullmatch(r"offset ([0-9]{1,1001})", margin_of)
    return {"offset": int(stated[1])} if stated is not None and column == "margin" else {}


def counted(kinds: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """How many rows there are of each kind that is left out."""
    return tuple((kind, kinds.count(kind)) for kind in ("bound", "undecided") if kind in kinds)


def _offset(rows: Sequence[tuple[int, int]]) -> int | None:
    """The offset of an index head whose rows all begin steps: one at t > 0 is first seen at length t + 1 + offset."""
    found = {n - 1 - at for n, at in rows if at > 0}
    return found.pop() if len(found) == 1 and len(rows) > 2 else None


def begins_steps(
    lengths: Sequence[int], at: Sequence[int], margins: Sequence[float | Decimal], *, one_plane: bool = False
) -> int | None:
    """The offset if rows are the lengths at which a staircase falls, told by the runner-up's displacement; else None.

    Each such row has its runner-up at the farthest displacement that it sees, and its margin is below the one before.
    On one plane the displacements are convergent denominators, so each is the one before last modulo the last.
    """
    offset = _offset(list(zip(lengths, at, strict=True)))
    falls = all(after < before for before, after in pairwise(margins))
    later = all(n - 1 - t == offset for n, t in zip(lengths[1:], at[1:], strict=True))
    if offset is None or offset < 0 or not (falls and later):
        return None
    chained = all((third - first) % second == 0 for first, second, third in zip(at, at[1:], at[2:], strict=False))
    return offset if chained or not one_plane or min(at) < 1 else None


def _log(value: float | Decimal) -> float:
    if not value > 0:
        return math.nan
    near = float(value)
    if not isinstance(value, Decimal) or 1e-300 < near < 1e300:
        return math.log(near)
    return float(Context(prec=25, Emin=-999_999, Emax=999_999).ln(value))


def _relative(error: float | Decimal, value: float | Decimal) -> float:
    """An absolute error in units of the value: infinite for a value of 0 with an error."""
    if not error >= 0:
        raise InvalidInputError(f"decay data: abs_error is {error}; it must be 0 or above")
    if error == 0:
        return 0.0
    return math.inf if value == 0 else float(Decimal(error) / abs(Decimal(value)))


def _relative_of(value: Enclosure) -> float:
    """Half the width of an enclosure in units of its middle: of any size, as fractions do not underflow."""
    width, middle = value.high - value.low, abs(value.low + value.high)
    return 0.0 if width == 0 else math.inf if middle == 0 else float(width / middle)


def middle_log(value: Enclosure) -> float:
    """The natural logarithm of the middle of an enclosure of any size; NaN where it is not known to be positive.

    Accuracy: within 2 units of the last place of the larger of the result and 1. (A difference of the logarithms of
    numerator and denominator would lose the digits of those, which are large.)
    """
    if value.sign != 1:
        return math.nan
    top, bottom = ((value.low + value.high) / 2).as_integer_ratio()
    shift = top.bit_length() - bottom.bit_length()
    scaled = (top << max(64 - shift, 0)) // (bottom << max(shift - 64, 0))  # value 2^(64 - shift), of 64 bits or 65
    return math.log(math.ldexp(scaled, -64)) + shift * math.log(2)


def envelope(data: DecayData) -> DecayData:
    """The staircase from above: the last length of each step, with the margin there.

    A step is a run of equal margins. Where the lengths are those at which steps begin, a step ends one before the next
    begins; otherwise at its last length in the data. The last step is left out if some step is longer than one length:
    where it ends is not known. Data without equal neighbours, as all measured ones are, are their own envelope.
    """
    if data.begins:
        kept = data.at(range(len(data.lengths) - 1))
        ends = tuple(n - 1 for n in data.lengths[1:])
        return replace(kept, lengths=ends, begins=False, ends_known=data.whole)
    new = [place for place, (one, two) in enumerate(pairwise(data.heights)) if one != two]
    last = len(data.lengths) - 1
    if len(new) == last:
        return data
    known = all(data.lengths[place + 1] == data.lengths[place] + 1 for place in new)
    return replace(data.at(new), ends_known=known)

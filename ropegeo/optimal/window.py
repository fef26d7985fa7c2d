"""`Window`: the displacements that an index head has to tell from its target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ropegeo.errors import FileFormatError, InvalidInputError, RopegeoError, UnsupportedError
from ropegeo.exact import plain_integer, short

Phases: TypeAlias = Literal["zero", "free"]
"""Which heads are meant: coefficients real and not negative, or any."""

LARGEST_WINDOW = 10**8
"""Displacements of a window: beyond, checking a certificate in balls takes more than some minutes."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """Displacements t = d - s, 0 left out, of all distances d < length and one offset s, or all offsets up to one.

    Attributes:
        length: n.
        offset: s; with `max_offset` the smallest of the offsets, 0.
        max_offset: the largest of several offsets that one head serves, or None for one offset.

    Raises:
        InvalidInputError: no integers, an offset outside the length, or an offset beside `max_offset`.
        UnsupportedError: more displacements than `LARGEST_WINDOW`.
    """

    length: int
    offset: int = 0
    max_offset: int | None = None

    def __post_init__(self) -> None:
        for name in ("length", "offset", "max_offset"):
            if getattr(self, name) is not None or name != "max_offset":
                try:
                    plain_integer(getattr(self, name))
                except InvalidInputError as error:
                    raise InvalidInputError(f"window: {name} {error}") from error
        if self.length < 2:
            raise InvalidInputError(f"window: length {short(self.length)} must be at least 2: a head needs a rival")
        if self.max_offset is not None and self.offset:
            raise InvalidInputError("window: offset and max_offset do not go together; max_offset serves 0..max_offset")
        if not 0 <= self.farthest < self.length:
            raise InvalidInputError(
                f"window: offset {short(self.farthest)} is outside the length: it must lie between 0 and "
                f"{short(self.length - 1)}"
            )
        if self.high - self.low > LARGEST_WINDOW:
            raise UnsupportedError(
                f"window: best heads are computed and proved for up to {LARGEST_WINDOW} displacements, here "
                f"{short(self.high - self.low)}; use a shorter length"
            )

    @property
    def farthest(self) -> int:
        """The largest offset."""
        return self.offset if self.max_offset is None else self.max_offset

    @property
    def low(self) -> int:
        """The smallest displacement, -`farthest`."""
        return -self.farthest

    @property
    def high(self) -> int:
        """The largest displacement, n - 1 - s."""
        return self.length - 1 - self.offset

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """(first, last) of the displacements below 0 and above it, where there are any."""
        return tuple((first, last) for first, last in ((self.low, -1), (1, self.high)) if first <= last)

    @property
    def reach(self) -> int:
        """The largest |t|."""
        return max(-self.low, self.high)

    def holds(self, displacement: int) -> bool:
        """Whether a displacement is one of the window's."""
        return displacement != 0 and self.low <= displacement <= self.high

    @property
    def offsets(self) -> range:
        """The offsets that are served."""
        return range(self.offset, self.farthest + 1)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; `low` and `high` are for the reader."""
        return {
            "length": self.length,
            "offset": self.offset,
            "max_offset": self.max_offset,
            "low": self.low,
            "high": self.high,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Window:
        """Read what `to_dict` wrote.

        Raises:
            FileFormatError: a missing or wrong field.
        """
        try:
            window = cls(length=data["length"], offset=data["offset"], max_offset=data["max_offset"])
            if (data["low"], data["high"]) != (window.low, window.high):
                raise FileFormatError("window: low and high are not those of the length and the offsets")
            return window
        except FileFormatError:
            raise
        except (KeyError, TypeError, ValueError, RopegeoError) as error:
            raise FileFormatError(f"window: a field is missing or wrong ({error})") from error

"""The law of a margin curve: which one, its exponent with an honest interval, and a verdict.

The exponent of a staircase is fitted to its envelope, the last length of each step with the margin there: a regression
over all lengths depends on which lengths are sampled. Measured curves have no equal neighbours and are their own
envelope. A margin of 0 or below says that the head fails there; it is reported, and what is fitted ends before it.

Source: docs/MATHEMATICS.md, section 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from ropegeo._arrays import FloatArray
from ropegeo.asymptotics.data import FEWEST_POINTS, DecayData, curve_data, decay_data, envelope
from ropegeo.asymptotics.fitted_law import Estimate, LawFit, compared, fit_law
from ropegeo.asymptotics.intervals import KINDS
from ropegeo.asymptotics.laws import LAWS, Law, constant, exponential, line, planes, power, power_floor, retrieval
from ropegeo.asymptotics.staircase_law import fitted_staircase, known_staircase
from ropegeo.engine.margin import MarginCurve
from ropegeo.errors import FileFormatError, InvalidInputError
from ropegeo.exact import ClosedForm, plain_integer, read_safe_integer, safe_integer, short

SCHEMA = "ropegeo.decay_fit/1"
STATUSES = {
    "ok": "a law is chosen",
    "too_few_steps": "too few points, or steps of the staircase, to choose a law",
    "does_not_decay": "no law that falls describes the margins better than a constant",
    "changes_sign": "the head fails within these lengths; laws are fitted to what lies before",
    "degenerate": "the lengths or margins do not determine a law",
    "window_outside_precision": "the margins of these lengths are not known well enough to be fitted",
}
ALIKE = 2.0
"""Laws whose AICc differ by less are not told apart by it; the one with fewer free numbers is chosen."""
STAIRCASE = "2 sin(q_k angle/2)^2"
UNKNOWN_REACH = "the data do not say over which offsets they are the best, so not how far each length sees"
UNRESOLVED = 0.5
"""A margin whose error is more than this part of it is not fitted."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DecayFit:
    """What a margin curve says about its decay.

    Attributes:
        status: a key of `STATUSES`.
        reason: why, in a sentence.
        chosen: name of the law, or None.
        fits: the laws that could be fitted, the best (least AICc) first.
        not_fitted: the others, and why.
        exponent: of the power law over the points used: margin ~ n^exponent; None where nothing is fitted.
        plain_slope: of the least-squares line through all positive points given, in logarithms; biased on staircases.
        points_used: how many points are fitted: of the envelope, positive and known.
        points_given: how many rows there were.
        on_envelope: whether the data are a staircase, so that only the ends of its steps are fitted.
        ends_known: whether those ends are certain, or only known to the next length given, or by taking the rows of a
            CSV for all the steps there are (`from_begins`).
        from_begins: whether the rows given are the beginnings of steps.
        is_exact: whether the margins are computed ones, without noise.
        first_nonpositive: the first length whose margin is 0 or below.
        left_out: rows that were no margins (`bound`, `undecided`) and margins that are not resolved (`unresolved`).
        lengths: first and last length used.
        source: what the data are.
        data: the points used; not part of the JSON.
    """

    status: str
    reason: str
    chosen: str | None
    fits: tuple[LawFit, ...]
    not_fitted: tuple[tuple[str, str], ...]
    exponent: Estimate | None
    plain_slope: float | None
    points_used: int
    points_given: int
    on_envelope: bool
    ends_known: bool
    from_begins: bool
    is_exact: bool
    first_nonpositive: int | None
    left_out: tuple[tuple[str, int], ...]
    lengths: tuple[int, int] | None
    source: str
    data: DecayData = field(repr=False)

    def fit(self, law: str) -> LawFit:
        """The fit of one law.

        Raises:
            InvalidInputError: it was not fitted.
        """
        for found in self.fits:
            if found.law == law:
                return found
        why = dict(self.not_fitted).get(law, "it was not asked for")
        raise InvalidInputError(f"decay fit: {law!r} was not fitted: {why}")

    @property
    def best(self) -> LawFit | None:
        """The fit of the chosen law."""
        return None if self.chosen is None else self.fit(self.chosen)

    @property
    def planes(self) -> tuple[int, ...]:
        """The numbers of planes F of 1..64 whose power -2/F lies within the exponent's interval."""
        if self.exponent is None:
            return ()
        return tuple(count for count in range(1, 65) if self.exponent.low <= -2 / count <= self.exponent.high)

    def predict(self, lengths: Sequence[int]) -> Float[FloatArray, "m 3"]:
        """The chosen law at any lengths: margin, and both ends of its band (NaN where it has none).

        Args:
            lengths: n >= 1, of any size.

        Raises:
            InvalidInputError: no law is chosen, or it cannot say (a fit that was read from a file holds no law).

        Accuracy: the band is of the law, pointwise; see `Shape.band`. Beyond the lengths fitted it takes the law for
            granted.
        """
        shape = None if self.best is None else self.best.shape
        if shape is None:
            raise InvalidInputError("predict: no law is chosen, or this fit was read from a file and holds none")
        band = shape.band(lengths)
        ends = np.full((len(lengths), 2), np.nan) if band is None else band
        return np.asarray(np.exp(np.column_stack([shape.log_margin(lengths), ends])))

    @property
    def weights(self) -> dict[str, float]:
        """Akaike weights of the laws fitted: how much of the support each has, if one is right; none without noise."""
        if not self.fits or self.is_exact:
            return {}
        least = self.fits[0].aicc
        relative = {fit.law: math.exp(-(fit.aicc - least) / 2) if math.isfinite(fit.aicc) else 0.0 for fit in self.fits}
        total = sum(relative.values()) or 1.0
        return {name: value / total for name, value in relative.items()}

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        weights = self.weights
        return {
            "schema": SCHEMA,
            "source": self.source,
            "status": self.status,
            "reason": self.reason,
            "chosen": self.chosen,
            "exponent": None if self.exponent is None else self.exponent.to_dict(),
            "planes_within": list(self.planes),
            "plain_slope": self.plain_slope,
            "lengths": None if self.lengths is None else [safe_integer(n) for n in self.lengths],
            "points_given": self.points_given,
            "points_used": self.points_used,
            "on_envelope": self.on_envelope,
            "ends_known": self.ends_known,
            "from_begins": self.from_begins,
            "is_exact": self.is_exact,
            "first_nonpositive_length": None
            if self.first_nonpositive is None
            else safe_integer(self.first_nonpositive),
            "left_out": dict(self.left_out),
            "intervals": {kind: KINDS[kind] for kind in sorted(self._kinds())},
            "laws": [{**fit.to_dict(), "weight": weights.get(fit.law)} for fit in self.fits],
            "not_fitted": dict(self.not_fitted),
        }

    @classmethod
    def from_dict(cls, data: Any) -> DecayFit:
        """Read what `to_dict` wrote. The points themselves are not in it: `data` is empty, and no law can be drawn.

        Raises:
            FileFormatError: a wrong schema, a missing or malformed field.
        """
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise FileFormatError(f"decay fit: expected schema {SCHEMA!r}")
        try:
            status, chosen, failing = data["status"], data["chosen"], data["first_nonpositive_length"]
            fits = tuple(LawFit.from_dict(law) for law in data["laws"])
            if status not in STATUSES or (chosen is not None and chosen not in {fit.law for fit in fits}):
                raise FileFormatError(f"decay fit: status {status!r} or law {chosen!r} is unknown")
            return cls(
                status=status,
                reason=str(data["reason"]),
                chosen=chosen,
                fits=fits,
                not_fitted=tuple((str(name), str(why)) for name, why in data["not_fitted"].items()),
                exponent=None if data["exponent"] is None else Estimate.from_dict(data["exponent"]),
                plain_slope=None if data["plain_slope"] is None else float(data["plain_slope"]),
                points_used=plain_integer(data["points_used"]),
                points_given=plain_integer(data["points_given"]),
                on_envelope=bool(data["on_envelope"]),
                ends_known=bool(data["ends_known"]),
                from_begins=bool(data["from_begins"]),
                is_exact=bool(data["is_exact"]),
                first_nonpositive=None if failing is None else read_safe_integer(failing),
                left_out=tuple((str(kind), plain_integer(count)) for kind, count in data["left_out"].items()),
                lengths=None if data["lengths"] is None else _pair(data["lengths"]),
                source=str(data["source"]),
                data=decay_data([], []),
            )
        except FileFormatError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise FileFormatError(f"decay fit: a field is missing or wrong ({error})") from error

    def _kinds(self) -> set[str]:
        return {estimate.kind for fit in self.fits for estimate in fit.parameters.values()}


def _pair(ends: Any) -> tuple[int, int]:
    first, last = map(read_safe_integer, ends)
    return first, last


def fit_decay(
    data: DecayData | MarginCurve,
    *,
    laws: Sequence[str] | None = None,
    angle: ClosedForm | None = None,
    planes_used: int | None = None,
    unit_weight: bool | None = None,
    first: int | None = None,
    last: int | None = None,
) -> DecayFit:
    """Fit the laws of decay to a margin curve, and choose.

    Args:
        data: of `decay_data`, `curve_data` or `read_curve`; or a curve of the engine.
        laws: which of `laws.LAWS` to fit; all if not given.
        angle: of the one plane, where it is known: the staircase law then has that angle instead of a fitted one.
        planes_used: F of the law n^(-2/F), where it is known.
        unit_weight: whether the heights of the staircase and the Retrieval law are known to be in units of beta. By
            default they are where the data say so.
        first: smallest length to fit.
        last: largest length to fit.

    Raises:
        InvalidInputError: an unknown law, a window without points, or fewer than 4 points given.

    Accuracy: of each interval, what its `kind` says; coverage on simulated curves: benchmarks/coverage_of_fits.py.

    Source: docs/MATHEMATICS.md, section 10.

    Example:
        >>> from ropegeo.asymptotics.data import decay_data
        >>> lengths = [10, 20, 40, 80, 160]
        >>> fit = fit_decay(decay_data(lengths, [3 / n**2 for n in lengths]), laws=["constant", "power"])
        >>> fit.chosen, round(fit.exponent.value, 6)
        ('power', -2.0)
    """
    if isinstance(data, MarginCurve):
        data = curve_data(data)
    for name in laws or ():
        if name not in LAWS:
            raise InvalidInputError(f"fit_decay: law {name!r} is unknown; use some of {', '.join(LAWS)}")
    if planes_used is not None and planes_used < 1:
        raise InvalidInputError(f"fit_decay: planes_used {planes_used} must be at least 1")
    given = data.between(first, last)
    rows = len(given.lengths) + sum(count for _, count in data.left_out)
    steps = _steps(data) if data.begins else _steps(given)
    usable = steps.between(first, last)
    if rows < FEWEST_POINTS and (not data.begins or not (rows or usable.lengths)):
        window = "" if first is None and last is None else f" from {short(first or 1)}"
        window += "" if last is None else f" to {short(last)}"
        raise InvalidInputError(f"fit_decay: {rows} points{window}; a fit needs at least {FEWEST_POINTS}")
    failing = given.first_nonpositive
    before = usable if failing is None else usable.between(None, failing - 1)
    known = before.relative_error <= UNRESOLVED if len(before.lengths) else np.zeros(0, dtype=bool)
    used = before.at(known)
    unresolved = len(before.lengths) - len(used.lengths)
    left_out = (*data.left_out, *((("unresolved", unresolved),) if unresolved else ()))
    outcome = _Outcome(used, laws, angle, planes_used, used.unit == "beta" if unit_weight is None else unit_weight)
    on_envelope = steps is not given and steps is not data
    status, reason = _status(outcome, given, used, on_envelope, left_out)
    positive = given.at(given.positive)
    return DecayFit(
        status=status,
        reason=reason,
        chosen=None if outcome.chosen is None or status == "too_few_steps" else outcome.chosen.law,
        fits=outcome.fits,
        not_fitted=outcome.not_fitted,
        exponent=outcome.exponent,
        plain_slope=line(positive.log_length, positive.log_margin)[0] if len(positive.lengths) > 1 else None,
        points_used=len(used.lengths),
        points_given=rows,
        on_envelope=on_envelope,
        ends_known=steps.ends_known,
        from_begins=data.begins,
        is_exact=data.is_exact,
        first_nonpositive=failing,
        left_out=left_out,
        lengths=(used.lengths[0], used.lengths[-1]) if used.lengths else None,
        source=data.source,
        data=used,
    )


def _steps(data: DecayData) -> DecayData:
    """The envelope; or the data themselves where there is no step, or nothing but one."""
    return data if len(set(data.heights)) <= 1 else envelope(data)


class _Outcome:
    """All laws fitted to the points used, and the choice among them."""

    def __init__(
        self,
        used: DecayData,
        laws: Sequence[str] | None,
        angle: ClosedForm | None,
        count: int | None,
        unit_weight: bool,
    ) -> None:
        self.fits: tuple[LawFit, ...] = ()
        self.not_fitted: tuple[tuple[str, str], ...] = ()
        self.exponent: Estimate | None = None
        self.chosen: LawFit | None = None
        self.is_spread = len(used.lengths) >= FEWEST_POINTS and float(np.ptp(used.log_length)) > 1e-9
        if not self.is_spread:
            return
        asked = [name for name in LAWS if laws is None or name in laws]
        made = _laws(used, dict.fromkeys([*asked, "power"]), angle, count, free_weight=not unit_weight)
        fitted = {name: fit_law(law, used) for name, law in made.items()}
        power_law = fitted["power"]
        self.exponent = None if power_law is None else power_law.parameters["exponent"]
        found = {name: fit for name in asked if (fit := fitted[name]) is not None and fit.determined}
        self.fits = compared(list(found.values()), len(used.lengths))
        self.not_fitted = tuple(
            (name, made[name].why_not or "the points do not determine its parameters")
            for name in asked
            if name not in found
        )
        ranked = [fit for fit in self.fits if math.isfinite(fit.aicc)]
        if ranked:
            alike = [fit for fit in ranked if fit.aicc <= ranked[0].aicc + ALIKE]
            self.chosen = min(alike, key=lambda fit: (fit.counted, fit.aicc))


def _laws(
    used: DecayData, names: Iterable[str], angle: ClosedForm | None, count: int | None, *, free_weight: bool
) -> dict[str, Law]:
    makers: dict[str, Callable[[], Law]] = {
        "constant": lambda: constant(used),
        "power": lambda: power(used),
        "planes": lambda: planes(used, count),
        "exponential": lambda: exponential(used),
        "power_floor": lambda: power_floor(used),
        "retrieval": lambda: retrieval(used, free_weight=free_weight),
        "staircase": lambda: (
            Law(name="staircase", formula=STAIRCASE, why_not=UNKNOWN_REACH)
            if not used.reach_known
            else fitted_staircase(used, free_weight=free_weight)
            if angle is None
            else known_staircase(used, angle, free_weight=free_weight)
        ),
    }
    return {name: makers[name]() for name in names}


def _status(
    outcome: _Outcome, given: DecayData, used: DecayData, on_envelope: bool, left_out: tuple[tuple[str, int], ...]
) -> tuple[str, str]:
    """The verdict, and why."""
    count, failing = len(used.lengths), given.first_nonpositive
    lost = sum(number for _, number in left_out)
    one_height = len(set(given.heights)) == 1 and failing is None
    if one_height and not lost:
        return "does_not_decay", f"the margin is the same at all {len(given.lengths)} lengths given"
    if count < FEWEST_POINTS and lost:
        kinds = ", ".join(f"{number} {kind}" for kind, number in left_out)
        return "window_outside_precision", f"{count} margins are known well enough; left out: {kinds}"
    if count < FEWEST_POINTS and failing is not None:
        return (
            "changes_sign",
            f"the margin is 0 or below from length {short(failing)} on, with {count} points before it",
        )
    if count < FEWEST_POINTS:
        what = "steps whose end is seen" if on_envelope else "points"
        return "too_few_steps", f"{count} {what}; at least {FEWEST_POINTS} are needed"
    chosen = outcome.chosen
    if chosen is not None and chosen.law == "constant" and not _is_told(outcome):
        return "too_few_steps", f"{count} points are too few to tell a law that falls from a constant"
    if chosen is None:
        return "degenerate", "the points do not determine any law" if outcome.is_spread else "the lengths are all alike"
    falls = chosen.log_margin[-1] < chosen.log_margin[0]
    if failing is not None:
        place = given.lengths.index(failing)
        noise = given.sd is not None and given.margin[place] > -2 * given.sd[place]
        return (
            "changes_sign",
            f"the margin is 0 or below at length {short(failing)}"
            + (", though within two of its sd" if noise else "")
            + "; laws are fitted to what lies before",
        )
    if chosen.law == "constant":
        return "does_not_decay", "a constant describes the margins as well as any law that falls"
    if not falls:
        return "does_not_decay", f"the margin rises with the length ({chosen.law})"
    return "ok", _why(outcome, chosen)


def _is_told(outcome: _Outcome) -> bool:
    """Whether a law that falls was compared at all: with four points AICc allows none but a constant."""
    return any(math.isfinite(fit.aicc) for fit in outcome.fits if fit.law != "constant") or len(outcome.fits) == 1


def _why(outcome: _Outcome, chosen: LawFit) -> str:
    others = [fit for fit in outcome.fits if fit is not chosen and math.isfinite(fit.aicc)]
    if not others:
        return f"{chosen.law} is the only law fitted"
    lead = min(others, key=lambda fit: fit.aicc)
    gap = lead.aicc - chosen.aicc
    if gap < 0:
        return f"{chosen.law} has fewer free numbers than {lead.law}, whose AICc is lower by only {-gap:.1f}"
    return f"{chosen.law} has the least AICc, {gap:.1f} below {lead.law}{_doubt(outcome)}"


def _doubt(outcome: _Outcome) -> str:
    """What the exponent's interval says against a decay that AICc prefers."""
    exponent = outcome.exponent
    if exponent is None or not exponent.low <= 0 <= exponent.high:
        return ""
    return "; but the exponent's interval holds 0, no decay"

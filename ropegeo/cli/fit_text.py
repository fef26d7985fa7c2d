"""What `ropegeo fit` says: rows of its table, lines below it, and numbers with their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ropegeo.asymptotics.compare import VERDICTS, Comparison
from ropegeo.asymptotics.fit import STATUSES, DecayFit
from ropegeo.asymptotics.fitted_law import Estimate, LawFit
from ropegeo.asymptotics.intervals import KINDS
from ropegeo.exact import short

PARAMETERS = 58
"""Columns for the parameters of a law."""
LEFT_OUT = {
    "bound": "upper bounds only",
    "undecided": "sign not decided",
    "unresolved": "not known well enough",
}


def points_text(fit: DecayFit) -> str:
    """How many points there are, which of them are fitted, and what is left out."""
    given = f"{fit.points_given} points given, {fit.points_used} used"
    if fit.lengths is not None:
        ends = "ends of steps, " if fit.on_envelope else ""
        given += f": {ends}lengths {short(fit.lengths[0])} to {short(fit.lengths[1])}"
    if fit.on_envelope and not fit.ends_known:
        given += (
            " (taking the rows for all steps, as curve --records writes them; JSON says so)"
            if fit.from_begins
            else " (a step ends where the lengths given show it)"
        )
    left_out = [f"{count} {LEFT_OUT[kind]}" for kind, count in fit.left_out]
    kind = "measured margins" + (" with standard deviations" if fit.data.sd is not None else "")
    kind = "computed margins, without noise" if fit.is_exact else kind
    return "; ".join([given, *([f"left out: {', '.join(left_out)}"] if left_out else []), kind])


def law_table(fit: DecayFit, angle: str | None) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """Columns and rows: law, numbers, rms deviation, AICc above the least, and where there is noise the weight."""
    columns = [("law", "left"), ("parameters", "left"), ("rms", "right"), ("dAICc", "right"), ("weight", "right")]
    weights, rows = fit.weights, []
    for law in fit.fits:
        gap = law.aicc - fit.fits[0].aicc
        compared = math.isfinite(gap)
        rows.append(
            [
                law.law,
                "\n".join(_packed(law_numbers(law, angle), PARAMETERS)) or "none",
                _deviation(law.rms),
                (f"{gap:.1f}" if gap < 1e5 else _power(gap)) if compared else "-",
                *([_share(weights[law.law]) if compared else "-"] if weights else []),
            ]
        )
    return columns if weights else columns[:-1], rows


def law_numbers(law: LawFit, angle: str | None) -> list[str]:
    """The numbers of a law: fitted ones with their intervals, and known ones; an angle as it was given."""
    numbers = [f"{name} {estimate_text(estimate)}" for name, estimate in law.parameters.items()]
    return numbers + [f"{name} = {angle if name == 'angle' and angle else text}" for name, text in law.fixed.items()]


def fit_lines(fit: DecayFit) -> Iterator[tuple[str, str]]:
    """Everything below the table: label and text."""
    if fit.exponent is not None:
        on = " on the envelope" if fit.on_envelope else ""
        other = "" if fit.chosen in (None, "power") else ", which is not the one chosen"
        yield "exponent", f"{estimate_text(fit.exponent)} of n{on}, by the power law{other}"
    if fit.planes:
        counts = ", ".join(map(str, fit.planes[:8])) + (", ..." if len(fit.planes) > 8 else "")
        yield "planes", f"-2/F, the order of F planes, lies in the exponent's interval for F = {counts}"
    for kind, names in _kinds(fit).items():
        yield "intervals", f"of {names}: {KINDS[kind]}" if len(_kinds(fit)) > 1 else KINDS[kind]
    if fit.plain_slope is not None:
        yield (
            "plain slope",
            f"{fit.plain_slope:.3f} of the line through the logarithms of all positive points given"
            + (": biased on a staircase, depends on which lengths are sampled" if fit.on_envelope else ""),
        )
    shown = fit.fit(fit.chosen) if fit.chosen else None
    if shown is not None:
        yield "residuals", _residuals(fit, shown)
    short_of = [law.law for law in fit.fits if not math.isfinite(law.aicc)]
    if short_of:
        yield "not compared", f"{', '.join(short_of)}: too few points for so many free numbers"
    for name, why in fit.not_fitted:
        yield "not fitted", f"{name}: {why}"
    if fit.first_nonpositive is not None:
        yield "fails", f"the first length given with a margin of 0 or below is {short(fit.first_nonpositive)}"
    if fit.status != "ok":
        yield "status", f"{fit.status}: {STATUSES[fit.status]}"
        yield "because", fit.reason
    if fit.chosen is not None:
        yield "chosen", fit.chosen + (f": {fit.reason}" if fit.status == "ok" else "")


def _kinds(fit: DecayFit) -> dict[str, str]:
    """Each kind of interval in the table, and the parameters that have it."""
    found: dict[str, list[str]] = {}
    for law in fit.fits:
        for name, estimate in law.parameters.items():
            names = found.setdefault(estimate.kind, [])
            if name not in names:
                names.append(name)
    return {kind: ", ".join(names) for kind, names in found.items()}


def _residuals(fit: DecayFit, law: LawFit) -> str:
    nature = "deterministic, no noise" if fit.is_exact else "taken as noise"
    texts = [f"of {law.law}: {nature}", f"at most {_deviation(law.largest).replace('x ', 'a factor ')}"]
    if math.isfinite(law.lag1) and law.rms > 1e-12:
        texts.append(f"neighbours correlate by {law.lag1:.2f}")
    if not fit.is_exact:
        allowed = f"a correlation of {law.correlation:.2f} between the errors of neighbours is allowed for"
        texts.append(allowed if law.correlation else "none between errors is allowed for")
    if math.isfinite(law.scale):
        texts.append(f"on the whole {law.scale:.2g} times the sd given, which count relative to each other only")
    return ", ".join(texts)


def comparison_lines(found: Comparison) -> Iterator[tuple[str, str]]:
    """What came of a comparison: label and text."""
    yield "verdict", f"{found.verdict}: {VERDICTS[found.verdict]}"
    exact = not math.isfinite(found.p_trend)
    if found.verdict == "identical":
        yield "apart", f"by no more than rounding at {found.points} lengths"
    elif math.isfinite(found.factor.value):
        noise = ": of computed margins, without noise" if exact else ""
        yield "data/theory", f"factor {estimate_text(found.factor)}, drift n^{estimate_text(found.drift)}{noise}"
    if not exact:
        text = (
            f"{found.p_trend:.2g} for such a factor and drift if there is neither; {found.p_drift:.2g} for such a drift"
        )
        text += " alone"
        if math.isfinite(found.p_scatter):
            text += f"; {found.p_scatter:.2g} for deviations as large as all of these by the standard deviations given"
        yield "p", text
    if found.at is not None and found.verdict != "identical":
        apart = f"a factor {found.largest:.4g}" if math.isfinite(found.largest) else "a factor above 1e300"
        yield "apart", f"by {apart} at most, at length {short(found.at)}; {found.points} lengths compared"
    if found.opposite:
        shown = ", ".join(short(n) for n in found.opposite[:8]) + (", ..." if len(found.opposite) > 8 else "")
        yield "signs", f"opposite at {len(found.opposite)} lengths: {shown}"


def estimate_text(estimate: Estimate) -> str:
    """A number and its interval, to two digits of the interval's width.

    Example:
        >>> estimate_text(Estimate(value=-1.99213, low=-2.02060, high=-1.95979, kind="enclosure"))
        '-1.992 [-2.021, -1.960]'
        >>> estimate_text(Estimate(value=0.0027, low=0.0027 - 1e-15, high=0.0027 + 2e-15, kind="enclosure"))
        '0.0027 (+-2e-15)'
    """
    ends = (estimate.low, estimate.high)
    if any(map(math.isnan, ends)):
        return f"{_short_float(estimate.value, 4)} (no interval)"
    if not all(map(math.isfinite, ends)):
        return f"{_short_float(estimate.value, 3)} ({_short_float(ends[0], 2)}, {_short_float(ends[1], 2)})"
    width, size = ends[1] - ends[0], max(abs(estimate.value), *map(abs, ends))
    if width <= 1e-8 * size:  # both ends would be the same digits again
        half = max(estimate.value - ends[0], ends[1] - estimate.value)
        digits = 10 if half <= 0 else min(max(math.ceil(math.log10(size / half)) + 1, 9), 15)
        return f"{estimate.value:.{digits}g} (+-{_power(half)})"
    digits = max(math.ceil(math.log10(size / width)) + 2, 2)
    value, low, high = (_short_float(number, digits) for number in (estimate.value, *ends))
    return f"{value} [{low}, {high}]"


def _short_float(value: float, digits: int) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{abs(value):g}" if value == 0 else f"{value:g}"
    text = f"{value:#.{digits}g}".rstrip(".")
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa.rstrip('.')}e{int(exponent)}" if mark else text


def _packed(parts: Sequence[str], width: int) -> list[str]:
    """Parts joined by commas, in lines that break between parts only."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + 2 + len(part) <= width:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return lines


def _deviation(logarithm: float) -> str:
    """A deviation of the log margin: per cent, or a factor where it is large."""
    if logarithm == 0:
        return "0 %"
    if logarithm < 0.5:
        return f"{100 * logarithm:.3g} %" if logarithm > 1e-6 else f"{_power(100 * logarithm)} %"
    factor = math.exp(min(logarithm, 700))
    return f"x {factor:.3g}" if factor < 1000 else f"x {factor:.0f}" if factor < 1e5 else f"x {_power(factor)}"


def _share(weight: float) -> str:
    return f"{weight:.2f}" if weight >= 0.005 else _power(weight) if weight > 1e-99 else "<1e-99"


def _power(value: float) -> str:
    """One digit and its power of ten; 0 as it is."""
    if value == 0:
        return "0"
    mantissa, _, exponent = f"{value:.0e}".partition("e")
    return f"{mantissa}e{int(exponent)}"

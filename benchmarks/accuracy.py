"""docs/ACCURACY.md: the error of every route's logits at distances 10^3 to 10^9, and of float phases beside it.

The truth is mpmath at 50 digits, written here and using nothing of ropegeo: angle_k = 10000^(-k/64), a head with random
complex coefficients on 64 planes, logits in units of its weight. For each size the largest error over displacements
drawn below it is shown:

* `definition`: `LogitProfile.logit` (numpy, 128-bit turns);
* `streamed`: `Sweep.logits` (angle addition);
* `certified`: `ExactDeficit` (ball arithmetic), 17 digits asked for: what margins of several planes are reported from;
* `one 64-bit word`: turns held in 64 bits only, as a fault;
* `float64 phase`: cos(t * inv_freq) with the product in float64, as a fault; `float32 phase`: as models compute it.

Prints a Markdown table; run with `--json` for numbers.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
from measure import machine

from ropegeo.engine.certify import ExactDeficit
from ropegeo.engine.sweep import Sweep, sweep_error
from ropegeo.heads import LOGIT_ERROR, LogitProfile
from ropegeo.spectrum import RopeSpectrum

PLANES = 64
DRAWN = 60
EXPONENTS = range(3, 10)
COLUMNS = ("definition", "streamed", "certified", "one 64-bit word", "float64 phase", "float32 phase")


def true_logits(coefficients: Any, displacements: list[int]) -> list[Any]:
    """Re sum_k c_k exp(i t 10000^(-k/64)) / sum |c_k|, to 50 digits."""
    with mpmath.workdps(60):
        angles = [mpmath.mpf(10000) ** (mpmath.mpf(-k) / PLANES) for k in range(PLANES)]
        parts = [(mpmath.mpf(c.real), mpmath.mpf(c.imag)) for c in coefficients.tolist()]
        weight = mpmath.fsum(mpmath.hypot(*part) for part in parts)
        return [
            mpmath.fsum(
                re * mpmath.cos(t * angle) - im * mpmath.sin(t * angle)
                for (re, im), angle in zip(parts, angles, strict=True)
            )
            / weight
            for t in displacements
        ]


def errors_at(exponent: int) -> dict[str, float]:
    """Largest error of each way over displacements between 10^(exponent - 1/2) and 10^exponent."""
    rng = np.random.default_rng(exponent)
    t = np.unique(rng.integers(int(10 ** (exponent - 0.5)), 10**exponent, DRAWN))
    spectrum = RopeSpectrum.from_base(10000, head_dim=2 * PLANES)
    phased = LogitProfile(spectrum=spectrum, coefficients=rng.normal(size=PLANES) + 1j * rng.normal(size=PLANES))
    truth = true_logits(phased.coefficients, t.tolist())
    swept = Sweep((phased,), threads=1, rows=8)
    c, angles, weight = phased.coefficients, spectrum.inv_freq, phased.weight
    words = spectrum.words[0]
    word = (t.astype(np.uint64)[:, None] * words).view(np.int64) * (2 * np.pi * 2.0**-64)
    single = t.astype(np.float32)[:, None] * angles.astype(np.float32)
    exact = ExactDeficit(phased)

    def from_phases(phases: Any) -> Any:
        return (c.real * np.cos(phases) - c.imag * np.sin(phases)).sum(axis=-1) / weight

    ways = {
        "definition": phased.logit(t) / weight,
        "streamed": np.array([swept.logits(int(each), int(each))[0, 0] for each in t]) / weight,
        "one 64-bit word": from_phases(word),
        "float64 phase": from_phases(t[:, None] * angles),
        "float32 phase": from_phases(single.astype(np.float64)),
    }
    with mpmath.workdps(50):
        found = {
            name: float(max(abs(mpmath.mpf(float(x)) - y) for x, y in zip(values, truth, strict=True)))
            for name, values in ways.items()
        }
        enclosed = [exact.at(int(each)) for each in t]
        found["certified"] = float(
            max(
                abs(1 - (mpmath.mpf(e.low.numerator) / e.low.denominator) - y)
                for e, y in zip(enclosed, truth, strict=True)
            )
        )
    return found


def main() -> None:
    """Print the table."""
    rows = {exponent: errors_at(exponent) for exponent in EXPONENTS}
    if "--json" in sys.argv[1:]:
        stated = {"definition": LOGIT_ERROR, "streamed": sweep_error(PLANES)}
        print(json.dumps({**machine(), "planes": PLANES, "stated": stated, "errors": rows}, indent=1))
        return
    print("| t up to |", " | ".join(COLUMNS), "|")
    print("| --- |", " | ".join("---:" for _ in COLUMNS), "|")
    for exponent, row in rows.items():
        print(f"| 10^{exponent} |", " | ".join(f"{row[name]:.1e}" for name in COLUMNS), "|")


if __name__ == "__main__":
    main()

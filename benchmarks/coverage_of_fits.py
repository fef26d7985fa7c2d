"""How often the 95 % intervals of fits cover the truth, on simulated curves.

For each row of the table: curves of a known law with relative noise of 20 % (5 % for the Retrieval law, whose margins
near its end are small), fitted with that law by `fit_decay`; the share of them whose interval holds the true number,
and that share's own standard error. Noise is normal in the logarithm, independent or AR(1); one row has multiplicative
noise e ~ normal(1, 0.2), one Student's t with 4 degrees of freedom, so that the shape is not the assumed one.

Prints JSON; `--curves N` for another number than 1000.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from measure import machine

from ropegeo.asymptotics.data import decay_data
from ropegeo.asymptotics.fit import fit_decay
from ropegeo.asymptotics.intervals import SERIAL, STUDENT

Noise = Callable[[np.random.Generator, int], Any]


def independent(rng: np.random.Generator, count: int) -> Any:
    """Normal, of standard deviation 1."""
    return rng.normal(size=count)


def correlated(rho: float) -> Noise:
    """A stationary AR(1) sequence of standard deviation 1."""

    def noise(rng: np.random.Generator, count: int) -> Any:
        fresh = rng.normal(size=count) * np.sqrt(1 - rho**2)
        fresh[0] = rng.normal()
        for place in range(1, count):
            fresh[place] += rho * fresh[place - 1]
        return fresh

    return noise


def heavy(rng: np.random.Generator, count: int) -> Any:
    """Student's t with 4 degrees of freedom, of standard deviation 1."""
    return rng.standard_t(4, size=count) / np.sqrt(2)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row: a law with its true numbers, and a noise."""

    name: str
    points: int
    noise: Noise
    size: float = 0.2
    law: str = "power"
    multiplicative: bool = False
    promised: bool = True
    """Whether 91 to 98 % are stated and tested; the rest shows where intervals are too narrow."""

    def truth(self) -> dict[str, float]:
        """The numbers that intervals should hold."""
        return {"exponent": -2.0} if self.law == "power" else {"omega": np.pi / 4, "theta": 0.0027}

    def lengths(self) -> Any:
        """Log-spaced for powers, evenly spaced for the Retrieval law."""
        if self.law == "power":
            return np.unique(np.rint(np.geomspace(100, 1e7, self.points)).astype(int))
        return np.unique(np.rint(np.linspace(17, 120, self.points)).astype(int))

    def margins(self) -> Any:
        """Without noise."""
        n = self.lengths().astype(float)
        if self.law == "power":
            return 3 / n**2
        omega, theta = self.truth().values()
        first = np.cos((n - 2) * theta) - np.cos(omega - (n - 1) * theta)
        return np.minimum(first, np.cos((n - 1) * theta) - np.cos(omega - (n - 2) * theta))

    def curve(self, rng: np.random.Generator) -> Any:
        """One simulated curve."""
        drawn = self.size * self.noise(rng, self.points)
        return self.margins() * (np.maximum(1 + drawn, 0.02) if self.multiplicative else np.exp(drawn))


CASES = (
    Case(name="12 points, independent", points=12, noise=independent),
    Case(name="30 points, independent", points=30, noise=independent),
    Case(name="30 points, independent, multiplicative", points=30, noise=independent, multiplicative=True),
    Case(name="30 points, independent, Student t4", points=30, noise=heavy),
    Case(name="200 points, independent", points=200, noise=independent),
    Case(name="30 points, AR(1) 0.5", points=30, noise=correlated(0.5)),
    Case(name="200 points, AR(1) 0.5", points=200, noise=correlated(0.5)),
    Case(name="200 points, AR(1) 0.8", points=200, noise=correlated(0.8)),
    Case(name="12 points, AR(1) 0.5", points=12, noise=correlated(0.5), promised=False),
    Case(name="20 points, AR(1) 0.8", points=20, noise=correlated(0.8), promised=False),
    Case(name="30 points, AR(1) 0.8", points=30, noise=correlated(0.8), promised=False),
    Case(name="Retrieval law, 40 points, independent", points=40, noise=independent, size=0.05, law="retrieval"),
    Case(name="Retrieval law, 100 points, AR(1) 0.5", points=100, noise=correlated(0.5), size=0.05, law="retrieval"),
)


def coverage(case: Case, curves: int, seed: int = 0) -> dict[str, Any]:
    """The share of intervals that hold each true number, over simulated curves."""
    rng = np.random.default_rng(seed)
    lengths = case.lengths().tolist()
    truth = case.truth()
    held = dict.fromkeys(truth, 0)
    widths: dict[str, list[float]] = {name: [] for name in truth}
    kinds = set()
    for _ in range(curves):
        fit = fit_decay(decay_data(lengths, case.curve(rng)), laws=[case.law], unit_weight=True).fit(case.law)
        for name, value in truth.items():
            estimate = fit.parameters[name]
            kinds.add(estimate.kind)
            held[name] += estimate.low <= value <= estimate.high
            widths[name].append((estimate.high - estimate.low) / 2)
    assert kinds == {STUDENT if case.points < 20 else SERIAL}, kinds  # noqa: S101
    return {
        "case": case.name,
        "promised": case.promised,
        "curves": curves,
        **{
            name: {
                "covered": held[name] / curves,
                "standard_error": round(float(np.sqrt(0.05 * 0.95 / curves)), 4),
                "median_half_width": float(np.median(widths[name])),
            }
            for name in truth
        },
    }


def main() -> None:
    """Run every case."""
    parser = argparse.ArgumentParser(description="Coverage of the 95 % intervals of fits.")
    parser.add_argument("--curves", type=int, default=1000)
    curves = parser.parse_args().curves
    print(json.dumps({"machine": machine(), "nominal": 0.95, "rows": [coverage(c, curves) for c in CASES]}, indent=1))


if __name__ == "__main__":
    main()

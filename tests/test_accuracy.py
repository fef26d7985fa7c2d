"""docs/ACCURACY.md says what is true: errors against mpmath stay below the stated bounds, and the faults show."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ropegeo.engine.sweep import sweep_error
from ropegeo.heads import LOGIT_ERROR

ROOT = Path(__file__).parents[1]
STATED = {"definition": LOGIT_ERROR, "streamed": sweep_error(64), "certified": 1e-17}
FAULTS = ("one 64-bit word", "float64 phase", "float32 phase")


def table() -> dict[int, dict[str, float]]:
    """Exponent of t to error of each column, as the page says."""
    lines = [line for line in (ROOT / "docs" / "ACCURACY.md").read_text().splitlines() if line.startswith("|")]
    names = [cell.strip() for cell in lines[0].strip("|").split("|")][1:]
    rows = {}
    for line in lines[2:]:
        first, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows[int(first.removeprefix("10^"))] = dict(zip(names, map(float, cells), strict=True))
    return rows


def test_the_page_keeps_to_the_bounds() -> None:
    rows = table()
    assert sorted(rows) == list(range(3, 10))
    for row in rows.values():
        assert set(row) == {*STATED, *FAULTS}
        assert all(row[name] <= bound for name, bound in STATED.items())
    assert all(rows[9][name] > 1e-12 for name in FAULTS)


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [3, 9])
def test_the_page_can_be_made_again(exponent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import accuracy

    try:
        found = accuracy.errors_at(exponent)
    finally:
        sys.modules.pop("accuracy", None)
        sys.modules.pop("measure", None)
    written = table()[exponent]
    assert set(found) == set(written)
    for name, bound in STATED.items():
        assert found[name] <= bound
    for name in FAULTS:  # the last bits of a library's cosine may differ between machines
        assert written[name] / 3 <= found[name] <= 3 * written[name]

"""Certificates: what they state is proved again, and everything that is not proved is named."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import mpmath  # type: ignore[import-untyped]
import pytest
from oracles import mp_fraction, rope_angle

from ropegeo.cli import main
from ropegeo.errors import FileFormatError, InvalidInputError
from ropegeo.optimal.certificate import Certificate, certify, content_hash, proved, read_certificate, rounded_down
from ropegeo.optimal.head import optimal_head
from ropegeo.optimal.window import Window
from ropegeo.spectrum import RopeSpectrum

SPECTRUM = RopeSpectrum.from_base(100, head_dim=8)
Data = dict[str, Any]
Run = Callable[..., str]


@lru_cache
def certificate(phases: str = "free") -> Certificate:
    return optimal_head(SPECTRUM, length=30, offset=2, phases=phases).certificate


def resealed(data: Data) -> Data:
    """The hash redone, as a forger would."""
    return data | {"sha256": content_hash({name: value for name, value in data.items() if name != "sha256"})}


def changed(change: Callable[[Data], object], phases: str = "free") -> Data:
    data = copy.deepcopy(certificate(phases).to_dict())
    change(data)
    return resealed(data)


def test_both_bounds_against_mpmath() -> None:
    """The definition with 60 digits: every displacement of the window, every plane of the rotation."""
    given = certificate()
    found = certify(given)
    assert found.margin is not None
    assert found.upper_bound is not None
    with mpmath.workdps(60):
        angles = [rope_angle(100, plane, 8)() for plane in range(4)]
        head = [
            (angles[plane], mp_fraction(weight) * mpmath.expj(mp_fraction(phase)))
            for plane, weight, phase in zip(given.planes, given.weights, given.query_phases, strict=True)
        ]
        margin = min(sum((z * (1 - mpmath.expj(t * angle))).real for angle, z in head) for t in range(-2, 28) if t)
        shares = [mp_fraction(share) for share in given.distribution]
        bound = max(
            abs(sum(mu * (1 - mpmath.expj(t * a)) for mu, t in zip(shares, given.displacements, strict=True)))
            for a in angles
        ) / sum(shares)
        assert mp_fraction(found.margin.low) <= margin <= mp_fraction(found.margin.high)
        assert mp_fraction(found.upper_bound.low) <= bound <= mp_fraction(found.upper_bound.high)
    assert found.margin.high - found.margin.low < Fraction(1, 10**28)
    assert Fraction(given.low) <= found.margin.low
    assert found.upper_bound.high <= Fraction(given.high)
    assert found.holds


def test_it_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(certificate().to_dict(), indent=1))
    back, fault = read_certificate(path)
    assert fault is None
    assert back.to_dict() == certificate().to_dict()
    assert certify(back).holds


def _ulp(data: Data, end: str, towards: float) -> None:
    data["enclosure"][end] = math.nextafter(data["enclosure"][end], towards)


FORGED: list[tuple[str, Callable[[Data], object], str]] = [
    ("lower bound up", lambda d: d["enclosure"].update(low=d["enclosure"]["low"] + 1e-5), "lower bound .* not implied"),
    (
        "upper bound down",
        lambda d: d["enclosure"].update(high=d["enclosure"]["high"] - 1e-5),
        "upper bound .* not i",
    ),
    ("lower bound up by an ulp", lambda d: _ulp(d, "low", 2), "lower bound .* not implied"),
    (
        "upper bound down by an ulp",
        lambda d: d["enclosure"].update(high=math.nextafter(d["enclosure"]["high"], 0)),
        "up",
    ),
    ("more weight", lambda d: d["primal"]["weights"].__setitem__(0, d["primal"]["weights"][0] + 1e-15), "more than 1"),
    ("negative weight", lambda d: d["primal"]["weights"].__setitem__(0, -0.1), "negative weight"),
    ("another phase", lambda d: d["primal"]["phases"].__setitem__(0, 0.5), "lower bound .* not implied"),
    ("negative share", lambda d: d["dual"]["distribution"].__setitem__(0, -0.1), "negative share"),
    ("another share", lambda d: d["dual"]["distribution"].__setitem__(0, 0.9), "upper bound .* not implied"),
    ("no shares", lambda d: d.update(dual={"displacements": [], "distribution": []}), "distribution is empty"),
    (
        "zero shares",
        lambda d: d.update(dual={"displacements": [1], "distribution": [0.0]}),
        "distribution is empty",
    ),
    ("the target", lambda d: d["dual"]["displacements"].__setitem__(0, 0), "outside the window"),
    ("too far", lambda d: d["dual"]["displacements"].__setitem__(0, 28), "outside the window"),
    ("a longer window", lambda d: d["window"].update(length=300, high=297), "lower bound .* not implied"),
    ("another rotation", lambda d: d.update(spectrum=RopeSpectrum.from_base(99, head_dim=8).to_dict()), "not implied"),
]


@pytest.mark.parametrize(("change", "fault"), [pytest.param(c, f, id=name) for name, c, f in FORGED])
def test_what_is_forged_does_not_hold(change: Callable[[Data], object], fault: str) -> None:
    """Each with the hash redone: only the bounds can tell."""
    found = certify(Certificate.from_dict(changed(change)))
    assert not found.holds
    assert any(re.search(fault, said) for said in found.faults), found.faults


def test_phases_where_none_are_meant() -> None:
    forged = changed(lambda d: d["primal"].update(phases=[0.0, 1e-9, *d["primal"]["phases"][2:]]), "zero")
    assert "heads without" in certify(Certificate.from_dict(forged)).faults[0]
    renamed = changed(lambda d: d.update(phases="free"), "zero")  # the bound of heads without phases is not one of all
    assert not certify(Certificate.from_dict(renamed)).holds


@pytest.mark.parametrize("step", [1e-5, 0.1])
def test_weaker_statements_hold(step: float) -> None:
    def weaker(data: Data) -> None:
        data["enclosure"] = {"low": data["enclosure"]["low"] - step, "high": data["enclosure"]["high"] + step}

    assert certify(Certificate.from_dict(changed(weaker))).holds


def test_less_weight_holds_for_less() -> None:
    """sum |z_k| below 1 is a head too."""
    half = changed(lambda d: d["primal"].update(weights=[w / 2 for w in d["primal"]["weights"]]))
    half["enclosure"]["low"] /= 2
    assert certify(Certificate.from_dict(half)).holds


MALFORMED: list[tuple[str, Callable[[Data], object]]] = [
    ("schema", lambda d: d.update(schema="ropegeo.certificate/2")),
    ("window", lambda d: d["window"].update(length=10**12)),
    ("window text", lambda d: d["window"].update(length="30")),
    ("window low", lambda d: d["window"].update(low=-1)),
    ("offset", lambda d: d["window"].update(offset=30)),
    ("planes", lambda d: d["primal"].update(planes=[0, 0, 1, 2])),
    ("plane", lambda d: d["primal"]["planes"].__setitem__(-1, 4)),
    ("weights", lambda d: d["primal"].update(weights=[0.5])),
    ("weight text", lambda d: d["primal"]["weights"].__setitem__(0, "0.5")),
    ("weight true", lambda d: d["primal"]["weights"].__setitem__(0, True)),
    ("huge weight", lambda d: d["primal"]["weights"].__setitem__(0, 10**400)),
    ("shares", lambda d: d["dual"]["distribution"].append(0.1)),
    ("displacement", lambda d: d["dual"]["displacements"].__setitem__(0, 1.5)),
    ("phases", lambda d: d.update(phases="some")),
    ("enclosure", lambda d: d["enclosure"].update(low=None)),
    ("no dual", lambda d: d.pop("dual")),
    ("spectrum", lambda d: d["spectrum"]["inv_freq"].__setitem__(0, 1.5)),
    ("list", lambda d: d.update(primal=[])),
    ("a displacement twice", lambda d: d["dual"].update(displacements=[1, 1], distribution=[0.5, 0.5])),
    ("huge plane", lambda d: d["primal"]["planes"].__setitem__(-1, 10**4000)),
    ("huge length", lambda d: d["window"].update(length=-(10**4000))),
    ("comment", lambda d: d.update(comment="believe me")),
    ("comment in the head", lambda d: d["primal"].update(comment="believe me")),
]


@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in MALFORMED])
def test_malformed(change: Callable[[Data], object]) -> None:
    with pytest.raises(FileFormatError, match=r"certificate|window|spectrum"):
        Certificate.from_dict(changed(change))


def test_numbers_beyond_doubles_are_said() -> None:
    huge = changed(lambda d: d["primal"].update(weights=[1e308] * len(d["primal"]["weights"])))
    assert "sum to more than 1, by " in certify(Certificate.from_dict(huge)).faults[0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"enclosure":', '"enclosure": {"low": 0.9, "high": 0.9}, "enclosure":', "a name stands twice"),
        ('"low":', "", None),
    ],
)
def test_a_text_that_says_more_than_is_read(old: str, new: str, message: str | None, tmp_path: Path) -> None:
    """Names that stand twice, and decimals that are no doubles: the file would state what is not checked."""
    text = json.dumps(certificate().to_dict())
    assert old in text
    if message is None:
        low = json.dumps(certificate().low)
        new, old, message = f'"low": {low}0000001', f'"low": {low}', "is not written as a double"
    path = tmp_path / "c.json"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(FileFormatError, match=message):
        read_certificate(path)


def test_nothing_is_proved_by_no_head() -> None:
    with pytest.raises(InvalidInputError, match="sum to more than 1"):
        proved(
            SPECTRUM, Window(length=9), "free", planes=[0], weights=[1.5], query_phases=[0.0], displacements=[1],
            distribution=[1.0],
        )  # fmt: skip


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(-1, 3), Fraction(1, 2), Fraction(0), Fraction(1, 10**400)])
def test_rounded_down(value: Fraction) -> None:
    low = rounded_down(value)
    assert Fraction(low) <= value < Fraction(math.nextafter(low, math.inf))


# ---- the command ----


@pytest.fixture(name="written")
def _written(command_folder: None) -> Callable[[Data | str], str]:
    def written(data: Data | str) -> str:
        Path("c.json").write_text(data if isinstance(data, str) else json.dumps(data))
        return "c.json"

    return written


def test_certify(run: Run, written: Callable[[Data | str], str]) -> None:
    path = written(certificate().to_dict())
    out = run(f"certify {path}")
    assert "holds: the best margin lies in" in out
    assert json.loads(run(f"certify {path} --json"))["holds"] is True
    moved = written(changed(lambda d: d["enclosure"].update(low=d["enclosure"]["low"] + 1e-5)))
    assert "does not hold: the stated lower bound" in run(f"certify {moved}", status=1)
    unsealed = certificate().to_dict() | {"sha256": "0" * 64}
    assert "the content's SHA-256 is" in run(f"certify {written(unsealed)}", status=1)
    faults = json.loads(run(f"certify {path} --json", status=1))["faults"]
    assert len(faults) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "cannot be read as JSON"),
        ("[" * 10**5, "cannot be read as JSON"),
        ("[]", "expected schema"),
        ('{"schema": "ropegeo.certificate/1"}', "a field is missing or wrong"),
        (json.dumps({"schema": "ropegeo.certificate/1", "primal": math.nan}), "NaN is not a JSON number"),
        ("\x00\xff", "cannot be read as JSON"),
    ],
)
def test_what_is_no_certificate(
    content: str, message: str, written: Callable[[Data | str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["certify", written(content)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err
    assert main(["certify", "absent.json"]) == 2
    assert "does not exist" in capsys.readouterr().err

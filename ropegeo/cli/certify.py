"""`ropegeo certify`: the proof of a best head, checked again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from ropegeo._version import __version__
from ropegeo.cli.optimal import aim_text
from ropegeo.cli.output import console, print_json, printable, working
from ropegeo.optimal.certificate import Certificate, Examination, certify, read_certificate

if TYPE_CHECKING:
    from ropegeo.exact import Enclosure

SCHEMA = "ropegeo.certify/1"
DIGITS = 15


def run(path: str, *, as_json: bool) -> None:
    """Read, recompute, say what is proved."""
    certificate, wrong_hash = read_certificate(path)
    window = certificate.window
    with working("proving the margin", window.high - window.low) as progress:
        found = certify(certificate, progress=progress)
    faults = [*([] if wrong_hash is None else [wrong_hash]), *found.faults]
    if as_json:
        print_json(_data(certificate, found, faults))
    else:
        _show(certificate, found, faults)
    if faults:
        raise typer.Exit(1)


def _data(certificate: Certificate, found: Examination, faults: list[str]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "package_version": __version__,
        "holds": not faults,
        "faults": faults,
        "spectrum": certificate.spectrum.to_dict(),
        "window": certificate.window.to_dict(),
        "phases": certificate.phases,
        "stated": {"low": certificate.low, "high": certificate.high},
        "margin": None if found.margin is None else found.margin.to_dict("value", DIGITS),
        "upper_bound": None if found.upper_bound is None else found.upper_bound.to_dict("value", DIGITS),
        "decided_at": found.decided_at,
    }


def _show(certificate: Certificate, found: Examination, faults: list[str]) -> None:
    out, window = console(), certificate.window
    aim = aim_text(window)
    kind = "index heads" if certificate.phases == "free" else "index heads without phases"
    spectrum = certificate.spectrum
    out.print(
        f"{kind} on {spectrum.planes} planes, {spectrum.inv_freq[0]:.9g} to {spectrum.inv_freq[-1]:.9g} rad/position",
        style="bold",
    )
    if spectrum.source:
        out.print(f"(the file calls this rotation {printable(spectrum.source)!r}; its angles are what is proved about)")
    out.print(f"length {window.length}, {aim}:")
    out.print(f"displacements {window.low}..{window.high} without 0")
    used, carrying = sum(map(bool, certificate.weights)), sum(map(bool, certificate.distribution))
    if found.margin is not None:
        out.print(
            f"a head on {used} planes wins by {_digits(found.margin)}, decided at displacement {found.decided_at}"
        )
    if found.upper_bound is not None:
        out.print(f"no head wins by more than {_digits(found.upper_bound)}, by {carrying} displacements")
    if faults:
        for fault in faults:
            out.print(f"does not hold: {fault}")
        return
    out.print(f"holds: the best margin lies in [{certificate.low!r}, {certificate.high!r}], proved in ball arithmetic")


def _digits(value: Enclosure) -> str:
    return value.digits(DIGITS) or f"{float(value):.6g}"

r"""`Certificate`: a head, a distribution and the enclosure that they prove, as a small file that anyone can check.

Content: the rotation (exact angles), the window of displacements, the head (planes, weights, phases), the distribution,
the stated enclosure of the best margin, and the SHA-256 of all of it. The hash is of the JSON text with sorted keys, no
spaces and ASCII only, without the key `sha256`; it guards against damage and says which certificate is meant, and it
proves nothing: `certify` recomputes both bounds in balls (`proof.py`) and holds what is stated against them.

Doubles are the numbers of the proof: a weight, a phase and a share are exactly the doubles that are written.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from ropegeo.engine.work import Progress
from ropegeo.errors import FileFormatError, InvalidInputError, RopegeoError
from ropegeo.exact import Enclosure, plain_integer, short
from ropegeo.optimal.proof import enclosed_bound, enclosed_margin
from ropegeo.optimal.window import Phases, Window
from ropegeo.spectrum import RopeSpectrum

SCHEMA = "ropegeo.certificate/1"
MAX_FILE_BYTES = 1 << 24
MAX_DISPLACEMENTS = 20_000
_FIELDS = ("schema", "spectrum", "window", "phases", "primal", "dual", "enclosure", "sha256")


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate:
    """A statement about the best margin of positional heads, with what proves it. Made by `proved`, held by `certify`.

    Attributes:
        spectrum: exact angles; heads may use any of its planes.
        window: displacements a head has to tell from its target.
        phases: which heads are meant: `free`, or `zero` for real coefficients that are not negative.
        planes: planes of the head.
        weights: w_k of each plane.
        query_phases: phi_k of each, in radians; all 0 where phases are `zero`.
        displacements: t of the window.
        distribution: mu_t of each.
        low: stated lower bound of the best margin, in units of beta.
        high: stated upper bound.

    Raises:
        InvalidInputError: unknown phases, lists of different lengths, planes that do not increase or that the rotation
            lacks, or numbers that are not finite.
    """

    spectrum: RopeSpectrum
    window: Window
    phases: Phases
    planes: tuple[int, ...]
    weights: tuple[float, ...]
    query_phases: tuple[float, ...]
    displacements: tuple[int, ...]
    distribution: tuple[float, ...]
    low: float
    high: float

    def __post_init__(self) -> None:
        for name in ("planes", "weights", "query_phases", "displacements", "distribution"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.phases not in ("zero", "free"):
            raise InvalidInputError(f"certificate: phases {self.phases!r} are unknown; use zero or free")
        if not len(self.planes) == len(self.weights) == len(self.query_phases):
            raise InvalidInputError("certificate: planes, weights and phases must be of one length")
        if not len(self.displacements) == len(self.distribution):
            raise InvalidInputError("certificate: displacements and distribution must be of one length")
        if not self.planes or list(self.planes) != sorted(set(self.planes)):
            raise InvalidInputError("certificate: planes must be a non-empty increasing list")
        for plane in self.planes:
            if not 0 <= plane < self.spectrum.planes:
                raise InvalidInputError(f"certificate: plane {short(plane)} is none of 0..{self.spectrum.planes - 1}")
        if len(set(self.displacements)) != len(self.displacements):
            raise InvalidInputError("certificate: a displacement stands twice in the distribution")
        if len(self.displacements) > MAX_DISPLACEMENTS:
            raise InvalidInputError(
                f"certificate: more than {MAX_DISPLACEMENTS} displacements; a best distribution needs 2 a plane at most"
            )
        numbers = (*self.weights, *self.query_phases, *self.distribution, self.low, self.high)
        if not all(math.isfinite(number) for number in numbers):
            raise InvalidInputError("certificate: every number must be finite")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, with the hash of its content."""
        content = {
            "schema": SCHEMA,
            "spectrum": self.spectrum.to_dict(),
            "window": self.window.to_dict(),
            "phases": self.phases,
            "primal": {
                "planes": list(self.planes),
                "weights": list(self.weights),
                "phases": list(self.query_phases),
            },
            "dual": {"displacements": list(self.displacements), "distribution": list(self.distribution)},
            "enclosure": {"low": self.low, "high": self.high},
        }
        return content | {"sha256": content_hash(content)}

    @classmethod
    def from_dict(cls, data: Any) -> Certificate:
        """Read what `to_dict` wrote; the hash is not looked at, see `read_certificate`.

        Raises:
            FileFormatError: a wrong schema, a missing or malformed field.
        """
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise FileFormatError(f"certificate: expected schema {SCHEMA!r}")
        try:
            primal, dual, enclosure = data["primal"], data["dual"], data["enclosure"]
            for name, part, known in (
                ("the file", data, _FIELDS),
                ("primal", primal, ("planes", "weights", "phases")),
                ("dual", dual, ("displacements", "distribution")),
                ("enclosure", enclosure, ("low", "high")),
            ):
                if extra := sorted(set(part) - set(known)):
                    raise FileFormatError(f"certificate: {name} has {extra[0]!r}, which no certificate has")
            return cls(
                spectrum=RopeSpectrum.from_dict(data["spectrum"]),
                window=Window.from_dict(data["window"]),
                phases=data["phases"],
                planes=tuple(plain_integer(plane) for plane in primal["planes"]),
                weights=tuple(_number(weight) for weight in primal["weights"]),
                query_phases=tuple(_number(phase) for phase in primal["phases"]),
                displacements=tuple(plain_integer(t) for t in dual["displacements"]),
                distribution=tuple(_number(share) for share in dual["distribution"]),
                low=_number(enclosure["low"]),
                high=_number(enclosure["high"]),
            )
        except FileFormatError:
            raise
        except (KeyError, TypeError, ValueError, ArithmeticError, RopegeoError) as error:
            raise FileFormatError(f"certificate: a field is missing or wrong ({error})") from error


@dataclass(frozen=True, eq=False, kw_only=True)
class Examination:
    """What a certificate proves, and what is wrong with it.

    Attributes:
        margin: of the certificate's head over its window, enclosed; None where the head is none.
        upper_bound: of the certificate's distribution, enclosed; None where the distribution is none.
        decided_at: the displacement at which the margin is attained.
        faults: one sentence each; none if all that is stated is proved.
    """

    margin: Enclosure | None
    upper_bound: Enclosure | None
    decided_at: int | None
    faults: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether everything stated is proved."""
        return not self.faults


@dataclass(frozen=True, eq=False, kw_only=True)
class Proved:
    """A certificate that holds, with the enclosures behind what it states.

    Attributes:
        certificate: it states both bounds rounded outward to doubles.
        margin: of its head.
        upper_bound: of its distribution.
        decided_at: the displacement at which the margin is attained.
    """

    certificate: Certificate
    margin: Enclosure
    upper_bound: Enclosure
    decided_at: int


def certify(certificate: Certificate, *, progress: Progress | None = None) -> Examination:
    """Recompute both bounds of a certificate in ball arithmetic, and hold what it states against them.

    Args:
        certificate: any.
        progress: called with the number of displacements done.

    Returns:
        The bounds, and every fault: a head with sum |z_k| > 1 or a negative weight, phases where none are meant, a
        distribution with a negative share, of sum 0 or outside the window, and a stated bound that is not implied.

    Accuracy: sums of weights are exact; both bounds are enclosed to 1e-28.

    Source: docs/MATHEMATICS.md, section 7; proofs in `ropegeo.optimal.proof`.

    Example:
        >>> from ropegeo import RopeSpectrum, optimal_head
        >>> best = optimal_head(RopeSpectrum.from_base(100, head_dim=8), length=30)
        >>> certify(best.certificate).faults
        ()
    """
    faults = []
    margin = bound = decided_at = None
    weights = [Fraction(weight) for weight in certificate.weights]
    head_faults = []
    if any(weight < 0 for weight in weights):
        head_faults.append("the head has a negative weight")
    if (total := sum(abs(weight) for weight in weights)) > 1:
        head_faults.append(f"the head's weights sum to more than 1, by {Enclosure.exactly(total - 1).digits(3)}")
    if certificate.phases == "zero" and any(certificate.query_phases):
        head_faults.append("the head has phases where the statement is about heads without")
    if not head_faults:
        margin, decided_at = enclosed_margin(
            certificate.spectrum,
            certificate.window,
            certificate.planes,
            certificate.weights,
            certificate.query_phases,
            progress=progress,
        )
        if Fraction(certificate.low) > margin.low:
            faults.append(
                f"the stated lower bound {certificate.low!r} is not implied: the head's margin is {_shown(margin)}"
            )
    dual_faults = []
    if any(share < 0 for share in certificate.distribution):
        dual_faults.append("the distribution has a negative share")
    if not any(certificate.distribution):
        dual_faults.append("the distribution is empty")
    if not all(certificate.window.holds(t) for t in certificate.displacements):
        dual_faults.append("the distribution has a displacement outside the window")
    if not dual_faults:
        bound = enclosed_bound(
            certificate.spectrum,
            certificate.displacements,
            certificate.distribution,
            phases=certificate.phases == "free",
        )
        if Fraction(certificate.high) < bound.high:
            faults.append(
                f"the stated upper bound {certificate.high!r} is not implied: the distribution proves {_shown(bound)}"
            )
    return Examination(
        margin=margin, upper_bound=bound, decided_at=decided_at, faults=(*head_faults, *dual_faults, *faults)
    )


def proved(
    spectrum: RopeSpectrum,
    window: Window,
    phases: Phases,
    *,
    planes: Sequence[int],
    weights: Sequence[float],
    query_phases: Sequence[float],
    displacements: Sequence[int],
    distribution: Sequence[float],
    progress: Progress | None = None,
) -> Proved:
    """The certificate that states what a head and a distribution prove, rounded outward to doubles.

    Raises:
        InvalidInputError: numbers that prove nothing, with the fault.
    """
    claim = Certificate(
        spectrum=spectrum,
        window=window,
        phases=phases,
        planes=tuple(planes),
        weights=tuple(weights),
        query_phases=tuple(query_phases),
        displacements=tuple(displacements),
        distribution=tuple(distribution),
        low=-3.0,  # a margin lies between -2 and 2: this states nothing yet
        high=3.0,
    )
    found = certify(claim, progress=progress)
    if found.margin is None or found.upper_bound is None or found.decided_at is None:
        raise InvalidInputError(f"certificate: {'; '.join(found.faults)}")
    stated = replace(claim, low=rounded_down(found.margin.low), high=-rounded_down(-found.upper_bound.high))
    return Proved(certificate=stated, margin=found.margin, upper_bound=found.upper_bound, decided_at=found.decided_at)


def read_certificate(path: str | Path) -> tuple[Certificate, str | None]:
    """Read a certificate's file.

    Returns:
        The certificate, and what is wrong with its hash, if anything.

    Raises:
        InvalidInputError: no such file.
        FileFormatError: too large, not JSON, or no certificate.
    """
    file, shown = Path(path), repr(str(path)[:120])
    try:
        if not file.is_file():
            raise InvalidInputError(
                f"certificate {shown} does not exist or is not a file; write one with `ropegeo construct --planes "
                "optimal --certificate`"
            )
        if file.stat().st_size > MAX_FILE_BYTES:
            raise FileFormatError(f"certificate {shown} is larger than {MAX_FILE_BYTES >> 20} MiB; it is none of ours")
        data = json.loads(
            file.read_text("utf-8"),
            parse_constant=_refuse_constant,
            parse_float=_exact_float,
            object_pairs_hook=_once_each,
        )
        certificate = Certificate.from_dict(data)
        stated = data.get("sha256")
        actual = content_hash({name: value for name, value in data.items() if name != "sha256"})
    except FileFormatError as error:
        raise FileFormatError(f"certificate {shown}: {error}") from error
    except InvalidInputError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise FileFormatError(f"certificate {shown} cannot be read as JSON ({str(error)[:200]})") from error
    if stated == actual:
        return certificate, None
    return certificate, f"the content's SHA-256 is {actual}, the file states {str(stated)[:64]!r}"


def content_hash(content: dict[str, Any]) -> str:
    """SHA-256 of a JSON object's canonical text: sorted keys, no spaces, ASCII."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def rounded_down(value: Fraction) -> float:
    """The largest double that is not above a number."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInputError(f"{str(value)[:40]!r} is not a number")
    return float(value)


def _exact_float(text: str) -> float:
    """A double whose decimal is the one that stands there: else the file would state one number and prove another."""
    value = float(text)
    if not math.isfinite(value) or Decimal(text) != Decimal(repr(value)):
        raise ValueError(f"{text[:40]} is not written as a double; the nearest is {value!r}")
    return value


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, if no name in it stands twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _shown(value: Enclosure) -> str:
    return value.digits(12) or f"{float(value):.12g}"

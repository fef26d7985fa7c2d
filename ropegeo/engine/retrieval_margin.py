r"""Margins of letter-matching heads.

The class of inputs: globally proper ones in which tokens with the answer's left letter are the answer. An input is a
target distance D and, at every other distance d, a token with shift != 0. Several copies of the answer only help, and
a competitor can be any other letter, so with f(x) = cos(x), x_d = (d - c) theta and omega = 2 pi/A

    worst(n) = min_D [ f(x_D) - max_{d != D, shift != 0} f(shift*omega + x_d) ].

D = 0 is a query that looks for its own left letter (L = R, or a letter-integer token). A head centred by c > 0 leaves
letter-integer queries uncentred; they ask f(0) - max_{d >= 1, shift != 0} f(shift*omega + d theta) and are in the
class.

`best(n)` is the largest margin: all positions but one, d', hold the answer and d' the letter that scores least,

    best(n) = max_{d'} [ max_{d != d'} f(x_d) - min_{shift != 0} f(shift*omega + x_d') ].

One plane is exact at any length (`letter_exact.py`): `worst` and `margin` in closed form while max(n-1, c) theta <
omega, by first returns beyond; `best` by first returns. Several planes are evaluated at every distance
(`letter_window.py`).

Source: docs/MATHEMATICS.md, sections 3, 4 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence

from ropegeo.engine.letter_exact import MAX_LETTERS, LetterPlane
from ropegeo.engine.letter_window import window_points
from ropegeo.engine.margin import MarginCurve, MarginPoint, check_lengths, check_target
from ropegeo.engine.searches import Progress
from ropegeo.errors import InvalidInputError
from ropegeo.exact import Enclosure, short
from ropegeo.exact.enclosure import DOUBLE_DIGITS
from ropegeo.heads import LetterProfile

ROUTES = ("closed_form", "first_return", "streamed", "definition")
INPUTS = "globally proper inputs whose tokens with the answer's left letter are the answer"
SELF_INPUTS = "inputs over the vocabulary"


def letter_curve(
    profile: LetterProfile,
    lengths: Sequence[int],
    *,
    target: int | None = None,
    digits: int = DOUBLE_DIGITS,
    route: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> MarginCurve:
    """Margin, best and worst of a letter-matching head at several lengths.

    Args:
        profile: of a built retrieval (or symbolic reflexive) head.
        lengths: n >= 2.
        target: distance of the answer for `margin`; the worst one if not given, 0 if queries look for themselves.
        digits: significant digits wanted of one plane.
        route: `closed_form` or `first_return` (one plane), `streamed` or `definition` (any), or `auto`.
        threads: for `streamed`; all usable cores if not given.
        progress: called now and then with the number of distances done.

    Raises:
        InvalidInputError: a length below 2 or not above the target, or a route that does not apply.
        UnsupportedError: a length that the route does not reach.

    Accuracy: one plane: relative error below 10**-(digits + 3), so that `digits` digits are proved unless the value
    is that near to a rounding tie; exactly 0 is known as 0. Several: absolute error `letter_window.margin_error`.

    Source: docs/MATHEMATICS.md, sections 3, 4 and 6.
    """
    ns = check_lengths("letter_curve", lengths)
    if profile.self_only:
        if target not in (None, 0):
            raise InvalidInputError("letter_curve: queries that look for themselves have their target at distance 0")
        target = 0
    if target is not None:
        check_target("letter_curve", target, ns)
    asked = sorted(set(ns))
<<<<<<< HEAD
    if not profile.active_planes:
        found = {n: _tie(n, target) for n in asked}
    elif route in ("closed_form", "first_return") or (route == "auto" and is_exact(profile)):
        found = _exactly(profile, asked, target, digits, route)
    elif route in ("auto", "streamed", "definition"):
        found = window_points(profile, asked, target, route=route, threads=threads, progress=progress)
    else:
        raise InvalidInputError(f"route {route!r} is not one of a letter head: use auto, {', '.join(ROUTES)}")
=======
    found = _exactly(profile, asked, target, digits) if len(profile.active_planes) == 1 else {}
    found |= _by_definition(profile, [n for n in asked if n not in found], target)
>>>>>>> h-firstreturn
    return MarginCurve(
        points=tuple(found[n] for n in ns),
        margin_of="worst target distance" if target is None else f"target at distance {short(target)}",
        inputs=SELF_INPUTS if profile.self_only else INPUTS,
        beta=profile.weight,
    )


def is_exact(profile: LetterProfile) -> bool:
    """Whether one plane is active, with few enough letters for the exact routes at every length."""
    return len(profile.active_planes) == 1 and profile.letters <= MAX_LETTERS


def worst_margin(profile: LetterProfile, length: int, digits: int = DOUBLE_DIGITS) -> Enclosure:
    """worst(n) alone, which costs less than a curve.

    Args:
        profile: as `letter_curve`.
        length: n >= 2; for one plane of any size.
        digits: significant digits wanted of one plane.

    Raises:
        UnsupportedError: as `letter_curve`.

    Accuracy: as `letter_curve`.
    """
    if not is_exact(profile):
        return letter_curve(profile, [length], digits=digits).points[0].worst
    plane = LetterPlane(profile, length)
    return _worst(plane, length, digits, closed=plane.has_closed_form(length))[0]


<<<<<<< HEAD
def _tie(n: int, target: int | None) -> MarginPoint:
    """All weights are zero: every logit is 0, and the first rival ties."""
    zero = Enclosure.exactly(0)
    return MarginPoint(length=n, margin=zero, best=zero, worst=zero, at=-1 if target else 1, method="closed_form")


def _exactly(
    profile: LetterProfile, lengths: list[int], target: int | None, digits: int, route: str
) -> dict[int, MarginPoint]:
    """One plane, by the exact routes."""
    if not is_exact(profile):
        raise InvalidInputError(
            f"route {route!r} is for one plane and up to {MAX_LETTERS} letters: use auto, streamed or definition"
        )
    plane = LetterPlane(profile, lengths[-1])
    points = {}
    for n in lengths:
        closed = route != "first_return" and plane.has_closed_form(n)
        if route == "closed_form" and not closed:
            raise InvalidInputError(
                f"route 'closed_form' holds while (n-1)*angle < 2*pi/letters, not at length {short(n)}: use auto"
            )
        worst, at = _worst(plane, n, digits, closed=closed)
=======
def _exactly(profile: LetterProfile, lengths: list[int], target: int | None, digits: int) -> dict[int, MarginPoint]:
    """One plane, by the exact routes; above `MAX_LETTERS` letters only where the closed form holds, without `best`."""
    plane = LetterPlane(profile, lengths[-1])
    points = {}
    for n in lengths:
        closed = plane.has_closed_form(n)
        if not closed and not is_exact(profile):
            continue
        worst, at = _worst(plane, n, digits)
>>>>>>> h-firstreturn
        margin = worst
        if target is not None:
            margin, at = plane.closed(n, target, digits) if closed else plane.margin(n, target, digits)
        points[n] = MarginPoint(
            length=n,
            margin=margin,
            best=plane.best(n, digits) if is_exact(profile) else None,
            worst=worst,
            at=at,
            method="closed_form" if closed else "first_return",
        )
    return points


def _worst(plane: LetterPlane, n: int, digits: int, *, closed: bool) -> tuple[Enclosure, int]:
    if closed:
        return plane.closed(n, 0 if plane.profile.self_only else None, digits)
    return plane.worst(n, digits)
<<<<<<< HEAD
=======


class _TopTwo:
    """The two largest values seen, at different distances."""

    def __init__(self) -> None:
        self.found: list[tuple[float, int]] = []

    def add(self, values: FloatArray, start: int) -> None:
        """Take in the values at distances start, start + 1, ..."""
        first = np.argsort(values)[::-1][:2]
        new = [(float(values[index]), start + int(index)) for index in first]
        self.found = sorted(self.found + new, reverse=True)[:2]

    def without(self, distance: int) -> tuple[float, int]:
        """The largest value at another distance, and where."""
        return next(pair for pair in self.found if pair[1] != distance)


class _Window:
    """Extremes over the distances 0..n-1 seen so far, for queries centred on `profile.centre`."""

    def __init__(self, profile: LetterProfile) -> None:
        self.profile = profile
        self.match, self.weakest_match, self.rival, self.weakest_rival = (_TopTwo() for _ in range(4))

    def add(self, d: IntArray) -> None:
        """Take in a block of distances: every shift at each."""
        shifts = np.arange(1, self.profile.letters)
        phasor = self.profile.phasor(d)
        rivals = (np.exp(2j * np.pi * shifts / self.profile.letters)[:, None] * phasor).real
        for extremes, values in (
            (self.match, phasor.real),
            (self.weakest_match, -phasor.real),
            (self.rival, rivals.max(axis=0)),
            (self.weakest_rival, -rivals.min(axis=0)),
        ):
            extremes.add(values, int(d[0]))

    def margin(self, target: int) -> tuple[float, int]:
        """Margin with the answer at one distance, and the displacement of the runner-up."""
        strongest, distance = self.rival.without(target)
        return float(self.profile.logit(0, np.array([target]))[0]) - strongest, distance - target

    def worst(self) -> tuple[float, int]:
        """The smallest margin over targets: at one of the two weakest matches, or where the strongest rival stands.

        With r the strongest rival's distance, every target D != r meets that rival, so the weakest match among them
        is worst; D = r meets the second rival.
        """
        candidates = [distance for _, distance in (*self.weakest_match.found, self.rival.found[0])]
        return min(self.margin(distance) for distance in candidates)

    def best(self, *, own: bool) -> float:
        """The largest margin: one rival, at the distance of one of the two weakest, against the best match elsewhere.

        `own`: the query looks for itself, so that distance 0 holds the answer.
        """
        return max(
            self.match.without(distance)[0] + value
            for value, distance in self.weakest_rival.found
            if distance or not own
        )


def _by_definition(profile: LetterProfile, lengths: list[int], target: int | None) -> dict[int, MarginPoint]:
    """The module's formulas, evaluated at every distance and every shift."""
    cosines = len(profile.active_planes) * profile.letters
    beyond = [n for n in lengths if cosines * n > MAX_COSINES]
    if beyond:
        raise UnsupportedError(
            f"length {short(beyond[0])}: with {len(profile.active_planes)} active planes and {profile.letters} letters "
            f"the margin is evaluated by definition, up to length {MAX_COSINES // cosines}"
        )
    window = _Window(profile)
    uncentred = LetterProfile(spectrum=profile.spectrum, weights=profile.weights, letters=profile.letters)
    # Letter-integer queries of a centred head look for themselves, uncentred.
    itself = _Window(uncentred) if profile.centre else None
    points = {}
    done = 0
    for n in lengths:
        for start in range(done, n, _BLOCK):
            d = np.arange(start, min(start + _BLOCK, n))
            window.add(d)
            if itself is not None:
                itself.add(d)
        done = n
        worst, at = window.margin(0) if profile.self_only else window.worst()
        best = window.best(own=profile.self_only)
        if itself is not None:
            worst, at = min((worst, at), itself.margin(0))
            best = max(best, itself.best(own=True))
        margin = worst
        if target is not None:
            margin, at = window.margin(target)
        points[n] = MarginPoint(
            length=n,
            margin=_enclosure(margin, profile),
            best=_enclosure(best, profile),
            worst=_enclosure(worst, profile),
            at=at,
            method="definition",
        )
    return points


def _enclosure(value: float, profile: LetterProfile) -> Enclosure:
    return Enclosure.around(value / profile.weight, 4 * LOGIT_ERROR)
>>>>>>> h-firstreturn

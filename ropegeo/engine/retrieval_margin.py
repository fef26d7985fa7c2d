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
from ropegeo.engine.route_names import AUTO, LETTER_ROUTES
from ropegeo.engine.work import Progress
from ropegeo.errors import InvalidInputError
from ropegeo.exact import Enclosure, short
from ropegeo.exact.enclosure import DOUBLE_DIGITS
from ropegeo.heads import LetterProfile

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
    ns = check_lengths("margin_curve", lengths)
    if profile.self_only:
        if target not in (None, 0):
            raise InvalidInputError("margin_curve: queries that look for themselves have their target at distance 0")
        target = 0
    if target is not None:
        check_target("margin_curve", target, ns)
    asked = sorted(set(ns))
    if route not in (AUTO, *LETTER_ROUTES):
        raise InvalidInputError(f"route {route!r} is not one of a letter head: use auto, {', '.join(LETTER_ROUTES)}")
    if not profile.active_planes:
        found = {n: _tie(n, target) for n in asked}
    elif route in ("streamed", "definition"):
        found = window_points(profile, asked, target, route=route, threads=threads, progress=progress)
    else:
        found = _exactly(profile, asked, target, digits, route)
        rest = [n for n in asked if n not in found]
        found |= window_points(profile, rest, target, route="auto", threads=threads, progress=progress) if rest else {}
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


def _tie(n: int, target: int | None) -> MarginPoint:
    """All weights are zero: every logit is 0, and the first rival ties."""
    zero = Enclosure.exactly(0)
    return MarginPoint(length=n, margin=zero, best=zero, worst=zero, at=-1 if target else 1, method="closed_form")


def _exactly(
    profile: LetterProfile, lengths: list[int], target: int | None, digits: int, route: str
) -> dict[int, MarginPoint]:
    """One plane, by the exact routes; above `MAX_LETTERS` letters only where the closed form holds, without `best`."""
    if len(profile.active_planes) > 1:
        if route != "auto":
            raise InvalidInputError(f"route {route!r} is for one plane: use auto, streamed or definition")
        return {}
    plane = LetterPlane(profile, lengths[-1])
    points = {}
    for n in lengths:
        closed = route != "first_return" and plane.has_closed_form(n)
        if not closed and (route == "closed_form" or not is_exact(profile)):
            if route == "auto":
                continue
            raise InvalidInputError(
                f"route {route!r} does not reach length {short(n)}: closed_form holds while (n-1)*angle < "
                f"2*pi/letters, first_return for up to {MAX_LETTERS} letters; use auto"
            )
        worst, at = _worst(plane, n, digits, closed=closed)
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

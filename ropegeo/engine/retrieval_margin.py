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

Closed form of worst(n), one plane, max(n-1, c) theta < omega, so that all |x_d| < omega <= pi: f is even and falls on
[0, pi]. Of the shifts only -1 (best at the largest d) and +1 (best at the smallest d) can be the strongest
competitor, and a match is weakest at an end of the window; excluding d = D leaves D in {0, 1, n-2, n-1} and
competitors (n-1, -1), (n-2, -1), (0, +1), (1, +1). For c = 0 that is docs/MATHEMATICS.md, section 6: min(f((n-2)
theta) - f(omega-(n-1) theta), f((n-1) theta) - f(omega-(n-2) theta)).

Source: docs/MATHEMATICS.md, sections 3, 4 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.engine.margin import MarginCurve, MarginPoint, check_lengths, check_target
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import ClosedForm, Enclosure, balls, nearest_integer, short
from ropegeo.exact.enclosure import DOUBLE_DIGITS, least
from ropegeo.heads import LOGIT_ERROR, LetterProfile

MAX_COSINES = 2 * 10**8
"""Planes times letters times length that the definition is evaluated for."""
MAX_BEST_COSINES = 10**7
"""The same where only `best`, which has no closed form, needs it."""
INPUTS = "globally proper inputs whose tokens with the answer's left letter are the answer"
SELF_INPUTS = "inputs over the vocabulary"
_BLOCK = 1 << 12


def letter_curve(
    profile: LetterProfile,
    lengths: Sequence[int],
    *,
    target: int | None = None,
    digits: int = DOUBLE_DIGITS,
) -> MarginCurve:
    """Margin, best and worst of a letter-matching head at several lengths.

    Args:
        profile: of a built retrieval (or symbolic reflexive) head.
        lengths: n >= 2.
        target: distance of the answer for `margin`; the worst one if not given, 0 if queries look for themselves.
        digits: significant digits wanted where a closed form holds.

    Raises:
        InvalidInputError: a length below 2 or not above the target, or no active plane.
        UnsupportedError: no closed form and more than `MAX_COSINES` cosines.

    Accuracy: closed form: relative error below 10**-(digits + 3), so that `digits` digits are proved unless the value
    is that near to a rounding tie. Definition: absolute error 4 * `LOGIT_ERROR`.

    Source: docs/MATHEMATICS.md, sections 3, 4 and 6.
    """
    ns = check_lengths("letter_curve", lengths)
    if not profile.active_planes:
        raise InvalidInputError("letter_curve: all weights are zero, so every logit is equal")
    if profile.self_only:
        if target not in (None, 0):
            raise InvalidInputError("letter_curve: queries that look for themselves have their target at distance 0")
        target = 0
    if target is not None:
        check_target("letter_curve", target, ns)
    closed = {n for n in ns if has_closed_form(profile, n)}
    cosines = len(profile.active_planes) * profile.letters
    evaluable = [n for n in ns if cosines * n <= (MAX_BEST_COSINES if n in closed else MAX_COSINES)]
    beyond = [n for n in ns if n not in closed and n not in evaluable]
    if beyond:
        raise UnsupportedError(
            f"length {short(beyond[0])}: outside the closed form ((n-1)*angle < 2*pi/letters, one plane) the margin is "
            f"evaluated by definition, up to length {MAX_COSINES // cosines}"
        )
    sampled = _by_definition(profile, sorted(set(evaluable)), target)
    points = []
    for n in ns:
        by_definition = sampled.get(n)
        if n in closed:
            worst, worst_at = _closed(profile, n, 0 if profile.self_only else None, digits)
            margin, at = (worst, worst_at) if target is None else _closed(profile, n, target, digits)
            method = "closed_form"
        elif by_definition is not None:
            worst, margin, at, method = by_definition.worst, by_definition.margin, by_definition.at, "definition"
        points.append(
            MarginPoint(
                length=n,
                margin=margin,
                best=None if by_definition is None else by_definition.best,
                worst=worst,
                at=at,
                method=method,
            )
        )
    return MarginCurve(
        points=tuple(points),
        margin_of="worst target distance" if target is None else f"target at distance {short(target)}",
        inputs=SELF_INPUTS if profile.self_only else INPUTS,
        beta=profile.weight,
    )


def worst_sign(profile: LetterProfile, length: int) -> int | None:
    """Sign of worst(n): exact in the closed form, else by definition; None where neither reaches or decides."""
    if has_closed_form(profile, length):
        return _closed(profile, length, 0 if profile.self_only else None, 1)[0].sign
    if len(profile.active_planes) * profile.letters * length > MAX_BEST_COSINES:
        return None
    return _by_definition(profile, [length], None)[length].worst.sign


def folded_angle(profile: LetterProfile) -> ClosedForm:
    """The one active plane's angle, folded into the range where the closed form is stated.

    Distances are integers, so whole turns drop out of cos(shift*omega + d theta), and a turn backwards is a turn
    forwards with the shifts reversed: theta is as good as its distance to the nearest multiple of 2 pi. With a
    half-integer centre (d - c) theta has halves of turns, so only pairs of turns drop out.
    """
    angle = profile.spectrum.angles[profile.active_planes[0]]
    period = 2 * ClosedForm.pi() * profile.centre.denominator
    if angle < period / 2:
        return angle
    turns = nearest_integer(angle / period)
    rest = angle - turns * period
    return rest if rest.sign() >= 0 else -rest


def has_closed_form(profile: LetterProfile, length: int) -> bool:
    """Whether one plane is active and max(length - 1, centre) theta < omega, decided exactly."""
    if len(profile.active_planes) != 1:
        return False
    reach = max(Fraction(length - 1), profile.centre)
    return reach * folded_angle(profile) < 2 * ClosedForm.pi() * profile.code_turn


def _closed(profile: LetterProfile, n: int, target: int | None, digits: int) -> tuple[Enclosure, int]:
    """Closed form in the module's range: the smallest margin (over targets if none is named) and the runner-up."""
    angle = folded_angle(profile)
    omega = 2 * ClosedForm.pi() * profile.code_turn
    c = profile.centre
    targets = sorted({d for d in (0, 1, n - 2, n - 1) if d >= 0}) if target is None else [target]
    pairs = [
        _Pair(match=angle * (D - c), rival=omega * shift + angle * (d - c), displacement=d - D)
        for D in map(Fraction, targets)
        for d, shift in ((Fraction(n - 1), -1), (Fraction(n - 2), -1), (Fraction(0), 1), (Fraction(1), 1))
        if 0 <= d < n and d != D
    ]
    if c and target is None:  # letter-integer queries stay uncentred
        pairs.append(_Pair(match=ClosedForm.of(0), rival=angle * (n - 1) - omega, displacement=n - 1))
    bits = 64 + 4 * digits + 2 * n.bit_length()
    while True:
        gaps = [pair.gap(bits) for pair in pairs]
        worst = least(gaps)
        # Relative width, not `proves`: a value such as 3/2 is a rounding tie that no precision settles.
        if worst.sign == 0 or (worst.sign and (worst.high - worst.low) * 10 ** (digits + 3) < abs(worst.low)):
            break
        bits *= 2
    winner = min(range(len(pairs)), key=lambda index: gaps[index].low)
    return worst, int(pairs[winner].displacement)


@dataclass(frozen=True, kw_only=True)
class _Pair:
    """A match and a rival, as the angles whose cosines they score."""

    match: ClosedForm
    rival: ClosedForm
    displacement: Fraction | int

    def gap(self, bits: int) -> Enclosure:
        """cos(match) - cos(rival); exactly 0 iff their sum or difference is a whole number of turns."""
        for angle in (self.match - self.rival, self.match + self.rival):
            turn = angle.rational_turn()
            if turn is not None and turn.denominator == 1:
                return Enclosure.exactly(0)
        match, rival = self.match.ball(bits), self.rival.ball(bits)
        with balls.precision(bits):
            return Enclosure.of_ball(match.cos() - rival.cos())


@dataclass(frozen=True, kw_only=True)
class _Sample:
    margin: Enclosure
    best: Enclosure
    worst: Enclosure
    at: int


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


def _by_definition(profile: LetterProfile, lengths: list[int], target: int | None) -> dict[int, _Sample]:
    """The module's formulas, evaluated at every distance and every shift."""
    window = _Window(profile)
    uncentred = LetterProfile(spectrum=profile.spectrum, weights=profile.weights, letters=profile.letters)
    # Letter-integer queries of a centred head look for themselves, uncentred.
    itself = _Window(uncentred) if profile.centre else None
    samples: dict[int, _Sample] = {}
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
        samples[n] = _Sample(
            margin=_enclosure(margin, profile), best=_enclosure(best, profile), worst=_enclosure(worst, profile), at=at
        )
    return samples


def _enclosure(value: float, profile: LetterProfile) -> Enclosure:
    return Enclosure.around(value / profile.weight, 4 * LOGIT_ERROR)

r"""What no retrieval head exceeds at a length: an upper bound over all codes, by linear programming, proved in balls.

A retrieval head codes A letters: a key with letter a has vectors k_ap and a query that looks for b has q_bp, one
complex number a plane, of squared lengths sum_p |k_ap|^2 <= 1 and sum_p |q_bp|^2 <= 1, so that

    logit(b, a, d) = Re sum_p G_p(b, a) e^{i d theta_p},    G_p(b, a) = conj(k_ap) q_bp.

Its margin at length n is the least logit(b, b, D) - logit(b, a, d) over letters a != b and distances D != d below n.
(That is the class of inputs of `engine.retrieval_margin`. A centred head's queries that look for themselves,
uncentred, make it only smaller.)

**Averages over letters.** A least value is at most an average: for every D != d

    margin <= Re sum_p P_p e^{i D theta_p} - O_p e^{i d theta_p},    P = mean_b G(b, b),    O = mean_{a != b} G(b, a).

Let K and Q be the means of k_a and q_b (plane p left out), C = mean_b conj(k_b - K)(q_b - Q), X = conj(K) Q. Then
P = X + C, and A X = (1/A) sum_{a, b} G(b, a) = P + (A - 1) O, so

    P = X + C,    O = X - C/(A - 1).

By Cauchy and Schwarz |C| <= sd(k) sd(q), so |X| + |C| <= |K| |Q| + sd(k) sd(q) <= sqrt(mean |k|^2 mean |q|^2), whose
sum over the planes is at most 1, by the same. So the margin is at most what a mixture of *atoms* of total weight at
most 1 has at every pair (D, d), an atom being a plane with a phase f that is spent on position (X = e^{i f}) or on a
code as good as a regular simplex, one real dimension a letter if need be (C = e^{i f}):

    position:  Re e^{i f} (e^{i D theta} - e^{i d theta}),
    simplex:   Re e^{i f} (e^{i D theta} + e^{i d theta}/(A - 1)).

**Bound.** With weights mu >= 0 on pairs, sum mu = 1, the margin is at most the largest mean payoff of an atom,
whoever chose mu. mu is taken even under d -> n - 1 - d, both D and d at once. About the centre c = (n - 1)/2 the sums
with sin((D - c) theta) and sin((d - c) theta) then vanish, and the best phase about c is 0 or pi:

    margin <= max_p max( |sum mu (cos D' - cos d')|, |sum mu (cos D' + cos d'/(A - 1))| ),
    cos D' = cos((D - c) theta_p), cos d' = cos((d - c) theta_p).                                                  (1)

(A pair stands for itself and its mirror image: the payoffs are the same.) This holds for *all* queries and keys.

**Uncentred codes**, q = k: X = |K|^2 and C are real and not negative, so f = 0 about c = 0, and without the |.| of
(1) the largest mean payoff, or 0 if that is more, bounds all heads whose queries are the very codes of the keys.

**Few planes.** Let the queries be the codes u_b, turned by -c theta or not, on F planes of angles at most pi, A > 2F
+ 1. Among A vectors of R^{2F} two have an inner product >= 0 (Rankin). Take the vectors sqrt(cos(theta_p/2)) u_ap if
c is no integer, else u_ap: twice the inner product is the sum of the rival's logits at d = c - 1/2 and c + 1/2, or at
d = c, as sines cancel. So some rival scores at least 0, a match at another distance at most |u_b|^2 <= 1: margin <=
1.

**One plane**, c = (n - 1)/2, A >= 4, 0 <= theta <= pi: the equal turns of the paper are the best code,

    margin <= max(0, cos(c theta) - cos(omega - c theta)) if c theta < omega, else 0;    omega = 2 pi/A.       (2)

Two letters next to each other around the circle are at most omega apart, by delta say. Let b be the one with the
smaller r = |u|. If c theta < delta, at one end of the window the turn brings a nearer to b: it scores at least r^2
cos(delta - c theta) >= r^2 cos(omega - c theta) >= 0, and the match at the other end r^2 cos(c theta): (2). If delta
<= c theta <= pi, some distance brings a within theta/2 of b, where it scores at least r^2 cos(theta/2), and a match
at an end, the other one if that distance is one, scores r^2 cos(c theta) <= r^2 cos(theta/2). If c theta > pi, turns
in steps of at most pi, from -c theta to c theta, meet every closed half circle between: some match, and its mirror
image, score at most 0, and some rival at least 0. (Without an angle, r = 0, the match scores 0, as its rivals do.)
The paper's code has the margin (2) in its letter-letter queries; those that look for themselves, uncentred, leave it
a little below.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float, Int

from ropegeo._arrays import FloatArray, IntArray
from ropegeo.errors import SolverError
from ropegeo.exact import ClosedForm, Enclosure, balls
from ropegeo.exact.trigonometric import TrigonometricSums
from ropegeo.optimal.game import solve_game
from ropegeo.spectrum import RopeSpectrum

Pairs = tuple[tuple[int, int], ...]
"""Distances (D, d) of the answer and of a rival."""

TOLERANCE = 1e-9
MAX_ROUNDS = 80
_BLOCK = 1 << 13
_BITS = 160
_VALLEYS = 6
"""Distances of weak matches and of strong rivals that are paired in each round."""


@dataclass(frozen=True, kw_only=True)
class CodeBound:
    """An upper bound on the margin of retrieval codes.

    Attributes:
        value: enclosure of the bound, in units of beta.
        pairs: distances (D, d) that carry it; with a centre each stands for its mirror image too.
        distribution: mu of each pair.
        rounds: linear programs solved.
        is_converged: whether more pairs would not lower it, to `TOLERANCE`.
    """

    value: Enclosure
    pairs: Pairs
    distribution: tuple[float, ...]
    rounds: int
    is_converged: bool


class _Payoffs:
    """What atoms are paid at pairs, and which pairs a mixture of them is paid least."""

    def __init__(self, spectrum: RopeSpectrum, letters: int, length: int, *, centred: bool) -> None:
        self.spectrum, self.letters, self.length, self.centred = spectrum, letters, length, centred
        self.centre = Fraction(length - 1, 2) if centred else Fraction(0)
        self.first = length // 2 if centred else 0  # the mirror image holds the rest

    def cosines(self, distances: Int[IntArray, " distances"]) -> Float[FloatArray, "distances planes"]:
        """cos((d - c) theta_p)."""
        return np.cos(self.spectrum.phases(distances) - self.spectrum.phases_at(self.centre))

    def of(self, pairs: Sequence[tuple[int, int]]) -> Float[FloatArray, "pairs atoms"]:
        """Of each atom: positions, simplices, and with a centre their negatives."""
        match, rival = (self.cosines(np.array(column)) for column in zip(*pairs, strict=True))
        payoffs = np.hstack([match - rival, match + rival / (self.letters - 1)])
        return np.hstack([payoffs, -payoffs]) if self.centred else payoffs

    def least(self, mixture: Float[FloatArray, " atoms"]) -> tuple[float, list[tuple[int, int]]]:
        """The least payoff of a mixture, and the pairs of weak matches and strong rivals."""
        planes = self.spectrum.planes
        signed = mixture[: 2 * planes] - (mixture[2 * planes :] if self.centred else 0)
        position, simplex = signed[:planes], signed[planes:]
        match, rival = (np.empty(self.length - self.first) for _ in range(2))
        for start in range(self.first, self.length, _BLOCK):
            part = slice(start - self.first, min(start + _BLOCK, self.length) - self.first)
            cosines = self.cosines(np.arange(start, min(start + _BLOCK, self.length)))
            match[part] = cosines @ (position + simplex)
            rival[part] = cosines @ (position - simplex / (self.letters - 1))
        weak, strong = _valleys(match), _valleys(-rival)
        found = [
            (float(match[m] - rival[r]), pair)
            for m in weak
            for r in strong
            if (pair := self._pair(m + self.first, r + self.first)) is not None
        ]
        found.sort()
        return found[0][0], [pair for _, pair in found]

    def _pair(self, match: int, rival: int) -> tuple[int, int] | None:
        if match != rival:
            return match, rival
        mirrored = self.length - 1 - rival
        return (match, mirrored) if self.centred and mirrored != match else None


def _valleys(values: Float[FloatArray, " places"]) -> list[int]:
    """Where the lowest local minima are, and the places next to the lowest of all: two of them may be excluded."""
    padded = np.concatenate([[np.inf], values, [np.inf]])
    low = np.flatnonzero((values <= padded[:-2]) & (values <= padded[2:]))
    chosen = low[np.argsort(values[low], kind="stable")[:_VALLEYS]].tolist()
    near = [place for place in (chosen[0] - 1, chosen[0] + 1) if 0 <= place < values.size]
    return list(dict.fromkeys([*chosen, *near]))


def code_bound(spectrum: RopeSpectrum, *, letters: int, length: int, centred: bool) -> CodeBound:
    """An upper bound on the margin at a length of every code on the planes of a spectrum.

    Args:
        spectrum: the rotation.
        letters: A >= 2.
        length: n >= 2.
        centred: any queries and keys (True), or the same codes for both, unturned.

    Accuracy: the bound is enclosed to 1e-28; it is a bound whether or not the rounds have converged, and also where the
        solver gives up.

    Source: ours; proof in the module.

    Example:
        >>> spectrum = RopeSpectrum.from_angle("0.001")
        >>> code_bound(spectrum, letters=3, length=8, centred=True).value.digits(6)
        '1.49999'
    """
    payoffs = _Payoffs(spectrum, letters, length, centred=centred)
    last = length - 1
    pairs = [pair for pair in ((last, 0), (last, length // 2), (0, last)) if pair[0] != pair[1]]
    known = set(pairs)
    is_converged = False
    shares = np.full(len(pairs), 1 / len(pairs))
    for number in range(1, MAX_ROUNDS + 1):
        try:
            game = solve_game(payoffs.of(pairs))
        except SolverError:  # any distribution is a bound: that of the round before, or equal shares
            break
        shares = game.distribution
        least, found = payoffs.least(game.mixture)
        fresh = [pair for pair in found[: 2 * _VALLEYS] if pair not in known]
        if game.value - least <= TOLERANCE * max(game.value, TOLERANCE) or not fresh:
            is_converged = True
            break
        if number < MAX_ROUNDS:
            pairs += fresh
            known.update(fresh)
    carried = [(pair, float(mu)) for pair, mu in zip(pairs, shares, strict=False) if mu > 0]
    chosen, distribution = tuple(pair for pair, _ in carried), tuple(mu for _, mu in carried)
    return CodeBound(
        value=enclosed_code_bound(
            spectrum, letters=letters, length=length, centred=centred, pairs=chosen, distribution=distribution
        ),
        pairs=chosen,
        distribution=distribution,
        rounds=number,
        is_converged=is_converged,
    )


def enclosed_code_bound(
    spectrum: RopeSpectrum,
    *,
    letters: int,
    length: int,
    centred: bool,
    pairs: Sequence[tuple[int, int]],
    distribution: Sequence[float],
) -> Enclosure:
    """The module's bound (1) for given weights on pairs, in balls: it needs no trust in who chose them.

    Args:
        spectrum: exact angles.
        letters: A.
        length: n.
        centred: as `code_bound`.
        pairs: (D, d), different distances from 0 to n - 1.
        distribution: mu >= 0 of each, taken as exactly these doubles, not all 0.

    Accuracy: an enclosure of width below 1e-28.
    """
    shares = [Fraction(share) for share in distribution]
    total = sum(shares)
    # Distances from the centre are halves of integers, so that angles are halved.
    doubled = length - 1 if centred else 0
    halves = [angle / 2 for angle in spectrum.angles]
    sums = TrigonometricSums(halves, 2 * length)
    matches, rivals = (
        [short for short, _ in sums.averages([2 * pair[side] - doubled for pair in pairs], shares)] for side in (0, 1)
    )
    sizes = [Fraction(0)], [Fraction(0)]
    for match, rival in zip(matches, rivals, strict=True):  # sum mu (1 - cos)
        with balls.precision(_BITS):
            position = rival - match
            simplex = balls.ball(total * Fraction(letters, letters - 1)) - (match + rival / (letters - 1))
            for value in (position, simplex):
                low, high = balls.rational_ends(value)
                if centred and low < 0:
                    low, high = max(low, -high, Fraction(0)), max(-low, high)
                sizes[0].append(low)
                sizes[1].append(high)
    return Enclosure(low=max(sizes[0]) / total, high=max(sizes[1]) / total)


def few_planes_bound(
    spectrum: RopeSpectrum, *, letters: int, length: int, centred: bool, planes: int
) -> Enclosure | None:
    """What no code on so few planes exceeds, where that is proved: the module's last two bounds, or None.

    Args:
        spectrum: exact angles.
        letters: A.
        length: n.
        centred: whether queries are turned back to the centre of the window.
        planes: F, how many planes a code may use.

    Accuracy: an enclosure of width below 1e-28.
    """
    pi = ClosedForm.pi()
    if not all(angle <= pi for angle in spectrum.angles):
        return None
    if planes == 1 and letters >= 4 and centred:
        omega, centre = 2 * pi / letters, Fraction(length - 1, 2)
        found = [Enclosure.exactly(0)]
        bits = _BITS + length.bit_length()
        for angle in spectrum.angles:
            turned = centre * angle
            if turned < omega:
                with balls.precision(bits):
                    value = balls.cosine(turned.ball(bits)) - balls.cosine((omega - turned).ball(bits))
                    found.append(Enclosure.of_ball(value))
        return Enclosure(low=max(each.low for each in found), high=max(each.high for each in found))
    return Enclosure.exactly(1) if letters > 2 * planes + 1 else None

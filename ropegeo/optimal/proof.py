r"""Both sides of a best head in ball arithmetic, without the solver that found it.

A positional head on the planes theta_k scores Re sum_k z_k exp(i t theta_k) at displacement t from its target, with
z_k = w_k exp(i phi_k), w_k >= 0 and sum_k w_k <= 1. Over a window of displacements its margin is

    m(z) = min_t Re sum_k z_k (1 - exp(i t theta_k)) = sum_k w_k cos(phi_k) - max_t sum_k w_k cos(t theta_k + phi_k).

Lower bound. m(z) of any such z is what some head has, so the best margin D is at least that.

Upper bound. Let mu_t >= 0 on displacements of the window, sum mu = S > 0. For every head

    S m(z) <= sum_t mu_t Re sum_k z_k (1 - exp(i t theta_k)) = Re sum_k z_k g_k <= sum_k w_k |g_k| <= max_k |g_k|,
    g_k = sum_t mu_t (1 - exp(i t theta_k)),

since a minimum is at most an average. So D <= max_k |g_k| / S, whoever chose mu. If the head's phases are all 0,
Re z_k g_k = w_k Re g_k and D <= max_k Re g_k / S, with the maximum taken no lower than 0. That D is also the best
margin of *all* heads over the symmetric window {-T..T}, T the largest |t|: a window has t or -t for every t up to T;
the mean of z and its conjugate is real and has no smaller margin over {-T..T}, as it averages what z has at t and -t;
and a negative z_k only takes away, as 1 - cos >= 0.

A pair (z, mu) is thus a proof that stands on its own. Both sides are evaluated here for the exact angles: m(z) at every
displacement of the window (`TrigonometricSums.largest`), g_k over the few with mu_t > 0.

Source: docs/MATHEMATICS.md, section 7; ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ropegeo.engine.work import Progress
from ropegeo.exact import Enclosure
from ropegeo.exact.trigonometric import TrigonometricSums
from ropegeo.optimal.window import Window
from ropegeo.spectrum import RopeSpectrum


def enclosed_margin(
    spectrum: RopeSpectrum,
    window: Window,
    planes: Sequence[int],
    weights: Sequence[float],
    phases: Sequence[float],
    *,
    progress: Progress | None = None,
) -> tuple[Enclosure, int]:
    """m(z) of one head over a window, in balls, and the displacement that decides it.

    Args:
        spectrum: exact angles.
        window: displacements.
        planes: planes used.
        weights: w_k of each, taken as exactly these doubles; at least one is not 0.
        phases: phi_k of each in radians, taken as exactly these doubles.
        progress: called now and then with the number of displacements done.

    Accuracy: an enclosure of width below 10^-28.
    """
    sums = TrigonometricSums([spectrum.angles[plane] for plane in planes], window.reach)
    terms = [(Fraction(weight), Fraction(phase)) for weight, phase in zip(weights, phases, strict=True)]
    target = sums.at_zero(terms)
    rival, where = sums.largest(terms, window.ranges, progress=progress)
    return Enclosure(low=target.low - rival.high, high=target.high - rival.low), where


def enclosed_bound(
    spectrum: RopeSpectrum, displacements: Sequence[int], distribution: Sequence[float], *, phases: bool
) -> Enclosure:
    """max_k |g_k| / S, or max(0, max_k Re g_k) / S for heads without phases, over all planes of a spectrum, in balls.

    Args:
        spectrum: exact angles.
        displacements: t of the window, not 0.
        distribution: mu_t >= 0 of each, taken as exactly these doubles, not all 0.
        phases: whether heads may have phases.

    Accuracy: an enclosure of width below 10^-28.
    """
    shares = [Fraction(share) for share in distribution]
    total = sum(shares)
    sums = TrigonometricSums(spectrum.angles, max(abs(t) for t in displacements))
    sizes = []
    for short, across in sums.averages(displacements, shares):
        size = Enclosure.of_ball(sums.modulus(short, across) if phases else short)
        sizes.append(Enclosure(low=max(size.low, Fraction(0)), high=max(size.high, Fraction(0))))
    return Enclosure(low=max(size.low for size in sizes) / total, high=max(size.high for size in sizes) / total)

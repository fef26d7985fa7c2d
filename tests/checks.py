"""Checks of ropegeo that `test_faults.py` runs again on broken copies: each must hold here and fail there."""

from __future__ import annotations

from fractions import Fraction

import mpmath  # type: ignore[import-untyped]
import numpy as np
import oracles
from oracles import Thunk, mp_fraction

import ropegeo
from ropegeo.engine import diophantine, letter_exact, softmax
from ropegeo.exact import Enclosure, read_angle
from ropegeo.heads import Head, LetterProfile, LogitProfile
from ropegeo.spectrum import Layout, RopeSpectrum

EPS = 2.0**-53
TURN = 2.0**-53
"""What `ropegeo.spectrum.phases` promises of a turn."""
COSINE = 2 * np.pi * TURN + 8 * EPS
"""A cosine of such a phase: the phase's error (slope 1), the product with 2 pi, and the roundings after it."""

# docs/MATHEMATICS.md, section 5 (mpmath, 120 digits): angle, T, margin, t.
SECTION_5 = [
    ("1", 1000, "1.8173640789234051e-9", 710),
    ("10000^(-2/128)", 16, "0.024416724455925216", 7),
    ("10000^(-2/128)", 10**6, "2.323302208927921e-12", 945535),
    ("10000^(-2/128)", 10**30, "1.1184245912118102e-59", 405221421912788261653497754436),
    ("500000^(-2/128)", 1000, "3.3940138169326599e-7", 887),
    ("pi*(sqrt(5)-1)", 1000, "4.0525180671706781e-6", 987),
]


def one_plane(angle: str, offset: int = 0) -> LogitProfile:
    """An index profile of one plane, beta 1."""
    return LogitProfile(spectrum=RopeSpectrum.from_angle(angle), coefficients=np.ones(1, complex), origin=offset)


def one_plane_letters(angle: str, letters: int, centre: Fraction = Fraction(0)) -> LetterProfile:
    """A retrieval profile of one plane, beta 1."""
    return LetterProfile(spectrum=RopeSpectrum.from_angle(angle), weights=np.ones(1), letters=letters, centre=centre)


def score_at(profile: LogitProfile, distance: int) -> float:
    """The logit at one distance."""
    return float(profile.logit(np.array([distance]))[0])


def check_section_5(angle: str, reach: int, digits: str, t: int) -> None:
    """A row of docs/MATHEMATICS.md, section 5."""
    point = ropegeo.margin_curve(one_plane(angle), [reach + 1]).points[0]
    assert point.margin.digits() == digits
    assert point.at == t
    assert float(point.margin) == float(digits)


def check_digits(enclosure: Enclosure, truth: mpmath.mpf, asked: int = 17) -> None:
    """All printed digits are those of `truth`, and all but at most one of those asked for are printed.

    One may be missing where the truth lies within the enclosure's width of a rounding boundary.
    """
    text = enclosure.digits(asked)
    assert text is not None
    error = abs(mpmath.mpf(text) - truth)
    assert error <= mp_fraction(oracles.last_place(text)) / 2
    assert error <= abs(truth) * mpmath.mpf(10) ** (2 - asked) / 2
    slack = 10**6 * mpmath.eps * abs(truth)  # the oracle's own rounding: phases up to 10**6 at the callers' precision
    assert mp_fraction(enclosure.low) - slack <= truth <= mp_fraction(enclosure.high) + slack


def check_staircase(angle: str, theta: Thunk, reach: int) -> None:
    """Irrational angle: the steps are the record minima by brute force, with the nearest whole turns."""
    stairs = diophantine.one_plane_staircase(read_angle(angle), reach)
    with mpmath.workdps(60):
        best, records = mpmath.inf, []
        for t in range(1, reach + 1):
            distance = oracles.turn_distance(theta, t)
            if distance < best:
                best = distance
                records.append(t)
                check_digits(stairs.margin(stairs.index_at(t)), oracles.gap_at(theta, t))
        assert list(stairs.steps) == records
        whole = int(mpmath.floor(theta() / (2 * mpmath.pi)))
        nearest = [int(mpmath.nint(t * (theta() / (2 * mpmath.pi) - whole))) for t in records]
        assert list(stairs.numerators) == nearest


def check_rotation(layout: Layout, right: list[float]) -> None:
    """Public case 3: head_dim 8, rotary_dim 4, base 1e4, x = 1..8 at position 1; ten digits are given."""
    spectrum = RopeSpectrum.from_base(10000, head_dim=8, rotary_dim=4, layout=layout)
    turned = spectrum.rotate(np.arange(1.0, 9.0), 1)
    assert np.abs(turned - right).max() <= 0.5e-9 + 8 * 3e-15


GPT_J = [-1.142639664, 1.922075597, 2.959850668, 4.029799502, 5, 6, 7, 8]
HALF = [-1.984110649, 1.959900667, 2.462377902, 4.019799668, 5, 6, 7, 8]


def check_phases(thetas: dict[str, Thunk], positions: list[int]) -> None:
    """Phases against mpmath at any position: within the promised turn, plus the rounding of 2 pi times it."""
    spectrum = RopeSpectrum(angles=tuple(read_angle(text) for text in thetas), head_dim=2 * len(thetas))
    phases = spectrum.phases(np.array(positions))
    with mpmath.workdps(80):
        for row, position in enumerate(positions):
            for plane, theta in enumerate(thetas.values()):
                turns = mp_fraction(float(phases[row, plane])) / (2 * mpmath.pi)
                difference = position * theta() / (2 * mpmath.pi) - turns
                error = abs(difference - mpmath.nint(difference))
                assert error <= TURN + 2 * EPS / 2, (position, plane)  # |turn| <= 1/2, two roundings


def random_head(seed: int, *, head_dim: int, rotary_dim: int, layout: Layout, biases: bool, factor: float) -> Head:
    """A head of normal weights on base 1e4."""
    rng = np.random.default_rng(seed)
    width = 3
    plain = RopeSpectrum.from_base(10000, head_dim=head_dim, rotary_dim=rotary_dim, layout=layout)
    return Head(
        w_q=rng.normal(size=(head_dim, width)),
        w_k=rng.normal(size=(head_dim, width)),
        w_v=rng.normal(size=(2, width)),
        w_o=rng.normal(size=(width, 2)),
        b_q=rng.normal(size=head_dim) if biases else None,
        b_k=rng.normal(size=head_dim) if biases else None,
        spectrum=RopeSpectrum(
            angles=plain.angles,
            head_dim=head_dim,
            layout=layout,
            attention_factor=factor,
            angle_texts=plain.angle_texts,
        ),
    )


def check_head(head: Head, seed: int, query_position: int, key_position: int) -> None:
    """Definition and profile against nested loops, to 1e-12 of the sum of the products' sizes."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=head.d_model), rng.normal(size=head.d_model)
    planes, spectrum = head.spectrum.planes, head.spectrum
    thetas = [oracles.rope_angle(10000, plane, 2 * planes) for plane in range(planes)]
    with mpmath.workdps(50):
        query = oracles.affine(head.w_q.tolist(), x.tolist(), None if head.b_q is None else head.b_q.tolist())
        key = oracles.affine(head.w_k.tolist(), y.tolist(), None if head.b_k is None else head.b_k.tolist())
        factor = mp_fraction(spectrum.attention_factor)
        turned = [
            oracles.rotated(vector, position, thetas, spectrum.layout, factor)
            for vector, position in ((query, query_position), (key, key_position))
        ]
        truth = float(mp_fraction(head.logit_scale) * oracles.dot(*turned))
        norms = [float(mpmath.sqrt(oracles.dot(v, v))) for v in (query, key)]
    size = head.logit_scale * max(1.0, spectrum.attention_factor) ** 2 * norms[0] * norms[1]
    assert abs(head.logit(x, query_position, y, key_position) - truth) <= 1e-12 * size
    profile = head.profile(x, y)
    assert abs(score_at(profile, query_position - key_position) - truth) <= 1e-12 * size


def check_index_head(offset: int, length: int) -> None:
    """The matrices of an index head score beta cos((d - s) theta) at every distance, hence peak at the offset."""
    built = ropegeo.index_head(RopeSpectrum.from_base(10000, head_dim=8), offset=offset, planes=(1,), beta=2.0)
    logits = built.head.logits(built.embedding[np.zeros(length, dtype=int)])[-1][::-1]
    with mpmath.workdps(40):
        truth = [float(2 * mpmath.cos((d - offset) * mpmath.mpf(10000) ** (-mpmath.mpf(1) / 4))) for d in range(length)]
    assert np.abs(logits - truth).max() <= 2 * 1e-12
    assert int(logits.argmax()) == offset


def check_small_gap() -> None:
    """A gap of 5e-19 keeps its leading digits: d(gap) = sin(phase) d(phase)."""
    profile = one_plane("1e-9")
    phase_error = 2 * np.pi * TURN + 2 * EPS * 1e-9
    error = abs(float(profile.gap(np.array([1]))[0]) - 5e-19)
    assert error <= 1e-9 * phase_error + phase_error**2 + 4 * EPS * 5e-19 + 1e-37


def check_retrieval_worst(angle: str, theta: float, letters: int, integers: int, length: int, centre: Fraction) -> None:
    """worst(n) and best(n) against every input of the class."""
    score = oracles.letter_score(letters, [(theta, 1.0)], float(centre))
    margins = [scene.margin(score) for scene in oracles.scenes(letters, integers, length)]
    point = ropegeo.margin_curve(one_plane_letters(angle, letters, centre), [length]).points[0]
    rounding = 64 * length * (1 + theta) * EPS  # phases of size n*theta in the oracle's plain doubles
    assert abs(float(point.worst) - min(margins)) <= rounding
    assert abs(float(point.margin) - min(margins)) <= rounding
    if point.best is not None:
        assert abs(float(point.best) - max(margins)) <= rounding


def check_first_returns() -> None:
    """worst(n) beyond the closed form, by double loop; in the last two the nearest match and rival share a distance."""
    for angle, letters, n in ((1.7, 3, 5), (1.7, 2, 5), (3.5, 2, 4)):
        point = letter_exact.LetterPlane(one_plane_letters(str(angle), letters), n).worst(n, 17)[0]
        right = oracles.worst_letter_margin(letters, [(angle, 1.0)], 0.0, n)
        assert abs(float(point) - right) <= 64 * n * (1 + angle) * EPS


def check_retrieval_softmax(
    angle: str, theta: float, letters: int, integers: int, length: int, centre: Fraction
) -> None:
    """Just above the scale every input of the class is decoded, just below it one is not."""
    score = oracles.letter_score(letters, [(theta, 1.0)], float(centre))
    everything = oracles.scenes(letters, integers, length)
    scale = softmax.retrieval_softmax_scale(one_plane_letters(angle, letters, centre), length)
    for factor in (1 + 1e-6, 1.5, 4.0):
        assert all(scene.decodes(max(scale, 1e-3) * factor, score) for scene in everything), factor
    if scale:
        assert not all(scene.decodes(scale * (1 - 1e-6), score) for scene in everything)

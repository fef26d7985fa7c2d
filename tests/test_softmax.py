"""Softmax scales: published tables (docs/MATHEMATICS.md, section 8), mpmath roots, every input of small classes."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import checks
import mpmath  # type: ignore[import-untyped]
import numpy as np
import oracles
import pytest
from checks import one_plane, one_plane_letters
from hypothesis import given, settings
from hypothesis import strategies as st

import ropegeo
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.heads import LetterProfile, LogitProfile
from ropegeo.spectrum import RopeSpectrum

Query = Literal["integer", "letter"]
BETAS = [10.0, 1e2, 1e3, 1e4, 1e5, 1e6]
# docs/MATHEMATICS.md, section 8, theta = 10000^(-2/128): offset, query, n_max at each beta (None: no length).
TABLE: list[tuple[int, Query, list[int | None]]] = [
    (0, "integer", [14, 29, 58, 312, 1589, 3178]),
    (3, "integer", [17, 32, 61, 315, 1592, 3181]),
    (16, "integer", [None, 45, 74, 328, 1605, 3194]),
    (0, "letter", [29, 87, 312, 936, 3178, 6356]),
]
ROWS = [(offset, query, beta, n) for offset, query, lengths in TABLE for beta, n in zip(BETAS, lengths, strict=True)]


@pytest.mark.parametrize(("offset", "query", "beta", "n_max"), ROWS)
def test_table_of_section_8(offset: int, query: Query, beta: float, n_max: int | None) -> None:
    """The least scale is at most beta at n_max, above beta one position later."""
    profile = one_plane("10000^(-2/128)", offset)
    if n_max is None:
        assert ropegeo.index_softmax_scale(profile, offset + 1, query=query) > beta
        return
    assert ropegeo.index_softmax_scale(profile, n_max, query=query) < beta
    assert ropegeo.index_softmax_scale(profile, n_max + 1, query=query) > beta


@given(
    st.integers(3, 25), st.integers(0, 24), st.sampled_from(["integer", "letter", "fixed"]), st.sampled_from([1.0, 7.5])
)
@settings(max_examples=30)
def test_index_scale_is_the_root(n: int, offset: int, query: Query, beta: float) -> None:
    """S(beta) = sum of exp(-beta gap) equals 1, 3 or 1/3; two planes; in logit units whatever the head's own beta."""
    offset = {"letter": 0, "fixed": max(offset % n, 1)}.get(query, offset % n)  # a letter query looks at itself
    thetas = [oracles.rope_angle(10000, k, 4) for k in range(2)]
    spectrum = RopeSpectrum.from_base(10000, head_dim=4)
    profile = LogitProfile(spectrum=spectrum, coefficients=beta * np.array([0.75, 0.25], np.complex128), origin=offset)
    scale = ropegeo.index_softmax_scale(profile, n, query=query)
    limit = {"integer": mpmath.mpf(1), "letter": mpmath.mpf(3), "fixed": mpmath.mpf(1) / 3}[query]
    with mpmath.workdps(40):
        gaps = [oracles.planes_gap(thetas, [0.75, 0.25], t) for t in oracles.window(offset, n)]

        def total(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.fsum(mpmath.exp(-x * gap) for gap in gaps)

        if len(gaps) <= limit:
            assert scale == 0
        else:  # S falls strictly, so two signs enclose the one root
            assert total(mpmath.mpf(scale) * (1 - mpmath.mpf(10) ** -9)) > limit
            assert total(mpmath.mpf(scale) * (1 + mpmath.mpf(10) ** -9)) < limit


@pytest.mark.parametrize(("offset", "n", "query"), [(3, 17, "integer"), (0, 40, "letter"), (0, 100, "integer")])
def test_beta_min_against_a_root_finder(offset: int, n: int, query: Query) -> None:
    limit = {"integer": 1, "letter": 3}[query]
    theta = oracles.ANGLES["10000^(-2/128)"]
    with mpmath.workdps(30):
        gaps = [oracles.gap_at(theta, t) for t in oracles.window(offset, n)]
        scale = ropegeo.index_softmax_scale(one_plane("10000^(-2/128)", offset), n, query=query)
        root = mpmath.findroot(
            lambda x: mpmath.log(mpmath.fsum(mpmath.exp(-x * g) for g in gaps) / limit),
            (scale / 2, scale * 2),
            solver="anderson",
        )
        assert abs(scale - root) <= mpmath.mpf(10) ** -9 * root


# ---- retrieval: every input ----


@pytest.mark.parametrize(
    ("letters", "integers", "length"), [(2, 2, 2), (2, 2, 3), (2, 2, 4), (2, 1, 5), (3, 1, 3), (3, 1, 4)]
)
@pytest.mark.parametrize("share", [Fraction(1, 100), Fraction(1, 2), Fraction(95, 100)])
@pytest.mark.parametrize("centred", [False, True])
def test_retrieval_scale_over_all_inputs(
    letters: int, integers: int, length: int, share: Fraction, centred: bool
) -> None:
    """Angles at a share of the largest one that still wins: (2n - 3) theta < omega, or (n - 1) theta centred."""
    reach = length - 1 if centred else 2 * length - 3
    theta = round(float(share) * 6.2831 / letters / reach, 6)
    centre = Fraction(length - 1, 2) if centred else Fraction(0)
    checks.check_retrieval_softmax(repr(theta), theta, letters, integers, length, centre)


def test_retrieval_scale_of_angles_near_a_turn() -> None:
    """2 pi - 0.1 turns back by 0.1: closer keys come out ahead of the query, with the other sign."""
    checks.check_retrieval_softmax("6.18", 6.18, 3, 1, 4, Fraction(0))


def test_retrieval_scale_of_several_planes_and_in_logit_units() -> None:
    spectrum = RopeSpectrum.from_base(10000, head_dim=6)
    weights = np.array([0.0, 0.5, 0.5])
    profile = LetterProfile(spectrum=spectrum, weights=weights, letters=3)
    scale = ropegeo.retrieval_softmax_scale(profile, 4)
    planes = [(float(f), float(w)) for f, w in zip(spectrum.inv_freq, weights, strict=True)]
    score = oracles.letter_score(3, planes, 0.0)
    everything = oracles.scenes(3, 1, 4)
    assert all(scene.decodes(scale * (1 + 1e-6), score) for scene in everything)
    assert not all(scene.decodes(scale * (1 - 1e-6), score) for scene in everything)
    scaled = LetterProfile(spectrum=spectrum, weights=9 * weights, letters=3)
    assert abs(ropegeo.retrieval_softmax_scale(scaled, 4) - scale) <= 1e-9 * scale


@given(st.integers(2, 6), st.integers(2, 30))
@settings(max_examples=4)
def test_the_scale_grows_with_length(letters: int, n: int) -> None:
    profile = one_plane_letters("0.01", letters)
    assert ropegeo.retrieval_softmax_scale(profile, n) <= ropegeo.retrieval_softmax_scale(profile, n + 1) * (1 + 1e-9)


def test_refusals() -> None:
    with pytest.raises(InvalidInputError, match="the head ties at length"):
        ropegeo.index_softmax_scale(one_plane("2*pi/5"), 6, query="integer")
    with pytest.raises(InvalidInputError, match="offset 9 needs a length above it"):
        ropegeo.index_softmax_scale(one_plane("1", 9), 9, query="letter")
    with pytest.raises(UnsupportedError, match="the margin is below 1e-10, too small for float64 sums"):
        ropegeo.index_softmax_scale(one_plane("1e-6"), 10, query="letter")
    with pytest.raises(InvalidInputError, match="is not positive at length 147"):
        ropegeo.retrieval_softmax_scale(one_plane_letters("0.0027", 8), 147)


@pytest.mark.parametrize("n", [8, 24])
def test_a_fixed_offset_keeps_its_own_letter(n: int) -> None:
    """The worst input of a fixed offset holds the query's letter everywhere but at the target: right iff w > 3/4."""
    offset = 3
    profile = one_plane("10000^(-2/128)", offset)
    scale = ropegeo.index_softmax_scale(profile, n, query="fixed")
    spectrum = RopeSpectrum.from_angle("10000^(-2/128)")
    tokens = ["a"] * n
    tokens[n - 1 - offset] = "b"
    for factor, answer in ((1.001, "b"), (0.999, "a")):
        head = ropegeo.index_head(spectrum, offset=offset, beta=factor * scale, letters="ab")
        assert ropegeo.run_layer(head, tokens, attention="softmax").tokens[-1] == answer
    assert ropegeo.index_softmax_scale(profile, n, query="integer") < scale
    with pytest.raises(InvalidInputError, match="a letter query has offset 0, this profile 3"):
        ropegeo.index_softmax_scale(profile, n, query="letter")
    with pytest.raises(InvalidInputError, match="a fixed offset of 0 reads the query's own position; use query='lette"):
        ropegeo.index_softmax_scale(one_plane("1"), n, query="fixed")


def test_an_unknown_query_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="query 'Letter' is unknown; use one of integer, letter, fixed"):
        ropegeo.index_softmax_scale(one_plane("1"), 9, query="Letter")

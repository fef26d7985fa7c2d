"""Every construction: its matrices say what its recipe says, it peaks where it should, and it refuses what it must."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ropegeo._arrays import FloatArray
from ropegeo.construct.built import BuiltHead
from ropegeo.construct.index import index_head, token_index_head
from ropegeo.construct.recipe import Recipe
from ropegeo.construct.reflexive import reflexive_head
from ropegeo.construct.retrieval import retrieval_head
from ropegeo.engine.planes import best_index_plane, best_letter_plane
from ropegeo.errors import InvalidInputError
from ropegeo.heads import LetterProfile, LogitProfile
from ropegeo.spectrum import Layout, RopeSpectrum, preset
from ropegeo.tasks import Bigram, letter_names

BETA = 7.25
LETTERS = ("a", "b", "cc", "d", "e")
INTEGERS = (1, 2, 5)
CENTRE = 12
DISTANCES = np.concatenate([np.arange(40), [10**6, 10**12]])

SPECTRA: dict[str, tuple[RopeSpectrum, dict[str, Any]]] = {
    "free angle": (RopeSpectrum.from_angle("0.0123"), {}),
    "rational turn": (RopeSpectrum.from_angle("1/97 turn"), {}),
    "chosen plane": (preset("paper"), {"planes": (33,)}),
    "partial rotation": (preset("gpt-neox-20b"), {"planes": (5,)}),
    "equal weights": (preset("llama-3.1-8b"), {"planes": (20, 30, 63)}),
    "given weights": (preset("llama-3.2-1b"), {"planes": (10, 11, 31), "weights": (1, 4, 0.5)}),
}
BUILDERS: dict[str, Callable[..., BuiltHead]] = {
    "index": lambda spectrum, **more: index_head(spectrum, offset=3, letters=LETTERS, **more),
    "index far": lambda spectrum, **more: index_head(spectrum, offset=10**30, letters=LETTERS, **more),
    "token_index": lambda spectrum, **more: token_index_head(spectrum, letters=LETTERS, integers=INTEGERS, **more),
    "retrieval": lambda spectrum, **more: retrieval_head(spectrum, letters=LETTERS, integers=INTEGERS, **more),
    "centred": lambda spectrum, **more: retrieval_head(
        spectrum, letters=LETTERS, integers=INTEGERS, centre_length=CENTRE, **more
    ),
    "reflexive": lambda spectrum, **more: reflexive_head(spectrum, letters=LETTERS, **more),
    "symbolic": lambda spectrum, **more: reflexive_head(spectrum, symbolic=True, letters=LETTERS, **more),
}
INDEX_LIKE = ("index", "index far", "token_index", "reflexive")
CASES = [
    pytest.param(mode, spectrum, layout, id=f"{mode}-{spectrum}-{layout}")
    for mode in BUILDERS
    for spectrum in SPECTRA
    for layout in ("interleaved", "half")
]


def build(mode: str, name: str, layout: Layout, **more: Any) -> BuiltHead:
    spectrum, planes = SPECTRA[name]
    return BUILDERS[mode](spectrum.with_layout(layout), beta=BETA, **planes, **more)


class Expected:
    """What `BuiltHead.profile` says for one query token and one key token, at `DISTANCES`."""

    def __init__(self, built: BuiltHead) -> None:
        self.built = built
        self.number = {letter: phi for phi, letter in enumerate(built.recipe.letters, start=1)}
        self.uncentred = built.profile
        if isinstance(self.uncentred, LetterProfile) and self.uncentred.centre:
            self.uncentred = replace(self.uncentred, centre=Fraction(0))
        self.profile = built.profile
        self.known: dict[tuple[bool, int], FloatArray] = {}

    def logit(self, query: object, key: object) -> FloatArray:
        turned = False
        if isinstance(self.profile, LogitProfile):
            aim = query if isinstance(query, int) else self.built.recipe.offset
        elif isinstance(query, Bigram) and isinstance(key, Bigram):
            turned = isinstance(query.right, str)
            aim = self.number[key.left] - self.number[str(query.right) if turned else query.left]
        else:
            aim = self.number[str(key)] - self.number[str(query)]
        if (turned, aim) not in self.known:
            profile = self.profile if turned else self.uncentred
            if isinstance(profile, LogitProfile):
                values = replace(profile, origin=aim).logit(DISTANCES)
            else:
                values = profile.logit(aim, DISTANCES)
            self.known[turned, aim] = values
        return self.known[turned, aim]


@pytest.mark.parametrize(("mode", "spectrum", "layout"), CASES)
def test_matrices_have_the_profile_of_the_recipe(mode: str, spectrum: str, layout: Layout) -> None:
    """For every query and key token, to 1e-12 of beta."""
    built = build(mode, spectrum, layout)
    if mode == "index far":  # phases of the profile are counted from the target there, those of the matrices from 0
        assert isinstance(built.profile, LogitProfile)
        turned = built.head.profile(built.embedding[0], built.embedding[1])
        back = built.recipe.spectrum.phases_at(built.recipe.offset)
        coefficients = turned.coefficients * np.exp(1j * back)
        assert np.abs(coefficients - built.profile.coefficients).max() < 1e-12 * BETA
        return
    expected = Expected(built)
    for q, query in enumerate(built.tokens):
        for k, key in enumerate(built.tokens):
            if isinstance(key, Bigram) and (q + k) % 7 > 1:
                continue  # keys of one left letter are alike; enough of each are left
            found = built.head.profile(built.embedding[q], built.embedding[k]).logit(DISTANCES)
            assert np.abs(found - expected.logit(query, key)).max() < 1e-12 * BETA, (query, key)


@pytest.mark.parametrize(("mode", "spectrum", "layout"), [case for case in CASES if case.values[0] != "index far"])
def test_logits_are_the_formula_of_the_paper(mode: str, spectrum: str, layout: Layout) -> None:
    """The definition (rotate, multiply) against sum_k a_k cos(...) written out with numpy alone."""
    built = build(mode, spectrum, layout)
    _, chosen = SPECTRA[spectrum]
    planes = chosen.get("planes", (0,))
    shares = np.array(chosen.get("weights", (1,) * len(planes)), float)
    shares /= shares.sum()
    theta = built.recipe.spectrum.inv_freq[list(planes)]
    rng = np.random.default_rng(1)
    row = rng.integers(0, len(built.tokens), 16)
    logits = built.head.logits(built.embedding[row])
    letters = list(LETTERS)
    for i in range(16):
        for j in range(i + 1):
            query, key = built.tokens[row[i]], built.tokens[row[j]]
            code, aim = 0.0, 0.0
            if mode in INDEX_LIKE:
                aim = float(query) if isinstance(query, int) else float(built.recipe.offset)
            else:
                if isinstance(key, Bigram) and isinstance(query, Bigram):
                    looks_up = isinstance(query.right, str)
                    source, target = key.left, str(query.right) if looks_up else query.left
                    aim = (CENTRE - 1) / 2 if looks_up and mode == "centred" else 0.0
                else:
                    source, target = str(key), str(query)
                code = 2 * np.pi * (letters.index(source) - letters.index(target)) / len(letters)
            wanted = BETA * float((shares * np.cos(code + (i - j - aim) * theta)).sum())
            assert abs(logits[i, j] - wanted) < 1e-12 * BETA, (query, key, i - j)
    assert np.isneginf(logits[np.triu_indices(16, 1)]).all()


@pytest.mark.parametrize("name", ["free angle", "chosen plane", "partial rotation", "equal weights", "given weights"])
@pytest.mark.parametrize("offset", [0, 1, 7, 39])
def test_the_peak_is_at_the_offset(name: str, offset: int) -> None:
    """By brute force over a sequence, for the fixed head and for the query token that says the same offset."""
    spectrum, planes = SPECTRA[name]
    fixed = index_head(spectrum, offset=offset, letters=LETTERS, beta=BETA, **planes)
    row = np.random.default_rng(offset).integers(0, len(fixed.tokens), 40)
    last = fixed.head.logits(fixed.embedding[row])[-1][::-1]  # by distance
    assert last.argmax() == offset
    assert abs(last[offset] - BETA) < 1e-12 * BETA
    assert np.delete(last, offset).max() < last[offset]
    if offset:
        said = token_index_head(spectrum, letters=LETTERS, integers=(offset, 41), beta=BETA, **planes)
        row[-1] = said.tokens.index(offset)
        last = said.head.logits(said.embedding[row])[-1][::-1]
        assert last.argmax() == offset


@pytest.mark.parametrize("mode", ["index", "token_index", "reflexive"])
def test_index_read_out(mode: str) -> None:
    """The docstring's sums: a letter at the target gets 2w, an integer nothing, the query's own token gets 1."""
    built = build(mode, "chosen plane", "half")
    move = built.unembedding @ built.head.w_o @ built.head.w_v
    for q, query in enumerate(built.tokens):
        for t, target in enumerate(built.tokens):
            for w in (1.0, 0.6, 0.3):
                attended = w * built.embedding[t] + (1 - w) * built.embedding[0]
                scores = built.unembedding @ built.embedding[q] + move @ attended
                wanted = np.zeros(len(built.tokens))
                wanted[t] += 2 * w * isinstance(target, str)
                wanted[0] += 2 * (1 - w)
                wanted[q] += 1
                assert scores == pytest.approx(wanted, abs=1e-15)
                if w == 1.0:  # hard attention
                    assert built.tokens[scores.argmax()] == (target if isinstance(target, str) else query)


@pytest.mark.parametrize("mode", ["retrieval", "centred", "symbolic"])
def test_letter_read_out(mode: str) -> None:
    """The output is the attention on each token and nothing else."""
    built = build(mode, "chosen plane", "half")
    assert not built.residual
    shares = np.random.default_rng(0).dirichlet(np.ones(len(built.tokens)))
    scores = built.unembedding @ built.head.w_o @ built.head.w_v @ (shares @ built.embedding)
    assert scores == pytest.approx(shares, abs=1e-15)


@pytest.mark.parametrize("mode", list(BUILDERS))
@pytest.mark.parametrize("name", ["free angle", "given weights"])
def test_the_direction_of_v_changes_nothing(mode: str, name: str) -> None:
    """The matrices differ, every logit is the same."""
    rng = np.random.default_rng(5)
    plain = build(mode, name, "half")
    drawn = [complex(z) for z in np.exp(1j * rng.uniform(0, 2 * np.pi, len(plain.recipe.planes)))]
    turned = build(mode, name, "half", directions=drawn)
    row = rng.integers(0, len(plain.tokens), 12)
    assert np.abs(plain.head.w_k - turned.head.w_k).max() > 0.1
    first, second = (head.head.logits(head.embedding[row]) for head in (plain, turned))
    visible = np.tril_indices(12)
    assert np.abs(first[visible] - second[visible]).max() < 1e-12 * BETA


def test_layouts_are_row_orders_of_each_other() -> None:
    """`Head.in_layout` of one is the other."""
    for mode in BUILDERS:
        half, interleaved = (build(mode, "partial rotation", layout) for layout in ("half", "interleaved"))
        rewritten = half.head.in_layout("interleaved")
        assert np.array_equal(rewritten.w_q, interleaved.head.w_q)
        assert np.array_equal(rewritten.w_k, interleaved.head.w_k)
        assert not np.array_equal(half.head.w_q, interleaved.head.w_q)


PAPER = preset("paper")
NARROW = RopeSpectrum.from_base(10**4, head_dim=24)
REFUSED: list[tuple[str, Callable[[], object], str]] = [
    ("offset", lambda: index_head(PAPER, offset=-1), r"offset -1 must not be negative"),
    ("no plane", lambda: index_head(PAPER, offset=1, planes=()), r"planes must be a non-empty increasing list"),
    ("twice", lambda: index_head(PAPER, offset=1, planes=(3, 3)), r"planes must be a non-empty increasing list"),
    ("order", lambda: index_head(PAPER, offset=1, planes=(3, 2)), r"planes must be a non-empty increasing list"),
    ("plane", lambda: index_head(PAPER, offset=1, planes=(64,)), r"plane 64 is out of range: .* planes 0 to 63"),
    ("negative", lambda: index_head(PAPER, offset=1, planes=(-1,)), r"plane -1 is out of range"),
    ("count", lambda: index_head(PAPER, offset=1, weights=(1, 2)), r"2 weights for 1 planes; give one per plane"),
    ("zeros", lambda: index_head(PAPER, offset=1, weights=(0.0,)), r"weights must not all be zero"),
    (
        "minus",
        lambda: index_head(PAPER, offset=1, planes=(0, 1), weights=(2, -1)),
        r"weights must be finite and not neg",
    ),
    ("nan", lambda: index_head(PAPER, offset=1, weights=(float("nan"),)), r"weights must be finite and not negative"),
    (
        "sum",
        lambda: index_head(PAPER, offset=1, planes=(0, 1), weights=(1e308, 1e308)),
        r"weights .* sum must be finite",
    ),
    ("beta 0", lambda: index_head(PAPER, offset=1, beta=0.0), r"beta 0.0 must be a positive number"),
    ("beta -1", lambda: retrieval_head(PAPER, letters="ab", beta=-1.0), r"beta -1.0 must be a positive number"),
    ("beta nan", lambda: reflexive_head(PAPER, beta=float("nan")), r"beta nan must be a positive number"),
    ("beta inf", lambda: index_head(PAPER, offset=1, beta=float("inf")), r"beta inf must be a positive number"),
    ("beta huge", lambda: index_head(PAPER, offset=1, beta=1e308), r"beta 1e\+308"),
    ("no letter", lambda: index_head(PAPER, offset=1, letters=()), r"at least one letter"),
    ("same letter", lambda: index_head(PAPER, offset=1, letters="aa"), r"must differ from each other"),
    ("no integer", lambda: token_index_head(PAPER, letters="a", integers=()), r"at least one integer; use index_head"),
    ("integer 0", lambda: token_index_head(PAPER, letters="a", integers=(0,)), r"integers of a vocabulary start at 1"),
    ("same integer", lambda: token_index_head(PAPER, letters="a", integers=(2, 2)), r"must differ from each other"),
    ("one letter", lambda: retrieval_head(PAPER, letters="a"), r"a retrieval head needs at least 2 letters"),
    ("one symbol", lambda: reflexive_head(PAPER, symbolic=True, letters="a"), r"needs at least 2 letters"),
    ("centre 0", lambda: retrieval_head(PAPER, letters="ab", centre_length=0), r"centre length 0 must lie between 1"),
    ("centre", lambda: retrieval_head(PAPER, letters="ab", centre_length=2**61), r"must lie between 1 and 2\*\*61"),
    ("vocabulary", lambda: retrieval_head(PAPER, letters=letter_names(90)), r"a vocabulary of 8820 tokens"),
    (
        "direction",
        lambda: index_head(PAPER, offset=1, directions=[2 + 0j]),
        r"one complex number of modulus 1 per plane",
    ),
    ("directions", lambda: index_head(PAPER, offset=1, directions=[1j, 1j]), r"one complex number of modulus 1"),
    ("nan direction", lambda: index_head(PAPER, offset=1, directions=[complex("nan")]), r"of modulus 1 per plane"),
    ("no integers", lambda: Recipe(mode="token_index", spectrum=PAPER, letters=("a",)), r"integer"),
    (
        "reflexive",
        lambda: Recipe(mode="reflexive", spectrum=PAPER, letters=("a",), offset=5),
        r"a reflexive head has no offset",
    ),
    (
        "symbolic centre",
        lambda: Recipe(mode="symbolic_reflexive", spectrum=PAPER, letters=("a", "b"), centre_length=9),
        r"centre",
    ),
    ("foreign token", lambda: retrieval_head(PAPER, letters="ab", tokens=(Bigram("c", 1),)), r"'?c"),
    ("letter count", lambda: letter_names(0), r"0 letters: give between 1 and 4096"),
    ("letters", lambda: letter_names(10**9), r"1000000000 letters: give between 1 and 4096"),
]


@pytest.mark.parametrize(("call", "message"), [pytest.param(*row[1:], id=row[0]) for row in REFUSED])
def test_refused(call: Callable[[], object], message: str) -> None:
    """What no head can be made of is refused in one line that says so."""
    with pytest.raises(InvalidInputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


# ---- the best plane, against margins of all planes by definition ----


def index_margins(theta: FloatArray, offset: int, length: int) -> FloatArray:
    """min over the other positions of 1 - cos(t theta), for every plane."""
    t = np.array([d - offset for d in range(length) if d != offset])
    margins: FloatArray = np.array([(2 * np.sin(t * angle / 2) ** 2).min() for angle in theta])
    return margins


def letter_margins(theta: FloatArray, letters: int, length: int, centre: float, own: bool) -> FloatArray:
    """worst(n) of every plane: the smallest match at D minus the largest rival at another distance."""
    found = []
    for angle in theta:
        worst = np.inf
        for c in {centre, 0.0} if centre else {0.0}:
            d = np.arange(length)
            code = 2 * np.pi * np.arange(1, letters) / letters
            rival = np.cos(code[:, None] + (d - c) * angle).max(axis=0)
            # Letter-integer queries of a centred head look for themselves, uncentred: only D = 0 with c = 0.
            targets: Sequence[int] = range(1) if own or (centre and c == 0.0) else range(length)
            for target in targets:
                gap = np.cos((target - c) * angle) - np.delete(rival, target).max()
                worst = min(worst, float(gap))
        found.append(worst)
    return np.array(found)


@pytest.mark.parametrize(
    ("name", "offset", "length"),
    [("paper", 0, 17), ("paper", 3, 128), ("paper", 100, 1024), ("llama-3.1-8b", 3, 8192)],
)
def test_best_index_plane(name: str, offset: int, length: int) -> None:
    """No other plane has a larger margin, and the margin is the one by definition."""
    spectrum = preset(name)
    plane, margin = best_index_plane(spectrum, offset=offset, length=length)
    margins = index_margins(spectrum.inv_freq, offset, length)
    assert plane == margins.argmax()
    assert float(margin) == pytest.approx(margins.max(), rel=1e-9)


@pytest.mark.parametrize(
    ("spectrum", "letters", "length", "centred", "own"),
    [
        (PAPER, 8, 17, False, False),
        (NARROW, 8, 17, True, False),
        (NARROW, 8, 100, False, False),
        (NARROW, 3, 200, True, False),
        (NARROW, 8, 100, False, True),
        (NARROW, 26, 300, False, False),
    ],
)
def test_best_letter_plane(spectrum: RopeSpectrum, letters: int, length: int, centred: bool, own: bool) -> None:
    """The same for letter-matching heads, plain, centred and symbolic."""
    centre = Fraction(length - 1, 2) if centred else Fraction(0)
    plane, margin = best_letter_plane(spectrum, letters=letters, length=length, centre=centre, self_only=own)
    margins = letter_margins(spectrum.inv_freq, letters, length, float(centre), own)
    assert margins[plane] >= margins.max() - 1e-13
    assert float(margin) == pytest.approx(margins.max(), rel=1e-9, abs=1e-13)

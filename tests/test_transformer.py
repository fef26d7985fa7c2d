"""Built transformers compute the tasks: under hard attention, under softmax exactly from beta_min on, and in stacks."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from ropegeo._arrays import FloatArray
from ropegeo.construct.built import BuiltHead, Token
from ropegeo.construct.index import token_index_head
from ropegeo.construct.reflexive import reflexive_head
from ropegeo.construct.retrieval import retrieval_head
from ropegeo.construct.solve import Solution, solve_letter, solve_number
from ropegeo.construct.transformer import MAX_LENGTH, run_layer, run_stack
from ropegeo.engine.retrieval_margin import letter_curve
from ropegeo.engine.softmax import index_softmax_scale, retrieval_softmax_scale
from ropegeo.errors import InvalidInputError
from ropegeo.heads import LetterProfile, LogitProfile
from ropegeo.spectrum import RopeSpectrum, preset
from ropegeo.tasks import (
    Bigram,
    globally_proper,
    in_range,
    index,
    iterate,
    parse_letter_task,
    parse_number_task,
    retrieval,
)

INPUTS = 2000
MANY = [400, pytest.param(INPUTS, marks=pytest.mark.slow)]
NUMBER = "C B A 1 4 1 3 2 1"
LETTER = "C2 B1 A3 FA EC DE HF GD IG"
PAPER = preset("paper")
UNIT = RopeSpectrum.from_angle("1")  # the paper's plane 0 alone: 64 planes take 64 times as long to build
NARROW = RopeSpectrum.from_base(10**4, head_dim=16, layout="interleaved")
NAMES = ("a", "b", "cc", "ddd", "e", "f1g", "h", "zz")

# ---- inputs ----


def seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - reproducible inputs, not secrets


def number_input(rng: random.Random, letters: Sequence[str], integers: Sequence[int], longest: int) -> list[str | int]:
    """Letters and integers at random; many integers are out of range or point at integers."""
    share = rng.random()
    return [
        rng.choice(letters) if rng.random() < share else rng.choice(integers) for _ in range(rng.randint(1, longest))
    ]


def letter_input(
    rng: random.Random, letters: Sequence[str], integers: Sequence[int], n: int, *, unique: bool
) -> list[Bigram]:
    """A globally proper input of n tokens.

    *Sought* letters have one token each, which may stand many times; only they are looked up, and only after they have
    appeared. The other letters, unless `unique`, have a new token every time.
    """
    names = rng.sample(list(letters), len(letters))
    sought = names if unique else names[: rng.randint(1, len(names))]
    token_of: dict[str, Bigram] = {}
    row: list[Bigram] = []

    def right(left: str | None) -> str | int:
        known = [*token_of, *([left] if left and rng.random() < 0.3 else [])][-2:]  # recent ones make long paths
        return rng.choice(known) if known and rng.random() < 0.8 else rng.choice(integers)

    for _ in range(n):
        left = rng.choice(names)
        if left in sought:
            token_of.setdefault(left, Bigram(left, right(left)))
            row.append(token_of[left])
        else:
            row.append(Bigram(left, right(None)))
    return row


# ---- hard attention ----

INDEX_HEADS = [
    (PAPER, "abcd", range(1, 9), (1,), ()),
    (NARROW.with_layout("half"), NAMES, (1, 3, 17, 39), (0,), ()),
    (NARROW, "xy", range(1, 41), (0, 1, 2, 3, 4, 5), ()),
    (preset("gpt-neox-20b"), NAMES, range(1, 6), (1, 2, 7), (3.0, 1.0, 0.5)),
    (RopeSpectrum.from_angle("pi*(sqrt(5)-1)"), "abc", (2, 5, 11), (0,), ()),
    (RopeSpectrum.from_angle("3/83 turn"), "ab", (1, 2), (0,), ()),
    (RopeSpectrum.from_angle("1e-3"), "ab", range(1, 10), (0,), ()),
    (NARROW, NAMES, (1, 2, 30), (0, 7), (1.0, 9.0)),
]


@pytest.mark.parametrize("inputs", MANY)
def test_t_index_is_index(inputs: int) -> None:
    """At every position in range, on that many random inputs."""
    rng = seeded(1)
    checked = 0
    for spectrum, letters, integers, planes, weights in INDEX_HEADS:
        head = token_index_head(spectrum, letters=letters, integers=integers, planes=planes, weights=weights)
        for _ in range(inputs // len(INDEX_HEADS)):
            row = number_input(rng, letters, integers, 40)
            compared = zip(run_layer(head, row).tokens, index(row), in_range(row), strict=True)
            checked += sum(in_range(row))
            assert all(found == wanted for found, wanted, inside in compared if inside), row
    assert checked > 10 * inputs


RETRIEVAL_HEADS = [
    ("0.0027", NAMES, (1, 2, 3), None, 17),
    ("1e-6", ("p", "q"), (1,), None, 40),
    ("0.02", ("p", "q", "rr"), (1, 4), None, 40),
    ("0.05", NAMES, (1,), None, 9),
    ("0.0027", NAMES, (1, 2), 17, 17),
    ("0.035", NAMES, (1, 2), 22, 22),  # beyond what the paper's head reaches: (2n-3) theta > omega > (n-1) theta
    ("0.07", ("p", "q", "rr"), (1, 2), 30, 30),
]


@pytest.mark.parametrize("inputs", MANY)
def test_t_retrieval_is_retrieval(inputs: int) -> None:
    """On random globally proper inputs, plain and centred, where worst(n) > 0."""
    rng = seeded(2)
    repeated = lookups = 0
    for angle, letters, integers, centre, longest in RETRIEVAL_HEADS:
        head = retrieval_head(
            RopeSpectrum.from_angle(angle), letters=letters, integers=integers, centre_length=centre, beta=3.0
        )
        assert isinstance(head.profile, LetterProfile)
        assert letter_curve(head.profile, [longest]).points[0].worst.sign == 1
        for _ in range(inputs // len(RETRIEVAL_HEADS) + 1):
            # A centred head is for its own length.
            n = longest if centre else rng.randint(1, longest)
            row = letter_input(rng, letters, integers, n, unique=rng.random() < 0.3)
            assert globally_proper(row)
            repeated += len(row) - len(set(row))
            lookups += sum(isinstance(token.right, str) for token in row)
            assert list(run_layer(head, row).tokens) == retrieval(row), " ".join(map(str, row))
    assert repeated > inputs
    assert lookups > 5 * inputs


@pytest.mark.parametrize("symbolic", [False, True])
def test_reflexive_heads_return_their_input(symbolic: bool) -> None:
    head, rng = reflexive_head(RopeSpectrum.from_angle("0.001"), symbolic=symbolic, letters=NAMES), seeded(3)
    for _ in range(100):
        row = [rng.choice(NAMES) for _ in range(rng.randint(1, 40))]
        assert list(run_layer(head, row).tokens) == row


# ---- softmax: Index ----

N = 24
SOFTMAX_INDEX = [
    (RopeSpectrum.from_angle("10000^(-2/128)"), (0,), ()),
    (NARROW, (0, 1, 2, 3), (4.0, 3.0, 2.0, 1.0)),
    pytest.param(NARROW.with_layout("half"), (0, 3), (), marks=pytest.mark.slow),
]


def index_scale(head: BuiltHead, query: Literal["integer", "letter"], offset: int) -> float:
    assert isinstance(head.profile, LogitProfile)
    return index_softmax_scale(replace(head.profile, origin=offset), N, query=query)


@pytest.mark.parametrize(("spectrum", "planes", "weights"), SOFTMAX_INDEX)
def test_softmax_index(spectrum: RopeSpectrum, planes: Sequence[int], weights: Sequence[float]) -> None:
    """beta_min is sharp on the worst case of every query, and enough for random inputs."""
    integers = (1, 2, 5, 11, 23)

    def head_at(beta: float) -> BuiltHead:
        return token_index_head(spectrum, letters="ab", integers=integers, planes=planes, weights=weights, beta=beta)

    unit = head_at(1.0)
    scales = []
    for offset in (0, *integers):
        # All other positions hold one wrong letter; the query stands last.
        row: list[Token] = ["b"] * N
        row[N - 1 - offset] = "a"
        if offset:
            row[-1] = offset
        scales.append(index_scale(unit, "integer" if offset else "letter", offset))
        right, wrong = (run_layer(head_at(factor * scales[-1]), row, attention="softmax") for factor in (1.001, 0.999))
        assert right.tokens[-1] == "a"
        assert wrong.tokens[-1] != "a"
        assert min(right.margins[-1], wrong.margins[-1]) > 1e-7  # decided by more than rounding
    head, rng = head_at(1.001 * max(scales)), seeded(4)
    for _ in range(INPUTS // len(SOFTMAX_INDEX)):
        numbers = number_input(rng, "ab", integers, N)
        compared = zip(
            run_layer(head, numbers, attention="softmax").tokens, index(numbers), in_range(numbers), strict=True
        )
        assert all(found == wanted for found, wanted, inside in compared if inside), numbers


# ---- softmax: Retrieval ----

SOFTMAX_RETRIEVAL = [
    ("0.0027", 8, None, 17),
    pytest.param("0.02", 3, None, 24, marks=pytest.mark.slow),
    pytest.param("0.04", 2, None, 20, marks=pytest.mark.slow),
    pytest.param("0.035", 8, 22, 22, marks=pytest.mark.slow),
    ("0.1", 3, 17, 17),
]
Family = Literal["other", "query itself", "own", "own integer"]


def families(n: int, letters: int) -> Iterator[tuple[Family, int, int]]:
    """All (family, answer's distance D, shift) of the docstring of `ropegeo.engine.softmax`."""
    for shift in range(1, letters):
        yield ("own", 0, shift)
        yield ("own integer", 0, shift)
        for distance in range(1, n):
            yield ("query itself", distance, shift)
            yield ("other", distance, shift)


def worst_retrieval_input(names: Sequence[str], n: int, family: Family, distance: int, shift: int) -> list[Bigram]:
    """A single answer, and one rival token wherever it may stand.

    own, own integer: the query finds itself, as (L, L) or (L, integer), and (rival, integer) stands everywhere else.
    other: the answer stands at `distance`, (rival, integer) everywhere else but where the query is.
    query itself: the rival is the query's own token, which looks for the answer, at distances 0..D-1.
    """
    sought, rival = names[0], names[shift]
    rest = [name for name in names if name not in (sought, rival)] or [rival]
    by_distance: list[Bigram]
    if family in ("own", "own integer"):
        by_distance = [Bigram(sought, sought if family == "own" else 2)] + [Bigram(rival, 1)] * (n - 1)
    else:
        query = Bigram(rest[0] if family == "other" else rival, sought)
        filler = Bigram(rival if family == "other" else rest[-1], 1)
        between = [filler if family == "other" else query] * (distance - 1)
        by_distance = [query, *between, Bigram(sought, 2), *[filler] * (n - 1 - distance)]
    return by_distance[::-1]


def family_sum(head: BuiltHead, n: int, beta: float, family: Family, distance: int, shift: int) -> float:
    """sum over the rival's distances of exp(-beta (match - rival)), written out with numpy alone."""
    theta, omega = float(head.recipe.spectrum.inv_freq[0]), 2 * np.pi / len(head.recipe.letters)
    centre = (
        0.0 if family == "own integer" or head.recipe.centre_length is None else (head.recipe.centre_length - 1) / 2
    )
    d = np.arange(n)
    stands = d < distance if family == "query itself" else (d > 0) & (d != distance)
    match = np.cos((distance - centre) * theta)
    rivals: FloatArray = np.cos(shift * omega + (d[stands] - centre) * theta)
    return float(np.exp(-beta * (match - rivals)).sum())


@pytest.mark.parametrize(("angle", "letters", "centre", "n"), SOFTMAX_RETRIEVAL)
def test_softmax_retrieval(angle: str, letters: int, centre: int | None, n: int) -> None:
    """beta_min is sharp on the worst family, enough for every family and for random inputs."""
    names = NAMES[:letters]

    def head_at(beta: float) -> BuiltHead:
        return retrieval_head(
            RopeSpectrum.from_angle(angle), letters=names, integers=(1, 2), centre_length=centre, beta=beta
        )

    unit = head_at(1.0)
    assert isinstance(unit.profile, LetterProfile)
    scale = retrieval_softmax_scale(unit.profile, n)
    cases = list(families(n, letters))
    sums = [family_sum(unit, n, scale, *case) for case in cases]
    assert max(sums) == pytest.approx(1, abs=1e-7)
    above, below = head_at(1.001 * scale), head_at(0.999 * scale)
    for case in cases:
        row = worst_retrieval_input(names, n, *case)
        assert globally_proper(row)
        assert run_layer(above, row, attention="softmax").tokens[-1] == retrieval(row)[-1], case
    family, distance, shift = cases[int(np.argmax(sums))]
    row = worst_retrieval_input(names, n, family, distance, shift)
    found = run_layer(below, row, attention="softmax")
    assert found.tokens[-1] != retrieval(row)[-1], (family, distance, shift)
    rng = seeded(5)
    for _ in range(INPUTS // len(SOFTMAX_RETRIEVAL)):
        row = letter_input(rng, names, (1, 2), n, unique=True)
        assert globally_proper(row)
        assert list(run_layer(above, row, attention="softmax").tokens) == retrieval(row)


# ---- stacks ----


def test_figure_3c() -> None:
    """The number task of the paper's figure, layer by layer."""
    solution = solve_number(parse_number_task(NUMBER), spectrum=PAPER, depth=5)
    assert [" ".join(map(str, state)) for state in solution.states] == [
        "C B A 1 4 1 3 2 1",
        "C B A A C 1 3 2 1",
        "C B A A C C A 2 1",
        "C B A A C C A C 1",
        "C B A A C C A C C",
        "C B A A C C A C C",
    ]
    assert (solution.answer, solution.path.hops, solution.correct) == ("C", 4, True)


def test_figure_3d() -> None:
    """The letter task of the paper's figure, layer by layer."""
    solution = solve_letter(parse_letter_task(LETTER), depth=5)
    assert [" ".join(map(str, state)) for state in solution.states] == [
        "C2 B1 A3 FA EC DE HF GD IG",
        "C2 B1 A3 A3 C2 EC FA DE GD",
        "C2 B1 A3 A3 C2 C2 A3 EC DE",
        "C2 B1 A3 A3 C2 C2 A3 C2 EC",
        "C2 B1 A3 A3 C2 C2 A3 C2 C2",
        "C2 B1 A3 A3 C2 C2 A3 C2 C2",
    ]
    assert (solution.answer, solution.path.hops, solution.correct) == (Bigram("C", 2), 4, True)


def walked_number(row: Sequence[str | int], at: int) -> tuple[int, str | int] | None:
    """(hops, answer) from one position by walking; None where the walk leaves the row."""
    hops = 0
    while at >= 0 and isinstance(step := row[at], int):
        at, hops = at - step, hops + 1
    return (hops, row[at]) if at >= 0 else None


def walked_letter(row: Sequence[Bigram], at: int) -> tuple[int, Bigram] | None:
    """The same for bigrams of a globally proper row; None where the walk ends at a token that finds itself."""
    token, hops = row[at], 0
    while isinstance(token.right, str) and token.left != token.right:
        token, hops = next(t for t in row if t.left == token.right), hops + 1
    return (hops, token) if isinstance(token.right, int) else None


def check_stack(solution: Solution, walks: Sequence[tuple[int, Token] | None], oracle: Sequence[list[Any]]) -> int:
    """The last position, and every prefix: its last position is that of an input of its own. Returns how many."""
    assert solution.correct
    assert walks[-1] is not None
    assert solution.answer == walks[-1][1]
    assert [walk is not None for walk in walks] == list(solution.readable)
    checked = 0
    for j, walk in enumerate(walks):
        states = [state[j] for state in solution.states]
        if walk is not None:
            assert states == [state[j] for state in oracle[: len(states)]]
            if walk[0] < len(states):
                assert set(states[walk[0] :]) == {walk[1]}  # layers beyond the hops change nothing
                checked += 1
    return checked


@pytest.mark.slow
@pytest.mark.parametrize("task", ["number", "letter"])
def test_stacks(task: str) -> None:
    """2,000 random tasks, the prefixes of random rows, with letters of several characters and depth beyond the hops."""
    rng, checked, deepest = seeded(6), 0, 0
    while checked < INPUTS:
        row: Any
        if task == "number":
            row = [rng.choice(NAMES), *number_input(rng, NAMES, range(1, 6), 24)]
        else:
            row = letter_input(rng, NAMES, (1, 22), rng.randint(2, 24), unique=rng.random() < 0.5)
        walks: list[Any] = [(walked_number if task == "number" else walked_letter)(row, j) for j in range(len(row))]
        if walks[-1] is None:
            continue
        hops = walks[-1][0]
        depth = hops + rng.randint(0 if hops else 1, 3)
        deepest = max(deepest, hops)
        oracle: Any = index if task == "number" else retrieval
        solution = solve_number(row, spectrum=UNIT, depth=depth) if task == "number" else solve_letter(row, depth=depth)
        assert len(solution.layers) == depth
        checked += check_stack(solution, walks, iterate(oracle, row, depth))
    assert deepest >= 4


def test_softmax_stack_needs_its_scale() -> None:
    """The figure is right at a large scale, wrong at 1, and the solution says so."""
    row = parse_number_task(NUMBER)
    assert solve_number(row, spectrum=UNIT, attention="softmax", beta=100.0).correct
    wrong = solve_number(row, spectrum=UNIT, attention="softmax", beta=1.0)
    assert not wrong.correct
    assert wrong.path.answer == "C"


# ---- refusals ----


def test_refused() -> None:
    head = token_index_head(UNIT, letters="ab", integers=(1,))
    for tokens, message in (
        ([], "0 tokens; give between 1"),
        (["a"] * (MAX_LENGTH + 1), f"{MAX_LENGTH + 1} tokens"),
        (["a", "c"], "'c' at position 2 is not in the vocabulary"),
        (["a", 2], "'2' at position 2 is not in the vocabulary"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            run_layer(head, tokens)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="at least one layer"):
        run_stack([], ["a"])
    with pytest.raises(InvalidInputError, match="4 hops, more than the 3 layers"):
        solve_number(parse_number_task(NUMBER), spectrum=PAPER, depth=3)

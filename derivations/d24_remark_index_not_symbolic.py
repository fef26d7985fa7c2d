"""Index is not computed by a purely symbolic head, for three positions and two letters on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import permutations, product

from ropegeo.claims import Claim, Status, Step, argument, exact, require
from ropegeo.tasks import oracles

CLAIM = Claim(
    title="Index is not computed by a purely symbolic head",
    statement=(
        r"A head is purely symbolic if the logit of a key depends on the query's token and on the key's token, not on "
        r"their positions. Whatever its values, its rule of attention (softmax, hard, any other that treats positions "
        r"alike) and its read-out, no one-layer model with such a head computes Index at the last position of all "
        r"inputs of length $n$, for $n \ge 3$ and two letters."
    ),
    source="Urrutia et al., arXiv 2605.31558, Remark 3.1",
    scope=r"$n \ge 3$, at least two letters, the integer 1 among the tokens; at $n = 2$ there is nothing to tell apart",
    status=Status.PROVED,
    ties=("ropegeo.tasks.oracles.index",),
)
LENGTHS = (2, 3, 4, 5)
"""Lengths at which all inputs are listed."""


def steps() -> Iterator[Step]:
    """The proof."""
    yield argument(
        "nothing but the bag of tokens",
        r"Let $\pi$ permute the positions before the last. The logits, so the attention, move with the tokens: the "
        r"attention output $\sum_j D_j W_V x_j$ at the last position is the same sum in another order. The query's "
        r"own state is the same. So the output at the last position, under any read-out, is a function of the last "
        r"token and of the multiset of the others.",
    )
    first, second = _pair(3)
    seen = oracles.index(first)[-1], oracles.index(second)[-1]
    yield exact(
        "two inputs that it cannot tell apart",
        rf"{_shown(first)} and {_shown(second)} hold the same tokens before the same last one. Index outputs "
        rf"{seen[0]} and {seen[1]}.",
        holds=_bag(first) == _bag(second) and seen[0] != seen[1],
    )
    yield argument(
        "every length",
        r"With $n - 3$ letters A before them both inputs have any length $n \ge 3$. The multisets stay equal, and the "
        r"last token, the integer 1, still reads the one before it: B, and A.",
    )
    longer = [_pair(n) for n in range(3, 200)]
    yield exact(
        "every length, run (support)",
        rf"For $3 \le n \le {len(longer[-1][0])}$ the multisets are equal, Index outputs B and A, and all integers are "
        r"in range.",
        holds=all(
            _bag(one) == _bag(other)
            and (oracles.index(one)[-1], oracles.index(other)[-1]) == ("B", "A")
            and all(oracles.in_range(one) + oracles.in_range(other))
            for one, other in longer
        ),
    )
    counts = {n: _conflicts(n) for n in LENGTHS}
    yield exact(
        "every input of small lengths",
        r"Letters A and B, integers 1 to $n - 1$, inputs whose integers are all in range, put together by last token "
        r"and multiset of the others. Classes in which Index has two answers or more, of all classes: "
        + "; ".join(rf"$n = {n}$: {bad} of {total}" for n, (bad, total) in counts.items())
        + r". At $n = 2$ one position stands before the last, and nothing contradicts itself.",
        holds=all((bad == 0) == (n == 2) for n, (bad, _) in counts.items()),
    )


def _pair(n: int) -> tuple[list[str | int], list[str | int]]:
    """Two inputs with the same bag and the same last token, but another answer."""
    padding: list[str | int] = ["A"] * (n - 3)
    return [*padding, "A", "B", 1], [*padding, "B", "A", 1]


def _bag(row: Sequence[str | int]) -> tuple[str | int, tuple[str, ...]]:
    """What a purely symbolic head sees at the last position."""
    return row[-1], tuple(sorted(map(str, row[:-1])))


def _conflicts(n: int) -> tuple[int, int]:
    """Number of classes with more than one answer, and of all classes."""
    answers: dict[tuple[str | int, tuple[str, ...]], set[str | int]] = defaultdict(set)
    for row in product(("A", "B", *range(1, n)), repeat=n):
        if all(oracles.in_range(row)):
            answers[_bag(row)].add(oracles.index(row)[-1])
    return sum(len(found) > 1 for found in answers.values()), len(answers)


def _shown(row: Sequence[str | int]) -> str:
    return "(" + ", ".join(map(str, row)) + ")"


def check() -> None:
    """The oracle's answers on the pair, and on all orders of a longer input."""
    for n in (3, 4, 50):
        for row, expected in zip(_pair(n), ("B", "A"), strict=True):
            require(oracles.index(row)[-1] == expected, f"index of {_shown(row)} ends in {oracles.index(row)[-1]}")
            require(all(oracles.in_range(row)), f"{_shown(row)} is out of range")
    answers = {oracles.index([*order, 2])[-1] for order in permutations(["A", "B", "C"])}
    require(answers == {"A", "B", "C"}, f"orders of A, B, C before a 2 give {answers}")
    require(_conflicts(2)[0] == 0 < _conflicts(3)[0], "index at length 2 or 3 is not as the claim says")

"""Purely positional attention can compute Retrieval in one layer; with copied values or one position it cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import sympy
from numpy.typing import NDArray

from ropegeo._arrays import IntArray
from ropegeo.asymptotics import bounds
from ropegeo.claims import Claim, Status, Step, argument, counterexample, exact, require, symbolic, vanishes
from ropegeo.construct import transformer
from ropegeo.exact import ClosedForm
from ropegeo.heads import head
from ropegeo.spectrum import RopeSpectrum
from ropegeo.tasks import Bigram, oracles

CLAIM = Claim(
    title="Retrieval and purely positional attention",
    statement=(
        r"Let the logit of a key depend on the query's token and on positions, not on the key's token. No one-layer "
        r"model with such attention computes Retrieval at the last position of all proper inputs of length $n \ge 3$ "
        r"if (i) values and read-out are the one-hot identity, with or without a residual, two letters and one "
        r"integer; or (ii) all attention is on one position, whatever values and read-out, two letters and one integer."
    ),
    source="Urrutia et al., arXiv 2605.31558, Remark 3.1; docs/MATHEMATICS.md, section 2, for the task",
    scope=(
        r"$n \ge 3$ (at $n = 2$ one position suffices); at least two letters and one integer; the output must win "
        r"without a tie"
    ),
    status=Status.REPAIRED,
    ties=(
        "ropegeo.tasks.oracles.retrieval",
        "ropegeo.construct.transformer.attention_weights",
        "ropegeo.heads.head.Head",
        "ropegeo.asymptotics.bounds.swap_scores",
    ),
    as_stated="Retrieval is not computed by a purely positional head.",
    cause=(
        r"That holds for a head which hands over the token it attends to. In a one-layer model the read-out, or the "
        r"values, can apply a fixed matrix to the query's own token and so lift every token that fits it; attention "
        r"then only has to report which of them is present, and uniform attention does."
    ),
)
SIZES = ((2, 1, 3), (2, 1, 4), (2, 1, 5), (2, 2, 4), (3, 1, 3))
"""Letters, integers and length of which every proper input is run."""
LONGEST = 24
"""Length up to which the repaired statement's inputs are run."""
LIFT = 3
"""B in exact arithmetic; B > 1/(2w - 1) for the own weight w = 3/4, and at least 2."""
PLANES = 8
"""Turns k/17, k = 1..8, with weights 8, 7, .., 1: every distance below 17 is told from 0."""

Array: TypeAlias = NDArray[Any]


class Model(NamedTuple):
    """A one-layer model but for its attention weights: tokens, embedding, W_O W_V, unembedding, residual or not."""

    tokens: tuple[Bigram, ...]
    embedding: Array
    values: Array
    unembedding: Array
    residual: bool


def steps() -> Iterator[Step]:
    """Both counterexamples, what each rests on, and the repaired statement."""
    yield from _free_read_out()
    yield from _attention_only()
    yield from _scored()
    yield from _repaired()


def _vocabulary(letters: int, integers: int) -> tuple[Bigram, ...]:
    names = [chr(ord("a") + number) for number in range(letters)]
    return tuple(Bigram(left, right) for left in names for right in (*names, *range(1, integers + 1)))


def _lookup(tokens: Sequence[Bigram]) -> IntArray:
    """M[s, t] = 1 where t may look up s: by t's right letter and s's left one, or s = t for a (letter, integer) t."""
    return np.array(
        [[int(s == t if isinstance(t.right, int) else s.left == t.right) for t in tokens] for s in tokens], np.int64
    )


def _by_read_out(tokens: tuple[Bigram, ...]) -> Model:
    """Embedding (one-hot, one-hot), values diag(1, 0), output x + a, unembedding [I, B M]."""
    identity = np.eye(len(tokens), dtype=np.int64)
    nothing = np.zeros_like(identity)
    return Model(
        tokens=tokens,
        embedding=np.hstack([identity, identity]),
        values=np.block([[identity, nothing], [nothing, nothing]]),
        unembedding=np.hstack([identity, LIFT * _lookup(tokens)]),
        residual=True,
    )


def _by_values(tokens: tuple[Bigram, ...]) -> Model:
    """One-hot embedding and unembedding, values I + B M, output a."""
    identity = np.eye(len(tokens), dtype=np.int64)
    return Model(tokens, identity, identity + LIFT * _lookup(tokens), identity, residual=False)


def _copying(tokens: tuple[Bigram, ...], *, residual: bool) -> Model:
    """One-hot embedding and unembedding, values I."""
    identity = np.eye(len(tokens), dtype=np.int64)
    return Model(tokens, identity, identity, identity, residual)


def _scores(model: Model, rows: IntArray, weights: Array) -> Array:
    """Coordinate of every token at every position of every input, times the sum of the row of weights.

    Exact where the weights are integers, of any sum: rows are inputs, as places in the vocabulary.
    """
    states = model.embedding[rows]
    outputs = weights @ states @ model.values.T
    if model.residual:
        outputs = outputs + weights.sum(axis=1)[:, None] * states
    return np.asarray(outputs @ model.unembedding.T)


def _lead(scores: Array, answers: IntArray) -> Array:
    """Score of the right token less the best other, at every position of every input."""
    right = np.take_along_axis(scores, answers[..., None], axis=-1)[..., 0]
    others = scores.copy()
    np.put_along_axis(others, answers[..., None], -(10**9), axis=-1)
    return np.asarray(right - others.max(axis=-1))


def _placed(tokens: tuple[Bigram, ...], inputs: list[list[Bigram]]) -> tuple[IntArray, IntArray]:
    """Inputs and what Retrieval makes of them, as places in the vocabulary."""
    place = {token: number for number, token in enumerate(tokens)}
    rows = [[place[token] for token in row] for row in inputs]
    answers = [[place[token] for token in oracles.retrieval(row)] for row in inputs]
    return np.array(rows), np.array(answers)


def _every_input(tokens: tuple[Bigram, ...], length: int) -> tuple[IntArray, IntArray]:
    """All proper inputs of a length and what Retrieval makes of them, as places in the vocabulary."""
    return _placed(tokens, [list(row) for row in product(tokens, repeat=length) if oracles.proper(row)])


def _uniform(length: int) -> IntArray:
    return np.tril(np.ones((length, length), np.int64))


def _mostly_own(length: int) -> IntArray:
    """Own weight 3/4, the rest shared equally (the first position has all), in integers."""
    weights = _uniform(length)
    for j in range(1, length):
        weights[j, j] = 3 * j
    return weights


def _free_read_out() -> Iterator[Step]:
    small = _vocabulary(2, 1)
    row = (Bigram("a", 1), Bigram("b", "a"))
    model = _by_read_out(small)
    scores = _scores(model, np.array([[small.index(token) for token in row]]), _uniform(2))[0, -1]
    listed = ", ".join(
        f"{token.left}{token.right}: {Fraction(int(score), 2)}" for token, score in zip(small, scores, strict=True)
    )
    yield exact(
        "an example: uniform attention and a free read-out",
        rf"Tokens a1, ba over two letters and one integer, all logits 0. Embedding (one-hot, one-hot), $W_V = "
        rf"\operatorname{{diag}}(1, 0)$, output $x + a$, unembedding $[I, BM]$, $B = {LIFT}$, $M_{{st}} = 1$ if the "
        rf"left letter of $s$ is the right letter of $t$, or $t$ is (letter, integer) and $s = t$. Scores at ba, "
        rf"whose answer is a1: {listed}.",
        holds=int(scores.argmax()) == small.index(row[0]) and int((scores == scores.max()).sum()) == 1,
    )
    total, smallest = 0, []
    for letters, integers, length in SIZES:
        tokens = _vocabulary(letters, integers)
        rows, answers = _every_input(tokens, length)
        lead = _lead(_scores(_by_read_out(tokens), rows, _uniform(length)), answers)
        total += len(rows)
        smallest.append(int(lead.min()))  # in units of 1/(visible positions)
    yield counterexample(
        "every proper input, uniform attention",
        rf"(letters, integers, length) = {', '.join(str(size) for size in SIZES)}, the first of them the smallest in "
        rf"the scope of the repaired statement: all {total} proper inputs, every position, in integer arithmetic. The "
        rf"output is right everywhere; times the number $n$ of visible positions, the smallest lead over the next "
        rf"token is {min(smallest)}.",
        holds=total > 0 and smallest == [1] * len(SIZES),
    )
    big, count, own, rival, n = sympy.symbols("B c o r n", positive=True)
    yield symbolic(
        "why",
        r"Query $t$, $n$ visible positions, $c_s$ of them holding $s$: $s$ scores $[s = t] + \frac{c_s}{n} + B "
        r"M_{st}$. The right token is the one visible token with $M_{st} = 1$ (the input is proper). A rival with "
        r"$M_{st} = 1$ is not visible, so not $t$: it lacks $\frac{c}{n} \ge \frac1n$. One with $M_{st} = 0$ lacks at "
        r"least $B + \frac{c}{n} - 1 - \frac{r}{n}$ with $r \le n - c$, that is at least $B - 2 + \frac{2c}{n} \ge "
        r"\frac2n$ for $B \ge 2$. So the gap is at least $\frac1n$, at every $n$.",
        holds=vanishes((big + count / n) - (1 + rival / n) - (big - 2 + 2 * count / n) - (n - count - rival) / n)
        and vanishes((own + count / n + big) - (own + big) - count / n),
    )


def _attention_only() -> Iterator[Step]:
    total, smallest = 0, []
    for letters, integers, length in SIZES:
        tokens = _vocabulary(letters, integers)
        rows, answers = _every_input(tokens, length)
        lead = _lead(_scores(_by_values(tokens), rows, _mostly_own(length)), answers)
        total += len(rows)
        smallest.append(int(lead.min()))
    yield counterexample(
        "every proper input, one-hot read-out",
        rf"One-hot embedding and read-out, no residual, $Q = K = v$ for every token, own weight $w = \frac34$ and the "
        rf"rest shared equally, $W_V = I + BM$, $B = {LIFT}$: on the same {total} inputs every output is right, in "
        rf"integer arithmetic. The smallest lead is {min(smallest)} times the weight of a "
        r"single position other than the query's.",
        holds=total > 0 and min(smallest) == 1,
    )
    big, w, mine, other = sympy.symbols("B w p r", positive=True)
    yield argument(
        "why, tokens that fit",
        r"Query $t$ with own weight $w > \frac12$; $p_s$ is the weight on positions that hold $s$; $s$ scores $p_s + "
        r"B \sum_j w_j M_{s t_j}$. Among the tokens with $M_{st} = 1$ only the right one, $s^*$, is visible. They "
        r"differ in the sum only by (letter, integer) tokens $t_j = s$, which are visible: so the sum is no smaller "
        r"for $s^*$ than for the others, and $p_{s^*} > 0 = p_s$ decides. (For a (letter, integer) query $t$ is the "
        r"only such token.)",
    )
    yield symbolic(
        "why, the others",
        r"A token with $M_{st} = 0$ has a sum of at most $1 - w$, $s^*$ one of at least $w$. The lead is at least "
        r"$p_{s^*} + Bw - p_s - B(1-w) > B(2w - 1) - 1$, as $p_s - p_{s^*} < 1$: positive once $B > \frac{1}{2w-1}$.",
        holds=vanishes((mine + big * w) - (other + big * (1 - w)) - (big * (2 * w - 1) - 1) - (1 + mine - other))
        and vanishes((big * (2 * w - 1) - 1).subs(big, 1 / (2 * w - 1))),
    )


def _scored() -> Iterator[Step]:
    yield argument(
        "what the scores say of both",
        r"Their logits do not depend on contents, so every swap has the positional score 1 (derivation "
        r"`score_invariance`). Uniform attention is level: its symbolic score is 1 too (derivation `exclusion`). The "
        r"second construction's logits fall with the distance, unevenly in general, and the symbolic score is below 1 "
        r"where they differ.",
    )


def _repaired() -> Iterator[Step]:
    tokens = _vocabulary(2, 1)
    first, second = _pair(3)
    same = oracles.retrieval(first)[-1], oracles.retrieval(second)[-1]
    yield exact(
        "two inputs for (i)",
        rf"{_shown(first)} and {_shown(second)}: both are proper, both have the answer {same[0]}, once at the first "
        rf"position and once at the second; so too with more tokens b1 before them, run to $n = {LONGEST}$ (support).",
        holds=same[0] == same[1]
        and all(
            oracles.retrieval(one)[-1] == oracles.retrieval(other)[-1] == one[-3] == other[-2]
            and oracles.proper(one)
            and oracles.proper(other)
            for one, other in map(_pair, range(3, LONGEST + 1))
        ),
    )
    yield argument(
        "(i), copied tokens",
        r"With $W_V = I$ a token's score is the weight on the positions that hold it, and 1 more for the query under a "
        r"residual. Right on the first input needs $w_1 > w_2$, right on the second $w_2 > w_1$; the query's token "
        r"being the same, the weights are. Tokens b1 before them look nothing up and are not looked up; they only add "
        r"to b1, so both needs stand at every $n$, for the last two places before the query.",
    )
    shares = [weights for weights in product(range(13), repeat=3) if sum(weights) == 12]
    place = np.array([[tokens.index(token) for token in row] for row in (first, second)])
    answers = np.full((2, 3), tokens.index(same[0]))
    right = [
        bool((_lead(_scores(_copying(tokens, residual=residual), place, _last_row(weights)), answers)[:, -1] > 0).all())
        for weights in shares
        for residual in (False, True)
    ]
    yield exact(
        "(i), listed (support)",
        rf"All {len(shares)} ways to share the weight of three positions in multiples of $\frac{{1}}{{12}}$, hard "
        rf"attention on one or several among them, with and without a residual: none is right on both inputs.",
        holds=len(shares) == 91 and not any(right),
    )
    yield argument(
        "(ii), one position",
        r"With all attention on position $p$ the output is a function of the query's token and of the token at $p$, "
        r"$p$ being fixed by the query's token and $n$. It is wrong somewhere if two proper inputs agree at $p$ and "
        r"at the last position but have different answers.",
    )
    agreeing = {(n, p): _agreeing(n, p) for n in range(3, LONGEST + 1) for p in range(n)}
    yield argument(
        "such inputs, at every length",
        rf"{_shown(_agreeing(3, 0)[0])} and {_shown(_agreeing(3, 0)[1])} agree at every position but the second, "
        rf"{_shown(_agreeing(3, 1)[0])} and {_shown(_agreeing(3, 1)[1])} at every one but the first; the answers are "
        r"a1 and aa. More tokens b1 before them look nothing up and are not looked up, and both inputs hold them.",
    )
    yield exact(
        "such inputs, run (support)",
        rf"For every $3 \le n \le {LONGEST}$ and every $p$ such a pair is proper, agrees at $p$ and at the last "
        rf"position and has two answers.",
        holds=all(
            one[p] == other[p]
            and one[-1] == other[-1]
            and oracles.proper(one)
            and oracles.proper(other)
            and oracles.retrieval(one)[-1] != oracles.retrieval(other)[-1]
            for (_, p), (one, other) in agreeing.items()
        ),
    )
    sizes = ((2, 1), (3, 2))
    yield exact(
        "at length 2 one position suffices",
        rf"At $n = 2$ hard attention that copies is right on every proper input: a query of two different letters "
        rf"attends to the first position, where its answer must stand, any other to its own. Listed for (letters, "
        rf"integers) = {', '.join(map(str, sizes))} (support).",
        holds=all(_one_position_suffices(_vocabulary(*size)) for size in sizes),
    )


def _pair(n: int) -> tuple[list[Bigram], list[Bigram]]:
    """The answer (a, 1) before and after (b, 1), for a query (b, a)."""
    answer, filler, query = Bigram("a", 1), Bigram("b", 1), Bigram("b", "a")
    padding = [filler] * (n - 3)
    return [*padding, answer, filler, query], [*padding, filler, answer, query]


def _one_position_suffices(tokens: tuple[Bigram, ...]) -> bool:
    """Whether at length 2 the token at a place that the query's token alone decides is always the answer."""
    inputs = [[first, last] for first in tokens for last in tokens if oracles.proper([first, last])]
    places = [0 if isinstance(row[1].right, str) and row[1].right != row[1].left else 1 for row in inputs]
    return all(row[place] == oracles.retrieval(row)[1] for row, place in zip(inputs, places, strict=True))


def _last_row(weights: tuple[int, ...]) -> IntArray:
    """Weights of the last position; the others look at themselves."""
    rows = np.eye(len(weights), dtype=np.int64)
    rows[-1] = weights
    return rows


def _agreeing(n: int, p: int) -> tuple[list[Bigram], list[Bigram]]:
    """Two inputs with the query (b, a) that agree at position p (from 0) and have the answers (a, 1) and (a, a)."""
    filler, query = Bigram("b", 1), Bigram("b", "a")
    place = n - 3 if p == n - 2 else n - 2
    rows = [[filler] * (n - 1) + [query] for _ in range(2)]
    rows[0][place], rows[1][place] = Bigram("a", 1), Bigram("a", "a")
    return rows[0], rows[1]


def _shown(row: Sequence[Bigram]) -> str:
    return "(" + ", ".join(map(str, row)) + ")"


def check() -> None:
    """Both constructions as real heads, on every proper input of a small size and on random long ones."""
    oracle_row = [Bigram("C", 2), Bigram("F", "C"), Bigram("G", "F")]
    require(oracles.retrieval(oracle_row) == [oracle_row[0], oracle_row[0], oracle_row[1]], "retrieval of C2 FC GF")
    small, large = _vocabulary(2, 1), _vocabulary(4, 3)
    for letters, length, rows_and_answers in (
        (small, 4, _every_input(small, 4)),
        (large, 16, _random_inputs(large, 16, 12)),
    ):
        rows, answers = rows_and_answers
        for model, amplitude in ((_by_read_out(letters), 0.0), (_by_values(letters), 5.0)):
            made = _head(model, amplitude)
            logits = made.logits(model.embedding[rows[0]].astype(np.float64))
            weights = transformer.attention_weights(logits, "softmax", beta=max(amplitude, 1.0))
            own = float(weights[-1, -1])
            require(amplitude == 0 or LIFT * (2 * own - 1) > 1, f"own weight {own} is too small for B = {LIFT}")
            for row in rows[:: max(1, len(rows) // 5)]:  # contents do not matter: all queries, and all keys, are one
                again = made.logits(model.embedding[row].astype(np.float64))
                require(bool((again == logits).all()), "the logits depend on the contents")
            as_built = model._replace(values=made.w_o @ made.w_v)
            lead = _lead(_scores(as_built, rows, weights), answers)
            smallest = float(lead.min())
            kind = "uniform attention" if amplitude == 0 else "own weight above 1/2"
            require(smallest > 1e-4, f"{kind}: an input of length {length} is wrong or tied (lead {smallest})")
            least = 0 if amplitude else 1 / length - 1e-12
            require(smallest >= least, f"uniform attention: a lead of {smallest} is below 1/{length}")
            _check_positional(made, model, rows[-1], level=amplitude == 0)


def _check_positional(made: head.Head, model: Model, row: IntArray, *, level: bool) -> None:
    """Positional score 1 for swaps of keys; the symbolic one too only where all logits are level."""
    query = len(row) - 1
    before = made.logits(model.embedding[row].astype(np.float64))[query]
    symbolic_scores = []
    for a, b in ((0, 1), (query // 2, query - 1), (1, 2)):
        swapped = row.copy()
        swapped[[a, b]] = row[[b, a]]
        after = made.logits(model.embedding[swapped].astype(np.float64))[query]
        positional, symbolic_score = bounds.swap_scores(before[[a]], before[[b]], after[[a]], after[[b]])
        require(float(positional[0]) == 1, f"positional score {positional[0]} of the swap {a}, {b}")
        symbolic_scores.append(float(symbolic_score[0]))
    require(
        (min(symbolic_scores) == 1) == level, f"symbolic scores of a positional head go down to {min(symbolic_scores)}"
    )


def _head(model: Model, beta: float) -> head.Head:
    """Queries and keys of every token are one vector v, |v|^2 = beta shared over the planes as 8 : 7 : .. : 1."""
    angles = tuple(2 * ClosedForm.pi() * Fraction(k, 2 * PLANES + 1) for k in range(1, PLANES + 1))
    spectrum = RopeSpectrum(angles=angles, head_dim=2 * PLANES)
    weights = np.arange(PLANES, 0, -1) / sum(range(1, PLANES + 1))
    one = spectrum.from_planes(np.sqrt(beta * weights) + 0j)
    width = model.embedding.shape[1]
    per_token = width // len(model.tokens)  # ones in each row of the embedding
    every = np.outer(one / per_token, np.ones(width))
    return head.Head(
        w_q=every, w_k=every, w_v=np.asarray(model.values, np.float64), w_o=np.eye(width), spectrum=spectrum, scale=1.0
    )


def _random_inputs(tokens: tuple[Bigram, ...], length: int, count: int) -> tuple[IntArray, IntArray]:
    """Proper inputs drawn token by token, and what Retrieval makes of them."""
    random = np.random.default_rng(25)
    inputs: list[list[Bigram]] = []
    while len(inputs) < count:
        row: list[Bigram] = []
        while len(row) < length:
            row.append(tokens[random.integers(len(tokens))])
            if not oracles.proper(row):
                row.pop()
        inputs.append(row)
    return _placed(tokens, inputs)

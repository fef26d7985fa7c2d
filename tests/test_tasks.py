"""The number and letter tasks against oracles that share no algorithm with them, and against broken variants."""

import doctest
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ropegeo.tasks as tasks
from ropegeo.errors import IllDefinedTaskError, InvalidInputError
from ropegeo.tasks import (
    Bigram,
    Path,
    globally_proper,
    in_range,
    index,
    iterate,
    letter_path,
    number_path,
    parse_letter_task,
    parse_number_task,
    proper,
    reflexive,
    retrieval,
    well_defined,
)

NUMBER = "C B A 1 4 1 3 2 1"
LETTER = "C2 B1 A3 FA EC DE HF GD IG"
PREFIX_ONLY = [Bigram("a", 1), Bigram("b", "a"), Bigram("a", 2), Bigram("c", "b")]  # docs/MATHEMATICS.md, section 2

# ---- oracles of the tests: whole relations and their closure instead of a walk ----


def roots_by_doubling(tokens: Sequence[str | int]) -> list[tuple[int, int] | None]:
    """(position of the letter, hops) for each position, by pointer doubling; None where the chain leaves the row."""
    jump = {p: p if isinstance(t, str) else max(p - t, 0) for p, t in enumerate(tokens, 1)} | {0: 0}
    steps = {p: int(jump[p] != p) for p in jump}
    for _ in range(len(tokens).bit_length() + 1):
        steps = {p: steps[p] + steps[jump[p]] for p in jump}
        jump = {p: jump[jump[p]] for p in jump}
    return [(jump[p], steps[p]) if jump[p] else None for p in range(1, len(tokens) + 1)]


def lookups_by_definition(tokens: Sequence[Bigram], position: int, seen: int) -> set[Bigram]:
    """All tokens that a letter-letter token at `position` could mean when the first `seen` tokens count."""
    return {t for t in tokens[:seen] if t.left == tokens[position - 1].right}


def letter_closure(tokens: Sequence[Bigram]) -> tuple[Bigram, int] | None:
    """(answer, hops) of the last position, by growing from the answers the positions that reach them; None: no path."""
    n = len(tokens)
    reach = {p: (t, 0) for p, t in enumerate(tokens, 1) if isinstance(t.right, int)}
    for _ in range(n):
        for p, token in enumerate(tokens, 1):
            nearest = [k for k in range(1, p) if tokens[k - 1].left == token.right][-1:]
            if p in reach or token.left == token.right or len(lookups_by_definition(tokens, p, n)) != 1:
                continue
            if nearest and nearest[0] in reach:
                answer, hops = reach[nearest[0]]
                reach[p] = (answer, hops + 1)
    return reach.get(n)


# ---- random inputs ----

letters = st.sampled_from("abcd")
number_rows = st.lists(st.one_of(letters, st.integers(1, 8)), min_size=1, max_size=14)
bigrams = st.builds(Bigram, letters, st.one_of(letters, st.integers(1, 2)))
letter_rows = st.lists(bigrams, min_size=1, max_size=9)


@st.composite
def in_range_rows(draw: st.DrawFn) -> list[str | int]:
    """Number-task rows in which every integer points at a token."""
    size = draw(st.integers(1, 14))
    return [draw(st.one_of(letters, st.integers(1, j)) if j else letters) for j in range(size)]


@st.composite
def globally_proper_rows(draw: st.DrawFn) -> list[Bigram]:
    """Rows in which each left letter has one token that never finds itself; letters come in a drawn order, repeat."""
    tokens: list[Bigram] = []
    for left in draw(st.permutations("abcdefgh"))[: draw(st.integers(1, 8))]:
        rights: list[Any] = [*{t.left for t in tokens}, 1, 2]
        tokens.append(Bigram(left, draw(st.sampled_from(sorted(rights, key=str)))))
        tokens.extend(draw(st.lists(st.sampled_from(tokens), max_size=2)))
    return tokens


# ---- the figures of the paper, and small cases ----


def test_figures() -> None:
    """Both examples of the paper's figures take 4 hops over the same positions."""
    assert number_path(parse_number_task(NUMBER)) == Path(positions=(9, 8, 6, 5, 1), hops=4, answer="C")
    assert letter_path(parse_letter_task(LETTER)) == Path(positions=(9, 8, 6, 5, 1), hops=4, answer=Bigram("C", 2))


def test_states_of_the_figures() -> None:
    """Retrieval walks one token a layer; Index keeps the integer until the layer in which the answer arrives."""
    last = [state[-1] for state in iterate(retrieval, parse_letter_task(LETTER), 5)]
    assert " ".join(map(str, last)) == "IG GD DE EC C2 C2"
    assert [state[-1] for state in iterate(index, parse_number_task(NUMBER), 5)] == [1, 1, 1, 1, "C", "C"]


@pytest.mark.parametrize(
    ("row", "image", "inside"),
    [
        (["a"], ["a"], [True]),
        ([1], [1], [False]),
        (["a", 1], ["a", "a"], [True, True]),
        (["a", 2], ["a", 2], [True, False]),
        ([1, "a"], [1, "a"], [False, True]),
        (["a", 1, 1], ["a", "a", 1], [True] * 3),
        (["a", "b", 2, 3, 5], ["a", "b", "a", "a", 5], [True] * 4 + [False]),
        ([], [], []),
    ],
)
def test_index(row: list[str | int], image: list[str | int], inside: list[bool]) -> None:
    """Index and its range on rows that can be checked by eye."""
    assert index(row) == image
    assert in_range(row) == inside
    assert reflexive(row) == row


def test_proper_by_prefix_is_not_preserved() -> None:
    """The example of docs/MATHEMATICS.md, section 2: proper, not globally, and its image is not proper."""
    assert proper(PREFIX_ONLY)
    assert not globally_proper(PREFIX_ONLY)
    image = retrieval(PREFIX_ONLY)
    assert image == [Bigram("a", 1), Bigram("a", 1), Bigram("a", 2), Bigram("b", "a")]
    assert not proper(image)
    with pytest.raises(IllDefinedTaskError, match=r"position 4 .*'a1' at 1 and 'a2' at 3"):
        retrieval(image)
    with pytest.raises(IllDefinedTaskError, match=r"position 2 .*'a1' at 1 and 'a2' at 3"):
        letter_path(PREFIX_ONLY)
    assert well_defined(PREFIX_ONLY) == [True, True, True, False]


def test_the_latest_equal_token_is_taken() -> None:
    """The first (b, a) has nothing to find; the second one has, and the stack agrees with the path through it."""
    row = parse_letter_task("ba a1 ba cb")
    assert letter_path(row) == Path(positions=(4, 3, 2), hops=2, answer=Bigram("a", 1))
    assert not proper(row)
    assert well_defined(row) == [False, True, True, True]
    assert [str(token) for token in iterate(retrieval, row, 2)[-1]] == ["ba", "a1", "a1", "a1"]


def test_a_token_can_spoil_its_own_path() -> None:
    """The last token itself is the second, different one under a letter that its path looks up."""
    row = parse_letter_task("a1 ba ab")
    assert well_defined(row) == [True, True, False]
    with pytest.raises(IllDefinedTaskError, match=r"^letter_path: position 2 .*'a1' at 1 and 'ab' at 3"):
        letter_path(row)


# ---- refusals ----

PARSED = [
    (parse_number_task, "", "no token came; write tokens with spaces between, such as 'C B A 1 4'"),
    (parse_number_task, " \n ", "no token came"),
    (parse_number_task, "C,B,A,1", "one token only, 'C,B,A,1', came"),
    (parse_number_task, "A 0", "token 2 '0' has the integer 0; write 1 or more"),
    (parse_number_task, "A -1", "token 2 '-1' looks like a number but is no integer >= 1; write its digits only"),
    (parse_number_task, "A \u22121", "token 2 .* looks like a number"),
    (parse_number_task, "A +2", "token 2 '[+]2' looks like a number"),
    (parse_number_task, "A 1.5", "token 2 '1.5' looks like a number"),
    (parse_number_task, "A 1, 2", "token 2 '1,' looks like a number"),
    (parse_number_task, "A " + "9" * 19, "token 2 .* has 19 digits; use an integer of at most 18"),
    (parse_number_task, "A " * 100_001, "100001 tokens came; use at most 100000"),
    (parse_number_task, "A " + "x" * 5000, "token 2 'x+[.]{3}' has 5000 characters; use at most 100"),
    (parse_number_task, ["A", "1"], "a list came; pass one text"),
    (parse_letter_task, "", "no token came; write tokens with spaces between, such as 'C2 B1 FC'"),
    (parse_letter_task, "(a,1)(b,a)", "one token only"),
    (parse_letter_task, "C2 B", "token 2 'B' does not split .* write foo,bar"),
    (parse_letter_task, "C2 foobar", "token 2 'foobar' does not split .* write foo,bar"),
    (parse_letter_task, "a1 aa1 caa", "token 3 'caa' can be c,aa or ca,a; write foo,bar to say which"),
    (parse_letter_task, "a:b,c d1", "token 1 'a:b,c' does not split"),
    (parse_letter_task, "(a, 1)", r"token 1 '\(a,' does not split"),
    (parse_letter_task, "a1 () b1", r"token 2 '\(\)' does not split"),
    (parse_letter_task, "a1 C-1", "token 2 'C-1' does not split"),
    (parse_letter_task, "a1 C.5", "token 2 'C.5' does not split"),
    (parse_letter_task, "a1 C,-1", "token 2 'C,-1' looks like a number"),
    (parse_letter_task, "a1 b0", "token 2 'b0' has the integer 0"),
    (parse_letter_task, "a1 2b", "token 2 '2b' has the integer 2 on the left; put the letter first"),
    (parse_letter_task, "a1 b" + "1" * 19, "token 2 .* has 19 digits"),
]


@pytest.mark.parametrize(("parse", "text", "message"), PARSED)
def test_refused_text(parse: Callable[[Any], Any], text: object, message: str) -> None:
    """One line, that names the call, the position, what came and what to write."""
    with pytest.raises(InvalidInputError, match=f"^{parse.__name__}: {message}") as caught:
        parse(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


B = Bigram
REFUSED = [
    (number_path, [], InvalidInputError, "no tokens came"),
    (number_path, [1], IllDefinedTaskError, "position 1 holds 1, which points before the first token; use a letter"),
    (number_path, ["a", 2, 1], IllDefinedTaskError, "position 2 holds 2, .* use an integer of at most 1 there"),
    (number_path, "a 1", InvalidInputError, "came as the text 'a 1'; parse it first"),
    (index, ["a", 0], InvalidInputError, "token 2 is an integer below 1"),
    (index, ["a", True], InvalidInputError, "token 2 is of type bool"),
    (index, ["a", "1"], InvalidInputError, "token 2 is the text '1'; a letter is not empty and not all digits"),
    (index, ["a", 10**5000], InvalidInputError, "token 2 is an integer below 1 or of more than 18 digits"),
    (index, [B("a", 1)], InvalidInputError, "token 1 is of type Bigram"),
    (retrieval, ["a"], InvalidInputError, "token 1 is of type str; use Bigram"),
    (retrieval, [B("b", "a"), B("a", 1)], IllDefinedTaskError, "position 1 .* left letter 'a', which no token at or"),
    (retrieval, [B("a", 1), B("a", 2), B("b", "a")], IllDefinedTaskError, "position 3 .*'a1' at 1 and 'a2' at 2"),
    (letter_path, [], InvalidInputError, "no tokens came"),
    (letter_path, [B("a", "b"), B("b", "a")], IllDefinedTaskError, "position 1 .* which no token at or before it has"),
    (letter_path, [B("a", "a"), B("b", "a")], IllDefinedTaskError, "position 1 .* finds itself and never ends"),
]


@pytest.mark.parametrize(("call", "tokens", "error", "message"), REFUSED)
def test_refused_values(call: Callable[[Any], Any], tokens: object, error: type[Exception], message: str) -> None:
    """The position where it breaks is in the message."""
    with pytest.raises(error, match=f"^{call.__name__}: {message}") as caught:
        call(tokens)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ("", 1, "left is the text ''"),
        ("12", "a", "left is the text '12'"),
        (1, "a", "left is not a str"),
        ("a", "2", "right is the text '2'"),
        ("a", 0, "right is an integer below 1"),
        ("a", 1.5, "right is of type float"),
    ],
)
def test_refused_bigrams(left: object, right: object, message: str) -> None:
    """A bigram that text could not tell from another one does not come into being."""
    build: Callable[..., Bigram] = Bigram
    with pytest.raises(InvalidInputError, match=f"^Bigram: {message}"):
        build(left, right)


@pytest.mark.parametrize("hops", [-1, True, 1.0])
def test_refused_hops(hops: object) -> None:
    """A number of layers is a count."""
    layers: Callable[..., Any] = iterate
    with pytest.raises(InvalidInputError, match=r"^iterate: hops is .*; use an integer of 0 or more"):
        layers(index, ["a"], hops)


# ---- text ----


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("C2 FC", [B("C", 2), B("F", "C")]),
        ("aa12 baa", [B("aa", 12), B("b", "aa")]),
        ("foo,2 (bar,foo) bar:foo (FA)", [B("foo", 2), B("bar", "foo"), B("bar", "foo"), B("F", "A")]),
        ("foo007 xyxy", [B("foo", 7), B("xy", "xy")]),
        ("b1 a1b", [B("b", 1), B("a1", "b")]),
        ("a1,3 ca1 c,a1", [B("a1", 3), B("ca", 1), B("c", "a1")]),
        ("aa1,5 aa12", [B("aa1", 5), B("aa", 12)]),
        ("a-,1 -2 --", [B("a-", 1), B("-", 2), B("-", "-")]),
        ("\u00e91 \U0001f600\u00e9", [B("\u00e9", 1), B("\U0001f600", "\u00e9")]),
    ],
)
def test_letter_text(text: str, tokens: list[Bigram]) -> None:
    """Each rule of the reader, and digits inside letters."""
    assert parse_letter_task(text) == tokens


def test_number_text() -> None:
    """ASCII digits only are integers; digits of other scripts and mixed tokens are letters."""
    assert parse_number_task("foo " + "0" * 20 + "7") == ["foo", 7]
    assert parse_number_task("foo 007 x2 1e5 \u0663 \u00b2 -- ") == ["foo", 7, "x2", "1e5", "\u0663", "\u00b2", "--"]


def writable(text: str) -> bool:
    """Whether text can hold this letter (the docstrings of the two readers)."""
    return not any(c.isspace() or c in ",:()" for c in text) and not set(text) <= set("0123456789+-\u2212.,;")


alphabets = st.lists(
    st.text("abA01.-+\u2212\u00e9\u0663", min_size=1, max_size=4).filter(writable), min_size=1, max_size=5
)


@given(st.data(), alphabets)
def test_round_trip(data: st.DataObject, alphabet: list[str]) -> None:
    """What `str` prints is read back as the same value, whatever stands before it."""
    letter = st.sampled_from(alphabet)
    right = st.one_of(letter, st.integers(1, 10**18 - 1))
    row = data.draw(st.lists(st.builds(Bigram, letter, right), min_size=2, max_size=6))
    assert parse_letter_task(" ".join(map(str, row))) == row
    numbers = data.draw(st.lists(right, min_size=2, max_size=6))
    assert parse_number_task("\t".join(map(str, numbers))) == numbers


def refusal(parse: Callable[[str], object], text: str) -> str:
    """The message with which `text` is refused, "" if it is read; anything else that is raised goes through."""
    try:
        parse(text)
    except InvalidInputError as error:
        return str(error)
    return ""


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    """No text raises anything else."""
    assert len(refusal(parse_number_task, text).splitlines()) <= 1
    assert len(refusal(parse_letter_task, text).splitlines()) <= 1


# ---- the mathematics; each check takes the function under test, so that broken ones can be fed to it ----


def check_number(row: list[str | int], path: Callable[..., Path], oracle: Callable[..., Any]) -> None:
    """The path is that of pointer doubling, and t layers leave what the proof of `number_path` says."""
    root = roots_by_doubling(row)[-1]
    if root is None:
        with pytest.raises(IllDefinedTaskError):
            path(row)
        return
    walk = path(row)
    assert (walk.positions[-1], walk.hops, walk.answer) == (*root, row[root[0] - 1])
    assert all(row[p - 1] == p - q for p, q in zip(walk.positions, walk.positions[1:], strict=False))
    for t, state in enumerate(iterate(oracle, row, walk.hops + 1)):
        for s, p in enumerate(walk.positions):
            assert state[p - 1] == (walk.answer if t >= walk.hops - s else row[p - 1])


def check_letter(row: list[Bigram], path: Callable[..., Path], oracle: Callable[..., Any]) -> None:
    """The path is that of the closure, and after t layers position p_s holds x_min(s+t, h)."""
    expected = letter_closure(row)
    if expected is None:
        with pytest.raises(IllDefinedTaskError):
            path(row)
        return
    walk = path(row)
    assert (walk.answer, walk.hops) == expected
    for t, state in enumerate(iterate(oracle, row, walk.hops + 1)):
        for s, p in enumerate(walk.positions):
            assert state[p - 1] == row[walk.positions[min(s + t, walk.hops)] - 1]


def check_retrieval(row: list[Bigram], oracle: Callable[..., Any]) -> None:
    """One layer against the definition, refusals included."""
    found = [lookups_by_definition(row, p, p) if isinstance(t.right, str) else {t} for p, t in enumerate(row, 1)]
    assert proper(row) == all(len(some) == 1 for some in found)
    if proper(row):
        assert oracle(row) == [some.pop() for some in found]
    else:
        first = next(p for p, some in enumerate(found, 1) if len(some) != 1)
        with pytest.raises(IllDefinedTaskError, match=f"position {first} "):
            oracle(row)


@given(st.one_of(number_rows, in_range_rows()))
def test_number_paths(row: list[str | int]) -> None:
    """All rows, those whose path breaks included."""
    check_number(row, number_path, index)


@given(st.one_of(letter_rows, globally_proper_rows()))
def test_letter_paths(row: list[Bigram]) -> None:
    """All rows, improper ones included: what the path accepts the tolerant stack computes."""
    check_letter(row, letter_path, retrieval)
    check_retrieval(row, retrieval)


@given(globally_proper_rows())
def test_globally_proper_is_preserved(row: list[Bigram]) -> None:
    """Every position has a path, no layer is improper, and `hops` layers give the answer at the last position."""
    assert globally_proper(row)
    assert all(well_defined(row))
    walk = letter_path(row)
    state = row
    for _ in range(walk.hops):
        state = retrieval(state)
        assert globally_proper(state)
    assert state[-1] == walk.answer


@given(letter_rows)
def test_predicates_nest(row: list[Bigram]) -> None:
    """The global condition by its definition; it implies the prefix condition and survives a layer."""
    looks = [p for p, token in enumerate(row, 1) if isinstance(token.right, str)]
    here = [(lookups_by_definition(row, p, p), lookups_by_definition(row, p, len(row))) for p in looks]
    assert globally_proper(row) == all(before and len(all_of_them) == 1 for before, all_of_them in here)
    if globally_proper(row):
        assert proper(row)
        assert globally_proper(retrieval(row))


@given(st.one_of(number_rows, letter_rows))
def test_well_defined_is_a_path_of_the_prefix(row: list[Any]) -> None:
    """The one-pass mask against walking from each position."""
    path = letter_path if isinstance(row[0], Bigram) else number_path
    for end, good in enumerate(well_defined(row), 1):
        try:
            path(row[:end])
        except IllDefinedTaskError:
            assert not good
        else:
            assert good


@given(letter_rows, st.randoms(use_true_random=False))
def test_off_path_positions_may_do_anything(row: list[Bigram], rng: random.Random) -> None:
    """The assumption of the proof: improper positions output any token that they see, and the answer still arrives."""
    if letter_closure(row) is None:
        return
    walk, state = letter_path(row), row
    for t in range(walk.hops + 1):
        assert state[-1] == row[walk.positions[t] - 1]
        found = [lookups_by_definition(state, p, p) for p in range(1, len(row) + 1)]
        state = [
            token if isinstance(token.right, int) else found[p - 1].pop() if len(found[p - 1]) == 1
            else rng.choice(state[:p])
            for p, token in enumerate(state, 1)
        ]  # fmt: skip


# ---- deliberate faults ----


def index_off_by_one(row: list[Any]) -> list[Any]:
    """Reads one token too far back."""
    return [row[j - t - 1] if isinstance(t, int) and t <= j - 1 else t for j, t in enumerate(row)]


def index_reads_integers(row: list[Any]) -> list[Any]:
    """Outputs the token read even if it is an integer, so offsets are followed from the wrong place."""
    return [row[j - t] if isinstance(t, int) and t <= j else t for j, t in enumerate(row)]


def retrieval_first_wins(row: list[Bigram]) -> list[Bigram]:
    """Settles a tie by the earliest token instead of refusing it."""
    return [next((k for k in row[: j + 1] if k.left == t.right), t) for j, t in enumerate(row)]


def retrieval_matches_right(row: list[Bigram]) -> list[Bigram]:
    """Compares right letters."""
    return [next((k for k in row[:j] if k.right == t.right), t) for j, t in enumerate(row)]


def path_one_short(walk: Callable[..., Path]) -> Callable[..., Path]:
    """Counts one hop too few."""
    return lambda row: Path(positions=walk(row).positions, hops=walk(row).hops - 1, answer=walk(row).answer)


def path_first_wins(row: list[Bigram]) -> Path:
    """Follows the earliest token with the letter, whatever else has it."""
    at = [len(row)]
    while isinstance(right := row[at[-1] - 1].right, str):
        found = [k for k in range(1, at[-1]) if row[k - 1].left == right]
        if not found:
            raise IllDefinedTaskError("none")
        at.append(found[0])
    return Path(positions=tuple(at), hops=len(at) - 1, answer=row[at[-1] - 1])


NUMBER_ROW = parse_number_task(NUMBER)
LETTER_ROW = parse_letter_task(LETTER)
TIE = parse_letter_task("a1 a2 ba")


@pytest.mark.parametrize(
    "check",
    [
        lambda: check_number(NUMBER_ROW, number_path, index_off_by_one),
        lambda: check_number(NUMBER_ROW, number_path, index_reads_integers),
        lambda: check_number(NUMBER_ROW, path_one_short(number_path), index),
        lambda: check_letter(LETTER_ROW, letter_path, retrieval_matches_right),
        lambda: check_letter(LETTER_ROW, path_one_short(letter_path), retrieval),
        lambda: check_letter(TIE, path_first_wins, retrieval),
        lambda: check_letter(PREFIX_ONLY, path_first_wins, retrieval),
        lambda: check_letter(parse_letter_task("ba a1 ba cb"), path_first_wins, retrieval),
        lambda: check_retrieval(TIE, retrieval_first_wins),
        lambda: check_retrieval(LETTER_ROW, retrieval_matches_right),
    ],
)
def test_faults_are_caught(check: Callable[[], None]) -> None:
    """Each broken variant fails the check that the real function passes."""
    with pytest.raises((AssertionError, pytest.fail.Exception, IllDefinedTaskError)):
        check()


def test_the_checks_pass_without_a_fault() -> None:
    """The same rows with the real functions, so that the test above cannot pass for another reason."""
    check_number(NUMBER_ROW, number_path, index)
    for row in (LETTER_ROW, TIE, PREFIX_ONLY, parse_letter_task("ba a1 ba cb")):
        check_letter(row, letter_path, retrieval)
        check_retrieval(row, retrieval)


def test_long_rows_take_one_pass() -> None:
    """The largest input that text may hold, improper everywhere at the end, in linear time."""
    row = [Bigram("a", 1), Bigram("a", 2)] + [Bigram("b", "a")] * 99_998
    assert sum(well_defined(row)) == 2
    assert not proper(row)
    assert number_path(["a"] + [1] * 99_999).hops == 99_999


def test_docstring_examples() -> None:
    """The examples in the docstrings run."""
    assert doctest.testmod(tasks).failed == 0

"""Generated sequences of the two tasks against oracles, brute force and counting."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ropegeo.construct.solve import solve_letter, solve_number
from ropegeo.errors import InvalidInputError
from ropegeo.spectrum import preset
from ropegeo.tasks import (
    Bigram,
    ControlledTask,
    LetterTask,
    NumberTask,
    TaskBatch,
    letter_path,
    number_path,
    read_task,
    task_dataset,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@st.composite
def tasks(draw: st.DrawFn) -> ControlledTask:
    pre_target = draw(st.integers(0, 9))
    most = pre_target + 1
    hops = tuple(draw(st.lists(st.integers(1, most), min_size=1, max_size=4, unique=True)))
    target = draw(st.integers(1, 9))
    if draw(st.booleans()):
        return NumberTask(letters=draw(st.integers(2, 30)), target=target, pre_target=pre_target, hops=hops)
    letters = draw(st.integers(max(hops) + 1, 14))
    integers = draw(st.integers(1, 9))
    return LetterTask(letters=letters, integers=integers, target=target, pre_target=pre_target, hops=hops)


def all_paths(row: list[object]) -> list[list[int]]:
    """Every way to the answer by brute force: each step tries all earlier positions and keeps those that fit."""
    done, todo = [], [[len(row)]]
    while todo:
        path = todo.pop()
        token = row[path[-1] - 1]
        if isinstance(token, str) or (isinstance(token, Bigram) and isinstance(token.right, int)):
            done.append(path)
            continue
        for position in range(1, len(row) + 1):
            other = row[position - 1]
            if isinstance(token, int):
                fits = position == path[-1] - token
            else:
                assert isinstance(token, Bigram)
                assert isinstance(other, Bigram)
                fits = other.left == token.right
            if fits:
                todo.append([*path, position])
    return done


@given(tasks(), st.integers(1, 12), st.integers(0, 20), st.integers(0, 2**32))
def test_the_path_is_the_oracles_and_the_only_one(task: ControlledTask, count: int, extra: int, seed: int) -> None:
    short = task.sample(count, rng(seed))
    for batch in (short, short.extended(task.length + extra, rng(seed + 1))):
        for number, row in enumerate(batch.sequences()):
            oracle = number_path if isinstance(task, NumberTask) else letter_path
            assert oracle(row) == batch.path(number)
            assert all_paths(row) == [list(batch.path(number).positions)]
            assert task.encode(row).tolist() == batch.tokens[number].tolist()


@given(tasks(), st.integers(0, 2**32))
def test_off_path_tokens_never_carry_what_the_path_looks_up(task: ControlledTask, seed: int) -> None:
    batch = task.sample(8, rng(seed), length=task.length + 5)
    for number, row in enumerate(batch.sequences()):
        path = batch.path(number)
        on = set(path.positions)
        off = [token for position, token in enumerate(row, 1) if position not in on]
        if isinstance(task, NumberTask):
            assert path.answer not in off
        else:
            looked_up = {row[position - 1].left for position in path.positions[1:]}
            assert len(looked_up) == path.hops
            assert not any(looked_up & {token.left, token.right} for token in off)


def test_the_same_seed_gives_the_same_sequences_at_every_length() -> None:
    for task in (NumberTask(), LetterTask()):
        one, two = task.sample(50, rng(3)), task.sample(50, rng(3), length=90)
        assert np.array_equal(one.tokens, two.tokens[:, -17:])
        assert not np.array_equal(one.tokens, task.sample(50, rng(4)).tokens)


@pytest.mark.parametrize("task", [NumberTask(), LetterTask(), NumberTask(letters=7, target=3, hops=(2, 5))])
def test_hops_answers_and_positions_are_balanced(task: ControlledTask) -> None:
    batch = task.sample(4003, rng(1))
    assert np.ptp([np.sum(batch.hops == hops) for hops in task.hops]) <= 1
    for hops in task.hops:
        rows = batch.hops == hops
        assert np.ptp(np.bincount(batch.answers[rows], minlength=task.answer_count)) <= 1
        assert np.ptp(np.bincount(batch.positions[rows, hops], minlength=task.target + 1)[1:]) <= 1


def p_of_independence(first: np.ndarray, second: np.ndarray) -> float:
    """The chi-square test of two labels."""
    table = np.zeros((int(first.max()) + 1, int(second.max()) + 1))
    np.add.at(table, (first, second), 1)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    return float(stats.chi2_contingency(table).pvalue)


@pytest.mark.parametrize("name", ["number", "letter"])
def test_positions_that_decide_nothing_do_not_tell_where_the_answer_stands(name: str) -> None:
    """Against the answer's position: what stands off the path, and the distractors of the length test."""
    task: ControlledTask = NumberTask(letters=12) if name == "number" else LetterTask(letters=6)
    batch = task.sample(12_000, rng(11), length=task.length + 2)
    values = []
    for hops in task.hops:
        rows = batch.hops == hops
        at = batch.positions[rows, hops] - 2
        values.append(p_of_independence(at, batch.answers[rows]))
        values += [p_of_independence(at, batch.tokens[rows, column]) for column in range(2)]
        for column in range(task.target + 2, batch.length - 1):  # pre-target tokens off the path
            off = np.all(batch.positions[rows] != column + 1, axis=1)
            values.append(p_of_independence(at[off], batch.tokens[rows, column][off]))
    assert min(values) > 0.01 / len(values), sorted(values)[:3]


def test_a_leak_is_seen_by_that_test() -> None:
    batch = NumberTask(letters=12).sample(3000, rng(5))
    at = batch.positions[np.arange(3000), batch.hops]
    tokens = np.where(rng(6).random(3000) < 0.1, at, batch.tokens[:, 9])
    assert p_of_independence(at, tokens) < 1e-6


@pytest.mark.parametrize("length", [17, 60])
def test_hand_built_stacks_solve_generated_sequences(length: int) -> None:
    number = NumberTask().sample(10, rng(8), length=length)
    for row in number.sequences():
        assert solve_number(row, spectrum=preset("paper")).correct
    for row in LetterTask().sample(10, rng(9), length=length).sequences():
        assert solve_letter(row).correct


def test_the_data_set_has_three_parts_without_a_shared_draw() -> None:
    data = task_dataset(LetterTask(), seed=2, count=8000)
    parts: list[TaskBatch] = [data.train, data.validation, data.test]
    assert [len(part) for part in parts] == [7200, 40, 760]
    for part in parts:
        assert len(set(collections.Counter(part.hops.tolist()).values())) == 1
    rows = [{tuple(row) for row in part.tokens.tolist()} for part in parts]
    assert not rows[0] & rows[2]
    again = task_dataset(LetterTask(), seed=2, count=8000)
    assert np.array_equal(again.test.tokens, data.test.tokens)


REFUSED = [
    (lambda: NumberTask(hops=(10,)), r"10 hops pass 9 tokens .* pre-target window has 8"),
    (lambda: LetterTask(letters=4), r"4 hops look up .* needs 5 letters; 4 came"),
    (lambda: LetterTask(letters=1000), r"are more than 65536 tokens"),
    (lambda: NumberTask(letters=1), r"letters is '1'; use an integer from 2"),
    (lambda: NumberTask(target=0), r"target is '0'"),
    (lambda: NumberTask(hops=()), r"hops is"),
    (lambda: NumberTask(hops=(1, 1)), r"names a count twice"),
    (lambda: NumberTask(hops=(True,)), r"each hop count is 'True'"),
    (lambda: LetterTask(integers=0), r"integers is '0'"),
    (lambda: NumberTask().sample(0, rng()), r"count is '0'"),
    (lambda: NumberTask().sample(10**8, rng()), r"at most 200000000"),
    (lambda: NumberTask().sample(1, rng(), length=16), r"length is '16'; use an integer from 17"),
    (lambda: NumberTask().encode(["a", 17]), r"token 2 '17' is not in the vocabulary \(120 letters and the integers"),
    (lambda: NumberTask().decode([136]), r"id 136 is not one of the 136 tokens"),
    (lambda: NumberTask().decode([0.5]), r"one row of integer ids"),
    (lambda: task_dataset(NumberTask(), seed=-1), r"the seed is '-1'"),
    (lambda: task_dataset(NumberTask(), seed=1, count=3999), r"use at least 4000"),
    (lambda: read_task({"name": "chess"}), r"names no task"),
    (lambda: read_task({"name": "number", "size": 3}), r"'size' are not the sizes of the number task"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_cannot_be_is_refused_by_name(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(InvalidInputError, match=message):
        call()


@pytest.mark.parametrize("task", [NumberTask(letters=9, hops=(3,)), LetterTask(pre_target=5)])
def test_a_task_comes_back_from_its_dictionary(task: ControlledTask) -> None:
    assert read_task(task.to_dict()) == task


def test_numbers_of_the_paper() -> None:
    assert len(NumberTask().vocabulary) == 136
    assert NumberTask().vocabulary[119:121] == ("dp", 1)
    assert len(LetterTask().vocabulary) == 128

"""What the two controlled tasks share: a batch of generated sequences, balanced choices, checks of sizes.

Source: Urrutia et al., arXiv 2605.31558, section 3 and appendix B.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ropegeo._arrays import IntArray, frozen
from ropegeo.errors import InvalidInputError
from ropegeo.tasks.oracles import Bigram, NumberToken, Path, shown
from ropegeo.tasks.vocabulary import MAX_LETTERS

MAX_VOCABULARY = 65_536
MAX_WINDOW = 4_096
MAX_BATCH_TOKENS = 200_000_000
"""Tokens of one batch: 1.6 GB of 64-bit ids."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskBatch:
    """Generated sequences of one task and length, with the path to each answer.

    Attributes:
        task: the task that made them.
        tokens: (count, length) ids into `task.vocabulary`.
        answers: (count,) ids of the answers.
        hops: (count,) steps from the last token to the answer.
        positions: (count, most hops + 1) positions of the path, from the last token down to the answer, counted from 1
            as in `Path`; 0 after its end.
    """

    task: ControlledTask
    tokens: IntArray
    answers: IntArray
    hops: IntArray
    positions: IntArray

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for name in ("tokens", "answers", "hops", "positions"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.int64))

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def length(self) -> int:
        """Tokens of each sequence."""
        return int(self.tokens.shape[1])

    def rows(self, which: npt.ArrayLike) -> TaskBatch:
        """The sequences with these numbers, from 0 and in this order."""
        rows = np.asarray(which)
        return TaskBatch(
            task=self.task,
            tokens=self.tokens[rows],
            answers=self.answers[rows],
            hops=self.hops[rows],
            positions=self.positions[rows],
        )

    def path(self, row: int) -> Path:
        """The path of one sequence, as the oracles give it."""
        hops = int(self.hops[row])
        answer = self.task.vocabulary[self.answers[row]]
        if isinstance(answer, int):
            raise InvalidInputError(f"TaskBatch.path: sequence {row} has the integer {answer} for an answer")
        return Path(positions=tuple(self.positions[row, : hops + 1].tolist()), hops=hops, answer=answer)

    def sequences(self) -> Iterator[list[Any]]:
        """Each sequence as tokens of `ropegeo.tasks`: letters and integers, or bigrams."""
        for row in self.tokens:
            yield self.task.decode(row)

    def extended(self, length: int, rng: np.random.Generator) -> TaskBatch:
        """The same sequences with extra target symbols in front, none of which bears on the answer.

        Args:
            length: tokens of each new sequence, at least as many as now.
            rng: draws the extra symbols.

        Raises:
            InvalidInputError: a shorter length, or more than `MAX_BATCH_TOKENS` in all.

        Source: the length test of arXiv 2605.31558, section 3.6.
        """
        extra = checked_integer("extended", "length", length, self.length, MAX_BATCH_TOKENS) - self.length
        check_size("extended", len(self), length)
        return TaskBatch(
            task=self.task,
            tokens=np.concatenate([self.task.distractors(self, extra, rng), self.tokens], axis=1),
            answers=self.answers,
            hops=self.hops,
            positions=np.where(self.positions > 0, self.positions + extra, 0),
        )


@dataclass(frozen=True, kw_only=True)
class ControlledTask(ABC):
    """Sizes of one of the two tasks, and the generator of its sequences.

    A sequence is `target` target symbols, `pre_target` tokens that can be passed on the way, and the query. Its answer
    is one of the target symbols.

    Attributes:
        letters: letters of the vocabulary.
        target: symbols of the target window.
        pre_target: tokens between it and the query.
        hops: the hop counts that occur, each in (nearly) the same number of sequences.
    """

    letters: int
    target: int = 8
    pre_target: int = 8
    hops: tuple[int, ...] = (1, 2, 3, 4)

    name: ClassVar[str]

    def __post_init__(self) -> None:
        """Check the sizes, each by name."""
        call = type(self).__name__
        checked_integer(call, "target", self.target, 1, MAX_WINDOW)
        checked_integer(call, "pre_target", self.pre_target, 0, MAX_WINDOW)
        checked_integer(call, "letters", self.letters, 2, MAX_LETTERS)
        counts: object = self.hops
        if not isinstance(counts, Sequence) or isinstance(counts, str) or not counts:
            raise InvalidInputError(f"{call}: hops is {shown(counts)}; give hop counts such as (1, 2, 3, 4)")
        for count in counts:
            checked_integer(call, "each hop count", count, 1, MAX_WINDOW)
        object.__setattr__(self, "hops", tuple(counts))
        if len(set(self.hops)) != len(self.hops):
            raise InvalidInputError(f"{call}: hops {self.hops} names a count twice; name each once")
        if max(self.hops) > self.pre_target + 1:
            raise InvalidInputError(
                f"{call}: {max(self.hops)} hops pass {max(self.hops) - 1} tokens between query and target, and the "
                f"pre-target window has {self.pre_target}; make it larger or hop less"
            )
        self._check()

    @abstractmethod
    def _check(self) -> None:
        """What only one of the tasks asks for."""

    @property
    def length(self) -> int:
        """Tokens of a sequence without extra symbols."""
        return self.target + self.pre_target + 1

    @property
    @abstractmethod
    def vocabulary(self) -> tuple[NumberToken, ...] | tuple[Bigram, ...]:
        """The token of each id."""

    @property
    @abstractmethod
    def answer_count(self) -> int:
        """How many answers there are; their ids come first."""

    @abstractmethod
    def _draw(self, answers: IntArray, at: IntArray, stops: IntArray, rng: np.random.Generator) -> IntArray:
        """The tokens of one hop class.

        Args:
            answers: (count,) ids of the answers.
            at: (count,) their positions in the target window, from 1.
            stops: (count, hops - 1) positions passed on the way, falling.
            rng: draws the rest.
        """

    @abstractmethod
    def distractors(self, batch: TaskBatch, extra: int, rng: np.random.Generator) -> IntArray:
        """(count, extra) target symbols that may stand before the sequences of a batch and change nothing."""

    @cached_property
    def _ids(self) -> dict[Any, int]:
        return {token: number for number, token in enumerate(self.vocabulary)}

    def encode(self, tokens: Sequence[Any]) -> IntArray:
        """The ids of a sequence.

        Raises:
            InvalidInputError: At the first token that is not in the vocabulary.
        """
        ids = [self._ids.get(token, -1) for token in tokens]
        if -1 in ids:
            where = ids.index(-1)
            raise InvalidInputError(
                f"{type(self).__name__}.encode: token {where + 1} {shown(tokens[where])} is not in the vocabulary "
                f"({self.summary})"
            )
        return np.array(ids, dtype=np.int64)

    def decode(self, ids: npt.ArrayLike) -> list[Any]:
        """The tokens of a row of ids.

        Raises:
            InvalidInputError: An id outside the vocabulary.
        """
        row = np.asarray(ids)
        if row.ndim != 1 or row.dtype.kind not in "iu":
            raise InvalidInputError(f"{type(self).__name__}.decode: give one row of integer ids")
        if outside := [int(number) for number in row if not 0 <= number < len(self.vocabulary)]:
            raise InvalidInputError(
                f"{type(self).__name__}.decode: id {outside[0]} is not one of the {len(self.vocabulary)} tokens"
            )
        return [self.vocabulary[number] for number in row]

    @property
    @abstractmethod
    def summary(self) -> str:
        """The vocabulary in a few words."""

    def sample(self, count: int, rng: np.random.Generator, *, length: int | None = None) -> TaskBatch:
        """Draw sequences: hop counts equally often, answers and their positions balanced within each hop count.

        Balanced means that within a hop count any two answers occur equally often, or one once more, and so do any two
        positions; the two are shuffled independently. The path is unique, and tokens off the path never carry what it
        looks up: in the number task the answer's letter, in the letter task any letter on the path.

        Args:
            count: how many.
            rng: a seeded generator; the same one gives the same sequences.
            length: tokens of each, with extra target symbols in front. (default: `self.length`)

        Raises:
            InvalidInputError: a count below 1, or more than `MAX_BATCH_TOKENS` in all.
        """
        checked_integer("sample", "count", count, 1, MAX_BATCH_TOKENS)
        check_size("sample", count, self.length)
        hops = balanced(count, self.hops, rng)
        tokens = np.zeros((count, self.length), dtype=np.int64)
        answers = np.zeros(count, dtype=np.int64)
        positions = np.zeros((count, max(self.hops) + 1), dtype=np.int64)
        positions[:, 0] = self.length
        for number in self.hops:
            (rows,) = np.nonzero(hops == number)
            answers[rows] = balanced(len(rows), range(self.answer_count), rng)
            at = balanced(len(rows), range(1, self.target + 1), rng)
            stops = self.target + falling_subsets(len(rows), self.pre_target, number - 1, rng)
            positions[rows, 1:number] = stops
            positions[rows, number] = at
            tokens[rows] = self._draw(answers[rows], at, stops, rng)
        batch = TaskBatch(task=self, tokens=tokens, answers=answers, hops=hops, positions=positions)
        return batch if length is None else batch.extended(length, rng)

    def to_dict(self) -> dict[str, Any]:
        """The task and its sizes, for JSON."""
        sizes = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"name": self.name} | sizes | {"hops": list(self.hops)}


def balanced(count: int, values: Sequence[int], rng: np.random.Generator) -> IntArray:
    """`count` of the values in random order, each equally often, or once more for a random few."""
    whole, rest = divmod(count, len(values))
    every = np.asarray(values, dtype=np.int64)
    drawn = np.concatenate([np.tile(every, whole), rng.permutation(every)[:rest]])
    return rng.permutation(drawn)


def falling_subsets(count: int, size: int, chosen: int, rng: np.random.Generator) -> IntArray:
    """(count, chosen) uniformly random subsets of 1..size, each row falling."""
    if chosen == 0:
        return np.zeros((count, 0), dtype=np.int64)
    order = np.argsort(rng.random((count, size)), axis=1)[:, :chosen] + 1
    return np.asarray(-np.sort(-order, axis=1), dtype=np.int64)


def checked_integer(call: str, what: str, value: object, low: int, high: int) -> int:
    """`value`, if it is an integer in range.

    Raises:
        InvalidInputError: If not.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise InvalidInputError(f"{call}: {what} is {shown(value)}; use an integer from {low} to {high}")
    return int(value)


def check_size(call: str, count: int, length: int) -> None:
    """Refuse a batch that would not fit memory."""
    if count * length > MAX_BATCH_TOKENS:
        raise InvalidInputError(
            f"{call}: {count} sequences of {length} tokens are {count * length} tokens; at most {MAX_BATCH_TOKENS} "
            "at a time"
        )

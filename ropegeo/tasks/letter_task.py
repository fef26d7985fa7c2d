"""The letter task: hop to the token whose left letter is the current right letter, until a letter with an integer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ropegeo._arrays import IntArray
from ropegeo.errors import InvalidInputError
from ropegeo.tasks.controlled import MAX_VOCABULARY, ControlledTask, TaskBatch, checked_integer
from ropegeo.tasks.oracles import Bigram
from ropegeo.tasks.vocabulary import letter_names


@dataclass(frozen=True, kw_only=True)
class LetterTask(ControlledTask):
    """Letter-integer tokens, then letter pairs, then a query pair; the answer is the token at the end of the hops.

    The target window holds letter-integer tokens, the pre-target window letter pairs. The letters looked up on the path
    are all different, and no token off the path carries one of them on either side, so that each lookup finds one
    token. The left letter of the query is never looked up: it is one of the other letters. Off the path both letters
    of a pair are random among those, and may be equal.

    Attributes:
        letters: letters of the vocabulary; one more than the most hops at least.
        integers: integers 1..integers, which end a path.

    The others are those of `ControlledTask`; the defaults are the paper's sizes: 17 tokens, 8 letters with 8 integers.

    Example:
        >>> batch = LetterTask().sample(2, np.random.default_rng(0))
        >>> from ropegeo.tasks import letter_path
        >>> [letter_path(row) == batch.path(k) for k, row in enumerate(batch.sequences())]
        [True, True]

    Source: arXiv 2605.31558, section 3 and appendix B.
    """

    letters: int = 8
    integers: int = 8
    name: ClassVar[str] = "letter"

    def _check(self) -> None:
        checked_integer("LetterTask", "integers", self.integers, 1, MAX_VOCABULARY)
        if self.letters * (self.integers + self.letters) > MAX_VOCABULARY:
            raise InvalidInputError(f"LetterTask: {self.summary} are more than {MAX_VOCABULARY} tokens; use fewer")
        if max(self.hops) >= self.letters:
            raise InvalidInputError(
                f"LetterTask: {max(self.hops)} hops look up as many different letters and leave one for the query, "
                f"which needs {max(self.hops) + 1} letters; {self.letters} came"
            )

    @property
    def answer_count(self) -> int:
        """One for each letter and integer."""
        return self.letters * self.integers

    @cached_property
    def vocabulary(self) -> tuple[Bigram, ...]:
        """Letters with integers, then pairs of letters; the left letter turns slowest."""
        names = letter_names(self.letters)
        ends = [Bigram(left, integer) for left in names for integer in range(1, self.integers + 1)]
        return (*ends, *(Bigram(left, right) for left in names for right in names))

    @property
    def summary(self) -> str:
        """The vocabulary in a few words."""
        return f"{self.letters} letters with {self.integers} integers, and all pairs of letters"

    def left_letters(self, tokens: IntArray) -> IntArray:
        """The number of the left letter of each token id."""
        pairs = (tokens - self.answer_count) // self.letters
        return np.where(tokens < self.answer_count, tokens // self.integers, pairs)

    def _draw(self, answers: IntArray, at: IntArray, stops: IntArray, rng: np.random.Generator) -> IntArray:
        count = len(answers)
        hops = stops.shape[1] + 1
        keys = rng.random((count, self.letters))
        keys[np.arange(count), answers // self.integers] = -1.0
        # The answer's letter first, then those looked up before it, then those off the path; the order is random.
        order = np.argsort(keys, axis=1)
        looked_up, others = order[:, :hops][:, ::-1], order[:, hops:]
        tokens = np.empty((count, self.length), dtype=np.int64)
        tokens[:, : self.target] = self._targets(others, self.target, rng)
        left, right = (_chosen(others, self.pre_target + 1, rng) for _ in range(2))
        tokens[:, self.target :] = self._pair(left, right)
        rows = np.arange(count)
        tokens[rows, at - 1] = answers
        lefts = np.column_stack([left[:, -1:], looked_up[:, :-1]])
        tokens[rows[:, None], np.column_stack([np.full(count, self.length), stops]) - 1] = self._pair(lefts, looked_up)
        return tokens

    def _pair(self, left: IntArray, right: IntArray) -> IntArray:
        return np.asarray(self.answer_count + left * self.letters + right, dtype=np.int64)

    def _targets(self, others: IntArray, width: int, rng: np.random.Generator) -> IntArray:
        """(count, width) letter-integer tokens whose letters are off the path."""
        integers = rng.integers(0, self.integers, size=(len(others), width))
        return np.asarray(_chosen(others, width, rng) * self.integers + integers, dtype=np.int64)

    def distractors(self, batch: TaskBatch, extra: int, rng: np.random.Generator) -> IntArray:
        """Letter-integer tokens with letters that the path does not look up."""
        drawn = np.zeros((len(batch), extra), dtype=np.int64)
        for hops in np.unique(batch.hops):
            (rows,) = np.nonzero(batch.hops == hops)
            found = np.take_along_axis(batch.tokens[rows], batch.positions[rows, 1 : hops + 1] - 1, axis=1)
            free = np.ones((len(rows), self.letters), dtype=bool)
            free[np.arange(len(rows))[:, None], self.left_letters(found)] = False
            others = np.nonzero(free)[1].reshape(len(rows), self.letters - hops)
            drawn[rows] = self._targets(others, extra, rng)
        return drawn


def _chosen(others: IntArray, width: int, rng: np.random.Generator) -> IntArray:
    """(count, width) letters, each one of its row of `others`."""
    return np.take_along_axis(others, rng.integers(0, others.shape[1], size=(len(others), width)), axis=1)

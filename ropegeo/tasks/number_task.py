"""The number task: hop back by the integer that stands there, until a letter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ropegeo._arrays import IntArray
from ropegeo.errors import InvalidInputError
from ropegeo.tasks.controlled import MAX_VOCABULARY, ControlledTask, TaskBatch
from ropegeo.tasks.oracles import NumberToken
from ropegeo.tasks.vocabulary import letter_names


@dataclass(frozen=True, kw_only=True)
class NumberTask(ControlledTask):
    """Letters, then integers, then a query integer; the answer is the letter at the end of the hops.

    The target window holds letters, the pre-target window integers. Integers run from 1 to the first target symbol
    as seen from the query, target + pre_target: with fewer not every answer could be reached in one hop, and a larger
    one would point before the window. An integer off the path points at a random earlier position; a letter that is
    not the answer is a random other letter.

    Attributes: as `ControlledTask`; the defaults are the paper's sizes: 17 tokens of 120 letters and 16 integers.

    Example:
        >>> batch = NumberTask(letters=4).sample(2, np.random.default_rng(0))
        >>> from ropegeo.tasks import number_path
        >>> [number_path(row) == batch.path(k) for k, row in enumerate(batch.sequences())]
        [True, True]

    Source: arXiv 2605.31558, section 3 and appendix B.
    """

    letters: int = 120
    name: ClassVar[str] = "number"

    def _check(self) -> None:
        if self.letters + self.integers > MAX_VOCABULARY:
            raise InvalidInputError(f"NumberTask: {self.summary} are more than {MAX_VOCABULARY} tokens; use fewer")

    @property
    def integers(self) -> int:
        """The largest integer, which is also how many there are."""
        return self.target + self.pre_target

    @property
    def answer_count(self) -> int:
        """As many as letters."""
        return self.letters

    @cached_property
    def vocabulary(self) -> tuple[NumberToken, ...]:
        """Letters, then integers."""
        return (*letter_names(self.letters), *range(1, self.integers + 1))

    @property
    def summary(self) -> str:
        """The vocabulary in a few words."""
        return f"{self.letters} letters and the integers 1 to {self.integers}"

    def _draw(self, answers: IntArray, at: IntArray, stops: IntArray, rng: np.random.Generator) -> IntArray:
        count = len(answers)
        tokens = np.empty((count, self.length), dtype=np.int64)
        tokens[:, : self.target] = _other_letters(answers, self.target, self.letters, rng)
        places = np.arange(self.target + 1, self.length + 1)
        tokens[:, self.target :] = self.letters - 1 + rng.integers(1, places, size=(count, len(places)))
        rows = np.arange(count)
        tokens[rows, at - 1] = answers
        path = np.column_stack([np.full(count, self.length), stops, at])
        tokens[rows[:, None], path[:, :-1] - 1] = self.letters - 1 + path[:, :-1] - path[:, 1:]
        return tokens

    def distractors(self, batch: TaskBatch, extra: int, rng: np.random.Generator) -> IntArray:
        """Letters other than the answer."""
        return _other_letters(batch.answers, extra, self.letters, rng)


def _other_letters(answers: IntArray, width: int, letters: int, rng: np.random.Generator) -> IntArray:
    """(count, width) letters, independent and uniform over all but the answer."""
    steps = rng.integers(1, letters, size=(len(answers), width))
    return np.asarray((answers[:, None] + steps) % letters, dtype=np.int64)

"""The data set of the controlled experiment, and its three parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ropegeo.errors import InvalidInputError
from ropegeo.tasks.controlled import ControlledTask, TaskBatch
from ropegeo.tasks.letter_task import LetterTask
from ropegeo.tasks.number_task import NumberTask
from ropegeo.tasks.oracles import shown

DATASET_SIZE = 480_000
VALIDATION_PER_MILLE, TEST_PER_MILLE = 5, 95
TASKS: dict[str, type[ControlledTask]] = {"number": NumberTask, "letter": LetterTask}


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskDataset:
    """A data set: 90 % for training, 0.5 % to watch it by, 9.5 % to test it on, with all hop counts equally in each.

    Attributes:
        train: what a model learns from.
        validation: what its progress is read from.
        test: what neither has seen.
    """

    train: TaskBatch
    validation: TaskBatch
    test: TaskBatch


def task_dataset(task: ControlledTask, *, seed: int, count: int = DATASET_SIZE) -> TaskDataset:
    """Draw a data set and split it within each hop count.

    The sequences are independent draws. They are not made distinct across the parts: there are so many (more than 10^20
    of either task at the paper's sizes) that a repetition among 480,000 is not expected.

    Args:
        task: the task, with its sizes.
        seed: the same seed gives the same three parts.
        count: sequences in all, at least 1,000 for each hop count.

    Raises:
        InvalidInputError: a smaller count, or a negative seed.

    Source: arXiv 2605.31558, appendix B: 480,000 sequences, split 90 / 0.5 / 9.5 %.
    """
    rng = seeded(seed, "task_dataset")
    if count < 1000 * len(task.hops):
        raise InvalidInputError(f"task_dataset: {count} sequences; use at least {1000 * len(task.hops)}")
    batch = task.sample(count, rng)
    parts: list[list[Any]] = [[], [], []]
    for hops in task.hops:
        (rows,) = np.nonzero(batch.hops == hops)
        held = [len(rows) * share // 1000 for share in (VALIDATION_PER_MILLE, TEST_PER_MILLE)]
        pieces = np.split(rng.permutation(rows), np.cumsum(held))
        for part, piece in zip(parts, (pieces[2], pieces[0], pieces[1]), strict=True):
            part.append(piece)
    train, validation, test = (batch.rows(rng.permutation(np.concatenate(part))) for part in parts)
    return TaskDataset(train=train, validation=validation, test=test)


def seeded(seed: int, call: str) -> np.random.Generator:
    """A generator from a seed.

    Raises:
        InvalidInputError: not an integer from 0 to 2^63 - 1.
    """
    came: object = seed
    if isinstance(came, bool) or not isinstance(came, int) or not 0 <= came < 2**63:
        raise InvalidInputError(f"{call}: the seed is {shown(came)}; use an integer of 0 or more")
    return np.random.default_rng(came)


def read_task(data: Any) -> ControlledTask:
    """The task that `ControlledTask.to_dict` wrote.

    Raises:
        InvalidInputError: not such a dictionary, or sizes that are refused.
    """
    if not isinstance(data, dict) or data.get("name") not in TASKS:
        raise InvalidInputError(f"read_task: {shown(data)} names no task; use one of {', '.join(TASKS)}")
    kind = TASKS[data["name"]]
    sizes = {name: value for name, value in data.items() if name != "name"}
    if isinstance(sizes.get("hops"), list):
        sizes["hops"] = tuple(sizes["hops"])
    try:
        return kind(**sizes)
    except TypeError:
        came = ", ".join(map(shown, sizes))
        raise InvalidInputError(f"read_task: {came} are not the sizes of the {kind.name} task") from None

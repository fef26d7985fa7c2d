"""The number task and the letter task: oracles, paths, generated sequences, and the text they are written in."""

from ropegeo.tasks.controlled import ControlledTask, TaskBatch
from ropegeo.tasks.dataset import DATASET_SIZE, TASKS, TaskDataset, read_task, task_dataset
from ropegeo.tasks.letter_task import LetterTask
from ropegeo.tasks.number_task import NumberTask
from ropegeo.tasks.oracles import (
    MAX_INTEGER_DIGITS,
    Bigram,
    NumberToken,
    Path,
    globally_proper,
    in_range,
    index,
    iterate,
    letter_path,
    number_path,
    proper,
    reflexive,
    retrieval,
    well_defined,
)
from ropegeo.tasks.text import MAX_TOKEN_CHARACTERS, MAX_TOKENS, parse_letter_task, parse_number_task
from ropegeo.tasks.vocabulary import letter_names

__all__ = [
    "DATASET_SIZE",
    "MAX_INTEGER_DIGITS",
    "MAX_TOKENS",
    "MAX_TOKEN_CHARACTERS",
    "TASKS",
    "Bigram",
    "ControlledTask",
    "LetterTask",
    "NumberTask",
    "NumberToken",
    "Path",
    "TaskBatch",
    "TaskDataset",
    "globally_proper",
    "in_range",
    "index",
    "iterate",
    "letter_names",
    "letter_path",
    "number_path",
    "parse_letter_task",
    "parse_number_task",
    "proper",
    "read_task",
    "reflexive",
    "retrieval",
    "task_dataset",
    "well_defined",
]

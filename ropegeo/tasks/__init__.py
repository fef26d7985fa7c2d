"""The number task and the letter task: oracles, paths, and the text they are written in."""

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

__all__ = [
    "MAX_INTEGER_DIGITS",
    "MAX_TOKENS",
    "MAX_TOKEN_CHARACTERS",
    "Bigram",
    "NumberToken",
    "Path",
    "globally_proper",
    "in_range",
    "index",
    "iterate",
    "letter_path",
    "number_path",
    "parse_letter_task",
    "parse_number_task",
    "proper",
    "reflexive",
    "retrieval",
    "well_defined",
]

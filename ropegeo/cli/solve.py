"""`ropegeo solve`: run a stack of built heads on a task, and show every layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from ropegeo._version import __version__
from ropegeo.cli.output import WIDTH, Destinations, busy, console, json_text, print_json, printable, suffix_of, table
from ropegeo.construct.solve import Solution, solve_letter, solve_number
from ropegeo.construct.transformer import ATTENTIONS, Attention
from ropegeo.errors import InvalidInputError
from ropegeo.spectrum import preset
from ropegeo.tasks import parse_letter_task, parse_number_task

if TYPE_CHECKING:
    from ropegeo.cli.options import OutputOptions

SCHEMA = "ropegeo.solution/1"
TASKS = ("number", "letter")


def run(text: str, *, task: str, attention: str, beta: float, depth: int | None, output: OutputOptions) -> None:
    """Solve, show, and write what was asked for; status 1 if the stack's answer is not the oracle's."""
    suffix_of(output.output, (".json",), "--output")
    destinations = Destinations(output.output, force=output.force)
    rule = _attention(attention)
    if task not in TASKS:
        raise InvalidInputError(f"task {task!r} is unknown; use one of {', '.join(TASKS)}")
    with busy("running the stack"):
        if task == "number":
            solution = solve_number(
                parse_number_task(text), spectrum=preset("paper"), depth=depth, attention=rule, beta=beta
            )
        else:
            solution = solve_letter(parse_letter_task(text), depth=depth, attention=rule, beta=beta)
    data = _json(solution, task, attention, beta)
    written = destinations.write((output.output, json_text(data).encode()))
    if output.as_json:
        print_json(data)
    else:
        _show(solution, written)
    if not solution.correct:
        raise typer.Exit(1)


def _attention(text: str) -> Attention:
    for known in ATTENTIONS:
        if text == known:
            return known
    raise InvalidInputError(f"attention {text!r} is unknown; use one of {', '.join(ATTENTIONS)}")


def _json(solution: Solution, task: str, attention: str, beta: float) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "package_version": __version__,
        "task": task,
        "attention": attention,
        "beta": beta,
        "answer": str(solution.answer),
        "hops": solution.path.hops,
        "expected": str(solution.path.answer),
        "correct": solution.correct,
        "path": list(solution.path.positions),
        "table": [
            {"depth": depth, "tokens": [str(token) for token in state]} for depth, state in enumerate(solution.states)
        ],
        "readable": list(solution.readable),
    }


def _show(solution: Solution, written: list[str]) -> None:
    out = console()
    states = [[printable(str(token)) for token in state] for state in solution.states]
    flagged = not all(solution.readable)
    for start, stop in _chunks(states):
        marks = ["" if solution.readable[k] else "*" for k in range(start, stop)]
        out.print(
            table(
                "",
                [("depth", "right"), *((f"{k + 1}{marks[k - start]}", "left") for k in range(start, stop))],
                [[str(depth), *state[start:stop]] for depth, state in enumerate(states)],
            )
        )
        out.print()
    if flagged:
        out.print("* no well-defined path of its own: what stands there means nothing, and the answer does not use it")
    path = " -> ".join(str(position) for position in solution.path.positions)
    out.print(f"path {path} ({solution.path.hops} hops)")
    out.print(f"answer {printable(str(solution.answer))}", style="bold")
    if not solution.correct:
        out.print(f"wrong: the oracle answers {solution.path.answer}; softmax needs a larger --beta at this length")
    for name in written:
        out.print(f"wrote {name}")


def _chunks(states: list[list[str]]) -> list[tuple[int, int]]:
    """Ranges of positions whose columns fit one table of `WIDTH` columns."""
    count = len(states[0])
    widths = [max(len(f"{k + 1}*"), *(len(state[k]) for state in states)) + 2 for k in range(count)]
    chunks, start, used = [], 0, 8
    for k, width in enumerate(widths):
        if used + width > WIDTH and k > start:
            chunks.append((start, k))
            start, used = k, 8
        used += width
    return [*chunks, (start, count)]

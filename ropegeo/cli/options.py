"""The options of every command, declared once. Only typer is imported here, so that `--help` stays fast."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer

from ropegeo.engine.route_names import ROUTES

HEAD = "Head"
BEST = "With --planes optimal"
ROPE = "Rotation"
FIT = "Fit"
LIMIT = "Limit"
OUTPUT = "Output"


@dataclass(frozen=True, kw_only=True)
class RopeOptions:
    """Which spectrum: a preset or config, a base with widths, or one free angle."""

    rope: Annotated[
        str | None,
        typer.Option(help="Preset name or path to a Hugging Face config.json. (default: paper)", rich_help_panel=ROPE),
    ] = None
    base: Annotated[str | None, typer.Option(help="RoPE base (rope_theta); with --head-dim.", rich_help_panel=ROPE)] = (
        None
    )
    head_dim: Annotated[int | None, typer.Option(help="Width of the head; with --base.", rich_help_panel=ROPE)] = None
    rotary_dim: Annotated[
        int | None, typer.Option(help="Rotated width, even. (default: head_dim)", rich_help_panel=ROPE)
    ] = None
    angle: Annotated[
        str | None,
        typer.Option(
            help="One plane with this angle in radians: a decimal, 'p/q turn', or a closed form such as "
            "'10000^(-2/128)' or 'pi*(sqrt(5)-1)'.",
            rich_help_panel=ROPE,
        ),
    ] = None
    layout: Annotated[
        str | None,
        typer.Option(help="Pairing of coordinates: interleaved or half. (default: the model's)", rich_help_panel=ROPE),
    ] = None
    layer_type: Annotated[
        str | None, typer.Option(help="Layer type, where a config has one rotation per type.", rich_help_panel=ROPE)
    ] = None


@dataclass(frozen=True, kw_only=True)
class HeadOptions:
    """Which head, on which planes."""

    mode: Annotated[str, typer.Option(help="index, retrieval or reflexive.", rich_help_panel=HEAD)] = "index"
    offset: Annotated[
        str | None,
        typer.Option(
            help="Index: the distance aimed at (with --integers: of the query shown). Retrieval: distance of the "
            "answer whose margin is shown. (default: 0; retrieval: the worst)",
            rich_help_panel=HEAD,
        ),
    ] = None
    plane: Annotated[
        str | None,
        typer.Option(
            help="Plane, counted from 0, or 'best' for the largest length. (default: 0)", rich_help_panel=HEAD
        ),
    ] = None
    planes: Annotated[
        str | None,
        typer.Option(
            help="Several planes: '0-20', '0,3,7', 'all', or 'optimal' for the largest margin at the largest length.",
            rich_help_panel=HEAD,
        ),
    ] = None
    weights: Annotated[
        str | None,
        typer.Option(help="Weight of each of the --planes, comma-separated. (default: equal)", rich_help_panel=HEAD),
    ] = None
    integers: Annotated[
        int | None,
        typer.Option(
            help="Integers 1..m in the vocabulary; with --mode index the query token then says the offset.",
            rich_help_panel=HEAD,
        ),
    ] = None
    letters: Annotated[
        int | None,
        typer.Option(help="Letters in the vocabulary. (default: 4; retrieval: 8)", rich_help_panel=HEAD),
    ] = None
    centred: Annotated[
        bool,
        typer.Option("--centred", help="Retrieval: centre the head on the (largest) length.", rich_help_panel=HEAD),
    ] = False
    symbolic: Annotated[
        bool, typer.Option("--symbolic", help="Reflexive: match the own token, not distance 0.", rich_help_panel=HEAD)
    ] = False
    beta: Annotated[float, typer.Option(help="Logit scale: the logit of a perfect match.", rich_help_panel=HEAD)] = 1.0
    seed: Annotated[
        int | None,
        typer.Option(
            help="Draw the direction of v in each plane at random. (default: first axis)", rich_help_panel=HEAD
        ),
    ] = None
    phases: Annotated[
        str | None,
        typer.Option(
            help="free, or zero for coefficients that are not negative. (default: free)", rich_help_panel=BEST
        ),
    ] = None
    max_planes: Annotated[
        int | None, typer.Option(help="Use at most so many planes, the best found.", rich_help_panel=BEST)
    ] = None
    max_offset: Annotated[
        int | None,
        typer.Option(
            help="Serve all offsets 0..m with one key; the query token says which, as with --integers m.",
            rich_help_panel=BEST,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class LengthOptions:
    """Which lengths, and how many digits."""

    length: Annotated[str | None, typer.Option(help="One length n; 1e30 means exactly 10^30.")] = None
    lengths: Annotated[str | None, typer.Option(help="Several lengths, comma-separated.")] = None
    digits: Annotated[int, typer.Option(min=1, max=1000, help="Digits to certify where an exact route exists.")] = 17


@dataclass(frozen=True, kw_only=True)
class CurveOptions:
    """Which lengths of a whole curve, and how they are computed."""

    every: Annotated[
        str | None, typer.Option(help="Every so many lengths up to --length, and --length itself; 1 for all.")
    ] = None
    records: Annotated[
        bool,
        typer.Option("--records", help="Only the lengths up to --length at which the margin falls (index heads)."),
    ] = False
    route: Annotated[
        str,
        typer.Option(
            help=f"How margins are found: auto, {', '.join(ROUTES)}; the table's last column says which was taken."
        ),
    ] = "auto"


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Which margins are fitted, and by which laws."""

    column: Annotated[str, typer.Option(help="Which of the file: margin, best or worst.", rich_help_panel=FIT)] = (
        "margin"
    )
    laws: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated: constant, power, planes, exponential, power_floor, retrieval, staircase. "
            "(default: all)",
            rich_help_panel=FIT,
        ),
    ] = None
    min_length: Annotated[
        str | None, typer.Option(help="Smallest length to fit; 1e6 means exactly 10^6.", rich_help_panel=FIT)
    ] = None
    max_length: Annotated[str | None, typer.Option(help="Largest length to fit.", rich_help_panel=FIT)] = None
    planes_used: Annotated[
        int | None,
        typer.Option(min=1, max=10**6, help="F of the law n^(-2/F). (default: fitted)", rich_help_panel=FIT),
    ] = None
    weight: Annotated[
        str | None,
        typer.Option(
            help="Height of the staircase and the Retrieval law: 1 for margins in units of beta, or free. "
            "(default: 1 for files of 'ropegeo curve', else free)",
            rich_help_panel=FIT,
        ),
    ] = None
    compare: Annotated[
        str | None,
        typer.Option(
            help="theory: test the exact margins of the head that the options below describe against the data; the "
            "exit status is 1 where they differ.",
            rich_help_panel=FIT,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class LimitOptions:
    """Which limits of a head, and how they are decided."""

    length: Annotated[
        str | None,
        typer.Option(
            help="Judge this length: the exit status is 1 if something fails up to it or was not searched that far. "
            "Also shows its least beta.",
            rich_help_panel=LIMIT,
        ),
    ] = None
    rule: Annotated[
        str,
        typer.Option(
            help="What the softmax weight must do: majority (the built head reads out the right token), or "
            "'weight>=0.9'. It is judged at the --beta that is given (the default shown for --beta is not judged; six "
            "scales are shown instead), or at a head file's own.",
            rich_help_panel=LIMIT,
        ),
    ] = "majority"
    formats: Annotated[
        str,
        typer.Option(
            help="Number formats to emulate: float32, float16, bfloat16, tf32, comma-separated; all or none.",
            rich_help_panel=LIMIT,
        ),
    ] = "all"
    logits: Annotated[
        str,
        typer.Option(
            help="fused: logits stay in float32; eager: they are rounded to the format too; or both.",
            rich_help_panel=LIMIT,
        ),
    ] = "fused"
    positions: Annotated[
        str,
        typer.Option(
            help="exact, or format: positions are rounded to the format before they turn anything.",
            rich_help_panel=LIMIT,
        ),
    ] = "exact"
    vectors: Annotated[
        str,
        typer.Option(
            help="What is rounded: unit (query and key of length 1, beta on the logits) or head (the head's own "
            "vectors and scale).",
            rich_help_panel=LIMIT,
        ),
    ] = "unit"
    max_length: Annotated[
        str | None,
        typer.Option(
            help="How far formats are emulated, every query position, within a --window or not, and how far exact sums "
            "are searched. (default: 4096, or --length if it is larger; exact sums farther)",
            rich_help_panel=LIMIT,
        ),
    ] = None
    window: Annotated[
        str | None,
        typer.Option(
            help="Sliding window W: a query sees itself and the W - 1 keys before. A config's own window is not read.",
            rich_help_panel=LIMIT,
        ),
    ] = None
    find_beta: Annotated[
        str | None,
        typer.Option(
            help="Look for a beta at which the head is right in this one format at every query position up to "
            "--length; --logits fused or eager.",
            metavar="FORMAT",
            rich_help_panel=LIMIT,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Where results go."""

    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=OUTPUT)] = False
    output: Annotated[
        str | None,
        typer.Option(
            help="Write to this file; the suffix says what: construct .safetensors, curve .csv, .json or .npz, "
            "spectrum .csv or .json, solve, fit and limit .json.",
            rich_help_panel=OUTPUT,
        ),
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.", rich_help_panel=OUTPUT)] = False
    threads: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="Threads for numerical libraries.", rich_help_panel=OUTPUT),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What is said of derivations, and where."""

    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=OUTPUT)] = False
    report: Annotated[
        str | None,
        typer.Option(help="Write a document to this .md or .html file, formulas typeset.", rich_help_panel=OUTPUT),
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.", rich_help_panel=OUTPUT)] = False


@dataclass(frozen=True, kw_only=True)
class PlotOptions:
    """Whether to draw."""

    plot: Annotated[str | None, typer.Option(help="Draw to this .svg or .png file.", rich_help_panel=OUTPUT)] = None


def apply_threads(output: OutputOptions) -> None:
    """Limit the pools of numerical libraries. They read this when they are loaded, so it comes before any import."""
    if output.threads is not None:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
            os.environ[name] = str(output.threads)


def with_option_groups(function: Callable[..., None]) -> Callable[..., None]:
    """Let a command take whole option groups: each dataclass parameter becomes its fields on the command line.

    typer reads options off a function's signature, so the wrapper is given one with the groups written out.
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        field_hints = get_type_hints(groups[name], include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field_hints[field.name]
            )
            for field in fields(groups[name])
        ]

    def run(**values: Any) -> None:
        grouped = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        function(**values, **grouped)

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run

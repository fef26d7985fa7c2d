"""The commands and their options. Bodies are imported when they run."""

from __future__ import annotations

from typing import Annotated

import typer

from ropegeo._version import __version__
from ropegeo.cli.options import (
    OUTPUT,
    CurveOptions,
    FitOptions,
    HeadOptions,
    LengthOptions,
    LimitOptions,
    OutputOptions,
    PlotOptions,
    ReportOptions,
    RopeOptions,
    apply_threads,
    with_option_groups,
)

app = typer.Typer(
    name="ropegeo",
    help="Geometry of rotary position embedding: hand-built attention heads and their exact margins.",
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"ropegeo {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Geometry of rotary position embedding: hand-built attention heads and their exact margins."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
@with_option_groups
def construct(
    head: HeadOptions,
    rope: RopeOptions,
    lengths: LengthOptions,
    output: OutputOptions,
    plot: PlotOptions,
    certificate: Annotated[
        str | None,
        typer.Option(
            help="--planes optimal: write the proof that no head is better to this .json file.", rich_help_panel=OUTPUT
        ),
    ] = None,
) -> None:
    """Build a head by hand: its matrices, where it looks, and by how much it wins.

    Example: ropegeo construct --mode index --offset 3

    Example: ropegeo construct --offset 3 --planes optimal --length 1024 --certificate best.json
    """
    apply_threads(output)
    from ropegeo.cli.construct import run

    run(head, rope, lengths, output, plot, certificate)


@app.command()
@with_option_groups
def certify(
    certificate: Annotated[str, typer.Argument(help="A file of 'ropegeo construct --certificate'.", metavar="FILE")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Check the proof of a best head: both bounds again in ball arithmetic, without the solver that found them.

    The exit status is 1 if the hash differs or anything stated is not proved.

    Example: ropegeo certify best.json
    """
    from ropegeo.cli.certify import run

    run(certificate, as_json=as_json)


@app.command()
@with_option_groups
def curve(
    head: HeadOptions,
    rope: RopeOptions,
    lengths: LengthOptions,
    which: CurveOptions,
    output: OutputOptions,
    plot: PlotOptions,
    head_file: Annotated[str | None, typer.Option("--head", help="Head file written by 'ropegeo construct'.")] = None,
) -> None:
    """Margin, best and worst of a head at given lengths.

    Example: ropegeo curve --mode index --angle 1 --offset 0 --lengths 1001,1e30

    Example: ropegeo curve --rope llama-3.1-8b --planes 0-7 --length 1e9 --records
    """
    apply_threads(output)
    from ropegeo.cli.curve import run

    run(head, rope, lengths, which, output, plot, head_file)


@app.command()
@with_option_groups
def limit(
    context: typer.Context,
    head: HeadOptions,
    rope: RopeOptions,
    which: LimitOptions,
    output: OutputOptions,
    plot: PlotOptions,
    head_file: Annotated[str | None, typer.Option("--head", help="Head file written by 'ropegeo construct'.")] = None,
) -> None:
    """How far a head works, with a logit scale and a number format, and what stops it.

    Without --beta n_max is shown for beta = 10, 1e2, .. 1e6, and no scale is judged.

    Example: ropegeo limit --base 10000 --head-dim 128 --offset 3

    Example: ropegeo limit --rope llama-3.1-8b --planes optimal --length 8192 --beta 60 --formats bfloat16
    """
    apply_threads(output)
    from ropegeo.cli.limit import run

    source = context.get_parameter_source("beta")
    given = source is not None and source.name == "COMMANDLINE"
    run(head, rope, which, output, plot, head_file, head.beta if given else None)


@app.command()
@with_option_groups
def fit(
    curve_file: Annotated[str, typer.Argument(help="JSON, CSV or npz with lengths and margins.", metavar="CURVE")],
    which: FitOptions,
    head: HeadOptions,
    rope: RopeOptions,
    output: OutputOptions,
    plot: PlotOptions,
    head_file: Annotated[str | None, typer.Option("--head", help="Head file written by 'ropegeo construct'.")] = None,
) -> None:
    """By which law a margin falls with the length, with intervals; or whether it is a head's exact curve.

    CURVE is a file of 'ropegeo curve', or one with the columns length, margin and perhaps sd (standard deviation).
    --angle is the angle of the staircase law, where it is known; the other options of a head go with --compare theory.

    Example: ropegeo fit c.csv --min-length 10

    Example: ropegeo fit seen.csv --angle '10000^(-2/128)' --compare theory --plot seen.png
    """
    apply_threads(output)
    from ropegeo.cli.fit import run

    run(curve_file, which, head, rope, output, plot, head_file)


@app.command()
@with_option_groups
def solve(
    text: Annotated[str, typer.Argument(help="The input, tokens separated by spaces.")],
    output: OutputOptions,
    task: Annotated[str, typer.Option(help="number or letter.")] = "number",
    attention: Annotated[str, typer.Option(help="hard or softmax (with --beta).")] = "hard",
    beta: Annotated[float, typer.Option(help="Logit scale of the heads.")] = 1.0,
    depth: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Layers. (default: as many as the input has hops)")
    ] = None,
) -> None:
    """Solve a number or letter task with a stack of hand-built heads, and show every layer.

    Number: letters, and integers that point that many tokens back. Letter: pairs such as FA, which look for a token
    that starts with A; a pair that ends in an integer, such as C2, is an answer.

    Example: ropegeo solve --task number "C B A 1 4 1 3 2 1"

    Example: ropegeo solve --task letter "C2 B1 A3 FA EC DE HF GD IG"
    """
    apply_threads(output)
    from ropegeo.cli.solve import run

    run(text, task=task, attention=attention, beta=beta, depth=depth, output=output)


@app.command()
@with_option_groups
def spectrum(
    rope: RopeOptions,
    output: OutputOptions,
    plot: PlotOptions,
    length: Annotated[
        str | None, typer.Option(help="Also show turns, exact margins, the critical plane and B_m at this length.")
    ] = None,
    bases: Annotated[
        bool, typer.Option("--bases", help="Also find all bases with B_m >= 0 for every m below --length.")
    ] = False,
    compare_scalings: Annotated[
        str | None,
        typer.Option(help="Also compare no, linear, llama3 and ntk scaling by this factor.", metavar="FACTOR"),
    ] = None,
    original_length: Annotated[
        str | None,
        typer.Option(help="original_max_position_embeddings of llama3 scaling. (default: the config's, or 8192)"),
    ] = None,
) -> None:
    """The planes of a rotation: angle, wavelength, and what each is worth at a length.

    B_m is the sum over planes of cos(m angle): by how much likeness counts at distance m (arXiv 2405.14591).

    Example: ropegeo spectrum --rope llama-3.1-8b --length 8192

    Example: ropegeo spectrum --base 10000 --head-dim 128 --length 4096 --bases --compare-scalings 4
    """
    apply_threads(output)
    from ropegeo.cli.spectrum import run

    run(
        rope,
        output,
        plot,
        length_text=length,
        with_bases=bases,
        factor_text=compare_scalings,
        original_text=original_length,
    )


@app.command()
@with_option_groups
def derive(
    output: ReportOptions,
    names: Annotated[
        list[str] | None, typer.Argument(help="Claims by name or number. (default: all, in one table)")
    ] = None,
    names_only: Annotated[bool, typer.Option("--list", help="Name the claims; run nothing.")] = False,
) -> None:
    """Run the derivations: what is proved, step by step, and what of the paper holds in scope or is repaired.

    With names, the steps are shown. The exit status is 1 if a step or a check does not hold.

    Example: ropegeo derive dirichlet_bound

    Example: ropegeo derive --report derivations.html
    """
    from ropegeo.cli.derive import run

    run(names or (), output, names_only=names_only)

"""`ropegeo limit`: how far a head works, with this logit scale and this number format, and what stops it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from ropegeo._version import __version__
from ropegeo.cli.curve import head_title
from ropegeo.cli.limit_text import show
from ropegeo.cli.optimal import OPTIMAL
from ropegeo.cli.output import Destinations, json_text, print_json, suffix_of, working
from ropegeo.cli.request import read_head, read_head_file, read_integer, read_length
from ropegeo.construct.files import build
from ropegeo.construct.recipe import LETTER_MODES
from ropegeo.errors import InvalidInputError, UnsupportedError
from ropegeo.exact import short
from ropegeo.heads import LogitProfile
from ropegeo.limits.emulated_head import EmulatedHead
from ropegeo.limits.emulation import DEFAULT_SEARCHED as DEFAULT_EMULATED
from ropegeo.limits.formats import FormatLimit, format_limit, read_formats
from ropegeo.limits.head_limit import head_limit, searched_to, unseen, windowed
from ropegeo.limits.letters import letter_softmax_length
from ropegeo.limits.limit import Limit
from ropegeo.limits.rules import Rule
from ropegeo.limits.scale_search import ScaleSearch, find_scale
from ropegeo.limits.softmax import LARGEST_BETA, Demand, check_betas, softmax_lengths
from ropegeo.limits.sums import MAX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropegeo.cli.options import HeadOptions, LimitOptions, OutputOptions, PlotOptions, RopeOptions
    from ropegeo.construct.built import BuiltHead
    from ropegeo.limits.arithmetic import Arithmetic
    from ropegeo.limits.softmax import SoftmaxLimit

DRAWN_BETAS = 49
STEP = 1.005
"""Steps of the drawn n_max are found to this factor in beta."""
STEP_ROUNDS = 8
SEEN = 1.02
"""Steps smaller than this in n_max are too small to be seen."""
DRAWN_SEARCHED = 10**6


def run(
    head: HeadOptions,
    rope: RopeOptions,
    which: LimitOptions,
    output: OutputOptions,
    plot: PlotOptions,
    head_file: str | None,
    beta: float | None,
) -> None:
    """Compute, show, write, and judge a length if one is asked for.

    Args:
        head: the head's options.
        rope: the rotation's.
        which: what is looked at.
        output: where it goes.
        plot: a picture.
        head_file: a head file instead of the head's options.
        beta: the logit scale if it was given; a head file's own is judged if it was not.
    """
    suffix_of(output.output, (".json",), "--output")
    drawing = suffix_of(plot.plot, (".svg", ".png"), "--plot")
    destinations = Destinations(output.output, plot.plot, force=output.force)
    asked = _read(head, rope, which, head_file, beta)
    found = _limit(asked, None if asked.search is None else _search(asked, asked.search))
    data = {**found.to_dict(), "package_version": __version__}
    contents: list[tuple[str | None, bytes]] = [(output.output, json_text(data).encode())]
    if drawing is not None:
        contents.append((plot.plot, _picture(found, drawing)))
    written = destinations.write(*contents)
    if output.as_json:
        print_json(data)
    else:
        show(head_title(asked.built), found, written)
    if found.length is not None and found.holds is not True:  # wrong there, or not decided
        raise typer.Exit(1)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Asked:
    """What is asked for, read."""

    built: BuiltHead
    offset: int | None
    beta: float | None
    rule: Rule
    length: int | None
    window: int | None
    arithmetics: tuple[Arithmetic, ...]
    max_length: int
    search: Arithmetic | None
    vectors: str
    exact_to: int | None

    @property
    def head(self) -> EmulatedHead:
        return EmulatedHead.of(
            self.built, rule=self.rule, offset=self.offset, beta=self.beta, window=self.window, vectors=self.vectors
        )


def _read(
    head: HeadOptions, rope: RopeOptions, which: LimitOptions, head_file: str | None, beta: float | None
) -> _Asked:
    rule = Rule.read(which.rule)
    length = None if which.length is None else read_length(which.length)
    window = None if which.window is None else _positive(which.window, "--window")
    arithmetics = read_formats(which.formats, logits=which.logits, positions=which.positions)
    search = None
    if which.find_beta is not None:
        searches = read_formats(which.find_beta, logits=which.logits, positions=which.positions)
        if len(searches) != 1:
            raise InvalidInputError(
                f"--find-beta {which.find_beta.strip()[:40]!r} with --logits {which.logits}: give one format, and "
                "--logits fused or eager"
            )
        (search,) = searches
        if length is None or beta is not None:
            raise InvalidInputError("--find-beta needs --length n, and looks for the --beta: leave that out")
    if beta is not None:
        check_betas("limit", [beta])
    made_for = head.planes == OPTIMAL or head.plane == "best" or head.centred
    if length is None and made_for and head_file is None:
        raise InvalidInputError(
            "limit: --planes optimal, --plane best and --centred are made for a length: add --length n"
        )
    if head_file is None:
        request = read_head(head, rope, [2 if length is None else length], ladder=False)
        built, scale = request.built, beta
    else:
        request = read_head_file(head_file, replace(head, beta=type(head)().beta), rope, [2])
        built = request.built
        scale = beta if beta is not None else built.recipe.beta if search is None else None
        check_betas("limit", [] if scale is None else [scale])
    recipe = built.recipe
    if which.max_length is not None:
        max_length = _positive(which.max_length, "--max-length")
    else:  # an offset beyond the default is looked at up to twice that far
        aim = recipe.offset if recipe.mode == "index" else request.offset or 0
        twice = min(2 * aim, max(MAX_LENGTH, aim + 1)) if aim >= DEFAULT_EMULATED else 0
        max_length = max(DEFAULT_EMULATED, length or 0, twice)
    if (arithmetics or search is not None) and max_length > MAX_LENGTH:
        raise UnsupportedError(
            f"limit: number formats are emulated up to length {MAX_LENGTH}, every pair of positions; "
            f"{short(max_length)} is more: give a smaller --max-length, or --formats none"
        )
    if scale is not None and scale != recipe.beta:
        built = build(replace(recipe, beta=scale))
    if recipe.mode in LETTER_MODES and head.offset is not None:
        raise InvalidInputError(
            "limit: a head that matches letters is judged at its worst distance; leave --offset out"
        )
    asked = _Asked(
        built=built,
        offset=request.offset if recipe.mode == "token_index" else None,
        beta=scale,
        rule=rule,
        length=length,
        window=window,
        arithmetics=arithmetics,
        max_length=max_length,
        search=search,
        vectors=which.vectors,
        exact_to=None if which.max_length is None else max_length,
    )
    _ = asked.head  # refuses unknown words for vectors, with formats or without
    return asked


def _positive(text: str, option: str) -> int:
    value = read_integer(text, option)
    if value < 1:
        raise InvalidInputError(f"{option} {short(value)} must be at least 1")
    return value


def _limit(asked: _Asked, search: ScaleSearch | None) -> Limit:
    formats: list[FormatLimit] = []
    for arithmetic in asked.arithmetics:
        with working(f"emulating {arithmetic}", asked.max_length) as progress:
            formats.append(format_limit(asked.head, arithmetic, max_length=asked.max_length, progress=progress))
    last = searched_to(asked.built, length=asked.length, window=asked.window, max_length=asked.exact_to)
    with working("summing over all distances", last) as progress:
        return head_limit(
            asked.built,
            rule=asked.rule,
            offset=asked.offset,
            beta=asked.beta,
            length=asked.length,
            window=asked.window,
            formats=formats,
            search=search,
            max_length=asked.exact_to,
            progress=progress,
        )


def _search(asked: _Asked, arithmetic: Arithmetic) -> ScaleSearch:
    length = asked.length or 2
    with working(f"looking for a scale in {arithmetic.number_format}", length) as progress:
        return find_scale(asked.head, arithmetic, length=length, progress=progress)


def _picture(found: Limit, suffix: str) -> bytes:
    from ropegeo.plots import figure_bytes
    from ropegeo.plots.limit import limit_figure

    curve, bound = _drawn(found)
    title = head_title(found.built)
    return figure_bytes(limit_figure(found, title=title, curve=curve, bound=bound), suffix)


def _drawn(found: Limit) -> tuple[Sequence[SoftmaxLimit], Any]:
    """n_max over scales from 1 to ten times the largest shown, and the proved bound where there is one."""
    profile = found.built.profile
    top = max(each.beta for each in found.softmax)
    betas = np.geomspace(min(1.0, top / 10), min(10 * max(top, 1e3), LARGEST_BETA), DRAWN_BETAS)
    betas = np.unique([*betas, *(each.beta for each in found.softmax)])  # so that those asked for lie on the line
    if not isinstance(profile, LogitProfile):
        last = searched_to(found.built, length=found.length, window=found.window)
        curve = [
            letter_softmax_length(profile, beta, weight=found.rule.weight, max_length=last) for beta in betas.tolist()
        ]
        return [_seen(each, found) for each in curve], None
    demands = [Demand(offset=query.offset, threshold=found.rule.threshold(query.kind)) for query in found.queries]
    searched = max(DRAWN_SEARCHED, 2 * demands[-1].offset)
    limits = {
        each.beta: each for each in softmax_lengths(profile, betas.tolist(), demands=demands, max_length=searched)
    }
    for _ in range(STEP_ROUNDS):  # halve what lies between two scales of different n_max, so that every step is found
        scales = sorted(limits)
        between = [
            math.sqrt(low * high)
            for low, high in itertools.pairwise(scales)
            if (limits[high].last_length or 0) > SEEN * (limits[low].last_length or 0) and high > STEP * low
        ]
        if not between:
            break
        limits |= {each.beta: each for each in softmax_lengths(profile, between, demands=demands, max_length=searched)}
    betas = np.array(sorted(limits))
    curve = [_seen(limits[beta], found) for beta in betas.tolist()]
    bounds = [found.softmax_bound(beta) for beta in betas.tolist()]
    return curve, None if bounds[0] is None else np.array(bounds)


def _seen(each: SoftmaxLimit, found: Limit) -> SoftmaxLimit:
    """A limit in the window that the others are in."""
    if found.window is None:
        return each
    within = windowed(each, found.window)
    return within if found.window_fails is None else unseen(within, found.window_fails, found.queries)

"""From options to values: spectrum, head, lengths. Choices that need several rooms are made here by calling them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ropegeo.cli.optimal import OPTIMAL, check_optimal, designed
from ropegeo.cli.options import HeadOptions, LengthOptions, RopeOptions
from ropegeo.construct.built import BuiltHead
from ropegeo.construct.files import build, load_head
from ropegeo.construct.index import DEFAULT_LETTERS
from ropegeo.construct.recipe import LETTER_MODES, MAX_TOKENS, Mode, Recipe
from ropegeo.engine.margin import MAX_LENGTH, MarginCurve
from ropegeo.engine.planes import best_index_plane, best_letter_plane
from ropegeo.engine.routes import margin_curve
from ropegeo.errors import InvalidInputError
from ropegeo.exact import parse_closed_form, parse_decimal, short
from ropegeo.heads import LogitProfile
from ropegeo.spectrum import RopeSpectrum, load_rope
from ropegeo.spectrum.layout import check_layout
from ropegeo.tasks import letter_names

if TYPE_CHECKING:
    from ropegeo._arrays import ComplexArray
    from ropegeo.optimal.codes import OptimalCode
    from ropegeo.optimal.head import OptimalHead

MODES = ("index", "retrieval", "reflexive")
DEFAULT_RETRIEVAL_LETTERS = 8
DEFAULT_RETRIEVAL_INTEGERS = 8
EXACT_LADDER = (16, 128, 1024, 8192, 65536, 10**6, 10**9)
SAMPLED_LADDER = (16, 128, 1024, 8192)


def read_integer(text: str, what: str) -> int:
    """An exact integer: digits, `1e30`, `10^30` or a sum of such.

    Raises:
        InvalidInputError: not an integer.
    """
    try:
        value = parse_closed_form(text).as_rational()
    except InvalidInputError as error:
        raise InvalidInputError(f"{what} {text.strip()[:60]!r} is not an integer ({error})") from error
    if value is None or value.denominator != 1:
        raise InvalidInputError(f"{what} {text.strip()[:60]!r} is not an integer; write 1000 or 1e30")
    return int(value)


def read_lengths(options: LengthOptions) -> list[int] | None:
    """The lengths asked for, or None where none are.

    Raises:
        InvalidInputError: both options given, or not integers.
    """
    if options.length is not None and options.lengths is not None:
        raise InvalidInputError("give --length for one length or --lengths for several, not both")
    if options.length is not None:
        return [read_length(options.length)]
    if options.lengths is None:
        return None
    return [read_length(part) for part in options.lengths.split(",")]


def read_length(text: str) -> int:
    """One length, 2 to 10^1000.

    Raises:
        InvalidInputError: not an integer, or out of range.
    """
    length = read_integer(text, "length")
    if not 2 <= length <= MAX_LENGTH:
        raise InvalidInputError(f"length {text.strip()[:60]!r} must lie between 2 and 10^1000")
    return length


def read_spectrum(options: RopeOptions) -> RopeSpectrum:
    """The spectrum asked for: `paper` if nothing is said.

    Raises:
        InvalidInputError: options that do not go together, or values that are out of range.
    """
    ways = {
        "--rope": options.rope is not None,
        "--base with --head-dim": options.base is not None or options.head_dim is not None,
        "--angle": options.angle is not None,
    }
    if sum(ways.values()) > 1:
        raise InvalidInputError(f"give one of {', '.join(way for way, used in ways.items() if used)}, not several")
    if options.rotary_dim is not None and not ways["--base with --head-dim"]:
        raise InvalidInputError("--rotary-dim goes with --base and --head-dim")
    layout = None if options.layout is None else check_layout(options.layout)
    if options.layer_type is not None and options.rope is None:
        raise InvalidInputError("--layer-type goes with --rope config.json")
    if options.angle is not None:
        return RopeSpectrum.from_angle(options.angle, layout=layout or "half")
    if ways["--base with --head-dim"]:
        if options.base is None or options.head_dim is None:
            raise InvalidInputError("--base and --head-dim go together: give both")
        return RopeSpectrum.from_base(
            options.base,
            head_dim=options.head_dim,
            rotary_dim=options.rotary_dim,
            layout=layout or "half",
        )
    return load_rope("paper" if options.rope is None else options.rope, layer_type=options.layer_type, layout=layout)


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadRequest:
    """A head, the lengths to show it at, and how its plane was chosen."""

    built: BuiltHead
    lengths: list[int]
    plane_choice: str
    offset: int | None
    optimal: OptimalHead | OptimalCode | None = None


def read_head(head: HeadOptions, rope: RopeOptions, asked: list[int] | None, *, ladder: bool) -> HeadRequest:
    """Build the head asked for.

    Args:
        head: the head's options.
        rope: the rotation's.
        asked: lengths, or None where none are given.
        ladder: show a ladder of lengths up to the one asked for (construct), or just those asked for (curve).

    Raises:
        InvalidInputError: options that do not go together, or values that are out of range.
    """
    recipe = _recipe(head, read_spectrum(rope), asked)
    offset = None if head.offset is None else _offset(head.offset)
    if recipe.mode == "token_index" and offset is not None and offset > len(recipe.integers):
        raise InvalidInputError(
            f"--offset {short(offset)} is not one of the integers 1..{len(recipe.integers)} (0: a letter)"
        )
    shown = _shown_lengths(recipe, asked, 0 if offset is None else offset, ladder=ladder)
    if asked is None and not ladder:
        raise InvalidInputError("curve: give --length n or --lengths a,b,c")
    choice = "default"
    if head.plane == "best":
        if not asked:
            raise InvalidInputError("--plane best needs --length n: the best plane depends on the length")
        plane = _best_plane(recipe, offset or 0, max(asked))
        recipe, choice = replace(recipe, planes=(plane,)), "best"
    elif head.planes == OPTIMAL:
        if not asked:
            raise InvalidInputError("--planes optimal needs --length n: the best head depends on the length")
        recipe, best = designed(recipe, head, max(asked))
        recipe = replace(recipe, directions=_directions(head, len(recipe.planes)))
        return HeadRequest(built=build(recipe), lengths=shown, plane_choice=OPTIMAL, offset=offset, optimal=best)
    elif head.plane is not None or head.planes is not None:
        choice = "given"
    return HeadRequest(built=build(recipe), lengths=shown, plane_choice=choice, offset=offset)


def read_request(head: HeadOptions, rope: RopeOptions, asked: list[int] | None) -> Recipe:
    """The recipe of the head asked for, before a plane or weights are chosen for a length.

    Raises:
        InvalidInputError: options that do not go together, or values that are out of range.
    """
    return _recipe(head, read_spectrum(rope), asked)


def read_head_file(path: str, head: HeadOptions, rope: RopeOptions, asked: list[int]) -> HeadRequest:
    """The head in a file of `ropegeo construct`.

    Args:
        path: of the file.
        head: of which only the offset may be given: that of the query.
        rope: of which nothing may be given.
        asked: lengths.

    Raises:
        InvalidInputError: options that do not go with a file, or a file that cannot be read.
        FileFormatError: no head file.
    """
    if (head, rope) != (type(head)(offset=head.offset), type(rope)()):
        raise InvalidInputError("--head FILE says which head; of the other head options only --offset goes with it")
    built = load_head(path)
    offset = None if head.offset is None else read_integer(head.offset, "offset")
    if offset is not None and built.recipe.mode not in ("token_index", "retrieval"):
        raise InvalidInputError(f"the head in {path!r} has the fixed offset {built.recipe.offset}; leave --offset out")
    if offset is not None and built.recipe.mode == "token_index" and not 0 <= offset <= max(built.recipe.integers):
        raise InvalidInputError(f"offset {short(offset)} is not one of the head's integers (0: a letter)")
    return HeadRequest(built=built, lengths=asked, plane_choice="given", offset=offset)


def _recipe(head: HeadOptions, spectrum: RopeSpectrum, asked: list[int] | None) -> Recipe:
    if head.mode not in MODES:
        near = difflib.get_close_matches(head.mode, MODES, n=1)
        raise InvalidInputError(
            f"mode {head.mode!r} is unknown; use one of {', '.join(MODES)}"
            + (f" (did you mean {near[0]}?)" if near else "")
        )
    _check_combination(head)
    letters = _letters(head)
    values: dict[str, Any] = {
        "spectrum": spectrum,
        "planes": _planes(head, spectrum),
        "beta": head.beta,
        "letters": letters,
    }
    if head.weights is not None:
        values["weights"] = tuple(_weight(part) for part in head.weights.split(","))
    values["directions"] = _directions(head, len(values["planes"]))
    mode: Mode
    if head.mode == "index":
        integers = head.integers if head.max_offset is None else head.max_offset
        mode = "index" if integers is None else "token_index"
        if mode == "index":
            values["offset"] = 0 if head.offset is None else _offset(head.offset)
        else:
            values["integers"] = _integers(integers)
    elif head.mode == "retrieval":
        mode = "retrieval"
        values["integers"] = _integers(DEFAULT_RETRIEVAL_INTEGERS if head.integers is None else head.integers)
        if head.centred:
            if not asked:
                raise InvalidInputError("--centred needs --length n: the head is centred on inputs of that length")
            values["centre_length"] = max(asked)
    else:
        mode = "symbolic_reflexive" if head.symbolic else "reflexive"
    return Recipe(mode=mode, **values)


def _directions(head: HeadOptions, count: int) -> ComplexArray | None:
    if head.seed is None:
        return None
    if head.seed < 0:
        raise InvalidInputError(f"--seed {head.seed} must not be negative")
    drawn: ComplexArray = np.exp(1j * np.random.default_rng(head.seed).uniform(0, 2 * np.pi, count))
    return drawn


def _check_combination(head: HeadOptions) -> None:
    check_optimal(head)
    if head.plane is not None and head.planes is not None:
        raise InvalidInputError("give --plane for one plane or --planes for several, not both")
    if head.weights is not None and head.planes is None:
        raise InvalidInputError("--weights goes with --planes")
    if head.centred and head.mode != "retrieval":
        raise InvalidInputError("--centred goes with --mode retrieval")
    if head.symbolic and head.mode != "reflexive":
        raise InvalidInputError("--symbolic goes with --mode reflexive")
    if head.mode == "reflexive" and head.offset is not None and _offset(head.offset) != 0:
        raise InvalidInputError("a reflexive head looks at itself: --offset must be 0")
    if head.mode == "reflexive" and head.integers is not None:
        raise InvalidInputError("--integers goes with --mode index or retrieval")


def _weight(text: str) -> float:
    try:
        return float(parse_decimal(text))
    except OverflowError as error:
        raise InvalidInputError(f"weight {text.strip()[:40]!r} is too large; weights are shares of 1") from error


def _offset(text: str) -> int:
    offset = read_integer(text, "offset")
    if offset < 0:
        raise InvalidInputError(f"offset {text.strip()[:60]!r} must not be negative: a causal head cannot look ahead")
    return offset


def _letters(head: HeadOptions) -> tuple[str, ...]:
    if head.letters is None:
        return letter_names(DEFAULT_RETRIEVAL_LETTERS) if head.mode == "retrieval" else DEFAULT_LETTERS
    return letter_names(head.letters)


def _integers(count: int | None) -> tuple[int, ...]:
    if count is None or not 1 <= count <= MAX_TOKENS:
        raise InvalidInputError(f"--integers {count} must lie between 1 and {MAX_TOKENS}")
    return tuple(range(1, count + 1))


def _planes(head: HeadOptions, spectrum: RopeSpectrum) -> tuple[int, ...]:
    if head.planes is None:
        if head.plane is None or head.plane == "best":
            return (0,)
        return (spectrum.check_plane(_plane(head.plane)),)
    if head.planes == OPTIMAL:
        return (0,)  # chosen when the length is known
    if head.planes.strip() == "all":
        return tuple(range(spectrum.planes))
    planes: list[int] = []
    for part in head.planes.split(","):
        first, dash, last = part.partition("-")
        start = spectrum.check_plane(_plane(first))
        stop = spectrum.check_plane(_plane(last)) if dash else start
        if stop < start:
            raise InvalidInputError(f"--planes {part.strip()!r} runs backwards; write {stop}-{start}")
        planes += range(start, stop + 1)
    if len(set(planes)) != len(planes):
        raise InvalidInputError(f"--planes {head.planes[:60]!r} names a plane twice")
    if planes != sorted(planes):
        raise InvalidInputError(f"--planes {head.planes[:60]!r} must be in increasing order, as --weights are read")
    return tuple(planes)


def _plane(text: str) -> int:
    if not (text.strip().isascii() and text.strip().isdecimal()) or len(text) > 9:
        raise InvalidInputError(f"plane {text.strip()[:60]!r} is not a plane number; planes count from 0")
    return int(text)


def _best_plane(recipe: Recipe, offset: int, length: int) -> int:
    if recipe.mode in LETTER_MODES:
        return best_letter_plane(
            recipe.spectrum,
            letters=len(recipe.letters),
            length=length,
            centre=recipe.centre,
            self_only=recipe.mode == "symbolic_reflexive",
        )[0]
    return best_index_plane(recipe.spectrum, offset=offset, length=length)[0]


def _shown_lengths(recipe: Recipe, asked: list[int] | None, offset: int, *, ladder: bool) -> list[int]:
    if asked is not None and (not ladder or len(asked) > 1):
        return asked
    steps = EXACT_LADDER if len(recipe.planes) == 1 else SAMPLED_LADDER
    if asked is not None:
        return [n for n in steps if offset < n < asked[0]] + asked
    return [n for n in steps if n > offset] or [offset + 1, 2 * offset + 1, 10 * offset]


def head_curve(
    request: HeadRequest,
    lengths: Sequence[int],
    digits: int,
    *,
    route: str = "auto",
    progress: Callable[[int], None] | None = None,
) -> MarginCurve:
    """Margin, best and worst of the requested head."""
    profile, target = request.built.profile, request.offset
    if isinstance(profile, LogitProfile) and not profile.is_peaked:
        target = profile.origin if target is None else target
        profile = replace(profile, origin=target)
    return margin_curve(profile, lengths, target=target, digits=digits, route=route, progress=progress)

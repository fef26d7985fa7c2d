"""What all pictures share: colours, style, the empty figure, and its bytes."""

from __future__ import annotations

import io
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from matplotlib import font_manager, rc_context, rcdefaults, rcParams
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ropegeo.errors import InvalidInputError

SUFFIXES = (".png", ".svg")

# Okabe & Ito, Color Universal Design (2008): the six of their colours that are used, by what they are used for.
BLACK, BLUE, VERMILLION, GREEN, SKY, ORANGE = "#000000", "#0072B2", "#D55E00", "#009E73", "#56B4E9", "#E69F00"
COLOURS = {"key": BLACK, "query": BLUE, "match": VERMILLION, "rival": GREEN, "gap": SKY, "asked": ORANGE}
FAINT = "#8C8C8C"

_DPI = 200
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # ships with matplotlib: the same text widths everywhere
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "figure.titlesize": 11,
    "text.parse_math": False,  # titles and letters come from outside
    "svg.fonttype": "path",  # text as outlines shows the same in every viewer
    "svg.hashsalt": "ropegeo",  # otherwise the ids in the file are random
}
_SETTINGS = threading.RLock()


@contextmanager
def settings() -> Iterator[None]:
    """The style of all pictures, whatever the user's own matplotlibrc says; one thread at a time, as it is global."""
    with _SETTINGS, rc_context():
        rcdefaults()
        rcParams.update(_STYLE)
        yield


def figure_bytes(figure: Figure, suffix: str) -> bytes:
    """A figure as the content of a file; the same figure gives the same bytes.

    Args:
        figure: of `head_figure` or `curve_figure`.
        suffix: `.png` (1600 pixels wide) or `.svg` (text as outlines).

    Raises:
        InvalidInputError: any other suffix.
    """
    kind = suffix.lower()
    if kind not in SUFFIXES:
        raise InvalidInputError(f"figure_bytes: suffix {suffix[:20]!r} is not known; use {' or '.join(SUFFIXES)}")
    # Neither the date nor the version of matplotlib goes into the file.
    metadata = {"Date": None} if kind == ".svg" else {"Software": None}
    buffer = io.BytesIO()
    with settings():
        figure.savefig(buffer, format=kind[1:], dpi=figure.dpi, metadata=metadata)
    return buffer.getvalue()


def new_figure(title: str, *, height: float) -> Figure:
    """An empty figure, 1600 pixels wide, on a canvas that needs no display."""
    figure = Figure(figsize=(8, height), dpi=_DPI)
    FigureCanvasAgg(figure)
    figure.suptitle(plain(title, 180, 92))
    return figure


def plain(text: str, longest: int, width: int | None = None) -> str:
    """Text from outside made fit to draw: one line (or lines of `width`), no unknown glyphs, at most `longest` long."""
    font = font_manager.get_font(font_manager.findfont("DejaVu Sans"))
    text = "".join(letter if font.get_char_index(ord(letter)) else "□" for letter in " ".join(text.split()))
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    return text if width is None else "\n".join(textwrap.wrap(text, width))

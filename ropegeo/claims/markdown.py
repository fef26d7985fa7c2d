"""A document as Markdown, with LaTeX between dollar signs as GitHub and others typeset it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ropegeo.claims.document import Block, Document, Fact, Facts, Grid, Heading, Items, Link, Paragraph
from ropegeo.claims.texts import pieces

NAMED = {
    r"\{": r"\lbrace ",
    r"\}": r"\rbrace ",
    r"\|": r"\Vert ",
    r"\,": r"\thinspace ",
    r"\:": r"\medspace ",
    r"\;": r"\thickspace ",
    r"\!": r"\negthinspace ",
    "<": r"\lt ",
    ">": r"\gt ",
    "|": r"\vert ",
    "*": r"\ast ",
}
"""Marks in formulas that Markdown or HTML would take for its own, and their names."""
_SPECIAL = re.compile(r"[\\`*_\[\]<>#|~]")
_MARK = re.compile(r"\\[A-Za-z]+|\\.|.", re.DOTALL)


def as_markdown(document: Document) -> str:
    """The document as one text."""
    blocks = [f"# {_inline(document.title)}", *("\n".join(_lines(block)) for block in document.blocks)]
    return "\n\n".join(blocks) + "\n"


def _lines(block: Block) -> Iterator[str]:
    match block:
        case Heading(level=level, text=text, anchor=anchor):
            if anchor:
                yield f'<a id="{anchor}"></a>'
                yield ""
            yield f"{'#' * level} {_inline(text)}"
        case Paragraph(text):
            yield _inline(text)
        case Facts(facts):
            yield "\n\n".join(_fact(fact) for fact in facts)
        case Items(items):
            for k, item in enumerate(items, 1):
                yield f"{k}. **{_inline(item.title)}** ({_inline(item.note)}). {_inline(item.text)}"
        case Grid(headings=headings, rows=rows):
            yield _row(headings)
            yield _row(["---"] * len(headings), raw=True)
            for row in rows:
                yield _row(row)


def _row(cells: list[str] | tuple[str | Link, ...], *, raw: bool = False) -> str:
    return "| " + " | ".join(str(cell) if raw else _cell(cell) for cell in cells) + " |"


def _cell(cell: str | Link) -> str:
    return _link(cell) if isinstance(cell, Link) else _inline(cell)


def _link(link: Link) -> str:
    return f"[{_inline(link.text)}](#{link.anchor})"


def _fact(fact: Fact) -> str:
    shown = [*(_inline(text) for text in fact.texts), *([_link(fact.link)] if fact.link else [])]
    shown += [", ".join(f"`{code}`" for code in fact.codes)] if fact.codes else []
    if len(shown) == 1:
        return f"**{fact.label}.** {shown[0]}"
    return "\n".join([f"**{fact.label}.**", "", *(f"* {one}" for one in shown)])


def _inline(text: str) -> str:
    """Plain text with what means something to Markdown escaped; formulas with marks spelled out."""
    return "".join(
        f"${_spelled(piece.text.strip())}$" if piece.is_math else _SPECIAL.sub(r"\\\g<0>", " ".join(_words(piece.text)))
        for piece in pieces(text)
    )


def _words(text: str) -> list[str]:
    """A text cut at white space, its ends kept, so that it stays on one line."""
    return re.split(r"\s+", text)


def _spelled(latex: str) -> str:
    return re.sub(" {2,}", " ", "".join(NAMED.get(mark, mark) for mark in _MARK.findall(latex))).strip()

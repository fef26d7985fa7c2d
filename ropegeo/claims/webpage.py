"""A document as one web page: no script, nothing to load, formulas as MathML, well-formed as XML too."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree.ElementTree import Element, tostring

from ropegeo.claims.document import Block, Document, Fact, Facts, Grid, Heading, Items, Link, Paragraph
from ropegeo.claims.mathml import mathml
from ropegeo.claims.texts import Piece, pieces
from ropegeo.errors import InvalidInputError

STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --paper: #ffffff; --soft: #59636e; --line: #d5dae0; --fill: #f3f5f7;
  --link: #0b57a4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ec; --paper: #15181c; --soft: #9aa5b1; --line: #363d46; --fill: #1f242a; --link: #7db7ff; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 50rem; padding: 1.5rem 1rem 4rem; color: var(--ink); background: var(--paper);
  font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1, h2, h3 { line-height: 1.25; margin: 2.2em 0 0.6em; }
h1 { margin-top: 0; }
h2 { border-bottom: 1px solid var(--line); padding-bottom: 0.2em; }
a { color: var(--link); }
p, dd { margin: 0 0 0.5em; overflow-x: auto; overflow-y: hidden; padding: 0.1em 0; }
math { font-family: "STIX Two Math", "Latin Modern Math", "Cambria Math", math; font-size: 1.05em; }
.held { white-space: nowrap; }
code { font-size: 0.9em; background: var(--fill); border-radius: 3px; padding: 0.1em 0.3em; }
.table { overflow-x: auto; margin-bottom: 1.5em; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.35em 0.9em 0.35em 0; border-bottom: 1px solid var(--line);
  overflow-wrap: normal; }
th, dt, .note { color: var(--soft); font-weight: 600; font-size: 0.9em; }
dl { display: grid; grid-template-columns: 7rem minmax(0, 1fr); column-gap: 1rem; margin: 0 0 1em; }
dd { grid-column: 2; }
ol { padding-left: 1.6rem; }
li { margin-bottom: 0.8em; }
li p { margin: 0; }
@media (max-width: 34rem) { dl { display: block; } dd { margin-left: 0; } }
@media print {
  :root { --ink: #000000; --paper: #ffffff; --soft: #444444; --line: #bbbbbb; --fill: #ffffff; --link: #000000; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  p, dd, .table { overflow: visible; }
  h2, h3, dt { break-after: avoid; }
  li, tr { break-inside: avoid; }
}
"""
_UNFIT = re.compile("[^\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML does not take."""
_OPENING = re.compile(r"[(\[]+$")
_CLOSING = re.compile(r"[^\s(\[]+")


def as_webpage(document: Document) -> str:
    """The document as one text."""
    plain_title = "".join(piece.text for piece in pieces(document.title))
    head = _element(
        "head",
        Element("meta", charset="utf-8"),
        Element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        _element("title", plain_title),
        _element("style", STYLE),
    )
    body = _element("body", _element("h1", *_inline(document.title)), "\n")
    for block in document.blocks:
        body.extend(_block(block))
        body[-1].tail = "\n"
    page = _element("html", head, "\n", body)
    page.set("lang", "en")
    return f"<!DOCTYPE html>\n{tostring(page, encoding='unicode')}\n"


def _element(tag: str, *content: Element | str, kind: str = "") -> Element:
    """An element that holds texts and elements; texts are escaped when it is written."""
    element = Element(tag, {"class": kind} if kind else {})
    last: Element | None = None
    for part in content:
        if isinstance(part, Element):
            element.append(part)
            last = part
        elif last is None:
            element.text = (element.text or "") + _fit(part)
        else:
            last.tail = (last.tail or "") + _fit(part)
    return element


def _fit(text: str) -> str:
    return _UNFIT.sub("?", text)


def _inline(text: str) -> list[Element | str]:
    """Texts and formulas; what touches a formula, as a comma does, is not parted from it at the end of a line."""
    parts: list[Element | str] = []
    held: Element | None = None
    for piece in pieces(text):
        if piece.is_math:
            held = _element("span", *_cut_off(parts), _formula(piece), kind="held")
            parts.append(held)
            continue
        close = _CLOSING.match(piece.text) if held is not None else None
        if held is not None and close is not None:
            held[-1].tail = _fit(close[0])
        parts.append(piece.text[close.end() if close else 0 :])
        held = None
    return parts


def _cut_off(parts: list[Element | str]) -> list[str]:
    """Take opening brackets off the end of what is written so far."""
    if not parts or not isinstance(parts[-1], str) or not (found := _OPENING.search(parts[-1])):
        return []
    parts[-1] = parts[-1][: found.start()]
    return [found[0]]


def _formula(piece: Piece) -> Element:
    """MathML; LaTeX that cannot be read is shown as it is (no claim holds any: a test sees to it)."""
    try:
        return mathml(piece.text)
    except InvalidInputError:
        return _element("code", piece.text)


def _link(link: Link) -> Element:
    element = _element("a", *_inline(link.text))
    element.set("href", f"#{link.anchor}")
    return element


def _block(block: Block) -> Iterable[Element]:
    match block:
        case Heading(level=level, text=text, anchor=anchor):
            heading = _element(f"h{level}", *_inline(text))
            if anchor:
                heading.set("id", anchor)
            yield heading
        case Paragraph(text):
            yield _element("p", *_inline(text))
        case Facts(facts):
            yield _element("dl", *(part for fact in facts for part in _fact(fact)))
        case Items(items):
            yield _element(
                "ol",
                *(
                    _element(
                        "li",
                        _element(
                            "p",
                            _element("strong", *_inline(item.title)),
                            " ",
                            _element("span", *_inline(item.note), kind="note"),
                        ),
                        _element("p", *_inline(item.text)),
                    )
                    for item in items
                ),
            )
        case Grid(headings=headings, rows=rows):
            body = [_element("tr", *(_element("td", *_cell(cell)) for cell in row)) for row in rows]
            names = _element("tr", *(_element("th", *_inline(heading)) for heading in headings))
            grid = _element("table", _element("thead", names), _element("tbody", *body))
            yield _element("div", grid, kind="table")


def _cell(cell: str | Link) -> list[Element | str]:
    return [_link(cell)] if isinstance(cell, Link) else _inline(cell)


def _fact(fact: Fact) -> Iterable[Element]:
    yield _element("dt", fact.label)
    for text in fact.texts:
        yield _element("dd", *_inline(text))
    if fact.codes:
        parts: list[Element | str] = []
        for code in fact.codes:
            parts += [", ", _element("code", code)] if parts else [_element("code", code)]
        yield _element("dd", *parts)
    if fact.link is not None:
        yield _element("dd", _link(fact.link))

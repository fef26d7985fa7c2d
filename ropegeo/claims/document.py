"""A document before it is Markdown or a web page: a title and blocks, whose texts have LaTeX between dollar signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Link:
    """A text that leads to an anchor of the same document."""

    text: str
    anchor: str


@dataclass(frozen=True, kw_only=True)
class Heading:
    """A heading; the title of the document is level 1, so these begin at 2."""

    level: int
    text: str
    anchor: str = ""


@dataclass(frozen=True)
class Paragraph:
    """One paragraph."""

    text: str


@dataclass(frozen=True)
class Fact:
    """A label and what it labels: texts, names in code, a link."""

    label: str
    texts: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    link: Link | None = None


@dataclass(frozen=True)
class Facts:
    """Facts below each other."""

    facts: tuple[Fact, ...]


@dataclass(frozen=True, kw_only=True)
class Item:
    """A step: its title, how it is known, and what is shown."""

    title: str
    note: str
    text: str


@dataclass(frozen=True)
class Items:
    """Numbered steps."""

    items: tuple[Item, ...]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str | Link, ...], ...]


Block: TypeAlias = Heading | Paragraph | Facts | Items | Grid


@dataclass(frozen=True, kw_only=True)
class Document:
    """A title and what stands under it."""

    title: str
    blocks: tuple[Block, ...]

"""LaTeX as MathML, by latex2mathml, and only where all of it was understood."""

from __future__ import annotations

import html
import re
from itertools import pairwise
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert_to_element

from ropegeo.errors import InvalidInputError

CHILDREN = {"mfrac": 2, "mroot": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "msubsup": 3, "munderover": 3}
"""What these elements must hold; browsers show an error in place of one that does not."""
ROWS = ("math", "mrow", "msqrt", "mstyle")
BRACKETS = ("⌊", "⌋", "⌈", "⌉")
"""What latex2mathml takes for names."""
CLOSING = (")", "]", "}", "⌋", "⌉")
TIGHT = ("/", "|", "‖")
"""Operators that browsers would set apart from what they join or enclose."""
SIGNS = ("+", "−", "±", "∓")
DASH = "\u2015"
"""What latex2mathml writes over things; browsers do not stretch it."""
SPACE = "0.167em"
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def mathml(latex: str) -> Element:
    r"""A `math` element, characters in place of entities, without a namespace as HTML takes it.

    Raises:
        InvalidInputError: unbalanced braces, an unknown command, or what latex2mathml cannot read.

    Example:
        >>> from xml.etree.ElementTree import tostring
        >>> tostring(mathml(r"x \le 1"), encoding="unicode")
        '<math display="inline"><mrow><mi>x</mi><mo>≤</mo><mn>1</mn></mrow></math>'
    """
    if not _is_balanced(latex):
        raise InvalidInputError(f"LaTeX {latex!r}: its braces do not match")
    try:
        tree = convert_to_element(latex, xmlns="")
    except Exception as error:  # latex2mathml's errors share no class
        raise InvalidInputError(f"LaTeX {latex!r} cannot be read ({type(error).__name__})") from error
    del tree.attrib["xmlns"]
    for node in tree.iter():
        _finish(node, latex)
    for row in [node for node in tree.iter() if node.tag in ROWS]:
        _space(row)
    return tree


def _is_balanced(latex: str) -> bool:
    depth = 0
    for brace in _BRACE.findall(latex):
        depth += (brace == "{") - (brace == "}")
        if depth < 0:
            return False
    return depth == 0


def _finish(node: Element, latex: str) -> None:
    """Entities to characters, names and brackets as what they are; refuse what is left over or missing."""
    node.text = html.unescape(node.text) if node.text else None
    if node.text and ("\\" in node.text or "&" in node.text):
        raise InvalidInputError(f"LaTeX {latex!r}: {node.text} is not known")
    if len(node) != CHILDREN.get(node.tag, len(node)):
        raise InvalidInputError(f"LaTeX {latex!r}: an argument is missing")
    if node.tag == "mi" and node.text in BRACKETS:
        node.tag, node.attrib = "mo", {"stretchy": "false"}
    if node.tag == "mo" and node.text == DASH:
        node.text, node.attrib = "¯", {"stretchy": "true"}
    if node.tag == "mo" and node.text in TIGHT:
        node.attrib = {"lspace": "0", "rspace": "0", "stretchy": "false"}
    if node.tag == "mo" and node.text and len(node.text) > 1 and node.text.isalpha() and node.text != "mod":
        node.tag, node.attrib = "mi", {}  # max and its like: as an operator it would stand apart from its bracket


def _space(row: Element) -> None:
    """A thin space between the name of a function and what stands beside it; none between a sign and its number."""
    children = list(row)
    for left, node in pairwise(children):
        if node.tag == left.tag == "mo" and node.text in SIGNS and left.text not in (*CLOSING, *TIGHT):
            node.set("form", "prefix")
    for node in children:
        row.remove(node)
    for k, node in enumerate(children):
        if k and _is_thin(children[k - 1], node):
            row.append(Element("mspace", width=SPACE))
        row.append(node)


def _is_thin(left: Element, right: Element) -> bool:
    """Whether a thin space stands between two things; operators bring their own, and an opening bracket takes none."""
    own = ("mo", "mspace", "mtext")
    if _is_function(right):
        return left.tag not in own or left.text in CLOSING
    return _is_function(left) and right.tag not in own


def _is_function(node: Element) -> bool:
    if node.tag in ("msub", "msup", "msubsup"):
        return _is_function(node[0])
    return node.tag == "mi" and len(node.text or "") > 1

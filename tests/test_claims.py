"""The harness of derivations: what it runs, what it refuses, and how it writes what it was told."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import sympy

from ropegeo.asymptotics.bounds.scope import within
from ropegeo.claims import (
    Claim,
    ClaimError,
    ClaimOutcome,
    Derivation,
    Kind,
    Status,
    Step,
    argument,
    ball,
    catalogue,
    cited,
    claim_names,
    counterexample,
    exact,
    load_claim,
    refuses,
    require,
    run_claim,
    symbolic,
    vanishes,
)
from ropegeo.claims.mathml import mathml
from ropegeo.claims.report import report_html, report_markdown, summary, verdict
from ropegeo.claims.terminal import NO_BREAK, ascii_math, plain, readable
from ropegeo.claims.texts import pieces
from ropegeo.claims.wording import COUNTED, KINDS, STATUSES
from ropegeo.errors import InvalidInputError, UnsupportedError

FITTING: dict[Status, list[Step]] = {
    Status.PROVED: [exact("one", "1 = 1", holds=True), argument("so", "it is.")],
    Status.CITED: [ball("near", "in the ball", holds=True), cited("theorem", "it says", source="Somebody 1900")],
    Status.IN_SCOPE: [symbolic("sum", "$x = x$", holds=True)],
    Status.REPAIRED: [counterexample("seven", "$7 > 6$", holds=True), exact("repaired", "$7 \\le 7$", holds=True)],
}
"""Steps that carry each status."""


def claim(status: Status = Status.PROVED, **changed: Any) -> Claim:
    told: dict[str, Any] = {
        "title": "A claim",
        "statement": r"For $x < y$: $\frac{x}{2} \le y$.",
        "source": "docs, section 0",
        "scope": "every $x$",
        "ties": ("ropegeo.asymptotics.bounds.dirichlet_bound",),
    }
    if status is Status.REPAIRED:
        told |= {"as_stated": "$7 \\le 6$", "cause": "7 was counted as 6"}
    return Claim(status=status, **{**told, **changed})


def outcome(
    steps: list[Step],
    status: Status = Status.PROVED,
    check: Callable[[], None] = lambda: None,
    **changed: Any,
) -> ClaimOutcome:
    """What a derivation of these steps comes to."""
    derivation = Derivation(
        number=7,
        name="seven",
        path=Path("d07_seven.py"),
        claim=claim(status, **changed),
        steps=lambda: steps,
        check=check,
    )
    return run_claim(derivation)


# ---- claims and steps ----


@pytest.mark.parametrize("status", Status)
def test_fitting_steps_pass(status: Status) -> None:
    done = outcome(FITTING[status], status)
    assert (done.failures, done.passed, done.verdict) == ((), True, str(status))
    data = done.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["schema"] == "ropegeo.derivation/1"
    assert [step["holds"] for step in data["steps"]] == [True] * len(FITTING[status])
    assert data["cited"] == (["Somebody 1900"] if status is Status.CITED else [])


def test_a_step_that_does_not_hold() -> None:
    for step in (exact, symbolic, ball):
        done = outcome([exact("one", "1 = 1", holds=True), step("two", "1 = 2", holds=False)])
        assert done.failures == ("step 2, two: does not hold",)
        assert (done.passed, done.verdict) == (False, "FAILED")
    assert not outcome([counterexample("no", "7 = 7", holds=False)], Status.REPAIRED).passed


def broken_steps() -> Iterator[Step]:
    yield exact("one", "1 = 1", holds=True)
    raise ZeroDivisionError("division\nby zero")


def test_what_raises_is_a_failure() -> None:
    """In the steps, in the check, in both; what came before is kept, and messages are one line."""

    def check() -> None:
        require(False, "the function says 3")

    derivation = Derivation(
        number=7, name="seven", path=Path("d07_seven.py"), claim=claim(), steps=broken_steps, check=check
    )
    done = run_claim(derivation)
    assert done.failures == ("step 2: ZeroDivisionError: division by zero", "check: ClaimError: the function says 3")
    assert [step.title for step in done.steps] == ["one"]
    assert outcome(FITTING[Status.PROVED], check=check).failures == ("check: ClaimError: the function says 3",)


def test_an_interrupt_is_none() -> None:
    def check() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        outcome(FITTING[Status.PROVED], check=check)


@pytest.mark.parametrize(
    ("status", "steps", "fault"),
    [
        (Status.PROVED, FITTING[Status.CITED], "called proved, but a step is cited"),
        (Status.CITED, FITTING[Status.PROVED], "called cited, but no step is"),
        (Status.REPAIRED, FITTING[Status.PROVED], "a repaired claim, and no other, has a counterexample"),
        (Status.PROVED, FITTING[Status.REPAIRED], "a repaired claim, and no other, has a counterexample"),
        (Status.PROVED, [argument("so", "it is")], "no step is decided by a machine"),
        (Status.PROVED, [], "no step is decided by a machine"),
    ],
)
def test_steps_must_carry_the_status(status: Status, steps: list[Step], fault: str) -> None:
    done = outcome(steps, status)
    assert not done.passed
    assert any(fault in line for line in done.failures)


@pytest.mark.parametrize(
    ("status", "changed", "message"),
    [
        (Status.PROVED, {"scope": ""}, "are all needed"),
        (Status.PROVED, {"ties": ()}, "are all needed"),
        (Status.PROVED, {"as_stated": "x", "cause": "y"}, "neither as_stated nor cause"),
        (Status.CITED, {"cause": "y"}, "neither as_stated nor cause"),
        (Status.REPAIRED, {"cause": ""}, "says as_stated and cause"),
    ],
)
def test_claims_that_are_refused(status: Status, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        claim(status, **changed)


def test_steps_that_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="must be True or False"):
        exact("one", "1 = 1", holds=sympy.true)
    with pytest.raises(InvalidInputError, match="names a source"):
        cited("theorem", "it says", source="")
    with pytest.raises(InvalidInputError, match="names a source"):
        Step(kind=Kind.ARGUMENT, title="so", text="it is", source="Somebody 1900")


def test_require_and_refuses() -> None:
    require(True, "never said")
    with pytest.raises(ClaimError, match="said"):
        require(False, "said")

    def call(reach: int) -> None:
        within("call", np.array(reach >= 1), "reach >= 1", reach=reach)

    assert refuses(call, 0)
    assert refuses(call, reach=0)
    assert not refuses(call, 1)
    with pytest.raises(TypeError):
        refuses(call)


def test_vanishes() -> None:
    x, y = sympy.symbols("x y", real=True)
    assert vanishes(sympy.cos(x) ** 2 + sympy.sin(x) ** 2 - 1)
    assert vanishes(sympy.cos(x + y) - sympy.cos(x) * sympy.cos(y) + sympy.sin(x) * sympy.sin(y))
    assert not vanishes(sympy.cos(x) ** 2 + sympy.sin(x) ** 2 - sympy.Rational(1001, 1000))
    assert not vanishes(x - y)


def test_within_names_the_first_value_outside() -> None:
    values = np.array([[3.0, 2.0], [0.5, np.nan]])
    within("f", values[0] >= 1, "x >= 1", x=values[0])
    with pytest.raises(InvalidInputError, match=re.escape("f: needs x >= 1; x 0.5, y 4 is outside the scope")):
        within("f", values >= 1, "x >= 1", x=values, y=4)
    with pytest.raises(InvalidInputError, match="x nan is outside"):
        within("f", values[1:, 1] >= 1, "x >= 1", x=values[1:, 1])


# ---- where derivations are found ----


def test_names_and_numbers() -> None:
    names = claim_names()
    assert len(names) == len(set(names)) > 0
    assert list(names) == sorted(names, key=lambda name: load_claim(name).number)
    number = load_claim("dirichlet_bound").number
    for spelling in ("dirichlet-bound", " Dirichlet_Bound ", str(number), f"d{number:02}", f"{number:02}"):
        assert load_claim(spelling) is load_claim("dirichlet_bound")
    for unknown in ("", "nope", "0", "99", "d", "dirichlet", "../d05_dirichlet_bound", "5.0"):
        with pytest.raises(InvalidInputError, match="no claim is called"):
            load_claim(unknown)


@pytest.mark.parametrize(
    ("project", "inside", "found"),
    [
        ('[project]\nname = "ropegeo"', False, "beside"),
        ('[project]\nname = "ropegeo"', True, "beside"),
        ('[project]\nname = "other"', True, "inside"),
        ('[project]\nname = "other"', False, None),
        ("name = [", False, None),
        ("project = 3", False, None),
        (None, True, "inside"),
        (None, False, None),
    ],
)
def test_no_folder_of_others_is_taken(
    project: str | None, inside: bool, found: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder `derivations` beside the package counts in a checkout of ropegeo only, the working folder never."""
    package = tmp_path / "ropegeo"
    places = {"beside": tmp_path / "derivations", "inside": package / "derivations"}
    package.mkdir()
    places["beside"].mkdir()
    if inside:
        places["inside"].mkdir()
    if project is not None:
        (tmp_path / "pyproject.toml").write_text(project)
    monkeypatch.setattr(catalogue, "_PACKAGE", package)
    monkeypatch.chdir(tmp_path)
    if found is not None:
        assert catalogue.folder() == places[found]
        return
    with pytest.raises(UnsupportedError, match="does not carry them"):
        claim_names()


def test_files_that_are_no_derivations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("README.md", "d1_one.py", "d02_two.py", "d03_three.txt", "helpers.py", "d04_Four.py", "d10_ten.py"):
        (tmp_path / name).write_text("")
    monkeypatch.setattr(catalogue, "folder", lambda: tmp_path)
    assert claim_names() == ("two", "ten")


# ---- texts ----


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"\min_{1 \le t \le T} (1 - \cos t\theta)", "min_{1 <= t <= T} (1 - cos t theta)"),
        (r"2\cos\frac{2\pi}{T+1}", "2 cos(2 pi/(T+1))"),
        (r"\frac{1}{2}x + \frac12", "(1/2) x + 1/2"),
        (r"\frac{1-x}{1+x}^2", "((1-x)/(1+x))^2"),
        (r"\frac{\sin x}{2}", "(sin x)/2"),
        (r"\frac{n^2}{2\pi^2}", "n^2/(2 pi^2)"),
        (r"\frac{1}{\frac{a}{b}}", "1/(a/b)"),
        (r"\frac{\sqrt{5}-1}{2}", "(sqrt(5)-1)/2"),
        (r"\left(\frac{a}{b}\right)^2", "(a/b)^2"),
        (r"10^{-16} e^{-2k/r}", "10^-16 e^(-2k/r)"),
        (r"q_{k+1}\|q_k\alpha\|", "q_{k+1}||q_k alpha||"),
        (r"\left\lfloor\frac{n}{2}\right\rfloor", "floor(n/2)"),
        (r"\sqrt[3]{x+1}", "(x+1)^(1/3)"),
        (r"x \equiv 1 \pmod{n}", "x == 1 (mod n)"),
        (r"x\not\equiv 1 \pmod n", "x not == 1 (mod n)"),
        (r"\{0,1,\ldots,T\}", "{0,1,...,T}"),
        (r"|a-b|\le T", "|a-b| <= T"),
        (r"\operatorname{Re}(z\bar{w})", "Re(z bar(w))"),
        (r"x > 0 \text{ and } y", "x > 0 and y"),
        (r"2x \cdot \mathbb{Z}^K", "2x * Z^K"),
        (r"x^{2}y f''", "x^2 y f''"),
        (r"\binom{n}{2}", "binomial(n, 2)"),
        (r"\frac{\pi}{q(q+1)}", "pi/(q(q+1))"),
        (r"\frac{x}{\phi(1 + x)}", "x/(phi(1 + x))"),
        (r"\frac{1}{\cos(x)}", "1/cos(x)"),
        (r"\frac{1}{\operatorname{Re}(x)}", "1/Re(x)"),
        (r"\frac{1}{\cos(x)(y)}", "1/(cos(x)(y))"),
        (r"\frac{1}{\cos^2(x)}", "1/cos^2(x)"),
        (r"\frac{1}{\lfloor x \rfloor}", "1/floor(x)"),
        (r"\frac{1}{f\lfloor x \rfloor}", "1/(f floor(x))"),
        (r"\frac{1}{(a+b)}", "1/(a+b)"),
        (r"\frac{1}{(a)(b)}", "1/((a)(b))"),
    ],
)
def test_formulas_in_ascii(latex: str, shown: str) -> None:
    assert ascii_math(latex) == shown
    assert shown.isascii()


@pytest.mark.parametrize(
    "latex",
    [
        r"\foo x",
        "a & b",
        r"\frac{a",
        r"\frac{a}",
        "a}",
        "{a",
        "x_",
        "^2",
        r"\begin{matrix} a",
        r"\sqrt",
        r"a \\ b",
        r"a \not= b",
    ],
)
def test_formulas_that_are_refused(latex: str) -> None:
    """By both readers; a text with one is shown as it is."""
    with pytest.raises(InvalidInputError, match="LaTeX"):
        ascii_math(latex)
    assert readable(f"so ${latex}$") == f"so ${latex}$"
    if latex not in ("^2", r"\begin{matrix} a", r"a \\ b", r"a \not= b"):  # MathML has these
        with pytest.raises(InvalidInputError, match="LaTeX"):
            mathml(latex)


def test_short_formulas_are_not_broken() -> None:
    text = plain("where $a + b$ and $" + " + ".join("abcdefghijkl") + "$")
    assert text.replace(NO_BREAK, " ") == "where a + b and " + " + ".join("abcdefghijkl")
    assert text.count(NO_BREAK) == 2


def test_texts_are_cut_at_dollars() -> None:
    assert pieces("a $x$b") == [("a ", False), ("x", True), ("b", False)]
    assert pieces("") == []
    for wrong in ("a $x", "$", "a $$ b", "$ $"):
        with pytest.raises(InvalidInputError, match="dollar signs"):
            pieces(wrong)


def xml(latex: str) -> str:
    return ElementTree.tostring(mathml(latex), encoding="unicode")


def test_mathml() -> None:
    assert xml(r"\frac{a}{2}") == (
        '<math display="inline"><mrow><mfrac><mrow><mi>a</mi></mrow><mrow><mn>2</mn></mrow></mfrac></mrow></math>'
    )
    assert "<mo>&lt;</mo>" in xml("x < y")
    assert xml(r"2\cos^2 \theta").count("mspace") == 2  # 2 cos^2 theta, as TeX sets it
    assert "mspace" not in xml(r"\cos(x) + \theta x")
    assert xml(r"\lfloor x \rfloor").count('<mo stretchy="false">') == 2
    assert '<mo stretchy="true">¯</mo>' in xml(r"\overline{xy}")
    assert xml(r"x = -1").count('form="prefix"') == xml("(-1)").count('form="prefix"') == 1
    assert "prefix" not in xml(r"|a| - f(x) - 1")
    assert "<mi>lcm</mi>" in xml(r"\operatorname{lcm}(a, b)")
    assert "<mo>mod</mo>" in xml(r"a \bmod b")


# ---- reports ----


class Loads(HTMLParser):
    """What a page would load or run, as a browser reads it, and where its links lead."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag in ("script", "link", "img", "iframe", "object", "embed", "base", "form"):
            self.loaded.append(tag)
        self.loaded += [name for name in named if name in ("src", "style", "background") or name.startswith("on")]
        self.links += [named["href"] or ""] if "href" in named else []
        self.anchors += [named["id"] or ""] if "id" in named else []


VOID = {"meta", "mspace"}
NASTY = r"<script>alert(1)</script> & 'x' \"y\" *z* _u_ `v` [w](http://x) | \begin"


def outcomes() -> list[ClaimOutcome]:
    """One of each status, and one that fails with a message full of marks."""

    def check() -> None:
        raise ClaimError(f"{NASTY} $ \x00")

    bad = outcome([exact(NASTY, f"{NASTY} $x < 1$", holds=False)], check=check, title=NASTY)
    return [*(outcome(FITTING[status], status) for status in Status), bad]


def test_the_page_is_well_formed_and_loads_nothing() -> None:
    page = report_html(outcomes())
    assert page.startswith("<!DOCTYPE html>\n")
    tree = ElementTree.fromstring(page)  # noqa: S314 - our own page
    assert tree.tag == "html"
    assert tree.find("body/h1") is not None
    for node in tree.iter():  # a browser takes <td/> for an open tag
        assert node.tag in VOID or node.tag.startswith("m") or len(node) or node.text, node.tag
    reader = Loads()
    reader.feed(page)
    assert reader.loaded == []
    assert reader.links
    assert all(link.startswith("#") and link[1:] in reader.anchors for link in reader.links)
    assert "url(" not in page
    assert "@import" not in page


def test_the_page_shows_all_texts() -> None:
    tree = ElementTree.fromstring(report_html(outcomes()))  # noqa: S314
    text = " ".join("".join(tree.itertext()).split())
    for part in (
        "What failed",
        "check: ClaimError: <script>alert(1)</script>",
        "DOES NOT HOLD",
        "cited: Somebody 1900",
    ):
        assert part in text
    for part in (
        "What the paper states and what holds",
        "7 was counted as 6",
        "1 in words",
        *(KINDS[kind][1] for kind in Kind),
    ):
        assert part in text
    assert len(list(tree.iter("math"))) > 10
    headings = [heading.text or "" for heading in tree.iter("h2")]
    assert headings.index("What the paper states and what holds") < headings.index("Derivations")


def test_a_formula_that_cannot_be_read_is_shown_as_it_is() -> None:
    page = report_html([outcome([exact("one", r"so $\foo < 1$", holds=True)])])
    assert r"<code>\foo &lt; 1</code>" in page


def test_what_touches_a_formula_stays_with_it() -> None:
    page = report_html([outcome([exact("one", "a ($x$, $y$)-th [z]", holds=True)])])
    assert (
        re.sub(r"<math.*?</math>", "M", page).count(
            'a <span class="held">(M,</span> <span class="held">M)-th</span> [z]'
        )
        == 1
    )


def test_markdown() -> None:
    text = report_markdown(outcomes())
    lines = text.splitlines()
    assert lines[0].startswith("# Derivations of ropegeo ")
    assert r"For $x \lt y$: $\frac{x}{2} \le y$." in text
    assert r"\<script\>alert(1)\</script\>" in text
    assert "<script>" not in text
    for line in lines:
        assert line.count("$") % 2 == 0, line
    rows = [line for line in lines if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) in (3, 5) for row in rows)
    assert set(re.findall(r"\]\(#([^)]*)\)", text)) <= set(re.findall(r'<a id="([^"]*)">', text))


def test_markdown_spells_out_its_own_marks_in_formulas() -> None:
    text = report_markdown([outcome([exact("one", r"$\|x\| = \{1\,2\} * |a|<2$", holds=True)])])
    assert r"$\Vert x\Vert = \lbrace 1\thinspace 2\rbrace \ast \vert a\vert \lt 2$" in text


def test_reports_do_not_depend_on_the_clock() -> None:
    assert report_html(outcomes()) == report_html(outcomes())
    assert report_markdown(outcomes()) == report_markdown(outcomes())


def test_summary_and_verdict() -> None:
    good = [outcome(FITTING[status], status) for status in (*Status, Status.PROVED)]
    assert summary(good) == (
        "5 claims: 2 proved; 1 holds in scope; 1 fails as stated, repaired; 1 cited. Every step and every check holds."
    )
    assert summary(good[:1]) == "1 claim: 1 proved. Every step and every check holds."
    assert summary(outcomes()).endswith("; 1 FAILED (seven)")
    assert verdict(good[0]).startswith("proved (1 by machine, 1 in words): every step holds")
    assert verdict(outcomes()[-1]) == "FAILED (1 by machine)"
    assert verdict(outcome([])) == "FAILED"


def test_every_kind_and_status_has_words() -> None:
    assert set(KINDS) == set(Kind)
    assert set(STATUSES) == set(COUNTED) == set(Status)

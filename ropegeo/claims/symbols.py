"""Symbolic algebra that derivations share."""

from __future__ import annotations

import sympy


def vanishes(expression: sympy.Expr) -> bool:
    """Whether sympy reduces an expression to 0 for all values of its symbols.

    False says only that it did not, so that a step fails rather than passes.
    """
    return any(reduced(expression) == 0 for reduced in (sympy.expand, _by_exponentials, sympy.simplify))


def _by_exponentials(expression: sympy.Expr) -> sympy.Expr:
    """Cosines and sines as exponentials, multiplied out: decides every identity between trigonometric polynomials."""
    return sympy.powsimp(sympy.expand(sympy.expand(expression.rewrite(sympy.exp)), power_exp=True))

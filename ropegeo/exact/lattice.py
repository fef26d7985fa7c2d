"""Lattice reduction of integer bases, by FLINT's implementation of Lenstra, Lenstra and Lovasz (LLL)."""

from __future__ import annotations

from flint import fmpz_mat


def reduced_basis(rows: list[list[int]]) -> list[list[int]]:
    """A basis of the lattice that the rows span, shorter and nearer to orthogonal.

    The rows are transformed in integer arithmetic only, so the result spans exactly the same lattice whatever the
    floating point inside LLL did; how short the vectors come out is a matter of speed and never of correctness.

    Args:
        rows: linearly independent integer vectors, of any size.

    Returns:
        As many rows, LLL-reduced with delta 0.99, shortest vectors first.
    """
    reduced = fmpz_mat(rows).lll()
    return [[int(reduced[i, j]) for j in range(reduced.ncols())] for i in range(reduced.nrows())]

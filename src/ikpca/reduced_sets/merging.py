"""An expansion made ready: in double precision, and equal rows merged."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ikpca.gram import Indices
from ikpca.kernels import Floats, Rows
from ikpca.preimages import Expansion

__all__ = ["first_copies", "in_double", "merged"]


def in_double(expansion: Expansion) -> Expansion:
    """The same vectors; what is known of them in single precision is not."""
    if expansion.basis.dtype == expansion.coefficients.dtype == np.float64:
        return expansion
    return Expansion(
        expansion.kernel,
        expansion.basis.astype(np.float64),
        expansion.coefficients.astype(np.float64),
    )


def first_copies(rows: Rows) -> Indices:
    """Indices of rows that are not there before."""
    return _copies(rows)[0]


def merged(expansion: Expansion, values: Floats | None) -> tuple[Expansion, Floats | None]:
    """Every row once, with the coefficients of its copies added; known kernel values likewise."""
    first, groups = _copies(expansion.basis)
    if len(first) == expansion.basis.shape[0]:
        return expansion, values
    sums = np.zeros((len(expansion.coefficients), len(first)))
    np.add.at(sums.T, groups, expansion.coefficients.T)
    products = expansion.known_products
    apart = Expansion(
        expansion.kernel,
        expansion.basis[first],
        sums,
        None if products is None else products[:, first],
        expansion.known_gram,
    )
    return apart, None if values is None else values[np.ix_(first, first)]


def _copies(rows: Rows) -> tuple[Indices, Indices]:
    """Index of the first of each kind of rows, and for every row which kind it is."""
    seen: dict[bytes, int] = {}
    first: list[int] = []
    groups = np.empty(rows.shape[0], dtype=np.intp)
    for j, key in enumerate(_keys(rows)):
        group = seen.setdefault(key, len(seen))
        if group == len(first):
            first.append(j)
        groups[j] = group
    return np.array(first, dtype=np.intp), groups


def _keys(rows: Rows) -> list[bytes]:
    if sparse.issparse(rows):
        tidy = sparse.csr_array(rows, copy=True)
        tidy.sum_duplicates()
        tidy.eliminate_zeros()
        ends = zip(tidy.indptr[:-1], tidy.indptr[1:], strict=True)
        return [tidy.indices[i:j].tobytes() + tidy.data[i:j].tobytes() for i, j in ends]
    # Adding zero makes zeros of both signs alike.
    return [row.tobytes() for row in np.ascontiguousarray(rows) + 0.0]

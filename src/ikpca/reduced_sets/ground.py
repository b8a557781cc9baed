"""What a reduction starts from: the vectors, the rows to choose from, and their kernel values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ikpca.errors import refuse
from ikpca.gram import cross_gram, tiles
from ikpca.kernels import Floats, Rows
from ikpca.preimages import Expansion
from ikpca.reduced_sets.merging import first_copies, in_double, merged
from ikpca.reduced_sets.reduction import ReducedSet, nearest_on, with_coefficients
from ikpca.spectra import uniform_landmarks

__all__ = ["Ground"]


@dataclass(frozen=True, eq=False)
class Ground:
    """Vectors, and candidates among their rows.

    Parameters
    ----------
    expansion : Expansion
        The vectors on all of their rows; each row once and in double precision, where they all are
        candidates.
    candidates : Expansion
        The same vectors, as near as they come, on the rows to choose from.
    values : ndarray of shape (c, c)
        Kernel values of the candidates.
    across : ndarray of shape (q, c)
        Inner products of the vectors with the candidates' images.
    dtype : dtype
        Of the rows that are wanted.
    """

    expansion: Expansion
    candidates: Expansion
    values: Floats
    across: Floats
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, expansion: Expansion, values: Floats | None, limit: int, seed: int = 0) -> Ground:
        """Take all rows as candidates, or ``limit`` of them where there are more."""
        if expansion.basis.shape[0] > limit:
            return cls._drawn(expansion, values, limit, seed)
        apart, values = merged(in_double(expansion), values)
        if values is None:
            values = cross_gram(apart.kernel, apart.basis, apart.basis)
        products = _finite(apart, apart.coefficients @ values)
        whole = Expansion(
            apart.kernel, apart.basis, apart.coefficients, products, products @ apart.coefficients.T
        )
        return cls(whole, whole, values, products, expansion.basis.dtype)

    @classmethod
    def _drawn(cls, expansion: Expansion, values: Floats | None, limit: int, seed: int) -> Ground:
        """Rows are many: no copies are made of them, and what is known of the vectors is taken."""
        chosen = uniform_landmarks(expansion.basis.shape[0], limit, seed)
        chosen = chosen[first_copies(expansion.basis[chosen])]
        rows = expansion.basis[chosen].astype(np.float64)
        if values is None:
            values = cross_gram(expansion.kernel, rows, rows)
        else:
            values = values[np.ix_(chosen, chosen)]
        across = _finite(expansion, expansion.products[:, chosen].astype(np.float64))
        near = nearest_on(expansion, rows, values, across)
        return cls(expansion, near.expansion, values, across, expansion.basis.dtype)

    def as_it_is(self) -> ReducedSet:
        """The vectors on the rows they have: no error."""
        vectors = self.expansion
        exact = with_coefficients(
            vectors, self.in_type(vectors.basis), self.values, self.across, vectors.coefficients
        )
        return replace(exact, squared_errors=np.zeros_like(exact.squared_errors))

    def across_to(self, rows: Floats) -> Floats:
        """⟨u_i, Φ(z_k)⟩ for any rows, with the vectors as they were given."""
        vectors = self.expansion
        parts = [
            vectors.coefficients[:, strip] @ cross_gram(vectors.kernel, vectors.basis[strip], rows)
            for strip in tiles(vectors.basis.shape[0])
        ]
        return np.sum(parts, axis=0)

    def in_type(self, rows: Rows) -> Rows:
        """Rows as they are to be returned; those of the basis come back as they were."""
        return rows.astype(self.dtype, copy=False)


def _finite(vectors: Expansion, products: Floats) -> Floats:
    if not np.isfinite(products).all():
        raise refuse("kernel", vectors.kernel, "has values on these rows that are not finite",
                     "scale the rows, or choose another kernel")  # fmt: skip
    return products

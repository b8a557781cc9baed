"""A library that grows row by row, and what it still leaves of some vectors."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from ikpca.gram import cross_gram
from ikpca.kernels import Floats
from ikpca.preimages import Expansion

__all__ = ["Library"]

#: A row of which the others leave less than this share (of k(z, z)) has nothing new to say.
_DEPENDENT = 1e-11


class Library:
    """Rows z_k, and the best approximations of vectors u_i on them.

    With LLᵀ the gram of the rows, the least-squares coefficients solve CL = Y, YLᵀ = ⟨u_i, Φ(z_k)⟩,
    and each new row takes the square of its entry of Y off the error: nothing is solved twice.

    Parameters
    ----------
    vectors : Expansion
        With inner products in double precision.
    size : int
        Rows there is room for.
    """

    def __init__(self, vectors: Expansion, size: int) -> None:
        number, n_basis = vectors.coefficients.shape
        self.vectors = vectors
        self.size = size
        self.count = 0
        self._rows = np.empty((size, vectors.basis.shape[1]))
        self._with_basis = np.empty((size, n_basis))
        self._values = np.empty((size, size))
        self._across = np.empty((number, size))
        self._factor = np.zeros((size, size))
        self._shares = np.empty((number, size))
        self.squared_errors = np.diagonal(vectors.gram).copy()

    @property
    def rows(self) -> Floats:
        """z_k."""
        return self._rows[: self.count]

    def add(self, row: Floats) -> bool:
        """Take in a row, unless it says nothing that the others do not."""
        n, kernel = self.count, self.vectors.kernel
        with_rows = cross_gram(kernel, row[None], self.rows)[0]
        own = float(kernel.diagonal(row[None])[0])
        reached = with_rows
        if n:
            factor = self._factor[:n, :n]
            reached = linalg.solve_triangular(factor, with_rows, lower=True, check_finite=False)
        rest = own - reached @ reached
        if not rest > _DEPENDENT * abs(own):
            return False
        self._factor[n, :n], self._factor[n, n] = reached, np.sqrt(rest)
        self._values[n, :n] = self._values[:n, n] = with_rows
        self._values[n, n] = own
        self._rows[n] = row
        self._with_basis[n] = cross_gram(kernel, row[None], self.vectors.basis)[0]
        self._across[:, n] = self.vectors.coefficients @ self._with_basis[n]
        share = (self._across[:, n] - self._shares[:, :n] @ reached) / np.sqrt(rest)
        self._shares[:, n] = share
        self.squared_errors -= share**2
        self.count = n + 1
        return True

    def coefficients(self) -> Floats:
        """C, for all vectors."""
        n = self.count
        if not n:
            return np.zeros((len(self._across), 0))
        return linalg.solve_triangular(
            self._factor[:n, :n], self._shares[:, :n].T, lower=True, trans=1, check_finite=False
        ).T

    def residual(self, i: int) -> Expansion:
        """u_i − Σ_k C_ik Φ(z_k), on the basis and the rows together."""
        n, vectors, one = self.count, self.vectors, slice(i, i + 1)
        C = self.coefficients()[one]
        on_basis = vectors.products[one] - C @ self._with_basis[:n]
        on_rows = self._across[one, :n] - C @ self._values[:n, :n]
        coefficients = np.hstack([vectors.coefficients[one], -C])
        products = np.hstack([on_basis, on_rows])
        basis = np.vstack([vectors.basis, self.rows])
        gram = products @ coefficients.T
        return Expansion(vectors.kernel, basis, coefficients, products, gram)

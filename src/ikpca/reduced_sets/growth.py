"""A library that grows row by row, and what it still leaves of some vectors."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from ikpca.gram import Indices, cross_gram
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

    @property
    def values(self) -> Floats:
        """k(z_k, z_l)."""
        return self._values[: self.count, : self.count]

    @property
    def across(self) -> Floats:
        """⟨u_i, Φ(z_k)⟩."""
        return self._across[:, : self.count]

    def keep(self, indices: Indices, values: Floats) -> None:
        """Take over rows of the basis, whose kernel values are known."""
        rows = self.vectors.basis[indices]
        self._append(rows, values[indices], values[np.ix_(indices, indices)])

    def add(self, rows: Floats) -> int:
        """Take in what is new among the rows, while there is room; return how many those were."""
        before, kernel = self.count, self.vectors.kernel
        with_basis = cross_gram(kernel, rows, self.vectors.basis)
        self._append(rows, with_basis, cross_gram(kernel, rows, rows))
        return self.count - before

    def coefficients(self) -> Floats:
        """C, for all vectors."""
        n = self.count
        if not n:
            return np.zeros((len(self._across), 0))
        return linalg.solve_triangular(
            self._factor[:n, :n], self._shares[:, :n].T, lower=True, trans=1, check_finite=False
        ).T

    def residuals(self, who: Indices) -> Expansion:
        """u_i − Σ_k C_ik Φ(z_k) for some vectors, on the basis and the rows together."""
        n, vectors = self.count, self.vectors
        C = self.coefficients()[who]
        on_basis = vectors.products[who] - C @ self._with_basis[:n]
        on_rows = self.across[who] - C @ self.values
        coefficients = np.hstack([vectors.coefficients[who], -C])
        products = np.hstack([on_basis, on_rows])
        gram = products @ coefficients.T
        basis = np.vstack([vectors.basis, self.rows])
        return Expansion(vectors.kernel, basis, coefficients, products, gram)

    def _append(self, rows: Floats, with_basis: Floats, own: Floats) -> None:
        known = self.count
        with_rows = np.empty((len(rows), self.size))
        with_rows[:, :known] = cross_gram(self.vectors.kernel, rows, self.rows)
        taken: list[int] = []
        for k in range(len(rows)):
            n = self.count
            if n == self.size:
                break
            with_rows[k, known:n] = own[k, taken]
            if self._take(with_rows[k, :n], own[k, k], with_basis[k]):
                self._rows[n] = rows[k]
                taken.append(k)

    def _take(self, with_rows: Floats, own: float, with_basis: Floats) -> bool:
        n = self.count
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
        self._with_basis[n] = with_basis
        self._across[:, n] = self.vectors.coefficients @ with_basis
        share = (self._across[:, n] - self._shares[:, :n] @ reached) / np.sqrt(rest)
        self._shares[:, n] = share
        self.squared_errors -= share**2
        self.count = n + 1
        return True

"""Kernels that are a function of the inner product ⟨x, y⟩."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ikpca.kernels.kernel import Floats, Rows

__all__ = ["Cosine", "Linear", "Polynomial", "Sigmoid", "inner_products", "squared_norms"]


def inner_products(X: Rows, Y: Rows, out: Floats) -> None:
    """Write ⟨x_i, y_j⟩ into ``out``, for dense and CSR rows in any mixture."""
    if not sparse.issparse(X) and not sparse.issparse(Y):
        np.matmul(X, Y.T, out=out)
        return
    product = X @ Y.T
    out[...] = product.toarray() if sparse.issparse(product) else product


def squared_norms(X: Rows) -> Floats:
    """‖x_i‖² for every row."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


@dataclass(frozen=True)
class Linear:
    """k(x, y) = ⟨x, y⟩."""

    takes_sparse = True

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write the tile."""
        inner_products(X, Y, out)

    def diagonal(self, X: Rows) -> Floats:
        """Return ‖x‖²."""
        return squared_norms(X)

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Nothing beside the tile."""
        return 0


@dataclass(frozen=True)
class Polynomial:
    """k(x, y) = (γ⟨x, y⟩ + c)^d."""

    degree: float = 3
    gamma: float = 1.0
    coef0: float = 1.0

    takes_sparse = True

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write the tile."""
        inner_products(X, Y, out)
        self._finish(out)

    def diagonal(self, X: Rows) -> Floats:
        """Return (γ‖x‖² + c)^d."""
        values = squared_norms(X)
        self._finish(values)
        return values

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """One more tile while a power above two is taken."""
        return 0 if self.degree in (1, 2) else n_x * n_y * itemsize

    def _finish(self, values: Floats) -> None:
        values *= self.gamma
        values += self.coef0
        if self.degree == int(self.degree):
            _integer_power(values, int(self.degree))
        else:
            np.power(values, self.degree, out=values)


def _integer_power(values: Floats, degree: int) -> None:
    """Raise in place by repeated products: ``np.power`` is some twenty times slower."""
    if degree == 0:
        values.fill(1)
    elif degree == 2:
        np.multiply(values, values, out=values)
    elif degree > 2:
        base = values.copy()
        for bit in bin(degree)[3:]:
            np.multiply(values, values, out=values)
            if bit == "1":
                values *= base


@dataclass(frozen=True)
class Sigmoid:
    """k(x, y) = tanh(γ⟨x, y⟩ + c); not positive semi-definite in general."""

    gamma: float = 1.0
    coef0: float = 1.0

    takes_sparse = True

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write the tile."""
        inner_products(X, Y, out)
        self._finish(out)

    def diagonal(self, X: Rows) -> Floats:
        """Return tanh(γ‖x‖² + c)."""
        values = squared_norms(X)
        self._finish(values)
        return values

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Nothing beside the tile."""
        return 0

    def _finish(self, values: Floats) -> None:
        values *= self.gamma
        values += self.coef0
        np.tanh(values, out=values)


@dataclass(frozen=True)
class Cosine:
    """k(x, y) = ⟨x, y⟩ / (‖x‖ ‖y‖), zero where a row is zero."""

    takes_sparse = True

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write the tile."""
        inner_products(X, Y, out)
        out /= _norms(X)[:, None]
        out /= _norms(Y)[None, :]

    def diagonal(self, X: Rows) -> Floats:
        """Return one, and zero for zero rows."""
        return (squared_norms(X) > 0).astype(X.dtype)

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Norms only."""
        return (n_x + n_y) * itemsize


def _norms(X: Rows) -> Floats:
    """‖x_i‖, with 1 in place of 0 so that a zero row gives zeros, as in scikit-learn."""
    norms: Floats = np.sqrt(squared_norms(X))
    norms[norms == 0] = 1
    return norms

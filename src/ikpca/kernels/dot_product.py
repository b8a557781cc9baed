"""Kernels of the inner product: linear, polynomial, sigmoid, cosine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ikpca.kernels.base import Floats, Rows


class _DotProductKernel:
    """Kernel κ(⟨x, y⟩); κ is the identity unless a subclass overrides both methods below."""

    takes_sparse = True

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write κ(⟨x, y⟩)."""
        inner_products(X, Y, out)
        self._finish(out)

    def diagonal(self, X: Rows) -> Floats:
        """Return κ(‖x‖²)."""
        values = squared_norms(X)
        self._finish(values)
        return values

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Return zero: nothing is allocated."""
        return 0

    def weighted_gradient(self, Z: Floats, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return Σ_j G_ij κ(⟨z_i, x_j⟩) and its gradient Σ_j G_ij κ'(⟨z_i, x_j⟩) x_j."""
        values, slopes = self._with_slopes(np.matmul(Z, X.T))
        total = np.einsum("ij,ij->i", weights, values)
        slopes *= weights
        return total, slopes @ X

    def diagonal_gradient(self, Z: Floats) -> Floats:
        """Return 2κ'(‖z‖²) z."""
        return 2 * self._with_slopes(squared_norms(Z))[1][:, None] * Z

    def _finish(self, values: Floats) -> None:
        """Replace inner products by κ, in place."""

    def _with_slopes(self, inner: Floats) -> tuple[Floats, Floats]:
        """Return κ and κ', which share much."""
        return inner, np.ones_like(inner)


@dataclass(frozen=True)
class Linear(_DotProductKernel):
    """Linear kernel k(x, y) = ⟨x, y⟩.

    See Also
    --------
    sklearn.metrics.pairwise.linear_kernel : The whole matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> Linear().diagonal(np.array([[3.0, 4.0]]))
    array([25.])
    """

    def weighted_gradient(self, Z: Floats, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return ⟨z, Gx⟩ and Gx, without a tile of kernel values."""
        gradient = weights @ X
        return np.einsum("ij,ij->i", Z, gradient), gradient

    def diagonal_gradient(self, Z: Floats) -> Floats:
        """Return 2z."""
        return 2 * Z

    def input_distances(self, values: Floats, squared_norms: Floats) -> Floats:
        """Return ‖x‖² − 2⟨z, x⟩; ‖z‖² is the constant that is left out."""
        return squared_norms - 2 * values


@dataclass(frozen=True)
class Polynomial(_DotProductKernel):
    """Polynomial kernel k(x, y) = (γ⟨x, y⟩ + c)^d.

    Parameters
    ----------
    degree : float, default=3
        Exponent d.
    gamma : float, default=1.0
        Factor of the inner product.
    coef0 : float, default=1.0
        Additive constant c.

    See Also
    --------
    sklearn.metrics.pairwise.polynomial_kernel : The whole matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Polynomial
    >>> Polynomial(gamma=1.0, coef0=1.0, degree=2).diagonal(np.array([[1.0, 1.0]]))
    array([9.])
    """

    degree: float = 3
    gamma: float = 1.0
    coef0: float = 1.0

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Return the size of a second tile, which powers above two need."""
        return 0 if self.degree in (1, 2) else n_x * n_y * itemsize

    def input_distances(self, values: Floats, squared_norms: Floats) -> Floats:
        """Invert the power by the d-th root; for even d, the root with γ⟨z, x⟩ + c ≥ 0."""
        if self.degree * self.gamma == 0:
            return np.zeros_like(values)
        signs = np.sign(values) if self.degree % 2 == 1 else values > 0
        roots = signs * np.abs(values) ** (1 / self.degree)
        return squared_norms - 2 * (roots - self.coef0) / self.gamma

    def _with_slopes(self, inner: Floats) -> tuple[Floats, Floats]:
        base = inner * self.gamma + self.coef0
        if self.degree == 0:
            return np.ones_like(base), np.zeros_like(base)
        slopes = base.copy()
        _power(slopes, self.degree - 1)
        base *= slopes
        slopes *= self.degree * self.gamma
        return base, slopes

    def _finish(self, values: Floats) -> None:
        values *= self.gamma
        values += self.coef0
        _power(values, self.degree)


@dataclass(frozen=True)
class Sigmoid(_DotProductKernel):
    """Sigmoid kernel k(x, y) = tanh(γ⟨x, y⟩ + c); not positive semi-definite in general.

    Parameters
    ----------
    gamma : float, default=1.0
        Factor of the inner product.
    coef0 : float, default=1.0
        Additive constant c.

    See Also
    --------
    sklearn.metrics.pairwise.sigmoid_kernel : The whole matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Sigmoid
    >>> Sigmoid(gamma=1.0, coef0=0.0).diagonal(np.array([[1.0, 0.0]])).round(4)
    array([0.7616])
    """

    gamma: float = 1.0
    coef0: float = 1.0

    def _with_slopes(self, inner: Floats) -> tuple[Floats, Floats]:
        self._finish(inner)
        return inner, self.gamma * (1 - inner * inner)

    def _finish(self, values: Floats) -> None:
        values *= self.gamma
        values += self.coef0
        np.tanh(values, out=values)


@dataclass(frozen=True)
class Cosine:
    """Cosine kernel k(x, y) = ⟨x, y⟩ / (‖x‖ ‖y‖), zero if a row is zero.

    See Also
    --------
    sklearn.metrics.pairwise.cosine_similarity : The whole matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Cosine
    >>> tile = np.empty((1, 2))
    >>> Cosine().fill(np.array([[2.0, 0.0]]), np.array([[3.0, 0.0], [0.0, 1.0]]), tile)
    >>> tile
    array([[1., 0.]])
    """

    takes_sparse = True

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write the tile."""
        inner_products(X, Y, out)
        out /= _norms(X)[:, None]
        out /= _norms(Y)[None, :]

    def diagonal(self, X: Rows) -> Floats:
        """Return ones, and zero for zero rows."""
        return (squared_norms(X) > 0).astype(X.dtype)

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Return the size of the norms."""
        return (n_x + n_y) * itemsize

    def weighted_gradient(self, Z: Floats, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return the sums and gradients, from ∇⟨ẑ, x̂⟩ = (x̂ − ⟨ẑ, x̂⟩ẑ)/‖z‖ for unit ẑ and x̂."""
        norms = _norms(Z)[:, None]
        units = Z / norms
        combined = (weights / _norms(X)) @ X
        values = np.einsum("ij,ij->i", units, combined)
        return values, (combined - values[:, None] * units) / norms

    def diagonal_gradient(self, Z: Floats) -> Floats:
        """Return zeros: k(z, z) = 1."""
        return np.zeros_like(Z)


def squared_norms(X: Rows) -> Floats:
    """Return ‖x_i‖² for every row.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, N)

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import squared_norms
    >>> squared_norms(np.array([[3.0, 4.0], [1.0, 0.0]]))
    array([25.,  1.])
    """
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def inner_products(X: Rows, Y: Rows, out: Floats) -> None:
    """Write ⟨x_i, y_j⟩ into ``out``, for any combination of dense and CSR rows."""
    if not sparse.issparse(X) and not sparse.issparse(Y):
        np.matmul(X, Y.T, out=out)
        return
    product = X @ Y.T
    out[...] = product.toarray() if sparse.issparse(product) else product


# Large or negative bases may have no finite power; the caller reports values that are not finite.
@np.errstate(over="ignore", invalid="ignore")
def _power(values: Floats, degree: float) -> None:
    """Raise to a power in place, if possible by squaring: ``np.power`` is about 20 times slower."""
    if degree != int(degree) or degree < 0:
        np.power(values, degree, out=values)
    elif degree == 0:
        values.fill(1)
    elif degree == 2:
        np.multiply(values, values, out=values)
    elif degree > 2:
        base = values.copy()
        for bit in bin(int(degree))[3:]:
            np.multiply(values, values, out=values)
            if bit == "1":
                values *= base


def _norms(X: Rows) -> Floats:
    """Return ‖x_i‖, with 1 in place of 0 so that zero rows give zeros, as in scikit-learn."""
    norms: Floats = np.sqrt(squared_norms(X))
    norms[norms == 0] = 1
    return norms

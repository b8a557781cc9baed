"""Kernels of the inner product: linear, polynomial, sigmoid, cosine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from scipy import sparse

from ikpca.kernels.base import Floats, Rows, inner_products, squared_norms

#: Entries of a strip of features.
_STRIP_ENTRIES = 2**18


class _DotProductKernel:
    """Kernel κ(⟨x, y⟩); κ is the identity unless a subclass overrides both methods below."""

    supports_sparse = True

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
class _FeatureKernel:
    """Kernel ⟨f(x) − o, f(y) − o⟩ of explicit features f relative to an origin o.

    Centering removes the origin from all results. With the mean of the training rows as the origin,
    rows far from zero keep their digits.
    """

    #: Origin of dense rows; zero by default.
    origin: Floats | None = field(default=None, repr=False, compare=False)

    supports_sparse = True

    def centered(self, X: Rows) -> Self:
        """Return the kernel relative to the mean of dense rows; CSR rows are never shifted."""
        if sparse.issparse(X):
            return self
        total = np.zeros(X.shape[1])
        strip = max(1, _STRIP_ENTRIES // max(1, X.shape[1]))
        for start in range(0, X.shape[0], strip):
            total += self.features(X[start : start + strip]).sum(axis=0, dtype=np.float64)
        return replace(self, origin=(total / X.shape[0]).astype(X.dtype))

    def features(self, X: Rows) -> Rows:
        """Return f(x), before the origin is subtracted."""
        return X

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write ⟨f(x) − o, f(y) − o⟩."""
        inner_products(self.shifted_features(X), self.shifted_features(Y), out)

    def diagonal(self, X: Rows) -> Floats:
        """Return ‖f(x) − o‖²."""
        return squared_norms(self.shifted_features(X))

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Return the size of the shifted features of both blocks."""
        return 0 if self.origin is None else (n_x + n_y) * n_features * itemsize

    def shifted_features(self, X: Rows) -> Rows:
        """Return f(x) − o."""
        features = self.features(X)
        if self.origin is None:
            return features
        return (features.toarray() if sparse.issparse(features) else features) - self.origin


class Linear(_FeatureKernel):
    """Linear kernel k(x, y) = ⟨x, y⟩.

    Parameters
    ----------
    origin : ndarray of shape (n_features,), optional
        Subtracted from x and y; a fit sets it to the mean of the training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> Linear().diagonal(np.array([[3.0, 4.0]]))
    array([25.])
    """

    def weighted_gradient(self, Z: Floats, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return ⟨z, Gx⟩ and Gx, without a tile of kernel values."""
        gradient = weights @ self.shifted_features(X)
        return np.einsum("ij,ij->i", self.shifted_features(Z), gradient), gradient

    def diagonal_gradient(self, Z: Floats) -> Floats:
        """Return 2z."""
        return 2 * self.shifted_features(Z)

    def input_distances(self, values: Floats, rows: Floats) -> Floats:
        """Return ‖x‖² − 2⟨z, x⟩; ‖z‖² is the constant that is left out."""
        rows = self.shifted_features(rows)
        return np.einsum("...d,...d->...", rows, rows) - 2 * values


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

    def input_distances(self, values: Floats, rows: Floats) -> Floats:
        """Invert the power by the d-th root; for even d, the root with γ⟨z, x⟩ + c ≥ 0."""
        if self.degree * self.gamma == 0:
            return np.zeros_like(values)
        signs = np.sign(values) if self.degree % 2 == 1 else values > 0
        roots = signs * np.abs(values) ** (1 / self.degree)
        squared_norms = np.einsum("...d,...d->...", rows, rows)
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


class Cosine(_FeatureKernel):
    """Cosine kernel k(x, y) = ⟨x, y⟩ / (‖x‖ ‖y‖), zero if a row is zero.

    Parameters
    ----------
    origin : ndarray of shape (n_features,), optional
        Subtracted from x/‖x‖ and y/‖y‖; a fit sets it to the mean of those of the training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Cosine
    >>> tile = np.empty((1, 2))
    >>> Cosine().fill(np.array([[2.0, 0.0]]), np.array([[3.0, 0.0], [0.0, 1.0]]), tile)
    >>> tile
    array([[1., 0.]])
    """

    def features(self, X: Rows) -> Rows:
        """Return x/‖x‖."""
        norms = _norms(X)[:, None]
        return sparse.csr_array(X.multiply(1 / norms)) if sparse.issparse(X) else X / norms

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Return the size of the unit rows of both blocks, before and after the shift."""
        return 2 * (n_x + n_y) * n_features * itemsize

    def diagonal(self, X: Rows) -> Floats:
        """Return ‖x/‖x‖ − o‖²; without an origin ones, and zero for zero rows."""
        if self.origin is None:
            return (squared_norms(X) > 0).astype(X.dtype)
        return super().diagonal(X)

    def weighted_gradient(self, Z: Floats, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return the sums and gradients, from ∇⟨ẑ − o, g⟩ = (g − ⟨ẑ, g⟩ẑ)/‖z‖ for unit ẑ."""
        norms = _norms(Z)[:, None]
        units = Z / norms
        combined = weights @ self.shifted_features(X)
        along = np.einsum("ij,ij->i", units, combined)
        values = along if self.origin is None else along - combined @ self.origin
        return values, (combined - along[:, None] * units) / norms

    def diagonal_gradient(self, Z: Floats) -> Floats:
        """Return the gradient of ‖ẑ − o‖² = 1 − 2⟨ẑ, o⟩ + ‖o‖², zero without an origin."""
        if self.origin is None:
            return np.zeros_like(Z)
        norms = _norms(Z)[:, None]
        units = Z / norms
        return -2 * (self.origin - (units @ self.origin)[:, None] * units) / norms


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

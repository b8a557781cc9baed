"""Array types, inner products of rows, and kernel protocols."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats: TypeAlias = NDArray[np.floating[Any]]
Indices: TypeAlias = NDArray[np.intp]
#: Dense rows, or a scipy CSR matrix or array of rows (Any for the type checker).
Rows: TypeAlias = Any


@runtime_checkable
class Kernel(Protocol):
    """Kernel function evaluated in tiles; it writes into the given array and keeps no reference."""

    @property
    def supports_sparse(self) -> bool:
        """True if rows may be CSR matrices."""

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write k(x_i, y_j) into ``out[i, j]``."""

    def diagonal(self, X: Rows) -> Floats:
        """Return k(x_i, x_i) for every row."""

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Return an upper bound on the bytes that ``fill`` allocates for dense rows."""


@runtime_checkable
class DifferentiableKernel(Kernel, Protocol):
    """Kernel with a gradient, in the form of the sums that pre-images need; rows are dense."""

    def weighted_gradient(self, Z: Floats, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return Σ_j G_ij k(z_i, x_j) for every row of Z, and its gradient with respect to z_i."""

    def diagonal_gradient(self, Z: Floats) -> Floats:
        """Return the gradient of k(z, z) for every row of Z."""


@runtime_checkable
class RadialKernel(Kernel, Protocol):
    """Decreasing function of a distance with k(z, z) = 1; rows are dense."""

    @property
    def step_is_gradient(self) -> bool:
        """True if z − center is proportional to the gradient of −ln Σ_j G_ij k(z, x_j)."""

    def weighted_center(self, Z: Floats, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return Σ_j G_ij k(z_i, x_j), and the center of the rows x_j for every z_i.

        The center minimizes the distances of the kernel to the rows x_j under the weights
        G_ij k(z_i, x_j). If their sum is not positive, z_i itself is returned.
        """


@runtime_checkable
class DistanceKernel(Kernel, Protocol):
    """Kernel whose values determine Euclidean distances in input space."""

    def input_distances(self, values: Floats, rows: Floats) -> Floats:
        """Return ‖z_i − x_ij‖² from k(z_i, x_ij) and the rows x_ij, up to a constant per row.

        The arguments have shapes (n, k) and (n, k, N), for k rows that may differ from one z to the
        next. Values come from projections and may lie outside the range of the kernel.
        """


def squared_norms(X: Rows) -> Floats:
    """Return ‖x_i‖² for every dense or CSR row."""
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

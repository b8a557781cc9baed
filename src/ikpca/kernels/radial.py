"""Kernels that are a function of a distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ikpca.kernels.inner_products import inner_products, squared_norms
from ikpca.kernels.kernel import Floats, Rows

__all__ = ["Gaussian", "Laplacian", "one_norm_distances"]


@dataclass(frozen=True)
class Gaussian:
    """k(x, y) = exp(−γ‖x − y‖²); the papers write γ = 1/(2σ²)."""

    gamma: float = 1.0

    takes_sparse = True

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write the tile: one product of folded operands, then one exp in place."""
        if sparse.issparse(X) or sparse.issparse(Y):
            self._fill_unfolded(X, Y, out)
        else:
            left, right = self._fold(X, Y, Y.mean(axis=0))
            np.matmul(left, right.T, out=out)
            self.finish(out)

    def diagonal(self, X: Rows) -> Floats:
        """Return ones."""
        return np.ones(X.shape[0], dtype=X.dtype)

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Both operands, two columns wider."""
        return (n_x + n_y) * (n_features + 2) * itemsize

    def fold(self, X: Floats) -> tuple[Floats, Floats]:
        """[2γx, −γ‖x‖², 1] and [x, 1, −γ‖x‖²], whose product is the exponent.

        A shift of the origin changes no distance; it keeps the norms small, and with them the
        rounding of the difference, for data far from the origin. Features that never vary, as the
        borders of images, change no distance either and are left out.
        """
        varying = np.flatnonzero(X.min(axis=0) < X.max(axis=0))
        if len(varying) < X.shape[1]:
            X = X[:, varying]
        return self._fold(X, X, X.mean(axis=0))

    def finish(self, out: Floats) -> None:
        """One exp, in place."""
        np.exp(out, out=out)

    def _fold(self, X: Floats, Y: Floats, origin: Floats) -> tuple[Floats, Floats]:
        left = np.empty((X.shape[0], X.shape[1] + 2), dtype=np.result_type(X, Y))
        right = np.empty((Y.shape[0], Y.shape[1] + 2), dtype=left.dtype)
        np.subtract(X, origin, out=left[:, :-2])
        np.subtract(Y, origin, out=right[:, :-2])
        left[:, -2] = squared_norms(left[:, :-2]) * -self.gamma
        right[:, -1] = squared_norms(right[:, :-2]) * -self.gamma
        left[:, :-2] *= 2 * self.gamma
        left[:, -1] = 1
        right[:, -2] = 1
        return left, right

    def _fill_unfolded(self, X: Rows, Y: Rows, out: Floats) -> None:
        """CSR rows: subtracting an origin or adding columns would cost their sparsity."""
        inner_products(X, Y, out)
        out *= -2
        out += squared_norms(X)[:, None]
        out += squared_norms(Y)[None, :]
        np.maximum(out, 0, out=out)
        out *= -self.gamma
        np.exp(out, out=out)


@dataclass(frozen=True)
class Laplacian:
    """k(x, y) = exp(−γ‖x − y‖₁)."""

    gamma: float = 1.0

    takes_sparse = True

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write the tile."""
        np.multiply(one_norm_distances(X, Y), -self.gamma, out=out, casting="same_kind")
        np.exp(out, out=out)

    def diagonal(self, X: Rows) -> Floats:
        """Return ones."""
        return np.ones(X.shape[0], dtype=X.dtype)

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Distances come in double precision, from double-precision operands."""
        return n_x * n_y * 8 + (n_x + n_y) * n_features * 8


def one_norm_distances(X: Rows, Y: Rows) -> Floats:
    """‖x_i − y_j‖₁, for dense and CSR rows in any mixture."""
    # Imported here: scikit-learn's distances know CSR, and only this kernel needs them.
    from sklearn.metrics.pairwise import manhattan_distances

    if sparse.issparse(X) or sparse.issparse(Y):
        X, Y = _short_indices(X), _short_indices(Y)
    return manhattan_distances(X, Y)


def _short_indices(X: Rows) -> Rows:
    """A CSR array with 32-bit indices, the only kind that scikit-learn's distances take."""
    X = sparse.csr_array(X)
    indices, starts = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sparse.csr_array((X.data, indices, starts), shape=X.shape)

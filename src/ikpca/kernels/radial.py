"""Kernels of a distance: Gaussian, Laplacian; operands of the product that a Gaussian takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ikpca.kernels.base import Floats, Indices, Rows, inner_products, squared_norms

#: Rows per strip, so that a strip fits into the processor's cache.
_STRIP = 256
#: Sampled rows; the median of a feature over them is taken as its most common value.
_SAMPLE_SIZE = 9
#: A feature is sparse if at most this share of the rows differs from its common value; above about
#: 7 % the dense product is faster.
_MAX_SPARSE_DENSITY = 0.05
#: With fewer sparse features, or fewer rows, a second product takes longer than it saves.
_MIN_SPARSE_FEATURES, _MIN_ROWS = 64, 1024
#: Kernel values below this share of the largest are rounding errors and give no distance.
_MIN_RELATIVE_VALUE = 1e-6


@dataclass(frozen=True)
class _DistanceKernelBase(ABC):
    """Common part of kernels of a distance, for which k(x, x) = 1."""

    #: Factor of the distance.
    gamma: float = 1.0

    supports_sparse = True

    @abstractmethod
    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write the tile."""

    def diagonal(self, X: Rows) -> Floats:
        """Return ones."""
        return np.ones(X.shape[0], dtype=X.dtype)

    def diagonal_gradient(self, Z: Floats) -> Floats:
        """Return zeros: k(z, z) = 1."""
        return np.zeros_like(Z)

    def _weighted_values(self, Z: Floats, X: Floats, weights: Floats) -> Floats:
        """Return G_ij k(z_i, x_j)."""
        out = np.empty(weights.shape, dtype=np.result_type(Z, X))
        self.fill(Z, X, out)
        out *= weights
        return out


class Gaussian(_DistanceKernelBase):
    """Gaussian kernel k(x, y) = exp(−γ‖x − y‖²); the papers write γ = 1/(2σ²).

    Parameters
    ----------
    gamma : float, default=1.0
        Factor γ of the squared distance.

    See Also
    --------
    sklearn.metrics.pairwise.rbf_kernel : The whole matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca import KernelPCA
    >>> from ikpca.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> KernelPCA(2, kernel=Gaussian(0.5)).fit_transform(X).shape
    (50, 2)
    """

    step_is_gradient = True

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write the tile: one product of operands, then one exp in place."""
        if sparse.issparse(X) or sparse.issparse(Y):
            # A shift or extra columns would make CSR rows dense.
            inner_products(X, Y, out)
            out *= -2
            out += squared_norms(X)[:, None]
            out += squared_norms(Y)[None, :]
            np.maximum(out, 0, out=out)
            out *= -self.gamma
        else:
            split = FeatureSplit.all_dense(Y)
            left = self.left_from_right(self.right_operand(X, split))
            right = self.right_operand(Y, split)
            np.matmul(left.dense, right.dense.T, out=out)
        self.finish(out)

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Return the size of both operands, with their two extra columns."""
        return (n_x + n_y) * (n_features + 2) * itemsize

    def weighted_center(self, Z: Floats, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return the sums and the weighted means (Mika 1999): the distance is Euclidean."""
        products = self._weighted_values(Z, X, weights)
        values = products.sum(axis=1)
        centers = products @ X
        positive = values[:, None] > 0
        np.divide(centers, values[:, None], out=centers, where=positive)
        return values, np.where(positive, centers, Z)

    def weighted_gradient(self, Z: Floats, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return the sums and gradients, from ∇k = 2γ(x − z)k."""
        products = self._weighted_values(Z, X, weights)
        # Relative to the mean of X, the difference has the smallest rounding error.
        values, origin = products.sum(axis=1), _mean_row(X)
        gradient = products @ (X - origin) - values[:, None] * (Z - origin)
        return values, 2 * self.gamma * gradient

    def input_distances(self, values: Floats, rows: Floats) -> Floats:
        """Return −ln(k)/γ, with values clipped below at a small share of the largest."""
        if self.gamma == 0:
            return np.zeros_like(values)
        lowest = _MIN_RELATIVE_VALUE * values.max(axis=1, keepdims=True)
        lowest = np.maximum(lowest, np.finfo(values.dtype).tiny)
        return np.log(np.maximum(values, lowest)) / -self.gamma

    def right_operand(self, X: Floats, split: FeatureSplit) -> Operand:
        """Return [x, 1, −γ‖x‖²]; its product with a left operand is the exponent."""
        dense, sparse_part = split.shifted(X, extra_columns=2)
        norms = squared_norms(dense[:, :-2])
        if sparse_part is not None:
            norms += squared_norms(sparse_part)
        dense[:, -1] = norms * -self.gamma
        return Operand(dense, sparse_part)

    def left_from_right(self, right: Operand) -> Operand:
        """Convert to [2γx, −γ‖x‖², 1], in place."""
        dense, sparse_part = right.dense, right.sparse
        dense[:, -2] = dense[:, -1]
        dense[:, :-2] *= 2 * self.gamma
        dense[:, -1] = 1
        if sparse_part is not None:
            sparse_part = sparse_part * sparse_part.dtype.type(2 * self.gamma)
        return Operand(dense, sparse_part)

    def finish(self, out: Floats) -> None:
        """Exponentiate in place."""
        np.exp(out, out=out)


class FeatureSplit(NamedTuple):
    """Split of the features into dense, sparse and constant ones, and the origin they refer to.

    A shift of the origin changes no distance; it keeps norms, and thus the rounding errors of their
    differences, small. Few rows differ from the origin in sparse features, such as pixels near the
    border of images: their differences are multiplied as sparse matrices with ``nnz`` entries.
    """

    #: The mean of dense features, the common value of others.
    origin: Floats
    dense: NDArray[np.bool_]
    sparse: NDArray[np.bool_]
    nnz: int = 0

    @classmethod
    def from_rows(cls, X: Floats) -> FeatureSplit:
        """Split the features of dense rows; features in which all rows agree are constant."""
        common = cls.common_values(X)
        counts = sum(np.count_nonzero(X[strip] != common, axis=0) for strip in _strips(X))
        is_dense, is_sparse = counts > 0, (counts > 0) & (counts <= _MAX_SPARSE_DENSITY * len(X))
        if len(X) < _MIN_ROWS or is_sparse.sum() < _MIN_SPARSE_FEATURES:
            is_sparse = np.zeros_like(is_dense)
        is_dense &= ~is_sparse
        origin = np.where(is_dense, _mean_row(X), common)
        return cls(origin, is_dense, is_sparse, int(counts[is_sparse].sum()))

    @staticmethod
    def common_values(X: Rows) -> Floats:
        """Return the medians of the features over a few rows."""
        sample = X[np.linspace(0, X.shape[0] - 1, _SAMPLE_SIZE).astype(np.intp)]
        return np.partition(sample, _SAMPLE_SIZE // 2, axis=0)[_SAMPLE_SIZE // 2]

    @classmethod
    def all_dense(cls, X: Floats) -> FeatureSplit:
        """Return the split about the mean of rows in which all features are dense."""
        is_dense = np.ones(X.shape[1], dtype=bool)
        return cls(_mean_row(X), is_dense, ~is_dense)

    def operand_bytes(self, n_rows: int) -> int:
        """Return the size of the operand of the rows of the split, with its two extra columns."""
        item = self.origin.itemsize
        # The sparse part is stored as CSR, with 32-bit indices.
        sparse_bytes = self.nnz * (item + 4) + 4 * n_rows
        return n_rows * (int(self.dense.sum()) + 2) * item + sparse_bytes

    def shifted(self, X: Floats, extra_columns: int) -> tuple[Floats, Rows | None]:
        """Return X less the origin: dense features with extra columns of ones, and sparse (CSR)."""
        width = int(self.dense.sum())
        out = np.empty((len(X), width + extra_columns), np.result_type(X, self.origin))
        dense = out[:, :width]
        out[:, width:] = 1
        if self.dense.all():
            np.subtract(X, self.origin, out=dense)
            return out, None
        parts = [sparse.csr_array((0, int(self.sparse.sum())), dtype=out.dtype)]
        for strip in _strips(X):
            # Selecting columns of all of X at once takes three times as long.
            difference = X[strip] - self.origin
            dense[strip] = np.compress(self.dense, difference, axis=1)
            if self.sparse.any():
                parts.append(sparse.csr_array(np.compress(self.sparse, difference, axis=1)))
        return out, sparse.vstack(parts, format="csr") if self.sparse.any() else None


class Operand(NamedTuple):
    """One factor of a matrix product: dense columns, and sparse columns as a CSR array."""

    dense: Floats
    sparse: Rows | None = None

    def copy(self, rows: slice | Indices = slice(None)) -> Operand:
        """Return a copy of some rows, whose dense part may be written to."""
        dense = self.dense[rows]
        if isinstance(rows, slice):
            dense = dense.copy()
        return Operand(dense, None if self.sparse is None else self.sparse[rows])


def _mean_row(X: Floats) -> Floats:
    """Return the mean of rows, summed in double precision."""
    return X.mean(axis=0, dtype=np.float64).astype(X.dtype)


def _strips(X: Floats) -> Iterator[slice]:
    for start in range(0, len(X), _STRIP):
        yield slice(start, min(start + _STRIP, len(X)))


class Laplacian(_DistanceKernelBase):
    """Laplacian kernel k(x, y) = exp(−γ‖x − y‖₁).

    Parameters
    ----------
    gamma : float, default=1.0
        Factor γ of the distance.

    See Also
    --------
    sklearn.metrics.pairwise.laplacian_kernel : The whole matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Laplacian
    >>> tile = np.empty((1, 1))
    >>> Laplacian(1.0).fill(np.array([[0.0, 0.0]]), np.array([[0.5, 0.5]]), tile)
    >>> tile.round(4)
    array([[0.3679]])
    """

    step_is_gradient = False

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write the tile."""
        np.multiply(one_norm_distances(X, Y), -self.gamma, out=out, casting="same_kind")
        np.exp(out, out=out)

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Return the size of the distances and of copies of both operands in double precision."""
        return n_x * n_y * 8 + (n_x + n_y) * n_features * 8

    def weighted_center(self, Z: Floats, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return the sums and the weighted medians of every feature.

        The distance is a sum of absolute values. As −γ‖z − x‖₁ is linear in the distance, the sum
        of exponentials is bounded below by its tangent; the median maximizes the tangent and
        therefore cannot decrease the sum (for positive weights).
        """
        products = self._weighted_values(Z, X, weights)
        values = products.sum(axis=1)
        centers = np.empty_like(Z)
        for column in range(X.shape[1]):
            centers[:, column] = _weighted_medians(X[:, column], products)
        return values, np.where(values[:, None] > 0, centers, Z)

    def weighted_gradient(self, Z: Floats, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return the sums and gradients, from ∇k = γ sign(x − z)k with sign(0) = 0."""
        products = self._weighted_values(Z, X, weights)
        gradient = np.empty_like(Z)
        for column in range(X.shape[1]):
            signs = np.sign(X[:, column] - Z[:, column, None])
            gradient[:, column] = np.einsum("ij,ij->i", products, signs)
        return products.sum(axis=1), self.gamma * gradient


def one_norm_distances(X: Rows, Y: Rows) -> Floats:
    """Return ‖x_i − y_j‖₁, for any combination of dense and CSR rows."""
    # Imported here because only this kernel needs scikit-learn's distances.
    from sklearn.metrics.pairwise import manhattan_distances

    if sparse.issparse(X) or sparse.issparse(Y):
        X, Y = _with_int32_indices(X), _with_int32_indices(Y)
    return manhattan_distances(X, Y)


def _weighted_medians(values: Floats, weights: Floats) -> Floats:
    """Return the weighted median of the values for every row of weights."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[:, order], axis=1)
    return values[order][np.argmax(below >= below[:, -1:] / 2, axis=1)]


def _with_int32_indices(X: Rows) -> Rows:
    """Return a CSR array with 32-bit indices, which scikit-learn's distances require."""
    X = sparse.csr_array(X)
    indices, starts = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sparse.csr_array((X.data, indices, starts), shape=X.shape)

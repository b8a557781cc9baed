"""Inner products of rows, and operands of kernels that need one matrix product per tile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ikpca.kernels.base import Floats, Indices, Kernel, Rows

_Mask: TypeAlias = NDArray[np.bool_]

#: Rows per strip, so that a strip fits into the processor's cache.
_STRIP = 256
#: Sampled rows; the median of a feature over them is taken as its most common value.
_SAMPLE_SIZE = 9
#: A feature is sparse if at most this share of the rows differs from its common value; above about
#: 7 % the dense product is faster.
_MAX_SPARSE_DENSITY = 0.05
#: With fewer sparse features, or fewer rows, a second product takes longer than it saves.
_MIN_SPARSE_FEATURES, _MIN_ROWS = 64, 1024


class FeatureSplit(NamedTuple):
    """Split of the features into dense, sparse and constant ones, and the origin they refer to.

    A shift of the origin changes no distance; it keeps norms, and thus the rounding errors of their
    differences, small. Few rows differ from the origin in sparse features, such as pixels near the
    border of images: their differences are multiplied as sparse matrices with ``nnz`` entries.
    """

    #: The mean of dense features, the common value of others.
    origin: Floats
    dense: _Mask
    sparse: _Mask
    nnz: int = 0

    @classmethod
    def from_rows(cls, X: Floats) -> FeatureSplit:
        """Split the features of dense rows; features in which all rows agree are constant."""
        common = cls.common_values(X[cls.sample_indices(len(X))])
        counts = sum(np.count_nonzero(X[strip] != common, axis=0) for strip in _strips(X))
        return cls.from_counts(common, counts, mean_row(X), len(X))

    @classmethod
    def from_counts(
        cls, common: Floats, counts: Indices, means: Floats, n_rows: int
    ) -> FeatureSplit:
        """Split features by the number of rows that differ from the common value of each."""
        is_dense, is_sparse = counts > 0, (counts > 0) & (counts <= _MAX_SPARSE_DENSITY * n_rows)
        if n_rows < _MIN_ROWS or is_sparse.sum() < _MIN_SPARSE_FEATURES:
            is_sparse = np.zeros_like(is_dense)
        is_dense &= ~is_sparse
        origin = np.where(is_dense, means, common)
        return cls(origin, is_dense, is_sparse, int(counts[is_sparse].sum()))

    @staticmethod
    def sample_indices(n_rows: int) -> Indices:
        """Return the rows from which common values are estimated."""
        return np.linspace(0, n_rows - 1, _SAMPLE_SIZE).astype(np.intp)

    @staticmethod
    def common_values(sample: Floats) -> Floats:
        """Return the medians of a sample."""
        return np.partition(sample, _SAMPLE_SIZE // 2, axis=0)[_SAMPLE_SIZE // 2]

    @classmethod
    def all_dense(cls, origin: Floats) -> FeatureSplit:
        """Return the split about an origin in which all features are dense."""
        is_dense = np.ones(len(origin), dtype=bool)
        return cls(origin, is_dense, ~is_dense)

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


@runtime_checkable
class MatmulKernel(Kernel, Protocol):
    """Kernel whose tiles are elementwise functions of one product of prepared operands."""

    def right_operand(self, X: Floats, split: FeatureSplit) -> Operand:
        """Return the right operand of dense rows and their split; it serves all tiles."""

    def left_from_right(self, right: Operand) -> Operand:
        """Convert a right operand in place into the left operand of the same rows."""

    def finish(self, out: Floats) -> None:
        """Convert a product of operands to kernel values, in place."""


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


def mean_row(X: Floats) -> Floats:
    """Return the mean of rows, summed in double precision."""
    return X.mean(axis=0, dtype=np.float64).astype(X.dtype)


def _strips(X: Floats) -> Iterator[slice]:
    for start in range(0, len(X), _STRIP):
        yield slice(start, min(start + _STRIP, len(X)))

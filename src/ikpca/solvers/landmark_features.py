"""Features of rows: their kernel values with landmarks, made orthonormal by a Cholesky factor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import linalg

from ikpca.errors import InvalidInput
from ikpca.gram import tile_slices
from ikpca.gram.centering import NOT_FINITE
from ikpca.kernels import (
    FeatureSplit,
    Floats,
    Indices,
    Kernel,
    MatmulKernel,
    Operand,
    Rows,
    mean_row,
)

#: Blocks of the product with a triangular factor; more of them skip more zeros.
_TRIANGLE_BLOCKS = 8
#: Part of k(x, x) below which the rest of a landmark is rounding noise, by item size.
_DROP = {4: 1e-7, 8: 1e-12}
#: Relative size of the rest of a kernel matrix that shows that it is not positive semi-definite.
_INDEFINITE = 1e-5
#: Number of rows, Σ(z − L⁻¹c), Σ(z − L⁻¹c)(z − L⁻¹c)ᵀ and Σk(x, x).
Moments: TypeAlias = tuple[int, Floats, Floats, float]


@dataclass(frozen=True, eq=False)
class LandmarkFeatures:
    """Features z(x) = L⁻¹(k(x) − c) of rows, for a Cholesky factor L of the landmarks.

    Parameters
    ----------
    kernel : Kernel
    rows : rows of shape (q, N)
        Landmarks that are linearly independent in feature space.
    gram : ndarray of shape (q, q)
        Their kernel matrix in double precision.
    inverse : ndarray of shape (q, q)
        L⁻¹ in double precision.
    strip : int
        Rows of a strip.
    """

    kernel: Kernel
    rows: Rows
    gram: Floats
    inverse: Floats
    strip: int

    @classmethod
    def of(cls, kernel: Kernel, rows: Rows, strip: int) -> tuple[LandmarkFeatures, Indices]:
        """Factor the kernel matrix of landmarks; also return the indices of those that are kept.

        Landmarks whose images are combinations of those of others are dropped.
        """
        number, exact = rows.shape[0], rows.astype(np.float64)
        gram = np.empty((number, number))
        for part in tile_slices(number):
            kernel.fill(exact[part], exact, gram[part])
        if not np.isfinite(gram).all():
            raise InvalidInput(NOT_FINITE)
        gram = symmetrized(gram)
        largest = float(np.abs(np.diag(gram)).max())
        tolerance = _DROP[rows.dtype.itemsize] * largest
        factor, pivots, rank, _ = linalg.lapack.dpstrf(gram, lower=1, tol=tolerance)
        order = np.asarray(pivots, dtype=np.intp) - 1
        check_definite(gram, factor, order, rank, largest)
        kept = order[: max(rank, 1)]
        inverse = np.zeros((1, 1))
        if rank:
            inverse = np.tril(linalg.lapack.dtrtri(factor[:rank, :rank], lower=1)[0])
        return cls(kernel, rows[kept], gram[np.ix_(kept, kept)], inverse, strip), kept

    @property
    def center(self) -> Floats:
        """Mean c of the kernel values of the landmarks, near the mean of those of all rows."""
        return self.gram.mean(axis=1)

    def moments(
        self, cache: Floats | None, X: Rows, start: int
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return Σz, Σzzᵀ, and the squared distances from the span and k(x, x) of rows.

        Distances that are rounding errors keep their size, by which rows are sampled.
        """
        dtype, number = X.dtype, len(self.gram)
        center, inverse = self.center.astype(dtype), self.inverse.astype(dtype)
        offset = inverse @ center
        values = KernelColumns(self.kernel, self.rows)
        sums, products = np.zeros(number), np.zeros((number, number), dtype=dtype)
        distances, diagonal = [], []
        for part in tile_slices(X.shape[0], self.strip):
            strip = X[part]
            out = cached_strip(cache, start + part.start, strip.shape[0])
            k = values.of(strip, out)
            z = multiply_triangle(k, inverse)
            z -= offset
            sums += z.sum(axis=0, dtype=np.float64)
            products += z.T @ z
            diagonal.append(self.kernel.diagonal(strip))
            z += offset
            distances.append(np.abs(diagonal[-1] - np.einsum("ij,ij->i", z, z)))
        return sums, products, np.concatenate(distances), np.concatenate(diagonal)

    def mean_and_scatter(self, moments: Moments) -> tuple[Floats, Floats]:
        """Return the mean of the features, and Σzzᵀ about it."""
        n_samples, sums, products, _ = moments
        shift = sums / n_samples
        scatter = np.outer(shift, -sums)
        scatter += products
        return shift + self.inverse @ self.center, symmetrized(scatter)

    def projector(self, others: LandmarkFeatures) -> Floats:
        """Return the matrix that maps these features to others in a part of the span."""
        values = KernelColumns(self.kernel, self.rows.astype(np.float64))
        coordinates = multiply_triangle(values.of(others.rows.astype(np.float64)), self.inverse)
        return multiply_triangle(coordinates.T.copy(), others.inverse).T


@dataclass(frozen=True, eq=False)
class LandmarkComponents:
    """Components in the span of landmarks; projects strips of rows, also in other processes.

    Parameters
    ----------
    features : LandmarkFeatures
    eigenvalues : ndarray of shape (r,)
    next_eigenvalue : float
    coefficients : ndarray of shape (r, q)
        Coefficients of the images of the landmarks, in double precision.
    offsets : ndarray of shape (r,)
        Inner products with the mean.
    """

    features: LandmarkFeatures
    eigenvalues: Floats
    next_eigenvalue: float
    coefficients: Floats
    offsets: Floats

    @property
    def inverse_eigenvalues(self) -> Floats:
        """1/λ_i; zero for components without variance."""
        values = self.eigenvalues.astype(np.float64)
        return np.divide(1, values, out=np.zeros_like(values), where=values > 0)

    def project(self, cache: Floats | None, X: Rows, start: int) -> Floats:
        """Return the projections of rows X."""
        values = cached_strip(cache, start, X.shape[0])
        if values is None:
            values = KernelColumns(self.features.kernel, self.features.rows).of(X)
        return values @ self.coefficients.T.astype(X.dtype) - self.offsets.astype(X.dtype)

    def leverages(self, cache: Floats | None, X: Rows, start: int) -> Floats:
        """Return Σ_i y_i²/λ_i of rows X, by strips."""
        weights, parts = self.inverse_eigenvalues.astype(X.dtype), []
        for part in tile_slices(X.shape[0], self.features.strip):
            projections = self.project(cache, X[part], start + part.start)
            parts.append(np.square(projections) @ weights)
        return np.concatenate(parts)

    def sampled_products(
        self, sample: Rows, projections: Floats | None, cache: Floats | None, X: Rows, start: int
    ) -> Floats:
        """Return the part of rows X of K[S, :]Y, in double precision.

        Parameters
        ----------
        sample : rows of shape (s, N)
            The rows S.
        projections : ndarray of shape (l, r) or None
            Y; computed again if it is not kept.
        cache, X, start
            As for ``project``.
        """
        values = KernelColumns(self.features.kernel, sample)
        total = np.zeros((sample.shape[0], len(self.offsets)))
        for part in tile_slices(X.shape[0], self.features.strip):
            strip, first = X[part], start + part.start
            if projections is None:
                Y = self.project(cache, strip, first)
            else:
                Y = projections[first : first + strip.shape[0]]
            total += values.of(strip).T @ Y
        return total


def total_moments(parts: Sequence[Moments]) -> Moments:
    """Return the moments of the rows of several parts."""
    sums, products = parts[0][1].copy(), parts[0][2].copy()
    for _, part_sums, part_products, _ in parts[1:]:
        sums += part_sums
        products += part_products
    return sum(part[0] for part in parts), sums, products, sum(part[3] for part in parts)


def symmetrized(matrix: Floats) -> Floats:
    """Remove rounding errors from a symmetric matrix, in place."""
    matrix += matrix.T
    matrix /= 2
    return matrix


def check_definite(gram: Floats, factor: Floats, order: Indices, rank: int, largest: float) -> None:
    """Raise an error if a Cholesky factorization with pivoting left more than rounding errors."""
    rest = gram[np.ix_(order[rank:], order[rank:])]
    below = factor[rank:, :rank]
    if rank < len(gram) and np.abs(rest - below @ below.T).max() > _INDEFINITE * largest:
        raise IndefiniteKernel(
            "the kernel matrix of the landmarks is not positive semi-definite: its span has no "
            "best components; choose another kernel, or eigen_solver='krylov'."
        )


class IndefiniteKernel(InvalidInput):
    """Kernel matrix with significant negative eigenvalues."""


class KernelColumns:
    """Kernel values of any rows with a fixed set of rows, whose operand is computed once."""

    def __init__(self, kernel: Kernel, rows: Rows) -> None:
        self._kernel, self._rows = kernel, rows
        self._right: Operand | None = None
        if isinstance(kernel, MatmulKernel) and isinstance(rows, np.ndarray):
            self._split = FeatureSplit.all_dense(mean_row(rows))
            self._right = kernel.right_operand(rows, self._split)

    def of(self, X: Rows, out: Floats | None = None) -> Floats:
        """Return k(x_i, y_j), in ``out`` if it is given."""
        kernel = self._kernel
        if out is None:
            out = np.empty((X.shape[0], self._rows.shape[0]), dtype=X.dtype)
        if self._right is None or not isinstance(kernel, MatmulKernel):
            kernel.fill(X, self._rows, out)
            return out
        left = kernel.left_from_right(kernel.right_operand(X, self._split))
        np.matmul(left.dense, self._right.dense.T, out=out)
        kernel.finish(out)
        return out


def multiply_triangle(k: Floats, lower: Floats) -> Floats:
    """Return k Lᵀ for a lower triangular matrix, by blocks that skip most zeros."""
    number = len(lower)
    out = np.empty_like(k)
    for block in tile_slices(number, max(64, -(-number // _TRIANGLE_BLOCKS))):
        np.matmul(k[:, : block.stop], lower[block, : block.stop].T, out=out[:, block])
    return out


def cached_strip(cache: Floats | None, start: int, n_rows: int) -> Floats | None:
    """Return the memory of a strip in a cache of the first rows; None if it is not kept."""
    if cache is None:
        return None
    strip = cache[start : start + n_rows]
    return strip if len(strip) == n_rows else None

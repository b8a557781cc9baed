"""Landmarks: features of rows in their span, and starts of iterations.

For coefficients with zero row sums on m landmarks, AK' is AK minus its row means. So m kernel rows
give exact projections, and a Rayleigh–Ritz step on them the best components.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import linalg

from ikpca.errors import InvalidInput
from ikpca.gram import GramSource, tile_slices
from ikpca.gram.centering import NOT_FINITE
from ikpca.gram.parallel import SERIAL, Workers
from ikpca.gram.sources import DistributedSource
from ikpca.kernels import (
    FeatureSplit,
    Floats,
    Gaussian,
    Indices,
    Kernel,
    Operand,
    Rows,
    mean_row,
)
from ikpca.solvers.problem import Problem
from ikpca.solvers.rayleigh_ritz import rayleigh_ritz

#: Blocks of the product with a triangular factor; more of them skip more zeros.
_TRIANGLE_BLOCKS = 8
#: Part of k(x, x) below which the rest of a landmark is rounding noise, by item size.
_DROP_PIVOTS = {4: 1e-7, 8: 1e-12}
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
        tolerance = _DROP_PIVOTS[rows.dtype.itemsize] * largest
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
        if isinstance(kernel, Gaussian) and isinstance(rows, np.ndarray):
            self._split = FeatureSplit.all_dense(mean_row(rows))
            self._right = kernel.right_operand(rows, self._split)

    def of(self, X: Rows, out: Floats | None = None) -> Floats:
        """Return k(x_i, y_j), in ``out`` if it is given."""
        kernel = self._kernel
        if out is None:
            out = np.empty((X.shape[0], self._rows.shape[0]), dtype=X.dtype)
        if self._right is None or not isinstance(kernel, Gaussian):
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


#: Methods of choosing landmarks.
LANDMARK_KINDS = ("landmarks", "pivoted")
#: Leading directions of the landmarks that the Rayleigh–Ritz step uses, per component.
DIRECTIONS_PER_COMPONENT = 8
#: Relative eigenvalue below which directions are not used, unless there are too few, and noise of
#: an eigenvalue, in units of that of the kernel values.
_DROP, _NOISE = 1e-6, 10
#: Landmarks per direction beyond which subspace iterations take less time, and their number.
_LANDMARKS_PER_DIRECTION, _SUBSPACE_ITERATIONS = 3, 3
#: Columns per matrix product.
_STRIP = 4096
#: First block of proposed pivots, and passes over all rows.
_FIRST_BLOCK, _MAX_ROUNDS = 256, 12
#: Residuals below this many times the rounding error of k(x, x) are noise.
_ROUNDING = 100


@dataclass(frozen=True)
class LandmarkStart:
    """Orthonormal components on landmarks.

    Parameters
    ----------
    indices : ndarray of shape (m,)
    coefficients : ndarray of shape (r, m)
        A on the landmarks; zero for all other rows.
    projections : ndarray of shape (r, l)
        AK', exact.
    eigenvalues : ndarray of shape (r,)
        Ritz values: lower bounds of the eigenvalues of K'.
    directions : ndarray of shape (d, m)
        Leading components of the landmarks alone, in whose span these components are.
    direction_projections : ndarray of shape (d, l)
        AK' of the directions, exact.
    distances : ndarray of shape (l,)
        Estimated squared distances of all rows from the span of the directions.
    """

    indices: Indices
    coefficients: Floats
    projections: Floats
    eigenvalues: Floats
    directions: Floats
    direction_projections: Floats
    distances: Floats

    def dense_coefficients(self) -> Floats:
        """Return A with all l columns."""
        A = np.zeros_like(self.projections)
        A[:, self.indices] = self.coefficients
        return A


def uniform_landmarks(n_samples: int, number: int, seed: int) -> Indices:
    """Draw distinct rows with equal probability."""
    rng = np.random.default_rng([seed, 3])
    return np.sort(rng.choice(n_samples, size=min(number, n_samples), replace=False))


def choose_landmarks(
    kind: str, source: GramSource, number: int, seed: int, workers: Workers = SERIAL
) -> Indices:
    """Choose rows uniformly ("landmarks"), or by randomly pivoted Cholesky ("pivoted")."""
    if kind == "pivoted":
        return pivoted_landmarks(source, number, seed, workers)
    return uniform_landmarks(source.n_samples, number, seed)


def pivoted_landmarks(
    source: GramSource, number: int, seed: int, workers: Workers = SERIAL
) -> Indices:
    """Choose rows by randomly pivoted Cholesky, with probability proportional to their residual.

    Better than uniform sampling if a few rows differ from the rest. Rows are proposed in blocks and
    accepted with the ratio of their present to their former residual, so that they have the
    distribution of rows drawn one at a time. Blocks double the number of landmarks, so all passes
    together take less time than a factorization; the factor of all rows is not stored.
    """
    rng = np.random.default_rng([seed, 3])
    number = min(number, source.n_samples)
    # The diagonal of an indefinite kernel may be negative.
    diagonal = np.clip(source.diagonal().astype(np.float64), 0, None)
    noise = _ROUNDING * float(np.finfo(source.dtype).eps) * diagonal
    residuals = np.where(diagonal > noise, diagonal, 0)
    pivots = _Pivots(source)
    for _ in range(_MAX_ROUNDS):
        total = float(residuals.sum())
        if len(pivots) >= number or total <= 0:
            break
        if not np.isfinite(total):
            raise InvalidInput(NOT_FINITE)
        size = min(2 * (number - len(pivots)), max(_FIRST_BLOCK, 2 * len(pivots)))
        proposed = rng.choice(source.n_samples, size=size, p=residuals / total)
        pivots.accept(proposed, residuals[proposed], rng.random(size), number)
        if len(pivots) < number:
            residuals = pivots.residuals(diagonal, workers)
            residuals[residuals <= noise] = 0
            residuals[pivots.indices] = 0
    if not len(pivots):
        return uniform_landmarks(source.n_samples, number, seed)
    chosen = np.array(pivots.indices, dtype=np.intp)
    missing = min(number - len(chosen), int(np.count_nonzero(residuals)))
    if missing > 0:
        # Residuals fall too fast for rejection to accept many rows.
        weights = residuals / residuals.sum()
        more = rng.choice(source.n_samples, size=missing, replace=False, p=weights)
        chosen = np.concatenate([chosen, more])
    return np.sort(chosen)


class _Pivots:
    """Accepted pivots, their kernel matrix, and its Cholesky factor in double precision."""

    def __init__(self, source: GramSource) -> None:
        self._source = source
        self.indices: list[int] = []
        self._factor = np.zeros((0, 0))

    def __len__(self) -> int:
        return len(self.indices)

    def accept(self, proposed: Indices, residuals: Floats, draws: Floats, number: int) -> None:
        """Accept proposed rows in turn, each with its present over its former residual."""
        n_former = len(self)
        rows = np.concatenate([np.array(self.indices, dtype=np.intp), proposed])
        K = self._source.submatrix(proposed, rows).astype(np.float64)
        # Residual values of the proposed rows among each other, given the former pivots.
        above = np.zeros((n_former, len(proposed)))
        if n_former:
            above = linalg.solve_triangular(self._factor, K[:, :n_former].T, lower=True)
        H = K[:, n_former:] - above.T @ above
        new = np.zeros((min(len(proposed), number - n_former), len(proposed)))
        accepted: list[int] = []
        for i in range(len(proposed)):
            if n_former + len(accepted) == number:
                break
            column = new[: len(accepted), i]
            present = H[i, i] - column @ column
            if present <= draws[i] * residuals[i] or present <= 0:
                continue
            row = H[i] - column @ new[: len(accepted)]
            new[len(accepted)] = row / np.sqrt(present)
            accepted.append(i)
        self.indices += [int(proposed[i]) for i in accepted]
        factor = np.zeros((len(self), len(self)))
        factor[:n_former, :n_former] = self._factor
        factor[n_former:, :n_former] = above[:, accepted].T
        factor[n_former:, n_former:] = np.tril(new[: len(accepted), accepted].T)
        self._factor = factor

    def residuals(self, diagonal: Floats, workers: Workers) -> Floats:
        """Return the squared distances of the images of all rows from the span of the pivots."""
        source, rows = self._source, np.array(self.indices, dtype=np.intp)
        inverse = linalg.solve_triangular(self._factor, np.eye(len(rows)), lower=True)
        inverse = inverse.astype(source.dtype)

        def part(columns: slice) -> Floats:
            values = np.empty((len(rows), columns.stop - columns.start), dtype=source.dtype)
            source.fill(rows, columns, values)
            z = inverse @ values
            return np.einsum("ij,ij->j", z, z)

        width = min(source.strip_width, _STRIP)
        parts = workers.map(part, tile_slices(source.n_samples, width))
        return np.clip(diagonal - np.concatenate(list(parts)), 0, None)


def landmark_start(
    source: GramSource, n_components: int, indices: Indices, workers: Workers = SERIAL
) -> LandmarkStart:
    """Compute components by Rayleigh–Ritz in the leading directions of the landmarks."""
    gram = source.submatrix(indices, indices).astype(np.float64)
    if not np.isfinite(gram).all():
        raise InvalidInput(NOT_FINITE)
    noise = float(np.finfo(source.dtype).eps * np.abs(gram).max())
    basis = _leading_directions(gram, n_components, noise)
    # The last row gives the inner products with the mean of the landmarks.
    landmark_mean = np.full((1, len(gram)), 1 / len(gram))
    weights = np.vstack([basis, landmark_mean]).astype(source.dtype)
    products = _combine_rows(source, weights, indices, workers)
    if not np.isfinite(products).all():
        raise InvalidInput(NOT_FINITE)
    reduced, means = products[:-1], products[:-1].mean(axis=1, dtype=np.float64)
    reduced -= means[:, None].astype(source.dtype)
    # Of all rows from the affine span of the landmarks, in which the directions are a basis.
    distances = source.diagonal() - 2 * products[-1] + gram.mean()
    shifts = (means - basis @ gram.mean(axis=1)).astype(source.dtype)
    distances -= np.einsum("ij,ij->j", reduced, reduced) + 2 * shifts @ reduced + shifts @ shifts
    squared = _row_gram(reduced, workers)
    values, T = np.zeros(n_components), np.zeros((n_components, len(basis)))
    if len(basis):
        # With fewer directions than components, the remaining eigenvalues are zero.
        ritz_values, rotation = rayleigh_ritz(np.eye(len(basis)), squared)
        number = len(ritz_values)
        values[:number], T[:number] = ritz_values[:n_components], rotation[:n_components]
    coefficients, T = ((T @ basis).astype(source.dtype), T.astype(source.dtype))
    return LandmarkStart(
        indices, coefficients, T @ reduced, values, basis, reduced, np.abs(distances)
    )


def start_bytes(problem: Problem, number: int, n_directions: int) -> int:
    """Return the memory of a start besides a tile: kernel matrices of landmarks, projections."""
    return 4 * 8 * number * number + n_directions * problem.row_bytes


def _combine_rows(source: GramSource, basis: Floats, indices: Indices, workers: Workers) -> Floats:
    """Return basis · K[indices, :], computed by strips."""
    if isinstance(source, DistributedSource):
        return source.combine_rows(basis, indices)
    combined = np.empty((len(basis), source.n_samples), dtype=source.dtype)

    def combine(columns: slice) -> None:
        values = workers.scratch((len(indices), columns.stop - columns.start), source.dtype)
        source.fill(indices, columns, values)
        np.matmul(basis, values, out=combined[:, columns])

    # A strip takes no more memory than a tile.
    width = min(max(source.side**2 // len(indices), 1), source.side)
    workers.each(combine, tile_slices(source.n_samples, width))
    return combined


def _leading_directions(K: Floats, n_components: int, noise: float) -> Floats:
    """Return leading components of the landmarks alone, as coefficients with zero row sums.

    They are orthonormal in feature space and ordered by decreasing variance. Several times as many
    as the components wanted are enough; using all directions would gain little for its cost. Of
    many landmarks they are approximated by subspace iterations. Directions without more variance
    than the noise of the kernel values are dropped.
    """
    number = DIRECTIONS_PER_COMPONENT * n_components
    N = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    N = (N + N.T) / 2
    last = len(N) - 1
    if len(N) > _LANDMARKS_PER_DIRECTION * number:
        subspace = np.random.default_rng(0).normal(size=(len(N), number))
        for _ in range(_SUBSPACE_ITERATIONS):
            subspace = linalg.qr(N @ subspace, mode="economic")[0]
        lengths, U = linalg.eigh(subspace.T @ (N @ subspace))
        U = subspace @ U
    else:
        lengths, U = linalg.eigh(N, subset_by_index=[max(0, last + 1 - number), last])
    # Small directions amplify rounding errors; as many as components are needed.
    needed = float(lengths[-n_components:][0])
    kept = lengths > max(min(_DROP * float(lengths[-1]), needed / 2), _NOISE * noise)
    directions = (U[:, kept] / np.sqrt(lengths[kept])).T[::-1]
    # The row sums are zero up to rounding.
    return directions - directions.mean(axis=1, keepdims=True)


def _row_gram(rows: Floats, workers: Workers) -> Floats:
    """Return rows times their transpose, by strips, in the precision of the rows."""
    total = np.zeros((len(rows), len(rows)))

    def part(columns: slice) -> Floats:
        return rows[:, columns] @ rows[:, columns].T.copy()

    for product in workers.map(part, tile_slices(rows.shape[1], _STRIP)):
        total += product
    return (total + total.T) / 2

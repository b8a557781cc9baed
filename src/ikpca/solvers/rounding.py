"""Rounding errors of kernel values, estimated on a sample of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy import sparse

from ikpca.gram import ComputedGram, cross_gram, full_matrix, tile_slices
from ikpca.gram.lazy_rows import release_pages
from ikpca.kernels import (
    FeatureSplit,
    Floats,
    Gaussian,
    Indices,
    Kernel,
    Rows,
    mean_row,
    squared_norms,
)

#: Rows of the sample that are drawn uniformly, and entries of them, which limits wide rows.
_UNIFORM_ROWS, _ENTRIES = 256, 2**18
#: Rows with the largest rounding errors, per row that is drawn uniformly.
_LARGEST_SHARE = 1 / 4
#: Vectors and steps of the power iterations for a spectral norm.
_POWER_VECTORS, _POWER_STEPS = 8, 6


@np.errstate(over="ignore", invalid="ignore")
def value_sizes(kernel: Kernel, X: Rows) -> Floats:
    """Return numbers to which the rounding errors of kernel values of each row are proportional.

    The exponents of a Gaussian kernel are differences of squared norms; dense rows are shifted
    first, here to the median of a few. Other kernels have rounding errors proportional to k(x, x).
    """
    is_gaussian, origin = isinstance(kernel, Gaussian), None
    if is_gaussian and not sparse.issparse(X):
        origin = FeatureSplit.common_values(X[FeatureSplit.sample_indices(X.shape[0])])
    sizes = np.empty(X.shape[0])
    for strip in tile_slices(X.shape[0]):
        rows = X[strip] if origin is None else X[strip] - origin
        sizes[strip] = squared_norms(rows) if is_gaussian else np.abs(kernel.diagonal(rows))
        release_pages(X)
    return sizes


class RoundingSample:
    """Rows drawn uniformly, and last the rows with the largest rounding errors.

    Clusters of many rows are represented in the first part. The errors of smaller ones are bounded
    by those of the second part.

    Parameters
    ----------
    kernel : Kernel
    sizes : ndarray of shape (l,)
        As ``value_sizes`` returns them.
    n_features : int
    take : callable
        Returns the rows of some indices.
    seed : int
    """

    def __init__(
        self,
        kernel: Kernel,
        sizes: Floats,
        n_features: int,
        take: Callable[[Indices], Rows],
        seed: int,
    ) -> None:
        n_samples, wanted = len(sizes), min(_UNIFORM_ROWS, max(16, _ENTRIES // n_features))
        number = min(wanted, n_samples)
        rng = np.random.default_rng([seed, 3])
        uniform = rng.choice(n_samples, number, replace=False)
        rest = np.setdiff1d(np.arange(n_samples), uniform, assume_unique=True)
        n_largest = min(int(_LARGEST_SHARE * number), len(rest))
        largest = rest[np.argsort(sizes[rest])[len(rest) - n_largest :]]
        self.kernel, self.rows = kernel, take(np.concatenate([uniform, largest]))
        self.n_uniform, self.n_samples = number, n_samples

    @cached_property
    def K(self) -> Floats:
        """Kernel matrix in double precision."""
        return self._gram(self.rows.astype(np.float64))

    @cached_property
    def largest_eigenvalue(self) -> float:
        """Estimate of λ₁ of all rows, rather too small.

        It is at least that of the sample, and the variance of all rows along the first component of
        one half of the sample, which the other half estimates.
        """
        of_sample, half = spectral_norm(centered(self.K)), self.n_uniform // 2
        if self.n_uniform == self.n_samples:
            return of_sample
        K = centered(self.K[: self.n_uniform, : self.n_uniform])
        values, vectors = np.linalg.eigh(K[:half, :half])
        if values[-1] <= 0:
            return of_sample
        variances = np.square(K[half:, :half] @ vectors[:, -1]) / values[-1]
        # A few rows far from the others make their mean too large.
        mean = float(variances.mean() - 2 * variances.std() / np.sqrt(len(variances)))
        return max(of_sample, self.n_samples * mean)

    @cached_property
    def single_error(self) -> float:
        """Estimate of ‖K − K₃₂‖ of all rows, K₃₂ computed in single precision.

        Centering and products in single precision have errors in proportion to ‖K‖.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            error = self.K - self._gram(self.rows.astype(np.float32))
        # gamma, or rows, may be too large for single precision.
        if not np.isfinite(error).all():
            return np.inf
        uniform = spectral_norm(self.K[: self.n_uniform, : self.n_uniform])
        uncentered = self.n_samples / self.n_uniform * uniform
        return self.norm(error) + float(np.finfo(np.float32).eps) * uncentered

    def norm(self, error: Floats) -> float:
        """Return an estimate, rather too large, of ‖E'‖ of all rows from E of the sample.

        Errors of pairs grow with the number of rows, those of the diagonal do not.
        """
        pairs = error - np.diag(np.diag(error))
        uniform = pairs[: self.n_uniform, : self.n_uniform]
        frequent = self.n_samples / self.n_uniform * spectral_norm(centered(uniform))
        if self.n_uniform < self.n_samples:
            uniform[...] = 0
        else:
            pairs = np.zeros_like(pairs)
        return frequent + spectral_norm(centered(pairs)) + float(np.abs(np.diag(error)).max())

    def _gram(self, rows: Rows) -> Floats:
        """Compute K with the same operands as for all rows."""
        if sparse.issparse(rows):
            return cross_gram(self.kernel, rows, rows).astype(np.float64)
        split = FeatureSplit.all_dense(mean_row(rows[: self.n_uniform]))
        return full_matrix(ComputedGram(self.kernel, rows, split=split)).astype(np.float64)


def centered(K: Floats) -> Floats:
    """Return the centered kernel matrix."""
    return K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()


def spectral_norm(matrix: Floats) -> float:
    """Return the largest singular value, up to a few percent, by power iterations."""
    vectors = np.random.default_rng(0).normal(size=(len(matrix), min(_POWER_VECTORS, len(matrix))))
    for _ in range(_POWER_STEPS):
        vectors = matrix @ np.linalg.qr(vectors)[0]
    return float(np.linalg.norm(vectors, 2))

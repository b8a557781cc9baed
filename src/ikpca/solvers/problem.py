"""Eigenproblem of a fit: kernel matrix, memory budget, and rounding errors on a sample of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self, TypeAlias, TypeVar

import numpy as np
from scipy import sparse

from ikpca.errors import InvalidInput
from ikpca.gram import Budget, ComputedGram, GramSource, cross_gram, full_matrix, tile_slices
from ikpca.gram.lazy_rows import LazyRows
from ikpca.gram.resources import SERIAL, Workers, memory_map, release_pages
from ikpca.gram.sources import (
    TILE,
    CachedGram,
    DistributedSource,
    cache_source,
    is_symmetric,
    plan_source,
)
from ikpca.kernels import (
    Cosine,
    FeatureSplit,
    Floats,
    Gaussian,
    Indices,
    Kernel,
    Laplacian,
    Pairwise,
    Rows,
    squared_norms,
)

#: Rows of the sample that are drawn uniformly, and entries of them, which limits wide rows.
_UNIFORM_ROWS, _ENTRIES = 256, 2**18
#: Entries of a strip of rows.
_STRIP_ENTRIES = 2**18
#: Rows with the largest rounding errors, per row that is drawn uniformly.
_LARGEST_SHARE = 1 / 4
#: Vectors and steps of the power iterations for a spectral norm.
_POWER_VECTORS, _POWER_STEPS = 8, 6


def _strips(X: Rows) -> Iterator[slice]:
    """Return strips of rows whose copies take little memory, also for wide rows."""
    return tile_slices(X.shape[0], max(1, min(TILE, _STRIP_ENTRIES // max(1, X.shape[1]))))


class RoundingSample:
    """Rows drawn uniformly, and last the rows with the largest rounding errors.

    Clusters of many rows are represented in the first part. The errors of smaller ones are bounded
    by those of the second part.
    """

    def __init__(self, problem: Problem) -> None:
        assert problem.kernel is not None
        n_samples, n_features = problem.n_samples, int(problem.X.shape[1])
        n_rows = min(_UNIFORM_ROWS, max(16, _ENTRIES // n_features))
        number = min(n_rows, n_samples)
        rng = np.random.default_rng([problem.seed, 3])
        uniform = rng.choice(n_samples, number, replace=False)
        rest = np.setdiff1d(np.arange(n_samples), uniform, assume_unique=True)
        n_largest = min(int(_LARGEST_SHARE * number), len(rest))
        largest = rest[np.argsort(problem.value_sizes[rest])[len(rest) - n_largest :]]
        self.kernel = problem.kernel
        self.rows = problem.take_rows(np.concatenate([uniform, largest]))
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
        """Estimate of ‖K − K₃₂‖ of all rows, K₃₂ computed in single precision."""
        with np.errstate(over="ignore", invalid="ignore"):
            error = self.K - self._gram(self.rows.astype(np.float32))
        # gamma, or rows, may be too large for single precision.
        return self.norm(error) if np.isfinite(error).all() else np.inf

    def relative_error(self, error: float, tol: float) -> float | None:
        """Return an error ‖E‖ relative to λ₁; None if it is too large for ``tol``."""
        largest = self.largest_eigenvalue
        too_large = error > _ROUNDING_FRACTION * tol * largest or largest == 0
        return None if too_large else error / largest

    @property
    def uncentered_norm(self) -> float:
        """Estimate of ‖K‖ of all rows."""
        uniform = spectral_norm(self.K[: self.n_uniform, : self.n_uniform])
        return self.n_samples / self.n_uniform * uniform

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
        split = FeatureSplit.all_dense(rows[: self.n_uniform])
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


Result = TypeVar("Result")

#: Largest error of single precision as a fraction of the tolerance.
_ROUNDING_FRACTION = 0.05
#: Least tolerance for which single precision is used, 50 times its machine epsilon.
_MIN_SINGLE_TOL = 50 * float(np.finfo(np.float32).eps)
#: Largest error of rows in single precision, relative to λ₁.
_MAX_SINGLE_ERROR = 2e-5
#: Largest ratio of k(x, x) of rows in single precision to its median; beyond it only components of
#: the largest rows would be resolved.
_MAX_RANGE = 1e4
#: Rounding error of a kernel value, relative to k(x, x), in units of machine epsilon.
_VALUE_ROUNDING = 4
#: Rows of a memory map that are read at a time; the system may load 2 MB for each of them.
_MAPPED_ROWS = 256
#: Operations of one kernel value besides its inner product: of a matrix product, of a block, and
#: of a call of Python.
_FINISH_COST, _BLOCK_COST, _CALL_COST = 60, 200, 100_000

#: Maps the source of K to the source of the matrix to decompose.
GramTransform: TypeAlias = Callable[[GramSource, Workers], GramSource]


@dataclass(frozen=True)
class Plan:
    """Sizes of a fit, chosen once for its memory budget and stored with its checkpoints.

    Parameters
    ----------
    n_bytes : int
        Memory that the solver needs besides the tiles of K.
    keep : {"tiles", "compact", "matrix"} or None
        Form in which K is cached as far as memory allows: tiles for products, in full precision or
        in 16 bits, the matrix for rows in random order; None if K is computed again.
    side : int, optional
        Side of the tiles of K; chosen when the problem is opened.
    n_landmarks, n_directions : int
        Landmarks of a start, and their directions in the basis.
    n_columns : int
        Columns of the basis before a restart, directions included.
    n_blocks : int
        Blocks by which a pass extends the basis.
    """

    n_bytes: int
    keep: Literal["tiles", "compact", "matrix"] | None = None
    side: int | None = None
    n_landmarks: int = 0
    n_directions: int = 0
    n_columns: int = 0
    n_blocks: int = 1


@dataclass(frozen=True)
class Problem:
    """Matrix to decompose.

    Parameters
    ----------
    kernel : Kernel or None
        None for a precomputed matrix.
    X : rows
        Training rows, or the matrix.
    budget : Budget
    n_threads : int
    copy_X : bool
        True if X is a copy, which counts as memory of the fit.
    seed : int
        Seed of landmarks, of the initialization and of the order of the patterns.
    start : ndarray of shape (l, columns), optional
        Projections of the training rows by an earlier model.
    transform : callable, optional
        Maps K to the matrix to decompose; K itself by default.
    engine : DistributedSource, optional
        Kernel matrix that other processes compute; by default, this process does.
    exact : Problem, optional
        The same problem in double precision, if the rows were rounded to single precision.
    error : float
        Estimated error ‖K − K₃₂‖/λ₁ of these rows.
    """

    kernel: Kernel | None
    X: Rows
    budget: Budget
    n_threads: int = 1
    copy_X: bool = False
    seed: int = 0
    start: Floats | None = None
    transform: GramTransform | None = None
    engine: DistributedSource | None = None
    exact: Problem | None = None
    error: float = 0.0

    @property
    def n_samples(self) -> int:
        """Number of training rows."""
        return int(self.X.shape[0])

    @property
    def row_bytes(self) -> int:
        """Bytes of one vector over the training rows."""
        return self.n_samples * int(self.X.dtype.itemsize)

    @contextmanager
    def open(self, plan: Plan) -> Iterator[tuple[GramSource, Workers]]:
        """Open the matrix and the threads that compute it, within the budget."""
        if self.engine is not None:
            yield self.engine, SERIAL
            return
        if self.kernel is not None:
            check_kernel_values(self.kernel, self.X)
        fixed, X = plan.n_bytes + (_owned_bytes(self.X) if self.copy_X else 0), self.X
        if self.kernel is None and not is_symmetric(X):
            X = (X + X.T) / 2
            fixed += _owned_bytes(X)
        computed, tiles = plan_source(self.kernel, X, self.budget, fixed, self.n_threads, plan.side)
        with Workers(tiles.threads) as workers:
            source: GramSource = computed
            if self.kernel is not None and plan.keep is not None:
                source = cache_source(source, plan.keep, tiles.cache_bytes, workers)
            if self.transform is not None:
                source = self.transform(source, workers)
            yield source, workers

    def map_rows(
        self,
        function: Callable[[Rows, int], Result],
        strip: int,
        workers: Workers,
        indices: Indices | None = None,
    ) -> Iterable[Result]:
        """Apply a function to strips of rows and the indices of their first rows, in order.

        An engine applies it to its row blocks. With ``indices``, which an engine does not support,
        the strips consist of these rows, and the first row is counted among them.
        """
        if self.engine is not None:
            return self.engine.map_rows(function)

        def apply(part: slice) -> Result:
            rows = self.X[part if indices is None else indices[part]]
            result = function(rows, part.start)
            release_pages(self.X)
            return result

        number = self.n_samples if indices is None else len(indices)
        return workers.map(apply, tile_slices(number, strip))

    def take_rows(self, indices: Indices) -> Rows:
        """Return copies of some rows; single rows of a memory map load much more than they have."""
        if memory_map(self.X) is None:
            return self.X[indices]
        parts = []
        for part in tile_slices(len(indices), _MAPPED_ROWS):
            parts.append(self.X[indices[part]])
            release_pages(self.X)
        return np.concatenate(parts)

    def in_single_precision(self, tol: float) -> Self:
        """Return the problem in single precision if its error is small enough for ``tol``.

        Single precision halves the time of products and exponentials. The error is too large for
        rows far from the origin, and for kernels whose values centering cancels almost completely.
        """
        X, kernel = self.X, self.kernel
        in_memory = isinstance(X, np.ndarray) and memory_map(X) is None
        is_double = in_memory and X.dtype == np.float64
        # Products are rounded, too.
        if not is_double or not isinstance(kernel, Gaussian) or tol <= _MIN_SINGLE_TOL:
            return self
        check_kernel_values(kernel, X)
        error = self.rounding_sample.relative_error(self.rounding_sample.single_error, tol)
        exponent = 4 * kernel.gamma * float(self.value_sizes.max())
        if error is None or exponent > 1 / np.finfo(np.float32).eps:
            return self
        single = X.astype(np.float32)
        budget = replace(self.budget, used=self.budget.used + single.nbytes)
        return replace(self, X=single, budget=budget, exact=self, error=error)

    def compact_error(self, tol: float) -> float | None:
        """Return the error ‖K − K₁₆‖/λ₁ of rounding to 16 bits; None if too large for ``tol``."""
        if self.engine is not None or self.transform is not None:
            return None
        if not isinstance(self.kernel, Gaussian | Laplacian):
            return None
        sample, levels = self.rounding_sample, CachedGram.LEVELS
        return sample.relative_error(
            sample.norm(sample.K - np.rint(sample.K * levels) / levels), tol
        )

    def in_sufficient_precision(self) -> Self:
        """Return the problem, with rows in double precision if single precision is not enough."""
        X = self.X
        if not self._has_known_rounding or X.dtype == np.float64:
            return self
        if self._fits_single_precision():
            return self
        if sparse.issparse(X) or (isinstance(X, np.ndarray) and memory_map(X) is None):
            used = self.budget.used + (_owned_bytes(X) if self.copy_X else 0)
            rows = X.astype(np.float64)
            budget = replace(self.budget, used=used + _owned_bytes(rows))
            return replace(self, X=rows, budget=budget, copy_X=False)
        return replace(self, X=LazyRows(X, np.float64))

    def _fits_single_precision(self) -> bool:
        assert self.kernel is not None
        try:
            check_kernel_values(self.kernel, self.X)
        except InvalidInput:
            return False
        sizes = self.value_sizes
        if not isinstance(self.kernel, Gaussian) and sizes.max() > _MAX_RANGE * np.median(sizes):
            return False
        sample = self.rounding_sample
        # Centering and products have errors in proportion to ‖K‖.
        error = sample.single_error + float(np.finfo(np.float32).eps) * sample.uncentered_norm
        return error <= _MAX_SINGLE_ERROR * sample.largest_eigenvalue

    @property
    def rounding_error(self) -> float:
        """Estimate of ‖K − K̃‖ for the kernel values K̃ in the precision of the rows."""
        if not self._has_known_rounding:
            return 0.0
        if self.X.dtype == np.float32:
            return self.rounding_sample.single_error
        eps, kernel, sizes = float(np.finfo(np.float64).eps), self.kernel, self.value_sizes
        if isinstance(kernel, Gaussian):
            return eps * (1 + 4 * kernel.gamma * float(sizes.max())) * len(sizes)
        total = float(sizes.sum())
        if isinstance(kernel, Cosine):
            # Unit rows are rounded before the origin is subtracted.
            total += np.sqrt(len(sizes) * total)
        return _VALUE_ROUNDING * eps * total

    @property
    def _has_known_rounding(self) -> bool:
        """True for a kernel of rows in this process that is not a function of pairs."""
        if self.kernel is None or self.engine is not None or self.transform is not None:
            return False
        return not isinstance(self.kernel, Pairwise)

    @cached_property
    def value_sizes(self) -> Floats:
        """Numbers to which the rounding errors of kernel values of each row are proportional.

        The exponents of a Gaussian kernel are differences of squared norms; dense rows are shifted
        first, here to the median of a few. Other kernels have rounding errors proportional to
        k(x, x).
        """
        assert self.kernel is not None
        X, is_gaussian, origin = self.X, isinstance(self.kernel, Gaussian), None
        if is_gaussian and not sparse.issparse(X):
            origin = FeatureSplit.common_values(X)
        sizes = np.empty(X.shape[0])
        with np.errstate(over="ignore", invalid="ignore"):
            for strip in _strips(X):
                rows = X[strip] if origin is None else X[strip] - origin
                sizes[strip] = (
                    squared_norms(rows) if is_gaussian else np.abs(self.kernel.diagonal(rows))
                )
                release_pages(X)
        return sizes

    @cached_property
    def rounding_sample(self) -> RoundingSample:
        """Rows on which rounding errors are estimated."""
        return RoundingSample(self)

    @property
    def entry_cost(self) -> float:
        """Estimated number of operations of one kernel value."""
        if isinstance(self.kernel, Pairwise):
            return _CALL_COST
        n_features = int(self.X.shape[1])
        if isinstance(self.kernel, Gaussian):
            return 2 * n_features + _FINISH_COST
        return 20 * n_features + _BLOCK_COST


def _owned_bytes(X: Rows) -> int:
    """Return the bytes of rows in memory; a copy of rows on disk does not exist."""
    if sparse.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes) if isinstance(X, np.ndarray) and X.flags.owndata else 0


def check_kernel_values(kernel: Kernel, X: Rows) -> None:
    """Reject rows whose k(x, x) is not finite or overflows when summed and squared."""
    check_exponents(kernel, X)
    largest = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for strip in _strips(X):
            largest = max(largest, float(np.abs(kernel.diagonal(X[strip])).max()))
            release_pages(X)
            if not largest <= float(np.sqrt(np.finfo(X.dtype).max)) / X.shape[0]:
                raise InvalidInput(
                    f"k(x, x) is as large as {largest:.3g} under {kernel!r}: sums of kernel values "
                    f"overflow {X.dtype}; scale X, or choose a smaller gamma or degree."
                )


def check_exponents(kernel: Kernel, X: Rows, origin: Floats | None = None) -> None:
    """Reject rows so far apart that rounding errors exceed the width of a Gaussian kernel.

    Exponents are differences of squared norms; beyond this limit even k(x, x) differs from 1.
    Dense rows are compared with ``origin``, the first row by default; CSR rows are never shifted.
    """
    if not isinstance(kernel, Gaussian):
        return
    limit = 1 / float(np.finfo(X.dtype).eps)
    origin = X[:1] if origin is None else origin
    if isinstance(X, np.ndarray) and X.size < _STRIP_ENTRIES:
        # Bounds the distances of most small batches, in less time than the distances themselves.
        difference = X - origin
        reach = max(float(difference.max()), -float(difference.min()))
        if kernel.gamma * X.shape[1] * reach * reach <= limit:
            return
    for strip in _strips(X):
        part = X[strip] if sparse.issparse(X) else X[strip] - origin
        exponent = kernel.gamma * float(squared_norms(part).max())
        release_pages(X)
        if not exponent <= limit:
            raise InvalidInput(
                f"rows of X are so far apart that gamma times their squared distance is "
                f"{exponent:.3g}, more than {X.dtype} resolves under {kernel!r}; scale X, or pass "
                "gamma='scale'."
            )

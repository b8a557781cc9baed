"""Eigenproblem of a fit: the kernel matrix of the training rows within a memory budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from scipy import sparse

from ikpca.errors import InvalidInput
from ikpca.gram import (
    SERIAL,
    Budget,
    CenteredGram,
    CompactGram,
    ComputedGram,
    GramSource,
    Workers,
    cross_gram,
    full_matrix,
    memory_map,
    plan_source,
    release_pages,
    tile_slices,
)
from ikpca.kernels import (
    FeatureSplit,
    Floats,
    Gaussian,
    Indices,
    Kernel,
    Laplacian,
    MatmulKernel,
    Pairwise,
    Rows,
    squared_norms,
)
from ikpca.solvers.coefficient_store import CoefficientStore, LocalStore

Result = TypeVar("Result")

#: Number of rows on which the error of single precision is measured.
_ROUNDING_SAMPLE = 256
#: Largest error of single precision as a fraction of the tolerance.
_ROUNDING_FRACTION = 0.05
#: Rows of a memory map that are read at a time; the system may load 2 MB for each of them.
_MAPPED_ROWS = 256
#: Operations of one kernel value besides its inner product: of a matrix product, of a block, and
#: of a call of Python.
_FINISH_COST, _BLOCK_COST, _CALL_COST = 60, 200, 100_000

#: Maps the source of K to the source of the matrix to decompose.
GramTransform: TypeAlias = Callable[[GramSource, Workers], GramSource]


@dataclass(frozen=True)
class MemoryNeeds:
    """Memory that a solver needs besides the tiles of K.

    Parameters
    ----------
    n_bytes : int
    keep : {"tiles", "compact", "matrix"} or None
        Form in which K is cached as far as memory allows: tiles for products, in full precision or
        in 16 bits, the matrix for rows in random order; None if K is computed again.
    own_vectors, whole_vectors : int
        Vectors over its own rows and over all rows that a worker of an engine holds.
    """

    n_bytes: int
    keep: Literal["tiles", "compact", "matrix"] | None = None
    own_vectors: int = 0
    whole_vectors: int = 0


class Engine(Protocol):
    """Engine that computes kernel values and holds coefficients outside of this process."""

    @property
    def block_size(self) -> int:
        """Fastest number of patterns per block of a Hebbian pass."""

    def open_gram(self, kernel: Kernel, budget: Budget, needs: MemoryNeeds) -> GramSource:
        """Open the source of K."""

    def open_store(self, gram: CenteredGram, rows: Floats, products: Floats) -> CoefficientStore:
        """Open the coefficient store of that source."""

    def map_rows(self, function: Callable[[Rows, int], Result]) -> Iterable[Result]:
        """Apply a function to blocks of rows and the indices of their first rows, in order."""


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
    engine : Engine, optional
        Computes in this process by default.
    """

    kernel: Kernel | None
    X: Rows
    budget: Budget
    n_threads: int = 1
    copy_X: bool = False
    seed: int = 0
    start: Floats | None = None
    transform: GramTransform | None = None
    engine: Engine | None = None

    @property
    def n_samples(self) -> int:
        """Number of training rows."""
        return int(self.X.shape[0])

    @property
    def row_bytes(self) -> int:
        """Bytes of one vector over the training rows."""
        return self.n_samples * int(self.X.dtype.itemsize)

    @contextmanager
    def open(self, needs: MemoryNeeds) -> Iterator[tuple[GramSource, Workers]]:
        """Open the matrix and the threads that compute it, within the budget."""
        if self.engine is not None and self.kernel is not None:
            yield self.engine.open_gram(self.kernel, self.budget, needs), SERIAL
            return
        if self.kernel is not None:
            check_kernel_values(self.kernel, self.X)
        keep = None if self.kernel is None else needs.keep
        fixed = needs.n_bytes + (_owned_bytes(self.X) if self.copy_X else 0)
        planned = plan_source(self.kernel, self.X, self.budget, fixed, self.n_threads)
        with Workers(planned.threads) as workers:
            source = planned.source
            cached = source if keep is None else planned.with_cache(keep, workers)
            yield self._transformed(cached, workers), workers

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

    def _transformed(self, source: GramSource, workers: Workers) -> GramSource:
        return source if self.transform is None else self.transform(source, workers)

    def open_store(self, gram: CenteredGram, rows: Floats, products: Floats) -> CoefficientStore:
        """Open the coefficient store of the Hebbian solvers."""
        if self.engine is not None:
            return self.engine.open_store(gram, rows, products)
        return LocalStore(gram, rows, products)

    def in_single_precision(self, tol: float) -> tuple[Self, float] | None:
        """Return the problem in single precision and its error ‖K − K₃₂‖/λ₁, estimated on a sample.

        Single precision halves the time of products and exponentials. The result is None if the
        error is too large for ``tol``: for rows far from the origin, and for kernels whose values
        centering cancels almost completely.
        """
        X, kernel = self.X, self.kernel
        in_memory = isinstance(X, np.ndarray) and memory_map(X) is None
        is_double = in_memory and X.dtype == np.float64
        if not is_double or not isinstance(kernel, MatmulKernel) or tol <= np.finfo(X.dtype).eps:
            return None
        check_kernel_values(kernel, X)
        try:
            # Also for rows that are not in the sample.
            check_kernel_values(kernel, X.astype(np.float32))
        except InvalidInput:
            return None
        rows = self._sample()
        K = _sample_gram(kernel, rows)
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = _sample_gram(kernel, rows.astype(np.float32))
        # gamma may be too large for single precision.
        if not np.isfinite(rounded).all():
            return None
        error, largest = np.linalg.norm(K - rounded, 2), _largest_eigenvalue(K)
        if error > _ROUNDING_FRACTION * tol * largest or largest == 0:
            return None
        single = X.astype(np.float32)
        budget = replace(self.budget, used=self.budget.used + single.nbytes)
        return replace(self, X=single, budget=budget), float(error / largest)

    def compact_error(self, tol: float) -> float | None:
        """Return the error ‖K − K₁₆‖/λ₁ of rounding to 16 bits; None if too large for ``tol``.

        It is that of a sample, and smaller for more rows unless they have few distinct distances.
        """
        if self.engine is not None or self.transform is not None:
            return None
        if not isinstance(self.kernel, Gaussian | Laplacian):
            return None
        rows = self._sample()
        K = cross_gram(self.kernel, rows, rows).astype(np.float64)
        error = _largest_eigenvalue(K - np.rint(K * CompactGram.LEVELS) / CompactGram.LEVELS)
        largest = _largest_eigenvalue(K)
        if error > _ROUNDING_FRACTION * tol * largest or largest == 0:
            return None
        return error / largest

    @property
    def entry_cost(self) -> float:
        """Estimated number of operations of one kernel value."""
        if isinstance(self.kernel, Pairwise):
            return _CALL_COST
        n_features = int(self.X.shape[1])
        if isinstance(self.kernel, MatmulKernel):
            return 2 * n_features + _FINISH_COST
        return 20 * n_features + _BLOCK_COST

    def _sample(self) -> Rows:
        """Return the rows on which errors of rounding are measured."""
        number = min(_ROUNDING_SAMPLE, self.n_samples)
        rng = np.random.default_rng([self.seed, 3])
        return self.take_rows(np.sort(rng.choice(self.n_samples, number, replace=False)))


def _owned_bytes(X: Rows) -> int:
    """Return the bytes of rows in memory; a copy of rows on disk does not exist."""
    if sparse.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes) if isinstance(X, np.ndarray) and X.flags.owndata else 0


def _sample_gram(kernel: Kernel, rows: Floats) -> Floats:
    """Compute K of the sample with the same operands as for all rows."""
    source = ComputedGram(kernel, rows, split=FeatureSplit.from_rows(rows))
    return full_matrix(source).astype(np.float64)


def _largest_eigenvalue(K: Floats) -> float:
    """Return the largest eigenvalue of K', in magnitude."""
    centered = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
    return float(np.linalg.norm(centered, 2))


def check_kernel_values(kernel: Kernel, X: Any) -> None:
    """Reject rows whose k(x, x) is not finite or overflows when summed and squared."""
    check_distances(kernel, X)
    largest = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for strip in tile_slices(X.shape[0]):
            largest = max(largest, float(np.abs(kernel.diagonal(X[strip])).max()))
            release_pages(X)
            if not largest <= float(np.sqrt(np.finfo(X.dtype).max)) / X.shape[0]:
                raise InvalidInput(
                    f"k(x, x) is as large as {largest:.3g} under {kernel!r}: sums of kernel values "
                    f"overflow {X.dtype}; scale X, or choose a smaller gamma or degree."
                )


def check_distances(kernel: Kernel, X: Any, origin: Any = None) -> None:
    """Reject rows so far apart that rounding errors exceed the width of a Gaussian kernel.

    Exponents are differences of squared norms; beyond this limit even k(x, x) differs from 1.
    Dense rows are compared with ``origin``, the first row by default; CSR rows are never shifted.
    """
    if not isinstance(kernel, Gaussian):
        return
    limit = 1 / float(np.finfo(X.dtype).eps)
    origin = X[:1] if origin is None else origin
    for strip in tile_slices(X.shape[0]):
        exponent = kernel.gamma * _distance_bound(X[strip], origin)
        if not exponent <= limit:
            part = X[strip] if sparse.issparse(X) else X[strip] - origin
            exponent = kernel.gamma * float(squared_norms(part).max())
        release_pages(X)
        if not exponent <= limit:
            raise InvalidInput(
                f"rows of X are so far apart that gamma times their squared distance is "
                f"{exponent:.3g}, more than {X.dtype} resolves under {kernel!r}; scale X, or pass "
                "gamma='scale'."
            )


def _distance_bound(X: Rows, origin: Floats) -> float:
    """Return an upper bound of the squared distances from dense rows to an origin, in no memory."""
    if sparse.issparse(X):
        return np.inf
    width = float(max(X.max(), origin.max())) - float(min(X.min(), origin.min()))
    return X.shape[1] * width * width

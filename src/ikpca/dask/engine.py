"""Engine that runs a fit on a Dask cluster, and its coefficient store in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import ceil, sqrt
from typing import Any, TypeVar

import numpy as np
from dask import delayed

from ikpca.dask.gram import DaskGram, kernel_strip, multiply
from ikpca.errors import invalid_parameter
from ikpca.gram import Budget, CenteredGram
from ikpca.gram.memory import MIN_TILE_SIDE, plan_tiles
from ikpca.kernels import Floats, Indices, Kernel
from ikpca.solvers import Plan
from ikpca.solvers.coefficient_store import CoefficientStore

Result = TypeVar("Result")

#: Share of a worker's memory for rows, vectors and tiles; Python and Dask need the rest.
_MEMORY_SHARE = 0.6
#: Pairs of row blocks per worker in a product, so that workers finish at about the same time.
_PAIRS_PER_WORKER = 16
#: Patterns per block of a Hebbian pass, by the number of rows: each block has a fixed cost.
_BLOCK_SIZES = ((10_000, 1024), (0, 256))


class DaskStrip:
    """Rows K'[P, :] of the centered matrix, one task per row block."""

    def __init__(self, source: DaskGram, gram: CenteredGram, patterns: Indices) -> None:
        self._source = source
        self._means = gram.centering.column_means
        self._offsets = gram.means.row_means[patterns] - gram.dtype.type(gram.centering.grand_mean)
        rows = source.select(patterns)
        # Needed first, and small.
        self._square = source.submit(kernel_strip, rows, rows, source.side, priority=1)
        self._strips = source.strips(rows)
        self._patterns = patterns
        source.entries += len(patterns) * source.n_samples

    def columns(self, indices: Indices) -> Floats:
        """Return K'[P, P]; other columns are not needed."""
        assert indices is self._patterns
        K: Floats = self._source.client.gather(self._square)
        return K - self._means[indices] - self._offsets[:, None]

    def update(self, T: Floats, products: Floats, C: Floats) -> Floats:
        """Return T RK' + C K'[P, :]: workers multiply the strips, and this process centers."""
        futures = self._source.map(multiply, [C] * len(self._strips), self._strips, priority=1)
        updated = T @ products
        updated -= np.outer(C.sum(axis=1), self._means) + (C @ self._offsets)[:, None]
        updated += np.hstack(self._source.client.gather(futures))
        return updated

    def dot(self, V: Floats) -> Floats:
        """Return K'[P, :] V: workers multiply the strips by their rows of V."""
        parts = [V[part] for part in self._source.parts]
        futures = self._source.map(multiply, self._strips, parts, priority=1)
        product = np.sum(self._source.client.gather(futures), axis=0)
        return product - self._means @ V - np.outer(self._offsets, V.sum(axis=0))


class DaskStore(CoefficientStore):
    """Coefficient store in this process; workers compute the strips of upcoming blocks ahead."""

    def __init__(
        self, source: DaskGram, gram: CenteredGram, rows: Floats, products: Floats
    ) -> None:
        super().__init__(gram, rows, products)
        self._source = source
        self._strips: list[tuple[Indices, DaskStrip]] = []

    def project(self, patterns: Indices, upcoming: Sequence[Indices] = ()) -> tuple[Floats, Floats]:
        """Submit the tasks of all these blocks, then wait for K'[P, P]."""
        blocks = (patterns, *upcoming)
        self._strips = [(block, self._strip_of(block)) for block in blocks]
        return super().project(patterns)

    def _strip_of(self, patterns: Indices) -> DaskStrip:
        for known, strip in self._strips:
            if known is patterns:
                return strip
        return DaskStrip(self._source, self._gram, patterns)


def even_blocks(X: Any, number: int) -> Any:
    """Rechunk rows into blocks whose sizes differ by at most one."""
    stops = np.linspace(0, X.shape[0], min(number, X.shape[0]) + 1).astype(int)
    return X.rechunk((tuple(np.diff(stops).tolist()), (X.shape[1],)))


class DaskEngine:
    """Engine on the workers of a client.

    Products of pairs of row blocks are balanced by having many pairs (``pairs=True``); the Hebbian
    solvers use one block per worker, to have few tasks.
    """

    def __init__(self, client: Any, X: Any, *, pairs: bool) -> None:
        self._client = client
        self._n_workers = max(1, len(client.nthreads()))
        n_blocks = self._n_workers
        if pairs:
            n_blocks = max(n_blocks, ceil(sqrt(2 * _PAIRS_PER_WORKER * n_blocks)))
        self._X = even_blocks(X, n_blocks)
        self._source: DaskGram | None = None

    @property
    def block_size(self) -> int:
        """Number of patterns per block of a Hebbian pass."""
        return next(size for rows, size in _BLOCK_SIZES if self._X.shape[0] >= rows)

    def open_gram(self, kernel: Kernel, budget: Budget, plan: Plan) -> DaskGram:
        """Load and prepare the row blocks, within the memory of the workers."""
        own_rows = -(-int(self._X.shape[0]) // self._n_workers)
        vectors = plan.own_vectors * own_rows + plan.whole_vectors * int(self._X.shape[0])
        side = self._tile_side(kernel, budget, own_rows, vectors * self._X.dtype.itemsize)
        self._source = DaskGram(self._client, self._X, kernel, side)
        return self._source

    def open_store(self, gram: CenteredGram, rows: Floats, products: Floats) -> DaskStore:
        """Open the coefficient store of the source."""
        assert self._source is not None
        return DaskStore(self._source, gram, rows, products)

    def map_rows(self, function: Callable[[Floats, int], Result]) -> Iterable[Result]:
        """Apply a function to every row block, one task each; results arrive in order."""
        task, blocks = delayed(function, pure=False), self._X.to_delayed()[:, 0]
        starts = np.cumsum([0, *self._X.chunks[0][:-1]]).tolist()
        tasks = [task(block, start) for block, start in zip(blocks, starts, strict=True)]
        for future in self._client.compute(tasks):
            yield future.result()

    def _tile_side(self, kernel: Kernel, budget: Budget, own_rows: int, vectors: int) -> int:
        """Return the side of the tiles that the memory of the smallest worker allows."""
        item, n_features = self._X.dtype.itemsize, int(self._X.shape[1])
        # The rows, and their operands while they are prepared.
        fixed = 2 * own_rows * n_features * item + vectors
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [int(_MEMORY_SHARE * worker["memory_limit"]) for worker in workers
                  if worker["memory_limit"]]  # fmt: skip
        limits += [budget.available] if budget.explicit else []
        if not limits:
            return plan_tiles(budget, 0, lambda side: 0, 1).side

        def tile_bytes(side: int) -> int:
            tile = side * side * item + kernel.scratch_bytes(side, side, n_features, item)
            return tile + side * n_features * item

        available = min(limits)
        if fixed + tile_bytes(MIN_TILE_SIDE) > available:
            raise invalid_parameter(
                "client",
                f"{len(limits)} workers",
                f"rows and vectors of {fixed} bytes per worker leave no memory for tiles in the "
                f"{available} bytes that a worker may use",
                "start more workers, or workers with more memory",
            )
        return plan_tiles(Budget(available, explicit=True), fixed, tile_bytes, 1).side

"""Engine that runs a fit on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil, sqrt
from typing import Any

from ikpca.dask.gram import DaskGram
from ikpca.dask.store import DaskStore
from ikpca.errors import invalid_parameter
from ikpca.gram import COMPILER_BYTES, MIN_TILE_SIDE, Budget, CenteredGram, plan_tiles
from ikpca.kernels import Floats, Kernel

#: Share of a worker's memory for rows, vectors and tiles; Python and Dask need the rest.
_MEMORY_SHARE = 0.6
#: Largest share of the remaining memory for the compiler, which sparse features need.
_COMPILER_SHARE = 0.6
#: Pairs of row blocks per worker in a product, so that workers finish at about the same time.
_PAIRS_PER_WORKER = 16
#: Patterns per block of a Hebbian pass, by the number of rows: each block has a fixed cost.
_BLOCK_SIZES = ((100_000, 1024), (10_000, 512), (0, 256))


def even_blocks(X: Any, number: int) -> Any:
    """Rechunk rows into blocks whose sizes differ by at most one."""
    n_samples = int(X.shape[0])
    number = min(number, n_samples)
    sizes = tuple(n_samples // number + (i < n_samples % number) for i in range(number))
    return X.rechunk((sizes, (X.shape[1],)))


class DaskEngine:
    """Engine on the workers of a client.

    Parameters
    ----------
    client : distributed.Client
    X : dask.array.Array of shape (l, n_features)
    pairs : bool
        True for solvers that multiply pairs of row blocks, which are balanced by having many; False
        for the Hebbian ones, which use one block per worker to have few tasks.
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

    @contextmanager
    def open_gram(
        self, kernel: Kernel, budget: Budget, *, own: int = 0, whole: int = 0
    ) -> Iterator[DaskGram]:
        """Load and prepare the row blocks.

        Parameters
        ----------
        kernel : Kernel
        budget : Budget
            Memory limit of a worker, if it is explicit.
        own, whole : int
            Number of vectors over its own rows, and over all rows, that a worker holds.
        """
        own_rows = -(-int(self._X.shape[0]) // self._n_workers)
        vectors = own * own_rows + whole * int(self._X.shape[0])
        side, sparse_features = self._plan(
            kernel, budget, own_rows, vectors * self._X.dtype.itemsize
        )
        self._source = DaskGram(
            self._client, self._X, kernel, side, sparse_features=sparse_features
        )
        try:
            yield self._source
        finally:
            self._source = None

    def open_store(self, gram: CenteredGram, rows: Floats, products: Floats) -> DaskStore:
        """Open the coefficient store of the source."""
        assert self._source is not None
        return DaskStore(self._source, gram, rows, products)

    def _plan(
        self, kernel: Kernel, budget: Budget, own_rows: int, vectors: int
    ) -> tuple[int, bool]:
        """Return the side of the tiles, and True if memory allows the compiler."""
        item, n_features = self._X.dtype.itemsize, int(self._X.shape[1])
        # The rows, and their operands while they are prepared.
        fixed = 2 * own_rows * n_features * item + vectors
        limits = self._memory_limits(budget)
        if not limits:
            return plan_tiles(budget, 0, lambda side: 0, 1).side, True

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
        compiles = _COMPILER_SHARE * (available - fixed) >= COMPILER_BYTES
        plan = plan_tiles(
            Budget(available, explicit=True),
            fixed + (COMPILER_BYTES if compiles else 0),
            tile_bytes,
            1,
        )
        return plan.side, compiles

    def _memory_limits(self, budget: Budget) -> list[int]:
        """Return the bytes that each worker may use, as far as there are limits."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [
            int(_MEMORY_SHARE * worker["memory_limit"])
            for worker in workers
            if worker["memory_limit"]
        ]
        return [*limits, budget.available] if budget.explicit else limits

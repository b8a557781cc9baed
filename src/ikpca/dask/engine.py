"""Engine that runs a fit on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ikpca.dask.cluster import Cluster
from ikpca.dask.gram import DaskGram
from ikpca.dask.messages import Traffic
from ikpca.dask.store import DaskStore
from ikpca.dask.worker import Fold
from ikpca.errors import invalid_parameter
from ikpca.gram import COMPILER_BYTES, MIN_TILE_SIDE, Budget, CenteredGram, plan_tiles
from ikpca.kernels import Floats, Kernel, MatmulKernel

#: Of a worker's memory, what rows, columns and tiles may take; the rest is Python's and Dask's.
_SHARE = 0.6
#: Of what shard and vectors leave, at most so much for folded operands.
_FOLDED_SHARE = 0.6
#: Blocks of patterns: what a message costs is worked off in the time of these.
_SHORT_BLOCK, _LONG_BLOCK, _MANY_ROWS = 128, 512, 10_000


def even_shards(X: Any, number: int) -> Any:
    """The same rows as so many chunks, of sizes that differ by one at most."""
    n_samples = int(X.shape[0])
    number = min(number, n_samples)
    sizes = tuple(n_samples // number + (i < n_samples % number) for i in range(number))
    return X.rechunk((sizes, (X.shape[1],)))


def fold_within(kernel: Kernel, operand: int, available: int) -> tuple[Fold | None, int]:
    """How shards fold, and what it takes: an operand, but not the last of the memory.

    Only a shard knows whether there are features to multiply apart, by compiled code.
    """
    if not isinstance(kernel, MatmulKernel):
        return None, 0
    ways: list[tuple[Fold, int]] = [("apart", operand + COMPILER_BYTES), ("together", operand)]
    for way, taken in ways:
        if taken <= _FOLDED_SHARE * available:
            return way, taken
    return None, 0


class DaskEngine:
    """Shards of rows on the workers of a client.

    Parameters
    ----------
    client : distributed.Client
    X : dask.array.Array
        One chunk for every shard.
    """

    def __init__(self, client: Any, X: Any) -> None:
        self._client = client
        self._X = X
        self._source: DaskGram | None = None
        self.traffic = Traffic()

    @property
    def block_size(self) -> int:
        """Longer than in one process, as every block costs messages."""
        return _LONG_BLOCK if self._X.shape[0] >= _MANY_ROWS else _SHORT_BLOCK

    @contextmanager
    def open_gram(
        self, kernel: Kernel, budget: Budget, *, own: int = 0, whole: int = 0
    ) -> Iterator[DaskGram]:
        """Load the shards.

        They stay until :meth:`close`: a checkpoint is written when the solver is done already.

        Parameters
        ----------
        kernel : Kernel
        budget : Budget
            Of a worker, if it is explicit.
        own, whole : int
            How many vectors over its own rows, and over all rows, a worker will have to hold.
        """
        self.close()
        vectors = own * max(self._X.chunks[0]) + whole * int(self._X.shape[0])
        side, fold = self._plan(kernel, budget, vectors * self._X.dtype.itemsize)
        cluster = Cluster(self._client, self._X, kernel, side, fold=fold)
        cluster.traffic = self.traffic
        self._source = DaskGram(cluster, kernel)
        yield self._source

    def close(self) -> None:
        """Let the shards go."""
        if self._source is not None:
            self._source.cluster.close()
            self._source = None

    def open_store(self, gram: CenteredGram, rows: Floats, products: Floats) -> DaskStore:
        """Spread the start over the shards."""
        assert self._source is not None
        return DaskStore(self._source, gram, rows, products)

    def _plan(self, kernel: Kernel, budget: Budget, vectors: int) -> tuple[int, Fold | None]:
        """Side of the tiles and how to fold: what the memory of the smallest worker allows."""
        item, n_features = self._X.dtype.itemsize, int(self._X.shape[1])
        shard = max(self._X.chunks[0]) * n_features * item
        limits = self._limits(budget)
        if not limits:
            return plan_tiles(budget, 0, lambda side: 0, 1).side, "apart"

        def tile_bytes(side: int) -> int:
            tile = side * side * item + kernel.scratch_bytes(side, side, n_features, item)
            return tile + side * n_features * item

        available, fixed = min(limits), shard + vectors
        if fixed + tile_bytes(MIN_TILE_SIDE) > available:
            raise invalid_parameter(
                "client",
                f"{len(limits)} workers",
                f"a shard of {shard} bytes, with "
                f"{vectors} bytes of vectors, leaves no memory for tiles in the {available} "
                "bytes that a worker may use",
                "start more workers, or workers with more memory",
            )
        fold, operand = fold_within(kernel, shard + 2 * shard // n_features, available - fixed)
        return plan_tiles(
            Budget(available, explicit=True), fixed + operand, tile_bytes, 1
        ).side, fold

    def _limits(self, budget: Budget) -> list[int]:
        """Bytes that workers may use, as far as anybody said so."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [int(_SHARE * worker["memory_limit"]) for worker in workers
                  if worker["memory_limit"]]  # fmt: skip
        return [*limits, budget.available] if budget.explicit else limits

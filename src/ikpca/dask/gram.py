"""Kernel matrix of rows on a Dask cluster, computed by pure tasks on blocks of rows.

All tasks are functions of row blocks, which come from the graph of the Dask array. Dask
computes the results of a lost worker again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from itertools import product
from math import ceil, sqrt
from operator import getitem
from typing import TypeVar

import dask.array as da
import numpy as np
from distributed import Client, Future, wait

import dask
from dask import delayed
from ikpca.errors import invalid_parameter
from ikpca.gram import Budget, ComputedGram, cross_gram, tile_slices
from ikpca.gram.resources import SERIAL
from ikpca.gram.sources import MIN_TILE_SIDE, multiply_and_square, plan_tiles
from ikpca.kernels import FeatureSplit, Floats, Indices, Kernel

Result = TypeVar("Result")

#: Share of a worker's memory for rows, vectors and tiles; Python and Dask need the rest.
_MEMORY_SHARE = 0.6
#: Pairs of row blocks per worker in a product, so that workers finish at about the same time.
_PAIRS_PER_WORKER = 16


def _stacked(kernel: Kernel, side: int, blocks: list[Floats]) -> ComputedGram:
    """Return the kernel matrix of the rows of all blocks; received arrays may be misaligned."""
    X = np.require(np.vstack(blocks), requirements=["C", "A"])
    return ComputedGram(kernel, X, side, split=FeatureSplit.from_rows(X))


def _multiply_pair(
    kernel: Kernel, side: int, X: list[Floats], V: list[Floats]
) -> tuple[Floats, Floats, float, int]:
    """Return K_ij V_j, K_ijᵀ V_i, ‖K_ij‖² + ‖K_ji‖² and the number of entries of two blocks.

    Of one block, return K_ii V_i twice.
    """
    gram, factors, number = _stacked(kernel, side, X), np.vstack(V), len(X[0])
    if len(X) == 1:
        KV, squared = multiply_and_square(gram, factors)
        return KV, KV, squared, gram.entries
    products = np.zeros(factors.shape, dtype=np.result_type(factors, gram.dtype))
    squared = 0.0
    for rows, part in product(tile_slices(number, side), list(tile_slices(len(X[1]), side))):
        columns = slice(number + part.start, number + part.stop)
        tile = SERIAL.scratch((rows.stop - rows.start, part.stop - part.start), gram.dtype)
        gram.fill(rows, columns, tile)
        products[rows] += tile @ factors[columns]
        products[columns] += (factors[rows].T @ tile).T
        squared += 2 * float(np.vdot(tile, tile))
    return products[:number], products[number:], squared, gram.entries


def _sum_products(
    parts: list[tuple[Floats, Floats, float, int]], block: int
) -> tuple[Floats, float, int]:
    """Add products of a block with all blocks; ‖·‖² and entries of its pairs as the first block."""
    products = [second if j < block else first for j, (first, second, *_) in enumerate(parts)]
    own = parts[block:]
    return np.sum(products, axis=0), sum(part[2] for part in own), sum(part[3] for part in own)


def _combine_strip(kernel: Kernel, side: int, basis: Floats, left: Floats, right: Floats) -> Floats:
    """Return basis · K for the kernel values K of two blocks, by tiles of columns."""
    gram, number = _stacked(kernel, side, [left, right]), len(left)
    basis = np.require(basis, requirements=["C", "A"])
    strips = []
    for part in tile_slices(len(right), side):
        tile = SERIAL.scratch((number, part.stop - part.start), gram.dtype)
        gram.fill(slice(0, number), slice(number + part.start, number + part.stop), tile)
        strips.append(basis @ tile)
    return np.hstack(strips)


class DaskGram:
    """Source of K whose tiles are computed, multiplied and summed by Dask tasks.

    The chunks of X are the row blocks. The budget limits the memory of every worker, in addition to
    that of the worker itself; a worker holds ``n_vectors`` vectors over all rows in a product.
    """

    def __init__(
        self, client: Client, X: da.Array, kernel: Kernel, budget: Budget, n_vectors: int = 0
    ) -> None:
        self.entries = 0
        self.n_samples = self.strip_width = int(X.shape[0])
        self.dtype = np.dtype(X.dtype)
        self._client, self._X, self._kernel = client, X, kernel
        self._budget, self._n_vectors = budget, n_vectors
        stops = np.cumsum(X.chunks[0]).tolist()
        self._parts = [slice(a, b) for a, b in zip([0, *stops], stops, strict=False)]

    @cached_property
    def side(self) -> int:
        """Side of the tiles, within the memory of the workers."""
        client, item, n_features = self._client, self.dtype.itemsize, int(self._X.shape[1])
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [int(_MEMORY_SHARE * worker["memory_limit"]) for worker in workers
                  if worker["memory_limit"]]  # fmt: skip
        limits += [self._budget.available] if self._budget.explicit else []
        if not limits:
            return plan_tiles(self._budget, 0, lambda side: 0, 1).side
        # Rows of a worker, and those of a pair with their operands.
        n_rows = ceil(self.n_samples / max(1, len(workers))) + 4 * max(self._X.chunks[0])
        fixed = (n_rows * n_features + self._n_vectors * self.n_samples) * item

        def tile_bytes(side: int) -> int:
            tile = side * side * item + self._kernel.scratch_bytes(side, side, n_features, item)
            return tile + side * n_features * item

        available = min(limits)
        if fixed + tile_bytes(MIN_TILE_SIDE) > available:
            raise invalid_parameter(
                "client",
                f"{len(workers)} workers",
                f"rows and vectors of {fixed} bytes per worker leave no memory for tiles in the "
                f"{available} bytes that a worker may use",
                "start more workers, or workers with more memory",
            )
        return plan_tiles(Budget(available, explicit=True), fixed, tile_bytes, 1).side

    @cached_property
    def blocks(self) -> list[Future]:
        """Futures of the row blocks, spread evenly over the workers."""
        X = self._client.persist(self._X)
        chunks, copy = X.to_delayed()[:, 0], delayed(np.ascontiguousarray)
        workers = sorted(self._client.nthreads())
        # Elsewhere if a worker is lost; a lost block is loaded from its source again.
        places = [workers[i * len(workers) // len(chunks)] for i in range(len(chunks))]
        blocks = [
            self._client.compute(copy(chunk), workers=[place], allow_other_workers=True)
            for chunk, place in zip(chunks, places, strict=True)
        ]
        # Futures must exist until the tasks that depend on them are known to the scheduler.
        wait(blocks)
        return blocks

    def map_rows(self, function: Callable[[Floats, int], Result]) -> Iterable[Result]:
        """Apply a function to every row block, one task each; results arrive in order."""
        task, chunks = delayed(function, pure=False), self._X.to_delayed()[:, 0]
        tasks = [task(chunk, part.start) for chunk, part in zip(chunks, self._parts, strict=True)]
        for future in self._client.compute(tasks):
            yield future.result()

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Compute K[rows, columns] in this process, for the dense solver."""
        indices = np.arange(self.n_samples)
        out[...] = self.submatrix(indices[rows], indices[columns])

    def stored_tile(self, rows: slice, columns: slice) -> Floats | None:
        """Return None: no tile is stored."""
        return None

    def submatrix(self, rows: Indices, columns: Indices) -> Floats:
        """Compute K[rows, columns] in this process."""
        self.entries += len(rows) * len(columns)
        return cross_gram(self._kernel, self._rows(rows), self._rows(columns))

    def diagonal(self) -> Floats:
        """Return k(x, x)."""
        self.entries += self.n_samples
        futures = [self._submit(self._kernel.diagonal, block) for block in self.blocks]
        return np.concatenate(self._client.gather(futures))

    def product(self, V: Floats) -> tuple[Floats, float]:
        """Return K·V and ‖K‖²_F, which takes no additional time."""
        X, factors = self.blocks, [self._send(V[part]) for part in self._parts]
        task, number = partial(_multiply_pair, self._kernel, self.side), len(X)
        products = {}
        for i in range(number):
            products[i, i] = self._submit(task, [X[i]], [factors[i]])
            for j in range(i):
                pair = self._submit(task, [X[j], X[i]], [factors[j], factors[i]])
                products[i, j] = products[j, i] = pair
        sums = [
            self._submit(_sum_products, [products[i, j] for j in range(number)], i, priority=1)
            for i in range(number)
        ]
        parts, norms, entries = zip(*self._client.gather(sums), strict=True)
        self.entries += sum(entries)
        return np.concatenate(parts), sum(norms)

    def combine_rows(self, basis: Floats, indices: Indices) -> Floats:
        """Return basis · K[indices, :]; the rows of K stay on the workers."""
        left, right = self._send(basis), self._send(self._rows(indices))
        task = partial(_combine_strip, self._kernel, self.side)
        futures = [self._submit(task, left, right, block) for block in self.blocks]
        self.entries += len(indices) * self.n_samples
        return np.hstack(self._client.gather(futures))

    def _rows(self, indices: Indices) -> Floats:
        """Fetch some rows."""
        starts = [part.start for part in self._parts]
        owner = np.searchsorted(starts, indices, side="right") - 1
        places = {i: np.flatnonzero(owner == i) for i in np.unique(owner)}
        futures = [
            self._submit(getitem, self.blocks[i], indices[own] - starts[i])
            for i, own in places.items()
        ]
        X = np.empty((len(indices), self._X.shape[1]), dtype=self.dtype)
        for own, rows in zip(places.values(), self._client.gather(futures), strict=True):
            X[own] = rows
        return X

    def _submit(
        self, function: Callable[..., object], *arguments: object, priority: int = 0
    ) -> Future:
        """Submit a task under a name of its own: hashing its arguments would take longer."""
        return self._client.submit(function, *arguments, pure=False, priority=priority)

    def _send(self, value: Floats) -> Future:
        """Return the future of an array that is part of the graph, unlike scattered ones."""
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self._submit(np.asarray, value)


def even_blocks(X: da.Array, n_workers: int) -> da.Array:
    """Rechunk rows into blocks of about the same size, with enough pairs for all workers."""
    number = max(n_workers, ceil(sqrt(2 * _PAIRS_PER_WORKER * n_workers)))
    stops = np.linspace(0, len(X), min(number, len(X)) + 1).astype(int)
    return X.rechunk((tuple(np.diff(stops).tolist()), (X.shape[1],)))

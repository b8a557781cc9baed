"""Kernel matrix of rows on a Dask cluster, computed by pure tasks on blocks of rows.

All tasks are functions of row blocks, which come from the graph of the Dask array. Dask
computes the results of a lost worker again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from operator import attrgetter
from typing import Any

import dask
import numpy as np
from dask import delayed
from scipy import sparse

from ikpca.gram import tile_slices
from ikpca.gram.parallel import SERIAL
from ikpca.gram.sources import MatmulTiles
from ikpca.gram.tiles import tile_pairs
from ikpca.kernels import FeatureSplit, Floats, Indices, Kernel, MatmulKernel, Operand


def aligned(values: Floats) -> Floats:
    """Return an array that BLAS multiplies in the usual order; received ones may be misaligned."""
    return np.require(values, requirements=["C", "A"])


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Rows in the form that the tiles of a kernel need: an operand for a MatmulKernel."""

    kernel: Kernel
    rows: Operand
    diagonal: Floats

    @classmethod
    def prepare(cls, kernel: Kernel, split: FeatureSplit | None, X: Floats) -> RowBlock:
        """Prepare rows; without a split, they are kept as they are."""
        diagonal = kernel.diagonal(X)
        if split is not None and isinstance(kernel, MatmulKernel):
            return cls(kernel, kernel.right_operand(X, split), diagonal)
        return cls(kernel, Operand(np.ascontiguousarray(X)), diagonal)

    @classmethod
    def join(cls, blocks: list[RowBlock], order: Indices) -> RowBlock:
        """Stack blocks, and return their rows in an order."""
        parts: Any = [block.rows.sparse for block in blocks]
        rows = Operand(
            np.concatenate([block.rows.dense for block in blocks]),
            None if parts[0] is None else sparse.vstack(parts, format="csr"),
        )
        diagonal = np.concatenate([block.diagonal for block in blocks])
        return cls(blocks[0].kernel, rows, diagonal).select(order)

    def __len__(self) -> int:
        return len(self.diagonal)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the rows."""
        return self.rows.dense.dtype

    def select(self, indices: Indices) -> RowBlock:
        """Return some of the rows."""
        return RowBlock(self.kernel, self.rows.copy(indices), self.diagonal[indices])

    def strip_filler(self, other: RowBlock) -> Callable[[slice], Callable[[slice, Floats], None]]:
        """Return a function of row slices that returns fillers (columns, out) of their tiles."""
        kernel, right = self.kernel, aligned(other.rows.dense)
        if isinstance(kernel, MatmulKernel):
            to_left = kernel.left_from_right
            tiles = MatmulTiles(kernel, Operand(right, other.rows.sparse))
            return lambda rows: partial(tiles.fill_from, to_left(self.rows.copy(rows)))
        left = aligned(self.rows.dense)
        return lambda rows: lambda columns, out: kernel.fill(left[rows], right[columns], out)


def identity(value: Any) -> Any:
    """Return the value itself."""
    return value


def multiply_pair(
    left: RowBlock, right: RowBlock | None, V_left: Floats, V_right: Floats, side: int
) -> tuple[Floats, Floats | None, float]:
    """Return K_ij V_j, K_ijᵀ V_i and ‖K_ij‖² + ‖K_ji‖², by tiles; ``right=None`` means j = i."""
    other = left if right is None else right
    V_left, V_right = aligned(V_left), aligned(V_right)
    strip, last = left.strip_filler(other), None
    dtype = np.result_type(V_left, left.dtype)
    upper = np.zeros((len(left), V_left.shape[1]), dtype=dtype)
    lower = upper if right is None else np.zeros((len(other), V_left.shape[1]), dtype=dtype)
    squared = 0.0
    for rows, columns in _pairs(left, right, side):
        if rows != last:
            fill, last = strip(rows), rows
        tile = SERIAL.scratch((rows.stop - rows.start, columns.stop - columns.start), left.dtype)
        fill(columns, tile)
        norm = float(np.vdot(tile, tile))
        upper[rows] += tile @ V_right[columns]
        if right is not None or rows != columns:
            lower[columns] += (V_left[rows].T @ tile).T
            norm *= 2
        squared += norm
    return upper, None if right is None else lower, squared


def _pairs(left: RowBlock, right: RowBlock | None, side: int) -> Iterator[tuple[slice, slice]]:
    if right is None:
        return tile_pairs(len(left), side, symmetric=True)
    return product(tile_slices(len(left), side), list(tile_slices(len(right), side)))


def sum_products(parts: list[tuple[Any, ...]], sides: list[int]) -> tuple[Floats, float]:
    """Add the products of one block, in order; ‖·‖² is that of its pairs as the first block."""
    total = parts[0][sides[0]].copy()
    for part, side in zip(parts[1:], sides[1:], strict=True):
        total += part[side]
    return total, sum(part[2] for part, side in zip(parts, sides, strict=True) if side == 0)


def kernel_strip(left: RowBlock, right: RowBlock, side: int, columns: Any = None) -> Floats:
    """Return k(x, y) for the few rows x of ``left`` and y of ``right``, or a slice of these."""
    fill = left.strip_filler(right)(slice(0, len(left)))
    first, last = (0, len(right)) if columns is None else (columns.start, columns.stop)
    out = np.empty((len(left), last - first), dtype=left.dtype)
    for part in tile_slices(last - first, side):
        fill(slice(part.start + first, part.stop + first), out[:, part])
    return out


def multiply_strip(basis: Floats, left: RowBlock, right: RowBlock, side: int) -> Floats:
    """Return basis · K for the kernel values K of two blocks, by column tiles."""
    parts = (
        aligned(basis) @ kernel_strip(left, right, side, columns)
        for columns in tile_slices(len(right), side)
    )
    return np.hstack(list(parts))


def multiply(C: Floats, values: Floats) -> Floats:
    """Return C times a strip of kernel values."""
    return aligned(C) @ aligned(values)


def count_features(X: Floats, common: Floats) -> tuple[Any, Floats]:
    """Return, per feature, how many rows differ from a common value, and the sum."""
    counts = sum(np.count_nonzero(X[part] != common, axis=0) for part in tile_slices(len(X), 256))
    return counts, X.sum(axis=0, dtype=np.float64)


class DaskGram:
    """Source of K whose tiles are computed, multiplied and summed by Dask tasks.

    The chunks of X are the row blocks; ``side`` is that of the tiles.
    """

    symmetric = True

    def __init__(self, client: Any, X: Any, kernel: Kernel, side: int) -> None:
        self.client = client
        self.side = side
        self.entries = 0
        self.n_samples = int(X.shape[0])
        self.dtype = np.dtype(X.dtype)
        stops = np.cumsum(X.chunks[0]).tolist()
        self.parts = [slice(a, b) for a, b in zip([0, *stops], stops, strict=False)]
        # Rows stay in memory until they are prepared; a lost block is loaded from its source again.
        X = client.persist(X)
        split = split_features(client, X) if isinstance(kernel, MatmulKernel) else None
        prepare = delayed(partial(RowBlock.prepare, kernel, split))
        workers, chunks = sorted(client.nthreads()), X.to_delayed()[:, 0]
        # Spread evenly, but prepared elsewhere if a worker is lost.
        places = [workers[i * len(workers) // len(chunks)] for i in range(len(chunks))]
        self.blocks = [
            client.compute(prepare(chunk), workers=[place], allow_other_workers=True)
            for chunk, place in zip(chunks, places, strict=True)
        ]

    @property
    def strip_width(self) -> int:
        """All columns: each task computes those of its own block."""
        return self.n_samples

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Compute K[rows, columns] on the workers."""
        indices = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        left, futures = self.select(indices), []
        for block, part in zip(self.blocks, self.parts, strict=True):
            first, last = max(part.start, columns.start), min(part.stop, columns.stop)
            if first < last:
                own = slice(first - part.start, last - part.start)
                futures.append(self.submit(kernel_strip, left, block, self.side, own))
        np.concatenate(self.client.gather(futures), axis=1, out=out)
        self.entries += out.size

    def stored_tile(self, rows: slice, columns: slice) -> Floats | None:
        """Return None: no tile is stored."""
        return None

    def submatrix(self, rows: Indices, columns: Indices) -> Floats:
        """Compute K[rows, columns] in one task."""
        self.entries += len(rows) * len(columns)
        parts = self.select(rows), self.select(columns)
        found: Floats = self.client.gather(self.submit(kernel_strip, *parts, self.side))
        return found

    def diagonal(self) -> Floats:
        """Return k(x, x)."""
        self.entries += self.n_samples
        parts = self.map(attrgetter("diagonal"), self.blocks)
        return np.concatenate(self.client.gather(parts))

    def product(self, V: Floats, *, square: bool) -> tuple[Floats, float]:
        """Return K·V, and ‖K‖²_F, which takes no additional time."""
        number = len(self.blocks)
        slices = [self.send(V[part]) for part in self.parts]
        keys = [(i, j) for i in range(number) for j in range(i, number)]
        products = self.map(
            multiply_pair,
            [self.blocks[i] for i, _ in keys],
            [None if i == j else self.blocks[j] for i, j in keys],
            [slices[i] for i, _ in keys],
            [slices[j] for _, j in keys],
            side=self.side,
        )
        by_key = dict(zip(keys, products, strict=True))
        sums = [
            self.submit(
                sum_products,
                [by_key[min(i, j), max(i, j)] for j in range(number)],
                [0 if j >= i else 1 for j in range(number)],
                priority=1,
            )
            for i in range(number)
        ]
        parts = self.client.gather(sums)
        self.entries += sum(map(self._pair_entries, keys))
        return np.concatenate([part for part, _ in parts]), sum(squared for _, squared in parts)

    def landmark_rows(self, indices: Indices) -> _DaskLandmarkRows:
        """Return K[indices, :], which stays on the workers."""
        return _DaskLandmarkRows(self, indices)

    def select(self, indices: Indices) -> Any:
        """Return the future of a :class:`RowBlock` of some rows, in the order of the indices."""
        starts = [part.start for part in self.parts]
        owner = np.searchsorted(starts, indices, side="right") - 1
        chosen = [(i, np.flatnonzero(owner == i)) for i in np.unique(owner)]
        parts = self.map(
            RowBlock.select,
            [self.blocks[i] for i, _ in chosen],
            [indices[own] - starts[i] for i, own in chosen],
            priority=1,
        )
        order = np.argsort(np.concatenate([own for _, own in chosen]))
        return self.submit(RowBlock.join, parts, order, priority=1)

    def strips(self, left: Any) -> list[Any]:
        """Return the futures of the kernel values of selected rows with every block."""
        lefts = [left] * len(self.blocks)
        return self.map(kernel_strip, lefts, self.blocks, side=self.side)

    def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Submit a task under a name of its own: hashing its arguments would take longer."""
        return self.client.submit(function, *arguments, pure=False, **options)

    def map(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> list[Any]:
        """Submit one task per item, as ``submit`` does."""
        return list(self.client.map(function, *arguments, pure=False, **options))

    def send(self, value: Floats) -> Any:
        """Return the future of an array that is part of the graph, unlike scattered ones."""
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self.submit(identity, value)

    def _pair_entries(self, key: tuple[int, int]) -> int:
        first, second = (self.parts[i].stop - self.parts[i].start for i in key)
        if key[0] != key[1]:
            return first * second
        pairs = tile_pairs(first, self.side, symmetric=True)
        return sum((a.stop - a.start) * (b.stop - b.start) for a, b in pairs)


def split_features(client: Any, X: Any) -> FeatureSplit:
    """Split the features of a Dask array; all blocks need the same origin and features."""
    sample = client.compute(X[FeatureSplit.sample_indices(len(X))], sync=True)
    common = FeatureSplit.common_values(sample)
    count = delayed(partial(count_features, common=common))
    parts = client.gather(client.compute([count(chunk) for chunk in X.to_delayed()[:, 0]]))
    counts, sums = (np.sum(part, axis=0) for part in zip(*parts, strict=True))
    means = (sums / len(X)).astype(X.dtype)
    return FeatureSplit.from_counts(common, counts, means, len(X))


class _DaskLandmarkRows:
    """Landmark rows, whose combinations are computed on the workers."""

    def __init__(self, gram: DaskGram, indices: Indices) -> None:
        self._gram = gram
        self._landmarks = gram.select(indices)
        self._n_landmarks = len(indices)

    def landmark_gram(self) -> Floats:
        """Return K[L, L]."""
        rows = self._landmarks
        values = self._gram.submit(kernel_strip, rows, rows, self._gram.side)
        found: Floats = self._gram.client.gather(values).astype(np.float64)
        return found

    def products(self, basis: Floats) -> Floats:
        """Fetch the products of the basis with K[L, :]."""
        gram, number = self._gram, len(self._gram.blocks)
        parts = gram.map(
            multiply_strip,
            [gram.send(basis)] * number,
            [self._landmarks] * number,
            gram.blocks,
            side=gram.side,
        )
        gram.entries += self._n_landmarks * gram.n_samples
        return np.hstack(gram.client.gather(parts))

"""Sources of the kernel matrix: computed, precomputed, stored and cached; products and plans."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ikpca.gram.resources import SERIAL, Budget, Workers
from ikpca.kernels import (
    Cosine,
    FeatureSplit,
    Floats,
    Gaussian,
    Indices,
    Kernel,
    Linear,
    Operand,
    Rows,
)

#: Side of a square tile: large enough for full matrix-product speed, 8 MB in float64.
TILE = 1024
#: Smallest side of the tiles that diagonal tiles are divided into; smaller ones cost more calls
#: than they save.
_MIN_DIAGONAL_SIDE = 256
#: Smallest side of a tile in any plan.
MIN_TILE_SIDE = TILE // 8
_TILE_SIDES = (TILE, TILE // 2, TILE // 4, MIN_TILE_SIDE)
#: Tiles that the side of a plan leaves memory for; the number of threads is limited accordingly.
_CONCURRENT_TILES = 4
#: Memory that no plan accounts for (BLAS buffers, temporaries, the allocator's rounding); it is
#: not available for caches.
_OVERHEAD_BYTES, _OVERHEAD_SHARE = 32 * 10**6, 0.1
#: Columns of the narrow matrices that tiles are multiplied with, counted as part of a tile.
_NARROW_COLUMNS = 64
#: Largest share of the memory left by the solver that a right operand may use.
_MAX_OPERAND_SHARE = 0.6
#: Terms of a sum from which single precision loses more digits than a matrix product.
_MANY_TERMS = 64
_Pair: TypeAlias = tuple[slice, slice]

Result = TypeVar("Result")


def tile_slices(length: int, size: int = TILE) -> Iterator[slice]:
    """Divide 0..length into consecutive slices of at most ``size``.

    Examples
    --------
    >>> list(tile_slices(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, length, size):
        yield slice(start, min(start + size, length))


def tile_pairs(length: int, size: int = TILE) -> Iterator[_Pair]:
    """Yield pairs of slices that cover the upper triangle of an l×l matrix.

    Tiles on the diagonal are divided further, as half of each is redundant.
    """
    for rows in tile_slices(length, size):
        yield from _diagonal_pairs(rows)
        for columns in tile_slices(length - rows.stop, size):
            yield rows, slice(rows.stop + columns.start, rows.stop + columns.stop)


def _diagonal_pairs(part: slice) -> Iterator[_Pair]:
    """Yield tiles that cover the upper triangle of a square tile on the diagonal."""
    length = part.stop - part.start
    if length < 2 * _MIN_DIAGONAL_SIDE:
        yield part, part
        return
    middle = part.start + length // 2
    first, second = slice(part.start, middle), slice(middle, part.stop)
    yield from _diagonal_pairs(first)
    yield first, second
    yield from _diagonal_pairs(second)


class GramSource(Protocol):
    """Uncentered symmetric kernel matrix K; for products see :func:`multiply`."""

    #: Order l of K.
    n_samples: int
    #: Data type of the rows, float32 or float64.
    dtype: np.dtype[Any]
    #: Number of columns to fill at a time in a strip of rows.
    strip_width: int

    @property
    def side(self) -> int:
        """Side of the square tiles of products."""

    @property
    def entries(self) -> int:
        """Number of entries evaluated; entries read from memory are not counted."""

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Write K[rows, columns] into ``out``; may be called from several threads."""

    def stored_tile(self, rows: slice, columns: slice) -> Floats | None:
        """Return K[rows, columns] as a read-only view if it is in memory, otherwise None."""

    def submatrix(self, rows: Indices, columns: Indices) -> Floats:
        """Return K[rows, columns] for a few rows and columns."""

    def diagonal(self) -> Floats:
        """Return k(x_i, x_i) for every sample."""


@runtime_checkable
class DistributedSource(GramSource, Protocol):
    """Source whose tiles are computed by other processes, which return only narrow matrices."""

    def product(self, V: Floats) -> tuple[Floats, float]:
        """Return K·V and ‖K‖²_F."""

    def combine_rows(self, basis: Floats, indices: Indices) -> Floats:
        """Return basis · K[indices, :]."""

    def map_rows(self, function: Callable[[Rows, int], Result]) -> Iterable[Result]:
        """Apply a function to blocks of rows and the indices of their first rows, in order."""


class ComputedGram:
    """Kernel matrix of the rows of ``X``, dense or CSR.

    With a split of the features for a Gaussian kernel, the right operand is computed once for all
    tiles: it takes the memory of a copy of X, and tiles take little more time than a product.
    """

    def __init__(
        self, kernel: Kernel, X: Rows, side: int = TILE, *, split: FeatureSplit | None = None
    ) -> None:
        self._kernel = kernel
        self._X = X
        self.n_samples, self.dtype = int(X.shape[0]), np.dtype(X.dtype)
        self.side = self.strip_width = side
        self.entries = 0
        self._lock = threading.Lock()
        self._right: Operand | None = None
        if split is not None and isinstance(kernel, Gaussian):
            self._right = kernel.right_operand(X, split)

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Compute K[rows, columns]."""
        with self._lock:
            self.entries += out.size
        if not isinstance(rows, slice) and len(rows) > self.side:
            # The memory plan has copies of as many rows as a tile.
            for part in tile_slices(len(rows), self.side):
                self._fill(rows[part], columns, out[part])
        else:
            self._fill(rows, columns, out)

    def _fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        kernel, right = self._kernel, self._right
        if right is None or not isinstance(kernel, Gaussian):
            kernel.fill(self._X[rows], self._X[columns], out)
            return
        left = kernel.left_from_right(right.copy(rows))
        np.matmul(left.dense, right.dense[columns].T, out=out)
        if left.sparse is not None and right.sparse is not None:
            # Summed separately: added one by one to the much larger values in ``out``, each term
            # would be rounded. Many terms need double precision.
            n_terms = np.diff(left.sparse.indptr).max(initial=0)
            dtype = np.float64 if n_terms > _MANY_TERMS else out.dtype
            factor = right.sparse[columns].toarray().T
            out += left.sparse @ np.ascontiguousarray(factor, dtype=dtype)
        kernel.finish(out)

    def stored_tile(self, rows: slice, columns: slice) -> Floats | None:
        """Return None: no tile is stored."""
        return None

    def submatrix(self, rows: Indices, columns: Indices) -> Floats:
        """Compute K[rows, columns]."""
        self.entries += len(rows) * len(columns)
        out = np.empty((len(rows), len(columns)), dtype=self.dtype)
        for upper in tile_slices(len(rows), self.side):
            for left in tile_slices(len(columns), self.side):
                X, Y = self._X[rows[upper]], self._X[columns[left]]
                out[upper, left] = cross_gram(self._kernel, X, Y)
        return out

    def diagonal(self) -> Floats:
        """Return k(x, x)."""
        self.entries += self.n_samples
        parts = tile_slices(self.n_samples, self.side)
        return np.concatenate([self._kernel.diagonal(self._X[part]) for part in parts])


class PrecomputedGram:
    """Symmetric kernel matrix in memory, dense or CSR; it is never modified.

    Parameters
    ----------
    K : ndarray or CSR matrix of shape (l, l)
    side : int
        Side of the tiles.
    entries : int
        Number of entries evaluated to compute K.
    """

    def __init__(self, K: Rows, side: int = TILE, entries: int = 0) -> None:
        self._K = K
        self.side, self.entries = side, entries
        self.n_samples, self.dtype = int(K.shape[0]), np.dtype(K.dtype)
        # Copies are bound by memory bandwidth, and one long copy is the fastest.
        self.strip_width = self.n_samples

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Copy K[rows, columns]."""
        if sparse.issparse(self._K):
            out[...] = self._K[rows, columns].toarray()
        elif isinstance(rows, slice) or columns != slice(0, self.n_samples):
            out[...] = self._K[rows, columns]
        else:
            # Unlike indexing, take allocates no temporary; "clip" only skips a check of indices.
            np.take(self._K, rows, axis=0, out=out, mode="clip")

    def stored_tile(self, rows: slice, columns: slice) -> Floats | None:
        """Return a view if the matrix is dense."""
        return None if sparse.issparse(self._K) else self._K[rows, columns]

    def submatrix(self, rows: Indices, columns: Indices) -> Floats:
        """Return a copy of K[rows, columns]."""
        values: Rows = self._K[np.ix_(rows, columns)]
        return values.toarray() if sparse.issparse(values) else values

    def diagonal(self) -> Floats:
        """Return a copy of the diagonal."""
        return np.array(self._K.diagonal())


def is_symmetric(K: Rows) -> bool:
    """Return True if K equals its transpose up to the rounding errors of a product X @ Xᵀ."""
    limit = 100 * np.finfo(K.dtype).eps * max(K.max(), -K.min())
    return all(
        abs(K[rows, columns] - K[columns, rows].T).max() <= limit
        for rows, columns in tile_pairs(K.shape[0])
    )


class WrappedSource:
    """Base class of sources that wrap another one and have its shape, type and layout."""

    def __init__(self, source: GramSource) -> None:
        self._source = source
        self.n_samples, self.dtype = source.n_samples, source.dtype
        self.side, self.strip_width = source.side, source.strip_width

    @property
    def entries(self) -> int:
        """Number of entries that the source evaluated."""
        return self._source.entries

    def submatrix(self, rows: Indices, columns: Indices) -> Floats:
        """Return K[rows, columns]."""
        return self._source.submatrix(rows, columns)

    def diagonal(self) -> Floats:
        """Return k(x, x)."""
        return self._source.diagonal()


class CachedGram(WrappedSource):
    """Cache of square tiles of another source.

    The size of the cache changes the number of evaluations, but not the results. In a compact
    cache, all values, which lie in [0, 1], are rounded to 16 bits: that takes less time than new
    memory for exact ones, and a part of it is enough.
    """

    #: Rounded values are multiples of 1/LEVELS.
    LEVELS = int(np.iinfo(np.uint16).max)

    def __init__(self, source: GramSource, max_bytes: int, *, compact: bool = False) -> None:
        super().__init__(source)
        self._compact = compact
        dtype: np.dtype[Any] = np.dtype(np.uint16) if compact else source.dtype
        pairs = tile_pairs(source.n_samples, source.side)
        sizes = ((a.stop - a.start) * (b.stop - b.start) for a, b in pairs)
        #: Memory that is not in use yet, of one array, which the system backs by huge pages.
        self._memory = np.empty(min(max_bytes // dtype.itemsize, sum(sizes)), dtype)
        self._tiles: dict[tuple[int, int, int, int], NDArray[Any]] = {}
        self._lock = threading.Lock()

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Compute K[rows, columns] and copy a tile to the cache while there is memory for it.

        Writing a product directly into new memory takes longer than the product and a copy.
        """
        tile = self._tiles.get(_key(rows, columns)) if isinstance(rows, slice) else None
        unit = self.dtype.type(1 / self.LEVELS if self._compact else 1)
        if tile is not None:
            np.multiply(tile, unit, out=out)
            return
        self._source.fill(rows, columns, out)
        if not isinstance(rows, slice):
            return
        if self._compact:
            # Rounding errors of far rows may exceed 1.
            np.minimum(out, 1, out=out)
            out *= self.dtype.type(self.LEVELS)
            np.rint(out, out=out)
        with self._lock:
            if out.size <= len(self._memory):
                tile, self._memory = np.split(self._memory, [out.size])
        if tile is not None:
            tile = tile.reshape(out.shape)
            np.copyto(tile, out, casting="unsafe")
            self._tiles[_key(rows, columns)] = tile
        if self._compact:
            out *= unit

    def stored_tile(self, rows: slice, columns: slice) -> Floats | None:
        """Return the tile if it is in the cache; ``fill`` converts those of 16 bits."""
        return None if self._compact else self._tiles.get(_key(rows, columns))


def _key(rows: slice, columns: slice) -> tuple[int, int, int, int]:
    return rows.start, rows.stop, columns.start, columns.stop


def multiply(source: GramSource, V: Floats, workers: Workers = SERIAL) -> Floats:
    """Return K·V for V of shape (l, columns); only the upper triangle of K is read.

    Contributions are added in the order of the tiles, so that the result does not depend on the
    number of threads.
    """
    return multiply_and_square(source, V, workers, square=False)[0]


def multiply_and_square(
    source: GramSource, V: Floats, workers: Workers = SERIAL, *, square: bool = True
) -> tuple[Floats, float]:
    """Return K·V, and ‖K‖²_F from the same tiles if ``square`` is true, otherwise 0."""
    if isinstance(source, DistributedSource):
        return source.product(V)
    product = np.zeros((source.n_samples, V.shape[1]), dtype=np.result_type(V, source.dtype))
    squared = 0.0

    def tile_products(pair: _Pair) -> tuple[_Pair, Floats, Floats | None, float]:
        rows, columns = pair
        tile = _tile(source, pair, workers)
        norm = float(np.vdot(tile, tile)) if square else 0.0
        # The equivalent tile.T @ V[rows] takes a fifth longer.
        return pair, tile @ V[columns], (V[rows].T @ tile).T if rows != columns else None, norm

    pairs = tile_pairs(source.n_samples, source.side)
    for (rows, columns), upper, lower, norm in workers.map(tile_products, pairs):
        product[rows] += upper
        squared += norm
        if lower is not None:
            product[columns] += lower
            squared += norm
    return product, squared


def full_matrix(source: GramSource, workers: Workers = SERIAL) -> Floats:
    """Return K as one matrix, computed by tiles; for the dense solver and for small l."""
    K = np.empty((source.n_samples, source.n_samples), dtype=source.dtype)

    def fill(pair: _Pair) -> None:
        rows, columns = pair
        K[rows, columns] = _tile(source, pair, workers)
        if rows != columns:
            K[columns, rows] = K[rows, columns].T

    workers.for_each(fill, tile_pairs(source.n_samples, source.side))
    return K


@np.errstate(over="ignore", invalid="ignore")
def cross_gram(kernel: Kernel, X: Rows, Y: Rows) -> Floats:
    """Return k(x_i, y_j) for two sets of rows, computed by column tiles to limit scratch memory.

    Rows in single precision are converted if the others are in double precision. The caller reports
    values that are not finite.
    """
    dtype = np.result_type(X.dtype, Y.dtype)
    X, out = X.astype(dtype, copy=False), np.empty((X.shape[0], Y.shape[0]), dtype=dtype)
    for columns in tile_slices(Y.shape[0]):
        kernel.fill(X, Y[columns].astype(dtype, copy=False), out[:, columns])
    return out


def _tile(source: GramSource, pair: _Pair, workers: Workers) -> Floats:
    rows, columns = pair
    stored = source.stored_tile(rows, columns)
    if stored is not None:
        return stored
    shape = (rows.stop - rows.start, columns.stop - columns.start)
    tile = workers.scratch(shape, source.dtype)
    source.fill(rows, columns, tile)
    return tile


class TilePlan(NamedTuple):
    """Side of the tiles, number of threads, and bytes left for caching tiles."""

    side: int
    threads: int
    cache_bytes: int


def plan_tiles(
    budget: Budget,
    fixed: int,
    tile_bytes: Callable[[int], int],
    threads: int,
    side: int | None = None,
) -> TilePlan:
    """Choose the side of the tiles and the number of threads, at most ``threads``, for a budget.

    The side depends only on an explicit budget, not on the machine or the number of threads, and
    so do the results. A run that is resumed keeps its ``side``. ``fixed`` bytes do not depend on
    the tiles; ``tile_bytes`` returns those of a tile of a given side, including scratch.
    """
    available = budget.available - fixed
    if side is not None:
        remedy = "raise it, or fit again without resuming"
        budget.require(fixed + tile_bytes(side), "resuming this fit", remedy)
    elif budget.explicit:
        fitting = (
            side for side in _TILE_SIDES if _CONCURRENT_TILES * tile_bytes(side) <= available
        )
        side = next(fitting, MIN_TILE_SIDE)
        remedy = (
            "raise it, ask for fewer components, or pass another eigen_solver; in KernelPCA, "
            "copy_X=False also saves memory"
        )
        budget.require(fixed + tile_bytes(side), "this fit", remedy)
    else:
        side = TILE
    usable = max(1, min(threads, available // max(tile_bytes(side), 1)))
    overhead = _OVERHEAD_BYTES + int(_OVERHEAD_SHARE * budget.n_bytes)
    return TilePlan(side, usable, max(0, available - usable * tile_bytes(side) - overhead))


def cache_source(
    source: GramSource,
    form: Literal["tiles", "compact", "matrix"],
    max_bytes: int,
    workers: Workers,
) -> GramSource:
    """Cache tiles, for products; or the whole matrix if it fits, for rows in random order."""
    if form != "matrix":
        return CachedGram(source, max_bytes, compact=form == "compact")
    if source.n_samples**2 * source.dtype.itemsize > max_bytes:
        return source
    return PrecomputedGram(full_matrix(source, workers), entries=source.entries)


def plan_source(
    kernel: Kernel | None,
    X: Rows,
    budget: Budget,
    fixed: int,
    threads: int,
    side: int | None = None,
) -> tuple[ComputedGram | PrecomputedGram, TilePlan]:
    """Plan the tiles of the kernel matrix of rows, or of a matrix X; see ``plan_tiles``."""
    available = budget.available - fixed
    has_features = isinstance(kernel, Linear | Cosine) and isinstance(X, np.ndarray)
    if has_features and X.nbytes <= _MAX_OPERAND_SHARE * available:
        # They are computed once for all tiles.
        fixed += X.nbytes
        kernel, X = Linear(), kernel.shifted_features(X)
    split, operand, tile_bytes = None, 0, partial(_tile_bytes, kernel, X, None)
    if isinstance(kernel, Gaussian) and isinstance(X, np.ndarray):
        candidate = FeatureSplit.from_rows(X)
        needed, tile = candidate.operand_bytes(len(X)), partial(_tile_bytes, kernel, X, candidate)
        small_enough = needed <= _MAX_OPERAND_SHARE * available
        if small_enough and needed + tile(side or MIN_TILE_SIDE) <= available:
            split, operand, tile_bytes = candidate, needed, tile
    plan = plan_tiles(budget, fixed + operand, tile_bytes, threads, side)
    if kernel is None:
        return PrecomputedGram(X, side=plan.side), plan
    return ComputedGram(kernel, X, plan.side, split=split), plan


def _tile_bytes(kernel: Kernel | None, X: Rows, split: FeatureSplit | None, side: int) -> int:
    item, width = X.dtype.itemsize, int(X.shape[1] if split is None else split.dense.sum())
    n_bytes = side * side * item + 4 * side * _NARROW_COLUMNS * item
    if split is not None and split.nnz:
        # The product of sparse features and its factor in two orders, in double precision at most.
        n_bytes += 8 * side * (side + 2 * int(split.sparse.sum()))
    if sparse.issparse(X):
        # A product of CSR rows is CSR before it is dense; its factors are copied, one transposed.
        index, width = X.indices.itemsize, -(-X.nnz // X.shape[0])
        n_bytes += side * side * (2 * item + index) + 4 * side * width * (item + index)
        n_bytes += int(X.shape[1]) * index
    if kernel is None:
        # Entries of a stored matrix are copied before they are written.
        return n_bytes + side * side * item
    # Rows from disk, and rows in random order, are copied.
    copies = 2 * side * width * item if split is None else 0
    return n_bytes + copies + kernel.scratch_bytes(side, side, width, item)

"""Sources of the kernel matrix: computed, precomputed, stored and cached; products by tiles."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from scipy import sparse

from ikpca.gram.parallel import SERIAL, Workers
from ikpca.gram.tiles import TILE, MemoryErrorRetry, tile_pairs, tile_slices
from ikpca.kernels import FeatureSplit, Floats, Indices, Kernel, MatmulKernel, Operand, Rows

if TYPE_CHECKING:
    from ikpca.gram.sparse_features import SparseFeatureProducts


class GramSource(Protocol):
    """K, uncentred. Whether it is computed or stored ends here; products: :func:`multiply`."""

    @property
    def n_samples(self) -> int:
        """The order l of K."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64, as the data."""

    @property
    def symmetric(self) -> bool:
        """Whether K[i, j] = K[j, i], so that half of the tiles suffice."""

    @property
    def side(self) -> int:
        """Side of the square tiles that products are made of."""

    @property
    def tile(self) -> int:
        """How many columns of a strip of rows are best filled at a time."""

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Write K[rows, columns] into ``out``; several threads may do so at once."""

    def held(self, rows: slice, columns: slice) -> Floats | None:
        """K[rows, columns] to read, where it is in memory already."""

    def diagonal(self) -> Floats:
        """k(x_i, x_i) for every sample."""


@runtime_checkable
class CountedSource(GramSource, Protocol):
    """A source that knows what was evaluated of it."""

    @property
    def entries(self) -> int:
        """Entries evaluated, not read."""


class LandmarkRows(Protocol):
    """K[L, :] for a few rows L, wherever it is, and its way to r rows over all samples."""

    def among(self) -> Floats:
        """K[L, L] in double precision."""

    def reduce(self, basis: Floats) -> Floats:
        """Keep B = basis · K[L, :] less its row means, and return B Bᵀ."""

    def turned(self, T: Floats) -> Floats:
        """T B, of shape (r, l)."""


@runtime_checkable
class DistributedSource(CountedSource, Protocol):
    """A source whose tiles are made elsewhere: only narrow matrices come back."""

    def product(self, V: Floats, *, square: bool) -> tuple[Floats, float]:
        """K·V, and ‖K‖²_F where it is asked for."""

    def landmark_rows(self, indices: Indices) -> LandmarkRows:
        """K[indices, :], which stays where it is."""


class WrappedSource:
    """Shape, type and layout of the source within; what is read, and how, is up to the wrapper."""

    def __init__(self, source: GramSource) -> None:
        self._source = source

    @property
    def n_samples(self) -> int:
        """The order of K."""
        return self._source.n_samples

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the source."""
        return self._source.dtype

    @property
    def symmetric(self) -> bool:
        """That of the source."""
        return self._source.symmetric

    @property
    def side(self) -> int:
        """That of the source."""
        return self._source.side

    @property
    def tile(self) -> int:
        """That of the source."""
        return self._source.tile

    def diagonal(self) -> Floats:
        """k(x, x)."""
        return self._source.diagonal()


Result = TypeVar("Result")
_Pair: TypeAlias = tuple[slice, slice]


def multiply(source: GramSource, V: Floats, workers: Workers = SERIAL) -> Floats:
    """K·V for V of shape (l, columns); a symmetric K is read once above its diagonal.

    Parts are added in the order of tiles, so that the result does not depend on the threads.
    """
    return multiply_and_square(source, V, workers, square=False)[0]


def multiply_and_square(
    source: GramSource, V: Floats, workers: Workers = SERIAL, *, square: bool = True
) -> tuple[Floats, float]:
    """K·V, and ‖K‖²_F from the tiles that go by."""
    if isinstance(source, DistributedSource):
        return source.product(V, square=square)
    product = np.zeros((source.n_samples, V.shape[1]), dtype=np.result_type(V, source.dtype))
    squared = 0.0

    def parts(pair: _Pair) -> tuple[_Pair, Floats, Floats | None, float]:
        rows, columns = pair
        tile = _tile(source, pair, workers)
        mirrored = source.symmetric and rows != columns
        norm = float(np.vdot(tile, tile)) if square else 0.0
        # The other way round, tile.T @ V[rows], takes a fifth longer.
        return pair, tile @ V[columns], (V[rows].T @ tile).T if mirrored else None, norm

    for pieces in workers.map(_without_zero_tiles(parts, source, workers), _pairs(source)):
        for (rows, columns), across, mirrored, norm in pieces:
            product[rows] += across
            squared += norm
            if mirrored is not None:
                product[columns] += mirrored
                squared += norm
    return product, squared


def full_matrix(source: GramSource, workers: Workers = SERIAL) -> Floats:
    """K as one matrix, by tiles. For the dense reference and for small l."""
    K = np.empty((source.n_samples, source.n_samples), dtype=source.dtype)

    def fill(pair: _Pair) -> None:
        rows, columns = pair
        K[rows, columns] = _tile(source, pair, workers)
        if source.symmetric and rows != columns:
            K[columns, rows] = K[rows, columns].T

    workers.each(_without_zero_tiles(fill, source, workers), _pairs(source))
    return K


def _without_zero_tiles(
    work: Callable[[_Pair], Result], source: GramSource, workers: Workers
) -> Callable[[_Pair], list[Result]]:
    """Work on tiles that is done in pieces where memory gives out."""
    return lambda pair: workers.shortage.in_tiles(work, pair, symmetric=source.symmetric)


def _pairs(source: GramSource) -> Iterator[_Pair]:
    return tile_pairs(source.n_samples, source.side, symmetric=source.symmetric)


def _tile(source: GramSource, pair: _Pair, workers: Workers) -> Floats:
    rows, columns = pair
    held = source.held(rows, columns)
    if held is not None:
        return held
    shape = (rows.stop - rows.start, columns.stop - columns.start)
    tile = workers.scratch(shape, source.dtype)
    source.fill(rows, columns, tile)
    return tile


def cross_gram(kernel: Kernel, X: Rows, Y: Rows) -> Floats:
    """k(x_i, y_j) for two sets of rows, filled in column tiles so that scratch stays small."""
    out = np.empty((X.shape[0], Y.shape[0]), dtype=np.result_type(X.dtype, Y.dtype))
    shortage = MemoryErrorRetry()

    def fill(columns: slice) -> None:
        kernel.fill(X, Y[columns], out[:, columns])

    for columns in tile_slices(Y.shape[0]):
        shortage.in_strips(fill, columns)
    return out


class ComputedGram:
    """The kernel matrix of the rows of ``X``, dense or CSR.

    Parameters
    ----------
    kernel : Kernel
    X : rows
    side : int
        Of the tiles.
    frame : Frame, optional
        That of X. With it, the operand of a folding kernel is made once for all tiles: a copy of X,
        and tiles at nearly the speed of bare products.
    """

    symmetric = True

    def __init__(
        self, kernel: Kernel, X: Rows, side: int = TILE, *, frame: FeatureSplit | None = None
    ) -> None:
        self._kernel = kernel
        self._X = X
        self.side = self.tile = side
        self._fold = None
        if frame is not None and isinstance(kernel, MatmulKernel):
            self._fold = _Folded(kernel, X, frame)

    @property
    def n_samples(self) -> int:
        """The order of K."""
        return int(self._X.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the rows."""
        return np.dtype(self._X.dtype)

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Compute K[rows, columns]."""
        if self._fold is not None:
            self._fold.fill(rows, columns, out)
        else:
            self._kernel.fill(self._X[rows], self._X[columns], out)

    def meet(self, others: Rows) -> Callable[[slice, Floats], None]:
        """What writes k(z, x) of other rows z, for some columns x at a time."""
        if self._fold is not None:
            return self._fold.meet(others)
        return lambda columns, out: self._kernel.fill(others, self._X[columns], out)

    def held(self, rows: slice, columns: slice) -> Floats | None:
        """Nothing is stored."""
        return None

    def diagonal(self) -> Floats:
        """k(x, x)."""
        parts = [
            self._kernel.diagonal(self._X[part]) for part in tile_slices(self.n_samples, self.side)
        ]
        return np.concatenate(parts)


class _Folded:
    """The right operand of a folding kernel, and what it makes of it."""

    def __init__(self, kernel: MatmulKernel, X: Floats, frame: FeatureSplit) -> None:
        self._kernel = kernel
        self._frame = frame
        self._right = kernel.fold(X, frame)
        self._rare = _rare_products(self._right)
        self._latest = _Latest()

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        self._write(self._left(rows), columns, out)

    def meet(self, others: Floats) -> Callable[[slice, Floats], None]:
        left = self._kernel.fold_left(others, self._frame)
        return lambda columns, out: self._write(left, columns, out)

    def _left(self, rows: slice | Indices) -> Operand:
        """Tiles come row by row, so that many in turn have the same left operand."""
        if not isinstance(rows, slice):
            return self._kernel.mirror(self._right.copy(rows))
        latest = self._latest
        if latest.left is None or rows != latest.rows:
            # Two at a time would be more than is planned for.
            latest.left = None
            latest.left, latest.rows = self._kernel.mirror(self._right.copy(rows)), rows
        return latest.left

    def _write(self, left: Operand, columns: slice, out: Floats) -> None:
        np.matmul(left.dense, self._right.dense[columns].T, out=out)
        if self._rare is not None:
            self._rare.add(left.rare, columns, out)
        self._kernel.finish(out)


class _Latest(threading.local):
    """The left operand that a thread had last."""

    rows: slice | None = None
    left: Operand | None = None


def _rare_products(right: Operand) -> SparseFeatureProducts | None:
    if right.rare is None:
        return None
    from ikpca.gram.sparse_features import SparseFeatureProducts

    return SparseFeatureProducts(right.rare)


class PrecomputedGram:
    """A kernel matrix that the user has, dense or CSR, symmetric or not. It is never written to."""

    def __init__(self, K: Rows, symmetric: bool | None = None) -> None:
        self._K = K
        self.symmetric = _is_symmetric(K) if symmetric is None else symmetric

    @property
    def n_samples(self) -> int:
        """The order of K."""
        return int(self._K.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the matrix."""
        return np.dtype(self._K.dtype)

    side = TILE

    @property
    def tile(self) -> int:
        """All of a row: copying is bound by memory, and one long copy is the fastest."""
        return self.n_samples

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Copy K[rows, columns]."""
        if sparse.issparse(self._K):
            out[...] = self._K[rows, columns].toarray()
        elif isinstance(rows, slice) or columns != slice(0, self.n_samples):
            out[...] = self._K[rows, columns]
        else:
            # Unlike indexing, this makes no temporary; clipping only skips a check of the indices.
            np.take(self._K, rows, axis=0, out=out, mode="clip")

    def held(self, rows: slice, columns: slice) -> Floats | None:
        """A view, where the matrix is dense."""
        return None if sparse.issparse(self._K) else self._K[rows, columns]

    def diagonal(self) -> Floats:
        """A copy of the diagonal."""
        return np.array(self._K.diagonal())


def _is_symmetric(K: Rows) -> bool:
    """Whether K equals its transpose up to rounding, as one product X @ Xᵀ leaves it."""
    if sparse.issparse(K):
        difference, scale = abs(K - K.T).max(), abs(K).max()
    else:
        difference, scale = np.abs(K - K.T).max(), np.abs(K).max()
    return bool(difference <= 100 * np.finfo(K.dtype).eps * scale)


class CountingGram(WrappedSource):
    """Wraps a gram source and counts the entries that are asked of it."""

    def __init__(self, source: GramSource) -> None:
        super().__init__(source)
        self.entries = 0
        self._lock = Lock()

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Write K[rows, columns], counted."""
        with self._lock:
            self.entries += out.size
        self._source.fill(rows, columns, out)

    def held(self, rows: slice, columns: slice) -> Floats | None:
        """What the source holds is not evaluated."""
        return self._source.held(rows, columns)

    def diagonal(self) -> Floats:
        """k(x, x), counted."""
        self.entries += self.n_samples
        return super().diagonal()


class StoredGram(WrappedSource):
    """The whole matrix of another source; ``entries`` counts what was evaluated, not read."""

    def __init__(self, source: GramSource, workers: Workers = SERIAL) -> None:
        counted = CountingGram(source)
        super().__init__(PrecomputedGram(full_matrix(counted, workers), symmetric=source.symmetric))
        self.entries = counted.entries

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Copy K[rows, columns]."""
        self._source.fill(rows, columns, out)

    def held(self, rows: slice, columns: slice) -> Floats | None:
        """A view."""
        return self._source.held(rows, columns)


_TILES_PER_PIECE = 16


class CachedGram(WrappedSource):
    """Keeps square tiles of another source; with symmetry, half of K is all of it.

    Which tiles are kept changes what is evaluated, never what comes out.

    Parameters
    ----------
    source : GramSource
    allowance : int
        Bytes to keep.
    """

    def __init__(self, source: GramSource, allowance: int) -> None:
        self._counted = CountingGram(source)
        super().__init__(self._counted)
        self._left = allowance
        self._memory = np.empty(0, dtype=source.dtype)
        self._tiles: dict[tuple[int, int, int, int], Floats] = {}
        self._lock = Lock()

    @property
    def entries(self) -> int:
        """Entries evaluated, not read."""
        return self._counted.entries

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Compute K[rows, columns]; a tile is copied to be kept, where there is room.

        A product written straight into fresh memory takes longer than the same product and a copy.
        """
        self._source.fill(rows, columns, out)
        if isinstance(rows, slice):
            kept = self._room(*out.shape)
            if kept is not None:
                kept[...] = out
                self._tiles[_key(rows, columns)] = kept

    def held(self, rows: slice, columns: slice) -> Floats | None:
        """A tile that is kept."""
        return self._tiles.get(_key(rows, columns))

    def _room(self, n_rows: int, n_columns: int) -> Floats | None:
        """Memory for a tile, cut from larger pieces: those come in huge pages, which cost less."""
        size = n_rows * n_columns
        with self._lock:
            if size * self.dtype.itemsize > self._left:
                return None
            self._left -= size * self.dtype.itemsize
            if len(self._memory) < size:
                self._memory = np.empty(_TILES_PER_PIECE * self.side**2, dtype=self.dtype)
            tile, self._memory = self._memory[:size], self._memory[size:]
        return tile.reshape(n_rows, n_columns)


def _key(rows: slice, columns: slice) -> tuple[int, int, int, int]:
    return rows.start, rows.stop, columns.start, columns.stop

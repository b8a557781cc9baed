"""Centered kernel matrix K' = K − MK − (MK)ᵀ + MKM (Günter 2006, eq. 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Self

import numpy as np

from ikpca.errors import InvalidInput
from ikpca.gram.resources import SERIAL, Workers
from ikpca.gram.sources import GramSource, multiply, multiply_and_square, tile_pairs, tile_slices
from ikpca.kernels import Floats, Indices

#: Columns per thread; for fewer, starting a thread takes longer than it saves.
_COLUMNS_PER_THREAD = 4096
#: Rounding errors of the mean of k'(x, x), relative to that of k(x, x), in machine epsilons.
_MAX_ROUNDING = 100
#: Rows of the input are validated before the fit; kernel values are known only when computed.
NOT_FINITE = (
    "the kernel matrix contains values that are not finite: a polynomial of fractional degree, or "
    "a kernel function of your own, may be undefined for some pairs of rows; choose another kernel."
)


@dataclass(frozen=True)
class Centering:
    """Means of the training kernel matrix, which center the kernel values of new rows.

    Parameters
    ----------
    column_means : ndarray of shape (l,)
        Mean of k(x_j, ·) over the training rows, for every training row j.
    grand_mean : float
        Mean of all entries of K.
    """

    column_means: Floats
    grand_mean: float


@dataclass(frozen=True, eq=False)
class GramMeans:
    """Result of the centering pass over K, stored so that a resumed fit needs no second one."""

    row_means: Floats
    centering: Centering
    #: Estimate of ‖K'‖², at no cost; its error is the rounding error of ‖K‖².
    squared_norm: float
    #: Entries of K evaluated before the source was opened.
    entries: int


class CenteredGram:
    """Centered kernel matrix K', read in the same tiles as K."""

    def __init__(self, source: GramSource, means: GramMeans, workers: Workers) -> None:
        self._source = source
        self._means = means
        self._workers = workers
        self.n_samples, self.dtype = source.n_samples, source.dtype
        self.centering = means.centering
        self.squared_norm_estimate = means.squared_norm
        self._buffer = self._other_buffer = np.empty((0, source.n_samples), dtype=source.dtype)
        self._reading: Callable[[], CenteredStrip] | None = None

    @property
    def means(self) -> GramMeans:
        """Means and counts from which the matrix can be restored."""
        return replace(self._means, entries=self.entries)

    @property
    def entries(self) -> int:
        """Entries of K evaluated so far, including the centering pass."""
        return self._means.entries + self._source.entries

    @cached_property
    def mean_diagonal(self) -> float:
        """Mean κ of k'(x, x)."""
        return float(self.diagonal().mean(dtype=np.float64))

    @cached_property
    def rounding(self) -> float:
        """Bound of the rounding error of κ, from the kernel values that it is computed from."""
        scale = float(np.abs(self._source.diagonal()).mean(dtype=np.float64))
        return _MAX_ROUNDING * float(np.finfo(self.dtype).eps) * scale

    @property
    def has_variance(self) -> bool:
        """True if κ exceeds its rounding error."""
        return self.mean_diagonal > self.rounding

    def strip(self, indices: Indices, extra_rows: int = 0) -> CenteredStrip:
        """Return K'[indices, :] with workspace for ``extra_rows`` rows to update.

        Its memory is reused by the second call after this one.
        """
        n_rows = len(indices)
        stacked = self._next_buffer(n_rows + 2 + extra_rows)

        def fill(columns: slice) -> None:
            self._source.fill(indices, columns, stacked[:n_rows, columns])

        self._workers.each(fill, tile_slices(self.n_samples, self._source.strip_width))
        return self._centered_strip(stacked, indices)

    def prefetch_strip(self, indices: Indices, extra_rows: int = 0) -> Callable[[], CenteredStrip]:
        """Start reading a strip in another thread if K is stored; return a function for the result.

        If K is computed, the strip is computed by all threads when the function is called.
        """
        everything = slice(0, self.n_samples)
        if self._source.strip_width < self.n_samples or self._workers.n_threads == 1:
            return partial(self.strip, indices, extra_rows)
        stacked = self._next_buffer(len(indices) + 2 + extra_rows)

        def read() -> CenteredStrip:
            self._source.fill(indices, everything, stacked[: len(indices)])
            return self._centered_strip(stacked, indices).cache_columns(indices)

        self._reading = self._workers.submit(read)
        return self._reading

    def _centered_strip(self, stacked: Floats, indices: Indices) -> CenteredStrip:
        n_rows = len(indices)
        stacked[n_rows] = self.centering.column_means
        stacked[n_rows + 1] = 1
        offsets = self._means.row_means[indices] - self.dtype.type(self.centering.grand_mean)
        return CenteredStrip(stacked, offsets, self._workers)

    def _next_buffer(self, n_rows: int) -> Floats:
        """Return one of two buffers in turn: allocating pages takes as long as filling them."""
        if self._reading is not None:
            # A strip of an undone pass may still be read into one of them.
            self._reading()
            self._reading = None
        self._buffer, self._other_buffer = self._other_buffer, self._buffer
        if len(self._buffer) < n_rows:
            self._buffer = np.empty((n_rows, self.n_samples), dtype=self.dtype)
        return self._buffer[:n_rows]

    def rows(self, indices: Indices) -> Floats:
        """Return K'[indices, :]."""
        return self.strip(indices).toarray()

    def diagonal(self) -> Floats:
        """Return k'(x, x) for every sample."""
        means = self._means.row_means + self.centering.column_means
        return self._source.diagonal() - means + self.centering.grand_mean

    def multiply(self, V: Floats) -> Floats:
        """Return K'V: center V, multiply by K, and center the product."""
        return center_columns(multiply(self._source, center_columns(V), self._workers))


class CenteredStrip:
    """Rows K'[P, :] of the centered matrix, with workspace to update RK'.

    The rows are stored as K[P, :] stacked on the column means, a row of ones, and free rows for
    RK', so that centering and the update of RK' take a single matrix product.

    Parameters
    ----------
    stacked : ndarray of shape (m + 2 + extra_rows, l)
    row_offsets : ndarray of shape (m,)
        Row means less the grand mean.
    workers : Workers
        Threads that share the product by column tiles.
    """

    def __init__(self, stacked: Floats, row_offsets: Floats, workers: Workers) -> None:
        self._stacked = stacked
        self._row_offsets = row_offsets
        self._workers = workers
        self._cached_columns: tuple[Indices, Floats] | None = None

    def cache_columns(self, indices: Indices) -> Self:
        """Cache K'[P, indices] for the next call of ``columns``."""
        self._cached_columns = (indices, self.columns(indices))
        return self

    def columns(self, indices: Indices) -> Floats:
        """Return K'[P, indices]."""
        if self._cached_columns is not None and self._cached_columns[0] is indices:
            return self._cached_columns[1]
        columns = np.take(self._stacked[: len(self._row_offsets) + 1], indices, axis=1)
        columns[:-1] -= columns[-1] + self._row_offsets[:, None]
        return columns[:-1]

    def toarray(self) -> Floats:
        """Return K'[P, :]."""
        n_rows = len(self._row_offsets)
        return self._stacked[:n_rows] - self._stacked[n_rows] - self._row_offsets[:, None]

    def dot(self, V: Floats) -> Floats:
        """Return K'[P, :] V."""
        n_rows = len(self._row_offsets)
        product = self._stacked[: n_rows + 1] @ V
        return product[:-1] - product[-1] - np.outer(self._row_offsets, V.sum(axis=0))

    def update(self, T: Floats, products: Floats, C: Floats) -> Floats:
        """Return T RK' + C K'[P, :], computed as one matrix product per column tile.

        Parameters
        ----------
        T : ndarray of shape (extra_rows, extra_rows)
        products : ndarray of shape (extra_rows, l)
            RK'.
        C : ndarray of shape (extra_rows, m)
        """
        n_above = len(self._row_offsets) + 2
        left = np.hstack([C, -C.sum(axis=1)[:, None], -(C @ self._row_offsets)[:, None], T])
        updated = np.empty_like(products)

        def update_tile(columns: slice) -> None:
            self._stacked[n_above:, columns] = products[:, columns]
            np.matmul(left, self._stacked[:, columns], out=updated[:, columns])

        self._workers.each(update_tile, tile_slices(products.shape[1], _COLUMNS_PER_THREAD))
        return updated


def center_gram(
    source: GramSource, V: Floats | None = None, workers: Workers = SERIAL
) -> tuple[CenteredGram, Floats]:
    """Center K, and compute K'V in the same pass over it.

    A column of ones in addition to V gives the row sums without a further pass.

    Parameters
    ----------
    source : GramSource
        The uncentered kernel matrix.
    V : ndarray of shape (l, columns), optional
        Vectors to multiply in the same pass.
    workers : Workers
        Threads that share the tiles, here and in later products.

    Returns
    -------
    gram : CenteredGram
    product : ndarray of shape (l, columns)
        K'V.
    """
    n_samples = source.n_samples
    V = np.empty((n_samples, 0), dtype=source.dtype) if V is None else center_columns(V)
    ones = np.ones((n_samples, 1), dtype=V.dtype)
    product, squared = multiply_and_square(source, np.hstack([V, ones]), workers)
    row_means = product[:, -1] / n_samples
    if not np.isfinite(row_means).all():
        raise InvalidInput(NOT_FINITE)
    column_means = row_means if source.symmetric else _column_means(source)
    centering = Centering(column_means, float(row_means.mean(dtype=np.float64)))
    squared_norm = _centered_squared_norm(squared, row_means, centering)
    gram = CenteredGram(source, GramMeans(row_means, centering, squared_norm, 0), workers)
    return gram, center_columns(product[:, :-1])


def center_columns(V: Floats) -> Floats:
    """Subtract the mean of each column, computed in double precision."""
    return V - V.mean(axis=0, dtype=np.float64).astype(V.dtype)


def _centered_squared_norm(squared: float, row_means: Floats, centering: Centering) -> float:
    """Return ‖K'‖² = ‖K‖² − l Σ(row means²) − l Σ(column means²) + l² (grand mean)²."""
    n_samples = len(row_means)
    rows = float(np.sum(np.square(row_means, dtype=np.float64)))
    columns = float(np.sum(np.square(centering.column_means, dtype=np.float64)))
    return squared - n_samples * (rows + columns) + (n_samples * centering.grand_mean) ** 2


def _column_means(source: GramSource) -> Floats:
    """Return the column means of an asymmetric K, which the product does not give."""
    n_samples = source.n_samples
    sums = np.zeros(n_samples, dtype=np.float64)
    for rows, columns in tile_pairs(n_samples, source.side, symmetric=False):
        tile = np.empty((rows.stop - rows.start, columns.stop - columns.start), source.dtype)
        source.fill(rows, columns, tile)
        sums[columns] += tile.sum(axis=0, dtype=np.float64)
    return (sums / n_samples).astype(source.dtype)

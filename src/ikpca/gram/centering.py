"""Centered kernel matrix K' = K − MK − (MK)ᵀ + MKM (Günter 2006, eq. 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from ikpca.errors import InvalidInput
from ikpca.gram.parallel import SERIAL, Workers
from ikpca.gram.sources import (
    CountedSource,
    CountingGram,
    GramSource,
    multiply,
    multiply_and_square,
)
from ikpca.gram.tiles import tile_pairs, tile_slices
from ikpca.kernels import Floats, Indices

#: Columns per thread; below it, waking a thread costs more than it saves.
_SHARED_COLUMNS = 4096


class CenteredStrip:
    """K'[P, :], kept as K[P, :] above its column means, a row of ones, and room for RK'.

    Centring and the update of RK' are then part of one product, and cost no passes of their own.

    Parameters
    ----------
    stacked : ndarray of shape (m + 2 + room, l)
    row_offsets : ndarray of shape (m,)
        Row means less the grand mean.
    workers : Workers
        Share the product by column tiles.
    """

    def __init__(self, stacked: Floats, row_offsets: Floats, workers: Workers) -> None:
        self._stacked = stacked
        self._row_offsets = row_offsets
        self._workers = workers
        self._known: tuple[Indices, Floats] | None = None

    def look_up(self, indices: Indices) -> Self:
        """Remember K'[P, indices], which will be asked for; another thread may do it ahead."""
        self._known = (indices, self.columns(indices))
        return self

    def columns(self, indices: Indices) -> Floats:
        """K'[P, indices]."""
        if self._known is not None and self._known[0] is indices:
            return self._known[1]
        chosen = np.take(self._stacked[: len(self._row_offsets) + 1], indices, axis=1)
        chosen[:-1] -= chosen[-1] + self._row_offsets[:, None]
        return chosen[:-1]

    def whole(self) -> Floats:
        """K'[P, :] itself."""
        n_rows = len(self._row_offsets)
        return self._stacked[:n_rows] - self._stacked[n_rows] - self._row_offsets[:, None]

    def update(self, T: Floats, products: Floats, C: Floats) -> Floats:
        """T RK' + C K'[P, :] as one matrix product per column tile."""
        n_above = len(self._row_offsets) + 2
        left = np.hstack([C, -C.sum(axis=1)[:, None], -(C @ self._row_offsets)[:, None], T])
        updated = np.empty_like(products)

        def part(columns: slice) -> None:
            self._stacked[n_above:, columns] = products[:, columns]
            np.matmul(left, self._stacked[:, columns], out=updated[:, columns])

        self._workers.each(part, tile_slices(products.shape[1], _SHARED_COLUMNS))
        return updated


#: Rows are checked when they come in; what a kernel makes of them is known only now.
NOT_FINITE = (
    "the kernel matrix holds values that are not finite: a fraction as degree of a polynomial, or "
    "a function of your own, may give none for some pairs of rows; choose another kernel."
)


@dataclass(frozen=True)
class Centering:
    """What new rows need to be centred like the training rows.

    Parameters
    ----------
    column_means : ndarray of shape (l,)
        Mean of k(x_j, ·) over the training rows, for every training row j.
    grand_mean : float
        Mean of all entries of K.
    """

    column_means: Floats
    grand_mean: float

    def project(self, K_new: Floats, coefficients: Floats) -> Floats:
        """Projections y = A k' of new rows, from their uncentred kernel values (n_new, l).

        A k' = (A − row mean)(k − column means): centring the small A spares centring the tile.
        """
        zero_sum = coefficients - coefficients.mean(axis=1, keepdims=True)
        return K_new @ zero_sum.T - zero_sum @ self.column_means

    def diagonal(self, K_new: Floats, diagonal: Floats) -> Floats:
        """k'(x, x) = k(x, x) − 2 mean_j k(x, x_j) + grand mean, for new rows."""
        return diagonal - 2 * K_new.mean(axis=1) + self.grand_mean


@dataclass(frozen=True, eq=False)
class GramMeans:
    """What one pass over K found, so that none is needed to centre it again.

    Parameters
    ----------
    row_means : ndarray of shape (l,)
    centring : Centring
    squared_norm : float
        Estimate of ‖K'‖².
    entries : int
        Evaluated until then.
    """

    row_means: Floats
    centring: Centering
    squared_norm: float
    entries: int


class CenteredGram:
    """K', read in the same pieces as K."""

    def __init__(
        self,
        source: CountedSource,
        row_means: Floats,
        centring: Centering,
        workers: Workers,
    ) -> None:
        self._source = source
        self._row_means = row_means
        self._workers = workers
        self.centring = centring
        #: ‖K'‖² as the centring pass found it: free, and good to the rounding of ‖K‖².
        self.squared_norm_estimate = float("nan")
        self._earlier_entries = 0
        self._buffer = self._spare = np.empty((0, source.n_samples), dtype=source.dtype)

    @classmethod
    def restored(cls, source: GramSource, means: GramMeans, workers: Workers) -> CenteredGram:
        """Centred by what an earlier pass over the same K found."""
        gram = cls(count_entries(source), means.row_means, means.centring, workers)
        gram.squared_norm_estimate = means.squared_norm
        gram._earlier_entries = means.entries
        return gram

    @property
    def means(self) -> GramMeans:
        """What ``restored`` needs."""
        return GramMeans(self._row_means, self.centring, self.squared_norm_estimate, self.entries)

    @property
    def n_samples(self) -> int:
        """The order of K'."""
        return self._source.n_samples

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the source."""
        return self._source.dtype

    @property
    def entries(self) -> int:
        """Entries of K evaluated so far, those of the centring pass included."""
        return self._earlier_entries + self._source.entries

    @property
    def recovery(self) -> str:
        """Empty, or what was done about memory that gave out."""
        return self._workers.shortage.note

    @cached_property
    def mean_diagonal(self) -> float:
        """κ = mean k'(x, x)."""
        return float(self.diagonal().mean(dtype=np.float64))

    @cached_property
    def has_variance(self) -> bool:
        """Whether κ is more than the rounding of the kernel values it is a difference of."""
        scale = float(np.abs(self._source.diagonal()).mean(dtype=np.float64))
        return self.mean_diagonal > 100 * float(np.finfo(self.dtype).eps) * scale

    def strip(self, indices: Indices, room: int = 0) -> CenteredStrip:
        """K'[indices, :] to update ``room`` rows with; it lives until the next but one."""
        n_rows = len(indices)
        stacked = self._scratch(n_rows + 2 + room)

        def part(columns: slice) -> None:
            self._source.fill(indices, columns, stacked[:n_rows, columns])

        self._workers.each(
            partial(self._workers.shortage.in_strips, part),
            tile_slices(self.n_samples, self._source.tile),
        )
        return self._centred_strip(stacked, indices)

    def strip_ahead(self, indices: Indices, room: int = 0) -> Callable[[], CenteredStrip]:
        """The same, begun in another thread where K is stored.

        Where it is computed, all threads have enough to do when the time comes.
        """
        everything = slice(0, self.n_samples)
        if self._source.tile < self.n_samples or self._workers.n_threads == 1:
            return partial(self.strip, indices, room)
        stacked = self._scratch(len(indices) + 2 + room)

        def read() -> CenteredStrip:
            self._source.fill(indices, everything, stacked[: len(indices)])
            return self._centred_strip(stacked, indices).look_up(indices)

        return self._workers.ahead(read)

    def _centred_strip(self, stacked: Floats, indices: Indices) -> CenteredStrip:
        n_rows = len(indices)
        stacked[n_rows] = self.centring.column_means
        stacked[n_rows + 1] = 1
        offsets = self._row_means[indices] - self.dtype.type(self.centring.grand_mean)
        return CenteredStrip(stacked, offsets, self._workers)

    def rows(self, indices: Indices) -> Floats:
        """K'[indices, :], to be read."""
        return self.strip(indices).whole()

    def diagonal(self) -> Floats:
        """k'(x, x) for every sample."""
        means = self._row_means + self.centring.column_means
        return self._source.diagonal() - means + self.centring.grand_mean

    def _scratch(self, n_rows: int) -> Floats:
        """Two pieces of memory in turn: fresh pages would cost as much as filling them."""
        spare, self._buffer = self._buffer, self._spare
        self._spare = spare
        if len(self._buffer) < n_rows:
            self._buffer = np.empty((n_rows, self.n_samples), dtype=self.dtype)
        return self._buffer[:n_rows]

    def squared_norm(self) -> float:
        """‖K'‖²_F, a strip of rows at a time."""
        strips = (
            self.rows(np.arange(self.n_samples)[part]) for part in tile_slices(self.n_samples, 256)
        )
        return sum(float(np.einsum("ij,ij->", rows, rows, dtype=np.float64)) for rows in strips)

    def multiply(self, V: Floats) -> Floats:
        """K'V needs no means: centre V, multiply by K, centre the product."""
        return center_columns(multiply(self._source, center_columns(V), self._workers))


def count_entries(source: GramSource) -> CountedSource:
    """The source, with its entries counted."""
    return source if isinstance(source, CountedSource) else CountingGram(source)


def center_gram(
    source: GramSource, V: Floats | None = None, workers: Workers = SERIAL
) -> tuple[CenteredGram, Floats]:
    """Centre K, and in the same pass over it form K'V.

    One column of ones beside V gives the row sums, so a start that needs K'V pays nothing for them.

    Parameters
    ----------
    source : GramSource
        The uncentred kernel matrix.
    V : ndarray of shape (l, columns), optional
        Vectors to multiply on the way.
    workers : Workers
        Share the tiles, here and later.

    Returns
    -------
    gram : CentredGram
    product : ndarray of shape (l, columns)
        K'V.
    """
    known = count_entries(source)
    n_samples = source.n_samples
    V = np.empty((n_samples, 0), dtype=source.dtype) if V is None else center_columns(V)
    ones = np.ones((n_samples, 1), dtype=V.dtype)
    product, squared = multiply_and_square(known, np.hstack([V, ones]), workers)
    row_means = product[:, -1] / n_samples
    if not np.isfinite(row_means).all():
        raise InvalidInput(NOT_FINITE)
    column_means = row_means if source.symmetric else _column_means(known)
    centring = Centering(column_means, float(row_means.mean(dtype=np.float64)))
    gram = CenteredGram(known, row_means, centring, workers)
    gram.squared_norm_estimate = _centered_norm(squared, row_means, centring)
    return gram, center_columns(product[:, :-1])


def _centered_norm(squared: float, row_means: Floats, centring: Centering) -> float:
    """‖K'‖² = ‖K‖² − l Σ(row means²) − l Σ(column means²) + l² (grand mean)²."""
    n_samples = len(row_means)
    rows = float(np.sum(np.square(row_means, dtype=np.float64)))
    columns = float(np.sum(np.square(centring.column_means, dtype=np.float64)))
    return squared - n_samples * (rows + columns) + (n_samples * centring.grand_mean) ** 2


def center_columns(V: Floats) -> Floats:
    """V less the mean of each column; the mean in double precision."""
    return V - V.mean(axis=0, dtype=np.float64).astype(V.dtype)


def _column_means(source: GramSource) -> Floats:
    """Means over the rows of an asymmetric K, which the product does not give."""
    n_samples = source.n_samples
    sums = np.zeros(n_samples, dtype=np.float64)
    for rows, columns in tile_pairs(n_samples, source.side, symmetric=False):
        tile = np.empty((rows.stop - rows.start, columns.stop - columns.start), source.dtype)
        source.fill(rows, columns, tile)
        sums[columns] += tile.sum(axis=0, dtype=np.float64)
    return (sums / n_samples).astype(source.dtype)

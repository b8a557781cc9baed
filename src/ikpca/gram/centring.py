"""K' = K − MK − (MK)ᵀ + MKM (Günter 2006, eq. 5), and the same training mean for new rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from ikpca.errors import InvalidInput
from ikpca.gram.counting import CountingGram
from ikpca.gram.products import multiply, multiply_and_square
from ikpca.gram.source import CountedSource, GramSource, Indices
from ikpca.gram.strips import CentredStrip
from ikpca.gram.tiles import tile_pairs, tiles
from ikpca.gram.workers import SERIAL, Workers
from ikpca.kernels import Floats

#: Rows are checked when they come in; what a kernel makes of them is known only now.
NOT_FINITE = (
    "the kernel matrix holds values that are not finite: a fraction as degree of a polynomial, or "
    "a function of your own, may give none for some pairs of rows; choose another kernel."
)

__all__ = [
    "NOT_FINITE",
    "CentredGram",
    "Centring",
    "GramMeans",
    "centre_columns",
    "centred",
    "counted",
]


@dataclass(frozen=True)
class Centring:
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
    centring: Centring
    squared_norm: float
    entries: int


class CentredGram:
    """K', read in the same pieces as K."""

    def __init__(
        self,
        source: CountedSource,
        row_means: Floats,
        centring: Centring,
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
    def restored(cls, source: GramSource, means: GramMeans, workers: Workers) -> CentredGram:
        """Centred by what an earlier pass over the same K found."""
        gram = cls(counted(source), means.row_means, means.centring, workers)
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

    def strip(self, indices: Indices, room: int = 0) -> CentredStrip:
        """K'[indices, :] to update ``room`` rows with; it lives until the next but one."""
        n_rows = len(indices)
        stacked = self._scratch(n_rows + 2 + room)

        def part(columns: slice) -> None:
            self._source.fill(indices, columns, stacked[:n_rows, columns])

        self._workers.each(
            partial(self._workers.shortage.in_strips, part),
            tiles(self.n_samples, self._source.tile),
        )
        return self._centred_strip(stacked, indices)

    def strip_ahead(self, indices: Indices, room: int = 0) -> Callable[[], CentredStrip]:
        """The same, begun in another thread where K is stored.

        Where it is computed, all threads have enough to do when the time comes.
        """
        everything = slice(0, self.n_samples)
        if self._source.tile < self.n_samples or self._workers.n_threads == 1:
            return partial(self.strip, indices, room)
        stacked = self._scratch(len(indices) + 2 + room)

        def read() -> CentredStrip:
            self._source.fill(indices, everything, stacked[: len(indices)])
            return self._centred_strip(stacked, indices).look_up(indices)

        return self._workers.ahead(read)

    def _centred_strip(self, stacked: Floats, indices: Indices) -> CentredStrip:
        n_rows = len(indices)
        stacked[n_rows] = self.centring.column_means
        stacked[n_rows + 1] = 1
        offsets = self._row_means[indices] - self.dtype.type(self.centring.grand_mean)
        return CentredStrip(stacked, offsets, self._workers)

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
        strips = (self.rows(np.arange(self.n_samples)[part]) for part in tiles(self.n_samples, 256))
        return sum(float(np.einsum("ij,ij->", rows, rows, dtype=np.float64)) for rows in strips)

    def multiply(self, V: Floats) -> Floats:
        """K'V needs no means: centre V, multiply by K, centre the product."""
        return centre_columns(multiply(self._source, centre_columns(V), self._workers))


def counted(source: GramSource) -> CountedSource:
    """The source, with its entries counted."""
    return source if isinstance(source, CountedSource) else CountingGram(source)


def centred(
    source: GramSource, V: Floats | None = None, workers: Workers = SERIAL
) -> tuple[CentredGram, Floats]:
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
    known = counted(source)
    n_samples = source.n_samples
    V = np.empty((n_samples, 0), dtype=source.dtype) if V is None else centre_columns(V)
    ones = np.ones((n_samples, 1), dtype=V.dtype)
    product, squared = multiply_and_square(known, np.hstack([V, ones]), workers)
    row_means = product[:, -1] / n_samples
    if not np.isfinite(row_means).all():
        raise InvalidInput(NOT_FINITE)
    column_means = row_means if source.symmetric else _column_means(known)
    centring = Centring(column_means, float(row_means.mean(dtype=np.float64)))
    gram = CentredGram(known, row_means, centring, workers)
    gram.squared_norm_estimate = _centred_norm(squared, row_means, centring)
    return gram, centre_columns(product[:, :-1])


def _centred_norm(squared: float, row_means: Floats, centring: Centring) -> float:
    """‖K'‖² = ‖K‖² − l Σ(row means²) − l Σ(column means²) + l² (grand mean)²."""
    n_samples = len(row_means)
    rows = float(np.sum(np.square(row_means, dtype=np.float64)))
    columns = float(np.sum(np.square(centring.column_means, dtype=np.float64)))
    return squared - n_samples * (rows + columns) + (n_samples * centring.grand_mean) ** 2


def centre_columns(V: Floats) -> Floats:
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

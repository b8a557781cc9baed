"""Centered kernel matrix K' = K − MK − (MK)ᵀ + MKM (Günter 2006, eq. 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ikpca.errors import InvalidInput
from ikpca.gram.resources import SERIAL, Workers
from ikpca.gram.sources import GramSource, multiply, multiply_and_square, tile_slices
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
    """Means of the training kernel matrix, which center the kernel values of new rows."""

    #: Mean of k(x_j, ·) over the training rows, for every training row j.
    column_means: Floats
    grand_mean: float
    #: Estimate of ‖K'‖², at no cost; its error is the rounding error of ‖K‖².
    squared_norm: float = np.nan
    #: Entries of K evaluated before the source was opened; set in checkpoints.
    entries: int = 0


class CenteredGram:
    """Centered kernel matrix K', read in the same tiles as K."""

    def __init__(self, source: GramSource, centering: Centering, workers: Workers) -> None:
        self._source = source
        self._workers = workers
        self.n_samples, self.dtype = source.n_samples, source.dtype
        self.centering = centering

    @property
    def entries(self) -> int:
        """Entries of K evaluated so far, including the centering pass."""
        return self.centering.entries + self._source.entries

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

    def strip(self, indices: Indices, memory: Floats | None = None) -> CenteredStrip:
        """Return K'[indices, :]; ``memory`` is used for it if it is given."""
        n_rows = len(indices)
        if memory is None:
            memory = np.empty((n_rows + 2, self.n_samples), dtype=self.dtype)
        stacked = memory[: n_rows + 2]

        def fill(columns: slice) -> None:
            self._source.fill(indices, columns, stacked[:n_rows, columns])

        self._workers.for_each(fill, tile_slices(self.n_samples, self._source.strip_width))
        stacked[n_rows] = self.centering.column_means
        stacked[n_rows + 1] = 1
        offsets = self.centering.column_means[indices] - self.dtype.type(self.centering.grand_mean)
        return CenteredStrip(stacked, offsets, self._workers)

    def strips(self, blocks: Sequence[Indices]) -> Iterator[tuple[CenteredStrip, Floats]]:
        """Yield K'[P, :] and K'[P, P] of blocks P; a strip is valid until the next one.

        If K is stored, another thread reads the next strip in the meantime. If it is computed, all
        threads compute a strip. Two strips share memory in turn: allocating it takes as long as
        filling it.
        """
        shape = (len(blocks[0]) + 2, self.n_samples)
        memory = [np.empty(shape, dtype=self.dtype) for _ in range(2)]
        is_stored = self._source.strip_width >= self.n_samples and self._workers.n_threads > 1

        def read(number: int) -> tuple[CenteredStrip, Floats]:
            strip = self.strip(blocks[number], memory[number % 2])
            return strip, strip.columns(blocks[number])

        following: Callable[[], tuple[CenteredStrip, Floats]] = partial(read, 0)
        for number in range(1, len(blocks) + 1):
            current, following = following(), partial(read, number)
            if is_stored and number < len(blocks):
                following = self._workers.submit(following)
            yield current

    def rows(self, indices: Indices) -> Floats:
        """Return K'[indices, :]."""
        return self.strip(indices).columns(np.arange(self.n_samples))

    def diagonal(self) -> Floats:
        """Return k'(x, x) for every sample."""
        means = self.centering
        return self._source.diagonal() - 2 * means.column_means + means.grand_mean

    def multiply(self, V: Floats) -> Floats:
        """Return K'V: center V, multiply by K, and center the product."""
        return center_columns(multiply(self._source, center_columns(V), self._workers))


class CenteredStrip:
    """Rows K'[P, :] of the centered matrix.

    They are stored as K[P, :] stacked on the column means and a row of ones, so that products with
    them and their centering are a single matrix product. The offsets are row means less the
    grand mean.
    """

    def __init__(self, stacked: Floats, row_offsets: Floats, workers: Workers) -> None:
        self._stacked = stacked
        self._row_offsets = row_offsets
        self._workers = workers

    def columns(self, indices: Indices) -> Floats:
        """Return K'[P, indices]."""
        columns = np.take(self._stacked[:-1], indices, axis=1)
        return columns[:-1] - (columns[-1] + self._row_offsets[:, None])

    def dot(self, V: Floats) -> Floats:
        """Return K'[P, :] V."""
        product = self._stacked[:-1] @ V
        return product[:-1] - product[-1] - np.outer(self._row_offsets, V.sum(axis=0))

    def update(self, T: Floats, products: Floats, C: Floats) -> Floats:
        """Return T RK' + C K'[P, :] for products RK'."""
        left = np.hstack([C, -C.sum(axis=1)[:, None], -(C @ self._row_offsets)[:, None]])
        updated = np.empty_like(products)

        def update_tile(columns: slice) -> None:
            np.matmul(T, products[:, columns], out=updated[:, columns])
            updated[:, columns] += left @ self._stacked[:, columns]

        self._workers.for_each(
            update_tile, tile_slices(self._stacked.shape[1], _COLUMNS_PER_THREAD)
        )
        return updated


def center_gram(
    source: GramSource, V: Floats | None = None, workers: Workers = SERIAL
) -> tuple[CenteredGram, Floats]:
    """Center K, and compute K'V in the same pass over it.

    A column of ones in addition to V gives the row sums without a further pass. The threads share
    the tiles, here and in later products.

    Parameters
    ----------
    source : GramSource
        The uncentered kernel matrix.
    V : ndarray of shape (l, columns), optional
        Vectors to multiply in the same pass; none by default.
    workers : Workers

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
    means = product[:, -1] / n_samples
    if not np.isfinite(means).all():
        raise InvalidInput(NOT_FINITE)
    grand_mean = float(means.mean(dtype=np.float64))
    # ‖K'‖² = ‖K‖² − 2l Σ(means²) + l² (grand mean)².
    squares = float(np.sum(np.square(means, dtype=np.float64)))
    squared += (n_samples * grand_mean) ** 2 - 2 * n_samples * squares
    gram = CenteredGram(source, Centering(means, grand_mean, squared), workers)
    return gram, center_columns(product[:, :-1])


def center_columns(V: Floats) -> Floats:
    """Subtract the mean of each column, computed in double precision."""
    return V - V.mean(axis=0, dtype=np.float64).astype(V.dtype)

"""Rows of K' for a block of patterns, and the update they are for."""

from __future__ import annotations

from typing import Self

import numpy as np

from ikpca.gram.source import Indices
from ikpca.gram.tiles import tiles
from ikpca.gram.workers import Workers
from ikpca.kernels import Floats

__all__ = ["CentredStrip"]

#: Columns per thread; below it, waking a thread costs more than it saves.
_SHARED_COLUMNS = 4096


class CentredStrip:
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

        self._workers.each(part, tiles(products.shape[1], _SHARED_COLUMNS))
        return updated

"""Tiles that are kept once they were computed, as far as memory allows (Kim 2003, section 5)."""

from __future__ import annotations

from threading import Lock

import numpy as np

from ikpca.gram.counting import CountingGram
from ikpca.gram.source import GramSource, Indices
from ikpca.gram.wrapping import WrappedSource
from ikpca.kernels import Floats

__all__ = ["CachedGram"]


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
        self._tiles: dict[tuple[int, int, int, int], Floats] = {}
        self._lock = Lock()

    @property
    def entries(self) -> int:
        """Entries evaluated, not read."""
        return self._counted.entries

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Compute K[rows, columns]."""
        self._source.fill(rows, columns, out)

    def held(self, rows: slice, columns: slice) -> Floats | None:
        """A tile that is kept, or will be from now on; None where there is no room."""
        key = (rows.start, rows.stop, columns.start, columns.stop)
        if key not in self._tiles and self._reserve(rows, columns):
            tile = np.empty((rows.stop - rows.start, columns.stop - columns.start), self.dtype)
            self._source.fill(rows, columns, tile)
            self._tiles[key] = tile
        return self._tiles.get(key)

    def _reserve(self, rows: slice, columns: slice) -> bool:
        n_bytes = (rows.stop - rows.start) * (columns.stop - columns.start) * self.dtype.itemsize
        with self._lock:
            if n_bytes > self._left:
                return False
            self._left -= n_bytes
            return True

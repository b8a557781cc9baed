"""Tiles that are kept once they were computed, as far as memory allows (Kim 2003, section 5)."""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np

from ikpca.gram.counting import CountingGram
from ikpca.gram.source import GramSource, Indices
from ikpca.kernels import Floats

__all__ = ["CachedGram"]


class CachedGram:
    """Keeps square tiles of another source; with symmetry, half of K is all of it.

    Which tiles are kept changes what is evaluated, never what comes out.

    Parameters
    ----------
    source : GramSource
    allowance : int
        Bytes to keep.
    """

    def __init__(self, source: GramSource, allowance: int) -> None:
        self._source = CountingGram(source)
        self._left = allowance
        self._tiles: dict[tuple[int, int, int, int], Floats] = {}
        self._lock = Lock()

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

    @property
    def entries(self) -> int:
        """Entries evaluated, not read."""
        return self._source.entries

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

    def diagonal(self) -> Floats:
        """k(x, x)."""
        return self._source.diagonal()

    def _reserve(self, rows: slice, columns: slice) -> bool:
        n_bytes = (rows.stop - rows.start) * (columns.stop - columns.start) * self.dtype.itemsize
        with self._lock:
            if n_bytes > self._left:
                return False
            self._left -= n_bytes
            return True

"""Tiles that are kept once they were computed, as far as memory allows (Kim 2003, section 5)."""

from __future__ import annotations

from threading import Lock

import numpy as np

from ikpca.gram.counting import CountingGram
from ikpca.gram.source import GramSource, Indices
from ikpca.gram.wrapping import WrappedSource
from ikpca.kernels import Floats

__all__ = ["CachedGram"]

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

"""K computed once and kept, where it fits in memory (Kim 2003, section 5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ikpca.gram.counting import CountingGram
from ikpca.gram.precomputed import PrecomputedGram
from ikpca.gram.products import whole
from ikpca.gram.source import GramSource, Indices
from ikpca.gram.workers import SERIAL, Workers
from ikpca.kernels import Floats

__all__ = ["StoredGram"]


class StoredGram:
    """The whole matrix of another source; ``entries`` counts what was evaluated, not read."""

    def __init__(self, source: GramSource, workers: Workers = SERIAL) -> None:
        counted = CountingGram(source)
        self._matrix = PrecomputedGram(whole(counted, workers), symmetric=source.symmetric)
        self.entries = counted.entries

    @property
    def n_samples(self) -> int:
        """The order of K."""
        return self._matrix.n_samples

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the matrix."""
        return self._matrix.dtype

    @property
    def symmetric(self) -> bool:
        """That of the source."""
        return self._matrix.symmetric

    @property
    def side(self) -> int:
        """That of the source."""
        return self._matrix.side

    @property
    def tile(self) -> int:
        """That of a stored matrix."""
        return self._matrix.tile

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Copy K[rows, columns]."""
        self._matrix.fill(rows, columns, out)

    def held(self, rows: slice, columns: slice) -> Floats | None:
        """What the source holds is not evaluated."""
        return self._matrix.held(rows, columns)

    def diagonal(self) -> Floats:
        """k(x, x)."""
        return self._matrix.diagonal()

"""Count, don't only time: entries of K are exact on a noisy machine."""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np

from ikpca.gram.source import GramSource, Indices
from ikpca.kernels import Floats

__all__ = ["CountingGram"]


class CountingGram:
    """Wraps a gram source and counts the entries that are asked of it."""

    def __init__(self, source: GramSource) -> None:
        self._source = source
        self.entries = 0
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
        return self._source.diagonal()

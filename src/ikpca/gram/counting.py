"""Count, don't only time: entries of K are exact on a noisy machine."""

from __future__ import annotations

from threading import Lock

from ikpca.gram.source import GramSource, Indices
from ikpca.gram.wrapping import WrappedSource
from ikpca.kernels import Floats

__all__ = ["CountingGram"]


class CountingGram(WrappedSource):
    """Wraps a gram source and counts the entries that are asked of it."""

    def __init__(self, source: GramSource) -> None:
        super().__init__(source)
        self.entries = 0
        self._lock = Lock()

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
        return super().diagonal()

"""K computed once and kept, where it fits in memory (Kim 2003, section 5)."""

from __future__ import annotations

from ikpca.gram.counting import CountingGram
from ikpca.gram.precomputed import PrecomputedGram
from ikpca.gram.products import whole
from ikpca.gram.source import GramSource, Indices
from ikpca.gram.workers import SERIAL, Workers
from ikpca.gram.wrapping import WrappedSource
from ikpca.kernels import Floats

__all__ = ["StoredGram"]


class StoredGram(WrappedSource):
    """The whole matrix of another source; ``entries`` counts what was evaluated, not read."""

    def __init__(self, source: GramSource, workers: Workers = SERIAL) -> None:
        counted = CountingGram(source)
        super().__init__(PrecomputedGram(whole(counted, workers), symmetric=source.symmetric))
        self.entries = counted.entries

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Copy K[rows, columns]."""
        self._source.fill(rows, columns, out)

    def held(self, rows: slice, columns: slice) -> Floats | None:
        """A view."""
        return self._source.held(rows, columns)

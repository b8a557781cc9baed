"""Count, don't only time: entries of K are exact on a noisy machine."""

from __future__ import annotations

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

    def block(self, rows: slice, columns: slice) -> Floats:
        """K[rows, columns], counted."""
        return self._count(self._source.block(rows, columns))

    def rows(self, indices: Indices) -> Floats:
        """K[indices, :], counted."""
        return self._count(self._source.rows(indices))

    def diagonal(self) -> Floats:
        """k(x, x), counted."""
        return self._count(self._source.diagonal())

    def _count(self, values: Floats) -> Floats:
        self.entries += values.size
        return values

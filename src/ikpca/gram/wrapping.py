"""What every source that wraps another one says of the same matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from ikpca.gram.source import GramSource
from ikpca.kernels import Floats

__all__ = ["WrappedSource"]


class WrappedSource:
    """Shape, type and layout of the source within; what is read, and how, is up to the wrapper."""

    def __init__(self, source: GramSource) -> None:
        self._source = source

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

    def diagonal(self) -> Floats:
        """k(x, x)."""
        return self._source.diagonal()

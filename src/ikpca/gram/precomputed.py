"""K given as a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ikpca.gram.source import Indices
from ikpca.gram.tiles import TILE
from ikpca.kernels import Floats, Rows

__all__ = ["PrecomputedGram"]


class PrecomputedGram:
    """A kernel matrix that the user has, dense or CSR, symmetric or not. It is never written to."""

    def __init__(self, K: Rows, symmetric: bool | None = None) -> None:
        self._K = K
        self.symmetric = _is_symmetric(K) if symmetric is None else symmetric

    @property
    def n_samples(self) -> int:
        """The order of K."""
        return int(self._K.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the matrix."""
        return np.dtype(self._K.dtype)

    side = TILE

    @property
    def tile(self) -> int:
        """All of a row: copying is bound by memory, and one long copy is the fastest."""
        return self.n_samples

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Copy K[rows, columns]."""
        if sparse.issparse(self._K):
            out[...] = self._K[rows, columns].toarray()
        elif isinstance(rows, slice) or columns != slice(0, self.n_samples):
            out[...] = self._K[rows, columns]
        else:
            # Unlike indexing, this makes no temporary; clipping only skips a check of the indices.
            np.take(self._K, rows, axis=0, out=out, mode="clip")

    def held(self, rows: slice, columns: slice) -> Floats | None:
        """A view, where the matrix is dense."""
        return None if sparse.issparse(self._K) else self._K[rows, columns]

    def diagonal(self) -> Floats:
        """A copy of the diagonal."""
        return np.array(self._K.diagonal())


def _is_symmetric(K: Rows) -> bool:
    """Whether K equals its transpose up to rounding, as one product X @ Xᵀ leaves it."""
    if sparse.issparse(K):
        difference, scale = abs(K - K.T).max(), abs(K).max()
    else:
        difference, scale = np.abs(K - K.T).max(), np.abs(K).max()
    return bool(difference <= 100 * np.finfo(K.dtype).eps * scale)

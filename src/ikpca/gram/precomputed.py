"""K given as a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ikpca.gram.source import Indices
from ikpca.kernels import Floats, Rows

__all__ = ["PrecomputedGram"]


class PrecomputedGram:
    """A kernel matrix that the user has, dense or CSR, symmetric or not. It is never written to."""

    def __init__(self, K: Rows) -> None:
        self._K = K
        self.symmetric = _is_symmetric(K)

    @property
    def n_samples(self) -> int:
        """The order of K."""
        return int(self._K.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the matrix."""
        return np.dtype(self._K.dtype)

    def block(self, rows: slice, columns: slice) -> Floats:
        """A copy of K[rows, columns]."""
        return _dense_copy(self._K[rows, columns])

    def rows(self, indices: Indices) -> Floats:
        """A copy of K[indices, :]."""
        return _dense_copy(self._K[indices])

    def diagonal(self) -> Floats:
        """A copy of the diagonal."""
        return np.array(self._K.diagonal())


def _dense_copy(part: Rows) -> Floats:
    return part.toarray() if sparse.issparse(part) else np.array(part, order="C")


def _is_symmetric(K: Rows) -> bool:
    """Whether K equals its transpose up to rounding, as one product X @ Xᵀ leaves it."""
    if sparse.issparse(K):
        difference, scale = abs(K - K.T).max(), abs(K).max()
    else:
        difference, scale = np.abs(K - K.T).max(), np.abs(K).max()
    return bool(difference <= 100 * np.finfo(K.dtype).eps * scale)

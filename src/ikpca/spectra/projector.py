"""Components as functions of new rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ikpca.gram import Centring, cross_gram, tiles
from ikpca.kernels import Floats, Kernel, Rows

__all__ = ["Projector"]

#: Kernel values held at a time.
_STRIP_ENTRIES = 4_000_000


@dataclass(frozen=True)
class Projector:
    """What projecting a row takes.

    Parameters
    ----------
    kernel : Kernel or None
        None where rows come as kernel values with the training rows.
    X_fit : rows
        The training rows.
    centring : Centring
    coefficients : ndarray of shape (r, l)
        A.
    component_gram : ndarray of shape (r, r)
        AK'Aᵀ, the identity for orthonormal components.
    training_projections : ndarray of shape (r, l), optional
        AK', where it is kept: pre-images then need no kernel values of the training rows.
    """

    kernel: Kernel | None
    X_fit: Rows
    centring: Centring
    coefficients: Floats
    component_gram: Floats
    training_projections: Floats | None = None

    def project(self, X: Rows) -> Floats:
        """Projections y = A k'(x), a strip of rows at a time."""
        return np.vstack([self._projections(K_new) for _, K_new in self._strips(X)])

    def explained_share(self, X: Rows, kernel: Kernel) -> float:
        """1 − Σ‖Φ'(x) − WᵀWΦ'(x)‖² / Σ‖Φ'(x)‖², Φ' centred on the training mean."""
        missing, total = 0.0, 0.0
        for rows, K_new in self._strips(X):
            lengths = self.centring.diagonal(K_new, kernel.diagonal(rows))
            y = self._projections(K_new)
            inner = np.einsum("ni,ij,nj->", y, self.component_gram, y)
            missing += float(lengths.sum() - 2 * np.square(y).sum() + inner)
            total += float(lengths.sum())
        return 1 - missing / total if total > 0 else 0.0

    def coordinates(self, projections: Floats) -> Floats:
        """c with PΦ' = Σ_i c_i w_i: projections again, where components are orthonormal."""
        precision = float(np.finfo(projections.dtype).eps) * 10 * len(self.component_gram)
        return projections @ np.linalg.pinv(self.component_gram, precision, hermitian=True)

    def residuals(self, X: Rows, kernel: Kernel) -> Floats:
        """‖Φ'(x) − PΦ'(x)‖² for every row, P the orthogonal projector on the components."""
        parts = []
        for rows, K_new in self._strips(X):
            y = self._projections(K_new)
            lengths = self.centring.diagonal(K_new, kernel.diagonal(rows))
            parts.append(lengths - np.einsum("ni,ni->n", y, self.coordinates(y)))
        return np.maximum(np.concatenate(parts), 0)

    def _projections(self, K_new: Floats) -> Floats:
        return self.centring.project(K_new, self.coefficients)

    def _strips(self, X: Rows) -> Iterator[tuple[Rows, Floats]]:
        size = max(1, _STRIP_ENTRIES // self.coefficients.shape[1])
        for strip in tiles(X.shape[0], size):
            yield X[strip], self._kernel_values(X[strip])

    def _kernel_values(self, X: Rows) -> Floats:
        if self.kernel is not None:
            return cross_gram(self.kernel, X, self.X_fit)
        return X.toarray() if sparse.issparse(X) else X

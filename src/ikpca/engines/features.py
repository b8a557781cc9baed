"""Components as explicit vectors: W in place of A, for Sanger's GHA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ikpca.hebbian import Floats, Indices

__all__ = ["FeatureStore"]


class FeatureStore:
    """The coefficient store over explicit, centred rows X': R is W itself, K' is X'X'ᵀ.

    What the kernel store reads from AK' is multiplied out here, W X'ᵀ; there are no coefficients
    A, so ``gram(0)`` has no meaning and gains must use Rayleigh quotients.
    """

    def __init__(self, X: Floats, rows: Floats) -> None:
        self._X = X
        self._rows = np.array(rows, dtype=X.dtype, order="C")
        self._mark = self._rows
        self.entries = 0

    @property
    def n_samples(self) -> int:
        """Rows of X'."""
        return int(self._X.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the rows."""
        return np.dtype(self._X.dtype)

    @property
    def mean_diagonal(self) -> float:
        """Mean ‖x'‖²."""
        return float(np.einsum("ij,ij->", self._X, self._X, dtype=np.float64)) / self.n_samples

    @property
    def squared_norm(self) -> float:
        """Unknown: the product of X' with itself may be larger than X'."""
        return float("nan")

    @property
    def recovery(self) -> str:
        """There is no kernel matrix that could give way."""
        return ""

    def project(self, patterns: Indices, upcoming: Sequence[Indices] = ()) -> tuple[Floats, Floats]:
        """W X'_Pᵀ and X'_P X'_Pᵀ; there is nothing to make ahead."""
        chosen = self._X[patterns]
        Y, G = self._rows @ chosen.T, chosen @ chosen.T
        return Y.astype(np.float64, order="C"), G.astype(np.float64, order="C")

    def transform(self, T: Floats, patterns: Indices, C: Floats) -> None:
        """W ← TW + C X'_P."""
        moved = T.astype(self.dtype) @ self._rows
        self._rows = moved + C.astype(self.dtype) @ self._X[patterns]

    def gram(self, power: int) -> Floats:
        """W Wᵀ, or W X'ᵀX' Wᵀ."""
        if power == 0:
            raise ValueError("gram(0) needs coefficients, and explicit components have none")
        factor = self._rows if power == 1 else self._rows @ self._X.T
        factor = factor.astype(np.float64, copy=False)
        return factor @ factor.T

    def residuals(self, eigenvalues: Floats) -> Floats:
        """‖X'ᵀX'w − λw‖/λ₁ for unit w."""
        W = self._rows[: len(eigenvalues)].astype(np.float64)
        defects = (W @ self._X.T) @ self._X - eigenvalues[:, None] * W
        scale = np.linalg.norm(W, axis=1) * np.abs(eigenvalues).max(initial=0.0)
        norms = np.linalg.norm(defects, axis=1)
        return np.divide(norms, scale, out=np.zeros_like(norms), where=scale > 0)

    def mark(self) -> None:
        """Keep a reference: transforms never write to arrays that exist."""
        self._mark = self._rows

    def rewind(self) -> None:
        """Take the reference back."""
        self._rows = self._mark

    def change(self, n_rows: int) -> float:
        """‖W − W₀‖²."""
        moved = (self._rows[:n_rows] - self._mark[:n_rows]).astype(np.float64)
        return float(np.einsum("ij,ij->", moved, moved))

    def read(self) -> tuple[Floats, Floats]:
        """W and W X'ᵀ."""
        return self._rows.copy(), self._rows @ self._X.T

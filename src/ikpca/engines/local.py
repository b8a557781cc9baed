"""A and AK' in this process."""

from __future__ import annotations

from typing import Any

import numpy as np

from ikpca.gram import CentredGram
from ikpca.hebbian import Floats, Indices
from ikpca.measures import relative_residuals

__all__ = ["LocalStore"]


class LocalStore:
    """The coefficient store as two arrays; kernel rows are computed a block at a time."""

    def __init__(self, gram: CentredGram, rows: Floats, products: Floats) -> None:
        self._gram = gram
        self._rows = np.array(rows, dtype=gram.dtype, order="C")
        self._products = np.array(products, dtype=gram.dtype, order="C")
        self._mark = (self._rows, self._products)
        self._tile: tuple[Indices, Floats] | None = None

    @property
    def n_samples(self) -> int:
        """The number of columns."""
        return self._gram.n_samples

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the kernel matrix."""
        return self._gram.dtype

    @property
    def entries(self) -> int:
        """Entries of K evaluated so far."""
        return self._gram.entries

    @property
    def mean_diagonal(self) -> float:
        """κ, known since the centring."""
        return self._gram.mean_diagonal

    def project(self, patterns: Indices) -> tuple[Floats, Floats]:
        """Read two slices; the kernel rows are kept for the transform that follows."""
        kernel_rows = self._gram.rows(patterns)
        self._tile = (patterns, kernel_rows)
        return (
            self._products[:, patterns].astype(np.float64),
            kernel_rows[:, patterns].astype(np.float64),
        )

    def transform(self, T: Floats, patterns: Indices, C: Floats) -> None:
        """One matrix product for the block."""
        T, C = T.astype(self.dtype), C.astype(self.dtype)
        # Fresh arrays, so that the mark keeps the old ones without a copy.
        self._rows = T @ self._rows
        self._products = T @ self._products
        if patterns.size:
            np.add.at(self._rows.T, patterns, C.T)
            self._products += C @ self._kernel_rows(patterns)

    def gram(self, power: int) -> Floats:
        """R Rᵀ, R K'Rᵀ or RK'(RK')ᵀ."""
        left = self._rows if power == 0 else self._products
        right = self._products if power == 2 else self._rows
        product = left.astype(np.float64, copy=False) @ right.astype(np.float64, copy=False).T
        return (product + product.T) / 2

    def residuals(self, eigenvalues: Floats) -> Floats:
        """Of the leading rows."""
        n_rows = len(eigenvalues)
        return relative_residuals(self._rows[:n_rows], self._products[:n_rows], eigenvalues)

    def mark(self) -> None:
        """Keep references: transforms never write to arrays that exist."""
        self._mark = (self._rows, self._products)

    def rewind(self) -> None:
        """Take the references back."""
        self._rows, self._products = self._mark

    def change(self, n_rows: int) -> float:
        """tr((A − A₀)K'(A − A₀)ᵀ)."""
        rows, products = self._mark
        moved = np.asarray(self._rows[:n_rows] - rows[:n_rows], dtype=np.float64)
        pulled = np.asarray(self._products[:n_rows] - products[:n_rows], dtype=np.float64)
        return max(float(np.einsum("il,il->", moved, pulled)), 0.0)

    def read(self) -> tuple[Floats, Floats]:
        """Copies."""
        return self._rows.copy(), self._products.copy()

    def _kernel_rows(self, patterns: Indices) -> Floats:
        if self._tile is not None and self._tile[0] is patterns:
            return self._tile[1]
        return self._gram.rows(patterns)

"""A and AK' in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ikpca.gram import CentredGram, CentredStrip
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
        self._grams: dict[int, Floats] = {}
        self._pending: list[tuple[Floats, Indices, Floats]] = []
        self._strip: tuple[Indices, CentredStrip] | None = None
        self._next: tuple[Indices, Callable[[], CentredStrip]] | None = None

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

    @property
    def squared_norm(self) -> float:
        """Known since the centring, too."""
        return self._gram.squared_norm_estimate

    @property
    def recovery(self) -> str:
        """Of the kernel matrix."""
        return self._gram.recovery

    def project(self, patterns: Indices) -> tuple[Floats, Floats]:
        """Read two slices; the kernel rows are kept for the transform that follows."""
        strip = self._strip_of(patterns)
        self._strip = (patterns, strip)
        # C order: one compiled sweep serves all, and it reads rows.
        return (
            self._products[:, patterns].astype(np.float64, order="C"),
            strip.columns(patterns).astype(np.float64, order="C"),
        )

    def prepare(self, patterns: Indices) -> None:
        """Let another thread read the next rows, if there is one and reading is all it takes."""
        self._next = (patterns, self._gram.strip_ahead(patterns, room=len(self._rows)))

    def transform(self, T: Floats, patterns: Indices, C: Floats) -> None:
        """One matrix product for the block; R itself follows when it is asked for."""
        T, C = T.astype(self.dtype), C.astype(self.dtype)
        # Fresh arrays, so that the mark keeps the old ones without a copy.
        if patterns.size:
            self._products = self._strip_of(patterns).update(T, self._products, C)
        else:
            self._products = T @ self._products
        self._pending.append((T, patterns, C))
        self._grams = {}

    def _settle(self) -> Floats:
        """R with all transforms applied.

        Blocks T, C in order 1..b make R ← T_b⋯T_1 R, and C_j ends up multiplied by T_b⋯T_{j+1}:
        going backwards, the l columns of R are multiplied once for all blocks.
        """
        if not self._pending:
            return self._rows
        later = np.eye(len(self._rows), dtype=self.dtype)
        columns = []
        for T, _, C in reversed(self._pending):
            columns.append(later @ C)
            later = later @ T
        patterns = np.concatenate([patterns for _, patterns, _ in reversed(self._pending)])
        self._rows = later @ self._rows
        _add_columns(self._rows, patterns, np.hstack(columns))
        self._pending = []
        return self._rows

    def gram(self, power: int) -> Floats:
        """R Rᵀ, R K'Rᵀ or RK'(RK')ᵀ; asked for more than once between transforms."""
        if power not in self._grams:
            left = self._settle() if power == 0 else self._products
            right = self._products if power == 2 else self._settle()
            product = left.astype(np.float64, copy=False) @ right.astype(np.float64, copy=False).T
            self._grams[power] = (product + product.T) / 2
        return self._grams[power]

    def residuals(self, eigenvalues: Floats) -> Floats:
        """Of the leading rows."""
        n_rows = len(eigenvalues)
        return relative_residuals(self._settle()[:n_rows], self._products[:n_rows], eigenvalues)

    def mark(self) -> None:
        """Keep references: transforms never write to arrays that exist."""
        self._mark = (self._settle(), self._products)

    def rewind(self) -> None:
        """Take the references back."""
        self._pending, self._grams = [], {}
        self._rows, self._products = self._mark

    def change(self, n_rows: int) -> float:
        """tr((A − A₀)K'(A − A₀)ᵀ)."""
        rows, products = self._mark
        moved = np.asarray(self._settle()[:n_rows] - rows[:n_rows], dtype=np.float64)
        pulled = np.asarray(self._products[:n_rows] - products[:n_rows], dtype=np.float64)
        return max(float(np.einsum("il,il->", moved, pulled)), 0.0)

    def read(self) -> tuple[Floats, Floats]:
        """Copies."""
        return self._settle().copy(), self._products.copy()

    def _strip_of(self, patterns: Indices) -> CentredStrip:
        if self._strip is not None and self._strip[0] is patterns:
            return self._strip[1]
        if self._next is not None and self._next[0] is patterns:
            return self._next[1]()
        return self._gram.strip(patterns, room=len(self._rows))


def _add_columns(rows: Floats, patterns: Indices, columns: Floats) -> None:
    """rows[:, P] += columns, where a pattern that comes twice adds twice."""
    if len(np.unique(patterns)) == len(patterns):
        rows[:, patterns] += columns
    else:
        np.add.at(rows.T, patterns, columns.T)

"""A and AK' in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ikpca.engines.columns import Columns
from ikpca.gram import CentredGram, CentredStrip
from ikpca.hebbian import Floats, Indices
from ikpca.measures import relative_residuals

__all__ = ["LocalStore"]


class LocalStore:
    """The coefficient store as two arrays; kernel rows are computed a block at a time."""

    def __init__(self, gram: CentredGram, rows: Floats, products: Floats) -> None:
        self._gram = gram
        self._columns = Columns(rows, products, gram.dtype)
        self._grams: dict[int, Floats] = {}
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

    def project(self, patterns: Indices, upcoming: Sequence[Indices] = ()) -> tuple[Floats, Floats]:
        """Read two slices; the kernel rows are kept for the transform that follows."""
        strip = self._strip_of(patterns)
        self._strip = (patterns, strip)
        # C order: one compiled sweep serves all, and it reads rows.
        Y = self._columns.products[:, patterns].astype(np.float64, order="C")
        G = strip.columns(patterns).astype(np.float64, order="C")
        if upcoming:
            # Another thread reads them, if there is one and reading is all it takes.
            ahead = self._gram.strip_ahead(upcoming[0], room=len(self._columns))
            self._next = (upcoming[0], ahead)
        return Y, G

    def transform(self, T: Floats, patterns: Indices, C: Floats) -> None:
        """One matrix product for the block; R itself follows when it is asked for."""
        T, C = T.astype(self.dtype), C.astype(self.dtype)
        strip = self._strip_of(patterns) if patterns.size else None
        self._columns.transform(T, C, strip, patterns, C)
        self._grams = {}

    def gram(self, power: int) -> Floats:
        """R Rᵀ, R K'Rᵀ or RK'(RK')ᵀ; asked for more than once between transforms."""
        if power not in self._grams:
            product = self._columns.gram(power)
            self._grams[power] = (product + product.T) / 2
        return self._grams[power]

    def residuals(self, eigenvalues: Floats) -> Floats:
        """Of the leading rows."""
        leading = slice(len(eigenvalues))
        rows, products = self._columns.rows(), self._columns.products
        return relative_residuals(rows[leading], products[leading], eigenvalues)

    def mark(self) -> None:
        """Remember the columns."""
        self._columns.mark()

    def rewind(self) -> None:
        """Have them back."""
        self._grams = {}
        self._columns.rewind()

    def change(self, n_rows: int) -> float:
        """tr((A − A₀)K'(A − A₀)ᵀ)."""
        return max(self._columns.change(n_rows), 0.0)

    def read(self) -> tuple[Floats, Floats]:
        """Copies."""
        return self._columns.rows().copy(), self._columns.products.copy()

    def _strip_of(self, patterns: Indices) -> CentredStrip:
        if self._strip is not None and self._strip[0] is patterns:
            return self._strip[1]
        if self._next is not None and self._next[0] is patterns:
            return self._next[1]()
        return self._gram.strip(patterns, room=len(self._columns))

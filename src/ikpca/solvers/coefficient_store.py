"""Storage of the coefficients A and their products AK'."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ikpca.gram import CenteredGram, CenteredStrip
from ikpca.kernels import Floats, Indices
from ikpca.metrics import relative_residuals


class CoefficientStore(Protocol):
    """Rows R (A alone, or A over its companion B) and RK'; no engine knows which gain is in use.

    Three verbs do the work, ``project``, ``transform`` and ``gram``; the others look and undo.
    Whatever leaves the store is small and in double precision.
    """

    @property
    def n_samples(self) -> int:
        """The number l of columns."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """What the columns are stored in."""

    @property
    def entries(self) -> int:
        """Entries of K evaluated so far."""

    @property
    def mean_diagonal(self) -> float:
        """κ = mean k'(x, x)."""

    @property
    def squared_norm(self) -> float:
        """‖K'‖²_F as far as it is known; NaN where it is not."""

    @property
    def recovery(self) -> str:
        """Empty, or what gave way in the computation of K and what was done about it."""

    def project(self, patterns: Indices, upcoming: Sequence[Indices] = ()) -> tuple[Floats, Floats]:
        """(RK')[:, P] and K'[P, P].

        Kernel rows do not depend on R, so those of the blocks that come next may be made ahead.
        """

    def transform(self, T: Floats, patterns: Indices, C: Floats) -> None:
        """R ← TR, then R[:, P] += C (repeated patterns add up); RK' follows."""

    def gram(self, power: int) -> Floats:
        """R K'^power Rᵀ for power 0, 1, 2."""

    def residuals(self, eigenvalues: Floats) -> Floats:
        """‖K'v_i − λ_i v_i‖/λ_1 for the leading rows."""

    def mark(self) -> None:
        """Remember R and RK' as they are."""

    def rewind(self) -> None:
        """Go back to the mark."""

    def change(self, n_rows: int) -> float:
        """Squared feature-space distance of the leading rows from the mark."""

    def read(self) -> tuple[Floats, Floats]:
        """R and RK' as arrays."""


class Columns:
    """Two arrays; RK' follows every transform at once, R when it is asked for.

    Parameters
    ----------
    rows, products : ndarray of shape (r, columns)
        R and RK'.
    dtype : dtype
        What both are kept in.
    """

    def __init__(self, rows: Floats, products: Floats, dtype: np.dtype[np.floating]) -> None:
        self._rows = np.array(rows, dtype=dtype, order="C")
        self.products: Floats = np.array(products, dtype=dtype, order="C")
        self._mark = (self._rows, self.products)
        self._pending: list[tuple[Floats, Indices, Floats]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def transform(
        self, T: Floats, C: Floats, strip: CenteredStrip | None, own: Indices, own_C: Floats
    ) -> None:
        """RK' ← T RK' + C K'[P, :] as one product; R ← TR, R[:, own] += own_C later.

        Parameters
        ----------
        T, C : ndarray
        strip : CentredStrip or None
            K'[P, :] for these columns; None without patterns.
        own : ndarray of int
            Those of the patterns that are columns here.
        own_C : ndarray
            The columns of C that belong to them.
        """
        # Fresh arrays, so that the mark keeps the old ones without a copy.
        self.products = T @ self.products if strip is None else strip.update(T, self.products, C)
        self._pending.append((T, own, own_C))

    def rows(self) -> Floats:
        """R with all transforms applied.

        Blocks T, C in order 1..b make R ← T_b⋯T_1 R, and C_j ends up multiplied by T_b⋯T_{j+1}:
        going backwards, the columns of R are multiplied once for all blocks.
        """
        if not self._pending:
            return self._rows
        later = np.eye(len(self._rows), dtype=self._rows.dtype)
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
        """R Rᵀ, R(RK')ᵀ or RK'(RK')ᵀ in double precision."""
        left = self.rows() if power == 0 else self.products
        right = self.products if power == 2 else self.rows()
        return left.astype(np.float64, copy=False) @ right.astype(np.float64, copy=False).T

    def mark(self) -> tuple[Floats, Floats]:
        """Keep references: transforms never write to arrays that exist."""
        self._mark = (self.rows(), self.products)
        return self._mark

    def rewind(self) -> None:
        """Take the references back."""
        self._pending = []
        self._rows, self.products = self._mark

    def change(self, n_rows: int) -> float:
        """tr((R − R₀)K'(R − R₀)ᵀ) over these columns."""
        rows, products = self._mark
        moved = np.asarray(self.rows()[:n_rows] - rows[:n_rows], dtype=np.float64)
        pulled = np.asarray(self.products[:n_rows] - products[:n_rows], dtype=np.float64)
        return float(np.einsum("il,il->", moved, pulled))


def _add_columns(rows: Floats, patterns: Indices, columns: Floats) -> None:
    """rows[:, P] += columns, where a pattern that comes twice adds twice."""
    if len(np.unique(patterns)) == len(patterns):
        rows[:, patterns] += columns
    else:
        np.add.at(rows.T, patterns, columns.T)


class LocalStore:
    """The coefficient store as two arrays; kernel rows are computed a block at a time."""

    def __init__(self, gram: CenteredGram, rows: Floats, products: Floats) -> None:
        self._gram = gram
        self._columns = Columns(rows, products, gram.dtype)
        self._grams: dict[int, Floats] = {}
        self._strip: tuple[Indices, CenteredStrip] | None = None
        self._next: tuple[Indices, Callable[[], CenteredStrip]] | None = None

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

    def _strip_of(self, patterns: Indices) -> CenteredStrip:
        if self._strip is not None and self._strip[0] is patterns:
            return self._strip[1]
        if self._next is not None and self._next[0] is patterns:
            return self._next[1]()
        return self._gram.strip(patterns, room=len(self._columns))

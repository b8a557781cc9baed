"""Columns of R and RK', all of them or a shard's, and what transforms do to them."""

from __future__ import annotations

import numpy as np

from ikpca.gram import CentredStrip
from ikpca.hebbian import Floats, Indices

__all__ = ["Columns"]


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
        self, T: Floats, C: Floats, strip: CentredStrip | None, own: Indices, own_C: Floats
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

"""K computed from rows of data, each time it is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ikpca.gram.shortage import Shortage
from ikpca.gram.source import Indices
from ikpca.gram.tiles import TILE, tiles
from ikpca.kernels import Floats, FoldingKernel, Frame, Kernel, Operand, Rows

if TYPE_CHECKING:
    from ikpca.gram.rare import RareProducts

__all__ = ["ComputedGram", "cross_gram"]


def cross_gram(kernel: Kernel, X: Rows, Y: Rows) -> Floats:
    """k(x_i, y_j) for two sets of rows, filled in column tiles so that scratch stays small."""
    out = np.empty((X.shape[0], Y.shape[0]), dtype=np.result_type(X.dtype, Y.dtype))
    shortage = Shortage()

    def fill(columns: slice) -> None:
        kernel.fill(X, Y[columns], out[:, columns])

    for columns in tiles(Y.shape[0]):
        shortage.in_strips(fill, columns)
    return out


class ComputedGram:
    """The kernel matrix of the rows of ``X``, dense or CSR.

    Parameters
    ----------
    kernel : Kernel
    X : rows
    side : int
        Of the tiles.
    frame : Frame, optional
        That of X. With it, the operand of a folding kernel is made once for all tiles: a copy of X,
        and tiles at nearly the speed of bare products.
    """

    symmetric = True

    def __init__(
        self, kernel: Kernel, X: Rows, side: int = TILE, *, frame: Frame | None = None
    ) -> None:
        self._kernel = kernel
        self._X = X
        self.side = self.tile = side
        self._fold = None
        if frame is not None and isinstance(kernel, FoldingKernel):
            self._fold = _Folded(kernel, X, frame)

    @property
    def n_samples(self) -> int:
        """The order of K."""
        return int(self._X.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the rows."""
        return np.dtype(self._X.dtype)

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Compute K[rows, columns]."""
        if self._fold is not None:
            self._fold.fill(rows, columns, out)
        else:
            self._kernel.fill(self._X[rows], self._X[columns], out)

    def meet(self, others: Rows) -> Callable[[slice, Floats], None]:
        """What writes k(z, x) of other rows z, for some columns x at a time."""
        if self._fold is not None:
            return self._fold.meet(others)
        return lambda columns, out: self._kernel.fill(others, self._X[columns], out)

    def held(self, rows: slice, columns: slice) -> Floats | None:
        """Nothing is stored."""
        return None

    def diagonal(self) -> Floats:
        """k(x, x)."""
        parts = [self._kernel.diagonal(self._X[part]) for part in tiles(self.n_samples, self.side)]
        return np.concatenate(parts)


class _Folded:
    """The right operand of a folding kernel, and what it makes of it."""

    def __init__(self, kernel: FoldingKernel, X: Floats, frame: Frame) -> None:
        self._kernel = kernel
        self._frame = frame
        self._right = kernel.fold(X, frame)
        self._rare = _rare_products(self._right)
        self._latest = _Latest()

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        self._write(self._left(rows), columns, out)

    def meet(self, others: Floats) -> Callable[[slice, Floats], None]:
        left = self._kernel.fold_left(others, self._frame)
        return lambda columns, out: self._write(left, columns, out)

    def _left(self, rows: slice | Indices) -> Operand:
        """Tiles come row by row, so that many in turn have the same left operand."""
        if not isinstance(rows, slice):
            return self._kernel.mirror(self._right.copy(rows))
        latest = self._latest
        if latest.left is None or rows != latest.rows:
            # Two at a time would be more than is planned for.
            latest.left = None
            latest.left, latest.rows = self._kernel.mirror(self._right.copy(rows)), rows
        return latest.left

    def _write(self, left: Operand, columns: slice, out: Floats) -> None:
        np.matmul(left.dense, self._right.dense[columns].T, out=out)
        if self._rare is not None:
            self._rare.add(left.rare, columns, out)
        self._kernel.finish(out)


class _Latest(threading.local):
    """The left operand that a thread had last."""

    rows: slice | None = None
    left: Operand | None = None


def _rare_products(right: Operand) -> RareProducts | None:
    if right.rare is None:
        return None
    from ikpca.gram.rare import RareProducts

    return RareProducts(right.rare)

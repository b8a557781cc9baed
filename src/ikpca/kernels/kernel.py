"""The port: what a kernel k(x, y) must offer."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "FoldingKernel", "Kernel", "Rows"]

Floats: TypeAlias = NDArray[np.floating[Any]]
#: Dense rows, or a scipy CSR matrix or array of rows (its type is Any to the checker).
Rows: TypeAlias = Any


@runtime_checkable
class Kernel(Protocol):
    """A kernel fills the tile it is given and never keeps it."""

    @property
    def takes_sparse(self) -> bool:
        """Whether rows may come as CSR."""

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write k(x_i, y_j) into ``out[i, j]``."""

    def diagonal(self, X: Rows) -> Floats:
        """Return k(x_i, x_i) for every row."""

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Bytes that ``fill`` allocates beside ``out``, at most, for dense rows."""


@runtime_checkable
class FoldingKernel(Kernel, Protocol):
    """A kernel of which a tile is one product of prepared operands, finished in place."""

    def fold(self, X: Floats) -> tuple[Floats, Floats]:
        """Left and right operands for dense rows, to be made once and multiplied often."""

    def finish(self, out: Floats) -> None:
        """Turn a product of operands into kernel values."""

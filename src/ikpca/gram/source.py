"""The port: the kernel matrix K, read in pieces."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ikpca.kernels import Floats

__all__ = ["GramSource", "Indices"]

Indices: TypeAlias = NDArray[np.intp]


class GramSource(Protocol):
    """K, uncentred. Whether it is computed or stored ends here; products: :func:`multiply`."""

    @property
    def n_samples(self) -> int:
        """The order l of K."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64, as the data."""

    @property
    def symmetric(self) -> bool:
        """Whether K[i, j] = K[j, i], so that half of the tiles suffice."""

    @property
    def side(self) -> int:
        """Side of the square tiles that products are made of."""

    @property
    def tile(self) -> int:
        """How many columns of a strip of rows are best filled at a time."""

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Write K[rows, columns] into ``out``; several threads may do so at once."""

    def held(self, rows: slice, columns: slice) -> Floats | None:
        """K[rows, columns] to read, where it is in memory already."""

    def diagonal(self) -> Floats:
        """k(x_i, x_i) for every sample."""

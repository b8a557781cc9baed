"""The port: the kernel matrix K, read in pieces."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ikpca.kernels import Floats

__all__ = ["CountedSource", "DistantSource", "GramSource", "Indices", "LandmarkRows"]

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


@runtime_checkable
class CountedSource(GramSource, Protocol):
    """A source that knows what was evaluated of it."""

    @property
    def entries(self) -> int:
        """Entries evaluated, not read."""


class LandmarkRows(Protocol):
    """K[L, :] for a few rows L, wherever it is, and its way to r rows over all samples."""

    def among(self) -> Floats:
        """K[L, L] in double precision."""

    def reduce(self, basis: Floats) -> Floats:
        """Keep B = basis · K[L, :] less its row means, and return B Bᵀ."""

    def turned(self, T: Floats) -> Floats:
        """T B, of shape (r, l)."""


@runtime_checkable
class DistantSource(CountedSource, Protocol):
    """A source whose tiles are made elsewhere: only narrow matrices come back."""

    def product(self, V: Floats, *, square: bool) -> tuple[Floats, float]:
        """K·V, and ‖K‖²_F where it is asked for."""

    def landmark_rows(self, indices: Indices) -> LandmarkRows:
        """K[indices, :], which stays where it is."""

"""The mean of the nearest rows: no method at all, and what every other must be shown against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ikpca.kernels import Floats, Kernel
from ikpca.preimages.expansion import Expansion
from ikpca.preimages.preimage import Preimages

__all__ = ["NeighbourMean"]


@dataclass(frozen=True)
class NeighbourMean:
    """The mean of the basis rows whose images are nearest to the point, for any kernel.

    Parameters
    ----------
    n_neighbours : int
        Rows in the mean; all of the basis where it has fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Gaussian
    >>> from ikpca.preimages import Expansion, NeighbourMean
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [9.0, 9.0]])
    >>> near = Expansion(Gaussian(0.1), X, np.array([[0.5, 0.5, 0.0]]))
    >>> NeighbourMean(2).find(near, np.eye(1)).rows
    array([[0.5, 0. ]])
    """

    n_neighbours: int = 5

    def serves(self, kernel: Kernel) -> bool:
        """Every kernel."""
        return True

    def find(
        self, expansion: Expansion, coordinates: Floats, starts: Floats | None = None
    ) -> Preimages:
        """Average the nearest rows of every point."""
        number = min(self.n_neighbours, len(expansion.basis))
        parts = []
        for strip in expansion.strips(len(coordinates)):
            near = expansion.nearest_rows(coordinates[strip], number)
            parts.append(expansion.basis[near].mean(axis=1))
        rows = np.concatenate(parts)
        return Preimages.direct(rows, expansion.squared_distances(coordinates, rows))

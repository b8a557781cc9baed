"""A reduced set of rows that are there already, for any kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ikpca.kernels import Floats, Kernel
from ikpca.preimages import Expansion
from ikpca.reduced_sets.checking import check_count, check_size, check_weights
from ikpca.reduced_sets.elimination import eliminate
from ikpca.reduced_sets.ground import Ground
from ikpca.reduced_sets.reduction import ReducedSet, nearest_on

__all__ = ["ChosenSamples", "chosen"]


@dataclass(frozen=True)
class ChosenSamples:
    """Keep the rows that the vectors lose least on, with coefficients by least squares.

    Rows go by backward elimination; copies of a row are merged, at no loss. It takes the kernel
    matrix of the rows, so of more than ``most`` (or twice the size wanted) as many are drawn.

    Parameters
    ----------
    most : int
        Rows to choose from, at most.
    seed : int
        Of the draw.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.preimages import Expansion
    >>> from ikpca.reduced_sets import ChosenSamples
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> mean = Expansion(Linear(), X, np.full((1, 4), 0.25))
    >>> reduced = ChosenSamples().reduce(mean, 2)
    >>> reduced.expansion.basis.shape, reduced.relative_errors.round(6)
    ((2, 2), array([0.]))
    """

    most: int = 4000
    seed: int = 0

    def __post_init__(self) -> None:
        check_count("most", self.most, 1)

    def serves(self, kernel: Kernel) -> bool:
        """Every kernel."""
        return True

    def reduce(
        self,
        expansion: Expansion,
        size: int,
        weights: Floats | None = None,
        *,
        values: Floats | None = None,
    ) -> ReducedSet:
        """Choose ``size`` of the rows."""
        size = check_size(expansion, size)
        weights = check_weights(expansion, weights)
        ground = Ground.of(expansion, values, max(self.most, 2 * size), self.seed)
        if ground.expansion.basis.shape[0] <= size:
            return ground.as_it_is()
        return chosen(ground, size, weights)


def chosen(ground: Ground, size: int, weights: Floats) -> ReducedSet:
    """The vectors on so many of the candidates."""
    which = eliminate(ground.values, ground.candidates.coefficients, weights, size)
    return nearest_on(
        ground.expansion,
        ground.in_type(ground.candidates.basis[which]),
        ground.values[np.ix_(which, which)],
        ground.across[:, which],
    )

"""Two inexpensive reductions for streams: drop the least important rows, or merge similar rows.

``ChosenSamples`` works out what each row is worth beside all others; these look at rows, or pairs
of rows, on their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ikpca.kernels import Floats, Indices, Kernel, Sigmoid
from ikpca.reduced_sets.base import (
    ReducedSet,
    ReductionProblem,
    check_size,
    check_weights,
    least_squares_on,
)
from ikpca.subspace import Expansion


@dataclass(frozen=True)
class DropLeastImportant:
    """Keep the rows with the largest weighted coefficients, and put the vectors on them anew.

    Row j counts Σ_i w_i² α_ij² k(x_j, x_j): what would be lost without it if rows were orthogonal.
    Least squares on the kept rows make up for what their neighbours can.

    Parameters
    ----------
    most : int
        Rows to choose from, at most; of more, as many are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.subspace import Expansion
    >>> from ikpca.reduced_sets import DropLeastImportant
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 0.1]])
    >>> reduced = LeastDropped().reduce(Expansion(Linear(), X, np.ones((1, 3))), 2)
    >>> reduced.expansion.basis.tolist(), reduced.squared_errors.round(6)
    ([[1.0, 0.0], [0.0, 1.0]], array([0.]))
    """

    most: int = 4000

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
        """Keep ``size`` of the rows."""
        size, weights = check_size(expansion, size), check_weights(expansion, weights)
        ground = ReductionProblem.of(expansion, values, max(self.most, 2 * size))
        if len(ground.values) <= size:
            return ground.as_it_is()
        counts = _counts(ground, weights)
        return _on(ground, np.sort(np.argsort(counts, kind="stable")[len(counts) - size :]))


@dataclass(frozen=True)
class MergeSimilar:
    """Let rows go to the most similar row that stays, cheapest first; then fit all anew.

    Row j goes to row i with k_ij/k_ii of its coefficients, and Σ_r w_r² α_rj² (k_jj − k_ij²/k_ii)
    is lost: the part of its image that is orthogonal to the other's. Least squares on the rows that
    stay win some of it back. Likeness is an angle, so the kernel has to be an inner product.

    Parameters
    ----------
    most : int
        Rows to choose from, at most; of more, as many are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.subspace import Expansion
    >>> from ikpca.reduced_sets import MergeSimilar
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    >>> reduced = AlikeMerged().reduce(Expansion(Linear(), X, np.ones((1, 3))), 2)
    >>> reduced.expansion.basis.tolist(), reduced.squared_errors.round(6)
    ([[1.0, 0.0], [0.0, 3.0]], array([0.]))
    """

    most: int = 4000

    def serves(self, kernel: Kernel) -> bool:
        """Whether angles mean anything; of callables it has to be believed."""
        return not isinstance(kernel, Sigmoid)

    def reduce(
        self,
        expansion: Expansion,
        size: int,
        weights: Floats | None = None,
        *,
        values: Floats | None = None,
    ) -> ReducedSet:
        """Merge until ``size`` rows are left."""
        size, weights = check_size(expansion, size), check_weights(expansion, weights)
        ground = ReductionProblem.of(expansion, values, max(self.most, 2 * size))
        if len(ground.values) <= size:
            return ground.as_it_is()
        left = np.arange(len(ground.values))
        coefficients = ground.candidates.coefficients
        while len(left) > size:
            values = ground.values[np.ix_(left, left)]
            left, coefficients = _merge_pairs(values, left, coefficients, weights, len(left) - size)
        return _on(ground, left)


def _merge_pairs(
    K: Floats, left: Indices, coefficients: Floats, weights: Floats, number: int
) -> tuple[Indices, Floats]:
    """Up to ``number`` rows go to partners; no partner goes in the same round."""
    diagonal = np.abs(np.diagonal(K)) + np.finfo(np.float64).tiny
    likeness = K * K / np.outer(diagonal, diagonal)
    np.fill_diagonal(likeness, -1)
    partners = likeness.argmax(axis=1)
    counts = np.square(weights) @ np.square(coefficients) * diagonal
    costs = counts * (1 - likeness[np.arange(len(left)), partners])
    moved, staying = np.ones(len(left), dtype=bool), np.zeros(len(left), dtype=bool)
    merged = coefficients.copy()
    for j in np.argsort(costs, kind="stable"):
        i = partners[j]
        if not number or staying[j] or not moved[i]:
            continue
        merged[:, i] += merged[:, j] * (K[i, j] / diagonal[i])
        moved[j], staying[i] = False, True
        number -= 1
    return left[moved], merged[:, moved]


def _counts(ground: ReductionProblem, weights: Floats) -> Floats:
    diagonal = np.abs(np.diagonal(ground.values))
    return np.square(weights) @ np.square(ground.candidates.coefficients) * diagonal


def _on(ground: ReductionProblem, chosen: Indices) -> ReducedSet:
    return least_squares_on(
        ground.expansion,
        ground.in_type(ground.candidates.basis[chosen]),
        ground.values[np.ix_(chosen, chosen)],
        ground.across[:, chosen],
    )

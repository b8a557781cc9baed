"""Two inexpensive reductions for streams: drop the least important rows, or merge similar rows.

``SelectedRows`` takes all other rows into account; these consider single rows or pairs of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ikpca.kernels import Floats, Indices, Kernel, Sigmoid
from ikpca.reduced_sets.base import ReducedSet, ReductionProblem, check_size, check_weights
from ikpca.subspace import Subspace


@dataclass(frozen=True)
class DropLeastImportant:
    """Reduction that keeps the rows with the largest weighted coefficients.

    The importance of row j is Σ_i w_i² α_ij² k(x_j, x_j), the error without it if rows were
    orthogonal. New coefficients are computed by least squares.

    Parameters
    ----------
    most : int
        Maximum number of candidate rows; more rows are sampled.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.subspace import Subspace
    >>> from ikpca.reduced_sets import DropLeastImportant
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 0.1]])
    >>> reduced = DropLeastImportant().reduce(Subspace(Linear(), X, np.ones((1, 3))), 2)
    >>> reduced.subspace.basis.tolist(), reduced.squared_errors.round(6)
    ([[1.0, 0.0], [0.0, 1.0]], array([0.]))
    """

    most: int = 4000

    def supports(self, kernel: Kernel) -> bool:
        """Return True: every kernel is supported."""
        return True

    def reduce(
        self,
        subspace: Subspace,
        size: int,
        weights: Floats | None = None,
        *,
        values: Floats | None = None,
    ) -> ReducedSet:
        """Keep ``size`` of the rows."""
        size, weights = check_size(subspace, size), check_weights(subspace, weights)
        problem = ReductionProblem.from_subspace(subspace, values, max(self.most, 2 * size))
        if len(problem.values) <= size:
            return problem.identity()
        scores = _importances(problem, weights)
        kept = np.sort(np.argsort(scores, kind="stable")[len(scores) - size :])
        return problem.restrict(kept)


@dataclass(frozen=True)
class MergeSimilar:
    """Reduction that merges rows with their most similar row, in order of increasing error.

    Merging row j into row i adds k_ij/k_ii of its coefficients, with the error
    Σ_r w_r² α_rj² (k_jj − k_ij²/k_ii): the part of its image orthogonal to the other's. New
    coefficients are then computed by least squares. Similarity is an angle in feature space, so the
    kernel must be positive semi-definite.

    Parameters
    ----------
    most : int
        Maximum number of candidate rows; more rows are sampled.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.subspace import Subspace
    >>> from ikpca.reduced_sets import MergeSimilar
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    >>> reduced = MergeSimilar().reduce(Subspace(Linear(), X, np.ones((1, 3))), 2)
    >>> reduced.subspace.basis.tolist(), reduced.squared_errors.round(6)
    ([[1.0, 0.0], [0.0, 3.0]], array([0.]))
    """

    most: int = 4000

    def supports(self, kernel: Kernel) -> bool:
        """Return True for positive semi-definite kernels; callables are assumed to be."""
        return not isinstance(kernel, Sigmoid)

    def reduce(
        self,
        subspace: Subspace,
        size: int,
        weights: Floats | None = None,
        *,
        values: Floats | None = None,
    ) -> ReducedSet:
        """Merge rows until ``size`` rows remain."""
        size, weights = check_size(subspace, size), check_weights(subspace, weights)
        problem = ReductionProblem.from_subspace(subspace, values, max(self.most, 2 * size))
        if len(problem.values) <= size:
            return problem.identity()
        rows = np.arange(len(problem.values))
        coefficients = problem.candidates.coefficients
        while len(rows) > size:
            values = problem.values[np.ix_(rows, rows)]
            rows, coefficients = _merge_pairs(values, rows, coefficients, weights, len(rows) - size)
        return problem.restrict(rows)


def _importances(problem: ReductionProblem, weights: Floats) -> Floats:
    diagonal = np.abs(np.diagonal(problem.values))
    return np.square(weights) @ np.square(problem.candidates.coefficients) * diagonal


def _merge_pairs(
    K: Floats, rows: Indices, coefficients: Floats, weights: Floats, number: int
) -> tuple[Indices, Floats]:
    """Merge up to ``number`` rows; the row that another is merged into remains in this round."""
    diagonal = np.abs(np.diagonal(K)) + np.finfo(np.float64).tiny
    similarity = K * K / np.outer(diagonal, diagonal)
    np.fill_diagonal(similarity, -1)
    partners = similarity.argmax(axis=1)
    scores = np.square(weights) @ np.square(coefficients) * diagonal
    costs = scores * (1 - similarity[np.arange(len(rows)), partners])
    remaining, fixed = np.ones(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
    merged = coefficients.copy()
    for j in np.argsort(costs, kind="stable"):
        i = partners[j]
        if not number or fixed[j] or not remaining[i]:
            continue
        merged[:, i] += merged[:, j] * (K[i, j] / diagonal[i])
        remaining[j], fixed[i] = False, True
        number -= 1
    return rows[remaining], merged[:, remaining]

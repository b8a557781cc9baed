"""Reduced sets of selected rows, for any kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ikpca.errors import check_parameters
from ikpca.gram import tile_slices
from ikpca.kernels import Floats, Indices, Kernel
from ikpca.reduced_sets.base import (
    CANDIDATES_RULE,
    ReducedSet,
    Reduction,
    ReductionProblem,
    unit_diagonal,
)

#: Ridge on the Gram matrix of unit diagonal: rows that differ by less count as duplicates.
_RIDGE = 1e-10
#: Rows are removed in blocks of 1/16 of all rows, within bounds; the candidates for removal are
#: three times as many.
_BLOCKS, _MIN_BLOCK, _MAX_BLOCK, _CANDIDATES = 16, 16, 128, 3


@dataclass(frozen=True)
class SelectedRows(Reduction):
    """Reduction that keeps a subset of the rows, with least-squares coefficients.

    Rows are removed by backward elimination; duplicate rows are merged without loss. This needs the
    kernel matrix of the rows, so it starts from a sample of at most ``max_candidates`` rows (or of
    twice the size, if that is more).

    Parameters
    ----------
    max_candidates : int
        Maximum number of candidate rows.
    seed : int
        Seed of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.subspace import Subspace
    >>> from ikpca.reduced_sets import SelectedRows
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> mean = Subspace(Linear(), X, np.full((1, 4), 0.25))
    >>> reduced = SelectedRows().reduce(mean, 2)
    >>> reduced.subspace.basis.shape, reduced.relative_errors.round(6)
    ((2, 2), array([0.]))
    """

    max_candidates: int = 4000
    seed: int = 0

    def __post_init__(self) -> None:
        check_parameters(self, {"max_candidates": CANDIDATES_RULE})

    def supports(self, kernel: Kernel) -> bool:
        """Return True: every kernel is supported."""
        return True

    def _reduce(self, problem: ReductionProblem) -> ReducedSet:
        return select_rows(problem)


def select_rows(problem: ReductionProblem) -> ReducedSet:
    """Return the vectors on some of the candidates."""
    candidates = problem.candidates
    kept = eliminate(problem.values, candidates.coefficients, problem.weights, problem.size)
    return problem.on_rows(candidates.basis[kept])


def eliminate(values: Floats, coefficients: Floats, weights: Floats, size: int) -> Indices:
    """Return indices of ``size`` rows, in order, by backward elimination.

    Removing row j increases the weighted least-squares error by Σ_i w_i² α_ij² / P_jj, with P the
    inverse of the kernel matrix and α the coefficients on the remaining rows. Rows are removed one
    by one from a block of candidates; the other rows are updated once per block.
    """
    scales = unit_diagonal(values)
    inverse = _inverse(values, scales)
    weighted = (coefficients / scales) * weights[:, None]
    rows, remaining = np.arange(len(values)), np.ones(len(values), dtype=bool)
    block_size = min(max(_MIN_BLOCK, len(values) // _BLOCKS), _MAX_BLOCK)
    for block in tile_slices(len(values) - size, block_size):
        if 2 * remaining.sum() < len(remaining):
            inverse = np.asfortranarray(inverse[np.ix_(remaining, remaining)])
            weighted, rows = weighted[:, remaining], rows[remaining]
            remaining = remaining[remaining]
        removed = _cheapest(inverse, weighted, remaining, block.stop - block.start)
        remaining[removed] = False
        strip = inverse[removed]
        solution = linalg.solve(strip[:, removed], strip, assume_a="sym", check_finite=False)
        weighted = weighted - weighted[:, removed] @ solution
        # In place, because the inverse is the largest array.
        inverse = linalg.blas.dgemm(-1, strip, solution, 1, inverse, trans_a=True, overwrite_c=True)
    return rows[remaining]


def _cheapest(
    inverse: Floats, weighted: Floats, remaining: NDArray[np.bool_], number: int
) -> Indices:
    """Return the rows to remove, each chosen after the removal of those before it."""
    rows = np.flatnonzero(remaining)
    tail = weighted[:, rows]
    costs = np.einsum("ij,ij->j", tail, tail) / np.maximum(np.diagonal(inverse)[rows], 1)
    n_candidates = min(len(rows), _CANDIDATES * number)
    candidates = rows[np.argpartition(costs, n_candidates - 1)[:n_candidates]]
    # Inverse and coefficients in one array, since a step subtracts multiples of a row from both.
    both = np.hstack([inverse[np.ix_(candidates, candidates)], weighted[:, candidates].T])
    removed = np.empty(number, dtype=np.intp)
    penalties = np.zeros(n_candidates)
    for step in range(number):
        tail = both[:, n_candidates:]
        costs = np.einsum("ji,ji->j", tail, tail) / np.maximum(np.diagonal(both), 1) + penalties
        j = costs.argmin()
        removed[step], penalties[j] = candidates[j], np.inf
        row = both[j] / both[j, j]
        column = both[:, j].copy()
        column[j] = 0
        both -= column[:, None] * row
    return removed


def _inverse(values: Floats, scales: Floats) -> Floats:
    """Invert the Gram matrix scaled to unit diagonal, with a ridge; in Fortran order."""
    ridge, failed = _RIDGE, 1
    while failed:
        gram = values * scales
        gram *= scales[:, None]
        gram.flat[:: len(gram) + 1] += ridge * len(gram)
        factor, failed = linalg.lapack.dpotrf(gram.T, lower=True, overwrite_a=True)
        # An indefinite kernel needs a larger ridge.
        ridge *= 10
    inverse, _ = linalg.lapack.dpotri(factor, lower=True, overwrite_c=True)
    inverse.flat[:: len(inverse) + 1] /= 2
    inverse += inverse.T
    return inverse

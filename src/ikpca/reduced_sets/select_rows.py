"""Reduced sets of selected rows, for any kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ikpca.gram import tile_slices
from ikpca.kernels import Floats, Indices, Kernel
from ikpca.reduced_sets.base import (
    ReducedSet,
    ReductionProblem,
    check_row_count,
    check_size,
    check_weights,
    least_squares_on,
    unit_diagonal,
)
from ikpca.subspace import Expansion

#: Ridge on the gram of unit diagonal: rows that differ by less count as copies.
_RIDGE = 1e-10
#: Share of the rows (but so many at least and at most) that go before all costs are worked out
#: again, and how many times as many are looked at.
_SHARE, _LEAST, _MOST, _CHOICE = 16, 16, 128, 3


def eliminate(values: Floats, coefficients: Floats, weights: Floats, size: int) -> Indices:
    """Indices of ``size`` rows, in order, that the weighted vectors lose least on.

    Without row j the least-squares error grows by Σ_i w_i² α_ij² / P_jj, with P the inverse of the
    kernel matrix and α the coefficients on the rows still there; both then change for the others.
    A block of rows goes, one by one, from those that cost least at first; what becomes of the
    remaining rows is worked out once per block.

    Parameters
    ----------
    values : ndarray of shape (m, m)
        k(x_i, x_j).
    coefficients : ndarray of shape (q, m)
    weights : ndarray of shape (q,)
    size : int
    """
    scales = unit_diagonal(values)
    inverse = _inverse(values, scales)
    weighted = (coefficients / scales) * weights[:, None]
    rows, left = np.arange(len(values)), np.ones(len(values), dtype=bool)
    for block in tile_slices(len(values) - size, _block(len(values))):
        if 2 * left.sum() < len(left):
            inverse = np.asfortranarray(inverse[np.ix_(left, left)])
            weighted, rows = weighted[:, left], rows[left]
            left = left[left]
        gone = _cheapest(inverse, weighted, left, block.stop - block.start)
        left[gone] = False
        across = inverse[gone]
        moved = linalg.solve(across[:, gone], across, assume_a="sym", check_finite=False)
        weighted = weighted - weighted[:, gone] @ moved
        # In place: for a large library the inverse is the largest thing there is.
        inverse = linalg.blas.dgemm(-1, across, moved, 1, inverse, trans_a=True, overwrite_c=True)
    return rows[left]


def _block(n_rows: int) -> int:
    return min(max(_LEAST, n_rows // _SHARE), _MOST)


def _cheapest(inverse: Floats, weighted: Floats, left: NDArray[np.bool_], number: int) -> Indices:
    """Rows that go, each chosen when those before it have gone."""
    rows = np.flatnonzero(left)
    tail = weighted[:, rows]
    costs = np.einsum("ij,ij->j", tail, tail) / np.maximum(np.diagonal(inverse)[rows], 1)
    wanted = min(len(rows), _CHOICE * number)
    choice = rows[np.argpartition(costs, wanted - 1)[:wanted]]
    # Inverse and coefficients in one array, that each step takes a multiple of one row from.
    both = np.hstack([inverse[np.ix_(choice, choice)], weighted[:, choice].T])
    gone = np.empty(number, dtype=np.intp)
    there = np.zeros(wanted)
    for step in range(number):
        tail = both[:, wanted:]
        costs = np.einsum("ji,ji->j", tail, tail) / np.maximum(np.diagonal(both), 1) + there
        j = costs.argmin()
        gone[step], there[j] = choice[j], np.inf
        row = both[j] / both[j, j]
        column = both[:, j].copy()
        column[j] = 0
        both -= column[:, None] * row
    return gone


def _inverse(values: Floats, scales: Floats) -> Floats:
    """Of the gram with unit diagonal and a ridge; columns lie together in memory."""
    ridge, failed = _RIDGE, 1
    while failed:
        gram = values * scales
        gram *= scales[:, None]
        gram.flat[:: len(gram) + 1] += ridge * len(gram)
        factor, failed = linalg.lapack.dpotrf(gram.T, lower=True, overwrite_a=True)
        # A kernel that is no inner product: only the larger distances are to be told.
        ridge *= 10
    inverse, _ = linalg.lapack.dpotri(factor, lower=True, overwrite_c=True)
    inverse.flat[:: len(inverse) + 1] /= 2
    inverse += inverse.T
    return inverse


@dataclass(frozen=True)
class SelectedRows:
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
    >>> from ikpca.subspace import Expansion
    >>> from ikpca.reduced_sets import SelectedRows
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> mean = Expansion(Linear(), X, np.full((1, 4), 0.25))
    >>> reduced = ChosenSamples().reduce(mean, 2)
    >>> reduced.expansion.basis.shape, reduced.relative_errors.round(6)
    ((2, 2), array([0.]))
    """

    most: int = 4000
    seed: int = 0

    def __post_init__(self) -> None:
        check_row_count("most", self.most, 1)

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
        ground = ReductionProblem.of(expansion, values, max(self.most, 2 * size), self.seed)
        if ground.expansion.basis.shape[0] <= size:
            return ground.as_it_is()
        return select_rows(ground, size, weights)


def select_rows(ground: ReductionProblem, size: int, weights: Floats) -> ReducedSet:
    """The vectors on so many of the candidates."""
    which = eliminate(ground.values, ground.candidates.coefficients, weights, size)
    return least_squares_on(
        ground.expansion,
        ground.in_type(ground.candidates.basis[which]),
        ground.values[np.ix_(which, which)],
        ground.across[:, which],
    )

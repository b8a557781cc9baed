"""Reduced sets of rows that are selected, and moved to minimize the error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ikpca.errors import Number, check_parameters
from ikpca.gram import cross_gram, tile_slices
from ikpca.kernels import Floats, Indices, Kernel
from ikpca.reduced_sets.base import (
    CANDIDATES_RULE,
    ReducedSet,
    Reduction,
    ReductionProblem,
    unit_diagonal,
)
from ikpca.subspace import Subspace

#: Ridge on the Gram matrix of unit diagonal: rows that differ by less count as duplicates.
_RIDGE = 1e-10
#: Ridge on a Gram matrix of unit mean diagonal while rows move.
_MOVING_RIDGE = 1e-11
#: Multiplications that are always allowed for moving rows, and bounds on the number of moves.
_WORK, _MIN_MOVES, _MAX_MOVES = 1e9, 5, 20
#: Rows are removed in blocks of 1/16 of all rows, within bounds; the candidates for removal are
#: three times as many.
_BLOCKS, _MIN_BLOCK, _MAX_BLOCK, _CANDIDATES = 16, 16, 128, 3
_RULES = {
    "moves": Number("must be 'auto' or not negative", "pass 'auto'",
                    low=0, integer=True, allowed=("auto",)),
    "tol": Number("must be a number from 0 to 1", "pass 1e-4", low=0, high=1),
    "max_candidates": CANDIDATES_RULE,
}  # fmt: skip


@dataclass(frozen=True)
class SelectedRows(Reduction):
    """Reduction that keeps a subset of the rows, or moves these to minimize the error.

    Rows are removed by backward elimination; duplicate rows are merged without loss. This needs the
    kernel matrix of the rows, so it starts from a sample of at most ``max_candidates`` rows (or of
    twice the size, if that is more). For kernels with a gradient, all of the remaining rows may
    then be moved to minimize the weighted error Σ_i w_i² ‖u_i − u'_i‖², with least-squares
    coefficients (Burges 1996, for one vector). At equal size the error is smaller than that of
    pre-images found one after the other, in less time.

    Parameters
    ----------
    moves : int or "auto", default=0
        Iterations of the optimizer that moves rows; "auto" is 20, fewer if that would take much
        longer than selecting the rows, and none if it would be fewer than 5.
    tol : float, default=1e-4
        Rows are not moved if the relative errors of all vectors with a weight are at most this.
    max_candidates : int, default=4000
        Maximum number of candidate rows.
    seed : int, default=0
        Seed of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Gaussian
    >>> from ikpca.subspace import Subspace
    >>> from ikpca.reduced_sets import SelectedRows
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> mean = Subspace(Gaussian(0.1), X, np.full((1, 50), 0.02))
    >>> for reduction in (SelectedRows(), SelectedRows(moves=20)):
    ...     print(reduction.reduce(mean, 3).relative_errors < 0.05)
    [False]
    [ True]
    """

    moves: int | Literal["auto"] = 0
    tol: float = 1e-4
    max_candidates: int = 4000
    seed: int = 0

    def __post_init__(self) -> None:
        check_parameters(self, _RULES)

    def supports(self, kernel: Kernel) -> bool:
        """Return True for kernels with a gradient, and for every kernel if rows do not move."""
        return self.moves == 0 or super().supports(kernel)

    def _reduce(self, problem: ReductionProblem) -> ReducedSet:
        """Select rows, and move them if their error is too large."""
        candidates, squares = problem.candidates, problem.weights**2
        kept = eliminate(problem.values, candidates.coefficients, problem.weights, problem.size)
        start, n_moves = problem.on_rows(candidates.basis[kept]), self._n_moves(problem)
        if not n_moves or (start.relative_errors[problem.weights > 0] <= self.tol).all():
            return start
        moved = problem.on_rows(move_rows(candidates, problem.weights, kept, n_moves))
        # Rounding or an indefinite kernel may make moved rows worse.
        return moved if squares @ moved.squared_errors < squares @ start.squared_errors else start

    def _n_moves(self, problem: ReductionProblem) -> int:
        if self.moves != "auto":
            return self.moves
        size, (n_rows, n_features) = problem.size, problem.candidates.basis.shape
        work = size * (n_rows + size) * n_features + size**3
        # Selection costs the cube of the number of rows; moving may cost as much again.
        number = int(max(_WORK, float(n_rows) ** 3) // work)
        return min(number, _MAX_MOVES) if number >= _MIN_MOVES else 0


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


def move_rows(vectors: Subspace, weights: Floats, chosen: Indices, n_moves: int) -> Floats:
    """Return the chosen rows of the basis after moves that minimize the weighted error."""
    # Imported here because most reductions of a stream do not need it.
    from scipy.optimize import minimize

    rows = vectors.basis[chosen]
    error = _WeightedError(vectors, weights, rows.shape)
    minimum = minimize(error, rows.ravel() / error.spread, jac=True, method="L-BFGS-B",
                       options={"maxiter": n_moves, "ftol": 0.0, "gtol": 0.0})  # fmt: skip
    return error.rows(minimum.x)


class _WeightedError:
    """Relative error Σ_i w_i² ‖u_i − u'_i‖² / Σ_i w_i² ‖u_i‖², and its gradient in the rows.

    With optimal coefficients C, the gradient of the numerator with respect to z_k is
    −2 Σ_i w_i² C_ik ∇⟨u_i − u'_i, Φ(z)⟩ at z = z_k.
    """

    def __init__(self, vectors: Subspace, weights: Floats, shape: tuple[int, ...]) -> None:
        self._vectors = vectors
        self._squares = weights**2
        self._shape = shape
        self._total = float(self._squares @ np.diagonal(vectors.gram)) or 1.0
        self.spread = vectors.basis_std

    def rows(self, scaled: Floats) -> Floats:
        """Return z_k from the variables of the optimizer, which are of order one."""
        return scaled.reshape(self._shape) * self.spread

    def __call__(self, scaled: Floats) -> tuple[float, Floats]:
        kernel, X, A = self._vectors.kernel, self._vectors.basis, self._vectors.coefficients
        Z = self.rows(scaled)
        gram, inner_products = cross_gram(kernel, Z, Z), A @ cross_gram(kernel, X, Z)
        gram.flat[:: len(Z) + 1] += _MOVING_RIDGE * np.trace(gram) / len(Z)
        try:
            factor = linalg.cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return np.inf, np.zeros_like(scaled)
        C = linalg.cho_solve(factor, inner_products.T, check_finite=False)
        weighted = C * self._squares
        error = self._total - float(np.einsum("ki,ik->", weighted, inner_products))
        residual = np.hstack([weighted @ A, -(weighted @ C.T)])
        _, gradients = kernel.weighted_gradient(Z, np.vstack([X, Z]), residual)
        return error / self._total, (-2 * self.spread / self._total) * gradients.ravel()

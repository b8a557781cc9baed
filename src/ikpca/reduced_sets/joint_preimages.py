"""Reduced sets of pre-images optimized jointly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import linalg

from ikpca.errors import Number, check_parameters
from ikpca.gram import cross_gram
from ikpca.kernels import Floats
from ikpca.reduced_sets.base import CANDIDATES_RULE, ReducedSet, Reduction, ReductionProblem
from ikpca.reduced_sets.select_rows import select_rows
from ikpca.subspace import Subspace

#: Multiplications that are always allowed for moving rows, and bounds on the number of moves.
_WORK, _MIN_MOVES, _MAX_MOVES = 1e9, 5, 20
#: Ridge on a Gram matrix of unit mean diagonal while rows move.
_RIDGE = 1e-11
_RULES = {
    "moves": Number("must be 'auto' or not negative", "pass 'auto'",
                    low=0, integer=True, allowed=("auto",)),
    "tol": Number("must be a number from 0 to 1", "pass 1e-4", low=0, high=1),
    "max_candidates": CANDIDATES_RULE,
}  # fmt: skip


@dataclass(frozen=True)
class JointPreimages(Reduction):
    """Reduction that selects rows and then optimizes all of them jointly.

    In a stream most rows are pre-images found earlier, and those that fit are kept. If the error is
    too large, all rows are moved to minimize the weighted error Σ_i w_i² ‖u_i − u'_i‖², with
    least-squares coefficients (Burges 1996, for one vector). At equal size the error is smaller
    than that of pre-images found one after the other, in less time.

    Parameters
    ----------
    moves : int or "auto"
        Iterations of the optimizer; "auto" is 20, fewer if that would take much longer than
        selecting the rows, and none if it would be fewer than 5.
    tol : float
        Rows are not moved if the relative errors of all vectors with a weight are at most this.
    max_candidates : int
        Maximum number of candidate rows; more rows are sampled.
    seed : int
        Seed of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Gaussian
    >>> from ikpca.subspace import Subspace
    >>> from ikpca.reduced_sets import JointPreimages
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> mean = Subspace(Gaussian(0.1), X, np.full((1, 50), 0.02))
    >>> reduced = JointPreimages().reduce(mean, 3)
    >>> reduced.subspace.basis.shape, bool(reduced.relative_errors[0] < 0.05)
    ((3, 2), True)
    """

    moves: int | Literal["auto"] = "auto"
    tol: float = 1e-4
    max_candidates: int = 4000
    seed: int = 0

    def __post_init__(self) -> None:
        check_parameters(self, _RULES)

    def _reduce(self, problem: ReductionProblem) -> ReducedSet:
        """Select rows, and move them if their error is too large."""
        start, squares = select_rows(problem), problem.weights**2
        n_moves = self._n_moves(problem)
        if not n_moves or (start.relative_errors[problem.weights > 0] <= self.tol).all():
            return start
        moved = _move_rows(problem, start, n_moves)
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


def _move_rows(problem: ReductionProblem, start: ReducedSet, n_moves: int) -> ReducedSet:
    # Imported here because most reductions of a stream do not need it.
    from scipy.optimize import minimize

    shape = start.subspace.basis.shape
    error = _WeightedError(problem.candidates, problem.weights, shape)
    initial = start.subspace.basis.astype(np.float64).ravel() / error.spread
    minimum = minimize(error, initial, jac=True, method="L-BFGS-B",
                       options={"maxiter": n_moves, "ftol": 0.0, "gtol": 0.0})  # fmt: skip
    return problem.on_rows(error.rows(minimum.x))


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
        gram.flat[:: len(Z) + 1] += _RIDGE * np.trace(gram) / len(Z)
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

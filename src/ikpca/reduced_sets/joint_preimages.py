"""Reduced sets of pre-images optimized jointly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import linalg

from ikpca.errors import invalid_parameter
from ikpca.gram import cross_gram
from ikpca.kernels import DifferentiableKernel, Floats, Kernel
from ikpca.reduced_sets.base import (
    ReducedSet,
    ReductionProblem,
    check_row_count,
    check_size,
    check_tol,
    check_weights,
    least_squares_on,
)
from ikpca.reduced_sets.select_rows import select_rows
from ikpca.subspace import Expansion

#: Multiplications that may be spent on moving rows in any case, and the moves below which it is
#: not worth beginning and beyond which little is won.
_WORK, _LEAST_MOVES, _MOST_MOVES = 1e9, 5, 20
#: Ridge on a gram of unit mean diagonal while rows move.
_RIDGE = 1e-11


@dataclass(frozen=True)
class JointPreimages:
    """Start from the rows at hand that serve best, and move all of them at once.

    In a stream most rows are pre-images found earlier: those that still serve stay. Where their
    error is too large, all rows move downhill on the weighted error Σ_i w_i² ‖u_i − u'_i‖², with
    coefficients that are least-squares solutions all along (Burges 1996, for one vector). At equal
    size this is nearer than pre-images found one after the other, and takes less time.

    Parameters
    ----------
    moves : int or "auto"
        Steps that rows move; "auto" is 20, fewer where that would take much longer than choosing
        the rows, and none where it would be fewer than 5.
    tol : float
        Rows stay where no vector of any weight has a larger relative error than this.
    most : int
        Rows to choose from, at most; of more as many are drawn.
    seed : int
        Of the draw.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Gaussian
    >>> from ikpca.subspace import Expansion
    >>> from ikpca.reduced_sets import JointPreimages
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> mean = Expansion(Gaussian(0.1), X, np.full((1, 50), 0.02))
    >>> reduced = JointPreimages().reduce(mean, 3)
    >>> reduced.expansion.basis.shape, bool(reduced.relative_errors[0] < 0.05)
    ((3, 2), True)
    """

    moves: int | Literal["auto"] = "auto"
    tol: float = 1e-4
    most: int = 4000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.moves != "auto":
            check_row_count("moves", self.moves, 0)
        check_tol(self.tol)
        check_row_count("most", self.most, 1)

    def serves(self, kernel: Kernel) -> bool:
        """Kernels with a gradient."""
        return isinstance(kernel, DifferentiableKernel)

    def reduce(
        self,
        expansion: Expansion,
        size: int,
        weights: Floats | None = None,
        *,
        values: Floats | None = None,
    ) -> ReducedSet:
        """Choose ``size`` of the rows, and move them if need be."""
        kernel = expansion.kernel
        if not isinstance(kernel, DifferentiableKernel):
            raise invalid_parameter("kernel", kernel, "has no gradient", "choose ChosenSamples")
        size = check_size(expansion, size)
        weights = check_weights(expansion, weights)
        ground = ReductionProblem.of(expansion, values, max(self.most, 2 * size), self.seed)
        if ground.expansion.basis.shape[0] <= size:
            return ground.as_it_is()
        start = select_rows(ground, size, weights)
        number = self._number(ground, size)
        if not number or (start.relative_errors[weights > 0] <= self.tol).all():
            return start
        return _better(start, _moved(kernel, ground, start, weights, number), weights)

    def _number(self, ground: ReductionProblem, size: int) -> int:
        if self.moves != "auto":
            return self.moves
        n_rows, n_features = ground.candidates.basis.shape
        work = size * (n_rows + size) * n_features + size**3
        # Choosing has cost the cube of the rows: moving may cost as much again.
        number = int(max(_WORK, float(n_rows) ** 3) // work)
        return min(number, _MOST_MOVES) if number >= _LEAST_MOVES else 0


def _better(start: ReducedSet, moved: ReducedSet, weights: Floats) -> ReducedSet:
    """Rounding, or a kernel that is no inner product, may have led astray."""
    before, after = (weights**2 @ found.squared_errors for found in (start, moved))
    return moved if after < before else start


def _moved(
    kernel: DifferentiableKernel,
    ground: ReductionProblem,
    start: ReducedSet,
    weights: Floats,
    number: int,
) -> ReducedSet:
    # Imported here: most reductions of a stream need it not at all.
    from scipy.optimize import minimize

    error = _WeightedError(kernel, ground.candidates, weights, start.expansion.basis.shape)
    begin = start.expansion.basis.astype(np.float64).ravel() / error.spread
    options: dict[str, Any] = {"maxiter": number, "ftol": 0.0, "gtol": 0.0}
    found = minimize(error, begin, jac=True, method="L-BFGS-B", options=options)
    rows = ground.in_type(error.rows(found.x))
    Z = rows.astype(np.float64)
    return least_squares_on(ground.expansion, rows, cross_gram(kernel, Z, Z), ground.across_to(Z))


class _WeightedError:
    """Σ_i w_i² ‖u_i − u'_i‖² as a share of Σ_i w_i² ‖u_i‖², and its gradient in the rows.

    With coefficients C at their best, only the rows' own effect remains: that of z_k is
    −2 Σ_i w_i² C_ik ∇⟨u_i − u'_i, Φ(z)⟩ at z = z_k.
    """

    def __init__(
        self,
        kernel: DifferentiableKernel,
        vectors: Expansion,
        weights: Floats,
        shape: tuple[int, ...],
    ) -> None:
        self._kernel = kernel
        self._vectors = vectors
        self._squares = weights**2
        self._shape = shape
        self._whole = float(self._squares @ np.diagonal(vectors.gram)) or 1.0
        self.spread = vectors.spread

    def rows(self, scaled: Floats) -> Floats:
        """z_k from what is minimised over, which is of the order of one."""
        return scaled.reshape(self._shape) * self.spread

    def __call__(self, scaled: Floats) -> tuple[float, Floats]:
        kernel, X, A = self._kernel, self._vectors.basis, self._vectors.coefficients
        Z = self.rows(scaled)
        gram, across = cross_gram(kernel, Z, Z), A @ cross_gram(kernel, X, Z)
        gram.flat[:: len(Z) + 1] += _RIDGE * np.trace(gram) / len(Z)
        try:
            factor = linalg.cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return np.inf, np.zeros_like(scaled)
        C = linalg.cho_solve(factor, across.T, check_finite=False)
        weighted = C * self._squares
        error = self._whole - float(np.einsum("ki,ik->", weighted, across))
        residual = np.hstack([weighted @ A, -(weighted @ C.T)])
        _, slopes = kernel.weighted_gradient(Z, np.vstack([X, Z]), residual)
        return error / self._whole, (-2 * self.spread / self._whole) * slopes.ravel()

"""Gradient descent in input space (Burges 1996) for differentiable kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import invalid_parameter
from ikpca.kernels import DifferentiableKernel, Floats, Kernel
from ikpca.preimages.base import Points, Preimages, check_iteration, search
from ikpca.preimages.batched_lbfgs import (
    DescentResult,
    DescentSettings,
    Evaluate,
    descend,
)
from ikpca.subspace import Subspace

#: First and longest step, relative to the standard deviation of the basis.
_FIRST_STEP, _MAX_STEP = 0.1, 2.0
#: Pairs of steps and changes of gradients for limited-memory BFGS.
_MEMORY = 8
#: Share of the predicted decrease that a step must achieve.
_SUFFICIENT_DECREASE = 1e-4
#: Largest negative distance that is attributed to rounding, relative to the smallest objective.
_NEGATIVE_TOLERANCE = 1e-6
#: Rounding error of an objective, in units of the machine precision.
_ROUNDING_UNITS = 8


@dataclass(frozen=True)
class Gradient:
    """Minimization of k(z, z) − 2 Σ_j G_ij k(z, x_j) over z by limited-memory BFGS.

    Every sample has its own line search, so that its objective never increases. The cosine kernel
    does not depend on norms; its pre-images have about the norm of their starts.

    Parameters
    ----------
    max_iter : int
        Evaluations per sample.
    tol : float
        A sample has converged when its next step is shorter than ``tol`` times the standard
        deviation of the basis rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.subspace import Subspace
    >>> from ikpca.preimages import Gradient
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> midway = Subspace(Linear(), X, np.array([[0.0, 0.5, 0.5]]))
    >>> Gradient().find(midway, np.eye(1)).rows.round(6)
    array([[0.5, 0.5]])
    """

    max_iter: int = 300
    tol: float = 1e-7

    def __post_init__(self) -> None:
        check_iteration(self.max_iter, self.tol)

    def supports(self, kernel: Kernel) -> bool:
        """Return True for differentiable kernels."""
        return isinstance(kernel, DifferentiableKernel)

    def find(
        self, subspace: Subspace, coordinates: Floats, starts: Floats | None = None
    ) -> Preimages:
        """Find a row for every point."""
        kernel, std = subspace.kernel, subspace.basis_std
        if not isinstance(kernel, DifferentiableKernel):
            raise invalid_parameter("kernel", kernel, "has no gradient", "choose NeighborMean")
        settings = DescentSettings(
            self.tol * std,
            _MAX_STEP * std,
            self.max_iter,
            _MEMORY,
            _FIRST_STEP * std,
            sufficient_decrease=_SUFFICIENT_DECREASE,
        )

        def descend_points(points: Points, starts: Floats) -> DescentResult:
            return descend(_objective(kernel, points), starts, settings)

        return search(subspace, coordinates, starts, descend_points)


def _objective(kernel: DifferentiableKernel, points: Points) -> Evaluate:
    """Return a function for the objective of the points and its gradient."""
    basis, weights = points.subspace.basis, points.active_weights()
    # Only an indefinite kernel has negative squared distances, which may be unbounded.
    eps = float(np.finfo(basis.dtype).eps)
    tolerance = max(_NEGATIVE_TOLERANCE, eps**0.5)
    lowest = points.min_objective - tolerance * np.abs(points.min_objective)
    # A gradient that changes the objective by no more than rounding over the basis counts as zero.
    rounding = _ROUNDING_UNITS * eps / points.subspace.basis_std

    def evaluate(Z: Floats, indices: NDArray[np.intp]) -> tuple[Floats, Floats]:
        values, value_gradients = kernel.weighted_gradient(Z, basis, weights(indices))
        diagonal = 0 if points.constant else kernel.diagonal(Z)
        objective = diagonal - 2 * values
        gradients = kernel.diagonal_gradient(Z) - 2 * value_gradients
        gradients[np.linalg.norm(gradients, axis=1) <= rounding * np.abs(objective)] = 0
        objective[objective < lowest[indices]] = np.inf
        return objective, gradients

    return evaluate

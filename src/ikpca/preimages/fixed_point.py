"""Fixed-point iteration of Mika et al. (1999) for radial kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import invalid_parameter
from ikpca.kernels import Floats, Kernel, RadialKernel
from ikpca.preimages.base import Points, Preimages, check_count, check_iteration, search
from ikpca.preimages.batched_lbfgs import (
    DescentResult,
    DescentSettings,
    Evaluate,
    descend,
)
from ikpca.subspace import Subspace

#: Longest step, relative to the standard deviation of the basis: starts may be distant, but
#: iterates must not diverge.
_MAX_STEP = 10.0


@dataclass(frozen=True)
class FixedPoint:
    """Fixed-point iteration z ← Σ_j G_ij k(z, x_j) x_j / Σ_j G_ij k(z, x_j), with safeguards.

    The step follows the negative gradient of −ln ⟨P, Φ(z)⟩ and thus, as k(z, z) is constant, of the
    distance. Negative weights can make it too long; it is then halved. For the Laplacian kernel the
    weighted mean becomes a weighted median. If ⟨P, Φ(z)⟩ is not positive, the step is undefined,
    and the iteration restarts from the basis row nearest to P in feature space.

    Parameters
    ----------
    max_iter : int
        Evaluations per sample.
    tol : float
        A sample has converged when its next step is shorter than ``tol`` times the standard
        deviation of the basis rows.
    memory : int
        Earlier steps used by limited-memory BFGS, which finds the same fixed points several times
        faster; 0 is the iteration of the papers.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Gaussian
    >>> from ikpca.subspace import Subspace
    >>> from ikpca.preimages import FixedPoint
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> midway = Subspace(Gaussian(0.1), X, np.array([[0.5, 0.5, 0.0]]))
    >>> FixedPoint().find(midway, np.eye(1)).rows.round(3)
    array([[0.5, 0. ]])
    """

    max_iter: int = 200
    tol: float = 1e-4
    memory: int = 4

    def __post_init__(self) -> None:
        check_iteration(self.max_iter, self.tol)
        check_count("memory", self.memory, 0)

    def supports(self, kernel: Kernel) -> bool:
        """Return True for radial kernels."""
        return isinstance(kernel, RadialKernel)

    def find(
        self, subspace: Subspace, coordinates: Floats, starts: Floats | None = None
    ) -> Preimages:
        """Find a row for every point."""
        kernel = subspace.kernel
        if not isinstance(kernel, RadialKernel):
            raise invalid_parameter(
                "kernel",
                kernel,
                "the fixed-point method requires a radial kernel",
                "choose Gradient, MDS or NeighborMean",
            )
        std, memory = subspace.basis_std, self.memory if kernel.steps_are_gradients else 0
        settings = DescentSettings(
            self.tol * std, _MAX_STEP * std, self.max_iter, memory, scale=1.0
        )

        def descend_points(points: Points, starts: Floats) -> DescentResult:
            found = descend(_objective(kernel, points), starts, settings)
            np.multiply(np.exp(-found.objective), -2, out=found.objective)
            return found

        return search(subspace, coordinates, starts, descend_points)


def _objective(kernel: RadialKernel, points: Points) -> Evaluate:
    """Return a function for −ln ⟨P, Φ(z)⟩ and z less its weighted center."""
    basis, weights = points.subspace.basis, points.active_weights()

    def evaluate(Z: Floats, indices: NDArray[np.intp]) -> tuple[Floats, Floats]:
        values, centers = kernel.weighted_center(Z, basis, weights(indices))
        objective = np.full_like(values, np.inf)
        np.log(values, out=objective, where=values > 0)
        np.negative(objective, out=objective, where=values > 0)
        return objective, Z - centers

    return evaluate

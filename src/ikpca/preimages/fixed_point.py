"""Fixed-point iteration of Mika et al. (1999) for kernels of a distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import invalid_parameter
from ikpca.kernels import Floats, Kernel, RadialKernel
from ikpca.preimages.base import Points, Preimages, check_count, check_iteration, search
from ikpca.preimages.batched_lbfgs import (
    Curvature,
    DescentResult,
    DescentSettings,
    Evaluate,
    descend,
)
from ikpca.subspace import Expansion

#: Longest step, in spreads of the basis: a start may lie far away, an iterate may not run off.
_LONGEST = 10.0


@dataclass(frozen=True)
class FixedPoint:
    """z ← Σ_j G_ij k(z, x_j) x_j / Σ_j G_ij k(z, x_j), safeguarded and accelerated.

    The step is down the gradient of −ln ⟨P, Φ(z)⟩ and so, k(z, z) being constant, of the distance.
    Negative weights can make it too long; it is then halved. For the Laplacian kernel the weighted
    mean becomes a weighted median. Where ⟨P, Φ(z)⟩ is not positive the step makes no sense, and the
    iteration begins again from the basis row nearest to P in feature space.

    Parameters
    ----------
    max_iter : int
        Evaluations per sample.
    tol : float
        A sample rests when its next step is shorter than this share of the spread of the rows.
    memory : int
        Earlier steps from which the curvature is learned, which leads to the same fixed points
        several times sooner; 0 is the papers' own iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Gaussian
    >>> from ikpca.subspace import Expansion
    >>> from ikpca.preimages import FixedPoint
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> midway = Expansion(Gaussian(0.1), X, np.array([[0.5, 0.5, 0.0]]))
    >>> FixedPoint().find(midway, np.eye(1)).rows.round(3)
    array([[0.5, 0. ]])
    """

    max_iter: int = 200
    tol: float = 1e-4
    memory: int = 4

    def __post_init__(self) -> None:
        check_iteration(self.max_iter, self.tol)
        check_count("memory", self.memory, 0)

    def serves(self, kernel: Kernel) -> bool:
        """Kernels of a distance."""
        return isinstance(kernel, RadialKernel)

    def find(
        self, expansion: Expansion, coordinates: Floats, starts: Floats | None = None
    ) -> Preimages:
        """Find a row for every point."""
        kernel = expansion.kernel
        if not isinstance(kernel, RadialKernel):
            raise invalid_parameter(
                "kernel",
                kernel,
                "the fixed point is for kernels of a distance",
                "choose Gradient, Mds or NeighbourMean",
            )
        memory = self.memory if kernel.steps_are_gradients else 0

        def down(points: Points, starts: Floats) -> DescentResult:
            curvature = Curvature(starts.shape, starts.dtype, memory)
            found = descend(_objective(kernel, points), starts, curvature, self._steps(expansion))
            np.multiply(np.exp(-found.objective), -2, out=found.objective)
            return found

        return search(expansion, coordinates, starts, down)

    def _steps(self, expansion: Expansion) -> DescentSettings:
        spread = expansion.spread
        return DescentSettings(self.tol * spread, _LONGEST * spread, self.max_iter, scale=1.0)


def _objective(kernel: RadialKernel, points: Points) -> Evaluate:
    """−ln ⟨P, Φ(z)⟩, and the step away from the centre that the basis pulls to."""
    basis, weights = points.expansion.basis, points.moving_weights()

    def evaluate(Z: Floats, who: NDArray[np.intp]) -> tuple[Floats, Floats]:
        values, centres = kernel.weighted_centre(Z, basis, weights(who))
        objective = np.full_like(values, np.inf)
        np.log(values, out=objective, where=values > 0)
        np.negative(objective, out=objective, where=values > 0)
        return objective, Z - centres

    return evaluate

"""Gradient descent in input space (Burges 1996) for differentiable kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import invalid_parameter
from ikpca.kernels import DifferentiableKernel, Floats, Kernel
from ikpca.preimages.base import Points, Preimages, check_iteration, search
from ikpca.preimages.batched_lbfgs import (
    Curvature,
    DescentResult,
    DescentSettings,
    Evaluate,
    descend,
)
from ikpca.subspace import Expansion

#: First and longest step, in spreads of the basis; pairs of steps and gradients remembered.
_FIRST, _LONGEST, _MEMORY = 0.1, 2.0, 8
#: Share of the promised decrease that a step must bring.
_DECREASE = 1e-4
#: How far rounding may take a distance below zero, and how many roundings a slope may carry.
_BELOW, _ROUNDINGS = 1e-6, 8


@dataclass(frozen=True)
class Gradient:
    """Minimise k(z, z) − 2 Σ_j G_ij k(z, x_j) over z by limited-memory BFGS.

    Every sample has its own line search, so that its objective never rises. The cosine kernel
    knows no lengths: there the length of a pre-image is about that of its start.

    Parameters
    ----------
    max_iter : int
        Evaluations per sample.
    tol : float
        A sample rests when its next step is shorter than this share of the spread of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.subspace import Expansion
    >>> from ikpca.preimages import Gradient
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> midway = Expansion(Linear(), X, np.array([[0.0, 0.5, 0.5]]))
    >>> Gradient().find(midway, np.eye(1)).rows.round(6)
    array([[0.5, 0.5]])
    """

    max_iter: int = 300
    tol: float = 1e-7

    def __post_init__(self) -> None:
        check_iteration(self.max_iter, self.tol)

    def serves(self, kernel: Kernel) -> bool:
        """Kernels with a gradient."""
        return isinstance(kernel, DifferentiableKernel)

    def find(
        self, expansion: Expansion, coordinates: Floats, starts: Floats | None = None
    ) -> Preimages:
        """Find a row for every point."""
        kernel, spread = expansion.kernel, expansion.spread
        if not isinstance(kernel, DifferentiableKernel):
            raise invalid_parameter("kernel", kernel, "has no gradient", "choose NeighbourMean")
        steps = DescentSettings(
            self.tol * spread, _LONGEST * spread, self.max_iter, decrease=_DECREASE
        )

        def down(points: Points, starts: Floats) -> DescentResult:
            curvature = Curvature(starts.shape, starts.dtype, _MEMORY, _FIRST * spread)
            return descend(_objective(kernel, points), starts, curvature, steps)

        return search(expansion, coordinates, starts, down)


def _objective(kernel: DifferentiableKernel, points: Points) -> Evaluate:
    """The height, and its gradient."""
    basis, weights = points.expansion.basis, points.moving_weights()
    # Only a kernel that is no inner product can get below zero distance, and there it has no end.
    eps = float(np.finfo(basis.dtype).eps)
    lowest = points.floor - max(_BELOW, eps**0.5) * np.abs(points.floor)
    # A slope that over the whole spread changes the height by no more than rounding is none.
    rounding = _ROUNDINGS * eps / points.expansion.spread

    def evaluate(Z: Floats, who: NDArray[np.intp]) -> tuple[Floats, Floats]:
        values, gradients = kernel.weighted_gradient(Z, basis, weights(who))
        own = 0 if points.constant else kernel.diagonal(Z)
        heights = own - 2 * values
        slopes = kernel.diagonal_gradient(Z) - 2 * gradients
        slopes[np.linalg.norm(slopes, axis=1) <= rounding * np.abs(heights)] = 0
        heights[heights < lowest[who]] = np.inf
        return heights, slopes

    return evaluate

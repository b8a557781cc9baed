"""Descent on the distance in feature space (Burges 1996), for any kernel with a gradient."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ikpca.kernels import DifferentiableKernel, Floats, Kernel, RadialKernel
from ikpca.preimages.curvature import Curvature
from ikpca.preimages.descent import Rest, descend
from ikpca.preimages.expansion import Expansion
from ikpca.preimages.points import moving_weights
from ikpca.preimages.preimage import Preimages
from ikpca.preimages.search import search

__all__ = ["Gradient"]

#: First and longest step, in spreads of the basis; pairs of steps and gradients remembered.
_FIRST, _LONGEST, _MEMORY = 0.1, 2.0, 8


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
    >>> from ikpca.preimages import Expansion, Gradient
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> midway = Expansion(Linear(), X, np.array([[0.0, 0.5, 0.5]]))
    >>> Gradient().find(midway, np.eye(1)).rows.round(6)
    array([[0.5, 0.5]])
    """

    max_iter: int = 300
    tol: float = 1e-8

    def serves(self, kernel: Kernel) -> bool:
        """Kernels with a gradient."""
        return isinstance(kernel, DifferentiableKernel)

    def find(
        self, expansion: Expansion, coordinates: Floats, starts: Floats | None = None
    ) -> Preimages:
        """Find a row for every point."""
        return search(expansion, coordinates, starts, partial(self._descend, expansion))

    def _descend(self, expansion: Expansion, weights: Floats, starts: Floats) -> Rest:
        kernel, own_weights = expansion.kernel, moving_weights(weights)
        assert isinstance(kernel, DifferentiableKernel)
        # Beside a constant k(z, z) small inner products would drown in rounding.
        varies = not isinstance(kernel, RadialKernel)

        def evaluate(Z: Floats, who: np.ndarray) -> tuple[Floats, Floats]:
            values, gradients = kernel.weighted_gradient(Z, expansion.basis, own_weights(who))
            own = kernel.diagonal(Z) if varies else 0
            return own - 2 * values, kernel.diagonal_gradient(Z) - 2 * gradients

        return descend(
            evaluate,
            starts,
            Curvature(starts.shape, _FIRST * expansion.spread, _MEMORY, starts.dtype),
            shortest=self.tol * expansion.spread,
            longest=_LONGEST * expansion.spread,
            max_iter=self.max_iter,
        )

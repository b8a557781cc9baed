"""The fixed point of Mika et al. (1999), for kernels of a distance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ikpca.kernels import Floats, Kernel, RadialKernel
from ikpca.preimages.descent import Rest, descend
from ikpca.preimages.expansion import Expansion
from ikpca.preimages.points import moving_weights
from ikpca.preimages.preimage import Preimages
from ikpca.preimages.search import search

__all__ = ["FixedPoint"]

#: Longest step, in spreads of the basis: a start may lie far away, an iterate may not run off.
_LONGEST = 10.0


@dataclass(frozen=True)
class FixedPoint:
    """z ← Σ_j G_ij k(z, x_j) x_j / Σ_j G_ij k(z, x_j), safeguarded.

    The step goes uphill on ⟨P, Φ(z)⟩, which for kernels with constant k(z, z) is downhill on the
    distance; negative weights can make it too long, and it is then halved. For the Laplacian
    kernel the weighted mean becomes a weighted median.

    Parameters
    ----------
    max_iter : int
        Evaluations per sample.
    tol : float
        A sample rests when its next step is shorter than this share of the spread of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Gaussian
    >>> from ikpca.preimages import Expansion, FixedPoint
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> midway = Expansion(Gaussian(0.1), X, np.array([[0.5, 0.5, 0.0]]))
    >>> FixedPoint().find(midway, np.eye(1)).rows.round(3)
    array([[0.5, 0. ]])
    """

    max_iter: int = 200
    tol: float = 1e-5

    def serves(self, kernel: Kernel) -> bool:
        """Kernels of a distance."""
        return isinstance(kernel, RadialKernel)

    def find(
        self, expansion: Expansion, coordinates: Floats, starts: Floats | None = None
    ) -> Preimages:
        """Find a row for every point."""
        return search(expansion, coordinates, starts, partial(self._descend, expansion))

    def _descend(self, expansion: Expansion, weights: Floats, starts: Floats) -> Rest:
        kernel, own_weights = expansion.kernel, moving_weights(weights)
        assert isinstance(kernel, RadialKernel)

        def evaluate(Z: Floats, who: np.ndarray) -> tuple[Floats, Floats]:
            values, centres = kernel.weighted_centre(Z, expansion.basis, own_weights(who))
            return np.where(values > 0, -2 * values, np.inf), Z - centres

        return descend(
            evaluate,
            starts,
            None,
            shortest=self.tol * expansion.spread,
            longest=_LONGEST * expansion.spread,
            max_iter=self.max_iter,
        )

"""The cosine of the angle between two rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ikpca.kernels.inner_products import inner_products, squared_norms
from ikpca.kernels.kernel import Floats, Rows

__all__ = ["Cosine"]


@dataclass(frozen=True)
class Cosine:
    """k(x, y) = ⟨x, y⟩ / (‖x‖ ‖y‖), zero where a row is zero.

    See Also
    --------
    sklearn.metrics.pairwise.cosine_similarity : The whole matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Cosine
    >>> tile = np.empty((1, 2))
    >>> Cosine().fill(np.array([[2.0, 0.0]]), np.array([[3.0, 0.0], [0.0, 1.0]]), tile)
    >>> tile
    array([[1., 0.]])
    """

    takes_sparse = True

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write the tile."""
        inner_products(X, Y, out)
        out /= _norms(X)[:, None]
        out /= _norms(Y)[None, :]

    def diagonal(self, X: Rows) -> Floats:
        """Return one, and zero for zero rows."""
        return (squared_norms(X) > 0).astype(X.dtype)

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Norms only."""
        return (n_x + n_y) * itemsize

    def weighted_gradient(self, Z: Floats, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """With unit vectors ẑ and x̂: ∇⟨ẑ, x̂⟩ = (x̂ − ⟨ẑ, x̂⟩ẑ)/‖z‖, at right angles to z."""
        norms = _norms(Z)[:, None]
        units = Z / norms
        pulls = (weights / _norms(X)) @ X
        values = np.einsum("ij,ij->i", units, pulls)
        return values, (pulls - values[:, None] * units) / norms

    def diagonal_gradient(self, Z: Floats) -> Floats:
        """Zero: k(z, z) = 1."""
        return np.zeros_like(Z)


def _norms(X: Rows) -> Floats:
    """‖x_i‖, with 1 in place of 0 so that a zero row gives zeros, as in scikit-learn."""
    norms: Floats = np.sqrt(squared_norms(X))
    norms[norms == 0] = 1
    return norms

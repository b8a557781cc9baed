"""Vectors of feature space as combinations of images of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ikpca.gram import cross_gram, tiles
from ikpca.kernels import Floats, Kernel

__all__ = ["Expansion"]

#: Kernel values, and as many weights, held at a time: 16 MB each in double precision.
_STRIP_ENTRIES = 2_000_000


@dataclass(frozen=True, eq=False)
class Expansion:
    """Vectors u_r = Σ_j B_rj Φ(x_j), and points P = Σ_r c_r u_r in their span.

    Components of kernel PCA and their mean are such vectors, and so are those of any model that a
    reduced set is wanted for. Points are given by their coordinates c; those of the vectors
    themselves are the rows of the identity.

    Parameters
    ----------
    kernel : Kernel
    basis : ndarray of shape (m, N)
        The rows x_j.
    coefficients : ndarray of shape (q, m)
        B, uncentred.
    known_products : ndarray of shape (q, m), optional
        ⟨u_r, Φ(x_j)⟩, where it is known; otherwise it takes all kernel values of the basis.
    known_gram : ndarray of shape (q, q), optional
        ⟨u_r, u_s⟩, likewise.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.preimages import Expansion
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0]])
    >>> mean = Expansion(Linear(), X, np.array([[0.5, 0.5]]))
    >>> mean.squared_distances(np.array([[1.0]]), np.array([[1.0, 3.0]]))
    array([9.])
    """

    kernel: Kernel
    basis: Floats
    coefficients: Floats
    known_products: Floats | None = None
    known_gram: Floats | None = None

    @cached_property
    def products(self) -> Floats:
        """⟨u_r, Φ(x_j)⟩."""
        if self.known_products is not None:
            return self.known_products
        parts = [
            self.coefficients @ cross_gram(self.kernel, self.basis, self.basis[columns])
            for columns in tiles(len(self.basis))
        ]
        return np.hstack(parts)

    @cached_property
    def gram(self) -> Floats:
        """⟨u_r, u_s⟩."""
        if self.known_gram is not None:
            return self.known_gram
        return self.products @ self.coefficients.T

    @cached_property
    def diagonal(self) -> Floats:
        """k(x_j, x_j)."""
        return self.kernel.diagonal(self.basis)

    @cached_property
    def spread(self) -> float:
        """Root of the mean squared distance of the rows from their mean: the scale of a step."""
        spread = float(np.sqrt(self.basis.var(axis=0, dtype=np.float64).sum()))
        return spread or 1.0

    def weights(self, coordinates: Floats) -> Floats:
        """G with P_i = Σ_j G_ij Φ(x_j)."""
        return coordinates @ self.coefficients

    def squared_lengths(self, coordinates: Floats) -> Floats:
        """‖P_i‖²."""
        return np.einsum("ir,rs,is->i", coordinates, self.gram, coordinates, optimize=True)

    def strips(self, number: int) -> Iterator[slice]:
        """Points in strips, so that their weights stay within bounds."""
        return tiles(number, max(1, _STRIP_ENTRIES // len(self.basis)))

    def nearest_rows(self, coordinates: Floats, number: int) -> NDArray[np.intp]:
        """Indices of the basis rows whose images are nearest to each point, nearest first."""
        distances = coordinates @ (-2 * self.products)
        distances += self.diagonal
        if number == 1:
            return distances.argmin(axis=1)[:, None]
        near = np.argpartition(distances, number - 1, axis=1)[:, :number]
        order = np.argsort(np.take_along_axis(distances, near, axis=1), axis=1, kind="stable")
        return np.take_along_axis(near, order, axis=1)

    def squared_distances(self, coordinates: Floats, Z: Floats) -> Floats:
        """‖P_i − Φ(z_i)‖²."""
        parts = []
        for strip in self.strips(len(Z)):
            values = cross_gram(self.kernel, Z[strip], self.basis)
            parts.append(np.einsum("ij,ij->i", values, self.weights(coordinates[strip])))
        return self.from_products(coordinates, np.concatenate(parts), self.kernel.diagonal(Z))

    def from_products(self, coordinates: Floats, products: Floats, own: Floats) -> Floats:
        """‖P_i − Φ(z_i)‖² from ⟨P_i, Φ(z_i)⟩ and k(z_i, z_i); rounding may not make it negative."""
        return np.maximum(self.squared_lengths(coordinates) - 2 * products + own, 0)

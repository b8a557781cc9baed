"""A strip of points of feature space, with what searching for their pre-images takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ikpca.kernels import Floats, RadialKernel
from ikpca.preimages.expansion import Expansion

__all__ = ["Points"]


class Points:
    """Points P_i = Σ_j G_ij Φ(x_j), and the basis row whose image is nearest to each.

    Heights are ‖P − Φ(z)‖² less ‖P‖², and less k(z, z) where that is the same for all z: beside
    it, small inner products would drown in rounding.
    """

    def __init__(self, expansion: Expansion, coordinates: Floats) -> None:
        self.expansion = expansion
        self.coordinates = coordinates
        self.constant = 1.0 if isinstance(expansion.kernel, RadialKernel) else 0.0

    @cached_property
    def weights(self) -> Floats:
        """G."""
        return self.expansion.weights(self.coordinates)

    @cached_property
    def floor(self) -> Floats:
        """The height of an exact pre-image."""
        return -self.expansion.squared_lengths(self.coordinates) - self.constant

    @cached_property
    def nearest(self) -> NDArray[np.intp]:
        """Indices of the nearest basis rows."""
        return self.expansion.nearest_rows(self.coordinates, 1)[:, 0]

    @property
    def nearest_rows(self) -> Floats:
        """The rows themselves."""
        return self.expansion.basis[self.nearest]

    @cached_property
    def nearest_heights(self) -> Floats:
        """How high the nearest rows are."""
        across = self.expansion.products[:, self.nearest]
        products = np.einsum("iq,qi->i", self.coordinates, across)
        return self.expansion.diagonal[self.nearest] - self.constant - 2 * products

    def squared_distances(self, heights: Floats) -> Floats:
        """‖P − Φ(z)‖²; rounding, or a kernel that is no inner product, may not make it negative."""
        return np.maximum(heights - self.floor, 0)

    def part(self, who: NDArray[np.intp]) -> Points:
        """Some of the points."""
        return Points(self.expansion, self.coordinates[who])

    def moving_weights(self) -> Callable[[NDArray[np.intp]], Floats]:
        """Rows of G by index, copied only when there are fewer than the last time."""
        last = self.weights

        def of(who: NDArray[np.intp]) -> Floats:
            nonlocal last
            if len(who) < len(last):
                last = self.weights[who]
            return last

        return of

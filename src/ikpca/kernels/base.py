"""Kernel protocol and array types."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.floating[Any]]
Indices: TypeAlias = NDArray[np.intp]
#: Dense rows, or a scipy CSR matrix or array of rows (its type is Any to the checker).
Rows: TypeAlias = Any


@runtime_checkable
class Kernel(Protocol):
    """A kernel fills the tile it is given and never keeps it.

    Examples
    --------
    >>> from ikpca.kernels import Gaussian, Kernel
    >>> isinstance(Gaussian(), Kernel)
    True
    """

    @property
    def takes_sparse(self) -> bool:
        """Whether rows may come as CSR."""

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write k(x_i, y_j) into ``out[i, j]``."""

    def diagonal(self, X: Rows) -> Floats:
        """Return k(x_i, x_i) for every row."""

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Bytes that ``fill`` allocates beside ``out``, at most, for dense rows."""


@runtime_checkable
class DifferentiableKernel(Kernel, Protocol):
    """A kernel with a gradient, in the sums that pre-images need; rows are dense.

    Examples
    --------
    >>> from ikpca.kernels import DifferentiableKernel, Laplacian, vectorized
    >>> [isinstance(kernel, DifferentiableKernel) for kernel in (Laplacian(), vectorised(min))]
    [True, False]
    """

    def weighted_gradient(self, Z: Floats, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Σ_j G_ij k(z_i, x_j) for every row of Z, and its gradient with respect to z_i."""

    def diagonal_gradient(self, Z: Floats) -> Floats:
        """The gradient of k(z, z) for every row of Z."""


@runtime_checkable
class RadialKernel(Kernel, Protocol):
    """A kernel that falls with a distance from k(z, z) = 1; rows are dense.

    Examples
    --------
    >>> from ikpca.kernels import Gaussian, Polynomial, RadialKernel
    >>> isinstance(Gaussian(), RadialKernel), isinstance(Polynomial(), RadialKernel)
    (True, False)
    """

    @property
    def steps_are_gradients(self) -> bool:
        """Whether z − centre is the gradient of −ln Σ_j G_ij k(z, x_j), up to a constant factor."""

    def weighted_centre(self, Z: Floats, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Σ_j G_ij k(z_i, x_j), and the point that the rows x_j pull z_i to.

        That point is the centre of the rows under the weights G_ij k(z_i, x_j), in the sense of
        the kernel's distance. Where the sum is not positive there is none, and z_i stays.
        """


@runtime_checkable
class DistanceKernel(Kernel, Protocol):
    """A kernel that gives away Euclidean distances in input space.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Gaussian, DistanceKernel
    >>> isinstance(Gaussian(), MeasuringKernel)
    True
    >>> Gaussian(2.0).input_distances(np.exp([[-2.0, -8.0]]), np.zeros((1, 2)))
    array([[1., 4.]])
    """

    def input_distances(self, values: Floats, squared_norms: Floats) -> Floats:
        """‖z_i − x_ij‖² from k(z_i, x_ij) and ‖x_ij‖², up to a number that z_i alone decides.

        Both come as (n, k), for k rows that may differ from one z to the next. Values need not be
        possible ones: they are what is left of them in a projection.
        """

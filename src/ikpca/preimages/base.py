"""Pre-image protocol, and points of feature space."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from ikpca.errors import Number, invalid_parameter
from ikpca.kernels import Floats, Indices, Kernel, RadialKernel
from ikpca.subspace import Subspace

#: Rule of options that are counts.
COUNT_RULE = Number("must be an integer of at least 1", "pass 5", low=1, integer=True)
#: Random parts of the features, each of which is masked in turn.
_N_PARTS = 8


class Preimages(NamedTuple):
    """Rows whose images are near points of feature space.

    Parameters
    ----------
    rows : ndarray of shape (n, N)
    squared_distances : ndarray of shape (n,)
        ‖P − Φ(z)‖² for every point P and its row z.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.preimages import Preimages
    >>> rows, squared_distances = Preimages(np.zeros((2, 3)), np.array([0.1, 0.2]))
    >>> rows.shape
    (2, 3)
    """

    rows: Floats
    squared_distances: Floats


@runtime_checkable
class PreimageMethod(Protocol):
    """Method that finds rows z with Φ(z) near given points of feature space, all points at once.

    The weights of all points are in memory; estimators pass strips of points.

    Examples
    --------
    >>> from ikpca.kernels import Gaussian, Polynomial
    >>> from ikpca.preimages import FixedPoint, PreimageMethod
    >>> isinstance(FixedPoint(), PreimageMethod)
    True
    >>> FixedPoint().supports(Gaussian()), FixedPoint().supports(Polynomial())
    (True, False)
    """

    def supports(self, kernel: Kernel) -> bool:
        """Return True if the method works with the kernel."""

    def find(
        self, subspace: Subspace, coordinates: Floats, starts: Floats | None = None
    ) -> Preimages:
        """Find a row for every point.

        Parameters
        ----------
        subspace : Subspace
            The vectors u_r.
        coordinates : ndarray of shape (n, q)
            Coefficients c of the points P_i = Σ_r c_ir u_r.
        starts : ndarray of shape (n, N), optional
            Initial rows; methods that do not iterate ignore them.

        Returns
        -------
        Preimages
        """


def check_supported(method: PreimageMethod, kernel: Kernel) -> None:
    """Raise an error if a method does not work with a kernel."""
    if not method.supports(kernel):
        raise invalid_parameter(
            "kernel",
            kernel,
            f"is not supported by {type(method).__name__}",
            "choose another method, such as NeighborMean",
        )


class Points:
    """Points P_i = Σ_j G_ij Φ(x_j), and the basis row whose image is nearest to each.

    The objective is ‖P − Φ(z)‖² less ‖P‖², and less k(z, z) if that is the same for all z: small
    inner products would be lost in its rounding error.
    """

    def __init__(self, subspace: Subspace, coordinates: Floats) -> None:
        self.subspace = subspace
        self.coordinates = coordinates
        self.constant = 1.0 if isinstance(subspace.kernel, RadialKernel) else 0.0

    @cached_property
    def min_objective(self) -> Floats:
        """Objective of an exact pre-image."""
        return -self.subspace.squared_norms(self.coordinates) - self.constant

    @cached_property
    def nearest(self) -> Indices:
        """Indices of the nearest basis rows."""
        return self.subspace.nearest_rows(self.coordinates, 1)[:, 0]

    @property
    def nearest_rows(self) -> Floats:
        """Nearest basis rows."""
        return self.subspace.basis[self.nearest]

    @cached_property
    def nearest_objective(self) -> Floats:
        """Objective of the nearest basis rows."""
        row_products = self.subspace.products[:, self.nearest]
        products = np.einsum("iq,qi->i", self.coordinates, row_products)
        return self.subspace.diagonal[self.nearest] - self.constant - 2 * products

    def squared_distances(self, objective: Floats) -> Floats:
        """Return ‖P − Φ(z)‖², clipped at 0 against rounding errors and indefinite kernels."""
        return np.maximum(objective - self.min_objective, 0)

    def active_weights(self) -> Callable[[Indices], Floats]:
        """Return a function that selects rows of G, for index sets that only shrink.

        Rows are copied only when their number has changed.
        """
        weights = last = self.subspace.weights(self.coordinates)

        def select(indices: Indices) -> Floats:
            nonlocal last
            if len(indices) < len(last):
                last = weights[indices]
            return last

        return select


def masked_error(reconstruct: Callable[[Floats], Floats], X: Floats, means: Floats) -> float:
    """Return the mean squared error of features that were masked for the reconstruction.

    Each eighth of the features is masked in turn. The masked values are replaced by their training
    means, then by a first reconstruction; a second reconstruction is compared with the true values.

    Noise that is independent between features cannot be predicted from the other features and adds
    the same to the error of every model, so that the smallest error belongs to the model with the
    best estimate of the signal (Batson, Royer 2019). The error of unmasked features would be
    smallest for a model that copies its input, including the noise.
    """
    parts = np.random.default_rng(0).permutation(X.shape[1]) % _N_PARTS
    total = 0.0
    for part in np.unique(parts):
        masked = parts == part
        filled = X.copy()
        filled[:, masked] = means[masked]
        filled[:, masked] = reconstruct(filled)[:, masked]
        error = reconstruct(filled)[:, masked] - X[:, masked]
        total += float(np.sum(np.square(error, dtype=np.float64)))
    return total / X.size

"""Base class and result of pre-image methods, and the error of masked features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ikpca.errors import Number, invalid_parameter
from ikpca.kernels import Floats, Kernel
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


class PreimageMethod(ABC):
    """Method that finds rows z with Φ(z) near given points of feature space, all points at once.

    The weights of all points are in memory; estimators pass strips of points. Subclasses define
    ``supports`` and ``_find``.

    Examples
    --------
    >>> from ikpca.kernels import Gaussian, Polynomial
    >>> from ikpca.preimages import FixedPoint, PreimageMethod
    >>> isinstance(FixedPoint(), PreimageMethod)
    True
    >>> FixedPoint().supports(Gaussian()), FixedPoint().supports(Polynomial())
    (True, False)
    """

    @abstractmethod
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
        if not self.supports(subspace.kernel):
            raise invalid_parameter(
                "kernel",
                subspace.kernel,
                f"is not supported by {type(self).__name__}",
                "choose another method, such as NeighborMean",
            )
        return self._find(subspace, coordinates, starts)

    @abstractmethod
    def _find(self, subspace: Subspace, coordinates: Floats, starts: Floats | None) -> Preimages:
        """Find a row for every point, with a kernel that is supported."""


def nearest_images(subspace: Subspace, coordinates: Floats) -> tuple[Floats, Floats]:
    """Return the basis row whose image is nearest to each point P, and ⟨P, Φ(x)⟩."""
    nearest = subspace.nearest_rows(coordinates, 1)[:, 0]
    products = np.einsum("iq,qi->i", coordinates, subspace.products[:, nearest])
    return subspace.basis[nearest], products


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

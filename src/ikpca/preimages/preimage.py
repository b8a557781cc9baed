"""The port: what a pre-image method must offer, and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ikpca.kernels import Floats, Kernel
from ikpca.preimages.expansion import Expansion

__all__ = ["PreimageMethod", "Preimages"]


@dataclass(frozen=True, eq=False)
class Preimages:
    """Rows whose images are near points of feature space.

    Parameters
    ----------
    rows : ndarray of shape (n, N)
    squared_distances : ndarray of shape (n,)
        ‖P − Φ(z)‖² for every point P and its row z.
    iterations : ndarray of shape (n,)
        Evaluations that each row took; 0 for methods without iterations.
    converged : ndarray of bool of shape (n,)
        Whether the iteration came to rest before its limit.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.preimages import Preimages
    >>> Preimages.direct(np.zeros((2, 3)), np.array([0.1, 0.2])).rows.shape
    (2, 3)
    """

    rows: Floats
    squared_distances: Floats
    iterations: NDArray[np.intp]
    converged: NDArray[np.bool_]

    @classmethod
    def direct(cls, rows: Floats, squared_distances: Floats) -> Preimages:
        """From a method that does not iterate."""
        number = len(rows)
        return cls(rows, squared_distances, np.zeros(number, np.intp), np.ones(number, bool))

    @classmethod
    def joined(cls, parts: Sequence[Preimages]) -> Preimages:
        """Strips of points, one after the other."""

        def together(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(part, name) for part in parts])

        return cls(*map(together, ("rows", "squared_distances", "iterations", "converged")))


@runtime_checkable
class PreimageMethod(Protocol):
    """Finds rows z with Φ(z) near given points of feature space, all points at once.

    Examples
    --------
    >>> from ikpca.kernels import Gaussian, Polynomial
    >>> from ikpca.preimages import FixedPoint, PreimageMethod
    >>> isinstance(FixedPoint(), PreimageMethod)
    True
    >>> FixedPoint().serves(Gaussian()), FixedPoint().serves(Polynomial())
    (True, False)
    """

    def serves(self, kernel: Kernel) -> bool:
        """Whether the kernel has what the method needs."""

    def find(
        self, expansion: Expansion, coordinates: Floats, starts: Floats | None = None
    ) -> Preimages:
        """Find a row for every point.

        Parameters
        ----------
        expansion : Expansion
            The vectors u that points are combinations of.
        coordinates : ndarray of shape (n, q)
            P_i = Σ_r c_ir u_r.
        starts : ndarray of shape (n, N), optional
            Where to begin; methods that do not iterate ignore it.
        """

"""Pre-image protocol, search and validation shared by the methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import invalid_parameter
from ikpca.kernels import Floats, Kernel, RadialKernel
from ikpca.preimages.batched_lbfgs import DescentResult
from ikpca.subspace import Expansion


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


def check_count(name: str, value: Any, low: int) -> None:
    """Refuse what is no integer from ``low`` up."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < low:
        raise invalid_parameter(
            name, value, f"must be an integer of at least {low}", f"pass {max(low, 5)}"
        )


def check_iteration(max_iter: Any, tol: Any) -> None:
    """Refuse a limit or a tolerance with which no iteration could run."""
    check_count("max_iter", max_iter, 1)
    number = isinstance(tol, Real) and not isinstance(tol, bool | np.bool_)
    if not number or not 0 <= float(tol) < np.inf:
        raise invalid_parameter("tol", tol, "must be a number that is not negative", "pass 1e-5")


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


#: Descends from starts (n, N); the objective it returns is the height.
Descend: TypeAlias = Callable[[Points, Floats], DescentResult]


def search(
    expansion: Expansion, coordinates: Floats, starts: Floats | None, descend: Descend
) -> Preimages:
    """Descend from the starts, a strip of points at a time.

    Where that ends higher than the nearest basis row, or nowhere, it is repeated from that row,
    which is also where points without a start begin. A point with no way on even from there (such
    as one at right angles to all basis rows) gets the row itself.
    """
    parts = []
    for strip in expansion.strips(len(coordinates)):
        points = Points(expansion, coordinates[strip])
        parts.append(_search(points, None if starts is None else starts[strip], descend))
    return Preimages.joined(parts)


def _search(points: Points, starts: Floats | None, descend: Descend) -> Preimages:
    rows, heights = points.nearest_rows, points.nearest_heights
    found = descend(points, rows if starts is None else starts)
    if starts is not None:
        worse = np.flatnonzero(~(found.objective <= heights))
        if len(worse):
            _replace(found, worse, descend(points.part(worse), rows[worse]))
    stuck = np.flatnonzero(~np.isfinite(found.objective))
    found.rows[stuck], found.objective[stuck] = rows[stuck], heights[stuck]
    distances = points.squared_distances(found.objective)
    return Preimages(found.rows, distances, found.iterations, found.converged)


def _replace(found: DescentResult, who: NDArray[np.intp], other: DescentResult) -> None:
    """Take the other results where they are lower; the work of both counts."""
    found.iterations[who] += other.iterations
    lower = ~(found.objective[who] <= other.objective)
    who = who[lower]
    found.rows[who], found.objective[who] = other.rows[lower], other.objective[lower]
    found.converged[who] = other.converged[lower]


#: Parts that features are drawn into, each hidden in turn.
_PARTS = 8


def masked_error(reconstruct: Callable[[Floats], Floats], X: Floats, means: Floats) -> float:
    """Mean squared error of features that the reconstruction did not see.

    Each eighth of the features in turn is hidden. Its training mean stands in for it, then what a
    first reconstruction puts there; what the second puts there is compared with the truth.

    Noise that is independent between features cannot be foreseen from the others; it adds the same
    to the error of every model, and so the least error belongs to the model that knows most of
    what is beneath the noise (Batson, Royer 2019). Reconstructing a row that was seen whole proves
    nothing: the model that copies it, noise and all, would win.

    Parameters
    ----------
    reconstruct : callable
        Takes and returns rows of shape (n, N).
    X : ndarray of shape (n, N)
    means : ndarray of shape (N,)
        What stands in for hidden features at first.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.preimages import masked_error
    >>> X = np.repeat(np.arange(4.0), 8).reshape(4, 8)
    >>> masked_error(lambda rows: np.repeat(np.median(rows, axis=1), 8).reshape(4, 8), X, X.mean(0))
    0.0
    """
    parts = np.random.default_rng(0).permutation(X.shape[1]) % _PARTS
    total = 0.0
    for part in np.unique(parts):
        hidden = parts == part
        seen = X.copy()
        seen[:, hidden] = means[hidden]
        seen[:, hidden] = reconstruct(seen)[:, hidden]
        error = reconstruct(seen)[:, hidden] - X[:, hidden]
        total += float(np.sum(np.square(error, dtype=np.float64)))
    return total / X.size

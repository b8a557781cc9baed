"""Distance-based pre-images (Kwok, Tsang 2004)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ikpca.errors import invalid_parameter
from ikpca.gram import tile_slices
from ikpca.kernels import DistanceKernel, Floats, Kernel
from ikpca.preimages.base import Points, Preimages, check_count
from ikpca.subspace import Expansion

#: Neighbours times features held at a time.
_BATCH_ENTRIES = 1_000_000


@dataclass(frozen=True)
class MDS:
    """The place among neighbours that has the right distances to them.

    Feature space knows ⟨P, Φ(x)⟩ for the rows x whose images are nearest to P; the kernel turns
    these into distances in input space, and the pre-image is the point of the neighbours' affine
    hull that has them (in the least-squares sense). A distance that all neighbours share drops
    out, and with it the length that P lost in the projection.

    Distances that contradict each other can throw a pre-image far off where the neighbours lie
    nearly in a plane. One whose image is farther from P than that of the nearest basis row is
    therefore replaced by this row.

    Parameters
    ----------
    n_neighbours : int
        All of the basis where it has fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.subspace import Expansion
    >>> from ikpca.preimages import MDS
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> midway = Expansion(Linear(), X, np.array([[0.0, 0.5, 0.5]]))
    >>> Mds(3).find(midway, np.eye(1)).rows.round(6)
    array([[0.5, 0.5]])
    """

    n_neighbours: int = 10

    def __post_init__(self) -> None:
        check_count("n_neighbours", self.n_neighbours, 1)

    def serves(self, kernel: Kernel) -> bool:
        """Kernels that give distances away."""
        return isinstance(kernel, DistanceKernel)

    def find(
        self, expansion: Expansion, coordinates: Floats, starts: Floats | None = None
    ) -> Preimages:
        """Place every point among its neighbours."""
        kernel = expansion.kernel
        if not isinstance(kernel, DistanceKernel):
            raise invalid_parameter(
                "kernel",
                kernel,
                "does not give away distances in input space",
                "choose Gradient or NeighbourMean",
            )
        parts = [
            self._strip(kernel, Points(expansion, coordinates[strip]))
            for strip in expansion.strips(len(coordinates))
        ]
        return Preimages.joined(parts)

    def _strip(self, kernel: DistanceKernel, points: Points) -> Preimages:
        expansion, coordinates = points.expansion, points.coordinates
        number = min(self.n_neighbours, len(expansion.basis))
        near = expansion.nearest_rows(coordinates, number)
        values = np.take_along_axis(coordinates @ expansion.products, near, axis=1)
        size = max(1, _BATCH_ENTRIES // (number * expansion.basis.shape[1]))
        parts = [
            _placed(kernel, expansion.basis[near[batch]], values[batch])
            for batch in tile_slices(len(near), size)
        ]
        return _guarded(points, np.concatenate(parts))


def _placed(kernel: DistanceKernel, neighbours: Floats, values: Floats) -> Floats:
    """Least squares in coordinates along the neighbours' singular vectors.

    With neighbours UΣVᵀ about their mean, ‖z − x‖² − ‖x‖² = −2⟨z, x⟩ + constant gives
    z = mean − ½ V Σ⁻¹ Uᵀ (d² − d0²): U has zero column sums, so that constants drop out.
    """
    means = neighbours.mean(axis=1)
    about = neighbours - means[:, None, :]
    U, S, V = np.linalg.svd(about, full_matrices=False)
    own = np.einsum("nkd,nkd->nk", about, about)
    norms = np.einsum("nkd,nkd->nk", neighbours, neighbours)
    excess = kernel.input_distances(values, norms) - own
    # Distances are squares: of a direction whose square is no number, they know nothing.
    limits = np.finfo(S.dtype)
    there = (100 * limits.eps * S[:, :1] < S) & (np.sqrt(limits.tiny) <= S)
    inverses = np.divide(1, S, out=np.zeros_like(S), where=there)
    along = -0.5 * np.einsum("nkq,nk->nq", U, excess) * inverses
    return means + np.einsum("nq,nqd->nd", along, V)


def _guarded(points: Points, rows: Floats) -> Preimages:
    expansion, coordinates = points.expansion, points.coordinates
    distances = expansion.squared_distances(coordinates, rows)
    limits = points.squared_distances(points.nearest_heights)
    # Not "greater": what overflowed is no number, and worse than any.
    worse = np.flatnonzero(~(distances <= limits))
    rows[worse], distances[worse] = points.nearest_rows[worse], limits[worse]
    return Preimages.direct(rows, distances)

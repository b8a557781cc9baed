"""Distance-based pre-images (Kwok, Tsang 2004)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ikpca.errors import invalid_parameter
from ikpca.gram import tile_slices
from ikpca.kernels import DistanceKernel, Floats, Kernel
from ikpca.preimages.base import Points, Preimages, check_count
from ikpca.subspace import Subspace

#: Entries (neighbors times features) in memory at a time.
_BATCH_ENTRIES = 1_000_000


@dataclass(frozen=True)
class MDS:
    """Multidimensional scaling: the row with given distances to its nearest neighbors.

    For the rows x whose images are nearest to P, the kernel converts ⟨P, Φ(x)⟩ to distances in
    input space, and the pre-image is the point of the neighbors' affine hull that has these
    distances (in the least-squares sense). A constant added to all squared distances has no
    effect, and neither has the norm that P lost in the projection.

    Inconsistent distances can give a distant pre-image if the neighbors lie nearly in a plane. A
    pre-image whose image is farther from P than that of the nearest basis row is therefore
    replaced by that row.

    Parameters
    ----------
    n_neighbours : int
        Number of neighbors; at most all rows of the basis.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.subspace import Subspace
    >>> from ikpca.preimages import MDS
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> midway = Subspace(Linear(), X, np.array([[0.0, 0.5, 0.5]]))
    >>> MDS(3).find(midway, np.eye(1)).rows.round(6)
    array([[0.5, 0.5]])
    """

    n_neighbours: int = 10

    def __post_init__(self) -> None:
        check_count("n_neighbours", self.n_neighbours, 1)

    def supports(self, kernel: Kernel) -> bool:
        """Return True for kernels whose values determine distances in input space."""
        return isinstance(kernel, DistanceKernel)

    def find(
        self, subspace: Subspace, coordinates: Floats, starts: Floats | None = None
    ) -> Preimages:
        """Find a row for every point from its distances to neighbors."""
        kernel = subspace.kernel
        if not isinstance(kernel, DistanceKernel):
            raise invalid_parameter(
                "kernel",
                kernel,
                "does not determine distances in input space",
                "choose Gradient or NeighborMean",
            )
        parts = [
            self._find_strip(kernel, Points(subspace, coordinates[strip]))
            for strip in subspace.strips(len(coordinates))
        ]
        return Preimages.concatenate(parts)

    def _find_strip(self, kernel: DistanceKernel, points: Points) -> Preimages:
        subspace, coordinates = points.subspace, points.coordinates
        n_neighbors = min(self.n_neighbours, len(subspace.basis))
        nearest = subspace.nearest_rows(coordinates, n_neighbors)
        values = np.take_along_axis(coordinates @ subspace.products, nearest, axis=1)
        size = max(1, _BATCH_ENTRIES // (n_neighbors * subspace.basis.shape[1]))
        parts = [
            _rows_from_distances(kernel, subspace.basis[nearest[batch]], values[batch])
            for batch in tile_slices(len(nearest), size)
        ]
        return _replace_worse(points, np.concatenate(parts))


def _rows_from_distances(kernel: DistanceKernel, neighbors: Floats, values: Floats) -> Floats:
    """Solve the least-squares problem in coordinates along the neighbors' singular vectors.

    With neighbors UΣVᵀ about their mean, ‖z − x‖² − ‖x‖² = −2⟨z, x⟩ + constant gives
    z = mean − ½ V Σ⁻¹ Uᵀ (d² − d0²): U has zero column sums, so that constants have no effect.
    """
    means = neighbors.mean(axis=1)
    centered = neighbors - means[:, None, :]
    U, S, V = np.linalg.svd(centered, full_matrices=False)
    mean_distances = np.einsum("nkd,nkd->nk", centered, centered)
    norms = np.einsum("nkd,nkd->nk", neighbors, neighbors)
    excess = kernel.input_distances(values, norms) - mean_distances
    # Distances are squares: they do not determine directions whose squares underflow.
    limits = np.finfo(S.dtype)
    determined = (100 * limits.eps * S[:, :1] < S) & (np.sqrt(limits.tiny) <= S)
    inverses = np.divide(1, S, out=np.zeros_like(S), where=determined)
    along = -0.5 * np.einsum("nkq,nk->nq", U, excess) * inverses
    return means + np.einsum("nq,nqd->nd", along, V)


def _replace_worse(points: Points, rows: Floats) -> Preimages:
    """Replace rows that are worse than the nearest basis row by that row."""
    subspace, coordinates = points.subspace, points.coordinates
    distances = subspace.squared_distances(coordinates, rows)
    limits = points.squared_distances(points.nearest_objective)
    # The negation also selects NaN, the result of an overflow.
    worse = np.flatnonzero(~(distances <= limits))
    rows[worse], distances[worse] = points.nearest_rows[worse], limits[worse]
    return Preimages.direct(rows, distances)

"""Pre-images without iterations: scaling, means of neighbors, and ridge regression."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ikpca.errors import check_parameters, invalid_parameter
from ikpca.gram import ComputedGram, cross_gram, full_matrix, tile_slices
from ikpca.gram.resources import Workers
from ikpca.gram.sources import TILE
from ikpca.kernels import DistanceKernel, Floats, Kernel
from ikpca.preimages.base import COUNT_RULE, PreimageMethod, Preimages
from ikpca.subspace import Subspace

#: Entries (neighbors times features) in memory at a time.
_BATCH_ENTRIES = 1_000_000


@dataclass(frozen=True)
class MDS(PreimageMethod):
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
    n_neighbors : int
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

    n_neighbors: int = 10

    def __post_init__(self) -> None:
        check_parameters(self, {"n_neighbors": COUNT_RULE})

    def supports(self, kernel: Kernel) -> bool:
        """Return True for kernels whose values determine distances in input space."""
        return isinstance(kernel, DistanceKernel)

    def _find(self, subspace: Subspace, coordinates: Floats, starts: Floats | None) -> Preimages:
        n_neighbors = min(self.n_neighbors, len(subspace.basis))
        nearest = subspace.nearest_rows(coordinates, n_neighbors)
        values = np.take_along_axis(coordinates @ subspace.products, nearest, axis=1)
        size = max(1, _BATCH_ENTRIES // (n_neighbors * subspace.basis.shape[1]))
        parts = [
            _rows_from_distances(subspace.kernel, subspace.basis[nearest[batch]], values[batch])
            for batch in tile_slices(len(nearest), size)
        ]
        rows = np.concatenate(parts)
        distances = subspace.squared_distances(coordinates, rows)
        norms = subspace.squared_norms(coordinates)
        limits = np.maximum(norms + subspace.diagonal[nearest[:, 0]] - 2 * values[:, 0], 0)
        # The negation also selects NaN, the result of an overflow.
        worse = np.flatnonzero(~(distances <= limits))
        rows[worse], distances[worse] = subspace.basis[nearest[worse, 0]], limits[worse]
        return Preimages(rows, distances)


def _rows_from_distances(kernel: DistanceKernel, neighbors: Floats, values: Floats) -> Floats:
    """Solve the least-squares problem in coordinates along the neighbors' singular vectors.

    With neighbors UΣVᵀ about their mean, ‖z − x‖² − ‖x‖² = −2⟨z, x⟩ + constant gives
    z = mean − ½ V Σ⁻¹ Uᵀ (d² − d0²): U has zero column sums, so that constants have no effect.
    """
    means = neighbors.mean(axis=1)
    centered = neighbors - means[:, None, :]
    U, S, V = np.linalg.svd(centered, full_matrices=False)
    mean_distances = np.einsum("nkd,nkd->nk", centered, centered)
    excess = kernel.input_distances(values, neighbors) - mean_distances
    # Distances are squares: they do not determine directions whose squares underflow.
    limits = np.finfo(S.dtype)
    determined = (100 * limits.eps * S[:, :1] < S) & (np.sqrt(limits.tiny) <= S)
    inverses = np.divide(1, S, out=np.zeros_like(S), where=determined)
    along = -0.5 * np.einsum("nkq,nk->nq", U, excess) * inverses
    return means + np.einsum("nq,nqd->nd", along, V)


@dataclass(frozen=True)
class NeighborMean(PreimageMethod):
    """Mean of the basis rows whose images are nearest to the point, for any kernel.

    Parameters
    ----------
    n_neighbors : int
        Number of rows in the mean; at most all rows of the basis.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Gaussian
    >>> from ikpca.subspace import Subspace
    >>> from ikpca.preimages import NeighborMean
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [9.0, 9.0]])
    >>> near = Subspace(Gaussian(0.1), X, np.array([[0.5, 0.5, 0.0]]))
    >>> NeighborMean(2).find(near, np.eye(1)).rows
    array([[0.5, 0. ]])
    """

    n_neighbors: int = 5

    def __post_init__(self) -> None:
        check_parameters(self, {"n_neighbors": COUNT_RULE})

    def supports(self, kernel: Kernel) -> bool:
        """Return True for every kernel."""
        return True

    def _find(self, subspace: Subspace, coordinates: Floats, starts: Floats | None) -> Preimages:
        n_neighbors = min(self.n_neighbors, len(subspace.basis))
        rows = subspace.basis[subspace.nearest_rows(coordinates, n_neighbors)].mean(axis=1)
        return Preimages(rows, subspace.squared_distances(coordinates, rows))


def ridge_coefficients(kernel: Kernel, projections: Floats, X: Floats, alpha: float) -> Floats:
    """Solve (K + αI) c = X with the kernel matrix K of the projections, as scikit-learn does."""
    # The matrix has no name, so that it is gone when another one is needed.
    with suppress(linalg.LinAlgError):
        factor = linalg.cho_factor(
            _regularized(kernel, projections, alpha),
            lower=True,
            overwrite_a=True,
            check_finite=False,
        )
        return linalg.cho_solve(factor, X)
    # The kernel is indefinite or the ridge is too small: the solution of minimum norm.
    values, vectors = linalg.eigh(
        _regularized(kernel, projections, alpha), driver="ev", overwrite_a=True, check_finite=False
    )
    sizes = np.abs(values)
    nonzero = sizes > np.finfo(values.dtype).eps * sizes.max()
    inverses = np.divide(1, values, out=np.zeros_like(values), where=nonzero)
    return vectors @ (inverses[:, None] * (vectors.T @ X))


def ridge_bytes(X: Floats) -> int:
    """Return the memory of a regression: the kernel matrix, tiles, and two copies of the rows."""
    n_rows, n_features = X.shape
    return (n_rows * (n_rows + 2 * n_features) + 3 * TILE * TILE) * X.dtype.itemsize


def predict_rows(kernel: Kernel, new: Floats, projections: Floats, coefficients: Floats) -> Floats:
    """Return rows for new projections, from :func:`ridge_coefficients`, computed by strips."""
    basis, new, strips = _with_columns(projections), _with_columns(new), []
    for strip in tile_slices(len(new)):
        values = cross_gram(kernel, new[strip], basis)
        _check_finite(kernel, values)
        strips.append(values @ coefficients)
    return np.vstack(strips)


def _regularized(kernel: Kernel, projections: Floats, alpha: float) -> Floats:
    """Return K + αI in the order of LAPACK, which overwrites it."""
    source = ComputedGram(kernel, _with_columns(projections))
    with np.errstate(over="ignore", invalid="ignore"):
        K = full_matrix(source, Workers())
    _check_finite(kernel, K)
    K.flat[:: len(K) + 1] += alpha
    return K.T


def _with_columns(projections: Floats) -> Floats:
    """Return projections; a column of zeros without components, as a callable may require one."""
    return projections if projections.shape[1] else np.zeros((len(projections), 1))


def _check_finite(kernel: Kernel, values: Floats) -> None:
    """Reject kernel values of projections that overflow.

    As in scikit-learn, the kernel is that of the rows, though projections may be much larger.
    """
    # NaN is the minimum of values that contain it.
    if not (np.isfinite(values.min()) and np.isfinite(values.max())):
        raise invalid_parameter(
            "preimage",
            "ridge",
            f"values of {kernel!r} between projections overflow",
            "choose another pre-image method, or scale X",
        )

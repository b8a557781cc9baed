"""Landmarks: random rows, and components in their leading directions to start from."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from ikpca.errors import InvalidInput
from ikpca.gram import GramSource, tile_slices
from ikpca.gram.centering import NOT_FINITE
from ikpca.gram.resources import SERIAL, Workers
from ikpca.gram.sources import DistributedSource
from ikpca.kernels import Floats, Indices
from ikpca.solvers.rayleigh_ritz import inner_in_double, leading_eigenpairs

#: Leading directions of the landmarks in which a start seeks components, per component.
DIRECTIONS_PER_COMPONENT = 8
#: Relative eigenvalue below which directions are not used, unless there are too few, and noise of
#: an eigenvalue, in units of that of the kernel values.
_DROP, _NOISE = 1e-6, 10
#: Landmarks per direction beyond which subspace iterations take less time, and their number.
_LANDMARKS_PER_DIRECTION, _SUBSPACE_ITERATIONS = 3, 3


def uniform_landmarks(n_samples: int, number: int, seed: int) -> Indices:
    """Draw distinct rows with equal probability."""
    rng = np.random.default_rng([seed, 3])
    return np.sort(rng.choice(n_samples, size=min(number, n_samples), replace=False))


def _leading_directions(gram: Floats, n_components: int, noise: float) -> Floats:
    """Return leading components of the landmarks alone, whose coefficients have zero row sums.

    They are ordered by decreasing variance, approximated by subspace iterations if there are many
    landmarks. Directions without more variance than the noise of the kernel values are dropped.
    """
    number = DIRECTIONS_PER_COMPONENT * n_components
    N = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
    N = (N + N.T) / 2
    if len(N) > _LANDMARKS_PER_DIRECTION * number:
        subspace = np.random.default_rng(0).normal(size=(len(N), number))
        for _ in range(_SUBSPACE_ITERATIONS):
            subspace = linalg.qr(N @ subspace, mode="economic")[0]
        lengths, U = linalg.eigh(subspace.T @ (N @ subspace))
        U = subspace @ U
    else:
        lengths, U = linalg.eigh(N, subset_by_index=[max(0, len(N) - number), len(N) - 1])
    # Small directions amplify rounding errors; as many as components are needed.
    needed = float(lengths[-n_components:][0])
    kept = lengths > max(min(_DROP * float(lengths[-1]), needed / 2), _NOISE * noise)
    directions = (U[:, kept] / np.sqrt(lengths[kept])).T[::-1]
    # The row sums are zero up to rounding.
    return directions - directions.mean(axis=1, keepdims=True)


class LandmarkStart:
    """Components in the leading directions of landmarks, from which iterations start.

    For coefficients A with zero row sums on m landmarks, AK' is AK minus its row means. So one pass
    over m kernel rows gives exact projections. ``directions`` and ``coordinates`` are A and AK' of
    the directions, ``eigenvalues`` Ritz values, which are lower bounds, and ``distances`` estimated
    squared distances of all rows from the span of the directions and the mean.
    """

    def __init__(
        self, source: GramSource, n_components: int, indices: Indices, workers: Workers = SERIAL
    ) -> None:
        gram, dtype = source.submatrix(indices, indices).astype(np.float64), source.dtype
        if not np.isfinite(gram).all():
            raise InvalidInput(NOT_FINITE)
        noise = float(np.finfo(dtype).eps * np.abs(gram).max())
        directions = _leading_directions(gram, n_components, noise)
        # The last row gives the inner products with the mean of the landmarks.
        weights = np.vstack([directions, np.full((1, len(gram)), 1 / len(gram))])
        products = _combine(source, weights.astype(dtype), indices, workers)
        if not np.isfinite(products).all():
            raise InvalidInput(NOT_FINITE)
        coordinates, of_mean = products[:-1], products[-1]
        # First from the mean of the landmarks, about which the directions are a basis.
        coordinates -= (directions @ gram.mean(axis=1)).astype(dtype)[:, None]
        distances = source.diagonal() - 2 * of_mean + gram.mean()
        distances -= np.einsum("ij,ij->j", coordinates, coordinates)
        coordinates -= coordinates.mean(axis=1, dtype=np.float64).astype(dtype)[:, None]
        # With fewer directions than components, the remaining eigenvalues are zero.
        self.eigenvalues = np.zeros(n_components)
        self._rotation = np.zeros((n_components, len(directions)))
        if len(directions):
            scatter = inner_in_double(coordinates.T, coordinates.T, workers)
            values, U = leading_eigenpairs(scatter, n_components)
            self.eigenvalues[: len(values)], self._rotation[: len(values)] = values, U.T
        self.indices, self.directions, self.coordinates = indices, directions, coordinates
        self.distances = np.abs(distances)

    @property
    def projections(self) -> Floats:
        """AK' of the components."""
        return self._rotation.astype(self.coordinates.dtype) @ self.coordinates

    def coefficients(self) -> Floats:
        """Return A of the components with all l columns."""
        A = np.zeros((len(self._rotation), self.coordinates.shape[1]), self.coordinates.dtype)
        A[:, self.indices] = self._rotation @ self.directions
        return A


def _combine(source: GramSource, weights: Floats, indices: Indices, workers: Workers) -> Floats:
    """Return weights · K[indices, :], computed by strips."""
    if isinstance(source, DistributedSource):
        return source.combine_rows(weights, indices)
    combined = np.empty((len(weights), source.n_samples), dtype=source.dtype)

    def combine(columns: slice) -> None:
        values = workers.scratch((len(indices), columns.stop - columns.start), source.dtype)
        source.fill(indices, columns, values)
        np.matmul(weights, values, out=combined[:, columns])

    # A strip takes no more memory than a tile.
    width = min(max(source.side**2 // len(indices), 1), source.side)
    workers.for_each(combine, tile_slices(source.n_samples, width))
    return combined

"""Landmarks: the choice of rows, and components in their leading directions to start from."""

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

#: Initializations of iterations by landmarks.
LANDMARK_KINDS = ("landmarks", "pivoted")
#: Leading directions of the landmarks in which a start seeks components, per component.
DIRECTIONS_PER_COMPONENT = 8
#: Relative eigenvalue below which directions are not used, unless there are too few, and noise of
#: an eigenvalue, in units of that of the kernel values.
_DROP, _NOISE = 1e-6, 10
#: Landmarks per direction beyond which subspace iterations take less time, and their number.
_LANDMARKS_PER_DIRECTION, _SUBSPACE_ITERATIONS = 3, 3
#: Columns per matrix product.
_STRIP = 4096
#: First block of proposed pivots, and passes over all rows.
_FIRST_BLOCK, _MAX_ROUNDS = 256, 12
#: Residuals below this many times the rounding error of k(x, x) are noise.
_ROUNDING = 100


def uniform_landmarks(n_samples: int, number: int, seed: int) -> Indices:
    """Draw distinct rows with equal probability."""
    rng = np.random.default_rng([seed, 3])
    return np.sort(rng.choice(n_samples, size=min(number, n_samples), replace=False))


def choose_landmarks(
    selection: str, source: GramSource, number: int, seed: int, workers: Workers = SERIAL
) -> Indices:
    """Choose rows by randomly pivoted Cholesky ("pivoted"), otherwise uniformly."""
    if selection == "pivoted" and number < source.n_samples:
        return pivoted_landmarks(source, number, seed, workers)
    return uniform_landmarks(source.n_samples, number, seed)


def pivoted_landmarks(
    source: GramSource, number: int, seed: int, workers: Workers = SERIAL
) -> Indices:
    """Choose rows by randomly pivoted Cholesky, with probability proportional to their residual.

    Better than uniform sampling if a few rows differ from the rest. Rows are proposed in blocks and
    accepted with the ratio of their present to their former residual, so that they have the
    distribution of rows drawn one at a time. Blocks double the number of landmarks, so all passes
    together take less time than a factorization; the factor of all rows is not stored.
    """
    rng = np.random.default_rng([seed, 3])
    number = min(number, source.n_samples)
    # The diagonal of an indefinite kernel may be negative.
    diagonal = np.clip(source.diagonal().astype(np.float64), 0, None)
    noise = _ROUNDING * float(np.finfo(source.dtype).eps) * diagonal
    residuals = np.where(diagonal > noise, diagonal, 0)
    pivots = np.zeros(0, dtype=np.intp)
    factor: Floats = np.zeros((0, 0))
    for _ in range(_MAX_ROUNDS):
        total = float(residuals.sum())
        if len(pivots) >= number or total <= 0:
            break
        if not np.isfinite(total):
            raise InvalidInput(NOT_FINITE)
        size = min(2 * (number - len(pivots)), max(_FIRST_BLOCK, 2 * len(pivots)))
        proposed = rng.choice(source.n_samples, size=size, p=residuals / total)
        thresholds = rng.random(size) * residuals[proposed]
        pivots, factor = _accept_pivots(source, pivots, factor, proposed, thresholds, number)
        if len(pivots) < number:
            residuals = diagonal - _squared_projections(source, pivots, factor, workers)
            residuals[residuals <= noise] = 0
            residuals[pivots] = 0
    if not len(pivots):
        return uniform_landmarks(source.n_samples, number, seed)
    missing = min(number - len(pivots), int(np.count_nonzero(residuals)))
    if missing > 0:
        # Residuals fall too fast for rejection to accept many rows.
        weights = residuals / residuals.sum()
        more = rng.choice(source.n_samples, size=missing, replace=False, p=weights)
        pivots = np.concatenate([pivots, more])
    return np.sort(pivots)


def _accept_pivots(
    source: GramSource,
    pivots: Indices,
    factor: Floats,
    proposed: Indices,
    thresholds: Floats,
    number: int,
) -> tuple[Indices, Floats]:
    """Add proposed rows in turn whose present residual exceeds their threshold, up to a number.

    ``factor`` is the Cholesky factor of the kernel matrix of the pivots, in double precision.
    """
    n_former = len(pivots)
    K = source.submatrix(proposed, np.concatenate([pivots, proposed])).astype(np.float64)
    # Residual values of the proposed rows among each other, given the former pivots.
    above = np.zeros((0, len(proposed)))
    if n_former:
        above = linalg.solve_triangular(factor, K[:, :n_former].T, lower=True)
    H = K[:, n_former:] - above.T @ above
    new = np.zeros((min(len(proposed), number - n_former), len(proposed)))
    accepted: list[int] = []
    for i in range(len(proposed)):
        if n_former + len(accepted) == number:
            break
        column = new[: len(accepted), i]
        present = H[i, i] - column @ column
        if present <= thresholds[i]:
            continue
        row = H[i] - column @ new[: len(accepted)]
        new[len(accepted)] = row / np.sqrt(present)
        accepted.append(i)
    right, below = np.zeros((n_former, len(accepted))), np.tril(new[: len(accepted), accepted].T)
    factor = np.block([[factor, right], [above[:, accepted].T, below]])
    return np.concatenate([pivots, proposed[accepted]]), factor


def _squared_projections(
    source: GramSource, pivots: Indices, factor: Floats, workers: Workers
) -> Floats:
    """Return the squared lengths of the images of all rows, projected on the span of the pivots."""
    inverse = linalg.solve_triangular(factor, np.eye(len(pivots)), lower=True)
    inverse = inverse.astype(source.dtype)

    def part(columns: slice) -> Floats:
        values = np.empty((len(pivots), columns.stop - columns.start), dtype=source.dtype)
        source.fill(pivots, columns, values)
        z = inverse @ values
        return np.einsum("ij,ij->j", z, z)

    width = min(source.strip_width, _STRIP)
    return np.concatenate(list(workers.map(part, tile_slices(source.n_samples, width))))


def _leading_directions(gram: Floats, n_components: int, noise: float) -> Floats:
    """Return leading components of the landmarks alone, whose coefficients have zero row sums.

    They are ordered by decreasing variance. Several times as many as the components wanted are
    enough; using all directions would gain little for its cost. Of many landmarks they are
    approximated by subspace iterations. Directions without more variance than the noise of the
    kernel values are dropped.
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
    over m kernel rows gives exact projections.

    Attributes
    ----------
    indices : ndarray of shape (m,)
    directions : ndarray of shape (d, m)
        Coefficients of the directions.
    coordinates : ndarray of shape (d, l)
        AK' of the directions.
    eigenvalues : ndarray of shape (r,)
        Ritz values: lower bounds of the eigenvalues of K'.
    distances : ndarray of shape (l,)
        Estimated squared distances of all rows from the span of the directions and the mean.
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
    workers.each(combine, tile_slices(source.n_samples, width))
    return combined

"""Landmark (Nyström) initialization: the best components in the span of a few rows.

For coefficients with zero row sums on m landmarks, AK' is AK minus its row means. So m kernel rows
give exact projections, and a Rayleigh–Ritz step on them the best components.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ikpca.errors import InvalidInput
from ikpca.gram import (
    NOT_FINITE,
    SERIAL,
    DistributedSource,
    GramSource,
    Workers,
    tile_slices,
)
from ikpca.kernels import Floats, Indices
from ikpca.solvers.rayleigh_ritz import rayleigh_ritz

#: Methods of choosing landmarks.
LANDMARK_KINDS = ("landmarks", "pivoted")
#: Leading directions of the landmarks that the Rayleigh–Ritz step uses, per component.
DIRECTIONS_PER_COMPONENT = 8
#: Directions with a relative eigenvalue below this are rounding noise.
_DROP = 1e-6
#: Columns per matrix product.
_STRIP = 4096


@dataclass(frozen=True)
class LandmarkStart:
    """Orthonormal components on landmarks.

    Parameters
    ----------
    indices : ndarray of shape (m,)
    coefficients : ndarray of shape (r, m)
        A on the landmarks; zero for all other rows.
    projections : ndarray of shape (r, l)
        AK', exact.
    eigenvalues : ndarray of shape (r,)
        Ritz values: lower bounds of the eigenvalues of K'.
    """

    indices: Indices
    coefficients: Floats
    projections: Floats
    eigenvalues: Floats

    def dense_coefficients(self) -> Floats:
        """Return A with all l columns."""
        A = np.zeros_like(self.projections)
        A[:, self.indices] = self.coefficients
        return A


def uniform_landmarks(n_samples: int, number: int, seed: int) -> Indices:
    """Draw distinct rows with equal probability."""
    rng = np.random.default_rng([seed, 3])
    return np.sort(rng.choice(n_samples, size=min(number, n_samples), replace=False))


def choose_landmarks(kind: str, source: GramSource, number: int, seed: int) -> Indices:
    """Choose rows uniformly ("landmarks"), or by randomly pivoted Cholesky ("pivoted")."""
    if kind == "pivoted":
        return pivoted_landmarks(source, number, seed)
    return uniform_landmarks(source.n_samples, number, seed)


def pivoted_landmarks(source: GramSource, number: int, seed: int) -> Indices:
    """Choose rows by randomly pivoted Cholesky, with probability proportional to their residual.

    Better than uniform sampling if a few rows differ from the rest; ``number``² l flops.
    """
    rng = np.random.default_rng([seed, 3])
    n_samples = source.n_samples
    factor = np.zeros((min(number, n_samples), n_samples), dtype=source.dtype)
    # The diagonal of an indefinite kernel may be negative.
    residuals = np.clip(source.diagonal().astype(np.float64), 0, None)
    row = np.empty((1, n_samples), dtype=source.dtype)
    chosen: list[int] = []
    while len(chosen) < len(factor) and residuals.sum() > 0:
        pivot = int(rng.choice(n_samples, p=residuals / residuals.sum()))
        source.fill(np.array([pivot]), slice(0, n_samples), row)
        previous = factor[: len(chosen)]
        residual = row[0] - previous[:, pivot] @ previous
        if residual[pivot] > 0:
            factor[len(chosen)] = residual / np.sqrt(residual[pivot])
            residuals = np.clip(residuals - np.square(factor[len(chosen)]), 0, None)
            chosen.append(pivot)
        residuals[pivot] = 0
    if not chosen:
        return uniform_landmarks(n_samples, number, seed)
    return np.sort(np.array(chosen, dtype=np.intp))


def landmark_start(
    source: GramSource, n_components: int, indices: Indices, workers: Workers = SERIAL
) -> LandmarkStart:
    """Compute components by Rayleigh–Ritz in the leading directions of the landmarks."""
    if isinstance(source, DistributedSource):
        rows = source.landmark_rows(indices)
    else:
        rows = _LocalLandmarkRows(source, indices, workers)
    gram = rows.landmark_gram()
    if not np.isfinite(gram).all():
        raise InvalidInput(NOT_FINITE)
    basis = _leading_directions(gram, DIRECTIONS_PER_COMPONENT * n_components)
    squared = rows.reduce(basis.astype(source.dtype))
    if not np.isfinite(squared).all():
        raise InvalidInput(NOT_FINITE)
    values, T = np.zeros(n_components), np.zeros((n_components, len(basis)))
    if len(basis):
        # With fewer directions than components, the remaining eigenvalues are zero.
        ritz_values, rotation = rayleigh_ritz(np.eye(len(basis)), squared)
        number = len(ritz_values)
        values[:number], T[:number] = ritz_values[:n_components], rotation[:n_components]
    coefficients, T = ((T @ basis).astype(source.dtype), T.astype(source.dtype))
    return LandmarkStart(indices, coefficients, rows.rotate(T), values)


class _LocalLandmarkRows:
    """K[L, :] computed in this process."""

    def __init__(self, source: GramSource, indices: Indices, workers: Workers) -> None:
        self._rows = np.empty((len(indices), source.n_samples), dtype=source.dtype)
        self._indices = indices
        self._workers = workers

        def fill(columns: slice) -> None:
            source.fill(indices, columns, self._rows[:, columns])

        workers.each(fill, tile_slices(source.n_samples, source.strip_width))
        if not np.isfinite(self._rows).all():
            raise InvalidInput(NOT_FINITE)

    def landmark_gram(self) -> Floats:
        """Return the kernel values of the landmarks, K[L, L]."""
        return self._rows[:, self._indices].astype(np.float64)

    def reduce(self, basis: Floats) -> Floats:
        """Replace the rows by their projections on the basis; return the Gram matrix of these."""
        self._reduced = _reduce(basis, self._rows, self._workers)
        return _row_gram(self._reduced, self._workers)

    def rotate(self, T: Floats) -> Floats:
        """Return T times the projections."""
        return T @ self._reduced


def _leading_directions(K: Floats, number: int) -> Floats:
    """Return the leading components of the landmarks alone, as coefficients with zero row sums.

    They are orthonormal in feature space and ordered by decreasing variance. Several times as many
    as the components wanted are enough; using all directions would gain little for its cost.
    """
    N = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    last = len(N) - 1
    lengths, U = linalg.eigh((N + N.T) / 2, subset_by_index=[max(0, last + 1 - number), last])
    kept = lengths > _DROP * max(float(lengths[-1]), 0.0)
    directions = (U[:, kept] / np.sqrt(lengths[kept])).T[::-1]
    # The row sums are zero up to rounding.
    return directions - directions.mean(axis=1, keepdims=True)


def _reduce(basis: Floats, rows: Floats, workers: Workers) -> Floats:
    """Return AK' for coefficients A with zero row sums: A K[L, :] minus its row means."""
    reduced = np.empty((len(basis), rows.shape[1]), dtype=rows.dtype)

    def multiply(columns: slice) -> None:
        np.matmul(basis, rows[:, columns], out=reduced[:, columns])

    workers.each(multiply, tile_slices(rows.shape[1], _STRIP))
    reduced -= reduced.mean(axis=1, dtype=np.float64, keepdims=True).astype(rows.dtype)
    return reduced


def _row_gram(rows: Floats, workers: Workers) -> Floats:
    """Return rows times their transpose, by strips, in the precision of the rows."""
    total = np.zeros((len(rows), len(rows)))

    def part(columns: slice) -> Floats:
        return rows[:, columns] @ rows[:, columns].T.copy()

    for product in workers.map(part, tile_slices(rows.shape[1], _STRIP)):
        total += product
    return (total + total.T) / 2

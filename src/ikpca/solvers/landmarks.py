"""Landmark (Nyström) initialization: the best components in the span of a few rows.

Zero-sum coefficients on m landmarks need no means of K: A K' = A K less its row means. So one strip
of m kernel rows gives exact projections, and Rayleigh–Ritz among them the best components.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import linalg

from ikpca.errors import InvalidInput
from ikpca.gram import (
    NOT_FINITE,
    SERIAL,
    DistributedSource,
    GramSource,
    LandmarkRows,
    Workers,
    tile_slices,
)
from ikpca.kernels import Floats, Indices
from ikpca.solvers.rayleigh_ritz import rayleigh_ritz

#: Directions of the landmarks in which components are looked for, per component.
DIRECTIONS_PER_COMPONENT = 8
#: Directions below this share of the leading one are rounding noise of the landmarks' own values.
_DROP = 1e-6
_STRIP = 4096

#: How landmarks are chosen.
LANDMARK_KINDS = ("landmarks", "pivoted")


@dataclass(frozen=True)
class LandmarkStart:
    """Orthonormal components on landmarks.

    Parameters
    ----------
    indices : ndarray of shape (m,)
    coefficients : ndarray of shape (r, m)
        A on the landmarks; zero elsewhere.
    projections : ndarray of shape (r, l)
        AK', exact.
    eigenvalues : ndarray of shape (r,)
        Ritz values: lower bounds of the eigenvalues of K'.
    """

    indices: Indices
    coefficients: Floats
    projections: Floats
    eigenvalues: Floats

    def spread(self) -> Floats:
        """A with all of its l columns."""
        A = np.zeros_like(self.projections)
        A[:, self.indices] = self.coefficients
        return A


def uniform_landmarks(n_samples: int, number: int, seed: int) -> Indices:
    """So many different rows, each as likely as any other."""
    rng = np.random.default_rng([seed, 3])
    return np.sort(rng.choice(n_samples, size=min(number, n_samples), replace=False))


def choose_landmarks(kind: str, source: GramSource, number: int, seed: int) -> Indices:
    """Uniform ("landmarks"), or by randomly pivoted Cholesky ("pivoted")."""
    if kind == "pivoted":
        return pivoted_landmarks(source, number, seed)
    return uniform_landmarks(source.n_samples, number, seed)


def pivoted_landmarks(source: GramSource, number: int, seed: int) -> Indices:
    """Randomly pivoted Cholesky: rows drawn by what the earlier ones leave unexplained.

    Better than uniform where few rows are unlike the rest; ``number``² l flops.
    """
    rng = np.random.default_rng([seed, 3])
    n_samples = source.n_samples
    factor = np.zeros((min(number, n_samples), n_samples), dtype=source.dtype)
    # An indefinite kernel may have negative ones, which explain nothing.
    left = np.clip(source.diagonal().astype(np.float64), 0, None)
    row = np.empty((1, n_samples), dtype=source.dtype)
    chosen: list[int] = []
    while len(chosen) < len(factor) and left.sum() > 0:
        pivot = int(rng.choice(n_samples, p=left / left.sum()))
        source.fill(np.array([pivot]), slice(0, n_samples), row)
        known = factor[: len(chosen)]
        residual = row[0] - known[:, pivot] @ known
        if residual[pivot] > 0:
            factor[len(chosen)] = residual / np.sqrt(residual[pivot])
            left = np.clip(left - np.square(factor[len(chosen)]), 0, None)
            chosen.append(pivot)
        left[pivot] = 0
    if not chosen:
        return uniform_landmarks(n_samples, number, seed)
    return np.sort(np.array(chosen, dtype=np.intp))


def landmark_start(
    source: GramSource, n_components: int, indices: Indices, workers: Workers = SERIAL
) -> LandmarkStart:
    """Rayleigh–Ritz in the leading directions of the landmarks."""
    rows: LandmarkRows
    if isinstance(source, DistributedSource):
        rows = source.landmark_rows(indices)
    else:
        rows = _LocalLandmarkRows(source, indices, workers)
    among = rows.among()
    if not np.isfinite(among).all():
        raise InvalidInput(NOT_FINITE)
    basis = _leading_directions(among, DIRECTIONS_PER_COMPONENT * n_components)
    squared = rows.reduce(basis.astype(source.dtype))
    if not np.isfinite(squared).all():
        raise InvalidInput(NOT_FINITE)
    values, T = np.zeros(n_components), np.zeros((n_components, len(basis)))
    if len(basis):
        # Fewer directions than components: the rest have no variance.
        found, turn = rayleigh_ritz(np.eye(len(basis)), squared)
        values[: len(found)], T[: len(found)] = found[:n_components], turn[:n_components]
    coefficients, turn = ((T @ basis).astype(source.dtype), T.astype(source.dtype))
    return LandmarkStart(indices, coefficients, rows.turned(turn), values)


class _LocalLandmarkRows:
    """K[L, :] in this process."""

    def __init__(self, source: GramSource, indices: Indices, workers: Workers) -> None:
        self._rows = np.empty((len(indices), source.n_samples), dtype=source.dtype)
        self._indices = indices
        self._workers = workers

        def fill(columns: slice) -> None:
            source.fill(indices, columns, self._rows[:, columns])

        sparing = partial(workers.shortage.in_strips, fill)
        workers.each(sparing, tile_slices(source.n_samples, source.tile))
        if not np.isfinite(self._rows).all():
            raise InvalidInput(NOT_FINITE)

    def among(self) -> Floats:
        """Those of the landmarks themselves."""
        return self._rows[:, self._indices].astype(np.float64)

    def reduce(self, basis: Floats) -> Floats:
        """Few rows in place of many."""
        self._reduced = _reduce(basis, self._rows, self._workers)
        return _squared(self._reduced, self._workers)

    def turned(self, T: Floats) -> Floats:
        """Fewer still."""
        return T @ self._reduced


def _leading_directions(K: Floats, number: int) -> Floats:
    """Zero-sum coefficients on the landmarks, orthonormal in feature space, by falling variance.

    The components of the landmarks alone, many more of them than are wanted of all rows: what the
    rest would add is not worth the product of all landmark rows with each other.
    """
    N = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    last = len(N) - 1
    lengths, U = linalg.eigh((N + N.T) / 2, subset_by_index=[max(0, last + 1 - number), last])
    kept = lengths > _DROP * max(float(lengths[-1]), 0.0)
    directions = (U[:, kept] / np.sqrt(lengths[kept])).T[::-1]
    # Zero-sum already, but for directions that rounding made.
    return directions - directions.mean(axis=1, keepdims=True)


def _reduce(basis: Floats, rows: Floats, workers: Workers) -> Floats:
    """AK' for zero-sum coefficients A on the landmarks: A K[L, :] less its row means."""
    reduced = np.empty((len(basis), rows.shape[1]), dtype=rows.dtype)

    def multiply(columns: slice) -> None:
        np.matmul(basis, rows[:, columns], out=reduced[:, columns])

    workers.each(multiply, tile_slices(rows.shape[1], _STRIP))
    reduced -= reduced.mean(axis=1, dtype=np.float64, keepdims=True).astype(rows.dtype)
    return reduced


def _squared(rows: Floats, workers: Workers) -> Floats:
    """Rows times their transpose by strips; a start needs no more than their own precision."""
    total = np.zeros((len(rows), len(rows)))

    def part(columns: slice) -> Floats:
        return rows[:, columns] @ rows[:, columns].T.copy()

    for square in workers.map(part, tile_slices(rows.shape[1], _STRIP)):
        total += square
    return (total + total.T) / 2

"""A start from few rows: the best components that some landmarks can span.

Zero-sum coefficients on m landmarks need no means of K: A K' = A K less its row means. So one strip
of m kernel rows gives exact projections, and Rayleigh–Ritz among them the best components.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ikpca.gram import SERIAL, GramSource, Indices, Workers, tiles
from ikpca.kernels import Floats
from ikpca.spectra.rayleigh_ritz import rayleigh_ritz

__all__ = ["LandmarkStart", "landmark_start", "pivoted_landmarks", "uniform_landmarks"]


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


def pivoted_landmarks(source: GramSource, number: int, seed: int) -> Indices:
    """Randomly pivoted Cholesky: rows drawn by what the earlier ones leave unexplained.

    Better than uniform where few rows are unlike the rest; ``number``² l flops.
    """
    rng = np.random.default_rng([seed, 3])
    n_samples = source.n_samples
    factor = np.zeros((min(number, n_samples), n_samples))
    left = source.diagonal().astype(np.float64)
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
    return np.sort(np.array(chosen, dtype=np.intp))


def landmark_start(
    source: GramSource, n_components: int, indices: Indices, workers: Workers = SERIAL
) -> LandmarkStart:
    """Rayleigh–Ritz in the span of the landmarks."""
    rows = np.empty((len(indices), source.n_samples), dtype=source.dtype)

    def part(columns: slice) -> None:
        source.fill(indices, columns, rows[:, columns])

    workers.each(part, tiles(source.n_samples, source.tile))
    # H_m K[L, :] H_l in place: zero-sum coefficients, then less the row means.
    rows -= rows.mean(axis=0, dtype=np.float64).astype(rows.dtype)
    at_landmarks = rows[:, indices].astype(np.float64)
    N = at_landmarks - at_landmarks.mean(axis=1, keepdims=True)
    rows -= rows.mean(axis=1, dtype=np.float64, keepdims=True).astype(rows.dtype)
    drop = max(1e-12, 10 * float(np.finfo(rows.dtype).eps))
    values, T = rayleigh_ritz((N + N.T) / 2, _squared(rows, workers), drop)
    T = T[:n_components]
    return LandmarkStart(
        indices,
        (T - T.mean(axis=1, keepdims=True)).astype(rows.dtype),
        T.astype(rows.dtype) @ rows,
        values[:n_components],
    )


def _squared(rows: Floats, workers: Workers) -> Floats:
    """Rows times their transpose by strips; a start needs no more than their own precision."""
    total = np.zeros((len(rows), len(rows)))

    def part(columns: slice) -> Floats:
        return rows[:, columns] @ rows[:, columns].T.copy()

    for square in workers.map(part, tiles(rows.shape[1], 4096)):
        total += square
    return (total + total.T) / 2

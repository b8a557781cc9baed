"""Cells of a moving basis: their means, and the cells that are merged at the lowest cost."""

from __future__ import annotations

import numpy as np

from ikpca.gram import cross_gram
from ikpca.kernels import Floats, Kernel


def local_means(
    kernel: Kernel, rows: Floats, basis: Floats, seeds: Floats
) -> tuple[Floats, Floats]:
    """Return the means of the rows that are nearer to each seed than to others, and their counts.

    Counts are halved, since the rows will be counted again when they are learned.
    """
    centers = np.concatenate([basis, seeds]).astype(rows.dtype)
    distances = kernel.diagonal(centers) - 2 * cross_gram(kernel, rows, centers)
    nearest = distances.argmin(axis=1) - len(basis)
    means, counts = seeds.astype(np.float64), np.full(len(seeds), 0.5)
    for j in np.unique(nearest[nearest >= 0]):
        own = nearest == j
        means[j], counts[j] = rows[own].mean(axis=0, dtype=np.float64), own.sum() / 2
    return means, counts


def merge_cells(rows: Floats, K: Floats, weights: Floats, number: int) -> tuple[Floats, Floats]:
    """Merge pairs of cells ``number`` times, and return the rows and weights that remain.

    The next pair is that with the smallest ν_j ν_k/(ν_j + ν_k) ‖Φ(b_j) − Φ(b_k)‖² (Ward's
    criterion in feature space).

    Parameters
    ----------
    rows : ndarray of shape (m, N)
    K : ndarray of shape (m, m)
        Kernel matrix of the rows.
    weights : ndarray of shape (m,)
    number : int

    Returns
    -------
    rows : ndarray of shape (m - number, N)
    weights : ndarray of shape (m - number,)
    """
    G, weights, rows = K.copy(), np.maximum(weights, 1e-300), rows.astype(np.float64)
    lengths = np.diagonal(G).copy()

    def costs(j: int | slice) -> Floats:
        own, squared = (
            (weights[j], lengths[j]) if isinstance(j, int) else (weights[:, None], lengths[:, None])
        )
        distances = np.maximum(squared + lengths - 2 * G[j], 0)
        return distances * (own * weights / (own + weights))

    cost = costs(slice(None))
    np.fill_diagonal(cost, np.inf)
    alive = np.ones(len(G), dtype=bool)
    nearest = cost.argmin(axis=1)
    lowest = cost[np.arange(len(G)), nearest]
    for _ in range(number):
        j = int(lowest.argmin())
        k = int(nearest[j])
        total = weights[j] + weights[k]
        share = weights[j] / total
        rows[j] = share * rows[j] + (1 - share) * rows[k]
        own = share**2 * G[j, j] + 2 * share * (1 - share) * G[j, k] + (1 - share) ** 2 * G[k, k]
        G[j] = G[:, j] = share * G[j] + (1 - share) * G[k]
        G[j, j] = lengths[j] = own
        weights[j], alive[k], lowest[k] = total, False, np.inf
        new = costs(j)
        new[~alive] = new[j] = np.inf
        cost[k] = cost[:, k] = np.inf
        cost[j] = cost[:, j] = new
        for i in np.flatnonzero(alive & ((nearest == j) | (nearest == k))):
            nearest[i] = cost[i].argmin()
            lowest[i] = cost[i, nearest[i]]
        nearest[j], lowest[j] = new.argmin(), new.min()
        better = alive & (new < lowest)
        better[j] = False
        nearest[better], lowest[better] = j, new[better]
    return rows[alive], weights[alive]

"""Merge of the cells of a moving basis at the lowest cost."""

from __future__ import annotations

import numpy as np

from ikpca.kernels import Floats


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

"""γ as a number, from a number, None, "scale" or "median"."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances

from ikpca.errors import refuse
from ikpca.gram import tiles
from ikpca.kernels import one_norm_distances

__all__ = ["resolve_gamma"]

#: Rows drawn for the median of distances.
_MEDIAN_ROWS = 1000


def resolve_gamma(gamma: Any, X: Any, kernel: Any, seed: int) -> float:
    """None: 1/N. "scale": 1/(N·variance), as for SVC. "median": from the median distance."""
    if gamma is None:
        return 1.0 / X.shape[1]
    if not isinstance(gamma, str):
        return float(gamma)
    value = _scale(X) if gamma == "scale" else _median(X, kernel, seed)
    if not np.isfinite(value):
        raise refuse("gamma", gamma, "all rows are equal, which leaves no scale",
                     "pass a number, or more rows")  # fmt: skip
    return value


def _scale(X: Any) -> float:
    mean, squares = _moments(X)
    variance = squares - mean * mean
    return 1.0 / (X.shape[1] * variance) if variance > 0 else np.inf


def _moments(X: Any) -> tuple[float, float]:
    """Means of all entries and of their squares; a tile of rows at a time, as X may be on disk."""
    if sparse.issparse(X):
        return float(X.mean()), float(X.multiply(X).mean())
    parts = [(len(rows) / len(X), rows.mean(), np.mean(np.square(rows)))
             for rows in (X[part] for part in tiles(len(X)))]  # fmt: skip
    return (
        float(sum(share * float(mean) for share, mean, _ in parts)),
        float(sum(share * float(square) for share, _, square in parts)),
    )


def _median(X: Any, kernel: Any, seed: int) -> float:
    """Gaussian with σ = median distance; for the Laplacian its scale is the median 1-norm."""
    n_samples = X.shape[0]
    if n_samples < 2:
        return np.inf
    chosen = np.arange(n_samples)
    if n_samples > _MEDIAN_ROWS:
        chosen = np.random.default_rng([seed, 2]).choice(n_samples, _MEDIAN_ROWS, replace=False)
    rows = X[chosen]
    distances = (one_norm_distances if kernel == "laplacian" else euclidean_distances)(rows, rows)
    middle = float(np.median(distances[np.triu_indices_from(distances, k=1)]))
    if middle == 0:
        return np.inf
    return 1 / middle if kernel == "laplacian" else 1 / (2 * middle * middle)

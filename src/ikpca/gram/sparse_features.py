"""Contributions of features in which few rows differ (compiled).

Importing this module starts the compiler, so import it where there are such features.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ikpca.kernels import Floats, Rows


class SparseFeatureProducts:
    """Inner products of sparse rows, added where two of them meet in a feature.

    Parameters
    ----------
    right : CSR array of shape (l, features)
        The rows that are met.
    """

    def __init__(self, right: Rows) -> None:
        # By features: those of a row are then all that has to be looked at.
        self._right = right.tocsc()

    def add(self, left: Rows, columns: slice, out: Floats) -> None:
        """Add ⟨left_i, right_j⟩ for all i, and for consecutive j."""
        right = self._right
        first, last, _ = columns.indices(right.shape[0])
        _scatter(
            (left.indptr, left.indices, left.data),
            (right.indptr, right.indices, right.data), first, last, out,
        )  # fmt: skip


@njit(cache=True, nogil=True)
def _scatter(left, right, first, last, out):
    """Row by row on the left, feature by feature on the right, whose rows are in order."""
    starts, features, values = left
    bounds, others, factors = right
    n_features = len(bounds) - 1
    lower, upper = np.empty(n_features, np.int64), np.empty(n_features, np.int64)
    for feature in range(n_features):
        met = others[bounds[feature] : bounds[feature + 1]]
        lower[feature] = bounds[feature] + np.searchsorted(met, first)
        upper[feature] = bounds[feature] + np.searchsorted(met, last)
    total = np.zeros(last - first)
    for i in range(len(out)):
        if starts[i] == starts[i + 1]:
            continue
        # Summed apart, and in double precision: on top of far larger numbers, each of them would be
        # rounded to those.
        total[:] = 0
        for p in range(starts[i], starts[i + 1]):
            feature, value = features[p], values[p]
            for q in range(lower[feature], upper[feature]):
                total[others[q] - first] += value * factors[q]
        for j in range(len(total)):
            out[i, j] += total[j]

"""Products of sparse features (compiled).

Importing this module starts the compiler; import it only if there are sparse features.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ikpca.kernels import Floats, Rows


class SparseFeatureProducts:
    """Inner products of sparse rows with a fixed set of sparse rows.

    Parameters
    ----------
    right : CSR array of shape (l, features)
        The fixed rows.
    """

    def __init__(self, right: Rows) -> None:
        # By columns, so that only the features of a left row are read.
        self._right = right.tocsc()

    def add(self, left: Rows, columns: slice, out: Floats) -> None:
        """Add ⟨left_i, right_j⟩ to ``out``, for all i and for j in ``columns``."""
        right = self._right
        first, last, _ = columns.indices(right.shape[0])
        _add_products(
            (left.indptr, left.indices, left.data),
            (right.indptr, right.indices, right.data), first, last, out,
        )  # fmt: skip


@njit(cache=True, nogil=True)
def _add_products(left, right, first, last, out):
    """Add products of CSR rows with the rows ``first`` to ``last`` of a sorted CSC matrix."""
    row_starts, features, values = left
    column_starts, rows, factors = right
    n_features = len(column_starts) - 1
    lower, upper = np.empty(n_features, np.int64), np.empty(n_features, np.int64)
    for feature in range(n_features):
        stored = rows[column_starts[feature] : column_starts[feature + 1]]
        lower[feature] = column_starts[feature] + np.searchsorted(stored, first)
        upper[feature] = column_starts[feature] + np.searchsorted(stored, last)
    total = np.zeros(last - first)
    for i in range(len(out)):
        if row_starts[i] == row_starts[i + 1]:
            continue
        # Summed separately and in double precision: added one by one to the much larger values in
        # ``out``, each term would be rounded.
        total[:] = 0
        for p in range(row_starts[i], row_starts[i + 1]):
            feature, value = features[p], values[p]
            for q in range(lower[feature], upper[feature]):
                total[rows[q] - first] += value * factors[q]
        for j in range(len(total)):
            out[i, j] += total[j]

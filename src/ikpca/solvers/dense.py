"""Dense solver: eigendecomposition of K'.

It is the reference for the other solvers and shares no code with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

_Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class DenseSolution:
    """Leading eigenpairs of K', largest first, and the means used for centering.

    Parameters
    ----------
    eigenvalues : ndarray of shape (r,)
    eigenvectors : ndarray of shape (l, r)
    residuals : ndarray of shape (r,)
        ‖K'v − λv‖/λ₁.
    column_means : ndarray of shape (l,)
    grand_mean : float
    trace, squared_norm : float
        tr K' and ‖K'‖²_F.
    """

    eigenvalues: _Floats
    eigenvectors: _Floats
    residuals: _Floats
    column_means: _Floats
    grand_mean: float
    trace: float
    squared_norm: float


def solve_dense(K: _Floats, n_components: int | None = None) -> DenseSolution:
    """Center a copy of K (Günter 2006, eq. 5) and solve the kernel eigenvalue problem.

    Parameters
    ----------
    K : ndarray of shape (l, l)
        Not modified. Of an asymmetric matrix the lower triangle is used after centering.
    n_components : int, optional
        Number of leading eigenpairs; all by default.
    """
    column_means = K.mean(axis=0)
    grand_mean = float(column_means.mean())
    centered = K - column_means
    centered -= K.mean(axis=1)[:, None] - grand_mean
    order = len(K)
    first = 0 if n_components is None else max(order - n_components, 0)
    values, vectors = linalg.eigh(centered, subset_by_index=(first, order - 1))
    values, vectors = values[::-1], vectors[:, ::-1]
    return DenseSolution(
        eigenvalues=values,
        eigenvectors=vectors,
        residuals=_residuals(centered, values, vectors),
        column_means=column_means,
        grand_mean=grand_mean,
        trace=float(np.trace(centered)),
        squared_norm=float(np.einsum("ij,ij->", centered, centered)),
    )


def _residuals(centered: _Floats, values: _Floats, vectors: _Floats) -> _Floats:
    largest = float(np.abs(values).max(initial=0.0))
    defects: _Floats = np.linalg.norm(centered @ vectors - vectors * values, axis=0)
    return defects / largest if largest > 0 else np.zeros_like(defects)

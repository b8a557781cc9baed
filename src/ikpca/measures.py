"""How good a solution is: errors of the papers, residuals, orthonormality, angles."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

__all__ = [
    "excess_error",
    "orthonormality_defect",
    "principal_angles",
    "reconstruction_error",
    "relative_residuals",
]

_Floats = NDArray[np.floating[Any]]


class _CentredGram(Protocol):
    """What the measures read of K'."""

    def squared_norm(self) -> float: ...
    def multiply(self, V: _Floats) -> _Floats: ...


def reconstruction_error(
    gram: _CentredGram, projections: ArrayLike, norm_squared: float | None = None
) -> float:
    """E(A) = ‖K' − (AK')ᵀ(AK')‖_F (Günter 2006, eq. 22), without an l×l matrix.

    Parameters
    ----------
    gram : centred gram
        K'; in double precision, or the formula has a floor near 3e-6.
    projections : array of shape (r, l)
        Y = AK'.
    norm_squared : float, optional
        ‖K'‖², where it is known already.

    Returns
    -------
    float
        From E² = ‖K'‖² − 2 tr(Y K' Yᵀ) + ‖YYᵀ‖².
    """
    Y = np.asarray(projections, dtype=np.float64)
    total = gram.squared_norm() if norm_squared is None else norm_squared
    captured = float(np.einsum("il,li->", Y, gram.multiply(Y.T)))
    inner = Y @ Y.T
    return float(np.sqrt(max(total - 2 * captured + float(np.sum(inner * inner)), 0.0)))


def excess_error(
    gram: _CentredGram,
    projections: ArrayLike,
    eigenvalues: ArrayLike,
    norm_squared: float | None = None,
) -> float:
    """E/E_min − 1, with E²_min = ‖K'‖² − Σ λ_i² over the r exact leading eigenvalues.

    Where E_min is no more than 1e-10 ‖K'‖ the excess is undefined; E/‖K'‖ is returned instead.
    """
    total = gram.squared_norm() if norm_squared is None else norm_squared
    error = reconstruction_error(gram, projections, total)
    exact = np.asarray(eigenvalues, dtype=np.float64)
    minimum = np.sqrt(max(total - float(np.sum(exact * exact)), 0.0))
    if minimum <= 1e-10 * np.sqrt(total):
        return float(error / np.sqrt(total)) if total else 0.0
    return float(error / minimum - 1)


def orthonormality_defect(coefficients: ArrayLike, projections: ArrayLike) -> float:
    """max |AK'Aᵀ − I|: how far the components are from orthonormal in feature space."""
    A = np.asarray(coefficients, dtype=np.float64)
    Y = np.asarray(projections, dtype=np.float64)
    return float(np.abs(A @ Y.T - np.eye(len(A))).max())


def relative_residuals(
    coefficients: ArrayLike, projections: ArrayLike, eigenvalues: ArrayLike
) -> _Floats:
    """‖K'v_i − λ_i v_i‖ / λ_1 for the unit vectors v_i along the rows of A.

    Parameters
    ----------
    coefficients, projections : arrays of shape (r, l)
        A and AK'.
    eigenvalues : array of shape (r,)
        The estimates λ.
    """
    A = np.asarray(coefficients, dtype=np.float64)
    Y = np.asarray(projections, dtype=np.float64)
    values = np.asarray(eigenvalues, dtype=np.float64)
    norms = np.linalg.norm(A, axis=1)
    defects = np.linalg.norm(Y - values[:, None] * A, axis=1)
    scale = norms * np.abs(values).max(initial=0.0)
    return np.divide(defects, scale, out=np.zeros_like(defects), where=scale > 0)


def principal_angles(first: ArrayLike, second: ArrayLike) -> _Floats:
    """Angles between the subspaces spanned by the columns of two matrices, largest first.

    Examples
    --------
    >>> principal_angles([[1.0], [0.0]], [[0.0], [2.0]]).round(4)
    array([1.5708])
    """
    return linalg.subspace_angles(
        np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    )

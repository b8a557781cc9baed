"""Free accuracy: the best orthonormal components within the span of the rows at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

__all__ = ["rayleigh_ritz"]

_Floats = NDArray[np.floating[Any]]


def rayleigh_ritz(N: _Floats, S: _Floats, drop: float = 1e-12) -> tuple[_Floats, _Floats]:
    """Solve S v = λ N v with N = AK'Aᵀ and S = (AK')(AK')ᵀ.

    Parameters
    ----------
    N, S : ndarray of shape (r, r)
        Inner products of the components in feature space, and the same weighted by the covariance.
    drop : float
        Directions of N below this share of its largest are numerically not there.

    Returns
    -------
    eigenvalues : ndarray of shape (r,)
        Ritz values, descending; zero where a direction was dropped.
    T : ndarray of shape (r, r)
        A ← T A makes the components orthonormal and orders them; zero rows for dropped directions.
    """
    diagonal = np.diag(N)
    # Rows of very different length would hide a good direction behind a long one; rows that are
    # rounding noise must not be blown up to hide good ones.
    there = diagonal > drop * max(float(diagonal.max(initial=0.0)), 0.0)
    scale = np.sqrt(np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=there))
    lengths, Q = linalg.eigh(N * np.outer(scale, scale))
    kept = lengths > drop * max(float(lengths.max(initial=0.0)), 0.0)
    basis = scale[:, None] * Q[:, kept] / np.sqrt(lengths[kept])
    values, U = linalg.eigh(basis.T @ S @ basis)
    T = np.zeros_like(N)
    T[: kept.sum()] = (basis @ U[:, ::-1]).T
    eigenvalues = np.zeros(len(N), dtype=N.dtype)
    eigenvalues[: kept.sum()] = values[::-1]
    return eigenvalues, T * _continuing_signs(T)


def _continuing_signs(T: _Floats) -> _Floats:
    """Signs that keep a component that hardly turned from turning round."""
    return np.where(np.diag(T) < 0, -1.0, 1.0)[:, None]

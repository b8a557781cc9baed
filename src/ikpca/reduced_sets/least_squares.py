"""Coefficients on given rows that come nearest to vectors of feature space."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from ikpca.kernels import Floats

__all__ = ["least_squares", "unit_diagonal"]

#: Ridge on a gram of unit diagonal, so that coefficients stay small enough to compute with, and
#: the steps that then take out most of what the ridge costs.
_RIDGE, _REFINEMENTS = 1e-12, 2


def least_squares(gram: Floats, across: Floats) -> Floats:
    """C of shape (q, s) that minimises ‖u_i − Σ_k C_ik Φ(z_k)‖ for every vector.

    Parameters
    ----------
    gram : ndarray of shape (s, s)
        k(z_k, z_l); it may be singular, and for a kernel that is no inner product indefinite.
    across : ndarray of shape (q, s)
        ⟨u_i, Φ(z_k)⟩.
    """
    scales = unit_diagonal(gram)
    scaled = gram if (scales == 1).all() else gram * scales * scales[:, None]
    targets = across * scales
    ridged = scaled.copy()
    ridged.flat[:: len(ridged) + 1] += _RIDGE * len(ridged)
    try:
        factor = linalg.cho_factor(ridged, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return _on_positive_directions(scaled, targets) * scales
    found: Floats = linalg.cho_solve(factor, targets.T, check_finite=False).T
    for _ in range(_REFINEMENTS):
        rest = targets - found @ scaled
        found = found + linalg.cho_solve(factor, rest.T, check_finite=False).T
    return found * scales


def unit_diagonal(gram: Floats) -> Floats:
    """Factors that bring k(z, z) to one, and leave rows without an image as they are."""
    diagonal = np.sqrt(np.abs(np.diagonal(gram)))
    return 1 / np.where(diagonal > 0, diagonal, 1)


def _on_positive_directions(gram: Floats, targets: Floats) -> Floats:
    """Only where the gram is that of vectors with lengths."""
    values, vectors = linalg.eigh(gram, check_finite=False)
    there = values > _RIDGE * len(gram) * max(values[-1], 0)
    kept = vectors[:, there]
    return ((targets @ kept) / values[there]) @ kept.T

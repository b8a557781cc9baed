"""Inner products of tall matrices, summed in double precision a strip at a time."""

from __future__ import annotations

import numpy as np

from ikpca.gram import tiles
from ikpca.kernels import Floats

__all__ = ["inner"]

_STRIP = 8192


def inner(Q: Floats, Z: Floats) -> Floats:
    """QᵀZ for matrices of l rows; single-precision data never stand in double as a whole."""
    total = np.zeros((Q.shape[1], Z.shape[1]))
    for strip in tiles(len(Q), _STRIP):
        total += Q[strip].astype(np.float64, copy=False).T @ Z[strip].astype(np.float64, copy=False)
    return total

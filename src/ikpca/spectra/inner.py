"""Inner products of tall matrices, summed in double precision a strip at a time."""

from __future__ import annotations

import numpy as np

from ikpca.gram import SERIAL, Workers, tiles
from ikpca.kernels import Floats

__all__ = ["inner"]

_STRIP = 4096


def inner(Q: Floats, Z: Floats, workers: Workers = SERIAL) -> Floats:
    """QᵀZ for matrices of l rows; single-precision data never stand in double as a whole."""

    def part(strip: slice) -> Floats:
        return Q[strip].astype(np.float64, copy=False).T @ Z[strip].astype(np.float64, copy=False)

    total = np.zeros((Q.shape[1], Z.shape[1]))
    for share in workers.map(part, tiles(len(Q), _STRIP)):
        total += share
    return total

"""Rows whose images point most nearly along vectors of feature space."""

from __future__ import annotations

import numpy as np

from ikpca.kernels import Floats, RadialKernel
from ikpca.preimages import Expansion, PreimageMethod

__all__ = ["find_peaks"]

#: Searches per row where images differ in length: the scale that a vector is sought at depends on
#: the row found, and the row on the scale.
_SCALINGS = 2


def find_peaks(method: PreimageMethod, vectors: Expansion, n_starts: int) -> Floats:
    """A row z for every vector u with a large ⟨u, Φ(z)⟩² / k(z, z), all vectors at once.

    This is the share of ‖u‖² that a multiple βΦ(z) takes away. Each vector is sought from two of
    the first ``n_starts`` basis rows, the best with positive and the best with negative β, as the
    pre-image of u/β.
    """
    number = len(vectors.coefficients)
    products, own = vectors.products[:, :n_starts], vectors.diagonal[:n_starts]
    slopes = products / np.sqrt(np.where(own > 0, own, 1))
    begins = np.concatenate([slopes.argmax(axis=1), slopes.argmin(axis=1)])
    who = np.tile(np.arange(number), 2)
    rows, heights = vectors.basis[begins], products[who, begins]
    lengths = own[begins]
    repeats = 1 if isinstance(vectors.kernel, RadialKernel) else _SCALINGS
    for _ in range(repeats):
        there = np.flatnonzero((heights != 0) & (lengths > 0))
        scales = heights[there] / lengths[there]
        coordinates = np.zeros((len(there), number))
        coordinates[np.arange(len(there)), who[there]] = 1 / scales
        found = method.find(vectors, coordinates, rows[there])
        rows[there] = found.rows
        lengths[there] = vectors.kernel.diagonal(found.rows)
        apart = vectors.squared_lengths(coordinates) + lengths[there] - found.squared_distances
        heights[there] = apart * scales / 2
    gains = np.zeros(2 * number)
    np.divide(heights**2, lengths, out=gains, where=lengths > 0)
    better = gains[:number] >= gains[number:]
    return np.where(better[:, None], rows[:number], rows[number:])

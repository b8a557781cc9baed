"""The row whose image points most nearly along a vector of feature space."""

from __future__ import annotations

import numpy as np

from ikpca.kernels import Floats, RadialKernel
from ikpca.preimages import Expansion, PreimageMethod

__all__ = ["find_peak"]

#: Searches where images differ in length: the scale that a vector is sought at depends on the row
#: found, and the row on the scale.
_SCALINGS = 2


def find_peak(method: PreimageMethod, vector: Expansion, n_starts: int) -> Floats:
    """A row z with a large ⟨u, Φ(z)⟩² / k(z, z), the share of ‖u‖² that a multiple βΦ(z) explains.

    The vector is sought from two of the first ``n_starts`` basis rows, the best with positive and
    the best with negative β, as the pre-image of u/β.
    """
    products, own = vector.products[0, :n_starts], vector.diagonal[:n_starts]
    slopes = products / np.sqrt(np.where(own > 0, own, 1))
    begins = np.array([slopes.argmax(), slopes.argmin()])
    begins = begins[(products[begins] != 0) & (own[begins] > 0)]
    if not len(begins):
        return vector.basis[0]
    rows, heights, lengths = vector.basis[begins], products[begins], own[begins]
    for _ in range(1 if isinstance(vector.kernel, RadialKernel) else _SCALINGS):
        scales = heights / lengths
        coordinates = 1 / scales[:, None]
        found = method.find(vector, coordinates, rows)
        rows, lengths = found.rows, vector.kernel.diagonal(found.rows)
        # ⟨u, Φ(z)⟩ from ‖u/β − Φ(z)‖².
        twice = vector.squared_lengths(coordinates) + lengths - found.squared_distances
        heights = scales * twice / 2
    gains = np.divide(heights**2, lengths, out=np.zeros_like(heights), where=lengths > 0)
    return rows[gains.argmax()]

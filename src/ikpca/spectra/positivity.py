"""Eigenvalues of a matrix that ought to be positive semi-definite."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import InvalidInput

__all__ = ["nonnegative_eigenvalues"]


def nonnegative_eigenvalues(eigenvalues: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Set rounding noise to zero and refuse a truly negative eigenvalue.

    The thresholds are those of scikit-learn: a negative value counts above 1e-5 of the largest
    (5e-3 in single precision), a positive one below 1e-12 of it (2e-7) is noise.
    """
    single = eigenvalues.dtype == np.float32
    largest = eigenvalues.max(initial=0.0)
    smallest = eigenvalues.min(initial=0.0)
    significant = max((5e-3 if single else 1e-5) * largest, 1e-6 if single else 1e-10)
    if smallest < -significant:
        share = f"{-smallest / largest:g} of the maximum positive" if largest > 0 else "all of them"
        raise InvalidInput(
            f"There are significant negative eigenvalues ({share}): the kernel matrix is not "
            "positive semi-definite; ask for fewer components or choose another kernel."
        )
    noise = eigenvalues < (2e-7 if single else 1e-12) * largest
    return np.where(noise | (eigenvalues < 0), 0, eigenvalues).astype(eigenvalues.dtype)

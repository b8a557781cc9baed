"""One sign for each component, whatever the solver."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["deterministic_signs"]


def deterministic_signs(projections: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """±1 per row, so that its entry of largest magnitude becomes positive, as in scikit-learn.

    Examples
    --------
    >>> deterministic_signs(np.array([[1.0, -3.0], [2.0, 1.0]]))
    array([-1.,  1.])
    """
    largest = projections[np.arange(len(projections)), np.abs(projections).argmax(axis=1)]
    return np.where(largest < 0, -1, 1).astype(projections.dtype)

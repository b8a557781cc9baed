"""The weights of the samples that still move."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ikpca.kernels import Floats

__all__ = ["moving_weights"]


def moving_weights(weights: Floats) -> Callable[[NDArray[np.intp]], Floats]:
    """Rows of ``weights`` by index, copied only when there are fewer than the last time."""
    last = weights

    def of(who: NDArray[np.intp]) -> Floats:
        nonlocal last
        if len(who) < len(last):
            last = weights[who]
        return last

    return of

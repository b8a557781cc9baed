"""Components of rows of two numbers as surfaces over the plane, to draw contour lines of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from ikpca.kernels import Floats

__all__ = ["surfaces"]

#: Places per side of the grid.
_SIDE = 100
#: Around the rows.
_MARGIN = 0.2


class Fitted(Protocol):
    """What can be looked at from above."""

    def transform(self, X: Floats) -> Floats:
        """Projections of rows."""


def surfaces(X: Floats, models: Mapping[str, Fitted], n_components: int) -> dict[str, Floats]:
    """Projections on a grid around the rows, by the name of the model.

    Signs of components are arbitrary: all models take those of the first.

    Parameters
    ----------
    X : array of shape (l, 2)
    models : mapping from str to fitted estimator
    n_components : int
        The leading components to look at.

    Returns
    -------
    dict from str to array
        ``x`` and ``y``, the sides of the grid; ``points``, the rows; and every model's surfaces,
        of shape (len(y), len(x), n_components).
    """
    low, high = X.min(axis=0) - _MARGIN, X.max(axis=0) + _MARGIN
    x, y = (np.linspace(*ends, _SIDE) for ends in zip(low, high, strict=True))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    heights = {name: model.transform(grid)[:, :n_components] for name, model in models.items()}
    first = next(iter(heights.values()))
    found = {"x": x, "y": y, "points": X}
    for name, values in heights.items():
        signs = np.where(np.sum(values * first, axis=0) < 0, -1.0, 1.0)
        found[name] = (signs * values).reshape(_SIDE, _SIDE, n_components)
    return found

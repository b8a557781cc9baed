"""Figure 2 of Chin and Suter 2006: lines of constant projection, batch beside streamed."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ikpca.figures.styles import GHOST, INK, MUTED
from ikpca.kernels import Floats

__all__ = ["contours"]

_SIDE = 120
_LEVELS = 11
#: Rows that are drawn beneath; more would hide the lines.
_SHOWN = 1000


def contours(X: Floats, models: dict[str, Any], n_components: int = 3) -> Figure:
    """One row of panels per model, one column per component; the same levels and signs in all.

    Parameters
    ----------
    X : ndarray of shape (l, 2)
    models : dict from str to fitted estimator
        The first one's signs count.
    """
    low, high = X.min(axis=0) - 0.1, X.max(axis=0) + 0.1
    x, y = (np.linspace(low[axis], high[axis], _SIDE) for axis in (0, 1))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    heights = {name: model.transform(grid)[:, :n_components] for name, model in models.items()}
    first = next(iter(heights.values()))
    figure = Figure(figsize=(3.2 * n_components, 2.9 * len(models)), layout="constrained")
    panels = figure.subplots(len(models), n_components, sharex=True, sharey=True, squeeze=False)
    for line, (name, values) in zip(panels, heights.items(), strict=True):
        signs = np.sign(np.sum(values * first, axis=0))
        for number, axes in enumerate(line):
            surface = (signs[number] * values[:, number]).reshape(_SIDE, _SIDE)
            levels = np.linspace(first[:, number].min(), first[:, number].max(), _LEVELS)
            axes.scatter(*X[:_SHOWN].T, s=3, color=GHOST, linewidths=0)
            axes.contour(x, y, surface, levels=levels, cmap="viridis", linewidths=1.4)
            axes.set_title(f"{name}, component {number + 1}", fontsize=10, loc="left", color=INK)
            axes.tick_params(labelsize=8, colors=MUTED)
            axes.spines[["top", "right"]].set_visible(False)
    return figure

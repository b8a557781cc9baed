"""Lines of equal projection in the plane: figure 1 of Kim 2003, figure 2 of Chin and Suter 2006."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ikpca.experiments.results_folder import Results
from ikpca.figures.styles import GHOST, INK, MUTED
from ikpca.kernels import Floats

__all__ = ["component_contours", "contours"]

_LEVELS = 11
#: Rows that are drawn beneath; more would hide the lines.
_SHOWN = 1000
_NOT_MODELS = ("x", "y", "points")


def component_contours(results: Results, *, part: str) -> Figure:
    """The surfaces that a part of an experiment has left."""
    return contours(results.arrays[part])


def contours(surfaces: Mapping[str, Floats]) -> Figure:
    """One row of panels per model, one column per component; the first model's levels in all.

    Parameters
    ----------
    surfaces : mapping from str to array
        From :func:`ikpca.experiments.plane.surfaces`.
    """
    models = {name: heights for name, heights in surfaces.items() if name not in _NOT_MODELS}
    first = next(iter(models.values()))
    count = first.shape[2]
    # A single component leaves room for the models side by side.
    shape = (len(models), count) if count > 1 else (1, len(models))
    figure = Figure(figsize=(3.2 * shape[1], 2.9 * shape[0]), layout="constrained")
    panels = figure.subplots(*shape, sharex=True, sharey=True, squeeze=False).ravel()
    places = [(name, number) for name in models for number in range(count)]
    for axes, (name, number) in zip(panels, places, strict=True):
        levels = np.linspace(first[:, :, number].min(), first[:, :, number].max(), _LEVELS)
        axes.scatter(*surfaces["points"][:_SHOWN].T, s=3, color=GHOST, linewidths=0)
        height = models[name][:, :, number]
        if height.max() > levels[0] and height.min() < levels[-1] and np.ptp(height) > 0:
            axes.contour(surfaces["x"], surfaces["y"], height, levels=levels, cmap="viridis",
                         linewidths=1.4)  # fmt: skip
        axes.set_title(f"{name}, component {number + 1}", fontsize=10, loc="left", color=INK)
        axes.tick_params(labelsize=8, colors=MUTED)
        axes.spines[["top", "right"]].set_visible(False)
    return figure

"""Lines of equal projection in the plane."""

from __future__ import annotations

from matplotlib.figure import Figure

from ikpca.experiments.results_folder import Results
from ikpca.figures.styles import INK, LINES

__all__ = ["component_contours"]


def component_contours(results: Results) -> Figure:
    """One row per method, one column per component, the points beneath."""
    arrays = next(iter(results.arrays.values()))
    methods = [name for name in arrays if name not in ("x", "y", "points")]
    count = arrays[methods[0]].shape[2]
    figure = Figure(figsize=(2.7 * count, 2.5 * len(methods)), layout="constrained")
    places = figure.subplots(len(methods), count, squeeze=False, sharex=True, sharey=True)
    points = arrays["points"]
    for line, method in enumerate(methods):
        for number in range(count):
            axes = places[line, number]
            axes.plot(*points.T, ".", color="0.75", markersize=2, zorder=1)
            axes.contour(arrays["x"], arrays["y"], arrays[method][:, :, number], levels=10,
                         colors=LINES[line][0], linewidths=1.0)  # fmt: skip
            axes.set_title(f"{method}, component {number + 1}", fontsize=9, color=INK)
            axes.spines[["top", "right"]].set_visible(False)
    return figure

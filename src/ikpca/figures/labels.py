"""Names beside the ends of curves, in place of a legend."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

__all__ = ["label_ends", "spread"]

_FONT_POINTS = 10
_POINTS_PER_INCH = 72


def label_ends(figure: Figure, axes: Axes) -> None:
    """Name each curve at its last point; names that would touch are moved apart."""
    named = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    curves = [line for line in named if np.isfinite(line.get_ydata()).any()]
    if not curves:
        return
    ends = [np.asarray(line.get_xydata())[np.isfinite(line.get_ydata())][-1] for line in curves]
    # Only a finished layout knows how high the ends stand.
    figure.draw_without_rendering()
    heights = np.array([axes.transData.transform(end)[1] for end in ends])
    pixels_per_point = figure.dpi / _POINTS_PER_INCH
    wanted = spread(heights, gap=1.25 * _FONT_POINTS * pixels_per_point)
    for line, end, shift in zip(curves, ends, wanted - heights, strict=True):
        axes.annotate(
            str(line.get_label()),
            end,
            xytext=(7, shift / pixels_per_point),
            textcoords="offset points",
            va="center",
            fontsize=_FONT_POINTS,
            color=line.get_color(),
            annotation_clip=False,
        )


def spread(heights: NDArray[np.float64], gap: float) -> NDArray[np.float64]:
    """Move heights as little as it takes to be ``gap`` apart, in their order.

    Examples
    --------
    >>> spread(np.array([3.0, 0.0, 3.0]), gap=1.0)
    array([2.5, 0. , 3.5])
    """
    order = np.argsort(heights, kind="stable")
    # In units shifted by the gaps, "apart" is "not decreasing": pool neighbours that are not.
    shifted = heights[order] - gap * np.arange(len(heights))
    pools: list[list[float]] = []
    for value in shifted:
        pools.append([float(value)])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    level = np.concatenate([np.full(len(pool), np.mean(pool)) for pool in pools])
    result = np.empty_like(heights)
    result[order] = level + gap * np.arange(len(heights))
    return result

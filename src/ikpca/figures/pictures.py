"""Pictures side by side."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from ikpca.figures.styles import INK
from ikpca.kernels import Floats

__all__ = ["picture_grid"]


def picture_grid(rows: Sequence[Sequence[tuple[str, Floats]]], side: float = 2.4) -> Figure:
    """Pictures in rows, each with a caption above it; pixels from 0 to 1, grey or colour.

    Parameters
    ----------
    rows : sequence of sequences of (caption, image)
        As many pictures in every row.
    side : float
        Width of a picture in inches.
    """
    height, width = rows[0][0][1].shape[:2]
    size = (side * len(rows[0]), len(rows) * (side * height / width + 0.25))
    figure = Figure(figsize=size, layout="constrained")
    places = figure.subplots(len(rows), len(rows[0]), squeeze=False)
    for row, axes in zip(rows, places, strict=True):
        for (caption, image), place in zip(row, axes, strict=True):
            place.imshow(image.clip(0, 1), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            place.set_title(caption, fontsize=8, color=INK)
            place.set_axis_off()
    return figure

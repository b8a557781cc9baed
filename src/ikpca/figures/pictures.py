"""Pictures side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ikpca.figures.styles import INK, MUTED

__all__ = ["picture_grid"]

_INCHES = 2.1
_TITLE_INCHES = 0.34


def picture_grid(
    rows: Sequence[Sequence[ArrayLike]],
    titles: Sequence[str],
    notes: Sequence[Sequence[str]] | None = None,
) -> Figure:
    """Grey images in rows and columns, all from black 0 to white 1, pixels unblurred.

    Parameters
    ----------
    rows : sequence of sequences of arrays (height, width)
        Images of one row are drawn at one size, whatever their resolution.
    titles : sequence of str
        Above each column.
    notes : sequence of sequences of str, optional
        Below each picture.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.figures import picture_grid
    >>> len(picture_grid([[np.zeros((8, 8)), np.ones((8, 8))]], ["dark", "light"]).axes)
    2
    """
    shapes = [np.shape(row[0]) for row in rows]
    heights = [_INCHES * shape[0] / shape[1] + _TITLE_INCHES for shape in shapes]
    figure = Figure(figsize=(_INCHES * len(titles), sum(heights)), layout="constrained")
    places = figure.subplots(len(rows), len(titles), squeeze=False, height_ratios=heights)
    for line, row in enumerate(rows):
        for column, picture in enumerate(row):
            axes = places[line, column]
            axes.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="none")
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
            if line == 0:
                axes.set_title(titles[column], fontsize=9, color=INK)
            if notes is not None:
                axes.set_xlabel(notes[line][column], fontsize=8, color=MUTED, labelpad=2)
    return figure

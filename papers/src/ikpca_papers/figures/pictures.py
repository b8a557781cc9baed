"""Grids of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from ikpca.plotting import MUTED_COLOR, TEXT_COLOR
from ikpca_papers.runner import Results

_INCHES = 2.1
_TITLE_INCHES = 0.34


def picture_grid(
    rows: Sequence[Sequence[ArrayLike]],
    titles: Sequence[str],
    notes: Sequence[Sequence[str]] | None = None,
) -> Figure:
    """Draw grayscale images in rows and columns, from black 0 to white 1, without interpolation.

    Parameters
    ----------
    rows : sequence of sequences of arrays (height, width)
        Images of one row are drawn at the same size.
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
    >>> from ikpca_papers.figures import picture_grid
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
                axes.set_title(titles[column], fontsize=9, color=TEXT_COLOR)
            if notes is not None:
                axes.set_xlabel(notes[line][column], fontsize=8, color=MUTED_COLOR, labelpad=2)
    return figure


#: Images per row.
_PER_ROW = 5


def images_with_numbers(
    results: Results, *, table: str, number: str, unit: str, rows: str | None = None,
    methods: Sequence[str] | None = None,
) -> Figure:  # fmt: skip
    """Draw images with a number below each, such as its signal-to-noise ratio.

    Parameters
    ----------
    results : Results
        Its arrays are images by method, or by ``row/method``.
    table, number, unit : str
        Table and column of the numbers, and their unit.
    rows : str, optional
        The column that distinguishes rows of images.
    methods : sequence of str, optional
        All by default.
    """
    images = {name: image for name, image in _all_arrays(results).items()
              if methods is None or name.split("/")[-1] in methods}  # fmt: skip
    notes = {
        (f"{row[rows]}/" if rows else "") + str(row["method"]): f"{row[number]:.2f} {unit}"
        for row in results.tables[table]
        if row.get(number) is not None
    }
    names = list(images)
    per_row = len(names) // len({name.split("/")[0] for name in names}) if rows else _PER_ROW
    blank = np.ones_like(images[names[0]])
    grid, below = [], []
    for start in range(0, len(names), per_row):
        chosen = names[start : start + per_row]
        missing = per_row - len(chosen)
        grid.append([*(images[name] for name in chosen), *[blank] * missing])
        below.append([_caption(name, notes, rows) for name in chosen] + [""] * missing)
    return picture_grid(grid, [""] * per_row, below)


def _caption(name: str, notes: Mapping[str, str], rows: str | None) -> str:
    short = name.rsplit("/", maxsplit=1)[-1] if rows else name
    return f"{short}\n{notes[name]}" if name in notes else short


def _all_arrays(results: Results) -> dict[str, NDArray[Any]]:
    return {name: array for arrays in results.arrays.values() for name, array in arrays.items()}


def face_rows(results: Results, *, part: str, methods: Sequence[str]) -> Figure:
    """Draw one row per test face, one column per method and number of components of a part."""
    images = {name.split("/")[1]: faces for name, faces in results.arrays[part].items()}
    chosen = {name: faces for method in methods for name, faces in images.items()
              if name.rsplit(", ", 1)[0] == method}  # fmt: skip
    count = len(next(iter(chosen.values())))
    rows = [[faces[number] for faces in chosen.values()] for number in range(count)]
    return picture_grid(rows, [name.replace(", ", "\n") for name in chosen])


def component_images(results: Results) -> Figure:
    """Draw the components of every part, with the same methods in the same order."""
    sheets = {part: arrays for part, arrays in results.arrays.items() if arrays}
    methods = list(next(iter(sheets.values())))
    rows = [[_sheet(arrays[method]) for method in methods] for arrays in sheets.values()]
    notes = [[part] * len(methods) for part in sheets]
    return picture_grid(rows, methods, notes)


def _sheet(pictures: NDArray[Any], across: int = 5) -> NDArray[Any]:
    """Tile images in rows, with white lines between them."""
    framed = np.pad(pictures, ((0, 0), (0, 1), (0, 1)), constant_values=1.0)
    count = len(framed) // across * across
    height, width = framed.shape[1:]
    tiles = framed[:count].reshape(-1, across, height, width)
    return tiles.swapaxes(1, 2).reshape(-1, across * width)

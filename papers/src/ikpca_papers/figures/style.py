"""Averages, images and files shared by the figures."""

from __future__ import annotations

import io
from collections.abc import Mapping
from statistics import fmean
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ikpca_papers.claims import Rows


def png(figure: Figure, dpi: int = 200) -> bytes:
    """Render without a display and without pyplot's global state.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    dpi : int, default=200
        Dots per inch.

    Returns
    -------
    bytes
        Of a PNG file.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from ikpca_papers.figures import png
    >>> png(Figure(figsize=(1, 1)), dpi=20)[1:4]
    b'PNG'
    """
    image = io.BytesIO()
    FigureCanvasAgg(figure)
    figure.savefig(image, format="png", dpi=dpi)
    return image.getvalue()


def panels(rows: Rows, column: str | None) -> Mapping[str, Rows]:
    """Rows by what a column holds, in the order of the table; one nameless panel without it."""
    if column is None:
        return {"": rows}
    names = dict.fromkeys(str(row[column]) for row in rows)
    return {name: [row for row in rows if str(row[column]) == name] for name in names}


def averaged(rows: Rows, x: str, y: str, series: str) -> Mapping[str, list[tuple[float, float]]]:
    """Points of every series, the mean over all rows with the same x.

    Examples
    --------
    >>> rows = [{"m": "kha", "pass": 1, "e": 2.0}, {"m": "kha", "pass": 1, "e": 4.0}]
    >>> averaged(rows, "pass", "e", "m")
    {'kha': [(1.0, 3.0)]}
    """
    gathered: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        place, value = _number(row.get(x)), _number(row.get(y))
        if place is not None and value is not None:
            gathered.setdefault(str(row[series]), {}).setdefault(place, []).append(value)
    return {
        name: [(place, fmean(values)) for place, values in sorted(points.items())]
        for name, points in gathered.items()
    }


def axis_words(column: str) -> str:
    """What stands below an axis of this column."""
    return {"pass": "Passes over the data", "rows": "Rows of the stream"}.get(column, column)


def _number(cell: Any) -> float | None:
    return float(cell) if isinstance(cell, int | float) else None

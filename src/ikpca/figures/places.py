"""Where a drawing goes when nobody says so."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

__all__ = ["new_figure", "place_for"]


def new_figure(**arguments: Any) -> Any:
    """Of pyplot, so that notebooks and ``plt.show()`` find it."""
    from matplotlib import pyplot

    return pyplot.figure(layout="constrained", **arguments)


def place_for(ax: Axes | None) -> Axes:
    """The axes themselves, or new ones in a figure of their own."""
    return new_figure(figsize=(6.0, 3.8)).add_subplot() if ax is None else ax

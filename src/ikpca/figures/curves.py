"""Errors over passes, one panel per kernel or setting."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ikpca.experiments.results_folder import Results
from ikpca.experiments.specification import Curves
from ikpca.figures.averages import averaged, axis_words, panels
from ikpca.figures.labels import label_ends
from ikpca.figures.styles import INK, LINES, MUTED

__all__ = ["learning_curves"]


def learning_curves(
    results: Results,
    curves: Curves,
    *,
    y: str | None = None,
    label: str | None = None,
    log: bool = True,
    level: str | None = None,
    until: int | None = None,
) -> Figure:
    """Draw the table of curves.

    Parameters
    ----------
    results : Results
    curves : Curves
        Which columns.
    y, label : str, optional
        Another column than the one of ``curves``, and its name.
    log : bool
        Whether the vertical axis is logarithmic.
    level : str, optional
        A method of the table ``levels`` to draw as a horizontal line.
    until : int, optional
        The last pass to show.
    """
    rows = results.tables[curves.table]
    if until is not None:
        rows = [row for row in rows if float(row[curves.x] or 0) <= until]
    parts = panels(rows, curves.panel)
    figure = Figure(figsize=(4.6 * len(parts) + 1.6, 4.0), layout="constrained")
    places = figure.subplots(1, len(parts), squeeze=False)[0]
    for axes, (name, part) in zip(places, parts.items(), strict=True):
        lines = averaged(part, curves.x, y or curves.y, curves.series)
        for (series, points), (colour, dashes) in zip(lines.items(), LINES * 2, strict=False):
            passes, values = np.array(points).T
            # A logarithm has no place for what rounding leaves at or below zero.
            shown = np.where(values > 0, values, np.nan) if log else values
            axes.plot(passes, shown, color=colour, linestyle=dashes, linewidth=1.8, label=series)
        _dress(axes, name, curves.x, label or curves.label, log)
        if level is not None:
            _level(axes, results, level, y or curves.y)
        label_ends(figure, axes)
    return figure


def _dress(axes: Axes, name: str, x: str, label: str, log: bool) -> None:
    if log:
        axes.set_yscale("log")
    axes.set_title(name, loc="left", fontweight="bold", color=INK)
    axes.set_xlabel(axis_words(x))
    axes.set_ylabel(label)
    axes.xaxis.set_major_locator(
        MaxNLocator(nbins=6, integer=True, min_n_ticks=2, steps=[1, 2, 5, 10])
    )
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def _level(axes: Axes, results: Results, method: str, column: str) -> None:
    for row in results.tables["levels"]:
        value: Any = row.get(column)
        if row.get("method") == method and value is not None:
            axes.axhline(value, color=MUTED, linewidth=1, linestyle="dotted")
            axes.annotate(method, (0, value), xycoords=("axes fraction", "data"), xytext=(4, 3),
                          textcoords="offset points", fontsize=9, color=MUTED)  # fmt: skip

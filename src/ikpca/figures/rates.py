"""Rates of the same splits under several treatments, side by side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ikpca.experiments.results_folder import Results
from ikpca.figures.averages import panels
from ikpca.figures.styles import GHOST, INK, LINES

__all__ = ["split_rates"]

_HALF_BAR = 0.18


def split_rates(
    results: Results, *, table: str, panel: str, columns: Mapping[str, str], ylabel: str
) -> Figure:
    """One panel per value of a column, one place per treatment: pairs stay visible as lines.

    Parameters
    ----------
    results : Results
    table, panel : str
        Where the rates stand, and the column that tells panels apart.
    columns : mapping from str to str
        The treatments, and how to call them.
    ylabel : str
    """
    parts = panels(results.tables[table], panel)
    figure = Figure(figsize=(3.4 * len(parts) + 0.6, 3.6), layout="constrained")
    axes_of = figure.subplots(1, len(parts), sharey=True, squeeze=False)[0]
    places = np.arange(len(columns))
    for axes, (name, rows) in zip(axes_of, parts.items(), strict=True):
        rates = np.array([[float(row[column] or 0) for column in columns] for row in rows])
        axes.plot(places, rates.T, color=GHOST, linewidth=1, zorder=1)
        axes.plot(places, rates.T, "o", color=LINES[0][0], markersize=4, zorder=2)
        axes.hlines(rates.mean(axis=0), places - _HALF_BAR, places + _HALF_BAR,
                    color=LINES[3][0], linewidth=2.5, zorder=3)  # fmt: skip
        axes.set_xticks(places, list(columns.values()), fontsize=9)
        axes.set_xlim(-0.5, len(columns) - 0.5)
        axes.set_title(name, loc="left", fontweight="bold", fontsize=10, color=INK)
        axes.grid(axis="y", color="0.9", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    axes_of[0].set_ylabel(ylabel)
    return figure

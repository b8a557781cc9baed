"""Figures over a growing number, on logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, NullLocator

from ikpca.experiments.growth import exponent
from ikpca.experiments.results_folder import Results
from ikpca.figures.averages import averaged
from ikpca.figures.labels import label_ends
from ikpca.figures.styles import INK, LINES

__all__ = ["growth_lines"]


def growth_lines(
    results: Results,
    *,
    table: str,
    x: str,
    y: str | Sequence[str],
    xlabel: str,
    ylabel: str,
    names: Sequence[str] = (),
    series: str | None = None,
    fit: bool = True,
) -> Figure:
    """One line per column ``y``, or per value of the column ``series``; exponents where fitted."""
    columns = [y] if isinstance(y, str) else list(y)
    rows = results.tables[table]
    if series is not None:
        lines = dict(averaged(rows, x, columns[0], series))
    else:
        shown = names or [""] * len(columns)
        marked = [{**row, "": name} for name in shown for row in rows]
        lines = {
            name: averaged([row for row in marked if row[""] == name], x, column, "")[name]
            for name, column in zip(shown, columns, strict=True)
        }
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    for (name, points), (colour, dashes) in zip(lines.items(), LINES * 3, strict=False):
        places, values = np.array(points).T
        text = name
        if fit and len(places) > 1 and (values > 0).all():
            text = f"{name}, exponent {exponent(list(places), list(values)):.2f}".lstrip(", ")
        axes.plot(places, values, marker="o", color=colour, linestyle=dashes, label=text)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    at = sorted({place for points in lines.values() for place, _ in points})
    axes.set_xticks(at, [f"{place:,.0f}" for place in at], fontsize=8)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.4)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(colors=INK)
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    label_ends(figure, axes)
    return figure

"""Batch beside stream, from the arrays and tables of a result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from ikpca.experiments.results_folder import Results
from ikpca.figures.averages import panels
from ikpca.figures.styles import INK, LINES, MUTED

__all__ = ["projection_pairs", "spectra"]

_WAYS = ("batch", "streamed")


def projection_pairs(results: Results, *, pairs: Sequence[int] = (1, 3, 5)) -> Figure:
    """Every data set twice, pairs of components across, coloured along the manifold."""
    lines = [(name, way) for name in results.arrays for way in _WAYS]
    figure = Figure(figsize=(2.6 * len(pairs), 2.3 * len(lines)), layout="constrained")
    places = figure.subplots(len(lines), len(pairs), squeeze=False)
    for line, (name, way) in zip(places, lines, strict=True):
        arrays = results.arrays[name]
        for axes, first in zip(line, pairs, strict=True):
            across, up = arrays[way][:, first - 1], arrays[way][:, first]
            axes.scatter(across, up, c=arrays["place"], cmap="viridis", s=5, linewidths=0)
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_color(MUTED)
            axes.set_title(f"{first} and {first + 1}", fontsize=9, color=INK)
        line[0].set_ylabel(f"{name}, {way}", color=INK)
    return figure


def spectra(results: Results) -> Figure:
    """Singular values over the first; lines of batch, circles of the stream."""
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    tables = panels(results.tables["correlations"], "data")
    for (name, rows), (colour, dashes) in zip(tables.items(), LINES, strict=False):
        numbers = np.arange(1, len(rows) + 1)
        batch, streamed = (
            np.array([row[column] for row in rows], dtype=np.float64)
            for column in ("eigenvalue", "streamed_eigenvalue")
        )
        axes.plot(numbers, np.sqrt(batch / batch[0]), color=colour, linestyle=dashes,
                  label=f"{name}, batch")  # fmt: skip
        axes.plot(numbers, np.sqrt(streamed / batch[0]), color=colour, marker="o",
                  fillstyle="none", linestyle="none", label=f"{name}, streamed")  # fmt: skip
    axes.set(xlabel="Component", ylabel="Singular value over the first", ylim=(0, None))
    axes.legend(frameon=False, fontsize=9)
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure

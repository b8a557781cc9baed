"""Figures 3 and 4 of Chin and Suter 2006: eigenspectra, and projections batch beside streamed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from ikpca.experiments.manifolds import Manifold
from ikpca.figures.styles import INK, LINES, MUTED, dress

__all__ = ["projections_plot", "spectra_plot"]


def spectra_plot(found: Sequence[Manifold]) -> Figure:
    """Singular values over the first, lines of batch and markers of the stream."""
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for manifold, (colour, dashes) in zip(found, LINES, strict=False):
        batch = np.sqrt(manifold.eigenvalues / manifold.eigenvalues[0])
        mine = np.sqrt(manifold.streamed_eigenvalues / manifold.eigenvalues[0])
        axes.plot(
            np.arange(1, len(batch) + 1), batch, color=colour, linestyle=dashes,
            label=f"{manifold.name}, batch",
        )  # fmt: skip
        axes.plot(
            np.arange(1, len(mine) + 1), mine, color=colour, marker="o", markersize=4,
            fillstyle="none", linestyle="none", label=f"{manifold.name}, streamed",
        )  # fmt: skip
    axes.set(xlabel="Component", ylabel="Singular value over the first", ylim=(0, None))
    axes.legend(frameon=False, fontsize=9)
    dress(axes, "Eigenspectra")
    return figure


def projections_plot(found: Manifold, n_components: int = 10) -> Figure:
    """Pairs of components as scatter plots, coloured along the manifold."""
    pairs = [(first, first + 1) for first in range(0, n_components, 2)]
    figure = Figure(figsize=(2.3 * len(pairs), 4.8), layout="constrained")
    panels = figure.subplots(2, len(pairs), sharex="col", sharey="col")
    for line, name in zip(panels, ("batch", "streamed"), strict=True):
        projections = getattr(found, name)
        for axes, (across, up) in zip(line, pairs, strict=True):
            axes.scatter(
                projections[:, across], projections[:, up], c=found.place, cmap="viridis", s=5,
                linewidths=0,
            )  # fmt: skip
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_color(MUTED)
            axes.set_title(f"{across + 1} and {up + 1}", fontsize=9, color=INK)
        line[0].set_ylabel(name, color=INK)
    figure.suptitle(
        f"{found.name}: projections onto pairs of components", x=0.01, ha="left",
        fontweight="bold", fontsize=11, color=INK,
    )  # fmt: skip
    return figure

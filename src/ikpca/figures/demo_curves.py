"""Excess error over passes."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ikpca.experiments import DemoResult, Run
from ikpca.figures.labels import label_ends
from ikpca.figures.styles import INK, LINES, MUTED, Dashes

__all__ = ["demo_convergence"]


def demo_convergence(result: DemoResult) -> Figure:
    """One curve per iterative method, labelled where it ends.

    Parameters
    ----------
    result : DemoResult
        Of ``run_demo``, which ``ikpca demo`` calls.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = Figure(figsize=(7.0, 4.4), layout="constrained")
    axes = figure.add_subplot()
    for run, (colour, dashes) in zip(result.iterative, LINES, strict=False):
        _curve(axes, run, colour, dashes)
    _dress(axes, result)
    label_ends(figure, axes)
    return figure


def _curve(axes: Axes, run: Run, colour: str, dashes: Dashes) -> None:
    errors = np.array(run.excess_errors)
    # A logarithm has no place for what rounding leaves at or below zero.
    errors[errors <= 0] = np.nan
    passes = np.arange(1, len(errors) + 1)
    axes.plot(passes, errors, color=colour, linestyle=dashes, linewidth=1.8, label=run.label)


def _dress(axes: Axes, result: DemoResult) -> None:
    spec = result.spec
    axes.set_yscale("log")
    axes.set_xlim(1 if spec.passes > 1 else 0.5, max(spec.passes, 1.5))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=2))
    axes.set_xlabel("Passes over the data")
    axes.set_ylabel("Excess error  $E\\,/\\,E_{\\mathrm{min}} - 1$")
    axes.set_title(
        "Convergence to the exact components", loc="left", fontweight="bold", color=INK, pad=22
    )
    axes.text(
        0,
        1.025,
        f"Digits, {spec.rows} × {result.features}; Gaussian kernel, σ = {spec.sigma:g}; "
        f"{spec.components} components; seed {spec.seed}",
        transform=axes.transAxes,
        fontsize=9,
        color=MUTED,
    )
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)

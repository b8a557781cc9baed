"""Figures of the scale benchmarks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from benchmarks.contestants import ScaleRow
from benchmarks.growth_measures import GrowthRow
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ikpca.plotting import INK, LINES, MUTED, style_axes
from ikpca_papers.measures import exponent

_OURS, _THEIRS = LINES[0][0], LINES[3][0]
_OVER_LINES = {"boxstyle": "square,pad=0.05", "facecolor": "white", "edgecolor": "none"}


def error_against_time(rows: Sequence[ScaleRow], subtitle: str) -> Figure:
    """One point per contestant, below and left is better; ours and others in colours of their own.

    A point's name stands beside it, so no legend needs to be matched.
    """
    figure = Figure(figsize=(7.0, 4.6), layout="constrained")
    axes = figure.add_subplot()
    # A logarithm has no place for an error that rounding leaves at or below zero.
    shown = [row for row in rows if row.excess_error > 0]
    for number, row in enumerate(shown):
        ours = row.name.startswith("ikpca")
        axes.plot(
            row.seconds, row.excess_error, marker="o" if ours else "s", linestyle="none",
            color=_OURS if ours else _THEIRS,
        )  # fmt: skip
        near = [other for other in shown if other is not row and _close(row, other)]
        # To the left of its point, where the name would run over the next one.
        leftwards = any(other.seconds > row.seconds for other in near)
        below = any(other in near for other in shown[:number])
        axes.annotate(
            row.name, (row.seconds, row.excess_error), ha="right" if leftwards else "left",
            xytext=(-6 if leftwards else 6, -12 if below else 3), textcoords="offset points",
            fontsize=8, color=INK,
        )  # fmt: skip
    axes.set_xlabel("Seconds")
    axes.set_ylabel("Excess error  $E\\,/\\,E_{\\mathrm{min}} - 1$")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(x=0.3, y=0.1)
    style_axes(axes, "Accuracy and what it costs", subtitle)
    return figure


def _close(row: ScaleRow, other: ScaleRow) -> bool:
    """Whether two names would cover each other."""
    across = abs(np.log(row.seconds / other.seconds)) < np.log(3)
    return bool(across and abs(np.log(row.excess_error / other.excess_error)) < np.log(4))


def growth_plot(rows: Sequence[GrowthRow], subtitle: str) -> Figure:
    """Seconds per pass and peak memory over l, with the fitted lines and their exponents."""
    figure = Figure(figsize=(8.0, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    sizes = [row.rows for row in rows]
    _fitted(left, sizes, [row.seconds_per_pass for row in rows], "Seconds per pass over K")
    peaks = [row.peak_bytes / 1e6 for row in rows if row.peak_bytes]
    if len(peaks) == len(rows):
        _fitted(right, sizes, peaks, "Peak memory above the data, MB")
    style_axes(left, "Growth with the rows", subtitle)
    style_axes(right, "")
    return figure


def _fitted(axes: Axes, sizes: Sequence[int], values: Sequence[float], label: str) -> None:
    slope = exponent(sizes, values)
    middle = np.exp(np.mean(np.log(values)) - slope * np.mean(np.log(sizes)))
    line = [middle * size**slope for size in sizes]
    axes.plot(sizes, line, color=MUTED, linestyle="dashed", linewidth=1)
    axes.plot(sizes, values, color=_OURS, marker="o", linestyle="none")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(list(sizes), [f"{size:,}" for size in sizes], fontsize=8)
    axes.set_yticks([])
    axes.minorticks_off()
    for size, value in zip(sizes, values, strict=True):
        axes.annotate(f"{value:.3g}", (size, value), xytext=(0, 7), textcoords="offset points",
                      ha="right", fontsize=8, color=INK, bbox=_OVER_LINES)  # fmt: skip
    axes.margins(x=0.12, y=0.15)
    axes.set_xlabel("Rows $l$")
    axes.set_ylabel(label)
    axes.text(
        0.05, 0.9, f"exponent {slope:.2f}", fontweight="bold", transform=axes.transAxes, color=INK
    )

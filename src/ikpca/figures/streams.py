"""What a stream costs as it goes on, and how training grows beside the paper's table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ikpca.experiments.durations import PAPER_ROWS, Duration
from ikpca.experiments.growth import exponent
from ikpca.experiments.stream_growth import BATCH, StreamCost, in_pieces
from ikpca.figures.styles import INK, LINES, MUTED, dress

__all__ = ["durations_plot", "stream_growth_plot"]

_COLOUR = LINES[0][0]
#: Points of a curve of means.
_PIECES = 50


def stream_growth_plot(costs: Sequence[StreamCost], subtitle: str) -> Figure:
    """Total time over the length; time per update and memory while the longest stream goes on."""
    figure = Figure(figsize=(11.0, 3.9), layout="constrained")
    total, update, memory = figure.subplots(1, 3)
    _totals(total, costs)
    longest = max(costs, key=lambda cost: cost.rows)
    _course(update, 1e3 * np.array(longest.update_seconds), "ms", "Milliseconds per update")
    _course(memory, np.array(longest.held_bytes) / 1e3, "kB", "Held by the model, kB")
    dress(total, "Total time", subtitle)
    dress(update, "Time per update", f"updates of {BATCH} rows; means of {_PIECES} pieces")
    dress(memory, "Memory", "library, coefficients, singular values")
    return figure


def _totals(axes: Axes, costs: Sequence[StreamCost]) -> None:
    sizes, seconds = [cost.rows for cost in costs], [cost.seconds for cost in costs]
    slope = exponent(sizes, seconds)
    middle = np.exp(np.mean(np.log(seconds)) - slope * np.mean(np.log(sizes)))
    line = [middle * size**slope for size in sizes]
    axes.plot(sizes, line, color=MUTED, linestyle="dashed", linewidth=1)
    axes.plot(sizes, seconds, color=_COLOUR, marker="o", linestyle="none")
    axes.set(xscale="log", yscale="log", xlabel="Rows streamed", ylabel="Seconds")
    note = f"exponent {slope:.2f}"
    axes.text(0.05, 0.9, note, fontweight="bold", color=INK, transform=axes.transAxes)


def _course(axes: Axes, values: np.ndarray, unit: str, label: str) -> None:
    pieces = min(_PIECES, len(values))
    means = in_pieces(values.tolist(), pieces)
    rows = (np.arange(pieces) + 1) * len(values) * BATCH / pieces
    axes.plot(rows, means, color=_COLOUR, linewidth=1.6)
    axes.set(xlabel="Rows seen", ylabel=label)
    axes.set_ylim(0, 1.3 * means.max())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k")
    note = f"at the end {means[-1]:.3g} {unit}"
    axes.text(0.05, 0.08, note, fontweight="bold", color=INK, transform=axes.transAxes)


def durations_plot(found: Sequence[Duration], subtitle: str) -> Figure:
    """Table 1 as growth: each method over its own first entry, here and in the paper."""
    figure = Figure(figsize=(12.0, 3.7), layout="constrained")
    panels = figure.subplots(1, len(found), sharey=True)
    for axes, row in zip(panels, found, strict=True):
        paper = np.array(row.paper_seconds)
        ours = np.array(row.seconds)
        axes.plot(
            PAPER_ROWS, paper / paper[0], color=LINES[3][0], marker="s", linestyle="dashed",
            label=f"paper, exponent {row.paper_exponent:.2f}",
        )  # fmt: skip
        axes.plot(
            row.rows, ours / ours[0], color=_COLOUR, marker="o",
            label=f"here, exponent {row.exponent:.2f}",
        )  # fmt: skip
        axes.set(xscale="log", yscale="log", xlabel="Vectors")
        axes.set_xticks(PAPER_ROWS[::2], [f"{rows:,}" for rows in PAPER_ROWS[::2]])
        axes.minorticks_off()
        axes.legend(frameon=False, fontsize=9, loc="upper left")
        dress(axes, row.method, subtitle if axes is panels[0] else " ")
    panels[0].set_ylabel("Time over that of the fewest vectors")
    return figure

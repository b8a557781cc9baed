"""Figures of the stream benchmarks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ikpca.plotting import GHOST, INK, LINES, MUTED, style_axes
from ikpca_papers.chin2006.manifolds import Manifold
from ikpca_papers.chin2006.parabola import PAPER_ROWS, Course, Duration
from ikpca_papers.chin2006.stream_costs import BATCH, StreamCost, in_pieces
from ikpca_papers.measures import exponent


def drift_plot(courses: Sequence[Course], subtitle: str) -> Figure:
    """Error against batch on the rows so far, one panel per library, one curve per omission."""
    libraries = list(dict.fromkeys(course.library for course in courses))
    figure = Figure(figsize=(4.4 * len(libraries) + 1.5, 4.2), layout="constrained")
    panels = figure.subplots(1, len(libraries), sharey=True, squeeze=False)[0]
    for axes, library in zip(panels, libraries, strict=True):
        here = [course for course in courses if course.library == library]
        for course, (colour, dashes) in zip(here, LINES, strict=False):
            axes.plot(
                course.rows, course.errors, color=colour, linestyle=dashes, linewidth=1.8,
                label=f"without {course.left_out}" if course.left_out != "nothing" else "all steps",
            )  # fmt: skip
        axes.set_yscale("log")
        axes.set(xlabel="Rows seen")
        style_axes(axes, library, subtitle if axes is panels[0] else " ")
    panels[0].set_ylabel("Error against batch")
    panels[-1].legend(frameon=False, fontsize=9)
    return figure


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
    style_axes(axes, "Eigenspectra")
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


_COLOUR = LINES[0][0]
#: Points of a curve of means.
_PIECES = 50


def stream_growth_plot(costs: Sequence[StreamCost], subtitle: str) -> Figure:
    """Total time over the length; time per update and memory while the longest stream goes on."""
    figure = Figure(figsize=(11.0, 3.9), layout="constrained")
    total, update, memory = figure.subplots(1, 3)
    _totals(total, costs)
    longest = max(costs, key=lambda cost: cost.rows)
    # Beneath, the same update over and over at the same moments: what the machine does.
    first = longest.rows - BATCH * len(longest.control_seconds)
    control = in_pieces(longest.control_seconds, _PIECES)
    rows = np.linspace(first, longest.rows, _PIECES + 1)[1:]
    update.plot(rows, 1e3 * control, color=GHOST, linewidth=1.6, label="the same update again")
    update.legend(frameon=False, fontsize=9, loc="upper left")
    _course(update, 1e3 * np.array(longest.update_seconds), "ms", "Milliseconds per update")
    _course(memory, np.array(longest.held_bytes) / 1e3, "kB", "Held by the model, kB")
    style_axes(total, "Total time", subtitle)
    style_axes(update, "Time per update", f"updates of {BATCH} rows; means of {_PIECES} pieces")
    style_axes(memory, "Memory", "library, coefficients, singular values")
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
    axes.set_ylim(0, 1.4 * means.max())
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
        style_axes(axes, row.method, subtitle if axes is panels[0] else " ")
    panels[0].set_ylabel("Time over that of the fewest vectors")
    return figure

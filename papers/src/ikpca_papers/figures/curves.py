"""Learning curves, growth, rates and contour lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from ikpca.kernels import Floats
from ikpca.plotting import GHOST, INK, LINES, MUTED, Dashes, label_ends
from ikpca_papers.claims import Curves
from ikpca_papers.demo import DemoResult, Run
from ikpca_papers.figures.style import averaged, axis_words, panels
from ikpca_papers.measures import exponent
from ikpca_papers.runner import Results


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
    axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.tick_params(which="minor", labelsize=8)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(colors=INK)
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    label_ends(figure, axes)
    return figure


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


_LEVELS = 11
#: Rows that are drawn beneath; more would hide the lines.
_SHOWN = 1000
_NOT_MODELS = ("x", "y", "points")


def component_contours(results: Results, *, part: str) -> Figure:
    """The surfaces that a part of an experiment has left."""
    return contours(results.arrays[part])


def contours(surfaces: Mapping[str, Floats]) -> Figure:
    """One row of panels per model, one column per component; the first model's levels in all.

    Parameters
    ----------
    surfaces : mapping from str to array
        From :func:`ikpca_papers.measures.surfaces`.
    """
    models = {name: heights for name, heights in surfaces.items() if name not in _NOT_MODELS}
    first = next(iter(models.values()))
    count = first.shape[2]
    # A single component leaves room for the models side by side.
    shape = (len(models), count) if count > 1 else (1, len(models))
    figure = Figure(figsize=(3.2 * shape[1], 2.9 * shape[0]), layout="constrained")
    panels = figure.subplots(*shape, sharex=True, sharey=True, squeeze=False).ravel()
    places = [(name, number) for name in models for number in range(count)]
    for axes, (name, number) in zip(panels, places, strict=True):
        levels = np.linspace(first[:, :, number].min(), first[:, :, number].max(), _LEVELS)
        axes.scatter(*surfaces["points"][:_SHOWN].T, s=3, color=GHOST, linewidths=0)
        height = models[name][:, :, number]
        if height.max() > levels[0] and height.min() < levels[-1] and np.ptp(height) > 0:
            axes.contour(surfaces["x"], surfaces["y"], height, levels=levels, cmap="viridis",
                         linewidths=1.4)  # fmt: skip
        axes.set_title(f"{name}, component {number + 1}", fontsize=10, loc="left", color=INK)
        axes.tick_params(labelsize=8, colors=MUTED)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


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
    _finish(axes, result)
    label_ends(figure, axes)
    return figure


def _curve(axes: Axes, run: Run, colour: str, dashes: Dashes) -> None:
    errors = np.array(run.excess_errors)
    # A logarithm has no place for what rounding leaves at or below zero.
    errors[errors <= 0] = np.nan
    passes = np.arange(1, len(errors) + 1)
    axes.plot(passes, errors, color=colour, linestyle=dashes, linewidth=1.8, label=run.label)


def _finish(axes: Axes, result: DemoResult) -> None:
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

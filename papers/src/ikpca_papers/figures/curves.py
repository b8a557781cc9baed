"""Learning curves, growth, rates, contour lines and tracking."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator
from sklearn.isotonic import isotonic_regression

from ikpca.kernels import Floats
from ikpca.plotting import LINE_STYLES, MUTED_COLOR, REFERENCE_COLOR, TEXT_COLOR
from ikpca_papers.claims import Curves, Rows
from ikpca_papers.kim2003.online import Rotation, Track
from ikpca_papers.metrics import exponent
from ikpca_papers.runner import Results


def png(figure: Figure, dpi: int = 200) -> bytes:
    """Render a figure as PNG, without a display and without pyplot's global state.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    dpi : int, default=200
        Dots per inch.

    Returns
    -------
    bytes
        Of a PNG file.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from ikpca_papers.figures import png
    >>> png(Figure(figsize=(1, 1)), dpi=20)[1:4]
    b'PNG'
    """
    image = io.BytesIO()
    FigureCanvasAgg(figure)
    figure.savefig(image, format="png", dpi=dpi)
    return image.getvalue()


def split_panels(rows: Rows, column: str | None) -> Mapping[str, Rows]:
    """Group rows by the values of a column, in the order of the table."""
    if column is None:
        return {"": rows}
    names = dict.fromkeys(str(row[column]) for row in rows)
    return {name: [row for row in rows if str(row[column]) == name] for name in names}


def mean_curves(rows: Rows, x: str, y: str, series: str) -> Mapping[str, list[tuple[float, float]]]:
    """Points of every series; y is the mean over all rows with the same x.

    Examples
    --------
    >>> rows = [{"m": "kha", "pass": 1, "e": 2.0}, {"m": "kha", "pass": 1, "e": 4.0}]
    >>> mean_curves(rows, "pass", "e", "m")
    {'kha': [(1.0, 3.0)]}
    """
    gathered: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        place, value = _number(row.get(x)), _number(row.get(y))
        if place is not None and value is not None:
            gathered.setdefault(str(row[series]), {}).setdefault(place, []).append(value)
    return {
        name: [(place, fmean(values)) for place, values in sorted(points.items())]
        for name, points in gathered.items()
    }


def axis_label(column: str) -> str:
    """Return the axis label of a column."""
    return {"pass": "Passes over the data", "rows": "Rows of the stream"}.get(column, column)


def _number(cell: Any) -> float | None:
    return float(cell) if isinstance(cell, int | float) else None


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
    """Plot curves of a table.

    Parameters
    ----------
    results : Results
    curves : Curves
        The columns.
    y, label : str, optional
        Another column than the one of ``curves``, and its name.
    log : bool
        Logarithmic vertical axis.
    level : str, optional
        A method of the table ``levels`` to draw as a horizontal line.
    until : int, optional
        The last pass to show.
    """
    rows = results.tables[curves.table]
    if until is not None:
        rows = [row for row in rows if float(row[curves.x] or 0) <= until]
    parts = split_panels(rows, curves.panel)
    figure = Figure(figsize=(4.6 * len(parts) + 1.6, 4.0), layout="constrained")
    places = figure.subplots(1, len(parts), squeeze=False)[0]
    styles = [*LINE_STYLES, (MUTED_COLOR, "dotted"), *LINE_STYLES]
    for axes, (name, part) in zip(places, parts.items(), strict=True):
        lines = mean_curves(part, curves.x, y or curves.y, curves.series)
        for (series, points), (color, dashes) in zip(lines.items(), styles, strict=False):
            passes, values = np.array(points).T
            # Rounding may leave values at or below zero, which have no logarithm.
            shown = np.where(values > 0, values, np.nan) if log else values
            axes.plot(passes, shown, color=color, linestyle=dashes, linewidth=1.8, label=series)
        _format_axes(axes, name, curves.x, label or curves.label, log)
        if level is not None:
            _draw_level(axes, results, level, y or curves.y)
        label_ends(figure, axes)
    return figure


def _format_axes(axes: Axes, name: str, x: str, label: str, log: bool) -> None:
    if log:
        axes.set_yscale("log")
    axes.set_title(name, loc="left", fontweight="bold", color=TEXT_COLOR)
    axes.set_xlabel(axis_label(x))
    axes.set_ylabel(label)
    axes.xaxis.set_major_locator(
        MaxNLocator(nbins=6, integer=True, min_n_ticks=2, steps=[1, 2, 5, 10])
    )
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_level(axes: Axes, results: Results, method: str, column: str) -> None:
    for row in results.tables["levels"]:
        value: Any = row.get(column)
        if row.get("method") == method and value is not None:
            axes.axhline(value, color=MUTED_COLOR, linewidth=1, linestyle="dotted")
            axes.annotate(method, (0, value), xycoords=("axes fraction", "data"), xytext=(4, 3),
                          textcoords="offset points", fontsize=9, color=MUTED_COLOR)  # fmt: skip


def growth_lines(
    results: Results,
    *,
    table: str,
    x: str,
    y: str,
    xlabel: str,
    ylabel: str,
    series: str,
) -> Figure:
    """Plot one line per value of the column ``series``, with exponents."""
    lines = mean_curves(results.tables[table], x, y, series)
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    for (name, points), (color, dashes) in zip(lines.items(), LINE_STYLES * 3, strict=False):
        places, values = np.array(points).T
        text = f"{name}, exponent {exponent(list(places), list(values)):.2f}"
        axes.plot(places, values, marker="o", color=color, linestyle=dashes, label=text)
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
    axes.tick_params(colors=TEXT_COLOR)
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    label_ends(figure, axes)
    return figure


_LEVELS = 11
#: Rows that are drawn below the lines; more would hide them.
_SHOWN = 1000
_NOT_MODELS = ("x", "y", "points")


def component_contours(results: Results, *, part: str) -> Figure:
    """Plot the surfaces of a part of an experiment."""
    return contours(results.arrays[part])


def contours(surfaces: Mapping[str, Floats]) -> Figure:
    """Plot contour lines, one row per model, one column per component, with common levels.

    Parameters
    ----------
    surfaces : mapping from str to array
        From :func:`ikpca_papers.metrics.surfaces`.
    """
    models = {name: heights for name, heights in surfaces.items() if name not in _NOT_MODELS}
    first = next(iter(models.values()))
    count = first.shape[2]
    # With a single component the models are side by side.
    shape = (len(models), count) if count > 1 else (1, len(models))
    figure = Figure(figsize=(3.2 * shape[1], 2.9 * shape[0]), layout="constrained")
    all_axes = figure.subplots(*shape, sharex=True, sharey=True, squeeze=False).ravel()
    places = [(name, number) for name in models for number in range(count)]
    for axes, (name, number) in zip(all_axes, places, strict=True):
        levels = np.linspace(first[:, :, number].min(), first[:, :, number].max(), _LEVELS)
        axes.scatter(*surfaces["points"][:_SHOWN].T, s=3, color=REFERENCE_COLOR, linewidths=0)
        height = models[name][:, :, number]
        if height.max() > levels[0] and height.min() < levels[-1] and np.ptp(height) > 0:
            axes.contour(surfaces["x"], surfaces["y"], height, levels=levels, cmap="viridis",
                         linewidths=1.4)  # fmt: skip
        axes.set_title(f"{name}, component {number + 1}", fontsize=10, loc="left", color=TEXT_COLOR)
        axes.tick_params(labelsize=8, colors=MUTED_COLOR)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


_FITS = {"KPCA": "batch", "IKPCA": "streamed"}


def projection_pairs(results: Results, *, pairs: Sequence[int] = (1, 3, 5, 7, 9)) -> Figure:
    """Scatter plots of pairs of components: a row per pair; KPCA and IKPCA side by side."""
    columns = [(name, fit) for name, arrays in results.arrays.items() if arrays for fit in _FITS]
    figure = Figure(figsize=(2.2 * len(columns), 1.9 * len(pairs)), layout="constrained")
    places = figure.subplots(len(pairs), len(columns), squeeze=False)
    for line, first in zip(places, pairs, strict=True):
        for axes, (name, fit) in zip(line, columns, strict=True):
            arrays = results.arrays[name]
            across, up = arrays[_FITS[fit]][:, first - 1 : first + 1].T
            axes.scatter(across, up, c=arrays["place"], cmap="viridis", s=5, linewidths=0)
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_color(MUTED_COLOR)
        line[0].set_ylabel(f"{first} and {first + 1}", color=TEXT_COLOR)
    for axes, (name, fit) in zip(places[0], columns, strict=True):
        axes.set_title(f"{name}, {fit}", fontsize=9, color=TEXT_COLOR)
    return figure


def spectra(results: Results) -> Figure:
    """Plot singular values relative to the first: batch as lines, streamed as circles."""
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    # The first fit of every data set: the paper's number of pre-images.
    rows_of = split_panels(results.tables["correlations"], "data")
    tables = {name: [row for row in rows if row["n"] == rows[0]["n"]]
              for name, rows in rows_of.items()}  # fmt: skip
    for (name, rows), (color, dashes) in zip(tables.items(), LINE_STYLES, strict=False):
        numbers = np.arange(1, len(rows) + 1)
        batch, streamed = (
            np.array([row[column] for row in rows], dtype=np.float64)
            for column in ("eigenvalue", "streamed_eigenvalue")
        )
        axes.plot(numbers, np.sqrt(batch / batch[0]), color=color, linestyle=dashes,
                  label=f"{name}, batch")  # fmt: skip
        axes.plot(numbers, np.sqrt(streamed / batch[0]), color=color, marker="o",
                  fillstyle="none", linestyle="none", label=f"{name}, streamed")  # fmt: skip
    axes.set(xlabel="Component", ylabel="Singular value over the first", ylim=(0, None))
    axes.legend(frameon=False, fontsize=9)
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def tracking(tracks: Mapping[Rotation, Sequence[Track]], limit: float = 15.0) -> Figure:
    """Plot angles to a moving subspace: one panel per stream, one curve per gain, and a limit.

    Parameters
    ----------
    tracks : mapping of Rotation to sequence of Track
        Streams, and the angles between models and the true components.
    limit : float, default=15.0
        In degrees.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = Figure(figsize=(7.6, 3.1 * len(tracks)), layout="constrained")
    panels = figure.subplots(len(tracks), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (rotation, curves) in zip(panels, tracks.items(), strict=True):
        for curve, (color, dashes) in zip(curves, LINE_STYLES, strict=False):
            axes.plot(
                curve.times,
                curve.angles,
                color=color,
                linestyle=dashes,
                linewidth=1.5,
                label=curve.name,
            )
        _format_tracking_axes(axes, rotation, limit)
    panels[-1].set_xlabel("Rows of the stream")
    for axes in panels:
        label_ends(figure, axes)
    return figure


def _format_tracking_axes(axes: Axes, rotation: Rotation, limit: float) -> None:
    axes.hlines(limit, 0, rotation.n, color=MUTED_COLOR, linewidth=0.8)
    axes.set_ylim(0, 90)
    axes.set_xlim(0, rotation.n)
    axes.set_yticks([0, limit, 45, 90])
    axes.set_ylabel("Angle to the truth, °")
    axes.set_title(
        f"{rotation.shape.capitalize()}, a turn in {rotation.period:,.0f} rows",
        loc="left", fontweight="bold", color=TEXT_COLOR, fontsize=10,
    )  # fmt: skip
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def style_axes(axes: Axes, title: str, subtitle: str = "") -> None:
    """Set title and subtitle of the axes, and draw a light grid."""
    axes.set_title(
        title, loc="left", fontweight="bold", color=TEXT_COLOR, pad=22 if subtitle else 8
    )
    axes.text(0, 1.025, subtitle, transform=axes.transAxes, fontsize=9, color=MUTED_COLOR)
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def label_ends(figure: Figure, axes: Axes) -> None:
    """Label each curve at its last point; overlapping labels are moved apart."""
    named = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    curves = [line for line in named if np.isfinite(line.get_ydata()).any()]
    if not curves:
        return
    ends = [np.asarray(line.get_xydata())[np.isfinite(line.get_ydata())][-1] for line in curves]
    # Positions are known only after the layout.
    figure.draw_without_rendering()
    heights = np.array([axes.transData.transform(end)[1] for end in ends])
    pixels_per_point = figure.dpi / 72
    positions = spread_positions(heights, gap=12.5 * pixels_per_point)
    for line, end, shift in zip(curves, ends, positions - heights, strict=True):
        axes.annotate(
            str(line.get_label()),
            end,
            xytext=(7, shift / pixels_per_point),
            textcoords="offset points",
            va="center",
            fontsize=10,
            color=line.get_color(),
            annotation_clip=False,
        )


def spread_positions(heights: Floats, gap: float) -> Floats:
    """Move heights as little as possible until they are ``gap`` apart, in their order.

    Examples
    --------
    >>> spread_positions(np.array([3.0, 0.0, 3.0]), gap=1.0)
    array([2.5, 0. , 3.5])
    """
    order = np.argsort(heights, kind="stable")
    gaps = gap * np.arange(len(heights))
    result = np.empty_like(heights)
    result[order] = isotonic_regression(heights[order] - gaps) + gaps
    return result

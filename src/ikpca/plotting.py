"""Plots of fitted models: eigenvalues, projections, components, convergence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import InvalidInput, invalid_parameter
from ikpca.kernels import Floats
from ikpca.solvers import PassRecord

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] != "matplotlib":
        raise
    raise ImportError("ikpca.plotting needs matplotlib; run: pip install 'ikpca[plot]'.") from None

__all__ = ["components", "convergence", "projections", "scree"]

#: A name, or an offset and the lengths of dashes and gaps.
Dashes: TypeAlias = str | tuple[int, tuple[int, ...]]

INK = "0.1"
MUTED = "0.4"
#: For what lies beneath, to compare with.
GHOST = "0.8"
#: Okabe and Ito's palette, each colour with a dash pattern of its own.
LINES: tuple[tuple[str, Dashes], ...] = (
    ("#0072B2", "dashed"),
    ("#CC79A7", "dashdot"),
    ("#009E73", "solid"),
    ("#D55E00", (0, (6, 1, 1, 1, 1, 1))),
)


def style_axes(axes: Axes, title: str, subtitle: str = "") -> None:
    """Give the axes a title, what was run beneath it, and a grid that stays behind the data."""
    axes.set_title(title, loc="left", fontweight="bold", color=INK, pad=22 if subtitle else 8)
    axes.text(0, 1.025, subtitle, transform=axes.transAxes, fontsize=9, color=MUTED)
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def new_figure(**arguments: Any) -> Any:
    """Of pyplot, so that notebooks and ``plt.show()`` find it."""
    from matplotlib import pyplot

    return pyplot.figure(layout="constrained", **arguments)


def resolve_axes(ax: Axes | None) -> Axes:
    """The axes themselves, or new ones in a figure of their own."""
    return new_figure(figsize=(6.0, 3.8)).add_subplot() if ax is None else ax


_FONT_POINTS = 10
_POINTS_PER_INCH = 72


def label_ends(figure: Figure, axes: Axes) -> None:
    """Name each curve at its last point; names that would touch are moved apart."""
    named = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    curves = [line for line in named if np.isfinite(line.get_ydata()).any()]
    if not curves:
        return
    ends = [np.asarray(line.get_xydata())[np.isfinite(line.get_ydata())][-1] for line in curves]
    # Only a finished layout knows how high the ends stand.
    figure.draw_without_rendering()
    heights = np.array([axes.transData.transform(end)[1] for end in ends])
    pixels_per_point = figure.dpi / _POINTS_PER_INCH
    wanted = spread_positions(heights, gap=1.25 * _FONT_POINTS * pixels_per_point)
    for line, end, shift in zip(curves, ends, wanted - heights, strict=True):
        axes.annotate(
            str(line.get_label()),
            end,
            xytext=(7, shift / pixels_per_point),
            textcoords="offset points",
            va="center",
            fontsize=_FONT_POINTS,
            color=line.get_color(),
            annotation_clip=False,
        )


def spread_positions(heights: NDArray[np.float64], gap: float) -> NDArray[np.float64]:
    """Move heights as little as it takes to be ``gap`` apart, in their order.

    Examples
    --------
    >>> spread(np.array([3.0, 0.0, 3.0]), gap=1.0)
    array([2.5, 0. , 3.5])
    """
    order = np.argsort(heights, kind="stable")
    # In units shifted by the gaps, "apart" is "not decreasing": pool neighbours that are not.
    shifted = heights[order] - gap * np.arange(len(heights))
    pools: list[list[float]] = []
    for value in shifted:
        pools.append([float(value)])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    level = np.concatenate([np.full(len(pool), np.mean(pool)) for pool in pools])
    result = np.empty_like(heights)
    result[order] = level + gap * np.arange(len(heights))
    return result


_BARS, _LINE = LINES[0][0], LINES[3][0]
#: More models than the papers have methods.
_STYLES = (*LINES, ("#E69F00", "solid"), ("#56B4E9", "dashed"), (MUTED, "dotted"))
_QUANTITIES = {
    "residual": "Largest residual  $\\|K\\mathrm{′}v - \\lambda v\\|\\,/\\,\\lambda_1$",
    "excess_error": "Excess error, estimated",
    "change": "Squared change per pass",
}


def scree(model: Any, *, ax: Axes | None = None) -> Axes:
    """Bars of the share of variance that each component explains, and a line of their sum.

    Parameters
    ----------
    model : fitted estimator
        Anything with ``explained_variance_ratio_``, scikit-learn's ``PCA`` included.
    ax : Axes, optional
        Where to draw; by default in a figure of its own, made by pyplot.

    Returns
    -------
    Axes

    See Also
    --------
    projections : Rows in the plane of two components.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ikpca import KernelPCA
    >>> from ikpca.plotting import scree
    >>> model = KernelPCA(8, kernel="rbf", gamma=0.02).fit(load_digits().data[:300] / 16)
    >>> len(scree(model).patches)
    8
    """
    check_is_fitted(model)
    shares = getattr(model, "explained_variance_ratio_", None)
    if shares is None:
        raise InvalidInput(
            f"{type(model).__name__} has no explained_variance_ratio_: there is nothing to draw; "
            "take over a KernelPCA of scikit-learn with ikpca.KernelPCA.from_sklearn."
        )
    ax = resolve_axes(ax)
    shares = np.asarray(shares, dtype=np.float64)
    numbers = np.arange(1, len(shares) + 1)
    ax.bar(numbers, shares, color=_BARS, width=0.75)
    ax.plot(numbers, np.cumsum(shares), color=_LINE, marker=".", linewidth=1.5)
    ax.annotate(
        f"together {shares.sum():.0%}", (numbers[-1], shares.sum()), xytext=(0, 7),
        textcoords="offset points", ha="right", color=_LINE, fontsize=9,
    )  # fmt: skip
    ax.set(xlabel="Component", ylabel="Share of the variance")
    ax.set_ylim(0, 1.15 * max(float(shares.sum()), float(shares.max(initial=0.0)), 1e-12))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def convergence(
    models: Any,
    quantity: Literal["residual", "excess_error", "change"] = "residual",
    *,
    ax: Axes | None = None,
) -> Axes:
    """What the passes of a fit brought, from its ``history_``; passes that were undone are marked.

    Parameters
    ----------
    models : fitted estimator, or dict from str to fitted estimator
        Each with a ``history_``; the names stand in a legend.
    quantity : {"residual", "excess_error", "change"}, default="residual"
        The largest residual of a pass, the estimate of E/E_min − 1, or how far the pass moved the
        components.
    ax : Axes, optional
        Where to draw; by default in a figure of its own, made by pyplot.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ikpca import KernelPCA
    >>> from ikpca.plotting import convergence
    >>> X = load_digits().data[:300] / 16
    >>> model = KernelPCA(4, kernel="rbf", gamma=0.02, eigen_solver="kha/et", max_iter=5)
    >>> axes = convergence({"KHA/et": model.fit(X)})
    >>> len(axes.lines[0].get_xdata()), axes.get_yscale()
    (5, 'log')
    """
    if quantity not in _QUANTITIES:
        raise invalid_parameter(
            "quantity", quantity, "is unknown", f"choose one of {', '.join(_QUANTITIES)}"
        )
    named = models if isinstance(models, Mapping) else {"": models}
    histories = {name: _history(model) for name, model in named.items()}
    ax = resolve_axes(ax)
    for number, (name, history) in enumerate(histories.items()):
        colour, dashes = _STYLES[number % len(_STYLES)]
        _curve(ax, history, quantity, label=name, color=colour, linestyle=dashes)
    ax.set_yscale("log")
    ax.set(xlabel="Passes over the data", ylabel=_QUANTITIES[quantity])
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=2))
    ax.grid(which="major", color=MUTED, alpha=0.2, linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)
    if any(named):
        ax.legend(frameon=False, labelcolor=INK)
    return ax


def _history(model: Any) -> list[PassRecord]:
    check_is_fitted(model)
    history = getattr(model, "history_", None)
    if not history:
        raise InvalidInput(
            f"{type(model).__name__} has no history of passes: there is nothing to draw; fit a "
            "KernelPCA or a HebbianPCA."
        )
    return list(history)


def _curve(ax: Axes, history: list[PassRecord], quantity: str, **style: Any) -> None:
    passes = np.array([record.number for record in history])
    values = np.array([_value(record, quantity) for record in history], dtype=np.float64)
    # A logarithm has no place for what rounding leaves at or below zero.
    values[~(values > 0)] = np.nan
    single: dict[str, Any] = {"marker": "o"} if len(history) == 1 else {}
    ax.plot(passes, values, linewidth=1.8, **style, **single)
    undone = np.array([bool(record.note) for record in history])
    if undone.any():
        ax.plot(passes[undone], values[undone], "x", color=style["color"], label="_undone")


def _value(record: PassRecord, quantity: str) -> float:
    if quantity == "residual":
        return float(record.residuals.max(initial=0.0))
    return float(getattr(record, quantity))


#: More labels than this are shades of one scale, fewer have a colour and a place in the legend.
_MOST_NAMES = 10
_INCHES = 1.25


def projections(
    Y: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    pair: tuple[int, int] = (0, 1),
    ax: Axes | None = None,
) -> Axes:
    """Rows in the plane of two components, coloured by a label or a number.

    Parameters
    ----------
    Y : array-like of shape (n_rows, n_components)
        What ``transform`` or ``fit_transform`` returned.
    labels : array-like of shape (n_rows,), optional
        Up to ten different ones are named in a legend; more are numbers on a scale of colours.
    pair : (int, int), default=(0, 1)
        Which components, counted from 0.
    ax : Axes, optional
        Where to draw; by default in a figure of its own, made by pyplot.

    Returns
    -------
    Axes

    See Also
    --------
    scree : How much each component explains.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ikpca import KernelPCA
    >>> from ikpca.plotting import projections
    >>> X, y = load_digits(return_X_y=True)
    >>> Y = KernelPCA(2, kernel="rbf", gamma=0.02).fit_transform(X[:300] / 16)
    >>> axes = projections(Y, y[:300])
    >>> len(axes.get_legend().get_texts())
    10
    """
    points = np.asarray(Y)
    if points.ndim != 2 or not all(0 <= number < points.shape[1] for number in pair):
        raise InvalidInput(
            f"pair={pair!r}: Y has shape {points.shape}; pass what transform returned, and two of "
            "its columns, counted from 0."
        )
    names = None if labels is None else _labels(labels, len(points))
    ax = resolve_axes(ax)
    across, up = points[:, pair[0]], points[:, pair[1]]
    if names is None:
        ax.scatter(across, up, s=9, linewidths=0)
    else:
        _scatter_colored(ax, across, up, names)
    ax.set(xlabel=f"Component {pair[0] + 1}", ylabel=f"Component {pair[1] + 1}")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def components(
    model: Any, shape: tuple[int, ...], *, number: int = 12, reach: float = 2.0
) -> Figure:
    """Components as pictures.

    A kernel component lives in feature space and is no picture itself. What is drawn is the
    difference between the pre-images of two points, ``reach`` standard deviations up and down the
    component from the mean: red where a step up the component adds, blue where it takes away. A
    linear model has components in input space, and these are drawn.

    Parameters
    ----------
    model : fitted estimator
        With ``components_``, or with ``eigenvalues_`` and ``inverse_transform``.
    shape : (int, int)
        Height and width of the pictures that rows hold.
    number : int, default=12
        How many components, at most.
    reach : float, default=2.0
        Standard deviations from the mean.

    Returns
    -------
    Figure

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ikpca import KernelPCA
    >>> from ikpca.plotting import components
    >>> model = KernelPCA(6, kernel="rbf", gamma=0.02).fit(load_digits().data[:300] / 16)
    >>> len(components(model, (8, 8)).axes)
    6
    """
    check_is_fitted(model)
    rows = _directions(model, number, reach)
    if len(shape) != 2 or int(np.prod(shape)) != rows.shape[1]:
        rule = f"rows have {rows.shape[1]} features, which make no such picture"
        raise invalid_parameter("shape", shape, rule, "pass (height, width)")
    across = min(len(rows), 6)
    down = -(-len(rows) // across)
    figure: Figure = new_figure(figsize=(_INCHES * across, (_INCHES + 0.2) * down))
    places = figure.subplots(down, across, squeeze=False).ravel()
    for count, (axes, row) in enumerate(zip(places, rows, strict=False)):
        most = float(np.abs(row).max()) or 1.0
        axes.imshow(row.reshape(shape), cmap="RdBu_r", vmin=-most, vmax=most, interpolation="none")
        axes.set_title(f"{count + 1}", fontsize=9, color=INK)
        axes.set(xticks=[], yticks=[])
    for axes in places[len(rows) :]:
        axes.remove()
    return figure


def _directions(model: Any, number: int, reach: float) -> Floats:
    if hasattr(model, "components_"):
        return np.asarray(model.components_)[:number]
    if not hasattr(model, "inverse_transform"):
        raise InvalidInput(
            f"{type(model).__name__} cannot go back to rows: it has neither components_ nor "
            "inverse_transform; pass a KernelPCA or a HebbianPCA."
        )
    values = np.asarray(model.eigenvalues_, dtype=np.float64)
    n_samples = getattr(model, "n_samples_seen_", None) or len(model.X_fit_)
    scale = 1.0 if getattr(model, "whiten", False) else np.sqrt(values / n_samples)
    steps = np.diag(np.full(len(values), reach) * scale)[:number]
    up, down = model.inverse_transform(steps), model.inverse_transform(-steps)
    return up - down


def _labels(labels: ArrayLike, n_rows: int) -> Any:
    found = np.asarray(labels)
    if found.shape != (n_rows,):
        raise InvalidInput(
            f"labels have shape {found.shape}: there are {n_rows} rows; pass one label for each."
        )
    return found


def _scatter_colored(ax: Axes, across: Floats, up: Floats, labels: Any) -> None:
    from matplotlib import colormaps

    names = np.unique(labels)
    if len(names) > _MOST_NAMES and labels.dtype.kind in "iuf":
        drawn = ax.scatter(across, up, c=labels, s=9, linewidths=0, cmap="viridis")
        ax.figure.colorbar(drawn, ax=ax)
        return
    scale: Any = colormaps["tab10" if len(names) <= _MOST_NAMES else "tab20"]
    colours = scale.colors
    for count, name in enumerate(names):
        chosen = labels == name
        colour = colours[count % len(colours)]
        ax.scatter(across[chosen], up[chosen], s=9, linewidths=0, color=colour, label=str(name))
    ax.legend(
        frameon=False, markerscale=2.5, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5)
    )

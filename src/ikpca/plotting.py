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

#: Name of a line style, or an offset and the lengths of dashes and gaps.
DashPattern: TypeAlias = str | tuple[int, tuple[int, ...]]
TEXT_COLOR = "0.1"
MUTED_COLOR = "0.4"
#: For reference data in the background.
REFERENCE_COLOR = "0.8"
#: Palette of Okabe and Ito, each color with its own dash pattern.
LINE_STYLES: tuple[tuple[str, DashPattern], ...] = (
    ("#0072B2", "dashed"),
    ("#CC79A7", "dashdot"),
    ("#009E73", "solid"),
    ("#D55E00", (0, (6, 1, 1, 1, 1, 1))),
)
_BAR_COLOR, _SUM_COLOR = LINE_STYLES[0][0], LINE_STYLES[3][0]
#: Line styles for more models than LINE_STYLES has entries.
_STYLES = (*LINE_STYLES, ("#E69F00", "solid"), ("#56B4E9", "dashed"), (MUTED_COLOR, "dotted"))
_QUANTITIES = {
    "residual": "Largest residual  $\\|K\\mathrm{′}v - \\lambda v\\|\\,/\\,\\lambda_1$",
    "excess_error": "Excess error, estimated",
    "change": "Squared change per pass",
}
#: Maximum number of labels in a legend; more are shown on a color scale.
_MAX_LEGEND_LABELS = 10
_PANEL_INCHES = 1.25
_FONT_POINTS = 10
_POINTS_PER_INCH = 72


def scree(model: Any, *, ax: Axes | None = None) -> Axes:
    """Plot the explained variance of each component as bars and the cumulative sum as a line.

    Parameters
    ----------
    model : fitted estimator
        Any model with ``explained_variance_ratio_``, including ``PCA`` of scikit-learn.
    ax : Axes, optional
        Axes to draw in; by default those of a new figure of pyplot.

    Returns
    -------
    Axes

    See Also
    --------
    projections : Plot rows in the plane of two components.

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
            f"{type(model).__name__} has no explained_variance_ratio_: it cannot be plotted; "
            "convert a KernelPCA of scikit-learn with ikpca.KernelPCA.from_sklearn."
        )
    ax = resolve_axes(ax)
    shares = np.asarray(shares, dtype=np.float64)
    numbers = np.arange(1, len(shares) + 1)
    ax.bar(numbers, shares, color=_BAR_COLOR, width=0.75)
    ax.plot(numbers, np.cumsum(shares), color=_SUM_COLOR, marker=".", linewidth=1.5)
    ax.annotate(
        f"together {shares.sum():.0%}", (numbers[-1], shares.sum()), xytext=(0, 7),
        textcoords="offset points", ha="right", color=_SUM_COLOR, fontsize=9,
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
    """Plot a quantity of ``history_`` over the passes of a fit; undone passes are marked.

    Parameters
    ----------
    models : fitted estimator, or dict from str to fitted estimator
        Each with a ``history_``; the names are shown in a legend.
    quantity : {"residual", "excess_error", "change"}, default="residual"
        Largest residual of a pass, estimate of E/E_min − 1, or squared change of the components.
    ax : Axes, optional
        Axes to draw in; by default those of a new figure of pyplot.

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
        color, dashes = _STYLES[number % len(_STYLES)]
        _curve(ax, history, quantity, label=name, color=color, linestyle=dashes)
    ax.set_yscale("log")
    ax.set(xlabel="Passes over the data", ylabel=_QUANTITIES[quantity])
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=2))
    ax.grid(which="major", color=MUTED_COLOR, alpha=0.2, linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)
    if any(named):
        ax.legend(frameon=False, labelcolor=TEXT_COLOR)
    return ax


def _history(model: Any) -> list[PassRecord]:
    check_is_fitted(model)
    history = getattr(model, "history_", None)
    if not history:
        raise InvalidInput(
            f"{type(model).__name__} has no history of passes: it cannot be plotted; fit a "
            "KernelPCA or a HebbianPCA."
        )
    return list(history)


def _curve(ax: Axes, history: list[PassRecord], quantity: str, **style: Any) -> None:
    passes = np.array([record.number for record in history])
    values = np.array([_record_value(record, quantity) for record in history], dtype=np.float64)
    # Values that rounding makes zero or negative have no logarithm.
    values[~(values > 0)] = np.nan
    single: dict[str, Any] = {"marker": "o"} if len(history) == 1 else {}
    ax.plot(passes, values, linewidth=1.8, **style, **single)
    undone = np.array([bool(record.note) for record in history])
    if undone.any():
        ax.plot(passes[undone], values[undone], "x", color=style["color"], label="_undone")


def _record_value(record: PassRecord, quantity: str) -> float:
    if quantity == "residual":
        return float(record.residuals.max(initial=0.0))
    return float(getattr(record, quantity))


def projections(
    Y: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    pair: tuple[int, int] = (0, 1),
    ax: Axes | None = None,
) -> Axes:
    """Plot rows in the plane of two components, coloured by labels or numbers.

    Parameters
    ----------
    Y : array-like of shape (n_rows, n_components)
        Projections returned by ``transform`` or ``fit_transform``.
    labels : array-like of shape (n_rows,), optional
        Up to ten different labels are shown in a legend, more numbers on a color scale.
    pair : (int, int), default=(0, 1)
        Indices of the components, counted from 0.
    ax : Axes, optional
        Axes to draw in; by default those of a new figure of pyplot.

    Returns
    -------
    Axes

    See Also
    --------
    scree : Plot the explained variance of the components.

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
            f"pair={pair!r}: must be two columns of Y, which has shape {points.shape}; pass "
            "projections returned by transform, and columns counted from 0."
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
    if len(names) > _MAX_LEGEND_LABELS and labels.dtype.kind in "iuf":
        drawn = ax.scatter(across, up, c=labels, s=9, linewidths=0, cmap="viridis")
        ax.figure.colorbar(drawn, ax=ax)
        return
    scale: Any = colormaps["tab10" if len(names) <= _MAX_LEGEND_LABELS else "tab20"]
    colors = scale.colors
    for count, name in enumerate(names):
        chosen = labels == name
        color = colors[count % len(colors)]
        ax.scatter(across[chosen], up[chosen], s=9, linewidths=0, color=color, label=str(name))
    ax.legend(
        frameon=False, markerscale=2.5, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5)
    )


def components(
    model: Any, shape: tuple[int, ...], *, number: int = 12, reach: float = 2.0
) -> Figure:
    """Plot components as pictures.

    A kernel component is a vector in feature space. The picture is the difference between the
    pre-images of two points, the mean plus and minus ``reach`` standard deviations along the
    component: red where it increases pixels, blue where it decreases them. Linear models have
    components in input space, which are plotted directly.

    Parameters
    ----------
    model : fitted estimator
        With ``components_``, or with ``eigenvalues_`` and ``inverse_transform``.
    shape : (int, int)
        Height and width of the pictures.
    number : int, default=12
        Maximum number of components.
    reach : float, default=2.0
        Number of standard deviations from the mean.

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
    rows = _component_rows(model, number, reach)
    if len(shape) != 2 or int(np.prod(shape)) != rows.shape[1]:
        rule = f"does not match the {rows.shape[1]} features of the rows"
        raise invalid_parameter("shape", shape, rule, "pass (height, width)")
    across = min(len(rows), 6)
    down = -(-len(rows) // across)
    figure: Figure = new_figure(figsize=(_PANEL_INCHES * across, (_PANEL_INCHES + 0.2) * down))
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for count, (axes, row) in enumerate(zip(panels, rows, strict=False)):
        limit = float(np.abs(row).max()) or 1.0
        axes.imshow(
            row.reshape(shape), cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="none"
        )
        axes.set_title(f"{count + 1}", fontsize=9, color=TEXT_COLOR)
        axes.set(xticks=[], yticks=[])
    for axes in panels[len(rows) :]:
        axes.remove()
    return figure


def _component_rows(model: Any, number: int, reach: float) -> Floats:
    if hasattr(model, "components_"):
        return np.asarray(model.components_)[:number]
    if not hasattr(model, "inverse_transform"):
        raise InvalidInput(
            f"{type(model).__name__} has neither components_ nor inverse_transform: its components "
            "cannot be plotted; pass a KernelPCA or a HebbianPCA."
        )
    values = np.asarray(model.eigenvalues_, dtype=np.float64)
    n_samples = getattr(model, "n_samples_seen_", None) or len(model.X_fit_)
    scale = 1.0 if getattr(model, "whiten", False) else np.sqrt(values / n_samples)
    steps = np.diag(np.full(len(values), reach) * scale)[:number]
    up, down = model.inverse_transform(steps), model.inverse_transform(-steps)
    return up - down


def style_axes(axes: Axes, title: str, subtitle: str = "") -> None:
    """Set title and subtitle of the axes, and draw a light grid."""
    axes.set_title(
        title, loc="left", fontweight="bold", color=TEXT_COLOR, pad=22 if subtitle else 8
    )
    axes.text(0, 1.025, subtitle, transform=axes.transAxes, fontsize=9, color=MUTED_COLOR)
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def new_figure(**arguments: Any) -> Any:
    """Create a figure with pyplot, so that notebooks and ``plt.show()`` show it."""
    from matplotlib import pyplot

    return pyplot.figure(layout="constrained", **arguments)


def resolve_axes(ax: Axes | None) -> Axes:
    """Return the axes, or new axes in a new figure."""
    return new_figure(figsize=(6.0, 3.8)).add_subplot() if ax is None else ax


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
    """Move heights as little as possible until they are ``gap`` apart, in their order.

    Examples
    --------
    >>> spread_positions(np.array([3.0, 0.0, 3.0]), gap=1.0)
    array([2.5, 0. , 3.5])
    """
    order = np.argsort(heights, kind="stable")
    # Isotonic regression of the heights minus the gaps: pool adjacent violators.
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

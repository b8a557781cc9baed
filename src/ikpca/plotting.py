"""Plots of fitted models: eigenvalues, projections, loadings, convergence, novelty."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations, cycle
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import InvalidInput, invalid_parameter
from ikpca.kernels import Floats
from ikpca.solvers import PassRecord

try:
    from matplotlib import colormaps, pyplot
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.ticker import MaxNLocator
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] != "matplotlib":
        raise
    raise ImportError("ikpca.plotting needs matplotlib; run: pip install 'ikpca[plot]'.") from None

__all__ = [
    "components",
    "contributions",
    "convergence",
    "loadings",
    "novelty_page",
    "projections",
    "score_page",
    "scree",
]

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
#: Number of rows above which points are small, and pixels in vector graphics.
_MAX_LARGE_POINTS = 10_000
#: Maximum number of features in a table of loadings or contributions.
_MAX_FEATURES = 20


def scree(model: BaseEstimator, *, ax: Axes | None = None) -> Axes:
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
    ax = _resolve_axes(ax)
    shares = np.asarray(shares, dtype=np.float64)
    numbers = np.arange(1, len(shares) + 1)
    ax.bar(numbers, shares, color=_BAR_COLOR, width=0.75)
    ax.plot(numbers, np.cumsum(shares), color=_SUM_COLOR, marker=".", linewidth=1.5)
    ax.annotate(
        f"cumulative {shares.sum():.0%}", (numbers[-1], shares.sum()), xytext=(0, 7),
        textcoords="offset points", ha="right", color=_SUM_COLOR, fontsize=9,
    )  # fmt: skip
    ax.set(xlabel="Component", ylabel="Fraction of the variance")
    ax.set_ylim(0, 1.15 * max(float(shares.sum()), float(shares.max(initial=0.0)), 1e-12))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return ax


def convergence(
    models: BaseEstimator | Mapping[str, BaseEstimator],
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
    for model in named.values():
        check_is_fitted(model)
        if not getattr(model, "history_", None):
            raise InvalidInput(
                f"{type(model).__name__} has no history of passes: it cannot be plotted; fit a "
                "KernelPCA."
            )
    ax = _resolve_axes(ax)
    for (name, model), (color, dashes) in zip(named.items(), cycle(_STYLES), strict=False):
        history: list[PassRecord] = model.history_
        passes = np.array([record.number for record in history])
        if quantity == "residual":
            values = np.array([record.residuals.max(initial=0.0) for record in history])
        else:
            values = np.array([getattr(record, quantity) for record in history], dtype=np.float64)
        # Values that rounding makes zero or negative have no logarithm.
        values[~(values > 0)] = np.nan
        marker = "o" if len(history) == 1 else None
        ax.plot(passes, values, color=color, linestyle=dashes, linewidth=1.8, label=name,
                marker=marker)  # fmt: skip
        undone = np.array([bool(record.note) for record in history])
        if undone.any():
            ax.plot(passes[undone], values[undone], "x", color=color, label="_undone")
    ax.set_yscale("log")
    ax.set(xlabel="Passes over the data", ylabel=_QUANTITIES[quantity])
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=2))
    ax.grid(which="major", color=MUTED_COLOR, alpha=0.2, linewidth=0.8)
    if any(named):
        ax.legend(frameon=False, labelcolor=TEXT_COLOR)
    return ax


def projections(
    Y: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    pair: tuple[int, int] = (0, 1),
    ax: Axes | None = None,
) -> Axes:
    """Plot rows in the plane of two components, colored by labels or numbers.

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
    if labels is not None and np.shape(labels) != (len(points),):
        raise InvalidInput(
            f"labels have shape {np.shape(labels)}: there are {len(points)} rows; pass one label "
            "for each."
        )
    ax = _resolve_axes(ax)
    # In random order, so that no label hides the others.
    order = np.random.default_rng(0).permutation(len(points))
    across, up = points[:, [*pair]][order].T
    many = len(points) > _MAX_LARGE_POINTS
    scatter = partial(ax.scatter, across, up, s=2 if many else 9, linewidths=0, rasterized=many)
    if labels is None:
        scatter()
    else:
        _scatter_colored(ax, scatter, np.asarray(labels)[order])
    ax.set(xlabel=f"Component {pair[0] + 1}", ylabel=f"Component {pair[1] + 1}")
    return ax


def _scatter_colored(
    ax: Axes, scatter: Callable[..., PathCollection], labels: NDArray[np.generic]
) -> None:
    names, codes = np.unique(labels, return_inverse=True)
    if len(names) > _MAX_LEGEND_LABELS and labels.dtype.kind in "iuf":
        ax.figure.colorbar(scatter(c=labels, cmap="viridis"), ax=ax)
        return
    palette = colormaps["tab10" if len(names) <= _MAX_LEGEND_LABELS else "tab20"]
    colors = np.resize(palette(np.arange(palette.N))[:, :3], (len(names), 3))
    scatter(c=colors[codes])
    for name, color in zip(names, colors, strict=True):
        ax.scatter([], [], s=56, linewidths=0, color=color, label=str(name))
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


def components(
    model: BaseEstimator, shape: tuple[int, ...], *, number: int = 12, n_std: float = 2.0
) -> Figure:
    """Plot components as pictures.

    A kernel component is a vector in feature space. The picture is the difference between the
    pre-images of two points, the mean plus and minus ``n_std`` standard deviations along the
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
    n_std : float, default=2.0
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
    rows = _component_rows(model, number, n_std)
    if len(shape) != 2 or int(np.prod(shape)) != rows.shape[1]:
        rule = f"does not match the {rows.shape[1]} features of the rows"
        raise invalid_parameter("shape", shape, rule, "pass (height, width)")
    across = min(len(rows), 6)
    down = -(-len(rows) // across)
    figure = pyplot.figure(layout="constrained", figsize=(1.25 * across, 1.45 * down))
    for count, row in enumerate(rows, start=1):
        _show_component(figure.add_subplot(down, across, count), row.reshape(shape), count)
    return figure


def _show_component(ax: Axes, picture: Floats, number: int) -> None:
    _show_signed(ax, picture)
    ax.set_title(f"{number}", fontsize=9, color=TEXT_COLOR)
    ax.set(xticks=[], yticks=[])


def loadings(
    model: BaseEstimator,
    names: Sequence[str] | None = None,
    *,
    numbers: Sequence[int] = (0, 1),
    n_std: float = 2.0,
    ax: Axes | None = None,
) -> Axes:
    """Plot the effect of components on the features as a table of colors.

    The effect is that of :func:`components`: the difference between the pre-images of two points,
    the mean plus and minus ``n_std`` standard deviations along the component.

    Parameters
    ----------
    model : fitted estimator
        With ``components_``, or with ``eigenvalues_`` and ``inverse_transform``.
    names : sequence of str, optional
        Names of the features; by default those of the fit, or numbers from 1.
    numbers : sequence of int, default=(0, 1)
        Indices of the components, counted from 0.
    n_std : float, default=2.0
        Number of standard deviations from the mean.
    ax : Axes, optional
        Axes to draw in; by default those of a new figure of pyplot.

    Returns
    -------
    Axes
        With the 20 features that change most.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from ikpca import KernelPCA
    >>> from ikpca.plotting import loadings
    >>> wine = load_wine()
    >>> model = KernelPCA(2, kernel="rbf", gamma="scale").fit(scale(wine.data))
    >>> axes = loadings(model, wine.feature_names)
    >>> axes.get_yticklabels()[0].get_text()
    'alcohol'
    """
    check_is_fitted(model)
    table = _component_rows(model, max(numbers) + 1, n_std)[[*numbers]].T
    if names is None:
        names = getattr(model, "feature_names_in_", [str(i + 1) for i in range(len(table))])
    ax = _resolve_axes(ax)
    ax.spines[:].set_visible(True)
    rows = _largest(np.abs(table).max(axis=1))
    ax.figure.colorbar(_show_signed(ax, table[rows], aspect="auto"), ax=ax)
    ax.set_yticks(range(len(rows)), [str(names[row]) for row in rows], fontsize=8)
    ax.set_xticks(range(len(numbers)), [str(number + 1) for number in numbers])
    ax.set(xlabel="Component", title="Change along the component")
    ax.title.set_fontsize(10)
    return ax


def _show_signed(ax: Axes, values: Floats, aspect: Literal["equal", "auto"] = "equal") -> AxesImage:
    """Draw values as colors: red is positive, blue is negative."""
    limit = float(np.abs(values).max()) or 1.0
    return ax.imshow(
        values, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="none", aspect=aspect
    )


def _largest(sizes: Floats) -> NDArray[np.intp]:
    """Return the positions of the largest values, in their order."""
    return np.sort(np.argsort(-sizes, kind="stable")[:_MAX_FEATURES])


def score_page(
    model: BaseEstimator,
    Y: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    numbers: Sequence[int] = (0, 1),
    shape: tuple[int, ...] | None = None,
) -> Figure:
    """Plot projections, explained variance and loadings of a model in one figure.

    Arguments are those of :func:`projections` and :func:`loadings`; three components are plotted in
    pairs. With the ``shape`` of rows that are pictures, loadings are plotted as pictures; they are
    left out if the model has no ``components_`` and no ``inverse_transform``.
    """
    pairs = [*combinations(numbers, 2)]
    if len(pairs) not in (1, 3):
        raise invalid_parameter(
            "numbers", numbers, "must be two or three components", "pass (0, 1)"
        )
    # Without pyplot, which would open a window for the command line.
    figure = Figure(layout="constrained", figsize=(13.0, 4.2 if len(pairs) == 1 else 8.0))
    rows: list[Any] = [figure]
    if len(pairs) > 1:
        rows = [*figure.subfigures(2, 1, squeeze=False).flat]
    # Axes in a row must share a grid: a layout arranges each grid on its own.
    grids = [row.add_gridspec(1, 3) for row in rows]
    below, grid, first = rows[-1], grids[-1], len(pairs) % 3
    for column, pair in enumerate(pairs):
        axes = projections(Y, labels, pair=pair, ax=rows[0].add_subplot(grids[0][column]))
        legend = axes.get_legend()
        if legend is not None and column < len(pairs) - 1:
            legend.remove()
    scree(model, ax=below.add_subplot(grid[first]))
    place = grid[first + 1 :]
    if not (hasattr(model, "components_") or hasattr(model, "inverse_transform")):
        return figure
    if shape is None:
        loadings(model, names, numbers=numbers, ax=below.add_subplot(place))
        return figure
    changes = _component_rows(model, max(numbers) + 1, 2.0)
    pictures = changes.reshape(len(changes), *shape[:2], -1).mean(axis=3)
    cells = place.subgridspec(1, len(numbers))
    for column, number in enumerate(numbers):
        _show_component(below.add_subplot(cells[column]), pictures[number], number + 1)
    return figure


def novelty_page(
    scores: ArrayLike,
    limit: float,
    contributions: ArrayLike,
    *,
    names: Sequence[str],
    row_names: Sequence[str],
) -> Figure:
    """Plot novelty scores with their limit, and the contributions of features to the worst rows.

    Rows with scores above ``limit`` are marked; infinite scores are drawn above all others. Rows of
    ``contributions`` belong to the largest scores and are named by ``row_names``, their features by
    ``names``.
    """
    heights = np.append(np.asarray(scores, dtype=np.float64), limit)
    top = 1.1 * heights[np.isfinite(heights)].max(initial=0.0)
    heights, shares = np.minimum(heights[:-1], top), np.minimum(contributions, top)
    figure = Figure(layout="constrained", figsize=(11.0, 6.5))
    above, below = figure.subplots(2, 1, height_ratios=(1.0, 1.1))
    _resolve_axes(above)
    flagged = heights > limit
    numbers = np.arange(1, len(heights) + 1)
    for rows, color, size in ((~flagged, MUTED_COLOR, 6), (flagged, _SUM_COLOR, 14)):
        above.scatter(numbers[rows], heights[rows], s=size, linewidths=0, color=color)
    if np.isfinite(limit):
        above.axhline(limit, color=_BAR_COLOR, linestyle="dashed", linewidth=1.2)
    above.set(xlabel="Row", ylabel="Score")
    above.set_title(f"{int(flagged.sum())} of {len(heights)} rows are above the limit", fontsize=10)
    above.set_ylim(bottom=min(0.0, float(heights.min(initial=0.0))))
    features = _largest(shares.max(axis=0))
    image = below.imshow(shares[:, features], cmap="Oranges", aspect="auto", interpolation="none")
    figure.colorbar(image, ax=below)
    labels = [str(names[feature]) for feature in features]
    below.set_xticks(range(len(labels)), labels, rotation=35, ha="right", fontsize=8)
    below.set_yticks(range(len(shares)), [str(name) for name in row_names], fontsize=8)
    below.set_title("Contributions of the columns to the rows with the largest scores", fontsize=10)
    return figure


def _component_rows(model: BaseEstimator, number: int, n_std: float) -> Floats:
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
    steps = np.diag(np.full(len(values), n_std) * scale)[:number]
    up, down = model.inverse_transform(steps), model.inverse_transform(-steps)
    return up - down


def contributions(
    C: ArrayLike,
    names: Sequence[str] | None = None,
    *,
    number: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Plot the features that contribute most to the errors of rows, as bars.

    Parameters
    ----------
    C : array-like of shape (n_rows, n_features) or (n_features,)
        Contributions returned by :meth:`ikpca.NoveltyDetector.explain`; the mean of several rows is
        plotted.
    names : sequence of str, optional
        Names of the features, for example ``feature_names_in_``; by default their indices.
    number : int, default=10
        Maximum number of features.
    ax : Axes, optional
        Axes to draw in; by default those of a new figure of pyplot.

    Returns
    -------
    Axes

    See Also
    --------
    ikpca.NoveltyDetector.explain : Compute contributions.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from ikpca import NoveltyDetector
    >>> from ikpca.plotting import contributions
    >>> wine = load_wine()
    >>> X = scale(wine.data)
    >>> detector = NoveltyDetector(random_state=0).fit(X[wine.target == 0])
    >>> axes = contributions(detector.explain(X[[-1]]), wine.feature_names, number=5)
    >>> len(axes.patches)
    5
    """
    values = np.atleast_2d(np.asarray(C, dtype=np.float64))
    if values.ndim != 2 or not len(values):
        raise InvalidInput(
            f"C has shape {np.shape(C)}: it must have a row for each row of data; pass "
            "contributions returned by explain."
        )
    n_features = values.shape[1]
    if names is not None and len(names) != n_features:
        raise InvalidInput(
            f"names has {len(names)} entries: C has {n_features} features; pass one name for each."
        )
    if number < 1:
        raise invalid_parameter("number", number, "must be positive", "pass 10")
    labels = [f"feature {i}" for i in range(n_features)] if names is None else list(names)
    means = values.mean(axis=0)
    order = np.argsort(-means, kind="stable")[:number]
    ax = _resolve_axes(ax)
    ax.barh(range(len(order)), means[order], color=_BAR_COLOR, height=0.75)
    ax.set_yticks(range(len(order)), [str(labels[i]) for i in order])
    ax.invert_yaxis()
    ax.set_xlabel("Contribution to the error" + (", mean" if len(values) > 1 else ""))
    return ax


def _resolve_axes(ax: Axes | None) -> Axes:
    """Return open axes: those given, or those of a new figure of pyplot, which notebooks show."""
    if ax is None:
        ax = pyplot.figure(layout="constrained", figsize=(6.0, 3.8)).add_subplot()
    ax.spines[["top", "right"]].set_visible(False)
    return ax

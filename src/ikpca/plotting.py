"""Plots of fitted models: eigenvalues, projections, loadings, convergence, novelty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import Literal

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
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.ticker import MaxNLocator
except ModuleNotFoundError as error:
    raise ImportError("ikpca.plotting needs matplotlib; run: pip install 'ikpca[plot]'.") from error

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

TEXT_COLOR = "0.1"
MUTED_COLOR = "0.4"
#: For reference data in the background.
REFERENCE_COLOR = "0.8"
#: Palette of Okabe and Ito, each color with its own line style.
LINE_STYLES: tuple[tuple[str, str | tuple[int, tuple[int, ...]]], ...] = (
    ("#0072B2", "dashed"),
    ("#CC79A7", "dashdot"),
    ("#009E73", "solid"),
    ("#D55E00", (0, (6, 1, 1, 1, 1, 1))),
)
_BAR_COLOR, _SUM_COLOR = LINE_STYLES[0][0], LINE_STYLES[3][0]
#: Quantities of a pass and their labels.
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

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from ikpca import KernelPCA
    >>> from ikpca.plotting import scree
    >>> len(scree(KernelPCA(8).fit(load_wine().data)).patches)
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
    >>> model = KernelPCA(4, kernel="rbf", gamma=0.02, eigen_solver="kha/et", max_iter=5)
    >>> axes = convergence({"KHA/et": model.fit(load_digits().data[:300] / 16)})
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
    for (name, model), (color, dashes) in zip(named.items(), cycle(LINE_STYLES), strict=False):
        history: list[PassRecord] = model.history_
        passes = np.array([record.number for record in history])
        if quantity == "residual":
            values = np.array([record.residuals.max(initial=0.0) for record in history])
        else:
            values = np.array([getattr(record, quantity) for record in history], dtype=np.float64)
        # Values that rounding makes zero or negative have no logarithm.
        values[~(values > 0)] = np.nan
        ax.plot(passes, values, marker=".", color=color, linestyle=dashes, label=name)
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

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from ikpca import KernelPCA
    >>> from ikpca.plotting import projections
    >>> X, y = load_wine(return_X_y=True)
    >>> len(projections(KernelPCA(2).fit_transform(X), y).get_legend().get_texts())
    3
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
    ax.set(xlabel=f"Component {pair[0] + 1}", ylabel=f"Component {pair[1] + 1}")
    if labels is None:
        scatter()
        return ax
    values = np.asarray(labels)[order]
    names, codes = np.unique(values, return_inverse=True)
    if len(names) > _MAX_LEGEND_LABELS and values.dtype.kind in "iuf":
        ax.figure.colorbar(scatter(c=values, cmap="viridis"), ax=ax)
        return ax
    palette = colormaps["tab10" if len(names) <= _MAX_LEGEND_LABELS else "tab20"]
    colors = np.resize(palette(np.arange(palette.N))[:, :3], (len(names), 3))
    scatter(c=colors[codes])
    for name, color in zip(names, colors, strict=True):
        ax.scatter([], [], s=56, linewidths=0, color=color, label=str(name))
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def components(model: BaseEstimator, shape: tuple[int, ...], *, number: int = 12) -> Figure:
    """Plot components as pictures.

    A kernel component is a vector in feature space. The picture is the difference between the
    pre-images of two points, the mean plus and minus two standard deviations along the component:
    red where it increases pixels, blue where it decreases them. Linear models have components in
    input space, which are plotted directly.

    Parameters
    ----------
    model : fitted estimator
        With ``components_``, or with ``eigenvalues_`` and ``inverse_transform``.
    shape : (int, int)
        Height and width of the pictures.
    number : int, default=12
        Maximum number of components.

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
    rows = _component_rows(model, number)
    if len(shape) != 2 or int(np.prod(shape)) != rows.shape[1]:
        rule = f"does not match the {rows.shape[1]} features of the rows"
        raise invalid_parameter("shape", shape, rule, "pass (height, width)")
    across = min(len(rows), 6)
    down = -(-len(rows) // across)
    figure = pyplot.figure(layout="constrained", figsize=(1.25 * across, 1.45 * down))
    for position, row in enumerate(rows, start=1):
        ax = figure.add_subplot(down, across, position)
        _show_signed(ax, row.reshape(shape), aspect="equal")
        ax.set_title(f"{position}", fontsize=9, color=TEXT_COLOR)
        ax.set(xticks=[], yticks=[])
    return figure


def loadings(
    model: BaseEstimator,
    names: Sequence[str] | None = None,
    *,
    numbers: Sequence[int] = (0, 1),
    ax: Axes | None = None,
) -> Axes:
    """Plot the effect of components on the features as a table of colors.

    The effect is that of :func:`components`: the difference between the pre-images of two points,
    the mean plus and minus two standard deviations along the component.

    Parameters
    ----------
    model : fitted estimator
        With ``components_``, or with ``eigenvalues_`` and ``inverse_transform``.
    names : sequence of str, optional
        Names of the features; by default those of the fit, or numbers from 1.
    numbers : sequence of int, default=(0, 1)
        Indices of the components, counted from 0.
    ax : Axes, optional
        Axes to draw in; by default those of a new figure of pyplot.

    Returns
    -------
    Axes
        With the 20 features that change most.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from ikpca import KernelPCA
    >>> from ikpca.plotting import loadings
    >>> wine = load_wine()
    >>> axes = loadings(KernelPCA(2).fit(wine.data), wine.feature_names)
    >>> axes.get_yticklabels()[0].get_text()
    'alcohol'
    """
    check_is_fitted(model)
    table = _component_rows(model, max(numbers) + 1)[[*numbers]].T
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


def _show_signed(ax: Axes, values: Floats, aspect: Literal["equal", "auto"]) -> AxesImage:
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
    pair: tuple[int, int] = (0, 1),
) -> Figure:
    """Plot projections, explained variance and loadings of two components in one figure.

    Arguments are those of :func:`projections` and :func:`loadings`. Loadings are left out if the
    model has no ``components_`` and no ``inverse_transform``.
    """
    # Without pyplot, which would open a window for the command line.
    figure = Figure(layout="constrained", figsize=(13.0, 4.2))
    grid = figure.add_gridspec(1, 3)
    projections(Y, labels, pair=pair, ax=figure.add_subplot(grid[0]))
    scree(model, ax=figure.add_subplot(grid[1]))
    if hasattr(model, "components_") or hasattr(model, "inverse_transform"):
        loadings(model, names, numbers=pair, ax=figure.add_subplot(grid[2]))
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
    labels = [names[feature] for feature in features]
    below.set_xticks(range(len(labels)), labels, rotation=35, ha="right", fontsize=8)
    below.set_yticks(range(len(shares)), row_names, fontsize=8)
    below.set_title("Contributions of the columns to the rows with the largest scores", fontsize=10)
    return figure


def _component_rows(model: BaseEstimator, number: int) -> Floats:
    if hasattr(model, "components_"):
        return np.asarray(model.components_)[:number]
    if not hasattr(model, "inverse_transform"):
        raise InvalidInput(
            f"{type(model).__name__} has neither components_ nor inverse_transform: its components "
            "cannot be plotted; pass a KernelPCA or a HebbianPCA."
        )
    values = np.asarray(model.eigenvalues_, dtype=np.float64)
    n_samples = getattr(model, "n_samples_seen_", None) or len(model.X_fit_)
    scales = np.ones_like(values) if getattr(model, "whiten", False) else values / n_samples
    steps = np.diag(2 * np.sqrt(scales))[:number]
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

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from ikpca import NoveltyDetector
    >>> from ikpca.plotting import contributions
    >>> X, y = load_wine(return_X_y=True)
    >>> C = NoveltyDetector(random_state=0).fit(X[y == 0]).explain(X[[-1]])
    >>> len(contributions(C, number=5).patches)
    5
    """
    values = np.atleast_2d(np.asarray(C, dtype=np.float64))
    if values.ndim != 2 or not len(values):
        raise InvalidInput(
            f"C has shape {np.shape(C)}: it must have a row for each row of data; pass "
            "contributions returned by explain."
        )
    labels = [f"feature {i}" for i in range(values.shape[1])] if names is None else names
    if len(labels) != values.shape[1]:
        raise InvalidInput(
            f"names has {len(labels)} entries: C has {values.shape[1]} features; pass one name for "
            "each."
        )
    if number < 1:
        raise invalid_parameter("number", number, "must be positive", "pass 10")
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

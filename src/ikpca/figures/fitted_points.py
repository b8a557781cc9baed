"""Rows as a fitted model sees them, and what its components look like as pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import InvalidInput, refuse
from ikpca.figures.places import new_figure, place_for
from ikpca.figures.styles import INK
from ikpca.kernels import Floats

__all__ = ["components", "projections"]

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
    >>> from ikpca.figures import projections
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
    ax = place_for(ax)
    across, up = points[:, pair[0]], points[:, pair[1]]
    if names is None:
        ax.scatter(across, up, s=9, linewidths=0)
    else:
        _coloured(ax, across, up, names)
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
    >>> from ikpca.figures import components
    >>> model = KernelPCA(6, kernel="rbf", gamma=0.02).fit(load_digits().data[:300] / 16)
    >>> len(components(model, (8, 8)).axes)
    6
    """
    check_is_fitted(model)
    rows = _directions(model, number, reach)
    if len(shape) != 2 or int(np.prod(shape)) != rows.shape[1]:
        rule = f"rows have {rows.shape[1]} features, which make no such picture"
        raise refuse("shape", shape, rule, "pass (height, width)")
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


def _coloured(ax: Axes, across: Floats, up: Floats, labels: Any) -> None:
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

"""Curves of a fitted model: how much each component explains, and how the fit came to its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import InvalidInput, refuse
from ikpca.figures.places import place_for
from ikpca.figures.styles import INK, LINES, MUTED
from ikpca.loop import PassRecord

__all__ = ["convergence", "scree"]

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
    >>> from ikpca.figures import scree
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
    ax = place_for(ax)
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
    >>> from ikpca.figures import convergence
    >>> X = load_digits().data[:300] / 16
    >>> model = KernelPCA(4, kernel="rbf", gamma=0.02, eigen_solver="kha/et", max_iter=5)
    >>> axes = convergence({"KHA/et": model.fit(X)})
    >>> len(axes.lines[0].get_xdata()), axes.get_yscale()
    (5, 'log')
    """
    if quantity not in _QUANTITIES:
        raise refuse("quantity", quantity, "is unknown", f"choose one of {', '.join(_QUANTITIES)}")
    named = models if isinstance(models, Mapping) else {"": models}
    histories = {name: _history(model) for name, model in named.items()}
    ax = place_for(ax)
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

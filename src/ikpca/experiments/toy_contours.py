"""Kim 2003, figure 1: a noisy parabola, the contour lines of three components."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ikpca.estimators import KernelPCA
from ikpca.experiments.parts import Findings, Part, Request
from ikpca.experiments.selections import Rows
from ikpca.kernels import Floats

__all__ = ["parabola", "plan"]

#: Places per side of the grid on which components are evaluated.
_GRID = 60


def plan(request: Request) -> list[Part]:
    """All of it is one part."""
    settings = request.settings
    task = partial(_compare, settings["rows"], settings["passes"], request.seed)
    return [Part("contours", task)]


def parabola(rows: int, seed: int) -> Floats:
    """y = −x² with Gaussian noise of 0.2, x uniform from −1 to 1.

    Examples
    --------
    >>> parabola(3, seed=0).shape
    (3, 2)
    """
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, rows)
    return np.column_stack([x, -(x**2) + 0.2 * rng.normal(size=rows)])


def _compare(n_rows: int, passes: int, seed: int) -> Findings:
    X = parabola(n_rows, seed)
    low, high = X.min(axis=0) - 0.2, X.max(axis=0) + 0.2
    sides = [np.linspace(*ends, _GRID) for ends in zip(low, high, strict=True)]
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(*sides)])
    shared: dict[str, Any] = {
        "kernel": "poly",
        "degree": 2,
        "gamma": 1.0,
        "coef0": 0.0,
        "random_state": seed,
    }
    exact = KernelPCA(3, eigen_solver="dense", **shared).fit(X).transform(grid)
    found = KernelPCA(3, eigen_solver="kha", max_iter=passes, **shared).fit(X).transform(grid)
    rows: Rows = []
    for number, (one, other) in enumerate(zip(exact.T, found.T, strict=True)):
        correlation = float(np.corrcoef(one, other)[0, 1])
        # The sign of a component is arbitrary, and the pictures should not differ by it.
        found[:, number] *= np.sign(correlation)
        rows.append({"component": number + 1, "correlation": abs(correlation)})
    arrays = {"x": sides[0], "y": sides[1], "points": X}
    shape = (_GRID, _GRID, 3)
    return Findings(
        {"correlations": rows},
        {**arrays, "KPCA": exact.reshape(shape), "KHA": found.reshape(shape)},
    )

"""Günter 2006, figure 3: spectral clustering of digits after every pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from ikpca import KernelPCA
from ikpca.kernels import Floats, Gaussian
from ikpca.metrics import variation_of_information
from ikpca.solvers import EigenSolution
from ikpca_papers.claims import Rows, Tables
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.tuning import METHOD_GROUPS, Problem, tuned_curves

_EXACT, _RANDOM = "kernel PCA", "random clusters"
#: Difference in nats within which a clustering counts as good as that of exact kernel PCA.
_TOLERANCE = 0.05


def plan(request: Request) -> list[Part]:
    """Plan one part for the exact components, and one per group of methods."""
    settings, arrays = request.settings, request.inputs.arrays
    number = settings["rows"] or len(arrays["X"])
    X, y = arrays["X"][:number], arrays["y"][:number]
    shared = (X, y, settings["sigma"], settings["components"], request.seed)
    exact = Part("kernel PCA", partial(_exact, *shared))
    return [
        exact,
        *(
            Part(
                " and ".join(methods),
                partial(_learning_curves, *shared, methods, settings["passes"]),
            )
            for methods in METHOD_GROUPS
        ),
    ]


def _problem(X: Floats, sigma: float, n_components: int) -> Problem:
    return Problem.of("digits", Gaussian(1 / (2 * sigma**2)), X, n_components)


def _distance(projections: Floats, y: NDArray[Any], seed: int) -> float:
    """Return nats between the labels and k-means on the projections, one row per component."""
    means = KMeans(len(np.unique(y)), n_init=10, random_state=seed)
    return variation_of_information(means.fit_predict(projections.T), y)


def _exact(X: Floats, y: NDArray[Any], sigma: float, n_components: int, seed: int) -> Findings:
    model = KernelPCA(n_components, kernel="rbf", gamma=1 / (2 * sigma**2), random_state=seed)
    projections = model.fit_transform(X).T
    guesses = np.random.default_rng(seed).integers(len(np.unique(y)), size=len(y))
    rows: Rows = [
        {"method": _EXACT, "vi": _distance(projections, y, seed)},
        {"method": _RANDOM, "vi": variation_of_information(guesses, y)},
    ]
    return Findings({"levels": rows})


def _learning_curves(
    X: Floats,
    y: NDArray[Any],
    sigma: float,
    n_components: int,
    seed: int,
    methods: Sequence[str],
    passes: int,
) -> Findings:
    def measure(solution: EigenSolution) -> dict[str, Any]:
        return {"vi": _distance(solution.projections, y, seed)}

    curves, gains, _ = tuned_curves(
        _problem(X, sigma, n_components), methods, seed, passes, measure
    )
    return Findings({"curves": curves, "gains": gains})


def summary(tables: Tables) -> dict[str, Rows]:
    """Find the first pass from which a method stays at the level of exact kernel PCA.

    It is one after the last pass if there is none.
    """
    level = next(row["vi"] for row in tables["levels"] if row["method"] == _EXACT)
    limit = float(level or 0) + _TOLERANCE
    rows: Rows = []
    for method in dict.fromkeys(row["method"] for row in tables["curves"]):
        curve = [row for row in tables["curves"] if row["method"] == method]
        late = [int(row["pass"] or 0) for row in curve if float(row["vi"] or 0) > limit]
        rows.append(
            {"method": method, "settled_after": max(late, default=0) + 1, "vi": curve[-1]["vi"]}
        )
    return {"settled": rows}

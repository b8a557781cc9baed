"""Günter 2006, figure 3: spectral clustering of digits after every pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from ikpca import KernelPCA
from ikpca.gram import ComputedGram, full_matrix
from ikpca.kernels import Floats, Gaussian
from ikpca.metrics import variation_of_information
from ikpca.solvers import EigenSolution, Outcome
from ikpca_papers.as_printed import paper_solver
from ikpca_papers.claims import DIVERGED, Cell, Rows, Tables
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.tuning import (
    METHOD_GROUPS,
    Problem,
    grid_gain,
    learning_curve,
    outcome_columns,
    start_of_meta_descent,
    tuned_curves,
)

_EXACT = "kernel PCA"
RANDOM = "random, twice the entropy of the labels"
#: VI of random clusters in the paper.
_RANDOM_VI = 4.54
#: Seeds of k-means for exact components; the largest of their distances is "as good as" them.
_SEEDS = 20


def plan(request: Request) -> list[Part]:
    """Plan one part for the exact components, and one per group of methods of the figure."""
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
            for methods in METHOD_GROUPS[1:]
        ),
    ]


def normalized_affinity(X: Floats, sigma: float) -> Floats:
    """Return D^{-1/2} K D^{-1/2} for the Gaussian kernel and its row sums D (step 2 of [13])."""
    K = full_matrix(ComputedGram(Gaussian(1 / (2 * sigma**2)), X))
    scale = 1 / np.sqrt(K.sum(axis=1))
    K *= scale
    K *= scale[:, None]
    return K


def njw_rows(projections: Floats) -> Floats:
    """Return unit rows of the matrix of unit eigenvectors (steps 3 and 4 of [13]).

    Parameters
    ----------
    projections : ndarray of shape (r, l)
    """
    vectors = (projections / np.linalg.norm(projections, axis=1, keepdims=True)).T
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _distance(rows: Floats, y: NDArray[Any], seed: int) -> float:
    """Return nats between the labels and k-means on the rows (step 5 of [13])."""
    means = KMeans(len(np.unique(y)), n_init=10, random_state=seed)
    return variation_of_information(means.fit_predict(rows), y)


def _exact(X: Floats, y: NDArray[Any], sigma: float, n_components: int, seed: int) -> Findings:
    """Cluster with exact components, and at random, with several seeds each."""

    def projections(K: Floats) -> Floats:
        model = KernelPCA(
            n_components, kernel="precomputed", eigen_solver="krylov", tol=1e-10, random_state=seed
        )
        return np.asarray(model.fit_transform(K))

    affinity = normalized_affinity(X, sigma)
    plain = full_matrix(ComputedGram(Gaussian(1 / (2 * sigma**2)), X))
    embeddings = {
        _EXACT: njw_rows(projections(affinity).T),
        "kernel PCA, k-means on projections": projections(plain),
    }
    seeds = range(seed, seed + _SEEDS)
    shares = np.unique(y, return_counts=True)[1] / len(y)
    distances = {
        **{name: [_distance(rows, y, one) for one in seeds] for name, rows in embeddings.items()},
        "20 draws of random clusters": [
            variation_of_information(np.random.default_rng(one).permutation(y), y) for one in seeds
        ],
        # The limit for independent clusters of the sizes of the classes; draws are biased.
        RANDOM: [float(-2 * np.sum(shares * np.log(shares)))],
    }
    return Findings({"levels": [_level(name, values) for name, values in distances.items()]})


def _level(name: str, distances: Sequence[float]) -> dict[str, Cell]:
    mean = float(np.mean(distances))
    row: dict[str, Cell] = {"method": name, "vi": mean, "vi_max": max(distances)}
    return {**row, "vi_min": min(distances), "from_paper": abs(mean - _RANDOM_VI)}


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
        return {"vi": _distance(njw_rows(solution.projections), y, seed)}

    problem = Problem.from_matrix("digits", normalized_affinity(X, sigma), n_components)
    curves, gains, _ = tuned_curves(problem, methods, [seed], passes, measure)
    tables = {"curves": curves, "gains": gains}
    eta0 = float(gains[0]["gain"] or 0)
    if "kha/et" in methods:
        tables["starts"] = [start_of_meta_descent(problem, [seed], passes, eta0)]
        return Findings(tables)
    # How long KHA/t needs depends on η0: a table of the neighbors on the grid.
    tuned = round(3 * math.log10(eta0))
    tables |= {"other_curves": [], "other_gains": []}
    for gain in (grid_gain(tuned - 1), grid_gain(tuned + 1)):
        solver = paper_solver("kha/t", n_components, len(X), seed, gain=gain)
        rows, solution = learning_curve(problem, solver, seed, passes, measure)
        name: dict[str, Cell] = {"method": f"KHA/t, η0 = {gain:g}", "seed": seed}
        diverged = solution.outcome is Outcome.DIVERGED
        columns = outcome_columns([problem.excess_error(solution)], diverged=diverged)
        tables["other_curves"] += [{**name, **row} for row in rows]
        tables["other_gains"].append({**name, "gain": gain, **columns})
    return Findings(tables)


def summary(tables: Tables) -> dict[str, Rows]:
    """Find the pass after which clusters are as good as those of exact kernel PCA.

    It is ``settled`` after the first pass after which all are, which is judged, and ``reached``
    after the first that is, which may be chance. One after the last pass if there is none.
    """
    limit = next(row["vi_max"] for row in tables["levels"] if row["method"] == _EXACT)
    rows: Rows = []
    curves = [*tables["curves"], *tables["other_curves"]]
    for run in [*tables["gains"], *tables["other_gains"]]:
        curve = [row for row in curves if row["method"] == run["method"]]
        if run["outcome"] == DIVERGED:
            rows.append({"method": run["method"], "outcome": DIVERGED})
            continue
        good = [float(row["vi"] or 0) <= float(limit or 0) for row in curve]
        reached = good.index(True) + 1 if any(good) else len(good) + 1
        settled = 1 + max((number for number, one in enumerate(good, 1) if not one), default=0)
        shared: dict[str, Cell] = {"method": run["method"], "vi": curve[-1]["vi"], "limit": limit}
        rows.append({**shared, "criterion": "reached", "pass": reached})
        rows.append({**shared, "criterion": "settled", "pass": settled})
    return {"as_good": rows}

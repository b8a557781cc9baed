"""Günter 2006, figure 1: excess error per pass of four methods with tuned gains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ikpca.kernels import Floats, Gaussian, Kernel, Linear
from ikpca_papers.claims import DIVERGED
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.guenter2006.algorithm_1 import run_algorithm_1
from ikpca_papers.tuning import (
    LABELS,
    METHOD_GROUPS,
    Problem,
    start_of_meta_descent,
    tune,
    tuned_curves,
)


def plan(request: Request) -> list[Part]:
    """Plan one part per kernel and group of methods, and one per kernel for the clocks."""
    settings = request.settings
    X = first_of_each(
        request.inputs.arrays["X"], request.inputs.arrays["y"], settings["rows_per_digit"]
    )
    kernels: dict[str, Kernel] = {"dot product": Linear()}
    kernels |= {f"Gaussian, σ = {sigma:g}": Gaussian(1 / (2 * sigma**2))
                for sigma in settings["sigmas"]}  # fmt: skip
    shared = (X, settings["components"], settings["passes"])
    seeds = range(request.seed, request.seed + settings["seeds"])
    return [
        *(
            Part(
                f"{name}, {' and '.join(methods)}",
                partial(_learning_curves, name, kernel, *shared, seeds, methods),
            )
            for name, kernel in kernels.items()
            for methods in METHOD_GROUPS
        ),
        *(
            Part(
                f"{name}, λ at every pattern",
                partial(_compare_clocks, name, kernel, *shared, request.seed),
            )
            for name, kernel in kernels.items()
            if settings["clocks"]
        ),
    ]


def first_of_each(X: Floats, y: NDArray[Any], number: int) -> Floats:
    """Return the first rows of every digit, digit by digit."""
    return np.vstack([X[y == digit][:number] for digit in np.unique(y)])


def _learning_curves(
    name: str,
    kernel: Kernel,
    X: Floats,
    n_components: int,
    passes: int,
    seeds: Sequence[int],
    methods: Sequence[str],
) -> Findings:
    problem = Problem.of(name, kernel, X, n_components)
    curves, gains, _ = tuned_curves(problem, methods, seeds, passes)
    tables = {"curves": curves, "gains": gains}
    if "kha/et" in methods:
        eta0 = next(float(row["gain"] or 0) for row in gains)
        tables["starts"] = [start_of_meta_descent(problem, seeds, passes, eta0)]
    named = {key: [{"kernel": name, **row} for row in rows] for key, rows in tables.items()}
    return Findings(named)


def _compare_clocks(
    name: str, kernel: Kernel, X: Floats, n_components: int, passes: int, seed: int
) -> Findings:
    """Run the tuned KHA/et again with λ and η at every pattern, as algorithm 1 prints it."""
    problem = Problem.of(name, kernel, X, n_components)
    run = tune([problem], "kha/et", [seed], passes)
    row: dict[str, Any] = {"kernel": name, "method": LABELS[run.method], "seed": seed, **run.gains}
    if math.isfinite(run.error):
        error = run_algorithm_1(problem, run, seed, passes)
        ratio = run.error / error if math.isfinite(error) else None
        row |= {"once_per_pass": run.error, "every_pattern": error, "ratio": ratio}
    else:
        row["outcome"] = DIVERGED
    return Findings({"clocks": [row]})

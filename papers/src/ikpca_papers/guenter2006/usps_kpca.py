"""Günter 2006, figure 1: excess error per pass of four methods with tuned gains."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ikpca.kernels import Floats, Gaussian, Kernel, Linear
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.tuning import METHOD_GROUPS, Problem, tuned_curves


def plan(request: Request) -> list[Part]:
    """Plan one part per kernel, seed and group of methods."""
    settings = request.settings
    X = first_of_each(
        request.inputs.arrays["X"], request.inputs.arrays["y"], settings["rows_per_digit"]
    )
    kernels: dict[str, Kernel] = {
        "Gaussian": Gaussian(1 / (2 * settings["sigma"] ** 2)),
        "dot product": Linear(),
    }
    return [
        Part(
            f"{name}, {' and '.join(methods)}, seed {seed}",
            partial(
                _learning_curves,
                name,
                kernel,
                X,
                methods,
                seed,
                settings["components"],
                settings["passes"],
            ),
        )
        for name, kernel in kernels.items()
        for seed in range(request.seed, request.seed + settings["seeds"])
        for methods in METHOD_GROUPS
    ]


def first_of_each(X: Floats, y: NDArray[Any], number: int) -> Floats:
    """Return the first rows of every digit, digit by digit."""
    return np.vstack([X[y == digit][:number] for digit in np.unique(y)])


def _learning_curves(
    name: str,
    kernel: Kernel,
    X: Floats,
    methods: Sequence[str],
    seed: int,
    n_components: int,
    passes: int,
) -> Findings:
    problem = Problem.of(name, kernel, X, n_components)
    curves, gains, _ = tuned_curves(problem, methods, seed, passes)
    tables = {"curves": curves, "gains": gains}
    named = {key: [{"kernel": name, **row} for row in rows] for key, rows in tables.items()}
    return Findings(named)

"""Gains of KHA: the paper leaves them open."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ikpca import KernelPCA
from ikpca.errors import InvalidInput
from ikpca.kernels import Floats, Kernel
from ikpca.solvers import Outcome
from ikpca_papers.as_printed import paper_solver
from ikpca_papers.claims import Rows
from ikpca_papers.metrics import excess_error
from ikpca_papers.tuning import Problem, search_gain

#: Start of the search, times 1/κ.
_FIRST_GUESS = 0.05


def kha_model(
    n_components: int, n_rows: int, passes: int, gain: float, seed: int, **settings: Any
) -> KernelPCA:
    """Return KHA as printed: random start, constant gain, no Rayleigh–Ritz step, no safety."""
    solver = paper_solver("kha", n_components, n_rows, seed, gain=gain)
    return KernelPCA(
        n_components, eigen_solver=solver, max_iter=passes, random_state=seed, **settings
    )


def tune_gain(
    kernel: Kernel, X: Floats, n_components: int, passes: int, seed: int
) -> tuple[float, Rows]:
    """Choose the gain of KHA by the reconstruction error in feature space, whatever the claim.

    A run that diverges is not a candidate.

    Returns
    -------
    gain : float
        Of {1, 2, 5}·10^b.
    rows : list of dict
        Every gain with its error (E − E_min)/‖K'‖, which is missing for a run that diverges.
    """
    problem = Problem.of("", kernel, np.asarray(X, dtype=np.float64), n_components)
    squared_norm = problem.squared_norm
    least_error = math.sqrt(max(1 - float(np.sum(problem.eigenvalues**2)) / squared_norm, 0.0))

    def error(gain: float) -> float:
        solver = paper_solver("kha", n_components, len(X), seed, gain=gain)
        solution = problem.solve(solver, seed, passes)
        if solution.outcome is Outcome.DIVERGED:
            return math.inf
        # Without eigenvalues, E_min is ‖K'‖.
        whole = excess_error(problem.gram, solution.projections, np.zeros(1), squared_norm)
        return 1 + whole - least_error

    return _search(error, _FIRST_GUESS / problem.gram.mean_diagonal)


def tune_online(run: Callable[[float], float], first: float) -> tuple[float, Rows]:
    """Choose the gain of a stream by the error that ``run`` returns.

    A run that diverges is not a candidate.
    """

    def error(gain: float) -> float:
        try:
            return run(gain)
        except InvalidInput:
            return math.inf

    return _search(error, first)


def _search(error: Callable[[float], float], first: float) -> tuple[float, Rows]:
    rows: Rows = []

    def record(gain: float) -> float:
        tuned_error = error(gain)
        rows.append({"gain": gain, "error": tuned_error if math.isfinite(tuned_error) else None})
        return tuned_error

    gain, _ = search_gain(record, start=round(3 * math.log10(first)))
    return gain, sorted(rows, key=lambda row: float(row["gain"] or 0))

"""Günter 2006, algorithm 1, pattern by pattern: λ and η can be determined at every pattern."""

from __future__ import annotations

import math

import numpy as np

from ikpca.kernels import Floats
from ikpca.solvers import (
    InverseTime,
    ReciprocalEigenvalues,
    hebbian_step_with_products,
    meta_step,
)
from ikpca_papers.as_printed import LOG_GAIN_INIT, META_DECAY, paper_solver
from ikpca_papers.metrics import excess_error
from ikpca_papers.tuning import Problem, TunedRun


def run_algorithm_1(
    problem: Problem, run: TunedRun, seed: int, passes: int, every: int = 1
) -> float:
    """Return the excess error of a run of KHA/et or KHA-SMD; infinite if it diverges.

    Parameters
    ----------
    problem : Problem
    run : TunedRun
        Method and gains.
    seed : int
        The start and the order of the patterns are those of the solver.
    passes : int
    every : int
        Patterns between two estimates of λ and η: 1 as in algorithm 1, or the number of rows for
        once per pass, as in the paper's experiments.
    """
    K = problem.K - problem.K.mean(axis=0) - problem.K.mean(axis=1)[:, None] + problem.K.mean()
    n_samples = len(K)
    solver = paper_solver(run.method, problem.n_components, n_samples, seed, **run.gains)
    schedule = run.gains["gain"] * InverseTime() * ReciprocalEigenvalues()
    A = np.asarray(solver.init)
    AK, B = A @ K, np.zeros_like(A)
    rho, eta = np.full(len(A), LOG_GAIN_INIT), np.zeros(len(A))
    with np.errstate(over="ignore", invalid="ignore"):
        for t, p in enumerate(_patterns(n_samples, seed, passes)):
            if t % every == 0:
                eta = schedule.gains(np.array([float(t)]), n_samples, _eigenvalues(A, AK))[0]
            if run.eta0 is None:
                A, AK = hebbian_step_with_products(A, AK, K[p], p, eta)
            else:
                A, B, AK, rho = meta_step(A, B, AK, rho, K[p], p, eta, run.gain, META_DECAY)
            if not np.isfinite(AK[:, p]).all():
                return math.inf
    error = excess_error(problem.gram, AK, problem.eigenvalues, problem.squared_norm)
    return error if math.isfinite(error) else math.inf


def _patterns(n_samples: int, seed: int, passes: int) -> list[int]:
    """Return the concatenated permutations of the solver."""
    orders = [
        np.random.default_rng([seed, 1, number]).permutation(n_samples) for number in range(passes)
    ]
    return [int(p) for p in np.concatenate(orders)]


def _eigenvalues(A: Floats, AK: Floats) -> Floats:
    """Return λ_i = ‖(AK')_i‖/‖A_i‖ (eq. 13)."""
    return np.asarray(np.linalg.norm(AK, axis=1) / np.linalg.norm(A, axis=1))

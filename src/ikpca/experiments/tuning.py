"""The papers' methods with gains tuned by hand, and ours with none set, on the same problem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ikpca import dense
from ikpca.engines import LocalStore
from ikpca.estimators import KernelPCA
from ikpca.experiments.gain_search import search_gain
from ikpca.gram import CentredGram, ComputedGram, PrecomputedGram, Workers, centred, whole
from ikpca.hebbian import Floats, HebbianOptions, solve
from ikpca.kernels import Kernel
from ikpca.measures import excess_error

__all__ = ["Problem", "TunedRun", "automatic_error", "paper_options", "tune", "tuned_runs"]

#: Beyond these a whole eigendecomposition takes longer than all that is measured against it.
_DENSE_ROWS = 2000
#: Where the search begins, times 1/κ.
_FIRST_GUESS = {"kha": 0.05, "kha/t": 0.8, "kha/et": 0.2, "kha-smd": 0.2}


@dataclass(frozen=True)
class Problem:
    """A kernel matrix, its exact leading eigenvalues, and how errors on it are measured."""

    name: str
    K: Floats
    n_components: int
    eigenvalues: Floats

    @classmethod
    def of(cls, name: str, kernel: Kernel, X: Floats, n_components: int) -> Problem:
        """Evaluate K once and solve it exactly."""
        K = whole(ComputedGram(kernel, X))
        if len(K) <= _DENSE_ROWS:
            return cls(name, K, n_components, dense.decompose(K, n_components).eigenvalues)
        model = KernelPCA(
            n_components, kernel="precomputed", eigen_solver="krylov", tol=1e-10, random_state=0
        )
        return cls(name, K, n_components, model.fit(K).eigenvalues_)

    @cached_property
    def gram(self) -> CentredGram:
        """K', made where it is wanted: it holds locks, which do not travel between processes."""
        return centred(PrecomputedGram(self.K, symmetric=True))[0]

    @cached_property
    def squared_norm(self) -> float:
        """‖K'‖²."""
        return self.gram.squared_norm()

    def error(self, options: HebbianOptions, seed: int) -> float:
        """Excess error after a run."""
        source = PrecomputedGram(self.K, symmetric=True)
        # One thread: runs are small, and searches run side by side.
        with Workers(1) as workers:
            solution = solve(
                source,
                self.n_components,
                options,
                seed=seed,
                open_store=LocalStore,
                workers=workers,
            )
        return excess_error(self.gram, solution.projections, self.eigenvalues, self.squared_norm)


@dataclass(frozen=True)
class TunedRun:
    """The best of a search: η0, or µ for KHA-SMD, and the error it led to."""

    method: str
    seed: int
    gain: float
    error: float
    eta0: float | None = None

    @property
    def gains(self) -> dict[str, float]:
        """As the options want them."""
        if self.eta0 is None:
            return {"gain": self.gain}
        return {"gain": self.eta0, "meta_gain": self.gain}


def paper_options(
    method: str, n_components: int, n_samples: int, seed: int, *, passes: int, gain: float,
    meta_gain: float = 0.0,
) -> HebbianOptions:  # fmt: skip
    """Günter 2006 as printed: A ~ N(0, 1/(rl)), gains once per pass, no Rayleigh–Ritz."""
    shape = (n_components, n_samples)
    start = np.random.default_rng(seed).normal(size=shape) / np.sqrt(n_components * n_samples)
    return HebbianOptions(
        method, gain=gain, meta_gain=meta_gain, clock="pass", init=start, rayleigh_ritz=False,
        max_iter=passes,
    )  # fmt: skip


def tune(
    problem: Problem, method: str, seed: int, passes: int = 50, eta0: float | None = None
) -> TunedRun:
    """Tune one run as the papers did, the step in {1, 2, 5}·10^b: η0, or µ for a given η0."""

    def error(step: float) -> float:
        gains: dict[str, Any] = TunedRun(method, seed, step, 0.0, eta0).gains
        options = paper_options(
            method, problem.n_components, len(problem.K), seed, passes=passes, **gains
        )
        return problem.error(options, seed)

    first = _FIRST_GUESS[method] / problem.gram.mean_diagonal
    step, best = search_gain(error, start=round(3 * math.log10(first)))
    return TunedRun(method, seed, step, best, eta0)


def tuned_runs(
    problem: Problem, methods: tuple[str, ...], seed: int, passes: int = 50
) -> dict[str, TunedRun]:
    """Tune one run of each method; KHA-SMD uses the η0 found for KHA/et (section 5)."""
    runs: dict[str, TunedRun] = {}
    for method in methods:
        eta0 = runs["kha/et"].gain if method == "kha-smd" else None
        runs[method] = tune(problem, method, seed, passes, eta0)
    return runs


def automatic_error(problem: Problem, method: str, seed: int, passes: int = 50) -> float:
    """The same with no parameter set."""
    return problem.error(HebbianOptions(method, max_iter=passes), seed)

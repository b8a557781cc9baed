"""Learning curves with tuned gains."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ikpca import KernelPCA
from ikpca.gram import (
    CenteredGram,
    ComputedGram,
    PrecomputedGram,
    Workers,
    center_gram,
    full_matrix,
)
from ikpca.kernels import Floats, Kernel
from ikpca.solvers import (
    HebbianOptions,
    HebbianSolution,
    LocalStore,
    Observer,
    PassRecord,
    solve_dense,
    solve_kha,
)
from ikpca_papers.claims import Rows
from ikpca_papers.metrics import excess_error

_MANTISSAS = (1, 2, 5)
#: A step must lower the error by a thousandth, or a gain without effect is divided for ever.
_MIN_IMPROVEMENT = 0.999


def grid_gain(index: int) -> float:
    """Gain at an index of the grid …, 0.5, 1, 2, 5, 10, … with 1 at index 0.

    Examples
    --------
    >>> [grid_gain(index) for index in (-4, -1, 0, 1, 3)]
    [0.05, 0.5, 1.0, 2.0, 10.0]
    """
    power, mantissa = divmod(index, 3)
    return float(f"{_MANTISSAS[mantissa]}e{power}")


def search_gain(error: Callable[[float], float], start: int = 0) -> tuple[float, float]:
    """Search the grid from ``start`` while the error decreases, up then down.

    Where the next gain is not better, the one after it is tried, so that one unlucky seed does not
    end the search.

    Parameters
    ----------
    error : callable
        From a gain to its error.
    start : int
        Index on the grid.

    Returns
    -------
    gain, error : float
        The best ones.
    """
    known: dict[int, float] = {}

    def at(index: int) -> float:
        if index not in known:
            known[index] = error(grid_gain(index))
        return known[index]

    best = start
    for direction in (1, -1):
        best = _search_direction(at, best, direction)
    return grid_gain(best), at(best)


def _search_direction(at: Callable[[int], float], best: int, direction: int) -> int:
    while True:
        goal = _MIN_IMPROVEMENT * at(best)
        better = [best + direction * step for step in (1, 2) if at(best + direction * step) < goal]
        if not better:
            return best
        best = min(better, key=at)


#: For more rows a dense eigendecomposition would take longer than the experiments.
_DENSE_ROWS = 2000
#: Start of the search, times 1/κ.
_FIRST_GUESS = {"kha": 0.05, "kha/t": 0.8, "kha/et": 0.2, "kha-smd": 0.2}


@dataclass(frozen=True)
class Problem:
    """Kernel matrix with its exact leading eigenvalues."""

    name: str
    K: Floats
    n_components: int
    eigenvalues: Floats

    @classmethod
    def of(cls, name: str, kernel: Kernel, X: Floats, n_components: int) -> Problem:
        """Evaluate the kernel matrix once and solve it exactly."""
        K = full_matrix(ComputedGram(kernel, X))
        if len(K) <= _DENSE_ROWS:
            return cls(name, K, n_components, solve_dense(K, n_components).eigenvalues)
        model = KernelPCA(
            n_components, kernel="precomputed", eigen_solver="krylov", tol=1e-10, random_state=0
        )
        return cls(name, K, n_components, model.fit(K).eigenvalues_)

    @cached_property
    def gram(self) -> CenteredGram:
        """Centred kernel matrix; created on demand, because it cannot be pickled."""
        return center_gram(PrecomputedGram(self.K, symmetric=True))[0]

    @cached_property
    def squared_norm(self) -> float:
        """‖K'‖²."""
        return self.gram.squared_norm()

    def error(self, options: HebbianOptions, seed: int) -> float:
        """Return the excess error after a run."""
        source = PrecomputedGram(self.K, symmetric=True)
        # One thread: runs are small, and searches run in parallel.
        with Workers(1) as workers:
            solution = solve_kha(
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
    """Result of a search: the best η0, or µ for KHA-SMD, and its error."""

    method: str
    seed: int
    gain: float
    error: float
    eta0: float | None = None

    @property
    def gains(self) -> dict[str, float]:
        """Keyword arguments for the options."""
        if self.eta0 is None:
            return {"gain": self.gain}
        return {"gain": self.eta0, "meta_gain": self.gain}


def paper_options(
    method: str, n_components: int, n_samples: int, seed: int, *, passes: int, gain: float,
    meta_gain: float = 0.0,
) -> HebbianOptions:  # fmt: skip
    """Options as in Günter 2006: A ~ N(0, 1/(rl)), gains once per pass, no Rayleigh–Ritz."""
    shape = (n_components, n_samples)
    start = np.random.default_rng(seed).normal(size=shape) / np.sqrt(n_components * n_samples)
    return HebbianOptions(
        method, gain=gain, meta_gain=meta_gain, clock="pass", init=start, rayleigh_ritz=False,
        max_iter=passes,
    )  # fmt: skip


def tune(
    problem: Problem, method: str, seed: int, passes: int = 50, eta0: float | None = None
) -> TunedRun:
    """Tune one run as the papers did, over {1, 2, 5}·10^b: η0, or µ for a given η0."""

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
    """Return the excess error of a run with default parameters."""
    return problem.error(HebbianOptions(method, max_iter=passes), seed)


LABELS = {"kha": "KHA", "kha/t": "KHA/t", "kha/et": "KHA/et", "kha-smd": "KHA-SMD"}
#: Methods that are tuned together: KHA-SMD uses the η0 of KHA/et.
METHOD_GROUPS = (("kha",), ("kha/t",), ("kha/et", "kha-smd"))
#: From the solution after a pass to further columns of the table.
Measure = Callable[[HebbianSolution], dict[str, Any]]


def _no_columns(solution: HebbianSolution) -> dict[str, Any]:
    return {}


@dataclass
class PassRecorder:
    """Observer that records a row per pass."""

    problem: Problem
    measure: Measure = _no_columns
    every: int = 1

    def __post_init__(self) -> None:
        self.rows: Rows = []
        self._seconds = 0.0

    def make_observers(
        self, snapshot: Callable[[], HebbianSolution]
    ) -> Sequence[Observer[Any, Any]]:
        """Observe a run."""
        self._snapshot = snapshot
        return [self]

    def on_step_end(self, state: object, report: PassRecord) -> None:
        """Record a row; seconds are those of the passes alone."""
        self._seconds += report.seconds
        if report.number % self.every:
            return
        solution, problem = self._snapshot(), self.problem
        error = excess_error(
            problem.gram, solution.projections, problem.eigenvalues, problem.squared_norm
        )
        row = {"pass": report.number, "seconds": self._seconds, "excess_error": error}
        self.rows.append({**row, **self.measure(solution)})


def learning_curve(
    problem: Problem,
    options: HebbianOptions,
    seed: int,
    measure: Measure = _no_columns,
    every: int = 1,
) -> tuple[Rows, HebbianSolution]:
    """Run once and record a row after every so many passes."""
    recorder = PassRecorder(problem, measure, every)
    with Workers(1) as workers:
        solution = solve_kha(
            PrecomputedGram(problem.K, symmetric=True),
            problem.n_components,
            options,
            seed=seed,
            open_store=LocalStore,
            workers=workers,
            make_observers=recorder.make_observers,
        )
    return recorder.rows, solution


def tuned_curves(
    problem: Problem,
    methods: Sequence[str],
    seed: int,
    passes: int,
    measure: Measure = _no_columns,
) -> tuple[Rows, Rows, dict[str, HebbianSolution]]:
    """Tune the methods and record their learning curves: curves, gains, solutions."""
    curves: Rows = []
    gains: Rows = []
    solutions = {}
    for method, tuned in tuned_runs(problem, tuple(methods), seed, passes).items():
        options = paper_options(
            method, problem.n_components, len(problem.K), seed, passes=passes, **tuned.gains
        )
        rows, solutions[method] = learning_curve(problem, options, seed, measure)
        name: dict[str, Any] = {"method": LABELS[method], "seed": seed}
        curves.extend({**name, **row} for row in rows)
        gains.append({**name, **tuned.gains, "excess_error": rows[-1]["excess_error"]})
    return curves, gains, solutions

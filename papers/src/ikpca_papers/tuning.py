"""Learning curves with tuned gains."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np

from ikpca import KernelPCA
from ikpca.gram import (
    CenteredGram,
    ComputedGram,
    PrecomputedGram,
    center_gram,
    full_matrix,
    read_budget,
    tile_slices,
)
from ikpca.kernels import Floats, Kernel
from ikpca.solvers import (
    KHA,
    Callback,
    EigenSolution,
    Outcome,
    PassRecord,
    RunSettings,
    solve_dense,
)
from ikpca.solvers import Problem as EigenProblem
from ikpca_papers.as_printed import SMD_FROM_ZERO, paper_solver
from ikpca_papers.claims import DIVERGED, Cell, Rows
from ikpca_papers.metrics import excess_error

_MANTISSAS = (1, 2, 5)
#: Rows of K' in memory at a time while its norm is computed.
_STRIP = 256
#: A step must lower the error by a thousandth, or a gain without effect is divided for ever.
_MIN_IMPROVEMENT = 0.999
#: Steps of the grid, up and down, in which a run that does not diverge is looked for.
_REACH = 12
#: Accuracy of the limit at which KHA/et diverges.
_LIMIT_RATIO = 1.1


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
    end the search. A run that diverges has an infinite error and is never chosen; if the first one
    does, the search starts from the nearest gain whose run does not.

    Parameters
    ----------
    error : callable
        From a gain to its error.
    start : int
        Index on the grid.

    Returns
    -------
    gain, error : float
        The best ones; the error is infinite if every run diverged.
    """
    errors: dict[int, float] = {}

    def at(index: int) -> float:
        if index not in errors:
            errors[index] = error(grid_gain(index))
        return errors[index]

    nearby = (start + sign * step for step in range(_REACH + 1) for sign in (-1, 1))
    best = next((index for index in nearby if math.isfinite(at(index))), start)
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
_FIRST_GUESS = {"kha": 0.05, "kha/t": 0.8, "kha/et": 0.2, "kha-smd": 0.2, SMD_FROM_ZERO: 0.2}


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
        return cls.from_matrix(name, full_matrix(ComputedGram(kernel, X)), n_components)

    @classmethod
    def from_matrix(cls, name: str, K: Floats, n_components: int) -> Problem:
        """Solve a symmetric kernel matrix exactly."""
        if len(K) <= _DENSE_ROWS:
            return cls(name, K, n_components, solve_dense(K, n_components).eigenvalues)
        model = KernelPCA(
            n_components, kernel="precomputed", eigen_solver="krylov", tol=1e-10, random_state=0
        )
        return cls(name, K, n_components, model.fit(K).eigenvalues_)

    @cached_property
    def gram(self) -> CenteredGram:
        """Centered kernel matrix; created on demand, because it cannot be pickled."""
        return center_gram(PrecomputedGram(self.K))[0]

    @cached_property
    def squared_norm(self) -> float:
        """‖K'‖²."""
        indices = np.arange(self.gram.n_samples)
        strips = (self.gram.rows(indices[part]) for part in tile_slices(len(indices), _STRIP))
        return sum(float(np.einsum("ij,ij->", rows, rows, dtype=np.float64)) for rows in strips)

    def solve(
        self, solver: KHA, seed: int, passes: int, callback: Callback | None = None
    ) -> EigenSolution:
        """Run a solver in one thread: runs are small, and searches run in parallel."""
        problem = EigenProblem(None, self.K, read_budget(None), seed=seed)
        return solver.solve(problem, self.n_components, RunSettings(passes, callback=callback))

    def excess_error(self, solution: EigenSolution) -> float:
        """Return E/E_min − 1."""
        return excess_error(self.gram, solution.projections, self.eigenvalues, self.squared_norm)

    def error(self, solver: KHA, seed: int, passes: int = 50) -> float:
        """Return the excess error after a run; infinite if the run diverged."""
        solution = self.solve(solver, seed, passes)
        error = self.excess_error(solution)
        finished = solution.outcome is not Outcome.DIVERGED and math.isfinite(error)
        return error if finished else math.inf


@dataclass(frozen=True)
class TunedRun:
    """Result of a search: the best η0, or µ for KHA-SMD, for all seeds of a problem.

    Parameters
    ----------
    method : str
    gain : float
    error : float
        Geometric mean over the seeds; infinite if a run diverged with every gain.
    eta0 : float, optional
        Of KHA-SMD.
    """

    method: str
    gain: float
    error: float
    eta0: float | None = None

    @property
    def gains(self) -> dict[str, float]:
        """Keyword arguments for the solver."""
        if self.eta0 is None:
            return {"gain": self.gain}
        return {"gain": self.eta0, "meta_gain": self.gain}

    def mean_error(self, problems: Sequence[Problem], seeds: Sequence[int], passes: int) -> float:
        """Return the geometric mean of the excess errors; infinite if one of the runs diverges."""
        logs = []
        for problem, seed in product(problems, seeds):
            solver = paper_solver(
                self.method, problem.n_components, len(problem.K), seed, **self.gains
            )
            error = problem.error(solver, seed, passes)
            if math.isinf(error):
                return math.inf
            # Rounding may leave an error at or below zero.
            logs.append(math.log(max(error, np.finfo(float).tiny)))
        return math.exp(fmean(logs))


def tune(
    problems: Sequence[Problem],
    method: str,
    seeds: Sequence[int],
    passes: int = 50,
    eta0: float | None = None,
) -> TunedRun:
    """Tune as the papers did, over {1, 2, 5}·10^b: η0, or µ for a given η0, one for all runs.

    Parts of one task, such as sub-images, are several problems. Nothing corrects a run that
    diverges, and a gain with which one does is not a candidate.
    """

    def error(step: float) -> float:
        return TunedRun(method, step, 0.0, eta0).mean_error(problems, seeds, passes)

    first = _FIRST_GUESS[method] / problems[0].gram.mean_diagonal
    step, best = search_gain(error, start=round(3 * math.log10(first)))
    return TunedRun(method, step, best, eta0)


def divergence_limit(problem: Problem, run: TunedRun, seeds: Sequence[int], passes: int) -> float:
    """Return the η0 beyond which a run of KHA/et diverges for one of the seeds, within 10 %."""

    def diverges(gain: float) -> bool:
        return math.isinf(replace(run, gain=gain).mean_error([problem], seeds, passes))

    low = run.gain
    high = 2 * low
    while not diverges(high):
        low, high = high, 2 * high
    while high > _LIMIT_RATIO * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if diverges(middle) else (middle, high)
    return low


def tuned_runs(
    problems: Sequence[Problem], methods: Sequence[str], seeds: Sequence[int], passes: int = 50
) -> dict[str, TunedRun]:
    """Tune every method; KHA-SMD uses the η0 found for KHA/et (section 5)."""
    runs: dict[str, TunedRun] = {}
    for method in methods:
        eta0 = runs["kha/et"].gain if method in ("kha-smd", SMD_FROM_ZERO) else None
        runs[method] = tune(problems, method, seeds, passes, eta0)
    return runs


def automatic_error(problem: Problem, method: str, seed: int, passes: int = 50) -> float:
    """Return the excess error of a run with automatic gains from a random start."""
    return problem.error(KHA(method, init="random"), seed, passes)


LABELS = {
    "kha": "KHA",
    "kha/t": "KHA/t",
    "kha/et": "KHA/et",
    "kha-smd": "KHA-SMD",
    SMD_FROM_ZERO: "KHA-SMD, ρ0 = 0",
}
#: Methods that are tuned together: KHA-SMD uses the η0 of KHA/et.
METHOD_GROUPS = (("kha",), ("kha/t",), ("kha/et", "kha-smd", SMD_FROM_ZERO))
#: From the solution after a pass to further columns of the table.
Measure = Callable[[EigenSolution], dict[str, Any]]


def _no_columns(solution: EigenSolution) -> dict[str, Any]:
    return {}


def learning_curve(
    problem: Problem,
    solver: KHA,
    seed: int,
    passes: int,
    measure: Measure = _no_columns,
    every: int = 1,
) -> tuple[Rows, EigenSolution]:
    """Run once and record a row after every so many passes; seconds are those of the passes.

    A run that diverges has no row for the pass in which it does.
    """
    rows: Rows = []
    seconds = 0.0

    def record_row(record: PassRecord, current: Callable[[], EigenSolution]) -> None:
        nonlocal seconds
        seconds += record.seconds
        if record.number % every:
            return
        solution = current()
        error = problem.excess_error(solution)
        row = {"pass": record.number, "seconds": seconds, "excess_error": error}
        rows.append({**row, **measure(solution)})

    solution = problem.solve(solver, seed, passes, record_row)
    if solution.outcome is Outcome.DIVERGED:
        # The pass was undone.
        rows = [row for row in rows if row["pass"] != len(solution.records)]
    return rows, solution


def outcome_columns(errors: Sequence[float], *, diverged: bool) -> dict[str, Any]:
    """Return the mean of excess errors and the outcome; a method that diverged has no error."""
    if diverged:
        return {"excess_error": None, "outcome": DIVERGED}
    return {"excess_error": fmean(errors), "outcome": "finished"}


def tuned_curves(
    problem: Problem,
    methods: Sequence[str],
    seeds: Sequence[int],
    passes: int,
    measure: Measure = _no_columns,
) -> tuple[Rows, Rows, dict[tuple[str, int], EigenSolution]]:
    """Tune the methods and record learning curves: curves, gains, solutions by method and seed."""
    curves: Rows = []
    gains: Rows = []
    solutions = {}
    for method, tuned in tuned_runs([problem], methods, seeds, passes).items():
        for seed in seeds:
            solver = paper_solver(method, problem.n_components, len(problem.K), seed, **tuned.gains)
            rows, solution = learning_curve(problem, solver, seed, passes, measure)
            solutions[method, seed] = solution
            name: dict[str, Any] = {"method": LABELS[method], "seed": seed}
            curves.extend({**name, **row} for row in rows)
            error = problem.excess_error(solution)
            diverged = solution.outcome is Outcome.DIVERGED or not math.isfinite(error)
            gains.append({**name, **tuned.gains, **outcome_columns([error], diverged=diverged)})
    return curves, gains, solutions


def start_of_meta_descent(
    problem: Problem, seeds: Sequence[int], passes: int, eta0: float
) -> dict[str, Cell]:
    """Compare e·η0, the first gain of KHA-SMD from ρ0 = 1, with the limit of KHA/et.

    With a first gain above the limit KHA-SMD cannot start.
    """
    limit = divergence_limit(problem, TunedRun("kha/et", eta0, 0.0), seeds, passes)
    return {"eta0": eta0, "limit": limit, "start_over_limit": math.e * eta0 / limit}

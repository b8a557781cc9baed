"""The error after every pass, with gains as the papers choose them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ikpca.engines import LocalStore
from ikpca.experiments.selections import Rows
from ikpca.experiments.tuning import Problem, paper_options, tuned_runs
from ikpca.gram import PrecomputedGram, Workers
from ikpca.hebbian import HebbianOptions, HebbianSolution, solve
from ikpca.loop import Observer, PassRecord
from ikpca.measures import excess_error

__all__ = ["CHAINS", "LABELS", "Watched", "follow", "tuned_curves"]

LABELS = {"kha": "KHA", "kha/t": "KHA/t", "kha/et": "KHA/et", "kha-smd": "KHA-SMD"}
#: What has to be tuned together: KHA-SMD takes the η0 of KHA/et.
CHAINS = (("kha",), ("kha/t",), ("kha/et", "kha-smd"))
#: Looks at the solution after a pass, and returns further columns of the table.
Look = Callable[[HebbianSolution], dict[str, Any]]


def _nothing(solution: HebbianSolution) -> dict[str, Any]:
    return {}


@dataclass
class Watched:
    """Observer that writes a row per pass."""

    problem: Problem
    look: Look = _nothing
    every: int = 1

    def __post_init__(self) -> None:
        self.rows: Rows = []
        self._seconds = 0.0

    def watch(self, snapshot: Callable[[], HebbianSolution]) -> Sequence[Observer[Any, Any]]:
        """Become the observer of a run."""
        self._snapshot = snapshot
        return [self]

    def see(self, state: object, report: PassRecord) -> None:
        """Measure; seconds are those of the passes alone."""
        self._seconds += report.seconds
        if report.number % self.every:
            return
        solution, problem = self._snapshot(), self.problem
        error = excess_error(
            problem.gram, solution.projections, problem.eigenvalues, problem.squared_norm
        )
        row = {"pass": report.number, "seconds": self._seconds, "excess_error": error}
        self.rows.append({**row, **self.look(solution)})


def follow(
    problem: Problem, options: HebbianOptions, seed: int, look: Look = _nothing, every: int = 1
) -> tuple[Rows, HebbianSolution]:
    """Run once and measure after every so many passes."""
    watched = Watched(problem, look, every)
    with Workers(1) as workers:
        solution = solve(
            PrecomputedGram(problem.K, symmetric=True),
            problem.n_components,
            options,
            seed=seed,
            open_store=LocalStore,
            workers=workers,
            watch=watched.watch,
        )
    return watched.rows, solution


def tuned_curves(
    problem: Problem, chain: Sequence[str], seed: int, passes: int, look: Look = _nothing
) -> tuple[Rows, Rows, dict[str, HebbianSolution]]:
    """Tune every method of a chain, and follow it: rows per pass, rows of gains, solutions."""
    curves: Rows = []
    gains: Rows = []
    solutions = {}
    for method, tuned in tuned_runs(problem, tuple(chain), seed, passes).items():
        options = paper_options(
            method, problem.n_components, len(problem.K), seed, passes=passes, **tuned.gains
        )
        rows, solutions[method] = follow(problem, options, seed, look)
        name: dict[str, Any] = {"method": LABELS[method], "seed": seed}
        curves.extend({**name, **row} for row in rows)
        gains.append({**name, **tuned.gains, "excess_error": rows[-1]["excess_error"]})
    return curves, gains, solutions

"""Choice of the eigensolver: by name, by the number of rows, and by tolerance and expected cost."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import ClassVar

import numpy as np

from ikpca.errors import invalid_parameter
from ikpca.gram.resources import Workers
from ikpca.solvers.base import EigenSolution, Outcome, PassRecord, RunSettings, Solver
from ikpca.solvers.dense import Dense
from ikpca.solvers.kha import KHA, METHODS
from ikpca.solvers.krylov import (
    DIRECTION_PASSES,
    KEEPING_COST,
    Krylov,
    block_size,
    default_start,
    is_sampled,
    keeps_values,
)
from ikpca.solvers.landmarks import DIRECTIONS_PER_COMPONENT
from ikpca.solvers.nystrom import (
    IndefiniteKernel,
    LandmarkFit,
    Nystrom,
    check_rows_and_kernel,
    landmark_bytes,
    residual_bound,
)
from ikpca.solvers.problem import Problem
from ikpca.solvers.rayleigh_ritz import SAMPLE_ROWS

#: scikit-learn's names of iterative solvers stand for krylov.
_SKLEARN_ALIASES = ("arpack", "randomized")
SOLVERS = ("auto", "dense", "krylov", "nystrom", *_SKLEARN_ALIASES, *METHODS)
#: To machine precision, the dense solver is faster up to this order plus rows per component
#: (benchmarks/crossover.py), and with a tolerance up to the last order.
_DENSE_ORDER, _DENSE_ROWS_PER_COMPONENT, _DENSE_TOLERANCE_ORDER = 2200, 10, 1500
#: Order up to which the dense solver finds the components for a fraction of the variance.
_DENSE_VARIANCE_ORDER = 4000
# Prediction of the number of landmarks and of costs; benchmarks/frontier.py measures fits with it.
#: Rows of the pilot: at most this many, and this share of all.
_PILOT_ROWS, _PILOT_SHARE = 4096, 1 / 8
#: Landmarks of the pilots, as shares of their rows.
_PILOT_LANDMARKS = (1 / 32, 1 / 16, 1 / 8)
#: Landmarks per component that the smallest pilot needs.
_LANDMARKS_PER_COMPONENT = 2
#: Rounding errors of residuals of landmarks, in units of machine epsilon: more landmarks do not
#: reduce them.
_ROUNDING = 50
#: Part of the tolerance that predicted residuals have to meet.
_MARGIN = 0.7
#: Limits of the power of the number of landmarks with which residuals fall.
_MIN_POWER, _MAX_POWER = 0.3, 4.0
#: Least growth of the number of landmarks after a miss.
_GROWTH = 1.2
#: Reduction of the residual of landmarks by the first pass of block Krylov iterations.
_FIRST_REDUCTION = 20
#: Operations of a factorization per cubed number of landmarks, and of the directions of a start per
#: direction and squared number: in one thread and in double precision, unlike those of passes.
_FACTOR_COST, _DIRECTIONS_COST = 16, 32
#: Number of components that is assumed for a fraction of the variance.
_VARIANCE_COMPONENTS = 48


def make_solver(eigen_solver: str | Solver) -> Solver | None:
    """Return the solver of a name or an object; None for "auto", which depends on the rows."""
    if isinstance(eigen_solver, Solver):
        return eigen_solver
    if not isinstance(eigen_solver, str) or eigen_solver not in SOLVERS:
        raise invalid_parameter(
            "eigen_solver",
            eigen_solver,
            "is unknown",
            f"choose one of {', '.join(map(repr, SOLVERS))}, or an object of ikpca.solvers",
        )
    if eigen_solver == "auto":
        return None
    if eigen_solver in METHODS:
        return KHA(eigen_solver)
    kinds: dict[str, type[Solver]] = {"dense": Dense, "nystrom": Nystrom}
    return kinds.get(eigen_solver, Krylov)()


def check_solver(eigen_solver: str | Solver, n_components: float | None) -> None:
    """Validate a solver and the requested number of components."""
    solver = make_solver(eigen_solver)
    is_alias = isinstance(eigen_solver, str) and eigen_solver in _SKLEARN_ALIASES
    if solver is not None and not (is_alias and n_components is None):
        solver.check(n_components)


def choose_solver(
    eigen_solver: str | Solver, n_components: float | None, n_samples: int, tol: float = 0.0
) -> Solver:
    """Return the solver for a number of rows.

    "auto" is dense for small problems, else krylov, or, with a tolerance, landmarks and krylov.
    Krylov is replaced by the dense solver where that is always cheaper.
    """
    solver = make_solver(eigen_solver)
    if solver is not None and not isinstance(solver, Krylov):
        return solver
    if n_components is None:
        return Dense()
    if not isinstance(n_components, Integral):
        small = n_samples <= _DENSE_VARIANCE_ORDER
    else:
        number = int(n_components)
        exact_order = _DENSE_ORDER + _DENSE_ROWS_PER_COMPONENT * number
        small = n_samples <= (_DENSE_TOLERANCE_ORDER if tol > 0 else exact_order)
        if not Krylov.is_applicable(number, n_samples):
            return Dense()
    if solver is not None:
        return solver
    if small:
        return Dense()
    return Adaptive() if tol > 0 else Krylov()


class Adaptive(Solver):
    """Landmarks where they reach the tolerance at the least cost, else block Krylov.

    ``eigen_solver="auto"`` with ``tol > 0`` stands for this solver. A pilot on a few rows predicts
    the number of landmarks that ``tol`` needs. If they cost less than the expected passes of block
    Krylov iterations over the kernel matrix, the components are those in their span, certified by
    sampling, and the model keeps only the landmarks. Otherwise, or if they miss the tolerance,
    block Krylov iterations follow, starting from enough landmarks that one pass should suffice if
    that costs the least. Costs are counted, not measured, so that the choice does not depend on the
    machine.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca import KernelPCA
    >>> X = np.random.default_rng(0).normal(size=(6000, 2))
    >>> model = KernelPCA(2, kernel="rbf", gamma=0.1, tol=1e-2, random_state=0).fit(X)
    >>> model.outcome_.name, len(model.landmarks_) < 200
    ('CONVERGED', True)
    >>> print(model.history_[0].choice)
    23 landmarks, estimated at ... passes over K
    """

    default_max_iter: ClassVar[int] = Krylov.default_max_iter
    name = "auto"

    def check(self, n_components: float | None) -> None:
        """Accept what block Krylov iterations accept."""
        Krylov().check(n_components)

    def solve(
        self, problem: Problem, n_components: float | None, settings: RunSettings
    ) -> EigenSolution:
        """Compute the leading components; the parameters are those of :meth:`Solver.solve`."""
        assert n_components is not None
        if problem.kernel is None or problem.transform is not None:
            return Krylov().solve(problem, n_components, settings)
        check_rows_and_kernel(problem)
        tol, start, more = settings.tol, problem.start, np.zeros(0, dtype=np.intp)
        used = problem.in_single_precision(tol)
        plan = LandmarkPlan.from_pilot(used, n_components, tol)
        records: list[PassRecord] = []
        while plan.cost < plan.krylov_cost:
            with Workers(problem.n_threads) as workers:
                fit = LandmarkFit(used, plan.number, workers, more=more)
                solution = fit.solution(n_components, records, str(plan), tol)
                records, stop = list(solution.records), settings.report(solution)
                missed = missed_error(solution)
                bound = max(residual_bound(solution, n_components), missed)
                if bound <= tol or stop is not None:
                    return replace(solution, outcome=stop or Outcome.CONVERGED)
                if missed > tol:
                    more = np.union1d(more, fit.distant_rows)
                number = plan.number_after(bound / tol)
                plan = LandmarkPlan(used, n_components, tol, number, plan.power)
                if plan.cost >= plan.krylov_cost:
                    start = fit.projections(block_size(len(solution.eigenvalues)))
            # Its rows and kernel values are not needed any more.
            del fit
        del used
        problem, choice = replace(problem, start=start), f"block Krylov; {plan}"
        return Krylov().solve(problem, n_components, settings, plan.start, records, choice)


def missed_error(solution: EigenSolution) -> float:
    """Return how much an eigenvalue that the landmarks miss exceeds the last, relative to λ₁.

    It is zero for less than twice the last eigenvalue, as estimates of missed ones vary.
    """
    missed, values = solution.missed_eigenvalue, solution.eigenvalues
    last, largest = float(values.min(initial=np.inf)), float(values.max(initial=0.0))
    return (missed - last) / largest if missed > 2 * last and largest > 0 else 0.0


class LandmarkPlan:
    """Predicted number of landmarks, and expected costs in passes over K.

    The number is 0 if they cannot reach the tolerance; residuals fall with a power of it.
    """

    def __init__(
        self, problem: Problem, n_components: float, tol: float, number: float, power: float = 1.0
    ) -> None:
        is_number = isinstance(n_components, Integral)
        n_expected = int(n_components) if is_number else _VARIANCE_COMPONENTS
        size, entry, n_samples = block_size(n_expected), problem.entry_cost, problem.n_samples
        number, one_pass = int(np.ceil(number)), n_samples**2 / 2 * (entry + 4 * size)
        self.number, self.power = number, power
        #: Cost of a fit on the landmarks; infinite if it is not possible.
        self.cost, possible = np.inf, 0 < number <= n_samples
        if possible and landmark_bytes(problem, number) <= problem.budget.available:
            strips = n_samples * ((2 * number + SAMPLE_ROWS) * entry + 2.2 * number**2)
            self.cost = float((strips + _FACTOR_COST * number**3) / one_pass)

        def krylov_cost(start: tuple[int, int]) -> float:
            (n_landmarks, later_passes), directions = start, DIRECTIONS_PER_COMPONENT * size
            strips = n_samples * n_landmarks * (entry + 2 * directions)
            start_cost = strips + _DIRECTIONS_COST * n_landmarks**2 * directions
            later = one_pass
            if keeps_values(problem, later_passes):
                later = n_samples**2 / 2 * (4 * size + KEEPING_COST / later_passes)
            return 1 + (later_passes * later + start_cost) / one_pass

        starts = [default_start(n_samples, tol)]
        # The pilot does not predict residuals that are much smaller than its own.
        if number and is_sampled(problem) and starts[0][1] <= DIRECTION_PASSES:
            # Without a pass ``number`` landmarks reach the tolerance.
            fewer = int(np.ceil(number / _FIRST_REDUCTION ** (1 / power)))
            starts.append((max(fewer, starts[0][0]), 0))
        #: Landmarks of the cheapest start of block Krylov iterations, and the passes that are
        #: expected after the first; cost of these iterations.
        self.start = min(starts, key=krylov_cost)
        self.krylov_cost = krylov_cost(self.start)

    def __str__(self) -> str:
        if not np.isfinite(self.cost):
            return "landmarks cannot reach tol"
        return f"{self.number} landmarks, estimated at {self.cost:.2g} passes over K"

    @classmethod
    def from_pilot(cls, problem: Problem, n_components: float, tol: float) -> LandmarkPlan:
        """Predict the number of landmarks from fits of a few rows."""
        n_rows = min(_PILOT_ROWS, int(_PILOT_SHARE * problem.n_samples))
        numbers = [int(share * n_rows) for share in _PILOT_LANDMARKS]
        n_expected = int(n_components) if isinstance(n_components, Integral) else 1
        impossible = cls(problem, n_components, tol, 0)
        too_few = numbers[0] < _LANDMARKS_PER_COMPONENT * n_expected
        if too_few or tol < _ROUNDING * np.finfo(problem.X.dtype).eps:
            return impossible
        rng = np.random.default_rng([problem.seed, 6])
        rows = np.sort(rng.choice(problem.n_samples, n_rows, replace=False))
        pilot = replace(problem, X=problem.take_rows(rows), engine=None, exact=None, error=0.0)
        bounds: list[float] = []
        try:
            with Workers(problem.n_threads) as workers:
                for number in numbers:
                    fit = LandmarkFit(pilot, number, workers)
                    bounds.append(residual_bound(fit.solution(n_components), n_components))
                    if bounds[-1] <= _MARGIN * tol:
                        break
        except IndefiniteKernel:
            return impossible
        if not np.isfinite(bounds[-1]):
            return impossible
        power = _decay_rate(numbers, bounds)
        growth = (bounds[-1] / (_MARGIN * tol)) ** (1 / power)
        # Interpolated down to the last pilot that missed, not beyond the first.
        last_miss = numbers[max(len(bounds) - 2, 0)]
        return cls(problem, n_components, tol, max(growth * number, last_miss), power)

    def number_after(self, factor: float) -> float:
        """Predict the number after residuals that exceed the tolerance by a factor."""
        if not np.isfinite(factor):
            return 0
        return self.number * max(_GROWTH, (factor / _MARGIN) ** (1 / self.power))


def _decay_rate(numbers: list[int], bounds: list[float]) -> float:
    """Return the power of the number of landmarks with which the last residuals fell."""
    if len(bounds) < 2 or not np.isfinite(bounds[0]) or bounds[-1] <= 0:
        return 1.0
    power = np.log(bounds[0] / bounds[-1]) / np.log(numbers[len(bounds) - 1] / numbers[0])
    return float(np.clip(power, _MIN_POWER, _MAX_POWER))

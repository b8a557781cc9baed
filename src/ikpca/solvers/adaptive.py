"""Choice between landmarks and block Krylov iterations by tolerance and estimated cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import ClassVar

import numpy as np

from ikpca.gram.parallel import Workers
from ikpca.solvers.base import EigenSolution, Outcome, PassRecord, RunSettings, Solver
from ikpca.solvers.krylov import Krylov
from ikpca.solvers.krylov_plan import (
    DIRECTION_PASSES,
    block_size,
    default_landmarks,
    expected_cost,
    expected_passes,
    is_sampled,
    one_pass_landmarks,
)
from ikpca.solvers.landmarks import IndefiniteKernel
from ikpca.solvers.nystrom import (
    LandmarkFit,
    check_rows_and_kernel,
    explains_enough,
    landmark_bytes,
)
from ikpca.solvers.problem import Plan, Problem
from ikpca.solvers.rayleigh_ritz import SAMPLE_ROWS

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
#: Operations of the factorization per cubed number of landmarks: in one thread and in double
#: precision, unlike those of strips.
_FACTOR_COST = 16
#: Number of components that is assumed for a fraction of the variance.
_VARIANCE_COMPONENTS = 48
#: Least growth of the number of landmarks after a miss.
_GROWTH = 1.2


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

    def plan(self, problem: Problem, n_components: int) -> Plan:
        """Plan block Krylov iterations."""
        return Krylov().plan(problem, n_components)

    def solve(
        self, problem: Problem, n_components: float | None, settings: RunSettings
    ) -> EigenSolution:
        """Compute the leading components; the parameters are those of :meth:`Solver.solve`."""
        assert n_components is not None
        if problem.kernel is None or problem.transform is not None:
            return Krylov().solve(problem, n_components, settings)
        check_rows_and_kernel(problem)
        single, error = problem.in_single_precision(settings.tol) or (problem, 0.0)
        plan = LandmarkPlan.from_pilot(single, n_components, settings.tol)
        start_sizes, limit = plan.before_passes(single, n_components, settings.tol)
        records: list[PassRecord] = []
        start, more = problem.start, np.zeros(0, dtype=np.intp)
        while plan.passes < limit:
            with Workers(problem.n_threads) as workers:
                fit = LandmarkFit.of(single, "uniform", plan.number, workers, more=more)
                solution = fit.solution(n_components, records, str(plan), settings.tol)
                if single is not problem:
                    solution = solution.with_error(error).astype_float64(
                        problem.take_rows(fit.indices)
                    )
                stop = settings.report(solution)
                bound = max(residual_bound(solution, n_components), missed_error(solution))
                if bound <= settings.tol or stop is not None:
                    return replace(solution, outcome=stop or Outcome.CONVERGED)
                if missed_error(solution) > settings.tol:
                    more = np.union1d(more, fit.distant_rows)
                plan = plan.after_miss(single, n_components, bound / settings.tol)
                start_sizes, limit = plan.before_passes(single, n_components, settings.tol)
                if plan.passes >= limit:
                    start = fit.projections(block_size(len(solution.eigenvalues)))
            records = list(solution.records)
        # The copy in single precision is not needed while block Krylov iterations make their own.
        del single
        problem = replace(problem, start=start)
        return _iterate(problem, n_components, settings, plan, start_sizes, records)


def _iterate(
    problem: Problem,
    n_components: float,
    settings: RunSettings,
    plan: LandmarkPlan,
    start_sizes: tuple[int, int],
    earlier: list[PassRecord],
) -> EigenSolution:
    """Run block Krylov iterations and append their records to those of the landmarks."""
    entries = earlier[-1].entries if earlier else 0

    def renumbered(record: PassRecord) -> PassRecord:
        return replace(
            record,
            number=record.number + len(earlier),
            entries=record.entries + entries,
            choice=f"block Krylov; {plan}" if record.number == 1 else "",
        )

    def report(record: PassRecord, solution: Callable[[], EigenSolution]) -> Outcome | None:
        return settings.callback and settings.callback(renumbered(record), solution)

    run_settings = replace(settings, callback=report)
    solution = Krylov().solve(problem, n_components, run_settings, *start_sizes)
    return replace(solution, records=[*earlier, *map(renumbered, solution.records)])


def residual_bound(solution: EigenSolution, n_components: float) -> float:
    """Return the largest residual bound; infinite if the components explain too little."""
    assert solution.certificate is not None
    if not explains_enough(solution.eigenvalues, solution.trace, n_components):
        return np.inf
    return float(solution.certificate.residual_bounds.max(initial=0.0))


def missed_error(solution: EigenSolution) -> float:
    """Return how much an eigenvalue that the landmarks miss exceeds the last, relative to λ₁.

    It is zero for less than twice the last eigenvalue, as estimates of missed ones vary.
    """
    assert solution.landmarks is not None
    missed, last = (
        solution.landmarks.missed_eigenvalue,
        float(solution.eigenvalues.min(initial=np.inf)),
    )
    largest = float(solution.eigenvalues.max(initial=0.0))
    return (missed - last) / largest if missed > 2 * last and largest > 0 else 0.0


@dataclass(frozen=True)
class LandmarkPlan:
    """Predicted number of landmarks.

    Parameters
    ----------
    number : int
    passes : float
        Estimated cost in passes over K; infinite if landmarks are not possible.
    power : float
        Power of the number with which residuals fall.
    """

    number: int
    passes: float
    power: float = 1.0

    def __str__(self) -> str:
        if not np.isfinite(self.passes):
            return "landmarks cannot reach tol"
        return f"{self.number} landmarks, estimated at {self.passes:.2g} passes over K"

    @classmethod
    def from_pilot(cls, problem: Problem, n_components: float, tol: float) -> LandmarkPlan:
        """Predict the number of landmarks from fits of a few rows."""
        n_rows = min(_PILOT_ROWS, int(_PILOT_SHARE * problem.n_samples))
        numbers = [int(share * n_rows) for share in _PILOT_LANDMARKS]
        n_known = int(n_components) if isinstance(n_components, Integral) else 1
        too_few = numbers[0] < _LANDMARKS_PER_COMPONENT * n_known
        if too_few or tol < _ROUNDING * np.finfo(problem.X.dtype).eps:
            return cls(0, np.inf)
        rng = np.random.default_rng([problem.seed, 6])
        rows = np.sort(rng.choice(problem.n_samples, n_rows, replace=False))
        pilot = replace(problem, X=problem.take_rows(rows), engine=None)
        bounds: list[float] = []
        try:
            with Workers(problem.n_threads) as workers:
                for number in numbers:
                    fit = LandmarkFit.of(pilot, "uniform", number, workers)
                    bounds.append(fit.residual_bound(n_components))
                    if bounds[-1] <= _MARGIN * tol:
                        break
        except IndefiniteKernel:
            return cls(0, np.inf)
        if not np.isfinite(bounds[-1]):
            return cls(0, np.inf)
        power = _decay_rate(numbers, bounds)
        growth = (bounds[-1] / (_MARGIN * tol)) ** (1 / power)
        # Interpolated down to the last pilot that missed, not beyond the first.
        last_miss = numbers[max(len(bounds) - 2, 0)]
        return cls._of(problem, n_components, max(growth * number, last_miss), power)

    def before_passes(
        self, problem: Problem, n_components: float, tol: float
    ) -> tuple[tuple[int, int], float]:
        """Choose the cheapest start of block Krylov iterations.

        Returns
        -------
        n_landmarks, later_passes : int
            Landmarks of the start, and passes that are expected after the first.
        cost : float
            Cost of the iterations in passes.
        """
        n_landmarks, later_passes = default_landmarks(problem.n_samples), expected_passes(tol)
        starts = [(n_landmarks, later_passes)]
        # The pilot does not predict residuals that are much smaller than its own.
        if self.number and is_sampled(problem) and later_passes <= DIRECTION_PASSES:
            starts.append((max(one_pass_landmarks(self.number, self.power), n_landmarks), 0))
        number = _expected_number(n_components)
        costs = [expected_cost(problem, number, *start) for start in starts]
        cheapest = int(np.argmin(costs))
        return starts[cheapest], costs[cheapest]

    def after_miss(self, problem: Problem, n_components: float, factor: float) -> LandmarkPlan:
        """Predict the number after residuals that exceed the tolerance by a factor."""
        if not np.isfinite(factor):
            return LandmarkPlan(0, np.inf)
        growth = max(_GROWTH, (factor / _MARGIN) ** (1 / self.power))
        return self._of(problem, n_components, growth * self.number, self.power)

    @classmethod
    def _of(
        cls, problem: Problem, n_components: float, number: float, power: float
    ) -> LandmarkPlan:
        """Estimate the cost of a number of landmarks in passes over K."""
        number = int(np.ceil(number))
        too_many = number > problem.n_samples
        if too_many or landmark_bytes(problem, number) > problem.budget.available:
            return cls(number, np.inf, power)
        entry, n_samples = problem.entry_cost, problem.n_samples
        width = block_size(_expected_number(n_components))
        strips = n_samples * ((2 * number + SAMPLE_ROWS) * entry + 2.2 * number**2)
        one_pass = n_samples**2 / 2 * (entry + 4 * width)
        return cls(number, float((strips + _FACTOR_COST * number**3) / one_pass), power)


def _expected_number(n_components: float) -> int:
    """Return the number of components; a guess for a fraction of the variance."""
    return int(n_components) if isinstance(n_components, Integral) else _VARIANCE_COMPONENTS


def _decay_rate(numbers: list[int], bounds: list[float]) -> float:
    """Return the power of the number of landmarks with which the last residuals fell."""
    if len(bounds) < 2 or not np.isfinite(bounds[0]) or bounds[-1] <= 0:
        return 1.0
    power = np.log(bounds[0] / bounds[-1]) / np.log(numbers[len(bounds) - 1] / numbers[0])
    return float(np.clip(power, _MIN_POWER, _MAX_POWER))

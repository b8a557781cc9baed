"""Plan of block Krylov iterations: landmarks, expected passes, and sizes within the budget."""

from __future__ import annotations

import numpy as np

from ikpca.solvers.landmarks import DIRECTIONS_PER_COMPONENT, start_bytes
from ikpca.solvers.problem import Plan, Problem

#: Passes for which the basis contains directions of the landmarks. They reduce residuals along the
#: projections at once, but later they amplify rounding errors.
DIRECTION_PASSES = 2
#: Least number of rows for which sampling residuals along the projections costs little.
SAMPLED_ROWS = 2048
# Constants of the speed; benchmarks/frontier.py measures fits with them.
#: Number of landmarks of few rows: at least, at most; of many rows, at most.
_MIN_LANDMARKS, _LANDMARKS, _MAX_LANDMARKS = 256, 512, 1024
#: Numbers of blocks before a restart; the largest that the budget allows is used.
_BLOCKS = (8, 6, 4, 3, 2)
#: Factor of the number of landmarks until they fit into the budget.
_SHRINK = 0.8
#: Largest usual residual after the first pass, and its reduction by every other pass.
_FIRST_RESIDUAL, _REDUCTION = 1e-2, 10
#: Reduction of the residual of landmarks by the first pass.
_FIRST_REDUCTION = 20
#: Operations of the directions per direction and squared number of landmarks: in one thread and in
#: double precision, unlike those of passes.
_DIRECTIONS_COST = 32
#: Cost of new memory for a kernel value, in operations; more than that of some values.
_KEEPING_COST = 500
#: Least number of columns of one of several blocks of a pass; fewer make products slow.
_NARROW_BLOCK = 16
#: Least number of narrow blocks that save time, and largest: rounding their width must not leave
#: fewer columns than components.
_MIN_BLOCKS, _MAX_BLOCKS = 3, 16


def block_size(n_components: int) -> int:
    """Return an oversampled block size, which converges in fewer passes."""
    return n_components + max(8, min(n_components, 16))


def is_sampled(problem: Problem) -> bool:
    """Return True if residuals along the projections are sampled."""
    return problem.n_samples >= SAMPLED_ROWS and problem.engine is None


def default_landmarks(n_samples: int) -> int:
    """Choose l/20 landmarks for few rows, l/60 for many (benchmarks)."""
    few = min(max(_MIN_LANDMARKS, n_samples // 20), _LANDMARKS)
    return max(few, min(n_samples // 60, _MAX_LANDMARKS))


def one_pass_landmarks(number: float, power: float) -> int:
    """Return the number of landmarks from which one pass reaches a tolerance.

    Without a pass ``number`` landmarks reach it, and residuals fall with that power of them.
    """
    return int(np.ceil(number / _FIRST_REDUCTION ** (1 / power)))


def expected_passes(tol: float) -> int:
    """Return the expected number of passes after the first."""
    reduction = _FIRST_RESIDUAL / max(tol, float(np.finfo(np.float64).eps))
    return max(0, int(np.ceil(np.log(reduction) / np.log(_REDUCTION))))


def keeps_values(problem: Problem, later_passes: int) -> bool:
    """Return True if new memory for kernel values takes less time than computing them again."""
    return later_passes * problem.entry_cost > _KEEPING_COST


def expected_cost(
    problem: Problem, n_components: int, n_landmarks: int, later_passes: int
) -> float:
    """Return the expected cost of a run, in passes over K whose values are computed."""
    size, entry, n_samples = block_size(n_components), problem.entry_cost, problem.n_samples
    directions = DIRECTIONS_PER_COMPONENT * size
    strips = n_samples * n_landmarks * (entry + 2 * directions)
    start = strips + _DIRECTIONS_COST * n_landmarks**2 * directions
    one_pass = entry + 4 * size
    later = 1.0
    if keeps_values(problem, later_passes):
        later = (4 * size + _KEEPING_COST / later_passes) / one_pass
    return 1 + later_passes * later + start / (n_samples**2 / 2 * one_pass)


def plan_krylov(problem: Problem, n_components: int, n_landmarks: int, later_passes: int) -> Plan:
    """Return the sizes that half of the budget allows, and the form in which K is cached.

    Kernel values are kept only for further passes.
    """
    size, half = block_size(n_components), problem.budget.available // 2
    width = size * problem.row_bytes
    blocks = next((count for count in _BLOCKS if (4 * count + 6) * width <= half), _BLOCKS[-1])
    directions = 0
    if is_sampled(problem) and later_passes <= DIRECTION_PASSES and blocks > _BLOCKS[-1]:
        # As many as columns of all blocks.
        directions = blocks * size
    min_landmarks, start = 2 * size, DIRECTIONS_PER_COMPONENT * size
    n_landmarks = max(min_landmarks, min(n_landmarks, problem.n_samples))
    while n_landmarks > min_landmarks and start_bytes(problem, n_landmarks, start) > half:
        n_landmarks = max(min_landmarks, int(_SHRINK * n_landmarks))
    columns = blocks * size + directions
    n_bytes = max(
        2 * columns * problem.row_bytes + 6 * width,
        start_bytes(problem, n_landmarks, start) + 3 * width,
    )
    return Plan(
        n_bytes,
        keep="tiles" if keeps_values(problem, later_passes) else None,
        n_landmarks=n_landmarks,
        n_directions=directions,
        n_columns=columns,
        n_blocks=_blocks_per_pass(problem, size, later_passes, n_bytes),
    )


def _blocks_per_pass(problem: Problem, size: int, later_passes: int, n_bytes: int) -> int:
    """Return the number of narrow blocks that replace a block of ``size`` columns.

    With narrow blocks a basis of fewer columns has the same accuracy, but K is read for each of
    them, so that all values must be in memory. They cannot contain a warm start, and in single
    precision they do not always separate close eigenvalues.
    """
    if problem.engine is not None or problem.start is not None:
        return 1
    if later_passes <= DIRECTION_PASSES or problem.X.dtype != np.float64:
        return 1
    available = problem.budget.available - n_bytes
    fits = problem.n_samples * problem.row_bytes // 2 <= available
    if problem.kernel is not None and not (keeps_values(problem, later_passes) and fits):
        return 1
    number = min(size // _NARROW_BLOCK, _MAX_BLOCKS)
    return number if number >= _MIN_BLOCKS else 1

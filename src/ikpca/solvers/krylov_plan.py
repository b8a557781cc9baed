"""Plan of block Krylov iterations: landmarks, expected passes, and sizes within the budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ikpca.solvers.landmarks import DIRECTIONS_PER_COMPONENT, start_bytes
from ikpca.solvers.problem import Problem

#: Number of landmarks, and of blocks before a restart; the largest that the budget allows.
_MIN_LANDMARKS, _LANDMARKS, _MAX_LANDMARKS = 256, 512, 1024
_BLOCKS = (8, 6, 4, 3, 2)
#: Factor of the number of landmarks until they fit into the budget.
_SHRINK = 0.8
#: Largest usual residual after the first pass, and its reduction by every other pass.
_FIRST_RESIDUAL, _REDUCTION = 1e-2, 10
#: Reduction of the residual of landmarks by the first pass.
_FIRST_REDUCTION = 20
#: Passes for which the basis contains directions of the landmarks. They reduce residuals along the
#: projections at once, but later they amplify rounding errors.
DIRECTION_PASSES = 2
#: Least number of rows for which sampling residuals along the projections costs little.
SAMPLED_ROWS = 2048
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


@dataclass(frozen=True)
class KrylovSizes:
    """Sizes of a run.

    Parameters
    ----------
    n_landmarks : int
    n_directions : int
        Directions of the landmarks in the basis.
    n_columns : int
        Columns of the basis before a restart, directions included.
    n_bytes : int
        Memory of the basis, its products, and the landmarks.
    n_blocks : int
        Blocks by which a pass extends the basis.
    """

    n_landmarks: int
    n_directions: int
    n_columns: int
    n_bytes: int
    n_blocks: int


@dataclass(frozen=True)
class KrylovPlan:
    """Number of landmarks, and expected number of passes after the first.

    Kernel values are kept only for further passes.
    """

    n_landmarks: int
    later_passes: int

    @classmethod
    def from_tol(cls, problem: Problem, tol: float) -> KrylovPlan:
        """Return a twentieth of few rows or a sixtieth of many, which minimized the total time."""
        few = min(max(_MIN_LANDMARKS, problem.n_samples // 20), _LANDMARKS)
        number = max(few, min(problem.n_samples // 60, _MAX_LANDMARKS))
        reduction = _FIRST_RESIDUAL / max(tol, float(np.finfo(np.float64).eps))
        return cls(number, max(0, int(np.ceil(np.log(reduction) / np.log(_REDUCTION)))))

    @classmethod
    def of_one_pass(cls, number: float, power: float) -> KrylovPlan:
        """Return the landmarks from which one pass reaches a tolerance.

        Without a pass ``number`` landmarks reach it, and residuals fall with that power of them.
        """
        return cls(int(np.ceil(number / _FIRST_REDUCTION ** (1 / power))), 0)

    def keeps_values(self, problem: Problem) -> bool:
        """Return True if new memory for kernel values takes less time than computing them again."""
        return self.later_passes * problem.entry_cost > _KEEPING_COST

    def passes(self, problem: Problem, n_components: int) -> float:
        """Return the expected cost of a run, in passes over K whose values are computed."""
        size, entry = block_size(n_components), problem.entry_cost
        number, n_samples = self.n_landmarks, problem.n_samples
        directions = DIRECTIONS_PER_COMPONENT * size
        strips = n_samples * number * (entry + 2 * directions)
        start = strips + _DIRECTIONS_COST * number**2 * directions
        one_pass = entry + 4 * size
        later = 1.0
        if self.keeps_values(problem):
            later = (4 * size + _KEEPING_COST / self.later_passes) / one_pass
        return 1 + self.later_passes * later + start / (n_samples**2 / 2 * one_pass)

    def sizes(self, problem: Problem, n_components: int) -> KrylovSizes:
        """Return the sizes that half of the budget allows."""
        size, half = block_size(n_components), problem.budget.available // 2
        width = size * problem.row_bytes
        blocks = next((count for count in _BLOCKS if (4 * count + 6) * width <= half), _BLOCKS[-1])
        directions = 0
        if is_sampled(problem) and self.later_passes <= DIRECTION_PASSES and blocks > _BLOCKS[-1]:
            # As many as columns of all blocks.
            directions = blocks * size
        least, start = 2 * size, DIRECTIONS_PER_COMPONENT * size
        number = max(least, min(self.n_landmarks, problem.n_samples))
        while number > least and start_bytes(problem, number, start) > half:
            number = max(least, int(_SHRINK * number))
        columns = blocks * size + directions
        n_bytes = max(
            2 * columns * problem.row_bytes + 6 * width,
            start_bytes(problem, number, start) + 3 * width,
        )
        n_blocks = self._blocks_per_pass(problem, size, n_bytes)
        return KrylovSizes(number, directions, columns, n_bytes, n_blocks)

    def _blocks_per_pass(self, problem: Problem, size: int, n_bytes: int) -> int:
        """Return the number of narrow blocks that replace a block of ``size`` columns.

        With narrow blocks a basis of fewer columns has the same accuracy, but K is read for each of
        them, so that all values must be in memory. They cannot contain a warm start, and in single
        precision they do not always separate close eigenvalues.
        """
        if problem.engine is not None or problem.start is not None:
            return 1
        if self.later_passes <= DIRECTION_PASSES or problem.X.dtype != np.float64:
            return 1
        available = problem.budget.available - n_bytes
        fits = problem.n_samples * problem.row_bytes // 2 <= available
        if problem.kernel is not None and not (self.keeps_values(problem) and fits):
            return 1
        number = min(size // _NARROW_BLOCK, _MAX_BLOCKS)
        return number if number >= _MIN_BLOCKS else 1

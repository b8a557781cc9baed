"""Limited-memory BFGS (Liu, Nocedal 1989) for a batch of independent problems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ikpca.kernels import Floats

#: Pairs with ⟨s, y⟩ below this share of ‖s‖‖y‖ are discarded.
_MIN_CURVATURE = 1e-8
#: Factor by which a rejected step is shortened.
_SHRINK = 0.5
#: Rounding error of an objective, in units of the machine precision.
_ROUNDING_UNITS = 8

#: Objective and gradient at rows Z of the samples with the given indices. The objective is
#: infinite at rows that are not admissible.
Evaluate: TypeAlias = Callable[[Floats, NDArray[np.intp]], tuple[Floats, Floats]]


@dataclass(frozen=True)
class DescentSettings:
    """Settings of a batched descent.

    Parameters
    ----------
    min_step : float
        A sample has converged when its next step is shorter than this.
    max_step : float
        Longer steps are shortened to this length.
    max_iter : int
        Evaluations per sample, not counting that of the start.
    memory : int
        Number of curvature pairs; with 0, directions are negative gradients.
    first_step : float, optional
        Length of the first step, before there is a pair; by default that of the gradient.
    sufficient_decrease : float
        Share of the predicted decrease that a step must achieve (Armijo); 0 if gradients are known
        only up to a factor.
    scale : float
        Added to the magnitude of the objective to estimate its rounding error.
    """

    min_step: float
    max_step: float
    max_iter: int
    memory: int
    first_step: float | None = None
    sufficient_decrease: float = 0.0
    scale: float = 0.0


@dataclass(frozen=True, eq=False)
class DescentResult:
    """Rows at which samples converged or reached the limit of iterations, and their objective."""

    rows: Floats
    objective: Floats
    iterations: NDArray[np.intp]
    converged: NDArray[np.bool_]


class _Curvature:
    """Curvature pairs of every sample: the last steps s and changes y of the gradient."""

    def __init__(self, starts: Floats, settings: DescentSettings) -> None:
        n_samples, dtype = len(starts), starts.dtype
        self._max_step = settings.max_step
        self._steps = np.zeros((settings.memory, *starts.shape), dtype=dtype)
        self._changes = np.zeros_like(self._steps)
        #: 1/⟨s, y⟩; zero for missing pairs, which then have no effect.
        self._inverses = np.zeros((settings.memory, n_samples), dtype=dtype)
        self._first_steps = None
        if settings.first_step is not None:
            self._first_steps = np.full(n_samples, settings.first_step, dtype=dtype)
        self._scales = np.zeros(n_samples, dtype=dtype)

    def update(self, indices: NDArray[np.intp], steps: Floats, changes: Floats) -> None:
        """Add pairs; without positive curvature, double the length of the first step instead."""
        if not len(self._steps):
            return
        products = np.einsum("ij,ij->i", steps, changes)
        norms = np.linalg.norm(steps, axis=1) * np.linalg.norm(changes, axis=1)
        squares = np.einsum("ij,ij->i", changes, changes)
        # Values that underflow when squared or inverted count as no curvature.
        tiny = np.finfo(products.dtype).tiny
        valid = (products > _MIN_CURVATURE * norms) & (products >= tiny) & (squares >= tiny)
        if self._first_steps is not None:
            limit, invalid = np.finfo(self._first_steps.dtype).max / 4, indices[~valid]
            self._first_steps[invalid] = 2 * np.minimum(self._first_steps[invalid], limit)
        indices, steps, changes = indices[valid], steps[valid], changes[valid]
        products = products[valid]
        for history in (self._steps, self._changes, self._inverses):
            history[:-1, indices] = history[1:, indices]
        self._steps[-1, indices], self._changes[-1, indices] = steps, changes
        self._inverses[-1, indices] = 1 / products
        self._scales[indices] = products / squares[valid]

    def directions(self, indices: NDArray[np.intp], gradients: Floats) -> Floats:
        """Return −Hg by the two-loop recursion, no longer than ``max_step``."""
        steps, changes = self._steps[:, indices], self._changes[:, indices]
        inverses = self._inverses[:, indices]
        alphas = np.zeros_like(inverses)
        directions = -gradients
        for k in reversed(range(len(steps))):
            alphas[k] = inverses[k] * np.einsum("ij,ij->i", steps[k], directions)
            directions -= alphas[k, :, None] * changes[k]
        directions *= self._initial_scales(indices, gradients)[:, None]
        for k in range(len(steps)):
            betas = inverses[k] * np.einsum("ij,ij->i", changes[k], directions)
            directions += (alphas[k] - betas)[:, None] * steps[k]
        lengths = np.linalg.norm(directions, axis=1, keepdims=True)
        return directions * (self._max_step / np.maximum(lengths, self._max_step))

    def _initial_scales(self, indices: NDArray[np.intp], gradients: Floats) -> Floats:
        """Return the factors of the identity that start the recursion."""
        first = np.ones(len(indices), dtype=gradients.dtype)
        if self._first_steps is not None:
            norms = np.linalg.norm(gradients, axis=1)
            limits = np.finfo(norms.dtype)
            steps = np.minimum(self._first_steps[indices], limits.max * np.minimum(norms, 1))
            np.divide(steps, norms, out=first, where=norms >= limits.tiny)
        return np.where(self._scales[indices] > 0, self._scales[indices], first)


def descend(evaluate: Evaluate, starts: Floats, settings: DescentSettings) -> DescentResult:
    """Minimize from every start, with backtracking, until the next step is too short."""
    curvature = _Curvature(starts, settings)
    rows = starts.copy()
    active = np.arange(len(rows))
    objective, gradients = evaluate(rows, active)
    directions = curvature.directions(active, gradients)
    step_sizes = np.ones(len(rows), dtype=rows.dtype)
    iterations = np.zeros(len(rows), dtype=np.intp)
    converged = np.zeros(len(rows), dtype=bool)
    active = np.flatnonzero(np.isfinite(objective))
    for _ in range(settings.max_iter):
        steps = step_sizes[active, None] * directions[active]
        short = np.linalg.norm(steps, axis=1) <= settings.min_step
        converged[active[short]] = True
        active, steps = active[~short], steps[~short]
        if not len(active):
            break
        iterations[active] += 1
        values, slopes = evaluate(rows[active] + steps, active)
        accept = _acceptable(values, slopes, objective[active], gradients[active], steps, settings)
        step_sizes[active[~accept]] *= _SHRINK
        accepted = active[accept]
        curvature.update(accepted, steps[accept], slopes[accept] - gradients[accepted])
        rows[accepted] += steps[accept]
        objective[accepted], gradients[accepted] = values[accept], slopes[accept]
        step_sizes[accepted] = 1
        directions[accepted] = curvature.directions(accepted, gradients[accepted])
    return DescentResult(rows, objective, iterations, converged)


def _acceptable(
    values: Floats,
    slopes: Floats,
    old_values: Floats,
    gradients: Floats,
    steps: Floats,
    settings: DescentSettings,
) -> NDArray[np.bool_]:
    """Test for sufficient decrease, or a smaller gradient within rounding (Hager, Zhang 2005)."""
    predicted = settings.sufficient_decrease * np.einsum("ij,ij->i", gradients, steps)
    eps = np.finfo(values.dtype).eps
    rounding = _ROUNDING_UNITS * eps * (settings.scale + np.abs(old_values))
    flatter = np.linalg.norm(slopes, axis=1) < np.linalg.norm(gradients, axis=1)
    return (values <= old_values + predicted) | ((values <= old_values + rounding) & flatter)

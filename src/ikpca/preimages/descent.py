"""A descent for many samples at once, each with its own step; none ever goes uphill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ikpca.kernels import Floats
from ikpca.preimages.curvature import Curvature

__all__ = ["Evaluate", "Rest", "descend"]

#: Objective and gradient at rows Z of the samples with the given indices. The objective is
#: infinite where there is no way on. A fixed point gives the step away from itself as gradient.
Evaluate: TypeAlias = Callable[[Floats, NDArray[np.intp]], tuple[Floats, Floats]]

#: Sufficient decrease (Armijo), what a step that fails shrinks by, and roundings of an objective.
_DECREASE, _SHRINK, _ROUNDINGS = 1e-4, 0.5, 8


@dataclass(frozen=True, eq=False)
class Rest:
    """Where samples came to rest, or were when the time was up."""

    rows: Floats
    objective: Floats
    iterations: NDArray[np.intp]
    converged: NDArray[np.bool_]


def descend(
    evaluate: Evaluate,
    starts: Floats,
    curvature: Curvature | None,
    *,
    shortest: float,
    longest: float,
    max_iter: int,
) -> Rest:
    """Go down from every start until steps are shorter than ``shortest``.

    Parameters
    ----------
    evaluate : callable
    starts : ndarray of shape (n, N)
    curvature : Curvature or None
        Turns gradients into steps; None takes the gradient itself for the step, as fixed points do.
    shortest, longest : float
        Lengths of steps.
    max_iter : int
        Evaluations per sample, that of the start not counted.
    """
    rows = starts.copy()
    moving = np.arange(len(rows))
    objective, gradients = evaluate(rows, moving)
    directions = _directions(curvature, moving, gradients, longest)
    steps = np.ones(len(rows), dtype=rows.dtype)
    iterations = np.zeros(len(rows), dtype=np.intp)
    converged = np.zeros(len(rows), dtype=bool)
    moving = np.flatnonzero(np.isfinite(objective))
    for _ in range(max_iter):
        lengths = steps[moving] * np.linalg.norm(directions[moving], axis=1)
        resting = lengths <= shortest
        converged[moving[resting]] = True
        moving = moving[~resting]
        if not len(moving):
            break
        iterations[moving] += 1
        moves = steps[moving, None] * directions[moving]
        values, pulls = evaluate(rows[moving] + moves, moving)
        slopes = np.einsum("ij,ij->i", gradients[moving], moves)
        better = _better(
            values, objective[moving], pulls, gradients[moving],
            _DECREASE * slopes if curvature else np.zeros_like(slopes),
        )  # fmt: skip
        steps[moving[~better]] *= _SHRINK
        gone = moving[better]
        if curvature is not None:
            curvature.learn(gone, moves[better], pulls[better] - gradients[gone])
        rows[gone] += moves[better]
        objective[gone], gradients[gone], steps[gone] = values[better], pulls[better], 1
        directions[gone] = _directions(curvature, gone, pulls[better], longest)
    return Rest(rows, objective, iterations, converged)


def _better(
    values: Floats, known: Floats, pulls: Floats, known_pulls: Floats, promised: Floats
) -> NDArray[np.bool_]:
    """Lower as promised; or, where rounding hides the difference, flatter (Hager, Zhang 2005)."""
    rounding = _ROUNDINGS * np.finfo(values.dtype).eps * np.abs(known)
    level = values <= known + rounding
    flatter = np.linalg.norm(pulls, axis=1) < np.linalg.norm(known_pulls, axis=1)
    return (values <= known + promised) | (level & flatter)


def _directions(
    curvature: Curvature | None, who: NDArray[np.intp], gradients: Floats, longest: float
) -> Floats:
    directions = -gradients if curvature is None else curvature.directions(who, gradients)
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    return directions * (longest / np.maximum(lengths, longest))

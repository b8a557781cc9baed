"""A descent for many samples at once, each with its own step; none ever goes uphill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ikpca.kernels import Floats
from ikpca.preimages.curvature import Curvature

__all__ = ["Evaluate", "Rest", "Steps", "descend"]

#: Objective and gradient at rows Z of the samples with the given indices. The objective is
#: infinite where a sample may not stand.
Evaluate: TypeAlias = Callable[[Floats, NDArray[np.intp]], tuple[Floats, Floats]]

#: What a step that fails shrinks by, and how many roundings an objective may carry.
_SHRINK, _ROUNDINGS = 0.5, 8


@dataclass(frozen=True)
class Steps:
    """How samples move.

    Parameters
    ----------
    shortest, longest : float
        A sample rests when its next step is shorter than the one; none is longer than the other.
    number : int
        Evaluations per sample, that of the start not counted.
    decrease : float
        Share of the promised decrease that a step must bring (Armijo); 0 where gradients are known
        only up to a factor.
    scale : float
        Objectives below this size still carry its roundings.
    """

    shortest: float
    longest: float
    number: int
    decrease: float = 0.0
    scale: float = 0.0


@dataclass(frozen=True, eq=False)
class Rest:
    """Where samples came to rest, or were when the time was up."""

    rows: Floats
    objective: Floats
    iterations: NDArray[np.intp]
    converged: NDArray[np.bool_]


def descend(evaluate: Evaluate, starts: Floats, curvature: Curvature, steps: Steps) -> Rest:
    """Go down from every start until the next step is too short to matter."""
    rows = starts.copy()
    moving = np.arange(len(rows))
    objective, gradients = evaluate(rows, moving)
    directions = _directions(curvature, moving, gradients, steps.longest)
    shares = np.ones(len(rows), dtype=rows.dtype)
    iterations = np.zeros(len(rows), dtype=np.intp)
    converged = np.zeros(len(rows), dtype=bool)
    moving = np.flatnonzero(np.isfinite(objective))
    for _ in range(steps.number):
        moves = shares[moving, None] * directions[moving]
        resting = np.linalg.norm(moves, axis=1) <= steps.shortest
        converged[moving[resting]] = True
        moving, moves = moving[~resting], moves[~resting]
        if not len(moving):
            break
        iterations[moving] += 1
        values, slopes = evaluate(rows[moving] + moves, moving)
        better = _better(values, slopes, objective[moving], gradients[moving], moves, steps)
        shares[moving[~better]] *= _SHRINK
        gone = moving[better]
        curvature.learn(gone, moves[better], slopes[better] - gradients[gone])
        rows[gone] += moves[better]
        objective[gone], gradients[gone], shares[gone] = values[better], slopes[better], 1
        directions[gone] = _directions(curvature, gone, gradients[gone], steps.longest)
    return Rest(rows, objective, iterations, converged)


def _better(
    values: Floats, slopes: Floats, known: Floats, gradients: Floats, moves: Floats, steps: Steps
) -> NDArray[np.bool_]:
    """Lower as promised; or, where rounding hides the difference, flatter (Hager, Zhang 2005)."""
    promised = steps.decrease * np.einsum("ij,ij->i", gradients, moves)
    rounding = _ROUNDINGS * np.finfo(values.dtype).eps * (steps.scale + np.abs(known))
    flatter = np.linalg.norm(slopes, axis=1) < np.linalg.norm(gradients, axis=1)
    return (values <= known + promised) | ((values <= known + rounding) & flatter)


def _directions(
    curvature: Curvature, who: NDArray[np.intp], gradients: Floats, longest: float
) -> Floats:
    directions = curvature.directions(who, gradients)
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    return directions * (longest / np.maximum(lengths, longest))

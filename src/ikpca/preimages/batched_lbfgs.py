"""Limited-memory BFGS (Liu, Nocedal 1989) for many problems at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ikpca.kernels import Floats

#: A pair with less curvature than this share of ‖s‖‖y‖ would spoil the estimate.
_LEAST_CURVATURE = 1e-8


class Curvature:
    """The last few pairs of step and change of gradient, for every sample its own.

    Parameters
    ----------
    shape : tuple of int
        Samples and features.
    memory : int
        Pairs kept; without any the steps are the gradients, turned round.
    first_step : float, optional
        Length of the steps before anything is known of the curvature; by default that of the
        gradient.
    dtype : dtype
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        memory: int,
        first_step: float | None = None,
    ) -> None:
        n_samples = shape[0]
        self._moves = np.zeros((memory, *shape), dtype=dtype)
        self._changes = np.zeros_like(self._moves)
        #: 1/⟨s, y⟩, zero for pairs that are not there: they then change nothing.
        self._inverses = np.zeros((memory, n_samples), dtype=dtype)
        self._lengths = None
        if first_step is not None:
            self._lengths = np.full(n_samples, first_step, dtype=dtype)
        self._scales = np.zeros(n_samples, dtype=dtype)

    def learn(self, who: NDArray[np.intp], moves: Floats, changes: Floats) -> None:
        """Take in a pair; one without positive curvature lets plain steps grow instead."""
        if not len(self._moves):
            return
        bends = np.einsum("ij,ij->i", moves, changes)
        floor = np.linalg.norm(moves, axis=1) * np.linalg.norm(changes, axis=1)
        squares = np.einsum("ij,ij->i", changes, changes)
        # What is too small to be squared or inverted has no curvature to speak of.
        tiny = np.finfo(bends.dtype).tiny
        fit = (bends > _LEAST_CURVATURE * floor) & (bends >= tiny) & (squares >= tiny)
        if self._lengths is not None:
            longest = np.finfo(self._lengths.dtype).max / 4
            self._lengths[who[~fit]] = 2 * np.minimum(self._lengths[who[~fit]], longest)
        who, moves, changes, bends = who[fit], moves[fit], changes[fit], bends[fit]
        for kept in (self._moves, self._changes, self._inverses):
            kept[:-1, who] = kept[1:, who]
        self._moves[-1, who], self._changes[-1, who] = moves, changes
        self._inverses[-1, who] = 1 / bends
        self._scales[who] = bends / squares[fit]

    def directions(self, who: NDArray[np.intp], gradients: Floats) -> Floats:
        """−Hg by the two-loop recursion; of ``first_step`` length where nothing is known."""
        moves, changes = self._moves[:, who], self._changes[:, who]
        inverses = self._inverses[:, who]
        shares = np.zeros_like(inverses)
        directions = -gradients
        for k in reversed(range(len(moves))):
            shares[k] = inverses[k] * np.einsum("ij,ij->i", moves[k], directions)
            directions -= shares[k, :, None] * changes[k]
        directions *= self._first_scales(who, gradients)[:, None]
        for k in range(len(moves)):
            back = inverses[k] * np.einsum("ij,ij->i", changes[k], directions)
            directions += (shares[k] - back)[:, None] * moves[k]
        return directions

    def _first_scales(self, who: NDArray[np.intp], gradients: Floats) -> Floats:
        plain = np.ones(len(who), dtype=gradients.dtype)
        if self._lengths is not None:
            lengths = np.linalg.norm(gradients, axis=1)
            limits = np.finfo(lengths.dtype)
            steps = np.minimum(self._lengths[who], limits.max * np.minimum(lengths, 1))
            np.divide(steps, lengths, out=plain, where=lengths >= limits.tiny)
        return np.where(self._scales[who] > 0, self._scales[who], plain)


#: Objective and gradient at rows Z of the samples with the given indices. The objective is
#: infinite where a sample may not stand.
Evaluate: TypeAlias = Callable[[Floats, NDArray[np.intp]], tuple[Floats, Floats]]

#: What a step that fails shrinks by, and how many roundings an objective may carry.
_SHRINK, _ROUNDINGS = 0.5, 8


@dataclass(frozen=True)
class DescentSettings:
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
class DescentResult:
    """Where samples came to rest, or were when the time was up."""

    rows: Floats
    objective: Floats
    iterations: NDArray[np.intp]
    converged: NDArray[np.bool_]


def descend(
    evaluate: Evaluate, starts: Floats, curvature: Curvature, steps: DescentSettings
) -> DescentResult:
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
    return DescentResult(rows, objective, iterations, converged)


def _better(
    values: Floats,
    slopes: Floats,
    known: Floats,
    gradients: Floats,
    moves: Floats,
    steps: DescentSettings,
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

"""Limited-memory BFGS for many samples at once (Liu, Nocedal 1989)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ikpca.kernels import Floats

__all__ = ["Curvature"]

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

"""Generalized Hebbian algorithm (Sanger 1989) on explicit features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ikpca.gains import Gain
from ikpca.kernels import Floats, Indices
from ikpca.solvers.kha_pass import Safety


class FeatureStore:
    """The coefficient store over explicit, centred rows X': R is W itself, K' is X'X'ᵀ.

    What the kernel store reads from AK' is multiplied out here, W X'ᵀ; there are no coefficients
    A, so ``gram(0)`` has no meaning and gains must use Rayleigh quotients.
    """

    def __init__(self, X: Floats, rows: Floats) -> None:
        self._X = X
        self._rows = np.array(rows, dtype=X.dtype, order="C")
        self._mark = self._rows
        self.entries = 0

    @property
    def n_samples(self) -> int:
        """Rows of X'."""
        return int(self._X.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the rows."""
        return np.dtype(self._X.dtype)

    @property
    def mean_diagonal(self) -> float:
        """Mean ‖x'‖²."""
        return float(np.einsum("ij,ij->", self._X, self._X, dtype=np.float64)) / self.n_samples

    @property
    def squared_norm(self) -> float:
        """Unknown: the product of X' with itself may be larger than X'."""
        return float("nan")

    @property
    def recovery(self) -> str:
        """There is no kernel matrix that could give way."""
        return ""

    def project(self, patterns: Indices, upcoming: Sequence[Indices] = ()) -> tuple[Floats, Floats]:
        """W X'_Pᵀ and X'_P X'_Pᵀ; there is nothing to make ahead."""
        chosen = self._X[patterns]
        Y, G = self._rows @ chosen.T, chosen @ chosen.T
        return Y.astype(np.float64, order="C"), G.astype(np.float64, order="C")

    def transform(self, T: Floats, patterns: Indices, C: Floats) -> None:
        """W ← TW + C X'_P."""
        moved = T.astype(self.dtype) @ self._rows
        self._rows = moved + C.astype(self.dtype) @ self._X[patterns]

    def gram(self, power: int) -> Floats:
        """W Wᵀ, or W X'ᵀX' Wᵀ."""
        if power == 0:
            raise ValueError("gram(0) needs coefficients, and explicit components have none")
        factor = self._rows if power == 1 else self._rows @ self._X.T
        factor = factor.astype(np.float64, copy=False)
        return factor @ factor.T

    def residuals(self, eigenvalues: Floats) -> Floats:
        """‖X'ᵀX'w − λw‖/λ₁ for unit w."""
        W = self._rows[: len(eigenvalues)].astype(np.float64)
        defects = (W @ self._X.T) @ self._X - eigenvalues[:, None] * W
        scale = np.linalg.norm(W, axis=1) * np.abs(eigenvalues).max(initial=0.0)
        norms = np.linalg.norm(defects, axis=1)
        return np.divide(norms, scale, out=np.zeros_like(norms), where=scale > 0)

    def mark(self) -> None:
        """Keep a reference: transforms never write to arrays that exist."""
        self._mark = self._rows

    def rewind(self) -> None:
        """Take the reference back."""
        self._rows = self._mark

    def change(self, n_rows: int) -> float:
        """‖W − W₀‖²."""
        moved = (self._rows[:n_rows] - self._mark[:n_rows]).astype(np.float64)
        return float(np.einsum("ij,ij->", moved, moved))

    def read(self) -> tuple[Floats, Floats]:
        """W and W X'ᵀ."""
        return self._rows.copy(), self._rows @ self._X.T


_MAX_RETRIES = 100
_BLOCK = 128


@dataclass(frozen=True)
class GHAState:
    """What the next batch needs.

    Parameters
    ----------
    components : ndarray of shape (r, N)
        W.
    mean : ndarray of shape (N,)
        Running mean of all rows.
    seen : int
        Rows so far.
    variances : ndarray of shape (r,)
        Running mean of y_i².
    total_variance : float
        Running mean of ‖x − mean‖².
    horizon : int
        Stands in for l, which a stream does not have: τ of inverse time.
    gain_scale : float
        Product of all back-offs so far.
    """

    components: Floats
    mean: Floats
    seen: int
    variances: Floats
    total_variance: float
    horizon: int
    gain_scale: float = 1.0


def gha_batch(state: GHAState, X: Floats, gain: Gain, safety: Safety) -> tuple[GHAState, int]:
    """Learn from a batch of rows in the order given; also say how often the gain was lowered."""
    mean = state.mean + (X.mean(axis=0) - state.mean) * (len(X) / (state.seen + len(X)))
    centred = X - mean
    typical = float(np.einsum("ij,ij->", centred, centred)) / len(X)
    for tries in range(_MAX_RETRIES):
        components = _sweep_rows(state, centred, typical, gain, safety)
        if components is not None:
            return _learned(state, components, mean, centred, typical), tries
        state = replace(state, gain_scale=state.gain_scale * safety.backoff)
    # No gain is small enough: the components stay, the mean and the variances are still learned.
    return _learned(state, state.components, mean, centred, typical), _MAX_RETRIES


def _sweep_rows(
    state: GHAState, centred: Floats, typical: float, gain: Gain, safety: Safety
) -> Floats | None:
    """W after the batch, or None if a step went too far; nothing is changed then."""
    # The compiler is imported with the first batch, not with the package.
    from ikpca.solvers import kha_sweep

    W = state.components
    variances = state.variances if state.seen else _first_variances(W, centred)
    longest = max(1.0, float(np.einsum("ij,ij->", W, W)))
    for start in range(0, len(centred), _BLOCK):
        rows = centred[start : start + _BLOCK]
        times = np.arange(state.seen + start, state.seen + start + len(rows), dtype=np.float64)
        eta = state.gain_scale * gain.gains(times, state.horizon, variances * state.horizon)
        eta = np.broadcast_to(eta, (len(rows), len(W))).copy()
        G = (rows @ rows.T).astype(np.float64)
        limits = np.full(len(rows), np.finfo(np.float64).max)
        if safety.alarm:
            limits = 2 * longest * np.maximum(np.diag(G), typical)
        Y = (W @ rows.T).astype(np.float64)
        T, C, failed = kha_sweep.plain_sweep(Y, G, eta, safety.cap, limits)
        if failed != kha_sweep.OK:
            return None
        W = T.astype(W.dtype) @ W + C.astype(W.dtype) @ rows
    return W


def _first_variances(W: Floats, centred: Floats) -> Floats:
    return np.square(centred @ W.T).mean(axis=0, dtype=np.float64)


def _learned(state: GHAState, W: Floats, mean: Floats, centred: Floats, typical: float) -> GHAState:
    weight = len(centred) / (state.seen + len(centred))
    variances = _first_variances(W, centred)
    return replace(
        state,
        components=W,
        mean=mean,
        seen=state.seen + len(centred),
        variances=state.variances + weight * (variances - state.variances),
        total_variance=state.total_variance + weight * (typical - state.total_variance),
    )

"""Generalized Hebbian algorithm (Sanger 1989) on explicit features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ikpca.gains import Gain
from ikpca.kernels import Floats, Indices
from ikpca.solvers.kha_pass import Safety

#: Back-offs of the gain for one batch, at most.
_MAX_RETRIES = 100
#: Rows per sweep.
_BLOCK = 128


class FeatureStore:
    """Coefficient store for explicit, centered rows X': R is W itself, and K' is X'X'ᵀ.

    In place of AK' it computes W X'ᵀ. There are no coefficients A, so ``gram(0)`` is not defined
    and gains must use Rayleigh quotients.
    """

    def __init__(self, X: Floats, rows: Floats) -> None:
        self._X = X
        self._rows = np.array(rows, dtype=X.dtype, order="C")
        self._mark = self._rows
        self.entries = 0

    @property
    def n_samples(self) -> int:
        """Number of rows of X'."""
        return int(self._X.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the rows."""
        return np.dtype(self._X.dtype)

    @property
    def mean_diagonal(self) -> float:
        """Mean ‖x'‖²."""
        return float(np.einsum("ij,ij->", self._X, self._X, dtype=np.float64)) / self.n_samples

    @property
    def squared_norm(self) -> float:
        """NaN: X'X'ᵀ may be larger than X'."""
        return float("nan")

    def project(self, patterns: Indices, upcoming: Sequence[Indices] = ()) -> tuple[Floats, Floats]:
        """Return W X'_Pᵀ and X'_P X'_Pᵀ; ``upcoming`` is ignored."""
        X_P = self._X[patterns]
        Y, G = self._rows @ X_P.T, X_P @ X_P.T
        return Y.astype(np.float64, order="C"), G.astype(np.float64, order="C")

    def transform(self, T: Floats, patterns: Indices, C: Floats) -> None:
        """Set W ← TW + C X'_P."""
        product = T.astype(self.dtype) @ self._rows
        self._rows = product + C.astype(self.dtype) @ self._X[patterns]

    def gram(self, power: int) -> Floats:
        """Return W Wᵀ for power 1, W X'ᵀX' Wᵀ for power 2."""
        if power == 0:
            raise ValueError("power=0: explicit components have no coefficients; pass 1 or 2.")
        factor = self._rows if power == 1 else self._rows @ self._X.T
        factor = factor.astype(np.float64, copy=False)
        return factor @ factor.T

    def residuals(self, eigenvalues: Floats, sample: Indices) -> Floats:
        """Return ‖X'ᵀX'w − λw‖/λ₁ for unit w, from all rows; ``sample`` is ignored."""
        W = self._rows[: len(eigenvalues)].astype(np.float64)
        defects = (W @ self._X.T) @ self._X - eigenvalues[:, None] * W
        scale = np.linalg.norm(W, axis=1) * np.abs(eigenvalues).max(initial=0.0)
        norms = np.linalg.norm(defects, axis=1)
        return np.divide(norms, scale, out=np.zeros_like(norms), where=scale > 0)

    def mark(self) -> None:
        """Save a reference; transforms never modify existing arrays."""
        self._mark = self._rows

    def rewind(self) -> None:
        """Restore the saved reference."""
        self._rows = self._mark

    def change(self, n_rows: int) -> float:
        """Return ‖W − W₀‖²."""
        delta = (self._rows[:n_rows] - self._mark[:n_rows]).astype(np.float64)
        return float(np.einsum("ij,ij->", delta, delta))

    def read(self) -> tuple[Floats, Floats]:
        """Return W and W X'ᵀ."""
        return self._rows.copy(), self._rows @ self._X.T


@dataclass(frozen=True)
class GHAState:
    """State of the algorithm between two batches.

    Parameters
    ----------
    components : ndarray of shape (r, N)
        W.
    mean : ndarray of shape (N,)
        Running mean of all rows, in double precision.
    seen : int
        Number of rows so far.
    variances : ndarray of shape (r,)
        Running mean of y_i².
    total_variance : float
        Running mean of ‖x − mean‖².
    horizon : int
        Used in place of l, which a stream does not have: τ of inverse time.
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
    """Update the state with a batch of rows in order; also return the number of back-offs."""
    change = X.mean(axis=0, dtype=np.float64) - state.mean
    mean = state.mean + change * (len(X) / (state.seen + len(X)))
    centered = X - mean.astype(X.dtype)
    mean_square = float(np.einsum("ij,ij->", centered, centered, dtype=np.float64)) / len(X)
    for tries in range(_MAX_RETRIES):
        components = _sweep_rows(state, centered, mean_square, gain, safety)
        if components is not None:
            return _updated_state(state, components, mean, centered, mean_square), tries
        state = replace(state, gain_scale=state.gain_scale * safety.backoff)
    # No gain is small enough: only the mean and the variances are updated.
    return _updated_state(state, state.components, mean, centered, mean_square), _MAX_RETRIES


def _sweep_rows(
    state: GHAState, centered: Floats, mean_square: float, gain: Gain, safety: Safety
) -> Floats | None:
    """Return W after the batch, or None if a step diverged."""
    # Imported here because importing it starts the compiler.
    from ikpca.solvers import kha_sweep

    W = state.components
    variances = state.variances if state.seen else _projection_variances(W, centered)
    squared_norm = max(1.0, float(np.einsum("ij,ij->", W, W)))
    for start in range(0, len(centered), _BLOCK):
        rows = centered[start : start + _BLOCK]
        times = np.arange(state.seen + start, state.seen + start + len(rows), dtype=np.float64)
        eta = state.gain_scale * gain.gains(times, state.horizon, variances * state.horizon)
        eta = np.broadcast_to(eta, (len(rows), len(W))).copy()
        G = (rows @ rows.T).astype(np.float64)
        limits = np.full(len(rows), np.finfo(np.float64).max)
        if safety.check_norms:
            limits = 2 * squared_norm * np.maximum(np.diag(G), mean_square)
        Y = (W @ rows.T).astype(np.float64)
        T, C, failed = kha_sweep.plain_sweep(Y, G, eta, safety.cap, limits)
        if failed != kha_sweep.OK:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            # Values beyond single precision become infinite.
            W = T.astype(W.dtype) @ W + C.astype(W.dtype) @ rows
        if not np.isfinite(W).all():
            return None
    return W


def _projection_variances(W: Floats, centered: Floats) -> Floats:
    return np.square(centered @ W.T).mean(axis=0, dtype=np.float64)


def _updated_state(
    state: GHAState, W: Floats, mean: Floats, centered: Floats, mean_square: float
) -> GHAState:
    weight = len(centered) / (state.seen + len(centered))
    variances = _projection_variances(W, centered)
    return replace(
        state,
        components=W,
        mean=mean,
        seen=state.seen + len(centered),
        variances=state.variances + weight * (variances - state.variances),
        total_variance=state.total_variance + weight * (mean_square - state.total_variance),
    )

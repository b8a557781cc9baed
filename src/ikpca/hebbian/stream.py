"""Sanger's rule on a stream of explicit rows: one batch, swept block by block."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ikpca.gains import Gain
from ikpca.hebbian.settings import Safety
from ikpca.hebbian.store import Floats

__all__ = ["StreamState", "stream_batch"]

_MAX_RETRIES = 100
_BLOCK = 128


@dataclass(frozen=True)
class StreamState:
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


def stream_batch(
    state: StreamState, X: Floats, gain: Gain, safety: Safety
) -> tuple[StreamState, int]:
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
    state: StreamState, centred: Floats, typical: float, gain: Gain, safety: Safety
) -> Floats | None:
    """W after the batch, or None if a step went too far; nothing is changed then."""
    # The compiler is imported with the first batch, not with the package.
    from ikpca.hebbian import sweep

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
        T, C, failed = sweep.plain_sweep(Y, G, eta, safety.cap, limits)
        if failed != sweep.FINE:
            return None
        W = T.astype(W.dtype) @ W + C.astype(W.dtype) @ rows
    return W


def _first_variances(W: Floats, centred: Floats) -> Floats:
    return np.square(centred @ W.T).mean(axis=0, dtype=np.float64)


def _learned(
    state: StreamState, W: Floats, mean: Floats, centred: Floats, typical: float
) -> StreamState:
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

"""Online KHA (Kim 2003, appendix A): each pattern is used once and added to the expansion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ikpca.errors import invalid_parameter
from ikpca.gains import Gain, MetaDescent
from ikpca.gram import cross_gram
from ikpca.kernels import Floats, Kernel
from ikpca.reduced_sets import ReducedSet
from ikpca.solvers.kha_pass import Safety
from ikpca.solvers.rayleigh_ritz import rayleigh_ritz
from ikpca.subspace import Subspace

#: Patterns between two refreshes of λ for the gains: at most 32, and about 1/8 of those seen.
#: Refreshes happen at fixed times of the stream, so that the result does not depend on batches.
_MAX_INTERVAL, _INTERVAL_DIVISOR = 32, 8


@dataclass(frozen=True)
class OnlineSettings:
    """Settings of a stream.

    Parameters
    ----------
    kernel : Kernel
    gain : Gain
    safety : Safety
        Caps for automatic gains, back-off for a user's.
    horizon : int
        Used in place of l, which a stream does not have: default τ of inverse time.
    memory : float
        Time constant of the mean, λ and the clock of the gains, in patterns; infinite by default.
    budget : int or None
        Maximum number of rows of the expansion.
    reduce : callable, optional
        Reduces the expansion when the budget is reached.
    """

    kernel: Kernel
    gain: Gain
    safety: Safety
    horizon: int
    memory: float = np.inf
    budget: int | None = None
    reduce: Callable[[Subspace, Floats], ReducedSet] | None = None

    @property
    def meta(self) -> MetaDescent | None:
        """Meta-descent part of the gain, or None."""
        return self.gain if isinstance(self.gain, MetaDescent) else None


@dataclass(frozen=True, eq=False)
class OnlineState:
    """State of online KHA between two patterns.

    Parameters
    ----------
    library : ndarray of shape (m, N)
        Rows of the expansion.
    coefficients : ndarray of shape (R, m)
        α, and with meta-descent its companions below.
    mean : ndarray of shape (m,)
        ν.
    lengths, companions : ndarray of shape (r, r)
        ⟨w_i, w_j⟩, and ⟨w_i, dw_j⟩ with meta-descent.
    with_mean : ndarray of shape (R,)
        ⟨w_i, µ⟩.
    mean_length : float
        ⟨µ, µ⟩.
    moments : ndarray of shape (r, r)
        Running mean of yyᵀ, weighted towards later patterns, since the components have changed.
    total_variance : float
        Running mean of ‖Φ(x) − µ‖².
    seen : int
        Number of patterns so far.
    gain_scale : float
        Product of all back-offs.
    log_gains : ndarray of shape (r,)
        ρ of meta-descent.
    errors : ndarray of shape (r,) or None
        ‖w_i − w̃_i‖/‖w_i‖ of the last reduction of the expansion.
    looked_at : ndarray of shape (r,) or None
        ``variances`` at the last refresh, used for the gains.
    """

    library: Floats
    coefficients: Floats
    mean: Floats
    lengths: Floats
    companions: Floats
    with_mean: Floats
    mean_length: float
    moments: Floats
    total_variance: float
    seen: int = 0
    gain_scale: float = 1.0
    log_gains: Floats = field(default_factory=lambda: np.zeros(0))
    errors: Floats | None = None
    looked_at: Floats | None = None

    @property
    def n_components(self) -> int:
        """Number of components r."""
        return len(self.lengths)

    @property
    def variances(self) -> Floats:
        """Variance λ_i/l along each component, scaled to unit length."""
        lengths = np.diagonal(self.lengths)
        variances = np.diagonal(self.moments)
        return np.divide(variances, lengths, out=np.zeros(len(lengths)), where=lengths > 0)

    def subspace(self, kernel: Kernel, *, ritz: bool) -> tuple[Subspace, Floats]:
        """Return components and mean in the precision of the rows, and the variances.

        With ``ritz`` the components are orthonormalized and ordered within their span, by the
        running moments; the state itself does not change.
        """
        r = self.n_components
        T: Floats = np.eye(r)
        variances = self.variances
        if ritz:
            variances, T = rayleigh_ritz(self.lengths, self.moments)
        offsets = T @ self.with_mean[:r]
        gram = np.block(
            [[T @ self.lengths @ T.T, offsets[:, None]], [offsets, np.array(self.mean_length)]]
        )
        vectors = np.vstack([T @ self.coefficients[:r], self.mean])
        dtype = self.library.dtype
        subspace = Subspace(kernel, self.library, vectors.astype(dtype), None, gram.astype(dtype))
        return subspace, np.maximum(variances, 0)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    def flip_signs(self, signs: Floats) -> OnlineState:
        """Return the state with components multiplied by ±1."""
        stacked = np.tile(signs, len(self.coefficients) // len(signs))
        both = np.outer(signs, signs)
        return replace(
            self,
            coefficients=self.coefficients * stacked[:, None],
            lengths=self.lengths * both,
            companions=self.companions * both,
            with_mean=self.with_mean * stacked,
            moments=self.moments * both,
        )


def start_online(
    settings: OnlineSettings, points: Floats, coefficients: Floats, lengths: Floats | None = None
) -> OnlineState:
    """Return the state of components on initial points, which are not in the mean (appendix A.2).

    λ is still unknown; the mean of k(x, x), an upper bound, makes the first steps short.
    """
    r, meta = len(coefficients), settings.meta
    variance = float(np.abs(settings.kernel.diagonal(points)).mean(dtype=np.float64)) or 1.0
    stacked = np.zeros((r if meta is None else 2 * r, len(points)))
    stacked[:r] = coefficients
    if lengths is None:
        K = cross_gram(settings.kernel, points, points).astype(np.float64)
        lengths = coefficients @ K @ coefficients.T
    return OnlineState(
        library=points,
        coefficients=stacked,
        mean=np.zeros(len(points)),
        lengths=(lengths + lengths.T) / 2,
        companions=np.zeros((r, r)),
        with_mean=np.zeros(len(stacked)),
        mean_length=0.0,
        moments=variance * np.diag(np.diagonal(lengths)),
        total_variance=variance,
        log_gains=np.full(r, 0.0 if meta is None else meta.log_gain_init),
    )


def learn_rows(
    state: OnlineState, rows: Floats, settings: OnlineSettings
) -> tuple[OnlineState, Floats, int]:
    """Update the state with rows, in order.

    Returns
    -------
    state : OnlineState
    errors : ndarray of shape (n,)
        ‖Φ(x) − µ − P(Φ(x) − µ)‖² of every row before its update.
    halvings : int
        Number of times that the gains were halved because they were too large.
    """
    state = _with_companions(state, settings)
    if settings.budget is not None and len(state.library) >= settings.budget:
        # The budget may have been lowered since the last batch.
        state = reduce_expansion(state, settings)
    errors, halvings, start = [], 0, 0
    while start < len(rows):
        if state.looked_at is None or _steps_to_refresh(state.seen) == _interval(state.seen):
            state = replace(state, looked_at=state.variances)
        capacity = np.inf if settings.budget is None else settings.budget - len(state.library)
        end = start + int(min(_steps_to_refresh(state.seen), capacity, len(rows) - start))
        state, found, halved = _learn_block(state, rows[start:end], settings)
        errors.append(found)
        halvings += halved
        start = end
        if len(state.library) == settings.budget:
            state = reduce_expansion(state, settings)
    return state, np.concatenate(errors), halvings


def reduce_expansion(state: OnlineState, settings: OnlineSettings) -> OnlineState:
    """Reduce the expansion to fewer rows, and recompute the inner products.

    Errors of the components are weighted by their variances, the error of the mean by 1.
    """
    if settings.reduce is None:
        return state
    r, roots = state.n_components, np.sqrt(state.variances)
    weights = np.append(np.tile(roots, len(state.coefficients) // r), 1.0)
    # Components, companions, and the mean last.
    vectors = np.vstack([state.coefficients, state.mean])
    reduced = settings.reduce(Subspace(settings.kernel, state.library, vectors), weights)
    coefficients = reduced.subspace.coefficients.astype(np.float64)
    gram = reduced.subspace.gram.astype(np.float64)
    # A projection is never longer than the vector, except for an indefinite kernel.
    ratios = np.divide(reduced.squared_lengths, np.diagonal(gram), out=np.ones(len(gram)),
                       where=np.diagonal(gram) > reduced.squared_lengths)  # fmt: skip
    scales = np.sqrt(np.maximum(ratios, 0))
    coefficients, gram = coefficients * scales[:, None], gram * np.outer(scales, scales)
    return replace(
        state,
        library=reduced.subspace.basis,
        coefficients=coefficients[:-1],
        mean=coefficients[-1],
        lengths=gram[:r, :r].copy(),
        companions=gram[:r, r:-1].copy() if settings.meta else state.companions,
        with_mean=gram[-1, :-1].copy(),
        mean_length=float(gram[-1, -1]),
        errors=reduced.relative_errors[:r],
    )


def _with_companions(state: OnlineState, settings: OnlineSettings) -> OnlineState:
    """Add or remove the companion rows dW, if the kind of gain has changed."""
    r, n_rows = state.n_components, (1 if settings.meta is None else 2) * state.n_components
    if len(state.coefficients) == n_rows:
        return state
    rows = np.zeros((n_rows, len(state.library)))
    rows[:r] = state.coefficients[:r]
    with_mean = np.zeros(n_rows)
    with_mean[:r] = state.with_mean[:r]
    return replace(state, coefficients=rows, with_mean=with_mean, companions=np.zeros((r, r)))


def _steps_to_refresh(seen: int) -> int:
    """Return the number of patterns until λ is refreshed; depends on ``seen`` alone."""
    return _interval(seen) - seen % _interval(seen)


def _interval(seen: int) -> int:
    """Return the number of patterns between two refreshes, a power of two."""
    return min(_MAX_INTERVAL, 1 << max(0, (seen // _INTERVAL_DIVISOR).bit_length() - 1))


def _learn_block(
    state: OnlineState, rows: Floats, settings: OnlineSettings
) -> tuple[OnlineState, Floats, int]:
    # Imported here because importing it starts the compiler.
    from ikpca.streams.online_sweep import online_sweep

    cross_values = cross_gram(settings.kernel, state.library, rows).astype(np.float64)
    batch_values = cross_gram(settings.kernel, rows, rows).astype(np.float64)
    if not (np.isfinite(cross_values).all() and np.isfinite(batch_values).all()):
        raise invalid_parameter(
            "kernel",
            settings.kernel,
            "returned NaN or infinite values for these rows",
            "scale the rows or correct the kernel; nothing was learned",
        )
    vectors = np.vstack([state.coefficients, state.mean])
    lengths, companions = state.lengths.copy(), state.companions.copy()
    with_mean, moments = state.with_mean.copy(), state.moments.copy()
    log_gains, meta = state.log_gains.copy(), settings.meta
    times = np.arange(state.seen, state.seen + len(rows), dtype=np.float64)
    T, C, s, d, errors, mean_length, total, halvings = online_sweep(
        vectors @ cross_values, batch_values, lengths, companions, with_mean, state.mean_length,
        _gains(state, times, settings), state.gain_scale, settings.safety.cap,
        np.maximum(1 / (times + 1), 1 / settings.memory), moments, state.total_variance,
        _moment_weights(times, settings), log_gains,
        *((0.0, 0.0, 0.0, 0.0) if meta is None else
          (meta.rate, meta.memory, meta.max_log_step, meta.max_log_gain)),
    )  # fmt: skip
    updated = replace(
        state,
        library=np.vstack([state.library, rows]),
        coefficients=np.hstack([T @ vectors, C]),
        mean=np.append(s * state.mean, d),
        lengths=lengths,
        companions=companions,
        with_mean=with_mean,
        mean_length=mean_length,
        moments=moments,
        total_variance=total,
        seen=state.seen + len(rows),
        gain_scale=state.gain_scale * 0.5**halvings,
        log_gains=log_gains,
    )
    return updated, errors, halvings


def _gains(state: OnlineState, times: Floats, settings: OnlineSettings) -> Floats:
    """Return η for every pattern; zero for the first, which only sets the mean."""
    horizon = settings.horizon
    clock = np.minimum(times, settings.memory)
    variances = state.variances if state.looked_at is None else state.looked_at
    eta = settings.gain.gains(clock, horizon, variances * horizon)
    eta = np.broadcast_to(eta, (len(times), state.n_components)).astype(np.float64)
    eta[times == 0] = 0
    return eta


def _moment_weights(times: Floats, settings: OnlineSettings) -> Floats:
    """Return weights that grow linearly in time, so that initial transients decay as 1/t²."""
    weights = np.maximum(2 / (times + 3), min(1.0, 2 / settings.memory))
    weights[times == 0] = 0
    return weights

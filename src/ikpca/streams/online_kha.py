"""Online KHA (Kim 2003, appendix A): each pattern is seen once and the expansion grows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from ikpca.errors import invalid_parameter
from ikpca.gains import Gain, MetaDescent
from ikpca.gram import cross_gram
from ikpca.kernels import Floats, Kernel
from ikpca.reduced_sets import ReducedSet
from ikpca.solvers.kha_pass import Safety
from ikpca.solvers.rayleigh_ritz import rayleigh_ritz
from ikpca.subspace import Expansion, Subspace

#: Patterns between two looks at λ for the gains, at most and as a share of those seen. Looks are
#: taken at fixed times of the stream, so that it does not matter how it is cut into batches.
_LONGEST_BLOCK, _SHARE = 32, 8

#: Puts an expansion on fewer rows, with a weight for each of its vectors.
ReduceExpansion: TypeAlias = Callable[[Expansion, Floats], ReducedSet]


@dataclass(frozen=True)
class OnlineSettings:
    """Fixed for a stream.

    Parameters
    ----------
    kernel : Kernel
    gain : Gain
    safety : Safety
        Caps for the library's gains, back-off for a user's.
    horizon : int
        Stands in for l, which a stream does not have: τ of inverse time unless it has its own.
    memory : float
        Patterns after which the mean, λ and the clock of the gains forget; infinite for none.
    budget : int or None
        Rows that the expansion holds at most.
    shrink : callable, optional
        What brings it below the budget again.
    """

    kernel: Kernel
    gain: Gain
    safety: Safety
    horizon: int
    memory: float = np.inf
    budget: int | None = None
    shrink: ReduceExpansion | None = None

    @property
    def meta(self) -> MetaDescent | None:
        """The meta-descent part of the gain, if it has one."""
        return self.gain if isinstance(self.gain, MetaDescent) else None


@dataclass(frozen=True, eq=False)
class OnlineState:
    """What the next pattern needs.

    Parameters
    ----------
    library : ndarray of shape (m, N)
        Rows of the expansion.
    coefficients : ndarray of shape (R, m)
        α; with meta-descent its companions below.
    mean : ndarray of shape (m,)
        ν.
    lengths, companions : ndarray of shape (r, r)
        ⟨w_i, w_j⟩, and ⟨w_i, dw_j⟩ with meta-descent.
    with_mean : ndarray of shape (R,)
        ⟨w_i, µ⟩.
    mean_length : float
        ⟨µ, µ⟩.
    moments : ndarray of shape (r, r)
        Running mean of yyᵀ, in which later patterns weigh more: components of early ones were
        others.
    total_variance : float
        The same of ‖Φ(x) − µ‖².
    seen : int
        Patterns so far.
    gain_scale : float
        Product of all back-offs.
    log_gains : ndarray of shape (r,)
        ρ of meta-descent.
    errors : ndarray of shape (r,) or None
        ‖w_i − w̃_i‖/‖w_i‖ of the last time the expansion was shrunk.
    looked_at : ndarray of shape (r,) or None
        ``variances`` when the gains last looked at them.
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
        """r."""
        return len(self.lengths)

    @property
    def variances(self) -> Floats:
        """λ_i/l: the variance along each component, at unit length."""
        lengths = np.diagonal(self.lengths)
        variances = np.diagonal(self.moments)
        return np.divide(variances, lengths, out=np.zeros(len(lengths)), where=lengths > 0)

    def expansion(self, kernel: Kernel) -> Expansion:
        """All vectors of the state: components, companions, and the mean last."""
        return Expansion(kernel, self.library, np.vstack([self.coefficients, self.mean]))

    def subspace(self, kernel: Kernel, *, ritz: bool) -> tuple[Subspace, Floats]:
        """Components about the mean in the precision of the rows, and their variances.

        With ``ritz`` the components are made orthonormal and put in order in their own span, from
        the running moments; the state itself is left as it is.
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
        kind = self.library.dtype
        known = Expansion(kernel, self.library, vectors.astype(kind), None, gram.astype(kind))
        return Subspace(known), np.maximum(variances, 0)

    @property
    def nbytes(self) -> int:
        """Of all arrays."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    def turned(self, signs: Floats) -> OnlineState:
        """The same components with some of them turned round."""
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
    """Components on initial points, which stay outside the mean and uncentred (appendix A.2).

    λ is unknown yet; the mean of k(x, x), which it cannot exceed, makes for short first steps.
    """
    r, meta = len(coefficients), settings.meta
    guess = float(np.abs(settings.kernel.diagonal(points)).mean(dtype=np.float64)) or 1.0
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
        moments=guess * np.diag(np.diagonal(lengths)),
        total_variance=guess,
        log_gains=np.full(r, 0.0 if meta is None else meta.log_gain_init),
    )


def learn_rows(
    state: OnlineState, rows: Floats, settings: OnlineSettings
) -> tuple[OnlineState, Floats, int]:
    """Learn from rows in their order.

    Returns
    -------
    state : OnlineState
    errors : ndarray of shape (n,)
        ‖Φ(x) − µ − P(Φ(x) − µ)‖² of every row before it was learned from.
    halvings : int
        How often a gain that was too large was halved.
    """
    state = _with_companions(state, settings)
    errors, halvings, begin = [], 0, 0
    while begin < len(rows):
        if state.looked_at is None or _until_next_look(state.seen) == _interval(state.seen):
            state = replace(state, looked_at=state.variances)
        room = np.inf if settings.budget is None else settings.budget - len(state.library)
        end = begin + int(min(_until_next_look(state.seen), room, len(rows) - begin))
        state, found, halved = _learn_block(state, rows[begin:end], settings)
        errors.append(found)
        halvings += halved
        begin = end
        if len(state.library) == settings.budget:
            state = reduce_expansion(state, settings)
    return state, np.concatenate(errors), halvings


def reduce_expansion(state: OnlineState, settings: OnlineSettings) -> OnlineState:
    """The same vectors on fewer rows; what is kept of them is worked out afresh.

    An error of a component costs as much as its variance, one of the mean costs fully.
    """
    if settings.shrink is None:
        return state
    r, roots = state.n_components, np.sqrt(state.variances)
    weights = np.append(np.tile(roots, len(state.coefficients) // r), 1.0)
    reduced = settings.shrink(state.expansion(settings.kernel), weights)
    coefficients = reduced.expansion.coefficients.astype(np.float64)
    gram = reduced.expansion.gram.astype(np.float64)
    # A projection is no longer than what it projects, but where the kernel is no inner product.
    shares = np.divide(reduced.squared_lengths, np.diagonal(gram), out=np.ones(len(gram)),
                       where=np.diagonal(gram) > reduced.squared_lengths)  # fmt: skip
    scales = np.sqrt(np.maximum(shares, 0))
    coefficients, gram = coefficients * scales[:, None], gram * np.outer(scales, scales)
    return replace(
        state,
        library=reduced.expansion.basis,
        coefficients=coefficients[:-1],
        mean=coefficients[-1],
        lengths=gram[:r, :r].copy(),
        companions=gram[:r, r:-1].copy() if settings.meta else state.companions,
        with_mean=gram[-1, :-1].copy(),
        mean_length=float(gram[-1, -1]),
        errors=reduced.relative_errors[:r],
    )


def _with_companions(state: OnlineState, settings: OnlineSettings) -> OnlineState:
    """Rows for dW, from zero, where the gain has come to want them; none where it has not."""
    r, wanted = state.n_components, (1 if settings.meta is None else 2) * state.n_components
    if len(state.coefficients) == wanted:
        return state
    rows = np.zeros((wanted, len(state.library)))
    rows[:r] = state.coefficients[:r]
    with_mean = np.zeros(wanted)
    with_mean[:r] = state.with_mean[:r]
    nothing = np.zeros((r, r))
    return replace(state, coefficients=rows, with_mean=with_mean, companions=nothing)


def _until_next_look(seen: int) -> int:
    """Patterns until λ is read again; a function of the stream's time alone."""
    return _interval(seen) - seen % _interval(seen)


def _interval(seen: int) -> int:
    """Between two looks: powers of two, so that longer ones begin where shorter ones end."""
    return min(_LONGEST_BLOCK, 1 << max(0, (seen // _SHARE).bit_length() - 1))


def _learn_block(
    state: OnlineState, rows: Floats, settings: OnlineSettings
) -> tuple[OnlineState, Floats, int]:
    # The compiler is imported with the first pattern, not with the package.
    from ikpca.streams.online_sweep import online_sweep

    across = cross_gram(settings.kernel, state.library, rows).astype(np.float64)
    own = cross_gram(settings.kernel, rows, rows).astype(np.float64)
    if not (np.isfinite(across).all() and np.isfinite(own).all()):
        raise invalid_parameter(
            "kernel",
            settings.kernel,
            "returned NaN or infinite values for these rows",
            "scale the rows, or mend the kernel; nothing was learned",
        )
    vectors = np.vstack([state.coefficients, state.mean])
    lengths, companions = state.lengths.copy(), state.companions.copy()
    with_mean, moments = state.with_mean.copy(), state.moments.copy()
    log_gains, meta = state.log_gains.copy(), settings.meta
    times = np.arange(state.seen, state.seen + len(rows), dtype=np.float64)
    T, C, s, d, errors, mean_length, total, halvings = online_sweep(
        vectors @ across, own, lengths, companions, with_mean, state.mean_length,
        _gains(state, times, settings), state.gain_scale, settings.safety.cap,
        np.maximum(1 / (times + 1), 1 / settings.memory), moments, state.total_variance,
        _moment_weights(times, settings), log_gains,
        *((0.0, 0.0, 0.0, 0.0) if meta is None else
          (meta.rate, meta.memory, meta.max_log_step, meta.max_log_gain)),
    )  # fmt: skip
    learned = replace(
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
    return learned, errors, halvings


def _gains(state: OnlineState, times: Floats, settings: OnlineSettings) -> Floats:
    """η for every pattern; none for the first, which only sets the mean."""
    horizon = settings.horizon
    clock = np.minimum(times, settings.memory)
    variances = state.variances if state.looked_at is None else state.looked_at
    eta = settings.gain.gains(clock, horizon, variances * horizon)
    eta = np.broadcast_to(eta, (len(times), state.n_components)).astype(np.float64)
    eta[times == 0] = 0
    return eta


def _moment_weights(times: Floats, settings: OnlineSettings) -> Floats:
    """Linear in time: a transient of the first patterns fades as 1/t²."""
    weights = np.maximum(2 / (times + 3), min(1.0, 2 / settings.memory))
    weights[times == 0] = 0
    return weights

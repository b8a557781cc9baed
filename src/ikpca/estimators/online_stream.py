"""Stream state of ``OnlineKernelPCA``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ikpca.errors import InvalidInput
from ikpca.estimators.stream_base import DriftSignal
from ikpca.gram.centering import NOT_FINITE
from ikpca.kernels import Floats, Kernel
from ikpca.solvers.problem import check_exponents
from ikpca.streams import (
    IncrementalState,
    OnlineSettings,
    OnlineStart,
    OnlineState,
    learn_rows,
    learn_stream,
    reduce_expansion,
    start_online,
)

#: Rows per step of a fit; a power of two, like the times at which gains update λ.
_PART = 1024


@dataclass(frozen=True, eq=False)
class OnlineStream:
    """State of ``OnlineKernelPCA`` between batches.

    Parameters
    ----------
    kernel : Kernel
    gamma : float
        Computed from the first batch.
    start : OnlineStart
    kept : ndarray of shape (n, N)
        First rows, stored until the initialization is complete.
    row_sum : ndarray of shape (N,)
    seen : int
        Number of rows; repeated passes do not count.
    state : OnlineState or None
        None before the first row.
    signal : DriftSignal
    novelty : ndarray
        Novelty of the rows of the last batch.
    drift : float
        Drift of the last batch.
    halvings : int
        Number of times a gain was halved in the last batch.
    """

    kernel: Kernel
    gamma: float
    start: OnlineStart
    kept: Floats
    row_sum: Floats
    seen: int = 0
    state: OnlineState | None = None
    signal: DriftSignal = field(default_factory=DriftSignal)
    novelty: Floats = field(default_factory=lambda: np.zeros(0))
    drift: float = 0.0
    halvings: int = 0

    @classmethod
    def from_batch(
        cls,
        batch: IncrementalState,
        gamma: float,
        start: OnlineStart,
        settings: OnlineSettings,
        clock: int = 0,
    ) -> OnlineStream:
        """Return a stream with the components of a batch; the gains start at ``clock``."""
        rows = batch.basis
        return cls(
            kernel=batch.kernel,
            gamma=gamma,
            start=start,
            kept=rows[:0],
            row_sum=rows.sum(axis=0, dtype=np.float64),
            seen=len(rows),
            state=_state_from_batch(batch, start.n_components, settings, clock),
        )

    def learn(
        self, rows: Floats, settings: OnlineSettings, drift_threshold: float, drift_delta: float
    ) -> OnlineStream:
        """Return the stream after learning from a batch."""
        rows = rows.astype(self.kept.dtype, copy=False)
        check_exponents(self.kernel, rows, self.row_sum / self.seen if self.seen else None)
        state, kept, novelty, halvings = learn_stream(
            self.start, self.state, self.kept, rows, settings
        )
        _check_finite(state)
        signal, drift = self.signal.update(novelty, float(drift_threshold), float(drift_delta))
        return replace(
            self,
            state=state,
            kept=kept,
            row_sum=self.row_sum + rows.sum(axis=0, dtype=np.float64),
            seen=self.seen + len(rows),
            signal=signal,
            novelty=novelty,
            drift=drift,
            halvings=halvings,
        )

    def learn_part(
        self, X: Floats, settings: OnlineSettings, drift_threshold: float, drift_delta: float
    ) -> OnlineStream:
        """Return the stream after learning from the next part of X, also across passes.

        Parts end where the gains update λ, so that the result does not depend on the parts.
        """
        number, begin = divmod(self.clock, len(X))
        rows = X[begin : begin + _PART - self.clock % _PART]
        if number == 0:
            updated = self.learn(rows, settings, drift_threshold, drift_delta)
            return replace(
                updated,
                novelty=np.concatenate([self.novelty, updated.novelty]),
                drift=max(self.drift, updated.drift),
                halvings=self.halvings + updated.halvings,
            )
        assert self.state is not None
        state, _, halvings = learn_rows(self.state, rows, settings)
        _check_finite(state)
        return replace(self, state=state, halvings=self.halvings + halvings)

    def n_parts_left(self, n_rows: int, passes: int) -> int:
        """Return the number of remaining calls of ``learn_part``."""
        ends = {n_rows * (number + 1) for number in range(passes)}
        ends.update(range(_PART, n_rows * passes, _PART))
        return sum(end > self.clock for end in ends)

    @property
    def clock(self) -> int:
        """Number of patterns counted by the gains."""
        return 0 if self.state is None else self.state.seen

    def flip_signs(self, signs: Floats) -> OnlineStream:
        """Return the stream with the signs of some components flipped."""
        assert self.state is not None
        return replace(self, state=self.state.flip_signs(signs.astype(np.float64)))

    def progress_line(self) -> str:
        """Return the progress line of a batch."""
        assert self.state is not None
        return (
            f"{self.seen} samples, expansion {len(self.state.basis)}, "
            f"novelty {self.novelty.mean():.3g}, drift {self.drift:.2f}"
        )


def _check_finite(state: OnlineState) -> None:
    if not np.isfinite(state.lengths).all():
        raise InvalidInput(NOT_FINITE)


def _state_from_batch(
    batch: IncrementalState, number: int, settings: OnlineSettings, clock: int
) -> OnlineState:
    """Return the online state of a batch; components without variance are zero."""
    n, found = len(batch.basis), min(batch.n_components, number)
    coefficients = np.zeros((number, n))
    coefficients[:found] = batch.vectors[:found]
    gram = np.zeros((number + 1, number + 1))
    chosen = np.append(np.arange(found), -1)
    gram[np.ix_(chosen, chosen)] = batch.gram[np.ix_(chosen, chosen)]
    variances = np.zeros(number)
    variances[:found] = np.square(batch.singular_values[:found]) / n
    # Inner products are known, so no kernel values are computed.
    first = start_online(settings, batch.basis, coefficients, lengths=gram[:-1, :-1])
    with_mean = np.zeros(len(first.coefficients))
    with_mean[:number] = gram[-1, :-1]
    state = replace(
        first,
        mean=batch.vectors[-1],
        with_mean=with_mean,
        mean_length=float(gram[-1, -1]),
        moments=np.diag(variances),
        total_variance=batch.total_variance / n,
        seen=max(clock, n),
    )
    full = settings.budget is not None and n >= settings.budget
    return reduce_expansion(state, settings) if full else state

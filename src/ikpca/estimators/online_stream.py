"""A stream as ``OnlineKernelPCA`` holds it: state, what decides its start, and what users see."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ikpca.errors import InvalidInput, refuse
from ikpca.estimators.drift import DriftSignal
from ikpca.estimators.gamma import resolve_gamma
from ikpca.estimators.inverting import check_preimage
from ikpca.estimators.magnitudes import check_distances
from ikpca.estimators.online_settings import memory_of, online_settings, online_start
from ikpca.estimators.training import kernel_of
from ikpca.gram import NOT_FINITE
from ikpca.hebbian import OnlineState, Start, learn_rows, learn_stream
from ikpca.kernels import Floats, Kernel, Linear

__all__ = ["OnlineStream", "online_attributes"]

#: Rows between two places at which a fit can be gone on with; a power of two, as the times of the
#: stream at which gains look at λ.
_PART = 1024


@dataclass(frozen=True, eq=False)
class OnlineStream:
    """All that goes on from one batch to the next.

    Parameters
    ----------
    kernel : Kernel
    gamma : float
        As the first batch settled it.
    start : Start
    kept : ndarray of shape (n, N)
        The first rows, as long as a start looks at them.
    row_sum : ndarray of shape (N,)
    seen : int
        Rows so far; passes over the same rows do not count.
    state : OnlineState or None
        None before the first row.
    signal : DriftSignal
    novelty : ndarray
        Of the rows of the last batch.
    drift : float
        Of the last batch.
    halvings : int
        How often a gain was halved in the last batch.
    """

    kernel: Kernel
    gamma: float
    start: Start
    kept: Floats
    row_sum: Floats
    seen: int = 0
    state: OnlineState | None = None
    signal: DriftSignal = field(default_factory=DriftSignal)
    novelty: Floats = field(default_factory=lambda: np.zeros(0))
    drift: float = 0.0
    halvings: int = 0

    @classmethod
    def begun(cls, model: Any, rows: Floats, seed: int) -> OnlineStream:
        """Before the first batch, with all that depends on it settled."""
        gamma = resolve_gamma(model.gamma, rows, model.kernel, seed)
        kernel = kernel_of(model, gamma)
        check_preimage(model, kernel)
        start = online_start(model, rows.shape[1], seed)
        return cls(kernel, gamma, start, rows[:0], np.zeros(rows.shape[1]))

    def bare(self) -> OnlineStream:
        """What a file can keep: numbers, and a kernel that stands for any."""
        return replace(self, kernel=Linear())

    def dressed(self, model: Any) -> OnlineStream:
        """The bare stream of a file with the kernel of its model."""
        kernel = kernel_of(model, self.gamma)
        check_preimage(model, kernel)
        return replace(self, kernel=kernel)

    def after(self, model: Any, rows: Floats) -> OnlineStream:
        """Having learned from a batch, with the parameters of the moment."""
        if self.start.n_components != model.n_components:
            raise refuse("n_components", model.n_components,
                         f"the stream began with {self.start.n_components}",
                         "set it back, or begin anew with fit")  # fmt: skip
        rows = rows.astype(self.kept.dtype, copy=False)
        check_distances(self.kernel, rows, self.row_sum / self.seen if self.seen else None)
        settings = online_settings(model, self.kernel)
        state, kept, novelty, halvings = learn_stream(
            self.start, self.state, self.kept, rows, settings
        )
        _check_finite(state)
        signal, drift = self.signal.after(novelty)
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

    def after_part(self, model: Any, X: Floats) -> OnlineStream:
        """Having learned from the next part of X, as of one batch, in this pass or the next one.

        Parts end where the gains look at λ in any case, so that it does not matter that there are
        parts.
        """
        number, begin = divmod(self.clock, len(X))
        rows = X[begin : begin + _PART - self.clock % _PART]
        if number == 0:
            grown = self.after(model, rows)
            return replace(
                grown,
                novelty=np.concatenate([self.novelty, grown.novelty]),
                drift=max(self.drift, grown.drift),
                halvings=self.halvings + grown.halvings,
            )
        assert self.state is not None
        state, _, halvings = learn_rows(self.state, rows, online_settings(model, self.kernel))
        _check_finite(state)
        return replace(self, state=state, halvings=self.halvings + halvings)

    def parts_left(self, n_rows: int, passes: int) -> int:
        """How often ``after_part`` is to be called for so many passes over so many rows."""
        ends = {n_rows * (number + 1) for number in range(passes)}
        ends.update(range(_PART, n_rows * passes, _PART))
        return sum(end > self.clock for end in ends)

    @property
    def clock(self) -> int:
        """Patterns that the gains have counted."""
        return 0 if self.state is None else self.state.seen

    def turned(self, signs: Floats) -> OnlineStream:
        """With some components turned round."""
        assert self.state is not None
        return replace(self, state=self.state.turned(signs.astype(np.float64)))

    def widened(self, n_features: int) -> OnlineStream:
        """With features that were zero so far; no kernel value changes with them."""
        assert self.state is not None
        more = n_features - self.kept.shape[1]
        start = self.start
        if not isinstance(start.kind, str):
            start = replace(start, kind=np.pad(start.kind, ((0, 0), (0, more))))
        return replace(
            self,
            start=start,
            kept=np.pad(self.kept, ((0, 0), (0, more))),
            row_sum=np.pad(self.row_sum, (0, more)),
            state=replace(self.state, library=np.pad(self.state.library, ((0, 0), (0, more)))),
        )

    def line(self) -> str:
        """A batch for readers."""
        assert self.state is not None
        return (
            f"{self.seen} samples, expansion {len(self.state.library)}, "
            f"novelty {self.novelty.mean():.3g}, drift {self.drift:.2f}"
        )


def _check_finite(state: OnlineState) -> None:
    if not np.isfinite(state.lengths).all():
        raise InvalidInput(NOT_FINITE)


def online_attributes(model: Any, stream: OnlineStream) -> dict[str, Any]:
    """What the model has after a batch, by name."""
    state = stream.state
    assert state is not None
    view, variances = state.subspace(stream.kernel, ritz=bool(model.rayleigh_ritz))
    kind = view.components.dtype
    n = min(stream.seen, memory_of(model))
    total = state.total_variance if state.total_variance > 0 else 1.0
    return {
        "eigenvalues_": (n * variances).astype(kind),
        "explained_variance_ratio_": (variances / total).astype(kind),
        "n_samples_seen_": stream.seen,
        "library_": view.library,
        "coefficients_": view.components,
        "mean_coefficients_": view.mean,
        "mean_": (stream.row_sum / stream.seen).astype(kind),
        "novelty_": stream.novelty,
        "drift_": stream.drift,
        "drift_detected_": stream.drift >= 1,
        "compression_error_": state.errors,
        "memory_usage_": state.nbytes + stream.kept.nbytes + view.components.nbytes,
        "gamma_": stream.gamma,
        "_view": view,
        "_scale": _scale(variances, n, whiten=model.whiten).astype(kind),
    }


def _scale(variances: Floats, n: float, *, whiten: bool) -> Floats:
    """1, or 1/standard deviation of each projection; zero for a component without variance."""
    if not whiten:
        return np.ones_like(variances)
    spread = np.sqrt(variances * (n / max(n - 1, 1)))
    return np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)

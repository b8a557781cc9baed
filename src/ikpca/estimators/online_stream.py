"""Stream state of ``OnlineKernelPCA``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ikpca.errors import InvalidInput, invalid_parameter
from ikpca.estimators.base import check_preimage
from ikpca.estimators.checkpoint import check_checkpoint
from ikpca.estimators.input_checks import check_distances
from ikpca.estimators.stream_base import DriftSignal, check_drift_parameters
from ikpca.estimators.validation import (
    check_choice,
    check_gain,
    check_init,
    check_kernel_parameters,
    check_number,
    check_preimage_name,
    check_runtime_parameters,
    is_auto,
    is_precomputed,
    kernel_from_parameters,
    resolve_gamma,
)
from ikpca.gains import Gain, constant, inverse_time, reciprocal_eigenvalues
from ikpca.gram import NOT_FINITE
from ikpca.kernels import Floats, Kernel, Linear
from ikpca.preimages import PREIMAGE_NAMES
from ikpca.reduced_sets import JointPreimages, Reduction, SelectedRows
from ikpca.solvers import safety_for
from ikpca.streams import (
    START_NAMES,
    IncrementalState,
    OnlineSettings,
    OnlineStart,
    OnlineState,
    learn_rows,
    learn_stream,
    reduce_expansion,
    start_online,
)

_REDUCTIONS: dict[str, Reduction] = {"samples": SelectedRows(), "preimages": JointPreimages()}
#: h_i λ_i/l at t = 0, divided by 20, for init="rows" and for points.
_STEP_FROM_ROWS, _STEP_FROM_POINTS = 2.0, 7.0
#: Number of patterns over which the gain stays near its initial value.
_HORIZON = 20
#: Number of rows of an expansion: minimum, and per component.
_MIN_BUDGET, _BUDGET_PER_COMPONENT = 512, 8
#: Fraction of the maximum that an expansion is reduced to; reductions are then rare.
_REDUCED_FRACTION = 0.75
#: Rows between checkpoints of a fit; a power of two, like the times at which gains update λ.
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
    def from_first_batch(cls, model: Any, rows: Floats, seed: int) -> OnlineStream:
        """Return the stream before the first batch, with the parameters that depend on it."""
        gamma = resolve_gamma(model.gamma, rows, model.kernel, seed)
        kernel = kernel_from_parameters(model, gamma)
        check_preimage(model, kernel)
        start = online_start(model, rows.shape[1], seed)
        return cls(kernel, gamma, start, rows[:0], np.zeros(rows.shape[1]))

    def unwrap(self) -> OnlineStream:
        """Return the stream without its kernel, for a file."""
        return replace(self, kernel=Linear())

    def wrap(self, model: Any) -> OnlineStream:
        """Return an unwrapped stream with the kernel of its model."""
        kernel = kernel_from_parameters(model, self.gamma)
        check_preimage(model, kernel)
        return replace(self, kernel=kernel)

    def learn(self, model: Any, rows: Floats) -> OnlineStream:
        """Return the stream after learning from a batch with the current parameters."""
        if self.start.n_components != model.n_components:
            raise invalid_parameter(
                "n_components",
                model.n_components,
                f"the stream has {self.start.n_components} components",
                "reset it, or start again with fit",
            )
        rows = rows.astype(self.kept.dtype, copy=False)
        check_distances(self.kernel, rows, self.row_sum / self.seen if self.seen else None)
        settings = online_settings(model, self.kernel)
        state, kept, novelty, halvings = learn_stream(
            self.start, self.state, self.kept, rows, settings
        )
        _check_finite(state)
        signal, drift = self.signal.update(
            novelty, float(model.drift_threshold), float(model.drift_delta)
        )
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

    def learn_part(self, model: Any, X: Floats) -> OnlineStream:
        """Return the stream after learning from the next part of X, also across passes.

        Parts end where the gains update λ, so that the result does not depend on the parts.
        """
        number, begin = divmod(self.clock, len(X))
        rows = X[begin : begin + _PART - self.clock % _PART]
        if number == 0:
            updated = self.learn(model, rows)
            return replace(
                updated,
                novelty=np.concatenate([self.novelty, updated.novelty]),
                drift=max(self.drift, updated.drift),
                halvings=self.halvings + updated.halvings,
            )
        assert self.state is not None
        state, _, halvings = learn_rows(self.state, rows, online_settings(model, self.kernel))
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

    def pad_features(self, n_features: int) -> OnlineStream:
        """Return the stream with more features, zero so far; kernel values do not change."""
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
            state=replace(self.state, basis=np.pad(self.state.basis, ((0, 0), (0, more)))),
        )

    def progress_line(self) -> str:
        """Return the progress line of a batch."""
        assert self.state is not None
        return (
            f"{self.seen} samples, expansion {len(self.state.basis)}, "
            f"novelty {self.novelty.mean():.3g}, drift {self.drift:.2f}"
        )


def online_settings(model: Any, kernel: Kernel) -> OnlineSettings:
    """Return gain, memory and size of the expansion."""
    budget, size = resolve_max_basis_rows(model), reduced_size(model)
    reduction = _reduction(model.reduction, kernel)
    return OnlineSettings(
        kernel=kernel,
        gain=_gain(model),
        safety=safety_for(automatic=isinstance(model.gain, str)),
        horizon=_HORIZON,
        memory=effective_memory(model),
        budget=budget,
        reduce=lambda vectors, weights: reduction.reduce(vectors, size, weights),
    )


def resolve_max_basis_rows(model: Any) -> int | None:
    """Return the maximum number of rows of the expansion."""
    if is_auto(model.max_basis_rows):
        return max(_MIN_BUDGET, _BUDGET_PER_COMPONENT * int(model.n_components))
    return None if model.max_basis_rows is None else int(model.max_basis_rows)


def reduced_size(model: Any) -> int:
    """Return the number of rows that an expansion is reduced to."""
    budget = resolve_max_basis_rows(model)
    return 10**9 if budget is None else int(_REDUCED_FRACTION * budget)


def effective_memory(model: Any) -> float:
    """Return the limit of the sum of weights, which decay by f² per row."""
    lost = 1 - float(model.forgetting) ** 2
    return 1 / lost if lost > 0 else np.inf


def _reduction(reduction: Any, kernel: Kernel) -> Reduction:
    chosen: Reduction = _REDUCTIONS[reduction] if isinstance(reduction, str) else reduction
    if not chosen.supports(kernel):
        raise invalid_parameter(
            "reduction", reduction, f"does not support {kernel!r}", "pass 'samples'"
        )
    return chosen


def _gain(model: Any) -> Gain:
    if isinstance(model.gain, Gain):
        return model.gain
    if not isinstance(model.gain, str):
        return constant(float(model.gain))
    from_rows = isinstance(model.init, str) and model.init == "rows"
    step = _STEP_FROM_ROWS if from_rows else _STEP_FROM_POINTS
    return step * inverse_time() * reciprocal_eigenvalues(with_norm=False)


def online_start(model: Any, n_features: int, seed: int) -> OnlineStart:
    """Return the initialization; initial points are validated."""
    shape = (int(model.n_components), n_features)
    init = check_init(model.init, START_NAMES, shape)
    # Leave space for at least one step before the expansion is full.
    return OnlineStart(init, shape[0], seed, max(reduced_size(model) - shape[0], 1))


def _check_finite(state: OnlineState) -> None:
    if not np.isfinite(state.lengths).all():
        raise InvalidInput(NOT_FINITE)


def online_attributes(model: Any, stream: OnlineStream) -> dict[str, Any]:
    """Return the fitted attributes of the model by name."""
    state = stream.state
    assert state is not None
    view, variances = state.subspace(stream.kernel, ritz=bool(model.rayleigh_ritz))
    kind = view.components.dtype
    n = min(stream.seen, effective_memory(model))
    total = state.total_variance if state.total_variance > 0 else 1.0
    return {
        "eigenvalues_": (n * variances).astype(kind),
        "explained_variance_ratio_": (variances / total).astype(kind),
        "n_samples_seen_": stream.seen,
        "basis_": view.basis,
        "coefficients_": view.components,
        "mean_coefficients_": view.mean,
        "mean_": (stream.row_sum / stream.seen).astype(kind),
        "novelty_": stream.novelty,
        "drift_": stream.drift,
        "drift_detected_": stream.drift >= 1,
        "reduction_error_": state.errors,
        "memory_usage_": state.nbytes + stream.kept.nbytes + view.components.nbytes,
        "gamma_": stream.gamma,
        "_view": view,
        "_scale": _scale(variances, n, whiten=model.whiten).astype(kind),
    }


def _scale(variances: Floats, n: float, *, whiten: bool) -> Floats:
    """Return 1, or 1/standard deviation of each projection; zero without variance."""
    if not whiten:
        return np.ones_like(variances)
    spread = np.sqrt(variances * (n / max(n - 1, 1)))
    return np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)


def online_stream_from_batch(
    model: Any, batch: IncrementalState, gamma: float, clock: int = 0
) -> OnlineStream:
    """Return a stream with the components of a batch; the gains start at ``clock``."""
    rows = batch.basis
    settings = online_settings(model, batch.kernel)
    return OnlineStream(
        kernel=batch.kernel,
        gamma=gamma,
        start=online_start(model, rows.shape[1], 0),
        kept=rows[:0],
        row_sum=rows.sum(axis=0, dtype=np.float64),
        seen=len(rows),
        state=_state(batch, int(model.n_components), settings, clock),
    )


def _state(
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


def check_online(model: Any) -> None:
    """Validate the parameters of ``OnlineKernelPCA`` that do not depend on the data."""
    check_number("n_components", model.n_components, "must be a positive integer",
                 "pass how many components you want", low=1, integer=True)  # fmt: skip
    if is_precomputed(model):
        raise invalid_parameter(
            "kernel",
            model.kernel,
            "a stream needs kernel values of future rows",
            "pass rows and a kernel, or use KernelPCA for a kernel matrix",
        )
    check_kernel_parameters(model)
    check_preimage_name(model.preimage, [name for name in PREIMAGE_NAMES if name != "ridge"])
    check_gain(model.gain)
    check_number("forgetting", model.forgetting, "must lie in (0, 1]",
                 "pass 1.0 to forget nothing", low=0, high=1, open_low=True)  # fmt: skip
    if isinstance(model.init, str):
        check_choice("init", model.init, START_NAMES)
    _check_max_basis_rows(model)
    check_drift_parameters(model)
    for flag in ("rayleigh_ritz", "whiten"):
        check_choice(flag, getattr(model, flag), (True, False))
    check_number("max_iter", model.max_iter, "must be a positive integer", "pass 1",
                 low=1, integer=True)  # fmt: skip
    check_runtime_parameters(model)
    check_checkpoint(model)


def _check_max_basis_rows(model: Any) -> None:
    least = 4 * (int(model.n_components) + 1)
    if model.max_basis_rows is not None and not is_auto(model.max_basis_rows):
        check_number(
            "max_basis_rows",
            model.max_basis_rows,
            f"must be 'auto', None or an integer of at least {least}, four rows for each component "
            "and the mean",
            "pass 'auto'",
            low=least,
            integer=True,
        )
    if not isinstance(model.reduction, Reduction):
        check_choice("reduction", model.reduction, tuple(_REDUCTIONS))

"""Stream state of ``OnlineKernelPCA``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ikpca.errors import InvalidInput, invalid_parameter
from ikpca.estimators.base import check_preimage
from ikpca.estimators.checkpoint import check_checkpoint
from ikpca.estimators.input_checks import check_distances
from ikpca.estimators.stream_base import DriftSignal
from ikpca.estimators.validation import (
    check_choice,
    check_gain,
    check_init,
    check_kernel_parameters,
    check_number,
    check_preimage_name,
    check_running,
    is_auto,
    is_precomputed,
    kernel_of,
    resolve_gamma,
)
from ikpca.gains import Gain, constant, inverse_time, reciprocal_eigenvalues
from ikpca.gram import NOT_FINITE
from ikpca.kernels import Floats, Kernel, Linear
from ikpca.preimages import PREIMAGE_NAMES
from ikpca.reduced_sets import (
    DropLeastImportant,
    JointPreimages,
    MergeSimilar,
    Reduction,
    SelectedRows,
)
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

_REDUCTIONS: dict[str, Reduction] = {
    "drop": DropLeastImportant(),
    "merge": MergeSimilar(),
    "samples": SelectedRows(),
    "preimages": JointPreimages(),
}
#: h_i λ_i/l at t = 0, over 20: from the components of the first rows, and from points.
_STEP_FROM_ROWS, _STEP_FROM_POINTS = 2.0, 7.0
#: Patterns over which the gain stays near its first value.
_HORIZON = 20
#: Rows of an expansion, at least and per component.
_BUDGET, _PER_COMPONENT = 512, 8
#: Share of the budget that an expansion is brought down to, so that it seldom has to be.
_KEPT = 0.75


def check_online(model: Any) -> None:
    """Every constructor argument that does not depend on the data."""
    check_number("n_components", model.n_components, "must be a positive integer",
                 "pass how many components you want", low=1, integer=True)  # fmt: skip
    if is_precomputed(model):
        raise invalid_parameter(
            "kernel",
            model.kernel,
            "a stream needs kernel values of rows still to come",
            "pass rows and a kernel, or use KernelPCA for a kernel matrix",
        )
    check_kernel_parameters(model)
    check_preimage_name(model.preimage, [name for name in PREIMAGE_NAMES if name != "ridge"])
    check_gain(model.gain)
    check_number("forgetting", model.forgetting, "must lie in (0, 1]",
                 "pass 1.0 to forget nothing", low=0, high=1, open_low=True)  # fmt: skip
    if isinstance(model.init, str):
        check_choice("init", model.init, START_NAMES)
    _check_budget(model)
    for flag in ("rayleigh_ritz", "whiten"):
        check_choice(flag, getattr(model, flag), (True, False))
    check_number("n_passes", model.n_passes, "must be a positive integer", "pass 1",
                 low=1, integer=True)  # fmt: skip
    check_running(model)
    check_checkpoint(model)


def _check_budget(model: Any) -> None:
    least = 4 * (int(model.n_components) + 1)
    if model.budget is not None and not is_auto(model.budget):
        check_number(
            "budget", model.budget, f"must be 'auto', None or an integer of at least {least}, "
            "four rows for each component and the mean", "pass 'auto'", low=least, integer=True,
        )  # fmt: skip
    if not isinstance(model.reduction, Reduction):
        check_choice("reduction", model.reduction, tuple(_REDUCTIONS))


def budget_of(model: Any) -> int | None:
    """Rows of the expansion, at most."""
    if is_auto(model.budget):
        return max(_BUDGET, _PER_COMPONENT * int(model.n_components))
    return None if model.budget is None else int(model.budget)


def room_of(model: Any) -> int:
    """Rows that an expansion begins with, at most."""
    budget = budget_of(model)
    return 10**9 if budget is None else int(_KEPT * budget)


def memory_of(model: Any) -> float:
    """Rows that are remembered: the sum of their weights, f² less with every row."""
    lost = 1 - float(model.forgetting) ** 2
    return 1 / lost if lost > 0 else np.inf


def online_settings(model: Any, kernel: Kernel) -> OnlineSettings:
    """Gain, memory and budget."""
    budget, size = budget_of(model), room_of(model)
    reduction = _reduction(model.reduction, kernel)
    return OnlineSettings(
        kernel=kernel,
        gain=_gain(model),
        safety=safety_for(automatic=isinstance(model.gain, str)),
        horizon=_HORIZON,
        memory=memory_of(model),
        budget=budget,
        shrink=lambda expansion, weights: reduction.reduce(expansion, size, weights),
    )


def _reduction(reduction: Any, kernel: Kernel) -> Reduction:
    chosen: Reduction = _REDUCTIONS[reduction] if isinstance(reduction, str) else reduction
    if not chosen.serves(kernel):
        raise invalid_parameter(
            "reduction", reduction, f"does not serve {kernel!r}", "pass 'samples'"
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
    """Where components begin; points are checked now that their width is known."""
    shape = (int(model.n_components), n_features)
    init = check_init(model.init, START_NAMES, shape)
    # At least one step must fit in before the expansion is full.
    return OnlineStart(init, shape[0], seed, max(room_of(model) - shape[0], 1))


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
            raise invalid_parameter(
                "n_components",
                model.n_components,
                f"the stream began with {self.start.n_components}",
                "set it back, or begin anew with fit",
            )
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


def online_stream_from_batch(
    model: Any, batch: IncrementalState, gamma: float, clock: int = 0
) -> OnlineStream:
    """A stream that has learned what the batch has; ``clock`` patterns may have gone before."""
    rows = batch.library
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
    """Components that the batch has no variance for are zero."""
    n, found = len(batch.library), min(batch.n_components, number)
    coefficients = np.zeros((number, n))
    coefficients[:found] = batch.vectors[:found]
    gram = np.zeros((number + 1, number + 1))
    chosen = np.append(np.arange(found), -1)
    gram[np.ix_(chosen, chosen)] = batch.gram[np.ix_(chosen, chosen)]
    variances = np.zeros(number)
    variances[:found] = np.square(batch.singular_values[:found]) / n
    # Inner products are known: no kernel value of the rows has to be computed again.
    first = start_online(settings, batch.library, coefficients, lengths=gram[:-1, :-1])
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

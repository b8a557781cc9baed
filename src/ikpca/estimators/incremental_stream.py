"""Stream state of ``IncrementalKernelPCA``."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ikpca.errors import invalid_parameter
from ikpca.estimators.base import check_preimage
from ikpca.estimators.checkpoint import check_checkpoint
from ikpca.estimators.input_checks import cast_arrays, check_distances
from ikpca.estimators.reporting import warn_of_recovery
from ikpca.estimators.stream_base import DriftSignal, check_drift_parameters
from ikpca.estimators.validation import (
    check_choice,
    check_kernel_parameters,
    check_number,
    check_preimage_name,
    check_runtime_parameters,
    is_auto,
    is_precomputed,
    kernel_from_parameters,
    resolve_gamma,
)
from ikpca.gram import tile_slices
from ikpca.kernels import Floats, Kernel, Linear, Rows
from ikpca.preimages import PREIMAGE_NAMES
from ikpca.reduced_sets import make_reduction
from ikpca.streams import (
    Compression,
    IncrementalSettings,
    IncrementalState,
    UpdateReport,
    join_reports,
    update_step,
)
from ikpca.subspace import Subspace

#: Number of basis rows per component and mean, and the minimum.
_ROWS_PER_VECTOR, _MIN_ROWS = 20, 200
#: Minimum fraction of the basis that is added between two reductions.
_REDUCTION_INTERVAL = 1 / 8
#: Minimum number of additional components; with fewer, truncation loses over 0.1 % of variance.
_MIN_OVERSAMPLES = 8
#: Default and maximum rows per update; the order of its eigenproblem grows with them.
_BATCH, _MAX_BATCH = 200, 1000


@dataclass(frozen=True, eq=False)
class IncrementalStream:
    """State of ``IncrementalKernelPCA`` between batches.

    Parameters
    ----------
    state : IncrementalState
    settings : IncrementalSettings
    gamma : float
        Computed from the first batch.
    seed : int
    batch_size : int
        Rows per update.
    seen, n_batches : int
        Number of rows and batches, including forgotten ones.
    mean_row : ndarray of shape (N,)
        Weighted mean of the rows.
    report : UpdateReport or None
        Report of the last batch.
    signal : DriftSignal
    drift : float
        Drift of the last batch.
    """

    state: IncrementalState
    settings: IncrementalSettings
    gamma: float
    seed: int
    batch_size: int
    seen: int
    n_batches: int
    mean_row: Floats
    report: UpdateReport | None = None
    signal: DriftSignal = field(default_factory=DriftSignal)
    drift: float = 0.0

    @classmethod
    def from_first_batch(cls, model: Any, rows: Rows, seed: int) -> IncrementalStream:
        """Return the stream before the first batch, with the parameters that depend on it."""
        gamma = resolve_gamma(model.gamma, rows, model.kernel, seed)
        kernel = kernel_from_parameters(model, gamma)
        check_preimage(model, kernel)
        settings = incremental_settings(model, kernel, seed)
        state = IncrementalState.empty(kernel, rows, keep_values=settings.compression is not None)
        mean_row = np.zeros(rows.shape[1])
        return cls(state, settings, gamma, seed, _max_batch_size(model), 0, 0, mean_row)

    def unwrap(self) -> IncrementalStream:
        """Return the stream without its kernel and settings, for a file."""
        return replace(
            self, state=replace(self.state, kernel=Linear()), settings=IncrementalSettings()
        )

    def wrap(self, model: Any) -> IncrementalStream:
        """Return an unwrapped stream with the kernel and the settings of its model."""
        kernel = kernel_from_parameters(model, self.gamma)
        check_preimage(model, kernel)
        return replace(self, state=replace(self.state, kernel=kernel)).with_settings(model)

    def with_settings(self, model: Any) -> IncrementalStream:
        """Return the stream with the current parameters; all but the kernel may change."""
        settings, state = incremental_settings(model, self.state.kernel, self.seed), self.state
        if settings.compression is None:
            state = replace(state, values=None)
        return replace(self, state=state, settings=settings, batch_size=_max_batch_size(model))

    def learn(self, model: Any, rows: Rows) -> IncrementalStream:
        """Return the stream after learning from a batch."""
        check_distances(self.state.kernel, rows, self.mean_row if self.seen else None)
        state, mean_row, reports = self.state, self.mean_row, list[UpdateReport]()
        for part in tile_slices(rows.shape[0], self.batch_size):
            state, report = update_step(state, rows[part], self.settings)
            share = (part.stop - part.start) / state.n_samples
            mean_row = (1 - share) * mean_row + share * rows[part].mean(axis=0, dtype=np.float64)
            reports.append(report)
        whole = self._with_last_errors(join_reports(reports))
        warn_of_recovery([whole.recovery])
        # The novelty of the first batch is NaN.
        signal, drift = self.signal.update(
            whole.novelty[np.isfinite(whole.novelty)],
            float(model.drift_threshold),
            float(model.drift_delta),
        )
        updated = replace(
            self,
            state=state,
            seen=self.seen + rows.shape[0],
            n_batches=self.n_batches + 1,
            mean_row=mean_row,
            report=whole,
            signal=signal,
            drift=drift,
        )
        if model.verbose:
            sys.stderr.write(updated.progress_line() + "\n")
        return updated

    def from_state(self, state: IncrementalState) -> IncrementalStream:
        """Return a stream that starts from a batch, compressed if its basis is too large."""
        rows, errors = state.basis, None
        mean_row = rows.mean(axis=0, dtype=np.float64)
        if self.settings.compression is not None:
            state, errors = self.settings.compression.enforce_limit(state, rows.shape[0])
        seen, report = rows.shape[0], UpdateReport(np.zeros(0), errors)
        return replace(
            self,
            state=state,
            seen=seen,
            n_batches=1,
            mean_row=mean_row,
            report=report,
            signal=DriftSignal(),
            drift=0.0,
        )

    def progress_line(self) -> str:
        """Return the progress line of a batch."""
        share = float(np.square(self.state.singular_values[: self.settings.n_components]).sum())
        share /= self.state.total_variance or 1.0
        novelty = 0.0 if self.report is None else float(self.report.novelty.mean())
        return (
            f"batch {self.n_batches}: {self.seen} samples, basis {self.state.basis.shape[0]}, "
            f"explained {share:.4f}, novelty {novelty:.3g}"
        )

    def _with_last_errors(self, report: UpdateReport) -> UpdateReport:
        if report.compression_errors is None and self.report is not None:
            return replace(report, compression_errors=self.report.compression_errors)
        return report


def incremental_settings(model: Any, kernel: Kernel, seed: int) -> IncrementalSettings:
    """Return the settings of the stream; raise an error if parameters are inconsistent."""
    number = None if model.n_components is None else int(model.n_components)
    compression, oversamples = None, 0
    if number is not None:
        oversamples = _oversamples(model, number)
    name = _reduction_name(model)
    if name is not None:
        if number is None:
            raise invalid_parameter(
                "n_components",
                None,
                f"reduction={model.reduction!r} needs an integer",
                "pass an integer, or reduction=None to keep all rows",
            )
        compression = _compression(model, name, kernel, number + oversamples + 1, seed)
    return IncrementalSettings(number, oversamples, float(model.forgetting), compression)


def _reduction_name(model: Any) -> str | None:
    """Return the name of the reduction; None if the basis is not compressed."""
    if not is_auto(model.reduction):
        return model.reduction
    return None if model.n_components is None else "samples"


def _oversamples(model: Any, number: int) -> int:
    if not is_auto(model.n_oversamples):
        return int(model.n_oversamples)
    wanted = max(number // 2, _MIN_OVERSAMPLES)
    if is_auto(model.max_basis_rows) or _reduction_name(model) is None:
        return wanted
    # A small basis supports fewer components.
    return max(0, min(wanted, int(model.max_basis_rows) // 4 - number - 1))


def _compression(model: Any, name: str, kernel: Kernel, n_vectors: int, seed: int) -> Compression:
    limit = _library_size(model, n_vectors)
    if limit < n_vectors:
        raise invalid_parameter(
            "max_basis_rows",
            limit,
            f"must be at least {n_vectors}, the number of components plus the mean",
            f"pass {n_vectors} or more, or reduce n_components or n_oversamples",
        )
    reduction = make_reduction(
        name,
        kernel,
        per_vector=model.preimages_per_component,
        tol=float(model.reduction_tol),
        seed=seed,
    )
    return Compression(reduction, limit, max(1, int(_REDUCTION_INTERVAL * limit)))


def _library_size(model: Any, n_vectors: int) -> int:
    if not is_auto(model.max_basis_rows):
        return int(model.max_basis_rows)
    if not is_auto(model.preimages_per_component):
        return int(model.preimages_per_component) * n_vectors
    return max(_ROWS_PER_VECTOR * n_vectors, _MIN_ROWS)


def fit_batch_size(model: Any) -> int:
    """Return the rows per batch of ``fit``."""
    if model.batch_size is not None:
        return int(model.batch_size)
    wanted = max(_BATCH, 2 * (model.n_components or 0))
    if not is_auto(model.max_basis_rows):
        # A reduction is cubic in the size of the basis: reduce less often.
        wanted = max(wanted, int(model.max_basis_rows) // 4)
    return min(wanted, _MAX_BATCH)


def _max_batch_size(model: Any) -> int:
    return _MAX_BATCH if model.batch_size is None else int(model.batch_size)


def incremental_attributes(model: Any, stream: IncrementalStream) -> dict[str, Any]:
    """Return the fitted attributes of the model by name."""
    state, report = stream.state, stream.report
    number = state.n_components if model.n_components is None else int(model.n_components)
    eigenvalues = _pad(np.square(state.singular_values), number)
    view = _view(state, number)
    errors = None if report is None else report.compression_errors
    return {
        "eigenvalues_": eigenvalues,
        "explained_variance_ratio_": eigenvalues / (state.total_variance or 1.0),
        "n_samples_seen_": stream.seen,
        "n_batches_": stream.n_batches,
        "basis_": view.basis,
        "coefficients_": view.components,
        "mean_coefficients_": view.mean,
        "mean_": stream.mean_row.astype(view.basis.dtype),
        "novelty_": np.zeros(0) if report is None else report.novelty,
        "drift_": stream.drift,
        "drift_detected_": stream.drift >= 1,
        "reduction_error_": None if errors is None else _pad(errors[:-1], number),
        "mean_reduction_error_": None if errors is None else float(errors[-1]),
        "recovery_": "" if report is None else report.recovery,
        "memory_usage_": state.n_bytes,
        "gamma_": stream.gamma,
        "_view": view,
        "_scale": _scale(eigenvalues, state.n_samples, view, whiten=model.whiten),
    }


def _pad(values: Floats, number: int) -> Floats:
    """Return the first ``number`` values, padded with zeros."""
    padded = np.zeros((number, *values.shape[1:]))
    padded[: len(values)] = values[:number]
    return padded


def _view(state: IncrementalState, number: int) -> Subspace:
    """Return the requested components in the dtype of the rows; missing ones are zero."""
    dtype = state.basis.dtype
    vectors, products = (
        np.vstack([_pad(each[:-1], number), each[-1:]]) for each in (state.vectors, state.products)
    )
    gram = vectors @ products.T
    arrays = cast_arrays((vectors, products, (gram + gram.T) / 2), dtype)
    return Subspace(state.kernel, state.basis, *arrays)


def _scale(eigenvalues: Floats, n_samples: float, view: Subspace, *, whiten: bool) -> Floats:
    """Return 1, or 1/standard deviation of each projection; zero without variance."""
    scale = np.ones_like(eigenvalues)
    if whiten:
        spread = np.sqrt(eigenvalues / max(n_samples - 1, 1))
        scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
    return scale.astype(view.basis.dtype)


def check_incremental(model: Any) -> None:
    """Validate the parameters of ``IncrementalKernelPCA``."""
    if is_precomputed(model):
        raise invalid_parameter(
            "kernel",
            model.kernel,
            "a stream needs kernel values of future rows",
            "pass rows and a kernel, or use KernelPCA for a kernel matrix",
        )
    if model.n_components is not None:
        check_number("n_components", model.n_components, "must be a positive integer or None",
                     "pass how many components you want", low=1, integer=True)  # fmt: skip
    check_kernel_parameters(model)
    check_preimage_name(model.preimage, [name for name in PREIMAGE_NAMES if name != "ridge"])
    check_choice("reduction", model.reduction, ("auto", "preimages", "samples", None))
    for name in ("max_basis_rows", "preimages_per_component"):
        if not is_auto(getattr(model, name)):
            check_number(name, getattr(model, name), "must be 'auto' or a positive integer",
                         "pass 'auto'", low=1, integer=True)  # fmt: skip
    if not is_auto(model.n_oversamples):
        check_number("n_oversamples", model.n_oversamples, "must be 'auto' or not negative",
                     "pass 'auto'", low=0, integer=True)  # fmt: skip
    check_number("reduction_tol", model.reduction_tol, "must not be negative", "pass 1e-4",
                 low=0)  # fmt: skip
    if model.batch_size is not None:
        check_number("batch_size", model.batch_size, "must be a positive integer or None",
                     "pass None", low=1, integer=True)  # fmt: skip
    check_number("forgetting", model.forgetting, "must lie in (0, 1]",
                 "pass 1.0 to forget nothing", low=0, high=1, open_low=True)  # fmt: skip
    check_drift_parameters(model)
    check_choice("whiten", model.whiten, (True, False))
    check_runtime_parameters(model)
    check_checkpoint(model)

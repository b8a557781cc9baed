"""Stream state of ``IncrementalKernelPCA``."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ikpca.errors import invalid_parameter
from ikpca.estimators.base import check_preimage
from ikpca.estimators.checkpoint import check_checkpoint
from ikpca.estimators.input_checks import check_distances, in_dtype_of
from ikpca.estimators.reporting import warn_of_recovery
from ikpca.estimators.stream_base import DriftSignal
from ikpca.estimators.validation import (
    check_choice,
    check_kernel_parameters,
    check_number,
    check_preimage_name,
    check_running,
    is_auto,
    is_precomputed,
    kernel_of,
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
from ikpca.subspace import Expansion, Subspace

#: Rows of a library: per vector that it carries, and at least.
_ROWS_PER_VECTOR, _LEAST_ROWS = 20, 200
#: Share of the library that comes between two reductions, at least.
_ROOM = 1 / 8
#: Components beyond those asked for, at least; with fewer, truncation costs over 0.1 % of variance.
_LEAST_OVERSAMPLES = 8


def make_settings(model: Any, kernel: Kernel, seed: int) -> IncrementalSettings:
    """Settings of the stream, or an error where they do not go together."""
    number = None if model.n_components is None else int(model.n_components)
    compression, oversamples = None, 0
    if number is not None:
        oversamples = _oversamples(model, number)
    name = _name(model)
    if name is not None:
        if number is None:
            raise invalid_parameter(
                "n_components",
                None,
                f"compression={model.compression!r} needs a number",
                "pass an integer, or compression=None to keep all rows",
            )
        compression = _compression(model, name, kernel, number + oversamples + 1, seed)
    return IncrementalSettings(number, oversamples, float(model.forgetting), compression)


def _name(model: Any) -> str | None:
    """What a library is reduced to; None: it is not."""
    if not is_auto(model.compression):
        return model.compression
    return None if model.n_components is None else "samples"


def _oversamples(model: Any, number: int) -> int:
    if not is_auto(model.n_oversamples):
        return int(model.n_oversamples)
    wanted = max(number // 2, _LEAST_OVERSAMPLES)
    if is_auto(model.library_size) or _name(model) is None:
        return wanted
    # A small library carries fewer of them.
    return max(0, min(wanted, int(model.library_size) // 4 - number - 1))


def _compression(model: Any, name: str, kernel: Kernel, n_vectors: int, seed: int) -> Compression:
    limit = _library_size(model, n_vectors)
    if limit < n_vectors:
        raise invalid_parameter(
            "library_size",
            limit,
            f"components and mean are {n_vectors} vectors, which need as many rows",
            f"pass {n_vectors} or more, or fewer n_components and n_oversamples",
        )
    reduction = make_reduction(
        name,
        kernel,
        per_vector=model.preimages_per_component,
        tol=float(model.compression_tol),
        seed=seed,
    )
    return Compression(reduction, limit, max(1, int(_ROOM * limit)))


def _library_size(model: Any, n_vectors: int) -> int:
    if not is_auto(model.library_size):
        return int(model.library_size)
    if not is_auto(model.preimages_per_component):
        return int(model.preimages_per_component) * n_vectors
    return max(_ROWS_PER_VECTOR * n_vectors, _LEAST_ROWS)


#: Rows per update in ``fit``, and at most: an update solves a problem of as many rows and columns.
_BATCH, _LARGEST_BATCH = 200, 1000


@dataclass(frozen=True, eq=False)
class IncrementalStream:
    """All that goes on from one batch to the next.

    Parameters
    ----------
    state : State
    settings : Settings
    gamma : float
        As the first batch settled it.
    seed : int
    batch_size : int
        Rows per update.
    seen, n_batches : int
        Rows and batches so far, whatever was forgotten.
    mean_row : ndarray of shape (N,)
        Of the rows, weighted as the samples are.
    report : Report or None
        Of the last batch.
    signal : DriftSignal
    drift : float
        Of the last batch.
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
    def begun(cls, model: Any, rows: Rows, seed: int) -> IncrementalStream:
        """Before the first batch, with all that depends on it settled."""
        gamma = resolve_gamma(model.gamma, rows, model.kernel, seed)
        kernel = kernel_of(model, gamma)
        check_preimage(model, kernel)
        settings = make_settings(model, kernel, seed)
        state = IncrementalState.empty(kernel, rows, keep_values=settings.compression is not None)
        mean_row = np.zeros(rows.shape[1])
        return cls(state, settings, gamma, seed, _largest_batch(model), 0, 0, mean_row)

    def bare(self) -> IncrementalStream:
        """What a file can keep: numbers, and a kernel that stands for any."""
        return replace(
            self, state=replace(self.state, kernel=Linear()), settings=IncrementalSettings()
        )

    def dressed(self, model: Any) -> IncrementalStream:
        """The bare stream of a file with the kernel and the settings of its model."""
        kernel = kernel_of(model, self.gamma)
        check_preimage(model, kernel)
        return replace(self, state=replace(self.state, kernel=kernel)).told(model)

    def told(self, model: Any) -> IncrementalStream:
        """With the parameters of the moment: all but the kernel may change on the way."""
        settings, state = make_settings(model, self.state.kernel, self.seed), self.state
        if settings.compression is None:
            state = replace(state, values=None)
        return replace(self, state=state, settings=settings, batch_size=_largest_batch(model))

    def after(self, rows: Rows, verbose: int = 0) -> IncrementalStream:
        """Having learned from a batch."""
        check_distances(self.state.kernel, rows, self.mean_row if self.seen else None)
        state, mean_row, reports = self.state, self.mean_row, list[UpdateReport]()
        for part in tile_slices(rows.shape[0], self.batch_size):
            state, report = update_step(state, rows[part], self.settings)
            share = (part.stop - part.start) / state.n_samples
            mean_row = (1 - share) * mean_row + share * rows[part].mean(axis=0, dtype=np.float64)
            reports.append(report)
        whole = self._with_last_errors(join_reports(reports))
        warn_of_recovery([whole.recovery])
        # Nothing is known before the first batch, and nothing can drift from it.
        signal, drift = self.signal.after(whole.novelty[np.isfinite(whole.novelty)])
        grown = replace(
            self,
            state=state,
            seen=self.seen + rows.shape[0],
            n_batches=self.n_batches + 1,
            mean_row=mean_row,
            report=whole,
            signal=signal,
            drift=drift,
        )
        if verbose:
            sys.stderr.write(grown.line() + "\n")
        return grown

    def from_state(self, state: IncrementalState) -> IncrementalStream:
        """Going on from a batch of which the library has all rows; compressed if it is too large.

        Nothing is novel about it, and nothing is left of what was before.
        """
        rows, errors = state.library, None
        mean_row = rows.mean(axis=0, dtype=np.float64)
        if self.settings.compression is not None:
            state, errors = self.settings.compression.after_batch(state, rows.shape[0])
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

    def line(self) -> str:
        """A batch for readers."""
        share = float(np.square(self.state.singular_values[: self.settings.n_components]).sum())
        share /= self.state.total_variance or 1.0
        novelty = 0.0 if self.report is None else float(self.report.novelty.mean())
        return (
            f"batch {self.n_batches}: {self.seen} samples, library {self.state.library.shape[0]}, "
            f"explained {share:.4f}, novelty {novelty:.3g}"
        )

    def _with_last_errors(self, report: UpdateReport) -> UpdateReport:
        if report.compression_errors is None and self.report is not None:
            return replace(report, compression_errors=self.report.compression_errors)
        return report


def first_batch_size(model: Any) -> int:
    """Rows per batch of ``fit``."""
    if model.batch_size is not None:
        return int(model.batch_size)
    wanted = max(_BATCH, 2 * (model.n_components or 0))
    if not is_auto(model.library_size):
        # A reduction costs the cube of a large library: let it serve more rows.
        wanted = max(wanted, int(model.library_size) // 4)
    return min(wanted, _LARGEST_BATCH)


def _largest_batch(model: Any) -> int:
    return _LARGEST_BATCH if model.batch_size is None else int(model.batch_size)


def stream_attributes(model: Any, stream: IncrementalStream) -> dict[str, Any]:
    """What the model has after a batch, by name."""
    state, report = stream.state, stream.report
    number = state.n_components if model.n_components is None else int(model.n_components)
    eigenvalues = _padded(np.square(state.singular_values), number)
    view = _view(state, number)
    errors = None if report is None else report.compression_errors
    return {
        "eigenvalues_": eigenvalues,
        "explained_variance_ratio_": eigenvalues / (state.total_variance or 1.0),
        "n_samples_seen_": stream.seen,
        "n_batches_": stream.n_batches,
        "library_": view.library,
        "coefficients_": view.components,
        "mean_coefficients_": view.mean,
        "mean_": stream.mean_row.astype(view.library.dtype),
        "novelty_": np.zeros(0) if report is None else report.novelty,
        "drift_": stream.drift,
        "drift_detected_": stream.drift >= 1,
        "compression_error_": None if errors is None else _padded(errors[:-1], number),
        "mean_compression_error_": None if errors is None else float(errors[-1]),
        "recovery_": "" if report is None else report.recovery,
        "memory_usage_": state.n_bytes,
        "gamma_": stream.gamma,
        "_view": view,
        "_scale": _scale(eigenvalues, state.n_samples, view, whiten=model.whiten),
    }


def _padded(values: Floats, number: int) -> Floats:
    """The first ones, and zeros where there are fewer."""
    padded = np.zeros((number, *values.shape[1:]))
    padded[: len(values)] = values[:number]
    return padded


def _view(state: IncrementalState, number: int) -> Subspace:
    """Components that are asked for, in the precision of the rows; zero where there are none."""
    dtype = state.library.dtype
    vectors, products = (
        np.vstack([_padded(each[:-1], number), each[-1:]])
        for each in (state.vectors, state.products)
    )
    gram = vectors @ products.T
    arrays = in_dtype_of((vectors, products, (gram + gram.T) / 2), dtype)
    return Subspace(Expansion(state.kernel, state.library, *arrays))


def _scale(eigenvalues: Floats, n_samples: float, view: Subspace, *, whiten: bool) -> Floats:
    """1, or 1/standard deviation of each projection; zero for a component without variance."""
    scale = np.ones_like(eigenvalues)
    if whiten:
        spread = np.sqrt(eigenvalues / max(n_samples - 1, 1))
        scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
    return scale.astype(view.library.dtype)


def check_stream(model: Any) -> None:
    """Every constructor argument, before any work."""
    if is_precomputed(model):
        raise invalid_parameter(
            "kernel",
            model.kernel,
            "a stream needs kernel values of rows still to come",
            "pass rows and a kernel, or use KernelPCA for a kernel matrix",
        )
    if model.n_components is not None:
        check_number("n_components", model.n_components, "must be a positive integer or None",
                     "pass how many components you want", low=1, integer=True)  # fmt: skip
    check_kernel_parameters(model)
    check_preimage_name(model.preimage, [name for name in PREIMAGE_NAMES if name != "ridge"])
    check_choice("compression", model.compression, ("auto", "preimages", "samples", None))
    for name in ("library_size", "preimages_per_component"):
        if not is_auto(getattr(model, name)):
            check_number(name, getattr(model, name), "must be 'auto' or a positive integer",
                         "pass 'auto'", low=1, integer=True)  # fmt: skip
    if not is_auto(model.n_oversamples):
        check_number("n_oversamples", model.n_oversamples, "must be 'auto' or not negative",
                     "pass 'auto'", low=0, integer=True)  # fmt: skip
    check_number("compression_tol", model.compression_tol, "must not be negative", "pass 1e-4",
                 low=0)  # fmt: skip
    if model.batch_size is not None:
        check_number("batch_size", model.batch_size, "must be a positive integer or None",
                     "pass None", low=1, integer=True)  # fmt: skip
    check_number("forgetting", model.forgetting, "must lie in (0, 1]",
                 "pass 1.0 to forget nothing", low=0, high=1, open_low=True)  # fmt: skip
    check_choice("whiten", model.whiten, (True, False))
    check_running(model)
    check_checkpoint(model)

"""Stream state of ``IncrementalKernelPCA``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ikpca.estimators.stream_base import DriftSignal
from ikpca.gram import tile_slices
from ikpca.kernels import Floats, Rows
from ikpca.solvers.problem import check_exponents
from ikpca.streams import (
    IncrementalSettings,
    IncrementalState,
    UpdateReport,
    join_reports,
    update_step,
)


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

    def with_settings(self, settings: IncrementalSettings, batch_size: int) -> IncrementalStream:
        """Return the stream with other settings."""
        state = self.state
        if settings.compression is None:
            state = replace(state, values=None)
        return replace(self, state=state, settings=settings, batch_size=batch_size)

    def learn(self, rows: Rows, drift_threshold: float, drift_delta: float) -> IncrementalStream:
        """Return the stream after learning from a batch."""
        check_exponents(self.state.kernel, rows, self.mean_row if self.seen else None)
        state, mean_row, reports = self.state, self.mean_row, list[UpdateReport]()
        for part in tile_slices(rows.shape[0], self.batch_size):
            state, report = update_step(state, rows[part], self.settings)
            share = (part.stop - part.start) / state.n_samples
            mean_row = (1 - share) * mean_row + share * rows[part].mean(axis=0, dtype=np.float64)
            reports.append(report)
        whole = self._with_last_errors(join_reports(reports))
        # The novelty of the first batch is NaN.
        known = whole.novelty[np.isfinite(whole.novelty)]
        signal, drift = self.signal.update(known, float(drift_threshold), float(drift_delta))
        return replace(
            self,
            state=state,
            seen=self.seen + rows.shape[0],
            n_batches=self.n_batches + 1,
            mean_row=mean_row,
            report=whole,
            signal=signal,
            drift=drift,
        )

    def from_state(self, state: IncrementalState) -> IncrementalStream:
        """Return a stream that starts from a batch, compressed if its basis is too large."""
        rows, errors = state.basis, None
        mean_row = rows.mean(axis=0, dtype=np.float64)
        if self.settings.compression is not None:
            state, errors = self.settings.compression.enforce_limit(state, rows.shape[0])
        seen, report = round(state.n_samples), UpdateReport(np.zeros(0), errors)
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

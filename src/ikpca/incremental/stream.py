"""One step of a stream: novelty, forgetting, update, truncation, compression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ikpca.incremental.compression import Compression
from ikpca.incremental.guard import kept_orthonormal
from ikpca.incremental.meeting import meet
from ikpca.incremental.state import State
from ikpca.incremental.update import absorb
from ikpca.kernels import Floats, Rows

__all__ = ["Report", "Settings", "joined", "step"]


@dataclass(frozen=True)
class Settings:
    """How a stream is learned from.

    Parameters
    ----------
    n_components : int or None
        Components that are asked for; None keeps all of the numerical rank.
    n_oversamples : int
        Components kept beyond them: what a batch truncates cannot come back with a later one.
    forgetting : float
        f in (0, 1]: before each batch, Σ ← fΣ and n ← f²n.
    compression : Compression or None
        None: exact, and the library grows with the stream.
    move_mean : bool
        False for the ablation of :func:`update`.
    """

    n_components: int | None = None
    n_oversamples: int = 0
    forgetting: float = 1.0
    compression: Compression | None = None
    move_mean: bool = True

    @property
    def n_kept(self) -> int | None:
        """Components that go on from batch to batch."""
        return None if self.n_components is None else self.n_components + self.n_oversamples


@dataclass(frozen=True, eq=False)
class Report:
    """What a reader may want to know of a step.

    Parameters
    ----------
    novelty : ndarray of shape (c,)
        ‖Φ(x) − µ − P(Φ(x) − µ)‖² of the batch, before it was learned from.
    compression_errors : ndarray of shape (r + 1,) or None
        Relative errors of the components and the mean, where the library was compressed.
    recovery : str
        Empty, or what gave way and what was done about it.
    """

    novelty: Floats
    compression_errors: Floats | None = None
    recovery: str = ""


def step(state: State, rows: Rows, settings: Settings) -> tuple[State, Report]:
    """Learn from a batch of rows."""
    visible = settings.n_components
    meeting = meet(state.forget(settings.forgetting), rows)
    novelty = meeting.novelty(state.n_components if visible is None else visible)
    state = absorb(meeting, move_mean=settings.move_mean)
    if settings.n_kept is not None:
        state = state.truncate(settings.n_kept)
    recovery = ""
    # The ablation without it shows what becomes of a stream that nobody mends.
    if settings.compression is None or settings.compression.orthonormal:
        state, recovery = kept_orthonormal(state)
    if settings.compression is None:
        return state, Report(novelty, recovery=recovery)
    state, errors = settings.compression.after_batch(state, rows.shape[0])
    return state, Report(novelty, errors, recovery)


def joined(reports: list[Report]) -> Report:
    """The parts of one batch as one: all novelties, and the last errors."""
    errors = [each.compression_errors for each in reports if each.compression_errors is not None]
    novelty = np.concatenate([each.novelty for each in reports])
    recoveries = [each.recovery for each in reports if each.recovery]
    return Report(novelty, errors[-1] if errors else None, recoveries[-1] if recoveries else "")

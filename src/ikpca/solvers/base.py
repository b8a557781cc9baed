"""Run loop of the iterative solvers: pass records, observers, checkpoints, interrupts."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from enum import Enum
from types import FrameType
from typing import Any, Generic, Literal, Protocol, TextIO, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

State = TypeVar("State")
State_contra = TypeVar("State_contra", contravariant=True)
Report = TypeVar("Report")
Report_contra = TypeVar("Report_contra", contravariant=True)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Outcome(Enum):
    """Reason why a fit ended; the value is a sentence for the user.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca import KernelPCA
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> KernelPCA(2, kernel="rbf", eigen_solver="dense").fit(X).outcome_.value
    'solved directly'
    """

    CONVERGED = "the residual is within tol"
    PRECISE = "the residual has reached the rounding error of the arithmetic"
    SETTLED = "the solution changed by no more than change_tol in the last pass"
    PASS_LIMIT = "max_iter passes are done; more passes or another solver come closer"
    STOPPED = "an observer requested a stop"
    INTERRUPTED = "interrupted; the result of the last finished pass is kept"
    DIVERGED = "no gain small enough was found; pass gain='auto' or check the scale of the kernel"
    EXACT = "solved directly"


@dataclass(frozen=True)
class PassRecord:
    """One pass over the data, an entry of ``history_``.

    Parameters
    ----------
    number : int
        Counts from 1.
    seconds : float
        Duration of this pass, without observers.
    eigenvalues, residuals, gains : ndarray of shape (r,)
        λ of K', ‖K'v − λv‖/λ₁, and the gains at the end of the pass.
    entries : int
        Entries of K evaluated since the start of the fit.
    change : float
        Squared distance in feature space between the components before and after the pass.
    note : str
        Divergence that was detected and the action taken; empty if there was none.
    recovery : str
        Numerical problem that was corrected without affecting the result; empty if there was none.
    orthonormality_defect, excess_error : float
        The largest entry of AK'Aᵀ − I, and an estimate of E/E_min − 1; NaN if not computed.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca import KernelPCA
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = KernelPCA(2, kernel="rbf", eigen_solver="kha/et", max_iter=5, random_state=0).fit(X)
    >>> last = model.history_[-1]
    >>> last.number, last.residuals.shape
    (5, (2,))
    """

    number: int
    seconds: float
    eigenvalues: NDArray[np.floating[Any]]
    residuals: NDArray[np.floating[Any]]
    gains: NDArray[np.floating[Any]]
    entries: int
    change: float
    note: str = ""
    orthonormality_defect: float = np.nan
    excess_error: float = np.nan
    recovery: str = ""

    @property
    def eigenvalue_bounds(self) -> NDArray[np.floating[Any]]:
        """Distance from each λ within which an eigenvalue of K' lies."""
        return self.residuals * np.abs(self.eigenvalues).max(initial=0.0)


@dataclass(frozen=True)
class Clock:
    """Time of the gains; ticks per pattern, or per pass (Günter 2006, "every l iterations")."""

    n_samples: int
    tick: Literal["pattern", "pass"] = "pattern"

    def times(self, seen: int, n_steps: int) -> NDArray[np.floating[Any]]:
        """Return t before each of the next ``n_steps`` patterns, after ``seen`` of them.

        Examples
        --------
        >>> Clock(4, "pattern").times(5, 3), Clock(4, "pass").times(5, 3)
        (array([5., 6., 7.]), array([4., 4., 4.]))
        """
        if self.tick == "pass":
            return np.full(n_steps, float(seen // self.n_samples * self.n_samples))
        return np.arange(seen, seen + n_steps, dtype=np.float64)


class Observer(Protocol[State_contra, Report_contra]):
    """Callback after every step; an outcome other than None ends the run."""

    def on_step_end(self, state: State_contra, report: Report_contra) -> Outcome | None:
        """Process a finished step."""


@runtime_checkable
class ResumableObserver(Protocol):
    """Observer whose decisions depend on earlier steps, also on those before a resume."""

    def replay(self, reports: Sequence[Any]) -> None:
        """Process the reports of the steps before the resume."""


@dataclass(frozen=True)
class StopAtResidual:
    """Stopping rule: every relative residual is within ``tol``."""

    tol: float

    def on_step_end(self, state: object, report: PassRecord) -> Outcome | None:
        """Compare the largest residual."""
        small = float(report.residuals.max(initial=0.0)) <= self.tol
        return Outcome.CONVERGED if small else None


class StopAtRounding:
    """Stopping rule: two passes did not halve a small residual."""

    def __init__(self) -> None:
        self._best = np.inf
        self._idle = 0

    def on_step_end(self, state: object, report: PassRecord) -> Outcome | None:
        """Compare with the smallest residual so far."""
        residual = float(report.residuals.max(initial=0.0))
        improved = residual <= self._best / 2
        self._best = min(self._best, residual)
        small = self._best <= np.sqrt(np.finfo(report.eigenvalues.dtype).eps)
        self._idle = self._idle + 1 if small and not improved else 0
        return Outcome.PRECISE if self._idle >= 2 else None

    def replay(self, reports: Sequence[PassRecord]) -> None:
        """Count the passes before an interruption."""
        for report in reports:
            self.on_step_end(None, report)


@dataclass(frozen=True)
class StopAtChange:
    """Stopping rule of Kim 2003: two consecutive solutions are closer than a threshold."""

    tol: float

    def on_step_end(self, state: object, report: PassRecord) -> Outcome | None:
        """Compare the change of the last pass, unless that pass was undone."""
        settled = report.change <= self.tol and not report.note
        return Outcome.SETTLED if settled else None


@dataclass(frozen=True)
class ProgressLines:
    """Observer of ``verbose``: writes one line per pass."""

    name: str
    max_steps: int
    stream: TextIO | None = None

    def on_step_end(self, state: object, report: PassRecord) -> Outcome | None:
        """Write the line."""
        residual = float(report.residuals.max(initial=0.0))
        line = (
            f"{self.name} pass {report.number}/{self.max_steps}: residual {residual:.2e}, "
            f"eigenvalues within {report.eigenvalue_bounds.max(initial=0.0):.1e}, orthonormal to "
            f"{report.orthonormality_defect:.1e}, excess error about {report.excess_error:.1e}, "
            f"change {report.change:.2e}, {report.seconds:.3f} s"
        )
        stream = sys.stderr if self.stream is None else self.stream
        remarks = "; ".join(part for part in (report.note, report.recovery) if part)
        stream.write(line + (f" ({remarks})" if remarks else "") + "\n")
        return None


@dataclass(frozen=True, eq=False)
class SavedRun:
    """Contents of a checkpoint.

    Parameters
    ----------
    progress : object
        Data of the solver; resuming from them is bit-exact.
    reports : list
        One per finished step.
    outcome : Outcome or None
        Outcome of a run that had ended; None for a run that can be continued.
    """

    progress: Any
    reports: list[Any]
    outcome: Outcome | None = None


class CheckpointProtocol(Protocol):
    """Storage of the progress of a run, and of an earlier run to resume."""

    def restore(self) -> SavedRun | None:
        """Return the earlier run; None if there is none."""

    def set_snapshot(self, snapshot: Callable[[Any], Any]) -> None:
        """Set the function that turns a state into the progress to store."""

    def record(self, state: Any, report: Any, outcome: Outcome | None) -> None:
        """Record a finished step, and the outcome if the run ends with it."""


class _NoCheckpoint:
    """Checkpoint that stores nothing."""

    def restore(self) -> SavedRun | None:
        """Return None."""
        return None

    def set_snapshot(self, snapshot: Callable[[Any], Any]) -> None:
        """Do nothing."""

    def record(self, state: Any, report: Any, outcome: Outcome | None) -> None:
        """Do nothing."""


NO_CHECKPOINT: CheckpointProtocol = _NoCheckpoint()


@dataclass(frozen=True)
class Solution(Generic[State, Report]):
    """Result of a run: last state, outcome, and a report per step."""

    state: State
    outcome: Outcome
    reports: list[Report]


def run_passes(
    step: Callable[[State], tuple[State, Report, Outcome | None]],
    state: State,
    *,
    max_steps: int,
    observers: Sequence[Observer[Any, Any]] = (),
    checkpoint: CheckpointProtocol = NO_CHECKPOINT,
) -> Solution[State, Report]:
    """Repeat a step until it or an observer returns an outcome, or ``max_steps`` are done.

    Steps of a restored run count as done, and a run that had ended is not repeated.

    An interrupt ends the run with the result of the last finished step. Signals are handled only
    during a step, which must leave its data unchanged when interrupted; so state, reports and
    checkpoint always agree. The caller re-raises.
    """
    with deferred_signals() as signals:
        solution: Solution[State, Report] = _run_deferred(
            step, state, max_steps, observers, checkpoint
        )
        try:
            # Handle signals that arrived after the last step.
            with signals.handled():
                return solution
        except KeyboardInterrupt:
            return replace(solution, outcome=Outcome.INTERRUPTED)


def _run_deferred(
    step: Callable[[State], tuple[State, Report, Outcome | None]],
    state: State,
    max_steps: int,
    observers: Sequence[Observer[Any, Any]],
    checkpoint: CheckpointProtocol,
) -> Solution[State, Report]:
    saved = checkpoint.restore()
    reports: list[Report] = [] if saved is None else list(saved.reports)
    if saved is not None and saved.outcome is not None:
        return Solution(state, saved.outcome, reports)
    for observer in observers:
        if isinstance(observer, ResumableObserver):
            observer.replay(reports)
    try:
        while len(reports) < max_steps:
            state, report, outcome = step(state)
            reports.append(report)
            try:
                # Every observer is called after every step, also after the last one.
                outcomes = [
                    outcome,
                    *(observer.on_step_end(state, report) for observer in observers),
                ]
            except KeyboardInterrupt:
                # The step is finished although an observer was interrupted.
                checkpoint.record(state, report, outcome)
                raise
            final = next((each for each in outcomes if each is not None), None)
            checkpoint.record(state, report, final)
            if final is not None:
                return Solution(state, final, reports)
    except KeyboardInterrupt:
        return Solution(state, Outcome.INTERRUPTED, reports)
    return Solution(state, Outcome.PASS_LIMIT, reports)


class DeferredSignals:
    """SIGINT and SIGTERM, deferred except where they may be handled.

    The previous handlers are called. A signal without a Python handler is not deferred.
    """

    def __init__(self) -> None:
        self._enabled = False
        self._pending: list[int] = []
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def install(self) -> None:
        """Start deferring."""
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                self._handlers[number] = handler
                signal.signal(number, self._receive)

    def uninstall(self) -> None:
        """Restore the previous handlers."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handle pending signals, and those that arrive within the context."""
        self._enabled = True
        try:
            while self._pending:
                number = self._pending.pop()
                self._handlers[number](number, None)
            yield
        finally:
            self._enabled = False

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._enabled:
            self._handlers[number](number, frame)
        else:
            self._pending.append(number)


_deferred: list[DeferredSignals] = []


@contextmanager
def deferred_signals() -> Iterator[DeferredSignals]:
    """Defer signals outside of :func:`interruptible`; has an effect in the main thread only."""
    signals = DeferredSignals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    signals.install()
    _deferred.append(signals)
    try:
        yield signals
    finally:
        _deferred.remove(signals)
        signals.uninstall()


@contextmanager
def interruptible() -> Iterator[None]:
    """Handle deferred signals in a section that can be interrupted without side effects."""
    deferred = bool(_deferred) and threading.current_thread() is threading.main_thread()
    with _deferred[-1].handled() if deferred else nullcontext():
        try:
            yield
        except SystemError as error:
            cause = _root_cause(error)
            if cause is None or isinstance(cause, Exception):
                raise
            raise cause from None


def _root_cause(error: SystemError) -> BaseException | None:
    """Return the exception of a signal handler, which compiled code wraps in SystemErrors."""
    cause = error.__cause__
    return _root_cause(cause) if isinstance(cause, SystemError) else cause

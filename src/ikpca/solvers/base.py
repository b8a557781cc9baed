"""Run loop of the iterative solvers: pass records, observers, outcomes, interrupts."""

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


@dataclass(frozen=True)
class Clock:
    """Ticks at every pattern, or once per pass as in Günter 2006 ("every l iterations")."""

    n_samples: int
    tick: Literal["pattern", "pass"] = "pattern"

    def times(self, seen: int, n_steps: int) -> NDArray[np.floating[Any]]:
        """T before each of the next ``n_steps`` patterns, after ``seen`` of them.

        Examples
        --------
        >>> Clock(4, "pattern").times(5, 3), Clock(4, "pass").times(5, 3)
        (array([5., 6., 7.]), array([4., 4., 4.]))
        """
        if self.tick == "pass":
            return np.full(n_steps, float(seen // self.n_samples * self.n_samples))
        return np.arange(seen, seen + n_steps, dtype=np.float64)


class Outcome(Enum):
    """How a fit ended; the value is a sentence for the reader.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca import KernelPCA
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> KernelPCA(2, kernel="rbf", eigen_solver="dense").fit(X).outcome_.value
    'solved directly'
    """

    CONVERGED = "the residual is within tol"
    PRECISE = "the residual has reached the rounding of the arithmetic"
    SETTLED = "the solution changed by no more than change_tol in the last pass"
    PASS_LIMIT = "max_iter passes are done; more passes or another solver come closer"
    STOPPED = "an observer asked to stop"
    INTERRUPTED = "interrupted; the last finished pass is kept"
    DIVERGED = "no gain small enough was found; pass gain='auto' or check the scale of the kernel"
    EXACT = "solved directly"


@dataclass(frozen=True, eq=False)
class SavedRun:
    """What was remembered.

    Parameters
    ----------
    progress : object
        The solver's own description of where it was; going on from it gives the same bits.
    reports : list
        One per finished step.
    outcome : Outcome or None
        How the run had ended; None where it was cut short or may simply go on.
    """

    progress: Any
    reports: list[Any]
    outcome: Outcome | None = None


class CheckpointProtocol(Protocol):
    """Told of every step of a run, and asked, by another run, where it was."""

    def recall(self) -> SavedRun | None:
        """Where an earlier run was; None to begin at the beginning."""

    def describe_with(self, describe: Callable[[Any], Any]) -> None:
        """Hear how a state is turned into all that going on from it takes."""

    def keep(self, state: Any, report: Any, outcome: Outcome | None) -> None:
        """Remember a finished step, and how the run ends with it if it does."""


class _NoCheckpoint:
    """Remembers nothing."""

    def recall(self) -> SavedRun | None:
        """Begin at the beginning."""
        return None

    def describe_with(self, describe: Callable[[Any], Any]) -> None:
        """Not interested."""

    def keep(self, state: Any, report: Any, outcome: Outcome | None) -> None:
        """Not interested either."""


NO_CHECKPOINT: CheckpointProtocol = _NoCheckpoint()


_NUMBERS = (signal.SIGINT, signal.SIGTERM)


class DeferredSignals:
    """SIGINT and SIGTERM, kept waiting but for stretches in which they may be answered.

    Handlers are those that were there before; a signal without one, which ends the process, is
    left alone.
    """

    def __init__(self) -> None:
        self._open = False
        self._waiting: list[int] = []
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def hold(self) -> None:
        """Let them wait from now on."""
        for number in _NUMBERS:
            handler = signal.getsignal(number)
            if callable(handler):
                self._handlers[number] = handler
                signal.signal(number, self._answer)

    def release(self) -> None:
        """As it was before."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    @contextmanager
    def answered(self) -> Iterator[None]:
        """Within it signals are answered, first of all one that has been waiting."""
        self._open = True
        try:
            while self._waiting:
                number = self._waiting.pop()
                self._handlers[number](number, None)
            yield
        finally:
            self._open = False

    def _answer(self, number: int, frame: FrameType | None) -> None:
        if self._open:
            self._handlers[number](number, frame)
        else:
            self._waiting.append(number)


_deferred: list[DeferredSignals] = []


@contextmanager
def deferred_signals() -> Iterator[DeferredSignals]:
    """Signals wait, outside of :func:`interruptible`; only the main thread ever hears of any."""
    signals = DeferredSignals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    signals.hold()
    _deferred.append(signals)
    try:
        yield signals
    finally:
        _deferred.remove(signals)
        signals.release()


@contextmanager
def interruptible() -> Iterator[None]:
    """A stretch of work that leaves no trace when broken off; signals that wait are answered."""
    waiting = bool(_deferred) and threading.current_thread() is threading.main_thread()
    with _deferred[-1].answered() if waiting else nullcontext():
        try:
            yield
        except SystemError as error:
            cause = _beneath(error)
            if cause is None or isinstance(cause, Exception):
                raise
            raise cause from None


def _beneath(error: SystemError) -> BaseException | None:
    """What a handler raised: compiled code that was just being called wraps it in SystemErrors."""
    cause = error.__cause__
    return _beneath(cause) if isinstance(cause, SystemError) else cause


@dataclass(frozen=True)
class PassRecord:
    """One pass over the data, as ``history_`` keeps it.

    Parameters
    ----------
    number : int
        Counts from 1.
    seconds : float
        Spent in this pass, observers excluded.
    eigenvalues, residuals, gains : ndarray of shape (r,)
        λ of K', ‖K'v − λv‖/λ₁, and the gains at the end of the pass.
    entries : int
        Entries of K evaluated since the start of the fit.
    change : float
        Squared distance in feature space between the components before and after the pass.
    note : str
        Empty, or what went wrong and what was done about it.
    recovery : str
        Empty, or what gave way without harm to the result, such as memory for a tile.
    orthonormality_defect, excess_error : float
        The largest entry of AK'Aᵀ − I, and an estimate of E/E_min − 1; NaN where nobody looked.

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
        """An eigenvalue of K' lies within this distance of each λ."""
        return self.residuals * np.abs(self.eigenvalues).max(initial=0.0)


@dataclass(frozen=True)
class StopAtResidual:
    """Stops when every relative residual is within ``tol``."""

    tol: float

    def see(self, state: object, report: PassRecord) -> Outcome | None:
        """Compare the largest residual."""
        small = float(report.residuals.max(initial=0.0)) <= self.tol
        return Outcome.CONVERGED if small else None


class StopAtRounding:
    """Stops a fast solver that no longer gains: two passes without halving a small residual."""

    def __init__(self) -> None:
        self._best = np.inf
        self._idle = 0

    def see(self, state: object, report: PassRecord) -> Outcome | None:
        """Compare with the best residual so far."""
        residual = float(report.residuals.max(initial=0.0))
        gained = residual <= self._best / 2
        self._best = min(self._best, residual)
        small = self._best <= np.sqrt(np.finfo(report.eigenvalues.dtype).eps)
        self._idle = self._idle + 1 if small and not gained else 0
        return Outcome.PRECISE if self._idle >= 2 else None

    def remember(self, reports: Sequence[PassRecord]) -> None:
        """Passes before an interruption count."""
        for report in reports:
            self.see(None, report)


@dataclass(frozen=True)
class StopAtChange:
    """Kim 2003: stops when two consecutive solutions are closer than a threshold."""

    tol: float

    def see(self, state: object, report: PassRecord) -> Outcome | None:
        """Compare the change of the last pass; a pass that was undone proves nothing."""
        settled = report.change <= self.tol and not report.note
        return Outcome.SETTLED if settled else None


@dataclass(frozen=True)
class ProgressLines:
    """Writes a line per pass; what ``verbose`` switches on."""

    name: str
    max_steps: int
    stream: TextIO | None = None

    def see(self, state: object, report: PassRecord) -> Outcome | None:
        """Write the line."""
        residual = float(report.residuals.max(initial=0.0))
        line = (
            f"{self.name} pass {report.number}/{self.max_steps}: residual {residual:.2e}, "
            f"eigenvalues within {report.eigenvalue_bounds.max(initial=0.0):.1e}, orthonormal to "
            f"{report.orthonormality_defect:.1e}, excess error about {report.excess_error:.1e}, "
            f"change {report.change:.2e}, {report.seconds:.3f} s"
        )
        stream = sys.stderr if self.stream is None else self.stream
        told = "; ".join(part for part in (report.note, report.recovery) if part)
        stream.write(line + (f" ({told})" if told else "") + "\n")
        return None


State = TypeVar("State")
State_contra = TypeVar("State_contra", contravariant=True)
Report = TypeVar("Report")
Report_contra = TypeVar("Report_contra", contravariant=True)


class Observer(Protocol[State_contra, Report_contra]):
    """Sees every finished step; a non-empty answer ends the run with that outcome."""

    def see(self, state: State_contra, report: Report_contra) -> Outcome | None:
        """Look at a finished step."""


@runtime_checkable
class ResumableObserver(Protocol):
    """An observer to whom earlier steps matter, also those of a run that this one goes on from."""

    def remember(self, reports: Sequence[Any]) -> None:
        """Hear of steps that were done before."""


@dataclass(frozen=True)
class Solution(Generic[State, Report]):
    """The last state, how the run ended, and a report per step."""

    state: State
    outcome: Outcome
    reports: list[Report]


def run_passes(
    step: Callable[[State], tuple[State, Report, Outcome | None]],
    state: State,
    *,
    max_steps: int,
    observers: Sequence[Observer[Any, Any]] = (),
    keeper: CheckpointProtocol = NO_CHECKPOINT,
) -> Solution[State, Report]:
    """Step until an observer or the step itself names an outcome, or ``max_steps`` are done.

    Steps that the keeper recalls count as done, and a run that had ended is not begun again.

    An interrupt ends the run with what the last finished step left. It is answered only while a
    step works, which sees to it that an unfinished one leaves no trace: between two steps state,
    reports and keeper always agree. The caller re-raises.
    """
    with deferred_signals() as signals:
        solution: Solution[State, Report] = _run_deferred(step, state, max_steps, observers, keeper)
        try:
            # What came while the last step was looked at.
            with signals.answered():
                return solution
        except KeyboardInterrupt:
            return replace(solution, outcome=Outcome.INTERRUPTED)


def _run_deferred(
    step: Callable[[State], tuple[State, Report, Outcome | None]],
    state: State,
    max_steps: int,
    observers: Sequence[Observer[Any, Any]],
    keeper: CheckpointProtocol,
) -> Solution[State, Report]:
    kept = keeper.recall()
    reports: list[Report] = [] if kept is None else list(kept.reports)
    if kept is not None and kept.outcome is not None:
        return Solution(state, kept.outcome, reports)
    for observer in observers:
        if isinstance(observer, ResumableObserver):
            observer.remember(reports)
    try:
        while len(reports) < max_steps:
            state, report, outcome = step(state)
            reports.append(report)
            try:
                # Every observer sees every step, also the last one.
                answers = [outcome, *(observer.see(state, report) for observer in observers)]
            except KeyboardInterrupt:
                # The step is done, whoever did not want to look at it.
                keeper.keep(state, report, outcome)
                raise
            ending = next((answer for answer in answers if answer is not None), None)
            keeper.keep(state, report, ending)
            if ending is not None:
                return Solution(state, ending, reports)
    except KeyboardInterrupt:
        return Solution(state, Outcome.INTERRUPTED, reports)
    return Solution(state, Outcome.PASS_LIMIT, reports)

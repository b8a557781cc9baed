"""Interface of the eigensolvers, their result, and the loop over passes of iterative solvers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ikpca.gram import CenteredGram
from ikpca.gram.centering import Centering
from ikpca.kernels import Floats, Rows
from ikpca.solvers.problem import Problem
from ikpca.solvers.rayleigh_ritz import (
    Certificate,
    certify,
    deterministic_signs,
    nonnegative_eigenvalues,
    relative_residuals,
)

State = TypeVar("State")
#: Residuals of exact eigenpairs after rounding, in units of machine epsilon.
_ROUNDING = 8


class Outcome(Enum):
    """Reason why a fit ended; the value is a sentence for the user.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca import KernelPCA
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> KernelPCA(2, kernel="rbf", eigen_solver="dense").fit(X).outcome_.value
    'exact, by an eigendecomposition'
    """

    CONVERGED = "the residual is within tol"
    STALLED = "the residual has reached the rounding error of the arithmetic"
    PASS_LIMIT = "max_iter was reached; increase it for a higher accuracy, or use another solver"
    STOPPED = "a callback requested a stop"
    INTERRUPTED = "interrupted; the result of the last finished pass is kept"
    DIVERGED = "the components diverged; pass gain='auto' or check the scale of the kernel"
    INDEFINITE = "the kernel is not positive semi-definite: Hebbian components may be wrong"
    EXACT = "exact, by an eigendecomposition"
    LANDMARKS = "these are the best components in the span of the landmarks"


@dataclass(frozen=True)
class PassRecord:
    """One pass over the data, an entry of ``history_``.

    Parameters
    ----------
    number : int
        Counts from 1.
    seconds : float
        Duration of this pass, without callbacks.
    eigenvalues, residuals, gains : ndarray of shape (r,)
        λ of K', ‖K'v − λv‖/λ₁ as in :class:`Certificate`, and the gains at the end of the pass.
        Hebbian solvers estimate the residuals of more than 1,024 rows from 256 of them.
    entries : int
        Entries of K evaluated since the start of the fit.
    change : float
        Squared distance in feature space between the components before and after the pass.
    note : str
        Divergence that was detected and the action taken; empty if there was none.
    orthonormality_defect, excess_error : float
        The largest entry of AK'Aᵀ − I, and an estimate of E/E_min − 1; NaN if not computed.
    choice : str
        Method of this pass and its estimated cost, where the solver chooses; otherwise empty.

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
    eigenvalues: Floats
    residuals: Floats
    gains: Floats
    entries: int
    change: float
    note: str = ""
    orthonormality_defect: float = np.nan
    excess_error: float = np.nan
    choice: str = ""

    @property
    def eigenvalue_bounds(self) -> Floats:
        """Distance from each λ within which an eigenvalue of K' lies."""
        return self.residuals * np.abs(self.eigenvalues).max(initial=0.0)

    def line(self, solver: str, max_iter: int) -> str:
        """Return the progress line of ``verbose``."""
        line = (
            f"{solver} pass {self.number}/{max_iter}: residual "
            f"{self.residuals.max(initial=0.0):.2e}, eigenvalues within "
            f"{self.eigenvalue_bounds.max(initial=0.0):.1e}, orthonormal to "
            f"{self.orthonormality_defect:.1e}, excess error about {self.excess_error:.1e}, "
            f"change {self.change:.2e}, {self.seconds:.3f} s"
        )
        remarks = "; ".join(filter(None, (self.choice, self.note)))
        return line + (f" ({remarks})" if remarks else "")


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Rows whose images the components are combinations of, in place of all training rows.

    Parameters
    ----------
    rows : rows of shape (q, N)
    mean : ndarray of shape (q,)
        Coefficients of the mean of all training rows, projected on the span of the landmarks.
    n_samples : int
        Number of training rows.
    row_projections : ndarray of shape (n_samples, r) or None
        Projections of all training rows, if memory allowed to keep them.
    missed_eigenvalue : float
        Estimate of the largest eigenvalue outside of the span of the landmarks.
    """

    rows: Rows
    mean: Floats
    n_samples: int
    row_projections: Floats | None = None
    missed_eigenvalue: float = 0.0

    def select(self, chosen: NDArray[np.bool_] | slice) -> Self:
        """Select some of the components."""
        projections = self.row_projections
        return replace(
            self, row_projections=None if projections is None else projections[:, chosen]
        )


@dataclass(frozen=True)
class EigenSolution:
    """Leading components of a centered kernel matrix, and the history of their computation.

    Parameters
    ----------
    coefficients, projections : ndarray of shape (r, l)
        A and AK'. With ``landmarks``, coefficients of their images, which are not centered, and
        projections of the landmarks.
    eigenvalues : ndarray of shape (r,)
    eigenvectors : ndarray of shape (l, r)
        A_i√λ_i as columns, as in scikit-learn; unit eigenvectors at convergence.
    centering : Centering
    trace : float
        Trace of K'.
    certificate : Certificate or None
    outcome : Outcome
    records : list of PassRecord
    landmarks : Landmarks or None
        None if the components are combinations of all training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.solvers import solve_dense
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> solution = solve_dense(X @ X.T, 2)
    >>> solution.coefficients.shape, solution.eigenvectors.shape, solution.outcome.name
    ((2, 60), (60, 2), 'EXACT')
    """

    coefficients: Floats
    projections: Floats
    eigenvalues: Floats
    eigenvectors: Floats
    centering: Centering
    trace: float
    certificate: Certificate | None
    outcome: Outcome = Outcome.STOPPED
    records: Sequence[PassRecord] = ()
    landmarks: Landmarks | None = None

    @classmethod
    def from_components(
        cls,
        coefficients: Floats,
        projections: Floats,
        eigenvalues: Floats,
        gram: CenteredGram,
        next_eigenvalue: float | None = None,
        sampled: tuple[Floats, Floats] | None = None,
    ) -> Self:
        """Make signs deterministic and compute the certificate of iterated components.

        Its residuals are those along the coefficients, or the sampled ones along the projections,
        given with their bounds.
        """
        signs = deterministic_signs(projections)[:, None]
        coefficients, projections = coefficients * signs, projections * signs
        eigenvalues = nonnegative_eigenvalues(eigenvalues)
        residuals = relative_residuals(coefficients, projections, eigenvalues)
        certificate = certify(
            eigenvalues,
            residuals if sampled is None else sampled[0],
            coefficients.astype(np.float64) @ projections.astype(np.float64).T,
            gram.squared_norm_estimate,
            next_eigenvalue,
            None if sampled is None else sampled[1],
            of_projections=sampled is not None,
        )
        return cls(
            coefficients=coefficients,
            projections=projections,
            eigenvalues=eigenvalues,
            eigenvectors=(coefficients * np.sqrt(eigenvalues)[:, None]).T,
            centering=gram.centering,
            trace=gram.mean_diagonal * gram.n_samples,
            certificate=certificate,
        )

    def select(self, chosen: NDArray[np.bool_] | slice) -> Self:
        """Select some of the components."""
        return replace(
            self,
            coefficients=self.coefficients[chosen],
            projections=self.projections[chosen],
            eigenvalues=self.eigenvalues[chosen],
            eigenvectors=self.eigenvectors[:, chosen],
            landmarks=self.landmarks and self.landmarks.select(chosen),
        )

    def select_fraction(self, fraction: float) -> Self:
        """Select the fewest components with more than ``fraction`` of the variance."""
        cumulative = np.cumsum(self.eigenvalues)
        return self.select(
            slice(int(np.searchsorted(cumulative, fraction * self.trace, side="right")) + 1)
        )

    def with_error(self, error: float) -> Self:
        """Add the error ‖E‖/λ₁ of kernel values to the bounds of the certificate."""
        certificate = self.certificate
        assert certificate is not None
        largest = float(self.eigenvalues.max(initial=0.0))
        certificate = replace(
            certificate,
            residual_bounds=certificate.residual_bounds + error,
            eigenvalue_bounds=certificate.eigenvalue_bounds + error * largest,
        )
        return replace(self, certificate=certificate)

    def astype_float64(self, rows: Rows = None) -> Self:
        """Convert to double precision; landmarks are replaced by ``rows``, the same in double."""
        solution = replace(_astype_float64(self), centering=_astype_float64(self.centering))
        if self.landmarks is None:
            return solution
        return replace(solution, landmarks=replace(_astype_float64(self.landmarks), rows=rows))

    @property
    def rank(self) -> int:
        """Number of non-zero eigenvalues."""
        return int(np.count_nonzero(self.eigenvalues))


def _astype_float64(part: Any) -> Any:
    """Convert the arrays of a dataclass to double precision."""
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    return replace(part, **{name: value.astype(np.float64) for name, value in arrays.items()})


#: Called after every pass with its record and a function that returns the current solution; an
#: outcome other than None ends the run.
Callback: TypeAlias = Callable[[PassRecord, Callable[[], EigenSolution]], Outcome | None]


class Run(NamedTuple):
    """Run after its last finished pass, which a checkpoint stores.

    Attributes
    ----------
    progress : object
        State of the solver; in a checkpoint, data from which resuming is bit-exact.
    outcome : Outcome or None
        None for a run that can be continued.
    records : list of PassRecord
        One per finished pass.
    """

    progress: Any
    outcome: Outcome | None
    records: list[PassRecord]


@dataclass(frozen=True)
class RunSettings:
    """Limits, callback and checkpoint of a run.

    Parameters
    ----------
    max_iter : int
        Passes over K.
    tol : float
        Largest relative residual of a converged run.
    callback : callable, optional
    saved : Run, optional
        The earlier run to resume.
    record : callable, optional
        Stores a run; called after every pass with a function that returns the progress to store.
    """

    max_iter: int
    tol: float = 0.0
    callback: Callback | None = None
    saved: Run | None = None
    record: Callable[[Run, Callable[[], object]], None] | None = None

    def report(self, solution: EigenSolution) -> Outcome | None:
        """Call the callback with the last record of a solution."""
        return self.callback and self.callback(solution.records[-1], lambda: solution)

    def outcome(self, records: list[PassRecord]) -> Outcome | None:
        """Apply the stopping rules to all passes so far."""
        if float(records[-1].residuals.max(initial=0.0)) <= self.tol:
            return Outcome.CONVERGED
        return Outcome.STALLED if _has_stalled(records) else None


def _has_stalled(records: list[PassRecord]) -> bool:
    """Return True if a small residual was not halved in some passes.

    Fewer passes are needed near the rounding errors, and none where it has reached them.
    """
    reference, best, idle = np.inf, np.inf, 0
    for record in records:
        residual = float(record.residuals.max(initial=0.0))
        best, idle = min(best, residual), idle + 1
        if residual <= reference / 2:
            reference, idle = residual, 0
    eps = float(np.finfo(records[-1].eigenvalues.dtype).eps)
    if best <= _ROUNDING * eps:
        return True
    near = 1 if best <= 4 * _ROUNDING * eps else 2 if best <= eps**0.75 else 4
    return best <= eps**0.5 and idle >= near


class Passes(Protocol[State]):
    """Passes of an iterative solver, a step from state to state."""

    def step(self, state: State) -> tuple[State, PassRecord, Outcome | None]:
        """Run one pass; the outcome is None if more passes may follow."""

    def progress(self, state: State) -> object:
        """Return the data of a checkpoint; None if an interrupted pass has overwritten them."""

    def solution(self, state: State) -> EigenSolution:
        """Return the components after a finished pass."""


def run_passes(
    passes: Passes[State], state: State, settings: RunSettings
) -> tuple[State, Outcome, list[PassRecord]]:
    """Run passes until a stopping rule, the callback or the solver ends the run.

    Passes of a restored run count as done, and a run that had ended is not repeated. An interrupt
    ends the run with the result of the last finished pass; the caller re-raises it.
    """
    # State, records and outcome change together, so that they agree after an interrupt.
    run = (settings.saved or Run(state, None, []))._replace(progress=state)
    try:
        while run.outcome is None and len(run.records) < settings.max_iter:
            with plain_interrupts():
                following, record, outcome = passes.step(run.progress)
            records = [*run.records, record]
            run = Run(following, outcome or settings.outcome(records), records)
            if settings.record is not None:
                settings.record(run, partial(passes.progress, following))
            if settings.callback is not None:
                stop = settings.callback(record, partial(passes.solution, following))
                run = run._replace(outcome=run.outcome or stop)
    except KeyboardInterrupt:
        return run.progress, Outcome.INTERRUPTED, run.records
    return run.progress, run.outcome or Outcome.PASS_LIMIT, run.records


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """Raise interrupts of compiled code, which wraps them in SystemErrors, as such."""
    try:
        yield
    except SystemError as error:
        cause = error.__cause__
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if cause is None or isinstance(cause, Exception):
            raise
        raise cause from None


class Solver(BaseEstimator, ABC):
    """Eigensolver of the centered kernel matrix; its parameters are its options."""

    #: Passes over K if ``max_iter`` is None.
    default_max_iter: ClassVar[int]

    @property
    @abstractmethod
    def name(self) -> str:
        """Name in progress lines and messages."""

    @abstractmethod
    def check(self, n_components: float | None) -> None:
        """Raise an error for invalid options, or a number of components that is not supported."""

    @abstractmethod
    def solve(
        self, problem: Problem, n_components: float | None, settings: RunSettings
    ) -> EigenSolution:
        """Compute the leading components.

        Parameters
        ----------
        problem : Problem
            Kernel matrix within its memory budget.
        n_components : int, float or None
            Number of components, fraction of the variance, or all.
        settings : RunSettings
            Limits, callback and checkpoint.
        """

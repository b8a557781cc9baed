"""What a reader is told of a pass, and the observers that any solver can use."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from ikpca.loop.outcome import Outcome

__all__ = [
    "PassRecord",
    "ProgressLines",
    "StopAtChange",
    "StopAtResidual",
    "StopAtRounding",
]


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

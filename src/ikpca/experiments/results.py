"""What came out of the demonstration."""

from __future__ import annotations

from dataclasses import dataclass

from ikpca.experiments.spec import DemoSpec

__all__ = ["DemoResult", "Run"]


@dataclass(frozen=True)
class Run:
    """One method.

    Parameters
    ----------
    method, label : str
        As ``eigen_solver`` has it, and as the papers write it.
    excess_errors : tuple of float
        After every pass; of a direct method, its one result.
    seconds : float
    entries : int
        Entries of K evaluated.
    peak_bytes : int or None
        Above the loaded data; None where the system keeps no count.
    outcome : str
    """

    method: str
    label: str
    excess_errors: tuple[float, ...]
    seconds: float
    entries: int
    peak_bytes: int | None
    outcome: str

    @property
    def direct(self) -> bool:
        """Whether there are no passes to speak of."""
        return self.outcome == "EXACT"

    @property
    def peak_megabytes(self) -> float | None:
        """10⁶ bytes."""
        return None if self.peak_bytes is None else self.peak_bytes / 1e6

    def excess_after(self, number: int, last: int) -> float | None:
        """Return the error after a pass; of a direct method, its result after the ``last``."""
        if self.direct:
            return self.excess_errors[-1] if number == last else None
        return self.excess_errors[number - 1] if number <= len(self.excess_errors) else None


@dataclass(frozen=True)
class DemoResult:
    """All methods, and what they ran on.

    Parameters
    ----------
    spec : DemoSpec
    features : int
        Columns of the data.
    runs : tuple of Run
    threads : int
        Of BLAS, as found in the processes.
    versions : dict
        Of Python and the libraries.
    """

    spec: DemoSpec
    features: int
    runs: tuple[Run, ...]
    threads: int
    versions: dict[str, str]

    @property
    def iterative(self) -> tuple[Run, ...]:
        """The runs that have passes."""
        return tuple(run for run in self.runs if not run.direct)

"""Demonstration: the Hebbian solvers on digits, against the exact solution."""

from __future__ import annotations

import csv
import io
import json
import platform
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from math import isfinite
from typing import Any, TypeAlias

import numpy as np

from ikpca import KernelPCA
from ikpca.errors import RankWarning, invalid_parameter
from ikpca.gram import CenteredGram, ComputedGram, PrecomputedGram, center_gram, full_matrix
from ikpca.kernels import Floats, Gaussian
from ikpca.metrics import excess_error
from ikpca.solvers import (
    HebbianOptions,
    HebbianSolution,
    LocalStore,
    Observer,
    Outcome,
    PassRecord,
    solve_kha,
)
from ikpca_papers.memory import PeakMemory
from ikpca_papers.subprocesses import Tell, run_alone

#: Rows of scikit-learn's digits.
_ALL_ROWS = 1797
#: Passes after which the table quotes the error; the last pass is always quoted.
_CHECKPOINTS = (1, 5, 10, 20, 50)


@dataclass(frozen=True)
class DemoSpec:
    """Kernel PCA of handwritten digits; refuses bad values before any work.

    Parameters
    ----------
    components, passes : int
    sigma : float
        Width of the Gaussian kernel.
    seed : int
        Of the start and the order of patterns.
    threads : int
        Of BLAS, in every process. One, so that seconds compare algorithms and not schedulers.
    rows : int
        Only so many of the digits.
    """

    components: int = 16
    passes: int = 50
    sigma: float = 2.0
    seed: int = 0
    threads: int = 1
    rows: int = _ALL_ROWS

    def __post_init__(self) -> None:
        for name, least in (("components", 1), ("passes", 1), ("seed", 0), ("threads", 1)):
            if getattr(self, name) < least:
                rule = f"must be at least {least}"
                raise invalid_parameter(name, getattr(self, name), rule, f"pass {least} or more")
        if not 2 <= self.rows <= _ALL_ROWS:
            rule = f"the digits have {_ALL_ROWS} rows, and one row has no variance"
            raise invalid_parameter("rows", self.rows, rule, f"pass 2 to {_ALL_ROWS}")
        if self.components >= self.rows:
            rule = f"{self.rows} centred rows have fewer directions"
            raise invalid_parameter(
                "components", self.components, rule, f"pass at most {self.rows - 1}"
            )
        # Squared, because that is what the kernel divides by, and what may underflow.
        if not (self.sigma > 0 and isfinite(self.sigma) and 0 < self.sigma**2 < np.inf):
            raise invalid_parameter("sigma", self.sigma, "must be positive and finite", "pass 2.0")

    @property
    def kernel(self) -> Gaussian:
        """γ = 1/(2σ²)."""
        return Gaussian(1 / (2 * self.sigma**2))

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """Passes that the table quotes.

        Examples
        --------
        >>> DemoSpec(passes=12).checkpoints
        (1, 5, 10, 12)
        """
        return (*(number for number in _CHECKPOINTS if number < self.passes), self.passes)

    def load(self) -> Floats:
        """Pixels from 0 to 1; every row is a digit."""
        from sklearn.datasets import load_digits

        # The quotient is an array of its own, so the rows that are not wanted can go.
        return load_digits().data[: self.rows] / 16


@dataclass(frozen=True)
class Reference:
    """Lives in the parent, so that no contestant's memory holds it."""

    gram: CenteredGram
    squared_norm: float
    eigenvalues: Floats

    @classmethod
    def of(cls, spec: DemoSpec, X: Floats, eigenvalues: Floats) -> Reference:
        """Evaluate K once."""
        gram, _ = center_gram(PrecomputedGram(full_matrix(ComputedGram(spec.kernel, X))))
        return cls(gram, gram.squared_norm(), eigenvalues)

    def excess_error(self, projections: Floats) -> float:
        """E/E_min − 1."""
        return excess_error(self.gram, projections, self.eigenvalues, self.squared_norm)


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


def as_csv(result: DemoResult) -> str:
    """One line per method; settings and versions are repeated on each."""
    settings = {**asdict(result.spec), "threads": result.threads, **result.versions}
    lines = [{**_cells(run, result), **settings} for run in result.runs]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def as_json(result: DemoResult) -> str:
    """The table, and the error after every pass."""
    document = {
        "data": {"name": "digits", "rows": result.spec.rows, "features": result.features},
        "settings": asdict(result.spec),
        "threads": result.threads,
        "versions": result.versions,
        "table": [_cells(run, result) for run in result.runs],
        "excess_error_per_pass": {run.method: run.excess_errors for run in result.runs},
    }
    return json.dumps(document, indent=2) + "\n"


def _cells(run: Run, result: DemoResult) -> dict[str, Any]:
    last = result.spec.passes
    return {
        "method": run.method,
        **{
            f"excess_after_{number}": run.excess_after(number, last)
            for number in result.spec.checkpoints
        },
        "seconds": run.seconds,
        "entries": run.entries,
        "entries_per_l2": run.entries / result.spec.rows**2,
        "peak_megabytes": run.peak_megabytes,
        "outcome": run.outcome,
    }


DENSE = "dense"
#: As ``eigen_solver`` has them, and as the papers write them.
CONTESTANTS = {
    "kha": "KHA",
    "kha/t": "KHA/t",
    "kha/et": "KHA/et",
    "kha-smd": "KHA-SMD",
    DENSE: "dense",
}


@dataclass(frozen=True)
class PassDone:
    """A finished pass, for the parent to measure; measuring here would need all of K."""

    number: int
    seconds: float
    projections: Floats


@dataclass(frozen=True)
class Performance:
    """What a fit cost.

    Parameters
    ----------
    seconds : float
        Of the fit from start to end, without what was spent on telling of passes.
    entries : int
        Entries of K evaluated.
    peak_bytes : int or None
        Memory above the loaded data.
    threads : int
        Of BLAS, as found and not as asked for.
    eigenvalues : ndarray of shape (r,)
    outcome : str
    """

    seconds: float
    entries: int
    peak_bytes: int | None
    threads: int
    eigenvalues: Floats
    outcome: str


@dataclass(frozen=True)
class _Fit:
    seconds: float
    entries: int
    eigenvalues: Floats
    outcome: Outcome


def compete(spec: DemoSpec, method: str, tell: Tell) -> Performance:
    """Load, warm up, take the baseline, fit, and say what it cost."""
    from threadpoolctl import threadpool_limits

    fit = _fit_dense if method == DENSE else _fit_hebbian
    with threadpool_limits(spec.threads):
        X = spec.load()
        # Compiling, or loading what an earlier run compiled, happens once per installation and
        # process; it is done here on a few rows, so that seconds and memory are the algorithm's.
        fit(spec, method, X[: 4 * spec.components], _say_nothing)
        memory = PeakMemory()
        done = fit(spec, method, X, tell)
        peak = memory.above_baseline()
        threads = _blas_threads()
    return Performance(
        done.seconds, done.entries, peak, threads, done.eigenvalues, done.outcome.name
    )


def _fit_hebbian(spec: DemoSpec, method: str, X: Floats, tell: Tell) -> _Fit:
    reporter = _Reporter(tell)
    begun = time.perf_counter()
    solution = solve_kha(
        ComputedGram(spec.kernel, X),
        spec.components,
        HebbianOptions(method=method, max_iter=spec.passes),
        seed=spec.seed,
        open_store=LocalStore,
        watch=reporter.watch,
    )
    seconds = time.perf_counter() - begun - reporter.spent
    return _Fit(seconds, solution.gram.entries, solution.eigenvalues, solution.outcome)


def _fit_dense(spec: DemoSpec, method: str, X: Floats, tell: Tell) -> _Fit:
    model = KernelPCA(spec.components, kernel=spec.kernel, eigen_solver=method, copy_X=False)
    begun = time.perf_counter()
    with warnings.catch_warnings():
        # The few rows of the warm-up may have fewer directions than asked for.
        warnings.simplefilter("ignore", RankWarning)
        model.fit(X)
    seconds = time.perf_counter() - begun
    projections = model.eigenvectors_.T * np.sqrt(model.eigenvalues_)[:, None]
    tell(PassDone(1, seconds, projections))
    return _Fit(seconds, model.history_[-1].entries, model.eigenvalues_, model.outcome_)


class _Reporter:
    """Observer that tells of every pass and keeps count of the time this takes."""

    def __init__(self, tell: Tell) -> None:
        self.spent = 0.0
        self._tell = tell
        self._seconds = 0.0

    def watch(self, snapshot: Callable[[], HebbianSolution]) -> Sequence[Observer[Any, Any]]:
        """Become the observer of a run."""
        self._snapshot = snapshot
        return [self]

    def see(self, state: object, report: PassRecord) -> Outcome | None:
        """Send the projections; never ends a run."""
        begun = time.perf_counter()
        self._seconds += report.seconds
        self._tell(PassDone(report.number, self._seconds, self._snapshot().projections))
        self.spent += time.perf_counter() - begun
        return None


def _say_nothing(message: object) -> None:
    """A warm-up is nobody's business."""


def _blas_threads() -> int:
    from threadpoolctl import threadpool_info

    pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(pools, default=1)


_LIBRARIES = ("ikpca", "numpy", "scipy", "scikit-learn", "numba")
#: Told of a method, the passes it has done and the seconds they took.
Announce: TypeAlias = Callable[[str, int, float], None]


def run_demo(spec: DemoSpec, announce: Announce = lambda *news: None) -> DemoResult:
    """Run every contestant, one after the other, each in a process of its own.

    Parameters
    ----------
    spec : DemoSpec
    announce : callable
        Called after every pass with the method, the passes done and the seconds they took.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(spec.threads):
        X = spec.load()
        # The reference goes first: its eigenvalues are what the others are measured against.
        exact, exact_passes = _attend(spec, DENSE, announce)
        if not exact.eigenvalues.any():
            rule = "is so wide that the kernel has no variance on these rows"
            raise invalid_parameter("sigma", spec.sigma, rule, "pass a smaller one")
        reference = Reference.of(spec, X, exact.eigenvalues)
        runs, threads = [], exact.threads
        for method in CONTESTANTS:
            if method != DENSE:
                cost, passes = _attend(spec, method, announce)
                runs.append(_run(method, cost, passes, reference))
                threads = max(threads, cost.threads)
        runs.append(_run(DENSE, exact, exact_passes, reference))
    return DemoResult(spec, X.shape[1], tuple(runs), threads, versions())


def _attend(spec: DemoSpec, method: str, announce: Announce) -> tuple[Performance, list[PassDone]]:
    """Collect the passes; measuring them waits, so as not to compete for the machine."""
    passes: list[PassDone] = []

    def hear(news: PassDone) -> None:
        passes.append(news)
        announce(method, news.number, news.seconds)

    cost = run_alone(CONTESTANTS[method], partial(compete, spec, method), hear)
    return cost, passes


def _run(method: str, cost: Performance, passes: list[PassDone], reference: Reference) -> Run:
    return Run(
        method=method,
        label=CONTESTANTS[method],
        excess_errors=tuple(reference.excess_error(done.projections) for done in passes),
        seconds=cost.seconds,
        entries=cost.entries,
        peak_bytes=cost.peak_bytes,
        outcome=cost.outcome,
    )


def versions() -> dict[str, str]:
    """Of Python and of what the numbers depend on."""
    return {
        "python": platform.python_version(),
        **{library: version(library) for library in _LIBRARIES},
    }

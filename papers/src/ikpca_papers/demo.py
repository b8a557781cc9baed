"""Demonstration: the Hebbian solvers on digits, against the exact solution."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from ikpca import KernelPCA
from ikpca.errors import RankWarning, invalid_parameter
from ikpca.gram import Budget, ComputedGram, PrecomputedGram, center_gram, full_matrix
from ikpca.kernels import Floats, Gaussian
from ikpca.solvers import KHA, EigenSolution, PassRecord, Problem, RunSettings
from ikpca_papers.experiment import blas_threads, versions
from ikpca_papers.memory import PeakMemory
from ikpca_papers.metrics import excess_error
from ikpca_papers.subprocesses import Send, run_in_subprocess

#: Rows of scikit-learn's digits.
_ALL_ROWS = 1797
#: Passes after which the table shows the error; the last pass is always shown.
_TABLE_PASSES = (1, 5, 10, 20, 50)
#: For pipes and logs, which have no width of their own.
_WIDTH = 100


@dataclass(frozen=True)
class DemoSpec:
    """Settings of kernel PCA on handwritten digits, checked on construction.

    Parameters
    ----------
    components, passes : int
    sigma : float
        Width of the Gaussian kernel.
    seed : int
        Of initial values and the order of rows.
    threads : int
        Of BLAS, in every process. With one, times compare algorithms and not thread scheduling.
    rows : int
        Use only the first so many digits.
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
            rule = f"{self.rows} centered rows have fewer directions"
            raise invalid_parameter(
                "components", self.components, rule, f"pass at most {self.rows - 1}"
            )
        # Squared, because the kernel divides by the square, which may underflow.
        if not (self.sigma > 0 and isfinite(self.sigma) and 0 < self.sigma**2 < np.inf):
            raise invalid_parameter("sigma", self.sigma, "must be positive and finite", "pass 2.0")

    @property
    def kernel(self) -> Gaussian:
        """Gaussian kernel with γ = 1/(2σ²)."""
        return Gaussian(1 / (2 * self.sigma**2))

    @property
    def table_passes(self) -> tuple[int, ...]:
        """Passes after which the table shows the error.

        Examples
        --------
        >>> DemoSpec(passes=12).table_passes
        (1, 5, 10, 12)
        """
        return (*(number for number in _TABLE_PASSES if number < self.passes), self.passes)

    def load(self) -> Floats:
        """Load the digits, one per row, pixels from 0 to 1."""
        from sklearn.datasets import load_digits

        # The quotient is a copy, so the other rows can be freed.
        return load_digits().data[: self.rows] / 16


@dataclass(frozen=True)
class Run:
    """Result of one method.

    Parameters
    ----------
    method, label : str
        The name for ``eigen_solver``, and that of the papers.
    excess_errors : tuple of float
        After every pass; a direct method has one.
    seconds : float
    entries : int
        Number of kernel evaluations.
    peak_bytes : int or None
        Above the loaded data; None where the system does not report it.
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
        """True for a method without passes."""
        return self.outcome == "EXACT"

    @property
    def peak_megabytes(self) -> float | None:
        """Peak memory in units of 10⁶ bytes."""
        return None if self.peak_bytes is None else self.peak_bytes / 1e6

    def excess_after(self, number: int, last: int) -> float | None:
        """Return the error after a pass; a direct method has one after the ``last``."""
        if self.direct:
            return self.excess_errors[-1] if number == last else None
        return self.excess_errors[number - 1] if number <= len(self.excess_errors) else None


@dataclass(frozen=True)
class DemoResult:
    """Results of all methods.

    Parameters
    ----------
    spec : DemoSpec
    features : int
        Columns of the data.
    runs : tuple of Run
    threads : int
        Of BLAS, as measured in the processes.
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
        """Runs of the iterative methods."""
        return tuple(run for run in self.runs if not run.direct)


def as_json(result: DemoResult) -> str:
    """Format as JSON: the table, and the error after every pass."""
    document = {
        "data": {"name": "digits", "rows": result.spec.rows, "features": result.features},
        "settings": asdict(result.spec),
        "threads": result.threads,
        "versions": result.versions,
        "table": [_table_row(run, result) for run in result.runs],
        "excess_error_per_pass": {run.method: run.excess_errors for run in result.runs},
    }
    return json.dumps(document, indent=2) + "\n"


def _table_row(run: Run, result: DemoResult) -> dict[str, Any]:
    last = result.spec.passes
    return {
        "method": run.method,
        **{
            f"excess_after_{number}": run.excess_after(number, last)
            for number in result.spec.table_passes
        },
        "seconds": run.seconds,
        "entries": run.entries,
        "entries_per_l2": run.entries / result.spec.rows**2,
        "peak_megabytes": run.peak_megabytes,
        "outcome": run.outcome,
    }


DENSE = "dense"
#: Names for ``eigen_solver``, and those of the papers.
METHODS = {
    "kha": "KHA",
    "kha/t": "KHA/t",
    "kha/et": "KHA/et",
    "kha-smd": "KHA-SMD",
    DENSE: "dense",
}


@dataclass(frozen=True)
class PassDone:
    """Finished pass; its error is measured in the parent, which holds the kernel matrix."""

    number: int
    seconds: float
    projections: Floats


@dataclass(frozen=True)
class FitCost:
    """Time and memory of a fit.

    Parameters
    ----------
    seconds : float
        Of the fit from start to end, without sending messages about passes.
    entries : int
        Number of kernel evaluations.
    eigenvalues : ndarray of shape (r,)
    outcome : str
    peak_bytes : int, optional
        Memory above the loaded data.
    threads : int
        Of BLAS, as measured.
    """

    seconds: float
    entries: int
    eigenvalues: Floats
    outcome: str
    peak_bytes: int | None = None
    threads: int = 0


def measure_fit(spec: DemoSpec, method: str, send: Send) -> FitCost:
    """Load the data, warm up, take the memory baseline, fit, and return the cost."""
    from threadpoolctl import threadpool_limits

    fit = _fit_dense if method == DENSE else _fit_hebbian
    with threadpool_limits(spec.threads):
        X = spec.load()
        # Compile on a few rows first, so that seconds and memory are those of the algorithm.
        fit(spec, method, X[: 4 * spec.components], lambda message: None)
        memory = PeakMemory()
        done = fit(spec, method, X, send)
        peak = memory.above_baseline()
        return replace(done, peak_bytes=peak, threads=blas_threads())


def _fit_hebbian(spec: DemoSpec, method: str, X: Floats, send: Send) -> FitCost:
    passes, sending, entries = 0.0, 0.0, 0

    def send_pass(record: PassRecord, solution: Callable[[], EigenSolution]) -> None:
        nonlocal passes, sending, entries
        start = time.perf_counter()
        passes, entries = passes + record.seconds, record.entries
        send(PassDone(record.number, passes, solution().projections))
        sending += time.perf_counter() - start

    # Without a budget K is not cached: every pass evaluates it.
    problem = Problem(spec.kernel, X, Budget(0, explicit=False), seed=spec.seed)
    settings = RunSettings(spec.passes, callback=send_pass)
    start = time.perf_counter()
    solution = KHA(method, init="random").solve(problem, spec.components, settings)
    seconds = time.perf_counter() - start - sending
    return FitCost(seconds, entries, solution.eigenvalues, solution.outcome.name)


def _fit_dense(spec: DemoSpec, method: str, X: Floats, send: Send) -> FitCost:
    model = KernelPCA(spec.components, kernel=spec.kernel, eigen_solver=method, copy_X=False)
    start = time.perf_counter()
    with warnings.catch_warnings():
        # The few rows of the warm-up may have a smaller rank than n_components.
        warnings.simplefilter("ignore", RankWarning)
        model.fit(X)
    seconds = time.perf_counter() - start
    projections = model.eigenvectors_.T * np.sqrt(model.eigenvalues_)[:, None]
    send(PassDone(1, seconds, projections))
    return FitCost(seconds, model.history_[-1].entries, model.eigenvalues_, model.outcome_.name)


#: Called with a method, its finished passes and the seconds they took.
ProgressCallback: TypeAlias = Callable[[str, int, float], None]


def run_demo(spec: DemoSpec, on_progress: ProgressCallback = lambda *_: None) -> DemoResult:
    """Run every method, one after the other, each in a process of its own.

    Parameters
    ----------
    spec : DemoSpec
    on_progress : callable
        Called after every pass with the method, the passes done and the seconds they took.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(spec.threads):
        X = spec.load()
        # The exact solution comes first: the errors of the others are relative to its eigenvalues.
        exact, exact_passes = _run_method(spec, DENSE, on_progress)
        if not exact.eigenvalues.any():
            rule = "is so wide that the kernel has no variance on these rows"
            raise invalid_parameter("sigma", spec.sigma, rule, "pass a smaller one")
        # In this process, so that the matrix is not part of any measured memory.
        gram, _ = center_gram(PrecomputedGram(full_matrix(ComputedGram(spec.kernel, X))))
        squared_norm = gram.squared_norm()

        def to_run(method: str, cost: FitCost, passes: list[PassDone]) -> Run:
            errors = (
                excess_error(gram, done.projections, exact.eigenvalues, squared_norm)
                for done in passes
            )
            costs = (cost.seconds, cost.entries, cost.peak_bytes, cost.outcome)
            return Run(method, METHODS[method], tuple(errors), *costs)

        runs, threads = [], exact.threads
        for method in METHODS:
            if method != DENSE:
                cost, passes = _run_method(spec, method, on_progress)
                runs.append(to_run(method, cost, passes))
                threads = max(threads, cost.threads)
        runs.append(to_run(DENSE, exact, exact_passes))
    return DemoResult(spec, X.shape[1], tuple(runs), threads, versions())


def _run_method(
    spec: DemoSpec, method: str, on_progress: ProgressCallback
) -> tuple[FitCost, list[PassDone]]:
    """Collect the passes; their errors are measured afterwards, so as not to disturb the timing."""
    passes: list[PassDone] = []

    def on_message(message: PassDone) -> None:
        passes.append(message)
        on_progress(method, message.number, message.seconds)

    cost = run_in_subprocess(METHODS[method], partial(measure_fit, spec, method), on_message)
    return cost, passes


@contextmanager
def progress_bars(spec: DemoSpec) -> Iterator[ProgressCallback]:
    """Show progress bars on standard error; yield the function that updates them."""
    columns = (
        TextColumn("{task.description:<8}"),
        BarColumn(bar_width=40),
        MofNCompleteColumn(),
        TextColumn("{task.fields[seconds]:6.2f} s", style="progress.elapsed"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        # The exact solution is computed first, so its bar comes first.
        tasks = {
            method: bars.add_task(
                METHODS[method], total=1 if method == DENSE else spec.passes, seconds=0.0
            )
            for method in sorted(METHODS, key=lambda method: method != DENSE)
        }

        def on_progress(method: str, done: int, seconds: float) -> None:
            bars.update(tasks[method], completed=done, seconds=seconds)

        yield on_progress


def print_result(result: DemoResult, files: Sequence[Path]) -> None:
    """Print the table and the paths of the files to standard output."""
    console = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
    console.print()
    console.print(_printed_table(result))
    console.print(
        "Each method ran in its own process; compiling and measuring are not counted.\n"
        "Memory is the peak above the loaded data.",
        style="dim",
    )
    console.print(f"BLAS threads: {result.threads} (pinned); seed: {result.spec.seed}")
    console.print(
        f"Versions: {', '.join(f'{name} {number}' for name, number in result.versions.items())}"
    )
    # Paths are for copying: neither wrapped nor read as markup.
    for path in files:
        console.print(f"Wrote {path}", soft_wrap=True, markup=False)


def _printed_table(result: DemoResult) -> Table:
    spec = result.spec
    table = Table(
        title="[bold]Excess error after so many passes, and cost of the fit[/bold]\n"
        f"Digits, {spec.rows} × {result.features}; Gaussian kernel, σ = {spec.sigma:g}; "
        f"{spec.components} components",
        title_style="",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        # Without further padding the table fits into 80 characters.
        padding=0,
        pad_edge=False,
    )
    table.add_column("\nmethod")
    for number in spec.table_passes:
        table.add_column(f"pass\n{number}", justify="right")
    for heading in ("fit\nseconds", "entries\nof K", "\n÷ l²", "peak\nMB"):
        table.add_column(heading, justify="right")
    for run in result.runs:
        table.add_row(*_printed_row(run, spec))
    return table


def _printed_row(run: Run, spec: DemoSpec) -> list[str]:
    errors = [run.excess_after(number, spec.passes) for number in spec.table_passes]
    return [
        run.label,
        *("–" if error is None else f"{error:.1e}" for error in errors),
        f"{run.seconds:.2f}",
        f"{run.entries / 1e6:.1f} M",
        f"{run.entries / spec.rows**2:.2f}",
        "–" if run.peak_megabytes is None else f"{run.peak_megabytes:.1f}",
    ]

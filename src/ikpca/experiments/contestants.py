"""The methods, each as one task for a process of its own."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ikpca.engines import LocalStore
from ikpca.errors import RankWarning
from ikpca.estimators import KernelPCA
from ikpca.experiments.memory import PeakMemory
from ikpca.experiments.processes import Tell
from ikpca.experiments.spec import DemoSpec
from ikpca.gram import ComputedGram
from ikpca.hebbian import HebbianOptions, HebbianSolution, solve
from ikpca.kernels import Floats
from ikpca.loop import Observer, Outcome, PassRecord

__all__ = ["CONTESTANTS", "DENSE", "PassDone", "Performance", "compete"]

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
    solution = solve(
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

"""Kernel PCA of many rows: contestants in processes of their own, errors by a verifying pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from ikpca.estimators import KernelPCA
from ikpca.experiments.memory import PeakMemory
from ikpca.experiments.processes import Tell, run_alone
from ikpca.gram import CachedGram, CentredGram, ComputedGram, Workers, centred, read_budget
from ikpca.hebbian import Floats
from ikpca.kernels import Gaussian
from ikpca.measures import excess_error

__all__ = ["Contestant", "Judge", "ScaleRow", "contestants", "hold"]


@dataclass(frozen=True)
class Contestant:
    """A way to do kernel PCA; ``build`` is the name of a function here, so that it travels."""

    name: str
    build: str
    settings: dict[str, Any] = field(default_factory=dict)
    dtype: str = "float32"


@dataclass(frozen=True)
class ScaleRow:
    """What a fit cost, and how good it is."""

    name: str
    seconds: float
    entries: float | None
    peak_bytes: int | None
    residual: float | None
    excess_error: float


@dataclass(frozen=True)
class _Fit:
    seconds: float
    entries: float | None
    peak_bytes: int | None
    residual: float | None
    projections: Floats


def contestants(*, full: bool = False) -> list[Contestant]:
    """Ours and others, for float32 rows and the Gaussian kernel."""
    found = [
        Contestant("ikpca krylov", "_ours", {"tol": 2e-3}),
        Contestant("ikpca krylov, 300 MB", "_ours", {"tol": 2e-3, "max_memory": "300MB"}),
        Contestant("ikpca krylov, tol 1e-5", "_ours", {"tol": 1e-5}),
        Contestant("scikit-learn arpack", "_scikit", {"eigen_solver": "arpack"}),
        Contestant("scikit-learn randomized", "_scikit", {"eigen_solver": "randomized"}),
        Contestant("Nystroem 1000 + PCA", "_nystroem", {"landmarks": 1000}),
    ]
    if full:
        float64 = {"eigen_solver": "arpack"}
        found += [
            Contestant("ikpca kha/et, 10 passes", "_hebbian", {"max_iter": 10}),
            Contestant("scikit-learn arpack, float64", "_scikit", float64, "float64"),
            *[
                Contestant(f"Nystroem {m} + PCA", "_nystroem", {"landmarks": m})
                for m in (500, 2000, 4000)
            ],
        ]
    return found


def hold(
    contestant: Contestant, load: Callable[[], Floats], gamma: float, n_components: int,
    threads: int, judge: Judge,
) -> ScaleRow:  # fmt: skip
    """Run one contestant in its own process and judge what it found."""
    task = partial(_compete, contestant, load, gamma, n_components, threads)
    fit = run_alone(contestant.name, task, lambda message: None)
    return ScaleRow(
        contestant.name, fit.seconds, fit.entries, fit.peak_bytes, fit.residual,
        judge.excess_error(fit.projections),
    )  # fmt: skip


def _compete(
    contestant: Contestant,
    load: Callable[[], Floats],
    gamma: float,
    n_components: int,
    threads: int,
    tell: Tell,
) -> _Fit:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(threads):
        X = load().astype(contestant.dtype)
        fit = globals()[contestant.build]
        # Imports, compilation and caches are not the algorithm's.
        fit(X[: 20 * n_components], gamma, n_components, threads, contestant.settings)
        memory = PeakMemory()
        begun = time.perf_counter()
        projections, entries, residual = fit(X, gamma, n_components, threads, contestant.settings)
        seconds = time.perf_counter() - begun
        return _Fit(seconds, entries, memory.above_baseline(), residual, projections)


def _ours(X: Floats, gamma: float, r: int, threads: int, settings: dict[str, Any]) -> Any:
    model = KernelPCA(
        r,
        kernel="rbf",
        gamma=gamma,
        random_state=0,
        n_jobs=threads,
        copy_X=False,
        **{"eigen_solver": "krylov", **settings},
    )
    projections = model.fit_transform(X).T
    last = model.history_[-1]
    return projections, last.entries / len(X) ** 2, float(last.residuals.max())


def _hebbian(X: Floats, gamma: float, r: int, threads: int, settings: dict[str, Any]) -> Any:
    return _ours(X, gamma, r, threads, {"eigen_solver": "kha/et", **settings})


def _scikit(X: Floats, gamma: float, r: int, threads: int, settings: dict[str, Any]) -> Any:
    from sklearn.decomposition import KernelPCA as ScikitKernelPCA

    model = ScikitKernelPCA(r, kernel="rbf", gamma=gamma, random_state=0, copy_X=False, **settings)
    return model.fit_transform(X).T, 1.0, None


def _nystroem(X: Floats, gamma: float, r: int, threads: int, settings: dict[str, Any]) -> Any:
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import Nystroem

    number = min(settings["landmarks"], len(X))
    features = Nystroem(gamma=gamma, n_components=number, random_state=0).fit_transform(X)
    return PCA(r, random_state=0).fit_transform(features).T, number / len(X), None


@dataclass(frozen=True)
class Judge:
    """Exact eigenvalues and K' in double precision, for errors that no contestant computes."""

    X: Floats
    gamma: float
    n_components: int
    threads: int

    @cached_property
    def eigenvalues(self) -> Floats:
        """To nine digits: their error is the square of the residual."""
        model = KernelPCA(
            self.n_components,
            kernel="rbf",
            gamma=self.gamma,
            eigen_solver="krylov",
            tol=1e-7,
            copy_X=False,
            n_jobs=self.threads,
            random_state=1,
        )
        return model.fit(self.X).eigenvalues_

    @cached_property
    def gram(self) -> CentredGram:
        """K', kept as far as memory allows."""
        source = ComputedGram(Gaussian(self.gamma), self.X)
        with Workers(self.threads) as workers:
            gram, _ = centred(CachedGram(source, read_budget(None).n_bytes), None, workers)
        return gram

    def excess_error(self, projections: Floats) -> float:
        """E/E_min − 1, in double precision."""
        norm = self.gram.squared_norm_estimate
        return excess_error(self.gram, projections, self.eigenvalues, norm)

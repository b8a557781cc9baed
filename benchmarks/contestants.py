"""Contestants of the scale benchmark, each in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from benchmarks.kernlab import has_kernlab, kernlab_kha

from ikpca import KernelPCA
from ikpca.gram import CachedGram, CenteredGram, ComputedGram, Workers, center_gram, read_budget
from ikpca.kernels import FeatureSplit, Floats, Gaussian
from ikpca.metrics import excess_error
from ikpca.solvers import hebbian_step
from ikpca_papers.memory import PeakMemory, touch_memory
from ikpca_papers.subprocesses import Tell, run_alone

#: η0 κ of the rule: what the papers' search finds for KHA on digits.
_RULE_STEP = 0.05
#: Bytes that every process touches beforehand, more than any contestant takes.
_TOUCHED = 4 * 10**9


@dataclass(frozen=True)
class Contestant:
    """A way to do kernel PCA; ``build`` is the name of a function here, so that it travels."""

    name: str
    build: str
    settings: dict[str, Any] = field(default_factory=dict)
    dtype: str = "float32"
    #: More rows than this would take hours.
    max_rows: int | None = None
    #: The best time of so many fits counts: a machine that does something else only adds to it.
    repeats: int = 4


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
class Fit:
    """What a contestant's process reports.

    Parameters
    ----------
    seconds : float
        The whole fit, the best of its repeats.
    entries : float or None
        Of K evaluated, over l².
    peak_bytes : int or None
        Above the loaded data.
    residual : float or None
        The largest relative one.
    first_pass : float
        Seconds of the pass that evaluates all of K; NaN where there are no passes.
    projections : ndarray of shape (r, l)
    """

    seconds: float
    entries: float | None
    peak_bytes: int | None
    residual: float | None
    first_pass: float
    projections: Floats


@dataclass(frozen=True)
class _Found:
    """What a way of kernel PCA returns; time and memory only where another process took them."""

    projections: Floats
    entries: float | None = None
    residual: float | None = None
    first_pass: float = float("nan")
    peak_bytes: int | None = None
    seconds: float | None = None


def quick_contestants(dtype: str) -> list[Contestant]:
    """Only krylov and what scikit-learn has."""
    return [
        Contestant("ikpca krylov", "_ours", {"tol": 2e-3}, dtype),
        Contestant("scikit-learn arpack", "_scikit", {"eigen_solver": "arpack"}, dtype),
        Contestant("scikit-learn randomized", "_scikit", {"eigen_solver": "randomized"}, dtype),
    ]


def contestants(*, full: bool = False) -> list[Contestant]:
    """Ours and others, for float32 rows and the Gaussian kernel."""
    found = [
        Contestant("ikpca krylov", "_ours", {"tol": 2e-3}),
        Contestant("ikpca krylov, 300 MB", "_ours", {"tol": 2e-3, "max_memory": "300MB"}),
        Contestant("ikpca krylov, tol 1e-5", "_ours", {"tol": 1e-5}),
        Contestant("scikit-learn arpack", "_scikit", {"eigen_solver": "arpack"}),
        Contestant("scikit-learn randomized", "_scikit", {"eigen_solver": "randomized"}),
        Contestant("Nystroem 1000 + PCA", "_nystroem", {"landmarks": 1000}),
        Contestant("ikpca kha/et, 10 passes", "_hebbian", {"max_iter": 10}, repeats=2),
        Contestant("KHA rule by pattern, 1 pass", "_rule", max_rows=5000, repeats=1),
    ]
    if has_kernlab():
        found.append(Contestant("kernlab kha, 1 pass", "_kernlab", max_rows=5000, repeats=1))
    if full:
        float64 = {"eigen_solver": "arpack"}
        found += [
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
    fit = run_contestant(contestant, load, gamma, n_components, threads)
    return ScaleRow(
        contestant.name, fit.seconds, fit.entries, fit.peak_bytes, fit.residual,
        judge.excess_error(fit.projections),
    )  # fmt: skip


def run_contestant(
    contestant: Contestant, load: Callable[[], Floats], gamma: float, n_components: int,
    threads: int,
) -> Fit:  # fmt: skip
    """Run one contestant in a process of its own."""
    task = partial(_compete, contestant, load, gamma, n_components, threads)
    return run_alone(contestant.name, task, lambda message: None)


def _compete(
    contestant: Contestant,
    load: Callable[[], Floats],
    gamma: float,
    n_components: int,
    threads: int,
    tell: Tell,
) -> Fit:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(threads):
        X = load().astype(contestant.dtype)
        fit = globals()[contestant.build]
        # Imports, compilation and caches are not the algorithm's.
        fit(X[: 20 * n_components], gamma, n_components, threads, contestant.settings)
        touch_memory(_TOUCHED)
        memory = PeakMemory()
        seconds, first_passes = [], []
        for _ in range(contestant.repeats):
            begun = time.perf_counter()
            found = fit(X, gamma, n_components, threads, contestant.settings)
            seconds.append(found.seconds or time.perf_counter() - begun)
            first_passes.append(found.first_pass)
        return Fit(
            min(seconds),
            found.entries,
            found.peak_bytes or memory.above_baseline(),
            found.residual,
            min(first_passes),
            found.projections,
        )


def _ours(X: Floats, gamma: float, r: int, threads: int, settings: dict[str, Any]) -> _Found:
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
    return _Found(
        projections,
        last.entries / len(X) ** 2,
        float(last.residuals.max()),
        model.history_[0].seconds,
    )


def _hebbian(X: Floats, gamma: float, r: int, threads: int, settings: dict[str, Any]) -> _Found:
    return _ours(X, gamma, r, threads, {"eigen_solver": "kha/et", **settings})


def _rule(X: Floats, gamma: float, r: int, threads: int, settings: dict[str, Any]) -> _Found:
    """The papers' update, a pattern at a time, from rows; centring takes a pass of its own."""
    rng = np.random.default_rng(0)
    with Workers(threads) as workers:
        gram, _ = center_gram(
            ComputedGram(Gaussian(gamma), X, frame=FeatureSplit.of(X)), None, workers
        )
        step = np.full(r, _RULE_STEP / gram.mean_diagonal, dtype=X.dtype)
        A = rng.normal(size=(r, len(X))).astype(X.dtype)
        A /= np.sqrt(r * len(X) * gram.mean_diagonal).astype(X.dtype)
        for p in rng.permutation(len(X)):
            A = hebbian_step(A, gram.rows(np.array([p]))[0], p, step)
        projections = gram.multiply(A.T).T
    # The last product is for the judge.
    return _Found(projections, 1.5)


def _kernlab(X: Floats, gamma: float, r: int, threads: int, settings: dict[str, Any]) -> _Found:
    fit = kernlab_kha(X, gamma, r, passes=1)
    return _Found(fit.projections, peak_bytes=fit.peak_bytes, seconds=fit.seconds)


def _scikit(X: Floats, gamma: float, r: int, threads: int, settings: dict[str, Any]) -> _Found:
    from sklearn.decomposition import KernelPCA as ScikitKernelPCA

    model = ScikitKernelPCA(r, kernel="rbf", gamma=gamma, random_state=0, copy_X=False, **settings)
    return _Found(model.fit_transform(X).T, 1.0)


def _nystroem(X: Floats, gamma: float, r: int, threads: int, settings: dict[str, Any]) -> _Found:
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import Nystroem

    number = min(settings["landmarks"], len(X))
    features = Nystroem(gamma=gamma, n_components=number, random_state=0).fit_transform(X)
    return _Found(PCA(r, random_state=0).fit_transform(features).T, number / len(X))


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
    def gram(self) -> CenteredGram:
        """K', kept as far as memory allows."""
        source = ComputedGram(Gaussian(self.gamma), self.X)
        with Workers(self.threads) as workers:
            gram, _ = center_gram(CachedGram(source, read_budget(None).n_bytes), None, workers)
        return gram

    def excess_error(self, projections: Floats) -> float:
        """E/E_min − 1, in double precision."""
        norm = self.gram.squared_norm_estimate
        return excess_error(self.gram, projections, self.eigenvalues, norm)

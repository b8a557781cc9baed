"""Kernel PCA implementations to compare, each run in its own process; timing helper."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as ScikitKernelPCA
from sklearn.kernel_approximation import Nystroem, RBFSampler

from ikpca import KernelPCA
from ikpca.gram import CenteredGram, ComputedGram, center_gram, cross_gram, read_budget
from ikpca.gram.resources import Workers
from ikpca.gram.sources import CachedGram
from ikpca.kernels import FeatureSplit, Floats, Gaussian
from ikpca.solvers import hebbian_step
from ikpca_papers.memory import PeakMemory
from ikpca_papers.metrics import excess_error
from ikpca_papers.subprocesses import run_in_subprocess

#: η0 κ of the pattern-by-pattern rule, as tuned for KHA on digits in the papers.
_REFERENCE_STEP = 0.05

# With a larger eta kha stops with an error; its time does not depend on eta.
_KERNLAB_SCRIPT = """
suppressMessages(library(kernlab))
X <- as.matrix(read.csv("{rows}", header = FALSE))
elapsed <- system.time(
  fit <- kha(X, kernel = "rbfdot", kpar = list(sigma = {gamma}),
             features = {features}, eta = 1e-6, maxiter = {passes}))
write.table(predict(fit, X), "{projections}", sep = ",", row.names = FALSE, col.names = FALSE)
cat(elapsed[["elapsed"]])
"""


@dataclass(frozen=True)
class FitResult:
    """Result of one fit.

    Parameters
    ----------
    projections : ndarray of shape (r, l)
    entries : float or None
        Kernel entries evaluated, divided by l².
    first_pass : float
        Seconds of the pass that evaluates all of K; NaN if there are no passes.
    seconds : float or None
        Time of the whole fit; None until it is measured from outside.
    peak_bytes : int or None
        Peak memory above the loaded data.
    variance : float
        Mean variance of the projections over all repeats.
    """

    projections: Floats
    entries: float | None = None
    first_pass: float = float("nan")
    seconds: float | None = None
    peak_bytes: int | None = None
    variance: float = float("nan")


@dataclass(frozen=True)
class Contestant:
    """Implementation with its settings.

    Parameters
    ----------
    name : str
    fit : callable
        Called as ``fit(X, gamma, n_components, threads, seed, **settings)``. A function at module
        level, so that a child process can import it.
    settings : dict
    dtype : str
    max_rows : int or None
        Skip larger data, which would take hours.
    repeats : int
        Number of processes, each with one fit and a seed of its own; the median counts.
    """

    name: str
    fit: Callable[..., FitResult]
    settings: dict[str, Any] = field(default_factory=dict)
    dtype: str = "float32"
    max_rows: int | None = None
    repeats: int = 3


@dataclass(frozen=True)
class ScaleRow:
    """Cost and accuracy of one contestant; the variance is that of all projections."""

    name: str
    seconds: float
    entries: float | None
    peak_bytes: int | None
    residual: float
    excess_error: float | None
    variance: float


def fit_ikpca(
    X: Floats, gamma: float, n_components: int, threads: int, seed: int, **settings: Any
) -> FitResult:
    """Fit ``ikpca.KernelPCA``, by krylov unless the settings say otherwise."""
    model = KernelPCA(
        n_components,
        kernel="rbf",
        gamma=gamma,
        random_state=seed,
        n_jobs=threads,
        copy_X=False,
        **{"eigen_solver": "krylov", **settings},
    )
    projections = model.fit_transform(X).T
    if not model.history_:
        return FitResult(projections)
    last = model.history_[-1]
    return FitResult(
        projections,
        last.entries / len(X) ** 2,
        model.history_[0].seconds,
    )


def fit_kha_reference(
    X: Floats, gamma: float, n_components: int, threads: int, seed: int
) -> FitResult:
    """Run the papers' update, one pattern at a time; centering takes a pass of its own."""
    rng = np.random.default_rng(seed)
    with Workers(threads) as workers:
        source = ComputedGram(Gaussian(gamma), X, split=FeatureSplit.from_rows(X))
        gram, _ = center_gram(source, None, workers)
        step = np.full(n_components, _REFERENCE_STEP / gram.mean_diagonal, dtype=X.dtype)
        A = rng.normal(size=(n_components, len(X))).astype(X.dtype)
        A /= np.sqrt(n_components * len(X) * gram.mean_diagonal).astype(X.dtype)
        for p in rng.permutation(len(X)):
            A = hebbian_step(A, gram.rows(np.array([p]))[0], p, step)
        projections = gram.multiply(A.T).T
    # Half of K for centering and all of it for the pass; the last product only serves the error.
    return FitResult(projections, 1.5)


def fit_scikit_learn(
    X: Floats, gamma: float, n_components: int, threads: int, seed: int, **settings: Any
) -> FitResult:
    """Fit scikit-learn's ``KernelPCA``; its threads are those of BLAS."""
    model = ScikitKernelPCA(
        n_components, kernel="rbf", gamma=gamma, random_state=seed, copy_X=False, **settings
    )
    return FitResult(model.fit_transform(X).T, 1.0)


def fit_nystroem(
    X: Floats, gamma: float, n_components: int, threads: int, seed: int, landmarks: int
) -> FitResult:
    """Fit scikit-learn's ``PCA`` on ``Nystroem`` features."""
    number = min(landmarks, len(X))
    features = Nystroem(gamma=gamma, n_components=number, random_state=seed).fit_transform(X)
    return FitResult(PCA(n_components, random_state=0).fit_transform(features).T, number / len(X))


def fit_random_features(
    X: Floats, gamma: float, n_components: int, threads: int, seed: int, features: int
) -> FitResult:
    """Fit scikit-learn's ``PCA`` on random Fourier features."""
    sampler = RBFSampler(gamma=gamma, n_components=features, random_state=seed)
    projections = PCA(n_components, random_state=0).fit_transform(sampler.fit_transform(X)).T
    return FitResult(projections, 0.0)


@cache
def has_kernlab() -> bool:
    """Check that Rscript is installed with the package kernlab."""
    if shutil.which("Rscript") is None:
        return False
    command = ["Rscript", "-e", "library(kernlab)"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def fit_kernlab(
    X: Floats, gamma: float, n_components: int, threads: int = 1, seed: int = 0, *, passes: int
) -> FitResult:
    """Run ``kha`` of R's kernlab: seconds of the fit alone, peak memory of the whole R process."""
    with tempfile.TemporaryDirectory() as folder:
        names = ("rows.csv", "projections.csv", "kha.R")
        rows, projections, script = (Path(folder, name) for name in names)
        np.savetxt(rows, X, delimiter=",")
        script.write_text(
            _KERNLAB_SCRIPT.format(
                rows=rows, projections=projections, gamma=gamma, features=n_components,
                passes=passes,
            )
        )  # fmt: skip
        finished = subprocess.run(["Rscript", script], capture_output=True, text=True, check=True)
        result = np.loadtxt(projections, delimiter=",", ndmin=2).T
    return FitResult(result, seconds=float(finished.stdout), peak_bytes=_peak_of_children())


def _peak_of_children() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def run_contestant(
    contestant: Contestant, load: Callable[[], Floats], gamma: float, n_components: int,
    threads: int,
) -> FitResult:  # fmt: skip
    """Measure time and memory of the first fit of a process; return the median of some processes.

    ``load`` must be picklable; it is called in each process.
    """
    fits: list[FitResult] = [
        run_in_subprocess(
            contestant.name,
            partial(_measure, contestant, load, gamma, n_components, threads, seed),
            lambda message: None,
        )
        for seed in range(contestant.repeats)
    ]
    variances = [np.square(fit.projections, dtype=np.float64).sum() for fit in fits]
    median = sorted(fits, key=attrgetter("seconds"))[len(fits) // 2]
    return replace(median, variance=float(np.mean(variances)))


def _measure(
    contestant: Contestant,
    load: Callable[[], Floats],
    gamma: float,
    n_components: int,
    threads: int,
    seed: int,
    send: Callable[[Any], None],
) -> FitResult:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(threads):
        X = load().astype(contestant.dtype)
        fit = partial(
            contestant.fit, gamma=gamma, n_components=n_components, threads=threads, seed=seed,
            **contestant.settings,
        )  # fmt: skip
        memory = PeakMemory()
        start = time.perf_counter()
        result = fit(X)
        return replace(
            result,
            seconds=result.seconds or time.perf_counter() - start,
            peak_bytes=result.peak_bytes or memory.above_baseline(),
        )


@dataclass(frozen=True)
class Reference:
    """Exact eigenvalues and K' in double precision, from which all errors are computed."""

    X: Floats
    gamma: float
    n_components: int
    threads: int

    @cached_property
    def eigenvalues(self) -> Floats:
        """Leading eigenvalues, to at least nine digits."""
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
        """K', cached as far as memory allows."""
        source = ComputedGram(Gaussian(self.gamma), self.X)
        with Workers(self.threads) as workers:
            gram, _ = center_gram(CachedGram(source, read_budget(None).n_bytes), None, workers)
        return gram

    def excess_error(self, projections: Floats) -> float:
        """Compute E/E_min − 1."""
        norm = self.gram.squared_norm_estimate
        return excess_error(self.gram, projections, self.eigenvalues, norm)


def sampled_residual(
    X: Floats, gamma: float, projections: Floats, sample: int = 2000, seed: int = 7
) -> float:
    """Estimate the largest ‖K'v − λv‖/λ₁ from rows of K, with λ = ‖y‖² and v = y/√λ."""
    lengths = np.linalg.norm(projections.astype(np.float64), axis=1)
    V = projections.T / lengths
    rows = np.sort(np.random.default_rng(seed).choice(len(X), min(sample, len(X)), replace=False))
    products = [cross_gram(Gaussian(gamma), X[part], X) @ V for part in np.array_split(rows, 20)]
    R = np.vstack(products) - V[rows] * lengths**2
    # Its own mean removes that of KV over all rows.
    R -= R.mean(axis=0)
    squares = np.square(R).mean(axis=0) * len(X)
    return float(np.sqrt(squares.max()) / np.square(lengths).max())


def curved_rows(n_rows: int, n_features: int, n_latent: int) -> Floats:
    """Draw noisy rows near a curved surface of few dimensions, in single precision."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n_rows, n_latent)).astype(np.float32)
    rows = np.tanh(Z @ rng.normal(size=(n_latent, n_features)).astype(np.float32))
    noisy: Floats = rows + 0.1 * rng.normal(size=rows.shape).astype(np.float32)
    return noisy


def best_seconds(
    task: Callable[[], object], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the shortest time of several calls."""
    seconds = []
    for _ in range(repeats):
        start = clock()
        task()
        seconds.append(clock() - start)
    return min(seconds)

"""One pass over many rows: captured variance and memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ikpca import IncrementalKernelPCA, KernelPCA
from ikpca.kernels import Floats
from ikpca_papers.limits import Claim
from ikpca_papers.measures import captured_variance
from ikpca_papers.memory import PeakMemory
from ikpca_papers.subprocesses import Tell, run_alone


@dataclass(frozen=True)
class LargeStream:
    """A stream of many rows.

    Parameters
    ----------
    rows, library_rows : int
    seconds : float
    peak_bytes : int or None
        By the operating system's count, above the rows, while streaming.
    captured : float
        Σ of the variance of all rows along the components, times their number.
    claimed : float
        The same by the model's own eigenvalues.
    compression_error : float
        The largest that the model reports.
    """

    rows: int
    library_rows: int
    seconds: float
    peak_bytes: int | None
    captured: float
    claimed: float
    compression_error: float


def stream_once(
    load: Callable[[], Floats], n_components: int = 16, threads: int = 1, **settings: Any
) -> LargeStream:
    """One pass over the rows, in a process of its own."""
    task = partial(stream_rows, load, n_components, threads, settings)
    return run_alone("stream", task, lambda message: None)


def stream_rows(
    load: Callable[[], Floats], n_components: int, threads: int, settings: dict[str, Any],
    tell: Tell | None = None,
) -> LargeStream:  # fmt: skip
    """One pass over the rows, in this process."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(threads):
        X = load()
        IncrementalKernelPCA(n_components, **settings).fit(X[: 20 * n_components])
        memory = PeakMemory()
        begun = time.perf_counter()
        model = IncrementalKernelPCA(n_components, **settings).fit(X)
        seconds, peak = time.perf_counter() - begun, memory.above_baseline()
        return LargeStream(
            len(X),
            len(model.library_),
            seconds,
            peak,
            captured_variance(model.transform(X)),
            float(np.sum(model.eigenvalues_[:n_components], dtype=np.float64)),
            float(np.max(model.compression_error_)),
        )


def exact_eigenvalues(X: Floats, n_components: int, threads: int = 1, **kernel: Any) -> Floats:
    """Of all rows, by krylov within 600 MB; an error of 1e-4 in a residual is 1e-8 here."""
    model = KernelPCA(
        n_components, eigen_solver="krylov", tol=1e-4, max_memory="600MB", copy_X=False,
        n_jobs=threads, random_state=0, **kernel,
    )  # fmt: skip
    return np.asarray(model.fit(X).eigenvalues_, dtype=np.float64)


def large_claims(found: LargeStream, exact: Floats, library: int, megabytes: float) -> list[Claim]:
    """Nearly all of the variance, from few vectors, in little memory."""
    peak = float("nan") if found.peak_bytes is None else found.peak_bytes / 1e6
    return [
        Claim("vectors in the library", found.library_rows, library),
        Claim("peak above the data in MB", peak, megabytes),
        Claim(
            f"variance of {found.rows:,} rows along {len(exact)} components, share of the exact",
            found.captured / float(exact.sum()), 0.95, "at least",
        ),
    ]  # fmt: skip

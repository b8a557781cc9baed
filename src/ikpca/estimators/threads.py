"""One owner of the thread count."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

__all__ = ["limited_threads", "n_threads", "one_thread"]


def n_threads(n_jobs: int | None) -> int:
    """``n_jobs`` threads that share tiles; None takes as many as BLAS would."""
    return _blas_threads() if n_jobs is None else _effective(n_jobs)


def limited_threads(n_jobs: int | None) -> AbstractContextManager[object]:
    """Limit BLAS to ``n_jobs`` threads; None leaves it as it is, −1 takes every core."""
    if n_jobs is None:
        return nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(_effective(n_jobs), user_api="blas")


def one_thread() -> AbstractContextManager[object]:
    """A single thread for BLAS and OpenMP: factorisations and sums in several end in other bits."""
    limited: AbstractContextManager[object] = _controller().limit(limits=1)
    return limited


@cache
def _controller() -> Any:
    """Found once: to look for libraries takes longer than to learn from a row."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _effective(n_jobs: int) -> int:
    """A count, or for −1, −2, … all cores, all but one, …; threads need no leave of joblib."""
    from joblib import cpu_count

    return n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)


def _blas_threads() -> int:
    from threadpoolctl import threadpool_info

    counts = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(counts, default=1)

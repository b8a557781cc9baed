"""One owner of the thread count."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

__all__ = ["limited_threads"]


def limited_threads(n_jobs: int | None) -> AbstractContextManager[object]:
    """Limit BLAS to ``n_jobs`` threads; None leaves it as it is, −1 takes every core."""
    if n_jobs is None:
        return nullcontext()
    from joblib import effective_n_jobs
    from threadpoolctl import threadpool_limits

    return threadpool_limits(effective_n_jobs(n_jobs))

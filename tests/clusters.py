"""Small Dask clusters for tests, of threads or of processes."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

import dask
from distributed import Client, LocalCluster


@contextmanager
def cluster_of(n_workers, processes=False):
    """A client of so many single-threaded workers."""
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "120s"}),
        LocalCluster(
            n_workers=n_workers,
            processes=processes,
            threads_per_worker=1,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client

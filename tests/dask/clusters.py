"""Small Dask clusters for tests, of threads or of processes."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager, suppress

import psutil
import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from distributed import Client, LocalCluster

import dask


@contextmanager
def cluster_of(n_workers, processes=False):
    """Client of single-threaded workers."""
    with (
        dask.config.set(
            {
                "distributed.comm.timeouts.connect": "120s",
                # On a busy machine a killed worker takes its time to start again.
                "distributed.deploy.lost-worker-timeout": "120s",
            }
        ),
        LocalCluster(
            n_workers=n_workers,
            processes=processes,
            threads_per_worker=1,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


_ELSEWHERE = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


@contextmanager
def cluster_elsewhere(folder):
    """Address of a cluster in separate processes, and a function that kills all of them."""
    script = folder / "cluster.py"
    script.write_text(_ELSEWHERE)
    process = subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip

    def kill():
        if process.poll() is None:
            parent = psutil.Process(process.pid)
            # The parent first: it starts killed workers again.
            for child in [parent, *parent.children(recursive=True)]:
                with suppress(psutil.NoSuchProcess):
                    child.kill()
            process.wait()

    try:
        yield process.stdout.readline().strip(), kill
    finally:
        kill()

"""A fit survives killed workers, and resumes on another cluster."""

from __future__ import annotations

import os
import threading

import numpy as np
import psutil
import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

import dask.array as da
from distributed import Client

import ikpca
import ikpca.dask
from ikpca.errors import ClusterLost
from ikpca.solvers import RunSettings
from tests.dask.clusters import cluster_elsewhere, cluster_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client():
    with cluster_of(2, processes=True) as client:
        yield client


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(200, 5))


def settings(solver, **others):
    given = {"n_components": 3, "kernel": "rbf", "gamma": 0.1, "max_iter": 3, "random_state": 0}
    return {**given, "eigen_solver": solver, **others}


def blocks_of(X):
    return da.from_array(X, chunks=(70, -1))


def same(model, expected):
    for name in ("coefficients_", "landmark_coefficients_"):
        if hasattr(expected, name):
            coefficients = getattr(expected, name)
            tolerance = 1e-10 * float(np.abs(coefficients).max())
            np.testing.assert_allclose(getattr(model, name), coefficients, rtol=0, atol=tolerance)


def at_task(monkeypatch, number, action):
    """Call a function before tasks are submitted; the list records the calls."""
    seen = []

    def wrap(method):
        def call(self, *arguments, **options):
            seen.append(method.__name__)
            if len(seen) == number + 1:
                action()
            return method(self, *arguments, **options)

        return call

    for method in (Client.submit, Client.compute):
        monkeypatch.setattr(Client, method.__name__, wrap(method))
    return seen


def process_of_one(client):
    """Return the process of a worker, which cannot be queried while it computes."""
    client.wait_for_workers(1)
    workers = client.scheduler_info(n_workers=-1)["workers"]
    address = sorted(workers)[-1]
    return client.run(os.getpid, workers=[address])[address]


@pytest.mark.parametrize(
    ("solver", "task"),
    [("krylov", 2), ("krylov", 15), ("krylov", 30), ("nystrom", 0)],
)
def test_fit_with_a_killed_worker_equals_a_local_fit(client, X, monkeypatch, solver, task):
    """A worker that is killed before tasks are submitted loses its blocks."""
    client.wait_for_workers(2, timeout=120)
    kill = lambda: psutil.Process(process_of_one(client)).kill()  # noqa: E731
    seen = at_task(monkeypatch, task, kill)
    model = ikpca.dask.KernelPCA(**settings(solver), client=client).fit(blocks_of(X))
    assert len(seen) > task
    same(model, ikpca.KernelPCA(**settings(solver)).fit(X))


@pytest.mark.parametrize("seed", [0, 1])
def test_worker_killed_at_random(client, X, monkeypatch, seed):
    """Kill a worker before a task or during it."""
    rng = np.random.default_rng(seed)
    client.wait_for_workers(2, timeout=120)
    process = psutil.Process(process_of_one(client))
    timer = threading.Timer(rng.uniform(0, 0.02), process.kill)
    task = int(rng.integers(2, 50))
    seen = at_task(monkeypatch, task, timer.start)
    model = ikpca.dask.KernelPCA(**settings("krylov"), client=client).fit(blocks_of(X))
    timer.join()
    assert len(seen) > task
    same(model, ikpca.KernelPCA(**settings("krylov")).fit(X))


def test_resume_on_another_cluster(tmp_path, monkeypatch):
    """All processes of the cluster are killed in the second pass."""
    # More rows than landmarks, so that krylov needs several passes.
    X = np.random.default_rng(0).normal(size=(600, 5))
    given = settings("krylov", checkpoint=tmp_path / "checkpoint")
    with cluster_elsewhere(tmp_path) as (address, kill), Client(address, timeout=20) as client:
        monkeypatch.setattr(RunSettings, "outcome", lambda *_: kill())
        with pytest.raises(ClusterLost, match="checkpoint"):
            ikpca.dask.KernelPCA(**given, client=client).fit(blocks_of(X))
    monkeypatch.undo()
    # Processes again: Dask gives each one thread of BLAS, on which the bits depend.
    with cluster_of(2, processes=True) as client:
        resumed = ikpca.dask.KernelPCA(**given, client=client).fit(blocks_of(X))
        whole = ikpca.dask.KernelPCA(**settings("krylov"), client=client).fit(blocks_of(X))
    assert [record.number for record in resumed.history_] == [1, 2, 3]
    assert np.array_equal(resumed.coefficients_, whole.coefficients_)

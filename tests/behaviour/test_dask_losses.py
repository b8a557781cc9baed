"""A worker that is killed in the middle of a fit changes nothing but the time it takes."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

import dask.array as da

import ikpca
import ikpca.dask
from ikpca.engines.cluster import Cluster
from tests.clusters import cluster_of


@pytest.fixture(scope="module")
def client():
    with cluster_of(2, processes=True) as client:
        yield client


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(200, 5))


def kill_one(client):
    """SIGKILL to the process of a worker, as the system's memory guard would."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    address = sorted(workers)[-1]
    os.kill(client.run(os.getpid, workers=[address])[address], signal.SIGKILL)


@pytest.mark.parametrize(
    ("solver", "method", "call"),
    [
        ("kha/et", "do", 11),
        ("kha-smd", "do", 20),
        ("krylov", "multiply", 0),
        ("krylov", "centre", 0),
    ],
)
def test_a_killed_worker(client, X, monkeypatch, solver, method, call):
    """Killed right before a call, so that it is lost with what it held, and has to answer."""
    attempt, seen = Cluster.attempt, []

    def killing(self, name, arguments, shards):
        if name == method:
            seen.append(name)
            if len(seen) == call + 1:
                kill_one(client)
        return attempt(self, name, arguments, shards)

    monkeypatch.setattr(Cluster, "attempt", killing)
    client.wait_for_workers(2, timeout=120)
    given = {"n_components": 3, "kernel": "rbf", "gamma": 0.1, "eigen_solver": solver,
             "max_iter": 3, "random_state": 0}  # fmt: skip
    if solver != "krylov":
        given["block_size"] = 50
    model = ikpca.dask.KernelPCA(**given, client=client)
    model.fit(da.from_array(X, chunks=(70, -1)))
    expected = ikpca.KernelPCA(**given).fit(X)
    assert len(seen) > call
    assert model.traffic_.rebuilt >= 1
    scale = float(np.abs(expected.coefficients_).max())
    np.testing.assert_allclose(
        model.coefficients_, expected.coefficients_, rtol=0, atol=1e-10 * scale
    )

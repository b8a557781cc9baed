"""The kernel matrix on a cluster equals that of one process."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

import dask.array as da

from ikpca.dask.gram import DaskGram
from ikpca.gram import ComputedGram, center_gram, full_matrix, multiply, read_budget
from ikpca.kernels import Gaussian, Laplacian, Linear, Polynomial
from ikpca.solvers.landmarks import LandmarkStart
from tests.dask.clusters import cluster_of

pytestmark = pytest.mark.slow

N_SAMPLES, R, SIDE = 150, 4, 32
KERNEL = Gaussian(0.2)
#: Uneven on purpose; one has a single row.
BLOCKS = {1: (150,), 2: (97, 53), 3: (60, 1, 89), 4: (20, 50, 35, 45)}


@pytest.fixture(scope="module")
def client():
    with cluster_of(3) as client:
        yield client


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(N_SAMPLES, 5)) * [3, 2, 1, 1, 0.5]


def gram_of(client, D, kernel):
    gram = DaskGram(client, D, kernel, read_budget(None))
    gram.side = SIDE
    return gram


@pytest.fixture(params=BLOCKS)
def source(request, client, X):
    chunks = (BLOCKS[request.param], (5,))
    return gram_of(client, da.from_array(X, chunks=chunks), KERNEL)


@pytest.fixture
def local(X):
    return ComputedGram(KERNEL, X, SIDE)


def close(found, expected, tolerance=1e-12):
    scale = float(np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


def test_matrix_equals_that_of_one_process(source, local):
    close(full_matrix(source), full_matrix(local))
    close(source.diagonal(), local.diagonal())
    rows, out = np.array([149, 0, 61, 60]), np.empty((4, 90))
    source.fill(rows, slice(30, 120), out)
    close(out, full_matrix(local)[rows, 30:120])


def test_products_and_means(source, local):
    V = np.random.default_rng(1).normal(size=(N_SAMPLES, 3))
    (far, KV), (near, expected) = center_gram(source, V), center_gram(local, V)
    close(KV, expected)
    close(far.means.row_means, near.means.row_means)
    close(far.multiply(V), near.multiply(V))
    assert far.squared_norm_estimate == pytest.approx(near.squared_norm_estimate, rel=1e-10)


def test_a_product_computes_half_of_the_matrix(source):
    source.product(np.ones((N_SAMPLES, 3)))
    diagonal = sum(size**2 for size in BLOCKS[len(source.blocks)])
    assert source.entries <= N_SAMPLES**2 // 2 + diagonal


@pytest.mark.parametrize("kernel", [Laplacian(0.2), Linear(), Polynomial(2, 0.1, 1.0)], ids=repr)
def test_other_kernels(client, X, kernel):
    V = np.random.default_rng(1).normal(size=(N_SAMPLES, 3))
    found = gram_of(client, da.from_array(X, chunks=(70, -1)), kernel)
    close(multiply(found, V), multiply(ComputedGram(kernel, X, SIDE), V))


def test_rare_features(client, monkeypatch):
    """Pairs of blocks multiply features in which few rows differ as sparse matrices."""
    monkeypatch.setattr("ikpca.kernels.radial._MIN_ROWS", 100)
    rng = np.random.default_rng(0)
    rare = (rng.random((N_SAMPLES, 80)) < 0.02) * rng.normal(size=(N_SAMPLES, 80))
    X = np.hstack([rng.normal(size=(N_SAMPLES, 5)), np.full((N_SAMPLES, 3), 2.0), rare])
    found = gram_of(client, da.from_array(X, chunks=(70, -1)), KERNEL)
    V = rng.normal(size=(N_SAMPLES, 3))
    close(multiply(found, V), multiply(ComputedGram(KERNEL, X), V))


def test_landmark_start(source, local):
    chosen = np.arange(0, N_SAMPLES, 3)
    remote, expected = (LandmarkStart(K, R, chosen) for K in (source, local))
    close(remote.eigenvalues, expected.eigenvalues)
    close(np.abs(remote.projections), np.abs(expected.projections), 1e-10)


def test_map_rows_keeps_order(source, X):
    blocks = list(source.map_rows(lambda rows, start: (start, rows)))
    assert all(np.array_equal(rows, X[start : start + len(rows)]) for start, rows in blocks)
    assert sum(len(rows) for _, rows in blocks) == N_SAMPLES
    assert [start for start, _ in blocks] == sorted(start for start, _ in blocks)

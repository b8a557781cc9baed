"""Shards on a cluster against the same arrays in one process."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

import dask.array as da

from ikpca.dask.cluster import Cluster
from ikpca.dask.engine import fold_within
from ikpca.dask.gram import DaskGram, assign_pairs, tree_levels
from ikpca.dask.store import DaskStore
from ikpca.gram import COMPILER_BYTES, ComputedGram, center_gram, full_matrix
from ikpca.kernels import Gaussian, Linear
from ikpca.solvers import LocalStore, kha, krylov, landmark_start
from tests.clusters import cluster_of

N_SAMPLES, R, SIDE = 150, 4, 32
KERNEL = Gaussian(0.2)
#: Uneven on purpose; one has a single row.
SHARDS = {1: (150,), 2: (97, 53), 3: (60, 1, 89), 4: (20, 50, 35, 45)}


@pytest.fixture(scope="module")
def client():
    with cluster_of(3) as client:
        yield client


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(N_SAMPLES, 5)) * [3, 2, 1, 1, 0.5]


@pytest.fixture(params=SHARDS)
def source(request, client, X):
    sizes = SHARDS[request.param]
    cluster = Cluster(client, da.from_array(X, chunks=(sizes, (5,))), KERNEL, SIDE)
    yield DaskGram(cluster, KERNEL)
    cluster.close()


@pytest.fixture
def local(X):
    return ComputedGram(KERNEL, X, SIDE)


def close(found, expected, tolerance=1e-12):
    scale = float(np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize(
    ("kernel", "room", "way"),
    [
        (KERNEL, 10 * COMPILER_BYTES, "apart"),
        (KERNEL, COMPILER_BYTES, "together"),
        (KERNEL, 20 * 10**6, None),
        (Linear(), 10 * COMPILER_BYTES, None),
    ],
)
def test_workers_with_little_memory_do_without_the_compiler_first(kernel, room, way):
    found, taken = fold_within(kernel, 16 * 10**6, room)
    assert found == way
    assert taken <= 0.6 * room
    assert taken > 0 if way else taken == 0


def test_the_matrix_itself(source, local):
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


def test_a_product_uses_symmetry_and_moves_narrow_matrices(source):
    """Every pair of shards is worked on once; to this process comes one matrix as wide as V."""
    V = np.ones((N_SAMPLES, 3))
    source.product(V, square=False)
    half, diagonal = N_SAMPLES**2 // 2, sum(size**2 for size in source.cluster.sizes)
    assert source.entries <= half + diagonal
    assert source.cluster.traffic.bytes_in == V.nbytes


def held(source):
    return source.cluster.call("held", [()] * len(source.cluster.sizes))


def test_nobody_holds_more_than_two_tiles_of_visitors(source):
    """Those that are worked on, and those that arrive; and no kernel values but a tile's."""
    V = np.ones((N_SAMPLES, 3))
    source.product(V, square=False)
    for shard, size in zip(held(source), source.cluster.sizes, strict=True):
        assert shard.visitors <= 2 * SIDE * 5 * 8
        assert shard.rows == size * 5 * 8
        assert shard.tiles <= SIDE * SIDE * 8
        assert shard.vectors == 3 * V.nbytes


def test_nobody_holds_more_than_two_blocks_of_kernel_rows(source):
    """Over its own columns; a block's visitors are gone when their kernel values are there."""
    options = kha.HebbianOptions("kha/et", init="random", max_iter=1, block_size=16)
    kha.solve_kha(source, R, options, seed=3, open_store=partial(DaskStore, source))
    for shard, size in zip(held(source), source.cluster.sizes, strict=True):
        assert shard.visitors <= max(16, 2 * SIDE) * 5 * 8
        assert shard.strips <= 2 * (16 + 2 + R) * size * 8
        assert shard.columns == 4 * R * size * 8


def test_landmark_rows(source, local):
    chosen = np.arange(0, N_SAMPLES, 3)
    far, near = (landmark_start(K, R, chosen) for K in (source, local))
    close(far.eigenvalues, near.eigenvalues)
    close(np.abs(far.projections), np.abs(near.projections), 1e-10)


@pytest.mark.parametrize("method", ["kha", "kha/t", "kha/et", "kha-smd"])
def test_hebbian_passes(source, local, method):
    options = kha.HebbianOptions(method, init="landmarks", max_iter=3, block_size=16)
    expected = kha.solve_kha(local, R, options, seed=3, open_store=LocalStore)
    found = kha.solve_kha(source, R, options, seed=3, open_store=partial(DaskStore, source))
    for name in ("coefficients", "projections", "eigenvalues"):
        close(getattr(found, name), getattr(expected, name), 1e-10)
    assert len(found.records) == 3


def test_krylov_passes(source, local):
    options = krylov.KrylovOptions(max_iter=3, n_landmarks=50)
    expected = krylov.solve_krylov(local, R, options, seed=3)
    found = krylov.solve_krylov(source, R, options, seed=3)
    close(found.eigenvalues, expected.eigenvalues, 1e-10)
    # Components have their length from the solver, but their sign from the estimator.
    signs = np.sign(np.einsum("il,il->i", found.coefficients, expected.projections))[:, None]
    for name in ("coefficients", "projections"):
        close(signs * getattr(found, name), getattr(expected, name), 1e-10)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 7])
def test_every_pair_of_rows_is_somebodys_business_once(number):
    sizes = [5 + 3 * i for i in range(number)]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    seen = np.zeros((starts[-1], starts[-1]), dtype=int)
    for host, plan in enumerate(assign_pairs(sizes, 4)):
        own = slice(starts[host], starts[host + 1])
        seen[own, own] += 1
        for visit in plan:
            assert visit.rows.stop - visit.rows.start <= 4
            guests = slice(*(starts[visit.shard] + np.array([visit.rows.start, visit.rows.stop])))
            part = slice(*(starts[host] + np.array([visit.columns.start, visit.columns.stop])))
            seen[guests, part] += 1
            seen[part, guests] += 1
    assert (seen == 1).all()


@pytest.mark.parametrize("number", [1, 2, 3, 6, 8])
def test_a_tree_takes_in_everybody_once(number):
    held = [{i} for i in range(number)]
    for pairs in tree_levels(number):
        for a, b in pairs:
            assert not held[a] & held[b]
            held[a] |= held[b]
    assert held[0] == set(range(number))


def one_block(client, n_samples):
    """Bytes and messages of a block in the middle of a pass."""
    X = np.random.default_rng(0).normal(size=(n_samples, 5))
    cluster = Cluster(client, da.from_array(X, chunks=(n_samples // 2, 5)), KERNEL, 512)
    source = DaskGram(cluster, KERNEL)
    rows = np.ones((R, n_samples))
    gram, products = center_gram(source, rows.T)
    store = DaskStore(source, gram, rows, products.T)
    blocks = list(np.random.default_rng(1).permutation(n_samples)[:64].reshape(4, 16))
    store.project(blocks[0], blocks[1:3])
    store.transform(np.eye(R), blocks[0], np.ones((R, 16)))
    traffic = cluster.traffic
    before = (traffic.block_messages, traffic.block_bytes)
    store.project(blocks[1], blocks[2:4])
    return traffic.block_messages - before[0], traffic.block_bytes - before[1]


def test_a_block_is_one_message_per_shard_whatever_the_number_of_rows(client):
    small, large = one_block(client, 200), one_block(client, 800)
    assert small == large
    assert small[0] == 2

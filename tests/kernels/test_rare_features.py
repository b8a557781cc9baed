"""Rare features are multiplied separately; kernel values do not change."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from ikpca import KernelPCA
from ikpca.gram import Budget, ComputedGram, multiply
from ikpca.gram.resources import Workers
from ikpca.gram.sources import TILE, plan_source
from ikpca.kernels import FeatureSplit, Gaussian
from tests.pairwise import pairwise

N_ROWS, N_RARE = 8300, 80
KERNEL = Gaussian(0.3)
TOLERANCE = {np.float64: 1e-13, np.float32: 5e-6}


def rows_with(n_rare, n_rows=N_ROWS, dtype=np.float64, share=0.02):
    """Four features that vary, two constant ones, and some that are 0.25 in most rows."""
    generator = np.random.default_rng(0)
    rare = np.full((n_rows, n_rare), 0.25)
    differing = generator.random(rare.shape) < share
    rare[differing] = generator.normal(size=differing.sum())
    X = np.hstack([generator.normal(size=(n_rows, 4)), np.full((n_rows, 2), 3.0), rare])
    return X[:, generator.permutation(X.shape[1])].astype(dtype)


def exact(X, Z):
    X, Z = X.astype(np.float64), Z.astype(np.float64)
    squares = np.square(X).sum(axis=1)[:, None] + np.square(Z).sum(axis=1) - 2 * X @ Z.T
    return np.exp(-KERNEL.gamma * squares)


@pytest.fixture(scope="module", params=[np.float64, np.float32], ids=["float64", "float32"])
def dtype(request):
    return request.param


@pytest.fixture(scope="module")
def X(dtype):
    return rows_with(N_RARE, dtype=dtype)


@pytest.fixture(scope="module")
def source(X):
    return ComputedGram(KERNEL, X, split=FeatureSplit.from_rows(X))


def test_rare_features_are_excluded_from_the_dense_product(X, dtype):
    split = FeatureSplit.from_rows(X)
    right = KERNEL.right_operand(X, split)
    left = KERNEL.left_from_right(right.copy())
    assert split.dense.sum() == 4
    assert split.sparse.sum() == N_RARE
    assert (~(split.dense | split.sparse)).sum() == 2
    assert left.dense.shape == right.dense.shape == (N_ROWS, 4 + 2)
    assert left.sparse.shape == right.sparse.shape == (N_ROWS, N_RARE)
    assert left.sparse.dtype == left.dense.dtype == dtype
    assert right.sparse.nnz == split.nnz < 0.03 * N_ROWS * N_RARE


def test_operand_size_equals_the_split(X):
    split = FeatureSplit.from_rows(X)
    right = KERNEL.right_operand(X, split)
    kept = right.sparse
    taken = right.dense.nbytes + kept.data.nbytes + kept.indices.nbytes + kept.indptr.nbytes
    assert taken == pytest.approx(split.operand_bytes(N_ROWS), abs=8)


@pytest.mark.parametrize(
    "X",
    [rows_with(N_RARE, n_rows=1000), rows_with(63), rows_with(N_RARE, share=0.07)],
    ids=["few rows", "few rare features", "rare but not enough"],
)
def test_dense_product_where_a_split_is_slower(X):
    split = FeatureSplit.from_rows(X)
    right = KERNEL.right_operand(X, split)
    assert not split.sparse.any()
    assert right.sparse is None
    assert right.dense.shape[1] == X.shape[1] - 2 + 2


def test_a_feature_whose_first_rows_differ_is_no_less_rare():
    X = rows_with(N_RARE)
    differing_first = np.sort(X == 0.25, axis=0)
    X = np.where(differing_first, 0.25, X + 1)
    assert (X[:9] != 0.25).all()
    assert FeatureSplit.from_rows(X).sparse.sum() == N_RARE


@pairwise(
    strength=1,
    columns=[slice(0, N_ROWS), slice(1000, 1500), slice(8299, 8300)],
    rows=[slice(0, 600), slice(7900, N_ROWS), [7, 7, 8299, 0]],
)
def test_tiles_equal_exact_kernel_values(source, X, dtype, rows, columns):
    rows = rows if isinstance(rows, slice) else np.array(rows)
    out = np.full((len(X[rows]), columns.stop - columns.start), np.nan, dtype=dtype)
    source.fill(rows, columns, out)
    np.testing.assert_allclose(out, exact(X[rows], X[columns]), atol=TOLERANCE[dtype])


def test_tiles_after_a_memory_error(X, dtype, monkeypatch):
    """After the error, the operands of the earlier rows are not used for others."""
    source = ComputedGram(KERNEL, X, split=FeatureSplit.from_rows(X))
    left_from_right = Gaussian.left_from_right
    out = np.empty((30, 40), dtype=dtype)
    source.fill(slice(0, 30), slice(0, 40), out)

    def failing(self, right):
        raise MemoryError

    monkeypatch.setattr(Gaussian, "left_from_right", failing)
    with pytest.raises(MemoryError):
        source.fill(slice(50, 80), slice(0, 40), out)
    monkeypatch.setattr(Gaussian, "left_from_right", left_from_right)
    source.fill(slice(50, 80), slice(0, 40), out)
    np.testing.assert_allclose(out, exact(X[50:80], X[:40]), atol=TOLERANCE[dtype])


@pytest.mark.parametrize("columns", [slice(None), slice(-7, None), slice(8290, 9999)])
def test_columns_as_slices_of_any_kind(source, X, dtype, columns):
    expected = exact(X[:5], X[columns])
    board = np.zeros((5, expected.shape[1] + 50), dtype=dtype)
    source.fill(slice(0, 5), columns, board[:, 25:-25])
    np.testing.assert_allclose(board[:, 25:-25], expected, atol=TOLERANCE[dtype])
    assert not board[:, :25].any()
    assert not board[:, -25:].any()


def test_rounding_of_rows_that_differ_in_many_rare_features():
    """Added one by one to the norms, seven hundred terms were rounded three times as much."""
    generator = np.random.default_rng(0)
    X = np.hstack([generator.random((N_ROWS, 4)), np.zeros((N_ROWS, 700))])
    X[: N_ROWS // 25, 4:] = 3 + generator.random((N_ROWS // 25, 700))
    X = X.astype(np.float32)
    split, few = FeatureSplit.from_rows(X), slice(0, N_ROWS // 25)
    assert split.sparse.sum() == 700
    errors = []
    dense = FeatureSplit(split.origin, split.dense | split.sparse, np.zeros_like(split.sparse))
    for way in (split, dense):
        out = np.empty((few.stop, few.stop), dtype=np.float32)
        ComputedGram(Gaussian(1 / 50), X, split=way).fill(few, few, out)
        squares = np.square(X[few].astype(np.float64)[:, None] - X[few]).sum(axis=2)
        errors.append(np.abs(out - np.exp(-squares / 50)).max())
    assert errors[0] <= errors[1]


@pytest.fixture
def traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("rows", [slice(1000, 2000), np.arange(1000) * 2], ids=["tile", "rows"])
def test_one_left_operand_at_a_time(rows, traced):
    X = np.random.default_rng(0).normal(size=(2000, 500))
    source, out = ComputedGram(KERNEL, X, split=FeatureSplit.from_rows(X)), np.empty((1000, 10))
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    source.fill(slice(0, 1000), slice(0, 10), out)
    source.fill(rows, slice(0, 10), out)
    now, peak = tracemalloc.get_traced_memory()
    assert peak - before < 1.1 * 1000 * 502 * 8
    assert now - before < 10_000


def test_larger_budgets_have_no_smaller_tiles_and_no_fewer_threads():
    X = rows_with(N_RARE)
    plans = [
        plan_source(KERNEL, X, Budget(n_bytes * 10**6, explicit=True), 0, 2)
        for n_bytes in (20, 30, 40, 50, 60, 80, 100, 150, 300)
    ]
    sides = [plan.side for _, plan in plans]
    assert sides == sorted(sides)
    assert sides[-1] == TILE
    threads = [plan.threads for _, plan in plans]
    assert threads == sorted(threads)


def test_tiles_in_a_view(source, X, dtype):
    board = np.zeros((40, 300), dtype=dtype)
    source.fill(slice(0, 20), slice(100, 250), board[::2, ::2])
    np.testing.assert_allclose(board[::2, ::2], exact(X[:20], X[100:250]), atol=TOLERANCE[dtype])
    assert not board[1::2].any()
    assert not board[:, 1::2].any()


def test_result_does_not_depend_on_threads(source, dtype):
    V = np.random.default_rng(2).normal(size=(N_ROWS, 3)).astype(dtype)
    result = []
    for n_threads in (1, 2):
        with Workers(n_threads) as workers:
            result.append(multiply(source, V, workers))
    assert np.array_equal(*result)


def test_fit_equals_fit_with_dense_features(monkeypatch):
    X = rows_with(N_RARE)
    settings = {"kernel": "rbf", "gamma": 0.3, "eigen_solver": "krylov", "tol": 1e-10}
    apart = KernelPCA(3, random_state=0, **settings).fit(X)
    monkeypatch.setattr("ikpca.kernels.radial._MIN_SPARSE_FEATURES", X.shape[1] + 1)
    together = KernelPCA(3, random_state=0, **settings).fit(X)
    np.testing.assert_allclose(apart.eigenvalues_, together.eigenvalues_, rtol=1e-12)
    np.testing.assert_allclose(apart.transform(X[:50]), together.transform(X[:50]), atol=1e-9)


def test_rows_are_not_modified(X):
    before = X.copy()
    ComputedGram(KERNEL, X, split=FeatureSplit.from_rows(X))
    assert np.array_equal(X, before)

"""Contract of every kernel: values of scikit-learn, writes, scratch memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels

from ikpca.errors import InvalidInput
from ikpca.estimators.validation import KERNEL_NAMES, make_kernel
from ikpca.kernels import (
    Cosine,
    FeatureSplit,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
    vectorized,
)
from tests.conftest import KERNELS
from tests.pairwise import pairwise

PARAMETERS = {
    "linear": {},
    "poly": {"degree": 3, "gamma": 0.3, "coef0": 1.0},
    "rbf": {"gamma": 0.2},
    "sigmoid": {"gamma": 0.05, "coef0": 0.1},
    "cosine": {},
    "laplacian": {"gamma": 0.2},
}
KINDS = {"dense": np.asarray, "csr array": sparse.csr_array, "csr matrix": sparse.csr_matrix}
# Five features: a handful of roundings, cubed for poly.
TOLERANCE = {np.float64: 1e-12, np.float32: 2e-5}
# NumPy's own buffers, 64 kB each whatever the size of the arrays; a tile below has 3 MB or more.
SLACK = 200_000


def small_rows(n_rows, seed, dtype=np.float64):
    """Rows with zeros, so that CSR arrays are sparse."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5))
    X[rng.random(size=X.shape) < 0.4] = 0
    return X.astype(dtype)


def filled(kernel, X, Y):
    out = np.full((X.shape[0], Y.shape[0]), np.nan, dtype=X.dtype)
    kernel.fill(X, Y, out)
    return out


def peak_bytes(function):
    """Return the peak of memory that a call allocates."""
    function()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        function()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pairwise(slow=True, name=KERNELS, kind=KINDS, other_kind=KINDS, dtype=[np.float64, np.float32])
def test_fill_equals_scikit_learn(name, kind, other_kind, dtype):
    X, Y = small_rows(9, 0, dtype), small_rows(7, 1, dtype)
    expected = pairwise_kernels(
        X.astype(np.float64), Y.astype(np.float64), metric=name, **PARAMETERS[name]
    )
    actual = filled(KERNELS[name], KINDS[kind](X), KINDS[other_kind](Y))
    assert actual.dtype == dtype
    np.testing.assert_allclose(actual, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pairwise(strength=1, name=KERNELS, kind=KINDS)
def test_fill_writes_only_into_the_view(name, kind):
    kernel = KERNELS[name]
    X, Y = small_rows(9, 0), small_rows(7, 1)
    X_kind, Y_kind = KINDS[kind](X), KINDS[kind](Y)
    expected = filled(kernel, X, Y)
    board = np.full((20, 30), -7.0)
    view = board.T[2:20:2, 1:8]
    kernel.fill(X_kind, Y_kind, view)
    np.testing.assert_allclose(view, expected, rtol=1e-12, atol=1e-12)
    view[...] = -7.0
    assert (board == -7.0).all()


@pairwise(slow=True, name=KERNELS, kind=KINDS, dtype=[np.float64, np.float32])
def test_diagonal_is_the_diagonal_of_fill(name, kind, dtype):
    kernel = KERNELS[name]
    X = KINDS[kind](small_rows(9, 2, dtype))
    actual = kernel.diagonal(X)
    assert actual.dtype == dtype
    expected = np.diag(filled(kernel, X, X))
    np.testing.assert_allclose(actual, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pairwise(strength=1, name=KERNELS, kind=KINDS)
def test_arguments_are_not_modified(name, kind):
    kernel = KERNELS[name]
    X, Y = KINDS[kind](small_rows(9, 0)), KINDS[kind](small_rows(7, 1))
    before = X.copy(), Y.copy()
    for array in (X, Y):
        (array if kind == "dense" else array.data).flags.writeable = False
    filled(kernel, X, Y)
    kernel.diagonal(X)
    for array, copy in zip((X, Y), before, strict=True):
        assert abs(array - copy).max() == 0


@pairwise(
    slow=True,
    name=KERNELS,
    dtype=[np.float64, np.float32],
    shape=[(1000, 800), (3000, 100), (100, 3000)],
)
def test_scratch_memory_is_at_most_as_declared(name, dtype, shape):
    kernel, (n_x, n_y) = KERNELS[name], shape
    X, Y = (np.ones((n_rows, 100), dtype) for n_rows in (n_x, n_y))
    out = np.empty((n_x, n_y), dtype)
    allowed = kernel.scratch_bytes(n_x, n_y, 100, out.itemsize)
    assert peak_bytes(lambda: kernel.fill(X, Y, out)) <= allowed + SLACK


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 5, 2.5])
def test_scratch_of_polynomials(degree):
    X, out = np.ones((1000, 30)), np.empty((1000, 1000))
    kernel = Polynomial(degree)
    allowed = kernel.scratch_bytes(1000, 1000, 30, 8)
    assert peak_bytes(lambda: kernel.fill(X, X, out)) <= allowed + SLACK


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-11), (np.float32, 1e-4)])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_gaussian_far_from_the_origin(dtype, tolerance, offset):
    """With norms of 5e8, distances near 1 would be lost in single precision."""
    X = (np.random.default_rng(3).normal(size=(40, 5)) + offset).astype(dtype)
    exact = X.astype(np.float64)
    expected = np.exp(-0.2 * np.square(exact[:, None] - exact[None]).sum(axis=2))
    actual = filled(Gaussian(0.2), X[:15], X)
    np.testing.assert_allclose(actual, expected[:15], atol=tolerance)


def test_gaussian_of_sparse_rows_never_exceeds_one():
    X = sparse.csr_array(small_rows(30, 4) * 1e3)
    assert filled(Gaussian(1e-6), X, X).max() <= 1


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-11), (np.float32, 1e-4)])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_folded_operands_give_the_tile(dtype, tolerance, offset):
    X = (np.random.default_rng(3).normal(size=(40, 5)) + offset).astype(dtype)
    kernel = Gaussian(0.2)
    assert isinstance(kernel, Gaussian)
    right = kernel.right_operand(X, FeatureSplit.from_rows(X))
    left = kernel.left_from_right(right.copy())
    out = left.dense @ right.dense.T
    kernel.finish(out)
    assert out.dtype == dtype
    np.testing.assert_allclose(out, filled(kernel, X, X), atol=tolerance)


def test_features_that_never_vary_are_not_multiplied():
    X = np.random.default_rng(3).normal(size=(40, 6))
    X[:, [0, 4]] = 7.5, 0.0
    kernel = Gaussian(0.2)
    right = kernel.right_operand(X, FeatureSplit.from_rows(X))
    left = kernel.left_from_right(right.copy())
    assert left.dense.shape == right.dense.shape == (40, 4 + 2)
    out = left.dense @ right.dense.T
    kernel.finish(out)
    np.testing.assert_allclose(out, filled(kernel, X, X), atol=1e-12)
    X = np.ones((5, 3))
    right = kernel.right_operand(X, FeatureSplit.from_rows(X))
    left = kernel.left_from_right(right.copy())
    assert np.array_equal(left.dense @ right.dense.T, np.zeros((5, 5)))


@pairwise(strength=1, degree=[0, 1, 2, 3, 5, 2.5], dtype=[np.float64, np.float32])
def test_polynomials_of_every_degree_are_accurate(degree, dtype):
    X = np.random.default_rng(5).uniform(0, 1, size=(8, 5)).astype(dtype)
    kernel = Polynomial(degree, gamma=0.5, coef0=0.7)
    expected = (0.5 * X.astype(np.float64) @ X.T.astype(np.float64) + 0.7) ** degree
    # Five factors, each with a few roundings.
    rtol = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(filled(kernel, X, X), expected, rtol=rtol)
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(expected), rtol=rtol)


@pytest.mark.parametrize("kind", KINDS)
def test_cosine_of_zero_rows_is_zero(kind):
    X = small_rows(6, 6)
    X[2] = 0
    values = filled(Cosine(), KINDS[kind](X), KINDS[kind](X))
    assert (values[2] == 0).all()
    assert (values[:, 2] == 0).all()
    assert Cosine().diagonal(KINDS[kind](X)).tolist() == [1, 1, 0, 1, 1, 1]


def test_a_callable_is_called_per_pair_with_its_parameters():
    X, Y = small_rows(4, 7), small_rows(3, 8)

    def weighted(x, y, *, weight):
        assert x.shape == y.shape == (5,)
        return weight * float(x @ y)

    kernel = make_kernel(weighted, gamma=1, degree=3, coef0=1, params={"weight": 2.5})
    np.testing.assert_allclose(filled(kernel, X, Y), 2.5 * X @ Y.T, rtol=1e-14)
    np.testing.assert_allclose(kernel.diagonal(X), 2.5 * np.square(X).sum(axis=1), rtol=1e-14)
    assert not kernel.supports_sparse


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["dense", "csr array"])
def test_a_vectorized_kernel_is_called_once_per_tile(kind, dtype):
    calls = []

    @vectorized
    def weighted(X, Y, weight=1.0):
        calls.append((X.shape, Y.shape))
        inner = X @ Y.T
        return weight * (inner.toarray() if sparse.issparse(inner) else inner)

    X, Y = small_rows(4, 7, dtype), small_rows(3, 8, dtype)
    kernel = make_kernel(weighted, gamma=1, degree=3, coef0=1, params={"weight": 2.5})
    result = filled(kernel, KINDS[kind](X), KINDS[kind](Y))
    assert calls == [((4, 5), (3, 5))]
    assert result.dtype == dtype
    np.testing.assert_allclose(result, 2.5 * X @ Y.T, rtol=1e-5)
    diagonal = kernel.diagonal(KINDS[kind](X))
    np.testing.assert_allclose(diagonal, 2.5 * np.square(X).sum(axis=1), rtol=1e-5)
    assert weighted.params == {}, "the decorated kernel keeps its own parameters"


def test_scratch_of_a_vectorized_kernel():
    kernel = vectorized(lambda X, Y: X @ Y.T)
    X, out = np.ones((1000, 30)), np.empty((1000, 1000))
    allowed = kernel.scratch_bytes(1000, 1000, 30, 8)
    assert peak_bytes(lambda: kernel.fill(X, X, out)) <= allowed + SLACK


def test_a_vectorized_kernel_is_also_a_callable_of_one_pair():
    kernel = vectorized(lambda X, Y, power=1: (X @ Y.T) ** power)
    x, y = np.arange(3.0), np.ones(3)
    assert kernel(x, y) == 3
    assert kernel(x, y, power=2) == 9


@pytest.mark.parametrize(
    "function", [lambda X, Y: X @ X.T, lambda X, Y: 1.0, lambda X, Y: (X @ Y.T).ravel()]
)
def test_a_vectorized_kernel_of_wrong_shape_is_refused(function):
    X, Y = small_rows(4, 7), small_rows(3, 8)
    with pytest.raises(InvalidInput, match=r"shape \(4, 3\)"):
        filled(vectorized(function), X, Y)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("linear", Linear()),
        ("poly", Polynomial(4, 0.5, 2.0)),
        ("polynomial", Polynomial(4, 0.5, 2.0)),
        ("rbf", Gaussian(0.5)),
        ("sigmoid", Sigmoid(0.5, 2.0)),
        ("cosine", Cosine()),
        ("laplacian", Laplacian(0.5)),
    ],
)
def test_names_choose_kernels(name, expected):
    assert make_kernel(name, gamma=0.5, degree=4, coef0=2.0) == expected
    assert name in KERNEL_NAMES


def test_kernel_objects_are_not_copied():
    kernel = Gaussian(0.3)
    assert make_kernel(kernel, gamma=9, degree=3, coef0=1) is kernel


NOT_KERNELS = ["gauss", "RBF", "", None, 3, [1.0]]


def test_invalid_kernel_error_lists_the_names(subtests):
    for bad in NOT_KERNELS:
        with subtests.test(repr(bad)):
            with pytest.raises(
                InvalidInput, match=r"linear, poly, .*, rbf, .*precomputed"
            ) as refused:
                make_kernel(bad, gamma=1, degree=3, coef0=1)
            assert repr(bad) in str(refused.value)

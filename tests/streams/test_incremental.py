"""Streaming in batches is batch kernel PCA: eigenvalues, components, mean, trace."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import IncrementalPCA

from ikpca import IncrementalKernelPCA
from ikpca.gram import cross_gram
from ikpca.kernels import Gaussian, Linear, Polynomial
from ikpca.solvers import solve_dense
from ikpca.streams import PreimageState
from tests.conftest import KERNELS

#: The sigmoid is no inner product, a stream refuses it; degree 3 spreads eigenvalues over ten
#: decades, and of the last ones no batch knows the vectors to 1e-6.
EXACT = KERNELS | {"poly": Polynomial(degree=2, gamma=0.3, coef0=1.0)}
NAMES = [name for name in KERNELS if name != "sigmoid"]


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(120, 5)) * [3.0, 2.0, 1.0, 1.0, 0.5] + 1.0


def streamed(kernel, X, size, n_components=None):
    state = PreimageState.empty(kernel, X, n_components)
    for begin in range(0, len(X), size):
        state, _ = state.learn(X[begin : begin + size])
    return state


def lengths_apart(K, first, second):
    """‖Σ_j (a_j − b_j) Φ(x_j)‖² for every row of coefficients."""
    difference = first - second
    return np.einsum("ij,jk,ik->i", difference, K, difference)


def sines(K, first, second):
    """Return the sine of the largest principal angle between spans of orthonormal vectors.

    Cosines cannot resolve angles below 1e-8.
    """
    rest = second - (second @ K @ first.T) @ first
    return np.sqrt(np.maximum(np.linalg.eigvalsh(rest @ K @ rest.T), 0))


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize("name", NAMES)
def test_batches_of_any_size_equal_one_batch(X, name, size):
    kernel = EXACT[name]
    state = streamed(kernel, X, size)
    K = cross_gram(kernel, X, X)
    exact = solve_dense(K)
    r = int(np.count_nonzero(exact.eigenvalues > 1e-12 * exact.eigenvalues[0]))
    assert len(state.singular_values) == r
    np.testing.assert_allclose(state.singular_values**2, exact.eigenvalues[:r], rtol=1e-8)
    vectors = exact.eigenvectors[:, :r].T / np.sqrt(exact.eigenvalues[:r, None])
    assert sines(K, vectors, state.vectors[:-1]).max() < 1e-6
    leading = min(r, 5)
    assert sines(K, vectors[:leading], state.vectors[:leading]).max() < 1e-6
    assert lengths_apart(K, state.vectors[-1:], np.full((1, 120), 1 / 120)) < 1e-20
    assert state.total_variance == pytest.approx(exact.trace, rel=1e-12)
    np.testing.assert_allclose(state.products, state.vectors @ K, atol=1e-9 * np.abs(K).max())


def test_components_stay_orthonormal_over_many_single_samples():
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, size=(1200, 1))
    X = np.hstack([x, x**2 + 0.2 * rng.normal(size=x.shape)])
    state = streamed(Gaussian(0.5), X, 1, 6)
    vectors = state.vectors[:-1]
    gram = vectors @ cross_gram(state.kernel, X, X) @ vectors.T
    np.testing.assert_allclose(gram, np.eye(6), atol=1e-11)


def test_a_new_component_has_the_sign_of_the_batch_that_adds_it():
    """Not of the earlier mean, which lies on the other side."""
    first = np.array([[10.0, 1.0], [10.0, -1.0]])
    state, _ = streamed(Linear(), first, 2).learn(np.array([[-2.0, 0.0], [-3.0, 0.0]]))
    np.testing.assert_allclose(state.vectors[0] @ state.basis_rows, [-1, 0], atol=1e-12)


@pytest.mark.parametrize(("size", "scale"), [(20, 1), (50, 1e-6)])
def test_truncated_with_the_linear_kernel_is_incremental_pca(size, scale):
    X = np.random.default_rng(1).normal(size=(400, 20)) * np.linspace(3, 1, 20) + 2
    X *= scale
    theirs, state = IncrementalPCA(6, batch_size=size).fit(X), streamed(Linear(), X, size, 6)
    np.testing.assert_allclose(state.singular_values, theirs.singular_values_, rtol=1e-8)
    overlaps = state.vectors[:-1] @ state.basis_rows @ theirs.components_.T
    np.testing.assert_allclose(np.abs(overlaps), np.eye(6), atol=1e-8)
    means = state.vectors[-1] @ state.basis_rows
    np.testing.assert_allclose(means, theirs.mean_, atol=1e-8 * scale)


def test_forgetting_in_batches_is_weighting_of_rows():
    """With pre-images, too: a row that k others followed weighs f^2k, from batch to batch."""
    X, f = np.random.default_rng(2).normal(size=(60, 4)) + 3, 0.98
    model = IncrementalKernelPCA(4, basis="preimages", forgetting=f)
    for begin in range(0, 60, 15):
        model.partial_fit(X[begin : begin + 15])
    weights = np.repeat(f ** (30 * np.arange(4)[::-1]), 15)
    mean = weights @ X / weights.sum()
    scatter = (X - mean).T @ (weights[:, None] * (X - mean))
    np.testing.assert_allclose(np.sort(model.eigenvalues_), np.linalg.eigvalsh(scatter), rtol=1e-8)
    np.testing.assert_allclose(model.mean_, mean, atol=1e-12)

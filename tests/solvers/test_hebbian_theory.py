"""Kim's theorem 1, the linear kernel, fixed points, centring."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from ikpca import HebbianPCA, KernelPCA
from ikpca.gram import ComputedGram, full_matrix, read_budget
from ikpca.kernels import Polynomial
from ikpca.solvers import KHA, InverseTime, Problem, RunSettings, hebbian_step
from ikpca.solvers.kha import METHODS
from tests.conftest import explicitly_centered

R = 4


def test_a_batch_is_sangers_rule(rows):
    """Row by row, W ← W + η[y xᵀ − lt(yyᵀ)W] for rows centered on the mean of the batch."""
    X = rows - rows.mean(axis=0)
    W = np.random.default_rng(5).normal(size=(R, X.shape[1])) / 4
    gain = 0.5 / np.square(X).sum(axis=1).max()
    model = HebbianPCA(R, rule=KHA("kha", gain=gain, init=W)).partial_fit(rows)
    expected = W.copy()
    for x in X:
        y = expected @ x
        expected += gain * (np.outer(y, x) - np.tril(np.outer(y, y)) @ expected)
    assert np.abs(expected - W).max() > 0.01, "the components must have moved"
    np.testing.assert_allclose(model.components_, expected, atol=1e-10)


def test_kha_on_the_gram_matrix_is_gha_on_its_square_root(kernel, rows):
    """Kim 2003, theorem 1: W = A K'^½ steps like Sanger's rule on the rows of K'^½."""
    centered = explicitly_centered(full_matrix(ComputedGram(kernel, rows)))
    values, vectors = np.linalg.eigh(centered)
    # An indefinite kernel (sigmoid) has no real root: the theorem is about its positive part.
    values = np.clip(values, 0, None)
    root = vectors * np.sqrt(values) @ vectors.T
    gram = root @ root
    rng = np.random.default_rng(4)
    A = rng.normal(size=(R, len(rows))) / np.sqrt(R * np.trace(gram))
    W = A @ root
    gain = 0.1 / np.diag(gram).max()
    for p in rng.integers(0, len(rows), size=300):
        A = hebbian_step(A, gram[:, p], p, gain)
        y = W @ root[p]
        W = W + gain * (np.outer(y, root[p]) - np.tril(np.outer(y, y)) @ W)
    assert np.linalg.norm(W) > 0.1
    np.testing.assert_allclose(A @ root, W, atol=1e-10)


def test_linear_kernel_is_gha(rows):
    X = rows - rows.mean(axis=0)
    rng = np.random.default_rng(5)
    A = rng.normal(size=(R, len(X))) / np.sqrt(R * len(X))
    rule = {"gain": 0.005 * InverseTime(), "rayleigh_ritz": False}
    settings = {"random_state": 7, "max_iter": 6}
    kernel = KernelPCA(R, eigen_solver=KHA(init=A, **rule), **settings).fit(rows)
    explicit = HebbianPCA(R, rule=KHA(init=A @ X, **rule), **settings).fit(rows)
    W = kernel.coefficients_ @ X
    signs = np.sign(np.sum(W * explicit.components_, axis=1))[:, None]
    assert np.abs(W - A @ X).max() > 0.1, "the components must have moved"
    np.testing.assert_allclose(signs * W, explicit.components_, atol=1e-10)


def test_eigenvectors_are_a_fixed_point_of_the_rule(kernel, rows):
    """Summed over all patterns the rule does not move eigenvectors, and it moves others."""
    centered = explicitly_centered(full_matrix(ComputedGram(kernel, rows)))
    values, vectors = np.linalg.eigh(centered)
    values, vectors = values[::-1][:R], vectors[:, ::-1][:, :R]
    A = vectors.T / np.sqrt(values)[:, None]

    def drift(A):
        steps = [hebbian_step(A, centered[:, p], p, 1.0) - A for p in range(len(rows))]
        return np.abs(np.sum(steps, axis=0) @ centered).max() / values[0]

    assert drift(A) < 1e-10
    turned = A.copy()
    turned[0] += 0.1 * A[1]
    assert drift(turned) > 1e-3


def test_centered_new_rows_are_explicit_feature_centring():
    """(⟨x, y⟩ + 1)² has the explicit features [x_i x_j, √2 x_i, 1]."""
    rng = np.random.default_rng(6)
    X, new = rng.normal(size=(30, 3)), rng.normal(size=(8, 3))

    def features(X):
        return np.hstack(
            [
                np.einsum("ni,nj->nij", X, X).reshape(len(X), -1),
                np.sqrt(2) * X,
                np.ones((len(X), 1)),
            ]
        )

    mean = features(X).mean(axis=0)
    model = KernelPCA(5, kernel="poly", degree=2, gamma=1, coef0=1).fit(X)
    W = model.coefficients_ @ (features(X) - mean)
    np.testing.assert_allclose(model.transform(new), (features(new) - mean) @ W.T, atol=1e-10)
    np.testing.assert_allclose(Polynomial(2).diagonal(X), np.square(features(X)).sum(axis=1))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_approaches_the_dense_reference(digits, method):
    X = digits[:300]
    exact = KernelPCA(R, kernel="rbf", gamma=0.05, eigen_solver="dense").fit(X)
    found = KernelPCA(
        R, kernel="rbf", gamma=0.05, eigen_solver=KHA(method, init="random"), random_state=0
    ).fit(X)
    angle = subspace_angles(found.eigenvectors_, exact.eigenvectors_)[0]
    assert angle < (0.3 if method == "kha" else 0.06)
    np.testing.assert_allclose(found.eigenvalues_, exact.eigenvalues_, rtol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_block_size_does_not_change_the_result(digits, method, monkeypatch):
    problem = Problem(Polynomial(2, 0.1), digits[:150], read_budget(None), seed=3)

    def coefficients(size):
        monkeypatch.setattr("ikpca.solvers.kha_pass.BLOCK_SIZE", size)
        return KHA(method, init="random").solve(problem, R, RunSettings(4)).coefficients

    found = [coefficients(size) for size in (1, 7, 150)]
    np.testing.assert_allclose(found[1], found[0], atol=1e-11)
    np.testing.assert_allclose(found[2], found[0], atol=1e-11)

"""Cases with known pre-images: PCA's reconstruction, training rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from ikpca import KernelPCA
from ikpca.gram import cross_gram
from ikpca.preimages import MDS
from ikpca.solvers import KHA
from ikpca.solvers.kha import METHODS
from tests.conftest import KERNELS, explicitly_centered
from tests.pairwise import pairwise

SOLVERS = ["dense", "krylov", *METHODS]
EXACT = {"gradient": "gradient", "mds": MDS(60)}


@pytest.fixture
def new(rows):
    return rows[::4] + np.random.default_rng(5).normal(size=rows[::4].shape)


# --- the linear kernel is PCA ----------------------------------------------------------


@pairwise(slow=True, method=EXACT, n_components=[1, 3, 5], offset=[0.0, 100.0])
def test_the_linear_kernel_gives_the_reconstruction_of_pca(rows, new, method, n_components, offset):
    """Mean included; also for rows that lie far outside the training rows."""
    new = np.vstack([new, 20 * new])
    pca = PCA(n_components).fit(rows + offset)
    found = KernelPCA(n_components, preimage=EXACT[method]).fit(rows + offset)
    expected = pca.inverse_transform(pca.transform(new + offset))
    np.testing.assert_allclose(found.reconstruct(new + offset), expected, atol=1e-6)


def test_mds_needs_as_many_neighbors_as_the_rank_and_one(rows, new):
    """Six rows in general position span five dimensions; five do not."""
    pca = PCA(3).fit(rows)
    expected = pca.inverse_transform(pca.transform(new))
    enough = KernelPCA(3, preimage=MDS(6)).fit(rows).reconstruct(new)
    np.testing.assert_allclose(enough, expected, atol=1e-6)
    too_few = KernelPCA(3, preimage=MDS(5)).fit(rows).reconstruct(new)
    assert np.abs(too_few - expected).max() > 1e-3


def test_mds_of_digits(digits):
    X, new = digits[:300], digits[300:340]
    pca = PCA(8).fit(X)
    expected = pca.inverse_transform(pca.transform(new))
    for preimage in ("auto", "gradient", MDS(300)):
        found = KernelPCA(8, preimage=preimage).fit(X).reconstruct(new)
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_leads_to_the_reconstruction_of_pca(rows, new, solver):
    pca = PCA(2).fit(rows)
    found = KernelPCA(2, eigen_solver=solver, random_state=0).fit(rows).refine()
    expected = pca.inverse_transform(pca.transform(new))
    np.testing.assert_allclose(found.reconstruct(new), expected, atol=1e-6)


@pytest.mark.parametrize("whiten", [False, True])
def test_components_that_are_not_orthonormal(rows, new, whiten):
    """Without Rayleigh–Ritz; the projection on a span does not depend on its basis."""
    fitted = KernelPCA(
        3, eigen_solver=KHA("kha", rayleigh_ritz=False, init="random", gain=1e-3), max_iter=4,
        whiten=whiten, random_state=0,
    ).fit(rows)  # fmt: skip
    W = fitted.coefficients_ @ (rows - rows.mean(axis=0))
    assert np.abs(W @ W.T - np.eye(3)).max() > 0.05
    projector = np.linalg.pinv(W) @ W
    expected = rows.mean(axis=0) + (new - rows.mean(axis=0)) @ projector
    np.testing.assert_allclose(fitted.reconstruct(new), expected, atol=1e-6)
    missing = np.square(new - expected).sum(axis=1)
    np.testing.assert_allclose(fitted.reconstruction_error(new), missing, atol=1e-8)


# --- full rank loses nothing -----------------------------------------------------------


@pytest.mark.parametrize("preimage", ["fixed-point", "gradient", MDS(6)])
@pytest.mark.parametrize("gamma", [0.02, 0.2, 2.0])
def test_a_full_rank_gaussian_projection_of_a_training_row_is_that_row(rows, preimage, gamma):
    fitted = KernelPCA(kernel="rbf", gamma=gamma, preimage=preimage).fit(rows)
    found, distances = fitted.inverse_transform(fitted.transform(rows), return_distance=True)
    np.testing.assert_allclose(found, rows, atol=1e-6)
    assert distances.max() < 1e-5


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "laplacian"])
def test_preimages_of_training_rows_for_other_kernels(rows, name):
    fitted = KernelPCA(kernel=KERNELS[name]).fit(rows)
    np.testing.assert_allclose(fitted.reconstruct(rows), rows, atol=1e-6)


# --- the subspace of a model -----------------------------------------------------------


@pairwise(strength=1, solver=SOLVERS, name=["linear", "poly", "rbf", "cosine", "laplacian"])
def test_the_subspace_of_a_model_in_inner_products(rows, new, name, solver):
    """γ̃ = Aᵀy, less its mean, plus 1/l: ⟨PΦ(x), Φ(x_j)⟩ and ‖PΦ(x)‖² from K alone."""
    fitted = KernelPCA(
        3, kernel=KERNELS[name], eigen_solver=solver, random_state=0, max_iter=5
    ).fit(rows)
    subspace = fitted._subspace
    coordinates = subspace.points(fitted.transform(new))
    K = cross_gram(subspace.kernel, rows, rows)
    G = fitted.transform(new) @ fitted.coefficients_
    G = G - G.mean(axis=1, keepdims=True) + 1 / len(rows)
    scale = np.abs(K).max()
    np.testing.assert_allclose(subspace.weights(coordinates), G, atol=1e-7)
    np.testing.assert_allclose(coordinates @ subspace.products, G @ K, atol=1e-7 * scale)
    lengths = np.einsum("ij,jk,ik->i", G, K, G)
    np.testing.assert_allclose(subspace.squared_norms(coordinates), lengths, atol=1e-7 * scale)


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "cosine", "laplacian"])
def test_reconstruction_error_in_inner_products(rows, new, name):
    """Of training rows: the diagonal of K' less that of its best approximation."""
    kernel = KERNELS[name]
    fitted = KernelPCA(3, kernel=kernel).fit(rows)
    K = explicitly_centered(cross_gram(kernel, rows, rows))
    values, vectors = np.linalg.eigh(K)
    kept = (vectors[:, -3:] * values[-3:]) @ vectors[:, -3:].T
    scale = np.abs(K).max()
    np.testing.assert_allclose(
        fitted.reconstruction_error(rows), np.diag(K - kept), atol=1e-9 * scale
    )
    shares = fitted.reconstruction_error(new)
    assert (shares >= 0).all()
    means = cross_gram(kernel, new, rows).mean(axis=1)
    centered = kernel.diagonal(new) - 2 * means + cross_gram(kernel, rows, rows).mean()
    assert fitted.explained_variance_score(new) == pytest.approx(1 - shares.sum() / centered.sum())

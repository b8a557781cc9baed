"""Spectral clustering, compared with explicit matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.metrics.pairwise import rbf_kernel

from ikpca import KernelPCA, KernelSpectralClustering
from ikpca.errors import InvalidInput
from ikpca.estimators.spectral_clustering import NormalizedGram
from ikpca.gram import PrecomputedGram, full_matrix
from ikpca.metrics import variation_of_information
from ikpca.solvers import KHA

GAMMA = 0.05


def explicit(K, number):
    """Leading eigenvectors of D^{-1/2} K D^{-1/2}, and their eigenvalues."""
    degrees = K.sum(axis=1)
    values, vectors = np.linalg.eigh(K / np.sqrt(np.outer(degrees, degrees)))
    return vectors[:, ::-1][:, :number], values[::-1][:number]


def unit_rows(V):
    return V / np.linalg.norm(V, axis=1, keepdims=True)


def same_up_to_signs(actual, expected, atol):
    signs = np.sign(np.sum(actual * expected, axis=0))
    np.testing.assert_allclose(actual * signs, expected, atol=atol)


@pytest.fixture(scope="module")
def X(digits):
    return digits[:500]


@pytest.fixture(scope="module")
def K(X):
    return rbf_kernel(X, gamma=GAMMA)


@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_the_embedding_is_that_of_the_explicit_matrix(X, K, solver):
    vectors, values = explicit(K, 6)
    model = KernelSpectralClustering(
        10, n_components=6, gamma=GAMMA, eigen_solver=solver, random_state=0
    ).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-10)
    same_up_to_signs(model.embedding_, unit_rows(vectors), 1e-7)


@pytest.mark.parametrize("solver", ["kha", "kha/t", "kha/et", "kha-smd"])
def test_hebbian_solvers_approximate_the_embedding(X, K, solver):
    model = KernelSpectralClustering(
        10, n_components=4, gamma=GAMMA, eigen_solver=solver, max_iter=100, random_state=0
    ).fit(X)
    vectors, values = explicit(K, 4)
    assert subspace_angles(model.embedding_, unit_rows(vectors))[0] < 0.02
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-4)


def test_single_precision_is_kept(X, K):
    model = KernelSpectralClustering(
        10, n_components=5, gamma=GAMMA, eigen_solver="krylov", random_state=0
    ).fit(X.astype(np.float32))
    assert model.embedding_.dtype == np.float32
    same_up_to_signs(model.embedding_, unit_rows(explicit(K, 5)[0]), 1e-3)


def test_precomputed_matrix_equals_rows(X, K):
    settings = {"gamma": GAMMA, "random_state": 0, "n_clusters": 10}
    rows = KernelSpectralClustering(**settings).fit(X)
    given = KernelSpectralClustering(kernel="precomputed", **settings).fit(K)
    same_up_to_signs(given.embedding_, rows.embedding_, 1e-7)
    assert variation_of_information(given.labels_, rows.labels_) == 0


def test_equal_degrees_need_no_reflection():
    """A circulant matrix: its degrees are equal, and L is K over their value."""
    distances = np.minimum(np.arange(12), 12 - np.arange(12))
    K = np.exp(-distances[(np.arange(12)[:, None] - np.arange(12)) % 12].astype(float))
    gram = NormalizedGram(PrecomputedGram(K))
    np.testing.assert_allclose(full_matrix(gram), K / K[0].sum(), atol=1e-14)
    np.testing.assert_allclose(gram.reflect(np.eye(12)), np.eye(12), atol=1e-14)


def test_the_reflection_is_its_own_inverse_and_hides_the_first_vector(K):
    gram = NormalizedGram(PrecomputedGram(K))
    V = np.random.default_rng(0).normal(size=(len(K), 3))
    np.testing.assert_allclose(gram.reflect(gram.reflect(V)), V, atol=1e-13)
    constant = gram.reflect(gram.first[:, None])
    np.testing.assert_allclose(constant, 1 / np.sqrt(len(K)), atol=1e-14)
    PLP = full_matrix(gram)
    np.testing.assert_allclose(PLP.sum(axis=1), 1, atol=1e-12)
    expected = np.linalg.eigvalsh(K / np.sqrt(np.outer(K.sum(axis=1), K.sum(axis=1))))
    np.testing.assert_allclose(np.linalg.eigvalsh(PLP), expected, atol=1e-13)


def test_without_normalization_the_embedding_is_kernel_pca(X):
    model = KernelSpectralClustering(
        7, normalize=None, gamma=GAMMA, eigen_solver="dense", random_state=0
    ).fit(X)
    pca = KernelPCA(7, kernel="rbf", gamma=GAMMA, eigen_solver="dense")
    np.testing.assert_allclose(model.embedding_, pca.fit_transform(X), atol=1e-12)
    np.testing.assert_allclose(model.eigenvalues_, pca.eigenvalues_, rtol=1e-12)
    assert sorted(set(model.labels_)) == list(range(7))
    for label in range(7):
        members = model.embedding_[model.labels_ == label]
        np.testing.assert_allclose(members.mean(axis=0), model.cluster_centers_[label], atol=1e-9)
    # Also with landmarks.
    rows = np.random.default_rng(0).normal(size=(2500, 2))
    large = KernelSpectralClustering(3, normalize=None, tol=1e-2, random_state=0).fit(rows)
    assert "landmarks" in large.history_[0].choice


def test_rings_that_no_line_separates():
    angles = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    X, rings = np.vstack([circle, 3 * circle]), np.repeat([0, 1], 200)
    labels = KernelSpectralClustering(2, gamma=8.0, random_state=0).fit_predict(X)
    assert variation_of_information(labels, rings) == 0


def test_labels_do_not_depend_on_the_budget(digits):
    """Tiles of an eighth: K would be 26 MB."""
    settings = {"n_clusters": 10, "gamma": GAMMA, "eigen_solver": "krylov", "random_state": 0}
    plenty = KernelSpectralClustering(**settings).fit(digits)
    tight = KernelSpectralClustering(max_memory="6MB", **settings).fit(digits)
    same_up_to_signs(tight.embedding_, plenty.embedding_, 1e-6)


def test_the_same_seed_gives_the_same_labels(X):
    fits = [KernelSpectralClustering(5, random_state=3, n_jobs=n).fit(X).labels_ for n in (1, 2)]
    np.testing.assert_array_equal(*fits)


def test_parameters_are_passed_to_the_solver(X):
    model = KernelSpectralClustering(
        3, eigen_solver=KHA("kha", gain=0.01), max_iter=2, random_state=0
    ).fit(X)
    assert model.n_iter_ == len(model.history_) == 2
    np.testing.assert_allclose(model.history_[0].gains, 0.01)


BAD_ARGUMENTS = [
    ({"n_clusters": 0}, "n_clusters=0"),
    ({"n_clusters": 2.5}, "n_clusters=2.5"),
    ({"n_clusters": 501}, "n_clusters=501: there are only 500 samples"),
    ({"n_init": 0}, "n_init=0"),
    ({"n_components": 0}, "n_components=0: must be a positive integer"),
    ({"n_components": 0.5}, "n_components=0.5: must be a positive integer"),
    ({"normalize": "rows"}, "choose one of 'njw', None"),
    ({"normalize": True}, "choose one of 'njw', None"),
    ({"eigen_solver": "qr"}, "eigen_solver='qr'"),
    ({"kernel": "spline"}, "kernel='spline'"),
]


def test_arguments_that_are_refused(X, subtests):
    for parameters, message in BAD_ARGUMENTS:
        with subtests.test(message), pytest.raises(InvalidInput, match=message):
            KernelSpectralClustering(**parameters).fit(X)


def test_degrees_must_be_positive(X):
    with pytest.raises(InvalidInput, match="degrees"):
        KernelSpectralClustering(3, kernel="linear").fit(X - X.mean(axis=0))


def test_an_asymmetric_matrix_has_no_degrees(K):
    with pytest.raises(InvalidInput, match="not symmetric"):
        KernelSpectralClustering(3, kernel="precomputed").fit(np.triu(K))

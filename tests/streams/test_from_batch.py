"""From batch to stream: ``from_batch``."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import KernelPCA as ScikitKernelPCA

from ikpca import HebbianPCA, IncrementalKernelPCA, KernelPCA
from ikpca.errors import InvalidInput

RBF = {"kernel": "rbf", "gamma": 0.1}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(120, 5)) * [3.0, 2.0, 1.0, 1.0, 0.5] + 1.0


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian"])
def test_from_batch_continues_like_the_whole_stream(X, kernel):
    whole = KernelPCA(kernel=kernel, gamma=0.1, eigen_solver="dense").fit(X)
    begun = KernelPCA(kernel=kernel, gamma=0.1, eigen_solver="dense").fit(X[:50])
    model = IncrementalKernelPCA.from_batch(begun, max_basis_rows=None)
    np.testing.assert_allclose(
        np.abs(model.transform(X))[:, :3], np.abs(begun.transform(X))[:, :3], atol=1e-8
    )
    model.partial_fit(X[50:51]).partial_fit(X[51:])
    assert model.n_samples_seen_ == 120
    np.testing.assert_allclose(model.eigenvalues_[:3], whole.eigenvalues_[:3], rtol=1e-7)
    np.testing.assert_allclose(
        model.explained_variance_ratio_[:3], whole.explained_variance_ratio_[:3], rtol=1e-7
    )
    ours, theirs = model.transform(X)[:, :3], whole.transform(X)[:, :3]
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-6)


def test_from_batch_keeps_single_precision(X):
    begun = KernelPCA(**RBF).fit(X[:50].astype(np.float32))
    model = IncrementalKernelPCA.from_batch(begun, max_basis_rows=None).partial_fit(
        X[50:].astype(np.float32)
    )
    whole = KernelPCA(**RBF).fit(X)
    np.testing.assert_allclose(model.eigenvalues_[:20], whole.eigenvalues_[:20], rtol=1e-5)
    assert model.basis_.dtype == model.transform(X[:2].astype(np.float32)).dtype == np.float32


def test_from_batch_of_a_scikit_learn_model(X):
    theirs = ScikitKernelPCA(**RBF).fit(X[:50])
    model = IncrementalKernelPCA.from_batch(
        KernelPCA.from_sklearn(theirs), max_basis_rows=None
    ).partial_fit(X[50:])
    whole = KernelPCA(**RBF).fit(X)
    np.testing.assert_allclose(model.eigenvalues_[:40], whole.eigenvalues_[:40], rtol=1e-7)


def test_from_batch_limits_the_basis(X):
    begun = KernelPCA(3, **RBF).fit(X)
    model = IncrementalKernelPCA.from_batch(begun, max_basis_rows=40)
    assert len(model.basis_) <= 40
    assert model.n_samples_seen_ == 120
    np.testing.assert_allclose(model.eigenvalues_, begun.eigenvalues_, rtol=0.1)


def test_from_batch_rejects_unsupported_models(X):
    with pytest.raises(InvalidInput, match=r"^HebbianPCA .*from_sklearn"):
        IncrementalKernelPCA.from_batch(HebbianPCA(2).fit(X))
    with pytest.raises(InvalidInput, match="fit the model on rows"):
        IncrementalKernelPCA.from_batch(KernelPCA(2, kernel="precomputed").fit(X @ X.T))
    goes_on = IncrementalKernelPCA.from_batch(KernelPCA(2).fit(sparse.csr_array(X)))
    assert goes_on.partial_fit(sparse.csr_array(X)).n_samples_seen_ == 240

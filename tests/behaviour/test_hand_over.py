"""From batch to stream and back: ``from_batch`` and ``refine``."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import KernelPCA as ScikitKernelPCA

from ikpca import HebbianPCA, IncrementalKernelPCA, KernelPCA
from ikpca.errors import InvalidInput
from ikpca.solvers import KHA

RBF = {"kernel": "rbf", "gamma": 0.1}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(120, 5)) * [3.0, 2.0, 1.0, 1.0, 0.5] + 1.0


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian"])
def test_a_batch_goes_on_as_the_whole_would_have_been(X, kernel):
    whole = KernelPCA(kernel=kernel, gamma=0.1, eigen_solver="dense").fit(X)
    begun = KernelPCA(kernel=kernel, gamma=0.1, eigen_solver="dense").fit(X[:50])
    model = IncrementalKernelPCA.from_batch(begun)
    np.testing.assert_allclose(model.transform(X), begun.transform(X), atol=1e-8)
    model.partial_fit(X[50:51]).partial_fit(X[51:])
    assert model.n_samples_seen_ == 120
    np.testing.assert_allclose(model.eigenvalues_, whole.eigenvalues_, rtol=1e-7)
    np.testing.assert_allclose(
        model.explained_variance_ratio_, whole.explained_variance_ratio_, rtol=1e-7
    )
    ours, theirs = model.transform(X)[:, :3], whole.transform(X)[:, :3]
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-6)


def test_single_precision_stays_so_and_goes_on(X):
    begun = KernelPCA(**RBF).fit(X[:50].astype(np.float32))
    model = IncrementalKernelPCA.from_batch(begun).partial_fit(X[50:].astype(np.float32))
    whole = KernelPCA(**RBF).fit(X)
    np.testing.assert_allclose(model.eigenvalues_[:20], whole.eigenvalues_[:20], rtol=1e-5)
    assert model.basis_.dtype == model.transform(X[:2].astype(np.float32)).dtype == np.float32


def test_scikit_learns_model_goes_on(X):
    theirs = ScikitKernelPCA(**RBF).fit(X[:50])
    model = IncrementalKernelPCA.from_batch(KernelPCA.from_sklearn(theirs)).partial_fit(X[50:])
    whole = KernelPCA(**RBF).fit(X)
    np.testing.assert_allclose(model.eigenvalues_[:40], whole.eigenvalues_[:40], rtol=1e-7)
    assert model.explained_variance_ratio_.sum() == pytest.approx(1, rel=1e-6)


def test_a_large_batch_is_compressed_at_once(X):
    begun = KernelPCA(3, **RBF).fit(X)
    model = IncrementalKernelPCA.from_batch(begun, max_basis_rows=40)
    assert len(model.basis_) <= 40
    assert model.reduction_error_.shape == (3,)
    assert model.n_samples_seen_ == 120
    np.testing.assert_allclose(model.eigenvalues_, begun.eigenvalues_, rtol=0.1)


@pytest.mark.parametrize("compression", ["samples", "preimages", None])
def test_refine_is_exact_and_the_stream_goes_on(X, compression):
    """From another stream's components to those of X; then on, as from a batch on X."""
    model = IncrementalKernelPCA(
        3, **RBF, reduction=compression, max_basis_rows=len(X), n_oversamples=5
    )
    model.fit(X[:30] + 1).refine(X)
    batch = KernelPCA(3, **RBF, eigen_solver="dense").fit(X)
    np.testing.assert_allclose(model.eigenvalues_, batch.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(
        model.explained_variance_ratio_, batch.explained_variance_ratio_, rtol=1e-10
    )
    np.testing.assert_allclose(np.abs(model.transform(X)), np.abs(batch.transform(X)), atol=1e-7)
    assert model.n_samples_seen_ == len(X)
    wider = KernelPCA(8, **RBF, eigen_solver="dense").fit(X)
    other = IncrementalKernelPCA.from_batch(wider, n_components=3, n_oversamples=5, reduction=None)
    if compression is None:
        new = X[:20] - 1
        np.testing.assert_allclose(
            model.partial_fit(new).eigenvalues_, other.partial_fit(new).eigenvalues_, rtol=1e-10
        )


def test_refine_where_the_kernel_has_little_rank():
    """On a curve, with more rows than the dense solver takes: residuals never become small."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(1700, 1))
    rows = np.hstack([x, x**2 + 0.2 * rng.normal(size=x.shape)])
    exact = KernelPCA(6, kernel="rbf", gamma=0.5, eigen_solver="dense").fit(rows)
    model = IncrementalKernelPCA(6, kernel="rbf", gamma=0.5).fit(rows[:300]).refine(rows)
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-9)


def test_refine_keeps_rows_of_its_own(X):
    rows = X.copy()
    model = IncrementalKernelPCA(3, **RBF).fit(X[:30]).refine(rows)
    expected = model.transform(X)
    rows[:] = 0
    assert np.array_equal(model.transform(X), expected)


def test_what_cannot_go_on_is_refused(X):
    with pytest.raises(InvalidInput, match=r"^HebbianPCA .*from_sklearn"):
        IncrementalKernelPCA.from_batch(HebbianPCA(2).fit(X))
    with pytest.raises(InvalidInput, match="fit the model on rows"):
        IncrementalKernelPCA.from_batch(KernelPCA(2, kernel="precomputed").fit(X @ X.T))
    with pytest.raises(InvalidInput, match=r"fit it on X\.toarray\(\)"):
        IncrementalKernelPCA.from_batch(KernelPCA(2).fit(sparse.csr_array(X)))


@pytest.mark.filterwarnings("ignore::ikpca.errors.RankWarning")
def test_dependent_components_cannot_start_a_stream(X):
    solver = KHA("kha", gain=1e-6, rayleigh_ritz=False)
    model = KernelPCA(3, eigen_solver=solver, max_iter=3, random_state=0).fit(X[:2])
    with pytest.raises(InvalidInput, match="call refine first"):
        IncrementalKernelPCA.from_batch(model)
    IncrementalKernelPCA.from_batch(model.refine()).partial_fit(X)

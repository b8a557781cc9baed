"""``compress``: errors, bounds, and continued learning."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import KernelPCA as ScikitKernelPCA
from sklearn.exceptions import NotFittedError

from ikpca import IncrementalKernelPCA, KernelPCA, OnlineKernelPCA, compress
from ikpca.errors import InvalidInput
from ikpca.gram import cross_gram
from ikpca.reduced_sets import IteratedPreimages, SelectedRows

RBF = {"kernel": "rbf", "gamma": 0.02}


@pytest.fixture(scope="module")
def rows(digits):
    return digits[:400]


@pytest.fixture(scope="module")
def model(rows):
    return KernelPCA(5, **RBF).fit(rows)


def bounds(original, small, X):
    """ε_i ‖u_i‖ ‖Φ(x) − µ‖ + ε ‖µ‖."""
    subspace = original._subspace
    lengths = np.sqrt(np.maximum(np.diagonal(subspace.gram), 0))
    products = cross_gram(subspace.kernel, X, subspace.basis) @ subspace.coefficients[-1]
    centered = subspace.kernel.diagonal(X) - 2 * products + lengths[-1] ** 2
    of_components = np.sqrt(centered)[:, None] * small.reduction_error_ * lengths[:-1]
    return of_components + small.mean_reduction_error_ * lengths[-1]


@pytest.mark.parametrize("compression", ["preimages", "samples", IteratedPreimages(4)], ids=str)
def test_projections_stay_within_the_error_reported(model, rows, digits, compression):
    small = compress(model, 40, reduction=compression)
    assert isinstance(small, IncrementalKernelPCA)
    assert len(small.basis_) <= 40
    X = np.vstack([rows[:100], digits[400:500]])
    moved = np.abs(small.transform(X) - model.transform(X))
    assert (moved <= bounds(model, small, X) * (1 + 1e-9)).all()
    assert small.reduction_error_.shape == (5,)
    assert 1e-3 < small.reduction_error_.max() < 0.7


@pytest.mark.parametrize("compression", ["preimages", "samples"])
def test_error_decreases_with_the_size_of_the_basis(model, compression):
    errors = [
        compress(model, size, reduction=compression).reduction_error_.max()
        for size in (10, 30, 90, 270, 400)
    ]
    assert all(more > less for more, less in pairwise(errors))
    assert errors[-1] < 1e-6


@pytest.mark.parametrize("tol", [0.2, 0.05])
def test_automatic_basis_size_reaches_the_tolerance(model, tol):
    small = compress(model, tol=tol)
    assert max(small.reduction_error_.max(), small.mean_reduction_error_) <= tol
    assert len(small.basis_) in {60, 120}


def test_automatic_basis_has_at_most_half_of_the_rows(model):
    assert len(compress(model, tol=0.0).basis_) == 200


def test_compress_accepts_a_model_of_scikit_learn(model, rows):
    other = compress(ScikitKernelPCA(5, **RBF).fit(rows), 40)
    ours = compress(model, 40)
    np.testing.assert_allclose(
        np.abs(other.transform(rows)), np.abs(ours.transform(rows)), atol=1e-4
    )
    np.testing.assert_allclose(other.reduction_error_, ours.reduction_error_, rtol=1e-3)
    np.testing.assert_allclose(
        other.explained_variance_ratio_, ours.explained_variance_ratio_, rtol=1e-3
    )


def test_components_are_orthonormal_and_eigenvalues_those_of_the_samples(model):
    small = compress(model, 40)
    K = cross_gram(small._subspace.kernel, small.basis_, small.basis_)
    gram = small.coefficients_ @ K @ small.coefficients_.T
    np.testing.assert_allclose(gram, np.eye(5), atol=1e-8)
    assert (small.eigenvalues_ <= model.eigenvalues_ * (1 + 1e-9)).all()
    np.testing.assert_allclose(small.eigenvalues_, model.eigenvalues_, rtol=0.01)
    np.testing.assert_allclose(
        small.explained_variance_ratio_, model.explained_variance_ratio_, rtol=0.01
    )
    assert small.n_samples_seen_ == 400


def test_compress_does_not_modify_the_model(model, rows):
    before = model.transform(rows)
    small = compress(model, 40)
    small.partial_fit(rows[:50])
    np.testing.assert_array_equal(model.transform(rows), before)


def test_compressed_model_continues_with_partial_fit(rows, digits):
    """Half of the rows in a batch and half in a stream approximate a batch of all rows."""
    half = compress(KernelPCA(20, **RBF).fit(rows[:200]), 150)
    for batch in np.split(rows[200:], 4):
        half.partial_fit(batch)
    assert half.n_samples_seen_ == 400
    assert len(half.basis_) <= 150
    whole = KernelPCA(4, **RBF).fit(rows)
    X = digits[400:600]
    y, z = half.transform(X)[:, :4], whole.transform(X)
    for i in range(4):
        assert abs(np.corrcoef(y[:, i], z[:, i])[0, 1]) > 0.99


def test_compressed_model_has_preimages(model, rows):
    small = compress(model, 80)
    near = small.inverse_transform(small.transform(rows[:20]))
    exact = model.inverse_transform(model.transform(rows[:20]))
    assert np.abs(near - exact).max() < 0.2
    assert np.abs(near - exact).mean() < 0.02


def test_a_stream_can_be_compressed(rows):
    stream = IncrementalKernelPCA(5, **RBF, max_basis_rows=None).fit(rows)
    small = compress(stream, 60)
    assert len(small.basis_) == 60 < len(stream.basis_)
    moved = np.abs(small.transform(rows) - stream.transform(rows))
    assert (moved <= bounds(stream, small, rows) * (1 + 1e-9)).all()


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian", "cosine"])
def test_projections_change_within_the_bound_for_every_kernel(rows, kernel):
    model = KernelPCA(3, kernel=kernel).fit(rows)
    small = compress(model, 60)
    assert small.get_params()["kernel"] == kernel
    moved = np.abs(small.transform(rows) - model.transform(rows))
    assert (moved <= bounds(model, small, rows) * (1 + 1e-9) + 1e-7).all()


def test_a_kernel_without_gradient_is_compressed_on_samples(rows):
    model = KernelPCA(3, kernel=lambda x, y: float(np.exp(-np.abs(x - y).max()))).fit(rows[:80])
    small = compress(model, 30)
    assert small.basis == "rows"
    candidates = {row.tobytes() for row in rows[:80]}
    assert all(row.tobytes() in candidates for row in small.basis_)
    with pytest.raises(InvalidInput, match="choose 'samples'"):
        compress(model, 30, reduction="preimages")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_and_whitening_are_kept(rows, dtype):
    model = KernelPCA(3, **RBF, whiten=True).fit(rows.astype(dtype))
    small = compress(model, 100)
    assert small.basis_.dtype == small.transform(rows.astype(dtype)).dtype == dtype
    np.testing.assert_allclose(
        small.transform(rows.astype(dtype)), model.transform(rows.astype(dtype)), atol=0.1
    )


def test_candidates_are_sampled_from_many_rows(rows, model):
    small = compress(model, 40, reduction=SelectedRows(max_candidates=100))
    assert len(small.basis_) == 40
    moved = np.abs(small.transform(rows) - model.transform(rows))
    assert (moved <= bounds(model, small, rows) * (1 + 1e-9)).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X: KernelPCA(2, kernel="precomputed").fit(X @ X.T), "precomputed"),
        (lambda X: KernelPCA(2, **RBF).fit(sparse.csr_array(X)), "toarray"),
        (lambda X: ScikitKernelPCA(2, kernel="precomputed").fit(X @ X.T), "precomputed"),
        (lambda X: "a model", "cannot be compressed"),
    ],
)
def test_models_that_cannot_be_compressed(rows, make, message):
    with pytest.raises(InvalidInput, match=message):
        compress(make(rows[:40]), 10)


@pytest.mark.parametrize("kind", [KernelPCA, IncrementalKernelPCA, ScikitKernelPCA])
def test_a_model_that_was_not_fitted(kind):
    with pytest.raises(NotFittedError):
        compress(kind(2))


def test_invalid_arguments_are_rejected(model, subtests):
    for arguments, message in [
        ({"max_basis_rows": 5}, "6 vectors need at least as many rows"),
        ({"max_basis_rows": 0}, "max_basis_rows"),
        ({"max_basis_rows": "large"}, "max_basis_rows"),
        ({"tol": -0.1}, "tol"),
        ({"reduction": "landmarks"}, "is unknown"),
    ]:
        with subtests.test(repr(arguments)), pytest.raises(InvalidInput, match=message):
            compress(model, **arguments)


def test_compressed_online_model_continues_with_partial_fit(digits):
    online = OnlineKernelPCA(4, **RBF, random_state=0).fit(digits[:900])
    small = compress(online, 60)
    assert len(small.basis_) <= 60 < len(online.basis_)
    assert small.n_samples_seen_ == 900
    gram = small._subspace.component_gram
    np.testing.assert_allclose(gram, np.eye(4), atol=1e-8)
    moved = np.abs(small.transform(digits[900:950]) - online.transform(digits[900:950]))
    assert moved.max() < 0.1
    small.partial_fit(digits[900:])
    assert small.n_samples_seen_ == len(digits)

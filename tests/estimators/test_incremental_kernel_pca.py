"""Public interface of ``IncrementalKernelPCA``."""

from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ikpca import IncrementalKernelPCA, KernelPCA, vectorized
from ikpca.errors import InvalidInput

BASES = ["means", "rows", "preimages"]
RBF = {"kernel": "rbf", "gamma": 0.02}


@vectorized
def quadratic(X, Y):
    """Kernel without optional protocols."""
    return (X @ Y.T + 1) ** 2


@pytest.fixture(scope="module")
def X(digits):
    return digits[np.random.default_rng(0).permutation(len(digits))][:600]


def model(**parameters):
    return IncrementalKernelPCA(
        **{"n_components": 4, **RBF, "max_basis_rows": 60, "random_state": 0} | parameters
    )


def share(fitted, X, **kernel):
    """Return the explained variance relative to batch kernel PCA."""
    batch = KernelPCA(4, **kernel, eigen_solver="dense").fit(X)
    return fitted.explained_variance_score(X) / batch.explained_variance_score(X)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_components_are_orthonormal(X, basis, kernel):
    fitted = model(basis=basis, kernel=kernel).fit(X[:300])
    assert len(fitted.basis_) <= 60
    np.testing.assert_allclose(fitted._subspace.component_gram, np.eye(4), atol=1e-8)
    np.testing.assert_allclose(
        fitted._subspace.component_gram,
        type(fitted._subspace)(
            fitted._subspace.kernel, fitted.basis_, fitted._subspace.coefficients
        ).component_gram,
        atol=1e-7,
    )


@pytest.mark.parametrize(("basis", "least"), [("means", 0.99), ("rows", 0.97), ("preimages", 0.95)])
def test_every_basis_approximates_batch_kernel_pca(X, basis, least):
    fitted = model(basis=basis).fit(X)
    assert share(fitted, X, **RBF) > least
    exact = KernelPCA(4, **RBF, eigen_solver="dense").fit(X)
    np.testing.assert_allclose(fitted.eigenvalues_, exact.eigenvalues_, rtol=0.1)


@pytest.mark.parametrize("kernel", [quadratic, "cosine", "laplacian"])
def test_kernels_choose_their_basis(X, kernel):
    fitted = model(kernel=kernel, max_basis_rows=30).fit(X[:300])
    rows = {row.tobytes() for row in X}
    are_rows = all(row.tobytes() in rows for row in fitted.basis_)
    assert are_rows == (kernel != "cosine")
    assert share(fitted, X[:300], kernel=kernel, gamma=0.02) > 0.75
    assert np.isfinite(fitted.reconstruct(X[:5])).all()


@pytest.mark.parametrize("size", [1, 30])
@pytest.mark.parametrize("basis", BASES)
def test_memory_is_bounded(X, basis, size):
    fitted, used = model(basis=basis, max_basis_rows=20, n_components=2), []
    for begin in range(0, 240, size):
        fitted.partial_fit(X[begin : begin + size])
        assert len(fitted.basis_) <= 20
        used.append(fitted.memory_usage_)
    assert fitted.n_samples_seen_ == 240
    # The first rows are kept, and a sample.
    assert max(used) < 240 * 64 * 8 * 4 + 50_000


def test_memory_does_not_grow_with_the_stream():
    rng, fitted = np.random.default_rng(0), model(n_components=2, max_basis_rows=20)
    used = [fitted.partial_fit(rng.normal(size=(512, 4))).memory_usage_ for _ in range(20)]
    assert max(used[4:]) <= used[4] * 1.01


@pytest.mark.parametrize("basis", BASES)
def test_few_rows_at_first(X, basis):
    """Components without variance so far are zero, so that the width stays."""
    fitted = model(basis=basis)
    for row in range(8):
        fitted.partial_fit(X[row : row + 1])
        assert fitted.transform(X[:3]).shape == (3, 4)
        assert np.count_nonzero(fitted.eigenvalues_ > 1e-9) == min(row, 4)
        assert np.isfinite(fitted.reconstruct(X[:3])).all()
    assert list(fitted.get_feature_names_out()) == [f"incrementalkernelpca{i}" for i in range(4)]


@pytest.mark.parametrize("basis", BASES)
def test_forgetting_follows_a_change(basis):
    rng = np.random.default_rng(0)
    first = rng.normal(size=(1000, 3)) * [3, 1, 0.1]
    then = rng.normal(size=(300, 3)) * [0.1, 1, 3]
    keeps, forgets = (
        IncrementalKernelPCA(1, forgetting=f, basis=basis).fit(np.vstack([first, then]))
        for f in (1.0, 0.99)
    )
    origin = [each._subspace.kernel.origin for each in (keeps, forgets)]
    leading = [
        each.coefficients_[0] @ (each.basis_ - origin)
        for each, origin in zip((keeps, forgets), origin, strict=True)
    ]
    assert abs(leading[0][0]) > 0.99
    assert abs(leading[1][2]) > 0.99


def test_forgetting_replaces_the_basis(X):
    """New rows far from the basis, with a narrow kernel."""
    far = X + 10
    fitted = model(forgetting=0.995).fit(X)
    for begin in range(0, 600, 50):
        fitted.partial_fit(far[begin : begin + 50])
    assert share(fitted, far[-200:], **RBF) > 0.9


def test_whitened_projections_have_unit_variance(X):
    fitted = model(whiten=True, max_basis_rows=None).fit(X)
    np.testing.assert_allclose(fitted.transform(X).std(axis=0, ddof=1), 1, rtol=1e-6)
    plain = model(max_basis_rows=None).fit(X)
    np.testing.assert_allclose(fitted.reconstruct(X[:5]), plain.reconstruct(X[:5]), atol=1e-6)


def test_verbose_writes_a_line_per_batch(X, capsys):
    fitted = model(verbose=1)
    for begin in range(0, 300, 100):
        fitted.partial_fit(X[begin : begin + 100])
    written = capsys.readouterr()
    assert written.err.count("\n") == 3
    assert "300 samples, basis 60, explained 0." in written.err
    assert not written.out


def test_an_ordered_stream_is_learned_completely(digits):
    """Rows sorted by digit: components describe all digits."""
    from sklearn.datasets import load_digits

    ordered = digits[np.argsort(load_digits().target[: len(digits)], kind="stable")]
    fitted = IncrementalKernelPCA(8, **RBF, random_state=0)
    for begin in range(0, len(ordered), 100):
        fitted.partial_fit(ordered[begin : begin + 100])
    exact = KernelPCA(8, **RBF, eigen_solver="dense").fit(ordered)
    projections = fitted.transform(ordered)
    captured = np.square(projections - projections.mean(axis=0)).sum()
    assert captured > 0.97 * exact.eigenvalues_.sum()


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"basis": "centroids"}, "basis"),
        ({"basis": "preimages", "kernel": quadratic}, "basis='preimages'"),
        ({"basis": "preimages", "max_basis_rows": 3}, "basis='preimages'"),
        ({"max_basis_rows": 0}, "max_basis_rows=0"),
        ({"n_components": 0}, "n_components=0"),
        ({"n_components": None}, "n_components=None"),
        ({"forgetting": 1.5}, "forgetting=1.5"),
        ({"kernel": "precomputed"}, "precomputed"),
    ],
)
def test_invalid_parameters(X, parameters, match):
    with pytest.raises(InvalidInput, match=match):
        model(**parameters).fit(X[:50])


def test_weights_need_moments(X):
    with pytest.raises(InvalidInput, match="preimages"):
        model(basis="preimages").partial_fit(X[:50], sample_weight=np.ones(50))
    for weights in (np.ones(49), np.full(50, np.nan), np.full(50, -1.0)):
        with pytest.raises(InvalidInput, match="sample_weight"):
            model().partial_fit(X[:50], sample_weight=weights)


def test_dense_and_sparse_batches_do_not_mix(X):
    fitted = model().partial_fit(X[:50])
    with pytest.raises(InvalidInput, match="CSR"):
        fitted.partial_fit(sparse.csr_array(X[50:100]))
    assert model(kernel="laplacian").fit(sparse.csr_array(X[:100])).transform(
        sparse.csr_array(X[:5])
    ).shape == (5, 4)


def test_models_that_cannot_be_merged(X):
    fitted = model().fit(X[:100])
    for other in (KernelPCA(2), model(), model(basis="preimages").fit(X[:100]),
                  model(gamma=0.1).fit(X[:100]), model().fit(X[:100, :5])):  # fmt: skip
        with pytest.raises(InvalidInput, match="merge"):
            fitted.merge(other)


def test_streams_in_parallel_capture_what_one_stream_captures(digits):
    whole = IncrementalKernelPCA(8, **RBF, random_state=0).fit(digits)
    parts = [
        IncrementalKernelPCA(8, **RBF, random_state=seed).fit(digits[seed::4]) for seed in range(4)
    ]
    merged = parts[0].merge(parts[1]).merge(parts[2].merge(parts[3]))
    assert len(merged.basis_) <= 100
    difference = whole.explained_variance_score(digits) - merged.explained_variance_score(digits)
    assert difference < 0.005


def test_fit_resets_and_partial_fit_continues(X):
    fitted = model().fit(X[:100]).fit(X[100:200])
    assert fitted.n_samples_seen_ == 100
    assert np.array_equal(fitted.transform(X), model().fit(X[100:200]).transform(X))
    assert fitted.partial_fit(X[:10]).n_samples_seen_ == 110


def test_signs_do_not_change_in_a_stream(X):
    fitted = model(max_basis_rows=80).partial_fit(X[:200])
    for begin in range(200, 600, 50):
        before = fitted.transform(X[:100])
        after = fitted.partial_fit(X[begin : begin + 50]).transform(X[:100])
        assert (np.sum(before * after, axis=0) > 0)[:2].all()


def test_gamma_is_computed_from_the_first_batch(X):
    fitted = model(gamma="median").partial_fit(X[:50])
    gamma = fitted.gamma_
    assert fitted.partial_fit(10 * X[50:90]).gamma_ == gamma
    assert gamma == KernelPCA(2, kernel="rbf", gamma="median").fit(X[:50]).gamma_


@pytest.mark.parametrize("basis", BASES)
def test_single_precision_is_kept(X, basis):
    single = model(basis=basis).fit(X.astype(np.float32))
    double = model(basis=basis).fit(X)
    y = single.transform(X.astype(np.float32))
    assert single.basis_.dtype == single.coefficients_.dtype == y.dtype == np.float32
    assert single.reconstruct(X[:3].astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.eigenvalues_, double.eigenvalues_, rtol=1e-3)


@pytest.mark.parametrize("basis", BASES)
def test_clones_and_pickles_continue(X, basis):
    fitted = model(basis=basis).fit(X[:200])
    copied = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copied.transform(X), fitted.transform(X))
    fitted.partial_fit(X[200:300])
    copied.partial_fit(X[200:300])
    assert np.array_equal(copied.transform(X), fitted.transform(X))
    assert not hasattr(clone(fitted), "basis_")
    assert clone(fitted).get_params() == fitted.get_params()


def test_pre_images_and_scores(X):
    fitted = model(n_components=20, max_basis_rows=200).fit(X[:500])
    new = X[500:]
    rows, distances = fitted.inverse_transform(fitted.transform(new), return_distance=True)
    assert np.array_equal(rows, fitted.reconstruct(new))
    assert np.square(rows - new).mean() < 0.5 * np.square(new - X.mean(axis=0)).mean()
    across = np.square(fitted.transform(rows) - fitted.transform(new)).sum(axis=1)
    np.testing.assert_allclose(
        np.square(distances), fitted.reconstruction_error(rows) + across, atol=1e-8
    )
    batch = KernelPCA(20, **RBF).fit(X[:500])
    assert fitted.score(new) == pytest.approx(batch.score(new), rel=0.1)


def test_rows_on_disk(X, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    np.save(tmp_path / "bytes.npy", (16 * X).astype(np.uint8))
    expected = model().fit(X)
    mapped = model().fit(np.load(tmp_path / "rows.npy", mmap_mode="r"))
    assert np.array_equal(mapped.transform(X), expected.transform(X))
    assert type(mapped.basis_) is np.ndarray
    whole_numbers = model(gamma=0.02 / 256).fit(np.load(tmp_path / "bytes.npy", mmap_mode="r"))
    np.testing.assert_allclose(whole_numbers.eigenvalues_, expected.eigenvalues_, rtol=1e-8)


def test_rows_in_chunks(X, tmp_path):
    zarr = pytest.importorskip("zarr")
    rows = zarr.open_array(str(tmp_path / "rows.zarr"), mode="w", shape=X.shape, dtype=X.dtype)
    rows[:] = X
    assert np.array_equal(model().fit(rows).transform(X), model().fit(X).transform(X))


def test_data_frames_in_and_out(X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"pixel{i}" for i in range(X.shape[1])])
    fitted = model().set_output(transform="pandas").partial_fit(frame[:100])
    found = fitted.partial_fit(frame[100:200]).transform(frame)
    assert list(found.columns) == list(fitted.get_feature_names_out())
    assert list(fitted.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.partial_fit(frame[frame.columns[::-1]])


def test_as_bertopics_umap_model(X):
    """Calls of BERTopic: fit with y by name, partial_fit, transform."""
    reducer = IncrementalKernelPCA(5, **RBF, random_state=0)
    labels = np.arange(len(X)) % 10
    for y in (None, labels):
        reducer.fit(X, y=y)
        assert np.isfinite(np.nan_to_num(reducer.transform(X))).all()
    assert np.array_equal(reducer.transform(X), reducer.fit_transform(X))
    stream = IncrementalKernelPCA(5, **RBF)
    for begin in range(0, 600, 200):
        stream = stream.partial_fit(X[begin : begin + 200])
        assert stream.transform(X[begin : begin + 200]).shape == (200, 5)


def test_as_dask_mls_incremental_estimator(X):
    """Calls of the wrapper: a copy learns each block, with y by position."""
    expected = model()
    wrapped = clone(expected)
    for begin in range(0, 600, 200):
        wrapped = deepcopy(wrapped)
        wrapped.partial_fit(X[begin : begin + 200], None)
        expected.partial_fit(X[begin : begin + 200])
    assert np.array_equal(wrapped.transform(X), expected.transform(X))


def test_in_a_pipeline(X):
    pipeline = make_pipeline(StandardScaler(), IncrementalKernelPCA(3, kernel="rbf", gamma=0.01))
    assert pipeline.fit_transform(X).shape == (600, 3)

"""``IncrementalKernelPCA`` as users see it."""

from __future__ import annotations

import pickle
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ikpca import IncrementalKernelPCA, KernelPCA, vectorized
from ikpca.gram import cross_gram
from ikpca.kernels import Gaussian
from ikpca.reduced_sets import SelectedRows
from ikpca.streams import Compression, IncrementalSettings, IncrementalState, update_step

COMPRESSIONS = ["samples", "preimages", None]
RBF = {"kernel": "rbf", "gamma": 0.02}


@vectorized
def quadratic(X, Y):
    """A kernel of which nothing is known but its values."""
    return (X @ Y.T + 1) ** 2


@pytest.fixture(scope="module")
def X(digits):
    return digits[np.random.default_rng(0).permutation(len(digits))][:600]


def model(**parameters):
    return IncrementalKernelPCA(
        **{"n_components": 4, **RBF, "max_basis_rows": 60, "random_state": 0} | parameters
    )


def parabola(number):
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, size=(number, 1))
    return np.hstack([x, x**2 + 0.2 * rng.normal(size=x.shape)])


# --- compression -----------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["samples", "preimages"])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_components_are_orthonormal_after_compression(X, compression, kernel):
    fitted = model(reduction=compression, kernel=kernel).fit(X[:300])
    assert len(fitted.basis_) <= 60
    vectors = fitted._stream.state.vectors[:-1]
    K = cross_gram(fitted._stream.state.kernel, fitted.basis_, fitted.basis_)
    np.testing.assert_allclose(vectors @ K @ vectors.T, np.eye(len(vectors)), atol=1e-8)
    assert fitted.reduction_error_.shape == (4,)
    # Sixty rows span all directions of the linear kernel.
    assert kernel == "linear" or fitted.reduction_error_.max() > 0
    assert fitted.reduction_error_.max() < 0.5


@pytest.mark.parametrize("compression", ["samples", "preimages"])
def test_a_compressed_stream_comes_near_the_batch(X, compression):
    batch = KernelPCA(4, **RBF, eigen_solver="dense").fit(X)
    fitted = model(reduction=compression, max_basis_rows=150).fit(X)
    assert fitted.explained_variance_score(X) > 0.99 * batch.explained_variance_score(X)
    np.testing.assert_allclose(fitted.eigenvalues_, batch.eigenvalues_, rtol=0.03)
    np.testing.assert_allclose(
        fitted.explained_variance_ratio_, batch.explained_variance_ratio_, rtol=0.03
    )


def test_the_error_reported_is_that_of_the_last_reduction(X):
    """‖u − u'‖/‖u‖, worked out from kernel values of both libraries."""
    kernel = Gaussian(0.02)
    exact, _ = update_step(
        IncrementalState.empty(kernel, X, keep_values=True), X[:100], IncrementalSettings(4)
    )
    reduced, errors = Compression(SelectedRows(), 50, orthonormal=False).reduce(exact, 50)
    rows = np.vstack([exact.basis, reduced.basis])
    both = np.hstack([exact.vectors, -reduced.vectors])
    apart = np.einsum("ij,jk,ik->i", both, cross_gram(kernel, rows, rows), both)
    K = cross_gram(kernel, exact.basis, exact.basis)
    lengths = np.einsum("ij,jk,ik->i", exact.vectors, K, exact.vectors)
    np.testing.assert_allclose(errors, np.sqrt(apart / lengths), rtol=1e-6)
    np.testing.assert_array_equal(reduced.singular_values, exact.singular_values)


@pytest.mark.parametrize("size", [1, 30])
def test_memory_stays_flat(size):
    fitted, bytes_used = model(n_components=3, max_basis_rows=40), []
    rows = parabola(480)
    for begin in range(0, len(rows), size):
        fitted.partial_fit(rows[begin : begin + size])
        assert len(fitted.basis_) <= 40
        bytes_used.append(fitted.memory_usage_)
    assert max(bytes_used[len(bytes_used) // 2 :]) <= max(bytes_used[: len(bytes_used) // 2])
    assert fitted.n_samples_seen_ == 480
    assert fitted.n_batches_ == 480 // size


def test_small_batches_do_not_reduce_the_library_each_time(X, monkeypatch):
    reductions = []
    reduce = SelectedRows.reduce
    monkeypatch.setattr(
        SelectedRows,
        "reduce",
        lambda self, *a, **k: reductions.append(1) or reduce(self, *a, **k),
    )
    fitted = model(reduction="samples", n_components=2, n_oversamples=2, max_basis_rows=80)
    for row in range(200):
        fitted.partial_fit(X[row : row + 1])
    assert 0 < len(reductions) <= 120 // 10


def test_a_reduction_leaves_space_for_small_batches(X):
    """But at least one row for each component and the mean; signs and products are kept."""
    X = X[100:121]
    state, _ = update_step(
        IncrementalState.empty(Gaussian(0.02), X, keep_values=True), X, IncrementalSettings(4)
    )
    for limit, room, count, size in ((21, 9, 1, 21), (20, 1, 5, 20), (20, 6, 2, 16), (8, 9, 2, 5)):
        reduced, _ = Compression(SelectedRows(), limit, room).enforce_limit(state, count)
        assert len(reduced.basis) == size
        K, cross = (cross_gram(state.kernel, reduced.basis, rows) for rows in (reduced.basis, X))
        np.testing.assert_allclose(reduced.products, reduced.vectors @ K, atol=1e-12)
        overlaps = (reduced.vectors @ cross * state.vectors).sum(axis=1)
        assert overlaps.min() > 0.4
        np.testing.assert_allclose(overlaps[-1], reduced.gram[-1, -1], rtol=0.01)


def test_kernel_values_of_the_library_are_computed_once(X):
    """Each update adds its strip; after all of them the matrix is that of the library."""
    state = IncrementalState.empty(Gaussian(0.02), X, keep_values=True)
    for begin in (0, 7, 30):
        state, _ = update_step(state, X[begin : begin + 23], IncrementalSettings(4))
    expected = cross_gram(state.kernel, state.basis, state.basis)
    np.testing.assert_allclose(state.values.matrix(), expected, atol=1e-14)
    without = replace(state, values=None)
    arrays = (state.basis, state.vectors, state.products, state.singular_values)
    assert without.n_bytes == sum(array.nbytes for array in arrays)
    assert state.n_bytes - without.n_bytes == 8 * 23 * (23 + 46 + 69)


@pytest.mark.parametrize("kernel", [quadratic, "cosine", "laplacian"])
def test_any_kernel_can_be_compressed_on_samples(X, kernel):
    fitted = model(kernel=kernel).fit(X[:200])
    batch = KernelPCA(4, kernel=kernel, gamma=0.02, eigen_solver="dense").fit(X[:200])
    assert fitted.explained_variance_score(X) > 0.9 * batch.explained_variance_score(X)
    assert np.isfinite(fitted.reconstruct(X[:5])).all()


def test_a_stream_of_mnist_in_a_small_library(data_folder):
    """5,000 rows, 400 in the library: the first 16 components hold what batch ones do, nearly."""
    with np.load(data_folder / "mnist.npz") as data:
        X = data["X_train"][:5000].reshape(5000, -1).astype(np.float32) / 255
    parameters = {"kernel": "rbf", "gamma": 1 / 72}
    fitted = IncrementalKernelPCA(16, **parameters, max_basis_rows=400, batch_size=200).fit(X)
    exact = KernelPCA(16, **parameters, tol=1e-3, random_state=0).fit(X)
    assert len(fitted.basis_) <= 400
    assert fitted.explained_variance_score(X) > 0.95 * exact.explained_variance_ratio_.sum()


# --- streams ---------------------------------------------------------------------------


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_fit_is_partial_fit_batch_by_batch(X, compression):
    whole = model(reduction=compression, batch_size=70).fit(X[:300])
    parts = model(reduction=compression)
    for begin in range(0, 300, 70):
        parts.partial_fit(X[begin : min(begin + 70, 300)])
    assert np.array_equal(whole.transform(X), parts.transform(X))
    assert np.array_equal(whole.eigenvalues_, parts.eigenvalues_)
    assert whole.n_batches_ == parts.n_batches_ == 5


def test_a_large_batch_is_learned_in_parts(X):
    parts = model(batch_size=50).partial_fit(X[:200])
    assert np.array_equal(parts.transform(X), model(batch_size=50).fit(X[:200]).transform(X))
    assert parts.novelty_.shape == (200,)
    assert parts.n_batches_ == 1


def test_fit_forgets_and_partial_fit_does_not(X):
    fitted = model().fit(X[:100]).fit(X[100:200])
    assert fitted.n_samples_seen_ == 100
    assert np.array_equal(fitted.transform(X), model().fit(X[100:200]).transform(X))
    assert fitted.partial_fit(X[:10]).n_samples_seen_ == 110


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_few_rows_at_first(X, compression):
    """Components that nothing is known of yet are zero, so that the width stays."""
    fitted = model(reduction=compression)
    for row in range(8):
        fitted.partial_fit(X[row : row + 1])
        assert fitted.transform(X[:3]).shape == (3, 4)
        assert np.count_nonzero(fitted.eigenvalues_) == min(row, 4)
        assert np.isfinite(fitted.reconstruct(X[:3])).all()
    assert list(fitted.get_feature_names_out()) == [f"incrementalkernelpca{i}" for i in range(4)]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_duplicates(X, compression):
    """A row again and again is a row with a weight: no new direction, and no failure."""
    once = model(reduction=compression, max_basis_rows=30).fit(X[:20])
    many = model(reduction=compression, max_basis_rows=30)
    for _ in range(5):
        many.partial_fit(X[:20])
    np.testing.assert_allclose(many.eigenvalues_, 5 * once.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(np.abs(many.transform(X)), np.abs(once.transform(X)), atol=1e-6)
    same = model(reduction=compression, max_basis_rows=30)
    for _ in range(3):
        same.partial_fit(np.repeat(X[:1], 15, axis=0))
    assert not same.eigenvalues_.any()
    assert not same.explained_variance_ratio_.any()


def test_signs_stay_along_a_stream(X):
    fitted = model(max_basis_rows=80).partial_fit(X[:200])
    for begin in range(200, 600, 50):
        before = fitted.transform(X[:100])
        after = fitted.partial_fit(X[begin : begin + 50]).transform(X[:100])
        assert (np.sum(before * after, axis=0) > 0)[:2].all()


def test_forgetting_follows_a_change(X):
    """A stream that changes its direction: with forgetting the model turns with it."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=(1000, 3)) * [3, 1, 0.1]
    then = rng.normal(size=(300, 3)) * [0.1, 1, 3]
    keeps, forgets = (
        IncrementalKernelPCA(1, batch_size=20, forgetting=f).fit(np.vstack([first, then]))
        for f in (1.0, 0.9)
    )
    leading = [each.coefficients_[0] @ each.basis_ for each in (keeps, forgets)]
    assert abs(leading[0][0]) > 0.99
    assert abs(leading[1][2]) > 0.99


def test_gamma_is_settled_by_the_first_batch(X):
    fitted = model(gamma="median").partial_fit(X[:50])
    gamma = fitted.gamma_
    assert fitted.partial_fit(10 * X[50:90]).gamma_ == gamma
    assert gamma == KernelPCA(2, kernel="rbf", gamma="median").fit(X[:50]).gamma_


def test_whitened_projections_have_unit_variance(X):
    fitted = model(whiten=True, reduction=None, n_oversamples=600).fit(X)
    y = fitted.transform(X)
    np.testing.assert_allclose(y.std(axis=0, ddof=1), 1, rtol=1e-6)
    plain = model(reduction=None, n_oversamples=600).fit(X)
    np.testing.assert_allclose(fitted.reconstruct(X[:5]), plain.reconstruct(X[:5]), atol=1e-6)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_single_precision_stays(X, compression):
    single = model(reduction=compression).fit(X.astype(np.float32))
    double = model(reduction=compression).fit(X)
    y = single.transform(X.astype(np.float32))
    assert single.basis_.dtype == single.coefficients_.dtype == y.dtype == np.float32
    assert single.reconstruct(X[:3].astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.eigenvalues_, double.eigenvalues_, rtol=1e-3)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_clone_and_pickle_go_on(X, compression):
    fitted = model(reduction=compression).fit(X[:200])
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


def test_verbose_writes_a_line_per_batch(X, capsys):
    model(verbose=1, batch_size=100).fit(X[:300])
    written = capsys.readouterr()
    assert written.err.count("\n") == 3
    assert "batch 3: 300 samples, basis 60, explained 0." in written.err
    assert not written.out


# --- in other people's hands -------------------------------------------------------------


def test_as_bertopics_umap_model(X):
    """What BERTopic calls: fit with labels or None by name, partial_fit, transform."""
    reducer = IncrementalKernelPCA(5, **RBF)
    labels = np.arange(len(X)) % 10
    for y in (None, labels):
        reducer.fit(X, y=y)
        assert np.isfinite(np.nan_to_num(reducer.transform(X))).all()
    assert np.array_equal(reducer.transform(X), IncrementalKernelPCA(5, **RBF).fit_transform(X))
    stream = IncrementalKernelPCA(5, **RBF)
    for begin in range(0, 600, 200):
        stream = stream.partial_fit(X[begin : begin + 200])
        assert stream.transform(X[begin : begin + 200]).shape == (200, 5)


def test_as_dask_mls_incremental_estimator(X):
    """What its wrapper calls: a copy of the model learns each block, with y by position."""
    expected = model()
    wrapped = clone(expected)
    for begin in range(0, 600, 200):
        wrapped = deepcopy(wrapped)
        wrapped.partial_fit(X[begin : begin + 200], None)
        expected.partial_fit(X[begin : begin + 200])
    assert np.array_equal(wrapped.transform(X), expected.transform(X))


def test_compression_can_be_switched_on_the_way(X):
    """Off, the library grows and kernel values are kept no more; on, it is reduced at once."""
    fitted = model(max_basis_rows=60).fit(X[:200])
    fitted.set_params(reduction=None).partial_fit(X[200:400])
    assert len(fitted.basis_) > 200
    assert fitted.memory_usage_ < 400 * 64 * 8 + 2 * 400 * 20 * 8
    fitted.set_params(reduction="samples").partial_fit(X[400:])
    assert len(fitted.basis_) <= 60
    assert fitted.n_samples_seen_ == 600


def test_in_a_pipeline(X):
    pipeline = make_pipeline(StandardScaler(), IncrementalKernelPCA(3, kernel="rbf", gamma=0.01))
    assert pipeline.fit_transform(X).shape == (600, 3)

"""Models that keep only landmarks: every method, files, streams, rows on disk, and bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import ikpca
from ikpca import IncrementalKernelPCA, KernelPCA, compress, open_rows, vectorized
from ikpca.errors import InvalidInput, RankWarning
from ikpca.kernels import Gaussian
from ikpca.solvers import Krylov, Nystrom

SETTINGS = {"kernel": "rbf", "gamma": 0.05, "random_state": 0}


def fitted(X, n_components=5, solver=None, **parameters):
    solver = Nystrom(150) if solver is None else solver
    return KernelPCA(n_components, eigen_solver=solver, **(SETTINGS | parameters)).fit(X)


@pytest.fixture(scope="module")
def model(digits):
    return fitted(digits)


@pytest.fixture(scope="module")
def exact(digits):
    return KernelPCA(5, eigen_solver="dense", **SETTINGS).fit(digits)


def test_the_attributes_are_those_of_the_landmarks(model, digits):
    assert model.landmarks_.shape == (150, 64)
    assert model.landmark_coefficients_.shape == (5, 150)
    assert model.n_samples_seen_ == len(digits)
    assert all(any(np.array_equal(row, other) for other in digits) for row in model.landmarks_[:5])
    # Components are orthonormal, and projections have their variance about a mean of zero.
    gram = np.empty((150, 150))
    Gaussian(0.05).fill(model.landmarks_, model.landmarks_, gram)
    A, Y = model.landmark_coefficients_, model.transform(digits)
    np.testing.assert_allclose(A @ gram @ A.T, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(Y.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(Y.T @ Y, np.diag(model.eigenvalues_), atol=1e-8)


ROW_ATTRIBUTES = ("X_fit_", "coefficients_", "eigenvectors_", "X_transformed_fit_")
LANDMARK_ATTRIBUTES = ("landmarks_", "landmark_coefficients_")


def test_attributes_of_all_rows_are_undefined(model):
    for name in ROW_ATTRIBUTES:
        with pytest.raises(
            AttributeError, match=rf"{name}.*only landmarks.*transform\(X\).*refine"
        ):
            getattr(model, name)


def test_attributes_of_landmarks_are_undefined_for_all_rows(exact):
    for name in LANDMARK_ATTRIBUTES:
        with pytest.raises(AttributeError, match=f"{name}.*X_fit_"):
            getattr(exact, name)


def test_attributes_of_scikit_learn_have_its_shapes(model, exact):
    theirs = exact.to_sklearn()
    assert model.eigenvalues_.shape == theirs.eigenvalues_.shape
    for name in ("X_fit_", "eigenvalues_", "eigenvectors_"):
        assert getattr(exact, name).shape == getattr(theirs, name).shape


def test_fit_transform_is_transform(digits):
    model = KernelPCA(5, eigen_solver=Nystrom(150), **SETTINGS)
    np.testing.assert_allclose(model.fit_transform(digits), model.transform(digits), atol=1e-12)


def test_files_are_small_and_models_load(model, digits, tmp_path):
    model.save(tmp_path / "model")
    assert (tmp_path / "model").stat().st_size < digits.nbytes / 2
    again = ikpca.load(tmp_path / "model")
    assert np.array_equal(again.transform(digits), model.transform(digits))
    assert again.eigen_solver.get_params() == model.eigen_solver.get_params()
    with pytest.raises(InvalidInput, match="pass all rows"):
        again.refine()


def test_methods_agree_with_the_exact_model(model, exact, digits):
    X = digits[::9]
    error = np.abs(model.reconstruction_error(X) - exact.reconstruction_error(X))
    assert error.max() < 0.05
    assert abs(model.explained_variance_score(X) - exact.explained_variance_score(X)) < 0.02
    assert abs(model.score(X) - exact.score(X)) < 0.002
    assert np.abs(model.reconstruct(X) - exact.reconstruct(X)).max() < 0.5
    rows, distances = model.inverse_transform(model.transform(X), return_distance=True)
    assert rows.shape == X.shape
    assert (distances >= 0).all()


def test_ridge_pre_images_are_learned_from_the_landmarks(digits):
    model = fitted(digits, fit_inverse_transform=True)
    assert model.landmark_dual_coef_.shape == (150, 64)
    assert not hasattr(model, "dual_coef_")
    assert model.inverse_transform(model.transform(digits[:7])).shape == (7, 64)


def test_whitened_projections_have_unit_variance(digits):
    Y = fitted(digits, whiten=True).transform(digits)
    np.testing.assert_allclose(Y.std(axis=0, ddof=1), 1, rtol=1e-9)


def test_compress_and_streams_continue(model, digits):
    small = compress(model, 60, reduction="samples")
    assert small.n_samples_seen_ == len(digits)
    assert small.reduction_error_.max() < 0.5
    stream = IncrementalKernelPCA.from_batch(model, max_basis_rows=None)
    np.testing.assert_allclose(
        np.abs(stream.transform(digits[:9])), np.abs(model.transform(digits[:9])), atol=1e-8
    )
    stream.partial_fit(digits[:20])
    assert stream.n_samples_seen_ >= len(digits)


def test_refine_takes_the_rows(digits, exact):
    model = fitted(digits).refine(digits)
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-9)
    assert len(model.X_fit_) == len(model.eigenvectors_) == len(digits)
    assert not hasattr(model, "landmarks_")


def test_another_solver_starts_from_landmarks(digits, exact):
    model = fitted(digits)
    model.set_params(eigen_solver=Krylov(), warm_start=True, tol=1e-6).fit(digits)
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-6)


def test_no_conversion_to_scikit_learn(model):
    with pytest.raises(InvalidInput, match=r"only landmarks.*refine\(X\)"):
        model.to_sklearn()


def test_sparse_rows_equal_dense_rows(digits, model):
    result = fitted(sparse.csr_array(digits))
    assert sparse.issparse(result.landmarks_)
    np.testing.assert_allclose(result.eigenvalues_, model.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(
        result.transform(sparse.csr_array(digits[:30])), model.transform(digits[:30]), atol=1e-9
    )


def test_vectorized_kernel_equals_the_named_kernel(digits):
    @vectorized
    def quadratic(X, Y):
        return (X @ Y.T + 1) ** 2

    own = fitted(digits[:400], kernel=quadratic)
    named = fitted(digits[:400], kernel="poly", degree=2, gamma=1, coef0=1)
    np.testing.assert_allclose(own.eigenvalues_, named.eigenvalues_, rtol=1e-9)


@pytest.mark.parametrize("kind", ["npy", "zarr", "parquet"])
def test_rows_on_disk_stream(digits, tmp_path, kind, model):
    if kind == "npy":
        np.save(tmp_path / "rows.npy", digits)
        rows = open_rows(tmp_path / "rows.npy")
    elif kind == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        table = pyarrow.table({f"pixel{i}": column for i, column in enumerate(digits.T)})
        parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=500)
        rows = open_rows(tmp_path / "rows.parquet")
    else:
        zarr = pytest.importorskip("zarr")
        rows = zarr.open_array(str(tmp_path / "rows.zarr"), mode="w", shape=digits.shape,
                               dtype=digits.dtype, chunks=(200, 64))  # fmt: skip
        rows[:] = digits
    result = fitted(rows, max_memory="6MB")
    np.testing.assert_allclose(result.eigenvalues_, model.eigenvalues_, rtol=1e-9)
    # The landmarks are in memory, so pre-images need no other rows.
    assert type(result.landmarks_) is np.ndarray
    assert result.reconstruct(digits[:5]).shape == (5, 64)
    result.save(tmp_path / "model")
    assert np.array_equal(ikpca.load(tmp_path / "model").landmarks_, result.landmarks_)


def test_parquet_of_other_values_is_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"a": [1.0], "b": ["text"]}), tmp_path / "rows.parquet")
    with pytest.raises(InvalidInput, match="column 'b' has type string"):
        open_rows(tmp_path / "rows.parquet")
    (tmp_path / "text.parquet").write_text("no rows")
    with pytest.raises(InvalidInput, match="is not a Parquet file"):
        open_rows(tmp_path / "text.parquet")


def test_a_memory_map_does_not_stay_in_memory(tmp_path):
    psutil = pytest.importorskip("psutil")
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(400_000, 16)))
    rows, process = open_rows(tmp_path / "rows.npy"), psutil.Process()
    if not hasattr(process.memory_info(), "shared"):
        pytest.skip("the system does not report mapped memory")
    shared = process.memory_info().shared
    fitted(rows, n_components=2, solver=Nystrom(20))
    assert process.memory_info().shared - shared < rows.nbytes / 3


def test_a_budget_bounds_what_a_fit_allocates(tmp_path):
    tracemalloc = pytest.importorskip("tracemalloc")
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(100_000, 8)))
    rows = open_rows(tmp_path / "rows.npy")
    tracemalloc.start()
    fitted(rows, n_components=4, max_memory="12MB", n_jobs=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 12e6


def test_a_budget_that_is_too_small_is_refused(digits):
    with pytest.raises(
        InvalidInput, match=r"max_memory=100000: a fit on 150 landmarks needs at least"
    ):
        fitted(digits, max_memory="100kB")


INVALID_OPTIONS = [
    (Nystrom(0), "n_landmarks=0: must be"),
    (Nystrom(2.5), r"n_landmarks=2\.5: must be"),
    (Nystrom("many"), "n_landmarks='many': must be"),
    (Nystrom(True), "n_landmarks=True: must be"),
    (Nystrom(None), "n_landmarks=None: must be"),
    (Nystrom(3), "n_landmarks=3: there are at most as many components"),
    (Nystrom(selection="best"), "selection='best': is unknown"),
]


def test_invalid_options_are_rejected(digits, subtests):
    for solver, message in INVALID_OPTIONS:
        with subtests.test(repr(solver)), pytest.raises(InvalidInput, match=message):
            fitted(digits, solver=solver)


@pytest.mark.parametrize("parameters", [{"warm_start": True}, {"checkpoint": "run.ckpt"}])
def test_options_without_effect(digits, parameters):
    with pytest.raises(InvalidInput, match="no effect with eigen_solver='nystrom'"):
        fitted(digits, **parameters)


def test_a_precomputed_matrix_is_refused(digits):
    K = digits[:50] @ digits[:50].T
    with pytest.raises(InvalidInput, match=r"precomputed.*pass rows and a kernel"):
        KernelPCA(2, kernel="precomputed", eigen_solver="nystrom").fit(K)


def test_a_fraction_that_the_landmarks_do_not_explain(digits):
    with pytest.raises(InvalidInput, match=r"20 landmarks explain only .* of the variance"):
        fitted(digits, n_components=0.99, solver=Nystrom(20))


def test_more_landmarks_than_rows_are_all_rows(digits):
    assert len(fitted(digits[:40], solver=Nystrom(5000)).landmarks_) == 40


@pytest.mark.parametrize("selection", ["uniform", "pivoted"])
def test_equal_rows_have_no_variance(selection):
    with pytest.warns(RankWarning, match="no variance"):
        model = fitted(np.ones((300, 4)), 2, Nystrom(20, selection))
    assert (model.eigenvalues_ == 0).all()
    assert (model.transform(np.eye(4)) == 0).all()


@pytest.mark.parametrize("selection", ["uniform", "pivoted"])
def test_duplicate_rows_are_kept_once(selection):
    X = np.repeat(np.random.default_rng(0).normal(size=(30, 4)), 20, axis=0)
    model = fitted(X, 3, Nystrom(200, selection))
    assert len(model.landmarks_) == len(np.unique(model.landmarks_, axis=0)) <= 30
    exact = KernelPCA(3, eigen_solver="dense", **SETTINGS).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-2)


def test_more_components_than_the_rank(digits):
    X = np.outer(np.arange(200.0), [1.0, 2.0])
    with pytest.warns(RankWarning, match="numerical rank 1"):
        model = KernelPCA(3, eigen_solver=Nystrom(20), random_state=0).fit(X)
    assert model.transform(X).shape == (200, 3)
    assert list(model.eigenvalues_ > 0) == [True, False, False]


@pytest.mark.parametrize("selection", ["uniform", "pivoted"])
def test_kernel_values_that_are_not_finite(digits, selection):
    @vectorized
    def broken(X, Y):
        values = X @ Y.T
        return np.where(values > np.quantile(values, 0.999), np.nan, values)

    with pytest.raises(InvalidInput, match="not finite"):
        fitted(digits, kernel=broken, solver=Nystrom(50, selection))


def test_an_indefinite_kernel_is_refused_and_auto_takes_krylov():
    X = np.random.default_rng(0).normal(size=(1600, 4))
    parameters = {"kernel": "sigmoid", "gamma": 0.8, "coef0": -1.0, "random_state": 0}
    with pytest.raises(InvalidInput, match=r"not positive semi-definite.*krylov"):
        KernelPCA(2, eigen_solver="nystrom", **parameters).fit(X)
    model = KernelPCA(2, tol=1e-3, **parameters).fit(X)
    assert model.outcome_.name == "CONVERGED"
    assert "landmarks cannot" in model.history_[0].choice


def test_landmarks_that_miss_the_tolerance_warn(digits):
    with pytest.warns(ConvergenceWarning, match=r"landmarks did not reach tol=0\.0001"):
        model = fitted(digits, tol=1e-4)
    assert model.outcome_.name == "LANDMARKS"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        more = fitted(digits, solver=Nystrom(), tol=5e-3)
    assert more.outcome_.name == "CONVERGED"
    assert more.certificate_.residual_bounds.max() <= 5e-3
    sizes = [int(record.choice.split()[0]) for record in more.history_]
    assert sizes == sorted(sizes)

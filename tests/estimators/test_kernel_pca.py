"""Public interface of ``KernelPCA``."""

from __future__ import annotations

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as ScikitKernelPCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from ikpca import (
    IncrementalKernelPCA,
    KernelPCA,
    KernelSpectralClustering,
    NoveltyDetector,
    OnlineKernelPCA,
    compress,
    vectorized,
)
from ikpca.errors import InvalidInput
from ikpca.estimators.validation import resolve_gamma
from ikpca.gram import read_budget
from ikpca.gram.lazy_rows import LazyRows
from ikpca.gram.sources import TILE
from ikpca.kernels import Cosine, Gaussian, Linear
from ikpca.solvers import (
    KHA,
    InverseTime,
    Outcome,
    Problem,
    ReciprocalEigenvalues,
    RunSettings,
)
from ikpca.solvers.kha import METHODS
from tests.conftest import KERNELS, explicitly_centered
from tests.pairwise import pairwise
from tests.solver_options import with_solver

SOLVERS = ["dense", "krylov", *METHODS]
RBF = {"kernel": "rbf", "gamma": 0.05}
RESULTS = ("coefficients_", "eigenvalues_", "eigenvectors_", "explained_variance_ratio_")


def product(x, y, power=1):
    """Kernel of one pair of rows, as in scikit-learn."""
    return float(x @ y) ** power


@vectorized
def products(X, Y, power=1):
    """The same kernel of two blocks of rows."""
    return (X @ Y.T) ** power


@pytest.fixture
def X(digits):
    return digits[:200]


def model(solver="kha/et", n_components=3, **parameters):
    defaults = {"random_state": 0, "n_jobs": 1}
    if solver in METHODS:
        # From landmarks, problems as small as these would be solved before the first pass.
        defaults |= {"max_iter": 6, "init": "random"}
    settings = RBF | defaults | parameters
    if isinstance(settings["kernel"], Gaussian | Impatient):
        settings["gamma"] = None
    return KernelPCA(n_components, **with_solver(solver, settings))


def same(first, second):
    """Two fits with the same bits."""
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in RESULTS)


# --- projections ---------------------------------------------------------------------


@pairwise(
    slow=True, solver=["dense", "krylov", "kha", "kha-smd"], kernel=KERNELS, whiten=[False, True]
)
def test_fit_transform_is_transform_of_the_training_rows(X, solver, kernel, whiten):
    """AK' is carried through the passes; it stays the product of A and K'."""
    fitted = model(solver, kernel=kernel, gamma=0.02, whiten=whiten)
    projections = fitted.fit_transform(X)
    np.testing.assert_allclose(projections, fitted.transform(X), atol=1e-9 * np.ptp(projections))


@pytest.mark.parametrize("solver", SOLVERS)
def test_precomputed_matrix_equals_rows(X, solver):
    K = np.exp(-0.05 * np.square(X[:, None] - X[None]).sum(axis=2))
    new = np.exp(-0.05 * np.square(X[:7, None] + 0.1 - X[None]).sum(axis=2))
    by_rows, by_matrix = model(solver).fit(X), model(solver, kernel="precomputed").fit(K)
    # Kernel values differ in their last bits, and passes make it more.
    expected = by_rows.transform(X[:7] + 0.1)
    np.testing.assert_allclose(by_matrix.transform(new), expected, atol=1e-9)


def test_transform_in_strips_equals_transform_at_once(X, monkeypatch):

    fitted = model("dense").fit(X)
    whole = fitted.transform(X)
    monkeypatch.setattr("ikpca.subspace._STRIP_ENTRIES", 4 * len(X))
    np.testing.assert_allclose(fitted.transform(X), whole, atol=1e-13)
    assert fitted.explained_variance_score(X) == pytest.approx(
        fitted.explained_variance_ratio_.sum()
    )


@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_more_rows_than_a_tile(digits, solver):
    X = digits[: TILE + 50]
    squares = np.square(X).sum(axis=1)
    K = explicitly_centered(np.exp(-0.05 * (squares[:, None] + squares[None] - 2 * X @ X.T)))
    fitted = model(solver).fit(X)
    defects = K @ fitted.eigenvectors_ - fitted.eigenvectors_ * fitted.eigenvalues_
    assert np.abs(defects).max() < 1e-9 * fitted.eigenvalues_[0]
    np.testing.assert_allclose(fitted.transform(X), K @ fitted.coefficients_.T, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_single_precision_is_kept(X, solver):
    single, double = model(solver).fit(X.astype(np.float32)), model(solver).fit(X)
    names = (
        "coefficients_",
        "eigenvalues_",
        "eigenvectors_",
        "explained_variance_ratio_",
        "X_fit_",
    )
    for name in names:
        assert getattr(single, name).dtype == np.float32, name
        assert getattr(double, name).dtype == np.float64, name
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert single.fit_transform(X.astype(np.float32)).dtype == np.float32
    assert double.transform(X).dtype == np.float64
    # 24 bits, and six passes of sums over 200 rows.
    np.testing.assert_allclose(single.eigenvalues_, double.eigenvalues_, rtol=1e-4)


@pairwise(
    slow=True,
    solver=["dense", "krylov", "kha", "kha-smd"],
    kernel=KERNELS,
    kind=[sparse.csr_array, sparse.csr_matrix, sparse.csc_array],
)
def test_sparse_rows_equal_dense_rows(X, solver, kernel, kind):
    dense = model(solver, kernel=kernel).fit(X)
    thin = model(solver, kernel=kernel).fit(kind(X))
    scale = np.ptp(dense.transform(X))
    np.testing.assert_allclose(thin.transform(kind(X)), dense.transform(X), atol=1e-8 * scale)
    np.testing.assert_allclose(thin.transform(X), dense.transform(X), atol=1e-8 * scale)
    assert thin.explained_variance_score(kind(X)) == pytest.approx(
        dense.explained_variance_score(X)
    )


@pytest.mark.parametrize("solver", ["dense", "kha/et"])
def test_callables_and_vectorized_kernels(X, solver):
    named = model(solver, kernel="poly", degree=2, gamma=1, coef0=0).fit(X[:60])
    for kernel in (product, products):
        fitted = model(solver, kernel=kernel, kernel_params={"power": 2}).fit(X[:60])
        expected = named.transform(X[60:80])
        scale = np.ptp(expected)
        np.testing.assert_allclose(fitted.transform(X[60:80]), expected, atol=1e-8 * scale)


def test_kernel_objects(X):
    assert same(model(kernel=Gaussian(0.05)).fit(X), model().fit(X))


WITH_KERNEL = {
    "KernelPCA": KernelPCA,
    "IncrementalKernelPCA": IncrementalKernelPCA,
    "OnlineKernelPCA": OnlineKernelPCA,
    "NoveltyDetector": NoveltyDetector,
    "NoveltyDetector, krylov": partial(NoveltyDetector, eigen_solver="krylov"),
    "NoveltyDetector, nystrom": partial(NoveltyDetector, eigen_solver="nystrom"),
    "KernelSpectralClustering": KernelSpectralClustering,
}


@pytest.mark.parametrize("name", WITH_KERNEL)
def test_a_kernel_object_has_its_own_parameters(X, name):
    def make(**parameters):
        return WITH_KERNEL[name](2, kernel=Gaussian(0.05), random_state=0, **parameters)

    fitted = make().fit(X[:60])
    assert getattr(fitted, "model_", fitted).gamma_ == 0.05
    for parameter, value in {"gamma": 0.05, "degree": 2, "coef0": 0}.items():
        if parameter in fitted.get_params():
            with pytest.raises(InvalidInput, match=rf"^{parameter}={value}: .*Gaussian"):
                make(**{parameter: value}).fit(X)


def test_derived_models_keep_the_kernel_object(X):
    batch = KernelPCA(3, kernel=Gaussian(0.05)).fit(X[:60])
    stream = IncrementalKernelPCA.from_batch(batch)
    detector = NoveltyDetector(3, kernel=Gaussian(0.05), random_state=0).fit(X[:60])
    for model in (stream, compress(batch, 20), detector):
        model.partial_fit(X[60:80])
        assert getattr(model, "model_", model).gamma_ == 0.05


@pytest.mark.parametrize("kernel", [Linear(), Cosine(), product, products, "linear"])
def test_gamma_of_kernels_without_it_is_that_of_scikit_learn(X, kernel):
    assert KernelPCA(2, kernel=kernel).fit(X[:40]).gamma_ == 1 / 64


def test_signs_are_those_of_scikit_learn(X):
    """The largest entry of each component is positive, whatever the solver."""
    expected = ScikitKernelPCA(3, **RBF, eigen_solver="dense").fit_transform(X)
    np.testing.assert_allclose(model("dense").fit_transform(X), expected, atol=1e-9)
    for method in METHODS:
        projections = model(method).fit_transform(X)
        largest = np.abs(projections).argmax(axis=0)
        assert (np.take_along_axis(projections, largest[None], axis=0) > 0).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_eigenvectors_are_scaled_coefficients(X, solver):
    fitted = model(solver).fit(X)
    expected = (fitted.coefficients_ * np.sqrt(fitted.eigenvalues_)[:, None]).T
    np.testing.assert_allclose(fitted.eigenvectors_, expected, atol=1e-12)
    assert fitted.coefficients_.shape == (3, len(X))


# --- how much is explained -----------------------------------------------------------


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.9, 0.99])
def test_a_fraction_counts_components_as_pca_does(X, share):
    expected = PCA(share, svd_solver="full").fit(X)
    fitted = model("dense", share, kernel="linear").fit(X)
    assert len(fitted.eigenvalues_) == expected.n_components_
    held = fitted.explained_variance_ratio_
    assert held.sum() > share > held[:-1].sum()


def test_a_fraction_of_a_nonlinear_kernel(X):
    K = explicitly_centered(np.exp(-0.05 * np.square(X[:, None] - X[None]).sum(axis=2)))
    held = np.cumsum(np.linalg.eigvalsh(K)[::-1]) / np.trace(K)
    fitted = model("dense", 0.8).fit(X)
    assert len(fitted.eigenvalues_) == np.count_nonzero(held <= 0.8) + 1


def test_n_components_none_keeps_nonzero_components(rows):
    assert KernelPCA().fit(rows).eigenvalues_.shape == (5,)


@pytest.mark.parametrize("solver", SOLVERS)
def test_ratios_are_right_without_all_eigenvalues(X, solver):
    """Of the trace of K': PCA's own ratios for the linear kernel."""
    expected = PCA(3).fit(X).explained_variance_ratio_
    found = model(solver, kernel="linear", max_iter=50).fit(X).explained_variance_ratio_
    # KHA with its constant gain is within two thousandths after fifty passes.
    np.testing.assert_allclose(found, expected, rtol=1e-10 if solver == "dense" else 5e-3)
    every = model("dense", None).fit(X).explained_variance_ratio_
    assert every.sum() == pytest.approx(1)


@pairwise(strength=1, solver=SOLVERS, kernel=["rbf", "poly", "linear", "laplacian"])
def test_explained_variance_score_of_training_rows_is_the_sum_of_ratios(X, solver, kernel):
    """Orthonormal components, whether converged or not."""
    fitted = model(solver, kernel=kernel).fit(X)
    expected = fitted.explained_variance_ratio_.sum()
    assert fitted.explained_variance_score(X) == pytest.approx(expected, abs=1e-9)


def test_explained_variance_score_of_new_rows_is_that_of_pca(digits):
    train, new = digits[:200], digits[200:260]
    pca = PCA(3).fit(train)
    missing = np.square(new - pca.inverse_transform(pca.transform(new))).sum()
    expected = 1 - missing / np.square(new - pca.mean_).sum()
    fitted = model("dense", kernel="linear").fit(train)
    assert fitted.explained_variance_score(new) == pytest.approx(expected, abs=1e-10)
    assert model("dense", whiten=True, kernel="linear").fit(train).explained_variance_score(
        new
    ) == pytest.approx(expected, abs=1e-10), "whitening changes no subspace"


def test_explained_variance_score_without_orthonormal_components(X):
    """1 − Σ‖Φ' − PΦ'‖²/Σ‖Φ'‖² with explicit features of the linear kernel."""
    fitted = model("kha/t", kernel="linear", gain=0.01, rayleigh_ritz=False).fit(X)
    centered = X - X.mean(axis=0)
    W = fitted.coefficients_ @ centered
    missing = np.square(centered - centered @ np.linalg.pinv(W) @ W).sum()
    expected = 1 - missing / np.square(centered).sum()
    assert np.abs(W @ W.T - np.eye(3)).max() > 1e-3
    assert fitted.explained_variance_score(X) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("solver", SOLVERS)
def test_whitened_projections_have_unit_variance(X, solver):
    projections = model(solver, whiten=True).fit_transform(X)
    np.testing.assert_allclose(projections.var(axis=0, ddof=1), 1, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_whitened_projections_have_unit_variance_without_rayleigh_ritz(X, method):
    fitted = model(method, whiten=True, gain=0.1, rayleigh_ritz=False)
    np.testing.assert_allclose(fitted.fit_transform(X).var(axis=0, ddof=1), 1, rtol=1e-9)


def test_whitening_is_that_of_pca(X):
    found = model("dense", kernel="linear", whiten=True).fit_transform(X)
    expected = PCA(3, whiten=True).fit_transform(X)
    signs = np.sign(np.sum(found * expected, axis=0))
    np.testing.assert_allclose(found, signs * expected, atol=1e-8)


# --- gamma ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    ("kernel", "gamma", "expected"),
    [
        ("rbf", None, lambda X: 1 / 64),
        ("rbf", 0.3, lambda X: 0.3),
        ("rbf", "scale", lambda X: 1 / (64 * X.var())),
        ("poly", "scale", lambda X: 1 / (64 * X.var())),
        ("rbf", "median", lambda X: 1 / (2 * np.median(pdist(X)) ** 2)),
        ("laplacian", "median", lambda X: 1 / np.median(pdist(X, "cityblock"))),
    ],
)
def test_gamma(X, kernel, gamma, expected, kind):
    fitted = model("dense", kernel=kernel, gamma=gamma).fit(kind(X))
    assert fitted.gamma_ == pytest.approx(expected(X), rel=1e-9)
    fixed = model("dense", kernel=kernel, gamma=fitted.gamma_).fit(kind(X))
    np.testing.assert_allclose(fitted.eigenvalues_, fixed.eigenvalues_, rtol=1e-12)


def test_the_median_of_many_rows_is_estimated_from_some(digits):
    found = model("dense", gamma="median").fit(digits).gamma_
    expected = 1 / (2 * np.median(pdist(digits)) ** 2)
    # Half a million pairs of a thousand rows.
    assert found == pytest.approx(expected, rel=0.02)
    assert found == model("dense", gamma="median").fit(digits).gamma_


REFERENCES = {
    ("rbf", "scale"): lambda X: 1 / (X.shape[1] * (X - X[0, 0]).var()),
    ("rbf", "median"): lambda X: 1 / (2 * np.median(pdist(X)) ** 2),
    ("laplacian", "median"): lambda X: 1 / np.median(pdist(X, "cityblock")),
}


@pairwise(
    reference=REFERENCES,
    values=[("f4", 1e3), ("f4", 1e6), ("f8", 1e8), ("f8", 1e12)],
    kind=[np.asarray, np.asfortranarray, LazyRows, sparse.csr_array],
)
def test_gamma_at_an_offset_is_that_of_the_same_values_in_float64(reference, values, kind):
    (kernel, gamma), (dtype, offset) = reference, values
    rows = np.random.default_rng(0).normal(size=(200, 5)) + offset
    if gamma == "scale":
        # More than one tile.
        rows = np.tile(rows, (6, 1))
    else:
        # A column without an offset, and with zeros.
        rows[:, 0] = np.maximum(rows[:, 0] - offset, 0)
    rows = rows.astype(dtype)
    found = resolve_gamma(gamma, kind(rows), kernel, seed=0)
    assert found == pytest.approx(REFERENCES[kernel, gamma](rows.astype("f8")), rel=1e-9)


def test_gamma_of_rows_that_differ_in_the_last_bit():
    rows = np.full((1500, 3), 1e8)
    with pytest.raises(InvalidInput, match="all rows are equal"):
        resolve_gamma("scale", rows, "rbf", seed=0)
    rows[7, 1] = np.nextafter(rows[7, 1], np.inf)
    assert resolve_gamma("scale", rows, "rbf", 0) == pytest.approx(1 / (3 * rows.var()), rel=1e-3)


@pytest.mark.parametrize(("kernel", "gamma"), REFERENCES)
def test_gamma_of_sparse_rows_with_duplicate_entries(X, kernel, gamma):
    halves = np.repeat(X / 2, 2, axis=1)
    columns = np.tile(np.repeat(np.arange(64), 2), len(X))
    starts = np.arange(0, halves.size + 1, 128)
    rows = sparse.csr_array((halves.ravel(), columns, starts), shape=X.shape)
    assert resolve_gamma(gamma, rows, kernel, 0) == pytest.approx(REFERENCES[kernel, gamma](X))
    assert rows.nnz == halves.size


# --- scikit-learn --------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid", "cosine", product])
def test_from_scikit_learn_and_back(X, kernel):
    settings = {"kernel": kernel, "gamma": 0.05, "fit_inverse_transform": True}
    theirs = ScikitKernelPCA(3, **settings).fit(X[:80])
    ours = KernelPCA.from_sklearn(theirs)
    back = ours.to_sklearn()
    new = X[80:100]
    expected = theirs.transform(new)
    for twin in (ours, back):
        np.testing.assert_allclose(twin.transform(new), expected, atol=1e-10 * np.ptp(expected))
        np.testing.assert_allclose(
            twin.inverse_transform(expected), theirs.inverse_transform(expected), atol=1e-10
        )
    assert back.get_params() == theirs.get_params()
    assert ours.outcome_ is Outcome.EXACT
    exact = KernelPCA(3, **settings).fit(X[:80])
    assert ours.explained_variance_score(new) == pytest.approx(
        exact.explained_variance_score(new), abs=1e-8
    )


@pairwise(strength=1, solver=SOLVERS, gamma=[0.05, None, "median"])
def test_to_scikit_learn_and_back(X, solver, gamma):
    ours = model(solver, gamma=gamma, fit_inverse_transform=True).fit(X[:80])
    theirs = ours.to_sklearn()
    back = KernelPCA.from_sklearn(theirs)
    new = X[80:100]
    expected = ours.transform(new)
    assert isinstance(theirs, ScikitKernelPCA)
    for twin in (theirs, back):
        np.testing.assert_allclose(twin.transform(new), expected, atol=1e-10)
        np.testing.assert_allclose(
            twin.inverse_transform(expected), ours.inverse_transform(expected), atol=1e-10
        )


@pytest.mark.parametrize("kind", [sparse.csr_array, lambda X: X @ X.T])
def test_other_kinds_of_rows_convert(X, kind):
    rows = kind(X)
    kernel = "rbf" if sparse.issparse(rows) else "precomputed"
    ours = model("dense", kernel=kernel).fit(rows)
    expected = ours.transform(rows)
    scale = np.ptp(expected)
    np.testing.assert_allclose(ours.to_sklearn().transform(rows), expected, atol=1e-10 * scale)


def test_converted_model_has_no_explained_variance_ratio(X):
    """scikit-learn does not store the trace of K'."""
    theirs = ScikitKernelPCA(3, **RBF, eigen_solver="dense").fit(X)
    ratios = KernelPCA.from_sklearn(theirs).explained_variance_ratio_
    expected = model("dense").fit(X).explained_variance_ratio_
    known = np.allclose(ratios, expected, rtol=1e-8)
    assert known or np.isnan(ratios).all()


def test_inverse_transform_is_that_of_scikit_learn(X):
    settings = {"fit_inverse_transform": True, "alpha": 0.3, **RBF}
    theirs = ScikitKernelPCA(3, eigen_solver="dense", **settings).fit(X)
    ours = model("dense", **settings).fit(X)
    projections = theirs.transform(X[:20])
    np.testing.assert_allclose(
        ours.inverse_transform(projections), theirs.inverse_transform(projections), atol=1e-8
    )
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-7)
    np.testing.assert_allclose(ours.X_transformed_fit_, theirs.X_transformed_fit_, atol=1e-9)


@pytest.mark.parametrize("whiten", [False, True])
def test_inverse_transform_approximates_the_rows(X, whiten):
    fitted = model("kha/et", 30, alpha=1e-6, whiten=whiten, fit_inverse_transform=True).fit(X)
    error = np.square(X - fitted.inverse_transform(fitted.transform(X))).mean()
    assert error < 0.1 * X.var(axis=0).mean()


@pairwise(strength=1, solver=SOLVERS, kernel=["rbf", product, products, Gaussian(0.05)])
def test_pickle(X, solver, kernel):
    fitted = model(solver, kernel=kernel, fit_inverse_transform=True).fit(X[:50])
    loaded = pickle.loads(pickle.dumps(fitted))
    assert same(loaded, fitted)
    assert np.array_equal(loaded.transform(X[50:60]), fitted.transform(X[50:60]))
    assert loaded.outcome_ is fitted.outcome_
    assert len(loaded.history_) == len(fitted.history_)


@pairwise(
    strength=1,
    kernel=["rbf", product, products, Gaussian(0.05)],
    gain=["auto", 0.1, 0.1 * InverseTime() * ReciprocalEigenvalues()],
)
def test_clone(X, kernel, gain):
    first = model(kernel=kernel, gain=gain, init=np.eye(3, 50)).fit(X[:50])
    twin = clone(first)
    assert not hasattr(twin, "coefficients_")
    assert same(twin.fit(X[:50]), first)


def test_set_output_and_names(X):
    pandas = pytest.importorskip("pandas")
    fitted = model().set_output(transform="pandas")
    names = ["kernelpca0", "kernelpca1", "kernelpca2"]
    frame = pandas.DataFrame(X, columns=[f"pixel{i}" for i in range(64)])
    projections = fitted.fit_transform(frame)
    assert list(projections.columns) == list(fitted.transform(frame).columns) == names
    assert list(fitted.get_feature_names_out()) == names
    assert list(fitted.feature_names_in_) == list(frame.columns)
    assert fitted.n_features_in_ == 64


# --- what a fit reports --------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_history(X, method):
    fitted = model(method).fit(X)
    assert fitted.n_iter_ == len(fitted.history_) == 6
    assert fitted.outcome_ is Outcome.PASS_LIMIT
    assert [record.number for record in fitted.history_] == [1, 2, 3, 4, 5, 6]
    K = explicitly_centered(np.exp(-0.05 * np.square(X[:, None] - X[None]).sum(axis=2)))
    for record in fitted.history_:
        assert record.seconds > 0
        assert record.eigenvalues.shape == record.residuals.shape == record.gains.shape == (3,)
        assert (record.gains > 0).all()
        assert record.change >= 0
        # K is kept at this size: all of it was evaluated once, before the first pass.
        assert record.entries == len(X) ** 2
    last, projections = fitted.history_[-1], K @ fitted.eigenvectors_
    np.testing.assert_allclose(last.eigenvalues, fitted.eigenvalues_, rtol=1e-12)
    units = projections / np.linalg.norm(projections, axis=0)
    residuals = np.linalg.norm(K @ units - units * fitted.eigenvalues_, axis=0)
    np.testing.assert_allclose(last.residuals, residuals / fitted.eigenvalues_[0], rtol=1e-6)


def test_change_is_the_squared_distance_of_the_components(X):
    K = explicitly_centered(np.exp(-0.05 * np.square(X[:, None] - X[None]).sum(axis=2)))
    start = np.random.default_rng(0).normal(size=(3, len(X))) / np.sqrt(3 * len(X))
    fitted = model("kha", gain=0.1, init=start, rayleigh_ritz=False, max_iter=1).fit(X)
    # Signs are made deterministic after the fit.
    signs = np.sign(np.einsum("il,lm,im->i", fitted.coefficients_, K, start))
    moved = signs[:, None] * fitted.coefficients_ - start
    expected = np.trace(moved @ K @ moved.T)
    assert fitted.history_[0].change == pytest.approx(expected, rel=1e-9)


def test_gains_in_history_are_those_at_the_end_of_the_pass(X):
    fitted = model("kha/t", gain=0.2).fit(X)
    for number, record in enumerate(fitted.history_, start=1):
        seen = number * len(X) - 1
        np.testing.assert_allclose(record.gains, 0.2 * len(X) / (seen + len(X)), rtol=1e-12)


def test_dense_solver_has_a_history(X):
    fitted = model("dense").fit(X)
    assert fitted.outcome_ is Outcome.EXACT
    assert fitted.n_iter_ == len(fitted.history_) == 1
    record = fitted.history_[0]
    np.testing.assert_allclose(record.eigenvalues, fitted.eigenvalues_)
    assert record.residuals.max() < 1e-12
    assert record.entries == len(X) ** 2


@pytest.mark.parametrize("method", METHODS)
def test_stops_when_the_residual_is_within_tol(X, method):
    fitted = model(method, tol=0.01, max_iter=50).fit(X)
    assert fitted.outcome_ is Outcome.CONVERGED
    assert 1 < fitted.n_iter_ < 50
    largest = [record.residuals.max() for record in fitted.history_]
    assert largest[-1] <= 0.01 < min(largest[:-1])


def test_reaching_max_iter_is_reported(X):
    with pytest.warns(ConvergenceWarning, match=r"max_iter=6 .*tol=1e-12"):
        fitted = model(max_iter=6, tol=1e-12).fit(X)
    assert fitted.outcome_ is Outcome.PASS_LIMIT


def test_no_warning_without_tol(X, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().fit(X)
    assert capsys.readouterr() == ("", "")


def test_verbose_writes_a_line_per_pass(X, capsys):
    fitted = model(verbose=1).fit(X)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert len(lines) == fitted.n_iter_
    for number, (line, record) in enumerate(zip(lines, fitted.history_, strict=True), start=1):
        assert line.startswith(f"kha/et pass {number}/6: residual {record.residuals.max():.2e}")


# --- reproducible --------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_fixes_every_bit(X, method):
    first, second = model(method).fit(X), model(method).fit(X)
    assert same(first, second)
    assert not same(first, model(method, random_state=1).fit(X))
    by_object = [model(method, random_state=np.random.RandomState(5)).fit(X) for _ in range(2)]
    assert same(*by_object)


@pairwise(strength=1, solver=SOLVERS, kind=[np.asarray, sparse.csr_array])
def test_the_number_of_threads_changes_no_bit(X, solver, kind):
    assert same(model(solver, n_jobs=1).fit(kind(X)), model(solver, n_jobs=2).fit(kind(X)))


def test_the_number_of_threads_changes_no_bit_across_tiles(digits):
    X = digits[: TILE + 50]
    one, two = (model("kha/et", n_jobs=n_jobs, max_iter=2).fit(X) for n_jobs in (1, 2))
    assert same(one, two)


def test_fit_does_not_use_the_global_random_state(X):
    np.random.seed(0)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    model().fit(X)
    assert np.random.random() == expected  # noqa: NPY002


@pytest.mark.parametrize("method", METHODS)
def test_a_gain_object_replaces_that_of_the_solver(X, method):
    """KHA-SMD adapts it."""
    by_name = model("kha-smd" if method == "kha-smd" else "kha/et", gain=0.2).fit(X)
    gain = 0.2 * InverseTime() * ReciprocalEigenvalues()
    assert same(model(method, gain=gain).fit(X), by_name)


# --- starts --------------------------------------------------------------------------


@pairwise(strength=1, init=["auto", "landmarks", "random"], gain=["auto", 0.2])
def test_starts(X, init, gain):
    exact = model("dense").fit(X).eigenvalues_.sum()
    found = model("kha/et", init=init, gain=gain, max_iter=30).fit(X).eigenvalues_.sum()
    assert 0.98 * exact < found < exact * (1 + 1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_a_warm_start_from_a_converged_model_stays_converged(X, method):
    first = model(method, tol=0.1, max_iter=50).fit(X)
    second = model(method, tol=0.1, max_iter=1, random_state=9, init=first.coefficients_).fit(X)
    assert second.outcome_ is Outcome.CONVERGED
    variance = first.eigenvalues_.sum()
    # What the guard lets pass: no variance is lost beyond rounding.
    assert second.eigenvalues_.sum() >= variance * (1 - 1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_warm_start_from_the_exact_solution_keeps_it(X, method):
    exact = model("dense").fit(X)
    fitted = model(method, init=exact.coefficients_, max_iter=5).fit(X)
    np.testing.assert_allclose(fitted.eigenvalues_, exact.eigenvalues_, rtol=1e-10)


def test_refitting_forgets_the_first_fit(X):
    fitted = model(fit_inverse_transform=True).fit(X)
    other = X[:50, :10]
    fitted.set_params(fit_inverse_transform=False).fit(other)
    assert same(fitted, model().fit(other))
    assert not hasattr(fitted, "dual_coef_")
    with pytest.raises(NotFittedError, match=r"not fitted: .* again"):
        fitted.set_params(preimage="ridge").inverse_transform(fitted.transform(other))


# --- interrupts ------------------------------------------------------------------------


class Impatient:
    """Gaussian kernel that raises KeyboardInterrupt in its n-th tile."""

    supports_sparse = True

    def __init__(self, patience):
        self.patience, self._kernel = patience, Gaussian(0.05)

    def fill(self, X, Y, out):
        self.patience -= 1
        if self.patience < 0:
            raise KeyboardInterrupt
        self._kernel.fill(X, Y, out)

    def diagonal(self, X):
        return self._kernel.diagonal(X)

    def scratch_bytes(self, *sizes):
        return self._kernel.scratch_bytes(*sizes)


def test_interrupt_within_a_pass_undoes_the_pass(X, monkeypatch):
    """Per pass a tile for each of four blocks and two products, after one tile for the means."""
    monkeypatch.setattr("ikpca.solvers.kha_pass.BLOCK_SIZE", 50)

    def solution(patience, n_passes):
        solver = KHA("kha/et", init="random")
        problem = Problem(Impatient(patience), X, read_budget("20MB"))
        return solver.solve(problem, 3, RunSettings(n_passes))

    found, expected = solution(1 + 2 * 6 + 2, 6), solution(1000, 2)
    assert found.outcome is Outcome.INTERRUPTED
    assert len(found.records) == 2
    assert np.array_equal(found.coefficients, expected.coefficients)
    assert np.array_equal(found.projections, expected.projections)


def test_an_interrupt_by_a_callback_keeps_the_finished_pass(X):
    def see(record, solution):
        if record.number == 2:
            raise KeyboardInterrupt

    problem = Problem(Gaussian(0.05), X, read_budget(None))
    found = KHA("kha/et", init="random").solve(problem, 3, RunSettings(6, callback=see))
    assert found.outcome is Outcome.INTERRUPTED
    assert [record.number for record in found.records] == [1, 2]


def test_an_interrupt_before_the_first_pass_is_an_interrupt(X):
    fitted = model(kernel=Impatient(0))
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X)
    assert not hasattr(fitted, "coefficients_")


def test_rows_of_the_kernel_matrix_are_counted_where_it_is_not_kept(X):
    """One evaluation for means and AK', one per pass, and two per certificate."""
    problem = Problem(Gaussian(0.05), X, read_budget("20MB"))
    found = KHA("kha/et", init="random").solve(problem, 3, RunSettings(3))
    first, *_, last = [record.entries for record in found.records]
    assert last - first == 2 * 3 * len(X) ** 2
    # κ and the check for variance read the diagonal.
    assert 4 * len(X) ** 2 <= first <= 4 * len(X) ** 2 + 2 * len(X)

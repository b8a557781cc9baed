"""Landmarks: scikit-learn's Nystroem with PCA, residual bounds, and the choice by tolerance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import normalize

from ikpca import KernelPCA
from ikpca.gram import ComputedGram, cross_gram, full_matrix, read_budget
from ikpca.kernels import Cosine, Gaussian, Laplacian, Linear, Polynomial
from ikpca.solvers import Nystrom, Problem, RunSettings, solve_dense
from ikpca.solvers.landmarks import pivoted_landmarks
from tests.pairwise import pairwise

PARAMETERS = {
    "linear": {},
    "poly": {"gamma": 0.1, "degree": 2, "coef0": 1},
    "rbf": {"gamma": 0.05},
    "cosine": {},
    "laplacian": {"gamma": 0.05},
}


def relative_residuals(K, projections, eigenvalues):
    """‖K'v − λv‖/λ₁ of the projections of all rows, in double precision."""
    v = projections.astype(np.float64)
    v -= v.mean(axis=0)
    v /= np.linalg.norm(v, axis=0)
    products = K @ v
    products -= products.mean(axis=0)
    return np.linalg.norm(products - v * eigenvalues, axis=0) / eigenvalues[0]


def true_residuals(K, model, X):
    return relative_residuals(K, model.transform(X), model.eigenvalues_)


@pairwise(strength=1, kernel=PARAMETERS, selection=["uniform", "pivoted"])
def test_the_components_are_those_of_nystroem_and_pca(digits, kernel, selection):
    parameters = PARAMETERS[kernel]
    model = KernelPCA(
        6, kernel=kernel, eigen_solver=Nystrom(120, selection), random_state=0, **parameters
    ).fit(digits)

    def rows(X):
        """A fit subtracts the mean of the features of linear and cosine kernels."""
        if kernel not in ("linear", "cosine"):
            return X
        scaled = normalize if kernel == "cosine" else np.asarray
        return scaled(X) - scaled(digits).mean(axis=0)

    # Nystroem draws rows itself: with as many as it is given, it takes all of them.
    nystroem = Nystroem(
        kernel="linear" if kernel == "cosine" else kernel,
        n_components=len(model.landmarks_),
        random_state=0,
        **parameters,
    ).fit(rows(model.landmarks_))
    features = nystroem.transform(rows(digits))
    pca = PCA(6, svd_solver="full").fit(features)
    np.testing.assert_allclose(
        model.eigenvalues_ / (len(digits) - 1), pca.explained_variance_, rtol=1e-6
    )
    assert subspace_angles(model.transform(digits), pca.transform(features)).max() < 1e-6
    np.testing.assert_allclose(
        np.abs(model.transform(digits[:50] + 0.1)),
        np.abs(pca.transform(nystroem.transform(rows(digits[:50] + 0.1)))),
        atol=1e-6 * np.sqrt(model.eigenvalues_[0]),
    )


def test_single_precision_finds_the_same(digits):
    double, single = (
        KernelPCA(6, kernel="rbf", gamma=0.05, eigen_solver=Nystrom(200), random_state=0).fit(
            digits.astype(dtype)
        )
        for dtype in (np.float64, np.float32)
    )
    assert single.eigenvalues_.dtype == single.landmark_coefficients_.dtype == np.float32
    np.testing.assert_allclose(single.eigenvalues_, double.eigenvalues_, rtol=1e-5)
    np.testing.assert_allclose(single.transform(digits), double.transform(digits), atol=1e-4)


def test_all_rows_as_landmarks_are_exact(digits):
    X = digits[:300]
    actual = KernelPCA(4, kernel="rbf", gamma=0.05, eigen_solver=Nystrom(1000), random_state=0)
    exact = KernelPCA(4, kernel="rbf", gamma=0.05, eigen_solver="dense").fit(X)
    projections = actual.fit_transform(X)
    np.testing.assert_allclose(actual.eigenvalues_, exact.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(np.abs(projections), np.abs(exact.transform(X)), atol=1e-9)
    assert actual.certificate_.residuals.max() < 1e-9
    np.testing.assert_allclose(
        actual.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=1e-9
    )
    np.testing.assert_allclose(
        actual.reconstruction_error(X), exact.reconstruction_error(X), atol=1e-8
    )


@pytest.mark.parametrize("budget", [None, "3MB"])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_strips_and_threads_do_not_change_the_result(digits, budget, n_jobs):
    def fitted(**settings):
        return KernelPCA(
            4, kernel="rbf", gamma=0.05, eigen_solver=Nystrom(100), random_state=0, **settings
        ).fit(digits)

    plain, other = fitted(n_jobs=1), fitted(n_jobs=n_jobs, max_memory=budget)
    compare = np.testing.assert_array_equal
    if budget is not None:
        compare = np.testing.assert_allclose
    compare(other.eigenvalues_, plain.eigenvalues_)


#: Ten kernels on rows with clusters, outliers and heavy tails.
COVERAGE_KERNELS = [
    Gaussian(0.02), Gaussian(0.2), Gaussian(1.0), Laplacian(0.05), Laplacian(0.5),
    Polynomial(2, 0.1, 1.0), Polynomial(3, 0.05, 1.0), Polynomial(5, 0.02, 1.0), Linear(), Cosine(),
]  # fmt: skip


def coverage_rows(seed, n_rows=1100):
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(8, 12)) * 2
    X = centers[rng.integers(8, size=n_rows)] + rng.normal(size=(n_rows, 12))
    X[: n_rows // 100] *= 3
    return X + 0.1 * rng.standard_t(3, size=X.shape)


def test_residual_bounds_hold_and_are_tight():
    """200 runs: the true residual exceeds the bound in at most 3 %."""
    misses, ratios = [], []
    for number, kernel in enumerate(COVERAGE_KERNELS):
        X = coverage_rows(number)
        K = full_matrix(ComputedGram(kernel, X))
        for seed in range(20):
            problem = Problem(kernel, X, read_budget(None), seed=seed)
            # Fewer landmarks than features, so that the linear kernel has a residual, too.
            actual = Nystrom(10 if number >= 8 else 60).solve(problem, 3, RunSettings(1))
            values = cross_gram(kernel, X, actual.landmarks.rows)
            true = relative_residuals(K, values @ actual.coefficients.T, actual.eigenvalues).max()
            bound = actual.certificate.residual_bounds.max()
            misses.append(true > bound)
            ratios.append(bound / true)
    assert len(misses) == 200
    assert np.mean(misses) <= 0.03
    assert np.median(ratios) < 1.5
    # The bounds are not exact: the test could not fail otherwise.
    assert np.median(ratios) > 1.01


def test_residual_bounds_include_rows_far_from_all_landmarks():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    X[:6] = 50 + 0.01 * rng.normal(size=(6, 3))
    K = full_matrix(ComputedGram(Gaussian(0.01), X))
    model = KernelPCA(12, kernel="rbf", gamma=0.01, eigen_solver=Nystrom(100), random_state=0).fit(
        X
    )
    assert not np.isin(X[:6], model.landmarks_).any(), "the outliers are no landmarks"
    assert true_residuals(K, model, X).max() <= model.certificate_.residual_bounds.max()


@pytest.mark.parametrize("solver", ["krylov", "dense", "kha/et"])
def test_measured_residuals_are_their_own_bounds(digits, solver):
    model = KernelPCA(3, kernel="rbf", eigen_solver=solver, max_iter=3, random_state=0)
    certificate = model.fit(digits[:400]).certificate_
    excess = certificate.residual_bounds - certificate.residuals
    assert ((excess > 0) & (excess < 1e-12)).all(), "rounding of kernel values"


def rows_of_low_dimension(n_rows, dtype):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n_rows, 3))
    X = np.tanh(Z @ rng.normal(size=(3, 10))) + 0.05 * rng.normal(size=(n_rows, 10))
    return X.astype(dtype)


AUTO_KERNELS = {
    "rbf": {"gamma": 0.1}, "poly": {"degree": 2}, "laplacian": {"gamma": 0.1}, "linear": {},
    "cosine": {}, "sigmoid": {"gamma": 0.01, "coef0": 0.1},
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", AUTO_KERNELS)
def test_auto_is_within_the_tolerance(kernel, dtype):
    X = rows_of_low_dimension(2000, dtype)
    parameters = AUTO_KERNELS[kernel]
    named = {"gamma": 1 / X.shape[1], "coef0": 1, **parameters}
    K = pairwise_kernels(X.astype(np.float64), metric=kernel, filter_params=True, **named)
    for tol in (3e-2, 1e-3, 1e-5):
        model = KernelPCA(4, kernel=kernel, tol=tol, random_state=0, **parameters).fit(X)
        assert model.outcome_.name in ("CONVERGED", "STALLED")
        assert true_residuals(K, model, X).max() <= tol
        assert "passes over K" in model.history_[0].choice or "cannot" in model.history_[0].choice
        assert hasattr(model, "landmarks_") != hasattr(model, "X_fit_")


def test_auto_keeps_landmarks_where_they_are_enough(capsys):
    X = rows_of_low_dimension(5000, np.float32)
    loose, tight, exact = (
        KernelPCA(4, kernel="rbf", gamma=0.1, tol=tol, random_state=0, verbose=1).fit(X)
        for tol in (1e-2, 1e-5, 0)
    )
    assert len(loose.landmarks_) < 1000
    assert loose.landmark_coefficients_.shape == (4, len(loose.landmarks_))
    assert loose.history_[-1].entries < len(X) ** 2 / 4
    assert len(tight.X_fit_) == len(exact.X_fit_) == len(X)
    assert "block Krylov; " in tight.history_[0].choice
    assert not any(record.choice for record in exact.history_), "tol=0 has no choice"
    # Rounding errors of float32 exceed this tolerance with any number of landmarks.
    precise = KernelPCA(4, kernel="rbf", gamma=0.1, tol=1e-6, random_state=0).fit(X)
    assert precise.history_[0].choice == "block Krylov; landmarks cannot reach tol"
    lines = capsys.readouterr().err.splitlines()
    assert any("landmarks, estimated at" in line for line in lines)


def test_krylov_continues_from_landmarks_that_missed(monkeypatch):
    X = rows_of_low_dimension(3000, np.float64)
    # A pilot that is far too confident.
    monkeypatch.setattr("ikpca.solvers.adaptive._MARGIN", 1e3)
    monkeypatch.setattr("ikpca.solvers.adaptive._GROWTH", 1e3)
    model = KernelPCA(4, kernel="rbf", gamma=0.1, tol=1e-4, random_state=0).fit(X)
    choices = [record.choice for record in model.history_]
    assert "landmarks" in choices[0]
    assert choices[1].startswith("block Krylov; ")
    assert [record.number for record in model.history_] == list(range(1, len(choices) + 1))
    entries = [record.entries for record in model.history_]
    assert entries == sorted(entries)
    K = full_matrix(ComputedGram(Gaussian(0.1), X))
    assert true_residuals(K, model, X).max() <= 1e-4


@pytest.mark.parametrize("fraction", [0.5, 0.9])
def test_a_fraction_of_the_variance(digits, fraction):
    model = KernelPCA(fraction, kernel="rbf", gamma=0.02, eigen_solver="nystrom", random_state=0)
    ratios = model.fit(digits).explained_variance_ratio_
    assert ratios.sum() > fraction >= ratios[:-1].sum()
    exact = KernelPCA(fraction, kernel="rbf", gamma=0.02, eigen_solver="dense").fit(digits)
    assert 0 <= len(model.eigenvalues_) - len(exact.eigenvalues_) <= 3


def test_pivots_have_the_distribution_of_one_at_a_time():
    """Two clusters: the second pivot of sequential sampling lies in the other cluster."""
    X = np.repeat(np.array([[0.0, 0.0], [9.0, 9.0], [-9.0, 9.0]]), [1000, 10, 3], axis=0)
    X = X + 0.01 * np.random.default_rng(0).normal(size=X.shape)
    source = ComputedGram(Gaussian(0.1), X)
    for seed in range(10):
        groups = {int(np.searchsorted([1000, 1010], i, "right")) for i in
                  pivoted_landmarks(source, 6, seed)}  # fmt: skip
        assert groups == {0, 1, 2}


def test_pivots_leave_little_of_the_trace(digits):
    K = full_matrix(ComputedGram(Gaussian(0.05), digits))

    def rest(chosen):
        k = K[chosen]
        return np.trace(K) - np.trace(np.linalg.lstsq(k[:, chosen], k @ k.T, rcond=1e-12)[0])

    source = ComputedGram(Gaussian(0.05), digits)
    rests = [rest(pivoted_landmarks(source, 300, seed)) for seed in range(3)]
    exact = np.linalg.eigvalsh(K)[:-300].sum()
    # The expected rest of randomly pivoted Cholesky is within a small factor of the best.
    assert max(rests) < 2.5 * exact


def test_few_pivots_of_a_kernel_of_low_rank():
    X = np.random.default_rng(0).normal(size=(500, 3))
    chosen = pivoted_landmarks(ComputedGram(Linear(), X), 50, 0)
    assert 3 <= len(chosen) <= 50
    assert len(set(chosen)) == len(chosen)
    exact = solve_dense(X @ X.T, 3)
    actual = KernelPCA(3, eigen_solver=Nystrom(50, "pivoted"), random_state=0).fit(X)
    assert len(actual.landmarks_) == 3
    np.testing.assert_allclose(actual.eigenvalues_, exact.eigenvalues, rtol=1e-9)

"""Accuracy of default settings on data with a few unusual rows or large offsets."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

from ikpca import KernelPCA
from ikpca.errors import InvalidInput
from ikpca.solvers import Nystrom
from ikpca.solvers.kha import METHODS
from tests.exact_kernel import ExactKernel
from tests.pairwise import pairwise

#: Words of the remedies that a warning about precision may name.
REMEDIES = (
    "center",
    "subtract their mean",
    "double precision",
    "float64",
    "StandardScaler",
    "krylov",
    "another kernel",
)

SLOW_FAR_ROWS = [("auto", 11), ("krylov", 10)]


def check_right(model, X, exact, atol):
    """Fit, and compare eigenvalues and residuals with the exact ones and with the certificate."""
    projections = model.fit_transform(X)
    values = model.eigenvalues_.astype(np.float64)
    true, largest = exact.eigenvalues(len(values)), exact.eigenvalues(1)[0]
    bounds = (model.certificate_.eigenvalue_bounds + exact.rounding) / largest
    errors = np.abs(values - true) / largest
    assert (errors <= atol).all(), f"errors {errors} of the first eigenvalue"
    assert (errors <= bounds).all(), f"errors {errors}, bounds {bounds}"
    assert model.explained_variance_ratio_.sum() <= 1 + 1e-3
    check_residuals(model, projections, exact)


def check_residuals(model, projections, exact):
    residuals = exact.model_residuals(model, projections)
    reported = model.certificate_.residual_bounds + exact.rounding / exact.eigenvalues(1)[0]
    if model.tol > 0 or hasattr(model, "landmarks_"):
        # Estimated from a sample, with a confidence of 99 %.
        residuals, reported = residuals.max(), reported.max()
    assert np.all(residuals <= reported), f"residuals {residuals}, reported {reported}"


def check_right_or_warned(model, X, exact, atol):
    """Check that rows are rejected, or a warning names the remedy, or the result is accurate."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X)
        except InvalidInput:
            return
    texts = [str(warning.message) for warning in caught]
    if not any(word in text for text in texts for word in REMEDIES):
        check_right(model, X, exact, atol)


def far_rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4000, 12))
    X[:30] *= 0.3
    X[:30, 0] += 2000
    return X


@pytest.mark.parametrize(
    ("solver", "seed"),
    [("auto", 10), *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW_FAR_ROWS)],
)
def test_rare_far_rows_with_a_tolerance(solver, seed):
    X = far_rows(seed)
    model = KernelPCA(1, kernel="rbf", gamma=0.5, eigen_solver=solver, tol=1e-3, random_state=4)
    check_right(model, X, ExactKernel(X, "rbf", gamma=0.5), 1e-3)


def one_hot(seed, n_levels, rare, n_rows=4000):
    """Rows of common levels, and of rare ones that occur twice or three times."""
    rng = np.random.default_rng(seed)
    levels = rng.integers(n_levels, size=n_rows)
    rare = np.repeat(n_levels + np.arange(len(rare)), rare)
    levels[: len(rare)] = rare
    return np.eye(levels.max() + 1)[rng.permutation(levels)]


def mark_slow(is_slow):
    return [pytest.mark.slow] if is_slow else []


@pytest.mark.parametrize(
    ("seed", "rare", "n_rows"),
    [
        (0, (2, 2, 2), 10_000),
        *(
            pytest.param(i, ((2, 2, 2), (3, 2, 1, 1))[i % 2], 4000, marks=mark_slow(i >= 6))
            for i in range(20)
        ),
    ],
)
def test_rare_levels_have_their_components(seed, rare, n_rows):
    X = one_hot(seed, 6, rare, n_rows)
    centered = X - X.mean(axis=0)
    true = np.linalg.eigvalsh(centered.T @ centered)[:0:-1]
    model = KernelPCA(len(true), random_state=seed).fit(sparse.csr_array(X) if seed % 3 == 1 else X)
    np.testing.assert_allclose(model.eigenvalues_, true, atol=1e-9)


def test_rare_levels_with_a_gaussian():
    X = one_hot(0, 6, (2, 2, 2))
    counts = X.sum(axis=0)
    # exp(−2γ) is the kernel value of two levels.
    K = np.exp(-0.2) + (1 - np.exp(-0.2)) * np.eye(len(counts))
    weights = np.sqrt(counts)
    K -= K @ counts[:, None] / counts.sum()
    K -= counts @ K / counts.sum()
    true = np.linalg.eigvalsh(weights[:, None] * K * weights)[:0:-1]
    model = KernelPCA(8, kernel="rbf", gamma=0.1, random_state=0).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, true, atol=1e-8)


def clusters(seed, separation, n_rows=1000):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(n_rows, 2)), rng.normal(size=(n_rows, 2)) + separation])
    return X.astype(np.float32)


@pytest.mark.parametrize("separation", [30, 60, 100, 1000])
def test_landmarks_of_separated_clusters_in_float32(separation):
    X = clusters(0, separation)
    exact = ExactKernel(X, "rbf", gamma=0.5)
    for parameters in ({"eigen_solver": Nystrom(512)}, {"tol": 0.01}):
        model = KernelPCA(6, kernel="rbf", gamma=0.5, random_state=0, **parameters)
        check_right(model, X, exact, 0.01)


@pytest.mark.parametrize(
    ("seed", "n_rows"), [(1, 1000), (2, 1000), pytest.param(0, 3000, marks=pytest.mark.slow)]
)
def test_landmarks_of_clusters_far_apart(seed, n_rows):
    X = clusters(seed, 1000, n_rows)
    model = KernelPCA(6, kernel="rbf", gamma=0.5, tol=0.01, random_state=seed)
    check_right(model, X, ExactKernel(X, "rbf", gamma=0.5), 0.01)


@pytest.mark.parametrize("sparse_rows", [True, False])
@pytest.mark.parametrize("solver", ["auto", "krylov", "kha/et"])
def test_rounding_of_kernel_values_is_reported(solver, sparse_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    if sparse_rows:
        X = sparse.csr_array((X + 1000).astype(np.float32))
    else:
        X[150:] += 2000
        X = X.astype(np.float32)
    model = KernelPCA(4, kernel="rbf", eigen_solver=solver, random_state=0)
    exact = ExactKernel(X, "rbf")
    if solver == "kha/et":
        # Fifty passes leave an error, which the certificate includes.
        check_residuals(model, model.fit_transform(X), exact)
    else:
        check_right(model, X, exact, 1e-4)


def heavy_tails(seed, dtype, n_features):
    X = np.random.default_rng(seed).standard_cauchy((1100, n_features))
    # Larger values are refused in float32, as sums of kernel values overflow.
    return np.clip(X, -3000, 3000).astype(dtype)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "n_landmarks", "n_features"),
    [(np.float64, 10, 8), (np.float32, 500, 3)],
)
def test_bounds_hold_for_heavy_tails(dtype, n_landmarks, n_features):
    """Residual bounds have a confidence of 99 %: few fits exceed them, and none by far."""
    ratios, excess = [], []
    for seed in range(12):
        X = heavy_tails(seed, dtype, n_features)
        model = KernelPCA(
            3, kernel="poly", degree=2, eigen_solver=Nystrom(n_landmarks), random_state=seed
        )
        exact, Y = ExactKernel(X, "poly", degree=2), model.fit_transform(X)
        residuals = exact.model_residuals(model, Y)
        rounding = exact.rounding / model.eigenvalues_[0]
        ratios.extend(residuals / (model.certificate_.residual_bounds + rounding))
        true, rounding = exact.excess_error(Y)
        # Where the landmarks leave E_min open, the estimate is one of E/‖K'‖.
        true = min(true, exact.relative_error(Y))
        excess.append((true, rounding, model.certificate_.excess_error))
    assert max(ratios) <= 2, f"residuals divided by their bounds: {np.round(ratios, 2)}"
    assert np.mean(np.array(ratios) > 1) <= 0.05
    assert all(stated >= 0.1 * true - rounding for true, rounding, stated in excess), excess


@pairwise(
    kernel=["linear", "poly", "cosine"],
    values=[(np.float32, 1e3), (np.float32, 1e4), (np.float64, 1e8)],
    solver=["auto", "krylov", Nystrom(100)],
)
def test_right_or_warned_at_an_offset(kernel, values, solver):
    dtype, offset = values
    X = (np.random.default_rng(0).normal(size=(400, 4)) * 3 + offset).astype(dtype)
    model = KernelPCA(3, kernel=kernel, eigen_solver=solver, random_state=0)
    check = check_right if kernel == "linear" else check_right_or_warned
    check(model, X, ExactKernel(X, kernel), 2e-3)


@pytest.mark.parametrize("solver", ["auto", "krylov", "nystrom"])
def test_gaussian_of_small_float32_rows(solver):
    X = (np.random.default_rng(0).normal(size=(600, 4)) * 1e-3).astype(np.float32)
    model = KernelPCA(3, kernel="rbf", eigen_solver=solver, random_state=0)
    check_right(model, X, ExactKernel(X, "rbf"), 1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_hebbian_solvers_on_indefinite_kernels(method):
    """Their rule assumes a positive semi-definite kernel matrix."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    model = KernelPCA(4, kernel="sigmoid", gamma=1.0, eigen_solver=method, random_state=0)
    check_right_or_warned(model, X, ExactKernel(X, "sigmoid", gamma=1.0), 1e-3)


@pytest.mark.parametrize("method", ["auto", "krylov", *METHODS])
def test_components_of_small_variance_are_not_zero(method):
    """Standard deviations from 1 to 1e-4: eigenvalues down to 1e-8 of the first."""
    X = np.random.default_rng(0).normal(size=(400, 6)) * np.geomspace(1, 1e-4, 6)
    model = KernelPCA(6, eigen_solver=method, random_state=0).fit(X)
    assert (model.eigenvalues_ > 0).all()
    exact = ExactKernel(X, "linear")
    distances = np.abs(model.eigenvalues_[:, None] - exact.eigenvalues(6))
    errors = distances.min(axis=1)
    assert (errors <= model.certificate_.eigenvalue_bounds + exact.rounding).all()

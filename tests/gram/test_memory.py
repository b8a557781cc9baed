"""A fit allocates no more than its budget, and a fitted model keeps each array once."""

from __future__ import annotations

import pickle
import re
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import KernelPCA as ScikitKernelPCA

from ikpca import KernelPCA
from ikpca.errors import InvalidInput, RankWarning
from ikpca.solvers import Nystrom

MB = 10**6


def rows(n_rows, n_features=5, dtype=np.float64):
    return np.random.default_rng(0).normal(size=(n_rows, n_features)).astype(dtype)


def gram():
    X = rows(1600)
    return X @ X.T


def model(n_components=3, **parameters):
    if parameters.get("eigen_solver") == "kha/et":
        parameters["max_iter"] = 1
    return KernelPCA(n_components, **{"copy_X": False, "random_state": 0, **parameters})


def peak_bytes(fitted, X):
    """Return the largest amount of memory during a fit, in addition to X."""
    # Modules and the compiler of the Hebbian solvers are loaded first.
    model(2, kernel="rbf", eigen_solver=fitted.eigen_solver).fit(rows(60))
    tracemalloc.start()
    try:
        fitted.fit(X)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


FITS = {
    "stored matrix": (gram, 12 * MB, {"kernel": "precomputed", "eigen_solver": "krylov"}),
    "stored matrix, Hebbian": (gram, 14 * MB, {"kernel": "precomputed", "eigen_solver": "kha/et"}),
    "stored CSR matrix": (
        lambda: sparse.csr_array(gram() * (np.abs(gram()) > 3)),
        12 * MB,
        {"kernel": "precomputed", "eigen_solver": "krylov", "max_iter": 1},
    ),
    "CSR rows": (
        lambda: sparse.csr_array(rows(2500, 100)),
        21 * MB,
        {"kernel": "rbf", "eigen_solver": "krylov", "max_iter": 1},
    ),
    "CSR rows, Hebbian": (
        lambda: sparse.csr_array(rows(1500, 300)),
        21 * MB,
        {"kernel": "linear", "eigen_solver": "kha/et"},
    ),
    "wide rows": (
        lambda: rows(1200, 4000),
        30 * MB,
        {"kernel": "rbf", "gamma": 1e-4, "eigen_solver": "krylov", "max_iter": 1},
    ),
    "wide rows, Hebbian": (
        lambda: rows(1200, 4000), 24 * MB, {"kernel": "linear", "eigen_solver": "kha/et"},
    ),
    "landmarks": (
        lambda: rows(8000, 500), 20 * MB, {"eigen_solver": Nystrom(50), "copy_X": True},
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITS)
def test_a_budget_bounds_what_a_fit_allocates(name):
    load, budget, parameters = FITS[name]
    assert peak_bytes(model(max_memory=budget, n_jobs=2, **parameters), load()) <= budget


REFUSED = {
    "ridge": {"kernel": "rbf", "eigen_solver": "krylov", "fit_inverse_transform": True},
    "ridge, Hebbian": {"kernel": "rbf", "eigen_solver": "kha/et", "preimage": "ridge"},
    "ridge, indefinite": {
        "kernel": "sigmoid", "eigen_solver": "krylov", "preimage": "ridge", "alpha": 0,
        "gamma": 0.01,
    },
    "all components": {"n_components": None, "kernel": "rbf"},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_a_budget_for_a_square_matrix_is_checked_before_the_fit(name):
    X, fitted = rows(1200), model(max_memory=25 * MB, **REFUSED[name])
    with pytest.raises(InvalidInput, match=r"^max_memory=25000000: .* bytes; ") as refusal:
        fitted.fit(X)
    assert not hasattr(fitted, "eigenvalues_")
    enough = int(re.search(r"at least (\d+) bytes", str(refusal.value))[1])
    assert peak_bytes(fitted.set_params(max_memory=enough), X) <= enough


def test_a_copy_of_a_kernel_matrix_counts():
    with pytest.raises(InvalidInput, match=r"^max_memory=15000000: .*copy_X=False"):
        model(kernel="precomputed", eigen_solver="krylov", copy_X=True, max_memory=15 * MB).fit(
            gram()
        )


@pytest.mark.parametrize(
    ("n_arrays", "parameters"),
    [
        (1, {"eigen_solver": "dense"}),
        (1, {"eigen_solver": "krylov"}),
        # Before convergence, projections do not follow from coefficients.
        (2, {"eigen_solver": "krylov", "tol": 0.1}),
        (2, {"eigen_solver": "kha/et"}),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_fitted_model_keeps_each_array_once(n_arrays, parameters, dtype):
    X = rows(600, 5, dtype)
    fitted = model(10, kernel="rbf", **parameters).fit(X)
    one = fitted.coefficients_.nbytes
    n_bytes = len(pickle.dumps(fitted)) - X.nbytes
    # Also the mean and inner products with it.
    assert n_arrays * one < n_bytes < (n_arrays + 0.5) * one
    fitted.transform(X)
    fitted.inverse_transform(fitted.transform(X[:5]))
    assert len(pickle.dumps(fitted)) - X.nbytes < (n_arrays + 0.7) * one


@pytest.mark.parametrize("solver", ["dense", "krylov", "kha/et"])
def test_attributes_that_are_not_stored(solver):
    X = rows(300)
    fitted = model(4, kernel="rbf", eigen_solver=solver)
    for name in ("coefficients_", "eigenvectors_", "X_transformed_fit_"):
        assert not hasattr(fitted, name)
    projections = fitted.fit_transform(X)
    assert not hasattr(fitted, "X_transformed_fit_")
    np.testing.assert_allclose(fitted.coefficients_.sum(axis=1), 0, atol=1e-12)
    vectors = fitted.coefficients_.T * np.sqrt(fitted.eigenvalues_)
    np.testing.assert_allclose(fitted.eigenvectors_, vectors, atol=1e-14)
    fitted.set_params(fit_inverse_transform=True, whiten=True).fit(X)
    whitened = projections / projections.std(axis=0, ddof=1)
    np.testing.assert_allclose(fitted.X_transformed_fit_, whitened, atol=1e-10)


def test_eigenvectors_of_zero_eigenvalues_are_those_of_scikit_learn():
    X = rows(30, 3)
    with pytest.warns(RankWarning):
        ours = KernelPCA(30, eigen_solver="dense").fit(X)
    theirs = ScikitKernelPCA(30, eigen_solver="dense").fit(X)
    assert np.count_nonzero(ours.eigenvalues_) == 3
    assert not ours.coefficients_[3:].any()
    gram = ours.eigenvectors_.T @ ours.eigenvectors_
    np.testing.assert_allclose(gram, np.eye(30), atol=1e-12)
    np.testing.assert_allclose(ours.eigenvectors_[:, :3], theirs.eigenvectors_[:, :3], atol=1e-14)

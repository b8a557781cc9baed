"""Single precision where the tolerance allows it: equal components, valid bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from ikpca import KernelPCA
from ikpca.gram import read_budget
from ikpca.kernels import Gaussian, Laplacian, Polynomial
from ikpca.solvers import Problem
from tests.pairwise import pairwise

X = load_digits().data / 16
KERNEL = Gaussian(0.05)


def single_precision_error(kernel, rows, tol):
    used = Problem(kernel, rows, read_budget(None)).in_single_precision(tol)
    return None if used.exact is None else used.error


def fitted(tol, rows=X, **parameters):
    parameters = {"kernel": "rbf", "gamma": 0.05, "random_state": 0, **parameters}
    return KernelPCA(8, eigen_solver="krylov", tol=tol, **parameters).fit(rows)


def test_single_precision_is_used_for_loose_tolerances():
    assert single_precision_error(KERNEL, X, 1e-3) < 1e-6
    assert single_precision_error(KERNEL, X, 1e-7) is None
    assert single_precision_error(KERNEL, X, 0) is None


def test_single_precision_is_for_float64_rows_and_kernels_that_gain(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    assert single_precision_error(KERNEL, X.astype(np.float32), 1e-3) is None
    assert (
        single_precision_error(KERNEL, np.load(tmp_path / "rows.npy", mmap_mode="r"), 1e-3) is None
    )
    assert single_precision_error(Laplacian(0.05), X, 1e-3) is None
    assert single_precision_error(None, X @ X.T, 1e-3) is None


@pytest.mark.parametrize(
    ("kernel", "rows"),
    [(KERNEL, X + 1e7 / 3), (Polynomial(2, 1.0, 1e6), X), (KERNEL, 1 + 1e-4 * X)],
    ids=["far from the origin", "mostly constant", "nearly equal"],
)
def test_no_single_precision_where_rounding_errors_are_large(kernel, rows):
    assert single_precision_error(kernel, rows, 1e-3) is None


@pytest.mark.parametrize("parameters", [{}, {"kernel": "poly", "degree": 2}], ids=["rbf", "poly"])
def test_the_components_are_within_the_tolerance(parameters):
    exact = KernelPCA(8, eigen_solver="dense", **{"kernel": "rbf", "gamma": 0.05, **parameters})
    exact.fit(X)
    loose = fitted(1e-3, **parameters)
    for name in ("eigenvalues_", "eigenvectors_", "coefficients_"):
        assert getattr(loose, name).dtype == np.float64
    bounds = loose.certificate_.eigenvalue_bounds
    assert (np.abs(loose.eigenvalues_ - exact.eigenvalues_) <= bounds).all()
    angles = subspace_angles(loose.eigenvectors_, exact.eigenvectors_)
    assert angles.max() < 1e-2
    new = X[::7] + 0.05
    np.testing.assert_allclose(
        np.abs(loose.transform(new)), np.abs(exact.transform(new)), atol=2e-2
    )


def test_rows_far_from_the_origin_keep_double_precision():
    """In single precision, kernel values of these rows would be rounding errors."""
    shifted, plain = fitted(1e-3, X + 1e7 / 3), fitted(1e-3)
    np.testing.assert_allclose(shifted.eigenvalues_, plain.eigenvalues_, rtol=1e-4)


#: The last residual is a few rounding errors, whatever the number of rows.
FLOORS = {np.float32: 1e-6, np.float64: 1e-13}
FLOOR_KERNELS = {
    "rbf": {"gamma": 1 / 30}, "laplacian": {"gamma": 1 / 30}, "poly": {"degree": 2}, "linear": {},
    "cosine": {},
}  # fmt: skip


def rows_near_a_surface(n_rows, dtype):
    rng = np.random.default_rng(0)
    X = np.tanh(rng.normal(size=(n_rows, 4)) @ rng.normal(size=(4, 30)))
    return (X + 0.1 * rng.normal(size=X.shape)).astype(dtype)


def check_floor(n_rows, dtype, kernel):
    rows = rows_near_a_surface(n_rows, dtype)
    model = KernelPCA(
        4, kernel=kernel, eigen_solver="krylov", random_state=0, **FLOOR_KERNELS[kernel]
    ).fit(rows)
    assert model.certificate_.residuals.max() <= FLOORS[dtype]
    assert model.n_iter_ <= 20


@pairwise(slow=True, kernel=FLOOR_KERNELS, dtype=FLOORS)
def test_residuals_fall_to_rounding_errors(kernel, dtype):
    check_floor(3000, dtype, kernel)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOORS)
@pytest.mark.parametrize("kernel", FLOOR_KERNELS)
def test_residuals_of_many_rows_fall_to_rounding_errors(kernel, dtype):
    check_floor(20_000, dtype, kernel)


def test_a_tolerance_beyond_the_precision_warns():
    rows = rows_near_a_surface(2000, np.float32)
    model = KernelPCA(4, kernel="rbf", eigen_solver="krylov", tol=1e-9, random_state=0)
    with pytest.warns(ConvergenceWarning, match="precision of the rows does not allow tol=1e-09"):
        model.fit(rows)
    assert model.outcome_.name == "STALLED"

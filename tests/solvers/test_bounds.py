"""Reported residuals, bounds and excess errors against kernel matrices in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from ikpca import KernelPCA
from ikpca.solvers import Nystrom
from ikpca.solvers.kha import METHODS
from tests.exact_kernel import ExactKernel
from tests.pairwise import pairwise

SOLVERS = {
    "dense": {"eigen_solver": "dense"},
    "krylov": {"eigen_solver": "krylov"},
    "nystrom": {"eigen_solver": Nystrom(80)},
    **{method: {"eigen_solver": method, "max_iter": 10} for method in METHODS},
}


def plain_rows(rng):
    return rng.normal(size=(400, 5)) * [2.0, 1.5, 1.0, 0.6, 0.4]


def far_rows(rng):
    X = rng.normal(size=(400, 8))
    X[:8] *= 0.3
    X[:8, 0] += 2000
    return X


def far_clusters(rng):
    return np.concatenate([rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) + 300])


def rare_levels(rng):
    levels = rng.integers(5, size=400)
    levels[:6] = [5, 5, 6, 6, 7, 7]
    return np.eye(8)[rng.permutation(levels)]


def heavy_tails(rng):
    return np.clip(rng.standard_cauchy((400, 4)), -1e3, 1e3)


def with_offset(rng):
    return plain_rows(rng) + 1000


def small_rows(rng):
    return 1e-3 * plain_rows(rng)


#: Rows on which kernel values are hard to compute or rows are hard to sample, and kernels.
CASES = {
    "plain, linear": (plain_rows, "linear", {}),
    "plain, Gaussian": (plain_rows, "rbf", {"gamma": 0.05}),
    "plain, polynomial": (plain_rows, "poly", {"degree": 2}),
    "far rows, Gaussian": (far_rows, "rbf", {"gamma": 0.5}),
    "far rows, linear": (far_rows, "linear", {}),
    "far clusters, Gaussian": (far_clusters, "rbf", {"gamma": 0.5}),
    "far clusters, Laplacian": (far_clusters, "laplacian", {"gamma": 0.5}),
    "rare levels, linear": (rare_levels, "linear", {}),
    "rare levels, Gaussian": (rare_levels, "rbf", {"gamma": 0.1}),
    "heavy tails, polynomial": (heavy_tails, "poly", {"degree": 2}),
    "heavy tails, cosine": (heavy_tails, "cosine", {}),
    "offset, linear": (with_offset, "linear", {}),
    "offset, Gaussian": (with_offset, "rbf", {"gamma": 0.05}),
    "small rows, Gaussian": (small_rows, "rbf", {}),
    "small rows, Laplacian": (small_rows, "laplacian", {}),
}


@pairwise(
    slow=True,
    case=CASES,
    solver=SOLVERS,
    dtype=["float64", "float32"],
    form=[np.asarray, sparse.csr_array],
)
def test_reported_bounds_hold(case, solver, dtype, form):
    make, kernel, parameters = CASES[case]
    X = form(make(np.random.default_rng(0)).astype(dtype))
    model = KernelPCA(4, kernel=kernel, random_state=0, **parameters, **SOLVERS[solver])
    projections = model.fit_transform(X)
    exact, certificate = ExactKernel(X, kernel, **parameters), model.certificate_
    values = model.eigenvalues_.astype(np.float64)
    residuals, bounds = exact.model_residuals(model, projections), certificate.residual_bounds
    rounding = exact.rounding / values[0]
    assert (bounds >= certificate.residuals).all()
    # What is left of iterations is measured; that measurement is rounded, too.
    allowed = bounds * (1 + 1e-6) + rounding
    assert (residuals <= allowed).all(), f"residuals {residuals}, bounds {bounds}"
    distances = np.abs(values[:, None] - exact.all_eigenvalues).min(axis=1)
    allowed = certificate.eigenvalue_bounds + exact.rounding
    assert (distances <= allowed).all(), f"eigenvalues off by {distances}, bounds {allowed}"
    (true, rounding), stated = exact.excess_error(projections), certificate.excess_error
    # An estimate, up to a factor of ten; the rounding of projections is not part of it.
    assert stated >= 0.1 * true - rounding, f"excess error {true}, stated {stated}"


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("make", [plain_rows, far_rows, far_clusters, with_offset, small_rows])
@pytest.mark.parametrize("solver", ["auto", "krylov"])
def test_reported_residuals_with_a_tolerance(make, dtype, solver):
    """Enough rows that "auto" starts from landmarks."""
    rng = np.random.default_rng(0)
    X = np.concatenate([make(rng) for _ in range(4)]).astype(dtype)
    exact = ExactKernel(X, "rbf", gamma=0.5)
    model = KernelPCA(4, kernel="rbf", gamma=0.5, tol=1e-2, eigen_solver=solver, random_state=0)
    projections = model.fit_transform(X)
    residuals = exact.model_residuals(model, projections)
    bounds = model.certificate_.residual_bounds
    rounding = exact.rounding / exact.eigenvalues(1)[0]
    assert residuals.max() <= bounds.max() + rounding, f"residuals {residuals}, bounds {bounds}"

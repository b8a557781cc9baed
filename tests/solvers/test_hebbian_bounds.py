"""Certificates of Hebbian fits against the exact solution, on kernels of low and full rank."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_digits

from ikpca import KernelPCA
from ikpca.gram import ComputedGram, full_matrix, read_budget
from ikpca.kernels import Cosine, Gaussian, Laplacian, Linear, Polynomial, Sigmoid
from ikpca.solvers import KHA, Outcome, Problem, RunSettings
from ikpca.solvers.kha import METHODS
from tests.pairwise import pairwise

pytestmark = pytest.mark.slow

#: A relative excess below this is rounding error of the exact solution.
ROUNDING = {np.float64: 1e-11, np.float32: 1e-4}
KERNELS = {
    "linear": (Linear(), 8),
    "parabola": (Polynomial(2, 1.0, 0.0), 2),
    "polynomial 2": (Polynomial(2, 1 / 64, 1.0), 6),
    "polynomial 3": (Polynomial(3, 1 / 64, 1.0), 6),
    "narrow Gaussian": (Gaussian(0.5), 6),
    "Gaussian": (Gaussian(0.05), 6),
    "wide Gaussian": (Gaussian(0.002), 6),
    "sigmoid": (Sigmoid(1e-3, 0.0), 6),
    "Laplacian": (Laplacian(0.02), 6),
    "cosine": (Cosine(), 6),
}


def rows(name):
    if name != "parabola":
        return load_digits().data[:240] / 16
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 240)
    return np.column_stack([x, 0.2 * rng.normal(size=240) - x**2])


@cache
def exact(name):
    """K, K' and the eigenvalues of K'."""
    K = full_matrix(ComputedGram(KERNELS[name][0], rows(name)))
    H = np.eye(len(K)) - 1 / len(K)
    return K, H @ K @ H, np.linalg.eigvalsh(H @ K @ H)[::-1]


def true_error(name, projections, r):
    """E/E_min − 1, or E/‖K'‖ if r is the rank."""
    _, centered, eigenvalues = exact(name)
    Y = projections.astype(np.float64)
    error, norm = np.linalg.norm(centered - Y.T @ Y), np.linalg.norm(centered)
    minimum = np.linalg.norm(eigenvalues[r:])
    return error / norm if minimum < 1e-7 * norm else error / minimum - 1


def stated_and_true(name, solver, r, passes, dtype=np.float64):
    """Return pairs for some of the passes, and for the certificate at the end."""
    pairs = []

    def compare(record, current):
        if record.number in (1, 3):
            pairs.append((record.excess_error, true_error(name, current().projections, r)))

    problem = Problem(None, exact(name)[0].astype(dtype), read_budget(None), seed=0)
    actual = solver.solve(problem, r, RunSettings(passes, callback=compare))
    stated = actual.certificate.excess_error
    return [*pairs, (stated, true_error(name, actual.projections, r))]


@pairwise(slow=True, strength=3, name=KERNELS, method=METHODS, init=["landmarks", "random"])
def test_stated_excess_error(name, init, method):
    solver = KHA(method, init=init)
    for stated, true in stated_and_true(name, solver, KERNELS[name][1], passes=8):
        assert stated >= 0.1 * true - ROUNDING[np.float64]
        assert stated <= 100 * true + ROUNDING[np.float64]


@pytest.mark.parametrize("name", ["linear", "Gaussian"])
def test_stated_error_is_of_the_size_of_the_true_one_in_float32(name):
    solver = KHA("kha/et", init="random")
    for stated, true in stated_and_true(name, solver, KERNELS[name][1], 8, np.float32):
        assert 0.1 * true - ROUNDING[np.float32] <= stated <= 100 * true + ROUNDING[np.float32]


@pytest.mark.parametrize("method", ["kha", "kha/et"])
def test_without_rayleigh_ritz(method):
    """Components that are not orthonormal."""
    solver = KHA(method, gain=0.01 if method == "kha" else 0.02, rayleigh_ritz=False)
    for stated, true in stated_and_true("Gaussian", solver, 6, passes=8):
        assert 0.1 * true <= stated <= 100 * true


@pytest.mark.parametrize("init", ["landmarks", "random"])
def test_all_components_of_a_kernel_of_low_rank(init):
    """E_min is zero: E relative to ‖K'‖ is stated, and vanishes with the error."""
    for r in (3, 5):
        for stated, true in stated_and_true("parabola", KHA("kha/et", init=init), r, passes=8):
            assert true < 1e-7
            assert stated < 1e-7


@pytest.mark.parametrize("method", METHODS)
def test_tol_stops_fits_on_kernels_of_low_rank(method):
    X = rows("linear")
    model = KernelPCA(8, kernel="linear", eigen_solver=method, tol=1e-3, random_state=0).fit(X)
    assert model.outcome_ is Outcome.CONVERGED
    assert model.n_iter_ < 50
    assert model.certificate_.residuals.max() <= 1e-3


def test_more_rows_than_are_certified_in_every_pass():
    """Residuals of a pass are estimated from a sample; those at the end are exact."""
    X = np.random.default_rng(0).normal(size=(1100, 5)) * [3, 2.5, 2, 1, 0.5]
    model = KernelPCA(2, kernel="linear", eigen_solver=KHA(init="random"), max_iter=3).fit(X)
    K = (X - X.mean(axis=0)) @ (X - X.mean(axis=0)).T
    Y = K @ model.eigenvectors_
    units = Y / np.linalg.norm(Y, axis=0)
    residuals = np.linalg.norm(K @ units - units * model.eigenvalues_, axis=0)
    residuals /= model.eigenvalues_[0]
    np.testing.assert_allclose(model.certificate_.residuals, residuals, rtol=1e-6)
    np.testing.assert_allclose(model.history_[-1].residuals, residuals, rtol=0.5)
    assert not np.allclose(model.history_[-1].residuals, residuals, rtol=1e-6)

"""Reduced sets, compared with explicit features and brute force."""

from __future__ import annotations

import numpy as np
import pytest

from ikpca.gram import cross_gram
from ikpca.kernels import Gaussian, Linear, Polynomial
from ikpca.reduced_sets import IteratedPreimages, SelectedRows
from ikpca.reduced_sets.iterated_preimages import GrowingBasis
from ikpca.reduced_sets.select_rows import _WeightedError, eliminate
from ikpca.subspace import Subspace
from tests.conftest import KERNELS, explicitly_centered
from tests.pairwise import pairwise

QUADRATIC = Polynomial(degree=2, gamma=1.0, coef0=0.0)
REDUCTIONS = [SelectedRows(), IteratedPreimages(), SelectedRows("auto")]


def features(X):
    """Return explicit features of the quadratic kernel."""
    return np.einsum("ni,nj->nij", X, X).reshape(len(X), -1)


def fitted(kernel, X, r):
    """Return components, mean and singular values of explicit features."""
    K = cross_gram(kernel, X, X)
    values, vectors = np.linalg.eigh(explicitly_centered(K))
    values, vectors = values[::-1][:r], vectors[:, ::-1][:, :r]
    components = (vectors / np.sqrt(values)).T
    components = components - components.mean(axis=1, keepdims=True)
    mean = np.full((1, len(X)), 1 / len(X))
    return Subspace(kernel, X, np.vstack([components, mean])), np.sqrt(values)


def weighted_error(found, weights):
    return float(weights**2 @ found.squared_errors)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_errors_are_distances_between_explicit_features(reduction):
    X = np.random.default_rng(1).normal(size=(40, 6)) + 0.5
    subspace, _ = fitted(QUADRATIC, X, 3)
    found = reduction.reduce(subspace, 7)
    before = subspace.coefficients @ features(X)
    after = found.subspace.coefficients @ features(found.subspace.basis)
    lengths = np.sum(before**2, axis=1)
    np.testing.assert_allclose(
        found.squared_errors, np.sum((before - after) ** 2, axis=1), atol=1e-10 * lengths.max()
    )
    assert (found.squared_errors > 1e-6 * lengths).any()


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_rows_that_span_the_feature_space_are_enough(reduction):
    X = np.random.default_rng(2).normal(size=(50, 6))
    found = reduction.reduce(fitted(Linear(), X, 4)[0], 6)
    np.testing.assert_allclose(found.relative_errors, 0, atol=1e-7)


def test_selected_rows_span_quadratic_features():
    X = np.random.default_rng(2).normal(size=(80, 4))
    found = SelectedRows().reduce(fitted(QUADRATIC, X, 6)[0], 10)
    np.testing.assert_allclose(found.relative_errors, 0, atol=1e-6)


def test_first_removed_row_costs_least():
    rng = np.random.default_rng(3)
    X, weights = rng.normal(size=(25, 3)), np.array([3.0, 2.0, 1.0])
    subspace = Subspace(Gaussian(0.3), X, rng.normal(size=(3, 25)))
    K = cross_gram(subspace.kernel, X, X)
    costs = []
    for j in range(25):
        left = np.delete(np.arange(25), j)
        C = np.linalg.solve(K[np.ix_(left, left)], subspace.products[:, left].T).T
        errors = np.diagonal(subspace.gram) - np.einsum("ik,ik->i", C, subspace.products[:, left])
        costs.append(weights**2 @ errors)
    found = SelectedRows().reduce(subspace, 24, weights)
    np.testing.assert_allclose(weighted_error(found, weights), min(costs), rtol=1e-6)
    kept = eliminate(K, subspace.coefficients, weights, 24)
    np.testing.assert_array_equal(kept, np.delete(np.arange(25), np.argmin(costs)))


def test_elimination_is_better_than_random_rows():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 5))
    subspace, singular_values = fitted(Gaussian(0.1), X, 5)
    weights = np.append(singular_values, singular_values[0])
    K = cross_gram(subspace.kernel, X, X)
    drawn = []
    for _ in range(20):
        rows = rng.choice(200, 40, replace=False)
        C = np.linalg.solve(K[np.ix_(rows, rows)], subspace.products[:, rows].T).T
        errors = np.diagonal(subspace.gram) - np.einsum("ik,ik->i", C, subspace.products[:, rows])
        drawn.append(weights**2 @ errors)
    found = SelectedRows().reduce(subspace, 40, weights)
    assert weighted_error(found, weights) < 0.5 * min(drawn)


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "cosine", "laplacian"])
def test_moving_rows_never_raises_the_weighted_error(name):
    X = np.random.default_rng(5).normal(size=(60, 3)) + 1
    subspace, singular_values = fitted(KERNELS[name], X, 2)
    weights = np.append(singular_values, singular_values[0])
    still = SelectedRows().reduce(subspace, 4, weights)
    moved = SelectedRows(moves=30, tol=0.0).reduce(subspace, 4, weights)
    assert weighted_error(moved, weights) <= weighted_error(still, weights)
    if name in {"poly", "rbf"}:
        assert weighted_error(moved, weights) < 0.5 * weighted_error(still, weights)


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "cosine", "laplacian"])
def test_gradient_of_the_weighted_error(name):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(30, 5)) + 1
    subspace, singular_values = fitted(KERNELS[name], X, 2)
    error = _WeightedError(subspace, np.append(singular_values, 2.0), (3, 5))
    at = (X[:3] + 0.1 * rng.normal(size=(3, 5))).ravel() / error.spread
    _, slope = error(at)
    steps = 1e-6 * np.eye(15)
    rises = [(error(at + step)[0] - error(at - step)[0]) / 2e-6 for step in steps]
    np.testing.assert_allclose(slope, rises, atol=1e-6 * np.abs(slope).max() + 1e-9)


def test_growing_basis_equals_least_squares():
    rng = np.random.default_rng(7)
    X, Z = rng.normal(size=(20, 3)), rng.normal(size=(5, 3))
    subspace = Subspace(QUADRATIC, X, rng.normal(size=(2, 20)))
    growing = GrowingBasis(subspace, 6)
    for row in Z:
        growing.add(row)
    targets = subspace.coefficients @ features(X)
    expected, *_ = np.linalg.lstsq(features(Z).T, targets.T, rcond=None)
    np.testing.assert_allclose(growing.coefficients(), expected.T, rtol=1e-8)
    rest = targets - expected.T @ features(Z)
    np.testing.assert_allclose(growing.squared_errors, np.sum(rest**2, axis=1), rtol=1e-8)
    residual = growing._residual(1)
    explicit = residual.coefficients @ features(residual.basis)
    np.testing.assert_allclose(explicit, rest[1:], atol=1e-8)
    np.testing.assert_allclose(residual.products, rest[1:] @ features(residual.basis).T, atol=1e-8)
    np.testing.assert_allclose(residual.gram, [[rest[1] @ rest[1]]], rtol=1e-8)


def test_best_row_of_a_growing_basis_reduces_the_error_most():
    X = np.random.default_rng(8).normal(size=(20, 2))
    subspace = Subspace(Gaussian(0.5), X, np.random.default_rng(9).normal(size=(1, 20)))
    growing = GrowingBasis(subspace, 20)

    def error_with(row):
        Z = np.vstack([growing.rows, row])
        K, products = cross_gram(subspace.kernel, Z, Z), subspace.products_with(Z)[0]
        return subspace.gram[0, 0] - products @ np.linalg.lstsq(K, products)[0]

    for _ in range(6):
        row = growing.best_row(0)
        best = min(error_with(x) for x in X)
        growing.add(row)
        assert growing.squared_errors[0] <= best + 1e-9


def test_no_row_is_added_twice():
    X = np.eye(2)
    growing = GrowingBasis(Subspace(QUADRATIC, X, np.ones((1, 2))), 3)
    for row in X:
        growing.add(row)
    assert growing.best_row(0) is None


def orthonormality_defect(subspace):
    """With kernel values in double precision, whatever the rows are."""
    rows, A = subspace.basis.astype(np.float64), subspace.coefficients[:-1]
    return np.abs(A @ cross_gram(subspace.kernel, rows, rows) @ A.T - np.eye(len(A))).max()


@pairwise(
    name=["linear", "poly", "rbf", "cosine", "laplacian"],
    reduction=REDUCTIONS,
    dtype=[np.float32, np.float64],
)
def test_components_are_orthonormal_again(name, reduction, dtype):
    X = (np.random.default_rng(8).normal(size=(60, 5)) + 1).astype(dtype)
    subspace, singular_values = fitted(KERNELS[name], X.astype(np.float64), 3)
    subspace = Subspace(subspace.kernel, X, subspace.coefficients)
    found = reduction.reduce(subspace, 6, np.append(singular_values, 1.0))
    after, values = found.orthonormalize(singular_values)
    assert orthonormality_defect(after) < 1e-10
    np.testing.assert_allclose(after.gram[:-1, :-1], np.eye(len(values)), atol=1e-10)
    np.testing.assert_array_equal(after.coefficients[-1], found.subspace.coefficients[-1])


def test_singular_values_are_those_of_the_covariance_projected_on_the_basis():
    X = np.random.default_rng(9).normal(size=(60, 4)) + 0.5
    subspace, singular_values = fitted(QUADRATIC, X, 4)
    found = SelectedRows().reduce(subspace, 6, np.append(singular_values, 1.0))
    after, values = found.orthonormalize(singular_values)
    scaled = singular_values[:, None] * (subspace.coefficients[:-1] @ features(X))
    reduced = found.subspace.coefficients[:-1] @ features(found.subspace.basis)
    basis, _ = np.linalg.qr(reduced.T)
    seen = basis @ basis.T @ scaled.T @ scaled @ basis @ basis.T
    components = after.coefficients[:-1] @ features(after.basis)
    np.testing.assert_allclose(components.T @ np.diag(values**2) @ components, seen, atol=1e-9)
    assert (values <= singular_values * (1 + 1e-12)).all()


def test_exact_components_are_unchanged():
    X = np.random.default_rng(10).normal(size=(30, 4))
    subspace, singular_values = fitted(Gaussian(0.1), X, 4)
    after, values = SelectedRows().reduce(subspace, 30).orthonormalize(singular_values)
    np.testing.assert_allclose(values, singular_values, rtol=1e-10)
    np.testing.assert_allclose(after.coefficients, subspace.coefficients, atol=1e-8)


def test_equations_22_to_24_as_printed_leave_a_defect():
    X = np.random.default_rng(11).normal(size=(60, 5))
    subspace, singular_values = fitted(Gaussian(0.1), X, 4)
    found = IteratedPreimages(1).reduce(subspace, 5)
    reduced = found.subspace
    A = reduced.coefficients[:-1].T
    K = cross_gram(reduced.kernel, reduced.basis, reduced.basis)
    D, Q = np.linalg.eigh(A.T @ K @ A)
    whitened = A @ Q / np.sqrt(D)
    P = whitened.T @ K @ A
    printed = whitened @ (P / np.linalg.norm(P, axis=0))
    np.testing.assert_allclose(whitened @ P, A, atol=1e-10)
    assert np.abs(printed.T @ K @ printed - np.eye(4)).max() > 0.1
    after, _ = found.orthonormalize(singular_values)
    assert orthonormality_defect(after) < 1e-12


def test_components_that_became_dependent_are_fewer():
    X = np.random.default_rng(12).normal(size=(30, 4))
    subspace, singular_values = fitted(Gaussian(0.1), X, 4)
    coefficients = subspace.coefficients.copy()
    coefficients[3] = coefficients[0] - coefficients[1]
    dependent = Subspace(subspace.kernel, X, coefficients)
    after, values = SelectedRows().reduce(dependent, 30).orthonormalize(singular_values)
    assert len(values) == len(after.coefficients) - 1 == 3
    assert orthonormality_defect(after) < 1e-10

"""Optional protocols of kernels: gradients, centers, distances."""

from __future__ import annotations

import numpy as np
import pytest

from ikpca.kernels import (
    Cosine,
    DifferentiableKernel,
    DistanceKernel,
    Gaussian,
    Laplacian,
    Linear,
    Pairwise,
    Polynomial,
    RadialKernel,
    Sigmoid,
    Vectorized,
)
from tests.conftest import KERNELS
from tests.kernels.test_values import SLACK, filled, peak_bytes
from tests.pairwise import pairwise

DIFFERENTIABLE = {
    **KERNELS,
    "poly 1": Polynomial(degree=1, gamma=0.3, coef0=0.5),
    "poly 2": Polynomial(degree=2, gamma=0.3, coef0=0.0),
    "poly 2.5": Polynomial(degree=2.5, gamma=0.02, coef0=9.0),
    "constant": Polynomial(degree=0),
}
RADIAL = {"rbf": KERNELS["rbf"], "laplacian": KERNELS["laplacian"]}
MEASURING = {
    "linear": Linear(),
    "rbf": KERNELS["rbf"],
    "poly 2": Polynomial(degree=2, gamma=0.1, coef0=20.0),
    "poly 3": KERNELS["poly"],
}


@pytest.fixture
def sets():
    """Return rows Z and X, and weights of both signs."""
    rng = np.random.default_rng(1)
    return rng.normal(size=(4, 5)) + 0.5, rng.normal(size=(9, 5)), rng.normal(size=(4, 9))


def central_difference(function, Z, step=1e-5):
    """Return the numerical gradient of function(Z)_i with respect to row i."""
    columns = []
    for column in range(Z.shape[1]):
        nudge = np.zeros_like(Z)
        nudge[:, column] = step
        columns.append((function(Z + nudge) - function(Z - nudge)) / (2 * step))
    return np.column_stack(columns)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_weighted_gradient_against_finite_differences(name, sets):
    kernel, (Z, X, weights) = DIFFERENTIABLE[name], sets

    def weighted(Z):
        return np.einsum("ij,ij->i", weights, filled(kernel, Z, X))

    values, gradients = kernel.weighted_gradient(Z, X, weights)
    np.testing.assert_allclose(values, weighted(Z), rtol=1e-12, atol=1e-12)
    expected = central_difference(weighted, Z)
    np.testing.assert_allclose(gradients, expected, atol=1e-7 * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_diagonal_gradient_against_finite_differences(name, sets):
    kernel, Z = DIFFERENTIABLE[name], sets[0]
    expected = central_difference(kernel.diagonal, Z)
    scale = 1 + np.abs(expected).max()
    np.testing.assert_allclose(kernel.diagonal_gradient(Z), expected, atol=1e-7 * scale)


@pairwise(strength=1, name=KERNELS, dtype=[np.float64, np.float32])
def test_types_are_kept_and_arguments_not_modified(name, sets, dtype):
    kernel = KERNELS[name]
    arguments = [array.astype(dtype) for array in sets]
    for array in arguments:
        array.flags.writeable = False
    result = [*kernel.weighted_gradient(*arguments), kernel.diagonal_gradient(arguments[0])]
    if name in RADIAL:
        result += kernel.weighted_center(*arguments)
    assert {array.dtype for array in result} == {np.dtype(dtype)}


@pytest.mark.parametrize("name", KERNELS)
def test_no_temporary_for_every_pair_and_feature(name):
    """Two tiles of kernel values and slopes and, of the rows, a copy or two; 40 tiles in a cube."""
    rng = np.random.default_rng(0)
    Z, X, weights = rng.random((300, 40)), rng.random((400, 40)), rng.random((300, 400))
    tile, rows = weights.nbytes, Z.nbytes + X.nbytes
    kernel = KERNELS[name]
    allowed = 5 * tile + 4 * rows + SLACK
    assert peak_bytes(lambda: kernel.weighted_gradient(Z, X, weights)) <= allowed


def test_the_gradient_of_a_zero_row_is_finite(sets):
    zero = np.zeros((4, 5))
    _, gradients = Cosine().weighted_gradient(zero, sets[1], sets[2])
    assert np.isfinite(gradients).all()


# --- centers -------------------------------------------------------------------------


@pytest.mark.parametrize("name", RADIAL)
def test_center_of_positive_weights_increases_the_sum(name, sets):
    """Mean and median shift: a step to the center never lowers a sum of positive weights."""
    kernel, (Z, X, weights) = RADIAL[name], sets
    weights = np.abs(weights)
    values, centers = kernel.weighted_center(Z, X, weights)
    higher, _ = kernel.weighted_center(centers, X, weights)
    assert (higher > values).all()


def test_the_gaussian_step_is_along_the_gradient(sets):
    Z, X, weights = sets
    weights = np.abs(weights)
    values, centers = Gaussian(0.2).weighted_center(Z, X, weights)
    _, gradients = Gaussian(0.2).weighted_gradient(Z, X, weights)
    np.testing.assert_allclose(centers - Z, gradients / (0.4 * values[:, None]), atol=1e-12)


def test_the_laplacian_center_has_half_of_the_weight_on_either_side(sets):
    Z, X, weights = sets
    kernel, weights = Laplacian(0.3), np.abs(weights)
    _, centers = kernel.weighted_center(Z, X, weights)
    pulls = weights * filled(kernel, Z, X)
    for i, d in np.ndindex(*Z.shape):
        below, above = (pulls[i, side].sum() for side in (X[:, d] < centers[i, d],
                                                          X[:, d] > centers[i, d]))  # fmt: skip
        assert max(below, above) <= pulls[i].sum() / 2


@pytest.mark.parametrize("name", RADIAL)
def test_without_positive_weights_points_do_not_move(name, sets):
    Z, X, weights = sets
    values, centers = RADIAL[name].weighted_center(Z, X, -np.abs(weights))
    assert (values < 0).all()
    assert np.array_equal(centers, Z)


# --- distances -----------------------------------------------------------------------


@pytest.mark.parametrize("name", MEASURING)
def test_input_distances_up_to_a_number_per_row(name, sets):
    kernel, (Z, X, _) = MEASURING[name], sets
    rows = np.broadcast_to(X, (len(Z), *X.shape))
    actual = kernel.input_distances(filled(kernel, Z, X), rows)
    expected = np.square(Z[:, None] - X[None]).sum(axis=2)
    offsets = actual - expected
    np.testing.assert_allclose(offsets, np.broadcast_to(offsets[:, :1], offsets.shape), atol=1e-9)


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Gaussian(0), Polynomial(2, 0.0), Polynomial(0)])
def test_input_distances_of_impossible_values_are_finite(kernel):
    values = np.array([[0.9, 0.0, -0.5], [-1.0, -2.0, 0.0]])
    assert np.isfinite(kernel.input_distances(values, np.ones((2, 3, 1)))).all()


# --- who offers what -----------------------------------------------------------------


def test_kernels_implement_their_optional_protocols():
    kernels = [*KERNELS.values(), Pairwise(min), Vectorized(min)]
    parts = {
        DifferentiableKernel: {Linear, Polynomial, Sigmoid, Cosine, Gaussian, Laplacian},
        RadialKernel: {Gaussian, Laplacian},
        DistanceKernel: {Linear, Polynomial, Gaussian},
    }
    for part, expected in parts.items():
        assert {type(kernel) for kernel in kernels if isinstance(kernel, part)} == expected

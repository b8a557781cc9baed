"""Contract of every pre-image method, for every kernel that it supports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ikpca.errors import InvalidInput
from ikpca.gram import cross_gram
from ikpca.kernels import Gaussian, Linear, Vectorized
from ikpca.preimages import (
    MDS,
    PREIMAGE_NAMES,
    FixedPoint,
    Gradient,
    NeighborMean,
    make_preimage_method,
)
from ikpca.subspace import Subspace
from tests.conftest import KERNELS

ALL_KERNELS = {**KERNELS, "vectorized": Vectorized(lambda X, Y: np.exp(-0.1 * np.abs(X @ Y.T)))}
METHODS = {
    "fixed point": FixedPoint(),
    "gradient": Gradient(),
    "mds": MDS(),
    "neighbors": NeighborMean(),
}
PAIRS = [
    (method, kernel)
    for method in METHODS
    for kernel in ALL_KERNELS
    if METHODS[method].supports(ALL_KERNELS[kernel])
]


def served(pairs):
    return pytest.mark.parametrize(
        ("method", "kernel"),
        [
            pytest.param(METHODS[method], ALL_KERNELS[kernel], id=f"{method}-{kernel}")
            for method, kernel in pairs
        ],
    )


every_pair = served(PAIRS)
#: Every method and every kernel, where the result depends on neither.
some_pairs = served(
    [
        ("fixed point", "rbf"),
        ("fixed point", "laplacian"),
        ("gradient", "poly"),
        ("gradient", "cosine"),
        ("mds", "linear"),
        ("neighbors", "sigmoid"),
        ("neighbors", "vectorized"),
    ]
)
#: A mean of rows makes no promise of being near.
every_search = served([pair for pair in PAIRS if pair[0] != "neighbors"])
#: The type of a user's kernel is that of the function.
every_typed_pair = served([pair for pair in PAIRS if pair[1] != "vectorized"])


def problem(kernel, dtype=np.float64):
    """Three vectors on forty rows, with weights of both signs, and twelve points in their span."""
    rng = np.random.default_rng(3)
    basis = rng.normal(size=(40, 4)) + 1
    coefficients = rng.dirichlet(np.full(40, 0.2), size=3) + 0.02 * rng.normal(size=(3, 40))
    coordinates = rng.dirichlet(np.ones(3), size=12)
    subspace = Subspace(kernel, basis.astype(dtype), coefficients.astype(dtype))
    return subspace, coordinates.astype(dtype), (basis[:12] + 0.3).astype(dtype)


def explicit_distances(subspace, coordinates, Z):
    """‖P − Φ(z)‖² with all inner products written out."""
    G = coordinates @ subspace.coefficients
    K = cross_gram(subspace.kernel, subspace.basis, subspace.basis)
    across = cross_gram(subspace.kernel, Z, subspace.basis)
    return (
        np.einsum("ij,jk,ik->i", G, K, G)
        - 2 * np.einsum("ij,ij->i", G, across)
        + subspace.kernel.diagonal(Z)
    )


def best_rows(subspace, coordinates):
    """Return the smallest distance to the image of a basis row."""
    trials = [
        explicit_distances(subspace, coordinates, np.repeat(row[None], len(coordinates), axis=0))
        for row in subspace.basis
    ]
    return np.min(trials, axis=0)


@every_pair
def test_distances_are_those_of_the_rows_returned(method, kernel):
    subspace, coordinates, starts = problem(kernel)
    scale = np.abs(kernel.diagonal(subspace.basis)).max()
    for given in (None, starts):
        found = method.find(subspace, coordinates, given)
        assert found.rows.shape == starts.shape
        expected = np.maximum(explicit_distances(subspace, coordinates, found.rows), 0)
        np.testing.assert_allclose(found.squared_distances, expected, atol=1e-10 * scale)


@every_search
def test_no_worse_than_the_best_row(method, kernel):
    subspace, coordinates, starts = problem(kernel)
    limits = np.maximum(best_rows(subspace, coordinates), 0)
    for given in (None, starts):
        found = method.find(subspace, coordinates, given)
        assert (found.squared_distances <= limits + 1e-10 * (1 + np.abs(limits))).all()


@some_pairs
def test_result_does_not_depend_on_the_other_points(method, kernel):
    subspace, coordinates, starts = problem(kernel)
    together = method.find(subspace, coordinates, starts)
    apart = [
        method.find(subspace, coordinates[i : i + 1], starts[i : i + 1])
        for i in range(len(coordinates))
    ]
    np.testing.assert_allclose(np.vstack([one.rows for one in apart]), together.rows, atol=1e-6)


@every_typed_pair
def test_single_precision_is_kept(method, kernel):
    single = method.find(*problem(kernel, np.float32)[:2])
    double = method.find(*problem(kernel)[:2])
    assert single.rows.dtype == single.squared_distances.dtype == np.float32
    scale = np.abs(kernel.diagonal(problem(kernel)[0].basis)).max()
    np.testing.assert_allclose(
        single.squared_distances, double.squared_distances, atol=2e-4 * scale
    )


@some_pairs
def test_arguments_are_not_modified(method, kernel):
    subspace, coordinates, starts = problem(kernel)
    for array in (subspace.basis, subspace.coefficients, coordinates, starts):
        array.flags.writeable = False
    method.find(subspace, coordinates, starts)


@every_pair
def test_preimages_of_extreme_points_are_finite(method, kernel):
    """Zero, the negative of an image, and points far longer than any image."""
    subspace, _, starts = problem(kernel)
    hopeless = Subspace(kernel, subspace.basis, np.eye(40)[:1])
    coordinates = np.array([[0.0], [-1.0], [1e3], [-1e3]])
    for given in (None, starts[:4], starts[:4] + 1e3):
        found = method.find(hopeless, coordinates, given)
        assert np.isfinite(found.rows).all()
        assert np.isfinite(found.squared_distances).all()


@some_pairs
def test_equal_rows(method, kernel):
    subspace = Subspace(kernel, np.full((5, 3), 2.0), np.full((1, 5), 0.2))
    np.testing.assert_allclose(method.find(subspace, np.eye(1)).rows, [[2.0] * 3], atol=1e-6)


@some_pairs
def test_given_kernel_values_save_evaluations(method, kernel):
    subspace, coordinates, _ = problem(kernel)
    told = Subspace(kernel, subspace.basis, subspace.coefficients, subspace.products, subspace.gram)
    expected = method.find(subspace, coordinates)
    assert np.array_equal(method.find(told, coordinates).rows, expected.rows)


@pytest.mark.parametrize(
    ("method", "kernel"), [(FixedPoint(), "rbf"), (FixedPoint(), "laplacian"),
                           *[(Gradient(), name) for name in KERNELS]]
)  # fmt: skip
def test_the_distance_never_grows_with_the_iterations(method, kernel):
    subspace, coordinates, _ = problem(KERNELS[kernel])
    distances = []
    for number in range(1, 25):
        limited = replace(method, max_iter=number)
        distances.append(limited.find(subspace, coordinates).squared_distances)
    scale = np.abs(subspace.diagonal).max()
    assert (np.diff(distances, axis=0) <= 1e-13 * scale).all()
    assert (distances[-1] < distances[0]).any()


class Watched(Gaussian):
    """Kernel that counts the rows of its evaluations."""

    def __init__(self, gamma):
        super().__init__(gamma)
        object.__setattr__(self, "rows_asked", [])

    def weighted_center(self, Z, X, weights):
        self.rows_asked.append(len(Z))
        return super().weighted_center(Z, X, weights)


def test_converged_samples_do_not_stop_others():
    """The cost of an evaluation is its number of samples."""
    kernel = Watched(0.5)
    subspace, coordinates, _ = problem(kernel)
    FixedPoint(tol=1e-10).find(subspace, coordinates)
    assert kernel.rows_asked == sorted(kernel.rows_asked, reverse=True)
    assert 0 < kernel.rows_asked[-1] < len(coordinates) == kernel.rows_asked[0]
    assert len(kernel.rows_asked) < 1 + FixedPoint().max_iter


def test_acceleration_needs_fewer_iterations_to_the_same_fixed_points(monkeypatch):
    rows, evaluations = [], []
    for history in (4, 0):
        monkeypatch.setattr("ikpca.preimages.descent._FIXED_POINT_HISTORY", history)
        kernel = Watched(0.5)
        subspace, coordinates, _ = problem(kernel)
        rows.append(FixedPoint(1000, 1e-9).find(subspace, coordinates).rows)
        evaluations.append(sum(kernel.rows_asked))
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-6)
    assert evaluations[0] < evaluations[1] / 2


def test_iteration_equals_the_paper():
    """Mika 1999, eq. 10, one step from the nearest row, with positive weights."""
    subspace, _, _ = problem(Gaussian(0.5))
    G = np.abs(subspace.coefficients)
    positive = Subspace(Gaussian(0.5), subspace.basis, G)
    starts = subspace.basis[positive.nearest_rows(np.eye(3), 1)[:, 0]]
    K = cross_gram(Gaussian(0.5), starts, subspace.basis)
    expected = (G * K) @ subspace.basis / (G * K).sum(axis=1, keepdims=True)
    found = FixedPoint(max_iter=1).find(positive, np.eye(3))
    np.testing.assert_allclose(found.rows, expected, atol=1e-12)


def test_vanishing_denominator_at_the_start():
    subspace, coordinates, starts = problem(Gaussian(1.0))
    afar = FixedPoint().find(subspace, coordinates, starts + 1e3)
    np.testing.assert_allclose(afar.rows, FixedPoint().find(subspace, coordinates).rows)


def test_the_mean_of_neighbors_is_that_of_the_nearest_images():
    subspace, coordinates, _ = problem(Gaussian(0.1))
    G = coordinates @ subspace.coefficients
    values = G @ cross_gram(Gaussian(0.1), subspace.basis, subspace.basis)
    expected = [subspace.basis[np.argsort(-row)[:5]].mean(axis=0) for row in values]
    np.testing.assert_allclose(NeighborMean(5).find(subspace, coordinates).rows, expected)


# --- who serves whom -----------------------------------------------------------------

CHOICES = {
    "linear": (Gradient, {"gradient", "mds", "neighbors"}),
    "poly": (Gradient, {"gradient", "mds", "neighbors"}),
    "sigmoid": (Gradient, {"gradient", "neighbors"}),
    "cosine": (Gradient, {"gradient", "neighbors"}),
    "rbf": (FixedPoint, {"fixed-point", "gradient", "mds", "neighbors"}),
    "laplacian": (FixedPoint, {"fixed-point", "gradient", "neighbors"}),
    "vectorized": (NeighborMean, {"neighbors"}),
}
NAMES = set(PREIMAGE_NAMES) - {"auto", "ridge"}


@pytest.mark.parametrize("name", ALL_KERNELS)
def test_automatic_choice(name):
    assert type(make_preimage_method("auto", ALL_KERNELS[name])) is CHOICES[name][0]


@pytest.mark.parametrize("name", ALL_KERNELS)
def test_unsupported_method_error_lists_supported_methods(name):
    kernel, has = ALL_KERNELS[name], CHOICES[name][1]
    for method in has:
        assert make_preimage_method(method, kernel).supports(kernel)
    for method in NAMES - has:
        with pytest.raises(InvalidInput, match=f"preimage='{method}': does not support") as raised:
            make_preimage_method(method, kernel)
        offered = str(raised.value).split("choose one of ")[1]
        assert {each.strip("'.") for each in offered.split(", ")} == {*has, "ridge"}


@pytest.mark.parametrize(
    ("method", "kernel"),
    [
        (FixedPoint(), Linear()),
        (MDS(), KERNELS["sigmoid"]),
        (Gradient(), ALL_KERNELS["vectorized"]),
    ],
)
def test_method_objects_reject_unsupported_kernels(method, kernel):
    with pytest.raises(InvalidInput, match=r"choose .*NeighborMean"):
        method.find(*problem(kernel)[:2])


BAD_SETTINGS = [
    (lambda: FixedPoint(max_iter=0), "max_iter=0: must be an integer of at least 1; pass 5"),
    (lambda: FixedPoint(tol=-1), "tol=-1: must be a nonnegative number; pass"),
    (lambda: FixedPoint(tol=np.nan), "tol=nan"),
    (lambda: Gradient(max_iter=2.5), r"max_iter=2\.5"),
    (lambda: Gradient(tol="small"), "tol='small'"),
    (lambda: MDS(0), "n_neighbors=0: must be an integer of at least 1"),
    (lambda: MDS(True), "n_neighbors=True"),
    (lambda: NeighborMean(None), "n_neighbors=None"),
]


def test_bad_settings(subtests):
    for make, message in BAD_SETTINGS:
        with subtests.test(message), pytest.raises(InvalidInput, match=message):
            make()

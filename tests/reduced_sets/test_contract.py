"""Contract of every reduction, for every kernel that it supports."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest

from ikpca.errors import InvalidInput
from ikpca.gram import cross_gram
from ikpca.kernels import Gaussian, Pairwise, Polynomial
from ikpca.reduced_sets import (
    IteratedPreimages,
    SelectedRows,
    make_reduction,
)
from ikpca.subspace import Subspace
from tests.conftest import KERNELS

ALL_KERNELS = {**KERNELS, "pairwise": Pairwise(lambda x, y: np.exp(-0.2 * np.abs(x - y).max()))}
REDUCTIONS = {
    "samples": SelectedRows(),
    "few candidates": SelectedRows(max_candidates=30),
    "iterated": IteratedPreimages(),
    "iterated, two per vector": IteratedPreimages(2),
    "joint": SelectedRows("auto"),
    "joint, few candidates": SelectedRows(5, tol=0.0, max_candidates=30),
}
PAIRS = [
    pytest.param(reduction, kernel, id=f"{name}-{kernel_name}")
    for name, reduction in REDUCTIONS.items()
    for kernel_name, kernel in ALL_KERNELS.items()
    if reduction.supports(kernel)
]
every_pair = pytest.mark.parametrize(("reduction", "kernel"), PAIRS)
#: Every reduction and every kernel at least once, where the result depends on neither.
some_pairs = pytest.mark.parametrize(
    ("reduction", "kernel"),
    [*zip(cycle(REDUCTIONS.values()), ALL_KERNELS.values(), strict=False)],
)
every_reduction = pytest.mark.parametrize("reduction", REDUCTIONS.values(), ids=REDUCTIONS)


def problem(kernel, dtype=np.float64, rows=40):
    """Three vectors on forty rows, with coefficients of both signs."""
    rng = np.random.default_rng(3)
    basis = rng.normal(size=(rows, 4)) + 1
    coefficients = rng.dirichlet(np.full(rows, 0.2), size=3) + 0.02 * rng.normal(size=(3, rows))
    return Subspace(kernel, basis.astype(dtype), coefficients.astype(dtype))


def true_errors(subspace, reduced):
    """‖u − u'‖² with one vector of coefficients on all rows, old and new."""
    rows = np.vstack([subspace.basis, reduced.basis]).astype(np.float64)
    difference = np.hstack([subspace.coefficients, -reduced.coefficients])
    K = cross_gram(subspace.kernel, rows, rows)
    return np.einsum("ij,jk,ik->i", difference, K, difference)


@every_pair
def test_size_is_a_bound_and_errors_are_exact(reduction, kernel):
    subspace = problem(kernel)
    found = reduction.reduce(subspace, 9, np.array([3.0, 2.0, 1.0]))
    assert len(found.subspace.basis) <= 9
    assert found.subspace.coefficients.shape == (3, len(found.subspace.basis))
    scale = np.abs(np.diagonal(subspace.gram)).max()
    expected = np.maximum(true_errors(subspace, found.subspace), 0)
    np.testing.assert_allclose(found.squared_errors, expected, atol=1e-10 * scale)
    lengths = np.diagonal(subspace.gram)
    np.testing.assert_allclose(found.relative_errors**2 * lengths, expected, atol=1e-10 * scale)


@every_pair
def test_stored_products_equal_computed_ones(reduction, kernel):
    subspace = problem(kernel)
    found = reduction.reduce(subspace, 9)
    reduced = found.subspace
    assert reduced.known_products is not None
    computed = Subspace(kernel, reduced.basis, reduced.coefficients)
    scale = np.abs(subspace.gram).max()
    np.testing.assert_allclose(reduced.products, computed.products, atol=1e-10 * scale)
    np.testing.assert_allclose(reduced.gram, computed.gram, atol=1e-10 * scale)
    across = subspace.coefficients @ cross_gram(kernel, subspace.basis, reduced.basis)
    np.testing.assert_allclose(found.inner_products, across, atol=1e-10 * scale)


@some_pairs
def test_enough_rows_give_no_error(reduction, kernel):
    subspace = problem(kernel)
    found = reduction.reduce(subspace, 40)
    assert found.squared_errors.tolist() == [0, 0, 0]
    np.testing.assert_array_equal(found.subspace.basis, subspace.basis)
    np.testing.assert_array_equal(found.subspace.coefficients, subspace.coefficients)


@some_pairs
def test_duplicate_rows_are_merged_without_error(reduction, kernel):
    single = problem(kernel, rows=12)
    rng = np.random.default_rng(0)
    copies = np.concatenate([np.arange(12), rng.integers(12, size=18)])
    shares = np.zeros((12, 30))
    for j in range(12):
        shares[j, copies == j] = rng.dirichlet(np.ones((copies == j).sum()))
    double = Subspace(kernel, single.basis[copies], single.coefficients @ shares)
    found = reduction.reduce(double, 12)
    assert len(found.subspace.basis) == 12
    scale = np.abs(np.diagonal(single.gram)).max()
    assert (np.abs(true_errors(single, found.subspace)) <= 1e-12 * scale).all()


@some_pairs
def test_single_precision_rows_keep_their_type(reduction, kernel):
    subspace = problem(kernel, np.float32)
    before = subspace.basis.copy()
    found = reduction.reduce(subspace, 9)
    assert found.subspace.basis.dtype == np.float32
    assert found.subspace.coefficients.dtype == found.squared_errors.dtype == np.float64
    in_double = Subspace(kernel, subspace.basis.astype(float), subspace.coefficients.astype(float))
    scale = np.abs(np.diagonal(in_double.gram)).max()
    expected = np.maximum(true_errors(in_double, found.subspace), 0)
    # Where candidates are drawn from many rows, what is known of these is not computed again.
    precision = 1e-9 if reduction.max_candidates >= 40 else 1e-6
    np.testing.assert_allclose(found.squared_errors, expected, atol=precision * scale)
    np.testing.assert_array_equal(subspace.basis, before)


@some_pairs
def test_zero_vector_has_no_error(reduction, kernel):
    subspace = problem(kernel)
    coefficients = np.vstack([subspace.coefficients, np.zeros(40)])
    found = reduction.reduce(Subspace(kernel, subspace.basis, coefficients), 12)
    assert found.relative_errors[-1] == 0
    assert np.isfinite(found.subspace.coefficients).all()


@some_pairs
def test_zero_vectors_keep_a_basis(reduction, kernel):
    subspace = problem(kernel)
    found = reduction.reduce(Subspace(kernel, subspace.basis, np.zeros((3, 40))), 9)
    assert 1 <= len(found.subspace.basis) <= 9
    assert found.squared_errors.tolist() == found.relative_errors.tolist() == [0, 0, 0]


@every_reduction
def test_infinite_kernel_values_raise_an_error(reduction):
    subspace = problem(Polynomial(degree=500, gamma=10.0, coef0=1.0))
    with np.errstate(over="ignore", invalid="ignore"):
        assert not np.isfinite(subspace.gram).all()
        with pytest.raises(InvalidInput, match="not finite"):
            reduction.reduce(subspace, 9)


@every_reduction
def test_fewer_rows_than_vectors_raise_an_error(reduction):
    for size in (2, 0, -1, 2.5, True, "many"):
        with pytest.raises(InvalidInput, match="3 vectors need at least as many rows"):
            reduction.reduce(problem(Gaussian()), size)


@every_reduction
def test_bad_weights_raise_an_error(reduction):
    for weights in ([1, 2], [1, 2, -1], [1, 2, np.nan]):
        with pytest.raises(InvalidInput, match="weights"):
            reduction.reduce(problem(Gaussian()), 5, np.array(weights))


@pytest.mark.parametrize("reduction", [IteratedPreimages(), SelectedRows("auto")])
def test_kernel_without_gradient_raises_an_error(reduction):
    kernel = ALL_KERNELS["pairwise"]
    assert not reduction.supports(kernel)
    with pytest.raises(InvalidInput, match="kernel="):
        reduction.reduce(problem(kernel), 10)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: IteratedPreimages(0), "per_vector"),
        (lambda: IteratedPreimages(max_candidates=0), "max_candidates"),
        (lambda: SelectedRows(moves=-1), "moves"),
        (lambda: SelectedRows(tol=2), "tol"),
        (lambda: SelectedRows(max_candidates=0), "max_candidates"),
    ],
)
def test_invalid_options_raise_an_error(make, name):
    with pytest.raises(InvalidInput, match=name):
        make()


def test_names():
    gaussian, pairwise = Gaussian(), ALL_KERNELS["pairwise"]
    assert make_reduction("preimages", gaussian).moves == "auto"
    assert make_reduction("samples", gaussian).moves == 0
    assert make_reduction("auto", gaussian).moves == "auto"
    assert make_reduction("auto", pairwise).moves == 0
    own = SelectedRows(max_candidates=7)
    assert make_reduction(own, gaussian) is own
    with pytest.raises(InvalidInput, match="choose 'samples'"):
        make_reduction("preimages", pairwise)
    with pytest.raises(InvalidInput, match="is unknown"):
        make_reduction("landmarks", gaussian)

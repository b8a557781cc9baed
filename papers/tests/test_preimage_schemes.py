"""Schemes of Chin and Suter 2006, figure 1: coefficients, errors, and sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ikpca.kernels import Gaussian, Laplacian, Linear, Polynomial
from ikpca.reduced_sets import IteratedPreimages
from ikpca.subspace import Subspace
from ikpca_papers.chin2006.parabola import components_of
from ikpca_papers.preimage_schemes import PreimageScheme, _quadratic_preimage

KERNELS = [Linear(), Polynomial(2, 0.5, 1.0), Gaussian(0.2), Laplacian(0.2)]


def problem(kernel, seed=0):
    X = np.random.default_rng(seed).normal(size=(30, 3)) + 1
    subspace, singular_values = components_of(kernel, X, 2)
    return subspace, np.append(singular_values, singular_values[0])


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("nearest", [False, True])
def test_second_pass_never_increases_an_error(kernel, reuse, nearest):
    subspace, weights = problem(kernel)
    first = PreimageScheme(2, reuse=reuse, second_pass=False, nearest=nearest)
    once = first.reduce(subspace, 6, weights)
    twice = replace(first, second_pass=True).reduce(subspace, 6, weights)
    assert len(once.subspace.basis) <= 6
    np.testing.assert_array_equal(once.subspace.basis, twice.subspace.basis)
    # Both are differences of squared lengths, which are rounded.
    rounding = 10 * np.finfo(np.float64).eps * np.diagonal(subspace.gram)
    assert (twice.squared_errors <= once.squared_errors + rounding).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_scheme_c_is_that_of_the_library(kernel):
    subspace, weights = problem(kernel)
    ours = IteratedPreimages(2).reduce(subspace, 6, weights)
    scheme = PreimageScheme(2).reduce(subspace, 6, weights)
    np.testing.assert_array_equal(scheme.subspace.basis, ours.subspace.basis)
    np.testing.assert_array_equal(scheme.subspace.coefficients, ours.subspace.coefficients)


@pytest.mark.parametrize("size", [3, 60])
def test_preimages_of_the_quadratic_kernel_are_eigenvectors(size):
    """No row of any length has a larger cosine with the vector."""
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(30, size)), rng.normal(size=30)
    kernel = Polynomial(2, 1.0, 0.0)
    (row,) = _quadratic_preimage(Subspace(kernel, X, weights[None]))
    matrix = (X.T * weights) @ X
    cosine = abs(row @ matrix @ row) / (row @ row)
    assert cosine == pytest.approx(np.abs(np.linalg.eigvalsh(matrix)).max(), rel=1e-6)


def test_preimages_are_searched_in_the_box_of_the_data():
    subspace, weights = problem(Gaussian(0.2))
    low, high = subspace.basis.min(axis=0), subspace.basis.max(axis=0)
    rows = PreimageScheme(3, nearest=True).reduce(subspace, 9, weights).subspace.basis
    assert ((rows >= low) & (rows <= high)).all()


@pytest.mark.parametrize("nearest", [False, True])
def test_vectors_use_the_rows_of_their_scheme(nearest):
    """Figure 1 of the paper, block by block."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    subspace: Subspace = components_of(Gaussian(0.2), X, 2)[0]
    weights = np.array([3.0, 2.0, 1.0])
    used = [
        PreimageScheme(2, nearest=nearest, **scheme).reduce(subspace, 6, weights)
        for scheme in ({"reuse": False, "second_pass": False}, {"second_pass": False}, {})
    ]
    separate, reuse, second_pass = (result.subspace.coefficients != 0 for result in used)
    blocks = np.repeat(np.arange(3), 2)
    np.testing.assert_array_equal(separate, blocks == np.arange(3)[:, None])
    np.testing.assert_array_equal(reuse, blocks <= np.arange(3)[:, None])
    assert second_pass.all()

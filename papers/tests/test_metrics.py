"""Comparison of streamed and batch models, checked where feature space is explicit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

from ikpca import KernelPCA
from ikpca_papers.metrics import (
    align_signs,
    captured_variance,
    correlations,
    exponent,
    feature_angles,
    overlaps,
    separated,
)


def test_angles_of_the_linear_kernel_are_those_of_the_directions(rows):
    batch = KernelPCA(3, kernel="linear", eigen_solver="dense").fit(rows)
    directions = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 2)))[0]
    # About another mean: it must drop out.
    actual = feature_angles(overlaps(batch, (rows - 7.0) @ directions))
    _, _, axes = np.linalg.svd(rows - rows.mean(axis=0))
    expected = np.degrees(linalg.subspace_angles(axes[:3].T, directions))
    np.testing.assert_allclose(actual, expected, atol=1e-6)


def test_batch_overlaps_with_itself(rows, kernel):
    batch = KernelPCA(3, kernel=kernel, eigen_solver="dense").fit(rows)
    inner = overlaps(batch, batch.transform(rows))
    np.testing.assert_allclose(inner, np.eye(3), atol=1e-7)


def test_batch_captures_its_eigenvalues(rows):
    batch = KernelPCA(4, kernel="rbf", gamma=0.2, eigen_solver="dense").fit(rows)
    captured = captured_variance(batch.transform(rows) + 3.0)
    assert captured == pytest.approx(batch.eigenvalues_.sum(), rel=1e-12)


def test_signs_are_aligned(rows):
    turned = rows * [1, -1, -1, 1, 1]
    np.testing.assert_array_equal(align_signs(turned, rows), rows)
    np.testing.assert_allclose(correlations(turned, rows), 1)


def test_fewer_rows_separate_less():
    eigenvalues = np.array([10.0, 9.0, 5.0, 1.0])
    assert separated(eigenvalues, 1000).tolist() == [0, 1, 2]
    assert separated(eigenvalues, 100).tolist() == [2]


@pytest.mark.parametrize("power", [0.7, 2.0])
def test_the_exponent_of_a_power_is_found(power):
    sizes = [5000, 10000, 20000, 40000]
    assert exponent(sizes, [3 * size**power for size in sizes]) == pytest.approx(power)

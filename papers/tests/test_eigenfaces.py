"""Chin and Suter 2006, table 2: kernel components and ten nearest neighbors."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from ikpca_papers.chin2006.eigenfaces import PIPELINES, eigenfaces, faces, recognize


def test_polynomial_and_gaussian_kernels_recognize_digits():
    pixels, y = load_digits(return_X_y=True)
    errors = {result.name: result.errors.mean() for result in recognize(pixels / 16, y, folds=3)}
    assert errors.keys() == {"raw pixels", *PIPELINES}
    assert errors["polynomial, degree 2"] < 0.03
    assert errors["Gaussian, median σ"] < 0.03


def test_the_linear_pipeline_is_eigenfaces():
    pixels, y = load_digits(return_X_y=True)
    X = pixels[:600] / 16
    actual = eigenfaces(12, kernel="linear", eigen_solver="dense").fit(X, y[:600])
    expected = PCA(12, svd_solver="full").fit(X)
    distances = actual[0].transform(X)[:, None] - actual[0].transform(X[:9])
    explicit = expected.transform(X)[:, None] - expected.transform(X[:9])
    np.testing.assert_allclose(
        np.linalg.norm(distances, axis=2), np.linalg.norm(explicit, axis=2), atol=1e-9
    )


def test_faces_are_shrunk_without_losing_light(data_folder):
    X, people = faces(data_folder)
    assert X.shape == (2414, 400)
    assert len(set(people)) == 38
    with np.load(data_folder / "yaleb_cropped_64x56.npz") as data:
        light = data["images"].mean(axis=(1, 2)) / 255
    np.testing.assert_allclose(X.mean(axis=1), light, atol=1e-12)


def test_whitened_components_tell_faces_apart_better_than_pixels(data_folder):
    errors = {
        result.name: result.errors.mean() for result in recognize(*faces(data_folder), folds=2)
    }
    assert errors["polynomial, whitened"] < 0.6 * errors["raw pixels"]
    # Reported, not wished for: light dominates components that are not whitened.
    assert errors["polynomial, degree 2"] == pytest.approx(errors["linear"], abs=0.06)

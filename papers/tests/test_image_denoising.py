"""Denoising of images: quality, types, invalid input."""

from __future__ import annotations

import numpy as np
import pytest

from ikpca import KernelPCA
from ikpca.errors import InvalidInput
from ikpca.metrics import signal_to_noise_ratio
from ikpca_papers.applications import denoise_image, estimate_noise
from ikpca_papers.guenter2006.image_denoising import Case, cases, oracles


def waves(height=72, width=80):
    rows, columns = np.mgrid[:height, :width]
    return 0.5 + 0.25 * np.sin(rows / 5) + 0.25 * np.sign(np.sin(columns / 9))


@pytest.fixture(scope="module")
def clean():
    return waves()


@pytest.fixture(scope="module")
def noisy(clean):
    return clean + 0.1 * np.random.default_rng(0).normal(size=clean.shape)


@pytest.mark.parametrize("scheme", ["groups", "sub-images", "single"])
def test_every_scheme_removes_most_of_the_noise(clean, noisy, scheme):
    ours = signal_to_noise_ratio(clean, denoise_image(noisy, scheme=scheme))
    assert ours > signal_to_noise_ratio(clean, noisy) + 8


@pytest.mark.parametrize("level", [0.05, 0.1, 0.3])
def test_the_noise_is_estimated(clean, level):
    noisy = clean + level * np.random.default_rng(1).normal(size=clean.shape)
    assert estimate_noise(noisy) == pytest.approx(level, rel=0.15)


def test_result_does_not_depend_on_units(noisy):
    """Pixels from 0 to 1, or from 0 to 255."""
    small, large = denoise_image(noisy), denoise_image(255 * noisy)
    np.testing.assert_allclose(large, 255 * small, atol=0.05)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_shape_and_type_are_kept(noisy, dtype):
    image = np.clip(255 * noisy, 0, 255).astype(dtype)
    kept = image.copy()
    denoised = denoise_image(image)
    assert denoised.shape == image.shape
    assert denoised.dtype == dtype
    assert np.array_equal(image, kept)


def test_color_images_keep_their_channels(clean, noisy):
    color = np.stack([noisy, noisy[::-1], noisy[:, ::-1]], axis=2)
    truth = np.stack([clean, clean[::-1], clean[:, ::-1]], axis=2)
    denoised = denoise_image(color)
    assert denoised.shape == color.shape
    before, after = (signal_to_noise_ratio(truth, image) for image in (color, denoised))
    assert after > before + 3


@pytest.mark.parametrize("value", [0, 7])
def test_constant_image_is_unchanged(value):
    image = np.full((30, 30), value, dtype=np.uint8)
    assert np.array_equal(denoise_image(image), image)


def test_image_without_noise_is_unchanged(clean):
    assert np.array_equal(denoise_image(clean, noise=0), clean)


def test_a_model_of_the_user_is_cloned(clean, noisy):
    pca = KernelPCA(8, kernel="poly", degree=2, eigen_solver="kha/et", max_iter=5, random_state=0)
    denoised = denoise_image(noisy, pca=pca, scheme="single", n_training=300)
    assert signal_to_noise_ratio(clean, denoised) > signal_to_noise_ratio(clean, noisy) + 3
    assert not hasattr(pca, "eigenvalues_")


BAD_IMAGES = {
    "a row": (np.zeros(9), {}),
    "four dimensions": (np.zeros((9, 9, 3, 2)), {}),
    "alpha": (np.zeros((30, 30, 4)), {}),
    "bool": (np.zeros((30, 30), dtype=bool), {}),
    "text": (np.full((30, 30), "x"), {}),
    "NaN": (np.full((30, 30), np.nan), {}),
    "infinite": (np.full((30, 30), np.inf), {}),
    "patch too large": (waves(20, 20), {"size": 21}),
    "one window": (waves(9, 9), {"size": 9}),
    "empty": (np.zeros((0, 5)), {}),
    "too bright": (waves() * 1e200, {}),
}


def test_bad_images_are_refused(subtests):
    for name, (image, settings) in BAD_IMAGES.items():
        with subtests.test(name), pytest.raises(InvalidInput):
            denoise_image(image, **settings)


BAD_SETTINGS = [
        {"noise": -1}, {"noise": "much"}, {"noise": np.nan}, {"scheme": "best"}, {"n_parts": 0},
        {"stride": 0}, {"size": 0}, {"n_training": 1},
        {"pca": "kpca"}, {"pca": KernelPCA()}, {"stride": 30, "size": 5},
    ]  # fmt: skip


def test_bad_settings_are_refused(noisy, subtests):
    for settings in BAD_SETTINGS:
        with subtests.test(repr(settings)), pytest.raises(InvalidInput):
            denoise_image(noisy, **settings)


@pytest.mark.parametrize("name", ["cameraman", "boat", "house"])
def test_ours_is_above_linear_pca_at_its_best_rank(data_folder, name):
    """A quarter of the picture; linear PCA has its rank chosen by the clean image."""
    for whole in cases(data_folder, levels=(0.1, 0.2)):
        if whole.name == name:
            part = slice(128, 384), slice(128, 384)
            case = Case(name, whole.level, whole.clean[part], whole.noisy[part])
            linear = next(oracles(case))
            ours = signal_to_noise_ratio(case.clean, denoise_image(case.noisy))
            assert ours > linear.decibels

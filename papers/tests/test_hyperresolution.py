"""Kim 2003, section 4.2: KHA as printed against linear PCA, interpolation and ours."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from ikpca_papers.inputs import load_inputs
from ikpca_papers.kim2003 import faces
from ikpca_papers.kim2003.natural_super_resolution import (
    Enlarged,
    EnlargementModels,
    crop_center,
    kernel_width,
    margins,
)


@pytest.fixture(scope="module", params=["embedded", "BSDS"])
def enlarged(request):
    """Photographs restored by all methods, and σ as it was chosen."""
    embedded = request.param == "embedded"
    folder = None if embedded else request.getfixturevalue("data_folder")
    photos = load_inputs("photographs" if embedded else "bsds", folder).arrays
    train, tests = (
        {name.split("/")[1]: image for name, image in photos.items() if name.startswith(part)}
        for part in ("train/", "test/")
    )
    assert not train.keys() & tests.keys() or embedded
    models = EnlargementModels.fit(list(train.values()), 4, 600, 100, n_tuning=200, sigmas=[2.0],
                                   passes=20)  # fmt: skip
    some = dict(list(tests.items())[:3])
    result = [models.enlarge(name, crop_center(photo, (64, 96), 4)) for name, photo in some.items()]
    return result, kernel_width(models.ours)


def test_ours_beats_blocks_and_nearest_neighbors(enlarged):
    results, sigma = enlarged
    # Wide kernels win: with squares for a start, there is little a narrow one could go by.
    assert sigma > 1
    for result in results:
        ratios = result.ratios
        assert result.sharp.shape == (64, 96)
        assert result.low.shape == (16, 24)
        assert ratios["ours"] > ratios["ours block-wise"]
        assert ratios["ours"] > ratios["nearest"]
        assert ratios["ours*"] > ratios["ours"]


def test_as_printed_loses_to_enlarged_pixels(enlarged):
    """Unlike in the paper; exact components give the same result."""
    for found in enlarged[0]:
        assert found.ratios["KHA"] < found.ratios["nearest"]
        assert found.ratios["KPCA, σ = 0.5"] < found.ratios["nearest"]


def test_overlapping_windows_reduce_the_seams(enlarged):
    for found in enlarged[0]:
        assert found.seams["KHA block-wise"] > found.seams["KHA"]


def test_structure_is_none_in_squares_and_all_in_the_photograph():
    sharp = np.random.default_rng(0).normal(size=(8, 12))
    low = sharp.reshape(2, 4, 3, 4).mean(axis=(1, 3))
    squares = low.repeat(4, axis=0).repeat(4, axis=1)
    found = Enlarged("noise", sharp, low, {"nearest": squares, "original": sharp}, {})
    assert found.structure["nearest"] == pytest.approx(0, abs=1e-12)
    assert found.structure["original"] == pytest.approx(1)


def test_margins_are_differences_per_image():
    ratios = {"KHA": 5.0, "bilinear": 8.0, "ours": 7.0}
    rows = [{"image": "a", "method": name, "snr": ratio} for name, ratio in ratios.items()]
    result = {(row["method"], row["against"]): row["decibels"] for row in margins(rows)}
    assert result["KHA", "bilinear"] == -3
    assert result["ours", "KHA"] == 2
    assert ("KHA", "KHA") not in result


def test_digits_restored_whole():
    digits = load_digits()
    images, persons = digits.images[:, 1:7, 1:7] / 16, digits.target
    split = faces.FaceSplit.random(images, persons, n_test=100).reduced(600)
    sigma, units = faces.read_units(split.train)
    assert [row["unit"] for row in units] == ["0 to 255", "0 to 1", "length 1"]
    result = {
        (one.method, one.n_components, one.n_train): one.measure(split)
        for one in faces.restore(split, 2, (5, 20), 200, sigma, 0.1)
    }
    errors = {key: measures["mse"] for key, measures in result.items()}
    assert errors["ours", 20, 600] < 0.9 * errors["nearest", None, None]
    # KHA comes near the exact components.
    assert errors["KHA", 20, 600] == pytest.approx(errors["KPCA", 20, 600], rel=0.1)
    assert result["KHA", 20, 600]["wrong_person"] < 0.9


def test_the_nearest_training_face_decides_the_person():
    train = np.arange(4.0).reshape(4, 1, 1)
    split = faces.FaceSplit(train, np.zeros((2, 1, 1)), np.array([1, 1, 2, 2]), np.array([1, 1]))
    distances, wrong = split.nearest(np.array([[[0.25]], [[3.0]]]))
    assert distances.tolist() == [0.25, 0.0]
    assert wrong.tolist() == [False, True]


def test_faces_are_resized_and_split_without_overlap(data_folder):
    images = load_inputs("yale-b-60", data_folder).arrays["images"]
    assert images.shape == (2414, 60, 60)
    with np.load(data_folder / "yaleb_cropped_64x56.npz") as data:
        light, persons = data["images"].mean(axis=(1, 2)) / 255, data["subject"]
    np.testing.assert_allclose(images.mean(axis=(1, 2)), light, atol=5e-3)
    split = faces.FaceSplit.random(images, persons, 100)
    assert (len(split.train), len(split.test)) == (2314, 100)
    assert (len(split.train_persons), len(split.test_persons)) == (2314, 100)

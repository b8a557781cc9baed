"""Günter 2006, figure 4: a noisy walk, kernel PCA, a pre-image per frame.

Body-centered coordinates in meters, Gaussian noise of 0.05 m; the claim is how far the mean squared
error falls. Seen with exact kernel PCA at σ² = 0.1 m² and 25 components: 88.2 and 88.3 %.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from ikpca.applications import denoise_motion
from ikpca_papers.mocap import body_centered, in_metres, read_asf_amc, synthetic_walker, with_noise

WALKS = ["35_01", "07_01"]
NOISE = [0.02, 0.05, 0.1]
#: With nothing set; constants were chosen with the two recorded walks in view, not the walker.
REACHED = {
    "35_01": {0.02: 0.895, 0.05: 0.935, 0.1: 0.95},
    "07_01": {0.02: 0.895, 0.05: 0.935, 0.1: 0.95},
    "walker": {0.02: 0.94, 0.05: 0.945, 0.1: 0.95},
}


@pytest.fixture
def walk(request):
    """A clean walk by name; only recorded ones need the data."""

    def load(name):
        if name == "walker":
            return body_centered(synthetic_walker())
        folder = request.getfixturevalue("data_folder") / "mocap"
        motion = read_asf_amc(folder / f"{name[:2]}.asf", folder / f"{name}.amc")
        return body_centered(in_metres(motion))

    return load


def fall(clean, noisy, denoised):
    """By which share the mean squared error is smaller than the noise."""
    error = np.mean((denoised - clean.positions) ** 2)
    return 1 - error / np.mean((noisy.positions - clean.positions) ** 2)


def best_linear(clean, noisy):
    """Linear PCA at the rank that suits it best, found with the clean frames in view."""
    rows = noisy.positions.reshape(noisy.n_frames, -1)
    ranks = (PCA(rank).fit(rows) for rank in range(1, 20))
    images = (pca.inverse_transform(pca.transform(rows)) for pca in ranks)
    return max(fall(clean, noisy, image.reshape(noisy.positions.shape)) for image in images)


@pytest.mark.parametrize("name", WALKS)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_papers_components(walk, name, seed):
    clean = walk(name)
    noisy = with_noise(clean, 0.05, seed)
    falls = [
        fall(
            clean,
            noisy,
            denoise_motion(
                noisy.positions,
                gamma=1 / (2 * variance),
                n_components=25,
                eigen_solver="kha-smd",
                random_state=0,
            ),
        )
        for variance in (0.1, 1.5)
    ]
    assert falls[0] >= 0.875
    # The paper's own width has no unit; in square meters it is the worse choice.
    assert 0.7 < falls[1] < falls[0]


@pytest.mark.parametrize("scale", NOISE)
@pytest.mark.parametrize("name", [*WALKS, "walker"])
def test_nothing_set(walk, name, scale):
    clean = walk(name)
    noisy = with_noise(clean, scale, seed=0)
    found = fall(clean, noisy, denoise_motion(noisy.positions))
    assert found >= REACHED[name][scale]
    assert found > best_linear(clean, noisy)


@pytest.mark.parametrize("name", WALKS)
def test_clean_frames_stay_as_they_are(walk, name):
    """To a third of a millimetre; the recordings themselves shake by half as much."""
    clean = walk(name)
    error = np.sqrt(np.mean((denoise_motion(clean.positions) - clean.positions) ** 2))
    assert error < 3e-4

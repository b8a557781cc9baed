"""Denoising a motion: what is passed on, what is chosen, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ikpca import KernelPCA
from ikpca.applications import denoise_motion, motion_settings
from ikpca.errors import InvalidInput


def periodic_motion(frames=200, joints=27, period=132):
    """Smooth positions relative to the first joint, from a few harmonics."""
    rng = np.random.default_rng(0)
    harmonics = np.arange(1, 4)
    phases = rng.uniform(0, 2 * np.pi, size=(joints, 3, 3))
    scales = rng.uniform(0.05, 0.3, size=(joints, 3, 3)) / harmonics**2
    time = 2 * np.pi * np.arange(frames)[:, None, None, None] / period
    positions = np.sum(scales * np.sin(harmonics * time + phases), axis=-1)
    return positions - positions[:, :1]


def with_noise(positions, scale):
    return positions + scale * np.random.default_rng(1).normal(size=positions.shape)


CLEAN = periodic_motion()
NOISY = with_noise(CLEAN, 0.05)
GIVEN = {"gamma": 2.0, "n_components": 3}


class Recorder(KernelPCA):
    """Remembers the settings it was made with, and gives back what it was given."""

    made = None

    def reconstruct(self, X):
        Recorder.made = self.get_params()
        return X


@pytest.fixture
def recorder(monkeypatch):
    monkeypatch.setattr("ikpca.applications.motion.KernelPCA", Recorder)
    return Recorder


def test_settings_are_passed_on(recorder):
    found = denoise_motion(NOISY, **GIVEN, eigen_solver="kha/et", random_state=5)
    expected = {"kernel": "rbf", **GIVEN, "eigen_solver": "kha/et", "random_state": 5}
    assert expected.items() <= recorder.made.items()
    # Rows go in and positions come out, in their order.
    assert_allclose(found, NOISY, rtol=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_kind_of_number_stays(recorder, dtype):
    assert denoise_motion(NOISY.astype(dtype)).dtype == dtype


def test_what_is_chosen_is_what_motion_settings_says(recorder):
    denoise_motion(NOISY)
    gamma, n_components = motion_settings(NOISY)
    assert recorder.made["gamma"] == gamma
    assert recorder.made["n_components"] == n_components


def test_one_setting_may_be_given_alone(recorder):
    denoise_motion(NOISY, n_components=4)
    assert recorder.made["n_components"] == 4
    assert recorder.made["gamma"] == motion_settings(NOISY).gamma
    denoise_motion(NOISY, gamma=100.0)
    assert recorder.made["gamma"] == 100
    # So narrow a kernel sees a noisy frame far from every other one: little that is smooth is left.
    assert recorder.made["n_components"] < motion_settings(NOISY).n_components


def test_gamma_is_one_over_the_summed_variance():
    assert_allclose(motion_settings(NOISY).gamma, 1 / NOISY.reshape(200, -1).var(axis=0).sum())


def test_settings_do_not_depend_on_unit_or_place():
    gamma, n_components = motion_settings(NOISY)
    other = motion_settings(100 * NOISY + 7)
    assert_allclose(other.gamma, gamma / 100**2)
    assert other.n_components == n_components


def test_more_noise_leaves_fewer_components():
    scales = [0.005, 0.02, 0.05, 0.2]
    noisy = (with_noise(CLEAN, scale) for scale in scales)
    counts = [motion_settings(positions).n_components for positions in noisy]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1] >= 1


def test_frames_out_of_order_look_like_noise():
    shuffled = np.random.default_rng(0).permutation(CLEAN)
    assert motion_settings(shuffled).n_components == 1


def test_positions_are_not_written_to(recorder):
    kept = NOISY.copy()
    denoise_motion(kept)
    assert_allclose(kept, NOISY, rtol=0)


BAD_POSITIONS = {
    "rows": (NOISY.reshape(200, -1), r"must be \(frames, joints, 3\)"),
    "in the plane": (NOISY[..., :2], r"must be \(frames, joints, 3\)"),
    "one frame": (NOISY[:1], "at least two frames"),
    "no joints": (NOISY[:, :0], r"must be \(frames, joints, 3\)"),
    "NaN": (np.where(NOISY[3, 2, 1] == NOISY, np.nan, NOISY), "positions contains NaN"),
    "standing still": (np.ones((50, 4, 3)), "all frames are equal"),
    "too short": (NOISY[:11], "needs at least 12 frames, not 11; pass a number"),
    "complex": (1j * NOISY, "Complex data not supported"),
}


def test_bad_positions(recorder, subtests):
    for case, (positions, words) in BAD_POSITIONS.items():
        with subtests.test(case):
            for call in (denoise_motion, motion_settings):
                with pytest.raises(ValueError, match=words):
                    call(positions)


def test_few_frames_will_do_where_settings_are_given(recorder):
    assert denoise_motion(NOISY[:5], **GIVEN).shape == (5, 27, 3)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"gamma": "wide"}, "gamma='wide': must be a number or 'auto'"),
        ({"n_components": "all"}, "n_components='all': must be a number or 'auto'"),
        ({"gamma": -1.0}, "gamma=-1.0: must not be negative"),
        ({"n_components": 0}, "n_components=0: must be a positive integer"),
    ],
)
def test_bad_settings(recorder, settings, words):
    with pytest.raises(InvalidInput, match=words):
        denoise_motion(NOISY, **GIVEN | settings)
